/*
 * repo_get.c - looks things up in the catalog, and reads single pages.
 *
 * A page is looked up in the catalog and then read from its segment. The segment is opened
 * while the catalog's state is still visible, so that a compaction cannot delete the
 * file in between.
 */
#include "base/check.h"
#include "base/mem.h"
#include "os/clock.h"
#include "store/repo_base.h"

/* ---- looking something up in the catalog ------------------------------------------------------- */

int wb_repo_read(struct wb_repo *repo, int (*read)(void *context), void *context)
{
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    return wb_pagefile_read(&repo->files, read, context);
}

/* Finds the version of a page that is meant. */
struct page_lookup {
    struct wb_repo *repo;
    struct wb_pageid id;
    const struct wb_store_when *when;
    struct wb_catalog_entry entry; /* found; that of an old version has no lifetimes */
    struct wb_buf *record;         /* of that version */
    uint64_t state;                /* of the catalog, when it was looked up last */
};

/* The entry of a version that is not the latest. */
static struct wb_catalog_entry entry_of(const struct wb_history_version *version, int64_t time_ms)
{
    WB_CHECK(version->place.segment > 0);
    WB_CHECK(version->body_bytes <= UINT32_MAX);
    WB_CHECK(version->ceased != 0);
    return (struct wb_catalog_entry){
        .place = version->place,
        .time_ms = time_ms,
        .body_bytes = (uint32_t)version->body_bytes,
        .epoch = version->arrived,
        .status = version->status,
        .ended = true,
    };
}

/* The version that is meant, in a view of the page that is trimmed to what can be read, unless a state is meant. */
static const struct wb_history_version *choose_version(const struct page_lookup *l, struct wb_history *history,
                                                       uint64_t epoch)
{
    size_t first, count;

    WB_CHECK(l->when->kind != WB_STORE_WHEN_LATEST);
    if (l->when->kind == WB_STORE_WHEN_SNAPSHOT)
        return wb_history_in(history, epoch);
    if (l->when->kind == WB_STORE_WHEN_TIME)
        return wb_history_at(history, l->when->time_ms);
    count = wb_history_tie(history, l->when->time_ms, &first);
    for (size_t i = first; i < first + count; i++)
        if (wb_history_owner(history, i)->content == l->when->content)
            return wb_history_owner(history, i);
    for (size_t i = 0; i < history->versions.count; i++) /* its captures may only be those of a state any more */
        if (history->versions.items[i].content == l->when->content)
            return &history->versions.items[i];
    return NULL;
}

/* Looks in the past of the page. */
static int find_version(struct page_lookup *l, struct wb_pageview *view, struct wb_epochs *held)
{
    struct wb_catalog_txn *txn = &l->repo->reader;
    struct wb_catalog_summary summary;
    uint64_t epoch = 0;
    int err = wb_catalog_summary_get(txn, &summary);

    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    bool state = l->when->kind == WB_STORE_WHEN_SNAPSHOT;
    if (err == 0 && state)
        err = wb_repo_snapshot_epoch(txn, l->when->snapshot, &epoch);
    if (err == 0)
        err = wb_pageview_load(txn, summary.gone > 0, l->id, view);
    if (err == 0 && !state)
        err = wb_repo_epochs_held(l->repo, txn, held);
    if (err < 0)
        return err;
    if (!state) { /* only what the policy or a snapshot keeps can be read */
        struct wb_history_rule rule = {summary.history, held->items, held->count, wb_clock_wall_ms()};
        wb_history_trim(&view->history, &rule);
    }
    const struct wb_history_version *version = choose_version(l, &view->history, epoch);
    if (!version || version->place.segment == 0)
        return wb_store_not_found();
    int64_t time_ms = wb_history_last_ms(&view->history, version);
    if (state)
        time_ms = wb_history_last_in(&view->history, version, epoch);
    if (version == wb_history_latest(&view->history))
        wb_pageview_entry(view, &l->entry);
    else
        l->entry = entry_of(version, time_ms);
    l->entry.time_ms = time_ms;
    return 0;
}

/*
 * A version that a timeline lists is still where the timeline has seen it if nothing was committed since: then its
 * page's history, which may be long, need not be read for each of its versions. Returns 1, 0 if it must be read, or an
 * error.
 */
