/*
 * test_transfer_blocks.c - which blocks a transfer copies as they are, for each pair of organisations that consist of
 * segments; what it leaves out of them: pages that were taken down, and damage; and how it spreads them over nodes.
 */
#include "store_support.h"
#include "move/move.h"
#include "os/path.h"
#include "store/batch/batched.h"
#include "store/repo_block.h"

enum { PAGES = 400, BLOCKS_MAX = 1000, SEGMENT = 64 << 10 };

static const char *const pairs[] = {
    "Batch[U(hash,log),R(hash,log)]",
    "Batch[U(hash,hashed-log),R(hash,log)]",
    "Batch[U(hash,hashed-log),R(hash,hashed-log)]",
    "Batch[U(hash,log),R(hash,hashed-log)]",
};

/* Random bodies, so that their bytes can be found in files. */
static struct spec page_spec(uint32_t number, int64_t time_ms)
{
    return (struct spec){
        .site = number % 5, .number = number, .time_ms = time_ms, .size = 500 + number % 7 * 50, .variant = 5};
}

static struct wb_store *new_batch(const char *design, unsigned nodes, char dir_out[DIR_MAX])
{
    struct wb_store_options options = {.history = {WB_STORE_KEEP_NEWEST, 0}, .nodes = {.count = nodes}};

    test_dir(dir_out);
    must_ok(wb_design_parse(wb_slice_str(design), &options.design));
    must_ok(wb_store_create(dir_out, &options));
    return open_store(dir_out, WB_STORE_WRITE);
}

static void put_all(struct wb_store *store, int64_t time_ms)
{
    for (uint32_t i = 0; i < PAGES; i++) {
        struct spec spec = page_spec(i, time_ms);
        must_ok(put_spec(store, &spec));
    }
    commit_store(store);
}

/* The number of pages that are those of this time. */
static size_t count_of(struct wb_store *store, int64_t time_ms)
{
    size_t count = 0;

    for (uint32_t i = 0; i < PAGES; i++) {
        struct spec spec = page_spec(i, time_ms);
        count += holds_spec(store, &spec);
    }
    return count;
}

static uint64_t count_waiting(struct wb_store *store)
{
    struct wb_store_stat stat;

    must_ok(wb_store_stat(store, &stat));
    return stat.pages_waiting;
}

static struct wb_move_transfer_counts transfer(struct wb_store *store)
{
    struct wb_move_transfer_counts counts;

    must_ok(wb_move_transfer(store, NULL, NULL, NULL, NULL, &counts));
    return counts;
}

/* ---- what was copied ---------------------------------------------------------------------------------------- */

/* Blocks as they are stored. */
struct blocks {
    struct wb_buf bytes[BLOCKS_MAX];
    size_t count;
};

static void gather_blocks(struct wb_store *store, struct blocks *blocks)
{
    struct wb_store_scan *scan;
    struct wb_store_parcel parcel;

    blocks->count = 0;
    must_ok(wb_disk_scan_blocks(store, &(struct wb_store_scan_options){0}, &scan));
    while (wb_store_scan_parcel(scan, &parcel) > 0) {
        must(blocks->count < BLOCKS_MAX);
        blocks->bytes[blocks->count] = WB_BUF_INIT;
        must_ok(wb_buf_append_slice(&blocks->bytes[blocks->count++], parcel.bytes));
    }
    wb_store_scan_close(scan);
}

/* The file of a segment, on whichever node it is. */
static void find_segment(const char *dir, const struct wb_catalog_segment *row, char path_out[DIR_MAX])
{
    char name[32], node[DIR_MAX];

    snprintf(name, sizeof name, "node%u", row->node);
    path_in(dir, name, node);
    segment_path(wb_path_kind(node) == WB_PATH_DIR ? node : dir, row, path_out);
}

