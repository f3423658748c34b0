/*
 * rowmerge.c - runs of rows in a temporary file, and a heap that merges them (rowmerge.h).
 *
 * The file consists of chunks: whole rows of one run, about CHUNK_BYTES of them. A merge has one chunk of each run in
 * memory. If there are more than RUNS_MAX runs, the newest of them become one first, so that memory stays bounded
 * however many differences a vault has. A row in a chunk is three varints and the bytes:
 *
 *   table | length of the key | length of the value + 1, or 0 if the row is gone | key | value
 */
#include "vault/rowmerge.h"
#include "base/check.h"
#include "base/fields.h"
#include "base/mem.h"
#include "os/file.h"
#include "os/nameless.h"

#include <pthread.h>
#include <stdlib.h>

enum { CHUNK_BYTES = 32 << 10, RUNS_MAX = 1024, HEAD_MAX = 3 * WB_VARINT_MAX };
_Static_assert(RUNS_MAX <= (32 << 20) / CHUNK_BYTES, "what a merge keeps in memory");

struct wb_rowmerge {
    pthread_mutex_t lock;
    struct wb_file file;
    uint64_t bytes; /* of the file; protected by the lock, as the runs are */
    uint64_t next_order;
    WB_VEC(struct wb_rowrun) runs; /* that have ended */
};

int wb_rowmerge_new(const char *dir, struct wb_rowmerge **merge_out)
{
    struct wb_rowmerge *merge = wb_alloc_zero(1, sizeof *merge);

    *merge_out = NULL;
    if (!merge)
        return WB_E_NOMEM;
    merge->file = WB_FILE_INIT;
    WB_CHECK(pthread_mutex_init(&merge->lock, NULL) == 0);
    int err = wb_nameless_open(dir, &merge->file);
    if (err < 0)
        wb_rowmerge_free(merge);
    else
        *merge_out = merge;
    return err;
}

void wb_rowmerge_free(struct wb_rowmerge *merge)
{
    if (!merge)
        return;
    for (size_t i = 0; i < merge->runs.count; i++)
        wb_rowrun_release(&merge->runs.items[i]);
    wb_vec_release(&merge->runs);
    wb_file_close(&merge->file);
    pthread_mutex_destroy(&merge->lock);
    wb_free(merge);
}

/* ---- writing a run --------------------------------------------------------------------------------------- */

void wb_rowrun_begin(struct wb_rowrun *run, struct wb_rowmerge *merge, size_t part, uint64_t age)
{
    *run = (struct wb_rowrun){.merge = merge, .part = part, .age = age};
}

void wb_rowrun_release(struct wb_rowrun *run)
{
    wb_buf_release(&run->waiting);
    wb_buf_release(&run->last);
    wb_vec_release(&run->chunks);
    *run = (struct wb_rowrun){0};
}

/* Writes the rows that wait as a chunk. */
static int write_chunk(struct wb_rowrun *run)
{
    struct wb_rowmerge *merge = run->merge;
    struct wb_rowchunk chunk = {.len = (uint32_t)run->waiting.len};

    WB_CHECK(run->waiting.len <= UINT32_MAX);
    if (!chunk.len)
        return 0;
    pthread_mutex_lock(&merge->lock);
    chunk.offset = merge->bytes;
    merge->bytes += chunk.len;
    pthread_mutex_unlock(&merge->lock);
    int err = wb_file_write_at(&merge->file, chunk.offset, run->waiting.ptr, run->waiting.len);
    if (err == 0)
        err = wb_vec_push(&run->chunks, chunk);
    wb_buf_clear(&run->waiting);
    wb_buf_trim(&run->waiting, CHUNK_BYTES);
    return err;
}

static int compare_rows(unsigned table_a, struct wb_slice key_a, unsigned table_b, struct wb_slice key_b)
{
    return table_a != table_b ? (table_a < table_b ? -1 : 1) : wb_slice_compare(key_a, key_b);
}

