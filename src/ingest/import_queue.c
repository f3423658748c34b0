/*
 * import_queue.c - the bounded queue of an import.
 *
 *   reader: batch --hand_over--> head (in flight) --take--> writer: freed --give_back--> room for more
 *
 * It never looks at what is in an item.
 */
#include "ingest/import_queue.h"
#include "base/check.h"

#include <time.h>

#define IN_FLIGHT_MAX ((size_t)24 << 20)   /* the bound, in bytes */
#define LARGE_BYTES ((size_t)8 << 20)      /* after an item of this size the reader waits until it is gone */
#define BATCH_ITEMS 64                     /* the reader hands over lists of this many items... */
#define BATCH_BYTES ((size_t)256 << 10)    /* ...or bytes */
#define GIVE_BACK_BYTES ((size_t)1 << 20)  /* the writer gives back room in steps of this size */

_Static_assert(BATCH_BYTES <= IN_FLIGHT_MAX && LARGE_BYTES <= IN_FLIGHT_MAX, "a batch fits into the bound");
_Static_assert(GIVE_BACK_BYTES < IN_FLIGHT_MAX, "room is given back before the reader starves");

void wb_import_queue_init(struct wb_import_queue *queue)
{
    pthread_condattr_t attributes;

    *queue = (struct wb_import_queue){.closed = false};
    queue->tail = &queue->head;
    queue->batch_tail = &queue->batch;
    pthread_mutex_init(&queue->mutex, NULL);
    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_cond_init(&queue->filled, &attributes);
    pthread_cond_init(&queue->emptied, &attributes);
    pthread_condattr_destroy(&attributes);
}

static void free_list(struct wb_import_item *list)
{
    while (list) {
        struct wb_import_item *next = list->next;
        wb_import_item_free(list);
        list = next;
    }
}

void wb_import_queue_release(struct wb_import_queue *queue)
{
    free_list(queue->head);
    free_list(queue->batch);
    pthread_cond_destroy(&queue->filled);
    pthread_cond_destroy(&queue->emptied);
    pthread_mutex_destroy(&queue->mutex);
}

/* Moves the reader's batch to where the writer finds it. The mutex must be held. */
static void hand_over(struct wb_import_queue *queue)
{
    if (!queue->batch)
        return;
    *queue->tail = queue->batch;
    queue->tail = queue->batch_tail;
    queue->in_flight += queue->batch_bytes;
    queue->batch = NULL;
    queue->batch_tail = &queue->batch;
    queue->batch_count = queue->batch_bytes = 0;
    pthread_cond_signal(&queue->filled);
}

/* Waits until in_flight is at most the limit; false if the queue was stopped. The mutex must be held. */
static bool wait_until(struct wb_import_queue *queue, size_t limit)
{
    while (queue->in_flight > limit && !atomic_load(&queue->stopped))
        pthread_cond_wait(&queue->emptied, &queue->mutex);
    return !atomic_load(&queue->stopped);
}

bool wb_import_queue_room(struct wb_import_queue *queue, size_t bytes)
{
    /* A batch is small compared with the bound, so a small item that joins one need not wait. */
    if (bytes < BATCH_BYTES && queue->batch_count)
        return !atomic_load(&queue->stopped);
    pthread_mutex_lock(&queue->mutex);
    if (bytes >= BATCH_BYTES)
        hand_over(queue);
    bool go = wait_until(queue, bytes < IN_FLIGHT_MAX ? IN_FLIGHT_MAX - bytes : 0);
    pthread_mutex_unlock(&queue->mutex);
    return go;
}

bool wb_import_queue_push(struct wb_import_queue *queue, struct wb_import_item *item)
{
    bool large = item->bytes >= LARGE_BYTES, go = !atomic_load(&queue->stopped);

    WB_CHECK(!queue->closed && !item->next);
    *queue->batch_tail = item;
    queue->batch_tail = &item->next;
    queue->batch_count++;
    queue->batch_bytes += item->bytes;
    if (queue->batch_count < BATCH_ITEMS && queue->batch_bytes < BATCH_BYTES)
        return go;
    pthread_mutex_lock(&queue->mutex);
    hand_over(queue);
    if (large)
        go = wait_until(queue, 0);
    pthread_mutex_unlock(&queue->mutex);
    return go;
}

void wb_import_queue_close(struct wb_import_queue *queue)
{
    WB_CHECK(!queue->closed);
    pthread_mutex_lock(&queue->mutex);
    hand_over(queue);
    queue->closed = true;
    pthread_cond_signal(&queue->filled);
    pthread_mutex_unlock(&queue->mutex);
}

/* Lets the reader use the room of what the writer has freed. The mutex must be held. */
static void give_back(struct wb_import_queue *queue)
{
    WB_CHECK(queue->freed <= queue->in_flight);
    queue->in_flight -= queue->freed;
    queue->freed = 0;
    pthread_cond_signal(&queue->emptied);
}

static struct timespec moment_after(int wait_ms)
{
    struct timespec at;

    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += wait_ms / 1000;
    at.tv_nsec += (long)(wait_ms % 1000) * 1000000;
    if (at.tv_nsec >= 1000000000) {
        at.tv_sec++;
        at.tv_nsec -= 1000000000;
    }
    return at;
}

int wb_import_queue_take(struct wb_import_queue *queue, int wait_ms, struct wb_import_item **list_out)
{
    struct timespec until = moment_after(wait_ms);
    int waited = 0;

    pthread_mutex_lock(&queue->mutex);
    give_back(queue);
    while (!queue->head && !queue->closed && waited == 0)
        waited = pthread_cond_timedwait(&queue->filled, &queue->mutex, &until);
    *list_out = queue->head;
    queue->head = NULL;
    queue->tail = &queue->head;
    int more = *list_out || !queue->closed;
    pthread_mutex_unlock(&queue->mutex);
    return more;
}

void wb_import_queue_free_item(struct wb_import_queue *queue, struct wb_import_item *item)
{
    queue->freed += item->bytes;
    wb_import_item_free(item);
    if (queue->freed < GIVE_BACK_BYTES)
        return;
    pthread_mutex_lock(&queue->mutex);
    give_back(queue);
    pthread_mutex_unlock(&queue->mutex);
}

void wb_import_queue_stop(struct wb_import_queue *queue)
{
    pthread_mutex_lock(&queue->mutex);
    atomic_store(&queue->stopped, true);
    pthread_cond_signal(&queue->emptied);
    pthread_mutex_unlock(&queue->mutex);
}
