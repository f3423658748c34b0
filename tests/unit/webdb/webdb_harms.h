/* webdb_harms.h - ways to make the tables of an edition disagree, and the problem that each must be reported as. */
#ifndef WB_TESTS_WEBDB_HARMS_H
#define WB_TESTS_WEBDB_HARMS_H

#include "webdb_support.h"

/* The first page with content. */
static struct wb_webdb_page *page_with_content(struct parts *parts)
{
    for (size_t i = 0; i < parts->page_count; i++) {
        if (parts->pages[i].has_content)
            return &parts->pages[i];
    }
    fail();
    return NULL;
}

static void harm_row_md5(struct parts *parts)
{
    page_with_content(parts)->md5[3] ^= 1;
}

static void harm_row_content_lost(struct parts *parts)
{
    struct wb_webdb_page *page = page_with_content(parts);

    page->has_content = false;
    page->flags |= WB_PAGE_LOADED; /* otherwise the count of fetched pages would differ too */
}

static void harm_entry_page(struct parts *parts)
{
    uint64_t page = wb_get64_be(parts->contents[4].page);

    wb_put64_be(parts->contents[4].page, page ? page - 1 : page + 1);
}

static void harm_entry_page_beyond(struct parts *parts)
{
    wb_put64_be(parts->contents[4].page, parts->page_count);
}

static void harm_entry_lost(struct parts *parts)
{
    parts->content_count--;
}

static void harm_entry_twice(struct parts *parts)
{
    parts->contents[parts->content_count] = parts->contents[parts->content_count - 1];
    parts->content_count++;
}

static void harm_entry_order(struct parts *parts)
{
    struct wb_content held = parts->contents[2];

    parts->contents[2] = parts->contents[3];
    parts->contents[3] = held;
}

static void harm_out_lost(struct parts *parts)
{
    parts->out_count--;
}

static void harm_in_lost(struct parts *parts)
{
    parts->degrees[parts->in[parts->in_count - 1].owner]--;
    parts->in_count--;
    parts->manifest.count.links--;
}

static void harm_out_tag(struct parts *parts)
{
    parts->out[9].tag ^= 4;
}

static void harm_in_flags(struct parts *parts)
{
    parts->in[9].flags ^= 4;
}

static void harm_in_anchor(struct parts *parts)
{
    memcpy(parts->in[9].anchor, "??????????????????????????????", 30);
    parts->in[9].anchor_len = 30;
}

/* A link by MD5 leads to the next page; links by URL do not know of it. */
static void harm_out_target(struct parts *parts)
{
    for (size_t i = 0; i + 1 < parts->out_count; i++) {
        struct part_link *link = &parts->out[i];
        if (link->number + 1 < parts->page_count &&
            (link[1].owner != link->owner || link[1].number > link->number + 1)) {
            link->number++;
            return;
        }
    }
    fail();
}

static void harm_out_target_beyond(struct parts *parts)
{
    parts->out[parts->out_count - 1].number = parts->page_count;
}

static void harm_out_owner_beyond(struct parts *parts)
{
    parts->out[parts->out_count - 1].owner = parts->content_count;
}

/* The second entry of a content does not name it. */
static void harm_out_owner_copy(struct parts *parts)
{
    for (size_t i = 1; i < parts->content_count; i++) {
        if (content_of_entry(parts, i) == i)
            continue;
        for (size_t j = 0; j < parts->out_count; j++) {
            if (parts->out[j].owner == content_of_entry(parts, i)) {
                for (; parts->out[j].owner == content_of_entry(parts, i); j++)
                    parts->out[j].owner = i;
                return;
            }
        }
    }
    fail();
}

static void harm_in_owner_beyond(struct parts *parts)
{
    parts->in[parts->in_count - 1].owner = parts->page_count;
}

static void harm_in_source_beyond(struct parts *parts)
{
    parts->in[parts->in_count - 1].number = parts->content_count;
}

