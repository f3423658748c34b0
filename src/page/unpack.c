/*
 * unpack.c - decompresses gzip, deflate, br and zstd payloads.
 *
 * libdeflate inflates a payload of ordinary size in one call, if it is intact. Everything else is
 * streamed, so that the part before damage is kept and a decompression bomb never produces more
 * than the limit. Memory: the limit, and the window of the decoder (64 MiB at most, for zstd). It
 * never looks at the head of a response: payload.c does.
 */
#include "page/unpack.h"

#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

#include <brotli/decode.h>
#include <libdeflate.h>
#include <zlib.h>
#include <zstd.h>
#include <zstd_errors.h>

#define STEP ((size_t)64 << 10)
#define ZSTD_WINDOW_LOG_MAX 26
#define DEFLATE_RATIO_MAX 1032u /* deflate cannot compress better than this */

/* ---- streaming, for every coding ------------------------------------------------------ */

enum unpack_outcome { OUTCOME_MORE, OUTCOME_END, OUTCOME_BAD, OUTCOME_NOMEM };

struct unpack_stream {
    void *decoder;
    struct wb_slice in; /* the input that is left */
    /* Decodes up to `room` bytes, and removes from `in` what it has read. */
    enum unpack_outcome (*step)(struct unpack_stream *st, char *to, size_t room, size_t *made_out);
};

static void take_input(struct unpack_stream *st, size_t n)
{
    st->in = wb_slice(st->in.ptr + n, st->in.len - n);
}

static int run_stream(struct unpack_stream *st, size_t limit, struct wb_buf *out, struct wb_payload_result *decoded)
{
    for (;;) {
        char probe; /* if a byte beyond the limit can be decoded, there is more */
        bool full = out->len >= limit;
        size_t room = 1, made = 0;
        if (!full) {
            size_t want = limit - out->len < STEP ? limit - out->len : STEP;
            int err = wb_buf_reserve(out, want);
            if (err < 0)
                return err;
            room = out->cap - out->len < limit - out->len ? out->cap - out->len : limit - out->len;
        }
        size_t before = st->in.len;
        enum unpack_outcome outcome = st->step(st, full ? &probe : out->ptr + out->len, room, &made);
        WB_CHECK(made <= room && st->in.len <= before);
        if (outcome == OUTCOME_NOMEM)
            return wb_fail_nomem();
        if (full && made > 0) {
            decoded->cut = true;
            return 0;
        }
        out->len += made;
        if (outcome == OUTCOME_END)
            return 0;
        if (outcome == OUTCOME_BAD || (made == 0 && st->in.len == before)) {
            decoded->damaged = true;
            return 0;
        }
    }
}

/* True if the input is plain text, although the server says it is coded: coded data never has so many letters. */
static bool looks_like_text(struct wb_slice s)
{
    size_t len = s.len < 64 ? s.len : 64;

    for (size_t i = 0; i < len; i++)
        if (s.ptr[i] == 0x7f || ((unsigned char)s.ptr[i] < 0x20 && !strchr("\t\r\n\f", s.ptr[i])) || s.ptr[i] == 0)
            return false;
    return len > 0;
}

/* ---- zlib ----------------------------------------------------------------------------------- */

static bool starts_gzip(struct wb_slice s)
{
    return wb_slice_starts(s, WB_SLICE_LIT("\x1f\x8b\x08"));
}

static enum unpack_outcome step_zlib(struct unpack_stream *st, char *to, size_t room, size_t *made_out)
{
    z_stream *z = st->decoder;
    unsigned give = st->in.len > UINT32_MAX ? UINT32_MAX : (unsigned)st->in.len;
    unsigned space = room > UINT32_MAX ? UINT32_MAX : (unsigned)room;

    z->next_in = (unsigned char *)(uintptr_t)st->in.ptr;
    z->avail_in = give;
    z->next_out = (unsigned char *)to;
    z->avail_out = space;
    int result = inflate(z, Z_NO_FLUSH);
    take_input(st, give - z->avail_in);
    *made_out = space - z->avail_out;
    if (result == Z_STREAM_END) {
        /* Several gzip members in a row are one body; anything else behind the first one is ignored. */
        if (!starts_gzip(st->in) || inflateReset(z) != Z_OK)
            return OUTCOME_END;
        return OUTCOME_MORE;
    }
    if (result == Z_MEM_ERROR)
        return OUTCOME_NOMEM;
    return result == Z_OK || result == Z_BUF_ERROR ? OUTCOME_MORE : OUTCOME_BAD;
}

