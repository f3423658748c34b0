/*
 * names.c - the address of a site, and whether the site is another name of one that is crawled already.
 *
 * The parent looks up most names in advance (resolve.c). A worker does so itself when an address has expired. A site
 * without a usable address is *refused*: every URL that waits in its queue gets a line in the log that says why.
 *
 * Two names of one address are *aliases* if they have the same robots.txt and the same root page. The name that was
 * known first is crawled; the other one is closed, and the pages that are linked only under its name are fetched under
 * the other one. Names with different rules or roots are virtual hosts, and both
 * are crawled.
 */
#include "base/check.h"
#include "base/mem.h"
#include "crawl/worker.h"

#include <stdio.h>

#define ALIAS_REASON "the same robots.txt and root page"

enum {
    SKIPS_MAX = 2000,     /* URLs refused before other sites get their turn */
    DNS_RETRY_MS = 5000,
};

/* ---- refusing ---------------------------------------------------------------------------------------------------- */

const char *wb_names_refuse_address(const struct wb_crawl_plan *plan, const struct wb_address *address)
{
    return plan->options->allow_private ? NULL : wb_address_private(address);
}

/* The site will not be contacted any more. Its URLs get their lines when it is its turn. */
static void refuse_site(struct wb_worker *w, struct wb_site *site, int error, const char *reason)
{
    WB_CHECK(site->magic == WB_SITE_MAGIC && site->in_flight == 0);
    wb_free(site->refusal);
    site->refusal = wb_strdup(reason);
    site->refusal_error = error;
    if (!site->refusal)
        wb_worker_fail(w, WB_E_NOMEM);
    else
        wb_dispatch_later(w, site);
}

/* Logs a page that is not asked for, unless it was dealt with before. */
static int refuse_page(struct wb_worker *w, struct wb_site *site, const struct wb_item *item)
{
    struct wb_eventlog_entry entry = {.error = site->refusal_error, .message = site->refusal,
                                      .time_ms = wb_clock_now_ms()};
    struct wb_pageid id;

    if (item->kind != WB_ITEM_PAGE)
        return 0;
    int err = wb_site_url(site, item->https, item->path, &w->scratch.url_text);
    if (err == 0)
        err = wb_worker_parse(w, wb_buf_slice(&w->scratch.url_text), &id);
    if (err < 0)
        return err == WB_E_NOMEM ? err : 0;
    if (wb_seen_marked(&site->seen, id))
        return 0;
    wb_news_mark(w, site, id, true);
    entry.url = wb_buf_slice(&w->scratch.url_text);
    wb_eventlog_fetch(w, &entry);
    return 0;
}

void wb_names_refuse_queue(struct wb_worker *w, struct wb_site *site)
{
    struct wb_item item;
    int got = 1;

    WB_CHECK(site->magic == WB_SITE_MAGIC && site->refusal && site->in_flight == 0);
    for (int i = 0; i < SKIPS_MAX && got > 0; i++) {
        got = wb_site_pop(site, w->repo.spill, &w->scratch.item, &item);
        if (got > 0 && refuse_page(w, site, &item) < 0)
            got = WB_E_NOMEM;
    }
    if (got < 0)
        wb_worker_fail(w, got);
    else if (got > 0)
        wb_dispatch_later(w, site);
    else
        wb_visit_close(w, site, WB_SITE_REFUSED, site->refusal, NULL);
}

/* ---- looking up -------------------------------------------------------------------------------------------------- */

/* A question to DNS. It holds the site's name and not the site, which may be gone when the answer comes. */
struct name_lookup {
    struct wb_worker *w;
    char name[];
};

const struct wb_address *wb_names_choose_address(const struct wb_crawl_plan *plan, const struct wb_dns_answer *answer,
                                                 const char **private_out)
{
    WB_CHECK(answer->count <= WB_DNS_ADDRESSES_MAX);
    *private_out = NULL;
    for (unsigned i = 0; answer->status == WB_DNS_OK && i < answer->count; i++) {
        const char *private = wb_names_refuse_address(plan, &answer->addresses[i]);
        if (!private)
            return &answer->addresses[i];
        *private_out = private;
    }
    return NULL;
}

static void lookup_done(void *context, const struct wb_dns_answer *answer)
{
    struct name_lookup *lookup = context;
    struct wb_worker *w = lookup->w;
    const char *private = NULL;
    char words[96];

    WB_CHECK(w->magic == WB_WORKER_MAGIC);
    struct wb_site *site = wb_site_set_find(&w->sites, wb_slice_str(lookup->name));
    wb_free(lookup);
    if (!site || !site->resolving)
        return;
    /* It has asked for nothing while its address was not known. */
    WB_CHECK(site->in_flight == 0 && site->turn.at == 0);
    /* While the site counts as waiting for this answer, because its pages would put it into the frontier. */
    if (site->held)
        wb_errand_take_arrivals(w);
    site->resolving = false;
    const struct wb_address *good = wb_names_choose_address(w->plan, answer, &private);
    if (good) {
        int err = wb_frontier_move(&w->frontier, site, good);
        if (err < 0)
            wb_worker_fail(w, err);
        site->address_expires_ms = answer->expires_ms;
    }
    if (!good)
        wb_rules_fail_favours(w, site, private ? "private" : "dns");
    if (good)
        wb_dispatch_later(w, site);
    else if (site->guest)
        wb_visit_close(w, site, WB_SITE_READY, "", NULL);
    else if (private) {
        snprintf(words, sizeof words, "private address (%s); --allow-private would allow it", private);
        refuse_site(w, site, WB_CRAWL_PRIVATE, words);
    } else if (answer->status == WB_DNS_NONE)
        refuse_site(w, site, WB_CRAWL_DNS, answer->message);
    else
        wb_visit_back_off(w, site, wb_clock_now_ms() + DNS_RETRY_MS, answer->message);
    wb_dispatch(w);
}

