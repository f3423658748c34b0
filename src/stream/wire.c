/*
 * wire.c - frames of the wire, written and read. It knows neither sockets nor repositories.
 *
 * A frame; numbers are little-endian, "number" below means a varint and "signed" a zigzag varint (fields.h):
 *
 *   0   1  kind: 1 header, 2 records, 3 damage, 4 end
 *   1   3  zero
 *   4   4  bytes of the fields, n (at most FIELDS_MAX)
 *   8   8  bytes of the block, m; 0 unless the kind is records
 *   16  8  checksum of bytes 0 to 15 and of the fields
 *   24  n  fields
 *      m   block: has its own checksums (segment.md)
 *
 * Fields of a header: "WBST", number of the format (1), repository (8 bytes), numbers of snapshot, generation, epoch
 * and pages, text of the token. Of damage: text of the message. Of the end: number of records since the header.
 *
 * Fields of records: flags (1 byte: 1 start), the start (40 bytes, with flag 1), number of records, and for each of
 * them, compared with the one before it (all zero for the first):
 *
 *   flags    1 byte: 1 time as in the record, 2 lifetime as in the record, 4 docid, 8 revisit, 16 within, 32 at,
 *            64 wrapped
 *   signed   position minus (that of the one before + 1)
 *   number   slot minus that of the one before, at least 1 except in the first
 *   16 bytes page id
 *   signed   epoch minus that of the one before
 *   signed   time minus that of the one before, number of days left         unless flag 1
 *   number   lifetime in days                                               unless flag 2
 *   signed   docid minus that of the one before                             with flag 4
 *   signed   time of the original                                           with flag 8
 *   signed   index minus that of the one before
 *   signed   time of the capture                                            with flag 16
 *   5 bytes  a bit for each byte of the place in the scan that differs from the one before; then these   with flag 32
 *
 * What a receiver gets is valid if and only if the first frame is a header, no later one is a header, nothing follows
 * the end, all lengths and checksums match, and the number of records is what the end says.
 */
#include "stream/wire.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/format.h"
#include "base/hash.h"
#include "base/mem.h"

#define WIRE_MAGIC "WBST"

enum {
    WIRE_FORMAT = 1,
    READER_MAGIC = 0x57425752,
    FRAME_BYTES = 24,
    FRAME_AT_FIELDS = 4,
    FRAME_AT_BLOCK = 8,
    FRAME_AT_CHECK = 16,
    FIELDS_MAX = 4 << 20,
    MESSAGE_MAX = 1000,
    POSITION_MASK = (WB_STORE_POSITION_BYTES + 7) / 8,
    RECORD_FIELDS_MAX = 1 + 12 * WB_VARINT_MAX + WB_PAGEID_BYTES + POSITION_MASK + WB_STORE_POSITION_BYTES,
    START_KEPT = 1 << 20, /* bytes that were read are moved out of the way when there are this many */
};
#define BLOCK_MAX ((uint64_t)WB_STORE_BODY_MAX + (256u << 20))

_Static_assert((uint64_t)WB_WIRE_RECORDS_MAX *RECORD_FIELDS_MAX < FIELDS_MAX, "the largest list of records fits");

enum wire_kind { WIRE_HEADER = 1, WIRE_RECORDS = 2, WIRE_DAMAGED = 3, WIRE_LAST = 4 };
enum { FRAME_START = 1, FRAME_FLAGS = 1 };
enum {
    RECORD_OWN_TIME = 1,
    RECORD_OWN_LIFETIME = 2,
    RECORD_DOCID = 4,
    RECORD_REVISIT = 8,
    RECORD_WITHIN = 16,
    RECORD_AT = 32,
    RECORD_WRAPPED = 64,
    RECORD_FLAGS = 127,
};

/* ---- writing ------------------------------------------------------------------------------------- */

/* Makes room for a frame with at most `fields` bytes of fields. *p_out is where these go. */
static int begin_frame(struct wb_buf *out, size_t fields, char **p_out)
{
    WB_CHECK(fields <= FIELDS_MAX);
    int err = wb_buf_reserve(out, FRAME_BYTES + fields);

    *p_out = err < 0 ? NULL : out->ptr + out->len + FRAME_BYTES;
    return err;
}

