/* test_warcreader.c - intact archives in every framing, limits on blocks, and sample files from other projects. */
#include "warc_support.h"

#include "../testdata.h"
#include "os/path.h"

static void assert_whole(const struct archive *plain, const struct archive *a, const char *name)
{
    struct found found, expected;

    read_archive(plain, "plain.warc", &expected);
    assert_int_equal(expected.records, plain->count);
    read_archive(a, name, &found);
    if (found.end != 0 || found.errors != 0 || found.records != plain->count)
        fail_msg("%s: %zu records, %zu errors, end %d", name, found.records, found.errors, found.end);
    for (size_t i = 0; i < plain->count; i++)
        assert_int_equal(found.hash[i], expected.hash[i]);
}

static void test_framings(void **state)
{
    (void)state;
    struct archive plain = make_archive(12, 30);
    struct found found;

    for (enum packing p = PLAIN; p <= ZSTD; p++) {
        struct archive a = packed(&plain, p);
        assert_whole(&plain, &a, name_for(p));
        assert_whole(&plain, &a, "told-by-content"); /* the name does not matter */
        read_archive(&a, name_for(p), &found);
        for (size_t i = 0; i < a.count; i++)
            assert_int_equal(found.offset[i], a.at[i]);
        archive_release(&a);
    }
    struct archive whole = ARCHIVE_INIT;
    struct wb_buf gzip = gzip_of(wb_buf_slice(&plain.bytes));
    archive_add(&whole, gzip.ptr, gzip.len);
    assert_whole(&plain, &whole, "whole.warc.gz");
    archive_release(&whole);
    wb_buf_release(&gzip);
    archive_release(&plain);
}

/* Units that end anywhere (in headers, blocks, line ends), some too large to be decoded in one call. */
static void test_spanning(void **state)
{
    (void)state;
    struct archive plain = make_archive(6, 40);

    for (size_t piece = 50; piece < 3000; piece = piece * 3 / 2 + 7) {
        for (enum packing p = GZIP; p <= ZSTD; p++) {
            struct archive pieces = ARCHIVE_INIT;
            struct wb_buf bytes = WB_BUF_INIT;
            for (size_t at = 0; at < plain.bytes.len; at += piece) {
                size_t len = plain.bytes.len - at < piece ? plain.bytes.len - at : piece;
                struct wb_buf one = p == GZIP ? gzip_of(wb_slice(plain.bytes.ptr + at, len))
                                              : zstd_of(wb_slice(plain.bytes.ptr + at, len), WB_SLICE_EMPTY);
                assert_int_equal(wb_buf_append_slice(&bytes, wb_buf_slice(&one)), 0);
                wb_buf_release(&one);
            }
            archive_add(&pieces, bytes.ptr, bytes.len);
            assert_whole(&plain, &pieces, name_for(p));
            archive_release(&pieces);
            wb_buf_release(&bytes);
        }
    }
    archive_release(&plain);
}

static void test_large_members(void **state)
{
    (void)state;
    struct archive plain = ARCHIVE_INIT;
    struct wb_buf noise = WB_BUF_INIT;
    uint64_t x = 88172645463325252u;

    /* 6 MB that do not compress, more than a window of compressed bytes; then 12 MB that do. */
    while (noise.len < (6u << 20)) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        assert_int_equal(wb_buf_append(&noise, &x, 8), 0);
    }
    add_response(&plain, 1, 10);
    add_record(&plain, "response", "http://site.example/noise", "", wb_buf_slice(&noise));
    assert_int_equal(wb_buf_reserve(&noise, noise.len), 0);
    noise.len *= 2;
    memset(noise.ptr, 'a', noise.len);
    add_record(&plain, "response", "http://site.example/letters", "", wb_buf_slice(&noise));
    add_response(&plain, 2, 10);
    for (enum packing p = PLAIN; p <= ZSTD; p++) {
        struct archive a = packed(&plain, p);
        struct found found, small;
        read_bytes(wb_buf_slice(&a.bytes), name_for(p), 32u << 20, &found);
        assert_int_equal(found.records, 4);
        assert_int_equal(found.errors, 0);
        read_bytes(wb_buf_slice(&a.bytes), name_for(p), 1000, &small);
        assert_int_equal(small.records, 4);
        assert_int_equal(small.errors, 0);
        assert_int_equal(small.hash[0], found.hash[0]);
        assert_int_not_equal(small.hash[1], found.hash[1]);
        assert_int_equal(small.hash[3], found.hash[3]);
        archive_release(&a);
    }
    archive_release(&plain);
    wb_buf_release(&noise);
}

