/*
 * convert_lost.c - versions whose bytes cannot be read (convert.h). The copy does without them, everything else is
 * copied, and each of them is reported with the reason.
 *
 * The reader of the records passes over what is damaged. A version without a copy of its bytes is noticed when its page
 * is made; then the bytes are read once more, by themselves, to find out what is wrong. A page of which nothing could
 * be read is never made. Such pages are looked for at the end, if the number of pages is too small.
 */
#include "base/check.h"
#include "base/mem.h"
#include "move/convert.h"
#include "move/move.h"

/*
 * In files that change in place, a version that was given up since the copy began may be gone. WB_E_BUSY if the newest
 * state does not have this one any more.
 */
static int check_kept(const struct wb_convert_source *source, struct wb_pageid id, const struct wb_catalog_place *place)
{
    struct wb_pageview view = {0};
    struct wb_catalog_txn newest;

    if (!source->files.kind->in_place)
        return 0;
    int err = wb_catalog_txn_read(source->catalog, &newest);
    if (err < 0)
        return err;
    err = wb_pageview_load(&newest, true, id, &view);
    bool kept = err == 0 && wb_pageview_has(&view, place);
    wb_catalog_txn_abort(&newest);
    wb_pageview_release(&view);
    if (err < 0 || kept)
        return err;
    return wb_fail(WB_E_BUSY, "%s gave up old versions while it was copied: try again", source->dir);
}

int wb_convert_lose(struct wb_convert *convert, struct wb_pageview *view, size_t at)
{
    struct wb_convert_source *source = convert->source;
    const struct wb_history_version *version = &view->history.versions.items[at];
    char message[WB_ERROR_MESSAGE_MAX];
    struct wb_page page;

    WB_CHECK(at < view->history.versions.count);
    WB_CHECK(source->txn.kind == WB_CATALOG_TXN_HELD);
    int err = source->files.kind->read(&source->files, view->id, &version->place, &source->record);
    if (err == 0)
        err = wb_pagefile_page(wb_buf_slice(&source->record), view->id, NULL, &page);
    if (err == 0)
        return wb_fail(WB_E_BUSY, "%s: a page was read twice, with different results: try again", source->dir);
    if (err != WB_E_CORRUPT)
        return err;
    strcpy(message, wb_error_message());
    err = check_kept(source, view->id, &version->place);
    if (err < 0)
        return err;
    struct wb_move_lost lost = {
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

/* Looks whether the copy has a page of the source. */
static int look_at_page(void *context, struct wb_pageview *view)
{
    struct convert_missing *l = context;
    int err = wb_pageview_load(&l->made, true, view->id, &l->view);

    if (err == 0 && ++l->looked % 4096 == 0)
        err = wb_convert_progress(l->convert, 0);
    if (err < 0 || l->view.history.versions.count)
        return err;
    for (size_t i = 0; i < view->history.versions.count && err == 0; i++)
        err = wb_convert_lose(l->convert, view, i);
    bool latest = wb_history_latest(&view->history) != NULL;
    l->convert->latest += latest;
    l->convert->gone += !latest;
    l->convert->counts.lost_pages++;
    return err;
}

static int find_lost_pages(struct wb_convert *convert)
{
    struct convert_missing l = {.convert = convert};
    int err = wb_catalog_txn_read(convert->target->catalog, &l.made);

    if (err < 0)
        return err;
    err = wb_pageview_each(&convert->source->txn, (struct wb_pageid){0}, WB_PAGEVIEW_LAST, look_at_page, &l);
    wb_catalog_txn_abort(&l.made);
    wb_pageview_release(&l.view);
    return err;
}

/* ---- pages that wait, but have no bytes there ------------------------------------------------------------------ */

/* Gathers them. */
struct convert_waiting {
    struct wb_convert *convert;
    WB_VEC(struct wb_pageid) ids;
    struct wb_pageview view;
    bool entries; /* a walk over pages that have entries */
};

static int look_at_waiting(struct convert_waiting *w, struct wb_pageid id)
{
    struct wb_convert_source *source = w->convert->source;
    int err = wb_pageview_load(&source->txn, source->summary.gone > 0, id, &w->view);

    WB_CHECK(source->txn.kind == WB_CATALOG_TXN_HELD);
    if (err < 0 || w->view.had_entry != w->entries)
        return err;
    for (size_t i = 0; i < w->view.history.versions.count; i++)
        if (w->view.history.versions.items[i].place.segment != WB_CATALOG_BASE_SEGMENT)
            return 0;
    return wb_vec_push(&w->ids, id);
}

static int look_at_waiting_entry(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    return entry->place.segment == WB_CATALOG_BASE_SEGMENT ? look_at_waiting(context, id) : 0;
}

static int look_at_waiting_past(void *context, struct wb_pageid id, struct wb_slice bytes)
{
    (void)bytes;
    return look_at_waiting(context, id);
}

/* Makes them, in one transaction: each is a row or two. */
static int make_waiting(struct convert_waiting *w)
{
    struct wb_repo *target = w->convert->target;
    struct wb_repo_edit edit = {0};
    int err = w->ids.count ? wb_repo_edit_begin(target, &edit) : 0;

    for (size_t i = 0; i < w->ids.count && err == 0; i++)
        err = wb_convert_adopt(w->convert, &edit, w->ids.items[i], NULL, 0);
    if (w->ids.count && err == 0)
        err = wb_repo_edit_end(&edit);
    if (w->ids.count && err == 0)
        target->writer->files.commit = edit.summary.commit;
    wb_catalog_txn_abort(&edit.txn);
    wb_repo_edit_release(&edit);
    return err;
}

static int find_waiting(struct wb_convert *convert)
{
    struct convert_waiting w = {.convert = convert, .entries = true};
    int err = wb_catalog_entry_each(&convert->source->txn, look_at_waiting_entry, &w);

    w.entries = false;
    if (err == 0)
        err = wb_catalog_history_each(&convert->source->txn, (struct wb_pageid){0}, look_at_waiting_past, &w);
    if (err == 0)
        err = make_waiting(&w);
    wb_vec_release(&w.ids);
    wb_pageview_release(&w.view);
    return err;
}

/* ---- the end ------------------------------------------------------------------------------------------------ */

int wb_convert_complete(struct wb_convert *convert)
{
    const struct wb_convert_source *source = convert->source;
    const struct wb_catalog_summary *summary = &source->summary;
    int err = 0;

    WB_CHECK(convert->target->writer->ops.count == 0);
    if (source != convert->read)
        err = find_waiting(convert);
    if (err == 0 && (convert->latest != summary->pages || convert->gone != summary->gone))
        err = find_lost_pages(convert);
    if (err == 0 && (convert->latest != summary->pages || convert->gone != summary->gone))
        err = wb_fail(WB_E_CORRUPT, "%s is damaged: it has %llu pages, but %llu were found",
                      wb_catalog_path(source->catalog), (unsigned long long)(summary->pages + summary->gone),
                      (unsigned long long)(convert->latest + convert->gone));
    if (err == 0 && convert->lost_sites.count)
        err = wb_convert_sites(convert);
    return err;
}
