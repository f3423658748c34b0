/*
 * transfer_empty.c - the end of a transfer: takes away from the update nodes what has arrived on the read nodes. What
 * has changed since the transfer began stays: others go on writing meanwhile.
 *
 * If nothing has changed and everything has arrived, whole tables are given up in one transaction, which takes almost
 * no time. Otherwise each page is compared with the state that was brought.
 */
#include "base/check.h"
#include "move/transfer.h"

enum { EMPTY_AT_ONCE = 4000 }; /* pages in one transaction, so that other writers do not wait for long */

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

/* An emptying under way. */
struct emptying {
    struct wb_transfer *t;
    struct wb_repo_edit edit;
    WB_VEC(int64_t) deltas; /* by how many pages each of t->sites shrinks in a transaction */
};

static int empty_sites(struct emptying *e)
{
    int err = 0;

    WB_CHECK(e->edit.txn.kind == WB_CATALOG_TXN_WRITING);
    for (size_t i = 0; i < e->deltas.count && err == 0; i++) {
        WB_CHECK(e->deltas.items[i] <= 0);
        if (e->deltas.items[i])
            err = wb_catalog_site_add(&e->edit.txn, wb_site_names_text(&e->t->sites, &e->t->sites.items.items[i]),
                                      e->deltas.items[i], &e->edit.summary);
        e->deltas.items[i] = 0;
    }
    return err;
}

/* What has arrived of a page is not to come any more. */
static int note_arrivals(struct emptying *e)
{
    struct wb_pageview *readers;
    int err = wb_repo_view(e->t->to, e->edit.view.id, &readers);

    if (err == 0)
        wb_transfer_arrive(&e->edit.view.history, &readers->history, WB_HISTORY_COMING);
    return err;
}

/* Takes a page away, unless something has come to it, or all of it has not arrived. */
static int empty_page(struct emptying *e, const struct wb_transfer_page *page)
{
    struct wb_pageview *view = &e->edit.view;
    uint8_t out = 0;
    int err = 0;

    if (!page->brought && !page->partly)
        return 0;
    if (page->partly && wb_transfer_has_bytes(&page->place)) /* its bucket has a copy of its entry */
        err = wb_transfer_place_out(e->t, page->id, &page->place, &out);
    if (err < 0 || out)
        return err;
    err = wb_pageview_load(&e->t->waiting, true, page->id, &e->t->view);
    if (err == 0)
        err = wb_repo_edit_load(&e->edit, page->id);
    if (err < 0 || !(view->had_entry || view->had_rows)) /* taken down meanwhile */
        return err;
    const struct wb_site_name *site = wb_site_names_find(&e->t->sites, view->site);
    if (page->partly)
        err = note_arrivals(e);
    else if (wb_transfer_is_same(&e->t->view, view))
        wb_history_clear(&view->history);
    return err < 0 ? err
                   : wb_repo_edit_save(&e->edit, false, false,
                                       site ? &e->deltas.items[site - e->t->sites.items.items] : NULL);
}

/* Ends a transaction, which was committed or not. */
static int end_transaction(struct emptying *e, bool committed, int err)
{
    struct wb_repo *from = e->t->from;

    WB_CHECK(!committed || err == 0);
    if (committed)
        from->writer->commit = e->edit.summary.commit;
    wb_catalog_txn_abort(&e->edit.txn);
    wb_repo_edit_release(&e->edit);
    e->edit = (struct wb_repo_edit){0};
    wb_repo_decide(from);
    return err;
}

/* One transaction: the pages from `first` on. */
static int empty_some(struct emptying *e, size_t first, size_t *next_out)
{
    struct wb_transfer *t = e->t;
    int err = wb_repo_edit_begin(t->from, &e->edit);

    WB_CHECK(first <= t->pages.count);
    *next_out = t->pages.count - first < EMPTY_AT_ONCE ? t->pages.count : first + EMPTY_AT_ONCE;
    for (size_t i = first; i < *next_out && err == 0; i++)
        err = empty_page(e, &t->pages.items[i]);
    if (err == 0)
        err = empty_sites(e);
    if (err == 0)
        err = wb_repo_edit_end(&e->edit);
    return end_transaction(e, err == 0, err);
}

/* ---- everything at once ------------------------------------------------------------------------------------ */

/* The tables that have what waits. Revisits wait for their original, not for a transfer. */
static const enum wb_catalog_table waiting_tables[] = {WB_CATALOG_PAGES, WB_CATALOG_HISTORY, WB_CATALOG_SITES};
enum { WAITING_TABLES = sizeof waiting_tables / sizeof *waiting_tables };

/* Whether everything has arrived. Buckets contain their pages, so they are emptied page by page. */
static bool has_all_arrived(const struct wb_transfer *t)
{
    bool all = !t->from->hash && t->damage.code == 0;

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
    int err = wb_repo_edit_row(edit, seen->number, &row);

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

    WB_CHECK(t->from->hash == NULL);
    for (size_t i = 0; i < WAITING_TABLES && same; i++)
        same = wb_catalog_same(&t->waiting, &edit->txn, waiting_tables[i]);
    for (size_t i = 0; i < WAITING_TABLES && same && err == 0; i++)
        err = wb_catalog_clear(&edit->txn, waiting_tables[i]);
    if (same && err == 0)
        err = wb_catalog_segment_each(&edit->txn, bury_segment, edit);
    summary->pages = summary->versions = summary->captures = summary->gone = 0;
    summary->sites = summary->bytes_pages = 0;
    edit->changed = true;
    if (same && err == 0)
        err = wb_repo_edit_end(edit);
    *done_out = same && err == 0;
    return end_transaction(e, *done_out, err);
}

int wb_transfer_empty(struct wb_transfer *t)
{
    struct emptying e = {.t = t};
    bool done = t->pages.count == 0;
    size_t next = 0;
    int err = wb_vec_reserve(&e.deltas, t->sites.items.count);

    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(t->from->writer->ops.count == 0);
    while (err == 0 && e.deltas.count < t->sites.items.count)
        err = wb_vec_push(&e.deltas, 0);
    if (err == 0 && !done && has_all_arrived(t))
        err = empty_tables(&e, &done);
    while (err == 0 && !done) {
        err = empty_some(&e, next, &next);
        if (err == 0)
            err = wb_transfer_progress(t);
        done = next == t->pages.count;
    }
    wb_vec_release(&e.deltas);
    return err;
}