/* How many of the blocks are in a file of the store, except for what their headers say about commits and places. */
static size_t count_in(const char *dir, struct wb_repo *repo, struct blocks *blocks)
{
    struct wb_overview o = {0};
    struct wb_buf all = WB_BUF_INIT, file;
    char path[DIR_MAX];
    size_t found = 0;

    must_ok(wb_pagefile_overview(&repo->files, &o));
    for (size_t i = 0; i < o.rows.count; i++) {
        find_segment(dir, &o.rows.items[i], path);
        must_ok(wb_path_read(path, 64 << 20, &file));
        must_ok(wb_buf_append_slice(&all, wb_buf_slice(&file)));
        wb_buf_release(&file);
    }
    for (size_t i = 0; i < blocks->count; i++) {
        const struct wb_buf *block = &blocks->bytes[i];
        found +=
            memmem(all.ptr, all.len, block->ptr + WB_BLOCK_HEADER_BYTES, block->len - WB_BLOCK_HEADER_BYTES) != NULL;
        wb_buf_release(&blocks->bytes[i]);
    }
    wb_catalog_rows_release(&o.rows);
    wb_buf_release(&all);
    return found;
}

/* Bytes of segments that are not of a narrow range. */
static uint64_t wide_bytes(struct wb_repo *repo)
{
    struct wb_overview o = {0};
    uint64_t bytes = 0;

    must_ok(wb_pagefile_overview(&repo->files, &o));
    for (size_t i = 0; i < o.rows.count; i++)
        bytes += o.rows.items[i].range.bits == 0 ? o.rows.items[i].bytes : 0;
    wb_catalog_rows_release(&o.rows);
    return bytes;
}

/*
 * Twice: into read nodes that are empty, and that have everything already. All blocks may go into a log. In a
 * hashed-log, pages are where they would be if they had been put; so some or most of the blocks cannot be copied.
 */
static void test_copied(void **state)
{
    static struct blocks blocks;
    char dir[DIR_MAX];

    (void)state;
    use_small_sizes(SEGMENT);
    for (size_t i = 0; i < COUNT(pairs); i++) {
        struct wb_store *store = new_batch(pairs[i], 1, dir);
        struct wb_batched *batch = wb_batched_of(store);
        bool hashed = batch->superblock.design.read.organisation == WB_ORGANISATION_HASHED_LOG;
        bool from_log = batch->superblock.design.update.organisation == WB_ORGANISATION_LOG;
        for (int64_t round = 1; round <= 2; round++) {
            put_all(store, 1000 * round);
            gather_blocks(batch->update, &blocks);
            size_t all = blocks.count;
            struct wb_move_transfer_counts counts = transfer(store);
            assert_int_equal(counts.added, round == 1 ? PAGES : 0);
            assert_int_equal(counts.replaced, round == 2 ? PAGES : 0);
            assert_int_equal(count_of(store, 1000 * round), PAGES);
            assert_int_equal(count_waiting(store), 0);
            must(all > 20);
            if (round == 1) { /* later, the compaction changes files */
                size_t copied = count_in(dir, wb_batched_read_log(batch), &blocks);
                if (!hashed)
                    assert_int_equal(copied, all);
                else if (from_log)
                    assert_true(copied > 0 && copied < all / 4);
                else
                    assert_true(copied > all / 2 && copied < all);
            } else {
                (void)count_in(dir, wb_batched_read_log(batch), &blocks);
            }
            if (hashed)
                assert_true(wide_bytes(wb_batched_read_log(batch)) <= 3 * wb_pagefile_sizes.hashed_bytes);
        }
        wb_store_close(store);
        verify_clean(dir);
    }
    use_usual_sizes();
}

/*
 * Few pages are not divided, so their blocks are copied to the widest range, like pages that are put. There is one
 * block for each commit; pages that were put would be in one block.
 */
