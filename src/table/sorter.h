/*
 * sorter.h - what the files of the sorter share.
 *
 *   add -> chunk -> sorted -> run on disk ...        sorter.c, sorter_sort.c, sorter_run.c
 *                                runs -> fewer runs   sorter_pass.c
 *              inputs -> loser tree -> pump -> next   sorter_input.c, sorter_tree.c, sorter_pump.c
 *
 * A chunk is one piece of memory: records grow from its begin, entries from its end.
 */
#ifndef WB_TABLE_SORTER_H
#define WB_TABLE_SORTER_H

#include "base/error.h"
#include "base/pool.h"
#include "os/file.h"
#include "table/table_format.h"

#include <pthread.h>

/* ---- entries --------------------------------------------------------------------------------------- */

/* A record of a chunk: at `at` lie the length of its value (4 bytes), its key and its value. */
struct wb_sorter_entry {
    uint64_t prefix; /* the next 8 bytes of the key that were not looked at yet, as a number; zeros behind its end */
    uint32_t at, key_len;
};
_Static_assert(sizeof(struct wb_sorter_entry) == 16, "two words");

enum { ENTRY_HEAD_BYTES = 4 };

static inline struct wb_slice wb_sorter_entry_key(const struct wb_sorter_entry *entry, const char *records)
{
    return wb_slice(records + entry->at + ENTRY_HEAD_BYTES, entry->key_len);
}

static inline struct wb_slice wb_sorter_entry_value(const struct wb_sorter_entry *entry, const char *records)
{
    return wb_slice(records + entry->at + ENTRY_HEAD_BYTES + entry->key_len, wb_get32(records + entry->at));
}

