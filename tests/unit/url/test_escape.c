/* test_escape.c - the table of byte sets against the definitions in the standard, and escapes. */
#include "support.h"
#include "url/escape.h"

static bool listed(int c, const char *list)
{
    return c != 0 && c < 0x80 && strchr(list, c) != NULL;
}

/* Each set of the standard is another one plus a few bytes. */
static unsigned classes_of(int c)
{
    bool alnum = listed(c, "0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ");
    bool c0 = c < 0x20 || c > 0x7e;
    bool query = c0 || listed(c, " \"#<>");
    bool path = query || listed(c, "?^`{}");
    bool bad_host = c == 0 || listed(c, "\t\n\r #/:<>?@[\\]^|");
    unsigned classes = 0;

    classes |= c0 ? WB_BYTE_C0 : 0;
    classes |= c0 || listed(c, " \"<>`") ? WB_BYTE_FRAGMENT : 0;
    classes |= query ? WB_BYTE_QUERY : 0;
    classes |= query || c == '\'' ? WB_BYTE_SPECIAL_QUERY : 0;
    classes |= path ? WB_BYTE_PATH : 0;
    classes |= path || listed(c, "/:;=@[\\]|") ? WB_BYTE_USERINFO : 0;
    classes |= bad_host ? WB_BYTE_BAD_HOST : 0;
    classes |= bad_host || c < 0x20 || c == '%' || c == 0x7f ? WB_BYTE_BAD_DOMAIN : 0;
    classes |= alnum || listed(c, "-._~") ? WB_BYTE_UNRESERVED : 0;
    classes |= alnum || listed(c, "+-.") ? WB_BYTE_SCHEME : 0;
    classes |= c >= 'A' && c <= 'Z' ? WB_BYTE_UPPER : 0;
    classes |= listed(c, "\t\n\r") || c >= 0x80 ? WB_BYTE_UNCLEAN : 0;
    classes |= listed(c, "/?#") ? WB_BYTE_SEGMENT_END : 0;
    classes |= listed(c, "/\\?#:@[]") ? WB_BYTE_AUTHORITY : 0;
    return classes;
}

static void test_classes(void **state)
{
    (void)state;
    for (int c = 0; c < 256; c++)
        if (wb_byte_class[c] != classes_of(c))
            fail_msg("byte %02x has the classes %04x, not %04x", (unsigned)c, wb_byte_class[c], classes_of(c));
}

static void test_escaping(void **state)
{
    (void)state;
    char out[32];

    char *end = wb_escape_text(out, WB_SLICE_LIT("a b\xff%"), WB_BYTE_QUERY);
    assert_slice(wb_slice(out, (size_t)(end - out)), "a%20b%FF%");
}

static void test_undoing(void **state)
{
    (void)state;
    char text[] = "%41%4a%4A%%4%zz%41%4";
    size_t len = wb_escape_undo(wb_slice_str(text), text);

    assert_slice(wb_slice(text, len), "AJJ%%4%zzA%4");
    assert_int_equal(wb_escape_undo(WB_SLICE_EMPTY, text), 0);
}

static void test_value(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int value;
    } cases[] = {{"%7e", 0x7e}, {"%FF", 0xff}, {"%00", 0},   {"%7", -1}, {"%", -1},
                 {"", -1},      {"%g0", -1},   {"%0g", -1}, {"7e0", -1}};

    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *text = cases[i].text;
        assert_int_equal(wb_escape_value(text, text + strlen(text)), cases[i].value);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_classes), cmocka_unit_test(test_escaping),
                                       cmocka_unit_test(test_undoing), cmocka_unit_test(test_value)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
