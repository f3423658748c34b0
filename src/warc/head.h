/* head.h - private to warc: the header of a record, WARC's lines or ARC's one line. */
#ifndef WB_WARC_HEAD_H
#define WB_WARC_HEAD_H

#include "warc/warc.h"

/* No header is longer than this. */
#define WB_HEAD_MAX ((size_t)1 << 20)

/* The bytes that wb_head_starts() and wb_head_trailer() need to see. */
#define WB_HEAD_PEEK 24

/* A part of the header, counted from the record's first byte: memory may move while the block is read. */
struct wb_span {
    size_t at, len;
};

struct wb_head {
    enum wb_warc_type type;
    uint64_t length;       /* of the block */
    struct wb_span lines;  /* what struct wb_warc_record calls header */
    struct wb_span uri, content_type;
    int64_t time_ms;
    bool has_time, truncated;
};

/* True where a WARC record, or with arc an ARC record, may start here, after line ends. */
bool wb_head_starts(struct wb_slice bytes, bool arc);

/* The same without line ends before it, and a version must be all of the first line. */
bool wb_head_is_line(struct wb_slice bytes, bool arc);

/*
 * Looks for the end of the header in the first bytes of a record: 1 with the
 * length up to the block, 0 where more bytes are needed, WB_E_CORRUPT where
 * another record starts before the end: a version at the start of a line, or, for
 * those who look for headers in damaged bytes (strict), at the end of one. *scanned
 * (0 at first) remembers how far it looked, so that asking again is linear.
 */
int wb_head_end(struct wb_slice bytes, bool strict, size_t *scanned, size_t *end_out);

/* Reads a whole header. NULL, or what is wrong with it in words. */
const char *wb_head_parse(struct wb_slice bytes, struct wb_head *head_out);

enum wb_trailer {
    WB_TRAILER_NONE = 0,     /* the record does not end here */
    WB_TRAILER_SURE = 1,
    WB_TRAILER_DOUBTFUL = 2, /* ARC's one line end, and then no record: what is wrong, the length or what follows? */
};

/* Judges what follows a block, with the number of bytes that end the record. ends: nothing comes after bytes. */
enum wb_trailer wb_head_trailer(struct wb_slice bytes, bool ends, bool arc, size_t *len_out);

/* "sha1:" and 32 digits of base32 or 40 of hexadecimal. */
bool wb_head_sha1(struct wb_slice value, uint8_t sha1_out[WB_SHA1_BYTES]);

#endif
