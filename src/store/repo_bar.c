/*
 * repo_bar.c - bars: they keep what was taken down from coming back.
 *
 * The catalog has a row for each page or site that is barred, and for each exception: a
 * page that is allowed although its site is barred. Bars are set and lifted in a
 * transaction of their own. Every commit calls wb_repo_bar_holds() inside its
 * transaction (repo_commit.c), and that answer counts; asking earlier only saves work.
 *
 * This file never removes a page. docs/design/0014-takedown.md explains the order in
 * which a takedown does things.
 */
#include "base/check.h"
#include "base/hash.h"
#include "store/repo.h"

int wb_repo_bar_holds(struct wb_catalog_txn *txn, struct wb_pageid id, struct wb_slice site, bool *barred_out)
{
    WB_CHECK(txn->catalog != NULL);
    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);

    struct wb_catalog_bar row;
    int err = wb_catalog_bar_get(txn, WB_STORE_BAR_PAGE, id, site, &row);

    *barred_out = err == 0 && !row.except;
    if (err != WB_E_NOTFOUND)
        return err;
    err = wb_catalog_bar_get(txn, WB_STORE_BAR_SITE, id, site, &row);
    *barred_out = err == 0;
    return err == WB_E_NOTFOUND ? 0 : err;
}

int wb_repo_bar_look(struct wb_repo *repo, struct wb_pageid id, struct wb_slice site, bool *barred_out)
{
    struct wb_catalog_summary summary;

    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(repo->reader.kind >= WB_CATALOG_TXN_AWAKE);
    *barred_out = false;
    /* Most repositories have no bars. So we read their number once for each state of the catalog, and remember it. */
    if (wb_catalog_txn_id(&repo->reader) != repo->bars_txn) {
        int err = wb_catalog_summary_get(&repo->reader, &summary);
        if (err < 0)
            return err;
        repo->bars = summary.bars;
        repo->bars_txn = wb_catalog_txn_id(&repo->reader);
    }
    return repo->bars ? wb_repo_bar_holds(&repo->reader, id, site, barred_out) : 0;
}

struct bar_question {
    struct wb_repo *repo;
    struct wb_pageid id;
    struct wb_slice site;
    bool barred;
};

static int ask(void *context)
{
    struct bar_question *q = context;

    WB_CHECK(q->repo->magic == WB_REPO_MAGIC);
    WB_CHECK(q->repo->reader.kind >= WB_CATALOG_TXN_AWAKE);
    return wb_repo_bar_look(q->repo, q->id, q->site, &q->barred);
}

int wb_repo_barred(struct wb_store *store, struct wb_pageid id, struct wb_slice site)
{
    struct bar_question q = {.repo = wb_repo_of(store), .id = id, .site = site};
    int err = wb_repo_read(q.repo, ask, &q);

    WB_CHECK(q.repo->reader.kind == WB_CATALOG_TXN_PARKED);
    WB_CHECK(err <= 0);
    return err < 0 ? err : q.barred;
}

/* ---- setting and lifting ---------------------------------------------------------------------- */

/* A transaction that changes bars. It collects the rows to delete, because a table must not change during a walk. */
struct bar_change {
    struct wb_repo_change change;
    const struct wb_store_bar *bar;
    uint64_t site;     /* hash of bar->site */
    struct wb_buf ids; /* ids of pages whose rows are to be deleted, WB_PAGEID_BYTES each */
    WB_VEC(struct wb_store_revisit) revisits; /* to be deleted */
};

