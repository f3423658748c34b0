/*
 * twin.c - the store in plain memory that tests compare the organisations with (twin.h).
 * When the two disagree, the twin is right, because it is too simple to be wrong: it has a
 * state `now`, which every call changes at once, and a state `committed`, which commit
 * replaces by a full copy of `now`. There is no disk, no thread and no index.
 */
#include "twin.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"
#include "store/organisation.h"
#include "twin_state.h"

enum { TWIN_MAGIC = 0x57425457 };

struct wb_twin {
    struct wb_store store; /* must be the first member */
    uint32_t magic;
    struct wb_twin_state now, committed;
    struct wb_store_commit_counts counts; /* since the last commit */
};

struct twin_scan {
    struct wb_store_scan scan; /* must be the first member */
    struct wb_twin_state state; /* a copy of the committed state; pages contains what the view shows */
    struct wb_store_scan_options options;
    char *site;
    size_t at; /* the next version to return */
};

_Static_assert(offsetof(struct wb_twin, store) == 0, "a wb_store of this kind is a wb_twin");
_Static_assert(offsetof(struct twin_scan, scan) == 0, "a wb_store_scan of this kind is a twin_scan");

static struct wb_twin *twin_of(struct wb_store *store)
{
    struct wb_twin *twin = (struct wb_twin *)store;

    WB_CHECK(store->magic == WB_STORE_MAGIC);
    WB_CHECK(twin->magic == TWIN_MAGIC);
    return twin;
}

static struct twin_scan *scan_of(struct wb_store_scan *base)
{
    WB_CHECK(base->magic == WB_STORE_SCAN_MAGIC);
    return (struct twin_scan *)base;
}

/* ---- writing --------------------------------------------------------------------------------- */

