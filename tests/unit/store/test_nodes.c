/*
 * test_nodes.c - repositories of several nodes: which directories can be nodes, where pages go, and what works while a
 * node is missing, empty, swapped, foreign, or cannot be written. What does not depend on the number of nodes is tested
 * with several of them by the other tests (WEBBASE_TEST_NODES).
 */
#include "store_support.h"
#include "move/move.h"
#include "place/node.h"
#include "os/fault.h"
#include "os/path.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>

enum { NODES = 3, PAGES = 200, NODE_BODY = 2000 };

/* A repository whose nodes are directories beside it. */
struct rig {
    char base[DIR_MAX], repo[DIR_MAX], dirs[NODES][DIR_MAX];
    const char *list[NODES];
};

static struct wb_store_options options_of(const struct rig *rig, enum wb_distribution distribution)
{
    return (struct wb_store_options){.design = {.read = {distribution, WB_ORGANISATION_LOG}},
                                     .nodes = {rig->list, NODES}};
}

static void rig_name(struct rig *rig)
{
    char name[32];

    test_dir(rig->base);
    path_in(rig->base, "repo", rig->repo);
    for (size_t i = 0; i < NODES; i++) {
        snprintf(name, sizeof name, "disk%zu", i);
        path_in(rig->base, name, rig->dirs[i]);
        rig->list[i] = rig->dirs[i];
    }
}

static struct spec page_number(uint32_t number, int64_t time_ms)
{
    return (struct spec){.site = number % 5, .number = number, .time_ms = time_ms, .size = NODE_BODY, .variant = 5};
}

static void put_pages(struct wb_store *store, uint32_t first, uint32_t count, int64_t time_ms)
{
    for (uint32_t i = first; i < first + count; i++) {
        struct spec spec = page_number(i, time_ms);
        must_ok(put_spec(store, &spec));
    }
}

static void rig_make(struct rig *rig, enum wb_distribution distribution)
{
    struct wb_store_options options;

    rig_name(rig);
    options = options_of(rig, distribution);
    must_ok(wb_store_create(rig->repo, &options));
    struct wb_store *store = open_store(rig->repo, WB_STORE_WRITE);
    put_pages(store, 0, PAGES, 1000);
    commit_store(store);
    wb_store_close(store);
    assert_int_equal(verify_clean(rig->repo).pages, PAGES);
}

static void away_name(const struct rig *rig, size_t node, char path_out[DIR_MAX])
{
    char name[32];

    snprintf(name, sizeof name, "away%zu", node);
    path_in(rig->base, name, path_out);
}

static void take_away(const struct rig *rig, size_t node)
{
    char away[DIR_MAX];

    away_name(rig, node, away);
    must_ok(wb_path_rename(rig->dirs[node], away));
}

static void bring_back(const struct rig *rig, size_t node)
{
    char away[DIR_MAX];

    away_name(rig, node, away);
    must_ok(wb_path_rename(away, rig->dirs[node]));
}

/* ---- the table ---------------------------------------------------------------------------------------------- */

struct table {
    struct wb_store_node rows[8];
    size_t count;
    uint64_t pages;
};

static int add_row(void *context, const struct wb_store_node *node)
{
    struct table *table = context;

    must(table->count < COUNT(table->rows));
    table->rows[table->count++] = *node;
    table->pages += node->pages;
    return 0;
}

static struct table read_table(const char *repo)
{
    struct wb_store *store = open_store(repo, WB_STORE_READ);
    struct wb_store_stat stat;
    struct table table = {0};

    must_ok(wb_store_node_each(store, add_row, &table));
    must_ok(wb_store_stat(store, &stat));
    must(table.count == stat.nodes);
    must(table.pages == stat.pages);
    wb_store_close(store);
    for (size_t i = 0; i < table.count; i++) {
        const struct wb_store_node *node = &table.rows[i];
        must(node->used + node->free <= node->capacity);
        must(node->fragmentation >= 0 && node->fragmentation <= 1);
        must(node->state == WB_STORE_NODE_DOWN || node->used >= node->pages * NODE_BODY * 9 / 10);
    }
    return table;
}

/* ---- creating -------------------------------------------------------------------------------------------------- */

