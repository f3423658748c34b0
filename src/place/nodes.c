/*
 * nodes.c - the table of nodes (nodes.h): finds their directories, notices those that are down, and chooses the one
 * that takes a new page. It never opens a file of pages.
 */
#include "place/nodes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/path.h"
#include "place/busy.h"
#include "place/superblock.h"

#include <stdio.h>

enum {
    LOOK_NS = 1000000000, /* for so long a writer relies on what it has seen of a node */
    AVOID_NS_PER_S = 1000000000,
    AVOID_S = 10,             /* for so long a node is avoided on which something could not be written */
    FULL_PART = 100,          /* a node with less than this part of its capacity left is full, ... */
    FULL_BYTES_MIN = 2 << 20, /* ... or with less than these bytes, ... */
    FULL_BYTES_MAX = 1 << 30, /* ... but not one that has these bytes left */
    RANGE_STEP = 4,           /* ranges of nodes begin and end where hashed-log divides ids (hashed_log.h) */
    NO_TAKER = UINT8_MAX,
};

_Static_assert(WB_DESIGN_NODES_MAX < NO_TAKER, "wb_nodes.takers can name every node");

/* ---- the table -------------------------------------------------------------------------------------------- */

void wb_nodes_init(struct wb_nodes *nodes, const char *dir, const struct wb_superblock *superblock)
{
    WB_CHECK(dir != NULL);
    *nodes = (struct wb_nodes){
        .dir = dir,
        .repository = superblock->id,
        .distribution = superblock->design.read.distribution,
        .first = 1,
        .last = WB_BUSY_NODE_MAX,
    };
}

static void forget_nodes(struct wb_nodes *nodes)
{
    for (size_t i = 0; i < nodes->items.count; i++) {
        wb_node_close(nodes->items.items[i].reach);
        wb_free(nodes->items.items[i].dir);
    }
    wb_vec_clear(&nodes->items);
    nodes->version = 0;
}

void wb_nodes_release(struct wb_nodes *nodes)
{
    forget_nodes(nodes);
    wb_vec_release(&nodes->items);
    wb_node_close(nodes->own);
    nodes->own = NULL;
}

/* Whether the node is the repository's own directory, which cannot be mistaken for another. */
static bool is_own(const struct wb_catalog_node *row)
{
    WB_CHECK(row->number > 0);
    return row->inside && strcmp(row->dir, ".") == 0;
}

struct wb_node_identity wb_nodes_identity(const uint8_t *repository, const struct wb_catalog_node *row)
{
    struct wb_node_identity identity = {.number = row->number};

    WB_CHECK(row->number > 0);
    memcpy(identity.repository, repository, sizeof identity.repository);
    memcpy(identity.id, row->id, sizeof identity.id);
    return identity;
}

char *wb_nodes_path(const char *repository_dir, const struct wb_catalog_node *row)
{
    WB_CHECK(row->dir[0] != '\0');
    return is_own(row)   ? wb_strdup(repository_dir)
           : row->inside ? wb_path_join(repository_dir, row->dir)
                         : wb_strdup(row->dir);
}

static int open_node(const struct wb_nodes *nodes, struct wb_known_node *node)
{
    struct wb_node_identity expected = wb_nodes_identity(nodes->repository, &node->row);

    return wb_node_open(node->dir, is_own(&node->row) ? NULL : &expected, &node->reach);
}

static int add_node(void *context, const struct wb_catalog_node *row)
{
    struct wb_nodes *nodes = context;
    struct wb_known_node node = {.row = *row, .dir = wb_nodes_path(nodes->dir, row)};
    int err = node.dir ? open_node(nodes, &node) : WB_E_NOMEM;
    if (err == 0 && nodes->items.count >= NO_TAKER)
        err = wb_fail(WB_E_CORRUPT, "%s/%s is damaged: too many nodes", nodes->dir, WB_CATALOG_NAME);
    if (wb_cells_count(&row->cells))
        node.range = wb_catalog_range_of_cells(&row->cells, RANGE_STEP);
    for (uint32_t cell = 0; cell < WB_CELLS; cell++)
        if (wb_cells_has(&row->cells, cell))
            nodes->takers[cell] = (uint8_t)nodes->items.count;
    if (err == 0)
        err = wb_vec_push(&nodes->items, node);
    if (err < 0) {
        wb_node_close(node.reach);
        wb_free(node.dir);
    }
    return err;
}

int wb_nodes_refresh(struct wb_nodes *nodes, struct wb_catalog_txn *txn)
{
    uint64_t version = wb_catalog_version(txn, WB_CATALOG_NODES);

    WB_CHECK(nodes->dir != NULL);
    if (version == nodes->version)
        return 0;
    forget_nodes(nodes);
    memset(nodes->takers, NO_TAKER, sizeof nodes->takers);
    int err = wb_catalog_node_each(txn, add_node, nodes);
    if (err < 0)
        forget_nodes(nodes);
    else
        nodes->version = version;
    return err;
}

