/*
 * fetchlist.c - fetch lists: what the dispenser knows of all sites, and a list of URLs that becomes a run of it.
 *
 * The sites are read once, when the list is opened, and sorted by name, because the process that fills the list asks
 * about millions of pages. The list itself is kept in memory until it is committed. This file never fetches, and
 * decides nothing about what is worth fetching.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/vec.h"
#include "crawl/crawl.h"
#include "crawl/crawlsite.h"
#include "crawl/recover.h"
#include "dispenser/dispenser.h"
#include "os/clock.h"
#include "store/store.h"
#include "url/url.h"

#include <stdlib.h>

/* Where a text is in a buffer that may still grow. */
struct text_at {
    size_t at, len;
};

/* A site that the dispenser knows. */
struct known_site {
    struct text_at text;   /* its name, in wb_fetchlist.names */
    struct wb_slice name;  /* the same, set once that buffer does not grow any more */
    struct wb_slice domain; /* the registrable domain: the end of the name */
    struct wb_listed_site facts;
};

/* The URLs that were added for one site, one after the other. */
struct listed_group {
    struct text_at name;
    bool https;
    size_t first, count;   /* of wb_fetchlist.urls */
};

struct listed_url {
    struct text_at text;
    uint16_t depth;
};

#define FETCHLIST_MAGIC 0x5742464cu

struct wb_fetchlist {
    uint32_t magic;                           /* FETCHLIST_MAGIC from open to close */
    struct wb_dispenser *dispenser;
    /* What the dispenser knows; read when the list is opened. */
    struct wb_buf names;
    WB_VEC(struct known_site) sites;          /* sorted by name */
    const struct known_site **domains;        /* those that a crawl was told of, sorted by domain */
    size_t domain_count;
    WB_VEC(struct wb_site_class) classes;     /* sorted by name */
    struct wb_buf class_names;
    /* The seeds file. */
    struct wb_seeds seeds;
    WB_VEC(struct wb_slice) told;             /* names of its sites; they borrow from seeds */
    /* What was added. */
    struct wb_buf text;
    WB_VEC(struct listed_group) groups;
    WB_VEC(struct listed_url) urls;
    /* Reused from URL to URL. */
    struct wb_url url;
    struct wb_buf key;
};

/* ---- sites ------------------------------------------------------------------------------------------------------- */

static int compare_sites(const void *a, const void *b)
{
    return wb_slice_compare(((const struct known_site *)a)->name, ((const struct known_site *)b)->name);
}

static int compare_domains(const void *a, const void *b)
{
    const struct known_site *x = *(const struct known_site *const *)a, *y = *(const struct known_site *const *)b;

    return wb_slice_compare(x->domain, y->domain);
}

static int compare_classes(const void *a, const void *b)
{
    return wb_slice_compare(((const struct wb_site_class *)a)->name, ((const struct wb_site_class *)b)->name);
}

static enum wb_listed_state state_of(const struct wb_site_row *row, int64_t now_ms)
{
    switch (row->state == WB_SITE_CLAIMED ? row->before : row->state) {
    case WB_SITE_DONE:
        return WB_LISTED_DONE;
    case WB_SITE_ALIAS:
        return WB_LISTED_ALIAS;
    case WB_SITE_REFUSED:
        return WB_LISTED_AWAY;
    case WB_SITE_WAITING:
        return wb_site_wait(row, now_ms) > now_ms ? WB_LISTED_AWAY : WB_LISTED_OPEN;
    default:
        return WB_LISTED_OPEN;
    }
}

static int take_site(void *context, const struct wb_site_row *row)
{
    struct wb_fetchlist *list = context;
    struct wb_site_class key = {.name = row->class_name};
    const struct wb_site_class *class = NULL;

    WB_CHECK(list->magic == FETCHLIST_MAGIC && !list->domains); /* they are not sorted yet */
    if (row->run == 0)
        return 0;
    if (row->class_name.len && list->classes.count)
        class = bsearch(&key, list->classes.items, list->classes.count, sizeof key, compare_classes);
    int64_t now_ms = wb_clock_wall_ms();
    struct known_site site = {.text = {list->names.len, row->name.len},
                              .facts = {.state = state_of(row, now_ms), .needed = row->needed == WB_NEEDED_ONLY,
                                        .next_ms = wb_site_wait(row, now_ms),
                                        .class_at = class ? (size_t)(class - list->classes.items) : SIZE_MAX}};
    int err = wb_vec_push(&list->sites, site);
    return err < 0 ? err : wb_buf_append_slice(&list->names, row->name);
}

