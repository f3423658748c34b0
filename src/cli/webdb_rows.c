/*
 * webdb_rows.c - writes rows of webdb. Each field is named once, in the function that writes the row. Depending on the
 * form, a cell becomes a field of JSON, a column, or a line of words. It never reads webdb.
 *
 * wb_rows_import() (src/ingest) reads the JSON and the columns back; docs/formats/graph.md describes them.
 */
#include "cli/webdb_rows.h"
#include "base/codec.h"
#include "base/date.h"
#include "base/json.h"
#include "cli/output.h"
#include "cli/rowpen.h"
#include "cycle/cycle.h"
#include "extract/extract.h"
#include "ingest/ingest.h"
#include "os/clock.h"

#include <inttypes.h>
#include <stdio.h>

#define FLUSH_BYTES (256u << 10)

/* ---- cells of several values -------------------------------------------------------------------- */

static void cell_flags(struct wb_rowpen *pen, unsigned flags)
{
    struct wb_buf words = WB_BUF_INIT;
    const char *word;
    unsigned flag;

    if (pen->mode == WB_ROWPEN_JSON) {
        wb_json_key(&pen->json, "flags");
        wb_json_array(&pen->json);
        for (size_t i = 0; (word = wb_rowwords_flag(i, &flag)); i++)
            if (flags & flag)
                wb_json_str(&pen->json, word);
        wb_json_array_end(&pen->json);
        return;
    }
    for (size_t i = 0; pen->err == 0 && (word = wb_rowwords_flag(i, &flag)); i++)
        if (flags & flag)
            pen->err = wb_buf_printf(&words, "%s%s", words.len ? "," : "", word);
    wb_rowpen_text(pen, "flags", wb_buf_slice(&words));
    wb_buf_release(&words);
}

static void write_fetch(struct wb_json *j, const struct wb_visitlog_fetch *fetch, const char *time)
{
    const char *word = wb_rowwords_outcome(fetch->outcome);

    wb_json_object(j);
    wb_json_field_str(j, "time", time);
    wb_json_field_str(j, "result", word ? word : "");
    wb_json_field_u64(j, "status", fetch->status);
    wb_json_object_end(j);
}

/* The last fetches, oldest first; in columns and words "time result status" for each. */
static void cell_fetches(struct wb_rowpen *pen, const struct wb_visitlog *history)
{
    struct wb_buf words = WB_BUF_INIT;
    char time[WB_DATE_TEXT_MAX];

    if (pen->mode == WB_ROWPEN_JSON) {
        wb_json_key(&pen->json, "fetches");
        wb_json_array(&pen->json);
    }
    for (size_t i = 0; pen->err == 0 && i < history->fetch_count && i < WB_VISITLOG_FETCHES; i++) {
        const struct wb_visitlog_fetch *fetch = &history->fetches[i];
        const char *word = wb_rowwords_outcome(fetch->outcome);
        wb_date_format(fetch->time_ms, time);
        if (pen->mode == WB_ROWPEN_JSON)
            write_fetch(&pen->json, fetch, time);
        else
            pen->err = wb_buf_printf(&words, "%s%s %s %u", words.len ? "; " : "", time, word ? word : "-",
                                     fetch->status);
    }
    if (pen->mode == WB_ROWPEN_JSON)
        wb_json_array_end(&pen->json);
    else
        wb_rowpen_text(pen, "fetches", wb_buf_slice(&words));
    wb_buf_release(&words);
}

/* ---- rows --------------------------------------------------------------------------------------- */

/* A page without a due time has been due since we know it. A page that must not be fetched is never due. */
static int64_t due_ms(const struct wb_webdb_page *page)
{
    if (page->flags & WB_PAGE_BARRED)
        return 0;
    return page->next_due_ms ? page->next_due_ms : page->first_seen_ms;
}