size_t wb_nodes_count(const struct wb_nodes *nodes)
{
    WB_CHECK(nodes->dir != NULL);
    return nodes->items.count ? nodes->items.count : 1;
}

uint32_t wb_nodes_number(const struct wb_nodes *nodes, size_t i)
{
    WB_CHECK(i < wb_nodes_count(nodes));
    return nodes->items.count ? nodes->items.items[i].row.number : 1;
}

/* ---- looking at nodes --------------------------------------------------------------------------------------- */

/* Finds out whether the node is there. */
static int look(struct wb_known_node *node)
{
    WB_CHECK(node->reach != NULL);
    int err = wb_node_probe(node->reach);
    if (err == WB_E_NOMEM)
        return err;
    node->down = err < 0;
    snprintf(node->why, sizeof node->why, "%s", err < 0 ? wb_error_message() : "");
    return err < 0 ? wb_fail(WB_E_DOWN, "%s", node->why) : 0;
}

/* Finds out whether new pages can go there, unless that was done a moment ago. */
static int look_to_write(const struct wb_nodes *nodes, struct wb_known_node *node)
{
    struct wb_node_space space;
    int64_t now = wb_clock_mono_ns();

    WB_CHECK(node->row.number > 0);
    if (node->looked_ns && now - node->looked_ns < LOOK_NS)
        return node->down ? wb_fail(WB_E_DOWN, "%s", node->why) : 0;
    int err = look(node);
    node->looked_ns = now ? now : 1;
    if (err < 0)
        return err;
    uint64_t requests[WB_BUSY_KINDS];
    node->busy = nodes->distribution == WB_DISTRIBUTION_UNIFORM &&
                 wb_busy_count(nodes->dir, node->row.number, requests) == 0 && requests[WB_BUSY_STREAM] > 0;
    node->full = node->read_only = false;
    err = wb_node_space(node->reach, &space);
    if (err < 0)
        return err;
    uint64_t least = space.capacity / FULL_PART;
    least = least < FULL_BYTES_MIN ? FULL_BYTES_MIN : least > FULL_BYTES_MAX ? FULL_BYTES_MAX : least;
    node->full = space.free < least;
    node->read_only = space.read_only;
    return 0;
}

bool wb_nodes_has(const struct wb_nodes *nodes, uint32_t number)
{
    WB_CHECK(number > 0);
    for (size_t i = 0; i < wb_nodes_count(nodes); i++)
        if (wb_nodes_number(nodes, i) == number)
            return true;
    return false;
}

static struct wb_known_node *find_node(struct wb_nodes *nodes, uint32_t number)
{
    for (size_t i = 0; i < nodes->items.count; i++)
        if (nodes->items.items[i].row.number == number)
            return &nodes->items.items[i];
    return NULL;
}

/* A number that no row has: the catalog contradicts itself, or the node was removed and this file with it. */
static int no_such_node(const struct wb_nodes *nodes, uint32_t number)
{
    WB_CHECK(nodes->dir != NULL);
    return wb_fail(WB_E_CORRUPT, "%s/%s is damaged: node %u is not in table nodes", nodes->dir, WB_CATALOG_NAME,
                   number);
}

int wb_nodes_find(struct wb_nodes *nodes, uint32_t number, struct wb_node **node_out)
{
    WB_CHECK(number > 0);
    struct wb_known_node *node = find_node(nodes, number);

    *node_out = NULL;
    if (!node && (nodes->items.count || number != 1))
        return no_such_node(nodes, number);
    int err = node ? look(node) : nodes->own ? 0 : wb_node_open(nodes->dir, NULL, &nodes->own);
    if (err == 0)
        *node_out = node ? node->reach : nodes->own;
    return err;
}

struct wb_node *wb_nodes_reach(struct wb_nodes *nodes, uint32_t number)
{
    WB_CHECK(number > 0);
    struct wb_known_node *node = find_node(nodes, number);

    return node ? node->reach : NULL;
}

const struct wb_known_node *wb_nodes_known(const struct wb_nodes *nodes, uint32_t number)
{
    for (size_t i = 0; i < nodes->items.count; i++)
        if (nodes->items.items[i].row.number == number)
            return &nodes->items.items[i];
    return NULL;
}

int wb_nodes_dir(struct wb_nodes *nodes, uint32_t number, const char **dir_out)
{
    const struct wb_known_node *node = wb_nodes_known(nodes, number);
    struct wb_node *reach;
    int err = wb_nodes_find(nodes, number, &reach);

    *dir_out = err < 0 ? NULL : node ? node->dir : nodes->dir;
    return err;
}

