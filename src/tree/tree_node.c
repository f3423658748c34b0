/*
 * tree_node.c - pages in memory. When a page is read from the file, its checksum is compared
 * with that in the pointer, then its structure is checked. So the rest of the tree can
 * rely on both, even if somebody has constructed a malicious file.
 *
 * Up to WB_TREE_NODES_MAX pages that were read are kept, as far as the process may keep that
 * much (kept.h). Which one is removed to make room is decided by a clock hand: it goes around the
 * ring and removes the first page that was not used since it passed last. Changed pages are in a
 * separate list, and are never removed this way. Nothing here writes to the file.
 *
 * Every commit replaces pages, and nobody asks for the old ones any more. Which ones those are is
 * not known, but there are never more useful ones than the file has pages. So no more than that
 * are kept: what a handle keeps of a small repository stays small, however many commits come and go.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "base/kept.h"
#include "base/mem.h"
#include "tree/tree_own.h"

int wb_tree_damaged(const struct wb_tree *tree, uint32_t page, const char *what)
{
    WB_CHECK(what != NULL);
    return wb_fail(WB_E_CORRUPT, "%s is damaged: page %lu (at %llu): %s", tree->file.path, (unsigned long)page,
                   (unsigned long long)page * WB_TREE_PAGE_BYTES, what);
}

int wb_tree_page_read(struct wb_tree *tree, struct wb_tree_ref ref, char *page_out)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);

    size_t got;
    int err = wb_file_read_at(&tree->file, (uint64_t)ref.page * WB_TREE_PAGE_BYTES, page_out, WB_TREE_PAGE_BYTES, &got);

    if (err < 0)
        return err;
    if (got != WB_TREE_PAGE_BYTES)
        return wb_tree_damaged(tree, ref.page, "the file ends before it");
    if (wb_hash64(page_out, WB_TREE_PAGE_BYTES) != ref.check)
        return wb_tree_damaged(tree, ref.page, "it does not match its checksum");
    return 0;
}

/* ---- pages that are kept --------------------------------------------------------------- */

static struct wb_tree_node **bucket_of(struct wb_tree *tree, struct wb_tree_ref ref)
{
    return &tree->nodes.buckets[ref.check % WB_TREE_BUCKETS];
}

static struct wb_tree_node *find_kept(struct wb_tree *tree, struct wb_tree_ref ref)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(ref.page != WB_TREE_IN_MEMORY);

    struct wb_tree_node *node = *bucket_of(tree, ref);

    while (node && !wb_tree_ref_equal(node->ref, ref))
        node = node->chain;
    return node;
}

static void unchain(struct wb_tree *tree, struct wb_tree_node *node)
{
    WB_CHECK(node->ref.page != WB_TREE_IN_MEMORY);
    WB_CHECK(!node->dirty);

    struct wb_tree_node **at = bucket_of(tree, node->ref);

    while (*at != node)
        at = &(*at)->chain;
    *at = node->chain;
}

/* How many pages this handle keeps at most. */
static unsigned nodes_max(const struct wb_tree *tree)
{
    uint32_t pages = tree->writing && tree->next.pages > tree->newest.pages ? tree->next.pages : tree->newest.pages;

    return pages < WB_TREE_NODES_MAX - WB_TREE_NODES_SPARE ? pages + WB_TREE_NODES_SPARE : WB_TREE_NODES_MAX;
}

/* The page that has to go: the first one that was not used since the hand passed. NULL if all pages are in use. */
static struct wb_tree_node **find_unused(struct wb_tree *tree)
{
    struct wb_tree_nodes *nodes = &tree->nodes;

    WB_CHECK(nodes->count <= WB_TREE_NODES_MAX);
    for (unsigned i = 0; i < 2 * nodes->count; i++) {
        struct wb_tree_node **place = &nodes->ring[nodes->hand % nodes->count];
        nodes->hand = (nodes->hand + 1) % nodes->count;
        if ((*place)->pins)
            continue;
        if (!(*place)->recent)
            return place;
        (*place)->recent = false;
    }
    return NULL;
}

