/*
 * pieces.c - writes and checks data in pieces of 64 KiB, each with a checksum.
 *
 * It never looks at head and foot: their owners do (column.c, blob.c).
 */
#include "table/pieces.h"
#include "base/bytes.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/path.h"
#include "table/table_format.h"

#include <stdio.h>

/* ---- writing --------------------------------------------------------------------------------- */

int wb_pieces_create(struct wb_pieces_writer *writer, const char *path, const char head[PIECES_END_BYTES])
{
    int err;

    *writer = (struct wb_pieces_writer){.file = WB_FILE_INIT};
    err = wb_path_unlink(path);
    if (err == 0)
        err = wb_file_open(path, WB_FILE_WRITE | WB_FILE_CREATE | WB_FILE_NEW, &writer->file);
    if (err == 0)
        err = wb_file_write_at(&writer->file, 0, head, PIECES_END_BYTES);
    writer->written = PIECES_END_BYTES;
    return err;
}

/* Writes the whole pieces that are pending and keeps the rest; at the end, writes the rest too. */
static int flush_pieces(struct wb_pieces_writer *writer, bool at_end)
{
    size_t len = at_end ? writer->pending.len : writer->pending.len - writer->pending.len % PIECE_BYTES;
    int err = 0;

    WB_CHECK((writer->written - PIECES_END_BYTES) % PIECE_BYTES == 0);
    WB_CHECK(writer->sums.len == (writer->written - PIECES_END_BYTES) / PIECE_BYTES * 8);
    for (size_t at = 0; at < len && err == 0; at += PIECE_BYTES) {
        size_t piece = len - at < PIECE_BYTES ? len - at : PIECE_BYTES;
        char sum[8];
        wb_put64(sum, wb_table_checksum_at(wb_hash64(writer->pending.ptr + at, piece), writer->written + at));
        err = wb_buf_append(&writer->sums, sum, sizeof sum);
    }
    if (err == 0 && len)
        err = wb_file_write_at(&writer->file, writer->written, writer->pending.ptr, len);
    if (err < 0)
        return err;
    writer->written += len;
    writer->pending.len -= len;
    if (writer->pending.len)
        memmove(writer->pending.ptr, writer->pending.ptr + len, writer->pending.len);
    WB_CHECK(writer->pending.len < PIECE_BYTES);
    WB_CHECK(!at_end || writer->pending.len == 0);
    return 0;
}

int wb_pieces_append(struct wb_pieces_writer *writer, const void *bytes, size_t len)
{
    const char *from = bytes;
    int err = 0;

    WB_CHECK(writer->file.fd >= 0);
    WB_CHECK(writer->pending.len < PIECES_WRITE_BYTES);
    while (err == 0 && len > 0) {
        size_t part = PIECES_WRITE_BYTES - writer->pending.len;
        part = part < len ? part : len;
        err = wb_buf_append(&writer->pending, from, part);
        from += part;
        len -= part;
        if (err == 0 && writer->pending.len >= PIECES_WRITE_BYTES)
            err = flush_pieces(writer, false);
    }
    return err;
}

int wb_pieces_end(struct wb_pieces_writer *writer)
{
    int err = flush_pieces(writer, true);

    WB_CHECK(err < 0 || writer->sums.len == 8 * wb_pieces_of(writer->written - PIECES_END_BYTES));
    return err;
}

uint64_t wb_pieces_file_bytes(const struct wb_pieces_writer *writer)
{
    WB_CHECK(writer->pending.len == 0);
    return writer->written + writer->sums.len + PIECES_END_BYTES;
}

int wb_pieces_finish(struct wb_pieces_writer *writer, const char foot[PIECES_END_BYTES])
{
    WB_CHECK(writer->pending.len == 0);
    WB_CHECK(writer->file.fd >= 0);
    int err = wb_buf_append(&writer->sums, foot, PIECES_END_BYTES);
    if (err == 0)
        err = wb_file_write_at(&writer->file, writer->written, writer->sums.ptr, writer->sums.len);
    return err == 0 ? wb_file_sync(&writer->file) : err;
}

void wb_pieces_release(struct wb_pieces_writer *writer)
{
    wb_file_close(&writer->file);
    wb_buf_release(&writer->pending);
    wb_buf_release(&writer->sums);
}

/* ---- reading --------------------------------------------------------------------------------- */

/* Compares piece n with its checksum. Two threads may do so at the same time: both will find the same. */
static int check_piece(const struct wb_pieces *pieces, uint64_t n)
{
    uint64_t at = n * PIECE_BYTES, left = pieces->bytes - at;
    size_t len = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;

    WB_CHECK(at < pieces->bytes);
    uint64_t sum = wb_table_checksum_at(wb_hash64(pieces->data + at, len), PIECES_END_BYTES + at);
    if (wb_get64(pieces->data + pieces->bytes + 8 * n) != sum)
        return wb_fail(WB_E_CORRUPT, "%s is damaged: the %s at %llu do not match their checksum", pieces->path,
                       pieces->what, (unsigned long long)(PIECES_END_BYTES + at));
    atomic_store_explicit(&pieces->checked[n], 1, memory_order_relaxed);
    return 0;
}

int wb_pieces_check(const struct wb_pieces *pieces, uint64_t offset, uint64_t length)
{
    int err = 0;

    WB_CHECK(offset <= pieces->bytes);
    WB_CHECK(length <= pieces->bytes - offset);
    if (length == 0)
        return 0;
    WB_CHECK(pieces->checked != NULL);
    uint64_t last = (offset + length - 1) / PIECE_BYTES;
    for (uint64_t n = offset / PIECE_BYTES; err == 0 && n <= last; n++)
        if (!atomic_load_explicit(&pieces->checked[n], memory_order_relaxed))
            err = check_piece(pieces, n);
    return err;
}

/* Reads with pread() instead of the mapping, so that a bad disk is reported and does not kill the process. */
int wb_pieces_verify(const struct wb_file *file, uint64_t data_bytes, const char *what, wb_table_found found,
                     void *context)
{
    char *piece = wb_alloc(PIECE_BYTES), sum[8], message[64];
    int err = piece ? 0 : WB_E_NOMEM;

    WB_CHECK(file->fd >= 0);
    WB_CHECK(found != NULL);
    snprintf(message, sizeof message, "%s do not match their checksum", what);
    for (uint64_t n = 0; err == 0 && n < wb_pieces_of(data_bytes); n++) {
        uint64_t at = PIECES_END_BYTES + n * PIECE_BYTES, left = data_bytes - n * PIECE_BYTES;
        size_t len = left < PIECE_BYTES ? (size_t)left : PIECE_BYTES;
        err = wb_file_read_exact(file, at, piece, len);
        if (err == 0)
            err = wb_file_read_exact(file, PIECES_END_BYTES + data_bytes + 8 * n, sum, sizeof sum);
        if (err == 0 && wb_get64(sum) == wb_table_checksum_at(wb_hash64(piece, len), at))
            continue;
        found(context, file->path, at, err < 0 ? wb_error_message() : message);
        err = 0;
    }
    wb_free(piece);
    return err;
}
