/*
 * sorter_input.c - the inputs of a merge: the sorted entries of a chunk in memory, or a run on disk.
 *
 * A run is read through a window of several blocks. Plain blocks are decoded where they are, in the window. Blocks of a
 * packed run are decompressed into one of two raw buffers: with threads, the next block is decompressed into the other
 * buffer while the merge reads the current one. Only the merging thread touches the current block. Life of the next
 * block:
 *
 *   NONE -> BUSY (a thread owns the window and the other raw buffer) -> READY -> NONE (it is the current block now)
 *
 * The merging thread itself reads a RUN_LARGE block, when it gets there, into separate memory. Runs are our own
 * temporary files, but they are checked like any other file: a disk that fails gives WB_E_CORRUPT, never a wrong order.
 */
#include "base/hash.h"
#include "base/mem.h"
#include "table/sorter.h"

/* ---- a chunk in memory ----------------------------------------------------------------------- */

struct memory_input {
    struct wb_sorter_input input;
    const struct wb_sorter_entry *entries;
    size_t count, next;
    const char *records;
};

static int advance_memory(struct wb_sorter_input *input)
{
    struct memory_input *m = (struct memory_input *)(void *)input;
    enum { AHEAD = 6 };

    if (m->next == m->count)
        return 0;
    if (m->next + AHEAD < m->count)
        __builtin_prefetch(m->records + m->entries[m->next + AHEAD].at);
    const struct wb_sorter_entry *entry = &m->entries[m->next++];
    struct wb_slice key = wb_sorter_entry_key(entry, m->records);
    input->shared = (uint32_t)wb_table_key_shared(input->key, key);
    input->key = key;
    input->value = wb_sorter_entry_value(entry, m->records);
    return 1;
}

static void close_memory(struct wb_sorter_input *input)
{
    WB_CHECK(input->advance == advance_memory);
    wb_free(input);
}

int wb_sorter_input_open_memory(const struct wb_sorter_entry *entries, size_t count, const char *records,
                                struct wb_sorter_input **input_out)
{
    struct memory_input *m = wb_alloc_zero(1, sizeof *m);

    *input_out = NULL;
    WB_CHECK(entries != NULL);
    WB_CHECK(records != NULL);
    WB_CHECK(count > 0);
    if (!m)
        return WB_E_NOMEM;
    m->input = (struct wb_sorter_input){.key = WB_SLICE_EMPTY, .advance = advance_memory, .close = close_memory};
    m->entries = entries;
    m->count = count;
    m->records = records;
    *input_out = &m->input;
    return 0;
}

/* ---- zstd contexts --------------------------------------------------------------------------- */

int wb_sorter_readers_init(struct wb_sorter_readers *readers, struct wb_pool *pool, unsigned threads)
{
    WB_CHECK(pool != NULL || threads == 0);
    *readers = (struct wb_sorter_readers){.pool = pool, .zstd_count = threads + 1};
    pthread_mutex_init(&readers->lock, NULL);
    pthread_cond_init(&readers->changed, NULL);
    readers->zstd = wb_alloc_zero(threads + 1, sizeof *readers->zstd);
    if (!readers->zstd)
        return WB_E_NOMEM;
    for (; readers->zstd_free < readers->zstd_count; readers->zstd_free++) {
        readers->zstd[readers->zstd_free] = ZSTD_createDCtx();
        if (!readers->zstd[readers->zstd_free])
            return wb_fail_nomem();
    }
    return 0;
}

void wb_sorter_readers_release(struct wb_sorter_readers *readers)
{
    WB_CHECK(readers->zstd_free <= readers->zstd_count);
    for (unsigned i = 0; i < readers->zstd_free; i++)
        ZSTD_freeDCtx(readers->zstd[i]);
    wb_free(readers->zstd);
    pthread_mutex_destroy(&readers->lock);
    pthread_cond_destroy(&readers->changed);
    *readers = (struct wb_sorter_readers){0};
}

/* There is one context per thread and one for the merging thread, so one is always free. */
static ZSTD_DCtx *take_zstd(struct wb_sorter_readers *readers)
{
    pthread_mutex_lock(&readers->lock);
    WB_CHECK(readers->zstd_free > 0);
    ZSTD_DCtx *zstd = readers->zstd[--readers->zstd_free];
    pthread_mutex_unlock(&readers->lock);
    return zstd;
}

