/*
 * repo_history.c - the past of pages, for readers; and forgetting it. Versions that nobody keeps any
 * more, because a snapshot was dropped, time has passed or the policy has changed, stay in the
 * catalog until a commit changes their page or a compaction begins. Readers leave them out.
 */
#include "base/check.h"
#include "base/mem.h"
#include "os/clock.h"
#include "store/repo_base.h"

#include <stdlib.h>

/* ---- the timeline of a page ---------------------------------------------------------------------- */

/* Reads one page, and leaves out what nobody keeps. */
struct past_read {
    struct wb_repo *repo;
    struct wb_pageid id;
    uint64_t epoch; /* 0: now */
    struct wb_pageview view;
    struct wb_epochs held;
    uint64_t state; /* number of the state of the catalog */
};

static int read_past(void *context)
{
    struct past_read *r = context;
    struct wb_catalog_summary summary;
    int err = wb_catalog_summary_get(&r->repo->reader, &summary);

    WB_CHECK(r->repo->magic == WB_REPO_MAGIC);
    WB_CHECK(r->repo->reader.kind >= WB_CATALOG_TXN_AWAKE);
    r->state = wb_catalog_txn_id(&r->repo->reader);
    if (err == 0)
        err = wb_pageview_load(&r->repo->reader, summary.gone > 0, r->id, &r->view);
    if (err == 0)
        err = wb_repo_epochs_held(r->repo, &r->repo->reader, &r->held);
    if (err < 0)
        return err;
    struct wb_history_rule rule = {summary.history, r->held.items, r->held.count, wb_clock_wall_ms()};
    wb_history_trim(&r->view.history, &rule);
    if (r->epoch)
        err = wb_history_rewind(&r->view.history, r->epoch);
    for (size_t i = r->view.history.ghosts; i > 0; i--) /* what only states show is no part of it */
        if (r->view.history.versions.items[i - 1].replaced)
            wb_history_drop(&r->view.history, i - 1);
    return err < 0 ? err : r->view.history.versions.count ? 0 : wb_store_not_found();
}

/* For sorting: the number of a version, by its first capture. */
struct version_order {
    int64_t time_ms;
    uint64_t arrived; /* of a ghost: ghosts are not in the order of their arrival. UINT64_MAX: of any other version */
    size_t index;     /* the others, whose first captures have the same time, are in the order of the history */
};

