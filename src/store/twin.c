/*
 * twin.c - the same interface as the organisations on disk, over plain arrays and
 * linear search. Model tests run one trace through both: where they differ, the
 * twin is right, because it is too simple to be wrong. Nothing else uses it.
 *
 * Two states: `now`, which puts and removes change at once, and `committed`, a
 * full copy made by commit.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"
#include "store/organisation.h"
#include "store/twin.h"

struct version {
    struct wb_pageid id;
    struct wb_buf record;
    int64_t time_ms;
    uint32_t epoch, lifetime_count;
};

struct versions {
    struct version *list;
    size_t count, cap;
};

struct known_revisit {
    struct wb_pageid id;
    char *site;
    struct wb_store_revisit revisit;
};

struct known_bar {
    struct wb_store_bar bar; /* bar.site borrows from site */
    char *site;
};

struct state {
    struct versions pages, old;
    struct known_revisit *revisits;
    size_t revisit_count;
    struct known_bar *bars;
    size_t bar_count;
    uint32_t epoch, snapshot, snapshot_epoch;
};

struct twin {
    struct wb_store store;
    struct state now, committed;
    struct wb_store_commit_counts counts;
};

struct twin_scan {
    struct wb_store_scan scan;
    struct state state;
    struct wb_store_scan_options options;
    char *site;
    size_t at;
    struct version *list;
    size_t count;
};

static struct twin *twin_of(struct wb_store *store)
{
    return (struct twin *)store;
}

/* ---- lists of versions -------------------------------------------------------------------- */

static struct version *find(const struct versions *versions, struct wb_pageid id)
{
    for (size_t i = 0; i < versions->count; i++)
        if (wb_pageid_equal(versions->list[i].id, id))
            return &versions->list[i];
    return NULL;
}

static void clear(struct versions *versions)
{
    for (size_t i = 0; i < versions->count; i++)
        wb_buf_release(&versions->list[i].record);
    wb_free(versions->list);
    *versions = (struct versions){0};
}

/* Moves a version into the list, which owns it from now on. */
static int add(struct versions *versions, struct version *version)
{
    if (versions->count == versions->cap) {
        size_t cap = versions->cap ? versions->cap * 2 : 16;
        struct version *grown = wb_realloc(versions->list, cap * sizeof *grown);
        if (!grown)
            return WB_E_NOMEM;
        versions->list = grown;
        versions->cap = cap;
    }
    versions->list[versions->count++] = *version;
    version->record = WB_BUF_INIT;
    return 0;
}

static void drop(struct versions *versions, struct version *version)
{
    wb_buf_release(&version->record);
    *version = versions->list[--versions->count];
}

static int copy(const struct versions *from, struct versions *to_out)
{
    *to_out = (struct versions){0};
    for (size_t i = 0; i < from->count; i++) {
        struct version version = from->list[i];
        version.record = WB_BUF_INIT;
        int err = wb_buf_append_slice(&version.record, wb_buf_slice(&from->list[i].record));
        if (err == 0)
            err = add(to_out, &version);
        wb_buf_release(&version.record);
        if (err < 0) {
            clear(to_out);
            return err;
        }
    }
    return 0;
}

static void state_release(struct state *state)
{
    clear(&state->pages);
    clear(&state->old);
    for (size_t i = 0; i < state->revisit_count; i++)
        wb_free(state->revisits[i].site);
    for (size_t i = 0; i < state->bar_count; i++)
        wb_free(state->bars[i].site);
    wb_free(state->revisits);
    wb_free(state->bars);
    *state = (struct state){0};
}

static int add_revisit(struct state *state, struct wb_pageid id, struct wb_slice site, const struct wb_store_revisit *revisit)
{
    struct known_revisit *grown = wb_realloc(state->revisits, (state->revisit_count + 1) * sizeof *grown);
    char *name = grown ? wb_strndup(site.ptr, site.len) : NULL;

    if (grown)
        state->revisits = grown;
    if (!name)
        return WB_E_NOMEM;
    state->revisits[state->revisit_count++] = (struct known_revisit){id, name, *revisit};
    return 0;
}

static int add_bar(struct state *state, const struct wb_store_bar *bar)
{
    struct known_bar *grown = wb_realloc(state->bars, (state->bar_count + 1) * sizeof *grown);
    char *name = grown ? wb_strndup(bar->site.ptr, bar->site.len) : NULL;

    if (grown)
        state->bars = grown;
    if (!name)
        return WB_E_NOMEM;
    state->bars[state->bar_count] = (struct known_bar){*bar, name};
    state->bars[state->bar_count++].bar.site = wb_slice(name, bar->site.len);
    return 0;
}

