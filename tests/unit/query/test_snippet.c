/* test_snippet.c - snippets of kept texts, which words they find, and texts of results that are kept. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "../seeded.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/kept.h"
#include "extract/extract.h"
#include "index/kepttext.h"
#include "query/ask_own.h"
#include "query/matches.h"
#include "query/query.h"

#include <stdio.h>

/* A page, what is kept of it, and how much of that has come. */
struct page_text {
    struct wb_buf body, kept, html;
    struct wb_extractor *extractor;
    struct wb_snippeter *snippeter;
    struct wb_slice text;
    size_t part; /* bytes that come at once */
};

static struct page_text *current;

static void begin(struct page_text *t)
{
    *t = (struct page_text){.body = WB_BUF_INIT, .part = SIZE_MAX};
    assert_int_equal(wb_snippeter_new(&t->snippeter), 0);
    assert_int_equal(wb_extractor_new(&t->extractor), 0);
    assert_int_equal(wb_buf_append_slice(&t->body, WB_SLICE_LIT("<html><body><h1>Opening of the page</h1>\n")), 0);
    current = t;
}

static void end(struct page_text *t)
{
    wb_snippeter_free(t->snippeter);
    wb_extractor_free(t->extractor);
    wb_buf_release(&t->body);
    wb_buf_release(&t->kept);
    wb_buf_release(&t->html);
}

/* Adds paragraphs that nobody asks for. */
static void fill(struct page_text *t, size_t bytes)
{
    for (size_t to = t->body.len + bytes; t->body.len < to;)
        assert_int_equal(wb_buf_printf(&t->body, "<p>paragraph %zu goes on and on</p>\n", t->body.len), 0);
}

static void add(struct page_text *t, const char *text)
{
    assert_int_equal(wb_buf_append_slice(&t->body, wb_slice_str(text)), 0);
}

static int more_text(struct wb_snippet_text *text)
{
    size_t left = current->text.len - text->bytes.len;

    text->bytes.len += left < current->part ? left : current->part;
    return left > 0;
}

static void keep(struct page_text *t, const char *type, bool *lines_out)
{
    struct wb_extract_input input = {WB_SLICE_LIT("http://a.example/"), wb_slice_str(type), WB_SLICE_EMPTY,
                                     wb_buf_slice(&t->body), WB_EXTRACT_TEXT};
    struct wb_extract extract;
    struct wb_slice title;
    unsigned flags;

    assert_int_equal(wb_extract(t->extractor, &input, &extract), 0);
    assert_int_equal(wb_kept_text_make(&extract, &t->kept), 0);
    assert_true(wb_kept_text_split(wb_buf_slice(&t->kept), &flags, &title, &t->text));
    *lines_out = flags & WB_KEPT_LINES;
}

/* The snippet for one word and its stem, with a NUL behind it. */
static const char *snippet(struct page_text *t, const char *type, const char *exact, const char *stem)
{
    struct wb_slice stems[] = {wb_slice_str(stem)};
    struct wb_wanted wanted[] = {{.exact = wb_slice_str(exact), .stems = stems, .stem_count = 1}};
    struct wb_snippet_text text = {.language = "en", .more = more_text};

    keep(t, type, &text.lines);
    text.bytes = wb_slice(t->text.ptr, t->text.len < t->part ? t->text.len : t->part);
    wb_snippeter_want(t->snippeter, wanted, 1);
    assert_int_equal(wb_snippet(t->snippeter, &text, &t->html), 0);
    assert_int_equal(wb_buf_terminate(&t->html), 0);
    return t->html.ptr;
}

static void test_far_away(void **state)
{
    (void)state;
    struct page_text t;

    begin(&t);
    fill(&t, 50 << 10);
    add(&t, "<p>two Happier zebras</p>");
    fill(&t, 2 << 20);
    for (t.part = 500; t.part < 20000; t.part *= 3) {
        assert_non_null(strstr(snippet(&t, "text/html", "zebra", "zebra"), "<b>zebras</b>"));
        assert_non_null(strstr(snippet(&t, "text/html", "happier", "happi"), "<b>Happier</b>"));
        assert_non_null(strstr(snippet(&t, "text/plain", "zebra", "zebra"), "<b>zebras</b>"));
        assert_non_null(strstr(snippet(&t, "text/html", "opening", "open"), "<b>Opening</b> of the page"));
        assert_non_null(strstr(snippet(&t, "text/html", "unicorn", "unicorn"), "paragraph 41 goes"));
    }
    end(&t);
}

