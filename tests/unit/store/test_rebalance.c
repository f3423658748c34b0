/*
 * test_rebalance.c - nodes are added and removed: every page stays readable all the time, no position changes, and what
 * was interrupted can be repeated. Other processes read and write meanwhile.
 */
#include "lines_support.h"
#include "move/move.h"
#include "os/fault.h"
#include "move/rebalance.h"
#include "store/store_nodes.h"

#include <errno.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

static char dir[DIR_MAX], disks[DIR_MAX];
static unsigned disk_count;

/* ---- a repository with nodes -------------------------------------------------------------------------------- */

/* A directory for a node, which does not exist yet. */
static void disk_path(unsigned number, char path_out[DIR_MAX])
{
    char name[32];

    snprintf(name, sizeof name, "disk%u", number);
    path_in(disks, name, path_out);
}

static void create_with_nodes(uint64_t *chance, enum wb_distribution distribution)
{
    char paths[3][DIR_MAX];
    const char *dirs[3];
    struct wb_store_options options = {
        .history = {.keep = chance_one_in(chance, 2) ? WB_STORE_KEEP_ALL : WB_STORE_KEEP_NEWEST},
    };

    test_dir(dir);
    test_dir(disks);
    disk_count = 0;
    options.design.read.distribution = distribution;
    unsigned nodes = (unsigned)chance_below(chance, 4);
    for (unsigned i = 0; i < nodes; i++) {
        disk_path(disk_count++, paths[i]);
        dirs[i] = paths[i];
    }
    if (nodes)
        options.nodes = (struct wb_store_node_list){.count = nodes, .dirs = dirs};
    must_ok(wb_store_create(dir, &options));
    use_small_sizes(16000 + chance_below(chance, 100000));
}

struct node_list {
    uint32_t numbers[64];
    char dirs[64][DIR_MAX];
    uint64_t pages;
    size_t count;
};

static int see_node(void *context, const struct wb_store_node *node)
{
    struct node_list *list = context;

    must(node->state != WB_STORE_NODE_DOWN && list->count < COUNT(list->numbers));
    snprintf(list->dirs[list->count], DIR_MAX, "%s", node->dir);
    list->numbers[list->count++] = node->number;
    list->pages += node->pages;
    return 0;
}

/* Everything is where the table says, and the nodes together have all pages. */
static void must_be_settled(struct wb_store *store)
{
    struct wb_repo *repo = wb_repo_of(store);
    struct wb_bin bins[WB_BINS_MAX];
    struct node_list list = {0};
    struct wb_store_stat stat;
    struct wb_overview o;

    must_ok(wb_pagefile_overview(&repo->files, &o));
    for (size_t i = 0; i < o.rows.count; i++) {
        size_t count = wb_settle_plan(&repo->nodes, &o.rows.items[i], bins);
        must(count == 1 && bins[0].node == o.rows.items[i].node);
    }
    wb_catalog_rows_release(&o.rows);
    must_ok(wb_store_node_each(store, see_node, &list));
    must_ok(wb_store_stat(store, &stat));
    must(list.pages == stat.pages);
}

/* ---- adding and removing ------------------------------------------------------------------------------------- */

static unsigned fault_kind; /* what fails ... */
static uint64_t fault_nth;  /* ... and at the how many-th time; 0: nothing fails */

/* Adds a node, or removes one with its directory. */
static int change_nodes(struct wb_store *store, uint64_t *chance)
{
    char path[DIR_MAX];
    struct node_list list = {0};

    must_ok(wb_store_node_each(store, see_node, &list));
    if (fault_nth)
        wb_fault_arm(fault_kind, fault_nth,
                     fault_kind == WB_FAULT_ALLOC   ? ENOMEM
                     : fault_kind == WB_FAULT_WRITE ? ENOSPC
                                                    : EIO);
    if (list.count < 2 || (list.count < 7 && chance_one_in(chance, 2))) {
        disk_path(disk_count++, path);
        return wb_move_node_add(store, path, false, NULL, NULL, NULL);
    }
    size_t gone = chance_below(chance, list.count);
    int err = wb_move_node_remove(store, list.numbers[gone], NULL, NULL);
    if (err == 0 && list.dirs[gone][0] == '/')
        remove_tree(list.dirs[gone]);
    return err;
}

