/*
 * sorter.h - what the files of the sorter share. The rest of the room sees only table.h.
 *
 *   add -> chunk -> sorted -> run on disk            sorter.c, sorter_sort.c, sorter_run.c
 *                             runs -> fewer runs     sorter_pass.c
 *           inputs -> loser tree -> pump -> next     sorter_input.c, sorter_tree.c, sorter_pump.c
 *
 * A chunk is one piece of memory. Records are appended from its start, and one entry per record from its end:
 *
 *   | record | record | record | ->     free     <- | entry | entry | entry |
 *
 * Sorting moves only the entries. If the records do not fit in memory, each sorted chunk is written to disk as a run,
 * and the runs are merged.
 */
#ifndef WB_TABLE_SORTER_H
#define WB_TABLE_SORTER_H

#include "base/error.h"
#include "base/pool.h"
#include "base/vec.h"
#include "os/file.h"
#include "table/table_format.h"

#include <pthread.h>

enum { SORTER_MAGIC = 0x57425352 }; /* "WBSR" */

/* ---- entries --------------------------------------------------------------------------------- */

/* One record of a chunk. At offset `at` of the chunk are the length of the value (4 bytes), the key and the value. */
struct wb_sorter_entry {
    uint64_t prefix; /* the next 8 bytes of the key to be compared, as a big-endian number; zeros after its end */
    uint32_t at, key_len;
};
_Static_assert(sizeof(struct wb_sorter_entry) == 16, "memory is planned with two words per entry");
_Static_assert(WB_TABLE_VALUE_MAX <= UINT32_MAX, "the length of a value has 4 bytes");
_Static_assert(WB_TABLE_KEY_MAX <= INT32_MAX, "the tree counts shared bytes of keys, and has -1 for the end");

enum { ENTRY_HEAD_BYTES = 4 };
_Static_assert(ENTRY_HEAD_BYTES == sizeof(uint32_t), "the length of a value");

static inline struct wb_slice wb_sorter_entry_key(const struct wb_sorter_entry *entry, const char *records)
{
    return wb_slice(records + entry->at + ENTRY_HEAD_BYTES, entry->key_len);
}

static inline struct wb_slice wb_sorter_entry_value(const struct wb_sorter_entry *entry, const char *records)
{
    return wb_slice(records + entry->at + ENTRY_HEAD_BYTES + entry->key_len, wb_get32(records + entry->at));
}

/* The first 8 bytes of a key as a number, so that comparing numbers compares keys. */
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

/*
 * Sorts by key; records with equal keys stay in the order in which they were added. On entry every prefix holds the
 * first 8 bytes of its key; afterwards the prefixes mean nothing.
 */
void wb_sorter_entries_sort(struct wb_sorter_entry *entries, size_t count, const char *records);

/* ---- runs ------------------------------------------------------------------------------------ */

/*
 * A run is a sequence of blocks in a temporary file.
 *
 *   block head, 16 bytes   0 stored bytes (4)  4 raw bytes (4)  8 checksum (4)  12 codec (4)
 *
 * Raw bytes are records as in a table, but without restart points: a key may share bytes with the last key of the
 * previous block. A record larger than a block is a block of its own (RUN_LARGE) and is never compressed.
 */
enum { RUN_HEAD_BYTES = 16 };
_Static_assert(RUN_HEAD_BYTES == 4 * 4, "the block head as drawn above");
enum wb_sorter_run_codec { RUN_PLAIN = 0, RUN_ZSTD = 1, RUN_LARGE = 2 };

struct wb_sorter_run {
    const struct wb_file *file;
    uint64_t offset, bytes; /* where it is in the file */
    uint64_t order;     /* among records with equal keys, those of the run with the lower order come first */
    size_t large_max;   /* size of the largest RUN_LARGE block, 0 if there is none */
    size_t key_max;     /* length of the longest key */
    bool packed;        /* some of its blocks may be RUN_ZSTD */
    unsigned depth;     /* how many times its records have been merged already */
};

