/*
 * store_state.c - takes a state of a repository and lets it go (store_state.h), and says what is in it beside files and
 * rows. It changes nothing.
 *
 * Files that change in place are copied aside (store_state_buckets.c).
 *
 * A batch design has two catalogs. While both are taken, no transfer can begin, so that what waits is in one of them
 * only. Whatever else changes both changes the update nodes first. So the read nodes are taken first: then the two
 * states are at most as far apart as after a crash between these two changes.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/path.h"
#include "store/repo.h"
#include "store/state/store_state_own.h"

#include <stdio.h>

enum { ATTEMPTS = 8 }; /* to find bucket files as a commit has left them */

/* ---- one part ------------------------------------------------------------------------------------------------- */

int wb_state_part_hold(struct wb_state_part *part)
{
    int err = part->catalog ? 0 : wb_catalog_open(part->dir, WB_TREE_READ, &part->catalog);

    WB_CHECK(part->txn.kind == WB_CATALOG_TXN_CLOSED);
    WB_CHECK(part->rows.count == 0);
    if (err == 0)
        err = wb_catalog_txn_read(part->catalog, &part->txn);
    if (err == 0)
        err = wb_catalog_summary_get(&part->txn, &part->summary);
    if (err == 0)
        err = wb_nodes_refresh(&part->nodes, &part->txn);
    return err < 0 ? err : wb_catalog_rows_read(&part->txn, &part->rows);
}

void wb_state_part_let_go(struct wb_state_part *part)
{
    wb_catalog_rows_release(&part->rows);
    part->rows = (struct wb_catalog_rows){0};
    if (part->txn.catalog)
        wb_catalog_txn_abort(&part->txn);
}

static void release_part(struct wb_state_part *part)
{
    wb_state_part_let_go(part);
    wb_state_asides_release(part);
    wb_catalog_close(part->catalog);
    if (part->nodes.dir)
        wb_nodes_release(&part->nodes);
    wb_free(part->dir);
}