static void test_nothing_changes(void **state)
{
    (void)state;
    seed = test_seed();
    for (unsigned round = 0; round < test_rounds(10); round++) {
        uint64_t chance = seed + round;
        int64_t clock = 1000000;
        struct wb_store_scan_options options = {0};
        struct parcel_reader reader = {0};

        takedowns = false;
        create_with_nodes(&chance, round % 2 ? WB_DISTRIBUTION_UNIFORM : WB_DISTRIBUTION_HASH);
        struct wb_store *store = open_store(dir, WB_STORE_WRITE);
        change_some(store, &chance, &clock, 20);
        options.snapshot = seal_store(store);
        bool parcels = chance_one_in(&chance, 2);
        struct lines before = {0}, found = {0};
        all_lines(store, &options, parcels, &before);
        must_ok(wb_store_scan_open(store, &options, &reader.scan));
        for (unsigned i = 0; i < 6; i++) {
            must_ok(change_nodes(store, &chance));
            must_be_settled(store);
            verify_clean(dir);
            read_lines(&reader, parcels, chance_below(&chance, before.count / 4 + 1), &found);
            change_some(store, &chance, &clock, 1);
        }
        while (read_lines(&reader, parcels, 100, &found))
            ;
        parcel_close(&reader);
        must(found.count == before.count);
        for (size_t i = 0; i < found.count; i++)
            must(wb_pageid_equal(found.list[i].id, before.list[i].id) &&
                 memcmp(&found.list[i].position, &before.list[i].position, sizeof before.list[i].position) == 0);
        lines_release(&before);
        lines_release(&found);
        wb_store_close(store);
        verify_clean(dir);
    }
}

static void test_refusals(void **state)
{
    uint64_t chance = 3;
    char path[DIR_MAX];
    uint32_t number;

    (void)state;
    create_with_nodes(&chance, WB_DISTRIBUTION_HASH);
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    struct node_list list = {0};
    must_ok(wb_store_node_each(store, see_node, &list));
    while (list.count > 1)
        must_ok(wb_move_node_remove(store, list.numbers[--list.count], NULL, NULL));
    assert_int_equal(wb_move_node_remove(store, list.numbers[0], NULL, NULL), WB_E_INVALID);
    assert_non_null(strstr(wb_error_message(), "the last one"));
    assert_int_equal(wb_move_node_remove(store, 77, NULL, NULL), WB_E_NOTFOUND);
    assert_non_null(strstr(wb_error_message(), "77"));
    disk_path(disk_count++, path);
    assert_int_equal(wb_move_node_add(store, path, true, NULL, NULL, &number), WB_E_INVALID);
    must_ok(wb_move_node_add(store, path, false, NULL, NULL, &number));
    assert_int_equal(wb_move_node_add(store, path, false, NULL, NULL, &number), WB_E_INVALID);
    assert_non_null(strstr(wb_error_message(), "already"));
    assert_int_equal(wb_move_node_add(store, dir, false, NULL, NULL, &number), WB_E_INVALID);
    wb_store_close(store);
    verify_clean(dir);
}

/* ---- killing --------------------------------------------------------------------------------------------------- */

static int change_nodes_forever(void *context)
{
    uint64_t chance = *(uint64_t *)context;
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);

    disk_count = 100 + (unsigned)chance_below(&chance, 1000000);
    for (;;)
        if (change_nodes(store, &chance) < 0)
            return 1;
}

/* Completes what was interrupted, as the user would: the same command once more. */
static void repeat_commands(struct wb_store *store)
{
    struct wb_repo *repo = wb_repo_of(store);
    struct wb_catalog_summary summary;

    must_ok(wb_repo_summary(repo, &summary));
    for (size_t i = 0; i < repo->nodes.items.count; i++) {
        struct wb_catalog_node row = repo->nodes.items.items[i].row;
        if (!row.arriving && !row.leaving)
            continue;
        if (row.arriving)
            must_ok(wb_move_node_add(store, row.dir, false, NULL, NULL, NULL));
        else
            must_ok(wb_move_node_remove(store, row.number, NULL, NULL));
        must_ok(wb_repo_summary(repo, &summary));
        i = (size_t)-1;
    }
    must_be_settled(store);
}

