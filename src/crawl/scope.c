/*
 * scope.c - a sorted list of names. For WB_SCOPE_ANY the list is empty and every site is inside.
 */
#include "crawl/scope.h"
#include "base/check.h"
#include "url/url.h"

#include <stdlib.h>

void wb_scope_init(struct wb_scope *scope, enum wb_scope_kind kind)
{
    *scope = (struct wb_scope){.kind = kind};
}

void wb_scope_release(struct wb_scope *scope)
{
    for (size_t i = 0; i < scope->names.count; i++)
        wb_free(scope->names.items[i]);
    wb_vec_release(&scope->names);
}

/* The name that decides about a site. */
static struct wb_slice name_of(const struct wb_scope *scope, struct wb_slice site)
{
    return scope->kind == WB_SCOPE_DOMAIN ? wb_site_domain(site) : site;
}

int wb_scope_add(struct wb_scope *scope, struct wb_slice site)
{
    struct wb_slice name = name_of(scope, site);

    WB_CHECK(!scope->sealed);
    if (scope->kind == WB_SCOPE_ANY)
        return 0;
    char *copy = wb_strndup(name.ptr, name.len);
    int err = copy ? wb_vec_push(&scope->names, copy) : WB_E_NOMEM;
    if (err < 0)
        wb_free(copy);
    return err;
}

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

void wb_scope_seal(struct wb_scope *scope)
{
    WB_CHECK(!scope->sealed);
    char **names = scope->names.items;
    size_t kept = 0;

    if (scope->names.count)
        qsort(names, scope->names.count, sizeof *names, compare_names);
    for (size_t i = 0; i < scope->names.count; i++) {
        if (kept && strcmp(names[kept - 1], names[i]) == 0)
            wb_free(names[i]);
        else
            names[kept++] = names[i];
    }
    scope->names.count = kept;
    scope->sealed = true;
}

bool wb_scope_has(const struct wb_scope *scope, struct wb_slice site)
{
    struct wb_slice name = name_of(scope, site);
    size_t low = 0, high = scope->names.count;

    WB_CHECK(scope->sealed);
    if (scope->kind == WB_SCOPE_ANY)
        return true;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const char *candidate = scope->names.items[middle];
        int order = strncmp(candidate, name.ptr, name.len);
        if (order == 0 && candidate[name.len])
            order = 1; /* the candidate is longer */
        if (order == 0)
            return true;
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}
