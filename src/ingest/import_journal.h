/*
 * import_journal.h - writes imported pages to the journal, as a crawl would have if it had fetched them. importer.c and
 * import.c use it:
 *
 *   begin (a list of items) ... take    in between, other threads digest, extract and journal the pages of the list
 *   revisit                             one at a time, in the caller's thread
 *   sync                                before the store commits, so that webdb hears of everything that is stored
 *   finish                              at the end
 */
#ifndef WB_INGEST_IMPORT_JOURNAL_H
#define WB_INGEST_IMPORT_JOURNAL_H

#include "ingest/import_queue.h"
#include "webdb/webdb.h"

struct wb_import_journal;

/*
 * The journal of the repository dir; its file is created when there is something to tell. threads 0: as many as the
 * machine has processors.
 */
int wb_import_journal_open(const char *dir, unsigned threads, struct wb_import_journal **journal_out);

/* From now on at most the first links of a page are recorded; 0: all. */
void wb_import_journal_limit_links(struct wb_import_journal *journal, size_t max);

/* Everything that was not synced may be lost. NULL is allowed. */
void wb_import_journal_close(struct wb_import_journal *journal);

/*
 * Starts on the pages of a list. The list belongs to the journal until it is taken back; after WB_E_NOMEM the caller
 * still owns it.
 */
int wb_import_journal_begin(struct wb_import_journal *journal, struct wb_import_item *list);

/*
 * Takes the oldest list back when its pages are digested and journaled. NULL if there is no list, or if it is not done
 * and wait is false. The caller owns the list again even if there is an error. Every list must be taken back before the
 * journal is closed.
 */
int wb_import_journal_take(struct wb_import_journal *journal, bool wait, struct wb_import_item **list_out);

/* Whether there is a list to take back. */
bool wb_import_journal_busy(const struct wb_import_journal *journal);

/*
 * Journals a page whose bytes were seen before, so that its links are known already. If its status says that it has
 * content, outcome says which of WB_OUTCOME_UNCHANGED and WB_OUTCOME_DUPLICATE it is.
 */
int wb_import_journal_revisit(struct wb_import_journal *journal, const struct wb_page *page,
                              enum wb_edit_outcome outcome);

/* Everything that was journaled until now survives a crash. */
int wb_import_journal_sync(struct wb_import_journal *journal);

/* Marks the journal as complete; there must be no list to take back. */
int wb_import_journal_finish(struct wb_import_journal *journal);

#endif
