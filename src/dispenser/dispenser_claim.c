/*
 * dispenser_claim.c - leases: which process has which site, and until when.
 *
 * A lease is a promise in two directions: while it lasts nobody else gets the site, nor any other site of its first address
 * (but by borrowing), and its owner renews it in time or must expect to lose it. Whoever takes an expired one notes
 * that in webbase_lost, for the owner that was only slow.
 *
 * The database's clock decides, not the callers': those may differ by minutes. It knows no processes: an owner is a name, and is dead when
 * its leases are over or somebody says so.
 */
#include "dispenser/dispenser_rows.h"
#include "base/check.h"
#include "base/error.h"
#include "os/random.h"

/* What a site becomes whose owner is gone. Its next_ms stays, and binds the next owner. */
static void go_back(struct wb_record *record)
{
    struct wb_site_row *row = &record->row;

    row->state = row->before;
    if (row->state == WB_SITE_READY && row->address.len == 0)
        row->state = WB_SITE_UNRESOLVED;
    if (record->anew && wb_site_over(row->state)) {
        wb_record_plain(record);
        row->state = WB_SITE_UNRESOLVED;
        row->seeds_taken = row->pages = 0;
        row->probe = WB_SLICE_EMPTY;
    }
    record->anew = false;
    row->owner = WB_SLICE_EMPTY;
    row->lease_ms = 0;
}

static int check_owner(struct wb_slice owner)
{
    if (owner.len == 0)
        return wb_fail(WB_E_INVALID, "the owner of a lease needs a name");
    return wb_dispenser_check_text("owner", owner);
}

/* ---- claiming --------------------------------------------------------------------------------------- */

struct claim {
    int64_t run, now_ms, ticket;
    int64_t lease_ms;     /* how long */
    int64_t until_ms, judge_ms; /* by the database's clock: the end of that, and now */
    struct wb_slice owner, name, scheme;
    unsigned max, tries;
    struct wb_record_list list;
};

/* Callers' clocks differ, so a lease is measured by the database's clock. */
static int look_at_clock(struct wb_dispenser *d, struct claim *c)
{
    int err = wb_dispenser_lease_now(d, &c->judge_ms);

    WB_CHECK(c->lease_ms >= 0);
    c->until_ms = c->judge_ms + c->lease_ms;
    return err;
}

/* Sites whose owner did not renew are ready again, and it is noted who lost them. */
static int end_leases(struct wb_dispenser *d, const struct claim *c)
{
    struct wb_record_list list = WB_RECORD_LIST_INIT;
    int err = WB_SQL_RUN(d->sql, S_EXPIRED, wb_sql_int(c->judge_ms), wb_sql_str(c->owner), wb_sql_int(WB_DISPENSER_SLICE));

    err = wb_record_list_read(d, S_EXPIRED, err, &list);
    for (size_t i = 0; i < list.count && err == 0; i++) {
        const struct wb_record *was = &list.records[i];
        struct wb_record now = *was;
        go_back(&now);
        err = WB_SQL_RUN(d->sql, S_LOST_ADD, wb_sql_str(was->row.owner), wb_sql_int(was->row.id));
        if (err == 0)
            err = wb_record_save(d, was, &now);
    }
    wb_record_list_release(&list);
    return err;
}

/* Sites that have waited long enough are ready. */
static int end_waiting(struct wb_dispenser *d, const struct claim *c)
{
    struct wb_record_list list = WB_RECORD_LIST_INIT;
    int err = WB_SQL_RUN(d->sql, S_DUE, wb_sql_int(c->run), wb_sql_int(c->now_ms), wb_sql_int(WB_DISPENSER_SLICE));

    err = wb_record_list_read(d, S_DUE, err, &list);
    for (size_t i = 0; i < list.count && err == 0; i++) {
        struct wb_record now = list.records[i];
        now.row.state = now.row.address.len ? WB_SITE_READY : WB_SITE_UNRESOLVED;
        err = wb_record_save(d, &list.records[i], &now);
    }
    wb_record_list_release(&list);
    return err;
}

