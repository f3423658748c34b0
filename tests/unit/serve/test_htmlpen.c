/* test_htmlpen.c - templates: everything that comes from others is escaped, whatever it is. */
#include "serve/htmlpen.h"
#include "../seeded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static struct wb_buf text = WB_BUF_INIT;
static struct wb_htmlpen pen;

static struct wb_htmlpen *new_pen(void)
{
    wb_buf_clear(&text);
    wb_htmlpen_init(&pen, &text);
    return &pen;
}

static void expect_text(const char *want)
{
    assert_int_equal(pen.err, 0);
    assert_int_equal(wb_buf_terminate(&text), 0);
    assert_string_equal(text.ptr, want);
}

static void test_values(void **state)
{
    (void)state;
    wb_htmlpen_put(new_pen(), "<a href=\"/page?url={}\">{}</a>",
                   wb_htmlpen_param(WB_SLICE_LIT("http://a/?b=c&d=e#f g\"")),
                   wb_htmlpen_text(WB_SLICE_LIT("<b>\"'&amp;")));
    expect_text("<a href=\"/page?url=http://a/%3Fb%3Dc%26d%3De%23f%20g%22\">&lt;b&gt;&quot;&#39;&amp;amp;</a>");
    wb_htmlpen_put(new_pen(), "{} {} {} {}", wb_htmlpen_number(0), wb_htmlpen_number(999), wb_htmlpen_number(1234567),
                   wb_htmlpen_plain(1234567));
    expect_text("0 999 1,234,567 1234567");
    wb_htmlpen_put(new_pen(), "{} {} {} {}", wb_htmlpen_bytes(999), wb_htmlpen_bytes(1000), wb_htmlpen_bytes(9990000),
                   wb_htmlpen_bytes(UINT64_MAX));
    expect_text("999 B 1.0 kB 10 MB 18 EB");
    wb_htmlpen_put(new_pen(), "{} {} {}", wb_htmlpen_time(1767323045678), wb_htmlpen_digits(1767323045678),
                   wb_htmlpen_time(0));
    expect_text("<time datetime=\"2026-01-02T03:04:05.678Z\">2026-01-02 03:04:05 UTC</time> 20260102030405 unknown");
    wb_htmlpen_put(new_pen(), "{{}}", wb_htmlpen_str("x")); /* a brace by itself is text */
    expect_text("{x}");
}

static void test_texts_that_are_not_text(void **state)
{
    (void)state;
    wb_htmlpen_put(new_pen(), "{}", wb_htmlpen_text(wb_slice("a\0b\x1b\r\xff\xc3", 7)));
    expect_text("a\xEF\xBF\xBD"
                "b\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD\xEF\xBF\xBD");
    /* A right-to-left override would show what follows it in another order; U+2028 ends lines of scripts. */
    wb_htmlpen_put(new_pen(), "{}", wb_htmlpen_text(WB_SLICE_LIT("\xE2\x80\xAE\xE2\x80\xA8\xC3\xA4\t\n")));
    expect_text("\xEF\xBF\xBD\xEF\xBF\xBD\xC3\xA4\t\n");
}

/* Only http and https become links. */
static void test_links(void **state)
{
    static const char *const bad[] = {
        "javascript:alert(1)", " javascript:alert(1)", "data:text/html,x", "httpx://a/", "//a/", ""};

    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        wb_htmlpen_page_link(new_pen(), wb_slice_str(bad[i]), WB_SLICE_LIT("x"));
        expect_text("x");
    }
    wb_htmlpen_page_link(new_pen(), WB_SLICE_LIT("HTTPS://a/\"><script>"), WB_SLICE_LIT("<x>"));
    expect_text("<a href=\"/page?url=HTTPS://a/%22%3E%3Cscript%3E\">&lt;x&gt;</a>");
}

/* Random bytes never leave the place where they were put. */
static void test_random(void **state)
{
    uint64_t chance = test_seed();
    char bytes[64];

    (void)state;
    for (int round = 0; round < 2000; round++) {
        size_t len = chance_below(&chance, sizeof bytes);
        for (size_t i = 0; i < len; i++)
            bytes[i] = "<>\"'&\0\xc3\xa4\xff{}/=ax \n"[chance_below(&chance, 18)];
        wb_htmlpen_put(new_pen(), "{}|{}", wb_htmlpen_text(wb_slice(bytes, len)),
                       wb_htmlpen_param(wb_slice(bytes, len)));
        assert_int_equal(pen.err, 0);
        for (size_t i = 0; i < text.len; i++)
            assert_false(memchr("<>\"'", text.ptr[i], 4) != NULL || text.ptr[i] == '\0');
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),
        cmocka_unit_test(test_texts_that_are_not_text),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_random),
    };
    int failed = cmocka_run_group_tests_name("htmlpen", tests, NULL, NULL);

    wb_buf_release(&text);
    return failed;
}