static void harm_in_source_copy(struct parts *parts)
{
    for (size_t i = 0; i < parts->in_count; i++) {
        uint64_t next = parts->in[i].number + 1;
        if (next < parts->content_count && content_of_entry(parts, next) != next &&
            (i + 1 == parts->in_count || parts->in[i + 1].owner != parts->in[i].owner ||
             parts->in[i + 1].number > next)) {
            parts->in[i].number = next;
            return;
        }
    }
    fail();
}

static void harm_degree(struct parts *parts)
{
    parts->degrees[parts->in[0].owner]++;
}

static void harm_degree_of_none(struct parts *parts)
{
    for (size_t i = 0; i < parts->page_count; i++) {
        if (parts->degrees[i] == 0) {
            parts->degrees[i] = 1;
            return;
        }
    }
    fail();
}

static void harm_degree_last(struct parts *parts)
{
    parts->degrees[parts->page_count - 1] += 2;
}

static void harm_degrees_short(struct parts *parts)
{
    parts->degree_count--;
}

static void harm_near_later(struct parts *parts)
{
    for (size_t i = 0; i + 1 < parts->page_count; i++)
        parts->near[i] = parts->pages[i].has_content ? (uint32_t)i + 1 : UINT32_MAX;
}

static void harm_near_without_content(struct parts *parts)
{
    size_t at = 1;

    while (at + 1 < parts->page_count && parts->pages[at].has_content)
        at++;
    parts->near[at] = 0;
}

static void harm_near_short(struct parts *parts)
{
    parts->near_count--;
}

static void harm_kind(struct parts *parts)
{
    parts->kinds[parts->page_count - 1] ^= WB_IS_PAGE;
}

static void harm_kinds_short(struct parts *parts)
{
    parts->kind_count--;
}

static void harm_id_page(struct parts *parts)
{
    parts->ids[0].page[3] ^= 1;
}

static void harm_id_lost(struct parts *parts)
{
    parts->id_count--;
}

static void harm_id_order(struct parts *parts)
{
    struct wb_stored_id held = parts->ids[2];

    parts->ids[2] = parts->ids[3];
    parts->ids[3] = held;
}

static void harm_rules(struct parts *parts)
{
    parts->rules_key = WB_SLICE_LIT("12345678");
    parts->rules_row = WB_SLICE_LIT("no rules");
}

static void harm_rules_site(struct parts *parts)
{
    parts->rules_key = WB_SLICE_LIT("site");
    parts->rules_row = wb_slice("\1\0\0\0\0\0\0\0\2\0\0\0\0\0\0\0\xc8\0", 18);
}

static void harm_site_lost(struct parts *parts)
{
    memmove(&parts->sites[1], &parts->sites[2], (parts->site_count - 2) * sizeof *parts->sites);
    parts->site_count--;
    parts->manifest.count.sites--;
}

static void harm_site_last_lost(struct parts *parts)
{
    parts->site_count--;
    parts->manifest.count.sites--;
}

static void harm_site_too_many(struct parts *parts)
{
    snprintf(parts->sites[parts->site_count].surt, sizeof parts->sites[0].surt, "zz,nowhere)");
    parts->sites[parts->site_count++].sum.pages = 1;
    parts->manifest.count.sites++;
}

static void harm_site_before(struct parts *parts)
{
    memmove(&parts->sites[1], &parts->sites[0], parts->site_count * sizeof *parts->sites);
    snprintf(parts->sites[0].surt, sizeof parts->sites[0].surt, "aa,nowhere)");
    parts->site_count++;
    parts->manifest.count.sites++;
}

static void harm_site_pages(struct parts *parts)
{
    parts->sites[1].sum.pages++;
}

static void harm_site_fetched(struct parts *parts)
{
    parts->sites[1].sum.fetched--;
}

static void harm_site_visits(struct parts *parts)
{
    parts->sites[1].sum.visits++;
}

static void harm_site_changes(struct parts *parts)
{
    parts->sites[1].sum.changes++;
}

static void harm_site_days(struct parts *parts)
{
    parts->sites[1].sum.days += 0.001;
}

static void harm_row_url(struct parts *parts)
{
    wb_free((void *)(uintptr_t)parts->pages[5].url.ptr);
    parts->pages[5].url = wb_slice(wb_strdup("http://other.example/"), 21);
}

