/*
 * leaf.c - which documents of a window match a leaf.
 *
 * A leaf that has few candidates left is asked for each of them; otherwise its documents are put into bits, and the
 * words of bits are intersected. Lists that do not have the whole truth (fields, phrases) give candidates here.
 */
#include "base/check.h"
#include "base/error.h"
#include "query/queryplan.h"

#include <math.h>

void wb_bits_range(struct wb_window window, struct wb_windowbits *bits, uint32_t first, uint32_t end)
{
    uint64_t stop = (uint64_t)window.base + window.size;

    WB_CHECK(wb_window_is_sound(window));
    first = first > window.base ? first : window.base;
    end = end < stop ? end : (uint32_t)(stop < UINT32_MAX ? stop : UINT32_MAX);
    if (first >= end)
        return;
    uint32_t from = first - window.base, to = end - window.base - 1;
    for (uint32_t w = from / 64; w <= to / 64; w++) {
        uint64_t mask = UINT64_MAX;
        if (w == from / 64)
            mask &= UINT64_MAX << from % 64;
        if (w == to / 64)
            mask &= UINT64_MAX >> (63 - to % 64);
        bits->word[w] |= mask;
    }
}

/* ---- words ------------------------------------------------------------------------------------- */

/* Whether the document has the word. Moves the lists. */
static bool slot_has(struct wb_slot *slot, uint32_t docid)
{
    for (size_t i = 0; i < slot->list_count; i++)
        if (wb_list_has(slot->lists[i], docid))
            return true;
    return false;
}

static uint32_t slot_next(struct wb_slot *slot, uint32_t from)
{
    uint32_t next = WB_DOCID_END;

    for (size_t i = 0; i < slot->list_count; i++) {
        uint32_t docid = wb_postlist_seek(slot->lists[i], from);
        next = docid < next ? docid : next;
    }
    return next;
}

/* wanted: the documents of interest; NULL: all are. */
static void slot_fill(struct wb_slot *slot, struct wb_window window, const struct wb_windowbits *wanted,
                      struct wb_windowbits *bits)
{
    for (size_t i = 0; i < slot->list_count; i++)
        wb_postlist_fill(slot->lists[i], window.base, window.size, wanted ? wanted->word : NULL, bits->word);
}

static void slot_filter(struct wb_slot *slot, struct wb_window window, struct wb_windowbits *bits, uint32_t docs)
{
    uint32_t candidates = wb_bits_count(window, bits);
    struct wb_windowbits other;

    if (candidates == 0)
        return;
    WB_CHECK(docs > 0);
    /* Asking for one document takes about as long as filling in the bits of sixteen. */
    uint64_t expected = slot->df * window.size / docs;
    if (candidates < 4 || (uint64_t)candidates * 16 < expected + 64) {
        WB_EACH_DOC(window, bits, docid, {
            if (!slot_has(slot, docid))
                wb_bits_drop(bits, docid - window.base);
        })
        return;
    }
    wb_bits_clear(window, &other);
    slot_fill(slot, window, bits, &other);
    wb_bits_and(window, bits, other.word);
}

/* ---- documents, ranges, columns ------------------------------------------------------------------ */

