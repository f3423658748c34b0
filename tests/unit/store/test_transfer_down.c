/*
 * test_transfer_down.c - transfers while a node cannot be used: everything that does not need it is brought, what does
 * need it goes on waiting, and arrives when the node is back. test_transfer_twins.c does the same at random.
 */
#include "transfer_support.h"
#include "move/move.h"

#include <signal.h>
#include <sys/resource.h>

/* In small commits, so that with uniform distribution each node gets some. */
static void put_range(struct wb_store *store, uint32_t first, uint32_t end, int64_t time_ms)
{
    for (uint32_t i = first; i < end; i++) {
        struct spec spec = page_spec(i, time_ms);
        must_ok(put_spec(store, &spec));
        if (i % 5 == 4)
            commit_store(store);
    }
    commit_store(store);
}

static struct wb_store_stat stat_of(struct wb_store *store)
{
    struct wb_store_stat stat;

    must_ok(wb_store_stat(store, &stat));
    return stat;
}

/* How many of the pages readers have in the version of this time. */
static unsigned count_of_time(const char *dir, uint32_t first, uint32_t end, int64_t time_ms)
{
    struct wb_store *reader = open_store(dir, WB_STORE_READ);
    unsigned count = 0;
    int64_t found_ms;

    for (uint32_t i = first; i < end; i++)
        count += wb_store_time(reader, page_id(i), &found_ms) == 0 && found_ms == time_ms;
    wb_store_close(reader);
    return count;
}

struct node_pages {
    uint32_t node;
    uint64_t pages;
};

static int find_node(void *context, const struct wb_store_node *node)
{
    struct node_pages *found = context;

    if (node->number == found->node)
        found->pages = node->pages;
    return 0;
}

static uint64_t pages_on(struct wb_store *store, uint32_t node)
{
    struct node_pages found = {.node = node};

    must_ok(wb_store_node_each(store, find_node, &found));
    return found.pages;
}

static void transfer_all(const char *dir)
{
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    struct wb_move_transfer_counts counts;

    must_ok(wb_move_transfer(store, NULL, NULL, NULL, NULL, &counts));
    must(counts.finished && counts.waiting == 0 && counts.wait_count == 0);
    assert_int_equal(stat_of(store).pages_waiting, 0);
    wb_store_close(store);
}

/* A transfer after which some pages wait for this node, and for no other. */
static struct wb_move_transfer_counts transfer_some(const char *dir, uint32_t node)
{
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    struct wb_move_transfer_counts counts;
    char name[32];

    snprintf(name, sizeof name, "for node %u", node);
    int err = wb_move_transfer(store, NULL, NULL, NULL, NULL, &counts);
    if (err != WB_E_DOWN || !strstr(wb_error_message(), name))
        fail_msg("the transfer returned %d: %s", err, wb_error_message());
    must(counts.finished);
    assert_int_equal(counts.wait_count, 1);
    assert_int_equal(counts.waits[0].node, node);
    assert_int_equal(counts.waits[0].pages, counts.waiting);
    assert_int_equal(stat_of(store).pages_waiting, counts.waiting);
    wb_store_close(store);
    return counts;
}

/* ---- one node after the other ---------------------------------------------------------------------------------- */

/* Half of the pages are known to readers; a node goes, and newer versions of all wait. */
static void run_away(const char *design, uint32_t node)
{
    struct wb_move_transfer_counts counts;
    char dir[DIR_MAX];

    test_dir(dir);
    create_rig(dir, design, WB_STORE_KEEP_NEWEST, 0);
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    for (uint32_t i = 0; i < PAGES / 2; i += PAGES / 4) { /* in two commits, so that both read nodes get some */
        put_range(store, i, i + PAGES / 4, 1000);
        must_ok(wb_move_transfer(store, NULL, NULL, NULL, NULL, &counts));
    }
    put_range(store, 0, PAGES, 2000);
    uint64_t there = pages_on(store, node);
    wb_store_close(store);
    must(node == READ_NODE || (there > 0 && there < PAGES));
    take_away(dir, node);
    if (node == READ_NODE && strstr(design, "R(uniform,") && !strstr(design, "R(uniform,hash)")) {
        transfer_all(dir); /* other nodes take everything */
        assert_int_equal(count_of_time(dir, 0, PAGES, 2000), PAGES);
        bring_back(dir, node);
        return;
    }
    counts = transfer_some(dir, node);
    must(counts.waiting > 0 && counts.waiting < PAGES);
    assert_int_equal(counts.added + counts.replaced + counts.waiting, PAGES);
    if (node == UPDATE_NODE)
        assert_int_equal(counts.waiting, there);
    assert_int_equal(count_of_time(dir, 0, PAGES, 2000), PAGES - counts.waiting);
    assert_int_equal(count_of_time(dir, 0, PAGES / 2, 1000), PAGES / 2 - counts.replaced); /* each is old or new */
    uint64_t waiting = counts.waiting;
    counts = transfer_some(dir, node); /* nothing has changed */
    assert_int_equal(counts.added + counts.replaced, 0);
    assert_int_equal(counts.waiting, waiting);
    bring_back(dir, node);
    verify_clean(dir);
    transfer_all(dir);
    assert_int_equal(count_of_time(dir, 0, PAGES, 2000), PAGES);
    verify_clean(dir);
}

