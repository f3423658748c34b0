/* test_record.c - the page record: what is written reads back, and each rule of the format is enforced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/bytes.h"
#include "base/error.h"
#include "page/page.h"

#include "../allocfail.h"

/* The offsets of the fields, as record.c draws them. */
enum { FORMAT_AT = 36, KIND_AT = 37, FLAGS_AT = 40, FIXED_BYTES = 56 };
enum { FLAG_PAYLOAD_SHA1 = 2, FLAG_KEY_IN_URL = 4, FLAG_DIGESTED = 8 };

static struct wb_page example(void)
{
    struct wb_page page = {
        .url = WB_SLICE_LIT("https://example.com/a?b"),
        .key = WB_SLICE_LIT("example.com/a?b"),
        .head = WB_SLICE_LIT("HTTP/1.1 200 OK\r\nX: y\r\n"),
        .type = WB_SLICE_LIT("text/html"),
        .charset = WB_SLICE_LIT("utf-8"),
        .body = WB_SLICE_LIT("<p>hello\0world"),
        .time_ms = 1767323045678,
        .lifetime = 30,
        .status = 200,
        .kind = WB_PAGE_RESPONSE,
    };

    page.body_bytes = page.body.len;
    page.id = wb_pageid_of_key(page.key);
    return page;
}

static void check_same(const struct wb_page *a, const struct wb_page *b)
{
    assert_true(wb_slice_equal(a->url, b->url));
    assert_true(wb_slice_equal(a->key, b->key));
    assert_true(wb_slice_equal(a->head, b->head));
    assert_true(wb_slice_equal(a->type, b->type));
    assert_true(wb_slice_equal(a->charset, b->charset));
    assert_true(wb_slice_equal(a->body, b->body));
    assert_true(a->time_ms == b->time_ms);
    assert_true(a->body_bytes == b->body_bytes);
    assert_int_equal(a->lifetime, b->lifetime);
    assert_int_equal(a->status, b->status);
    assert_int_equal(a->kind, b->kind);
    assert_int_equal(a->truncated, b->truncated);
    assert_int_equal(a->digested, b->digested);
    assert_int_equal(a->has_payload_sha1, b->has_payload_sha1);
    assert_memory_equal(a->md5, b->md5, sizeof a->md5);
    assert_memory_equal(a->sha1, b->sha1, sizeof a->sha1);
    assert_memory_equal(a->payload_sha1, b->payload_sha1, sizeof a->payload_sha1);
}

static void check_round_trip(const struct wb_page *page)
{
    struct wb_buf record = WB_BUF_INIT;
    struct wb_page read;

    assert_int_equal(wb_buf_append_str(&record, "before"), 0); /* the record is appended to what is there */
    assert_int_equal(wb_page_encode(page, &record), 0);
    assert_memory_equal(record.ptr, "before", 6);
    assert_int_equal(wb_page_decode(wb_slice(record.ptr + 6, record.len - 6), &read), 0);
    check_same(page, &read);
    assert_int_equal(read.lifetime_count, read.lifetime);
    wb_buf_release(&record);
}

static void test_round_trip(void **state)
{
    struct wb_page page = example();

    (void)state;
    check_round_trip(&page);
    wb_page_digest(&page);
    check_round_trip(&page);
    page.has_payload_sha1 = page.truncated = true;
    memset(page.payload_sha1, 0xab, sizeof page.payload_sha1);
    check_round_trip(&page);
    page.url = WB_SLICE_LIT("http://elsewhere.example/");
    check_round_trip(&page);
    page.time_ms = INT64_MIN;
    page.status = UINT16_MAX;
    page.lifetime = UINT32_MAX;
    page.kind = WB_PAGE_RESOURCE;
    check_round_trip(&page);
    page.url = page.key = page.head = page.type = page.charset = page.body = WB_SLICE_EMPTY;
    page.body_bytes = 0;
    check_round_trip(&page);
}

static void test_large(void **state)
{
    static char large[300000];
    struct wb_page page = example();

    (void)state;
    memset(large, 'z', sizeof large);
    page.body = page.head = wb_slice(large, sizeof large);
    page.body_bytes = page.body.len;
    page.url = wb_slice(large, 70000);
    page.key = wb_slice(large, 69000);
    check_round_trip(&page);
}

/* ---- digests later ------------------------------------------------------------------------------- */

static void test_digest_later(void **state)
{
    struct wb_page page = example(), read;
    struct wb_buf record = WB_BUF_INIT, done = WB_BUF_INIT;

    (void)state;
    assert_int_equal(wb_page_encode(&page, &record), 0);
    struct wb_record_digest one = {record.ptr, record.len, page.body.len};
    assert_int_equal(wb_page_record_digest(&one, 1), 0);
    wb_page_digest(&page);
    assert_int_equal(wb_page_encode(&page, &done), 0);
    assert_true(wb_slice_equal(wb_buf_slice(&record), wb_buf_slice(&done)));
    record.ptr[0] ^= 1; /* a record with digests is left alone, even if they are wrong */
    assert_int_equal(wb_page_record_digest(&one, 1), 0);
    assert_int_equal(wb_page_decode(wb_buf_slice(&record), &read), 0);
    assert_int_equal(read.md5[0], page.md5[0] ^ 1);
    wb_buf_release(&record);
    wb_buf_release(&done);
}

