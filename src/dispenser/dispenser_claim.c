/*
 * dispenser_claim.c - leases: which process has which site, and until when.
 *
 * A lease is a promise in two directions. While it lasts, nobody else gets the site, or any other site with the same
 * first address (except by borrowing). In return its owner renews it in time, or must expect to lose the site. A
 * process that takes a site whose lease has expired records that in webbase_lost, so that an owner that was merely slow
 * learns of it when it renews.
 *
 * Leases are measured by the database's clock, not by those of the callers, which may differ by minutes. Nothing here
 * knows about processes: an owner is a name, and it is dead when its leases have expired or somebody says so.
 */
#include "dispenser/dispenser_homes.h"
#include "base/check.h"
#include "base/error.h"
#include "os/random.h"

/* The owner is gone: the site returns to its state before. It keeps next_ms, which the next owner must respect. */
static void go_back(struct wb_dispenser_row *record)
{
    record->row.state = record->row.before;
    wb_dispenser_row_end_lease(record);
}

static int check_owner(struct wb_slice owner)
{
    if (owner.len == 0)
        return wb_fail(WB_E_INVALID, "the owner of a lease needs a name");
    return wb_dispenser_check_text("owner", owner);
}

/* ---- claiming --------------------------------------------------------------------------------------- */

/* One call that gives, extends or ends leases. Each call uses some of these. */
struct lease_request {
    struct wb_slice owner;
    struct wb_slice name, scheme; /* of the site to borrow */
    int64_t run;
    int64_t now_ms;   /* the caller's wall clock, with which next_ms of sites is compared */
    int64_t lease_ms; /* how long the lease shall be */
    int64_t judge_ms; /* now, by the database's clock... */
    int64_t until_ms; /* ...and the end of the lease by the same clock */
    int64_t ticket;   /* a random number that marks the sites of this claim */
    unsigned max;     /* how many sites to claim */
    unsigned tries;   /* how often this transaction was tried before */
    size_t released;  /* sites that the last transaction released */
    bool was_late;    /* another process has taken a site of this owner */
    struct wb_dispenser_row_list list;
};

/* Reads the database's clock and computes the end of the lease. */
static int look_at_clock(struct wb_dispenser *d, struct lease_request *c)
{
    WB_CHECK(c->lease_ms >= 0);
    int err = wb_dispenser_lease_now(d, &c->judge_ms);
    c->until_ms = c->judge_ms + c->lease_ms;
    return err;
}

/* Sites whose owner did not renew in time return, and webbase_lost records who lost them. */
static int end_leases(struct wb_dispenser *d, const struct lease_request *c)
{
    struct wb_dispenser_row_list list = WB_DISPENSER_ROW_LIST_INIT;
    int err = WB_SQL_RUN(d->sql, S_EXPIRED, wb_sql_int(c->judge_ms), wb_sql_str(c->owner),
                         wb_sql_int(WB_DISPENSER_SLICE));

    err = wb_dispenser_row_list_read(d, S_EXPIRED, err, &list);
    for (size_t i = 0; i < list.count && err == 0; i++) {
        const struct wb_dispenser_row *was = &list.items[i];
        struct wb_dispenser_row now = *was;
        go_back(&now);
        err = WB_SQL_RUN(d->sql, S_LOST_ADD, wb_sql_str(was->row.owner), wb_sql_int(was->row.id));
        if (err == 0)
            err = wb_dispenser_row_save(d, was, &now);
    }
    wb_dispenser_row_list_release(&list);
    return err;
}

/* Sites that have waited long enough become READY. */
static int end_waiting(struct wb_dispenser *d, const struct lease_request *c)
{
    struct wb_dispenser_row_list list = WB_DISPENSER_ROW_LIST_INIT;
    int err = WB_SQL_RUN(d->sql, S_DUE, wb_sql_int(c->run), wb_sql_int(c->now_ms), wb_sql_int(WB_DISPENSER_SLICE));

    err = wb_dispenser_row_list_read(d, S_DUE, err, &list);
    for (size_t i = 0; i < list.count && err == 0; i++) {
        struct wb_dispenser_row now = list.items[i];
        now.row.state = now.row.address.len ? WB_SITE_READY : WB_SITE_UNRESOLVED;
        err = wb_dispenser_row_save(d, &list.items[i], &now);
    }
    wb_dispenser_row_list_release(&list);
    return err;
}

