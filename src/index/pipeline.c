/*
 * pipeline.c - three stages and two queues.
 *
 *   free batches -> loader -> full batches -> workers -> full inverters -> flusher -> empty inverters -> workers
 *
 * The number of batches and inverters is fixed, which bounds the memory: a thread that is ahead waits. The first error
 * of any thread stops all of them; it is the one that is reported.
 */
#include "index/pipeline.h"
#include "base/arena.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "index/inverter.h"
#include "index/docwords.h"
#include "os/limits.h"

#include <stdatomic.h>

enum {
    BATCH_BYTES = 2 << 20, /* of pages that travel together */
    BATCH_PAGES = 256,
    WORKERS_MAX = 64,
    MEMORY_SHARE_MIN = 1 << 20,
};

struct page_batch {
    struct page_batch *next;
    struct wb_arena bytes;
    size_t byte_count;
    struct wb_page pages[BATCH_PAGES];
    uint32_t docids[BATCH_PAGES];
    int64_t modified_ms[BATCH_PAGES]; /* according to the heads, which do not travel; 0: unknown */
    size_t count;
};

struct flushing {
    struct flushing *next;
    struct wb_inverter *inverter;
};

struct pipeline {
    struct wb_build *build;
    pthread_mutex_t mutex;
    pthread_cond_t changed;
    struct page_batch *free, *full, **full_end; /* full ones in their order */
    struct flushing *empty, *waiting;           /* inverters */
    unsigned workers;                           /* that have not ended */
    bool loaded;                                /* there are no more batches to come */
    struct wb_error_copy error;                 /* code < 0: the first error */
    uint64_t loaded_pages, pages;               /* so far; in all */
};

/* The caller has the mutex. */
static bool failed(const struct pipeline *pipeline)
{
    return pipeline->error.code < 0;
}

/* Notes the first error; the others stop when they see it. Returns err. */
static int note(struct pipeline *pipeline, int err)
{
    if (err < 0) {
        pthread_mutex_lock(&pipeline->mutex);
        if (!failed(pipeline))
            wb_error_save(err, &pipeline->error);
        pthread_cond_broadcast(&pipeline->changed);
        pthread_mutex_unlock(&pipeline->mutex);
    }
    return err;
}

/* ---- loading ----------------------------------------------------------------------------------- */

static int copy_slice(struct page_batch *batch, struct wb_slice *s)
{
    batch->byte_count += s->len;
    return wb_arena_copy(&batch->bytes, *s, s);
}

static int copy_page(struct page_batch *batch, const struct wb_page *page, uint32_t docid)
{
    WB_CHECK(batch->count < BATCH_PAGES);
    struct wb_page *copy = &batch->pages[batch->count];
    *copy = *page;
    batch->docids[batch->count] = docid;
    batch->modified_ms[batch->count] = wb_http_modified(page->head, page->time_ms);
    copy->head = WB_SLICE_EMPTY;
    int err = copy_slice(batch, &copy->url);
    if (err == 0)
        err = copy_slice(batch, &copy->key);
    if (err == 0)
        err = copy_slice(batch, &copy->type);
    if (err == 0)
        err = copy_slice(batch, &copy->charset);
    if (err == 0)
        err = copy_slice(batch, &copy->body);
    batch->count += err == 0;
    return err;
}

static void clear_batch(struct page_batch *batch)
{
    wb_arena_clear(&batch->bytes);
    batch->byte_count = 0;
    batch->count = 0;
}

/* Adds the next page that must be read. Returns 1, 0 at the end, or an error. */
static int load_page(struct pipeline *pipeline, struct wb_store_scan *scan, struct page_batch *batch)
{
    struct wb_build *build = pipeline->build;
    struct wb_page page;

    for (;;) {
        int more = wb_store_scan_next(scan, &page);
        if (more == WB_E_CORRUPT) {
            wb_build_damaged(build);
            continue;
        }
        if (more <= 0)
            return more;
        const struct wb_roster_page *entry = wb_roster_find(&build->roster, page.id);
        if (!entry || entry->docid == WB_DOCID_NONE || !wb_carry_is_fresh(&build->carry, entry->docid))
            continue;
        int err = copy_page(batch, &page, entry->docid);
        pipeline->loaded_pages++;
        return err < 0 ? err : 1;
    }
}