/* Completes the frame, whose fields end at p, and appends its block. On error out is unchanged. */
static int end_frame(struct wb_buf *out, enum wire_kind kind, const char *p, struct wb_slice block)
{
    char *frame = out->ptr + out->len;
    size_t fields = (size_t)(p - frame) - FRAME_BYTES, before = out->len;

    /* The fields are within the room that begin_frame() made. */
    WB_CHECK(fields <= FIELDS_MAX && FRAME_BYTES + fields <= out->cap - out->len);
    WB_CHECK(block.len <= BLOCK_MAX);
    memset(frame, 0, FRAME_AT_FIELDS);
    frame[0] = (char)kind;
    wb_put32(frame + FRAME_AT_FIELDS, (uint32_t)fields);
    wb_put64(frame + FRAME_AT_BLOCK, block.len);
    uint64_t check = wb_hash64_seeded(frame + FRAME_BYTES, fields, wb_hash64(frame, FRAME_AT_CHECK));
    wb_put64(frame + FRAME_AT_CHECK, check);
    out->len += FRAME_BYTES + fields;
    int err = wb_buf_append_slice(out, block);
    if (err < 0)
        out->len = before;
    return err;
}

int wb_wire_put_header(uint64_t repository, const struct wb_stream_info *info, struct wb_slice token,
                       struct wb_buf *out)
{
    char *p;

    WB_CHECK(token.len <= WB_TOKEN_TEXT_MAX);
    int err = begin_frame(out, sizeof WIRE_MAGIC + 8 + 6 * WB_VARINT_MAX + token.len, &p);
    if (err < 0)
        return err;
    memcpy(p, WIRE_MAGIC, sizeof WIRE_MAGIC - 1);
    p = wb_fields_put(p + sizeof WIRE_MAGIC - 1, WIRE_FORMAT);
    wb_put64(p, repository);
    p = wb_fields_put(p + 8, info->snapshot);
    p = wb_fields_put(p, info->generation);
    p = wb_fields_put(p, info->epoch);
    p = wb_fields_put(p, info->pages);
    p = wb_fields_put_text(p, token);
    return end_frame(out, WIRE_HEADER, p, WB_SLICE_EMPTY);
}

_Static_assert(WB_STORE_POSITION_BYTES % 8 == 0, "a position is compared in words of eight bytes");

static char *put_position(char *p, const struct wb_store_position *position, const struct wb_store_position *before)
{
    char *mask = p;

    memset(mask, 0, POSITION_MASK);
    p += POSITION_MASK;
    for (size_t i = 0; i < WB_STORE_POSITION_BYTES; i += 8) {
        uint64_t differ = wb_get64(position->bytes + i) ^ wb_get64(before->bytes + i);
        for (size_t j = 0; differ; j++, differ >>= 8)
            if (differ & 0xff) {
                mask[i / 8] = (char)(mask[i / 8] | 1 << j);
                *p++ = position->bytes[i + j];
            }
    }
    return p;
}

static char *put_record(char *p, const struct wb_store_parcel_page *page, const struct wb_wire_record *record,
                        const struct wb_store_parcel_page *page_before, const struct wb_wire_record *before)
{
    const struct wb_stream_place *place = &record->place;

    WB_CHECK(place->position == record->position + 1);
    *p++ = (char)((page->own_time ? RECORD_OWN_TIME : 0) | (page->own_lifetime ? RECORD_OWN_LIFETIME : 0) |
                  (record->docid != WB_DOCID_NONE ? RECORD_DOCID : 0) | (record->revisit ? RECORD_REVISIT : 0) |
                  (place->within ? RECORD_WITHIN : 0) | (place->has_at ? RECORD_AT : 0) |
                  (place->wrapped ? RECORD_WRAPPED : 0));
    p = wb_fields_put_signed(p, (int64_t)(record->position - before->place.position));
    p = wb_fields_put(p, (uint64_t)page->slot - page_before->slot);
    wb_pageid_put(page->id, p);
    p = wb_fields_put_signed(p + WB_PAGEID_BYTES, (int64_t)(page->epoch - page_before->epoch));
    if (!page->own_time) {
        p = wb_fields_put_time(p, page->time_ms, page_before->time_ms);
        p = wb_fields_put(p, page->lifetime_count);
    }
    if (!page->own_lifetime)
        p = wb_fields_put(p, page->lifetime);
    if (record->docid != WB_DOCID_NONE)
        p = wb_fields_put_signed(p, (int64_t)record->docid - (int64_t)before->docid);
    if (record->revisit)
        p = wb_fields_put_signed(p, record->original_ms);
    p = wb_fields_put_signed(p, (int64_t)(place->index - before->place.index));
    if (place->within)
        p = wb_fields_put(wb_fields_put_signed(p, place->capture_ms), place->capture_tie);
    return place->has_at ? put_position(p, &place->at, &before->place.at) : p;
}

