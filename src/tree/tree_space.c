/*
 * tree_space.c - the free-space map, in memory and on disk. tree_space.h explains what the
 * four bits mean, and what classes are.
 *
 * A map page has the usual header of pages (tree_page.h) and four bits for each of 8144
 * pages, the lower half of a byte first. An index page has the header and pointers (page
 * 4, checksum 8) to 339 map pages.
 *
 * Writing the map needs free pages itself, which changes the map. So places are taken for
 * all parts that have changed, again and again, until no further part changes; only then
 * are the parts written.
 */
#include "tree/tree_space.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/mem.h"
#include "tree/tree_own.h"

enum {
    PAGES_PER_MAP = WB_TREE_ROOM * 2,
    REF_BYTES = 12,
    MAPS_PER_INDEX = WB_TREE_ROOM / REF_BYTES,
    USED = 1,
    FIRST_CLASS = 2,
};
_Static_assert(PAGES_PER_MAP == 8144 && MAPS_PER_INDEX == 339, "the numbers in the documentation");
_Static_assert(FIRST_CLASS + (int)WB_TREE_CLASSES <= 16, "every class has a number of four bits");
_Static_assert((int)WB_TREE_ROOM % 8 == 0, "a map can be searched eight bytes at a time");

/* A word in which each of the sixteen numbers of four bits is 1. */
#define ONES UINT64_C(0x1111111111111111)

/* How many map pages a file of this many pages has. A file with nothing but root records has none. */
static size_t maps_of(uint32_t pages)
{
    return pages <= WB_TREE_FIRST_PAGE ? 0 : (pages + (size_t)PAGES_PER_MAP - 1) / PAGES_PER_MAP;
}

/* ---- four bits ---------------------------------------------------------------------------- */

unsigned wb_tree_space_of(const struct wb_tree_space *space, uint32_t page)
{
    const struct wb_tree_map *map = &space->maps.items[page / PAGES_PER_MAP];
    uint32_t i = page % PAGES_PER_MAP;

    WB_CHECK(page / PAGES_PER_MAP < space->maps.count);
    return (unsigned)(uint8_t)map->page[WB_TREE_HEADER_BYTES + i / 2] >> (i % 2 * 4) & 15;
}

static void set(struct wb_tree_space *space, uint32_t page, unsigned value)
{
    WB_CHECK(page / PAGES_PER_MAP < space->maps.count);
    WB_CHECK(value < 16);

    struct wb_tree_map *map = &space->maps.items[page / PAGES_PER_MAP];
    uint32_t i = page % PAGES_PER_MAP;

    WB_CHECK(map->page != NULL);
    uint8_t *byte = (uint8_t *)map->page + WB_TREE_HEADER_BYTES + i / 2;
    *byte = (uint8_t)((*byte & ~(15u << (i % 2 * 4))) | value << (i % 2 * 4));
    map->dirty = true;
    space->index[page / PAGES_PER_MAP / MAPS_PER_INDEX].dirty = true;
}

/* Returns a word with a 1 in the place of each of the sixteen numbers that is `value`, and 0 elsewhere. */
static uint64_t which_are(uint64_t word, unsigned value)
{
    uint64_t x = word ^ ONES * value;

    WB_CHECK(value < 16);
    return ~(x | x >> 1 | x >> 2 | x >> 3) & ONES;
}

/* Gives all pages of a class another value, sixteen at a time. Returns how many they are. */
static uint64_t relabel(struct wb_tree *tree, unsigned class, unsigned value)
{
    struct wb_tree_space *space = &tree->space;
    uint64_t count = 0;

    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(tree->writing);
    WB_CHECK(class < WB_TREE_CLASSES);
    WB_CHECK(value < 16);
    for (size_t m = 0; m < space->maps.count; m++) {
        char *bits = space->maps.items[m].page + WB_TREE_HEADER_BYTES;
        uint64_t here = 0;
        for (size_t at = 0; at < WB_TREE_ROOM; at += 8) {
            uint64_t word = wb_get64(bits + at), hits = which_are(word, FIRST_CLASS + class);
            if (hits) {
                wb_put64(bits + at, (word & ~(hits * 15)) | hits * value);
                here += (uint64_t)__builtin_popcountll(hits);
            }
        }
        if (here) {
            space->maps.items[m].dirty = true;
            space->index[m / MAPS_PER_INDEX].dirty = true;
        }
        count += here;
    }
    tree->next.classes[class] = (struct wb_tree_class){0};
    return count;
}

