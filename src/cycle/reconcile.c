/*
 * reconcile.c - compares webdb with the store, and puts right what differs.
 *
 * The pages that arrived since the last edition are sorted by SURT, which is the order in which the merge returns the
 * pages that it touches. So a single walk through both compares them, in bounded memory; hardly any page has to be
 * looked up. Only a page whose latest version is not what webdb describes is read, and only if webdb is the one behind.
 *
 * A verdict may be wrong for a moment, because others write at the same time. The next update puts it right: what they
 * commit arrives in an epoch that no edition has seen yet.
 */
#include "cycle/reconcile.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "cycle/update.h"
#include "os/clock.h"
#include "os/stop.h"

#include <stdio.h>
#include <time.h>

enum {
    MEMORY_BYTES = 64 << 20, /* for sorting, if nobody asks for something else */
    VALUE_BYTES = WB_PAGEID_BYTES + 8 + WB_MD5_BYTES,
    PROGRESS_PAGES = 4096,
    UNSTORED_BYTES = 16 << 20, /* URLs of unstored pages that are remembered; the others wait for the next update */
    CONFIRM_MS = 6000,         /* longer than a crawler waits with its commits */
    NAP_MS = 100,
    READ_PAGES = 1024, /* that are read together */
    DAMAGES_SHOWN = 20, /* one bit can damage a lot */
};

/* What the sorter has about a stored page. */
struct stored_page {
    struct wb_pageid id;
    int64_t time_ms;
    const uint8_t *md5;
};

/* ---- the store's side ---------------------------------------------------------------------------------------- */

static bool is_web(struct wb_slice url)
{
    return wb_slice_starts(url, WB_SLICE_LIT("http:")) || wb_slice_starts(url, WB_SLICE_LIT("https:"));
}

static int add_stored(struct wb_reconcile *r, const struct wb_page *page)
{
    char value[VALUE_BYTES];

    /* webdb has no content of other answers, and nothing at all of files. */
    if (page->status / 100 != 2 || !is_web(page->url))
        return 0;
    int err = wb_surt_of_key(page->key, &r->surt);
    if (err < 0)
        return err;
    wb_pageid_put(page->id, value);
    wb_put64(value + WB_PAGEID_BYTES, (uint64_t)page->time_ms);
    memcpy(value + WB_PAGEID_BYTES + 8, page->md5, WB_MD5_BYTES);
    return wb_sorter_add(r->stored, wb_buf_slice(&r->surt), wb_slice(value, sizeof value));
}

static int go_on(const struct wb_reconcile *r, uint64_t done, uint64_t total)
{
    if (done % PROGRESS_PAGES)
        return 0;
    if (wb_stop_requested() ||
        (r->sink->progress && !r->sink->progress(r->sink->context, "looking through the store", done, total)))
        return wb_fail(WB_E_STOPPED, "stopped; the web database is as it was");
    return 0;
}

/*
 * In a batch design, what was crawled may still wait on the update nodes, which only a writer sees. It is stored all
 * the same. Scans show the read nodes in any case; what comes there with a transfer is compared by a later update.
 */
static int open_store(struct wb_reconcile *r, struct wb_store_stat *stat_out)
{
    WB_CHECK(!r->store);
    int err = wb_store_open(r->options->dir, WB_STORE_READ, &r->store);

    if (err == 0)
        err = wb_store_stat(r->store, stat_out);
    if (err < 0 || !stat_out->design.batch)
        return err;
    wb_store_close(r->store);
    r->store = NULL;
    return wb_store_open(r->options->dir, WB_STORE_WRITE, &r->store);
}

/*
 * A transfer can wait for streams for hours, and a takedown ends with an update: so this waits for neither. Pages that
 * a transfer brings after this moment are those of the next update.
 *
 * Damage costs the damaged part. If a node is down, its pages are looked at by the first update after its return: until
 * then, no edition says that it has seen them.
 */
static int read_stored(struct wb_reconcile *r, uint64_t since, uint64_t pages)
{
    struct wb_store_scan_options options = {.since = since, .facts = true, .anytime = true};
    struct wb_store_scan *scan = NULL;
    struct wb_page page;
    uint64_t done = 0, damaged = 0;
    int got = 0, err = wb_store_scan_open(r->store, &options, &scan);

    WB_CHECK(since < r->epoch);
    while (err == 0 && (got = wb_store_scan_next(scan, &page)) != 0) {
        if (got == WB_E_CORRUPT && r->sink->warn && damaged++ < DAMAGES_SHOWN)
            r->sink->warn(r->sink->context, wb_error_message());
        if (got < 0 && got != WB_E_CORRUPT)
            err = got;
        else if (got > 0)
            err = add_stored(r, &page);
        if (err == 0)
            err = go_on(r, done++, pages);
    }
    if (err == WB_E_DOWN) {
        if (r->sink->warn) {
            char text[WB_ERROR_MESSAGE_MAX + 100];
            snprintf(text, sizeof text, "update: %s; the first update after its return compares its pages",
                     wb_error_message());
            r->sink->warn(r->sink->context, text);
        }
        r->epoch = since;
        err = 0;
    }
    wb_store_scan_close(scan);
    return err;
}

