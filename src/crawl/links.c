/*
 * links.c - which URLs enter a queue, and links that lead to other sites.
 *
 * A link to a site that this process holds goes to that site's queue at once; any other
 * waits in the outbox and becomes a seed of its site in the dispenser. Where that site's visit is over (the
 * locally isolated page), it is opened again when the run has nothing else to do. A listed visit follows what webdb has never heard
 * of and nothing else: the rest has its own time to be looked at.
 */
#include "crawl/webknown.h"
#include "base/hash.h"
#include "base/mem.h"

enum { OUTBOX_BATCH = 4096, OUTBOX_MEMORY = 1 << 20 };

struct wb_outbox_entry {
    size_t name_at, name_len, url_at, url_len; /* in the outbox's text */
    uint16_t depth;
    bool https, listed; /* listed: found by a listed visit */
};

/* w->key is the URL's. */
static int admit_key(struct wb_worker *w, struct wb_site *site, const struct wb_url *url, const struct wb_item *item, unsigned flags)
{
    struct wb_item entry = *item;
    int err;

    entry.path = wb_site_path(url);
    entry.https = wb_slice_equal(wb_url_scheme(url), WB_SLICE_LIT("https"));
    if (entry.path.len > WB_TRAP_URL_MAX)
        return 0;
    err = wb_seen_add(&site->seen, w->plan->options->dir, wb_pageid_of_key(wb_buf_slice(&w->key)));
    if (err <= 0)
        return err;
    if (site->listed && item->kind == WB_ITEM_PAGE && !(flags & WB_ADMIT_SEED)) {
        err = wb_known_url(w, url);
        if (err != 0)
            return err < 0 ? err : 0;
    }
    const char *trap = flags & WB_ADMIT_SEED ? NULL : wb_trap_check(&site->trap, entry.path, wb_worker_now(w));
    if (trap) {
        if (!(flags & WB_ADMIT_QUIET))
            wb_event_skip(w, wb_url_href(url), trap);
        return 0;
    }
    err = wb_item_push(w->spill, flags & WB_ADMIT_FRONT ? &site->again : &site->queue, &entry);
    if (err < 0)
        return err;
    if (!(flags & WB_ADMIT_QUIET))
        wb_tally_add(&w->tally->known, 1);
    return 1;
}

int wb_admit(struct wb_worker *w, struct wb_site *site, const struct wb_url *url, const struct wb_item *item, unsigned flags)
{
    int err = wb_url_key(url, &w->key);

    if (err < 0)
        return err == WB_E_LIMIT ? 0 : err;
    return admit_key(w, site, url, item, flags);
}

/* ---- to other sites -------------------------------------------------------------------------- */

static int outbox_add(struct wb_worker *w, struct wb_slice name, const struct wb_url *url, uint16_t depth, bool listed)
{
    struct wb_outbox *box = &w->outbox;
    struct wb_slice href = wb_url_href(url);
    struct wb_outbox_entry entry = {.name_at = box->text.len, .name_len = name.len, .depth = depth, .listed = listed};

    if (box->sent.count > OUTBOX_MEMORY)
        wb_seen_release(&box->sent);
    int err = wb_seen_add(&box->sent, w->plan->options->dir, wb_pageid_of_key(wb_buf_slice(&w->key)));
    if (err <= 0)
        return err;
    if (box->count == box->cap) {
        size_t cap = box->cap ? box->cap * 2 : 64;
        struct wb_outbox_entry *entries = wb_realloc(box->entries, cap * sizeof *entries);
        if (!entries)
            return WB_E_NOMEM;
        box->entries = entries;
        box->cap = cap;
    }
    err = wb_buf_append_slice(&box->text, name);
    entry.url_at = box->text.len;
    entry.url_len = url->has_fragment ? url->fragment_at - 1 : href.len;
    entry.https = wb_slice_equal(wb_url_scheme(url), WB_SLICE_LIT("https"));
    if (err == 0)
        err = wb_buf_append(&box->text, href.ptr, entry.url_len);
    if (err < 0)
        return err;
    box->entries[box->count++] = entry;
    wb_worker_dirty(w);
    return box->count >= OUTBOX_BATCH ? wb_outbox_flush(w) : 0;
}

