/*
 * history.c - adds captures to the past of a page. Pure computation (history.h has the picture); history_list.c changes
 * the lists, history_keep.c forgets what nobody keeps, and history_bytes.c turns all of it into bytes.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "catalog/history_list.h"

/* ---- times that cannot be --------------------------------------------------------------------------------- */

/* Those who see a version go on seeing the captures that it is about to lose. */
static int freeze_ahead(struct wb_history *history, const struct wb_history_capture *capture)
{
    int64_t now_ms = capture->rule->now_ms;
    size_t ignored;

    wb_history_check(history);
    for (size_t i = history->versions.count; i > history->ghosts; i--) {
        const struct wb_history_version *version = &history->versions.items[i - 1];
        if (!wb_store_time_is_ahead(wb_history_last_ms(history, version), now_ms))
            break;
        if (version->ceased != 0 && wb_store_time_is_ahead(history->times.items[version->first], now_ms))
            continue; /* it becomes a ghost as a whole */
        int frozen = wb_history_freeze(history, i - 1, capture, &ignored);
        if (frozen < 0)
            return frozen;
        i += (size_t)frozen;
    }
    return 0;
}

/*
 * A stored time that cannot be, because it is far ahead of the clock, gives way to one that
 * can. The latest version keeps one capture, just before the new one, so that it does not vanish.
 * Older versions that have no other captures become ghosts, in case a snapshot sees them. What was forgotten up to
 * such a time, or gone since then, must not lock out the new capture either.
 */
static int settle_ahead(struct wb_history *history, const struct wb_history_capture *capture)
{
    int64_t now_ms = capture->rule->now_ms;

    if (wb_store_time_is_ahead(capture->time_ms, now_ms))
        return 0;
    int err = freeze_ahead(history, capture);
    if (err < 0)
        return err;
    size_t begin = wb_history_first_time(history), end = history->times.count, keep = end;
    while (keep > begin && wb_store_time_is_ahead(history->times.items[keep - 1], now_ms))
        keep--;
    int64_t before = keep > begin ? history->times.items[keep - 1] : INT64_MIN;
    if (wb_store_time_is_ahead(history->floor_ms, now_ms)) {
        history->floor_ms = INT64_MIN;
        wb_vec_clear(&history->forgotten);
    }
    if (wb_store_time_is_ahead(history->gone_ms, now_ms))
        history->gone_ms = before > 1 ? before : 1;
    const struct wb_history_version *latest = wb_history_latest(history);
    /* What was cut short does not come after others of its time. */
    int64_t room = latest && wb_history_is_cut(latest->content) && before < INT64_MAX ? before + 1 : before;
    int64_t moved = before < capture->time_ms - 1 ? capture->time_ms - 1 : room;
    for (size_t i = history->versions.count; i > history->ghosts && keep < end;) {
        struct wb_history_version *version = &history->versions.items[i - 1];
        size_t from = version->first < keep ? keep : version->first, to = version->first + version->count;
        if (from >= to)
            break;
        if (version->ceased != 0 && from == version->first) {
            wb_history_make_ghost(history, i - 1); /* the one before it has moved to its place */
            keep += to - from;
            continue;
        }
        if (version->ceased == 0 && from == version->first) {
            history->epochs.items[from] = capture->epoch;
            history->times.items[from++] = moved;
        }
        wb_history_remove_times(history, i - 1, from, to);
        i--;
    }
    return 0;
}

/* ---- what is known already -------------------------------------------------------------------------------- */

static uint64_t content_of(struct wb_history *history, const struct wb_history_capture *capture)
{
    const struct wb_history_version *latest = wb_history_latest(history);

    return capture->content ? capture->content : latest ? latest->content : 0;
}

/* Whether a capture of this time has the content. */
static bool is_known(struct wb_history *history, const struct wb_history_capture *capture)
{
    uint64_t content = content_of(history, capture);
    size_t first, count = wb_history_tie(history, capture->time_ms, &first);

    WB_CHECK(first + count <= history->times.count);
    for (size_t i = first; i < first + count; i++)
        if (wb_history_owner(history, i)->content == content)
            return true;
    return false;
}

/* Whether the capture changes nothing: it is too old, or known. Decided before anything gives way to it. */
static bool is_refused(struct wb_history *history, const struct wb_history_capture *capture,
                       enum wb_store_outcome *outcome_out)
{
    int64_t now_ms = capture->rule->now_ms, floor_ms = history->floor_ms;
    bool plausible = !wb_store_time_is_ahead(capture->time_ms, now_ms);
    uint64_t content = content_of(history, capture);
    size_t first;

