/*
 * fuzz_postings.c - reads a hostile list and hostile positions, without checksums, in every way there is.
 *
 *   input   flags (1: bit 0 positions, bit 1 inlined), number of postings (4), occurrences (4), bytes of the list (4),
 *           the list, and then the positions
 *
 * Nothing may be read outside of these bytes. Docids that come out ascend and are below the limit, and what can be read
 * as blocks can be written again.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "postings/postlist.h"

#include <stdlib.h>

enum { DOCS = 1 << 17, STEPS_MAX = 2000, HEAD = 1 + 4 + 4 + 4, WINDOW = 2048 };

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static uint8_t lengths[DOCS];

/* A blob around a copy of the exact size. All its pieces count as checked. */
static void make_blob(struct wb_blob *blob, const uint8_t *bytes, size_t len)
{
    char *copy = malloc(len ? len : 1);

    WB_CHECK(copy != NULL);
    if (len)
        memcpy(copy, bytes, len);
    *blob = (struct wb_blob){.data = copy, .bytes = len, .map = copy, .map_bytes = len, .path = (char *)"fuzz"};
    blob->checked = malloc(len / 65536 + 1);
    WB_CHECK(blob->checked != NULL);
    memset(blob->checked, 1, len / 65536 + 1);
}

static void free_blob(struct wb_blob *blob)
{
    free(blob->map);
    free(blob->checked);
}

static void read_posting(struct wb_postlist *list, bool positions)
{
    uint32_t frequency[WB_FIELDS];
    struct wb_positions where;

    if (wb_postlist_weight(list) == 0 && list->error)
        return;
    if (wb_postlist_frequencies(list, frequency) < 0)
        return;
    WB_CHECK(wb_occurrences(frequency) > 0);
    if (!positions || wb_postlist_positions(list, &where) < 0)
        return;
    uint64_t sum = 0;
    uint32_t counts[WB_SPACES];
    const uint32_t *some;
    if (wb_postlist_counts(list, counts) < 0)
        return;
    WB_CHECK(memcmp(counts, where.count, sizeof counts) == 0);
    for (int space = WB_SPACES; space-- > 0;)
        if (counts[space] && wb_postlist_positions_in(list, counts, (enum wb_space)space, 0, &some) < 0)
            return;
    if (wb_postlist_positions(list, &where) < 0) /* what it gave before was replaced */
        return;
    for (int space = 0; space < WB_SPACES; space++)
        for (uint32_t i = 0; i < where.count[space]; i++)
            sum += where.at[space][i];
    WB_CHECK(sum <= (uint64_t)UINT32_MAX * wb_occurrences(frequency)); /* so that all of them are read */
}

static void walk(struct wb_postlist *list, bool positions)
{
    uint32_t steps = 0, last = 0;

    for (uint32_t docid = list->docid; docid != WB_DOCID_END && steps < STEPS_MAX; docid = wb_postlist_next(list)) {
        WB_CHECK(docid < DOCS && (steps == 0 || docid > last));
        last = docid;
        steps++;
        read_posting(list, positions);
    }
}

static void jump(struct wb_postlist *list, const struct wb_scorer *scorer, struct wb_slice input, bool positions)
{
    static uint32_t sums[WINDOW];
    uint64_t bits[WINDOW / 64] = {0};

    for (size_t i = 0; i < input.len && i < 64 && !list->error; i++) {
        uint32_t target = (uint32_t)((uint8_t)input.ptr[i] * 2654435761u) % DOCS, base = target / WINDOW * WINDOW;
        wb_postlist_bound_range(list, scorer, base, base + WINDOW - 1);
        wb_postlist_block_last(list, target);
        uint32_t docid = wb_postlist_seek(list, target);
        WB_CHECK(docid == WB_DOCID_END || docid < DOCS);
        if (docid != WB_DOCID_END)
            read_posting(list, positions);
        switch ((uint8_t)input.ptr[i] % 4) {
        case 0:
            docid = wb_postlist_fill(list, base, WINDOW, NULL, bits);
            break;
        case 1:
            docid = wb_postlist_sum(list, base, WINDOW, scorer, sums, bits);
            break;
        case 2:
            docid = wb_postlist_sum_masked(list, base, WINDOW, scorer, sums, bits, NULL);
            break;
        default:
            docid = wb_postlist_next(list);
        }
        WB_CHECK(docid == WB_DOCID_END || docid < DOCS);
    }
    wb_postlist_bound(list, scorer);
}

/* Adds all postings of a block. */
static int add_block(struct wb_postings_writer *writer, const struct wb_posting_block *block)
{
    size_t gap_at = 0;

    return wb_postings_add_range(writer, block, 0, block->count, &gap_at);
}

static void rewrite(struct wb_postlist *list, bool positions)
{
    struct wb_postings_writer *writer;
    struct wb_posting_block block = WB_POSTING_BLOCK_INIT;
    uint8_t keep[WB_BLOCK_POSTINGS];
    int more;

    for (int i = 0; i < WB_BLOCK_POSTINGS; i++)
        keep[i] = (uint8_t)(i % 3);
    WB_CHECK(wb_postings_writer_new(lengths, DOCS, &writer) == 0);
    WB_CHECK(wb_postings_begin(writer, WB_SLICE_LIT("term"), positions) == 0);
    for (uint32_t n = 0; (more = wb_postlist_read(list, n, &block)) == 1 && n < STEPS_MAX / WB_BLOCK_POSTINGS; n++) {
        struct wb_posting posting;
        WB_CHECK(wb_posting_block_get(&block, block.count - 1, &posting) == 0);
        if (n % 2)
            wb_posting_block_filter(&block, keep);
        if (add_block(writer, &block) < 0)
            break;
    }
    wb_posting_block_release(&block);
    wb_postings_writer_free(writer);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct wb_postings set = {.lengths = lengths, .docs = DOCS};
    struct wb_term term = {0};
    struct wb_scorer scorer;

    if (size < HEAD)
        return 0;
    bool positions = data[0] & 1, inlined = data[0] & 2;
    size_t list_len = wb_get32(data + 9), rest = size - HEAD;
    list_len = list_len < rest ? list_len : rest;
    wb_scorer_init(&scorer, 2, 1.2, 0.75, 100, 1);
    make_blob(&set.dictionary, data + HEAD, inlined ? rest : 0);
    make_blob(&set.lists, data + HEAD, list_len);
    make_blob(&set.positions, data + HEAD + list_len, rest - list_len);
    term.df = wb_get32(data + 1);
    term.total = wb_get32(data + 5);
    term.positions = positions;
    term.list_bytes = list_len;
    term.positions_bytes = rest - list_len;
    if (inlined)
        term.inlined = wb_slice(set.dictionary.data, rest);
    for (int way = 0; way < 3; way++) {
        struct wb_postlist *list;
        if (wb_postlist_open(&set, &term, &list) < 0)
            break;
        if (way == 0)
            walk(list, positions);
        else if (way == 1)
            jump(list, &scorer, wb_slice((const char *)data, size), positions);
        else
            rewrite(list, positions);
        wb_postlist_close(list);
    }
    free_blob(&set.dictionary);
    free_blob(&set.lists);
    free_blob(&set.positions);
    return 0;
}
