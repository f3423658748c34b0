/*
 * captures.h - writes all captures of a page to a web archive, oldest first, for 'export --versions'. The first record
 * of a content has its bytes; the other captures that saw it are revisit records, also if it returned after another
 * content.
 */
#ifndef WB_CLI_CAPTURES_H
#define WB_CLI_CAPTURES_H

#include "cli/selection.h"
#include "store/store.h"
#include "warc/warc.h"

/* Set the first three; the others start as zero. */
struct wb_captures {
    struct wb_store *store;
    struct wb_warc_writer *writer;
    const struct wb_selection *selection; /* --since and --until select captures, --type selects versions */
    uint64_t pages, captures, revisits;   /* written so far; revisits are captures too */
    uint64_t errors;                      /* versions that could not be read; they were reported */
    struct wb_captures_content *contents; /* what follows is about one page */
    size_t content_count;                 /* contents that are written */
    struct wb_store_timeline timeline;
    struct wb_buf mem;
    int64_t last_ms;  /* the capture that was written last */
    int64_t reach_ms; /* the newest capture of the versions so far */
    int64_t skip_ms;  /* captures up to this time were written before the page changed */
};

/* newest: the page as a scan returned it. Ends early if a stop is requested. */
int wb_captures_write(struct wb_captures *captures, const struct wb_page *newest);
void wb_captures_release(struct wb_captures *captures);

#endif
