/*
 * tree_space.c - the free-space map in memory and on disk; see tree_space.h.
 *
 * A map page has the header of all pages and four bits for each of 8144 pages, the
 * lower half of a byte first. An index page has the header and pointers (page 4,
 * checksum 8) to 339 map pages. Writing the map takes pages itself, which changes
 * the map: places are taken for all parts that changed until no further part
 * changes, and only then are the parts written.
 */
#include "store/tree_space.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "store/tree_own.h"

enum {
    PAGES_PER_MAP = WB_TREE_ROOM * 2,
    REF_BYTES = 12,
    MAPS_PER_INDEX = WB_TREE_ROOM / REF_BYTES,
    USED = 1,
    FIRST_CLASS = 2,
};
_Static_assert(PAGES_PER_MAP == 8144 && MAPS_PER_INDEX == 339, "the numbers in the documentation");

#define ONES UINT64_C(0x1111111111111111)

static size_t maps_of(uint32_t pages)
{
    return pages <= 2 ? 0 : (pages + (size_t)PAGES_PER_MAP - 1) / PAGES_PER_MAP;
}

/* ---- four bits ---------------------------------------------------------------------------- */

unsigned wb_tree_space_of(const struct wb_tree_space *space, uint32_t page)
{
    const struct wb_tree_map *map = &space->maps[page / PAGES_PER_MAP];
    uint32_t i = page % PAGES_PER_MAP;

    WB_CHECK(page / PAGES_PER_MAP < space->count);
    return (unsigned)(uint8_t)map->page[WB_TREE_HEADER_BYTES + i / 2] >> (i % 2 * 4) & 15;
}

static void set(struct wb_tree_space *space, uint32_t page, unsigned value)
{
    struct wb_tree_map *map = &space->maps[page / PAGES_PER_MAP];
    uint32_t i = page % PAGES_PER_MAP;
    uint8_t *byte = (uint8_t *)map->page + WB_TREE_HEADER_BYTES + i / 2;

    WB_CHECK(page / PAGES_PER_MAP < space->count && value < 16);
    *byte = (uint8_t)((*byte & ~(15u << (i % 2 * 4))) | value << (i % 2 * 4));
    map->dirty = true;
    space->index[page / PAGES_PER_MAP / MAPS_PER_INDEX].dirty = true;
}

/* A word with a 1 for each of its sixteen numbers that is `value`. */
static uint64_t which_are(uint64_t word, unsigned value)
{
    uint64_t x = word ^ ONES * value;

    return ~(x | x >> 1 | x >> 2 | x >> 3) & ONES;
}

/* Makes all pages of a class free. */
static void free_class(struct wb_tree *tree, unsigned class)
{
    struct wb_tree_space *space = &tree->space;
    uint64_t freed = 0;

    for (size_t m = 0; m < space->count; m++) {
        char *bits = space->maps[m].page + WB_TREE_HEADER_BYTES;
        uint64_t here = 0;
        for (size_t at = 0; at < WB_TREE_ROOM; at += 8) {
            uint64_t word = wb_get64(bits + at), hits = which_are(word, FIRST_CLASS + class);
            if (hits) {
                wb_put64(bits + at, word & ~(hits * 15));
                here += (uint64_t)__builtin_popcountll(hits);
            }
        }
        if (here) {
            space->maps[m].dirty = true;
            space->index[m / MAPS_PER_INDEX].dirty = true;
        }
        freed += here;
    }
    tree->next.free += freed;
    tree->next.classes[class] = (struct wb_tree_class){0};
}

/* ---- reading the map --------------------------------------------------------------------------- */

static int read_part(struct wb_tree *tree, struct wb_tree_ref ref, enum wb_tree_kind kind, uint16_t number, struct wb_tree_map *map)
{
    int err;

    if (!map->page)
        map->page = wb_alloc(WB_TREE_PAGE_BYTES);
    map->ref = (struct wb_tree_ref){0};
    map->dirty = false;
    map->placed = 0;
    if (!map->page)
        return WB_E_NOMEM;
    if (ref.page < 2)
        return wb_fail(WB_E_CORRUPT, "%s is damaged: a part of its free-space map is missing", tree->file.path);
    err = wb_tree_page_read(tree, ref, map->page);
    if (err < 0)
        return err;
    if (wb_get32(map->page) != ref.page || map->page[6] != (char)kind || wb_get16(map->page + 16) != number)
        return wb_tree_damaged(tree, ref.page, "it is not the part of the free-space map that belongs here");
    map->ref = ref;
    return 0;
}

static int resize(struct wb_tree_space *space, size_t count)
{
    if (count > space->count) {
        struct wb_tree_map *grown = wb_realloc(space->maps, count * sizeof *grown);
        if (!grown)
            return WB_E_NOMEM;
        memset(grown + space->count, 0, (count - space->count) * sizeof *grown);
        space->maps = grown;
    }
    for (size_t i = count; i < space->count; i++)
        wb_free(space->maps[i].page);
    space->count = count;
    return 0;
}