int wb_wire_put_records(const struct wb_store_parcel *parcel, const struct wb_wire_record *records, struct wb_buf *out)
{
    static const struct wb_store_parcel_page no_page;
    static const struct wb_wire_record no_record;
    const struct wb_stream_place *place = &records[0].place;
    char *p;

    WB_CHECK(parcel->count > 0 && parcel->count <= WB_WIRE_RECORDS_MAX);
    int err = begin_frame(out, 1 + WB_STORE_POSITION_BYTES + WB_VARINT_MAX + parcel->count * RECORD_FIELDS_MAX, &p);
    if (err < 0)
        return err;
    *p++ = place->has_start ? FRAME_START : 0;
    if (place->has_start) {
        memcpy(p, place->start.bytes, sizeof place->start.bytes);
        p += sizeof place->start.bytes;
    }
    p = wb_fields_put(p, parcel->count);
    for (size_t i = 0; i < parcel->count; i++) {
        WB_CHECK(records[i].place.has_start == place->has_start);
        p = put_record(p, &parcel->pages[i], &records[i], i ? &parcel->pages[i - 1] : &no_page,
                       i ? &records[i - 1] : &no_record);
    }
    return end_frame(out, WIRE_RECORDS, p, parcel->bytes);
}

int wb_wire_put_damage(const char *message, struct wb_buf *out)
{
    size_t len = strnlen(message, MESSAGE_MAX);
    char *p;
    int err = begin_frame(out, WB_VARINT_MAX + MESSAGE_MAX, &p);

    if (err < 0)
        return err;
    return end_frame(out, WIRE_DAMAGED, wb_fields_put_text(p, wb_slice(message, len)), WB_SLICE_EMPTY);
}

int wb_wire_put_end(uint64_t records, struct wb_buf *out)
{
    char *p;
    int err = begin_frame(out, WB_VARINT_MAX, &p);

    return err < 0 ? err : end_frame(out, WIRE_LAST, wb_fields_put(p, records), WB_SLICE_EMPTY);
}

/* ---- reading ------------------------------------------------------------------------------------- */

struct wb_wire_reader {
    uint32_t magic;
    struct wb_buf bytes; /* that have arrived */
    size_t at;           /* what is before this was read */
    bool headed, ended, failed;
    struct wb_stream_info info;
    struct wb_token_writer tokens;
    struct wb_store_unpacker *unpacker;

    /* ---- the frame of records that is being read ---- */
    WB_VEC(struct wb_store_parcel_page) pages;
    WB_VEC(struct wb_wire_record) records;
    size_t next;                  /* record */
    size_t block_at, block_bytes; /* its block, in `bytes` */
    const char *opened;           /* where the block was when it was opened; NULL: it was not */
    uint64_t delivered;           /* records of all frames up to this one */
};

int wb_wire_reader_new(struct wb_wire_reader **reader_out)
{
    struct wb_wire_reader *reader = wb_alloc_zero(1, sizeof *reader);

    *reader_out = NULL;
    if (!reader)
        return WB_E_NOMEM;
    reader->magic = READER_MAGIC;
    int err = wb_store_unpacker_new(&reader->unpacker);
    if (err < 0) {
        wb_wire_reader_free(reader);
        return err;
    }
    *reader_out = reader;
    return 0;
}

void wb_wire_reader_reset(struct wb_wire_reader *reader)
{
    WB_CHECK(reader->magic == READER_MAGIC);
    wb_buf_clear(&reader->bytes);
    wb_token_writer_release(&reader->tokens);
    reader->tokens = (struct wb_token_writer){0};
    reader->info = (struct wb_stream_info){0};
    reader->at = reader->next = reader->pages.count = reader->records.count = 0;
    reader->delivered = 0;
    reader->headed = reader->ended = reader->failed = false;
}

