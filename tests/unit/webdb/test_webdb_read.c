/* test_webdb_read.c - reads editions in every way and compares with the arrays that they were written from. */
#include "webdb_expect.h"

/* Writes an edition, which is the newest one, and opens it. */
static struct wb_webdb *write_and_open(const char *dir, uint32_t number, const struct parts *parts)
{
    struct wb_webdb *webdb;

    write_parts(dir, number, parts);
    assert_int_equal(wb_webdb_open(dir, &webdb), 0);
    return webdb;
}

/* Writes edition 1 with twenty pages. */
static void write_few(const char *dir, struct parts *parts_out)
{
    uint64_t chance = 1;

    make_parts(&chance, 20, 2, 50, parts_out);
    write_parts(dir, 1, parts_out);
}

/* ---- tests ----------------------------------------------------------------------------------- */

static void test_model(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (size_t i = 0; i < PARTS_SIZES; i++) {
        struct parts parts;
        struct wb_webdb *webdb;
        const char *dir = new_dir();
        make_parts_of_size(&chance, i, &parts);
        webdb = write_and_open(dir, 1, &parts);
        expect_everything(webdb, &parts);
        wb_webdb_close(webdb);
        free_parts(&parts);
    }
}

static void test_unknown(void **state)
{
    const char *dir = new_dir();
    uint64_t chance = test_seed();
    struct parts parts;
    struct wb_webdb *webdb;
    struct wb_webdb_page page;
    struct wb_webdb_site site;
    struct wb_webdb_pages *pages;
    struct wb_webdb_links *links;
    const uint8_t md5[WB_MD5_BYTES] = {1, 2, 3};

    (void)state;
    assert_int_equal(wb_webdb_open(dir, &webdb), WB_E_NOTFOUND);
    assert_null(webdb);
    make_parts(&chance, 50, 4, 200, &parts);
    webdb = write_and_open(dir, 1, &parts);
    assert_int_equal(wb_webdb_get_page(webdb, WB_SLICE_LIT("http://nobody.example/"), &page), WB_E_NOTFOUND);
    assert_non_null(strstr(wb_error_message(), "http://nobody.example/"));
    assert_int_equal(wb_webdb_get_page(webdb, WB_SLICE_LIT("no url"), &page), WB_E_INVALID);
    assert_int_equal(wb_webdb_get_page(webdb, WB_SLICE_LIT("mailto:x@example.org"), &page), WB_E_INVALID);
    assert_int_equal(wb_webdb_get_site(webdb, WB_SLICE_LIT("nobody.example"), &site), WB_E_NOTFOUND);
    assert_int_equal(wb_webdb_get_site(webdb, WB_SLICE_LIT(""), &site), WB_E_INVALID);
    assert_int_equal(wb_webdb_pages_of_site(webdb, WB_SLICE_LIT("a/b"), &pages), WB_E_INVALID);
    assert_null(pages);
    assert_int_equal(wb_webdb_pages_of_site(webdb, WB_SLICE_LIT("nobody.example"), &pages), 0);
    assert_int_equal(wb_webdb_pages_next(pages, &page), 0);
    wb_webdb_pages_close(pages);
    expect_pages_of(webdb, &parts, md5);
    assert_int_equal(wb_webdb_links_from(webdb, md5, &links), 0);
    expect_end(links);
    assert_int_equal(wb_webdb_links_to(webdb, WB_SLICE_LIT("http://nobody.example/"), &links), 0);
    expect_end(links);
    assert_int_equal(wb_webdb_links_to(webdb, WB_SLICE_LIT("no url"), &links), WB_E_INVALID);
    assert_null(links);
    wb_webdb_close(webdb);
    free_parts(&parts);
}

/* Other spellings of a URL are the same page. */
static void test_spellings(void **state)
{
    const char *dir = new_dir();
    struct parts parts;
    struct wb_webdb *webdb;
    struct wb_webdb_page page;
    uint64_t chance = 5;

    (void)state;
    make_parts(&chance, 1, 1, 0, &parts);
    parts.pages[0].flags = 0;
    parts.manifest.count.pages = 1;
    wb_free((void *)(uintptr_t)parts.pages[0].url.ptr);
    wb_free((void *)(uintptr_t)parts.pages[0].surt.ptr);
    set_url(&parts.pages[0], "https://Example.org/x/");
    webdb = write_and_open(dir, 1, &parts);
    const char *spellings[] = {"https://Example.org/x/", "http://example.org/x", "https://EXAMPLE.org:443/./x#part"};
    for (size_t i = 0; i < COUNT(spellings); i++) {
        assert_int_equal(wb_webdb_get_page(webdb, wb_slice_str(spellings[i]), &page), 0);
        expect_slice(page.url, WB_SLICE_LIT("https://Example.org/x/"));
        expect_slice(page.surt, WB_SLICE_LIT("org,example)/x"));
    }
    wb_webdb_close(webdb);
    free_parts(&parts);
}

