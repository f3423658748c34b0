/*
 * test_pagerow.c - rows and edits of pages come back unchanged, other bytes are refused, and they are as small as
 * promised.
 */
#include "page_support.h"
#include "base/codec.h"
#include "webdb/sitesum.h"

#include <math.h>

static void test_pages_come_back(void **state)
{
    uint64_t chance = test_seed();
    struct wb_buf surt = WB_BUF_INIT, row = WB_BUF_INIT, mem = WB_BUF_INIT;
    struct wb_webdb_page again;

    (void)state;
    for (unsigned i = 0; i < 40000; i++) {
        const char *url = page_urls[chance_below(&chance, COUNT(page_urls))];
        surt_of(url, &surt);
        /* Without the SURT the whole URL is stored. */
        bool told = chance_below(&chance, 8);
        struct wb_webdb_page page = make_page(&chance, wb_slice_str(url), told ? wb_buf_slice(&surt) : WB_SLICE_EMPTY);
        wb_buf_clear(&row);
        assert_int_equal(wb_pagerow_encode(&page, &row), 0);
        page.surt = wb_buf_slice(&surt);
        if (wb_pagerow_decode(page.surt, wb_buf_slice(&row), &mem, &again) < 0)
            fail_msg("%s", wb_error_message());
        assert_same_page(&page, &again);
        assert_int_equal(again.number | again.inlinks, 0);
    }
    wb_buf_release(&surt);
    wb_buf_release(&row);
    wb_buf_release(&mem);
}

/* Which URLs need no text, and how many bytes a page takes that was only mentioned. */
static void test_sizes(void **state)
{
    static const struct {
        const char *url;
        bool text;
    } cases[] = {{"http://example.org/", false},         {"https://www.example.org/a/b/", false},
                 {"http://example.org:8080/x?y", false}, {"http://192.0.2.7/x/", false},
                 {"http://[::1]:81/x", false},           {"http://localhost/x", false},
                 {"http://example.org/%2Fx%20y", false}, {"http://u@example.org/", true},
                 {"http://example.org/?", true},         {"http://example.org/%7euser", true},
                 {"http://example.org/a///", true},      {"http://example.org./", true}};
    struct wb_buf surt = WB_BUF_INIT, row = WB_BUF_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        surt_of(cases[i].url, &surt);
        struct wb_webdb_page page = {.url = wb_slice_str(cases[i].url),
                                     .surt = wb_buf_slice(&surt),
                                     .flags = WB_PAGE_WANTED,
                                     .depth = 3,
                                     .first_seen_ms = BASE_MS};
        wb_buf_clear(&row);
        assert_int_equal(wb_pagerow_encode(&page, &row), 0);
        assert_int_equal(row.len, cases[i].text ? 9 + strlen(cases[i].url) : 8);
    }
    wb_buf_release(&surt);
    wb_buf_release(&row);
}

