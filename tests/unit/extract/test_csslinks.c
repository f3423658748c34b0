/* test_csslinks.c - what style sheets, styles in HTML and other elements need in order to be displayed. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "extract/extract.h"
#include "markup/css.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- sheets ------------------------------------------------------------------------------------ */

static const struct {
    const char *css, *found; /* I: import, F: font, P: picture */
} sheets[] = {
    {"", ""},
    {"body { color: red }", ""},
    {"a { background: url(a.png) }", "P:a.png"},
    {"a{background:URL( 'a b.png' )}", "P:a b.png"},
    {"a { background: url( \"x.png\" ), url(y.png) no-repeat }", "P:x.png P:y.png"},
    {"@import 'a.css'; @import url(b.css) print; @IMPORT url(\"c.css\");", "I:a.css I:b.css I:c.css"},
    {"@import/* c */\n'a.css';", "I:a.css"},
    {"@font-face { font-family: f; src: url(f.woff2) format('woff2'), url(f.ttf) } b { background: url(p.png) }",
     "F:f.woff2 F:f.ttf P:p.png"},
    {"@media print { @font-face { src: url(f) } a { background: url(p) } }", "F:f P:p"},
    {"/* url(no.png) @import 'no.css' */ a { background: url(yes.png) }", "P:yes.png"},
    {"a { content: 'url(no.png)'; background: url(yes.png) }", "P:yes.png"},
    {"a { content: 'it\\'s url(no.png)' } b { background: url(yes.png) }", "P:yes.png"},
    {"a { background: image-set('1x.png' 1x, url(2x.png) 2x); content: 'no' }", "P:1x.png P:2x.png"},
    {"a { background: -webkit-image-set(url(a.png) 1x) }", "P:a.png"},
    {"a { background: url(a\\).png) } b { background: url('b\\'.png') }", "P:a).png P:b'.png"},
    {"a { background: url(\\61\\000062 c.png) }", "P:abc.png"},
    {"a { background: url('a\\\nb.png') }", "P:ab.png"},
    {"a { background: url(data:image/png;base64,AAAA) } b { mask: url(#m) } c { mask: url() }", ""},
    {"@namespace svg url(http://www.w3.org/2000/svg); a { background: url(y.png) }", "P:y.png"},
    {"a { background: myurl(no.png); b: url (no.png) }", ""},
    {"background: url(x.png)", "P:x.png"}, /* a style attribute */
    {"a { background: url(", ""},
    {"a { background: url('", ""},
    {"a { background: url(x.png", "P:x.png"},
    {"@import", ""},
    {"@import 'x.css", "I:x.css"},
    {"a { content: 'no\n url(yes.png) }", "P:yes.png"}, /* a line end ends a damaged string */
    {"}}}} a { background: url(x.png) }", "P:x.png"},
    {"/* never closed url(x.png)", ""},
    {"\\", ""},
};

static void test_sheets(void **state)
{
    struct wb_buf shown = WB_BUF_INIT, url = WB_BUF_INIT;
    struct wb_css_item item;
    struct wb_css css;

    (void)state;
    for (size_t i = 0; i < COUNT(sheets); i++) {
        wb_buf_clear(&shown);
        wb_css_init(&css, wb_slice_str(sheets[i].css));
        while (wb_css_next(&css, &item)) {
            assert_int_equal(wb_css_decode(item.raw, &url), 0);
            struct wb_slice text = wb_buf_slice(&url);
            if (text.len && text.ptr[0] != '#' && !wb_slice_starts(text, WB_SLICE_LIT("data:")))
                assert_int_equal(
                    wb_buf_printf(&shown, "%s%c:%.*s", shown.len ? " " : "", " PIF"[item.kind], WB_SLICE_ARG(text)), 0);
        }
        if (!wb_slice_equal(wb_buf_slice(&shown), wb_slice_str(sheets[i].found)))
            fail_msg("%s: found '%.*s', not '%s'", sheets[i].css, WB_SLICE_ARG(wb_buf_slice(&shown)), sheets[i].found);
    }
    wb_buf_release(&url);
    wb_buf_release(&shown);
}

/* ---- pages --------------------------------------------------------------------------------------- */

