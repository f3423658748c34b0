/* test_ask_print.c - trees as text and back, simpler trees, and pointing at a character. */
#include "asktree.h"
#include "../seeded.h"

static void test_printed(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {" a   AND  b ", "a b"},
        {"a OR b c", "a OR b c"},
        {"a ((b OR c)) -(-d)", "a (b OR c) -(-d)"},
        {"title:(a OR b*)", "title:a OR title:b*"},
        {"-(-) -(--x) -(--x*) -title:--y", "-(-) -(--x) -(--x*) -title:--y"},
        {"\" a b \"~3 -\"c\"~0", "\"a b\"~3 -\"c\""},
        {"link:\"a.org/x)\" site:\"a\" color-2:\">5\" color-2:\"=\"",
         "link:\"a.org/x)\" site:a color-2:\">5\" color-2:\"=\""},
        {"link:a.org/C_(lang)", "link:\"a.org/C_(lang)\""},
        {"size:>5k size:<5k size:5k size:<=-1", "size:>=5001 size:<=4999 size:5000 size:<=-1"},
        {"status:4xx status:0XX status:404", "status:4xx status:0xx status:404"},
        {"rank:>0.1 quality:>=1e6 quality:<1e-300 rank:0.30000000000000004",
         "rank:>0.1 quality:>=1000000 quality:<1e-300 rank:0.30000000000000004"},
        {"after:2026-01-01 before:2026-01-01T12:00", "after:2026-01-01 before:2026-01-01T12:00:00.000Z"},
        {"published:2026-01-01 published:>2026-01-01 published:<=2026-01-01 published:2026-01-01T00:00Z",
         "published:2026-01-01 published:>=2026-01-02 published:<2026-01-02 published:2026-01-01T00:00:00.000Z"},
        {"changed:>1969-12-31T23:59:59.999Z changed:<0001-01-01", "changed:>=1970-01-01 changed:<0001-01-01"},
    };
    struct wb_arena arena = {0};
    struct wb_buf text = WB_BUF_INIT;
    struct wb_ask ask, again;

    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(wb_ask_parse(wb_slice_str(cases[i][0]), &test_options, &arena, &ask), 0);
        assert_int_equal(wb_ask_print(ask.root, &text), 0);
        assert_int_equal(wb_ask_parse(wb_buf_slice(&text), &test_options, &arena, &again), 0);
        assert_true(wb_ask_equal(ask.root, again.root));
        expect_text(&text, cases[i][1]);
        wb_arena_clear(&arena);
    }
    wb_buf_release(&text);
    wb_arena_release(&arena);
}

/* What can be read can be printed and read again, also at the limit of depth. */
static void test_deepest(void **state)
{
    (void)state;
    struct wb_arena arena = {0};
    struct wb_buf text = WB_BUF_INIT;
    struct wb_ask ask, again;

    for (size_t i = 0; i < WB_ASK_DEPTH_MAX; i++)
        assert_int_equal(wb_buf_append_str(&text, "a OR b -("), 0);
    assert_int_equal(wb_buf_append_str(&text, "--c"), 0);
    for (size_t i = 0; i < WB_ASK_DEPTH_MAX; i++)
        assert_int_equal(wb_buf_append_char(&text, ')'), 0);
    assert_int_equal(wb_ask_parse(wb_buf_slice(&text), NULL, &arena, &ask), 0);
    wb_buf_clear(&text);
    assert_int_equal(wb_ask_print(ask.root, &text), 0);
    assert_int_equal(wb_ask_parse(wb_buf_slice(&text), NULL, &arena, &again), 0);
    assert_true(wb_ask_equal(ask.root, again.root));
    wb_buf_release(&text);
    wb_arena_release(&arena);
}

