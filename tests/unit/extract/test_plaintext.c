/* test_plaintext.c - plain text: blocks, no markup, no links; and lists of URLs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../expect.h"
#include "base/error.h"
#include "os/fault.h"
#include "extract/extract.h"
#include "extract/xmlpage.h"

static struct wb_extract_input input_of(const char *type, struct wb_slice body)
{
    return (struct wb_extract_input){WB_SLICE_LIT("http://example.org/a.txt"), wb_slice_str(type), WB_SLICE_EMPTY, body,
                                     WB_EXTRACT_ALL};
}

static const struct {
    const char *body, *text;
} texts[] = {
    {"", ""},
    {"\n \r\n\t\n", ""},
    {"one line", "one line"},
    {"one\ntwo\n", "one two"},
    {"one\r\ntwo\rthree", "one two three"},
    {"one\n\ntwo", "one\ntwo"},
    {"one\r\n\r\ntwo\r\rthree\n \t \nfour", "one\ntwo\nthree\nfour"},
    {"  many   blanks\tand\ttabs  \n\n\n\n here ", "many blanks and tabs\nhere"},
    {"<b>&amp; is text</b>", "<b>&amp; is text</b>"},
    {"caf\xe9 au lait, na\xefve r\xf4le d\xe9j\xe0 vu", "café au lait, naïve rôle déjà vu"},
};

static void test_blocks(void **state)
{
    (void)state;
    struct wb_extractor *x;
    struct wb_extract out;

    assert_int_equal(wb_extractor_new(&x), 0);
    for (size_t i = 0; i < COUNT(texts); i++) {
        struct wb_extract_input input = input_of("text/plain", wb_slice_str(texts[i].body));
        assert_int_equal(wb_extract(x, &input, &out), 0);
        assert_string_equal(out.module, "text");
        expect(out.text, texts[i].text);
        expect(out.main_text, texts[i].text);
        expect(out.title, "");
        assert_int_equal(out.link_count, 0);
        assert_int_equal(out.simhash == 0, *texts[i].text == '\0');
    }
    wb_extractor_free(x);
}

/* URLs in a text are not links, and a list of them is not a sitemap, unless it was fetched as one. */
static void test_no_links(void **state)
{
    (void)state;
    struct wb_extractor *x;
    struct wb_extract out;
    struct wb_extract_input input =
        input_of("text/plain", WB_SLICE_LIT("http://example.org/1\nhttp://example.org/2\n"));

    assert_int_equal(wb_extractor_new(&x), 0);
    assert_int_equal(wb_extract(x, &input, &out), 0);
    assert_int_equal(out.link_count, 0);
    assert_false(out.sitemap);
    expect(out.text, "http://example.org/1 http://example.org/2");
    input.wants = WB_EXTRACT_LINKS;
    assert_int_equal(wb_extract(x, &input, &out), 0);
    expect(out.text, "");
    wb_extractor_free(x);
}

static void test_types(void **state)
{
    (void)state;
    static const char *const taken[] = {"text/plain", "text/markdown", "text/csv"};
    static const char *const other[] = {"text/html", "image/png", "application/pdf", "text/css", "text/javascript"};

    for (size_t i = 0; i < COUNT(taken); i++)
        assert_true(wb_module_text.accepts(wb_slice_str(taken[i])));
    for (size_t i = 0; i < COUNT(other); i++)
        assert_false(wb_module_text.accepts(wb_slice_str(other[i])));
}

static void test_lists(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool urls;
    } lists[] = {
        {"http://a/", true},
        {"http://a/\nhttps://b/c\r\n", true},
        {"\n\n  HTTP://a/  \n\n", true},
        {"http://a/\rhttp://b/", true},
        {"", false},
        {"\n", false},
        {"http://a/\nftp://b/", false},
        {"http://a/\n# comment", false},
        {"http://a/ b", false},
        {"see http://a/", false},
        {"http:/a", false},
    };

    for (size_t i = 0; i < COUNT(lists); i++)
        if (wb_plaintext_is_urls(wb_slice_str(lists[i].text)) != lists[i].urls)
            fail_msg("list %zu", i);
}

/* Text of any kind beyond the limit is cut off, and reported as cut. */
static void test_long(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        bool cut;
    } units[] = {{"\n", false}, {" ", false},      {"\r", false}, {"\n\na ", false},
                 {"a", true},   {"a\n", true}, {"\xc3", true}, {"\xc3\xa9 ", true}};
    struct wb_extractor *x;
    struct wb_extract out;
    struct wb_buf body = WB_BUF_INIT;

    assert_int_equal(wb_extractor_new(&x), 0);
    for (size_t i = 0; i < COUNT(units); i++) {
        wb_buf_clear(&body);
        while (body.len < 12u << 20)
            assert_int_equal(wb_buf_append_str(&body, units[i].text), 0);
        struct wb_extract_input input = input_of("text/plain", wb_buf_slice(&body));
        assert_int_equal(wb_extract(x, &input, &out), 0);
        assert_true(out.text.len <= WB_EXTRACT_TEXT_MAX);
        assert_int_equal(out.text_cut, units[i].cut);
    }
    wb_buf_release(&body);
    wb_extractor_free(x);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    struct wb_extract_input input = input_of("text/plain", WB_SLICE_LIT("caf\xe9 one\n\ntwo r\xf4le d\xe9j\xe0 vu"));
    bool struck = true;

    for (uint64_t nth = 1; struck; nth++) {
        struct wb_extractor *x = NULL;
        struct wb_extract out;
        wb_fault_arm(WB_FAULT_ALLOC, nth, 12);
        int err = wb_extractor_new(&x);
        if (err == 0)
            err = wb_extract(x, &input, &out);
        struck = wb_fault_struck();
        wb_fault_disarm();
        assert_int_equal(err, struck ? WB_E_NOMEM : 0);
        wb_extractor_free(x);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks), cmocka_unit_test(test_no_links), cmocka_unit_test(test_types),
        cmocka_unit_test(test_lists),  cmocka_unit_test(test_long),     cmocka_unit_test(test_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
