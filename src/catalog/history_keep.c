/*
 * history_keep.c - what of the past of a page is kept, and what is seen of it: forgetting versions that nobody keeps,
 * and looking at the page as of a time or an epoch.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "catalog/history_list.h"

#include <stdlib.h>

/* ---- forgetting ------------------------------------------------------------------------------------------- */

/* The number of held epochs before this one. */
static size_t held_before(const struct wb_history_rule *rule, uint64_t epoch)
{
    size_t low = 0, high = rule->held_count;

    WB_CHECK(rule->held_count == 0 || rule->held);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (rule->held[middle] < epoch)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

bool wb_history_is_held(const struct wb_history_version *version, const struct wb_history_rule *rule)
{
    WB_CHECK(version->arrived > 0);
    WB_CHECK(version->ceased == 0 || version->ceased >= version->arrived);
    size_t first = held_before(rule, version->arrived);
    return first < rule->held_count && (version->ceased == 0 || rule->held[first] < version->ceased);
}

/* The number of the first version that the policy keeps. Policies keep the newest ones, so those before it go. */
static size_t first_kept(const struct wb_history *history, const struct wb_history_rule *rule)
{
    size_t count = history->versions.count, i = count;

    WB_CHECK(rule->policy.keep <= WB_STORE_KEEP_DURATION);
    switch (rule->policy.keep) {
    case WB_STORE_KEEP_NEWEST:
        break;
    case WB_STORE_KEEP_ALL:
        i = history->ghosts;
        break;
    case WB_STORE_KEEP_COUNT:
        i = count - history->ghosts > rule->policy.value ? count - (size_t)rule->policy.value : history->ghosts;
        break;
    case WB_STORE_KEEP_DURATION:
        for (; i > history->ghosts; i--) {
            const struct wb_history_version *next = i < count ? &history->versions.items[i] : NULL;
            int64_t end_ms = next ? history->times.items[next->first] : history->gone_ms;
            bool latest = !next && history->versions.items[i - 1].ceased == 0;
            if (!latest && end_ms < rule->now_ms - (int64_t)rule->policy.value)
                break;
        }
        break;
    }
    if (i == count && count > history->ghosts && history->versions.items[count - 1].ceased == 0)
        i = count - 1; /* the latest is always kept */
    WB_CHECK(i >= history->ghosts);
    WB_CHECK(i <= count);
    return i;
}

/* A version of the timeline is forgotten. If there were more contents than can be remembered, the first ones are. */
static void raise_floor(struct wb_history *history, const struct wb_history_version *version)
{
    int64_t last_ms = wb_history_last_ms(history, version);

    WB_CHECK(!version->ghost);
    if (last_ms < history->floor_ms)
        return;
    if (last_ms > history->floor_ms)
        wb_vec_clear(&history->forgotten);
    history->floor_ms = last_ms;
    if (history->forgotten.count < WB_HISTORY_FORGOTTEN_MAX && history->forgotten.count < history->forgotten.cap &&
        !wb_history_was_forgotten(history, version->content))
        history->forgotten.items[history->forgotten.count++] = version->content;
}

/*
 * As far as held epochs can tell, a capture arrived together with its version, or just after a held epoch. So what
 * nobody can tell apart becomes equal, and takes no bytes.
 */
static void settle_epochs(struct wb_history *history, const struct wb_history_rule *rule)
{
    wb_history_check(history);
    for (size_t i = 0; i < history->versions.count; i++) {
        const struct wb_history_version *version = &history->versions.items[i];
        size_t arrived = held_before(rule, version->arrived);
        for (size_t k = version->first; k < version->first + version->count; k++) {
            size_t before = held_before(rule, history->epochs.items[k]);
            if (before == arrived)
                history->epochs.items[k] = version->arrived;
            else
                history->epochs.items[k] = before ? rule->held[before - 1] + 1 : 1;
        }
    }
}

/* What was forgotten at the time of the floor is remembered only as long as something can be added there. */
static void settle_floor(struct wb_history *history)
{
    size_t begin = wb_history_first_time(history);

    if (begin == history->times.count) {
        history->floor_ms = INT64_MIN;
        history->gone_ms = 0;
        wb_vec_clear(&history->forgotten);
        return;
    }
    uint64_t oldest = history->versions.items[history->ghosts].content;
    if (history->times.items[begin] > history->floor_ms && !wb_history_was_forgotten(history, oldest))
        wb_vec_clear(&history->forgotten);
}

void wb_history_trim(struct wb_history *history, const struct wb_history_rule *rule)
{
    size_t kept = first_kept(history, rule);

    wb_history_check(history);
    for (size_t i = 0; i < history->versions.count;) {
        struct wb_history_version *version = &history->versions.items[i];
        bool hollow = version->place.segment == 0, forgotten = i < kept;
        if (forgotten && !version->ghost)
            raise_floor(history, version);
        if (!hollow && (!forgotten || wb_history_is_held(version, rule))) {
            if (forgotten && !version->ghost) {
                version->ghost = true;
                history->ghosts++;
            }
            i++;
            continue;
        }
        WB_CHECK(version->ceased != 0);
        wb_history_remove_version(history, i);
        kept -= forgotten;
    }
    settle_floor(history);
    wb_history_thin(history, rule);
    settle_epochs(history, rule);
}

/* ---- looking ---------------------------------------------------------------------------------------------- */

const struct wb_history_version *wb_history_at(const struct wb_history *history, int64_t time_ms)
{
    const struct wb_history_version *found = NULL, *oldest = NULL;
    int64_t best = 0;

    for (size_t i = 0; i < history->versions.count; i++) {
        const struct wb_history_version *version = &history->versions.items[i];
        const int64_t *times = history->times.items + version->first;
        WB_CHECK(version->count > 0);
        if (wb_history_is_aside(version))
            continue;
        if (!oldest || times[0] < history->times.items[oldest->first])
            oldest = version;
        size_t low = 0, high = version->count; /* the number of its captures at or before time_ms */
        while (low < high) {
            size_t middle = low + (high - low) / 2;
            if (times[middle] <= time_ms)
                low = middle + 1;
            else
                high = middle;
        }
        /* Of equal times, the last one counts; ghosts are not in the order of their arrival. */
        bool later =
            low > 0 && found && times[low - 1] == best && (!version->ghost || version->arrived > found->arrived);
        if (low > 0 && (!found || times[low - 1] > best || later)) {
            found = version;
            best = times[low - 1];
        }
    }
    return found ? found : oldest;
}

const struct wb_history_version *wb_history_in(const struct wb_history *history, uint64_t epoch)
{
    wb_history_check(history);
    WB_CHECK(epoch > 0);
    for (size_t i = history->versions.count; i > 0; i--) {
        const struct wb_history_version *version = &history->versions.items[i - 1];
        if (version->arrived <= epoch && (version->ceased == 0 || version->ceased > epoch))
            return version;
    }
    return NULL;
}

int64_t wb_history_last_in(const struct wb_history *history, const struct wb_history_version *version, uint64_t epoch)
{
    WB_CHECK(version->count > 0);
    WB_CHECK(version->first + version->count <= history->times.count);
    for (size_t i = version->first + version->count; i > version->first; i--)
        if (history->epochs.items[i - 1] <= epoch)
            return history->times.items[i - 1];
    return wb_history_last_ms(history, version);
}
