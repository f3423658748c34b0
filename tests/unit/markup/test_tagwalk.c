/* test_tagwalk.c - the walk through all tags of a document, and the encodings it can be copied in. */
#include "../expect.h"
#include "markup/tagwalk.h"

/* Lists the tokens of a document: names of tags, with a star in svg and math, and the length of text. */
static void expect_tokens(const char *document, bool xml, const char *want)
{
    struct wb_tagwalk *walk = NULL;
    struct wb_buf list = WB_BUF_INIT;
    const char *at = document;

    assert_int_equal(wb_tagwalk_new(&walk), 0);
    wb_tagwalk_begin(walk, wb_slice_str(document), xml);
    for (const struct wb_tokenizer *t; (t = wb_tagwalk_next(walk))->kind != WB_TOKEN_NONE;) {
        const char *star = wb_tagwalk_is_foreign(walk) ? "*" : "";
        assert_true(t->raw.ptr >= at && t->raw.ptr + t->raw.len <= document + strlen(document));
        at = t->raw.ptr + t->raw.len;
        if (t->kind == WB_TOKEN_TEXT)
            assert_int_equal(wb_buf_printf(&list, "%zu%s ", t->text.len, star), 0);
        else
            assert_int_equal(
                wb_buf_printf(&list, "%s%.*s%s ", t->kind == WB_TOKEN_END ? "/" : "", WB_SLICE_ARG(t->text), star), 0);
    }
    expect(wb_buf_slice(&list), want);
    wb_buf_release(&list);
    wb_tagwalk_free(walk);
}

static void test_tokens(void **state)
{
    (void)state;
    expect_tokens("", false, "");
    expect_tokens("<a href=x>yy</a>", false, "a 2 /a ");
    expect_tokens("<style><b></style><script><b></script>", false, "style 3 /style script 3 /script ");
    expect_tokens("<svg><style><b></style>", false, "svg* style* b /style ");
    expect_tokens("<svg><style>x</style><![CDATA[<a>]]></svg>y", false, "svg* style* 1* /style* 3* /svg* 1 ");
    expect_tokens("<svg><desc><i>x</i></desc><i>y", false, "svg* desc* i 1 /i /desc i 1 ");
    expect_tokens("<template><svg><plaintext><b></svg></template>", false,
                  "template svg* plaintext* b /svg /template ");
    expect_tokens("<svg/><style><b>", false, "svg* style 3 ");
    expect_tokens("<style/><b>", true, "style b ");
    expect_tokens("<![CDATA[<a>]]>", true, "3 ");
}

static void expect_copy(const char *charset, struct wb_slice body, const char *want, const char *want_charset)
{
    struct wb_buf mem = WB_BUF_INIT;
    const char *got_charset = NULL;
    struct wb_slice got;

    assert_int_equal(wb_tagwalk_bytes(charset, body, &mem, &got, &got_charset), 0);
    expect(got, want);
    assert_string_equal(got_charset, want_charset);
    wb_buf_release(&mem);
}

static void test_bytes(void **state)
{
    (void)state;
    expect_copy("utf-8", WB_SLICE_LIT("\xc3\xa9\xff"), "\xc3\xa9\xff", "utf-8");
    expect_copy("windows-1251", WB_SLICE_LIT("\xe9"), "\xe9", "windows-1251");
    expect_copy("x-user-defined", WB_SLICE_LIT("\xe9"), "\xe9", "x-user-defined");
    expect_copy("utf-16be", WB_SLICE_LIT("\0\xe9"), "\xc3\xa9", "utf-8");
    expect_copy("shift_jis", WB_SLICE_LIT("\x95\x5c"), "\xe8\xa1\xa8", "utf-8");
    expect_copy("replacement", WB_SLICE_LIT("<a>"), "\xef\xbf\xbd", "utf-8");
}

static void expect_utf8(const char *charset, struct wb_slice part, const char *want)
{
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_slice got;

    assert_int_equal(wb_tagwalk_utf8(charset, part, &mem, &got), 0);
    expect(got, want);
    wb_buf_release(&mem);
}

static void test_utf8(void **state)
{
    (void)state;
    expect_utf8("utf-8", WB_SLICE_LIT("\xc3\xa9"), "\xc3\xa9");
    expect_utf8("utf-8", WB_SLICE_LIT("\xf2\xbfI"), "\xef\xbf\xbdI");
    expect_utf8("utf-8", WB_SLICE_LIT("\xef\xbb\xbf\xff"), "\xef\xbb\xbf\xef\xbf\xbd"); /* not a BOM here */
    expect_utf8("windows-1252", WB_SLICE_LIT("\x80"), "\xe2\x82\xac");
    expect_utf8("windows-1252", WB_SLICE_LIT(""), "");
}

static void test_css_charset(void **state)
{
    static const struct {
        const char *sheet, *transport, *want;
    } cases[] = {
        {"a{}", "", "utf-8"},
        {"a{}", "koi8-r", "koi8-r"},
        {"@charset \"koi8-r\";", "", "koi8-r"},
        {"@charset \"koi8-r\";", "latin1", "windows-1252"},
        {"@charset \"utf-16\";", "", "utf-8"},
        {"\xef\xbb\xbf@charset \"koi8-r\";", "latin1", "utf-8"},
        {"a{b:'\xc3\xa9'}", "nonsense", "utf-8"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(wb_tagwalk_css_charset(wb_slice_str(cases[i].sheet), wb_slice_str(cases[i].transport)),
                            cases[i].want);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_utf8),
        cmocka_unit_test(test_css_charset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
