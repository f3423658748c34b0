/*
 * list_write.c - makes lists in memory, term by term; see listformat.h for the bytes.
 *
 * Postings wait in arrays until a block is full. The skip data of a list precedes its blocks, and is complete only at
 * the end of the list; so the blocks of a list are gathered in a buffer and copied once. It never touches a file.
 */
#include "postings/postlist.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"

enum { LIST_WRITER_MAGIC = 0x5742504c }; /* "WBPL" */

struct wb_postings_writer {
    uint32_t magic;
    const uint8_t *lengths;
    uint32_t docs;
    struct wb_postings_part part; /* the lists that are complete */
    struct wb_buf last_key;       /* of the list before the current one; empty before the first */
    struct wb_error_copy error;   /* the first error; code 0 if there was none */

    /* The list before the current one, if it is still in part: what the next one may share. */
    size_t previous_at, previous_len; /* in part.lists */
    uint32_t previous_df;             /* 0: there is none */
    bool previous_inlined;
    uint8_t previous_bytes[LIST_INLINE_BYTES];

    /* The current list. */
    bool open, positions;
    bool whole; /* it was copied, and is complete */
    struct wb_buf key;
    uint32_t df; /* including the postings that wait */
    uint64_t total;
    uint32_t lowest;                    /* the docid after that of the last complete block */
    uint64_t next;                      /* the lowest docid that the next posting may have */
    struct wb_buf lasts, ends, impacts; /* of the complete blocks */
    struct wb_buf blocks;               /* the complete blocks */
    uint64_t gap_count;                 /* of the list, including the gaps that wait */
    struct wb_buf before, starts;       /* of each block: gaps before it, and where their pack starts; 8 bytes each */
    struct wb_buf packs;                /* the complete packs */

    /* Postings and gaps that wait for their block and their pack to be full. */
    uint32_t count, pending_gaps;
    uint32_t docids[WB_BLOCK_POSTINGS], codes[WB_BLOCK_POSTINGS];
    struct wb_buf extra;
    uint32_t gaps[BITPACK_MAX];
    struct wb_impact_table table;
};

int wb_postings_writer_new(const uint8_t *lengths, uint32_t docs, struct wb_postings_writer **writer_out)
{
    struct wb_postings_writer *writer = wb_alloc_zero(1, sizeof *writer);

    *writer_out = writer;
    if (!writer)
        return WB_E_NOMEM;
    writer->magic = LIST_WRITER_MAGIC;
    writer->lengths = lengths;
    writer->docs = docs;
    return 0;
}

void wb_postings_part_release(struct wb_postings_part *part)
{
    wb_buf_release(&part->entries);
    wb_buf_release(&part->lists);
    wb_buf_release(&part->positions);
    *part = WB_POSTINGS_PART_INIT;
}

void wb_postings_writer_free(struct wb_postings_writer *writer)
{
    if (!writer)
        return;
    WB_CHECK(writer->magic == LIST_WRITER_MAGIC);
    writer->magic = 0;
    wb_postings_part_release(&writer->part);
    wb_buf_release(&writer->last_key);
    wb_buf_release(&writer->key);
    wb_buf_release(&writer->lasts);
    wb_buf_release(&writer->ends);
    wb_buf_release(&writer->impacts);
    wb_buf_release(&writer->blocks);
    wb_buf_release(&writer->before);
    wb_buf_release(&writer->starts);
    wb_buf_release(&writer->packs);
    wb_buf_release(&writer->extra);
    wb_free(writer);
}

size_t wb_postings_writer_bytes(const struct wb_postings_writer *writer)
{
    return writer->part.entries.len + writer->part.lists.len + writer->part.positions.len;
}

/* Keeps the first error. */
static int note(struct wb_postings_writer *writer, int err)
{
    if (err < 0 && !writer->error.code)
        wb_error_save(err, &writer->error);
    return err;
}

static int append64(struct wb_buf *buf, uint64_t v)
{
    char bytes[8];

    wb_put64(bytes, v);
    return wb_buf_append(buf, bytes, sizeof bytes);
}

