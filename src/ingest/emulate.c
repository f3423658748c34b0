/*
 * emulate.c - the crawler emulator of the WebBase paper (section 4.1): takes pages from another repository and adds
 * them to this one at a set rate, as a crawler would. Each page gets the time at which it is added.
 *
 * Pages are added in batches, a few in a second, so that a rate is kept on the average of a second and not page by
 * page. If the repository cannot keep up, it is never more than one batch behind.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "ingest/ingest.h"
#include "ingest/repository.h"
#include "os/clock.h"
#include "os/stop.h"
#include "store/store.h"

#include <time.h>

enum {
    BATCH_MS = 200,             /* a batch is what is due in this time ... */
    BATCH_PAGES = 8192,         /* ... but at most so many pages ... */
    BATCH_BYTES = 32 << 20,     /* ... or bytes */
};

/* A batch: the records of its pages, and the pages, which borrow from them. */
struct emulation {
    const struct wb_emulate_options *options;
    const struct wb_ingest_sink *sink;
    struct wb_store *source;
    struct wb_store_scan *scan;
    struct wb_page_import *target;
    struct wb_buf records[BATCH_PAGES];
    struct wb_page pages[BATCH_PAGES];
    size_t count;
    uint64_t taken;   /* pages, in all batches */
    uint64_t bytes;   /* of their records */
    uint64_t damaged; /* places of the source that cannot be read */
    uint64_t most;
    bool at_end;
};

/* Copies the next page of the source into the batch. A page that cannot be read costs an error. */
static int take_page(struct emulation *e)
{
    struct wb_page page;

    WB_CHECK(e->count < BATCH_PAGES);
    int got = wb_store_scan_next(e->scan, &page);
    if (got == WB_E_CORRUPT) {
        e->damaged++;
        struct wb_ingest_error error = {.file = e->options->source, .message = wb_error_message()};
        return e->sink->error ? e->sink->error(e->sink->context, &error) : 0;
    }
    e->at_end = got == 0;
    if (got <= 0)
        return got;
    struct wb_buf *record = &e->records[e->count];
    wb_buf_clear(record);
    int err = wb_page_encode(&page, record);
    if (err == 0)
        err = wb_page_decode(wb_buf_slice(record), &e->pages[e->count]);
    if (err < 0)
        return err;
    e->pages[e->count].id = page.id;
    e->pages[e->count++].time_ms = wb_clock_wall_ms();
    e->taken++;
    return 0;
}

/* Fills the batch with what is due, and adds it. */
static int add_due(struct emulation *e, uint64_t due, struct wb_import *counts)
{
    struct wb_import added;
    size_t bytes = 0;
    int err = 0;

    WB_CHECK(e->taken <= e->most);
    e->count = 0;
    while (err == 0 && !e->at_end && e->taken < due && e->count < BATCH_PAGES && bytes < BATCH_BYTES) {
        size_t before = e->count;
        err = take_page(e);
        bytes += e->count > before ? e->records[before].len : 0;
    }
    if (err < 0 || e->count == 0)
        return err;
    e->bytes += bytes;
    err = wb_page_import_add(e->target, e->pages, e->count, &added);
    counts->records += e->count;
    counts->pages += added.pages;
    counts->replaced += added.replaced;
    counts->captures += added.captures;
    counts->older += added.older;
    counts->barred += added.barred;
    counts->errors += added.errors;
    if (err == 0 && e->sink->commit)
        err = e->sink->commit(e->sink->context, counts->pages);
    if (e->sink->progress)
        e->sink->progress(e->sink->context,
                          &(struct wb_ingest_progress){.bytes_done = e->bytes, .count = e->taken});
    return err;
}

static void pause_ms(int64_t ms)
{
    WB_CHECK(ms <= BATCH_MS);
    if (ms > 0)
        nanosleep(&(struct timespec){.tv_nsec = (long)ms * 1000000L}, NULL);
}

static int run(struct emulation *e, struct wb_import *counts)
{
    int64_t start = wb_clock_mono_ns();
    int err = 0;

    while (err == 0 && !e->at_end && e->taken < e->most && !wb_stop_requested()) {
        int64_t began = wb_clock_mono_ns();
        double due = (double)(began - start + BATCH_MS * 1000000LL) / 1e9 * e->options->rate;
        err = add_due(e, due < (double)e->most ? (uint64_t)due : e->most, counts);
        int64_t took = (wb_clock_mono_ns() - began) / 1000000;
        double ahead = (double)e->taken / e->options->rate - (double)(wb_clock_mono_ns() - start) / 1e9;
        if (err == 0 && !e->at_end && (ahead > 0 || e->count == 0)) /* a slow rate has batches without a page */
            pause_ms(took < BATCH_MS ? BATCH_MS - took : 0);
    }
    return err;
}

/* A repository that is added to itself would grow while it is read. */
static int refuse_same(const struct wb_emulate_options *options)
{
    char source[WB_STORE_ID_HEX + 1], target[WB_STORE_ID_HEX + 1];
    int err = wb_store_id(options->source, source);

    if (err == 0 && wb_store_exists(options->dir))
        err = wb_store_id(options->dir, target);
    else
        target[0] = '\0';
    if (err == 0 && strcmp(source, target) == 0)
        err = wb_fail(WB_E_INVALID, "%s is the repository itself", options->source);
    return err;
}

int wb_emulate(const struct wb_emulate_options *options, const struct wb_ingest_sink *sink,
               struct wb_import *counts_out)
{
    struct wb_store *target = NULL;

    WB_CHECK(options->rate > 0);
    *counts_out = (struct wb_import){.files = 0};
    struct emulation *e = wb_alloc_zero(1, sizeof *e);
    if (!e)
        return WB_E_NOMEM;
    e->options = options;
    e->sink = sink;
    e->most = options->pages ? options->pages : UINT64_MAX;
    int err = refuse_same(options);
    if (err == 0)
        err = wb_store_open(options->source, WB_STORE_READ, &e->source);
    if (err == 0)
        err = wb_store_scan_open(e->source, &(struct wb_store_scan_options){.parts = 0}, &e->scan);
    if (err == 0)
        err = wb_repository_open_store(options->dir, &target); /* which makes it if there is none */
    wb_store_close(target);
    if (err == 0)
        err = wb_page_import_open(options->dir, &e->target);
    if (err == 0) {
        err = run(e, counts_out);
        counts_out->errors += e->damaged;
        int finished = wb_page_import_finish(e->target);
        err = err < 0 ? err : finished;
    }
    wb_page_import_close(e->target);
    wb_store_scan_close(e->scan);
    wb_store_close(e->source);
    for (size_t i = 0; i < BATCH_PAGES; i++)
        wb_buf_release(&e->records[i]);
    wb_free(e);
    return err;
}
