/*
 * payload.c - removes the transfer and content codings that a server applied to a body.
 *
 * The head says which codings were applied; they are removed from the last to the first, chunked
 * here and the others by unpack.c. It never trusts a header more than the bytes: a body that does
 * not start like its coding is left alone.
 *
 * Servers write all sorts of things into Content-Encoding ("none", "utf-8", "binary"). Anything
 * that is not the name of a coding we know is ignored, so that such a body is taken as it was
 * sent. An unknown Transfer-Encoding, however, hides everything inside it, and ends the decoding.
 */
#include "page/unpack.h"

#include "base/check.h"
#include "base/codec.h"

/* A response with more codings than this is an attack. */
#define CODINGS_MAX 8

enum coding { CODING_IDENTITY, CODING_CHUNKED, CODING_GZIP, CODING_DEFLATE, CODING_BR, CODING_ZSTD, CODING_UNKNOWN };

static const struct {
    const char *name;
    enum coding coding;
} names[] = {
    {"", CODING_IDENTITY},     {"identity", CODING_IDENTITY}, {"chunked", CODING_CHUNKED}, {"gzip", CODING_GZIP},
    {"x-gzip", CODING_GZIP},   {"deflate", CODING_DEFLATE},   {"br", CODING_BR},           {"zstd", CODING_ZSTD},
};

struct codings {
    enum coding list[CODINGS_MAX];
    size_t count;
    bool too_many, unknown;
};

static void add_coding(struct codings *codings, struct wb_slice word, bool transfer)
{
    enum coding coding = CODING_UNKNOWN;

    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (wb_slice_equal_nocase(word, wb_slice_str(names[i].name)))
            coding = names[i].coding;
    codings->unknown |= coding == CODING_UNKNOWN;
    if (coding == CODING_IDENTITY || (coding == CODING_UNKNOWN && !transfer))
        return;
    if (codings->count == CODINGS_MAX)
        codings->too_many = true;
    else
        codings->list[codings->count++] = coding;
}

/* Adds the codings of every header with this name, in order. */
static void add_headers(struct codings *codings, struct wb_slice head, struct wb_slice want, bool transfer)
{
    struct wb_slice name, value;
    size_t at = 0;

    while (wb_http_header_next(head, &at, &name, &value)) {
        if (!wb_slice_equal_nocase(name, want))
            continue;
        while (value.len > 0) {
            const char *comma = memchr(value.ptr, ',', value.len);
            size_t len = comma ? (size_t)(comma - value.ptr) : value.len;
            add_coding(codings, wb_slice_trim(wb_slice(value.ptr, len)), transfer);
            size_t past = comma ? len + 1 : len;
            value = wb_slice(value.ptr + past, value.len - past);
        }
    }
}

/* ---- chunked ------------------------------------------------------------------------------- */

/* Parses the size line of a chunk at the start of s. Returns the line's length, or 0 if it is invalid or incomplete. */
static size_t chunk_line(struct wb_slice s, uint64_t *size_out)
{
    size_t at = 0;

    *size_out = 0;
    while (at < s.len && at < 16 && wb_hex_digit(s.ptr[at]) >= 0)
        *size_out = *size_out << 4 | (uint64_t)wb_hex_digit(s.ptr[at++]);
    if (at == 0 || at == s.len || !strchr(" \t;\r\n", s.ptr[at]) || s.ptr[at] == '\0')
        return 0;
    /* Extensions may follow the size; their length is bounded. */
    size_t end = s.len < at + 4096 ? s.len : at + 4096;
    const char *lf = memchr(s.ptr + at, '\n', end - at);
    return lf ? (size_t)(lf + 1 - s.ptr) : 0;
}

/* The length of a line end at the start of s, or 0. */
static size_t line_end(struct wb_slice s)
{
    if (s.len >= 1 && s.ptr[0] == '\n')
        return 1;
    return s.len >= 2 && s.ptr[0] == '\r' && s.ptr[1] == '\n' ? 2 : 0;
}

static struct wb_slice after(struct wb_slice s, size_t n)
{
    return wb_slice(s.ptr + n, s.len - n);
}