static int append32(struct wb_buf *buf, uint32_t v)
{
    char bytes[4];

    wb_put32(bytes, v);
    return wb_buf_append(buf, bytes, sizeof bytes);
}

static int append_varint(struct wb_buf *buf, uint64_t v)
{
    char bytes[WB_VARINT_MAX];

    return wb_buf_append(buf, bytes, wb_put_varint(bytes, v));
}

/* ---- blocks and packs ------------------------------------------------------------------------------ */

/* The impacts of the postings that wait. */
static int append_impacts(struct wb_postings_writer *writer)
{
    uint8_t impacts[IMPACTS_BYTES];

    wb_impact_table_clear(&writer->table);
    for (uint32_t i = writer->count; i % 4; i++)
        writer->codes[i] = 0;
    for (uint32_t i = 0; i < writer->count; i += 4) {
        wb_vec4 codes = wb_weight_code4(wb_code_weight4(*(const wb_vec4_any *)&writer->codes[i]));
        for (uint32_t k = 0; k < 4 && i + k < writer->count; k++)
            wb_impact_table_add(&writer->table, (uint8_t)codes[k], writer->lengths[writer->docids[i + k]]);
    }
    wb_impact_table_put(&writer->table, impacts);
    return wb_buf_append(&writer->impacts, impacts, sizeof impacts);
}

/* Makes a block of the postings that wait. */
static int finish_block(struct wb_postings_writer *writer)
{
    struct wb_buf *blocks = &writer->blocks;
    int err = wb_buf_reserve(blocks, 2 * BITPACK_BYTES + writer->extra.len);

    WB_CHECK(writer->count > 0);
    if (err < 0)
        return err;
    blocks->len += wb_docids_put(writer->docids, writer->count, writer->lowest, (uint8_t *)blocks->ptr + blocks->len);
    blocks->len += wb_bitpack(writer->codes, writer->count, (uint8_t *)blocks->ptr + blocks->len);
    err = wb_buf_append_slice(blocks, wb_buf_slice(&writer->extra));
    if (err == 0 && blocks->len > UINT32_MAX)
        err = wb_fail(WB_E_LIMIT, "the list of a term has more than 4 GiB");
    /* A list of one block has no skip data. */
    if (err == 0 && (writer->df > WB_BLOCK_POSTINGS || writer->count == WB_BLOCK_POSTINGS))
        err = append_impacts(writer);
    if (err == 0)
        err = append32(&writer->lasts, writer->docids[writer->count - 1]);
    if (err == 0)
        err = append32(&writer->ends, (uint32_t)blocks->len);
    writer->lowest = writer->docids[writer->count - 1] + 1;
    writer->count = 0;
    wb_buf_clear(&writer->extra);
    return err;
}

/* Called when the first posting of a block arrives: notes where its positions start. */
static int begin_block(struct wb_postings_writer *writer)
{
    int err = append64(&writer->before, writer->gap_count);

    WB_CHECK(writer->count == 0);
    return err == 0 ? append64(&writer->starts, writer->packs.len) : err;
}

static int finish_pack(struct wb_postings_writer *writer)
{
    struct wb_buf *packs = &writer->packs;
    int err = wb_buf_reserve(packs, BITPACK_BYTES);

    WB_CHECK(writer->pending_gaps > 0);
    if (err < 0)
        return err;
    packs->len += wb_bitpack(writer->gaps, writer->pending_gaps, (uint8_t *)packs->ptr + packs->len);
    writer->pending_gaps = 0;
    return 0;
}

static int add_gaps(struct wb_postings_writer *writer, const uint32_t *gaps, size_t count)
{
    int err = 0;

    writer->gap_count += count;
    while (err == 0 && count > 0) {
        size_t room = BITPACK_MAX - writer->pending_gaps, part = count < room ? count : room;
        memcpy(writer->gaps + writer->pending_gaps, gaps, part * sizeof *gaps);
        writer->pending_gaps += (uint32_t)part;
        gaps += part;
        count -= part;
        if (writer->pending_gaps == BITPACK_MAX)
            err = finish_pack(writer);
    }
    return err;
}

