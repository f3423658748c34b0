/* test_payload.c - removing codings: each one, several, cut, damaged, claimed falsely, and without memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <errno.h>
#include <zlib.h>
#include <zstd.h>

#include "base/error.h"
#include "os/fault.h"
#include "page/page.h"

#define LIMIT ((size_t)1 << 20)

/* ---- making payloads --------------------------------------------------------------- */

static struct wb_buf text_of(size_t len)
{
    struct wb_buf text = WB_BUF_INIT;

    for (unsigned i = 0; text.len < len; i++)
        assert_int_equal(wb_buf_printf(&text, "<p>line %u of a page, %x</p>\n", i, i * 2654435761u), 0);
    text.len = len;
    return text;
}

/* window_bits is zlib's: 31 for gzip, 15 for zlib, -15 for raw deflate. */
static struct wb_buf deflated(struct wb_slice plain, int window_bits)
{
    struct wb_buf out = WB_BUF_INIT;
    z_stream z = {.next_in = NULL};

    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    assert_int_equal(wb_buf_reserve(&out, deflateBound(&z, plain.len) + 64), 0);
    z.next_in = (unsigned char *)(uintptr_t)plain.ptr;
    z.avail_in = (unsigned)plain.len;
    z.next_out = (unsigned char *)out.ptr;
    z.avail_out = (unsigned)out.cap;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    out.len = out.cap - z.avail_out;
    deflateEnd(&z);
    return out;
}

static struct wb_buf zstd_of(struct wb_slice plain)
{
    struct wb_buf out = WB_BUF_INIT;

    assert_int_equal(wb_buf_reserve(&out, ZSTD_compressBound(plain.len)), 0);
    out.len = ZSTD_compress(out.ptr, out.cap, plain.ptr, plain.len, 3);
    assert_false(ZSTD_isError(out.len));
    return out;
}

/* Writes brotli meta-blocks that store bytes unchanged (RFC 7932, 9.2), because we have no encoder. */
static struct wb_buf brotli_of(struct wb_slice plain)
{
    struct wb_buf out = WB_BUF_INIT;
    unsigned shift = 1;

    for (size_t at = 0; at < plain.len; at += 65536) {
        size_t len = plain.len - at < 65536 ? plain.len - at : 65536;
        uint32_t head = (uint32_t)((len - 1) << 3 | 1u << 19) << shift;
        char bytes[3] = {(char)head, (char)(head >> 8), (char)(head >> 16)};
        assert_int_equal(wb_buf_append(&out, bytes, 3), 0);
        assert_int_equal(wb_buf_append(&out, plain.ptr + at, len), 0);
        shift = 0;
    }
    assert_int_equal(wb_buf_append_char(&out, (char)(3u << shift)), 0);
    return out;
}

static struct wb_buf chunked_of(struct wb_slice plain, size_t piece)
{
    struct wb_buf out = WB_BUF_INIT;

    for (size_t at = 0; at < plain.len; at += piece) {
        size_t len = plain.len - at < piece ? plain.len - at : piece;
        assert_int_equal(wb_buf_printf(&out, "%zx;ext=1\r\n", len), 0);
        assert_int_equal(wb_buf_append(&out, plain.ptr + at, len), 0);
        assert_int_equal(wb_buf_append_str(&out, "\r\n"), 0);
    }
    assert_int_equal(wb_buf_append_str(&out, "0\r\nTrailer: x\r\n\r\n"), 0);
    return out;
}

/* ---- checking --------------------------------------------------------------------------- */

static struct wb_payload_result decode(const char *headers, struct wb_slice body, size_t limit, struct wb_buf *out)
{
    struct wb_buf head = WB_BUF_INIT;
    struct wb_payload_result decoded;

    assert_int_equal(wb_buf_printf(&head, "HTTP/1.1 200 OK\r\nServer: x\r\n%s", headers), 0);
    assert_int_equal(wb_payload_decode(wb_buf_slice(&head), body, limit, out, &decoded), 0);
    wb_buf_release(&head);
    return decoded;
}

static void assert_same(const struct wb_buf *got, struct wb_slice want)
{
    if (!wb_slice_equal(wb_buf_slice(got), want))
        fail_msg("%zu bytes that are not the %zu expected", got->len, want.len);
}

/*
 * Checks that `coded` decodes to `plain`, is cut off at a limit, and, if it is incomplete, is damaged
 * and gives the beginning of `plain`. Releases coded.
 */