static void write_content(struct wb_rowpen *pen, const struct wb_webdb_page *page)
{
    wb_rowpen_hex64(pen, "simhash", page->has_content, page->simhash);
    wb_rowpen_hex64(pen, "title_hash", page->has_content, page->title_hash);
    wb_rowpen_u64(pen, "bytes", page->bytes);
    wb_rowpen_some(pen, "type", page->type);
    wb_rowpen_some(pen, "etag", page->etag);
    wb_rowpen_some(pen, "modified", page->modified);
    wb_rowpen_some(pen, "location", page->location);
}

static void write_lifetime(struct wb_rowpen *pen, const struct wb_webdb_page *page)
{
    wb_rowpen_u64(pen, "lifetime", page->lifetime);
    if (page->expires_ms)
        wb_rowpen_double(pen, "lifetime_left", (double)(page->expires_ms - wb_clock_wall_ms()) / WB_DAY_MS);
    else
        wb_rowpen_none(pen, "lifetime_left");
    wb_rowpen_time(pen, "expires", page->expires_ms);
    wb_rowpen_time(pen, "asked", page->asked_ms);
}

/* Not in columns: those are read back, and what the index knows is not webdb's. */
static void write_rank(struct wb_rowpen *pen, const struct wb_webdb_rows *rows)
{
    if (!rows->rank || rows->form == WB_WEBDB_ROWS_TSV)
        return;
    if (rows->rank->known)
        wb_rowpen_double(pen, "rank", rows->rank->rank);
    else
        wb_rowpen_none(pen, "rank");
}

static void write_page(struct wb_rowpen *pen, const struct wb_webdb_page *page, const struct wb_webdb_rows *rows,
                       const struct wb_webdb_site *site)
{
    char md5[2 * WB_MD5_BYTES + 1] = "";
    const char *outcome = wb_rowwords_outcome(page->outcome);

    if (page->has_content)
        wb_hex_encode(page->md5, sizeof page->md5, md5);
    wb_rowpen_text(pen, "url", page->url);
    wb_rowpen_some(pen, "md5", wb_slice_str(md5));
    if (page->status)
        wb_rowpen_u64(pen, "status", page->status);
    else
        wb_rowpen_none(pen, "status");
    wb_rowpen_time(pen, "first_seen", page->first_seen_ms);
    wb_rowpen_time(pen, "last_seen", page->last_seen_ms);
    wb_rowpen_time(pen, "last_changed", page->last_changed_ms);
    wb_rowpen_time(pen, "next_due", due_ms(page));
    wb_rowpen_double(pen, "score", page->score);
    write_rank(pen, rows);
    wb_rowpen_u64(pen, "inlinks", page->inlinks);
    wb_rowpen_u64(pen, "depth", page->depth);
    wb_rowpen_some(pen, "near", rows->near);
    cell_flags(pen, page->flags);
    wb_rowpen_some(pen, "result", outcome ? wb_slice_str(outcome) : WB_SLICE_EMPTY);
    wb_rowpen_time(pen, "last_tried", page->last_tried_ms);
    wb_rowpen_u64(pen, "failures", page->failures);
    wb_rowpen_u64(pen, "visits", page->history.visits);
    wb_rowpen_u64(pen, "changes", page->history.changes);
    wb_rowpen_double(pen, "change_rate", wb_changerate(&page->history, site));
    wb_rowpen_u64(pen, "signals", page->signals);
    wb_rowpen_time(pen, "hint", page->hint_ms);
    write_lifetime(pen, page);
    write_content(pen, page);
    wb_rowpen_text(pen, "surt", page->surt);
    cell_fetches(pen, &page->history);
}

/* Not in columns: those are read back, and the store's facts are not webdb's. */
static void write_past(struct wb_rowpen *pen, const struct wb_webdb_rows_past *past)
{
    wb_rowpen_u64(pen, "versions", past->versions);
    wb_rowpen_u64(pen, "captures", past->captures);
    wb_rowpen_time(pen, "latest_since", past->since_ms);
    wb_rowpen_time(pen, "gone_since", past->gone_ms);
}

static const char *tag_word(uint8_t tag)
{
    if (tag == WB_PAGELINK_TAG_SITEMAP)
        return "sitemap";
    return tag >= WB_EXTRACT_LINK_A && tag < WB_EXTRACT_LINK_END ? wb_extract_tag_name(tag) : "";
}

