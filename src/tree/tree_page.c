/*
 * tree_page.c - reads and changes one page of a tree in memory (tree_page.h has the bytes).
 * It never touches a file, and knows nothing about other pages.
 */
#include "tree/tree_page.h"
#include "base/check.h"

enum {
    ROW_HEAD = WB_TREE_ROW_HEAD,
    REF_HEAD = WB_TREE_REF_HEAD,
    OFFSET_BYTES = 2,
    CELLS_MAX = WB_TREE_ROOM / (ROW_HEAD + OFFSET_BYTES) + 2, /* more than fit in a page, plus a new one */
};

_Static_assert(REF_HEAD == 4 + 8 + 2, "a pointer starts with a page number, a checksum and the length of the key");
_Static_assert(ROW_HEAD == 2 + 2, "a row starts with two lengths");

static unsigned low_of(const char *page)
{
    return wb_get16(page + WB_TREE_LOW_AT);
}

static unsigned offset_of(const char *page, unsigned i)
{
    return wb_get16(page + WB_TREE_HEADER_BYTES + OFFSET_BYTES * i);
}

static bool is_leaf(const char *page)
{
    return wb_tree_page_level(page) == 0;
}

/* The bytes of a cell. */
static struct wb_slice cell_of(const char *page, unsigned i)
{
    const char *cell = wb_tree_page_cell(page, i);

    return wb_slice(cell, is_leaf(page) ? (size_t)ROW_HEAD + wb_get16(cell) + wb_get16(cell + 2)
                                        : (size_t)REF_HEAD + wb_get16(cell + 12));
}

void wb_tree_page_init(char *page, enum wb_tree_kind kind, unsigned table, unsigned level)
{
    WB_CHECK(kind >= WB_TREE_KIND_TREE);
    WB_CHECK(kind <= WB_TREE_KIND_SPACE_INDEX);
    WB_CHECK(level < WB_TREE_LEVELS_MAX);
    WB_CHECK(table <= UINT16_MAX);
    memset(page, 0, WB_TREE_PAGE_BYTES);
    page[WB_TREE_KIND_AT] = (char)kind;
    page[WB_TREE_LEVEL_AT] = (char)level;
    wb_put16(page + WB_TREE_TABLE_AT, (uint16_t)table);
    wb_put16(page + WB_TREE_LOW_AT, WB_TREE_PAGE_BYTES);
}

struct wb_slice wb_tree_page_value(const char *page, unsigned i)
{
    WB_CHECK(is_leaf(page));
    WB_CHECK(i < wb_tree_page_count(page));
    const char *cell = wb_tree_page_cell(page, i);
    return wb_slice(cell + ROW_HEAD + wb_get16(cell), wb_get16(cell + 2));
}

struct wb_tree_ref wb_tree_page_ref(const char *page, unsigned i)
{
    WB_CHECK(!is_leaf(page));
    WB_CHECK(i < wb_tree_page_count(page));
    const char *cell = wb_tree_page_cell(page, i);
    return (struct wb_tree_ref){wb_get32(cell), wb_get64(cell + 4)};
}

void wb_tree_page_set_ref(char *page, unsigned i, struct wb_tree_ref ref)
{
    WB_CHECK(ref.page != 0);
    WB_CHECK(!is_leaf(page));
    WB_CHECK(i < wb_tree_page_count(page));

    char *cell = page + offset_of(page, i);

    wb_put32(cell, ref.page);
    wb_put64(cell + 4, ref.check);
}

/* ---- checking ------------------------------------------------------------------------- */

/* The length of a cell, or 0 if it is not inside its page. Reads its lengths only if they are inside the page. */
static unsigned cell_length(const char *page, unsigned at, bool leaf, unsigned low)
{
    unsigned head = leaf ? ROW_HEAD : REF_HEAD;

    if (at < low || at + head > WB_TREE_PAGE_BYTES)
        return 0;
    unsigned key = wb_get16(page + at + (leaf ? 0 : 12)), value = leaf ? wb_get16(page + at + 2) : 0;
    if (key > WB_TREE_KEY_MAX || value > WB_TREE_VALUE_MAX || at + head + key + value > WB_TREE_PAGE_BYTES)
        return 0;
    return head + key + value;
}

