/* postingsource.c - reads postings for the merge. */
#include "index/postingsource.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "index/posting.h"

/* ---- runs -------------------------------------------------------------------------------------- */

static uint64_t take(struct wb_postingsource *source)
{
    uint64_t value = 0;
    bool ok = wb_get_varint(&source->at, source->end, &value);

    WB_CHECK(ok); /* a run is ours from beginning to end */
    return value;
}

int wb_postingsource_next(struct wb_postingsource *source)
{
    struct wb_posting *posting = &source->posting;
    uint32_t last = posting->docid == WB_DOCID_NONE ? 0 : posting->docid;
    size_t total = 0;

    if (source->left == 0) {
        posting->docid = WB_DOCID_NONE;
        return 0;
    }
    source->left--;
    posting->docid = last + (uint32_t)take(source);
    WB_CHECK(source->at < source->end);
    unsigned mask = (uint8_t)*source->at++;
    for (int field = 0; field < WB_FIELDS; field++) {
        posting->frequency[field] = mask >> field & 1 ? (uint32_t)take(source) : 0;
        total += posting->frequency[field];
    }
    posting->gap_count = source->positions ? total : 0;
    int err = wb_vec_reserve(&source->gaps, posting->gap_count + 1);
    if (err < 0)
        return err;
    for (size_t i = 0; i < posting->gap_count; i++)
        source->gaps.items[i] = (uint32_t)take(source);
    posting->gaps = source->gaps.items;
    return 0;
}

int wb_postingsource_run(struct wb_postingsource *source, const struct wb_run_cursor *cursor)
{
    WB_CHECK(cursor->key.len >= WB_TERM_TAIL && cursor->count > 0);
    source->positions = cursor->key.ptr[cursor->key.len - 1] == WB_TERM_EXACT;
    source->at = cursor->postings.ptr;
    source->end = source->at + cursor->postings.len;
    source->left = cursor->count;
    source->posting.docid = WB_DOCID_NONE; /* the first docid is counted from 0 */
    return wb_postingsource_next(source);
}

/* ---- the last generation ----------------------------------------------------------------------- */

int wb_postingsource_old(struct wb_postingsource *source, const struct wb_carry *carry, const struct wb_term *term,
                         bool positions)
{
    struct wb_term wanted = *term;

    WB_CHECK(carry->old != NULL);
    wb_postlist_close(source->list);
    source->list = NULL;
    source->carry = carry;
    source->positions = positions;
    wanted.positions = positions; /* a stem may share the list of an exact word, and has no use for its positions */
    source->block_number = 0;
    source->block.count = 0;
    source->next = 0;
    source->gap_at = 0;
    source->posting.docid = WB_DOCID_NONE;
    return wb_postlist_open(carry->old->postings, &wanted, &source->list);
}

static int unknown_document(const struct wb_carry *carry)
{
    return wb_fail(WB_E_CORRUPT, "%s: a list names a document that does not exist", carry->old->path);
}

int wb_postingsource_copy(struct wb_postingsource *source, struct wb_postings_writer *writer)
{
    const struct wb_carry *carry = source->carry;
    const struct wb_postlist *list = source->list;
    uint32_t docids[WB_BLOCK_POSTINGS];
    bool all = true;

    WB_CHECK(source->block_number == 0);
    if (list->df > WB_BLOCK_POSTINGS)
        return 0;
    WB_CHECK(list->block == 0 && list->count == list->df);
    for (uint32_t i = 0; i < list->df; i++) {
        if (list->docids[i] >= carry->old_urls)
            return unknown_document(carry);
        all &= carry->keep[list->docids[i]] == WB_KEEP_ALL;
        docids[i] = carry->docid[list->docids[i]];
    }
    if (!all)
        return 0;
    int err = wb_postings_add_list(writer, source->list, docids);
    return err < 0 ? err : 1;
}

/* Reads and filters the next block that has anything left. Returns 1, 0 at the end, or an error. */
static int next_block(struct wb_postingsource *source)
{
    const struct wb_carry *carry = source->carry;
    struct wb_posting_block *block = &source->block;
    uint8_t keep[WB_BLOCK_POSTINGS];

    WB_CHECK(source->next >= block->count); /* nothing of the block before is left */
    do {
        int more = wb_postlist_read(source->list, source->block_number, block);
        if (more <= 0)
            return more;
        source->block_number++;
        bool all = true;
        for (uint32_t i = 0; i < block->count; i++) {
            if (block->docid[i] >= carry->old_urls)
                return unknown_document(carry);
            keep[i] = carry->keep[block->docid[i]];
            all = all && keep[i] == WB_KEEP_ALL;
        }
        if (!all)
            wb_posting_block_filter(block, keep);
    } while (block->count == 0);
    for (uint32_t i = 0; i < block->count; i++)
        block->docid[i] = carry->docid[block->docid[i]];
    source->next = 0;
    source->gap_at = 0;
    return 1;
}

/* The number of the first posting of the block, from the next one on, whose docid is not below this one. */
static uint32_t find_in_block(const struct wb_postingsource *source, uint32_t docid)
{
    const uint32_t *docids = source->block.docid;
    uint32_t low = source->next, high = source->block.count;

    if (high > 0 && docids[high - 1] < docid)
        return high;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (docids[middle] < docid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int wb_postingsource_pass(struct wb_postingsource *source, uint32_t docid, struct wb_postings_writer *writer)
{
    WB_CHECK(source->list);
    for (;;) {
        uint32_t to = find_in_block(source, docid);
        int err = wb_postings_add_range(writer, &source->block, source->next, to, &source->gap_at);
        source->next = to;
        if (err < 0 || to < source->block.count)
            return err < 0 ? err : source->block.docid[to] == docid;
        int more = next_block(source);
        if (more <= 0) {
            source->next = source->block.count = 0;
            return more;
        }
    }
}

int wb_postingsource_take(struct wb_postingsource *source)
{
    WB_CHECK(source->next < source->block.count);
    source->gap_at += source->block.occurrences[source->next];
    return wb_posting_block_get(&source->block, source->next++, &source->posting);
}

void wb_postingsource_release(struct wb_postingsource *source)
{
    wb_postlist_close(source->list);
    wb_vec_release(&source->gaps);
    wb_posting_block_release(&source->block);
    *source = (struct wb_postingsource){.left = 0};
}
