/*
 * block_build.c - compresses pages into a block: chooses the lead, compresses it, uses it
 * as the dictionary of the other pages, and writes header and directory (see block.c for
 * the bytes). It never touches a file. Several builders can work at once, one per thread.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "store/block.h"
#include "store/block_bytes.h"

#include <zstd.h>

/* Chosen from the curve in docs/design/0001-blocks.md. The tables are no larger than the lead requires. */
enum { ZSTD_LEVEL = 3, FRAME_CHAIN_LOG = 14, FRAME_HASH_LOG = 15 };

enum { BUILDER_MAGIC = 0x57424242 };

/*
 * Tells zstd to search the dictionary's tables where they are, instead of copying them
 * for every page, which is 40 % faster on pages of 20 KB. This is ZSTD_c_forceAttachDict =
 * ZSTD_dictForceAttach, spelled with the names that zstd.h has outside its unstable part.
 */
#define FORCE_ATTACH ZSTD_c_experimentalParam4, 1

struct wb_block_builder {
    uint32_t magic;
    ZSTD_CCtx *lead_zstd, *frame_zstd;
    struct wb_buf lead; /* the texts of the lead's records, one after the other */
};

/* The pages that form the lead: first, first + 1, ..., first + count - 1. */
struct lead_run {
    size_t first, count;
    size_t bytes; /* of their records */
};

static void set(ZSTD_CCtx *zstd, ZSTD_cParameter parameter, int value)
{
    WB_CHECK(zstd != NULL);

    size_t rc = ZSTD_CCtx_setParameter(zstd, parameter, value);

    WB_CHECK(!ZSTD_isError(rc));
}

