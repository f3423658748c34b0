/*
 * removal.h - pages on their way out: from the store in batches, and as notes in the journal, in either order.
 */
#ifndef WB_CYCLE_REMOVAL_H
#define WB_CYCLE_REMOVAL_H

#include "cycle/cycle.h"
#include "store/store.h"

struct wb_removal {
    const char *dir;
    struct wb_store *store;
    struct wb_journal_writer *log;    /* NULL: nothing noted yet */
    int64_t now_ms;
    bool everywhere;            /* from the generation, too, at once */
    uint64_t uncommitted;
    struct wb_buf expired;      /* URLs, a line each, that are noted once the store has committed */
    struct wb_url url;
    struct wb_buf key, mem;
};

/* Opens the store. Close it in any case. */
int wb_removal_open(const char *dir, bool everywhere, struct wb_removal *removal_out);

/* Names the page of a URL; the site is that of removal->key afterwards. */
int wb_removal_id(struct wb_removal *removal, struct wb_slice url, struct wb_pageid *id_out);

/* 1: it was there, and goes with the next commit (which comes by itself now and then); 0: it was not. */
int wb_removal_store(struct wb_removal *removal, struct wb_pageid id, struct wb_slice site);

/* What has expired is noted as such when it is gone from the store, never before: webdb is what finds it again after a crash. */
int wb_removal_expired(struct wb_removal *removal, struct wb_slice url);
int wb_removal_commit(struct wb_removal *removal);

/* To the journal; durable after wb_removal_noted(). */
int wb_removal_note(struct wb_removal *removal, struct wb_slice url, enum wb_expunge what);
int wb_removal_noted(struct wb_removal *removal);
void wb_removal_close(struct wb_removal *removal);

#endif
