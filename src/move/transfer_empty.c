/*
 * transfer_empty.c - the end of a transfer: takes away from the update nodes what has arrived on the read nodes. What
 * has changed since the transfer began stays: others go on writing meanwhile.
 *
 * If nothing has changed and everything has arrived, whole tables are given up in one transaction, which takes almost
 * no time. Otherwise each page is compared with the state that was brought.
 */
#include "base/check.h"
#include "move/transfer.h"

#include <stdlib.h>

enum { EMPTY_AT_ONCE = 4000 }; /* pages in one transaction, so that other writers do not wait for long */

static bool is_same(const struct wb_history *a, const struct wb_history *b)
{
    if (a->versions.count != b->versions.count || a->times.count != b->times.count)
        return false;
    if (a->times.count && memcmp(a->times.items, b->times.items, a->times.count * sizeof *a->times.items) != 0)
        return false;
    for (size_t i = 0; i < a->versions.count; i++) {
        const struct wb_history_version *x = &a->versions.items[i], *y = &b->versions.items[i];
        WB_CHECK(x->arrived > 0);
        if (x->content != y->content || x->arrived != y->arrived || x->first != y->first || x->count != y->count)
            return false;
    }
    return true;
}

/* An emptying under way. */
struct emptying {
    struct wb_transfer *t;
    struct wb_repo_edit edit;
    struct wb_pageview view; /* as it was brought */
};

static int empty_sites(struct emptying *e)
{
    int err = 0;

    WB_CHECK(e->edit.txn.kind == WB_CATALOG_TXN_WRITING);
    for (size_t i = 0; i < e->t->sites.count && err == 0; i++) {
        struct wb_transfer_site *site = &e->t->sites.items[i];
        WB_CHECK(site->delta <= 0);
        if (site->delta)
            err = wb_catalog_site_add(&e->edit.txn, wb_transfer_site_name(e->t, site), site->delta, &e->edit.summary);
        site->delta = 0;
    }
    return err;
}

static int delete_event(void *context, const struct wb_catalog_event *event)
{
    struct emptying *e = context;
    int err = wb_catalog_event_delete(&e->edit.txn, event);

    WB_CHECK(e->edit.txn.kind == WB_CATALOG_TXN_WRITING);
    return err == WB_E_NOTFOUND ? 0 : err; /* taken down meanwhile */
}

/* Takes the versions of a page away, unless something has come to them: *same_out. */
static int empty_versions(struct emptying *e, const struct wb_transfer_page *page, bool *same_out)
{
    int err = wb_pageview_load(&e->t->waiting, true, page->id, &e->view);

    WB_CHECK(page->versions);
    if (err == 0)
        err = wb_repo_edit_load(&e->edit, page->id);
    if (err < 0)
        return err;
    struct wb_transfer_site *site = wb_transfer_site(e->t, e->edit.view.site);
    *same_out = is_same(&e->view.history, &e->edit.view.history);
    if (*same_out) {
        wb_history_clear(&e->edit.view.history);
        e->edit.changed = true;
    }
    return wb_repo_edit_save(&e->edit, false, false, site ? &site->delta : NULL);
}

/* The page as it was brought is taken away, and so are its events. One that has changed stays whole. */
static int empty_page(struct emptying *e, const struct wb_transfer_page *page)
{
    bool same = true;
    int err = page->versions ? empty_versions(e, page, &same) : 0;

    WB_CHECK(page->versions || page->involved);
    return err < 0 || !same || !page->involved ? err : wb_catalog_event_of(&e->t->waiting, page->id, delete_event, e);
}

static int compare_kept(const void *a, const void *b)
{
    const struct wb_transfer_kept *x = a, *y = b;
    int order = wb_pageid_compare(x->id, y->id);

    return order ? order : x->time_ms < y->time_ms ? -1 : x->time_ms > y->time_ms;
}

/* Whether a revisit stays, because a node that it needs cannot be used. */
static bool is_kept(const struct emptying *e, struct wb_pageid id, int64_t time_ms)
{
    struct wb_transfer_kept key = {.id = id, .time_ms = time_ms};
    const struct wb_transfer *t = e->t;

    WB_CHECK(t->kept.items || t->kept.count == 0);
    return t->kept.count && bsearch(&key, t->kept.items, t->kept.count, sizeof key, compare_kept);
}

/* The names of revisits that were brought. */
static int delete_name(void *context, const struct wb_catalog_event *event)
{
    WB_CHECK(context != NULL);
    return event->kind == WB_CATALOG_EVENT_NAME && !is_kept(context, event->id, event->time_ms)
               ? delete_event(context, event)
               : 0;
}

static int delete_revisit(void *context, const struct wb_store_revisit *revisit, uint64_t site)
{
    struct emptying *e = context;

    (void)site;
    WB_CHECK(e->edit.txn.kind == WB_CATALOG_TXN_WRITING);
    if (is_kept(e, revisit->id, revisit->time_ms))
        return 0;
    int err = wb_catalog_revisit_delete(&e->edit.txn, revisit);
    e->edit.summary.revisits -= err == 0 && e->edit.summary.revisits > 0;
    return err == WB_E_NOTFOUND ? 0 : err;
}

