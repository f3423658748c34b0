/*
 * repo_edit.c - changes pages in a transaction of the catalog, and keeps in step what depends on
 * them: the rows of the segments that hold their bytes, and the counters of the summary.
 * repo_commit.c, repo_history.c and repo_recover.c say which pages and how.
 *
 * A page may have several versions at one place, because a content that returns is stored only
 * once. So a place is alive as long as any version has it.
 */
#include "base/check.h"
#include "base/mem.h"
#include "os/clock.h"
#include "store/repo_base.h"

#include <stdlib.h>

/* ---- the transaction ------------------------------------------------------------------------ */

void wb_repo_edit_release(struct wb_repo_edit *edit)
{
    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_CLOSED);
    wb_pagefile_edit_release(&edit->files);
    wb_vec_release(&edit->held);
    wb_vec_release(&edit->before);
    wb_vec_release(&edit->after);
    wb_pageview_release(&edit->view);
}

int wb_repo_edit_begin(struct wb_repo *repo, struct wb_repo_edit *edit)
{
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_CLOSED);
    WB_CHECK(!edit->files.rows);
    edit->repo = repo;
    int err = wb_catalog_txn_write(repo->catalog, &edit->txn);
    if (err == 0)
        err = wb_catalog_summary_get(&edit->txn, &edit->summary);
    if (err == 0)
        err = wb_repo_epochs_held(repo, &edit->txn, &edit->held);
    if (err < 0)
        return err;
    edit->moment = (struct wb_moment){
        .epoch = wb_history_next_epoch(edit->summary.epoch),
        .rule = {edit->summary.history, edit->held.items, edit->held.count, wb_clock_wall_ms()},
    };
    return wb_pagefile_edit_begin(&repo->files, &edit->txn, &edit->summary, &edit->files);
}

/*
 * Marks a segment that has dead pages, so that the next compaction removes all dead
 * bytes from it, even those that other pages are compressed with. `seen` is only used for its number.
 */
static int mark_for_scrubbing(void *context, const struct wb_catalog_segment *seen)
{
    struct wb_repo_edit *edit = context;
    struct wb_catalog_segment *row;
    int err = wb_pagefile_edit_row(&edit->files, seen->number, &row);

    WB_CHECK(edit->taken_down);
    WB_CHECK(seen->number > 0);
    if (err == 0 && row->pages + row->lead_dead > row->live)
        row->removed++;
    return err;
}

int wb_repo_edit_end(struct wb_repo_edit *edit)
{
    int err = 0;

    WB_CHECK(edit->moment.epoch == wb_history_next_epoch(edit->summary.epoch));
    WB_CHECK(edit->summary.epoch > 0);
    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_WRITING);
    /* Older versions of a page that was taken down may be dead in any segment, and nothing remembers in which. */
    if (edit->taken_down)
        err = wb_catalog_segment_each(&edit->txn, mark_for_scrubbing, edit);
    if (err == 0)
        err = wb_pagefile_edit_write(&edit->files);
    edit->summary.commit++;
    if (edit->changed)
        edit->summary.epoch = edit->moment.epoch;
    if (err == 0)
        err = wb_catalog_summary_put(&edit->txn, &edit->summary);
    if (err == 0)
        err = wb_catalog_txn_commit(&edit->txn);
    wb_pagefile_edit_done(&edit->files, err);
    return err;
}

/* ---- one page --------------------------------------------------------------------------------- */

static int compare_places(const void *a, const void *b)
{
    const struct wb_place_used *x = a, *y = b;
    int order = wb_catalog_place_compare(&x->place, &y->place);

    return order ? order : (int)y->latest - (int)x->latest; /* the latest comes first */
}

/* The places of all versions in the view, sorted, each once. */
#define gather_places(view, places) gather_places_into((view), &(places)->items, &(places)->count, &(places)->cap)
static int gather_places_into(struct wb_pageview *view, struct wb_place_used **items, size_t *count, size_t *cap)
{
    size_t versions = view->history.versions.count, n = 0;
    int err = wb_grow(items, cap, versions + 1);

    *count = 0;
    if (err < 0)
        return err;
    for (size_t i = 0; i < versions; i++) {
        const struct wb_history_version *version = &view->history.versions.items[i];
        WB_CHECK(version->place.segment != WB_PAGEVIEW_PENDING_SEGMENT);
        if (version->place.segment && version->place.segment != WB_CATALOG_BASE_SEGMENT)
            (*items)[n++] =
                (struct wb_place_used){version->place, version->stored_bytes, version->arrived, version->ceased == 0};
    }
    if (n > 1)
        qsort(*items, n, sizeof **items, compare_places);
    for (size_t i = 0; i < n; i++)
        if (*count == 0 || !wb_catalog_place_equal(&(*items)[*count - 1].place, &(*items)[i].place))
            (*items)[(*count)++] = (*items)[i];
    WB_CHECK(*count <= n);
    WB_CHECK(n <= versions);
    return 0;
}

