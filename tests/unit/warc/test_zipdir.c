/* test_zipdir.c - directories of ZIP files: those of zipwriter.c, zip64, and those of strangers. */
#include "zip_support.h"

#include "warc/warc.h"

#define HOLE (UINT64_C(5) << 30)

/* A file that grows from an offset on; what is before it is a hole. */
struct target {
    struct wb_file file;
    uint64_t at;
};

static int write_target(void *context, const void *bytes, size_t len)
{
    struct target *t = context;
    int err = wb_file_write_at(&t->file, t->at, bytes, len);

    t->at += len;
    return err;
}

static void write_entry(struct wb_zipwriter *zip, const char *name, uint64_t at_most, const char *text)
{
    assert_int_equal(wb_zipwriter_begin(zip, name, at_most), 0);
    assert_int_equal(wb_zipwriter_write(zip, text, strlen(text)), 0);
    assert_int_equal(wb_zipwriter_bytes(zip), strlen(text));
    assert_int_equal(wb_zipwriter_end(zip), 0);
}

static void expect_text(const struct wb_file *file, const struct wb_zipdir_entry *entry, const char *text)
{
    char bytes[64];
    uint64_t data;

    assert_int_equal(wb_zipdir_data(file, entry, &data), 0);
    assert_int_equal(entry->size, strlen(text));
    assert_int_equal(entry->packed, strlen(text));
    assert_int_equal(entry->crc, libdeflate_crc32(0, text, strlen(text)));
    assert_int_equal(wb_file_read_exact(file, data, bytes, strlen(text)), 0);
    assert_memory_equal(bytes, text, strlen(text));
}

static void what_is_written_is_read(void **state)
{
    struct target t = {zip_file(WB_SLICE_EMPTY), 0};
    struct wb_zipwriter *zip = NULL;
    struct wb_zipdir dir;

    (void)state;
    assert_int_equal(wb_zipwriter_new(write_target, &t, 1767323045678, &zip), 0);
    write_entry(zip, "archive/a", 100, "first");
    write_entry(zip, "archive/large", UINT64_MAX, "second");
    write_entry(zip, "empty", 0, "");
    assert_string_equal(wb_zipwriter_entry(zip, 1)->name, "archive/large");
    assert_null(wb_zipwriter_entry(zip, 3));
    assert_int_equal(wb_zipwriter_finish(zip), 0);
    wb_zipwriter_free(zip);
    assert_int_equal(wb_zipdir_read(&dir, &t.file), 0);
    assert_int_equal(dir.entries.count, 3);
    expect_text(&t.file, &dir.entries.items[0], "first");
    expect_text(&t.file, &dir.entries.items[1], "second");
    expect_text(&t.file, &dir.entries.items[2], "");
    wb_zipdir_release(&dir);
    wb_file_close(&t.file);
}

/* Inflates an entry and compares it with the text. */
static void expect_inflated(const struct wb_file *file, const struct wb_zipdir_entry *entry, struct wb_slice text)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    char *packed = malloc((size_t)entry->packed), *bytes = malloc(text.len);
    uint64_t data;

    assert_true(d && packed && bytes);
    assert_int_equal(wb_zipdir_data(file, entry, &data), 0);
    assert_int_equal(entry->size, text.len);
    assert_int_equal(entry->crc, libdeflate_crc32(0, text.ptr, text.len));
    assert_int_equal(wb_file_read_exact(file, data, packed, (size_t)entry->packed), 0);
    assert_int_equal(libdeflate_deflate_decompress(d, packed, (size_t)entry->packed, bytes, text.len, NULL), 0);
    assert_memory_equal(bytes, text.ptr, text.len);
    libdeflate_free_decompressor(d);
    free(packed);
    free(bytes);
}

