/*
 * wirefeed.c - the records of a stream as frames of the wire (wire.h).
 *
 *   the order stored                  the parcels of the supplier, with those of their pages that the stream selects
 *   ... of which it selects few       these pages, packed into a new parcel
 *   any other order, versions, and
 *   selections that need bodies       records one by one, packed into new parcels
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "stream/stream_own.h"
#include "stream/wire.h"

/* If fewer than one in this many pages of a parcel are selected, they are packed. */
enum { WORTH_PACKING = 3, EMPTY_AT_ONCE = 64 };

#define WIREFEED_MAGIC 0x57425746u

struct wb_wirefeed {
    uint32_t magic; /* WIREFEED_MAGIC until it is freed */
    bool headed, ended;
    uint64_t sent;                             /* records */
    WB_VEC(struct wb_store_parcel_page) pages; /* of the frame that is being made */
    WB_VEC(struct wb_wire_record) records;
    struct wb_store_packer *packer;
    struct wb_store_unpacker *unpacker;
};

void wb_wirefeed_free(struct wb_wirefeed *wire)
{
    if (!wire)
        return;
    WB_CHECK(wire->magic == WIREFEED_MAGIC);
    wb_vec_release(&wire->pages);
    wb_vec_release(&wire->records);
    wb_store_packer_free(wire->packer);
    wb_store_unpacker_free(wire->unpacker);
    wire->magic = 0;
    wb_free(wire);
}

bool wb_wirefeed_parcels(const struct wb_stream *stream)
{
    return stream->wire && !stream->ticket.listed && stream->language == 0;
}

bool wb_wirefeed_facts(const struct wb_stream *stream)
{
    const struct wb_selection *s = &stream->spec.selection;

    return s->sites.count || s->suffixes.count || s->type.len || s->status_min || s->status_max ||
           s->since_ms > INT64_MIN || s->until_ms < INT64_MAX;
}

static int begin(struct wb_stream *stream)
{
    struct wb_wirefeed *wire = wb_alloc_zero(1, sizeof *wire);

    WB_CHECK(!stream->supplier && stream->delivered == 0);
    WB_CHECK(!stream->spec.facts);
    stream->wire = wire;
    if (wire)
        wire->magic = WIREFEED_MAGIC;
    int err = wire ? wb_store_packer_new(&wire->packer) : WB_E_NOMEM;
    return err == 0 ? wb_store_unpacker_new(&wire->unpacker) : err;
}

static int put_header(struct wb_stream *stream, struct wb_buf *out)
{
    WB_CHECK(!stream->wire->headed && stream->wire->sent == 0);
    struct wb_buf token = WB_BUF_INIT;
    struct wb_stream_info info;
    int err = wb_stream_token(stream, &token);

    wb_stream_info(stream, &info);
    if (err == 0)
        err = wb_wire_put_header(stream->home->repository, &info, wb_buf_slice(&token), out);
    wb_buf_release(&token);
    return err;
}

/* Returns 1: there are bytes. */
static int put_end(struct wb_stream *stream, struct wb_buf *out)
{
    WB_CHECK(stream->wire->headed && !stream->wire->ended);
    int err = wb_wire_put_end(stream->wire->sent, out);

    stream->wire->ended = err == 0;
    return err < 0 ? err : 1;
}

/*
 * Tells the client of the damage whose message is the current one. got: its code. If there is no way on behind it, this
 * is the end: a client that asked again would come to the same place.
 */
static int put_damage(struct wb_stream *stream, int got, struct wb_buf *out)
{
    int err = wb_wire_put_damage(wb_error_message(), out);

    if (err == 0 && got == WB_E_BROKEN)
        return put_end(stream, out);
    return err < 0 ? err : 1;
}

static int put_records(struct wb_wirefeed *wire, const struct wb_store_parcel *parcel, struct wb_buf *out)
{
    WB_CHECK(wire->headed && !wire->ended && parcel->count == wire->records.count);

    int err = wb_wire_put_records(parcel, wire->records.items, out);

    wire->sent += err == 0 ? parcel->count : 0;
    return err < 0 ? err : 1;
}

/* ---- parcels ------------------------------------------------------------------------------------- */

/* Adds page i of the supply to the frame, if the stream wants it. */
static int choose_page(struct wb_stream *stream, size_t i)
{
    WB_CHECK(i < stream->supply.count && stream->supply.parcel);
    struct wb_wirefeed *wire = stream->wire;
    const struct wb_supply *supply = &stream->supply;
    const struct wb_store_parcel_page *page = &supply->parcel->pages[supply->entries ? supply->entries[i] : i];

    if (!wb_spec_has_part(&stream->spec, page->id))
        return 0;
    if (supply->pages && !wb_selection_matches(&stream->spec.selection, &supply->pages[i]))
        return 0;
    struct wb_wire_record record = {.docid = WB_DOCID_NONE, .position = stream->place.position++};
    stream->place.at = page->position;
    stream->place.has_at = true;
    record.place = stream->place;
    if (stream->spec.docids && stream->generation_open)
        record.docid = wb_docid_table_find(&stream->docids, page->id);
    int err = wb_vec_push(&wire->pages, *page);
    return err == 0 ? wb_vec_push(&wire->records, record) : err;
}

