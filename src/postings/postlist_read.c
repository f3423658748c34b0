/*
 * postlist_read.c - frequencies and positions of postings, and whole blocks for a merge.
 */
#include "postings/postlist.h"
#include "base/check.h"
#include "base/mem.h"
#include "base/vec.h"

/* ---- frequencies ----------------------------------------------------------------------------------- */

/* Walks through the extra bytes of the block once, to find those of each posting. */
static int need_extra(struct wb_postlist *list)
{
    struct wb_postlist_own *own = list->own;
    int err = own->have & HAVE_EXTRA ? 0 : wb_postlist_need_codes(list);

    if (err < 0 || own->have & HAVE_EXTRA)
        return err;
    const uint8_t *p = own->extra_at;
    own->before[0] = 0;
    for (uint32_t i = 0; i < list->count; i++) {
        uint32_t code = own->codes[i];
        uint64_t occurrences = (uint64_t)code / 2 + 1;
        own->extra_of[i] = (uint16_t)(p - own->extra_at);
        if (code & 1) {
            p = wb_code_occurrences(code, p, own->block_end, &occurrences);
            if (!p)
                return wb_postlist_damaged(list, "the frequencies");
        }
        if (occurrences > UINT32_MAX)
            return wb_postlist_damaged(list, "the frequencies");
        own->before[i + 1] = own->before[i] + occurrences;
    }
    own->extra_of[list->count] = (uint16_t)(p - own->extra_at);
    own->have |= HAVE_EXTRA;
    return 0;
}
_Static_assert(WB_BLOCK_POSTINGS *WB_POSTING_EXTRA_MAX <= UINT16_MAX, "extra bytes of a block are counted in 16 bits");

int wb_postlist_frequencies(struct wb_postlist *list, uint32_t frequency_out[WB_FIELDS])
{
    struct wb_postlist_own *own = list->own;

    WB_CHECK(list->at < list->count);
    int err = wb_postlist_need_codes(list);
    if (err == 0 && own->codes[list->at] & 1)
        err = need_extra(list);
    if (err < 0)
        return err;
    uint32_t code = own->codes[list->at];
    const uint8_t *extra = code & 1 ? own->extra_at + own->extra_of[list->at] : own->extra_at;
    WB_CHECK(wb_code_frequencies(code, extra, own->block_end, frequency_out) != NULL);
    return 0;
}

/* ---- gaps ------------------------------------------------------------------------------------------ */

/* Not wb_postlist_damaged(): positions are in another file than the list. */
static int damaged_positions(struct wb_postlist *list)
{
    const struct wb_postlist_own *own = list->own;
    const char *path = own->term.inlined.ptr ? own->set->dictionary.path : own->set->positions.path;

    return wb_postlist_fail(list, wb_fail(WB_E_CORRUPT, "%s is damaged: the positions of a list make no sense", path));
}

/* Finds the packs of a list in the file. */
static int find_packs(struct wb_postlist *list)
{
    struct wb_postlist_own *own = list->own;
    const struct wb_blob *blob = &own->set->positions;
    uint64_t head = 0, at = own->term.positions_at, bytes = own->term.positions_bytes;
    int err = wb_blob_check(blob, at, own->blocks > 1 && bytes >= 2 ? 2 : bytes);

    if (err == 0)
        err = wb_blob_check(blob, at + bytes, 0);
    if (err < 0)
        return wb_postlist_fail(list, err);
    const uint8_t *start = (const uint8_t *)blob->data + at;
    if (own->blocks > 1) {
        own->before_width = bytes >= 2 ? start[0] : 0;
        own->start_width = bytes >= 2 ? start[1] : 0;
        head = 2 + (uint64_t)own->blocks * (own->before_width + own->start_width);
        if (own->before_width - 1 > 7 || own->start_width - 1 > 7 || head > bytes)
            return damaged_positions(list);
        own->checkpoints = start + 2;
    }
    own->packs = start + head;
    own->packs_end = start + bytes;
    return 0;
}

