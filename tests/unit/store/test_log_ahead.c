/*
 * test_log_ahead.c - segments that are read ahead, from all nodes at the same time: the bytes are those of the files,
 * nodes do not wait for each other, and whatever happens to a file in the meantime, a scan returns what it would have
 * returned without.
 */
#include "store_support.h"
#include "base/mem.h"
#include "move/move.h"
#include "os/fault.h"
#include "os/file.h"
#include "os/path.h"
#include "store/scan/scan_ahead.h"

#include <pthread.h>
#include <unistd.h>

enum { PAGES = 300, BODY = 2000, SEGMENT = 12000, NODES_MAX = 9 };

/* ---- a repository whose segments have a few pages each --------------------------------------------------------- */

static struct spec page_number(uint32_t number, int64_t time_ms)
{
    return (struct spec){.site = number % 7, .number = number, .time_ms = time_ms, .size = BODY, .variant = 5};
}

static void put_pages(const char *repo, uint32_t first, uint32_t count, int64_t time_ms)
{
    struct wb_store *store = open_store(repo, WB_STORE_WRITE);

    for (uint32_t i = first; i < first + count; i++) {
        struct spec spec = page_number(i, time_ms);
        must_ok(put_spec(store, &spec));
        if (i % 20 == 19)
            commit_store(store);
    }
    commit_store(store);
    wb_store_close(store);
}

static void make(char repo[DIR_MAX], enum wb_distribution distribution, size_t nodes)
{
    char base[DIR_MAX];
    struct wb_store_options options = {.design.read = {distribution, WB_ORGANISATION_LOG}, .nodes.count = nodes};

    test_dir(base);
    path_in(base, "repo", repo);
    must_ok(wb_store_create(repo, &options));
    put_pages(repo, 0, PAGES, 1000);
}

/* What the catalog says about the files. */
struct rows {
    struct wb_catalog *catalog;
    struct wb_catalog_txn txn;
    struct wb_catalog_rows list;
    struct wb_nodes nodes;
    struct wb_superblock superblock;
};

static void read_rows(const char *repo, struct rows *rows)
{
    *rows = (struct rows){0};
    must_ok(wb_superblock_read(repo, &rows->superblock));
    must_ok(wb_catalog_open(repo, WB_TREE_READ, &rows->catalog));
    must_ok(wb_catalog_txn_read(rows->catalog, &rows->txn));
    must_ok(wb_catalog_rows_read(&rows->txn, &rows->list));
    wb_nodes_init(&rows->nodes, repo, &rows->superblock);
    must_ok(wb_nodes_refresh(&rows->nodes, &rows->txn));
    must(rows->list.count > 2 * NODES_MAX);
}

static void release_rows(struct rows *rows)
{
    wb_nodes_release(&rows->nodes);
    wb_catalog_rows_release(&rows->list);
    wb_catalog_txn_abort(&rows->txn);
    wb_catalog_close(rows->catalog);
}

static void file_of(struct rows *rows, const struct wb_catalog_segment *row, char path_out[DIR_MAX])
{
    char name[WB_SEGMENT_NAME_MAX];
    struct wb_node *node;

    must_ok(wb_nodes_find(&rows->nodes, row->node, &node));
    wb_segment_name(row->number, row->revision, name);
    snprintf(path_out, DIR_MAX, "%s/%s", wb_node_label(node), name);
}

static void plan(struct wb_scan_ahead *ahead, struct rows *rows, size_t first, size_t count)
{
    wb_scan_ahead_plan(ahead, &rows->nodes, rows->superblock.id, &rows->list.items[first], count);
}

/* Takes a segment, and compares all its bytes with those of its file. Returns false if it was not read ahead. */
static bool take_and_compare(struct wb_scan_ahead *ahead, struct rows *rows, const struct wb_catalog_segment *row)
{
    struct wb_segment segment;
    struct wb_segment_ahead *bytes;
    struct wb_buf expected = WB_BUF_INIT;
    char path[DIR_MAX];
    const char *got;
    size_t have;

    if (!wb_scan_ahead_take(ahead, row, &segment, &bytes))
        return false;
    file_of(rows, row, path);
    must_ok(wb_path_read(path, 1 << 20, &expected));
    assert_true(bytes->wait(bytes, 0, row->bytes, &got, &have));
    assert_true(have >= row->bytes);
    assert_memory_equal(got, expected.ptr, row->bytes);
    assert_true(bytes->wait(bytes, 64, 10, &got, &have));
    assert_memory_equal(got, expected.ptr + 64, 10);
    assert_false(bytes->wait(bytes, row->bytes, 1, &got, &have));
    assert_false(bytes->wait(bytes, UINT64_MAX, 1, &got, &have));
    wb_scan_ahead_give_back(bytes);
    wb_segment_close(&segment);
    wb_buf_release(&expected);
    return true;
}

