/* test_extract.c - the pipeline: which module gets a page, what is wanted, and running out of memory. */
#include "extract_support.h"

#include "base/error.h"
#include "base/mem.h"

#include "../allocfail.h"

static void modules_by_type(void **state)
{
    static const struct {
        const char *type, *body, *module;
    } cases[] = {
        {"text/html", "x", "html"},
        {"application/xhtml+xml", "x", "html"},
        {"text/plain", "<html>", "text"},
        {"text/markdown", "x", "text"},
        {"text/xml", "<a/>", "xml"},
        {"application/rss+xml", "<rss/>", "xml"},
        {"application/atom+xml", "<feed/>", "xml"},
        {"image/svg+xml", "<svg/>", "xml"},
        {"image/png", "x", "image"},
        {"application/pdf", "%PDF-", "pdf"},
        {"nonsense", "x", ""},
        {"application/xml", "<?xml version='1.0'?><!-- x --><!DOCTYPE html><html><p>x", "html"},
        {"text/html", "<?xml version='1.0'?>\n<rss version='2.0'></rss>", "xml"},
        {"text/html", "<feed xmlns='x'>", "xml"},
        {"text/html", "<p>the <rss> element", "html"},
        {"", "<!DOCTYPE HTML><p>", "html"},
        {"", "  <HtmL>", "html"},
        {"", "<?xml version='1.0'?><x/>", "xml"},
        {"", "words", "text"},
        {"", "\x89PNG\r\n\x1a\n", "image"},
        {"image/webp", "x", "image"},
        {"application/epub+zip", "PK", "office"},
        {"",
         "a\x01"
         "b",
         ""},
        {"", "\xef\xbb\xbf<html>", "html"},
        {"", "", "text"},
        {"", "<urlset>", "xml"},
        {"", "<htmlx>", "text"},
        {"", "\x1f\x8b\x08", ""},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        see_page(cases[i].type, "", wb_slice_str(cases[i].body), WB_EXTRACT_ALL);
        if (strcmp(page.module, cases[i].module) != 0)
            fail_msg("%s: '%s': want '%s', got '%s'", cases[i].type, cases[i].body, cases[i].module, page.module);
        bool text = strcmp(page.module, "image") && strcmp(page.module, "office") && strcmp(page.module, "pdf");
        assert_int_equal(*page.charset != 0, *page.module != 0 && text);
    }
}

static void roots(void **state)
{
    (void)state;
    expect(wb_sniff_root(WB_SLICE_LIT("<?xml?><!-- <a> --> <!DOCTYPE b><c:d e='f'>")), "c:d");
    expect(wb_sniff_root(WB_SLICE_LIT("text <a>")), "");
    expect(wb_sniff_root(WB_SLICE_LIT("<!-- unclosed <a>")), "");
    expect(wb_sniff_root(WB_SLICE_LIT("<")), "");
    expect(wb_sniff_root(WB_SLICE_EMPTY), "");
}

static void charsets(void **state)
{
    (void)state;
    see_page("text/html", "iso-8859-1", WB_SLICE_LIT("<title>\xe4</title><a href='\xf6'>\x80"), WB_EXTRACT_ALL);
    assert_string_equal(page.charset, "windows-1252");
    expect(page.title, "\xc3\xa4");
    expect(page.links[0].url, "https://example.org/%C3%B6");
    expect(page.links[0].anchor, "\xe2\x82\xac");
    see_page("text/html", "utf-8", WB_SLICE_LIT("\xef\xbb\xbf<p>a\xff" "b"), WB_EXTRACT_ALL);
    expect(page.text, "a\xef\xbf\xbd" "b");
    see_page("text/html", "", WB_SLICE_LIT("<meta charset=iso-8859-2><p>\xb1"), WB_EXTRACT_ALL);
    expect(page.text, "\xc4\x85");
    see_page("text/html", "", wb_slice("\xff\xfe<\0p\0>\0x\0", 10), WB_EXTRACT_ALL);
    assert_string_equal(page.charset, "utf-16le");
    expect(page.text, "x");
}

#define SENTENCE                                                                                                       \
    "The quick brown fox jumps over the lazy dog, and the dog does not mind it at all because it is a very lazy dog "  \
    "indeed."

