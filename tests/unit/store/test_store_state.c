/*
 * test_store_state.c - states of repositories that are held and carried elsewhere, while others write, compact and take
 * down. The copy has exactly the state, verifies clean, and goes on like the original.
 */
#include "state_support.h"

/* ---- every design ----------------------------------------------------------------------------------------------- */

static void test_all_designs(void **state)
{
    uint64_t chance = test_seed();
    char from[DIR_MAX], targets[DIR_MAX], to[DIR_MAX], was[DIR_MAX];
    struct wb_move_compact_counts compacted;
    struct wb_store_state *held;

    (void)state;
    use_small_sizes(60000);
    for (size_t i = 0; i < DESIGNS; i++) {
        bool batch = options_of(i).design.batch;
        fprintf(stderr, "# %s\n", designs[i].design);
        test_dir(from);
        test_dir(targets);
        path_in(targets, "to", to);
        path_in(targets, "was", was);
        make_source(from, i, &chance);
        copy_repository(from, was);
        must_ok(wb_store_state_hold(from, NULL, &held));
        struct wb_store *store = open_store(from, WB_STORE_WRITE);
        fill(store, &chance, batch, 2000000);
        must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &compacted));
        carry(held, to);
        wb_store_close(store);
        wb_store_state_let_go(held);
        verify_clean(to);
        compare_dirs(to, was);
        go_on(to, batch, was, batch, chance);
        verify_clean(to);
        verify_clean(from);
    }
    use_usual_sizes();
}

/* State after state is added to a shelf, by the rows and bytes that have changed; a repository is made of each. */
static void test_one_after_the_other(void **state)
{
    enum { STATES = 6 };
    uint64_t chance = test_seed();
    char from[DIR_MAX], targets[DIR_MAX], to[DIR_MAX], was[DIR_MAX];
    struct wb_move_compact_counts compacted;
    struct shelf shelf;

    (void)state;
    use_small_sizes(60000);
    for (size_t i = 0; i < DESIGNS; i++) {
        bool batch = options_of(i).design.batch;
        fprintf(stderr, "# %s\n", designs[i].design);
        test_dir(from);
        test_dir(targets);
        path_in(targets, "to", to);
        path_in(targets, "was", was);
        make_source(from, i, &chance);
        shelf_init(&shelf);
        for (unsigned s = 0; s < STATES; s++) {
            struct wb_store *store = open_store(from, WB_STORE_WRITE);
            if (s)
                fill(store, &chance, batch && s % 2, 2000000 + s * 100000);
            if (chance_one_in(&chance, 3))
                must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &compacted));
            if (chance_one_in(&chance, 2)) {
                wb_store_close(store);
                store = NULL;
            }
            copy_repository(from, was);
            struct wb_store_state *held = shelf_hold(&shelf, from);
            if (store)
                fill(store, &chance, false, 2000000 + s * 100000 + 50000);
            shelf_add(&shelf, held, from, !chance_one_in(&chance, 5));
            shelf_load(&shelf, held, to);
            wb_store_state_let_go(held);
            wb_store_close(store);
            verify_clean(to);
            compare_dirs(to, was);
            verify_clean(from);
            remove_tree(to);
            remove_tree(was);
        }
        shelf_release(&shelf);
        remove_tree(from);
    }
    use_usual_sizes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_designs),
        cmocka_unit_test(test_one_after_the_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