static void test_few(void **state)
{
    enum { COMMITS = 3, PAGES_EACH = 4 };
    static struct blocks blocks;
    char dir[DIR_MAX];

    (void)state;
    use_small_sizes(SEGMENT);
    struct wb_store *store = new_batch(pairs[2], 1, dir);
    struct wb_batched *batch = wb_batched_of(store);
    put_all(store, 1000);
    transfer(store);
    for (uint32_t i = PAGES; i < PAGES + COMMITS * PAGES_EACH; i++) {
        struct spec spec = page_spec(i, 1000);
        spec.size = 100;
        must_ok(put_spec(store, &spec));
        if (i % PAGES_EACH == PAGES_EACH - 1)
            commit_store(store);
    }
    gather_blocks(batch->update, &blocks);
    assert_int_equal(blocks.count, COMMITS);
    assert_int_equal(transfer(store).added, COMMITS * PAGES_EACH);
    assert_int_equal(count_in(dir, wb_batched_read_log(batch), &blocks), COMMITS);
    assert_int_equal(count_of(store, 1000), PAGES);
    wb_store_close(store);
    verify_clean(dir);
    use_usual_sizes();
}

/* ---- what must not be copied -------------------------------------------------------------------------------- */

/* Pages were taken down while they waited: nothing of them arrives, and their neighbours do. */
static void test_taken_down(void **state)
{
    static const uint32_t victims[] = {3, 111, 250, 398};
    char dir[DIR_MAX], update[DIR_MAX];

    (void)state;
    use_small_sizes(SEGMENT);
    for (size_t i = 0; i < COUNT(pairs); i++) {
        struct wb_store *store = new_batch(pairs[i], 1, dir);
        path_in(dir, "update/node101", update);
        put_all(store, 1000);
        for (size_t k = 0; k < COUNT(victims); k++) {
            struct spec spec = page_spec(victims[k], 1000);
            assert_int_equal(files_with(update, &spec), 1);
            must_ok(bar_spec(store, &spec, WB_STORE_BAR_PAGE, false));
            must_ok(remove_spec(store, &spec, true));
        }
        commit_store(store);
        assert_int_equal(transfer(store).added, PAGES - COUNT(victims));
        assert_int_equal(count_of(store, 1000), PAGES - COUNT(victims));
        for (size_t k = 0; k < COUNT(victims); k++) {
            struct spec spec = page_spec(victims[k], 1000), kept = page_spec(victims[k] + 1, 1000);
            assert_int_equal(files_with(dir, &spec), 0);
            assert_int_equal(files_with(update, &spec), 0);
            assert_int_equal(files_with(dir, &kept), 1);
        }
        wb_store_close(store);
        verify_clean(dir);
    }
    use_usual_sizes();
}

/* A takedown after a stage, or (NULL) after some pages were copied and before they are committed. */
struct late_takedown {
    char dir[DIR_MAX];
    const char *stage;
    struct spec victim;
    bool done;
};

static void take_down(struct late_takedown *late)
{
    struct wb_store *other = open_store(late->dir, WB_STORE_WRITE);

    must_ok(bar_spec(other, &late->victim, WB_STORE_BAR_PAGE, false));
    (void)remove_spec(other, &late->victim, true);
    commit_store(other);
    wb_store_close(other);
    late->done = true;
}

static void after_stage(void *context, const struct wb_move_stage *stage)
{
    struct late_takedown *late = context;

    if (late->stage && strcmp(stage->name, late->stage) == 0)
        take_down(late);
}

static bool after_some(void *context, uint64_t done, uint64_t total)
{
    struct late_takedown *late = context;

    if (!late->stage && !late->done && done > 0 && done < total)
        take_down(late);
    return true;
}

/* A page is taken down after it was listed, while its copy is not committed, and after that: nothing of it stays. */
static void test_taken_down_late(void **state)
{
    static const char *const stages[] = {"id lists", "intersection", NULL, "transfer"};
    struct wb_move_transfer_counts counts;
    struct wb_move_compact_counts compacted;
    char update[DIR_MAX];

    (void)state;
    use_small_sizes(SEGMENT);
    for (size_t i = 0; i < COUNT(pairs); i++)
        for (size_t s = 0; s < COUNT(stages); s++) {
            struct late_takedown late = {.stage = stages[s], .victim = page_spec(0, 1000)}; /* of the first block */
            struct wb_store *store = new_batch(pairs[i], 1, late.dir);
            path_in(late.dir, "update/node101", update);
            put_all(store, 1000);
            must_ok(wb_move_transfer(store, after_stage, &late, after_some, &late, &counts));
            must(late.done);
            assert_int_equal(count_of(store, 1000), PAGES - 1);
            must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &compacted));
            assert_int_equal(files_with(late.dir, &late.victim), 0);
            assert_int_equal(files_with(update, &late.victim), 0);
            wb_store_close(store);
            verify_clean(late.dir);
        }
    use_usual_sizes();
}