const char *wb_tree_page_check(const char *page, uint32_t number, unsigned table, unsigned level)
{
    unsigned count = wb_tree_page_count(page), low = low_of(page), used = 0;
    struct wb_slice before = WB_SLICE_EMPTY;
    bool leaf = level == 0;

    if (wb_get32(page) != number)
        return "it belongs elsewhere";
    if (page[WB_TREE_KIND_AT] != WB_TREE_KIND_TREE || wb_tree_page_level(page) != level ||
        wb_tree_page_table(page) != table)
        return "it is of another kind, level or table";
    if (count == 0 || low > WB_TREE_PAGE_BYTES || WB_TREE_HEADER_BYTES + OFFSET_BYTES * count > low)
        return "its count is impossible";
    for (unsigned i = 0; i < count; i++) {
        unsigned len = cell_length(page, offset_of(page, i), leaf, low);
        if (len == 0)
            return "a cell is outside of it";
        struct wb_slice key = wb_tree_page_key(page, i);
        if (i > 0 && wb_tree_key_compare(before, key) >= 0)
            return "its keys are out of order";
        if (!leaf && !wb_tree_ref_valid(wb_get32(page + offset_of(page, i))))
            return "a pointer is invalid";
        before = key;
        used += len + OFFSET_BYTES;
    }
    if (used > WB_TREE_ROOM)
        return "its cells overlap";
    if ((wb_tree_page_key(page, 0).len == 0) == leaf)
        return "its first key is wrong";
    return NULL;
}

/* ---- searching ------------------------------------------------------------------------- */

/* Finds the first cell whose key is not smaller. */
static unsigned lower_bound(const char *page, struct wb_slice key, bool *equal_out)
{
    unsigned from = 0, to = wb_tree_page_count(page);

    *equal_out = false;
    while (from < to) {
        unsigned middle = (from + to) / 2;
        int order = wb_tree_key_compare(wb_tree_page_key(page, middle), key);
        if (order == 0) {
            *equal_out = true;
            return middle;
        }
        if (order < 0)
            from = middle + 1;
        else
            to = middle;
    }
    return from;
}

bool wb_tree_page_find(const char *page, struct wb_slice key, unsigned *index_out)
{
    bool equal;

    WB_CHECK(is_leaf(page));
    *index_out = lower_bound(page, key, &equal);
    return equal;
}

unsigned wb_tree_page_child(const char *page, struct wb_slice key)
{
    bool equal;

    WB_CHECK(!is_leaf(page));
    unsigned i = lower_bound(page, key, &equal);
    WB_CHECK(equal || i > 0); /* the first key is empty, so no key is smaller */
    return equal ? i : i - 1;
}

size_t wb_tree_page_used(const char *page)
{
    size_t used = 0;

    for (unsigned i = 0; i < wb_tree_page_count(page); i++)
        used += cell_of(page, i).len + OFFSET_BYTES;
    WB_CHECK(used <= WB_TREE_ROOM);
    return used;
}

/* ---- changing --------------------------------------------------------------------------- */

size_t wb_tree_cell_row(char *cell, struct wb_slice key, struct wb_slice value)
{
    WB_CHECK(key.len > 0);
    WB_CHECK(key.len <= WB_TREE_KEY_MAX);
    WB_CHECK(value.len <= WB_TREE_VALUE_MAX);
    wb_put16(cell, (uint16_t)key.len);
    wb_put16(cell + 2, (uint16_t)value.len);
    memcpy(cell + ROW_HEAD, key.ptr, key.len);
    memcpy(cell + ROW_HEAD + key.len, value.ptr, value.len);
    return ROW_HEAD + key.len + value.len;
}

