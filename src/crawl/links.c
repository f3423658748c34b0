/*
 * links.c - which URLs enter a queue, and links that lead to other sites.
 *
 * A link to a site that this process holds goes to that site's queue at once; any other
 * waits in the outbox and becomes a seed of its site in the dispenser. Where that site's visit is over (the
 * locally isolated page), it is opened again when the run has nothing else to do.
 */
#include "crawl/worker.h"
#include "base/hash.h"
#include "base/mem.h"

enum { OUTBOX_BATCH = 4096, OUTBOX_MEMORY = 1 << 20 };

struct wb_outbox_entry {
    size_t name_at, name_len, url_at, url_len; /* in the outbox's text */
    uint16_t depth;
    bool https;
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

static int outbox_add(struct wb_worker *w, struct wb_slice name, const struct wb_url *url, uint16_t depth)
{
    struct wb_outbox *box = &w->outbox;
    struct wb_slice href = wb_url_href(url);
    struct wb_outbox_entry entry = {.name_at = box->text.len, .name_len = name.len, .depth = depth};

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
    struct wb_site *other = wb_worker_site(w, name);
    if (other && !other->guest)
        return admit_neighbour(w, other, &w->target, item->depth);
    return outbox_add(w, name, &w->target, item->depth);
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
                                         .goes_on = w->plan->goes_on};
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

/* ---- links of a page, for the journal ------------------------------------------------------------ */

static bool is_followed(const struct wb_link *link)
{
    switch (link->tag) {
    case WB_LINK_A:
    case WB_LINK_AREA:
    case WB_LINK_IFRAME:
    case WB_LINK_FRAME:
    case WB_LINK_META:
    case WB_LINK_FEED:
    case WB_LINK_SITEMAP:
        return true;
    case WB_LINK_LINK:
        return link->rels & WB_REL_CANONICAL;
    default:
        return false;
    }
}

/* Room for the links of a page, and for a table of them of twice as many slots. */
static int grow_links(struct wb_worker *w, size_t count)
{
    size_t cap = 256;

    if (count <= w->link_cap)
        return 0;
    while (cap < count)
        cap *= 2;
    struct wb_edit_link *links = wb_realloc(w->links, cap * sizeof *links);
    w->links = links ? links : w->links;
    struct wb_link_slot *slots = links ? wb_realloc(w->link_slots, 2 * cap * sizeof *slots) : NULL;
    if (!slots)
        return WB_E_NOMEM;
    memset(slots, 0, 2 * cap * sizeof *slots);
    w->link_slots = slots;
    w->link_cap = cap;
    return 0;
}

/* The link of this page that leads to url, or the slot for a new one. Slots of earlier pages have another stamp. */
static struct wb_link_slot *find_link(struct wb_worker *w, struct wb_slice url)
{
    uint64_t hash = wb_hash64(url.ptr, url.len);

    for (size_t i = hash;; i++) {
        struct wb_link_slot *slot = &w->link_slots[i & (2 * w->link_cap - 1)];
        if (slot->stamp != w->link_stamp) {
            *slot = (struct wb_link_slot){.hash = (uint32_t)(hash >> 32), .stamp = w->link_stamp, .at = UINT32_MAX};
            return slot;
        }
        if (slot->hash == (uint32_t)(hash >> 32) && wb_slice_equal(w->links[slot->at].url, url))
            return slot;
    }
}

/* A page that links twice to another has one link there: with the first words, and to be followed where one of them is. */
static void merge_link(struct wb_edit_link *link, const struct wb_edit_link *again)
{
    bool followed = (again->flags & (WB_EDIT_LINK_FOLLOW | WB_EDIT_LINK_NOFOLLOW)) == WB_EDIT_LINK_FOLLOW;

    if (!link->anchor.len)
        link->anchor = again->anchor;
    if (followed && link->flags != again->flags) {
        link->flags = again->flags;
        link->tag = again->tag;
    }
}

int wb_links_collect(struct wb_worker *w, const struct wb_extract *extract, bool nofollow, size_t *count_out)
{
    size_t count = 0;
    int err = grow_links(w, extract->link_count);

    *count_out = 0;
    if (err < 0)
        return err;
    w->link_stamp++;
    for (size_t i = 0; i < extract->link_count; i++) {
        const struct wb_link *link = &extract->links[i];
        struct wb_slice url = link->url;
        if (!wb_slice_starts(url, WB_SLICE_LIT("http:")) && !wb_slice_starts(url, WB_SLICE_LIT("https:")))
            continue;
        const char *hash = memchr(url.ptr, '#', url.len);
        if (hash)
            url.len = (size_t)(hash - url.ptr);
        unsigned flags = is_followed(link) ? WB_EDIT_LINK_FOLLOW : 0;
        if (nofollow || link->rels & WB_REL_NOFOLLOW)
            flags |= WB_EDIT_LINK_NOFOLLOW;
        struct wb_edit_link entry = {.url = url, .anchor = link->anchor, .flags = (uint8_t)flags,
                                     .tag = link->rels & WB_REL_INDEX ? WB_EDIT_TAG_SITEMAP : link->tag, .modified_ms = link->modified_ms};
        struct wb_link_slot *slot = find_link(w, url);
        if (slot->at != UINT32_MAX) {
            merge_link(&w->links[slot->at], &entry);
            continue;
        }
        slot->at = (uint32_t)count;
        w->links[count++] = entry;
    }
    *count_out = count;
    return 0;
}
