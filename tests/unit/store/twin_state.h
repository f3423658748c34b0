/*
 * twin_state.h - what the twin (twin.h) knows at one moment: pages, revisits and bars in
 * plain vectors, searched from front to back. twin.c has two of these, the current one and
 * the committed one; each scan has a copy of its own.
 */
#ifndef WB_TESTS_STORE_TWIN_STATE_H
#define WB_TESTS_STORE_TWIN_STATE_H

#include "base/buf.h"
#include "base/vec.h"
#include "store/store.h"

/* One version of a page. */
struct wb_twin_version {
    struct wb_pageid id;
    struct wb_buf record;
    int64_t time_ms;
    uint32_t epoch, lifetime_count;
};

struct wb_twin_versions WB_VEC_OF(struct wb_twin_version);

struct wb_twin_revisit {
    struct wb_pageid id;
    char *site;
    struct wb_store_revisit revisit;
};

struct wb_twin_bar {
    struct wb_store_bar bar; /* bar.site borrows from site */
    char *site;
};

struct wb_twin_state {
    struct wb_twin_versions pages; /* the latest version of each page */
    struct wb_twin_versions old;   /* class A: versions that only the snapshot still has */
    WB_VEC(struct wb_twin_revisit) revisits;
    WB_VEC(struct wb_twin_bar) bars;
    uint32_t epoch, snapshot, snapshot_epoch;
};

void wb_twin_state_release(struct wb_twin_state *state);
int wb_twin_state_copy(const struct wb_twin_state *from, struct wb_twin_state *to_out);

/* ---- versions ---- */

struct wb_twin_version *wb_twin_version_find(const struct wb_twin_versions *versions, struct wb_pageid id);

/* Moves a version into the list: its record is empty afterwards. */
int wb_twin_version_add(struct wb_twin_versions *versions, struct wb_twin_version *version);

/* Removes a version; another one takes its place in the list. */
void wb_twin_version_drop(struct wb_twin_versions *versions, struct wb_twin_version *version);
void wb_twin_versions_release(struct wb_twin_versions *versions);

/* Removes the latest version of a page. If the snapshot contains it, it becomes class A. */
int wb_twin_retire(struct wb_twin_state *state, struct wb_twin_version *version);

/* Decodes a version; the page borrows from its record. */
int wb_twin_version_page(const struct wb_twin_version *version, struct wb_page *page_out);

/* ---- revisits and bars ---- */

struct wb_twin_revisit *wb_twin_revisit_find(struct wb_twin_state *state, struct wb_pageid id);
int wb_twin_revisit_add(struct wb_twin_state *state, struct wb_pageid id, struct wb_slice site,
                        const struct wb_store_revisit *revisit);
void wb_twin_revisit_drop(struct wb_twin_state *state, struct wb_twin_revisit *revisit);

/* Whether a page must not be stored. */
bool wb_twin_barred(struct wb_twin_state *state, struct wb_pageid id, struct wb_slice site);

/* What wb_store_bar() and wb_store_allow() do, without the commits. */
int wb_twin_bar_set(struct wb_twin_state *state, const struct wb_store_bar *bar);
int wb_twin_bar_lift(struct wb_twin_state *state, const struct wb_store_bar *bar);

#endif