static int next_stored(struct wb_reconcile *r)
{
    int got = wb_sorter_next(r->stored, &r->next);

    if (got == 0)
        r->next.key = WB_SLICE_EMPTY;
    return got < 0 ? got : 0;
}

static struct stored_page stored_of(struct wb_slice value)
{
    WB_CHECK(value.len == VALUE_BYTES);
    return (struct stored_page){.id = wb_pageid_get(value.ptr),
                                .time_ms = (int64_t)wb_get64(value.ptr + WB_PAGEID_BYTES),
                                .md5 = (const uint8_t *)value.ptr + WB_PAGEID_BYTES + 8};
}

/* The epoch that the last edition has seen in full. */
static uint64_t seen_until(const struct wb_reconcile *r)
{
    struct wb_webdb_count count;

    if (!r->old || r->options->rebuild)
        return 0;
    wb_webdb_count(r->old, &count);
    return count.store_epoch;
}

int wb_reconcile_open(struct wb_reconcile *r, const struct wb_update_options *options, const struct wb_cycle_sink *sink)
{
    WB_CHECK(r->stage == WB_RECONCILE_CLOSED && !r->store && !r->stored);
    size_t memory = options->memory_bytes ? options->memory_bytes / 4 : MEMORY_BYTES;
    struct wb_sorter_options sorting = {.dir = options->dir, .memory_bytes = memory, .threads = options->threads};
    struct wb_store_stat stat;

    *r = (struct wb_reconcile){
        .options = options, .sink = sink, .url = WB_URL_INIT, .unheard_max = memory / sizeof(struct wb_pageid)};
    int err = options->rebuild ? WB_E_NOTFOUND : wb_webdb_open(options->dir, &r->old);
    if (err == WB_E_NOTFOUND)
        err = 0;
    if (err == 0)
        err = open_store(r, &stat);
    if (err == 0)
        err = wb_sorter_open(&sorting, &r->stored);
    if (err < 0)
        return err;
    r->epoch = stat.epoch;
    /* Without a new epoch nothing arrived, and the scan need not look for it. */
    if (seen_until(r) < r->epoch)
        err = read_stored(r, seen_until(r), stat.pages);
    if (err == 0)
        err = wb_sorter_sort(r->stored);
    r->stage = WB_RECONCILE_COMPARING;
    return err < 0 ? err : next_stored(r);
}

void wb_reconcile_close(struct wb_reconcile *r)
{
    wb_sorter_close(r->stored);
    wb_webdb_close(r->old);
    wb_store_close(r->store);
    wb_vec_release(&r->unheard);
    wb_buf_release(&r->unstored);
    wb_url_release(&r->url);
    wb_buf_release(&r->key);
    wb_buf_release(&r->href);
    wb_buf_release(&r->surt);
    *r = (struct wb_reconcile){.url = WB_URL_INIT};
}

/* ---- comparing ----------------------------------------------------------------------------------------------- */

/*
 * Whether webdb has heard of what is stored: it has the content, or something that happened later. A page that was
 * taken down stays as it is.
 */
static bool has_heard(const struct wb_webdb_page *row, const struct stored_page *stored)
{
    return row->flags & WB_PAGE_BARRED || row->last_tried_ms >= stored->time_ms ||
           (row->has_content && memcmp(row->md5, stored->md5, WB_MD5_BYTES) == 0);
}

static int note_unheard(struct wb_reconcile *r, struct wb_pageid id)
{
    WB_CHECK(r->unheard.count <= r->unheard_max);
    r->more = r->more || r->unheard.count == r->unheard_max;
    return r->more ? 0 : wb_vec_push(&r->unheard, id);
}

/* The row of the old edition by its SURT. WB_E_NOTFOUND. */
static int old_row(struct wb_reconcile *r, struct wb_slice surt, struct wb_webdb_page *page_out)
{
    if (!r->old)
        return WB_E_NOTFOUND;
    int err = wb_surt_to_key(surt, &r->key);
    wb_buf_clear(&r->href);
    if (err == 0)
        err = wb_buf_append_str(&r->href, "http://");
    if (err == 0)
        err = wb_buf_append_slice(&r->href, wb_buf_slice(&r->key));
    return err < 0 ? err : wb_webdb_get_page(r->old, wb_buf_slice(&r->href), page_out);
}