void wb_wire_reader_free(struct wb_wire_reader *reader)
{
    if (!reader)
        return;
    wb_wire_reader_reset(reader);
    reader->magic = 0;
    wb_store_unpacker_free(reader->unpacker);
    wb_vec_release(&reader->pages);
    wb_vec_release(&reader->records);
    wb_buf_release(&reader->bytes);
    wb_free(reader);
}

/* Moves what was not read to the beginning. The frame that is being read must stay where it is. */
static void make_room(struct wb_wire_reader *reader)
{
    WB_CHECK(reader->at <= reader->bytes.len);
    if (reader->next < reader->records.count || reader->at < START_KEPT || reader->at < reader->bytes.len / 2)
        return;
    reader->bytes.len -= reader->at;
    memmove(reader->bytes.ptr, reader->bytes.ptr + reader->at, reader->bytes.len);
    reader->at = 0;
}

int wb_wire_reader_feed(struct wb_wire_reader *reader, struct wb_slice bytes)
{
    WB_CHECK(reader->magic == READER_MAGIC);
    if (reader->failed || bytes.len == 0)
        return 0;
    make_room(reader);
    return wb_buf_append_slice(&reader->bytes, bytes);
}

static int contradicts(const char *what)
{
    return wb_fail(WB_E_PROTO, "the stream of the server is not valid: %s", what);
}

static int read_header(struct wb_wire_reader *reader, struct wb_fields *fields)
{
    struct wb_stream_ticket ticket;
    struct wb_stream_place place;
    struct wb_buf mem = WB_BUF_INIT;
    const char *magic = wb_fields_take_bytes(fields, sizeof WIRE_MAGIC - 1);
    uint64_t format = wb_fields_take(fields, UINT64_MAX);

    if (!magic || memcmp(magic, WIRE_MAGIC, sizeof WIRE_MAGIC - 1) != 0)
        return contradicts("its header is wrong");
    if (format != WIRE_FORMAT)
        return wb_fail_format("the stream of the server", format, WIRE_FORMAT);
    const char *repository = wb_fields_take_bytes(fields, 8);
    reader->info.snapshot = (uint32_t)wb_fields_take(fields, UINT32_MAX);
    reader->info.generation = (uint32_t)wb_fields_take(fields, UINT32_MAX);
    reader->info.epoch = wb_fields_take(fields, UINT64_MAX);
    reader->info.pages = wb_fields_take(fields, UINT64_MAX);
    struct wb_slice token = wb_fields_take_text(fields);
    if (!fields->ok || fields->at != fields->end || token.len > WB_TOKEN_TEXT_MAX)
        return contradicts("its header is wrong");
    int err = 0;
    if (token.len) { /* a stream that is finished has none */
        err = wb_token_read(token, wb_get64(repository), &ticket, &place, &mem);
        if (err == 0)
            err = wb_token_writer_init(&reader->tokens, wb_get64(repository), &ticket);
    }
    wb_buf_release(&mem);
    reader->headed = err == 0;
    return err == WB_E_INVALID ? contradicts("its token is wrong") : err;
}

static void take_position(struct wb_fields *fields, struct wb_store_position *position)
{
    const char *mask = wb_fields_take_bytes(fields, POSITION_MASK);

    for (size_t i = 0; mask && i < WB_STORE_POSITION_BYTES; i++)
        if (mask[i / 8] >> i % 8 & 1)
            position->bytes[i] = (char)wb_fields_take_byte(fields);
}

