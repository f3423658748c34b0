/*
 * fault_operations.h - a repository to be copied for each fault, and the operations of a store that test_fault.c makes
 * fail at every step.
 */
#ifndef WB_TESTS_STORE_FAULT_OPERATIONS_H
#define WB_TESTS_STORE_FAULT_OPERATIONS_H

#include "store_support.h"

enum { SITES = 3, NUMBERS = 8, NEW_PAGES = 20, SNAPSHOTS = 2 };

extern char template_dir[DIR_MAX], work_dir[DIR_MAX];
extern struct wb_store *store; /* what is under test */
extern uint64_t chance;

/* Made in advance, so that only the allocations of the store are counted. */
extern struct made new_pages[NEW_PAGES];

struct operation {
    const char *name;
    int (*run)(void);
    bool without_store;     /* no handle is open during the operation */
    bool put_before;        /* pages were put but not committed */
    unsigned syncs, writes; /* it has at least this many: with fewer, the test would make nothing fail */
    int snapshots;          /* by how many there are more if it succeeds; if it fails, there are as many as before */
};

extern const struct operation operations[];
extern const size_t operation_count;

/* Pages of three sites in several segments: in two snapshots, some replaced since then, some dead, one removed. */
int make_template(void **state);
int release_pages(void **state);

/* Everything acknowledged is there, and snapshots that were not dropped are as they were sealed. */
void check_pages(struct wb_store *s);

struct spec spec_of(uint32_t site, uint32_t number, int64_t time_ms);

/* Some of the operations. */
int do_put(void);
int do_commit(void);
int do_commit_only(void);
int do_compact(void);
int do_create(void);

/* Sets the policy to newest, drops snapshot 1 and compacts. */
int do_forget(void);

#endif