/* All kinds of walks at the same time on one handle, with single reads in between. */
static void test_walks_at_once(void **state)
{
    const char *dir = new_dir();
    uint64_t chance = test_seed();
    struct parts parts;
    struct wb_webdb *webdb;
    struct wb_webdb_pages *by_url, *by_md5;
    struct wb_webdb_links *all, *to;
    struct wb_webdb_page page;
    size_t row = 0, linked = 0;

    (void)state;
    make_parts(&chance, 300, 5, 4000, &parts);
    parts.piece_items = 50;
    write_parts(dir, 1, &parts);
    for (size_t i = 0; i < parts.page_count; i++) /* the page with the most links */
        linked = parts.degrees[i] > parts.degrees[linked] ? i : linked;
    size_t first = 0;
    while (parts.in[first].owner != linked)
        first++;
    assert_int_equal(wb_webdb_open(dir, &webdb), 0);
    assert_int_equal(wb_webdb_pages(webdb, &by_url), 0);
    assert_int_equal(wb_webdb_pages_by_md5(webdb, &by_md5), 0);
    assert_int_equal(wb_webdb_links(webdb, &all), 0);
    assert_int_equal(wb_webdb_links_to(webdb, parts.pages[linked].url, &to), 0);
    for (size_t i = 0; i < 100; i++) {
        for (; is_target(&parts.pages[row]); row++)
            ;
        assert_int_equal(wb_webdb_pages_next(by_url, &page), 1);
        expect_page(&page, &parts.pages[row++]);
        expect_get_page(webdb, &parts.pages[(i * 7) % parts.page_count]);
        assert_int_equal(wb_webdb_pages_next(by_md5, &page), 1);
        expect_page(&page, &parts.pages[wb_get64_be(parts.contents[i].page)]);
        expect_link(all, &parts, &parts.in[i], true);
        expect_links_to(webdb, &parts, (i * 3) % parts.page_count);
        expect_link(to, &parts, &parts.in[first + i], true);
        expect_links_from(webdb, &parts, i);
    }
    wb_webdb_pages_close(by_url);
    wb_webdb_pages_close(by_md5);
    wb_webdb_links_close(all);
    wb_webdb_links_close(to);
    wb_webdb_close(webdb);
    free_parts(&parts);
}

/* Rows that are so large that only a few fit at once when pages are read by MD5. */
static void test_large_rows(void **state)
{
    const char *dir = new_dir();
    uint64_t chance = test_seed();
    struct parts parts;
    struct wb_webdb *webdb;
    static char etag[64 << 10];

    (void)state;
    make_parts(&chance, 600, 5, 0, &parts);
    memset(etag, 'e', sizeof etag);
    for (size_t i = 0; i < parts.page_count; i++) {
        if (parts.pages[i].has_content && i % 10)
            parts.pages[i].etag = wb_slice(etag, i % 7 ? 30000 : sizeof etag);
    }
    webdb = write_and_open(dir, 1, &parts);
    expect_pages_by_md5(webdb, &parts);
    wb_webdb_close(webdb);
    free_parts(&parts);
}

/* The newest edition is opened, and a reader keeps the one it has opened even if that is removed. */
static void test_editions(void **state)
{
    const char *dir = new_dir();
    uint64_t chance = test_seed();
    struct parts old, young;
    struct wb_webdb *reader, *later;

    (void)state;
    make_parts(&chance, 100, 4, 500, &old);
    make_parts(&chance, 90, 4, 400, &young);
    reader = write_and_open(dir, 9, &old);
    write_parts(dir, 10, &young);
    char *path = wb_edition_path(dir, 9);
    assert_int_equal(wb_series_remove(path), 0);
    wb_free(path);
    assert_int_equal(wb_webdb_open(dir, &later), 0);
    expect_everything(reader, &old);
    expect_everything(later, &young);
    wb_webdb_close(reader);
    wb_webdb_close(later);
    free_parts(&old);
    free_parts(&young);
}

