/*
 * block_read.c - decompresses the frames of a block, and reads pages from them.
 *
 * The frames that are needed for a page are decompressed into one buffer, each directly
 * after its base, so that zstd sees the base as what came before the frame: that is an
 * eighth faster than a dictionary somewhere else in memory.
 *
 *   chain: [ lead ][ frame ][ history ]      levels[0], [1], [2]: which frames these are
 *
 * A frame stays there until another one needs its place. A caller that has the lead of a
 * block from an earlier time can provide it; then the chain starts with the frame after it.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "block/block.h"

#include <zstd.h>

enum {
    READER_MAGIC = 0x57424252,
    NO_FRAME = -1,
    CHAIN_KEPT = 4 << 20, /* a larger chain, for a very large page, is given back with the next block */
    ZSTD_HEADER_MAX = 18, /* the longest header of a zstd frame */
    CACHE_LINE = 64,
};

/*
 * Tells zstd that the whole output has room where it is written, so that zstd keeps no copy
 * of it. This is ZSTD_d_stableOutBuffer = 1, spelled with the names that zstd.h has outside
 * its unstable part.
 */
#define STABLE_OUTPUT ZSTD_d_experimentalParam2, 1

/* A frame in the chain. */
struct block_level {
    int64_t frame; /* or NO_FRAME */
    size_t at;     /* where it starts in the chain */
    size_t have;   /* how many of its bytes are decompressed */
};

struct wb_block_reader {
    uint32_t magic;
    ZSTD_DCtx *zstd;
    ZSTD_DCtx *some_zstd;               /* writes to its output directly, block by block */
    const struct wb_block_index *index; /* of the block that is being read */
    wb_block_fetch fetch;
    void *context;
    const char *block;    /* if all its bytes are in memory */
    struct wb_slice lead; /* the lead, if the caller has it */
    struct wb_buf chain;
    struct block_level levels[WB_BLOCK_DEPTH_MAX];
    struct wb_buf heads; /* the heads of frame heads_of */
    int64_t heads_of;
};

int wb_block_reader_new(struct wb_block_reader **reader_out)
{
    struct wb_block_reader *reader = wb_alloc_zero(1, sizeof *reader);

    *reader_out = NULL;
    if (!reader)
        return WB_E_NOMEM;
    reader->magic = READER_MAGIC;
    reader->zstd = ZSTD_createDCtx();
    reader->some_zstd = ZSTD_createDCtx();
    if (!reader->zstd || !reader->some_zstd) {
        wb_block_reader_free(reader);
        return wb_fail_nomem();
    }
    WB_CHECK(!ZSTD_isError(ZSTD_DCtx_setParameter(reader->some_zstd, STABLE_OUTPUT)));
    *reader_out = reader;
    return 0;
}

void wb_block_reader_free(struct wb_block_reader *reader)
{
    if (!reader)
        return;
    WB_CHECK(reader->magic == READER_MAGIC);
    ZSTD_freeDCtx(reader->zstd);
    ZSTD_freeDCtx(reader->some_zstd);
    wb_buf_release(&reader->chain);
    wb_buf_release(&reader->heads);
    reader->magic = 0;
    wb_free(reader);
}

void wb_block_reader_open(struct wb_block_reader *reader, const struct wb_block_index *index, wb_block_fetch fetch,
                          void *context, struct wb_slice lead)
{
    WB_CHECK(reader->magic == READER_MAGIC);
    WB_CHECK(index->entries.count == index->head.count);
    WB_CHECK(lead.len == 0 || lead.len == index->frames.items[index->head.lead].raw_bytes);
    reader->index = index;
    reader->fetch = fetch;
    reader->context = context;
    reader->lead = lead;
    for (size_t i = 0; i < WB_BLOCK_DEPTH_MAX; i++)
        reader->levels[i].frame = NO_FRAME;
    reader->heads_of = NO_FRAME;
    wb_buf_clear(&reader->chain);
    if (reader->chain.cap > CHAIN_KEPT)
        wb_buf_trim(&reader->chain, CHAIN_KEPT);
}

static int fetch_from_memory(void *context, uint64_t at, size_t size, const char **bytes_out)
{
    const struct wb_block_reader *reader = context;

    WB_CHECK(reader->magic == READER_MAGIC);
    WB_CHECK(at + size <= reader->index->head.bytes);
    *bytes_out = reader->block + at;
    return 0;
}

void wb_block_reader_open_bytes(struct wb_block_reader *reader, const struct wb_block_index *index, const char *block)
{
    WB_CHECK(reader->magic == READER_MAGIC);
    reader->block = block;
    wb_block_reader_open(reader, index, fetch_from_memory, reader, WB_SLICE_EMPTY);
}

/* ---- frames --------------------------------------------------------------------------- */

