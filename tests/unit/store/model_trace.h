/*
 * model_trace.h - what the files of the model test share: the trace, its random choices, and the steps that only read.
 *
 *   test_model.c     the steps that write, and the traces
 *   model_random.c   the random choices
 *   model_read.c     the steps that read
 *   model_convert.c  the step that goes on with a copy of another design
 *   model_compare.c  one call on both stores
 */
#ifndef WB_TESTS_STORE_MODEL_TRACE_H
#define WB_TESTS_STORE_MODEL_TRACE_H

#include "base/date.h"
#include "model_compare.h"

enum { SCANS_MAX = 3, WALKS_MAX = 2 };

#define UNIT_MS ((int64_t)600000)

_Static_assert(WB_STORE_AHEAD_MS % UNIT_MS == 0, "no capture is near the end of what is plausible");

/* What kind of repository a trace makes. */
struct shape {
    const char *name;
    uint32_t sites, numbers; /* pages are (site, number) */
    uint32_t body_max, giant_max;
    unsigned steps;
    uint64_t segment_bytes; /* 0: the usual sizes */
    struct wb_store_history history;
    bool fickle; /* the policy changes now and then */
};

struct held_scan {
    struct wb_store_scan *log, *twin;
    size_t taken; /* how many pages had been taken down when it was opened */
    bool facts;
};

/* A scan of a snapshot that is interrupted again and again. */
struct walk {
    struct wb_store_scan_options options; /* snapshot 0: none is under way */
    struct wb_store_position position;
    struct wb_buf site;
    struct sights seen, expected;
    size_t taken; /* how many pages had been taken down when it began */
};

struct trace {
    struct shape shape;
    uint64_t chance;
    char dir[DIR_MAX];
    struct pair p;
    struct held_scan held[SCANS_MAX];
    struct walk walks[WALKS_MAX];
    struct sights taken; /* pages that were taken down */
    int64_t clock_ms;    /* what the clock shows */
    int64_t tick_ms;     /* of captures, since the last whole unit */
    unsigned step;
    bool print;
};

/* Prints the step if WEBBASE_TRACE is set; spec may be NULL. */
void say(const struct trace *t, const char *what, const struct spec *spec);

/* ---- the clock ---- */

int64_t last_unit(const struct trace *t);

/* Between a call and its commit the clock stands still: what has expired by then is for the commit to decide. */
void set_clock(struct trace *t);

/* ---- random choices ---- */

/* Mostly now; sometimes in the past, next to a capture that is there, or by a clock that is wrong. */
int64_t random_time(struct trace *t, struct wb_pageid id);
void choose_content(struct trace *t, struct spec *spec);
struct spec random_spec(struct trace *t);
struct wb_store_history random_history(struct trace *t);

/* One that exists, if there is any; now and then one that may have gone. */
uint32_t random_snapshot(struct trace *t);
struct wb_store_holder random_holder(struct trace *t);

/* ---- steps ---- */

void step_commit(struct trace *t);

/* Goes on with a copy of another design. */
void step_convert(struct trace *t);

/* Everything about one page. */
void compare_page(struct trace *t, struct wb_pageid id);
void compare_many(struct trace *t);

/* The numbers about the whole. If they differ, fails with the page that does. */
void compare_stat(struct trace *t);

/* Any state, in one to three parts, of all sites or one, through the writer's handle or a separate reader. */
void compare_scan(struct trace *t);

/* Opens a pair of scans, or ends one that was opened many steps ago. */
void hold_scan(struct trace *t);
void end_scans(struct trace *t);

/* Begins a walk through a snapshot, or goes on with one from where it was, part after part, each page exactly once. */
void step_walk(struct trace *t);
void end_walk(struct walk *w);

#endif