/* The first of the documents that is not less than this one. */
static size_t docs_at(const struct wb_leaf_docs *docs, uint32_t from)
{
    size_t low = 0, high = docs->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (docs->items[middle] < from)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* The first range that ends after this document. Pages come before other URLs, so that ranges ascend. */
static size_t ranges_at(const struct wb_leaf_ranges *ranges, uint32_t from)
{
    size_t low = 0, high = ranges->count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges->items[middle].end <= from)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool number_matches(double value, enum wb_ask_op op, double number)
{
    switch (op) {
    case WB_ASK_EQ:
        return value == number;
    case WB_ASK_LT:
        return value < number;
    case WB_ASK_LE:
        return value <= number;
    case WB_ASK_GT:
        return value > number;
    case WB_ASK_GE:
        return value >= number;
    }
    return false;
}

static bool value_matches(const struct wb_leaf_column *column, uint32_t docid)
{
    int64_t value = 0;

    if (docid >= column->end)
        return false;
    switch (column->value) {
    case WB_VALUE_U8:
        value = ((const uint8_t *)column->values)[docid];
        break;
    case WB_VALUE_U16:
        value = ((const uint16_t *)column->values)[docid];
        break;
    case WB_VALUE_U32:
        value = ((const uint32_t *)column->values)[docid];
        break;
    case WB_VALUE_U64: {
        uint64_t big = ((const uint64_t *)column->values)[docid];
        value = big < INT64_MAX ? (int64_t)big : INT64_MAX;
        break;
    }
    case WB_VALUE_I64:
        value = ((const int64_t *)column->values)[docid];
        break;
    case WB_VALUE_SELF:
        return ((const uint32_t *)column->values)[docid] == docid;
    case WB_VALUE_DOUBLE: {
        double number = ((const double *)column->values)[docid];
        return !isnan(number) && number_matches(number, column->op, column->number);
    }
    }
    return value >= column->low && value <= column->high && !(column->has_none && value == column->none);
}

static void column_filter(const struct wb_leaf_column *column, struct wb_window window, struct wb_windowbits *bits)
{
    WB_CHECK(column->values);
    WB_EACH_DOC(window, bits, docid, {
        if (!value_matches(column, docid))
            wb_bits_drop(bits, docid - window.base);
    })
}

/* ---- all kinds ----------------------------------------------------------------------------------- */

static uint32_t words_next(const struct wb_leaf_words *words, uint32_t from)
{
    uint32_t next = from;

    WB_CHECK(words->slot_count > 0); /* or every document would have them all */
    for (size_t i = 0; i < words->slot_count && next != WB_DOCID_END; i++) {
        uint32_t docid = slot_next(&words->slots[i], next);
        next = docid > next ? docid : next;
    }
    return next;
}

static uint32_t docs_next(const struct wb_leaf_docs *docs, uint32_t from)
{
    size_t at = docs_at(docs, from);

    return at < docs->count ? docs->items[at] : WB_DOCID_END;
}

static uint32_t ranges_next(const struct wb_leaf_ranges *ranges, uint32_t from)
{
    size_t at = ranges_at(ranges, from);

    if (at == ranges->count)
        return WB_DOCID_END;
    return ranges->items[at].first > from ? ranges->items[at].first : from;
}

uint32_t wb_leaf_next(struct wb_leaf *leaf, uint32_t from)
{
    switch (leaf->kind) {
    case WB_LEAF_NOTHING:
        return WB_DOCID_END;
    case WB_LEAF_WORDS:
        return words_next(WB_WORDS_OF(leaf), from);
    case WB_LEAF_DOCS:
        return docs_next(WB_DOCS_OF(leaf), from);
    case WB_LEAF_BITS:
        return leaf->cost ? from : WB_DOCID_END;
    case WB_LEAF_RANGES:
        return ranges_next(WB_RANGES_OF(leaf), from);
    case WB_LEAF_COLUMN:
        return from < WB_COLUMN_OF(leaf)->end ? from : WB_DOCID_END;
    }
    return WB_DOCID_END;
}

/* Adds the bits of another set. */
static void add_bits(struct wb_window window, struct wb_windowbits *bits, const uint64_t *other)
{
    for (uint32_t i = 0; i < window.size / 64; i++)
        bits->word[i] |= other[i];
}

static void words_fill(const struct wb_leaf_words *words, struct wb_window window, struct wb_windowbits *bits)
{
    struct wb_windowbits own;

    WB_CHECK(words->slot_count > 0);
    if (words->slot_count == 1) {
        slot_fill(&words->slots[0], window, NULL, bits);
        return;
    }
    wb_bits_clear(window, &own);
    slot_fill(&words->slots[0], window, NULL, &own);
    for (size_t i = 1; i < words->slot_count && wb_bits_any(window, &own); i++)
        slot_filter(&words->slots[i], window, &own, words->docs);
    add_bits(window, bits, own.word);
}

static void docs_fill(const struct wb_leaf_docs *docs, struct wb_window window, struct wb_windowbits *bits)
{
    for (size_t i = docs_at(docs, window.base); i < docs->count && docs->items[i] - window.base < window.size; i++)
        bits->word[(docs->items[i] - window.base) / 64] |= 1ull << docs->items[i] % 64;
}

static void ranges_fill(const struct wb_leaf_ranges *ranges, struct wb_window window, struct wb_windowbits *bits)
{
    uint64_t stop = (uint64_t)window.base + window.size;

    for (size_t i = ranges_at(ranges, window.base); i < ranges->count && ranges->items[i].first < stop; i++)
        wb_bits_range(window, bits, ranges->items[i].first, ranges->items[i].end);
}

static void column_fill(const struct wb_leaf_column *column, struct wb_window window, struct wb_windowbits *bits)
{
    struct wb_windowbits own;

    wb_bits_clear(window, &own);
    wb_bits_range(window, &own, 0, column->end);
    column_filter(column, window, &own);
    add_bits(window, bits, own.word);
}

void wb_leaf_fill(struct wb_leaf *leaf, struct wb_window window, struct wb_windowbits *bits)
{
    WB_CHECK(wb_window_is_sound(window));
    switch (leaf->kind) {
    case WB_LEAF_NOTHING:
        break;
    case WB_LEAF_WORDS:
        words_fill(WB_WORDS_OF(leaf), window, bits);
        break;
    case WB_LEAF_DOCS:
        docs_fill(WB_DOCS_OF(leaf), window, bits);
        break;
    case WB_LEAF_BITS:
        add_bits(window, bits, WB_BITS_OF(leaf)->words + window.base / 64);
        break;
    case WB_LEAF_RANGES:
        ranges_fill(WB_RANGES_OF(leaf), window, bits);
        break;
    case WB_LEAF_COLUMN:
        column_fill(WB_COLUMN_OF(leaf), window, bits);
        break;
    }
}

void wb_leaf_filter(struct wb_leaf *leaf, struct wb_window window, struct wb_windowbits *bits)
{
    struct wb_windowbits own;

    WB_CHECK(wb_window_is_sound(window));
    if (leaf->kind == WB_LEAF_WORDS) {
        const struct wb_leaf_words *words = WB_WORDS_OF(leaf);
        for (size_t i = 0; i < words->slot_count; i++)
            slot_filter(&words->slots[i], window, bits, words->docs);
    } else if (leaf->kind == WB_LEAF_COLUMN) {
        column_filter(WB_COLUMN_OF(leaf), window, bits);
    } else {
        wb_bits_clear(window, &own);
        wb_leaf_fill(leaf, window, &own);
        wb_bits_and(window, bits, own.word);
    }
}

/* ---- verifying ------------------------------------------------------------------------------------ */

/* Whether the word is in one of the fields that count. */
static int in_fields(struct wb_slot *slot, uint32_t docid, unsigned fields, bool *matches_out)
{
    uint32_t frequency[WB_FIELDS];
    int err = 0;

    WB_CHECK(fields >> WB_FIELDS == 0);
    *matches_out = false;
    for (size_t i = 0; err == 0 && !*matches_out && i < slot->list_count; i++) {
        if (!wb_list_has(slot->lists[i], docid))
            continue;
        err = wb_postlist_frequencies(slot->lists[i], frequency);
        for (unsigned f = 0; err == 0 && f < WB_FIELDS; f++)
            *matches_out |= (fields >> f & 1) && frequency[f];
    }
    return err;
}

bool wb_leaf_matches(struct wb_qplan *plan, struct wb_leaf *leaf, uint32_t docid)
{
    bool matches = true;
    int err = 0;

    struct wb_leaf_words *words = WB_WORDS_OF(leaf);
    WB_CHECK(leaf->verify);
    if (plan->err < 0)
        return false;
    if (++plan->verified > WB_PLAN_VERIFIED_MAX + 4ull * plan->searcher->urls) {
        plan->err = wb_fail(WB_E_LIMIT, "the phrases and fields of the query take too long to look for");
        return false;
    }
    /* Fields first: that needs no positions, and most candidates fail already here. */
    for (size_t i = 0; err == 0 && matches && words->fields && i < words->slot_count; i++)
        err = in_fields(&words->slots[i], docid, words->fields, &matches);
    if (err == 0 && matches && words->phrase)
        err = wb_phrase_matches(words, docid, &matches);
    if (err < 0)
        plan->err = err;
    return err == 0 && matches;
}

void wb_leaf_verify(struct wb_qplan *plan, struct wb_leaf *leaf, struct wb_window window, struct wb_windowbits *bits)
{
    WB_CHECK(wb_window_is_sound(window));
    WB_EACH_DOC(window, bits, docid, {
        if (!wb_leaf_matches(plan, leaf, docid))
            wb_bits_drop(bits, docid - window.base);
    })
}