/*
 * Packs the chosen pages of a parcel. Those that cannot be read are left out and reported; those that were taken down
 * are left out.
 */
static int repack(struct wb_stream *stream, struct wb_store_parcel *parcel, struct wb_buf *out)
{
    WB_CHECK(parcel->count == stream->wire->records.count);
    struct wb_wirefeed *wire = stream->wire;
    struct wb_page page;
    size_t kept = 0;
    int err = wb_store_unpacker_open(wire->unpacker, parcel);

    for (size_t i = 0; i < parcel->count && err == 0; i++) {
        err = wb_store_unpacker_page(wire->unpacker, i, &page);
        if (err == WB_E_CORRUPT) {
            err = wb_wire_put_damage(wb_error_message(), out);
            continue;
        }
        int down = err < 0 ? err : wb_stream_is_down(stream, stream->supply.bars, &page);
        if (down > 0)
            continue;
        err = down < 0 ? down : wb_store_packer_add(wire->packer, &page, &parcel->pages[i].position);
        if (err == 0)
            wire->records.items[kept++] = wire->records.items[i];
    }
    wire->records.count = parcel->count = kept;
    return err == 0 && kept ? wb_store_packer_finish(wire->packer, parcel) : err;
}

static int next_parcel(struct wb_stream *stream, struct wb_buf *out)
{
    WB_CHECK(!stream->ticket.listed && !stream->finished);
    struct wb_wirefeed *wire = stream->wire;
    size_t before = out->len, empty = 0;
    uint64_t bars = 0;

    while (out->len == before) {
        int got = wb_stream_is_full(stream) ? 0 : wb_storedfeed_supply(stream);
        if (got == WB_E_CORRUPT || got == WB_E_BROKEN) {
            stream->damaged++;
            return put_damage(stream, got, out);
        }
        if (got < 0)
            return got;
        if (got == 0) {
            wb_stream_finish(stream);
            return put_end(stream, out);
        }
        wb_vec_clear(&wire->pages);
        wb_vec_clear(&wire->records);
        int err = 0;
        for (size_t i = 0; i < stream->supply.count && err == 0 && !wb_stream_is_full(stream); i++)
            err = choose_page(stream, i);
        struct wb_store_parcel parcel = {stream->supply.parcel->bytes, wire->pages.items, wire->pages.count};
        if (err == 0)
            err = wb_store_bar_version(stream->store, &bars);
        bool few = parcel.count * WORTH_PACKING < stream->supply.parcel->count;
        /* If anything was taken down since the parcel was read, its bytes must not travel. */
        if (err == 0 && parcel.count && (few || bars != stream->supply.bars))
            err = repack(stream, &parcel, out);
        if (err == 0 && parcel.count)
            err = put_records(wire, &parcel, out);
        if (err < 0)
            return err;
        stream->delivered += parcel.count;
        if (parcel.count == 0 && ++empty == EMPTY_AT_ONCE)
            break;
    }
    wb_hold_renew(stream);
    return 1;
}

/* ---- records ------------------------------------------------------------------------------------- */

/* Collects records until there are enough for a frame. Returns what came instead of the next record, or 1. */
static int collect(struct wb_stream *stream)
{
    WB_CHECK(stream->wire->magic == WIREFEED_MAGIC);
    struct wb_wirefeed *wire = stream->wire;
    struct wb_stream_record record;
    int got = 1;

    wb_vec_clear(&wire->records);
    while (got == 1 && !wb_store_packer_full(wire->packer)) {
        got = wb_stream_next(stream, &record);
        if (got != 1)
            break;
        struct wb_wire_record listed = {
            .place = stream->place,
            .position = record.position,
            .docid = record.docid,
            .revisit = record.revisit,
            .original_ms = record.original_ms,
        };
        int err = wb_store_packer_add(wire->packer, &record.page, NULL);
        if (err == 0)
            err = wb_vec_push(&wire->records, listed);
        got = err < 0 ? err : 1;
    }
    return got;
}

static int next_packed(struct wb_stream *stream, struct wb_buf *out)
{
    struct wb_wirefeed *wire = stream->wire;
    struct wb_store_parcel parcel;
    struct wb_error_copy copy;
    int got = collect(stream), err = 0;

    wb_error_save(got < 0 ? got : 0, &copy);
    if (wire->records.count) {
        err = wb_store_packer_finish(wire->packer, &parcel);
        if (err == 0)
            err = put_records(wire, &parcel, out);
    }
    if (err < 0)
        return err;
    if (got == 0)
        return put_end(stream, out);
    if (got > 0)
        return 1;
    wb_error_restore(&copy);
    return got == WB_E_CORRUPT || got == WB_E_BROKEN ? put_damage(stream, got, out) : got;
}

int wb_stream_next_wire(struct wb_stream *stream, struct wb_buf *out)
{
    WB_CHECK(stream->magic == WB_STREAM_MAGIC);
    int err = stream->wire ? 0 : begin(stream);
    if (err < 0 || stream->wire->ended)
        return err;
    if (!stream->wire->headed) {
        err = put_header(stream, out);
        stream->wire->headed = err == 0;
        return err < 0 ? err : 1;
    }
    if (stream->finished)
        return put_end(stream, out);
    return wb_wirefeed_parcels(stream) ? next_parcel(stream, out) : next_packed(stream, out);
}
