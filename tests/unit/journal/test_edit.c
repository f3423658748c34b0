/* test_edit.c - records of the journal as bytes: every field is read as it was written, and no bytes do harm. */
#include "edit_support.h"
#include "journal/edit.h"

#define LIT WB_SLICE_LIT

enum { SALT = 0x1234567 };

static void expect_slice(struct wb_slice found, struct wb_slice expected)
{
    assert_int_equal(found.len, expected.len);
    assert_memory_equal(found.ptr, expected.ptr, expected.len);
}

static void encode(const struct wb_edit *edit, struct wb_buf *record)
{
    wb_buf_clear(record);
    assert_int_equal(wb_edit_encode(edit, SALT, record), 0);
    assert_int_equal(wb_edit_length(record->ptr), record->len);
    assert_true(wb_edit_is_intact(wb_buf_slice(record), SALT));
    assert_false(wb_edit_is_intact(wb_buf_slice(record), SALT + 1));
}

static void expect_links(const struct wb_edit *edit, const struct wb_pagelink *links, size_t count)
{
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_pagelink link;
    size_t at = 0;

    for (size_t i = 0; i < count; i++) {
        assert_int_equal(wb_edit_links_next(edit, &at, &mem, &link), 1);
        expect_slice(link.url, links[i].url);
        expect_slice(link.anchor, links[i].anchor);
        assert_int_equal(link.tag, links[i].tag);
        assert_int_equal(link.flags, links[i].flags);
        assert_int_equal(link.modified_ms, links[i].modified_ms);
    }
    assert_int_equal(wb_edit_links_next(edit, &at, &mem, &link), 0);
    wb_buf_release(&mem);
}

static void expect_page(const struct wb_edit_page *found, const struct wb_edit_page *expected)
{
    expect_slice(found->url, expected->url);
    expect_slice(found->type, expected->type);
    expect_slice(found->reason, expected->reason);
    expect_slice(found->etag, expected->etag);
    expect_slice(found->modified, expected->modified);
    expect_slice(found->location, expected->location);
    assert_int_equal(found->outcome, expected->outcome);
    assert_int_equal(found->status, expected->status);
    assert_int_equal(found->depth.links, expected->depth.links);
    assert_int_equal(found->depth.need, expected->depth.need);
    assert_int_equal(found->hops, expected->hops);
    assert_int_equal(found->lifetime, expected->lifetime);
    assert_int_equal(found->took_ms, expected->took_ms);
    assert_true(found->bytes == expected->bytes);
    assert_int_equal(found->has_content, expected->has_content);
    if (expected->has_content) {
        assert_memory_equal(found->md5, expected->md5, WB_MD5_BYTES);
        assert_true(found->simhash == expected->simhash && found->title_hash == expected->title_hash);
    }
    assert_int_equal(found->link_count, expected->link_count);
    assert_null(found->links);
}

static const struct wb_pagelink some_links[] = {
    {.url = LIT("https://example.org/docs/a.html"), .anchor = LIT("first"), .tag = 1, .flags = WB_PAGELINK_FOLLOW},
    {.url = LIT("https://example.org/docs/a.html"), .anchor = LIT(""), .tag = 6},
    {.url = LIT("https://example.org/docs/"), .anchor = LIT("up"), .tag = 1,
     .flags = WB_PAGELINK_FOLLOW | WB_PAGELINK_NOFOLLOW},
    {.url = LIT("http://other.example/"), .anchor = LIT("\xe2\x82\xac"), .tag = 14, .flags = WB_PAGELINK_NOFOLLOW},
    {.url = LIT("http://other.example/x"), .anchor = LIT(""), .tag = 15, .modified_ms = 1767225600123},
    {.url = LIT("http://other.example/y"), .anchor = LIT("a"), .tag = 255, .modified_ms = -5},
};

static struct wb_edit full_page(void)
{
    return (struct wb_edit){
        .kind = WB_EDIT_PAGE, .site = 0xfedcba9876543210, .time_ms = 1767225600123, .prev = {7, 123456789012},
        .page = {.url = LIT("https://example.org/docs/index.html?q=1"), .outcome = WB_OUTCOME_REDIRECT, .status = 65535,
                 .depth.links = WB_DEPTH_UNKNOWN, .hops = 255, .has_content = true, .lifetime = UINT32_MAX,
                 .took_ms = UINT32_MAX, .bytes = UINT64_MAX, .md5 = {1, 2, 3, 16},
                 .simhash = UINT64_MAX - 1, .title_hash = 42, .type = LIT("text/html"),
                 .reason = LIT("timeout"),
                 .etag = LIT("\"abc\""), .modified = LIT("Thu, 01 Jan 2026 00:00:00 GMT"),
                 .location = LIT("https://example.org/new"),
                 .links = some_links, .link_count = COUNT(some_links)}};
}