/* Reads a record; *page and *record are copies of the one before. */
static void take_record(struct wb_fields *fields, struct wb_store_parcel_page *page, struct wb_wire_record *record)
{
    struct wb_stream_place *place = &record->place;
    uint8_t flags = wb_fields_take_byte(fields);

    fields->ok = fields->ok && !(flags & ~RECORD_FLAGS);
    record->position = place->position + (uint64_t)wb_fields_take_signed(fields);
    place->position = record->position + 1;
    page->slot = (uint16_t)(page->slot + wb_fields_take(fields, UINT16_MAX - page->slot));
    const char *id = wb_fields_take_bytes(fields, WB_PAGEID_BYTES);
    page->id = id ? wb_pageid_get(id) : page->id;
    page->epoch += (uint64_t)wb_fields_take_signed(fields);
    page->own_time = flags & RECORD_OWN_TIME;
    page->own_lifetime = flags & RECORD_OWN_LIFETIME;
    if (!page->own_time) {
        page->time_ms = wb_fields_take_time(fields, page->time_ms);
        page->lifetime_count = (uint32_t)wb_fields_take(fields, UINT32_MAX);
    }
    if (!page->own_lifetime)
        page->lifetime = (uint32_t)wb_fields_take(fields, UINT32_MAX);
    uint32_t docid = record->docid;
    if (flags & RECORD_DOCID)
        docid += (uint32_t)wb_fields_take_signed(fields);
    record->docid = flags & RECORD_DOCID ? docid : WB_DOCID_NONE;
    record->revisit = flags & RECORD_REVISIT;
    record->original_ms = record->revisit ? wb_fields_take_signed(fields) : 0;
    place->index += (uint64_t)wb_fields_take_signed(fields);
    place->within = flags & RECORD_WITHIN;
    place->capture_ms = place->within ? wb_fields_take_signed(fields) : 0;
    place->capture_tie = place->within ? wb_fields_take(fields, UINT64_MAX) : 0;
    place->wrapped = flags & RECORD_WRAPPED;
    place->has_at = flags & RECORD_AT;
    if (place->has_at)
        take_position(fields, &place->at);
}

static int read_records(struct wb_wire_reader *reader, struct wb_fields *fields)
{
    struct wb_store_parcel_page page = {0};
    struct wb_wire_record record = {0};
    uint8_t flags = wb_fields_take_byte(fields);
    const char *start = flags & FRAME_START ? wb_fields_take_bytes(fields, WB_STORE_POSITION_BYTES) : NULL;
    uint64_t count = wb_fields_take(fields, WB_WIRE_RECORDS_MAX);
    int err = 0;

    if (!fields->ok || flags & ~FRAME_FLAGS || count == 0 || reader->tokens.fixed == 0)
        return contradicts("records are wrong");
    record.place.has_start = start != NULL;
    if (start)
        memcpy(record.place.start.bytes, start, WB_STORE_POSITION_BYTES);
    for (uint64_t i = 0; i < count && err == 0 && fields->ok; i++) {
        take_record(fields, &page, &record);
        err = wb_vec_push(&reader->pages, page);
        if (err == 0)
            err = wb_vec_push(&reader->records, record);
    }
    if (err < 0)
        return err;
    if (!fields->ok || fields->at != fields->end)
        return contradicts("records are wrong");
    reader->delivered += count;
    return 0;
}

/* The message comes from elsewhere: only what can be printed is shown. */
static int read_damage(struct wb_fields *fields)
{
    struct wb_slice text = wb_fields_take_text(fields);
    char message[MESSAGE_MAX + 1];

    if (!fields->ok || fields->at != fields->end || text.len > MESSAGE_MAX)
        return contradicts("a message is wrong");
    for (size_t i = 0; i < text.len; i++)
        message[i] = (unsigned char)text.ptr[i] < 0x20 || text.ptr[i] == 0x7f ? '?' : text.ptr[i];
    message[text.len] = '\0';
    wb_fail(WB_E_CORRUPT, "%s", message);
    return WB_WIRE_DAMAGE;
}

static int read_end(struct wb_wire_reader *reader, struct wb_fields *fields)
{
    uint64_t records = wb_fields_take(fields, UINT64_MAX);

    if (!fields->ok || fields->at != fields->end)
        return contradicts("its end is wrong");
    if (records != reader->delivered)
        return contradicts("records are missing");
    reader->ended = true;
    return WB_WIRE_END;
}

/* What a frame says about itself. */
struct wire_frame {
    enum wire_kind kind;
    size_t fields, block;
};

static int read_frame_head(const struct wb_wire_reader *reader, struct wire_frame *frame_out)
{
    const char *bytes = reader->bytes.ptr + reader->at;
    uint64_t block = wb_get64(bytes + FRAME_AT_BLOCK);
    uint8_t kind = (uint8_t)bytes[0];

    *frame_out = (struct wire_frame){
        .kind = (enum wire_kind)kind, .fields = wb_get32(bytes + FRAME_AT_FIELDS), .block = (size_t)block};
    bool header = kind == WIRE_HEADER;
    if (kind < WIRE_HEADER || kind > WIRE_LAST || bytes[1] || bytes[2] || bytes[3] || header == reader->headed ||
        frame_out->fields > FIELDS_MAX || block > BLOCK_MAX || (kind == WIRE_RECORDS) != (block > 0))
        return contradicts("a frame is wrong");
    return 0;
}