size_t wb_tree_cell_ref(char *cell, struct wb_slice key, struct wb_tree_ref ref)
{
    WB_CHECK(key.len <= WB_TREE_KEY_MAX);
    WB_CHECK(ref.page != 0);
    wb_put32(cell, ref.page);
    wb_put64(cell + 4, ref.check);
    wb_put16(cell + 12, (uint16_t)key.len);
    memcpy(cell + REF_HEAD, key.ptr, key.len);
    return REF_HEAD + key.len;
}

/* Writes a cell below the others, and its offset at position i. There must be room between them. */
static void place_cell(char *page, unsigned i, struct wb_slice cell)
{
    WB_CHECK(cell.len >= ROW_HEAD);
    WB_CHECK(cell.len <= WB_TREE_CELL_MAX);

    unsigned count = wb_tree_page_count(page);
    char *offset = page + WB_TREE_HEADER_BYTES + OFFSET_BYTES * i;

    WB_CHECK(i <= count);
    WB_CHECK(low_of(page) >= WB_TREE_HEADER_BYTES + OFFSET_BYTES * (count + 1) + cell.len);
    unsigned low = low_of(page) - (unsigned)cell.len;
    memcpy(page + low, cell.ptr, cell.len);
    memmove(offset + OFFSET_BYTES, offset, OFFSET_BYTES * (count - i));
    wb_put16(offset, (uint16_t)low);
    wb_put16(page + WB_TREE_LOW_AT, (uint16_t)low);
    wb_put16(page + WB_TREE_COUNT_AT, (uint16_t)(count + 1));
}

/* Removes all cells; number and transaction become zero. */
static void clear_cells(char *page)
{
    WB_CHECK(page[WB_TREE_KIND_AT] == 0 || page[WB_TREE_KIND_AT] == WB_TREE_KIND_TREE);
    wb_tree_page_init(page, WB_TREE_KIND_TREE, wb_tree_page_table(page), wb_tree_page_level(page));
}

/* Moves all cells together at the end of the page. */
static void close_gaps(char *page)
{
    char old[WB_TREE_PAGE_BYTES];

    memcpy(old, page, sizeof old);
    clear_cells(page);
    for (unsigned i = 0; i < wb_tree_page_count(old); i++)
        place_cell(page, i, cell_of(old, i));
}

bool wb_tree_page_insert(char *page, unsigned i, struct wb_slice cell)
{
    unsigned count = wb_tree_page_count(page);

    WB_CHECK(i <= count);
    WB_CHECK(cell.len <= WB_TREE_CELL_MAX);
    if (low_of(page) < WB_TREE_HEADER_BYTES + OFFSET_BYTES * (count + 1) + cell.len) {
        if (wb_tree_page_used(page) + cell.len + OFFSET_BYTES > WB_TREE_ROOM)
            return false;
        close_gaps(page);
    }
    place_cell(page, i, cell);
    return true;
}

void wb_tree_page_remove(char *page, unsigned i)
{
    unsigned count = wb_tree_page_count(page);
    char *offset = page + WB_TREE_HEADER_BYTES + OFFSET_BYTES * i;

    WB_CHECK(i < count);
    memmove(offset, offset + OFFSET_BYTES, OFFSET_BYTES * (count - i - 1));
    wb_put16(page + WB_TREE_COUNT_AT, (uint16_t)(count - 1)); /* the bytes of the cell stay, until close_gaps() */
}

bool wb_tree_page_replace(char *page, unsigned i, struct wb_slice cell)
{
    WB_CHECK(i < wb_tree_page_count(page));
    struct wb_slice old = cell_of(page, i);
    if (old.len != cell.len)
        return false;
    memcpy(page + offset_of(page, i), cell.ptr, cell.len);
    return true;
}

