/*
 * convert_adopt.c - makes one page of a copy, from its history in the other catalog and the places that its records
 * have here (convert.h).
 */
#include "base/bytes.h"
#include "base/check.h"
#include "store/convert/convert.h"

struct wb_convert_note wb_convert_note_of(const struct wb_convert *convert, const struct wb_page *page,
                                          const struct wb_catalog_place *from)
{
    return (struct wb_convert_note){
        .from = *from,
        .content = wb_history_content(page, convert->target->content_seed),
        .time_ms = page->time_ms,
        .lifetime = page->lifetime > UINT16_MAX ? UINT16_MAX : (uint16_t)page->lifetime,
    };
}

void wb_convert_place_put(const struct wb_catalog_place *place, char out[WB_CONVERT_PLACE_BYTES])
{
    wb_put32(out, place->segment);
    wb_put64(out + 4, place->logical);
    wb_put16(out + 12, place->slot);
}

struct wb_catalog_place wb_convert_place_get(const char *bytes)
{
    return (struct wb_catalog_place){
        .segment = wb_get32(bytes), .logical = wb_get64(bytes + 4), .slot = wb_get16(bytes + 12)};
}

static const struct wb_convert_note *find_note(const struct wb_convert_note *notes, size_t count,
                                               const struct wb_catalog_place *place)
{
    for (size_t i = 0; i < count; i++)
        if (wb_catalog_place_equal(&notes[i].from, place))
            return &notes[i];
    return NULL;
}

/*
 * The bytes of a version were not found. In buckets, which are changed in place, that happens if somebody has given the
 * version up since the copy began; otherwise the source is damaged.
 */
static int missing(const struct wb_convert_source *source)
{
    struct wb_catalog_txn newest;
    int err = source->hash ? wb_catalog_txn_read(source->catalog, &newest) : 0;

    if (err < 0)
        return err;
    bool changed = source->hash && wb_catalog_txn_id(&newest) != wb_catalog_txn_id(&source->txn);
    if (source->hash)
        wb_catalog_txn_abort(&newest);
    if (changed)
        return wb_fail(WB_E_BUSY, "%s gave up old versions while it was copied: try again", source->dir);
    return wb_catalog_corrupt(source->catalog, WB_CATALOG_PAGES, "a page whose bytes were not found");
}

/* Gives the versions of the page in edit->view the places that their bytes have here. */
static int move_versions(const struct wb_convert *convert, struct wb_log_view *view,
                         const struct wb_convert_note *notes, size_t count, bool *as_stored_out)
{
    const struct wb_convert_source *source = convert->source;

    WB_CHECK(view->history.versions.count > 0);
    *as_stored_out = false;
    for (size_t i = 0; i < view->history.versions.count; i++) {
        struct wb_history_version *version = &view->history.versions.items[i];
        const struct wb_convert_note *note = find_note(notes, count, &version->place);
        if (!note)
            return missing(source);
        if (version->arrived > source->summary.epoch || version->ceased > source->summary.epoch)
            return wb_catalog_corrupt(source->catalog, WB_CATALOG_PAGES, "a version of an epoch to come");
        version->place = note->to;
        version->stored_bytes = note->stored_bytes;
        version->content = note->content;
        if (version->ceased == 0)
            *as_stored_out = wb_history_last_ms(&view->history, version) == note->time_ms &&
                             view->lifetime == note->lifetime && view->lifetime_count == note->lifetime;
    }
    return 0;
}

int wb_convert_adopt(struct wb_convert *convert, struct wb_log_edit *edit, struct wb_pageid id,
                     const struct wb_convert_note *notes, size_t count)
{
    struct wb_convert_source *source = convert->source;
    bool as_stored;
    int err = wb_log_view_load(&source->txn, source->summary.gone > 0, id, &edit->view);

    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(source->txn.kind == WB_CATALOG_TXN_HELD);
    if (err == 0 && edit->view.history.versions.count == 0)
        err = wb_catalog_corrupt(source->catalog, WB_CATALOG_PAGES, "a page that was there a moment ago");
    if (err < 0)
        return err;
    bool latest = wb_history_latest(&edit->view.history) != NULL;
    convert->latest += latest;
    convert->gone += !latest;
    err = move_versions(convert, &edit->view, notes, count, &as_stored);
    return err < 0 ? err : wb_log_adopt(edit, as_stored);
}

int wb_convert_complete(const struct wb_convert *convert)
{
    const struct wb_convert_source *source = convert->source;

    if (convert->latest != source->summary.pages || convert->gone != source->summary.gone)
        return wb_fail(WB_E_CORRUPT, "%s is damaged: it has %llu pages, but %llu were found",
                       wb_catalog_path(source->catalog),
                       (unsigned long long)(source->summary.pages + source->summary.gone),
                       (unsigned long long)(convert->latest + convert->gone));
    return 0;
}