int wb_rowrun_add(struct wb_rowrun *run, unsigned table, struct wb_slice key, struct wb_slice value)
{
    WB_CHECK(run->merge);
    if (run->any && compare_rows(run->last_table, wb_buf_slice(&run->last), table, key) >= 0)
        return wb_fail(WB_E_CORRUPT, "its rows are not in order");
    if (key.len + value.len + HEAD_MAX > UINT32_MAX / 2)
        return wb_fail(WB_E_CORRUPT, "a row of %zu bytes", key.len + value.len);
    int err =
        run->waiting.len && run->waiting.len + key.len + value.len + HEAD_MAX > CHUNK_BYTES ? write_chunk(run) : 0;
    if (err == 0)
        err = wb_buf_reserve(&run->waiting, key.len + value.len + HEAD_MAX);
    if (err < 0)
        return err;
    char *p = run->waiting.ptr + run->waiting.len;
    p = wb_fields_put(p, table);
    p = wb_fields_put(p, key.len);
    p = wb_fields_put(p, value.ptr ? value.len + 1 : 0);
    run->waiting.len = (size_t)(p - run->waiting.ptr);
    err = wb_buf_append_slice(&run->waiting, key);
    if (err == 0 && value.ptr)
        err = wb_buf_append_slice(&run->waiting, value);
    run->any = true;
    run->last_table = table;
    wb_buf_clear(&run->last);
    return err < 0 ? err : wb_buf_append_slice(&run->last, key);
}

int wb_rowrun_end(struct wb_rowrun *run)
{
    struct wb_rowmerge *merge = run->merge;
    int err = write_chunk(run);

    wb_buf_release(&run->waiting);
    wb_buf_release(&run->last);
    pthread_mutex_lock(&merge->lock);
    run->order = merge->next_order++;
    if (err == 0)
        err = wb_vec_push(&merge->runs, *run);
    pthread_mutex_unlock(&merge->lock);
    if (err == 0)
        *run = (struct wb_rowrun){0};
    return err;
}

/* ---- merging --------------------------------------------------------------------------------------------- */

/* A place in a run. */
struct reader {
    const struct wb_rowrun *run;
    struct wb_rowmerge *merge;
    struct wb_buf chunk;
    struct wb_fields rest; /* of the chunk */
    size_t next;           /* chunk */
    unsigned table;        /* the current row, in chunk */
    struct wb_slice key, value;
};

/* Moves to the next row. Returns 1, or 0 at the end. What is read here was written by this process. */
static int advance(struct reader *reader)
{
    if (reader->rest.at == reader->rest.end) {
        if (reader->next == reader->run->chunks.count)
            return 0;
        const struct wb_rowchunk *chunk = &reader->run->chunks.items[reader->next++];
        wb_buf_clear(&reader->chunk);
        wb_buf_trim(&reader->chunk, CHUNK_BYTES);
        int err = wb_buf_reserve(&reader->chunk, chunk->len);
        if (err == 0)
            err = wb_file_read_exact(&reader->merge->file, chunk->offset, reader->chunk.ptr, chunk->len);
        if (err < 0)
            return err;
        reader->chunk.len = chunk->len;
        reader->rest = wb_fields_of(wb_buf_slice(&reader->chunk));
    }
    reader->table = (unsigned)wb_fields_take(&reader->rest, UINT32_MAX);
    uint64_t key_len = wb_fields_take(&reader->rest, UINT32_MAX), value_len = wb_fields_take(&reader->rest, UINT32_MAX);
    reader->key = wb_fields_take_slice(&reader->rest, key_len);
    reader->value = value_len ? wb_fields_take_slice(&reader->rest, value_len - 1) : wb_slice(NULL, 0);
    if (!reader->rest.ok)
        return wb_fail(WB_E_CORRUPT, "a temporary file in %s does not have what was written to it",
                       reader->merge->file.path);
    return 1;
}

/* Readers by their current rows, the least first; of equal rows the newest. [0] is the top. */
struct row_heap {
    struct reader **readers;
    size_t count;
};

static bool comes_before(const struct reader *a, const struct reader *b)
{
    int order = compare_rows(a->table, a->key, b->table, b->key);

    if (order)
        return order < 0;
    return a->run->age != b->run->age ? a->run->age > b->run->age : a->run->order > b->run->order;
}

static void sift_down(struct row_heap *heap, size_t at)
{
    struct reader *moved = heap->readers[at];

    for (size_t child; (child = 2 * at + 1) < heap->count; at = child) {
        if (child + 1 < heap->count && comes_before(heap->readers[child + 1], heap->readers[child]))
            child++;
        if (!comes_before(heap->readers[child], moved))
            break;
        heap->readers[at] = heap->readers[child];
    }
    heap->readers[at] = moved;
}

/* Moves the reader at the top to its next row. */
static int advance_top(struct row_heap *heap)
{
    int err = advance(heap->readers[0]);

    if (err == 0)
        heap->readers[0] = heap->readers[--heap->count];
    if (err >= 0 && heap->count)
        sift_down(heap, 0);
    return err < 0 ? err : 0;
}

