/* editfile.h - a file of the journal: its name, number, head, lock and end. */
#ifndef WB_WEBDB_EDITFILE_H
#define WB_WEBDB_EDITFILE_H

#include "os/file.h"

#define WB_EDIT_DIR "journal"

enum { WB_EDIT_FILE_HEAD_BYTES = 64 }; /* the first record begins here */

struct wb_edit_file {
    struct wb_file file;
    uint32_t number;
    uint64_t writer; /* by chance, the same in all files of one writer; salts the records */
    uint64_t end;    /* of an ended file: where its records end; 0: not ended */
};

#define WB_EDIT_FILE_INIT ((struct wb_edit_file){{-1, NULL}, 0, 0, 0})

/* A new file with the next free number, above `after` at least, locked; different processes get different ones. */
int wb_edit_file_create(const char *journal, uint64_t writer, uint32_t after, struct wb_edit_file *file_out);

/* WB_E_NOTFOUND where it is not there or has no head yet, WB_E_CORRUPT, WB_E_NEWER. */
int wb_edit_file_open(const char *journal, uint32_t number, bool write, struct wb_edit_file *file_out);
void wb_edit_file_close(struct wb_edit_file *file);

/* Reads the head (again): whether it has ended meanwhile. */
int wb_edit_file_read_head(struct wb_edit_file *file);

/* Makes what was written durable, then says in the head that the records end at `end`. */
int wb_edit_file_finish(struct wb_edit_file *file, uint64_t end);

/* The numbers of the files there are, ascending, from the heap. None where there is no journal. */
int wb_edit_file_list(const char *journal, uint32_t **numbers_out, size_t *count_out);

/* The path of a file, from the heap; NULL when out of memory. */
char *wb_edit_file_path(const char *journal, uint32_t number);

#endif