/* ---- reading the map --------------------------------------------------------------------------- */

/* Reads and checks one part of the map. */
static int read_part(struct wb_tree *tree, struct wb_tree_ref ref, enum wb_tree_kind kind, uint16_t number,
                     struct wb_tree_map *map)
{
    int err;

    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(kind == WB_TREE_KIND_SPACE || kind == WB_TREE_KIND_SPACE_INDEX);
    if (!map->page)
        map->page = wb_alloc(WB_TREE_PAGE_BYTES);
    map->ref = (struct wb_tree_ref){0};
    map->dirty = false;
    map->placed = 0;
    if (!map->page)
        return WB_E_NOMEM;
    if (!wb_tree_ref_valid(ref.page))
        return wb_fail(WB_E_CORRUPT, "%s is damaged: a part of its free-space map is missing", tree->file.path);
    err = wb_tree_page_read(tree, ref, map->page);
    if (err < 0)
        return err;
    if (wb_get32(map->page) != ref.page || map->page[WB_TREE_KIND_AT] != (char)kind ||
        wb_tree_page_table(map->page) != number)
        return wb_tree_damaged(tree, ref.page, "it is not the part of the free-space map that belongs here");
    map->ref = ref;
    return 0;
}

/* Changes the number of map pages in memory; new ones are empty. */
static int resize(struct wb_tree_space *space, size_t count)
{
    WB_CHECK(count <= (size_t)WB_TREE_SPACE_MAX * MAPS_PER_INDEX);
    while (space->maps.count > count)
        wb_free(wb_vec_pop(&space->maps).page);
    while (space->maps.count < count)
        if (!wb_vec_add(&space->maps))
            return WB_E_NOMEM;
    return 0;
}

int wb_tree_space_read(struct wb_tree *tree, const struct wb_tree_state *state, struct wb_tree_space *space,
                       int (*each)(void *context, uint32_t page), void *context)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);

    size_t count = maps_of(state->pages);
    int err = 0;

    if (count > (size_t)WB_TREE_SPACE_MAX * MAPS_PER_INDEX)
        return wb_fail(WB_E_CORRUPT, "%s is damaged: it has more pages than its free-space map can have",
                       tree->file.path);
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
            struct wb_tree_map *map = &space->maps.items[m];
            if (!map->ref.page || !wb_tree_ref_equal(map->ref, ref))
                err = read_part(tree, ref, WB_TREE_KIND_SPACE, (uint16_t)m, map);
            if (err == 0 && each)
                err = each(context, ref.page);
        }
    }
    return err;
}

/* ---- readers --------------------------------------------------------------------------------------- */

/* Adds the states that are marked to those that readers hold; if they are too many, the oldest count. */
static void add_marks(struct wb_tree_space *space, const struct wb_tree_mark marks[WB_TREE_MARKS_MAX])
{
    for (unsigned i = 0; i < WB_TREE_MARKS_MAX; i++) {
        unsigned at = space->held_count;
        if (marks[i].txn == 0)
            continue;
        while (at > 0 && space->held[at - 1] > marks[i].txn)
            at--;
        if (at == WB_TREE_SPACE_HELD_MAX || (at > 0 && space->held[at - 1] == marks[i].txn))
            continue;
        if (space->held_count < WB_TREE_SPACE_HELD_MAX)
            space->held_count++;
        memmove(&space->held[at + 1], &space->held[at], (space->held_count - at - 1) * sizeof *space->held);
        space->held[at] = marks[i].txn;
    }
}