/* The bytes on disk: a change here is a change of the format. */
static void test_bytes(void **state)
{
    struct wb_webdb_page page = {
        .url = WB_SLICE_LIT("https://example.org/a/"),
        .surt = WB_SLICE_LIT("org,example)/a"),
        .flags = WB_PAGE_WANTED | WB_PAGE_GONE,
        .has_content = true,
        .md5 = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16},
        .simhash = 0x1122334455667788,
        .title_hash = 0x99aabbccddeeff00,
        .bytes = 300,
        .status = 200,
        .outcome = WB_OUTCOME_STORED,
        .depth = 2,
        .first_seen_ms = 1000,
        .last_tried_ms = 3000,
        .last_seen_ms = 3000,
        .last_changed_ms = 2999,
        .next_due_ms = 3064,
        .expires_ms = 3000 + 2 * WB_DAY_MS,
        .lifetime = 2,
        .score = 1,
        .etag = WB_SLICE_LIT("\"e\""),
        .modified = WB_SLICE_LIT("Thu, 01 Jan 1970 00:00:02 GMT"),
        .type = WB_SLICE_LIT("text/html"),
        .history = {.visits = 1,
                    .changes = 1,
                    .changed = {[0] = 1, [5] = 2},
                    .modified_lies = true,
                    .fetch_count = 2,
                    .fetches = {{1500, WB_OUTCOME_LATER, 503}, {3000, WB_OUTCOME_STORED, 200}}}};
    static const char expected[] = "dbffff40"                         /* word */
                                   "d00f" "02" "02"                   /* first seen, depth, GONE */
                                   "a01f" "8119" "00" "01"            /* tried, 200 stored, seen, changed */
                                   "0102030405060708090a0b0c0d0e0f10" /* MD5 */
                                   "8877665544332211" "00ffeeddccbbaa99"
                                   "ac02" "8001" "02"                 /* bytes, due, lifetime */
                                   "02" "00" "8119" "b717" "f83e"     /* two fetches, newest first */
                                   "03226522" "04"                    /* ETag, Last-Modified */
                                   "0101" "0000000000000000" "02" "0001" "0402"
                                   "01"                               /* lies */
                                   "023ff0";                          /* score */
    struct wb_buf row = WB_BUF_INIT;
    char text[512];

    (void)state;
    assert_int_equal(wb_pagerow_encode(&page, &row), 0);
    assert_in_range(row.len, 1, 250);
    wb_hex_encode(row.ptr, row.len, text);
    assert_string_equal(text, expected);
    wb_buf_release(&row);
}

/* Rows that are cut off or changed give a page or WB_E_CORRUPT; a page can be written and read again. */
static void test_damage(void **state)
{
    uint64_t chance = test_seed();
    struct wb_buf surt = WB_BUF_INIT, row = WB_BUF_INIT, bad = WB_BUF_INIT, mem = WB_BUF_INIT, mem2 = WB_BUF_INIT;
    struct wb_webdb_page page, again;
    unsigned pages = 0, refused = 0;

    (void)state;
    for (unsigned i = 0; i < 3000; i++) {
        surt_of(page_urls[chance_below(&chance, 14)], &surt);
        page = make_page(&chance, WB_SLICE_LIT("http://example.org/"), wb_buf_slice(&surt));
        wb_buf_clear(&row);
        assert_int_equal(wb_pagerow_encode(&page, &row), 0);
        if (row.len > 1) {
            size_t cut = (size_t)chance_below(&chance, row.len);
            assert_int_equal(wb_pagerow_decode(wb_buf_slice(&surt), wb_slice(row.ptr, cut), &mem, &page), WB_E_CORRUPT);
        }
        row.ptr[chance_below(&chance, row.len)] ^= (char)(1 << chance_below(&chance, 8));
        int err = wb_pagerow_decode(wb_buf_slice(&surt), wb_buf_slice(&row), &mem, &page);
        refused += err == WB_E_CORRUPT;
        if (err == WB_E_CORRUPT)
            continue;
        assert_int_equal(err, 0);
        wb_buf_clear(&bad);
        assert_int_equal(wb_pagerow_encode(&page, &bad), 0);
        assert_int_equal(wb_pagerow_decode(wb_buf_slice(&surt), wb_buf_slice(&bad), &mem2, &again), 0);
        assert_same_page(&page, &again);
        pages++;
    }
    assert_true(pages > 100 && refused > 100);
    assert_int_equal(wb_pagerow_decode(wb_buf_slice(&surt), wb_slice("\x80\x80\x80\x80\x08\0", 6), &mem, &page),
                     WB_E_CORRUPT);
    /* Rows whose key is not the SURT of a page. */
    static const char *const surts[] = {"",         "x",       "org,example)", "org,example)ftp:/x",
                                        "mailto:x", "com:x)/", "1,a)/",        "a.b)/x"};
    for (size_t i = 0; i < COUNT(surts); i++)
        assert_int_equal(wb_pagerow_decode(wb_slice_str(surts[i]), wb_slice("\0\0", 2), &mem, &page), WB_E_CORRUPT);
    assert_int_equal(wb_pagerow_decode(WB_SLICE_LIT("org,example)/"), wb_slice("\0\0", 2), &mem, &page), 0);
    wb_buf_release(&surt);
    wb_buf_release(&row);
    wb_buf_release(&bad);
    wb_buf_release(&mem);
    wb_buf_release(&mem2);
}

