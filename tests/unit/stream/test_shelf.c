/* test_shelf.c - what streams keep in the repository: by its hash, until its time is over, never damaged. */
#include "../otherformat.h"
#include "versions_support.h"

#include "stream/shelf.h"

#include <fcntl.h>
#include <unistd.h>

/* What wb_shelf_map() says; the bytes must be the same. */
static int map_error(const char *dir, uint64_t hash, const char *bytes)
{
    struct wb_shelf_map map;
    int err = wb_shelf_map(dir, hash, &map);

    assert_true(err < 0 || wb_slice_equal(map.bytes, wb_slice_str(bytes)));
    wb_shelf_unmap(&map);
    return err;
}

static void test_put_get_sweep(void **state)
{
    const char *dir = test_path("shelf");
    struct wb_buf bytes = WB_BUF_INIT;
    uint64_t first, second, again;

    (void)state;
    assert_int_equal(wb_shelf_put(dir, WB_SLICE_LIT("one"), 1000, &first), 0);
    assert_int_equal(wb_shelf_put(dir, WB_SLICE_LIT("two"), 2000, &second), 0);
    assert_true(first != second && first == wb_shelf_hash(WB_SLICE_LIT("one")));
    assert_int_equal(wb_shelf_get(dir, first, &bytes), 0);
    assert_true(wb_slice_equal(wb_buf_slice(&bytes), WB_SLICE_LIT("one")));
    struct wb_shelf_map map;
    assert_int_equal(wb_shelf_map(dir, first, &map), 0);
    wb_shelf_sweep(dir, 1500);
    assert_int_equal(wb_shelf_get(dir, first, &bytes), WB_E_NOTFOUND);
    assert_int_equal(map_error(dir, first, ""), WB_E_NOTFOUND);
    assert_true(wb_slice_equal(map.bytes, WB_SLICE_LIT("one"))); /* still, although the file is gone */
    wb_shelf_unmap(&map);
    assert_int_equal(wb_shelf_get(dir, second, &bytes), 0);
    /* A use keeps it longer, and never shorter. */
    assert_int_equal(wb_shelf_put(dir, WB_SLICE_LIT("two"), 5000, &again), 0);
    assert_int_equal(wb_shelf_put(dir, WB_SLICE_LIT("two"), 3000, &again), 0);
    assert_true(again == second);
    wb_shelf_sweep(dir, 4000);
    assert_int_equal(wb_shelf_get(dir, second, &bytes), 0);
    wb_shelf_sweep(dir, 6000);
    assert_int_equal(wb_shelf_get(dir, second, &bytes), WB_E_NOTFOUND);
    wb_buf_release(&bytes);
}

/* Every bit except those of the time until which it is kept. */
static void test_damage(void **state)
{
    const char *dir = test_path("damage");
    struct wb_buf bytes = WB_BUF_INIT;
    char path[300], file[64];
    uint64_t hash;

    (void)state;
    assert_int_equal(wb_shelf_put(dir, WB_SLICE_LIT("some bytes"), INT64_MAX, &hash), 0);
    snprintf(path, sizeof path, "%s/streams/shelf/%016llx", dir, (unsigned long long)hash);
    int fd = open(path, O_RDWR);
    ssize_t len = read(fd, file, sizeof file);
    assert_int_equal(len, 50);
    for (ssize_t bit = 0; bit < len * 8; bit++) {
        char wrong = (char)(file[bit / 8] ^ 1 << bit % 8);
        assert_int_equal(pwrite(fd, &wrong, 1, bit / 8), 1);
        bool time = bit / 8 >= 8 && bit / 8 < 16;
        assert_int_equal(wb_shelf_get(dir, hash, &bytes), time ? 0 : WB_E_CORRUPT);
        assert_int_equal(map_error(dir, hash, "some bytes"), time ? 0 : WB_E_CORRUPT);
        assert_int_equal(pwrite(fd, file + bit / 8, 1, bit / 8), 1);
    }
    for (ssize_t size = 0; size < len; size++) {
        assert_int_equal(pwrite(fd, file, (size_t)len, 0), len);
        assert_int_equal(ftruncate(fd, size), 0);
        assert_int_equal(wb_shelf_get(dir, hash, &bytes), WB_E_CORRUPT);
        assert_int_equal(map_error(dir, hash, ""), WB_E_CORRUPT);
    }
    close(fd);
    wb_buf_release(&bytes);
}

static void test_another_format(void **state)
{
    const char *dir = test_path("format");
    struct wb_buf bytes = WB_BUF_INIT;
    char path[300], covered[24];
    uint64_t hash;

    (void)state;
    assert_int_equal(wb_shelf_put(dir, WB_SLICE_LIT("some bytes"), INT64_MAX, &hash), 0);
    snprintf(path, sizeof path, "%s/streams/shelf/%016llx", dir, (unsigned long long)hash);
    assert_int_equal(wb_path_read(path, 1000, &bytes), 0);
    bytes.ptr[7] = '2';
    memcpy(covered, bytes.ptr, 8); /* its checksum leaves out the time until which it is kept */
    memcpy(covered + 8, bytes.ptr + 16, 16);
    wb_put64(bytes.ptr + 32, wb_hash64(covered, sizeof covered));
    assert_int_equal(wb_path_replace(path, wb_buf_slice(&bytes)), 0);
    assert_refused_format(wb_shelf_get(dir, hash, &bytes), path, 2);
    assert_refused_format(map_error(dir, hash, ""), path, 2);
    wb_buf_release(&bytes);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_get_sweep),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_another_format),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
