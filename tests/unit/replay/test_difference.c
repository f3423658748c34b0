/* test_difference.c - what changed between two texts: the runs always give both of them, and are few. */
#include "replay/replay.h"
#include "base/error.h"
#include "../allocfail.h"
#include "../seeded.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

/* Puts both texts together from the runs; returns how many bytes are in runs that are not the same. */
static size_t check_runs(struct wb_slice old, struct wb_slice new, const struct wb_difference *difference)
{
    struct wb_buf old_again = WB_BUF_INIT, new_again = WB_BUF_INIT;
    size_t changed = 0;

    for (size_t i = 0; i < difference->count; i++) {
        const struct wb_difference_run *run = &difference->items[i];
        assert_true(run->text.len > 0 && (i == 0 || run[-1].kind != run->kind));
        if (i > 0 && run->kind == WB_DIFFERENCE_REMOVED)
            assert_int_equal(run[-1].kind, WB_DIFFERENCE_SAME);
        if (run->kind != WB_DIFFERENCE_ADDED)
            assert_int_equal(wb_buf_append_slice(&old_again, run->text), 0);
        if (run->kind != WB_DIFFERENCE_REMOVED)
            assert_int_equal(wb_buf_append_slice(&new_again, run->text), 0);
        changed += run->kind == WB_DIFFERENCE_SAME ? 0 : run->text.len;
    }
    assert_true(wb_slice_equal(wb_buf_slice(&old_again), old));
    assert_true(wb_slice_equal(wb_buf_slice(&new_again), new));
    wb_buf_release(&old_again);
    wb_buf_release(&new_again);
    return changed;
}

static size_t changed_between(struct wb_slice old, struct wb_slice new)
{
    struct wb_difference difference;

    assert_int_equal(wb_difference_of(old, new, &difference), 0);
    size_t changed = check_runs(old, new, &difference);
    wb_difference_release(&difference);
    return changed;
}

/* Writes the runs as text: [-removed-] and {+added+}. */
static void expect_runs(const char *old, const char *new, const char *want)
{
    static const char *const forms[] = {"%.*s", "[-%.*s-]", "{+%.*s+}"};
    struct wb_difference difference;
    struct wb_buf text = WB_BUF_INIT;

    assert_int_equal(wb_difference_of(wb_slice_str(old), wb_slice_str(new), &difference), 0);
    check_runs(wb_slice_str(old), wb_slice_str(new), &difference);
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
    for (size_t i = 0; i < difference.count; i++)
        assert_int_equal(wb_buf_printf(&text, forms[difference.items[i].kind], WB_SLICE_ARG(difference.items[i].text)),
                         0);
#pragma GCC diagnostic pop
    assert_int_equal(wb_buf_terminate(&text), 0);
    assert_string_equal(text.ptr, want);
    wb_buf_release(&text);
    wb_difference_release(&difference);
}

static void test_words(void **state)
{
    (void)state;
    expect_runs("", "", "");
    expect_runs("a", "a", "a");
    expect_runs("", "a b", "{+a b+}");
    expect_runs("a b", "", "[-a b-]");
    expect_runs("one two three", "one 2 three", "one [-two -]{+2 +}three");
    expect_runs("one two\nthree", "one two\nthree and four", "one two\n[-three-]{+three and four+}");
    expect_runs("a b c d e", "a c d x e", "a [-b -]c d {+x +}e");
    expect_runs(" a", "a", "[- -]a");
    expect_runs("\xe6\x97\xa5\xe6\x9c\xac\xe8\xaa\x9e", "\xe6\x97\xa5\xe8\xaa\x9e",
                "\xe6\x97\xa5[-\xe6\x9c\xac-]\xe8\xaa\x9e");
}

/* The length of the longest common subsequence of two short texts whose words are single letters. */
static size_t common_letters(const char *a, size_t n, const char *b, size_t m)
{
    static size_t best[65][65];

    for (size_t i = 0; i <= n; i++)
        for (size_t k = 0; k <= m; k++) {
            if (i == 0 || k == 0)
                best[i][k] = 0;
            else if (a[2 * i - 2] == b[2 * k - 2])
                best[i][k] = best[i - 1][k - 1] + 1;
            else
                best[i][k] = best[i - 1][k] > best[i][k - 1] ? best[i - 1][k] : best[i][k - 1];
        }
    return best[n][m];
}

static size_t random_letters(uint64_t *chance, char text_out[128])
{
    size_t n = chance_below(chance, 64);
    uint64_t letters = 1 + chance_below(chance, 5);

    for (size_t i = 0; i < n; i++) {
        text_out[2 * i] = (char)('a' + chance_below(chance, letters));
        text_out[2 * i + 1] = ' ';
    }
    return n;
}

/* The difference of short texts is as short as possible. */
static void test_shortest(void **state)
{
    uint64_t chance = test_seed();
    char a[128], b[128];

    (void)state;
    for (int i = 0; i < 20000; i++) {
        size_t n = random_letters(&chance, a), m = random_letters(&chance, b);
        size_t changed = changed_between(wb_slice(a, 2 * n), wb_slice(b, 2 * m));
        assert_int_equal(changed, 2 * (n + m - 2 * common_letters(a, n, b, m)));
    }
}

