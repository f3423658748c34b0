/* test_waczpen.c - a WACZ that is written has what it says: records, index, pages and hashes; in many archives too. */
#include "ingest_support.h"

#include "base/error.h"
#include "ingest/ingest.h"
#include "os/fault.h"
#include "warc/wacz.h"

#include <errno.h>
#include <libdeflate.h>

#define PAGES 2500u

static int take_bytes(void *context, const void *bytes, size_t len)
{
    return wb_buf_append(context, bytes, len);
}

/* Writes pages; of every tenth one, a revisit as well. One in 25 has the same key in the index and the same time. */
static int write_pages(struct wb_warc_writer *writer, unsigned count)
{
    char url[64], key[64], body[200];
    int err = 0;

    for (unsigned i = 0; err == 0 && i < count; i++) {
        snprintf(url, sizeof url, "http://www.site%u.example/Page%u", i % 7, i);
        snprintf(key, sizeof key, "www.site%u.example/Page%u", i % 7, i);
        bool same = i % 25 == 1;
        if (same) {
            snprintf(url, sizeof url, "http://www%u.same.example/Same", i);
            snprintf(key, sizeof key, "www%u.same.example/Same", i);
        }
        snprintf(body, sizeof body, "<title>Title \"%u\"</title><p>%u %x", i, i, i * 2654435761u);
        struct wb_page page = {
            .url = wb_slice_str(url),
            .key = wb_slice_str(key),
            .head = i % 3 ? WB_SLICE_LIT("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n")
                          : WB_SLICE_LIT("HTTP/1.1 404 Not Found\r\nContent-Type: text/html\r\n"),
            .type = WB_SLICE_LIT("text/html"),
            .charset = WB_SLICE_EMPTY,
            .body = wb_slice_str(body),
            .time_ms = 1767323045678 + (same ? 0 : i),
            .status = i % 3 ? 200 : 404,
            .kind = WB_PAGE_RESPONSE,
        };
        page.id = wb_pageid_of_key(page.key);
        wb_page_digest(&page);
        err = wb_warc_write_page(writer, &page);
        page.time_ms += 5000;
        if (err == 0 && i % 10 == 0)
            err = wb_warc_write_revisit(writer, &page, page.time_ms - 5000);
    }
    return err;
}

static int write_wacz(unsigned count, uint64_t archive_bytes, struct wb_buf *out, unsigned *archives_out)
{
    struct wb_waczpen_options options = {.sink = take_bytes,
                                         .context = out,
                                         .temporary_dir = test_root,
                                         .memory_bytes = WB_WACZPEN_MEMORY_BYTES,
                                         .archive_bytes = archive_bytes,
                                         .now_ms = 1767323045678};
    struct wb_waczpen *pen = NULL;

    *archives_out = 0;
    int err = wb_waczpen_open(&options, &pen);
    if (err == 0)
        err = write_pages(wb_waczpen_writer(pen), count);
    if (err == 0)
        err = wb_waczpen_finish(pen);
    if (err == 0)
        *archives_out = wb_waczpen_archives(pen);
    wb_waczpen_close(pen);
    return err;
}

/* The bytes of an entry: behind its local header. What was deflated is inflated, and valid until the next one is. */
static struct wb_slice entry_bytes(const struct wb_buf *file, const struct wb_wacz_entry *entry)
{
    static char inflated[16 << 20];
    const uint8_t *head = (const uint8_t *)file->ptr + entry->offset;
    size_t head_bytes = 30u + (size_t)(head[26] | head[27] << 8) + (size_t)(head[28] | head[29] << 8), made = 0;
    struct wb_slice bytes = wb_slice((const char *)head + head_bytes, (size_t)entry->bytes);

    if (head[8] == 0)
        return bytes;
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    assert_non_null(d);
    assert_int_equal(libdeflate_deflate_decompress(d, bytes.ptr, bytes.len, inflated, sizeof inflated, &made), 0);
    libdeflate_free_decompressor(d);
    return wb_slice(inflated, made);
}

static struct wb_slice find_bytes(const struct wb_buf *file, struct wb_wacz *wacz, const char *name)
{
    struct wb_wacz_entry entry;

    for (size_t i = 0; wb_wacz_entry(wacz, i, &entry); i++)
        if (wb_slice_ends(wb_slice_str(entry.name), wb_slice_str(name)))
            return entry_bytes(file, &entry);
    fail_msg("%s is missing", name);
    return WB_SLICE_EMPTY;
}

