/*
 * rebalance.c - adds a node to a repository, and removes one (rebalance.h). It decides which node takes which
 * ids. settle.c moves the pages.
 *
 * With hash distribution, a new node gets its share of the ids from all others, and a node that leaves gives away its
 * own to all others (share.h).
 */
#include "base/check.h"
#include "base/mem.h"
#include "move/mover.h"
#include "move/rebalance.h"
#include "os/clock.h"
#include "os/folder.h"
#include "os/path.h"
#include "os/random.h"
#include "pagefile/pagefile.h"
#include "place/place.h"

#include <stdio.h>
#include <time.h>

#define NODES_LOCK_NAME "nodes.lock"

enum {
    WAIT_MS = 20,           /* between two attempts, if something is in use */
    READERS_MS = 30 * 1000, /* for so long, readers that still need files of a removed node are waited for */
};

/* Waits for other processes. */
static void pause_a_moment(void)
{
    nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL);
}

/* The work is done, but something that was to be moved is damaged: names the first place. */
static int say_damage(uint32_t node, const char *what, const struct wb_settled *s)
{
    WB_CHECK(s->stuck + s->carried > 0);
    WB_CHECK(s->damage.code == WB_E_CORRUPT);
    uint64_t count = s->stuck + s->carried;
    return wb_fail(WB_E_CORRUPT, "node %u was %s, but %llu damaged file%s or bucket%s %s: %s. 'webbase verify' shows "
                   "all damage", node, what, (unsigned long long)count, count == 1 ? "" : "s", count == 1 ? "" : "s",
                   s->stuck ? "stayed where it was" : "moved as it is", s->damage.message);
}

/* ---- the table ---------------------------------------------------------------------------------------------- */

/* A transaction that changes the table of nodes. */
struct nodes_change {
    struct wb_repo_change change; /* its txn and summary */
    struct wb_repo *repo;
    WB_VEC(struct wb_catalog_node) rows;
    struct wb_catalog_node node; /* the one that comes or goes */
    bool again;                  /* remove: something is still there */
};

static int add_row(void *context, const struct wb_catalog_node *row)
{
    struct nodes_change *c = context;

    return wb_vec_push(&c->rows, *row);
}

/* Reads all rows. A repository without any has one node, its own directory. */
static int read_rows(struct nodes_change *c)
{
    struct wb_catalog_node own = {.number = 1, .inside = true, .dir = "."};

    WB_CHECK(c->change.txn.kind == WB_CATALOG_TXN_WRITING);
    wb_vec_clear(&c->rows);
    int err = wb_catalog_node_each(&c->change.txn, add_row, c);
    if (c->repo->nodes.distribution == WB_DISTRIBUTION_HASH)
        own.cells = wb_share_of_new(0, 1);
    return err == 0 && c->rows.count == 0 ? wb_vec_push(&c->rows, own) : err;
}

static int write_rows(struct nodes_change *c)
{
    int err = 0;

    WB_CHECK(c->rows.count > 0);
    for (size_t i = 0; i < c->rows.count && err == 0; i++)
        err = wb_catalog_node_put(&c->change.txn, &c->rows.items[i]);
    return err;
}

static struct wb_catalog_node *row_of(struct nodes_change *c, uint32_t number)
{
    for (size_t i = 0; i < c->rows.count; i++)
        if (c->rows.items[i].number == number)
            return &c->rows.items[i];
    return NULL;
}

/* ---- adding --------------------------------------------------------------------------------------------------- */

static struct wb_node_identity identity_of(const struct wb_repo *repo, const struct wb_catalog_node *node)
{
    struct wb_node_identity identity = {.number = node->number};

    memcpy(identity.repository, repo->superblock.id, sizeof identity.repository);
    memcpy(identity.id, node->id, sizeof identity.id);
    return identity;
}

