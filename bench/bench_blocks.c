/*
 * bench_blocks.c - measures the curve from which the store's block, lead and frame sizes were chosen.
 *
 * Packs the corpus in memory in different ways and measures each on one core:
 *
 *   whole   blocks of neighbouring pages, compressed as one zstd frame
 *   lead    blocks in which a run of pages from the middle (the lead) is one frame; the others are
 *           in frames of one page or of several small pages, each with the lead as its dictionary
 *
 * and with the heads of the records (everything before the body) in different places:
 *
 *   mixed   in front of their bodies
 *   first   in front of all bodies of their frame, so that they can be decompressed alone
 *   apart   in frames of their own, of at most 32 KB, without dictionary
 *
 * It measures the ratio, bytes in per CPU second, bytes out per CPU second, and the time to
 * get one random page when nothing is decoded yet. It also compares what comes out with what
 * went in. It never uses the store, which has the chosen sizes as constants.
 */
#include "bench.h"

#include "base/error.h"
#include "base/mem.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

enum heads { HEADS_MIXED, HEADS_FIRST, HEADS_APART };
static const char *const heads_name[] = {"mixed", "first", "apart"};

enum { HEADS_FRAME = 32 << 10, LEAD_PAGE_MAX = 256 << 10, RECORD_EXTRA = 4096, IN_BYTES = 64 << 20 };

struct shape {
    int level;
    size_t block; /* a block is closed when it holds this many bytes, or when the site changes */
    size_t lead;  /* the same for the lead; 0: the whole block is one frame */
    size_t frame; /* the same for a frame after the lead; 1: one page per frame */
    enum heads heads;
};

/* A frame: pages [first, last), and where they are packed. lead is the frame that must be decoded first, or itself. */
struct frame {
    size_t first, last, lead, at, bytes, raw;
    bool heads, bodies; /* which of them it has */
};

struct packing {
    char *raw;      /* the records of all pages without their digests, one after the other */
    size_t *offset; /* count + 1 */
    size_t *body;   /* where the body of each starts */
    uint32_t *site;
    size_t count;
    char *packed;
    size_t packed_bytes, packed_cap;
    struct frame *frames;
    size_t frame_count;
    size_t *frame_of; /* the frame of each page, with its body */
    size_t *heads_of; /* the frame with its head */
    char *in, *out, *apart;
    size_t out_cap;
    ZSTD_CCtx *lead_packer, *frame_packer;
    ZSTD_DCtx *unpacker;
};

static size_t page_bytes(const struct packing *p, size_t i)
{
    return p->offset[i + 1] - p->offset[i];
}

/* Puts what a frame contains at `to`. Returns how much of it are heads, if those come first. */
static size_t gather(const struct packing *p, struct frame *f, enum heads heads, char *to)
{
    size_t n = 0, divide = 0;

    if (heads != HEADS_MIXED && f->heads) {
        for (size_t i = f->first; i < f->last; i++) {
            memcpy(to + n, p->raw + p->offset[i], p->body[i] - p->offset[i]);
            n += p->body[i] - p->offset[i];
        }
        divide = f->bodies ? n : 0;
    }
    for (size_t i = f->first; i < f->last && f->bodies; i++) {
        size_t from = heads == HEADS_MIXED ? p->offset[i] : p->body[i];
        memcpy(to + n, p->raw + from, p->offset[i + 1] - from);
        n += p->offset[i + 1] - from;
    }
    f->raw = n;
    return divide;
}

