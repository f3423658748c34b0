/*
 * test_history_bytes.c - the past of a page as bytes: random histories are the same after they were written and
 * read; bytes that are cut off or contradict themselves are refused.
 */
#include "store_support.h"
#include "base/bytes.h"
#include "catalog/history.h"

/* ---- random histories ------------------------------------------------------------------------------- */

/* Usually small, sometimes of any size. */
static uint64_t any_number(uint64_t *chance, uint64_t max)
{
    uint64_t n = chance_next(chance) >> chance_below(chance, 64);

    return max == UINT64_MAX ? n : n % (max + 1);
}

/* Adds a time that is at least so much later than the last one, if that is possible. */
static bool add_time(struct wb_history *history, uint64_t *chance, bool any, int64_t between)
{
    int64_t last = history->times.count ? history->times.items[history->times.count - 1] : 0, time;

    if (any)
        time = (int64_t)chance_next(chance) / (chance_one_in(chance, 2) ? 1 : 1000000);
    else if (last > INT64_MAX - (1 << 20))
        return false;
    else
        time = last + between + (int64_t)chance_below(chance, chance_one_in(chance, 8) ? 1 : 1 << 20);
    must_ok(wb_vec_push(&history->times, time));
    return true;
}

static void add_version(struct wb_history *history, uint64_t *chance, bool ghost, bool latest)
{
    struct wb_history_version version = {.first = history->times.count, .ghost = ghost};
    bool first = history->versions.count == 0 || ghost || history->versions.count == history->ghosts;
    uint64_t captures = 1 + chance_below(chance, chance_one_in(chance, 20) ? 3000 : 4);

    /* Only captures of different versions may have the same time. */
    while (version.count < captures && add_time(history, chance, first && version.count == 0, version.count > 0))
        version.count++;
    if (version.count == 0)
        return;
    version.arrived = 1 + any_number(chance, UINT32_MAX);
    version.replaced = ghost && chance_one_in(chance, 3);
    bool together = chance_one_in(chance, 2);
    for (size_t i = 0; i < version.count; i++) {
        uint64_t *last = history->epochs.count ? &history->epochs.items[history->epochs.count - 1] : NULL;
        uint64_t epoch = last && chance_one_in(chance, 2) ? *last : 1 + any_number(chance, UINT32_MAX);
        must_ok(wb_vec_push(&history->epochs, together ? version.arrived : epoch));
    }
    if (!latest) {
        version.ceased = version.arrived + any_number(chance, UINT32_MAX);
        version.content = chance_next(chance);
        version.status = (uint16_t)any_number(chance, UINT16_MAX);
        version.body_bytes = any_number(chance, UINT32_MAX);
        version.stored_bytes = (uint32_t)any_number(chance, UINT32_MAX);
        version.place =
            (struct wb_catalog_place){1 + (uint32_t)any_number(chance, UINT32_MAX - 1),
                                      (uint16_t)any_number(chance, UINT16_MAX), 1 + any_number(chance, UINT64_MAX - 1)};
        if (history->versions.count && chance_one_in(chance, 2)) { /* in the block of the one before */
            version.place.segment = history->versions.items[history->versions.count - 1].place.segment;
            version.place.logical = history->versions.items[history->versions.count - 1].place.logical;
        }
    }
    history->ghosts += ghost;
    must_ok(wb_vec_push(&history->versions, version));
}

static void random_history(struct wb_history *history, uint64_t *chance)
{
    uint64_t ghosts = chance_one_in(chance, 2) ? 0 : chance_below(chance, 4),
             others = chance_below(chance, chance_one_in(chance, 10) ? 200 : 5);
    bool latest = chance_one_in(chance, 2) || ghosts + others == 0;

    wb_history_clear(history);
    if (chance_one_in(chance, 2))
        history->floor_ms = (int64_t)any_number(chance, UINT64_MAX);
    for (uint64_t i = history->floor_ms == INT64_MIN ? 0 : chance_below(chance, 4); i > 0; i--)
        must_ok(wb_vec_push(&history->forgotten, chance_next(chance)));
    if (!latest && chance_one_in(chance, 2))
        history->gone_ms = 1 + (int64_t)any_number(chance, INT64_MAX - 1);
    for (uint64_t i = 0; i < ghosts; i++)
        add_version(history, chance, true, false);
    for (uint64_t i = 0; i < others; i++)
        add_version(history, chance, false, false);
    if (latest)
        add_version(history, chance, false, true);
}

