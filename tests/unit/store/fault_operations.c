/* fault_operations.c - see fault_operations.h. */
#include "fault_operations.h"
#include "move/move.h"
#include "move/mover.h"
#include "os/fault.h"
#include "pagefile/hash_store.h"
#include "parcel_support.h"

char template_dir[DIR_MAX], work_dir[DIR_MAX];
struct wb_store *store;
uint64_t chance;

struct made new_pages[NEW_PAGES];
static struct made small_page;
static struct sights sealed[SNAPSHOTS];
static struct wb_pageid site1_ids[NUMBERS];

struct spec spec_of(uint32_t site, uint32_t number, int64_t time_ms)
{
    return (struct spec){
        .site = site, .number = number, .time_ms = time_ms, .size = 700 * number + 10, .variant = site * 10 + number};
}

static void make_pages(void)
{
    struct spec spec;

    for (uint32_t i = 0; i < NEW_PAGES; i++) {
        spec = spec_of(i % SITES, 100 + i, 2000);
        spec.size = 3700 + i * 7;
        make_page(&spec, &new_pages[i]);
    }
    spec = spec_of(2, 50, 3000);
    make_page(&spec, &small_page);
    for (uint32_t i = 0; i < NUMBERS; i++)
        site1_ids[i] = spec_id(&(struct spec){.site = 1, .number = i});
}

int release_pages(void **state)
{
    (void)state;
    for (size_t i = 0; i < SNAPSHOTS; i++)
        sights_release(&sealed[i]);
    for (size_t i = 0; i < NEW_PAGES; i++)
        made_release(&new_pages[i]);
    made_release(&small_page);
    return 0;
}

int make_template(void **state)
{
    (void)state;
    chance = test_seed();
    make_pages();
    use_small_sizes(9000);
    test_dir(template_dir);
    test_dir(work_dir);
    create_store(template_dir);
    store = open_store(template_dir, WB_STORE_WRITE);
    for (int64_t round = 0; round < 4; round++) {
        for (uint32_t site = 0; site < SITES; site++)
            for (uint32_t number = 0; number < NUMBERS; number++)
                if (round == 0 || (site + number) % 3 == round - 1) {
                    struct spec spec = spec_of(site, number, 1000 + round);
                    must_ok(put_spec(store, &spec));
                }
        if (round < SNAPSHOTS)
            must(seal_store(store) == round + 1);
        else
            commit_store(store);
    }
    must_ok(wb_store_put_revisit(
        store,
        &(struct wb_store_revisit){
            .id = {1, 2}, .site = WB_SLICE_LIT("revisited.example"), .time_ms = 5, .original = {1, 3}},
        NULL));
    must_ok(remove_spec(store, &(struct spec){.site = 0, .number = 7}, true));
    commit_store(store);
    for (uint32_t i = 0; i < SNAPSHOTS; i++)
        scan_all(store, &(struct wb_store_scan_options){.snapshot = i + 1}, WITHOUT_EPOCH, &sealed[i]);
    wb_store_close(store);
    store = NULL;
    verify_clean(template_dir);
    return 0;
}

static bool is_removed(uint32_t site, uint32_t number)
{
    return site == 0 && number == 7;
}

/* A snapshot is there as it was sealed, or was dropped. */
static void check_snapshots(struct wb_store *s)
{
    for (uint32_t i = 0; i < SNAPSHOTS; i++) {
        struct sights found = {0};
        struct wb_store_scan *scan;
        int err = wb_store_scan_open(s, &(struct wb_store_scan_options){.snapshot = i + 1}, &scan);
        must(err == 0 || err == WB_E_NOTFOUND);
        if (err == 0) {
            drain_scan(scan, WITHOUT_EPOCH, &found);
            compare_sights("a snapshot after a fault", &found, &sealed[i]);
        }
        sights_release(&found);
    }
}

void check_pages(struct wb_store *s)
{
    check_snapshots(s);
    for (uint32_t site = 0; site < SITES; site++)
        for (uint32_t number = 0; number < NUMBERS; number++) {
            struct spec spec = spec_of(site, number, 1001 + (site + number) % 3);
            if (!is_removed(site, number))
                must(holds_spec(s, &spec));
        }
}

/* ---- the operations: each returns the error of what it does -------------------------------------- */

int do_put(void)
{
    int err = 0;

    for (size_t i = 0; i < NEW_PAGES && err == 0; i++)
        err = wb_store_put(store, &new_pages[i].page, NULL);
    return err;
}

int do_commit(void)
{
    struct wb_store_commit_counts counts = {0};
    int err = do_put();

    return err < 0 ? err : wb_store_commit(store, &counts);
}

