/*
 * sorter.c - the sorter of table.h: opening, adding records to chunks, and starting the merge.
 *
 * Life of a chunk:
 *   FREE -> FILLING (by the caller) -> BUSY (a job sorts it) -> SORTED -> BUSY (a job writes it as a run) -> FREE
 *
 * Nothing is written to disk as long as a chunk is left that was never used. Once they have all been used, the sorter
 * is `spilling`: every full chunk is sorted and written by one job while the caller fills another chunk.
 *
 * This file never compares keys and never reads a run back.
 */
#include "table/sorter.h"
#include "base/mem.h"
#include "os/nameless.h"

enum {
    MEMORY_MIN = 4 << 20,
    CHUNK_MIN = 1 << 20,
    CHUNKS_MAX = 9,
    BLOCK_MIN = 8 << 10,
    BLOCK_MAX = 64 << 10,
    SLACK_BYTES = 64 << 10, /* for the sorter itself and the pool */
};
_Static_assert(MEMORY_MIN / CHUNK_MIN >= 2, "there is a chunk to fill and a chunk to sort");
_Static_assert(BLOCK_MAX <= 64 << 10, "the zstd memory in sorter_run.c was measured for blocks up to this size");

/* An entry has 32 bits for the offset of its record. */
#define CHUNK_MAX ((size_t)UINT32_MAX & ~(size_t)15)

/* ---- sorting and writing chunks, in jobs ----------------------------------------------------- */

/* Appends a sorted chunk to its file as a run. */
static int write_run(struct wb_sorter_chunk *chunk, struct wb_sorter_run *run_out)
{
    enum { AHEAD = 8 };
    struct wb_sorter_run_writer writer;
    struct wb_slice last = WB_SLICE_EMPTY;
    int err = 0;

    WB_CHECK(chunk->count > 0);
    WB_CHECK(chunk->memory != NULL);
    const struct wb_sorter_entry *entries = wb_sorter_chunk_entries(chunk);
    if (chunk->file.fd < 0)
        err = wb_nameless_open(chunk->sorter->dir, &chunk->file);
    if (err < 0)
        return err;
    err = wb_sorter_run_writer_init(&writer, &chunk->file, chunk->file_bytes, chunk->sorter->block_bytes,
                             wb_sorter_should_pack(chunk->sorter));
    for (size_t i = 0; i < chunk->count && err == 0; i++) {
        if (i + AHEAD < chunk->count) {
            __builtin_prefetch(chunk->memory + entries[i + AHEAD].at);
            __builtin_prefetch(chunk->memory + entries[i + AHEAD].at + 64);
        }
        struct wb_slice key = wb_sorter_entry_key(&entries[i], chunk->memory);
        err = wb_sorter_run_writer_add(&writer, key, wb_table_key_shared(last, key),
                                       wb_sorter_entry_value(&entries[i], chunk->memory));
        last = key;
    }
    if (err == 0)
        err = wb_sorter_run_writer_finish(&writer, run_out);
    wb_sorter_run_writer_release(&writer);
    if (err == 0)
        chunk->file_bytes += run_out->bytes;
    run_out->order = chunk->order;
    return err;
}

/* Inserts a run in its place by order. The caller holds the lock: runs may be finished in any order. */
static int add_run(struct wb_sorter *sorter, const struct wb_sorter_run *run)
{
    WB_CHECK(run->bytes > 0);
    WB_CHECK(run->order < sorter->next_order);
    int err = wb_vec_push(&sorter->runs, *run);
    if (err < 0)
        return err;
    struct wb_sorter_run *runs = sorter->runs.items;
    size_t at = sorter->runs.count - 1;
    for (; at > 0 && runs[at - 1].order > run->order; at--)
        runs[at] = runs[at - 1];
    runs[at] = *run;
    WB_CHECK(at == 0 || runs[at - 1].order < run->order);
    sorter->stat.runs++;
    sorter->stat.run_bytes += run->bytes;
    return 0;
}