static void assert_decodes(const char *headers, struct wb_buf coded, struct wb_slice plain)
{
    struct wb_buf out = WB_BUF_INIT;
    struct wb_payload_result d = decode(headers, wb_buf_slice(&coded), LIMIT, &out);

    assert_true(d.changed && !d.cut && !d.damaged);
    assert_same(&out, plain);
    d = decode(headers, wb_buf_slice(&coded), plain.len, &out);
    assert_true(d.changed && !d.cut && !d.damaged);
    assert_same(&out, plain);
    d = decode(headers, wb_buf_slice(&coded), plain.len - 1, &out);
    assert_true(d.changed && d.cut && !d.damaged);
    assert_same(&out, wb_slice(plain.ptr, plain.len - 1));
    for (size_t len = coded.len / 2; len < coded.len - 20; len += coded.len / 7) {
        d = decode(headers, wb_slice(coded.ptr, len), LIMIT, &out);
        assert_true(d.changed && d.damaged && !d.cut);
        assert_same(&out, wb_slice(plain.ptr, out.len));
        assert_true(out.len < plain.len);
    }
    wb_buf_release(&out);
    wb_buf_release(&coded);
}

static void test_each(void **state)
{
    (void)state;
    static const size_t sizes[] = {1000, 70000, 300000};

    for (size_t i = 0; i < 3; i++) {
        struct wb_buf text = text_of(sizes[i]);
        struct wb_slice plain = wb_buf_slice(&text);
        assert_decodes("Content-Encoding: gzip\r\n", deflated(plain, 31), plain);
        assert_decodes("content-encoding: X-GZIP\r\n", deflated(plain, 31), plain);
        assert_decodes("Content-Encoding: deflate\r\n", deflated(plain, 15), plain);
        assert_decodes("Content-Encoding: deflate\r\n", deflated(plain, -15), plain);
        assert_decodes("Content-Encoding: br\r\n", brotli_of(plain), plain);
        assert_decodes("Content-Encoding: zstd\r\n", zstd_of(plain), plain);
        assert_decodes("Transfer-Encoding: chunked\r\n", chunked_of(plain, 999), plain);
        wb_buf_release(&text);
    }
}

static void test_several(void **state)
{
    (void)state;
    struct wb_buf text = text_of(50000), out = WB_BUF_INIT;
    struct wb_buf gzip = deflated(wb_buf_slice(&text), 31);
    struct wb_buf br = brotli_of(wb_buf_slice(&gzip));
    struct wb_buf chunked = chunked_of(wb_buf_slice(&br), 100);

    struct wb_payload_result d = decode("Content-Encoding: gzip, identity,br\r\nTransfer-Encoding: chunked\r\n",
                                        wb_buf_slice(&chunked), LIMIT, &out);
    assert_true(d.changed && !d.damaged && !d.cut);
    assert_same(&out, wb_buf_slice(&text));
    d = decode("Transfer-Encoding: chunked\r\nContent-Encoding: gzip\r\nContent-Encoding: br\r\n",
               wb_buf_slice(&chunked), 100, &out);
    assert_true(d.changed && d.cut);
    /* An unknown outer coding hides the inner ones, unless the bytes say otherwise. */
    d = decode("Content-Encoding: gzip, compress\r\n", wb_buf_slice(&text), LIMIT, &out);
    assert_true(!d.changed && !d.coded);
    d = decode("Transfer-Encoding: gzip, squeezed\r\n", wb_buf_slice(&gzip), LIMIT, &out);
    assert_true(!d.changed && !d.coded);
    /* More codings than anybody needs. */
    d = decode("Content-Encoding: gzip,gzip,gzip,gzip,gzip,gzip,gzip,gzip,gzip\r\n", wb_buf_slice(&gzip), LIMIT, &out);
    assert_true(!d.changed && d.damaged);
    wb_buf_release(&text);
    wb_buf_release(&out);
    wb_buf_release(&gzip);
    wb_buf_release(&br);
    wb_buf_release(&chunked);
}