/* Many records of many lengths, some of them with digests, give the same as one by one. */
static void test_digest_many(void **state)
{
    enum { MANY = 100 };
    static char text[MANY * 40];
    struct wb_buf records[MANY];
    struct wb_record_digest list[MANY];
    struct wb_page page, read;

    (void)state;
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)(i * 31 % 251);
    for (size_t i = 0; i < MANY; i++) {
        page = example();
        page.body = wb_slice(text, i * i % sizeof text);
        if (i % 7 == 3)
            wb_page_digest(&page);
        records[i] = WB_BUF_INIT;
        assert_int_equal(wb_page_encode(&page, &records[i]), 0);
        list[i] = (struct wb_record_digest){records[i].ptr, records[i].len, page.body.len};
    }
    assert_int_equal(wb_page_record_digest(list, MANY), 0);
    assert_int_equal(wb_page_record_digest(list, 0), 0);
    for (size_t i = 0; i < MANY; i++) {
        assert_int_equal(wb_page_decode(wb_buf_slice(&records[i]), &read), 0);
        page = (struct wb_page){.body = wb_slice(text, i * i % sizeof text)};
        wb_page_digest(&page);
        assert_true(read.digested);
        assert_memory_equal(read.md5, page.md5, sizeof page.md5);
        assert_memory_equal(read.sha1, page.sha1, sizeof page.sha1);
        wb_buf_release(&records[i]);
    }
}

/* ---- the rules --------------------------------------------------------------------------------------- */

static int decode_changed(const struct wb_buf *record, size_t at, char value)
{
    struct wb_page page;
    char before = record->ptr[at];

    record->ptr[at] = value;
    int err = wb_page_decode(wb_buf_slice(record), &page);
    record->ptr[at] = before;
    return err;
}

static void test_rules(void **state)
{
    struct wb_page page = example(), read;
    struct wb_buf record = WB_BUF_INIT;

    (void)state;
    assert_int_equal(wb_page_encode(&page, &record), 0);
    assert_int_equal(record.ptr[FLAGS_AT], FLAG_KEY_IN_URL);
    assert_int_equal(decode_changed(&record, FORMAT_AT, 2), WB_E_NEWER);
    assert_string_equal(wb_error_message(), "the page record has format 2; this program reads format 1");
    assert_int_equal(decode_changed(&record, FORMAT_AT, (char)255), WB_E_NEWER);
    assert_int_equal(decode_changed(&record, FORMAT_AT, 0), WB_E_NEWER);
    assert_int_equal(decode_changed(&record, KIND_AT, 0), WB_E_CORRUPT);
    assert_int_equal(decode_changed(&record, KIND_AT, 3), WB_E_CORRUPT);
    assert_int_equal(decode_changed(&record, FLAGS_AT, 16 | FLAG_KEY_IN_URL), WB_E_CORRUPT);
    assert_int_equal(decode_changed(&record, FLAGS_AT, (char)(128 | FLAG_KEY_IN_URL)), WB_E_CORRUPT);
    /* Without the payload digest, or the separate key, that the flags promise, the lengths are misplaced. */
    assert_int_equal(decode_changed(&record, FLAGS_AT, FLAG_KEY_IN_URL | FLAG_PAYLOAD_SHA1), WB_E_CORRUPT);
    assert_int_equal(decode_changed(&record, FLAGS_AT, 0), WB_E_CORRUPT);
    /* Each of the seven lengths: url, place of the key, key, head, type, charset, body. */
    for (size_t i = 0; i < 7; i++) {
        char value = record.ptr[FIXED_BYTES + i];
        bool in_url = i == 1 || i == 2; /* smaller values are still inside the url */
        assert_int_equal(decode_changed(&record, FIXED_BYTES + i, (char)(value + 1)), WB_E_CORRUPT);
        if (value && !in_url)
            assert_int_equal(decode_changed(&record, FIXED_BYTES + i, (char)(value - 1)), WB_E_CORRUPT);
        assert_int_equal(decode_changed(&record, FIXED_BYTES + i, (char)0xff), WB_E_CORRUPT);
    }
    for (size_t len = 0; len < record.len; len++)
        assert_int_equal(wb_page_decode(wb_slice(record.ptr, len), &read), WB_E_CORRUPT);
    assert_int_equal(wb_buf_append_char(&record, 'x'), 0);
    assert_int_equal(wb_page_decode(wb_buf_slice(&record), &read), WB_E_CORRUPT);
    wb_buf_release(&record);
}

/* Lengths near 2^64 must not wrap around. */
static void test_huge_lengths(void **state)
{
    struct wb_page page = example(), read;
    struct wb_buf record = WB_BUF_INIT;

    (void)state;
    assert_int_equal(wb_page_encode(&page, &record), 0);
    for (size_t i = 0; i < 7; i++) {
        char bytes[FIXED_BYTES + 7 * WB_VARINT_MAX + 200] = {0};
        size_t at = FIXED_BYTES;
        memcpy(bytes, record.ptr, FIXED_BYTES);
        for (size_t j = 0; j < 7; j++)
            at += wb_put_varint(bytes + at, j == i ? UINT64_MAX - 3 : 4);
        assert_int_equal(wb_page_decode(wb_slice(bytes, sizeof bytes), &read), WB_E_CORRUPT);
    }
    wb_buf_release(&record);
}

static void test_no_memory(void **state)
{
    struct wb_page page = example();
    struct wb_buf record = WB_BUF_INIT;

    (void)state;
    alloc_fail_all();
    assert_int_equal(wb_page_encode(&page, &record), WB_E_NOMEM);
    alloc_fail_none();
    assert_int_equal(record.len, 0);
    wb_buf_release(&record);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),  cmocka_unit_test(test_large), cmocka_unit_test(test_digest_later),
        cmocka_unit_test(test_digest_many), cmocka_unit_test(test_rules), cmocka_unit_test(test_huge_lengths),
        cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
