/*
 * mem.h - allocating memory. All of our code allocates through these functions, and gives the memory back with
 * wb_free().
 *
 * NULL means out of memory. The error message is set then, so that the caller just returns WB_E_NOMEM. For arrays
 * that grow use base/vec.h, for bytes that grow base/buf.h.
 */
#ifndef WB_BASE_MEM_H
#define WB_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

void *wb_alloc(size_t size);

/* Memory for count items of size bytes, all zero. */
void *wb_alloc_zero(size_t count, size_t size);

/* Moves memory into a block of another size. If this fails, the old block is still valid. */
void *wb_realloc(void *ptr, size_t size);

/* NULL is fine. */
void wb_free(void *ptr);

/* Copies of a text, with a NUL at the end. */
char *wb_strdup(const char *text);
char *wb_strndup(const char *text, size_t len);

/* For libraries that want to be given functions to allocate with (zlib). They do not use the context. */
void *wb_alloc_hook(void *context, unsigned count, unsigned size);
void wb_free_hook(void *context, void *ptr);

/* A test seam: if it is not NULL, it is asked before every allocation, and true makes that one fail (os/fault.h). */
extern bool (*wb_alloc_should_fail)(void);

#endif
