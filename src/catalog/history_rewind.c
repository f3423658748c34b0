/*
 * history_rewind.c - the timeline of a page as it was in an epoch. What came later is left out, and what was replaced
 * later is there again, because a ghost has kept it for those who see the epoch.
 */
#include "base/check.h"
#include "base/mem.h"
#include "catalog/history_list.h"

/* A capture that the epoch shows. */
struct rewound_capture {
    int64_t time_ms;
    uint64_t epoch;
    size_t version; /* its number in the history as it is now */
};

struct rewinding {
    struct wb_history *history;
    uint64_t epoch;
    const struct wb_history_version *shown; /* what the epoch shows, if that is a ghost now */
    WB_VEC(struct rewound_capture) captures;
};

/* Whether the ghost that the epoch shows has a capture of this time and content: it knows the form that they had. */
static bool ghost_has(const struct rewinding *r, int64_t time_ms, uint64_t content)
{
    if (!r->shown || r->shown->content != content)
        return false;
    for (size_t i = r->shown->first; i < r->shown->first + r->shown->count; i++)
        if (r->history->times.items[i] == time_ms)
            return true;
    return false;
}

/* Takes the captures of a version of the timeline, or of the ghost that the epoch shows. */
static int take_version(struct rewinding *r, size_t number)
{
    const struct wb_history *history = r->history;
    const struct wb_history_version *version = &history->versions.items[number];
    int err = 0;

    WB_CHECK(version->count > 0);
    for (size_t i = version->first; i < version->first + version->count && err == 0; i++) {
        int64_t time_ms = history->times.items[i];
        if (history->epochs.items[i] > r->epoch || (!version->ghost && ghost_has(r, time_ms, version->content)))
            continue;
        err = wb_vec_push(&r->captures, (struct rewound_capture){time_ms, history->epochs.items[i], number});
    }
    return err;
}

static bool is_visible(const struct wb_history_version *version, uint64_t epoch)
{
    return version->arrived <= epoch && (version->ceased == 0 || version->ceased > epoch);
}

/* Of ghosts, leaves those that are readable for other reasons, with the captures that they had by then. */
static void rewind_ghosts(struct wb_history *history, uint64_t epoch)
{
    for (size_t i = 0; i < history->ghosts;) {
        const struct wb_history_version *ghost = &history->versions.items[i];
        for (size_t k = ghost->first; k < ghost->first + ghost->count;) {
            if (history->epochs.items[k] > epoch)
                wb_history_remove_times(history, i, k, k + 1);
            else
                k++;
        }
        if (ghost->replaced || ghost->count == 0 || is_visible(ghost, epoch))
            wb_history_remove_version(history, i);
        else
            i++;
    }
}

/* Builds the timeline again: runs of captures of one version. */
static int rebuild(struct wb_history *history, const struct rewinding *r, const struct wb_history_version *before)
{
    size_t last_from = SIZE_MAX;
    int err = wb_history_reserve(history, r->captures.count, r->captures.count);

    while (history->versions.count > history->ghosts)
        wb_history_remove_version(history, history->versions.count - 1);
    for (size_t i = 0; i < r->captures.count && err == 0; i++) {
        const struct rewound_capture *capture = &r->captures.items[i];
        const struct wb_history_version *from = &before[capture->version];
        size_t count = history->versions.count;
        if (count == history->ghosts || last_from != capture->version) {
            struct wb_history_version version = *from;
            version.ghost = version.replaced = false;
            version.first = history->times.count;
            version.count = 0;
            wb_history_insert_version(history, count, &version);
        }
        last_from = capture->version;
        wb_history_insert_time(history, history->times.count, history->versions.count - 1, capture->time_ms,
                               capture->epoch);
    }
    return err;
}

/* Gives every version the epochs that it has for those who see this one: only one of them is the latest. */
static void settle_versions(struct wb_history *history, const struct wb_history_version *latest, uint64_t epoch)
{
    bool there = false;

    for (size_t i = history->versions.count; i > history->ghosts; i--) {
        struct wb_history_version *version = &history->versions.items[i - 1];
        bool shown = latest && !there && i == history->versions.count && version->content == latest->content;
        there = there || shown;
        version->arrived = shown ? latest->arrived : version->arrived < epoch ? version->arrived : epoch;
        version->ceased = shown ? 0 : version->arrived;
    }
    if (there)
        history->gone_ms = 0;
}

int wb_history_rewind(struct wb_history *history, uint64_t epoch)
{
    const struct wb_history_version *shown = wb_history_in(history, epoch);
    struct rewinding r = {.history = history, .epoch = epoch, .shown = shown && shown->ghost ? shown : NULL};
    struct wb_history_version latest = shown ? *shown : (struct wb_history_version){0};
    int err = 0;

    wb_history_check(history);
    for (size_t i = history->ghosts; i < history->versions.count && err == 0; i++)
        err = take_version(&r, i);
    if (err == 0 && r.shown) /* it was the latest version, so all others were before it */
        err = take_version(&r, (size_t)(r.shown - history->versions.items));
    struct wb_history_version *before = wb_alloc((history->versions.count + 1) * sizeof *before);
    if (err == 0)
        err = before ? 0 : WB_E_NOMEM;
    if (err == 0) {
        if (history->versions.count)
            memcpy(before, history->versions.items, history->versions.count * sizeof *before);
        rewind_ghosts(history, epoch);
        err = rebuild(history, &r, before);
    }
    if (err == 0)
        settle_versions(history, shown ? &latest : NULL, epoch);
    wb_free(before);
    wb_vec_release(&r.captures);
    return err;
}
