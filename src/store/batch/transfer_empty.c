/*
 * transfer_empty.c - the end of a transfer: takes away from the update nodes what has arrived on the read nodes. What
 * has changed since the transfer began stays: others go on writing meanwhile.
 */
#include "base/check.h"
#include "store/batch/transfer.h"

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
    struct wb_log_edit edit;
    struct wb_log_view view; /* as it was brought */
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

/* The page as it was brought is taken away, and so are its events. One that has changed stays whole. */
static int empty_page(struct emptying *e, const struct wb_transfer_page *page)
{
    int err = page->versions ? wb_log_view_load(&e->t->waiting, true, page->id, &e->view) : 0;

    WB_CHECK(page->versions || page->involved);
    if (err == 0)
        err = wb_log_edit_load(&e->edit, page->id);
    if (err < 0)
        return err;
    struct wb_transfer_site *site = wb_transfer_site(e->t, e->edit.view.site);
    bool same = !page->versions || is_same(&e->view.history, &e->edit.view.history);
    if (page->versions && same) {
        wb_history_clear(&e->edit.view.history);
        e->edit.changed = true;
    }
    err = wb_log_edit_save(&e->edit, false, false, site ? &site->delta : NULL);
    return err < 0 || !same || !page->involved ? err : wb_catalog_event_of(&e->t->waiting, page->id, delete_event, e);
}

/* The names of revisits that were brought. */
static int delete_name(void *context, const struct wb_catalog_event *event)
{
    WB_CHECK(context != NULL);
    return event->kind == WB_CATALOG_EVENT_NAME ? delete_event(context, event) : 0;
}

static int delete_revisit(void *context, const struct wb_store_revisit *revisit, uint64_t site)
{
    struct emptying *e = context;
    int err = wb_catalog_revisit_delete(&e->edit.txn, revisit);

    WB_CHECK(e->edit.txn.kind == WB_CATALOG_TXN_WRITING);
    (void)site;
    e->edit.summary.revisits -= err == 0 && e->edit.summary.revisits > 0;
    return err == WB_E_NOTFOUND ? 0 : err;
}

/* One transaction: the pages from `first` on, and with the last ones the events and revisits. */
static int empty_some(struct emptying *e, size_t first, size_t *next_out)
{
    struct wb_transfer *t = e->t;
    int err = wb_log_edit_begin(t->from, &e->edit);

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
        err = wb_log_edit_end(&e->edit);
    if (err == 0)
        t->from->writer->commit = e->edit.summary.commit;
    wb_catalog_txn_abort(&e->edit.txn);
    wb_log_edit_release(&e->edit);
    e->edit = (struct wb_log_edit){0};
    wb_log_decide(t->from);
    return err;
}

int wb_transfer_empty(struct wb_transfer *t)
{
    struct emptying e = {.t = t};
    size_t next = 0;
    int err = 0;

    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(t->from->writer->ops.count == 0);
    if (err == 0 && (t->pages.count || t->revisits || wb_catalog_count(&t->waiting, WB_CATALOG_EVENTS)))
        do {
            err = empty_some(&e, next, &next);
            if (err == 0)
                err = wb_transfer_progress(t);
        } while (err == 0 && next < t->pages.count);
    wb_log_view_release(&e.view);
    return err;
}
