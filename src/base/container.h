/* container.h - from a member that is embedded in a struct back to the struct. */
#ifndef WB_BASE_CONTAINER_H
#define WB_BASE_CONTAINER_H

#include <stddef.h>

/* The struct of this type whose member `member` is at pointer. For nodes of lists (list.h) and heaps (heap.h). */
#define WB_CONTAINER_OF(pointer, type, member) ((type *)(void *)((char *)(pointer) - offsetof(type, member)))

#endif