#define BYTES(text) {text, sizeof(text) - 1}

/* Each has one mistake, except the first, which is valid. */
static void test_bad_rows(void **state)
{
    static const struct wb_slice rows[] = {
        BYTES("\x40\0\x02"),         /* GONE */
        BYTES("\x40\0\x03"),         /* WANTED has its own bit */
        BYTES("\x40\0\x02\0"),       /* something follows */
        BYTES("\x80\x02\0\x0a"),     /* no such outcome */
        BYTES("\x05\x03http\0"),     /* spelled in two ways */
        BYTES("\x80\x80\x84\x01\0\0"), /* two types */
        BYTES("\x80\x80\x90\x02\0\0\0"), /* two times of modification */
        BYTES("\xa0\x10\0________________________________"), /* a target with content */
        BYTES("\x80\x80\x80\x40\0\x02\x7f\xf0"), /* a score that is infinite */
        BYTES("\x80\x80\x80\x40\0\x09_________"), /* of nine bytes */
        BYTES("\x80\x80\x02\0\x09"), /* nine fetches */
        BYTES("\x80\x80\x20\0\0\0\0\0\0\0\0\0\xf0\xbf\0"), /* days below 0 */
        BYTES("\x80\x80\x20\0\0\0\0\0\0\0\0\0\0\0\x01\x28\x01"), /* bin 40 */
        BYTES("\x80\x80\x10\0\xff\xff\xff\xff\xff\x7f"), /* modified in a year of too many digits */
        BYTES("\x80\x80\x80\x80\x04\0"), /* a bit that means nothing */
        BYTES("\x08\0\x80\x80\x04"), /* depth 65536 */
    };
    struct wb_webdb_page page;
    struct wb_buf mem = WB_BUF_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT(rows); i++)
        if (wb_pagerow_decode(WB_SLICE_LIT("org,example)/"), rows[i], &mem, &page) != (i ? WB_E_CORRUPT : 0))
            fail_msg("row %zu", i);
    wb_buf_release(&mem);
}

static void test_refuses_to_write(void **state)
{
    struct wb_buf row = WB_BUF_INIT;
    const struct wb_webdb_page good = {.url = WB_SLICE_LIT("http://example.org/"),
                                       .surt = WB_SLICE_LIT("org,example)/")};
    struct wb_webdb_page bad[8];

    (void)state;
    for (size_t i = 0; i < COUNT(bad); i++)
        bad[i] = good;
    bad[0].flags = 1 << 9;
    bad[1].outcome = WB_OUTCOME_ROBOTS + 1;
    bad[2].score = NAN;
    bad[3].score = INFINITY;
    bad[4].history.unchanged_days = -1;
    bad[5].history.fetch_count = WB_VISITLOG_FETCHES + 1;
    bad[6].flags = WB_PAGE_TARGET;
    bad[6].has_content = true;
    bad[7].history.fetch_count = 1;
    bad[7].history.fetches[0].outcome = 99;
    for (size_t i = 0; i < COUNT(bad); i++)
        assert_int_equal(wb_pagerow_encode(&bad[i], &row), WB_E_INVALID);
    assert_int_equal(row.len, 0);
    assert_int_equal(wb_pagerow_encode(&good, &row), 0);
    wb_buf_release(&row);
}

/* ---- edits ----------------------------------------------------------------------------------- */