static void test_one_away(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(designs); i++) {
        run_away(designs[i], UPDATE_NODE);
        run_away(designs[i], READ_NODE);
    }
}

/* A node that is down, but has nothing that waits, is no reason to complain. */
static void test_nothing_there(void **state)
{
    char dir[DIR_MAX];

    (void)state;
    test_dir(dir);
    create_rig(dir, "Batch[U(uniform,log),R(hash,log)]", WB_STORE_KEEP_NEWEST, 0);
    take_away(dir, UPDATE_NODE);
    transfer_all(dir);
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    put_range(store, 0, PAGES, 1000);
    wb_store_close(store);
    transfer_all(dir);
    assert_int_equal(count_of_time(dir, 0, PAGES, 1000), PAGES);
    bring_back(dir, UPDATE_NODE);
    verify_clean(dir);
}

/* No read node is left: nothing is brought, and nothing is lost. */
static void test_all_away(void **state)
{
    static const char *const some[] = {"Batch[U(hash,log),R(hash,log)]", "Batch[U(hash,log),R(uniform,log)]",
                                       "Batch[U(hash,log),R(uniform,hash)]"};

    (void)state;
    for (size_t i = 0; i < COUNT(some); i++) {
        struct wb_move_transfer_counts counts;
        char dir[DIR_MAX];
        test_dir(dir);
        create_rig(dir, some[i], WB_STORE_KEEP_NEWEST, 0);
        struct wb_store *store = open_store(dir, WB_STORE_WRITE);
        put_range(store, 0, PAGES, 1000);
        take_away(dir, 1);
        take_away(dir, 2);
        assert_int_equal(wb_move_transfer(store, NULL, NULL, NULL, NULL, &counts), WB_E_DOWN);
        must(strstr(wb_error_message(), "is down"));
        assert_int_equal(counts.added + counts.replaced, 0);
        assert_int_equal(stat_of(store).pages_waiting, PAGES);
        bring_back(dir, 1);
        bring_back(dir, 2);
        wb_store_close(store);
        transfer_all(dir);
        assert_int_equal(count_of_time(dir, 0, PAGES, 1000), PAGES);
        verify_clean(dir);
    }
}

/* ---- a node goes while the transfer runs ------------------------------------------------------------------------- */

struct leaver {
    char dir[DIR_MAX];
    uint32_t node;
    const char *stage; /* after which it goes */
};

static void leave(void *context, const struct wb_move_stage *stage)
{
    struct leaver *leaver = context;

    if (strcmp(stage->name, leaver->stage) == 0)
        take_away(leaver->dir, leaver->node);
}

static void run_leaver(const char *design, uint32_t node, const char *stage)
{
    struct leaver leaver = {.node = node, .stage = stage};
    struct wb_move_transfer_counts counts;

    test_dir(leaver.dir);
    create_rig(leaver.dir, design, WB_STORE_KEEP_NEWEST, 0);
    struct wb_store *store = open_store(leaver.dir, WB_STORE_WRITE);
    put_range(store, 0, PAGES, 1000);
    wb_store_close(store);
    store = open_store(leaver.dir, WB_STORE_WRITE);
    int err = wb_move_transfer(store, leave, &leaver, NULL, NULL, &counts);
    must(err == 0 || err == WB_E_DOWN);
    wb_store_close(store);
    unsigned arrived = count_of_time(leaver.dir, 0, PAGES, 1000);
    if (counts.finished && arrived + counts.waiting != PAGES)
        fail_msg("%s, node %u goes after %s: %u of %u pages have arrived, %u wait", design, node, stage, arrived, PAGES,
                 (unsigned)counts.waiting);
    must(!counts.finished || err == (counts.waiting ? WB_E_DOWN : 0));
    bring_back(leaver.dir, node);
    transfer_all(leaver.dir);
    assert_int_equal(count_of_time(leaver.dir, 0, PAGES, 1000), PAGES);
    verify_clean(leaver.dir);
}