static int state_copy(const struct state *from, struct state *to_out)
{
    int err;

    *to_out = (struct state){.epoch = from->epoch, .snapshot = from->snapshot, .snapshot_epoch = from->snapshot_epoch};
    err = copy(&from->pages, &to_out->pages);
    if (err == 0)
        err = copy(&from->old, &to_out->old);
    for (size_t i = 0; i < from->revisit_count && err == 0; i++)
        err = add_revisit(to_out, from->revisits[i].id, wb_slice_str(from->revisits[i].site), &from->revisits[i].revisit);
    for (size_t i = 0; i < from->bar_count && err == 0; i++)
        err = add_bar(to_out, &from->bars[i].bar);
    if (err < 0)
        state_release(to_out);
    return err;
}

/* ---- bars ------------------------------------------------------------------------------------- */

static struct known_bar *find_bar(struct state *state, enum wb_store_bar_kind kind, struct wb_pageid id, struct wb_slice site)
{
    for (size_t i = 0; i < state->bar_count; i++) {
        struct wb_store_bar *bar = &state->bars[i].bar;
        if (bar->kind == kind && (kind == WB_STORE_BAR_PAGE ? wb_pageid_equal(bar->id, id) : wb_slice_equal(bar->site, site)))
            return &state->bars[i];
    }
    return NULL;
}

static void drop_bar(struct state *state, struct known_bar *known)
{
    wb_free(known->site);
    *known = state->bars[--state->bar_count];
}

