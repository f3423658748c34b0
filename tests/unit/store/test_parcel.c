/*
 * test_parcel.c - parcels: what is passed on as it is and what is built again, that nothing leaks that was taken down,
 * and that an unpacker survives whatever it is given. That parcels contain what a scan returns is for test_model.c to
 * show.
 */
#include "parcel_support.h"
#include "os/path.h"
#include "pagefile/segment.h"

static char dir[DIR_MAX];

static struct spec page(uint32_t site, uint32_t number, int64_t time_ms)
{
    return (struct spec){.site = site, .number = number, .time_ms = time_ms, .size = 3000, .variant = 5};
}

static void put(struct wb_store *store, uint32_t site, uint32_t number, int64_t time_ms)
{
    struct spec spec = page(site, number, time_ms);

    must_ok(put_spec(store, &spec));
}

/* A store with `count` pages of a site in one block. */
static struct wb_store *new_store(uint32_t count)
{
    test_dir(dir);
    create_store(dir);
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    for (uint32_t i = 0; i < count; i++)
        put(store, 1, i, 1000);
    commit_store(store);
    return store;
}

/* All parcels of a scan, copied. */
struct parcels {
    struct wb_buf bytes[16];
    struct wb_store_parcel_page pages[16][64];
    struct wb_store_parcel list[16];
    size_t count, page_count;
};

static int gather(struct wb_store *store, const struct wb_store_scan_options *options, struct parcels *parcels)
{
    struct wb_store_scan *scan;
    struct wb_store_parcel parcel;
    int got, errors = 0;

    *parcels = (struct parcels){0};
    must_ok(wb_store_scan_open(store, options, &scan));
    while ((got = wb_store_scan_parcel(scan, &parcel)) != 0) {
        if (got < 0) {
            must(got == WB_E_CORRUPT);
            must(++errors < 100);
            continue;
        }
        size_t n = parcels->count++;
        must(n < COUNT(parcels->list));
        must(parcel.count <= COUNT(parcels->pages[n]));
        must_ok(wb_buf_append(&parcels->bytes[n], parcel.bytes.ptr, parcel.bytes.len));
        memcpy(parcels->pages[n], parcel.pages, parcel.count * sizeof *parcel.pages);
        parcels->list[n] = (struct wb_store_parcel){wb_buf_slice(&parcels->bytes[n]), parcels->pages[n], parcel.count};
        parcels->page_count += parcel.count;
    }
    wb_store_scan_close(scan);
    return errors;
}

static void parcels_release(struct parcels *parcels)
{
    for (size_t i = 0; i < parcels->count; i++)
        wb_buf_release(&parcels->bytes[i]);
}

/* The bytes of the first file of the store. */
static void read_segment(struct wb_buf *bytes_out)
{
    char pages[DIR_MAX], path[DIR_MAX];

    path_in(dir, WB_SEGMENT_DIR, pages);
    path_in(pages, "00000001.seg", path);
    must_ok(wb_path_read(path, 64 << 20, bytes_out));
}

/* ---- as it is ------------------------------------------------------------------------------------------ */

/* Only logs pass on blocks as they are stored; other organisations pack pages for each parcel. */
static void skip_unless_stored_as_parcels(void)
{
    if (test_design().read.organisation != WB_ORGANISATION_LOG)
        skip();
}

static void test_as_stored(void **state)
{
    skip_unless_stored_as_parcels();

    struct wb_store *store = new_store(20);
    struct wb_buf file = WB_BUF_INIT;
    struct parcels parcels;

    (void)state;
    assert_int_equal(gather(store, &(struct wb_store_scan_options){0}, &parcels), 0);
    assert_int_equal(parcels.count, 1);
    assert_int_equal(parcels.page_count, 20);
    read_segment(&file);
    assert_non_null(memmem(file.ptr, file.len, parcels.bytes[0].ptr, parcels.bytes[0].len));
    parcels_release(&parcels);

    put(store, 1, 7, 2000); /* a few that do not count change nothing */
    struct spec other = page(1, 8, 2000);
    must_ok(remove_spec(store, &other, false));
    commit_store(store);
    assert_int_equal(gather(store, &(struct wb_store_scan_options){0}, &parcels), 0);
    assert_int_equal(parcels.count, 2);
    assert_non_null(memmem(file.ptr, file.len, parcels.bytes[0].ptr, parcels.bytes[0].len));
    parcels_release(&parcels);
    wb_buf_release(&file);
    wb_store_close(store);
}

