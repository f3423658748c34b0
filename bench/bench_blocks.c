/*
 * bench_blocks.c - measures the curve from which the store's block size was chosen.
 *
 * Packs the corpus in memory in different ways and measures each on one core:
 *
 *   whole   blocks of neighbouring pages, compressed as one zstd frame
 *   lead    blocks whose first pages (the lead) are one frame; the others are in
 *           frames of one page or of several small pages, each with the lead as its
 *           dictionary
 *
 * It measures the ratio, bytes in per CPU second, bytes out per CPU second, and the
 * time to get one random page when nothing is decoded yet. It also compares what comes
 * out with what went in. It never uses the store, which has the chosen sizes as constants.
 */
#include "bench.h"

#include "base/error.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

struct shape {
    int level;
    size_t block;  /* a block is closed when it holds this many bytes, or when the site changes */
    size_t lead;   /* the same for the lead; 0: the whole block is one frame */
    size_t frame;  /* the same for a frame after the lead; 1: one page per frame */
};

/* A frame: pages [first, last), and where they are packed. lead is the frame that must be decoded first, or itself. */
struct frame {
    size_t first, last, lead, at, bytes;
};

struct packing {
    char *raw;        /* head and body of every page, one after the other */
    size_t *offset;   /* count + 1 */
    uint32_t *site;
    size_t count;
    char *packed;
    size_t packed_bytes, packed_cap;
    struct frame *frames;
    size_t frame_count;
    size_t *frame_of; /* the frame of each page */
    char *out;
    size_t out_cap;
    ZSTD_CCtx *lead_packer, *frame_packer;
    ZSTD_DCtx *unpacker;
};

static size_t frame_raw(const struct packing *p, const struct frame *f)
{
    return p->offset[f->last] - p->offset[f->first];
}

static int pack_frame(struct packing *p, ZSTD_CCtx *packer, size_t first, size_t last, size_t lead)
{
    struct frame *f = &p->frames[p->frame_count];
    size_t got;

    *f = (struct frame){first, last, lead, p->packed_bytes, 0};
    got = ZSTD_compress2(packer, p->packed + f->at, p->packed_cap - f->at, p->raw + p->offset[first], frame_raw(p, f));
    if (ZSTD_isError(got))
        return wb_fail(WB_E_LIMIT, "zstd: %s", ZSTD_getErrorName(got));
    f->bytes = got;
    p->packed_bytes += got;
    for (size_t i = first; i < last; i++)
        p->frame_of[i] = p->frame_count;
    p->frame_count++;
    return 0;
}

/* Returns the end of the shortest run of pages from `first`, at most to `limit`, that holds at least `bytes`. */
static size_t run_end(const struct packing *p, size_t first, size_t limit, size_t bytes)
{
    size_t end = first + 1;

    while (end < limit && p->site[end] == p->site[first] && p->offset[end] - p->offset[first] < bytes)
        end++;
    return end;
}

static int pack_block(struct packing *p, const struct shape *shape, size_t first, size_t last)
{
    size_t lead_end = shape->lead ? run_end(p, first, last, shape->lead) : last;
    size_t lead = p->frame_count;
    int err = pack_frame(p, p->lead_packer, first, lead_end, lead);

    if (err < 0 || lead_end == last)
        return err;
    ZSTD_CCtx_loadDictionary(p->frame_packer, p->raw + p->offset[first], p->offset[lead_end] - p->offset[first]);
    for (size_t i = lead_end; i < last && err == 0;) {
        size_t end = run_end(p, i, last, shape->frame);

        err = pack_frame(p, p->frame_packer, i, end, lead);
        i = end;
    }
    return err;
}

/*
 * Makes zstd's tables no larger than the lead needs, and makes zstd search them in place
 * instead of copying them for every frame (ZSTD_c_experimentalParam4 = 1 is ZSTD_dictForceAttach).
 */