struct wb_sorter_run_writer {
    size_t block_bytes;
    ZSTD_CCtx *zstd; /* NULL if blocks are not compressed */
    struct wb_sorter_run run;
    struct wb_buf raw;     /* the block being filled */
    struct wb_buf pending; /* finished blocks, not yet written */
};

/* The memory that a writer needs, not counting the records that it is given. */
size_t wb_sorter_run_writer_cost(size_t block_bytes);

/* pack: compress the blocks. Release the writer even if this fails. */
int wb_sorter_run_writer_init(struct wb_sorter_run_writer *writer, const struct wb_file *file, uint64_t offset,
                              size_t block_bytes, bool pack);

/* Keys must not descend. shared: how many bytes the key has in common with the previous key of this run. */
int wb_sorter_run_writer_add(struct wb_sorter_run_writer *writer, struct wb_slice key, size_t shared,
                             struct wb_slice value);
int wb_sorter_run_writer_finish(struct wb_sorter_run_writer *writer, struct wb_sorter_run *run_out);
void wb_sorter_run_writer_release(struct wb_sorter_run_writer *writer);

/* The checksum of a RUN_LARGE block: before is everything up to the value. */
uint32_t wb_sorter_run_large_check(struct wb_slice before, struct wb_slice value);

/* ---- inputs of a merge ----------------------------------------------------------------------- */

/* A sorted sequence of records and a position in it. */
struct wb_sorter_input {
    struct wb_slice key, value; /* the current record, valid until advance() */
    uint32_t shared;            /* how many bytes its key has in common with the previous key of this input */
    int (*advance)(struct wb_sorter_input *input); /* required: returns 1, 0 at the end, or an error */
    void (*close)(struct wb_sorter_input *input);  /* required: frees the input */
};

/* What the inputs of a merge share: the threads that decompress blocks ahead, and one zstd context for each of them. */
struct wb_sorter_readers {
    struct wb_pool *pool; /* NULL: the merging thread decompresses */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    ZSTD_DCtx **zstd;     /* the contexts that are not in use */
    unsigned zstd_free, zstd_count;
};

int wb_sorter_readers_init(struct wb_sorter_readers *readers, struct wb_pool *pool, unsigned threads);
void wb_sorter_readers_release(struct wb_sorter_readers *readers);

/* Sorted entries of a chunk. The chunk must stay until the input is closed. */
int wb_sorter_input_open_memory(const struct wb_sorter_entry *entries, size_t count, const char *records,
                                struct wb_sorter_input **input_out);

/* A run, read window_bytes at a time; the window must have at least wb_sorter_input_window_min(). */
int wb_sorter_input_open_run(const struct wb_sorter_run *run, struct wb_sorter_readers *readers, size_t block_bytes,
                             size_t window_bytes, struct wb_sorter_input **input_out);
size_t wb_sorter_input_window_min(size_t block_bytes);

/* The memory that an input for this run needs, with the smallest window. */
size_t wb_sorter_input_run_cost(const struct wb_sorter_run *run, size_t block_bytes);

/* ---- loser tree ------------------------------------------------------------------------------ */

struct wb_sorter_tree_node {
    uint32_t input;
    int32_t shared; /* how many bytes its key has in common with the key that beat it; -1 if the input is at its end */
};

/* Merges inputs. Records with equal keys come in the order of the inputs. The tree owns the inputs and closes them. */
struct wb_sorter_tree {
    struct wb_sorter_input **inputs;
    struct wb_sorter_tree_node *nodes; /* [0] is the winner, the others are losers */
    uint32_t count;
    bool started;
};

/* Takes over the inputs and their array, even if it fails. */
int wb_sorter_tree_init(struct wb_sorter_tree *tree, struct wb_sorter_input **inputs, size_t count);
void wb_sorter_tree_release(struct wb_sorter_tree *tree);

/* Returns 1, the next record and how many bytes its key shares with the previous one; 0 at the end. */
int wb_sorter_tree_next(struct wb_sorter_tree *tree, const struct wb_sorter_input **record_out, size_t *shared_out);

/* ---- merging ahead --------------------------------------------------------------------------- */

