/*
 * import_source.h - where an import's pages come from: archives, or a tree of
 * files. A source runs in a thread of its own and puts items into the queue; what
 * is wrong with its input it tells there too, and only lack of memory ends it.
 */
#ifndef WB_INGEST_IMPORT_SOURCE_H
#define WB_INGEST_IMPORT_SOURCE_H

#include "ingest/import_queue.h"

struct wb_import_source {
    const char *const *files; /* archives, or... */
    size_t file_count;
    const char *dir;          /* ...a tree and the URL it stands for, which ends in a slash */
    struct wb_slice base;
    size_t body_max;
};

/* Each reads everything. 0, WB_E_NOMEM, or WB_E_STOPPED where the queue was stopped. */
int wb_import_archives(const struct wb_import_source *source, struct wb_import_queue *queue);
int wb_import_tree(const struct wb_import_source *source, struct wb_import_queue *queue);

/* Shared by the two. records: read since the item before. */
int wb_import_push_page(struct wb_import_queue *queue, const struct wb_page *page, struct wb_buf *body, uint64_t records);
int wb_import_push_revisit(struct wb_import_queue *queue, const struct wb_page *page, const struct wb_import_original *original,
                           uint64_t records);
int wb_import_push_error(struct wb_import_queue *queue, const char *file, uint64_t offset, const char *message, bool fatal,
                         uint64_t records);
int wb_import_push_file(struct wb_import_queue *queue, uint64_t records);

/*
 * A fetch time more than a day ahead of the clock cannot be true, and would keep every later version of the page out: it
 * becomes the clock's, and the error is told. False: nothing is wrong with it.
 */
#define WB_IMPORT_TIME_MESSAGE_MAX 160
bool wb_import_fix_time(struct wb_page *page, char message_out[WB_IMPORT_TIME_MESSAGE_MAX]);

#endif