static void deflated_entries(void **state)
{
    struct target t = {zip_file(WB_SLICE_EMPTY), 0};
    struct wb_buf noise = WB_BUF_INIT;
    struct wb_zipwriter *zip = NULL;
    struct wb_zipdir dir;

    (void)state;
    for (uint64_t i = 0, x = 1; i < 50000; i++, x = x * UINT64_C(6364136223846793005) + 1442695040888963407)
        assert_int_equal(wb_buf_append_char(&noise, (char)(x >> 56)), 0);
    assert_int_equal(wb_zipwriter_new(write_target, &t, 1767323045678, &zip), 0);
    assert_int_equal(wb_zipwriter_begin_deflated(zip, "words", 2000), 0);
    for (unsigned i = 0; i < 100; i++)
        assert_int_equal(wb_zipwriter_write(zip, "the same, ", 10), 0);
    assert_int_equal(wb_zipwriter_bytes(zip), 1000);
    assert_int_equal(wb_zipwriter_end(zip), 0);
    write_entry(zip, "stored", 100, "between");
    assert_int_equal(wb_zipwriter_begin_deflated(zip, "noise", UINT64_MAX), 0);
    assert_int_equal(wb_zipwriter_write(zip, noise.ptr, noise.len), 0);
    assert_int_equal(wb_zipwriter_end(zip), 0);
    assert_int_equal(wb_zipwriter_begin_deflated(zip, "empty", 1), 0);
    assert_int_equal(wb_zipwriter_end(zip), 0);
    assert_int_equal(wb_zipwriter_finish(zip), 0);
    wb_zipwriter_free(zip);
    assert_int_equal(wb_zipdir_read(&dir, &t.file), 0);
    assert_int_equal(dir.entries.count, 4);
    char words[1000];
    for (size_t i = 0; i < sizeof words; i++)
        words[i] = "the same, "[i % 10];
    expect_inflated(&t.file, &dir.entries.items[0], wb_slice(words, sizeof words));
    assert_true(dir.entries.items[0].packed < 100);
    expect_text(&t.file, &dir.entries.items[1], "between");
    expect_inflated(&t.file, &dir.entries.items[2], wb_buf_slice(&noise));
    assert_int_equal(dir.entries.items[3].size, 0);
    wb_zipdir_release(&dir);
    wb_buf_release(&noise);
    wb_file_close(&t.file);
}

