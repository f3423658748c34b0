/*
 * nodes.c - the nodes of a repository (nodes.h): finds their directories, notices those that are down, and
 * chooses where new pages go. It never opens a file of pages.
 */
#include "place/nodes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/path.h"
#include "store/repo.h"

#include <stdio.h>

enum {
    LOOK_NS = 1000000000, /* for so long a writer relies on what it has seen of a node */
    AVOID_NS_PER_S = 1000000000,
    AVOID_S = 10,             /* for so long a node is avoided on which something could not be written */
    FULL_PART = 100,          /* a node with less than this part of its capacity left is full, ... */
    FULL_BYTES_MIN = 2 << 20, /* ... or with less than these bytes, ... */
    FULL_BYTES_MAX = 1 << 30, /* ... but not one that has these bytes left */
};

int (*wb_nodes_open)(const char *dir, const struct wb_node_identity *identity,
                     struct wb_node **node_out) = wb_node_open;

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

static int open_node(const struct wb_nodes *nodes, struct wb_known_node *node)
{
    struct wb_node_identity expected = {.number = node->row.number};

    WB_CHECK(nodes->repository != NULL);
    memcpy(expected.repository, nodes->repository, sizeof expected.repository);
    memcpy(expected.id, node->row.id, sizeof expected.id);
    return wb_nodes_open(node->dir, is_own(&node->row) ? NULL : &expected, &node->reach);
}

static int add_node(void *context, const struct wb_catalog_node *row)
{
    struct wb_nodes *nodes = context;
    struct wb_known_node node = {.row = *row};

    WB_CHECK(row->number > 0);
    node.dir = is_own(row)   ? wb_strdup(nodes->dir)
               : row->inside ? wb_path_join(nodes->dir, row->dir)
                             : wb_strdup(row->dir);
    int err = node.dir ? open_node(nodes, &node) : WB_E_NOMEM;
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
    struct wb_known_node *node = find_node(nodes, number);

    WB_CHECK(number > 0);
    *node_out = NULL;
    if (!node && (nodes->items.count || number != 1))
        return no_such_node(nodes, number);
    int err = node ? look(node) : nodes->own ? 0 : wb_nodes_open(nodes->dir, NULL, &nodes->own);
    if (err == 0)
        *node_out = node ? node->reach : nodes->own;
    return err;
}

struct wb_node *wb_nodes_reach(struct wb_nodes *nodes, uint32_t number)
{
    struct wb_known_node *node = find_node(nodes, number);

    WB_CHECK(number > 0);
    return node ? node->reach : NULL;
}

int wb_repo_node_dir(struct wb_repo *repo, uint32_t number, const char **dir_out)
{
    const struct wb_known_node *node = find_node(&repo->nodes, number);
    struct wb_node *reach;
    int err = wb_nodes_find(&repo->nodes, number, &reach);

    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    *dir_out = err < 0 ? NULL : node ? node->dir : repo->dir;
    return err;
}

static int cannot_write(const struct wb_known_node *node)
{
    WB_CHECK(node->read_only);
    return wb_fail(WB_E_DOWN, "node %u cannot be written: %s is read-only", node->row.number, node->dir);
}

int wb_nodes_find_to_write(struct wb_nodes *nodes, uint32_t number, struct wb_node **node_out)
{
    struct wb_known_node *node = find_node(nodes, number);
    int err = wb_nodes_find(nodes, number, node_out);

    WB_CHECK(number > 0);
    if (err < 0 || !node)
        return err;
    err = look_to_write(nodes, node);
    return err < 0 ? err : node->read_only ? cannot_write(node) : 0;
}

int wb_repo_node(struct wb_repo *repo, uint32_t number, struct wb_node **node_out)
{
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    return wb_nodes_find(&repo->nodes, number, node_out);
}

