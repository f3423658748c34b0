/*
 * test_bucket.c - bucket files: names, which bucket has which ids, images, what happens to every flipped byte, buckets
 * that were torn by a power failure, bytes that are kept because nobody can read them, and claims.
 */
#include "../otherformat.h"
#include "store_support.h"
#include "place/node.h"
#include "os/path.h"
#include "pagefile/bucket.h"

#include <unistd.h>

enum { BUCKETS = 3, SMALL = 1 << 10, PAGES = 24 };

static char dir[DIR_MAX];
static struct wb_node *node;
static const uint8_t repo_id[WB_SUPERBLOCK_ID_BYTES] = {5, 4, 3};

static struct wb_bucket_draft draft;
static struct wb_bucket_reader reader;
static struct made made[PAGES];
static struct wb_buf records[PAGES];

static int set_up(void **state)
{
    char pages[DIR_MAX];

    (void)state;
    test_dir(dir);
    path_in(dir, WB_SEGMENT_DIR, pages);
    must_ok(wb_path_mkdirs(pages));
    must_ok(wb_node_open(dir, NULL, &node));
    must_ok(wb_bucket_draft_init(&draft, 4000));
    must_ok(wb_bucket_reader_init(&reader));
    for (uint32_t i = 0; i < PAGES; i++) {
        struct spec spec = {
            .site = i % 3, .number = i, .time_ms = 1000 + i, .size = i == 7 ? 9000 : 90 * i, .variant = i};
        make_page(&spec, &made[i]);
        must_ok(wb_page_encode(&made[i].page, &records[i]));
        must_ok(wb_page_record_digest(&(struct wb_record_digest){records[i].ptr, records[i].len, made[i].page.body.len},
                                      1));
    }
    return 0;
}

static int tear_down(void **state)
{
    (void)state;
    wb_bucket_draft_release(&draft);
    wb_bucket_reader_release(&reader);
    wb_node_close(node);
    for (size_t i = 0; i < PAGES; i++) {
        made_release(&made[i]);
        wb_buf_release(&records[i]);
    }
    return 0;
}

static struct wb_catalog_place place_of(size_t i)
{
    return (struct wb_catalog_place){.segment = 1, .logical = 1 << 20, .slot = (uint16_t)(i % 2)};
}

/* Adds the pages from `first` to `last` that belong to a bucket to the draft. */
static void add_items(const struct wb_bucket_file *file, uint64_t number, size_t first, size_t last)
{
    for (size_t i = first; i < last; i++) {
        struct wb_pageid id = made[i].page.id;
        if (wb_bucket_of(file, id) != number)
            continue;
        must_ok(wb_vec_push(&draft.items, (struct wb_bucket_item){.version = {.id = id, .place = place_of(i)},
                                                                  .record = wb_buf_slice(&records[i])}));
    }
}

static int compare_pages(const void *a, const void *b)
{
    return wb_pageid_compare(((const struct wb_bucket_page *)a)->id, ((const struct wb_bucket_page *)b)->id);
}

static void add_copies(const struct wb_bucket_file *file, uint64_t number, size_t last)
{
    for (size_t i = 0; i < last; i++)
        if (wb_bucket_of(file, made[i].page.id) == number)
            must_ok(wb_vec_push(&draft.bucket.pages,
                                (struct wb_bucket_page){made[i].page.id, {.place = place_of(i), .epoch = 3}}));
    qsort(draft.bucket.pages.items, draft.bucket.pages.count, sizeof *draft.bucket.pages.items, compare_pages);
}

/* The row of a file that was just written. */
static struct wb_catalog_segment row_of(uint32_t number)
{
    return (struct wb_catalog_segment){.number = number, .revision = 1, .map_count = BUCKETS, .node = 1};
}