/* Reads the next frame. Returns an enum wb_wire_got, or an error; *done_out is false if its end has not arrived yet. */
static int read_frame(struct wb_wire_reader *reader, bool *done_out)
{
    WB_CHECK(reader->next == reader->records.count && reader->at <= reader->bytes.len);
    size_t have = reader->bytes.len - reader->at;
    struct wire_frame frame;

    *done_out = false;
    if (have < FRAME_BYTES)
        return WB_WIRE_MORE;
    int err = read_frame_head(reader, &frame);
    if (err < 0)
        return err;
    if (have < FRAME_BYTES + frame.fields)
        return WB_WIRE_MORE;
    const char *bytes = reader->bytes.ptr + reader->at;
    struct wb_fields fields = wb_fields_of(wb_slice(bytes + FRAME_BYTES, frame.fields));
    if (wb_hash64_seeded(fields.at, frame.fields, wb_hash64(bytes, FRAME_AT_CHECK)) != wb_get64(bytes + FRAME_AT_CHECK))
        return wb_fail(WB_E_CORRUPT, "a frame of the stream does not match its checksum");
    if (have - FRAME_BYTES - frame.fields < frame.block)
        return WB_WIRE_MORE;
    reader->block_at = reader->at + FRAME_BYTES + frame.fields;
    reader->block_bytes = frame.block;
    reader->opened = NULL;
    reader->next = reader->pages.count = reader->records.count = 0;
    reader->at = reader->block_at + frame.block;
    *done_out = true;
    switch (frame.kind) {
    case WIRE_HEADER:
        return read_header(reader, &fields);
    case WIRE_RECORDS:
        return read_records(reader, &fields);
    case WIRE_DAMAGED:
        return read_damage(&fields);
    case WIRE_LAST:
        return read_end(reader, &fields);
    }
    return contradicts("a frame is wrong");
}

/* The next record of the current frame. */
static int read_record(struct wb_wire_reader *reader, struct wb_stream_record *record_out)
{
    const char *block = reader->bytes.ptr + reader->block_at;
    const struct wb_wire_record *record = &reader->records.items[reader->next];
    int err = 0;

    WB_CHECK(reader->next < reader->records.count && reader->records.count == reader->pages.count);
    WB_CHECK(reader->block_at + reader->block_bytes <= reader->bytes.len);
    if (reader->opened != block) {
        struct wb_store_parcel parcel = {wb_slice(block, reader->block_bytes), reader->pages.items,
                                         reader->pages.count};
        err = wb_store_unpacker_open(reader->unpacker, &parcel);
        if (err < 0)
            return err;
        reader->opened = block;
    }
    err = wb_store_unpacker_page(reader->unpacker, reader->next++, &record_out->page);
    if (err == WB_E_CORRUPT)
        return WB_WIRE_DAMAGE;
    if (err == 0)
        err = wb_token_write(&reader->tokens, &record->place, &record_out->token);
    if (err < 0)
        return err;
    record_out->docid = record->docid;
    record_out->position = record->position;
    record_out->revisit = record->revisit;
    record_out->original_ms = record->original_ms;
    return WB_WIRE_RECORD;
}

int wb_wire_reader_next(struct wb_wire_reader *reader, struct wb_stream_record *record_out)
{
    int got = 0;
    bool done = true;

    WB_CHECK(reader->magic == READER_MAGIC);
    *record_out = (struct wb_stream_record){.docid = WB_DOCID_NONE};
    if (reader->failed)
        return contradicts("it was given up before");
    while (got == 0 && done) {
        if (reader->next < reader->records.count)
            got = read_record(reader, record_out);
        else if (reader->ended)
            got = reader->at < reader->bytes.len ? contradicts("something follows its end") : WB_WIRE_END;
        else
            got = read_frame(reader, &done);
    }
    reader->failed = got < 0;
    return got;
}

bool wb_wire_reader_info(const struct wb_wire_reader *reader, struct wb_stream_info *info_out)
{
    WB_CHECK(reader->magic == READER_MAGIC);
    *info_out = reader->info;
    return reader->headed;
}