static void refuse(const struct rig *rig, const char *const *dirs, size_t count, const char *named)
{
    struct wb_store_options options = {.nodes = {dirs, count}};

    assert_int_equal(wb_store_create(rig->repo, &options), WB_E_INVALID);
    if (!strstr(wb_error_message(), named))
        fail_msg("\"%s\" does not name %s", wb_error_message(), named);
    assert_int_equal(wb_path_kind(rig->repo), WB_PATH_NONE);
}

static void test_refused(void **state)
{
    struct rig rig;
    char nowhere[DIR_MAX], inner[DIR_MAX], file[DIR_MAX], around[DIR_MAX];

    (void)state;
    rig_name(&rig);
    path_in(rig.base, "nowhere/node", nowhere);
    path_in(rig.dirs[0], "inner", inner);
    path_in(rig.repo, "inside", around);
    must(mkdir(rig.dirs[0], 0777) == 0);
    refuse(&rig, (const char *[]){rig.dirs[0], nowhere}, 2, "nowhere");
    refuse(&rig, (const char *[]){rig.dirs[0], inner}, 2, "disk0");
    refuse(&rig, (const char *[]){inner, rig.dirs[0]}, 2, "disk0");
    refuse(&rig, (const char *[]){rig.dirs[0], rig.dirs[0]}, 2, "disk0");
    refuse(&rig, (const char *[]){rig.dirs[1], around}, 2, "inside");
    refuse(&rig, (const char *[]){rig.base}, 1, rig.base);
    refuse(&rig, (const char *[]){""}, 1, "no name");
    path_in(rig.dirs[0], "../disk0", file);
    refuse(&rig, (const char *[]){rig.dirs[0], file}, 2, "disk0");
    must(symlink(rig.dirs[0], rig.dirs[1]) == 0);
    refuse(&rig, (const char *[]){rig.dirs[0], rig.dirs[1]}, 2, "disk1");
    must_ok(wb_path_unlink(rig.dirs[1]));
    path_in(rig.dirs[0], "thesis.txt", file);
    must_ok(wb_path_replace(file, WB_SLICE_LIT("years of work")));
    refuse(&rig, (const char *[]){rig.dirs[0]}, 1, "disk0");
    refuse(&rig, (const char *[]){file}, 1, "thesis");
    must_ok(wb_path_unlink(file));
    assert_int_equal(rmdir(rig.dirs[0]), 0); /* nothing was left in it */
    assert_int_equal(wb_path_kind(rig.dirs[1]), WB_PATH_NONE);
}

/* The node of one repository, and a directory below it, cannot be a node of another. */
static void test_in_use(void **state)
{
    struct rig rig;
    char below[DIR_MAX], other[DIR_MAX];

    (void)state;
    rig_make(&rig, WB_DISTRIBUTION_HASH);
    path_in(rig.base, "other", other);
    path_in(rig.dirs[1], "below", below);
    snprintf(rig.repo, sizeof rig.repo, "%s", other);
    refuse(&rig, (const char *[]){rig.dirs[1]}, 1, "disk1");
    refuse(&rig, (const char *[]){below}, 1, "below");
}

/* If something fails on the way, what was made is removed, and the same can be tried again. */
static void test_failing_creation(void **state)
{
    struct rig rig;

    (void)state;
    rig_name(&rig);
    struct wb_store_options options = options_of(&rig, WB_DISTRIBUTION_HASH);
    for (uint64_t n = 1;; n++) {
        wb_fault_arm(WB_FAULT_ANY & ~WB_FAULT_ALLOC, n, EIO);
        int err = wb_store_create(rig.repo, &options);
        wb_fault_disarm();
        if (!wb_fault_struck())
            break;
        if (err == 0 || wb_store_exists(rig.repo)) { /* what failed did not matter, or came after the last step */
            remove_tree(rig.repo);
            for (size_t i = 0; i < NODES; i++)
                remove_tree(rig.dirs[i]);
            continue;
        }
        for (size_t i = 0; i < NODES; i++)
            if (wb_path_kind(rig.dirs[i]) != WB_PATH_NONE)
                fail_msg("after failure %llu, %s is left", (unsigned long long)n, rig.dirs[i]);
    }
    wb_store_close(open_store(rig.repo, WB_STORE_WRITE));
}