/* Finds out which states are held. From now on nobody can begin to hold one of them, except the newest. */
static int find_held(struct wb_tree *tree)
{
    struct wb_tree_space *space = &tree->space;
    uint64_t from = 0, end = tree->next.txn;
    int found = 1;

    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(tree->writing);
    space->held_count = 0;
    while (space->held_count < WB_TREE_SPACE_HELD_MAX && from < end) {
        uint64_t txn;
        found = wb_tree_first_held(tree, from, end, &txn);
        if (found <= 0)
            break;
        space->held[space->held_count++] = txn;
        from = txn + 1;
    }
    add_marks(space, tree->next.marks);
    return found < 0 ? found : 0;
}

/* The oldest state, from `born` on, that a reader may need; if nobody does, the one that the transaction replaces. */
static uint64_t first_needed(const struct wb_tree_space *space, uint64_t born, uint64_t newest)
{
    WB_CHECK(space->held_count <= WB_TREE_SPACE_HELD_MAX);
    for (unsigned i = 0; i < space->held_count; i++)
        if (space->held[i] >= born || i + 1 == WB_TREE_SPACE_HELD_MAX) /* the last one stands for those after it */
            return space->held[i];
    return newest;
}

/* Unites two classes. Their pages are needed by all readers that may need a page of either. */
static void unite(struct wb_tree *tree, unsigned a, unsigned b)
{
    struct wb_tree_class *into = &tree->next.classes[a], from = tree->next.classes[b];

    WB_CHECK(a != b);
    WB_CHECK(into->from <= from.from);
    into->to = into->to > from.to ? into->to : from.to;
    into->pages += relabel(tree, b, FIRST_CLASS + a);
}