static int pack_frame(struct packing *p, ZSTD_CCtx *packer, struct frame f, enum heads heads)
{
    size_t divide = gather(p, &f, heads, p->in);

    f.at = p->packed_bytes;
    ZSTD_outBuffer to = {p->packed + f.at, p->packed_cap - f.at, 0};
    ZSTD_inBuffer from = {p->in, divide, 0};
    ZSTD_CCtx_setPledgedSrcSize(packer, f.raw);
    if (divide && ZSTD_compressStream2(packer, &to, &from, ZSTD_e_flush) != 0)
        return wb_fail(WB_E_LIMIT, "zstd needs more room");
    from.size = f.raw;
    if (ZSTD_compressStream2(packer, &to, &from, ZSTD_e_end) != 0)
        return wb_fail(WB_E_LIMIT, "zstd needs more room");
    f.bytes = to.pos;
    p->packed_bytes += to.pos;
    for (size_t i = f.first; i < f.last; i++)
        *(f.bodies ? &p->frame_of[i] : &p->heads_of[i]) = p->frame_count;
    p->frames[p->frame_count++] = f;
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

static int pack_heads(struct packing *p, size_t first, size_t last)
{
    int err = 0;

    while (first < last && err == 0) {
        size_t end = first, bytes = 0;
        while (end < last && bytes < HEADS_FRAME) {
            bytes += p->body[end] - p->offset[end];
            end++;
        }
        err =
            pack_frame(p, p->lead_packer,
                       (struct frame){.first = first, .last = end, .lead = p->frame_count, .heads = true}, HEADS_APART);
        first = end;
    }
    return err;
}

/* Finds the lead in the middle of a block, as the store does. */
static void choose_lead(const struct packing *p, size_t bytes, size_t first, size_t last, size_t *from, size_t *to)
{
    size_t middle = first, best = 0;

    *from = *to = first;
    while (p->offset[middle] - p->offset[first] + bytes / 2 < (p->offset[last] - p->offset[first]) / 2)
        middle++;
    for (int half = 0; half < 2 && best < bytes; half++) {
        size_t run = half ? first : middle, end = half ? middle : last;
        for (size_t i = run; i < end && p->offset[i] - p->offset[run] < bytes; i++) {
            if (page_bytes(p, i) > LEAD_PAGE_MAX) {
                run = i + 1;
            } else if (p->offset[i + 1] - p->offset[run] > best) {
                best = p->offset[i + 1] - p->offset[run];
                *from = run;
                *to = i + 1;
            }
        }
    }
}

static int pack_block(struct packing *p, const struct shape *shape, size_t first, size_t last)
{
    struct frame f = {.first = first, .last = last, .heads = shape->heads != HEADS_APART, .bodies = true};
    size_t lead_from = first, lead_to = last;
    int err = shape->heads == HEADS_APART ? pack_heads(p, first, last) : 0;

    if (shape->lead && last - first > 1)
        choose_lead(p, shape->lead, first, last, &lead_from, &lead_to);
    f.lead = p->frame_count;
    if (err == 0 && lead_to > lead_from) {
        f.first = lead_from;
        f.last = lead_to;
        err = pack_frame(p, p->lead_packer, f, shape->heads);
        ZSTD_CCtx_loadDictionary(p->frame_packer, p->in, p->frames[f.lead].raw);
    }
    for (size_t i = first; i < last && err == 0; i = f.last) {
        f.last = lead_to;
        if (i >= lead_from && i < lead_to)
            continue;
        f.first = i;
        f.last = run_end(p, i, i < lead_from ? lead_from : last, shape->frame);
        if (lead_to == lead_from)
            f.lead = p->frame_count;
        err = pack_frame(p, lead_to > lead_from ? p->frame_packer : p->lead_packer, f, shape->heads);
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
    size_t lead_raw = f->lead == n ? 0 : p->frames[f->lead].raw, got;

    *raw_out = f->bodies ? p->out + lead_raw : p->apart;
    got = ZSTD_decompress_usingDict(p->unpacker, *raw_out, p->out_cap - lead_raw, p->packed + f->at, f->bytes, p->out,
                                    lead_raw);
    return got == f->raw ? 0 : wb_fail(WB_E_CORRUPT, "a frame does not unpack");
}

static int unpack_all(struct packing *p, bool compare, enum heads heads)
{
    char *raw;
    int err = 0;

    for (size_t n = 0; n < p->frame_count && err == 0; n++) {
        err = unpack_frame(p, n, &raw);
        if (err < 0 || !compare)
            continue;
        gather(p, &p->frames[n], heads, p->in);
        if (memcmp(raw, p->in, p->frames[n].raw) != 0)
            err = wb_fail(WB_E_CORRUPT, "a frame unpacks to other bytes");
    }
    return err;
}

static int get_random(struct packing *p, size_t gets, enum heads heads)
{
    uint64_t seed = 42;
    char *raw;
    int err = 0;

    for (size_t i = 0; i < gets && err == 0; i++) {
        size_t page = bench_random(&seed) % p->count, n = p->frame_of[page];

        if (heads == HEADS_APART)
            err = unpack_frame(p, p->heads_of[page], &raw);
        if (err == 0 && p->frames[n].lead != n)
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
        err = unpack_all(p, true, shape->heads);
    start = bench_cpu_seconds();
    if (err == 0)
        err = unpack_all(p, false, shape->heads);
    unpack = bench_cpu_seconds() - start;
    start = bench_cpu_seconds();
    if (err == 0)
        err = get_random(p, gets, shape->heads);
    get = bench_cpu_seconds() - start;
    if (err < 0)
        return err;
    printf("{\"bench\":\"blocks\",\"kind\":\"%s\",\"level\":%d,\"block_kb\":%zu,\"lead_kb\":%zu,\"frame_kb\":%zu,"
           "\"heads\":\"%s\",\"ratio\":%.3f,\"pack_mb_s\":%.0f,\"unpack_mb_s\":%.0f,\"get_us\":%.1f}\n",
           shape->lead ? "lead" : "whole", shape->level, shape->block >> 10, shape->lead >> 10, shape->frame >> 10,
           heads_name[shape->heads], total / (double)p->packed_bytes, total / pack / 1e6, total / unpack / 1e6,
           get * 1e6 / (double)gets);
    fflush(stdout);
    return 0;
}

static int measure_all(struct packing *p)
{
    static const size_t whole[] = {0, 32, 64, 128, 256, 512, 1024};
    static const size_t blocks[] = {512, 1024, 2048}, leads[] = {16, 32, 64}, frames[] = {0, 16, 32, 64};
    static const int levels[] = {1, 6};
    int err = 0;

    for (size_t i = 0; i < sizeof(whole) / sizeof(*whole) && err == 0; i++)
        err = measure(p, &(struct shape){3, whole[i] ? whole[i] << 10 : 1, 0, 0, HEADS_MIXED});
    for (size_t i = 0; i < 3 * 3 * 4 && err == 0; i++)
        err = measure(p, &(struct shape){3, blocks[i / 12] << 10, leads[i / 4 % 3] << 10,
                                         frames[i % 4] ? frames[i % 4] << 10 : 1, HEADS_FIRST});
    for (size_t i = 0; i < 3 && err == 0; i++) /* where the heads are, at the sizes that the store has */
        err = measure(p, &(struct shape){3, 1 << 20, 32 << 10, 32 << 10, (enum heads)i});
    for (size_t i = 0; i < 2 && err == 0; i++)
        err = measure(p, &(struct shape){levels[i], 1 << 20, 32 << 10, 32 << 10, HEADS_FIRST});
    return err;
}

static int take_pages(const struct corpus *corpus, struct packing *p)
{
    size_t at = 0;
    struct wb_slice site = WB_SLICE_EMPTY;
    uint32_t number = 0;
    struct wb_buf record = WB_BUF_INIT;

    p->count = corpus->count;
    p->raw = wb_alloc(corpus->bytes + p->count * RECORD_EXTRA);
    p->offset = wb_alloc_zero(p->count + 1, sizeof(*p->offset));
    p->body = wb_alloc_zero(p->count + 1, sizeof(*p->body));
    p->site = wb_alloc_zero(p->count, sizeof(*p->site));
    p->frames = wb_alloc_zero(2 * p->count, sizeof(*p->frames));
    p->heads_of = wb_alloc_zero(p->count, sizeof(*p->heads_of));
    p->in = wb_alloc(IN_BYTES);
    p->apart = wb_alloc(IN_BYTES);
    p->frame_of = wb_alloc_zero(p->count, sizeof(*p->frame_of));
    p->out = wb_alloc_zero(1, p->out_cap = (size_t)128 << 20);
    p->packed_cap = corpus->bytes / 2;
    p->packed = wb_alloc(p->packed_cap);
    p->lead_packer = ZSTD_createCCtx();
    p->frame_packer = ZSTD_createCCtx();
    p->unpacker = ZSTD_createDCtx();
    if (!p->raw || !p->offset || !p->site || !p->frames || !p->frame_of || !p->out || !p->packed || !p->body ||
        !p->heads_of || !p->in || !p->apart || !p->lead_packer || !p->frame_packer || !p->unpacker)
        return wb_fail_nomem();
    memset(p->packed, 1, p->packed_cap); /* so that the kernel allocates its pages before the first measurement */
    for (size_t i = 0; i < p->count; i++) {
        const struct wb_page *page = &corpus->pages[i];

        number += i > 0 && !wb_slice_equal(site, wb_key_site(page->key));
        site = wb_key_site(page->key);
        p->site[i] = number;
        p->offset[i] = at;
        wb_buf_clear(&record);
        int err = wb_page_encode(page, &record);
        if (err < 0)
            return err;
        memcpy(p->raw + at, record.ptr + WB_RECORD_DIGEST_BYTES, record.len - WB_RECORD_DIGEST_BYTES);
        at += record.len - WB_RECORD_DIGEST_BYTES;
        p->body[i] = at - page->body.len;
    }
    p->offset[p->count] = at;
    wb_buf_release(&record);
    return 0;
}

int main(int argc, char **argv)
{
    struct corpus corpus = CORPUS_INIT;
    struct packing p = {.count = 0};
    int err;

    if (argc != 2 && argc != 7) {
        fprintf(stderr, "usage: bench_blocks CORPUS-DIR [LEVEL BLOCK-KB LEAD-KB FRAME-KB 0|1|2]\n");
        return 2;
    }
    err = corpus_load(argv[1], &corpus);
    if (err == 0)
        err = take_pages(&corpus, &p);
    if (err == 0 && argc == 7)
        err = measure(&p, &(struct shape){atoi(argv[2]), strtoul(argv[3], NULL, 10) << 10,
                                          strtoul(argv[4], NULL, 10) << 10, (strtoul(argv[5], NULL, 10) << 10) + 1,
                                          (enum heads)(strtoul(argv[6], NULL, 10) % 3)});
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
    wb_free(p.heads_of);
    wb_free(p.body);
    wb_free(p.in);
    wb_free(p.apart);
    wb_free(p.out);
    wb_free(p.packed);
    corpus_release(&corpus);
    return err < 0 ? 1 : 0;
}
