/*
 * linklist.c - a piece of a list of links as bytes.
 *
 *   varint   (items - 1) << 2; bit 0: all items have one kind; bit 1: all have one anchor
 *   varint   bytes of the kinds; absent if there is one kind
 *   varints  bytes of the uses, bytes of the anchors; absent if there is one anchor
 *   kinds    one kind; or runs: a kind, and a varint that says how many more items have it
 *   uses     absent if there is one anchor; otherwise runs, one varint each: (items - 1) << 2 | what
 *              0  each item has the next of the anchors, which is used for the first time
 *              1  the anchor of the previous item
 *              2  the anchor that was used before that one
 *              3  a varint follows: the position of the anchor in the anchors
 *   anchors  a byte with the length, and the bytes; in the order of first use, all different
 *   numbers  to the end: the first number as a varint, then for each one how much more than 1 it is above the last
 *
 *   kind     a byte: bits 0-3 tag, bits 4-7 flags; or 15, followed by a byte with the tag and one with the flags
 *
 * Data of one kind is kept together, and nothing is smaller than a byte, because zstd compresses many pieces together
 * and finds what repeats from piece to piece. A piece is valid if and only if its items use up every part exactly and
 * the numbers do not overflow. This file never looks at what numbers, tags and flags mean.
 */
#include "webdb/linklist.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"

enum {
    ONE_KIND = 1,
    ONE_ANCHOR = 2,
    USE_NEXT = 0,
    USE_SAME = 1,
    USE_OTHER = 2,
    USE_PLACE = 3,
    KIND_MAX = 3,
    KIND_ESCAPE = 15,
    RUN_MAX = 2,          /* bytes of the varint of a run */
    PLACE_MAX = 3,        /* bytes of the varint of a position */
    ANCHOR_MAX = 255,
    HEAD_MAX = 2 + 3 * WB_VARINT_MAX,
    SLOTS = 2 * WB_LINKLIST_ITEMS,
};

_Static_assert(WB_LINKLIST_ITEMS << 2 <= 1 << 14, "a run takes two bytes");
_Static_assert(WB_LINKLIST_ITEMS * (1 + ANCHOR_MAX) < 1 << 21, "a position takes three bytes");
_Static_assert((WB_LINKLIST_ITEMS & (WB_LINKLIST_ITEMS - 1)) == 0, "the hash table of anchors is a power of two");
_Static_assert(WB_LINKLIST_ITEMS < UINT16_MAX, "the hash table has 16 bits for the number of an anchor");
_Static_assert(KIND_ESCAPE == 15 && KIND_MAX == 3, "a kind as drawn above");
_Static_assert(USE_PLACE < 1 << 2, "a use has two bits");
_Static_assert(WB_LINKLIST_KEY_MAX == 8 + 4, "a key is a number and the number of a piece");
_Static_assert((ONE_KIND | ONE_ANCHOR) == 3, "two bits below the number of items");
_Static_assert(ANCHOR_MAX == UINT8_MAX, "the length of an anchor takes one byte");

/* ---- writing ------------------------------------------------------------------------------------ */

struct piece_anchor {
    struct wb_slice text;
    uint32_t hash;
    uint32_t place; /* its position in the anchors */
};

struct piece_encoder {
    uint8_t kinds[WB_LINKLIST_ITEMS * (KIND_MAX + RUN_MAX)];
    uint8_t uses[WB_LINKLIST_ITEMS * (RUN_MAX + PLACE_MAX)];
    size_t kinds_len, uses_len, kind_runs;
    struct piece_anchor anchors[WB_LINKLIST_ITEMS];
    uint16_t slots[SLOTS]; /* a hash table: the number of an anchor, counted from 1; 0 if the slot is free */
    size_t anchor_count, anchors_len;
};

static size_t put_kind(uint8_t *p, uint8_t tag, uint8_t flags)
{
    if (tag < KIND_ESCAPE && flags < 16) {
        p[0] = (uint8_t)(tag | flags << 4);
        return 1;
    }
    p[0] = KIND_ESCAPE;
    p[1] = tag;
    p[2] = flags;
    return KIND_MAX;
}

