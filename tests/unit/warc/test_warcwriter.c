/* test_warcwriter.c - what is written reads back byte for byte, with correct digests and one unit per record. */
#include "warc_support.h"

#include "base/codec.h"

static int take_bytes(void *context, const void *bytes, size_t len)
{
    return wb_buf_append(context, bytes, len);
}

static const char *const heads[] = {
    "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: 20\r\n",
    "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\ncontent-encoding: gzip\r\nContent-Length: 11\r\nX: y\r\n",
    "HTTP/1.1 301 Moved Permanently\r\nLocation: /x\r\nTransfer-Encoding: chunked\r\nContent-Encoding: br\r\n",
    "HTTP/1.0 404 Not Found\r\n",
    "HTTP/1.1 200 OK\r\nContent-Length: nonsense\r\nSet-Cookie: a\r\nSet-Cookie: b\r\nFolded: 1\r\n 2\r\n",
};
#define HEADS (sizeof heads / sizeof *heads)

static struct wb_page page_of(size_t i, struct wb_slice body)
{
    struct wb_page page = {.url = WB_SLICE_LIT("http://a.example/p"),
                           .key = WB_SLICE_LIT("a.example/p"),
                           .head = WB_SLICE_EMPTY,
                           .type = WB_SLICE_LIT("text/plain"),
                           .charset = WB_SLICE_LIT("utf-8"),
                           .body = body,
                           .time_ms = 1767323045678 + (int64_t)i,
                           .kind = WB_PAGE_RESOURCE,
                           .status = 200};
    if (i < HEADS) {
        page.kind = WB_PAGE_RESPONSE;
        page.head = wb_slice_str(heads[i]);
    }
    page.truncated = i % 3 == 2;
    return page;
}

/* Writes the pages 0 to HEADS (the last one is a resource) as an archive. */
static struct wb_buf write_pages(enum wb_warc_coding coding, struct wb_slice body, bool digested)
{
    struct wb_warc_writer *writer = NULL;
    struct wb_buf out = WB_BUF_INIT;

    assert_int_equal(wb_warc_writer_new(coding, take_bytes, &out, &writer), 0);
    assert_int_equal(wb_warc_write_info(writer, "dir\nname.warc", 1767323045000), 0);
    for (size_t i = 0; i <= HEADS; i++) {
        struct wb_page page = page_of(i, body);
        if (digested)
            wb_page_digest(&page);
        assert_int_equal(wb_warc_write_page(writer, &page), 0);
    }
    wb_warc_writer_free(writer);
    return out;
}

static void assert_digest(const struct wb_warc_record *record, const char *name, struct wb_slice bytes)
{
    struct wb_slice value;
    uint8_t sha1[WB_SHA1_BYTES];
    char text[64] = "sha1:";

    wb_sha1(bytes.ptr, bytes.len, sha1);
    wb_base32_encode(sha1, sizeof sha1, text + 5);
    assert_true(wb_warc_header(record, name, &value));
    assert_true(wb_slice_equal(value, wb_slice_str(text)));
}

static void assert_page_back(struct wb_warc_reader *reader, size_t i, struct wb_slice body, struct wb_warc_mem *mem)
{
    struct wb_warc_record record;
    struct wb_page want = page_of(i, body), page;
    struct wb_slice value;
    const char *problem;

    assert_int_equal(wb_warc_next(reader, &record), 1);
    assert_int_equal(record.type, i < HEADS ? WB_WARC_RESPONSE : WB_WARC_RESOURCE);
    assert_true(wb_warc_header(&record, "WARC-Record-ID", &value));
    assert_int_equal(value.len, 47);
    assert_int_equal(record.truncated, want.truncated);
    assert_digest(&record, "WARC-Block-Digest", record.block);
    assert_digest(&record, "WARC-Payload-Digest", body);
    assert_int_equal(wb_warc_page(&record, (size_t)80 << 20, mem, &page, &problem), 0);
    assert_true(wb_slice_equal(page.body, body));
    if (!wb_slice_equal(page.head, want.head))
        fail_msg("head %zu is '%.*s'", i, WB_SLICE_ARG(page.head));
    assert_true(wb_slice_equal(page.url, want.url) && page.kind == want.kind && page.time_ms == want.time_ms);
    assert_int_equal(page.truncated, want.truncated);
    if (i == HEADS)
        assert_true(wb_slice_equal(page.type, want.type) && wb_slice_equal(page.charset, want.charset));
}