/* ---- postings -------------------------------------------------------------------------------------- */

int wb_postings_begin(struct wb_postings_writer *writer, struct wb_slice key, bool positions)
{
    WB_CHECK(writer->magic == LIST_WRITER_MAGIC);
    WB_CHECK(!writer->open);
    if (writer->error.code)
        return wb_error_restore(&writer->error);
    if (key.len == 0 || key.len > WB_TERM_MAX)
        return note(writer, wb_fail(WB_E_INVALID, "a term has %zu bytes; it must have 1 to %u", key.len, WB_TERM_MAX));
    if (wb_slice_compare(wb_buf_slice(&writer->last_key), key) >= 0)
        return note(writer, wb_fail(WB_E_INVALID, "the term \"%.*s\" is not in order", WB_SLICE_ARG(key)));
    wb_buf_clear(&writer->key);
    writer->open = true;
    writer->whole = false;
    writer->positions = positions;
    writer->df = 0;
    writer->total = writer->gap_count = writer->next = 0;
    writer->lowest = writer->count = writer->pending_gaps = 0;
    wb_buf_clear(&writer->lasts);
    wb_buf_clear(&writer->ends);
    wb_buf_clear(&writer->impacts);
    wb_buf_clear(&writer->blocks);
    wb_buf_clear(&writer->before);
    wb_buf_clear(&writer->starts);
    wb_buf_clear(&writer->packs);
    wb_buf_clear(&writer->extra);
    return note(writer, wb_buf_append_slice(&writer->key, key));
}

static int check_docid(const struct wb_postings_writer *writer, uint32_t docid)
{
    if (docid < writer->next || docid >= writer->docs)
        return wb_fail(WB_E_INVALID, "a posting of the term \"%.*s\" has docid %u: it is not in order",
                       WB_SLICE_ARG(wb_buf_slice(&writer->key)), docid);
    return 0;
}

int wb_postings_add(struct wb_postings_writer *writer, const struct wb_posting *posting)
{
    uint64_t occurrences = wb_occurrences(posting->frequency);
    uint8_t extra[WB_POSTING_EXTRA_MAX];
    size_t extra_len;

    WB_CHECK(writer->magic == LIST_WRITER_MAGIC);
    WB_CHECK((writer->open && !writer->whole) || writer->error.code);
    if (writer->error.code)
        return wb_error_restore(&writer->error);
    int err = check_docid(writer, posting->docid);
    for (int f = 0; err == 0 && f < WB_FIELDS; f++)
        if (posting->frequency[f] > LISTBLOCK_FREQUENCY_MAX)
            err = wb_fail(WB_E_INVALID, "a frequency of %u is too large", posting->frequency[f]);
    if (err == 0 &&
        (occurrences == 0 || occurrences > UINT32_MAX || posting->gap_count != (writer->positions ? occurrences : 0)))
        err = wb_fail(WB_E_INVALID, "a posting of the term \"%.*s\" occurs %llu times and has %zu positions",
                      WB_SLICE_ARG(wb_buf_slice(&writer->key)), (unsigned long long)occurrences, posting->gap_count);
    if (err == 0 && writer->count == WB_BLOCK_POSTINGS)
        err = finish_block(writer);
    if (err == 0 && writer->count == 0)
        err = begin_block(writer);
    if (err < 0)
        return note(writer, err);
    writer->docids[writer->count] = posting->docid;
    writer->codes[writer->count++] = wb_code_put(posting->frequency, extra, &extra_len);
    writer->df++;
    writer->total += occurrences;
    writer->next = (uint64_t)posting->docid + 1;
    if (extra_len)
        err = wb_buf_append(&writer->extra, extra, extra_len);
    if (err == 0 && posting->gap_count)
        err = add_gaps(writer, posting->gaps, posting->gap_count);
    return note(writer, err);
}