static void test_cut(void **state)
{
    (void)state;
    struct archive plain = make_archive(3, 50);
    struct wb_buf block = response_block(0, 50);

    for (enum packing p = PLAIN; p <= ZSTD; p++) {
        struct archive a = packed(&plain, p);
        struct wb_warc_reader *reader = NULL;
        struct wb_warc_record record;
        assert_int_equal(open_bytes(wb_buf_slice(&a.bytes), name_for(p), 100, &reader), 0);
        assert_int_equal(wb_warc_next(reader, &record), 1);
        assert_true(record.cut);
        assert_int_equal(record.block.len, 100);
        assert_int_equal(record.block_bytes, block.len);
        assert_memory_equal(record.block.ptr, block.ptr, 100);
        assert_int_equal(wb_warc_next(reader, &record), 1);
        assert_int_equal(wb_warc_next(reader, &record), 1);
        assert_int_equal(wb_warc_next(reader, &record), 0);
        assert_int_equal(wb_warc_next(reader, &record), 0);
        wb_warc_close(reader);
        archive_release(&a);
    }
    wb_buf_release(&block);
    archive_release(&plain);
}

static void test_spellings(void **state)
{
    (void)state;
    static const char *const files[] = {
        "WARC/0.17\nwarc-type: response\nwarc-target-uri: <http://a.example/>\ncontent-length: 5\n\nhello\n\n",
        "\r\n\r\nWARC/1.0\r\nWARC-Type: response\r\nX: a\r\n b\r\nWARC-Target-URI: "
        "http://a.example/\r\nContent-Length:5\r\n\r\nhello",
        "WARC/0.18\r\nContent-Length: 5\r\nWARC-Type: response\r\nWARC-Target-URI: http://a.example/\r\n\r\nhello\r\n",
        "WARC/1.1\r\nContent-Length: 5\r\nWARC-Type: surprise\r\nWARC-Target-URI: "
        "http://a.example/\r\n\r\nhello\r\n\r\n\r\n\r\n",
    };
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct wb_warc_reader *reader = NULL;
        struct wb_warc_record record;
        struct wb_slice value;
        assert_int_equal(open_bytes(wb_slice_str(files[i]), "x.warc", BLOCK_MAX, &reader), 0);
        assert_int_equal(wb_warc_next(reader, &record), 1);
        assert_int_equal(record.type, i == 3 ? WB_WARC_UNKNOWN : WB_WARC_RESPONSE);
        assert_true(wb_slice_equal(record.uri, WB_SLICE_LIT("http://a.example/")));
        assert_true(wb_slice_equal(record.block, WB_SLICE_LIT("hello")));
        assert_true(wb_warc_header(&record, "CONTENT-length", &value));
        assert_true(wb_slice_equal(value, WB_SLICE_LIT("5")));
        assert_false(wb_warc_header(&record, "WARC-Date", &value));
        assert_false(record.has_time);
        assert_int_equal(wb_warc_next(reader, &record), 0);
        wb_warc_close(reader);
    }
}

static void test_dictionary(void **state)
{
    (void)state;
    struct archive plain = make_archive(5, 20);
    struct wb_slice dictionary = wb_slice(plain.bytes.ptr, 1000);
    struct wb_buf squeezed = zstd_of(dictionary, WB_SLICE_EMPTY);

    for (int form = 0; form < 2; form++) {
        struct wb_slice stored = form ? wb_buf_slice(&squeezed) : dictionary;
        struct wb_buf bytes = WB_BUF_INIT;
        uint32_t head[2] = {0x184D2A5D, (uint32_t)stored.len};
        uint32_t other[2] = {0x184D2A53, 5};
        assert_int_equal(wb_buf_append(&bytes, head, 8), 0);
        assert_int_equal(wb_buf_append_slice(&bytes, stored), 0);
        for (size_t i = 0; i < plain.count; i++) {
            struct wb_buf one = zstd_of(archive_unit(&plain, i), dictionary);
            assert_int_equal(wb_buf_append_slice(&bytes, wb_buf_slice(&one)), 0);
            assert_int_equal(wb_buf_append(&bytes, other, 8), 0);
            assert_int_equal(wb_buf_append(&bytes, "other", 5), 0);
            wb_buf_release(&one);
        }
        struct archive a = ARCHIVE_INIT;
        archive_add(&a, bytes.ptr, bytes.len);
        assert_whole(&plain, &a, "x.warc.zst");
        archive_release(&a);
        wb_buf_release(&bytes);
    }
    wb_buf_release(&squeezed);
    archive_release(&plain);
}

