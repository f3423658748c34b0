/*
 * heap.c - a binary heap of nodes that know their place.
 *
 * Both sifting functions move a hole through the heap and write the node once, at the end, so that each level costs
 * one store. Nodes with equal keys come out in no promised order, but the same calls always give the same order.
 */
#include "base/heap.h"
#include "base/check.h"
#include "base/vec.h"

int wb_heap_reserve(struct wb_heap *heap, size_t count)
{
    return wb_grow(&heap->nodes, &heap->cap, count + 1);
}

static void set_node(struct wb_heap *heap, size_t at, struct wb_heap_node *node)
{
    heap->nodes[at] = node;
    node->at = at;
}

/* The hole at `at` rises until the node fits into it. */
static void sift_up(struct wb_heap *heap, size_t at, struct wb_heap_node *node)
{
    while (at > 1 && heap->nodes[at / 2]->key > node->key) {
        set_node(heap, at, heap->nodes[at / 2]);
        at /= 2;
    }
    set_node(heap, at, node);
}

/* The hole at `at` sinks until the node fits into it. */
static void sift_down(struct wb_heap *heap, size_t at, struct wb_heap_node *node)
{
    for (size_t child; (child = at * 2) <= heap->count; at = child) {
        if (child < heap->count && heap->nodes[child + 1]->key < heap->nodes[child]->key)
            child++;
        if (heap->nodes[child]->key >= node->key)
            break;
        set_node(heap, at, heap->nodes[child]);
    }
    set_node(heap, at, node);
}

/* Fills the hole at `at` with a node, whichever way it has to go. */
static void fill_hole(struct wb_heap *heap, size_t at, struct wb_heap_node *node)
{
    if (at > 1 && heap->nodes[at / 2]->key > node->key)
        sift_up(heap, at, node);
    else
        sift_down(heap, at, node);
}

void wb_heap_add(struct wb_heap *heap, struct wb_heap_node *node, int64_t key)
{
    WB_CHECK(node->at == 0);
    WB_CHECK(heap->count + 1 < heap->cap); /* the caller reserved room */
    node->heap = heap;
    node->key = key;
    sift_up(heap, ++heap->count, node);
}

void wb_heap_remove(struct wb_heap_node *node)
{
    struct wb_heap *heap = node->heap;
    size_t at = node->at;

    WB_CHECK(heap && at > 0 && at <= heap->count && heap->nodes[at] == node);
    struct wb_heap_node *last = heap->nodes[heap->count--];
    node->at = 0;
    node->heap = NULL;
    if (last != node)
        fill_hole(heap, at, last);
}

void wb_heap_move(struct wb_heap_node *node, int64_t key)
{
    WB_CHECK(node->heap && node->heap->nodes[node->at] == node);
    node->key = key;
    fill_hole(node->heap, node->at, node);
}

void wb_heap_shift(struct wb_heap *heap, int64_t by)
{
    for (size_t i = 1; i <= heap->count; i++)
        heap->nodes[i]->key += by;
}

void wb_heap_release(struct wb_heap *heap)
{
    wb_free(heap->nodes);
    *heap = WB_HEAP_INIT;
}