/* Adds the postings [from, to) as far as they still fit into the block; returns how many in *taken_out. */
static int add_some(struct wb_postings_writer *writer, const struct wb_posting_block *block, uint32_t from, uint32_t to,
                    uint32_t *taken_out)
{
    uint32_t room = WB_BLOCK_POSTINGS - writer->count, left = to - from, n = left < room ? left : room;
    uint64_t next = writer->next;
    bool ascending = true;

    WB_CHECK(n > 0);
    *taken_out = n;
    for (uint32_t i = from; i < from + n; i++) {
        ascending &= block->docid[i] >= next;
        next = (uint64_t)block->docid[i] + 1;
        writer->total += block->occurrences[i];
    }
    if (!ascending || next > writer->docs)
        return wb_fail(WB_E_INVALID, "postings of the term \"%.*s\" are not in order",
                       WB_SLICE_ARG(wb_buf_slice(&writer->key)));
    memcpy(writer->docids + writer->count, block->docid + from, n * sizeof *block->docid);
    memcpy(writer->codes + writer->count, block->code + from, n * sizeof *block->code);
    writer->count += n;
    writer->df += n;
    writer->next = next;
    return wb_buf_append(&writer->extra, block->extra + block->extra_at[from],
                         (size_t)(block->extra_at[from + n] - block->extra_at[from]));
}

int wb_postings_add_range(struct wb_postings_writer *writer, const struct wb_posting_block *block, uint32_t from,
                          uint32_t to, size_t *gap_at)
{
    int err = 0;

    WB_CHECK(writer->magic == LIST_WRITER_MAGIC);
    WB_CHECK((writer->open && !writer->whole) || writer->error.code);
    WB_CHECK(from <= to && to <= block->count && block->count <= WB_BLOCK_POSTINGS);
    if (writer->error.code)
        return wb_error_restore(&writer->error);
    if (from < to && writer->positions != (block->gap_count > 0))
        err = wb_fail(WB_E_INVALID, "a block of the term \"%.*s\" has %zu positions",
                      WB_SLICE_ARG(wb_buf_slice(&writer->key)), block->gap_count);
    for (uint32_t taken; err == 0 && from < to; from += taken) {
        size_t gaps = 0;
        taken = 0;
        if (writer->count == WB_BLOCK_POSTINGS)
            err = finish_block(writer);
        if (err == 0 && writer->count == 0)
            err = begin_block(writer);
        if (err == 0)
            err = add_some(writer, block, from, to, &taken);
        for (uint32_t i = from; i < from + taken; i++)
            gaps += block->occurrences[i];
        if (err == 0 && writer->positions) {
            WB_CHECK(*gap_at <= block->gap_count && gaps <= block->gap_count - *gap_at);
            err = add_gaps(writer, block->gaps + *gap_at, gaps);
        }
        *gap_at += gaps;
    }
    return note(writer, err);
}

int wb_postings_add_list(struct wb_postings_writer *writer, struct wb_postlist *list, const uint32_t *docids)
{
    struct wb_slice rest, packs;
    struct wb_buf *blocks = &writer->blocks;
    uint64_t next = 0;
    bool ascending = true;

    WB_CHECK(writer->magic == LIST_WRITER_MAGIC);
    WB_CHECK((writer->open && writer->df == 0 && list->df <= WB_BLOCK_POSTINGS) || writer->error.code);
    if (writer->error.code)
        return wb_error_restore(&writer->error);
    for (uint32_t i = 0; i < list->df; i++) {
        ascending &= docids[i] >= next;
        next = (uint64_t)docids[i] + 1;
    }
    int err = !ascending || next > writer->docs ? wb_fail(WB_E_INVALID, "the documents of a list are not in order") : 0;
    if (err == 0)
        err = wb_postlist_bytes(list, writer->positions, &rest, &packs);
    if (err == 0)
        err = begin_block(writer);
    if (err == 0)
        err = wb_buf_reserve(blocks, BITPACK_BYTES + rest.len);
    if (err < 0)
        return note(writer, err);
    blocks->len += wb_docids_put(docids, list->df, 0, (uint8_t *)blocks->ptr + blocks->len);
    writer->whole = true;
    writer->df = list->df;
    writer->total = list->own->term.total;
    err = wb_buf_append_slice(blocks, rest);
    return note(writer, err < 0 ? err : wb_buf_append_slice(&writer->packs, packs));
}

