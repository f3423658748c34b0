/*
 * test_transfer.c - the short cuts of a transfer, and when they must not be taken: others write to the update nodes
 * between its stages; a reader holds the state that is given up; many or few pages wait beside many or few that
 * readers have. And the lists that make it fast: ops in the order of ids, and a page found in a list of many.
 */
#include "store_support.h"
#include "move/move.h"
#include "move/transfer.h"
#include "store/repo_ops.h"
#include "os/fault.h"

#include <errno.h>
#include <signal.h>
#include <sys/resource.h>

enum { PAGES = 120 };

static void create_batch(const char *dir, const char *design)
{
    struct wb_store_options options = {.history = {WB_STORE_KEEP_NEWEST, 0}};

    must_ok(wb_design_parse(wb_slice_str(design), &options.design));
    must_ok(wb_store_create(dir, &options));
}

static struct spec page_spec(uint32_t number, int64_t time_ms)
{
    return (struct spec){.site = number % 7, .number = number, .time_ms = time_ms, .size = 300 + number % 5 * 50};
}

static void put_range(struct wb_store *store, uint32_t first, uint32_t end, int64_t time_ms)
{
    for (uint32_t i = first; i < end; i++) {
        struct spec spec = page_spec(i, time_ms);
        must_ok(put_spec(store, &spec));
    }
    commit_store(store);
}

static void expect_range(struct wb_store *store, uint32_t first, uint32_t end, int64_t time_ms)
{
    for (uint32_t i = first; i < end; i++) {
        struct spec spec = page_spec(i, time_ms);
        if (!holds_spec(store, &spec))
            fail_msg("page %u is not that of %lld", i, (long long)time_ms);
    }
}

static struct wb_store_stat stat_of(struct wb_store *store)
{
    struct wb_store_stat stat;

    must_ok(wb_store_stat(store, &stat));
    return stat;
}

static struct wb_move_transfer_counts transfer(struct wb_store *store)
{
    struct wb_move_transfer_counts counts;

    must_ok(wb_move_transfer(store, NULL, NULL, NULL, NULL, &counts));
    return counts;
}

/* ---- others write meanwhile -------------------------------------------------------------------------------- */

/* What another process does after a stage. */
enum meddling { NEW_PAGE, NEWER_VERSION, SAME_PLACE, SEEN_AGAIN, GONE, TAKEN_DOWN, MEDDLINGS };

struct meddler {
    char dir[DIR_MAX];
    const char *stage;
    enum meddling kind;
    bool done;
};

static void meddle(void *context, const struct wb_move_stage *stage)
{
    struct meddler *m = context;
    struct spec spec = page_spec(3, 2000), fresh = page_spec(PAGES, 2000);

    if (strcmp(stage->name, m->stage) != 0)
        return;
    struct wb_store *other = open_store(m->dir, WB_STORE_WRITE);
    m->done = true;
    switch (m->kind) {
    case NEW_PAGE:
        must_ok(put_spec(other, &fresh));
        break;
    case NEWER_VERSION:
        must_ok(put_spec(other, &spec));
        break;
    case SAME_PLACE: /* all of them once more, so that blocks with the same pages in the same slots follow */
        put_range(other, 0, PAGES, 2000);
        break;
    case SEEN_AGAIN:
        must_ok(wb_store_touch(other, spec_id(&spec), 2000));
        break;
    case GONE:
        must_ok(remove_spec(other, &spec, false));
        break;
    case TAKEN_DOWN:
        must_ok(bar_spec(other, &spec, WB_STORE_BAR_PAGE, false));
        (void)remove_spec(other, &spec, true); /* it may have been taken away already */
        break;
    case MEDDLINGS:
        break;
    }
    commit_store(other);
    wb_store_close(other);
}

/* What writers see at any time, and readers at last. */
static void expect_end(struct wb_store *store, enum meddling kind)
{
    struct wb_pageid id = spec_id(&(struct spec){.site = 3, .number = 3});
    int64_t time_ms = 0;
    int err = wb_store_time(store, id, &time_ms);

    expect_range(store, 0, 3, kind == SAME_PLACE ? 2000 : 1000);
    expect_range(store, 4, PAGES, kind == SAME_PLACE ? 2000 : 1000);
    if (kind == NEWER_VERSION || kind == SAME_PLACE)
        expect_range(store, 3, 4, 2000);
    if (kind == NEW_PAGE)
        expect_range(store, PAGES, PAGES + 1, 2000);
    assert_int_equal(err, kind == GONE || kind == TAKEN_DOWN ? WB_E_NOTFOUND : 0);
    assert_int_equal(time_ms, err < 0 ? 0 : kind == NEW_PAGE ? 1000 : 2000);
    assert_int_equal(stat_of(store).pages, PAGES + (kind == NEW_PAGE) - (err < 0));
}

