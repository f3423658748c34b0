/*
 * progress.h - how far long work has come: rate, done, left. On a terminal a
 * line that is redrawn; elsewhere one line a minute. For one thread.
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

/* Bytes done of total (0: unknown), and pages; cheap enough to call for every page. */
void wb_progress_update(struct wb_progress *progress, uint64_t done, uint64_t total, uint64_t pages);

/* For work that words its own line: whether it is time for one, and showing it. */
bool wb_progress_due(struct wb_progress *progress);
void wb_progress_show(const struct wb_progress *progress, const char *text);

/* Takes the drawn line away, if there is one. */
void wb_progress_clear(void);

/* The text of the line, for one moment; text_out has size bytes. */
void wb_progress_text(const char *verb, uint64_t done, uint64_t total, uint64_t pages, double seconds, char *text_out,
                      unsigned size);

#endif
