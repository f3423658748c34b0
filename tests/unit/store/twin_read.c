/*
 * twin_read.c - what can be read from the twin, apart from scans (twin_scan.c).
 */
#include "os/clock.h"
#include "twin_state.h"

/* ---- reading ------------------------------------------------------------------------------------ */

static bool comes_before(const struct wb_twin_version *a, const struct wb_twin_version *b)
{
    int64_t a_ms = wb_twin_version_first(a), b_ms = wb_twin_version_first(b);

    if (a_ms != b_ms || a->ghost != b->ghost)
        return a_ms != b_ms ? a_ms < b_ms : a->ghost;
    return a->ghost && a->arrived < b->arrived; /* the others are in the order of the timeline already */
}

struct wb_twin_page wb_twin_page_read(struct wb_twin *twin, const struct wb_twin_page *page)
{
    struct wb_twin_page copied;
    struct wb_twin_rule rule;

    wb_twin_page_copy(page, &copied);
    wb_twin_rule_now(twin, &rule);
    wb_twin_trim(&copied, &rule);
    wb_twin_rule_release(&rule);
    for (size_t i = copied.versions.count; i-- > 0;)
        if (copied.versions.items[i].replaced)
            wb_twin_version_drop(&copied, i);
    for (size_t i = 1; i < copied.versions.count; i++)
        for (size_t at = i; at > 0 && comes_before(&copied.versions.items[at], &copied.versions.items[at - 1]); at--) {
            struct wb_twin_version moved = copied.versions.items[at];
            copied.versions.items[at] = copied.versions.items[at - 1];
            copied.versions.items[at - 1] = moved;
        }
    return copied;
}

/* The version of the newest capture at or before the time, or else of the oldest capture. */
static const struct wb_twin_version *find_at(const struct wb_twin_page *page, int64_t time_ms)
{
    const struct wb_twin_version *found = wb_twin_seen_by(page, time_ms);

    return found || page->versions.count == 0 ? found : &page->versions.items[0];
}

/* What a snapshot shows is what there was when it was sealed. */
static const struct wb_twin_version *find_in(const struct wb_twin_snapshot *snapshot, struct wb_pageid id)
{
    const struct wb_twin_page *page = wb_twin_page_find(&snapshot->state, id);

    return page ? wb_twin_latest(page) : NULL;
}

/* Copies a version, so that the page borrows from mem_out alone. */
static int show(const struct wb_twin_version *version, struct wb_page *page_out, struct wb_buf *mem_out)
{
    struct wb_twin_record copied = {.refs = 1};
    struct wb_twin_version borrowed;

    if (!version)
        return wb_store_not_found();
    wb_buf_clear(mem_out);
    WB_CHECK(wb_buf_append_slice(mem_out, wb_buf_slice(&version->record->bytes)) == 0);
    borrowed = *version;
    copied.bytes = *mem_out;
    borrowed.record = &copied;
    wb_twin_version_page(&borrowed, page_out);
    return 0;
}

static int get(struct wb_twin *twin, const struct wb_twin_state *state, struct wb_pageid id,
               const struct wb_store_when *when, struct wb_page *page_out, struct wb_buf *mem_out)
{
    const struct wb_twin_page *page = wb_twin_page_find(state, id);

    if (when->kind == WB_STORE_WHEN_SNAPSHOT) {
        const struct wb_twin_snapshot *snapshot =
            wb_twin_snapshot_find(&twin->snapshots, when->snapshot, wb_clock_wall_ms());
        if (!snapshot)
            return wb_twin_no_snapshot(when->snapshot);
        return show(find_in(snapshot, id), page_out, mem_out);
    }
    if (!page || when->kind == WB_STORE_WHEN_LATEST)
        return show(page ? wb_twin_latest(page) : NULL, page_out, mem_out);
    struct wb_twin_page readable = wb_twin_page_read(twin, page);
    int err = show(find_at(&readable, when->time_ms), page_out, mem_out);
    wb_twin_page_release(&readable);
    return err;
}

/* A writer sees the latest state with its own changes, and committed versions otherwise. */
int wb_twin_get(struct wb_store *store, struct wb_pageid id, const struct wb_store_when *when, struct wb_page *page_out,
                struct wb_buf *mem_out)
{
    struct wb_twin *twin = wb_twin_of(store);

    return get(twin, when->kind == WB_STORE_WHEN_LATEST ? &twin->now : &twin->committed, id, when, page_out, mem_out);
}

int wb_twin_get_many(struct wb_store *store, const struct wb_pageid *ids, size_t id_count,
                     const struct wb_store_when *when, wb_store_each_page each, void *context)
{
    struct wb_twin *twin = wb_twin_of(store);
    struct wb_buf memory = WB_BUF_INIT;
    int err = 0;

    for (size_t i = 0; i < id_count && err == 0; i++) {
        struct wb_page page = {0};
        int got = get(twin, &twin->committed, ids[i], when, &page, &memory);
        err = each(context, i, got, got == 0 ? &page : NULL);
    }
    wb_buf_release(&memory);
    return err;
}

int wb_twin_time(struct wb_store *store, struct wb_pageid id, int64_t *time_ms_out)
{
    const struct wb_twin_page *page = wb_twin_page_find(&wb_twin_of(store)->now, id);
    const struct wb_twin_version *latest = page ? wb_twin_latest(page) : NULL;

    if (!latest)
        return wb_store_not_found();
    *time_ms_out = wb_twin_version_last(latest);
    return 0;
}

