/*
 * unzstd.c - decodes the zstd frames of an archive, and loads the dictionary they may need.
 *
 *   .warc.zst = [dictionary frame] (frame | skippable frame)*
 *   dictionary frame: magic 0x184D2A5D, first in the file; its body is the
 *   dictionary itself, or one zstd frame that holds it.
 *
 * Other skippable frames are skipped. WINDOW_LOG_MAX bounds the memory that a frame may ask
 * for, DICTIONARY_MAX that of the dictionary. It never looks at the bytes it makes.
 */
#include "warc/source.h"

#include "base/bytes.h"
#include "base/error.h"
#include "base/mem.h"

#include <zstd.h>

#define WINDOW_LOG_MAX 26
#define DICTIONARY_MAX ((size_t)16 << 20)
#define DICTIONARY_MAGIC 0x184D2A5Du
#define ONESHOT_OUT ((size_t)8 << 20)

struct wb_unzstd {
    ZSTD_DCtx *context;
    ZSTD_DDict *dictionary;
};

static int make_unzstd(struct wb_source *s)
{
    if (s->unzstd)
        return 0;
    s->unzstd = wb_alloc_zero(1, sizeof *s->unzstd);
    if (!s->unzstd)
        return WB_E_NOMEM;
    s->unzstd->context = ZSTD_createDCtx();
    if (!s->unzstd->context ||
        ZSTD_isError(ZSTD_DCtx_setParameter(s->unzstd->context, ZSTD_d_windowLogMax, WINDOW_LOG_MAX)))
        return wb_fail_nomem();
    return 0;
}

void wb_unzstd_free(struct wb_unzstd *z)
{
    if (!z)
        return;
    ZSTD_freeDCtx(z->context);
    ZSTD_freeDDict(z->dictionary);
    wb_free(z);
}

bool wb_unzstd_has_dictionary(const struct wb_unzstd *z)
{
    return z && z->dictionary;
}

/* ---- skippable frames --------------------------------------------------------------- */

/* Loads the dictionary from a frame's body, which is either the dictionary itself or a zstd frame of it. */
static int take_dictionary(struct wb_source *s, struct wb_slice body)
{
    struct wb_buf plain = WB_BUF_INIT;
    int err = 0;

    if (body.len >= 4 && wb_get32(body.ptr) == ZSTD_MAGICNUMBER) {
        /* Do not trust the size that the frame claims: reserve what the bound allows. */
        err = wb_buf_reserve(&plain, DICTIONARY_MAX);
        if (err < 0)
            goto done;
        size_t made = ZSTD_decompressDCtx(s->unzstd->context, plain.ptr, plain.cap, body.ptr, body.len);
        if (ZSTD_isError(made)) {
            err = wb_source_damage(s, "the zstd dictionary is damaged or too large");
            goto done;
        }
        body = wb_slice(plain.ptr, made);
    }
    s->unzstd->dictionary = ZSTD_createDDict(body.ptr, body.len);
    if (!s->unzstd->dictionary)
        err = wb_source_damage(s, "the zstd dictionary cannot be used");
    else if (ZSTD_isError(ZSTD_DCtx_refDDict(s->unzstd->context, s->unzstd->dictionary)))
        err = wb_fail_nomem();
done:
    wb_buf_release(&plain);
    return err;
}

static int read_dictionary(struct wb_source *s, uint32_t size)
{
    if (size > DICTIONARY_MAX)
        return wb_source_damage(s, "the zstd dictionary is too large");
    int err = make_unzstd(s);
    if (err < 0)
        return err;
    err = wb_source_input(s, size);
    if (err < 0)
        return err;
    if (s->in_len - s->in_pos < size)
        return wb_source_damage(s, "the file ends in the middle of the dictionary");
    return take_dictionary(s, wb_slice(s->in + s->in_pos, size));
}

int wb_unzstd_skip(struct wb_source *s)
{
    for (;;) {
        int err = wb_source_input(s, 8);
        if (err < 0)
            return err;
        if (s->in_len - s->in_pos < 8)
            return 0;
        const char *at = s->in + s->in_pos;
        if ((wb_get32(at) & ZSTD_MAGIC_SKIPPABLE_MASK) != ZSTD_MAGIC_SKIPPABLE_START)
            return 0;
        uint32_t magic = wb_get32(at), size = wb_get32(at + 4);
        s->unit_offset = s->in_offset + s->in_pos;
        s->unit_at = s->out_len;
        if (s->size - s->unit_offset - 8 < size)
            return wb_source_damage(s, "the file ends in the middle of a skippable frame");
        s->in_pos += 8;
        if (magic == DICTIONARY_MAGIC && s->unit_offset == 0) {
            err = read_dictionary(s, size);
            if (err < 0)
                return err;
        }
        size_t have = s->in_len - s->in_pos;
        if (size <= have) {
            s->in_pos += size;
        } else {
            s->in_offset += s->in_pos + (uint64_t)size;
            s->in_pos = s->in_len = 0;
        }
    }
}

/* ---- frames ------------------------------------------------------------------------------ */

int wb_unzstd_start(struct wb_source *s)
{
    int err = make_unzstd(s);

    if (err < 0)
        return err;
    ZSTD_DCtx_reset(s->unzstd->context, ZSTD_reset_session_only);
    /* With room for the whole frame, libzstd decodes directly into it. */
    unsigned long long size = ZSTD_getFrameContentSize(s->in + s->in_pos, s->in_len - s->in_pos);
    if (size != ZSTD_CONTENTSIZE_UNKNOWN && size != ZSTD_CONTENTSIZE_ERROR && size <= ONESHOT_OUT)
        return wb_source_room(s, (size_t)size + 1);
    return 0;
}

int wb_unzstd_more(struct wb_source *s)
{
    int err = 0;

    if (s->out_cap - s->out_len < WB_SOURCE_STEP / 4)
        err = wb_source_room(s, WB_SOURCE_STEP);
    if (err < 0)
        return err;
    err = wb_source_input(s, 1);
    if (err < 0)
        return err;
    ZSTD_inBuffer in = {s->in, s->in_len, s->in_pos};
    ZSTD_outBuffer out = {s->out, s->out_cap, s->out_len};
    size_t before = s->out_len;
    bool starved = s->in_pos == s->in_len;
    size_t result = ZSTD_decompressStream(s->unzstd->context, &out, &in);
    s->in_pos = in.pos;
    s->out_len = out.pos;
    if (ZSTD_isError(result))
        return wb_source_damage(s, "damaged zstd frame");
    if (result == 0)
        s->unit_open = false;
    else if (starved && s->out_len == before) /* not earlier: libzstd may have held back some output */
        return wb_source_cut_off(s);
    return 0;
}

int wb_unzstd_trial(struct wb_source *s, char *bytes_out, size_t *len_out)
{
    *len_out = 0;
    int err = make_unzstd(s);
    if (err < 0)
        return err;
    err = wb_source_input(s, ZSTD_DStreamInSize() + 64);
    if (err < 0)
        return err;
    ZSTD_DCtx_reset(s->unzstd->context, ZSTD_reset_session_only);
    ZSTD_inBuffer in = {s->in + s->in_pos, s->in_len - s->in_pos, 0};
    ZSTD_outBuffer out = {bytes_out, WB_SOURCE_TRIAL, 0};
    if (in.size > ZSTD_DStreamInSize() + 64)
        in.size = ZSTD_DStreamInSize() + 64;
    /* The result does not matter: a frame that is damaged further on still delivers its first bytes. */
    (void)ZSTD_decompressStream(s->unzstd->context, &out, &in);
    *len_out = out.pos;
    s->work += in.pos;
    return 0;
}
