/*
 * registry_shards.c - taking a shard, giving it up or to another machine, and publishing what was shipped.
 *
 * Whoever gives something up stops believing first and asks the database then. If an answer is lost for good, the next
 * renewal reads the list again, and the machine holds what the database says.
 */
#include "base/check.h"
#include "base/error.h"
#include "registry/registry_inside.h"

#include <stdio.h>

/* The database's answer stays unknown: what is true is read with the next renewal. */
static int remember_doubt(struct wb_registry *r, int err)
{
    if (err < 0)
        r->reread = true;
    return err;
}

/* ---- taking ---------------------------------------------------------------------------------------------------------
 */

struct taking {
    unsigned shard;
    char token[WB_REGISTRY_ID_MAX];
    int64_t epoch; /* of this machine's row afterwards; 0: not changed by this attempt */
    struct wb_registry_shard row;
};

/* This machine's row, judged by the database: does its lease last, are its renewals unbroken, may it have shards? */
static int judge_self(struct wb_registry *r)
{
    int64_t sent_ns = wb_registry_now_ns(r);
    int err = WB_SQL_RUN(r->sql, R_SELF, wb_registry_text(r->name), wb_registry_text(r->session));

    if (err <= 0)
        return err < 0 ? err : wb_fail(WB_E_DENIED, "the machine %s is no longer part of the cluster", r->name);
    int64_t until_ms = wb_sql_number(r->sql, R_SELF, 0), since_ms = wb_sql_number(r->sql, R_SELF, 3);
    int64_t now_ms = wb_sql_number(r->sql, R_SELF, 6);
    bool barred = wb_sql_number(r->sql, R_SELF, 4) != 0 || wb_sql_number(r->sql, R_SELF, 5) != 0;
    bool same = wb_sql_number(r->sql, R_SELF, 2) == r->server;
    int64_t got_ns = wb_registry_now_ns(r);
    wb_sql_end(r->sql, R_SELF);
    if (barred)
        return wb_fail(WB_E_DENIED, "the machine %s is to hold no more shards", r->name);
    if (until_ms <= now_ms || since_ms > now_ms - r->cluster.lease_ms || !same ||
        !wb_registry_clocks_agree(r, sent_ns, got_ns, now_ms)) {
        /* The clock of the database may have been set, and then leases of others only seem to be over. */
        r->since_ns = sent_ns;
        return wb_fail(WB_E_DENIED, "the machine %s may take shards when its renewals have been unbroken for a lease",
                       r->name);
    }
    /* A step of the clock could hide in an answer that took so long. */
    if (got_ns - sent_ns > r->cluster.lease_ms * INT64_C(1000000) / 16)
        return wb_fail(WB_SQL_AGAIN, "%s answers too slowly to judge leases by its clock", wb_sql_where(r->sql));
    return 0;
}

/* Locks the row of a holder whose lease is over, so that it hears of this. WB_E_BUSY if it lasts. */
static int end_holder(struct wb_registry *r, const struct taking *t)
{
    const char *holder = t->row.holder;
    int err = WB_REGISTRY_DO(r, R_BUMP_DEAD, wb_registry_text(holder));

    if (err != 0)
        return err < 0 ? err : 0;
    err = WB_REGISTRY_DO(r, R_MACHINE, wb_registry_text(holder));
    return err <= 0 ? err : wb_fail(WB_E_BUSY, "the machine %s holds shard %u", holder, t->shard);
}

static int take_shard(struct wb_registry *r, void *context)
{
    struct taking *t = context;
    int err = WB_SQL_RUN(r->sql, R_SHARD, wb_sql_int(t->shard));

    t->epoch = 0;
    if (err <= 0)
        return err < 0 ? err : wb_fail(WB_E_NOTFOUND, "there is no shard %u", t->shard);
    bool taken = wb_slice_equal(wb_sql_text(r->sql, R_SHARD, 10), wb_slice_str(t->token));
    err = wb_registry_shard_row(r, R_SHARD, &t->row);
    wb_sql_end(r->sql, R_SHARD);
    if (err < 0 || taken)
        return err;
    if (strcmp(t->row.holder, r->name) == 0) {
        r->reread = true; /* it may have been handed over since the last renewal */
        return wb_fail(WB_E_BUSY, "this machine, %s, holds shard %u", r->name, t->shard);
    }
    if (t->row.holder[0])
        err = end_holder(r, t);
    /* Afterwards: a step of the clock that made the holder's lease seem over is seen now. */
    if (err == 0)
        err = judge_self(r);
    if (err < 0)
        return err;
    err = WB_SQL_RUN(r->sql, R_TAKE, wb_registry_text(r->name), wb_registry_text(t->token), wb_sql_int(t->shard),
                     wb_registry_text(t->row.holder), wb_sql_int(t->row.term));
    if (err == 0)
        return wb_fail(WB_E_BUSY, "another machine has just taken shard %u", t->shard);
    if (err > 0)
        err = wb_registry_shard_row(r, R_TAKE, &t->row);
    wb_sql_end(r->sql, R_TAKE);
    if (err == 0)
        err = WB_REGISTRY_DO(r, R_COPY_DROP, wb_sql_int(t->shard), wb_registry_text(r->name));
    if (err == 0)
        err = WB_REGISTRY_ASK(r, &t->epoch, R_BUMP, wb_registry_text(r->name));
    return err < 0 ? err : 0;
}

