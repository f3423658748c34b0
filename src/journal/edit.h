/* edit.h - one record of the edit log as bytes. docs/formats/journal.md has the layout. */
#ifndef WB_JOURNAL_EDIT_H
#define WB_JOURNAL_EDIT_H

#include "base/bytes.h"
#include "journal/journal.h"

enum {
    WB_EDIT_HEAD_BYTES = 40,          /* of a record */
    WB_EDIT_BYTES_MAX = 64 << 20,     /* a record with its head */
    WB_EDIT_LINKS_BYTES_MAX = 32 << 20, /* of packed links; what does not fit is counted and left out */
};

/* What a record's checksum is mixed with: it counts only in its own file and at its own place. */
static inline uint32_t wb_edit_salt(uint64_t writer, uint64_t offset)
{
    return (uint32_t)((writer ^ offset * 0x9e3779b97f4a7c15) * 0xd6e8feb86659fd93 >> 32);
}

/* Appends a record. WB_E_LIMIT where it is too long, WB_E_NOMEM; then nothing was appended. */
int wb_edit_encode(const struct wb_edit *edit, uint32_t salt, struct wb_buf *record_out);

/* The length that a record's head tells, or 0 where no record has that length. */
static inline size_t wb_edit_length(const char *head)
{
    uint32_t bytes = wb_get32(head);

    return bytes >= WB_EDIT_HEAD_BYTES && bytes <= WB_EDIT_BYTES_MAX ? bytes : 0;
}

/* Whether the checksum of a record of exactly these bytes holds. */
bool wb_edit_is_intact(struct wb_slice record, uint32_t salt);

/* kind, site, time and prev of a record, and nothing else. False where the head is not one. */
bool wb_edit_decode_head(const char *head, struct wb_edit *edit_out);

/* All of a record, which edit_out borrows from. WB_E_CORRUPT where it is not one; the checksum is not looked at. */
int wb_edit_decode(struct wb_slice record, struct wb_edit *edit_out);

#endif
