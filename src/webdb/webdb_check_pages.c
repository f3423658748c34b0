/*
 * webdb_check_pages.c - checks that pages by URL, MD5 and id, kinds and sites agree; and the rows of robots.txt.
 *
 * The rows of pages and the sites are read side by side. Every URL must have the SURT that its row is stored under, and
 * the sums of each site are computed again. The contents that rows name, as (MD5, page) pairs, must be the same set as
 * the entries of pages by MD5; and the same goes for the ids of pages that the store has.
 */
#include "base/bytes.h"
#include "base/hash.h"
#include "webdb/pagerow.h"
#include "webdb/rulesrow.h"
#include "webdb/sitesum.h"
#include "webdb/spelling.h"
#include "webdb/webdb_check.h"

#include <math.h>

/* The rows of pages while they are read. */
struct page_check {
    struct wb_webdb_check *check;
    struct wb_cursor *rows, *sites;
    struct wb_webdb_page page;
    struct wb_buf mem;
    struct wb_url url;
    struct wb_buf key, surt;
    struct wb_buf site;          /* the current site, as a SURT */
    struct wb_webdb_site sum;    /* over its pages so far */
    struct wb_table_record site_row; /* the next row of sites */
    bool site_more;              /* false at their end */
    struct wb_webdb_check_set contents, ids;
};

static void check_state(const struct page_check *w)
{
    WB_CHECK(w->check->found != NULL);
    WB_CHECK(w->check->webdb->magic == WB_WEBDB_MAGIC);
    WB_CHECK(w->rows != NULL);
    WB_CHECK(w->sites != NULL);
}

static uint64_t hash_content(const uint8_t md5[WB_MD5_BYTES], uint64_t page)
{
    struct wb_content entry;

    WB_CHECK(md5 != NULL);
    memcpy(entry.md5, md5, WB_MD5_BYTES);
    wb_put64_be(entry.page, page);
    return wb_hash64(&entry, sizeof entry);
}

static uint64_t hash_id(struct wb_pageid id, uint64_t page)
{
    struct wb_stored_id entry;

    WB_CHECK(page <= UINT32_MAX);
    wb_pageid_put(id, entry.id);
    wb_put32_be(entry.page, (uint32_t)page);
    return wb_hash64(&entry, sizeof entry);
}

/* ---- sites ----------------------------------------------------------------------------------- */

static int next_site(struct page_check *w)
{
    int more = wb_cursor_next(w->sites, &w->site_row);

    check_state(w);
    if (more > 0)
        w->check->seen.sites++;
    w->site_more = more > 0;
    return more < 0 && !wb_webdb_check_report_error(w->check, WB_CHECKED_SITES, more) ? more : 0;
}

static void compare_sums(struct page_check *w)
{
    struct wb_webdb_site told;
    int err = wb_sitesum_decode(w->site_row.value, &told);
    const struct wb_webdb_site *sum = &w->sum;

    check_state(w);
    WB_CHECK(w->site_more);
    if (wb_webdb_check_report_error(w->check, WB_CHECKED_SITES, err))
        return;
    /* The days are added up in the same order as in the merge, but the compiler may have reordered the additions. */
    bool same_days = fabs(told.days - sum->days) <= 1e-9 * (1 + fabs(sum->days));
    if (told.pages != sum->pages || told.fetched != sum->fetched || told.visits != sum->visits ||
        told.changes != sum->changes || !same_days)
        wb_webdb_check_report(w->check, WB_CHECKED_SITES, "the sums of %.*s are not those of its pages",
                              WB_SLICE_ARG(wb_buf_slice(&w->site)));
}

/* All pages of a site have been read: the next row of sites must be that of this site. */
static int end_site(struct page_check *w)
{
    struct wb_slice site = wb_buf_slice(&w->site);
    int err = 0;

    check_state(w);
    if (w->sum.pages == 0)
        return 0;
    WB_CHECK(w->sum.fetched <= w->sum.pages);
    while (err == 0 && w->site_more && wb_slice_compare(w->site_row.key, site) < 0) {
        wb_webdb_check_report(w->check, WB_CHECKED_SITES, "%.*s has no pages", WB_SLICE_ARG(w->site_row.key));
        err = next_site(w);
    }
    if (err < 0)
        return err;
    if (!w->site_more || wb_slice_compare(w->site_row.key, site) != 0) {
        wb_webdb_check_report(w->check, WB_CHECKED_SITES, "%.*s, which has pages, is missing", WB_SLICE_ARG(site));
        return 0;
    }
    compare_sums(w);
    return next_site(w);
}