/* ---- the end of a list ------------------------------------------------------------------------------- */

/* Appends the impacts of each group of `per` blocks. */
static int append_group_impacts(struct wb_postings_writer *writer, struct wb_buf *out, uint32_t per)
{
    uint32_t blocks = wb_list_blocks(writer->df);
    int err = 0;

    WB_CHECK(writer->impacts.len == (size_t)blocks * IMPACTS_BYTES);
    for (uint32_t b = 0; err == 0 && b < blocks;) {
        uint8_t impacts[IMPACTS_BYTES];
        wb_impact_table_clear(&writer->table);
        for (uint32_t stop = blocks - b > per ? b + per : blocks; b < stop; b++)
            wb_impact_table_add_all(&writer->table, (uint8_t *)writer->impacts.ptr + (size_t)b * IMPACTS_BYTES);
        wb_impact_table_put(&writer->table, impacts);
        err = wb_buf_append(out, impacts, sizeof impacts);
    }
    return err;
}

/* Appends the list to part.lists. */
static int append_list(struct wb_postings_writer *writer)
{
    struct wb_buf *lists = &writer->part.lists;
    uint32_t blocks = wb_list_blocks(writer->df);
    size_t at = lists->len;
    int err = wb_buf_reserve(lists, (size_t)wb_list_head_bytes(blocks) + writer->blocks.len);

    if (err == 0 && blocks > 1) {
        err = append_group_impacts(writer, lists, blocks);
        if (err == 0)
            err = wb_buf_append_slice(lists, wb_buf_slice(&writer->lasts));
        if (err == 0)
            err = wb_buf_append_slice(lists, wb_buf_slice(&writer->ends));
        if (err == 0)
            err = wb_buf_append_slice(lists, wb_buf_slice(&writer->impacts));
        if (err == 0 && blocks > LIST_GROUP)
            err = append_group_impacts(writer, lists, LIST_GROUP);
    }
    WB_CHECK(err < 0 || lists->len - at == wb_list_head_bytes(blocks));
    return err == 0 ? wb_buf_append_slice(lists, wb_buf_slice(&writer->blocks)) : err;
}

/* Appends numbers of 8 bytes as numbers of so many bytes. */
static int append_narrow(struct wb_buf *out, const struct wb_buf *numbers, unsigned width)
{
    int err = 0;

    for (size_t at = 0; err == 0 && at < numbers->len; at += 8)
        err = wb_buf_append(out, numbers->ptr + at, width); /* the low bytes come first */
    return err;
}

/* Appends the positions to part.positions. */
static int append_positions(struct wb_postings_writer *writer)
{
    struct wb_buf *positions = &writer->part.positions;
    int err = 0;

    WB_CHECK(writer->before.len == 8 * (size_t)wb_list_blocks(writer->df));
    if (wb_list_blocks(writer->df) > 1) {
        char widths[2] = {(char)wb_width_of(writer->gap_count), (char)wb_width_of(writer->packs.len)};
        err = wb_buf_append(positions, widths, sizeof widths);
        if (err == 0)
            err = append_narrow(positions, &writer->before, (unsigned)widths[0]);
        if (err == 0)
            err = append_narrow(positions, &writer->starts, (unsigned)widths[1]);
    }
    return err == 0 ? wb_buf_append_slice(positions, wb_buf_slice(&writer->packs)) : err;
}

