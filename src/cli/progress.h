/*
 * progress.h - shows on standard error how far long work has come, how fast it is and how long it still takes: on a
 * terminal in a line that is drawn again and again, elsewhere in one line a minute. For one thread.
 */
#ifndef WB_CLI_PROGRESS_H
#define WB_CLI_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

struct wb_progress {
    const char *verb;      /* "import" */
    bool terminal;
    int64_t start_ns, next_ns;
};

void wb_progress_init(struct wb_progress *progress, const char *verb);

/* Bytes done, of total (0: unknown), and pages. Cheap enough to be called for every page. */
void wb_progress_update(struct wb_progress *progress, uint64_t done, uint64_t total, uint64_t pages);

/* The same for work that is not about single pages, as a function that work can call. context: a struct wb_progress. */
void wb_progress_bytes(void *context, uint64_t done, uint64_t total);

/* For work that composes its own line: whether it is time for one, and showing it. */
bool wb_progress_due(struct wb_progress *progress);
void wb_progress_show(const struct wb_progress *progress, const char *text);

/* Removes the line, if there is one, before something else is printed. */
void wb_progress_clear(void);

/* A test seam. Composes the text of the line; text_out has room for size bytes. */
void wb_progress_text(const char *verb, uint64_t done, uint64_t total, uint64_t pages, double seconds, char *text_out,
                      unsigned size);

#endif