static void test_other_encoding(void **state)
{
    (void)state;
    struct page_text t;

    begin(&t);
    t.body.len = 0;
    add(&t, "<html><meta charset=iso-8859-1><body>");
    fill(&t, 50 << 10);
    add(&t, "<p>caf\xe9 zebra</p>");
    assert_non_null(strstr(snippet(&t, "text/html", "zebra", "zebra"), "caf\xc3\xa9 <b>zebra</b>"));
    assert_non_null(strstr(snippet(&t, "text/html", "cafe", "cafe"), "<b>caf\xc3\xa9</b> zebra"));
    end(&t);
}

/* ---- which words are found ---------------------------------------------------------------------- */

static const char *const vocabulary[] = {
    "network",
    "Networks",
    "networking",
    "happy",
    "HAPPINESS",
    "happier",
    "die",
    "dying",
    "sky",
    "skies",
    "hope",
    "hoping",
    "relational",
    "probably",
    "probable",
    "std::vector",
    "vector",
    "C++",
    ".net",
    "foo.bar",
    "e-mail",
    "(running)",
    "ran",
    "run,",
    "runs.",
    "Gro\xc3\x9f",
    "grosse",
    "na\xc3\xafve",
    "naive",
    "\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e",
    "\xd0\xbc\xd0\xb8\xd1\x80",
    "don't",
    "don\xe2\x80\x99t",
    "(foo(foo.bar,vector<std::vector>);", "https://a.example/x(foo.bar)y", "foo.bar@x", "[foo_bar]", "vec[vector.foo]",
    "3.11.7",
    "x",
    "electricity",
    "electric",
    "early",
    "news",
    "chevaux",
    "cheval",
    "\n",
};

/* All words of a text that match, by reading every word. */
static void read_all(struct wb_words *words, struct wb_slice text, const char *language, const struct wb_wanted *wanted,
                     size_t count, struct wb_buf *found)
{
    struct wb_word word;

    assert_int_equal(wb_words_begin(words, text, language), 0);
    while (wb_words_next(words, &word) > 0)
        for (size_t i = 0; i < count; i++)
            if (wb_slice_equal(word.exact, wanted[i].exact) ||
                (word.kind == WB_WORD_PLAIN && wanted[i].stem_count && wb_slice_equal(word.stem, wanted[i].stems[0]))) {
                assert_int_equal(wb_buf_printf(found, "%zu-%zu is %zu\n", word.begin, word.end, i), 0);
                break;
            }
}

/* A bare word of a query has its stem; others have none. */
static void ask_for(struct wb_words *words, uint64_t *chance, const char *language, struct wb_arena *arena,
                    struct wb_wanted *wanted)
{
    const char *text = vocabulary[chance_below(chance, sizeof vocabulary / sizeof *vocabulary)];
    struct wb_word word;

    *wanted = (struct wb_wanted){.exact = WB_SLICE_LIT("nothing")};
    assert_int_equal(wb_words_begin(words, wb_slice_str(text), language), 0);
    if (wb_words_next(words, &word) == 0)
        return;
    assert_int_equal(wb_arena_copy(arena, word.exact, &wanted->exact), 0);
    if (word.kind == WB_WORD_PLAIN && chance_one_in(chance, 2)) {
        struct wb_slice *stem = wb_ask_take(arena, sizeof *stem);
        assert_int_equal(wb_arena_copy(arena, word.stem, stem), 0);
        wanted->stems = stem;
        wanted->stem_count = 1;
    }
}