static void test_page(void **state)
{
    struct wb_buf record = WB_BUF_INIT;
    struct wb_edit edit = full_page(), found;

    (void)state;
    encode(&edit, &record);
    assert_int_equal(wb_edit_decode(wb_buf_slice(&record), &found), 0);
    assert_int_equal(found.kind, WB_EDIT_PAGE);
    assert_true(found.site == edit.site && found.time_ms == edit.time_ms);
    assert_int_equal(found.prev.log, 7);
    assert_true(found.prev.offset == 123456789012);
    expect_page(&found.page, &edit.page);
    expect_links(&found, some_links, COUNT(some_links));

    edit = (struct wb_edit){.kind = WB_EDIT_PAGE, .page = {.url = LIT("x:"), .outcome = WB_OUTCOME_GONE, .simhash = 9}};
    edit.page.type = edit.page.reason = edit.page.etag = edit.page.modified = edit.page.location = WB_SLICE_EMPTY;
    encode(&edit, &record);
    assert_int_equal(wb_edit_decode(wb_buf_slice(&record), &found), 0);
    expect_page(&found.page, &edit.page);
    assert_true(found.page.simhash == 0); /* not recorded without a body */
    expect_links(&found, NULL, 0);
    wb_buf_release(&record);
}

static void test_rules(void **state)
{
    struct wb_buf record = WB_BUF_INIT;
    struct wb_edit found, edit = {.kind = WB_EDIT_RULES, .site = 1, .time_ms = -1,
                                  .rules = {.status = 503, .reason = LIT("status"),
                                            .text = LIT("User-agent: *\nDisallow: /\n"), .expires_ms = -9}};

    (void)state;
    encode(&edit, &record);
    assert_int_equal(wb_edit_decode(wb_buf_slice(&record), &found), 0);
    assert_int_equal(found.rules.status, 503);
    assert_int_equal(found.rules.expires_ms, -9);
    assert_int_equal(found.time_ms, -1);
    expect_slice(found.rules.reason, edit.rules.reason);
    expect_slice(found.rules.text, edit.rules.text);
    wb_buf_release(&record);
}

static void test_plain_kinds(void **state)
{
    static const enum wb_edit_kind kinds[] = {WB_EDIT_VISIT, WB_EDIT_SEEDS, WB_EDIT_REQUEST, WB_EDIT_HINTS,
                                              WB_EDIT_WAIT, WB_EDIT_FINISH, WB_EDIT_PUSH, WB_EDIT_EXPUNGE, WB_EDIT_ASK};
    struct wb_buf record = WB_BUF_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT(kinds); i++) {
        bool seeds = kinds[i] == WB_EDIT_SEEDS, linked = seeds || kinds[i] == WB_EDIT_HINTS;
        struct wb_edit found, edit = {.kind = kinds[i], .site = i, .text = LIT("https://example.org/"),
                                      .until_ms = INT64_MIN, .count = seeds ? 0 : UINT32_MAX,
                                      .depth.links = seeds ? WB_DEPTH_LINKS_MAX : 0,
                                      .links = linked ? some_links : NULL,
                                      .link_count = linked ? COUNT(some_links) : 0};
        encode(&edit, &record);
        assert_int_equal(wb_edit_decode(wb_buf_slice(&record), &found), 0);
        assert_int_equal(found.kind, kinds[i]);
        assert_true(found.until_ms == INT64_MIN && found.count == edit.count && found.depth.links == edit.depth.links);
        expect_slice(found.text, edit.text);
        assert_int_equal(found.link_count, edit.link_count);
        expect_links(&found, edit.links, edit.link_count);
    }
    wb_buf_release(&record);
}

/* Where a record has a depth, only what wb_depth_code() writes is accepted. */
static void test_depths(void **state)
{
    struct wb_edit edits[] = {
        {.kind = WB_EDIT_PAGE, .page = {.url = LIT("x:"), .outcome = WB_OUTCOME_GONE, .depth.need = WB_DEPTH_NEED_MAX}},
        {.kind = WB_EDIT_SEEDS, .text = LIT(""), .depth.need = WB_DEPTH_NEED_MAX},
    };
    struct wb_buf record = WB_BUF_INIT;
    struct wb_edit found;

    (void)state;
    for (size_t i = 0; i < COUNT(edits); i++) {
        edits[i].page.type = edits[i].page.reason = edits[i].page.etag = edits[i].page.modified = WB_SLICE_EMPTY;
        edits[i].page.location = WB_SLICE_EMPTY;
        encode(&edits[i], &record);
        assert_int_equal(wb_edit_decode(wb_buf_slice(&record), &found), 0);
        struct wb_depth depth = i == 0 ? found.page.depth : found.depth;
        assert_true(depth.need == WB_DEPTH_NEED_MAX && depth.links == 0);
        char *code = memmem(record.ptr + WB_EDIT_HEAD_BYTES, record.len - WB_EDIT_HEAD_BYTES, "\x88\x80\x02", 3);
        assert_non_null(code); /* 0x8008 as a varint */
        code[0]++;
        assert_int_equal(wb_edit_decode(wb_buf_slice(&record), &found), WB_E_CORRUPT);
    }
    wb_buf_release(&record);
}

