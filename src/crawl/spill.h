/*
 * spill.h - queues of short byte strings that may be larger than memory.
 *
 * A process has one spill: a temporary file of fixed blocks (nameless: it ends with the process, since the
 * journal can rebuild what is in it). Each site has a queue in it; a queue keeps its head
 * and its tail in memory (growing from nothing to a block each) and what lies between on disk.
 */
#ifndef WB_CRAWL_SPILL_H
#define WB_CRAWL_SPILL_H

#include "base/buf.h"

struct wb_spill;
int wb_spill_open(const char *dir, struct wb_spill **spill_out);
void wb_spill_close(struct wb_spill *spill);
uint64_t wb_spill_bytes(const struct wb_spill *spill); /* of the file in use */

/* First in, first out; an embedded struct, all zeros when new. */
struct wb_spill_queue {
    struct wb_buf head, tail;   /* head is read from head_at on */
    size_t head_at;
    uint32_t first, last;       /* blocks on disk, chained; 0: none */
    uint64_t count;
};

/* Items have up to 64 KiB (WB_E_LIMIT). Where it fails (WB_E_IO: the disk is full), nothing was pushed and nothing is lost. */
int wb_spill_push(struct wb_spill *spill, struct wb_spill_queue *queue, struct wb_slice item);

/* 1 with an item that is valid until the next call on this queue or use of mem, 0 where it is empty, or an error. The last item of a queue lies in mem. */
int wb_spill_pop(struct wb_spill *spill, struct wb_spill_queue *queue, struct wb_buf *mem, struct wb_slice *item_out);

/* Gives memory and blocks back. */
void wb_spill_clear(struct wb_spill *spill, struct wb_spill_queue *queue);

/* Bytes of memory it takes. */
size_t wb_spill_queue_bytes(const struct wb_spill_queue *queue);

#endif
