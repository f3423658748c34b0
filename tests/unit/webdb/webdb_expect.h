/* webdb_expect.h - every way to read an edition must give what is in the arrays that it was written from. */
#ifndef WB_TESTS_WEBDB_EXPECT_H
#define WB_TESTS_WEBDB_EXPECT_H

#include "webdb_support.h"

static void expect_slice(struct wb_slice found, struct wb_slice expected)
{
    assert_int_equal(found.len, expected.len);
    assert_memory_equal(found.ptr, expected.ptr, expected.len);
}

static void expect_page(const struct wb_webdb_page *found, const struct wb_webdb_page *expected)
{
    expect_slice(found->url, expected->url);
    expect_slice(found->surt, expected->surt);
    expect_slice(found->type, expected->type);
    assert_true(found->number == expected->number && found->inlinks == expected->inlinks);
    assert_true(found->score == expected->score);
    assert_int_equal(found->flags, expected->flags);
    assert_int_equal(found->has_content, expected->has_content);
    assert_memory_equal(found->md5, expected->md5, sizeof found->md5);
    assert_int_equal(found->status, expected->status);
    assert_int_equal(found->depth, expected->depth);
    assert_true(found->first_seen_ms == expected->first_seen_ms && found->last_seen_ms == expected->last_seen_ms);
    assert_true(found->bytes == expected->bytes && found->history.visits == expected->history.visits);
}

static bool is_target(const struct wb_webdb_page *page)
{
    return page->flags & WB_PAGE_TARGET;
}

/* ---- walks beside the arrays ----------------------------------------------------------------- */

static void expect_all_pages(struct wb_webdb *webdb, const struct parts *parts)
{
    struct wb_webdb_pages *walk;
    struct wb_webdb_page page;

    assert_int_equal(wb_webdb_pages(webdb, &walk), 0);
    for (size_t i = 0; i < parts->page_count; i++) {
        if (is_target(&parts->pages[i]))
            continue;
        assert_int_equal(wb_webdb_pages_next(walk, &page), 1);
        expect_page(&page, &parts->pages[i]);
    }
    assert_int_equal(wb_webdb_pages_next(walk, &page), 0);
    assert_int_equal(wb_webdb_pages_next(walk, &page), 0);
    wb_webdb_pages_close(walk);
}

static void expect_pages_by_md5(struct wb_webdb *webdb, const struct parts *parts)
{
    struct wb_webdb_pages *walk;
    struct wb_webdb_page page;

    assert_int_equal(wb_webdb_pages_by_md5(webdb, &walk), 0);
    for (size_t i = 0; i < parts->content_count; i++) {
        assert_int_equal(wb_webdb_pages_next(walk, &page), 1);
        expect_page(&page, &parts->pages[wb_get64_be(parts->contents[i].page)]);
    }
    assert_int_equal(wb_webdb_pages_next(walk, &page), 0);
    assert_int_equal(wb_webdb_pages_next(walk, &page), 0);
    wb_webdb_pages_close(walk);
}

static void expect_pages_of(struct wb_webdb *webdb, const struct parts *parts, const uint8_t md5[WB_MD5_BYTES])
{
    struct wb_webdb_pages *walk;
    struct wb_webdb_page page;
    bool any = false;

    assert_int_equal(wb_webdb_get_pages(webdb, md5, &walk), 0);
    for (size_t i = 0; i < parts->page_count; i++) {
        if (!parts->pages[i].has_content || memcmp(parts->pages[i].md5, md5, WB_MD5_BYTES) != 0)
            continue;
        any = true;
        assert_int_equal(wb_webdb_pages_next(walk, &page), 1);
        expect_page(&page, &parts->pages[i]);
    }
    assert_int_equal(wb_webdb_pages_next(walk, &page), 0);
    wb_webdb_pages_close(walk);
    bool exists;
    assert_int_equal(wb_webdb_page_exists(webdb, md5, &exists), 0);
    assert_int_equal(exists, any);
}

/* "com,example:8080)" -> "example.com:8080" for the names that tests use: "example,www3)" or "example,www4:8080)". */
static void site_name(const char *surt, char name_out[64])
{
    char label[32], port[16] = "";

    assert_true(sscanf(surt, "example,%31[^:)]%15[^)]", label, port) >= 1);
    snprintf(name_out, 64, "%s.example%s", label, port);
}

