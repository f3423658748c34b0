/*
 * postingblock.c - a block of postings in memory, on its way from one list to another: takes out what is not kept.
 */
#include "postings/listblock.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

void wb_posting_block_release(struct wb_posting_block *block)
{
    wb_free(block->gaps);
    block->gaps = NULL;
    block->count = 0;
    block->gap_count = block->gap_cap = 0;
}

int wb_posting_block_get(const struct wb_posting_block *block, uint32_t i, struct wb_posting *posting_out)
{
    size_t at = 0;

    WB_CHECK(i < block->count);
    *posting_out = (struct wb_posting){.docid = block->docid[i]};
    if (!wb_code_frequencies(block->code[i], block->extra + block->extra_at[i], block->extra + block->extra_at[i + 1],
                             posting_out->frequency))
        return wb_fail(WB_E_CORRUPT, "a block of postings is malformed");
    if (block->gap_count) {
        for (uint32_t k = 0; k < i; k++)
            at += block->occurrences[k];
        posting_out->gaps = block->gaps + at;
        posting_out->gap_count = block->occurrences[i];
    }
    return 0;
}

/* Takes the anchors out of posting i. Returns false if nothing is left. */
static bool without_anchor(struct wb_posting_block *block, uint32_t i, uint8_t *extra_out, size_t *extra_len_out)
{
    uint32_t frequency[WB_FIELDS];

    WB_CHECK(wb_code_frequencies(block->code[i], block->extra + block->extra_at[i],
                                 block->extra + block->extra_at[i + 1], frequency) != NULL);
    block->occurrences[i] -= frequency[WB_FIELD_ANCHOR]; /* their gaps are the last ones of the posting */
    frequency[WB_FIELD_ANCHOR] = 0;
    if (block->occurrences[i] == 0)
        return false;
    block->code[i] = wb_code_put(frequency, extra_out, extra_len_out);
    return true;
}

/* Where the next posting that stays goes to, and where the next one comes from: number, extra bytes, gaps. */
struct block_move {
    uint32_t to, from;
    size_t extra_to, gap_to, gap_from;
};

/* Moves the postings from m->from to the one before `end`, which stay as they are, all at once. */
static void move_run(struct wb_posting_block *block, struct block_move *m, uint32_t end)
{
    uint32_t n = end - m->from;
    size_t extra_from = block->extra_at[m->from], extra_len = block->extra_at[end] - extra_from, gaps = 0;

    WB_CHECK(m->to <= m->from && m->extra_to <= extra_from);
    for (uint32_t i = m->from; i < end; i++)
        gaps += block->occurrences[i];
    if (m->to < m->from) {
        memmove(block->docid + m->to, block->docid + m->from, n * sizeof *block->docid);
        memmove(block->code + m->to, block->code + m->from, n * sizeof *block->code);
        memmove(block->occurrences + m->to, block->occurrences + m->from, n * sizeof *block->occurrences);
    }
    if (m->to < m->from || m->extra_to < extra_from) {
        memmove(block->extra + m->extra_to, block->extra + extra_from, extra_len);
        for (uint32_t i = 0; i < n; i++)
            block->extra_at[m->to + i] = (uint16_t)(block->extra_at[m->from + i] - (extra_from - m->extra_to));
    }
    if (block->gap_count && m->gap_to < m->gap_from)
        memmove(block->gaps + m->gap_to, block->gaps + m->gap_from, gaps * sizeof *block->gaps);
    m->to += n;
    m->from = end;
    m->extra_to += extra_len;
    m->gap_to += gaps;
    m->gap_from += gaps;
}

/* Moves one posting without its anchors, if anything is left of it. Its gaps of anchors come last. */
static void move_without_anchor(struct wb_posting_block *block, struct block_move *m)
{
    uint8_t extra[WB_POSTING_EXTRA_MAX];
    size_t extra_len;
    uint32_t i = m->from, gaps = block->occurrences[i];

    if (without_anchor(block, i, extra, &extra_len)) {
        WB_CHECK(m->extra_to + extra_len <= block->extra_at[i + 1]);
        block->docid[m->to] = block->docid[i];
        block->code[m->to] = block->code[i];
        block->occurrences[m->to] = block->occurrences[i];
        memcpy(block->extra + m->extra_to, extra, extra_len);
        block->extra_at[m->to] = (uint16_t)m->extra_to;
        m->extra_to += extra_len;
        if (block->gap_count)
            memmove(block->gaps + m->gap_to, block->gaps + m->gap_from,
                    block->occurrences[m->to] * sizeof *block->gaps);
        m->gap_to += block->occurrences[m->to++];
    }
    m->gap_from += gaps;
    m->from++;
}

void wb_posting_block_filter(struct wb_posting_block *block, const uint8_t keep[WB_BLOCK_POSTINGS])
{
    struct block_move m = {.to = 0};

    while (m.from < block->count) {
        uint32_t end = m.from;
        while (end < block->count && keep[end] == WB_KEEP_ALL)
            end++;
        if (end > m.from) {
            move_run(block, &m, end);
        } else if (keep[end] == WB_KEEP_NO_ANCHOR) {
            move_without_anchor(block, &m);
        } else {
            m.gap_from += block->occurrences[m.from];
            m.from++;
        }
    }
    block->count = m.to;
    block->extra_at[m.to] = (uint16_t)m.extra_to;
    block->gap_count = block->gap_count ? m.gap_to : 0;
}
