/*
 * registry_slots.c - slots of IP addresses that the machines share: how many requests an address gets at once, whoever
 * sends them.
 *
 * A slot belongs to the machine in its row while that machine's lease lasts. Rows are made when they are needed, and
 * removed when the wait after the last use is over.
 */
#include "base/check.h"
#include "base/error.h"
#include "registry/registry_inside.h"

struct slot_call {
    struct wb_slice address;
    unsigned slots, slot;
    int64_t ready_ms; /* from now */
    char token[WB_REGISTRY_ID_MAX];
};

/* The first slot that nobody has; before[] is the token in its row, "" also if there is none (fresh). 0: all are taken.
 */
static int find_slot(struct wb_registry *r, struct slot_call *c, char before[WB_REGISTRY_ID_MAX], bool *fresh)
{
    unsigned next = 1; /* rows are in the order of slots, some may be missing */
    int err = WB_SQL_RUN(r->sql, R_SLOTS, wb_sql_str(c->address));

    c->slot = 0;
    c->ready_ms = 0;
    *fresh = false;
    before[0] = '\0';
    for (; err > 0 && c->slot == 0; err = c->slot ? err : wb_sql_next(r->sql, R_SLOTS)) {
        int64_t slot = wb_sql_number(r->sql, R_SLOTS, 0);
        if (slot < next || slot > c->slots)
            continue;
        if (slot > next)
            break; /* the row of `next` is missing */
        next++;
        if (wb_sql_number(r->sql, R_SLOTS, 3))
            continue;
        c->slot = (unsigned)slot;
        int64_t ready_ms = wb_sql_number(r->sql, R_SLOTS, 2) - wb_sql_number(r->sql, R_SLOTS, 4);
        c->ready_ms = ready_ms > 0 ? ready_ms : 0;
        err = wb_registry_column(r, R_SLOTS, 1, before, WB_REGISTRY_ID_MAX);
        if (err == 0)
            err = 1;
    }
    wb_sql_end(r->sql, R_SLOTS);
    if (err >= 0 && c->slot == 0 && next <= c->slots) {
        c->slot = next;
        *fresh = true;
    }
    return err < 0 ? err : 0;
}

static int take_slot(struct wb_registry *r, void *context)
{
    struct slot_call *c = context;
    char before[WB_REGISTRY_ID_MAX];
    bool fresh;
    int err = WB_SQL_RUN(r->sql, R_SLOT_OF_TOKEN, wb_sql_str(c->address), wb_registry_text(c->token));

    if (err > 0) {
        c->slot = (unsigned)wb_sql_number(r->sql, R_SLOT_OF_TOKEN, 0);
        int64_t ready_ms = wb_sql_number(r->sql, R_SLOT_OF_TOKEN, 1) - wb_sql_number(r->sql, R_SLOT_OF_TOKEN, 2);
        c->ready_ms = ready_ms > 0 ? ready_ms : 0;
        wb_sql_end(r->sql, R_SLOT_OF_TOKEN);
        return 0;
    }
    if (err == 0)
        err = find_slot(r, c, before, &fresh);
    if (err < 0 || c->slot == 0)
        return err;
    int64_t slot;
    if (fresh)
        err = WB_REGISTRY_ASK(r, &slot, R_SLOT_ADD, wb_sql_str(c->address), wb_sql_int(c->slot),
                              wb_registry_text(r->name), wb_registry_text(r->session), wb_registry_text(c->token));
    else
        err = WB_REGISTRY_ASK(r, &slot, R_SLOT_TAKE, wb_sql_str(c->address), wb_sql_int(c->slot),
                              wb_registry_text(r->name), wb_registry_text(r->session), wb_registry_text(c->token),
                              wb_registry_text(before));
    /* Another machine was faster: look again. */
    return err == 0 ? wb_fail(WB_SQL_AGAIN, "a slot of %.*s was taken by another machine", WB_SLICE_ARG(c->address))
                    : err;
}

int wb_registry_slot_take(struct wb_registry *r, struct wb_slice address, unsigned slots, unsigned *slot_out,
                          int64_t *ready_ms_out)
{
    struct slot_call c = {.address = address, .slots = slots};
    int err = wb_registry_need_machine(r);

    WB_CHECK(slots > 0);
    *slot_out = 0;
    *ready_ms_out = 0;
    if (err == 0 && (address.len == 0 || address.len >= WB_REGISTRY_ADDRESS_MAX))
        err = wb_fail(WB_E_INVALID, "an address has 1 to %d bytes", WB_REGISTRY_ADDRESS_MAX - 1);
    if (err == 0 && wb_registry_lease_left_ms(r) == 0)
        err = wb_fail(WB_E_DENIED, "the lease of the machine %s is over", r->name);
    if (err < 0)
        return err;
    wb_registry_random_id(c.token);
    err = wb_registry_transact(r, WB_SQL_WRITE, take_slot, &c);
    if (err == 0) {
        *slot_out = c.slot;
        *ready_ms_out = c.ready_ms;
    }
    return err;
}

static int release_slot(struct wb_registry *r, void *context)
{
    const struct slot_call *c = context;
    int err = WB_SQL_RUN(r->sql, R_SLOT_RELEASE, wb_sql_str(c->address), wb_sql_int(c->slot), wb_registry_text(r->name),
                         wb_registry_text(r->session), wb_sql_int(c->ready_ms));

    return err < 0 ? err : WB_SQL_RUN(r->sql, R_SLOTS_TIDY, wb_sql_str(c->address), wb_sql_int(c->slot));
}

int wb_registry_slot_release(struct wb_registry *r, struct wb_slice address, unsigned slot, int64_t wait_ms)
{
    struct slot_call c = {.address = address, .slot = slot, .ready_ms = wait_ms};
    int err = wb_registry_need_machine(r);

    return err < 0 ? err : wb_registry_transact(r, WB_SQL_WRITE, release_slot, &c);
}