/* Finds the node that is this directory, in the table as it is now. */
static const struct wb_known_node *find_dir(struct wb_repo *repo, const char *dir)
{
    struct wb_node_identity found;
    bool known = wb_node_identity_read(dir, &found) == 0 &&
                 memcmp(found.repository, repo->superblock.id, sizeof found.repository) == 0;

    for (size_t i = 0; i < repo->nodes.items.count && known; i++) {
        const struct wb_known_node *node = &repo->nodes.items.items[i];
        if (node->row.number == found.number && memcmp(node->row.id, found.id, sizeof found.id) == 0)
            return node;
    }
    return NULL;
}

/* Looks through the files that were replaced. */
struct retired_search {
    uint32_t node; /* is any on this node? */
    bool found;
    uint32_t highest; /* of all nodes that have one */
};

static int look_at_retired(void *context, uint32_t number, uint32_t revision, uint32_t node, uint64_t txn_id)
{
    struct retired_search *search = context;

    (void)number;
    (void)revision;
    (void)txn_id;
    search->found = search->found || node == search->node;
    search->highest = node > search->highest ? node : search->highest;
    return 0;
}

/*
 * The highest number that a node or a retired file has, or that a node had which was removed. Programs that did not
 * keep the latter may have removed nodes, too; then only the numbers above those that are left are free.
 */
static int highest_number(struct wb_repo *repo, uint32_t *number_out)
{
    struct retired_search search = {.highest = repo->nodes.items.count ? 0 : 1};
    struct wb_catalog_txn txn;
    struct wb_catalog_summary summary;
    int err = wb_catalog_txn_read(repo->catalog, &txn);

    *number_out = 0;
    if (err < 0)
        return err;
    err = wb_catalog_summary_get(&txn, &summary);
    if (err == 0 && summary.next_node > search.highest)
        search.highest = summary.next_node - 1;
    for (size_t i = 0; i < repo->nodes.items.count; i++)
        if (repo->nodes.items.items[i].row.number > search.highest)
            search.highest = repo->nodes.items.items[i].row.number;
    if (err == 0)
        err = wb_catalog_retired_each(&txn, look_at_retired, &search);
    wb_catalog_txn_abort(&txn);
    *number_out = search.highest;
    return err;
}

static int choose_number(struct wb_repo *repo, uint32_t *number_out)
{
    uint32_t highest;
    int err = highest_number(repo, &highest);

    if (err == 0 && highest >= repo->nodes.last)
        err = wb_fail(WB_E_LIMIT, "%s has used up all numbers of nodes, up to %u: convert it into a new repository",
                      repo->dir, repo->nodes.last);
    *number_out = highest + 1;
    return err;
}

/* Whether a node has files with pages. */
static int has_pages(const char *dir, bool *pages_out)
{
    char *pages = wb_path_join(dir, WB_NODE_DIR);
    bool empty = true;
    int err = pages ? 0 : WB_E_NOMEM;

    if (err == 0 && wb_path_kind(pages) != WB_PATH_NONE)
        err = wb_folder_is_empty(pages, &empty);
    *pages_out = !empty;
    wb_free(pages);
    return err;
}

/*
 * A node of this repository that is not in the table: an interrupted command has left it, and it is cleared. If it
 * never was in the table, it cannot have pages. One that has belongs to somebody else: to a newer copy of this
 * repository, or, in a batch design, to the other kind of nodes.
 */
static int clear_leftover(struct wb_repo *repo, const char *dir)
{
    struct wb_node_identity found;
    uint32_t highest;
    bool pages;

    if (wb_node_identity_read(dir, &found) < 0 ||
        memcmp(found.repository, repo->superblock.id, sizeof found.repository) != 0)
        return 0;
    if (found.number < repo->nodes.first || found.number > repo->nodes.last)
        return wb_fail(WB_E_INVALID, "%s cannot be a node: it is node %u already", dir, found.number);
    int err = highest_number(repo, &highest);
    if (err == 0)
        err = has_pages(dir, &pages);
    if (err == 0 && pages && found.number > highest)
        err = wb_fail(WB_E_INVALID,
                      "%s cannot be a node: it has pages of a node %u that %s does not know, and which "
                      "another copy of this repository may need",
                      dir, found.number, repo->dir);
    return err < 0 ? err : wb_node_unmake(dir, &found);
}

