/*
 * asklog.c - keeps the log in an array of parts, so that growing never copies.
 *
 * It never stops the server: requests that do not fit are only counted.
 */
#include "sim/asklog.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/mem.h"

#define PART_ENTRIES (1u << 16)
#define PARTS (WB_ASKLOG_REQUESTS_MAX / PART_ENTRIES)
#define NO_TEXT UINT32_MAX

void wb_asklog_init(struct wb_asklog *log)
{
    *log = (struct wb_asklog){.text = WB_BUF_INIT};
}

void wb_asklog_release(struct wb_asklog *log)
{
    for (unsigned i = 0; log->parts && i < PARTS; i++)
        wb_free(log->parts[i]);
    wb_free(log->parts);
    wb_buf_release(&log->text);
    wb_asklog_init(log);
}

/* Appends a target to the text: its length in four bytes, then its bytes. Returns its offset, or NO_TEXT. */
static uint32_t keep_text(struct wb_asklog *log, struct wb_slice target)
{
    size_t at = log->text.len;
    char len[4];

    wb_put32(len, (uint32_t)target.len);
    if (at + target.len + sizeof len > WB_ASKLOG_TEXT_MAX || wb_buf_append(&log->text, len, sizeof len) < 0)
        return NO_TEXT;
    if (wb_buf_append_slice(&log->text, target) < 0) {
        log->text.len = at;
        return NO_TEXT;
    }
    return (uint32_t)at;
}

/* The place for the next entry, in a part that is allocated when its first entry comes; NULL if there is no room. */
static struct wb_asklog_entry *next_entry(struct wb_asklog *log)
{
    if (!log->parts)
        log->parts = wb_alloc_zero(PARTS, sizeof *log->parts);
    if (!log->parts || log->count >= WB_ASKLOG_REQUESTS_MAX)
        return NULL;
    struct wb_asklog_entry **part = &log->parts[log->count / PART_ENTRIES];
    if (!*part)
        *part = wb_alloc(PART_ENTRIES * sizeof **part);
    return *part ? &(*part)[log->count % PART_ENTRIES] : NULL;
}

void wb_asklog_add(struct wb_asklog *log, struct wb_asklog_entry entry, struct wb_slice target)
{
    struct wb_asklog_entry *place = next_entry(log);

    if (!place) {
        log->dropped++;
        return;
    }
    if (entry.flags & WB_ASKLOG_OTHER)
        entry.page = keep_text(log, target);
    *place = entry;
    log->count++;
}

const struct wb_asklog_entry *wb_asklog_get(const struct wb_asklog *log, uint64_t number)
{
    WB_CHECK(number < log->count);
    return &log->parts[number / PART_ENTRIES][number % PART_ENTRIES];
}

struct wb_slice wb_asklog_target(const struct wb_asklog *log, const struct wb_asklog_entry *entry)
{
    WB_CHECK(entry->flags & WB_ASKLOG_OTHER);
    if (entry->page == NO_TEXT)
        return WB_SLICE_LIT("/?");
    WB_CHECK(entry->page + 4u <= log->text.len);
    return wb_slice(log->text.ptr + entry->page + 4, wb_get32(log->text.ptr + entry->page));
}