static void give_zstd(struct wb_sorter_readers *readers, ZSTD_DCtx *zstd)
{
    WB_CHECK(zstd != NULL);
    pthread_mutex_lock(&readers->lock);
    WB_CHECK(readers->zstd_free < readers->zstd_count);
    readers->zstd[readers->zstd_free++] = zstd;
    pthread_mutex_unlock(&readers->lock);
}

/* ---- a run on disk --------------------------------------------------------------------------- */

/* The life of the next block, as drawn above. */
enum read_step { STEP_NONE, STEP_BUSY, STEP_READY };

struct run_input {
    struct wb_sorter_input input;
    struct wb_sorter_run run;
    struct wb_sorter_readers *readers;
    size_t block_bytes;

    /* These belong to the merging thread. */
    const char *p, *end; /* what is left of the current block */
    char *key;           /* the current key; room for run.key_max bytes */
    size_t key_len;
    char *large;         /* room for run.large_max bytes, or NULL if the run has no large block */

    /* These belong to the thread that reads ahead while step is BUSY, otherwise to the merging thread. */
    uint64_t read;       /* how many bytes of the run have been read into the window */
    char *window;
    size_t window_bytes, window_start, window_end;
    char *raw[2];        /* for the blocks of a packed run, otherwise NULL */
    unsigned ahead;      /* which of the two is filled next */
    const char *block;   /* the next block: in raw[ahead] or in the window */
    size_t block_len;
    size_t large_size;   /* if it is not 0, the next block is a RUN_LARGE of this size, and block is not set */
    uint32_t large_check;
    int result;          /* 1 if there is a next block, 0 at the end, or an error */
    struct wb_error_copy error;

    enum read_step step; /* protected by the lock of readers */
};

/* What is true whenever the merging thread, or the one that reads ahead, uses the window. */
static void check_window(const struct run_input *r)
{
    WB_CHECK(r->window_start <= r->window_end);
    WB_CHECK(r->window_end <= r->window_bytes);
    WB_CHECK(r->read <= r->run.bytes);
    WB_CHECK(r->ahead <= 1);
}

static int damaged_run(const struct run_input *r)
{
    WB_CHECK(r->run.file != NULL);
    return wb_fail(WB_E_CORRUPT, "a temporary file in %s does not contain what was written to it", r->run.file->path);
}

size_t wb_sorter_input_window_min(size_t block_bytes)
{
    WB_CHECK(block_bytes > 0);
    return 2 * (RUN_HEAD_BYTES + block_bytes);
}

size_t wb_sorter_input_run_cost(const struct wb_sorter_run *run, size_t block_bytes)
{
    size_t raw = run->packed ? 2 * block_bytes : 0;
    size_t window = wb_sorter_input_window_min(block_bytes);

    WB_CHECK(run->key_max <= WB_TABLE_KEY_MAX);
    return sizeof(struct run_input) + window + raw + run->large_max + run->key_max + 256;
}

/* Reads until the window holds at least `need` bytes. *there_out is false if the run has ended. */
static int fill_window(struct run_input *r, size_t need, bool *there_out)
{
    check_window(r);
    WB_CHECK(need <= r->window_bytes);
    size_t have = r->window_end - r->window_start;
    *there_out = true;
    if (have >= need)
        return 0;
    uint64_t left = r->run.bytes - r->read;
    memmove(r->window, r->window + r->window_start, have);
    r->window_start = 0;
    r->window_end = have;
    size_t want = r->window_bytes - have;
    want = want < left ? want : (size_t)left;
    *there_out = have + want >= need;
    if (!*there_out)
        return have + want == 0 ? 0 : damaged_run(r);
    int err = wb_file_read_exact(r->run.file, r->run.offset + r->read, r->window + have, want);
    if (err < 0)
        return err;
    r->read += want;
    r->window_end += want;
    return 0;
}

/*
 * Makes the block at the start of the window the next block. Blocks of a packed run are always copied or decompressed
 * to raw, because the window may move before the merge gets to them.
 */