static void expect_site(struct wb_webdb *webdb, const struct parts *parts, const struct part_site *site)
{
    struct wb_webdb_pages *walk;
    struct wb_webdb_page page;
    struct wb_webdb_site found;
    char name[64];
    size_t len = strlen(site->surt);

    site_name(site->surt, name);
    assert_int_equal(wb_webdb_get_site(webdb, wb_slice_str(name), &found), 0);
    expect_slice(found.name, wb_slice_str(name));
    assert_true(found.pages == site->sum.pages && found.fetched == site->sum.fetched &&
                found.visits == site->sum.visits);
    assert_true(found.changes == site->sum.changes && found.days == site->sum.days);
    assert_int_equal(wb_webdb_pages_of_site(webdb, wb_slice_str(name), &walk), 0);
    for (size_t i = 0; i < parts->page_count; i++) {
        if (is_target(&parts->pages[i]) || !wb_slice_starts(parts->pages[i].surt, wb_slice(site->surt, len)))
            continue;
        assert_int_equal(wb_webdb_pages_next(walk, &page), 1);
        expect_page(&page, &parts->pages[i]);
    }
    assert_int_equal(wb_webdb_pages_next(walk, &page), 0);
    wb_webdb_pages_close(walk);
}

static void expect_link(struct wb_webdb_links *walk, const struct parts *parts, const struct part_link *expected,
                        bool in)
{
    struct wb_webdb_link link;
    uint64_t content = in ? expected->number : expected->owner, page = in ? expected->owner : expected->number;

    assert_int_equal(wb_webdb_links_next(walk, &link), 1);
    assert_memory_equal(link.from_md5, parts->contents[content].md5, WB_MD5_BYTES);
    expect_slice(link.to, parts->pages[page].url);
    expect_slice(link.anchor, wb_slice(expected->anchor, expected->anchor_len));
    assert_int_equal(link.tag, expected->tag);
    assert_int_equal(link.flags, expected->flags);
}

static void expect_end(struct wb_webdb_links *walk)
{
    struct wb_webdb_link link;

    assert_int_equal(wb_webdb_links_next(walk, &link), 0);
    assert_int_equal(wb_webdb_links_next(walk, &link), 0);
    wb_webdb_links_close(walk);
}

static void expect_all_links(struct wb_webdb *webdb, const struct parts *parts)
{
    struct wb_webdb_links *walk;

    assert_int_equal(wb_webdb_links(webdb, &walk), 0);
    for (size_t i = 0; i < parts->in_count; i++)
        expect_link(walk, parts, &parts->in[i], true);
    expect_end(walk);
}

static void expect_links_to(struct wb_webdb *webdb, const struct parts *parts, size_t page)
{
    struct wb_webdb_links *walk;

    assert_int_equal(wb_webdb_links_to(webdb, parts->pages[page].url, &walk), 0);
    for (size_t i = 0; i < parts->in_count; i++) {
        if (parts->in[i].owner == page)
            expect_link(walk, parts, &parts->in[i], true);
    }
    expect_end(walk);
}

static void expect_links_from(struct wb_webdb *webdb, const struct parts *parts, size_t entry)
{
    struct wb_webdb_links *walk;
    uint64_t content = content_of_entry(parts, entry);

    assert_int_equal(wb_webdb_links_from(webdb, parts->contents[entry].md5, &walk), 0);
    for (size_t i = 0; i < parts->out_count; i++) {
        if (parts->out[i].owner == content)
            expect_link(walk, parts, &parts->out[i], false);
    }
    expect_end(walk);
}

static void expect_get_page(struct wb_webdb *webdb, const struct wb_webdb_page *expected)
{
    struct wb_webdb_page page;
    int err = wb_webdb_get_page(webdb, expected->url, &page);

    assert_int_equal(err, is_target(expected) ? WB_E_NOTFOUND : 0);
    if (err == 0)
        expect_page(&page, expected);
    else
        assert_null(page.url.ptr);
}

static void expect_everything(struct wb_webdb *webdb, const struct parts *parts)
{
    struct wb_webdb_count count;

    expect_all_pages(webdb, parts);
    expect_pages_by_md5(webdb, parts);
    expect_all_links(webdb, parts);
    size_t step = 1 + parts->page_count / 300;
    for (size_t i = 0; i < parts->page_count; i += step) {
        expect_get_page(webdb, &parts->pages[i]);
        expect_links_to(webdb, parts, i);
        expect_pages_of(webdb, parts, parts->pages[i].md5);
    }
    for (size_t i = 0; i < parts->content_count; i += step)
        expect_links_from(webdb, parts, i);
    for (size_t i = 0; i < parts->site_count; i++)
        expect_site(webdb, parts, &parts->sites[i]);
    wb_webdb_count(webdb, &count);
    assert_true(count.pages == parts->manifest.count.pages && count.fetched == parts->manifest.count.fetched);
    assert_true(count.links == parts->in_count && count.contents == parts->manifest.count.contents &&
                count.sites == parts->site_count);
}

#endif
