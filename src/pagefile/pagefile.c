/*
 * pagefile.c - the files of an open repository: which organisation they have, reading through the catalog, and the
 * records of a writer until they are committed.
 */
#include "pagefile/pagefile_files.h"
#include "base/check.h"
#include "base/mem.h"
#include "os/limits.h"
#include "pagefile/append_block.h"
#include "pagefile/bucket.h"
#include "pagefile/segment_tail.h"

enum { WORKERS_MAX = 8 };

struct wb_pagefile_sizes wb_pagefile_sizes = {
    .segment_bytes = WB_SEGMENT_BYTES_MAX,
    .hashed_bytes = 10 << 20,
    .block_bytes = WB_BLOCK_RAW_TARGET,
    .group_bytes = 16 << 20,
    .giant_bytes = 8 << 20,
    .spare_bytes = 64 << 20,
    .bucket_bytes = WB_BUCKET_BYTES,
    .large_bytes = WB_BUCKET_LARGE_BYTES,
    .pending_bytes = 64 << 20,
};

/* ---- organisations ---------------------------------------------------------------------------------------- */

extern const struct wb_pagefile_kind wb_pagefile_log, wb_pagefile_hash, wb_pagefile_hashed_log;

static const struct wb_pagefile_kind *const kinds[] = {
    [WB_ORGANISATION_LOG] = &wb_pagefile_log,
    [WB_ORGANISATION_HASH] = &wb_pagefile_hash,
    [WB_ORGANISATION_HASHED_LOG] = &wb_pagefile_hashed_log,
};

const struct wb_pagefile_kind *wb_pagefile_kind(enum wb_organisation_kind organisation)
{
    WB_CHECK((size_t)organisation < sizeof kinds / sizeof *kinds);
    return kinds[organisation];
}

/* ---- the handle ------------------------------------------------------------------------------------------- */

int wb_pagefile_init(struct wb_pagefile *files)
{
    WB_CHECK(files->magic == 0);
    WB_CHECK(files->superblock && files->dir);
    files->magic = WB_PAGEFILE_MAGIC;
    files->kind = wb_pagefile_kind(files->superblock->design.read.organisation);
    for (size_t i = 0; i < WB_PAGEFILE_OPEN_MAX; i++)
        files->open[i] = WB_SEGMENT_INIT;
    int err = wb_segment_reader_init(&files->source);
    return err < 0 || !files->kind->open ? err : files->kind->open(files);
}

void wb_pagefile_release(struct wb_pagefile *files)
{
    if (files->magic == 0)
        return;
    WB_CHECK(files->magic == WB_PAGEFILE_MAGIC);
    WB_CHECK(!files->writer);
    if (files->kind->close)
        files->kind->close(files);
    for (size_t i = 0; i < WB_PAGEFILE_OPEN_MAX; i++)
        wb_segment_close(&files->open[i]);
    wb_segment_reader_release(&files->source);
    wb_vec_release(&files->parts);
    files->magic = 0;
}

/* ---- reading ------------------------------------------------------------------------------------------------ */

struct pagefile_read {
    struct wb_pagefile *files;
    int (*read)(void *context);
    void *context;
};

static int read_once(void *context)
{
    struct pagefile_read *r = context;
    struct wb_catalog_txn *reader = r->files->reader;
    int err = wb_catalog_txn_wake(reader);

    WB_CHECK(r->files->magic == WB_PAGEFILE_MAGIC);
    if (err < 0)
        return err;
    err = wb_nodes_refresh(r->files->nodes, reader);
    if (err == 0)
        err = r->read(r->context);
    if (reader->kind != WB_CATALOG_TXN_PARKED) /* it is parked if the function failed to wake it again */
        wb_catalog_txn_park(reader);
    return err;
}

int wb_pagefile_read(struct wb_pagefile *files, int (*read)(void *context), void *context)
{
    struct pagefile_read r = {files, read, context};

    WB_CHECK(files->magic == WB_PAGEFILE_MAGIC);
    WB_CHECK(files->reader->kind == WB_CATALOG_TXN_PARKED); /* no lookup inside another one */
    int err = wb_catalog_call(files->catalog, read_once, &r);
    WB_CHECK(files->reader->kind == WB_CATALOG_TXN_PARKED);
    return err;
}

struct overview_read {
    struct wb_pagefile *files;
    struct wb_overview overview;
};

