/*
 * state_support.h - carries held states of repositories elsewhere, as a vault does, for the tests of store_state.h.
 * What was carried is kept on a shelf, to which every state adds only what is new; a repository is made of what is on
 * the shelf.
 */
#ifndef WB_TESTS_STATE_SUPPORT_H
#define WB_TESTS_STATE_SUPPORT_H

#include "convert_support.h"
#include "store/store_state.h"

enum { SHELF_PARTS = 2 };

struct shelf_row {
    unsigned table;
    struct wb_buf key, value;
};

struct shelf_rows {
    struct shelf_row *items; /* in order */
    size_t count, cap;
};

struct shelf {
    char dir[DIR_MAX]; /* has the files */
    struct shelf_rows rows[SHELF_PARTS];
    struct wb_buf mark, stamps; /* of the last state; empty: there was none */
    size_t parts;
    uint64_t rows_got;  /* from the last state ... */
    uint64_t bytes_got; /* ... and the bytes of files */
};

void shelf_init(struct shelf *shelf);
void shelf_release(struct shelf *shelf);

/* Holds the newest state, since what is on the shelf. */
struct wb_store_state *shelf_hold(struct shelf *shelf, const char *from);

/* Adds a state that was held in this way; with mark, marks it, and drops the mark of the one before. */
void shelf_add(struct shelf *shelf, struct wb_store_state *state, const char *from, bool mark);

/* Makes a repository of the state that was added last; the state is still held. */
void shelf_load(struct shelf *shelf, struct wb_store_state *state, const char *to);

/* Makes a repository in `to` of everything in a state. Returns the first error. */
int carry_try(struct wb_store_state *state, const char *to);
void carry(struct wb_store_state *state, const char *to);

#endif