static int sort_sites(struct wb_fetchlist *list)
{
    WB_CHECK(!list->domains);
    size_t count = list->sites.count;
    struct known_site *sites = list->sites.items;

    list->domains = wb_alloc_zero(count + 1, sizeof *list->domains);
    if (!list->domains)
        return WB_E_NOMEM;
    for (size_t i = 0; i < count; i++) {
        sites[i].name = wb_slice(list->names.ptr + sites[i].text.at, sites[i].text.len);
        sites[i].domain = wb_site_domain(sites[i].name);
    }
    if (count)
        qsort(sites, count, sizeof *sites, compare_sites);
    /* That a page needs a file of a domain does not mean that anybody wants to crawl the domain. */
    for (size_t i = 0; i < count; i++)
        if (!sites[i].facts.needed)
            list->domains[list->domain_count++] = &sites[i];
    if (list->domain_count)
        qsort(list->domains, list->domain_count, sizeof *list->domains, compare_domains);
    return 0;
}

void wb_fetchlist_site(const struct wb_fetchlist *list, struct wb_slice name, struct wb_listed_site *site_out)
{
    struct known_site key = {.name = name};
    const struct known_site *site = NULL;

    WB_CHECK(list->magic == FETCHLIST_MAGIC && list->domains); /* the sites are sorted */
    if (list->sites.count)
        site = bsearch(&key, list->sites.items, list->sites.count, sizeof key, compare_sites);
    *site_out = site ? site->facts : (struct wb_listed_site){.state = WB_LISTED_UNKNOWN, .class_at = SIZE_MAX};
}

bool wb_fetchlist_domain(const struct wb_fetchlist *list, struct wb_slice domain)
{
    struct known_site key = {.domain = domain};
    const struct known_site *wanted = &key;

    WB_CHECK(list->magic == FETCHLIST_MAGIC && list->domains);
    return list->domain_count &&
           bsearch(&wanted, list->domains, list->domain_count, sizeof wanted, compare_domains);
}

/* ---- classes ----------------------------------------------------------------------------------------------------- */

static int take_class(void *context, const struct wb_site_class *class)
{
    struct wb_fetchlist *list = context;
    int err = wb_vec_push(&list->classes, *class);

    return err < 0 ? err : wb_buf_append_slice(&list->class_names, class->name);
}

static int read_classes(struct wb_fetchlist *list)
{
    int err = wb_dispenser_classes(list->dispenser, take_class, list);
    const char *name = list->class_names.ptr;

    for (size_t i = 0; err == 0 && i < list->classes.count; i++) {
        list->classes.items[i].name.ptr = name;
        name += list->classes.items[i].name.len;
    }
    /* Databases differ in how they order text. */
    if (err == 0 && list->classes.count)
        qsort(list->classes.items, list->classes.count, sizeof *list->classes.items, compare_classes);
    return err;
}

const struct wb_site_class *wb_fetchlist_classes(const struct wb_fetchlist *list, size_t *count_out)
{
    WB_CHECK(list->magic == FETCHLIST_MAGIC && list->domains);
    *count_out = list->classes.count;
    return list->classes.items;
}

bool wb_fetchlist_in_class(const struct wb_fetchlist *list, const struct wb_listed_site *site, const char *name)
{
    WB_CHECK(list->magic == FETCHLIST_MAGIC && (site->class_at == SIZE_MAX || site->class_at < list->classes.count));
    struct wb_slice own = WB_SLICE_LIT("default");

    if (site->class_at != SIZE_MAX)
        own = list->classes.items[site->class_at].name;
    return !name || wb_slice_equal(own, wb_slice_str(name));
}

