/*
 * repo_verify_rows.c - the first step of verifying a repository: the catalog by itself. Every page of its tree, every
 * row of its tables, and the counters that must match them. It reads no segment.
 */
#include "base/check.h"
#include "base/mem.h"
#include "store/repo_verify.h"

/* ---- rows ------------------------------------------------------------------------------------------------- */

static int check_place(struct wb_repo_verifier *v, struct wb_pageid id, const struct wb_catalog_place *place, bool old)
{
    uint32_t part = place->segment ? wb_parts_find(&v->parts, place->segment, id) : 0;

    WB_CHECK(v->tallies != NULL);
    if (place->segment == 0 || place->segment >= v->summary.next_segment || part >= v->summary.next_segment)
        return wb_catalog_corrupt(v->catalog, WB_CATALOG_PAGES, "a page in a segment that was never made");
    v->tallies[part ? part : place->segment].entries++;
    v->tallies[part ? part : place->segment].old += old;
    return 0;
}

static int check_page_row(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    struct wb_repo_verifier *v = context;

    WB_CHECK(v->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(entry->epoch > 0);
    v->pages++;
    v->bytes_pages += entry->body_bytes;
    if (!entry->history) { /* otherwise its history counts them */
        v->versions++;
        v->captures++;
    }
    if (entry->epoch > v->summary.epoch)
        return wb_catalog_corrupt(v->catalog, WB_CATALOG_PAGES, "a page of an epoch that has not begun");
    return check_place(v, id, &entry->place, false);
}

/* The past of a page: it must agree with the entry, and no version may be from the future. */
static int check_history_row(void *context, struct wb_pageid id, struct wb_slice bytes)
{
    struct wb_repo_verifier *v = context;
    const struct wb_history *history = &v->view.history;
    int err = wb_pageview_load(&v->txn, true, id, &v->view);

    WB_CHECK(v->txn.kind == WB_CATALOG_TXN_HELD);
    (void)bytes;
    if (err < 0)
        return err;
    if (!v->view.had_rows)
        return wb_catalog_corrupt(v->catalog, WB_CATALOG_HISTORY, "a history that its entry does not know of");
    v->versions += history->versions.count;
    v->captures += history->times.count;
    v->gone += !v->view.had_entry;
    for (size_t i = 0; i < history->versions.count && err == 0; i++) {
        const struct wb_history_version *version = &history->versions.items[i];
        bool counted = version->ceased == 0; /* check_page_row() has counted the latest */
        for (size_t k = i + 1; k < history->versions.count && !counted; k++)
            counted = wb_catalog_place_equal(&history->versions.items[k].place, &version->place);
        if (version->arrived > v->summary.epoch || version->ceased > v->summary.epoch)
            err = wb_catalog_corrupt(v->catalog, WB_CATALOG_HISTORY, "a version of an epoch that has not begun");
        else if (!counted)
            err = check_place(v, id, &version->place, true);
    }
    return err;
}

static int check_snapshot_row(void *context, const struct wb_store_snapshot *snapshot)
{
    struct wb_repo_verifier *v = context;

    WB_CHECK(snapshot->number > 0);
    WB_CHECK(snapshot->epoch > 0);
    if (snapshot->number > v->summary.snapshot || snapshot->epoch > v->summary.epoch)
        return wb_catalog_corrupt(v->catalog, WB_CATALOG_SNAPSHOTS, "a snapshot that was never sealed");
    return 0;
}

static int check_site_row(void *context, struct wb_slice site, uint64_t pages)
{
    struct wb_repo_verifier *v = context;

    WB_CHECK(v->txn.kind == WB_CATALOG_TXN_HELD);
    (void)site;
    v->sites++;
    v->site_pages += pages;
    return 0;
}

static int check_revisit_row(void *context, const struct wb_store_revisit *revisit, uint64_t site)
{
    struct wb_repo_verifier *v = context;

    WB_CHECK(v->txn.kind == WB_CATALOG_TXN_HELD);
    (void)revisit;
    (void)site;
    v->revisits++;
    return 0;
}

static int check_bar_row(void *context, const struct wb_store_bar *bar, const struct wb_catalog_bar *row)
{
    struct wb_repo_verifier *v = context;

    WB_CHECK(bar->kind == WB_STORE_BAR_PAGE || bar->kind == WB_STORE_BAR_SITE);
    WB_CHECK(row->except == bar->except);
    v->bars++;
    if (bar->kind == WB_STORE_BAR_SITE && (row->except || bar->site.len == 0))
        return wb_catalog_corrupt(v->catalog, WB_CATALOG_BARS, "a row that is not a bar");
    return 0;
}

static int check_counts(struct wb_repo_verifier *v)
{
    WB_CHECK(v->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(v->tallies != NULL);
    if (v->revisits != v->summary.revisits || v->bars != v->summary.bars)
        return wb_catalog_corrupt(v->catalog, WB_CATALOG_SUMMARY, "counters that do not match the rows");
    if (v->versions != v->summary.versions || v->captures != v->summary.captures || v->gone != v->summary.gone)
        return wb_catalog_corrupt(v->catalog, WB_CATALOG_SUMMARY, "counters that do not match the rows");
    if (v->pages != v->summary.pages || v->bytes_pages != v->summary.bytes_pages || v->sites != v->summary.sites ||
        v->site_pages != v->summary.pages)
        return wb_catalog_corrupt(v->catalog, WB_CATALOG_SUMMARY, "counters that do not match the rows");
    for (size_t i = 0; i < v->rows.count; i++) {
        const struct wb_catalog_segment *row = &v->rows.items[i];
        if (row->number >= v->summary.next_segment || v->tallies[row->number].entries != row->live ||
            v->tallies[row->number].old != row->old)
            return wb_catalog_corrupt(v->catalog, WB_CATALOG_SEGMENTS,
                                      "a segment whose pages are not those of the catalog");
    }
    return 0;
}

static void report_catalog(void *context, bool problem, uint64_t offset, const char *message)
{
    wb_repo_verify_report(context, problem, WB_CATALOG_NAME, offset, "%s", message);
}

/* Checks all rows and the counters. Steps 2 and 3 need the summary and the rows, so those are read first. */
static int check_rows(struct wb_repo_verifier *v)
{
    WB_CHECK(v->catalog != NULL);
    WB_CHECK(v->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(!v->tallies);

    int err = wb_catalog_summary_get(&v->txn, &v->summary);

    if (err == 0)
        err = wb_nodes_refresh(&v->nodes, &v->txn);
    if (err == 0)
        err = wb_catalog_rows_read(&v->txn, &v->rows);
    if (err == 0)
        err = wb_parts_read(&v->txn, &v->parts);
    if (err < 0)
        return err;
    v->tallies = wb_alloc_zero((size_t)v->summary.next_segment + 1, sizeof *v->tallies);
    if (!v->tallies)
        return WB_E_NOMEM;
    err = wb_catalog_entry_each(&v->txn, check_page_row, v);
    if (err == 0)
        err = wb_catalog_history_each(&v->txn, (struct wb_pageid){0}, check_history_row, v);
    if (err == 0)
        err = wb_catalog_snapshot_each(&v->txn, check_snapshot_row, v);
    if (err == 0)
        err = wb_catalog_site_each(&v->txn, check_site_row, v);
    if (err == 0)
        err = wb_catalog_revisit_each(&v->txn, check_revisit_row, v);
    if (err == 0)
        err = wb_catalog_bar_each(&v->txn, check_bar_row, v);
    return err < 0 ? err : check_counts(v);
}

/* Checks every page of the tree first, which finds all damage; then the rows, which stops at the first problem. */
int wb_repo_verify_catalog(struct wb_repo_verifier *v)
{
    WB_CHECK(v->catalog != NULL);
    WB_CHECK(v->txn.kind == WB_CATALOG_TXN_CLOSED);

    int err = wb_catalog_txn_read(v->catalog, &v->txn);

    if (err == 0)
        err = wb_catalog_check(&v->txn, report_catalog, v);
    if (err < 0)
        return err;
    bool known = v->result->problems > 0;
    err = check_rows(v);
    v->sound = err == 0 && !known;
    return err == WB_E_CORRUPT && known ? 0 : err;
}