static int compare_order(const void *a, const void *b)
{
    const struct version_order *x = a, *y = b;

    if (x->time_ms != y->time_ms)
        return x->time_ms < y->time_ms ? -1 : 1;
    if (x->arrived != y->arrived)
        return x->arrived < y->arrived ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

/* For finding versions with the same content: where its bytes are. */
struct version_place {
    struct wb_catalog_place place;
    size_t number;
};

static int compare_place(const void *a, const void *b)
{
    const struct version_place *x = a, *y = b;
    int order = wb_catalog_place_compare(&x->place, &y->place);

    return order ? order : x->number < y->number ? -1 : x->number > y->number;
}

/* Says of each version which one brought its content. Sorted, because a page may have very many versions. */
static int mark_same(const struct wb_history *history, const struct version_order *order,
                     struct wb_store_timeline *timeline)
{
    size_t count = timeline->count;
    struct version_place *places = wb_alloc(count * sizeof *places);

    if (!places)
        return WB_E_NOMEM;
    for (size_t i = 0; i < count; i++)
        places[i] = (struct version_place){history->versions.items[order[i].index].place, i};
    qsort(places, count, sizeof *places, compare_place);
    for (size_t i = 1; i < count; i++)
        if (wb_catalog_place_equal(&places[i - 1].place, &places[i].place))
            timeline->versions[places[i].number].same = timeline->versions[places[i - 1].number].same;
    wb_free(places);
    return 0;
}

/* Copies the versions in the order of time. Ghosts may lie anywhere between the others. */
static void fill_timeline(const struct past_read *r, struct version_order *order,
                          struct wb_store_timeline *timeline_out)
{
    const struct wb_history *history = &r->view.history;
    size_t count = history->versions.count;

    WB_CHECK(count > 0);
    WB_CHECK(timeline_out->time_count == 0);
    for (size_t i = 0; i < count; i++) {
        const struct wb_history_version *version = &history->versions.items[i];
        order[i] = (struct version_order){history->times.items[version->first],
                                          version->ghost ? version->arrived : UINT64_MAX, i};
    }
    qsort(order, count, sizeof *order, compare_order);
    for (size_t i = 0; i < count; i++) {
        const struct wb_history_version *version = &history->versions.items[order[i].index];
        struct wb_store_version *out = &timeline_out->versions[i];
        *out = (struct wb_store_version){
            .time_ms = order[i].time_ms,
            .last_ms = wb_history_last_ms(history, version),
            .first = timeline_out->time_count,
            .captures = version->count,
            .arrived = version->arrived,
            .ceased = version->ceased,
            .body_bytes = version->body_bytes,
            .status = version->status,
            .same = i,
            .content = version->content,
            .spot = {.handle = r->repo->number,
                     .state = r->state,
                     .logical = version->place.logical,
                     .segment = version->place.segment,
                     .slot = version->place.slot},
        };
        memcpy(timeline_out->times + timeline_out->time_count, history->times.items + version->first,
               version->count * sizeof *timeline_out->times);
        timeline_out->time_count += version->count;
    }
    WB_CHECK(timeline_out->time_count == history->times.count);
    timeline_out->count = count;
    timeline_out->gone_ms = history->gone_ms;
}

int wb_repo_timeline(struct wb_store *store, struct wb_pageid id, uint64_t epoch,
                     struct wb_store_timeline *timeline_out)
{
    struct past_read r = {.repo = wb_repo_of(store), .id = id, .epoch = epoch};
    struct version_order *order = NULL;
    int err = wb_repo_read(r.repo, read_past, &r);

    WB_CHECK(timeline_out->count == 0);
    WB_CHECK(!timeline_out->versions);
    if (err == 0) {
        const struct wb_history *history = &r.view.history;
        order = wb_alloc(history->versions.count * sizeof *order);
        timeline_out->versions = wb_alloc(history->versions.count * sizeof *timeline_out->versions);
        timeline_out->times = wb_alloc(history->times.count * sizeof *timeline_out->times);
        err = order && timeline_out->versions && timeline_out->times ? 0 : WB_E_NOMEM;
        if (err == 0) {
            fill_timeline(&r, order, timeline_out);
            err = mark_same(history, order, timeline_out);
        }
    }
    if (err < 0)
        wb_store_timeline_release(timeline_out);
    wb_free(order);
    wb_pageview_release(&r.view);
    wb_vec_release(&r.held);
    return err;
}

/* ---- what can be read ------------------------------------------------------------------------------- */

struct readable_count {
    struct wb_repo *repo;
    struct wb_catalog_txn txn;
    struct wb_history_rule rule;
    struct wb_epochs held;
    struct wb_pageview view;
    struct wb_repo_readable *readable;
};

/* Takes away what the counters include but nobody can read any more. */
static int discount(void *context, struct wb_pageid id, struct wb_slice bytes)
{
    struct readable_count *c = context;
    struct wb_repo_readable *readable = c->readable;

    WB_CHECK(c->txn.kind >= WB_CATALOG_TXN_AWAKE);
    (void)bytes;
    int err = wb_pageview_load(&c->txn, true, id, &c->view);
    if (err < 0)
        return err;
    struct wb_history *history = &c->view.history;
    uint64_t versions = history->versions.count, captures = history->times.count, stored = 0;
    size_t shown = 0, seen = 0;
    for (size_t i = 0; i < history->versions.count; i++)
        stored += history->versions.items[i].stored_bytes;
    wb_history_trim(history, &c->rule);
    WB_CHECK(history->versions.count <= versions);
    for (size_t i = 0; i < history->versions.count; i++) {
        const struct wb_history_version *version = &history->versions.items[i];
        stored -= version->stored_bytes;
        shown += !version->replaced;
        seen += version->replaced ? 0 : version->count;
    }
    readable->versions -= versions - shown;
    readable->captures -= captures - seen;
    readable->bytes_dead += stored;
    return 0;
}

static int count_snapshot(void *context, const struct wb_store_snapshot *snapshot)
{
    struct wb_repo_readable *readable = context;

    WB_CHECK(snapshot->number > 0);
    WB_CHECK(snapshot->holder_count > 0);
    (void)snapshot;
    readable->snapshots++;
    return 0;
}

int wb_repo_count_readable(struct wb_repo *repo, struct wb_repo_readable *readable_out)
{
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    struct readable_count c = {.repo = repo, .readable = readable_out};
    struct wb_catalog_summary summary;
    int64_t now_ms = wb_clock_wall_ms();
    int err = wb_catalog_txn_read(repo->catalog, &c.txn);

    *readable_out = (struct wb_repo_readable){0};
    if (err == 0)
        err = wb_catalog_summary_get(&c.txn, &summary);
    if (err == 0)
        err = wb_repo_epochs_held(repo, &c.txn, &c.held);
    if (err == 0) {
        readable_out->versions = summary.versions;
        readable_out->captures = summary.captures;
        c.rule = (struct wb_history_rule){summary.history, c.held.items, c.held.count, now_ms};
        err = wb_catalog_history_each(&c.txn, (struct wb_pageid){0}, discount, &c);
    }
    wb_catalog_txn_abort(&c.txn);
    wb_pageview_release(&c.view);
    wb_vec_release(&c.held);
    return err < 0 ? err : wb_repo_snapshot_each(&repo->store, count_snapshot, readable_out);
}

/* ---- forgetting ---------------------------------------------------------------------------------------- */

enum { FORGET_AT_ONCE = 2000 }; /* pages in one transaction, so that other writers do not wait for long */

/* A walk over all pages that have a past. */
struct forgetting {
    struct wb_catalog_txn txn;
    struct wb_history_rule rule;
    struct wb_epochs held;
    struct wb_pageview view;
    struct wb_pageid next;        /* where to go on */
    WB_VEC(struct wb_pageid) ids; /* pages that have something to forget */
};

/* Returns 1 when enough pages were found for one transaction. */
static int find_forgettable(void *context, struct wb_pageid id, struct wb_slice bytes)
{
    struct forgetting *f = context;

    WB_CHECK(f->txn.kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(f->ids.count <= FORGET_AT_ONCE);
    (void)bytes;
    if (f->ids.count == FORGET_AT_ONCE) {
        f->next = id;
        return 1;
    }
    int err = wb_pageview_load(&f->txn, true, id, &f->view);
    if (err < 0)
        return err;
    size_t versions = f->view.history.versions.count, ghosts = f->view.history.ghosts;
    size_t captures = f->view.history.times.count;
    wb_history_trim(&f->view.history, &f->rule);
    bool forgets = f->view.history.versions.count < versions || f->view.history.ghosts != ghosts ||
                   f->view.history.times.count < captures;
    return forgets ? wb_vec_push(&f->ids, id) : 0;
}

/* Finds the next pages. Returns 1 if there are more after them. */
static int find_next(struct wb_repo *repo, struct forgetting *f)
{
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    struct wb_catalog_summary summary;
    int err = wb_catalog_txn_read(repo->catalog, &f->txn);

    WB_CHECK(f->ids.count <= FORGET_AT_ONCE);
    wb_vec_clear(&f->ids);
    if (err == 0)
        err = wb_catalog_summary_get(&f->txn, &summary);
    if (err == 0)
        err = wb_repo_epochs_held(repo, &f->txn, &f->held);
    if (err == 0) {
        f->rule = (struct wb_history_rule){summary.history, f->held.items, f->held.count, wb_clock_wall_ms()};
        err = wb_catalog_history_each(&f->txn, f->next, find_forgettable, f);
    }
    wb_catalog_txn_abort(&f->txn);
    WB_CHECK(err <= 0 || f->ids.count == FORGET_AT_ONCE);
    return err;
}

/* Loads and saves the pages that were found: saving forgets. */
static int forget_found(struct wb_repo *repo, const struct forgetting *f, uint64_t *versions_inout)
{
    /* Scrubbing would copy the segment, however little there is to free. */
    struct wb_repo_edit edit = {.repo = repo, .forgetting = !repo->store.thrifty};
    int err = wb_repo_edit_begin(repo, &edit);
    uint64_t before = edit.summary.versions;

    WB_CHECK(f->ids.count > 0);
    WB_CHECK(repo->writer->ops.count == 0);
    for (size_t i = 0; i < f->ids.count && err == 0; i++) {
        err = wb_repo_edit_load(&edit, f->ids.items[i]);
        if (err == 0)
            err = wb_repo_edit_save(&edit, false, false, NULL);
    }
    if (err == 0)
        err = wb_repo_edit_end(&edit);
    if (err == 0) {
        WB_CHECK(edit.summary.versions <= before);
        *versions_inout += before - edit.summary.versions;
        repo->writer->files.commit = edit.summary.commit;
    }
    wb_catalog_txn_abort(&edit.txn);
    wb_repo_edit_release(&edit);
    wb_repo_decide(repo);
    return err;
}

int wb_repo_forget(struct wb_repo *repo, uint64_t *versions_out)
{
    struct forgetting f = {0};
    int more = 1;

    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(repo->writer->ops.count == 0);
    *versions_out = 0;
    while (more > 0) {
        more = find_next(repo, &f);
        int err = more >= 0 && f.ids.count ? forget_found(repo, &f, versions_out) : 0;
        more = err < 0 ? err : more;
    }
    wb_pageview_release(&f.view);
    wb_vec_release(&f.held);
    wb_vec_release(&f.ids);
    return more;
}