static int enter_site(struct page_check *w, struct wb_slice surt)
{
    struct wb_slice site = wb_surt_site(surt);

    check_state(w);
    if (w->site.len && wb_slice_equal(site, wb_buf_slice(&w->site)))
        return 0;
    int err = end_site(w);
    w->sum = (struct wb_webdb_site){.name = WB_SLICE_EMPTY};
    wb_buf_clear(&w->site);
    return err < 0 ? err : wb_buf_append_slice(&w->site, site);
}

static int end_sites(struct page_check *w)
{
    int err = end_site(w);

    check_state(w);
    while (err == 0 && w->site_more) {
        wb_webdb_check_report(w->check, WB_CHECKED_SITES, "%.*s has no pages", WB_SLICE_ARG(w->site_row.key));
        err = next_site(w);
    }
    return err;
}

/* ---- rows ------------------------------------------------------------------------------------ */

/* Only a page with content can be near another page, and only near one that comes before it. */
static void check_near(struct page_check *w, uint64_t number)
{
    WB_CHECK(number < w->check->webdb->manifest.rows);
    const struct wb_column *near = &w->check->webdb->near;
    uint32_t to = number < near->count ? wb_get32(wb_column_at(near, number)) : UINT32_MAX;

    check_state(w);
    if (to != UINT32_MAX && (to >= number || !w->page.has_content))
        wb_webdb_check_report(w->check, WB_CHECKED_NEAR, "page %" PRIu64 " cannot be near page %u", number, to);
}

/* The kind of a row must be the one in the column of kinds. w->key is the normal form of its URL. */
static void check_kind(struct page_check *w, uint64_t number)
{
    const struct wb_column *kinds = &w->check->webdb->kinds;
    unsigned kind = wb_edition_kind(&w->page);

    check_state(w);
    if (*(const uint8_t *)wb_column_at(kinds, number) != kind)
        wb_webdb_check_report(w->check, WB_CHECKED_KINDS, "row %" PRIu64 " is of another kind", number);
    if (kind & WB_IS_STORED)
        wb_webdb_check_set_add(&w->ids, hash_id(wb_pageid_of_key(wb_buf_slice(&w->key)), number));
}

static int check_row(struct page_check *w, const struct wb_table_record *record)
{
    struct wb_webdb_page *page = &w->page;
    int err = wb_pagerow_decode(record->key, record->value, &w->mem, page);

    check_state(w);
    WB_CHECK(record->number < w->check->webdb->manifest.rows);
    if (wb_webdb_check_report_error(w->check, WB_CHECKED_PAGES, err))
        return 0;
    if (err < 0)
        return err;
    err = wb_spelling_surt(page->url, &w->url, &w->key, &w->surt);
    if (err < 0 && err != WB_E_INVALID)
        return err;
    if (err == WB_E_INVALID || !wb_slice_equal(wb_buf_slice(&w->surt), record->key))
        wb_webdb_check_report(w->check, WB_CHECKED_PAGES, "row %" PRIu64 ": the URL %.*s does not belong there",
                              record->number, page->url.len > 200 ? 200 : (int)page->url.len, page->url.ptr);
    check_near(w, record->number);
    check_kind(w, record->number);
    if (page->has_content)
        wb_webdb_check_set_add(&w->contents, hash_content(page->md5, record->number));
    if (page->flags & WB_PAGE_TARGET)
        return 0;
    err = enter_site(w, record->key);
    if (err < 0)
        return err;
    WB_CHECK(wb_slice_starts(record->key, wb_buf_slice(&w->site))); /* it is counted in the sums of its own site */
    w->check->seen.pages++;
    w->check->seen.fetched += page->has_content && !(page->flags & WB_PAGE_LOADED);
    wb_sitesum_add(&w->sum, page);
    return 0;
}

static int walk_rows(struct page_check *w)
{
    struct wb_table_record record;
    int more, err = next_site(w);

    check_state(w);
    while (err == 0 && (more = wb_cursor_next(w->rows, &record)) != 0) {
        if (more > 0)
            err = check_row(w, &record);
        else if (!wb_webdb_check_report_error(w->check, WB_CHECKED_PAGES, more))
            err = more;
    }
    WB_CHECK(w->check->seen.fetched <= w->check->seen.pages);
    return err < 0 ? err : end_sites(w);
}

/* ---- contents -------------------------------------------------------------------------------- */