static void write_link(struct wb_rowpen *pen, const struct wb_webdb_link *link)
{
    char md5[2 * WB_MD5_BYTES + 1];

    wb_hex_encode(link->from_md5, sizeof link->from_md5, md5);
    wb_rowpen_text(pen, "from_md5", wb_slice(md5, sizeof md5 - 1));
    wb_rowpen_text(pen, "to", link->to);
    wb_rowpen_text(pen, "anchor", link->anchor);
    wb_rowpen_text(pen, "tag", wb_slice_str(tag_word(link->tag)));
    wb_rowpen_bool(pen, "nofollow", link->flags & WB_PAGELINK_NOFOLLOW);
}

static void write_site(struct wb_rowpen *pen, const struct wb_webdb_site *site)
{
    wb_rowpen_text(pen, "site", site->name);
    wb_rowpen_u64(pen, "pages", site->pages);
    wb_rowpen_u64(pen, "fetched", site->fetched);
    wb_rowpen_u64(pen, "visits", site->visits);
    wb_rowpen_u64(pen, "changes", site->changes);
    wb_rowpen_double(pen, "days", site->days);
}

static void write_count(struct wb_rowpen *pen, const struct wb_webdb_count *count)
{
    wb_rowpen_u64(pen, "pages", count->pages);
    wb_rowpen_u64(pen, "fetched", count->fetched);
    wb_rowpen_u64(pen, "links", count->links);
    wb_rowpen_u64(pen, "contents", count->contents);
    wb_rowpen_u64(pen, "sites", count->sites);
    wb_rowpen_u64(pen, "edition", count->edition);
    wb_rowpen_time(pen, "made", count->time_ms);
    wb_rowpen_u64(pen, "bytes", count->bytes);
    wb_rowpen_u64(pen, "link_bytes", count->link_bytes);
}

/* Writes the buffer to standard output once it is large. */
static int flush_full(struct wb_webdb_rows *rows)
{
    if (rows->out.len < FLUSH_BYTES)
        return 0;
    int err = wb_output_write(rows->out.ptr, rows->out.len);
    wb_buf_clear(&rows->out);
    return err;
}

/* Writes the cells of a row; rows->kind says what row points to. */
static void write_cells(struct wb_rowpen *pen, const struct wb_webdb_rows *rows, const void *row,
                        const struct wb_webdb_site *site)
{
    switch (rows->kind) {
    case WB_WEBDB_ROWS_PAGES:
        write_page(pen, row, rows, site);
        if (rows->past && rows->form != WB_WEBDB_ROWS_TSV)
            write_past(pen, rows->past);
        break;
    case WB_WEBDB_ROWS_LINKS:
        write_link(pen, row);
        break;
    case WB_WEBDB_ROWS_SITES:
        write_site(pen, row);
        break;
    case WB_WEBDB_ROWS_COUNTS:
        write_count(pen, row);
        break;
    }
}

/* The names of the columns come from writing an empty row with a pen that writes names. */
static int write_heading(struct wb_webdb_rows *rows)
{
    static const union {
        struct wb_webdb_page page;
        struct wb_webdb_link link;
        struct wb_webdb_site site;
        struct wb_webdb_count count;
    } nothing;
    struct wb_rowpen pen;

    if (rows->form != WB_WEBDB_ROWS_TSV || rows->headed)
        return 0;
    rows->headed = true;
    wb_rowpen_begin(&pen, WB_ROWPEN_HEADING, &rows->out);
    write_cells(&pen, rows, &nothing, NULL);
    return wb_rowpen_end(&pen);
}

