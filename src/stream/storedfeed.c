/*
 * storedfeed.c - the pages of a stream in the order in which they are stored: those of a supplier that the stream
 * selects.
 *
 * A supplier that others share may begin in the middle. Then the stream has a start, and when the end of the snapshot
 * is reached, it delivers what is before the start (wrapped).
 */
#include "base/check.h"
#include "base/error.h"
#include "stream/stream_own.h"

void wb_storedfeed_release(struct wb_stream *stream)
{
    wb_supplier_close(stream->supplier);
    stream->supplier = NULL;
    stream->supply = (struct wb_supply){.pages = NULL};
    stream->next = 0;
}

/* Opens a supplier for what is still to be delivered. */
static int open_supplier(struct wb_stream *stream)
{
    struct wb_stream_place *place = &stream->place;
    struct wb_supply_request request = {
        .snapshot = stream->ticket.snapshot,
        .facts = stream->spec.facts && stream->language == 0,
        .site = wb_selection_only_site(&stream->spec.selection),
        .after = place->has_at ? &place->at : NULL,
        .until = place->wrapped ? &place->start : NULL,
        .at_once = stream->home->at_once,
    };

    WB_CHECK(!stream->supplier);
    request.parcels = wb_wirefeed_parcels(stream);
    request.ids = request.parcels && !wb_wirefeed_facts(stream);
    if (!stream->share && !request.parcels)
        return wb_supplier_scan(stream->store, &request, &stream->supplier);
    int err = wb_carousels_join(stream->home->carousels, &request, stream->share, &stream->supplier);
    if (err == 0 && stream->supplier->has_start) {
        place->has_start = place->has_at = true;
        place->start = place->at = stream->supplier->start;
    }
    return err;
}

int wb_storedfeed_supply(struct wb_stream *stream)
{
    WB_CHECK(stream->magic == WB_STREAM_MAGIC && !stream->ticket.listed);
    for (;;) {
        int got = stream->supplier ? 0 : open_supplier(stream);
        stream->waits = got == WB_E_BUSY;
        if (got < 0)
            return got;
        got = stream->supplier->kind->next(stream->supplier, &stream->supply);
        stream->next = 0;
        WB_CHECK(got <= 0 || stream->supply.count > 0);
        if (got > 0 || (got < 0 && got != WB_E_BUSY))
            return got;
        wb_storedfeed_release(stream);
        if (got == WB_E_BUSY) /* too slow for the others: goes on alone */
            continue;
        if (!stream->place.has_start || stream->place.wrapped)
            return 0;
        stream->place.wrapped = true;
        stream->place.has_at = false;
    }
}

/* Whether the stream delivers this page: 1, 0 or an error. */
static int is_wanted(struct wb_stream *stream, const struct wb_page *page)
{
    if (!wb_spec_has_part(&stream->spec, page->id) || !wb_selection_matches(&stream->spec.selection, page))
        return 0;
    int down = wb_stream_is_down(stream, stream->supply.bars, page);
    if (down != 0)
        return down < 0 ? down : 0;
    return wb_stream_has_language(stream, page);
}

int wb_storedfeed_next(struct wb_stream *stream, struct wb_stream_record *record_out)
{
    for (;;) {
        while (stream->next == stream->supply.count) {
            int got = wb_storedfeed_supply(stream);
            if (got <= 0)
                return got;
        }
        int pause = wb_stream_pause(stream);
        if (pause != 0)
            return pause;
        size_t index = stream->next++;
        WB_CHECK(index < stream->supply.count);
        const struct wb_page *page = &stream->supply.pages[index];
        int wanted = is_wanted(stream, page);
        if (wanted < 0)
            return wanted;
        if (!wanted)
            continue;
        stream->supplier->kind->tell(stream->supplier, index, &stream->place.at);
        stream->place.has_at = true;
        record_out->page = *page;
        if (stream->supply.memos)
            record_out->memo = wb_memo_of(stream->supply.memos, stream->supply.memo + index);
        return 1;
    }
}
