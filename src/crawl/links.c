/*
 * links.c - which URLs enter a queue, and what happens to links that lead to other sites.
 *
 *   a URL of this site            into its queue, unless it is known or a guard keeps it out
 *   of another site we hold       into that site's queue, and into that site's chain in the journal
 *   of any other site in scope    waits here, then becomes a seed of its site in the dispenser, or, if that site is an
 *                                 alias, of the site that is crawled instead
 *
 * If the visit of that other site is over (its page is what the papers call a locally isolated page), the site is
 * opened again when the run has nothing else to do. A listed visit follows only links whose target webdb has never
 * heard of: the others have their own time to be looked at.
 */
#include "base/check.h"
#include "base/hash.h"
#include "base/mem.h"
#include "crawl/worker.h"
#include "webdb/webdb.h"

enum {
    OUT_BATCH = 4096,     /* links that wait at most */
    SENT_MAX = 1 << 20,   /* links that are remembered as sent; then all are forgotten, and some are sent again */
};

/* ---- into a queue ------------------------------------------------------------------------------------------------ */

/*
 * Whether webdb or the store has heard of a URL: 1, 0 or an error. w->scratch.key is the URL's key. webdb is read as it
 * was when the process started; the store as it is now.
 */
static int is_known(struct wb_worker *w, const struct wb_url *url)
{
    struct wb_webdb_page known;
    struct wb_page page;
    struct wb_slice href = wb_url_href(url);

    if (url->has_fragment)
        href.len = url->fragment_at - 1;
    int err = w->repo.webdb ? wb_webdb_get_page(w->repo.webdb, href, &known) : WB_E_NOTFOUND;
    if (err != WB_E_NOTFOUND && err != WB_E_INVALID)
        return err < 0 ? err : 1;
    err = wb_store_get(w->repo.store, wb_pageid_of_key(wb_buf_slice(&w->scratch.key)), &page, &w->scratch.known_page);
    if (err == WB_E_NOTFOUND)
        return 0;
    return err < 0 && err != WB_E_CORRUPT && err != WB_E_DOWN ? err : 1;
}

/*
 * Whether a listed visit leaves a URL alone: one that is known, because it has its own time to be looked at. Something
 * that a page needs is only left alone if it is stored, because webdb never asks for it otherwise. 1, 0 or an error.
 */
static int is_left_alone(struct wb_worker *w, const struct wb_url *url, const struct wb_item *item)
{
    int64_t time_ms;

    if (!item->depth.need)
        return is_known(w, url);
    int err = wb_store_time(w->repo.store, wb_pageid_of_key(wb_buf_slice(&w->scratch.key)), &time_ms);
    if (err == WB_E_NOTFOUND)
        return 0;
    return err < 0 && err != WB_E_CORRUPT ? err : 1;
}

/* w->scratch.key is the URL's key. */
static int admit_key(struct wb_worker *w, struct wb_site *site, const struct wb_url *url, const struct wb_item *item,
                     unsigned flags)
{
    struct wb_item entry = *item;
    int err;

    entry.path = wb_site_path(url);
    entry.https = wb_slice_equal(wb_url_scheme(url), WB_SLICE_LIT("https"));
    if (entry.path.len > WB_TRAP_URL_MAX)
        return 0;
    struct wb_pageid id = wb_pageid_of_key(wb_buf_slice(&w->scratch.key));
    err = wb_seen_add(&site->seen, w->plan->options->dir, id);
    if (err == 0 && item->kind == WB_ITEM_PAGE && !item->depth.need && wb_seen_has(&site->unread, id) &&
        !wb_seen_marked(&site->unread, id)) {
        wb_seen_mark(&site->unread, id, true);
        wb_news_mark(w, site, id, false);
        return (err = wb_item_push(w->repo.spill, &site->queue, &entry)) < 0 ? err : 1;
    }
    if (err <= 0)
        return err;
    if (site->listed && item->kind == WB_ITEM_PAGE && !(flags & WB_LINKS_SEED)) {
        err = is_left_alone(w, url, item);
        if (err != 0)
            return err < 0 ? err : 0;
    }
    bool trusted = flags & WB_LINKS_SEED || item->depth.need;
    const char *trap = trusted ? NULL : wb_trap_check(&site->trap, entry.path, wb_clock_now_ms());
    if (trap) {
        if (!(flags & WB_LINKS_QUIET))
            wb_eventlog_skip(w, wb_url_href(url), trap);
        return 0;
    }
    err = wb_item_push(w->repo.spill, flags & WB_LINKS_FRONT ? &site->again : &site->queue, &entry);
    if (err < 0)
        return err;
    if (!(flags & WB_LINKS_QUIET))
        wb_tally_add(&w->tally->known, 1);
    err = flags & (WB_LINKS_QUIET | WB_LINKS_SEED) ? 0 : wb_news_known(w, site, &entry);
    return err < 0 ? err : 1;
}

