/*
 * test_warcdamage.c - damaged archives: nothing crashes, no damaged record is taken for an
 * intact one, its neighbours survive, and the time stays linear.
 */
#include "warc_support.h"
#include "../cost.h"
#include "../rounds.h"

#include "base/codec.h"

/* The unit that holds a byte. */
static size_t unit_of(const struct archive *a, size_t byte)
{
    size_t i = 0;

    while (a->at[i + 1] <= byte)
        i++;
    return i;
}

/*
 * Everything found is a record of the intact archive, in order, except for the remains of
 * the damaged one, which are marked. All records that are not `near` the damage are found.
 */
static void assert_neighbours(const struct found *sound, const struct found *found, size_t near, const char *what)
{
    int last = -1;

    for (size_t i = 0; i < found->records; i++) {
        int at = find_hash(sound, found->hash[i]);
        if (at < 0 && found->partial[i] && found->truncated[i] && i == near)
            at = (int)near;
        if (at < 0 || at <= last)
            fail_msg("%s: record %zu was never written, or is in the wrong place", what, i);
        last = at;
    }
    for (size_t i = 0; i < sound->records; i++)
        if (i != near && find_hash(found, sound->hash[i]) < 0)
            fail_msg("%s: record %zu is lost", what, i);
    if (find_hash(found, sound->hash[near]) < 0 && found->errors == 0)
        fail_msg("%s: record %zu is lost and nothing was said", what, near);
    if (found->errors > 1)
        fail_msg("%s: %zu errors of one place", what, found->errors);
}

/* Every byte is changed in several ways (with a sanitizer, some bytes); in compressed units the checksum notices. */
static void flip_every_byte(enum packing p)
{
    struct archive plain = make_archive(4, 3);
    struct archive a = packed(&plain, p);
    struct found sound, found;
    static const unsigned char masks[] = {0x01, 0x80, 0xff};
    uint64_t chance = test_seed();

    read_archive(&a, name_for(p), &sound);
    assert_int_equal(sound.records, 4);
    for (size_t i = 0; i < a.bytes.len; i += test_stride(&chance)) {
        for (size_t m = 0; m < sizeof masks; m++) {
            char what[64];
            snprintf(what, sizeof what, "%s, byte %zu ^ %02x", name_for(p), i, masks[m]);
            a.bytes.ptr[i] = (char)(a.bytes.ptr[i] ^ masks[m]);
            read_archive(&a, name_for(p), &found);
            a.bytes.ptr[i] = (char)(a.bytes.ptr[i] ^ masks[m]);
            assert_int_equal(found.end, 0);
            size_t unit = unit_of(&a, i);
            assert_neighbours(&sound, &found, unit, what);
            if (found.errors && (found.error_offset[0] < a.at[unit] || found.error_offset[0] >= a.at[unit + 1]))
                fail_msg("%s: the error is said to be at %" PRIu64, what, found.error_offset[0]);
        }
    }
    archive_release(&a);
    archive_release(&plain);
}

static void test_flip_gzip(void **state)
{
    (void)state;
    flip_every_byte(GZIP);
}

static void test_flip_zstd(void **state)
{
    (void)state;
    flip_every_byte(ZSTD);
}

/* A plain file has no checksums: a changed byte may change its own record, but no other. */
static void test_flip_plain(void **state)
{
    (void)state;
    struct archive a = make_archive(4, 3);
    struct found sound, found;
    uint64_t chance = test_seed();

    read_archive(&a, "x.warc", &sound);
    for (size_t i = 0; i < a.bytes.len; i += test_stride(&chance)) {
        a.bytes.ptr[i] ^= 0x41;
        read_archive(&a, "x.warc", &found);
        a.bytes.ptr[i] ^= 0x41;
        size_t unit = unit_of(&a, i);
        assert_int_equal(found.end, 0);
        for (size_t k = 0; k < 4; k++) {
            /* A wrong length can affect the next record only if that starts directly behind. */
            if (k != unit && find_hash(&found, sound.hash[k]) < 0)
                fail_msg("byte %zu of record %zu lost record %zu", i, unit, k);
        }
        size_t lost = 0;
        for (size_t k = 0; k < found.records; k++)
            lost += found.partial[k]; /* counted as a record and as an error */
        assert_true(found.records + found.errors - lost >= 4 && found.records <= 4 && found.errors <= 1);
    }
    archive_release(&a);
}