/* True if s starts with a valid chunk: a size line, and a line end where the chunk ends. */
static bool starts_chunked(struct wb_slice s)
{
    uint64_t size;
    size_t line = chunk_line(s, &size);

    if (line == 0)
        return false;
    if (size >= s.len - line) /* the chunk is cut short: require the exact spelling */
        return s.ptr[line - 1] == '\n' && line >= 2 && s.ptr[line - 2] == '\r';
    return size == 0 || line_end(after(s, line + (size_t)size)) > 0;
}

static int unpack_chunked(struct wb_slice coded, size_t limit, struct wb_buf *out,
                          struct wb_payload_result *decoded_out)
{
    struct wb_slice rest = coded;

    *decoded_out = (struct wb_payload_result){.changed = starts_chunked(coded)};
    if (!decoded_out->changed)
        return 0;
    for (;;) {
        uint64_t size;
        size_t line = chunk_line(rest, &size);
        decoded_out->damaged = line == 0;
        if (line == 0 || size == 0)
            return 0;
        rest = after(rest, line);
        size_t whole = size < rest.len ? (size_t)size : rest.len;
        size_t take = whole < limit - out->len ? whole : limit - out->len;
        int err = wb_buf_append(out, rest.ptr, take);
        if (err < 0)
            return err;
        decoded_out->cut = take < whole;
        decoded_out->damaged = whole < size;
        rest = after(rest, whole);
        if (decoded_out->cut || decoded_out->damaged)
            return 0;
        size_t end = line_end(rest);
        rest = after(rest, end);
        if (end == 0) {
            decoded_out->damaged = true;
            return 0;
        }
    }
}

/* ---- all codings of a response --------------------------------------------------------------------------- */

static int unpack(enum coding coding, struct wb_slice coded, size_t limit, struct wb_buf *out,
                  struct wb_payload_result *decoded_out)
{
    switch (coding) {
    case CODING_CHUNKED:
        return unpack_chunked(coded, limit, out, decoded_out);
    case CODING_GZIP:
        return wb_unpack_gzip(coded, limit, out, decoded_out);
    case CODING_DEFLATE:
        return wb_unpack_deflate(coded, limit, out, decoded_out);
    case CODING_BR:
        return wb_unpack_br(coded, limit, out, decoded_out);
    case CODING_ZSTD:
        return wb_unpack_zstd(coded, limit, out, decoded_out);
    default:
        *decoded_out = (struct wb_payload_result){.changed = false};
        return 0;
    }
}

int wb_payload_decode(struct wb_slice head, struct wb_slice body, size_t limit, struct wb_buf *body_out,
                      struct wb_payload_result *decoded_out)
{
    struct codings codings = {.count = 0};
    struct wb_buf other = WB_BUF_INIT;
    int err = 0;

    *decoded_out = (struct wb_payload_result){.changed = false};
    wb_buf_clear(body_out);
    add_headers(&codings, head, WB_SLICE_LIT("Content-Encoding"), false);
    add_headers(&codings, head, WB_SLICE_LIT("Transfer-Encoding"), true);
    decoded_out->coded = codings.too_many || (codings.count > 0 && !codings.unknown);
    if (codings.too_many) {
        decoded_out->damaged = true;
        return 0;
    }
    struct wb_slice now = body;
    struct wb_buf *to = body_out, *spare = &other;
    for (size_t i = codings.count; i-- > 0 && codings.list[i] != CODING_UNKNOWN;) {
        struct wb_payload_result step;
        /* The limit is for the final result; removing chunks before another coding never makes the data longer. */
        size_t most = i > 0 && codings.list[i] == CODING_CHUNKED ? now.len : limit;
        wb_buf_clear(to);
        err = unpack(codings.list[i], now, most, to, &step);
        if (err < 0)
            goto done;
        if (!step.changed)
            continue;
        now = wb_buf_slice(to);
        struct wb_buf *full = to;
        to = spare;
        spare = full;
        decoded_out->changed = true;
        decoded_out->cut |= step.cut;
        decoded_out->damaged |= step.damaged;
    }
    if (decoded_out->changed && spare == &other) {
        struct wb_buf last = other;
        other = *body_out;
        *body_out = last;
    }
    if (decoded_out->changed && body_out->len > limit) {
        body_out->len = limit;
        decoded_out->cut = true;
    }
    WB_CHECK(body_out->len <= limit || !decoded_out->changed);
done:
    if (err < 0 || !decoded_out->changed)
        wb_buf_clear(body_out);
    wb_buf_release(&other);
    return err;
}