/* The merge does not touch this page: webdb says what the old edition says. */
static int judge_untouched(struct wb_reconcile *r)
{
    WB_CHECK(r->next.key.len > 0);
    struct stored_page stored = stored_of(r->next.value);
    struct wb_webdb_page row;
    int err = old_row(r, r->next.key, &row);

    if (err < 0 && err != WB_E_NOTFOUND && err != WB_E_INVALID)
        return err;
    return err == 0 && has_heard(&row, &stored) ? 0 : note_unheard(r, stored.id);
}

static bool was_stored(const struct wb_webdb_page *row)
{
    return row->has_content && !(row->flags & (WB_PAGE_LOADED | WB_PAGE_GONE | WB_PAGE_BARRED)) &&
           (row->outcome == WB_OUTCOME_STORED || row->outcome == WB_OUTCOME_DUPLICATE ||
            row->outcome == WB_OUTCOME_TRUNCATED);
}

/* Whether the store has the page as of this time, or newer: 1, 0 or an error. *any_out: it has some version. */
static int is_stored(struct wb_reconcile *r, struct wb_slice url, int64_t time_ms, struct wb_pageid *id_out,
                     bool *any_out)
{
    int64_t stored_ms = 0;

    WB_CHECK(r->store);
    *any_out = false;
    *id_out = (struct wb_pageid){0, 0};
    int err = wb_url_parse(url, NULL, &r->url);
    if (err == 0)
        err = wb_url_key(&r->url, &r->key);
    if (err < 0)
        return err == WB_E_NOMEM ? err : 1;
    *id_out = wb_pageid_of_key(wb_buf_slice(&r->key));
    err = wb_store_time(r->store, *id_out, &stored_ms);
    *any_out = err == 0;
    /* Damage of the store, and a node that is down, are reported by readers of the page. */
    if (err < 0)
        return err == WB_E_NOTFOUND ? 0 : err == WB_E_CORRUPT || err == WB_E_DOWN ? 1 : err;
    return stored_ms >= time_ms;
}

/*
 * The row says that the page was stored, but nothing that arrived since the last edition shows that. Its content may
 * have been known for long. If not, and if the row speaks of a visit that this merge has added, it is suspect.
 */
static int judge_unconfirmed(struct wb_reconcile *r, const struct wb_webdb_page *row)
{
    struct wb_webdb_page before;
    struct wb_pageid id;
    bool any;
    int got = is_stored(r, row->url, row->last_seen_ms, &id, &any);

    if (got != 0 || r->unstored.len >= UNSTORED_BYTES)
        return got < 0 ? got : 0;
    int err = old_row(r, row->surt, &before);
    if (err < 0 && err != WB_E_NOTFOUND && err != WB_E_INVALID)
        return err;
    if (err == 0 && before.last_seen_ms >= row->last_seen_ms)
        return 0;
    err = wb_buf_append_slice(&r->unstored, row->url);
    return err < 0 ? err : wb_buf_append_char(&r->unstored, '\n');
}

int wb_reconcile_row(struct wb_reconcile *r, const struct wb_webdb_page *page)
{
    bool confirmed = false;
    int err = 0, order = -1;

    WB_CHECK(r->stage == WB_RECONCILE_COMPARING);
    while (err == 0 && r->next.key.len && (order = wb_slice_compare(r->next.key, page->surt)) < 0) {
        err = judge_untouched(r);
        if (err == 0)
            err = next_stored(r);
    }
    if (err == 0 && r->next.key.len && order == 0) {
        struct stored_page stored = stored_of(r->next.value);
        confirmed = stored.time_ms >= page->last_seen_ms;
        err = has_heard(page, &stored) ? 0 : note_unheard(r, stored.id);
        if (err == 0)
            err = next_stored(r);
    }
    return err == 0 && !confirmed && was_stored(page) ? judge_unconfirmed(r, page) : err;
}

int wb_reconcile_rest(struct wb_reconcile *r)
{
    int err = 0;

    WB_CHECK(r->stage == WB_RECONCILE_COMPARING);
    while (err == 0 && r->next.key.len) {
        err = judge_untouched(r);
        if (err == 0)
            err = next_stored(r);
    }
    /* A holder of the old edition keeps it from being removed when the new one is published. */
    wb_webdb_close(r->old);
    r->old = NULL;
    r->stage = WB_RECONCILE_COMPARED;
    return err;
}

/* ---- putting right ------------------------------------------------------------------------------------------- */