static void wants(void **state)
{
    struct wb_slice body = WB_SLICE_LIT("<title>t</title><a href=x>y</a><p>" SENTENCE " " SENTENCE);

    (void)state;
    see_page("text/html", "", body, WB_EXTRACT_ALL);
    assert_string_equal(page.language, "en");
    assert_true(page.simhash == wb_simhash_of(page.main_text) && page.simhash != 0);
    assert_int_equal(page.link_count, 1);
    expect(page.main_text, SENTENCE " " SENTENCE);
    uint64_t simhash = page.simhash;
    see_page("text/html", "", body, WB_EXTRACT_SIMHASH);
    assert_true(page.simhash == simhash);
    assert_int_equal(page.link_count, 0);
    assert_int_equal(page.links_left_out, 0);
    expect(page.text, "");
    expect(page.main_text, "");
    assert_string_equal(page.language, "");
    see_page("text/html", "", body, WB_EXTRACT_LINKS);
    assert_int_equal(page.link_count, 1);
    expect(page.links[0].anchor, "y");
    expect(page.text, "");
    see_page("text/html", "", body, 0);
    expect(page.title, "t");
    see_page("text/plain", "", WB_SLICE_LIT(SENTENCE), WB_EXTRACT_SIMHASH | WB_EXTRACT_LANGUAGE);
    assert_true(page.simhash != 0);
    assert_string_equal(page.language, "en");
}

/* Nothing of a page affects the next one. */
static void pages_are_apart(void **state)
{
    (void)state;
    see_page("text/html", "",
        WB_SLICE_LIT("<html lang=de><title>t</title><base href='http://b.org/'><meta name=robots content=none>"
                     "<link rel=canonical href=c><svg><template><nav><a href=x>unclosed"),
        WB_EXTRACT_ALL);
    expect(page.base, "http://b.org/");
    see_page("text/html", "", WB_SLICE_LIT("<a href=x>plain</a><p>" SENTENCE), WB_EXTRACT_ALL);
    expect(page.base, "https://example.org/");
    expect(page.links[0].url, "https://example.org/x");
    expect(page.links[0].anchor, "plain");
    expect(page.title, "");
    expect(page.canonical, "");
    expect(page.lang, "");
    expect(page.main_text, SENTENCE);
    assert_int_equal(page.robots_flags, 0);
    see_page("image/png", "", WB_SLICE_LIT("<a href=x>"), WB_EXTRACT_ALL);
    assert_int_equal(page.link_count, 0);
    expect(page.text, "");
}

static void a_page_without_url(void **state)
{
    struct wb_extract_input input = {WB_SLICE_EMPTY, WB_SLICE_LIT("text/html"), WB_SLICE_EMPTY,
                                     WB_SLICE_LIT("<a href=x>rel</a><a href='http://a.org/b'>abs</a>"), WB_EXTRACT_ALL};

    (void)state;
    assert_int_equal(wb_extract(extractor, &input, &page), 0);
    expect(page.base, "");
    expect(page.links[0].url, "");
    expect(page.links[1].url, "http://a.org/b");
}

/* ---- running out of memory ------------------------------------------------------------------------ */

static void memory_runs_out(void **state)
{
    static const char body[] =
        "<html lang=en><title>a &amp; b</title><base href=/&amp;/><meta name=description content='&lt;'>"
        "<meta name=robots content=a><meta name=robots content=b><link rel=canonical href=&quot;>"
        "<nav>n</nav><a href=x#&amp;>1<p>2</a><img src=s srcset='a,b' alt=&gt;><p>" SENTENCE;
    struct wb_extract_input input = {WB_SLICE_LIT("https://example.org/"), WB_SLICE_LIT("text/html"),
                                     WB_SLICE_LIT("latin1"), wb_slice(body, sizeof body - 1),
                                     WB_EXTRACT_LINKS | WB_EXTRACT_TEXT};
    unsigned failures = 0;

    (void)state;
    for (unsigned n = 0; n < 1000; n++) {
        struct wb_extractor *fresh = NULL;
        alloc_fail_nth(n);
        int err = wb_extractor_new(&fresh);
        if (err == 0)
            err = wb_extract(fresh, &input, &page);
        bool failed = alloc_has_failed();
        alloc_fail_none();
        assert_int_equal(err, failed ? WB_E_NOMEM : 0);
        if (err < 0 && fresh) { /* the extractor is still usable */
            assert_int_equal(wb_extract(fresh, &input, &page), 0);
            expect(page.title, "a & b");
        }
        wb_extractor_free(fresh);
        if (!failed)
            break;
        failures++;
    }
    assert_true(failures >= 8);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(modules_by_type), cmocka_unit_test(roots), cmocka_unit_test(charsets), cmocka_unit_test(wants),
        cmocka_unit_test(pages_are_apart), cmocka_unit_test(a_page_without_url), cmocka_unit_test(memory_runs_out),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
