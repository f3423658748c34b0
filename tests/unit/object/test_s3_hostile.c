/* test_s3_hostile.c - answers of stores that are broken or hostile: bounded in size, and never taken for good ones. */
#include "s3_support.h"

#include "os/clock.h"

#include <stdlib.h>

static struct stand stand;
static struct wb_object_store *store;

static int begin(void **state)
{
    (void)state;
    stand_start(&stand);
    stand.trusting = true;
    store = stand_open(&stand, "s3://bucket/p");
    pauses_skip();
    return 0;
}

static int end(void **state)
{
    (void)state;
    pauses_take_time();
    wb_object_close(store);
    stand_stop(&stand);
    return 0;
}

static void can(const char *answer)
{
    stand_next(&stand, (struct act){.kind = ACT_CANNED, .canned = answer});
}

static void expect_get(int err, const char *word)
{
    struct wb_buf bytes;

    assert_int_equal(wb_object_get(store, "x", 10, &bytes), err);
    if (!strstr(wb_error_message(), word))
        fail_msg("no '%s' in '%s'", word, wb_error_message());
    assert_int_equal(bytes.len, 0);
    assert_null(bytes.ptr);
    stand_quiet(&stand);
}

/* A body is not longer than was allowed, whatever it says of itself. */
static void test_too_long(void **state)
{
    (void)state;
    can("HTTP/1.1 200 x\r\nContent-Length: 11\r\n\r\n01234567890");
    expect_get(WB_E_LIMIT, "more than 10 bytes");
    can("HTTP/1.1 200 x\r\nTransfer-Encoding: chunked\r\n\r\nb\r\n01234567890\r\n0\r\n\r\n");
    expect_get(WB_E_LIMIT, "x of s3://bucket/p");
    can("HTTP/1.1 200 x\r\nContent-Length: 999999999999\r\n\r\n01234567890");
    expect_get(WB_E_LIMIT, "more than 10 bytes");
}

static void test_heads(void **state)
{
    char *head = malloc(300000), *p = head;

    (void)state;
    assert_non_null(head);
    p += sprintf(p, "HTTP/1.1 200 x\r\n");
    while (p - head < 250000)
        p += sprintf(p, "x-header-%06d: %060d\r\n", (int)(p - head), 1);
    sprintf(p, "Content-Length: 1\r\n\r\nx");
    can(head);
    expect_get(WB_E_PROTO, "head of more than");
    /* What is no HTTP at all is tried again. */
    can("SSH-2.0-OpenSSH\r\n");
    can("");
    can("HTTP/1.1 200 x\r\nContent-Length: 2\r\n\r\nok");
    struct wb_buf bytes = bytes_of(store, "x");
    expect(wb_buf_slice(&bytes), "ok");
    wb_buf_release(&bytes);
    stand_quiet(&stand);
    free(head);
}

/* The body of an error is read up to a limit, and its words are made harmless. */
static void test_errors(void **state)
{
    char *text = malloc(400000), *p = text;

    (void)state;
    assert_non_null(text);
    p += sprintf(p, "HTTP/1.1 403 x\r\nContent-Length: 300000\r\n\r\n<Error><Code>AccessDenied</Code><Message>");
    memset(p, 'm', 300000);
    p[300000] = '\0';
    can(text);
    expect_get(WB_E_DENIED, "AccessDenied");
    const char *tea = "<Error><Code>Tea</Code><Message>a\x1b[2J\r\nb</Message></Error>";
    snprintf(text, 1000, "HTTP/1.1 418 x\r\nContent-Length: %zu\r\n\r\n%s", strlen(tea), tea);
    can(text);
    expect_get(WB_E_PROTO, "Tea: a?[2J??b");
    can("HTTP/1.1 404 Not Found\r\nContent-Length: 13\r\n\r\n<html></html>");
    expect_get(WB_E_PROTO, "is it an object store");
    can("HTTP/1.1 301 x\r\nLocation: http://127.0.0.1:1/\r\nx-amz-bucket-region: eu\x01west-9\r\nContent-Length: "
        "0\r\n\r\n");
    expect_get(WB_E_DENIED, "is in the region eu?west-9");
    stand_quiet(&stand);
    free(text);
}

static void expect_part(const char *answer, int err, const char *want)
{
    struct wb_buf bytes;

    can(answer);
    assert_int_equal(wb_object_get_range(store, "x", 2, 4, &bytes), err);
    expect(wb_buf_slice(&bytes), want);
    wb_buf_release(&bytes);
}