/* Cut off at every byte: records before the cut are intact, and the readable part of the cut one is delivered. */
static void cut_everywhere(enum packing p)
{
    struct archive plain = make_archive(3, 3);
    struct archive a = packed(&plain, p);
    struct found sound, found;
    uint64_t chance = test_seed();
    size_t partial = 0;

    read_archive(&a, name_for(p), &sound);
    for (size_t len = 0; len < a.bytes.len; len += test_stride(&chance)) {
        size_t whole = unit_of(&a, len);
        read_bytes(wb_slice(a.bytes.ptr, len), name_for(p), BLOCK_MAX, &found);
        /* A plain record that lacks some or all of its final line ends is still complete. */
        bool rest = len > a.at[whole];
        bool complete = p == PLAIN && rest && found.records == whole + 1 && len + 4 >= a.at[whole + 1];
        bool part = rest && found.records == whole + 1 && found.partial[whole];
        if (found.records != whole && !complete && !part)
            fail_msg("%s cut at %zu: %zu records", name_for(p), len, found.records);
        for (size_t i = 0; i < whole; i++)
            assert_true(found.hash[i] == sound.hash[i] && !found.truncated[i]);
        if (part)
            assert_true(found.truncated[whole] && found.offset[whole] == a.at[whole] &&
                        found.block_len[whole] <= sound.block_len[whole]);
        if (rest && !complete && found.errors + (found.end == WB_E_PROTO) != 1)
            fail_msg("%s cut at %zu: %zu errors", name_for(p), len, found.errors);
        if (found.errors)
            assert_int_equal(found.error_offset[0], a.at[whole]);
        /* If the header is there, the record is delivered; a plain one with every byte that is left of it. */
        size_t head = plain.at[whole + 1] - plain.at[whole] - 4 - sound.block_len[whole];
        if (p == PLAIN && rest && !complete && len - a.at[whole] >= head)
            assert_true(part && found.block_len[whole] == len - a.at[whole] - head);
        partial += part;
    }
    assert_true(p == ZSTD || partial > 0); /* a zstd frame of one block delivers nothing before its end */
    archive_release(&a);
    archive_release(&plain);
}

static void test_cut_off(void **state)
{
    (void)state;
    for (enum packing p = PLAIN; p <= ZSTD; p++)
        cut_everywhere(p);
}

/* ---- what check_damaged_archives of the acceptance checks does -------------------------------- */

enum damage { GARBAGE, NO_MAGIC, SHORTENED, ABSURD, NEGATIVE, WORDED, OVERFLOWING, DAMAGES };

static struct wb_buf damaged_unit(const struct archive *plain, const struct archive *a, size_t k, enum packing p,
                                  enum damage damage)
{
    static const char *const lengths[] = {
        [ABSURD] = "100000000000", [NEGATIVE] = "-5", [WORDED] = "many", [OVERFLOWING] = "99999999999999999999999"};
    struct wb_slice unit = archive_unit(a, k);
    struct wb_buf out = WB_BUF_INIT;

    if (damage == GARBAGE) {
        for (unsigned i = 0; i < 700; i++)
            assert_int_equal(wb_buf_append_char(&out, (char)(i * 2654435761u >> 24)), 0);
        assert_int_equal(wb_buf_append_slice(&out, unit), 0);
    } else if (damage == NO_MAGIC || damage == SHORTENED) {
        assert_int_equal(wb_buf_append(&out, unit.ptr, damage == SHORTENED ? unit.len * 6 / 10 : unit.len), 0);
        if (damage == NO_MAGIC)
            memset(out.ptr, 0, 4);
    } else {
        struct wb_buf lying = with_length(archive_unit(plain, k), lengths[damage]);
        out = packed_one(wb_buf_slice(&lying), p);
        wb_buf_release(&lying);
    }
    return out;
}