/* Whether some process is writing to the journal. */
static int anybody_writes(const char *dir, bool *yes_out)
{
    struct wb_journal_log *logs = NULL;
    size_t count = 0;
    int err = wb_journal_list_logs(dir, &logs, &count);

    *yes_out = false;
    for (size_t i = 0; err == 0 && i < count && !*yes_out; i++)
        *yes_out = !logs[i].ended && wb_journal_log_is_written(dir, logs[i].number);
    wb_free(logs);
    return err;
}

/* Keeps the URLs that are not stored as webdb, which is opened again, describes them. */
static int keep_unstored(struct wb_reconcile *r, struct wb_webdb *webdb)
{
    WB_CHECK(r->stage == WB_RECONCILE_COMPARED);
    struct wb_slice rest = wb_buf_slice(&r->unstored), url;
    struct wb_buf left = WB_BUF_INIT;
    struct wb_webdb_page row;
    struct wb_pageid id;
    bool any;
    int err = 0;

    while (err == 0 && wb_slice_next_line(&rest, &url)) {
        int got = wb_webdb_get_page(webdb, url, &row);
        if (got < 0 && got != WB_E_NOTFOUND && got != WB_E_INVALID)
            err = got;
        if (got < 0 || !was_stored(&row))
            continue;
        got = is_stored(r, url, row.last_seen_ms, &id, &any);
        err = got < 0 ? got : 0;
        if (got == 0)
            err = wb_buf_append_slice(&left, url);
        if (got == 0 && err == 0)
            err = wb_buf_append_char(&left, '\n');
    }
    wb_buf_release(&r->unstored);
    r->unstored = wb_buf_take(&left);
    wb_buf_release(&left);
    return err;
}

int wb_reconcile_confirm(struct wb_reconcile *r)
{
    WB_CHECK(r->stage == WB_RECONCILE_COMPARED);
    int64_t end = wb_clock_mono_ns() + CONFIRM_MS * 1000000ll;
    struct timespec nap = {0, NAP_MS * 1000000l};
    struct wb_webdb *webdb = NULL;
    bool writing = true;
    int err = wb_webdb_open(r->options->dir, &webdb);

    while (err == 0 && r->unstored.len && writing) {
        /* In this order: a process that stops writing meanwhile has committed before. */
        err = anybody_writes(r->options->dir, &writing);
        writing = writing && wb_clock_mono_ns() < end && !wb_stop_requested();
        if (err == 0)
            err = keep_unstored(r, webdb);
        if (err == 0 && r->unstored.len && writing)
            nanosleep(&nap, NULL);
    }
    wb_webdb_close(webdb);
    return err == WB_E_NOTFOUND ? 0 : err;
}

/* Makes a row that of a page that was never fetched; even a visit of the same time is news again. */
static void forget_visits(struct wb_webdb_page *row)
{
    row->has_content = false;
    memset(row->md5, 0, sizeof row->md5);
    memset(&row->history, 0, sizeof row->history);
    row->simhash = row->title_hash = row->bytes = 0;
    row->status = 0;
    row->outcome = 0;
    row->lifetime = 0;
    row->last_seen_ms = row->last_tried_ms = row->last_changed_ms = row->expires_ms = row->asked_ms = 0;
    row->next_due_ms = 0;
    row->etag = row->modified = row->type = row->location = WB_SLICE_EMPTY;
}

int wb_reconcile_correct(struct wb_reconcile *r, struct wb_webdb_writer *writer)
{
    WB_CHECK(r->stage == WB_RECONCILE_COMPARED);
    struct wb_slice rest = wb_buf_slice(&r->unstored), url;
    struct wb_webdb *webdb = NULL;
    struct wb_webdb_page row;
    struct wb_pageid id;
    bool any;
    int err = wb_webdb_open(r->options->dir, &webdb);

    while (err == 0 && wb_slice_next_line(&rest, &url)) {
        int got = wb_webdb_get_page(webdb, url, &row);
        if (got < 0 && got != WB_E_NOTFOUND)
            err = got;
        got = got < 0 ? 1 : is_stored(r, url, row.last_seen_ms, &id, &any);
        if (got < 0)
            err = got;
        if (got != 0)
            continue;
        forget_visits(&row);
        err = wb_webdb_add_page(writer, &row);
        if (err == 0 && any)
            err = note_unheard(r, id);
    }
    wb_webdb_close(webdb);
    return err;
}

int wb_reconcile_adopt(struct wb_reconcile *r, struct wb_webdb_writer *writer)
{
    int err = 0;

    WB_CHECK(r->stage == WB_RECONCILE_COMPARED);
    for (size_t at = 0; err == 0 && at < r->unheard.count; at += READ_PAGES) {
        size_t left = r->unheard.count - at;
        err = wb_rebuild_pages(r->store, writer, r->sink, r->unheard.items + at, left < READ_PAGES ? left : READ_PAGES);
    }
    return err;
}
