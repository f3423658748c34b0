/*
 * factfinder.c - finds what is remembered of the content of a page. Crawls and imports share it, so that both record
 * the same facts about the same bytes.
 *
 * It extracts a page once, takes its fingerprints, and collects its links: only http and https, without fragments, each
 * target once. It decides nothing: neither what becomes of the page, nor which links are followed.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "extract/extract.h"

/*
 * One place of the hash table that finds links by their target. Not base/map.h: the stamp empties the table in no
 * time for the next page, however large an earlier page made it.
 */
struct wb_link_slot {
    uint32_t hash;  /* the upper half */
    uint32_t stamp; /* of the page that it was filled for; if it is not the current one, the slot is free */
    uint32_t at;    /* in links; UINT32_MAX: not filled in yet */
};

int wb_factfinder_init(struct wb_factfinder *finder)
{
    *finder = WB_FACTFINDER_INIT;
    return wb_extractor_new(&finder->extractor);
}

void wb_factfinder_release(struct wb_factfinder *finder)
{
    wb_extractor_free(finder->extractor);
    wb_free(finder->links);
    wb_free(finder->slots);
    *finder = WB_FACTFINDER_INIT;
}

/* ---- links ------------------------------------------------------------------------------------------ */

static bool is_followed(const struct wb_extract_link *link)
{
    return wb_extract_leads_on(link->tag) ||
           (link->tag == WB_EXTRACT_LINK_LINK && link->rels & WB_EXTRACT_REL_CANONICAL);
}

/*
 * Makes room for the links of a page, and for twice as many slots, which must be a power of two. Not wb_grow(): both
 * arrays grow together, or link_cap stays as it is.
 */
static int grow_links(struct wb_factfinder *finder, size_t count)
{
    size_t cap = 256;

    WB_CHECK(count <= WB_EXTRACT_LINKS_MAX); /* so that a slot can number them */
    if (count <= finder->link_cap)
        return 0;
    while (cap < count)
        cap *= 2;
    struct wb_pagelink *links = wb_realloc(finder->links, cap * sizeof *links);
    finder->links = links ? links : finder->links;
    struct wb_link_slot *slots = links ? wb_realloc(finder->slots, 2 * cap * sizeof *slots) : NULL;
    if (!slots)
        return WB_E_NOMEM;
    memset(slots, 0, 2 * cap * sizeof *slots);
    finder->slots = slots;
    finder->link_cap = cap;
    return 0;
}

/*
 * Finds the slot of the link of this page that leads to url, or a free slot for it. At least half of the slots are
 * free.
 */
static struct wb_link_slot *find_link(struct wb_factfinder *finder, struct wb_slice url)
{
    uint64_t hash = wb_hash64(url.ptr, url.len);

    WB_CHECK(finder->slots && (finder->link_cap & (finder->link_cap - 1)) == 0);
    for (size_t i = hash;; i++) {
        struct wb_link_slot *slot = &finder->slots[i & (2 * finder->link_cap - 1)];
        if (slot->stamp != finder->stamp) {
            *slot = (struct wb_link_slot){.hash = (uint32_t)(hash >> 32), .stamp = finder->stamp, .at = UINT32_MAX};
            return slot;
        }
        if (slot->hash == (uint32_t)(hash >> 32) && wb_slice_equal(finder->links[slot->at].url, url))
            return slot;
    }
}

/*
 * A page that links twice to another has one link there: with the first anchor text, and followed if either of them
 * is. needs: if either of them is something that the page needs, the tag says so.
 */
static void merge_link(struct wb_pagelink *link, const struct wb_pagelink *again, bool needs)
{
    bool followed = (again->flags & (WB_PAGELINK_FOLLOW | WB_PAGELINK_NOFOLLOW)) == WB_PAGELINK_FOLLOW;

    WB_CHECK(link->url.len == again->url.len);
    if (!link->anchor.len)
        link->anchor = again->anchor;
    if (followed && link->flags != again->flags) {
        link->flags = again->flags;
        if (!needs || !wb_extract_need(link->tag))
            link->tag = again->tag;
    } else if (needs && !wb_extract_need(link->tag) && wb_extract_need(again->tag)) {
        link->tag = again->tag;
    }
}

