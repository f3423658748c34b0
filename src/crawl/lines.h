/*
 * lines.h - lines of the log of fetches that are true and have not reached their readers yet.
 *
 * One file per crawler process (and one for the parent). The process appends a batch when the pages that its lines speak of
 * are durable; the parent passes the lines on (teller.c) and notes how far it got. The file outlives both, so a
 * kill of either loses no line. docs/formats/lines.md has the bytes.
 */
#ifndef WB_CRAWL_LINES_H
#define WB_CRAWL_LINES_H

#include "crawl/crawl.h"
#include "os/file.h"

#define WB_LINES_DIR "lines"

struct wb_lines {
    uint32_t magic;
    struct wb_file file;
    uint64_t end;                     /* of the lines that count, as last read or written */
    uint64_t round;                   /* of the spool: its lines are in the file */
    uint64_t told[WB_CRAWL_OUTPUTS];  /* how far each reader got; always at the end of a line */
    uint64_t discarded;               /* up to here the space was given back */
};

/*
 * dir/lines/NAME, made where it is not there. lock: it becomes ours, together with the processes that we fork, or WB_E_BUSY. Where
 * the head of the file is damaged the file counts as empty.
 */
int wb_lines_open(const char *dir, const char *name, bool lock, struct wb_lines **lines_out);
void wb_lines_close(struct wb_lines *lines);

/*
 * Appends whole lines; all of them count, or none. round: the spool's, whose lines these are. A round that was appended before is
 * not appended again. Only one process may append at a time: the one that holds the spool of the same name.
 */
int wb_lines_append(struct wb_lines *lines, struct wb_slice text, uint64_t round);

/* Looks at what was appended since. */
int wb_lines_refresh(struct wb_lines *lines);

/* Up to max bytes at `at`, which is behind the head and before the end. */
int wb_lines_read(const struct wb_lines *lines, uint64_t at, size_t max, struct wb_buf *text_out);

/* Remembers `told`, and gives the space of lines back that everybody has. */
int wb_lines_note(struct wb_lines *lines);

#endif
