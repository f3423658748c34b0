/*
 * twin_state.h - what the twin (twin.h) knows at one moment, in plain vectors that are searched from front to back.
 *
 *   twin_state.c      pages, versions and records: find, add, copy, free
 *   twin_history.c    the rules of versions: adding a capture, giving up old versions, who sees what
 *   twin_bars.c       bars and exceptions
 *   twin_snapshots.c  snapshots and their holders
 *   twin_read.c       reading one page, and counting
 *   twin_scan.c       scans
 *   twin.c            the calls of the door
 *
 * Running out of memory stops the test: only then can the rules be read without their errors.
 */
#ifndef WB_TESTS_STORE_TWIN_STATE_H
#define WB_TESTS_STORE_TWIN_STATE_H

#include "base/buf.h"
#include "base/check.h"
#include "base/vec.h"
#include "store/organisation.h"
#include "store/store.h"

/* ---- pages ------------------------------------------------------------------------------------- */

/* The bytes of a page, as they were first stored with some content. Versions, states and scans share it. */
struct wb_twin_record {
    size_t refs;
    struct wb_buf bytes;
};

/* Encodes a page. The caller owns one reference. */
struct wb_twin_record *wb_twin_record_new(const struct wb_page *page);
struct wb_twin_record *wb_twin_record_ref(struct wb_twin_record *record);
void wb_twin_record_unref(struct wb_twin_record *record);

/* Status, media type and body are equal, and whether that was cut short. */
bool wb_twin_record_same(const struct wb_twin_record *a, const struct wb_twin_record *b);

struct wb_twin_version {
    struct wb_twin_record *record;
    WB_VEC(int64_t) times;    /* of its captures, in order */
    uint64_t arrived, ceased; /* epochs; ceased is 0 in the latest version */
    uint32_t lifetime, lifetime_count;
    bool ghost;  /* the policy has given it up, and only snapshots and scans still see it */
    bool replaced; /* a ghost that is an older form of another version: nobody else sees it */
    bool hollow; /* the policy keeps no past, so its bytes were not stored; it goes with the commit */
};

struct wb_twin_page {
    struct wb_pageid id;
    WB_VEC(struct wb_twin_version) versions; /* in the order of time, ghosts anywhere */
    int64_t floor_ms;                        /* captures before this are not kept ... */
    WB_VEC(struct wb_twin_record *) forgotten; /* ... nor those of its time that have one of these contents */
    bool forgotten_all;                      /* ... or whatever they have: it is not known any more */
    int64_t gone_ms;                         /* 0: not gone */
    bool concerned;                          /* the next commit has an op of this page, and trims it */
};

struct wb_twin_revisit {
    char *site, *url;
    struct wb_store_revisit revisit; /* borrows from these two */
};

struct wb_twin_state {
    WB_VEC(struct wb_twin_page) pages;
    WB_VEC(struct wb_twin_revisit) revisits; /* that wait for their original, the oldest first */
    uint64_t epoch;                          /* of the last commit */
    bool changed;                            /* the next commit begins an epoch */
};

void wb_twin_state_release(struct wb_twin_state *state);
void wb_twin_state_copy(const struct wb_twin_state *from, struct wb_twin_state *to_out);

struct wb_twin_page *wb_twin_page_find(const struct wb_twin_state *state, struct wb_pageid id);

void wb_twin_page_copy(const struct wb_twin_page *from, struct wb_twin_page *to_out);
void wb_twin_page_release(struct wb_twin_page *page);

/* Finds the page, or adds one without versions. */
struct wb_twin_page *wb_twin_page_make(struct wb_twin_state *state, struct wb_pageid id);
void wb_twin_page_drop(struct wb_twin_state *state, struct wb_twin_page *page);
bool wb_twin_page_in_site(const struct wb_twin_page *page, struct wb_slice site);

/* Inserts a version with one capture before the one at index `at`; it shares the record. */
struct wb_twin_version *wb_twin_version_insert(struct wb_twin_page *page, size_t at, struct wb_twin_record *record,
                                               int64_t time_ms);
