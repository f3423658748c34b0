/*
 * import_queue.h - what lies between the thread that reads archives and the one
 * that writes the repository: owned items, in order, bounded in bytes.
 *
 *   reader:  room -> item_new ... push ... push -> close
 *   writer:  take (a list) -> each item -> free_item ... -> take -> 0 at the end
 *
 * One thread on each side. Items travel in lists, so that a small page costs no
 * system call. Everything between room() and free_item() counts as in flight.
 */
#ifndef WB_INGEST_IMPORT_QUEUE_H
#define WB_INGEST_IMPORT_QUEUE_H

#include "page/page.h"

#include <pthread.h>
#include <stdatomic.h>

enum wb_import_kind {
    WB_IMPORT_PAGE,
    WB_IMPORT_REVISIT,
    WB_IMPORT_ERROR,  /* something could not be read */
    WB_IMPORT_FILE,   /* a file has been read to its end */
};

/* What a revisit says of the page that it is a revisit of. */
struct wb_import_original {
    bool known_profile, not_modified;
    bool has_sha1;
    bool elsewhere;         /* id is that of another URL, which the record names */
    struct wb_pageid id;
    uint8_t sha1[WB_SHA1_BYTES];
    int64_t time_ms;        /* when it was fetched; 0: not said */
};

struct wb_import_item {
    struct wb_import_item *next;
    enum wb_import_kind kind;
    size_t bytes;            /* memory it holds */
    uint64_t records;        /* records read since the item before, this one's included */

    struct wb_page page;     /* of a revisit: url, key, id, time; head, status, type, charset where it has a head */
    struct wb_buf body;      /* the page's body, where it was moved here instead of copied */
    bool barred;             /* taken down: it is counted, and goes neither to the journal nor to the store */

    struct wb_import_original original; /* of a revisit */

    const char *file;        /* of an error: file, place and words */
    uint64_t offset;
    const char *message;
    bool fatal;              /* the rest of the file is not read */

    size_t used;             /* of text */
    char text[];
};

struct wb_import_queue {
    pthread_mutex_t mutex;
    pthread_cond_t filled, emptied;
    struct wb_import_item *head, **tail;    /* handed over, not taken yet */
    struct wb_import_item *batch, **batch_tail; /* the reader's, not handed over yet */
    size_t batch_count, batch_bytes;
    size_t in_flight;
    size_t freed;                           /* the writer's, not given back yet */
    bool closed;
    atomic_bool stopped;
    atomic_uint_fast64_t bytes_done, bytes_total; /* for progress */
};

void wb_import_queue_init(struct wb_import_queue *queue);
void wb_import_queue_release(struct wb_import_queue *queue);

/* ---- the reader's side; false means that the writer wants no more ---- */

/* Waits until so many more bytes may be in flight; a thing larger than the bound goes alone. */
bool wb_import_queue_room(struct wb_import_queue *queue, size_t bytes);

/* An item with room for so much text; NULL when out of memory. */
struct wb_import_item *wb_import_item_new(enum wb_import_kind kind, size_t text_bytes);

/* Copies text into the item. */
struct wb_slice wb_import_item_copy(struct wb_import_item *item, struct wb_slice text);

/* Hands an item over. After a large one, waits until it is gone: the reader's buffers and the writer's are never large at once. */
bool wb_import_queue_push(struct wb_import_queue *queue, struct wb_import_item *item);
void wb_import_queue_close(struct wb_import_queue *queue);

/* ---- the writer's side ---- */

/* Waits up to wait_ms; 1 with a list (NULL where none came in time), 0 after the last one. */
int wb_import_queue_take(struct wb_import_queue *queue, int wait_ms, struct wb_import_item **list_out);
void wb_import_queue_free_item(struct wb_import_queue *queue, struct wb_import_item *item);

/* From now on the reader's calls return false. */
void wb_import_queue_stop(struct wb_import_queue *queue);

#endif
