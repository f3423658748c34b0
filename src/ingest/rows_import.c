/*
 * rows_import.c - loads rows of pages and links, which another webdb printed, into this one.
 *
 *   line -> wb_loadrow (named texts) -> struct wb_webdb_page or wb_webdb_link -> the writer of webdb
 *
 * It takes everything that a row says, except what follows from the rest (SURT, in-links). A row says how many visits
 * and changes a page had, but not when they were. They are spread evenly over the time in which the page was seen,
 * which gives the same estimate of its rate of change if it was visited regularly.
 *
 * Files are read from front to back. webdb changes once everything was read, or not at all.
 */
#include "base/bytes.h"
#include "base/date.h"
#include "base/error.h"
#include "extract/extract.h"
#include "ingest/linewalk.h"
#include "ingest/loadrow.h"
#include "ingest/repository.h"
#include "os/clock.h"
#include "store/store.h"

enum { VISITS_MAX = 1000 }; /* of a made-up history: more would not change the estimate */

struct row_importer {
    const struct wb_rows_import_options *options;
    struct wb_ingest_load *load;
    struct wb_webdb_writer *writer;
    struct wb_linewalk walk;
    struct wb_loadrow row;
    struct wb_url url;     /* the URL that was checked last */
    struct wb_buf barred;  /* URLs of pages with the flag barred, one per line */
    int64_t now_ms;
};

/* Reads a field that must be an http or https URL. */
static int check_url(struct row_importer *im, const char *name, struct wb_slice *url_out)
{
    *url_out = wb_loadrow_text(&im->row, name);
    if (url_out->len == 0)
        return wb_fail(WB_E_PROTO, "there is no %s", name);
    int err = wb_url_parse(*url_out, NULL, &im->url);
    if (err == 0 && !wb_url_is_http(&im->url))
        err = wb_fail(WB_E_PROTO, "not an http or https URL: %.*s", WB_SLICE_ARG(*url_out));
    return err;
}

/* Takes the next word, up to a separator, off the text; empty at the end. */
static struct wb_slice next_word(struct wb_slice *text, char separator)
{
    const char *end = memchr(text->ptr, separator, text->len);
    struct wb_slice word = wb_slice(text->ptr, end ? (size_t)(end - text->ptr) : text->len);

    *text = wb_slice(word.ptr + word.len + (end != NULL), text->len - word.len - (end != NULL));
    return wb_slice_trim(word);
}

/* ---- pages ------------------------------------------------------------------------------------- */

/* 0 if there is no such outcome. */
static uint8_t outcome_of(struct wb_slice word)
{
    for (unsigned i = WB_OUTCOME_STORED; i <= WB_OUTCOME_ROBOTS; i++)
        if (wb_slice_equal(word, wb_slice_str(wb_rowwords_outcome(i))))
            return (uint8_t)i;
    return 0;
}

/* 0 if there is no such flag. */
static unsigned flag_of(struct wb_slice word)
{
    const char *known;
    unsigned flag;

    for (size_t i = 0; (known = wb_rowwords_flag(i, &flag)); i++)
        if (wb_slice_equal(word, wb_slice_str(known)))
            return flag;
    return 0;
}

static int read_flags(const struct row_importer *im, unsigned *flags_out)
{
    struct wb_slice left = wb_loadrow_text(&im->row, "flags");

    *flags_out = 0;
    while (left.len) {
        struct wb_slice word = next_word(&left, ',');
        unsigned flag = flag_of(word);
        if (!flag)
            return wb_fail(WB_E_PROTO, "unknown flag: %.*s", WB_SLICE_ARG(word));
        *flags_out |= flag;
    }
    return 0;
}

/* The field is "TIME RESULT STATUS; ...". A fetch whose time cannot be read is left out. */
static void read_fetches(const struct row_importer *im, struct wb_visitlog *history)
{
    struct wb_slice left = wb_loadrow_text(&im->row, "fetches");

    while (left.len && history->fetch_count < WB_VISITLOG_FETCHES) {
        struct wb_slice fetch = next_word(&left, ';'), time = next_word(&fetch, ' '), outcome = next_word(&fetch, ' ');
        struct wb_visitlog_fetch *out = &history->fetches[history->fetch_count];
        uint64_t status = 0;
        if (!wb_date_parse(time, &out->time_ms))
            continue;
        wb_slice_to_u64(next_word(&fetch, ' '), &status);
        out->outcome = outcome_of(outcome);
        out->status = (uint16_t)(status <= UINT16_MAX ? status : 0);
        history->fetch_count++;
    }
}

/* Makes up a history with as many visits and changes as the row says. */
static int read_history(const struct row_importer *im, struct wb_webdb_page *page)
{
    uint64_t visits, changes;
    int err = wb_loadrow_number(&im->row, "visits", UINT32_MAX, &visits);

    if (err == 0)
        err = wb_loadrow_number(&im->row, "changes", visits, &changes);
    if (err < 0)
        return err;
    if (visits > VISITS_MAX) {
        changes = changes * VISITS_MAX / visits;
        visits = VISITS_MAX;
    }
    int64_t gap = visits ? (page->last_seen_ms - page->first_seen_ms) / (int64_t)visits : 0;
    for (uint64_t i = 0; gap > 0 && i < visits; i++) {
        bool changed = (i + 1) * changes / visits > i * changes / visits;
        wb_visitlog_add(&page->history, gap, changed, 0, page->first_seen_ms + (int64_t)(i + 1) * gap);
    }
    read_fetches(im, &page->history);
    return 0;
}

