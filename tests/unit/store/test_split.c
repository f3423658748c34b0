/*
 * test_split.c - segments that are divided by page ids: nothing that a reader sees changes, not even the order of pages
 * or what a position means; scans that were under way go on; compaction and takedowns reach all parts; and a process
 * that is killed while it divides leaves everything as it was, or all of it done. A plan that is late changes nothing.
 */
#include "lines_support.h"
#include "move/move.h"
#include "move/mover.h"
#include "pagefile/segment_tail.h"

#include <signal.h>
#include <unistd.h>

static char dir[DIR_MAX];

static struct wb_store *new_store(uint64_t *chance, int64_t *clock)
{
    struct wb_store_history keep = {.keep = chance_one_in(chance, 2) ? WB_STORE_KEEP_ALL : WB_STORE_KEEP_NEWEST};

    test_dir(dir);
    create_store_as(dir, keep);
    use_small_sizes(16000 + chance_below(chance, 200000));
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    change_some(store, chance, clock, 10 + (unsigned)chance_below(chance, 20));
    return store;
}

/* ---- dividing ------------------------------------------------------------------------------------------------ */

/* Fills in the bins of a range, some of which may be divided further. Returns how many there are. */
static size_t choose_bins(struct wb_catalog_range range, uint64_t *chance, unsigned depth, struct wb_bin *bins)
{
    if (depth == 0 || range.bits >= 20 || (depth < 3 && chance_one_in(chance, 3))) {
        bins[0] = (struct wb_bin){1, range};
        return 1;
    }
    struct wb_catalog_range low = {.prefix = range.prefix, .bits = range.bits + 1};
    struct wb_catalog_range high = {.prefix = range.prefix | (uint64_t)1 << (63 - range.bits), .bits = range.bits + 1};
    size_t count = choose_bins(low, chance, depth - 1, bins);
    return count + choose_bins(high, chance, depth - 1, bins + count);
}

/* Divides a random segment. Writers of other handles may have locked it. */
static int divide_one(struct wb_store *store, uint64_t *chance)
{
    struct wb_repo *repo = wb_repo_of(store);
    struct wb_bin bins[WB_BINS_MAX];
    struct wb_overview o;
    int err = 0;

    wb_tails_release(&repo->files);
    must_ok(wb_pagefile_overview(&repo->files, &o));
    if (o.rows.count) {
        struct wb_catalog_segment row = o.rows.items[chance_below(chance, o.rows.count)];
        const struct wb_bin whole = {1, row.range};
        size_t count = choose_bins(row.range, chance, 1 + (unsigned)chance_below(chance, 3), bins);
        err = chance_one_in(chance, 5) ? wb_move_file(repo, &row, &whole, 1, WB_MOVE_REFUSE)
                                       : wb_move_file(repo, &row, bins, count, WB_MOVE_REFUSE);
    }
    wb_catalog_rows_release(&o.rows);
    return err;
}

static void divide_some(struct wb_store *store, uint64_t *chance, unsigned times)
{
    for (unsigned i = 0; i < times; i++)
        must_ok(divide_one(store, chance));
    must_ok(wb_pagefile_purge(&wb_repo_of(store)->files));
}

static void compact(struct wb_store *store)
{
    struct wb_move_compact_counts counts;

    must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &counts));
}

/* ---- tests ----------------------------------------------------------------------------------------------------- */

/* Compares everything that can be asked for with what it was. */
static void test_nothing_changes(void **state)
{
    (void)state;
    seed = test_seed();
    for (unsigned round = 0; round < test_rounds(12); round++) {
        uint64_t chance = seed + round;
        int64_t clock = 1000000;
        struct wb_store *store = new_store(&chance, &clock);
        uint32_t snapshot = seal_store(store);
        change_some(store, &chance, &clock, 5);
        char site[64];
        struct wb_buf room = WB_BUF_INIT;
        struct wb_slice name = spec_site(&(struct spec){.site = 1, .number = 1}, &room);
        snprintf(site, sizeof site, "%.*s", (int)name.len, name.ptr);
        wb_buf_release(&room);
        const struct wb_store_scan_options options[] = {
            {0},
            {.snapshot = snapshot},
            {.part = 1, .parts = 3},
            {.part = 3, .parts = 3},
            {.gone = true},
            {.site = wb_slice_str(site)},
            {.since = 12},
        };
        struct lines before[COUNT(options)][2] = {0};
        for (size_t i = 0; i < COUNT(options); i++)
            for (int p = 0; p < 2; p++)
                all_lines(store, &options[i], p, &before[i][p]);
        for (unsigned k = 0; k < 3; k++) {
            divide_some(store, &chance, 1 + (unsigned)chance_below(&chance, 6));
            for (size_t i = 0; i < COUNT(options); i++)
                for (int p = 0; p < 2; p++) {
                    struct lines after = {0};
                    all_lines(store, &options[i], p, &after);
                    must_be_same(p ? "parcels" : "pages", &after, &before[i][p]);
                    lines_release(&after);
                }
            verify_clean(dir);
        }
        struct wb_buf memory = WB_BUF_INIT;
        for (size_t i = 0; i < before[0][0].count; i++) {
            struct wb_page page;
            must_ok(wb_store_get(store, before[0][0].list[i].id, &page, &memory));
            must(page_hash(&page, 0) == before[0][0].list[i].hash);
        }
        wb_buf_release(&memory);
        for (size_t i = 0; i < COUNT(options) * 2; i++)
            lines_release(&before[i / 2][i % 2]);
        wb_store_close(store);
        verify_clean(dir);
    }
}

