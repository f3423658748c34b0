/* test_css.c - which URLs a style sheet names, and what they are without their escapes. */
#include "base/error.h"
#include "markup/css.h"
#include "../allocfail.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

/* Lists the URLs of a sheet, one in each line: "url x" or "import x". */
static void list_urls(struct wb_slice sheet, struct wb_buf *list)
{
    struct wb_buf url = WB_BUF_INIT;
    struct wb_css_item item;
    struct wb_css css;

    wb_buf_clear(list);
    wb_css_init(&css, sheet);
    while (wb_css_next(&css, &item)) {
        assert_int_equal(wb_css_decode(item.raw, &url), 0);
        if (!item.coded)
            assert_true(wb_slice_equal(wb_buf_slice(&url), item.raw));
        assert_int_equal(wb_buf_printf(list, "%s %.*s\n", item.kind == WB_CSS_IMPORT ? "import" : "url",
                                       WB_SLICE_ARG(wb_buf_slice(&url))),
                         0);
    }
    assert_false(wb_css_next(&css, &item));
    wb_buf_release(&url);
}

static void expect_urls(struct wb_slice sheet, const char *want)
{
    struct wb_buf list = WB_BUF_INIT;

    list_urls(sheet, &list);
    if (!wb_slice_equal(wb_buf_slice(&list), wb_slice_str(want)))
        fail_msg("'%.*s': want '%s', got '%.*s'", WB_SLICE_ARG(sheet), want, WB_SLICE_ARG(wb_buf_slice(&list)));
    wb_buf_release(&list);
}