static void assert_round_trip(enum wb_warc_coding coding, struct wb_slice body, bool digested)
{
    static const char *const names[] = {"x.warc", "x.warc.gz", "x.warc.zst"};
    struct wb_buf bytes = write_pages(coding, body, digested);
    struct wb_warc_reader *reader = NULL;
    struct wb_warc_mem mem = WB_WARC_MEM_INIT;
    struct wb_warc_record record;
    struct wb_slice value;
    struct found found;

    assert_int_equal(open_bytes(wb_buf_slice(&bytes), names[coding], (size_t)80 << 20, &reader), 0);
    assert_int_equal(wb_warc_next(reader, &record), 1);
    assert_int_equal(record.type, WB_WARC_WARCINFO);
    assert_digest(&record, "WARC-Block-Digest", record.block);
    assert_true(wb_warc_header(&record, "WARC-Filename", &value));
    assert_true(wb_slice_equal(value, WB_SLICE_LIT("dir name.warc")));
    for (size_t i = 0; i <= HEADS; i++)
        assert_page_back(reader, i, body, &mem);
    assert_int_equal(wb_warc_next(reader, &record), 0);
    wb_warc_close(reader);
    wb_warc_mem_release(&mem);
    read_bytes(wb_buf_slice(&bytes), names[coding], 10, &found);
    for (size_t i = 1; i < found.records; i++)
        assert_true(found.offset[i] > found.offset[i - 1]); /* each record is in its own unit */
    wb_buf_release(&bytes);
}

static void test_round_trip(void **state)
{
    (void)state;
    struct wb_buf large = WB_BUF_INIT;
    uint64_t x = 88172645463325252u;

    for (enum wb_warc_coding c = WB_WARC_PLAIN; c <= WB_WARC_ZSTD; c++) {
        assert_round_trip(c, WB_SLICE_LIT("twenty bytes of body"), false);
        assert_round_trip(c, WB_SLICE_LIT("\r\n\r\nWARC/1.1\r\nWARC-Type: response\r\n\r\n"), true);
        assert_round_trip(c, WB_SLICE_EMPTY, true);
    }
    while (large.len < (9u << 20)) { /* too large to be compressed in one call */
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        assert_int_equal(wb_buf_printf(&large, "%" PRIx64 "...............................", x), 0);
    }
    for (enum wb_warc_coding c = WB_WARC_PLAIN; c <= WB_WARC_ZSTD; c++)
        assert_round_trip(c, wb_buf_slice(&large), true);
    wb_buf_release(&large);
}

static void assert_header(const struct wb_warc_record *record, const char *name, const char *want)
{
    struct wb_slice value;

    if (!wb_warc_header(record, name, &value) || !wb_slice_equal(value, wb_slice_str(want)))
        fail_msg("%s is not %s", name, want);
}