static void test_leavers(void **state)
{
    static const char *const stages[] = {"isolate", "id lists", "intersection", "transfer", "index", "empty"};

    (void)state;
    for (size_t i = 0; i < COUNT(designs); i++)
        for (size_t k = 0; k < COUNT(stages); k++) {
            run_leaver(designs[i], UPDATE_NODE, stages[k]);
            run_leaver(designs[i], READ_NODE, stages[k]);
        }
}

/* ---- what changes while pages wait ------------------------------------------------------------------------------- */

/* The older version is on a node that is down, the newer one is not. */
static void run_newer(const char *design, enum wb_store_keep keep)
{
    char dir[DIR_MAX];

    test_dir(dir);
    create_rig(dir, design, keep, 2);
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    put_range(store, 0, PAGES, 1000);
    uint64_t there = pages_on(store, UPDATE_NODE);
    wb_store_close(store); /* which has files open there */
    take_away(dir, UPDATE_NODE);
    store = open_store(dir, WB_STORE_WRITE);
    put_range(store, 0, PAGES, 2000);
    wb_store_close(store);
    if (keep == WB_STORE_KEEP_NEWEST)
        transfer_all(dir);
    else
        assert_int_equal(transfer_some(dir, UPDATE_NODE).waiting, there);
    assert_int_equal(count_of_time(dir, 0, PAGES, 2000), PAGES);
    bring_back(dir, UPDATE_NODE);
    transfer_all(dir);
    assert_int_equal(count_of_time(dir, 0, PAGES, 2000), PAGES); /* and not the older one */
    struct wb_store *reader = open_store(dir, WB_STORE_READ);
    for (uint32_t i = 0; i < PAGES; i++) {
        struct wb_store_timeline timeline;
        must_ok(wb_store_timeline(reader, page_id(i), &timeline));
        assert_int_equal(timeline.count, keep == WB_STORE_KEEP_NEWEST ? 1 : 2);
        wb_store_timeline_release(&timeline);
    }
    wb_store_close(reader);
    verify_clean(dir);
}

static void test_newer(void **state)
{
    static const enum wb_store_keep keeps[] = {WB_STORE_KEEP_NEWEST, WB_STORE_KEEP_ALL, WB_STORE_KEEP_COUNT};

    (void)state;
    for (size_t i = 0; i < COUNT(keeps); i++) {
        run_newer("Batch[U(uniform,log),R(hash,log)]", keeps[i]);
        run_newer("Batch[U(uniform,hashed-log),R(uniform,hash)]", keeps[i]);
    }
}

/* What is taken down while it waits on a node that is down does not come back with it. */
static void test_taken_down(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(designs); i++) {
        char dir[DIR_MAX];
        test_dir(dir);
        create_rig(dir, designs[i], WB_STORE_KEEP_ALL, 0);
        struct wb_store *store = open_store(dir, WB_STORE_WRITE);
        put_range(store, 0, PAGES, 1000);
        wb_store_close(store);
        take_away(dir, UPDATE_NODE);
        uint64_t waiting = transfer_some(dir, UPDATE_NODE).waiting;
        store = open_store(dir, WB_STORE_WRITE);
        for (uint32_t k = 0; k < PAGES; k += 2) {
            struct spec spec = page_spec(k, 2000);
            must_ok(bar_spec(store, &spec, WB_STORE_BAR_PAGE, false));
            must_ok(remove_spec(store, &spec, true));
        }
        commit_store(store);
        uint64_t left = stat_of(store).pages_waiting;
        must(left > 0 && left < waiting);
        wb_store_close(store);
        assert_int_equal(transfer_some(dir, UPDATE_NODE).waiting, left);
        bring_back(dir, UPDATE_NODE);
        transfer_all(dir);
        store = open_store(dir, WB_STORE_READ);
        assert_int_equal(stat_of(store).pages, PAGES / 2);
        wb_store_close(store);
        assert_int_equal(count_of_time(dir, 0, PAGES, 1000), PAGES / 2);
        verify_clean(dir);
    }
}

/* ---- a node that cannot be written ---------------------------------------------------------------------------------
 */

