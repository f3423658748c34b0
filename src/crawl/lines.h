/*
 * lines.h - files of lines: the log of fetches on its way from the worker processes to its readers.
 *
 * Each worker has one file, and so has the parent. A worker appends a batch of lines once the pages they are about are
 * durable. The parent passes the lines on (teller.h) and notes how far each reader got. The file outlives both
 * processes, so killing either of them loses no line. docs/formats/lines.md has the bytes.
 */
#ifndef WB_CRAWL_LINES_H
#define WB_CRAWL_LINES_H

#include "crawl/crawl.h"
#include "os/file.h"

#define WB_LINES_DIR "lines"

struct wb_lines {
    uint32_t magic;
    struct wb_file file;
    uint64_t end;                     /* lines count up to this offset, as last read or written */
    uint64_t round;                   /* of the spool whose lines were appended last */
    uint64_t told[WB_CRAWL_OUTPUTS];  /* how far each reader got; always at the end of a line */
    uint64_t discarded;               /* up to here the space was given back to the file system */
};

/* Who opens a file of lines. */
enum wb_lines_role {
    WB_LINES_OWNER,  /* makes it, for itself or for a process that it forks. WB_E_BUSY if the name is taken */
    WB_LINES_HEIR,   /* takes over what a dead owner left. WB_E_BUSY if the owner lives, WB_E_NOTFOUND if it is gone */
    WB_LINES_HELPER, /* appends what it recovered from the spool of that name, beside owner or heir */
};

/*
 * Opens dir/lines/NAME. Owner and heir hold its lock, together with the processes that they fork. A file with a damaged
 * head counts as empty.
 */
int wb_lines_open(const char *dir, const char *name, enum wb_lines_role role, struct wb_lines **lines_out);
void wb_lines_close(struct wb_lines *lines);

/*
 * Appends whole lines: all of them count afterwards, or none. round is the spool's whose lines these are; if it was
 * appended before, nothing is appended. Only the process that holds the spool of the same name may append.
 */
int wb_lines_append(struct wb_lines *lines, struct wb_slice text, uint64_t round);

/* Looks for lines that another process appended. */
int wb_lines_refresh(struct wb_lines *lines);

/* Reads up to max bytes at offset `at`, which must be within the lines. */
int wb_lines_read(const struct wb_lines *lines, uint64_t at, size_t max, struct wb_buf *text_out);

/* Writes `told` to the file, and gives back the space of lines that every reader has. */
int wb_lines_note(struct wb_lines *lines);

#endif
