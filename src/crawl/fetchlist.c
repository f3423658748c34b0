/*
 * fetchlist.c - what the dispenser knows of all sites, and a list that becomes a run of it.
 *
 * The sites are read once, when the list is opened, and sorted by name; whoever fills the list asks of millions of pages. The
 * list is kept in memory until it is committed. It never fetches, and decides nothing about what is worth fetching.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "crawl/crawl.h"
#include "crawl/crawlsite.h"
#include "dispenser/dispenser.h"
#include "crawl/recover.h"
#include "os/clock.h"
#include "store/store.h"
#include "url/url.h"

#include <stdlib.h>

/* Of a site, or a URL: where its text is. */
struct text_at {
    size_t at, len;
};

struct site {
    const char *name;     /* set once the text moves no more */
    size_t at, len;
    const char *domain;   /* of the name: its end */
    size_t domain_len;
    struct wb_listed_site facts;
};

struct group {
    struct text_at name;
    bool https;
    size_t first, count;  /* of the URLs */
};

struct entry {
    struct text_at url;
    uint16_t depth;
};

struct wb_fetchlist {
    struct wb_dispenser *dispenser;
    struct wb_buf names;        /* of sites */
    struct site *sites;         /* sorted by name */
    size_t site_count, site_cap;
    const struct site **domains; /* the same, sorted by domain */
    struct wb_site_class *classes;
    size_t class_count;
    struct wb_buf class_names;
    struct wb_slice *told;      /* sites of the seeds file */
    size_t told_count;
    struct wb_seeds seeds;  /* that their names lie in */
    /* what was added */
    struct wb_buf text;
    struct group *groups;
    size_t group_count, group_cap;
    struct entry *entries;
    size_t entry_count, entry_cap;
    struct wb_url url;
    struct wb_buf key;
};

/* Room for one more of an array of items of size bytes. */
static int reserve_one(void **items, size_t count, size_t *cap, size_t size)
{
    if (count < *cap)
        return 0;
    size_t grown = *cap ? 2 * *cap : 64;
    void *moved = wb_realloc(*items, grown * size);
    if (!moved)
        return WB_E_NOMEM;
    *items = moved;
    *cap = grown;
    return 0;
}

/* ---- sites ---------------------------------------------------------------------------------------- */

static int compare_text(const char *a, size_t a_len, const char *b, size_t b_len)
{
    size_t len = a_len < b_len ? a_len : b_len;
    int order = len ? memcmp(a, b, len) : 0;

    return order ? order : a_len < b_len ? -1 : a_len > b_len;
}

static int compare_sites(const void *a, const void *b)
{
    const struct site *x = a, *y = b;

    return compare_text(x->name, x->len, y->name, y->len);
}

static int compare_domains(const void *a, const void *b)
{
    const struct site *x = *(const struct site *const *)a, *y = *(const struct site *const *)b;

    return compare_text(x->domain, x->domain_len, y->domain, y->domain_len);
}

static int compare_classes(const void *a, const void *b)
{
    const struct wb_site_class *x = a, *y = b;

    return compare_text(x->name.ptr, x->name.len, y->name.ptr, y->name.len);
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

    if (row->run == 0)
        return 0;
    int err = reserve_one((void **)&list->sites, list->site_count, &list->site_cap, sizeof *list->sites);
    if (err < 0)
        return err;
    if (row->class_name.len && list->class_count)
        class = bsearch(&key, list->classes, list->class_count, sizeof *list->classes, compare_classes);
    int64_t now_ms = wb_clock_wall_ms();
    list->sites[list->site_count++] = (struct site){.at = list->names.len, .len = row->name.len,
                                                    .facts = {.state = state_of(row, now_ms), .next_ms = wb_site_wait(row, now_ms),
                                                              .class_at = class ? (size_t)(class - list->classes) : SIZE_MAX}};
    return wb_buf_append_slice(&list->names, row->name);
}

