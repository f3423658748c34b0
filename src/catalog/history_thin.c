/*
 * history_thin.c - gives up captures in the middle of a version.
 *
 * A page that is fetched every hour and never changes gets 8,760 captures of one version in a year: more bytes than
 * its links, and all that they say is that it was the same again. Who has asked for the past, with any other history
 * policy than newest, gets them all. With newest, the first one stays, which says since when the page has been like
 * this, and the newest ones, which say how often it was seen lately. So what the catalog has of a page does not
 * depend on how often somebody came by. A capture that was given up and comes again joins the same version and is
 * given up again. What a held epoch shows stays, because it must go on saying how often the page had been seen.
 */
#include "base/check.h"
#include "catalog/history.h"

/* The last held epoch that shows the version; 0: none does. */
static uint64_t last_shown(const struct wb_history_version *version, const struct wb_history_rule *rule)
{
    size_t i = rule->held_count;

    WB_CHECK(rule->held_count == 0 || rule->held);
    while (i > 0 && version->ceased != 0 && rule->held[i - 1] >= version->ceased)
        i--;
    return i > 0 && rule->held[i - 1] >= version->arrived ? rule->held[i - 1] : 0;
}

void wb_history_thin(struct wb_history *history, const struct wb_history_rule *rule)
{
    int64_t *times = history->times.items;
    uint64_t *epochs = history->epochs.items;
    size_t to = 0;

    WB_CHECK(rule->policy.keep <= WB_STORE_KEEP_DURATION);
    WB_CHECK(history->epochs.count == history->times.count);
    if (rule->policy.keep != WB_STORE_KEEP_NEWEST)
        return;
    for (size_t i = 0; i < history->versions.count; i++) {
        struct wb_history_version *version = &history->versions.items[i];
        size_t from = version->first, count = version->count;
        uint64_t shown = count > WB_HISTORY_CAPTURES_MAX ? last_shown(version, rule) : 0;
        WB_CHECK(to <= from);
        WB_CHECK(count > 0);
        version->first = to;
        for (size_t k = 0; k < count; k++)
            if (k == 0 || count - k < WB_HISTORY_CAPTURES_MAX || epochs[from + k] <= shown) {
                times[to] = times[from + k];
                epochs[to++] = epochs[from + k];
            }
        version->count = to - version->first;
    }
    history->times.count = history->epochs.count = to;
}