int wb_factfinder_links(struct wb_factfinder *finder, const struct wb_extract *extract, bool nofollow,
                        const struct wb_pagelink **links_out, size_t *count_out)
{
    size_t count = 0;

    *links_out = NULL;
    *count_out = 0;
    int err = grow_links(finder, extract->link_count);
    if (err < 0)
        return err;
    finder->stamp++;
    for (size_t i = 0; i < extract->link_count; i++) {
        const struct wb_extract_link *link = &extract->links[i];
        struct wb_slice url = link->url;
        if (!wb_slice_starts(url, WB_SLICE_LIT("http:")) && !wb_slice_starts(url, WB_SLICE_LIT("https:")))
            continue;
        const char *hash = memchr(url.ptr, '#', url.len);
        if (hash)
            url.len = (size_t)(hash - url.ptr);
        unsigned flags = is_followed(link) ? WB_PAGELINK_FOLLOW : 0;
        if (nofollow || link->rels & WB_EXTRACT_REL_NOFOLLOW)
            flags |= WB_PAGELINK_NOFOLLOW;
        struct wb_pagelink entry = {
            .url = url,
            .anchor = link->anchor,
            .tag = link->rels & WB_EXTRACT_REL_INDEX ? WB_PAGELINK_TAG_SITEMAP : link->tag,
            .flags = (uint8_t)flags,
            .modified_ms = link->modified_ms,
        };
        struct wb_link_slot *slot = find_link(finder, url);
        if (slot->at != UINT32_MAX) {
            merge_link(&finder->links[slot->at], &entry, finder->needs);
            continue;
        }
        slot->at = (uint32_t)count;
        finder->links[count++] = entry;
    }
    *links_out = finder->links;
    *count_out = count;
    return 0;
}

/* Keeps the first links, as many as are allowed, and all that the page needs to be displayed if that is asked for. */
static size_t limit_links(struct wb_factfinder *finder, size_t count)
{
    size_t kept = 0, links = 0;

    WB_CHECK(count <= finder->link_cap);
    for (size_t i = 0; i < count; i++) {
        bool need = finder->needs && wb_extract_need(finder->links[i].tag);
        links += !need;
        if (need || links <= finder->links_max)
            finder->links[kept++] = finder->links[i];
    }
    return kept;
}

/* ---- a page ------------------------------------------------------------------------------------------- */

int wb_factfinder_read(struct wb_factfinder *finder, const struct wb_page *page, struct wb_slice agent, unsigned wants,
                       struct wb_pagefacts *facts_out, struct wb_extract *extract_out)
{
    struct wb_extract_input input = {.url = page->url, .type = page->type, .charset = page->charset, .body = page->body,
                                     .wants = wants | WB_EXTRACT_TEXT | WB_EXTRACT_SIMHASH};

    WB_CHECK(finder->extractor);
    WB_CHECK(wants == 0 || wants & WB_EXTRACT_LINKS);
    *facts_out = (struct wb_pagefacts){.links = NULL};
    finder->needs = wants & WB_EXTRACT_NEEDS;
    int err = wb_extract(finder->extractor, &input, extract_out);
    if (err < 0)
        return err;
    struct wb_slice title = extract_out->title;
    facts_out->simhash = extract_out->simhash;
    facts_out->title_hash = title.len ? wb_hash64(title.ptr, title.len) : 0;
    if (!(wants & WB_EXTRACT_LINKS))
        return 0;
    unsigned robots = extract_out->robots_flags | wb_robotstag_of_head(page->head, agent);
    err = wb_factfinder_links(finder, extract_out, robots & WB_ROBOTSTAG_NOFOLLOW, &facts_out->links,
                              &facts_out->link_count);
    if (err == 0 && finder->links_max)
        facts_out->link_count = limit_links(finder, facts_out->link_count);
    return err;
}