int wb_repo_edit_load(struct wb_repo_edit *edit, struct wb_pageid id)
{
    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_WRITING);
    int err = wb_pageview_load(&edit->txn, edit->summary.gone > 0, id, &edit->view);
    if (err < 0)
        return err;
    WB_CHECK(wb_pageid_equal(edit->view.id, id));
    const struct wb_history *history = &edit->view.history;
    const struct wb_history_version *latest = wb_history_latest(&edit->view.history);
    uint64_t gone = history->versions.count > 0 && !latest;
    if (edit->summary.versions < history->versions.count || edit->summary.captures < history->times.count ||
        edit->summary.gone < gone || (latest && edit->summary.pages == 0) ||
        (latest && edit->summary.bytes_pages < latest->body_bytes))
        return wb_catalog_corrupt(edit->repo->catalog, WB_CATALOG_SUMMARY, "counters that do not match the rows");
    for (size_t i = 0; i < history->versions.count; i++)
        if (history->versions.items[i].arrived > edit->summary.epoch ||
            history->versions.items[i].ceased > edit->summary.epoch)
            return wb_catalog_corrupt(edit->repo->catalog, WB_CATALOG_PAGES, "a version of an epoch to come");
    edit->summary.versions -= history->versions.count;
    edit->summary.captures -= history->times.count;
    edit->summary.gone -= gone;
    edit->summary.pages -= latest != NULL;
    edit->summary.bytes_pages -= latest ? latest->body_bytes : 0;
    err = gather_places(&edit->view, &edit->before);
    return err < 0 ? err : wb_repo_base_view(edit->repo, &edit->view);
}

/* A place that no version needs any more. */
static int bury(struct wb_repo_edit *edit, const struct wb_place_used *place)
{
    struct wb_catalog_segment *row;
    int err = wb_pagefile_edit_row_of(&edit->files, &place->place, edit->view.id, &row);

    WB_CHECK(place->place.segment > 0);
    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_WRITING);
    if (err < 0)
        return err;
    if (row->live == 0 || (!place->latest && row->old == 0))
        return wb_catalog_corrupt(edit->repo->catalog, WB_CATALOG_SEGMENTS, "a segment with fewer pages than entries");
    row->live--;
    row->old -= !place->latest;
    row->bytes_dead += place->stored_bytes;
    row->removed += edit->forgetting;
    return 0;
}

/* A place that a version needs now; was is the same place before, or NULL. */
static int settle(struct wb_repo_edit *edit, const struct wb_place_used *was, const struct wb_place_used *is,
                  bool touched)
{
    struct wb_catalog_segment *row;

    WB_CHECK(is->place.segment > 0);
    WB_CHECK(is->arrived > 0);
    WB_CHECK(!was || wb_catalog_place_equal(&was->place, &is->place));
    if (was && was->latest == is->latest && !(is->latest && (touched || was->arrived != is->arrived)))
        return 0;
    int err = wb_pagefile_edit_row_of(&edit->files, &is->place, edit->view.id, &row);
    if (err < 0)
        return err;
    if (was && !was->latest && row->old == 0)
        return wb_catalog_corrupt(edit->repo->catalog, WB_CATALOG_SEGMENTS, "a segment with fewer pages than entries");
    row->old -= was && !was->latest;
    row->old += !is->latest;
    row->returned += was && !was->latest && is->latest;
    if (!was || is->latest) {
        row->epoch_min = row->live == 0 || row->epoch_min > is->arrived ? is->arrived : row->epoch_min;
        row->epoch_max = row->live == 0 || row->epoch_max < is->arrived ? is->arrived : row->epoch_max;
    }
    row->live += !was;
    row->touched += is->latest && (was || touched); /* its record says something else about time and lifetime */
    if (row->live > row->pages)
        return wb_catalog_corrupt(edit->repo->catalog, WB_CATALOG_SEGMENTS, "a segment with more entries than pages");
    return 0;
}

/* Compares the places before and after, both sorted. */
static int settle_places(struct wb_repo_edit *edit, bool touched)
{
    size_t b = 0, a = 0;
    int err = 0;

    while ((b < edit->before.count || a < edit->after.count) && err == 0) {
        const struct wb_place_used *was = b < edit->before.count ? &edit->before.items[b] : NULL;
        const struct wb_place_used *is = a < edit->after.count ? &edit->after.items[a] : NULL;
        WB_CHECK(was || is);
        bool same = was && is && wb_catalog_place_equal(&was->place, &is->place);
        if (!same && was && is)
            *(compare_places(was, is) < 0 ? &is : &was) = NULL;
        err = is ? settle(edit, was, is, touched) : bury(edit, was);
        b += was != NULL;
        a += is != NULL;
    }
    WB_CHECK(err < 0 || (b == edit->before.count && a == edit->after.count));
    return err;
}

void wb_repo_edit_take_down(struct wb_repo_edit *edit)
{
    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_WRITING);
    edit->taken_down = true;
    edit->summary.takedowns++;
}

int wb_repo_edit_save(struct wb_repo_edit *edit, bool touched, bool on_request, int64_t *site_pages_inout)
{
    struct wb_pageview *view = &edit->view;
    int err;

    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_WRITING);
    if (!edit->as_is)
        wb_history_trim(&view->history, &edit->moment.rule);
    const struct wb_history_version *latest = wb_history_latest(&view->history);
    WB_CHECK(!latest || latest->arrived <= edit->moment.epoch);
    edit->summary.versions += view->history.versions.count;
    edit->summary.captures += view->history.times.count;
    edit->summary.gone += view->history.versions.count > 0 && !latest;
    edit->summary.pages += latest != NULL;
    edit->summary.bytes_pages += latest ? latest->body_bytes : 0;
    if (site_pages_inout)
        *site_pages_inout += (latest != NULL) - (int64_t)view->had_entry;
    if (on_request)
        wb_repo_edit_take_down(edit);
    err = gather_places(view, &edit->after);
    if (err == 0)
        err = settle_places(edit, touched);
    const struct wb_pagefile_kind *kind = edit->repo->files.kind;
    if (err == 0 && kind->edit_note)
        err = kind->edit_note(&edit->files, view, &edit->before, &edit->after);
    return err < 0 ? err : wb_pageview_save(&edit->txn, view);
}
