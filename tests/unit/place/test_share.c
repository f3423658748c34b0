/*
 * test_share.c - shares of nodes: all have the same number of cells, and nearly the same number of pages, however the
 * repository came to have so many nodes; and no more changes hands than must.
 */
#include "../must.h"
#include "../seeded.h"
#include "place/design.h"
#include "place/share.h"

enum { PAGES = 10000, NODES = 16 };

bool in_child;

/* The ids of some pages, the same in each run. */
static uint32_t cells_of_pages[PAGES];

static int make_pages(void **state)
{
    char key[64];

    (void)state;
    for (unsigned i = 0; i < PAGES; i++) {
        int len = snprintf(key, sizeof key, "site%u.example/page/%u", i % 40, i);
        cells_of_pages[i] = wb_cell_of(wb_pageid_of_key(wb_slice(key, (size_t)len)).hi);
    }
    return 0;
}

static struct wb_catalog_node rows[WB_DESIGN_NODES_MAX];
static size_t count;

static void create(size_t nodes)
{
    memset(rows, 0, sizeof rows);
    for (count = 0; count < nodes; count++) {
        rows[count].number = (uint32_t)count + 1;
        rows[count].cells = wb_share_of_new(count, nodes);
    }
}

/* All nodes have the same number of cells, give or take one, and each cell has one node. */
static void expect_cells(void)
{
    uint32_t least = WB_CELLS, most = 0;

    for (size_t n = 0; n < count; n++) {
        uint32_t cells = wb_cells_count(&rows[n].cells);
        least = cells < least ? cells : least;
        most = cells > most ? cells : most;
    }
    must(most - least <= 1);
    for (uint32_t cell = 0; cell < WB_CELLS; cell++) {
        unsigned takers = 0;
        for (size_t n = 0; n < count; n++)
            takers += wb_cells_has(&rows[n].cells, cell);
        must(takers == 1);
    }
}

/* How many of so many cells have changed hands although neither of the two nodes is this one. */
static unsigned count_strangers(const struct wb_catalog_node *before, size_t before_count, uint32_t number)
{
    unsigned strangers = 0;

    for (uint32_t cell = 0; cell < WB_CELLS; cell++) {
        uint32_t from = 0, to = 0;
        for (size_t n = 0; n < before_count; n++)
            from = wb_cells_has(&before[n].cells, cell) ? before[n].number : from;
        for (size_t n = 0; n < count; n++)
            to = wb_cells_has(&rows[n].cells, cell) ? rows[n].number : to;
        strangers += from != to && from != number && to != number;
    }
    return strangers;
}

static void add(uint32_t number)
{
    static struct wb_catalog_node before[WB_DESIGN_NODES_MAX];

    memcpy(before, rows, sizeof rows);
    must(count < WB_DESIGN_NODES_MAX);
    rows[count] = (struct wb_catalog_node){.number = number};
    must_ok(wb_share_take(rows, count, &rows[count]));
    count++;
    must(wb_cells_count(&rows[count - 1].cells) == WB_CELLS / count);
    must(count_strangers(before, count - 1, number) == 0);
}

static void remove_at(size_t gone)
{
    static struct wb_catalog_node before[WB_DESIGN_NODES_MAX];
    uint32_t number = rows[gone].number;

    memcpy(before, rows, sizeof rows);
    rows[gone].leaving = true;
    must_ok(wb_share_give(rows, count, &rows[gone]));
    must(wb_cells_count(&rows[gone].cells) == 0);
    rows[gone] = rows[--count];
    must(count_strangers(before, count + 1, number) == 0);
}

/* The pages of the largest node, in parts of the mean. */
static double largest(void)
{
    unsigned most = 0;

    for (size_t n = 0; n < count; n++) {
        unsigned pages = 0;
        for (unsigned i = 0; i < PAGES; i++)
            pages += wb_cells_has(&rows[n].cells, cells_of_pages[i]);
        most = pages > most ? pages : most;
    }
    return most * (double)count / PAGES;
}

static void expect_even(const char *how)
{
    double ratio = largest();

    expect_cells();
    printf("# %s %zu nodes: the largest has %.3f of the mean\n", how, count, ratio);
    must(ratio <= 1.1);
}

static void test_created(void **state)
{
    (void)state;
    for (size_t nodes = 2; nodes <= NODES; nodes++) {
        create(nodes);
        expect_even("created with");
    }
}

static void test_grown_and_shrunk(void **state)
{
    (void)state;
    create(1);
    while (count < NODES) {
        add((uint32_t)count + 1);
        expect_even("grown to");
    }
    for (unsigned i = 0; count > 2; i++) { /* an early one, a late one, one in the middle */
        remove_at(i % 3 == 0 ? 0 : i % 3 == 1 ? count - 1 : count / 2);
        expect_even("shrunk to");
    }
}

/* A node that comes takes few runs of neighbouring cells: each run can be a file of its own. */
static void test_runs(void **state)
{
    unsigned runs = 0;

    (void)state;
    create(1);
    while (count < NODES)
        add((uint32_t)count + 1);
    for (size_t n = 0; n < count; n++)
        for (uint32_t cell = 0; cell < WB_CELLS; cell++)
            runs += wb_cells_has(&rows[n].cells, cell) && (cell == 0 || !wb_cells_has(&rows[n].cells, cell - 1));
    printf("# %d nodes that came one by one have %u runs of cells\n", NODES, runs);
    must(runs <= NODES * NODES / 2);
}

/* Whatever comes and goes, in any order, and up to the most nodes that there can be. */
static void test_anything(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    create(1 + chance_below(&chance, WB_DESIGN_NODES_MAX));
    for (uint32_t i = 0; i < 500; i++) {
        bool grow = count < WB_DESIGN_NODES_MAX && (count < 2 || chance_one_in(&chance, 2));
        if (grow)
            add(WB_DESIGN_NODES_MAX + 1 + i);
        else
            remove_at(chance_below(&chance, count));
        expect_cells();
    }
}

/* A table without cells, or without another node, is an error and not a loop. */
static void test_errors(void **state)
{
    struct wb_catalog_node node = {.number = 2};

    (void)state;
    create(1);
    rows[0].cells = (struct wb_cells){.words = {0}};
    assert_int_equal(wb_share_take(rows, count, &node), WB_E_CORRUPT);
    create(1);
    rows[0].leaving = true;
    assert_int_equal(wb_share_give(rows, count, &rows[0]), WB_E_LIMIT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_created, make_pages),
        cmocka_unit_test_setup(test_grown_and_shrunk, make_pages),
        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_anything),
        cmocka_unit_test(test_errors),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
