/*
 * linklist.h - the links from one content, or to one page, as bytes: ascending numbers with anchors and tags.
 *
 * A list longer than WB_LINKLIST_ITEMS is cut into pieces. The key of a piece in its table is the number of the content
 * (or page), 8 bytes big-endian, followed from the second piece on by the number of the piece, counted from 1, 4 bytes
 * big-endian. docs/formats/webdb.md describes the bytes.
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

/* Reads a piece item by item. It allocates nothing; the items borrow from the piece. */
struct wb_linklist {
    struct wb_slice piece;
    size_t count, at;        /* items in the piece; items read so far */
    /* For the decoder: where it is in each part, and for how many more items the current kind and use hold. */
    uint64_t number;
    const char *numbers, *kinds, *kinds_end, *uses, *uses_end, *anchors, *next_anchor, *anchors_end;
    struct wb_slice current, other;
    uint32_t kind_run, use_run;
    uint8_t tag, flags, use;
};

/* WB_E_CORRUPT if the bytes are not a piece. */
int wb_linklist_open(struct wb_linklist *list, struct wb_slice piece);

/* Returns 1 and an item, 0 at the end, or WB_E_CORRUPT. */
int wb_linklist_next(struct wb_linklist *list, struct wb_linkitem *item_out);

/* Writes the key of a piece and returns its length. Parsing returns false if the bytes are not such a key. */
size_t wb_linklist_key(uint64_t number, uint32_t piece, char key_out[WB_LINKLIST_KEY_MAX]);
bool wb_linklist_key_parse(struct wb_slice key, uint64_t *number_out, uint32_t *piece_out);

#endif