static int gather_id(struct bar_change *c, struct wb_pageid id)
{
    char bytes[WB_PAGEID_BYTES];

    WB_CHECK(c->change.txn.kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(c->ids.len % WB_PAGEID_BYTES == 0);
    wb_pageid_put(id, bytes);
    return wb_buf_append(&c->ids, bytes, sizeof bytes);
}

/* The exceptions of a site. */
static int gather_exception(void *context, const struct wb_store_bar *bar, const struct wb_catalog_bar *row)
{
    struct bar_change *c = context;

    WB_CHECK(c->bar->kind == WB_STORE_BAR_SITE);
    WB_CHECK(row->except == bar->except);
    return bar->kind == WB_STORE_BAR_PAGE && row->except && row->site == c->site ? gather_id(c, bar->id) : 0;
}

/* All bars and exceptions of a site's pages. */
static int gather_page(void *context, const struct wb_store_bar *bar, const struct wb_catalog_bar *row)
{
    struct bar_change *c = context;

    WB_CHECK(bar->kind == WB_STORE_BAR_PAGE || bar->site.len > 0);
    WB_CHECK(c->bar->kind == WB_STORE_BAR_SITE);
    return bar->kind == WB_STORE_BAR_PAGE && row->site == c->site ? gather_id(c, bar->id) : 0;
}

/* Deletes the row of a bar, if there is one; *had_out says whether there was. */
static int delete_bar(struct bar_change *c, enum wb_store_bar_kind kind, struct wb_pageid id, bool *had_out)
{
    WB_CHECK(c->change.repo->magic == WB_REPO_MAGIC);

    int err = wb_catalog_bar_delete(&c->change.txn, kind, id, c->bar->site);

    WB_CHECK(c->change.txn.kind == WB_CATALOG_TXN_WRITING);
    *had_out = err == 0;
    if (err == WB_E_NOTFOUND)
        return 0;
    if (err == 0 && c->change.summary.bars == 0)
        err = wb_catalog_corrupt(c->change.repo->catalog, WB_CATALOG_BARS, "more rows than counted");
    c->change.summary.bars -= err == 0;
    return err;
}

static int delete_gathered_bars(struct bar_change *c)
{
    int err = 0;
    bool had;

    WB_CHECK(c->change.txn.kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(c->ids.len % WB_PAGEID_BYTES == 0);
    for (size_t at = 0; at < c->ids.len && err == 0; at += WB_PAGEID_BYTES)
        err = delete_bar(c, WB_STORE_BAR_PAGE, wb_pageid_get(c->ids.ptr + at), &had);
    return err;
}

static int gather_revisit(void *context, const struct wb_store_revisit *revisit, uint64_t site)
{
    struct bar_change *c = context;

    WB_CHECK(c->change.txn.kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(!c->bar->except);
    return c->bar->kind == WB_STORE_BAR_PAGE || site == c->site ? wb_vec_push(&c->revisits, *revisit) : 0;
}

/* A revisit that waits reveals when a page existed, and its digest. So it goes with the page. */
static int delete_revisits(struct bar_change *c)
{
    int err;

    WB_CHECK(c->change.txn.kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(!c->bar->except);
    if (c->bar->kind == WB_STORE_BAR_SITE)
        err = wb_catalog_revisit_each(&c->change.txn, gather_revisit, c);
    else
        err = wb_catalog_revisit_of(&c->change.txn, c->bar->id, gather_revisit, c);
    for (size_t i = 0; i < c->revisits.count && err == 0; i++) {
        err = wb_catalog_revisit_delete(&c->change.txn, &c->revisits.items[i]);
        if (err == 0 && c->change.summary.revisits == 0)
            err = wb_catalog_corrupt(c->change.repo->catalog, WB_CATALOG_REVISITS, "more rows than counted");
        c->change.summary.revisits -= err == 0;
    }
    return err;
}

static int put_bar(struct bar_change *c, bool except)
{
    struct wb_catalog_bar row = {.except = except, .time_ms = c->bar->time_ms, .site = c->site}, known;
    int err = wb_catalog_bar_get(&c->change.txn, c->bar->kind, c->bar->id, c->bar->site, &known);

    WB_CHECK(c->change.txn.kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(!except || c->bar->kind == WB_STORE_BAR_PAGE);
    if (err < 0 && err != WB_E_NOTFOUND)
        return err;
    c->change.summary.bars += err == WB_E_NOTFOUND;
    return wb_catalog_bar_put(&c->change.txn, c->bar->kind, c->bar->id, c->bar->site, &row);
}

static int set_bar(void *context)
{
    struct bar_change *c = context;

    WB_CHECK(c->change.txn.kind == WB_CATALOG_TXN_WRITING);

    int err = put_bar(c, c->bar->except);

    WB_CHECK(c->ids.len == 0);
    if (err == 0 && c->bar->kind == WB_STORE_BAR_SITE)
        err = wb_catalog_bar_each(&c->change.txn, gather_exception, c);
    if (err == 0)
        err = delete_gathered_bars(c);
    return err == 0 && !c->bar->except ? delete_revisits(c) : err;
}

static int lift_site(void *context)
{
    struct bar_change *c = context;

    WB_CHECK(c->change.txn.kind == WB_CATALOG_TXN_WRITING);

    bool had = false;
    int err = delete_bar(c, WB_STORE_BAR_SITE, c->bar->id, &had);

    WB_CHECK(c->bar->kind == WB_STORE_BAR_SITE);
    WB_CHECK(c->ids.len == 0);
    if (err == 0)
        err = wb_catalog_bar_each(&c->change.txn, gather_page, c);
    if (err == 0 && !had && c->ids.len == 0)
        return wb_fail(WB_E_NOTFOUND, "%.*s is not barred", WB_SLICE_ARG(c->bar->site));
    return err < 0 ? err : delete_gathered_bars(c);
}

static int lift_page(void *context)
{
    struct bar_change *c = context;

    WB_CHECK(c->change.txn.kind == WB_CATALOG_TXN_WRITING);

    struct wb_catalog_bar page, site;
    int err = wb_catalog_bar_get(&c->change.txn, WB_STORE_BAR_PAGE, c->bar->id, c->bar->site, &page);
    bool known = err == 0, had;

    WB_CHECK(c->bar->kind == WB_STORE_BAR_PAGE);
    if (err == 0 || err == WB_E_NOTFOUND)
        err = wb_catalog_bar_get(&c->change.txn, WB_STORE_BAR_SITE, c->bar->id, c->bar->site, &site);
    if (err < 0 && err != WB_E_NOTFOUND)
        return err;
    bool site_barred = err == 0;
    if (known ? page.except : !site_barred)
        return wb_fail(WB_E_NOTFOUND, "the page is not barred");
    return site_barred ? put_bar(c, true) : delete_bar(c, WB_STORE_BAR_PAGE, c->bar->id, &had);
}

static int change_bars(struct wb_store *store, const struct wb_store_bar *bar, int (*make)(void *context))
{
    WB_CHECK(store->mode == WB_STORE_WRITE);
    WB_CHECK(bar->kind == WB_STORE_BAR_PAGE || bar->site.len > 0);

    struct bar_change c = {.bar = bar, .site = wb_hash64(bar->site.ptr, bar->site.len), .ids = WB_BUF_INIT};
    int err = wb_repo_change(store, &c.change, make, &c);

    wb_buf_release(&c.ids);
    wb_vec_release(&c.revisits);
    return err;
}

int wb_repo_bar(struct wb_store *store, const struct wb_store_bar *bar)
{
    WB_CHECK(bar->kind <= WB_STORE_BAR_SITE);
    WB_CHECK(bar->kind == WB_STORE_BAR_PAGE || !bar->except);
    return change_bars(store, bar, set_bar);
}

int wb_repo_allow(struct wb_store *store, const struct wb_store_bar *bar)
{
    WB_CHECK(bar->kind == WB_STORE_BAR_PAGE || bar->site.len > 0);
    WB_CHECK(bar->kind == WB_STORE_BAR_PAGE || bar->kind == WB_STORE_BAR_SITE);
    return change_bars(store, bar, bar->kind == WB_STORE_BAR_SITE ? lift_site : lift_page);
}

/* ---- lists ---------------------------------------------------------------------------------------- */

struct bar_listing {
    int (*each)(void *context, const struct wb_store_bar *bar);
    void *context;
};

static int pass_bar(void *context, const struct wb_store_bar *bar, const struct wb_catalog_bar *row)
{
    struct bar_listing *l = context;

    WB_CHECK(l->each != NULL);
    WB_CHECK(bar->kind == WB_STORE_BAR_PAGE || bar->kind == WB_STORE_BAR_SITE);
    (void)row;
    return l->each(l->context, bar);
}

int wb_repo_bar_each(struct wb_store *store, int (*each)(void *context, const struct wb_store_bar *bar), void *context)
{
    WB_CHECK(each != NULL);

    struct bar_listing l = {.each = each, .context = context};
    struct wb_catalog_txn txn;
    int err = wb_catalog_txn_read(wb_repo_of(store)->catalog, &txn);

    if (err == 0)
        err = wb_catalog_bar_each(&txn, pass_bar, &l);
    wb_catalog_txn_abort(&txn);
    return err;
}

/* Only the root record is looked at, so no state has to be held: there is no page that could be reused meanwhile. */
int wb_repo_bar_version(struct wb_store *store, uint64_t *version_out)
{
    struct wb_catalog_txn txn;

    *version_out = 0;
    WB_CHECK(wb_repo_of(store)->catalog != NULL);
    wb_catalog_txn_init(wb_repo_of(store)->catalog, &txn);
    int err = wb_catalog_txn_wake(&txn);
    if (err < 0)
        return err;
    *version_out = wb_catalog_version(&txn, WB_CATALOG_BARS);
    wb_catalog_txn_park(&txn);
    return 0;
}

struct site_pages {
    struct wb_catalog_txn txn;
    uint64_t site; /* its hash */
    struct wb_pageid *ids;
    size_t count, max;
};

/* Returns 1 when the list is full, which ends the walk. */
static int list_id(struct site_pages *l, struct wb_pageid id)
{
    WB_CHECK(l->ids || l->max == 0);
    WB_CHECK(l->count <= l->max);
    if (l->count == l->max)
        return 1;
    l->ids[l->count++] = id;
    return 0;
}

static int list_page(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    struct site_pages *l = context;

    WB_CHECK(entry->epoch > 0);
    WB_CHECK(l->txn.kind == WB_CATALOG_TXN_HELD);
    return entry->site == l->site ? list_id(l, id) : 0;
}

/* A page that has a past; if it has an entry too, it is already in the list. */
static int list_gone(void *context, struct wb_pageid id, struct wb_slice bytes)
{
    struct site_pages *l = context;
    struct wb_history history = {0};
    uint64_t site;
    int err = wb_history_decode(bytes, &history, &site);

    WB_CHECK(l->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(l->count <= l->max);
    if (err == WB_E_CORRUPT)
        err = wb_catalog_corrupt(l->txn.catalog, WB_CATALOG_HISTORY, "a row that is not a history");
    else if (err == 0 && site == l->site && !wb_history_latest(&history))
        err = list_id(l, id);
    wb_history_release(&history);
    return err;
}

int wb_repo_list_site(struct wb_store *store, struct wb_slice site, struct wb_pageid *ids_out, size_t max,
                      size_t *count_out)
{
    struct site_pages l = {.site = wb_hash64(site.ptr, site.len), .ids = ids_out, .max = max};
    struct wb_catalog_summary summary;
    int err = wb_catalog_txn_read(wb_repo_of(store)->catalog, &l.txn);

    WB_CHECK(ids_out || max == 0);
    if (err == 0)
        err = wb_catalog_summary_get(&l.txn, &summary);
    if (err == 0)
        err = wb_catalog_entry_each(&l.txn, list_page, &l);
    if (err == 0 && summary.gone)
        err = wb_catalog_history_each(&l.txn, (struct wb_pageid){0}, list_gone, &l);
    wb_catalog_txn_abort(&l.txn);
    WB_CHECK(l.count <= max);
    err = err < 0 ? err : 0; /* 1 means that the list is full */
    *count_out = err == 0 ? l.count : 0;
    return err;
}
