/*
 * rows_import.c - pages and links of another webdb into this one.
 *
 * Everything that a row tells is taken over but what follows from the rest (SURT, in-links). Of a page's history the
 * numbers of visits and changes are told, not when they were: they are spread evenly over the time in which it was
 * seen, which gives the same estimate for a page that was visited regularly. Files are read front to back; webdb
 * changes when all is read, or not at all.
 */
#include "base/bytes.h"
#include "base/date.h"
#include "base/error.h"
#include "ingest/linewalk.h"
#include "ingest/loadrow.h"
#include "ingest/repository.h"
#include "os/clock.h"
#include "extract/extract.h"
#include "store/store.h"

enum { VISITS_MAX = 1000 }; /* that a history is made of: more do not change an estimate */

struct row_importer {
    const struct wb_rows_import_options *options;
    struct wb_loaded *loaded;
    struct wb_webdb_writer *writer;
    struct wb_linewalk walk;
    struct wb_loadrow row;
    struct wb_url url;
    struct wb_buf barred; /* URLs of pages marked so, a line each */
    int64_t now_ms;
};

static int check_url(struct row_importer *l, const char *name, struct wb_slice *url_out)
{
    *url_out = wb_loadrow_text(&l->row, name);
    if (url_out->len == 0)
        return wb_fail(WB_E_PROTO, "there is no %s", name);
    int err = wb_url_parse(*url_out, NULL, &l->url);
    if (err == 0 && !wb_url_is_http(&l->url))
        err = wb_fail(WB_E_PROTO, "no URL of http or https: %.*s", WB_SLICE_ARG(*url_out));
    return err;
}

/* The next word before a separator, which is taken off the text; empty at the end. */
static struct wb_slice next_word(struct wb_slice *text, char separator)
{
    const char *end = memchr(text->ptr, separator, text->len);
    struct wb_slice word = wb_slice(text->ptr, end ? (size_t)(end - text->ptr) : text->len);

    *text = wb_slice(word.ptr + word.len + (end != NULL), text->len - word.len - (end != NULL));
    return wb_slice_trim(word);
}

/* ---- pages ----------------------------------------------------------------------------------------- */

static uint8_t outcome_of(struct wb_slice word)
{
    for (unsigned i = WB_OUTCOME_STORED; i <= WB_OUTCOME_ROBOTS; i++)
        if (wb_slice_equal(word, wb_slice_str(wb_row_outcome(i))))
            return (uint8_t)i;
    return 0;
}

static unsigned flag_of(struct wb_slice word)
{
    const char *known;
    unsigned flag;

    for (size_t i = 0; (known = wb_row_flag(i, &flag)); i++)
        if (wb_slice_equal(word, wb_slice_str(known)))
            return flag;
    return 0;
}

static int read_flags(const struct row_importer *l, unsigned *flags_out)
{
    struct wb_slice left = wb_loadrow_text(&l->row, "flags");

    *flags_out = 0;
    while (left.len) {
        struct wb_slice word = next_word(&left, ',');
        unsigned flag = flag_of(word);
        if (!flag)
            return wb_fail(WB_E_PROTO, "no such flag: %.*s", WB_SLICE_ARG(word));
        *flags_out |= flag;
    }
    return 0;
}

/* "TIME RESULT STATUS; ..." */
static void read_fetches(const struct row_importer *l, struct wb_history *history)
{
    struct wb_slice left = wb_loadrow_text(&l->row, "fetches");

    while (left.len && history->fetch_count < WB_HISTORY_FETCHES) {
        struct wb_slice fetch = next_word(&left, ';'), time = next_word(&fetch, ' '), outcome = next_word(&fetch, ' ');
        struct wb_history_fetch *out = &history->fetches[history->fetch_count];
        uint64_t status = 0;
        if (!wb_date_parse(time, &out->time_ms))
            continue;
        wb_slice_to_u64(next_word(&fetch, ' '), &status);
        out->outcome = outcome_of(outcome);
        out->status = (uint16_t)(status <= UINT16_MAX ? status : 0);
        history->fetch_count++;
    }
}

static int read_history(const struct row_importer *l, struct wb_webdb_page *page)
{
    uint64_t visits, changes;
    int err = wb_loadrow_number(&l->row, "visits", UINT32_MAX, &visits);

    if (err == 0)
        err = wb_loadrow_number(&l->row, "changes", visits, &changes);
    if (err < 0)
        return err;
    if (visits > VISITS_MAX) {
        changes = changes * VISITS_MAX / visits;
        visits = VISITS_MAX;
    }
    int64_t gap = visits ? (page->last_seen_ms - page->first_seen_ms) / (int64_t)visits : 0;
    for (uint64_t i = 0; gap > 0 && i < visits; i++) {
        bool changed = (i + 1) * changes / visits > i * changes / visits;
        wb_history_visit(&page->history, gap, changed, 0, page->first_seen_ms + (int64_t)(i + 1) * gap);
    }
    read_fetches(l, &page->history);
    return 0;
}

