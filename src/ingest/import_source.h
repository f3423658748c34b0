/*
 * import_source.h - where an import's pages come from: archives, or a tree of files.
 *
 * A source runs in its own thread and puts items into the queue: pages, revisits, and errors about its input. Bad input
 * never ends it; only a lack of memory does, or the writer, who can stop the queue. import.c starts it.
 */
#ifndef WB_INGEST_IMPORT_SOURCE_H
#define WB_INGEST_IMPORT_SOURCE_H

#include "ingest/import_queue.h"

struct wb_import_source {
    const char *const *files; /* archives, or... */
    size_t file_count;
    const char *dir;          /* ...if not NULL, the root of a tree of files */
    struct wb_slice dir_url;  /* the URL of dir; it ends in a slash */
    size_t body_max;          /* bytes of a body that are kept */
};

/* Each reads the whole source. 0, WB_E_NOMEM, or WB_E_STOPPED if the queue was stopped. */
int wb_import_archive_read(const struct wb_import_source *source, struct wb_import_queue *queue);
int wb_import_tree_read(const struct wb_import_source *source, struct wb_import_queue *queue);

/*
 * Both sources make their items with these. records: how many were read since the previous item. A large body is moved
 * out of *body instead of copied if it fills that buffer. 0, WB_E_NOMEM or WB_E_STOPPED.
 */
int wb_import_source_push_page(struct wb_import_queue *queue, const struct wb_page *page, struct wb_buf *body,
                        uint64_t records);
int wb_import_source_push_revisit(struct wb_import_queue *queue, const struct wb_page *page,
                           const struct wb_import_original *original, uint64_t records);
int wb_import_source_push_error(struct wb_import_queue *queue, const char *file, uint64_t offset, const char *message,
                         bool fatal, uint64_t records);
int wb_import_source_push_file(struct wb_import_queue *queue, uint64_t records);

/*
 * Replaces a fetch time that is more than a day ahead of the clock by the current time: it cannot be true, and it would
 * keep out every later version of the page. Returns true, with a message for the user, if it did so.
 */
#define WB_IMPORT_SOURCE_MESSAGE_MAX 200
bool wb_import_source_fix_time(struct wb_page *page, char message_out[WB_IMPORT_SOURCE_MESSAGE_MAX]);

#endif
