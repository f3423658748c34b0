/*
 * arena.h - bytes that stay where they are until all are dropped.
 *
 *   first -> [chunk] -> [chunk] -> ...     the newest is written, all are kept for the next round
 */
#ifndef WB_BASE_ARENA_H
#define WB_BASE_ARENA_H

#include "base/slice.h"

struct wb_arena_chunk;

struct wb_arena {
    struct wb_arena_chunk *first, *current;
    size_t used; /* of current */
};

/* size bytes, not aligned; NULL when out of memory, the message is set. */
char *wb_arena_take(struct wb_arena *arena, size_t size);

/* Gives back the last `size` bytes of what wb_arena_take() returned last. */
void wb_arena_untake(struct wb_arena *arena, size_t size);

/* A copy of s; WB_E_NOMEM. */
int wb_arena_copy(struct wb_arena *arena, struct wb_slice s, struct wb_slice *copy_out);

/* Drops all bytes; memory of ordinary size is kept. */
void wb_arena_clear(struct wb_arena *arena);
void wb_arena_release(struct wb_arena *arena);

#endif