/* A revisit names the record that has the bytes, by URL, date and digest, and has an empty block. */
static void test_revisits(void **state)
{
    (void)state;
    static const char *const names[] = {"x.warc", "x.warc.gz", "x.warc.zst"};

    for (enum wb_warc_coding c = WB_WARC_PLAIN; c <= WB_WARC_ZSTD; c++) {
        struct wb_warc_writer *writer = NULL;
        struct wb_warc_reader *reader = NULL;
        struct wb_buf out = WB_BUF_INIT;
        struct wb_warc_record record;
        struct wb_warc_revisit revisit;
        struct wb_page page = page_of(0, WB_SLICE_LIT("twenty bytes of body"));
        wb_page_digest(&page);
        assert_int_equal(wb_warc_writer_new(c, take_bytes, &out, &writer), 0);
        assert_int_equal(wb_warc_write_revisit(writer, &page, 1767312000001), 0);
        assert_int_equal(wb_warc_write_page(writer, &page), 0);
        wb_warc_writer_free(writer);
        assert_int_equal(open_bytes(wb_buf_slice(&out), names[c], 1 << 20, &reader), 0);
        assert_int_equal(wb_warc_next(reader, &record), 1);
        assert_int_equal(record.type, WB_WARC_REVISIT);
        assert_int_equal(record.block_bytes, 0);
        assert_true(record.has_time && record.time_ms == page.time_ms);
        assert_true(wb_slice_equal(record.uri, page.url));
        assert_header(&record, "WARC-Profile", "http://netpreserve.org/warc/1.1/revisit/identical-payload-digest");
        assert_header(&record, "WARC-Refers-To-Target-URI", "http://a.example/p");
        assert_header(&record, "WARC-Refers-To-Date", "2026-01-02T00:00:00.001Z");
        assert_digest(&record, "WARC-Block-Digest", WB_SLICE_EMPTY);
        assert_digest(&record, "WARC-Payload-Digest", page.body);
        wb_warc_revisit(&record, &revisit);
        assert_true(revisit.known_profile && !revisit.not_modified && revisit.has_sha1);
        assert_memory_equal(revisit.sha1, page.sha1, WB_SHA1_BYTES);
        assert_true(revisit.refers_time_ms == 1767312000001);
        assert_int_equal(wb_warc_next(reader, &record), 1); /* the next record is intact */
        assert_int_equal(record.type, WB_WARC_RESPONSE);
        assert_int_equal(wb_warc_next(reader, &record), 0);
        wb_warc_close(reader);
        wb_buf_release(&out);
    }
}

/* A URL cannot add lines to the header. */
static void test_revisit_of_a_hostile_url(void **state)
{
    (void)state;
    struct wb_warc_writer *writer = NULL;
    struct wb_buf out = WB_BUF_INIT;
    struct wb_page page = page_of(0, WB_SLICE_EMPTY);

    page.url = WB_SLICE_LIT("http://a.example/\r\nContent-Length: 7");
    wb_page_digest(&page);
    assert_int_equal(wb_warc_writer_new(WB_WARC_PLAIN, take_bytes, &out, &writer), 0);
    assert_int_equal(wb_warc_write_revisit(writer, &page, 0), 0);
    assert_null(memmem(out.ptr, out.len, "\nContent-Length: 7", 18));
    wb_warc_writer_free(writer);
    wb_buf_release(&out);
}

/* Every frame has its content size and a checksum, as the proposal for .warc.zst requires. */
static void test_zstd_frames(void **state)
{
    (void)state;
    struct wb_buf bytes = write_pages(WB_WARC_ZSTD, WB_SLICE_LIT("twenty bytes of body"), true);
    size_t at = 0, frames = 0;

    while (at < bytes.len) {
        size_t len = ZSTD_findFrameCompressedSize(bytes.ptr + at, bytes.len - at);
        assert_false(ZSTD_isError(len));
        unsigned long long size = ZSTD_getFrameContentSize(bytes.ptr + at, bytes.len - at);
        assert_true(size > 100 && size < 10000);
        assert_true(bytes.ptr[at + 4] & 4); /* the checksum flag of the frame header */
        at += len;
        frames++;
    }
    assert_int_equal(frames, HEADS + 2);
    wb_buf_release(&bytes);
}

static void test_names(void **state)
{
    (void)state;
    enum wb_warc_coding coding;

    assert_int_equal(wb_warc_coding_of_name("a/b.warc", &coding), 0);
    assert_int_equal(coding, WB_WARC_PLAIN);
    assert_int_equal(wb_warc_coding_of_name("a/b.WARC.gz", &coding), 0);
    assert_int_equal(coding, WB_WARC_GZIP);
    assert_int_equal(wb_warc_coding_of_name("b.warc.zst", &coding), 0);
    assert_int_equal(coding, WB_WARC_ZSTD);
    static const char *const bad[] = {"b.gz", "b.arc", "b", "", "b.warc.bz2"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(wb_warc_coding_of_name(bad[i], &coding), WB_E_INVALID);
        assert_non_null(strstr(wb_error_message(), bad[i]));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_revisits),
        cmocka_unit_test(test_revisit_of_a_hostile_url),
        cmocka_unit_test(test_zstd_frames),
        cmocka_unit_test(test_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
