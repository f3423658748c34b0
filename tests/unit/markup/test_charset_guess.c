/* test_charset_guess.c - guessing the encoding of documents that say nothing about it. */
#include "charset_support.h"

#include <unicode/ucnv.h>

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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_guesses),
        cmocka_unit_test(test_guesses_in_markup),
        cmocka_unit_test(test_guesses_of_sentences),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
