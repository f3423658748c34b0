/*
 * zipwriter.h - part of warc's door: writes a ZIP file from its first byte to its last, as a WACZ needs it.
 *
 *   new -> { begin -> write ... -> end } ... -> finish -> free
 *
 * Entries are stored: a reader of a WACZ jumps to a record inside an entry. Those that are read as a whole may be
 * deflated. The bytes go to a sink in order, and none is changed later, so the target can be a pipe. Sizes and
 * checksums follow each entry (a data descriptor); zip64 is used where a number needs it. Memory: some bytes for each
 * entry, and 256 KB while one is deflated.
 */
#ifndef WB_WARC_ZIPWRITER_H
#define WB_WARC_ZIPWRITER_H

#include "base/slice.h"

#define WB_SHA256_BYTES 32

/* Receives the bytes of the file in order; returns 0 or a negative code, which ends the writing. */
typedef int (*wb_zipwriter_sink)(void *context, const void *bytes, size_t len);

/* An entry that has ended. */
struct wb_zipwriter_entry {
    char *name;
    uint64_t offset; /* of its local header */
    uint64_t bytes;
    uint64_t packed; /* what they are in the file: fewer, if it is deflated */
    uint32_t crc;
    bool large; /* its size is written with 64 bits */
    bool deflated;
    uint8_t sha256[WB_SHA256_BYTES];
};

struct wb_zipwriter;

/* now_ms: the time that all entries get. */
int wb_zipwriter_new(wb_zipwriter_sink sink, void *context, int64_t now_ms, struct wb_zipwriter **zip_out);
void wb_zipwriter_free(struct wb_zipwriter *zip);

/*
 * Starts an entry. at_most: a size that it will not exceed, because the form of its header depends on that; writing
 * more than 4 GiB to an entry that was announced as smaller is WB_E_LIMIT.
 */
int wb_zipwriter_begin(struct wb_zipwriter *zip, const char *name, uint64_t at_most);
int wb_zipwriter_begin_deflated(struct wb_zipwriter *zip, const char *name, uint64_t at_most);
int wb_zipwriter_write(struct wb_zipwriter *zip, const void *bytes, size_t len);
int wb_zipwriter_end(struct wb_zipwriter *zip);

/* Bytes in the entry that is open, before they are deflated. */
uint64_t wb_zipwriter_bytes(const struct wb_zipwriter *zip);

/* The entries that have ended, in order; NULL after the last one. Valid until the next call that writes. */
const struct wb_zipwriter_entry *wb_zipwriter_entry(const struct wb_zipwriter *zip, size_t i);

/* Writes the directory. Nothing can be written after that. */
int wb_zipwriter_finish(struct wb_zipwriter *zip);

#endif
