/* test_replay_marks.c - the words of two versions of a page that differ, marked in both. */
#include "../seeded.h"
#include "replay_support.h"
#include "same_marks.h"

static struct wb_replay_page page_of(struct wb_slice body)
{
    return (struct wb_replay_page){WB_SLICE_LIT(HERE), WB_SLICE_LIT(TIME), WB_SLICE_LIT("text/html"),
                                   WB_SLICE_LIT("utf-8"), body};
}

/* A rewritten page, in which marks become [-removed-], {+added+}, and ^ where the other side has something. */
static void simplify(struct wb_slice html, struct wb_buf *out)
{
    const char *end = html.ptr + html.len;
    bool added = false, place = false;

    wb_buf_clear(out);
    for (const char *p = html.ptr; p < end;) {
        size_t mark = mark_at(p, end);
        if (mark == 0) {
            assert_int_equal(wb_buf_append_char(out, *p++), 0);
            continue;
        }
        if (p[1] != '/') {
            added = p[1] == 'i';
            place = mark_at(p + mark, end) > 0;
        }
        const char *sign = place ? (p[1] == '/' ? "^" : "") : p[1] == '/' ? (added ? "+}" : "-]") : added ? "{+" : "[-";
        assert_int_equal(wb_buf_append_str(out, sign), 0);
        p += mark;
    }
}

static void expect_marks(const char *old, const char *new, const char *want_old, const char *want_new)
{
    struct wb_replay_page pages[2] = {page_of(wb_slice_str(old)), page_of(wb_slice_str(new))};
    const char *wants[2] = {want_old, want_new};
    struct wb_replay_marks marks[2];
    struct wb_buf simple = WB_BUF_INIT;
    uint32_t changes;

    check_marks(replayer, &pages[0], &pages[1]);
    assert_int_equal(wb_replay_compare(replayer, &pages[0], &pages[1], &marks[0], &marks[1], &changes), 0);
    for (int i = 0; i < 2; i++) {
        struct wb_replay_options options = {.prefix = WB_SLICE_LIT("/web/"), .marks = &marks[i]};
        rewrite("text/html", "utf-8", pages[i].body, &options);
        simplify(wb_buf_slice(&output), &simple);
        expect_bytes(pages[i].body, wb_buf_slice(&simple), wb_slice_str(wants[i]));
        wb_replay_marks_release(&marks[i]);
    }
    wb_buf_release(&simple);
}

