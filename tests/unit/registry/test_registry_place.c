/*
 * test_registry_place.c - who should hold what: the same steps by everybody, and carried out one after the other they
 * lead to an even cluster, and end.
 */
#include "../must.h"
#include "../rounds.h"
#include "../seeded.h"
#include "registry/registry.h"

#include <string.h>

static struct wb_registry_view make_view(unsigned machines, unsigned shards)
{
    struct wb_registry_view view = WB_REGISTRY_VIEW_INIT;

    view.cluster.shards = shards;
    view.cluster.copies = 1;
    for (unsigned i = 0; i < machines; i++) {
        struct wb_registry_machine m = {.weight = 1, .steady = true, .lease_ms = 1000};
        snprintf(m.name, sizeof m.name, "m%02u", i);
        must_ok(wb_vec_push(&view.machines, m));
    }
    for (unsigned i = 0; i < shards; i++)
        must_ok(wb_vec_push(&view.shards, (struct wb_registry_shard){.shard = i}));
    return view;
}

/* Carries out the steps, until there are none. Returns how many there were. */
static unsigned settle(struct wb_registry_view *view)
{
    struct wb_registry_steps steps = WB_VEC_INIT;
    unsigned count = 0;

    do {
        must_ok(wb_registry_place(view, &steps));
        for (size_t i = 0; i < steps.count; i++) {
            struct wb_registry_shard *s = &view->shards.items[steps.items[i].shard];
            const struct wb_registry_machine *from = wb_registry_view_machine(view, s->holder);
            assert_string_equal(steps.items[i].from, from && from->lease_ms ? s->holder : "");
            snprintf(s->holder, sizeof s->holder, "%s", steps.items[i].to);
            s->wanted[0] = '\0';
        }
        count += (unsigned)steps.count;
        must(count < 10000);
    } while (steps.count);
    wb_vec_release(&steps);
    return count;
}

static unsigned held(const struct wb_registry_view *view, const char *name)
{
    unsigned count = 0;

    for (size_t i = 0; i < view->shards.count; i++)
        count += strcmp(view->shards.items[i].holder, name) == 0;
    return count;
}

/* Empty shards are even by number and weight. */
static void test_empty(void **state)
{
    struct wb_registry_view view = make_view(3, 64);

    (void)state;
    view.machines.items[2].weight = 2;
    assert_int_equal(settle(&view), 64);
    assert_int_equal(held(&view, "m00"), 16);
    assert_int_equal(held(&view, "m01"), 16);
    assert_int_equal(held(&view, "m02"), 32);
    wb_registry_view_release(&view);
}

/* A new machine gets its share one shard at a time, of the others' no more than needed. */
static void test_newcomer(void **state)
{
    struct wb_registry_view view = make_view(3, 63);
    struct wb_registry_steps steps = WB_VEC_INIT;

    (void)state;
    view.machines.items[2].steady = false;
    assert_int_equal(settle(&view), 63);
    assert_int_equal(held(&view, "m02"), 0);
    view.machines.items[2].steady = true;
    must_ok(wb_registry_place(&view, &steps));
    assert_int_equal(steps.count, 1);
    assert_string_equal(steps.items[0].to, "m02");
    assert_in_range(settle(&view), 19, 21);
    assert_in_range(held(&view, "m02"), 19, 21);
    wb_vec_release(&steps);
    wb_registry_view_release(&view);
}

static void test_drain(void **state)
{
    struct wb_registry_view view = make_view(3, 32);

    (void)state;
    settle(&view);
    view.machines.items[0].draining = true;
    settle(&view);
    assert_int_equal(held(&view, "m00"), 0);
    assert_int_equal(held(&view, "m01"), 16);
    /* What somebody asked for goes before. */
    struct wb_registry_shard *s = &view.shards.items[5];
    const char *other = strcmp(s->holder, "m01") == 0 ? "m02" : "m01";
    struct wb_registry_steps steps = WB_VEC_INIT;
    snprintf(s->wanted, sizeof s->wanted, "%s", other);
    must_ok(wb_registry_place(&view, &steps));
    assert_int_equal(steps.count, 1);
    assert_int_equal(steps.items[0].shard, 5);
    assert_string_equal(steps.items[0].to, other);
    wb_vec_release(&steps);
    wb_registry_view_release(&view);
}