static void collect_kinds(struct piece_encoder *e, const struct wb_linkitem *items, size_t count)
{
    WB_CHECK(e->kinds_len == 0);
    WB_CHECK(count >= 1);
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && items[end].tag == items[i].tag && items[end].flags == items[i].flags; end++)
            ;
        e->kinds_len += put_kind(e->kinds + e->kinds_len, items[i].tag, items[i].flags);
        if (i == 0 && end == count)
            return;
        e->kinds_len += wb_put_varint(e->kinds + e->kinds_len, end - i - 1);
        e->kind_runs++;
    }
    WB_CHECK(e->kind_runs >= 2); /* a single run has no length */
    WB_CHECK(e->kinds_len <= sizeof e->kinds);
}

/* The number of an anchor; if it is new, it gets the next one. */
static uint32_t find_anchor(struct piece_encoder *e, struct wb_slice text, size_t mask)
{
    uint32_t hash = wb_hash32(text.ptr, text.len);

    for (size_t i = hash;; i++) {
        uint16_t *slot = &e->slots[i & mask];
        if (*slot == 0) {
            WB_CHECK(e->anchor_count < WB_LINKLIST_ITEMS);
            struct piece_anchor *anchor = &e->anchors[e->anchor_count];
            *anchor = (struct piece_anchor){text, hash, (uint32_t)e->anchors_len};
            e->anchors_len += 1 + text.len;
            *slot = (uint16_t)++e->anchor_count;
            return (uint32_t)e->anchor_count - 1;
        }
        struct piece_anchor *anchor = &e->anchors[*slot - 1];
        if (anchor->hash == hash && wb_slice_equal(anchor->text, text))
            return *slot - 1u;
    }
}

/* Ends a run of uses. */
static void put_use(struct piece_encoder *e, size_t run, unsigned what, uint32_t place)
{
    WB_CHECK(what <= USE_PLACE);
    WB_CHECK(run <= WB_LINKLIST_ITEMS);
    if (run == 0)
        return;
    e->uses_len += wb_put_varint(e->uses + e->uses_len, (run - 1) << 2 | what);
    if (what == USE_PLACE)
        e->uses_len += wb_put_varint(e->uses + e->uses_len, place);
}

static void collect_anchors(struct piece_encoder *e, const struct wb_linkitem *items, size_t count)
{
    size_t mask = 1, run = 0;
    uint32_t current = UINT32_MAX, other = UINT32_MAX;
    unsigned what = USE_NEXT;

    WB_CHECK(count >= 1);
    WB_CHECK(e->anchor_count == 0);
    while (mask < 2 * count)
        mask *= 2;
    mask--;
    memset(e->slots, 0, (mask + 1) * sizeof *e->slots);
    for (size_t i = 0; i < count; i++) {
        WB_CHECK(items[i].anchor.len <= ANCHOR_MAX);
        if (i > 0 && wb_slice_equal(items[i].anchor, e->anchors[current].text)) {
            if (what == USE_NEXT) { /* the run of new anchors is over */
                put_use(e, run, what, 0);
                run = 0;
                what = USE_SAME;
            }
            run++;
            continue;
        }
        size_t known = e->anchor_count;
        uint32_t found = find_anchor(e, items[i].anchor, mask);
        if (found < known || what != USE_NEXT) {
            put_use(e, run, what, current < e->anchor_count ? e->anchors[current].place : 0);
            run = 0;
        }
        what = found == known ? USE_NEXT : found == other ? USE_OTHER : USE_PLACE;
        run++;
        other = current;
        current = found;
    }
    WB_CHECK(current < e->anchor_count);
    WB_CHECK(e->anchor_count <= count);
    put_use(e, run, what, e->anchors[current].place);
}

static char *put_bytes(char *p, const void *bytes, size_t len)
{
    memcpy(p, bytes, len);
    return p + len;
}

static char *put_head(char *p, const struct piece_encoder *e, size_t count)
{
    bool one_kind = e->kind_runs == 0, one_anchor = e->anchor_count == 1;

    WB_CHECK(count >= 1);
    WB_CHECK(e->anchor_count >= 1);
    WB_CHECK(e->kinds_len >= 1);
    WB_CHECK(one_anchor || e->uses_len >= 1);
    p += wb_put_varint(p, (count - 1) << 2 | (one_kind ? ONE_KIND : 0) | (one_anchor ? ONE_ANCHOR : 0));
    if (!one_kind)
        p += wb_put_varint(p, e->kinds_len);
    if (!one_anchor) {
        p += wb_put_varint(p, e->uses_len);
        p += wb_put_varint(p, e->anchors_len);
    }
    p = put_bytes(p, e->kinds, e->kinds_len);
    return one_anchor ? p : put_bytes(p, e->uses, e->uses_len);
}

