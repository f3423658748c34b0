/*
 * spill.h - queues of short byte strings that may be larger than memory. Each site's queues of URLs are in one.
 *
 * A worker has one spill: a temporary file of fixed blocks, without a name. It ends with the process, since the journal
 * can rebuild what is in it. Each queue keeps its head and its tail in memory, at most about a block each, and
 * everything between them on disk. An empty queue takes no memory.
 */
#ifndef WB_CRAWL_SPILL_H
#define WB_CRAWL_SPILL_H

#include "base/buf.h"

struct wb_spill;

/* dir: where the file is. */
int wb_spill_open(const char *dir, struct wb_spill **spill_out);
void wb_spill_close(struct wb_spill *spill);

/* First in, first out. Embedded; all bytes zero: empty. */
struct wb_spill_queue {
    struct wb_buf head, tail;   /* the head is read from head_at on */
    size_t head_at;
    uint32_t first, last;       /* blocks on disk, chained; 0: none */
    uint64_t count;             /* items */
};

/*
 * Appends an item of up to 64 KiB (WB_E_LIMIT if it is longer). After an error, such as a full disk (WB_E_IO), nothing
 * was pushed and nothing is lost.
 */
int wb_spill_push(struct wb_spill *spill, struct wb_spill_queue *queue, struct wb_slice item);

/*
 * Takes the first item. 1 with an item, 0 if the queue is empty, or an error, after which the same call can be made
 * again. The item is valid until the next call on this queue or the next use of mem, where the last item of a queue is
 * copied to.
 */
int wb_spill_pop(struct wb_spill *spill, struct wb_spill_queue *queue, struct wb_buf *mem, struct wb_slice *item_out);

/* Empties the queue: gives back its memory and its blocks. */
void wb_spill_clear(struct wb_spill *spill, struct wb_spill_queue *queue);

/* Test seams: bytes of the file that are in use, and bytes of memory. */
uint64_t wb_spill_bytes(const struct wb_spill *spill);
size_t wb_spill_queue_bytes(const struct wb_spill_queue *queue);

#endif
