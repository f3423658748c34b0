/* test_warchead.c - record headers: where they start and end, what they say, and what may follow a block. */
#include "warc_support.h"

#include "warc/warchead.h"

static void test_starts(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        bool warc, arc;
    } cases[] = {
        {"WARC/1.0\r\n", true, true},
        {"\r\n\r\nWARC/0.17\n", true, true},
        {"warc/1.0\r\n", true, true},
        {"WARC/1.", false, false},
        {"WARC/x.1\r\n", false, false},
        {"xWARC/1.0\r\n", false, false},
        {"http://a/ 1 2", false, true},
        {"filedesc://x", false, true},
        {"dns:host", false, true},
        {"<html>", false, false},
        {"1http:", false, false},
        {"", false, false},
        {"no colon in sight anywhere", false, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        if (wb_warc_head_starts(wb_slice_str(cases[i].bytes), false) != cases[i].warc)
            fail_msg("'%s' as WARC", cases[i].bytes);
        if (wb_warc_head_starts(wb_slice_str(cases[i].bytes), true) != cases[i].arc)
            fail_msg("'%s' as ARC", cases[i].bytes);
    }
}

static void test_trailer(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        bool ends, arc;
        int len; /* -1: not the end of a record; ARC's doubtful ones plus 100 */
    } cases[] = {
        {"\r\n\r\nWARC/1.0", false, false, 4},
        {"\n\nWARC/1.0\n", false, false, 2},
        {"\r\n\r\nanything", false, false, 4},
        {"WARC/1.0\r\n", false, false, 0},
        {"\r\nWARC/1.0\r\n", false, false, 2},
        {"\nWARC/1.0\r\n", false, false, 1},
        {"", true, false, 0},
        {"\r\n", true, false, 2},
        {"\r\n\r", true, false, 2},
        {"\r\nmore", false, false, -1},
        {"more", false, false, -1},
        {"more", true, false, -1},
        {"WARC/", true, false, -1},
        {"\nhttp://a/ 1", false, true, 1},
        {"\n\nhttp://a/ 1", false, true, 2},
        {"http://a/ 1", false, true, 0},
        {"", true, true, 0},
        {"\n", true, true, 1},
        {"\n<html>", false, true, 101},
        {"<html>", false, true, -1},
        {"\n\n\nhttp://", false, true, 2},
        {"\n\r\n\r\nWARC/1.0", false, false, -1},
        {"\r\n\r\n\r\nWARC/1.0", false, false, 4},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t len;
        enum wb_warc_trailer trailer =
            wb_warc_head_trailer(wb_slice_str(cases[i].bytes), cases[i].ends, cases[i].arc, &len);
        int got = trailer == WB_WARC_TRAILER_NONE       ? -1
                  : trailer == WB_WARC_TRAILER_DOUBTFUL ? (int)len + 100
                                                        : (int)len;
        if (got != cases[i].len)
            fail_msg("case %zu: %d", i, got);
    }
}

static void test_end(void **state)
{
    (void)state;
    static const struct {
        const char *bytes;
        bool strict;
        int result;
        size_t end;
    } cases[] = {
        {"WARC/1.0\r\nA: b\r\n\r\nblock", false, 1, 18}, {"WARC/1.0\nA: b\n\nblock", false, 1, 15},
        {"WARC/1.0\r\nA: b\r\n", false, 0, 0},           {"WARC/1.0", false, 0, 0},
        {"WARC/1.0\r\nWARC/1.0\r\n\r\n", false, WB_E_CORRUPT, 0},
        {"WARC/1.0\r\nA: WARC/1.0\r\n\r\n", false, 1, 25}, {"WARC/1.0\r\nA: WARC/1.0\r\n\r\n", true, WB_E_CORRUPT, 0},
        {"http://a/ 1 2 3 4\nblock", false, 1, 18},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        size_t end, scanned = 0, whole = strlen(cases[i].bytes);
        int result = 0;
        /* Feed it byte by byte, the worst way in which they can arrive. */
        for (size_t len = whole < 10 ? whole : 10; len <= whole && result == 0; len++)
            result = wb_warc_head_end(wb_slice(cases[i].bytes, len), cases[i].strict, &scanned, &end);
        if (result != cases[i].result || end != cases[i].end)
            fail_msg("case %zu: %d, %zu", i, result, end);
    }
}

