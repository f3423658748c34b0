/* warcreader.h - private to warc: a reader over a file that is open already, for tests and fuzzing. */
#ifndef WB_WARC_WARCREADER_H
#define WB_WARC_WARCREADER_H

#include "os/file.h"
#include "warc/warc.h"

/* Takes the file, also when it fails; its path is what messages name and what tells the kind where content does not. */
int wb_warc_open_file(struct wb_file *file, size_t block_max, struct wb_warc_reader **reader_out);

#endif