/* Inflates one gzip member and appends what is in it. */
static void append_member(struct wb_slice member, struct wb_buf *out)
{
    struct libdeflate_decompressor *d = libdeflate_alloc_decompressor();
    size_t used = 0, made = 0;

    assert_non_null(d);
    assert_int_equal(wb_buf_reserve(out, 1 << 20), 0);
    char *to = out->ptr + out->len;
    assert_int_equal(libdeflate_gzip_decompress_ex(d, member.ptr, member.len, to, 1 << 20, &used, &made), 0);
    assert_int_equal(used, member.len);
    out->len += made;
    libdeflate_free_decompressor(d);
}

static uint64_t number_after(struct wb_slice line, const char *name)
{
    const char *at = memmem(line.ptr, line.len, name, strlen(name));

    assert_non_null(at);
    return strtoull(at + strlen(name), NULL, 10);
}

/* Puts the lines of all blocks together, as index.idx says where they are. Returns the number of blocks. */
static unsigned read_index(struct wb_slice idx, struct wb_slice cdx, struct wb_buf *lines)
{
    struct wb_slice line;
    unsigned blocks = 0;
    uint64_t end = 0;

    assert_true(wb_slice_next_line(&idx, &line));
    assert_true(wb_slice_starts(line, WB_SLICE_LIT("!meta 0 {\"format\":\"cdxj-gzip-1.0\"")));
    for (; wb_slice_next_line(&idx, &line); blocks++) {
        uint64_t offset = number_after(line, "\"offset\":"), length = number_after(line, "\"length\":");
        const char *json = memmem(line.ptr, line.len, " {", 2);
        size_t start = lines->len;
        assert_int_equal(offset, end);
        end = offset + length;
        append_member(wb_slice(cdx.ptr + offset, (size_t)length), lines);
        assert_memory_equal(lines->ptr + start, line.ptr, (size_t)(json - line.ptr) + 2);
    }
    assert_int_equal(end, cdx.len);
    return blocks;
}

/* The record to which a line points starts there, is one member, and is about the line's URL. */
static void check_line(struct wb_slice line, const struct wb_buf *file, struct wb_wacz *wacz)
{
    const char *name = memmem(line.ptr, line.len, "\"filename\":\"", 12);
    const char *url = memmem(line.ptr, line.len, "\"url\":\"", 7);
    struct wb_buf record = WB_BUF_INIT;
    char path[64], wanted[128];

    assert_non_null(name);
    assert_non_null(url);
    snprintf(path, sizeof path, ":archive/%.*s", (int)(strchr(name + 12, '"') - name - 12), name + 12);
    struct wb_slice archive = find_bytes(file, wacz, path);
    uint64_t offset = number_after(line, "\"offset\":\""), length = number_after(line, "\"length\":\"");
    assert_true(offset < archive.len && length <= archive.len - offset);
    append_member(wb_slice(archive.ptr + offset, (size_t)length), &record);
    snprintf(wanted, sizeof wanted, "WARC-Target-URI: %.*s\r\n", (int)(strchr(url + 7, '"') - url - 7), url + 7);
    assert_non_null(memmem(record.ptr, record.len, wanted, strlen(wanted)));
    wb_buf_release(&record);
}

static void check_index(struct wb_slice lines, const struct wb_buf *file, struct wb_wacz *wacz)
{
    struct wb_slice line, last = WB_SLICE_EMPTY;
    unsigned count = 0, revisits = 0;

    for (; wb_slice_next_line(&lines, &line); count++, last = line) {
        assert_true(count == 0 || wb_slice_compare(last, line) < 0);
        if (count % 97 == 0)
            check_line(line, file, wacz);
        revisits += memmem(line.ptr, line.len, "warc/revisit", 12) != NULL;
    }
    assert_int_equal(count, PAGES + PAGES / 10);
    assert_int_equal(revisits, PAGES / 10);
}

static void check_file(const struct wb_buf *file, unsigned archives)
{
    struct wb_wacz *wacz = NULL;
    struct wb_wacz_entry entry;
    struct wb_buf lines = WB_BUF_INIT;
    struct wb_slice pages, line, idx, cdx;
    unsigned listed = 0, found = 0;

    put_bytes("out.wacz", file->ptr, file->len);
    assert_int_equal(wb_wacz_open(test_path("out.wacz"), &wacz), 0);
    assert_int_equal(wb_wacz_read_package(wacz), 0);
    for (size_t i = 0; wb_wacz_entry(wacz, i, &entry); i++) {
        assert_int_equal(wb_wacz_check(wacz, i), 0);
        found += entry.archive;
    }
    assert_int_equal(found, archives);
    idx = find_bytes(file, wacz, "index.idx");
    cdx = find_bytes(file, wacz, "index.cdx.gz");
    assert_int_equal(read_index(idx, cdx, &lines), 3);
    check_index(wb_buf_slice(&lines), file, wacz);
    pages = find_bytes(file, wacz, "pages/pages.jsonl");
    for (; wb_slice_next_line(&pages, &line); listed++)
        assert_non_null(memmem(line.ptr, line.len, listed ? "\"title\":\"Title \\\"" : "json-pages-1.0", 14));
    assert_int_equal(listed, 1 + PAGES - (PAGES + 2) / 3);
    wb_buf_release(&lines);
    wb_wacz_close(wacz);
}