static void finish_writing(struct wb_sorter_chunk *chunk, int err, const struct wb_sorter_run *run)
{
    struct wb_sorter *sorter = chunk->sorter;

    pthread_mutex_lock(&sorter->lock);
    WB_CHECK(chunk->state == CHUNK_BUSY);
    if (err == 0)
        err = add_run(sorter, run);
    if (err < 0 && sorter->error.code == 0)
        wb_error_save(err, &sorter->error);
    chunk->state = CHUNK_FREE;
    pthread_cond_broadcast(&sorter->changed);
    pthread_mutex_unlock(&sorter->lock);
}

/* A job: writes a sorted chunk as a run. */
static void write_job(void *context)
{
    struct wb_sorter_chunk *chunk = context;
    struct wb_sorter_run run = {0};

    WB_CHECK(chunk->sorter->magic == SORTER_MAGIC);
    int err = write_run(chunk, &run);
    finish_writing(chunk, err, &run);
}

/* A job: sorts a full chunk and, if the sorter is spilling by then, writes it too. */
static void sort_job(void *context)
{
    struct wb_sorter_chunk *chunk = context;
    struct wb_sorter *sorter = chunk->sorter;

    WB_CHECK(sorter->magic == SORTER_MAGIC);
    WB_CHECK(chunk->count > 0);
    wb_sorter_entries_sort(wb_sorter_chunk_entries(chunk), chunk->count, chunk->memory);
    pthread_mutex_lock(&sorter->lock);
    WB_CHECK(chunk->state == CHUNK_BUSY);
    bool to_disk = chunk->to_disk;
    if (!to_disk)
        chunk->state = CHUNK_SORTED;
    pthread_mutex_unlock(&sorter->lock);
    if (to_disk)
        write_job(chunk);
}

/* Gives a job to the pool; without threads, runs it now. */
static int submit(struct wb_sorter_chunk *chunk, wb_pool_job job)
{
    WB_CHECK(chunk->state == CHUNK_BUSY);
    if (!chunk->sorter->pool) {
        job(chunk);
        return 0;
    }
    return wb_pool_submit(chunk->sorter->pool, job, chunk);
}

/* ---- open and close -------------------------------------------------------------------------- */

/* Divides the memory into chunks, leaving room for the buffers that writing and merging need. */
static void set_sizes(struct wb_sorter *sorter, const struct wb_sorter_options *options)
{
    size_t memory = options->memory_bytes > MEMORY_MIN ? options->memory_bytes : MEMORY_MIN;
    size_t most = memory / CHUNK_MIN < CHUNKS_MAX ? memory / CHUNK_MIN : CHUNKS_MAX;
    size_t block = memory / 1024;

    sorter->memory_bytes = memory;
    sorter->block_bytes = block < BLOCK_MIN ? BLOCK_MIN : block > BLOCK_MAX ? BLOCK_MAX : block;
    sorter->chunk_count = options->threads + 1 < most ? options->threads + 1 : (unsigned)most;
    WB_CHECK(sorter->chunk_count > 0);
    size_t writers = sorter->chunk_count > 1 ? sorter->chunk_count - 1 : 1;
    size_t writing = writers * wb_sorter_run_writer_cost(sorter->block_bytes);
    size_t pump = wb_sorter_pump_cost(sorter->block_bytes);
    size_t taken = SLACK_BYTES + (writing > pump ? writing : pump);
    size_t left = taken < memory / 2 ? memory - taken : memory / 2;
    sorter->chunk_bytes = left / sorter->chunk_count & ~(size_t)15;
    if (sorter->chunk_bytes > CHUNK_MAX)
        sorter->chunk_bytes = CHUNK_MAX;
    sorter->record_max = memory / 8 < sorter->chunk_bytes ? memory / 8 : sorter->chunk_bytes;
}

