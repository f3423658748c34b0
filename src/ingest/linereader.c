/*
 * linereader.c - reads the lines of plain or gzip'd files. It never looks at what a line says.
 *
 *   file -> [packed] -> inflate (members one after another, as gzip reads them) -> [text] -> lines
 */
#include "ingest/linereader.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/file.h"
#include "os/path.h"

#include <zlib.h>

enum {
    PACKED_BYTES = 256 << 10,
    TEXT_BYTES = 256 << 10,
    GZIP_WINDOW = 15 + 16, /* zlib's way to ask for gzip */
};

struct wb_linereader {
    struct wb_file file;
    uint64_t offset, size;      /* bytes of the file that were read, and all */
    bool gzip;
    bool in_member;             /* of a gzip'd file: a member has started and not ended */
    bool ended;                 /* nothing comes after what is in text */
    z_stream z;
    struct wb_buf packed;       /* bytes of a gzip'd file that are not inflated yet */
    struct wb_buf text;
    size_t at;                  /* where in text the next line starts */
    uint64_t number;            /* lines that were read */
};

/* Appends the next bytes of the file to a buffer; *got_out is 0 at the end of the file. */
static int read_some(struct wb_linereader *r, struct wb_buf *buf, size_t bytes, size_t *got_out)
{
    int err = wb_buf_reserve(buf, bytes);

    *got_out = 0;
    if (err == 0)
        err = wb_file_read_at(&r->file, r->offset, buf->ptr + buf->len, bytes, got_out);
    buf->len += *got_out;
    r->offset += *got_out;
    return err;
}

static int open_gzip(struct wb_linereader *r)
{
    r->gzip = true;
    if (inflateInit2(&r->z, GZIP_WINDOW) != Z_OK)
        return wb_fail_nomem();
    r->in_member = true;
    r->z.next_in = (Bytef *)r->packed.ptr;
    r->z.avail_in = (uInt)r->packed.len;
    return 0;
}

int wb_linereader_open(const char *path, struct wb_linereader **reader_out)
{
    struct wb_linereader *r = wb_alloc_zero(1, sizeof *r);
    size_t got = 0;

    *reader_out = NULL;
    if (!r)
        return WB_E_NOMEM;
    r->file = WB_FILE_INIT;
    int err = wb_path_kind(path) == WB_PATH_DIR ? wb_fail(WB_E_INVALID, "%s is a directory", path) : 0;
    if (err == 0)
        err = wb_file_open(path, WB_FILE_READ, &r->file);
    if (err == 0)
        err = wb_file_size(&r->file, &r->size);
    if (err == 0) {
        wb_file_sequential(&r->file);
        err = read_some(r, &r->packed, PACKED_BYTES, &got);
    }
    if (err == 0 && got >= 2 && memcmp(r->packed.ptr, "\x1f\x8b", 2) == 0)
        err = open_gzip(r);
    else
        r->text = wb_buf_take(&r->packed);
    if (err < 0) {
        wb_linereader_close(r);
        return err;
    }
    *reader_out = r;
    return 0;
}

void wb_linereader_close(struct wb_linereader *r)
{
    if (!r)
        return;
    if (r->gzip)
        inflateEnd(&r->z);
    wb_file_close(&r->file);
    wb_buf_release(&r->packed);
    wb_buf_release(&r->text);
    wb_free(r);
}

static int damaged(const struct wb_linereader *r, const char *words)
{
    return wb_fail(WB_E_CORRUPT, "%s, after line %llu: the gzip'd data %s", r->file.path, (unsigned long long)r->number,
                   words);
}

/* Makes sure that inflate() has bytes to read; *more_out is false at the end of the file. */
static int refill(struct wb_linereader *r, bool *more_out)
{
    size_t got = 0;

    *more_out = true;
    if (r->z.avail_in)
        return 0;
    wb_buf_clear(&r->packed);
    int err = read_some(r, &r->packed, PACKED_BYTES, &got);
    r->z.next_in = (Bytef *)r->packed.ptr;
    r->z.avail_in = (uInt)r->packed.len;
    *more_out = got > 0;
    return err;
}

/* Appends at least one byte to text, unless the file has ended. */
static int inflate_some(struct wb_linereader *r)
{
    size_t before = r->text.len;
    int err = wb_buf_reserve(&r->text, TEXT_BYTES);

    while (err == 0 && r->text.len == before && !r->ended) {
        bool more;
        err = refill(r, &more);
        if (err == 0 && !more) {
            r->ended = true;
            return r->in_member ? damaged(r, "breaks off") : 0;
        }
        if (err == 0 && !r->in_member && inflateReset(&r->z) != Z_OK)
            return damaged(r, "is wrong");
        if (err < 0)
            return err;
        r->in_member = true;
        r->z.next_out = (Bytef *)r->text.ptr + r->text.len;
        r->z.avail_out = TEXT_BYTES;
        int got = inflate(&r->z, Z_NO_FLUSH);
        if (got == Z_MEM_ERROR)
            return wb_fail_nomem();
        if (got != Z_OK && got != Z_STREAM_END && got != Z_BUF_ERROR) {
            r->ended = true;
            return damaged(r, "is wrong");
        }
        r->in_member = got != Z_STREAM_END;
        r->text.len += TEXT_BYTES - r->z.avail_out;
    }
    return err;
}

/* Appends more text, after removing the lines that were read. */
static int fill_text(struct wb_linereader *r)
{
    size_t got = 0;

    if (r->at > 0 && r->at < r->text.len)
        memmove(r->text.ptr, r->text.ptr + r->at, r->text.len - r->at);
    r->text.len -= r->at;
    r->at = 0;
    if (r->gzip)
        return inflate_some(r);
    int err = read_some(r, &r->text, TEXT_BYTES, &got);
    r->ended = err == 0 && got == 0;
    return err;
}

int wb_linereader_next(struct wb_linereader *r, struct wb_slice *line_out)
{
    size_t seen = 0;         /* bytes of the line that were searched for its end */
    bool long_line = false;  /* its beginning was thrown away already */

    WB_CHECK(r->at <= r->text.len);
    *line_out = WB_SLICE_EMPTY;
    for (;;) {
        size_t left = r->text.len - r->at;
        const char *from = left ? r->text.ptr + r->at : "", *end = memchr(from + seen, '\n', left - seen);
        if (!end && left > WB_LINEREADER_LINE_MAX) {
            long_line = true;
            r->at = r->text.len;
            seen = 0;
        } else if (end || r->ended) {
            size_t len = end ? (size_t)(end - from) : left;
            if (!end && left == 0 && !long_line)
                return 0;
            r->at += len + (end != NULL);
            r->number++;
            if (long_line || len > WB_LINEREADER_LINE_MAX)
                return wb_fail(WB_E_LIMIT, "a line longer than %zu bytes", WB_LINEREADER_LINE_MAX);
            if (len && from[len - 1] == '\r')
                len--;
            *line_out = wb_slice(from, len);
            return 1;
        } else {
            seen = left;
        }
        if (r->ended)
            continue;
        int err = fill_text(r);
        if (err < 0)
            return err;
    }
}

uint64_t wb_linereader_number(const struct wb_linereader *r)
{
    return r->number;
}

void wb_linereader_progress(const struct wb_linereader *r, uint64_t *done_out, uint64_t *size_out)
{
    *done_out = r->offset;
    *size_out = r->size;
}