/* The middle of the longest segment. */
static void damage(const char *dir, struct wb_repo *repo)
{
    struct wb_overview o = {0};
    char path[DIR_MAX];
    size_t longest = 0;

    must_ok(wb_pagefile_overview(&repo->files, &o));
    must(o.rows.count > 0);
    for (size_t i = 0; i < o.rows.count; i++)
        longest = o.rows.items[i].bytes > o.rows.items[longest].bytes ? i : longest;
    find_segment(dir, &o.rows.items[longest], path);
    flip_byte(path, o.rows.items[longest].bytes / 2, 1);
    wb_catalog_rows_release(&o.rows);
}

/* Damage does not stop the rest, and does not replace what readers have. */
static void test_damaged(void **state)
{
    struct wb_move_transfer_counts counts;
    char dir[DIR_MAX], update[DIR_MAX];

    (void)state;
    use_small_sizes(SEGMENT);
    for (size_t i = 0; i < COUNT(pairs); i++) {
        struct wb_store *store = new_batch(pairs[i], 1, dir);
        path_in(dir, WB_BATCHED_UPDATE_DIR, update);
        put_all(store, 1000);
        transfer(store);
        put_all(store, 2000);
        damage(update, wb_batched_update_log(wb_batched_of(store)));
        wb_store_close(store);
        store = open_store(dir, WB_STORE_WRITE);
        assert_int_equal(wb_move_transfer(store, NULL, NULL, NULL, NULL, &counts), WB_E_CORRUPT);
        uint64_t left = count_waiting(store);
        assert_true(left > 0 && left < PAGES / 10);
        assert_int_equal(counts.replaced, PAGES - left);
        struct wb_store *reader = open_store(dir, WB_STORE_READ);
        assert_int_equal(count_of(reader, 2000), PAGES - left);
        assert_int_equal(count_of(reader, 1000), left);
        wb_store_close(reader);
        wb_store_close(store);
    }
    use_usual_sizes();
}

/* ---- nodes ---------------------------------------------------------------------------------------------------- */

enum { NODES = 3 };

static int note_node(void *context, const struct wb_store_node *node)
{
    if (node->number < WB_BATCHED_FIRST_NODE)
        ((uint64_t *)context)[node->number] = node->pages;
    return 0;
}

/* With uniform distribution every node gets its share of each commit, whether that is large or small. */
static void test_spread(void **state)
{
    static const char *const designs[] = {"Batch[U(hash,log),R(uniform,log)]",
                                          "Batch[U(hash,hashed-log),R(uniform,log)]",
                                          "Batch[U(hash,hashed-log),R(uniform,hashed-log)]"};
    static struct blocks blocks;
    char dir[DIR_MAX];

    (void)state;
    use_small_sizes(SEGMENT);
    for (size_t i = 0; i < COUNT(designs); i++) {
        struct wb_store *store = new_batch(designs[i], NODES, dir);
        struct wb_batched *batch = wb_batched_of(store);
        uint64_t pages[NODES + 1] = {0};
        put_all(store, 1000);
        gather_blocks(batch->update, &blocks);
        size_t all = blocks.count, copied;
        assert_int_equal(transfer(store).added, PAGES);
        copied = count_in(dir, wb_batched_read_log(batch), &blocks);
        assert_true(i == 2 ? copied > 0 : copied == all);
        must_ok(wb_store_node_each(store, note_node, pages));
        for (unsigned n = 1; n <= NODES; n++)
            if (pages[n] < PAGES / NODES / 2 || pages[n] > PAGES / NODES * 2)
                fail_msg("%s: node %u has %llu pages", designs[i], n, (unsigned long long)pages[n]);
        assert_int_equal(count_of(store, 1000), PAGES);
        wb_store_close(store);
        verify_clean(dir);
    }
    use_usual_sizes();
}