int wb_tree_space_read(struct wb_tree *tree, const struct wb_tree_state *state, struct wb_tree_space *space,
                       int (*each)(void *context, uint32_t page), void *context)
{
    size_t count = maps_of(state->pages);
    int err = 0;

    if (count > (size_t)WB_TREE_SPACE_MAX * MAPS_PER_INDEX)
        return wb_fail(WB_E_CORRUPT, "%s is damaged: it has more pages than its free-space map can have", tree->file.path);
    err = resize(space, count);
    for (size_t i = 0; i * MAPS_PER_INDEX < count && err == 0; i++) {
        struct wb_tree_map *index = &space->index[i];
        bool same = index->ref.page && wb_tree_ref_equal(index->ref, state->space[i]);
        if (!same)
            err = read_part(tree, state->space[i], WB_TREE_KIND_SPACE_INDEX, (uint16_t)i, index);
        if (err == 0 && each)
            err = each(context, state->space[i].page);
        for (size_t m = i * MAPS_PER_INDEX; m < count && m < (i + 1) * MAPS_PER_INDEX && err == 0; m++) {
            const char *at = index->page + WB_TREE_HEADER_BYTES + m % MAPS_PER_INDEX * REF_BYTES;
            struct wb_tree_ref ref = {wb_get32(at), wb_get64(at + 4)};
            if (!space->maps[m].ref.page || !wb_tree_ref_equal(space->maps[m].ref, ref))
                err = read_part(tree, ref, WB_TREE_KIND_SPACE, (uint16_t)m, &space->maps[m]);
            if (err == 0 && each)
                err = each(context, ref.page);
        }
    }
    return err;
}

int wb_tree_space_begin(struct wb_tree *tree)
{
    struct wb_tree_state *next = &tree->next;
    struct wb_tree_space *space = &tree->space;
    int err = wb_tree_space_read(tree, next, space, NULL, NULL);

    space->cursor = 2;
    if (err == 0)
        err = wb_tree_oldest(tree, &space->oldest);
    if (err == 0 && space->oldest >= next->txn)
        space->oldest = next->txn - 1;
    for (unsigned i = 0; i < WB_TREE_CLASSES && err == 0; i++) {
        if (next->classes[i].pages == 0)
            continue;
        err = wb_tree_held_between(tree, next->classes[i].from, next->classes[i].to);
        if (err == 0)
            free_class(tree, i);
        err = err > 0 ? 0 : err;
    }
    return err;
}

/* ---- taking and giving ----------------------------------------------------------------------------- */

/* Makes the file longer by one page. */
static int extend(struct wb_tree *tree, uint32_t *page_out)
{
    struct wb_tree_space *space = &tree->space;
    uint32_t page = tree->next.pages;
    size_t count = maps_of(page + 1);

    if (count > (size_t)WB_TREE_SPACE_MAX * MAPS_PER_INDEX)
        return wb_fail(WB_E_LIMIT, "%s cannot become larger", tree->file.path);
    if (count > space->count) {
        char *empty = wb_alloc(WB_TREE_PAGE_BYTES);
        int err = empty ? resize(space, count) : WB_E_NOMEM;
        if (err < 0) {
            wb_free(empty);
            return err;
        }
        wb_tree_page_init(empty, WB_TREE_KIND_SPACE, (unsigned)count - 1, 0);
        space->maps[count - 1].page = empty;
        if (count == 1) {
            set(space, 0, USED);
            set(space, 1, USED);
        }
    }
    set(space, page, USED);
    tree->next.pages++;
    *page_out = page;
    return 0;
}

int wb_tree_space_take(struct wb_tree *tree, uint32_t *page_out)
{
    struct wb_tree_space *space = &tree->space;

    WB_CHECK(tree->writing);
    while (tree->next.free > 0 && space->cursor < tree->next.pages) {
        const struct wb_tree_map *map = &space->maps[space->cursor / PAGES_PER_MAP];
        uint32_t i = space->cursor % PAGES_PER_MAP;
        if (i % 16 == 0 && i + 16 <= PAGES_PER_MAP && !which_are(wb_get64(map->page + WB_TREE_HEADER_BYTES + i / 2), 0)) {
            space->cursor += 16;
            continue;
        }
        uint32_t page = space->cursor++;
        if (page >= tree->next.pages || wb_tree_space_of(space, page) != 0)
            continue;
        set(space, page, USED);
        tree->next.free--;
        *page_out = page;
        return 0;
    }
    return extend(tree, page_out);
}

/* The class that takes a page: of its pair the one that is not closed. */
static unsigned class_for(const struct wb_tree_state *next, bool older)
{
    unsigned first = older ? 0 : 2;
    const struct wb_tree_class *a = &next->classes[first], *b = &next->classes[first + 1];

    if (a->to == next->txn || b->to == next->txn) /* chosen before in this transaction */
        return a->to == next->txn ? first : first + 1;
    if (a->pages && b->pages) /* one is closed and not yet free: the younger one goes on */
        return a->to > b->to ? first : first + 1;
    return a->pages ? first + 1 : first;
}