static int unpack_block(struct run_input *r, const char *head)
{
    check_window(r);
    size_t stored = wb_get32(head), raw = wb_get32(head + 4);
    uint32_t codec = wb_get32(head + 12);
    const char *bytes = head + RUN_HEAD_BYTES;
    char *to = r->raw[r->ahead];

    WB_CHECK(r->block_bytes > 0);
    WB_CHECK(!r->run.packed || to != NULL);
    if (raw > r->block_bytes || wb_hash32(bytes, stored) != wb_get32(head + 8))
        return damaged_run(r);
    if (codec == RUN_PLAIN ? stored != raw : !r->run.packed)
        return damaged_run(r);
    if (codec == RUN_PLAIN && r->run.packed) {
        memcpy(to, bytes, raw);
    } else if (codec != RUN_PLAIN) {
        ZSTD_DCtx *zstd = take_zstd(r->readers);
        size_t got = ZSTD_decompressDCtx(zstd, to, r->block_bytes, bytes, stored);
        give_zstd(r->readers, zstd);
        if (ZSTD_isError(got) || got != raw)
            return damaged_run(r);
    }
    r->block = r->run.packed ? to : bytes;
    r->block_len = raw;
    r->window_start += RUN_HEAD_BYTES + stored;
    WB_CHECK(r->window_start <= r->window_end);
    return 1;
}

/* Finds the next block and unpacks it, or notes that it is a large one. Returns 1, 0 at the end, or an error. */
static int read_ahead(struct run_input *r)
{
    bool there;
    int err = fill_window(r, RUN_HEAD_BYTES, &there);

    r->block_len = r->large_size = 0;
    if (err < 0 || !there)
        return err;
    size_t stored = wb_get32(r->window + r->window_start);
    if (wb_get32(r->window + r->window_start + 12) == RUN_LARGE) {
        if (stored > r->run.large_max)
            return damaged_run(r);
        r->large_size = stored;
        r->large_check = wb_get32(r->window + r->window_start + 8);
        r->window_start += RUN_HEAD_BYTES;
        return 1;
    }
    if (stored == 0 || stored > r->block_bytes)
        return damaged_run(r);
    err = fill_window(r, RUN_HEAD_BYTES + stored, &there);
    if (err < 0 || !there)
        return err < 0 ? err : damaged_run(r);
    return unpack_block(r, r->window + r->window_start);
}

/* A job of the pool; without threads the merging thread calls it. */
static void read_ahead_job(void *context)
{
    struct run_input *r = context;

    WB_CHECK(r->step != STEP_READY); /* the block before it has been taken */
    r->result = read_ahead(r);
    if (r->result < 0)
        wb_error_save(r->result, &r->error);
    pthread_mutex_lock(&r->readers->lock);
    r->step = STEP_READY;
    pthread_cond_broadcast(&r->readers->changed);
    pthread_mutex_unlock(&r->readers->lock);
}

/* Copies the part of a large block that is in the window, and reads the rest from the file. */
static int read_large(struct run_input *r)
{
    check_window(r);
    size_t have = r->window_end - r->window_start, part = have < r->large_size ? have : r->large_size;
    struct wb_table_record_head head;
    int err = 0;

    WB_CHECK(r->large != NULL);
    WB_CHECK(r->large_size <= r->run.large_max);
    memcpy(r->large, r->window + r->window_start, part);
    r->window_start += part;
    if (part < r->large_size) {
        if (r->large_size - part > r->run.bytes - r->read)
            return damaged_run(r);
        err = wb_file_read_exact(r->run.file, r->run.offset + r->read, r->large + part, r->large_size - part);
        r->read += r->large_size - part;
    }
    if (err < 0)
        return err;
    r->p = r->large;
    r->end = r->large + r->large_size;
    const char *p = r->p;
    if (!wb_table_record_head_get(&p, r->end, r->key_len, &head) || p + head.fresh + head.value != r->end)
        return damaged_run(r);
    p += head.fresh;
    struct wb_slice before = wb_slice(r->large, (size_t)(p - r->large));
    if (wb_sorter_run_large_check(before, wb_slice(p, head.value)) != r->large_check)
        return damaged_run(r);
    return 1;
}

