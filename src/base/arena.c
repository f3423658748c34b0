/*
 * arena.c - bytes that stay where they are until all are dropped. It never frees
 * or moves a single piece, and never gives memory back to the heap between rounds
 * unless a page needed unusually much.
 */
#include "base/arena.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

#define CHUNK_BYTES ((size_t)64 << 10)
#define KEPT_BYTES ((size_t)1 << 20)

struct wb_arena_chunk {
    struct wb_arena_chunk *next;
    size_t size;
    char bytes[];
};

/* A chunk of at least size bytes behind the current one: the next that is there, or a new one before it. */
static int next_chunk(struct wb_arena *arena, size_t size)
{
    struct wb_arena_chunk **link = arena->current ? &arena->current->next : &arena->first;
    struct wb_arena_chunk *chunk = *link;

    if (!chunk || chunk->size < size) {
        size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;
        chunk = wb_alloc(sizeof *chunk + room);
        if (!chunk)
            return WB_E_NOMEM;
        chunk->size = room;
        chunk->next = *link;
        *link = chunk;
    }
    arena->current = chunk;
    arena->used = 0;
    return 0;
}

char *wb_arena_take(struct wb_arena *arena, size_t size)
{
    if (size > SIZE_MAX / 2) {
        wb_fail_nomem();
        return NULL;
    }
    if ((!arena->current || arena->current->size - arena->used < size) && next_chunk(arena, size) < 0)
        return NULL;
    char *at = arena->current->bytes + arena->used;
    arena->used += size;
    return at;
}

void wb_arena_untake(struct wb_arena *arena, size_t size)
{
    WB_CHECK(size <= arena->used);
    arena->used -= size;
}

int wb_arena_copy(struct wb_arena *arena, struct wb_slice s, struct wb_slice *copy_out)
{
    *copy_out = WB_SLICE_EMPTY;
    if (s.len == 0)
        return 0;
    char *at = wb_arena_take(arena, s.len);
    if (!at)
        return WB_E_NOMEM;
    memcpy(at, s.ptr, s.len);
    *copy_out = wb_slice(at, s.len);
    return 0;
}

void wb_arena_clear(struct wb_arena *arena)
{
    size_t kept = 0;

    for (struct wb_arena_chunk **link = &arena->first; *link;) {
        struct wb_arena_chunk *chunk = *link;
        if (kept + chunk->size <= KEPT_BYTES) {
            kept += chunk->size;
            link = &chunk->next;
        } else {
            *link = chunk->next;
            wb_free(chunk);
        }
    }
    arena->current = NULL;
    arena->used = 0;
}

void wb_arena_release(struct wb_arena *arena)
{
    for (struct wb_arena_chunk *chunk = arena->first, *next; chunk; chunk = next) {
        next = chunk->next;
        wb_free(chunk);
    }
    *arena = (struct wb_arena){NULL, NULL, 0};
}