/* A creation that was killed has made its nodes, but no superblock: the same can be tried again. */
static void test_interrupted_creation(void **state)
{
    struct rig rig;
    char path[DIR_MAX];

    (void)state;
    rig_name(&rig);
    struct wb_store_options options = options_of(&rig, WB_DISTRIBUTION_HASH);
    must_ok(wb_store_create(rig.repo, &options));
    path_in(rig.repo, WB_SUPERBLOCK_NAME, path);
    must_ok(wb_path_unlink(path));
    must_ok(wb_store_create(rig.repo, &options));
    struct wb_store *store = open_store(rig.repo, WB_STORE_WRITE);
    put_pages(store, 0, PAGES, 1000);
    commit_store(store);
    wb_store_close(store);
    assert_int_equal(verify_clean(rig.repo).pages, PAGES);
}

/* ---- where pages go ------------------------------------------------------------------------------------------- */

static void test_shares(void **state)
{
    struct rig rig;

    (void)state;
    rig_make(&rig, WB_DISTRIBUTION_HASH);
    struct table table = read_table(rig.repo);
    assert_in_range(table.rows[0].pages, PAGES / 2 - 40, PAGES / 2 + 40);
    assert_in_range(table.rows[1].pages, PAGES / 4 - 35, PAGES / 4 + 35);
    assert_in_range(table.rows[2].pages, PAGES / 4 - 35, PAGES / 4 + 35);
    for (size_t i = 0; i < NODES; i++)
        assert_int_equal(table.rows[i].state, WB_STORE_NODE_IDLE);
    rig_make(&rig, WB_DISTRIBUTION_UNIFORM);
    table = read_table(rig.repo);
    for (size_t i = 0; i < NODES; i++)
        assert_in_range(table.rows[i].pages, PAGES / 3 - 10, PAGES / 3 + 10);
}

/* Many small commits of one page each do not all go to the same node. */
static void test_turns(void **state)
{
    struct rig rig;

    (void)state;
    rig_make(&rig, WB_DISTRIBUTION_UNIFORM);
    struct wb_store *store = open_store(rig.repo, WB_STORE_WRITE);
    for (uint32_t i = 0; i < 3 * NODES; i++) {
        put_pages(store, PAGES + i, 1, 1000);
        commit_store(store);
    }
    wb_store_close(store);
    struct table table = read_table(rig.repo);
    for (size_t i = 0; i < NODES; i++)
        assert_in_range(table.rows[i].pages, PAGES / 3 - 10 + 3, PAGES / 3 + 10 + 3);
}

/* ---- nodes that are down ----------------------------------------------------------------------------------------- */

static bool names_node(size_t node)
{
    char name[32];

    snprintf(name, sizeof name, "node %zu", node + 1);
    return strstr(wb_error_message(), name) != NULL;
}

/* Reads all pages; those that cannot be read are on the node. Returns their number. */
static size_t count_lost(struct wb_store *store, size_t node)
{
    struct wb_buf memory = WB_BUF_INIT;
    struct wb_page page;
    size_t lost = 0;

    for (uint32_t i = 0; i < PAGES; i++) {
        struct spec spec = page_number(i, 1000);
        int err = wb_store_get(store, spec_id(&spec), &page, &memory);
        if (err == 0) {
            must(holds_spec(store, &spec));
            continue;
        }
        assert_int_equal(err, WB_E_DOWN);
        must(names_node(node));
        lost++;
    }
    wb_buf_release(&memory);
    return lost;
}

/* A scan of everything fails by the name of the node, and does not go on as if it were not there. */
static void scan_fails(struct wb_store *store, size_t node)
{
    struct wb_store_scan *scan = NULL;
    struct wb_page page;
    int got;

    must_ok(wb_store_scan_open(store, &(struct wb_store_scan_options){0}, &scan));
    while ((got = wb_store_scan_next(scan, &page)) > 0)
        continue;
    assert_int_equal(got, WB_E_DOWN);
    must(names_node(node));
    assert_int_equal(wb_store_scan_next(scan, &page), WB_E_DOWN);
    wb_store_scan_close(scan);
}

/* What must hold while a node cannot be used. */
static void expect_down(const struct rig *rig, size_t node)
{
    struct table table = read_table(rig->repo);

    for (size_t i = 0; i < NODES; i++)
        assert_int_equal(table.rows[i].state == WB_STORE_NODE_DOWN, i == node);
    assert_true(verify_count(rig->repo, false).problems > 0);
    struct wb_store *store = open_store(rig->repo, WB_STORE_WRITE);
    assert_int_equal(count_lost(store, node), table.rows[node].pages);
    scan_fails(store, node);
    struct wb_move_compact_counts counts;
    must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &counts));
    seal_store(store);
    wb_store_close(store);
}

