/*
 * wire.h - private to stream: a stream as bytes between two webbase programs (docs/formats/stream.md, "Wire").
 *
 *   header | records | records | damage | records | ... | end
 *
 * Every frame has its length and a checksum. A frame of records has the blocks of the store as they are on disk and a
 * list of those of their pages that count; where pages are not stored next to each other, it has a block that was
 * built for it. The header has a token, from which the receiver makes the token of every record. A stream without an
 * end frame is not complete.
 */
#ifndef WB_STREAM_WIRE_H
#define WB_STREAM_WIRE_H

#include "stream/stream.h"
#include "stream/token.h"

/* ---- writing ------------------------------------------------------------------------------------- */

/* A record of a frame, except for its page. */
struct wb_wire_record {
    struct wb_stream_place place; /* after it */
    uint64_t position;
    uint32_t docid;
    bool revisit;
    int64_t original_ms;
};

/* token: for the place where the stream begins. */
int wb_wire_put_header(uint64_t repository, const struct wb_stream_info *info, struct wb_slice token,
                       struct wb_buf *out);

/*
 * Records 0 to parcel->count - 1 are those of the parcel's pages: at least one and at most WB_WIRE_RECORDS_MAX. All of
 * them have the same start.
 */
#define WB_WIRE_RECORDS_MAX 16384
int wb_wire_put_records(const struct wb_store_parcel *parcel, const struct wb_wire_record *records, struct wb_buf *out);

/* A damaged place was skipped; message says where. */
int wb_wire_put_damage(const char *message, struct wb_buf *out);

/* The stream is complete. records: how many were in the frames since the header. */
int wb_wire_put_end(uint64_t records, struct wb_buf *out);

/* ---- reading ------------------------------------------------------------------------------------- */

/* Takes frames apart. It trusts nothing, and needs memory only for bytes that have arrived and for one page. */
struct wb_wire_reader;
int wb_wire_reader_new(struct wb_wire_reader **reader_out);
void wb_wire_reader_free(struct wb_wire_reader *reader);

/* Forgets everything: a new connection begins. */
void wb_wire_reader_reset(struct wb_wire_reader *reader);

/* Adds bytes as they arrive. */
int wb_wire_reader_feed(struct wb_wire_reader *reader, struct wb_slice bytes);

enum wb_wire_got {
    WB_WIRE_MORE = 0,   /* more bytes are needed */
    WB_WIRE_RECORD = 1, /* a record, which is valid until the next call of any of these functions */
    WB_WIRE_END = 2,    /* the stream is complete */
    WB_WIRE_DAMAGE = 3, /* a damaged place was skipped: wb_error_message() says where */
};

/*
 * Returns an enum wb_wire_got, or an error. WB_E_PROTO: these bytes are not a stream, or they contradict
 * themselves; WB_E_CORRUPT: they do not match their checksums; WB_E_NEWER. After an error, nothing more is read.
 */
int wb_wire_reader_next(struct wb_wire_reader *reader, struct wb_stream_record *record_out);

/* A test seam. What the header says. False if it has not arrived yet. */
bool wb_wire_reader_info(const struct wb_wire_reader *reader, struct wb_stream_info *info_out);

#endif