/* Every page that readers see while some of it waits is one that was put, with the time with which it was put. */
static void expect_one_of_two(struct wb_store *reader)
{
    struct sights found = {0};

    scan_all(reader, &(struct wb_store_scan_options){0}, WITHOUT_EPOCH, &found);
    for (size_t i = 0; i < found.count; i++) {
        uint32_t number = 0;
        while (number < PAGES &&
               !wb_pageid_equal(found.list[i].id, spec_id(&(struct spec){.site = number % 7, .number = number})))
            number++;
        if (number == 3) /* which may have been seen again */
            continue;
        struct spec spec = page_spec(number, found.list[i].time_ms);
        must(spec.time_ms == 1000 || spec.time_ms == 2000);
        must(holds_spec(reader, &spec));
    }
    sights_release(&found);
}

static void run_meddler(const char *design, const char *stage, enum meddling kind)
{
    struct meddler m = {.stage = stage, .kind = kind};
    struct wb_move_transfer_counts counts;

    test_dir(m.dir);
    create_batch(m.dir, design);
    struct wb_store *store = open_store(m.dir, WB_STORE_WRITE);
    put_range(store, 0, PAGES, 1000);
    must_ok(wb_move_transfer(store, meddle, &m, NULL, NULL, &counts));
    must(m.done);
    struct wb_store *reader = open_store(m.dir, WB_STORE_READ);
    expect_one_of_two(reader);
    uint64_t waiting = kind == SAME_PLACE ? PAGES : kind == TAKEN_DOWN ? 0 : 1;
    if (stat_of(store).pages_waiting != waiting)
        fail_msg("after %s, kind %d: %llu pages wait", stage, kind, (unsigned long long)stat_of(store).pages_waiting);
    verify_clean(m.dir);
    wb_store_close(store);
    store = open_store(m.dir, WB_STORE_WRITE);
    transfer(store);
    assert_int_equal(stat_of(store).pages_waiting, 0);
    expect_end(reader, kind);
    wb_store_close(reader);
    wb_store_close(store);
    verify_clean(m.dir);
}

static void test_meddlers(void **state)
{
    static const char *const stages[] = {"id lists", "intersection", "transfer", "index"};
    static const char *const designs[] = {"Batch[U(hash,log),R(hash,log)]", "Batch[U(hash,hashed-log),R(hash,log)]",
                                          "Batch[U(hash,hashed-log),R(hash,hashed-log)]"};

    (void)state;
    for (size_t d = 0; d < COUNT(designs); d++)
        for (size_t s = 0; s < COUNT(stages); s++)
            for (enum meddling kind = 0; kind < MEDDLINGS; kind++)
                run_meddler(designs[d], stages[s], kind);
}

/* ---- nothing has changed --------------------------------------------------------------------------------------- */

/* Pages, a past, events and revisits: everything that waits is brought, and nothing of it stays. */
static void put_all_kinds(struct wb_store *store, int64_t since_ms)
{
    struct wb_store_revisit revisit = {
        .time_ms = since_ms + 5000, .has_sha1 = true, .url = WB_SLICE_LIT("http://late.example/")};
    struct spec late = {.site = 2, .number = 7000};

    put_range(store, 0, PAGES, since_ms + 1000);
    put_range(store, 0, 20, since_ms + 2000);
    for (uint32_t i = 20; i < 40; i++)
        must_ok(wb_store_touch(store, spec_id(&(struct spec){.site = i % 7, .number = i}), since_ms + 3000));
    for (uint32_t i = 40; i < 50; i++) {
        struct spec spec = page_spec(i, since_ms + 3000);
        must_ok(remove_spec(store, &spec, false));
    }
    struct wb_buf room = WB_BUF_INIT;
    revisit.id = revisit.original = spec_id(&late);
    revisit.site = spec_site(&late, &room);
    must_ok(wb_store_put_revisit(store, &revisit, NULL));
    wb_buf_release(&room);
    commit_store(store);
}