/* ---- before the commit ---------------------------------------------------------------------------------------- */

/* What the catalog of the source knows about the pages of a parcel. */
static void describe(struct wb_store *to, const struct wb_store_parcel *parcel, struct wb_store_unpacker *unpacker,
                     struct wb_buf *sites, struct wb_repo_block_page *pages_out)
{
    must_ok(wb_store_unpacker_open(unpacker, parcel));
    for (size_t i = 0; i < parcel->count; i++) {
        struct wb_page page;
        must_ok(wb_store_unpacker_page(unpacker, i, &page));
        struct wb_slice site = wb_key_site(page.key);
        must_ok(wb_buf_append_slice(&sites[i], site));
        pages_out[i] = (struct wb_repo_block_page){
            .id = page.id,
            .slot = parcel->pages[i].slot,
            .site = wb_buf_slice(&sites[i]),
            .entry = {.time_ms = page.time_ms,
                      .content = wb_history_content(&page, wb_repo_of(to)->content_seed),
                      .body_bytes = (uint32_t)page.body.len,
                      .stored_bytes = 1,
                      .status = page.status,
                      .lifetime = (uint16_t)page.lifetime,
                      .lifetime_count = (uint16_t)page.lifetime_count},
        };
    }
}

/* A writer sees the pages of a block that it has put, and can put more of the same pages before it commits. */
static void test_pending(void **state)
{
    enum { FEW = 8 };
    char from_dir[DIR_MAX], to_dir[DIR_MAX];
    struct wb_repo_block_page pages[FEW];
    struct wb_buf sites[FEW] = {0};
    struct wb_store_unpacker *unpacker;
    struct wb_store_parcel parcel;
    struct wb_store_scan *scan;

    (void)state;
    struct wb_store *from = new_batch("Incr[hash,log]", 1, from_dir), *to = new_batch("Incr[hash,log]", 1, to_dir);
    for (uint32_t i = 0; i < FEW; i++) {
        struct spec spec = page_spec(i, 1000);
        must_ok(put_spec(from, &spec));
    }
    commit_store(from);
    must_ok(wb_store_unpacker_new(&unpacker));
    must_ok(wb_disk_scan_blocks(from, &(struct wb_store_scan_options){0}, &scan));
    assert_int_equal(wb_store_scan_parcel(scan, &parcel), 1);
    assert_int_equal(parcel.count, FEW);
    describe(to, &parcel, unpacker, sites, pages);
    struct spec before = page_spec(1, 500), newer = page_spec(2, 2000);
    must_ok(put_spec(to, &before)); /* ops before and after those of the block */
    assert_int_equal(wb_repo_put_block(wb_repo_of(to), parcel.bytes, pages, FEW), 1);
    must_ok(put_spec(to, &newer));
    for (unsigned committed = 0; committed < 2; committed++) {
        for (uint32_t i = 0; i < FEW; i++) {
            struct spec spec = page_spec(i, i == 2 ? 2000 : 1000);
            if (!holds_spec(to, &spec))
                fail_msg("page %u is another one", i);
        }
        commit_store(to);
    }
    wb_store_scan_close(scan);
    wb_store_unpacker_free(unpacker);
    for (size_t i = 0; i < FEW; i++)
        wb_buf_release(&sites[i]);
    wb_store_close(from);
    wb_store_close(to);
    verify_clean(to_dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pending),    cmocka_unit_test(test_copied),          cmocka_unit_test(test_few),
        cmocka_unit_test(test_taken_down), cmocka_unit_test(test_taken_down_late), cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_spread),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