/* The packs of an inlined list follow its block. */
static int find_inlined_packs(struct wb_postlist *list)
{
    struct wb_postlist_own *own = list->own;
    int err = need_extra(list);

    if (err < 0)
        return err;
    own->packs = own->extra_at + own->extra_of[list->count];
    own->packs_end = own->list_end;
    return 0;
}

static int need_positions(struct wb_postlist *list)
{
    struct wb_postlist_own *own = list->own;
    int err = 0;

    if (own->positions_ready)
        return 0;
    if (!own->term.positions)
        return wb_fail(WB_E_INVALID, "the list has no positions");
    own->checkpoints = NULL;
    own->cached = UINT64_MAX;
    own->pack_block = UINT32_MAX;
    err = own->term.inlined.ptr ? find_inlined_packs(list) : find_packs(list);
    own->positions_ready = err == 0;
    /* Each pack has at least one byte. */
    if (err == 0 && own->term.total / BITPACK_MAX > (uint64_t)(own->packs_end - own->packs))
        err = damaged_positions(list);
    return err;
}

/* Makes sure that the bytes of the file from p on match their checksums, so many of them or up to the last one. */
static int check_packs(struct wb_postlist *list, const uint8_t *p, size_t len)
{
    struct wb_postlist_own *own = list->own;
    const struct wb_blob *blob = &own->set->positions;
    size_t left = (size_t)(own->packs_end - p);

    if (own->term.inlined.ptr)
        return 0;
    int err = wb_blob_check(blob, (uint64_t)((const char *)p - blob->data), len < left ? len : left);
    return err < 0 ? wb_postlist_fail(list, err) : 0;
}

static unsigned gaps_of_pack(const struct wb_postlist_own *own, uint64_t pack)
{
    uint64_t left = own->term.total - pack * BITPACK_MAX;

    return left < BITPACK_MAX ? (unsigned)left : BITPACK_MAX;
}

/* Moves to the pack that holds the first gap of the current block. */
static int read_checkpoint(struct wb_postlist *list)
{
    struct wb_postlist_own *own = list->own;
    uint64_t start_at = 0;

    own->block_before = 0;
    if (own->checkpoints) {
        const uint8_t *before = own->checkpoints + (size_t)list->block * own->before_width;
        const uint8_t *start =
            own->checkpoints + (size_t)own->blocks * own->before_width + (size_t)list->block * own->start_width;
        int err = check_packs(list, before, own->before_width);
        if (err == 0)
            err = check_packs(list, start, own->start_width);
        if (err < 0)
            return err;
        own->block_before = wb_get_width(before, own->before_width);
        start_at = wb_get_width(start, own->start_width);
    }
    if (own->block_before > own->term.total || start_at > (uint64_t)(own->packs_end - own->packs))
        return damaged_positions(list);
    own->pack_block = list->block;
    own->pack = own->block_before / BITPACK_MAX;
    own->pack_at = own->packs + start_at;
    return 0;
}

/* Moves to a pack that is not before the current one. */
static int seek_pack(struct wb_postlist *list, uint64_t pack)
{
    struct wb_postlist_own *own = list->own;

    WB_CHECK(own->pack <= pack);
    for (; own->pack < pack; own->pack++) {
        int err = check_packs(list, own->pack_at, BITPACK_BYTES);
        if (err < 0)
            return err;
        own->pack_at = wb_bitpack_skip(own->pack_at, own->packs_end, gaps_of_pack(own, own->pack));
        if (!own->pack_at)
            return damaged_positions(list);
    }
    return 0;
}

/* Unpacks the current pack and moves behind it. */
static int read_pack(struct wb_postlist *list, uint32_t gaps_out[BITPACK_MAX])
{
    struct wb_postlist_own *own = list->own;
    int err = check_packs(list, own->pack_at, BITPACK_BYTES);

    if (err < 0)
        return err;
    own->pack_at = wb_bitunpack(own->pack_at, own->packs_end, gaps_of_pack(own, own->pack), gaps_out);
    if (!own->pack_at)
        return damaged_positions(list);
    own->pack++;
    return 0;
}