int wb_sorter_open(const struct wb_sorter_options *options, struct wb_sorter **sorter_out)
{
    struct wb_sorter *sorter = wb_alloc_zero(1, sizeof *sorter);
    int err = 0;

    *sorter_out = NULL;
    WB_CHECK(options->dir != NULL);
    if (!sorter)
        return WB_E_NOMEM;
    sorter->magic = SORTER_MAGIC;
    pthread_mutex_init(&sorter->lock, NULL);
    pthread_cond_init(&sorter->changed, NULL);
    sorter->merged = WB_FILE_INIT;
    set_sizes(sorter, options);
    sorter->dir = wb_strdup(options->dir);
    sorter->chunks = wb_alloc_zero(sorter->chunk_count, sizeof *sorter->chunks);
    if (!sorter->dir || !sorter->chunks)
        err = WB_E_NOMEM;
    for (unsigned i = 0; err == 0 && i < sorter->chunk_count; i++) {
        sorter->chunks[i].sorter = sorter;
        sorter->chunks[i].file = WB_FILE_INIT;
    }
    if (err == 0 && sorter->chunk_count > 1)
        err = wb_pool_new(sorter->chunk_count - 1, &sorter->pool);
    if (err < 0) {
        wb_sorter_close(sorter);
        return err;
    }
    *sorter_out = sorter;
    return 0;
}

void wb_sorter_close(struct wb_sorter *sorter)
{
    if (!sorter)
        return;
    WB_CHECK(sorter->magic == SORTER_MAGIC);
    if (sorter->pool)
        wb_pool_wait(sorter->pool); /* its jobs use the chunks and the inputs */
    sorter->magic = 0;
    wb_sorter_pump_stop(&sorter->pump);
    wb_sorter_tree_release(&sorter->tree);
    if (sorter->readers_ready)
        wb_sorter_readers_release(&sorter->readers);
    wb_pool_free(sorter->pool);
    for (unsigned i = 0; sorter->chunks && i < sorter->chunk_count; i++) {
        wb_free(sorter->chunks[i].memory);
        if (sorter->chunks[i].sorter)
            wb_file_close(&sorter->chunks[i].file);
    }
    wb_free(sorter->chunks);
    wb_file_close(&sorter->merged);
    wb_vec_release(&sorter->runs);
    wb_free(sorter->dir);
    pthread_mutex_destroy(&sorter->lock);
    pthread_cond_destroy(&sorter->changed);
    wb_free(sorter);
}

/* ---- adding -------------------------------------------------------------------------------- */

static void check_sorter(const struct wb_sorter *sorter)
{
    WB_CHECK(sorter->magic == SORTER_MAGIC);
    WB_CHECK(sorter->chunks != NULL);
    WB_CHECK(sorter->chunk_count > 0);
    WB_CHECK(!sorter->sorted || sorter->filling == NULL || !sorter->pump.tree);
}

/* The first error, if there was one; it may come from a job. */
static int failed(struct wb_sorter *sorter)
{
    int err;

    check_sorter(sorter);
    pthread_mutex_lock(&sorter->lock);
    err = sorter->error.code ? wb_error_restore(&sorter->error) : 0;
    pthread_mutex_unlock(&sorter->lock);
    return err;
}

/* Remembers the first error, which every later call returns. */
static int fail_sorter(struct wb_sorter *sorter, int err)
{
    check_sorter(sorter);
    WB_CHECK(err <= 0);
    pthread_mutex_lock(&sorter->lock);
    if (err < 0 && sorter->error.code == 0)
        wb_error_save(err, &sorter->error);
    pthread_mutex_unlock(&sorter->lock);
    return err;
}

/* A free chunk, or NULL. Chunks that were used before come first, so that no memory is touched without need. */
static struct wb_sorter_chunk *find_free(struct wb_sorter *sorter)
{
    struct wb_sorter_chunk *fresh = NULL;

    WB_CHECK(sorter->chunk_count > 0);
    for (unsigned i = 0; i < sorter->chunk_count; i++) {
        struct wb_sorter_chunk *chunk = &sorter->chunks[i];
        if (chunk->state == CHUNK_FREE && chunk->memory)
            return chunk;
        if (chunk->state == CHUNK_FREE && !fresh)
            fresh = chunk;
    }
    return fresh;
}

