/* warc_support.h - shared by the tests of warc: makes archives in memory and reads them back. */
#ifndef WB_TESTS_WARC_SUPPORT_H
#define WB_TESTS_WARC_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <inttypes.h>
#include <libdeflate.h>
#include <sys/mman.h>
#include <zstd.h>

#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "warc/warcreader.h"

#define BLOCK_MAX ((size_t)1 << 20)
#define UNITS_MAX 64

/* ---- making archives ------------------------------------------------------------------ */

/* Records (or other bytes) one after another; at[i] is where the i-th starts. */
struct archive {
    struct wb_buf bytes;
    size_t at[UNITS_MAX + 1];
    size_t count;
};

#define ARCHIVE_INIT ((struct archive){.count = 0})

static inline void archive_add(struct archive *a, const void *bytes, size_t len)
{
    assert_true(a->count < UNITS_MAX);
    assert_int_equal(wb_buf_append(&a->bytes, bytes, len), 0);
    a->at[++a->count] = a->bytes.len;
}

static inline struct wb_slice archive_unit(const struct archive *a, size_t i)
{
    return wb_slice(a->bytes.ptr + a->at[i], a->at[i + 1] - a->at[i]);
}

static inline void archive_release(struct archive *a)
{
    wb_buf_release(&a->bytes);
    *a = ARCHIVE_INIT;
}

/* One WARC record; extra is more header lines. */
static inline void add_record(struct archive *a, const char *type, const char *uri, const char *extra,
                              struct wb_slice block)
{
    struct wb_buf record = WB_BUF_INIT;

    assert_int_equal(
        wb_buf_printf(&record,
                      "WARC/1.1\r\nWARC-Type: %s\r\nWARC-Target-URI: %s\r\nWARC-Date: 2026-01-02T03:04:05.678Z\r\n"
                      "WARC-Record-ID: <urn:uuid:00000000-0000-4000-8000-%012zu>\r\n"
                      "Content-Type: application/http; msgtype=%s\r\nContent-Length: %zu\r\n%s\r\n",
                      type, uri, a->count, type, block.len, extra),
        0);
    assert_int_equal(wb_buf_append_slice(&record, block), 0);
    assert_int_equal(wb_buf_append_str(&record, "\r\n\r\n"), 0);
    archive_add(a, record.ptr, record.len);
    wb_buf_release(&record);
}

/* A response whose body depends on its number, so that a test notices if it gets the wrong one. */
static inline struct wb_buf response_block(unsigned number, unsigned lines)
{
    struct wb_buf block = WB_BUF_INIT;

    assert_int_equal(wb_buf_printf(&block,
                                   "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=UTF-8\r\nX-Number: %u\r\n\r\n",
                                   number),
                     0);
    for (unsigned i = 0; i < lines; i++)
        assert_int_equal(
            wb_buf_printf(&block, "<p>page %u, line %u, %x</p>\n", number, i, (number * 1000 + i) * 2654435761u), 0);
    return block;
}

static inline void add_response(struct archive *a, unsigned number, unsigned lines)
{
    struct wb_buf block = response_block(number, lines);
    char uri[64];

    snprintf(uri, sizeof uri, "http://site.example/page/%u", number);
    add_record(a, "response", uri, "", wb_buf_slice(&block));
    wb_buf_release(&block);
}

static inline struct archive make_archive(unsigned pages, unsigned lines)
{
    struct archive a = ARCHIVE_INIT;

    for (unsigned i = 0; i < pages; i++)
        add_response(&a, i, lines);
    return a;
}

static inline struct wb_buf gzip_of(struct wb_slice plain)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(6);
    struct wb_buf out = WB_BUF_INIT;

    assert_non_null(c);
    assert_int_equal(wb_buf_reserve(&out, libdeflate_gzip_compress_bound(c, plain.len)), 0);
    out.len = libdeflate_gzip_compress(c, plain.ptr, plain.len, out.ptr, out.cap);
    assert_true(out.len > 0);
    libdeflate_free_compressor(c);
    return out;
}

static inline struct wb_buf zstd_of(struct wb_slice plain, struct wb_slice dictionary)
{
    ZSTD_CCtx *c = ZSTD_createCCtx();
    struct wb_buf out = WB_BUF_INIT;

    assert_non_null(c);
    ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
    if (dictionary.len)
        assert_false(ZSTD_isError(ZSTD_CCtx_loadDictionary(c, dictionary.ptr, dictionary.len)));
    assert_int_equal(wb_buf_reserve(&out, ZSTD_compressBound(plain.len)), 0);
    out.len = ZSTD_compress2(c, out.ptr, out.cap, plain.ptr, plain.len);
    assert_false(ZSTD_isError(out.len));
    ZSTD_freeCCtx(c);
    return out;
}

enum packing { PLAIN, GZIP, ZSTD };

