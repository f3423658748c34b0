/* test_charset.c - determining the encoding of a document, and converting it to UTF-8. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <unicode/ucnv.h>

#include "base/error.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "os/fault.h"
#include "os/path.h"
#include "extract/decode.h"
#include "extract/extract.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))
#define NONE WB_SLICE_EMPTY

static bool data_path(const char *name, char path_out[1024])
{
    const char *root = getenv("WEBBASE_DATA");

    if (root)
        snprintf(path_out, 1024, "%s/%s", root, name);
    else
        snprintf(path_out, 1024, "%s/../shared/data/%s", WB_SOURCE_ROOT, name);
    return wb_path_kind(path_out) == WB_PATH_FILE;
}

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

static size_t find_from(struct wb_slice s, size_t at, const char *text)
{
    const char *hit = at < s.len ? memmem(s.ptr + at, s.len - at, text, strlen(text)) : NULL;

    return hit ? (size_t)(hit - s.ptr) : s.len;
}

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

/* ---- guesses ------------------------------------------------------------------------------------------------ */

/* Converts UTF-8 to another encoding; false if that lacks some of the characters. */
static bool encode_as(const char *icu_name, struct wb_slice utf8, struct wb_buf *out)
{
    UErrorCode status = U_ZERO_ERROR;
    UConverter *to = ucnv_open(icu_name, &status), *from = ucnv_open("UTF-8", &status);
    const char *source = utf8.ptr;

    assert_true(U_SUCCESS(status));
    wb_buf_clear(out);
    assert_int_equal(wb_buf_reserve(out, 4 * utf8.len + 64), 0);
    ucnv_setFromUCallBack(to, UCNV_FROM_U_CALLBACK_STOP, NULL, NULL, NULL, &status);
    char *target = out->ptr;
    UChar pivot[256], *pivot_from = pivot, *pivot_to = pivot;
    ucnv_convertEx(to, from, &target, out->ptr + out->cap, &source, source + utf8.len, pivot, &pivot_from,
                   &pivot_to, pivot + COUNT(pivot), true, true, &status);
    out->len = (size_t)(target - out->ptr);
    ucnv_close(to);
    ucnv_close(from);
    return U_SUCCESS(status);
}

static bool guess_restores(const char *icu_name, struct wb_slice utf8, const char **guess_out)
{
    struct wb_buf bytes = WB_BUF_INIT, mem = WB_BUF_INIT;
    struct wb_slice again;

    assert_true(encode_as(icu_name, utf8, &bytes));
    *guess_out = wb_charset_of(wb_buf_slice(&bytes), NONE, WB_CHARSET_HTML);
    assert_int_equal(wb_charset_decode(*guess_out, wb_buf_slice(&bytes), 1 << 20, &mem, &again), 0);
    bool same = wb_slice_equal(again, utf8);
    wb_buf_release(&bytes);
    wb_buf_release(&mem);
    return same;
}

#define RUSSIAN "<p>Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по-своему.</p>"
#define JAPANESE "<p>吾輩は猫である。名前はまだ無い。どこで生れたかとんと見当がつかぬ。</p>"
#define CHINESE_S "<p>学而时习之，不亦说乎？有朋自远方来，不亦乐乎？人不知而不愠，不亦君子乎？这是我们的网站，欢迎大家。</p>"
#define CHINESE_T "<p>學而時習之，不亦說乎？有朋自遠方來，不亦樂乎？人不知而不慍，不亦君子乎？這是我們的網站，歡迎大家。</p>"

static void test_guesses(void **state)
{
    (void)state;
    static const struct {
        const char *icu_name, *text;
    } texts[] = {
        {"windows-1251", RUSSIAN},
        {"koi8-r", RUSSIAN},
        {"ibm-866", RUSSIAN},
        {"iso-8859-5", RUSSIAN},
        {"koi8-u", "<p>Усі люди народжуються вільними і рівними у своїй гідності та правах. Вони наділені розумом і "
                   "совістю і повинні діяти у відношенні один до одного в дусі братерства.</p>"},
        {"ibm-943_P15A-2003", JAPANESE},
        {"euc-jp-2007", JAPANESE},
        {"iso-2022-jp", JAPANESE},
        {"windows-936", CHINESE_S},
        {"gb18030", CHINESE_S},
        {"windows-950", CHINESE_T},
        {"windows-949", "<p>모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다.</p>"},
        {"windows-1253", "<p>Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα.</p>"},
        {"windows-1250",
         "<p>Wszyscy ludzie rodzą się wolni i równi w swojej godności i prawach. Są oni obdarzeni rozumem i "
         "sumieniem i powinni postępować wobec siebie w duchu braterstwa.</p>"},
        {"windows-1252",
         "<p>Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de "
         "raison et de conscience et doivent agir dans un esprit de fraternité.</p>"},
        {"windows-1256", "<p>يولد جميع الناس أحرارا متساوين في الكرامة والحقوق وقد وهبوا عقلا وضميرا</p>"},
    };
    const char *guess;

    for (size_t i = 0; i < COUNT(texts); i++)
        if (!guess_restores(texts[i].icu_name, wb_slice_str(texts[i].text), &guess))
            fail_msg("%s is taken for %s", texts[i].icu_name, guess);
}

