/* test_charset.c - determining the encoding of a document, and converting it to UTF-8. */
#include "charset_support.h"

#include "base/error.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "markup/charset.h"
#include "os/fault.h"

/* ---- labels ------------------------------------------------------------------------------------- */

static void test_labels(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"latin1", "windows-1252"},
        {"ISO-8859-1", "windows-1252"},
        {" utf8\n", "utf-8"},
        {"GB2312", "gbk"},
        {"sjis", "shift_jis"},
        {"MS932", "shift_jis"},
        {"ks_c_5601-1987", "euc-kr"},
        {"x-x-big5", "big5"},
        {"unicode", "utf-16le"},
        {"unicodefffe", "utf-16be"},
        {"hz-gb-2312", "replacement"},
        {"866", "ibm866"},
        {"windows-874", "windows-874"},
        {"iso-8859-8-I", "iso-8859-8-i"},
        {"x-user-defined", "x-user-defined"},
        {"\futf-16\t", "utf-16le"},
        {"koi", "koi8-r"},
        {"ascii", "windows-1252"},
        {"latin5", "windows-1254"},
    };
    static const char *const none[] = {"", " ", "utf-7", "utf-8x", "utf 8", "utf-32", "binary", "\xe5tf-8",
                                       "a label that is longer than any of the standard's labels"};

    for (size_t i = 0; i < COUNT(cases); i++) {
        const char *name = wb_charset_by_label(wb_slice_str(cases[i][0]));
        if (!name || strcmp(name, cases[i][1]) != 0)
            fail_msg("label '%s' gives %s", cases[i][0], name ? name : "nothing");
    }
    for (size_t i = 0; i < COUNT(none); i++)
        assert_null(wb_charset_by_label(wb_slice_str(none[i])));
    assert_null(wb_charset_by_label(wb_slice("utf-8\0x", 7)));
}

/* Every name is also a label, and can be decoded. */
static void test_names_decode(void **state)
{
    (void)state;
    static const char *const names[] = {
        "utf-8",         "ibm866",       "iso-8859-2",   "iso-8859-3",   "iso-8859-4",     "iso-8859-5",
        "iso-8859-6",    "iso-8859-7",   "iso-8859-8",   "iso-8859-8-i", "iso-8859-10",    "iso-8859-13",
        "iso-8859-14",   "iso-8859-15",  "iso-8859-16",  "koi8-r",       "koi8-u",         "macintosh",
        "windows-874",   "windows-1250", "windows-1251", "windows-1252", "windows-1253",   "windows-1254",
        "windows-1255",  "windows-1256", "windows-1257", "windows-1258", "x-mac-cyrillic", "gbk",
        "gb18030",       "big5",         "euc-jp",       "iso-2022-jp",  "shift_jis",      "euc-kr",
        "x-user-defined"};
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_slice utf8;
    char all[256];

    for (int i = 0; i < 256; i++)
        all[i] = (char)i;
    for (size_t i = 0; i < COUNT(names); i++) {
        assert_string_equal(wb_charset_by_label(wb_slice_str(names[i])), names[i]);
        assert_int_equal(wb_charset_decode(names[i], WB_SLICE_LIT("plain <ASCII> \\~"), 1000, &mem, &utf8), 0);
        assert_true(wb_slice_equal(utf8, WB_SLICE_LIT("plain <ASCII> \\~")));
        assert_int_equal(wb_charset_decode(names[i], wb_slice(all, sizeof all), 4096, &mem, &utf8), 0);
        assert_true(utf8.len > 128 && wb_utf8_valid(utf8));
    }
    wb_buf_release(&mem);
}

/* ---- the cases of html5lib --------------------------------------------------------------------------------- */

static void check_file(const char *name, size_t least)
{
    struct wb_buf file = WB_BUF_INIT;
    char path[1024];
    size_t cases = 0, at = 0;

    if (!data_path(name, path))
        skip();
    assert_int_equal(wb_path_read(path, 1 << 20, &file), 0);
    struct wb_slice all = wb_buf_slice(&file);
    while ((at = find_from(all, at, "#data\n")) < all.len) {
        size_t start = at + 6, mark = find_from(all, start, "\n#encoding\n");
        size_t label = mark + 11, end = find_from(all, label, "\n");
        struct wb_slice document = wb_slice(all.ptr + start, mark - start);
        const char *want = wb_charset_by_label(wb_slice(all.ptr + label, end - label));
        const char *got = wb_charset_of(document, NONE, WB_CHARSET_HTML);
        assert_non_null(want);
        if (strcmp(got, want) != 0)
            fail_msg("%s: %s, not %s, for\n%.*s", name, got, want, WB_SLICE_ARG(document));
        cases++;
        at = end;
    }
    assert_true(cases >= least);
    wb_buf_release(&file);
}