/* Memory is full: has the chunks written that were sorted and kept so far. */
static int begin_spilling(struct wb_sorter *sorter)
{
    int err = 0;

    check_sorter(sorter);
    WB_CHECK(!sorter->sorted);
    WB_CHECK(sorter->stat.runs == 0);
    WB_CHECK(!sorter->spilling);
    sorter->spilling = true;
    for (unsigned i = 0; i < sorter->chunk_count && err == 0; i++) {
        struct wb_sorter_chunk *chunk = &sorter->chunks[i];
        pthread_mutex_lock(&sorter->lock);
        bool waiting = chunk->state == CHUNK_SORTED;
        if (waiting)
            chunk->state = CHUNK_BUSY;
        chunk->to_disk = true; /* if a job is still sorting it, the same job then writes it */
        pthread_mutex_unlock(&sorter->lock);
        if (waiting)
            err = submit(chunk, write_job);
    }
    return err;
}

/* The chunk that was being filled is full: has it sorted. */
static int hand_over_chunk(struct wb_sorter *sorter)
{
    check_sorter(sorter);
    struct wb_sorter_chunk *chunk = sorter->filling;
    int err;

    WB_CHECK(chunk != NULL);
    pthread_mutex_lock(&sorter->lock);
    WB_CHECK(chunk->state == CHUNK_FILLING);
    chunk->state = CHUNK_BUSY;
    chunk->to_disk = sorter->spilling;
    pthread_mutex_unlock(&sorter->lock);
    sorter->filling = NULL;
    err = submit(chunk, sort_job);
    if (err < 0) {
        pthread_mutex_lock(&sorter->lock);
        chunk->state = CHUNK_FREE;
        pthread_mutex_unlock(&sorter->lock);
    }
    return err;
}

/* Makes another chunk the one to fill. If all of them are busy, waits until one has been written. */
static int next_chunk(struct wb_sorter *sorter)
{
    struct wb_sorter_chunk *chunk;
    int err = 0;

    check_sorter(sorter);
    WB_CHECK(!sorter->sorted);
    if (sorter->filling) {
        pthread_mutex_lock(&sorter->lock);
        bool enough = find_free(sorter) != NULL;
        pthread_mutex_unlock(&sorter->lock);
        if (!enough && !sorter->spilling)
            err = begin_spilling(sorter);
        if (err == 0)
            err = hand_over_chunk(sorter);
    }
    if (err < 0)
        return err;
    pthread_mutex_lock(&sorter->lock);
    while (!(chunk = find_free(sorter)))
        pthread_cond_wait(&sorter->changed, &sorter->lock);
    chunk->state = CHUNK_FILLING;
    pthread_mutex_unlock(&sorter->lock);
    if (!chunk->memory)
        chunk->memory = wb_alloc(sorter->chunk_bytes);
    if (!chunk->memory) {
        chunk->state = CHUNK_FREE;
        return WB_E_NOMEM;
    }
    chunk->used = chunk->count = 0;
    chunk->order = sorter->next_order++;
    sorter->filling = chunk;
    return failed(sorter);
}

int wb_sorter_add(struct wb_sorter *sorter, struct wb_slice key, struct wb_slice value)
{
    WB_CHECK(sorter->magic == SORTER_MAGIC);
    WB_CHECK(!sorter->sorted);
    struct wb_sorter_chunk *chunk = sorter->filling;
    size_t need = ENTRY_HEAD_BYTES + key.len + value.len, entry = sizeof(struct wb_sorter_entry);

    if (key.len > WB_TABLE_KEY_MAX || value.len > WB_TABLE_VALUE_MAX || need + entry > sorter->record_max)
        return wb_fail(WB_E_LIMIT,
                       "a record is too large to sort in %zu bytes of memory: its key has %zu bytes, its value %zu",
                       sorter->memory_bytes, key.len, value.len);
    if (!chunk || sorter->chunk_bytes - chunk->used - chunk->count * entry < need + entry) {
        int err = failed(sorter);
        if (err == 0)
            err = fail_sorter(sorter, next_chunk(sorter));
        if (err < 0)
            return err;
        chunk = sorter->filling;
    }
    char *to = chunk->memory + chunk->used;
    wb_put32(to, (uint32_t)value.len);
    if (key.len)
        memcpy(to + ENTRY_HEAD_BYTES, key.ptr, key.len);
    if (value.len)
        memcpy(to + ENTRY_HEAD_BYTES + key.len, value.ptr, value.len);
    chunk->count++;
    *wb_sorter_chunk_entries(chunk) = (struct wb_sorter_entry){
        .prefix = wb_sorter_entry_prefix(key.ptr, key.len), .at = (uint32_t)chunk->used, .key_len = (uint32_t)key.len};
    chunk->used += need;
    sorter->stat.records++;
    sorter->stat.bytes += key.len + value.len;
    return 0;
}