/* Has a thread prepare the next block. A plain run needs no thread: nothing has to be decompressed. */
static int start_ahead(struct run_input *r)
{
    WB_CHECK(r->readers != NULL);
    WB_CHECK(r->step == STEP_NONE);
    if (!r->readers->pool || !r->run.packed)
        return 0;
    r->step = STEP_BUSY;
    int err = wb_pool_submit(r->readers->pool, read_ahead_job, r);
    if (err < 0)
        r->step = STEP_NONE;
    return err;
}

static void wait_ahead(struct run_input *r)
{
    pthread_mutex_lock(&r->readers->lock);
    while (r->step == STEP_BUSY)
        pthread_cond_wait(&r->readers->changed, &r->readers->lock);
    pthread_mutex_unlock(&r->readers->lock);
}

/* Makes the next block the current one and starts on the one after it. Returns 1, 0 at the end, or an error. */
static int next_block(struct run_input *r)
{
    WB_CHECK(r->p == r->end);
    wait_ahead(r);
    if (r->step == STEP_NONE)
        read_ahead_job(r);
    WB_CHECK(r->step == STEP_READY);
    r->step = STEP_NONE;
    if (r->result < 0)
        return wb_error_restore(&r->error);
    if (r->result == 0)
        return 0;
    if (r->large_size) {
        int more = read_large(r);
        if (more < 0)
            return more;
    } else {
        r->p = r->block;
        r->end = r->p + r->block_len;
        r->ahead = 1 - r->ahead;
    }
    int err = start_ahead(r);
    return err < 0 ? err : 1;
}

static int advance_run(struct wb_sorter_input *input)
{
    struct run_input *r = (struct run_input *)(void *)input;
    struct wb_table_record_head head;

    if (r->p == r->end) {
        int more = next_block(r);
        if (more != 1)
            return more;
    }
    if (!wb_table_record_head_get(&r->p, r->end, r->key_len, &head) || head.shared + head.fresh > r->run.key_max)
        return damaged_run(r);
    memcpy(r->key + head.shared, r->p, head.fresh);
    r->key_len = head.shared + head.fresh;
    input->shared = head.shared;
    input->key = wb_slice(r->key, r->key_len);
    input->value = wb_slice(r->p + head.fresh, head.value);
    r->p += head.fresh + head.value;
    return 1;
}

static void close_run(struct wb_sorter_input *input)
{
    struct run_input *r = (struct run_input *)(void *)input;

    WB_CHECK(input->advance == advance_run);
    WB_CHECK(r->readers != NULL);
    wait_ahead(r);
    wb_free(r->window);
    wb_free(r->raw[0]);
    wb_free(r->raw[1]);
    wb_free(r->large);
    wb_free(r->key);
    wb_free(r);
}

int wb_sorter_input_open_run(const struct wb_sorter_run *run, struct wb_sorter_readers *readers, size_t block_bytes,
                             size_t window_bytes, struct wb_sorter_input **input_out)
{
    struct run_input *r = wb_alloc_zero(1, sizeof *r);
    int err = 0;

    WB_CHECK(run->key_max <= WB_TABLE_KEY_MAX);
    *input_out = NULL;
    if (!r)
        return WB_E_NOMEM;
    WB_CHECK(window_bytes >= wb_sorter_input_window_min(block_bytes));
    WB_CHECK(run->bytes > 0);
    WB_CHECK(run->file->fd >= 0);
    r->input = (struct wb_sorter_input){.key = WB_SLICE_EMPTY, .advance = advance_run, .close = close_run};
    r->run = *run;
    r->readers = readers;
    r->block_bytes = block_bytes;
    r->window_bytes = window_bytes;
    r->window = wb_alloc(window_bytes);
    r->raw[0] = run->packed ? wb_alloc(block_bytes) : NULL;
    r->raw[1] = run->packed ? wb_alloc(block_bytes) : NULL;
    r->key = wb_alloc(run->key_max);
    r->large = run->large_max ? wb_alloc(run->large_max) : NULL;
    if (!r->window || !r->key || (run->large_max && !r->large))
        err = WB_E_NOMEM;
    if (run->packed && (!r->raw[0] || !r->raw[1]))
        err = WB_E_NOMEM;
    if (err == 0)
        err = start_ahead(r);
    if (err < 0) {
        close_run(&r->input);
        return err;
    }
    *input_out = &r->input;
    return 0;
}