/* Scans go on while segments are divided, moved and compacted, and while pages change; some are interrupted and
 * resumed. */
static void test_scans_go_on(void **state)
{
    (void)state;
    seed = test_seed();
    for (unsigned round = 0; round < test_rounds(30); round++) {
        uint64_t chance = seed + round;
        int64_t clock = 1000000;
        struct wb_store *store = new_store(&chance, &clock);
        uint32_t snapshot = seal_store(store);
        bool parcels = chance_one_in(&chance, 2);
        struct wb_store_scan_options options = {.snapshot = snapshot};
        struct lines before = {0}, found = {0};
        struct parcel_reader reader = {0};
        struct wb_store_position position;

        takedowns = false;
        all_lines(store, &options, parcels, &before);
        must_ok(wb_store_scan_open(store, &options, &reader.scan));
        while (read_lines(&reader, parcels, 1 + chance_below(&chance, 60), &found)) {
            position = found.list[found.count - 1].position;
            if (chance_one_in(&chance, 2))
                must_ok(divide_one(store, &chance));
            if (chance_one_in(&chance, 6))
                change_some(store, &chance, &clock, 1);
            if (chance_one_in(&chance, 10))
                compact(store);
            if (chance_one_in(&chance, 3)) {
                parcel_close(&reader);
                reader = (struct parcel_reader){0};
                options.after = &position;
                must_ok(wb_store_scan_open(store, &options, &reader.scan));
            }
        }
        parcel_close(&reader);
        /* Times and lifetimes of pages that were touched may differ; which pages, and where, may not. */
        must(found.count == before.count);
        for (size_t i = 0; i < found.count; i++)
            if (!wb_pageid_equal(found.list[i].id, before.list[i].id) ||
                memcmp(&found.list[i].position, &before.list[i].position, sizeof position) != 0)
                fail_msg("page %zu of %zu differs (seed %llu)", i, found.count, (unsigned long long)seed);
        lines_release(&before);
        lines_release(&found);
        wb_store_close(store);
        verify_clean(dir);
    }
}

/* What is taken down disappears from all parts. */
static void test_takedown(void **state)
{
    (void)state;
    seed = test_seed();
    for (unsigned round = 0; round < test_rounds(6); round++) {
        uint64_t chance = seed + round;
        struct spec spec = {.site = 1, .time_ms = 1000, .size = 3000, .variant = 5};

        test_dir(dir);
        create_store(dir);
        struct wb_store *store = open_store(dir, WB_STORE_WRITE);
        for (spec.number = 0; spec.number < 60; spec.number++)
            must_ok(put_spec(store, &spec));
        commit_store(store);
        divide_some(store, &chance, 3);
        spec.number = (uint32_t)chance_below(&chance, 60);
        must(files_with(dir, &spec) == 1);
        must_ok(remove_spec(store, &spec, true));
        commit_store(store);
        if (chance_one_in(&chance, 2))
            divide_some(store, &chance, 2);
        compact(store);
        wb_store_close(store);
        wb_store_close(open_store(dir, WB_STORE_WRITE));
        must(files_with(dir, &spec) == 0);
        verify_clean(dir);
    }
}

/* ---- killing -------------------------------------------------------------------------------------------------------
 */

static int divide_forever(void *context)
{
    uint64_t chance = *(uint64_t *)context;
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);

    for (;;) {
        int err = divide_one(store, &chance);
        if (err < 0 && err != WB_E_BUSY)
            return 1;
    }
}

