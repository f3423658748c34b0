/*
 * append_flush.c - turns the pages that a writer has collected into blocks in a segment.
 *
 * When a group of pages is full, it is sorted by site and cut into blocks. Worker threads
 * compute digests and compress, while the caller's thread collects the next group. Only
 * the caller's thread appends blocks to the file, in order, so nothing about the file needs
 * a lock. At most two groups are in flight:
 *
 *   current group --start--> [ in flight, newer ] [ in flight, older ] --land--> segment
 *
 * This file never touches the catalog, except through wb_tail_open().
 */
#include "base/check.h"
#include "base/mem.h"
#include "pagefile/append_block.h"
#include "pagefile/hashed_log.h"
#include "pagefile/segment_tail.h"

#include <pthread.h>
#include <stdlib.h>

/* A block that a worker builds. */
struct block_job {
    struct wb_builders *builders;
    struct wb_flight *flight;
    struct wb_block_page *pages;
    struct wb_record_digest *digests; /* the same records, to compute their digests */
    size_t *puts;                     /* the index of the put of each page */
    size_t count;                     /* of pages */
    struct wb_bin bin;                /* where they belong */
    struct wb_buf block;              /* the result */
    struct wb_error_copy error;       /* or the error */
};

/* A group that is being compressed. */
struct wb_flight {
    struct wb_flight *next; /* the newer one */
    struct block_job *jobs;
    size_t job_count;
    size_t left;                      /* jobs that are not done; protected by the builders' lock */
    struct wb_block_page *pages;      /* of all jobs; each job has a part of these three arrays */
    struct wb_record_digest *digests;
    size_t *puts;
};

/* Compression contexts, one for each worker. A job takes a free one and puts it back. */
struct wb_builders {
    pthread_mutex_t lock;
    pthread_cond_t done;              /* signalled when the last job of a flight is done */
    unsigned count, free;             /* the free ones are builder[0] to builder[free - 1] */
    struct wb_block_builder *builder[];
};

int wb_builders_new(unsigned count, struct wb_builders **builders_out)
{
    WB_CHECK(count > 0);

    struct wb_builders *builders = wb_alloc_zero(1, sizeof *builders + (count + 1) * sizeof builders->builder[0]);

    *builders_out = NULL;
    if (!builders)
        return WB_E_NOMEM;
    pthread_mutex_init(&builders->lock, NULL);
    pthread_cond_init(&builders->done, NULL);
    for (; builders->count < count; builders->count++) {
        int err = wb_block_builder_new(&builders->builder[builders->count]);
        if (err < 0) {
            builders->free = builders->count;
            wb_builders_free(builders);
            return err;
        }
    }
    builders->free = builders->count;
    *builders_out = builders;
    return 0;
}

void wb_builders_free(struct wb_builders *builders)
{
    if (!builders)
        return;
    WB_CHECK(builders->free == builders->count);
    for (unsigned i = 0; i < builders->count; i++)
        wb_block_builder_free(builders->builder[i]);
    pthread_mutex_destroy(&builders->lock);
    pthread_cond_destroy(&builders->done);
    wb_free(builders);
}

struct wb_block_builder *wb_builder_take(struct wb_builders *builders)
{
    pthread_mutex_lock(&builders->lock);
    WB_CHECK(builders->free > 0);
    struct wb_block_builder *builder = builders->builder[--builders->free];
    pthread_mutex_unlock(&builders->lock);
    return builder;
}

void wb_builder_give(struct wb_builders *builders, struct wb_block_builder *builder)
{
    pthread_mutex_lock(&builders->lock);
    WB_CHECK(builders->free < builders->count);
    builders->builder[builders->free++] = builder;
    pthread_mutex_unlock(&builders->lock);
}

/* Counts a job as done. The caller holds the builders' lock. */
static void end_job(struct block_job *job)
{
    WB_CHECK(job->count > 0);
    WB_CHECK(job->flight != NULL);
    WB_CHECK(job->builders != NULL);
    WB_CHECK(job->flight->left > 0);
    if (--job->flight->left == 0)
        pthread_cond_signal(&job->builders->done);
}