int wb_linklist_encode(const struct wb_linkitem *items, size_t count, struct wb_buf *piece_out)
{
    struct piece_encoder e; /* not cleared: its arrays are used only as far as they are filled */
    uint64_t last = 0;

    WB_CHECK(count >= 1);
    WB_CHECK(count <= WB_LINKLIST_ITEMS);
    e.kinds_len = e.uses_len = e.kind_runs = e.anchor_count = e.anchors_len = 0;
    collect_kinds(&e, items, count);
    collect_anchors(&e, items, count);
    WB_CHECK(e.kinds_len <= sizeof e.kinds);
    WB_CHECK(e.uses_len <= sizeof e.uses);
    int err = wb_buf_reserve(piece_out, HEAD_MAX + e.kinds_len + e.uses_len + e.anchors_len + count * WB_VARINT_MAX);
    if (err < 0)
        return err;
    char *p = put_head(piece_out->ptr + piece_out->len, &e, count);
    for (size_t i = 0; i < e.anchor_count; i++) {
        *p++ = (char)e.anchors[i].text.len;
        p = put_bytes(p, e.anchors[i].text.ptr, e.anchors[i].text.len);
    }
    for (size_t i = 0; i < count; i++) {
        WB_CHECK(i == 0 || items[i].number > last);
        p += wb_put_varint(p, i == 0 ? items[i].number : items[i].number - last - 1);
        last = items[i].number;
    }
    piece_out->len = (size_t)(p - piece_out->ptr);
    WB_CHECK(piece_out->len <= piece_out->cap);
    return 0;
}

/* ---- reading ------------------------------------------------------------------------------------- */

static int damaged(struct wb_linklist *list)
{
    list->count = list->at = 0; /* wb_linklist_next() returns nothing more */
    return wb_fail(WB_E_CORRUPT, "a list of links is damaged");
}

/* Reads a kind. Returns false if it is cut off or invalid. */
static bool get_kind(struct wb_linklist *list)
{
    WB_CHECK(list->kinds <= list->kinds_end);
    if (list->kinds == list->kinds_end)
        return false;
    uint8_t kind = (uint8_t)*list->kinds++;
    list->tag = kind & 15;
    list->flags = kind >> 4;
    if (kind == KIND_ESCAPE) {
        if (list->kinds_end - list->kinds < KIND_MAX - 1)
            return false;
        list->tag = (uint8_t)*list->kinds++;
        list->flags = (uint8_t)*list->kinds++;
    }
    return list->tag != KIND_ESCAPE || kind == KIND_ESCAPE;
}

int wb_linklist_open(struct wb_linklist *list, struct wb_slice piece)
{
    const char *p = piece.ptr, *end = piece.ptr + piece.len;
    uint64_t head, kinds = 0, uses = 0, anchors = 0;

    WB_CHECK(list != NULL);
    WB_CHECK(piece.ptr != NULL);
    *list = (struct wb_linklist){.piece = piece};
    if (!wb_get_varint(&p, end, &head) || head >> 2 >= WB_LINKLIST_ITEMS)
        return damaged(list);
    bool one_kind = head & ONE_KIND, one_anchor = head & ONE_ANCHOR;
    if (!one_kind && !wb_get_varint(&p, end, &kinds))
        return damaged(list);
    if (!one_anchor && (!wb_get_varint(&p, end, &uses) || !wb_get_varint(&p, end, &anchors)))
        return damaged(list);
    if (one_kind && p < end)
        kinds = (uint8_t)*p == KIND_ESCAPE ? KIND_MAX : 1;
    uint64_t left = (uint64_t)(end - p);
    if (kinds > left || uses > left - kinds || anchors > left - kinds - uses)
        return damaged(list);
    list->kinds = p;
    list->kinds_end = list->uses = p + kinds;
    list->uses_end = list->anchors = list->uses + uses;
    if (one_anchor && list->anchors < end)
        anchors = 1 + (uint64_t)(uint8_t)*list->anchors;
    if (anchors == 0 || anchors > (uint64_t)(end - list->anchors))
        return damaged(list);
    list->next_anchor = list->anchors;
    list->numbers = list->anchors_end = list->anchors + anchors;
    list->count = (size_t)(head >> 2) + 1;
    if (one_kind) {
        if (!get_kind(list))
            return damaged(list);
        list->kind_run = (uint32_t)list->count;
    }
    if (one_anchor) {
        list->current = wb_slice(list->anchors + 1, (size_t)anchors - 1);
        list->next_anchor = list->anchors_end;
        list->use_run = (uint32_t)list->count;
        list->use = USE_SAME;
    }
    /* Every part is inside the piece; the items decide whether each is used up exactly. */
    WB_CHECK(list->kinds <= list->kinds_end);
    WB_CHECK(list->uses <= list->uses_end);
    WB_CHECK(list->next_anchor <= list->anchors_end);
    WB_CHECK(list->numbers <= end);
    return 0;
}