/* ---- bytes ------------------------------------------------------------------------------------------------- */

static void test_bytes(void **state)
{
    struct wb_scan_ahead *ahead;
    char repo[DIR_MAX];
    struct rows rows;

    (void)state;
    make(repo, WB_DISTRIBUTION_UNIFORM, 3);
    read_rows(repo, &rows);
    must_ok(wb_scan_ahead_new(1, &ahead));
    for (size_t i = 0; i < rows.list.count; i++) {
        plan(ahead, &rows, i, rows.list.count - i);
        assert_true(take_and_compare(ahead, &rows, &rows.list.items[i]));
        assert_false(take_and_compare(ahead, &rows, &rows.list.items[i])); /* once */
    }
    wb_scan_ahead_free(ahead);
    release_rows(&rows);
}

/* There is room for a few; those that are not wanted any more make room for others. */
static void test_room(void **state)
{
    struct wb_scan_ahead *ahead;
    char repo[DIR_MAX];
    struct rows rows;
    size_t found = 0;

    (void)state;
    make(repo, WB_DISTRIBUTION_HASH, NODES_MAX);
    read_rows(repo, &rows);
    must_ok(wb_scan_ahead_new(1, &ahead));
    plan(ahead, &rows, 0, rows.list.count);
    while (found < rows.list.count && take_and_compare(ahead, &rows, &rows.list.items[found]))
        found++;
    assert_int_equal(found, 8);
    plan(ahead, &rows, 0, 8);
    plan(ahead, &rows, 4, 2); /* only these two are wanted now */
    assert_false(take_and_compare(ahead, &rows, &rows.list.items[0]));
    assert_true(take_and_compare(ahead, &rows, &rows.list.items[4]));
    plan(ahead, &rows, 5, 1);
    struct wb_catalog_segment other = rows.list.items[5];
    other.revision++;
    assert_false(take_and_compare(ahead, &rows, &other));
    other = rows.list.items[5];
    other.node++;
    assert_false(take_and_compare(ahead, &rows, &other));
    assert_true(take_and_compare(ahead, &rows, &rows.list.items[5]));
    wb_scan_ahead_free(ahead);
    must_ok(wb_scan_ahead_new(8, &ahead)); /* of eight scans, each has less */
    plan(ahead, &rows, 0, rows.list.count);
    for (found = 0; take_and_compare(ahead, &rows, &rows.list.items[found]);)
        found++;
    assert_int_equal(found, 2);
    plan(ahead, &rows, 3, 2); /* freed while they are being read */
    wb_scan_ahead_free(ahead);
    release_rows(&rows);
}

/* A file that is missing or too short is left to those who read it themselves. */
static void test_damage(void **state)
{
    struct wb_scan_ahead *ahead;
    struct wb_segment segment;
    struct wb_segment_ahead *bytes;
    char repo[DIR_MAX], path[DIR_MAX];
    const char *got;
    size_t have;
    struct rows rows;

    (void)state;
    make(repo, WB_DISTRIBUTION_UNIFORM, 2);
    read_rows(repo, &rows);
    must_ok(wb_scan_ahead_new(1, &ahead));
    file_of(&rows, &rows.list.items[0], path);
    must_ok(wb_path_unlink(path));
    file_of(&rows, &rows.list.items[1], path);
    assert_int_equal(truncate(path, 1000), 0);
    plan(ahead, &rows, 0, 3);
    assert_false(wb_scan_ahead_take(ahead, &rows.list.items[0], &segment, &bytes));
    assert_true(wb_scan_ahead_take(ahead, &rows.list.items[1], &segment, &bytes));
    assert_false(bytes->wait(bytes, 0, rows.list.items[1].bytes, &got, &have));
    wb_scan_ahead_give_back(bytes);
    wb_segment_close(&segment);
    assert_true(take_and_compare(ahead, &rows, &rows.list.items[2]));
    wb_scan_ahead_free(ahead);
    release_rows(&rows);
}