/* ---- built again ----------------------------------------------------------------------------------------- */

/* Whether the random body of a page is in some parcel. */
static bool is_in(const struct parcels *parcels, const struct spec *spec)
{
    struct made made;
    bool found = false;

    make_page(spec, &made);
    for (size_t i = 0; i < parcels->count; i++)
        found = found || memmem(parcels->bytes[i].ptr, parcels->bytes[i].len, made.page.body.ptr + 1000, 64) != NULL;
    made_release(&made);
    return found;
}

/* Unpacks all pages; returns how many could be read. */
static size_t unpack_all(const struct parcels *parcels)
{
    struct wb_store_unpacker *unpacker;
    struct wb_page found;
    size_t read = 0;

    must_ok(wb_store_unpacker_new(&unpacker));
    for (size_t i = 0; i < parcels->count; i++) {
        must_ok(wb_store_unpacker_open(unpacker, &parcels->list[i]));
        for (size_t j = 0; j < parcels->list[i].count; j++) {
            int err = wb_store_unpacker_page(unpacker, j, &found);
            must(err == 0 || err == WB_E_CORRUPT);
            must(err < 0 || wb_pageid_equal(found.id, parcels->list[i].pages[j].id));
            read += err == 0;
        }
    }
    wb_store_unpacker_free(unpacker);
    return read;
}

/* Pages that were taken down are in no parcel, although their bytes are still on disk. */
static void test_takedown(void **state)
{
    skip_unless_stored_as_parcels();

    struct wb_store *store = new_store(20);
    struct parcels parcels;

    (void)state;
    for (uint32_t number = 0; number < 20; number += 7) {
        struct spec spec = page(1, number, 1000);
        gather(store, &(struct wb_store_scan_options){0}, &parcels);
        assert_true(is_in(&parcels, &spec));
        parcels_release(&parcels);
        must_ok(remove_spec(store, &spec, true));
        commit_store(store);
        assert_int_equal(files_with(dir, &spec), 1);
        gather(store, &(struct wb_store_scan_options){0}, &parcels);
        assert_false(is_in(&parcels, &spec));
        assert_int_equal(parcels.page_count, 20 - number / 7 - 1);
        assert_int_equal(unpack_all(&parcels), parcels.page_count);
        parcels_release(&parcels);
    }
    wb_store_close(store);
}

/* An old version that a takedown reaches after it had ceased, in a block whose latest versions are elsewhere. */
static void test_takedown_of_old_version(void **state)
{
    skip_unless_stored_as_parcels();

    struct wb_store *store = new_store(20);
    struct spec old = page(1, 3, 1000);
    struct parcels parcels;

    (void)state;
    put(store, 1, 3, 2000);
    commit_store(store);
    gather(store, &(struct wb_store_scan_options){0}, &parcels);
    assert_true(is_in(&parcels, &old)); /* it is dead, but no secret */
    parcels_release(&parcels);
    must_ok(remove_spec(store, &old, true));
    commit_store(store);
    assert_int_equal(files_with(dir, &old), 1);
    gather(store, &(struct wb_store_scan_options){0}, &parcels);
    assert_false(is_in(&parcels, &old));
    assert_int_equal(unpack_all(&parcels), 19);
    parcels_release(&parcels);
    wb_store_close(store);
}

/* A damaged block from which a page must go: the rest of it is passed on, and the damage is reported. */
static void test_takedown_and_damage(void **state)
{
    skip_unless_stored_as_parcels();

    struct wb_store *store = new_store(60);
    struct spec secret = page(1, 30, 1000);
    char pages[DIR_MAX], path[DIR_MAX];
    struct parcels parcels;

    (void)state;
    must_ok(remove_spec(store, &secret, true));
    commit_store(store);
    path_in(dir, WB_SEGMENT_DIR, pages);
    path_in(pages, "00000001.seg", path);
    uint64_t bytes = file_bytes(path);
    for (uint64_t at = bytes / 10; at < bytes; at += bytes / 10) {
        flip_byte(path, at, 0x10);
        int errors = gather(store, &(struct wb_store_scan_options){0}, &parcels);
        assert_false(is_in(&parcels, &secret));
        size_t read = unpack_all(&parcels);
        assert_true(read <= 59);
        assert_true(read == 59 || errors > 0 || read < parcels.page_count);
        parcels_release(&parcels);
        flip_byte(path, at, 0x10);
    }
    wb_store_close(store);
}