static void set_levels(struct packing *p, const struct shape *shape)
{
    ZSTD_CCtx_reset(p->lead_packer, ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_reset(p->frame_packer, ZSTD_reset_session_and_parameters);
    ZSTD_CCtx_setParameter(p->lead_packer, ZSTD_c_compressionLevel, shape->level);
    ZSTD_CCtx_setParameter(p->frame_packer, ZSTD_c_compressionLevel, shape->level);
    ZSTD_CCtx_setParameter(p->frame_packer, ZSTD_c_experimentalParam4, 1);
    if (shape->level == 3) {
        ZSTD_CCtx_setParameter(p->frame_packer, ZSTD_c_strategy, ZSTD_dfast);
        ZSTD_CCtx_setParameter(p->frame_packer, ZSTD_c_chainLog, 14);
        ZSTD_CCtx_setParameter(p->frame_packer, ZSTD_c_hashLog, 15);
    }
}

static int pack_all(struct packing *p, const struct shape *shape)
{
    int err = 0;

    p->packed_bytes = p->frame_count = 0;
    set_levels(p, shape);
    for (size_t i = 0; i < p->count && err == 0;) {
        size_t end = run_end(p, i, p->count, shape->block);

        err = pack_block(p, shape, i, end);
        i = end;
    }
    return err;
}

/* Decodes frame n into out, after its lead, which is already decoded at the start of out. Returns where it starts. */
static int unpack_frame(struct packing *p, size_t n, char **raw_out)
{
    const struct frame *f = &p->frames[n];
    size_t lead_raw = f->lead == n ? 0 : frame_raw(p, &p->frames[f->lead]), got;

    *raw_out = p->out + lead_raw;
    if (lead_raw > 0)
        ZSTD_DCtx_refPrefix(p->unpacker, p->out, lead_raw);
    got = ZSTD_decompressDCtx(p->unpacker, *raw_out, p->out_cap - lead_raw, p->packed + f->at, f->bytes);
    return got == frame_raw(p, f) ? 0 : wb_fail(WB_E_CORRUPT, "a frame does not unpack");
}

static int unpack_all(struct packing *p, bool compare)
{
    char *raw;
    int err = 0;

    for (size_t n = 0; n < p->frame_count && err == 0; n++) {
        err = unpack_frame(p, n, &raw);
        if (err == 0 && compare &&
            memcmp(raw, p->raw + p->offset[p->frames[n].first], frame_raw(p, &p->frames[n])) != 0)
            err = wb_fail(WB_E_CORRUPT, "a frame unpacks to other bytes");
    }
    return err;
}

static int get_random(struct packing *p, size_t gets)
{
    uint64_t seed = 42;
    char *raw;
    int err = 0;

    for (size_t i = 0; i < gets && err == 0; i++) {
        size_t n = p->frame_of[bench_random(&seed) % p->count];

        if (p->frames[n].lead != n)
            err = unpack_frame(p, p->frames[n].lead, &raw);
        if (err == 0)
            err = unpack_frame(p, n, &raw);
    }
    return err;
}

static int measure(struct packing *p, const struct shape *shape)
{
    size_t gets = 10000;
    double total = (double)p->offset[p->count], start = bench_cpu_seconds(), pack, unpack, get;
    int err = pack_all(p, shape);

    pack = bench_cpu_seconds() - start;
    if (err == 0)
        err = unpack_all(p, true);
    start = bench_cpu_seconds();
    if (err == 0)
        err = unpack_all(p, false);
    unpack = bench_cpu_seconds() - start;
    start = bench_cpu_seconds();
    if (err == 0)
        err = get_random(p, gets);
    get = bench_cpu_seconds() - start;
    if (err < 0)
        return err;
    printf("{\"bench\":\"blocks\",\"kind\":\"%s\",\"level\":%d,\"block_kb\":%zu,\"lead_kb\":%zu,\"frame_kb\":%zu,"
           "\"ratio\":%.3f,\"pack_mb_s\":%.0f,\"unpack_mb_s\":%.0f,\"get_us\":%.1f}\n",
           shape->lead ? "lead" : "whole", shape->level, shape->block >> 10, shape->lead >> 10, shape->frame >> 10,
           total / (double)p->packed_bytes, total / pack / 1e6, total / unpack / 1e6, get * 1e6 / (double)gets);
    fflush(stdout);
    return 0;
}

static int measure_all(struct packing *p)
{
    static const int levels[] = {3, 1, 6};
    static const size_t whole[] = {0, 32, 64, 128, 256, 512, 1024};
    static const size_t blocks[] = {64, 128, 256, 512, 1024, 2048}, leads[] = {16, 32, 64}, frames[] = {0, 16, 32};
    int err = 0;

    for (size_t l = 0; l < 3; l++) {
        for (size_t i = 0; i < sizeof(whole) / sizeof(*whole) && err == 0; i++)
            err = measure(p, &(struct shape){levels[l], whole[i] ? whole[i] << 10 : 1, 0, 0});
        for (size_t i = 0; i < 6 * 3 * 3 && err == 0; i++) {
            struct shape shape = {levels[l], blocks[i / 9] << 10, leads[i / 3 % 3] << 10,
                                  frames[i % 3] ? frames[i % 3] << 10 : 1};

            /* Only level 3 gets the full grid. A lead that fills the block is the same as a whole block. */
            if (shape.lead * 2 > shape.block || (levels[l] != 3 && (shape.block != 1 << 20 || shape.lead == 64 << 10)))
                continue;
            err = measure(p, &shape);
        }
    }
    return err;
}

static int take_pages(const struct corpus *corpus, struct packing *p)
{
    size_t at = 0;
    struct wb_slice site = WB_SLICE_EMPTY;
    uint32_t number = 0;

    p->count = corpus->count;
    p->raw = wb_alloc(corpus->bytes);
    p->offset = wb_alloc_zero(p->count + 1, sizeof(*p->offset));
    p->site = wb_alloc_zero(p->count, sizeof(*p->site));
    p->frames = wb_alloc_zero(p->count, sizeof(*p->frames));
    p->frame_of = wb_alloc_zero(p->count, sizeof(*p->frame_of));
    p->out = wb_alloc_zero(1, p->out_cap = (size_t)128 << 20);
    p->packed_cap = corpus->bytes / 2;
    p->packed = wb_alloc(p->packed_cap);
    p->lead_packer = ZSTD_createCCtx();
    p->frame_packer = ZSTD_createCCtx();
    p->unpacker = ZSTD_createDCtx();
    if (!p->raw || !p->offset || !p->site || !p->frames || !p->frame_of || !p->out || !p->packed || !p->lead_packer ||
        !p->frame_packer || !p->unpacker)
        return wb_fail_nomem();
    memset(p->packed, 1, p->packed_cap); /* so that the kernel allocates its pages before the first measurement */
    for (size_t i = 0; i < p->count; i++) {
        const struct wb_page *page = &corpus->pages[i];

        number += i > 0 && !wb_slice_equal(site, wb_key_site(page->key));
        site = wb_key_site(page->key);
        p->site[i] = number;
        p->offset[i] = at;
        memcpy(p->raw + at, page->head.ptr, page->head.len);
        memcpy(p->raw + at + page->head.len, page->body.ptr, page->body.len);
        at += page->head.len + page->body.len;
    }
    p->offset[p->count] = at;
    return 0;
}

int main(int argc, char **argv)
{
    struct corpus corpus = CORPUS_INIT;
    struct packing p = {.count = 0};
    int err;

    if (argc != 2 && argc != 6) {
        fprintf(stderr, "usage: bench_blocks CORPUS-DIR [LEVEL BLOCK-KB LEAD-KB FRAME-KB]\n");
        return 2;
    }
    err = corpus_load(argv[1], &corpus);
    if (err == 0)
        err = take_pages(&corpus, &p);
    if (err == 0 && argc == 6)
        err = measure(&p, &(struct shape){atoi(argv[2]), strtoul(argv[3], NULL, 10) << 10,
                                          strtoul(argv[4], NULL, 10) << 10, (strtoul(argv[5], NULL, 10) << 10) + 1});
    else if (err == 0)
        err = measure_all(&p);
    if (err < 0)
        fprintf(stderr, "bench_blocks: %s\n", wb_error_message());
    ZSTD_freeCCtx(p.lead_packer);
    ZSTD_freeCCtx(p.frame_packer);
    ZSTD_freeDCtx(p.unpacker);
    wb_free(p.raw);
    wb_free(p.offset);
    wb_free(p.site);
    wb_free(p.frames);
    wb_free(p.frame_of);
    wb_free(p.out);
    wb_free(p.packed);
    corpus_release(&corpus);
    return err < 0 ? 1 : 0;
}
