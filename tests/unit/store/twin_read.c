/*
 * twin_read.c - what can be read from the twin, apart from scans (twin_scan.c).
 */
#include "os/clock.h"
#include "twin_state.h"

/* ---- reading ------------------------------------------------------------------------------------ */

/* The readable versions of a page, the oldest first. */
struct readable WB_VEC_OF(const struct wb_twin_version *);

static bool comes_before(const struct wb_twin_version *a, const struct wb_twin_version *b)
{
    int64_t a_ms = wb_twin_version_first(a), b_ms = wb_twin_version_first(b);

    return a_ms != b_ms ? a_ms < b_ms : a->ghost && !b->ghost;
}

static struct readable find_readable(struct wb_twin *twin, const struct wb_twin_page *page)
{
    struct readable list = WB_VEC_INIT;
    struct wb_twin_rule rule;

    wb_twin_rule_now(twin, &rule);
    for (size_t i = 0; page && i < page->versions.count; i++) {
        const struct wb_twin_version *version = &page->versions.items[i];
        if (!wb_twin_readable(page, version, &rule))
            continue;
        WB_CHECK(wb_vec_push(&list, version) == 0);
        for (size_t at = list.count - 1; at > 0 && comes_before(version, list.items[at - 1]); at--) {
            list.items[at] = list.items[at - 1];
            list.items[at - 1] = version;
        }
    }
    wb_twin_rule_release(&rule);
    return list;
}

/* The version of the newest capture at or before the time, or else of the oldest capture. */
static const struct wb_twin_version *find_at(struct wb_twin *twin, const struct wb_twin_page *page, int64_t time_ms)
{
    struct readable list = find_readable(twin, page);
    const struct wb_twin_version *version = list.count ? list.items[0] : NULL;
    int64_t newest_ms = INT64_MIN;

    for (size_t i = 0; i < list.count; i++)
        for (size_t j = 0; j < list.items[i]->times.count; j++)
            if (list.items[i]->times.items[j] <= time_ms && list.items[i]->times.items[j] >= newest_ms) {
                newest_ms = list.items[i]->times.items[j];
                version = list.items[i];
            }
    wb_vec_release(&list);
    return version;
}

static const struct wb_twin_version *find_in(const struct wb_twin_page *page, uint64_t epoch)
{
    for (size_t i = 0; i < page->versions.count; i++)
        if (wb_twin_visible(&page->versions.items[i], epoch))
            return &page->versions.items[i];
    return NULL;
}

static int get(struct wb_twin *twin, const struct wb_twin_state *state, struct wb_pageid id,
               const struct wb_store_when *when, struct wb_page *page_out, struct wb_buf *mem_out)
{
    const struct wb_twin_page *page = wb_twin_page_find(state, id);
    const struct wb_twin_version *version = NULL;
    struct wb_twin_record copied = {.refs = 1};

    if (when->kind == WB_STORE_WHEN_SNAPSHOT) {
        const struct wb_twin_snapshot *snapshot =
            wb_twin_snapshot_find(&twin->snapshots, when->snapshot, wb_clock_wall_ms());
        if (!snapshot)
            return wb_twin_no_snapshot(when->snapshot);
        version = page ? find_in(page, snapshot->sealed.epoch) : NULL;
    } else if (page) {
        version = when->kind == WB_STORE_WHEN_TIME ? find_at(twin, page, when->time_ms) : wb_twin_latest(page);
    }
    if (!version)
        return wb_store_not_found();
    wb_buf_clear(mem_out);
    WB_CHECK(wb_buf_append_slice(mem_out, wb_buf_slice(&version->record->bytes)) == 0);
    struct wb_twin_version borrowed = *version;
    copied.bytes = *mem_out;
    borrowed.record = &copied;
    wb_twin_version_page(&borrowed, page_out);
    return 0;
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

static void fill_version(const struct readable *list, size_t at, struct wb_store_version *version_out)
{
    const struct wb_twin_version *version = list->items[at];
    struct wb_page page;

    wb_twin_version_page(version, &page);
    *version_out = (struct wb_store_version){
        .time_ms = wb_twin_version_first(version),
        .last_ms = wb_twin_version_last(version),
        .captures = version->times.count,
        .arrived = version->arrived,
        .ceased = version->ceased,
        .body_bytes = page.body.len,
        .status = page.status,
    };
    while (!wb_twin_record_same(list->items[version_out->same]->record, version->record))
        version_out->same++;
}

int wb_twin_timeline(struct wb_store *store, struct wb_pageid id, struct wb_store_timeline *timeline_out)
{
    struct wb_twin *twin = wb_twin_of(store);
    const struct wb_twin_page *page = wb_twin_page_find(&twin->committed, id);
    struct readable list = find_readable(twin, page);
    WB_VEC(struct wb_store_version) versions = WB_VEC_INIT;
    WB_VEC(int64_t) times = WB_VEC_INIT;

    if (list.count == 0)
        return wb_store_not_found();
    for (size_t i = 0; i < list.count; i++) {
        struct wb_store_version *version = wb_vec_add(&versions);
        WB_CHECK(version);
        fill_version(&list, i, version);
        version->first = times.count;
        for (size_t j = 0; j < list.items[i]->times.count; j++)
            WB_CHECK(wb_vec_push(&times, list.items[i]->times.items[j]) == 0);
    }
    wb_vec_release(&list);
    *timeline_out = (struct wb_store_timeline){versions.items, versions.count, times.items, times.count, page->gone_ms};
    return 0;
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
        .organisation = "memory",
        .update = "incremental",
    };
    for (size_t i = 0; i < twin->snapshots.list.count; i++)
        stat_out->snapshots +=
            wb_twin_snapshot_find(&twin->snapshots, twin->snapshots.list.items[i].sealed.number, now_ms) != NULL;
    for (size_t i = 0; i < state->pages.count; i++) {
        const struct wb_twin_version *latest = wb_twin_latest(&state->pages.items[i]);
        struct readable list = find_readable(twin, &state->pages.items[i]);
        struct wb_page page = {0};
        if (latest)
            wb_twin_version_page(latest, &page);
        stat_out->bytes_pages += page.body.len;
        stat_out->versions += list.count;
        for (size_t j = 0; j < list.count; j++)
            stat_out->captures += list.items[j]->times.count;
        wb_vec_release(&list);
    }
    return 0;
}