/* Makes the anchor at this position the current one. Returns false if it is not completely inside the anchors. */
static bool get_anchor(struct wb_linklist *list, const char *at)
{
    if (at >= list->anchors_end || (uint8_t)*at > list->anchors_end - at - 1)
        return false;
    list->other = list->current;
    list->current = wb_slice(at + 1, (uint8_t)*at);
    return true;
}

/* Reads the next run of uses. */
static bool next_use(struct wb_linklist *list)
{
    uint64_t run, place;

    WB_CHECK(list->use_run == 0);
    if (!wb_get_varint(&list->uses, list->uses_end, &run) || run >> 2 >= WB_LINKLIST_ITEMS)
        return false;
    list->use_run = (uint32_t)(run >> 2) + 1;
    list->use = run & 3;
    switch (list->use) {
    case USE_OTHER: {
        struct wb_slice other = list->other;
        list->other = list->current;
        list->current = other;
        break;
    }
    case USE_PLACE:
        if (!wb_get_varint(&list->uses, list->uses_end, &place))
            return false;
        if (place >= (uint64_t)(list->next_anchor - list->anchors) || !get_anchor(list, list->anchors + place))
            return false;
        break;
    default:
        break;
    }
    return list->use == USE_NEXT || list->current.ptr;
}

/* Reads the next run of kinds. */
static bool next_kind(struct wb_linklist *list)
{
    uint64_t run;

    WB_CHECK(list->kind_run == 0);
    if (!get_kind(list) || !wb_get_varint(&list->kinds, list->kinds_end, &run) || run >= WB_LINKLIST_ITEMS)
        return false;
    list->kind_run = (uint32_t)run + 1;
    return true;
}

/* Whether the items have used up every part. */
static bool all_used(const struct wb_linklist *list)
{
    return list->numbers == list->piece.ptr + list->piece.len && list->next_anchor == list->anchors_end &&
           list->kinds == list->kinds_end && list->kind_run == 0 && list->uses == list->uses_end &&
           list->use_run == 0;
}

int wb_linklist_next(struct wb_linklist *list, struct wb_linkitem *item_out)
{
    uint64_t number;
    const char *end = list->piece.ptr + list->piece.len;

    WB_CHECK(list->at <= list->count);
    if (list->at == list->count)
        return 0;
    if (list->numbers < end && !(*list->numbers & 0x80))
        number = (uint8_t)*list->numbers++;
    else if (!wb_get_varint(&list->numbers, end, &number))
        return damaged(list);
    if (list->at > 0 && (__builtin_add_overflow(number, list->number, &number) || ++number == 0))
        return damaged(list);
    if (list->kind_run == 0 && !next_kind(list))
        return damaged(list);
    if (list->use_run == 0 && !next_use(list))
        return damaged(list);
    if (list->use == USE_NEXT) {
        if (!get_anchor(list, list->next_anchor))
            return damaged(list);
        list->next_anchor = list->current.ptr + list->current.len;
    }
    list->kind_run--;
    list->use_run--;
    list->number = number;
    if (++list->at == list->count && !all_used(list))
        return damaged(list);
    *item_out = (struct wb_linkitem){number, list->current, list->tag, list->flags};
    return 1;
}

struct wb_slice wb_linklist_tail(const struct wb_linklist *list)
{
    const char *end = list->piece.ptr + list->piece.len;