static void test_damages(void **state)
{
    (void)state;
    struct archive plain = make_archive(9, 40);
    size_t k = 4;

    for (enum packing p = PLAIN; p <= ZSTD; p++) {
        struct archive a = packed(&plain, p);
        struct found sound, found;
        read_archive(&a, name_for(p), &sound);
        for (enum damage damage = GARBAGE; damage < DAMAGES; damage++) {
            struct archive broken = ARCHIVE_INIT;
            char what[64];
            for (size_t i = 0; i < a.count; i++) {
                struct wb_buf unit = i == k ? damaged_unit(&plain, &a, k, p, damage) : WB_BUF_INIT;
                struct wb_slice s = i == k ? wb_buf_slice(&unit) : archive_unit(&a, i);
                archive_add(&broken, s.ptr, s.len);
                wb_buf_release(&unit);
            }
            snprintf(what, sizeof what, "%s, damage %d", name_for(p), (int)damage);
            read_archive(&broken, name_for(p), &found);
            assert_neighbours(&sound, &found, k, what);
            assert_int_equal(found.errors, 1);
            assert_int_equal(found.error_offset[0], broken.at[k]);
            /* If only the length or the end is wrong, the part of the record that is there is delivered. */
            bool kept = damage == GARBAGE || damage == ABSURD || (damage == SHORTENED && p == PLAIN);
            assert_int_equal(found.records, kept ? 9 : 8);
            for (size_t i = 0; i < found.records; i++)
                assert_int_equal(found.offset[i], broken.at[i < k ? i : i + 9 - found.records] +
                                                      (damage == GARBAGE && i == k ? 700 : 0));
            if (damage == ABSURD)
                assert_int_equal(found.block_len[k], sound.block_len[k]);
            archive_release(&broken);
        }
        archive_release(&a);
    }
    archive_release(&plain);
}

/* A page may contain what looks like records: a malformed member with one record is not searched inside. */
static void test_records_in_a_page(void **state)
{
    (void)state;
    struct archive inner = make_archive(1, 2), plain = ARCHIVE_INIT, broken = ARCHIVE_INIT;
    struct found found;

    add_response(&plain, 0, 2);
    add_record(&plain, "response", "http://site.example/trap", "", wb_buf_slice(&inner.bytes));
    add_response(&plain, 2, 2);
    struct wb_buf lying = with_length(archive_unit(&plain, 1), "-1");
    for (size_t i = 0; i < 3; i++) {
        struct wb_buf unit = gzip_of(i == 1 ? wb_buf_slice(&lying) : archive_unit(&plain, i));
        archive_add(&broken, unit.ptr, unit.len);
        wb_buf_release(&unit);
    }
    read_archive(&broken, "x.warc.gz", &found);
    assert_int_equal(found.records, 2);
    assert_int_equal(found.errors, 1);
    assert_int_equal(found.offset[1], broken.at[2]);
    archive_release(&broken);
    archive_release(&plain);
    archive_release(&inner);
    wb_buf_release(&lying);
}

/* A malformed record inside a file that is one single member: the records after it are found. */
static void test_whole_gzip(void **state)
{
    (void)state;
    struct archive plain = make_archive(9, 40), broken = ARCHIVE_INIT;
    struct wb_buf lying = with_length(archive_unit(&plain, 4), "many");
    struct found sound, found;

    read_archive(&plain, "x.warc", &sound);
    for (size_t i = 0; i < 9; i++) {
        struct wb_slice s = i == 4 ? wb_buf_slice(&lying) : archive_unit(&plain, i);
        archive_add(&broken, s.ptr, s.len);
    }
    struct wb_buf gzip = gzip_of(wb_buf_slice(&broken.bytes));
    read_bytes(wb_buf_slice(&gzip), "x.warc.gz", BLOCK_MAX, &found);
    assert_int_equal(found.records, 8);
    assert_neighbours(&sound, &found, 4, "whole gzip");
    wb_buf_release(&gzip);
    wb_buf_release(&lying);
    archive_release(&broken);
    archive_release(&plain);
}

static struct wb_buf packed_whole(const struct archive *a, enum packing p)
{
    return p == GZIP ? gzip_of(wb_buf_slice(&a->bytes)) : zstd_of(wb_buf_slice(&a->bytes), WB_SLICE_EMPTY);
}