static int look_up_spot(struct page_lookup *l)
{
    const struct wb_store_version *version = l->when->version;
    struct wb_catalog_txn *txn = &l->repo->reader;

    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    if (!version || version->spot.segment == 0 || version->spot.handle != l->repo->number ||
        version->spot.state != wb_catalog_txn_id(txn))
        return 0;
    struct wb_catalog_place place = {version->spot.segment, version->spot.slot, version->spot.logical};
    if (version->ceased == 0) { /* the latest: its entry knows more about it */
        int err = wb_catalog_entry_get(txn, l->id, &l->entry);
        if (err < 0)
            return err == WB_E_NOTFOUND ? 0 : err;
        return wb_catalog_place_equal(&l->entry.place, &place) && l->entry.epoch == version->arrived;
    }
    l->entry = (struct wb_catalog_entry){
        .place = place,
        .time_ms = version->last_ms,
        .body_bytes = (uint32_t)version->body_bytes,
        .epoch = version->arrived,
        .status = version->status,
        .ended = true,
    };
    return 1;
}

static int look_up_version(void *context)
{
    struct page_lookup *l = context;
    struct wb_pageview view = {0};
    struct wb_epochs held = {0};
    int err;

    WB_CHECK(l->when->kind <= WB_STORE_WHEN_CAPTURE);
    WB_CHECK(l->repo->reader.kind >= WB_CATALOG_TXN_AWAKE);
    if (l->when->kind == WB_STORE_WHEN_LATEST)
        return wb_catalog_entry_get(&l->repo->reader, l->id, &l->entry);
    err = l->when->kind == WB_STORE_WHEN_CAPTURE ? look_up_spot(l) : 0;
    if (err)
        return err < 0 ? err : 0;
    err = find_version(l, &view, &held);
    wb_pageview_release(&view);
    wb_vec_release(&held);
    return err;
}

/* The version and its record. */
static int look_up_page(void *context)
{
    struct page_lookup *l = context;
    struct wb_pagefile *files = &l->repo->files;
    int err = 1;

    WB_CHECK(l->repo->reader.kind >= WB_CATALOG_TXN_AWAKE);
    l->state = wb_catalog_txn_id(&l->repo->reader);
    if (l->when->kind == WB_STORE_WHEN_LATEST && files->kind->read_latest)
        err = files->kind->read_latest(files, l->id, &l->entry, l->record);
    if (err == WB_E_NOTFOUND)
        return wb_store_not_found();
    if (err <= 0)
        return err;
    err = look_up_version(l);
    WB_CHECK(err < 0 || l->entry.place.segment > 0);
    return err < 0 ? err : files->kind->read(files, l->id, &l->entry.place, l->record);
}

enum { GET_TRIES = 100 };

/* In files that change in place, a read is repeated as long as it fails only because the repository is changing. */
static int read_again(struct wb_repo *repo, int (*read)(void *context), void *context, const uint64_t *state)
{
    unsigned tries = repo->files.kind->in_place ? GET_TRIES : 1;
    uint64_t before = 0;
    int err = WB_E_CORRUPT;

    for (unsigned i = 0; i < tries && err == WB_E_CORRUPT; i++) {
        err = wb_repo_read(repo, read, context);
        if (err == WB_E_CORRUPT && *state == before)
            break;
        before = *state;
    }
    return err;
}

int wb_repo_find(struct wb_repo *repo, struct wb_pageid id, const struct wb_store_when *when,
                 struct wb_catalog_entry *entry_out)
{
    struct page_lookup l = {.repo = repo, .id = id, .when = when};
    int err = wb_repo_read(repo, look_up_version, &l);

    WB_CHECK(err < 0 || l.entry.place.segment > 0);
    WB_CHECK(err < 0 || l.entry.epoch > 0);
    *entry_out = l.entry;
    return err;
}

/* ---- reading a page ------------------------------------------------------------------------- */

int wb_repo_time(struct wb_store *store, struct wb_pageid id, int64_t *time_ms_out)
{
    struct wb_repo *repo = wb_repo_of(store);
    struct wb_catalog_entry entry;
    struct wb_pageview *view;
    int err;

    if (!wb_repo_has_ops(repo, id) && !repo->base) {
        err = wb_repo_find(repo, id, &(struct wb_store_when){.kind = WB_STORE_WHEN_LATEST}, &entry);
        *time_ms_out = entry.time_ms;
        return err;
    }
    err = wb_repo_view(repo, id, &view);
    if (err < 0)
        return err;
    const struct wb_history_version *latest = wb_history_latest(&view->history);
    *time_ms_out = latest ? wb_history_last_ms(&view->history, latest) : 0;
    return latest ? 0 : wb_store_not_found();
}

/* A place that a view knows. */
struct place_lookup {
    struct wb_repo *repo;
    struct wb_pageid id;
    const struct wb_catalog_place *place;
    struct wb_buf *record;
    uint64_t state;
};

