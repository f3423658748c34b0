/*
 * list.h - a doubly linked list of items that embed a node.
 *
 *   list.first -> [node] <-> [node] <-> [node] <- list.last
 *
 * The list owns no item and never allocates, so adding cannot fail. An item can leave the list from anywhere in O(1).
 *
 *   struct request {
 *       struct wb_list_node node;
 *       ...
 *   };
 *
 *   wb_list_append(&waiting, &request->node);
 *   for (struct wb_list_node *node = waiting.first; node; node = node->next)
 *       look_at(WB_CONTAINER_OF(node, struct request, node));
 *   wb_list_remove(&waiting, &request->node);
 *
 * To remove items during such a loop, read node->next before.
 */
#ifndef WB_BASE_LIST_H
#define WB_BASE_LIST_H

#include "base/check.h"
#include "base/container.h"

struct wb_list_node {
    struct wb_list_node *prev, *next;
};

/* All bytes zero: empty. */
struct wb_list {
    struct wb_list_node *first, *last;
};

#define WB_LIST_INIT ((struct wb_list){NULL, NULL})

static inline void wb_list_append(struct wb_list *list, struct wb_list_node *node)
{
    node->prev = list->last;
    node->next = NULL;
    *(list->last ? &list->last->next : &list->first) = node;
    list->last = node;
}

static inline void wb_list_prepend(struct wb_list *list, struct wb_list_node *node)
{
    node->prev = NULL;
    node->next = list->first;
    *(list->first ? &list->first->prev : &list->last) = node;
    list->first = node;
}

/* The node must be in this very list. */
static inline void wb_list_remove(struct wb_list *list, struct wb_list_node *node)
{
    struct wb_list_node **before = node->prev ? &node->prev->next : &list->first;
    struct wb_list_node **behind = node->next ? &node->next->prev : &list->last;

    WB_CHECK(*before == node && *behind == node);
    *before = node->next;
    *behind = node->prev;
    node->prev = node->next = NULL;
}

/* Removes the first node and returns it; NULL if the list is empty. */
static inline struct wb_list_node *wb_list_pop(struct wb_list *list)
{
    struct wb_list_node *first = list->first;

    if (first)
        wb_list_remove(list, first);
    return first;
}

#endif