int wb_links_admit(struct wb_worker *w, struct wb_site *site, const struct wb_url *url, const struct wb_item *item,
                   unsigned flags)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC && !site->guest);
    int err = wb_url_key(url, &w->scratch.key);

    if (err < 0)
        return err == WB_E_LIMIT ? 0 : err;
    return admit_key(w, site, url, item, flags);
}

/* ---- to other sites ---------------------------------------------------------------------------------------------- */

static int add_out(struct wb_worker *w, struct wb_slice name, const struct wb_url *url, struct wb_depth depth,
                   bool listed)
{
    struct wb_links *links = &w->links;
    struct wb_slice href = wb_url_href(url);
    struct wb_link_out out = {.name_at = links->text.len, .name_len = name.len, .depth = depth, .listed = listed};

    if (links->sent.count > SENT_MAX)
        wb_seen_release(&links->sent);
    int err = wb_seen_add(&links->sent, w->plan->options->dir, wb_pageid_of_key(wb_buf_slice(&w->scratch.key)));
    if (err <= 0)
        return err;
    err = wb_buf_append_slice(&links->text, name);
    out.url_at = links->text.len;
    out.url_len = url->has_fragment ? url->fragment_at - 1 : href.len;
    out.https = wb_slice_equal(wb_url_scheme(url), WB_SLICE_LIT("https"));
    if (err == 0)
        err = wb_buf_append(&links->text, href.ptr, out.url_len);
    if (err == 0)
        err = wb_vec_push(&links->out, out);
    if (err < 0)
        return err;
    wb_worker_dirty(w);
    return links->out.count >= OUT_BATCH ? wb_links_flush(links, w->repo.dispenser, w->plan) : 0;
}

/* The other site is ours too: the link goes into its queue, and into its chain, so that a crash does not lose it. */
static int admit_neighbour(struct wb_worker *w, struct wb_site *site, const struct wb_url *url, struct wb_depth depth)
{
    struct wb_item item = {.kind = WB_ITEM_PAGE, .depth = depth};
    struct wb_pagelink link = {.url = wb_url_href(url)};
    struct wb_edit edit = {.kind = WB_EDIT_SEEDS, .depth = depth, .links = &link, .link_count = 1};

    int got = wb_links_admit(w, site, url, &item, 0);
    if (got <= 0)
        return got;
    if (url->has_fragment)
        link.url.len = url->fragment_at - 1;
    return wb_visit_note(w, site, &edit);
}

/* Most links of a page were on the page before. Whatever was decided a moment ago is not decided again. */
static bool was_decided(struct wb_worker *w, const struct wb_site *site, struct wb_slice url, bool need)
{
    uint64_t hash = wb_hash64(url.ptr, url.len) ^ site->key ^ (uint64_t)site->visit << 56 ^ (uint64_t)need << 55;
    uint64_t *slot = &w->links.recent[hash & (WB_LINKS_RECENT - 1)];
    bool known = *slot == hash;

    *slot = hash;
    return known;
}

int wb_links_follow(struct wb_worker *w, struct wb_site *site, struct wb_slice url, const struct wb_item *item,
                    unsigned flags)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC && !site->guest);
    struct wb_url *target = &w->scratch.target;
    bool need = item->depth.need;

    if (!need && item->depth.links > w->plan->options->max_depth)
        return 0;
    if (item->kind == WB_ITEM_PAGE && flags == 0 && was_decided(w, site, url, need))
        return 0;
    if (!wb_slice_starts(url, WB_SLICE_LIT("http")) || wb_url_parse(url, NULL, target) < 0 || !wb_url_is_http(target))
        return 0;
    int err = wb_url_key(target, &w->scratch.key);
    if (err < 0)
        return err == WB_E_LIMIT ? 0 : err;
    struct wb_slice name = wb_key_site(wb_buf_slice(&w->scratch.key));
    if (wb_slice_equal(name, wb_slice_str(site->name)))
        return admit_key(w, site, target, item, flags);
    /* A restored link was sent when it was first seen. A sitemap speaks for its own site only. */
    bool sent = (flags & (WB_LINKS_QUIET | WB_LINKS_RETELL)) == WB_LINKS_QUIET;
    if (sent || item->kind != WB_ITEM_PAGE || !(need ? wb_scope_in_class : wb_scope_has)(&w->plan->scope, name))
        return 0;
    err = site->listed ? is_left_alone(w, target, item) : 0;
    if (err != 0)
        return err < 0 ? err : 0;
    struct wb_site *other = wb_site_set_find(&w->sites, name);
    /* If a site that only had to serve files is to be crawled, the dispenser must hear of it. */
    if (other && !other->guest && (need || !other->needed))
        return admit_neighbour(w, other, target, item->depth);
    return add_out(w, name, target, item->depth, site->listed);
}

