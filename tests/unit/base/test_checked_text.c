/* test_checked_text.c - small files of text with a checksum: nothing but what was written is taken for one. */
#include "../allocfail.h"
#include "../expect.h"
#include "base/checked_text.h"
#include "base/hash.h"

#define LINES "webbase test\nformat 1\nempty \nword a b  c\n"

static struct wb_buf text_of(const char *lines)
{
    struct wb_buf text = WB_BUF_INIT;

    ok(wb_buf_append_str(&text, lines));
    ok(wb_checked_text_end(&text));
    return text;
}

static bool is_text(struct wb_slice bytes)
{
    struct wb_slice lines;
    bool is = wb_checked_text_open(bytes, &lines);

    if (is)
        assert_int_equal(lines.len, bytes.len - WB_CHECKED_TEXT_CHECK_BYTES);
    else
        assert_int_equal(lines.len, 0);
    return is;
}

/* The bytes on disk stay the same for ever: this sum was made by the first version. */
static void test_bytes(void **state)
{
    struct wb_buf text = text_of("webbase dispenser 1\nurl postgres://u:p@h/d\n");

    (void)state;
    expect(wb_buf_slice(&text), "webbase dispenser 1\nurl postgres://u:p@h/d\ncheck 0edaac43758a2c4b\n");
    assert_true(is_text(wb_buf_slice(&text)));
    wb_buf_release(&text);
}

static void test_lines(void **state)
{
    struct wb_buf text = text_of(LINES);
    struct wb_slice lines, value, before;

    (void)state;
    assert_true(wb_checked_text_open(wb_buf_slice(&text), &lines));
    expect(lines, LINES);
    assert_false(wb_checked_text_take(&lines, "format", &value)); /* not yet */
    assert_false(wb_checked_text_take(&lines, "webb", &value));
    assert_false(wb_checked_text_take(&lines, "webbase tes", &value));
    assert_false(wb_checked_text_take(&lines, "webbase test\nformat", &value));
    assert_int_equal(value.len, 0);
    expect(lines, LINES);
    assert_true(wb_checked_text_take(&lines, "webbase", &value));
    expect(value, "test");
    assert_true(wb_checked_text_take(&lines, "format", &value));
    expect(value, "1");
    assert_true(wb_checked_text_take(&lines, "empty", &value));
    expect(value, "");
    assert_true(wb_checked_text_take(&lines, "word", &value));
    expect(value, "a b  c");
    before = lines;
    assert_int_equal(lines.len, 0);
    assert_false(wb_checked_text_take(&lines, "check", &value)); /* the last line is not one of them */
    assert_ptr_equal(lines.ptr, before.ptr);
    wb_buf_release(&text);
}

/* Lines that are no lines, where nobody has looked at the checksum. */
static void test_odd_lines(void **state)
{
    static const char *const odd[] = {"",       "\n",     "a",     "a ",     "a 1",    "a\n",
                                      "ab 1\n", " a 1\n", "A 1\n", "a\t1\n", "\na 1\n"};
    struct wb_slice lines, value;

    (void)state;
    for (size_t i = 0; i < COUNT(odd); i++) {
        lines = wb_slice_str(odd[i]);
        assert_false(wb_checked_text_take(&lines, "a", &value));
        expect(lines, odd[i]);
    }
    lines = wb_slice(NULL, 0);
    assert_false(wb_checked_text_take(&lines, "a", &value));
    lines = WB_SLICE_LIT("a  \n\n");
    assert_true(wb_checked_text_take(&lines, "a", &value));
    expect(value, " ");
    expect(lines, "\n");
}

static void test_truncated(void **state)
{
    struct wb_buf text = text_of(LINES);

    (void)state;
    assert_true(is_text(wb_buf_slice(&text)));
    for (size_t len = 0; len < text.len; len++)
        assert_false(is_text(wb_slice(text.ptr, len)));
    for (size_t from = 1; from <= text.len; from++)
        assert_false(is_text(wb_slice(text.ptr + from, text.len - from)));
    assert_false(is_text(wb_slice(NULL, 0)));
    wb_buf_release(&text);
}

/* Every byte changed in every bit: also those that make other digits of the sum, such as capital letters. */
static void test_flipped(void **state)
{
    struct wb_buf text = text_of(LINES);

    (void)state;
    for (size_t bit = 0; bit < 8 * text.len; bit++) {
        text.ptr[bit / 8] ^= (char)(1 << bit % 8);
        assert_false(is_text(wb_buf_slice(&text)));
        text.ptr[bit / 8] ^= (char)(1 << bit % 8);
    }
    assert_true(is_text(wb_buf_slice(&text)));
    wb_buf_release(&text);
}

static void test_more_bytes(void **state)
{
    struct wb_buf text = text_of(LINES), twice;

    (void)state;
    twice = text_of("a 1\n");
    ok(wb_buf_append_slice(&twice, wb_buf_slice(&text)));
    assert_false(is_text(wb_buf_slice(&twice)));
    for (int c = 0; c < 256; c++) {
        ok(wb_buf_append_char(&text, (char)c));
        assert_false(is_text(wb_buf_slice(&text)));
        text.len--;
    }
    wb_buf_release(&text);
    wb_buf_release(&twice);
}

/* A sum that is right is not enough. */
static void test_with_right_sum(void **state)
{
    static const struct {
        struct wb_slice lines;
        bool good;
    } cases[] = {
        {WB_SLICE_LIT("a 1\n"), true},        {WB_SLICE_LIT("\n"), true}, {WB_SLICE_LIT(""), false}, /* no lines */
        {WB_SLICE_LIT("a 1"), false},         /* the last one has no newline */
        {WB_SLICE_LIT("a 1\nb"), false},      /* the same */
        {WB_SLICE_LIT("a \0\n"), false},      /* NUL bytes */
        {WB_SLICE_LIT("\0a 1\n"), false},     /* the same */
        {WB_SLICE_LIT("a 1\n\0\n"), false},   /* the same */
        {WB_SLICE_LIT("a \xff\x01\n"), true}, /* any other bytes */
    };

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        struct wb_buf text = WB_BUF_INIT;
        struct wb_slice lines = cases[i].lines;
        ok(wb_buf_append_slice(&text, lines));
        ok(wb_buf_printf(&text, "check %016llx\n", (unsigned long long)wb_hash64(lines.ptr, lines.len)));
        assert_int_equal(is_text(wb_buf_slice(&text)), cases[i].good);
        wb_buf_release(&text);
    }
}

static void test_no_memory(void **state)
{
    struct wb_buf text = WB_BUF_INIT;

    (void)state;
    ok(wb_buf_append_str(&text, LINES));
    wb_buf_trim(&text, 0);
    alloc_fail_all();
    int err = wb_checked_text_end(&text);
    alloc_fail_none();
    assert_int_equal(err, WB_E_NOMEM);
    expect(wb_buf_slice(&text), LINES);
    ok(wb_checked_text_end(&text));
    assert_true(is_text(wb_buf_slice(&text)));
    wb_buf_release(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),          cmocka_unit_test(test_lines),     cmocka_unit_test(test_odd_lines),
        cmocka_unit_test(test_truncated),      cmocka_unit_test(test_flipped),   cmocka_unit_test(test_more_bytes),
        cmocka_unit_test(test_with_right_sum), cmocka_unit_test(test_no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