/* Puts markup around every word of a text, so that nine tenths of the page are ASCII and English. */
static void write_page(struct wb_slice text, struct wb_buf *page_out)
{
    static const char head[] =
        "<!DOCTYPE html><html><head><style>body { color: black; font-family: serif } .article-body { margin: 2em "
        "}</style>"
        "<script>function load(event) { if (a < b) { document.write('<p>the quick brown fox</p>'); } }</script>"
        "<!-- the navigation of the site begins here, and it is long --><link rel=stylesheet "
        "href=style.css></head><body>"
        "<div class='navigation main-menu'><ul id=menu><li class='menu-item first'><a href='/index.html' title='home "
        "page'></a></ul></div>";

    wb_buf_clear(page_out);
    assert_int_equal(wb_buf_append_str(page_out, head), 0);
    while (text.len > 0) {
        const char *blank = memchr(text.ptr, ' ', text.len);
        size_t len = blank ? (size_t)(blank - text.ptr) + 1 : text.len;
        len = len < 40 || !((uint8_t)text.ptr[40] & 0x80) || blank ? len : text.len;
        assert_int_equal(
            wb_buf_append_str(
                page_out,
                "<span class='word paragraph-text' onclick=\"open_window('details', this)\" style='color: #333333'>"),
            0);
        assert_int_equal(wb_buf_append(page_out, text.ptr, len), 0);
        assert_int_equal(wb_buf_append_str(page_out, "</span>&nbsp;&quot;"), 0);
        text = wb_slice(text.ptr + len, text.len - len);
    }
    assert_int_equal(
        wb_buf_append_str(
            page_out, "<script>var tracker = 'the end of the page, and the last words on it';</script></body></html>"),
        0);
}

/* The guess is made from the text, not from the tags. */
static void test_guesses_in_markup(void **state)
{
    static const struct {
        const char *icu_names[4], *text;
    } texts[] = {
        {{"windows-1251", "koi8-r", "iso-8859-5", "ibm-866"},
         "Все счастливые семьи похожи друг на друга, каждая несчастливая семья несчастлива по своему. Все смешалось в "
         "доме Облонских."},
        {{"windows-1251"},
         "Всички хора се раждат свободни и равни по достойнство и права. Те са надарени с разум и съвест и следва да "
         "се отнасят помежду си в дух на братство."},
        {{"windows-1253", "iso-8859-7"},
         "Όλοι οι άνθρωποι γεννιούνται ελεύθεροι και ίσοι στην αξιοπρέπεια και τα δικαιώματα. Άνθρωποι με λογική και "
         "συνείδηση οφείλουν να συμπεριφέρονται."},
        {{"windows-1255", "iso-8859-8"},
         "כל בני האדם נולדו בני חורין ושווים בערכם ובזכויותיהם. כולם חוננו בתבונה ובמצפון, לפיכך חובה עליהם לנהוג איש "
         "ברעהו ברוח של אחווה."},
        {{"windows-1250", "iso-8859-2"},
         "Minden emberi lény szabadon születik és egyenlő méltósága és joga van. Az emberek, ésszel és lelkiismerettel "
         "bírván, egymással szemben testvéri szellemben kell hogy viseltessenek."},
        {{"windows-1250", "iso-8859-2"},
         "Wszyscy ludzie rodzą się wolni i równi w swojej godności i prawach. Są oni obdarzeni rozumem i sumieniem i "
         "powinni postępować wobec siebie w duchu braterstwa."},
        {{"windows-1250", "iso-8859-2"},
         "Všichni lidé rodí se svobodní a sobě rovní co do důstojnosti a práv. Jsou nadáni rozumem a svědomím a mají "
         "spolu jednat v duchu bratrství."},
        {{"windows-1252"},
         "Tous les êtres humains naissent libres et égaux en dignité et en droits. Ils sont doués de raison et de "
         "conscience et doivent agir."},
        {{"windows-1254"},
         "Bütün insanlar hür, haysiyet ve haklar bakımından eşit doğarlar. Akıl ve vicdana sahiptirler ve birbirlerine "
         "karşı kardeşlik zihniyeti ile hareket etmelidirler."},
        {{"windows-1256"},
         "يولد جميع الناس أحرارا متساوين في الكرامة والحقوق وقد وهبوا عقلا وضميرا وعليهم أن يعامل بعضهم بعضا بروح "
         "الإخاء"},
        {{"ibm-943_P15A-2003", "euc-jp-2007"},
         "すべての人間は、生まれながらにして自由であり、かつ、尊厳と権利とについて平等である。人間は、理性と良心とを授"
         "けられており、互いに同胞の精神をもって行動しなければならない。"},
        {{"gb18030", "windows-936"},
         "人人生而自由，在尊严和权利上一律平等。他们赋有理性和良心，并应以兄弟关系的精神相对待。这是我们的网站，欢迎大"
         "家。"},
        {{"windows-950"},
         "人人生而自由，在尊嚴和權利上一律平等。他們賦有理性和良心，並應以兄弟關係的精神相對待。這是我們的網站，歡迎大"
         "家。"},
        {{"windows-949"},
         "모든 인간은 태어날 때부터 자유로우며 그 존엄과 권리에 있어 동등하다. 인간은 천부적으로 이성과 양심을 "
         "부여받았으며 서로 형제애의 정신으로 행동하여야 한다."},
    };
    struct wb_buf page = WB_BUF_INIT;
    unsigned wrong = 0;
    const char *guess;

    (void)state;
    for (size_t i = 0; i < COUNT(texts); i++) {
        write_page(wb_slice_str(texts[i].text), &page);
        for (size_t k = 0; k < COUNT(texts[i].icu_names) && texts[i].icu_names[k]; k++)
            if (!guess_restores(texts[i].icu_names[k], wb_buf_slice(&page), &guess)) {
                print_message("%.20s... in %s is taken for %s\n", texts[i].text, texts[i].icu_names[k], guess);
                wrong++;
            }
    }
    assert_int_equal(wrong, 0);
    /* A long stretch of ASCII comes first, and tags and scripts without an end. */
    wb_buf_clear(&page);
    for (int i = 0; i < 3000; i++)
        assert_int_equal(wb_buf_append_str(&page, "<p>the quick brown fox</p>"), 0);
    assert_int_equal(wb_buf_append_str(&page, texts[2].text), 0);
    assert_int_equal(wb_buf_append_str(&page, "<script>if (a </ b"), 0);
    assert_true(guess_restores("windows-1253", wb_buf_slice(&page), &guess));
    wb_buf_release(&page);
}