/* A block of which hardly anything counts is not passed on as it is. */
static void test_waste(void **state)
{
    struct wb_store *store = new_store(20);
    struct parcels parcels;

    (void)state;
    for (uint32_t number = 1; number < 20; number++)
        put(store, 1, number, 2000);
    commit_store(store);
    gather(store, &(struct wb_store_scan_options){0}, &parcels);
    assert_int_equal(parcels.page_count, 20);
    assert_int_equal(unpack_all(&parcels), 20);
    for (size_t i = 0; i < parcels.count; i++)
        assert_true(parcels.bytes[i].len < 4000 * (parcels.list[i].count + 1));
    parcels_release(&parcels);
    wb_store_close(store);
}

/* ---- selections and places -------------------------------------------------------------------------------- */

/* Pages of two sites in one block. */
static void test_site(void **state)
{
    struct wb_buf room = WB_BUF_INIT;
    struct wb_store *store = new_store(0);
    struct spec spec = page(2, 0, 1000);
    struct parcels parcels;

    (void)state;
    for (uint32_t i = 0; i < 40; i++)
        put(store, 1 + i % 2, i, 1000);
    commit_store(store);
    gather(store, &(struct wb_store_scan_options){.site = spec_site(&spec, &room)}, &parcels);
    assert_int_equal(parcels.page_count, 20);
    assert_int_equal(unpack_all(&parcels), 20);
    parcels_release(&parcels);
    wb_buf_release(&room);
    wb_store_close(store);
}

/* A scan that goes on after any page and ends at any later one, by pages and by parcels. */
static void test_places(void **state)
{
    struct wb_store *store = new_store(12);
    struct parcels all, some;

    (void)state;
    put(store, 1, 5, 2000); /* not every page of the block counts, and there are two blocks */
    commit_store(store);
    gather(store, &(struct wb_store_scan_options){0}, &all);
    struct wb_store_position places[12];
    struct wb_pageid ids[12];
    for (size_t i = 0, n = 0; i < all.count; i++)
        for (size_t j = 0; j < all.list[i].count; j++, n++) {
            places[n] = all.list[i].pages[j].position;
            ids[n] = all.list[i].pages[j].id;
        }
    for (size_t i = 0; i < 12; i++)
        for (size_t j = 0; j < 12; j++)
            assert_int_equal(wb_store_position_compare(store, &places[i], &places[j]) < 0, i < j);
    for (size_t from = 0; from < 12; from++)
        for (size_t to = from; to < 12; to++) {
            struct wb_store_scan_options options = {.after = from ? &places[from - 1] : NULL, .until = &places[to]};
            gather(store, &options, &some);
            assert_int_equal(some.page_count, to - from + 1);
            for (size_t i = 0, n = from; i < some.count; i++)
                for (size_t j = 0; j < some.list[i].count; j++, n++)
                    assert_true(wb_pageid_equal(some.list[i].pages[j].id, ids[n]));
            parcels_release(&some);
            struct wb_store_scan *scan;
            struct wb_page found;
            must_ok(wb_store_scan_open(store, &options, &scan));
            for (size_t n = from; n <= to; n++) {
                assert_int_equal(wb_store_scan_next(scan, &found), 1);
                assert_true(wb_pageid_equal(found.id, ids[n]));
            }
            assert_int_equal(wb_store_scan_next(scan, &found), 0);
            wb_store_scan_close(scan);
        }
    parcels_release(&all);
    wb_store_close(store);
}

/* ---- hostile parcels -------------------------------------------------------------------------------------- */

