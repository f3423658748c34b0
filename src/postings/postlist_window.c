/*
 * postlist_window.c - many postings at once: bits and sums of scores for a window of documents, and bounds for scores.
 *
 * The loops here are what queries spend their time in. They work on decoded blocks and call no function per document.
 */
#include "postings/postlist.h"
#include "base/check.h"

/* ---- bounds ---------------------------------------------------------------------------------------- */

/* The best score of the postings of the only block with numbers from `from` to `to`, without rounding up anything. */
static uint32_t bound_one_block(struct wb_postlist *list, const struct wb_scorer *scorer, uint32_t from, uint32_t to)
{
    const uint8_t *lengths = list->own->set->lengths;
    uint32_t best = 0;

    if (from >= to || wb_postlist_need_codes(list) < 0)
        return 0;
    for (uint32_t i = from; i < to; i++) {
        uint32_t score = wb_score(scorer, wb_code_weight(list->own->codes[i]), lengths[list->docids[i]]);
        best = score > best ? score : best;
    }
    return best;
}

uint32_t wb_postlist_bound(struct wb_postlist *list, const struct wb_scorer *scorer)
{
    WB_CHECK(list->own->magic == POSTLIST_MAGIC);
    if (list->error)
        return 0;
    if (list->own->blocks == 1)
        return bound_one_block(list, scorer, 0, list->count);
    return wb_impacts_bound(list->own->whole, scorer);
}

uint32_t wb_postlist_bound_range(struct wb_postlist *list, const struct wb_scorer *scorer, uint32_t first,
                                 uint32_t last)
{
    struct wb_postlist_own *own = list->own;
    uint32_t best = 0;

    WB_CHECK(first <= last);
    if (list->error)
        return 0;
    if (own->blocks == 1)
        return bound_one_block(list, scorer, wb_postlist_within(list, first),
                               last < WB_DOCID_END ? wb_postlist_within(list, last + 1) : list->count);
    uint32_t block = own->bound_block = wb_postlist_find(list, first, own->bound_block);
    while (block < own->blocks) {
        const uint8_t *impacts = own->impacts + IMPACTS_BYTES * (size_t)block;
        uint32_t stop = block;
        /* A whole group at once, if the range goes on at least to its end. */
        if (block % LIST_GROUP == 0 && own->blocks > LIST_GROUP) {
            uint32_t end = own->blocks - block > LIST_GROUP ? block + LIST_GROUP - 1 : own->blocks - 1;
            if (wb_postlist_last(own, end) <= last) {
                impacts = own->groups + IMPACTS_BYTES * (size_t)(block / LIST_GROUP);
                stop = end;
            }
        }
        uint32_t bound = wb_impacts_bound(impacts, scorer);
        best = bound > best ? bound : best;
        if (wb_postlist_last(own, stop) >= last)
            break;
        block = stop + 1;
    }
    return best;
}

uint32_t wb_postlist_block_last(struct wb_postlist *list, uint32_t docid)
{
    struct wb_postlist_own *own = list->own;

    if (list->error)
        return WB_DOCID_END;
    if (own->blocks == 1)
        return docid <= list->docids[list->count - 1] ? list->docids[list->count - 1] : WB_DOCID_END;
    uint32_t block = own->bound_block = wb_postlist_find(list, docid, own->bound_block);
    return block < own->blocks ? wb_postlist_last(own, block) : WB_DOCID_END;
}

/* ---- windows --------------------------------------------------------------------------------------- */

/* Calls to window functions begin with this: checks the arguments and finds the first block. */
static uint32_t enter_window(const struct wb_postlist *list, uint32_t base, uint32_t size)
{
    WB_CHECK(list->own->magic == POSTLIST_MAGIC);
    WB_CHECK(base % 64 == 0 && size % 64 == 0 && size > 0);
    WB_CHECK((uint64_t)base + size <= UINT32_MAX + 1ull);
    return list->error ? list->own->blocks : wb_postlist_find(list, base, list->block);
}

/* The last docid of a window. */
static uint32_t window_last(uint32_t base, uint32_t size)
{
    return base + (size - 1);
}

/* Calls to window functions end with this: moves to the first posting beyond the window. */
static uint32_t leave_window(struct wb_postlist *list, uint32_t base, uint32_t size)
{
    if (list->error || window_last(base, size) >= WB_DOCID_END - 1) {
        list->at = list->count;
        return list->docid = WB_DOCID_END;
    }
    return wb_postlist_seek(list, base + size);
}

