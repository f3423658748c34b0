/*
 * linklist.h - the links of one content, or to one page, as bytes: numbers ascending, with anchors and tags.
 *
 * Lists longer than WB_LINKLIST_ITEMS are cut into pieces. Key of a piece in its table: the number of the content (or page), 8 bytes big-endian;
 * from the second piece on, 4 bytes more with the piece's number, from 1. docs/formats/webdb.md has the bytes.
 */
#ifndef WB_WEBDB_LINKLIST_H
#define WB_WEBDB_LINKLIST_H

#include "base/buf.h"

#define WB_LINKLIST_ITEMS 4096
#define WB_LINKLIST_KEY_MAX 12

struct wb_linkitem {
    uint64_t number;         /* of the page that the link leads to, or of the content that it comes from */
    struct wb_slice anchor;  /* at most 255 bytes */
    uint8_t tag, flags;
};

/* Appends a piece: 1 to WB_LINKLIST_ITEMS items, numbers strictly ascending. */
int wb_linklist_encode(const struct wb_linkitem *items, size_t count, struct wb_buf *piece_out);

/* Reading a piece, item by item, without memory of its own; items borrow from the piece. */
struct wb_linklist {
    struct wb_slice piece;
    size_t count, at;        /* items; how many were read */
    uint64_t number;         /* the rest is the decoder's business: where the parts are read, and what holds for how many items more */
    const char *numbers, *kinds, *kinds_end, *uses, *uses_end, *anchors, *next_anchor, *anchors_end;
    struct wb_slice current, other;
    uint32_t kind_run, use_run;
    uint8_t tag, flags, use;
};

/* WB_E_CORRUPT where the piece is none. */
int wb_linklist_open(struct wb_linklist *list, struct wb_slice piece);

/* 1 with an item, 0 at the end, WB_E_CORRUPT. */
int wb_linklist_next(struct wb_linklist *list, struct wb_linkitem *item_out);

/* Key of a piece; its length. */
size_t wb_linklist_key(uint64_t number, uint32_t piece, char key_out[WB_LINKLIST_KEY_MAX]);
bool wb_linklist_key_parse(struct wb_slice key, uint64_t *number_out, uint32_t *piece_out);

#endif
