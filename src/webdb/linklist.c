/*
 * linklist.c - a piece of a list of links as bytes.
 *
 *   varint  (items - 1) << 2, bit 0: one kind for all, bit 1: one anchor for all
 *   varint  bytes of the kinds                  unless there is one kind
 *   varint  bytes of the uses, bytes of the anchors    unless there is one anchor
 *   kinds   one kind; or runs of a kind and a varint, how many items more than one have it
 *   uses    nothing where there is one anchor; else runs, a varint each: (items - 1) << 2 | what
 *             0  each the next of the anchors, used for the first time      1  the anchor of the item before
 *             2  the anchor that was used before that one                   3  a varint follows: place among the anchors
 *   anchors each a byte with its length and its bytes, in order of first use, each different
 *   numbers to the end: varints, the first number, then how much more than one each is above the one before
 *
 *   kind    a byte: bits 0-3 tag, 4-7 flags; 15: a byte with the tag and one with the flags follow
 *
 * Parts of a kind lie together and nothing is less than a byte, because many pieces are packed together by zstd, which finds
 * what repeats from piece to piece. A piece is valid if and only if the parts are used up exactly by its items
 * and the numbers do not overflow. It never looks at what numbers, tags and flags mean.
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
    RUN_MAX = 2,          /* bytes of a varint of a run, whatever it is shifted by */
    PLACE_MAX = 3,
    ANCHOR_MAX = 255,
    HEAD_MAX = 2 + 3 * WB_VARINT_MAX,
    SLOTS = 2 * WB_LINKLIST_ITEMS,
};

_Static_assert(WB_LINKLIST_ITEMS << 2 <= 1 << 14, "a run takes two bytes");
_Static_assert(WB_LINKLIST_ITEMS * (1 + ANCHOR_MAX) < 1 << 21, "a place takes three bytes");
_Static_assert((WB_LINKLIST_ITEMS & (WB_LINKLIST_ITEMS - 1)) == 0, "a table of anchors is a power of two");

/* ---- writing ------------------------------------------------------------------------------------ */

struct anchor {
    struct wb_slice text;
    uint32_t hash;
    uint32_t place;
};

