/*
 * journal_file.h - one log of the journal as a file: its name, number, head, lock and end. Used inside this room only.
 *
 * A log goes through these phases:
 *
 *   created   wb_journal_file_create(): it has a number, a lock and a head, and no records yet
 *   written   its writer appends records
 *   ended     wb_journal_file_finish(): the head states where the records end; nothing is appended any more
 *   removed   wb_journal_remove_logs(), when nobody needs its records
 */
#ifndef WB_JOURNAL_JOURNAL_FILE_H
#define WB_JOURNAL_JOURNAL_FILE_H

#include "base/vec.h"
#include "journal/journal.h"
#include "os/file.h"

#define WB_JOURNAL_DIR "journal"

enum { WB_JOURNAL_FILE_HEAD_BYTES = WB_JOURNAL_RECORDS_AT };

/* An open log. Closed: number is 0. */
struct wb_journal_file {
    struct wb_file file;
    uint32_t number;
    uint64_t writer; /* a random number, the same in all logs of one writer; part of the salt of every record */
    uint64_t end;    /* of a log that has ended: where its records end; otherwise 0 */
};

#define WB_JOURNAL_FILE_INIT ((struct wb_journal_file){{-1, NULL}, 0, 0, 0})

/* Numbers of logs, ascending. */
struct wb_journal_numbers WB_VEC_OF(uint32_t);

/*
 * Creates a log and locks it. Its number is the next free one, and greater than `after`. Processes that do this at the
 * same time get different numbers.
 */
int wb_journal_file_create(const char *journal, uint64_t writer, uint32_t after, struct wb_journal_file *file_out);

/* WB_E_NOTFOUND if the log does not exist or has no head yet, WB_E_CORRUPT, WB_E_NEWER. */
int wb_journal_file_open(const char *journal, uint32_t number, bool write, struct wb_journal_file *file_out);
void wb_journal_file_close(struct wb_journal_file *file);

/* Reads the head (again): another process may have ended the log meanwhile. */
int wb_journal_file_read_head(struct wb_journal_file *file);

/* Makes all records durable, then states in the head that they end at `end`. */
int wb_journal_file_finish(struct wb_journal_file *file, uint64_t end);

/* Fills an empty vector with the numbers of all logs. It stays empty if there is no journal. */
int wb_journal_file_list(const char *journal, struct wb_journal_numbers *numbers_out);

/* The index of the first number that is `number` or greater; the count if there is none. */
size_t wb_journal_numbers_find(const struct wb_journal_numbers *numbers, uint32_t number);

/* The path of a log, from the heap; NULL when out of memory. */
char *wb_journal_file_path(const char *journal, uint32_t number);

#endif