static void harm_piece(struct parts *parts)
{
    parts->skip_piece = true;
}

static void harm_rows(struct parts *parts)
{
    parts->manifest.rows++;
}

static void harm_pages(struct parts *parts)
{
    parts->manifest.count.pages--;
}

static void harm_fetched(struct parts *parts)
{
    parts->manifest.count.fetched--;
}

static void harm_links(struct parts *parts)
{
    parts->manifest.count.links++;
}

static void harm_contents(struct parts *parts)
{
    parts->manifest.count.contents++;
}

static void harm_sites(struct parts *parts)
{
    parts->manifest.count.sites++;
}

static void harm_bytes(struct parts *parts)
{
    parts->bytes_off = 1;
}

static void harm_link_bytes(struct parts *parts)
{
    parts->link_bytes_off = 1;
}

static void harm_edition(struct parts *parts)
{
    parts->manifest.count.edition = 2;
}

static void harm_entries_many(struct parts *parts)
{
    size_t count = parts->page_count + 1;

    parts->contents = wb_realloc(parts->contents, count * sizeof *parts->contents);
    for (; parts->content_count < count; parts->content_count++) {
        parts->contents[parts->content_count] = parts->contents[parts->content_count - 1];
        parts->contents[parts->content_count].page[0]++;
    }
}

static void harm_key(struct parts *parts)
{
    parts->last_key = wb_slice("\xff\xff\xff\xff\xff\xff\xff\xff\xff", 9);
    parts->last_value = WB_SLICE_LIT("\x03\x11\x00\x07");
}

static void harm_list(struct parts *parts)
{
    parts->last_key = wb_slice("\xff\xff\xff\xff\xff\xff\xff\xff", 8);
    parts->last_value = WB_SLICE_LIT("\x03\x11\x00");
}

/* Exchanges the first two pieces of a list. */
static void harm_piece_order(struct parts *parts)
{
    struct part_link held[7];

    for (size_t i = 0; i + 14 <= parts->in_count; i++) {
        struct part_link *first = &parts->in[i];
        if ((i && first[-1].owner == first->owner) || first[13].owner != first->owner)
            continue;
        memcpy(held, first, sizeof held);
        memcpy(first, first + 7, sizeof held);
        memcpy(first + 7, held, sizeof held);
        return;
    }
    fail();
}

