/*
 * test_warcsalvage.c - records that are not whole: what is there of them is given and marked, costs one
 * error, and no other record is lost by it. (Cutting at every byte: test_warcdamage.c.)
 */
#include "warc_support.h"

static size_t claimed_length(struct wb_slice record)
{
    static const char name[] = "\nContent-Length: ";
    const char *at = memmem(record.ptr, record.len, name, sizeof name - 1);

    assert_non_null(at);
    return (size_t)strtoul(at + sizeof name - 1, NULL, 10);
}

/* The archive with the length of record k changed; as one unit where whole is set. */
static struct archive with_wrong_length(const struct archive *plain, size_t k, long change, enum packing p, bool whole)
{
    struct archive lying = ARCHIVE_INIT;
    char value[32];

    snprintf(value, sizeof value, "%ld", (long)claimed_length(archive_unit(plain, k)) + change);
    for (size_t i = 0; i < plain->count; i++) {
        struct wb_buf unit = i == k ? with_length(archive_unit(plain, i), value) : WB_BUF_INIT;
        struct wb_slice s = i == k ? wb_buf_slice(&unit) : archive_unit(plain, i);
        archive_add(&lying, s.ptr, s.len);
        wb_buf_release(&unit);
    }
    struct archive out = ARCHIVE_INIT;
    if (whole) {
        struct wb_buf one = packed_one(wb_buf_slice(&lying.bytes), p);
        archive_add(&out, one.ptr, one.len);
        wb_buf_release(&one);
    } else {
        out = packed(&lying, p);
    }
    archive_release(&lying);
    return out;
}

/* A length that is slightly wrong costs an error but no record; the block has the claimed or the true length. */
static void test_wrong_lengths(void **state)
{
    (void)state;
    static const long changes[] = {-1, -2, -5, -30, -70, 5, 7, 40, 300, 5000};
    struct archive plain = make_archive(5, 40);
    struct found sound, found;

    read_archive(&plain, "x.warc", &sound);
    for (unsigned c = 0; c < sizeof changes / sizeof *changes; c++)
        for (size_t k = 0; k < 5; k += 2)
            for (unsigned how = 0; how < 6; how++) {
                enum packing p = (enum packing)(how / 2);
                struct archive a = with_wrong_length(&plain, k, changes[c], p, how % 2);
                read_archive(&a, name_for(p), &found);
                if (found.records != 5 || found.errors != 1 || found.end != 0)
                    fail_msg("length %+ld of record %zu, way %u: %zu records, %zu errors", changes[c], k, how,
                             found.records, found.errors);
                for (size_t i = 0; i < 5; i++)
                    assert_true(i == k ? found.partial[i] && found.truncated[i]
                                       : found.hash[i] == sound.hash[i] && !found.truncated[i]);
                /* At the end of the file, the last line ends may as well be part of a block that is cut off. */
                size_t extra = k == 4 && changes[c] > 0 ? 4 : (size_t)changes[c];
                assert_true(found.block_len[k] == sound.block_len[k] ||
                            found.block_len[k] == sound.block_len[k] + extra);
                archive_release(&a);
            }
    archive_release(&plain);
}

/* If only the line ends behind a block are damaged, the claimed block is kept; without a digest it is marked. */
static void test_damaged_line_ends(void **state)
{
    (void)state;
    struct archive plain = make_archive(3, 4);
    struct found sound, found;

    read_archive(&plain, "x.warc", &sound);
    memcpy(plain.bytes.ptr + plain.at[2] - 4, "abcd", 4);
    read_archive(&plain, "x.warc", &found);
    assert_int_equal(found.records, 3);
    assert_int_equal(found.errors, 1);
    for (size_t i = 0; i < 3; i++)
        assert_int_equal(found.hash[i], sound.hash[i]);
    assert_true(found.partial[1] && found.truncated[1]);
    archive_release(&plain);
}

/* A block longer than the limit, in a record that the end of the file cuts off and in one that claims far too much. */
static void test_giants_cut(void **state)
{
    (void)state;
    struct archive plain = make_archive(1, 20000), all = ARCHIVE_INIT;
    struct wb_buf lying = with_length(archive_unit(&plain, 0), "99000000");
    struct found found;

    archive_add(&all, lying.ptr, lying.len);
    add_response(&all, 1, 3);
    read_bytes(wb_buf_slice(&all.bytes), "x.warc", 50000, &found);
    assert_int_equal(found.records, 2);
    assert_int_equal(found.errors, 1);
    assert_true(found.block_len[0] == 50000 && found.truncated[0] && !found.truncated[1]);
    assert_int_equal(found.offset[1], all.at[1]);
    for (enum packing p = PLAIN; p <= ZSTD; p++) {
        struct wb_buf unit = packed_one(archive_unit(&plain, 0), p);
        read_bytes(wb_slice(unit.ptr, unit.len * 9 / 10), name_for(p), 50000, &found);
        assert_int_equal(found.records, 1);
        assert_int_equal(found.errors, 1);
        assert_true(found.block_len[0] == 50000 && found.truncated[0]);
        wb_buf_release(&unit);
    }
    archive_release(&all);
    archive_release(&plain);
    wb_buf_release(&lying);
}

/* ARC: the last record is cut off, or a record claims the wrong length. */
static void test_arc_lengths(void **state)
{
    (void)state;
    static const int lengths[] = {26, 20, 33, 90, 9999999};

    for (size_t l = 0; l < sizeof lengths / sizeof *lengths; l++) {
        struct wb_buf bytes = WB_BUF_INIT;
        struct found found;
        assert_int_equal(wb_buf_append_str(&bytes, "filedesc://x.arc 0.0.0.0 20260102030405 text/plain 2\n1\n\n"), 0);
        for (int i = 0; i < 5; i++)
            assert_int_equal(
                wb_buf_printf(
                    &bytes,
                    "http://a.example/%d 192.0.2.1 20260102030405 text/html %d\n<p>page %d with a few words.\n\n", i,
                    i == 2 ? lengths[l] : 27, i),
                0);
        for (size_t cut = 0; cut < 20; cut++) {
            read_bytes(wb_slice(bytes.ptr, bytes.len - cut), "x.arc", BLOCK_MAX, &found);
            if (found.records != 6 || found.errors != 1u + (cut > 2))
                fail_msg("length %d, cut %zu: %zu records, %zu errors", lengths[l], cut, found.records, found.errors);
            assert_true(found.truncated[3] && found.truncated[5] == (cut > 2) && !found.truncated[4] &&
                        !found.truncated[2]);
        }
        wb_buf_release(&bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_lengths),
        cmocka_unit_test(test_damaged_line_ends),
        cmocka_unit_test(test_giants_cut),
        cmocka_unit_test(test_arc_lengths),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