static bool is_barred(struct state *state, struct wb_pageid id, struct wb_slice site)
{
    struct known_bar *page = find_bar(state, WB_STORE_BAR_PAGE, id, site);

    return page ? !page->bar.except : find_bar(state, WB_STORE_BAR_SITE, id, site) != NULL;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* The latest version leaves: to class A where the snapshot has it. */
static int retire(struct state *state, struct version *version)
{
    if (state->snapshot && version->epoch <= state->snapshot_epoch) {
        struct version moved = *version;
        version->record = WB_BUF_INIT;
        int err = add(&state->old, &moved);
        wb_buf_release(&moved.record);
        if (err < 0)
            return err;
    }
    drop(&state->pages, version);
    return 0;
}

static int twin_put(struct wb_store *store, const struct wb_page *page, enum wb_store_outcome *outcome_out)
{
    struct twin *twin = twin_of(store);
    struct version *before = find(&twin->now.pages, page->id), version = {.id = page->id, .time_ms = page->time_ms};
    struct wb_page digested = *page;
    int err;

    *outcome_out = before ? WB_STORE_PUT_REPLACED : WB_STORE_PUT_NEW;
    if (is_barred(&twin->now, page->id, wb_key_site(page->key))) {
        twin->counts.barred++;
        *outcome_out = WB_STORE_PUT_BARRED;
        return 0;
    }
    if (before && !wb_store_time_replaces(page->time_ms, before->time_ms, wb_clock_wall_ms())) {
        twin->counts.older++;
        *outcome_out = WB_STORE_PUT_OLDER;
        return 0;
    }
    wb_page_digest(&digested);
    err = wb_page_encode(&digested, &version.record);
    if (err < 0)
        return err;
    version.epoch = twin->now.epoch;
    version.lifetime_count = page->lifetime_count ? page->lifetime_count : page->lifetime;
    if (before)
        twin->counts.replaced++;
    else
        twin->counts.added++;
    if (before)
        err = retire(&twin->now, before);
    if (err == 0)
        err = add(&twin->now.pages, &version);
    wb_buf_release(&version.record);
    return err;
}

static int twin_touch(struct wb_store *store, struct wb_pageid id, int64_t time_ms)
{
    struct twin *twin = twin_of(store);
    struct version *version = find(&twin->now.pages, id);
    struct wb_page page;

    if (!version)
        return wb_fail(WB_E_NOTFOUND, "not in the repository");
    if (wb_store_time_replaces(time_ms, version->time_ms, wb_clock_wall_ms()))
        version->time_ms = time_ms;
    wb_page_decode(wb_buf_slice(&version->record), &page);
    version->lifetime_count = page.lifetime;
    twin->counts.touched++;
    return 0;
}

static int twin_time(struct wb_store *store, struct wb_pageid id, int64_t *time_ms_out)
{
    const struct version *version = find(&twin_of(store)->now.pages, id);

    if (!version)
        return wb_fail(WB_E_NOTFOUND, "not in the repository");
    *time_ms_out = version->time_ms;
    return 0;
}

static int twin_remove(struct wb_store *store, struct wb_pageid id, struct wb_slice site, bool everywhere)
{
    struct twin *twin = twin_of(store);
    struct version *version = find(&twin->now.pages, id), *old = find(&twin->now.old, id);

    (void)site;
    if (!version && !(everywhere && old))
        return wb_fail(WB_E_NOTFOUND, "not in the repository");
    twin->counts.removed++;
    if (!everywhere)
        return retire(&twin->now, version);
    if (version)
        drop(&twin->now.pages, version);
    if (old)
        drop(&twin->now.old, old);
    return 0;
}

static struct known_revisit *find_revisit(struct state *state, struct wb_pageid id)
{
    for (size_t i = 0; i < state->revisit_count; i++)
        if (wb_pageid_equal(state->revisits[i].id, id))
            return &state->revisits[i];
    return NULL;
}

static int twin_put_revisit(struct wb_store *store, struct wb_pageid id, struct wb_slice site, const struct wb_store_revisit *revisit)
{
    struct twin *twin = twin_of(store);
    struct known_revisit *known = find_revisit(&twin->now, id);

    if (is_barred(&twin->now, id, site)) {
        twin->counts.barred++;
        return 0;
    }
    if (!known)
        return add_revisit(&twin->now, id, site, revisit);
    if (known->revisit.time_ms < revisit->time_ms)
        known->revisit = *revisit;
    return 0;
}

static int twin_get_revisit(struct wb_store *store, struct wb_pageid id, struct wb_store_revisit *revisit_out)
{
    struct known_revisit *known = find_revisit(&twin_of(store)->now, id);

    if (!known)
        return wb_fail(WB_E_NOTFOUND, "not in the repository");
    *revisit_out = known->revisit;
    return 0;
}

static int twin_commit(struct wb_store *store, struct wb_store_commit_counts *commit_inout)
{
    struct twin *twin = twin_of(store);
    struct state copied;
    int err = state_copy(&twin->now, &copied);

    if (err < 0)
        return err;
    state_release(&twin->committed);
    twin->committed = copied;
    commit_inout->added += twin->counts.added;
    commit_inout->replaced += twin->counts.replaced;
    commit_inout->older += twin->counts.older;
    commit_inout->barred += twin->counts.barred;
    commit_inout->touched += twin->counts.touched;
    commit_inout->removed += twin->counts.removed;
    twin->counts = (struct wb_store_commit_counts){0};
    return 0;
}

/* Commits what was put before, as the organisations on disk do; what a bar or its end changes is committed again. */
static int commit_quietly(struct wb_store *store)
{
    struct wb_store_commit_counts counts = {0};

    return twin_commit(store, &counts);
}

static int twin_bar(struct wb_store *store, const struct wb_store_bar *bar)
{
    struct state *now = &twin_of(store)->now;
    int err = commit_quietly(store);
    struct known_bar *known = find_bar(now, bar->kind, bar->id, bar->site);

    if (err < 0)
        return err;
    if (known)
        drop_bar(now, known);
    for (size_t i = 0; bar->kind == WB_STORE_BAR_SITE && i < now->bar_count;)
        if (now->bars[i].bar.except && wb_slice_equal(now->bars[i].bar.site, bar->site))
            drop_bar(now, &now->bars[i]);
        else
            i++;
    for (size_t i = 0; !bar->except && i < now->revisit_count;) {
        struct known_revisit *revisit = &now->revisits[i];
        bool goes = bar->kind == WB_STORE_BAR_PAGE ? wb_pageid_equal(revisit->id, bar->id) : wb_slice_equal(wb_slice_str(revisit->site), bar->site);
        if (goes) {
            wb_free(revisit->site);
            *revisit = now->revisits[--now->revisit_count];
        } else {
            i++;
        }
    }
    err = add_bar(now, bar);
    return err < 0 ? err : commit_quietly(store);
}

static int allow_page(struct state *now, const struct wb_store_bar *bar)
{
    struct known_bar *page = find_bar(now, WB_STORE_BAR_PAGE, bar->id, bar->site);
    bool site_barred = find_bar(now, WB_STORE_BAR_SITE, bar->id, bar->site) != NULL;

    if (page ? page->bar.except : !site_barred)
        return wb_fail(WB_E_NOTFOUND, "the page is not barred");
    if (page && site_barred)
        page->bar.except = true;
    else if (page)
        drop_bar(now, page);
    else
        return add_bar(now, &(struct wb_store_bar){.kind = WB_STORE_BAR_PAGE, .id = bar->id, .site = bar->site, .except = true, .time_ms = bar->time_ms});
    return 0;
}

static int allow_site(struct state *now, struct wb_slice site)
{
    bool lifted = false;

    for (size_t i = 0; i < now->bar_count;)
        if (wb_slice_equal(now->bars[i].bar.site, site)) {
            drop_bar(now, &now->bars[i]);
            lifted = true;
        } else {
            i++;
        }
    return lifted ? 0 : wb_fail(WB_E_NOTFOUND, "%.*s is not barred", WB_SLICE_ARG(site));
}

static int twin_allow(struct wb_store *store, const struct wb_store_bar *bar)
{
    struct state *now = &twin_of(store)->now;
    int err = commit_quietly(store);

    if (err == 0)
        err = bar->kind == WB_STORE_BAR_PAGE ? allow_page(now, bar) : allow_site(now, bar->site);
    return err < 0 ? err : commit_quietly(store);
}

static int twin_barred(struct wb_store *store, struct wb_pageid id, struct wb_slice site)
{
    return is_barred(&twin_of(store)->committed, id, site);
}

static int twin_bar_each(struct wb_store *store, int (*each)(void *context, const struct wb_store_bar *bar), void *context)
{
    struct state *state = &twin_of(store)->committed;
    int err = 0;

    for (size_t i = 0; i < state->bar_count && err == 0; i++)
        err = each(context, &state->bars[i].bar);
    return err;
}

static int twin_snapshot(struct wb_store *store, uint32_t *snapshot_out)
{
    struct twin *twin = twin_of(store);
    struct wb_store_commit_counts counts = {0};

    clear(&twin->now.old);
    twin->now.snapshot++;
    twin->now.snapshot_epoch = twin->now.epoch++;
    int err = twin_commit(store, &counts);
    if (err == 0)
        *snapshot_out = twin->now.snapshot;
    return err;
}

/* ---- reading ------------------------------------------------------------------------------------ */

static int page_of(const struct version *version, struct wb_page *page_out)
{
    int err = wb_page_decode(wb_buf_slice(&version->record), page_out);

    page_out->id = version->id;
    page_out->time_ms = version->time_ms;
    page_out->epoch = version->epoch;
    page_out->lifetime_count = version->lifetime_count;
    return err;
}

static int twin_get(struct wb_store *store, struct wb_pageid id, struct wb_page *page_out, struct wb_buf *mem_out)
{
    struct version *version = find(&twin_of(store)->now.pages, id), copied;
    int err;

    if (!version)
        return wb_fail(WB_E_NOTFOUND, "not in the repository");
    wb_buf_clear(mem_out);
    err = wb_buf_append_slice(mem_out, wb_buf_slice(&version->record));
    if (err < 0)
        return err;
    copied = *version;
    copied.record = *mem_out;
    return page_of(&copied, page_out);
}

/* The versions of the view, gathered in pages of the scan's own copy. */
static int gather(struct twin_scan *scan)
{
    if (scan->options.view == WB_STORE_VIEW_SNAPSHOT) {
        for (size_t i = 0; i < scan->state.pages.count;)
            if (scan->state.pages.list[i].epoch > scan->state.snapshot_epoch)
                drop(&scan->state.pages, &scan->state.pages.list[i]);
            else
                i++;
        for (size_t i = 0; i < scan->state.old.count; i++) {
            int err = add(&scan->state.pages, &scan->state.old.list[i]);
            if (err < 0)
                return err;
        }
    }
    scan->list = scan->state.pages.list;
    scan->count = scan->state.pages.count;
    return 0;
}

static void twin_scan_close(struct wb_store_scan *base)
{
    struct twin_scan *scan = (struct twin_scan *)base;

    state_release(&scan->state);
    wb_free(scan->site);
    wb_free(scan);
}

static int twin_scan_open(struct wb_store *store, const struct wb_store_scan_options *options, struct wb_store_scan **scan_out)
{
    struct twin_scan *scan = wb_alloc_zero(1, sizeof *scan);
    int err;

    if (!scan)
        return WB_E_NOMEM;
    wb_store_scan_init(&scan->scan, store);
    scan->options = *options;
    scan->site = wb_strndup(options->site.ptr ? options->site.ptr : "", options->site.len);
    err = scan->site ? state_copy(&twin_of(store)->committed, &scan->state) : WB_E_NOMEM;
    if (err == 0)
        err = gather(scan);
    if (err < 0) {
        twin_scan_close(&scan->scan);
        return err;
    }
    *scan_out = &scan->scan;
    return 0;
}

static int twin_scan_next(struct wb_store_scan *base, struct wb_page *page_out)
{
    struct twin_scan *scan = (struct twin_scan *)base;

    while (scan->at < scan->count) {
        const struct version *version = &scan->list[scan->at++];
        int err = page_of(version, page_out);
        if (err < 0)
            return err;
        if (scan->options.parts > 1 && version->id.hi % scan->options.parts != scan->options.part - 1)
            continue;
        if (scan->options.site.len == 0 || wb_slice_equal(wb_key_site(page_out->key), wb_slice_str(scan->site)))
            return 1;
    }
    return 0;
}

static int list_versions(const struct versions *versions, struct wb_slice site, struct wb_pageid *ids_out, size_t max, size_t *count_inout)
{
    struct wb_page page;

    for (size_t i = 0; i < versions->count; i++) {
        bool listed = false;
        int err = page_of(&versions->list[i], &page);
        if (err < 0)
            return err;
        for (size_t j = 0; j < *count_inout && !listed; j++)
            listed = wb_pageid_equal(ids_out[j], page.id);
        if (!listed && *count_inout < max && wb_slice_equal(wb_key_site(page.key), site))
            ids_out[(*count_inout)++] = page.id;
    }
    return 0;
}

static int twin_list_site(struct wb_store *store, struct wb_slice site, struct wb_pageid *ids_out, size_t max, size_t *count_out)
{
    struct state *state = &twin_of(store)->committed;
    int err = list_versions(&state->pages, site, ids_out, max, count_out);

    return err < 0 ? err : list_versions(&state->old, site, ids_out, max, count_out);
}

static int twin_stat(struct wb_store *store, struct wb_store_stat *stat_out)
{
    struct state *state = &twin_of(store)->committed;
    struct wb_page page, other;

    *stat_out = (struct wb_store_stat){
        .pages = state->pages.count, .pages_old = state->old.count, .revisits = state->revisit_count, .bars = state->bar_count, .epoch = state->epoch,
        .snapshot = state->snapshot, .organisation = "memory", .update = "incremental"};
    for (size_t i = 0; i < state->pages.count; i++) {
        bool first = true;
        page_of(&state->pages.list[i], &page);
        stat_out->bytes_pages += page.body.len;
        for (size_t j = 0; j < i && first; j++) {
            page_of(&state->pages.list[j], &other);
            first = !wb_slice_equal(wb_key_site(page.key), wb_key_site(other.key));
        }
        stat_out->sites += first;
    }
    return 0;
}

static int twin_compact(struct wb_store *store, wb_store_progress progress, void *progress_context, wb_store_found found,
                        void *found_context, struct wb_store_compact_counts *compact_out)
{
    struct wb_store_commit_counts counts = {0};

    (void)progress;
    (void)progress_context;
    (void)found;
    (void)found_context;
    (void)compact_out;
    return twin_commit(store, &counts); /* as the organisations on disk do before they compact */
}

static void twin_close(struct wb_store *store)
{
    struct twin *twin = twin_of(store);

    state_release(&twin->now);
    state_release(&twin->committed);
    wb_free(twin);
}

static const struct wb_store_ops twin_ops = {
    .close = twin_close,
    .put = twin_put,
    .touch = twin_touch,
    .time = twin_time,
    .remove = twin_remove,
    .put_revisit = twin_put_revisit,
    .get_revisit = twin_get_revisit,
    .bar = twin_bar,
    .allow = twin_allow,
    .barred = twin_barred,
    .bar_each = twin_bar_each,
    .list_site = twin_list_site,
    .commit = twin_commit,
    .snapshot = twin_snapshot,
    .get = twin_get,
    .scan_open = twin_scan_open,
    .scan_next = twin_scan_next,
    .scan_close = twin_scan_close,
    .stat = twin_stat,
    .compact = twin_compact,
};

int wb_twin_open(struct wb_store **store_out)
{
    struct twin *twin = wb_alloc_zero(1, sizeof *twin);

    *store_out = NULL;
    if (!twin)
        return WB_E_NOMEM;
    wb_store_init(&twin->store, WB_STORE_WRITE, &twin_ops);
    twin->now.epoch = twin->committed.epoch = 1;
    *store_out = &twin->store;
    return 0;
}

void wb_twin_reopen(struct wb_store *store)
{
    struct twin *twin = twin_of(store);
    struct state copied;

    WB_CHECK(store->ops == &twin_ops);
    WB_CHECK(state_copy(&twin->committed, &copied) == 0);
    state_release(&twin->now);
    twin->now = copied;
    twin->counts = (struct wb_store_commit_counts){0};
}