static void test_html5lib_1(void **state)
{
    (void)state;
    check_file("charset/html5lib-encoding/tests1.dat", 59);
}

static void test_html5lib_2(void **state)
{
    (void)state;
    check_file("charset/html5lib-encoding/tests2.dat", 22);
}

static void test_html5lib_yahoo(void **state)
{
    (void)state;
    check_file("charset/html5lib-encoding/test-yahoo-jp.dat", 1);
}

static void test_html5lib_big5(void **state)
{
    (void)state;
    struct wb_buf file = WB_BUF_INIT;
    char path[1024];

    if (!data_path("charset/html5lib-encoding/chardet/test_big5.txt", path))
        skip();
    assert_int_equal(wb_path_read(path, 1 << 20, &file), 0);
    assert_string_equal(wb_charset_of(wb_buf_slice(&file), NONE, WB_CHARSET_TEXT), "big5");
    wb_buf_release(&file);
}

/* ---- which source counts ---------------------------------------------------------------------------------- */

#define LIT(text) {(text), sizeof(text) - 1}

static const struct {
    struct wb_slice bytes;
    const char *transport;
    enum wb_charset_kind kind;
    const char *want;
} found[] = {
    /* a BOM takes precedence over everything */
    {LIT("\xef\xbb\xbfx"), "shift_jis", WB_CHARSET_HTML, "utf-8"},
    {LIT("\xff\xfex\0"), "utf-8", WB_CHARSET_HTML, "utf-16le"},
    {LIT("\xfe\xff\0x"), "", WB_CHARSET_XML, "utf-16be"},
    /* then the transport, if it names a known encoding */
    {LIT("<meta charset=koi8-r>"), "latin2", WB_CHARSET_HTML, "iso-8859-2"},
    {LIT("<meta charset=koi8-r>"), "utf-99", WB_CHARSET_HTML, "koi8-r"},
    /* then what the document declares, in the way of its kind */
    {LIT("<meta charset=utf-16>"), "", WB_CHARSET_HTML, "utf-8"},
    {LIT("<meta charset=x-user-defined>"), "", WB_CHARSET_HTML, "windows-1252"},
    {LIT("<meta charset=koi8-r"), "", WB_CHARSET_HTML, "windows-1252"},
    {LIT("<meta name=a charset=nonsense charset=koi8-r>"), "", WB_CHARSET_HTML, "windows-1252"},
    {LIT("<meta content='x; charset=koi8-r'>"), "", WB_CHARSET_HTML, "windows-1252"},
    {LIT("<meta http-equiv=content-type content='charset charset = \"koi8-r\"'>"), "", WB_CHARSET_HTML, "koi8-r"},
    {LIT("<a title='>'<meta charset=koi8-r>"), "", WB_CHARSET_HTML, "windows-1252"},
    {LIT("<!--><meta charset=koi8-r>-->"), "", WB_CHARSET_HTML, "koi8-r"},
    {LIT("<!-- <meta charset=koi8-r> --><meta charset=big5>"), "", WB_CHARSET_HTML, "big5"},
    {LIT("</p <x><meta/charset=big5>"), "", WB_CHARSET_HTML, "big5"},
    {LIT("<? <meta charset=big5>"), "", WB_CHARSET_HTML, "windows-1252"},
    {LIT("<?xml version='1.0' encoding='koi8-r'?><html>"), "", WB_CHARSET_HTML, "koi8-r"},
    {LIT("<?xml version='1.0' encoding='koi8-r'?><meta charset=big5>"), "", WB_CHARSET_HTML, "big5"},
    {LIT("<?xml version='1.0' encoding = \"koi8-r\"?>"), "", WB_CHARSET_XML, "koi8-r"},
    {LIT("<?xml encoding='utf-16'?>"), "", WB_CHARSET_XML, "utf-8"},
    {LIT("<?xml encoding='koi8-r"), "", WB_CHARSET_XML, "utf-8"},
    {LIT("<?xml encoding=koi8-r?>"), "", WB_CHARSET_XML, "utf-8"},
    {LIT("<meta charset=koi8-r>"), "", WB_CHARSET_TEXT, "utf-8"},
    {LIT("<\0?\0x\0m\0l\0"), "", WB_CHARSET_XML, "utf-16le"},
    {LIT("\0<\0?\0x\0m\0l"), "", WB_CHARSET_HTML, "utf-16be"},
    /* then the bytes */
    {LIT(""), "", WB_CHARSET_HTML, "windows-1252"},
    {LIT(""), "", WB_CHARSET_XML, "utf-8"},
    {LIT("plain"), "", WB_CHARSET_HTML, "windows-1252"},
    {LIT("plain"), "", WB_CHARSET_TEXT, "utf-8"},
    {LIT("na\xc3\xafve"), "", WB_CHARSET_HTML, "utf-8"},
    {LIT("na\xc3\xafve caf\xc3"), "", WB_CHARSET_TEXT, "utf-8"}, /* cut off */
    {LIT("na\xc3\xafve caf\xc3\xa9 d\xc3\xa9j\xc3\xa0 vu fa\xc3\xa7on r\xc3\xb4le \xff gar\xc3\xa7on cr\xc3\xa8me "
         "\xe2\x82\xac "
         "\xe2\x80\x9cno\xc3\xabl\xe2\x80\x9d"),
     "", WB_CHARSET_TEXT, "utf-8"}, /* one bad byte */
    {LIT("na\xefve caf\xe9"), "", WB_CHARSET_TEXT, "windows-1252"},
    {LIT("p\0l\0a\0i\0n\0 \0t\0e\0x\0t\0"), "", WB_CHARSET_TEXT, "utf-16le"},
    {LIT("\0p\0l\0a\0i\0n\0 \0t\0e\0x\0t"), "", WB_CHARSET_TEXT, "utf-16be"},
};

