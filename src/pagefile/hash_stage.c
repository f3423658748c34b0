/*
 * hash_stage.c - the records of a writer until it commits. They stay in memory, because only the commit knows the order
 * in which they go to the disk. When there is no room for more, further ones go to a file without a name, and are read
 * from there when their bucket is written.
 *
 * Digests are computed, and the file is written, a group at a time, by the workers of the writer, while the caller's
 * thread collects the next group. One group is in flight at most.
 */
#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/path.h"
#include "pagefile/hash_store.h"

enum {
    STORED_PART = 4, /* what a record frees when it dies is not known before it is compressed; an estimate */
    JOBS = 2,        /* of a full group; with fewer records in each, digests of several at once take longer */
    FEW = 16,        /* a group with less than this part of a full one has few records */
};

/* A record in flight. Puts move when others are added, but records do not. */
struct staged_record {
    size_t put;
    uint64_t at, check; /* in the file */
};

/* The part of a group that a worker takes. */
struct stage_job {
    struct wb_hash_flight *flight;
    size_t first, count; /* records */
    uint64_t bytes;      /* of them */
    struct wb_error_copy error;
};

struct wb_hash_flight {
    WB_VEC(struct staged_record) records;
    WB_VEC(struct wb_record_digest) digests; /* the same records, and what their digests are computed from */
    WB_VEC(struct stage_job) jobs;
    uint64_t bytes;              /* of all records */
    const struct wb_file *spill; /* where they go; NULL: they stay in memory */
};

/*
 * Makes the file, which disappears when it is closed, however the process ends. Another process may remove the name of
 * ours at any moment, as we remove it ourselves, but it cannot open ours.
 */
static int open_staging(struct wb_pagefile *files)
{
    char *path = wb_path_join(files->dir, WB_PAGEFILE_STAGING_NAME);
    int err = path ? WB_E_INVALID : WB_E_NOMEM;

    WB_CHECK(files->hash->staging.fd < 0);
    while (err == WB_E_INVALID) {
        err = wb_path_unlink(path); /* one that a process left that died at just this moment */
        if (err == 0)
            err = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_NEW, &files->hash->staging);
    }
    if (err == 0)
        err = wb_path_unlink(path);
    if (err < 0)
        wb_file_close(&files->hash->staging);
    wb_free(path);
    return err;
}

/* ---- in flight ------------------------------------------------------------------------------------------------- */

/* Runs in a worker. */
static void stage_records(void *context)
{
    struct stage_job *job = context;
    struct wb_hash_flight *flight = job->flight;
    const struct wb_record_digest *digests = flight->digests.items + job->first;
    int err = wb_page_record_digest(digests, job->count);

    WB_CHECK(job->count > 0);
    for (size_t i = 0; i < job->count && err == 0 && flight->spill; i++) {
        struct staged_record *record = &flight->records.items[job->first + i];
        record->check = wb_hash64(digests[i].record, digests[i].record_bytes);
        err = wb_file_write_at(flight->spill, record->at, digests[i].record, digests[i].record_bytes);
    }
    if (err < 0)
        wb_error_save(err, &job->error);
}

static void flight_free(struct wb_hash_flight *flight)
{
    if (!flight)
        return;
    wb_vec_release(&flight->records);
    wb_vec_release(&flight->digests);
    wb_vec_release(&flight->jobs);
    wb_free(flight);
}

/* Adds a record to the last job, or to a new one if that is full. */
static int add_record(struct wb_hash_flight *flight, const struct wb_put *put, size_t number)
{
    struct wb_record_digest digest = {put->record.ptr, put->record.len, put->body_bytes};
    int err = wb_vec_push(&flight->records, (struct staged_record){.put = number});

    WB_CHECK(put->record.len > WB_RECORD_DIGEST_BYTES);
    if (err == 0)
        err = wb_vec_push(&flight->digests, digest);
    size_t jobs = flight->jobs.count;
    if (err == 0 && (jobs == 0 || flight->jobs.items[jobs - 1].bytes >= wb_pagefile_sizes.group_bytes / JOBS))
        err = wb_vec_push(&flight->jobs, (struct stage_job){.flight = flight, .first = flight->records.count - 1});
    if (err < 0)
        return err;
    struct stage_job *job = &flight->jobs.items[flight->jobs.count - 1];
    job->count++;
    job->bytes += put->record.len;
    flight->bytes += put->record.len;
    return 0;
}

/* All records of the current group. *flight_out is NULL if there are none. */
static int flight_new(const struct wb_pagefile_writer *writer, struct wb_hash_flight **flight_out)
{
    struct wb_hash_flight *flight = wb_alloc_zero(1, sizeof *flight);
    int err = flight ? 0 : WB_E_NOMEM;

    WB_CHECK(writer->group_at <= writer->puts.count);
    *flight_out = NULL;
    for (size_t i = writer->group_at; i < writer->puts.count && err == 0; i++) {
        const struct wb_put *put = &writer->puts.items[i];
        if (put->record.len && !put->digested)
            err = add_record(flight, put, i);
    }
    if (err < 0 || flight->records.count == 0)
        flight_free(flight);
    else
        *flight_out = flight;
    return err;
}