/* Tries to read a parcel; nothing but WB_E_CORRUPT may come of it. Returns whether all of it could be read. */
static bool is_sound(const struct wb_store_parcel *parcel)
{
    struct wb_store_unpacker *unpacker;
    struct wb_page found;

    must_ok(wb_store_unpacker_new(&unpacker));
    int err = wb_store_unpacker_open(unpacker, parcel);
    for (size_t i = 0; i < parcel->count && err == 0; i++)
        err = wb_store_unpacker_facts(unpacker, i, &found);
    for (size_t i = 0; i < parcel->count && err == 0; i++)
        err = wb_store_unpacker_page(unpacker, i, &found);
    must(err == 0 || err == WB_E_CORRUPT || err == WB_E_NEWER);
    wb_store_unpacker_free(unpacker);
    return err == 0;
}

static void test_hostile(void **state)
{
    struct wb_store *store = new_store(8);
    struct parcels parcels;

    (void)state;
    gather(store, &(struct wb_store_scan_options){0}, &parcels);
    struct wb_store_parcel parcel = parcels.list[0];
    struct wb_store_parcel_page *pages = parcels.pages[0], before;
    assert_true(is_sound(&parcel));
    for (size_t len = 0; len < parcel.bytes.len; len += len < 1000 ? 1 : 97) {
        char *cut = malloc(len + 1); /* so that reading behind the end is noticed */
        must(cut != NULL);
        memcpy(cut, parcel.bytes.ptr, len);
        assert_false(is_sound(&(struct wb_store_parcel){wb_slice(cut, len), pages, parcel.count}));
        free(cut);
    }
    for (size_t at = 0; at < parcel.bytes.len; at += at < 1000 ? 1 : 97) {
        parcels.bytes[0].ptr[at] ^= 0x40;
        assert_false(is_sound(&parcel));
        parcels.bytes[0].ptr[at] ^= 0x40;
    }
    for (size_t i = 0; i < parcel.count; i++) {
        before = pages[i];
        pages[i].id.lo ^= 1;
        assert_false(is_sound(&parcel));
        pages[i] = before;
        pages[i].slot = 9999;
        assert_false(is_sound(&parcel));
        pages[i] = pages[i ? i - 1 : 1]; /* twice, or in the wrong order */
        assert_false(is_sound(&parcel));
        pages[i] = before;
    }
    assert_true(is_sound(&parcel));
    parcels_release(&parcels);
    wb_store_close(store);
}

/* ---- packing ---------------------------------------------------------------------------------------------- */

static void test_pack(void **state)
{
    struct wb_store_packer *packer;
    struct wb_store_unpacker *unpacker;
    struct wb_store_parcel parcel;
    struct wb_page found;

    (void)state;
    must_ok(wb_store_packer_new(&packer));
    must_ok(wb_store_unpacker_new(&unpacker));
    for (uint32_t round = 0; round < 3; round++) {
        uint64_t hashes[50];
        for (uint32_t i = 0; i < COUNT(hashes); i++) {
            struct spec spec = {.site = i % 3, .number = i / 2, .time_ms = 1000 + i + round, .size = i * i * 40};
            struct wb_store_position position = {{(char)i}};
            struct made made;
            make_page(&spec, &made);
            made.page.epoch = i + 1;
            made.page.lifetime_count = i;
            wb_page_digest(&made.page);
            must_ok(wb_store_packer_add(packer, &made.page, &position));
            hashes[i] = page_hash(&made.page, 0);
            made_release(&made);
        }
        must_ok(wb_store_packer_finish(packer, &parcel));
        assert_int_equal(parcel.count, COUNT(hashes));
        must_ok(wb_store_unpacker_open(unpacker, &parcel));
        for (size_t i = 0; i < COUNT(hashes); i++) {
            assert_int_equal(parcel.pages[i].position.bytes[0], i);
            must_ok(wb_store_unpacker_page(unpacker, i, &found));
            assert_true(page_hash(&found, 0) == hashes[i]);
        }
    }
    wb_store_unpacker_free(unpacker);
    wb_store_packer_free(packer);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_as_stored),
        cmocka_unit_test(test_takedown),
        cmocka_unit_test(test_takedown_of_old_version),
        cmocka_unit_test(test_takedown_and_damage),
        cmocka_unit_test(test_waste),
        cmocka_unit_test(test_site),
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_hostile),
        cmocka_unit_test(test_pack),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
