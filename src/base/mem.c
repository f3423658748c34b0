/*
 * mem.c - malloc() and its relatives, behind one hook through which tests make allocations fail.
 *
 * Asking for zero bytes is fine and gives a pointer that can be freed, so NULL always means out of memory.
 */
#include "base/mem.h"
#include "base/error.h"

#include <stdlib.h>
#include <string.h>

bool (*wb_alloc_should_fail)(void) = NULL;

static bool must_fail(void)
{
    bool (*should_fail)(void) = __atomic_load_n(&wb_alloc_should_fail, __ATOMIC_RELAXED); /* threads allocate, too */

    return should_fail && should_fail();
}

void *wb_alloc(size_t size)
{
    void *ptr = must_fail() ? NULL : malloc(size ? size : 1);

    if (!ptr)
        wb_fail_nomem();
    return ptr;
}

void *wb_alloc_zero(size_t count, size_t size)
{
    void *ptr = must_fail() ? NULL : calloc(count ? count : 1, size ? size : 1);

    if (!ptr)
        wb_fail_nomem();
    return ptr;
}

void *wb_realloc(void *old, size_t size)
{
    void *ptr = must_fail() ? NULL : realloc(old, size ? size : 1);

    if (!ptr)
        wb_fail_nomem();
    return ptr;
}

void wb_free(void *ptr)
{
    free(ptr);
}

void *wb_alloc_hook(void *context, unsigned count, unsigned size)
{
    (void)context;
    return wb_alloc_zero(count, size);
}

void wb_free_hook(void *context, void *ptr)
{
    (void)context;
    wb_free(ptr);
}

char *wb_strndup(const char *text, size_t len)
{
    char *copy = wb_alloc(len + 1);

    if (copy) {
        if (len) /* an empty slice may be NULL */
            memcpy(copy, text, len);
        copy[len] = '\0';
    }
    return copy;
}

char *wb_strdup(const char *text)
{
    return wb_strndup(text, strlen(text));
}