static int read_times(const struct row_importer *l, struct wb_webdb_page *page)
{
    const struct {
        const char *name;
        int64_t *time_ms;
    } times[] = {
        {"first_seen", &page->first_seen_ms},     {"last_seen", &page->last_seen_ms}, {"last_changed", &page->last_changed_ms},
        {"next_due", &page->next_due_ms},         {"last_tried", &page->last_tried_ms}, {"hint", &page->hint_ms},
        {"expires", &page->expires_ms},           {"asked", &page->asked_ms},
    };
    int err = 0;

    for (size_t i = 0; err == 0 && i < sizeof times / sizeof *times; i++)
        err = wb_loadrow_time(&l->row, times[i].name, times[i].time_ms);
    if (page->first_seen_ms == 0)
        page->first_seen_ms = l->now_ms;
    return err;
}

static int read_numbers(const struct row_importer *l, struct wb_webdb_page *page)
{
    uint64_t status, depth, failures, signals, lifetime;
    int err = wb_loadrow_number(&l->row, "status", UINT16_MAX, &status);

    if (err == 0)
        err = wb_loadrow_number(&l->row, "depth", UINT16_MAX, &depth);
    if (err == 0)
        err = wb_loadrow_number(&l->row, "failures", UINT16_MAX, &failures);
    if (err == 0)
        err = wb_loadrow_number(&l->row, "signals", UINT16_MAX, &signals);
    if (err == 0)
        err = wb_loadrow_number(&l->row, "lifetime", UINT32_MAX, &lifetime);
    if (err == 0)
        err = wb_loadrow_number(&l->row, "bytes", UINT64_MAX, &page->bytes);
    if (err == 0)
        err = wb_loadrow_double(&l->row, "score", &page->score);
    if (err < 0)
        return err;
    page->status = (uint16_t)status;
    page->depth = (uint16_t)depth;
    page->failures = (uint16_t)failures;
    page->signals = (uint16_t)signals;
    page->lifetime = (uint32_t)lifetime;
    return 0;
}

static int read_content(const struct row_importer *l, struct wb_webdb_page *page)
{
    uint8_t simhash[8], title_hash[8];
    bool there;
    int err = wb_loadrow_hex(&l->row, "md5", page->md5, sizeof page->md5, &page->has_content);

    if (err == 0)
        err = wb_loadrow_hex(&l->row, "simhash", simhash, sizeof simhash, &there);
    if (err == 0)
        err = wb_loadrow_hex(&l->row, "title_hash", title_hash, sizeof title_hash, &there);
    if (err < 0)
        return err;
    page->simhash = wb_get64_be(simhash);
    page->title_hash = wb_get64_be(title_hash);
    page->type = wb_loadrow_text(&l->row, "type");
    page->etag = wb_loadrow_text(&l->row, "etag");
    page->modified = wb_loadrow_text(&l->row, "modified");
    page->location = wb_loadrow_text(&l->row, "location");
    page->outcome = outcome_of(wb_loadrow_text(&l->row, "result"));
    return 0;
}

static int take_page(void *context, struct wb_slice line)
{
    struct row_importer *l = context;
    struct wb_webdb_page page = {.surt = WB_SLICE_EMPTY};
    int got = wb_loadrow_read(&l->row, line);

    if (got <= 0)
        return got;
    int err = check_url(l, "url", &page.url);
    if (err == 0)
        err = read_flags(l, &page.flags);
    if (err == 0)
        err = read_times(l, &page);
    if (err == 0)
        err = read_numbers(l, &page);
    if (err == 0)
        err = read_content(l, &page);
    if (err == 0)
        err = read_history(l, &page);
    if (err < 0)
        return err;
    /* A file made by hand has a score and no flags: the score is meant. */
    bool scored = page.flags & WB_PAGE_SCORED || (page.score > 0 && !wb_loadrow_has(&l->row, "flags"));
    err = scored ? wb_webdb_add_page_with_score(l->writer, &page) : wb_webdb_add_page(l->writer, &page);
    l->loaded->pages += err == 0;
    if (err == 0 && page.flags & WB_PAGE_BARRED)
        err = wb_buf_append_slice(&l->barred, wb_url_href(&l->url));
    if (err == 0 && page.flags & WB_PAGE_BARRED)
        err = wb_buf_append_char(&l->barred, '\n');
    return err;
}