/* Checks the directory against all nodes. */
static int check_dir(struct wb_repo *repo, const char *dir, char **written_out)
{
    size_t count = repo->nodes.items.count;
    const char **others = wb_alloc((count + 1) * sizeof *others);

    *written_out = NULL;
    if (!others)
        return WB_E_NOMEM;
    size_t other_count = 0;
    for (size_t i = 0; i < count; i++)
        if (strcmp(repo->nodes.items.items[i].row.dir, ".") != 0)
            others[other_count++] = repo->nodes.items.items[i].dir;
    int err = wb_nodes_check_dir(repo->dir, dir, others, other_count, written_out);
    wb_free(others);
    return err;
}

/* Puts the new node into the table, with its share of the ids. */
static int enter_node(void *context)
{
    struct nodes_change *c = context;
    int err = read_rows(c);

    if (err == 0 && c->rows.count >= WB_DESIGN_NODES_MAX)
        err = wb_fail(WB_E_LIMIT, "%s has %d nodes already, which is the most it can have", c->repo->dir,
                      WB_DESIGN_NODES_MAX);
    if (err == 0 && row_of(c, c->node.number))
        err = wb_catalog_corrupt(c->repo->catalog, WB_CATALOG_NODES, "a node that appeared under the lock");
    if (err == 0 && c->repo->nodes.distribution == WB_DISTRIBUTION_HASH)
        err = wb_share_take(c->rows.items, c->rows.count, &c->node);
    if (err == 0)
        err = wb_vec_push(&c->rows, c->node);
    return err < 0 ? err : write_rows(c);
}

/* Makes the directory a node, and puts it into the table. */
static int make_node(struct wb_repo *repo, const char *dir, uint32_t *number_out)
{
    struct nodes_change c = {.repo = repo, .node = {.arriving = true}};
    struct wb_catalog_summary summary;
    char *written = NULL;
    int err = clear_leftover(repo, dir);

    if (err == 0)
        err = check_dir(repo, dir, &written);
    if (err == 0)
        err = choose_number(repo, &c.node.number);
    if (err == 0) {
        snprintf(c.node.dir, sizeof c.node.dir, "%s", written);
        wb_random_bytes(c.node.id, sizeof c.node.id);
        struct wb_node_identity identity = identity_of(repo, &c.node);
        err = wb_node_make(written, &identity);
        if (err == 0)
            err = wb_repo_change(&repo->store, &c.change, enter_node, &c);
        if (err < 0) {
            struct wb_error_copy why;
            wb_error_save(err, &why);
            if (wb_repo_summary(repo, &summary) == 0 && !wb_nodes_has(&repo->nodes, c.node.number))
                (void)wb_node_unmake(written, &identity);
            wb_error_restore(&why);
        }
    }
    *number_out = c.node.number;
    wb_free(written);
    wb_vec_release(&c.rows);
    return err;
}

/* All its pages are there. */
static int mark_arrived(void *context)
{
    struct nodes_change *c = context;
    int err = read_rows(c);
    struct wb_catalog_node *row = err == 0 ? row_of(c, c->node.number) : NULL;

    if (err < 0 || !row)
        return err;
    row->arriving = false;
    return write_rows(c);
}

/* Commits, gives up the segments that this handle appends to, and takes up the newest table. */
static int prepare(struct wb_repo *repo, struct wb_file *lock_out)
{
    struct wb_store_commit_counts counts = {0};
    struct wb_catalog_summary summary;
    int err = wb_file_open_locked(repo->dir, NODES_LOCK_NAME, lock_out);

    if (err == WB_E_BUSY) /* only one process at a time adds or removes nodes */
        return wb_fail(err, "nodes of %s are being added or removed by another process", repo->dir);
    if (err == 0)
        err = wb_repo_commit(&repo->store, &counts);
    if (err == 0)
        wb_tails_release(&repo->files);
    return err < 0 ? err : wb_repo_summary(repo, &summary);
}

