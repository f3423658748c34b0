/*
 * recent.h - the latest fetches of all crawls on a repository, for people who watch: a ring file of fixed size.
 *
 *   worker --- a few times per second ---> DIR/control/fetches ---> wb_recent_read() of those who look
 *
 * Unlike the log of fetches (lines.h) it promises nothing about what is durable: a line is here when its request has
 * ended, and when 32,768 later ones have ended it is gone. Several crawls share the file. docs/formats/fetches.md has
 * the bytes.
 */
#ifndef WB_CRAWL_RECENT_H
#define WB_CRAWL_RECENT_H

#include "crawl/crawl.h"
#include "os/file.h"

enum { WB_RECENT_HEAD_BYTES = 4096, WB_RECENT_SLOT_BYTES = 512, WB_RECENT_SLOTS = 32768 };

/* What a worker has to write. A struct of zeros with file WB_FILE_INIT is closed: nothing is written. */
struct wb_recent {
    struct wb_file file;
    struct wb_buf slots; /* encoded, without their numbers */
    int64_t written_ms;  /* when something was written last */
};

/* Opens the file, and makes it if there is none. Crawls work without it, so a failure only means that nobody can watch.
 */
void wb_recent_open(const char *dir, struct wb_recent *recent_out);
void wb_recent_close(struct wb_recent *recent);

/* Adds a fetch; its number is not used. */
void wb_recent_add(struct wb_recent *recent, const struct wb_recent_fetch *fetch);

/* Writes what was added, if it is time. Never waits: if another process is writing, the next call tries again. */
void wb_recent_flush(struct wb_recent *recent, int64_t now_ms);

/* A test seam. One fetch as bytes. Texts that are too long are cut. */
void wb_recent_encode(const struct wb_recent_fetch *fetch, uint8_t bytes_out[WB_RECENT_SLOT_BYTES]);

/* A test seam. Returns false if the bytes are not a fetch. Its texts point into the bytes. */
bool wb_recent_decode(const uint8_t bytes[WB_RECENT_SLOT_BYTES], struct wb_recent_fetch *fetch_out);

/* Checks the file of a repository, if there is one. */
int wb_recent_verify(const char *dir, wb_journal_found found, void *context);

#endif