/* Runs in a worker. */
static void build_block(void *context)
{
    struct block_job *job = context;
    struct wb_builders *builders = job->builders;

    WB_CHECK(job->count > 0);
    WB_CHECK(job->count <= WB_BLOCK_PAGES_MAX);
    WB_CHECK(job->block.len == 0);

    struct wb_block_builder *builder = wb_builder_take(builders);
    int err = wb_page_record_digest(job->digests, job->count);
    if (err == 0)
        err = wb_block_build(builder, job->pages, job->count, &job->block);
    if (err < 0)
        wb_error_save(err, &job->error);
    wb_builder_give(builders, builder);
    pthread_mutex_lock(&builders->lock);
    end_job(job);
    pthread_mutex_unlock(&builders->lock);
}

/* ---- cutting a group into blocks ----------------------------------------------------------- */

/* The key by which a group is sorted. */
struct site_order {
    struct wb_bin bin;
    uint32_t site;
    size_t put;
};

static int compare_site_order(const void *a, const void *b)
{
    const struct site_order *x = a, *y = b;

    if (x->bin.node != y->bin.node)
        return x->bin.node < y->bin.node ? -1 : 1;
    int order = wb_catalog_range_compare(&x->bin.range, &y->bin.range);
    if (order != 0)
        return order;
    if (x->site != y->site)
        return x->site < y->site ? -1 : 1;
    return x->put < y->put ? -1 : x->put > y->put;
}

/*
 * A block ends when it is full, or when a new site begins and the block is at least half
 * full. So large sites get blocks of their own, and small sites share one.
 */
static bool block_ends(const struct wb_block_page *next, const struct wb_block_page *last, size_t count, size_t bytes)
{
    WB_CHECK(bytes > 0);
    WB_CHECK(count > 0);
    WB_CHECK(count <= WB_BLOCK_PAGES_MAX);
    if (count == WB_BLOCK_PAGES_FULL || bytes + next->record.len > wb_pagefile_sizes.block_bytes)
        return true;
    return next->site != last->site && bytes >= wb_pagefile_sizes.block_bytes / 2;
}

/* Divides the sorted pages of a flight into jobs. */
static void cut_blocks(struct wb_flight *flight, const struct site_order *order, size_t pages,
                       struct wb_builders *builders)
{
    size_t bytes = 0;

    WB_CHECK(builders->count > 0);
    WB_CHECK(pages > 0);
    WB_CHECK(flight->job_count == 0);
    for (size_t i = 0; i < pages; i++) {
        struct block_job *job = flight->job_count ? &flight->jobs[flight->job_count - 1] : NULL;
        if (!job || !wb_bin_equal(&job->bin, &order[i].bin) ||
            block_ends(&flight->pages[i], &flight->pages[i - 1], job->count, bytes)) {
            job = &flight->jobs[flight->job_count++];
            job->builders = builders;
            job->flight = flight;
            job->bin = order[i].bin;
            job->pages = flight->pages + i;
            job->digests = flight->digests + i;
            job->puts = flight->puts + i;
            bytes = 0;
        }
        job->count++;
        bytes += flight->pages[i].record.len;
    }
    WB_CHECK(flight->job_count > 0);
    WB_CHECK(flight->job_count <= pages);
}

static void flight_free(struct wb_flight *flight)
{
    WB_CHECK(flight == NULL || flight->left == 0);
    if (!flight)
        return;
    for (size_t i = 0; i < flight->job_count; i++)
        wb_buf_release(&flight->jobs[i].block);
    wb_free(flight->jobs);
    wb_free(flight->pages);
    wb_free(flight->digests);
    wb_free(flight->puts);
    wb_free(flight);
}

/*
 * Uniform distribution: each node gets a part of the group that is sorted by site, so that all have the same to do, and
 * pages of a site stay together. A group that is too small to be divided goes to one node, and the next one to another.
 */