int wb_rebalance_add(struct wb_store *store, const char *dir, bool update, wb_store_progress progress, void *context,
                     uint32_t *number_out)
{
    struct wb_repo *repo = wb_repo_of_writer(store);
    struct nodes_change c = {.repo = repo};
    struct wb_file lock = WB_FILE_INIT;
    struct wb_catalog_summary summary;
    struct wb_settled settled = {0};
    int err = 0;

    *number_out = 0;
    if (update)
        return wb_fail(WB_E_INVALID, "%s has no update nodes: its design is not a batch design", repo->dir);
    err = prepare(repo, &lock);
    const struct wb_known_node *known = err == 0 ? find_dir(repo, dir) : NULL;
    if (known && !known->row.arriving)
        err = wb_fail(WB_E_INVALID, "%s is node %u already", dir, known->row.number);
    else if (known)
        c.node.number = known->row.number; /* an interrupted command: go on */
    else if (err == 0)
        err = make_node(repo, dir, &c.node.number);
    if (err == 0)
        err = wb_repo_summary(repo, &summary); /* takes up the new table */
    if (err == 0)
        err = wb_settle(repo, progress, context, &settled);
    if (err == 0)
        err = wb_repo_change(store, &c.change, mark_arrived, &c);
    if (err == 0 && settled.stuck + settled.carried)
        err = say_damage(c.node.number, "added", &settled);
    *number_out = c.node.number;
    wb_vec_release(&c.rows);
    wb_repo_decide(repo);
    wb_file_close(&lock);
    return err;
}

/* ---- removing ------------------------------------------------------------------------------------------------- */

/* Marks the node: it gets no new pages any more, and its ids belong to others. */
static int mark_leaving(void *context)
{
    struct nodes_change *c = context;
    int err = read_rows(c);
    struct wb_catalog_node *row = err == 0 ? row_of(c, c->node.number) : NULL;
    size_t others = 0;

    if (err < 0)
        return err;
    if (!row)
        return wb_fail(WB_E_NOTFOUND, "%s has no node %u", c->repo->dir, c->node.number);
    for (size_t i = 0; i < c->rows.count; i++)
        others += c->rows.items[i].number != row->number && !c->rows.items[i].leaving;
    if (others == 0)
        return wb_fail(WB_E_INVALID, "node %u cannot be removed: it is the last one of %s", row->number, c->repo->dir);
    row->leaving = true;
    row->arriving = false;
    err = wb_share_give(c->rows.items, c->rows.count, row);
    c->node = *row;
    return err < 0 ? err : write_rows(c);
}

static int is_on_node(void *context, const struct wb_catalog_segment *row)
{
    struct nodes_change *c = context;

    c->again = c->again || row->node == c->node.number;
    return 0;
}

/* Takes the node off the table, unless something came there after all. */
static int strike_off(void *context)
{
    struct nodes_change *c = context;
    int err = 0;

    c->again = false;
    err = wb_catalog_segment_each(&c->change.txn, is_on_node, c);
    if (err < 0 || c->again)
        return err;
    if (c->change.summary.next_node <= c->node.number)
        c->change.summary.next_node = c->node.number + 1; /* the number never comes again */
    return wb_catalog_node_delete(&c->change.txn, c->node.number);
}

/* Waits a while for readers that still need files of the node, and deletes these. */
static int wait_for_readers(struct wb_repo *repo, uint32_t node)
{
    struct retired_search search = {.node = node, .found = true};
    int64_t since = wb_clock_now_ms();
    int err = 0;

    while (err == 0 && search.found && wb_clock_now_ms() - since < READERS_MS) {
        struct wb_catalog_txn txn;
        search.found = false;
        err = wb_pagefile_purge(&repo->files);
        if (err == 0)
            err = wb_catalog_txn_read(repo->catalog, &txn);
        if (err < 0)
            return err;
        err = wb_catalog_retired_each(&txn, look_at_retired, &search);
        wb_catalog_txn_abort(&txn);
        if (err == 0 && search.found)
            pause_a_moment();
    }
    return err;
}