/* What is harmed, and in which file and with which words it is reported. */
static const struct {
    const char *name, *file, *words;
    void (*harm)(struct parts *parts);
} harms[] = {
    {"the content of a row", WB_CONTENTS_FILE, "do not match the contents", harm_row_md5},
    {"a row without its content", WB_CONTENTS_FILE, "pages have content", harm_row_content_lost},
    {"the page of an entry", WB_CONTENTS_FILE, "do not match the contents", harm_entry_page},
    {"the page of an entry, beyond the last", WB_CONTENTS_FILE, "page 60, which does not exist",
     harm_entry_page_beyond},
    {"an entry missing", WB_CONTENTS_FILE, "pages have content", harm_entry_lost},
    {"an entry twice", WB_CONTENTS_FILE, "not in order", harm_entry_twice},
    {"entries out of order", WB_CONTENTS_FILE, "not in order", harm_entry_order},
    {"a link missing by MD5", WB_INLINKS_FILE, "links by MD5", harm_out_lost},
    {"a link missing by URL", WB_INLINKS_FILE, "links by MD5", harm_in_lost},
    {"a tag", WB_INLINKS_FILE, "not the same as the links by MD5", harm_out_tag},
    {"flags", WB_INLINKS_FILE, "not the same as the links by MD5", harm_in_flags},
    {"an anchor", WB_INLINKS_FILE, "not the same as the links by MD5", harm_in_anchor},
    {"a target", WB_INLINKS_FILE, "not the same as the links by MD5", harm_out_target},
    {"a target beyond the last", WB_OUTLINKS_FILE, "a link leads to page 60", harm_out_target_beyond},
    {"links from beyond the last content", WB_OUTLINKS_FILE, "links from content", harm_out_owner_beyond},
    {"links from the copy of a content", WB_OUTLINKS_FILE, "links from content", harm_out_owner_copy},
    {"links to beyond the last page", WB_INLINKS_FILE, "links to page 60", harm_in_owner_beyond},
    {"a source beyond the last content", WB_INLINKS_FILE, "a link comes from content", harm_in_source_beyond},
    {"a source that is a copy", WB_INLINKS_FILE, "a link comes from content", harm_in_source_copy},
    {"a degree", WB_DEGREES_FILE, "links to page", harm_degree},
    {"a degree of a page without links", WB_DEGREES_FILE, "which has 0", harm_degree_of_none},
    {"the last degree", WB_DEGREES_FILE, "links to page 59", harm_degree_last},
    {"a degree missing", WB_DEGREES_FILE, "59 entries for 60", harm_degrees_short},
    {"near a page that comes later", WB_NEAR_FILE, "cannot be near page", harm_near_later},
    {"near, without content", WB_NEAR_FILE, "cannot be near page 0", harm_near_without_content},
    {"an entry of near pages missing", WB_NEAR_FILE, "59 entries for 60", harm_near_short},
    {"a kind", WB_KINDS_FILE, "row 59 is of another kind", harm_kind},
    {"a kind missing", WB_KINDS_FILE, "59 entries for 60", harm_kinds_short},
    {"the page of an id", WB_IDS_FILE, "do not match the pages", harm_id_page},
    {"an id missing", WB_IDS_FILE, "do not match the pages", harm_id_lost},
    {"ids out of order", WB_IDS_FILE, "not in order", harm_id_order},
    {"a robots.txt", WB_RULES_FILE, "is damaged", harm_rules},
    {"the site of a robots.txt", WB_RULES_FILE, "has an invalid key", harm_rules_site},
    {"a site missing", WB_SITES_FILE, "is missing", harm_site_lost},
    {"the last site missing", WB_SITES_FILE, "is missing", harm_site_last_lost},
    {"a site too many", WB_SITES_FILE, "zz,nowhere) has no pages", harm_site_too_many},
    {"a site too many, before all", WB_SITES_FILE, "aa,nowhere) has no pages", harm_site_before},
    {"pages of a site", WB_SITES_FILE, "the sums of", harm_site_pages},
    {"fetched pages of a site", WB_SITES_FILE, "the sums of", harm_site_fetched},
    {"visits of a site", WB_SITES_FILE, "the sums of", harm_site_visits},
    {"changes of a site", WB_SITES_FILE, "the sums of", harm_site_changes},
    {"days of a site", WB_SITES_FILE, "the sums of", harm_site_days},
    {"a URL in the wrong place", WB_PAGES_FILE, "does not belong there", harm_row_url},
    {"a piece missing by MD5 or URL", WB_INLINKS_FILE, "has a missing piece", harm_piece},
    {"rows", WB_PAGES_FILE, "60 rows, but the manifest says 61", harm_rows},
    {"pages", WB_MANIFEST_FILE, " pages, but", harm_pages},
    {"fetched pages", WB_MANIFEST_FILE, " fetched pages, but", harm_fetched},
    {"links", WB_MANIFEST_FILE, " links, but", harm_links},
    {"contents", WB_MANIFEST_FILE, " contents, but", harm_contents},
    {"sites", WB_MANIFEST_FILE, " sites, but", harm_sites},
    {"bytes", WB_MANIFEST_FILE, " bytes, but", harm_bytes},
    {"bytes of links", WB_MANIFEST_FILE, " bytes of links, but", harm_link_bytes},
    {"edition", WB_MANIFEST_FILE, "edition 2", harm_edition},
    {"more entries than rows", WB_CONTENTS_FILE, "entries for 60 rows", harm_entries_many},
    {"an invalid key", WB_INLINKS_FILE, "has an invalid key", harm_key},
    {"a damaged list", WB_INLINKS_FILE, "is damaged", harm_list},
    {"pieces of a list out of order", WB_INLINKS_FILE, "is not in order", harm_piece_order},
};

#endif
