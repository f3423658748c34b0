/*
 * kept.h - one account of the memory that caches keep, for the whole process, and its bound.
 *
 * A cache keeps what it could read or make again. Each handle of a store has such caches, and a server has a handle for
 * every thread; each cache for itself would be small, and all of them together large. So a cache that keeps something
 * asks first, and says so when it is given up:
 *
 *   if (wb_kept_add(WB_KEPT_BLOCKS, bytes))       keep it
 *   else                                          give up something of our own that is as large, or do not keep it
 *
 * A cache that is refused may be new, while others are large. So a refusal presses all of them: the next time that one
 * of them wants to keep something, it gives up half of what it has (wb_kept_pressed). Memory so goes where it is used.
 *
 * The bound is for what could be given up. What is needed to answer at all is counted by wb_kept_need(), is never
 * refused, and leaves less for the others. Without wb_kept_set_bound() there is no bound but those of each cache.
 */
#ifndef WB_BASE_KEPT_H
#define WB_BASE_KEPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum wb_kept {
    WB_KEPT_CATALOG,     /* pages of the trees that say where everything is */
    WB_KEPT_BLOCKS,      /* beginnings of blocks, which all their pages need */
    WB_KEPT_SEGMENTS,    /* maps of open segment files */
    WB_KEPT_TEXTS,       /* snippets, titles and spellings */
    WB_KEPT_STREAMS,     /* pages that several streams read together, and what was made of them */
    WB_KEPT_GENERATIONS, /* what searchers know about their generation beside its files */
    WB_KEPT_COUNT,
};

/* The name of a kind, for people: "catalog". */
const char *wb_kept_word(enum wb_kept kind);

void wb_kept_set_bound(uint64_t bytes);
uint64_t wb_kept_bound(void); /* UINT64_MAX: there is none */

/* Counts what will be kept. False: that would be too much, and nothing was counted. */
bool wb_kept_add(enum wb_kept kind, size_t bytes);

/* Counts what cannot be done without. */
void wb_kept_need(enum wb_kept kind, size_t bytes);

/* It was given up. */
void wb_kept_drop(enum wb_kept kind, size_t bytes);

/* Whether others were refused since this cache asked last; *seen is what the cache remembers of that, at first 0. */
bool wb_kept_pressed(uint64_t *seen);

uint64_t wb_kept_bytes(enum wb_kept kind);
uint64_t wb_kept_all(void);

#endif