static void expect_sound(const struct rig *rig)
{
    struct wb_store *store = open_store(rig->repo, WB_STORE_WRITE);

    assert_int_equal(count_lost(store, 0), 0);
    wb_store_close(store);
    verify_clean(rig->repo);
}

static void test_missing(void **state)
{
    struct rig rig;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        rig_make(&rig, i ? WB_DISTRIBUTION_UNIFORM : WB_DISTRIBUTION_HASH);
        take_away(&rig, 1);
        expect_down(&rig, 1);
        must(mkdir(rig.dirs[1], 0777) == 0); /* as where a disk is not mounted */
        expect_down(&rig, 1);
        assert_int_equal(rmdir(rig.dirs[1]), 0);
        bring_back(&rig, 1);
        expect_sound(&rig);
    }
}

static void test_swapped(void **state)
{
    struct rig rig, other;
    char aside[DIR_MAX];

    (void)state;
    rig_make(&rig, WB_DISTRIBUTION_HASH);
    rig_make(&other, WB_DISTRIBUTION_HASH);
    /* A node of another repository. */
    take_away(&rig, 2);
    copy_repository(other.dirs[2], rig.dirs[2]);
    expect_down(&rig, 2);
    remove_tree(rig.dirs[2]);
    bring_back(&rig, 2);
    /* Two of our own, while a reader is running. */
    struct wb_store *store = open_store(rig.repo, WB_STORE_READ);
    path_in(rig.base, "aside", aside);
    must_ok(wb_path_rename(rig.dirs[0], aside));
    must_ok(wb_path_rename(rig.dirs[1], rig.dirs[0]));
    must_ok(wb_path_rename(aside, rig.dirs[1]));
    for (uint32_t i = 0; i < PAGES; i++) {
        struct wb_buf memory = WB_BUF_INIT;
        struct wb_page page;
        struct spec spec = page_number(i, 1000);
        int err = wb_store_get(store, spec_id(&spec), &page, &memory);
        must(err == WB_E_DOWN ? names_node(0) || names_node(1) : err == 0 && holds_spec(store, &spec));
        wb_buf_release(&memory);
    }
    must_ok(wb_path_rename(rig.dirs[0], aside));
    must_ok(wb_path_rename(rig.dirs[1], rig.dirs[0]));
    must_ok(wb_path_rename(aside, rig.dirs[1]));
    assert_int_equal(count_lost(store, 0), 0); /* the same handle, as soon as they are back */
    wb_store_close(store);
    expect_sound(&rig);
}

/* Hash distribution: pages of the node are refused one by one, and the writer goes on with the others. */
static void test_put_hash(void **state)
{
    struct rig rig;
    unsigned refused = 0;

    (void)state;
    rig_make(&rig, WB_DISTRIBUTION_HASH);
    take_away(&rig, 0);
    struct wb_store *store = open_store(rig.repo, WB_STORE_WRITE);
    for (uint32_t i = PAGES; i < 2 * PAGES; i++) {
        struct spec spec = page_number(i, 1000);
        int err = put_spec(store, &spec);
        must(err == 0 || (err == WB_E_DOWN && names_node(0)));
        refused += err < 0;
    }
    struct wb_store_commit_counts counts = {0};
    must_ok(wb_store_commit(store, &counts));
    assert_in_range(refused, PAGES / 2 - 40, PAGES / 2 + 40);
    assert_int_equal(counts.added + refused, PAGES);
    wb_store_close(store);
    bring_back(&rig, 0);
    store = open_store(rig.repo, WB_STORE_WRITE);
    put_pages(store, PAGES, PAGES, 1000);
    commit_store(store);
    wb_store_close(store);
    assert_int_equal(verify_clean(rig.repo).pages, 2 * PAGES);
}