int do_commit_only(void)
{
    return wb_store_commit(store, &(struct wb_store_commit_counts){0});
}

static int do_snapshot(void)
{
    const struct wb_store_holder person = {.kind = WB_STORE_HOLDER_PERSON};
    struct wb_store_snapshot snapshot;
    int err = wb_store_seal(store, WB_SLICE_LIT("second"), &person, &snapshot);

    wb_store_snapshot_release(&snapshot);
    return err;
}

static int do_drop(void)
{
    return wb_store_drop(store, 1);
}

/* A second holder comes and goes. */
static int do_hold(void)
{
    const struct wb_store_holder stream = {.kind = WB_STORE_HOLDER_STREAM, .name = "stream"};
    int err = wb_store_hold(store, 2, &stream);

    if (err == 0)
        err = wb_store_drop(store, 2);
    return err == WB_E_BUSY ? wb_store_let_go(store, 2, &stream) : err;
}

static int do_set_history(void)
{
    struct wb_store_history history;
    int err = wb_store_set_history(store, &(struct wb_store_history){WB_STORE_KEEP_COUNT, 2});

    if (err == 0)
        err = wb_store_history(store, &history);
    must(err < 0 || (history.keep == WB_STORE_KEEP_COUNT && history.value == 2));
    return err;
}

int do_forget(void)
{
    struct wb_move_compact_counts compact;
    int err = wb_store_set_history(store, &(struct wb_store_history){WB_STORE_KEEP_NEWEST, 0});

    if (err == 0)
        err = wb_store_drop(store, 1);
    return err < 0 ? err : wb_move_compact(store, NULL, NULL, NULL, NULL, &compact);
}

static int note_nothing(void *context, size_t index, int err, const struct wb_page *page)
{
    (void)context, (void)index, (void)page;
    return err;
}

/* Old versions, one by one and many at once. */
static int do_get_versions(void)
{
    const struct wb_store_when sealed_one = {.kind = WB_STORE_WHEN_SNAPSHOT, .snapshot = 1},
                               early = {.kind = WB_STORE_WHEN_TIME, .time_ms = 1000};
    struct wb_buf memory = WB_BUF_INIT;
    struct wb_store_timeline timeline = {0};
    struct wb_page page;
    int err = 0;

    for (uint32_t number = 0; number < NUMBERS && err == 0; number++) {
        err = wb_store_get_when(store, site1_ids[number], &sealed_one, &page, &memory);
        must(err < 0 || page.time_ms == 1000);
        if (err == 0)
            err = wb_store_timeline(store, site1_ids[number], &timeline);
        wb_store_timeline_release(&timeline);
    }
    wb_buf_release(&memory);
    return err < 0 ? err : wb_store_get_many(store, site1_ids, NUMBERS, &early, note_nothing, NULL);
}

static int do_get(void)
{
    struct wb_buf memory = WB_BUF_INIT;
    struct wb_page page;
    int err = 0;

    for (uint32_t number = 0; number < NUMBERS && err == 0; number++)
        err = wb_store_get(store, site1_ids[number], &page, &memory);
    wb_buf_release(&memory);
    return err;
}

static int do_scan(void)
{
    struct wb_store_scan_options options = {.snapshot = 1, .site = WB_SLICE_LIT("site1.example")};
    struct wb_store_scan *scan;
    struct wb_page page;
    int more, err = wb_store_scan_open(store, &options, &scan);

    if (err < 0)
        return err;
    while ((more = wb_store_scan_next(scan, &page)) > 0)
        ;
    wb_store_scan_close(scan);
    return more;
}

/* Blocks as they are, blocks that are rebuilt, and pages that are gone. */
static int do_parcels(void)
{
    struct wb_store_scan_options options = {.snapshot = 1, .site = WB_SLICE_LIT("site1.example")};
    int more = 1;

    for (int i = 0; i < 2 && more >= 0; i++) {
        struct parcel_reader reader = {0};
        struct wb_page page;
        if (i)
            options = (struct wb_store_scan_options){.gone = true};
        more = wb_store_scan_open(store, &options, &reader.scan);
        while (more >= 0 && (more = parcel_next(&reader, &page)) > 0)
            ;
        parcel_close(&reader);
    }
    return more;
}

int do_compact(void)
{
    struct wb_move_compact_counts compact;

    return wb_move_compact(store, NULL, NULL, NULL, NULL, &compact);
}

