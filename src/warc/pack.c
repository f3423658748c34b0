/*
 * pack.c - compresses records and passes them to the sink.
 *
 * gzip: libdeflate compresses a record of ordinary size in one call; larger ones are
 * streamed through zlib, so that a page of 64 MB needs no second copy of itself. zstd: one
 * frame with content size and checksum, as the IIPC proposal requires. It knows nothing of
 * what a record contains.
 */
#include "warc/pack.h"

#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

#include <libdeflate.h>
#include <zlib.h>
#include <zstd.h>

#define GZIP_LEVEL 6
#define ZSTD_LEVEL 3
#define ONESHOT_MAX ((size_t)4 << 20)
#define STEP ((size_t)128 << 10)

struct wb_pack {
    enum wb_warc_coding coding;
    wb_warc_sink sink;
    void *context;
    struct wb_buf plain, packed;
    struct libdeflate_compressor *whole;
    ZSTD_CCtx *zstd;
};

int wb_pack_new(enum wb_warc_coding coding, wb_warc_sink sink, void *context, struct wb_pack **pack_out)
{
    *pack_out = NULL;
    struct wb_pack *p = wb_alloc_zero(1, sizeof *p);
    if (!p)
        return WB_E_NOMEM;
    *p = (struct wb_pack){.coding = coding, .sink = sink, .context = context};
    bool good = true;
    if (coding == WB_WARC_GZIP) {
        p->whole = libdeflate_alloc_compressor(GZIP_LEVEL);
        good = p->whole != NULL;
    } else if (coding == WB_WARC_ZSTD) {
        p->zstd = ZSTD_createCCtx();
        good = p->zstd && !ZSTD_isError(ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL)) &&
               !ZSTD_isError(ZSTD_CCtx_setParameter(p->zstd, ZSTD_c_checksumFlag, 1));
    }
    if (!good) {
        wb_pack_free(p);
        return wb_fail_nomem();
    }
    *pack_out = p;
    return 0;
}

void wb_pack_free(struct wb_pack *pack)
{
    if (!pack)
        return;
    if (pack->whole)
        libdeflate_free_compressor(pack->whole);
    ZSTD_freeCCtx(pack->zstd);
    wb_buf_release(&pack->plain);
    wb_buf_release(&pack->packed);
    wb_free(pack);
}

static int flush_packed(struct wb_pack *p)
{
    int err = p->packed.len ? p->sink(p->context, p->packed.ptr, p->packed.len) : 0;

    wb_buf_clear(&p->packed);
    return err;
}

/* ---- gzip -------------------------------------------------------------------------------- */

static int gzip_whole(struct wb_pack *p, const struct wb_slice *parts, size_t count)
{
    int err = 0;

    wb_buf_clear(&p->plain);
    for (size_t i = 0; i < count && err == 0; i++)
        err = wb_buf_append_slice(&p->plain, parts[i]);
    if (err < 0)
        return err;
    err = wb_buf_reserve(&p->packed, libdeflate_gzip_compress_bound(p->whole, p->plain.len));
    if (err < 0)
        return err;
    p->packed.len = libdeflate_gzip_compress(p->whole, p->plain.ptr, p->plain.len, p->packed.ptr, p->packed.cap);
    if (p->packed.len == 0)
        return wb_fail(WB_E_LIMIT, "a record of %zu bytes cannot be compressed", p->plain.len);
    return flush_packed(p);
}

/* Compresses one part; with flush == Z_FINISH, ends the member. */
static int gzip_part(struct wb_pack *p, z_stream *z, struct wb_slice part, int flush)
{
    int result = Z_OK;

    do {
        unsigned give = part.len > UINT32_MAX ? UINT32_MAX : (unsigned)part.len;
        z->next_in = (unsigned char *)(uintptr_t)part.ptr;
        z->avail_in = give;
        z->next_out = (unsigned char *)p->packed.ptr;
        z->avail_out = (unsigned)STEP;
        result = deflate(z, flush);
        part = wb_slice(part.ptr + (give - z->avail_in), part.len - (give - z->avail_in));
        p->packed.len = STEP - z->avail_out;
        int err = flush_packed(p);
        if (err < 0)
            return err;
        if (result == Z_STREAM_ERROR)
            return wb_fail(WB_E_LIMIT, "a record cannot be compressed");
    } while (flush == Z_FINISH ? result != Z_STREAM_END : part.len > 0 || z->avail_out == 0);
    return 0;
}

static int gzip_stream(struct wb_pack *p, const struct wb_slice *parts, size_t count)
{
    z_stream z = {.zalloc = wb_alloc_hook, .zfree = wb_free_hook};
    int err = wb_buf_reserve(&p->packed, STEP);

    if (err < 0)
        return err;
    if (deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY) != Z_OK)
        return wb_fail_nomem();
    for (size_t i = 0; i < count && err == 0; i++)
        err = gzip_part(p, &z, parts[i], Z_NO_FLUSH);
    if (err == 0)
        err = gzip_part(p, &z, WB_SLICE_EMPTY, Z_FINISH);
    deflateEnd(&z);
    return err;
}

/* ---- zstd ---------------------------------------------------------------------------------- */

static int zstd_part(struct wb_pack *p, struct wb_slice part, ZSTD_EndDirective end)
{
    ZSTD_inBuffer in = {part.ptr, part.len, 0};
    size_t left = 1;

    while (end == ZSTD_e_end ? left > 0 : in.pos < in.size) {
        ZSTD_outBuffer out = {p->packed.ptr, p->packed.cap, p->packed.len};
        left = ZSTD_compressStream2(p->zstd, &out, &in, end);
        if (ZSTD_isError(left))
            return wb_fail_nomem();
        p->packed.len = out.pos;
        int err = out.pos == out.size ? flush_packed(p) : 0;
        if (err < 0)
            return err;
    }
    return 0;
}

static int zstd_frame(struct wb_pack *p, const struct wb_slice *parts, size_t count, size_t total)
{
    int err = wb_buf_reserve(&p->packed, STEP);

    ZSTD_CCtx_reset(p->zstd, ZSTD_reset_session_only);
    if (err == 0 && ZSTD_isError(ZSTD_CCtx_setPledgedSrcSize(p->zstd, total)))
        err = wb_fail_nomem();
    for (size_t i = 0; i < count && err == 0; i++)
        err = zstd_part(p, parts[i], i + 1 < count ? ZSTD_e_continue : ZSTD_e_end);
    return err < 0 ? err : flush_packed(p);
}

int wb_pack_write(struct wb_pack *pack, const struct wb_slice *parts, size_t count)
{
    size_t total = 0;
    int err = 0;

    WB_CHECK(count > 0); /* the last part ends the frame */
    wb_buf_clear(&pack->packed);
    for (size_t i = 0; i < count; i++)
        total += parts[i].len;
    if (pack->coding == WB_WARC_GZIP)
        return total <= ONESHOT_MAX ? gzip_whole(pack, parts, count) : gzip_stream(pack, parts, count);
    if (pack->coding == WB_WARC_ZSTD)
        return zstd_frame(pack, parts, count, total);
    for (size_t i = 0; i < count && err == 0; i++)
        if (parts[i].len > 0)
            err = pack->sink(pack->context, parts[i].ptr, parts[i].len);
    return err;
}
