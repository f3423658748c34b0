/* token.c - writes and reads restart tokens (token.h, docs/formats/stream.md). It never looks at the repository. */
#include "stream/token.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/codec.h"
#include "base/error.h"
#include "base/fields.h"
#include "base/format.h"
#include "base/hash.h"

enum { TOKEN_FORMAT = 1, CHECK_BYTES = 8, HEAD_BYTES = 1 + 8 };
enum { TICKET_SEALED = 1, TICKET_KEPT = 2, TICKET_LISTED = 4, TICKET_FLAGS = 7 };
enum { PLACE_WITHIN = 1, PLACE_AT = 2, PLACE_START = 4, PLACE_WRAPPED = 8, PLACE_FLAGS = 15 };

/* A position is mostly zeros: a bit for each byte that is not zero, then these bytes. */
enum { POSITION_MASK = (WB_STORE_POSITION_BYTES + 7) / 8 };
#define PLACE_BYTES_MAX (5 * WB_VARINT_MAX + 2 * (POSITION_MASK + WB_STORE_POSITION_BYTES))

uint64_t wb_token_repository(const char *id)
{
    return wb_hash64(id, strlen(id));
}

/* ---- writing ------------------------------------------------------------------------------------- */

static char *put_position(char *p, const struct wb_store_position *position)
{
    char *mask = p;

    memset(mask, 0, POSITION_MASK);
    p += POSITION_MASK;
    for (size_t i = 0; i < WB_STORE_POSITION_BYTES; i++)
        if (position->bytes[i]) {
            mask[i / 8] = (char)(mask[i / 8] | 1 << i % 8);
            *p++ = position->bytes[i];
        }
    return p;
}

static char *put_place(char *p, const struct wb_stream_place *place)
{
    p = wb_fields_put(p, (place->within ? PLACE_WITHIN : 0u) | (place->has_at ? PLACE_AT : 0u) |
                             (place->has_start ? PLACE_START : 0u) | (place->wrapped ? PLACE_WRAPPED : 0u));
    p = wb_fields_put(p, place->position);
    p = wb_fields_put(p, place->index);
    if (place->within)
        p = wb_fields_put(wb_fields_put_signed(p, place->capture_ms), place->capture_tie);
    if (place->has_at)
        p = put_position(p, &place->at);
    if (place->has_start)
        p = put_position(p, &place->start);
    return p;
}

int wb_token_writer_init(struct wb_token_writer *writer, uint64_t repository, const struct wb_stream_ticket *ticket)
{
    *writer = (struct wb_token_writer){.repository = repository};
    int err = wb_buf_reserve(&writer->bytes, HEAD_BYTES + 8 * WB_VARINT_MAX + ticket->spec.len + 3);
    if (err < 0)
        return err;
    char *p = writer->bytes.ptr;
    *p++ = TOKEN_FORMAT;
    wb_put64(p, repository);
    p = wb_fields_put(p + 8, (ticket->sealed ? TICKET_SEALED : 0u) | (ticket->kept ? TICKET_KEPT : 0u) |
                                 (ticket->listed ? TICKET_LISTED : 0u));
    p = wb_fields_put(p, ticket->snapshot);
    p = wb_fields_put(p, ticket->generation);
    p = wb_fields_put(p, ticket->epoch);
    wb_put64(p, ticket->holder);
    p = wb_fields_put_text(p + 8, ticket->spec);
    if (ticket->listed) {
        wb_put64(p, ticket->list_hash);
        p += 8;
    }
    /* Padded so that its text can be made once, and only that of the place for each token. */
    size_t pad = (3 - (size_t)(p + 1 - writer->bytes.ptr) % 3) % 3;
    *p++ = (char)pad;
    memset(p, 0, pad);
    writer->fixed = writer->bytes.len = (size_t)(p - writer->bytes.ptr) + pad;
    WB_CHECK(writer->bytes.len <= writer->bytes.cap && writer->fixed % 3 == 0);
    err = wb_buf_reserve(&writer->text, WB_BASE64_CHARS(writer->fixed + PLACE_BYTES_MAX + CHECK_BYTES));
    if (err == 0)
        err = wb_buf_reserve(&writer->bytes, PLACE_BYTES_MAX + CHECK_BYTES);
    if (err == 0)
        wb_base64url_encode(writer->bytes.ptr, writer->fixed, writer->text.ptr);
    return err;
}

void wb_token_writer_release(struct wb_token_writer *writer)
{
    wb_buf_release(&writer->bytes);
    wb_buf_release(&writer->text);
}