/* Writes `words` random words, some of them followed by a newline. */
static void random_text(uint64_t *chance, size_t words, uint64_t vocabulary, struct wb_buf *out)
{
    wb_buf_clear(out);
    for (size_t i = 0; i < words; i++)
        assert_int_equal(wb_buf_printf(out, "w%u%c", (unsigned)chance_below(chance, vocabulary),
                                       chance_one_in(chance, 12) ? '\n' : ' '),
                         0);
}

/* Changes every n-th word or so of a text: it is left out, repeated, or replaced. */
static void random_edit(uint64_t *chance, struct wb_slice text, uint64_t n, struct wb_buf *out)
{
    wb_buf_clear(out);
    for (size_t i = 0; i < text.len;) {
        size_t from = i;
        while (i < text.len && text.ptr[i] != ' ' && text.ptr[i] != '\n')
            i++;
        i += i < text.len;
        uint64_t how = chance_one_in(chance, n) ? chance_below(chance, 3) : 3;
        for (uint64_t k = 0; k < (how == 0 ? 0 : how == 1 ? 2 : 1); k++)
            assert_int_equal(how == 2 ? wb_buf_append_str(out, "new ") : wb_buf_append(out, text.ptr + from, i - from),
                             0);
    }
}

static void test_random(void **state)
{
    struct wb_buf old = WB_BUF_INIT, new = WB_BUF_INIT;
    uint64_t chance = test_seed();

    (void)state;
    for (int i = 0; i < 200; i++) {
        random_text(&chance, chance_below(&chance, 3000), 1 + chance_below(&chance, 1000), &old);
        random_edit(&chance, wb_buf_slice(&old), 1 + chance_below(&chance, 100), &new);
        changed_between(wb_buf_slice(&old), wb_buf_slice(&new));
    }
    wb_buf_release(&old);
    wb_buf_release(&new);
}

/* Texts that have too little in common for words still give runs: those of lines, or two. */
static void test_cutoff(void **state)
{
    struct wb_buf old = WB_BUF_INIT, new = WB_BUF_INIT;
    struct wb_difference difference;
    uint64_t chance = test_seed();

    (void)state;
    random_text(&chance, 100000, 20, &old);
    random_text(&chance, 100000, 20, &new);
    assert_int_equal(wb_buf_append_str(&old, "\nlast line\n"), 0);
    assert_int_equal(wb_buf_append_str(&new, "\nlast line\n"), 0);
    assert_int_equal(wb_difference_of(wb_buf_slice(&old), wb_buf_slice(&new), &difference), 0);
    check_runs(wb_buf_slice(&old), wb_buf_slice(&new), &difference);
    assert_true(difference.count >= 3 && difference.items[difference.count - 1].kind == WB_DIFFERENCE_SAME);
    for (size_t i = 0; i < difference.count; i++)
        assert_int_equal(difference.items[i].text.ptr[difference.items[i].text.len - 1], '\n');
    wb_difference_release(&difference);

    /* So many short words that the last token is the rest of the text. */
    wb_buf_clear(&old);
    for (size_t i = 0; i < 1 << 20; i++)
        assert_int_equal(wb_buf_append_str(&old, i % 3 ? "a " : "b "), 0);
    wb_buf_clear(&new);
    assert_int_equal(wb_buf_append_slice(&new, wb_buf_slice(&old)), 0);
    new.ptr[100] = 'c';
    new.ptr[new.len - 2] = 'c';
    assert_true(changed_between(wb_buf_slice(&old), wb_buf_slice(&new)) <= old.len + new.len);
    wb_buf_release(&old);
    wb_buf_release(&new);
}

static void test_limit(void **state)
{
    struct wb_difference difference;
    char *text = wb_alloc_zero(WB_DIFFERENCE_BYTES_MAX + 1, 1);

    (void)state;
    assert_non_null(text);
    assert_int_equal(wb_difference_of(wb_slice(text, WB_DIFFERENCE_BYTES_MAX + 1), WB_SLICE_EMPTY, &difference),
                     WB_E_LIMIT);
    assert_int_equal(wb_difference_of(WB_SLICE_EMPTY, wb_slice(text, WB_DIFFERENCE_BYTES_MAX + 1), &difference),
                     WB_E_LIMIT);
    assert_int_equal(difference.count, 0);
    wb_free(text);
}

static void test_out_of_memory(void **state)
{
    struct wb_difference difference;
    size_t n = 0;

    (void)state;
    for (bool failed = true; failed; n++) {
        alloc_fail_nth(n);
        int err = wb_difference_of(WB_SLICE_LIT("a b c"), WB_SLICE_LIT("a d c"), &difference);
        failed = alloc_has_failed();
        alloc_fail_none();
        assert_int_equal(err, failed ? WB_E_NOMEM : 0);
        wb_difference_release(&difference);
    }
    assert_true(n > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_words),  cmocka_unit_test(test_shortest), cmocka_unit_test(test_random),
        cmocka_unit_test(test_cutoff), cmocka_unit_test(test_limit),    cmocka_unit_test(test_out_of_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