/* A file with the first pages; the first sweep writes it. */
static uint64_t write_file(uint32_t number, size_t pages, struct wb_bucket_file *file)
{
    struct wb_bucket_shape shape = {number, 1, {0}, SMALL, BUCKETS};
    struct wb_bucket_sweep sweep;

    must_ok(wb_bucket_file_create(node, repo_id, &shape, file));
    wb_bucket_sweep_begin(&sweep, file, 1, wb_bucket_extents_at(file));
    for (uint64_t b = 0; b < BUCKETS; b++) {
        wb_bucket_draft_begin(&draft, file, &sweep.end, b, 1);
        add_items(file, b, 0, pages);
        add_copies(file, b, pages);
        must_ok(wb_bucket_draft_build(&draft));
        must_ok(wb_bucket_sweep_add(&sweep, &draft.bucket));
    }
    must_ok(wb_bucket_sweep_end(&sweep));
    uint64_t end = sweep.end;
    wb_bucket_sweep_release(&sweep);
    return end;
}

/* Reads every page of the file that was written; returns how many are exactly as they were. */
static size_t count_readable(const struct wb_bucket_file *file, size_t pages, bool strictly)
{
    struct wb_bucket bucket = {0};
    struct wb_buf record = WB_BUF_INIT;
    struct wb_catalog_entry entry;
    size_t right = 0, at;

    for (size_t i = 0; i < pages; i++) {
        struct wb_catalog_place place = place_of(i);
        uint64_t number = wb_bucket_of(file, made[i].page.id);
        wb_bucket_reader_forget(&reader);
        int err = (strictly ? wb_bucket_read_strictly : wb_bucket_read)(file, number, &bucket);
        if (err == 0) {
            must(wb_bucket_find(&bucket, made[i].page.id, &place, &at));
            must(wb_bucket_find_page(&bucket, made[i].page.id, &entry) && wb_catalog_place_equal(&entry.place, &place));
            err = wb_bucket_read_record(&reader, file, &bucket, at, &record);
        }
        must(err == 0 || err == WB_E_CORRUPT);
        must(err == 0 || strstr(wb_error_message(), file->file.path));
        must(err < 0 || (record.len == records[i].len && memcmp(record.ptr, records[i].ptr, record.len) == 0));
        right += err == 0;
    }
    wb_buf_release(&record);
    wb_bucket_release(&bucket);
    return right;
}

static void test_names(void **state)
{
    static const char *const bad[] = {"",
                                      "00000001.bkt",
                                      "00000001.0.bkt",
                                      "1.1.bkt",
                                      "00000001.1.bkt ",
                                      "00000001.1.seg",
                                      "00000000.1.bkt",
                                      "00000001.01.dw",
                                      "00000001.1.dw.tmp"};
    char name[WB_SEGMENT_NAME_MAX];
    uint32_t number, revision;
    bool doubles;

    (void)state;
    wb_bucket_name(12, 3, name);
    assert_string_equal(name, "pages/00000012.3.bkt");
    assert_true(wb_bucket_name_parse(name + 6, &number, &revision, &doubles));
    assert_true(number == 12 && revision == 3 && !doubles);
    wb_bucket_doubles_name(12, 3, name);
    assert_true(wb_bucket_name_parse(name + 6, &number, &revision, &doubles) && doubles);
    for (size_t i = 0; i < COUNT(bad); i++)
        if (wb_bucket_name_parse(bad[i], &number, &revision, &doubles))
            fail_msg("'%s' is taken for a bucket file", bad[i]);
}

static struct wb_cells random_cells(uint64_t *chance)
{
    struct wb_cells cells;

    for (size_t i = 0; i < COUNT(cells.words); i++)
        cells.words[i] = chance_one_in(chance, 2) ? chance_next(chance) : chance_one_in(chance, 2) ? UINT64_MAX : 0;
    return cells;
}