/* Copies gaps of one pack, from number `at` on, which may be the one that was unpacked last. */
static int copy_gaps(struct wb_postlist *list, uint64_t pack, size_t at, size_t count, uint32_t *gaps_out)
{
    struct wb_postlist_own *own = list->own;
    bool whole = count == BITPACK_MAX;
    int err = 0;

    if (own->cached != pack) {
        err = seek_pack(list, pack);
        if (err == 0 && whole)
            return read_pack(list, gaps_out);
        own->cached = UINT64_MAX;
        if (err == 0)
            err = read_pack(list, own->gaps);
        if (err < 0)
            return err;
        own->cached = pack;
    }
    memcpy(gaps_out, own->gaps + at, count * sizeof *gaps_out);
    return 0;
}

/*
 * Reads gaps of the current block: `count` of them, from the one on that has `skip` gaps of the block before it. Needs
 * need_extra().
 */
static int read_gaps(struct wb_postlist *list, uint64_t skip, uint64_t count, uint32_t *gaps_out)
{
    struct wb_postlist_own *own = list->own;
    int err = need_positions(list);

    if (err == 0 && own->pack_block != list->block)
        err = read_checkpoint(list);
    if (err < 0)
        return err;
    uint64_t from = own->block_before + skip, left = own->term.total - own->block_before;
    if (skip > left || count > left - skip)
        return damaged_positions(list);
    if (own->pack > from / BITPACK_MAX + (own->cached == from / BITPACK_MAX)) /* back to the start of the block */
        err = read_checkpoint(list);
    for (uint64_t done = 0; err == 0 && done < count;) {
        uint64_t pack = (from + done) / BITPACK_MAX, at = (from + done) % BITPACK_MAX;
        uint64_t part = BITPACK_MAX - at < count - done ? BITPACK_MAX - at : count - done;
        err = copy_gaps(list, pack, (size_t)at, (size_t)part, gaps_out + done);
        done += part;
    }
    return err;
}

/* ---- positions of one posting ---------------------------------------------------------------------- */

/* If all gaps of a posting are in the pack that was unpacked last, copies them. */
static inline bool copy_cached(struct wb_postlist *list, uint64_t skip, uint64_t count)
{
    struct wb_postlist_own *own = list->own;
    uint64_t from = own->block_before + skip, at = from % BITPACK_MAX;

    if (own->pack_block != list->block || own->cached != from / BITPACK_MAX || count > BITPACK_MAX - at ||
        from > own->term.total || count > own->term.total - from)
        return false;
    for (uint64_t i = 0; i < count; i++)
        own->positions[i] = own->gaps[at + i];
    return true;
}

int wb_postlist_positions(struct wb_postlist *list, struct wb_positions *positions_out)
{
    struct wb_postlist_own *own = list->own;
    uint32_t frequency[WB_FIELDS];

    memset(positions_out, 0, sizeof *positions_out);
    WB_CHECK(list->at < list->count);
    int err = need_extra(list);
    if (err == 0)
        err = need_positions(list);
    if (err < 0)
        return err;
    uint64_t skip = own->before[list->at], count = own->before[list->at + 1] - skip;
    if (count > own->term.total)
        return damaged_positions(list);
    err = wb_grow(&own->positions, &own->positions_cap, (size_t)count);
    if (err == 0 && !copy_cached(list, skip, count))
        err = read_gaps(list, skip, count, own->positions);
    if (err == 0 && own->codes[list->at] & 1)
        err = wb_postlist_frequencies(list, frequency);
    if (err < 0)
        return err;
    uint32_t *p = own->positions;
    if (!(own->codes[list->at] & 1)) { /* only in MAIN, as most postings are */
        for (int space = 0; space < WB_SPACES; space++)
            positions_out->at[space] = p;
        positions_out->count[WB_SPACE_BODY] = (uint32_t)count;
        for (uint64_t i = 1; i < count; i++)
            p[i] += p[i - 1];
        return 0;
    }
    for (int f = 0; f < WB_FIELDS; f++)
        positions_out->count[wb_space_of_field((enum wb_field)f)] += frequency[f];
    for (int space = 0; space < WB_SPACES; space++) {
        positions_out->at[space] = p;
        for (uint32_t i = 1; i < positions_out->count[space]; i++)
            p[i] += p[i - 1];
        p += positions_out->count[space];
    }
    WB_CHECK((uint64_t)(p - own->positions) == count);
    return 0;
}