static int read_overview(void *context)
{
    struct overview_read *r = context;
    int err = wb_catalog_summary_get(r->files->reader, &r->overview.summary);

    WB_CHECK(r->overview.rows.count == 0);
    return err < 0 ? err : wb_catalog_rows_read(r->files->reader, &r->overview.rows);
}

int wb_pagefile_overview(struct wb_pagefile *files, struct wb_overview *overview_out)
{
    struct overview_read r = {.files = files};
    int err = wb_pagefile_read(files, read_overview, &r);

    WB_CHECK(err == 0 || r.overview.rows.count == 0);
    *overview_out = r.overview;
    return err;
}

static int look_at_nothing(void *context)
{
    (void)context;
    return 0;
}

int wb_pagefile_renew_nodes(struct wb_pagefile *files)
{
    return wb_pagefile_read(files, look_at_nothing, NULL);
}

uint64_t wb_pagefile_newest_commit(struct wb_pagefile *files)
{
    struct wb_overview o = {0};

    WB_CHECK(files->writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    int err = wb_pagefile_overview(files, &o);
    wb_catalog_rows_release(&o.rows);
    return err == 0 ? o.summary.commit : files->writer->commit;
}

static int look_up_file(void *context)
{
    struct wb_pagefile_file *f = context;
    struct wb_catalog_txn *txn = f->files->reader;
    struct wb_catalog_segment row;
    int err = wb_catalog_segment_get(txn, f->number, &row);

    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    if (err < 0 && err != WB_E_NOTFOUND)
        return err;
    f->known = err == 0 && f->node == row.node && f->revision <= row.revision;
    return f->known ? 0 : wb_catalog_retired_has(txn, f->number, f->revision, &f->known);
}

int wb_pagefile_look_up(struct wb_pagefile_file *file)
{
    WB_CHECK(file->files->magic == WB_PAGEFILE_MAGIC);
    return wb_pagefile_read(file->files, look_up_file, file);
}

/* ---- pages ------------------------------------------------------------------------------------------------ */

int wb_pagefile_identify(struct wb_page *page, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    page->id = wb_pageid_of_key(page->key);
    if (!wb_pageid_equal(page->id, id))
        return wb_fail(WB_E_CORRUPT, "the page %.*s is stored in the place of another one", WB_SLICE_ARG(page->key));
    if (entry) {
        WB_CHECK(entry->epoch > 0);
        page->time_ms = entry->time_ms;
        page->epoch = entry->epoch;
        page->lifetime = entry->ended ? page->lifetime : entry->lifetime; /* a later capture may have changed it */
        page->lifetime_count = entry->lifetime_count;
    }
    return 0;
}

int wb_pagefile_page(struct wb_slice record, struct wb_pageid id, const struct wb_catalog_entry *entry,
                     struct wb_page *page_out)
{
    int err = wb_page_decode(record, page_out);

    return err < 0 ? err : wb_pagefile_identify(page_out, id, entry);
}

int wb_pagefile_check_digests(const struct wb_page *page)
{
    struct wb_page again = *page;

    again.digested = false;
    wb_page_digest(&again);
    if (page->digested && memcmp(again.md5, page->md5, sizeof page->md5) == 0 &&
        memcmp(again.sha1, page->sha1, sizeof page->sha1) == 0)
        return 0;
    return wb_fail(WB_E_CORRUPT, "the body of %.*s does not match its digests", WB_SLICE_ARG(page->url));
}

/* ---- the records of a writer ---------------------------------------------------------------------------------- */

int wb_pagefile_writer_init(struct wb_pagefile *files, struct wb_pagefile_writer *writer)
{
    unsigned workers = wb_limits_processors() < WORKERS_MAX ? wb_limits_processors() : WORKERS_MAX;

    WB_CHECK(files->magic == WB_PAGEFILE_MAGIC);
    WB_CHECK(files->write && !files->writer);
    WB_CHECK(workers > 0);
    writer->magic = WB_PAGEFILE_WRITER_MAGIC;
    writer->commit = writer->commit_at_open;
    files->writer = writer;
    int err = wb_builders_new(workers, &writer->builders);
    return err < 0 ? err : wb_pool_new(workers, &writer->pool);
}

void wb_pagefile_writer_release(struct wb_pagefile *files)
{
    struct wb_pagefile_writer *writer = files->writer;

    if (!writer)
        return;
    WB_CHECK(writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    files->kind->flush_drop(files);
    wb_pool_free(writer->pool);
    wb_pool_free(writer->sync_pool);
    wb_builders_free(writer->builders);
    wb_pagefile_forget(files);
    if (writer->tails.count == 0 && writer->commit > writer->commit_at_open)
        files->kind->seal(files, wb_pagefile_newest_commit(files));
    wb_tails_release(files);
    wb_append_runs_release(files);
    wb_vec_release(&writer->tails);
    wb_vec_release(&writer->puts);
    writer->magic = 0;
    files->writer = NULL;
}

int wb_pagefile_check_usable(const struct wb_pagefile_writer *writer)
{
    WB_CHECK(writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    WB_CHECK(writer->group_at <= writer->puts.count);
    return writer->failed.code < 0 ? wb_error_restore(&writer->failed) : 0;
}

int wb_writer_remember_failure(struct wb_pagefile_writer *writer, int err)
{
    WB_CHECK(writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    WB_CHECK(err <= 0);
    if (err < 0)
        wb_error_save(err, &writer->failed);
    return err;
}

int wb_pagefile_put(struct wb_pagefile *files, struct wb_put *put)
{
    struct wb_pagefile_writer *writer = files->writer;
    size_t bytes = put->record.len;

    WB_CHECK(writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    WB_CHECK(bytes > WB_RECORD_DIGEST_BYTES);
    WB_CHECK(!put->placed && !put->digested);
    int err = wb_vec_push(&writer->puts, *put);
    if (err < 0) /* what is to be committed counts on it already */
        return wb_writer_remember_failure(writer, err);
    put->record = WB_BUF_INIT;
    writer->group_mixed = writer->group_bytes && (writer->group_mixed || put->site != writer->group_site);
    writer->group_site = put->site;
    writer->group_bytes += bytes;
    if (bytes >= wb_pagefile_sizes.giant_bytes)
        return wb_pagefile_flush(files);
    if (writer->group_bytes < files->kind->group_limit(files))
        return 0;
    return wb_writer_remember_failure(writer, files->kind->flush_start(files));
}

int wb_pagefile_flush(struct wb_pagefile *files)
{
    WB_CHECK(files->writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    int err = files->kind->flush_all(files);
    WB_CHECK(err < 0 || files->writer->group_at == files->writer->puts.count);
    return wb_writer_remember_failure(files->writer, err);
}

int wb_pagefile_pending(struct wb_pagefile *files, size_t number, struct wb_buf *record_out)
{
    struct wb_pagefile_writer *writer = files->writer;

    WB_CHECK(writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    WB_CHECK(number < writer->puts.count);
    wb_pool_wait(writer->pool); /* the workers may be computing its digests */
    const struct wb_put *put = &writer->puts.items[number];
    wb_buf_clear(record_out);
    if (put->record.len == 0)
        return files->kind->pending(files, put, record_out);
    int err = wb_buf_append_slice(record_out, wb_buf_slice(&put->record));
    if (err == 0)
        err = wb_page_record_digest(&(struct wb_record_digest){record_out->ptr, record_out->len, put->body_bytes}, 1);
    return err;
}

void wb_pagefile_drop(struct wb_pagefile *files)
{
    WB_CHECK(files->writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    files->kind->flush_drop(files);
    wb_tails_cut(files);
    wb_block_cache_release(&files->source.cache); /* other blocks will take the places of those we have just dropped */
}

void wb_pagefile_abandon(struct wb_pagefile *files)
{
    struct wb_pagefile_writer *writer = files->writer;

    WB_CHECK(writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    files->kind->flush_drop(files);
    for (size_t i = 0; i < writer->tails.count; i++)
        wb_segment_close(&writer->tails.items[i].segment);
    wb_vec_clear(&writer->tails);
    wb_block_cache_release(&files->source.cache);
}

void wb_pagefile_forget(struct wb_pagefile *files)
{
    struct wb_pagefile_writer *writer = files->writer;

    WB_CHECK(writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    WB_CHECK(!writer->flight); /* whose jobs point to the records */
    for (size_t i = 0; i < writer->puts.count; i++)
        wb_buf_release(&writer->puts.items[i].record);
    wb_vec_clear(&writer->puts);
    writer->group_at = 0;
    writer->group_bytes = 0;
    writer->failed = (struct wb_error_copy){0};
    if (files->kind->forget)
        files->kind->forget(files);
}