/* What is said to be a part must be the one that was asked for. */
static void test_ranges(void **state)
{
    (void)state;
    expect_part("HTTP/1.1 206 x\r\nContent-Range: bytes 2-5/9\r\nContent-Length: 4\r\n\r\n2345", 0, "2345");
    expect_part("HTTP/1.1 206 x\r\nContent-Range: bytes 2-5/*\r\nContent-Length: 4\r\n\r\n2345", 0, "2345");
    expect_part("HTTP/1.1 206 x\r\nContent-Range: bytes 2-3/4\r\nContent-Length: 2\r\n\r\n23", 0, "23");
    /* Stores that do not understand ranges send all of it. */
    expect_part("HTTP/1.1 200 x\r\nContent-Length: 9\r\n\r\n012345678", 0, "2345");
    expect_part("HTTP/1.1 200 x\r\nContent-Length: 3\r\n\r\n012", 0, "2");
    expect_part("HTTP/1.1 200 x\r\nContent-Length: 1\r\n\r\n0", 0, "");
    expect_part("HTTP/1.1 200 x\r\nContent-Length: 0\r\n\r\n", 0, "");
    expect_part("HTTP/1.1 206 x\r\nContent-Range: bytes 0-3/9\r\nContent-Length: 4\r\n\r\n0123", WB_E_PROTO, "");
    expect_part("HTTP/1.1 206 x\r\nContent-Length: 4\r\n\r\n2345", WB_E_PROTO, "");
    expect_part("HTTP/1.1 206 x\r\nContent-Range: nonsense\r\nContent-Length: 4\r\n\r\n2345", WB_E_PROTO, "");
    expect_part("HTTP/1.1 206 x\r\nContent-Range: bytes 2-4/9\r\nContent-Length: 4\r\n\r\n2345", WB_E_PROTO, "");
    expect_part("HTTP/1.1 206 x\r\nContent-Range: bytes 2-6/9\r\nContent-Length: 5\r\n\r\n23456", WB_E_PROTO, "");
    /* A part that ends early is asked for again. */
    can("HTTP/1.1 206 x\r\nContent-Range: bytes 2-3/9\r\nContent-Length: 2\r\n\r\n23");
    expect_part("HTTP/1.1 206 x\r\nContent-Range: bytes 2-5/9\r\nContent-Length: 4\r\n\r\n2345", 0, "2345");
    can("HTTP/1.1 206 x\r\nContent-Range: bytes 0-9/90\r\nContent-Length: 10\r\n\r\n0123456789");
    expect_get(WB_E_PROTO, "all of it was asked for");
}

static void test_sizes(void **state)
{
    uint64_t size;

    (void)state;
    can("HTTP/1.1 200 x\r\nContent-Length: 123456789012\r\n\r\n");
    ok(wb_object_size(store, "x", &size));
    assert_int_equal(size, 123456789012);
    /* HEAD does not say: the first byte is asked for. */
    can("HTTP/1.1 200 x\r\n\r\n");
    can("HTTP/1.1 206 x\r\nContent-Range: bytes 0-0/77\r\nContent-Length: 1\r\n\r\n0");
    ok(wb_object_size(store, "x", &size));
    assert_int_equal(size, 77);
    can("HTTP/1.1 200 x\r\n\r\n");
    can("HTTP/1.1 206 x\r\nContent-Range: bytes 0-0/*\r\nContent-Length: 1\r\n\r\n0");
    assert_int_equal(wb_object_size(store, "x", &size), WB_E_PROTO);
}

static void expect_no_list(const char *xml, const char *word)
{
    struct wb_buf lines = WB_BUF_INIT;
    char *answer = malloc(strlen(xml) + 100);

    assert_non_null(answer);
    sprintf(answer, "HTTP/1.1 200 x\r\nContent-Length: %zu\r\n\r\n%s", strlen(xml), xml);
    stand.rest = (struct act){.kind = ACT_CANNED, .canned = answer};
    assert_int_equal(wb_object_list(store, "", append_entry, &lines), WB_E_PROTO);
    if (!strstr(wb_error_message(), word) || !strstr(wb_error_message(), "s3://bucket/p"))
        fail_msg("no '%s' in '%s'", word, wb_error_message());
    stand.rest = (struct act){.kind = ACT_WELL};
    wb_buf_release(&lines);
    stand_quiet(&stand);
    free(answer);
}

#define PAGE(more, text) "<ListBucketResult><IsTruncated>" more "</IsTruncated>" text "</ListBucketResult>"
#define ENTRY(key) "<Contents><Key>" key "</Key><Size>1</Size></Contents>"

static void test_listings(void **state)
{
    (void)state;
    expect_no_list("<html/>", "not a listing");
    expect_no_list("<ListBucketResult><Contents>", "ends in the middle");
    expect_no_list(PAGE("false", ENTRY("p/b") ENTRY("p/a")), "ascending order");
    expect_no_list(PAGE("false", ENTRY("p/b") ENTRY("p/b")), "ascending order");
    /* The same page for ever. */
    expect_no_list(PAGE("true", ENTRY("p/a") "<NextContinuationToken>t</NextContinuationToken>"), "next one begins");
    expect_no_list(PAGE("true", ENTRY("p/a")), "next one begins");
}

/* Names that do not begin as was asked for are left out. */
static void test_wrong_prefix(void **state)
{
    struct wb_buf lines = WB_BUF_INIT;
    char answer[500];
    const char *xml = PAGE("false", ENTRY("p/a") ENTRY("p/b1") ENTRY("p/c") ENTRY("q/b2"));

    (void)state;
    snprintf(answer, sizeof answer, "HTTP/1.1 200 x\r\nContent-Length: %zu\r\n\r\n%s", strlen(xml), xml);
    can(answer);
    ok(wb_object_list(store, "b", append_entry, &lines));
    expect(wb_buf_slice(&lines), "b1 1\n");
    wb_buf_release(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_too_long, begin, end),
        cmocka_unit_test_setup_teardown(test_heads, begin, end),
        cmocka_unit_test_setup_teardown(test_errors, begin, end),
        cmocka_unit_test_setup_teardown(test_ranges, begin, end),
        cmocka_unit_test_setup_teardown(test_sizes, begin, end),
        cmocka_unit_test_setup_teardown(test_listings, begin, end),
        cmocka_unit_test_setup_teardown(test_wrong_prefix, begin, end),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