/* Provides the stored bytes of a frame, checked. */
static int fetch_frame(struct wb_block_reader *reader, uint32_t number, const char **stored_out)
{
    WB_CHECK(reader->magic == READER_MAGIC);
    WB_CHECK(number < reader->index->frames.count);

    const struct wb_block_frame *frame = &reader->index->frames.items[number];
    int err = reader->fetch(reader->context, frame->at, frame->stored_bytes, stored_out);

    if (err < 0)
        return err;
    if (wb_hash32(*stored_out, frame->stored_bytes) != frame->check)
        return wb_fail(WB_E_CORRUPT, "a frame of the block does not match its checksum");
    return 0;
}

static int bad_frame(void)
{
    return wb_fail(WB_E_CORRUPT, "a frame of the block does not decompress");
}

/*
 * Fetches the caller's lead into the processor's cache while the frame is read from its file.
 * zstd copies short pieces from all over it, and would wait for memory at each of them.
 */
static void prefetch_lead(const struct wb_block_reader *reader)
{
    WB_CHECK(reader->magic == READER_MAGIC);
    for (size_t i = 0; i < reader->lead.len; i += CACHE_LINE)
        __builtin_prefetch(reader->lead.ptr + i, 0, 2);
}

/*
 * Decompresses a zstd frame to `to`, which has room for all `room` bytes of it, but stops at the
 * end of the first of its blocks at which `need` bytes are there. Returns how many there are;
 * fewer if the frame is damaged.
 */
static size_t decompress_some(struct wb_block_reader *reader, struct wb_slice dictionary, struct wb_slice stored,
                              char *to, size_t room, size_t need)
{
    ZSTD_inBuffer in = {stored.ptr, stored.len < ZSTD_HEADER_MAX ? stored.len : ZSTD_HEADER_MAX, 0};
    ZSTD_outBuffer out = {to, room, 0};

    WB_CHECK(reader->magic == READER_MAGIC);
    WB_CHECK(need <= room);
    ZSTD_DCtx_reset(reader->some_zstd, ZSTD_reset_session_only);
    if (ZSTD_isError(ZSTD_DCtx_refPrefix(reader->some_zstd, dictionary.ptr, dictionary.len)))
        return 0;
    while (out.pos < need) {
        size_t next = ZSTD_decompressStream(reader->some_zstd, &out, &in);
        if (ZSTD_isError(next) || next == 0 || in.pos == stored.len)
            break;
        in.size = next > stored.len - in.pos ? stored.len : in.pos + next;
    }
    return out.pos;
}

/*
 * Decompresses a frame into the chain, at least its first `need` bytes. Its base, if it has
 * one, is base; it ends where the frame will start.
 */
static int push_frame(struct wb_block_reader *reader, uint32_t number, size_t need, struct block_level *level,
                      const struct block_level *base)
{
    const struct wb_block_frame *frame = &reader->index->frames.items[number];
    const char *stored;
    size_t n;

    WB_CHECK(reader->magic == READER_MAGIC);
    WB_CHECK(level->frame == NO_FRAME);
    WB_CHECK(need <= frame->raw_bytes);
    if (!base && frame->base >= 0)
        prefetch_lead(reader);
    int err = fetch_frame(reader, number, &stored);
    if (err < 0)
        return err;
    /* The directory's checksum covers raw_bytes, so it is our own number: safe to allocate by. */
    reader->chain.len = level->at;
    err = wb_buf_reserve(&reader->chain, (size_t)frame->raw_bytes + 1);
    if (err < 0)
        return err;
    struct wb_slice dictionary = base               ? wb_slice(reader->chain.ptr + base->at, level->at - base->at)
                                 : frame->base >= 0 ? reader->lead
                                                    : WB_SLICE_EMPTY;
    char *to = reader->chain.ptr + level->at;
    /* A frame starts with the format number of a record, so zstd never mistakes it for a dictionary with tables. */
    if (need < frame->raw_bytes)
        n = decompress_some(reader, dictionary, wb_slice(stored, frame->stored_bytes), to, frame->raw_bytes, need);
    else
        n = ZSTD_decompress_usingDict(reader->zstd, to, frame->raw_bytes, stored, frame->stored_bytes, dictionary.ptr,
                                      dictionary.len);
    if (ZSTD_isError(n) || n < need)
        return bad_frame();
    reader->chain.len = level->at + n;
    level->frame = number;
    level->have = n;
    return 0;
}

