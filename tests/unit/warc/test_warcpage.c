/* test_warcpage.c - makes pages of records: responses, other records, and what revisits say. */
#include "../expect.h"
#include "warc_support.h"

static struct wb_warc_record record_of(enum wb_warc_type type, const char *uri, const char *content_type,
                                       struct wb_slice block)
{
    return (struct wb_warc_record){.type = type, .header = WB_SLICE_EMPTY, .uri = wb_slice_str(uri),
                                   .content_type = wb_slice_str(content_type), .block = block, .block_bytes = block.len,
                                   .time_ms = 1767323045678, .has_time = true, .problem = ""};
}

static void test_response(void **state)
{
    (void)state;
    struct wb_warc_mem mem = WB_WARC_MEM_INIT;
    struct wb_page page;
    const char *problem;
    struct wb_warc_record r =
        record_of(WB_WARC_RESPONSE, "HTTP://A.example:80/x/../y#z", "application/http; msgtype=response",
                  WB_SLICE_LIT("HTTP/1.1 404 Not Found\r\nContent-Type: Text/HTML; charset=UTF-8\r\n\r\n<p>"));

    assert_int_equal(wb_warc_page(&r, 1000, &mem, &page, &problem), 0);
    expect(page.url, "http://a.example/y#z");
    expect(page.key, "a.example/y");
    struct wb_pageid id = wb_pageid_of_key(page.key);
    assert_true(wb_pageid_equal(page.id, id));
    expect(page.head, "HTTP/1.1 404 Not Found\r\nContent-Type: Text/HTML; charset=UTF-8\r\n");
    expect(page.type, "text/html");
    expect(page.charset, "utf-8");
    expect(page.body, "<p>");
    assert_int_equal(page.status, 404);
    assert_int_equal(page.kind, WB_PAGE_RESPONSE);
    assert_int_equal(page.time_ms, 1767323045678);
    assert_int_equal(page.body_bytes, 3);
    assert_true(!page.truncated && !page.digested && !page.has_payload_sha1);
    assert_string_equal(problem, "");
    wb_warc_mem_release(&mem);
}

static void test_others(void **state)
{
    (void)state;
    struct wb_warc_mem mem = WB_WARC_MEM_INIT;
    struct wb_page page;
    const char *problem;
    struct wb_warc_record r;

    r = record_of(WB_WARC_RESOURCE, "http://a.example/f", "text/plain; charset=utf-8",
                  WB_SLICE_LIT("HTTP/1.1 200 OK\r\n\r\nx"));
    assert_int_equal(wb_warc_page(&r, 1000, &mem, &page, &problem), 0);
    expect(page.body, "HTTP/1.1 200 OK\r\n\r\nx");
    expect(page.type, "text/plain");
    expect(page.charset, "utf-8");
    expect(page.head, "");
    assert_true(page.kind == WB_PAGE_RESOURCE && page.status == 200);

    r = record_of(WB_WARC_RESPONSE, "dns:a.example", "text/dns",
                  WB_SLICE_LIT("20260102030405\na.example. 1 IN A 192.0.2.1\n"));
    assert_int_equal(wb_warc_page(&r, 1000, &mem, &page, &problem), 0);
    assert_true(page.kind == WB_PAGE_RESOURCE && page.status == 200);
    expect(page.type, "text/dns");

    r = record_of(WB_WARC_ARC, "http://a.example/with a blank", "text/html",
                  WB_SLICE_LIT("HTTP/1.0 200 OK\nA: b\n\nbody"));
    assert_int_equal(wb_warc_page(&r, 1000, &mem, &page, &problem), 0);
    assert_true(page.kind == WB_PAGE_RESPONSE);
    expect(page.url, "http://a.example/with%20a%20blank");
    expect(page.body, "body");
    expect(page.type, "");

    r = record_of(WB_WARC_RESPONSE, "", "application/http", WB_SLICE_LIT("HTTP/1.1 200 OK\r\n\r\n"));
    assert_int_equal(wb_warc_page(&r, 1000, &mem, &page, &problem), WB_E_PROTO);
    r = record_of(WB_WARC_RESPONSE, "http://[", "application/http", WB_SLICE_LIT("HTTP/1.1 200 OK\r\n\r\n"));
    assert_int_equal(wb_warc_page(&r, 1000, &mem, &page, &problem), WB_E_PROTO);
    r = record_of(WB_WARC_REQUEST, "http://a.example/", "application/http", WB_SLICE_LIT("GET / HTTP/1.1\r\n\r\n"));
    assert_int_equal(wb_warc_page(&r, 1000, &mem, &page, &problem), WB_E_PROTO);
    wb_warc_mem_release(&mem);
}