void wb_fetchlist_limit(struct wb_fetchlist *list, const char *class_name)
{
    WB_CHECK(list->magic == FETCHLIST_MAGIC && list->domains);
    struct wb_listed_site site;
    size_t kept = 0;

    for (size_t i = 0; i < list->told.count; i++) {
        wb_fetchlist_site(list, list->told.items[i], &site);
        if (wb_fetchlist_in_class(list, &site, class_name))
            list->told.items[kept++] = list->told.items[i];
    }
    list->told.count = kept;
}

/* ---- opening ----------------------------------------------------------------------------------------------------- */

static void no_warning(void *context, const char *message)
{
    (void)context, (void)message;
}

/* Adds the classes and sites of a seeds file to the dispenser. */
static int take_seeds(struct wb_fetchlist *list, const char *seeds_file, wb_seeds_warn warn, void *context)
{
    struct wb_seeds *seeds = &list->seeds;
    int err = wb_seeds_read(seeds, seeds_file, warn ? warn : no_warning, context);

    if (err == 0)
        err = wb_dispenser_set_classes(list->dispenser, seeds->site_classes, seeds->class_count);
    for (size_t i = 0; err == 0 && i < seeds->count; i++) {
        seeds->plans[i].seeds = &seeds->seeds[i];
        seeds->plans[i].seed_count = 1;
        err = wb_vec_push(&list->told, seeds->plans[i].name);
    }
    return err < 0 ? err : wb_dispenser_introduce(list->dispenser, seeds->plans, seeds->count);
}

int wb_fetchlist_open(const char *dir, const char *dispenser, const char *seeds_file,
                      void (*warn)(void *context, const char *message), void *context, struct wb_fetchlist **list_out)
{
    struct wb_fetchlist *list = NULL;
    char home[WB_STORE_ID_HEX + 1];
    int err = wb_store_id(dir, home);

    *list_out = NULL;
    if (err < 0)
        return err;
    list = wb_alloc_zero(1, sizeof *list);
    if (!list)
        return WB_E_NOMEM;
    list->magic = FETCHLIST_MAGIC;
    list->url = WB_URL_INIT;
    err = wb_dispenser_open(dir, dispenser, &list->dispenser);
    /* Without recovery the sites of dead workers would look as if they were held. */
    if (err == 0)
        err = wb_recover(dir, home, list->dispenser, true);
    if (err == 0 && seeds_file)
        err = take_seeds(list, seeds_file, warn, context);
    if (err == 0)
        err = read_classes(list);
    if (err == 0)
        err = wb_dispenser_each(list->dispenser, 0, take_site, list);
    if (err == 0)
        err = sort_sites(list);
    if (err < 0) {
        struct wb_error_copy why;
        wb_error_save(err, &why);
        wb_fetchlist_close(list);
        return wb_error_restore(&why);
    }
    *list_out = list;
    return 0;
}

void wb_fetchlist_close(struct wb_fetchlist *list)
{
    if (!list)
        return;
    WB_CHECK(list->magic == FETCHLIST_MAGIC);
    wb_dispenser_close(list->dispenser);
    wb_seeds_release(&list->seeds);
    wb_buf_release(&list->names);
    wb_buf_release(&list->class_names);
    wb_buf_release(&list->text);
    wb_buf_release(&list->key);
    wb_url_release(&list->url);
    wb_vec_release(&list->sites);
    wb_free(list->domains);
    wb_vec_release(&list->classes);
    wb_vec_release(&list->told);
    wb_vec_release(&list->groups);
    wb_vec_release(&list->urls);
    list->magic = 0;
    wb_free(list);
}

/* ---- the list ---------------------------------------------------------------------------------------------------- */

static struct wb_slice text_of(const struct wb_fetchlist *list, struct text_at text)
{
    WB_CHECK(text.at + text.len <= list->text.len);
    return wb_slice(list->text.ptr + text.at, text.len);
}

