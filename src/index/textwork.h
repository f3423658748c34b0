/* textwork.h - the kept texts of a generation: those of the pages that are read, and those of the last generation. */
#ifndef WB_INDEX_TEXTWORK_H
#define WB_INDEX_TEXTWORK_H

#include "base/buf.h"
#include "os/file.h"

struct wb_build;

/* Where the texts of pages that were read wait, in the order in which they came: a temporary file without a name. */
struct wb_textwork {
    struct wb_file file;
    struct wb_buf buffer; /* not yet written */
    uint64_t written;
    struct wb_textplace {
        uint64_t offset;
        uint64_t bytes; /* 0: nothing came */
    } * places;         /* by docid */
    uint64_t pages;
};

int wb_textwork_begin(struct wb_build *build);
void wb_textwork_release(struct wb_textwork *work);

/* Takes what is kept of a page. The caller has the mutex of the build. */
int wb_textwork_add(struct wb_build *build, uint32_t docid, struct wb_slice kept);

/* Writes the file of the new generation. */
int wb_textwork_write(struct wb_build *build);

#endif
