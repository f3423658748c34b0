/*
 * repo_base.c - the update nodes of a batch design go on from what is on the read nodes, their base.
 *
 * For each page that waits, their catalog says what the page will be after the next transfer: with its past, and with
 * the policy and the ticks of the clock that readers have. A version whose bytes the read nodes have is in
 * WB_CATALOG_BASE_SEGMENT. Everything that waits arrives in WB_HISTORY_COMING, so the epoch before it stands for what
 * readers see until then.
 */
#include "store/repo_base.h"
#include "base/check.h"
#include "os/clock.h"

int wb_repo_base_view(struct wb_repo *repo, struct wb_pageview *view)
{
    struct wb_pageview *there;

    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    if (!repo->base || view->had_entry || view->had_rows)
        return 0;
    WB_CHECK(view->history.versions.count == 0);
    int err = wb_repo_view(repo->base, view->id, &there);
    if (err == 0)
        err = wb_history_copy(&there->history, &view->history);
    if (err < 0)
        return err;
    view->site = there->site;
    view->lifetime = there->lifetime;
    view->lifetime_count = there->lifetime_count;
    for (size_t i = 0; i < view->history.versions.count; i++) {
        struct wb_history_version *version = &view->history.versions.items[i];
        if (version->place.segment)
            version->place = (struct wb_catalog_place){WB_CATALOG_BASE_SEGMENT, 0, version->content};
        version->stored_bytes = 0; /* nothing dies here with it */
    }
    return 0;
}

int wb_repo_base_waits(struct wb_repo *repo, struct wb_pageid id, bool *waits_out)
{
    struct wb_pageview view = {0};
    struct wb_catalog_txn txn = {0};
    int err = wb_catalog_txn_read(repo->catalog, &txn);

    WB_CHECK(repo->base != NULL);
    if (err == 0)
        err = wb_pageview_load(&txn, true, id, &view);
    *waits_out = view.had_entry || view.had_rows;
    wb_catalog_txn_abort(&txn);
    wb_pageview_release(&view);
    return err;
}

int wb_repo_base_record(struct wb_repo *repo, struct wb_pageid id, const struct wb_catalog_place *place,
                        struct wb_buf *record_out)
{
    struct wb_pageview *there;
    int err = repo->base ? wb_repo_view(repo->base, id, &there) : wb_store_not_found();

    WB_CHECK(place->segment == WB_CATALOG_BASE_SEGMENT);
    if (err < 0)
        return err;
    const struct wb_history_version *version = wb_history_find(&there->history, place->logical);
    struct wb_catalog_place found = version ? version->place : (struct wb_catalog_place){0};
    return version ? wb_repo_read_record(repo->base, id, &found, record_out) : wb_store_not_found();
}

int wb_repo_epochs_held(struct wb_repo *repo, struct wb_catalog_txn *txn, struct wb_epochs *epochs_out)
{
    struct wb_catalog_txn base = {0};
    int64_t now_ms = wb_clock_wall_ms();

    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    if (!repo->base)
        return wb_epochs_held(txn, now_ms, epochs_out);
    int err = wb_catalog_txn_read(repo->base->catalog, &base);
    if (err == 0)
        err = wb_epochs_held(&base, now_ms, epochs_out);
    wb_catalog_txn_abort(&base);
    return err < 0 ? err : wb_vec_push(epochs_out, WB_HISTORY_COMING - 1);
}

/* Reads the names of all sites, here and of the base. */
static int read_sites(struct wb_repo *repo)
{
    struct wb_catalog *catalogs[] = {repo->catalog, repo->base->catalog};
    int err = 0;

    wb_vec_clear(&repo->sites.items);
    wb_buf_clear(&repo->sites.text);
    for (size_t i = 0; i < 2 && err == 0; i++) {
        struct wb_catalog_txn txn = {0};
        err = wb_catalog_txn_read(catalogs[i], &txn);
        if (err == 0)
            err = wb_site_names_add(&txn, &repo->sites);
        wb_catalog_txn_abort(&txn);
    }
    return err;
}

int wb_repo_base_site(struct wb_repo *repo, uint64_t hash, struct wb_slice *name_out)
{
    const struct wb_named_site *name = wb_site_names_find(&repo->sites, hash);
    int err = 0;

    WB_CHECK(repo->base != NULL);
    if (!name) {
        err = read_sites(repo);
        name = wb_site_names_find(&repo->sites, hash);
    }
    *name_out = name ? wb_site_names_text(&repo->sites, name) : WB_SLICE_LIT("");
    return err;
}