static int sort_sites(struct wb_fetchlist *list)
{
    list->domains = wb_alloc_zero(list->site_count + 1, sizeof *list->domains);
    if (!list->domains)
        return WB_E_NOMEM;
    for (size_t i = 0; i < list->site_count; i++) {
        struct site *site = &list->sites[i];
        site->name = list->names.ptr + site->at;
        struct wb_slice domain = wb_site_domain(wb_slice(site->name, site->len));
        site->domain = domain.ptr;
        site->domain_len = domain.len;
    }
    if (list->site_count)
        qsort(list->sites, list->site_count, sizeof *list->sites, compare_sites);
    for (size_t i = 0; i < list->site_count; i++)
        list->domains[i] = &list->sites[i];
    if (list->site_count)
        qsort(list->domains, list->site_count, sizeof *list->domains, compare_domains);
    return 0;
}

void wb_fetchlist_site(const struct wb_fetchlist *list, struct wb_slice name, struct wb_listed_site *site_out)
{
    struct site key = {.name = name.ptr, .len = name.len};
    const struct site *site = list->site_count ? bsearch(&key, list->sites, list->site_count, sizeof key, compare_sites) : NULL;

    *site_out = site ? site->facts : (struct wb_listed_site){.state = WB_LISTED_UNKNOWN, .class_at = SIZE_MAX};
}

bool wb_fetchlist_domain(const struct wb_fetchlist *list, struct wb_slice domain)
{
    struct site key = {.domain = domain.ptr, .domain_len = domain.len};
    const struct site *wanted = &key;

    return list->site_count && bsearch(&wanted, list->domains, list->site_count, sizeof wanted, compare_domains);
}

/* ---- classes ----------------------------------------------------------------------------------------- */

static int take_class(void *context, const struct wb_site_class *class)
{
    struct wb_fetchlist *list = context;
    struct wb_site_class *classes = wb_realloc(list->classes, (list->class_count + 1) * sizeof *classes);

    if (!classes)
        return WB_E_NOMEM;
    list->classes = classes;
    classes[list->class_count++] = *class;
    return wb_buf_append_slice(&list->class_names, class->name);
}

static int read_classes(struct wb_fetchlist *list)
{
    int err = wb_dispenser_classes(list->dispenser, take_class, list);
    const char *name = list->class_names.ptr;

    for (size_t i = 0; err == 0 && i < list->class_count; i++) {
        list->classes[i].name.ptr = name;
        name += list->classes[i].name.len;
    }
    /* A database may have an order of its own. */
    if (err == 0 && list->class_count)
        qsort(list->classes, list->class_count, sizeof *list->classes, compare_classes);
    return err;
}

const struct wb_site_class *wb_fetchlist_classes(const struct wb_fetchlist *list, size_t *count_out)
{
    *count_out = list->class_count;
    return list->classes;
}

/* ---- opening --------------------------------------------------------------------------------------------- */

static void no_warning(void *context, const char *message)
{
    (void)context, (void)message;
}

/* Classes and sites of a seeds file. */
static int take_seeds(struct wb_fetchlist *list, const char *seeds_file, wb_seeds_warn warn, void *context)
{
    struct wb_seeds *seeds = &list->seeds;
    int err = wb_seeds_read(seeds, seeds_file, warn ? warn : no_warning, context);

    if (err == 0)
        err = wb_dispenser_set_classes(list->dispenser, seeds->site_classes, seeds->class_count);
    list->told = err == 0 ? wb_alloc_zero(seeds->count + 1, sizeof *list->told) : NULL;
    if (err == 0 && !list->told)
        err = WB_E_NOMEM;
    for (size_t i = 0; err == 0 && i < seeds->count; i++) {
        seeds->plans[i].seeds = &seeds->seeds[i];
        seeds->plans[i].seed_count = 1;
        list->told[list->told_count++] = seeds->plans[i].name;
    }
    return err < 0 ? err : wb_dispenser_introduce(list->dispenser, seeds->plans, seeds->count);
}

int wb_fetchlist_open(const char *dir, const char *dispenser, const char *seeds_file, void (*warn)(void *context, const char *message),
                      void *context, struct wb_fetchlist **list_out)
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
    list->url = WB_URL_INIT;
    err = wb_dispenser_open(dir, dispenser, &list->dispenser);
    /* Sites of crawlers that died would count as held. */
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
    wb_dispenser_close(list->dispenser);
    wb_seeds_release(&list->seeds);
    wb_buf_release(&list->names);
    wb_buf_release(&list->class_names);
    wb_buf_release(&list->text);
    wb_buf_release(&list->key);
    wb_url_release(&list->url);
    wb_free(list->sites);
    wb_free(list->domains);
    wb_free(list->classes);
    wb_free(list->told);
    wb_free(list->groups);
    wb_free(list->entries);
    wb_free(list);
}