static int load_batch(struct pipeline *pipeline, struct wb_store_scan *scan, struct page_batch *batch)
{
    int more = 1;

    clear_batch(batch);
    while (more > 0 && batch->count < BATCH_PAGES && batch->byte_count < BATCH_BYTES)
        more = load_page(pipeline, scan, batch);
    if (more < 0)
        return more;
    int err = wb_build_progress(pipeline->build, "reading pages", pipeline->loaded_pages, pipeline->pages);
    return err < 0 ? err : more;
}

static int open_scan(struct wb_build *build, struct wb_store_scan **scan_out)
{
    struct wb_store_scan_options options = {.snapshot = build->snapshot.number, .since = UINT64_MAX};

    /*
     * As a rule, what must be read arrived after the last generation. But a page may be older and nevertheless new
     * here, because webdb did not know it before.
     */
    for (size_t i = 0; i < build->roster.page_count; i++) {
        const struct wb_roster_page *page = &build->roster.pages[i];
        if (page->docid != WB_DOCID_NONE && wb_carry_is_fresh(&build->carry, page->docid) &&
            page->epoch <= options.since)
            options.since = page->epoch ? page->epoch - 1 : 0;
    }
    return wb_store_scan_open(build->store, &options, scan_out);
}

static struct page_batch *wait_free(struct pipeline *pipeline)
{
    struct page_batch *batch;

    pthread_mutex_lock(&pipeline->mutex);
    while (!pipeline->free && !failed(pipeline))
        pthread_cond_wait(&pipeline->changed, &pipeline->mutex);
    batch = failed(pipeline) ? NULL : pipeline->free;
    if (batch)
        pipeline->free = batch->next;
    pthread_mutex_unlock(&pipeline->mutex);
    return batch;
}

static void *loader(void *context)
{
    struct pipeline *pipeline = context;
    struct wb_store_scan *scan = NULL;
    struct page_batch *batch;
    int more = open_scan(pipeline->build, &scan);

    for (more = more < 0 ? more : 1; more > 0 && (batch = wait_free(pipeline));) {
        more = load_batch(pipeline, scan, batch);
        pthread_mutex_lock(&pipeline->mutex);
        WB_CHECK(!*pipeline->full_end && !pipeline->loaded);
        batch->next = NULL;
        *pipeline->full_end = batch;
        pipeline->full_end = &batch->next;
        pthread_cond_broadcast(&pipeline->changed);
        pthread_mutex_unlock(&pipeline->mutex);
    }
    note(pipeline, more < 0 ? more : 0);
    wb_store_scan_close(scan);
    pthread_mutex_lock(&pipeline->mutex);
    pipeline->loaded = true;
    pthread_cond_broadcast(&pipeline->changed);
    pthread_mutex_unlock(&pipeline->mutex);
    return NULL;
}

/* ---- processing -------------------------------------------------------------------------------- */

static int keep_work(struct wb_build *build, uint32_t docid, const struct wb_docfacts *work, uint64_t bytes)
{
    char key[4];

    WB_CHECK(docid < build->roster.known);
    WB_CHECK(build->contents != NULL);
    build->contents[docid] = (struct wb_content_fact){work->published_ms, work->modified_ms, work->words, work->lang};
    build->lengths[docid] = wb_length_byte(work->length);
    wb_put32_be(key, docid);
    pthread_mutex_lock(&build->mutex);
    int err = wb_sorter_add(build->titles, wb_slice(key, sizeof key), work->title);
    if (err == 0)
        err = wb_textwork_add(build, docid, work->kept);
    if (err == 0)
        err = wb_factcolumns_add(build, docid, work->facts, work->fact_count);
    build->result->read++;
    build->result->html_bytes += bytes;
    pthread_mutex_unlock(&build->mutex);
    return err;
}

static int flush(struct pipeline *pipeline, struct wb_inverter *inverter)
{
    struct wb_run_writer writer;

    WB_CHECK(inverter != NULL);
    if (wb_inverter_empty(inverter))
        return 0;
    int err = wb_build_run(pipeline->build, &writer);
    if (err < 0)
        return err;
    err = wb_inverter_flush(inverter, &writer);
    int finished = wb_run_finish(&writer);
    return err < 0 ? err : finished;
}