/* Ends a transaction, which was committed or not. */
static int end_transaction(struct emptying *e, bool committed, int err)
{
    struct wb_repo *from = e->t->from;

    WB_CHECK(!committed || err == 0);
    if (committed)
        from->writer->files.commit = e->edit.summary.commit;
    wb_catalog_txn_abort(&e->edit.txn);
    wb_repo_edit_release(&e->edit);
    e->edit = (struct wb_repo_edit){0};
    wb_repo_decide(from);
    return err;
}

/* One transaction: the pages from `first` on, and with the last ones the events and revisits. */
static int empty_some(struct emptying *e, size_t first, size_t *next_out)
{
    struct wb_transfer *t = e->t;
    int err = wb_repo_edit_begin(t->from, &e->edit);

    WB_CHECK(first <= t->pages.count);
    *next_out = t->pages.count - first < EMPTY_AT_ONCE ? t->pages.count : first + EMPTY_AT_ONCE;
    for (size_t i = first; i < *next_out && err == 0; i++)
        err = t->pages.items[i].brought ? empty_page(e, &t->pages.items[i]) : 0;
    if (err == 0)
        err = empty_sites(e);
    if (err == 0 && *next_out == t->pages.count)
        err = wb_catalog_event_each(&t->waiting, delete_name, e);
    if (err == 0 && *next_out == t->pages.count)
        err = wb_catalog_revisit_each(&t->waiting, delete_revisit, e);
    if (err == 0)
        err = wb_repo_edit_end(&e->edit);
    return end_transaction(e, err == 0, err);
}

/* ---- everything at once ------------------------------------------------------------------------------------ */

/* The tables that have what waits. */
static const enum wb_catalog_table waiting_tables[] = {WB_CATALOG_PAGES,    WB_CATALOG_HISTORY, WB_CATALOG_EVENTS,
                                                       WB_CATALOG_REVISITS, WB_CATALOG_WAITING, WB_CATALOG_SITES};
enum { WAITING_TABLES = sizeof waiting_tables / sizeof *waiting_tables };

/* Whether everything has arrived. Files that change in place are emptied page by page. */
static bool has_all_arrived(const struct wb_transfer *t)
{
    bool all = !t->from->files.kind->in_place && t->damage.code == 0 && t->kept.count == 0;

    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    for (size_t i = 0; i < t->pages.count && all; i++)
        all = t->pages.items[i].brought;
    return all;
}

/* A segment in which nothing is alive any more. */
static int bury_segment(void *context, const struct wb_catalog_segment *seen)
{
    struct wb_repo_edit *edit = context;
    struct wb_catalog_segment *row;
    int err = wb_pagefile_edit_row(&edit->files, seen->number, &row);

    WB_CHECK(seen->old <= seen->live);
    if (err < 0 || row->live == 0)
        return err;
    row->live = row->old = 0;
    row->bytes_dead = row->bytes;
    return 0;
}

/* Gives up all rows of what waits, unless there is something new among them. */
static int empty_tables(struct emptying *e, bool *done_out)
{
    struct wb_transfer *t = e->t;
    struct wb_repo_edit *edit = &e->edit;
    struct wb_catalog_summary *summary = &edit->summary;
    int err = wb_repo_edit_begin(t->from, edit);
    bool same = err == 0;

    WB_CHECK(!t->from->files.kind->in_place);
    for (size_t i = 0; i < WAITING_TABLES && same; i++)
        same = wb_catalog_same(&t->waiting, &edit->txn, waiting_tables[i]);
    for (size_t i = 0; i < WAITING_TABLES && same && err == 0; i++)
        err = wb_catalog_clear(&edit->txn, waiting_tables[i]);
    if (same && err == 0)
        err = wb_catalog_segment_each(&edit->txn, bury_segment, edit);
    summary->pages = summary->versions = summary->captures = summary->gone = 0;
    summary->sites = summary->revisits = summary->bytes_pages = 0;
    edit->changed = true;
    if (same && err == 0)
        err = wb_repo_edit_end(edit);
    *done_out = same && err == 0;
    return end_transaction(e, *done_out, err);
}

int wb_transfer_empty(struct wb_transfer *t)
{
    struct emptying e = {.t = t};
    bool done = t->pages.count == 0 && t->revisits == 0 && wb_catalog_count(&t->waiting, WB_CATALOG_EVENTS) == 0;
    size_t next = 0;
    int err = 0;

    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(t->from->writer->ops.count == 0);
    if (t->kept.count > 1)
        qsort(t->kept.items, t->kept.count, sizeof *t->kept.items, compare_kept);
    if (!done && has_all_arrived(t))
        err = empty_tables(&e, &done);
    while (err == 0 && !done) {
        err = empty_some(&e, next, &next);
        if (err == 0)
            err = wb_transfer_progress(t);
        done = next == t->pages.count;
    }
    wb_pageview_release(&e.view);
    return err;
}
