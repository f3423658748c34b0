/*
 * tree_page.h - one page of a tree (tree.h). A leaf, level 0, contains rows; a branch
 * contains pointers to pages of the level below. Both are called cells, and are sorted by
 * key. The functions here work on 4096 bytes in memory, and never touch a file.
 *
 *    0  page number (4)   where the page is stored, so that a page in the wrong place is noticed
 *    4  count (2)         number of cells
 *    6  kind (1)          WB_TREE_KIND_TREE; pages of the free-space map have the same header
 *    7  level (1)         0 for a leaf
 *    8  transaction (8)   that wrote the page
 *   16  table (2)
 *   18  low (2)           where the cells begin; they grow down from the end of the page
 *   20  zero (4)
 *   24  offsets (2 each)  of the cells, in the order of their keys
 *  ...  free
 *  low  cells
 *
 *   a row:     key length (2), value length (2), key, value
 *   a pointer: page number (4), checksum of that page (8), key length (2), key
 *
 * A page is valid if and only if its header is as expected, it has at least one cell, all
 * cells are between the offsets and the end of the page, and the keys ascend. The first
 * key of a branch is empty, and stands for the smallest key below it. The other keys of a
 * branch are separators: no key below the pointer is smaller than its separator, and all
 * keys below the previous pointer are.
 */
#ifndef WB_TREE_TREE_PAGE_H
#define WB_TREE_TREE_PAGE_H

#include "base/bytes.h"
#include "base/slice.h"

#include <endian.h>

enum {
    WB_TREE_PAGE_BYTES = 4096,
    WB_TREE_HEADER_BYTES = 24,
    WB_TREE_COUNT_AT = 4,
    WB_TREE_KIND_AT = 6,
    WB_TREE_LEVEL_AT = 7,
    WB_TREE_TXN_AT = 8,
    WB_TREE_TABLE_AT = 16, /* of a page of the free-space map: the number of its part */
    WB_TREE_LOW_AT = 18,
    WB_TREE_ROOM = WB_TREE_PAGE_BYTES - WB_TREE_HEADER_BYTES, /* for offsets and cells */
    WB_TREE_ROW_HEAD = 4,  /* bytes before the key in a row ... */
    WB_TREE_REF_HEAD = 14, /* ... and in a pointer */
    WB_TREE_LEVELS_MAX = 12,
    WB_TREE_KEY_MAX = 500,
    WB_TREE_VALUE_MAX = 1000,
    WB_TREE_CELL_MAX = WB_TREE_REF_HEAD + WB_TREE_KEY_MAX + WB_TREE_VALUE_MAX,
};

_Static_assert(WB_TREE_LOW_AT + 2 + 4 == WB_TREE_HEADER_BYTES, "four zero bytes end the header");
_Static_assert(2 * (WB_TREE_CELL_MAX + 2) <= WB_TREE_ROOM, "a page has room for two cells, so that it can be split");
_Static_assert(WB_TREE_PAGE_BYTES <= UINT16_MAX, "offsets have two bytes");

enum wb_tree_kind {
    WB_TREE_KIND_TREE = 1,
    WB_TREE_KIND_SPACE = 2, /* tree_space.h */
    WB_TREE_KIND_SPACE_INDEX = 3,
};

/* A pointer to a page: its number, and the XXH3 (64 bits) of all its bytes. Page 0 means that there is no page. */
struct wb_tree_ref {
    uint32_t page;
    uint64_t check;
};

/*
 * Returns true if a page number that was read from the file can be that of a pointer. Pages 0
 * and 1 contain the root record; the largest number has a special meaning in memory
 * (tree_own.h) and must never come from a file.
 */
static inline bool wb_tree_ref_valid(uint32_t page)
{
    return page >= 2 && page < UINT32_MAX;
}

static inline bool wb_tree_ref_equal(struct wb_tree_ref a, struct wb_tree_ref b)
{
    return a.page == b.page && a.check == b.check;
}

static inline unsigned wb_tree_page_count(const char *page)
{
    return wb_get16(page + WB_TREE_COUNT_AT);
}

static inline unsigned wb_tree_page_level(const char *page)
{
    return (uint8_t)page[WB_TREE_LEVEL_AT];
}