static void test_found(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(found); i++) {
        const char *got = wb_charset_of(found[i].bytes, wb_slice_str(found[i].transport), found[i].kind);
        if (strcmp(got, found[i].want) != 0)
            fail_msg("case %zu: %s, not %s", i, got, found[i].want);
    }
}

/* Declarations far from the beginning are not found, nor is a tag that extends beyond the limit. */
static void test_window(void **state)
{
    (void)state;
    static const char meta[] = "<meta charset=koi8-r>";
    enum { WINDOW = 16 << 10 };
    static char page[WINDOW + 1024];

    for (size_t at = 0; at + sizeof meta < sizeof page; at += at < WINDOW - 100 ? 61 : 1) {
        memset(page, ' ', sizeof page);
        memcpy(page + at, meta, sizeof meta - 1);
        const char *got = wb_charset_of(wb_slice(page, sizeof page), NONE, WB_CHARSET_HTML);
        assert_string_equal(got, at + sizeof meta - 1 <= WINDOW ? "koi8-r" : "windows-1252");
    }
}

/* ---- decoding ------------------------------------------------------------------------------------------------ */

static const struct {
    const char *charset;
    struct wb_slice bytes;
    const char *want;
} decoded[] = {
    {"utf-8", LIT("\xef\xbb\xbfx"), "x"},
    {"utf-8", LIT("a\xff" "b"), "a\ufffdb"},
    {"utf-8", LIT("\xe2\x82"), "\ufffd"},
    {"utf-8", LIT("\xe2\x82x"), "\ufffdx"},
    {"utf-8", LIT("\xf0\x90\x8d"), "\ufffd"},
    {"utf-8", LIT("\xf0\x80\x80\x80"), "\ufffd\ufffd\ufffd\ufffd"},
    {"utf-8", LIT("\xed\xa0\x80"), "\ufffd\ufffd\ufffd"},
    {"utf-8", LIT("\xc0\xaf"), "\ufffd\ufffd"},
    {"utf-8", LIT("\xf4\x90\x80\x80."), "\ufffd\ufffd\ufffd\ufffd."},
    {"utf-8", LIT("\xe0\x80x\xc3"), "\ufffd\ufffdx\ufffd"},
    {"windows-1252", LIT("\x80\x81\x93 caf\xe9"), "€\xc2\x81“ café"},
    {"iso-8859-1", LIT("\x80"), "€"},
    {"windows-1253", LIT("\xaa\xe1"), "\ufffdα"},
    {"koi8-u", LIT("\xae\xbe\xa4"), "ўЎє"},
    {"koi8-r", LIT("\xf0\xd2\xc9\xd7\xc5\xd4"), "Привет"},
    {"windows-1251", LIT("\xcf\xf0\xe8\xe2\xe5\xf2"), "Привет"},
    {"windows-1255", LIT("\xca\xf9\xec"), "\u05baשל"},
    {"ibm866", LIT("\x8f\xe0"), "Пр"},
    {"iso-8859-16", LIT("\xaa\xa4"), "Ș€"},
    {"macintosh", LIT("\xdb\x8e"), "€é"},
    {"gb2312", LIT("\xc4\xe3\xba\xc3\x80"), "你好€"},
    {"gb18030", LIT("\x81\x30\x81\x30"), "\xc2\x80"},
    {"gbk", LIT("\xff<b>"), "\ufffd<b>"},
    {"big5", LIT("\xa7\x41\xa6\x6e"), "你好"},
    {"shift_jis", LIT("\x93\xfa\x96\x7b\xb1\x5c\x7e"), "日本ｱ\\~"},
    {"shift_jis", LIT("\x81<a>"), "\ufffd<a>"},
    {"shift_jis", LIT("\x87\x40"), "①"},
    {"euc-jp", LIT("\xc6\xfc\xcb\xdc\x8e\xb1\x8f\xb0\xa1"), "日本ｱ丂"},
    {"euc-jp", LIT("\xad\xa1"), "①"},
    {"iso-2022-jp", LIT("a\x1b$BF|K\\\x1b(Bb"), "a日本b"},
    {"euc-kr", LIT("\xc7\xd1\xb1\xdb\x81\x41"), "한글갂"},
    {"utf-16le", LIT("\xff\xfeh\0\x3d\xd8\x00\xde\x00\xd8!"), "h\U0001f600\ufffd\ufffd"},
    {"utf-16be", LIT("\0h\x00\xe9\xdc\x00"), "hé\ufffd"},
    {"replacement", LIT("<script>"), "\ufffd"},
    {"replacement", LIT(""), ""},
    {"x-user-defined", LIT("a\x80\xff"), "a\uf780\uf7ff"},
    {"no such name", LIT("a\xff"), "a\ufffd"},
};

