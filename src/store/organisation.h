/*
 * organisation.h - what an organisation of pages on disk must provide.
 *
 * The door (store.c) checks arguments and calls through this table. All slots are
 * required. A new organisation is one row in store.c's list and one such table.
 */
#ifndef WB_STORE_ORGANISATION_H
#define WB_STORE_ORGANISATION_H

#include "store/store.h"

struct wb_store_ops {
    void (*close)(struct wb_store *store);
    int (*put)(struct wb_store *store, const struct wb_page *page, enum wb_store_outcome *outcome_out);
    int (*touch)(struct wb_store *store, struct wb_pageid id, int64_t time_ms);
    int (*remove)(struct wb_store *store, struct wb_pageid id, struct wb_slice site, bool everywhere);
    int (*put_revisit)(struct wb_store *store, struct wb_pageid id, struct wb_slice site, const struct wb_store_revisit *revisit);
    int (*get_revisit)(struct wb_store *store, struct wb_pageid id, struct wb_store_revisit *revisit_out);
    int (*bar)(struct wb_store *store, const struct wb_store_bar *bar);
    int (*allow)(struct wb_store *store, const struct wb_store_bar *bar);
    int (*barred)(struct wb_store *store, struct wb_pageid id, struct wb_slice site);
    int (*bar_each)(struct wb_store *store, int (*each)(void *context, const struct wb_store_bar *bar), void *context);
    int (*list_site)(struct wb_store *store, struct wb_slice site, struct wb_pageid *ids_out, size_t max, size_t *count_out);
    int (*commit)(struct wb_store *store, struct wb_store_commit_counts *commit_inout);
    int (*snapshot)(struct wb_store *store, uint32_t *snapshot_out);
    int (*get)(struct wb_store *store, struct wb_pageid id, struct wb_page *page_out, struct wb_buf *mem_out);
    int (*time)(struct wb_store *store, struct wb_pageid id, int64_t *time_ms_out);
    int (*scan_open)(struct wb_store *store, const struct wb_store_scan_options *options, struct wb_store_scan **scan_out);
    int (*scan_next)(struct wb_store_scan *scan, struct wb_page *page_out);
    void (*scan_close)(struct wb_store_scan *scan);
    int (*stat)(struct wb_store *store, struct wb_store_stat *stat_out);
    int (*compact)(struct wb_store *store, wb_store_progress progress, void *progress_context, wb_store_found found, void *found_context,
                   struct wb_store_compact_counts *compact_out);
};

enum { WB_STORE_MAGIC = 0x57425354, WB_STORE_SCAN_MAGIC = 0x57425343 };

/* The first member of every organisation's own struct. */
struct wb_store {
    uint32_t magic;
    enum wb_store_mode mode;
    const struct wb_store_ops *ops;
};

struct wb_store_scan {
    uint32_t magic;
    const struct wb_store_ops *ops;
};

/* A stored time that only a wrong clock can have made. */
static inline bool wb_store_time_is_ahead(int64_t time_ms, int64_t now_ms)
{
    return time_ms > now_ms + WB_STORE_AHEAD_MS;
}

/* Whether a page of time_ms replaces, or a touch at time_ms moves, one of stored_ms: newer wins, but no wrong clock does. */
static inline bool wb_store_time_replaces(int64_t time_ms, int64_t stored_ms, int64_t now_ms)
{
    return time_ms > stored_ms || (wb_store_time_is_ahead(stored_ms, now_ms) && !wb_store_time_is_ahead(time_ms, now_ms));
}

struct wb_superblock;

/* An organisation that lives in a directory. */
struct wb_organisation {
    const char *name;
    /* Everything but the superblock, which the door writes last. */
    int (*create)(const char *dir, const struct wb_superblock *superblock);
    int (*open)(const char *dir, const struct wb_superblock *superblock, enum wb_store_mode mode, struct wb_store **store_out);
    int (*verify)(const char *dir, const struct wb_superblock *superblock, wb_store_found found, void *found_context,
                  wb_store_progress progress, void *progress_context, struct wb_store_verify_counts *verify_out);
};

extern const struct wb_organisation wb_organisation_log;

#endif