bool wb_repo_node_failed(const struct wb_repo *repo, int err)
{
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    return err == WB_E_DOWN || (err == WB_E_IO && repo->nodes.items.count > 0);
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

/* The node whose turn it is, or the next one that is better. */
static int choose_node(struct wb_nodes *nodes, size_t *index_out)
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

/* The node that has the id in one of its ranges. */
static int find_range(struct wb_nodes *nodes, struct wb_pageid id, struct wb_known_node **node_out,
                      struct wb_catalog_range *range_out)
{
    WB_CHECK(nodes->distribution == WB_DISTRIBUTION_HASH);
    for (size_t i = 0; i < nodes->items.count; i++) {
        struct wb_known_node *node = &nodes->items.items[i];
        for (uint32_t k = 0; k < node->row.range_count; k++)
            if (wb_catalog_range_has(&node->row.ranges[k], id)) {
                *node_out = node;
                *range_out = node->row.ranges[k];
                return 0;
            }
    }
    return wb_fail(WB_E_CORRUPT, "%s/%s is damaged: no node has the ids that begin with %016llx", nodes->dir,
                   WB_CATALOG_NAME, (unsigned long long)id.hi);
}

int wb_bin_of(struct wb_repo *repo, struct wb_pageid id, struct wb_bin *bin_out)
{
    struct wb_nodes *nodes = &repo->nodes;
    struct wb_known_node *node = NULL;
    size_t index;
    int err;

    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    *bin_out = (struct wb_bin){.node = 1};
    if (nodes->items.count == 0)
        return 0;
    if (nodes->distribution == WB_DISTRIBUTION_UNIFORM) {
        err = choose_node(nodes, &index);
        if (err == 0)
            bin_out->node = nodes->items.items[index].row.number;
        return err;
    }
    err = find_range(nodes, id, &node, &bin_out->range);
    if (err < 0)
        return err;
    bin_out->node = node->row.number;
    err = look_to_write(nodes, node);
    return err < 0 ? err : node->read_only ? cannot_write(node) : 0;
}

bool wb_bin_is_current(struct wb_nodes *nodes, const struct wb_bin *bin)
{
    const struct wb_known_node *node = find_node(nodes, bin->node);

    WB_CHECK(bin->node > 0);
    if (!node || nodes->distribution == WB_DISTRIBUTION_UNIFORM)
        return node ? !node->row.leaving : nodes->items.count == 0;
    for (uint32_t i = 0; i < node->row.range_count; i++) {
        const struct wb_catalog_range *range = &node->row.ranges[i];
        if (range->bits <= bin->range.bits && (bin->range.prefix & wb_catalog_range_mask(range)) == range->prefix)
            return true;
    }
    return false;
}

static int look_at_nothing(void *context)
{
    (void)context;
    return 0;
}

int wb_nodes_renew(struct wb_repo *repo)
{
    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    return wb_repo_read(repo, look_at_nothing, NULL);
}

int wb_bin_renew(struct wb_repo *repo, struct wb_pageid id, struct wb_bin *bin_inout)
{
    struct wb_bin other;
    int err = wb_nodes_renew(repo);
    const struct wb_known_node *node = find_node(&repo->nodes, bin_inout->node);

    WB_CHECK(bin_inout->node > 0);
    if (err < 0 || repo->nodes.items.count == 0 || (node && !node->row.leaving))
        return err;
    err = wb_bin_of(repo, id, &other);
    if (err < 0)
        return err;
    bin_inout->node = other.node; /* not its range, which all pages of the block are in */
    return 1;
}

void wb_nodes_turn(struct wb_repo *repo)
{
    struct wb_nodes *nodes = &repo->nodes;
    size_t index;

    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    if (nodes->items.count && nodes->distribution == WB_DISTRIBUTION_UNIFORM && choose_node(nodes, &index) == 0)
        nodes->turn = (index + 1) % nodes->items.count;
}

size_t wb_nodes_in_turn(struct wb_repo *repo)
{
    struct wb_nodes *nodes = &repo->nodes;
    size_t count = 0;

    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    if (nodes->distribution == WB_DISTRIBUTION_UNIFORM)
        for (size_t i = 0; i < nodes->items.count; i++)
            count += judge(nodes, &nodes->items.items[i]) == CHOICE_GOOD;
    return count ? count : 1;
}

void wb_nodes_avoid(struct wb_nodes *nodes, uint32_t number)
{
    struct wb_known_node *node = find_node(nodes, number);

    WB_CHECK(number > 0);
    if (!node)
        return;
    node->failed_ns = wb_clock_mono_ns();
    node->looked_ns = 0;
}

int wb_bin_instead(struct wb_repo *repo, struct wb_pageid id, int err, struct wb_bin *bin_inout)
{
    struct wb_nodes *nodes = &repo->nodes;
    struct wb_known_node *node = find_node(nodes, bin_inout->node);
    struct wb_error_copy why;

    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(err < 0);
    if (!node || !wb_repo_node_failed(repo, err))
        return err;
    wb_error_save(err, &why);
    wb_nodes_avoid(nodes, node->row.number);
    if (nodes->distribution == WB_DISTRIBUTION_UNIFORM && wb_bin_of(repo, id, bin_inout) == 0)
        return 0;
    if (err == WB_E_DOWN)
        return wb_error_restore(&why);
    return wb_fail(err, "node %u (%s): %s", node->row.number, node->dir, why.message);
}
