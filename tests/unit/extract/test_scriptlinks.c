/* test_scriptlinks.c - which strings of a script are taken for files that it loads, and where those are. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "extract/extract.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define PAGE "http://site.example/js/main.js"

static char *listed(const char *type, const char *body, unsigned wants, struct wb_buf *shown)
{
    struct wb_extract_input input = {.url = WB_SLICE_LIT(PAGE), .type = wb_slice_str(type), .body = wb_slice_str(body),
                                     .charset = WB_SLICE_EMPTY, .wants = wants};
    struct wb_extractor *extractor = NULL;
    struct wb_extract extract;

    wb_buf_clear(shown);
    assert_int_equal(wb_extractor_new(&extractor), 0);
    assert_int_equal(wb_extract(extractor, &input, &extract), 0);
    for (size_t i = 0; i < extract.link_count; i++) {
        const struct wb_extract_link *link = &extract.links[i];
        char need = link->tag == WB_EXTRACT_LINK_SCRIPT ? 'J' : link->tag == WB_EXTRACT_LINK_STYLE ? 'C' : 'P';
        assert_int_equal(wb_buf_printf(shown, "%s%c:%.*s", shown->len ? " " : "", need,
                                       WB_SLICE_ARG(link->url)), 0);
    }
    assert_int_equal(wb_buf_terminate(shown), 0);
    wb_extractor_free(extractor);
    return shown->ptr;
}

static const struct {
    const char *script, *found; /* J: script, C: style or font, P: picture; without the site */
} scripts[] = {
    {"import './a.js'; import('../b'); import '/c?d=1'; import 'http://e.example/f'",
     "J:http://site.example/js/a.js J:http://site.example/b J:http://site.example/c?d=1 J:http://e.example/f"},
    {"import React from 'react'; import 'lib.js/x'", ""}, /* a map explains these */
    {"load('search.js', 'look.css', 'a.woff2', 'b.png')",
     "J:http://site.example/js/search.js C:http://site.example/js/look.css C:http://site.example/js/a.woff2 "
     "P:http://site.example/js/b.png"},
    {"load('./x/search.js', '../up/data.json')",
     "J:http://site.example/js/x/search.js J:http://site.example/up/data.json"},
    {"dir + '/config.js'; name + '.js'; a + './.js'; define('ui/tooltip.js', x); '[Lib]/a.js'; 'no such.js'", ""},
    {"'http://other.example/a.js'; '//other.example/a.js'; 'text.txt'; 'js'; '.'; 'a\\.js'", ""},
};

static void test_scripts(void **state)
{
    struct wb_buf shown = WB_BUF_INIT;

    (void)state;
    for (size_t i = 0; i < COUNT(scripts); i++)
        assert_string_equal(listed("text/javascript", scripts[i].script, WB_EXTRACT_ALL | WB_EXTRACT_NEEDS, &shown),
                            scripts[i].found);
    assert_string_equal(listed("application/x-javascript", "'a.js'", WB_EXTRACT_ALL | WB_EXTRACT_NEEDS, &shown),
                        "J:http://site.example/js/a.js");
    assert_string_equal(listed("text/javascript", "'a.js'", WB_EXTRACT_ALL, &shown), ""); /* unless it is wanted */
    wb_buf_release(&shown);
}

/* In pages: modules say what they import; other scripts in a page are left alone. */
static void test_in_pages(void **state)
{
    struct wb_buf shown = WB_BUF_INIT;
    const char *page = "<script type=module>import './a.js'</script><script>'b.js'</script><p>'c.js'"
                       "<template><script type=module>import './d.js'</script></template>";

    (void)state;
    assert_string_equal(listed("text/html", page, WB_EXTRACT_ALL | WB_EXTRACT_NEEDS, &shown),
                        "J:http://site.example/js/a.js");
    assert_string_equal(listed("text/html", page, WB_EXTRACT_ALL, &shown), "");
    wb_buf_release(&shown);
}

/* A script of thousands of names (a search index) is not a thousand requests. */
static void test_few_guesses(void **state)
{
    struct wb_buf body = WB_BUF_INIT, shown = WB_BUF_INIT;
    unsigned found = 0;

    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(wb_buf_printf(&body, "'page%u.js',", i), 0);
    assert_int_equal(wb_buf_append_str(&body, "import('./last.js')"), 0);
    assert_int_equal(wb_buf_terminate(&body), 0);
    const char *all = listed("text/javascript", body.ptr, WB_EXTRACT_LINKS | WB_EXTRACT_NEEDS, &shown);
    for (const char *at = all; (at = strstr(at, "J:")); at++)
        found++;
    assert_int_equal(found, 32 + 1);
    assert_non_null(strstr(all, "last.js"));
    wb_buf_release(&shown);
    wb_buf_release(&body);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scripts),
        cmocka_unit_test(test_in_pages),
        cmocka_unit_test(test_few_guesses),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
