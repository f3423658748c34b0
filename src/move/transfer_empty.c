/*
 * transfer_empty.c - takes away from the update nodes what arrives on the read nodes. It is done in a transaction of
 * their catalog that begins before the commit of the read nodes, and is committed after it: so nobody else changes
 * what waits in between, and a page that has changed since it was listed is noticed, and stays. After a crash between
 * the two commits, the next transfer brings what has arrived once more.
 *
 * If one commit brings everything that waits, whole tables are given up, which takes almost no time.
 */
#include "base/check.h"
#include "move/transfer.h"

bool wb_transfer_is_same(const struct wb_pageview *a, const struct wb_pageview *b)
{
    const struct wb_history *p = &a->history, *q = &b->history;

    if (p->versions.count != q->versions.count || p->times.count != q->times.count || p->gone_ms != q->gone_ms ||
        p->floor_ms != q->floor_ms || a->lifetime != b->lifetime || a->lifetime_count != b->lifetime_count)
        return false;
    if (p->times.count && memcmp(p->times.items, q->times.items, p->times.count * sizeof *p->times.items) != 0)
        return false;
    for (size_t i = 0; i < p->versions.count; i++) {
        const struct wb_history_version *x = &p->versions.items[i], *y = &q->versions.items[i];
        WB_CHECK(x->arrived > 0);
        if (x->content != y->content || x->arrived != y->arrived || x->ceased != y->ceased || x->first != y->first ||
            x->count != y->count || !wb_catalog_place_equal(&x->place, &y->place))
            return false;
    }
    return true;
}

/* The tables that have what waits. Revisits wait for their original, not for a transfer. */
static const enum wb_catalog_table waiting_tables[] = {WB_CATALOG_PAGES, WB_CATALOG_HISTORY, WB_CATALOG_SITES};
enum { WAITING_TABLES = sizeof waiting_tables / sizeof *waiting_tables };

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

/* Whether the next commit brings everything that waits. Files that change in place are emptied page by page. */
static bool is_everything(struct wb_transfer *t)
{
    bool all = !t->from->files.kind->in_place && t->damage.code == 0 && t->fresh.count == t->pages.count;

    WB_CHECK(t->edit.txn.kind == WB_CATALOG_TXN_WRITING);
    for (size_t i = 0; i < t->pages.count && all; i++)
        all = t->pages.items[i].brought;
    for (size_t i = 0; i < WAITING_TABLES && all; i++)
        all = wb_catalog_same(&t->waiting, &t->edit.txn, waiting_tables[i]);
    return all;
}

int wb_transfer_empty_begin(struct wb_transfer *t)
{
    int err = wb_repo_edit_begin(t->from, &t->edit);

    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(t->from->writer->ops.count == 0);
    wb_vec_clear(&t->deltas);
    if (err == 0)
        err = wb_vec_reserve(&t->deltas, t->sites.items.count);
    while (err == 0 && t->deltas.count < t->sites.items.count)
        err = wb_vec_push(&t->deltas, 0);
    t->everything = err == 0 && is_everything(t);
    return err;
}

int wb_transfer_is_unchanged(struct wb_transfer *t, bool *unchanged_out)
{
    int err = t->everything ? 0 : wb_pageview_load(&t->edit.txn, true, t->view.id, &t->other);

    WB_CHECK(t->edit.txn.kind == WB_CATALOG_TXN_WRITING);
    *unchanged_out = err == 0 && (t->everything || wb_transfer_is_same(&t->view, &t->other));
    return err;
}

int wb_transfer_empty_page(struct wb_transfer *t, const struct wb_transfer_page *page, const struct wb_history *readers)
{
    struct wb_pageview *view = &t->edit.view;
    uint8_t out = 0;
    int err = 0;

    if (t->everything)
        return 0;
    if (page->partly && wb_transfer_has_bytes(&page->entry.place)) /* its bucket has a copy of its entry */
        err = wb_transfer_place_out(t, page->id, &page->entry.place, &out);
    if (err < 0 || out || !(page->brought || page->partly))
        return err;
    err = wb_repo_edit_load(&t->edit, page->id);
    const struct wb_named_site *site = err == 0 ? wb_site_names_find(&t->sites, view->site) : NULL;
    if (err == 0 && page->partly) /* what has arrived is not to come any more */
        wb_transfer_arrive(&view->history, readers, WB_HISTORY_COMING);
    else if (err == 0)
        wb_history_clear(&view->history);
    return err < 0 ? err
                   : wb_repo_edit_save(&t->edit, false, false,
                                       site ? &t->deltas.items[site - t->sites.items.items] : NULL);
}

/* Gives up all rows of what waits. */
static int empty_tables(struct wb_transfer *t)
{
    struct wb_catalog_summary *summary = &t->edit.summary;
    int err = 0;

    for (size_t i = 0; i < WAITING_TABLES && err == 0; i++)
        err = wb_catalog_clear(&t->edit.txn, waiting_tables[i]);
    if (err == 0)
        err = wb_catalog_segment_each(&t->edit.txn, bury_segment, &t->edit);
    summary->pages = summary->versions = summary->captures = summary->gone = 0;
    summary->sites = summary->bytes_pages = 0;
    return err;
}

static int empty_sites(struct wb_transfer *t)
{
    int err = 0;

    for (size_t i = 0; i < t->deltas.count && err == 0; i++)
        if (t->deltas.items[i])
            err = wb_catalog_site_add(&t->edit.txn, wb_site_names_text(&t->sites, &t->sites.items.items[i]),
                                      t->deltas.items[i], &t->edit.summary);
    return err;
}

int wb_transfer_empty_end(struct wb_transfer *t, int err)
{
    if (err == 0)
        err = t->everything ? empty_tables(t) : empty_sites(t);
    if (err == 0)
        err = wb_repo_edit_end(&t->edit);
    if (err == 0)
        t->from->writer->files.commit = t->edit.summary.commit;
    wb_catalog_txn_abort(&t->edit.txn);
    wb_repo_edit_release(&t->edit);
    t->edit = (struct wb_repo_edit){0};
    wb_repo_decide(t->from);
    return err;
}