static uint64_t rows_in(struct wb_catalog_txn *txn)
{
    return wb_catalog_count(txn, WB_CATALOG_PAGES) + wb_catalog_count(txn, WB_CATALOG_HISTORY) +
           wb_catalog_count(txn, WB_CATALOG_EVENTS) + wb_catalog_count(txn, WB_CATALOG_REVISITS) +
           wb_catalog_count(txn, WB_CATALOG_WAITING) + wb_catalog_count(txn, WB_CATALOG_SITES);
}

static int count_entry(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    (void)id;
    *(uint64_t *)context += entry->body_bytes;
    return 0;
}

static void report_damage(void *context, bool problem, uint64_t offset, const char *message)
{
    (void)context;
    (void)offset;
    if (problem)
        fail_msg("%s", message);
}

/* A reader of the update nodes' catalog still sees what it saw, after the tables were given up. */
static void test_held_state(void **state)
{
    char dir[DIR_MAX], update[DIR_MAX];
    struct wb_catalog *catalog;
    struct wb_catalog_txn held, now;
    uint64_t before, after;

    (void)state;
    test_dir(dir);
    create_batch(dir, "Batch[U(hash,log),R(hash,log)]");
    path_in(dir, "update", update);
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    must_ok(wb_store_set_history(store, &(struct wb_store_history){WB_STORE_KEEP_ALL, 0}));
    for (unsigned round = 0; round < 3; round++) {
        put_all_kinds(store, round * 10000);
        must_ok(wb_catalog_open(update, WB_TREE_READ, &catalog));
        must_ok(wb_catalog_txn_read(catalog, &held));
        uint64_t rows = rows_in(&held);
        must(rows > 0 && wb_catalog_count(&held, WB_CATALOG_PAGES) > 0);
        before = after = 0;
        must_ok(wb_catalog_entry_each(&held, count_entry, &before));
        transfer(store);
        must_ok(wb_catalog_txn_read(catalog, &now));
        assert_int_equal(rows_in(&now), 0);
        wb_catalog_txn_abort(&now);
        put_range(store, 500, 500 + PAGES, round * 10000 + 6000); /* pages that were given up could be written to */
        assert_int_equal(rows_in(&held), rows);
        must_ok(wb_catalog_entry_each(&held, count_entry, &after));
        assert_int_equal(before, after);
        must_ok(wb_catalog_check(&held, report_damage, NULL));
        wb_catalog_txn_abort(&held);
        wb_catalog_close(catalog);
        transfer(store);
    }
    wb_store_close(store);
    verify_clean(dir);
}

/* The files of the update nodes are gone, and what is put afterwards waits as before. */
static void test_emptied(void **state)
{
    char dir[DIR_MAX];

    (void)state;
    test_dir(dir);
    create_batch(dir, "Batch[U(hash,log),R(hash,log)]");
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    put_range(store, 0, PAGES, 1000);
    struct wb_store_stat waiting = stat_of(store);
    assert_int_equal(transfer(store).added, PAGES);
    struct wb_store_stat empty = stat_of(store);
    assert_int_equal(empty.pages, PAGES);
    assert_int_equal(empty.pages_waiting, 0);
    assert_int_equal(empty.files, waiting.files); /* one file less on the one side, one more on the other */
    assert_int_equal(empty.bytes_dead, 0);
    expect_range(store, 0, PAGES, 1000);
    put_range(store, 0, 10, 2000);
    assert_int_equal(stat_of(store).pages_waiting, 10);
    assert_int_equal(transfer(store).replaced, 10);
    expect_range(store, 0, 10, 2000);
    expect_range(store, 10, PAGES, 1000);
    wb_store_close(store);
    verify_clean(dir);
}

/* ---- the intersection ---------------------------------------------------------------------------------------- */

/* Some pages wait, few or many, known or not: both ways to find out which are known give the same counts. */
static void test_intersection(void **state)
{
    static const struct {
        uint32_t there, first, end; /* of the pages that readers have, and of those that wait */
    } cases[] = {{0, 0, 1},       {0, 0, 300},   {300, 0, 1},     {300, 299, 300}, {300, 150, 152},
                 {300, 290, 310}, {300, 0, 300}, {300, 200, 600}, {10, 5, 600},    {300, 300, 301}};

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        char dir[DIR_MAX];
        test_dir(dir);
        create_batch(dir, "Batch[U(hash,log),R(hash,log)]");
        struct wb_store *store = open_store(dir, WB_STORE_WRITE);
        put_range(store, 0, cases[i].there, 1000);
        transfer(store);
        put_range(store, cases[i].first, cases[i].end, 2000);
        struct wb_move_transfer_counts counts = transfer(store);
        uint32_t known = cases[i].there <= cases[i].first ? 0
                         : cases[i].there < cases[i].end  ? cases[i].there - cases[i].first
                                                          : cases[i].end - cases[i].first;
        assert_int_equal(counts.replaced, known);
        assert_int_equal(counts.added, cases[i].end - cases[i].first - known);
        expect_range(store, 0, cases[i].first < cases[i].there ? cases[i].first : cases[i].there, 1000);
        expect_range(store, cases[i].first, cases[i].end, 2000);
        wb_store_close(store);
        verify_clean(dir);
    }
}

