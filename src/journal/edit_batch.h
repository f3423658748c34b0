/* edit_batch.h - the records of a batch, one by one. */
#ifndef WB_JOURNAL_EDIT_BATCH_H
#define WB_JOURNAL_EDIT_BATCH_H

#include "journal/journal.h"

/* The records, unpacked; zero it before its first use. */
struct wb_edit_batch_reader {
    struct wb_buf records;
    size_t at;
    uint32_t left;  /* records that were not given yet */
};

/* WB_E_CORRUPT where the batch is none; then there are no records. */
int wb_edit_batch_reader_start(const struct wb_edit *batch, struct wb_edit_batch_reader *unpacked_out);

/* 1 with the next record, which borrows from unpacked; 0 at the end; WB_E_CORRUPT, once. */
int wb_edit_batch_reader_next(struct wb_edit_batch_reader *unpacked, struct wb_edit *edit_out);
void wb_edit_batch_reader_release(struct wb_edit_batch_reader *unpacked);

#endif