static inline unsigned wb_tree_page_table(const char *page)
{
    return wb_get16(page + WB_TREE_TABLE_AT);
}

static inline uint64_t wb_tree_page_txn(const char *page)
{
    return wb_get64(page + WB_TREE_TXN_AT);
}

/* Fills in what is known only when the page is written. */
static inline void wb_tree_page_stamp(char *page, uint32_t number, uint64_t txn)
{
    wb_put32(page, number);
    wb_put64(page + WB_TREE_TXN_AT, txn);
}

/* Makes an empty page. Its number and transaction are zero until it is stamped. */
void wb_tree_page_init(char *page, enum wb_tree_kind kind, unsigned table, unsigned level);

/* Returns NULL if the page is valid and the one expected, otherwise what is wrong with it, in a few words. */
const char *wb_tree_page_check(const char *page, uint32_t number, unsigned table, unsigned level);

/* The functions that take a cell number i expect a valid page and i < count; only those that are not inline check. */
static inline const char *wb_tree_page_cell(const char *page, unsigned i)
{
    return page + wb_get16(page + WB_TREE_HEADER_BYTES + 2 * i);
}

static inline struct wb_slice wb_tree_page_key(const char *page, unsigned i)
{
    const char *cell = wb_tree_page_cell(page, i);

    return wb_tree_page_level(page) == 0 ? wb_slice(cell + WB_TREE_ROW_HEAD, wb_get16(cell))
                                         : wb_slice(cell + WB_TREE_REF_HEAD, wb_get16(cell + 12));
}

struct wb_slice wb_tree_page_value(const char *page, unsigned i);
struct wb_tree_ref wb_tree_page_ref(const char *page, unsigned i);
void wb_tree_page_set_ref(char *page, unsigned i, struct wb_tree_ref ref);

/* The order of wb_slice_compare(), sooner: most keys are hashes, which already differ in their first eight bytes. */
static inline int wb_tree_key_compare(struct wb_slice a, struct wb_slice b)
{
    uint64_t x, y;

    if (a.len >= sizeof x && b.len >= sizeof y) {
        memcpy(&x, a.ptr, sizeof x);
        memcpy(&y, b.ptr, sizeof y);
        if (x != y)
            return be64toh(x) < be64toh(y) ? -1 : 1;
    }
    return wb_slice_compare(a, b);
}

/* Finds the first cell of a leaf whose key is not smaller than key (count if there is none). True if it is equal. */
bool wb_tree_page_find(const char *page, struct wb_slice key, unsigned *index_out);

/* The cell of a branch that leads to a key. */
unsigned wb_tree_page_child(const char *page, struct wb_slice key);

/* The number of bytes, out of WB_TREE_ROOM, that the cells and their offsets take. */
size_t wb_tree_page_used(const char *page);

/* ---- changing ------------------------------------------------------------------ */

/* Compose a cell that can be inserted: a row or a pointer. Return its length, at most WB_TREE_CELL_MAX. */
size_t wb_tree_cell_row(char *cell, struct wb_slice key, struct wb_slice value);
size_t wb_tree_cell_ref(char *cell, struct wb_slice key, struct wb_tree_ref ref);

/* Inserts a cell before cell i. Returns false, and changes nothing, if there is no room. */
bool wb_tree_page_insert(char *page, unsigned i, struct wb_slice cell);
void wb_tree_page_remove(char *page, unsigned i);

/* Replaces cell i by one with the same key. Returns false, and changes nothing, if it has another length. */
bool wb_tree_page_replace(char *page, unsigned i, struct wb_slice cell);

/* Replaces the first key of a branch by the empty key. */
void wb_tree_page_open_first(char *page);

/*
 * Divides the cells of `left`, and a new one that is inserted before cell i, between the
 * two pages. Returns the length of the separator: the key for `right` in the branch above.
 */
size_t wb_tree_page_split(char *left, char *right, unsigned i, struct wb_slice cell,
                          char separator_out[WB_TREE_KEY_MAX]);

/* Appends the cells of `right` to `left`, where they must fit. separator is the key of `right` in the branch above. */
void wb_tree_page_join(char *left, const char *right, struct wb_slice separator);

#endif