static int write_row(struct wb_webdb_rows *rows, const void *row, const struct wb_webdb_site *site)
{
    static const enum wb_rowpen_mode modes[] = {
        [WB_WEBDB_ROWS_WORDS] = WB_ROWPEN_WORDS,
        [WB_WEBDB_ROWS_JSON] = WB_ROWPEN_JSON,
        [WB_WEBDB_ROWS_TSV] = WB_ROWPEN_TSV,
    };
    struct wb_rowpen pen;
    int err = write_heading(rows);

    if (err < 0)
        return err;
    wb_rowpen_begin(&pen, modes[rows->form], &rows->out);
    write_cells(&pen, rows, row, site);
    err = wb_rowpen_end(&pen);
    return err < 0 ? err : flush_full(rows);
}

/* ---- lines of words ----------------------------------------------------------------------------- */

/* A page in one line: what happened to it, then its URL. */
static int page_line(struct wb_webdb_rows *rows, const struct wb_webdb_page *page)
{
    const char *outcome = wb_rowwords_outcome(page->outcome);
    char seen[WB_DATE_TEXT_MAX] = "never";

    if (page->last_seen_ms)
        wb_date_format(page->last_seen_ms, seen);
    int err = wb_buf_printf(&rows->out, "%-9s %3u  %-24s %8" PRIu64 "  ",
                            page->flags & WB_PAGE_BARRED ? "barred" : outcome ? outcome : "known", page->status, seen,
                            page->inlinks);
    if (err == 0)
        err = wb_rowpen_clean(&rows->out, page->url, '?');
    return err < 0 ? err : wb_buf_append_char(&rows->out, '\n');
}

int wb_webdb_rows_page(struct wb_webdb_rows *rows, const struct wb_webdb_page *page, const struct wb_webdb_site *site)
{
    if (rows->form != WB_WEBDB_ROWS_WORDS || rows->whole)
        return write_row(rows, page, site);
    int err = page_line(rows, page);
    return err < 0 ? err : flush_full(rows);
}

static int link_line(struct wb_webdb_rows *rows, const struct wb_webdb_link *link)
{
    char md5[2 * WB_MD5_BYTES + 1];

    wb_hex_encode(link->from_md5, sizeof link->from_md5, md5);
    int err = wb_buf_append(&rows->out, md5, sizeof md5 - 1);
    if (err == 0)
        err = wb_buf_append_str(&rows->out, link->flags & WB_PAGELINK_NOFOLLOW ? " -x> " : " --> ");
    if (err == 0)
        err = wb_rowpen_clean(&rows->out, link->to, '?');
    if (err == 0 && link->anchor.len)
        err = wb_buf_append(&rows->out, "  ", 2);
    if (err == 0)
        err = wb_rowpen_clean(&rows->out, link->anchor, '?');
    return err < 0 ? err : wb_buf_append_char(&rows->out, '\n');
}

int wb_webdb_rows_link(struct wb_webdb_rows *rows, const struct wb_webdb_link *link)
{
    if (rows->form != WB_WEBDB_ROWS_WORDS)
        return write_row(rows, link, NULL);
    int err = link_line(rows, link);
    return err < 0 ? err : flush_full(rows);
}

int wb_webdb_rows_site(struct wb_webdb_rows *rows, const struct wb_webdb_site *site)
{
    if (rows->form != WB_WEBDB_ROWS_WORDS)
        return write_row(rows, site, NULL);
    int err = wb_buf_printf(&rows->out, "%8" PRIu64 " known %8" PRIu64 " fetched  ", site->pages, site->fetched);
    if (err == 0)
        err = wb_rowpen_clean(&rows->out, site->name, '?');
    if (err == 0)
        err = wb_buf_append_char(&rows->out, '\n');
    return err < 0 ? err : flush_full(rows);
}

int wb_webdb_rows_count(struct wb_webdb_rows *rows, const struct wb_webdb_count *count)
{
    return write_row(rows, count, NULL);
}

int wb_webdb_rows_end(struct wb_webdb_rows *rows)
{
    int err = write_heading(rows);

    if (err == 0)
        err = wb_output_write(rows->out.ptr, rows->out.len);
    wb_buf_clear(&rows->out);
    return err;
}

void wb_webdb_rows_release(struct wb_webdb_rows *rows)
{
    wb_buf_release(&rows->out);
}
