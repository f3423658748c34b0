/*
 * store_words.c - what people write about a store: history policies, names of snapshots, and
 * which snapshot they mean. The same for all organisations; it never touches a file.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- the history policy ---------------------------------------------------------------- */

/* The longest duration, so that times and durations can be added without overflow: a thousand years. */
#define DURATION_MAX_MS ((uint64_t)1000 * 365 * WB_DAY_MS)

static const struct {
    char letter;
    uint64_t ms;
} units[] = {
    {'y', (uint64_t)365 * WB_DAY_MS}, {'w', (uint64_t)7 * WB_DAY_MS}, {'d', WB_DAY_MS},
    {'h', 3600 * 1000},               {'m', 60 * 1000},              {'s', 1000},
};

static int no_policy(struct wb_slice text)
{
    return wb_fail(WB_E_INVALID,
                   "'%.*s' is not a history policy: newest, all, a number of versions, or a duration such as 30d",
                   (int)(text.len < 80 ? text.len : 80), text.ptr);
}

int wb_store_history_parse(struct wb_slice text, struct wb_store_history *history_out)
{
    uint64_t value = 0;
    size_t digits = 0;

    WB_CHECK(text.ptr || text.len == 0);
    *history_out = (struct wb_store_history){WB_STORE_KEEP_NEWEST, 0};
    if (wb_slice_equal(text, WB_SLICE_LIT("newest")))
        return 0;
    if (wb_slice_equal(text, WB_SLICE_LIT("all"))) {
        history_out->keep = WB_STORE_KEEP_ALL;
        return 0;
    }
    for (; digits < text.len && digits < 18 && text.ptr[digits] >= '0' && text.ptr[digits] <= '9'; digits++)
        value = value * 10 + (uint64_t)(text.ptr[digits] - '0');
    if (digits == 0 || value == 0 || text.len > digits + 1)
        return no_policy(text);
    if (text.len == digits) {
        *history_out = (struct wb_store_history){WB_STORE_KEEP_COUNT, value};
        return 0;
    }
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++) {
        if (text.ptr[digits] != units[i].letter)
            continue;
        if (value > DURATION_MAX_MS / units[i].ms)
            return no_policy(text);
        *history_out = (struct wb_store_history){WB_STORE_KEEP_DURATION, value * units[i].ms};
        WB_CHECK(history_out->value > 0);
        WB_CHECK(history_out->value <= DURATION_MAX_MS);
        return 0;
    }
    return no_policy(text);
}

void wb_store_history_format(const struct wb_store_history *history, char text_out[WB_STORE_HISTORY_TEXT_MAX])
{
    size_t unit = 0;

    WB_CHECK(history->keep <= WB_STORE_KEEP_DURATION);
    switch (history->keep) {
    case WB_STORE_KEEP_NEWEST:
        snprintf(text_out, WB_STORE_HISTORY_TEXT_MAX, "newest");
        return;
    case WB_STORE_KEEP_ALL:
        snprintf(text_out, WB_STORE_HISTORY_TEXT_MAX, "all");
        return;
    case WB_STORE_KEEP_COUNT:
        snprintf(text_out, WB_STORE_HISTORY_TEXT_MAX, "%" PRIu64, history->value);
        return;
    case WB_STORE_KEEP_DURATION:
        while (history->value % units[unit].ms && unit + 1 < sizeof units / sizeof units[0])
            unit++;
        WB_CHECK(unit < sizeof units / sizeof units[0]);
        snprintf(text_out, WB_STORE_HISTORY_TEXT_MAX, "%" PRIu64 "%c", history->value / units[unit].ms,
                 units[unit].letter);
        return;
    }
}

/* ---- names ------------------------------------------------------------------------------- */

static bool is_name_char(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' || c == '_' ||
           c == '-';
}

static bool is_number(struct wb_slice text)
{
    WB_CHECK(text.ptr || text.len == 0);
    for (size_t i = 0; i < text.len; i++)
        if (text.ptr[i] < '0' || text.ptr[i] > '9')
            return false;
    return text.len > 0;
}

int wb_store_name_check(struct wb_slice name)
{
    WB_CHECK(name.ptr || name.len == 0);
    if (name.len == 0)
        return wb_fail(WB_E_INVALID, "the name of a snapshot is empty");
    if (name.len > WB_STORE_NAME_MAX)
        return wb_fail(WB_E_INVALID, "the name of a snapshot has more than %d characters", WB_STORE_NAME_MAX);
    for (size_t i = 0; i < name.len; i++)
        if (!is_name_char(name.ptr[i]))
            return wb_fail(WB_E_INVALID,
                           "the name of a snapshot contains something other than letters, digits, '.', '_' and '-'");
    if (is_number(name))
        return wb_fail(WB_E_INVALID, "'%.*s' is not a name: a snapshot's name must not be a number",
                       WB_SLICE_ARG(name));
    return 0;
}

/* ---- which snapshot ------------------------------------------------------------------------ */

void wb_store_snapshot_release(struct wb_store_snapshot *snapshot)
{
    WB_CHECK(snapshot->holders || snapshot->holder_count == 0);
    wb_free(snapshot->holders);
    *snapshot = (struct wb_store_snapshot){0};
}

void wb_store_timeline_release(struct wb_store_timeline *timeline)
{
    WB_CHECK(timeline->versions || timeline->count == 0);
    WB_CHECK(timeline->times || timeline->time_count == 0);
    wb_free(timeline->versions);
    wb_free(timeline->times);
    *timeline = (struct wb_store_timeline){0};
}

struct snapshot_search {
    struct wb_slice which;
    uint64_t number; /* 0 if it is a name */
    struct wb_store_snapshot *found;
};

/* Copies the snapshot if it is the one that is meant; 1 ends the walk. */
static int match_snapshot(void *context, const struct wb_store_snapshot *snapshot)
{
    struct snapshot_search *search = context;

    WB_CHECK(search->found->number == 0);
    WB_CHECK(search->number || search->which.len > 0);
    WB_CHECK(snapshot->holder_count > 0);
    WB_CHECK(snapshot->number > 0);
    if (search->number ? search->number != snapshot->number
                       : !wb_slice_equal(search->which, wb_slice_str(snapshot->name)))
        return 0;
    struct wb_store_holder *holders = wb_alloc((snapshot->holder_count + 1) * sizeof *holders);
    if (!holders)
        return WB_E_NOMEM;
    memcpy(holders, snapshot->holders, snapshot->holder_count * sizeof *holders);
    *search->found = *snapshot;
    search->found->holders = holders;
    return 1;
}

int wb_store_snapshot_find(struct wb_store *store, struct wb_slice which, struct wb_store_snapshot *snapshot_out)
{
    struct snapshot_search search = {which, 0, snapshot_out};

    *snapshot_out = (struct wb_store_snapshot){0};
    bool number = is_number(which);
    for (size_t i = 0; number && i < which.len && search.number <= UINT32_MAX; i++)
        search.number = search.number * 10 + (uint64_t)(which.ptr[i] - '0');
    bool possible = number ? search.number > 0 : which.len > 0; /* an empty name would be that of all without one */
    int err = possible ? wb_store_snapshot_each(store, match_snapshot, &search) : 0;
    WB_CHECK((err > 0) == (snapshot_out->number > 0));
    if (err != 0)
        return err < 0 ? err : 0;
    return wb_fail(WB_E_NOTFOUND, "there is no snapshot %.*s", (int)(which.len < 80 ? which.len : 80), which.ptr);
}
