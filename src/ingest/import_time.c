/* import_time.c - finds a time for records without a usable date. What it finds depends on the archive alone. */
#include "ingest/import_time.h"

#include "base/date.h"
#include "os/clock.h"

#include <stdio.h>

/* Whether a page can have been fetched then. */
static bool is_likely(int64_t time_ms)
{
    return time_ms > WB_IMPORT_TIME_UNKNOWN && time_ms <= wb_clock_wall_ms();
}

void wb_import_time_note(struct wb_import_time *time, const struct wb_warc_record *record)
{
    if (record->has_time && is_likely(record->time_ms))
        time->near_ms = record->time_ms;
}

/* The best time there is, and where it comes from. */
static const char *find(const struct wb_import_time *time, const struct wb_page *page, int64_t *time_out)
{
    struct wb_slice value;

    if (page->head.len && wb_http_header(page->head, "Date", &value) && wb_http_date_parse(value, time_out) &&
        is_likely(*time_out))
        return "of its HTTP header";
    *time_out = time->near_ms ? time->near_ms : WB_IMPORT_TIME_UNKNOWN;
    return time->near_ms ? "of a record before it" : "for pages of unknown age";
}

bool wb_import_time_set(const struct wb_import_time *time, const struct wb_warc_record *record, struct wb_page *page,
                        char message_out[WB_IMPORT_SOURCE_MESSAGE_MAX])
{
    char used[WB_DATE_TEXT_MAX];

    page->time_ms = record->time_ms;
    if (record->has_time)
        return wb_import_source_fix_time(page, message_out);
    const char *source = find(time, page, &page->time_ms);
    wb_date_format(page->time_ms, used);
    snprintf(message_out, WB_IMPORT_SOURCE_MESSAGE_MAX,
             "the record has no valid date: the page was given the time %s, %s", used, source);
    return true;
}