    *outcome_out = WB_STORE_PUT_OLDER;
    if (capture->time_ms <= floor_ms && !(plausible && wb_store_time_is_ahead(floor_ms, now_ms))) {
        /* At the time of the floor itself, it is known what was forgotten of that which could be added. */
        bool more =
            wb_history_tie(history, floor_ms, &first) > 0 ||
            (history->ghosts < history->versions.count && history->versions.items[history->ghosts].content == content);
        /* What was cut short may be the beginning of something that was forgotten. */
        if (capture->time_ms < floor_ms || !more || (wb_history_is_cut(content) && !is_known(history, capture)))
            return true;
        *outcome_out = WB_STORE_PUT_KNOWN;
        if (wb_history_was_forgotten(history, content))
            return true;
    }
    *outcome_out = WB_STORE_PUT_KNOWN;
    return is_known(history, capture);
}

/* ---- adding ----------------------------------------------------------------------------------------------- */

/* An addition in progress: where the capture belongs. */
struct placing {
    struct wb_history *history;
    const struct wb_history_capture *capture;
    size_t at;            /* index of its time */
    bool has_before, has_after;
    size_t before, after; /* the versions of its neighbours in time */
};

/* After the other captures of its time. But what was cut short comes before all that is whole. */
static size_t find_place(const struct placing *p, uint64_t content)
{
    size_t first, count = wb_history_tie(p->history, p->capture->time_ms, &first), at = first;

    WB_CHECK(first + count <= p->history->times.count);
    if (!wb_history_is_cut(content))
        return first + count;
    while (at < first + count && wb_history_is_cut(wb_history_owner(p->history, at)->content))
        at++;
    return at;
}

static bool has_same_content(const struct placing *p, size_t version)
{
    WB_CHECK(version < p->history->versions.count);
    return p->history->versions.items[version].content == content_of(p->history, p->capture);
}

/* The capture is one more of a version. */
static void join_version(const struct placing *p, size_t version)
{
    wb_history_insert_time(p->history, p->at, version, p->capture->time_ms, p->capture->epoch);
}

/* Begins a version with this capture, as number `index`. */
static void begin_version(const struct placing *p, size_t index, bool latest)
{
    struct wb_history_version version = *p->capture->bytes;

    WB_CHECK(p->capture->epoch > 0);
    WB_CHECK(index >= p->history->ghosts);
    WB_CHECK(version.place.segment > 0 || !latest);
    version.content = p->capture->content ? p->capture->content : version.content;
    version.arrived = p->capture->epoch;
    version.ceased = latest ? 0 : p->capture->epoch;
    version.ghost = version.replaced = false;
    version.first = p->at;
    version.count = 0;
    wb_history_insert_version(p->history, index, &version);
    join_version(p, index);
}

/* Cuts a version in two before the capture; the newer part stays what it was. */
static int split(struct placing *p)
{
    size_t copied;
    int frozen = wb_history_freeze(p->history, p->before, p->capture, &copied);

    WB_CHECK(p->before == p->after);
    int err = frozen < 0 ? frozen : wb_history_reserve(p->history, 2, 1); /* again: the ghost has taken room */
    if (err < 0)
        return err;
    p->before += (size_t)frozen;
    p->after += (size_t)frozen;
    p->at += copied;
    struct wb_history_version older = p->history->versions.items[p->before];
    WB_CHECK(p->at > older.first);
    older.count = p->at - older.first;
    older.arrived = older.ceased = p->capture->epoch;
    wb_history_insert_version(p->history, p->before, &older);
    struct wb_history_version *newer = &p->history->versions.items[p->before + 1];
    newer->first = p->at;
    newer->count -= older.count;
    WB_CHECK(newer->count > 0);
    return 0;
}

/* The capture is older than another one, or the page was gone by then. */
static int add_to_past(struct placing *p, enum wb_store_outcome *outcome_out)
{
    int err = 0;

    WB_CHECK(p->has_before || p->has_after);
    WB_CHECK(!p->has_before || p->before >= p->history->ghosts);
    *outcome_out = WB_STORE_PUT_CAPTURE;
    if (p->has_before && has_same_content(p, p->before)) {
        join_version(p, p->before);
        return 0;
    }
    if (p->has_after && has_same_content(p, p->after)) {
        join_version(p, p->after);
        return 0;
    }
    if (p->has_before && p->has_after && p->before == p->after)
        err = split(p);
    if (err == 0)
        begin_version(p, p->has_before ? p->before + 1 : p->history->ghosts, false);
    *outcome_out = WB_STORE_PUT_PAST;
    return err;
}

/* The capture is the newest one. */
static enum wb_store_outcome add_to_present(const struct placing *p)
{
    struct wb_history_version *latest = wb_history_latest(p->history);