static void test_coded(void **state)
{
    (void)state;
    struct wb_warc_mem mem = WB_WARC_MEM_INIT;
    struct wb_buf block = WB_BUF_INIT, gzip = gzip_of(WB_SLICE_LIT("the body, which was coded on its way"));
    struct wb_page page;
    const char *problem;

    assert_int_equal(
        wb_buf_printf(&block, "HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: %zu\r\n\r\n", gzip.len), 0);
    assert_int_equal(wb_buf_append_slice(&block, wb_buf_slice(&gzip)), 0);
    struct wb_warc_record r =
        record_of(WB_WARC_RESPONSE, "http://a.example/", "application/http", wb_buf_slice(&block));
    r.header = WB_SLICE_LIT("WARC-Payload-Digest: sha1:AAAQEAYEAUDAOCAJBIFQYDIOB4IBCEQT\r\n");
    assert_int_equal(wb_warc_page(&r, 1000, &mem, &page, &problem), 0);
    expect(page.body, "the body, which was coded on its way");
    assert_true(wb_slice_starts(page.head, WB_SLICE_LIT("HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n")));
    assert_true(page.has_payload_sha1 && !page.truncated);
    for (uint8_t i = 0; i < WB_SHA1_BYTES; i++)
        assert_int_equal(page.payload_sha1[i], i);

    assert_int_equal(wb_warc_page(&r, 8, &mem, &page, &problem), 0);
    expect(page.body, "the body");
    assert_true(page.truncated && problem[0]);

    r.block.len -= 12;
    assert_int_equal(wb_warc_page(&r, 1000, &mem, &page, &problem), 0);
    assert_true(page.truncated);
    assert_non_null(strstr(problem, "damaged"));
    wb_buf_release(&block);
    wb_buf_release(&gzip);
    wb_warc_mem_release(&mem);
}

static void test_truncated(void **state)
{
    (void)state;
    struct wb_warc_mem mem = WB_WARC_MEM_INIT;
    struct wb_page page;
    const char *problem;
    struct wb_warc_record r =
        record_of(WB_WARC_RESOURCE, "http://a.example/f", "text/plain", WB_SLICE_LIT("0123456789"));

    assert_int_equal(wb_warc_page(&r, 10, &mem, &page, &problem), 0);
    assert_true(!page.truncated && page.body.len == 10);
    assert_int_equal(wb_warc_page(&r, 9, &mem, &page, &problem), 0);
    assert_true(page.truncated && page.body.len == 9 && page.body_bytes == 9 && problem[0]);
    r.truncated = true;
    assert_int_equal(wb_warc_page(&r, 10, &mem, &page, &problem), 0);
    assert_true(page.truncated && !problem[0]);
    r.truncated = false;
    r.cut = true;
    assert_int_equal(wb_warc_page(&r, 10, &mem, &page, &problem), 0);
    assert_true(page.truncated && problem[0]);
    wb_warc_mem_release(&mem);
}

static void test_revisit(void **state)
{
    (void)state;
    static const struct {
        const char *profile;
        bool known, not_modified;
    } profiles[] = {
        {"http://netpreserve.org/warc/1.1/revisit/identical-payload-digest", true, false},
        {"http://netpreserve.org/warc/1.0/revisit/identical-payload-digest", true, false},
        {"http://netpreserve.org/warc/1.0/revisit/uri-agnostic-identical-payload-digest", true, false},
        {"http://netpreserve.org/warc/1.1/revisit/server-not-modified", true, true},
        {"http://example.org/my-own", false, false},
    };
    struct wb_warc_revisit revisit;
    struct wb_warc_record r = record_of(WB_WARC_REVISIT, "http://a.example/", "application/http", WB_SLICE_EMPTY);

    for (size_t i = 0; i < sizeof profiles / sizeof *profiles; i++) {
        char header[400];
        snprintf(header, sizeof header,
                 "WARC-Profile: %s\r\nWARC-Payload-Digest: SHA1:000102030405060708090A0B0C0D0E0F10111213\r\n"
                 "WARC-Refers-To-Target-URI: <http://b.example/>\r\nWARC-Refers-To-Date: 2026-01-02T03:04:05Z\r\n",
                 profiles[i].profile);
        r.header = wb_slice_str(header);
        wb_warc_revisit(&r, &revisit);
        assert_int_equal(revisit.known_profile, profiles[i].known);
        assert_int_equal(revisit.not_modified, profiles[i].not_modified);
        assert_true(revisit.has_sha1 && revisit.sha1[19] == 19);
        expect(revisit.refers_uri, "http://b.example/");
        assert_int_equal(revisit.refers_time_ms, 1767323045000);
    }
    r.header = WB_SLICE_LIT("WARC-Payload-Digest: sha256:0001\r\nWARC-Refers-To-Date: soon\r\n");
    wb_warc_revisit(&r, &revisit);
    assert_true(!revisit.known_profile && !revisit.has_sha1 && revisit.refers_uri.len == 0 &&
                revisit.refers_time_ms == 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_response), cmocka_unit_test(test_others),  cmocka_unit_test(test_coded),
        cmocka_unit_test(test_truncated), cmocka_unit_test(test_revisit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
