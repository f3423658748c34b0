/*
 * scope.c - a sorted list of names. With scope `any` it is empty and everything is inside.
 */
#include "crawl/scope.h"
#include "base/error.h"
#include "base/mem.h"
#include "url/url.h"

#include <stdlib.h>

void wb_scope_init(struct wb_scope *set, enum wb_scope_kind scope)
{
    *set = (struct wb_scope){.scope = scope};
}

static struct wb_slice name_of(const struct wb_scope *set, struct wb_slice site)
{
    return set->scope == WB_SCOPE_DOMAIN ? wb_site_domain(site) : site;
}

int wb_scope_add(struct wb_scope *set, struct wb_slice site)
{
    struct wb_slice name = name_of(set, site);

    if (set->scope == WB_SCOPE_ANY)
        return 0;
    if (set->count == set->cap) {
        size_t cap = set->cap ? set->cap * 2 : 16;
        char **names = wb_realloc(set->names, cap * sizeof *names);
        if (!names)
            return WB_E_NOMEM;
        set->names = names;
        set->cap = cap;
    }
    set->names[set->count] = wb_strndup(name.ptr, name.len);
    return set->names[set->count] ? (set->count++, 0) : WB_E_NOMEM;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void wb_scope_seal(struct wb_scope *set)
{
    size_t kept = 0;

    if (set->count)
        qsort(set->names, set->count, sizeof *set->names, compare_names);
    for (size_t i = 0; i < set->count; i++) {
        if (kept && strcmp(set->names[kept - 1], set->names[i]) == 0)
            wb_free(set->names[i]);
        else
            set->names[kept++] = set->names[i];
    }
    set->count = kept;
}

bool wb_scope_has(const struct wb_scope *set, struct wb_slice site)
{
    struct wb_slice name = name_of(set, site);
    size_t low = 0, high = set->count;

    if (set->scope == WB_SCOPE_ANY)
        return true;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = strncmp(set->names[middle], name.ptr, name.len);
        if (order == 0 && set->names[middle][name.len])
            order = 1;
        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

void wb_scope_release(struct wb_scope *set)
{
    for (size_t i = 0; i < set->count; i++)
        wb_free(set->names[i]);
    wb_free(set->names);
    *set = (struct wb_scope){0};
}
