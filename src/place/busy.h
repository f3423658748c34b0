/*
 * busy.h - which requests are under way on which nodes, of all processes: the last columns of the paper's table of
 * nodes (section 3).
 *
 * A request that lasts is marked while it is under way: a scan from its opening to its closing, and a writer from its
 * first put to its commit. A get is over before anybody could count it, so a handle that reads single pages is counted
 * for a moment after each of them: until the end of the next second.
 *
 * A mark is a shared lock on a few bytes of the file nodes.busy in the repository's own directory, so it ends with the
 * process, however that dies, and there is nothing to clean up. Marks never wait, and nobody needs to read them to
 * work: where the file cannot be opened or locked, requests are not counted, and that is all. The file stays empty:
 * only the numbers of its bytes matter. The first put makes it. Reading a repository that nobody has written to since
 * this version exists changes nothing in it, and is not counted.
 *
 * Costs: the first mark of a handle opens the file; after that, beginning and ending are one system call each, for any
 * number of nodes. Of the gets of a handle, the first one in each second on each node is one system call, and the first
 * one of all in each second is one more. All others only look at the clock.
 *
 *   struct wb_busy busy;
 *   err = wb_busy_init(&busy, dir);
 *   struct wb_busy_mark mark = wb_busy_begin(&busy, WB_BUSY_STREAM, 1, 4);     // a scan of nodes 1 to 4
 *   ...
 *   wb_busy_end(&busy, &mark);
 *   wb_busy_get(&busy, 3);                                                     // a page is read from node 3
 *   wb_busy_release(&busy);
 */
#ifndef WB_PLACE_BUSY_H
#define WB_PLACE_BUSY_H

#include "base/vec.h"
#include "os/file.h"

#include <pthread.h>

#define WB_BUSY_NAME "nodes.busy"

enum wb_busy_kind { WB_BUSY_GET, WB_BUSY_PUT, WB_BUSY_STREAM, WB_BUSY_KINDS };

enum { WB_BUSY_NODE_MAX = (1 << 20) - 2 };

/* One for each handle of a store. Its threads may share it; a child of fork() must not use it. */
struct wb_busy {
    pthread_mutex_t mutex;
    char *path;
    struct wb_file file; /* opened for the first mark; closed if that was not possible */
    uint32_t next;       /* the slot of the next mark */
    /* Gets: this handle's slot, the second whose marks are set, by wb_clock_mono_ns(), and the nodes that have one. */
    uint32_t get_slot;
    int64_t get_second;
    WB_VEC(uint32_t) get_nodes;
};

/* A request that is under way, or nothing (all zero). */
struct wb_busy_mark {
    uint64_t at, bytes;
};

/* Opens nothing yet. */
int wb_busy_init(struct wb_busy *busy, const char *repository_dir);

/* Ends all its marks. A struct of zeros can be released, too. */
void wb_busy_release(struct wb_busy *busy);

/*
 * Marks a request on the nodes from first to last; gets have wb_busy_get() instead. Never fails: a mark that cannot be
 * set is not counted.
 */
struct wb_busy_mark wb_busy_begin(struct wb_busy *busy, enum wb_busy_kind kind, uint32_t first, uint32_t last);

/* Ends it; the mark is zero afterwards. Ending nothing does nothing. */
void wb_busy_end(struct wb_busy *busy, struct wb_busy_mark *mark);

/* A single page is read from a node. Never fails. */
void wb_busy_get(struct wb_busy *busy, uint32_t node);

/*
 * How many requests are under way on one node, by kind, of all processes, also of this one. A request that begins or
 * ends meanwhile may be missing or counted.
 */
int wb_busy_count(const char *repository_dir, uint32_t node, uint64_t counts_out[WB_BUSY_KINDS]);

#endif