/* Which parts there are, and what they are. */
static int find_parts(struct wb_store_state *state, const char *dir)
{
    const struct wb_design *design = &state->superblock.design;
    int err = 0;

    state->part_count = design->batch ? 2 : 1;
    state->parts[0] = (struct wb_state_part){.prefix = "", .dir = wb_strdup(dir), .superblock = state->superblock};
    state->parts[0].superblock.design = (struct wb_design){.read = design->read};
    if (design->batch)
        state->parts[1] = (struct wb_state_part){.prefix = WB_BATCHED_UPDATE_DIR "/",
                                                 .dir = wb_path_join(dir, WB_BATCHED_UPDATE_DIR)};
    for (size_t i = 0; i < state->part_count && err == 0; i++) {
        struct wb_state_part *part = &state->parts[i];
        err = part->dir ? 0 : WB_E_NOMEM;
        if (err == 0 && i > 0)
            err = wb_superblock_read(part->dir, &part->superblock);
        if (err < 0)
            break;
        part->kind = wb_pagefile_kind(part->superblock.design.read.organisation);
        wb_nodes_init(&part->nodes, part->dir, &part->superblock);
    }
    return err;
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

/* All parts; of a batch design while no transfer can begin. */
static int hold_parts(struct wb_store_state *state, const char *dir, bool *settled_out)
{
    struct wb_batched_gate gate = WB_BATCHED_GATE_INIT;
    bool batch = state->superblock.design.batch;
    int err = batch ? wb_batched_gate_enter(dir, false, &gate) : 0;

    if (err < 0)
        return err;
    *settled_out = true;
    for (size_t i = 0; i < state->part_count && err == 0 && *settled_out; i++)
        err = state->parts[i].kind->in_place ? wb_state_buckets_hold(state, &state->parts[i], settled_out)
                                             : wb_state_part_hold(&state->parts[i]);
    if (batch)
        wb_batched_gate_leave(&gate);
    return err;
}

static int try_to_hold(const char *dir, const struct wb_buf *since, struct wb_store_state **state_out,
                       bool *settled_out)
{
    struct wb_store_state *state = wb_alloc_zero(1, sizeof *state);

    *state_out = state;
    *settled_out = false;
    if (!state)
        return WB_E_NOMEM;
    state->magic = WB_STATE_MAGIC;
    state->room.file = WB_FILE_INIT;
    pthread_mutex_init(&state->mutex, NULL);
    int err = wb_superblock_read(dir, &state->superblock);
    if (err == 0)
        err = find_parts(state, dir);
    state->since = err == 0 && since && wb_state_stamps_valid(since, state->superblock.id) ? since : NULL;
    for (size_t i = 0; i < state->part_count && err == 0; i++)
        if (state->parts[i].kind->in_place)
            err = wb_state_buckets_prepare(state, &state->parts[i]);
    if (err == 0)
        err = hold_parts(state, dir, settled_out);
    state->since = NULL;
    for (size_t i = 0; i < state->part_count && err == 0 && *settled_out; i++)
        err = wb_state_files_add(state, &state->parts[i]);
    if (err == 0 && *settled_out)
        wb_state_files_sort(state);
    return err;
}

/* A writer was killed, or has failed, while it changed buckets: the next one that opens the repository repairs them. */
static int repair(const char *dir)
{
    struct wb_store *store;
    int err = wb_store_open(dir, WB_STORE_WRITE, &store);

    if (err == 0)
        wb_store_close(store);
    return err;
}

int wb_store_state_hold(const char *dir, const struct wb_buf *since, struct wb_store_state **state_out)
{
    struct wb_error_copy why;
    bool settled = false;
    int err = 0;

    *state_out = NULL;
    for (unsigned i = 0; i < ATTEMPTS && err == 0 && !settled; i++) {
        if (i > 0)
            err = repair(dir);
        if (err == 0)
            err = try_to_hold(dir, since, state_out, &settled);
        if (err == 0 && settled)
            return 0;
        wb_error_save(err, &why);
        wb_store_state_let_go(*state_out);
        *state_out = NULL;
    }
    if (err < 0)
        return wb_error_restore(&why);
    return wb_fail(WB_E_CORRUPT, "%s: a bucket file is not as a commit has left it; 'webbase verify' says more", dir);
}

void wb_store_state_let_go(struct wb_store_state *state)
{
    if (!state)
        return;
    WB_CHECK(state->magic == WB_STATE_MAGIC);
    wb_state_files_release(state);
    for (size_t i = 0; i < state->part_count; i++)
        release_part(&state->parts[i]);
    wb_file_close(&state->room.file);
    pthread_mutex_destroy(&state->mutex);
    state->magic = 0;
    wb_free(state);
}

/* ---- what is known about it ----------------------------------------------------------------------------------- */

/* Takedowns of a part that no compaction has carried out yet. */
static uint64_t open_takedowns(const struct wb_state_part *part)
{
    uint64_t open = 0;

    WB_CHECK(part->kind != NULL);
    for (size_t i = 0; i < part->rows.count; i++) {
        const struct wb_catalog_segment *row = &part->rows.items[i];
        open += row->removed;
        if (part->kind->in_place) /* pages were removed while it could not be written */
            open += row->unwritten;
    }
    return open;
}

void wb_store_state_facts(const struct wb_store_state *state, struct wb_store_state_facts *facts_out)
{
    const struct wb_catalog_summary *summary = &state->parts[0].summary;

    WB_CHECK(state->magic == WB_STATE_MAGIC);
    *facts_out = (struct wb_store_state_facts){
        .pages = summary->pages, .commit = summary->commit, .epoch = summary->epoch, .parts = state->part_count};
    for (size_t i = 0; i < state->part_count; i++) {
        facts_out->takedowns += state->parts[i].summary.takedowns;
        facts_out->takedowns_open += open_takedowns(&state->parts[i]);
    }
}

bool wb_store_state_has_snapshot(struct wb_store_state *state, uint32_t number)
{
    uint64_t epoch;

    WB_CHECK(state->magic == WB_STATE_MAGIC);
    return wb_repo_snapshot_epoch(&state->parts[0].txn, number, &epoch) == 0;
}

/* ---- small files ---------------------------------------------------------------------------------------------- */

/* The file that makes the directory of a part a repository, as it is. */
static int pass_superblock(const struct wb_state_part *part, wb_store_each_small each, void *context)
{
    struct wb_buf bytes = WB_BUF_INIT;
    char name[WB_STATE_NAME_MAX];
    char *path = wb_path_join(part->dir, WB_SUPERBLOCK_NAME);
    int err = path ? wb_path_read(path, WB_STATE_SMALL_MAX, &bytes) : WB_E_NOMEM;

    snprintf(name, sizeof name, "%s" WB_SUPERBLOCK_NAME, part->prefix);
    if (err == 0)
        err = each(context, name, wb_buf_slice(&bytes));
    wb_buf_release(&bytes);
    wb_free(path);
    return err;
}

/* The file that makes a directory a node. The catalog knows what is in it, so the node itself need not be there. */
static int pass_identity(const struct wb_state_part *part, const struct wb_catalog_node *row, wb_store_each_small each,
                         void *context)
{
    struct wb_node_identity identity = wb_nodes_identity(part->superblock.id, row);
    struct wb_buf bytes = WB_BUF_INIT;
    char name[WB_STATE_NAME_MAX], dir[WB_STATE_NODE_MAX];

    wb_state_node_dir(row, dir);
    if (!dir[0])
        return 0;
    snprintf(name, sizeof name, "%s%s/" WB_NODE_IDENTITY_NAME, part->prefix, dir);
    int err = wb_node_identity_format(&identity, &bytes);
    if (err == 0)
        err = each(context, name, wb_buf_slice(&bytes));
    wb_buf_release(&bytes);
    return err;
}

int wb_store_state_each_small(struct wb_store_state *state, wb_store_each_small each, void *context)
{
    int err = 0;

    WB_CHECK(state->magic == WB_STATE_MAGIC);
    for (size_t i = 0; i < state->part_count && err == 0; i++) {
        const struct wb_state_part *part = &state->parts[i];
        err = pass_superblock(part, each, context);
        for (size_t n = 0; n < part->nodes.items.count && err == 0; n++)
            err = pass_identity(part, &part->nodes.items.items[n].row, each, context);
    }
    return err;
}
