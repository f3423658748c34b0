/*
 * gunzip.c - decodes the gzip members of an archive.
 *
 * libdeflate inflates a member of ordinary size in one call, which is about three times as
 * fast as zlib. A member larger than ONESHOT_IN or ONESHOT_OUT (a giant record, or a file
 * that is one single member) is streamed through zlib. Both check CRC and length: a member
 * ends (unit_open becomes false) only if they are right. It never looks at the bytes it makes.
 */
#include "warc/source.h"

#include "base/error.h"
#include "base/mem.h"

#include <libdeflate.h>
#include <zlib.h>

#define ONESHOT_IN ((size_t)4 << 20)
#define ONESHOT_OUT ((size_t)8 << 20)
#define FIRST_OUT ((size_t)512 << 10)
#define TRIAL_IN ((size_t)4 << 10)

struct wb_gunzip {
    struct libdeflate_decompressor *whole;
    z_stream z;
    bool z_ready;
};

static int make_gunzip(struct wb_source *s)
{
    if (s->gunzip)
        return 0;
    s->gunzip = wb_alloc_zero(1, sizeof *s->gunzip);
    if (!s->gunzip)
        return WB_E_NOMEM;
    s->gunzip->whole = libdeflate_alloc_decompressor();
    return s->gunzip->whole ? 0 : wb_fail_nomem();
}

void wb_gunzip_free(struct wb_gunzip *g)
{
    if (!g)
        return;
    if (g->whole)
        libdeflate_free_decompressor(g->whole);
    if (g->z_ready)
        inflateEnd(&g->z);
    wb_free(g);
}

static int start_stream(struct wb_source *s)
{
    struct wb_gunzip *g = s->gunzip;

    if (g->z_ready)
        return inflateReset(&g->z) == Z_OK ? 0 : wb_fail_nomem();
    g->z = (z_stream){.zalloc = wb_alloc_hook, .zfree = wb_free_hook};
    if (inflateInit2(&g->z, 15 + 16) != Z_OK)
        return wb_fail_nomem();
    g->z_ready = true;
    return 0;
}

/* Returns 1 if the whole member is now in `out`, 0 if it must be streamed. */
static int inflate_whole(struct wb_source *s)
{
    int err = wb_source_room(s, FIRST_OUT);

    if (err < 0)
        return err;
    for (;;) {
        size_t room = s->out_cap - s->out_len, have = s->in_len - s->in_pos;
        size_t used = 0, made = 0;
        enum libdeflate_result result = libdeflate_gzip_decompress_ex(s->gunzip->whole, s->in + s->in_pos, have,
                                                                      s->out + s->out_len, room, &used, &made);
        if (result == LIBDEFLATE_SUCCESS) {
            s->in_pos += used;
            s->out_len += made;
            s->unit_open = false;
            return 1;
        }
        /* libdeflate reports missing input as bad data, so try again with more before believing it. */
        if (result == LIBDEFLATE_INSUFFICIENT_SPACE && room < ONESHOT_OUT)
            err = wb_source_room(s, room * 2);
        else if (result == LIBDEFLATE_BAD_DATA && !wb_source_input_ends(s) && have < ONESHOT_IN)
            err = wb_source_input(s, have * 4 < ONESHOT_IN ? have * 4 : ONESHOT_IN);
        else
            return 0; /* also if it is damaged: streaming delivers the records before the damage */
        if (err < 0)
            return err;
    }
}

int wb_gunzip_start(struct wb_source *s)
{
    int err = make_gunzip(s);

    if (err < 0)
        return err;
    err = inflate_whole(s);
    if (err != 0)
        return err < 0 ? err : 0;
    return start_stream(s);
}

int wb_gunzip_stream(struct wb_source *s)
{
    int err = make_gunzip(s);

    return err < 0 ? err : start_stream(s);
}

int wb_gunzip_more(struct wb_source *s)
{
    z_stream *z = &s->gunzip->z;
    WB_CHECK(s->unit_open && s->gunzip->z_ready);
    int err = wb_source_room(s, WB_SOURCE_STEP);

    if (err < 0)
        return err;
    err = wb_source_input(s, 1);
    if (err < 0)
        return err;
    size_t have = s->in_len - s->in_pos;
    size_t room = s->out_cap - s->out_len;
    unsigned give = have > UINT32_MAX ? UINT32_MAX : (unsigned)have;
    unsigned take = room > UINT32_MAX ? UINT32_MAX : (unsigned)room;
    z->next_in = (unsigned char *)s->in + s->in_pos;
    z->avail_in = give;
    z->next_out = (unsigned char *)s->out + s->out_len;
    z->avail_out = take;
    int result = inflate(z, Z_NO_FLUSH);
    s->in_pos += give - z->avail_in;
    size_t made = take - z->avail_out;
    s->out_len += made;
    if (result == Z_STREAM_END)
        s->unit_open = false;
    else if (result == Z_MEM_ERROR)
        return wb_fail_nomem();
    else if (made == 0 && have == 0) /* not earlier: zlib may have held back some output */
        return wb_source_cut_off(s);
    else if (result != Z_OK && made == 0) /* deliver what precedes the damage first; zlib will fail again */
        return wb_source_damage(s, "damaged gzip member");
    return 0;
}

int wb_gunzip_trial(struct wb_source *s, char *bytes_out, size_t *len_out)
{
    *len_out = 0;
    int err = make_gunzip(s);
    if (err < 0)
        return err;
    err = start_stream(s);
    if (err < 0)
        return err;
    err = wb_source_input(s, TRIAL_IN);
    if (err < 0)
        return err;
    z_stream *z = &s->gunzip->z;
    size_t have = s->in_len - s->in_pos;
    z->next_in = (unsigned char *)s->in + s->in_pos;
    z->avail_in = (unsigned)(have < TRIAL_IN ? have : TRIAL_IN);
    z->next_out = (unsigned char *)bytes_out;
    z->avail_out = WB_SOURCE_TRIAL;
    if (inflate(z, Z_SYNC_FLUSH) == Z_MEM_ERROR)
        return wb_fail_nomem();
    *len_out = WB_SOURCE_TRIAL - z->avail_out;
    s->work += (uint64_t)(z->next_in - (unsigned char *)s->in) - s->in_pos;
    return 0;
}