/* ---- sorting and taking -------------------------------------------------------------------- */

/* All records are in memory, in one or more sorted chunks: starts the merge of these. */
static int merge_memory(struct wb_sorter *sorter)
{
    check_sorter(sorter);
    WB_CHECK(sorter->sorted);
    WB_CHECK(sorter->stat.runs == 0);
    WB_CHECK(!sorter->spilling);
    struct wb_sorter_input **inputs = wb_alloc_zero(sorter->chunk_count, sizeof *inputs);
    size_t count = 0;
    int err = inputs ? 0 : WB_E_NOMEM;

    /* Without spilling, chunks are used from the first to the last, so that is also the order of their records. */
    for (unsigned i = 0; i < sorter->chunk_count && err == 0; i++) {
        struct wb_sorter_chunk *chunk = &sorter->chunks[i];
        if (chunk->state == CHUNK_FREE)
            continue;
        WB_CHECK(chunk->state == CHUNK_SORTED);
        WB_CHECK(chunk->order == count);
        err = wb_sorter_input_open_memory(wb_sorter_chunk_entries(chunk), chunk->count, chunk->memory,
                                          &inputs[count]);
        count += err == 0;
    }
    if (err < 0) {
        sorter->tree = (struct wb_sorter_tree){.inputs = inputs, .count = (uint32_t)count};
        return err;
    }
    return wb_sorter_tree_init(&sorter->tree, inputs, count);
}

/* All records are in runs: frees the chunks, whose memory the merge needs, and starts the merge. */
static int merge_disk(struct wb_sorter *sorter)
{
    check_sorter(sorter);
    WB_CHECK(sorter->sorted);
    WB_CHECK(sorter->spilling);
    WB_CHECK(sorter->filling == NULL);
    for (unsigned i = 0; i < sorter->chunk_count; i++) {
        wb_free(sorter->chunks[i].memory);
        sorter->chunks[i].memory = NULL;
    }
    sorter->readers_ready = true;
    int err = wb_sorter_readers_init(&sorter->readers, sorter->pool, sorter->chunk_count - 1);
    return err < 0 ? err : wb_sorter_merge_runs(sorter);
}

int wb_sorter_sort(struct wb_sorter *sorter)
{
    check_sorter(sorter);
    WB_CHECK(!sorter->sorted);
    int err = failed(sorter);

    sorter->sorted = true;
    if (err == 0 && sorter->filling)
        err = hand_over_chunk(sorter);
    if (sorter->pool)
        wb_pool_wait(sorter->pool);
    if (err == 0)
        err = failed(sorter);
    if (err == 0)
        err = sorter->spilling ? merge_disk(sorter) : merge_memory(sorter);
    if (err == 0)
        err = wb_sorter_pump_start(&sorter->pump, &sorter->tree, sorter->block_bytes, sorter->pool != NULL);
    return fail_sorter(sorter, err);
}

int wb_sorter_next(struct wb_sorter *sorter, struct wb_table_record *record_out)
{
    int more;

    *record_out = (struct wb_table_record){0};
    WB_CHECK(sorter->magic == SORTER_MAGIC);
    WB_CHECK(sorter->sorted);
    if (sorter->error.code)
        return wb_error_restore(&sorter->error);
    more = wb_sorter_pump_take(&sorter->pump, record_out);
    return more < 0 ? fail_sorter(sorter, more) : more;
}

void wb_sorter_stat(const struct wb_sorter *sorter, struct wb_sorter_stat *stat_out)
{
    check_sorter(sorter);
    *stat_out = sorter->stat;
}
