/*
 * dispenser_homes.c - which repository a site stays with.
 *
 * Several repositories, usually on several machines, can share one dispenser. What a visit has fetched so far is in the
 * journal of one of them, the site's *home*. So a site stays there for as long as somebody works for that repository in
 * the same run: only he knows which pages need not be fetched. Claims and renewals show that he does, for as long as
 * their leases last. After that the home is gone, and the next process that asks becomes the site's new home.
 *
 * Nothing here claims a site (dispenser_claim.c).
 */
#include "dispenser/dispenser_homes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

int wb_dispenser_serve(struct wb_dispenser *d, int64_t run, struct wb_slice home)
{
    WB_CHECK(d->magic == WB_DISPENSER_MAGIC);
    if (home.len == 0 || home.len >= sizeof d->home)
        return wb_fail(WB_E_INVALID, "a repository needs a name of 1 to %zu bytes in the dispenser",
                       sizeof d->home - 1);
    int err = wb_dispenser_check_text("home", home);
    if (err < 0)
        return err;
    memcpy(d->home, home.ptr, home.len);
    d->home[home.len] = '\0';
    d->home_run = run;
    return 0;
}

int wb_dispenser_homes_seen(struct wb_dispenser *d, int64_t judge_ms, int64_t until_ms)
{
    WB_CHECK(d->writing);
    if (!d->home[0])
        return 0;
    /* A home whose time is over is the same as one that is not there. */
    int err = WB_SQL_RUN(d->sql, S_HOMES_GONE, wb_sql_int(judge_ms));
    if (err == 0)
        err = WB_SQL_RUN(d->sql, S_HOME_SEEN, wb_sql_int(d->home_run), wb_sql_str(wb_slice_str(d->home)),
                         wb_sql_int(until_ms), wb_sql_int(until_ms - WB_DISPENSER_SEEN_MS));
    return err;
}

struct leaving {
    int64_t run;
    struct wb_slice home;
};

static int forget_home(struct wb_dispenser *d, void *context)
{
    const struct leaving *l = context;

    return WB_SQL_RUN(d->sql, S_HOME_LEFT, wb_sql_int(l->run), wb_sql_str(l->home));
}

int wb_dispenser_leave(struct wb_dispenser *d, int64_t run, struct wb_slice home)
{
    struct leaving l = {run, home};

    return wb_dispenser_transact(d, true, forget_home, &l);
}

/* Whether sites of this home may be claimed: 1, 0 or an error. */
static int is_open(struct wb_dispenser *d, int64_t run, int64_t judge_ms, struct wb_slice home)
{
    if (!d->home[0] || home.len == 0 || wb_slice_equal(home, wb_slice_str(d->home)))
        return 1;
    int err = WB_SQL_RUN(d->sql, S_HOME_ALIVE, wb_sql_int(run), wb_sql_str(home), wb_sql_int(judge_ms));
    wb_sql_end(d->sql, S_HOME_ALIVE);
    return err < 0 ? err : !err;
}

static int add_home(struct wb_dispenser_homes *homes, struct wb_slice name)
{
    struct wb_dispenser_home home = {.name = wb_strndup(name.ptr, name.len), .rank = INT64_MIN};
    int err = home.name ? wb_vec_push(homes, home) : WB_E_NOMEM;

    if (err < 0)
        wb_free(home.name);
    return err;
}

int wb_dispenser_homes_open(struct wb_dispenser *d, int64_t run, int64_t judge_ms,
                            struct wb_dispenser_homes *homes_out)
{
    struct wb_buf last = WB_BUF_INIT;
    bool first = true;
    int err = 0;

    wb_vec_clear(homes_out);
    for (;;) {
        /* The first home in the order of the database is often the empty one: sites that nobody visited. */
        err = WB_SQL_RUN(d->sql, first ? S_FIRST_HOME : S_NEXT_HOME, wb_sql_int(run),
                         wb_sql_str(wb_buf_slice(&last)));
        if (err <= 0)
            break;
        wb_buf_clear(&last);
        err = wb_buf_append_slice(&last, wb_sql_text(d->sql, first ? S_FIRST_HOME : S_NEXT_HOME, 0));
        wb_sql_end(d->sql, first ? S_FIRST_HOME : S_NEXT_HOME);
        first = false;
        int open = err < 0 ? err : is_open(d, run, judge_ms, wb_buf_slice(&last));
        if (open > 0)
            err = add_home(homes_out, wb_buf_slice(&last));
        if (open < 0 || err < 0) {
            err = open < 0 ? open : err;
            break;
        }
    }
    wb_buf_release(&last);
    return err;
}

void wb_dispenser_homes_release(struct wb_dispenser_homes *homes)
{
    for (size_t i = 0; i < homes->count; i++)
        wb_free(homes->items[i].name);
    wb_vec_release(homes);
}