int wb_tree_space_give(struct wb_tree *tree, uint32_t page, uint64_t born)
{
    struct wb_tree_space *space = &tree->space;
    struct wb_tree_state *next = &tree->next;

    WB_CHECK(tree->writing);
    if (page < 2 || page >= next->pages || wb_tree_space_of(space, page) != USED)
        return wb_tree_damaged(tree, page, "it is in use, but the free-space map says otherwise");
    if (born == next->txn) { /* no reader has ever seen it */
        set(space, page, 0);
        next->free++;
        if (page < space->cursor)
            space->cursor = page;
        return 0;
    }
    bool older = born <= space->oldest;
    unsigned i = class_for(next, older);
    struct wb_tree_class *class = &next->classes[i];
    uint64_t from = older ? 0 : space->oldest + 1;
    if (class->pages == 0 || from < class->from)
        class->from = from;
    class->to = next->txn;
    class->pages++;
    set(space, page, FIRST_CLASS + i);
    return 0;
}

/* ---- writing the map --------------------------------------------------------------------------------- */

/* Finds a place for a part of the map that changed. part: its number; index: among the index pages. */
static int place(struct wb_tree *tree, bool index, size_t part, bool *again)
{
    struct wb_tree_space *space = &tree->space;
    struct wb_tree_map *map = index ? &space->index[part] : &space->maps[part];
    uint32_t page = 0;
    int err = 0;

    if (!map->dirty || map->placed)
        return 0;
    *again = true;
    map->placed = WB_TREE_IN_MEMORY; /* giving and taking may change it, but it needs one place only */
    if (map->ref.page)
        err = wb_tree_space_give(tree, map->ref.page, wb_tree_page_txn(map->page));
    if (err == 0)
        err = wb_tree_space_take(tree, &page);
    map = index ? &space->index[part] : &space->maps[part]; /* taking may have made the array longer */
    map->placed = page;
    return err;
}

static int write_part(struct wb_tree *tree, struct wb_tree_map *map, struct wb_tree_ref *ref_out)
{
    wb_tree_page_stamp(map->page, map->placed, tree->next.txn);
    map->ref = *ref_out = (struct wb_tree_ref){map->placed, wb_hash64(map->page, WB_TREE_PAGE_BYTES)};
    return wb_tree_out_write(tree, map->placed, map->page);
}

/* An index page that does not exist yet. */
static int make_index(struct wb_tree_space *space, size_t i)
{
    if (space->index[i].page)
        return 0;
    space->index[i].page = wb_alloc(WB_TREE_PAGE_BYTES);
    if (!space->index[i].page)
        return WB_E_NOMEM;
    wb_tree_page_init(space->index[i].page, WB_TREE_KIND_SPACE_INDEX, (unsigned)i, 0);
    return 0;
}

int wb_tree_space_write(struct wb_tree *tree)
{
    struct wb_tree_space *space = &tree->space;
    bool again = true;
    int err = 0;

    while (again && err == 0) {
        again = false;
        for (size_t m = 0; m < space->count && err == 0; m++)
            err = place(tree, false, m, &again);
        for (size_t i = 0; i * MAPS_PER_INDEX < space->count && err == 0; i++) {
            err = make_index(space, i);
            if (err == 0)
                err = place(tree, true, i, &again);
        }
    }
    for (size_t m = 0; m < space->count && err == 0; m++) {
        struct wb_tree_ref ref;
        if (!space->maps[m].placed)
            continue;
        err = write_part(tree, &space->maps[m], &ref);
        char *at = space->index[m / MAPS_PER_INDEX].page + WB_TREE_HEADER_BYTES + m % MAPS_PER_INDEX * REF_BYTES;
        wb_put32(at, ref.page);
        wb_put64(at + 4, ref.check);
        WB_CHECK(space->index[m / MAPS_PER_INDEX].placed);
    }
    for (size_t i = 0; i * MAPS_PER_INDEX < space->count && err == 0; i++)
        if (space->index[i].placed)
            err = write_part(tree, &space->index[i], &tree->next.space[i]);
    return err;
}

static void settle(struct wb_tree_map *map, bool keep)
{
    if (map->dirty && !keep)
        map->ref = (struct wb_tree_ref){0};
    map->dirty = false;
    map->placed = 0;
}

void wb_tree_space_settle(struct wb_tree_space *space)
{
    for (size_t i = 0; i < space->count; i++)
        settle(&space->maps[i], true);
    for (size_t i = 0; i < WB_TREE_SPACE_MAX; i++)
        settle(&space->index[i], true);
}

void wb_tree_space_forget(struct wb_tree_space *space)
{
    for (size_t i = 0; i < space->count; i++)
        settle(&space->maps[i], false);
    for (size_t i = 0; i < WB_TREE_SPACE_MAX; i++)
        settle(&space->index[i], false);
}

void wb_tree_space_release(struct wb_tree_space *space)
{
    for (size_t i = 0; i < space->count; i++)
        wb_free(space->maps[i].page);
    for (size_t i = 0; i < WB_TREE_SPACE_MAX; i++)
        wb_free(space->index[i].page);
    wb_free(space->maps);
    *space = (struct wb_tree_space){0};
}
