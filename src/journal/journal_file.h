/* journal_file.h - a file of the journal: its name, number, head, lock and end. */
#ifndef WB_JOURNAL_JOURNAL_FILE_H
#define WB_JOURNAL_JOURNAL_FILE_H

#include "journal/journal.h"
#include "os/file.h"

#define WB_JOURNAL_DIR "journal"

enum { WB_JOURNAL_FILE_HEAD_BYTES = WB_JOURNAL_RECORDS_AT }; /* the first record follows */

struct wb_journal_file {
    struct wb_file file;
    uint32_t number;
    uint64_t writer; /* by chance, the same in all files of one writer; salts the records */
    uint64_t end;    /* of an ended file: where its records end; 0: not ended */
};

#define WB_JOURNAL_FILE_INIT ((struct wb_journal_file){{-1, NULL}, 0, 0, 0})

/* A new file with the next free number, above `after` at least, locked; different processes get different ones. */
int wb_journal_file_create(const char *journal, uint64_t writer, uint32_t after, struct wb_journal_file *file_out);

/* WB_E_NOTFOUND where it is not there or has no head yet, WB_E_CORRUPT, WB_E_NEWER. */
int wb_journal_file_open(const char *journal, uint32_t number, bool write, struct wb_journal_file *file_out);
void wb_journal_file_close(struct wb_journal_file *file);

/* Reads the head (again): whether it has ended meanwhile. */
int wb_journal_file_read_head(struct wb_journal_file *file);

/* Makes what was written durable, then says in the head that the records end at `end`. */
int wb_journal_file_finish(struct wb_journal_file *file, uint64_t end);

/* The numbers of the files there are, ascending, from the heap. None where there is no journal. */
int wb_journal_file_list(const char *journal, uint32_t **numbers_out, size_t *count_out);

/* The path of a file, from the heap; NULL when out of memory. */
char *wb_journal_file_path(const char *journal, uint32_t number);

#endif
