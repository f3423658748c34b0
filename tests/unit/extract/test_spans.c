/* test_spans.c - which parts of a text are headings, and which are main text. */
#include "extract_support.h"

#include "../allocfail.h"
#include "../seeded.h"
#include "base/buf.h"
#include "base/error.h"

/* Checks that the spans cover the text, and writes them as "[Hm text]" with a letter for each flag that is set. */
static void write_spans(struct wb_buf *line)
{
    uint32_t end = 0;

    wb_buf_clear(line);
    for (size_t i = 0; i < page.span_count; i++) {
        const struct wb_extract_span *s = &page.spans[i];
        assert_true(s->begin == end && s->end > s->begin && s->end <= page.text.len);
        assert_true(i == 0 || s->flags != s[-1].flags);
        end = s->end;
        assert_int_equal(wb_buf_printf(line, "[%s%s|%.*s]", s->flags & WB_EXTRACT_SPAN_HEADING ? "H" : "",
                                       s->flags & WB_EXTRACT_SPAN_MAIN ? "m" : "",
                                       WB_SLICE_ARG(wb_slice(page.text.ptr + s->begin, s->end - s->begin))),
                         0);
    }
    assert_int_equal(end, page.text.len);
}

static void expect_spans(const char *type, const char *body, const char *want)
{
    struct wb_buf line = WB_BUF_INIT;

    see_page(type, "utf-8", wb_slice_str(body), WB_EXTRACT_TEXT);
    write_spans(&line);
    expect(wb_buf_slice(&line), want);
    wb_buf_release(&line);
}

#define PROSE                                                                                                          \
    "This is a paragraph of the article, which is long enough to be prose, and it goes on for a while, so that "       \
    "nobody can doubt that an author wrote it."

static void test_html(void **state)
{
    (void)state;
    expect_spans("text/html", "", "");
    expect_spans("text/html", "<p>few words", "[m|few words]");
    expect_spans("text/html",
                 "<nav><a href=/>Home</a></nav><main><h1>Top</h1><p>" PROSE "<h2>Sub</h2><p>" PROSE
                 "</main><footer>Imprint</footer>",
                 "[|Home][Hm|\nTop][m|\n" PROSE "][Hm|\nSub][m|\n" PROSE "][|\nImprint]");
    /* A heading outside the main text. */
    expect_spans("text/html", "<main><p>" PROSE "</main><aside><h3>Related</h3><a href=/>x</a></aside>",
                 "[m|" PROSE "][H|\nRelated][|\nx]");
}

/* Headings that contain blocks, or were not closed. */
static void test_headings(void **state)
{
    (void)state;
    expect_spans("text/html", "<h1><div>One</div> two</h1><p>three", "[H|One\ntwo][m|\nthree]");
    expect_spans("text/html", "<h1>One<br>two</h1>three", "[Hm|One\ntwo][m|\nthree]");
    expect_spans("text/html", "<h1>One</h2>two", "[Hm|One][m|\ntwo]");
    expect_spans("text/html", "<h1>One<p>two", "[Hm|One][m|\ntwo]");
    expect_spans("text/html", "<div><h1>One</div><div>two</div>", "[Hm|One][m|\ntwo]");
    expect_spans("text/html", "<h1>One</h1><h2>two</h2><p>three", "[Hm|One\ntwo][m|\nthree]");
    expect_spans("text/html", "<h7>One</h7> two", "[m|One two]");
    /* The end tag was forgotten: only the beginning is a heading. */
    struct wb_buf body = WB_BUF_INIT;
    assert_int_equal(wb_buf_append_str(&body, "<h1>One"), 0);
    for (int i = 0; i < 100; i++)
        assert_int_equal(wb_buf_append_str(&body, "<div>" PROSE "</div>"), 0);
    see_page("text/html", "utf-8", wb_buf_slice(&body), WB_EXTRACT_TEXT);
    assert_int_equal(page.span_count, 2);
    assert_int_equal(page.spans[0].flags & WB_EXTRACT_SPAN_HEADING, WB_EXTRACT_SPAN_HEADING);
    assert_true(page.spans[0].end <= 1200);
    wb_buf_release(&body);
}