static void test_arc(void **state)
{
    (void)state;
    struct wb_buf bytes = WB_BUF_INIT, block = response_block(7, 5);
    const char *about = "1 0 Test\nURL IP-address Archive-date Content-type Archive-length\n";
    struct found found;

    assert_int_equal(
        wb_buf_printf(&bytes, "filedesc://x.arc 0.0.0.0 20260102030405 text/plain %zu\n%s\n", strlen(about), about), 0);
    for (int i = 0; i < 4; i++) {
        assert_int_equal(wb_buf_printf(&bytes, "http://a.example/%d and more 192.0.2.1 20260102030405 text/html %zu\n",
                                       i, block.len),
                         0);
        assert_int_equal(wb_buf_append_slice(&bytes, wb_buf_slice(&block)), 0);
        assert_int_equal(wb_buf_append_str(&bytes, i == 2 ? "" : "\n"), 0);
    }
    read_bytes(wb_buf_slice(&bytes), "x.arc", BLOCK_MAX, &found);
    assert_int_equal(found.records, 5);
    assert_int_equal(found.errors, 0);
    assert_int_equal(found.type[0], WB_WARC_ARC_VERSION);
    assert_int_equal(found.type[4], WB_WARC_ARC);
    struct wb_buf gzip = gzip_of(wb_buf_slice(&bytes));
    read_bytes(wb_buf_slice(&gzip), "x.arc.gz", BLOCK_MAX, &found);
    assert_int_equal(found.records, 5);
    assert_int_equal(found.errors, 0);
    wb_buf_release(&gzip);
    wb_buf_release(&bytes);
    wb_buf_release(&block);
}

static void test_not_an_archive(void **state)
{
    (void)state;
    static const char *text = "these are my notes, not an archive\nNote: nothing here\nhttp://a.example/ is a link\n";
    struct wb_buf gzip = gzip_of(wb_slice_str(text));
    static const char *const names[] = {"notes.warc", "notes.warc.gz", "notes.warc.zst", "notes.arc", "notes.txt"};
    struct found found;

    for (size_t i = 0; i < 5; i++) {
        read_bytes(wb_slice_str(text), names[i], BLOCK_MAX, &found);
        assert_int_equal(found.end, WB_E_PROTO);
        assert_int_equal(found.records + found.errors, 0);
        assert_non_null(strstr(wb_error_message(), names[i]));
        read_bytes(wb_buf_slice(&gzip), names[i], BLOCK_MAX, &found);
        assert_int_equal(found.end, WB_E_PROTO);
        assert_int_equal(found.records, 0);
    }
    wb_buf_release(&gzip);
    read_bytes(WB_SLICE_EMPTY, "empty.warc", BLOCK_MAX, &found);
    assert_int_equal(found.end, 0);
    read_bytes(WB_SLICE_EMPTY, "empty.txt", BLOCK_MAX, &found);
    assert_int_equal(found.end, WB_E_PROTO);
    struct wb_warc_reader *reader;
    assert_int_equal(wb_warc_open("/no/such/file.warc", BLOCK_MAX, &reader), WB_E_NOTFOUND);
    assert_null(reader);
    assert_int_equal(wb_warc_open("/", BLOCK_MAX, &reader), WB_E_INVALID);
}

/* Progress only increases and ends at the size of the file. */
static void test_progress(void **state)
{
    (void)state;
    struct archive plain = make_archive(8, 30);

    for (enum packing p = PLAIN; p <= ZSTD; p++) {
        struct archive a = packed(&plain, p);
        struct wb_warc_reader *reader = NULL;
        struct wb_warc_record record;
        uint64_t done, size, last = 0;
        int err;
        assert_int_equal(open_bytes(wb_buf_slice(&a.bytes), name_for(p), BLOCK_MAX, &reader), 0);
        while ((err = wb_warc_next(reader, &record)) > 0) {
            wb_warc_progress(reader, &done, &size);
            assert_int_equal(size, a.bytes.len);
            assert_true(done >= last && done <= size);
            last = done;
        }
        assert_int_equal(err, 0);
        wb_warc_progress(reader, &done, &size);
        assert_int_equal(done, size);
        wb_warc_close(reader);
        archive_release(&a);
    }
    archive_release(&plain);
}