/* ---- nodes do not wait for each other ----------------------------------------------------------------------- */

/* A gate in front of all files of a directory. */
struct gate {
    const char *dir;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool open;
    unsigned waiting;
};

static int pass_gate(void *context, enum wb_fault_kind kind, const char *path)
{
    struct gate *gate = context;

    (void)kind;
    if (strncmp(path, gate->dir, strlen(gate->dir)) != 0)
        return 0;
    pthread_mutex_lock(&gate->lock);
    gate->waiting++;
    pthread_cond_broadcast(&gate->changed);
    while (!gate->open)
        pthread_cond_wait(&gate->changed, &gate->lock);
    gate->waiting--;
    pthread_mutex_unlock(&gate->lock);
    return 0;
}

static size_t first_of_node(const struct rows *rows, uint32_t node)
{
    size_t i = 0;

    while (i < rows->list.count && rows->list.items[i].node != node)
        i++;
    must(i < rows->list.count);
    return i;
}

/* While a disk does not answer, others are read; and when it does, so is it. */
static void test_in_parallel(void **state)
{
    struct gate gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
    struct wb_scan_ahead *ahead;
    char repo[DIR_MAX];
    struct rows rows;

    (void)state;
    make(repo, WB_DISTRIBUTION_UNIFORM, 2);
    read_rows(repo, &rows);
    struct wb_known_node *slow = &rows.nodes.items.items[0];
    gate.dir = slow->dir;
    wb_fault_ask(pass_gate, &gate);
    struct wb_catalog_segment two[] = {rows.list.items[first_of_node(&rows, slow->row.number)],
                                       rows.list.items[first_of_node(&rows, rows.nodes.items.items[1].row.number)]};
    must_ok(wb_scan_ahead_new(1, &ahead));
    wb_scan_ahead_plan(ahead, &rows.nodes, rows.superblock.id, two, 2);
    pthread_mutex_lock(&gate.lock);
    while (gate.waiting == 0)
        pthread_cond_wait(&gate.changed, &gate.lock);
    pthread_mutex_unlock(&gate.lock);
    assert_true(take_and_compare(ahead, &rows, &two[1]));
    pthread_mutex_lock(&gate.lock);
    assert_int_equal(gate.waiting, 1);
    gate.open = true;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
    assert_true(take_and_compare(ahead, &rows, &two[0]));
    wb_scan_ahead_free(ahead);
    wb_fault_ask(NULL, NULL);
    release_rows(&rows);
}

/* ---- scans -------------------------------------------------------------------------------------------------- */

/* What gets return. */
static void expect_pages(struct wb_store *store, int64_t time_ms, struct sights *expected)
{
    struct wb_buf memory = WB_BUF_INIT;
    struct wb_page page;

    for (uint32_t i = 0; i < PAGES; i++) {
        struct spec spec = page_number(i, time_ms);
        assert_true(holds_spec(store, &spec));
        must_ok(wb_store_get(store, spec_id(&spec), &page, &memory));
        see(expected, &page, WITHOUT_LIFETIME);
    }
    wb_buf_release(&memory);
}

/* All pages, each once, in ascending order of their positions, from wherever the scan begins. */
static void check_order(const char *repo)
{
    struct wb_store *store = open_store(repo, WB_STORE_READ);
    struct wb_store_position positions[PAGES];
    struct wb_pageid ids[PAGES];
    struct wb_store_scan *scan;
    struct wb_page page;
    size_t count = 0;

    must_ok(wb_store_scan_open(store, &(struct wb_store_scan_options){0}, &scan));
    for (; count < PAGES && wb_store_scan_next(scan, &page) == 1; count++) {
        ids[count] = page.id;
        wb_store_scan_tell(scan, &positions[count]);
        must(count == 0 || wb_store_position_compare(store, &positions[count - 1], &positions[count]) < 0);
    }
    assert_int_equal(count, PAGES);
    assert_int_equal(wb_store_scan_next(scan, &page), 0);
    wb_store_scan_close(scan);
    for (size_t from = 0; from + 1 < count; from += 1 + count / 16) {
        size_t until = from + (count - from) / 2;
        struct wb_store_scan_options options = {.after = &positions[from], .until = &positions[until]};
        must_ok(wb_store_scan_open(store, &options, &scan));
        for (size_t i = from + 1; i <= until; i++) {
            assert_int_equal(wb_store_scan_next(scan, &page), 1);
            assert_true(wb_pageid_equal(page.id, ids[i]));
        }
        assert_int_equal(wb_store_scan_next(scan, &page), 0);
        wb_store_scan_close(scan);
    }
    wb_store_close(store);
}