static void test_decoded(void **state)
{
    (void)state;
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_slice utf8;

    for (int round = 0; round < 2; round++) {
        for (size_t i = 0; i < COUNT(decoded); i++) {
            assert_int_equal(wb_charset_decode(decoded[i].charset, decoded[i].bytes, 1000, &mem, &utf8), 0);
            if (!wb_slice_equal(utf8, wb_slice_str(decoded[i].want)))
                fail_msg("case %zu (%s): '%.*s', not '%s'", i, decoded[i].charset, WB_SLICE_ARG(utf8), decoded[i].want);
        }
    }
    wb_buf_release(&mem);
}

/* Well-formed UTF-8 is not copied, whatever is at which offset. */
static void test_no_copy(void **state)
{
    (void)state;
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_slice utf8;
    char text[300];

    for (size_t at = 0; at + 4 < sizeof text; at++) {
        memset(text, 'x', sizeof text);
        memcpy(text + at, "\xf0\x9f\x98\x80", 4);
        assert_int_equal(wb_charset_decode("utf-8", wb_slice(text, sizeof text), 1000, &mem, &utf8), 0);
        assert_ptr_equal(utf8.ptr, text);
        assert_int_equal(utf8.len, sizeof text);
        text[at + 3] = 'x';
        assert_int_equal(wb_charset_decode("utf-8", wb_slice(text, sizeof text), 1000, &mem, &utf8), 0);
        assert_ptr_not_equal(utf8.ptr, text);
        assert_int_equal(utf8.len, sizeof text);
        assert_memory_equal(utf8.ptr + at, "\xef\xbf\xbdx", 4);
        assert_int_equal(wb_decode_ascii_prefix(text, sizeof text), at);
        assert_int_equal(wb_decode_utf8_prefix(text, sizeof text), at);
    }
    wb_buf_release(&mem);
}