/* ---- writes that fail --------------------------------------------------------------------------------------- */

enum { LARGE_PAGES = 50 };

/* Random bodies: together several times as long as what is written at once. */
static struct spec large_spec(uint32_t number, int64_t time_ms)
{
    return (struct spec){.site = number % 3, .number = number, .time_ms = time_ms, .size = 60000, .variant = 5};
}

static void put_large(struct wb_store *store, int64_t time_ms)
{
    for (uint32_t i = 0; i < LARGE_PAGES; i++) {
        struct spec spec = large_spec(i, time_ms);
        must_ok(put_spec(store, &spec));
    }
    commit_store(store);
}

static void expect_large(struct wb_store *store, int64_t time_ms)
{
    for (uint32_t i = 0; i < LARGE_PAGES; i++) {
        struct spec spec = large_spec(i, time_ms);
        must(holds_spec(store, &spec));
    }
}

/*
 * The nth write, sync or allocation of a transfer fails. Whether it finds another way or gives up: nothing is lost, the
 * same handle can try again, and then everything has arrived. Returns false if there were fewer of them.
 */
static bool transfer_with_fault(const char *design, unsigned nodes, unsigned kinds, uint64_t nth, unsigned *saved)
{
    struct wb_store_options options = {.nodes = {.count = nodes}};
    struct wb_move_transfer_counts counts;
    char dir[DIR_MAX];

    test_dir(dir);
    must_ok(wb_design_parse(wb_slice_str(design), &options.design));
    must_ok(wb_store_create(dir, &options));
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    put_large(store, 1000);
    transfer(store);
    put_large(store, 2000);
    wb_fault_arm(kinds, nth, ENOSPC);
    int err = wb_move_transfer(store, NULL, NULL, NULL, NULL, &counts);
    wb_fault_disarm();
    bool struck = wb_fault_struck();
    must(err == 0 || struck);
    *saved += err == 0 && struck;
    if (err < 0)
        (void)wb_move_transfer(store, NULL, NULL, NULL, NULL, &counts); /* a node may rest for a moment */
    wb_store_close(store);
    store = open_store(dir, WB_STORE_WRITE);
    transfer(store);
    expect_large(store, 2000);
    assert_int_equal(stat_of(store).pages_waiting, 0);
    wb_store_close(store);
    verify_clean(dir);
    return struck;
}

static void test_faults(void **state)
{
    static const struct {
        const char *design;
        unsigned nodes;
    } cases[] = {{"Batch[U(hash,log),R(hash,log)]", 1},
                 {"Batch[U(hash,log),R(uniform,log)]", 2},
                 {"Batch[U(hash,hashed-log),R(hash,hashed-log)]", 1}};
    static const unsigned kinds[] = {WB_FAULT_WRITE, WB_FAULT_SYNC};
    uint64_t chance = test_seed();
    unsigned saved = 0;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++)
        for (size_t k = 0; k < COUNT(kinds); k++)
            for (uint64_t nth = 1; transfer_with_fault(cases[i].design, cases[i].nodes, kinds[k], nth, &saved);)
                nth += i == 1 ? 1 : 1 + chance_below(&chance, 400 / test_rounds(100));
    for (uint64_t nth = 1; transfer_with_fault(cases[1].design, 2, WB_FAULT_ALLOC, nth, &saved);)
        nth += 1 + chance_below(&chance, 10000 / test_rounds(100));
    assert_true(saved > 0); /* a block that could not be written where it belongs has found another place */
}

static int count_used_node(void *context, const struct wb_store_node *node)
{
    *(unsigned *)context += node->number < WB_BATCHED_FIRST_NODE && node->pages > 0;
    return 0;
}

