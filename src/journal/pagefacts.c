/*
 * pagefacts.c - what the journal is told of a page that has content.
 *
 * Extracts a page once, takes over its fingerprints and validators, and gathers its links: only those of http and
 * https, without their fragments, each target once. It decides nothing: not the outcome, not which links are followed.
 */
#include "journal/journal.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"

#define VALIDATOR_MAX 1024

struct wb_link_slot {
    uint32_t hash, stamp, at;
};

int wb_pagefacts_init(struct wb_pagefacts *facts)
{
    *facts = WB_PAGEFACTS_INIT;
    return wb_extractor_new(&facts->extractor);
}

void wb_pagefacts_release(struct wb_pagefacts *facts)
{
    wb_extractor_free(facts->extractor);
    wb_free(facts->links);
    wb_free(facts->slots);
    *facts = WB_PAGEFACTS_INIT;
}

/* ---- links ------------------------------------------------------------------------------------------ */

static bool is_followed(const struct wb_extract_link *link)
{
    switch (link->tag) {
    case WB_EXTRACT_LINK_A:
    case WB_EXTRACT_LINK_AREA:
    case WB_EXTRACT_LINK_IFRAME:
    case WB_EXTRACT_LINK_FRAME:
    case WB_EXTRACT_LINK_META:
    case WB_EXTRACT_LINK_FEED:
    case WB_EXTRACT_LINK_SITEMAP:
        return true;
    case WB_EXTRACT_LINK_LINK:
        return link->rels & WB_EXTRACT_REL_CANONICAL;
    default:
        return false;
    }
}

/* Room for the links of a page, and for a table of them of twice as many slots. */
static int grow_links(struct wb_pagefacts *facts, size_t count)
{
    size_t cap = 256;

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
    return 0;
}

/* The link of this page that leads to url, or the slot for a new one. Slots of earlier pages have another stamp. */
static struct wb_link_slot *find_link(struct wb_pagefacts *facts, struct wb_slice url)
{
    uint64_t hash = wb_hash64(url.ptr, url.len);

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

int wb_pagefacts_links(struct wb_pagefacts *facts, const struct wb_extract *extract, bool nofollow, size_t *count_out)
{
    size_t count = 0;
    int err = grow_links(facts, extract->link_count);

    *count_out = 0;
    if (err < 0)
        return err;
    facts->stamp++;
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
        struct wb_edit_link entry = {.url = url, .anchor = link->anchor, .flags = (uint8_t)flags,
                                     .tag = link->rels & WB_EXTRACT_REL_INDEX ? WB_EDIT_TAG_SITEMAP : link->tag, .modified_ms = link->modified_ms};
        struct wb_link_slot *slot = find_link(facts, url);
        if (slot->at != UINT32_MAX) {
            merge_link(&facts->links[slot->at], &entry);
            continue;
        }
        slot->at = (uint32_t)count;
        facts->links[count++] = entry;
    }
    *count_out = count;
    return 0;
}

/* ---- a page ------------------------------------------------------------------------------------------- */

/* A validator as received. One that no server means is left out: half of it would be another one. */
static struct wb_slice validator(struct wb_slice head, const char *name)
{
    struct wb_slice value;

    return wb_http_header(head, name, &value) && value.len <= VALIDATOR_MAX ? value : WB_SLICE_EMPTY;
}

int wb_pagefacts_read(struct wb_pagefacts *facts, const struct wb_page *page, struct wb_slice agent, unsigned wants, struct wb_edit_page *edit,
                      struct wb_extract *extract_out)
{
    struct wb_extract_input input = {.url = page->url, .type = page->type, .charset = page->charset, .body = page->body,
                                      .wants = wants | WB_EXTRACT_TEXT | WB_EXTRACT_SIMHASH};
    size_t count = 0;

    WB_CHECK(page->digested);
    int err = wb_extract(facts->extractor, &input, extract_out);
    if (err < 0)
        return err;
    unsigned robots = extract_out->robots_flags | wb_robotstag_of_head(page->head, agent);
    if (wants & WB_EXTRACT_LINKS)
        err = wb_pagefacts_links(facts, extract_out, robots & WB_ROBOTSTAG_NOFOLLOW, &count);
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
        return wb_fail(WB_E_PROTO, "a redirect to what is no URL");
    *location_out = wb_url_href(url_out);
    if (url_out->has_fragment)
        location_out->len = url_out->fragment_at - 1;
    return 0;
}