static int deal_out(struct wb_pagefile *files, struct site_order *order, size_t count)
{
    const struct wb_put *puts = files->writer->puts.items;
    uint64_t bytes = 0, all = 0;
    int err = 0;

    for (size_t i = 0; i < count; i++)
        all += puts[order[i].put].record.len;
    uint64_t parts = wb_nodes_in_turn(files->nodes), least = wb_pagefile_sizes.block_bytes / 16;
    if (parts > 1 && all / parts < least)
        parts = all / least ? all / least : 1;
    WB_CHECK(parts > 0);
    qsort(order, count, sizeof *order, compare_site_order);
    for (size_t i = 0; i < count && err == 0; i++) {
        if (bytes >= all / parts) {
            wb_nodes_turn(files->nodes);
            bytes = 0;
        }
        bytes += puts[order[i].put].record.len;
        err = wb_bin_of(files->nodes, puts[order[i].put].id, &order[i].bin);
    }
    wb_nodes_turn(files->nodes);
    return err;
}

/* In a hashed-log, narrows the bins of a group to ranges that have a log of their own. */
static int narrow_bins(struct wb_pagefile *files, struct site_order *order, size_t count)
{
    const struct wb_put *puts = files->writer->puts.items;
    struct wb_hashed_ranges ranges = {0};
    uint64_t bytes = 0;

    if (!files->kind->divided)
        return 0;
    for (size_t i = 0; i < count; i++)
        bytes += puts[order[i].put].record.len;
    int err = wb_hashed_ranges_read(files, bytes, &ranges);
    for (size_t i = 0; i < count && err == 0; i++)
        wb_hashed_ranges_narrow(&ranges, puts[order[i].put].id, &order[i].bin);
    wb_hashed_ranges_release(&ranges);
    return err;
}

/* Finds the bins of a group. */
static int assign_bins(struct wb_pagefile *files, struct site_order *order, size_t count)
{
    int err = 0;

    WB_CHECK(files->magic == WB_PAGEFILE_MAGIC);
    WB_CHECK(count > 0);
    if (files->nodes->distribution == WB_DISTRIBUTION_UNIFORM && files->nodes->items.count)
        return deal_out(files, order, count);
    for (size_t i = 0; i < count && err == 0; i++) {
        err = wb_bin_of(files->nodes, files->writer->puts.items[order[i].put].id, &order[i].bin);
        if (err == WB_E_DOWN) /* since the page was put. A segment that is open there may still be good. */
            err = 0;
    }
    return err;
}