static const struct {
    const char *type, *body, *links; /* links: the tag, and the URL without what all have in common */
} pages[] = {
    {"text/css", "@import 'a.css'; a { background: url(../b\\2e png) }", "style:x/a.css image:b.png"},
    {"text/html", "<link rel=stylesheet href=s.css><link rel='shortcut icon' href=i.ico><link rel=next href=n>",
     "style:x/s.css image:x/i.ico link:x/n"},
    {"text/html", "<link rel=preload as=font href=f><link rel=modulepreload as=script href=m><link rel=preload href=p>",
     "style:x/f script:x/m link:x/p"},
    {"text/html", "<script src=a.js></script><script>var x = '<img src=no>';</script>", "script:x/a.js"},
    {"text/html", "<video src=v poster=p><source src=s><track src=t></video><audio src=a></audio>",
     "image:x/p media:x/v media:x/s media:x/t media:x/a"},
    {"text/html", "<picture><source srcset='a 1x, b 2x'><img src=c srcset='d 2x'></picture>",
     "source:x/a source:x/b img:x/c img:x/d"},
    {"text/html", "<embed src=e><object data=o></object><input type=IMAGE src=i><input type=text src=no>",
     "media:x/e media:x/o image:x/i"},
    {"text/html", "<body background=b><p style=\"background:url('p.png')\">", "image:x/b image:x/p.png"},
    {"text/html", "<made-up style='background:url(&quot;q.png&quot;)'></made-up>", "image:x/q.png"},
    {"text/html", "<style>@import 's.css'; a { background: url(b.png) }</style><p>text", "style:x/s.css image:x/b.png"},
    {"text/html", "<svg><image href=i /><image xlink:href=j /></svg>", "image:x/i image:x/j"},
    {"text/html", "<template><script src=no></script><p style='background:url(no)'></template>", ""},
    {"text/html", "<base href='/y/'><p style='background:url(p)'><script src=s></script>", "image:y/p script:y/s"},
};

static void test_pages(void **state)
{
    static const char common[] = "http://example.org/";
    struct wb_buf shown = WB_BUF_INIT;
    struct wb_extractor *x;
    struct wb_extract out;

    (void)state;
    assert_int_equal(wb_extractor_new(&x), 0);
    for (size_t i = 0; i < COUNT(pages); i++) {
        struct wb_extract_input input = {WB_SLICE_LIT("http://example.org/x/page"), wb_slice_str(pages[i].type),
                                         WB_SLICE_EMPTY, wb_slice_str(pages[i].body),
                                         WB_EXTRACT_ALL | WB_EXTRACT_NEEDS};
        assert_int_equal(wb_extract(x, &input, &out), 0);
        wb_buf_clear(&shown);
        for (size_t k = 0; k < out.link_count; k++) {
            struct wb_slice url = out.links[k].url;
            assert_true(wb_slice_starts(url, WB_SLICE_LIT(common)));
            assert_int_equal(wb_buf_printf(&shown, "%s%s:%.*s", k ? " " : "",
                                           wb_extract_tag_name((enum wb_extract_tag)out.links[k].tag),
                                           (int)(url.len - sizeof common + 1), url.ptr + sizeof common - 1),
                             0);
        }
        if (!wb_slice_equal(wb_buf_slice(&shown), wb_slice_str(pages[i].links)))
            fail_msg("%s: '%.*s', not '%s'", pages[i].body, WB_SLICE_ARG(wb_buf_slice(&shown)), pages[i].links);
    }
    wb_buf_release(&shown);
    wb_extractor_free(x);
}

/* Without WB_EXTRACT_NEEDS everything is as before: a style sheet is no page, and a script is no link. */
static void test_only_if_wanted(void **state)
{
    struct wb_extractor *x;
    struct wb_extract out;

    (void)state;
    assert_int_equal(wb_extractor_new(&x), 0);
    struct wb_extract_input input = {WB_SLICE_LIT("http://example.org/"), WB_SLICE_LIT("text/html"), WB_SLICE_EMPTY,
                                     WB_SLICE_LIT("<script src=a.js></script><p style='background:url(b)'>"
                                                  "<link rel=stylesheet href=c>"),
                                     WB_EXTRACT_ALL};
    assert_int_equal(wb_extract(x, &input, &out), 0);
    assert_int_equal(out.link_count, 1);
    assert_int_equal(out.links[0].tag, WB_EXTRACT_LINK_LINK);
    input.type = WB_SLICE_LIT("text/css");
    assert_int_equal(wb_extract(x, &input, &out), 0);
    assert_int_equal(out.link_count, 0);
    assert_string_equal(out.module, "");
    wb_extractor_free(x);
}

static void test_needs(void **state)
{
    (void)state;
    assert_int_equal(wb_extract_need(WB_EXTRACT_LINK_IMG), WB_EXTRACT_NEED_IMAGES);
    assert_int_equal(wb_extract_need(WB_EXTRACT_LINK_SOURCE), WB_EXTRACT_NEED_IMAGES);
    assert_int_equal(wb_extract_need(WB_EXTRACT_LINK_IMAGE), WB_EXTRACT_NEED_IMAGES);
    assert_int_equal(wb_extract_need(WB_EXTRACT_LINK_STYLE), WB_EXTRACT_NEED_STYLES);
    assert_int_equal(wb_extract_need(WB_EXTRACT_LINK_SCRIPT), WB_EXTRACT_NEED_SCRIPTS);
    assert_int_equal(wb_extract_need(WB_EXTRACT_LINK_MEDIA), WB_EXTRACT_NEED_MEDIA);
    assert_int_equal(wb_extract_need(WB_EXTRACT_LINK_A), 0);
    assert_int_equal(wb_extract_need(WB_EXTRACT_LINK_LINK), 0);
    assert_int_equal(wb_extract_need(14), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sheets),
        cmocka_unit_test(test_pages),
        cmocka_unit_test(test_only_if_wanted),
        cmocka_unit_test(test_needs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