static void test_words(void **state)
{
    static const struct {
        const char *old, *new, *want_old, *want_new;
    } cases[] = {
        {"<p>one two three", "<p>one too three", "<p>one [-two-] three", "<p>one {+too+} three"},
        {"<p>one two", "<p>one two", "<p>one two", "<p>one two"},
        {"<p>one two", "<p>one", "<p>one [-two-]", "<p>one^"},
        {"<p>two", "<p>one two", "<p>^two", "<p>{+one+} two"},
        {"<p>a b c d", "<p>a x y d", "<p>a [-b c-] d", "<p>a {+x y+} d"},
        /* The last word of a block is the same word elsewhere; white space is not a word. */
        {"<p>one<p>two", "<p>one  two", "<p>one<p>two", "<p>one  two"},
        {"one\n two", "one two\n", "one\n two", "one two\n"},
        /* A mark ends at a tag, and a word may have several parts. */
        {"a<b>b</b>c", "a<b>x</b>c", "[-a-]<b>[-b-]</b>[-c-]", "{+a+}<b>{+x+}</b>{+c+}"},
        {"<b>a</b>b", "a<i>b</i>", "<b>a</b>b", "a<i>b</i>"},
        {"a<img src=x>b", "a b", "a<img src=\"/web/20260102030405/https://example.org/dir/x\">b", "a b"},
        /* What is written differently is the same word. */
        {"a&amp;b &lt;", "a&#38;b <p>&#60;", "a&amp;b &lt;", "a&#38;b <p>&#60;"},
        /* Where no element may be, nothing is marked. */
        {"<title>a</title>x", "<title>b</title>x", "<title>a</title>x", "<title>b</title>x"},
        {"<style>a{}</style><script>a</script>x", "<style>b{}</style><script>b</script>x",
         "<style>a{}</style><script>a</script>x", "<style>b{}</style><script>b</script>x"},
        {"<textarea>a</textarea><select><option>a</select>x", "<textarea>b</textarea><select><option>b</select>y",
         "<textarea>a</textarea><select><option>a</select>[-x-]",
         "<textarea>b</textarea><select><option>b</select>{+y+}"},
        {"<svg><text>a</text></svg>x", "<svg><text>b</text></svg>y", "<svg><text>a</text></svg>[-x-]",
         "<svg><text>b</text></svg>{+y+}"},
        {"<template>a<template>b</template>c</template>x", "<template>d</template>y",
         "<template>a<template>b</template>c</template>[-x-]", "<template>d</template>{+y+}"},
        /* Chinese has no blanks. */
        {"<p>\xe4\xb8\xad\xe6\x96\x87\xe5\xad\x97", "<p>\xe4\xb8\xad\xe5\x9b\xbd\xe5\xad\x97",
         "<p>\xe4\xb8\xad[-\xe6\x96\x87-]\xe5\xad\x97", "<p>\xe4\xb8\xad{+\xe5\x9b\xbd+}\xe5\xad\x97"},
        {"", "<p>all", "", "<p>{+all+}"},
        {"\xef\xbb\xbf<p>a", "\xef\xbb\xbf<p>b", "\xef\xbb\xbf<p>[-a-]", "\xef\xbb\xbf<p>{+b+}"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_marks(cases[i].old, cases[i].new, cases[i].want_old, cases[i].want_new);
}

/* Changes have the same numbers in both, and the first mark of each has its id. */
static void test_numbers(void **state)
{
    struct wb_replay_page old = page_of(WB_SLICE_LIT("a <b>b</b> c d e")),
                          new = page_of(WB_SLICE_LIT("x <b>y</b> c e f"));
    struct wb_replay_marks marks[2];
    uint32_t changes;

    (void)state;
    assert_int_equal(wb_replay_compare(replayer, &old, &new, &marks[0], &marks[1], &changes), 0);
    assert_int_equal(changes, 3);
    assert_true(!marks[0].added && marks[1].added && !marks[0].cut && !marks[1].cut);
    assert_int_equal(marks[0].count, 4); /* a, b, d, and where f would be */
    assert_int_equal(marks[1].count, 4); /* x, y, where d was, f */
    for (int i = 0; i < 2; i++) {
        assert_int_equal(marks[i].items[0].change, 1);
        assert_int_equal(marks[i].items[1].change, 1);
        assert_int_equal(marks[i].items[2].change, 2);
        assert_int_equal(marks[i].items[3].change, 3);
    }
    rewrite("text/html", "utf-8", new.body, &(struct wb_replay_options){.prefix = {"/web/", 5}, .marks = &marks[1]});
    assert_non_null(memmem(output.ptr, output.len, "<ins id=\"webbase-change-1\" ", 26));
    assert_non_null(memmem(output.ptr, output.len, "<ins id=\"webbase-change-3\" ", 26));
    assert_null(memmem(output.ptr, output.len, "<del", 4));
    wb_replay_marks_release(&marks[0]);
    wb_replay_marks_release(&marks[1]);
}

/* Marks of another page are left out where they would stand in a tag. */
static void test_marks_of_another_page(void **state)
{
    struct wb_replay_mark items[] = {{1, 3, 1}, {0, 4, 2}, {5, 4, 3}, {7, 9, 4}, {8, 900, 5}};
    struct wb_replay_marks marks = {.items = items, .count = 5};

    (void)state;
    rewrite("text/html", "utf-8", WB_SLICE_LIT("<p><b>ab cd</b>"),
            &(struct wb_replay_options){.prefix = {"/web/", 5}, .marks = &marks});
    assert_non_null(memmem(output.ptr, output.len, "<p><b>a<del", 11));
}

/* Random pages of few words and tags, each changed a little. */
static void test_random_pages(void **state)
{
    static const char *const parts[] = {
        "one",        " two",        "&amp;",    "<p>",       "</p>",         "<b>",    "</b> ",      "<title>",
        "</title>",   "<svg>",       "</svg>",   "<script>",  "</script>",    "<!--",   "-->",        "\xe4\xb8\xad",
        "\xe3",       "<td>",        "<select>", "</select>", "<a href='x'>", "\n",     "<template>", "</template>",
        "<textarea>", "</textarea>", "&",        "<",         "<xmp>",        "</xmp>", "<math>",     "<mi>"};
    uint64_t seed = test_seed();
    struct wb_buf pages[2] = {WB_BUF_INIT, WB_BUF_INIT};

    (void)state;
    for (int round = 0; round < 3000; round++) {
        wb_buf_clear(&pages[0]);
        wb_buf_clear(&pages[1]);
        for (int i = 0; i < 40; i++) {
            const char *part = parts[chance_below(&seed, sizeof parts / sizeof *parts)];
            bool changed = chance_one_in(&seed, 8);
            assert_int_equal(wb_buf_append_str(&pages[0], part), 0);
            assert_int_equal(wb_buf_append_str(&pages[1], changed ? parts[chance_below(&seed, 6)] : part), 0);
        }
        struct wb_replay_page old = page_of(wb_buf_slice(&pages[0])), new = page_of(wb_buf_slice(&pages[1]));
        check_marks(replayer, &old, &new);
        assert_int_equal(check_marks(replayer, &new, &new), 0);
    }
    wb_buf_release(&pages[0]);
    wb_buf_release(&pages[1]);
}

/* One change with more tags in it than marks are made. And what is too much work counts as one change. */
static void test_too_much(void **state)
{
    struct wb_buf pages[2] = {WB_BUF_INIT, WB_BUF_INIT};
    struct wb_replay_marks marks[2];
    uint32_t changes;

    (void)state;
    for (int form = 0; form < 2; form++) {
        for (int side = 0; side < 2; side++) {
            wb_buf_clear(&pages[side]);
            for (int i = 0; i < 30000; i++)
                assert_int_equal(form ? wb_buf_printf(&pages[side], "%s%d same%d ", side ? "new" : "old", i, i)
                                      : wb_buf_printf(&pages[side], "<b>%s%d</b>", side ? "new" : "old", i),
                                 0);
        }
        struct wb_replay_page old = page_of(wb_buf_slice(&pages[0])), new = page_of(wb_buf_slice(&pages[1]));
        assert_int_equal(wb_replay_compare(replayer, &old, &new, &marks[0], &marks[1], &changes), 0);
        assert_int_equal(changes, 1);
        assert_int_equal(marks[0].count, form ? 1 : WB_REPLAY_MARKS_MAX);
        assert_true(marks[0].cut == !form && marks[1].cut == !form);
        wb_replay_marks_release(&marks[0]);
        wb_replay_marks_release(&marks[1]);
        check_marks(replayer, &old, &new);
    }
    wb_buf_release(&pages[0]);
    wb_buf_release(&pages[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),
        cmocka_unit_test(test_numbers),
        cmocka_unit_test(test_marks_of_another_page),
        cmocka_unit_test(test_random_pages),
        cmocka_unit_test(test_too_much),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
