/*
 * registry_lease.c - being a machine: joining, renewing the lease, leaving; and what this machine may believe.
 *
 * Two clocks count a lease. The database's says when it is over for all others: until_ms in the machine's row. This
 * machine's own says when it is over for itself, earlier: a renewal is sent before it happens.
 *
 *   own clock       sent          got         lease_end = sent + lease - lease/8
 *   ----------------+-------------+-----------+-------------------> time
 *                        |                          |
 *   database             db_ms                      until_ms = db_ms + lease
 *
 * `epoch` in the row changes whenever somebody else changes which shards the machine has. The renewal returns it, and
 * if it is not that of our list, the list is read before the lease counts as renewed. Whoever takes a shard must first
 * lock and change the row of a machine whose lease is over; so a renewal either comes first, and prevents that, or sees
 * it.
 *
 * A server that took the place of another may have lost the last second, and with it a change of holder. Then both may
 * think that they hold the shard: one knows a change that is not in the table any more, the other one reads a table in
 * which it never happened. So when another server answers, shards that this machine did not hold, by its own lease,
 * until now are believed only after a full lease: whoever else held them has heard of the new server by then, or has
 * stopped.
 */
#include "base/check.h"
#include "base/codec.h"
#include "base/error.h"
#include "registry/registry_inside.h"

#include <ctype.h>
#include <stdio.h>

#define NS_PER_MS INT64_C(1000000)

static int64_t lease_ns(const struct wb_registry *r)
{
    return r->cluster.lease_ms * NS_PER_MS;
}

/* ---- what it believes ------------------------------------------------------------------------------------------- */

static void lock(const struct wb_registry *r)
{
    pthread_mutex_lock((pthread_mutex_t *)(uintptr_t)&r->lock);
}

static void unlock(const struct wb_registry *r)
{
    pthread_mutex_unlock((pthread_mutex_t *)(uintptr_t)&r->lock);
}

int wb_registry_own_find(const struct wb_registry *r, unsigned shard)
{
    for (size_t i = 0; i < r->own.count; i++)
        if (r->own.items[i].row.shard == shard)
            return (int)i;
    return -1;
}

int64_t wb_registry_own_drop(struct wb_registry *r, unsigned shard)
{
    int64_t term = -1;

    lock(r);
    int at = wb_registry_own_find(r, shard);
    if (at >= 0) {
        term = r->own.items[at].row.term;
        memmove(&r->own.items[at], &r->own.items[at + 1], (r->own.count - (size_t)at - 1) * sizeof *r->own.items);
        r->own.count--;
    }
    unlock(r);
    return term;
}

int64_t wb_registry_lease_left_ms(const struct wb_registry *r)
{
    lock(r);
    int64_t left_ns = r->lease_end_ns ? r->lease_end_ns - wb_registry_now_ns(r) : 0;
    unlock(r);
    return left_ns > 0 ? left_ns / NS_PER_MS : 0;
}

bool wb_registry_holds(const struct wb_registry *r, unsigned shard, int64_t *term_out)
{
    int64_t now_ns = wb_registry_now_ns(r);

    lock(r);
    int at = r->lease_end_ns > now_ns ? wb_registry_own_find(r, shard) : -1;
    bool holds = at >= 0 && r->own.items[at].from_ns <= now_ns;
    if (term_out)
        *term_out = holds ? r->own.items[at].row.term : -1;
    unlock(r);
    return holds;
}

bool wb_registry_may_take(const struct wb_registry *r)
{
    return r->session[0] && !r->search_only && wb_registry_lease_left_ms(r) > 0 &&
           wb_registry_now_ns(r) - r->since_ns >= lease_ns(r);
}

int wb_registry_held_each(const struct wb_registry *r,
                          int (*each)(void *context, const struct wb_registry_shard *shard), void *context)
{
    int err = 0;

    for (size_t i = 0; i < r->own.count && err == 0; i++)
        err = each(context, &r->own.items[i].row);
    return err;
}