int wb_links_follow_edit(struct wb_worker *w, struct wb_site *site, const struct wb_edit_page *page,
                         const struct wb_pagelink *link, unsigned flags)
{
    struct wb_item item = {.kind = WB_ITEM_PAGE};
    uint16_t links = page->depth.links;
    bool needed = page->depth.need;
    int err = 0;

    /* Of what was fetched because a page needs it, only style sheets and scripts need something themselves: a file that
     * turns out to be a page does not. */
    bool follow = (link->flags & (WB_PAGELINK_FOLLOW | WB_PAGELINK_NOFOLLOW)) == WB_PAGELINK_FOLLOW;
    bool need = wb_extract_need(link->tag) & w->plan->options->with && page->depth.need < WB_DEPTH_NEED_MAX &&
                (!needed || wb_extract_is_needy(page->type));
    if (follow && !needed && links != WB_DEPTH_LINKS_MAX && links < w->plan->options->max_depth) {
        item.depth.links = links == WB_DEPTH_UNKNOWN ? WB_DEPTH_UNKNOWN : (uint16_t)(links + 1);
        err = wb_links_follow(w, site, link->url, &item, flags);
    }
    if (err < 0 || !need)
        return err;
    item.depth = (struct wb_depth){.need = (uint8_t)(page->depth.need + 1)};
    return wb_links_follow(w, site, link->url, &item, flags);
}

int wb_links_pass_on(struct wb_worker *w, struct wb_site *site)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC && site->in_flight == 0);
    struct wb_url *target = &w->scratch.target;
    struct wb_item item;
    int got;

    while ((got = wb_site_pop(site, w->repo.spill, &w->scratch.item, &item)) > 0) {
        int err = wb_site_url(site, item.https, item.path, &w->scratch.url_text);
        if (err == 0)
            err = wb_url_parse(wb_buf_slice(&w->scratch.url_text), NULL, target);
        if (err == 0)
            err = wb_url_key(target, &w->scratch.key);
        if (err == WB_E_NOMEM)
            return err;
        if (err < 0 || item.kind != WB_ITEM_PAGE ||
            wb_seen_marked(&site->seen, wb_pageid_of_key(wb_buf_slice(&w->scratch.key))))
            continue;
        err = add_out(w, wb_slice_str(site->name), target, item.depth, site->listed);
        if (err < 0)
            return err;
    }
    return got;
}

int wb_links_flush(struct wb_links *links, struct wb_dispenser *dispenser, const struct wb_crawl_plan *plan)
{
    size_t count = links->out.count;
    struct wb_site_plan *sites = NULL;
    struct wb_seed *seeds = NULL;
    uint64_t added = 0;
    int err = 0;

    if (!count)
        return 0;
    sites = wb_alloc_zero(count, sizeof *sites);
    seeds = wb_alloc_zero(count, sizeof *seeds);
    if (!sites || !seeds)
        err = WB_E_NOMEM;
    for (size_t i = 0; err == 0 && i < count; i++) {
        const struct wb_link_out *out = &links->out.items[i];
        WB_CHECK(out->url_at == out->name_at + out->name_len && out->url_at + out->url_len <= links->text.len);
        seeds[i] = (struct wb_seed){.url = wb_slice(links->text.ptr + out->url_at, out->url_len), .depth = out->depth};
        sites[i] = (struct wb_site_plan){.name = wb_slice(links->text.ptr + out->name_at, out->name_len),
                                         .scheme = wb_slice_str(out->https ? "https" : "http"),
                                         .priority = INT32_MIN, .delay_ms = -2, .budget = -2, /* as they are */
                                         .seeds = &seeds[i], .seed_count = 1, .by_link = true, .listed = out->listed,
                                         .needed = out->depth.need != 0,
                                         .continues = plan->goes_on};
    }
    if (err == 0)
        err = wb_dispenser_add(dispenser, plan->run, sites, count, &added);
    if (err == 0) {
        wb_vec_clear(&links->out);
        wb_buf_clear(&links->text);
    }
    wb_free(sites);
    wb_free(seeds);
    return err;
}

void wb_links_release(struct wb_links *links)
{
    wb_buf_release(&links->text);
    wb_vec_release(&links->out);
    wb_seen_release(&links->sent);
}