/* Names that are not codings are ignored; other names beside them still count. */
static void test_unknown_names(void **state)
{
    static const char *const names[] = {
        "none",        "utf-8",          "UTF-8", "binary", "8bit", "text/html", "", " ", ",", "identity, identity",
        "utf-8, none", "iso-8859-1;q=1", "\"",    "gzip2"};
    struct wb_buf text = text_of(5000), out = WB_BUF_INIT, headers = WB_BUF_INIT;
    struct wb_buf gzip = deflated(wb_buf_slice(&text), 31);
    struct wb_buf chunked = chunked_of(wb_buf_slice(&text), 100);

    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        wb_buf_clear(&headers);
        assert_int_equal(wb_buf_printf(&headers, "Content-Encoding: %s\r\n", names[i]), 0);
        assert_int_equal(wb_buf_terminate(&headers), 0);
        struct wb_payload_result d = decode(headers.ptr, wb_buf_slice(&text), LIMIT, &out);
        assert_false(d.changed || d.damaged || d.cut || d.coded);
        d = decode(headers.ptr, wb_buf_slice(&gzip), LIMIT, &out); /* a gzip file stays a gzip file */
        assert_false(d.changed || d.damaged || d.cut || d.coded);
        assert_int_equal(wb_buf_append_str(&headers, "Transfer-Encoding: chunked\r\n"), 0);
        assert_int_equal(wb_buf_terminate(&headers), 0);
        d = decode(headers.ptr, wb_buf_slice(&chunked), LIMIT, &out);
        assert_true(d.changed && !d.damaged);
        assert_same(&out, wb_buf_slice(&text));
        wb_buf_clear(&headers);
        assert_int_equal(wb_buf_printf(&headers, "Content-Encoding: gzip, %s\r\n", names[i]), 0);
        assert_int_equal(wb_buf_terminate(&headers), 0);
        d = decode(headers.ptr, wb_buf_slice(&gzip), LIMIT, &out);
        assert_true(d.changed && !d.damaged);
        assert_same(&out, wb_buf_slice(&text));
    }
    struct wb_payload_result d = decode("Content-Encoding: gzip\r\n", wb_buf_slice(&text), LIMIT, &out);
    assert_true(!d.changed && d.coded);
    wb_buf_release(&text);
    wb_buf_release(&out);
    wb_buf_release(&headers);
    wb_buf_release(&gzip);
    wb_buf_release(&chunked);
}

static void test_gzip_members(void **state)
{
    (void)state;
    struct wb_buf text = text_of(3000), out = WB_BUF_INIT;
    struct wb_buf first = deflated(wb_slice(text.ptr, 1000), 31),
                  second = deflated(wb_slice(text.ptr + 1000, 2000), 31);

    assert_int_equal(wb_buf_append_slice(&first, wb_buf_slice(&second)), 0);
    struct wb_payload_result d = decode("Content-Encoding: gzip\r\n", wb_buf_slice(&first), LIMIT, &out);
    assert_true(d.changed && !d.damaged);
    assert_same(&out, wb_buf_slice(&text));
    assert_int_equal(wb_buf_append_str(&first, "what a server put behind it"), 0);
    d = decode("Content-Encoding: gzip\r\n", wb_buf_slice(&first), LIMIT, &out);
    assert_true(d.changed && !d.damaged);
    assert_same(&out, wb_buf_slice(&text));
    wb_buf_release(&text);
    wb_buf_release(&out);
    wb_buf_release(&first);
    wb_buf_release(&second);
}

/* Headers that are not true leave the body alone. */
static void test_not_coded(void **state)
{
    (void)state;
    static const char *const headers[] = {
        "Content-Encoding: gzip\r\n",
        "Content-Encoding: deflate\r\n",
        "Content-Encoding: br\r\n",
        "Content-Encoding: zstd\r\n",
        "Transfer-Encoding: chunked\r\n",
        "Content-Encoding: identity\r\n",
        "Content-Encoding: none\r\n",
        "",
        "Content-Encoding: gzip, br\r\nTransfer-Encoding: chunked\r\n",
        "X-Crawl-Content-Encoding: gzip\r\n",
    };
    static const char *const bodies[] = {
        "<!DOCTYPE html>\n<html><head><title>a page that nobody coded</title></head></html>",
        "{\"json\": [1, 2, 3], \"and\": \"so on, far enough to be sure of it\"}",
        "",
        "deadbeef is no chunk size here",
    };

    for (size_t i = 0; i < sizeof headers / sizeof *headers; i++) {
        for (size_t j = 0; j < sizeof bodies / sizeof *bodies; j++) {
            struct wb_buf out = WB_BUF_INIT;
            struct wb_payload_result d = decode(headers[i], wb_slice_str(bodies[j]), LIMIT, &out);
            if (d.changed || d.cut || d.damaged || out.len != 0)
                fail_msg("'%s' changed '%s'", headers[i], bodies[j]);
            wb_buf_release(&out);
        }
    }
}