/* This machine has no lease and no shards any more. */
static void believe_nothing(struct wb_registry *r)
{
    lock(r);
    r->lease_end_ns = 0;
    wb_vec_clear(&r->own);
    unlock(r);
}

/* ---- clocks -------------------------------------------------------------------------------------------------------
 */

static struct wb_registry_offsets offsets_of(int64_t sent_ns, int64_t got_ns, int64_t db_ms)
{
    /* The database rounds. */
    return (struct wb_registry_offsets){
        .start_ns = sent_ns, .low_ms = db_ms - got_ns / NS_PER_MS - 2, .high_ms = db_ms - sent_ns / NS_PER_MS + 2};
}

bool wb_registry_clocks_agree(const struct wb_registry *r, int64_t sent_ns, int64_t got_ns, int64_t db_ms)
{
    int64_t tolerance_ms = r->cluster.lease_ms / 32;
    struct wb_registry_offsets now = offsets_of(sent_ns, got_ns, db_ms);

    for (int i = 0; i < 2; i++) {
        const struct wb_registry_offsets *w = &r->offsets[i];
        if (w->start_ns && (now.low_ms > w->high_ms + tolerance_ms || now.high_ms < w->low_ms - tolerance_ms))
            return false;
    }
    return true;
}

/* The quickest answer of a window says most about the offset. */
static void note_offset(struct wb_registry *r, int64_t sent_ns, int64_t got_ns, int64_t db_ms)
{
    struct wb_registry_offsets *w = &r->offsets[0], now = offsets_of(sent_ns, got_ns, db_ms);

    if (w->start_ns == 0 || sent_ns - w->start_ns > lease_ns(r)) {
        r->offsets[1] = *w;
        *w = now;
    } else if (now.high_ms - now.low_ms < w->high_ms - w->low_ms) {
        w->low_ms = now.low_ms;
        w->high_ms = now.high_ms;
    }
}

/* A renewal has succeeded: is the chain of renewals unbroken? */
static void note_renewal(struct wb_registry *r, int64_t sent_ns, int64_t db_ms, int64_t server)
{
    int64_t got_ns = wb_registry_now_ns(r);

    if (server != r->server || !wb_registry_clocks_agree(r, sent_ns, got_ns, db_ms)) {
        memset(r->offsets, 0, sizeof r->offsets);
        r->since_ns = sent_ns;
    }
    if (sent_ns - r->sent_ns > lease_ns(r) / 2)
        r->since_ns = sent_ns;
    note_offset(r, sent_ns, got_ns, db_ms);
    r->sent_ns = sent_ns;
    r->server = server;
}

/* ---- reading what it holds -----------------------------------------------------------------------------------------
 */

struct own_reading {
    int64_t epoch;
    WB_VEC(struct wb_registry_own) own;
};

static int read_held(struct wb_registry *r, void *context)
{
    struct own_reading *reading = context;

    wb_vec_clear(&reading->own);
    int err = WB_SQL_RUN(r->sql, R_SELF, wb_registry_text(r->name), wb_registry_text(r->session));
    if (err == 0)
        return wb_fail(WB_E_DENIED, "the machine %s was removed from the cluster, or another process has its name",
                       r->name);
    if (err < 0)
        return err;
    reading->epoch = wb_sql_number(r->sql, R_SELF, 1);
    wb_sql_end(r->sql, R_SELF);
    err = WB_SQL_RUN(r->sql, R_HELD, wb_registry_text(r->name));
    while (err > 0) {
        struct wb_registry_own own = {.from_ns = 0};
        err = wb_registry_shard_row(r, R_HELD, &own.row);
        if (err == 0)
            err = wb_vec_push(&reading->own, own);
        if (err == 0)
            err = wb_sql_next(r->sql, R_HELD);
    }
    return err;
}

/*
 * Replaces the list. After a change of servers (doubtful), what was not believed just before is believed only after a
 * full lease.
 */
