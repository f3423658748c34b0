/*
 * linklist.h - the links from one content, or to one page, as bytes: ascending numbers with anchors and tags.
 *
 * A list longer than WB_LINKLIST_ITEMS is cut into pieces. The key of a piece in its table is the number of the content
 * (or page), 8 bytes big-endian, followed from the second piece on by the number of the piece, counted from 1, 4 bytes
 * big-endian. docs/formats/webdb.md describes the bytes.
 */
#ifndef WB_WEBDB_LINKLIST_H
#define WB_WEBDB_LINKLIST_H

#include "table/table.h"

#define WB_LINKLIST_ITEMS 4096
#define WB_LINKLIST_KEY_MAX 12

struct wb_linkitem {
    uint64_t number;         /* of the page that the link leads to, or of the content that it comes from */
    struct wb_slice anchor;  /* at most 255 bytes */
    uint8_t tag, flags;
};

/* A test seam. Appends a piece: 1 to WB_LINKLIST_ITEMS items, numbers strictly ascending. */
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

/* The part of a piece that holds its numbers. Call it after wb_linklist_open(), before the first item is read. */
struct wb_slice wb_linklist_tail(const struct wb_linklist *list);

/*
 * Reads only the numbers, several times as fast: the tail of a piece with count links. WB_E_CORRUPT unless the numbers
 * ascend, are less than limit (at most 2^32), and use up the tail exactly.
 */
int wb_linklist_numbers(struct wb_slice tail, size_t count, uint64_t limit, uint32_t *numbers_out);

/* Writes the key of a piece and returns its length. Parsing returns false if the bytes are not such a key. */
size_t wb_linklist_key(uint64_t number, uint32_t piece, char key_out[WB_LINKLIST_KEY_MAX]);
bool wb_linklist_key_parse(struct wb_slice key, uint64_t *number_out, uint32_t *piece_out);

/* ---- writing lists into their table ------------------------------------------------------------ */

/*
 * Stages 3 and 4 of the merge write with this. A list may have any length; only the piece that is being filled is in
 * memory. Zeroed memory with `table` set is a new one.
 */
struct wb_linkpieces {
    struct wb_table_writer *table;
    uint64_t owner;                /* the content or page whose list is being written; set it before the first link */
    uint32_t pieces;               /* how many pieces of the list have been written */
    struct wb_linkitem items[WB_LINKLIST_ITEMS]; /* the piece being filled */
    size_t item_count;
    struct wb_buf encoded;
    uint64_t written;              /* links of all lists */
};

/*
 * Adds a link to the owner's list; its number must be greater than the last one. The anchor must stay valid until the
 * piece is written. Returns 1 if that has happened now, 0 if not yet.
 */
int wb_linkpieces_add(struct wb_linkpieces *pieces, const struct wb_linkitem *item);

/* Writes the rest of the owner's list. The next link belongs to another owner. */
int wb_linkpieces_end(struct wb_linkpieces *pieces);

/* Finishes the table. All lists must have ended. */
int wb_linkpieces_finish(struct wb_linkpieces *pieces);

/* Frees the memory, and abandons the table unless it was finished. */
void wb_linkpieces_release(struct wb_linkpieces *pieces);

#endif
