/*
 * model_compare.h - comparisons for the model test: each makes the same call on a store on disk and on the twin, and
 * fails unless both return the same.
 */
#ifndef WB_TESTS_STORE_MODEL_COMPARE_H
#define WB_TESTS_STORE_MODEL_COMPARE_H

#include "store_support.h"

struct pair {
    struct wb_store *log, *twin;
    bool committed; /* nothing was put since the last commit */
};

/* The latest version and its time. */
void compare_get(struct pair *p, struct wb_pageid id);
void compare_get_when(struct pair *p, struct wb_pageid id, const struct wb_store_when *when);
void compare_get_many(struct pair *p, const struct wb_pageid *ids, size_t count, const struct wb_store_when *when);
void compare_timeline(struct pair *p, struct wb_pageid id);

/* The page in every snapshot, and in one that does not exist. */
void compare_in_snapshots(struct pair *p, struct wb_pageid id);

/* What waits of this page and for it. */
void compare_revisits(struct pair *p, struct wb_pageid id);

/* What is barred, and which pages of the site there are. */
void compare_bars(struct pair *p, const struct spec *spec);
void compare_snapshots(struct pair *p);

/* Returns false if the numbers differ, and prints them. */
bool same_stat(struct pair *p);

#endif