static int read_list(struct wb_registry *r, bool doubtful, int64_t sent_ns)
{
    struct own_reading reading = {.epoch = 0};
    int64_t now_ns = wb_registry_now_ns(r);
    int err = wb_registry_transact(r, WB_SQL_READ, read_held, &reading);

    if (err < 0)
        goto done;
    for (size_t i = 0; i < reading.own.count; i++) {
        struct wb_registry_own *own = &reading.own.items[i];
        int at = wb_registry_own_find(r, own->row.shard);
        bool same = at >= 0 && r->own.items[at].row.term == own->row.term;
        bool believed = same && r->lease_end_ns > now_ns && r->own.items[at].from_ns <= now_ns;
        if (doubtful && !believed)
            own->from_ns = sent_ns + lease_ns(r);
        else if (same)
            own->from_ns = r->own.items[at].from_ns;
    }
    lock(r);
    WB_VEC(struct wb_registry_own) old = {r->own.items, r->own.count, r->own.cap};
    r->own.items = reading.own.items;
    r->own.count = reading.own.count;
    r->own.cap = reading.own.cap;
    r->epoch = reading.epoch;
    unlock(r);
    wb_vec_release(&old);
    return 0;
done:
    wb_vec_release(&reading.own);
    return err;
}

/* ---- renewing
 * --------------------------------------------------------------------------------------------------------- */

struct renewal {
    int64_t sent_ns, until_ms, epoch, server, generation, bars;
    bool draining, found;
};

static int renew_lease(struct wb_registry *r, void *context)
{
    struct renewal *n = context;

    /* An earlier attempt may have been carried out, but this one is later: the lease lasts at least from now. */
    n->sent_ns = wb_registry_now_ns(r);
    int err = WB_SQL_RUN(r->sql, R_RENEW, wb_registry_text(r->name), wb_registry_text(r->session),
                         wb_sql_int(r->cluster.lease_ms), wb_sql_int(r->cluster.lease_ms / 2));
    n->found = err > 0;
    if (err <= 0)
        return err;
    n->until_ms = wb_sql_number(r->sql, R_RENEW, 0);
    n->epoch = wb_sql_number(r->sql, R_RENEW, 1);
    n->server = wb_sql_number(r->sql, R_RENEW, 2);
    n->draining = wb_sql_number(r->sql, R_RENEW, 3) != 0;
    n->generation = wb_sql_number(r->sql, R_RENEW, 4);
    n->bars = wb_sql_number(r->sql, R_RENEW, 5);
    wb_sql_end(r->sql, R_RENEW);
    return 0;
}

static int gone(struct wb_registry *r)
{
    believe_nothing(r);
    r->session[0] = '\0';
    return wb_fail(WB_E_DENIED, "the machine %s was removed from the cluster, or another process has its name",
                   r->name);
}

int wb_registry_renew(struct wb_registry *r, struct wb_registry_news *news_out)
{
    struct wb_registry_news news = {.lapsed = false};
    struct renewal n = {.found = false};
    int err = wb_registry_need_machine(r);

    if (news_out)
        *news_out = news;
    if (err == 0)
        err = wb_registry_transact(r, WB_SQL_ONE, renew_lease, &n);
    if (err < 0)
        return err;
    if (!n.found)
        return gone(r);
    news.lapsed = r->lease_end_ns <= n.sent_ns;
    bool doubtful = n.server != r->server || n.epoch < r->epoch || r->joining;
    news.shards_changed = doubtful || r->reread || n.epoch != r->epoch;
    if (news.shards_changed) {
        /* Until it is known what is true now, the next renewal asks again. */
        r->reread = true;
        err = read_list(r, doubtful, n.sent_ns);
        if (err == WB_E_DENIED)
            return gone(r);
        if (err < 0)
            return err;
        r->reread = r->joining = false;
    }
    note_renewal(r, n.sent_ns, n.until_ms - r->cluster.lease_ms, n.server);
    lock(r);
    r->lease_end_ns = n.sent_ns + lease_ns(r) - lease_ns(r) / 8;
    unlock(r);
    news.draining = n.draining;
    news.generation = (uint64_t)n.generation;
    news.bars = (uint64_t)n.bars;
    if (news_out)
        *news_out = news;
    return 0;
}

