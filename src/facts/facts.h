/*
 * facts.h - the door of facts: writes what the active generation knows about pages to a table in a file, for programs
 * that read tables: one row per stored page, in the order of URLs, with the built-in columns first and those of users
 * after them.
 */
#ifndef WB_FACTS_FACTS_H
#define WB_FACTS_FACTS_H

#include "stream/stream.h"

enum wb_facts_format { WB_FACTS_CSV, WB_FACTS_JSONL, WB_FACTS_SQLITE, WB_FACTS_PARQUET };

/* Which format a file name means by its ending. WB_E_INVALID for other endings. */
int wb_facts_format_of_name(const char *path, enum wb_facts_format *format_out);

struct wb_facts_counts {
    uint64_t pages, links; /* written; only SQLite has a place for links */
};

struct wb_facts_options {
    const char *path;
    enum wb_facts_format format;
    bool force; /* may replace a file */
    const struct wb_selection *selection;

    /* Called before each page with how many were looked at, of how many; a negative code stops the work. */
    int (*step)(void *context, uint64_t done, uint64_t total, const struct wb_facts_counts *counts);
    void *context;
};

/*
 * Writes the file, which gets its name when it is complete. WB_E_NOTFOUND if there is no generation; WB_E_INVALID if
 * the query of the selection is wrong, or the file exists.
 */
int wb_facts_write(const char *dir, const struct wb_facts_options *options, struct wb_facts_counts *counts_out);

#endif