/* Looks for the next head of a home that can be claimed, in the order of ranks and ids. */
static int look_at_head(struct wb_dispenser *d, const struct lease_request *c, struct wb_dispenser_home *home)
{
    int err = WB_SQL_RUN(d->sql, S_HEAD, wb_sql_int(c->run), wb_sql_str(wb_slice_str(home->name)),
                         wb_sql_int(home->rank), wb_sql_int(home->id), wb_sql_str(c->owner), wb_sql_int(c->judge_ms));

    home->looked = true;
    home->over = err == 0;
    if (err <= 0)
        return err;
    home->rank = wb_sql_number(d->sql, S_HEAD, 0);
    home->id = wb_sql_number(d->sql, S_HEAD, 1);
    wb_sql_end(d->sql, S_HEAD);
    return 0;
}

/* The home with the best head; *best_out is NULL if none has one that can be claimed. */
static int find_best(struct wb_dispenser *d, const struct lease_request *c, struct wb_dispenser_homes *homes,
                     struct wb_dispenser_home **best_out)
{
    int err = 0;

    *best_out = NULL;
    for (size_t i = 0; i < homes->count && err == 0; i++) {
        struct wb_dispenser_home *home = &homes->items[i], *best = *best_out;
        if (!home->looked)
            err = look_at_head(d, c, home);
        if (err == 0 && !home->over &&
            (!best || home->rank < best->rank || (home->rank == best->rank && home->id < best->id)))
            *best_out = home;
    }
    return err;
}

/* Claims the head of a home. It belongs to the caller's repository from now on, if that has a name. */
static int take_head(struct wb_dispenser *d, struct lease_request *c, struct wb_dispenser_home *home)
{
    struct wb_dispenser_row record = WB_DISPENSER_ROW_INIT;
    struct wb_slice new_home = wb_slice_str(d->home[0] ? d->home : home->name);
    int err = WB_SQL_RUN(d->sql, S_CLAIM, wb_sql_int(home->id), wb_sql_str(c->owner), wb_sql_int(c->until_ms),
                         wb_sql_int(c->ticket), wb_sql_str(new_home));

    WB_CHECK(err != 0);
    if (err < 0)
        return err;
    err = wb_dispenser_row_read(d, S_CLAIM, &record);
    if (err == 0)
        err = wb_dispenser_row_keep(&record);
    wb_sql_end(d->sql, S_CLAIM);
    home->looked = false;
    if (err == 0)
        err = WB_SQL_RUN(d->sql, S_HEAD_NEXT, wb_sql_int(c->run),
                         wb_sql_str(wb_dispenser_first_address(record.row.address)),
                         wb_sql_str(wb_slice_str(home->name)));
    if (err == 0)
        err = WB_SQL_RUN(d->sql, S_LOST_BACK, wb_sql_str(c->owner), wb_sql_int(record.row.id));
    if (err == 0)
        err = wb_dispenser_row_list_add(&c->list, &record);
    wb_dispenser_row_release(&record);
    return err;
}

/*
 * Claims heads in their order. When one is claimed, the next site of its home and address becomes the head. That one is
 * later in the order, so this loop still comes to it.
 */
static int take_heads(struct wb_dispenser *d, struct lease_request *c)
{
    struct wb_dispenser_homes homes = WB_VEC_INIT;
    struct wb_dispenser_home *best = NULL;
    int err = wb_dispenser_homes_seen(d, c->judge_ms, c->until_ms);

    if (err == 0)
        err = wb_dispenser_homes_open(d, c->run, c->judge_ms, &homes);
    while (err == 0 && c->list.count < c->max) {
        err = find_best(d, c, &homes, &best);
        if (err < 0 || !best)
            break;
        err = take_head(d, c, best);
    }
    wb_dispenser_homes_release(&homes);
    return err;
}

static int claim_sites(struct wb_dispenser *d, void *context)
{
    struct lease_request *c = context;
    int err = 0;

    wb_dispenser_row_list_release(&c->list);
    /*
     * If the connection broke during a commit, the commit may have succeeded. Sites that we then hold without knowing
     * would be renewed forever, so look for our ticket first.
     */
    if (c->tries++) {
        err = WB_SQL_RUN(d->sql, S_TICKET, wb_sql_str(c->owner), wb_sql_int(c->ticket));
        err = wb_dispenser_row_list_read(d, S_TICKET, err, &c->list);
        if (err < 0 || c->list.count)
            return err;
    }
    err = look_at_clock(d, c);
    if (err == 0)
        err = end_leases(d, c);
    if (err == 0)
        err = end_waiting(d, c);
    if (err == 0)
        err = take_heads(d, c);
    if (err == 0 && c->list.count) {
        err = wb_dispenser_count(d, c->run, WB_SITE_READY, -(int64_t)c->list.count);
        if (err == 0)
            err = wb_dispenser_count(d, c->run, WB_SITE_CLAIMED, (int64_t)c->list.count);
    }
    return err;
}