static void check_same(const struct wb_history *a, const struct wb_history *b)
{
    must(a->floor_ms == b->floor_ms && a->gone_ms == b->gone_ms && a->ghosts == b->ghosts);
    must(a->versions.count == b->versions.count && a->times.count == b->times.count);
    must(memcmp(a->times.items, b->times.items, a->times.count * sizeof *a->times.items) == 0);
    must(a->epochs.count == b->epochs.count && a->forgotten.count == b->forgotten.count);
    must(memcmp(a->epochs.items, b->epochs.items, a->epochs.count * sizeof *a->epochs.items) == 0);
    for (size_t i = 0; i < a->forgotten.count; i++)
        must(a->forgotten.items[i] == b->forgotten.items[i]);
    for (size_t i = 0; i < a->versions.count; i++) {
        const struct wb_history_version *v = &a->versions.items[i], *w = &b->versions.items[i];
        must(v->arrived == w->arrived && v->ceased == w->ceased && v->ghost == w->ghost && v->replaced == w->replaced);
        must(v->first == w->first && v->count == w->count);
        must(v->content == w->content && wb_catalog_place_equal(&v->place, &w->place));
        must(v->body_bytes == w->body_bytes && v->stored_bytes == w->stored_bytes && v->status == w->status);
    }
}

static void test_random(void **state)
{
    uint64_t chance = test_seed(), site = 0;
    struct wb_history history = {0}, read = {0};
    struct wb_buf bytes = WB_BUF_INIT;

    (void)state;
    for (unsigned round = test_rounds(3000); round > 0; round--) {
        random_history(&history, &chance);
        uint64_t expected = chance_next(&chance);
        must_ok(wb_history_encode(&history, expected, &bytes));
        must(wb_history_decode(wb_buf_slice(&bytes), &read, &site) == 0);
        must(site == expected);
        check_same(&history, &read);
        /* No beginning of it is a history, nor is more than it. */
        for (size_t i = 0; i < 20; i++)
            must(wb_history_decode(wb_slice(bytes.ptr, chance_below(&chance, bytes.len)), &read, &site) ==
                 WB_E_CORRUPT);
        must_ok(wb_buf_append_char(&bytes, '\0'));
        must(wb_history_decode(wb_buf_slice(&bytes), &read, &site) == WB_E_CORRUPT);
    }
    wb_history_release(&history);
    wb_history_release(&read);
    wb_buf_release(&bytes);
}

/* The place and the lengths of the latest version are not in the bytes, whatever they are. */
static void test_latest(void **state)
{
    struct wb_history_version version = {
        .arrived = 5, .place = {1, 2, 64}, .content = 9, .body_bytes = 7, .status = 200};
    struct wb_history history = {0}, read = {0};
    struct wb_buf bytes = WB_BUF_INIT;
    uint64_t site;

    (void)state;
    wb_history_clear(&history);
    must_ok(wb_history_push(&history, &version, 1000, 6));
    must_ok(wb_history_encode(&history, 1, &bytes));
    must(wb_history_decode(wb_buf_slice(&bytes), &read, &site) == 0);
    const struct wb_history_version *latest = wb_history_latest(&read);
    assert_non_null(latest);
    assert_true(latest->place.segment == 0 && latest->content == 0 && latest->body_bytes == 0 && latest->status == 0);
    assert_true(latest->arrived == 5 && wb_history_last_ms(&read, latest) == 1000 && read.epochs.items[0] == 6);
    wb_history_release(&history);
    wb_history_release(&read);
    wb_buf_release(&bytes);
}

/* Bytes of another format are not called damaged. */
static void test_format(void **state)
{
    static const char bytes[] = "\2SITEHASH and whatever that format has";
    struct wb_history history = {0};
    uint64_t site;

    (void)state;
    assert_int_equal(wb_history_decode(wb_slice(bytes, sizeof bytes), &history, &site), WB_E_NEWER);
    assert_string_equal(wb_error_message(), "the history of a page has format 2; this program reads format 1");
    wb_history_release(&history);
}

/* ---- contradictions ----------------------------------------------------------------------------------- */

#define HEAD "\1SITEHASH" /* format and site */
#define OLD(flags_and_count, times, arrived, ended)                                                                    \
    flags_and_count times arrived "CONTENTS" ended "\1\1\1" /* status, lengths */ "\0\1\1" /* slot, segment, block */

static bool is_history(const char *bytes, size_t len)
{
    struct wb_history history = {0};
    uint64_t site;
    bool ok = wb_history_decode(wb_slice(bytes, len), &history, &site) == 0;

    wb_history_release(&history);
    return ok;
}
#define IS_HISTORY(literal) is_history(literal, sizeof literal - 1)