/* The other site is ours too: into its queue, and into its own chain, so that a crash does not lose it. */
static int admit_neighbour(struct wb_worker *w, struct wb_site *site, const struct wb_url *url, uint16_t depth)
{
    struct wb_item item = {.kind = WB_ITEM_PAGE, .depth = depth};
    struct wb_edit_link link = {.url = wb_url_href(url)};
    struct wb_edit edit = {.kind = WB_EDIT_SEEDS, .count = depth, .links = &link, .link_count = 1};

    int got = wb_admit(w, site, url, &item, 0);
    if (got <= 0)
        return got;
    if (url->has_fragment)
        link.url.len = url->fragment_at - 1;
    return wb_visit_note(w, site, &edit);
}

/* Most links of a page were on the page before: what was decided a moment ago is not decided again. */
static bool was_decided(struct wb_worker *w, const struct wb_site *site, struct wb_slice url)
{
    uint64_t hash = wb_hash64(url.ptr, url.len) ^ site->key ^ (uint64_t)site->visit << 56;
    uint64_t *slot = &w->recent[hash & (WB_RECENT_LINKS - 1)];
    bool known = *slot == hash;

    *slot = hash;
    return known;
}

int wb_links_follow(struct wb_worker *w, struct wb_site *site, struct wb_slice url, const struct wb_item *item, unsigned flags)
{
    if (item->depth > w->plan->options->max_depth)
        return 0;
    if (item->kind == WB_ITEM_PAGE && flags == 0 && was_decided(w, site, url))
        return 0;
    if (!wb_slice_starts(url, WB_SLICE_LIT("http")) || wb_url_parse(url, NULL, &w->target) < 0 || !wb_url_is_http(&w->target))
        return 0;
    int err = wb_url_key(&w->target, &w->key);
    if (err < 0)
        return err == WB_E_LIMIT ? 0 : err;
    struct wb_slice name = wb_key_site(wb_buf_slice(&w->key));
    if (wb_slice_equal(name, wb_slice_str(site->name)))
        return admit_key(w, site, &w->target, item, flags);
    /* What led elsewhere was told when it was seen first; a sitemap speaks for its own site only. */
    bool told = (flags & (WB_ADMIT_QUIET | WB_ADMIT_RETELL)) == WB_ADMIT_QUIET;
    if (told || item->kind != WB_ITEM_PAGE || !wb_scope_has(&w->plan->scope, name))
        return 0;
    err = site->listed ? wb_known_url(w, &w->target) : 0;
    if (err != 0)
        return err < 0 ? err : 0;
    struct wb_site *other = wb_worker_site(w, name);
    if (other && !other->guest)
        return admit_neighbour(w, other, &w->target, item->depth);
    return outbox_add(w, name, &w->target, item->depth, site->listed);
}

int wb_outbox_flush(struct wb_worker *w)
{
    struct wb_outbox *box = &w->outbox;
    struct wb_site_plan *plans = NULL;
    struct wb_seed *seeds = NULL;
    uint64_t added = 0;
    int err = 0;

    if (!box->count)
        return 0;
    plans = wb_alloc_zero(box->count, sizeof *plans);
    seeds = wb_alloc_zero(box->count, sizeof *seeds);
    if (!plans || !seeds)
        err = WB_E_NOMEM;
    for (size_t i = 0; err == 0 && i < box->count; i++) {
        const struct wb_outbox_entry *entry = &box->entries[i];
        seeds[i] = (struct wb_seed){.url = wb_slice(box->text.ptr + entry->url_at, entry->url_len), .depth = entry->depth};
        plans[i] = (struct wb_site_plan){.name = wb_slice(box->text.ptr + entry->name_at, entry->name_len),
                                         .scheme = wb_slice_str(entry->https ? "https" : "http"),
                                         .priority = INT32_MIN, .delay_ms = -2, .budget = -2, .seeds = &seeds[i], .seed_count = 1, .found = true,
                                         .listed = entry->listed, .goes_on = w->plan->goes_on};
    }
    if (err == 0)
        err = wb_dispenser_add(w->dispenser, w->plan->run, plans, box->count, &added);
    if (err == 0) {
        box->count = 0;
        wb_buf_clear(&box->text);
    }
    wb_free(plans);
    wb_free(seeds);
    return err;
}

void wb_outbox_release(struct wb_outbox *outbox)
{
    wb_buf_release(&outbox->text);
    wb_free(outbox->entries);
    wb_seen_release(&outbox->sent);
    *outbox = (struct wb_outbox){0};
}
