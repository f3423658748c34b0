/*
 * repo_snapshot.c - seals and drops snapshots, and sets the history policy. Each is one small
 * transaction of the catalog: a snapshot is a row with an epoch, and its holders are rows. No
 * page is touched; what nobody holds any more is given up by later commits and by compaction.
 *
 * A snapshot exists as long as one of its holders has not expired. The rows of expired ones are removed
 * by the next call that changes snapshots.
 */
#include "base/check.h"
#include "base/mem.h"
#include "os/clock.h"
#include "store/repo.h"

#include <stdio.h>

/* A change of snapshots, holders or the policy. */
struct snapshot_change {
    struct wb_repo_change change;
    uint32_t number;
    struct wb_slice name;
    const struct wb_store_holder *holder;
    const struct wb_store_history *history;
    struct wb_store_snapshot *snapshot_out;
};

/* ---- reading -------------------------------------------------------------------------------------- */

struct holder_gathering {
    WB_VEC(struct wb_store_holder) holders; /* those that have not expired */
    int64_t now_ms;
    bool expired;                           /* there are others */
};

static int gather_holder(void *context, uint32_t number, const struct wb_store_holder *holder)
{
    struct holder_gathering *g = context;

    WB_CHECK(holder->kind <= WB_STORE_HOLDER_STREAM);
    WB_CHECK(number > 0);
    if (holder->expires_ms && holder->expires_ms <= g->now_ms) {
        g->expired = true;
        return 0;
    }
    return wb_vec_push(&g->holders, *holder);
}

/* Adds its holders to a snapshot, and when the last of them lets go. Without any it has expired. */
static int complete_snapshot(struct wb_catalog_txn *txn, int64_t now_ms, struct wb_store_snapshot *snapshot)
{
    struct holder_gathering g = {.now_ms = now_ms};
    int err = wb_catalog_holder_each(txn, snapshot->number, gather_holder, &g);

    WB_CHECK(snapshot->number > 0);
    WB_CHECK(!snapshot->holders);
    if (err < 0) {
        wb_vec_release(&g.holders);
        return err;
    }
    snapshot->holders = g.holders.items;
    snapshot->holder_count = g.holders.count;
    bool forever = false;
    for (size_t i = 0; i < g.holders.count; i++) {
        forever = forever || g.holders.items[i].expires_ms == 0;
        if (g.holders.items[i].expires_ms > snapshot->expires_ms)
            snapshot->expires_ms = g.holders.items[i].expires_ms;
    }
    if (forever)
        snapshot->expires_ms = 0;
    return 0;
}

static int no_snapshot(uint32_t number)
{
    return wb_fail(WB_E_NOTFOUND, "there is no snapshot %u", (unsigned)number);
}

int wb_repo_snapshot_epoch(struct wb_catalog_txn *txn, uint32_t number, uint64_t *epoch_out)
{
    struct wb_store_snapshot snapshot;
    int err = wb_catalog_snapshot_get(txn, number, &snapshot);

    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    *epoch_out = 0;
    if (err == 0)
        err = complete_snapshot(txn, wb_clock_wall_ms(), &snapshot);
    bool alive = err == 0 && snapshot.holder_count > 0;
    WB_CHECK(!alive || snapshot.epoch > 0);
    *epoch_out = alive ? snapshot.epoch : 0;
    wb_store_snapshot_release(&snapshot);
    return err == WB_E_NOTFOUND || (err == 0 && !alive) ? no_snapshot(number) : err;
}

struct snapshot_listing {
    struct wb_catalog_txn txn;
    int64_t now_ms;
    int (*each)(void *context, const struct wb_store_snapshot *snapshot);
    void *context;
};

static int list_snapshot(void *context, const struct wb_store_snapshot *row)
{
    struct snapshot_listing *l = context;
    struct wb_store_snapshot snapshot = *row;
    int err = complete_snapshot(&l->txn, l->now_ms, &snapshot);

    WB_CHECK(l->each != NULL);
    WB_CHECK(row->number > 0);
    if (err == 0 && snapshot.holder_count)
        err = l->each(l->context, &snapshot);
    wb_store_snapshot_release(&snapshot);
    return err;
}

int wb_repo_snapshot_each(struct wb_store *store, int (*each)(void *context, const struct wb_store_snapshot *snapshot),
                          void *context)
{
    struct snapshot_listing l = {.now_ms = wb_clock_wall_ms(), .each = each, .context = context};
    int err = wb_catalog_txn_read(wb_repo_of(store)->catalog, &l.txn);

    WB_CHECK(each != NULL);
    if (err == 0)
        err = wb_catalog_snapshot_each(&l.txn, list_snapshot, &l);
    wb_catalog_txn_abort(&l.txn);
    return err;
}