int wb_registry_take(struct wb_registry *r, unsigned shard, struct wb_registry_shard *shard_out)
{
    struct taking t = {.shard = shard};
    int err = wb_registry_need_machine(r);

    *shard_out = (struct wb_registry_shard){.shard = shard};
    if (err == 0 && !wb_registry_may_take(r))
        err = wb_fail(WB_E_DENIED, "the machine %s may take shards when its renewals have been unbroken for a lease",
                      r->name);
    if (err < 0)
        return err;
    wb_registry_random_id(t.token);
    err = wb_registry_transact(r, WB_SQL_WRITE, take_shard, &t);
    if (err == 0) {
        wb_registry_own_drop(r, shard);
        pthread_mutex_lock(&r->lock);
        err = wb_vec_push(&r->own, (struct wb_registry_own){.row = t.row});
        /* If the row's number has grown by more than our own change, somebody else has changed something. */
        if (err == 0 && t.epoch == r->epoch + 1)
            r->epoch = t.epoch;
        pthread_mutex_unlock(&r->lock);
    }
    if (err < 0)
        return remember_doubt(r, err);
    *shard_out = t.row;
    return 0;
}

/* ---- giving
 * ----------------------------------------------------------------------------------------------------------- */

struct giving {
    unsigned shard;
    int64_t term;
    const char *machine; /* NULL: to nobody */
    bool refused;        /* that machine cannot have it */
};

static int give_shard(struct wb_registry *r, void *context)
{
    struct giving *g = context;
    int err = 0;

    g->refused = false;
    if (g->machine) {
        /* An attempt whose answer was lost may have done it. */
        struct wb_registry_shard now;
        err = WB_SQL_RUN(r->sql, R_SHARD, wb_sql_int(g->shard));
        if (err > 0)
            err = wb_registry_shard_row(r, R_SHARD, &now);
        wb_sql_end(r->sql, R_SHARD);
        if (err < 0 || (strcmp(now.holder, g->machine) == 0 && now.term == g->term + 1))
            return err;
        err = WB_REGISTRY_DO(r, R_BUMP_ABLE, wb_registry_text(g->machine));
        if (err > 0)
            err = WB_REGISTRY_DO(r, R_HAND_OVER, wb_sql_int(g->shard), wb_registry_text(r->name), wb_sql_int(g->term),
                                 wb_registry_text(g->machine));
        else if (err == 0)
            g->refused = true;
        if (err < 0 || !g->refused)
            return err < 0 ? err : 0;
    }
    err = WB_REGISTRY_DO(r, R_RELEASE, wb_sql_int(g->shard), wb_registry_text(r->name), wb_sql_int(g->term));
    return err < 0 ? err : 0;
}

static int give(struct wb_registry *r, unsigned shard, const char *machine)
{
    struct giving g = {.shard = shard, .machine = machine};
    int err = wb_registry_need_machine(r);

    if (err < 0)
        return err;
    g.term = wb_registry_own_drop(r, shard);
    if (g.term < 0)
        return wb_fail(WB_E_DENIED, "the machine %s does not hold shard %u", r->name, shard);
    err = remember_doubt(r, wb_registry_transact(r, WB_SQL_WRITE, give_shard, &g));
    return err == 0 && g.refused ? wb_fail(WB_E_BUSY, "the machine %s cannot have shard %u", machine, shard) : err;
}

int wb_registry_release(struct wb_registry *r, unsigned shard)
{
    return give(r, shard, NULL);
}

int wb_registry_hand_over(struct wb_registry *r, unsigned shard, const char *machine)
{
    if (strcmp(machine, r->name) == 0)
        return wb_fail(WB_E_INVALID, "the machine %s cannot give a shard to itself", machine);
    /* The other one believes it at once, so this one must have the right to. */
    if (!wb_registry_holds(r, shard, NULL))
        return wb_fail(WB_E_DENIED, "the machine %s does not hold shard %u at this moment", r->name, shard);
    return give(r, shard, machine);
}

/* ---- publishing
 * --------------------------------------------------------------------------------------------------------- */

struct publishing {
    const struct wb_registry_publication *p;
    int64_t term;
    bool done;
    struct wb_registry_shard now;
};

static int write_publication(struct wb_registry *r, void *context)
{
    struct publishing *g = context;
    const struct wb_registry_publication *p = g->p;
    int err = WB_SQL_RUN(r->sql, R_PUBLISH, wb_sql_int(p->shard), wb_registry_text(r->name), wb_sql_int(g->term),
                         wb_registry_text(p->old_head), wb_registry_text(p->head), wb_sql_int((int64_t)p->pages),
                         wb_sql_int((int64_t)p->bytes), wb_sql_int((int64_t)p->generation), wb_sql_int(p->unsafe));

    g->done = err > 0;
    if (err > 0)
        err = wb_registry_shard_row(r, R_PUBLISH, &g->now);
    wb_sql_end(r->sql, R_PUBLISH);
    return err;
}