int wb_dispenser_claim(struct wb_dispenser *d, int64_t run, struct wb_slice owner, int64_t now_ms, int64_t lease_ms,
                       unsigned max, wb_site_each each, void *context)
{
    struct lease_request c = {.run = run, .owner = owner, .now_ms = now_ms, .lease_ms = lease_ms, .max = max,
                              .list = WB_DISPENSER_ROW_LIST_INIT};
    int err = check_owner(owner);

    if (err < 0 || max == 0)
        return err;
    wb_random_bytes(&c.ticket, sizeof c.ticket);
    err = wb_dispenser_transact(d, true, claim_sites, &c);
    if (err == 0)
        err = wb_dispenser_row_list_each(&c.list, each, context);
    wb_dispenser_row_list_release(&c.list);
    return err;
}

/* ---- borrowing ------------------------------------------------------------------------------------------ */

static int borrow_new(struct wb_dispenser *d, const struct lease_request *c, struct wb_dispenser_row *record_out)
{
    struct wb_dispenser_row now = wb_dispenser_row_new(c->name, c->scheme, 0);

    now.row.state = WB_SITE_CLAIMED;
    now.row.owner = c->owner;
    now.row.lease_ms = c->until_ms;
    int err = wb_dispenser_row_insert(d, &now);
    if (err < 0)
        return err;
    err = wb_dispenser_row_by_id(d, now.row.id, record_out);
    WB_CHECK(err != 0);
    return err < 0 ? err : 0;
}

static int borrow_known(struct wb_dispenser *d, const struct lease_request *c, struct wb_dispenser_row *record)
{
    struct wb_dispenser_row now = *record;
    bool held = record->row.state == WB_SITE_CLAIMED, mine = held && wb_slice_equal(record->row.owner, c->owner);
    int err = 0;

    if (held && !mine && record->row.lease_ms > c->judge_ms)
        return wb_fail(WB_E_BUSY, "the site %.*s is held by %.*s", WB_SLICE_ARG(record->row.name),
                       WB_SLICE_ARG(record->row.owner));
    if (held && !mine)
        err = WB_SQL_RUN(d->sql, S_LOST_ADD, wb_sql_str(record->row.owner), wb_sql_int(record->row.id));
    if (err == 0)
        err = WB_SQL_RUN(d->sql, S_LOST_BACK, wb_sql_str(c->owner), wb_sql_int(record->row.id));
    now.row.before = held ? record->row.before : record->row.state;
    now.row.state = WB_SITE_CLAIMED;
    now.row.owner = c->owner;
    now.row.lease_ms = c->until_ms;
    if (err == 0)
        err = wb_dispenser_row_save(d, record, &now);
    if (err < 0)
        return err;
    int64_t id = record->row.id;
    wb_dispenser_row_release(record);
    err = wb_dispenser_row_by_id(d, id, record);
    return err < 0 ? err : 0;
}

static int borrow_site(struct wb_dispenser *d, void *context)
{
    struct lease_request *c = context;
    struct wb_dispenser_row record = WB_DISPENSER_ROW_INIT;
    int err;

    wb_dispenser_row_list_release(&c->list);
    err = look_at_clock(d, c);
    if (err < 0)
        return err;
    err = wb_dispenser_row_by_name(d, c->name, &record);
    if (err == 0)
        err = borrow_new(d, c, &record);
    else if (err > 0)
        err = borrow_known(d, c, &record);
    if (err == 0)
        err = wb_dispenser_row_list_add(&c->list, &record);
    wb_dispenser_row_release(&record);
    return err;
}

int wb_dispenser_borrow(struct wb_dispenser *d, struct wb_slice name, struct wb_slice scheme, struct wb_slice owner,
                        int64_t lease_ms, wb_site_each each, void *context)
{
    struct lease_request c = {.name = name, .scheme = scheme, .owner = owner, .lease_ms = lease_ms};
    int err = check_owner(owner);

    if (err == 0 && (!wb_dispenser_is_plain(name) || name.len > WB_SITE_NAME_MAX || !wb_dispenser_is_plain(scheme)))
        err = wb_fail(WB_E_INVALID, "\"%.*s\" is not the name of a site", name.len > 80 ? 80 : (int)name.len, name.ptr);
    if (err < 0)
        return err;
    err = wb_dispenser_transact(d, true, borrow_site, &c);
    if (err == 0)
        err = wb_dispenser_row_list_each(&c.list, each, context);
    wb_dispenser_row_list_release(&c.list);
    return err;
}