static int read_times(const struct row_importer *im, struct wb_webdb_page *page)
{
    const struct {
        const char *name;
        int64_t *time_ms;
    } times[] = {
        {"first_seen", &page->first_seen_ms},
        {"last_seen", &page->last_seen_ms},
        {"last_changed", &page->last_changed_ms},
        {"next_due", &page->next_due_ms},
        {"last_tried", &page->last_tried_ms},
        {"hint", &page->hint_ms},
        {"expires", &page->expires_ms},
        {"asked", &page->asked_ms},
    };
    int err = 0;

    for (size_t i = 0; err == 0 && i < sizeof times / sizeof *times; i++)
        err = wb_loadrow_time(&im->row, times[i].name, times[i].time_ms);
    if (page->first_seen_ms == 0)
        page->first_seen_ms = im->now_ms;
    return err;
}

static int read_numbers(const struct row_importer *im, struct wb_webdb_page *page)
{
    uint64_t status, depth, failures, signals, lifetime;
    int err = wb_loadrow_number(&im->row, "status", UINT16_MAX, &status);

    if (err == 0)
        err = wb_loadrow_number(&im->row, "depth", UINT16_MAX, &depth);
    if (err == 0)
        err = wb_loadrow_number(&im->row, "failures", UINT16_MAX, &failures);
    if (err == 0)
        err = wb_loadrow_number(&im->row, "signals", UINT16_MAX, &signals);
    if (err == 0)
        err = wb_loadrow_number(&im->row, "lifetime", UINT32_MAX, &lifetime);
    if (err == 0)
        err = wb_loadrow_number(&im->row, "bytes", UINT64_MAX, &page->bytes);
    if (err == 0)
        err = wb_loadrow_double(&im->row, "score", &page->score);
    if (err < 0)
        return err;
    page->status = (uint16_t)status;
    page->depth = (uint16_t)depth;
    page->failures = (uint16_t)failures;
    page->signals = (uint16_t)signals;
    page->lifetime = (uint32_t)lifetime;
    return 0;
}

static int read_content(const struct row_importer *im, struct wb_webdb_page *page)
{
    uint8_t simhash[8], title_hash[8];
    bool there;
    int err = wb_loadrow_hex(&im->row, "md5", page->md5, sizeof page->md5, &page->has_content);

    if (err == 0)
        err = wb_loadrow_hex(&im->row, "simhash", simhash, sizeof simhash, &there);
    if (err == 0)
        err = wb_loadrow_hex(&im->row, "title_hash", title_hash, sizeof title_hash, &there);
    if (err < 0)
        return err;
    page->simhash = wb_get64_be(simhash);
    page->title_hash = wb_get64_be(title_hash);
    page->type = wb_loadrow_text(&im->row, "type");
    page->etag = wb_loadrow_text(&im->row, "etag");
    page->modified = wb_loadrow_text(&im->row, "modified");
    page->location = wb_loadrow_text(&im->row, "location");
    page->outcome = outcome_of(wb_loadrow_text(&im->row, "result"));
    return 0;
}

/* A line of the file of pages. */
static int take_page(void *context, struct wb_slice line)
{
    struct row_importer *im = context;
    struct wb_webdb_page page = {.surt = WB_SLICE_EMPTY};
    int got = wb_loadrow_read(&im->row, line);

    if (got <= 0)
        return got;
    int err = check_url(im, "url", &page.url);
    if (err == 0)
        err = read_flags(im, &page.flags);
    if (err == 0)
        err = read_times(im, &page);
    if (err == 0)
        err = read_numbers(im, &page);
    if (err == 0)
        err = read_content(im, &page);
    if (err == 0)
        err = read_history(im, &page);
    if (err < 0)
        return err;
    /* A file that was made by hand may have scores and no flags; then the scores are meant to be set. */
    bool scored = page.flags & WB_PAGE_SCORED || (page.score > 0 && !wb_loadrow_has(&im->row, "flags"));
    err = scored ? wb_webdb_add_page_with_score(im->writer, &page) : wb_webdb_add_page(im->writer, &page);
    im->load->pages += err == 0;
    if (err == 0 && page.flags & WB_PAGE_BARRED)
        err = wb_buf_append_slice(&im->barred, wb_url_href(&im->url));
    if (err == 0 && page.flags & WB_PAGE_BARRED)
        err = wb_buf_append_char(&im->barred, '\n');
    return err;
}

