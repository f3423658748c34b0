/*
 * test_transfer_twins.c - puts, removals, takedowns and transfers at random, while nodes of a batch design go and come.
 * A twin of the repository, whose nodes are always there, does the same. When all nodes are back, both must have the
 * same pages, with the same past.
 */
#include "transfer_support.h"
#include "move/move.h"

/* ---- anything, compared with a twin -------------------------------------------------------------------------------
 */

struct pair {
    char dirs[2][DIR_MAX]; /* nodes of the first one go and come */
    struct wb_store *stores[2];
    uint32_t away; /* a node; 0: none */
    int64_t now_ms;
};

static void open_pair(struct pair *pair)
{
    for (size_t i = 0; i < 2; i++)
        pair->stores[i] = open_store(pair->dirs[i], WB_STORE_WRITE);
}

static void close_pair(struct pair *pair)
{
    for (size_t i = 0; i < 2; i++) {
        commit_store(pair->stores[i]);
        wb_store_close(pair->stores[i]);
    }
}

/* Something happens to a page: to the first repository, and, unless a node is down that it needs, to its twin. */
static void do_something(struct pair *pair, uint64_t *chance)
{
    struct spec spec = page_spec((uint32_t)chance_below(chance, PAGES / 2), pair->now_ms += 10);
    unsigned kind = (unsigned)chance_below(chance, 10);
    int before = 0;

    spec.content = 1 + (uint32_t)chance_below(chance, 3); /* contents return */
    for (size_t i = 0; i < 2; i++) {
        struct wb_store *store = pair->stores[i];
        int err = kind < 6   ? put_spec(store, &spec)
                  : kind < 8 ? wb_store_touch(store, spec_id(&spec), spec.time_ms)
                             : remove_spec(store, &spec, kind == 9);
        if (i == 0 && err == WB_E_DOWN)
            return;
        must(err == 0 || err == WB_E_NOTFOUND);
        must(i == 0 || err == before || kind == 9); /* one may know it only as gone, the other not at all */
        before = err;
    }
}

static void transfer_pair(struct pair *pair)
{
    struct wb_move_transfer_counts counts;
    int err = wb_move_transfer(pair->stores[0], NULL, NULL, NULL, NULL, &counts);

    if (!counts.finished || (err < 0 && (err != WB_E_DOWN || !pair->away)))
        fail_msg("the transfer returned %d: %s", err, wb_error_message());
    must_ok(wb_move_transfer(pair->stores[1], NULL, NULL, NULL, NULL, &counts));
}

static bool same_timelines(const struct wb_store_timeline *a, const struct wb_store_timeline *b)
{
    bool same = a->count == b->count && a->time_count == b->time_count && a->gone_ms == b->gone_ms;

    for (size_t i = 0; same && i < a->time_count; i++)
        same = a->times[i] == b->times[i];
    for (size_t i = 0; same && i < a->count; i++)
        same = a->versions[i].captures == b->versions[i].captures && a->versions[i].same == b->versions[i].same;
    return same;
}

static void compare_pair(struct pair *pair, const char *design)
{
    struct wb_store *readers[2] = {open_store(pair->dirs[0], WB_STORE_READ), open_store(pair->dirs[1], WB_STORE_READ)};
    struct sights found = {0}, expected = {0};

    for (uint32_t i = 0; i < PAGES / 2; i++) {
        struct wb_store_timeline x, y;
        int got = wb_store_timeline(readers[0], page_id(i), &x), wanted = wb_store_timeline(readers[1], page_id(i), &y);
        if (got != wanted || (got == 0 && !same_timelines(&x, &y)))
            fail_msg("%s: page %u has another past", design, i);
        wb_store_timeline_release(&x);
        wb_store_timeline_release(&y);
    }
    scan_all(readers[0], &(struct wb_store_scan_options){0}, WITHOUT_EPOCH | WITHOUT_LIFETIME, &found);
    scan_all(readers[1], &(struct wb_store_scan_options){0}, WITHOUT_EPOCH | WITHOUT_LIFETIME, &expected);
    compare_sights(design, &found, &expected);
    sights_release(&found);
    sights_release(&expected);
    wb_store_close(readers[0]);
    wb_store_close(readers[1]);
    verify_clean(pair->dirs[0]);
}

static void run_pair(const char *design, enum wb_store_keep keep, uint64_t *chance)
{
    static const uint32_t nodes[] = {1, 2, WB_BATCHED_FIRST_NODE, UPDATE_NODE};
    struct pair pair = {.now_ms = 1000};

    for (size_t i = 0; i < 2; i++) {
        test_dir(pair.dirs[i]);
        create_rig(pair.dirs[i], design, keep, 2);
    }
    for (unsigned round = 0; round < 12; round++) {
        open_pair(&pair);
        for (unsigned i = 0; i < 60; i++) {
            do_something(&pair, chance);
            for (size_t k = 0; k < 2 && i % 7 == 6; k++)
                commit_store(pair.stores[k]);
        }
        if (pair.away) {
            bring_back(pair.dirs[0], pair.away);
            pair.away = 0;
        }
        for (size_t k = 0; k < 2; k++) /* a writer that has pages for it keeps its files open */
            commit_store(pair.stores[k]);
        if (round < 11 && !chance_one_in(chance, 4)) {
            pair.away = nodes[chance_below(chance, COUNT(nodes))];
            take_away(pair.dirs[0], pair.away);
        }
        transfer_pair(&pair);
        close_pair(&pair);
        if (!pair.away)
            compare_pair(&pair, design);
    }
}

static void test_twins(void **state)
{
    static const enum wb_store_keep keeps[] = {WB_STORE_KEEP_NEWEST, WB_STORE_KEEP_ALL, WB_STORE_KEEP_COUNT};
    uint64_t chance = test_seed();

    (void)state;
    for (unsigned round = 0; round < test_rounds(10); round++)
        for (size_t i = 0; i < COUNT(designs); i++)
            run_pair(designs[i], keeps[chance_below(&chance, COUNT(keeps))], &chance);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_twins)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