/* Files become as long as the system allows, in the middle of a run: the other blocks go to the other node. */
static void test_full_node(void **state)
{
    struct wb_store_options options = {.nodes = {.count = 2}};
    struct rlimit before, limit;
    unsigned nodes = 0;
    char dir[DIR_MAX];

    (void)state;
    test_dir(dir);
    must_ok(wb_design_parse(WB_SLICE_LIT("Batch[U(hash,log),R(uniform,log)]"), &options.design));
    must_ok(wb_store_create(dir, &options));
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    put_large(store, 1000);
    signal(SIGXFSZ, SIG_IGN);
    must(getrlimit(RLIMIT_FSIZE, &before) == 0);
    limit = (struct rlimit){LARGE_PAGES * 60000 * 2 / 3, before.rlim_max};
    must(setrlimit(RLIMIT_FSIZE, &limit) == 0);
    assert_int_equal(transfer(store).added, LARGE_PAGES);
    must(setrlimit(RLIMIT_FSIZE, &before) == 0);
    expect_large(store, 1000);
    must_ok(wb_store_node_each(store, count_used_node, &nodes));
    assert_int_equal(nodes, 2);
    put_large(store, 2000);
    transfer(store);
    expect_large(store, 2000);
    wb_store_close(store);
    verify_clean(dir);
}

/* ---- lists ------------------------------------------------------------------------------------------------------ */

static int compare_ids(const void *a, const void *b)
{
    return wb_pageid_compare(((const struct wb_transfer_page *)a)->id, ((const struct wb_transfer_page *)b)->id);
}

/* Ids as they are, and as somebody may choose them: close together, or at both ends. */
static struct wb_pageid some_id(uint64_t *chance, unsigned kind)
{
    struct wb_pageid id = {chance_next(chance), chance_next(chance)};

    if (kind == 1)
        id.hi = UINT64_C(1) << 63 | id.hi >> 50;
    else if (kind == 2)
        id.hi = id.hi & 1 ? UINT64_MAX - (id.hi >> 60) : id.hi >> 60;
    else if (kind == 3)
        id.hi = 7;
    id.lo &= ~UINT64_C(1); /* odd ones are not in the list */
    return id;
}

static void test_find(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (unsigned kind = 0; kind < 4; kind++)
        for (size_t count = 0; count < 3000; count = count * 2 + 1) {
            struct wb_transfer t = {0};
            for (size_t i = 0; i < count; i++)
                must_ok(wb_vec_push(&t.pages, (struct wb_transfer_page){.id = some_id(&chance, kind)}));
            if (count)
                qsort(t.pages.items, count, sizeof *t.pages.items, compare_ids);
            must_ok(wb_transfer_divide(&t));
            for (size_t i = 0; i < count; i++) {
                struct wb_pageid id = t.pages.items[i].id, absent = {id.hi, id.lo + 1};
                must(wb_transfer_find(&t, id) == &t.pages.items[i]);
                must(wb_transfer_find(&t, absent) == NULL);
            }
            must(wb_transfer_find(&t, (struct wb_pageid){0, 1}) == NULL);
            must(wb_transfer_find(&t, (struct wb_pageid){UINT64_MAX, UINT64_MAX}) == NULL);
            wb_vec_release(&t.pages);
            wb_vec_release(&t.starts);
        }
}

static void test_order(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (unsigned kind = 0; kind < 4; kind++)
        for (size_t count = 0; count < 3000; count = count * 2 + 1) {
            struct wb_op *ops = calloc(count + 1, sizeof *ops);
            uint32_t *order = calloc(count + 1, sizeof *order);
            must(ops && order);
            for (size_t i = 0; i < count; i++) /* some pages several times */
                ops[i].id = i && chance_one_in(&chance, 4) ? ops[chance_below(&chance, i)].id : some_id(&chance, kind);
            must_ok(wb_repo_order_ops(ops, count, order));
            for (size_t i = 1; i < count; i++) {
                int way = wb_pageid_compare(ops[order[i - 1]].id, ops[order[i]].id);
                must(way < 0 || (way == 0 && order[i - 1] < order[i]));
            }
            free(order);
            free(ops);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_find),      cmocka_unit_test(test_order),      cmocka_unit_test(test_intersection),
        cmocka_unit_test(test_emptied),   cmocka_unit_test(test_held_state), cmocka_unit_test(test_meddlers),
        cmocka_unit_test(test_full_node), cmocka_unit_test(test_faults),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
