/*
 * sitesum.c - sums over the pages of a site, and the row that keeps them.
 *
 *   pages  fetched  visits  changes    varints
 *   days                               8 bytes, a double, little-endian
 *
 * A row is valid if and only if no more pages are fetched than there are, days is finite and not negative, and nothing
 * follows.
 */
#include "webdb/sitesum.h"
#include "base/check.h"
#include "base/error.h"
#include "base/fields.h"

#include <math.h>

void wb_sitesum_add(struct wb_webdb_site *sum, const struct wb_webdb_page *page)
{
    const struct wb_visitlog *history = &page->history;

    WB_CHECK(sum->fetched <= sum->pages);
    if (page->flags & WB_PAGE_TARGET)
        return;
    WB_CHECK(isfinite(page->history.unchanged_days)); /* the row of the page was valid */
    sum->pages++;
    sum->fetched += page->has_content && !(page->flags & WB_PAGE_LOADED);
    if (history->visits == 0)
        return;
    sum->visits += history->visits;
    sum->changes += history->changes;
    sum->days += history->unchanged_days;
    for (unsigned i = 0; i < WB_VISITLOG_BINS && history->changes; i++)
        if (history->changed[i])
            sum->days += history->changed[i] * wb_visitlog_bin_days(i);
}

int wb_sitesum_encode(const struct wb_webdb_site *sum, struct wb_buf *row_out)
{
    int err = wb_buf_reserve(row_out, 4 * WB_VARINT_MAX + 8);

    WB_CHECK(sum->fetched <= sum->pages);
    if (err < 0)
        return err;
    char *p = wb_fields_put(row_out->ptr + row_out->len, sum->pages);
    p = wb_fields_put(p, sum->fetched);
    p = wb_fields_put(p, sum->visits);
    p = wb_fields_put(p, sum->changes);
    p = wb_fields_put_double(p, sum->days);
    row_out->len = (size_t)(p - row_out->ptr);
    WB_CHECK(row_out->len <= row_out->cap);
    return 0;
}

int wb_sitesum_decode(struct wb_slice row, struct wb_webdb_site *sum_out)
{
    struct wb_fields r = wb_fields_of(row);

    WB_CHECK(row.ptr != NULL);
    *sum_out = (struct wb_webdb_site){.name = WB_SLICE_EMPTY};
    sum_out->pages = wb_fields_take(&r, UINT64_MAX);
    sum_out->fetched = wb_fields_take(&r, sum_out->pages);
    sum_out->visits = wb_fields_take(&r, UINT64_MAX);
    sum_out->changes = wb_fields_take(&r, UINT64_MAX);
    sum_out->days = wb_fields_take_double(&r);
    if (r.ok && r.at == r.end && isfinite(sum_out->days) && sum_out->days >= 0)
        return 0;
    *sum_out = (struct wb_webdb_site){.name = WB_SLICE_EMPTY};
    return wb_fail(WB_E_CORRUPT, "the row of a site is damaged");
}
