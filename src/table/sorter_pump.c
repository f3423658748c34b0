/*
 * sorter_pump.c - runs the last merge in a separate thread, ahead of the caller who takes the records.
 *
 * The thread copies records into a ring of batches: EMPTY -> (the thread fills it) -> FULL -> (the taker reads it) ->
 * EMPTY. A record larger than a batch is not copied. The taker gets it where it is, in its input, and the thread waits
 * until the taker has moved on. Without a thread the taker merges.
 *
 *   batch    one record after the other: length of the key (4), length of the value (4), key, value
 *
 * Apart from the two flags under the lock, a batch belongs to the thread while it is EMPTY and to the taker while it is
 * FULL.
 */
#include "base/mem.h"
#include "table/sorter.h"

enum { PUMP_RECORD_HEAD = 8 };
_Static_assert(PUMP_RECORD_HEAD == 4 + 4, "a record of a batch as drawn above");

static size_t batch_bytes_for(size_t block_bytes)
{
    WB_CHECK(block_bytes > 0);
    return 6 * block_bytes;
}

size_t wb_sorter_pump_cost(size_t block_bytes)
{
    return PUMP_BATCHES * batch_bytes_for(block_bytes);
}

/* ---- the thread: filling --------------------------------------------------------------------- */

/* Copies a record into the batch. Returns false if the batch has no room left for it. */
static bool put_record(struct wb_sorter_pump *pump, struct wb_sorter_pump_batch *batch,
                       const struct wb_sorter_input *record)
{
    size_t need = PUMP_RECORD_HEAD + record->key.len + record->value.len;

    WB_CHECK(batch->used <= pump->batch_bytes);
    WB_CHECK(batch->bytes != NULL);
    if (need > pump->batch_bytes - batch->used) {
        if (batch->used > 0)
            return false;
        batch->large = record;
        return true;
    }
    char *to = batch->bytes + batch->used;
    wb_put32(to, (uint32_t)record->key.len);
    wb_put32(to + 4, (uint32_t)record->value.len);
    memcpy(to + PUMP_RECORD_HEAD, record->key.ptr, record->key.len);
    if (record->value.len)
        memcpy(to + PUMP_RECORD_HEAD + record->key.len, record->value.ptr, record->value.len);
    batch->used += need;
    return true;
}

/* Fills a batch. Returns 1, 0 if it is the last one, or an error that comes after the records in it. */
static int fill_batch(struct wb_sorter_pump *pump, struct wb_sorter_pump_batch *batch)
{
    size_t shared;

    WB_CHECK(pump->tree != NULL);
    WB_CHECK(batch->large == NULL); /* the taker has moved on from it */
    batch->used = batch->taken = 0;
    for (;;) {
        if (!pump->waiting) {
            int more = wb_sorter_tree_next(pump->tree, &pump->waiting, &shared);
            if (more != 1)
                return more;
        }
        if (!put_record(pump, batch, pump->waiting))
            return 1;
        pump->waiting = NULL;
        if (batch->large)
            return 1;
    }
}

/* Waits until the batch is empty. Returns false if the pump is being stopped. */
static bool wait_empty(struct wb_sorter_pump *pump, const struct wb_sorter_pump_batch *batch)
{
    WB_CHECK(batch >= pump->batches);
    WB_CHECK(batch < pump->batches + PUMP_BATCHES);
    pthread_mutex_lock(&pump->lock);
    while (batch->full && !pump->stopping)
        pthread_cond_wait(&pump->changed, &pump->lock);
    bool wanted = !pump->stopping;
    pthread_mutex_unlock(&pump->lock);
    return wanted;
}

static void *run_pump(void *context)
{
    struct wb_sorter_pump *pump = context;
    int more = 1;

    WB_CHECK(pump->tree->count >= 2);
    for (unsigned next = 0; more == 1; next = (next + 1) % PUMP_BATCHES) {
        struct wb_sorter_pump_batch *batch = &pump->batches[next];
        if (!wait_empty(pump, batch))
            break;
        more = fill_batch(pump, batch);
        if (more < 0)
            wb_error_save(more, &batch->error);
        bool large = batch->large != NULL; /* read it now: once the batch is full, it belongs to the taker */
        pthread_mutex_lock(&pump->lock);
        WB_CHECK(!batch->full);
        batch->last = more != 1;
        batch->full = true;
        pthread_cond_broadcast(&pump->changed);
        pthread_mutex_unlock(&pump->lock);
        /* The tree must not advance while the taker reads the record in its input. */
        if (large && !wait_empty(pump, batch))
            break;
    }
    return NULL;
}