/* An anchor is cut at 255 bytes, between characters. */
static void test_long_anchor(void **state)
{
    char text[600];
    struct wb_pagelink link = {.url = LIT("http://h/"), .tag = 1}, found_link;
    struct wb_edit found, edit = {.kind = WB_EDIT_SEEDS, .text = WB_SLICE_EMPTY, .links = &link, .link_count = 1};
    struct wb_buf record = WB_BUF_INIT, mem = WB_BUF_INIT;

    (void)state;
    for (size_t i = 0; i < 600; i += 3)
        memcpy(text + i, "\xe2\x82\xac", 3);
    for (size_t shift = 0; shift < 3; shift++) {
        size_t at = 0, begin = shift ? 3 - shift : 0;
        link.anchor = wb_slice(text + begin, 590 - begin);
        encode(&edit, &record);
        assert_int_equal(wb_edit_decode(wb_buf_slice(&record), &found), 0);
        assert_int_equal(wb_edit_links_next(&found, &at, &mem, &found_link), 1);
        assert_in_range(found_link.anchor.len, 253, 255);
        assert_memory_equal(found_link.anchor.ptr, link.anchor.ptr, found_link.anchor.len);
        assert_int_equal((found_link.anchor.len - shift) % 3, 0);
    }
    wb_buf_release(&record);
    wb_buf_release(&mem);
}

/* Links that do not fit into a record are left out and counted. */
static void test_limits(void **state)
{
    size_t long_bytes = WB_URL_MAX_BYTES, count = 600;
    char *urls = malloc(2 * (long_bytes + 1));
    struct wb_pagelink *links = calloc(count, sizeof *links);
    struct wb_buf record = WB_BUF_INIT, mem = WB_BUF_INIT;
    struct wb_edit found, edit = {.kind = WB_EDIT_SEEDS, .text = WB_SLICE_EMPTY, .links = links, .link_count = count};
    struct wb_pagelink link;
    size_t at = 0, kept = 0;

    (void)state;
    memset(urls, 'a', long_bytes + 1);
    memset(urls + long_bytes + 1, 'b', long_bytes + 1);
    /* Neighbours share no bytes. */
    for (size_t i = 0; i < count; i++)
        links[i] = (struct wb_pagelink){.url = wb_slice(urls + i % 2 * (long_bytes + 1), long_bytes),
                                        .anchor = WB_SLICE_EMPTY, .tag = 1};
    links[0].url.len = long_bytes + 1;
    encode(&edit, &record);
    assert_true(record.len <= WB_EDIT_LINKS_BYTES_MAX + 100);
    assert_int_equal(wb_edit_decode(wb_buf_slice(&record), &found), 0);
    assert_int_equal(found.link_count + found.links_left_out, count);
    assert_in_range(found.links_left_out, 2, count / 2);
    while (wb_edit_links_next(&found, &at, &mem, &link) == 1)
        expect_slice(link.url, links[1 + kept++].url);
    assert_int_equal(kept, found.link_count);

    struct wb_edit huge = {.kind = WB_EDIT_RULES, .rules = {.reason = WB_SLICE_EMPTY,
                                                            .text = {calloc(1, WB_EDIT_BYTES_MAX), WB_EDIT_BYTES_MAX}}};
    wb_buf_clear(&record);
    wb_buf_append_str(&record, "before");
    assert_int_equal(wb_edit_encode(&huge, SALT, &record), WB_E_LIMIT);
    assert_int_equal(record.len, 6);
    free((void *)(uintptr_t)huge.rules.text.ptr);
    free(urls);
    free(links);
    wb_buf_release(&record);
    wb_buf_release(&mem);
}