static int look_up_place(void *context)
{
    struct place_lookup *l = context;
    struct wb_pagefile *files = &l->repo->files;

    WB_CHECK(l->repo->reader.kind >= WB_CATALOG_TXN_AWAKE);
    l->state = wb_catalog_txn_id(&l->repo->reader);
    return files->kind->read(files, l->id, l->place, l->record);
}

int wb_repo_read_record(struct wb_repo *repo, struct wb_pageid id, const struct wb_catalog_place *place,
                        struct wb_buf *record_out)
{
    struct place_lookup l = {.repo = repo, .id = id, .place = place, .record = record_out};

    WB_CHECK(place->segment > 0);
    if (place->segment == WB_CATALOG_BASE_SEGMENT)
        return wb_repo_base_record(repo, id, place, record_out);
    return read_again(repo, look_up_place, &l, &l.state);
}

int wb_repo_read_entry(struct wb_repo *repo, struct wb_pageid id, const struct wb_catalog_entry *entry,
                       struct wb_page *page_out, struct wb_buf *mem_out)
{
    int err = wb_repo_read_record(repo, id, &entry->place, mem_out);

    WB_CHECK(entry->epoch > 0);
    return err < 0 ? err : wb_pagefile_page(wb_buf_slice(mem_out), id, entry, page_out);
}

/* The version of a time. If nothing that waits is that old, it is one of the base, where snapshots may keep more. */
static int get_of_time(struct wb_repo *repo, struct wb_pageview *view, const struct wb_store_when *when,
                       struct wb_page *page_out, struct wb_buf *mem_out)
{
    const struct wb_history_version *version = wb_history_at(&view->history, when->time_ms);
    bool old = version && view->history.times.items[version->first] <= when->time_ms;
    bool waits = view->had_entry || view->had_rows || wb_repo_has_ops(repo, view->id);

    WB_CHECK(repo->base != NULL);
    int err = waits && old ? WB_E_NOTFOUND : wb_repo_get(&repo->base->store, view->id, when, page_out, mem_out);
    if (err != WB_E_NOTFOUND)
        return err;
    if (!version || version->place.segment == 0)
        return wb_store_not_found();
    int64_t last_ms = wb_history_last_ms(&view->history, version);
    err = wb_repo_read_version(repo, view->id, version, page_out, mem_out);
    page_out->time_ms = err == 0 ? last_ms : 0;
    return err;
}

/* The version of a page that this writer has changed but not committed, or that goes on from that of a base. */
static int get_changed(struct wb_repo *repo, struct wb_pageid id, const struct wb_store_when *when,
                       struct wb_page *page_out, struct wb_buf *mem_out)
{
    struct wb_catalog_entry entry;
    struct wb_pageview *view;
    int err = wb_repo_view(repo, id, &view);

    WB_CHECK(wb_repo_has_ops(repo, id) || repo->base);
    if (err < 0)
        return err;
    if (when->kind == WB_STORE_WHEN_TIME)
        return get_of_time(repo, view, when, page_out, mem_out);
    if (!wb_history_latest(&view->history))
        return wb_store_not_found();
    wb_pageview_entry(view, &entry);
    if (entry.place.segment == WB_PAGEVIEW_PENDING_SEGMENT) {
        err = wb_repo_get_pending(repo, (size_t)entry.place.logical - 1, page_out, mem_out);
        if (err == 0) {
            page_out->time_ms = entry.time_ms;
            page_out->lifetime = entry.lifetime;
            page_out->lifetime_count = entry.lifetime_count;
        }
        return err;
    }
    return wb_repo_read_entry(repo, id, &entry, page_out, mem_out);
}

int wb_repo_get(struct wb_store *store, struct wb_pageid id, const struct wb_store_when *when, struct wb_page *page_out,
                struct wb_buf *mem_out)
{
    struct wb_repo *repo = wb_repo_of(store);
    struct page_lookup l = {.repo = repo, .id = id, .when = when, .record = mem_out};

    WB_CHECK(when->kind <= WB_STORE_WHEN_CAPTURE);
    bool changed = repo->base ? when->kind <= WB_STORE_WHEN_TIME
                              : when->kind == WB_STORE_WHEN_LATEST && wb_repo_has_ops(repo, id);
    if (changed)
        return get_changed(repo, id, when, page_out, mem_out);
    int err = read_again(repo, look_up_page, &l, &l.state);
    return err < 0 ? err : wb_pagefile_page(wb_buf_slice(mem_out), id, &l.entry, page_out);
}