/* Calls each() for the newest of all equal rows, also for those that are gone. */
static int walk_heap(struct row_heap *heap, wb_rowmerge_each_row each, void *context)
{
    struct wb_buf last = WB_BUF_INIT;
    unsigned last_table = 0;
    bool any = false;
    int err = 0;

    while (heap->count && err == 0) {
        const struct reader *top = heap->readers[0];
        bool newest = !any || compare_rows(last_table, wb_buf_slice(&last), top->table, top->key) != 0;
        if (newest) {
            wb_buf_clear(&last);
            last_table = top->table;
            any = true;
            err = wb_buf_append_slice(&last, top->key);
        }
        if (newest && err == 0)
            err = each(context, top->table, top->key, top->value);
        if (err == 0)
            err = advance_top(heap);
    }
    wb_buf_release(&last);
    return err;
}

static int merge_runs(struct wb_rowmerge *merge, const struct wb_rowrun *runs, size_t count, wb_rowmerge_each_row each,
                      void *context)
{
    struct reader *readers = wb_alloc_zero(count ? count : 1, sizeof *readers);
    struct row_heap heap = {.readers = wb_alloc_zero(count ? count : 1, sizeof *heap.readers)};
    int err = readers && heap.readers ? 0 : WB_E_NOMEM;

    for (size_t i = 0; i < count && err == 0; i++) {
        readers[i] = (struct reader){.run = &runs[i], .merge = merge, .chunk = WB_BUF_INIT};
        err = advance(&readers[i]);
        if (err > 0)
            heap.readers[heap.count++] = &readers[i];
        err = err < 0 ? err : 0;
    }
    for (size_t i = heap.count / 2; i-- > 0 && err == 0;)
        sift_down(&heap, i);
    if (err == 0)
        err = walk_heap(&heap, each, context);
    for (size_t i = 0; readers && i < count; i++)
        wb_buf_release(&readers[i].chunk);
    wb_free(readers);
    wb_free(heap.readers);
    return err;
}

static int compare_runs(const void *a, const void *b)
{
    const struct wb_rowrun *x = a, *y = b;

    if (x->part != y->part)
        return x->part < y->part ? -1 : 1;
    if (x->age != y->age)
        return x->age < y->age ? -1 : 1;
    return (x->order > y->order) - (x->order < y->order);
}

static int add_to_run(void *context, unsigned table, struct wb_slice key, struct wb_slice value)
{
    return wb_rowrun_add(context, table, key, value);
}

/* Makes one run of the runs first to first + count - 1. The order among all others stays as it is. */
static int join_runs(struct wb_rowmerge *merge, size_t first, size_t count)
{
    struct wb_rowrun *runs = &merge->runs.items[first], joined;

    wb_rowrun_begin(&joined, merge, runs->part, runs[count - 1].age);
    joined.order = runs[count - 1].order;
    int err = merge_runs(merge, runs, count, add_to_run, &joined);
    if (err == 0)
        err = write_chunk(&joined);
    if (err < 0) {
        wb_rowrun_release(&joined);
        return err;
    }
    wb_buf_release(&joined.waiting);
    wb_buf_release(&joined.last);
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < runs[i].chunks.count; k++)
            wb_file_discard(&merge->file, runs[i].chunks.items[k].offset, runs[i].chunks.items[k].len);
        wb_rowrun_release(&runs[i]);
    }
    runs[0] = joined;
    merge->runs.count -= count - 1;
    memmove(runs + 1, runs + count, (merge->runs.count - first - 1) * sizeof *runs);
    return 0;
}

struct there {
    wb_rowmerge_each_row each;
    void *context;
};

static int only_there(void *context, unsigned table, struct wb_slice key, struct wb_slice value)
{
    const struct there *there = context;

    return value.ptr ? there->each(there->context, table, key, value) : 0;
}

int wb_rowmerge_each(struct wb_rowmerge *merge, size_t part, wb_rowmerge_each_row each, void *context)
{
    struct there there = {each, context};
    size_t first = 0, count = 0;
    int err = 0;

    if (merge->runs.count)
        qsort(merge->runs.items, merge->runs.count, sizeof *merge->runs.items, compare_runs);
    while (first < merge->runs.count && merge->runs.items[first].part < part)
        first++;
    while (first + count < merge->runs.count && merge->runs.items[first + count].part == part)
        count++;
    /* The base is the largest by far. It is joined only when nothing else is left. */
    while (count > RUNS_MAX && err == 0) {
        size_t joined = count - RUNS_MAX + 1 < RUNS_MAX - 1 ? count - RUNS_MAX + 1 : RUNS_MAX - 1;
        err = join_runs(merge, first + count - joined, joined);
        count -= joined - 1;
    }
    return err < 0 ? err : merge_runs(merge, &merge->runs.items[first], count, only_there, &there);
}
