/*
 * pagefacts.c - makes the part of a PAGE record that describes the page's content. Crawls and imports share it, so
 * that both record the same facts about the same bytes.
 *
 * It extracts a page once, takes its fingerprints and validators, and collects its links: only http and https, without
 * fragments, each target once. It decides nothing: neither the outcome, nor which links are followed.
 */
#include "journal/journal.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"

#define VALIDATOR_MAX 1024

/*
 * One place of the hash table that finds links by their target. Not base/map.h: the stamp empties the table in no
 * time for the next page, however large an earlier page made it.
 */
struct wb_link_slot {
    uint32_t hash;  /* the upper half */
    uint32_t stamp; /* of the page that it was filled for; if it is not the current one, the slot is free */
    uint32_t at;    /* in links; UINT32_MAX: not filled in yet */
};

int wb_pagefacts_init(struct wb_pagefacts *facts)
{
    *facts = WB_PAGEFACTS_INIT;
    return wb_extractor_new(&facts->extractor);
}

void wb_pagefacts_release(struct wb_pagefacts *facts)
{
    WB_CHECK(facts->links || facts->link_cap == 0);
    wb_extractor_free(facts->extractor);
    wb_free(facts->links);
    wb_free(facts->slots);
    *facts = WB_PAGEFACTS_INIT;
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
static int grow_links(struct wb_pagefacts *facts, size_t count)
{
    size_t cap = 256;

    WB_CHECK((facts->link_cap & (facts->link_cap - 1)) == 0);
    if (count <= facts->link_cap)
        return 0;
    while (cap < count)
        cap *= 2;
    struct wb_edit_link *links = wb_realloc(facts->links, cap * sizeof *links);
    facts->links = links ? links : facts->links;
    struct wb_link_slot *slots = links ? wb_realloc(facts->slots, 2 * cap * sizeof *slots) : NULL;
    if (!slots)
        return WB_E_NOMEM;
    memset(slots, 0, 2 * cap * sizeof *slots);
    facts->slots = slots;
    facts->link_cap = cap;
    WB_CHECK(cap >= count);
    WB_CHECK((cap & (cap - 1)) == 0);
    WB_CHECK(cap < UINT32_MAX);
    return 0;
}

/*
 * Finds the slot of the link of this page that leads to url, or a free slot for it. At least half of the slots are
 * free.
 */
static struct wb_link_slot *find_link(struct wb_pagefacts *facts, struct wb_slice url)
{
    uint64_t hash = wb_hash64(url.ptr, url.len);

    WB_CHECK(facts->link_cap > 0);
    WB_CHECK(facts->slots != NULL);
    for (size_t i = hash;; i++) {
        struct wb_link_slot *slot = &facts->slots[i & (2 * facts->link_cap - 1)];
        if (slot->stamp != facts->stamp) {
            *slot = (struct wb_link_slot){.hash = (uint32_t)(hash >> 32), .stamp = facts->stamp, .at = UINT32_MAX};
            return slot;
        }
        if (slot->hash == (uint32_t)(hash >> 32) && wb_slice_equal(facts->links[slot->at].url, url))
            return slot;
    }
}

/*
 * A page that links twice to another has one link there: with the first anchor text, and followed if either of them
 * is. needs: if either of them is something that the page needs, the tag says so.
 */
static void merge_link(struct wb_edit_link *link, const struct wb_edit_link *again, bool needs)
{
    bool followed = (again->flags & (WB_EDIT_LINK_FOLLOW | WB_EDIT_LINK_NOFOLLOW)) == WB_EDIT_LINK_FOLLOW;

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

int wb_pagefacts_links(struct wb_pagefacts *facts, const struct wb_extract *extract, bool nofollow, size_t *count_out)
{
    size_t count = 0;
    int err = grow_links(facts, extract->link_count);

    *count_out = 0;
    if (err < 0)
        return err;
    facts->stamp++;
    WB_CHECK(facts->link_cap >= extract->link_count);
    for (size_t i = 0; i < extract->link_count; i++) {
        const struct wb_extract_link *link = &extract->links[i];
        struct wb_slice url = link->url;
        if (!wb_slice_starts(url, WB_SLICE_LIT("http:")) && !wb_slice_starts(url, WB_SLICE_LIT("https:")))
            continue;
        const char *hash = memchr(url.ptr, '#', url.len);
        if (hash)
            url.len = (size_t)(hash - url.ptr);
        unsigned flags = is_followed(link) ? WB_EDIT_LINK_FOLLOW : 0;
        if (nofollow || link->rels & WB_EXTRACT_REL_NOFOLLOW)
            flags |= WB_EDIT_LINK_NOFOLLOW;
        struct wb_edit_link entry = {
            .url = url,
            .anchor = link->anchor,
            .tag = link->rels & WB_EXTRACT_REL_INDEX ? WB_EDIT_TAG_SITEMAP : link->tag,
            .flags = (uint8_t)flags,
            .modified_ms = link->modified_ms,
        };
        struct wb_link_slot *slot = find_link(facts, url);
        if (slot->at != UINT32_MAX) {
            merge_link(&facts->links[slot->at], &entry, facts->needs);
            continue;
        }
        slot->at = (uint32_t)count;
        facts->links[count++] = entry;
    }
    WB_CHECK(count <= extract->link_count);
    WB_CHECK(count == 0 || facts->links);
    *count_out = count;
    return 0;
}

/* ---- a page ------------------------------------------------------------------------------------------- */

/* A validator as received. One that is absurdly long is left out, not cut: half a validator is a wrong one. */
static struct wb_slice validator(struct wb_slice head, const char *name)
{
    struct wb_slice value;

    return wb_http_header(head, name, &value) && value.len <= VALIDATOR_MAX ? value : WB_SLICE_EMPTY;
}

int wb_pagefacts_read(struct wb_pagefacts *facts, const struct wb_page *page, struct wb_slice agent, unsigned wants,
                      struct wb_edit_page *edit, struct wb_extract *extract_out)
{
    struct wb_extract_input input = {.url = page->url, .type = page->type, .charset = page->charset, .body = page->body,
                                      .wants = wants | WB_EXTRACT_TEXT | WB_EXTRACT_SIMHASH};
    size_t count = 0;

    WB_CHECK(page->digested);
    WB_CHECK(facts->extractor);
    WB_CHECK(wants == 0 || wants & WB_EXTRACT_LINKS);
    facts->needs = wants & WB_EXTRACT_NEEDS;
    int err = wb_extract(facts->extractor, &input, extract_out);
    if (err < 0)
        return err;
    unsigned robots = extract_out->robots_flags | wb_robotstag_of_head(page->head, agent);
    if (wants & WB_EXTRACT_LINKS)
        err = wb_pagefacts_links(facts, extract_out, robots & WB_ROBOTSTAG_NOFOLLOW, &count);
    WB_CHECK(count == 0 || wants & WB_EXTRACT_LINKS);
    WB_CHECK(page->url.len > 0);
    edit->links = facts->links;
    edit->link_count = count;
    edit->has_content = true;
    memcpy(edit->md5, page->md5, WB_MD5_BYTES);
    edit->simhash = extract_out->simhash;
    edit->title_hash = extract_out->title.len ? wb_hash64(extract_out->title.ptr, extract_out->title.len) : 0;
    edit->type = page->type;
    edit->etag = validator(page->head, "etag");
    edit->modified = validator(page->head, "last-modified");
    return err;
}

int wb_pagefacts_location(struct wb_slice head, struct wb_slice url, struct wb_url *base, struct wb_url *url_out,
                          struct wb_slice *location_out)
{
    struct wb_slice header;

    *location_out = WB_SLICE_EMPTY;
    if (!wb_http_header(head, "location", &header))
        return wb_fail(WB_E_PROTO, "a redirect without Location");
    int err = wb_url_parse(url, NULL, base);
    if (err == 0)
        err = wb_url_parse(header, base, url_out);
    if (err == WB_E_NOMEM)
        return err;
    if (err < 0 || !wb_url_is_http(url_out))
        return wb_fail(WB_E_PROTO, "a redirect whose Location is not an http or https URL");
    *location_out = wb_url_href(url_out);
    WB_CHECK(location_out->len > 0);
    if (url_out->has_fragment) {
        WB_CHECK(url_out->fragment_at > 0);
        WB_CHECK(url_out->fragment_at <= location_out->len);
        location_out->len = url_out->fragment_at - 1;
    }
    return 0;
}