static void test_killed(void **state)
{
    (void)state;
    seed = test_seed();
    for (unsigned round = 0; round < test_rounds(30); round++) {
        uint64_t chance = seed + round, start = chance_next(&chance);
        int64_t clock = 1000000;
        struct lines before = {0}, after = {0};

        create_with_nodes(&chance, round % 3 ? WB_DISTRIBUTION_HASH : WB_DISTRIBUTION_UNIFORM);
        struct wb_store *store = open_store(dir, WB_STORE_WRITE);
        change_some(store, &chance, &clock, 15);
        all_lines(store, &(struct wb_store_scan_options){0}, false, &before);
        wb_store_close(store);
        pid_t child = start_child(change_nodes_forever, &start);
        usleep((useconds_t)chance_below(&chance, 80000));
        kill(child, SIGKILL);
        must(end_child(child) == -SIGKILL);
        verify_clean(dir);
        store = open_store(dir, chance_one_in(&chance, 2) ? WB_STORE_WRITE : WB_STORE_READ);
        all_lines(store, &(struct wb_store_scan_options){0}, false, &after);
        must_be_same("after a kill", &after, &before);
        lines_release(&after);
        wb_store_close(store);
        store = open_store(dir, WB_STORE_WRITE);
        repeat_commands(store);
        all_lines(store, &(struct wb_store_scan_options){0}, false, &after);
        must_be_same("after the command was repeated", &after, &before);
        wb_store_close(store);
        verify_clean(dir);
        lines_release(&before);
        lines_release(&after);
    }
}

/* ---- damage --------------------------------------------------------------------------------------------------------
 */

/* Which pages can be read, by id: 0 if not, otherwise the hash of what was read. */
static void read_each(struct wb_store *store, const struct lines *pages, uint64_t *hashes_out)
{
    struct wb_buf memory = WB_BUF_INIT;
    struct wb_page page;

    for (size_t i = 0; i < pages->count; i++) {
        int err = wb_store_get(store, pages->list[i].id, &page, &memory);
        must_ok(err == WB_E_CORRUPT ? 0 : err);
        hashes_out[i] = err == 0 ? page_hash(&page, 0) : 0;
    }
    wb_buf_release(&memory);
}

/* Flips a byte in some segment. */
static void damage_one(struct wb_store *store, uint64_t *chance)
{
    struct wb_repo *repo = wb_repo_of(store);
    struct wb_overview o;
    const char *node;
    char name[WB_SEGMENT_NAME_MAX], path[DIR_MAX];

    must_ok(wb_pagefile_overview(&repo->files, &o));
    must(o.rows.count > 0);
    const struct wb_catalog_segment *row = &o.rows.items[chance_below(chance, o.rows.count)];
    must_ok(wb_nodes_dir(&repo->nodes, row->node, &node));
    wb_segment_name(row->number, row->revision, name);
    path_in(node, name, path);
    flip_byte(path, WB_SEGMENT_HEADER_BYTES + chance_below(chance, row->bytes - WB_SEGMENT_HEADER_BYTES), 0x10);
    wb_catalog_rows_release(&o.rows);
}