/* A read node is full, as far as the system says: a limit on the length of files stands for that. */
static void test_full(void **state)
{
    enum { LARGE = 60, BODY = 60000 };
    static const char *const some[] = {"Batch[U(hash,log),R(hash,log)]", "Batch[U(hash,log),R(hash,hash)]",
                                       "Batch[U(hash,log),R(hash,hashed-log)]"};
    struct rlimit before, limit;

    (void)state;
    must(getrlimit(RLIMIT_FSIZE, &before) == 0);
    must(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
    for (size_t i = 0; i < COUNT(some); i++) {
        struct wb_move_transfer_counts counts;
        uint64_t used[2] = {0};
        char dir[DIR_MAX];
        test_dir(dir);
        create_rig(dir, some[i], WB_STORE_KEEP_NEWEST, 0);
        struct wb_store *store = open_store(dir, WB_STORE_WRITE);
        struct spec spec = {.size = BODY, .variant = 5, .time_ms = 1000};
        for (uint32_t number = 0, first = 0; first < LARGE; number++) { /* many for node 1, one for node 2 */
            spec.number = number;
            bool mine = spec_id(&spec).hi >> 63 == 0;
            if (!mine && used[1])
                continue;
            must_ok(put_spec(store, &spec));
            first += mine;
            used[!mine]++;
        }
        commit_store(store);
        limit = (struct rlimit){LARGE * BODY / 2, before.rlim_max};
        must(setrlimit(RLIMIT_FSIZE, &limit) == 0);
        int err = wb_move_transfer(store, NULL, NULL, NULL, NULL, &counts);
        must(setrlimit(RLIMIT_FSIZE, &before) == 0);
        if (err != WB_E_DOWN || !counts.finished || counts.wait_count != 1 || counts.waits[0].node != 1)
            fail_msg("%s: %d, %s", some[i], err, wb_error_message());
        assert_int_equal(counts.added, used[1]);
        assert_int_equal(counts.waiting, used[0]);
        wb_store_close(store);
        transfer_all(dir);
        verify_clean(dir);
    }
}

/* ---- revisits
 * -------------------------------------------------------------------------------------------------------- */

/* Revisits that wait for their original are not lost, whether they go to the read nodes or stay. */
static void test_revisits(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT(designs); i++) {
        struct wb_move_transfer_counts counts;
        struct wb_buf room = WB_BUF_INIT;
        char dir[DIR_MAX];
        test_dir(dir);
        create_rig(dir, designs[i], WB_STORE_KEEP_ALL, 0);
        struct wb_store *store = open_store(dir, WB_STORE_WRITE);
        put_range(store, 0, PAGES / 2, 1000);
        wb_store_close(store);
        transfer_all(dir);
        store = open_store(dir, WB_STORE_WRITE);
        for (uint32_t k = 0; k < PAGES; k++) { /* of contents that nobody has yet */
            struct spec spec = page_spec(k, 2000);
            struct made made;
            make_page(&spec, &made);
            wb_buf_clear(&room);
            struct wb_store_revisit revisit = {.id = page_id(k),
                                               .original = page_id(k),
                                               .time_ms = 3000,
                                               .has_sha1 = true,
                                               .site = spec_site(&spec, &room)};
            memcpy(revisit.sha1, made.page.sha1, sizeof revisit.sha1);
            must_ok(wb_store_put_revisit(store, &revisit, NULL));
            made_release(&made);
        }
        commit_store(store);
        wb_buf_release(&room);
        assert_int_equal(stat_of(store).revisits, PAGES);
        take_away(dir, READ_NODE);
        take_away(dir, UPDATE_NODE);
        int err = wb_move_transfer(store, NULL, NULL, NULL, NULL, &counts);
        must(counts.finished && (err == 0 || err == WB_E_DOWN));
        assert_int_equal(stat_of(store).revisits, PAGES);
        bring_back(dir, READ_NODE);
        bring_back(dir, UPDATE_NODE);
        wb_store_close(store);
        transfer_all(dir);
        store = open_store(dir, WB_STORE_WRITE);
        assert_int_equal(stat_of(store).revisits, PAGES);
        put_range(store, 0, PAGES, 2000); /* the originals */
        wb_store_close(store);
        transfer_all(dir);
        assert_int_equal(count_of_time(dir, 0, PAGES, 3000), PAGES);
        verify_clean(dir);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_away), cmocka_unit_test(test_nothing_there), cmocka_unit_test(test_all_away),
        cmocka_unit_test(test_newer),    cmocka_unit_test(test_taken_down),    cmocka_unit_test(test_full),
        cmocka_unit_test(test_leavers),  cmocka_unit_test(test_revisits),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