/* The flag in webdb only shows a takedown. What keeps the page out is a bar in the store, so that is set as well. */
static int bar_marked(struct row_importer *im)
{
    struct wb_slice rest = wb_buf_slice(&im->barred);
    struct wb_store *store = NULL;
    struct wb_buf key = WB_BUF_INIT;
    int err = rest.len ? wb_store_open(im->options->dir, WB_STORE_WRITE, &store) : 0;

    while (err == 0 && rest.len) {
        struct wb_store_bar bar = {.kind = WB_STORE_BAR_PAGE, .time_ms = im->now_ms};
        err = wb_url_parse(next_word(&rest, '\n'), NULL, &im->url);
        if (err == 0)
            err = wb_url_key(&im->url, &key);
        if (err < 0)
            break;
        bar.id = wb_pageid_of_key(wb_buf_slice(&key));
        bar.site = wb_key_site(wb_buf_slice(&key));
        int barred = wb_store_barred(store, bar.id, bar.site);
        err = barred < 0 ? barred : barred ? 0 : wb_store_bar(store, &bar);
    }
    wb_store_close(store);
    wb_buf_release(&key);
    return err;
}

/* ---- links ------------------------------------------------------------------------------------- */

/*
 * A crawler follows links by their tags. Canonical ones are an exception, but rows do not tell them from other <link>s,
 * so they are lost.
 */
static void read_tag(struct wb_slice word, struct wb_webdb_link *link)
{
    for (unsigned tag = WB_EXTRACT_LINK_A; tag < WB_EXTRACT_LINK_END; tag++)
        if (word.len && wb_slice_equal(word, wb_slice_str(wb_extract_tag_name(tag))))
            link->tag = (uint8_t)tag;
    switch (link->tag) {
    case WB_EXTRACT_LINK_LINK:
    case WB_EXTRACT_LINK_IMG:
    case WB_EXTRACT_LINK_SOURCE:
    case WB_EXTRACT_LINK_FORM:
    case WB_EXTRACT_LINK_SCRIPT:
    case WB_EXTRACT_LINK_MEDIA:
    case WB_EXTRACT_LINK_STYLE:
    case WB_EXTRACT_LINK_IMAGE:
        break;
    default:
        link->flags |= WB_PAGELINK_FOLLOW;
    }
}

/* A line of the file of links. */
static int take_link(void *context, struct wb_slice line)
{
    struct row_importer *im = context;
    struct wb_webdb_link link = {.anchor = WB_SLICE_EMPTY};
    uint64_t nofollow = 0;
    bool there = false;
    int got = wb_loadrow_read(&im->row, line);

    if (got <= 0)
        return got;
    int err = wb_loadrow_hex(&im->row, "from_md5", link.from_md5, sizeof link.from_md5, &there);
    if (err == 0 && !there)
        err = wb_fail(WB_E_PROTO, "there is no from_md5");
    if (err == 0)
        err = check_url(im, "to", &link.to);
    if (err == 0)
        err = wb_loadrow_number(&im->row, "nofollow", 1, &nofollow);
    if (err < 0)
        return err;
    link.anchor = wb_loadrow_text(&im->row, "anchor");
    link.tag = WB_EXTRACT_LINK_A;
    read_tag(wb_loadrow_text(&im->row, "tag"), &link);
    if (nofollow)
        link.flags |= WB_PAGELINK_NOFOLLOW;
    err = wb_webdb_add_link(im->writer, &link);
    im->load->links += err == 0;
    return err;
}

/* ---- the whole --------------------------------------------------------------------------------- */

static int load_file(struct row_importer *im, const char *path, wb_linewalk_take take)
{
    int err = wb_linewalk_file(&im->walk, path, take, im);

    wb_loadrow_release(&im->row);
    return err;
}

static int load_files(struct row_importer *im)
{
    const struct wb_rows_import_options *options = im->options;
    int err = wb_repository_open_webdb(options->dir, options->memory_bytes, im->now_ms, &im->writer);

    if (err == 0 && options->pages)
        err = load_file(im, options->pages, take_page);
    if (err == 0 && options->links)
        err = load_file(im, options->links, take_link);
    if (err == 0 && im->load->pages + im->load->links == 0 && im->walk.bad_lines)
        err = wb_fail(WB_E_PROTO, "no line of %s could be read", options->pages ? options->pages : options->links);
    return err < 0 ? err : bar_marked(im);
}

int wb_rows_import(const struct wb_rows_import_options *options, const struct wb_ingest_sink *sink,
                   struct wb_ingest_load *load_out)
{
    struct row_importer im = {.options = options, .load = load_out, .walk = {.sink = sink}, .url = WB_URL_INIT,
                             .now_ms = wb_clock_wall_ms()};

    *load_out = (struct wb_ingest_load){.pages = 0};
    int err = load_files(&im);
    if (err == 0) {
        err = wb_webdb_writer_close(im.writer, &load_out->merge);
        im.writer = NULL;
    }
    load_out->bad_lines = im.walk.bad_lines;
    load_out->unfinished = im.walk.unfinished;
    load_out->loose = load_out->merge.links_without_source;
    wb_webdb_writer_abandon(im.writer);
    wb_url_release(&im.url);
    wb_buf_release(&im.barred);
    return err;
}