static int stream_zlib(struct wb_slice coded, int window_bits, size_t limit, struct wb_buf *out,
                       struct wb_payload_result *decoded)
{
    z_stream z = {.zalloc = wb_alloc_hook, .zfree = wb_free_hook};
    struct unpack_stream st = {&z, coded, step_zlib};

    *decoded = (struct wb_payload_result){.changed = true};
    wb_buf_clear(out);
    if (inflateInit2(&z, window_bits) != Z_OK)
        return wb_fail_nomem();
    int err = run_stream(&st, limit, out, decoded);
    inflateEnd(&z);
    return err;
}

/* ---- libdeflate ------------------------------------------------------------------------------- */

typedef enum libdeflate_result (*inflate_whole)(struct libdeflate_decompressor *d, const void *in, size_t in_len,
                                                void *out, size_t out_len, size_t *used_out, size_t *made_out);

/* Returns 1 if all of the input is now in `out`, 0 if it must be streamed. size is a guess. */
static int unpack_whole(inflate_whole function, struct wb_slice coded, size_t size, size_t limit, struct wb_buf *out)
{
    struct libdeflate_decompressor *d = NULL;
    size_t used = 0, made = 0;
    int err = 0;

    if (size > limit)
        return 0;
    err = wb_buf_reserve(out, size ? size : 1);
    if (err < 0)
        return err;
    d = libdeflate_alloc_decompressor();
    if (!d)
        return wb_fail_nomem();
    size_t room = out->cap < limit ? out->cap : limit;
    if (function(d, coded.ptr, coded.len, out->ptr, room, &used, &made) == LIBDEFLATE_SUCCESS &&
        !starts_gzip(wb_slice(coded.ptr + used, coded.len - used))) {
        out->len = made;
        err = 1;
    }
    libdeflate_free_decompressor(d);
    return err;
}

/* Guesses the decoded size for codings that do not state it. */
static size_t guess_size(struct wb_slice coded, size_t limit)
{
    size_t guess = coded.len < limit / 6 ? coded.len * 6 : limit;

    return guess < STEP && limit >= STEP ? STEP : guess;
}

int wb_unpack_gzip(struct wb_slice coded, size_t limit, struct wb_buf *out, struct wb_payload_result *decoded_out)
{
    *decoded_out = (struct wb_payload_result){.changed = false};
    if (!starts_gzip(coded))
        return 0;
    decoded_out->changed = true;
    /* The last four bytes state the decoded size; ignore a claim that deflate could not have achieved. */
    size_t size = coded.len >= 18 ? wb_get32(coded.ptr + coded.len - 4) : SIZE_MAX;
    if (size / DEFLATE_RATIO_MAX <= coded.len) {
        int whole = unpack_whole(libdeflate_gzip_decompress_ex, coded, size, limit, out);
        if (whole != 0)
            return whole < 0 ? whole : 0;
    }
    return stream_zlib(coded, 15 + 16, limit, out, decoded_out);
}

int wb_unpack_deflate(struct wb_slice coded, size_t limit, struct wb_buf *out, struct wb_payload_result *decoded_out)
{
    bool zlib =
        coded.len >= 2 && (coded.ptr[0] & 0x0f) == 8 && ((uint8_t)coded.ptr[0] << 8 | (uint8_t)coded.ptr[1]) % 31 == 0;
    int err;

    *decoded_out = (struct wb_payload_result){.changed = coded.len > 0};
    if (coded.len == 0)
        return 0;
    err = unpack_whole(zlib ? libdeflate_zlib_decompress_ex : libdeflate_deflate_decompress_ex, coded,
                       guess_size(coded, limit), limit, out);
    if (err != 0)
        return err < 0 ? err : 0;
    if (zlib) {
        err = stream_zlib(coded, 15, limit, out, decoded_out);
        if (err < 0 || out->len > 0 || !decoded_out->damaged)
            return err;
    }
    err = stream_zlib(coded, -15, limit, out, decoded_out);
    if (err == 0 && decoded_out->damaged && (out->len == 0 || looks_like_text(coded))) {
        wb_buf_clear(out);
        *decoded_out = (struct wb_payload_result){.changed = zlib, .damaged = zlib};
    }
    return err;
}