static void test_missing_file(void **state)
{
    const char *dir = new_dir();
    struct parts parts;
    struct wb_webdb *webdb;

    (void)state;
    write_few(dir, &parts);
    char *edition = wb_edition_path(dir, 1), *path = wb_path_join(edition, WB_DEGREES_FILE);
    assert_int_equal(wb_path_unlink(path), 0);
    assert_int_equal(wb_webdb_open(dir, &webdb), WB_E_CORRUPT);
    assert_null(webdb);
    assert_non_null(strstr(wb_error_message(), WB_DEGREES_FILE));
    parts.degree_count--; /* the file is there, but has another size */
    write_parts(dir, 1, &parts);
    assert_int_equal(wb_webdb_open(dir, &webdb), WB_E_CORRUPT);
    wb_free(edition);
    wb_free(path);
    free_parts(&parts);
}

/* ---- one that is replaced all the time ------------------------------------------------------- */

static void test_replaced_meanwhile(void **state)
{
    const char *dir = new_dir();
    struct parts parts;
    struct wb_webdb *webdb;

    (void)state;
    write_few(dir, &parts);
    struct child child = start_child(publish_for_ever, (void *)(uintptr_t)dir);
    uint32_t newest = 1;
    for (int i = 0; i < 300 || newest < 3; i++) { /* until it has happened */
        assert_int_equal(wb_webdb_open(dir, &webdb), 0);
        expect_get_page(webdb, &parts.pages[i % 20]);
        wb_webdb_close(webdb);
        assert_int_equal(wb_edition_newest(dir, &newest), 0);
    }
    kill_child(&child, 0);
    free_parts(&parts);
}

/* ---- faults and damage ----------------------------------------------------------------------- */

/* Opens a walk with `call`, which sets pages or links, and goes to its end or to the first error. */
static int opened;
#define WALK_PAGES(call) (opened = (call), walk_pages(opened, pages))
#define WALK_LINKS(call) (opened = (call), walk_links(opened, links))

static int walk_pages(int err, struct wb_webdb_pages *pages)
{
    struct wb_webdb_page page;
    int more = err;

    if (err == 0) {
        while ((more = wb_webdb_pages_next(pages, &page)) == 1)
            assert_true(page.url.len > 0 && !is_target(&page));
    }
    wb_webdb_pages_close(pages);
    return more;
}

static int walk_links(int err, struct wb_webdb_links *links)
{
    struct wb_webdb_link link;
    int more = err;

    if (err == 0) {
        while ((more = wb_webdb_links_next(links, &link)) == 1)
            assert_true(link.to.len > 0 && link.anchor.len <= 255);
    }
    wb_webdb_links_close(links);
    return more;
}

/* Reads everything once, in an edition that has the page `linked`. Returns the first error. */
static int read_everything(const char *dir, const struct wb_webdb_page *linked)
{
    struct wb_webdb *webdb = NULL;
    struct wb_webdb_pages *pages;
    struct wb_webdb_links *links;
    struct wb_webdb_page page;
    struct wb_webdb_site site;
    int err = wb_webdb_open(dir, &webdb);

    if (err == 0)
        err = wb_webdb_get_page(webdb, linked->url, &page);
    if (err == 0)
        err = wb_webdb_get_site(webdb, WB_SLICE_LIT("www1.example"), &site);
    if (err == 0)
        err = WALK_PAGES(wb_webdb_pages(webdb, &pages));
    if (err == 0)
        err = WALK_PAGES(wb_webdb_pages_by_md5(webdb, &pages));
    if (err == 0)
        err = WALK_PAGES(wb_webdb_get_pages(webdb, linked->md5, &pages));
    if (err == 0)
        err = WALK_PAGES(wb_webdb_pages_of_site(webdb, WB_SLICE_LIT("www1.example"), &pages));
    if (err == 0)
        err = WALK_LINKS(wb_webdb_links(webdb, &links));
    if (err == 0)
        err = WALK_LINKS(wb_webdb_links_to(webdb, linked->url, &links));
    if (err == 0)
        err = WALK_LINKS(wb_webdb_links_from(webdb, linked->md5, &links));
    wb_webdb_close(webdb);
    return err;
}

/* Makes an edition, and returns a page that has content and links in both directions. */
static const struct wb_webdb_page *make_linked(const char *dir, struct parts *parts)
{
    uint64_t chance = 99;

    make_parts(&chance, 80, 4, 900, parts);
    write_parts(dir, 1, parts);
    for (size_t i = 0; i < parts->out_count; i++) {
        const struct wb_webdb_page *page = &parts->pages[wb_get64_be(parts->contents[parts->out[i].owner].page)];
        if (page->inlinks > 2)
            return page;
    }
    fail();
    return NULL;
}

