/*
 * rebuild.c - adds stored pages and their links to webdb, by extracting each page again as a crawl does: all of them to
 * a webdb that is being rebuilt, or those that no journal has told of. A page whose old row could be read keeps what
 * that row says, because an event that is not newer than the last one changes nothing.
 */
#include "base/check.h"
#include "base/error.h"
#include "cycle/update.h"
#include "extract/extract.h"
#include "os/stop.h"
#include "store/store.h"

#define PROGRESS_PAGES 256
#define DAMAGES_SHOWN 20

struct rebuild {
    struct wb_webdb_writer *writer;
    const struct wb_cycle_sink *sink;
    struct wb_factfinder finder;
    uint64_t done, damaged;
};

/* One bit can damage a lot: only the first places are shown. */
static void warn_of_damage(struct rebuild *r)
{
    if (r->sink->warn && r->damaged < DAMAGES_SHOWN)
        r->sink->warn(r->sink->context, wb_error_message());
    r->damaged++;
}

static int take_page(struct rebuild *r, const struct wb_page *page)
{
    struct wb_edit edit = {.kind = WB_EDIT_PAGE, .time_ms = page->time_ms};
    struct wb_pagefacts facts;
    struct wb_extract extract;

    bool is_web = wb_slice_starts(page->url, WB_SLICE_LIT("http:")) ||
                  wb_slice_starts(page->url, WB_SLICE_LIT("https:"));
    if (page->status / 100 != 2 || !is_web)
        return 0;
    edit.page = (struct wb_edit_page){.url = page->url,
                                      .outcome = page->truncated ? WB_OUTCOME_TRUNCATED : WB_OUTCOME_STORED,
                                      .status = page->status, .lifetime = page->lifetime, .bytes = page->body_bytes};
    int err = wb_factfinder_read(&r->finder, page, wb_http_agent_token(WB_SLICE_LIT(WB_HTTP_AGENT)), WB_EXTRACT_LINKS,
                                 &facts, &extract);
    if (err < 0)
        return err;
    wb_edit_page_describe(&edit.page, page, &facts);
    return wb_webdb_add_visit(r->writer, &edit);
}

static int go_on(struct rebuild *r, uint64_t pages)
{
    if (r->done++ % PROGRESS_PAGES)
        return 0;
    if (wb_stop_requested() ||
        (r->sink->progress && !r->sink->progress(r->sink->context, "reading pages", r->done, pages)))
        return wb_fail(WB_E_STOPPED, "stopped; the web database is as it was");
    return 0;
}

static int read_pages(struct rebuild *r, struct wb_store *store)
{
    struct wb_store_scan_options options = {.anytime = true}; /* reconcile.c says why */
    struct wb_store_stat stat;
    struct wb_store_scan *scan = NULL;
    struct wb_page page;
    int got = 0, err = wb_store_stat(store, &stat);

    if (err == 0)
        err = wb_store_scan_open(store, &options, &scan);
    while (err == 0 && (got = wb_store_scan_next(scan, &page)) != 0) {
        if (got == WB_E_CORRUPT)
            warn_of_damage(r);
        if (got < 0 && got != WB_E_CORRUPT)
            err = got;
        else if (got > 0)
            err = take_page(r, &page);
        if (err == 0)
            err = go_on(r, stat.pages);
    }
    wb_store_scan_close(scan);
    return err;
}

int wb_rebuild_links(const char *dir, struct wb_webdb_writer *writer, const struct wb_cycle_sink *sink)
{
    struct rebuild r = {.writer = writer, .sink = sink, .finder = WB_FACTFINDER_INIT};
    struct wb_store *store = NULL;
    int err = wb_store_open(dir, WB_STORE_READ, &store);

    if (err == 0)
        err = wb_factfinder_init(&r.finder);
    if (err == 0)
        err = read_pages(&r, store);
    wb_factfinder_release(&r.finder);
    wb_store_close(store);
    return err;
}

/* Called for each page that is wanted. One that was removed meanwhile, or is damaged, stays unknown. */
static int take_wanted(void *context, size_t index, int err, const struct wb_page *page)
{
    struct rebuild *r = context;

    (void)index;
    if (err == WB_E_CORRUPT)
        warn_of_damage(r);
    if (err < 0)
        return err == WB_E_CORRUPT || err == WB_E_NOTFOUND ? 0 : err;
    err = take_page(r, page);
    return err < 0 ? err : go_on(r, 0);
}

int wb_rebuild_pages(struct wb_store *store, struct wb_webdb_writer *writer, const struct wb_cycle_sink *sink,
                     const struct wb_pageid *ids, size_t count)
{
    WB_CHECK(count > 0);
    struct rebuild r = {.writer = writer, .sink = sink, .finder = WB_FACTFINDER_INIT};
    struct wb_store_when latest = {.kind = WB_STORE_WHEN_LATEST};
    int err = wb_factfinder_init(&r.finder);

    if (err == 0)
        err = wb_store_get_many(store, ids, count, &latest, take_wanted, &r);
    wb_factfinder_release(&r.finder);
    return err;
}