/* The heads in order; where one is taken, the next of its address is seated, behind it in the order and so still ahead of us. */
static int take_heads(struct wb_dispenser *d, struct claim *c)
{
    int64_t rank = INT64_MIN, id = 0;

    while (c->list.count < c->max) {
        struct wb_record record;
        int err = WB_SQL_RUN(d->sql, S_CLAIM, wb_sql_int(c->run), wb_sql_str(c->owner), wb_sql_int(c->judge_ms), wb_sql_int(c->until_ms),
                             wb_sql_int(c->ticket), wb_sql_int(rank), wb_sql_int(id));
        if (err <= 0)
            return err;
        err = wb_record_read(d, S_CLAIM, &record);
        if (err == 0)
            err = wb_record_keep(&record);
        wb_sql_end(d->sql, S_CLAIM);
        if (err == 0) {
            rank = -(int64_t)record.row.priority;
            id = record.row.id;
            err = WB_SQL_RUN(d->sql, S_SEAT_NEXT, wb_sql_int(c->run), wb_sql_str(wb_address_first(record.row.address)));
        }
        if (err == 0)
            err = WB_SQL_RUN(d->sql, S_LOST_BACK, wb_sql_str(c->owner), wb_sql_int(id));
        if (err == 0)
            err = wb_record_list_add(&c->list, &record);
        if (err < 0) {
            wb_record_release(&record);
            return err;
        }
    }
    return 0;
}