/* Every id is in exactly one bucket, and buckets are in the order of ids. */
static void test_edges(void **state)
{
    uint64_t chance = test_seed();

    (void)state;
    for (unsigned round = 0; round < 2000; round++) {
        struct wb_bucket_file file = {.count = 1 + chance_below(&chance, round % 2 ? 9 : 1 << 20)};
        file.range.bits = (uint32_t)chance_below(&chance, round % 3 ? 8 : 65);
        file.range.prefix = chance_next(&chance) & wb_catalog_range_mask(&file.range);
        struct wb_cells cells = random_cells(&chance);
        if (chance_one_in(&chance, 2))
            (void)wb_catalog_range_keep(&file.range, &cells);
        uint64_t hi = file.range.prefix | (chance_next(&chance) & ~wb_catalog_range_mask(&file.range));
        uint64_t last = wb_catalog_range_last(&file.range);
        if (hi > last)
            continue;
        uint64_t number = wb_bucket_of(&file, (struct wb_pageid){.hi = hi}), edge = wb_bucket_edge(&file, number);
        must(number < file.count && hi <= edge && edge <= last);
        must(!wb_catalog_range_has(&file.range, (struct wb_pageid){.hi = edge}) ||
             wb_bucket_of(&file, (struct wb_pageid){.hi = edge}) == number);
        must(edge == last || wb_catalog_range_has(&file.range, (struct wb_pageid){.hi = edge + 1}));
        must(edge == last || wb_bucket_of(&file, (struct wb_pageid){.hi = edge + 1}) > number);
        must(number + 1 < file.count || edge == last);
    }
}

/* A flipped byte is noticed, wherever it is: in the header, in a bucket, in the rest of a long image, in an extent. */
static void test_flips(void **state)
{
    struct wb_bucket_file file;
    struct wb_catalog_segment row = row_of(1);
    char name[WB_SEGMENT_NAME_MAX], path[DIR_MAX];

    (void)state;
    write_file(1, PAGES, &file);
    assert_int_equal(count_readable(&file, PAGES, true), PAGES);
    must_ok(wb_bucket_swept_clear(&file)); /* so that no other copy helps */
    wb_bucket_file_close(&file);
    wb_bucket_name(1, 1, name);
    path_in(dir, name, path);
    uint64_t size = file_bytes(path);
    for (uint64_t at = 0; at < size; at += at + 1 == 192 ? WB_BUCKET_FILE_HEADER_BYTES - 191 : 1) {
        uint8_t before = flip_byte(path, at, (uint8_t)(1u << at % 8));
        (void)before;
        int err = wb_bucket_file_open(node, repo_id, &row, false, &file);
        must(err == 0 && file.headless == (at < 192)); /* without its header, it can still be read */
        if (at < 192)
            assert_int_equal(count_readable(&file, PAGES, true), PAGES);
        else if (count_readable(&file, PAGES, true) == PAGES)
            fail_msg("a flipped bit at %llu was not noticed", (unsigned long long)at);
        wb_bucket_file_close(&file);
        flip_byte(path, at, (uint8_t)(1u << at % 8));
    }
    flip_byte(path, 20, 1);
    must_ok(wb_bucket_file_open(node, repo_id, &row, true, &file));
    must_ok(wb_bucket_file_repair(&file, repo_id));
    wb_bucket_file_close(&file);
    must_ok(wb_bucket_file_open(node, repo_id, &row, false, &file));
    assert_false(file.headless);
    assert_int_equal(count_readable(&file, PAGES, true), PAGES);
    wb_bucket_file_close(&file);
    row.map_count++; /* a header that is intact, but not the one that is expected */
    assert_int_equal(wb_bucket_file_open(node, repo_id, &row, false, &file), WB_E_CORRUPT);
    row.map_count--;
    uint8_t other_id[WB_SUPERBLOCK_ID_BYTES] = {1};
    assert_int_equal(wb_bucket_file_open(node, other_id, &row, false, &file), WB_E_CORRUPT);
}