static struct wb_slice span(const char *bytes, struct wb_warc_span s)
{
    return wb_slice(bytes + s.at, s.len);
}

static void test_parse_warc(void **state)
{
    (void)state;
    static const char *bytes = "WARC/1.1\r\nwarc-type: RESPONSE\r\nWARC-TARGET-URI: <http://a.example/x y>\r\n"
                               "Content-length:  12 \r\nContent-Type: text/plain;\r\n charset=x\r\nX-Unknown: y\r\n"
                               "WARC-Date: 2026-01-02T03:04:05.123456789Z\r\nWARC-Truncated: time\r\n\r\n";
    struct wb_warc_head head;

    assert_null(wb_warc_head_parse(wb_slice_str(bytes), &head));
    assert_int_equal(head.type, WB_WARC_RESPONSE);
    assert_int_equal(head.length, 12);
    assert_true(wb_slice_equal(span(bytes, head.uri), WB_SLICE_LIT("http://a.example/x y")));
    assert_true(wb_slice_equal(span(bytes, head.content_type), WB_SLICE_LIT("text/plain;\r\n charset=x")));
    assert_true(head.has_time && head.truncated);
    assert_int_equal(head.time_ms, 1767323045123);
    assert_true(wb_slice_starts(span(bytes, head.lines), WB_SLICE_LIT("warc-type:")));
    assert_int_equal(head.lines.at + head.lines.len, strlen(bytes) - 2);
}

static void test_parse_bad(void **state)
{
    (void)state;
    static const char *const bad[] = {
        "WARC/1.1\r\nWARC-Type: response\r\n\r\n",
        "WARC/1.1\r\nContent-Length: 1\r\n\r\n",
        "WARC/1.1\r\nWARC-Type: response\r\nContent-Length: -5\r\n\r\n",
        "WARC/1.1\r\nWARC-Type: response\r\nContent-Length: many\r\n\r\n",
        "WARC/1.1\r\nWARC-Type: response\r\nContent-Length:\r\n\r\n",
        "WARC/1.1\r\nWARC-Type: response\r\nContent-Length: 0x10\r\n\r\n",
        "WARC/1.1\r\nWARC-Type: response\r\nContent-Length: 99999999999999999999999\r\n\r\n",
        "WARC/1.1\r\nWARC-Type: response\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "WARC/1.1\r\n\r\n",
        "WARC/1.1",
        "http://a/ 1.2.3.4 20260102030405 text/html -1\n",
        "http://a/ 1.2.3.4 20260102030405 text/html abc\n",
        "http://a/ 1.2.3.4 yesterday text/html 1\n",
        "http://a/ 20260102030405 text/html 1\n",
        "20260102030405 text/html 1 2 3\n",
        "\n",
    };
    struct wb_warc_head head;

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!wb_warc_head_parse(wb_slice_str(bad[i]), &head))
            fail_msg("'%s' is taken for a header", bad[i]);
}

static void test_parse_arc(void **state)
{
    (void)state;
    static const char *bytes = "http://a.example/with some blanks 192.0.2.1 20260102030405 text/html 123\n";
    struct wb_warc_head head;

    assert_null(wb_warc_head_parse(wb_slice_str(bytes), &head));
    assert_int_equal(head.type, WB_WARC_ARC);
    assert_int_equal(head.length, 123);
    assert_int_equal(head.time_ms, 1767323045000);
    assert_true(wb_slice_equal(span(bytes, head.uri), WB_SLICE_LIT("http://a.example/with some blanks")));
    assert_true(wb_slice_equal(span(bytes, head.content_type), WB_SLICE_LIT("text/html")));
    assert_null(wb_warc_head_parse(WB_SLICE_LIT("filedesc://x.arc 0.0.0.0 20260102030405 text/plain 9\n"), &head));
    assert_int_equal(head.type, WB_WARC_ARC_VERSION);
}

