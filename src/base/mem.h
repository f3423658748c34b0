/*
 * mem.h - memory from the heap, with a hook through which tests make any one
 * allocation fail. NULL means out of memory; the message is set.
 */
#ifndef WB_BASE_MEM_H
#define WB_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

void *wb_alloc(size_t size);
void *wb_alloc_zero(size_t count, size_t size);
void *wb_realloc(void *ptr, size_t size);
void wb_free(void *ptr);
char *wb_strdup(const char *text);
char *wb_strndup(const char *text, size_t len);

/* The same heap for libraries that ask for two functions with a context (zlib). The context is not used. */
void *wb_alloc_hook(void *context, unsigned count, unsigned size);
void wb_free_hook(void *context, void *ptr);

/* Asked before every allocation; true makes it fail. NULL (the default) never fails one. */
extern bool (*wb_alloc_should_fail)(void);

#endif