static int claim_sites(struct wb_dispenser *d, void *context)
{
    struct claim *c = context;
    int err = 0;

    wb_record_list_release(&c->list);
    /* A connection that broke in a commit leaves open whether it was done. Sites that we have without knowing would be renewed for ever. */
    if (c->tries++) {
        err = WB_SQL_RUN(d->sql, S_TICKET, wb_sql_str(c->owner), wb_sql_int(c->ticket));
        err = wb_record_list_read(d, S_TICKET, err, &c->list);
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

int wb_dispenser_claim(struct wb_dispenser *d, int64_t run, struct wb_slice owner, int64_t now_ms, int64_t lease_ms, unsigned max,
                       wb_site_each each, void *context)
{
    struct claim c = {.run = run, .owner = owner, .now_ms = now_ms, .lease_ms = lease_ms, .max = max, .list = WB_RECORD_LIST_INIT};
    int err = check_owner(owner);

    if (err < 0 || max == 0)
        return err;
    wb_random_bytes(&c.ticket, sizeof c.ticket);
    err = wb_dispenser_transact(d, true, claim_sites, &c);
    if (err == 0)
        err = wb_record_list_tell(&c.list, each, context);
    wb_record_list_release(&c.list);
    return err;
}

/* ---- borrowing ------------------------------------------------------------------------------------------ */

static int borrow_new(struct wb_dispenser *d, const struct claim *c, struct wb_record *record_out)
{
    struct wb_record now = WB_RECORD_INIT;

    now.row = (struct wb_site_row){.name = c->name, .scheme = c->scheme, .state = WB_SITE_CLAIMED, .before = WB_SITE_UNRESOLVED,
                                   .delay_ms = -1, .budget = -1, .owner = c->owner, .lease_ms = c->until_ms};
    int err = wb_record_insert(d, &now);
    if (err < 0)
        return err;
    err = wb_record_by_id(d, now.row.id, record_out);
    WB_CHECK(err != 0);
    return err < 0 ? err : 0;
}

static int borrow_known(struct wb_dispenser *d, const struct claim *c, struct wb_record *record)
{
    struct wb_record now = *record;
    bool held = record->row.state == WB_SITE_CLAIMED, mine = held && wb_slice_equal(record->row.owner, c->owner);
    int err = 0;

    if (held && !mine && record->row.lease_ms > c->judge_ms)
        return wb_fail(WB_E_BUSY, "the site %.*s is held by %.*s", WB_SLICE_ARG(record->row.name), WB_SLICE_ARG(record->row.owner));
    if (held && !mine)
        err = WB_SQL_RUN(d->sql, S_LOST_ADD, wb_sql_str(record->row.owner), wb_sql_int(record->row.id));
    if (err == 0)
        err = WB_SQL_RUN(d->sql, S_LOST_BACK, wb_sql_str(c->owner), wb_sql_int(record->row.id));
    now.row.before = held ? record->row.before : record->row.state;
    now.row.state = WB_SITE_CLAIMED;
    now.row.owner = c->owner;
    now.row.lease_ms = c->until_ms;
    if (err == 0)
        err = wb_record_save(d, record, &now);
    if (err < 0)
        return err;
    int64_t id = record->row.id;
    wb_record_release(record);
    err = wb_record_by_id(d, id, record);
    return err < 0 ? err : 0;
}

static int borrow_site(struct wb_dispenser *d, void *context)
{
    struct claim *c = context;
    struct wb_record record = WB_RECORD_INIT;
    int err;

    wb_record_list_release(&c->list);
    err = look_at_clock(d, c);
    if (err < 0)
        return err;
    err = wb_record_by_name(d, c->name, &record);
    if (err == 0)
        err = borrow_new(d, c, &record);
    else if (err > 0)
        err = borrow_known(d, c, &record);
    if (err == 0)
        err = wb_record_list_add(&c->list, &record);
    wb_record_release(&record);
    return err;
}

int wb_dispenser_borrow(struct wb_dispenser *d, struct wb_slice name, struct wb_slice scheme, struct wb_slice owner, int64_t lease_ms,
                        wb_site_each each, void *context)
{
    struct claim c = {.name = name, .scheme = scheme, .owner = owner, .lease_ms = lease_ms};
    int err = check_owner(owner);

    if (err == 0 && (!wb_dispenser_plain(name) || name.len > WB_SITE_NAME_MAX || !wb_dispenser_plain(scheme)))
        err = wb_fail(WB_E_INVALID, "\"%.*s\" is no name of a site", name.len > 80 ? 80 : (int)name.len, name.ptr);
    if (err < 0)
        return err;
    err = wb_dispenser_transact(d, true, borrow_site, &c);
    if (err == 0)
        err = wb_record_list_tell(&c.list, each, context);
    wb_record_list_release(&c.list);
    return err;
}

/* ---- keeping and losing ------------------------------------------------------------------------------------ */

static int renew_leases(struct wb_dispenser *d, void *context)
{
    struct claim *c = context;
    int err = look_at_clock(d, c);

    if (err == 0)
        err = WB_SQL_RUN(d->sql, S_RENEW, wb_sql_str(c->owner), wb_sql_int(c->until_ms));
    if (err == 0)
        err = WB_SQL_RUN(d->sql, S_LOST_ANY, wb_sql_str(c->owner));
    c->max = err == 1;
    wb_sql_end(d->sql, S_LOST_ANY);
    return err < 0 ? err : 0;
}

int wb_dispenser_renew(struct wb_dispenser *d, struct wb_slice owner, int64_t lease_ms)
{
    struct claim c = {.owner = owner, .lease_ms = lease_ms};
    int err = check_owner(owner);

    if (err == 0)
        err = wb_dispenser_transact(d, true, renew_leases, &c);
    if (err == 0 && c.max)
        err = wb_fail(WB_E_BUSY, "%.*s renewed its leases too late: another process has taken a site of it", WB_SLICE_ARG(owner));
    return err;
}

static int list_lost(struct wb_dispenser *d, void *context)
{
    struct claim *c = context;
    int err;

    wb_record_list_release(&c->list);
    err = wb_record_list_read(d, S_LOST, WB_SQL_RUN(d->sql, S_LOST, wb_sql_str(c->owner)), &c->list);
    return err < 0 ? err : WB_SQL_RUN(d->sql, S_LOST_CLEAR, wb_sql_str(c->owner));
}

int wb_dispenser_lost(struct wb_dispenser *d, struct wb_slice owner, wb_site_each each, void *context)
{
    struct claim c = {.owner = owner, .list = WB_RECORD_LIST_INIT};
    int err = wb_dispenser_transact(d, true, list_lost, &c);

    if (err == 0)
        err = wb_record_list_tell(&c.list, each, context);
    wb_record_list_release(&c.list);
    return err;
}

static int release_some(struct wb_dispenser *d, void *context)
{
    struct claim *c = context;
    struct wb_record_list list = WB_RECORD_LIST_INIT;
    int err = WB_SQL_RUN(d->sql, S_OF_OWNER, wb_sql_str(c->owner), wb_sql_int(WB_DISPENSER_SLICE));

    err = wb_record_list_read(d, S_OF_OWNER, err, &list);
    for (size_t i = 0; i < list.count && err == 0; i++) {
        struct wb_record now = list.records[i];
        go_back(&now);
        err = wb_record_save(d, &list.records[i], &now);
    }
    c->max = (unsigned)list.count;
    wb_record_list_release(&list);
    return err < 0 ? err : WB_SQL_RUN(d->sql, S_LOST_CLEAR, wb_sql_str(c->owner));
}

int wb_dispenser_release(struct wb_dispenser *d, struct wb_slice owner)
{
    struct claim c = {.owner = owner};
    int err = check_owner(owner);

    if (err < 0)
        return err;
    do {
        err = wb_dispenser_transact(d, true, release_some, &c);
    } while (err == 0 && c.max == WB_DISPENSER_SLICE);
    return err;
}

/* ---- owners ---------------------------------------------------------------------------------------------- */

struct owners {
    struct wb_slice prefix;
    struct wb_buf names; /* each with a NUL */
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
        /* A database's order may not be that of bytes: names with the prefix still come one after the other. */
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
