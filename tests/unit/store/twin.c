/*
 * twin.c - the store in plain memory that tests compare the organisations with (twin.h).
 * When the two disagree, the twin is right, because it is too simple to be wrong: it has a
 * state `now`, which every call changes at once, and a state `committed`, which commit
 * replaces by a full copy of `now`. There is no disk, no thread and no index.
 */
#include "twin.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"
#include "twin_state.h"

_Static_assert(offsetof(struct wb_twin, store) == 0, "a wb_store of this kind is a wb_twin");

struct wb_twin *wb_twin_of(struct wb_store *store)
{
    struct wb_twin *twin = (struct wb_twin *)store;

    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(twin->magic == WB_TWIN_MAGIC);
    return twin;
}

void wb_twin_rule_now(struct wb_twin *twin, struct wb_twin_rule *rule_out)
{
    *rule_out = (struct wb_twin_rule){.policy = twin->history, .now_ms = wb_clock_wall_ms()};
    for (size_t i = 0; i < twin->snapshots.list.count; i++) {
        const struct wb_store_snapshot *sealed = &twin->snapshots.list.items[i].sealed;
        if (wb_twin_snapshot_find(&twin->snapshots, sealed->number, rule_out->now_ms))
            WB_CHECK(wb_vec_push(&rule_out->held, sealed->epoch) == 0);
    }
    for (size_t i = 0; i < twin->scans.count; i++)
        WB_CHECK(wb_vec_push(&rule_out->held, wb_twin_scan_epoch(twin->scans.items[i])) == 0);
}

void wb_twin_rule_release(struct wb_twin_rule *rule)
{
    wb_vec_release(&rule->held);
}

/* ---- writing --------------------------------------------------------------------------------- */

static void count(struct wb_twin *twin, enum wb_store_outcome outcome)
{
    struct wb_store_commit_counts *counts = &twin->counts;

    switch (outcome) {
    case WB_STORE_PUT_NEW:
        counts->added++;
        break;
    case WB_STORE_PUT_VERSION:
        counts->replaced++;
        break;
    case WB_STORE_PUT_CAPTURE:
        counts->captures++;
        break;
    case WB_STORE_PUT_PAST:
        counts->past++;
        break;
    case WB_STORE_PUT_KNOWN:
    case WB_STORE_PUT_OLDER:
        counts->older++;
        break;
    case WB_STORE_PUT_BARRED:
        counts->barred++;
        break;
    }
}

/*
 * Adds a capture to `now`. The lifetime belongs to the page: a new latest version takes it over.
 */
static enum wb_store_outcome insert(struct wb_twin *twin, struct wb_pageid id, int64_t time_ms,
                                    struct wb_twin_record *record, bool put)
{
    struct wb_twin_page *page = wb_twin_page_make(&twin->now, id);
    const struct wb_twin_version *latest = wb_twin_latest(page);
    uint32_t lifetime = latest ? latest->lifetime : 0, lifetime_count = latest ? latest->lifetime_count : 0;
    struct wb_twin_rule rule;

    wb_twin_rule_now(twin, &rule);
    enum wb_store_outcome outcome = wb_twin_insert(page, &rule, time_ms, record, put, twin->committed.epoch + 1);
    wb_twin_rule_release(&rule);
    if (outcome > WB_STORE_PUT_PAST)
        return outcome;
    page->concerned = twin->now.changed = true;
    if (outcome == WB_STORE_PUT_NEW || outcome == WB_STORE_PUT_VERSION) {
        struct wb_twin_version *version = wb_twin_latest(page);
        version->lifetime = lifetime;
        version->lifetime_count = lifetime_count;
    }
    return outcome;
}

/* What the caller is told, and the next commit counts: a policy that keeps no past does not keep this either. */
static enum wb_store_outcome as_kept(const struct wb_twin *twin, enum wb_store_outcome outcome)
{
    return outcome == WB_STORE_PUT_PAST && twin->history.keep == WB_STORE_KEEP_NEWEST ? WB_STORE_PUT_OLDER : outcome;
}

/* The latest version, if the capture that was just added is its newest. */
static struct wb_twin_version *renewed(struct wb_twin *twin, struct wb_pageid id, int64_t time_ms,
                                       enum wb_store_outcome outcome)
{
    struct wb_twin_version *latest = wb_twin_latest(wb_twin_page_find(&twin->now, id));

