/*
 * journal_reader.h - what chains, recovery and verification need of the reader beyond the door: the log behind a place,
 * and records that are checked but not decoded. Used inside this room only.
 */
#ifndef WB_JOURNAL_JOURNAL_READER_H
#define WB_JOURNAL_JOURNAL_READER_H

#include "journal/journal.h"
#include "journal/journal_file.h"

/*
 * Opens a log, or finds it among those that are open. WB_E_NOTFOUND, WB_E_CORRUPT, WB_E_NEWER. *file_out is valid until
 * the reader opens another log.
 */
int wb_journal_reader_file(struct wb_journal_reader *reader, uint32_t number, const struct wb_journal_file **file_out);

/*
 * Finds the record at a place and verifies its checksum, without decoding it. *file_out and *record_out are valid
 * until the next call. WB_E_CORRUPT if there is no intact record.
 */
int wb_journal_reader_find(struct wb_journal_reader *reader, struct wb_edit_place place,
                           const struct wb_journal_file **file_out, struct wb_slice *record_out);

/* Within a log a chain only goes backwards. WB_E_CORRUPT if the record at offset does not follow that rule. */
int wb_journal_check_prev(const struct wb_journal_file *file, uint64_t offset, const struct wb_edit *edit);

#endif
