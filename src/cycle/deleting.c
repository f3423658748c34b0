/*
 * deleting.c - removes one page on request, without barring it (webdb delete).
 *
 *   1 spools    those of dead crawlers are emptied into the store, or they would bring the page back
 *   2 store     all versions of the page are removed, from all snapshots
 *   3 journal   records it
 *   4 merge     webdb forgets the page; what links to it stays, and it is the mere target of these links
 *   5 index     if there is one, the next generation is built, so that searches do not find the page
 *
 * If it is killed after step 2, webdb still knows the page, and deleting it again finishes the work.
 */
#include "base/check.h"
#include "base/error.h"
#include "cycle/removal.h"
#include "cycle/update.h"

#define DELETING_MAGIC 0x5742444cu

struct deleting {
    uint32_t magic;         /* DELETING_MAGIC while wb_delete() is at work */
    struct wb_slice url;    /* as given */
    struct wb_buf href;     /* as webdb has it */
    const struct wb_cycle_sink *sink;
    struct wb_removal removal;
    bool known;             /* webdb has a row of it */
    uint64_t bytes;
};

static int recover_spools(const struct wb_update_options *options, const struct wb_cycle_sink *sink)
{
    struct wb_fetchlist *list = NULL;

    if (!wb_update_dispenser_known(options))
        return 0;
    int err = wb_fetchlist_open(options->dir, options->dispenser, NULL, sink->warn, sink->context, &list);
    wb_fetchlist_close(list);
    return err;
}

/* A visit that was recorded by a clock that was ahead must not count as later than this. */
static void not_before(struct deleting *d, int64_t time_ms)
{
    if (d->removal.now_ms < time_ms)
        d->removal.now_ms = time_ms;
}

static int look_in_webdb(struct deleting *d, const char *dir)
{
    struct wb_webdb *webdb = NULL;
    struct wb_webdb_page page;
    int err = wb_webdb_open(dir, &webdb);

    if (err == 0)
        err = wb_webdb_get_page(webdb, d->url, &page);
    if (err == 0 && page.flags & WB_PAGE_BARRED)
        err = wb_fail(WB_E_INVALID, "%.*s was taken down: there is nothing of it to delete", WB_SLICE_ARG(d->url));
    if (err == 0) {
        d->known = true;
        not_before(d, page.last_seen_ms);
        err = wb_buf_append_slice(&d->href, page.url);
    }
    wb_webdb_close(webdb);
    return err == WB_E_NOTFOUND ? 0 : err;
}

/* Removes all versions. A version that cannot be read is removed, too. */
static int leave_store(struct deleting *d, struct wb_pageid id)
{
    struct wb_page stored = {0};
    int err = wb_removal_read(&d->removal, id, &stored);

    if (err == 0) {
        d->bytes = stored.body.len;
        not_before(d, stored.time_ms);
    }
    if (err < 0 && err != WB_E_NOTFOUND && err != WB_E_CORRUPT)
        return err;
    if (err == WB_E_NOTFOUND && !d->known)
        return wb_fail(WB_E_NOTFOUND, "%.*s is unknown: neither webdb nor the store has it", WB_SLICE_ARG(d->url));
    if (!d->known)
        err = wb_buf_append_slice(&d->href, wb_url_href(&d->removal.url));
    if (err == WB_E_NOMEM)
        return err;
    err = wb_removal_store(&d->removal, id, wb_key_site(wb_buf_slice(&d->removal.key)), d->removal.now_ms);
    return err < 0 ? err : wb_removal_commit(&d->removal);
}

static int delete_page(struct deleting *d, const char *dir)
{
    struct wb_pageid id;

    WB_CHECK(d->magic == DELETING_MAGIC && d->removal.everywhere);
    int err = wb_removal_id(&d->removal, d->url, &id);
    if (err == 0)
        err = look_in_webdb(d, dir);
    if (err == 0)
        err = leave_store(d, id);
    if (err == 0)
        err = wb_removal_note(&d->removal, wb_buf_slice(&d->href), WB_EXPUNGE_DELETED);
    return err < 0 ? err : wb_removal_noted(&d->removal);
}

static int check_url(const char *text)
{
    struct wb_url url = WB_URL_INIT;
    int err = wb_url_parse(wb_slice_str(text), NULL, &url);

    if (err != WB_E_NOMEM && (err < 0 || !wb_url_is_http(&url) || wb_url_host(&url).len == 0))
        err = wb_fail(WB_E_INVALID, "'%s' is not an http or https URL", text);
    wb_url_release(&url);
    return err;
}

/* webdb forgets the page. If there is an index, its next generation is without the page. */
static int merge(const struct wb_update_options *options, const struct wb_cycle_sink *sink)
{
    struct wb_index_options index_options = {.dir = options->dir, .if_changed = true};
    struct wb_index_result result;
    struct wb_webdb_merge merged;
    struct wb_index *index = NULL;
    int err = wb_index_open(options->dir, &index);

    wb_index_close(index);
    if (err == WB_E_NOTFOUND)
        return wb_update(options, sink, &merged, NULL);
    return wb_cycle_index(options, &index_options, sink, &result);
}

int wb_delete(const struct wb_update_options *options, const char *url, const struct wb_cycle_sink *sink,
              uint64_t *bytes_out)
{
    static const struct wb_cycle_sink quiet = {NULL, NULL, NULL};
    struct deleting d = {.magic = DELETING_MAGIC, .url = wb_slice_str(url), .sink = sink ? sink : &quiet};

    *bytes_out = 0;
    int err = check_url(url);
    if (err == 0)
        err = recover_spools(options, d.sink);
    if (err == 0)
        err = wb_removal_open(options->dir, true, &d.removal);
    if (err == 0)
        err = delete_page(&d, options->dir);
    wb_removal_close(&d.removal);
    wb_buf_release(&d.href);
    if (err == 0)
        err = merge(options, d.sink);
    *bytes_out = d.bytes;
    return err;
}