    WB_CHECK(!p->has_after);
    WB_CHECK(!latest || p->has_before);
    if (latest && has_same_content(p, p->before)) {
        join_version(p, p->before);
        return WB_STORE_PUT_CAPTURE;
    }
    if (p->capture->bytes->place.segment == 0)
        return WB_STORE_PUT_OLDER;
    if (latest)
        latest->ceased = p->capture->epoch;
    p->history->gone_ms = 0;
    begin_version(p, p->history->versions.count, true);
    return latest ? WB_STORE_PUT_VERSION : WB_STORE_PUT_NEW;
}

/* ---- replacing -------------------------------------------------------------------------------------------- */

/* Versions `index - 1` and `index` have become neighbours: if they have the same content, they are one. */
static int join_neighbours(struct wb_history *history, size_t index, const struct wb_history_capture *capture)
{
    struct wb_history_version *items = history->versions.items;
    size_t ignored;

    WB_CHECK(index >= history->ghosts);
    if (index == history->ghosts || index == history->versions.count ||
        items[index - 1].content != items[index].content || items[index - 1].place.segment == 0 ||
        items[index].place.segment == 0 ||
        history->times.items[items[index].first] == history->times.items[items[index].first - 1])
        return 0;
    for (size_t i = 0; i < 2; i++) {
        int frozen = wb_history_freeze(history, index - 1 + i, capture, &ignored);
        if (frozen < 0)
            return frozen;
        index += (size_t)frozen;
    }
    items = history->versions.items;
    items[index].first = items[index - 1].first;
    items[index].count += items[index - 1].count;
    memmove(items + index - 1, items + index, (history->versions.count - index) * sizeof *items);
    history->versions.count--;
    wb_history_check(history);
    return 0;
}

/* Takes away the capture that the new one replaces. It is nobody's latest: the new one comes after it. */
static int take_replaced(struct wb_history *history, const struct wb_history_capture *capture)
{
    size_t at, count = wb_history_tie(history, capture->time_ms, &at), end = at + count, copied;

    while (at < end && wb_history_owner(history, at)->content != capture->replaces)
        at++;
    if (at == end) /* it has gone since the new one was compared with it */
        return 0;
    size_t index = wb_history_owner_of(history, at);
    const struct wb_history_version *version = &history->versions.items[index];
    if (version->count > 1) {
        int frozen = wb_history_freeze(history, index, capture, &copied);
        if (frozen >= 0)
            wb_history_remove_times(history, index + (size_t)frozen, at + copied, at + copied + 1);
        return frozen < 0 ? frozen : 0;
    }
    if (version->ceased == 0)
        return 0;
    if (wb_history_is_held(version, capture->rule)) {
        wb_history_make_ghost(history, index);
        history->versions.items[history->ghosts - 1].replaced = true;
        index++;
    } else {
        wb_history_remove_version(history, index);
    }
    return join_neighbours(history, index, capture);
}

int wb_history_add(struct wb_history *history, const struct wb_history_capture *capture,
                   enum wb_store_outcome *outcome_out)
{
    struct placing p = {.history = history, .capture = capture};

    wb_history_check(history);
    WB_CHECK(capture->bytes != NULL);
    WB_CHECK(capture->epoch > 0);
    *outcome_out = WB_STORE_PUT_OLDER;
    if (is_refused(history, capture, outcome_out))
        return 0;
    int err = settle_ahead(history, capture);
    if (err == 0)
        err = wb_history_reserve(history, 2, 1);
    if (err < 0)
        return err;
    *outcome_out = WB_STORE_PUT_CAPTURE;
    if (is_known(history, capture)) /* the latest version was moved to just this time */
        return 0;
    p.at = find_place(&p, content_of(history, capture));
    p.has_after = p.at < history->times.count;
    p.has_before = p.at > wb_history_first_time(history);
    p.after = p.has_after ? wb_history_owner_of(history, p.at) : 0;
    p.before = p.has_before ? wb_history_owner_of(history, p.at - 1) : 0;
    bool gone = p.has_before && !wb_history_latest(history);
    if (p.has_after || (gone && capture->time_ms <= history->gone_ms))
        err = add_to_past(&p, outcome_out);
    else
        *outcome_out = add_to_present(&p);
    if (err == 0 && capture->replaces && *outcome_out <= WB_STORE_PUT_PAST)
        err = take_replaced(history, capture);
    wb_history_check(history);
    return err;
}

void wb_history_end(struct wb_history *history, int64_t gone_ms, uint64_t epoch)
{
    struct wb_history_version *latest = wb_history_latest(history);

    WB_CHECK(latest != NULL);
    WB_CHECK(epoch >= latest->arrived);
    latest->ceased = epoch;
    int64_t last = wb_history_last_ms(history, latest);
    history->gone_ms = gone_ms > last ? gone_ms : last;
    if (history->gone_ms < 1)
        history->gone_ms = 1;
    WB_CHECK(!wb_history_latest(history));
}