/* The hash is that of the bytes; an entry that was announced as small cannot become large. */
static void hashes_and_limits(void **state)
{
    static const uint8_t abc[] = {0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea};
    struct target t = {zip_file(WB_SLICE_EMPTY), 0};
    struct wb_zipwriter *zip = NULL;
    size_t half = (size_t)UINT32_MAX / 2 + 1;

    (void)state;
    assert_int_equal(wb_zipwriter_new(write_target, &t, 0, &zip), 0);
    write_entry(zip, "a", 100, "abc");
    assert_memory_equal(wb_zipwriter_entry(zip, 0)->sha256, abc, sizeof abc);
    assert_int_equal(wb_zipwriter_begin(zip, "b", 100), 0);
    void *much = mmap(NULL, 2 * half, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(much != MAP_FAILED);
    assert_int_equal(wb_zipwriter_write(zip, much, 2 * half), WB_E_LIMIT);
    munmap(much, 2 * half);
    wb_zipwriter_free(zip);
    wb_file_close(&t.file);
}

/* 70,000 entries need zip64 for their number. */
static void many_entries(void **state)
{
    struct target t = {zip_file(WB_SLICE_EMPTY), 0};
    struct wb_zipwriter *zip = NULL;
    struct wb_zipdir dir;
    char name[32];

    (void)state;
    assert_int_equal(wb_zipwriter_new(write_target, &t, 0, &zip), 0);
    for (unsigned i = 0; i < 70000; i++) {
        snprintf(name, sizeof name, "entry-%u", i);
        write_entry(zip, name, 10, "x");
    }
    assert_int_equal(wb_zipwriter_finish(zip), 0);
    wb_zipwriter_free(zip);
    assert_int_equal(wb_zipdir_read(&dir, &t.file), 0);
    assert_int_equal(dir.entries.count, 70000);
    expect_text(&t.file, &dir.entries.items[69999], "x");
    wb_zipdir_release(&dir);
    wb_file_close(&t.file);
}

/* Makes zip64 numbers of the numbers of a small file, and shifts it behind a hole of 5 GiB. */
static struct wb_file far_file(void)
{
    struct wb_file file = zip_file(WB_SLICE_EMPTY);
    uint8_t local[30] = {'P', 'K', 3, 4}, central[46 + 1 + 28 + 6] = {'P', 'K', 1, 2};
    uint8_t ends[56 + 20 + 22] = {'P', 'K', 6, 6};
    uint8_t *extra = central + 47;

    wb_put16(local + 26, 1);
    assert_int_equal(wb_file_write_at(&file, HOLE, local, sizeof local), 0);
    assert_int_equal(wb_file_write_at(&file, HOLE + 30, "nhello", 6), 0);
    wb_put32(central + 16, libdeflate_crc32(0, "hello", 5));
    wb_put32(central + 20, UINT32_MAX);
    wb_put32(central + 24, UINT32_MAX);
    wb_put16(central + 28, 1);
    wb_put16(central + 30, 34);
    wb_put32(central + 42, UINT32_MAX);
    central[46] = 'n';
    wb_put16(extra, 0x5455); /* another field comes first */
    wb_put16(extra + 2, 2);
    wb_put16(extra + 6, 1);
    wb_put16(extra + 8, 24);
    wb_put64(extra + 10, 5);
    wb_put64(extra + 18, 5);
    wb_put64(extra + 26, HOLE);
    assert_int_equal(wb_file_write_at(&file, HOLE + 36, central, sizeof central), 0);
    wb_put64(ends + 4, 44);
    wb_put64(ends + 24, 1);
    wb_put64(ends + 32, 1);
    wb_put64(ends + 40, sizeof central);
    wb_put64(ends + 48, HOLE + 36);
    memcpy(ends + 56, "PK\6\7", 4);
    wb_put64(ends + 64, HOLE + 36 + sizeof central);
    memcpy(ends + 76, "PK\5\6\0\0\0\0\1\0\1\0\xff\xff\xff\xff\xff\xff\xff\xff", 20);
    assert_int_equal(wb_file_write_at(&file, HOLE + 36 + sizeof central, ends, sizeof ends), 0);
    return file;
}

static void beyond_4_gib(void **state)
{
    struct wb_file file = far_file();
    struct wb_zipdir dir;

    (void)state;
    assert_int_equal(wb_zipdir_read(&dir, &file), 0);
    assert_int_equal(dir.entries.count, 1);
    assert_int_equal(dir.entries.items[0].offset, HOLE);
    expect_text(&file, &dir.entries.items[0], "hello");
    wb_zipdir_release(&dir);
    wb_file_close(&file);
}

/* ---- strangers ----------------------------------------------------------------------------- */

/* What the directory says, and the data of its first entry if that is good. */
static int verdict(struct wb_slice bytes)
{
    struct wb_file file = zip_file(bytes);
    struct wb_zipdir dir;
    uint64_t data;

    int err = wb_zipdir_read(&dir, &file);
    for (size_t i = 0; err == 0 && i < dir.entries.count; i++)
        err = wb_zipdir_data(&file, &dir.entries.items[i], &data);
    if (err < 0)
        assert_non_null(strstr(wb_error_message(), file.path));
    wb_zipdir_release(&dir);
    wb_file_close(&file);
    return err;
}

static void expect_lie(int code, const char *name, bool deflated, struct zip_lie lie)
{
    struct zip z = ZIP_INIT;

    zip_add(&z, "archive/first", false, WB_SLICE_LIT("some bytes"));
    zip_add_lie(&z, name, deflated, WB_SLICE_LIT("more bytes, more bytes, more bytes"), lie);
    zip_end(&z);
    assert_int_equal(verdict(wb_buf_slice(&z.bytes)), code);
    zip_release(&z);
}

static void bad_entries(void **state)
{
    (void)state;
    expect_lie(0, "good", false, (struct zip_lie){0});
    expect_lie(0, "good", true, (struct zip_lie){0});
    expect_lie(0, "a..b/..c", true, (struct zip_lie){0});
    static const char *const names[] = {"..", "../x", "a/../b", "a/..",  "/etc/passwd",
                                        "",   "a\\b", "a\nb",   "a\x7f", "archive/first"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        expect_lie(WB_E_CORRUPT, names[i], false, (struct zip_lie){0});
    expect_lie(WB_E_PROTO, "encrypted", false, (struct zip_lie){.flags = 1});
    expect_lie(WB_E_PROTO, "strongly", false, (struct zip_lie){.flags = 0x40});
    expect_lie(WB_E_PROTO, "masked", false, (struct zip_lie){.flags = 0x2000});
    expect_lie(WB_E_PROTO, "lzma", false, (struct zip_lie){.method = 14});
    expect_lie(WB_E_PROTO, "sizes", false, (struct zip_lie){.size = 99});
    expect_lie(WB_E_PROTO, "bomb", true, (struct zip_lie){.size = 1u << 30});
    expect_lie(WB_E_CORRUPT, "long", false, (struct zip_lie){.packed = 1000, .size = 1000});
    expect_lie(WB_E_CORRUPT, "overlap", false, (struct zip_lie){.offset = 3});
    expect_lie(WB_E_CORRUPT, "outside", false, (struct zip_lie){.offset = 1u << 30});
    expect_lie(WB_E_CORRUPT, "no zip64", false, (struct zip_lie){.packed = UINT32_MAX, .size = UINT32_MAX});
    expect_lie(0, "extra", false, (struct zip_lie){.local_extra = 500});
}

/* The first header of the file is not where the directory says. */
static void bad_local_header(void **state)
{
    struct zip z = ZIP_INIT;

    (void)state;
    zip_add(&z, "archive/first", false, WB_SLICE_LIT("some bytes"));
    zip_add(&z, "archive/second", false, WB_SLICE_LIT("some bytes"));
    zip_end(&z);
    z.bytes.ptr[0] = 'Q';
    assert_int_equal(verdict(wb_buf_slice(&z.bytes)), WB_E_CORRUPT);
    z.bytes.ptr[0] = 'P';
    wb_put16(z.bytes.ptr + 28, 60000); /* an extra field that reaches into the next entry */
    assert_int_equal(verdict(wb_buf_slice(&z.bytes)), WB_E_CORRUPT);
    zip_release(&z);
}

static void not_zip(void **state)
{
    struct zip z = ZIP_INIT;

    (void)state;
    assert_int_equal(verdict(WB_SLICE_EMPTY), WB_E_PROTO);
    assert_int_equal(verdict(WB_SLICE_LIT("PK")), WB_E_PROTO);
    assert_int_equal(verdict(WB_SLICE_LIT("this is not an archive, and it goes on for a while")), WB_E_PROTO);
    zip_end(&z);
    assert_int_equal(verdict(wb_buf_slice(&z.bytes)), 0);
    zip_release(&z);
}

/* Every prefix of a file, and every byte of its directory changed: an error or a directory, and never more. */
static void cut_and_changed(void **state)
{
    struct zip z = ZIP_INIT;

    (void)state;
    zip_add(&z, "archive/first", false, WB_SLICE_LIT("some bytes"));
    zip_add(&z, "archive/second", true, WB_SLICE_LIT("some bytes some bytes some bytes"));
    size_t start = z.bytes.len;
    zip_end(&z);
    for (size_t len = 0; len < z.bytes.len; len++)
        assert_int_equal(verdict(wb_slice(z.bytes.ptr, len)), WB_E_PROTO);
    for (size_t at = start; at < z.bytes.len; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            z.bytes.ptr[at] = (char)(z.bytes.ptr[at] ^ 1 << bit);
            int err = verdict(wb_buf_slice(&z.bytes));
            assert_true(err == 0 || err == WB_E_CORRUPT || err == WB_E_PROTO || err == WB_E_LIMIT);
            z.bytes.ptr[at] = (char)(z.bytes.ptr[at] ^ 1 << bit);
        }
    zip_release(&z);
}

/* A directory that claims millions of entries is refused before memory is allocated for them. */
static void absurd_counts(void **state)
{
    struct wb_file file = far_file();
    struct wb_zipdir dir;
    uint8_t number[8];
    uint64_t ends = HOLE + 36 + 46 + 1 + 34;

    (void)state;
    wb_put64(number, UINT64_C(1) << 40);
    assert_int_equal(wb_file_write_at(&file, ends + 24, number, 8), 0);
    assert_int_equal(wb_file_write_at(&file, ends + 32, number, 8), 0);
    assert_int_equal(wb_zipdir_read(&dir, &file), WB_E_LIMIT);
    wb_zipdir_release(&dir);
    wb_put64(number, 1);
    assert_int_equal(wb_file_write_at(&file, ends + 24, number, 8), 0);
    assert_int_equal(wb_file_write_at(&file, ends + 32, number, 8), 0);
    wb_put64(number, UINT64_MAX);
    assert_int_equal(wb_file_write_at(&file, ends + 40, number, 8), 0);
    assert_int_equal(wb_zipdir_read(&dir, &file), WB_E_LIMIT);
    wb_zipdir_release(&dir);
    wb_file_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read),
        cmocka_unit_test(deflated_entries),
        cmocka_unit_test(hashes_and_limits),
        cmocka_unit_test(many_entries),
        cmocka_unit_test(beyond_4_gib),
        cmocka_unit_test(bad_entries),
        cmocka_unit_test(bad_local_header),
        cmocka_unit_test(not_zip),
        cmocka_unit_test(cut_and_changed),
        cmocka_unit_test(absurd_counts),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
