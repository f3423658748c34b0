/*
 * urlfile.h - the URLs of a generation as a file: urls.wbb, a blob of kind "URLS". Results show URLs, and finding
 * ten of them in webdb takes longer than a search.
 *
 *   data     blocks | offsets | foot
 *
 *   block    16 URLs, in the order of their numbers in the edition, without users and passwords. For each, varints:
 *            bytes that are shared with the URL before (of the first: 0), bytes that follow; these bytes
 *   offsets  where each block is (8)
 *   foot     URLs (8), bytes of all blocks (8)
 */
#ifndef WB_INDEX_URLFILE_H
#define WB_INDEX_URLFILE_H

#include "base/buf.h"
#include "table/table.h"

#define WB_URLS_FILE "urls.wbb"
#define WB_URLS_KIND "URLS"

/* ---- writing ----------------------------------------------------------------------------------- */

struct wb_urlfile_writer {
    struct wb_blob_writer *blob; /* NULL: finished or abandoned */
    struct wb_buf last, offsets, public_url;
    uint64_t count;
};

int wb_urlfile_create(const char *path, struct wb_urlfile_writer *writer_out);

/* Adds the next URL, without its user and its password. */
int wb_urlfile_add(struct wb_urlfile_writer *writer, struct wb_slice url);

/* Ends the file if err is 0, otherwise gives it up. Returns the first error. */
int wb_urlfile_end(struct wb_urlfile_writer *writer, int err);

/* ---- reading ----------------------------------------------------------------------------------- */

/* An open file. Any number of threads may share it. All zero is a closed one. */
struct wb_urlfile {
    struct wb_blob blob;
    uint64_t count, block_bytes;
};

/* Checks the foot. WB_E_CORRUPT names the file. */
int wb_urlfile_open(const char *path, struct wb_urlfile *file_out);
void wb_urlfile_close(struct wb_urlfile *file);

/* A test seam, for the fuzzer: the same for data that is mapped already, so that file->blob is set. */
int wb_urlfile_check(struct wb_urlfile *file);

/* Replaces *url by the URL with this number, which must be less than count. */
int wb_urlfile_get(const struct wb_urlfile *file, uint64_t number, struct wb_buf *url);

#endif
