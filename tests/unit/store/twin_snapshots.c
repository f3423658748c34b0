/*
 * twin_snapshots.c - the snapshots of the twin and who holds them. A snapshot that nobody holds stays in the list,
 * but no call finds it.
 */
#include "twin_state.h"
#include "base/error.h"
#include "base/mem.h"

#include <stdio.h>

static bool has_run_out(const struct wb_store_holder *holder, int64_t now_ms)
{
    return holder->expires_ms && holder->expires_ms <= now_ms;
}

static bool is_alive(const struct wb_twin_snapshot *snapshot, int64_t now_ms)
{
    for (size_t i = 0; i < snapshot->holders.count; i++)
        if (!has_run_out(&snapshot->holders.items[i], now_ms))
            return true;
    return false;
}

struct wb_twin_snapshot *wb_twin_snapshot_find(struct wb_twin_snapshots *snapshots, uint32_t number, int64_t now_ms)
{
    for (size_t i = 0; i < snapshots->list.count; i++)
        if (snapshots->list.items[i].sealed.number == number && is_alive(&snapshots->list.items[i], now_ms))
            return &snapshots->list.items[i];
    return NULL;
}

int wb_twin_no_snapshot(uint32_t number)
{
    return wb_fail(WB_E_NOTFOUND, "there is no snapshot %u", number);
}

void wb_twin_snapshot_show(const struct wb_twin_snapshot *snapshot, int64_t now_ms,
                           struct wb_store_snapshot *snapshot_out)
{
    WB_VEC(struct wb_store_holder) holders = WB_VEC_INIT;
    bool forever = false;

    *snapshot_out = snapshot->sealed;
    for (size_t i = 0; i < snapshot->holders.count; i++) {
        const struct wb_store_holder *holder = &snapshot->holders.items[i];
        if (has_run_out(holder, now_ms))
            continue;
        WB_CHECK(wb_vec_push(&holders, *holder) == 0);
        forever = forever || holder->expires_ms == 0;
        if (holder->expires_ms > snapshot_out->expires_ms)
            snapshot_out->expires_ms = holder->expires_ms;
    }
    if (forever)
        snapshot_out->expires_ms = 0;
    snapshot_out->holders = holders.items;
    snapshot_out->holder_count = holders.count;
}

int wb_twin_seal(struct wb_twin_snapshots *snapshots, struct wb_slice name, const struct wb_store_holder *holder,
                 const struct wb_twin_state *state, int64_t now_ms)
{
    struct wb_twin_snapshot added = {
        .sealed = {.epoch = state->epoch, .pages = wb_twin_count_pages(state), .time_ms = now_ms}};

    for (size_t i = 0; name.len && i < snapshots->list.count; i++)
        if (wb_slice_equal(wb_slice_str(snapshots->list.items[i].sealed.name), name) &&
            is_alive(&snapshots->list.items[i], now_ms))
            return wb_fail(WB_E_INVALID, "there is a snapshot %.*s already", WB_SLICE_ARG(name));
    added.sealed.number = ++snapshots->last;
    snprintf(added.sealed.name, sizeof added.sealed.name, "%.*s", WB_SLICE_ARG(name));
    wb_twin_state_copy(state, &added.state);
    WB_CHECK(wb_vec_push(&added.holders, *holder) == 0);
    WB_CHECK(wb_vec_push(&snapshots->list, added) == 0);
    return 0;
}

static struct wb_store_holder *find_holder(struct wb_twin_snapshot *snapshot, const struct wb_store_holder *wanted)
{
    for (size_t i = 0; i < snapshot->holders.count; i++) {
        struct wb_store_holder *holder = &snapshot->holders.items[i];
        if (holder->kind == wanted->kind &&
            (holder->kind == WB_STORE_HOLDER_PERSON || strcmp(holder->name, wanted->name) == 0))
            return holder;
    }
    return NULL;
}

int wb_twin_hold(struct wb_twin_snapshots *snapshots, uint32_t number, const struct wb_store_holder *holder,
                 int64_t now_ms)
{
    struct wb_twin_snapshot *snapshot = wb_twin_snapshot_find(snapshots, number, now_ms);
    struct wb_store_holder *known = snapshot ? find_holder(snapshot, holder) : NULL;

    if (!snapshot)
        return wb_twin_no_snapshot(number);
    if (known)
        *known = *holder;
    else
        WB_CHECK(wb_vec_push(&snapshot->holders, *holder) == 0);
    return 0;
}

int wb_twin_let_go(struct wb_twin_snapshots *snapshots, uint32_t number, const struct wb_store_holder *holder,
                   int64_t now_ms)
{
    struct wb_twin_snapshot *snapshot = wb_twin_snapshot_find(snapshots, number, now_ms);
    struct wb_store_holder *known = snapshot ? find_holder(snapshot, holder) : NULL;

    if (!known || has_run_out(known, now_ms))
        return wb_twin_no_snapshot(number);
    *known = wb_vec_pop(&snapshot->holders);
    return 0;
}

int wb_twin_drop(struct wb_twin_snapshots *snapshots, uint32_t number, int64_t now_ms)
{
    const struct wb_store_holder person = {.kind = WB_STORE_HOLDER_PERSON};
    struct wb_twin_snapshot *snapshot = wb_twin_snapshot_find(snapshots, number, now_ms);

    if (!snapshot)
        return wb_twin_no_snapshot(number);
    for (size_t i = 0; i < snapshot->holders.count; i++) {
        const struct wb_store_holder *holder = &snapshot->holders.items[i];
        if (holder->kind != WB_STORE_HOLDER_PERSON && !has_run_out(holder, now_ms))
            return wb_fail(WB_E_BUSY, "%s holds snapshot %u", holder->name, number);
    }
    return wb_twin_let_go(snapshots, number, &person, now_ms);
}

void wb_twin_snapshots_release(struct wb_twin_snapshots *snapshots)
{
    for (size_t i = 0; i < snapshots->list.count; i++) {
        wb_vec_release(&snapshots->list.items[i].holders);
        wb_twin_state_release(&snapshots->list.items[i].state);
    }
    wb_vec_release(&snapshots->list);
}