struct encoder {
    uint8_t kinds[WB_LINKLIST_ITEMS * (KIND_MAX + RUN_MAX)];
    uint8_t uses[WB_LINKLIST_ITEMS * (RUN_MAX + PLACE_MAX)];
    size_t kinds_len, uses_len, kind_runs;
    struct anchor anchors[WB_LINKLIST_ITEMS];
    uint16_t slots[SLOTS]; /* number of an anchor, from 1 */
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

static void collect_kinds(struct encoder *e, const struct wb_linkitem *items, size_t count)
{
    for (size_t i = 0, end; i < count; i = end) {
        for (end = i + 1; end < count && items[end].tag == items[i].tag && items[end].flags == items[i].flags; end++)
            ;
        e->kinds_len += put_kind(e->kinds + e->kinds_len, items[i].tag, items[i].flags);
        if (i == 0 && end == count)
            return;
        e->kinds_len += wb_put_varint(e->kinds + e->kinds_len, end - i - 1);
        e->kind_runs++;
    }
}

/* The number of an anchor; the next free one where it is new. */
static uint32_t find_anchor(struct encoder *e, struct wb_slice text, size_t mask)
{
    uint32_t hash = wb_hash32(text.ptr, text.len);

    for (size_t i = hash;; i++) {
        uint16_t *slot = &e->slots[i & mask];
        if (*slot == 0) {
            struct anchor *anchor = &e->anchors[e->anchor_count];
            *anchor = (struct anchor){text, hash, (uint32_t)e->anchors_len};
            e->anchors_len += 1 + text.len;
            *slot = (uint16_t)++e->anchor_count;
            return (uint32_t)e->anchor_count - 1;
        }
        struct anchor *anchor = &e->anchors[*slot - 1];
        if (anchor->hash == hash && wb_slice_equal(anchor->text, text))
            return *slot - 1u;
    }
}

static void put_use(struct encoder *e, size_t run, unsigned what, uint32_t place)
{
    if (run == 0)
        return;
    e->uses_len += wb_put_varint(e->uses + e->uses_len, (run - 1) << 2 | what);
    if (what == USE_PLACE)
        e->uses_len += wb_put_varint(e->uses + e->uses_len, place);
}

static void collect_anchors(struct encoder *e, const struct wb_linkitem *items, size_t count)
{
    size_t mask = 1, run = 0;
    uint32_t current = UINT32_MAX, other = UINT32_MAX;
    unsigned what = USE_NEXT;

    while (mask < 2 * count)
        mask *= 2;
    mask--;
    memset(e->slots, 0, (mask + 1) * sizeof *e->slots);
    for (size_t i = 0; i < count; i++) {
        WB_CHECK(items[i].anchor.len <= ANCHOR_MAX);
        if (i > 0 && wb_slice_equal(items[i].anchor, e->anchors[current].text)) {
            if (what == USE_NEXT) { /* the run of new ones is over */
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
    put_use(e, run, what, e->anchors[current].place);
}

static char *put_bytes(char *p, const void *bytes, size_t len)
{
    memcpy(p, bytes, len);
    return p + len;
}

static char *put_head(char *p, const struct encoder *e, size_t count)
{
    bool one_kind = e->kind_runs == 0, one_anchor = e->anchor_count == 1;

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
    struct encoder e; /* its arrays are used as far as they are filled */
    uint64_t last = 0;

    WB_CHECK(count >= 1 && count <= WB_LINKLIST_ITEMS);
    e.kinds_len = e.uses_len = e.kind_runs = e.anchor_count = e.anchors_len = 0;
    collect_kinds(&e, items, count);
    collect_anchors(&e, items, count);
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
    return 0;
}

/* ---- reading ------------------------------------------------------------------------------------- */

static int damaged(struct wb_linklist *list)
{
    list->count = list->at = 0; /* nothing more comes out of it */
    return wb_fail(WB_E_CORRUPT, "a list of links is damaged");
}

static bool get_kind(struct wb_linklist *list)
{
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
    return 0;
}

/* The anchor at a place, which must lie whole among the anchors. */
static bool get_anchor(struct wb_linklist *list, const char *at)
{
    if (at >= list->anchors_end || (uint8_t)*at > list->anchors_end - at - 1)
        return false;
    list->other = list->current;
    list->current = wb_slice(at + 1, (uint8_t)*at);
    return true;
}

static bool next_use(struct wb_linklist *list)
{
    uint64_t run, place;

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
        if (!wb_get_varint(&list->uses, list->uses_end, &place) || place >= (uint64_t)(list->next_anchor - list->anchors) ||
            !get_anchor(list, list->anchors + place))
            return false;
        break;
    default:
        break;
    }
    return list->use == USE_NEXT || list->current.ptr;
}

static bool next_kind(struct wb_linklist *list)
{
    uint64_t run;

    if (!get_kind(list) || !wb_get_varint(&list->kinds, list->kinds_end, &run) || run >= WB_LINKLIST_ITEMS)
        return false;
    list->kind_run = (uint32_t)run + 1;
    return true;
}

static bool all_used(const struct wb_linklist *list)
{
    return list->numbers == list->piece.ptr + list->piece.len && list->kinds == list->kinds_end && list->kind_run == 0 &&
           list->uses == list->uses_end && list->use_run == 0 && list->next_anchor == list->anchors_end;
}

int wb_linklist_next(struct wb_linklist *list, struct wb_linkitem *item_out)
{
    uint64_t number;
    const char *end = list->piece.ptr + list->piece.len;

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

/* ---- keys ------------------------------------------------------------------------------------------- */

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