static void one_archive(void **state)
{
    struct wb_buf file = WB_BUF_INIT;
    unsigned archives;

    (void)state;
    assert_int_equal(write_wacz(PAGES, WB_WACZPEN_ARCHIVE_BYTES, &file, &archives), 0);
    assert_int_equal(archives, 1);
    check_file(&file, archives);
    wb_buf_release(&file);
}

static void many_archives(void **state)
{
    struct wb_buf file = WB_BUF_INIT;
    unsigned archives;

    (void)state;
    assert_int_equal(write_wacz(PAGES, 100000, &file, &archives), 0);
    assert_true(archives > 5);
    check_file(&file, archives);
    wb_buf_release(&file);
}

/* ReplayWeb.page looks for "b" under "b/": no block may begin between the two. */
static void no_block_divides_a_slash(void **state)
{
    struct wb_buf file = WB_BUF_INIT, lines = WB_BUF_INIT;
    struct wb_waczpen_options options = {.sink = take_bytes,
                                         .context = &file,
                                         .temporary_dir = test_root,
                                         .memory_bytes = WB_WACZPEN_MEMORY_BYTES,
                                         .archive_bytes = WB_WACZPEN_ARCHIVE_BYTES,
                                         .now_ms = 1767323045678};
    struct wb_waczpen *pen = NULL;
    struct wb_wacz *wacz = NULL;
    char url[64];

    (void)state;
    assert_int_equal(wb_waczpen_open(&options, &pen), 0);
    for (unsigned i = 0; i < 1030; i++) {
        snprintf(url, sizeof url, "http://a.example/%s%u%s", i < 1023 ? "a" : "B", i < 1023 ? i : 0,
                 i == 1023 ? "/" : i > 1023 ? "." : "");
        if (i > 1023)
            snprintf(url + strlen(url), sizeof url - strlen(url), "%u", i);
        struct wb_page page = {.url = wb_slice_str(url), .key = wb_slice_str(url + 7), .type = WB_SLICE_LIT("text/css"),
                               .charset = WB_SLICE_EMPTY, .head = WB_SLICE_EMPTY, .body = wb_slice_str(url),
                               .time_ms = 1767323045678, .status = 200, .kind = WB_PAGE_RESOURCE};
        wb_page_digest(&page);
        assert_int_equal(wb_warc_write_page(wb_waczpen_writer(pen), &page), 0);
    }
    assert_int_equal(wb_waczpen_finish(pen), 0);
    wb_waczpen_close(pen);
    put_bytes("out.wacz", file.ptr, file.len);
    assert_int_equal(wb_wacz_open(test_path("out.wacz"), &wacz), 0);
    struct wb_slice idx = find_bytes(&file, wacz, "index.idx");
    assert_null(memmem(idx.ptr, idx.len, "example,a)/b0.", 14));
    assert_int_equal(read_index(idx, find_bytes(&file, wacz, "index.cdx.gz"), &lines), 1);
    assert_non_null(memmem(lines.ptr, lines.len, "example,a)/b0 2026", 18));
    wb_wacz_close(wacz);
    wb_buf_release(&lines);
    wb_buf_release(&file);
}

/* Writes pages of which each has a text of the given length in one paragraph, made of words. */
static void write_texts(unsigned count, size_t text_bytes, const char *word, struct wb_buf *file)
{
    struct wb_waczpen_options options = {.sink = take_bytes,
                                         .context = file,
                                         .temporary_dir = test_root,
                                         .memory_bytes = WB_WACZPEN_MEMORY_BYTES,
                                         .archive_bytes = WB_WACZPEN_ARCHIVE_BYTES,
                                         .now_ms = 1767323045678};
    struct wb_buf body = WB_BUF_INIT;
    struct wb_waczpen *pen = NULL;
    char url[64];

    assert_int_equal(wb_waczpen_open(&options, &pen), 0);
    for (unsigned i = 0; i < count; i++) {
        snprintf(url, sizeof url, "http://a.example/%u", i);
        wb_buf_clear(&body);
        assert_int_equal(wb_buf_append_str(&body, "<title>T</title><nav><a href=/>way</a></nav><p>"), 0);
        for (size_t end = body.len + text_bytes; body.len < end;)
            assert_int_equal(wb_buf_append_str(&body, word), 0);
        struct wb_page page = {.url = wb_slice_str(url), .key = wb_slice_str(url + 7),
                               .type = WB_SLICE_LIT("text/html"), .charset = WB_SLICE_LIT("utf-8"),
                               .body = wb_buf_slice(&body),
                               .head = WB_SLICE_LIT("HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n"),
                               .time_ms = 1767323045678, .status = 200, .kind = WB_PAGE_RESPONSE};
        page.id = wb_pageid_of_key(page.key);
        wb_page_digest(&page);
        assert_int_equal(wb_warc_write_page(wb_waczpen_writer(pen), &page), 0);
    }
    assert_int_equal(wb_waczpen_finish(pen), 0);
    wb_waczpen_close(pen);
    wb_buf_release(&body);
}

