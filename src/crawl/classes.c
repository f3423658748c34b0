/*
 * classes.c - a crawl of one class of sites (--class): which sites are its own, and whether there is such a class.
 *
 * The class of a site is what the seeds say now, or else what earlier ones said. Seeds of other classes are introduced
 * to the dispenser, so that the process that crawls their class finds them, and are left out of this crawl. Instead of
 * all unfinished sites, only those of the class join it. Nothing here resolves or fetches.
 */
#include "base/error.h"
#include "base/mem.h"
#include "crawl/parent.h"

#include <limits.h>

/* ---- whether it is defined --------------------------------------------------------------------------------------- */

/* Two classes exist without a definition: that of sites without one, and that of small sites (dispenser/seeds.c). */
static bool is_built_in(struct wb_slice name)
{
    return wb_slice_equal(name, WB_SLICE_LIT("default")) || wb_slice_equal(name, WB_SLICE_LIT("small"));
}

struct class_search {
    struct wb_slice name;
    bool found;
};

static int compare_class(void *context, const struct wb_site_class *class)
{
    struct class_search *search = context;

    search->found = search->found || wb_slice_equal(class->name, search->name);
    return 0;
}

/* Asks the dispenser, unless there is none yet. */
static int search_dispenser(const struct wb_crawl_options *o, struct class_search *search)
{
    struct wb_dispenser *dispenser = NULL;
    bool shared = o->dispenser && wb_dispenser_is_url(wb_slice_str(o->dispenser));

    if (!shared && !wb_store_exists(o->dir))
        return 0;
    int err = wb_dispenser_open(o->dir, o->dispenser, &dispenser);
    if (err == 0)
        err = wb_dispenser_classes(dispenser, compare_class, search);
    wb_dispenser_close(dispenser);
    return err;
}

int wb_classes_check(const struct wb_crawl_options *o, const struct wb_seeds *seeds)
{
    struct class_search search = {.name = wb_slice_str(o->class_name)};
    int err = 0;

    search.found = is_built_in(search.name);
    for (size_t i = 0; i < seeds->class_count; i++)
        search.found = search.found || wb_slice_equal(seeds->site_classes[i].name, search.name);
    if (!search.found)
        err = search_dispenser(o, &search);
    if (err == 0 && !search.found)
        err = wb_fail(WB_E_NOTFOUND, "nobody has defined the class '%s': a line 'class %s' in a file of --seeds does",
                      o->class_name, o->class_name);
    return err;
}

static void no_warning(void *context, const char *message)
{
    (void)context, (void)message;
}

int wb_crawl_check_class(const struct wb_crawl_options *options)
{
    struct wb_seeds seeds = {0};

    if (!options->class_name)
        return 0;
    int err = options->seeds_file ? wb_seeds_read(&seeds, options->seeds_file, no_warning, NULL) : 0;
    if (err == 0)
        err = wb_classes_check(options, &seeds);
    wb_seeds_release(&seeds);
    return err;
}

/* ---- the sites of the class -------------------------------------------------------------------------------------- */

static int take_class(void *context, const struct wb_site_row *row)
{
    return wb_scope_classed(context, row->name, row->class_name);
}

int wb_classes_seal(struct wb_dispenser *dispenser, struct wb_scope *scope)
{
    int err = scope->class_name ? wb_dispenser_each(dispenser, 0, take_class, scope) : 0;

    if (err == 0)
        wb_scope_seal(scope);
    return err;
}

struct class_plans {
    const struct wb_scope *scope;
    bool within;      /* only sites that the scope covers */
    struct wb_arena *names;
    struct wb_class_plans *out;
};

/* An unfinished site of an earlier crawl: it joins with what it has, unless a seed named it. */
static int join_site(void *context, const struct wb_site_row *row)
{
    struct class_plans *c = context;
    struct wb_site_plan plan = {.priority = INT_MIN, .delay_ms = -2, .budget = -2}; /* as they are */
    enum wb_site_state state = row->state == WB_SITE_CLAIMED ? row->before : row->state;

    if (state > WB_SITE_WAITING || row->needed || row->run == 0 || !wb_scope_in_class(c->scope, row->name) ||
        (c->within && !wb_scope_has(c->scope, row->name)))
        return 0;
    int err = wb_arena_copy(c->names, row->name, &plan.name);
    if (err == 0)
        err = wb_arena_copy(c->names, row->scheme, &plan.scheme);
    return err < 0 ? err : wb_vec_push(c->out, plan);
}

int wb_classes_plan(struct wb_dispenser *dispenser, const struct wb_scope *scope, const struct wb_seeds *seeds,
                    struct wb_arena *names, struct wb_class_plans *plans_out)
{
    bool within = seeds->count > 0 && scope->kind != WB_SCOPE_ANY;
    struct class_plans c = {.scope = scope, .within = within, .names = names, .out = plans_out};
    int err = 0;

    for (size_t i = 0; err == 0 && i < seeds->count; i++)
        if (wb_scope_in_class(scope, seeds->plans[i].name))
            err = wb_vec_push(plans_out, seeds->plans[i]);
    /* A crawl of seeds within their sites takes over nothing else. */
    if (err == 0 && !(within && scope->kind == WB_SCOPE_SITE))
        err = wb_dispenser_each(dispenser, 0, join_site, &c);
    return err;
}