/* The group of a site: the last one, or a new one. */
static int find_group(struct wb_fetchlist *list, struct wb_slice name, bool https, struct listed_group **group_out)
{
    struct listed_group *last = list->groups.count ? &list->groups.items[list->groups.count - 1] : NULL;

    *group_out = last;
    if (last && wb_slice_equal(text_of(list, last->name), name))
        return 0;
    struct listed_group group = {.name = {list->text.len, name.len}, .https = https, .first = list->urls.count};
    int err = wb_buf_append_slice(&list->text, name);
    if (err == 0)
        err = wb_vec_push(&list->groups, group);
    if (err == 0)
        *group_out = &list->groups.items[list->groups.count - 1];
    return err;
}

int wb_fetchlist_add(struct wb_fetchlist *list, struct wb_slice url, uint16_t depth)
{
    WB_CHECK(list->magic == FETCHLIST_MAGIC && list->domains);
    struct listed_group *group = NULL;
    int err = wb_url_parse(url, NULL, &list->url);

    if (err == 0 && (!wb_url_is_http(&list->url) || wb_url_host(&list->url).len == 0))
        err = WB_E_PROTO;
    if (err == 0)
        err = wb_url_key(&list->url, &list->key);
    if (err < 0)
        return err == WB_E_NOMEM ? err : wb_fail(WB_E_INVALID, "'%.*s' is not an http or https URL", WB_SLICE_ARG(url));
    struct wb_slice href = wb_url_href(&list->url), name = wb_key_site(wb_buf_slice(&list->key));
    if (list->url.has_fragment)
        href.len = list->url.fragment_at - 1;
    if (name.len > WB_SITE_NAME_MAX)
        return wb_fail(WB_E_INVALID, "the name of the site is too long: %.*s...", 80, name.ptr);
    err = find_group(list, name, wb_slice_equal(wb_url_scheme(&list->url), WB_SLICE_LIT("https")), &group);
    if (err < 0)
        return err;
    struct listed_url added = {.text = {list->text.len, href.len}, .depth = depth};
    err = wb_buf_append_slice(&list->text, href);
    if (err == 0)
        err = wb_vec_push(&list->urls, added);
    if (err == 0)
        group->count++;
    return err;
}

int wb_fetchlist_commit(struct wb_fetchlist *list, int64_t *run_out, struct wb_dispenser_list_stat *stat_out)
{
    WB_CHECK(list->magic == FETCHLIST_MAGIC && list->domains);
    struct wb_site_list *lists = wb_alloc_zero(list->groups.count + 1, sizeof *lists);
    struct wb_seed *seeds = wb_alloc_zero(list->urls.count + 1, sizeof *seeds);
    int err = lists && seeds ? 0 : WB_E_NOMEM;

    *run_out = 0;
    *stat_out = (struct wb_dispenser_list_stat){0};
    for (size_t i = 0; err == 0 && i < list->urls.count; i++)
        seeds[i] = (struct wb_seed){.url = text_of(list, list->urls.items[i].text),
                                    .depth.links = list->urls.items[i].depth};
    for (size_t i = 0; err == 0 && i < list->groups.count; i++) {
        const struct listed_group *group = &list->groups.items[i];
        WB_CHECK(group->first + group->count <= list->urls.count);
        lists[i] = (struct wb_site_list){.name = text_of(list, group->name),
                                         .scheme = wb_slice_str(group->https ? "https" : "http"),
                                         .seeds = seeds + group->first, .seed_count = group->count};
    }
    if (err == 0)
        err = wb_dispenser_enter_lists(list->dispenser, wb_clock_wall_ms(), lists, list->groups.count,
                                       list->told.items, list->told.count, run_out, stat_out);
    wb_free(lists);
    wb_free(seeds);
    return err;
}

int wb_fetchlist_joined(struct wb_fetchlist *list, int64_t run, struct wb_slice site, bool *joined_out)
{
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_site_row row;

    WB_CHECK(list->magic == FETCHLIST_MAGIC && run >= 0);
    *joined_out = false;
    int err = run ? wb_dispenser_get(list->dispenser, site, &mem, &row) : WB_E_NOTFOUND;
    *joined_out = err == 0 && row.run == run;
    wb_buf_release(&mem);
    return err == WB_E_NOTFOUND ? 0 : err;
}