/* Whether a block has postings in the window, for all we know; it is not before the window. */
static bool reaches(const struct wb_postlist *list, uint32_t block, uint32_t last)
{
    if (block >= list->own->blocks)
        return false;
    return block == 0 || wb_postlist_last(list->own, block - 1) < last;
}

/* The postings of the decoded block that are in the window: numbers from *from_out to the one before *to_out. */
static void clip(const struct wb_postlist *list, uint32_t base, uint32_t last, uint32_t *from_out, uint32_t *to_out)
{
    *from_out = list->docids[0] >= base ? 0 : wb_postlist_within(list, base);
    *to_out = list->docids[list->count - 1] <= last ? list->count : wb_postlist_within(list, last + 1);
}

/* Sets one bit by its byte, not by its word: neighbours that share a byte, and so wait for each other, are rarer. */
static inline void set_bit(uint32_t at, uint64_t *bits)
{
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
    at ^= 56;
#endif
    ((uint8_t *)bits)[at / 8] |= (uint8_t)(1u << at % 8);
}

/* Four stretches of the docids take turns, because what was just written is not soon ready to be read again. */
static void set_bits(const uint32_t *docids, uint32_t from, uint32_t to, uint32_t base, uint64_t *bits)
{
    uint32_t part = from < to ? (to - from) / 4 : 0;
    const uint32_t *first = docids + from;

    for (const uint32_t *d = first; d < first + part; d++) {
        set_bit(d[0] - base, bits);
        set_bit(d[part] - base, bits);
        set_bit(d[2 * part] - base, bits);
        set_bit(d[3 * part] - base, bits);
    }
    for (uint32_t i = from + 4 * part; i < to; i++)
        set_bit(docids[i] - base, bits);
}

/* Whether any bit is set from this document to that one, both in the window. */
static bool any_bits(const uint64_t *bits, uint32_t base, uint32_t first, uint32_t last)
{
    uint32_t at = (first - base) / 64, end = (last - base) / 64;
    uint64_t word = bits[at] & UINT64_MAX << first % 64;

    while (word == 0 && at < end)
        word = bits[++at];
    if (at == end)
        word &= UINT64_MAX >> (63 - last % 64);
    return word != 0;
}

/* The byte at this place, or 0 if there is none. */
static uint64_t byte_or_0(const uint8_t *bytes, uint32_t count, uint64_t at)
{
    return at < count ? bytes[at] : 0;
}

/* Takes over the bits of a block whose docids are bits. lowest: the document of the first bit. */
static void merge_bits(const uint8_t *bytes, uint32_t count, uint32_t lowest, uint32_t base, uint32_t size,
                       uint64_t *bits)
{
    /* 64 bits of the block that start at a multiple of 64 in the window; lowest may be before the window. */
    uint64_t first = lowest > base ? (lowest - base) / 64 : 0, end = (uint64_t)lowest + 8 * (uint64_t)count;

    for (uint64_t w = first; w < size / 64 && base + 64 * w < end; w++) {
        int64_t bit = (int64_t)(base + 64 * w) - (int64_t)lowest; /* bit 0 of the word is this bit of the block */
        uint64_t word = 0;
        if (bit < 0) {
            uint64_t low = 0;
            for (unsigned i = 0; i < 8; i++)
                low |= byte_or_0(bytes, count, i) << 8 * i;
            word = low << -bit;
        } else if (bit / 8 + 9 <= count) {
            word = wb_get64(bytes + bit / 8) >> bit % 8;
            word |= bit % 8 ? (uint64_t)bytes[bit / 8 + 8] << (64 - bit % 8) : 0;
        } else {
            for (unsigned i = 0; i < 9; i++) {
                uint64_t byte = byte_or_0(bytes, count, (uint64_t)bit / 8 + i);
                int shift = (int)(8 * i) - (int)(bit % 8);
                word |= shift >= 64 ? 0 : shift >= 0 ? byte << shift : byte >> -shift;
            }
        }
        bits[w] |= word;
    }
}

/*
 * Merges the bits of a block without decoding it. Returns 1 if that was possible, 0 if its docids are not bits. The
 * bits are not counted, which would cost more than all the rest; the highest one must be the last docid, so that none
 * is beyond the documents.
 */