/* Files and buckets of another format are refused with their number, and never repaired. */
static void test_another_format(void **state)
{
    struct wb_bucket_file file;
    struct wb_bucket_swept swept = {0};
    struct wb_bucket bucket = {0};
    struct wb_buf bytes = WB_BUF_INIT;
    struct wb_catalog_segment row = row_of(5);
    char name[WB_SEGMENT_NAME_MAX], path[DIR_MAX], doubles[DIR_MAX], extent[2000] = "WBKB";

    (void)state;
    write_file(5, PAGES, &file);
    wb_bucket_name(5, 1, name);
    path_in(dir, name, path);
    wb_bucket_doubles_name(5, 1, name);
    path_in(dir, name, doubles);
    put_format(path, wb_bucket_at(&file, 1), 4, 2, 88);
    assert_refused_format(wb_bucket_read(&file, 1, &bucket), path, 2);
    assert_non_null(strstr(wb_error_message(), "bucket 1"));
    assert_refused_format(wb_bucket_read_bytes(&file, 1, &bytes), path, 2);
    must_ok(wb_bucket_read(&file, 0, &bucket));
    put_format(doubles, 0, 4, 2, 56);
    assert_refused_format(wb_bucket_swept_read(&file, 1, &swept), doubles, 2);
    wb_bucket_file_close(&file);
    put_format(path, 0, 4, 2, 56);
    assert_refused_format(wb_bucket_file_open(node, repo_id, &row, false, &file), path, 2);
    /* An extent of damaged bytes. */
    wb_put16(extent + 4, 2);
    wb_put64(extent + 32, sizeof extent - 64);
    wb_put64(extent + 56, wb_hash64(extent, 56));
    must(wb_bucket_kept_is(wb_slice(extent, sizeof extent)));
    assert_refused_format(wb_bucket_kept_error(wb_slice(extent, sizeof extent)), "an extent", 2);
    wb_bucket_swept_release(&swept);
    wb_bucket_release(&bucket);
    wb_buf_release(&bytes);
}

/* The power fails while buckets are written in place: each is read as it was meant to be. */
static void test_torn(void **state)
{
    struct wb_bucket_file file;
    struct wb_bucket_sweep sweep;
    struct wb_bucket old = {0};
    char before[BUCKETS * SMALL], torn[SMALL];
    bool drop[PAGES] = {false};

    (void)state;
    uint64_t end = write_file(2, PAGES / 2, &file), dead;
    must_ok(wb_node_file_read_exact(&file.file, wb_bucket_at(&file, 0), before, sizeof before));
    wb_bucket_sweep_begin(&sweep, &file, 2, end);
    for (uint64_t b = 0; b < BUCKETS; b++) {
        must_ok(wb_bucket_read(&file, b, &old));
        wb_bucket_draft_begin(&draft, &file, &sweep.end, b, 2);
        add_items(&file, b, PAGES / 2, PAGES);
        add_copies(&file, b, PAGES);
        must_ok(wb_bucket_draft_change(&draft, &old, drop, &dead));
        must_ok(wb_bucket_sweep_add(&sweep, &draft.bucket));
    }
    assert_int_equal(count_readable(&file, PAGES / 2, true), PAGES / 2); /* nothing has changed yet */
    must_ok(wb_bucket_sweep_end(&sweep));
    assert_int_equal(count_readable(&file, PAGES, true), PAGES);
    for (uint64_t b = 0; b < BUCKETS; b++)
        for (size_t cut = 40; cut < SMALL; cut += 88) { /* the beginning is new, the rest is old */
            must_ok(wb_node_file_read_exact(&file.file, wb_bucket_at(&file, b), torn, sizeof torn));
            must_ok(
                wb_node_file_write_at(&file.file, wb_bucket_at(&file, b) + cut, before + b * SMALL + cut, SMALL - cut));
            assert_int_equal(count_readable(&file, PAGES, false), PAGES);
            must_ok(wb_node_file_write_at(&file.file, wb_bucket_at(&file, b), torn, sizeof torn));
        }
    wb_bucket_sweep_release(&sweep);
    wb_bucket_release(&old);
    wb_bucket_file_close(&file);
}

