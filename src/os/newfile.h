/*
 * newfile.h - a file for people: it grows as FILE.tmp and gets its name when it is complete and on disk, so that nobody
 * reads half of it. If the work fails, FILE.tmp is removed.
 *
 *   open -> write ... -> finish -> close          (close is safe at any time)
 */
#ifndef WB_OS_NEWFILE_H
#define WB_OS_NEWFILE_H

#include "base/buf.h"
#include "os/file.h"

struct wb_newfile {
    const char *path;
    bool force;            /* may replace a file */
    char *temporary;       /* owned; NULL: there is none */
    struct wb_file file;
    uint64_t offset;       /* bytes that are in the file */
    struct wb_buf waiting; /* bytes that are not written yet */
};

#define WB_NEWFILE_INIT ((struct wb_newfile){.file = WB_FILE_INIT})

/* Creates the empty temporary file. WB_E_INVALID, which names the file, if it exists already and force is false. */
int wb_newfile_open(struct wb_newfile *file, const char *path, bool force);

int wb_newfile_write(struct wb_newfile *file, const void *bytes, size_t len);

/* Makes what was written durable under its name. */
int wb_newfile_finish(struct wb_newfile *file);

/* Keeps the error message. */
void wb_newfile_close(struct wb_newfile *file);

#endif