static void test_other_types(void **state)
{
    (void)state;
    expect_spans("text/plain", "one\n\ntwo", "[m|one\ntwo]");
    expect_spans("text/plain", "", "");
    expect_spans("application/xml", "<a><b>one</b></a>", "[m|one]");
    expect_spans("application/octet-stream", "one", "");
    /* Without the text there are no spans. */
    see_page("text/html", "utf-8", WB_SLICE_LIT("<h1>One</h1>two"), WB_EXTRACT_LANGUAGE | WB_EXTRACT_SIMHASH);
    assert_true(page.span_count == 0 && page.spans == NULL);
    see_page("text/plain", "utf-8", WB_SLICE_LIT("one two"), WB_EXTRACT_LINKS);
    assert_true(page.span_count == 0 && page.spans == NULL);
}

/* The main spans of a page, without the gaps between them, are its main text. */
static void check_main(void)
{
    struct wb_buf joined = WB_BUF_INIT;

    for (size_t i = 0; i < page.span_count; i++) {
        const struct wb_extract_span *s = &page.spans[i];
        if (s->flags & WB_EXTRACT_SPAN_MAIN)
            assert_int_equal(wb_buf_append(&joined, page.text.ptr + s->begin, s->end - s->begin), 0);
    }
    assert_true(wb_slice_equal(wb_slice_trim(wb_buf_slice(&joined)), page.main_text));
    wb_buf_release(&joined);
}

static void test_random(void **state)
{
    static const char *const pieces[] = {
        "<h1>",        "</h1>",    "<h2 class=x>", "</h3>",      "<div>",   "</div>",   "<p>",  "</p>",
        "<br>",        "<nav>",    "</nav>",       "<main>",     "</main>", "<td>",     "<tr>", "<table>",
        "</table>",    "<ul><li>", "</ul>",        "<a href=/>", "</a>",    "word ",    PROSE,  "<template>",
        "</template>", "<svg>",    "</svg>",       "<h1/>",      "&amp;",   "\xc3\xa9", "\n",
    };
    uint64_t chance = test_seed();
    struct wb_buf body = WB_BUF_INIT, line = WB_BUF_INIT;

    (void)state;
    for (int i = 0; i < 5000; i++) {
        wb_buf_clear(&body);
        for (uint64_t n = chance_below(&chance, 60); n > 0; n--)
            assert_int_equal(wb_buf_append_str(&body, pieces[chance_below(&chance, sizeof pieces / sizeof *pieces)]),
                             0);
        see_page("text/html", "utf-8", wb_buf_slice(&body), WB_EXTRACT_ALL);
        write_spans(&line);
        check_main();
    }
    wb_buf_release(&body);
    wb_buf_release(&line);
}

/* Text that is cut off, and more blocks than are recorded. */
static void test_limits(void **state)
{
    struct wb_buf body = WB_BUF_INIT, line = WB_BUF_INIT;

    (void)state;
    while (body.len < WB_EXTRACT_TEXT_MAX + WB_EXTRACT_TEXT_MAX / 4)
        assert_int_equal(wb_buf_append_str(&body, "<h1>a</h1>b" PROSE "<p>"), 0);
    see_page("text/html", "utf-8", wb_buf_slice(&body), WB_EXTRACT_TEXT);
    write_spans(&line);
    assert_true(page.span_count > 1000 && page.span_count <= 65536);
    check_main();
    wb_buf_release(&body);
    wb_buf_release(&line);
}

static void test_no_memory(void **state)
{
    struct wb_extract_input input = {WB_SLICE_LIT("https://example.org/"), WB_SLICE_LIT("text/html"), WB_SLICE_EMPTY,
                                     WB_SLICE_LIT("<h1>One</h1>two"), WB_EXTRACT_TEXT};

    (void)state;
    for (size_t n = 0;; n++) {
        struct wb_extractor *x = NULL;
        assert_int_equal(wb_extractor_new(&x), 0);
        alloc_fail_nth(n);
        int err = wb_extract(x, &input, &page);
        bool failed = alloc_has_failed();
        alloc_fail_none();
        assert_int_equal(err, failed ? WB_E_NOMEM : 0);
        wb_extractor_free(x);
        if (!failed)
            break;
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_html),   cmocka_unit_test(test_headings), cmocka_unit_test(test_other_types),
        cmocka_unit_test(test_random), cmocka_unit_test(test_limits),   cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