void wb_tree_page_open_first(char *page)
{
    WB_CHECK(!is_leaf(page));
    WB_CHECK(wb_tree_page_count(page) > 0);

    char cell[REF_HEAD];
    struct wb_tree_ref first = wb_tree_page_ref(page, 0);
    size_t len = wb_tree_cell_ref(cell, WB_SLICE_EMPTY, first);

    wb_tree_page_remove(page, 0);
    WB_CHECK(wb_tree_page_insert(page, 0, wb_slice(cell, len)));
}

/* How many cells go to the left page: the most even division, so that both halves fit, whatever the sizes are. */
static unsigned middle_of(const struct wb_slice *cells, unsigned count)
{
    size_t total = 0, left = 0, best = SIZE_MAX;
    unsigned cut = 1;

    WB_CHECK(count >= 2);
    for (unsigned i = 0; i < count; i++)
        total += cells[i].len + OFFSET_BYTES;
    for (unsigned i = 1; i < count; i++) {
        left += cells[i - 1].len + OFFSET_BYTES;
        size_t larger = left > total - left ? left : total - left;
        if (larger < best) {
            best = larger;
            cut = i;
        }
    }
    WB_CHECK(best <= WB_TREE_ROOM);
    return cut;
}

/* The shortest key that is greater than the last key on the left and not greater than the first key on the right. */
static size_t separate(const char *left, const char *right, char separator_out[WB_TREE_KEY_MAX])
{
    struct wb_slice before = wb_tree_page_key(left, wb_tree_page_count(left) - 1), after = wb_tree_page_key(right, 0);
    size_t len = 0;

    WB_CHECK(wb_tree_key_compare(before, after) < 0);
    if (is_leaf(left)) {
        while (len < before.len && len < after.len && before.ptr[len] == after.ptr[len])
            len++;
        len++;
    } else {
        len = after.len;
    }
    WB_CHECK(len > 0);
    WB_CHECK(len <= after.len);
    WB_CHECK(len <= WB_TREE_KEY_MAX);
    memcpy(separator_out, after.ptr, len);
    return len;
}

size_t wb_tree_page_split(char *left, char *right, unsigned i, struct wb_slice cell,
                          char separator_out[WB_TREE_KEY_MAX])
{
    char old[WB_TREE_PAGE_BYTES];
    struct wb_slice cells[CELLS_MAX];
    unsigned count = wb_tree_page_count(left) + 1;

    WB_CHECK(i < count);
    WB_CHECK(count >= 2);
    WB_CHECK(count <= CELLS_MAX);
    memcpy(old, left, sizeof old);
    for (unsigned k = 0; k < count; k++)
        cells[k] = k == i ? cell : cell_of(old, k < i ? k : k - 1);
    /* If the new cell is the last one, keys probably arrive in order: then the left page stays full. */
    unsigned cut = i == count - 1 ? count - 1 : middle_of(cells, count);
    clear_cells(left);
    memcpy(right, left, WB_TREE_PAGE_BYTES);
    for (unsigned k = 0; k < count; k++)
        place_cell(k < cut ? left : right, k < cut ? k : k - cut, cells[k]);
    size_t len = separate(left, right, separator_out);
    if (!is_leaf(right))
        wb_tree_page_open_first(right);
    return len;
}

void wb_tree_page_join(char *left, const char *right, struct wb_slice separator)
{
    char cell[WB_TREE_CELL_MAX];

    WB_CHECK(wb_tree_page_table(left) == wb_tree_page_table(right));
    WB_CHECK(wb_tree_page_used(left) + wb_tree_page_used(right) <= WB_TREE_ROOM);
    WB_CHECK(wb_tree_page_level(left) == wb_tree_page_level(right));
    for (unsigned i = 0; i < wb_tree_page_count(right); i++) {
        struct wb_slice moved = cell_of(right, i);
        if (i == 0 && !is_leaf(right))
            moved = wb_slice(cell, wb_tree_cell_ref(cell, separator, wb_tree_page_ref(right, 0)));
        WB_CHECK(wb_tree_page_insert(left, wb_tree_page_count(left), moved));
    }
}