/* ---- the list ------------------------------------------------------------------------------------------------- */

static struct wb_slice text_of(const struct wb_fetchlist *list, struct text_at text)
{
    return wb_slice(list->text.ptr + text.at, text.len);
}

/* The group that a URL of this site goes to: the last one, or a new one. */
static int find_group(struct wb_fetchlist *list, struct wb_slice name, bool https, struct group **group_out)
{
    struct group *last = list->group_count ? &list->groups[list->group_count - 1] : NULL;

    if (!last || !wb_slice_equal(text_of(list, last->name), name)) {
        int err = reserve_one((void **)&list->groups, list->group_count, &list->group_cap, sizeof *list->groups);
        if (err < 0)
            return err;
        last = &list->groups[list->group_count];
        *last = (struct group){.name = {list->text.len, name.len}, .https = https, .first = list->entry_count};
        err = wb_buf_append_slice(&list->text, name);
        if (err < 0)
            return err;
        list->group_count++;
    }
    *group_out = last;
    return 0;
}

int wb_fetchlist_add(struct wb_fetchlist *list, struct wb_slice url, uint16_t depth)
{
    struct group *group = NULL;
    int err = wb_url_parse(url, NULL, &list->url);

    if (err == 0 && (!wb_url_is_http(&list->url) || wb_url_host(&list->url).len == 0))
        err = WB_E_PROTO;
    if (err == 0)
        err = wb_url_key(&list->url, &list->key);
    if (err < 0)
        return err == WB_E_NOMEM ? err : wb_fail(WB_E_INVALID, "'%.*s' is no http or https URL", WB_SLICE_ARG(url));
    struct wb_slice href = wb_url_href(&list->url), name = wb_key_site(wb_buf_slice(&list->key));
    if (list->url.has_fragment)
        href.len = list->url.fragment_at - 1;
    if (name.len > WB_SITE_NAME_MAX)
        return wb_fail(WB_E_INVALID, "the name of the site is too long: %.*s...", 80, name.ptr);
    err = reserve_one((void **)&list->entries, list->entry_count, &list->entry_cap, sizeof *list->entries);
    if (err == 0)
        err = find_group(list, name, wb_slice_equal(wb_url_scheme(&list->url), WB_SLICE_LIT("https")), &group);
    if (err < 0)
        return err;
    list->entries[list->entry_count] = (struct entry){.url = {list->text.len, href.len}, .depth = depth};
    err = wb_buf_append_slice(&list->text, href);
    if (err < 0)
        return err;
    list->entry_count++;
    group->count++;
    return 0;
}

int wb_fetchlist_commit(struct wb_fetchlist *list, int64_t *run_out, struct wb_dispenser_list_stat *stat_out)
{
    struct wb_site_list *lists = wb_alloc_zero(list->group_count + 1, sizeof *lists);
    struct wb_seed *seeds = wb_alloc_zero(list->entry_count + 1, sizeof *seeds);
    int err = lists && seeds ? 0 : WB_E_NOMEM;

    *run_out = 0;
    *stat_out = (struct wb_dispenser_list_stat){0};
    for (size_t i = 0; err == 0 && i < list->entry_count; i++)
        seeds[i] = (struct wb_seed){.url = text_of(list, list->entries[i].url), .depth = list->entries[i].depth};
    for (size_t i = 0; err == 0 && i < list->group_count; i++) {
        const struct group *group = &list->groups[i];
        lists[i] = (struct wb_site_list){.name = text_of(list, group->name), .scheme = wb_slice_str(group->https ? "https" : "http"),
                                         .seeds = seeds + group->first, .seed_count = group->count};
    }
    if (err == 0)
        err = wb_dispenser_enter_lists(list->dispenser, wb_clock_wall_ms(), lists, list->group_count, list->told, list->told_count, run_out, stat_out);
    wb_free(lists);
    wb_free(seeds);
    return err;
}