/* ---- brotli ---------------------------------------------------------------------------------------- */

static void *br_alloc(void *context, size_t size)
{
    (void)context;
    return wb_alloc(size);
}

static void br_free(void *context, void *ptr)
{
    (void)context;
    wb_free(ptr);
}

static enum unpack_outcome step_br(struct unpack_stream *st, char *to, size_t room, size_t *made_out)
{
    const uint8_t *next_in = (const uint8_t *)st->in.ptr;
    uint8_t *next_out = (uint8_t *)to;
    size_t in_left = st->in.len, out_left = room;
    BrotliDecoderResult result =
        BrotliDecoderDecompressStream(st->decoder, &in_left, &next_in, &out_left, &next_out, NULL);

    take_input(st, st->in.len - in_left);
    *made_out = room - out_left;
    if (result == BROTLI_DECODER_RESULT_SUCCESS)
        return OUTCOME_END;
    if (result != BROTLI_DECODER_RESULT_ERROR)
        return OUTCOME_MORE;
    BrotliDecoderErrorCode code = BrotliDecoderGetErrorCode(st->decoder);
    bool nomem =
        code <= BROTLI_DECODER_ERROR_ALLOC_CONTEXT_MODES && code >= BROTLI_DECODER_ERROR_ALLOC_BLOCK_TYPE_TREES;
    return nomem ? OUTCOME_NOMEM : OUTCOME_BAD;
}

int wb_unpack_br(struct wb_slice coded, size_t limit, struct wb_buf *out, struct wb_payload_result *decoded_out)
{
    *decoded_out = (struct wb_payload_result){.changed = coded.len > 0};
    if (coded.len == 0)
        return 0;
    BrotliDecoderState *decoder = BrotliDecoderCreateInstance(br_alloc, br_free, NULL);
    if (!decoder)
        return wb_fail_nomem();
    struct unpack_stream st = {decoder, coded, step_br};
    int err = run_stream(&st, limit, out, decoded_out);
    BrotliDecoderDestroyInstance(decoder);
    /* brotli has no magic number: data that fails at once, or is text, never was brotli. */
    if (err == 0 && decoded_out->damaged && (out->len == 0 || looks_like_text(coded))) {
        wb_buf_clear(out);
        *decoded_out = (struct wb_payload_result){.changed = false};
    }
    return err;
}

/* ---- zstd ------------------------------------------------------------------------------------------- */

static bool starts_zstd(struct wb_slice s)
{
    if (s.len < 4)
        return false;
    uint32_t magic = wb_get32(s.ptr);
    return magic == ZSTD_MAGICNUMBER || (magic & ZSTD_MAGIC_SKIPPABLE_MASK) == ZSTD_MAGIC_SKIPPABLE_START;
}

static enum unpack_outcome step_zstd(struct unpack_stream *st, char *to, size_t room, size_t *made_out)
{
    ZSTD_inBuffer in = {st->in.ptr, st->in.len, 0};
    ZSTD_outBuffer out = {to, room, 0};
    size_t result = ZSTD_decompressStream(st->decoder, &out, &in);

    take_input(st, in.pos);
    *made_out = out.pos;
    if (ZSTD_isError(result))
        return ZSTD_getErrorCode(result) == ZSTD_error_memory_allocation ? OUTCOME_NOMEM : OUTCOME_BAD;
    return result == 0 && !starts_zstd(st->in) ? OUTCOME_END : OUTCOME_MORE;
}

int wb_unpack_zstd(struct wb_slice coded, size_t limit, struct wb_buf *out, struct wb_payload_result *decoded_out)
{
    *decoded_out = (struct wb_payload_result){.changed = starts_zstd(coded)};
    if (!decoded_out->changed)
        return 0;
    ZSTD_DCtx *decoder = ZSTD_createDCtx();
    if (!decoder || ZSTD_isError(ZSTD_DCtx_setParameter(decoder, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX))) {
        ZSTD_freeDCtx(decoder);
        return wb_fail_nomem();
    }
    struct unpack_stream st = {decoder, coded, step_zstd};
    int err = run_stream(&st, limit, out, decoded_out);
    ZSTD_freeDCtx(decoder);
    return err;
}
