/* journal_reader.h - what recovery and verifying need of the reader beyond its door: one log alone, and why it stops. */
#ifndef WB_JOURNAL_JOURNAL_READER_H
#define WB_JOURNAL_JOURNAL_READER_H

#include "journal/journal.h"
#include "journal/journal_file.h"

/* The head of a log as the reader has it. WB_E_NOTFOUND, WB_E_CORRUPT. */
int wb_journal_reader_file(struct wb_journal_reader *reader, uint32_t number, const struct wb_journal_file **file_out);

/* A sound record by its place, not decoded; both until the reader's next call. */
int wb_journal_reader_find(struct wb_journal_reader *reader, struct wb_edit_place place, const struct wb_journal_file **file_out,
                        struct wb_slice *record_out);

/* Within a file a chain only goes backwards: WB_E_CORRUPT where the record at offset does not. */
int wb_journal_check_prev(const struct wb_journal_file *file, uint64_t offset, const struct wb_edit *edit);

#endif
