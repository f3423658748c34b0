/*
 * import_journal.h - an import's part of the journal: what a crawl would have told of the same pages.
 *
 *   begin (a list of items) ... take    its pages are digested, extracted and journaled by other threads meanwhile
 *   revisit                             one by one, by the writer
 *   sync                                before the store's commit, so that nothing is stored that webdb never hears of
 *   finish                              at the end
 */
#ifndef WB_INGEST_IMPORT_JOURNAL_H
#define WB_INGEST_IMPORT_JOURNAL_H

#include "ingest/import_queue.h"
#include "webdb/webdb.h"

struct wb_import_journal;

/*
 * The journal of the repository dir; its file is created when there is something to tell. robots_token: the crawler's name, by
 * which X-Robots-Tag headers are read; it is borrowed until the journal is closed. threads 0: as many as the machine has processors.
 */
int wb_import_journal_open(const char *dir, struct wb_slice robots_token, unsigned threads,
                           struct wb_import_journal **journal_out);

/* What was not synced may be lost. NULL is allowed. */
void wb_import_journal_close(struct wb_import_journal *journal);

/* Begins with the pages of a list, which belongs to the journal until it is taken back. WB_E_NOMEM: it was not taken. */
int wb_import_journal_begin(struct wb_import_journal *journal, struct wb_import_item *list);

/*
 * The oldest list, its pages digested and journaled; NULL where there is none, or it is not done yet and wait is false.
 * With an error too it is the caller's again. Everything that was begun must be taken back before the journal is closed.
 */
int wb_import_journal_take(struct wb_import_journal *journal, bool wait, struct wb_import_item **list_out);

/* Whether a list is on its way. */
bool wb_import_journal_busy(const struct wb_import_journal *journal);

/* A page whose bytes were there before, and whose links are known therefore. outcome: where it has content. */
int wb_import_journal_revisit(struct wb_import_journal *journal, const struct wb_page *page, enum wb_edit_outcome outcome);

int wb_import_journal_sync(struct wb_import_journal *journal);
int wb_import_journal_finish(struct wb_import_journal *journal);

#endif
