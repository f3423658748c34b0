/*
 * edit_batch.h - reads the records of a batch one by one. Used by the reader, so that its callers never see a batch.
 * Writing batches is part of the door, journal.h.
 */
#ifndef WB_JOURNAL_EDIT_BATCH_H
#define WB_JOURNAL_EDIT_BATCH_H

#include "journal/journal.h"

/* The unpacked records. One of zero bytes is empty and ready for use. */
struct wb_edit_batch_reader {
    struct wb_buf records;
    size_t at;     /* offset of the next record */
    uint32_t left; /* records that were not returned yet */
};

/* Unpacks a BATCH record. WB_E_CORRUPT if it is not valid: then there are no records to read. */
int wb_edit_batch_reader_start(const struct wb_edit *batch, struct wb_edit_batch_reader *reader_out);

/* Returns 1 with the next record, which borrows from reader; 0 at the end; or WB_E_CORRUPT, once. */
int wb_edit_batch_reader_next(struct wb_edit_batch_reader *reader, struct wb_edit *edit_out);
void wb_edit_batch_reader_release(struct wb_edit_batch_reader *reader);

#endif
