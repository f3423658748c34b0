/*
 * tree_page.h - one page of a tree of the catalog: rows (a leaf, level 0) or
 * pointers to pages of the level below (a branch), sorted by key.
 *
 *    0  page number (4)   where the page lies, so that a page in the wrong place is noticed
 *    4  count (2)         of cells
 *    6  kind (1)          WB_TREE_KIND_TREE here; pages of the free-space map have the same header
 *    7  level (1)         0: leaf
 *    8  transaction (8)   that wrote the page
 *   16  table (2)
 *   18  low (2)           where the cells begin; they grow downwards from the end of the page
 *   20  zero (4)
 *   24  offsets (2 each)  of the cells, in order of their keys
 *  ...  free
 *  low  cells
 *
 *   row:     key length (2), value length (2), key, value
 *   pointer: page number (4), checksum of that page (8), key length (2), key
 *
 * A page is valid if and only if the header is as expected, there is at least one
 * cell, all cells lie between the offsets and the end of the page, and the keys
 * ascend. The first key of a branch is empty: it stands for whatever is smallest
 * below. The other keys of a branch are separators: keys below the pointer are not
 * smaller, keys below the pointer before it are.
 */
#ifndef WB_STORE_TREE_PAGE_H
#define WB_STORE_TREE_PAGE_H

#include "base/bytes.h"
#include "base/slice.h"

#include <endian.h>

enum {
    WB_TREE_PAGE_BYTES = 4096,
    WB_TREE_HEADER_BYTES = 24,
    WB_TREE_ROOM = WB_TREE_PAGE_BYTES - WB_TREE_HEADER_BYTES,
    WB_TREE_LEVELS_MAX = 12,
    WB_TREE_KEY_MAX = 500,
    WB_TREE_VALUE_MAX = 1000,
    WB_TREE_CELL_MAX = 14 + WB_TREE_KEY_MAX + WB_TREE_VALUE_MAX,
};

enum wb_tree_kind {
    WB_TREE_KIND_TREE = 1,
    WB_TREE_KIND_SPACE = 2, /* tree_space.h */
    WB_TREE_KIND_SPACE_INDEX = 3,
};

/* A pointer to a page: where it lies, and XXH3 (64 bits) of all its bytes. Page 0 is never pointed to: no page. */
struct wb_tree_ref {
    uint32_t page;
    uint64_t check;
};

static inline bool wb_tree_ref_equal(struct wb_tree_ref a, struct wb_tree_ref b)
{
    return a.page == b.page && a.check == b.check;
}

static inline unsigned wb_tree_page_count(const char *page)
{
    return wb_get16(page + 4);
}

static inline unsigned wb_tree_page_level(const char *page)
{
    return (uint8_t)page[7];
}

static inline uint64_t wb_tree_page_txn(const char *page)
{
    return wb_get64(page + 8);
}

/* Fills what is known only when the page is written. */
static inline void wb_tree_page_stamp(char *page, uint32_t number, uint64_t txn)
{
    wb_put32(page, number);
    wb_put64(page + 8, txn);
}

/* An empty page; number and transaction are zero until it is stamped. */
void wb_tree_page_init(char *page, enum wb_tree_kind kind, unsigned table, unsigned level);

/* NULL if the page is valid and the one expected, otherwise what is wrong with it, in a few words. */
const char *wb_tree_page_check(const char *page, uint32_t number, unsigned table, unsigned level);

/* The bytes of a cell; its key. */
static inline const char *wb_tree_page_cell(const char *page, unsigned i)
{
    return page + wb_get16(page + WB_TREE_HEADER_BYTES + 2 * i);
}

static inline struct wb_slice wb_tree_page_key(const char *page, unsigned i)
{
    const char *cell = wb_tree_page_cell(page, i);

    return wb_tree_page_level(page) == 0 ? wb_slice(cell + 4, wb_get16(cell)) : wb_slice(cell + 14, wb_get16(cell + 12));
}

struct wb_slice wb_tree_page_value(const char *page, unsigned i);
struct wb_tree_ref wb_tree_page_ref(const char *page, unsigned i);
void wb_tree_page_set_ref(char *page, unsigned i, struct wb_tree_ref ref);

/* Like memcmp; a key that is the beginning of another comes first. */
static inline int wb_tree_key_compare(struct wb_slice a, struct wb_slice b)
{
    uint64_t x, y;

    /* Most keys are hashes, and differ here. */
    if (a.len >= sizeof x && b.len >= sizeof y) {
        memcpy(&x, a.ptr, sizeof x);
        memcpy(&y, b.ptr, sizeof y);
        if (x != y)
            return be64toh(x) < be64toh(y) ? -1 : 1;
    }
    int order = memcmp(a.ptr, b.ptr, a.len < b.len ? a.len : b.len);
    return order ? order : a.len < b.len ? -1 : a.len > b.len;
}

/* The first cell of a leaf whose key is not smaller (count if there is none); true if it is the key itself. */
bool wb_tree_page_find(const char *page, struct wb_slice key, unsigned *index_out);

/* The cell of a branch below which a key lies. */
unsigned wb_tree_page_child(const char *page, struct wb_slice key);

/* Bytes that the cells and their offsets take, out of WB_TREE_ROOM. */
size_t wb_tree_page_used(const char *page);

/* ---- changing ------------------------------------------------------------------ */

/* A cell as bytes, to be inserted. Returns its length, at most WB_TREE_CELL_MAX. */
size_t wb_tree_cell_row(char *cell, struct wb_slice key, struct wb_slice value);
size_t wb_tree_cell_ref(char *cell, struct wb_slice key, struct wb_tree_ref ref);

/* Inserts a cell before cell i; false if there is no room. */
bool wb_tree_page_insert(char *page, unsigned i, struct wb_slice cell);
void wb_tree_page_remove(char *page, unsigned i);

/* Gives the first cell of a branch the empty key. */
void wb_tree_page_open_first(char *page);

/*
 * Spreads the cells of `left`, and a new one to be inserted before cell i, over two
 * pages. Returns the length of the separator between them: the key of `right` in
 * the branch above.
 */
size_t wb_tree_page_split(char *left, char *right, unsigned i, struct wb_slice cell, char separator_out[WB_TREE_KEY_MAX]);

/* Appends the cells of `right` to `left`, where they must fit. separator: what the branch above had for `right`. */
void wb_tree_page_join(char *left, const char *right, struct wb_slice separator);

#endif
