/*
 * pieces.h - what columns and blobs have in common: data in pieces of 64 KiB, each with a checksum.
 *
 *   head, 64 bytes | data | sums | foot, 64 bytes
 *
 *   sums    8 bytes for each 64 KiB piece of the data (the last piece may be shorter): its XXH3, combined with its
 *           offset in the file
 *
 * The owners of the two formats (column.c, blob.c) make and check head and foot.
 */
#ifndef WB_TABLE_PIECES_H
#define WB_TABLE_PIECES_H

#include "os/file.h"
#include "table/table.h"

enum {
    PIECES_END_BYTES = 64,  /* size of the head, and of the foot */
    PIECE_BYTES = 64 << 10, /* data that shares one checksum */
    PIECES_WRITE_BYTES = 4 * PIECE_BYTES,
};
_Static_assert(PIECES_END_BYTES % 64 == 0, "data is aligned in the mapping");
_Static_assert(PIECES_WRITE_BYTES % PIECE_BYTES == 0, "what is written at once ends where a piece ends");

/* How many pieces, and therefore checksums, this many bytes of data have. */
static inline uint64_t wb_pieces_of(uint64_t data_bytes)
{
    return data_bytes / PIECE_BYTES + (data_bytes % PIECE_BYTES != 0);
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The part of a writer that both kinds of file share. Zeroed memory with file = WB_FILE_INIT can be released. */
struct wb_pieces_writer {
    struct wb_file file;
    struct wb_buf pending; /* the next bytes of the file, not yet written */
    uint64_t written;      /* size of the file so far */
    struct wb_buf sums;    /* of the pieces written so far */
};

/* Creates the file with this head. An existing file of that name is unlinked first. Release it even after an error. */
int wb_pieces_create(struct wb_pieces_writer *writer, const char *path, const char head[PIECES_END_BYTES]);
int wb_pieces_append(struct wb_pieces_writer *writer, const void *bytes, size_t len);

/* Writes the data that is still pending. The sums are complete then, and nothing can be appended any more. */
int wb_pieces_end(struct wb_pieces_writer *writer);

/* The size that the file will have once sums and foot are written. Only after wb_pieces_end(). */
uint64_t wb_pieces_file_bytes(const struct wb_pieces_writer *writer);

/* Writes the sums and this foot, and syncs. */
int wb_pieces_finish(struct wb_pieces_writer *writer, const char foot[PIECES_END_BYTES]);
void wb_pieces_release(struct wb_pieces_writer *writer);

/* ---- reading --------------------------------------------------------------------------------- */

/* The data of an open file and what is needed to check it. It borrows everything. */
struct wb_pieces {
    const char *data;
    uint64_t bytes;
    const char *path;
    const char *what;      /* what the data is called in messages: "records", "bytes" */
    atomic_uchar *checked; /* one byte per piece: 1 once the piece has matched its checksum */
};

/* Compares the pieces of a range with their checksums, unless they have been compared already. */
int wb_pieces_check(const struct wb_pieces *pieces, uint64_t offset, uint64_t length);

/* Reads all pieces of an open file and reports each that does not match; returns an error only if it cannot go on. */
int wb_pieces_verify(const struct wb_file *file, uint64_t data_bytes, const char *what, wb_table_found found,
                     void *context);

#endif