int wb_block_builder_new(struct wb_block_builder **builder_out)
{
    struct wb_block_builder *builder = wb_alloc_zero(1, sizeof *builder);

    *builder_out = NULL;
    if (!builder)
        return WB_E_NOMEM;
    builder->magic = BUILDER_MAGIC;
    builder->lead_zstd = ZSTD_createCCtx();
    builder->frame_zstd = ZSTD_createCCtx();
    if (!builder->lead_zstd || !builder->frame_zstd) {
        wb_block_builder_free(builder);
        return wb_fail_nomem();
    }
    set(builder->lead_zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
    set(builder->frame_zstd, ZSTD_c_compressionLevel, ZSTD_LEVEL);
    set(builder->frame_zstd, ZSTD_c_strategy, ZSTD_dfast);
    set(builder->frame_zstd, ZSTD_c_chainLog, FRAME_CHAIN_LOG);
    set(builder->frame_zstd, ZSTD_c_hashLog, FRAME_HASH_LOG);
    set(builder->frame_zstd, FORCE_ATTACH);
    *builder_out = builder;
    return 0;
}

void wb_block_builder_free(struct wb_block_builder *builder)
{
    if (!builder)
        return;
    WB_CHECK(builder->magic == BUILDER_MAGIC);
    builder->magic = 0;
    ZSTD_freeCCtx(builder->lead_zstd);
    ZSTD_freeCCtx(builder->frame_zstd);
    wb_buf_release(&builder->lead);
    wb_free(builder);
}

/*
 * Finds the first run of pages in [from, to) that reaches WB_BLOCK_LEAD_MIN without
 * containing a page that is too large for a lead. If there is none, returns the
 * longest run there is.
 */
static struct lead_run find_run(const struct wb_block_page *pages, size_t from, size_t to)
{
    struct lead_run run = {from, 0, 0}, best = run;

    WB_CHECK(to <= WB_BLOCK_PAGES_MAX);
    WB_CHECK(from <= to);
    for (size_t i = from; i < to && run.bytes < WB_BLOCK_LEAD_MIN; i++) {
        if (pages[i].record.len > WB_BLOCK_LEAD_PAGE_MAX) {
            run = (struct lead_run){i + 1, 0, 0};
            continue;
        }
        run.count++;
        run.bytes += pages[i].record.len;
        if (run.bytes > best.bytes)
            best = run;
    }
    WB_CHECK(best.first + best.count <= to);
    return best;
}

/*
 * Takes the lead from the middle of the block, where it is closest to all other pages:
 * the block becomes 2 % smaller than with a lead from its start. If no run in the second
 * half is long enough, looks in the first half too. A block of one page has no use for
 * a lead.
 */
static struct lead_run choose_lead(const struct wb_block_page *pages, size_t count)
{
    size_t bytes = 0, before = 0, middle = 0;

    WB_CHECK(count > 0);
    WB_CHECK(count <= WB_BLOCK_PAGES_MAX);
    if (count < 2)
        return (struct lead_run){0, 0, 0};
    for (size_t i = 0; i < count; i++)
        bytes += pages[i].record.len;
    while (before + WB_BLOCK_LEAD_MIN / 2 < bytes / 2)
        before += pages[middle++].record.len;
    struct lead_run run = find_run(pages, middle, count);
    if (run.bytes < WB_BLOCK_LEAD_MIN && middle > 0) {
        struct lead_run earlier = find_run(pages, 0, middle);
        if (earlier.bytes > run.bytes)
            run = earlier;
    }
    WB_CHECK(run.count <= count);
    WB_CHECK(run.bytes < WB_BLOCK_LEAD_MIN + WB_BLOCK_LEAD_PAGE_MAX);
    return run;
}

/* Appends bytes to out as one compressed frame. */
static int append_frame(ZSTD_CCtx *zstd, struct wb_slice bytes, struct wb_buf *out, uint32_t *stored_out)
{
    WB_CHECK(zstd != NULL);
    WB_CHECK(bytes.len > 0);

    size_t bound = ZSTD_compressBound(bytes.len);
    int err;

    *stored_out = 0;
    err = wb_buf_reserve(out, bound);
    if (err < 0)
        return err;
    size_t n = ZSTD_compress2(zstd, out->ptr + out->len, bound, bytes.ptr, bytes.len);
    if (ZSTD_isError(n))
        return wb_fail_nomem(); /* with enough room for the output, nothing else can go wrong */
    WB_CHECK(n > 0);
    WB_CHECK(n <= UINT32_MAX);
    out->len += n;
    *stored_out = (uint32_t)n;
    return 0;
}

/* The part of a record that is compressed: everything except its digests. */
static struct wb_slice text_of(const struct wb_block_page *page)
{
    WB_CHECK(page->record.len > WB_RECORD_DIGEST_BYTES);
    return wb_slice(page->record.ptr + WB_RECORD_DIGEST_BYTES, page->record.len - WB_RECORD_DIGEST_BYTES);
}

static void put_entry(char *to, const struct wb_block_page *page, uint16_t flags, uint32_t stored, uint32_t check)
{
    WB_CHECK(page->slot < UINT16_MAX);
    WB_CHECK((flags & WB_BLOCK_ENTRY_LEAD) ? stored == 0 && check == 0 : stored > 0);
    wb_pageid_put(page->id, to);
    wb_put16(to + ENTRY_SLOT_AT, page->slot);
    wb_put16(to + ENTRY_FLAGS_AT, flags);
    wb_put32(to + ENTRY_RAW_AT, (uint32_t)text_of(page).len);
    wb_put32(to + ENTRY_STORED_AT, stored);
    wb_put32(to + ENTRY_CHECK_AT, check);
    memcpy(to + ENTRY_DIGESTS_AT, page->record.ptr, WB_RECORD_DIGEST_BYTES);
}

/* Compresses the lead, and writes its part of the header and its entries of the directory. */
static int build_lead(struct wb_block_builder *builder, struct wb_block_page *pages, struct lead_run run, size_t start,
                      struct wb_buf *out)
{
    uint32_t stored = 0;
    size_t frame_at = out->len;
    int err;

    WB_CHECK(builder->magic == BUILDER_MAGIC);
    WB_CHECK(run.count <= WB_BLOCK_PAGES_MAX);
    WB_CHECK(out->len >= start + WB_BLOCK_HEADER_BYTES);
    wb_buf_clear(&builder->lead);
    for (size_t i = run.first; i < run.first + run.count; i++) {
        err = wb_buf_append_slice(&builder->lead, text_of(&pages[i]));
        if (err < 0)
            return err;
        pages[i].stored_bytes = 0;
        put_entry(out->ptr + start + WB_BLOCK_HEADER_BYTES + i * WB_BLOCK_ENTRY_BYTES, &pages[i], WB_BLOCK_ENTRY_LEAD,
                  0, 0);
    }
    if (run.count == 0)
        return 0;
    err = append_frame(builder->lead_zstd, wb_buf_slice(&builder->lead), out, &stored);
    if (err < 0)
        return err;
    WB_CHECK(builder->lead.len <= LEAD_RAW_MAX);
    char *head = out->ptr + start;
    wb_put16(head + HEAD_LEAD_COUNT_AT, (uint16_t)run.count);
    wb_put32(head + HEAD_LEAD_STORED_AT, stored);
    wb_put32(head + HEAD_LEAD_RAW_AT, (uint32_t)builder->lead.len);
    wb_put32(head + HEAD_LEAD_CHECK_AT, wb_hash32(out->ptr + frame_at, stored));
    return 0;
}

/* Compresses all pages that are not in the lead, each into a frame of its own. */
static int build_frames(struct wb_block_builder *builder, struct wb_block_page *pages, size_t count,
                        struct lead_run run, size_t start, struct wb_buf *out)
{
    int err = 0;

    WB_CHECK(builder->magic == BUILDER_MAGIC);
    WB_CHECK((run.count == 0) == (builder->lead.len == 0));
    /* If the lead is empty, this unloads the dictionary of the previous block. */
    if (ZSTD_isError(ZSTD_CCtx_loadDictionary(builder->frame_zstd, builder->lead.ptr, builder->lead.len)))
        return wb_fail_nomem();
    for (size_t i = 0; i < count && err == 0; i++) {
        if (i >= run.first && i < run.first + run.count)
            continue;
        size_t frame_at = out->len;
        uint32_t stored;
        err = append_frame(builder->frame_zstd, text_of(&pages[i]), out, &stored);
        if (err < 0)
            break;
        pages[i].stored_bytes = stored + WB_BLOCK_ENTRY_BYTES;
        put_entry(out->ptr + start + WB_BLOCK_HEADER_BYTES + i * WB_BLOCK_ENTRY_BYTES, &pages[i], 0, stored,
                  wb_hash32(out->ptr + frame_at, stored));
    }
    return err;
}

/* The site that all pages share, or 0 if there are several. */
static uint64_t common_site(const struct wb_block_page *pages, size_t count)
{
    WB_CHECK(count <= WB_BLOCK_PAGES_MAX);
    WB_CHECK(count > 0);
    for (size_t i = 1; i < count; i++)
        if (pages[i].site != pages[0].site)
            return 0;
    return pages[0].site;
}

int wb_block_build(struct wb_block_builder *builder, struct wb_block_page *pages, size_t count, bool slots_given,
                   struct wb_buf *block_out)
{
    WB_CHECK(builder->magic == BUILDER_MAGIC);

    size_t start = block_out->len, directory_end = WB_BLOCK_HEADER_BYTES + count * WB_BLOCK_ENTRY_BYTES;
    struct lead_run run = choose_lead(pages, count);
    int err;

    WB_CHECK(count > 0);
    WB_CHECK(count <= WB_BLOCK_PAGES_MAX);
    for (size_t i = 0; i < count; i++) {
        WB_CHECK(pages[i].record.len > WB_RECORD_DIGEST_BYTES);
        WB_CHECK(pages[i].record.len <= UINT32_MAX);
        if (!slots_given)
            pages[i].slot = (uint16_t)i;
    }
    err = wb_buf_reserve(block_out, directory_end);
    if (err < 0)
        return err;
    memset(block_out->ptr + start, 0, directory_end);
    block_out->len += directory_end;
    err = build_lead(builder, pages, run, start, block_out);
    if (err == 0)
        err = build_frames(builder, pages, count, run, start, block_out);
    if (err < 0) {
        block_out->len = start;
        return err;
    }
    char *head = block_out->ptr + start;
    memcpy(head, BLOCK_MAGIC, 4);
    wb_put16(head + HEAD_FORMAT_AT, BLOCK_FORMAT);
    wb_put16(head + HEAD_COUNT_AT, (uint16_t)count);
    wb_put64(head + HEAD_BYTES_AT, block_out->len - start);
    wb_put64(head + HEAD_SITE_AT, common_site(pages, count));
    wb_put64(head + HEAD_DIRECTORY_CHECK_AT, wb_hash64(head + WB_BLOCK_HEADER_BYTES, count * WB_BLOCK_ENTRY_BYTES));
    WB_CHECK(block_out->len - start >= directory_end);
    wb_block_stamp(head, 0, 0); /* whoever stores the block stamps it again, with its place */
    return 0;
}

void wb_block_stamp(char *block, uint64_t logical, uint64_t commit)
{
    wb_put64(block + HEAD_LOGICAL_AT, logical);
    wb_put64(block + HEAD_COMMIT_AT, commit);
    wb_put64(block + HEAD_CHECK_AT, wb_hash64(block, HEAD_CHECK_AT));
}
