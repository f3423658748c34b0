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
        if (strstr(designs[i].design, ",hash)") || strstr(designs[i].design, ",hash]"))
            continue;
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_designs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