static struct wb_pageedit make_edit(uint64_t *chance, struct wb_slice url, struct wb_slice surt)
{
    struct wb_pageedit edit = {.kind = (enum wb_pageedit_kind)(1 + chance_below(chance, WB_PAGEEDIT_ADD_ABSENT)),
                               .time_ms = odd_time(chance),
                               .url = url,
                               .id = chance_below(chance, 3) ? (uint32_t)odd_number(chance, UINT32_MAX)
                                                             : WB_PAGEEDIT_NO_ID,
                               .surt = surt};
    struct wb_edit_page *visit = &edit.visit;

    edit.visit.type = edit.visit.reason = edit.visit.etag = edit.visit.modified = edit.visit.location = WB_SLICE_EMPTY;
    if (edit.kind == WB_PAGEEDIT_KNOWN) {
        edit.depth = (uint16_t)odd_number(chance, UINT16_MAX);
        edit.wanted = chance_below(chance, 2);
        edit.hint_ms = odd_time(chance);
    } else if (edit.kind == WB_PAGEEDIT_PUSH) {
        edit.count = 1 + (uint32_t)chance_below(chance, 2);
    } else if (edit.kind == WB_PAGEEDIT_EXPUNGE) {
        edit.count = 1 + (uint32_t)chance_below(chance, 3);
    } else if (edit.kind == WB_PAGEEDIT_VISIT) {
        *visit = (struct wb_edit_page){.outcome = (uint8_t)(1 + chance_below(chance, 9)),
                                       .status = (uint16_t)odd_number(chance, UINT16_MAX),
                                       .depth.links = (uint16_t)odd_number(chance, UINT16_MAX),
                                       .hops = (uint8_t)odd_number(chance, UINT8_MAX),
                                       .lifetime = (uint32_t)odd_number(chance, UINT32_MAX),
                                       .took_ms = (uint32_t)odd_number(chance, UINT32_MAX),
                                       .bytes = odd_number(chance, UINT64_MAX),
                                       .type = odd_text(chance),
                                       .reason = odd_text(chance),
                                       .etag = odd_text(chance),
                                       .modified = odd_text(chance),
                                       .location = odd_text(chance)};
        visit->has_content = chance_below(chance, 2);
        for (unsigned i = 0; visit->has_content && i < WB_MD5_BYTES; i++)
            visit->md5[i] = (uint8_t)chance_next(chance);
        visit->simhash = visit->has_content ? chance_next(chance) : 0;
        visit->title_hash = visit->has_content ? chance_next(chance) : 0;
    } else if (edit.kind >= WB_PAGEEDIT_ADD && edit.kind <= WB_PAGEEDIT_ADD_ABSENT) {
        edit.row = make_page(chance, url, surt);
    }
    return edit;
}

static void assert_same_visit(const struct wb_edit_page *a, const struct wb_edit_page *b)
{
    same_number(a, b, outcome);
    same_number(a, b, status);
    same_number(a, b, depth.links);
    same_number(a, b, depth.need);
    same_number(a, b, hops);
    same_number(a, b, has_content);
    same_number(a, b, lifetime);
    same_number(a, b, took_ms);
    same_number(a, b, bytes);
    assert_memory_equal(a->md5, b->md5, sizeof a->md5);
    same_number(a, b, simhash);
    same_number(a, b, title_hash);
    same_text(a, b, type);
    same_text(a, b, reason);
    same_text(a, b, etag);
    same_text(a, b, modified);
    same_text(a, b, location);
}