void wb_twin_version_drop(struct wb_twin_page *page, size_t at);
void wb_twin_version_copy(const struct wb_twin_version *from, struct wb_twin_version *to_out);
void wb_twin_version_release(struct wb_twin_version *version);

/* Decodes a version; the page borrows from its record. */
void wb_twin_version_page(const struct wb_twin_version *version, struct wb_page *page_out);

int64_t wb_twin_version_first(const struct wb_twin_version *version);
int64_t wb_twin_version_last(const struct wb_twin_version *version);

void wb_twin_revisit_add(struct wb_twin_state *state, const struct wb_store_revisit *revisit);
void wb_twin_revisit_drop(struct wb_twin_state *state, size_t at);

/* ---- the rules ------------------------------------------------------------------------------------ */

/* What decides which versions are kept. */
struct wb_twin_rule {
    struct wb_store_history policy;
    WB_VEC(uint64_t) held; /* epochs of the snapshots and of running scans */
    int64_t now_ms;
};

/* The latest version, or NULL. */
struct wb_twin_version *wb_twin_latest(const struct wb_twin_page *page);

/* Whether a put is no more than the beginning of a capture of the same time. */
bool wb_twin_covered(const struct wb_twin_page *page, int64_t time_ms, const struct wb_twin_record *record);

/* The version of the newest capture at or before the time; of equal times the last one counts. */
const struct wb_twin_version *wb_twin_seen_by(const struct wb_twin_page *page, int64_t time_ms);

/* Whether the version is part of the state of an epoch. */
bool wb_twin_visible(const struct wb_twin_version *version, uint64_t epoch);

/*
 * Adds a capture of a content. With put, it replaces what was cut short and is its beginning. A policy that keeps no
 * past also has the outcome PAST: such a version only divides what was around it until the page is trimmed.
 */
enum wb_store_outcome wb_twin_insert(struct wb_twin_page *page, const struct wb_twin_rule *rule, int64_t time_ms,
                                     struct wb_twin_record *record, bool put, uint64_t epoch);

/* There is no latest version any more. There must be one. */
void wb_twin_end(struct wb_twin_page *page, int64_t time_ms, uint64_t epoch, const struct wb_twin_rule *rule);

/* Gives up what nobody keeps. */
void wb_twin_trim(struct wb_twin_page *page, const struct wb_twin_rule *rule);

/* The version whose content a revisit repeats, or NULL. */
struct wb_twin_version *wb_twin_original(struct wb_twin_page *page, const struct wb_store_revisit *revisit);

/* ---- bars ----------------------------------------------------------------------------------------- */

struct wb_twin_bar {
    struct wb_store_bar bar; /* bar.site borrows from site */
    char *site;
};
struct wb_twin_bars WB_VEC_OF(struct wb_twin_bar);

bool wb_twin_barred(struct wb_twin_bars *bars, struct wb_pageid id, struct wb_slice site);
void wb_twin_bar_set(struct wb_twin_bars *bars, const struct wb_store_bar *bar);
int wb_twin_bar_lift(struct wb_twin_bars *bars, const struct wb_store_bar *bar);
void wb_twin_bars_release(struct wb_twin_bars *bars);

/* ---- snapshots -------------------------------------------------------------------------------------- */

struct wb_twin_snapshot {
    struct wb_store_snapshot sealed; /* without holders */
    struct wb_twin_state state;      /* as it was then, without what was taken down since */
    WB_VEC(struct wb_store_holder) holders;
};

struct wb_twin_snapshots {
    WB_VEC(struct wb_twin_snapshot) list; /* in the order of their numbers */
    uint32_t last;                        /* number */
};

/* The snapshot, or NULL if nobody holds it any more. */
struct wb_twin_snapshot *wb_twin_snapshot_find(struct wb_twin_snapshots *snapshots, uint32_t number, int64_t now_ms);