/* ---- renewing and releasing ------------------------------------------------------------------------------------ */

static int renew_leases(struct wb_dispenser *d, void *context)
{
    struct lease_request *c = context;
    int err = look_at_clock(d, c);

    if (err == 0)
        err = WB_SQL_RUN(d->sql, S_RENEW, wb_sql_str(c->owner), wb_sql_int(c->until_ms));
    if (err == 0)
        err = wb_dispenser_homes_seen(d, c->judge_ms, c->until_ms);
    if (err == 0)
        err = WB_SQL_RUN(d->sql, S_LOST_ANY, wb_sql_str(c->owner));
    c->was_late = err == 1;
    wb_sql_end(d->sql, S_LOST_ANY);
    return err < 0 ? err : 0;
}

int wb_dispenser_renew(struct wb_dispenser *d, struct wb_slice owner, int64_t lease_ms)
{
    struct lease_request c = {.owner = owner, .lease_ms = lease_ms};
    int err = check_owner(owner);

    if (err == 0)
        err = wb_dispenser_transact(d, true, renew_leases, &c);
    if (err == 0 && c.was_late)
        err = wb_fail(WB_E_BUSY, "%.*s renewed its leases too late: another process has taken one of its sites",
                      WB_SLICE_ARG(owner));
    return err;
}

static int release_some(struct wb_dispenser *d, void *context)
{
    struct lease_request *c = context;
    struct wb_dispenser_row_list list = WB_DISPENSER_ROW_LIST_INIT;
    int err = WB_SQL_RUN(d->sql, S_OF_OWNER, wb_sql_str(c->owner), wb_sql_int(WB_DISPENSER_SLICE));

    err = wb_dispenser_row_list_read(d, S_OF_OWNER, err, &list);
    for (size_t i = 0; i < list.count && err == 0; i++) {
        struct wb_dispenser_row now = list.items[i];
        go_back(&now);
        err = wb_dispenser_row_save(d, &list.items[i], &now);
    }
    c->released = list.count;
    wb_dispenser_row_list_release(&list);
    return err < 0 ? err : WB_SQL_RUN(d->sql, S_LOST_CLEAR, wb_sql_str(c->owner));
}

int wb_dispenser_release(struct wb_dispenser *d, struct wb_slice owner)
{
    struct lease_request c = {.owner = owner};
    int err = check_owner(owner);

    if (err < 0)
        return err;
    do {
        err = wb_dispenser_transact(d, true, release_some, &c);
    } while (err == 0 && c.released == WB_DISPENSER_SLICE);
    return err;
}

/* ---- owners ---------------------------------------------------------------------------------------------- */

struct owners {
    struct wb_slice prefix;
    struct wb_buf names; /* those found, each followed by a NUL */
};

static int list_owners(struct wb_dispenser *d, void *context)
{
    struct owners *o = context;
    struct wb_buf last = WB_BUF_INIT;
    int err = wb_buf_append_slice(&last, o->prefix), more = 1;

    wb_buf_clear(&o->names);
    while (err == 0 && more == 1) {
        more = WB_SQL_RUN(d->sql, S_NEXT_OWNER, wb_sql_str(wb_buf_slice(&last)));
        if (more <= 0)
            break;
        wb_buf_clear(&last);
        err = wb_buf_append_slice(&last, wb_sql_text(d->sql, S_NEXT_OWNER, 0));
        wb_sql_end(d->sql, S_NEXT_OWNER);
        /*
         * The order of the database may not be that of bytes, but names with the same prefix follow each other in
         * any.
         */
        if (err == 0 && !wb_slice_starts(wb_buf_slice(&last), o->prefix))
            break;
        if (err == 0)
            err = wb_buf_append(&o->names, last.ptr, last.len);
        if (err == 0)
            err = wb_buf_append_char(&o->names, '\0');
    }
    wb_buf_release(&last);
    return more < 0 ? more : err;
}

int wb_dispenser_owners(struct wb_dispenser *d, struct wb_slice prefix, wb_owner_each each, void *context)
{
    struct owners o = {.prefix = prefix, .names = WB_BUF_INIT};
    int err = wb_dispenser_transact(d, false, list_owners, &o);

    for (size_t at = 0; err == 0 && at < o.names.len;) {
        struct wb_slice owner = wb_slice_str(o.names.ptr + at);
        at += owner.len + 1;
        err = each(context, owner);
    }
    wb_buf_release(&o.names);
    return err;
}