int wb_token_write(struct wb_token_writer *writer, const struct wb_stream_place *place, struct wb_slice *token_out)
{
    WB_CHECK(writer->fixed % 3 == 0 && writer->fixed > 0);
    WB_CHECK(writer->fixed + PLACE_BYTES_MAX + CHECK_BYTES <= writer->bytes.cap);
    char *bytes = writer->bytes.ptr, *p = put_place(bytes + writer->fixed, place);

    wb_put64(p, wb_hash64(bytes, (size_t)(p - bytes)));
    writer->bytes.len = (size_t)(p - bytes) + CHECK_BYTES;
    size_t done = WB_BASE64_CHARS(writer->fixed);
    WB_CHECK(WB_BASE64_CHARS(writer->bytes.len) <= writer->text.cap);
    wb_base64url_encode(bytes + writer->fixed, writer->bytes.len - writer->fixed, writer->text.ptr + done);
    writer->text.len = WB_BASE64_CHARS(writer->bytes.len);
    *token_out = wb_buf_slice(&writer->text);
    return 0;
}

/* ---- reading ------------------------------------------------------------------------------------- */

static void take_position(struct wb_fields *fields, struct wb_store_position *position_out)
{
    const char *mask = wb_fields_take_bytes(fields, POSITION_MASK);

    *position_out = (struct wb_store_position){{0}};
    for (size_t i = 0; mask && i < WB_STORE_POSITION_BYTES; i++)
        if (mask[i / 8] >> i % 8 & 1)
            position_out->bytes[i] = (char)wb_fields_take_byte(fields);
}

static void take_place(struct wb_fields *fields, struct wb_stream_place *place_out)
{
    uint64_t flags = wb_fields_take(fields, PLACE_FLAGS);

    *place_out = (struct wb_stream_place){.within = flags & PLACE_WITHIN,
                                          .has_at = flags & PLACE_AT,
                                          .has_start = flags & PLACE_START,
                                          .wrapped = flags & PLACE_WRAPPED};
    place_out->position = wb_fields_take(fields, UINT64_MAX);
    place_out->index = wb_fields_take(fields, UINT64_MAX);
    if (place_out->within) {
        place_out->capture_ms = wb_fields_take_signed(fields);
        place_out->capture_tie = wb_fields_take(fields, UINT64_MAX);
    }
    if (place_out->has_at)
        take_position(fields, &place_out->at);
    if (place_out->has_start)
        take_position(fields, &place_out->start);
}

static uint64_t take_u64(struct wb_fields *fields)
{
    const char *p = wb_fields_take_bytes(fields, 8);

    return p ? wb_get64(p) : 0;
}

static void take_ticket(struct wb_fields *fields, struct wb_stream_ticket *ticket_out)
{
    uint64_t flags = wb_fields_take(fields, TICKET_FLAGS);

    *ticket_out = (struct wb_stream_ticket){
        .sealed = flags & TICKET_SEALED, .kept = flags & TICKET_KEPT, .listed = flags & TICKET_LISTED};
    ticket_out->snapshot = (uint32_t)wb_fields_take(fields, UINT32_MAX);
    ticket_out->generation = (uint32_t)wb_fields_take(fields, UINT32_MAX);
    ticket_out->epoch = wb_fields_take(fields, UINT64_MAX);
    ticket_out->holder = take_u64(fields);
    ticket_out->spec = wb_fields_take_text(fields);
    if (ticket_out->listed)
        ticket_out->list_hash = take_u64(fields);
    wb_fields_take_bytes(fields, wb_fields_take_byte(fields)); /* padding */
}

static int refuse(struct wb_slice token)
{
    size_t shown = token.len > 40 ? 40 : token.len;

    return wb_fail(WB_E_INVALID, "'%.*s%s' is not a token, or was damaged on its way", (int)shown, token.ptr,
                   shown < token.len ? "..." : "");
}

int wb_token_read(struct wb_slice token, uint64_t repository, struct wb_stream_ticket *ticket_out,
                  struct wb_stream_place *place_out, struct wb_buf *mem_out)
{
    size_t len = WB_BASE64_BYTES(token.len);

    *ticket_out = (struct wb_stream_ticket){0};
    *place_out = (struct wb_stream_place){0};
    wb_buf_clear(mem_out);
    if (token.len > WB_TOKEN_TEXT_MAX || len < HEAD_BYTES + CHECK_BYTES)
        return refuse(token);
    int err = wb_buf_reserve(mem_out, len);
    if (err < 0)
        return err;
    if (!wb_base64url_decode(token, mem_out->ptr))
        return refuse(token);
    mem_out->len = len;
    if (wb_get64(mem_out->ptr + len - CHECK_BYTES) != wb_hash64(mem_out->ptr, len - CHECK_BYTES))
        return refuse(token);
    if ((uint8_t)mem_out->ptr[0] != TOKEN_FORMAT)
        return wb_fail_format("the token", (uint8_t)mem_out->ptr[0], TOKEN_FORMAT);
    if (wb_get64(mem_out->ptr + 1) != repository)
        return wb_fail(WB_E_INVALID, "the token is of another repository");
    struct wb_fields fields = wb_fields_of(wb_slice(mem_out->ptr + HEAD_BYTES, len - HEAD_BYTES - CHECK_BYTES));
    take_ticket(&fields, ticket_out);
    take_place(&fields, place_out);
    if (!fields.ok || fields.at != fields.end || (ticket_out->kept && ticket_out->spec.len != 8))
        return refuse(token);
    return 0;
}
