/*
 * run.h - sorted postings in a temporary file: what an inverter flushes, and what the merge reads.
 *
 *   term      varint length, key (docs/formats/dictionary.md)
 *   postings  varint count, varint bytes, then for each: varint gap to the docid before (the first as it is), posting
 *             bytes (posting.h)
 *
 * The file has no name and ends with the process. A few places are remembered while it is written, so that several
 * threads can each merge their own range of terms.
 */
#ifndef WB_INDEX_RUN_H
#define WB_INDEX_RUN_H

#include "base/arena.h"
#include "base/vec.h"
#include "os/file.h"
#include "index/posting.h"

/* A place in a run where a term begins. */
struct wb_run_place {
    struct wb_slice key;
    uint64_t offset;
};

/* A finished run. Threads may share it. */
struct wb_run {
    struct wb_file file;
    void *map;
    uint64_t bytes;
    struct wb_arena keys;
    WB_VEC(struct wb_run_place) places;
};

struct wb_run_writer {
    struct wb_run *run;
    struct wb_buf buffer; /* not yet written */
    uint64_t written;
    uint64_t last_place;
};

/* Release the run even if this fails. */
int wb_run_begin(const char *temp_dir, struct wb_run *run_out, struct wb_run_writer *writer_out);

/* Begins a term; keys ascend. `bytes` of postings must follow. */
int wb_run_term(struct wb_run_writer *writer, struct wb_slice key, uint64_t count, uint64_t bytes);

/* Appends postings. *room_out is where up to `bytes` bytes can be put; wb_run_took() says how many there are. */
int wb_run_room(struct wb_run_writer *writer, size_t bytes, char **room_out);
void wb_run_took(struct wb_run_writer *writer, size_t bytes);

/* Ends the writing and opens the run for reading. */
int wb_run_finish(struct wb_run_writer *writer);
void wb_run_release(struct wb_run *run);

/* ---- reading ----------------------------------------------------------------------------------- */

/* A walk over the terms of a run. */
struct wb_run_cursor {
    const char *at, *end;
    struct wb_slice key;      /* of the current term; key.ptr is NULL at the end */
    struct wb_slice postings; /* of the current term */
    uint64_t count;
};

/* Goes to the first term whose key is not less than `from`, which may be empty. */
void wb_run_seek(const struct wb_run *run, struct wb_slice from, struct wb_run_cursor *cursor_out);

/* Returns 1 and the next term, or 0 at the end. */
int wb_run_next(struct wb_run_cursor *cursor);

#endif
