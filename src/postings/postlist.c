/*
 * postlist.c - moves through a list and decodes its blocks.
 *
 * The bytes may be hostile. The skip data is used only to find a block; what is decoded there must agree with it.
 */
#include "postings/postlist.h"
#include "base/check.h"
#include "base/mem.h"

int wb_postlist_fail(struct wb_postlist *list, int err)
{
    WB_CHECK(err < 0);
    if (!list->error)
        wb_error_save(err, &list->own->error);
    list->error = list->own->error.code;
    list->docid = list->docids[0] = WB_DOCID_END;
    list->at = list->count = 0;
    list->block = list->own->blocks;
    return list->error;
}

int wb_postlist_damaged(struct wb_postlist *list, const char *what)
{
    return wb_postlist_fail(list,
                            wb_fail(WB_E_CORRUPT, "%s is damaged: %s of a list make no sense", list->own->path, what));
}

int wb_postlist_error(const struct wb_postlist *list)
{
    return list->error ? wb_error_restore(&list->own->error) : 0;
}

/* ---- opening ------------------------------------------------------------------------------------- */

/* Finds the skip data of a list in the file and checks it against its checksums. */
static int find_skips(struct wb_postlist *list)
{
    struct wb_postlist_own *own = list->own;
    const struct wb_blob *blob = &own->set->lists;
    uint64_t head = wb_list_head_bytes(own->blocks);
    int err;

    if (own->term.list_bytes < head)
        return wb_postlist_damaged(list, "the sizes");
    /* A list of one block is small: all of it is checked, and no block needs to be checked later. */
    err = wb_blob_check(blob, own->term.list_at, own->blocks > 1 ? head : own->term.list_bytes);
    if (err == 0)
        err = wb_blob_check(blob, own->term.list_at + own->term.list_bytes, 0); /* its end is in the file, too */
    if (err < 0)
        return err;
    own->list = (const uint8_t *)blob->data + own->term.list_at;
    own->list_end = own->list + own->term.list_bytes;
    own->data = own->list + head;
    if (own->blocks > 1) {
        own->whole = own->list;
        own->lasts = own->whole + IMPACTS_BYTES;
        own->ends = own->lasts + 4 * (size_t)own->blocks;
        own->impacts = own->ends + 4 * (size_t)own->blocks;
        own->groups = own->impacts + IMPACTS_BYTES * (size_t)own->blocks;
    }
    return 0;
}

static int find_list(struct wb_postlist *list)
{
    struct wb_postlist_own *own = list->own;

    own->blocks = wb_list_blocks(list->df);
    if (list->df == 0 || list->df > own->set->docs)
        return wb_postlist_damaged(list, "the numbers");
    if (!own->term.inlined.ptr)
        return find_skips(list);
    if (own->blocks > 1)
        return wb_postlist_damaged(list, "the numbers");
    own->path = own->set->dictionary.path;
    own->list = own->data = (const uint8_t *)own->term.inlined.ptr;
    own->list_end = own->list + own->term.inlined.len;
    return 0;
}

int wb_postlist_open(struct wb_postings *set, const struct wb_term *term, struct wb_postlist **list_out)
{
    struct wb_postlist *list = wb_alloc(sizeof *list);
    struct wb_postlist_own *own = wb_alloc(sizeof *own);
    int err = list && own ? 0 : WB_E_NOMEM;

    *list_out = NULL;
    if (err == 0) {
        /* Not zeroed: the arrays are large, and each is filled before it is read. */
        list->docid = WB_DOCID_END;
        list->at = list->count = list->block = 0;
        list->error = 0;
        list->df = term->df;
        list->own = own;
        memset(own, 0, offsetof(struct wb_postlist_own, codes));
        own->positions_ready = false;
        own->positions = NULL;
        own->positions_cap = 0;
        own->magic = POSTLIST_MAGIC;
        own->set = set;
        own->term = *term;
        own->path = set->lists.path;
        err = find_list(list);
    }
    if (err == 0)
        err = wb_postlist_load(list, 0);
    if (err < 0) {
        wb_free(list);
        wb_free(own);
        return err;
    }
    list->docid = list->docids[0];
    *list_out = list;
    return 0;
}