static void test_edits_come_back(void **state)
{
    uint64_t chance = test_seed();
    struct wb_buf surt = WB_BUF_INIT, value = WB_BUF_INIT, mem = WB_BUF_INIT;
    struct wb_pageedit again;
    unsigned refused = 0;

    (void)state;
    for (unsigned i = 0; i < 40000; i++) {
        const char *url = page_urls[chance_below(&chance, COUNT(page_urls))];
        surt_of(url, &surt);
        struct wb_pageedit edit =
            make_edit(&chance, wb_slice_str(url), chance_below(&chance, 4) ? wb_buf_slice(&surt) : WB_SLICE_EMPTY);
        wb_buf_clear(&value);
        assert_int_equal(wb_pageedit_encode(&edit, &value), 0);
        if (wb_pageedit_decode(wb_buf_slice(&surt), edit.time_ms, wb_buf_slice(&value), &mem, &again) < 0)
            fail_msg("%s", wb_error_message());
        same_number(&edit, &again, kind);
        same_number(&edit, &again, time_ms);
        same_number(&edit, &again, id);
        same_text(&edit, &again, url);
        same_number(&edit, &again, depth);
        same_number(&edit, &again, wanted);
        same_number(&edit, &again, hint_ms);
        same_number(&edit, &again, count);
        assert_true(wb_slice_equal(again.surt, wb_buf_slice(&surt)));
        if (edit.kind == WB_PAGEEDIT_VISIT)
            assert_same_visit(&edit.visit, &again.visit);
        edit.row.surt = wb_buf_slice(&surt);
        if (edit.kind >= WB_PAGEEDIT_ADD && edit.kind <= WB_PAGEEDIT_ADD_ABSENT)
            assert_same_page(&edit.row, &again.row);
        size_t cut = (size_t)chance_below(&chance, value.len);
        assert_int_equal(wb_pageedit_decode(wb_buf_slice(&surt), edit.time_ms, wb_slice(value.ptr, cut), &mem, &again),
                         WB_E_CORRUPT);
        value.ptr[chance_below(&chance, value.len)] ^= (char)(1 << chance_below(&chance, 8));
        int err = wb_pageedit_decode(wb_buf_slice(&surt), edit.time_ms, wb_buf_slice(&value), &mem, &again);
        assert_true(err == 0 || err == WB_E_CORRUPT);
        refused += err < 0;
    }
    assert_true(refused > 1000);
    wb_buf_release(&surt);
    wb_buf_release(&value);
    wb_buf_release(&mem);
}

/* Most edits are targets of links; such an edit takes one byte and its id. */
static void test_edit_sizes(void **state)
{
    struct wb_pageedit edit = {.kind = WB_PAGEEDIT_TARGET,
                               .id = 1000000,
                               .url = WB_SLICE_LIT("https://www.example.org/a/b/"),
                               .surt = WB_SLICE_LIT("org,example,www)/a/b"),
                               .time_ms = BASE_MS};
    struct wb_buf value = WB_BUF_INIT;

    (void)state;
    assert_int_equal(wb_pageedit_encode(&edit, &value), 0);
    assert_int_equal(value.len, 4);
    edit.id = WB_PAGEEDIT_NO_ID;
    wb_buf_clear(&value);
    assert_int_equal(wb_pageedit_encode(&edit, &value), 0);
    assert_int_equal(value.len, 1);
    wb_buf_release(&value);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void test_surts(void **state)
{
    static const char *const cases[][2] = {{"http://Example.org/x/", "org,example)/x"},
                                           {"https://example.org:443/", "org,example)/"},
                                           {"https://example.org:80/", "org,example:80)/"},
                                           {"http://u:p@example.org#f", "org,example)/"},
                                           {"ftp://example.org/", NULL},
                                           {"mailto:x", NULL},
                                           {"example.org", NULL},
                                           {"http://", NULL},
                                           {"", NULL}};
    static const char *const sites[][2] = {{"example.org", "org,example)"},
                                           {"example.org:8080", "org,example:8080)"},
                                           {"[::1]:80", "[::1]:80)"},
                                           {"127.0.0.1", "127.0.0.1)"},
                                           {"", NULL},
                                           {"http://example.org", NULL},
                                           {"example.org/x", NULL},
                                           {"example.org:", NULL},
                                           {"a:b", NULL}};
    struct wb_url url = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT, surt = WB_BUF_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(wb_spelling_surt(wb_slice_str(cases[i][0]), &url, &key, &surt),
                         cases[i][1] ? 0 : WB_E_INVALID);
        assert_true(wb_slice_equal(wb_buf_slice(&surt), wb_slice_str(cases[i][1] ? cases[i][1] : "")));
    }
    for (size_t i = 0; i < COUNT(sites); i++) {
        if (wb_spelling_site_surt(wb_slice_str(sites[i][0]), &surt) != (sites[i][1] ? 0 : WB_E_INVALID))
            fail_msg("'%s'", sites[i][0]);
        assert_true(wb_slice_equal(wb_buf_slice(&surt), wb_slice_str(sites[i][1] ? sites[i][1] : "")));
    }
    wb_url_release(&url);
    wb_buf_release(&key);
    wb_buf_release(&surt);
}