static void test_contradictions(void **state)
{
    (void)state;
    /* One capture; zigzag makes 2 of time 1. Flags: 32 is one capture, 1 latest, 2 ghost, 4 same block, 8 replaced, 16
       epochs follow. */
    assert_true(IS_HISTORY(HEAD "\0\1\41\2\5"));
    assert_true(IS_HISTORY(HEAD "\0\1" OLD("\40", "\2", "\5", "\1")));
    assert_true(IS_HISTORY(HEAD "\0\2" OLD("\40", "\2", "\5", "\1") "\41\2\5"));
    assert_true(IS_HISTORY(HEAD "\0\2" OLD("\40", "\2", "\5", "\1") "\41\0\5")); /* of the same time */
    assert_true(IS_HISTORY(HEAD "\0\2" OLD("\42", "\4", "\5", "\1") "\41\1\5")); /* a ghost may be newer */
    assert_true(IS_HISTORY(HEAD "\0\2" OLD("\52", "\4", "\5", "\1") "\41\1\5")); /* and may be replaced */
    assert_true(IS_HISTORY(HEAD "\2\2\1" OLD("\40", "\2", "\5", "\1")));
    assert_true(IS_HISTORY(HEAD "\0\1" OLD("\40", "\2", "\5", "\0"))); /* never the latest */
    assert_true(IS_HISTORY(HEAD "\0\1\161\2\2\2\5\2\2\1\4"));          /* three, of epochs 6, 6, 7 */
    assert_true(IS_HISTORY(HEAD "\5\2\1CONTENTS\1\41\2\5"));           /* a floor, one content of it */

    assert_false(is_history("", 0));
    assert_false(IS_HISTORY(HEAD));
    assert_false(IS_HISTORY("\2SITEHASH\0\1\41\2\5"));                            /* another format */
    assert_false(IS_HISTORY(HEAD "\10\1\41\2\5"));                                /* an unknown flag */
    assert_false(IS_HISTORY(HEAD "\0\0"));                                        /* no version */
    assert_false(IS_HISTORY(HEAD "\0\2\41\2\5"));                                 /* one is missing */
    assert_false(IS_HISTORY(HEAD "\0\1\41\2\5\0"));                               /* more than it says */
    assert_false(IS_HISTORY(HEAD "\0\1\1\5"));                                    /* no captures */
    assert_false(IS_HISTORY(HEAD "\0\1\101\2\0\5"));                              /* two at the same time */
    assert_false(IS_HISTORY(HEAD "\0\1\101\2\1\5"));                              /* the second is older */
    assert_false(IS_HISTORY(HEAD "\0\2" OLD("\40", "\2", "\5", "\1") "\41\1\5")); /* so is a version */
    assert_false(IS_HISTORY(HEAD "\0\1\41\2\0"));                                 /* arrived in no epoch */
    assert_false(IS_HISTORY(HEAD "\0\2\41\2\5\41\2\5"));                          /* two latest versions */
    assert_false(IS_HISTORY(HEAD "\0\2\41\2\5" OLD("\40", "\2", "\5", "\1")));    /* the latest is not last */
    assert_false(IS_HISTORY(HEAD "\0\1\43\2\5"));                                 /* a ghost is the latest */
    assert_false(IS_HISTORY(HEAD "\0\1" OLD("\50", "\2", "\5", "\1")));           /* replaced, but no ghost */
    assert_false(IS_HISTORY(HEAD "\0\2" OLD("\40", "\2", "\5", "\1") OLD("\42", "\2", "\5", "\1"))); /* ghost last */
    assert_false(IS_HISTORY(HEAD "\2\2\1\41\2\5"));                 /* gone, with a latest one */
    assert_false(IS_HISTORY(HEAD "\0\1\44\2\5CONTENTS\1\1\1\1\0")); /* in the block of none before it */
    assert_false(IS_HISTORY(HEAD "\0\1\161\2\2\2\5\2\2"));          /* the epoch of a capture is missing */
    assert_false(IS_HISTORY(HEAD "\0\1\161\2\2\2\5\2\2\2\4"));      /* one too many */
    assert_false(IS_HISTORY(HEAD "\0\1\161\2\2\2\5\0\2\3\4"));      /* of none */
    assert_false(IS_HISTORY(HEAD "\0\1\61\2\5\1\11"));              /* epoch 0 */
    assert_false(IS_HISTORY(HEAD "\4\1CONTENTS\1\41\2\5"));         /* contents of no floor */
    assert_false(IS_HISTORY(HEAD "\5\2\2CONTENTS\1\41\2\5"));       /* fewer than it says */
    assert_false(IS_HISTORY(HEAD "\5\2\0\1\41\2\5"));               /* none */
    /* Ceased before it arrived: the epochs overflow. */
    assert_false(IS_HISTORY(HEAD "\0\1" OLD("\40", "\2", "\5", "\377\377\377\377\377\377\377\377\377\1")));
    /* The hash of a content is never 0. */
    assert_false(IS_HISTORY(HEAD "\0\1\40\2\5\0\0\0\0\0\0\0\0\1\1\1\1\0\1\1"));
    assert_true(IS_HISTORY(HEAD "\0\1\40\2\5\0\0\0\0\0\0\0\1\1\1\1\1\0\1\1"));
    /* A body of 4 GB. */
    assert_false(IS_HISTORY(HEAD "\0\1\40\2\5CONTENTS\1\1\200\200\200\200\20\1\0\1\1"));
    assert_true(IS_HISTORY(HEAD "\0\1\40\2\5CONTENTS\1\1\377\377\377\377\17\1\0\1\1"));
    /* More captures than there are bytes. */
    assert_false(IS_HISTORY(HEAD "\0\1\341\377\377\377\377\377\377\377\377\1\2\5"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_latest),
        cmocka_unit_test(test_format),
        cmocka_unit_test(test_contradictions),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