/* What can be read stays readable, and damage goes where its segment goes, so that it may still be repaired. */
static void test_damage(void **state)
{
    (void)state;
    seed = test_seed();
    for (unsigned round = 0; round < test_rounds(20); round++) {
        uint64_t chance = seed + round;
        int64_t clock = 1000000;
        struct lines pages = {0};

        create_with_nodes(&chance, round % 3 ? WB_DISTRIBUTION_HASH : WB_DISTRIBUTION_UNIFORM);
        struct wb_store *store = open_store(dir, WB_STORE_WRITE);
        change_some(store, &chance, &clock, 15);
        must_ok(change_nodes(store, &chance));
        all_lines(store, &(struct wb_store_scan_options){0}, false, &pages);
        damage_one(store, &chance);
        wb_store_close(store);
        store = open_store(dir, WB_STORE_WRITE);
        uint64_t *before = wb_alloc_zero(pages.count + 1, sizeof *before);
        uint64_t *after = wb_alloc_zero(pages.count + 1, sizeof *after);
        read_each(store, &pages, before);
        for (unsigned i = 0; i < 4; i++) {
            /* A segment that cannot be opened keeps its node from leaving; then the others may be the last ones. */
            int err = change_nodes(store, &chance);
            bool told = err == WB_E_CORRUPT && strstr(wb_error_message(), ", but 1 damaged file");
            must(err == 0 || told ||
                 ((err == WB_E_CORRUPT || err == WB_E_INVALID) && strstr(wb_error_message(), "cannot be removed")));
            read_each(store, &pages, after);
            for (size_t k = 0; k < pages.count; k++)
                must(before[k] == after[k]);
        }
        wb_free(before);
        wb_free(after);
        lines_release(&pages);
        wb_store_close(store);
    }
}

/* ---- faults ------------------------------------------------------------------------------------------------------ */

/* Makes a system call or an allocation fail while nodes come and go. Returns false if there were not so many. */
static bool strike(struct wb_store *store, uint64_t start, const struct lines *before)
{
    struct lines after = {0};
    uint64_t chance = start;

    int err = change_nodes(store, &chance);
    bool struck = wb_fault_struck();
    wb_fault_disarm();
    must(err == 0 || (struck && wb_error_message()[0]));
    all_lines(store, &(struct wb_store_scan_options){0}, false, &after);
    must_be_same("after a fault", &after, before);
    lines_release(&after);
    repeat_commands(store);
    verify_clean(dir);
    return struck;
}

static void test_faults(void **state)
{
    const unsigned kinds[] = {WB_FAULT_ALLOC, WB_FAULT_OPEN, WB_FAULT_READ,
                              WB_FAULT_WRITE, WB_FAULT_SYNC, WB_FAULT_RENAME};
    int64_t clock = 1000000;
    struct lines before = {0};

    (void)state;
    seed = test_seed();
    uint64_t chance = seed;
    create_with_nodes(&chance, WB_DISTRIBUTION_HASH);
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    change_some(store, &chance, &clock, 6);
    all_lines(store, &(struct wb_store_scan_options){0}, false, &before);
    for (size_t i = 0; i < COUNT(kinds); i++) {
        fault_kind = kinds[i];
        fault_nth = 1;
        while (strike(store, chance_next(&chance), &before))
            fault_nth += 1 + chance_below(&chance, fault_nth / test_rounds(8) + 2);
    }
    lines_release(&before);
    wb_store_close(store);
    verify_clean(dir);
}

/* ---- other processes ----------------------------------------------------------------------------------------------
 */

/* Puts pages, and reads each of them again after its commit. */
static int put_many(void *context)
{
    uint64_t chance = *(uint64_t *)context;
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);

    for (unsigned i = 0; i < 60; i++) {
        struct spec specs[20];
        for (unsigned k = 0; k < COUNT(specs); k++) {
            specs[k] = some_page(&chance, 5000000 + i * 1000 + k);
            specs[k].number = 1000 + i * 100 + k;
            must_ok(put_spec(store, &specs[k]));
        }
        commit_store(store);
        for (unsigned k = 0; k < COUNT(specs); k++)
            must(holds_spec(store, &specs[k]));
    }
    wb_store_close(store);
    return 0;
}

/* Reads everything, again and again. */
static int read_many(void *context)
{
    uint64_t chance = *(uint64_t *)context;
    struct wb_store *store = open_store(dir, WB_STORE_READ);
    size_t least = 0;

    for (unsigned i = 0; i < 15; i++) {
        struct lines lines = {0};
        all_lines(store, &(struct wb_store_scan_options){0}, chance_one_in(&chance, 2), &lines);
        must(lines.count >= least); /* nothing is removed meanwhile */
        least = lines.count;
        lines_release(&lines);
    }
    wb_store_close(store);
    return 0;
}