/* Divides a segment in two, then moves all of them to where they are. */
static int do_divide(void)
{
    struct wb_repo *repo = wb_repo_of(store);
    const struct wb_bin halves[] = {{1, {.bits = 1}}, {1, {.prefix = (uint64_t)1 << 63, .bits = 1}}};
    struct wb_overview o = {0};
    int err = wb_pagefile_overview(&repo->files, &o);

    for (size_t i = 0; i < o.rows.count && err == 0; i++) {
        const struct wb_catalog_segment *row = &o.rows.items[i];
        const struct wb_bin whole = {1, row->range};
        bool divide = row->range.bits == 0 && (i % 2 || repo->files.hash);
        err = wb_move_file(repo, row, divide ? halves : &whole, divide ? COUNT(halves) : 1, WB_MOVE_REFUSE);
    }
    wb_catalog_rows_release(&o.rows);
    if (err == 0)
        err = wb_pagefile_purge(&repo->files);
    wb_repo_decide(repo);
    return err;
}

static int do_stat(void)
{
    struct wb_store_stat stat;

    return wb_store_stat(store, &stat);
}

static int do_small_ops(void)
{
    struct wb_pageid id = small_page.page.id;
    struct wb_store_revisit revisit = {
        .id = id, .site = wb_key_site(small_page.page.key), .time_ms = 7, .has_sha1 = true, .original = {1, 2}};
    int err = wb_store_put(store, &small_page.page, NULL);

    if (err == 0)
        err = wb_store_touch(store, id, 4000);
    if (err == 0)
        err = wb_store_put_revisit(store, &revisit, NULL);
    if (err == 0)
        err = wb_store_get_revisit(store, id, &revisit);
    if (err == 0)
        err = wb_store_remove(store, id, wb_key_site(small_page.page.key), 4001, true);
    return err;
}

/* A bar on a site that has no pages here, and its end. */
static int do_bar(void)
{
    struct wb_store_bar bar = {.kind = WB_STORE_BAR_SITE, .site = WB_SLICE_LIT("taken.example"), .time_ms = 7};
    struct wb_store_bar page = {.kind = WB_STORE_BAR_PAGE, .id = {3, 4}, .site = WB_SLICE_LIT("taken.example")};
    int err = wb_store_bar(store, &bar);

    if (err == 0)
        err = wb_store_allow(store, &page);
    if (err == 0)
        err = wb_store_barred(store, (struct wb_pageid){5, 6}, bar.site) == 1 ? 0 : WB_E_IO;
    if (err == 0)
        err = wb_store_allow(store, &bar);
    return err;
}

static int do_verify(void)
{
    struct wb_store_verify_counts result;
    int err = wb_store_verify(work_dir, NULL, NULL, NULL, NULL, &result);

    must(err < 0 || result.problems == 0 || wb_fault_struck());
    return err;
}

static int do_open(enum wb_store_mode mode)
{
    struct wb_store *opened;
    int err = wb_store_open(work_dir, mode, &opened);

    must((err == 0) == (opened != NULL));
    wb_store_close(opened);
    return err;
}

static int do_open_read(void)
{
    return do_open(WB_STORE_READ);
}

static int do_open_write(void)
{
    return do_open(WB_STORE_WRITE);
}

int do_create(void)
{
    return wb_store_create(work_dir, &(struct wb_store_options){.design = test_design()});
}

const struct operation operations[] = {
    {"put", do_put, false, false, 1, 2, 0},
    {"put and commit", do_commit, false, false, 2, 2, 0},
    {"commit", do_commit_only, false, true, 1, 1, 0},
    {"seal", do_snapshot, false, false, 1, 1, 1},
    {"seal with pages taken", do_snapshot, false, true, 2, 2, 1},
    {"drop", do_drop, false, false, 1, 1, -1},
    {"hold and let go", do_hold, false, false, 2, 2, 0},
    {"set the policy", do_set_history, false, false, 1, 1, 0},
    {"get old versions", do_get_versions, false, false, 0, 0, 0},
    {"get", do_get, false, false, 0, 0, 0},
    {"scan", do_scan, false, false, 0, 0, 0},
    {"parcels", do_parcels, false, false, 0, 0, 0},
    {"compact", do_compact, false, false, 2, 3, 0},
    {"compact with pages taken", do_compact, false, true, 3, 4, 0},
    {"divide and move", do_divide, false, false, 6, 8, 0},
    {"stat", do_stat, false, false, 0, 0, 0},
    {"touch, remove and revisits", do_small_ops, false, false, 0, 0, 0},
    {"bar and allow", do_bar, false, false, 0, 0, 0},
    {"bar and allow with pages taken", do_bar, false, true, 1, 1, 0},
    {"verify", do_verify, true, false, 0, 0, 0},
    {"verify beside a writer", do_verify, false, true, 0, 0, 0},
    {"open for reading", do_open_read, true, false, 0, 0, 0},
    {"open for writing", do_open_write, true, false, 0, 0, 0},
};

const size_t operation_count = COUNT(operations);