void wb_names_look_up(struct wb_worker *w, struct wb_site *site)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC);
    WB_CHECK(!site->resolving && site->in_flight == 0 && site->turn.at == 0);
    struct name_lookup *lookup = wb_alloc_zero(1, sizeof *lookup + strlen(site->name) + 1);
    int err = WB_E_NOMEM;

    if (lookup) {
        lookup->w = w;
        strcpy(lookup->name, site->name);
        err = wb_site_url(site, site->https, WB_SLICE_LIT("/"), &w->scratch.url_text);
        if (err == 0)
            err = wb_url_parse(wb_buf_slice(&w->scratch.url_text), NULL, &w->scratch.url);
    }
    if (err == 0) {
        struct wb_slice host;
        uint16_t port;
        wb_site_endpoint(&w->scratch.url, &host, &port);
        site->resolving = true;
        err = wb_dns_resolve(w->dns, host, port, lookup_done, lookup);
    }
    if (err < 0) {
        site->resolving = false;
        wb_free(lookup);
        wb_worker_fail(w, err);
    }
}

/* ---- other names ------------------------------------------------------------------------------------------------- */

static int count_row(void *context, const struct wb_site_row *row)
{
    (void)row;
    return ++*(unsigned *)context >= 2;
}

int wb_names_have_neighbours(struct wb_worker *w, const struct wb_site *site, bool *have_out)
{
    char address[WB_ADDRESS_TEXT_MAX];
    unsigned count = 0;
    int err = 0;

    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC);
    if (site->frontier_address && site->frontier_address->sites < 2) {
        wb_address_format(&site->address, address);
        err = wb_dispenser_neighbours(w->repo.dispenser, wb_slice_str(address), count_row, &count);
    }
    *have_out = site->frontier_address && (site->frontier_address->sites >= 2 || count >= 2);
    return err < 0 ? err : 0;
}

struct twin_search {
    const struct wb_site *site;
    char *name;  /* of a site with the same address and probe */
};

static int compare_row(void *context, const struct wb_site_row *row)
{
    struct twin_search *twin = context;

    if (row->id == twin->site->id || row->state == WB_SITE_ALIAS)
        return 0;
    twin->name = wb_strndup(row->name.ptr, row->name.len);
    return twin->name ? 1 : WB_E_NOMEM;
}

static bool is_same(const struct wb_site *site, const struct wb_site *other)
{
    return other->frontier_address == site->frontier_address && other->root.digest == site->root.digest &&
           other->rules.digest == site->rules.digest && other->rules.state == WB_RULES_KNOWN;
}

/* The site is another name of that one, which gets the pages that wait in its queue. */
static int close_alias(struct wb_worker *w, struct wb_site *site, const char *name)
{
    WB_CHECK(!site->guest && strcmp(site->name, name) != 0);
    int err = wb_links_pass_on(w, site);

    wb_visit_close(w, site, WB_SITE_ALIAS, ALIAS_REASON, name);
    return err;
}

/*
 * Finds another name of the same site; *name_out is NULL if there is none. Looks at sites that this process has just
 * closed, at those that it holds, and at those that the dispenser knows. May close another name in favour of this one.
 */
static int find_twin(struct wb_worker *w, const struct wb_site *site, char **name_out)
{
    struct twin_search twin = {.site = site};
    char address[WB_ADDRESS_TEXT_MAX], probe[WB_PROBE_TEXT_MAX];
    const char *closed = wb_visit_closed_twin(w, site);

    *name_out = NULL;
    if (closed)
        return (*name_out = wb_strdup(closed)) ? 0 : WB_E_NOMEM;
    for (struct wb_site *other = wb_site_set_next(&w->sites, NULL), *next; other; other = next) {
        next = wb_site_set_next(&w->sites, other);
        if (other == site || other->guest || !is_same(site, other))
            continue;
        /* The name that was known first stays, even if the root of the other name came sooner but nothing else yet. */
        if (other->id > site->id && other->pages <= 1 && !other->in_flight && !other->held) {
            int err = close_alias(w, other, site->name);
            if (err < 0)
                return err;
            continue;
        }
        *name_out = wb_strdup(other->name);
        return *name_out ? 0 : WB_E_NOMEM;
    }
    wb_site_probe(site, probe);
    wb_address_format(&site->address, address);
    int err = wb_dispenser_twins(w->repo.dispenser, wb_slice_str(address), wb_slice_str(probe), compare_row, &twin);
    *name_out = twin.name;
    return err < 0 ? err : 0;
}

bool wb_names_close_alias(struct wb_worker *w, struct wb_site *site)
{
    char *twin = NULL;

    /* Its rules and its root are known, or everything would be an alias of everything. */
    WB_CHECK(site->magic == WB_SITE_MAGIC && site->root.digest && site->rules.state == WB_RULES_KNOWN);
    site->root.probing = false;
    int err = find_twin(w, site, &twin);
    if (err < 0)
        wb_worker_fail(w, err);
    if (!twin)
        return false;
    err = close_alias(w, site, twin);
    if (err < 0)
        wb_worker_fail(w, err);
    wb_free(twin);
    return true;
}

bool wb_names_root_came(struct wb_worker *w, struct wb_site *site, const uint8_t md5[WB_MD5_BYTES])
{
    WB_CHECK(site->magic == WB_SITE_MAGIC && !site->guest);
    site->root.digest = wb_pageid_get(md5).hi | 1;
    return site->root.probing && wb_names_close_alias(w, site);
}