static int try_bits(struct wb_postlist *list, uint32_t block, const struct wb_postlist_span *span, uint32_t base,
                    uint32_t size, uint64_t *bits)
{
    if (wb_postlist_block_count(list, block) != WB_BLOCK_POSTINGS || span->end - span->start < 2 ||
        span->start[0] != LISTBLOCK_BITS)
        return 0;
    const uint8_t *bytes = span->start + 2;
    uint32_t count = span->start[1];
    if (count > (size_t)(span->end - bytes) || count == 0 || bytes[count - 1] == 0 ||
        (uint64_t)span->lowest + 8 * (count - 1) + 31 - (unsigned)__builtin_clz(bytes[count - 1]) != span->last)
        return wb_postlist_damaged(list, "the docids");
    merge_bits(bytes, count, span->lowest, base, size, bits);
    return 1;
}

uint32_t wb_postlist_fill(struct wb_postlist *list, uint32_t base, uint32_t size, const uint64_t *wanted,
                          uint64_t *bits)
{
    uint32_t last = window_last(base, size), from, to;

    for (uint32_t block = enter_window(list, base, size); reaches(list, block, last); block++) {
        if (block != list->block) {
            struct wb_postlist_span span;
            if (wb_postlist_span(list, block, &span) < 0)
                break;
            if (wanted &&
                !any_bits(wanted, base, span.lowest > base ? span.lowest : base, span.last < last ? span.last : last))
                continue;
            int merged = try_bits(list, block, &span, base, size, bits);
            if (merged < 0 || (merged == 0 && wb_postlist_load(list, block) < 0))
                break;
            if (merged)
                continue;
        }
        clip(list, base, last, &from, &to);
        set_bits(list->docids, from, to, base, bits);
    }
    return leave_window(list, base, size);
}

/* Scores of postings of the decoded block, four at a time; as wb_score(). scores has room for a multiple of four. */
static void score_postings(const struct wb_postlist *list, const struct wb_scorer *scorer, uint32_t from, uint32_t to,
                           uint32_t *scores)
{
    const uint8_t *lengths = list->own->set->lengths;
    const float *inverse = scorer->inverse, *weights = list->own->weights;
    const wb_float4 unit = {scorer->unit, scorer->unit, scorer->unit, scorer->unit};
    const uint32_t *docids = list->docids;
    typedef int32_t signed4 __attribute__((vector_size(16)));
    uint32_t i = from;

    for (; i + 4 <= to; i += 4) {
        wb_float4 x = {inverse[lengths[docids[i]]], inverse[lengths[docids[i + 1]]], inverse[lengths[docids[i + 2]]],
                       inverse[lengths[docids[i + 3]]]};
        wb_float4 weight;
        memcpy(&weight, weights + i, sizeof weight);
        x = unit - unit / (1.0f + weight * x) + 0.5f;
        signed4 whole = __builtin_convertvector(x, signed4);
        memcpy(scores + (i - from), &whole, sizeof whole);
    }
    for (; i < to; i++)
        scores[i - from] = wb_score(scorer, (uint32_t)weights[i], lengths[docids[i]]);
}

uint32_t wb_postlist_sum(struct wb_postlist *list, uint32_t base, uint32_t size, const struct wb_scorer *scorer,
                         uint32_t *sums, uint64_t *bits)
{
    uint32_t last = window_last(base, size), from, to, scores[WB_BLOCK_POSTINGS];

    for (uint32_t block = enter_window(list, base, size); reaches(list, block, last); block++) {
        if ((block != list->block && wb_postlist_load(list, block) < 0) || wb_postlist_need_weights(list) < 0)
            break;
        clip(list, base, last, &from, &to);
        if (from >= to)
            continue;
        score_postings(list, scorer, from, to, scores);
        for (uint32_t i = from; i < to; i++)
            sums[list->docids[i] - base] += scores[i - from];
        if (bits)
            set_bits(list->docids, from, to, base, bits);
    }
    return leave_window(list, base, size);
}

enum { FEW_BITS = 4 }; /* so few documents are looked up in a block one by one */

/* How many bits are set from this document to that one, both in the window; FEW_BITS + 1 if there are more. */
static unsigned count_bits(const uint64_t *bits, uint32_t base, uint32_t first, uint32_t last)
{
    uint32_t at = (first - base) / 64, end = (last - base) / 64;
    uint64_t word = bits[at] & UINT64_MAX << first % 64;
    unsigned count = 0;

    for (;; word = bits[++at]) {
        if (at == end)
            word &= UINT64_MAX >> (63 - last % 64);
        for (; word && count <= FEW_BITS; word &= word - 1)
            count++;
        if (at == end || count > FEW_BITS)
            return count;
    }
}