/* ---- sites ----------------------------------------------------------------------------------- */

static void test_sites(void **state)
{
    struct wb_webdb_site sum = {0}, again;
    struct wb_webdb_page page = {.has_content = true,
                                 .history = {.visits = 5, .changes = 2, .unchanged_days = 3.5, .changed = {[10] = 2}}};
    struct wb_webdb_page target = {.flags = WB_PAGE_TARGET}, loaded = {.flags = WB_PAGE_LOADED, .has_content = true},
                         heard = {0};
    struct wb_buf row = WB_BUF_INIT;

    (void)state;
    wb_sitesum_add(&sum, &page);
    wb_sitesum_add(&sum, &target);
    wb_sitesum_add(&sum, &loaded);
    wb_sitesum_add(&sum, &heard);
    assert_int_equal(sum.pages, 3);
    assert_int_equal(sum.fetched, 1);
    assert_int_equal(sum.visits, 5);
    assert_int_equal(sum.changes, 2);
    /* Bin 10 holds gaps around 38 minutes. */
    assert_true(fabs(sum.days - 3.5 - 2 * 38.05 / 1440) < 1e-4);
    assert_int_equal(wb_sitesum_encode(&sum, &row), 0);
    assert_int_equal(wb_sitesum_decode(wb_buf_slice(&row), &again), 0);
    assert_true(again.pages == 3 && again.fetched == 1 && again.visits == 5 && again.changes == 2 &&
                again.days == sum.days);
    for (size_t cut = 0; cut < row.len; cut++)
        assert_int_equal(wb_sitesum_decode(wb_slice(row.ptr, cut), &again), WB_E_CORRUPT);
    assert_int_equal(wb_buf_append_char(&row, 'x'), 0);
    assert_int_equal(wb_sitesum_decode(wb_buf_slice(&row), &again), WB_E_CORRUPT);
    wb_buf_clear(&row);
    assert_int_equal(wb_sitesum_encode(&sum, &row), 0);
    row.ptr[1] = 4; /* more pages are fetched than there are */
    assert_int_equal(wb_sitesum_decode(wb_buf_slice(&row), &again), WB_E_CORRUPT);
    wb_buf_clear(&row);
    sum = (struct wb_webdb_site){.pages = 0};
    assert_int_equal(wb_sitesum_encode(&sum, &row), 0);
    memset(row.ptr + 4, 0xff, 8); /* the days are not a number */
    assert_int_equal(wb_sitesum_decode(wb_buf_slice(&row), &again), WB_E_CORRUPT);
    wb_buf_release(&row);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pages_come_back),
        cmocka_unit_test(test_sizes),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_refuses_to_write),
        cmocka_unit_test(test_edits_come_back),
        cmocka_unit_test(test_bad_rows),
        cmocka_unit_test(test_edit_sizes),
        cmocka_unit_test(test_surts),
        cmocka_unit_test(test_sites),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