    return latest && outcome <= WB_STORE_PUT_CAPTURE && wb_twin_version_last(latest) == time_ms ? latest : NULL;
}

static int twin_put(struct wb_store *store, const struct wb_page *page, enum wb_store_outcome *outcome_out)
{
    struct wb_twin *twin = wb_twin_of(store);

    if (wb_twin_barred(&twin->bars, page->id, wb_key_site(page->key))) {
        count(twin, *outcome_out = WB_STORE_PUT_BARRED);
        return 0;
    }
    struct wb_twin_record *record = wb_twin_record_new(page);
    const struct wb_twin_page *known = wb_twin_page_find(&twin->now, page->id);
    enum wb_store_outcome outcome = known && wb_twin_covered(known, page->time_ms, record)
                                        ? WB_STORE_PUT_KNOWN
                                        : insert(twin, page->id, page->time_ms, record, true);
    struct wb_twin_version *latest = renewed(twin, page->id, page->time_ms, outcome);
    wb_twin_record_unref(record);
    if (latest) {
        latest->lifetime = page->lifetime;
        latest->lifetime_count = page->lifetime_count ? page->lifetime_count : page->lifetime;
    }
    count(twin, *outcome_out = as_kept(twin, outcome));
    return 0;
}

static int twin_touch(struct wb_store *store, struct wb_pageid id, int64_t time_ms)
{
    struct wb_twin *twin = wb_twin_of(store);
    struct wb_twin_page *page = wb_twin_page_find(&twin->now, id);
    struct wb_twin_version *latest = page ? wb_twin_latest(page) : NULL;

    if (!latest)
        return wb_store_not_found();
    struct wb_twin_record *record = wb_twin_record_ref(latest->record);
    bool renews = latest->lifetime_count != latest->lifetime;
    enum wb_store_outcome outcome = insert(twin, id, time_ms, record, false);
    wb_twin_record_unref(record);
    if (renews && outcome > WB_STORE_PUT_PAST)
        outcome = WB_STORE_PUT_CAPTURE;
    count(twin, as_kept(twin, outcome));
    page->concerned = true;
    twin->now.changed = twin->now.changed || renews;
    latest = wb_twin_latest(page);
    latest->lifetime_count = latest->lifetime;
    return 0;
}

static int twin_remove(struct wb_store *store, struct wb_pageid id, struct wb_slice site, int64_t time_ms,
                       bool everywhere)
{
    struct wb_twin *twin = wb_twin_of(store);
    struct wb_twin_page *page = wb_twin_page_find(&twin->now, id);
    struct wb_twin_rule rule;

    (void)site;
    if (!page || !(everywhere || wb_twin_latest(page)))
        return wb_store_not_found();
    twin->counts.removed++;
    twin->now.changed = true;
    if (everywhere) {
        WB_CHECK(wb_vec_push(&twin->taken_down, id) == 0);
        wb_twin_page_drop(&twin->now, page);
        return 0;
    }
    wb_twin_rule_now(twin, &rule);
    wb_twin_end(page, time_ms, twin->committed.epoch + 1, &rule);
    wb_twin_rule_release(&rule);
    page->concerned = true;
    if (page->versions.count == 0)
        wb_twin_page_drop(&twin->now, page);
    return 0;
}

/* ---- revisits -------------------------------------------------------------------------------------- */

/* Makes a revisit a capture. Returns false if its original is not there. */
static bool resolve(struct wb_twin *twin, const struct wb_store_revisit *revisit, enum wb_store_outcome *outcome_out)
{
    struct wb_twin_page *page = wb_twin_page_find(&twin->now, revisit->id);
    struct wb_twin_version *original = page ? wb_twin_original(page, revisit) : NULL;

    if (!original)
        return false;
    struct wb_twin_record *record = wb_twin_record_ref(original->record);
    *outcome_out = insert(twin, revisit->id, revisit->time_ms, record, false);
    struct wb_twin_version *latest = renewed(twin, revisit->id, revisit->time_ms, *outcome_out);
    wb_twin_record_unref(record);
    if (latest)
        latest->lifetime_count = latest->lifetime;
    return true;
}