/* Postings of the decoded block: their numbers, and the places of their documents in the window. */
struct wb_chosen {
    uint32_t count;
    uint32_t number[WB_BLOCK_POSTINGS + FEW_BITS], place[WB_BLOCK_POSTINGS + FEW_BITS];
};

/* The postings of the decoded block whose bits are set, if only few bits are, from first to last. */
static void choose_few(const struct wb_postlist *list, uint32_t base, uint32_t first, uint32_t last,
                       const uint64_t *bits, struct wb_chosen *chosen)
{
    uint32_t count = 0;

    for (uint32_t at = (first - base) / 64; at <= (last - base) / 64; at++)
        for (uint64_t word = bits[at]; word; word &= word - 1) {
            uint32_t docid = base + 64 * at + (uint32_t)__builtin_ctzll(word);
            uint32_t i = docid < first || docid > last ? list->count : wb_postlist_within(list, docid);
            chosen->number[count] = i;
            chosen->place[count] = docid - base;
            count += i < list->count && list->docids[i] == docid;
        }
    chosen->count = count;
}

/* The postings whose bits are set. No branches: bits at random would mislead the processor. */
static void choose(const struct wb_postlist *list, uint32_t base, uint32_t last, const uint64_t *bits,
                   struct wb_chosen *chosen)
{
    uint32_t count = 0, from, to;

    clip(list, base, last, &from, &to);
    for (uint32_t i = from; i < to; i++) {
        uint32_t at = list->docids[i] - base;
        chosen->number[count] = i;
        chosen->place[count] = at;
        count += bits[at / 64] >> at % 64 & 1;
    }
    chosen->count = count;
}

/* Adds the scores of the chosen postings, four at a time; as wb_score(). */
static void sum_chosen(const struct wb_postlist *list, const struct wb_scorer *scorer, uint32_t base,
                       const struct wb_chosen *chosen, uint32_t *sums)
{
    const uint8_t *lengths = list->own->set->lengths + base;
    const float *inverse = scorer->inverse;
    const wb_float4 unit = {scorer->unit, scorer->unit, scorer->unit, scorer->unit};
    const uint32_t *codes = list->own->codes;
    typedef int32_t signed4 __attribute__((vector_size(16)));
    uint32_t k = 0;

    for (; k + 4 <= chosen->count; k += 4) {
        const uint32_t *i = chosen->number + k, *at = chosen->place + k;
        wb_float4 x = {inverse[lengths[at[0]]], inverse[lengths[at[1]]], inverse[lengths[at[2]]],
                       inverse[lengths[at[3]]]};
        wb_vec4 code = {codes[i[0]], codes[i[1]], codes[i[2]], codes[i[3]]};
        x = unit - unit / (1.0f + wb_code_weight4(code) * x) + 0.5f;
        signed4 whole = __builtin_convertvector(x, signed4);
        sums[at[0]] += (uint32_t)whole[0];
        sums[at[1]] += (uint32_t)whole[1];
        sums[at[2]] += (uint32_t)whole[2];
        sums[at[3]] += (uint32_t)whole[3];
    }
    for (; k < chosen->count; k++)
        sums[chosen->place[k]] += wb_score(scorer, wb_code_weight(codes[chosen->number[k]]), lengths[chosen->place[k]]);
}

uint32_t wb_postlist_sum_masked(struct wb_postlist *list, uint32_t base, uint32_t size, const struct wb_scorer *scorer,
                                uint32_t *sums, const uint64_t *bits, uint64_t *found)
{
    uint32_t last = window_last(base, size);
    struct wb_chosen chosen;

    for (uint32_t block = enter_window(list, base, size); reaches(list, block, last); block++) {
        struct wb_postlist_span span;
        if (wb_postlist_span(list, block, &span) < 0)
            break;
        uint32_t lowest = span.lowest > base ? span.lowest : base, highest = span.last < last ? span.last : last;
        unsigned wanted = count_bits(bits, base, lowest, highest);
        if (wanted == 0)
            continue;
        if (block != list->block && wb_postlist_load(list, block) < 0)
            break;
        if (wanted <= FEW_BITS)
            choose_few(list, base, lowest, highest, bits, &chosen);
        else
            choose(list, base, last, bits, &chosen);
        if (chosen.count == 0)
            continue;
        if (wb_postlist_need_codes(list) < 0)
            break;
        sum_chosen(list, scorer, base, &chosen, sums);
        if (found)
            set_bits(chosen.place, 0, chosen.count, 0, found);
    }
    return leave_window(list, base, size);
}
