/*
 * edit.h - one record of the journal as bytes.
 *
 * Used by the writer, the readers and the batches of this room; other rooms see only struct wb_edit. edit.c draws the
 * layout. A record is checked in two steps: its length and checksum (wb_edit_length, wb_edit_is_intact) tell whether
 * these are the bytes that were written; decoding them tells whether they make sense.
 */
#ifndef WB_JOURNAL_EDIT_H
#define WB_JOURNAL_EDIT_H

#include "base/bytes.h"
#include "base/check.h"
#include "journal/journal.h"

enum {
    WB_EDIT_HEAD_BYTES = 40,            /* of a record: everything before its payload */
    WB_EDIT_BYTES_MAX = 64 << 20,       /* of a record, its head included */
    WB_EDIT_LINKS_BYTES_MAX = 32 << 20, /* of its packed links; more are left out and counted */
};

_Static_assert(WB_EDIT_LINKS_BYTES_MAX <= WB_EDIT_BYTES_MAX / 2, "links leave room for the other parts of a record");

/*
 * The number that is mixed into a record's checksum. It depends on the writer and the offset, so a record counts only
 * at its own place in its own file: bytes that a web server sent, or that were left from another file, never pass for
 * one.
 */
static inline uint32_t wb_edit_salt(uint64_t writer, uint64_t offset)
{
    return (uint32_t)((writer ^ offset * 0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93 >> 32);
}

/* Appends a record to a buffer. WB_E_LIMIT if it is too long, WB_E_NOMEM; on failure the buffer is unchanged. */
int wb_edit_encode(const struct wb_edit *edit, uint32_t salt, struct wb_buf *record_out);

/* The length that the head of a record states; 0 if that cannot be the length of a record. */
static inline size_t wb_edit_length(const char *head)
{
    uint32_t bytes = wb_get32(head);

    return bytes >= WB_EDIT_HEAD_BYTES && bytes <= WB_EDIT_BYTES_MAX ? bytes : 0;
}

/* True if these bytes are exactly one record and its checksum is right. */
bool wb_edit_is_intact(struct wb_slice record, uint32_t salt);

/* Decodes only kind, site, time and prev. False if the head is not valid. */
bool wb_edit_decode_head(const char *head, struct wb_edit *edit_out);

/* Decodes a whole record; edit_out borrows from it. WB_E_CORRUPT if it is not valid. Does not look at the checksum. */
int wb_edit_decode(struct wb_slice record, struct wb_edit *edit_out);

#endif
