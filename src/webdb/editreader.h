/* editreader.h - what recovery and verifying need of the reader beyond its door: one log alone, and why it stops. */
#ifndef WB_WEBDB_EDITREADER_H
#define WB_WEBDB_EDITREADER_H

#include "webdb/editfile.h"
#include "webdb/webdb.h"

/* What there is at an offset of a log. */
enum wb_edit_sight {
    WB_EDIT_SEEN_END,     /* nothing: the records end here */
    WB_EDIT_SEEN_RECORD,
    WB_EDIT_SEEN_TORN,    /* the begin of a record that was never finished; nothing whole is behind it */
    WB_EDIT_SEEN_DAMAGED, /* a record that does not match its checksum, or none where one should be */
};

struct wb_edit_step {
    enum wb_edit_sight sight;
    struct wb_edit_place place;
    uint64_t next;    /* offset to go on from; 0: the log cannot be read further */
    const char *file; /* path of the log, until it is closed */
};

/*
 * The record after *at in the same log (offset 0: the first). 1 with the record and its place in *at, 0 where the log ends,
 * well or torn; WB_E_CORRUPT with *at at the damage, from where the next call goes on. step_out says more.
 */
int wb_edit_reader_step(struct wb_edit_reader *reader, struct wb_edit_place *at, struct wb_edit *edit_out, struct wb_edit_step *step_out);

/* The head of a log as the reader has it. WB_E_NOTFOUND, WB_E_CORRUPT. */
int wb_edit_reader_file(struct wb_edit_reader *reader, uint32_t number, const struct wb_edit_file **file_out);

/* A sound record by its place, not decoded; both until the reader's next call. */
int wb_edit_reader_find(struct wb_edit_reader *reader, struct wb_edit_place place, const struct wb_edit_file **file_out,
                        struct wb_slice *record_out);

/* Within a file a chain only goes backwards: WB_E_CORRUPT where the record at offset does not. */
int wb_edit_check_prev(const struct wb_edit_file *file, uint64_t offset, const struct wb_edit *edit);

#endif
