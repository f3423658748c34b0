/*
 * scope.c - a sorted list of names. For WB_SCOPE_ANY the list is empty and every site is inside. A second list has the
 * sites of the only class that is crawled, or, if that is "default", those of all other classes.
 */
#include "crawl/scope.h"
#include "base/check.h"
#include "url/url.h"

#include <stdlib.h>

void wb_scope_init(struct wb_scope *scope, enum wb_scope_kind kind)
{
    *scope = (struct wb_scope){.kind = kind};
}

static void release_names(struct wb_scope_names *names)
{
    for (size_t i = 0; i < names->count; i++)
        wb_free(names->items[i]);
    wb_vec_release(names);
}

void wb_scope_release(struct wb_scope *scope)
{
    release_names(&scope->names);
    release_names(&scope->classed);
}

/* The name that decides about a site. */
static struct wb_slice name_of(const struct wb_scope *scope, struct wb_slice site)
{
    return scope->kind == WB_SCOPE_DOMAIN ? wb_site_domain(site) : site;
}

static int add_name(struct wb_scope_names *names, struct wb_slice name)
{
    char *copy = wb_strndup(name.ptr, name.len);
    int err = copy ? wb_vec_push(names, copy) : WB_E_NOMEM;

    if (err < 0)
        wb_free(copy);
    return err;
}

int wb_scope_add(struct wb_scope *scope, struct wb_slice site)
{
    WB_CHECK(!scope->sealed);
    return scope->kind == WB_SCOPE_ANY ? 0 : add_name(&scope->names, name_of(scope, site));
}

/* ---- one class ---------------------------------------------------------------------------------------------------- */

static bool is_default(struct wb_slice class_name)
{
    return class_name.len == 0 || wb_slice_equal(class_name, WB_SLICE_LIT("default"));
}

void wb_scope_limit(struct wb_scope *scope, const char *class_name)
{
    WB_CHECK(!scope->sealed && !scope->class_name);
    scope->class_name = class_name;
}

int wb_scope_classed(struct wb_scope *scope, struct wb_slice site, struct wb_slice class_name)
{
    WB_CHECK(!scope->sealed && scope->class_name);
    struct wb_slice wanted = wb_slice_str(scope->class_name);
    bool listed = is_default(wanted) ? !is_default(class_name) : wb_slice_equal(wanted, class_name);

    return listed ? add_name(&scope->classed, site) : 0;
}

/* ---- questions ---------------------------------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* Sorts the names and keeps each once. */
static void sort_names(struct wb_scope_names *list)
{
    char **names = list->items;
    size_t kept = 0;

    if (list->count)
        qsort(names, list->count, sizeof *names, compare_names);
    for (size_t i = 0; i < list->count; i++) {
        if (kept && strcmp(names[kept - 1], names[i]) == 0)
            wb_free(names[i]);
        else
            names[kept++] = names[i];
    }
    list->count = kept;
}

void wb_scope_seal(struct wb_scope *scope)
{
    WB_CHECK(!scope->sealed);
    sort_names(&scope->names);
    sort_names(&scope->classed);
    scope->sealed = true;
}

static bool has_name(const struct wb_scope_names *names, struct wb_slice name)
{
    size_t low = 0, high = names->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        const char *candidate = names->items[middle];
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

bool wb_scope_in_class(const struct wb_scope *scope, struct wb_slice site)
{
    WB_CHECK(scope->sealed);
    if (!scope->class_name)
        return true;
    return has_name(&scope->classed, site) != is_default(wb_slice_str(scope->class_name));
}

bool wb_scope_has(const struct wb_scope *scope, struct wb_slice site)
{
    WB_CHECK(scope->sealed);
    return (scope->kind == WB_SCOPE_ANY || has_name(&scope->names, name_of(scope, site))) &&
           wb_scope_in_class(scope, site);
}