/* Gives back a place that is not used any more. */
static void give_back(struct wb_tree *tree, struct wb_tree_node **place)
{
    struct wb_tree_nodes *nodes = &tree->nodes;

    WB_CHECK(nodes->count > 0);
    WB_CHECK(place >= nodes->ring);
    WB_CHECK(place < nodes->ring + nodes->count);
    wb_free(*place);
    *place = nodes->ring[--nodes->count];
    nodes->hand = nodes->count ? nodes->hand % nodes->count : 0;
    wb_kept_drop(WB_KEPT_CATALOG, sizeof **place);
}

/* Gives up a page that is not in use. Returns false if there is none. */
static bool give_up(struct wb_tree *tree)
{
    struct wb_tree_node **place = find_unused(tree);

    if (place) {
        unchain(tree, *place);
        give_back(tree, place);
    }
    return place != NULL;
}

/* A new place in the ring; it is counted already. */
static struct wb_tree_node **add_place(struct wb_tree_nodes *nodes)
{
    WB_CHECK(nodes->count < WB_TREE_NODES_MAX);
    nodes->ring[nodes->count] = NULL;
    return &nodes->ring[nodes->count++];
}

/* Finds a place in the ring: a new one, or that of a page that has to go. NULL if all pages are in use. */
static struct wb_tree_node **make_place(struct wb_tree *tree)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);

    struct wb_tree_nodes *nodes = &tree->nodes;
    unsigned most = nodes_max(tree);

    WB_CHECK(nodes->count <= WB_TREE_NODES_MAX);
    if (wb_kept_pressed(&nodes->pressed) && nodes->count > most / 2)
        most = nodes->count / 2;
    while (nodes->count > most && give_up(tree))
        continue;
    if (nodes->count < most && wb_kept_add(WB_KEPT_CATALOG, sizeof **nodes->ring))
        return add_place(nodes);
    struct wb_tree_node **place = find_unused(tree);
    if (place) {
        unchain(tree, *place);
        return place;
    }
    if (nodes->count == WB_TREE_NODES_MAX)
        return NULL;
    wb_kept_need(WB_KEPT_CATALOG, sizeof **nodes->ring); /* a transaction needs the pages that it is looking at */
    return add_place(nodes);
}

/* Puts a node into a place of the ring and into its bucket. */
static void keep(struct wb_tree *tree, struct wb_tree_node **place, struct wb_tree_node *node)
{
    WB_CHECK(place >= tree->nodes.ring);
    WB_CHECK(!node->dirty);
    WB_CHECK(node->ref.page >= WB_TREE_FIRST_PAGE);

    struct wb_tree_node **bucket = bucket_of(tree, node->ref);

    *place = node;
    node->chain = *bucket;
    *bucket = node;
    node->recent = true;
}

/* Reads and checks a page of a table. */
static int read_node(struct wb_tree *tree, struct wb_tree_ref ref, unsigned table, unsigned level,
                     struct wb_tree_node *node)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(level < WB_TREE_LEVELS_MAX);
    WB_CHECK(table < WB_TREE_TABLES_MAX);

    const char *wrong;
    int err = wb_tree_page_read(tree, ref, node->page);

    if (err < 0)
        return err;
    wrong = wb_tree_page_check(node->page, ref.page, table, level);
    if (wrong)
        return wb_tree_damaged(tree, ref.page, wrong);
    node->ref = ref;
    node->dirty = node->bounded = false;
    node->pins = 1;
    return 0;
}

/* Finds a page in memory, and pins it. Returns 1, or 0 if it must be read. */
static int find_node(struct wb_tree *tree, struct wb_tree_ref ref, unsigned table, unsigned level,
                     struct wb_tree_node **node_out)
{
    struct wb_tree_node *node;

    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(table < WB_TREE_TABLES_MAX);
    WB_CHECK(level < WB_TREE_LEVELS_MAX);
    *node_out = NULL;
    if (ref.page == WB_TREE_IN_MEMORY && tree->writing) {
        node = (struct wb_tree_node *)(uintptr_t)ref.check;
        WB_CHECK(node->dirty);
        WB_CHECK(wb_tree_page_level(node->page) == level);
    } else {
        node = find_kept(tree, ref);
        /* In a malicious file, two pointers that expect different things may lead to the same page. */
        if (node && (wb_tree_page_table(node->page) != table || wb_tree_page_level(node->page) != level))
            return wb_tree_damaged(tree, ref.page, "it is of another level or table");
    }
    if (!node)
        return 0;
    node->pins++;
    node->recent = true;
    *node_out = node;
    return 1;
}