static void test_scans(void **state)
{
    char repo[DIR_MAX];

    (void)state;
    for (size_t nodes = 2; nodes <= NODES_MAX; nodes += 7) {
        for (int uniform = 0; uniform < 2; uniform++) {
            struct sights found = {0}, expected = {0}, parts = {0};
            make(repo, uniform ? WB_DISTRIBUTION_UNIFORM : WB_DISTRIBUTION_HASH, nodes);
            struct wb_store *store = open_store(repo, WB_STORE_READ);
            expect_pages(store, 1000, &expected);
            scan_all(store, &(struct wb_store_scan_options){0}, WITHOUT_LIFETIME, &found);
            compare_sights("one scan", &found, &expected);
            for (uint32_t part = 1; part <= 3; part++)
                scan_all(store, &(struct wb_store_scan_options){.part = part, .parts = 3}, WITHOUT_LIFETIME, &parts);
            compare_sights("three parts", &parts, &expected);
            wb_store_close(store);
            check_order(repo);
            sights_release(&found);
            sights_release(&parts);
            sights_release(&expected);
        }
    }
}

/*
 * While a scan runs, all that it has read ahead is replaced: every page gets a new version, some are taken down, and
 * the files are compacted. It returns the old versions, except of what was taken down.
 */
static void test_changes(void **state)
{
    struct sights found = {0}, expected = {0}, down = {0};
    struct wb_move_compact_counts counts;
    struct wb_store_scan *scan;
    struct made made = {0};
    char repo[DIR_MAX];

    (void)state;
    make(repo, WB_DISTRIBUTION_HASH, 3);
    struct wb_store *reader = open_store(repo, WB_STORE_READ);
    expect_pages(reader, 1000, &expected);
    must_ok(wb_store_scan_open(reader, &(struct wb_store_scan_options){0}, &scan));
    /* The first block. What is visible of a block is asked when the scan reaches it, so no page of it may be left. */
    assert_true(scan_some(scan, 6, WITHOUT_LIFETIME, &found));
    put_pages(repo, 0, PAGES, 2000);
    struct wb_store *store = open_store(repo, WB_STORE_WRITE);
    for (uint32_t i = 0; i < PAGES; i += 3) {
        struct spec spec = page_number(i, 3000);
        must_ok(remove_spec(store, &spec, true));
        make_page(&spec, &made);
        see(&down, &made.page, WITHOUT_LIFETIME);
        made_release(&made);
    }
    commit_store(store);
    must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &counts));
    wb_store_close(store);
    size_t before = found.count;
    drain_scan(scan, WITHOUT_LIFETIME, &found);
    for (size_t i = before; i < found.count; i++)
        for (size_t k = 0; k < down.count; k++)
            assert_false(wb_pageid_equal(found.list[i].id, down.list[k].id));
    compare_sights_except("after changes", &found, &expected, &down);
    assert_true(found.count >= PAGES - down.count);
    wb_store_close(reader);
    sights_release(&found);
    sights_release(&down);
    sights_release(&expected);
}

/* A scan that ends early, at any place, leaves nothing behind. */
static void test_ended_early(void **state)
{
    char repo[DIR_MAX];

    (void)state;
    make(repo, WB_DISTRIBUTION_UNIFORM, 3);
    struct wb_store *store = open_store(repo, WB_STORE_READ);
    for (size_t pages = 0; pages < PAGES; pages += 23) {
        struct sights found = {0};
        struct wb_store_scan *scan;
        must_ok(wb_store_scan_open(store, &(struct wb_store_scan_options){0}, &scan));
        scan_some(scan, pages, 0, &found);
        assert_int_equal(found.count, pages);
        wb_store_scan_close(scan);
        sights_release(&found);
    }
    wb_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),       cmocka_unit_test(test_room),  cmocka_unit_test(test_damage),
        cmocka_unit_test(test_in_parallel), cmocka_unit_test(test_scans), cmocka_unit_test(test_changes),
        cmocka_unit_test(test_ended_early),
    };

    use_small_sizes(SEGMENT);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
