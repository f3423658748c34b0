/*
 * heap.h - a binary heap: hands out the item with the smallest key first.
 *
 *   nodes:  [ - | 1 | 2 | 3 | 4 | 5 ... ]       1 is the smallest; the children of n are 2n and 2n+1
 *
 * An item embeds a node, which knows its heap, its place there and its key. So an item can be taken out or given
 * another key wherever it is, in O(log n), without a search. The heap holds pointers to nodes and owns no item.
 * An item with one node is in one heap at most; an item that must be in two heaps at once embeds two nodes.
 *
 *   struct timer {
 *       struct wb_heap_node node;
 *       ...
 *   };
 *
 *   err = wb_heap_reserve(&heap, heap.count + 1);
 *   if (err == 0)
 *       wb_heap_add(&heap, &timer->node, due_ms);
 *   ...
 *   struct wb_heap_node *first = wb_heap_first(&heap);
 *   if (first && first->key <= now_ms) {
 *       wb_heap_remove(first);
 *       fire(WB_CONTAINER_OF(first, struct timer, node));
 *   }
 *
 * Adding cannot fail once there is room. Callers that must not fail half way reserve first.
 */
#ifndef WB_BASE_HEAP_H
#define WB_BASE_HEAP_H

#include "base/container.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct wb_heap;

/* Embedded in an item. All bytes zero: in no heap. */
struct wb_heap_node {
    struct wb_heap *heap; /* the heap it is in, or NULL */
    size_t at;            /* its place there, from 1; 0: it is in no heap */
    int64_t key;
};

/* All bytes zero: empty. A heap that is not empty must stay at its address, because its nodes point to it. */
struct wb_heap {
    struct wb_heap_node **nodes; /* nodes[0] is not used */
    size_t count;
    size_t cap;                  /* entries of nodes, nodes[0] included */
};

#define WB_HEAP_INIT ((struct wb_heap){NULL, 0, 0})

/* Makes room for count items in total. 0, or WB_E_NOMEM with the heap unchanged. */
int wb_heap_reserve(struct wb_heap *heap, size_t count);

/* Puts a node that is in no heap into this one. There must be room for it. */
void wb_heap_add(struct wb_heap *heap, struct wb_heap_node *node, int64_t key);

/* Takes a node out of the heap it is in. */
void wb_heap_remove(struct wb_heap_node *node);

/* Gives a node that is in a heap another key. */
void wb_heap_move(struct wb_heap_node *node, int64_t key);

/* Adds the same number to all keys, which changes no order. */
void wb_heap_shift(struct wb_heap *heap, int64_t by);

/* The node with the smallest key, which stays in the heap; NULL if the heap is empty. */
static inline struct wb_heap_node *wb_heap_first(const struct wb_heap *heap)
{
    return heap->count ? heap->nodes[1] : NULL;
}

static inline bool wb_heap_contains(const struct wb_heap *heap, const struct wb_heap_node *node)
{
    return node->heap == heap;
}

/* Frees the heap's memory. Nodes that are still in it are not touched: they must not be used with a heap again. */
void wb_heap_release(struct wb_heap *heap);

#endif
