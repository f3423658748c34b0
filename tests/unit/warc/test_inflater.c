/* test_inflater.c - random access to deflated bytes gives the bytes themselves; damage and work are bounded. */
#include "zip_support.h"

#include "warc/inflater.h"

#define BYTES ((size_t)20 << 20)
#define MARK_BYTES ((uint64_t)16 << 10) /* so that there are soon too many marks, and some are dropped */

/* Bytes that compress to about a third, and are different everywhere. */
static struct wb_buf make_bytes(size_t len)
{
    struct wb_buf out = WB_BUF_INIT;
    uint64_t x = 88172645463325252u;

    assert_int_equal(wb_buf_reserve(&out, len + 8), 0);
    while (out.len < len) {
        x ^= x << 13;
        x ^= x >> 7;
        x ^= x << 17;
        uint64_t word = x & 0x0f0f0f0f0f000000;
        memcpy(out.ptr + out.len, &word, 8);
        out.len += 8;
    }
    out.len = len;
    return out;
}

static void random_access(void **state)
{
    struct wb_buf plain = make_bytes(BYTES), packed = deflate_of(wb_buf_slice(&plain));
    struct wb_file file = zip_file(wb_buf_slice(&packed));
    struct wb_inflater *f = NULL;
    static char bytes[3 << 20];
    uint64_t x = 12345;

    (void)state;
    assert_int_equal(wb_inflater_new(&file, 0, packed.len, BYTES, MARK_BYTES, &f), 0);
    for (unsigned i = 0; i < 60; i++) {
        x = x * 6364136223846793005u + 1442695040888963407u;
        size_t offset = (size_t)(x >> 20) % BYTES, len = (size_t)(x >> 40) % sizeof bytes, got = 0;
        len = len < BYTES - offset ? len : BYTES - offset;
        assert_int_equal(wb_inflater_read_at(f, "name", offset, bytes, len, &got), 0);
        assert_int_equal(got, len);
        assert_memory_equal(bytes, plain.ptr + offset, len);
    }
    wb_inflater_free(f);
    wb_file_close(&file);
    wb_buf_release(&plain);
    wb_buf_release(&packed);
}

/* Somebody who jumps between the two ends is stopped. */
static void endless_work(void **state)
{
    struct wb_buf plain = make_bytes(BYTES / 4), packed = deflate_of(wb_buf_slice(&plain));
    struct wb_file file = zip_file(wb_buf_slice(&packed));
    struct wb_inflater *f = NULL;
    unsigned turns = 0;
    size_t got;
    char byte;
    int err = 0;

    (void)state;
    assert_int_equal(wb_inflater_new(&file, 0, packed.len, plain.len, MARK_BYTES, &f), 0);
    while (err == 0 && turns++ < 10000) {
        err = wb_inflater_read_at(f, "name", plain.len - 1, &byte, 1, &got);
        if (err == 0)
            err = wb_inflater_read_at(f, "name", 0, &byte, 1, &got);
    }
    assert_int_equal(err, WB_E_LIMIT);
    assert_true(turns > 16);
    wb_inflater_free(f);
    wb_file_close(&file);
    wb_buf_release(&plain);
    wb_buf_release(&packed);
}

/* Bytes before the damage can be read, also again. */
static void damage(void **state)
{
    struct wb_buf plain = make_bytes(BYTES / 8), packed = deflate_of(wb_buf_slice(&plain));
    static char bytes[BYTES / 8];

    (void)state;
    for (unsigned i = 0; i < 2; i++) { /* cut off, and changed */
        size_t len = i == 0 ? packed.len / 2 : packed.len, got = 0;
        if (i == 1)
            memset(packed.ptr + packed.len / 2, 0xff, 64);
        struct wb_file file = zip_file(wb_buf_slice(&packed));
        struct wb_inflater *f = NULL;
        assert_int_equal(wb_inflater_new(&file, 0, len, plain.len, MARK_BYTES, &f), 0);
        int err = wb_inflater_read_at(f, "name", 0, bytes, plain.len, &got);
        /* deflate has no checksum: other bits may be other bytes. */
        assert_true(err == WB_E_CORRUPT || (i == 1 && memcmp(bytes, plain.ptr, plain.len) != 0));
        assert_true(got > plain.len / 4 && got <= plain.len);
        assert_memory_equal(bytes, plain.ptr, plain.len / 4);
        size_t again = 0;
        assert_int_equal(wb_inflater_read_at(f, "name", 100, bytes, plain.len / 4, &again), 0);
        assert_int_equal(again, plain.len / 4);
        assert_memory_equal(bytes, plain.ptr + 100, plain.len / 4);
        wb_inflater_free(f);
        wb_file_close(&file);
    }
    wb_buf_release(&plain);
    wb_buf_release(&packed);
}

/* The entry says that it is longer than what comes out. */
static void short_of_its_size(void **state)
{
    struct wb_buf packed = deflate_of(WB_SLICE_LIT("hello"));
    struct wb_file file = zip_file(wb_buf_slice(&packed));
    struct wb_inflater *f = NULL;
    char bytes[8];
    size_t got;

    (void)state;
    assert_int_equal(wb_inflater_new(&file, 0, packed.len, 6, MARK_BYTES, &f), 0);
    assert_int_equal(wb_inflater_read_at(f, "name", 0, bytes, 6, &got), WB_E_CORRUPT);
    assert_int_equal(got, 5);
    assert_memory_equal(bytes, "hello", 5);
    wb_inflater_free(f);
    wb_file_close(&file);
    wb_buf_release(&packed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_access),
        cmocka_unit_test(endless_work),
        cmocka_unit_test(damage),
        cmocka_unit_test(short_of_its_size),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