/* If no class is empty, unites two: neighbours in the order of `from` that have the fewest pages together. */
static void make_room(struct wb_tree *tree)
{
    const struct wb_tree_class *classes = tree->next.classes;
    unsigned order[WB_TREE_CLASSES], best = 0;

    WB_CHECK(tree->writing);
    for (unsigned i = 0; i < WB_TREE_CLASSES; i++) {
        unsigned at = i;
        if (classes[i].pages == 0)
            return;
        for (; at > 0 && classes[order[at - 1]].from > classes[i].from; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (unsigned i = 1; i + 1 < WB_TREE_CLASSES; i++)
        if (classes[order[i]].pages + classes[order[i + 1]].pages <=
            classes[order[best]].pages + classes[order[best + 1]].pages)
            best = i;
    unite(tree, order[best], order[best + 1]);
}

int wb_tree_space_begin(struct wb_tree *tree)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(tree->writing);
    WB_CHECK(tree->next.txn == tree->newest.txn + 1);

    struct wb_tree_state *next = &tree->next;
    struct wb_tree_space *space = &tree->space;
    int err = wb_tree_space_read(tree, next, space, NULL, NULL);

    space->cursor = WB_TREE_FIRST_PAGE;
    if (err == 0)
        err = find_held(tree);
    for (unsigned i = 0; i < WB_TREE_CLASSES && err == 0; i++)
        if (next->classes[i].pages && first_needed(space, next->classes[i].from, next->txn) >= next->classes[i].to)
            next->free += relabel(tree, i, 0);
    if (err == 0)
        make_room(tree);
    return err;
}

/* ---- taking and giving ----------------------------------------------------------------------------- */

/* Makes the file longer by one page, which may need another page of the map. */
static int extend(struct wb_tree *tree, uint32_t *page_out)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);

    struct wb_tree_space *space = &tree->space;
    uint32_t page = tree->next.pages;
    size_t count = maps_of(page + 1);

    WB_CHECK(tree->writing);
    WB_CHECK(page >= WB_TREE_FIRST_PAGE);
    WB_CHECK(page < WB_TREE_IN_MEMORY);
    if (count > (size_t)WB_TREE_SPACE_MAX * MAPS_PER_INDEX)
        return wb_fail(WB_E_LIMIT, "%s cannot become larger", tree->file.path);
    if (count > space->maps.count) {
        char *empty = wb_alloc(WB_TREE_PAGE_BYTES);
        int err = empty ? resize(space, count) : WB_E_NOMEM;
        if (err < 0) {
            wb_free(empty);
            return err;
        }
        wb_tree_page_init(empty, WB_TREE_KIND_SPACE, (unsigned)count - 1, 0);
        space->maps.items[count - 1].page = empty;
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

    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(space->cursor >= WB_TREE_FIRST_PAGE);
    WB_CHECK(tree->writing);
    while (tree->next.free > 0 && space->cursor < tree->next.pages) {
        const struct wb_tree_map *map = &space->maps.items[space->cursor / PAGES_PER_MAP];
        uint32_t i = space->cursor % PAGES_PER_MAP;
        bool sixteen = i % 16 == 0 && i + 16 <= PAGES_PER_MAP; /* then all of them are looked at together */
        if (sixteen && !which_are(wb_get64(map->page + WB_TREE_HEADER_BYTES + i / 2), 0)) {
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

/*
 * The class that takes a page that is first needed by the state `needed`: that of this state. An empty
 * class is only for the state that is being replaced. Any other state had its class; if that was
 * united with an older one, that one takes the page.
 */
static unsigned class_for(const struct wb_tree_state *next, uint64_t needed)
{
    const struct wb_tree_class *classes = next->classes;
    unsigned empty = WB_TREE_CLASSES, older = WB_TREE_CLASSES;

    WB_CHECK(needed < next->txn);
    for (unsigned i = 0; i < WB_TREE_CLASSES; i++) {
        if (classes[i].pages == 0)
            empty = i;
        else if (classes[i].from == needed)
            return i;
        else if (older == WB_TREE_CLASSES || classes[older].from > needed ||
                 (classes[i].from < needed && classes[i].from > classes[older].from))
            older = i;
    }
    WB_CHECK(empty < WB_TREE_CLASSES || needed + 1 < next->txn); /* make_room() */
    return needed + 1 == next->txn || older == WB_TREE_CLASSES ? empty : older;
}

int wb_tree_space_give(struct wb_tree *tree, uint32_t page, uint64_t born)
{
    struct wb_tree_space *space = &tree->space;
    struct wb_tree_state *next = &tree->next;

    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(tree->writing);
    if (page < WB_TREE_FIRST_PAGE || page >= next->pages || wb_tree_space_of(space, page) != USED)
        return wb_tree_damaged(tree, page, "it is in use, but the free-space map says otherwise");
    if (born == next->txn) { /* this transaction wrote it, so no reader has ever seen it */
        set(space, page, 0);
        next->free++;
        if (page < space->cursor)
            space->cursor = page;
        return 0;
    }
    uint64_t needed = first_needed(space, born, next->txn - 1);
    unsigned i = class_for(next, needed);
    struct wb_tree_class *class = &next->classes[i];
    if (class->pages == 0 || needed < class->from)
        class->from = needed;
    class->to = next->txn;
    class->pages++;
    set(space, page, FIRST_CLASS + i);
    return 0;
}

/* ---- writing the map --------------------------------------------------------------------------------- */

/* Takes a place for a part of the map, if it has changed and has none yet. index: it is an index page. */
static int place(struct wb_tree *tree, bool index, size_t part, bool *again)
{
    struct wb_tree_space *space = &tree->space;
    struct wb_tree_map *map = index ? &space->index[part] : &space->maps.items[part];
    uint32_t page = 0;
    int err = 0;

    WB_CHECK(part < (size_t)WB_TREE_SPACE_MAX * MAPS_PER_INDEX);
    WB_CHECK(tree->writing);
    if (!map->dirty || map->placed)
        return 0;
    *again = true;
    map->placed = WB_TREE_IN_MEMORY; /* giving and taking may change this part again, but one place is enough */
    if (map->ref.page)
        err = wb_tree_space_give(tree, map->ref.page, wb_tree_page_txn(map->page));
    if (err == 0)
        err = wb_tree_space_take(tree, &page);
    map = index ? &space->index[part] : &space->maps.items[part]; /* taking may have moved the vector */
    map->placed = page;
    return err;
}

static int write_part(struct wb_tree *tree, struct wb_tree_map *map, struct wb_tree_ref *ref_out)
{
    WB_CHECK(tree->writing);
    WB_CHECK(map->dirty);
    WB_CHECK(map->placed >= WB_TREE_FIRST_PAGE);
    WB_CHECK(map->placed != WB_TREE_IN_MEMORY);
    wb_tree_page_stamp(map->page, map->placed, tree->next.txn);
    map->ref = *ref_out = (struct wb_tree_ref){map->placed, wb_hash64(map->page, WB_TREE_PAGE_BYTES)};
    return wb_tree_out_write(tree, map->placed, map->page);
}

/* Makes an index page that does not exist yet. */
static int make_index(struct wb_tree_space *space, size_t i)
{
    WB_CHECK(i < WB_TREE_SPACE_MAX);
    if (space->index[i].page)
        return 0;
    space->index[i].page = wb_alloc(WB_TREE_PAGE_BYTES);
    if (!space->index[i].page)
        return WB_E_NOMEM;
    wb_tree_page_init(space->index[i].page, WB_TREE_KIND_SPACE_INDEX, (unsigned)i, 0);
    return 0;
}

/* Takes places until no further part of the map changes. */
static int place_all(struct wb_tree *tree)
{
    struct wb_tree_space *space = &tree->space;
    bool again = true;
    int err = 0;

    WB_CHECK(tree->writing);
    while (again && err == 0) {
        again = false;
        for (size_t m = 0; m < space->maps.count && err == 0; m++)
            err = place(tree, false, m, &again);
        for (size_t i = 0; i * MAPS_PER_INDEX < space->maps.count && err == 0; i++) {
            err = make_index(space, i);
            if (err == 0)
                err = place(tree, true, i, &again);
        }
    }
    return err;
}

int wb_tree_space_write(struct wb_tree *tree)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(tree->writing);

    struct wb_tree_space *space = &tree->space;
    int err = place_all(tree);

    for (size_t m = 0; m < space->maps.count && err == 0; m++) {
        struct wb_tree_ref ref;
        if (!space->maps.items[m].placed)
            continue;
        WB_CHECK(space->index[m / MAPS_PER_INDEX].placed); /* it changes too */
        err = write_part(tree, &space->maps.items[m], &ref);
        char *at = space->index[m / MAPS_PER_INDEX].page + WB_TREE_HEADER_BYTES + m % MAPS_PER_INDEX * REF_BYTES;
        wb_put32(at, ref.page);
        wb_put64(at + 4, ref.check);
    }
    for (size_t i = 0; i * MAPS_PER_INDEX < space->maps.count && err == 0; i++)
        if (space->index[i].placed)
            err = write_part(tree, &space->index[i], &tree->next.space[i]);
    return err;
}

/* Ends a transaction for one part. keep: what was changed is now on disk; otherwise it must be read again. */
static void end_changes(struct wb_tree_map *map, bool keep)
{
    WB_CHECK(map->placed == 0 || map->dirty);
    if (map->dirty && !keep)
        map->ref = (struct wb_tree_ref){0};
    map->dirty = false;
    map->placed = 0;
}

void wb_tree_space_keep(struct wb_tree_space *space)
{
    for (size_t i = 0; i < space->maps.count; i++)
        end_changes(&space->maps.items[i], true);
    for (size_t i = 0; i < WB_TREE_SPACE_MAX; i++)
        end_changes(&space->index[i], true);
}

void wb_tree_space_forget(struct wb_tree_space *space)
{
    for (size_t i = 0; i < space->maps.count; i++)
        end_changes(&space->maps.items[i], false);
    for (size_t i = 0; i < WB_TREE_SPACE_MAX; i++)
        end_changes(&space->index[i], false);
}

void wb_tree_space_release(struct wb_tree_space *space)
{
    for (size_t i = 0; i < space->maps.count; i++)
        wb_free(space->maps.items[i].page);
    for (size_t i = 0; i < WB_TREE_SPACE_MAX; i++)
        wb_free(space->index[i].page);
    wb_vec_release(&space->maps);
    *space = (struct wb_tree_space){0};
}