static void test_same_words(void **state)
{
    static const char *const languages[] = {"en", "", "de", "fr", "ar", "ja"};
    struct wb_matches *matches = calloc(1, sizeof *matches);
    struct wb_words *words;
    uint64_t chance = test_seed();

    (void)state;
    assert_int_equal(wb_words_new(&words), 0);
    for (int round = 0; round < 3000; round++) {
        const char *language = languages[chance_below(&chance, sizeof languages / sizeof *languages)];
        struct wb_buf text = WB_BUF_INIT, all = WB_BUF_INIT, found = WB_BUF_INIT;
        struct wb_arena arena = {0};
        struct wb_wanted wanted[4];
        size_t count = 1 + chance_below(&chance, 4), len = chance_below(&chance, 120);
        for (size_t i = 0; i < len; i++)
            assert_int_equal(wb_buf_printf(&text, "%s%s",
                                           vocabulary[chance_below(&chance, sizeof vocabulary / sizeof *vocabulary)],
                                           chance_one_in(&chance, 9) ? "-" : " "),
                             0);
        for (size_t i = 0; i < count; i++)
            ask_for(words, &chance, language, &arena, &wanted[i]);
        read_all(words, wb_buf_slice(&text), language, wanted, count, &all);
        wb_matches_want(matches, words, wanted, count);
        for (int again = 0; again < 2; again++) { /* then it knows many words */
            wb_matches_begin(matches, language, false);
            assert_int_equal(wb_matches_find(matches, wb_buf_slice(&text), text.len), 0);
        }
        for (size_t i = 0; i < matches->items.count; i++)
            assert_int_equal(wb_buf_printf(&found, "%zu-%zu is %u\n", matches->items.items[i].begin,
                                           matches->items.items[i].end, matches->items.items[i].wanted),
                             0);
        assert_int_equal(wb_buf_terminate(&all) + wb_buf_terminate(&found) + wb_buf_terminate(&text), 0);
        if (strcmp(all.ptr, found.ptr) != 0)
            fail_msg("%s (%s): %.*s:\n%sinstead of\n%s", text.ptr, language, WB_SLICE_ARG(wanted[0].exact), found.ptr,
                     all.ptr);
        wb_arena_release(&arena);
        wb_buf_release(&text);
        wb_buf_release(&all);
        wb_buf_release(&found);
    }
    wb_matches_release(matches);
    wb_words_free(words);
    free(matches);
}

/* ---- where passages begin and end --------------------------------------------------------------------- */

/* The passage around the first occurrence of a word. */
static void check_passage(const char *text, const char *word, size_t want, const char *passage)
{
    struct wb_slice all = wb_slice_str(text);
    size_t first = (size_t)(strstr(text, word) - text), last = first + strlen(word);
    struct wb_text_range range =
        wb_text_passage(all, (struct wb_text_range){0, all.len}, first, last, first + want);

    if (!wb_slice_equal(wb_slice(text + range.begin, range.end - range.begin), wb_slice_str(passage)))
        fail_msg("'%.*s' instead of '%s'", (int)(range.end - range.begin), text + range.begin, passage);
}

#define LONG_JA "これは長い文章であり、最初の句点まで百二十バイトより多くのバイトを含んでいるので、途中で切れない。"

static void test_sentences(void **state)
{
    (void)state;
    const char *more = " And so on, without any end in sight, and on and on and on and on and on and on and on and on "
                       "and on and on and on and on and on and on and on and on and on and on and on and on and on.";
    struct wb_buf text = WB_BUF_INIT;

    check_passage(LONG_JA "動物園にしまうまがいる。" LONG_JA LONG_JA, "しまうま", 160, "動物園にしまうまがいる。" LONG_JA);
    check_passage("قال الرجل ذلك؟ ثم ذهب الحمار إلى البيت.", "الحمار", 200, "ثم ذهب الحمار إلى البيت.");
    /* Headings at the end are left out, but not behind something short. */
    assert_int_equal(wb_buf_printf(&text, "The zebra has stripes, and it is not a horse but something else.\n%s",
                                   "See also\nAnother heading"),
                     0);
    assert_int_equal(wb_buf_terminate(&text), 0);
    check_passage(text.ptr, "zebra", 79, "The zebra has stripes, and it is not a horse but something else.");
    check_passage("Zebras\nSee also", "Zebras", 200, "Zebras\nSee also");
    /* Words are whole, also if a long one is in the way. */
    wb_buf_clear(&text);
    assert_int_equal(wb_buf_printf(&text, "it begins before https://a.example/%0*d zebra and%s", 70, 1, more), 0);
    assert_int_equal(wb_buf_terminate(&text), 0);
    size_t at = (size_t)(strstr(text.ptr, "zebra") - text.ptr);
    struct wb_text_range range =
        wb_text_passage(wb_buf_slice(&text), (struct wb_text_range){0, text.len}, at, at + 5, at + 100);
    assert_true(range.begin == 0 || text.ptr[range.begin - 1] == ' ');
    assert_true(text.ptr[range.end] == ' ');
    wb_buf_release(&text);
}