static bool is_waiting(const struct wb_twin_state *state, const struct wb_store_revisit *revisit)
{
    for (size_t i = 0; i < state->revisits.count; i++)
        if (wb_pageid_equal(state->revisits.items[i].revisit.id, revisit->id) &&
            state->revisits.items[i].revisit.time_ms == revisit->time_ms)
            return true;
    return false;
}

static int twin_put_revisit(struct wb_store *store, const struct wb_store_revisit *revisit,
                            enum wb_store_outcome *outcome_out)
{
    struct wb_twin *twin = wb_twin_of(store);
    enum wb_store_outcome outcome;

    if (wb_twin_barred(&twin->bars, revisit->id, revisit->site)) {
        count(twin, *outcome_out = WB_STORE_PUT_BARRED);
    } else if (resolve(twin, revisit, &outcome)) {
        count(twin, *outcome_out = as_kept(twin, outcome));
        if (*outcome_out <= WB_STORE_PUT_PAST)
            *outcome_out = WB_STORE_PUT_CAPTURE;
    } else if (is_waiting(&twin->now, revisit)) {
        count(twin, *outcome_out = WB_STORE_PUT_KNOWN);
    } else {
        struct wb_twin_page *page = wb_twin_page_find(&twin->now, revisit->id);
        if (page)
            page->concerned = true;
        wb_twin_revisit_add(&twin->now, revisit);
        *outcome_out = WB_STORE_PUT_NEW;
    }
    return 0;
}

static int twin_get_revisit(struct wb_store *store, struct wb_pageid id, struct wb_store_revisit *revisit_out)
{
    struct wb_twin_state *now = &wb_twin_of(store)->now;

    for (size_t i = now->revisits.count; i-- > 0;)
        if (wb_pageid_equal(now->revisits.items[i].revisit.id, id)) {
            *revisit_out = now->revisits.items[i].revisit;
            revisit_out->site = revisit_out->url = WB_SLICE_EMPTY;
            return 0;
        }
    return wb_store_not_found();
}

static int twin_waiting_each(struct wb_store *store, struct wb_pageid original,
                             int (*each)(void *context, const struct wb_store_revisit *revisit), void *context)
{
    struct wb_twin_state *now = &wb_twin_of(store)->now;
    int err = 0;

    for (size_t i = 0; i < now->revisits.count && err == 0; i++) {
        struct wb_store_revisit revisit = now->revisits.items[i].revisit;
        revisit.site = wb_slice("", 0);
        if (wb_pageid_equal(revisit.original, original) && !wb_pageid_equal(revisit.id, original))
            err = each(context, &revisit);
    }
    return err;
}

/* ---- committing ------------------------------------------------------------------------------------ */

/* What waits for the content of a page that this commit concerns may have found it. */
static void resolve_waiting(struct wb_twin *twin)
{
    for (size_t i = 0; i < twin->now.revisits.count;) {
        struct wb_store_revisit revisit = twin->now.revisits.items[i].revisit;
        const struct wb_twin_page *page = wb_twin_page_find(&twin->now, revisit.id);
        enum wb_store_outcome outcome;
        if (page && page->concerned && resolve(twin, &revisit, &outcome)) {
            twin->counts.captures += outcome <= WB_STORE_PUT_PAST;
            wb_twin_revisit_drop(&twin->now, i);
        } else {
            i++;
        }
    }
}

/* Gives up old versions of the pages that the commit concerns, or of all. */
static void trim(struct wb_twin *twin, bool all)
{
    struct wb_twin_rule rule;

    wb_twin_rule_now(twin, &rule);
    for (size_t i = 0; i < twin->now.pages.count;) {
        struct wb_twin_page *page = &twin->now.pages.items[i];
        if (all || page->concerned)
            wb_twin_trim(page, &rule);
        page->concerned = false;
        if (page->versions.count == 0)
            wb_twin_page_drop(&twin->now, page);
        else
            i++;
    }
    wb_twin_rule_release(&rule);
}

static void publish(struct wb_twin *twin)
{
    while (twin->taken_down.count) {
        struct wb_pageid id = wb_vec_pop(&twin->taken_down);
        for (size_t i = 0; i < twin->snapshots.list.count; i++) {
            struct wb_twin_page *page = wb_twin_page_find(&twin->snapshots.list.items[i].state, id);
            if (page)
                wb_twin_page_drop(&twin->snapshots.list.items[i].state, page);
        }
    }
    wb_twin_state_release(&twin->committed);
    wb_twin_state_copy(&twin->now, &twin->committed);
}