/* The repository's own directory, which is a node no more. */
struct own_dir {
    const struct wb_pagefile_kind *kind;
    struct wb_node *node;
};

/* Removes a file of pages from it. */
static int remove_file(void *context, const struct wb_node_entry *entry)
{
    const struct own_dir *own = context;
    uint32_t number, revision;

    if (!own->kind->parse_name(entry->name + sizeof WB_SEGMENT_DIR, &number, &revision))
        return 0;
    return wb_node_remove(own->node, entry->name);
}

/* The directory is no node any more. */
static int clear_dir(struct wb_repo *repo, const struct wb_catalog_node *node, const char *dir)
{
    struct wb_node_identity identity = identity_of(repo, node);

    if (!node->inside || strcmp(node->dir, ".") != 0)
        return wb_node_unmake(dir, &identity);
    struct own_dir own = {.kind = repo->files.kind};
    int err = wb_node_open(dir, NULL, &own.node);
    if (err == 0)
        err = wb_node_each_file(own.node, remove_file, &own);
    wb_node_close(own.node);
    return err;
}

/* The node is not in the table any more, and nothing needs its directory. */
static int say_removed(uint32_t number, int err)
{
    struct wb_error_copy why;

    wb_error_save(err, &why);
    return wb_fail(err, "node %u is removed, but something is left in its directory: %s", number, why.message);
}

/* From the moment when the node is leaving. */
static int empty_node(struct nodes_change *c, wb_store_progress progress, void *context, struct wb_settled *settled_out)
{
    struct wb_catalog_summary summary;
    struct wb_settled s = {0};
    int err = 0;

    WB_CHECK(c->node.leaving);
    do {
        if (err == 0)
            err = wb_repo_summary(c->repo, &summary); /* takes up the new table */
        if (err == 0)
            err = wb_settle(c->repo, progress, context, &s);
        settled_out->carried += s.carried;
        if (settled_out->damage.code == 0)
            settled_out->damage = s.damage;
        if (err == 0)
            err = wait_for_readers(c->repo, c->node.number);
        if (err == 0)
            err = wb_repo_change(&c->repo->store, &c->change, strike_off, c);
        if (err == 0 && c->again && s.stuck)
            err = wb_fail(WB_E_CORRUPT, "node %u cannot be removed: %s; run verify", c->node.number,
                          s.damage.message);
        if (err == 0 && c->again)
            pause_a_moment();
    } while (err == 0 && c->again);
    return err;
}

int wb_rebalance_remove(struct wb_store *store, uint32_t number, wb_store_progress progress, void *context)
{
    struct wb_repo *repo = wb_repo_of_writer(store);
    struct nodes_change c = {.repo = repo, .node = {.number = number}};
    struct wb_file lock = WB_FILE_INIT;
    struct wb_settled settled = {0};
    const char *found = NULL;
    char *dir = NULL;
    int err = prepare(repo, &lock);

    if (err == 0 && !(number && wb_nodes_has(&repo->nodes, number)))
        err = wb_fail(WB_E_NOTFOUND, "%s has no node %u", repo->dir, number);
    if (err == 0) /* it must be there, because its pages have to be moved */
        err = wb_nodes_dir(&repo->nodes, number, &found);
    if (err == 0) {
        dir = wb_strdup(found);
        err = dir ? wb_repo_change(store, &c.change, mark_leaving, &c) : WB_E_NOMEM;
    }
    if (err == 0)
        err = empty_node(&c, progress, context, &settled);
    if (err == 0) {
        err = clear_dir(repo, &c.node, dir);
        err = err < 0 ? say_removed(number, err) : 0;
    }
    if (err == 0 && settled.carried)
        err = say_damage(number, "removed", &settled);
    wb_free(dir);
    wb_vec_release(&c.rows);
    wb_repo_decide(repo);
    wb_file_close(&lock);
    return err;
}