static void put(struct wb_text_cache *cache, const char *key, const char *text)
{
    wb_text_cache_put(cache, wb_slice_str(key), wb_slice_str(text));
}

static bool has(struct wb_text_cache *cache, const char *key, const char *text)
{
    struct wb_arena arena = {0};
    struct wb_slice found = WB_SLICE_EMPTY;
    int got = wb_text_cache_find(cache, wb_slice_str(key), &arena, &found);

    assert_true(got == 0 || got == 1);
    bool same = got && wb_slice_equal(found, wb_slice_str(text));
    wb_arena_release(&arena);
    return same;
}

static void test_cache(void **state)
{
    (void)state;
    struct wb_text_cache *cache;
    char key[32], text[2000];
    unsigned kept = 0;

    assert_int_equal(wb_text_cache_new(64 << 10, 1, &cache), 0);
    assert_false(has(cache, "a", ""));
    put(cache, "a", "1");
    put(cache, "b", "");
    assert_true(has(cache, "a", "1"));
    assert_true(has(cache, "b", ""));
    put(cache, "a", "2");
    assert_true(has(cache, "a", "2"));
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = 0;
    put(cache, "long", text); /* longer than an entry may be */
    assert_false(has(cache, "long", text));
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "key %u", i);
        put(cache, key, key);
        assert_true(has(cache, key, key));
    }
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "key %u", i);
        kept += has(cache, key, key);
    }
    assert_in_range(kept, 30, 68); /* 64 KB: 17 sets of 4 */
    wb_text_cache_free(cache);
    wb_text_cache_free(NULL);
}

/* Texts of older generations go when a new one is in use, and nothing is kept beyond what the process may keep. */
static void test_cache_gives_up(void **state)
{
    (void)state;
    struct wb_text_cache *cache;
    char key[32];
    uint64_t none = wb_kept_bytes(WB_KEPT_TEXTS);

    assert_int_equal(wb_text_cache_new(256 << 10, 1, &cache), 0);
    uint64_t empty = wb_kept_bytes(WB_KEPT_TEXTS);
    for (unsigned generation = 1; generation <= 500; generation++) {
        for (unsigned i = 0; i < 20; i++) {
            snprintf(key, sizeof key, "%04u text %u", generation, i); /* its generation comes first: four bytes */
            put(cache, key, key);
        }
        snprintf(key, sizeof key, "%04u", generation);
        wb_text_cache_forget(cache, wb_get32(key));
        assert_true(wb_kept_bytes(WB_KEPT_TEXTS) <= empty + 20 * 100);
    }
    assert_true(has(cache, "0500 text 7", "0500 text 7"));
    assert_false(has(cache, "0499 text 7", "0499 text 7"));
    wb_kept_set_bound(wb_kept_all() + 200);
    for (unsigned i = 0; i < 1000; i++) {
        snprintf(key, sizeof key, "0500 more %u", i);
        put(cache, key, key);
        assert_true(wb_kept_all() <= wb_kept_bound());
    }
    wb_kept_set_bound(UINT64_MAX);
    wb_text_cache_free(cache);
    assert_int_equal(wb_kept_bytes(WB_KEPT_TEXTS), none);
}

/* ---- which part of the text ------------------------------------------------------------------------ */

/* A page of documentation: a menu, a title that is repeated, paragraphs, a footer. */
static void documentation(struct page_text *t, const char *paragraphs)
{
    t->body.len = 0;
    add(t, "<html><head><title>Zebras - the manual</title></head><body><div role=navigation class=sidebar><ul>");
    for (int i = 0; i < 30; i++)
        add(t, "<li><a href=/a>Zebra index</a></li><li><a href=/b>Quick search</a></li>");
    add(t, "</ul></div><div role=main><h1>Zebras\xc2\xb6</h1>");
    add(t, "<p>This is the first paragraph of the text, which says what it is about. It says it in two sentences.</p>");
    add(t, paragraphs);
    add(t, "<p>Then there is more text, so that nobody can doubt that this is what the page is for. And more.</p>");
    add(t, "</div><footer>Copyright of the stripes</footer></body></html>");
}

static size_t count_of(const char *text, const char *part)
{
    size_t count = 0;

    for (; (text = strstr(text, part)); text += strlen(part))
        count++;
    return count;
}