/* A file that is one unit, every byte changed: each record that differs is marked, each unmarked one is unchanged. */
static void test_flip_whole(void **state)
{
    (void)state;
    struct archive plain = make_archive(5, 3);
    struct found sound, found;
    size_t right = 0, marked = 0;

    read_archive(&plain, "x.warc", &sound);
    for (enum packing p = GZIP; p <= ZSTD; p++) {
        struct wb_buf whole = packed_whole(&plain, p);
        for (size_t i = 0; i < whole.len; i++) {
            whole.ptr[i] ^= 0x10;
            read_bytes(wb_buf_slice(&whole), name_for(p), BLOCK_MAX, &found);
            whole.ptr[i] ^= 0x10;
            for (size_t k = 0; k < found.records; k++) {
                bool same = find_hash(&sound, found.hash[k]) >= 0;
                if (!same && !found.truncated[k])
                    fail_msg("%s, byte %zu: a wrong record passes as a whole one", name_for(p), i);
                right += same;
                marked += found.truncated[k];
            }
            if (found.records < 5 && found.errors == 0 && found.end == 0)
                fail_msg("%s, byte %zu: records are lost and nothing was said", name_for(p), i);
        }
        wb_buf_release(&whole);
    }
    assert_true(right > 0 && marked > 0);
    archive_release(&plain);
}

/* The same file cut off: the records before the cut are intact and not marked. */
static void test_cut_whole(void **state)
{
    (void)state;
    struct archive plain = make_archive(20, 60);
    struct wb_buf whole = gzip_of(wb_buf_slice(&plain.bytes));
    struct found sound, found;

    read_archive(&plain, "x.warc", &sound);
    read_bytes(wb_slice(whole.ptr, whole.len / 2), "x.warc.gz", BLOCK_MAX, &found);
    assert_true(found.records >= 5 && found.records < 15);
    assert_int_equal(found.errors, 1);
    size_t before = found.records - found.partial[found.records - 1];
    for (size_t i = 0; i < found.records; i++)
        assert_true(i < before ? found.hash[i] == sound.hash[i] && !found.truncated[i] : found.truncated[i]);
    wb_buf_release(&whole);
    archive_release(&plain);
}

/* A damaged unit of several records: those with a correct digest are known to be intact. */
static void test_digests_in_damage(void **state)
{
    (void)state;
    struct archive plain = ARCHIVE_INIT;
    struct found found;

    for (unsigned i = 0; i < 4; i++) {
        struct wb_buf block = response_block(i, 3);
        uint8_t sha1[WB_SHA1_BYTES];
        char extra[100] = "WARC-Block-Digest: sha1:";
        wb_sha1(block.ptr, block.len, sha1);
        sha1[0] = (uint8_t)(sha1[0] ^ (i == 2));
        wb_hex_encode(sha1, sizeof sha1, extra + strlen(extra));
        strcat(extra, "\r\n");
        add_record(&plain, "response", "http://site.example/", extra, wb_buf_slice(&block));
        wb_buf_release(&block);
    }
    struct wb_buf whole = gzip_of(wb_buf_slice(&plain.bytes));
    read_bytes(wb_buf_slice(&whole), "x.warc.gz", BLOCK_MAX, &found);
    assert_int_equal(found.records, 4);
    assert_false(found.truncated[2]);
    whole.ptr[whole.len - 6] ^= 1;
    read_bytes(wb_buf_slice(&whole), "x.warc.gz", BLOCK_MAX, &found);
    assert_int_equal(found.records, 3); /* the last one ends with the member, whose checksum is wrong */
    assert_int_equal(found.errors, 1);
    assert_true(!found.truncated[0] && !found.truncated[1] && found.truncated[2]);
    wb_buf_release(&whole);
    archive_release(&plain);
}