/* Real sentences, a few hundred bytes at a time, in the encodings of their languages. */
static void test_guesses_of_sentences(void **state)
{
    (void)state;
    static const struct {
        const char *language, *icu_name;
    } pairs[] = {{"ar", "windows-1256"}, {"da", "windows-1252"}, {"el", "windows-1253"}, {"el", "iso-8859-7"},
                 {"es", "windows-1252"}, {"fi", "windows-1252"}, {"hr", "windows-1250"}, {"is", "windows-1252"},
                 {"it", "windows-1252"}, {"ja", "ibm-943_P15A-2003"}, {"ja", "euc-jp-2007"}, {"ja", "iso-2022-jp"},
                 {"ko", "windows-949"},  {"nb", "windows-1252"}, {"pl", "windows-1250"}, {"pl", "iso-8859-2"},
                 {"pt", "windows-1252"}, {"tr", "windows-1254"}, {"uk", "windows-1251"}, {"uk", "koi8-u"}};
    struct wb_buf file = WB_BUF_INIT, text = WB_BUF_INIT, bytes = WB_BUF_INIT;
    unsigned right = 0, all = 0;
    char path[1024];
    const char *guess;

    if (!data_path("lang/sentences.tsv", path))
        skip();
    assert_int_equal(wb_path_read(path, 4 << 20, &file), 0);
    for (size_t i = 0; i < COUNT(pairs); i++) {
        size_t at = 0, code = strlen(pairs[i].language);
        wb_buf_clear(&text);
        while (at < file.len) {
            size_t end = find_from(wb_buf_slice(&file), at, "\n");
            struct wb_slice line = wb_slice(file.ptr + at, end - at);
            at = end + 1;
            if (strncmp(line.ptr, pairs[i].language, code) != 0 || line.ptr[code] != '\t')
                continue;
            line = wb_slice(line.ptr + code + 1, line.len - code - 1);
            if (!encode_as(pairs[i].icu_name, line, &bytes))
                continue;
            assert_int_equal(wb_buf_append_slice(&text, line), 0);
            assert_int_equal(wb_buf_append_char(&text, '\n'), 0);
            if (text.len < 800)
                continue;
            right += guess_restores(pairs[i].icu_name, wb_buf_slice(&text), &guess);
            all++;
            wb_buf_clear(&text);
        }
    }
    if (all < 200 || right * 100 < all * 93)
        fail_msg("%u of %u guesses are right", right, all);
    wb_buf_release(&file);
    wb_buf_release(&text);
    wb_buf_release(&bytes);
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
        cmocka_unit_test(test_out_of_memory),   cmocka_unit_test(test_guesses),
        cmocka_unit_test(test_guesses_in_markup), cmocka_unit_test(test_guesses_of_sentences),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