static inline uint64_t wb_sorter_entry_prefix(const char *key, size_t len)
{
    uint64_t v = 0;

    if (len >= 8)
        memcpy(&v, key, 8);
    else if (len)
        memcpy(&v, key, len);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

/* By key, equal keys by place. Prefixes are those of the keys' begins, and nothing in particular afterwards. */
void wb_sorter_entries_sort(struct wb_sorter_entry *entries, size_t count, const char *records);

/* ---- runs ------------------------------------------------------------------------------------------- */

/*
 * A run: blocks one after the other.
 *   head, 16 bytes   0 stored bytes (4)  4 raw bytes (4)  8 checksum (4)  12 codec (4)
 * Raw bytes are records as in a table, but without restart points: a key may share bytes with the last one of the block before.
 * A record that is larger than a block is a block of its own, stored as it is.
 */
enum { RUN_HEAD_BYTES = 16 };
enum wb_sorter_run_codec { RUN_PLAIN = 0, RUN_ZSTD = 1, RUN_LARGE = 2 };

struct wb_sorter_run {
    const struct wb_file *file;
    uint64_t offset, bytes;
    uint64_t order;     /* runs of equal keys: the lower one first */
    size_t large_max;   /* the largest RUN_LARGE */
    size_t key_max;
    bool packed;        /* some of its blocks are RUN_ZSTD */
    unsigned depth;     /* how many times its records were merged already */
};

struct wb_sorter_run_writer {
    size_t block_bytes;
    ZSTD_CCtx *zstd; /* NULL: blocks stay as they are */
    struct wb_sorter_run run;
    struct wb_buf raw, pending; /* of the block being filled; blocks to be written */
};

/* Memory that a writer takes, besides records that it is given. */
size_t wb_sorter_run_writer_cost(size_t block_bytes);
int wb_sorter_run_writer_init(struct wb_sorter_run_writer *writer, const struct wb_file *file, uint64_t offset, size_t block_bytes, bool pack);

/* shared: bytes that the key has in common with the one before it in this run. */
int wb_sorter_run_writer_add(struct wb_sorter_run_writer *writer, struct wb_slice key, size_t shared, struct wb_slice value);
int wb_sorter_run_writer_finish(struct wb_sorter_run_writer *writer, struct wb_sorter_run *run_out);
void wb_sorter_run_writer_release(struct wb_sorter_run_writer *writer);

/* The checksum of a RUN_LARGE: of what stands before its value, and of the value. */
uint32_t wb_sorter_run_large_check(struct wb_slice before, struct wb_slice value);

/* ---- inputs of a merge --------------------------------------------------------------------------------- */

struct wb_sorter_input {
    struct wb_slice key, value; /* the record it stands at */
    uint32_t shared;            /* bytes that the key has in common with the one before it in this input */
    int (*advance)(struct wb_sorter_input *input); /* 1, 0 at the end, or an error */
    void (*close)(struct wb_sorter_input *input);
};

/* Who unpacks blocks ahead: the pool's threads, with a context of zstd each. */
struct wb_sorter_readers {
    struct wb_pool *pool; /* NULL: nobody */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    ZSTD_DCtx **zstd;     /* those not in use */
    unsigned zstd_free, zstd_count;
};

int wb_sorter_readers_init(struct wb_sorter_readers *readers, struct wb_pool *pool, unsigned threads);
void wb_sorter_readers_release(struct wb_sorter_readers *readers);

/* Sorted entries of a chunk, which stays where it is. */
int wb_sorter_input_open_memory(const struct wb_sorter_entry *entries, size_t count, const char *records, struct wb_sorter_input **input_out);

/* A run; window_bytes are read at a time, at least wb_sorter_input_window_min(). */
int wb_sorter_input_open_run(const struct wb_sorter_run *run, struct wb_sorter_readers *readers, size_t block_bytes, size_t window_bytes,
                 struct wb_sorter_input **input_out);
size_t wb_sorter_input_window_min(size_t block_bytes);
size_t wb_sorter_input_run_cost(const struct wb_sorter_run *run, size_t block_bytes);

/* ---- loser tree ------------------------------------------------------------------------------------------- */

struct wb_sorter_tree_node {
    uint32_t input;
    int32_t shared; /* with the key that beat it; -1: at its end */
};

/* Equal keys come in the order of the inputs. The inputs are the tree's: it closes them. */
struct wb_sorter_tree {
    struct wb_sorter_input **inputs;
    struct wb_sorter_tree_node *nodes; /* [0] is the winner */
    uint32_t count;
    bool started;
};

/* Takes the inputs (the array too) in any case. */
int wb_sorter_tree_init(struct wb_sorter_tree *tree, struct wb_sorter_input **inputs, size_t count);
void wb_sorter_tree_release(struct wb_sorter_tree *tree);

/* 1 with the next record and what its key shares with the one before; 0 at the end. */
int wb_sorter_tree_next(struct wb_sorter_tree *tree, const struct wb_sorter_input **record_out, size_t *shared_out);

/* ---- merging ahead -------------------------------------------------------------------------------------------- */

enum { PUMP_BATCHES = 3 };

struct wb_sorter_pump_batch {
    char *bytes;
    size_t used, taken;
    const struct wb_sorter_input *large; /* instead of bytes */
    struct wb_error_copy error;   /* that came behind the last record */
    bool full, last;              /* under the lock */
};

struct wb_sorter_pump {
    struct wb_sorter_tree *tree;
    size_t batch_bytes;
    bool threaded;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stopping;
    struct wb_sorter_pump_batch batches[PUMP_BATCHES];
    const struct wb_sorter_input *waiting; /* a record for which the batch had no room */
    unsigned taking;
    bool taken_any;
};

size_t wb_sorter_pump_cost(size_t block_bytes);
size_t wb_sorter_pump_batch_bytes(size_t block_bytes);

/* The tree stays the caller's, and must not be touched before wb_sorter_pump_stop(). */
int wb_sorter_pump_start(struct wb_sorter_pump *pump, struct wb_sorter_tree *tree, size_t block_bytes, bool thread);
void wb_sorter_pump_stop(struct wb_sorter_pump *pump);

/* As wb_sorter_next(). */
int wb_sorter_pump_take(struct wb_sorter_pump *pump, struct wb_table_record *record_out);

/* ---- the sorter -------------------------------------------------------------------------------------------- */

enum wb_sorter_chunk_state { CHUNK_FREE, CHUNK_FILLING, CHUNK_BUSY, CHUNK_SORTED };

struct wb_sorter_chunk {
    struct wb_sorter *sorter;
    char *memory; /* sorter->chunk_bytes; NULL: not needed so far */
    size_t used, count;
    uint64_t order;
    enum wb_sorter_chunk_state state; /* this and the next under the sorter's lock */
    bool to_disk;
    struct wb_file file;       /* of the runs that this chunk became */
    uint64_t file_bytes;
};

struct wb_sorter {
    char *dir;
    size_t memory_bytes, chunk_bytes, block_bytes, record_max;
    struct wb_sorter_chunk *chunks, *filling;
    unsigned chunk_count;
    struct wb_pool *pool;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool spilling;           /* memory was not enough */
    uint64_t next_order;
    struct wb_error_copy error; /* the first one; under the lock while jobs run */
    struct wb_buf runs;      /* struct wb_sorter_run, by order; under the lock while jobs run */
    struct wb_file merged;   /* runs that came from merging runs */
    uint64_t merged_bytes;
    struct wb_sorter_readers readers;
    bool readers_ready;
    struct wb_sorter_tree tree;
    struct wb_sorter_pump pump;
    bool sorted;
    struct wb_sorter_stat stat;
};

static inline struct wb_sorter_entry *wb_sorter_chunk_entries(const struct wb_sorter_chunk *chunk)
{
    return (struct wb_sorter_entry *)(void *)(chunk->memory + chunk->sorter->chunk_bytes) - chunk->count;
}

/* Whether the next run is packed: see sorter_run.c. Not under the lock. */
bool wb_sorter_should_pack(struct wb_sorter *sorter);

/* Makes runs fewer until what is left can be merged at once, and begins that. */
int wb_sorter_tree_runs(struct wb_sorter *sorter);

#endif