void wb_postlist_close(struct wb_postlist *list)
{
    if (!list)
        return;
    WB_CHECK(list->own->magic == POSTLIST_MAGIC);
    list->own->magic = 0;
    wb_free(list->own->positions);
    wb_free(list->own);
    wb_free(list);
}

/* ---- blocks --------------------------------------------------------------------------------------- */

int wb_postlist_span(struct wb_postlist *list, uint32_t block, struct wb_postlist_span *span_out)
{
    struct wb_postlist_own *own = list->own;
    uint64_t room = (uint64_t)(own->list_end - own->data);

    WB_CHECK(block < own->blocks);
    if (own->blocks == 1) {
        *span_out = (struct wb_postlist_span){own->data, own->list_end, 0, own->set->docs - 1};
        return 0;
    }
    uint32_t start = block ? wb_get32(own->ends + 4 * (size_t)(block - 1)) : 0;
    uint32_t end = wb_get32(own->ends + 4 * (size_t)block), last = wb_postlist_last(own, block);
    uint32_t before = block ? wb_postlist_last(own, block - 1) : 0;
    if (start > end || end > room || last >= own->set->docs || (block && before >= last))
        return wb_postlist_damaged(list, "the skips");
    uint64_t at = own->term.list_at + (uint64_t)(own->data - own->list) + start;
    int err = wb_blob_check(&own->set->lists, at, end - start);
    if (err < 0)
        return wb_postlist_fail(list, err);
    *span_out = (struct wb_postlist_span){own->data + start, own->data + end, block ? before + 1 : 0, last};
    return 0;
}

int wb_postlist_load(struct wb_postlist *list, uint32_t block)
{
    struct wb_postlist_own *own = list->own;
    uint32_t count = wb_postlist_block_count(list, block);
    struct wb_postlist_span span;
    int err = wb_postlist_span(list, block, &span);

    WB_CHECK(own->magic == POSTLIST_MAGIC);
    if (err < 0)
        return err;
    own->codes_at = wb_docids_get(span.start, span.end, count, span.lowest, own->set->docs, list->docids);
    if (!own->codes_at || (own->blocks > 1 && list->docids[count - 1] != span.last))
        return wb_postlist_damaged(list, "the docids");
    own->block_end = span.end;
    own->have = 0;
    memset(list->docids + count, 0xff, WB_POSTLIST_PADDING * sizeof *list->docids); /* WB_DOCID_END */
    list->count = count;
    list->block = block;
    return 0;
}

uint32_t wb_postlist_next_block(struct wb_postlist *list)
{
    if (list->docid == WB_DOCID_END || list->block + 1 >= list->own->blocks) {
        list->at = list->count;
        return list->docid = WB_DOCID_END;
    }
    if (wb_postlist_load(list, list->block + 1) < 0)
        return WB_DOCID_END;
    list->at = 0;
    return list->docid = list->docids[0];
}