/* ---- the taker ------------------------------------------------------------------------------- */

int wb_sorter_pump_start(struct wb_sorter_pump *pump, struct wb_sorter_tree *tree, size_t block_bytes, bool thread)
{
    WB_CHECK(tree->inputs != NULL);
    WB_CHECK(block_bytes > 0);
    WB_CHECK(!tree->started);
    *pump = (struct wb_sorter_pump){.tree = tree, .batch_bytes = batch_bytes_for(block_bytes)};
    if (!thread || tree->count < 2) /* with one input there is nothing to merge */
        return 0;
    for (unsigned i = 0; i < PUMP_BATCHES; i++) {
        pump->batches[i].bytes = wb_alloc(pump->batch_bytes);
        if (!pump->batches[i].bytes)
            return WB_E_NOMEM;
    }
    pthread_mutex_init(&pump->lock, NULL);
    pthread_cond_init(&pump->changed, NULL);
    pump->threaded = pthread_create(&pump->thread, NULL, run_pump, pump) == 0;
    if (!pump->threaded) {
        pthread_mutex_destroy(&pump->lock);
        pthread_cond_destroy(&pump->changed);
    }
    return 0;
}

void wb_sorter_pump_stop(struct wb_sorter_pump *pump)
{
    WB_CHECK(!pump->threaded || pump->tree != NULL);
    if (pump->threaded) {
        pthread_mutex_lock(&pump->lock);
        pump->stopping = true;
        pthread_cond_broadcast(&pump->changed);
        pthread_mutex_unlock(&pump->lock);
        pthread_join(pump->thread, NULL);
        pthread_mutex_destroy(&pump->lock);
        pthread_cond_destroy(&pump->changed);
    }
    for (unsigned i = 0; i < PUMP_BATCHES; i++)
        wb_free(pump->batches[i].bytes);
    *pump = (struct wb_sorter_pump){0};
}

static int take_merged(struct wb_sorter_pump *pump, struct wb_table_record *record_out)
{
    const struct wb_sorter_input *input;
    size_t shared;

    WB_CHECK(!pump->threaded);
    int more = wb_sorter_tree_next(pump->tree, &input, &shared);
    if (more == 1)
        *record_out = (struct wb_table_record){.key = input->key, .value = input->value};
    return more;
}

/* The current batch has been read: makes it empty and waits for the next one. Returns false if it was the last. */
static bool next_batch(struct wb_sorter_pump *pump)
{
    struct wb_sorter_pump_batch *batch = &pump->batches[pump->taking];

    WB_CHECK(pump->threaded);
    WB_CHECK(pump->taking < PUMP_BATCHES);
    pthread_mutex_lock(&pump->lock);
    if (pump->taken_any) {
        if (batch->last) {
            pthread_mutex_unlock(&pump->lock);
            return false;
        }
        WB_CHECK(batch->full);
        batch->full = false;
        pthread_cond_broadcast(&pump->changed);
        pump->taking = (pump->taking + 1) % PUMP_BATCHES;
        batch = &pump->batches[pump->taking];
    }
    while (!batch->full)
        pthread_cond_wait(&pump->changed, &pump->lock);
    pump->taken_any = true;
    pthread_mutex_unlock(&pump->lock);
    return true;
}

int wb_sorter_pump_take(struct wb_sorter_pump *pump, struct wb_table_record *record_out)
{
    struct wb_sorter_pump_batch *batch = &pump->batches[pump->taking];

    WB_CHECK(pump->tree != NULL);
    if (!pump->threaded)
        return take_merged(pump, record_out);
    while (!pump->taken_any || (batch->taken == batch->used && !batch->large)) {
        if (!next_batch(pump))
            return batch->error.code ? wb_error_restore(&batch->error) : 0;
        batch = &pump->batches[pump->taking];
    }
    if (batch->large) {
        WB_CHECK(batch->used == 0); /* it is alone in its batch */
        *record_out = (struct wb_table_record){.key = batch->large->key, .value = batch->large->value};
        batch->large = NULL;
        return 1;
    }
    WB_CHECK(batch->used - batch->taken >= PUMP_RECORD_HEAD);
    const char *from = batch->bytes + batch->taken;
    uint32_t key = wb_get32(from), value = wb_get32(from + 4);
    *record_out = (struct wb_table_record){.key = wb_slice(from + PUMP_RECORD_HEAD, key),
                                           .value = wb_slice(from + PUMP_RECORD_HEAD + key, value)};
    batch->taken += PUMP_RECORD_HEAD + (size_t)key + value;
    WB_CHECK(batch->taken <= batch->used);
    return 1;
}