/* Decompresses at least the first `need` bytes of a frame, and what it is based on. */
static int read_some(struct wb_block_reader *reader, uint32_t frame, size_t need, struct wb_slice *raw_out)
{
    WB_CHECK(reader->magic == READER_MAGIC);
    WB_CHECK(frame < reader->index->frames.count);

    const struct wb_block_frame *frames = reader->index->frames.items;
    uint32_t path[WB_BLOCK_DEPTH_MAX];
    size_t depth = 0, at = 0;
    bool have_lead = reader->lead.len > 0;

    *raw_out = WB_SLICE_EMPTY;
    if (have_lead && frame == reader->index->head.lead) {
        *raw_out = reader->lead;
        return 0;
    }
    for (int64_t f = frame; f >= 0 && !(have_lead && f == reader->index->head.lead); f = frames[f].base)
        path[depth++] = (uint32_t)f; /* from the frame down; the directory was checked, so there are at most three */
    WB_CHECK(depth > 0);
    WB_CHECK(depth <= WB_BLOCK_DEPTH_MAX);
    for (size_t i = 0; i < depth; i++) {
        uint32_t number = path[depth - 1 - i];
        struct block_level *level = &reader->levels[i];
        size_t wanted = i + 1 < depth ? frames[number].raw_bytes : need;
        if (level->frame != number || level->have < wanted) {
            if (level->frame == number) /* more of it is wanted, so all of it may be */
                wanted = frames[number].raw_bytes;
            for (size_t j = i; j < WB_BLOCK_DEPTH_MAX; j++)
                reader->levels[j].frame = NO_FRAME;
            level->at = at;
            int err = push_frame(reader, number, wanted, level, i > 0 ? level - 1 : NULL);
            if (err < 0)
                return err;
        }
        at = level->at + frames[number].raw_bytes;
    }
    *raw_out = wb_slice(reader->chain.ptr + reader->levels[depth - 1].at, need);
    return 0;
}

int wb_block_read_frame(struct wb_block_reader *reader, uint32_t frame, struct wb_slice *raw_out)
{
    WB_CHECK(frame < reader->index->frames.count);
    return read_some(reader, frame, reader->index->frames.items[frame].raw_bytes, raw_out);
}

/* Whether the frame is decompressed already. */
static bool is_loaded(const struct wb_block_reader *reader, uint32_t frame)
{
    WB_CHECK(reader->magic == READER_MAGIC);
    if (reader->lead.len > 0 && frame == reader->index->head.lead)
        return true;
    for (size_t i = 0; i < WB_BLOCK_DEPTH_MAX; i++)
        if (reader->levels[i].frame == frame)
            return reader->levels[i].have == reader->index->frames.items[frame].raw_bytes;
    return false;
}

/* Decompresses only the beginning of a frame, with all its heads, into reader->heads. */
static int push_heads(struct wb_block_reader *reader, uint32_t number)
{
    const struct wb_block_frame *frame = &reader->index->frames.items[number];
    struct wb_slice base = WB_SLICE_EMPTY;
    const char *stored;

    WB_CHECK(reader->magic == READER_MAGIC);
    WB_CHECK(frame->heads_stored <= frame->stored_bytes);
    reader->heads_of = NO_FRAME;
    int err = frame->base >= 0 ? wb_block_read_frame(reader, (uint32_t)frame->base, &base) : 0;
    if (err == 0)
        err = fetch_frame(reader, number, &stored);
    wb_buf_clear(&reader->heads);
    if (err == 0)
        err = wb_buf_reserve(&reader->heads, (size_t)frame->heads_raw + 1);
    if (err < 0)
        return err;
    ZSTD_DCtx_reset(reader->zstd, ZSTD_reset_session_only);
    if (ZSTD_isError(ZSTD_DCtx_refPrefix(reader->zstd, base.ptr, base.len)))
        return wb_fail_nomem();
    ZSTD_inBuffer in = {stored, frame->heads_stored, 0};
    ZSTD_outBuffer out = {reader->heads.ptr, frame->heads_raw, 0};
    while (in.pos < in.size && out.pos < out.size) {
        size_t before = in.pos + out.pos, n = ZSTD_decompressStream(reader->zstd, &out, &in);
        if (ZSTD_isError(n) || in.pos + out.pos == before)
            break;
    }
    ZSTD_DCtx_reset(reader->zstd, ZSTD_reset_session_only);
    if (out.pos != frame->heads_raw)
        return bad_frame();
    reader->heads.len = out.pos;
    reader->heads_of = number;
    return 0;
}

/* ---- pages ------------------------------------------------------------------------------------ */

static const struct wb_block_entry *entry_at(const struct wb_block_reader *reader, size_t at)
{
    WB_CHECK(reader->magic == READER_MAGIC);
    WB_CHECK(at < reader->index->entries.count);
    return &reader->index->entries.items[at];
}

/* The page of an entry, from the decompressed frame. */
static int decode(const struct wb_block_entry *entry, struct wb_slice raw, struct wb_page *page_out)
{
    WB_CHECK((uint64_t)entry->body_at + entry->body_bytes <= raw.len);
    WB_CHECK((uint64_t)entry->head_at + entry->head_bytes <= raw.len);

    struct wb_slice body = wb_slice(raw.ptr + entry->body_at, entry->body_bytes);
    int err =
        wb_page_decode_head(entry->digests, wb_slice(raw.ptr + entry->head_at, entry->head_bytes), body.len, page_out);
    page_out->body = body;
    return err;
}

