/*
 * dispenser_support.h - what the tests of the dispenser share: both databases, a fresh dispenser for each test, rows
 * collected, chance with a seed, child processes.
 */
#ifndef WB_TESTS_DISPENSER_SUPPORT_H
#define WB_TESTS_DISPENSER_SUPPORT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>

#include <cmocka.h>

#include "../must.h"
#include "../seeded.h"
#include "base/error.h"
#include "dispenser/dispenser.h"
#include "sql/sql_driver.h"

#define COUNT(array) (sizeof(array) / sizeof *(array))

/* ---- where ---------------------------------------------------------------------------------------- */

struct place {
    bool postgres;
    char dir[96];
    char url[512];  /* of PostgreSQL: a schema of its own */
    struct wb_dispenser *d;
    int64_t run;    /* the first run */
};

/* A fresh dispenser, opened. *state: "sqlite" or "postgres", then a struct place. */
int set_up_place(void **state);
int tear_down_place(void **state);

/* The place of a test, from its state. */
#define PLACE(p) struct place *p = *state

#define LEASE 1000 /* ms, in most tests */

/* The same test with each database. */
#define BOTH(test)                                                              \
    {#test " (sqlite)", test, set_up_place, tear_down_place, (void *)"sqlite"}, \
        {#test " (postgres)", test, set_up_place, tear_down_place, (void *)"postgres"}
#define SQLITE(test) {#test, test, set_up_place, tear_down_place, (void *)"sqlite"}
#define POSTGRES(test) {#test, test, set_up_place, tear_down_place, (void *)"postgres"}

/* For the whole group: a server that is started when it is first needed. */
int end_server(void **state);

struct wb_dispenser *open_place(const struct place *place);
void reopen_place(struct place *place);

/* Runs a statement that returns one number, without the dispenser's knowledge. */
int64_t ask_number(const struct place *place, const char *text);
void change(const struct place *place, const char *text);

/* Checks what must be true of the tables, whatever happened. */
void check_tables(const struct place *place);

/* ---- leases -------------------------------------------------------------------------------------------- */

/*
 * The clock that leases are judged by stands still, at 0 first: the calls below set it. `until`: by that clock. Tests
 * of the databases' own clocks call real_clock().
 */
void set_clock(int64_t now_ms);
void real_clock(void);
int claim_until(struct wb_dispenser *d, int64_t run, struct wb_slice owner, int64_t now_ms, int64_t until_ms,
                unsigned max, wb_site_each each, void *context);
int borrow_until(struct wb_dispenser *d, struct wb_slice name, struct wb_slice scheme, struct wb_slice owner,
                 int64_t now_ms, int64_t until_ms, wb_site_each each, void *context);
int renew_until(struct wb_dispenser *d, struct wb_slice owner, int64_t until_ms);

/* ---- rows -------------------------------------------------------------------------------------------- */

enum { NAMES_MAX = 4096 };

/* The rows that were reported, in order. */
struct told {
    unsigned count;
    int64_t ids[NAMES_MAX];
    struct wb_site_row last; /* its texts are no longer valid */
    char last_name[64], last_owner[64];
};
int tell(void *context, const struct wb_site_row *row);

/* The row of a name. Its texts are valid until the next call. */
struct wb_site_row row_of(struct wb_dispenser *d, const char *name);

/* Adds a site with one seed, http://NAME/, and resolves it to an address unless that is NULL; its id. */
int64_t add_site(const struct place *place, const char *name, const char *address, int priority);
/* The path of the SQLite file. */
void path_of(const struct place *p, char path_out[128]);

/* True if the message of the last error contains text. */
bool message_has(const char *text);

/* Opens the dispenser and closes it again. Returns the error of opening. */
int try_open(const struct place *p);

/* Calls a bit of everything and returns the first error. */
int use_everything(struct wb_dispenser *d);

/* The number of a new run, without any site. */
int begin_run(struct wb_dispenser *d, int64_t *run_out);
void add_seed(struct wb_dispenser *d, int64_t run, const char *name, const char *url, bool anew);

struct wb_site_report report_of(int64_t id, enum wb_site_state state);
int report_one(struct wb_dispenser *d, const char *owner, struct wb_site_report report);
unsigned claim(struct wb_dispenser *d, int64_t run, const char *owner, int64_t now_ms, int64_t lease_ms, unsigned max,
               struct told *told);

/* ---- children ---------------------------------------------------------------------------------- */

pid_t start_child(int (*function)(void *context), void *context);

/* The exit status, or -signal. */
int end_child(pid_t child);

#endif