/* ---- joining
 * ------------------------------------------------------------------------------------------------------------ */

struct joining {
    const struct wb_registry_self *self;
    char session[WB_REGISTRY_ID_MAX];
    int64_t sent_ns, epoch, server;
};

/* Whether somebody at work stands in the way. 1: an earlier attempt of this call has made it already. */
static int look_for_others(struct wb_registry *r, const struct joining *j)
{
    char other[WB_REGISTRY_NAME_MAX], address[WB_REGISTRY_ADDRESS_MAX];
    int err = WB_SQL_RUN(r->sql, R_MACHINE, wb_registry_text(j->self->name));

    if (err > 0) {
        bool mine = wb_slice_equal(wb_sql_text(r->sql, R_MACHINE, 0), wb_slice_str(j->session));
        int64_t left_ms = wb_sql_number(r->sql, R_MACHINE, 1) - wb_sql_number(r->sql, R_MACHINE, 4);
        err = wb_registry_column(r, R_MACHINE, 2, address, sizeof address);
        wb_sql_end(r->sql, R_MACHINE);
        if (err < 0 || mine)
            return err < 0 ? err : 1;
        if (left_ms > 0)
            return wb_fail(WB_E_BUSY, "a machine with the name %s is at work at %s; its lease lasts another %lld ms",
                           j->self->name, address, (long long)left_ms);
    }
    if (err == 0)
        err = WB_SQL_RUN(r->sql, R_MACHINE_OF_DIRECTORY, wb_registry_text(j->self->directory),
                         wb_registry_text(j->self->name));
    if (err <= 0)
        return err;
    err = wb_registry_column(r, R_MACHINE_OF_DIRECTORY, 0, other, sizeof other);
    if (err == 0)
        err = wb_registry_column(r, R_MACHINE_OF_DIRECTORY, 1, address, sizeof address);
    wb_sql_end(r->sql, R_MACHINE_OF_DIRECTORY);
    return err < 0 ? err
                   : wb_fail(WB_E_BUSY, "the machine %s is at work at %s with this directory, or a copy of it", other,
                             address);
}

/* Makes the machine's row, or takes over that of an earlier process. */
static int write_machine(struct wb_registry *r, const struct joining *j)
{
    const struct wb_registry_self *s = j->self;
    const struct wb_sql_value values[] = {wb_registry_text(s->name),       wb_registry_text(s->address),
                                          wb_registry_text(s->directory),  wb_sql_int(s->weight),
                                          wb_registry_text(s->class_name), wb_sql_int(s->search_only),
                                          wb_sql_int(r->cluster.lease_ms), wb_registry_text(j->session)};
    int err = WB_REGISTRY_DO(r, R_DIRECTORY_LEFT, wb_registry_text(s->directory), wb_registry_text(s->name));

    if (err == 0)
        err = wb_sql_run(r->sql, R_MACHINE_ADD, values, 8);
    if (err == 0)
        err = wb_sql_run(r->sql, R_MACHINE_AGAIN, values, 8);
    /* The earlier process may still be under way, frozen: nothing that it does in its terms is valid any more. */
    return err < 0 ? err : WB_REGISTRY_DO(r, R_TERMS_UP, wb_registry_text(s->name));
}

static int join_cluster(struct wb_registry *r, void *context)
{
    struct joining *j = context;

    j->sent_ns = wb_registry_now_ns(r);
    int err = look_for_others(r, j);
    if (err > 0)
        /* The lease runs since an earlier attempt. It counts from the first renewal. */
        j->sent_ns = 0;
    else if (err == 0)
        err = write_machine(r, j);
    if (err >= 0)
        err = WB_SQL_RUN(r->sql, R_SELF, wb_registry_text(j->self->name), wb_registry_text(j->session));
    /* Another process has joined under the name at the same moment. */
    if (err == 0)
        return wb_fail(WB_E_BUSY, "a machine with the name %s has just joined", j->self->name);
    if (err < 0)
        return err;
    j->epoch = wb_sql_number(r->sql, R_SELF, 1);
    j->server = wb_sql_number(r->sql, R_SELF, 2);
    wb_sql_end(r->sql, R_SELF);
    return 0;
}

