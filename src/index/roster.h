/*
 * roster.h - who is in the next generation: the pages of the snapshot, the URLs of the edition, and their docids.
 *
 *   scan of the snapshot, facts only  ->  one struct wb_roster_page for each stored page, by page id
 *   walk over the edition's URLs      ->  one struct wb_roster_url for each, by number; together with its page if it
 *                                         has one
 *
 * Both are in memory that is kept in temporary files, so the kernel can write it out: 56 bytes per page and 40 per URL.
 */
#ifndef WB_INDEX_ROSTER_H
#define WB_INDEX_ROSTER_H

#include "base/arena.h"
#include "base/vec.h"
#include "index/generation.h"

struct wb_roster_page {
    struct wb_pageid id;
    int64_t time_ms;
    uint64_t bytes; /* of the body */
    uint64_t epoch; /* in which this version arrived */
    uint32_t docid; /* WB_DOCID_NONE if webdb does not know it */
    uint32_t type;  /* its media type: index of types */
    uint32_t versions;
    uint16_t status;
};

struct wb_roster_url {
    struct wb_pageid id;
    int64_t changed_ms;
    uint64_t simhash;
    uint32_t page; /* index of pages; WB_DOCID_NONE if it has none */
    uint32_t near; /* the number of the page that it is a near duplicate of; its own if of no page */
    uint32_t site;
    uint16_t depth;
};

struct wb_roster {
    struct wb_roster_page *pages; /* in the order of ids */
    size_t page_count, page_room;
    struct wb_roster_url *urls; /* by number */
    uint64_t url_count;
    uint64_t known; /* pages that have a docid */
    uint32_t site_count;
    struct wb_docmap docmap;
    WB_VEC(struct wb_slice) types; /* in alphabetical order once the scan is done */
    struct wb_arena texts;
};

/* What the steps of a build share: see build.h. */
struct wb_build;

/* Fills in the roster and writes docids.wbb, sites.wbt and types.wbt. Release it even after an error. */
int wb_roster_make(struct wb_build *build, struct wb_roster *roster_out);
void wb_roster_release(struct wb_roster *roster);

/* The page with an id; NULL if the snapshot does not have it. */
struct wb_roster_page *wb_roster_find(const struct wb_roster *roster, struct wb_pageid id);

#endif