static void fill_version(const struct wb_twin_page *page, size_t at, struct wb_store_version *version_out)
{
    const struct wb_twin_version *version = &page->versions.items[at];
    struct wb_page decoded;

    wb_twin_version_page(version, &decoded);
    *version_out = (struct wb_store_version){
        .time_ms = wb_twin_version_first(version),
        .last_ms = wb_twin_version_last(version),
        .captures = version->times.count,
        .arrived = version->arrived,
        .ceased = version->ceased,
        .body_bytes = decoded.body.len,
        .status = decoded.status,
    };
    while (!wb_twin_record_same(page->versions.items[version_out->same].record, version->record))
        version_out->same++;
}

/* The timeline of an epoch is asked for only if a snapshot has sealed it. */
int wb_twin_timeline(struct wb_store *store, struct wb_pageid id, uint64_t epoch,
                     struct wb_store_timeline *timeline_out)
{
    struct wb_twin *twin = wb_twin_of(store);
    const struct wb_twin_state *state = &twin->committed;
    for (size_t i = 0; epoch && i < twin->snapshots.list.count; i++)
        if (twin->snapshots.list.items[i].sealed.epoch == epoch)
            state = &twin->snapshots.list.items[i].state;
    const struct wb_twin_page *found = wb_twin_page_find(state, id);
    struct wb_twin_page page = found ? wb_twin_page_read(twin, found) : (struct wb_twin_page){0};
    WB_VEC(struct wb_store_version) versions = WB_VEC_INIT;
    WB_VEC(int64_t) times = WB_VEC_INIT;

    for (size_t i = 0; i < page.versions.count; i++) {
        struct wb_store_version *version = wb_vec_add(&versions);
        WB_CHECK(version);
        fill_version(&page, i, version);
        version->first = times.count;
        for (size_t j = 0; j < page.versions.items[i].times.count; j++)
            WB_CHECK(wb_vec_push(&times, page.versions.items[i].times.items[j]) == 0);
    }
    *timeline_out = (struct wb_store_timeline){versions.items, versions.count, times.items, times.count, page.gone_ms};
    wb_twin_page_release(&page);
    return timeline_out->count ? 0 : wb_store_not_found();
}

int wb_twin_list_site(struct wb_store *store, struct wb_slice site, struct wb_pageid *ids_out, size_t max,
                      size_t *count_out)
{
    const struct wb_twin_state *state = &wb_twin_of(store)->committed;

    for (size_t i = 0; i < state->pages.count && *count_out < max; i++)
        if (wb_twin_page_in_site(&state->pages.items[i], site))
            ids_out[(*count_out)++] = state->pages.items[i].id;
    return 0;
}

/* ---- the whole ------------------------------------------------------------------------------------ */

uint64_t wb_twin_count_pages(const struct wb_twin_state *state)
{
    uint64_t pages = 0;

    for (size_t i = 0; i < state->pages.count; i++)
        pages += wb_twin_latest(&state->pages.items[i]) != NULL;
    return pages;
}

static uint64_t count_sites(const struct wb_twin_state *state)
{
    uint64_t sites = 0;

    for (size_t i = 0; i < state->pages.count; i++) {
        const struct wb_twin_version *latest = wb_twin_latest(&state->pages.items[i]);
        struct wb_page page;
        bool first = latest != NULL;
        if (latest)
            wb_twin_version_page(latest, &page);
        for (size_t j = 0; j < i && first; j++)
            first = !wb_twin_latest(&state->pages.items[j]) ||
                    !wb_twin_page_in_site(&state->pages.items[j], wb_key_site(page.key));
        sites += first;
    }
    return sites;
}

int wb_twin_stat(struct wb_store *store, struct wb_store_stat *stat_out)
{
    struct wb_twin *twin = wb_twin_of(store);
    const struct wb_twin_state *state = &twin->committed;
    int64_t now_ms = wb_clock_wall_ms();

    *stat_out = (struct wb_store_stat){
        .pages = wb_twin_count_pages(state),
        .sites = count_sites(state),
        .revisits = state->revisits.count,
        .bars = twin->bars.count,
        .epoch = state->epoch,
        .snapshot = twin->snapshots.last,
        .history = twin->history,
        .nodes = 1,
    };
    for (size_t i = 0; i < twin->snapshots.list.count; i++)
        stat_out->snapshots +=
            wb_twin_snapshot_find(&twin->snapshots, twin->snapshots.list.items[i].sealed.number, now_ms) != NULL;
    for (size_t i = 0; i < state->pages.count; i++) {
        const struct wb_twin_version *latest = wb_twin_latest(&state->pages.items[i]);
        struct wb_twin_page readable = wb_twin_page_read(twin, &state->pages.items[i]);
        struct wb_page page = {0};
        if (latest)
            wb_twin_version_page(latest, &page);
        stat_out->bytes_pages += page.body.len;
        stat_out->versions += readable.versions.count;
        for (size_t j = 0; j < readable.versions.count; j++)
            stat_out->captures += readable.versions.items[j].times.count;
        wb_twin_page_release(&readable);
    }
    return 0;
}