int wb_tree_node_peek(struct wb_tree *tree, struct wb_tree_ref ref, unsigned table, char room[WB_TREE_PAGE_BYTES],
                      struct wb_tree_node **node_out, const char **page_out)
{
    int found = find_node(tree, ref, table, 0, node_out), err;

    *page_out = found > 0 ? (*node_out)->page : room;
    if (found != 0)
        return found < 0 ? found : 0;
    err = wb_tree_page_read(tree, ref, room);
    const char *wrong = err == 0 ? wb_tree_page_check(room, ref.page, table, 0) : NULL;
    return wrong ? wb_tree_damaged(tree, ref.page, wrong) : err;
}

int wb_tree_node_load(struct wb_tree *tree, struct wb_tree_ref ref, unsigned table, unsigned level,
                      struct wb_tree_node **node_out)
{
    int found = find_node(tree, ref, table, level, node_out);

    if (found != 0)
        return found < 0 ? found : 0;
    struct wb_tree_node **place = make_place(tree);
    WB_CHECK(place); /* only few pages are pinned: one path at a time */
    if (!*place)
        *place = wb_alloc(sizeof **place);
    int err = *place ? read_node(tree, ref, table, level, *place) : WB_E_NOMEM;
    if (err < 0) {
        give_back(tree, place);
        return err;
    }
    keep(tree, place, *place);
    *node_out = *place;
    return 0;
}

void wb_tree_node_unpin(struct wb_tree_node *node)
{
    WB_CHECK(node->pins > 0);
    node->pins--;
}

/* ---- changed pages ------------------------------------------------------------------------ */

int wb_tree_node_new(struct wb_tree *tree, const char *from, struct wb_tree_node **node_out)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    WB_CHECK(tree->writing);
    WB_CHECK(!from || wb_tree_page_count(from) > 0);

    struct wb_tree_node *node = wb_alloc(sizeof *node);

    *node_out = NULL;
    if (!node)
        return WB_E_NOMEM;
    *node = (struct wb_tree_node){.dirty = true, .chain = tree->changed};
    if (from)
        memcpy(node->page, from, sizeof node->page);
    if (tree->changed)
        tree->changed->before = node;
    tree->changed = node;
    tree->changed_count++;
    *node_out = node;
    return 0;
}

/* Takes a node out of the list of changed pages. */
static void unlink_changed(struct wb_tree *tree, struct wb_tree_node *node)
{
    WB_CHECK(tree->changed != NULL);
    WB_CHECK(node->dirty);
    WB_CHECK(tree->changed_count > 0);
    if (node->before)
        node->before->chain = node->chain;
    else
        tree->changed = node->chain;
    if (node->chain)
        node->chain->before = node->before;
    tree->changed_count--;
    if (tree->near[wb_tree_page_table(node->page)].leaf == node)
        wb_tree_near_forget(tree, wb_tree_page_table(node->page));
}

void wb_tree_node_drop(struct wb_tree *tree, struct wb_tree_node *node)
{
    WB_CHECK(tree->writing);
    WB_CHECK(node->pins == 0);
    unlink_changed(tree, node);
    wb_free(node);
}

void wb_tree_node_written(struct wb_tree *tree, struct wb_tree_node *node, struct wb_tree_ref ref)
{
    WB_CHECK(tree->writing);
    WB_CHECK(node->dirty);
    WB_CHECK(ref.page >= WB_TREE_FIRST_PAGE);
    WB_CHECK(ref.page != WB_TREE_IN_MEMORY);
    WB_CHECK(node->pins == 0);

    struct wb_tree_node **place = make_place(tree);

    unlink_changed(tree, node);
    if (!place) {
        wb_free(node);
        return;
    }
    wb_free(*place);
    node->ref = ref;
    node->dirty = false;
    keep(tree, place, node);
}

void wb_tree_nodes_release(struct wb_tree *tree)
{
    WB_CHECK(tree->magic == WB_TREE_MAGIC);
    while (tree->changed)
        wb_tree_node_drop(tree, tree->changed);
    for (unsigned i = 0; i < tree->nodes.count; i++)
        wb_free(tree->nodes.ring[i]);
    wb_kept_drop(WB_KEPT_CATALOG, tree->nodes.count * sizeof **tree->nodes.ring);
    tree->nodes.count = 0;
}