/* Doubles the step until the block is passed, then halves the interval. */
uint32_t wb_postlist_find(const struct wb_postlist *list, uint32_t docid, uint32_t near)
{
    const struct wb_postlist_own *own = list->own;
    uint32_t low = 0, high = near, step = 1; /* the answer is in [low, high] */

    if (own->blocks == 1)
        return 0;
    if (near >= own->blocks)
        near = 0;
    if (wb_postlist_last(own, near) < docid)
        for (low = high = near + 1; high < own->blocks && wb_postlist_last(own, high) < docid; step *= 2) {
            low = high + 1;
            high = step < own->blocks - low ? low + step : own->blocks;
        }
    else
        high = near;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (wb_postlist_last(own, middle) < docid)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* How many of 16 docids are below this one. */
static inline uint32_t count_below(const uint32_t *docids, uint32_t docid)
{
    typedef int32_t signed4 __attribute__((vector_size(16)));
    const uint32_t flip = 0x80000000; /* comparisons are signed */
    const int32_t limit = (int32_t)(docid ^ flip);
    signed4 below = {0};

#pragma GCC unroll 4
    for (int i = 0; i < 16; i += 4)
        below += (signed4)(*(const wb_vec4_any *)(docids + i) ^ flip) < (signed4){limit, limit, limit, limit};
    return (uint32_t) - (below[0] + below[1] + below[2] + below[3]);
}

uint32_t wb_postlist_within(const struct wb_postlist *list, uint32_t docid)
{
    const uint32_t *at = list->docids;

    /* Three steps for a full block; then all that is left at once, and what follows, which is not below. */
    for (uint32_t left = list->count; left > 16; left -= left / 2)
        at = at[left / 2 - 1] < docid ? at + left / 2 : at;
    return (uint32_t)(at - list->docids) + count_below(at, docid);
}

uint32_t wb_postlist_seek(struct wb_postlist *list, uint32_t docid)
{
    struct wb_postlist_own *own = list->own;

    if (list->error)
        return WB_DOCID_END;
    /* Somewhere in the block that is decoded? The first block holds everything below its last docid. */
    if (docid > list->docids[list->count - 1] || (docid < list->docids[0] && list->block > 0)) {
        uint32_t block = wb_postlist_find(list, docid, list->block);
        if (block >= own->blocks || (own->blocks == 1 && docid > list->docids[list->count - 1])) {
            list->at = list->count;
            return list->docid = WB_DOCID_END;
        }
        if (block != list->block) {
            if (wb_postlist_load(list, block) < 0)
                return WB_DOCID_END;
            list->at = 0;
        }
    }
    /* Most often it is one of the next postings. */
    if (list->at < list->count && list->docids[list->at] <= docid && list->docids[list->at + 15] >= docid)
        list->at += count_below(list->docids + list->at, docid);
    else
        list->at = wb_postlist_within(list, docid);
    return list->docid = list->docids[list->at];
}

/* ---- codes ---------------------------------------------------------------------------------------- */

int wb_postlist_need_codes(struct wb_postlist *list)
{
    struct wb_postlist_own *own = list->own;

    if (own->have & HAVE_CODES)
        return 0;
    own->extra_at = wb_bitunpack(own->codes_at, own->block_end, list->count, own->codes);
    if (!own->extra_at)
        return wb_postlist_damaged(list, "the frequencies");
    own->have |= HAVE_CODES;
    return 0;
}

int wb_postlist_need_weights(struct wb_postlist *list)
{
    struct wb_postlist_own *own = list->own;
    int err = own->have & HAVE_WEIGHTS ? 0 : wb_postlist_need_codes(list);

    if (err < 0 || own->have & HAVE_WEIGHTS)
        return err;
    for (uint32_t i = list->count; i % 4; i++)
        own->codes[i] = 0;
    for (uint32_t i = 0; i < list->count; i += 4) {
        wb_float4 weights = wb_code_weight4(*(const wb_vec4_any *)&own->codes[i]);
        memcpy(own->weights + i, &weights, sizeof weights);
    }
    own->have |= HAVE_WEIGHTS;
    return 0;
}

uint32_t wb_postlist_weight(struct wb_postlist *list)
{
    WB_CHECK(list->at < list->count);
    return wb_postlist_need_codes(list) < 0 ? 0 : wb_code_weight(list->own->codes[list->at]);
}

uint32_t wb_postlist_score(struct wb_postlist *list, const struct wb_scorer *scorer)
{
    uint32_t docid = list->docid;

    return wb_score(scorer, wb_postlist_weight(list), list->own->set->lengths[docid]);
}