static void test_simplified(void **state)
{
    (void)state;
    static const char *const cases[][3] = {
        {"a", "w[a]", "a"},
        {"((a b) (c (d e)))", "and(w[a] w[b] w[c] w[d] w[e])", "a b c d e"},
        {"a OR (b OR (c d) OR (e OR f))", "or(w[a] w[b] and(w[c] w[d]) w[e] w[f])", "a OR b OR c d OR e OR f"},
        {"-(-a) -(-(-b))", "and(w[a] not(w[b]))", "a -b"},
        {"-(-(a b)) c", "and(w[a] w[b] w[c])", "a b c"},
        {"a b a A \"a\" \"a\"~2 a* title:a a", "and(w[a]x3 w[b] w[A] q[a] q[a]~2 p[a] title.w[a])",
         "a a a b A \"a\" \"a\"~2 a* title:a"},
        {"a OR b OR a", "or(w[a]x2 w[b])", "a OR a OR b"},
        {"a a", "w[a]x2", "a a"},
        {"(a a) OR (a OR b)", "or(w[a]x3 w[b])", "a OR a OR a OR b"},
        {"(a b) OR (a b)", "or(and(w[a] w[b]) and(w[a] w[b]))", "a b OR a b"},
        {"c -(a a) -a -a", "and(w[c] not(w[a]))", "c -a"},
        {"a -a", "and(w[a] not(w[a]))", "a -a"},
        {"-(-a -a) b", "and(w[a] w[b])", "a b"},
        {"site:x site:x size:>4 size:>=5 rank:>1 rank:>=1 rank:>1.0 quality:1 color-2:1",
         "and(site=[x] size[5..] rank>1 rank>=1 quality=[1] color-2=[1])",
         "site:x size:>=5 rank:>1 rank:>=1 quality:1 color-2:1"},
        {"after:2026-01-01 published:>=2026-01-01 before:2026-01-01",
         "and(after[1767225600000..] published[1767225600000..] after[..1767225599999])",
         "after:2026-01-01 published:>=2026-01-01 before:2026-01-01"},
    };
    struct wb_arena arena = {0};
    struct wb_buf text = WB_BUF_INIT;
    struct wb_ask ask;

    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(wb_ask_parse(wb_slice_str(cases[i][0]), &test_options, &arena, &ask), 0);
        assert_int_equal(wb_ask_simplify(&ask, &arena), 0);
        show_tree(ask.root, &text);
        expect_text(&text, cases[i][1]);
        assert_int_equal(wb_ask_print(ask.root, &text), 0);
        expect_text(&text, cases[i][2]);
        wb_arena_clear(&arena);
    }
    wb_buf_release(&text);
    wb_arena_release(&arena);
}

/* ---- random trees --------------------------------------------------------------------------------------------- */

static const char *pick_text(uint64_t *chance, bool field)
{
    static const char *const words[] = {"a",  "b",    "c++",   "std::vector",  "--x",
                                        "-",  "f(x)", "x:y",   "\xe6\x97\xa5", "19\"",
                                        "OR", "AND",  "url:z", "after:x"};

    return words[chance_below(chance, COUNT(words) - (field ? 0 : 4))];
}

static void random_text(uint64_t *chance, struct wb_ask_node *node)
{
    static const char *const phrases[] = {"a", "a b", "OR", "-x", "(", "title:a  *", ") b"};

    node->field = chance_one_in(chance, 2) ? WB_ASK_ANY : WB_ASK_TITLE + (unsigned)chance_below(chance, 4);
    node->text = wb_slice_str(pick_text(chance, node->field != WB_ASK_ANY));
    /* -* is not the beginning of anything. */
    if (node->kind == WB_ASK_PREFIX && wb_slice_equal(node->text, WB_SLICE_LIT("-")))
        node->text = WB_SLICE_LIT("a");
    if (node->kind == WB_ASK_PHRASE) {
        node->text = wb_slice_str(phrases[chance_below(chance, COUNT(phrases))]);
        node->slop = chance_one_in(chance, 2) ? (uint32_t)chance_below(chance, WB_ASK_SLOP_MAX + 1) : 0;
    }
}

static void random_value(uint64_t *chance, struct wb_ask_node *node)
{
    static const char *const values[] = {"x.org", "a.org/C_(b)", ">=5", "(", "a)b", "two words", "5", "\xc3\xa9"};

    node->field = WB_ASK_SITE + (unsigned)chance_below(chance, 9);
    node->text = wb_slice_str(values[chance_below(chance, COUNT(values))]);
    if (node->field > WB_ASK_DUP) {
        node->field = WB_ASK_COLUMN;
        node->column = wb_slice_str(chance_one_in(chance, 2) ? "quality" : "color-2");
    } else if (node->field == WB_ASK_DUP) {
        node->text = WB_SLICE_LIT("no");
    }
}