int wb_block_read_page(struct wb_block_reader *reader, size_t at, struct wb_page *page_out)
{
    const struct wb_block_entry *entry = entry_at(reader, at);
    struct wb_slice raw;
    int err = wb_block_read_frame(reader, entry->frame, &raw);

    WB_CHECK(entry->digests != NULL);
    *page_out = (struct wb_page){0};
    return err < 0 ? err : decode(entry, raw, page_out);
}

int wb_block_read_facts(struct wb_block_reader *reader, size_t at, struct wb_page *page_out)
{
    const struct wb_block_entry *entry = entry_at(reader, at);
    const struct wb_block_frame *frame = &reader->index->frames.items[entry->frame];
    int err = 0;

    *page_out = (struct wb_page){0};
    if (is_loaded(reader, entry->frame) || frame->heads_stored == frame->stored_bytes) {
        err = wb_block_read_page(reader, at, page_out);
        page_out->body = WB_SLICE_EMPTY;
        return err;
    }
    if (reader->heads_of != entry->frame)
        err = push_heads(reader, entry->frame);
    if (err < 0)
        return err;
    WB_CHECK((uint64_t)entry->head_at + entry->head_bytes <= reader->heads.len);
    return wb_page_decode_head(entry->digests, wb_slice(reader->heads.ptr + entry->head_at, entry->head_bytes),
                               entry->body_bytes, page_out);
}

int wb_block_read_record(struct wb_block_reader *reader, size_t at, struct wb_buf *record_out)
{
    const struct wb_block_entry *entry = entry_at(reader, at);
    struct wb_slice raw;
    int err = read_some(reader, entry->frame, (size_t)entry->body_at + entry->body_bytes, &raw);

    wb_buf_clear(record_out);
    if (err == 0)
        err = wb_buf_reserve(record_out, WB_RECORD_DIGEST_BYTES + (size_t)entry->head_bytes + entry->body_bytes + 1);
    if (err < 0)
        return err;
    WB_CHECK((uint64_t)entry->body_at + entry->body_bytes <= raw.len);
    wb_buf_append(record_out, entry->digests, WB_RECORD_DIGEST_BYTES); /* none of these fails: the room is reserved */
    wb_buf_append(record_out, raw.ptr + entry->head_at, entry->head_bytes);
    return wb_buf_append(record_out, raw.ptr + entry->body_at, entry->body_bytes);
}

/* Appends digests, head and body. */
static int append_parts(const struct wb_block_entry *entry, struct wb_slice head, struct wb_slice body,
                        struct wb_buf *out)
{
    int err = wb_buf_reserve(out, WB_RECORD_DIGEST_BYTES + head.len + body.len + 1);

    WB_CHECK(entry->digests != NULL);
    if (err < 0)
        return err;
    wb_buf_append(out, entry->digests, WB_RECORD_DIGEST_BYTES); /* none of these fails: the room is reserved */
    wb_buf_append(out, head.ptr, head.len);
    return wb_buf_append(out, body.ptr, body.len);
}

int wb_block_read_head(struct wb_block_reader *reader, size_t at, struct wb_buf *head_out)
{
    const struct wb_block_entry *entry = entry_at(reader, at);
    const struct wb_block_frame *frame = &reader->index->frames.items[entry->frame];
    bool whole = is_loaded(reader, entry->frame) || frame->heads_stored == frame->stored_bytes;
    struct wb_slice raw;
    int err = 0;

    if (whole)
        err = wb_block_read_frame(reader, entry->frame, &raw);
    else if (reader->heads_of != entry->frame)
        err = push_heads(reader, entry->frame);
    if (err < 0)
        return err;
    if (!whole)
        raw = wb_buf_slice(&reader->heads);
    WB_CHECK((uint64_t)entry->head_at + entry->head_bytes <= raw.len);
    return append_parts(entry, wb_slice(raw.ptr + entry->head_at, entry->head_bytes), WB_SLICE_EMPTY, head_out);
}

int wb_block_append_record(struct wb_block_reader *reader, size_t at, struct wb_buf *records_out)
{
    const struct wb_block_entry *entry = entry_at(reader, at);
    struct wb_slice raw;
    int err = wb_block_read_frame(reader, entry->frame, &raw);

    if (err < 0)
        return err;
    WB_CHECK((uint64_t)entry->body_at + entry->body_bytes <= raw.len);
    return append_parts(entry, wb_slice(raw.ptr + entry->head_at, entry->head_bytes),
                        wb_slice(raw.ptr + entry->body_at, entry->body_bytes), records_out);
}
