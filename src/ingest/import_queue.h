/*
 * import_queue.h - the queue between the thread that reads archives and the thread that writes the repository. It holds
 * items, which own their memory, in the order they were read; their total size is bounded.
 *
 *   reader:  room -> push ... room -> push -> close
 *   writer:  take (a list of items) -> free_item for each ... take -> 0 after the last list
 *
 * There is one thread on each side. Items travel in lists, so that a small page does not cost a system call. An item
 * counts against the bound from room() until free_item().
 */
#ifndef WB_INGEST_IMPORT_QUEUE_H
#define WB_INGEST_IMPORT_QUEUE_H

#include "ingest/import_item.h"

#include <pthread.h>
#include <stdatomic.h>

struct wb_import_queue {
    pthread_mutex_t mutex;                  /* guards head, in_flight and closed */
    pthread_cond_t filled, emptied;
    struct wb_import_item *head, **tail;    /* handed over by the reader, not taken yet */
    size_t in_flight;                       /* bytes that were handed over and not given back yet */
    bool closed;                            /* by the reader: nothing comes any more */
    atomic_bool stopped;                    /* by the writer: nothing is wanted any more */
    atomic_uint_fast64_t bytes_done, bytes_total; /* of the input, for progress */
    /* Only the reader's thread uses these: items that it has not handed over yet. */
    struct wb_import_item *batch, **batch_tail;
    size_t batch_count, batch_bytes;
    /* Only the writer's thread uses this: bytes that it freed and has not given back yet. */
    size_t freed;
};

void wb_import_queue_init(struct wb_import_queue *queue);
void wb_import_queue_release(struct wb_import_queue *queue);

/* ---- the reader's side: false means that the writer wants no more ---- */

/* Waits until this many more bytes may be in flight. An item that is larger than the bound travels alone. */
bool wb_import_queue_room(struct wb_import_queue *queue, size_t bytes);

/*
 * Hands an item over; the queue owns it from now on. After a large item it waits until the writer has freed it, so that
 * the reader's buffers and the writer's are never large at the same time.
 */
bool wb_import_queue_push(struct wb_import_queue *queue, struct wb_import_item *item);

/* The reader has reached the end of its input. */
void wb_import_queue_close(struct wb_import_queue *queue);

/* ---- the writer's side ---- */

/* Waits up to wait_ms. Returns 1 with a list, which is NULL if none came in time, or 0 after the last one. */
int wb_import_queue_take(struct wb_import_queue *queue, int wait_ms, struct wb_import_item **list_out);
void wb_import_queue_free_item(struct wb_import_queue *queue, struct wb_import_item *item);

/* The writer wants no more: from now on the reader's calls return false. */
void wb_import_queue_stop(struct wb_import_queue *queue);

#endif