static void test_faults(void **state)
{
    const char *dir = new_dir();
    struct parts parts;
    const struct wb_webdb_page *linked = make_linked(dir, &parts);

    (void)state;
    for (uint64_t nth = 1;; nth++) {
        wb_fault_arm(WB_FAULT_ANY, nth, EIO);
        int err = read_everything(dir, linked);
        bool struck = wb_fault_struck();
        wb_fault_disarm();
        assert_int_equal(err < 0, struck);
        if (!struck)
            break;
        assert_true(nth < 100000);
    }
    free_parts(&parts);
}

/* Changed bytes: readers get the right data or an error about damage, never "not found". */
static void test_damage(void **state)
{
    static const char *const names[] = {WB_PAGES_FILE,   WB_CONTENTS_FILE, WB_OUTLINKS_FILE, WB_INLINKS_FILE,
                                        WB_DEGREES_FILE, WB_SITES_FILE,    WB_NEAR_FILE,     WB_RULES_FILE,
                                        WB_KINDS_FILE,   WB_IDS_FILE};
    const char *dir = new_dir();
    struct parts parts;
    const struct wb_webdb_page *linked = make_linked(dir, &parts);
    char *edition = wb_edition_path(dir, 1);
    uint64_t chance = test_seed();
    unsigned noticed = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        char *path = wb_path_join(edition, names[i]);
        struct wb_buf whole = WB_BUF_INIT;
        assert_int_equal(wb_path_read(path, 1 << 24, &whole), 0);
        for (int n = 0; n < 60; n++) {
            uint64_t at = chance_below(&chance, whole.len);
            uint8_t mask = (uint8_t)(1u << chance_below(&chance, 8));
            change_byte(path, at, mask);
            int err = read_everything(dir, linked);
            assert_true(err == 0 || err == WB_E_CORRUPT || err == WB_E_NEWER);
            noticed += err < 0;
            change_byte(path, at, mask);
        }
        wb_buf_release(&whole);
        wb_free(path);
    }
    assert_int_equal(read_everything(dir, linked), 0);
    assert_true(noticed > 100);
    wb_free(edition);
    free_parts(&parts);
}

/* Files that are intact but do not agree: numbers of things that do not exist. */
static void test_disagreement(void **state)
{
    const char *dir = new_dir();
    struct parts parts;
    struct wb_webdb *webdb;
    struct wb_webdb_pages *pages;
    struct wb_webdb_links *links;
    uint64_t chance = 7;

    (void)state;
    make_parts(&chance, 80, 4, 900, &parts);
    parts.out[parts.out_count - 1].number = parts.page_count;
    parts.in[parts.in_count - 1].number = parts.content_count;
    wb_put64_be(parts.contents[parts.content_count - 1].page, UINT64_MAX);
    webdb = write_and_open(dir, 1, &parts);
    assert_int_equal(WALK_LINKS(wb_webdb_links(webdb, &links)), WB_E_CORRUPT);
    assert_non_null(strstr(wb_error_message(), WB_INLINKS_FILE));
    const uint8_t *md5 = parts.contents[parts.out[parts.out_count - 1].owner].md5;
    assert_int_equal(WALK_LINKS(wb_webdb_links_from(webdb, md5, &links)), WB_E_CORRUPT);
    assert_non_null(strstr(wb_error_message(), WB_OUTLINKS_FILE));
    assert_int_equal(WALK_PAGES(wb_webdb_pages_by_md5(webdb, &pages)), WB_E_CORRUPT);
    wb_webdb_close(webdb);
    free_parts(&parts);

    make_parts(&chance, 80, 4, 900, &parts);
    parts.contents[3].page[7] ^= 1; /* another page */
    webdb = write_and_open(dir, 2, &parts);
    assert_int_equal(WALK_PAGES(wb_webdb_pages_by_md5(webdb, &pages)), WB_E_CORRUPT);
    wb_webdb_close(webdb);
    parts.contents[3].page[7] ^= 1;
    parts.piece_items = 5;
    parts.skip_piece = true;
    webdb = write_and_open(dir, 3, &parts);
    assert_int_equal(WALK_LINKS(wb_webdb_links(webdb, &links)), WB_E_CORRUPT);
    wb_webdb_close(webdb);
    free_parts(&parts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_model),          cmocka_unit_test(test_unknown),      cmocka_unit_test(test_spellings),
        cmocka_unit_test(test_walks_at_once),  cmocka_unit_test(test_large_rows),   cmocka_unit_test(test_editions),
        cmocka_unit_test(test_missing_file),   cmocka_unit_test(test_replaced_meanwhile), cmocka_unit_test(test_faults),
        cmocka_unit_test(test_damage),         cmocka_unit_test(test_disagreement),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
