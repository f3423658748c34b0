/* test_script.c - the strings in scripts, and what only looks like one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/buf.h"
#include "markup/script.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

static const struct {
    const char *script, *found; /* I: imported, S: any other string */
} scripts[] = {
    {"", ""},
    {"'a'", "S:a"},
    {"f(\"a\", 'b c', `d`)", "S:a S:b c S:d"},
    {"var x = ''; y = \"\"", "S: S:"},
    {"import './a.js'; import x from \"./b.js\"; import * as y from'./c.js'; import {z} from './d.js'",
     "I:./a.js I:./b.js I:./c.js I:./d.js"},
    {"export * from './a.js'; export {b} from \"./b.js\"", "I:./a.js I:./b.js"},
    {"await import('./a.js'); import( /* why */ \"./b.js\" ); import(`./c.js`)", "I:./a.js I:./b.js I:./c.js"},
    {"import/* c */'./a.js' // './no.js'\n'b'", "I:./a.js S:b"},
    {"x.import('a'); x.from 'b'; Array.from('c'); from('d')", "S:a S:b S:c S:d"},
    {"import x, 'a'", "S:a"},
    {"// 'no'\n'a' /* 'no' */ 'b' // 'no'", "S:a S:b"},
    {"/* 'never closed", ""},
    {"//", ""},
    {"/", ""},
    {"'never closed", ""},
    {"'no\n'a'", "S:a"}, /* a line end ends a damaged string */
    {"'it\\'s' + 'a\\\\' + 'b'", "S:b"},
    {"'\\", ""},
    {"x = /'no/ + 'a'", "S:a"},
    {"f(/[/'\"]/g, 'a')", "S:a"},
    {"return /'/.test('a')", "S:a"},
    {"x.return / 'a' / 2", "S:a"},
    {"a / b + 'c' / d", "S:c"},
    {"f(a) / 'b' / 2", "S:b"},
    {"x = /never\n'a'", "S:a"},
    {"x = /\\/'/ + 'a'", "S:a"},
    {"`a ${'b' + `c${d}` + {e: 'f'}['g']} no` + 'h'", "S:b S:f S:g S:h"},
    {"`no ${x} 'no' ${y} no`; 'a'", "S:a"},
    {"`no\nno`; `no\\``; 'a'", "S:a"},
    {"`never closed 'no'", ""},
    {"`a${", ""},
    {"}}} 'a' {", "S:a"},
    {"\xc3\xa4 'a' \xff 'b'", "S:a S:b"},
};

static void test_strings(void **state)
{
    struct wb_buf shown = WB_BUF_INIT;
    struct wb_script_item item;
    struct wb_script script;

    (void)state;
    for (size_t i = 0; i < COUNT(scripts); i++) {
        wb_buf_clear(&shown);
        wb_script_init(&script, wb_slice_str(scripts[i].script));
        while (wb_script_next(&script, &item))
            assert_int_equal(wb_buf_printf(&shown, "%s%c:%.*s", shown.len ? " " : "",
                                           item.kind == WB_SCRIPT_IMPORT ? 'I' : 'S', WB_SLICE_ARG(item.text)), 0);
        assert_int_equal(wb_buf_terminate(&shown), 0);
        if (strcmp(shown.ptr, scripts[i].found) != 0)
            fail_msg("%s: %s, not %s", scripts[i].script, shown.ptr, scripts[i].found);
    }
    wb_buf_release(&shown);
}

/* More open templates than are remembered: what follows may be misread, but nothing breaks, and all of it is read. */
static void test_deep(void **state)
{
    struct wb_buf deep = WB_BUF_INIT;
    struct wb_script_item item;
    struct wb_script script;
    unsigned found = 0;

    (void)state;
    for (unsigned i = 0; i < 1000; i++)
        assert_int_equal(wb_buf_append_str(&deep, "`${'a'+"), 0);
    for (unsigned i = 0; i < 2000; i++)
        assert_int_equal(wb_buf_append_str(&deep, "}`"), 0);
    wb_script_init(&script, wb_buf_slice(&deep));
    while (wb_script_next(&script, &item))
        found++;
    assert_true(found >= 1000);
    assert_ptr_equal(script.at, script.end);
    wb_buf_release(&deep);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_deep),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