static int twin_commit(struct wb_store *store, struct wb_store_commit_counts *counts_inout)
{
    struct wb_twin *twin = wb_twin_of(store);

    resolve_waiting(twin);
    trim(twin, false);
    twin->now.epoch += twin->now.changed;
    twin->now.changed = false;
    publish(twin);
    wb_store_counts_add(counts_inout, &twin->counts);
    twin->counts = (struct wb_store_commit_counts){0};
    return 0;
}

static int commit_quietly(struct wb_store *store)
{
    struct wb_store_commit_counts counts = {0};

    return twin_commit(store, &counts);
}

void wb_twin_compact(struct wb_store *store)
{
    struct wb_twin *twin = wb_twin_of(store);

    commit_quietly(store);
    trim(twin, true);
    publish(twin);
}

/* ---- bars --------------------------------------------------------------------------------------------- */

static int twin_bar(struct wb_store *store, const struct wb_store_bar *bar)
{
    struct wb_twin *twin = wb_twin_of(store);

    commit_quietly(store);
    wb_twin_bar_set(&twin->bars, bar);
    twin->bar_changes++;
    for (size_t i = 0; !bar->except && i < twin->now.revisits.count;) {
        const struct wb_store_revisit *revisit = &twin->now.revisits.items[i].revisit;
        if (bar->kind == WB_STORE_BAR_PAGE ? wb_pageid_equal(revisit->id, bar->id)
                                           : wb_slice_equal(revisit->site, bar->site))
            wb_twin_revisit_drop(&twin->now, i);
        else
            i++;
    }
    publish(twin);
    return 0;
}

static int twin_allow(struct wb_store *store, const struct wb_store_bar *bar)
{
    commit_quietly(store);
    wb_twin_of(store)->bar_changes++;
    return wb_twin_bar_lift(&wb_twin_of(store)->bars, bar);
}

static int twin_barred(struct wb_store *store, struct wb_pageid id, struct wb_slice site)
{
    return wb_twin_barred(&wb_twin_of(store)->bars, id, site);
}

static int twin_bar_each(struct wb_store *store, int (*each)(void *context, const struct wb_store_bar *bar),
                         void *context)
{
    struct wb_twin_bars *bars = &wb_twin_of(store)->bars;
    int err = 0;

    for (size_t i = 0; i < bars->count && err == 0; i++) {
        struct wb_store_bar bar = bars->items[i].bar;
        if (bar.kind == WB_STORE_BAR_PAGE)
            bar.site = wb_slice("", 0);
        err = each(context, &bar);
    }
    return err;
}

static int twin_bar_version(struct wb_store *store, uint64_t *version_out)
{
    *version_out = wb_twin_of(store)->bar_changes;
    return 0;
}

/* ---- snapshots and history ----------------------------------------------------------------------------- */

static int twin_seal(struct wb_store *store, struct wb_slice name, const struct wb_store_holder *holder,
                     struct wb_store_snapshot *snapshot_out)
{
    struct wb_twin *twin = wb_twin_of(store);
    int64_t now_ms = wb_clock_wall_ms();

    commit_quietly(store);
    int err = wb_twin_seal(&twin->snapshots, name, holder, &twin->committed, now_ms);
    if (err == 0)
        wb_twin_snapshot_show(&twin->snapshots.list.items[twin->snapshots.list.count - 1], now_ms, snapshot_out);
    return err;
}

static int twin_drop(struct wb_store *store, uint32_t number)
{
    commit_quietly(store);
    return wb_twin_drop(&wb_twin_of(store)->snapshots, number, wb_clock_wall_ms());
}

static int twin_hold(struct wb_store *store, uint32_t number, const struct wb_store_holder *holder)
{
    commit_quietly(store);
    return wb_twin_hold(&wb_twin_of(store)->snapshots, number, holder, wb_clock_wall_ms());
}

static int twin_let_go(struct wb_store *store, uint32_t number, const struct wb_store_holder *holder)
{
    commit_quietly(store);
    return wb_twin_let_go(&wb_twin_of(store)->snapshots, number, holder, wb_clock_wall_ms());
}