/* Decides where the records go. */
static int choose_place(struct wb_pagefile *files, struct wb_hash_flight *flight)
{
    struct wb_hash *hash = files->hash;

    if (hash->pending_bytes + flight->bytes <= wb_pagefile_sizes.pending_bytes) {
        hash->pending_bytes += flight->bytes;
        return 0;
    }
    int err = hash->staging.fd < 0 ? open_staging(files) : 0;
    if (err < 0)
        return err;
    flight->spill = &hash->staging;
    for (size_t i = 0; i < flight->records.count; i++) {
        flight->records.items[i].at = hash->staged_bytes;
        hash->staged_bytes += flight->digests.items[i].record_bytes;
    }
    return 0;
}

static void submit_jobs(struct wb_pool *pool, struct wb_hash_flight *flight)
{
    WB_CHECK(flight->jobs.count > 0);
    if (flight->bytes < wb_pagefile_sizes.group_bytes / FEW) { /* waking somebody would take longer */
        WB_CHECK(flight->jobs.count == 1);
        stage_records(&flight->jobs.items[0]);
        return;
    }
    for (size_t i = 0; i < flight->jobs.count; i++) {
        int err = wb_pool_submit(pool, stage_records, &flight->jobs.items[i]);
        if (err < 0)
            wb_error_save(err, &flight->jobs.items[i].error); /* returned when the group lands */
    }
}

/* Puts the current group in flight. */
static int start(struct wb_pagefile *files)
{
    struct wb_pagefile_writer *writer = files->writer;
    struct wb_hash_flight *flight;

    WB_CHECK(!files->hash->flight);
    int err = flight_new(writer, &flight);
    if (err == 0 && flight)
        err = choose_place(files, flight);
    if (err < 0) {
        flight_free(flight);
        return err;
    }
    if (flight)
        submit_jobs(writer->pool, flight);
    files->hash->flight = flight;
    writer->group_at = writer->puts.count;
    writer->group_bytes = 0;
    return 0;
}

/* Waits for the group in flight, and tells its puts what has become of their records. */
static int land(struct wb_pagefile *files)
{
    struct wb_hash_flight *flight = files->hash->flight;
    int err = 0;

    if (!flight)
        return 0;
    wb_pool_wait(files->writer->pool);
    for (size_t i = 0; i < flight->jobs.count && err == 0; i++)
        if (flight->jobs.items[i].error.code < 0)
            err = wb_error_restore(&flight->jobs.items[i].error);
    for (size_t i = 0; i < flight->records.count && err == 0; i++) {
        const struct staged_record *record = &flight->records.items[i];
        struct wb_put *put = &files->writer->puts.items[record->put];
        WB_CHECK(put->record.ptr == flight->digests.items[i].record);
        memcpy(put->sha1, put->record.ptr + WB_MD5_BYTES, WB_SHA1_BYTES); /* the record starts with its digests */
        put->stored_bytes = (uint32_t)(put->record.len / STORED_PART + 1);
        put->digested = true;
        if (!flight->spill)
            continue;
        put->staged_at = record->at;
        put->staged_bytes = put->record.len;
        put->staged_check = record->check;
        wb_buf_release(&put->record);
    }
    flight_free(flight);
    files->hash->flight = NULL;
    return err;
}

int wb_hash_stage(struct wb_pagefile *files)
{
    int err = land(files);

    WB_CHECK(files->hash != NULL);
    if (err == 0)
        err = start(files);
    return err;
}

int wb_hash_stage_all(struct wb_pagefile *files)
{
    int err = wb_hash_stage(files);

    if (err == 0)
        err = land(files);
    WB_CHECK(err < 0 || !files->hash->flight);
    return err;
}

void wb_hash_stage_drop(struct wb_pagefile *files)
{
    WB_CHECK(files->writer != NULL);
    if (files->hash->flight)
        wb_pool_wait(files->writer->pool);
    flight_free(files->hash->flight);
    files->hash->flight = NULL;
}

/* ---- reading --------------------------------------------------------------------------------------------------- */

int wb_hash_staged_read(struct wb_pagefile *files, const struct wb_put *put, char *bytes_out)
{
    WB_CHECK(put->staged_bytes > 0);
    WB_CHECK(files->hash->staging.fd >= 0);
    int err = wb_file_read_exact(&files->hash->staging, put->staged_at, bytes_out, (size_t)put->staged_bytes);
    if (err == 0 && wb_hash64(bytes_out, (size_t)put->staged_bytes) != put->staged_check)
        err = wb_fail(WB_E_CORRUPT, "a page that waited to be committed has changed on the disk");
    return err;
}

int wb_hash_staged(struct wb_pagefile *files, const struct wb_put *put, struct wb_buf *record_out)
{
    WB_CHECK(put->staged_bytes > 0);
    wb_buf_clear(record_out);
    int err = wb_buf_reserve(record_out, (size_t)put->staged_bytes);
    if (err == 0)
        err = wb_hash_staged_read(files, put, record_out->ptr);
    if (err == 0)
        record_out->len = (size_t)put->staged_bytes;
    return err;
}

void wb_hash_stage_clear(struct wb_pagefile *files)
{
    WB_CHECK(!files->hash->flight);
    wb_file_close(&files->hash->staging); /* which frees its space */
    files->hash->staged_bytes = files->hash->pending_bytes = 0;
}