/* The same units, each a gzip member or a zstd frame. */
static inline struct archive packed(const struct archive *plain, enum packing packing)
{
    struct archive a = ARCHIVE_INIT;

    for (size_t i = 0; i < plain->count; i++) {
        struct wb_slice unit = archive_unit(plain, i);
        struct wb_buf one = WB_BUF_INIT;
        if (packing == GZIP)
            one = gzip_of(unit);
        else if (packing == ZSTD)
            one = zstd_of(unit, WB_SLICE_EMPTY);
        else
            assert_int_equal(wb_buf_append_slice(&one, unit), 0);
        archive_add(&a, one.ptr, one.len);
        wb_buf_release(&one);
    }
    return a;
}

static inline const char *name_for(enum packing packing)
{
    return packing == GZIP ? "test.warc.gz" : packing == ZSTD ? "test.warc.zst" : "test.warc";
}

/* A record with another Content-Length. */
static inline struct wb_buf with_length(struct wb_slice record, const char *value)
{
    struct wb_buf out = WB_BUF_INIT;
    static const char name[] = "\nContent-Length: ";
    const char *at = memmem(record.ptr, record.len, name, sizeof name - 1);

    assert_non_null(at);
    at += sizeof name - 1;
    const char *rest = memchr(at, '\r', (size_t)(record.ptr + record.len - at));
    assert_int_equal(wb_buf_append(&out, record.ptr, (size_t)(at - record.ptr)), 0);
    assert_int_equal(wb_buf_append_str(&out, value), 0);
    assert_int_equal(wb_buf_append(&out, rest, (size_t)(record.ptr + record.len - rest)), 0);
    return out;
}

static inline struct wb_buf packed_one(struct wb_slice plain, enum packing p)
{
    struct wb_buf out = WB_BUF_INIT;

    if (p == GZIP)
        return gzip_of(plain);
    if (p == ZSTD)
        return zstd_of(plain, WB_SLICE_EMPTY);
    assert_int_equal(wb_buf_append_slice(&out, plain), 0);
    return out;
}

/* ---- reading them -------------------------------------------------------------------------- */

static inline int open_bytes(struct wb_slice bytes, const char *name, size_t block_max,
                             struct wb_warc_reader **reader_out)
{
    struct wb_file file = {memfd_create(name, 0), strdup(name)};

    assert_true(file.fd >= 0 && file.path);
    assert_int_equal(wb_file_write_at(&file, 0, bytes.ptr, bytes.len), 0);
    return wb_warc_open_file(&file, block_max, reader_out);
}

/* What came out of an archive. */
struct found {
    size_t records, errors;
    uint64_t offset[UNITS_MAX], error_offset[UNITS_MAX];
    uint64_t hash[UNITS_MAX]; /* of header and block */
    enum wb_warc_type type[UNITS_MAX];
    bool truncated[UNITS_MAX];
    size_t block_len[UNITS_MAX];
    bool partial[UNITS_MAX];  /* given with a problem; that counts as an error too */
    int end;                  /* 0, or the final error */
};

static inline uint64_t record_hash(const struct wb_warc_record *record)
{
    return wb_hash64(record->header.ptr, record->header.len) * 31 + wb_hash64(record->block.ptr, record->block.len);
}

static inline void read_bytes(struct wb_slice bytes, const char *name, size_t block_max, struct found *found_out)
{
    struct wb_warc_reader *reader = NULL;
    struct wb_warc_record record;

    memset(found_out, 0, sizeof *found_out);
    int err = open_bytes(bytes, name, block_max, &reader);
    while (err >= 0 || err == WB_E_CORRUPT) {
        err = wb_warc_next(reader, &record);
        if (err == 0)
            break;
        assert_true(found_out->records < UNITS_MAX && found_out->errors < UNITS_MAX);
        if (err > 0) {
            found_out->offset[found_out->records] = record.offset;
            found_out->type[found_out->records] = record.type;
            found_out->truncated[found_out->records] = record.truncated;
            found_out->block_len[found_out->records] = record.block.len;
            found_out->partial[found_out->records] = *record.problem;
            if (*record.problem)
                found_out->error_offset[found_out->errors++] = record.offset;
            found_out->hash[found_out->records++] = record_hash(&record);
        } else if (err == WB_E_CORRUPT) {
            assert_non_null(strstr(wb_error_message(), name));
            found_out->error_offset[found_out->errors++] = wb_warc_error_offset(reader);
        }
    }
    found_out->end = err;
    wb_warc_close(reader);
}

static inline void read_archive(const struct archive *a, const char *name, struct found *found_out)
{
    read_bytes(wb_buf_slice(&a->bytes), name, BLOCK_MAX, found_out);
}

/* The index of a record with this hash, or -1. */
static inline int find_hash(const struct found *found, uint64_t hash)
{
    for (size_t i = 0; i < found->records; i++)
        if (found->hash[i] == hash)
            return (int)i;
    return -1;
}

#endif