/* Whether the list that was just appended at list_at is the one of the term before, so that it need not be kept. */
static bool is_alias(const struct wb_postings_writer *writer, size_t list_at)
{
    struct wb_slice key = wb_buf_slice(&writer->key), last = wb_buf_slice(&writer->last_key);
    struct wb_slice list = wb_slice(writer->part.lists.ptr + list_at, writer->part.lists.len - list_at);
    struct wb_slice previous = wb_slice(writer->previous_inlined ? (const char *)writer->previous_bytes
                                                                 : writer->part.lists.ptr + writer->previous_at,
                                        writer->previous_len);

    return writer->previous_df == writer->df && !writer->positions && key.len == last.len && key.len > 1 &&
           memcmp(key.ptr, last.ptr, key.len - 1) == 0 && wb_slice_equal(list, previous);
}

/* Appends the entry of the list that was just appended, and takes its bytes into the entry if they are few. */
static int append_entry(struct wb_postings_writer *writer, size_t list_at, size_t positions_at)
{
    struct wb_postings_part *part = &writer->part;
    struct wb_slice list = wb_slice(wb_buf_slice(&part->lists).ptr + list_at, part->lists.len - list_at);
    struct wb_slice positions =
        wb_slice(wb_buf_slice(&part->positions).ptr + positions_at, part->positions.len - positions_at);
    bool inlined = writer->df <= LIST_INLINE_POSTINGS && list.len + positions.len <= LIST_INLINE_BYTES;
    uint64_t first = (uint64_t)writer->df << 3 | (writer->positions ? 4 : 0) | (inlined ? ENTRY_INLINED : ENTRY_LIST);
    int err = append_varint(&part->entries, first);

    if (err == 0)
        err = append_varint(&part->entries, writer->total - writer->df);
    if (err == 0)
        err = append_varint(&part->entries, inlined ? list.len + positions.len : list.len);
    if (err == 0 && writer->positions && !inlined)
        err = append_varint(&part->entries, positions.len);
    if (err == 0 && inlined)
        err = wb_buf_append_slice(&part->entries, list);
    if (err == 0 && inlined && positions.len)
        err = wb_buf_append_slice(&part->entries, positions);
    writer->previous_df = writer->df;
    writer->previous_inlined = inlined;
    writer->previous_at = list_at;
    writer->previous_len = list.len;
    if (inlined) {
        memcpy(writer->previous_bytes, list.ptr, list.len);
        part->lists.len = list_at;
        part->positions.len = positions_at;
    }
    return err;
}

int wb_postings_end(struct wb_postings_writer *writer)
{
    size_t list_at = writer->part.lists.len, positions_at = writer->part.positions.len;
    int err = 0;

    WB_CHECK(writer->magic == LIST_WRITER_MAGIC);
    WB_CHECK(writer->open || writer->error.code);
    if (writer->error.code)
        return wb_error_restore(&writer->error);
    writer->open = false;
    if (writer->df == 0)
        return 0;
    if (!writer->whole)
        err = finish_block(writer);
    if (err == 0 && writer->pending_gaps)
        err = finish_pack(writer);
    if (err == 0)
        err = append_list(writer);
    if (err == 0 && writer->positions)
        err = append_positions(writer);
    if (err == 0)
        err = append_varint(&writer->part.entries, writer->key.len);
    if (err == 0)
        err = wb_buf_append_slice(&writer->part.entries, wb_buf_slice(&writer->key));
    if (err == 0 && is_alias(writer, list_at)) {
        writer->part.lists.len = list_at;
        err = append_varint(&writer->part.entries, ENTRY_ALIAS);
    } else if (err == 0) {
        err = append_entry(writer, list_at, positions_at);
    }
    struct wb_buf swap = writer->last_key;
    writer->last_key = writer->key;
    writer->key = swap;
    writer->part.terms++;
    return note(writer, err);
}

int wb_postings_take(struct wb_postings_writer *writer, struct wb_postings_part *part_out)
{
    WB_CHECK(writer->magic == LIST_WRITER_MAGIC);
    WB_CHECK(!writer->open || writer->error.code);
    *part_out = WB_POSTINGS_PART_INIT;
    if (writer->error.code)
        return wb_error_restore(&writer->error);
    *part_out = writer->part;
    writer->part = WB_POSTINGS_PART_INIT;
    writer->previous_df = 0;
    return 0;
}