static void random_range(uint64_t *chance, struct wb_ask_node *node)
{
    bool times = chance_one_in(chance, 2);
    int64_t unit = times && chance_one_in(chance, 2) ? 86400000 : 1, first, last;

    node->field =
        times ? WB_ASK_FETCHED + (unsigned)chance_below(chance, 4) : WB_ASK_STATUS + (unsigned)chance_below(chance, 6);
    first = ((int64_t)chance_below(chance, 60000) - 30000) * unit;
    last = first + unit - 1;
    if (node->field == WB_ASK_STATUS && chance_one_in(chance, 3)) {
        first = (int64_t)chance_below(chance, 10) * 100;
        last = first + 99;
    }
    uint64_t sides = chance_below(chance, node->field == WB_ASK_FETCHED ? 2 : 3);
    node->low = sides == 1 ? INT64_MIN : first;
    node->high = sides == 0 ? INT64_MAX : last;
}

static void random_number(uint64_t *chance, struct wb_ask_node *node)
{
    bool column = chance_one_in(chance, 2);

    node->field = column ? WB_ASK_COLUMN : chance_one_in(chance, 2) ? WB_ASK_RANK : WB_ASK_HOSTRANK;
    node->column = column ? WB_SLICE_LIT("quality") : WB_SLICE_EMPTY;
    node->op = column ? WB_ASK_LT + (unsigned)chance_below(chance, 4) : (unsigned)chance_below(chance, 5);
    node->number = (chance_unit(chance) - 0.5) * (chance_one_in(chance, 2) ? 1e-9 : 1e9);
}

static struct wb_ask_node *random_tree(uint64_t *chance, unsigned depth, struct wb_arena *arena)
{
    struct wb_ask_node *node = (void *)(((uintptr_t)wb_arena_take(arena, sizeof *node + 15) + 15) & ~(uintptr_t)15);
    enum wb_ask_kind kind = depth && !chance_one_in(chance, 3) ? (unsigned)chance_below(chance, 3)
                                                               : WB_ASK_WORD + (unsigned)chance_below(chance, 6);

    *node = (struct wb_ask_node){.kind = kind, .count = 1, .text = WB_SLICE_EMPTY, .column = WB_SLICE_EMPTY};
    if (kind <= WB_ASK_NOT) {
        node->item_count = kind == WB_ASK_NOT ? 1 : 2 + chance_below(chance, 4);
        node->items =
            (void *)(((uintptr_t)wb_arena_take(arena, node->item_count * sizeof node + 15) + 15) & ~(uintptr_t)15);
        for (size_t i = 0; i < node->item_count; i++)
            node->items[i] = random_tree(chance, depth - 1, arena);
    } else if (kind <= WB_ASK_PHRASE) {
        random_text(chance, node);
    } else if (kind == WB_ASK_VALUE) {
        random_value(chance, node);
    } else if (kind == WB_ASK_RANGE) {
        random_range(chance, node);
    } else {
        random_number(chance, node);
    }
    return node;
}

static void expect_again(const struct wb_ask_node *node, bool simple, struct wb_arena *arena)
{
    struct wb_buf text = WB_BUF_INIT;
    struct wb_ask again;

    assert_int_equal(wb_ask_print(node, &text), 0);
    assert_int_equal(wb_buf_terminate(&text), 0);
    if (wb_ask_parse(wb_buf_slice(&text), &test_options, arena, &again) < 0)
        fail_msg("%s: %s", text.ptr, wb_error_message());
    assert_int_equal(simple ? wb_ask_simplify(&again, arena) : 0, 0);
    if (!wb_ask_equal(node, again.root))
        fail_msg("%s is read as another tree", text.ptr);
    wb_buf_release(&text);
}

/* Whether a page has the tree, if it has the leaves for which the bit of their hash is set in `world`. */
static bool holds(const struct wb_ask_node *node, uint64_t world)
{
    if (node->item_count == 0) {
        uint64_t sum =
            node->kind + 7 * node->field + 11 * node->op + 13 * node->slop + (uint64_t)(node->low ^ node->high);
        for (size_t i = 0; i < node->text.len; i++)
            sum = sum * 31 + (unsigned char)node->text.ptr[i];
        return world >> (sum + node->column.len + (uint64_t)(int64_t)(node->number * 1e12)) % 64 & 1;
    }
    if (node->kind == WB_ASK_NOT)
        return !holds(node->items[0], world);
    for (size_t i = 0; i < node->item_count; i++)
        if (holds(node->items[i], world) == (node->kind == WB_ASK_OR))
            return node->kind == WB_ASK_OR;
    return node->kind == WB_ASK_AND;
}

