/* test_picture.c - images: width, height and the date of EXIF, from whole and from damaged files; and facts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "../expect.h"
#include "base/buf.h"
#include "base/json.h"
#include "extract/extract.h"

#define EXIF_II                                                                                                        \
    "II*\0\x08\0\0\0"                                                                                                  \
    "\x01\0\x69\x87\x04\0\x01\0\0\0\x1a\0\0\0\0\0\0\0"                                                                 \
    "\x01\0\x03\x90\x02\0\x14\0\0\0\x2c\0\0\0\0\0\0\0"                                                                 \
    "2016:07:08 09:10:11\0"
#define EXIF_MM                                                                                                        \
    "MM\0*\0\0\0\x08"                                                                                                  \
    "\0\x01\x01\x32\0\x02\0\0\0\x14\0\0\0\x1a\0\0\0\0"                                                                 \
    "2016:07:08 09:10:11\0"

static const struct {
    const char *type, *width, *height;
    bool dated;
    struct wb_slice bytes;
} pictures[] = {
    {"image/png", "640", "480", false,
     WB_SLICE_LIT("\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\x02\x80\0\0\x01\xe0\x08\x06\0\0\0AAAA\0\0\0\0IEND")},
    {"image/png", "1", "2", true,
     WB_SLICE_LIT("\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR\0\0\0\x01\0\0\0\x02\x08\x06\0\0\0AAAA\0\0\0\x2e"
                  "eXIf" EXIF_MM "AAAA")},
    {"image/jpeg", "48", "32", true,
     WB_SLICE_LIT("\xff\xd8\xff\xe1\0\x48"
                  "Exif\0\0" EXIF_II "\xff\xc2\0\x0b\x08\0\x20\0\x30\x01\x01\x11\0\xff\xda")},
    {"image/gif", "7", "5", false, WB_SLICE_LIT("GIF89a\x07\0\x05\0\x80\0\0")},
    {"image/png", "7", "5", false, WB_SLICE_LIT("GIF87a\x07\0\x05\0\x80\0\0")}, /* the server is wrong */
    {"image/webp", "100", "200", false, WB_SLICE_LIT("RIFF\x16\0\0\0WEBPVP8X\x0a\0\0\0\0\0\0\0\x63\0\0\xc7\0\0")},
    {"image/webp", "176", "144", false,
     WB_SLICE_LIT("RIFF\x16\0\0\0WEBPVP8 \x0a\0\0\0\x30\x01\0\x9d\x01\x2a\xb0\0\x90\0")},
    {"image/webp", "16", "8", false, WB_SLICE_LIT("RIFF\x16\0\0\0WEBPVP8L\x05\0\0\0\x2f\x0f\xc0\x01\0")},
};

static struct wb_slice fact(const struct wb_extract *e, const char *name)
{
    for (size_t i = 0; i < e->fact_count; i++)
        if (wb_slice_equal(e->facts[i].name, wb_slice_str(name)))
            return e->facts[i].value;
    return WB_SLICE_EMPTY;
}

static void read_picture(struct wb_extractor *x, const char *type, struct wb_slice bytes, struct wb_extract *out)
{
    struct wb_extract_input input = {WB_SLICE_LIT("http://example.org/a"), wb_slice_str(type), WB_SLICE_EMPTY, bytes,
                                     WB_EXTRACT_ALL};

    assert_int_equal(wb_extract(x, &input, out), 0);
    assert_string_equal(out->module, "image");
}

static void test_formats(void **state)
{
    struct wb_extractor *x;
    struct wb_extract out;

    (void)state;
    assert_int_equal(wb_extractor_new(&x), 0);
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++) {
        read_picture(x, pictures[i].type, pictures[i].bytes, &out);
        assert_true(wb_slice_equal(fact(&out, "width"), wb_slice_str(pictures[i].width)));
        assert_true(wb_slice_equal(fact(&out, "height"), wb_slice_str(pictures[i].height)));
        assert_true(out.published_ms == (pictures[i].dated ? INT64_C(1467969011000) : 0));
        assert_string_equal(out.module_error, "");
    }
    wb_extractor_free(x);
}

/* A file that is cut off has its size and no date, or says that it is damaged; other bytes never have a size. */
static void test_cut(void **state)
{
    struct wb_extractor *x;
    struct wb_extract out;

    (void)state;
    assert_int_equal(wb_extractor_new(&x), 0);
    for (size_t i = 0; i < sizeof pictures / sizeof *pictures; i++)
        for (size_t len = 0; len < pictures[i].bytes.len; len++) {
            read_picture(x, pictures[i].type, wb_slice(pictures[i].bytes.ptr, len), &out);
            if (out.fact_count)
                assert_true(wb_slice_equal(fact(&out, "width"), wb_slice_str(pictures[i].width)));
            assert_true((out.fact_count == 0) == (strcmp(out.module_error, "failed") == 0));
        }
    read_picture(x, "image/png", WB_SLICE_LIT("<html>not found</html>"), &out);
    assert_string_equal(out.module_error, "failed");
    wb_extractor_free(x);
}

static void test_numbers(void **state)
{
    static const char *const numbers[] = {"0", "640", "-1", "2.5", "1e3", "-0.5"};
    static const char *const words[] = {"", "sunny", "007", "1 ", "0x10", "nan", "inf", "1.", ".5", "+1", "1e999", "-"};

    (void)state;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        assert_true(wb_extract_number(wb_slice_str(numbers[i]), NULL));
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_false(wb_extract_number(wb_slice_str(words[i]), NULL));
}

static void test_json(void **state)
{
    const struct wb_extract_fact facts[] = {{WB_SLICE_LIT("mood"), WB_SLICE_LIT("\"sunny\"")},
                                            {WB_SLICE_LIT("width"), WB_SLICE_LIT("640")}};
    struct wb_extract e = {.facts = facts, .fact_count = 2};
    struct wb_buf out = WB_BUF_INIT;
    struct wb_json j;

    (void)state;
    wb_json_init(&j, &out);
    wb_json_object(&j);
    wb_extract_json_facts(&j, &e);
    wb_json_object_end(&j);
    assert_true(
        wb_slice_equal(wb_buf_slice(&out), WB_SLICE_LIT("{\"facts\":{\"mood\":\"\\\"sunny\\\"\",\"width\":640}}")));
    wb_buf_release(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_formats),
        cmocka_unit_test(test_cut),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