/* Damaged bytes are kept, whatever they are, and a page in them is reported as lost. */
static void test_kept(void **state)
{
    struct wb_bucket_file file;
    struct wb_bucket_sweep sweep;
    struct wb_bucket bucket = {0};
    struct wb_buf raw = WB_BUF_INIT, kept = WB_BUF_INIT, record = WB_BUF_INIT;
    char path[DIR_MAX], name[WB_SEGMENT_NAME_MAX];
    uint64_t end = write_file(3, PAGES, &file), before, bytes;

    (void)state;
    must_ok(wb_bucket_read(&file, 1, &bucket));
    must_ok(wb_bucket_read_bytes(&file, 1, &raw));
    assert_true(bucket.overflow_bytes > 0 && raw.len == SMALL + bucket.overflow_bytes); /* its rest is kept, too */
    wb_bucket_name(3, 1, name);
    path_in(dir, name, path);
    flip_byte(path, wb_bucket_at(&file, 1) + 3, 1); /* where the rest is, is not known any more */
    must_ok(wb_bucket_read_bytes(&file, 1, &raw));
    assert_int_equal(raw.len, SMALL);
    before = end;
    must_ok(wb_bucket_keep(&file, &(struct wb_bucket_origin){file.key, 1, wb_bucket_at(&file, 1)}, wb_buf_slice(&raw),
                           &end, &bytes));
    assert_int_equal(end, before + bytes);
    must_ok(wb_bucket_extent_read_bytes(&file, before, bytes, &kept));
    must(wb_bucket_kept_is(wb_buf_slice(&kept)) && kept.len == bytes);
    must(memcmp(kept.ptr + kept.len - raw.len, raw.ptr, raw.len) == 0);
    for (size_t i = 0; i < 64; i++) { /* no byte of its head may change */
        kept.ptr[i] ^= 16;
        must(!wb_bucket_kept_is(wb_buf_slice(&kept)));
        kept.ptr[i] ^= 16;
    }

    struct wb_bucket_version lost = {
        .id = made[0].page.id, .place = place_of(0), .extent_at = before, .extent_bytes = bytes};
    uint64_t number = wb_bucket_of(&file, lost.id);
    wb_bucket_sweep_begin(&sweep, &file, 2, end);
    wb_bucket_draft_begin(&draft, &file, &sweep.end, number, 2);
    must_ok(wb_vec_push(&draft.items, (struct wb_bucket_item){.version = lost}));
    must_ok(wb_bucket_draft_build(&draft));
    must_ok(wb_bucket_sweep_add(&sweep, &draft.bucket));
    must_ok(wb_bucket_sweep_end(&sweep));
    wb_bucket_reader_forget(&reader);
    must_ok(wb_bucket_read_strictly(&file, number, &bucket));
    assert_int_equal(bucket.versions.count, 1);
    assert_int_equal(wb_bucket_read_record(&reader, &file, &bucket, 0, &record), WB_E_CORRUPT);
    must(strstr(wb_error_message(), path) && strstr(wb_error_message(), "what is left of them"));
    wb_bucket_sweep_release(&sweep);
    wb_bucket_release(&bucket);
    wb_buf_release(&raw);
    wb_buf_release(&kept);
    wb_buf_release(&record);
    wb_bucket_file_close(&file);
}

static int seal(void *file)
{
    return wb_bucket_write_seal(file, 5);
}

static int clear_sweep(void *file)
{
    return wb_bucket_swept_clear(file);
}

/* Only who has claimed a file may change it, and nobody removes it meanwhile. */
static void test_claims(void **state)
{
    struct wb_bucket_file file, other;
    struct wb_catalog_segment row = row_of(4);

    (void)state;
    write_file(4, PAGES, &file);
    must_ok(wb_bucket_file_open(node, repo_id, &row, true, &other));
    assert_true(is_stopped(seal, &other));
    assert_true(is_stopped(clear_sweep, &other));
    assert_int_equal(wb_bucket_file_remove(node, 4, 1), WB_E_BUSY);
    wb_bucket_file_release(&file);
    assert_true(is_stopped(seal, &file));
    must_ok(wb_bucket_file_claim(&other));
    must_ok(wb_bucket_write_seal(&other, 5));
    assert_int_equal(count_readable(&file, PAGES, true), PAGES); /* reading needs no claim */
    wb_bucket_file_release(&other);
    must_ok(wb_bucket_file_remove(node, 4, 1));
    assert_int_equal(count_readable(&file, PAGES, true), PAGES); /* nor a name */
    assert_int_equal(wb_bucket_file_claim(&file), WB_E_CORRUPT);
    must(strstr(wb_error_message(), "00000004.1.bkt"));
    wb_bucket_file_close(&file);
    wb_bucket_file_close(&other);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),          cmocka_unit_test(test_edges), cmocka_unit_test(test_flips),
        cmocka_unit_test(test_torn),           cmocka_unit_test(test_kept),  cmocka_unit_test(test_claims),
        cmocka_unit_test(test_another_format),
    };

    return cmocka_run_group_tests(tests, set_up, tear_down);
}