static int read_shard(struct wb_registry *r, void *context)
{
    struct publishing *g = context;
    int err = WB_SQL_RUN(r->sql, R_SHARD, wb_sql_int(g->p->shard));

    if (err > 0)
        err = wb_registry_shard_row(r, R_SHARD, &g->now);
    wb_sql_end(r->sql, R_SHARD);
    return err;
}

/* Nothing was changed: because somebody else holds the shard, or because an attempt whose answer was lost has done it?
 */
static int explain(struct wb_registry *r, struct publishing *g)
{
    int err = wb_registry_transact(r, WB_SQL_READ, read_shard, g);

    if (err < 0)
        return err;
    if (strcmp(g->now.holder, r->name) != 0 || g->now.term != g->term) {
        wb_registry_own_drop(r, g->p->shard);
        r->reread = true;
        return wb_fail(WB_E_DENIED, "shard %u is held by %s in term %lld, and no more by this machine in term %lld",
                       g->p->shard, g->now.holder[0] ? g->now.holder : "nobody", (long long)g->now.term,
                       (long long)g->term);
    }
    if (strcmp(g->now.head, g->p->head) == 0)
        return 0;
    return wb_fail(WB_E_CORRUPT,
                   "shard %u has the head '%s' in %s, not '%s': the database has lost what it had confirmed",
                   g->p->shard, g->now.head, wb_sql_where(r->sql), g->p->old_head);
}

int wb_registry_publish(struct wb_registry *r, const struct wb_registry_publication *publication,
                        struct wb_registry_shard *now_out)
{
    struct publishing g = {.p = publication};
    int err = wb_registry_need_machine(r);

    *now_out = (struct wb_registry_shard){.shard = publication->shard};
    if (err < 0)
        return err;
    if (!publication->head[0] || strlen(publication->head) >= WB_REGISTRY_HEAD_MAX ||
        strcmp(publication->head, publication->old_head) == 0)
        return wb_fail(WB_E_INVALID, "a publication needs a head of its own, shorter than %d bytes",
                       WB_REGISTRY_HEAD_MAX);
    if (!wb_registry_holds(r, publication->shard, &g.term))
        return wb_fail(WB_E_DENIED, "the machine %s does not hold shard %u at this moment", r->name,
                       publication->shard);
    err = wb_registry_transact(r, WB_SQL_ONE, write_publication, &g);
    if (err == 0 && !g.done)
        err = explain(r, &g);
    *now_out = g.now;
    int at = wb_registry_own_find(r, publication->shard);
    if (err == 0 && at >= 0) {
        pthread_mutex_lock(&r->lock);
        r->own.items[at].row = g.now;
        pthread_mutex_unlock(&r->lock);
    }
    return err;
}

/* ---- for others to see
 * ----------------------------------------------------------------------------------------------------- */

struct shard_remark {
    unsigned shard;
    int64_t term, unsafe_ms;
    const char *head;
};

static int write_unsafe(struct wb_registry *r, void *context)
{
    const struct shard_remark *t = context;

    return WB_SQL_RUN(r->sql, R_UNSAFE, wb_sql_int(t->shard), wb_registry_text(r->name), wb_sql_int(t->term),
                      wb_sql_int(t->unsafe_ms > 0), wb_sql_int(t->unsafe_ms));
}

int wb_registry_tell_unsafe(struct wb_registry *r, unsigned shard, int64_t unsafe_ms)
{
    struct shard_remark t = {.shard = shard, .unsafe_ms = unsafe_ms};
    int err = wb_registry_need_machine(r);

    if (err == 0 && !wb_registry_holds(r, shard, &t.term))
        err = wb_fail(WB_E_DENIED, "the machine %s does not hold shard %u at this moment", r->name, shard);
    return err < 0 ? err : wb_registry_transact(r, WB_SQL_ONE, write_unsafe, &t);
}

static int write_copy(struct wb_registry *r, void *context)
{
    const struct shard_remark *t = context;

    if (!t->head)
        return WB_SQL_RUN(r->sql, R_COPY_DROP, wb_sql_int(t->shard), wb_registry_text(r->name));
    return WB_SQL_RUN(r->sql, R_COPY_SET, wb_sql_int(t->shard), wb_registry_text(r->name), wb_registry_text(t->head));
}

int wb_registry_copy(struct wb_registry *r, unsigned shard, const char *head)
{
    struct shard_remark t = {.shard = shard, .head = head};
    int err = wb_registry_need_machine(r);

    if (err == 0 && shard >= r->cluster.shards)
        err = wb_fail(WB_E_NOTFOUND, "there is no shard %u", shard);
    return err < 0 ? err : wb_registry_transact(r, WB_SQL_ONE, write_copy, &t);
}