static void test_damaged(void **state)
{
    (void)state;
    struct wb_buf text = text_of(200000), out = WB_BUF_INIT;
    struct wb_buf gzip = deflated(wb_buf_slice(&text), 31);

    gzip.ptr[gzip.len - 6] ^= 1; /* the checksum is wrong although every byte arrived */
    struct wb_payload_result d = decode("Content-Encoding: gzip\r\n", wb_buf_slice(&gzip), LIMIT, &out);
    assert_true(d.changed && d.damaged);
    assert_same(&out, wb_buf_slice(&text));
    gzip.ptr[gzip.len / 2] ^= 0x55;
    gzip.ptr[gzip.len / 2 + 1] ^= 0x55;
    d = decode("Content-Encoding: gzip\r\n", wb_buf_slice(&gzip), LIMIT, &out);
    assert_true(d.changed && d.damaged && out.len > 1000);
    assert_memory_equal(out.ptr, text.ptr, 1000);
    wb_buf_release(&text);
    wb_buf_release(&out);
    wb_buf_release(&gzip);
}

static void test_chunks(void **state)
{
    (void)state;
    static const struct {
        const char *body, *plain;
        bool damaged;
    } cases[] = {
        {"5\r\nhello\r\n0\r\n\r\n", "hello", false},
        {"5\nhello\n0\n\n", "hello", false},
        {"5 \r\nhello\r\n3;a=b\r\nabc\r\n000\r\n", "helloabc", false},
        {"5\r\nhello\r\n", "hello", true},
        {"5\r\nhello\r\nzz\r\n", "hello", true},
        {"5\r\nhello\r\n5\r\nwo", "hellowo", true},
        {"3\r\nabc\r\n5\r\nhelloworld", "abchello", true},
        {"ff\r\nhel", "hel", true},
        {"ffffffffffffffff\r\nhel", "hel", true},
        {"3\r\nabc\r\nfffffffffffffffff\r\nhel", "abc", true},
        {"0\r\n\r\n", "", false},
    };

    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct wb_buf out = WB_BUF_INIT;
        struct wb_payload_result d = decode("Transfer-Encoding: chunked\r\n", wb_slice_str(cases[i].body), LIMIT, &out);
        if (!d.changed || d.damaged != cases[i].damaged ||
            !wb_slice_equal(wb_buf_slice(&out), wb_slice_str(cases[i].plain)))
            fail_msg("case %zu: '%.*s', damaged %d", i, WB_SLICE_ARG(wb_buf_slice(&out)), d.damaged);
        wb_buf_release(&out);
    }
}

/* A bomb produces no more than the limit, whatever size it claims. */
static void test_bomb(void **state)
{
    (void)state;
    size_t len = 200u << 20;
    char *zeros = calloc(1, len);
    assert_non_null(zeros);
    struct wb_buf gzip = deflated(wb_slice(zeros, len), 31), out = WB_BUF_INIT;
    free(zeros);

    struct wb_payload_result d = decode("Content-Encoding: gzip\r\n", wb_buf_slice(&gzip), LIMIT, &out);
    assert_true(d.changed && d.cut && out.len == LIMIT && out.cap <= 2 * LIMIT);
    wb_buf_release(&out);
    wb_buf_release(&gzip);
}

/* Each allocation fails once: a clean error or, if zlib hides the failure, nothing decoded wrongly. */
static void test_memory(void **state)
{
    (void)state;
    struct wb_buf text = text_of(5000), out = WB_BUF_INIT;
    struct wb_buf gzip = deflated(wb_buf_slice(&text), 31), br = brotli_of(wb_buf_slice(&gzip));
    struct wb_buf chunked = chunked_of(wb_buf_slice(&br), 100);
    struct wb_slice head =
        WB_SLICE_LIT("HTTP/1.1 200 OK\r\nContent-Encoding: gzip, br\r\nTransfer-Encoding: chunked\r\n");
    struct wb_payload_result d;
    bool struck = true;
    unsigned failed = 0;

    for (uint64_t nth = 1; struck; nth++) {
        wb_fault_arm(WB_FAULT_ALLOC, nth, ENOMEM);
        int err = wb_payload_decode(head, wb_buf_slice(&chunked), LIMIT, &out, &d);
        struck = wb_fault_struck();
        wb_fault_disarm();
        assert_true(err == (struck ? WB_E_NOMEM : 0));
        failed += struck;
        wb_buf_release(&out);
    }
    assert_true(failed >= 3);
    wb_buf_release(&text);
    wb_buf_release(&gzip);
    wb_buf_release(&br);
    wb_buf_release(&chunked);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each),         cmocka_unit_test(test_several),   cmocka_unit_test(test_unknown_names),
        cmocka_unit_test(test_gzip_members), cmocka_unit_test(test_not_coded), cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_chunks),       cmocka_unit_test(test_bomb),      cmocka_unit_test(test_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