static void test_killed(void **state)
{
    (void)state;
    seed = test_seed();
    uint64_t chance = seed;
    int64_t clock = 1000000;
    struct wb_store *store = new_store(&chance, &clock);
    struct lines before = {0};

    all_lines(store, &(struct wb_store_scan_options){0}, false, &before);
    wb_store_close(store);
    for (unsigned round = 0; round < test_rounds(20); round++) {
        uint64_t start = chance_next(&chance);
        pid_t child = start_child(divide_forever, &start);
        usleep((useconds_t)chance_below(&chance, 60000));
        kill(child, SIGKILL);
        must(end_child(child) == -SIGKILL);
        verify_clean(dir);
        store = open_store(dir, WB_STORE_WRITE);
        struct lines after = {0};
        all_lines(store, &(struct wb_store_scan_options){0}, false, &after);
        must_be_same("after a kill", &after, &before);
        lines_release(&after);
        if (chance_one_in(&chance, 4)) {
            compact(store);
            change_some(store, &chance, &clock, 1);
            lines_release(&before);
            all_lines(store, &(struct wb_store_scan_options){0}, false, &before);
        }
        wb_store_close(store);
    }
    lines_release(&before);
}

/* Another process stores and removes pages while segments are divided. */
static int change_forever(void *context)
{
    uint64_t chance = *(uint64_t *)context;
    int64_t clock = 5000000;
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);

    for (unsigned i = 0; i < 60; i++)
        change_some(store, &chance, &clock, 1);
    wb_store_close(store);
    return 0;
}

static void test_beside_a_writer(void **state)
{
    (void)state;
    seed = test_seed();
    for (unsigned round = 0; round < test_rounds(8); round++) {
        uint64_t chance = seed + round, start = chance_next(&chance);
        int64_t clock = 1000000;
        unsigned divided = 0;

        wb_store_close(new_store(&chance, &clock));
        pid_t child = start_child(change_forever, &start);
        struct wb_store *store = open_store(dir, WB_STORE_WRITE);
        for (unsigned i = 0; i < 40; i++) {
            int err = divide_one(store, &chance);
            must_ok(err == WB_E_BUSY ? 0 : err);
            divided += err == 0;
        }
        wb_store_close(store);
        must(end_child(child) == 0);
        must(divided > 0);
        verify_clean(dir);
    }
}

/* ---- what dead pages took ------------------------------------------------------------------------------------- */

enum { RANGES = 16, FULL_RANGES = 8, LARGE = 40000 };

/* Number `at` among the pages whose ids begin with this digit. */
static struct spec page_in_range(uint64_t digit, unsigned at)
{
    struct spec spec = {.site = 1, .time_ms = 1000, .size = LARGE};

    while (spec_id(&spec).hi >> 60 != digit || at-- > 0)
        spec.number++;
    return spec;
}

/* Puts a page with the body of another one. */
static void put_alike(struct wb_store *store, const struct spec *spec, const struct spec *like)
{
    struct made made, other;

    make_page(spec, &made);
    make_page(like, &other);
    made.page.body = other.page.body;
    wb_page_digest(&made.page);
    must_ok(wb_store_put(store, &made.page, NULL));
    made_release(&made);
    made_release(&other);
}

static int check_fragmentation(void *context, const struct wb_store_node *node)
{
    must(node->fragmentation <= 1);
    *(double *)context = node->fragmentation;
    return 0;
}

/*
 * Pages in pairs, with the same content that cannot be compressed. Each pair is in different frames of a block, and
 * alone in a part after the split, where it takes half as much. What its entries say is then more than there is.
 */