static int twin_put(struct wb_store *store, const struct wb_page *page, enum wb_store_outcome *outcome_out)
{
    struct wb_twin *twin = twin_of(store);
    struct wb_twin_version *before = wb_twin_version_find(&twin->now.pages, page->id);
    struct wb_twin_version version = {.id = page->id, .time_ms = page->time_ms};
    struct wb_page digested = *page;
    int err;

    WB_CHECK(twin->now.epoch > 0);
    *outcome_out = before ? WB_STORE_PUT_REPLACED : WB_STORE_PUT_NEW;
    if (wb_twin_barred(&twin->now, page->id, wb_key_site(page->key))) {
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
    twin->counts.replaced += before != NULL;
    twin->counts.added += before == NULL;
    if (before)
        err = wb_twin_retire(&twin->now, before);
    if (err == 0)
        err = wb_twin_version_add(&twin->now.pages, &version);
    wb_buf_release(&version.record);
    return err;
}

static int twin_touch(struct wb_store *store, struct wb_pageid id, int64_t time_ms)
{
    struct wb_twin *twin = twin_of(store);
    struct wb_twin_version *version = wb_twin_version_find(&twin->now.pages, id);
    struct wb_page page;

    WB_CHECK(version == NULL || version->epoch <= twin->now.epoch);
    if (!version)
        return wb_store_not_found();
    if (wb_store_time_replaces(time_ms, version->time_ms, wb_clock_wall_ms()))
        version->time_ms = time_ms;
    wb_page_decode(wb_buf_slice(&version->record), &page);
    version->lifetime_count = page.lifetime;
    twin->counts.touched++;
    return 0;
}

static int twin_time(struct wb_store *store, struct wb_pageid id, int64_t *time_ms_out)
{
    const struct wb_twin_version *version = wb_twin_version_find(&twin_of(store)->now.pages, id);

    WB_CHECK(version == NULL || version->record.len > 0);
    if (!version)
        return wb_store_not_found();
    *time_ms_out = version->time_ms;
    return 0;
}

static int twin_remove(struct wb_store *store, struct wb_pageid id, struct wb_slice site, bool everywhere)
{
    struct wb_twin *twin = twin_of(store);
    struct wb_twin_version *version = wb_twin_version_find(&twin->now.pages, id);
    struct wb_twin_version *old = wb_twin_version_find(&twin->now.old, id);

    WB_CHECK(old == NULL || twin->now.snapshot > 0);
    WB_CHECK(version == NULL || version->epoch <= twin->now.epoch);
    (void)site;
    if (!version && !(everywhere && old))
        return wb_store_not_found();
    twin->counts.removed++;
    if (!everywhere)
        return wb_twin_retire(&twin->now, version);
    if (version)
        wb_twin_version_drop(&twin->now.pages, version);
    if (old)
        wb_twin_version_drop(&twin->now.old, old);
    return 0;
}

static int twin_put_revisit(struct wb_store *store, struct wb_pageid id, struct wb_slice site,
                            const struct wb_store_revisit *revisit)
{
    struct wb_twin *twin = twin_of(store);
    struct wb_twin_revisit *known = wb_twin_revisit_find(&twin->now, id);

    WB_CHECK(known == NULL || wb_pageid_equal(known->id, id));
    if (wb_twin_barred(&twin->now, id, site)) {
        twin->counts.barred++;
        return 0;
    }
    if (!known)
        return wb_twin_revisit_add(&twin->now, id, site, revisit);
    if (known->revisit.time_ms < revisit->time_ms)
        known->revisit = *revisit;
    return 0;
}

static int twin_get_revisit(struct wb_store *store, struct wb_pageid id, struct wb_store_revisit *revisit_out)
{
    struct wb_twin_revisit *known = wb_twin_revisit_find(&twin_of(store)->now, id);

    WB_CHECK(known == NULL || wb_pageid_equal(known->id, id));
    if (!known)
        return wb_store_not_found();
    *revisit_out = known->revisit;
    return 0;
}

static int twin_commit(struct wb_store *store, struct wb_store_commit_counts *counts_inout)
{
    struct wb_twin *twin = twin_of(store);
    struct wb_twin_state copied;
    int err = wb_twin_state_copy(&twin->now, &copied);

    WB_CHECK(twin->now.epoch >= twin->committed.epoch);
    WB_CHECK(twin->now.snapshot >= twin->committed.snapshot);
    if (err < 0)
        return err;
    wb_twin_state_release(&twin->committed);
    twin->committed = copied;
    wb_store_counts_add(counts_inout, &twin->counts);
    twin->counts = (struct wb_store_commit_counts){0};
    return 0;
}

/* Bars are durable at once: what was put before is committed, then the bar, as the organisations on disk do it. */
static int commit_quietly(struct wb_store *store)
{
    struct wb_store_commit_counts counts = {0};

    return twin_commit(store, &counts);
}

static int twin_bar(struct wb_store *store, const struct wb_store_bar *bar)
{
    WB_CHECK(bar->kind == WB_STORE_BAR_PAGE || !bar->except);

    int err = commit_quietly(store);

    if (err == 0)
        err = wb_twin_bar_set(&twin_of(store)->now, bar);
    return err < 0 ? err : commit_quietly(store);
}

static int twin_allow(struct wb_store *store, const struct wb_store_bar *bar)
{
    int err = commit_quietly(store);

    if (err == 0)
        err = wb_twin_bar_lift(&twin_of(store)->now, bar);
    return err < 0 ? err : commit_quietly(store);
}

static int twin_barred(struct wb_store *store, struct wb_pageid id, struct wb_slice site)
{
    return wb_twin_barred(&twin_of(store)->committed, id, site);
}

static int twin_bar_each(struct wb_store *store, int (*each)(void *context, const struct wb_store_bar *bar),
                         void *context)
{
    struct wb_twin_state *state = &twin_of(store)->committed;
    int err = 0;

    WB_CHECK(each != NULL);
    WB_CHECK(state->epoch > 0);
    for (size_t i = 0; i < state->bars.count && err == 0; i++)
        err = each(context, &state->bars.items[i].bar);
    return err;
}

static int twin_snapshot(struct wb_store *store, uint32_t *snapshot_out)
{
    struct wb_twin *twin = twin_of(store);
    struct wb_store_commit_counts counts = {0};

    WB_CHECK(twin->now.snapshot_epoch < twin->now.epoch);
    wb_twin_versions_release(&twin->now.old);
    twin->now.snapshot++;
    twin->now.snapshot_epoch = twin->now.epoch++;
    int err = twin_commit(store, &counts);
    if (err == 0)
        *snapshot_out = twin->now.snapshot;
    return err;
}

/* ---- reading ------------------------------------------------------------------------------------ */

static int twin_get(struct wb_store *store, struct wb_pageid id, struct wb_page *page_out, struct wb_buf *mem_out)
{
    struct wb_twin_version *version = wb_twin_version_find(&twin_of(store)->now.pages, id), copied;
    int err;

    WB_CHECK(version == NULL || version->record.len > 0);
    if (!version)
        return wb_store_not_found();
    wb_buf_clear(mem_out);
    err = wb_buf_append_slice(mem_out, wb_buf_slice(&version->record));
    if (err < 0)
        return err;
    copied = *version;
    copied.record = *mem_out;
    return wb_twin_version_page(&copied, page_out);
}

/* Makes `pages` of the scan's own state contain exactly the versions that the view shows. */
static int gather(struct twin_scan *scan)
{
    WB_CHECK(scan->at == 0);
    WB_CHECK(scan->state.epoch > 0);
    if (scan->options.view == WB_STORE_VIEW_SNAPSHOT) {
        for (size_t i = 0; i < scan->state.pages.count;)
            if (scan->state.pages.items[i].epoch > scan->state.snapshot_epoch)
                wb_twin_version_drop(&scan->state.pages, &scan->state.pages.items[i]);
            else
                i++;
        for (size_t i = 0; i < scan->state.old.count; i++) {
            int err = wb_twin_version_add(&scan->state.pages, &scan->state.old.items[i]);
            if (err < 0)
                return err;
        }
    }
    return 0;
}

static void twin_scan_close(struct wb_store_scan *base)
{
    struct twin_scan *scan = scan_of(base);

    wb_twin_state_release(&scan->state);
    wb_free(scan->site);
    wb_store_scan_release(&scan->scan);
    wb_free(scan);
}

static int twin_scan_open(struct wb_store *store, const struct wb_store_scan_options *options,
                          struct wb_store_scan **scan_out)
{
    WB_CHECK(options->parts == 0 || options->part >= 1);

    struct twin_scan *scan = wb_alloc_zero(1, sizeof *scan);
    int err;

    if (!scan)
        return WB_E_NOMEM;
    wb_store_scan_init(&scan->scan, store);
    scan->options = *options;
    scan->site = wb_strndup(options->site.ptr ? options->site.ptr : "", options->site.len);
    err = scan->site ? wb_twin_state_copy(&twin_of(store)->committed, &scan->state) : WB_E_NOMEM;
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
    struct twin_scan *scan = scan_of(base);

    WB_CHECK(scan->at <= scan->state.pages.count);
    while (scan->at < scan->state.pages.count) {
        const struct wb_twin_version *version = &scan->state.pages.items[scan->at++];
        int err = wb_twin_version_page(version, page_out);
        if (err < 0)
            return err;
        if (scan->options.parts > 1 && version->id.hi % scan->options.parts != scan->options.part - 1)
            continue;
        if (scan->options.site.len == 0 || wb_slice_equal(wb_key_site(page_out->key), wb_slice_str(scan->site)))
            return 1;
    }
    return 0;
}

/* Adds the pages of a site to a list, each of them once. */
static int list_versions(const struct wb_twin_versions *versions, struct wb_slice site, struct wb_pageid *ids_out,
                         size_t max, size_t *count_inout)
{
    struct wb_page page;

    WB_CHECK(*count_inout <= max);
    for (size_t i = 0; i < versions->count; i++) {
        bool listed = false;
        int err = wb_twin_version_page(&versions->items[i], &page);
        if (err < 0)
            return err;
        for (size_t j = 0; j < *count_inout && !listed; j++)
            listed = wb_pageid_equal(ids_out[j], page.id);
        if (!listed && *count_inout < max && wb_slice_equal(wb_key_site(page.key), site))
            ids_out[(*count_inout)++] = page.id;
    }
    return 0;
}

static int twin_list_site(struct wb_store *store, struct wb_slice site, struct wb_pageid *ids_out, size_t max,
                          size_t *count_out)
{
    WB_CHECK(*count_out == 0);

    struct wb_twin_state *state = &twin_of(store)->committed;
    int err = list_versions(&state->pages, site, ids_out, max, count_out);

    return err < 0 ? err : list_versions(&state->old, site, ids_out, max, count_out);
}

static int twin_stat(struct wb_store *store, struct wb_store_stat *stat_out)
{
    struct wb_twin_state *state = &twin_of(store)->committed;
    struct wb_page page, other;

    WB_CHECK(state->snapshot == 0 || state->snapshot_epoch < state->epoch);
    WB_CHECK(state->snapshot > 0 || state->old.count == 0);
    *stat_out = (struct wb_store_stat){
        .pages = state->pages.count,
        .pages_old = state->old.count,
        .revisits = state->revisits.count,
        .bars = state->bars.count,
        .epoch = state->epoch,
        .snapshot = state->snapshot,
        .organisation = "memory",
        .update = "incremental",
    };
    for (size_t i = 0; i < state->pages.count; i++) {
        bool first = true;
        wb_twin_version_page(&state->pages.items[i], &page);
        stat_out->bytes_pages += page.body.len;
        for (size_t j = 0; j < i && first; j++) {
            wb_twin_version_page(&state->pages.items[j], &other);
            first = !wb_slice_equal(wb_key_site(page.key), wb_key_site(other.key));
        }
        stat_out->sites += first;
    }
    return 0;
}

static void twin_close(struct wb_store *store)
{
    struct wb_twin *twin = twin_of(store);

    WB_CHECK(twin->now.epoch >= twin->committed.epoch);
    wb_twin_state_release(&twin->now);
    wb_twin_state_release(&twin->committed);
    wb_store_release(&twin->store);
    twin->magic = 0;
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
};

int wb_twin_open(struct wb_store **store_out)
{
    struct wb_twin *twin = wb_alloc_zero(1, sizeof *twin);

    *store_out = NULL;
    if (!twin)
        return WB_E_NOMEM;
    wb_store_init(&twin->store, WB_STORE_WRITE, &twin_ops);
    twin->magic = TWIN_MAGIC;
    twin->now.epoch = twin->committed.epoch = 1;
    *store_out = &twin->store;
    return 0;
}

void wb_twin_reopen(struct wb_store *store)
{
    struct wb_twin *twin = twin_of(store);
    struct wb_twin_state copied;

    WB_CHECK(store->ops == &twin_ops);
    WB_CHECK(wb_twin_state_copy(&twin->committed, &copied) == 0);
    wb_twin_state_release(&twin->now);
    twin->now = copied;
    twin->counts = (struct wb_store_commit_counts){0};
}