/* ARC: the record before the garbage is not followed by a record; it survives and is marked. */
static void test_arc_garbage(void **state)
{
    (void)state;
    struct wb_buf bytes = WB_BUF_INIT;
    struct found found;

    assert_int_equal(wb_buf_append_str(&bytes, "filedesc://x.arc 0.0.0.0 20260102030405 text/plain 2\n1\n\n"), 0);
    for (int i = 0; i < 6; i++)
        assert_int_equal(wb_buf_printf(&bytes,
                                       "%shttp://a.example/%d 192.0.2.1 20260102030405 text/html 6\n<p>%d\n\n\n",
                                       i == 3 ? "#garbage\x01\nmore" : "", i, i),
                         0);
    read_bytes(wb_buf_slice(&bytes), "x.arc", BLOCK_MAX, &found);
    assert_int_equal(found.records, 7);
    assert_int_equal(found.errors, 1);
    assert_true(!found.truncated[2] && found.truncated[3] && !found.truncated[4]);
    wb_buf_release(&bytes);
}

/* ---- inputs designed to be slow -------------------------------------------------------------------- */

/* AddressSanitizer looks at all of the rest whenever something is searched in it. */
#ifdef WB_TEST_SANITIZED
#define SLOW_BYTES ((size_t)512 << 10)
#else
#define SLOW_BYTES ((size_t)2 << 20)
#endif
#define SLOW_SECONDS 200 /* of processor time: a quadratic reader takes hours, but sanitizers are slow too */

static void assert_fast(struct wb_slice bytes, const char *name)
{
    struct wb_warc_reader *reader = NULL;
    struct wb_warc_record record;
    int64_t start = test_cpu_ns();
    int err = open_bytes(bytes, name, BLOCK_MAX, &reader);

    while (err >= 0 || err == WB_E_CORRUPT) {
        err = wb_warc_next(reader, &record);
        if (err == 0)
            break;
        if (test_cpu_ns() - start > SLOW_SECONDS * INT64_C(1000000000))
            fail_msg("%s takes too long", name);
    }
    wb_warc_close(reader);
}

static void test_slow_files(void **state)
{
    (void)state;
    static const char *const pieces[] = {
        "WARC/1.0\r\n",                                                        /* headers that never end */
        "WARC/1.0\r\nA: WARC/1.0\r\n",
        "xWARC/1.0\r\nA: b\r\n",
        "WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 500000\r\n\r\n",  /* false lengths */
        "WARC/1.0\r\nWARC-Type: response\r\nContent-Length: 99999999\r\n\r\n",
        "http://a/ 1.2.3.4 20260102030405 text/html 500000\n",
        "\x1f\x8b\x08",                                                        /* member headers without a member */
        "\x1f\x8b\x08\x08zzzzzz",
        "\x28\xb5\x2f\xfd",
        "\x28\xb5\x2f\xfd\x00\x58\xf9\xff\x0f",
        "\r\n",
        "WARC/",                                                               /* no line end anywhere */
        "CCCCCC",
        "WARC/1.0",
        "http://",
        "WARC/1.0\r\nA: b\r\n\r\n",
    };
    static const char *const names[] = {"slow.warc", "slow.warc.gz", "slow.warc.zst", "slow.arc"};

    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        struct wb_buf bytes = WB_BUF_INIT;
        size_t len = i == 9 ? 9 : strlen(pieces[i]);
        while (bytes.len < SLOW_BYTES)
            assert_int_equal(wb_buf_append(&bytes, pieces[i], len), 0);
        for (size_t n = 0; n < 4; n++)
            assert_fast(wb_buf_slice(&bytes), names[n]);
        struct wb_buf gzip = gzip_of(wb_buf_slice(&bytes));
        assert_fast(wb_buf_slice(&gzip), "slow.warc.gz");
        wb_buf_release(&gzip);
        wb_buf_release(&bytes);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_flip_gzip),   cmocka_unit_test(test_flip_zstd),
        cmocka_unit_test(test_flip_plain),  cmocka_unit_test(test_cut_off),
        cmocka_unit_test(test_damages),     cmocka_unit_test(test_records_in_a_page),
        cmocka_unit_test(test_whole_gzip),  cmocka_unit_test(test_flip_whole),
        cmocka_unit_test(test_cut_whole),   cmocka_unit_test(test_digests_in_damage),
        cmocka_unit_test(test_arc_garbage), cmocka_unit_test(test_slow_files),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