/* A mark in webdb only shows what was taken down; the store's bar is what holds. */
static int bar_marked(struct row_importer *l)
{
    struct wb_slice rest = wb_buf_slice(&l->barred);
    struct wb_store *store = NULL;
    struct wb_buf key = WB_BUF_INIT;
    int err = rest.len ? wb_store_open(l->options->dir, WB_STORE_WRITE, &store) : 0;

    for (const char *end; err == 0 && (end = memchr(rest.ptr, '\n', rest.len)); rest = wb_slice(end + 1, rest.len - (size_t)(end + 1 - rest.ptr))) {
        struct wb_bar bar = {.kind = WB_BAR_PAGE, .time_ms = l->now_ms};
        err = wb_url_parse(wb_slice(rest.ptr, (size_t)(end - rest.ptr)), NULL, &l->url);
        if (err == 0)
            err = wb_url_key(&l->url, &key);
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

/* ---- links -------------------------------------------------------------------------------------------- */

/* Which links are followed goes by their tags, but for canonical ones, which look like other <link>s here. */
static void read_tag(struct wb_slice word, struct wb_webdb_link *link)
{
    for (unsigned tag = WB_LINK_A; tag <= WB_LINK_SITEMAP; tag++)
        if (wb_slice_equal(word, wb_slice_str(wb_link_tag_name(tag))))
            link->tag = (uint8_t)tag;
    switch (link->tag) {
    case WB_LINK_LINK:
    case WB_LINK_IMG:
    case WB_LINK_SOURCE:
    case WB_LINK_FORM:
        break;
    default:
        link->flags |= WB_EDIT_LINK_FOLLOW;
    }
}

static int take_link(void *context, struct wb_slice line)
{
    struct row_importer *l = context;
    struct wb_webdb_link link = {.anchor = WB_SLICE_EMPTY};
    uint64_t nofollow = 0;
    bool there = false;
    int got = wb_loadrow_read(&l->row, line);

    if (got <= 0)
        return got;
    int err = wb_loadrow_hex(&l->row, "from_md5", link.from_md5, sizeof link.from_md5, &there);
    if (err == 0 && !there)
        err = wb_fail(WB_E_PROTO, "there is no from_md5");
    if (err == 0)
        err = check_url(l, "to", &link.to);
    if (err == 0)
        err = wb_loadrow_number(&l->row, "nofollow", 1, &nofollow);
    if (err < 0)
        return err;
    link.anchor = wb_loadrow_text(&l->row, "anchor");
    link.tag = WB_LINK_A;
    read_tag(wb_loadrow_text(&l->row, "tag"), &link);
    if (nofollow)
        link.flags |= WB_EDIT_LINK_NOFOLLOW;
    err = wb_webdb_add_link(l->writer, &link);
    l->loaded->links += err == 0;
    return err;
}

/* ---- the whole ------------------------------------------------------------------------------------------ */

static int load_file(struct row_importer *l, const char *path, wb_linewalk_take take)
{
    int err = wb_linewalk_file(&l->walk, path, take, l);

    wb_loadrow_release(&l->row);
    return err;
}

static int load_files(struct row_importer *l)
{
    const struct wb_rows_import_options *options = l->options;
    int err = wb_repository_open_webdb(options->dir, options->memory_bytes, l->now_ms, &l->writer);

    if (err == 0 && options->pages)
        err = load_file(l, options->pages, take_page);
    if (err == 0 && options->links)
        err = load_file(l, options->links, take_link);
    if (err == 0 && l->loaded->pages + l->loaded->links == 0 && l->walk.bad_lines)
        err = wb_fail(WB_E_PROTO, "no line of %s could be read", options->pages ? options->pages : options->links);
    return err < 0 ? err : bar_marked(l);
}

int wb_rows_import(const struct wb_rows_import_options *options, const struct wb_ingest_sink *sink,
                   struct wb_loaded *loaded_out)
{
    struct row_importer l = {.options = options, .loaded = loaded_out, .walk = {.sink = sink}, .url = WB_URL_INIT,
                             .now_ms = wb_clock_wall_ms()};

    *loaded_out = (struct wb_loaded){.pages = 0};
    int err = load_files(&l);
    if (err == 0) {
        err = wb_webdb_writer_close(l.writer, &loaded_out->merge);
        l.writer = NULL;
    }
    loaded_out->bad_lines = l.walk.bad_lines;
    loaded_out->unfinished = l.walk.unfinished;
    loaded_out->loose = loaded_out->merge.links_without_source;
    wb_webdb_writer_abandon(l.writer);
    wb_url_release(&l.url);
    wb_buf_release(&l.barred);
    return err;
}