enum { PUMP_BATCHES = 3 };
_Static_assert(PUMP_BATCHES >= 2, "one batch is filled while another is taken");

struct wb_sorter_pump_batch {
    char *bytes;
    size_t used, taken;                  /* bytes filled; bytes returned to the taker */
    const struct wb_sorter_input *large; /* a single record that is too large for bytes, or NULL */
    struct wb_error_copy error;          /* an error that came after the last record */
    bool full, last;                     /* protected by the lock: the taker may read it; no other batch follows */
};

/* Merges in a thread of its own, ahead of the caller who takes the records. */
struct wb_sorter_pump {
    struct wb_sorter_tree *tree;
    size_t batch_bytes;
    bool threaded;   /* false: wb_sorter_pump_take() merges itself, and nothing below is used */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool stopping;
    struct wb_sorter_pump_batch batches[PUMP_BATCHES]; /* a ring */
    const struct wb_sorter_input *waiting; /* a record that did not fit into the last batch */
    unsigned taking; /* the batch that the taker reads */
    bool taken_any;  /* false until the first batch has been filled */
};

/* The memory that a pump needs. */
size_t wb_sorter_pump_cost(size_t block_bytes);

/* The tree belongs to the pump until wb_sorter_pump_stop(); afterwards the caller releases it. */
int wb_sorter_pump_start(struct wb_sorter_pump *pump, struct wb_sorter_tree *tree, size_t block_bytes, bool thread);
void wb_sorter_pump_stop(struct wb_sorter_pump *pump);

/* As wb_sorter_next(). */
int wb_sorter_pump_take(struct wb_sorter_pump *pump, struct wb_table_record *record_out);

/* ---- the sorter ------------------------------------------------------------------------------ */

/* See sorter.c for the life of a chunk. */
enum wb_sorter_chunk_state { CHUNK_FREE, CHUNK_FILLING, CHUNK_BUSY, CHUNK_SORTED };

struct wb_sorter_chunk {
    struct wb_sorter *sorter;
    char *memory;      /* sorter->chunk_bytes; NULL until the chunk is first needed */
    size_t used, count; /* bytes of records; number of records */
    uint64_t order;    /* the order of the run that it becomes */
    enum wb_sorter_chunk_state state; /* protected by the sorter's lock */
    bool to_disk;      /* protected by the sorter's lock: once sorted, write it as a run */
    struct wb_file file; /* all runs that this chunk has become */
    uint64_t file_bytes;
};

struct wb_sorter {
    uint32_t magic;
    char *dir;
    size_t memory_bytes, chunk_bytes, block_bytes, record_max;
    struct wb_sorter_chunk *chunks, *filling; /* filling: NULL before the first record and once sorted */
    unsigned chunk_count;
    struct wb_pool *pool;       /* NULL without threads */
    pthread_mutex_t lock;
    pthread_cond_t changed;     /* a chunk is free */
    bool spilling;              /* the records do not fit in memory: chunks are written as runs */
    uint64_t next_order;
    struct wb_error_copy error; /* the first error; protected by the lock while jobs run */
    WB_VEC(struct wb_sorter_run) runs; /* by order; protected by the lock while jobs run */
    struct wb_file merged;      /* the runs that came from merging runs */
    uint64_t merged_bytes;
    struct wb_sorter_readers readers;
    bool readers_ready;
    struct wb_sorter_tree tree;
    struct wb_sorter_pump pump;
    bool sorted;                /* wb_sorter_sort() was called: no more records are added */
    struct wb_sorter_stat stat;
};

static inline struct wb_sorter_entry *wb_sorter_chunk_entries(const struct wb_sorter_chunk *chunk)
{
    return (struct wb_sorter_entry *)(void *)(chunk->memory + chunk->sorter->chunk_bytes) - chunk->count;
}

/* Whether the next run should be compressed: see sorter_run.c. Takes the lock. */
bool wb_sorter_should_pack(struct wb_sorter *sorter);

/* Merges runs until the rest can be merged at once, and starts that last merge in sorter->tree. */
int wb_sorter_merge_runs(struct wb_sorter *sorter);

#endif