/* ---- positions in one space ------------------------------------------------------------------------ */

int wb_postlist_counts(struct wb_postlist *list, uint32_t count_out[WB_SPACES])
{
    const unsigned body = 1u << WB_FIELD_MAIN | 1u << WB_FIELD_OTHER | LISTBLOCK_ALL_ONE;
    struct wb_postlist_own *own = list->own;
    uint32_t i = list->at, frequency[WB_FIELDS];

    memset(count_out, 0, WB_SPACES * sizeof *count_out);
    WB_CHECK(i < list->count);
    int err = own->have & HAVE_EXTRA ? 0 : need_extra(list);
    if (err < 0)
        return err;
    const uint8_t *extra = own->extra_at + own->extra_of[i];
    if (!(own->codes[i] & 1) || !(*extra & ~body)) { /* all of them are in BODY, as most are */
        count_out[WB_SPACE_BODY] = (uint32_t)(own->before[i + 1] - own->before[i]);
        return 0;
    }
    WB_CHECK(wb_code_get(own->codes[i], extra, own->block_end, frequency) != NULL);
    for (int f = 0; f < WB_FIELDS; f++)
        count_out[wb_space_of_field((enum wb_field)f)] += frequency[f];
    return 0;
}

/*
 * Adds up gaps, eight at a time, and puts filler in place of those from `count` on. out may be the same as gaps. No
 * branch depends on a count below eight: they are at random.
 */
static inline void add_up(const uint32_t *gaps, uint32_t count, uint32_t filler, uint32_t *out)
{
    typedef int32_t signed4 __attribute__((vector_size(16)));
    const wb_vec4 zero = {0};
    const signed4 number = {0, 1, 2, 3};
    wb_vec4 carry = zero;
    uint32_t i = 0;

    do
        for (int half = 0; half < 2; half++, i += 4) {
            wb_vec4 v = *(const wb_vec4_any *)(gaps + i);
            v += __builtin_shufflevector(zero, v, 0, 4, 5, 6);
            v += __builtin_shufflevector(zero, v, 0, 1, 4, 5);
            v += carry;
            carry = __builtin_shufflevector(v, v, 3, 3, 3, 3);
            wb_vec4 keep = (wb_vec4)(number < (int32_t)(count - i));
            *(wb_vec4_any *)(out + i) = (v & keep) | (filler & ~keep);
        }
    while (i < count);
}
_Static_assert(WB_POSITIONS_STEP == 8, "eight are two vectors");

/* Where gaps are that have already been unpacked, if they are; otherwise NULL. */
static inline const uint32_t *unpacked(const struct wb_postlist *list, uint64_t skip, uint64_t count)
{
    const struct wb_postlist_own *own = list->own;

    if (!own->positions_ready || own->pack_block != list->block)
        return NULL;
    uint64_t from = own->block_before + skip, at = from % BITPACK_MAX;
    if (own->cached != from / BITPACK_MAX || count > BITPACK_MAX - at || from > own->term.total ||
        count > own->term.total - from)
        return NULL;
    return own->gaps + at;
}

