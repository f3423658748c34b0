/* test_words.c - which words a text has: folding, compounds, scripts without blanks, limits. */
#include "words_support.h"

static void test_plain(void **state)
{
    static const char *const cases[][2] = {
        {"", ""},
        {" \t\n.,;-!", ""},
        {"The networks were connected, by many cables.",
         "the networks=network were connected=connect by many=mani cables=cabl"},
        {"Word", "word"},
        {"abcdefghijklmno abcdefghijklmnop abcdefghijklmnopq", "abcdefghijklmno abcdefghijklmnop abcdefghijklmnopq"},
        {"0x1F 42 b2b x86s", "0x1f 42 b2b x86s"},
        {"a\xff"
         "b \xc3 c\xe2\x82z\xed\xa0\x80y",
         "a b c z y"},
        {"Don't we'll Knuth\xe2\x80\x99s 1990's I'M", "don't we'll knuth's=knuth 1990's=1990 i'm"},
        {"l'amour qu'il O'Brien rock'n'roll dogs' 'quoted'", "l amour qu il o brien rock n roll dogs=dog quoted=quot"},
        {"don'ts 's x'", "don ts s x"},
        {"co\u00adoperate soft\u200bbreak z\u200dw", "cooperate=cooper soft break zw"},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        expect_line(*state, cases[i][0], "en", cases[i][1]);
    static const char nul[] = "a\0b\0\0c";
    struct wb_buf line = WB_BUF_INIT;
    words_line(*state, wb_slice(nul, sizeof nul - 1), "en", &line);
    assert_true(wb_slice_equal(wb_buf_slice(&line), WB_SLICE_LIT("a b c")));
    wb_buf_release(&line);
}

static void test_folding(void **state)
{
    static const char *const cases[][2] = {
        {"naïve NAÏVE nai\u0308ve", "naive naive naive"},
        {"Straße STRASSE STRAẞE strasse", "strasse strasse strasse strasse"},
        {"CAFÉ café cafe\u0301", "cafe cafe cafe"},
        {"Η Αθήνα τη νύχτα", "η αθηνα τη νυχτα"},
        {"ΟΔΥΣΣΕΥΣ Οδυσσεύς ᾳ", "οδυσσευσ οδυσσευσ α"},
        {"МОСКВА Москва", "москва москва"},
        {"Йод и\u0306од Ёлка Україна Ўзбек", "йод йод елка україна ўзбек"},
        {"Łódź Ørsted Đà Ærø œuvre ılık İstanbul IŞIK", "lodz orsted da aero oeuvre ilik istanbul isik"},
        {"ﬁne ｆｕｌｌ １２ ㎏ m² Ⅷ ½ ①", "fine full 12 m2 viii 1"},
        {"٣٤ ४२ ๑๒", "34 42 12"},
        {"مُحَمَّد محمـــد أحمد", "محمد محمد احمد"},
        {"שָׁלוֹם", "שלום"},
        {"हिन्दी देवनागरी", "हिन्दी देवनागरी"},
        {"ệ e\u0323\u0302 Ǿ", "e e o"},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        expect_line(*state, cases[i][0], NULL, cases[i][1]);
}

static void test_compounds(void **state)
{
    static const char *const cases[][2] = {
        {"Use std::vector<int>.", "use {std::vector} std vector int"},
        {"A c++ compiler (g++), C# and F#.", "a {c++} c compiler {g++} g {c#} c and {f#} f"},
        {"Python 3.11.7 was", "python {3.11.7} 3 11 7 was"},
        {"AT&T's R&D", "{at&t} at t s {r&d} r d"},
        {"U.S. u.s U.S.A.", "{u.s} u s {u.s} u s {u.s.a} u s a"},
        {"Call foo_bar(1) first.", "call {foo_bar} foo bar 1 first"},
        {"__init__ _x a__b name_____ ____b", "{__init__} init {_x} x {a__b} a b name b"},
        {"an e-mail, well-known", "an e mail well known"},
        {"utf-8 x86-64 gpt\xe2\x80\x91"
         "4 1.2-rc1",
         "{utf-8} utf 8 {x86-64} x86 64 {gpt-4} gpt 4 {1.2-rc1} 1 2 rc1"},
        {"c++17 g++-12 1+1", "{c++17} c 17 {g++-12} g 12 {1+1} 1 1"},
        {".net ASP.NET (.net) /.git a..b x.", "{.net} net {asp.net} asp net {.net} net {.git} git a b x"},
        {"@media #include #123 .5 me@here.org", "{@media} media {#include} include 123 5 me {here.org} here org"},
        {"TCP/IP a--b a...b a+++b 12:30", "tcp ip a b a b a b {12:30} 12 30"},
        {"http://www.x.org/a-1.html?b=c.d#e.f g.h", "http {www.x.org} www x org a 1 html b c d e f {g.h} g h"},
        {"<a href=\"http://x.y/z.a\">b.c</a>", "a href http {x.y} x y z a {b.c} b c a"},
        {"a.b.c.d.e.f.g.h", "{a.b.c.d.e.f.g.h} a b c d e f g h"},
        {"a.b.c.d.e.f.g.h.i", "a b c d e f g h i"},
        {"a.b.c.d.e.f.g.h.i.a.b.c.d.e.f.g.h.i j.k", "a b c d e f g h i a b c d e f g h i {j.k} j k"},
        {"C++语言 naïve.café", "{c++} c <语言> <言> {naive.cafe} naive cafe"},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        expect_line(*state, cases[i][0], NULL, cases[i][1]);
}

static void test_grams(void **state)
{
    static const char *const cases[][2] = {
        {"東京都は", "<東京> <京都> <都は> <は>"},
        {"本", "<本>"},
        {"東京 大学", "<東京> <京> <大学> <学>"},
        {"ｶﾞｷﾞ か\u3099", "<ガギ> <ギ> <が>"},
        {"コーヒー", "<コー> <ーヒ> <ヒー> <ー>"},
        {"대한 \u1112\u1161\u11ab", "<대한> <한> <한>"},
        {"iPhone手机4", "iphone <手机> <机> 4"},
        {"ที่นี่", "<ที่นี่> <นี่>"},
        {"นำ", "<นำ> <ำ>"},
        {"\u309fป", "<\u309fป> <ป>"},
        {"日\u200d本\ufe00", "<日本> <本>"},
    };

    for (size_t i = 0; i < COUNT(cases); i++)
        expect_line(*state, cases[i][0], "ja", cases[i][1]);
}

/* Offsets and positions, which the lines do not show. */
static void test_places(void **state)
{
    static const char text[] = "Die Straße: std::vector, don\xe2\x80\x99t 東京 C++.";
    static const struct {
        size_t begin, end;
        uint32_t position;
    } places[] = {{0, 3, 0},   {4, 11, 1},  {13, 24, 2}, {13, 16, 2}, {18, 24, 3},
                  {26, 33, 4}, {34, 40, 5}, {37, 40, 6}, {41, 44, 7}, {41, 42, 7}};
    struct wb_word word;

    assert_int_equal(wb_words_begin(*state, wb_slice_str(text), "de"), 0);
    for (size_t i = 0; i < COUNT(places); i++) {
        assert_int_equal(wb_words_next(*state, &word), 1);
        assert_int_equal(word.begin, places[i].begin);
        assert_int_equal(word.end, places[i].end);
        assert_int_equal(word.position, places[i].position);
    }
    assert_int_equal(wb_words_next(*state, &word), 0);
}

/* Reads `unit` repeated up to `bytes`, checks the words, and returns how many there are. */
static size_t count_repeated(struct wb_words *words, struct wb_slice unit, size_t bytes)
{
    struct wb_buf text = WB_BUF_INIT;
    size_t count;

    while (text.len < bytes)
        assert_int_equal(wb_buf_append_slice(&text, unit), 0);
    check_words(words, wb_buf_slice(&text), "en", &count);
    wb_buf_release(&text);
    return count;
}

static void test_limits(void **state)
{
    size_t big = (size_t)10 << 20;
    struct wb_buf text = WB_BUF_INIT;
    struct wb_word word;

    assert_int_equal(count_repeated(*state, WB_SLICE_LIT("x"), big), 1);
    assert_int_equal(count_repeated(*state, WB_SLICE_LIT("\0"), big), 0);
    assert_int_equal(count_repeated(*state, WB_SLICE_LIT("\u0301"), 200000), 0);
    assert_int_equal(count_repeated(*state, WB_SLICE_LIT("\u0e48"), 300000), 1);
    assert_int_equal(count_repeated(*state, WB_SLICE_LIT("\u094d"), 300000), 1);
    assert_int_equal(count_repeated(*state, WB_SLICE_LIT("a."), 200000), 100000);
    assert_int_equal(count_repeated(*state, WB_SLICE_LIT("\xff"), 100000), 0);
    /* A word is cut after 64 characters or 128 bytes; what is behind it is the next word. */
    for (int i = 0; i < 100; i++)
        assert_int_equal(wb_buf_append_str(&text, i % 2 ? "я" : "b"), 0);
    assert_int_equal(wb_buf_append_str(&text, " next"), 0);
    assert_int_equal(wb_words_begin(*state, wb_buf_slice(&text), "ru"), 0);
    assert_int_equal(wb_words_next(*state, &word), 1);
    assert_int_equal(word.exact.len, 96);
    assert_int_equal(word.end, 150);
    assert_int_equal(wb_words_next(*state, &word), 1);
    assert_true(wb_slice_equal(word.exact, WB_SLICE_LIT("next")));
    wb_buf_clear(&text);
    for (int i = 0; i < 60; i++)
        assert_int_equal(wb_buf_append_str(&text, "ट"), 0);
    assert_int_equal(wb_words_begin(*state, wb_buf_slice(&text), "hi"), 0);
    assert_int_equal(wb_words_next(*state, &word), 1);
    assert_int_equal(word.exact.len, 126);
    wb_buf_release(&text);
}

/* A compound of more than 64 bytes is not one. */
static void test_long_compound(void **state)
{
    char text[80];

    for (int n = 62; n <= 64; n++) {
        struct wb_word word;
        int len = snprintf(text, sizeof text, "%.*s.%.*s", 31, "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", n - 31 + 1,
                           "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb");
        assert_int_equal(wb_words_begin(*state, wb_slice(text, (size_t)len), NULL), 0);
        assert_int_equal(wb_words_next(*state, &word), 1);
        assert_int_equal(word.kind, len <= 64 ? WB_WORD_COMPOUND : WB_WORD_PLAIN);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),         cmocka_unit_test(test_folding), cmocka_unit_test(test_compounds),
        cmocka_unit_test(test_grams),         cmocka_unit_test(test_places),  cmocka_unit_test(test_limits),
        cmocka_unit_test(test_long_compound),
    };

    return cmocka_run_group_tests(tests, words_setup, words_teardown);
}