/* ---- samples from other projects ------------------------------------------------------------------ */

struct sample {
    char name[400];
    uint64_t size;
    char path[1024]; /* of the sample, once it has been found */
};

static int find_sample(void *context, const struct wb_path_entry *entry)
{
    struct sample *sample = context;
    char here[1024];

    snprintf(here, sizeof here, "%s", sample->path);
    if (strlen(here) + strlen(entry->name) + 2 > sizeof sample->path)
        return 0;
    if (entry->kind == WB_PATH_FILE && entry->size == sample->size && strcmp(entry->name, sample->name) == 0) {
        strcat(strcat(sample->path, "/"), entry->name);
        return 1;
    }
    if (entry->kind != WB_PATH_DIR)
        return 0;
    strcat(strcat(sample->path, "/"), entry->name);
    int found = wb_path_each(sample->path, find_sample, sample);
    if (found == 0)
        strcpy(sample->path, here);
    return found;
}

static void check_sample(const struct sample *sample, uint64_t records, bool bad)
{
    struct wb_warc_reader *reader = NULL;
    struct wb_warc_mem mem = WB_WARC_MEM_INIT;
    struct wb_warc_record record;
    uint64_t found = 0, errors = 0;
    int err = wb_warc_open(sample->path, 8u << 20, &reader);

    while (err >= 0 || err == WB_E_CORRUPT) {
        struct wb_page page;
        const char *problem;
        err = wb_warc_next(reader, &record);
        if (err == 0)
            break;
        found += err > 0;
        errors += err < 0 || *record.problem;
        if (err > 0 &&
            (record.type == WB_WARC_RESPONSE || record.type == WB_WARC_RESOURCE || record.type == WB_WARC_ARC))
            assert_int_equal(wb_warc_page(&record, 8u << 20, &mem, &page, &problem), 0);
    }
    wb_warc_close(reader);
    wb_warc_mem_release(&mem);
    if (!bad && (found != records || errors != 0 || err != 0))
        fail_msg("%s: %" PRIu64 " records, not %" PRIu64 "; %" PRIu64 " errors", sample->path, found, records, errors);
    if (bad && !strstr(sample->name, "wrong-chunks") && errors == 0)
        fail_msg("%s: nothing is wrong in it", sample->path);
}

static void test_samples(void **state)
{
    (void)state;
    char folder[1024], line[1024], counts[1100];
    int seen = 0;

    test_data_path("warc", folder);
    snprintf(counts, sizeof counts, "%s/COUNTS.tsv", folder);
    FILE *f = fopen(counts, "r");
    if (!f)
        skip();
    assert_non_null(fgets(line, sizeof line, f));
    while (fgets(line, sizeof line, f)) {
        uint64_t records, size;
        char path[400];
        struct sample sample = {.size = 0};
        assert_int_equal(sscanf(line, "%*u\t%*u\t%" SCNu64 "\t%" SCNu64 "\t%399s", &records, &size, path), 3);
        sample.size = size;
        const char *slash = strrchr(path, '/');
        snprintf(sample.name, sizeof sample.name, "%s", slash ? slash + 1 : path);
        snprintf(sample.path, sizeof sample.path, "%s", folder);
        if (wb_path_each(folder, find_sample, &sample) != 1)
            continue; /* some of the files that it counts are missing */
        check_sample(&sample, records, strstr(line, "'bad'") != NULL);
        seen++;
    }
    fclose(f);
    assert_true(seen > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_framings), cmocka_unit_test(test_spanning),  cmocka_unit_test(test_large_members),
        cmocka_unit_test(test_cut),      cmocka_unit_test(test_spellings), cmocka_unit_test(test_dictionary),
        cmocka_unit_test(test_arc),      cmocka_unit_test(test_not_an_archive), cmocka_unit_test(test_samples),
        cmocka_unit_test(test_progress),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