static void test_main_text_first(void **state)
{
    (void)state;
    struct page_text t;

    begin(&t);
    documentation(&t,
                  "<p>One sentence comes before. In the wild, a zebra has stripes. Another one comes after it.</p>");
    const char *html = snippet(&t, "text/html", "zebra", "zebra");
    assert_non_null(strstr(html, "In the wild, a <b>zebra</b> has stripes. Another one comes after it."));
    assert_null(strstr(html, "Quick"));
    assert_null(strstr(html, "index"));
    assert_int_not_equal(strncmp(html, "\xe2\x80\xa6", 3), 0); /* a sentence begins */
    /* A menu is never shown. */
    documentation(&t,
                  "<p>One sentence and another one, about nothing that anybody looks for in here. It is short.</p>");
    html = snippet(&t, "text/html", "quick", "quick");
    assert_non_null(strstr(html, "This is the first paragraph"));
    assert_null(strstr(html, "Quick"));
    html = snippet(&t, "text/html", "zebra", "zebra");
    assert_non_null(strstr(html, "This is the first paragraph"));
    assert_null(strstr(html, "index"));
    html = snippet(&t, "text/html", "unicorn", "unicorn");
    assert_int_equal(strncmp(html, "This is the first paragraph", 27), 0);
    end(&t);
}

static void test_one_mark_for_each_cut(void **state)
{
    (void)state;
    struct page_text t;

    begin(&t);
    documentation(&t, "<p>\xe2\x80\xa6 \xe2\x80\xa6\xe2\x80\xa6 a zebra...\xe2\x80\xa6\xe2\x80\xa6 and what "
                      "follows\xe2\x80\xa6\xe2\x80\xa6 is text that goes on and on and on and on and on and on and on "
                      "and on and on and on and on and on and on and on and on and on and on and on and on and on "
                      "and on and on and on and on and on and on and on and on and on and on and on and on</p>");
    const char *html = snippet(&t, "text/html", "zebra", "zebra");
    assert_non_null(strstr(html, "a <b>zebra</b>"));
    assert_int_equal(count_of(html, "\xe2\x80\xa6\xe2\x80\xa6"), 0);
    assert_int_equal(count_of(html, "\xe2\x80\xa6 \xe2\x80\xa6"), 0);
    assert_true(wb_slice_ends(wb_slice_str(html), WB_SLICE_LIT(" \xe2\x80\xa6"))); /* the cut */
    end(&t);
}

static void ok_append(struct wb_buf *text, const char *piece)
{
    assert_int_equal(wb_buf_append_str(text, piece), 0);
}

/* Any text and any place give a passage that contains the place, and is not much longer than asked for. */
static void test_passages_of_any_text(void **state)
{
    static const char *const pieces[] = {"word ",        "word. ",   "W",    "\n", " ",
                                         "\xe3\x80\x82", "\xc3\xa9", "(x) ", "! ", "?\" "};
    uint64_t chance = test_seed();

    (void)state;
    for (int round = 0; round < 3000; round++) {
        struct wb_buf text = WB_BUF_INIT;
        size_t count = 1 + chance_below(&chance, 300);
        while (count--)
            ok_append(&text, pieces[chance_below(&chance, sizeof pieces / sizeof *pieces)]);
        struct wb_text_range within = {chance_below(&chance, text.len), 0};
        within.end = within.begin + chance_below(&chance, text.len - within.begin + 1);
        size_t first = within.begin + chance_below(&chance, within.end - within.begin + 1);
        size_t last = first + chance_below(&chance, within.end - first + 1);
        size_t want = first + chance_below(&chance, 400);
        struct wb_text_range range = wb_text_passage(wb_buf_slice(&text), within, first, last, want);
        assert_true(within.begin <= range.begin && range.begin <= first);
        assert_true(last <= range.end && range.end <= within.end);
        size_t most = (want > last ? want : last) + 60;
        assert_true(range.end <= most && first - range.begin <= 130);
        (void)wb_text_begins(wb_buf_slice(&text), range.begin);
        (void)wb_text_ends(wb_buf_slice(&text), range.end);
        wb_buf_release(&text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_far_away),
        cmocka_unit_test(test_other_encoding),
        cmocka_unit_test(test_same_words),
        cmocka_unit_test(test_sentences),
        cmocka_unit_test(test_main_text_first),
        cmocka_unit_test(test_one_mark_for_each_cut),
        cmocka_unit_test(test_passages_of_any_text),
        cmocka_unit_test(test_cache),
        cmocka_unit_test(test_cache_gives_up),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