static void test_urls(void **state)
{
    static const struct {
        const char *sheet, *want;
    } cases[] = {
        {"", ""},
        {"a{background:url(x.png)}", "url x.png\n"},
        {"a{background:URL(  x.png\t)}", "url x.png\n"},
        {"a{background:url('x y.png') no-repeat, url(\"z\")}", "url x y.png\nurl z\n"},
        {"a{b:url()}", "url \n"},
        {"a{b:url(#f)}", "url #f\n"},
        {"a{b:url(data:image/png;base64,AA==)}", "url data:image/png;base64,AA==\n"},
        /* what only looks like one */
        {"/* url(a) */ b", ""},
        {"a{content:'url(a)'}", ""},
        {"a{b:curl(a)} c{d:url (e)} #url(f) 1url(g) -1url(h) .5url(i) --url(j) x-url(k)", ""},
        {"@media print{a{b:url(c)}}", "url c\n"},
        /* bad ones: the standard drops them up to the parenthesis */
        {"a{b:url(c d)e:url(f)}", "url f\n"},
        {"a{b:url(c'd)e:url(f)}", "url f\n"},
        {"a{b:url(c\\)d(x)e:url(f)}", "url f\n"},
        {"a{b:url('c\nd)e:url(f)}", "url f\n"},
        {"a{b:url(c\x01)e:url(f)}", "url f\n"},
        /* the end of the sheet closes everything */
        {"a{b:url(c", "url c\n"},
        {"a{b:url(c ", "url c\n"},
        {"a{b:url('c", "url c\n"},
        {"a{b:url('c\\", "url c\n"},
        {"a{b:url(", "url \n"},
        {"/*", ""},
        {"/", ""},
        {"\\", ""},
        /* escapes */
        {"a{b:u\\72l(c)}", "url c\n"},
        {"a{b:\\75 \\52\\4c(c)}", "url c\n"},
        {"a{b:url(c\\29 d\\(e)}", "url c)d(e\n"},
        {"a{b:url('c\\\nd\\\r\ne')}", "url cde\n"},
        {"a{b:url(\\e9\\0000e9 \\110000 )}", "url \xc3\xa9\xc3\xa9\xef\xbf\xbd\n"},
        {"a{b:url(\\\xc3\xa9)}", "url \xc3\xa9\n"},
        {"a{b:url(\\0 \\d800 )}", "url \xef\xbf\xbd\xef\xbf\xbd\n"},
        /* imports */
        {"@import 'a'; @import \"b\" screen; @import url(c); @IMPORT url('d')layer(x);",
         "import a\nimport b\nimport c\nimport d\n"},
        {"@import/**/'a';@\\69mport \"b\"", "import a\nimport b\n"},
        {"@import x 'a'; @import; 'b' @imports 'c' @import 'd' 'e'", "import d\n"},
        {"@import 'a\nb; @import 'c'", "import c\n"},
        {"@charset 'utf-8'; @namespace url(a); @namespace svg 'b'; @namespace c url(d); e{f:url(g)}", "url g\n"},
        {"@namespace a{b:url(c)}", "url c\n"},
        {"<!--@import 'a';--> <!--url(b)", "import a\nurl b\n"},
        /* strings that are URLs */
        {"a{b:image-set('c' 1x, \"d\" type('image/png') 2x, url(e) 3x), 'f'}", "url c\nurl d\nurl e\n"},
        {"a{b:-webkit-image-set('c' 1x) src('d') (('e'))}", "url c\nurl d\n"},
        {"a{b:image-set(min(1,'c')'d')", "url d\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_urls(wb_slice_str(cases[i].sheet), cases[i].want);
    expect_urls(WB_SLICE_LIT("a{b:url(c\0d)}"), "url c\xef\xbf\xbd"
                                                "d\n");
}

/* Whatever is written with wb_css_encode() is read as the same, with and without quotes. */
static void test_encode(void **state)
{
    static const char *const frames[][2] = {{"a{b:url(", ")}"}, {"a{b:url('", "')}"}, {"a{b:url(\"", "\")}"}};
    struct wb_buf sheet = WB_BUF_INIT, url = WB_BUF_INIT;
    struct wb_css_item item;
    struct wb_css css;
    char all[126];

    (void)state;
    for (size_t i = 0; i < sizeof all; i++)
        all[i] = (char)(i + 1);
    for (size_t i = 0; i < sizeof frames / sizeof *frames; i++) {
        wb_buf_clear(&sheet);
        assert_int_equal(wb_buf_append_str(&sheet, frames[i][0]), 0);
        assert_int_equal(wb_css_encode(wb_slice(all, sizeof all), &sheet), 0);
        assert_int_equal(wb_buf_append_str(&sheet, frames[i][1]), 0);
        wb_css_init(&css, wb_buf_slice(&sheet));
        assert_true(wb_css_next(&css, &item));
        assert_int_equal(wb_css_decode(item.raw, &url), 0);
        assert_true(wb_slice_equal(wb_buf_slice(&url), wb_slice(all, sizeof all)));
        assert_false(wb_css_next(&css, &item));
    }
    wb_buf_release(&sheet);
    wb_buf_release(&url);
}

static void test_charset(void **state)
{
    (void)state;
    assert_true(wb_slice_equal(wb_css_charset(WB_SLICE_LIT("@charset \"koi8-r\";a")), WB_SLICE_LIT("koi8-r")));
    assert_int_equal(wb_css_charset(WB_SLICE_LIT("@charset 'koi8-r';")).len, 0);
    assert_int_equal(wb_css_charset(WB_SLICE_LIT(" @charset \"koi8-r\";")).len, 0);
    assert_int_equal(wb_css_charset(WB_SLICE_LIT("@charset \"koi8-r\"")).len, 0);
    assert_int_equal(wb_css_charset(WB_SLICE_LIT("@charset \"koi8")).len, 0);
}

static void test_out_of_memory(void **state)
{
    struct wb_buf out = WB_BUF_INIT;

    (void)state;
    alloc_fail_all();
    assert_int_equal(wb_css_decode(WB_SLICE_LIT("a"), &out), WB_E_NOMEM);
    assert_int_equal(wb_css_decode(WB_SLICE_LIT("\\61"), &out), WB_E_NOMEM);
    assert_int_equal(wb_css_encode(WB_SLICE_LIT("a"), &out), WB_E_NOMEM);
    alloc_fail_none();
    wb_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_urls),
        cmocka_unit_test(test_encode),
        cmocka_unit_test(test_charset),
        cmocka_unit_test(test_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