static void test_dead_bytes(void **state)
{
    struct wb_bin bins[RANGES];
    struct wb_overview o;
    struct wb_store_stat stat;
    uint64_t bytes = 0;
    unsigned beyond = 0;
    double fragmentation = 0;

    (void)state;
    test_dir(dir);
    create_store(dir);
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    struct wb_repo *repo = wb_repo_of(store);
    for (uint64_t digit = 0; digit < RANGES; digit++) {
        struct spec first = page_in_range(digit, 0), second = page_in_range(digit, 1), third = page_in_range(digit, 2);
        bins[digit] = (struct wb_bin){1, {.prefix = digit << 60, .bits = 4}};
        third.size = 100; /* stays alive, so that what is dead must be estimated */
        must_ok(put_spec(store, &third));
        if (digit < FULL_RANGES) {
            put_alike(store, &first, &first);
            put_alike(store, &second, &first);
        }
    }
    commit_store(store);
    wb_tails_release(&repo->files);
    must_ok(wb_pagefile_overview(&repo->files, &o));
    must_ok(wb_move_file(repo, &o.rows.items[0], bins, RANGES, WB_MOVE_REFUSE));
    wb_catalog_rows_release(&o.rows);
    for (uint64_t digit = 0; digit < FULL_RANGES; digit++)
        for (unsigned i = 0; i < 2; i++) {
            struct spec spec = page_in_range(digit, i);
            spec.time_ms = 2000;
            spec.size = 10;
            must_ok(put_spec(store, &spec));
        }
    commit_store(store);
    must_ok(wb_pagefile_purge(&repo->files)); /* the file that was split */
    must_ok(wb_pagefile_overview(&repo->files, &o));
    for (size_t i = 0; i < o.rows.count; i++) {
        beyond += o.rows.items[i].bytes_dead > o.rows.items[i].bytes;
        bytes += o.rows.items[i].bytes;
    }
    wb_catalog_rows_release(&o.rows);
    assert_true(beyond >= FULL_RANGES - 1); /* pages of one pair may be in the lead, which counts as nothing */
    must_ok(wb_store_stat(store, &stat));
    assert_in_range(stat.bytes_dead, bytes / 2, bytes);
    must_ok(wb_store_node_each(store, check_fragmentation, &fragmentation));
    assert_true(fragmentation > 0.5);
    compact(store);
    must_ok(wb_pagefile_purge(&repo->files));
    must_ok(wb_store_stat(store, &stat));
    assert_int_equal(stat.bytes_dead, 0);
    wb_store_close(store);
    verify_clean(dir);
}

/* ---- plans that are late, and dead pages ---------------------------------------------------------------------- */

static void put_many(struct wb_store *store, unsigned count)
{
    struct spec spec = {.site = 1, .time_ms = 1000, .size = 2000};

    for (; spec.number < count; spec.number++)
        must_ok(put_spec(store, &spec));
    commit_store(store);
    wb_tails_release(&wb_repo_of(store)->files);
}

/* A file that somebody else has divided since it was looked at stays as it is; one that is moved loses its dead pages.
 */
static void test_late_and_dead(void **state)
{
    struct wb_bin halves[] = {{.node = 1}, {.node = 1}}; /* the cells with even and with odd numbers */
    struct wb_overview before, after;
    uint64_t live = 0;

    (void)state;
    for (uint32_t cell = 0; cell < WB_CELLS; cell++)
        wb_cells_add(&halves[1 - cell % 2].range.gaps, cell);
    test_dir(dir);
    create_store(dir);
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    struct wb_repo *repo = wb_repo_of(store);
    put_many(store, 80);
    must_ok(wb_pagefile_overview(&repo->files, &before));
    assert_int_equal(before.rows.count, 1);
    must_ok(wb_move_file(repo, &before.rows.items[0], halves, COUNT(halves), WB_MOVE_REFUSE));
    must(wb_move_file(repo, &before.rows.items[0], halves, COUNT(halves), WB_MOVE_REFUSE) == WB_E_BUSY);
    wb_catalog_rows_release(&before.rows);
    verify_clean(dir);

    struct spec spec = {.site = 1, .time_ms = 2000, .size = 2000};
    for (; spec.number < 80; spec.number++)
        if (spec.number % 10)
            must_ok(remove_spec(store, &spec, false));
    commit_store(store);
    must_ok(wb_pagefile_overview(&repo->files, &before));
    for (size_t i = 0; i < before.rows.count; i++) {
        const struct wb_bin whole = {1, before.rows.items[i].range};
        must(before.rows.items[i].pages > before.rows.items[i].live);
        live += before.rows.items[i].live;
        must_ok(wb_move_file(repo, &before.rows.items[i], &whole, 1, WB_MOVE_REFUSE));
    }
    must_ok(wb_pagefile_overview(&repo->files, &after));
    assert_int_equal(after.rows.count, before.rows.count);
    for (size_t i = 0; i < after.rows.count; i++) {
        assert_int_equal(after.rows.items[i].pages, after.rows.items[i].live);
        assert_true(after.rows.items[i].bytes < before.rows.items[i].bytes);
        live -= after.rows.items[i].live;
    }
    assert_int_equal(live, 0);
    wb_catalog_rows_release(&before.rows);
    wb_catalog_rows_release(&after.rows);
    wb_store_close(store);
    verify_clean(dir);
}

static int reset(void **state)
{
    (void)state;
    takedowns = true;
    use_usual_sizes();
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(test_nothing_changes, reset), cmocka_unit_test_teardown(test_scans_go_on, reset),
        cmocka_unit_test_teardown(test_takedown, reset),        cmocka_unit_test_teardown(test_killed, reset),
        cmocka_unit_test_teardown(test_beside_a_writer, reset), cmocka_unit_test_teardown(test_dead_bytes, reset),
        cmocka_unit_test_teardown(test_late_and_dead, reset),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
