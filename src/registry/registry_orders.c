/*
 * registry_orders.c - what operators ask for: a machine is to give its shards away, or is forgotten; a shard is to
 * move.
 */
#include "base/error.h"
#include "registry/registry_inside.h"

struct order {
    const char *machine;
    unsigned shard;
};

static int no_machine(const char *machine)
{
    return wb_fail(WB_E_NOTFOUND, "the cluster has no machine %s", machine);
}

static int drain_machine(struct wb_registry *r, void *context)
{
    const struct order *o = context;
    int err = WB_REGISTRY_DO(r, R_DRAIN, wb_registry_text(o->machine));

    return err == 0 ? no_machine(o->machine) : err;
}

int wb_registry_drain(struct wb_registry *r, const char *machine)
{
    struct order o = {.machine = machine};

    return wb_registry_transact(r, WB_SQL_ONE, drain_machine, &o);
}

static int remove_machine(struct wb_registry *r, void *context)
{
    const struct order *o = context;
    bool repeated = wb_sql_uncertain(r->sql);
    int err = WB_REGISTRY_DO(r, R_REMOVE, wb_registry_text(o->machine));

    if (err > 0)
        return WB_REGISTRY_DO(r, R_COPIES_LEFT, wb_registry_text(o->machine));
    if (err == 0)
        err = WB_REGISTRY_DO(r, R_MACHINE, wb_registry_text(o->machine));
    if (err == 0)
        return repeated ? 0 : no_machine(o->machine); /* the attempt whose answer was lost has removed it */
    return err < 0 ? err
                   : wb_fail(WB_E_BUSY,
                             "the machine %s cannot be removed: it holds shards, or is at work and does not drain",
                             o->machine);
}

int wb_registry_remove(struct wb_registry *r, const char *machine)
{
    struct order o = {.machine = machine};

    return wb_registry_transact(r, WB_SQL_WRITE, remove_machine, &o);
}

static int want_shard(struct wb_registry *r, void *context)
{
    const struct order *o = context;
    char holder[WB_REGISTRY_NAME_MAX];
    int err = WB_REGISTRY_DO(r, R_MACHINE, wb_registry_text(o->machine));

    if (err == 0)
        return no_machine(o->machine);
    if (err > 0)
        err = WB_REGISTRY_DO(r, R_BUMP_ABLE, wb_registry_text(o->machine));
    if (err == 0)
        return wb_fail(WB_E_BUSY, "the machine %s cannot have shards: it is down, draining or for searches only",
                       o->machine);
    if (err > 0)
        err = WB_SQL_RUN(r->sql, R_WANT, wb_sql_int(o->shard), wb_registry_text(o->machine));
    if (err == 0)
        return wb_fail(WB_E_NOTFOUND, "there is no shard %u", o->shard);
    if (err > 0)
        err = wb_registry_column(r, R_WANT, 0, holder, sizeof holder);
    wb_sql_end(r->sql, R_WANT);
    /* So that the holder reads it with its next renewal. */
    return err < 0 ? err : WB_REGISTRY_DO(r, R_BUMP, wb_registry_text(holder));
}

int wb_registry_move(struct wb_registry *r, unsigned shard, const char *machine)
{
    struct order o = {.machine = machine, .shard = shard};

    return wb_registry_transact(r, WB_SQL_WRITE, want_shard, &o);
}