/* What the door returns of a snapshot: the holders whose time has not run out. The caller releases it. */
void wb_twin_snapshot_show(const struct wb_twin_snapshot *snapshot, int64_t now_ms,
                           struct wb_store_snapshot *snapshot_out);
int wb_twin_seal(struct wb_twin_snapshots *snapshots, struct wb_slice name, const struct wb_store_holder *holder,
                 const struct wb_twin_state *state, int64_t now_ms);
int wb_twin_drop(struct wb_twin_snapshots *snapshots, uint32_t number, int64_t now_ms);
int wb_twin_hold(struct wb_twin_snapshots *snapshots, uint32_t number, const struct wb_store_holder *holder,
                 int64_t now_ms);
int wb_twin_let_go(struct wb_twin_snapshots *snapshots, uint32_t number, const struct wb_store_holder *holder,
                   int64_t now_ms);
void wb_twin_snapshots_release(struct wb_twin_snapshots *snapshots);

/* ---- the handle and its scans -------------------------------------------------------------------------- */

enum { WB_TWIN_MAGIC = 0x57425457 };

struct wb_twin_scan;

struct wb_twin {
    struct wb_store store; /* must be the first member */
    uint32_t magic;
    struct wb_twin_state now, committed;
    struct wb_store_commit_counts counts; /* since the last commit */
    struct wb_twin_bars bars;
    uint64_t bar_changes;
    WB_VEC(struct wb_pageid) taken_down; /* since the last commit */
    struct wb_twin_snapshots snapshots;
    struct wb_store_history history;
    WB_VEC(struct wb_twin_scan *) scans; /* that are open */
};

struct wb_twin *wb_twin_of(struct wb_store *store);

/* The rule of this moment. The caller releases it. */
void wb_twin_rule_now(struct wb_twin *twin, struct wb_twin_rule *rule_out);
void wb_twin_rule_release(struct wb_twin_rule *rule);

int wb_twin_no_snapshot(uint32_t number);

/* A copy of the page as it can be read: without what nobody keeps any more, in the order of time. */
struct wb_twin_page wb_twin_page_read(struct wb_twin *twin, const struct wb_twin_page *page);

/* How many pages have a latest version. */
uint64_t wb_twin_count_pages(const struct wb_twin_state *state);

/* The calls of the door that only read. */
int wb_twin_get(struct wb_store *store, struct wb_pageid id, const struct wb_store_when *when, struct wb_page *page_out,
                struct wb_buf *mem_out);
int wb_twin_get_many(struct wb_store *store, const struct wb_pageid *ids, size_t id_count,
                     const struct wb_store_when *when, wb_store_each_page each, void *context);
int wb_twin_time(struct wb_store *store, struct wb_pageid id, int64_t *time_ms_out);
int wb_twin_timeline(struct wb_store *store, struct wb_pageid id, uint64_t epoch,
                     struct wb_store_timeline *timeline_out);
int wb_twin_list_site(struct wb_store *store, struct wb_slice site, struct wb_pageid *ids_out, size_t max,
                      size_t *count_out);
int wb_twin_stat(struct wb_store *store, struct wb_store_stat *stat_out);

uint64_t wb_twin_scan_epoch(const struct wb_twin_scan *scan);
int wb_twin_scan_open(struct wb_store *store, const struct wb_store_scan_options *options,
                      struct wb_store_scan **scan_out);
int wb_twin_scan_next(struct wb_store_scan *base, struct wb_page *page_out);
int wb_twin_scan_parcel(struct wb_store_scan *scan, struct wb_store_parcel *parcel_out);
int wb_twin_position_compare(const struct wb_store_position *a, const struct wb_store_position *b);
void wb_twin_scan_tell(const struct wb_store_scan *base, struct wb_store_position *position_out);
int wb_twin_scan_holds(struct wb_store_scan *base, struct wb_store_scan_holds *holds_out);
void wb_twin_scan_close(struct wb_store_scan *base);

#endif
