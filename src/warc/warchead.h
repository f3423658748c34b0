/*
 * warchead.h - private to warc: the header of a record: the lines of WARC, or the one line of ARC.
 *
 * The reader, the search after damage and the salvage all ask here where a record starts,
 * where its header ends, what the header says, and whether a record may end at some point.
 */
#ifndef WB_WARC_WARCHEAD_H
#define WB_WARC_WARCHEAD_H

#include "warc/warc.h"

/* A longer header is treated as damage. */
#define WB_WARC_HEAD_MAX ((size_t)1 << 20)

/* How many bytes wb_warc_head_starts() and wb_warc_head_trailer() need to see. */
#define WB_WARC_HEAD_PEEK 24

/* A part of the header as an offset from the record's first byte: the memory may move while the block is read. */
struct wb_warc_span {
    size_t at, len;
};

struct wb_warc_head {
    enum wb_warc_type type;
    uint64_t length;            /* of the block, as the header claims */
    struct wb_warc_span lines;  /* what struct wb_warc_record calls header */
    struct wb_warc_span uri, content_type;
    int64_t time_ms;
    bool has_time, truncated;
};

/* True if a WARC record may start here, or with `arc` an ARC record. Line ends before it are ignored. */
bool wb_warc_head_starts(struct wb_slice bytes, bool arc);

/* The stricter form: no line ends before it, and the first line of a WARC record is the version and nothing else. */
bool wb_warc_head_is_line(struct wb_slice bytes, bool arc);

/*
 * Looks for the end of the header in the first bytes of a record. Returns 1 with the number
 * of bytes before the block, 0 if more bytes are needed, or WB_E_CORRUPT (without a
 * message) if another record starts before the header ends: a version at the start of a
 * line or, with `strict` (searches in damaged bytes), at the end of one. *scanned, 0 at
 * first, remembers how far it looked, so that calling again with more bytes stays linear.
 */
int wb_warc_head_end(struct wb_slice bytes, bool strict, size_t *scanned, size_t *end_out);

/* Parses a complete header. Returns NULL, or a message that says what is wrong with it. */
const char *wb_warc_head_parse(struct wb_slice bytes, struct wb_warc_head *head_out);

enum wb_warc_trailer {
    WB_WARC_TRAILER_NONE = 0,     /* the record does not end here */
    WB_WARC_TRAILER_SURE = 1,
    WB_WARC_TRAILER_DOUBTFUL = 2, /* ARC's one line end, but no record follows: the length or what follows is wrong */
};

/* Judges the bytes after a block; *len_out is how many of them end the record. ends: nothing comes after `bytes`. */
enum wb_warc_trailer wb_warc_head_trailer(struct wb_slice bytes, bool ends, bool arc, size_t *len_out);

/* Removes the <> that some writers put around a URI. */
struct wb_slice wb_warc_head_bare_uri(struct wb_slice uri);

/* Parses "sha1:" followed by 32 digits of base32 or 40 of hexadecimal. */
bool wb_warc_head_sha1(struct wb_slice value, uint8_t sha1_out[WB_SHA1_BYTES]);

#endif
