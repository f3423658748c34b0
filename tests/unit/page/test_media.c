/* test_media.c - media types of headers and of file names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "../expect.h"
#include "page/page.h"

static const struct {
    const char *value, *type, *charset;
} values[] = {
    {"text/html", "text/html", ""},
    {"text/HTML; charset=UTF-8", "text/html", "utf-8"},
    {" Text/Plain ;charset=\"ISO-8859-1\" ", "text/plain", "iso-8859-1"},
    {"text/html;charset='utf-8'", "text/html", "utf-8"},
    {"text/html; boundary=x; CHARSET = utf-8 ; charset=latin1", "text/html", "utf-8"},
    {"text/html; charset=", "text/html", ""},
    {"text/html; charset=a b", "text/html", ""},
    {"text/html; charset=\"\"; charset=koi8-r", "text/html", "koi8-r"},
    {"application/ld+json", "application/ld+json", ""},
    {"text", "", ""},
    {"text/", "", ""},
    {"/html", "", ""},
    {"te xt/html; charset=utf-8", "", "utf-8"},
    {"", "", ""},
    {";;;", "", ""},
    {"text/html\r\nX: y", "", ""},
};

static void test_parse(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        struct wb_buf mem = WB_BUF_INIT;
        struct wb_slice type, charset;
        assert_int_equal(wb_media_type_parse(wb_slice_str(values[i].value), &mem, &type, &charset), 0);
        expect(type, values[i].type);
        expect(charset, values[i].charset);
        wb_buf_release(&mem);
    }
}

static void test_long(void **state)
{
    (void)state;
    char value[600] = "text/";
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_slice type, charset;

    memset(value + 5, 'x', 500);
    assert_int_equal(wb_media_type_parse(wb_slice_str(value), &mem, &type, &charset), 0);
    expect(type, "");
    wb_buf_release(&mem);
}

static void test_names(void **state)
{
    (void)state;
    static const char *const names[][2] = {
        {"index.html", "text/html"},
        {"A/B.HTM", "text/html"},
        {"style/main.css", "text/css"},
        {"notes.txt", "text/plain"},
        {"image.png", "image/png"},
        {"a.b.js", "text/javascript"},
        {"x.unknown", "application/octet-stream"},
        {"html", "application/octet-stream"},
        {"dir.html/file", "application/octet-stream"},
        {"", "application/octet-stream"},
        {".", "application/octet-stream"},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        expect(wb_media_type_of_name(wb_slice_str(names[i][0])), names[i][1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parse),
        cmocka_unit_test(test_long),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
