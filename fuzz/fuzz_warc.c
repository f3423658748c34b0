/*
 * fuzz_warc.c - archives of arbitrary bytes: the reader terminates, and its records are consistent.
 *
 * The first byte says how the rest becomes a file:
 *   bits 0-1   the name: .warc, .warc.gz, .warc.zst, .arc
 *   bits 2-3   0: the bytes unchanged; 1, 2: as gzip members or zstd frames of a few
 *              bytes each, so that records span units; 3: one gzip member
 *   bits 4-5   how much of a block is kept
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "warc/warcreader.h"

#include <libdeflate.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static const char *const file_names[] = {"fuzz.warc", "fuzz.warc.gz", "fuzz.warc.zst", "fuzz.arc"};
static const size_t block_maxes[] = {0, 100, 5000, 1 << 20};
static const size_t body_maxes[] = {10, 100, 5000, 1 << 20};

static void append_gzip(struct wb_buf *file, const uint8_t *data, size_t len)
{
    struct libdeflate_compressor *c = libdeflate_alloc_compressor(1);

    WB_CHECK(c && wb_buf_reserve(file, libdeflate_gzip_compress_bound(c, len)) == 0);
    file->len += libdeflate_gzip_compress(c, data, len, file->ptr + file->len, file->cap - file->len);
    libdeflate_free_compressor(c);
}

static void append_zstd(struct wb_buf *file, const uint8_t *data, size_t len)
{
    WB_CHECK(wb_buf_reserve(file, ZSTD_compressBound(len)) == 0);
    size_t made = ZSTD_compress(file->ptr + file->len, file->cap - file->len, data, len, 1);
    WB_CHECK(!ZSTD_isError(made));
    file->len += made;
}

static void make_file(unsigned how, const uint8_t *data, size_t size, struct wb_buf *file)
{
    size_t piece = how == 3 ? size : 64 + size / 5;

    if (how == 0)
        WB_CHECK(wb_buf_append(file, data, size) == 0);
    for (size_t at = 0; how != 0 && at < size; at += piece) {
        size_t len = size - at < piece ? size - at : piece;
        if (how == 2)
            append_zstd(file, data + at, len);
        else
            append_gzip(file, data + at, len);
    }
}

static int open_bytes(const struct wb_buf *bytes, const char *name, size_t block_max,
                      struct wb_warc_reader **reader_out)
{
    struct wb_file file = {memfd_create(name, 0), wb_strdup(name)};

    WB_CHECK(file.fd >= 0 && file.path);
    WB_CHECK(wb_file_write_at(&file, 0, bytes->ptr, bytes->len) == 0);
    return wb_warc_open_file(&file, block_max, reader_out);
}

/* Reads every byte, so that a sanitizer notices a slice that points outside its memory. */
static unsigned sum(struct wb_slice s)
{
    unsigned total = 0;

    for (size_t i = 0; i < s.len; i++)
        total = total * 31 + (unsigned char)s.ptr[i];
    return total;
}

static void check_page(const struct wb_warc_record *record, size_t body_max, struct wb_warc_mem *mem)
{
    struct wb_page page;
    const char *problem;
    int err = wb_warc_page(record, body_max, mem, &page, &problem);

    WB_CHECK(err == 0 || err == WB_E_PROTO || err == WB_E_LIMIT);
    if (err < 0)
        return;
    WB_CHECK(page.body.len <= body_max && page.body_bytes == page.body.len && page.status >= 100 && page.status < 1000);
    volatile unsigned touched =
        sum(page.url) + sum(page.key) + sum(page.head) + sum(page.type) + sum(page.charset) + sum(page.body);
    (void)touched;
}

static void check_record(const struct wb_warc_record *record, size_t block_max, uint64_t file_size)
{
    struct wb_warc_revisit revisit;
    struct wb_slice value;

    WB_CHECK(record->offset < file_size);
    WB_CHECK(record->block.len <= block_max && record->block.len <= record->block_bytes);
    /* Only the limit or the end of the file may make a block shorter than its length. */
    WB_CHECK(record->problem && (record->block.len == record->block_bytes || record->cut || *record->problem));
    WB_CHECK(!record->cut || record->block.len < record->block_bytes);
    volatile unsigned touched = sum(record->header) + sum(record->uri) + sum(record->content_type) + sum(record->block);
    (void)touched;
    wb_warc_header(record, "WARC-Record-ID", &value);
    wb_warc_revisit(record, &revisit);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_warc_reader *reader = NULL;
    struct wb_warc_mem mem = WB_WARC_MEM_INIT;
    struct wb_warc_record record;
    struct wb_buf file = WB_BUF_INIT;
    uint64_t last = 0, turns = 0;

    if (size < 1)
        return 0;
    size_t block_max = block_maxes[data[0] >> 4 & 3], body_max = body_maxes[data[0] >> 4 & 3];
    make_file(data[0] >> 2 & 3, data + 1, size - 1, &file);
    int err = open_bytes(&file, file_names[data[0] & 3], block_max, &reader);
    while (err >= 0 || err == WB_E_CORRUPT) {
        err = wb_warc_next(reader, &record);
        if (err == 0)
            break;
        WB_CHECK(++turns <= size + 1); /* each call must make progress */
        uint64_t offset = err > 0 ? record.offset : wb_warc_error_offset(reader);
        WB_CHECK(offset >= last && offset <= file.len);
        last = offset;
        if (err > 0) {
            check_record(&record, block_max, file.len);
            check_page(&record, body_max, &mem);
        }
    }
    WB_CHECK(err == 0 || err == WB_E_PROTO);
    wb_warc_close(reader);
    wb_warc_mem_release(&mem);
    wb_buf_release(&file);
    return 0;
}
