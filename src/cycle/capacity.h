/*
 * capacity.h - which pages a repository of limited size takes in. Private to generate.c and capacity.c.
 *
 * The value of a page is its score: what was set, or what its PageRank gives. Pages that are not stored compete for the
 * places that are free, and then each for the place of a stored page that is worth less:
 *
 *   newcomers by value, the greatest first:  n0 >= n1 >= n2 ...      the first `room` of them are admitted; then
 *   stored pages, the least first:           s0 <= s1 <= s2 ...      n(room + i) is, if it is greater than s(i)
 */
#ifndef WB_CYCLE_CAPACITY_H
#define WB_CYCLE_CAPACITY_H

#include "base/vec.h"
#include "cycle/cycle.h"
#include "cycle/pick.h"

/* Whether a page takes a place: the store has it, as far as webdb knows. */
bool wb_capacity_is_stored(const struct wb_webdb_page *page);

/* Whether fetching a page would take a new place. One of an unwanted type (crawl --types) takes none. */
bool wb_capacity_is_newcomer(const struct wb_webdb_page *page);

struct wb_admission {
    struct wb_pick newcomers;   /* the most valuable ones; in the end those that are admitted, by number */
    WB_VEC(double) stored;      /* values of stored pages */
    uint64_t room;              /* places that are free */
};

/* Asks the store how much room there is. */
int wb_admission_open(struct wb_admission *admission, const struct wb_capacity *capacity, struct wb_store *store);
void wb_admission_release(struct wb_admission *admission);

/* A stored page. */
int wb_admission_stored(struct wb_admission *admission, const struct wb_webdb_page *page);

/* A newcomer that could be fetched. One that failed before is worth less, as it is to generate. */
int wb_admission_offer(struct wb_admission *admission, const struct wb_webdb_page *page);

/* After all of them: decides. */
void wb_admission_decide(struct wb_admission *admission);
bool wb_admission_has(const struct wb_admission *admission, uint64_t number);

#endif
