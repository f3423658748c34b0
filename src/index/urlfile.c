/* urlfile.c - writes and reads the file of URLs, which urlfile.h draws. */
#include "index/urlfile.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "url/url.h"

enum { BLOCK_URLS = 16, FOOT_BYTES = 16 };

static uint64_t blocks_of(uint64_t urls)
{
    return (urls + BLOCK_URLS - 1) / BLOCK_URLS;
}

/* ---- writing ----------------------------------------------------------------------------------- */

int wb_urlfile_create(const char *path, struct wb_urlfile_writer *writer_out)
{
    *writer_out = (struct wb_urlfile_writer){.count = 0};
    return wb_blob_create(path, WB_URLS_KIND, &writer_out->blob);
}

static size_t common_length(struct wb_slice a, struct wb_slice b)
{
    size_t len = 0;

    while (len < a.len && len < b.len && a.ptr[len] == b.ptr[len])
        len++;
    return len;
}

/* Where the block begins that begins now. */
static int add_offset(struct wb_urlfile_writer *writer)
{
    char offset[8];

    wb_put64(offset, wb_blob_tell(writer->blob));
    wb_buf_clear(&writer->last);
    return wb_buf_append(&writer->offsets, offset, sizeof offset);
}

int wb_urlfile_add(struct wb_urlfile_writer *writer, struct wb_slice url)
{
    char numbers[2 * WB_VARINT_MAX];

    WB_CHECK(writer->blob);
    int err = wb_url_public(url, &writer->public_url, &url);
    if (err == 0 && writer->count % BLOCK_URLS == 0)
        err = add_offset(writer);
    if (err < 0)
        return err;
    size_t shared = common_length(wb_buf_slice(&writer->last), url);
    size_t len = wb_put_varint(numbers, shared);
    len += wb_put_varint(numbers + len, url.len - shared);
    err = wb_blob_append(writer->blob, numbers, len);
    if (err == 0)
        err = wb_blob_append(writer->blob, url.ptr + shared, url.len - shared);
    writer->last.len = shared;
    if (err == 0)
        err = wb_buf_append(&writer->last, url.ptr + shared, url.len - shared);
    writer->count++;
    return err;
}

int wb_urlfile_end(struct wb_urlfile_writer *writer, int err)
{
    char foot[FOOT_BYTES];

    WB_CHECK(writer->blob);
    if (err == 0) {
        WB_CHECK(writer->offsets.len == 8 * blocks_of(writer->count));
        wb_put64(foot, writer->count);
        wb_put64(foot + 8, wb_blob_tell(writer->blob));
        err = wb_blob_append(writer->blob, writer->offsets.ptr, writer->offsets.len);
        if (err == 0)
            err = wb_blob_append(writer->blob, foot, sizeof foot);
    }
    if (err < 0)
        wb_blob_abandon(writer->blob);
    else
        err = wb_blob_finish(writer->blob, NULL);
    writer->blob = NULL;
    wb_buf_release(&writer->last);
    wb_buf_release(&writer->offsets);
    wb_buf_release(&writer->public_url);
    return err;
}

/* ---- reading ----------------------------------------------------------------------------------- */

static int damaged(const struct wb_urlfile *file)
{
    return wb_fail(WB_E_CORRUPT, "%s is not a file of URLs", file->blob.path);
}

int wb_urlfile_check(struct wb_urlfile *file)
{
    const struct wb_blob *blob = &file->blob;

    if (blob->bytes < FOOT_BYTES)
        return damaged(file);
    int err = wb_blob_check(blob, blob->bytes - FOOT_BYTES, FOOT_BYTES);
    if (err < 0)
        return err;
    file->count = wb_get64(blob->data + blob->bytes - FOOT_BYTES);
    file->block_bytes = wb_get64(blob->data + blob->bytes - FOOT_BYTES + 8);
    if (file->count > blob->bytes || file->block_bytes > blob->bytes ||
        file->block_bytes + 8 * blocks_of(file->count) + FOOT_BYTES != blob->bytes)
        return damaged(file);
    return 0;
}

int wb_urlfile_open(const char *path, struct wb_urlfile *file_out)
{
    *file_out = (struct wb_urlfile){.count = 0};
    int err = wb_blob_open(path, WB_URLS_KIND, &file_out->blob);

    if (err == 0)
        err = wb_urlfile_check(file_out);
    if (err < 0)
        wb_urlfile_close(file_out);
    return err;
}

void wb_urlfile_close(struct wb_urlfile *file)
{
    wb_blob_close(&file->blob);
    *file = (struct wb_urlfile){.count = 0};
}

/* The bytes of a block. */
static int find_block(const struct wb_urlfile *file, uint64_t block, const char **begin_out, const char **end_out)
{
    uint64_t at = file->block_bytes + 8 * block, begin, end = file->block_bytes;
    bool last = block + 1 == blocks_of(file->count);

    WB_CHECK(block < blocks_of(file->count));
    int err = wb_blob_check(&file->blob, at, last ? 8 : 16);
    if (err < 0)
        return err;
    begin = wb_get64(file->blob.data + at);
    if (!last)
        end = wb_get64(file->blob.data + at + 8);
    if (begin > end || end > file->block_bytes)
        return damaged(file);
    *begin_out = file->blob.data + begin;
    *end_out = file->blob.data + end;
    return wb_blob_check(&file->blob, begin, end - begin);
}

int wb_urlfile_get(const struct wb_urlfile *file, uint64_t number, struct wb_buf *url)
{
    const char *p = NULL, *end = NULL;
    uint64_t shared, rest;

    WB_CHECK(number < file->count);
    int err = find_block(file, number / BLOCK_URLS, &p, &end);
    wb_buf_clear(url);
    for (uint64_t i = 0; err == 0 && i <= number % BLOCK_URLS; i++) {
        if (!wb_get_varint(&p, end, &shared) || !wb_get_varint(&p, end, &rest) || shared > url->len ||
            rest > (size_t)(end - p))
            return damaged(file);
        url->len = (size_t)shared;
        err = wb_buf_append(url, p, (size_t)rest);
        p += rest;
    }
    return err;
}