/* A typical page: 60 links to its own and to other sites, with anchors. */
static void test_size(void **state)
{
    char urls[60][96], anchors[60][32];
    struct wb_pagelink links[60];
    struct wb_edit edit = full_page();
    struct wb_buf record = WB_BUF_INIT;

    (void)state;
    for (unsigned i = 0; i < 60; i++) {
        snprintf(urls[i], sizeof urls[i], i % 10 == 9 ? "https://other%u.example.com/some/path/page.html"
                                                      : "https://example.org/docs/chapter%u/section.html", i);
        snprintf(anchors[i], sizeof anchors[i], "Section %u", i);
        links[i] = (struct wb_pagelink){wb_slice_str(urls[i]), wb_slice_str(anchors[i]), 1, WB_PAGELINK_FOLLOW, 0};
    }
    edit.page.links = links;
    edit.page.link_count = 60;
    encode(&edit, &record);
    print_message("# a page with 60 links takes %zu bytes\n", record.len);
    assert_in_range(record.len, 600, 2600);
    wb_buf_release(&record);
}

/* Random links are read as they were written. */
static void test_model(void **state)
{
    uint64_t chance = test_seed();
    struct wb_buf record = WB_BUF_INIT;
    static char text[4000][48], anchors[4000][300];
    static struct wb_pagelink links[4000];

    (void)state;
    for (unsigned round = 0; round < 300; round++) {
        size_t count = chance_below(&chance, round % 50 ? 40 : 4000);
        struct wb_edit found, edit = full_page();
        for (size_t i = 0; i < count; i++) {
            size_t len = chance_below(&chance, sizeof text[i]), anchor = chance_below(&chance,
                                                                                      4) ? 0 : chance_below(&chance,
                                                                                                            256);
            for (size_t k = 0; k < len; k++)
                text[i][k] = (char)('a' + chance_below(&chance, 2) * (k > 20));
            memset(anchors[i], 'x', anchor);
            links[i] = (struct wb_pagelink){wb_slice(text[i], len), wb_slice(anchors[i], anchor),
                                            (uint8_t)chance_next(&chance),
                                            (uint8_t)chance_below(&chance, 4),
                                            chance_below(&chance, 3) ? 0 : (int64_t)chance_next(&chance)};
        }
        edit.page.links = links;
        edit.page.link_count = count;
        encode(&edit, &record);
        assert_int_equal(wb_edit_decode(wb_buf_slice(&record), &found), 0);
        expect_page(&found.page, &edit.page);
        expect_links(&found, links, count);
    }
    wb_buf_release(&record);
}

static void walk_links(const struct wb_edit *edit)
{
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_pagelink link;
    size_t at = 0, last = 0;

    while (wb_edit_links_next(edit, &at, &mem, &link) == 1) {
        assert_true(at > last && link.url.len <= WB_URL_MAX_BYTES);
        last = at;
    }
    wb_buf_release(&mem);
}

/* Every flipped bit is noticed. Decoding the record anyway, or any part of it, does no harm. */
static void test_damage(void **state)
{
    struct wb_buf record = WB_BUF_INIT;
    struct wb_edit edit = full_page(), found;

    (void)state;
    encode(&edit, &record);
    for (size_t i = 0; i < record.len * 8; i++) {
        record.ptr[i / 8] = (char)(record.ptr[i / 8] ^ 1 << i % 8);
        assert_false(wb_edit_is_intact(wb_buf_slice(&record), SALT));
        if (wb_edit_decode(wb_buf_slice(&record), &found) == 0)
            walk_links(&found);
        record.ptr[i / 8] = (char)(record.ptr[i / 8] ^ 1 << i % 8);
    }
    for (size_t len = WB_EDIT_HEAD_BYTES; len < record.len; len++) {
        char *part = malloc(len); /* exactly as long as needed, so that the sanitizer sees every step beyond it */
        memcpy(part, record.ptr, len);
        assert_false(wb_edit_is_intact(wb_slice(part, len), SALT));
        if (wb_edit_decode(wb_slice(part, len), &found) == 0)
            walk_links(&found);
        free(part);
    }
    wb_buf_release(&record);
}

static void test_memory(void **state)
{
    struct wb_edit edit = full_page();

    (void)state;
    for (uint64_t nth = 1;; nth++) {
        struct wb_buf record = WB_BUF_INIT;
        wb_fault_arm(WB_FAULT_ALLOC, nth, 0xffff);
        int err = wb_edit_encode(&edit, SALT, &record);
        bool struck = wb_fault_struck();
        wb_fault_disarm();
        assert_int_equal(err, struck ? WB_E_NOMEM : 0);
        assert_int_equal(record.len == 0, struck);
        wb_buf_release(&record);
        if (!struck) {
            assert_true(nth > 1);
            break;
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page),   cmocka_unit_test(test_rules), cmocka_unit_test(test_plain_kinds),
        cmocka_unit_test(test_depths),
        cmocka_unit_test(test_long_anchor),
        cmocka_unit_test(test_limits), cmocka_unit_test(test_size),  cmocka_unit_test(test_model),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
