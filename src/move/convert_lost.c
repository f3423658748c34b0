/*
 * convert_lost.c - versions whose bytes cannot be read (convert.h). The copy does without them, everything else is
 * copied, and each of them is reported with the reason.
 *
 * Whoever reads the records passes over what is damaged. A version without a copy of its bytes is noticed when its page
 * is made; then the bytes are read once more, by themselves, to find out what is wrong. A page of which nothing could
 * be read is never made. Such pages are looked for at the end, if the number of pages is too small.
 */
#include "base/check.h"
#include "base/mem.h"
#include "move/convert.h"

/* Buckets are changed in place, so a version that was given up since the copy began may be gone. */
static int check_unchanged(const struct wb_convert_source *source)
{
    struct wb_catalog_txn newest;
    int err = wb_catalog_txn_read(source->catalog, &newest);

    WB_CHECK(source->hash);
    if (err < 0)
        return err;
    bool changed = wb_catalog_txn_id(&newest) != wb_catalog_txn_id(&source->txn);
    wb_catalog_txn_abort(&newest);
    return changed ? wb_fail(WB_E_BUSY, "%s gave up old versions while it was copied: try again", source->dir) : 0;
}

int wb_convert_lose(struct wb_convert *convert, struct wb_pageview *view, size_t at)
{
    struct wb_convert_source *source = convert->source;
    const struct wb_history_version *version = &view->history.versions.items[at];
    char message[WB_ERROR_MESSAGE_MAX];
    struct wb_page page;

    WB_CHECK(at < view->history.versions.count);
    WB_CHECK(source->txn.kind == WB_CATALOG_TXN_HELD);
    int err = wb_convert_record_at(source, view->id, &version->place, &source->record);
    if (err == 0)
        err = wb_repo_page(wb_buf_slice(&source->record), view->id, NULL, &page);
    if (err == 0)
        return wb_fail(WB_E_BUSY, "%s: a page was read twice, with different results: try again", source->dir);
    if (err != WB_E_CORRUPT && err != WB_E_NOTFOUND)
        return err;
    strcpy(message, wb_error_message());
    err = err == WB_E_NOTFOUND ? check_unchanged(source) : 0;
    if (err < 0)
        return err;
    struct wb_store_lost lost = {
        .id = view->id,
        .time_ms = wb_history_last_ms(&view->history, version),
        .latest = version->ceased == 0,
        .message = message,
    };
    convert->counts.lost++;
    bool told = convert->counts.lost <= convert->told; /* by a commit that had to be repeated, in the same order */
    if (!told)
        convert->told++;
    if (!told && convert->sink->lost)
        convert->sink->lost(convert->sink->context, &lost);
    return lost.latest ? wb_vec_push(&convert->lost_sites, view->site) : 0;
}

/* ---- pages of which nothing is left ------------------------------------------------------------------------- */

struct convert_missing {
    struct wb_convert *convert;
    struct wb_catalog_txn made; /* what the copy has */
    struct wb_pageview view;
    unsigned looked;
};

/* Looks at a page of the source; *missing_out: the copy does not have it. view is that of the source then. */
static int look_up(struct convert_missing *l, struct wb_pageid id, bool *missing_out)
{
    struct wb_convert_source *source = l->convert->source;
    int err = wb_pageview_load(&l->made, true, id, &l->view);

    WB_CHECK(l->made.kind == WB_CATALOG_TXN_HELD);
    *missing_out = err == 0 && l->view.history.versions.count == 0;
    if (*missing_out)
        err = wb_pageview_load(&source->txn, source->summary.gone > 0, id, &l->view);
    if (err == 0 && ++l->looked % 4096 == 0)
        err = wb_convert_progress(l->convert, 0);
    return err;
}

static int lose_page(struct convert_missing *l)
{
    int err = 0;

    WB_CHECK(l->view.history.versions.count > 0);
    for (size_t i = 0; i < l->view.history.versions.count && err == 0; i++)
        err = wb_convert_lose(l->convert, &l->view, i);
    bool latest = wb_history_latest(&l->view.history) != NULL;
    l->convert->latest += latest;
    l->convert->gone += !latest;
    l->convert->counts.lost_pages++;
    return err;
}

static int look_at_entry(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    struct convert_missing *l = context;
    bool missing;
    int err = look_up(l, id, &missing);

    WB_CHECK(entry->place.segment > 0);
    return err < 0 || !missing ? err : lose_page(l);
}

/* The same for pages that have a history only. */
static int look_at_history(void *context, struct wb_pageid id, struct wb_slice bytes)
{
    struct convert_missing *l = context;
    bool missing;
    int err = look_up(l, id, &missing);

    (void)bytes;
    WB_CHECK(l->made.kind == WB_CATALOG_TXN_HELD);
    return err < 0 || !missing || l->view.had_entry ? err : lose_page(l);
}

static int find_lost_pages(struct wb_convert *convert)
{
    struct convert_missing l = {.convert = convert};
    int err = wb_catalog_txn_read(convert->target->catalog, &l.made);

    WB_CHECK(convert->source->txn.kind == WB_CATALOG_TXN_HELD);
    if (err < 0)
        return err;
    err = wb_catalog_entry_each(&convert->source->txn, look_at_entry, &l);
    if (err == 0)
        err = wb_catalog_history_each(&convert->source->txn, (struct wb_pageid){0}, look_at_history, &l);
    wb_catalog_txn_abort(&l.made);
    wb_pageview_release(&l.view);
    return err;
}

/* ---- the end ------------------------------------------------------------------------------------------------ */

int wb_convert_complete(struct wb_convert *convert)
{
    const struct wb_convert_source *source = convert->source;
    const struct wb_catalog_summary *summary = &source->summary;
    int err = 0;

    WB_CHECK(convert->target->writer->ops.count == 0);
    if (convert->latest != summary->pages || convert->gone != summary->gone)
        err = find_lost_pages(convert);
    if (err == 0 && (convert->latest != summary->pages || convert->gone != summary->gone))
        err = wb_fail(WB_E_CORRUPT, "%s is damaged: it has %llu pages, but %llu were found",
                      wb_catalog_path(source->catalog), (unsigned long long)(summary->pages + summary->gone),
                      (unsigned long long)(convert->latest + convert->gone));
    if (err == 0 && convert->lost_sites.count)
        err = wb_convert_sites(convert);
    return err;
}