    WB_CHECK(list->at == 0);
    WB_CHECK(list->numbers <= end);
    return wb_slice(list->numbers, (size_t)(end - list->numbers));
}

int wb_linklist_numbers(struct wb_slice tail, size_t count, uint64_t limit, uint32_t *numbers_out)
{
    const char *p = tail.ptr, *end = tail.ptr + tail.len;
    uint64_t next = 0, gap; /* next: the lowest number that may follow */

    WB_CHECK(limit <= 1ull << 32);
    WB_CHECK(count >= 1);
    for (size_t i = 0; i < count; i++) {
        if (p < end && !(*p & 0x80))
            gap = (uint8_t)*p++;
        else if (!wb_get_varint(&p, end, &gap))
            return wb_fail(WB_E_CORRUPT, "a list of links is damaged");
        if (gap >= limit || next + gap >= limit)
            return wb_fail(WB_E_CORRUPT, "a list of links leads beyond the last number");
        numbers_out[i] = (uint32_t)(next + gap);
        next += gap + 1;
    }
    return p == end ? 0 : wb_fail(WB_E_CORRUPT, "a list of links is followed by something else");
}

/* ---- keys ------------------------------------------------------------------------------------ */

size_t wb_linklist_key(uint64_t number, uint32_t piece, char key_out[WB_LINKLIST_KEY_MAX])
{
    wb_put64_be(key_out, number);
    if (piece == 0)
        return 8;
    wb_put32_be(key_out + 8, piece);
    return WB_LINKLIST_KEY_MAX;
}

bool wb_linklist_key_parse(struct wb_slice key, uint64_t *number_out, uint32_t *piece_out)
{
    WB_CHECK(key.ptr != NULL);
    *number_out = 0;
    *piece_out = 0;
    if (key.len != 8 && key.len != WB_LINKLIST_KEY_MAX)
        return false;
    *number_out = wb_get64_be(key.ptr);
    if (key.len == 8)
        return true;
    *piece_out = wb_get32_be(key.ptr + 8);
    return *piece_out != 0;
}

/* ---- writing lists into their table ------------------------------------------------------------ */

static int write_piece(struct wb_linkpieces *pieces)
{
    char key[WB_LINKLIST_KEY_MAX];

    WB_CHECK(pieces->table != NULL);
    WB_CHECK(pieces->item_count <= WB_LINKLIST_ITEMS);
    if (!pieces->item_count)
        return 0;
    wb_buf_clear(&pieces->encoded);
    int err = wb_linklist_encode(pieces->items, pieces->item_count, &pieces->encoded);
    struct wb_slice name = wb_slice(key, wb_linklist_key(pieces->owner, pieces->pieces, key));
    if (err == 0)
        err = wb_table_add(pieces->table, name, wb_buf_slice(&pieces->encoded));
    WB_CHECK(pieces->pieces < UINT32_MAX);
    pieces->written += pieces->item_count;
    pieces->pieces++;
    pieces->item_count = 0;
    return err;
}

int wb_linkpieces_add(struct wb_linkpieces *pieces, const struct wb_linkitem *item)
{
    WB_CHECK(pieces->table != NULL);
    WB_CHECK(pieces->item_count < WB_LINKLIST_ITEMS);
    WB_CHECK(pieces->item_count == 0 || item->number > pieces->items[pieces->item_count - 1].number);
    pieces->items[pieces->item_count++] = *item;
    if (pieces->item_count < WB_LINKLIST_ITEMS)
        return 0;
    int err = write_piece(pieces);
    return err < 0 ? err : 1;
}

int wb_linkpieces_end(struct wb_linkpieces *pieces)
{
    int err = write_piece(pieces);

    WB_CHECK(pieces->table != NULL);
    WB_CHECK(pieces->item_count == 0); /* the next list starts with a piece of its own */
    pieces->pieces = 0;
    return err;
}

int wb_linkpieces_finish(struct wb_linkpieces *pieces)
{
    WB_CHECK(pieces->table != NULL);
    WB_CHECK(pieces->item_count == 0);
    WB_CHECK(pieces->pieces == 0); /* the last list has ended */
    int err = wb_table_finish(pieces->table, NULL);

    pieces->table = NULL;
    return err;
}

void wb_linkpieces_release(struct wb_linkpieces *pieces)
{
    wb_table_abandon(pieces->table);
    wb_buf_release(&pieces->encoded);
}