static void test_beside_others(void **state)
{
    (void)state;
    seed = test_seed();
    for (unsigned round = 0; round < test_rounds(6); round++) {
        uint64_t chance = seed + round, starts[3];
        int64_t clock = 1000000;
        pid_t children[3];

        create_with_nodes(&chance, round % 2 ? WB_DISTRIBUTION_HASH : WB_DISTRIBUTION_UNIFORM);
        struct wb_store *store = open_store(dir, WB_STORE_WRITE);
        change_some(store, &chance, &clock, 15);
        wb_store_close(store);
        for (unsigned i = 0; i < COUNT(children); i++) {
            starts[i] = chance_next(&chance);
            children[i] = start_child(i ? read_many : put_many, &starts[i]);
        }
        store = open_store(dir, WB_STORE_WRITE);
        for (unsigned i = 0; i < 8; i++)
            must_ok(change_nodes(store, &chance));
        wb_store_close(store);
        for (unsigned i = 0; i < COUNT(children); i++)
            must(end_child(children[i]) == 0);
        verify_clean(dir);
    }
}

static int reset(void **state)
{
    (void)state;
    takedowns = true;
    fault_nth = 0;
    use_usual_sizes();
    return 0;
}

/* ---- numbers ---------------------------------------------------------------------------------------------------- */

/* A number that a node had never comes again, also after the node was removed and the repository was closed. */
static void test_numbers_never_come_again(void **state)
{
    (void)state;
    for (int distribution = 0; distribution < 2; distribution++) {
        uint64_t chance = 4711;
        char path[DIR_MAX];
        uint32_t last = 0, number;

        create_with_nodes(&chance, distribution ? WB_DISTRIBUTION_UNIFORM : WB_DISTRIBUTION_HASH);
        for (unsigned i = 0; i < 4; i++) {
            struct wb_store *store = open_store(dir, WB_STORE_WRITE);
            disk_path(disk_count++, path);
            must_ok(wb_move_node_add(store, path, false, NULL, NULL, &number));
            must(number > last);
            must_ok(wb_move_node_remove(store, number, NULL, NULL));
            last = number;
            wb_store_close(store);
        }
        verify_clean(dir);
        struct wb_store *store = open_store(dir, WB_STORE_WRITE);
        wb_repo_of(store)->nodes.last = last;
        disk_path(disk_count++, path);
        must(wb_move_node_add(store, path, false, NULL, NULL, &number) == WB_E_LIMIT);
        must(strstr(wb_error_message(), dir) != NULL && access(path, F_OK) != 0);
        wb_store_close(store);
    }
    use_usual_sizes();
}

/* A repository has at most WB_DESIGN_NODES_MAX nodes, made with it or added later. */
static void test_too_many_nodes(void **state)
{
    struct wb_store_options options = {.nodes = {NULL, WB_DESIGN_NODES_MAX + 1}};
    char path[DIR_MAX];

    (void)state;
    test_dir(dir);
    test_dir(disks);
    must(wb_store_create(dir, &options) == WB_E_INVALID);
    options.nodes.count = WB_DESIGN_NODES_MAX;
    must_ok(wb_store_create(dir, &options));
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    disk_path(0, path);
    must(wb_move_node_add(store, path, false, NULL, NULL, NULL) == WB_E_LIMIT);
    must(strstr(wb_error_message(), "64") != NULL);
    wb_store_close(store);
    verify_clean(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_nothing_changes, reset),
        cmocka_unit_test_teardown(test_refusals, reset),
        cmocka_unit_test_teardown(test_killed, reset),
        cmocka_unit_test_teardown(test_damage, reset),
        cmocka_unit_test_teardown(test_faults, reset),
        cmocka_unit_test_teardown(test_beside_others, reset),
        cmocka_unit_test(test_numbers_never_come_again),
        cmocka_unit_test(test_too_many_nodes),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