/* With an empty type there are two blanks in a row, or only one if the writer dropped the field. */
static void test_parse_arc_odd(void **state)
{
    (void)state;
    static const char *const empty[] = {
        "http://a.example/with some blanks 192.0.2.1 20260102030405  123\n",
        "http://a.example/with some blanks 192.0.2.1 20260102030405 123\n",
    };
    struct wb_warc_head head;

    for (size_t i = 0; i < sizeof empty / sizeof *empty; i++) {
        assert_null(wb_warc_head_parse(wb_slice_str(empty[i]), &head));
        assert_int_equal(head.length, 123);
        assert_int_equal(head.content_type.len, 0);
        assert_true(head.has_time && head.time_ms == 1767323045000);
        assert_true(wb_slice_equal(span(empty[i], head.uri), WB_SLICE_LIT("http://a.example/with some blanks")));
    }
    /* Digits that form no valid date: still a record, but without a time. */
    assert_null(wb_warc_head_parse(WB_SLICE_LIT("http://a.example/ 192.0.2.1 99999999999999 text/html 5\n"), &head));
    assert_true(!head.has_time && head.length == 5);
    assert_non_null(wb_warc_head_parse(WB_SLICE_LIT("http://a.example/ 192.0.2.1 yesterday text/html 5\n"), &head));
    assert_non_null(wb_warc_head_parse(WB_SLICE_LIT("http://a.example/ 20260102030405 5\n"), &head));
}

static void test_parse_dates(void **state)
{
    (void)state;
    static const char *const bad[] = {"99999-01-01T00:00:00Z", "2026-13-01T00:00:00Z", "yesterday", "",
                                      "202601020304",          "0000-01-01T00:00:00Z", "2009-02-10T25:00:00Z",
                                      "2009-04-31T00:00:00Z", /* 31 is no day of April, nor day 31 of the year in it */
                                      "2007-12-366T00:00:00Z", "2009-366T00:00:00Z",   "2009-13-294T00:00:00Z",
                                      "2009-10-0T00:00:00Z",   "2009-10-2944T00:00:00Z"};

    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char bytes[200];
        struct wb_warc_head head;
        snprintf(bytes, sizeof bytes, "WARC/1.1\r\nWARC-Type: response\r\nWARC-Date: %s\r\nContent-Length: 5\r\n\r\n",
                 bad[i]);
        assert_null(wb_warc_head_parse(wb_slice_str(bytes), &head));
        if (head.has_time)
            fail_msg("'%s' is taken for a date", bad[i]);
    }
}

/* Forms that some writers use. */
static void test_parse_odd_dates(void **state)
{
    (void)state;
    static const struct {
        const char *date;
        int64_t time_ms;
    } good[] = {
        {"2008-10-294T12:00:00Z", 1224504000000},      /* the day of the year; 20 October in a leap year */
        {"2009-10-294T12:00:00Z", 1256126400000},      /* 21 October */
        {"2009-03-65T08:43:19-0800", 1236357799000},   /* 6 March */
        {"2009-02-33T00:00:00Z", 1233532800000},       /* 2 February */
        {"2009-01-05T00:00:00Z", 1231113600000},       /* the same either way */
        {"2008-12-366T00:00:00.5Z", 1230681600500},
        {"2008-294T12:00:00Z", 1224504000000},
        {"2008-10-294", 1224460800000},
        {"2026-01-02T03:04:05+0100", 1767319445000},
        {"2026-01-02 03:04:05", 1767323045000},
        {"20260102030405", 1767323045000},
        {" 2026-01-02T03:04:05.678901234Z ", 1767323045678},
    };

    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        char bytes[200];
        struct wb_warc_head head;
        snprintf(bytes, sizeof bytes, "warc/1.0\r\nWARC-Type: response\r\nWARC-Date: %s\r\nContent-Length: 5\r\n\r\n",
                 good[i].date);
        assert_null(wb_warc_head_parse(wb_slice_str(bytes), &head));
        if (!head.has_time || head.time_ms != good[i].time_ms)
            fail_msg("%s is %lld", good[i].date, (long long)head.time_ms);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse_odd_dates),
        cmocka_unit_test(test_starts),     cmocka_unit_test(test_trailer),   cmocka_unit_test(test_end),
        cmocka_unit_test(test_parse_warc), cmocka_unit_test(test_parse_bad), cmocka_unit_test(test_parse_arc),
        cmocka_unit_test(test_parse_arc_odd), cmocka_unit_test(test_parse_dates),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