/* All sequences of three bytes become well-formed, with the length that a naive implementation computes. */
static void test_mended_exhaustively(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {0x00, 0x41, 0x7f, 0x80, 0x8f, 0x90, 0x9f, 0xa0, 0xbf, 0xc0, 0xc1, 0xc2, 0xdf,
                                    0xe0, 0xe1, 0xec, 0xed, 0xee, 0xef, 0xf0, 0xf1, 0xf3, 0xf4, 0xf5, 0xff};
    enum { N = sizeof bytes };
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_slice utf8;

    for (size_t i = 0; i < N * N * N * N; i++) {
        char in[4] = {(char)bytes[i % N], (char)bytes[i / N % N], (char)bytes[i / N / N % N],
                      (char)bytes[i / N / N / N]};
        assert_int_equal(wb_charset_decode("utf-8", wb_slice(in, 4), 100, &mem, &utf8), 0);
        assert_true(wb_utf8_valid(utf8));
        assert_int_equal(utf8.ptr == in, wb_utf8_valid(wb_slice(in, 4)));
    }
    wb_buf_release(&mem);
}

static void test_limit(void **state)
{
    (void)state;
    static const struct {
        const char *charset;
        struct wb_slice unit; /* three bytes of UTF-8 */
    } units[] = {{"utf-8", LIT("€")},       {"windows-1252", LIT("\x80")}, {"shift_jis", LIT("\x93\xfa")},
                 {"utf-16le", LIT("\xac\x20")}, {"utf-8", LIT("\xff")},    {"iso-2022-jp", LIT("\x1b$BF|")}};
    struct wb_buf mem = WB_BUF_INIT, in = WB_BUF_INIT;
    struct wb_slice utf8;

    for (size_t i = 0; i < COUNT(units); i++) {
        wb_buf_clear(&in);
        wb_buf_release(&mem);
        for (int k = 0; k < 100000; k++)
            assert_int_equal(wb_buf_append_slice(&in, units[i].unit), 0);
        for (size_t limit = 0; limit < 10; limit++) {
            assert_int_equal(wb_charset_decode(units[i].charset, wb_buf_slice(&in), limit, &mem, &utf8), 0);
            assert_int_equal(utf8.len, limit / 3 * 3);
            assert_true(mem.cap < 200000);
        }
        assert_int_equal(wb_charset_decode(units[i].charset, wb_buf_slice(&in), 1 << 20, &mem, &utf8), 0);
        assert_int_equal(utf8.len, 300000);
        assert_true(wb_utf8_valid(utf8));
    }
    wb_buf_release(&mem);
    wb_buf_release(&in);
}

static void test_out_of_memory(void **state)
{
    (void)state;
    static const struct wb_slice bytes = LIT("\xa4\xa4\xff\xff ab \xa4\xa4");
    static const char *const names[] = {"utf-8", "windows-1251", "utf-16le", "euc-jp", "replacement"};

    for (size_t i = 0; i < COUNT(names); i++) {
        struct wb_buf mem = WB_BUF_INIT;
        struct wb_slice utf8;
        wb_fault_arm(WB_FAULT_ALLOC, 1, 12);
        int err = wb_charset_decode(names[i], bytes, 1000, &mem, &utf8);
        assert_true(wb_fault_struck());
        wb_fault_disarm();
        assert_int_equal(err, WB_E_NOMEM);
        assert_int_equal(wb_charset_decode(names[i], bytes, 1000, &mem, &utf8), 0);
        assert_true(utf8.len > 0);
        wb_buf_release(&mem);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_labels),          cmocka_unit_test(test_names_decode),
        cmocka_unit_test(test_html5lib_1),      cmocka_unit_test(test_html5lib_2),
        cmocka_unit_test(test_html5lib_yahoo),  cmocka_unit_test(test_html5lib_big5),
        cmocka_unit_test(test_found),           cmocka_unit_test(test_window),
        cmocka_unit_test(test_decoded),         cmocka_unit_test(test_no_copy),
        cmocka_unit_test(test_mended_exhaustively), cmocka_unit_test(test_limit),
        cmocka_unit_test(test_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