/* Any sizes, weights and deaths: it settles, nobody who may not have shards has one, and loads are as even as shards
 * allow. */
static void test_random(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (unsigned round = 0; round < test_rounds(200); round++) {
        unsigned machines = 1 + (unsigned)chance_below(&chance, 9), shards = 1u << chance_below(&chance, 8);
        struct wb_registry_view view = make_view(machines, shards);
        double largest = 0, least = 1e30, most = 0;
        for (unsigned i = 0; i < shards; i++) {
            view.shards.items[i].bytes = chance_one_in(&chance, 3) ? 0 : chance_below(&chance, 1000000);
            largest = view.shards.items[i].bytes > largest ? (double)view.shards.items[i].bytes : largest;
        }
        settle(&view);
        for (unsigned i = 1; i < machines; i++) {
            struct wb_registry_machine *m = &view.machines.items[i];
            m->weight = 1 + (unsigned)chance_below(&chance, 3);
            m->search_only = chance_one_in(&chance, 8);
            m->draining = chance_one_in(&chance, 8);
            if (chance_one_in(&chance, 6))
                m->lease_ms = m->steady = 0;
        }
        settle(&view);
        for (unsigned i = 0; i < machines; i++) {
            const struct wb_registry_machine *m = &view.machines.items[i];
            if (!m->steady || m->search_only || m->draining) {
                assert_int_equal(held(&view, m->name), 0);
                continue;
            }
            double load = 0;
            for (unsigned k = 0; k < shards; k++)
                if (strcmp(view.shards.items[k].holder, m->name) == 0)
                    load += (double)view.shards.items[k].bytes + 1;
            load /= m->weight;
            least = load < least ? load : least;
            most = load > most ? load : most;
        }
        for (unsigned k = 0; k < shards; k++)
            assert_true(view.shards.items[k].holder[0]);
        assert_true(most - least <= largest + 1 + most * 0.06);
        wb_registry_view_release(&view);
    }
}

/* Copies are on machines that are up, never with the holder, and stay where they are when another machine comes. */
static void test_copies(void **state)
{
    struct wb_registry_view view = make_view(5, 64);
    const char *names[WB_REGISTRY_COPIES_MAX];
    char before[64][2][WB_REGISTRY_NAME_MAX];
    unsigned moved = 0;

    (void)state;
    view.cluster.copies = 3;
    view.machines.items[4].steady = false;
    view.machines.items[4].lease_ms = 0;
    settle(&view);
    for (unsigned i = 0; i < 64; i++) {
        assert_int_equal(wb_registry_place_copies(&view, i, names), 2);
        assert_string_not_equal(names[0], names[1]);
        for (int k = 0; k < 2; k++) {
            assert_string_not_equal(names[k], view.shards.items[i].holder);
            assert_string_not_equal(names[k], "m04");
            snprintf(before[i][k], sizeof before[i][k], "%s", names[k]);
        }
    }
    view.machines.items[4].lease_ms = 1000;
    for (unsigned i = 0; i < 64; i++) {
        assert_int_equal(wb_registry_place_copies(&view, i, names), 2);
        for (int k = 0; k < 2; k++) {
            bool is_new = strcmp(names[k], before[i][0]) != 0 && strcmp(names[k], before[i][1]) != 0;
            assert_true(!is_new || strcmp(names[k], "m04") == 0);
            moved += is_new;
        }
    }
    assert_in_range(moved, 10, 60);
    view.cluster.copies = 16;
    assert_int_equal(wb_registry_place_copies(&view, 0, names), 4);
    view.cluster.copies = 1;
    assert_int_equal(wb_registry_place_copies(&view, 0, names), 0);
    wb_registry_view_release(&view);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_empty),  cmocka_unit_test(test_newcomer), cmocka_unit_test(test_drain),
        cmocka_unit_test(test_random), cmocka_unit_test(test_copies),
    };

    return cmocka_run_group_tests_name("registry place", tests, NULL, NULL);
}