/* ---- changing --------------------------------------------------------------------------------------- */

/* What is left of snapshots that have expired: collected first, because a table must not change during a walk. */
struct expired_rows {
    struct snapshot_change *c;
    struct wb_slice name; /* a name that must not be in use; may be empty */
    bool taken;
    WB_VEC(uint32_t) numbers;
};

static int look_at_snapshot(void *context, const struct wb_store_snapshot *row)
{
    struct expired_rows *e = context;
    struct wb_store_snapshot snapshot = *row;
    int err = complete_snapshot(&e->c->change.txn, e->c->change.now_ms, &snapshot);

    WB_CHECK(e->c->change.txn.kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(row->number > 0);
    if (err == 0 && snapshot.holder_count == 0)
        err = wb_vec_push(&e->numbers, snapshot.number);
    else if (err == 0 && e->name.len && wb_slice_equal(e->name, wb_slice_str(snapshot.name)))
        e->taken = true;
    wb_store_snapshot_release(&snapshot);
    return err;
}

struct holder_list WB_VEC_OF(struct wb_store_holder);

static int gather_any_holder(void *context, uint32_t number, const struct wb_store_holder *holder)
{
    WB_CHECK(number > 0);
    WB_CHECK(holder->kind <= WB_STORE_HOLDER_STREAM);
    (void)number;
    return wb_vec_push((struct holder_list *)context, *holder);
}

/* Deletes a snapshot with all its holders. */
static int delete_snapshot(struct snapshot_change *c, uint32_t number)
{
    WB_CHECK(number > 0);
    struct holder_list holders = {0};
    int err = wb_catalog_holder_each(&c->change.txn, number, gather_any_holder, &holders);

    WB_CHECK(c->change.txn.kind == WB_CATALOG_TXN_WRITING);
    for (size_t i = 0; i < holders.count && err == 0; i++)
        err = wb_catalog_holder_delete(&c->change.txn, number, &holders.items[i]);
    if (err == 0)
        err = wb_catalog_snapshot_delete(&c->change.txn, number);
    wb_vec_release(&holders);
    return err;
}

/* Removes snapshots that have expired, and finds out whether the name is in use by another one. */
static int clean_up(struct snapshot_change *c, bool *taken_out)
{
    struct expired_rows e = {.c = c, .name = c->name};
    int err = wb_catalog_snapshot_each(&c->change.txn, look_at_snapshot, &e);

    WB_CHECK(c->change.txn.kind == WB_CATALOG_TXN_WRITING);
    for (size_t i = 0; i < e.numbers.count && err == 0; i++)
        err = delete_snapshot(c, e.numbers.items[i]);
    wb_vec_release(&e.numbers);
    WB_CHECK(!e.taken || c->name.len > 0);
    *taken_out = e.taken;
    return err;
}

static int seal(void *context)
{
    struct snapshot_change *c = context;
    struct wb_store_snapshot *snapshot = c->snapshot_out;
    bool taken;
    int err = clean_up(c, &taken);

    WB_CHECK(c->change.txn.kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(c->holder != NULL);
    WB_CHECK(snapshot != NULL);
    if (err < 0)
        return err;
    if (taken)
        return wb_fail(WB_E_INVALID, "there is a snapshot with the name %.*s already", WB_SLICE_ARG(c->name));
    if (c->change.summary.snapshot == UINT32_MAX)
        return wb_fail(WB_E_LIMIT, "there are no numbers left for snapshots");
    *snapshot = (struct wb_store_snapshot){
        .number = ++c->change.summary.snapshot,
        .epoch = c->change.summary.epoch,
        .time_ms = c->change.now_ms,
        .pages = c->change.summary.pages,
    };
    if (c->name.len)
        memcpy(snapshot->name, c->name.ptr, c->name.len);
    err = wb_catalog_snapshot_put(&c->change.txn, snapshot);
    if (err == 0)
        err = wb_catalog_holder_put(&c->change.txn, snapshot->number, c->holder);
    return err < 0 ? err : complete_snapshot(&c->change.txn, c->change.now_ms, snapshot);
}

int wb_repo_seal(struct wb_store *store, struct wb_slice name, const struct wb_store_holder *holder,
                 struct wb_store_snapshot *snapshot_out)
{
    struct snapshot_change c = {.name = name, .holder = holder, .snapshot_out = snapshot_out};

    WB_CHECK(holder->kind <= WB_STORE_HOLDER_STREAM);
    WB_CHECK(!snapshot_out->holders);
    WB_CHECK(name.len <= WB_STORE_NAME_MAX);
    if (holder->expires_ms && holder->expires_ms <= wb_clock_wall_ms())
        return wb_fail(WB_E_INVALID, "a snapshot cannot expire before it exists");
    int err = wb_repo_change(store, &c.change, seal, &c);
    if (err < 0)
        wb_store_snapshot_release(snapshot_out);
    return err;
}

static int refuse_held(const struct wb_store_snapshot *snapshot)
{
    WB_CHECK(snapshot->number > 0);
    WB_CHECK(snapshot->holder_count > 0);
    for (size_t i = 0; i < snapshot->holder_count; i++) {
        const struct wb_store_holder *holder = &snapshot->holders[i];
        if (holder->kind != WB_STORE_HOLDER_PERSON)
            return wb_fail(WB_E_BUSY, "snapshot %u is held by the %s %s", (unsigned)snapshot->number,
                           holder->kind == WB_STORE_HOLDER_STREAM ? "stream" : "generation", holder->name);
    }
    return 0;
}

/* Reads the snapshot that is to be changed; WB_E_NOTFOUND if it does not exist or has expired. */
static int find_for_change(struct snapshot_change *c, struct wb_store_snapshot *snapshot_out)
{
    int err = wb_catalog_snapshot_get(&c->change.txn, c->number, snapshot_out);

    WB_CHECK(c->change.txn.kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(c->number > 0);
    if (err == 0)
        err = complete_snapshot(&c->change.txn, c->change.now_ms, snapshot_out);
    if (err == WB_E_NOTFOUND || (err == 0 && snapshot_out->holder_count == 0))
        return no_snapshot(c->number);
    return err;
}

static int drop(void *context)
{
    struct snapshot_change *c = context;
    struct wb_store_snapshot snapshot;
    bool ignored;
    int err = find_for_change(c, &snapshot);

    WB_CHECK(c->change.txn.kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(c->name.len == 0);
    if (err == 0)
        err = refuse_held(&snapshot);
    if (err == 0)
        err = delete_snapshot(c, c->number);
    if (err == 0)
        err = clean_up(c, &ignored);
    wb_store_snapshot_release(&snapshot);
    return err;
}

int wb_repo_drop(struct wb_store *store, uint32_t number)
{
    struct snapshot_change c = {.number = number};

    return number ? wb_repo_change(store, &c.change, drop, &c) : no_snapshot(number);
}

static int hold(void *context)
{
    struct snapshot_change *c = context;
    struct wb_store_snapshot snapshot;
    int err = find_for_change(c, &snapshot);

    WB_CHECK(c->change.txn.kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(c->holder != NULL);
    wb_store_snapshot_release(&snapshot);
    return err < 0 ? err : wb_catalog_holder_put(&c->change.txn, c->number, c->holder);
}

int wb_repo_hold(struct wb_store *store, uint32_t number, const struct wb_store_holder *holder)
{
    struct snapshot_change c = {.number = number, .holder = holder};

    WB_CHECK(holder->kind <= WB_STORE_HOLDER_STREAM);
    WB_CHECK(holder->name[WB_STORE_NAME_MAX] == '\0');
    return number ? wb_repo_change(store, &c.change, hold, &c) : no_snapshot(number);
}

/* Whether somebody is among the holders whose time has not run out. A person has no name. */
static bool is_held_by(const struct wb_store_snapshot *snapshot, const struct wb_store_holder *wanted)
{
    WB_CHECK(wanted->kind <= WB_STORE_HOLDER_STREAM);
    WB_CHECK(snapshot->holders || snapshot->holder_count == 0);
    for (size_t i = 0; i < snapshot->holder_count; i++) {
        const struct wb_store_holder *holder = &snapshot->holders[i];
        if (holder->kind == wanted->kind &&
            (holder->kind == WB_STORE_HOLDER_PERSON || strcmp(holder->name, wanted->name) == 0))
            return true;
    }
    return false;
}

static int let_go(void *context)
{
    struct snapshot_change *c = context;
    struct wb_store_snapshot snapshot;
    int err = find_for_change(c, &snapshot);

    WB_CHECK(c->change.txn.kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(c->holder != NULL);
    if (err == 0 && !is_held_by(&snapshot, c->holder))
        err = wb_fail(WB_E_NOTFOUND, "snapshot %u is not held by %s", (unsigned)c->number,
                      c->holder->name[0] ? c->holder->name : "a person");
    if (err == 0)
        err = wb_catalog_holder_delete(&c->change.txn, c->number, c->holder);
    if (err == 0 && snapshot.holder_count == 1)
        err = delete_snapshot(c, c->number);
    wb_store_snapshot_release(&snapshot);
    return err;
}

int wb_repo_let_go(struct wb_store *store, uint32_t number, const struct wb_store_holder *holder)
{
    struct snapshot_change c = {.number = number, .holder = holder};

    WB_CHECK(holder->kind <= WB_STORE_HOLDER_STREAM);
    WB_CHECK(holder->name[WB_STORE_NAME_MAX] == '\0');
    return number ? wb_repo_change(store, &c.change, let_go, &c) : no_snapshot(number);
}

/* ---- the policy ------------------------------------------------------------------------------------------ */

int wb_repo_history(struct wb_store *store, struct wb_store_history *history_out)
{
    struct wb_catalog_summary summary;
    int err = wb_repo_summary(wb_repo_of(store), &summary);

    WB_CHECK(summary.history.keep <= WB_STORE_KEEP_DURATION);
    *history_out = summary.history;
    return err;
}

static int set_policy(void *context)
{
    struct snapshot_change *c = context;

    WB_CHECK(c->change.txn.kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(c->history != NULL);
    c->change.summary.history = *c->history;
    return 0;
}

int wb_repo_set_history(struct wb_store *store, const struct wb_store_history *history)
{
    struct snapshot_change c = {.history = history};

    WB_CHECK(history->keep <= WB_STORE_KEEP_DURATION);
    WB_CHECK(history->value <= WB_STORE_HISTORY_VALUE_MAX);
    return wb_repo_change(store, &c.change, set_policy, &c);
}

/* ---- keeping a state for a reader ------------------------------------------------------------------ */

/*
 * A pin is a lock of the kernel on the epoch's number (tree_pin.c). Every commit, and the
 * beginning of a compaction, treats pinned epochs like those of snapshots. Two things make this hold:
 *
 *   - A transaction that was under way when we pinned may not have seen the pin. So we wait for it.
 *   - It may have begun a new epoch meanwhile. So we pin the newest epoch and the one after it, and
 *     then see which of the two it is.
 */
enum { PIN_TRIES = 100 };

/* Reads, in a transaction of its own, which epoch is meant. */
static int read_epoch(struct wb_catalog *catalog, uint32_t snapshot, uint64_t *epoch_out)
{
    struct wb_catalog_summary summary;
    struct wb_catalog_txn txn;
    int err = wb_catalog_txn_read(catalog, &txn);

    if (err < 0)
        return err;
    if (snapshot) {
        err = wb_repo_snapshot_epoch(&txn, snapshot, epoch_out);
    } else {
        err = wb_catalog_summary_get(&txn, &summary);
        *epoch_out = summary.epoch;
    }
    WB_CHECK(err < 0 || *epoch_out > 0);
    wb_catalog_txn_abort(&txn);
    return err;
}

int wb_repo_pin_epoch(struct wb_catalog *catalog, uint32_t snapshot, uint64_t *epoch_out)
{
    uint64_t seen, now = 0;
    int err = read_epoch(catalog, snapshot, &seen);

    WB_CHECK(err < 0 || seen > 0);
    *epoch_out = 0;
    for (unsigned i = 0; i < PIN_TRIES && err == 0; i++) {
        err = wb_catalog_pin(catalog, seen);
        if (err == 0)
            err = wb_catalog_pin(catalog, seen + 1);
        if (err == 0)
            err = wb_tree_pins_settle(wb_catalog_tree(catalog));
        if (err == 0)
            err = read_epoch(catalog, snapshot, &now);
        for (uint64_t pinned = seen; pinned <= seen + 1; pinned++)
            if (err < 0 || pinned != now)
                wb_catalog_unpin(catalog, pinned);
        if (err == 0 && (now == seen || now == seen + 1)) {
            *epoch_out = now;
            return 0;
        }
        seen = now;
    }
    return err < 0 ? err : wb_fail(WB_E_BUSY, "%s changes too fast to be read", wb_catalog_path(catalog));
}