/* Uniform distribution: new pages, and new versions of pages that are out of reach, go to the other nodes. */
static void test_put_uniform(void **state)
{
    struct rig rig;

    (void)state;
    rig_make(&rig, WB_DISTRIBUTION_UNIFORM);
    take_away(&rig, 0);
    struct table before = read_table(rig.repo);
    struct wb_store *store = open_store(rig.repo, WB_STORE_WRITE);
    put_pages(store, PAGES, PAGES, 1000);
    put_pages(store, 0, PAGES, 2000);
    commit_store(store);
    for (uint32_t i = 0; i < PAGES; i++) {
        struct spec spec = page_number(i, 2000);
        must(holds_spec(store, &spec));
    }
    wb_store_close(store);
    struct table after = read_table(rig.repo);
    assert_int_equal(after.rows[0].pages, 0);
    assert_int_equal(after.pages, 2 * before.pages);
    bring_back(&rig, 0);
    assert_int_equal(verify_clean(rig.repo).pages, 2 * PAGES);
}

/* ---- nodes that cannot be written -------------------------------------------------------------------------- */

static void test_full_uniform(void **state)
{
    struct rig rig;

    (void)state;
    for (uint64_t n = 1; n <= NODES; n++) {
        rig_make(&rig, WB_DISTRIBUTION_UNIFORM);
        struct wb_store *store = open_store(rig.repo, WB_STORE_WRITE);
        put_pages(store, PAGES, PAGES, 1000);
        wb_fault_arm(WB_FAULT_WRITE, n, ENOSPC); /* these are the blocks of the group, one for each node */
        commit_store(store);
        wb_fault_disarm();
        assert_true(wb_fault_struck());
        put_pages(store, 2 * PAGES, 10, 1000);
        commit_store(store);
        wb_store_close(store);
        assert_int_equal(verify_clean(rig.repo).pages, 2 * PAGES + 10);
    }
}

/* With hash distribution the commit fails by the name of the node; what was committed before stays. */
static void test_full_hash(void **state)
{
    struct rig rig;

    (void)state;
    rig_make(&rig, WB_DISTRIBUTION_HASH);
    struct wb_store *store = open_store(rig.repo, WB_STORE_WRITE);
    struct wb_store_commit_counts counts = {0};
    put_pages(store, PAGES, PAGES, 1000);
    wb_fault_arm(WB_FAULT_WRITE, 2, ENOSPC);
    assert_int_equal(wb_store_commit(store, &counts), WB_E_IO);
    wb_fault_disarm();
    must(names_node(0) || names_node(1) || names_node(2));
    must(strstr(wb_error_message(), "disk") != NULL);
    assert_int_equal(count_lost(store, 0), 0);
    put_pages(store, PAGES, PAGES, 1000);
    commit_store(store);
    wb_store_close(store);
    assert_int_equal(verify_clean(rig.repo).pages, 2 * PAGES);
}

/* The disk of a node, and what fails on it. */
struct bad_disk {
    const char *dir;
    unsigned kinds;
};

static int fail_on_disk(void *context, enum wb_fault_kind kind, const char *path)
{
    const struct bad_disk *disk = context;

    return kind & disk->kinds && strncmp(path, disk->dir, strlen(disk->dir)) == 0 ? EIO : 0;
}

/* Nothing can be read from one disk: its pages are missing, with a message that names it, until it can be read again.
 */
static void test_unreadable(void **state)
{
    struct bad_disk disk = {.kinds = WB_FAULT_OPEN | WB_FAULT_READ};
    struct wb_buf memory = WB_BUF_INIT;
    struct wb_page page;
    struct rig rig;

    (void)state;
    for (unsigned i = 0; i < 2; i++) {
        rig_make(&rig, i ? WB_DISTRIBUTION_UNIFORM : WB_DISTRIBUTION_HASH);
        uint64_t lost = 0, there = read_table(rig.repo).rows[1].pages;
        disk.dir = rig.dirs[1];
        struct wb_store *store = open_store(rig.repo, WB_STORE_READ);
        wb_fault_ask(fail_on_disk, &disk);
        for (uint32_t k = 0; k < PAGES; k++) {
            struct spec spec = page_number(k, 1000);
            int err = wb_store_get(store, spec_id(&spec), &page, &memory);
            must(err == 0 || ((err == WB_E_DOWN || err == WB_E_IO) && strstr(wb_error_message(), rig.dirs[1])));
            lost += err < 0;
        }
        assert_int_equal(lost, there);
        wb_fault_ask(NULL, NULL);
        assert_int_equal(count_lost(store, 1), 0); /* the same handle */
        wb_store_close(store);
        expect_sound(&rig);
    }
    wb_buf_release(&memory);
}