/* Hands the worker's inverter to the flusher, and takes an empty one. */
static int swap_inverter(struct pipeline *pipeline, struct wb_docwords *worker)
{
    struct flushing *empty;

    pthread_mutex_lock(&pipeline->mutex);
    while (!pipeline->empty && !failed(pipeline))
        pthread_cond_wait(&pipeline->changed, &pipeline->mutex);
    empty = failed(pipeline) ? NULL : pipeline->empty;
    if (empty) {
        struct wb_inverter *full = worker->inverter;
        WB_CHECK(full != empty->inverter);
        WB_CHECK(wb_inverter_empty(empty->inverter));
        pipeline->empty = empty->next;
        worker->inverter = empty->inverter;
        empty->inverter = full;
        empty->next = pipeline->waiting;
        pipeline->waiting = empty;
        pthread_cond_broadcast(&pipeline->changed);
    }
    pthread_mutex_unlock(&pipeline->mutex);
    return empty ? 0 : WB_E_STOPPED;
}

static int process_batch(struct pipeline *pipeline, struct wb_docwords *worker, const struct page_batch *batch)
{
    struct wb_docfacts work;
    int err = 0;

    WB_CHECK(batch->count <= BATCH_PAGES && worker->inverter);
    for (size_t i = 0; err == 0 && i < batch->count; i++) {
        err = wb_docwords_page(worker, batch->docids[i], &batch->pages[i], &work);
        if (err == 0 && work.modified_ms == 0)
            work.modified_ms = batch->modified_ms[i];
        if (err == 0)
            err = keep_work(pipeline->build, batch->docids[i], &work, batch->pages[i].body.len);
        if (err == 0 && wb_inverter_full(worker->inverter))
            err =
                pipeline->build->options->serial ? flush(pipeline, worker->inverter) : swap_inverter(pipeline, worker);
    }
    return err;
}

/* The next full batch; NULL if there are no more to come. */
static struct page_batch *wait_full(struct pipeline *pipeline)
{
    struct page_batch *batch;

    pthread_mutex_lock(&pipeline->mutex);
    while (!pipeline->full && !pipeline->loaded && !failed(pipeline))
        pthread_cond_wait(&pipeline->changed, &pipeline->mutex);
    batch = failed(pipeline) ? NULL : pipeline->full;
    if (batch) {
        pipeline->full = batch->next;
        if (!pipeline->full)
            pipeline->full_end = &pipeline->full;
    }
    pthread_mutex_unlock(&pipeline->mutex);
    return batch;
}

static size_t inverter_bytes(const struct wb_build *build)
{
    /* One for each worker, and one that is being flushed, which for a moment takes twice its size. */
    size_t share = build->memory_bytes / (build->threads + 2);

    return share > MEMORY_SHARE_MIN ? share : MEMORY_SHARE_MIN;
}

static void *worker_thread(void *context)
{
    struct pipeline *pipeline = context;
    struct wb_docwords worker;
    struct page_batch *batch;
    int err = wb_docwords_init(&worker, inverter_bytes(pipeline->build));

    while (err == 0 && (batch = wait_full(pipeline))) {
        err = process_batch(pipeline, &worker, batch);
        pthread_mutex_lock(&pipeline->mutex);
        batch->next = pipeline->free;
        pipeline->free = batch;
        pthread_cond_broadcast(&pipeline->changed);
        pthread_mutex_unlock(&pipeline->mutex);
    }
    if (err == 0)
        err = flush(pipeline, worker.inverter);
    note(pipeline, err);
    wb_docwords_release(&worker);
    pthread_mutex_lock(&pipeline->mutex);
    WB_CHECK(pipeline->workers > 0);
    pipeline->workers--;
    pthread_cond_broadcast(&pipeline->changed);
    pthread_mutex_unlock(&pipeline->mutex);
    return NULL;
}

/* ---- flushing ---------------------------------------------------------------------------------- */