/* The text of the last page in the list, as JSON has it. */
static struct wb_slice last_text(const struct wb_buf *file, bool *announced_out)
{
    struct wb_wacz *wacz = NULL;
    struct wb_slice line, text = WB_SLICE_EMPTY;

    put_bytes("out.wacz", file->ptr, file->len);
    assert_int_equal(wb_wacz_open(test_path("out.wacz"), &wacz), 0);
    struct wb_slice pages = find_bytes(file, wacz, "pages/pages.jsonl");
    assert_true(wb_slice_next_line(&pages, &line));
    *announced_out = memmem(line.ptr, line.len, ",\"hasText\":true}", 16) != NULL;
    while (wb_slice_next_line(&pages, &line)) {
        const char *at = memmem(line.ptr, line.len, ",\"text\":\"", 9);
        assert_non_null(at);
        assert_true(wb_slice_ends(line, WB_SLICE_LIT("\"}")));
        text = wb_slice(at + 9, (size_t)(line.ptr + line.len - at) - 9 - 2);
    }
    wb_wacz_close(wacz);
    return text;
}

static void check_text(unsigned count, size_t text_bytes, const char *word, size_t wanted, bool announced)
{
    struct wb_buf file = WB_BUF_INIT;
    bool found;

    write_texts(count, text_bytes, word, &file);
    struct wb_slice text = last_text(&file, &found);
    assert_int_equal(text.len, wanted);
    assert_null(memmem(text.ptr, text.len, "way", 3)); /* which is navigation */
    assert_null(memmem(text.ptr, text.len, "\xef\xbf\xbd", 3));
    assert_int_equal(found, announced);
    wb_buf_release(&file);
}

static void texts_of_pages(void **state)
{
    (void)state;
    check_text(1, 1000, "some words, ", 1008 - 1, true);
    check_text(1, 100000, "some words, ", (16384 / 12) * 12 + 4, true); /* not in the middle of "words," */
    check_text(1, 100000, "\xe6\x96\x87", 16383, true); /* nor of a character, if there are no blanks */
    check_text(63, 16000, "some words, ", 16007, true);
    check_text(66, 16000, "some words, ", 16007, false); /* longer than what ReplayWeb.page searches in one piece */
}

static void no_pages(void **state)
{
    struct wb_buf file = WB_BUF_INIT;
    struct wb_wacz *wacz = NULL;
    unsigned archives;

    (void)state;
    assert_int_equal(write_wacz(0, WB_WACZPEN_ARCHIVE_BYTES, &file, &archives), 0);
    put_bytes("out.wacz", file.ptr, file.len);
    assert_int_equal(wb_wacz_open(test_path("out.wacz"), &wacz), 0);
    assert_int_equal(wb_wacz_read_package(wacz), 0);
    assert_int_equal(find_bytes(&file, wacz, "index.cdx.gz").len, 0);
    wb_wacz_close(wacz);
    wb_buf_release(&file);
}

/* Each allocation fails once: an error, and no leak. */
static void no_memory(void **state)
{
    bool struck = true;
    uint64_t nth;

    (void)state;
    for (nth = 1; struck; nth++) {
        struct wb_buf file = WB_BUF_INIT;
        unsigned archives;
        wb_fault_arm(WB_FAULT_ALLOC, nth, ENOMEM);
        int err = write_wacz(20, 2000, &file, &archives);
        struck = wb_fault_struck();
        wb_fault_disarm();
        assert_int_equal(err, struck ? WB_E_NOMEM : 0);
        wb_buf_release(&file);
    }
    assert_true(nth > 20);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(one_archive),
        TEST(many_archives),
        TEST(texts_of_pages),
        TEST(no_pages),
        TEST(no_block_divides_a_slash),
        TEST(no_memory),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
