/*
 * repo_nodes.c - the paper's table of nodes (section 3): capacity, use, fragmentation, state, and requests under
 * way. It works while nodes are down, and changes nothing.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "place/place.h"
#include "store/repo.h"

/* What the catalog knows about the files of a node. */
struct node_tally {
    uint64_t pages;
    uint64_t bytes; /* of its files ... */
    uint64_t dead;  /* ... of which compaction would free so many */
};

struct node_survey {
    struct wb_repo *repo;
    struct wb_catalog_rows rows;
    struct node_tally *tallies; /* one for each node */
    size_t count;
};

static struct node_tally *tally_of(struct node_survey *s, uint32_t node)
{
    WB_CHECK(node > 0);
    for (size_t i = 0; i < s->count; i++)
        if (wb_nodes_number(&s->repo->nodes, i) == node)
            return &s->tallies[i];
    return NULL;
}

static void forget_survey(struct node_survey *s)
{
    wb_catalog_rows_release(&s->rows);
    wb_free(s->tallies);
    s->tallies = NULL;
}

/* Reads everything at one moment; the reader is awake. */
static int survey(void *context)
{
    struct node_survey *s = context;

    WB_CHECK(s->repo->reader.kind >= WB_CATALOG_TXN_AWAKE);
    forget_survey(s); /* it may be called again */
    s->count = wb_nodes_count(&s->repo->nodes);
    s->tallies = wb_alloc_zero(s->count, sizeof *s->tallies);
    int err = s->tallies ? wb_catalog_rows_read(&s->repo->reader, &s->rows) : WB_E_NOMEM;
    for (size_t i = 0; i < s->rows.count && err == 0; i++) {
        const struct wb_catalog_segment *row = &s->rows.items[i];
        struct node_tally *tally = tally_of(s, row->node);
        if (!tally)
            continue; /* verify reports it */
        WB_CHECK(row->old <= row->live);
        tally->pages += row->live - row->old;
        tally->bytes += row->bytes;
        tally->dead += wb_catalog_segment_dead(row);
    }
    return err;
}

/* ---- the table ------------------------------------------------------------------------------------------------- */

/* A file that was replaced, but that a reader may still need. */
struct retired_file {
    uint32_t number, revision;
};

/* A listing of a node's files under way. */
struct usage_listing {
    struct wb_repo *repo;
    uint32_t node;
    WB_VEC(struct retired_file) retired;
    struct wb_repo_usage usage;
};

static int add_retired(void *context, uint32_t number, uint32_t revision, uint32_t node, uint64_t txn_id)
{
    struct usage_listing *listing = context;

    WB_CHECK(number > 0);
    (void)txn_id;
    return node == listing->node ? wb_vec_push(&listing->retired, (struct retired_file){number, revision}) : 0;
}

static int read_retired(void *context)
{
    struct usage_listing *listing = context;

    WB_CHECK(listing->repo->reader.kind >= WB_CATALOG_TXN_AWAKE);
    wb_vec_clear(&listing->retired); /* it may be called again */
    return wb_catalog_retired_each(&listing->repo->reader, add_retired, listing);
}

static int add_file(void *context, const struct wb_node_entry *entry)
{
    struct usage_listing *listing = context;
    const char *base = entry->name + sizeof WB_SEGMENT_DIR;
    uint32_t number, revision;
    bool known = listing->repo->files.kind->parse_name(base, &number, &revision);

    WB_CHECK(entry->name[0] != '\0');
    listing->usage.bytes += entry->disk_bytes;
    for (size_t i = 0; i < listing->retired.count && known; i++)
        if (listing->retired.items[i].number == number && listing->retired.items[i].revision == revision)
            listing->usage.retired += entry->disk_bytes;
    return 0;
}

int wb_repo_node_usage(struct wb_repo *repo, uint32_t number, struct wb_repo_usage *usage_out)
{
    struct usage_listing listing = {.repo = repo, .node = number};
    struct wb_node *node;
    int err = wb_repo_read(repo, read_retired, &listing);

    WB_CHECK(number > 0);
    if (err == 0)
        err = wb_nodes_find(&repo->nodes, number, &node);
    if (err == 0)
        err = wb_node_each_file(node, add_file, &listing);
    *usage_out = err == 0 ? listing.usage : (struct wb_repo_usage){0};
    wb_vec_release(&listing.retired);
    return err;
}

/* What can only be found out on the node itself. WB_E_DOWN. */
static int measure(struct wb_repo *repo, struct wb_store_node *node, struct wb_repo_usage *usage_out)
{
    struct wb_node_space space;
    struct wb_node *reach;
    int err = wb_repo_node_usage(repo, node->number, usage_out);

    WB_CHECK(node->number > 0);
    if (err == 0)
        err = wb_nodes_find(&repo->nodes, node->number, &reach);
    if (err == 0)
        err = wb_node_space(reach, &space);
    if (err < 0)
        return err;
    node->used = usage_out->bytes;
    node->capacity = space.capacity;
    /* Files may have grown between the two looks. */
    uint64_t rest = node->used < node->capacity ? node->capacity - node->used : 0;
    node->free = space.free < rest ? space.free : rest;
    return 0;
}

static int tell_node(struct node_survey *s, size_t i, int (*each)(void *context, const struct wb_store_node *node),
                     void *context)
{
    WB_CHECK(i < s->count);
    const struct node_tally *tally = &s->tallies[i];
    char why[WB_ERROR_MESSAGE_MAX] = "";
    uint64_t busy[WB_BUSY_KINDS] = {0};
    struct wb_store_node node = {
        .number = wb_nodes_number(&s->repo->nodes, i),
        .dir = s->repo->nodes.items.count ? s->repo->nodes.items.items[i].row.dir : ".",
        .role = WB_STORE_NODE_BOTH,
        .organisation = s->repo->superblock.design.read.organisation,
        .why = why,
        .pages = tally->pages,
    };
    struct wb_repo_usage usage;
    int err = measure(s->repo, &node, &usage);

    if (s->repo->nodes.items.count) {
        node.arriving = s->repo->nodes.items.items[i].row.arriving;
        node.leaving = s->repo->nodes.items.items[i].row.leaving;
    }
    uint64_t bytes = tally->bytes + usage.retired, dead = tally->dead + usage.retired;
    node.fragmentation = bytes ? (double)dead / (double)bytes : 0;
    if (err == WB_E_NOMEM)
        return err;
    if (err < 0)
        strcpy(why, wb_error_message());
    if (wb_busy_count(s->repo->dir, node.number, busy) < 0)
        memset(busy, 0, sizeof busy);
    node.gets = busy[WB_BUSY_GET];
    node.puts = busy[WB_BUSY_PUT];
    node.streams = busy[WB_BUSY_STREAM];
    node.state = err < 0        ? WB_STORE_NODE_DOWN
                 : node.puts    ? WB_STORE_NODE_STORING
                 : node.streams ? WB_STORE_NODE_STREAMING
                                : WB_STORE_NODE_IDLE;
    return each(context, &node);
}

int wb_repo_node_each(struct wb_store *store, int (*each)(void *context, const struct wb_store_node *node),
                      void *context)
{
    struct wb_repo *repo = wb_repo_of(store);
    struct node_survey s = {.repo = repo};
    int err = wb_repo_read(repo, survey, &s);

    WB_CHECK(each != NULL);
    for (size_t i = 0; i < s.count && err == 0; i++)
        err = tell_node(&s, i, each, context);
    forget_survey(&s);
    return err;
}