static void check_contents(struct page_check *w)
{
    struct wb_webdb_check *check = w->check;
    const struct wb_webdb *webdb = check->webdb;
    struct wb_webdb_check_set seen = {0, 0};

    check_state(w);
    WB_CHECK(check->seen.contents == 0);
    for (uint64_t i = 0; i < webdb->contents.count; i++) {
        const struct wb_content *entry = wb_webdb_content(webdb, i), *before = i ? entry - 1 : NULL;
        uint64_t page = wb_get64_be(entry->page);
        if (before && memcmp(before, entry, sizeof *entry) >= 0)
            wb_webdb_check_report(check, WB_CHECKED_CONTENTS, "entry %" PRIu64 " is not in order", i);
        if (page >= webdb->manifest.rows)
            wb_webdb_check_report(check, WB_CHECKED_CONTENTS,
                                  "entry %" PRIu64 " belongs to page %" PRIu64 ", which does not exist", i, page);
        check->seen.contents += !before || memcmp(before->md5, entry->md5, sizeof entry->md5) != 0;
        wb_webdb_check_set_add(&seen, hash_content(entry->md5, page));
    }
    WB_CHECK(check->seen.contents <= webdb->contents.count);
    if (seen.count != w->contents.count)
        wb_webdb_check_report(check, WB_CHECKED_CONTENTS, "%" PRIu64 " entries, but %" PRIu64 " pages have content",
                              seen.count, w->contents.count);
    else if (!wb_webdb_check_set_equal(&seen, &w->contents))
        wb_webdb_check_report(check, WB_CHECKED_CONTENTS, "the entries do not match the contents of the pages");
}

static void check_ids(struct page_check *w)
{
    struct wb_webdb_check *check = w->check;
    const struct wb_column *ids = &check->webdb->ids;
    struct wb_webdb_check_set seen = {0, 0};

    check_state(w);
    WB_CHECK(ids->count <= check->webdb->manifest.rows);
    for (uint64_t i = 0; i < ids->count; i++) {
        const struct wb_stored_id *entry = wb_column_at(ids, i), *before = i ? entry - 1 : NULL;
        if (before && memcmp(before->id, entry->id, sizeof entry->id) >= 0)
            wb_webdb_check_report(check, WB_CHECKED_IDS, "entry %" PRIu64 " is not in order", i);
        wb_webdb_check_set_add(&seen, hash_id(wb_pageid_get(entry->id), wb_get32_be(entry->page)));
    }
    if (!wb_webdb_check_set_equal(&seen, &w->ids))
        wb_webdb_check_report(check, WB_CHECKED_IDS, "the entries do not match the pages that the store has");
}

int wb_webdb_check_pages(struct wb_webdb_check *check)
{
    struct page_check w = {.check = check, .url = WB_URL_INIT};
    int err = wb_cursor_open(check->webdb->pages, &w.rows);

    WB_CHECK(check->webdb->magic == WB_WEBDB_MAGIC);
    WB_CHECK(check->seen.pages == 0);
    WB_CHECK(check->seen.sites == 0);
    if (err == 0)
        err = wb_cursor_open(check->webdb->sites, &w.sites);
    if (err == 0)
        err = walk_rows(&w);
    if (err == 0) {
        check_contents(&w);
        check_ids(&w);
    }
    wb_cursor_close(w.rows);
    wb_cursor_close(w.sites);
    wb_url_release(&w.url);
    wb_buf_release(&w.mem);
    wb_buf_release(&w.key);
    wb_buf_release(&w.surt);
    wb_buf_release(&w.site);
    return err;
}

/* ---- robots.txt ------------------------------------------------------------------------------ */

int wb_webdb_check_rules(struct wb_webdb_check *check)
{
    struct wb_cursor *cursor = NULL;
    struct wb_webdb_rules rules;
    struct wb_table_record record;
    int more, err = wb_cursor_open(check->webdb->rules, &cursor);

    WB_CHECK(check->webdb->magic == WB_WEBDB_MAGIC);
    while (err == 0 && (more = wb_cursor_next(cursor, &record)) != 0) {
        if (more > 0)
            more = wb_rulesrow_decode(record.value, &rules);
        if (more >= 0 && record.key.len != 8)
            wb_webdb_check_report(check, WB_CHECKED_RULES, "row %" PRIu64 " has an invalid key", record.number);
        else if (more < 0 && !wb_webdb_check_report_error(check, WB_CHECKED_RULES, more))
            err = more;
    }
    wb_cursor_close(cursor);
    return err;
}