static int cannot_write(const struct wb_known_node *node)
{
    WB_CHECK(node->read_only);
    return wb_fail(WB_E_DOWN, "node %u cannot be written: %s is read-only", node->row.number, node->dir);
}

int wb_nodes_find_to_write(struct wb_nodes *nodes, uint32_t number, struct wb_node **node_out)
{
    WB_CHECK(number > 0);
    struct wb_known_node *node = find_node(nodes, number);
    int err = wb_nodes_find(nodes, number, node_out);

    if (err < 0 || !node)
        return err;
    err = look_to_write(nodes, node);
    return err < 0 ? err : node->read_only ? cannot_write(node) : 0;
}

bool wb_nodes_failed(const struct wb_nodes *nodes, int err)
{
    return err == WB_E_DOWN || (err == WB_E_IO && nodes->items.count > 0);
}

bool wb_nodes_all_writable(struct wb_nodes *nodes)
{
    WB_CHECK(nodes->dir != NULL);
    for (size_t i = 0; i < nodes->items.count; i++)
        if (look_to_write(nodes, &nodes->items.items[i]) < 0 || nodes->items.items[i].read_only)
            return false;
    return true;
}

/* ---- where new pages go ---------------------------------------------------------------------------------------- */

/* How much speaks against storing new pages there. */
enum node_choice { CHOICE_GOOD, CHOICE_BUSY, CHOICE_FULL, CHOICE_BAD };

static enum node_choice judge(const struct wb_nodes *nodes, struct wb_known_node *node)
{
    WB_CHECK(nodes->distribution == WB_DISTRIBUTION_UNIFORM);
    if (node->row.leaving || look_to_write(nodes, node) < 0 || node->read_only)
        return CHOICE_BAD;
    if (node->failed_ns && (wb_clock_mono_ns() - node->failed_ns) / AVOID_NS_PER_S < AVOID_S)
        return CHOICE_BAD;
    return node->full ? CHOICE_FULL : node->busy ? CHOICE_BUSY : CHOICE_GOOD;
}

/* Uniform distribution: the node whose turn it is, or the next one that is better. */
static int choose_in_turn(struct wb_nodes *nodes, size_t *index_out)
{
    enum node_choice best = CHOICE_BAD;

    WB_CHECK(nodes->items.count > 0);
    for (size_t i = 0; i < nodes->items.count && best != CHOICE_GOOD; i++) {
        size_t at = (nodes->turn + i) % nodes->items.count;
        enum node_choice choice = judge(nodes, &nodes->items.items[at]);
        if (choice < best) {
            best = choice;
            *index_out = at;
        }
    }
    if (best != CHOICE_BAD)
        return 0;
    for (size_t i = 0; i < nodes->items.count; i++) /* one reason stands for all */
        if (nodes->items.items[i].down)
            return wb_fail(WB_E_DOWN, "no node can take new pages: %s", nodes->items.items[i].why);
    return wb_fail(WB_E_DOWN, "no node of %s can take new pages: they are full or read-only", nodes->dir);
}

int wb_nodes_choose(struct wb_nodes *nodes, struct wb_pageid id, size_t *index_out)
{
    WB_CHECK(nodes->items.count > 0);
    *index_out = nodes->items.count;
    if (nodes->distribution == WB_DISTRIBUTION_UNIFORM)
        return choose_in_turn(nodes, index_out);
    uint8_t taker = nodes->takers[wb_cell_of(id.hi)];
    if (taker == NO_TAKER)
        return wb_fail(WB_E_CORRUPT, "%s/%s is damaged: no node has the ids that begin with %016llx", nodes->dir,
                       WB_CATALOG_NAME, (unsigned long long)id.hi);
    *index_out = taker;
    struct wb_known_node *node = &nodes->items.items[taker];
    int err = look_to_write(nodes, node);
    return err < 0 ? err : node->read_only ? cannot_write(node) : 0;
}

void wb_nodes_turn(struct wb_nodes *nodes)
{
    size_t index;

    if (nodes->items.count && nodes->distribution == WB_DISTRIBUTION_UNIFORM && choose_in_turn(nodes, &index) == 0)
        nodes->turn = (index + 1) % nodes->items.count;
}

size_t wb_nodes_in_turn(struct wb_nodes *nodes)
{
    size_t count = 0;

    if (nodes->distribution == WB_DISTRIBUTION_UNIFORM)
        for (size_t i = 0; i < nodes->items.count; i++)
            count += judge(nodes, &nodes->items.items[i]) == CHOICE_GOOD;
    return count ? count : 1;
}

void wb_nodes_avoid(struct wb_nodes *nodes, uint32_t number)
{
    WB_CHECK(number > 0);
    struct wb_known_node *node = find_node(nodes, number);

    if (!node)
        return;
    node->failed_ns = wb_clock_mono_ns();
    node->looked_ns = 0;
}