static int twin_snapshot_each(struct wb_store *store,
                              int (*each)(void *context, const struct wb_store_snapshot *snapshot), void *context)
{
    struct wb_twin_snapshots *snapshots = &wb_twin_of(store)->snapshots;
    int64_t now_ms = wb_clock_wall_ms();
    int err = 0;

    for (size_t i = 0; i < snapshots->list.count && err == 0; i++) {
        struct wb_store_snapshot shown;
        if (!wb_twin_snapshot_find(snapshots, snapshots->list.items[i].sealed.number, now_ms))
            continue;
        wb_twin_snapshot_show(&snapshots->list.items[i], now_ms, &shown);
        err = each(context, &shown);
        wb_store_snapshot_release(&shown);
    }
    return err;
}

static int twin_history(struct wb_store *store, struct wb_store_history *history_out)
{
    *history_out = wb_twin_of(store)->history;
    return 0;
}

static int twin_set_history(struct wb_store *store, const struct wb_store_history *history)
{
    commit_quietly(store);
    wb_twin_of(store)->history = *history;
    return 0;
}

/* ---- the whole ------------------------------------------------------------------------------------ */

static void twin_close(struct wb_store *store)
{
    struct wb_twin *twin = wb_twin_of(store);

    WB_CHECK(twin->scans.count == 0);
    wb_vec_release(&twin->scans);
    wb_twin_state_release(&twin->now);
    wb_twin_state_release(&twin->committed);
    wb_vec_release(&twin->taken_down);
    wb_twin_bars_release(&twin->bars);
    wb_twin_snapshots_release(&twin->snapshots);
    wb_store_release(&twin->store);
    twin->magic = 0;
    wb_free(twin);
}

static const struct wb_store_ops twin_ops = {
    .close = twin_close,
    .put = twin_put,
    .touch = twin_touch,
    .remove = twin_remove,
    .put_revisit = twin_put_revisit,
    .get_revisit = twin_get_revisit,
    .waiting_each = twin_waiting_each,
    .bar = twin_bar,
    .allow = twin_allow,
    .barred = twin_barred,
    .bar_each = twin_bar_each,
    .bar_version = twin_bar_version,
    .list_site = wb_twin_list_site,
    .commit = twin_commit,
    .seal = twin_seal,
    .drop = twin_drop,
    .hold = twin_hold,
    .let_go = twin_let_go,
    .snapshot_each = twin_snapshot_each,
    .history = twin_history,
    .set_history = twin_set_history,
    .timeline = wb_twin_timeline,
    .get = wb_twin_get,
    .get_many = wb_twin_get_many,
    .time = wb_twin_time,
    .scan_open = wb_twin_scan_open,
    .scan_next = wb_twin_scan_next,
    .scan_parcel = wb_twin_scan_parcel,
    .position_compare = wb_twin_position_compare,
    .scan_tell = wb_twin_scan_tell,
    .scan_holds = wb_twin_scan_holds,
    .scan_close = wb_twin_scan_close,
    .stat = wb_twin_stat,
};

int wb_twin_open(struct wb_store **store_out)
{
    struct wb_twin *twin = wb_alloc_zero(1, sizeof *twin);

    WB_CHECK(twin);
    wb_store_init(&twin->store, WB_STORE_WRITE, &twin_ops);
    twin->magic = WB_TWIN_MAGIC;
    twin->now.epoch = twin->committed.epoch = 1;
    *store_out = &twin->store;
    return 0;
}

static void forget_contents(struct wb_twin_state *state)
{
    for (size_t i = 0; i < state->pages.count; i++) {
        struct wb_twin_page *page = &state->pages.items[i];
        page->forgotten_all = page->forgotten_all || page->forgotten.count > 0;
        while (page->forgotten.count)
            wb_twin_record_unref(wb_vec_pop(&page->forgotten));
    }
}

void wb_twin_converted(struct wb_store *store)
{
    forget_contents(&wb_twin_of(store)->now);
    forget_contents(&wb_twin_of(store)->committed);
}

void wb_twin_reopen(struct wb_store *store)
{
    struct wb_twin *twin = wb_twin_of(store);

    WB_CHECK(store->ops == &twin_ops);
    wb_vec_clear(&twin->taken_down);
    wb_twin_state_release(&twin->now);
    wb_twin_state_copy(&twin->committed, &twin->now);
    twin->counts = (struct wb_store_commit_counts){0};
}