/* A random tree is printed and read as itself; simplifying it changes neither that nor what it finds. */
static void test_random_trees(void **state)
{
    (void)state;
    struct wb_arena arena = {0};
    uint64_t chance = test_seed();
    size_t deep = 0;

    for (unsigned n = 0; n < 20000; n++) {
        struct wb_ask ask = {.root = random_tree(&chance, n % 5, &arena)};
        uint64_t worlds[8];
        bool before[8];
        expect_again(ask.root, false, &arena);
        for (size_t i = 0; i < COUNT(worlds); i++) {
            worlds[i] = chance_next(&chance);
            before[i] = holds(ask.root, worlds[i]);
        }
        assert_int_equal(wb_ask_simplify(&ask, &arena), 0);
        for (size_t i = 0; i < COUNT(worlds); i++)
            assert_int_equal(holds(ask.root, worlds[i]), before[i]);
        expect_again(ask.root, true, &arena);
        deep += ask.root->item_count > 0;
        wb_arena_clear(&arena);
    }
    assert_true(deep > 1000);
    wb_arena_release(&arena);
}

/* ---- pointing ------------------------------------------------------------------------------------------------- */

static void test_pointing(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        size_t at, columns;
        const char *lines;
    } cases[] = {
        {"alpha) beta", 5, 80, "alpha) beta\n     ^\n"},
        {"alpha OR", 8, 80, "alpha OR\n        ^\n"},
        {"", 0, 0, "\n^\n"},
        /* Wide characters take two columns, marks none; what a terminal cannot show is replaced. */
        {"\xe6\x97\xa5\xe6\x9c\xac )", 7, 80, "\xe6\x97\xa5\xe6\x9c\xac )\n     ^\n"},
        {"cafe\xcc\x81 )", 7, 80, "cafe\xcc\x81 )\n     ^\n"},
        {"a\x1b[2J\xff\xe2\x80\xae\n\t)", 11, 80, "a?[2J??  )\n         ^\n"},
        /* Long queries are cut on either side. */
        {"0123456789012345678901234567890123456789)", 40, 30,
         "...8901234567890123456789)\n                         ^\n"},
        {")0123456789012345678901234567890123456789", 0, 30, ")0123456789012345678901...\n^\n"},
        {"01234567890123456789)01234567890123456789", 20, 30, "...4567890123456789)012345...\n                   ^\n"},
    };
    struct wb_buf lines = WB_BUF_INIT;

    for (size_t i = 0; i < COUNT(cases); i++) {
        assert_int_equal(wb_ask_point(wb_slice_str(cases[i].text), cases[i].at, cases[i].columns, &lines), 0);
        expect_text(&lines, cases[i].lines);
    }
    wb_buf_release(&lines);
}

/* Wherever it points, the line fits, and what is above the ^ is that character. */
static void test_pointing_everywhere(void **state)
{
    (void)state;
    struct wb_buf lines = WB_BUF_INIT;
    char text[200];

    for (size_t i = 0; i < sizeof text; i++)
        text[i] = (char)('0' + i % 75);
    for (size_t len = 0; len <= sizeof text; len += 25) {
        for (size_t at = 0; at <= len; at++) {
            for (size_t columns = 24; columns < 90; columns += 13) {
                assert_int_equal(wb_ask_point(wb_slice(text, len), at, columns, &lines), 0);
                const char *newline = memchr(lines.ptr, '\n', lines.len);
                size_t width = (size_t)(newline - lines.ptr), caret = lines.len - width - 3;
                assert_true(width <= columns && caret < columns && lines.ptr[lines.len - 2] == '^');
                assert_int_equal(at == len ? '\n' : text[at], lines.ptr[caret]);
                wb_buf_clear(&lines);
            }
        }
    }
    wb_buf_release(&lines);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_printed),    cmocka_unit_test(test_deepest),
        cmocka_unit_test(test_simplified), cmocka_unit_test(test_random_trees),
        cmocka_unit_test(test_pointing),   cmocka_unit_test(test_pointing_everywhere),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