/* Nothing can be written to one disk: pages that may be on any node go to the others. */
static void test_unwritable(void **state)
{
    struct bad_disk disk = {.kinds = WB_FAULT_WRITE | WB_FAULT_SYNC};
    struct rig rig;

    (void)state;
    rig_make(&rig, WB_DISTRIBUTION_UNIFORM);
    struct table before = read_table(rig.repo);
    disk.dir = rig.dirs[2];
    struct wb_store *store = open_store(rig.repo, WB_STORE_WRITE);
    wb_fault_ask(fail_on_disk, &disk);
    put_pages(store, PAGES, PAGES, 1000);
    commit_store(store);
    put_pages(store, 2 * PAGES, PAGES, 1000);
    commit_store(store);
    wb_store_close(store);
    wb_fault_ask(NULL, NULL);
    struct table after = read_table(rig.repo);
    assert_int_equal(after.pages, 3 * PAGES);
    assert_int_equal(after.rows[2].pages, before.rows[2].pages);
    assert_int_equal(verify_clean(rig.repo).pages, 3 * PAGES);
}

/* A page on a node that is down can be taken down; its bytes disappear with the first compaction after the return. */
static void test_takedown(void **state)
{
    struct rig rig;
    struct wb_move_compact_counts counts;

    (void)state;
    rig_make(&rig, WB_DISTRIBUTION_UNIFORM);
    take_away(&rig, 1);
    struct wb_store *store = open_store(rig.repo, WB_STORE_WRITE);
    struct wb_buf memory = WB_BUF_INIT;
    struct wb_page page;
    struct spec spec;
    uint32_t i = 0;
    do
        spec = page_number(i++, 1000);
    while (wb_store_get(store, spec_id(&spec), &page, &memory) == 0);
    must_ok(remove_spec(store, &spec, true));
    commit_store(store);
    assert_int_equal(wb_store_get(store, spec_id(&spec), &page, &memory), WB_E_NOTFOUND);
    must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &counts));
    assert_int_equal(counts.skipped, 1);
    wb_store_close(store);
    bring_back(&rig, 1);
    assert_int_equal(files_with(rig.dirs[1], &spec), 1);
    store = open_store(rig.repo, WB_STORE_WRITE);
    must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &counts));
    wb_store_close(store);
    assert_int_equal(files_with(rig.dirs[1], &spec), 0);
    assert_int_equal(verify_clean(rig.repo).pages, PAGES - 1);
    wb_buf_release(&memory);
}

/* A copied repository uses the nodes inside it, and not those of the one that it is a copy of. */
static void test_copy(void **state)
{
    char dir[DIR_MAX], from[DIR_MAX], to[DIR_MAX];

    (void)state;
    test_dir(dir);
    path_in(dir, "from", from);
    path_in(dir, "to", to);
    must_ok(wb_store_create(from, &(struct wb_store_options){.nodes = {NULL, NODES}}));
    struct wb_store *store = open_store(from, WB_STORE_WRITE);
    put_pages(store, 0, PAGES, 1000);
    commit_store(store);
    wb_store_close(store);
    copy_repository(from, to);
    remove_tree(from);
    assert_int_equal(verify_clean(to).pages, PAGES);
    assert_int_equal(read_table(to).pages, PAGES);
}

/* Nodes can be numbered from another number than 1. */
static void test_first_number(void **state)
{
    char dir[DIR_MAX];

    (void)state;
    test_dir(dir);
    must_ok(wb_store_create(dir, &(struct wb_store_options){.nodes = {NULL, 2}, .first_node = 101}));
    struct table table = read_table(dir);
    assert_int_equal(table.count, 2);
    assert_int_equal(table.rows[0].number, 101);
    assert_int_equal(table.rows[1].number, 102);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_refused),          cmocka_unit_test(test_in_use),
        cmocka_unit_test(test_failing_creation), cmocka_unit_test(test_interrupted_creation),
        cmocka_unit_test(test_shares),           cmocka_unit_test(test_turns),
        cmocka_unit_test(test_missing),          cmocka_unit_test(test_swapped),
        cmocka_unit_test(test_put_hash),         cmocka_unit_test(test_put_uniform),
        cmocka_unit_test(test_full_uniform),     cmocka_unit_test(test_full_hash),
        cmocka_unit_test(test_unreadable),       cmocka_unit_test(test_unwritable),
        cmocka_unit_test(test_takedown),         cmocka_unit_test(test_copy),
        cmocka_unit_test(test_first_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
