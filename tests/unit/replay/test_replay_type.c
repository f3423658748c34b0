/* test_replay_type.c - as what a page is shown that came without a media type. */
#include "replay_support.h"

static void expect_type(const char *type, struct wb_slice body, const char *want)
{
    expect_bytes(body, wb_replay_type(wb_slice_str(type), body), wb_slice_str(want));
}

static void test_unknown(void **state)
{
    static const struct {
        struct wb_slice body;
        const char *want;
    } cases[] = {
#define CASE(body, want) {{body, sizeof(body) - 1}, want}
        CASE("<!DOCTYPE html><p>x", "text/html"),
        CASE("\n\t <!doctype HTML >x", "text/html"),
        CASE("<html><p>", "text/html"),
        CASE("<A href=x>", "text/html"),
        CASE("<!-- x --><p>", "text/html"),
        CASE("<h1>", "text/html"),
        /* Not the end of the tag; not one of the tags; not at the beginning. */
        CASE("<html", "text/plain"),
        CASE("<address>", "text/plain"),
        CASE("<html\n>", "text/plain"),
        CASE("<!--x-->", "text/plain"),
        CASE("<svg>", "text/plain"),
        CASE("x<html>", "text/plain"),
        CASE("\xef\xbb\xbf<html>", "text/plain"),
        CASE("<?xml version='1.0'?><html>", "text/xml"),
        CASE("%PDF-1.4", "application/pdf"),
        CASE("\x89PNG\r\n\x1a\n<html>", "image/png"),
        CASE("GIF89a<script>", "image/gif"),
        CASE("\xff\xd8\xff\xe0", "image/jpeg"),
        CASE("RIFF\1\2\3\4WEBPVP8 ", "image/webp"),
        CASE("RIFF\1\2\3\4WAVEfmt ", "audio/wave"),
        CASE("\0\0\0\x18"
             "ftypmp42\0\0\0\0isommp42",
             "video/mp4"),
        CASE("\0\0\0\x18"
             "ftypisom\0\0\0\0isommp41",
             "video/mp4"),
        CASE("\0\0\0\x18"
             "ftypqt  \0\0\0\0qt  qt  ",
             "application/octet-stream"),
        CASE("\0\0\0\x1c"
             "ftypisom\0\0\0\0isommp41",
             "application/octet-stream"),
        CASE("\x1a\x45\xdf\xa3\x9f\x42\x86\x81\1\x42\x82\x84webm", "video/webm"),
        CASE("\x1f\x8b\x08\0", "application/x-gzip"),
        CASE("PK\3\4", "application/zip"),
        CASE("\xff\xfe<\0h\0", "text/plain"),
        CASE("", "text/plain"),
        CASE("just text\n", "text/plain"),
        CASE("just text\1", "application/octet-stream"),
        CASE("\0\0\0", "application/octet-stream"),
#undef CASE
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_type(i % 2 ? "" : "unknown/unknown", cases[i].body, cases[i].want);
}

/* Whatever the bytes are, a stated type stays. */
static void test_stated(void **state)
{
    static const char *const types[] = {"text/plain", "image/png", "application/octet-stream", "text/x", "x/html"};

    (void)state;
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        expect_type(types[i], WB_SLICE_LIT("<!DOCTYPE html><script>"), types[i]);
}

/* Only the beginning counts. */
static void test_bounded(void **state)
{
    char body[4000];

    (void)state;
    memset(body, ' ', sizeof body);
    memcpy(body + 1430, "<html>", 6);
    expect_type("", wb_slice(body, sizeof body), "text/html");
    memset(body, ' ', sizeof body);
    memcpy(body + 1440, "<html>", 6);
    expect_type("", wb_slice(body, sizeof body), "text/plain");
    body[1445] = '\0';
    expect_type("", wb_slice(body, sizeof body), "text/plain");
    body[1444] = '\0';
    expect_type("", wb_slice(body, sizeof body), "application/octet-stream");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unknown),
        cmocka_unit_test(test_stated),
        cmocka_unit_test(test_bounded),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