/* Makes a flight of those puts of the current group that are not placed: `count` of them. */
static int flight_new(struct wb_pagefile *files, size_t count, struct wb_flight **flight_out)
{
    struct wb_pagefile_writer *writer = files->writer;
    size_t n = 0;

    WB_CHECK(writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    WB_CHECK(count > 0);

    struct site_order *order = wb_alloc(count * sizeof *order);
    struct wb_flight *flight = wb_alloc_zero(1, sizeof *flight);
    int err = WB_E_NOMEM;

    *flight_out = NULL;
    if (!order || !flight)
        goto failed;
    flight->jobs = wb_alloc_zero(count, sizeof *flight->jobs);
    flight->pages = wb_alloc_zero(count, sizeof *flight->pages);
    flight->digests = wb_alloc_zero(count, sizeof *flight->digests);
    flight->puts = wb_alloc_zero(count, sizeof *flight->puts);
    if (!flight->jobs || !flight->pages || !flight->digests || !flight->puts)
        goto failed;
    for (size_t i = writer->group_at; i < writer->puts.count; i++)
        if (!writer->puts.items[i].placed)
            order[n++] = (struct site_order){.site = writer->puts.items[i].site, .put = i};
    WB_CHECK(n == count);
    err = assign_bins(files, order, count);
    if (err == 0)
        err = narrow_bins(files, order, count);
    if (err < 0)
        goto failed;
    qsort(order, count, sizeof *order, compare_site_order);
    for (size_t i = 0; i < count; i++) {
        const struct wb_put *put = &writer->puts.items[order[i].put];
        flight->puts[i] = order[i].put;
        WB_CHECK(!put->placed);
        WB_CHECK(put->record.len > 0);
        flight->digests[i] = (struct wb_record_digest){put->record.ptr, put->record.len, put->body_bytes};
        flight->pages[i] =
            (struct wb_block_page){.id = put->id, .record = wb_buf_slice(&put->record), .site = put->site_hash};
    }
    cut_blocks(flight, order, count, writer->builders);
    wb_free(order);
    *flight_out = flight;
    return 0;
failed:
    wb_free(order);
    flight_free(flight);
    return err;
}

/* ---- appending ---------------------------------------------------------------------------------- */

int wb_tail_find(struct wb_pagefile *files, const struct wb_bin *bin, struct wb_tail **tail_out)
{
    struct wb_pagefile_writer *writer = files->writer;

    WB_CHECK(files->magic == WB_PAGEFILE_MAGIC);
    WB_CHECK(bin->node > 0);
    /* In a hashed-log, ranges are divided between groups, so the last blocks of a group may make a log too long. */
    uint64_t limit = wb_segment_limit(files) * (files->kind->divided ? 2 : 1);
    for (size_t i = writer->tails.count; i > 0; i--) {
        *tail_out = &writer->tails.items[i - 1];
        if (wb_bin_equal(&(*tail_out)->bin, bin) && (*tail_out)->bytes < limit)
            return 0;
    }
    int err = wb_tail_open(files, bin);
    *tail_out = err == 0 ? &writer->tails.items[writer->tails.count - 1] : NULL;
    return err;
}

/* Writes a finished block behind the others of its bin. */
static int write_block(struct wb_pagefile *files, const struct wb_bin *bin, char *block, size_t len,
                       struct wb_tail **tail_out)
{
    int err = wb_tail_find(files, bin, tail_out);
    struct wb_tail *tail = *tail_out;

    if (err < 0)
        return err;
    WB_CHECK(tail->bytes >= WB_SEGMENT_HEADER_BYTES);
    WB_CHECK(len > WB_BLOCK_HEADER_BYTES);
    wb_block_stamp(block, wb_segment_name_at(&tail->segment, tail->bytes), files->writer->commit);
    return wb_node_file_write_at(&tail->segment.file, tail->bytes, block, len);
}

int wb_bin_other(struct wb_pagefile *files, struct wb_pageid id, int err, struct wb_bin *bin)
{
    struct wb_error_copy why;

    WB_CHECK(files->magic == WB_PAGEFILE_MAGIC);
    WB_CHECK(bin->node > 0);
    wb_error_save(err, &why);
    if (wb_pagefile_renew_nodes(files) == 0 && wb_bin_renew(files->nodes, id, bin) > 0) /* its node was removed */
        return 0;
    return wb_bin_instead(files->nodes, id, wb_error_restore(&why), bin);
}

int wb_append(struct wb_pagefile *files, struct wb_pageid id, struct wb_bin bin, struct wb_buf *block,
              struct wb_tail **tail_out)
{
    int err;

    WB_CHECK(files->magic == WB_PAGEFILE_MAGIC);
    WB_CHECK(bin.node > 0);
    /* Each time, there is one node less to choose from. */
    while ((err = write_block(files, &bin, block->ptr, block->len, tail_out)) < 0) {
        err = wb_bin_other(files, id, err, &bin);
        if (err < 0)
            return err;
    }
    return 0;
}

/* Appends a finished block to the segment of its bin, and tells its puts where they are. */
static int append_block(struct wb_pagefile *files, struct block_job *job)
{
    struct wb_pagefile_writer *writer = files->writer;
    struct wb_tail *tail = NULL;
    int err = job->error.code < 0 ? wb_error_restore(&job->error) : 0;

    WB_CHECK(writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    WB_CHECK(job->error.code < 0 || job->count > 0);
    if (err == 0)
        err = wb_append(files, job->pages[0].id, job->bin, &job->block, &tail);
    if (err < 0)
        return err;
    uint64_t logical = wb_segment_name_at(&tail->segment, tail->bytes);
    for (size_t i = 0; i < job->count; i++) {
        struct wb_put *put = &writer->puts.items[job->puts[i]];
        WB_CHECK(!put->placed);
        put->place = (struct wb_catalog_place){tail->segment.number, job->pages[i].slot, logical};
        put->stored_bytes = job->pages[i].stored_bytes;
        put->placed = true;
        memcpy(put->sha1, put->record.ptr + WB_MD5_BYTES, WB_SHA1_BYTES); /* the record starts with its digests */
        wb_buf_release(&put->record);
    }
    tail->bytes += job->block.len;
    tail->pages_appended += job->count;
    wb_buf_release(&job->block);
    return 0;
}

/* Waits for the oldest group in flight and appends its blocks. */
static int land(struct wb_pagefile *files)
{
    struct wb_pagefile_writer *writer = files->writer;
    struct wb_flight *flight = writer->flight;
    int err = 0;

    WB_CHECK(writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    WB_CHECK(flight != NULL);
    pthread_mutex_lock(&writer->builders->lock);
    while (flight->left)
        pthread_cond_wait(&writer->builders->done, &writer->builders->lock);
    pthread_mutex_unlock(&writer->builders->lock);
    for (size_t i = 0; i < flight->job_count && err == 0; i++)
        err = append_block(files, &flight->jobs[i]);
    writer->flight = flight->next;
    flight_free(flight);
    return err;
}

static void submit_jobs(struct wb_pagefile_writer *writer, struct wb_flight *flight)
{
    WB_CHECK(writer->pool != NULL);
    WB_CHECK(flight->job_count > 0);
    WB_CHECK(flight->left == 0);
    flight->left = flight->job_count;
    for (size_t i = 0; i < flight->job_count; i++) {
        struct block_job *job = &flight->jobs[i];
        int err = wb_pool_submit(writer->pool, build_block, job);
        if (err == 0)
            continue;
        wb_error_save(err, &job->error); /* returned when the group lands */
        pthread_mutex_lock(&writer->builders->lock);
        end_job(job);
        pthread_mutex_unlock(&writer->builders->lock);
    }
}

/* Puts the current group in flight, then lands the older one. */
int wb_flush_start(struct wb_pagefile *files)
{
    struct wb_pagefile_writer *writer = files->writer;
    struct wb_flight *older = writer->flight, *flight;
    size_t count = 0;

    WB_CHECK(writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    WB_CHECK(writer->group_at <= writer->puts.count);
    for (size_t i = writer->group_at; i < writer->puts.count; i++)
        count += !writer->puts.items[i].placed;
    if (count) {
        int err = flight_new(files, count, &flight);
        if (err < 0)
            return err;
        WB_CHECK(!older || !older->next);
        *(older ? &older->next : &writer->flight) = flight;
        submit_jobs(writer, flight);
    }
    writer->group_at = writer->puts.count;
    writer->group_bytes = 0;
    return older ? land(files) : 0;
}

int wb_flush_all(struct wb_pagefile *files)
{
    int err = wb_flush_start(files);

    while (err == 0 && files->writer->flight)
        err = land(files);
    return err < 0 ? err : wb_append_runs_end(files);
}

void wb_flush_drop(struct wb_pagefile *files)
{
    struct wb_pagefile_writer *writer = files->writer;
    struct wb_flight *flight = writer->flight;

    WB_CHECK(writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    if (flight)
        wb_pool_wait(writer->pool);
    writer->flight = NULL;
    wb_append_runs_drop(files);
    while (flight) {
        struct wb_flight *next = flight->next;
        flight_free(flight);
        flight = next;
    }
}
