/*
 * convert_adopt.c - makes one page of a copy, from its history in the other catalog and the places that its records
 * have here (convert.h).
 */
#include "base/bytes.h"
#include "base/check.h"
#include "move/convert.h"

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

/* Of update nodes: a version whose bytes are on the read nodes has another hash there now. */
static int translate(struct wb_convert *convert, struct wb_pageid id, struct wb_history_version *version)
{
    struct wb_convert_source *read = convert->read;
    struct wb_pageview view = {0};
    struct wb_page page;
    int err = wb_pageview_load(&read->txn, read->summary.gone > 0, id, &view);
    const struct wb_history_version *there = NULL;

    WB_CHECK(read != convert->source);
    for (size_t i = 0; i < view.history.versions.count && err == 0; i++)
        if (view.history.versions.items[i].content == version->content)
            there = &view.history.versions.items[i];
    if (there)
        err = read->files.kind->read(&read->files, id, &there->place, &read->record);
    if (there && err == 0)
        err = wb_pagefile_page(wb_buf_slice(&read->record), id, NULL, &page);
    if (there && err == 0)
        version->content = wb_history_content(&page, convert->target->content_seed);
    version->place.logical = version->content;
    wb_pageview_release(&view);
    return err == WB_E_CORRUPT || err == WB_E_NOTFOUND ? 0 : err; /* then nobody has the bytes any more */
}

/* Gives the versions of the page in view the places that their bytes have here, and drops those that have none. */
static int move_versions(struct wb_convert *convert, struct wb_pageview *view, const struct wb_convert_note *notes,
                         size_t count, bool *as_stored_out)
{
    const struct wb_convert_source *source = convert->source;

    *as_stored_out = false;
    for (size_t i = 0; i < view->history.versions.count;) {
        struct wb_history_version *version = &view->history.versions.items[i];
        const struct wb_convert_note *note = find_note(notes, count, &version->place);
        if (version->arrived > source->summary.epoch || version->ceased > source->summary.epoch)
            return wb_catalog_corrupt(source->catalog, WB_CATALOG_PAGES, "a version of an epoch to come");
        if (version->place.segment == WB_CATALOG_BASE_SEGMENT) {
            int err = translate(convert, view->id, version);
            if (err < 0)
                return err;
            i++;
            continue;
        }
        if (!note) {
            int err = wb_convert_lose(convert, view, i);
            if (err < 0)
                return err;
            wb_history_drop(&view->history, i);
            continue;
        }
        version->place = note->to;
        version->stored_bytes = note->stored_bytes;
        version->content = note->content;
        if (version->ceased == 0)
            *as_stored_out = wb_history_last_ms(&view->history, version) == note->time_ms &&
                             view->lifetime == note->lifetime && view->lifetime_count == note->lifetime;
        i++;
    }
    return 0;
}

int wb_convert_adopt(struct wb_convert *convert, struct wb_repo_edit *edit, struct wb_pageid id,
                     const struct wb_convert_note *notes, size_t count)
{
    struct wb_convert_source *source = convert->source;
    uint64_t lost = convert->counts.lost;
    bool as_stored;
    int err = wb_pageview_load(&source->txn, source->summary.gone > 0, id, &edit->view);

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
    if (edit->view.history.forgotten.count) {
        edit->view.history.forgotten.items[0] = WB_HISTORY_FORGOTTEN_ALL;
        edit->view.history.forgotten.count = 1;
    }
    if (err == 0 && edit->view.history.versions.count == 0)
        err = wb_catalog_corrupt(source->catalog, WB_CATALOG_PAGES, "a page none of whose records is a version");
    if (err < 0)
        return err;
    convert->counts.lost_pages += convert->counts.lost > lost;
    if (latest && !wb_history_latest(&edit->view.history))
        edit->view.lifetime = edit->view.lifetime_count = 0; /* as if it had been removed */
    return wb_repo_adopt(edit, as_stored);
}