int wb_postlist_positions_in(struct wb_postlist *list, const uint32_t count[WB_SPACES], enum wb_space space,
                             uint32_t filler, const uint32_t **positions_out)
{
    struct wb_postlist_own *own = list->own;
    uint64_t skip = own->before[list->at];
    uint32_t n = count[space];

    *positions_out = NULL;
    WB_CHECK(list->at < list->count && own->have & HAVE_EXTRA && n > 0);
    for (int s = 0; s < (int)space; s++)
        skip += count[s];
    int err = need_positions(list); /* before memory is allocated: this checks the number of all gaps */
    if (err == 0 && n > own->term.total)
        err = damaged_positions(list);
    if (err == 0 && n > INT32_MAX)
        err = wb_postlist_fail(list, wb_fail(WB_E_LIMIT, "a word is in a page too often"));
    if (err == 0)
        err = wb_grow(&own->positions, &own->positions_cap, (size_t)n + WB_POSITIONS_STEP);
    if (err < 0)
        return err;
    const uint32_t *gaps = unpacked(list, skip, n);
    *positions_out = own->positions;
    if (!gaps) {
        err = read_gaps(list, skip, n, own->positions);
        if (err < 0)
            return err;
        gaps = own->positions;
    }
    add_up(gaps, n, filler, own->positions);
    return 0;
}

/* ---- whole lists and blocks ------------------------------------------------------------------------------------ */

int wb_postlist_bytes(struct wb_postlist *list, bool positions, struct wb_slice *rest_out, struct wb_slice *packs_out)
{
    struct wb_postlist_own *own = list->own;
    bool inlined = own->term.inlined.ptr != NULL;
    int err = wb_postlist_error(list);

    *rest_out = *packs_out = WB_SLICE_EMPTY;
    WB_CHECK(own->blocks == 1 || err < 0);
    /* Only inlined lists have their positions in the same place. */
    if (err == 0 && inlined)
        err = need_extra(list);
    if (err == 0 && positions)
        err = need_positions(list); /* which checks all of them, because there is one block */
    if (err < 0)
        return err;
    const uint8_t *end = inlined ? own->extra_at + own->extra_of[list->count] : own->block_end;
    *rest_out = wb_slice((const char *)own->codes_at, (size_t)(end - own->codes_at));
    if (positions)
        *packs_out = wb_slice((const char *)own->packs, (size_t)(own->packs_end - own->packs));
    return 0;
}

int wb_postlist_read(struct wb_postlist *list, uint32_t number, struct wb_posting_block *block_out)
{
    struct wb_postlist_own *own = list->own;
    int err = wb_postlist_error(list);

    block_out->count = 0;
    block_out->gap_count = 0;
    if (err < 0 || number >= own->blocks)
        return err;
    if (number != list->block)
        err = wb_postlist_load(list, number);
    if (err == 0)
        err = need_extra(list);
    if (err < 0)
        return err;
    list->at = 0;
    list->docid = list->docids[0];
    uint64_t gaps = own->before[list->count];
    if (gaps > own->term.total)
        return wb_postlist_damaged(list, "the frequencies");
    if (own->term.positions) {
        err = need_positions(list); /* before memory is allocated: this checks the number of all gaps */
        if (err == 0)
            err = wb_grow(&block_out->gaps, &block_out->gap_cap, (size_t)gaps);
        if (err == 0)
            err = read_gaps(list, 0, gaps, block_out->gaps);
        if (err < 0)
            return err;
        block_out->gap_count = (size_t)gaps;
    }
    block_out->count = list->count;
    memcpy(block_out->docid, list->docids, list->count * sizeof *list->docids);
    memcpy(block_out->code, own->codes, list->count * sizeof *own->codes);
    memcpy(block_out->extra_at, own->extra_of, (list->count + 1) * sizeof *own->extra_of);
    memcpy(block_out->extra, own->extra_at, own->extra_of[list->count]);
    for (uint32_t i = 0; i < list->count; i++)
        block_out->occurrences[i] = (uint32_t)(own->before[i + 1] - own->before[i]);
    return 1;
}