static bool is_name(const char *text)
{
    size_t len = strlen(text);

    for (size_t i = 0; i < len; i++)
        if (!isalnum((unsigned char)text[i]) && !strchr(".-_", text[i]))
            return false;
    return len > 0 && len < WB_REGISTRY_NAME_MAX;
}

static int check_self(const struct wb_registry_self *s)
{
    uint8_t id[(WB_REGISTRY_ID_MAX - 1) / 2];

    if (!is_name(s->name))
        return wb_fail(WB_E_INVALID, "the name of a machine has 1 to %d letters, digits, '.', '-' and '_'",
                       WB_REGISTRY_NAME_MAX - 1);
    if (s->class_name[0] && !is_name(s->class_name))
        return wb_fail(WB_E_INVALID, "the class of a machine has up to %d letters, digits, '.', '-' and '_'",
                       WB_REGISTRY_NAME_MAX - 1);
    if (strlen(s->address) >= WB_REGISTRY_ADDRESS_MAX || !strchr(s->address, ':'))
        return wb_fail(WB_E_INVALID, "the address of a machine is HOST:PORT");
    if (s->weight < 1 || s->weight > 1000)
        return wb_fail(WB_E_INVALID, "the weight of a machine is from 1 to 1000");
    return wb_hex_decode(wb_slice_str(s->directory), id, sizeof id)
               ? 0
               : wb_fail(WB_E_INVALID, "the id of a directory has %d hexadecimal digits", WB_REGISTRY_ID_MAX - 1);
}

int wb_registry_join(struct wb_registry *r, const struct wb_registry_self *self)
{
    struct joining j = {.self = self};

    WB_CHECK(r->magic == WB_REGISTRY_MAGIC && !r->session[0]);
    int err = check_self(self);
    if (err < 0)
        return err;
    wb_registry_random_id(j.session);
    err = wb_registry_transact(r, WB_SQL_WRITE, join_cluster, &j);
    if (err < 0)
        return err;
    snprintf(r->name, sizeof r->name, "%s", self->name);
    snprintf(r->session, sizeof r->session, "%s", j.session);
    r->search_only = self->search_only;
    believe_nothing(r);
    r->epoch = j.epoch;
    r->server = j.server;
    r->since_ns = r->sent_ns = j.sent_ns;
    memset(r->offsets, 0, sizeof r->offsets);
    /* What an earlier process has left to this one is read with the first renewal, and believed a lease later. */
    r->reread = r->joining = true;
    return wb_registry_renew(r, NULL);
}

/* ---- leaving
 * ----------------------------------------------------------------------------------------------------------- */

static int leave_cluster(struct wb_registry *r, void *context)
{
    int64_t epoch;
    int err = WB_REGISTRY_ASK(r, &epoch, R_LEAVE, wb_registry_text(r->name), wb_registry_text(r->session));

    (void)context;
    /* Not there: an attempt whose answer was lost, or another process has the name by now. */
    if (err <= 0)
        return err;
    err = WB_REGISTRY_DO(r, R_SHARDS_LEFT, wb_registry_text(r->name));
    return err < 0 ? err : WB_REGISTRY_DO(r, R_COPIES_LEFT, wb_registry_text(r->name));
}

int wb_registry_leave(struct wb_registry *r)
{
    int err = wb_registry_need_machine(r);

    if (err < 0)
        return err;
    believe_nothing(r);
    err = wb_registry_transact(r, WB_SQL_WRITE, leave_cluster, NULL);
    r->session[0] = '\0';
    return err;
}