static void *flusher(void *context)
{
    struct pipeline *pipeline = context;
    int err = 0;

    pthread_mutex_lock(&pipeline->mutex);
    for (;;) {
        while (!pipeline->waiting && pipeline->workers && !failed(pipeline))
            pthread_cond_wait(&pipeline->changed, &pipeline->mutex);
        struct flushing *full = pipeline->waiting;
        if (!full || failed(pipeline))
            break;
        pipeline->waiting = full->next;
        pthread_mutex_unlock(&pipeline->mutex);
        err = note(pipeline, flush(pipeline, full->inverter));
        pthread_mutex_lock(&pipeline->mutex);
        full->next = pipeline->empty;
        pipeline->empty = full;
        pthread_cond_broadcast(&pipeline->changed);
        if (err < 0)
            break;
    }
    pthread_mutex_unlock(&pipeline->mutex);
    return NULL;
}

/* ---- both ways --------------------------------------------------------------------------------- */

static int run_serial(struct pipeline *pipeline, struct page_batch *batch)
{
    struct wb_docwords worker;
    struct wb_store_scan *scan = NULL;
    int more = 1, err = wb_docwords_init(&worker, inverter_bytes(pipeline->build));

    if (err == 0)
        err = open_scan(pipeline->build, &scan);
    while (err == 0 && more > 0) {
        more = load_batch(pipeline, scan, batch);
        err = more < 0 ? more : process_batch(pipeline, &worker, batch);
    }
    if (err == 0)
        err = flush(pipeline, worker.inverter);
    wb_store_scan_close(scan);
    wb_docwords_release(&worker);
    return err;
}

static int run_parallel(struct pipeline *pipeline, unsigned workers)
{
    pthread_t threads[WORKERS_MAX + 2];
    unsigned started = 0;
    void *(*stages[2])(void *) = {flusher, loader};

    WB_CHECK(workers > 0 && workers <= WORKERS_MAX);
    pipeline->workers = workers;
    for (unsigned i = 0; i < workers + 2; i++) {
        int problem = pthread_create(&threads[i], NULL, i < workers ? worker_thread : stages[i - workers], pipeline);
        if (problem) {
            note(pipeline, wb_fail(WB_E_LIMIT, "cannot start a thread"));
            pthread_mutex_lock(&pipeline->mutex);
            pipeline->workers -= i < workers ? workers - i : 0;
            pthread_mutex_unlock(&pipeline->mutex);
            break;
        }
        started++;
    }
    for (unsigned i = 0; i < started; i++)
        pthread_join(threads[i], NULL);
    return failed(pipeline) ? wb_error_restore(&pipeline->error) : 0;
}

static uint64_t count_fresh(const struct wb_build *build)
{
    uint64_t fresh = 0;

    for (uint64_t docid = 0; docid < build->roster.known; docid++)
        fresh += wb_carry_is_fresh(&build->carry, (uint32_t)docid);
    return fresh;
}

int wb_pipeline(struct wb_build *build)
{
    unsigned workers = build->threads < WORKERS_MAX ? build->threads : WORKERS_MAX;
    struct pipeline pipeline = {.build = build, .pages = count_fresh(build)};
    struct page_batch *batches = wb_alloc_zero(workers + 2, sizeof *batches);
    struct flushing empty[1] = {{.next = NULL}};
    int err = batches ? wb_inverter_new(inverter_bytes(build), &empty[0].inverter) : WB_E_NOMEM;

    if (err == 0 && pipeline.pages) {
        pthread_mutex_init(&pipeline.mutex, NULL);
        pthread_cond_init(&pipeline.changed, NULL);
        pipeline.full_end = &pipeline.full;
        pipeline.empty = empty;
        for (unsigned i = 0; i < workers + 2; i++) {
            batches[i].next = pipeline.free;
            pipeline.free = &batches[i];
        }
        err = build->options->serial ? run_serial(&pipeline, batches) : run_parallel(&pipeline, workers);
        pthread_cond_destroy(&pipeline.changed);
        pthread_mutex_destroy(&pipeline.mutex);
    }
    for (unsigned i = 0; batches && i < workers + 2; i++)
        wb_arena_release(&batches[i].bytes);
    wb_free(batches);
    wb_inverter_free(empty[0].inverter);
    return err;
}
