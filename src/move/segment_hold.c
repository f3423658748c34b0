/*
 * segment_hold.c - moves a segment to another node: its file is copied there as its next revision, and the row of the
 * segment changes. It is also what split.c begins and ends with: taking hold of a segment, and replacing its row.
 *
 *   1 hold      compact.lock, the lock on the file, a state of the catalog
 *   2 check     all blocks, with their directories and frames, are compared with their checksums
 *   3 copy      complete and synced; a crash leaves a file without a row, which the next writer removes
 *   4 publish   one transaction: the new row, and the old file is retired
 *
 * Places do not change: they name blocks, and the copy has the same blocks in the same order.
 */
#include "base/check.h"
#include "base/mem.h"
#include "move/compact.h"
#include "place/nodes.h"
#include "move/split.h"

#include <stdlib.h>

enum { COPY_BYTES = 1 << 20 };

/* ---- taking hold of a segment ----------------------------------------------------------------------------- */

void wb_hold_close(struct wb_hold *hold)
{
    wb_catalog_txn_abort(&hold->txn);
    wb_segment_close(&hold->from);
    wb_file_close(&hold->lock);
}

/* Opens the file that the row describes, and claims it. */
static int lock_segment(struct wb_hold *hold)
{
    struct wb_node *node;
    int err = wb_repo_node(hold->repo, hold->row.node, &node);

    WB_CHECK(hold->row.number > 0);
    WB_CHECK(hold->from.file.node == NULL);
    if (err == 0)
        err = wb_segment_open(node, hold->repo->superblock.id, &hold->row, true, &hold->from);
    return err < 0 ? err : wb_node_file_claim(&hold->from.file);
}

int wb_hold_open(struct wb_repo *repo, uint32_t number, struct wb_hold *hold_out)
{
    struct wb_hold *hold = hold_out;
    uint32_t revision;

    WB_CHECK(repo->magic == WB_REPO_MAGIC);
    WB_CHECK(number > 0);
    *hold = (struct wb_hold){.repo = repo, .lock = WB_FILE_INIT, .from = WB_SEGMENT_INIT};
    int err = repo->compacting ? 0 : wb_compact_lock(repo, &hold->lock);
    if (err == 0)
        err = wb_catalog_txn_read(repo->catalog, &hold->txn);
    if (err == 0)
        err = wb_catalog_segment_get(&hold->txn, number, &hold->row);
    revision = hold->row.revision;
    if (err == 0)
        err = lock_segment(hold);
    wb_catalog_txn_abort(&hold->txn);
    /* A writer may have let go of it since: what counts is how it is under the lock. */
    if (err == 0)
        err = wb_catalog_txn_read(repo->catalog, &hold->txn);
    if (err == 0)
        err = wb_catalog_segment_get(&hold->txn, number, &hold->row);
    WB_CHECK(err < 0 || hold->row.revision == revision); /* only who has compact.lock changes that */
    if (err < 0)
        wb_hold_close(hold);
    return err;
}

int wb_hold_begin(struct wb_hold *hold, struct wb_catalog_txn *txn_out, struct wb_catalog_segment *now_out)
{
    const struct wb_catalog_segment *before = &hold->row;

    wb_catalog_txn_abort(&hold->txn);
    int err = wb_catalog_txn_write(hold->repo->catalog, txn_out);
    if (err == 0)
        err = wb_catalog_segment_get(txn_out, before->number, now_out);
    if (err < 0)
        return err;
    WB_CHECK(now_out->number == before->number);
    if (now_out->revision != before->revision || now_out->bytes != before->bytes || now_out->live > before->live ||
        now_out->bytes_dead < before->bytes_dead || now_out->removed < before->removed ||
        now_out->returned < before->returned)
        return wb_catalog_corrupt(hold->repo->catalog, WB_CATALOG_SEGMENTS, "a segment that changed under its lock");
    return 0;
}

int wb_hold_commit(struct wb_hold *hold, struct wb_catalog_txn *txn)
{
    struct wb_catalog_summary summary;
    const struct wb_catalog_segment *before = &hold->row;
    int err = wb_catalog_retired_put(txn, before->number, before->revision, before->node, wb_catalog_txn_id(txn));

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(before->number > 0);
    if (err == 0)
        err = wb_catalog_summary_get(txn, &summary);
    summary.commit++;
    if (err == 0)
        err = wb_catalog_summary_put(txn, &summary);
    return err < 0 ? err : wb_catalog_txn_commit(txn);
}

int wb_hold_drop(struct wb_hold *hold)
{
    struct wb_catalog_segment now;
    struct wb_catalog_txn txn = {0};
    int err = wb_hold_begin(hold, &txn, &now);

    WB_CHECK(hold->row.live == 0);
    WB_CHECK(err < 0 || now.live == 0);
    if (err == 0)
        err = wb_catalog_segment_delete(&txn, now.number);
    if (err == 0)
        err = wb_hold_commit(hold, &txn);
    wb_catalog_txn_abort(&txn);
    return err;
}

int wb_hold_create_file(struct wb_repo *repo, uint32_t node, uint32_t number, uint32_t revision,
                        struct wb_segment *segment_out)
{
    char name[WB_SEGMENT_NAME_MAX];
    struct wb_node *reach;
    int err = wb_repo_node(repo, node, &reach);

    WB_CHECK(revision > 0);
    WB_CHECK(segment_out->file.node == NULL);
    if (err < 0)
        return err;
    wb_segment_name(number, revision, name);
    err = wb_node_remove(reach, name);
    return err < 0 ? err : wb_segment_create(reach, repo->superblock.id, number, revision, segment_out);
}

int wb_append_sync_file(struct wb_segment *segment)
{
    int err = wb_node_file_sync(&segment->file);

    WB_CHECK(segment->magic == WB_SEGMENT_MAGIC);
    return err < 0 ? err : wb_node_sync_names(segment->file.node);
}

/* ---- checking a file ---------------------------------------------------------------------------------------- */

int wb_hold_check_block(const struct wb_segment_walk *walk, const char *block, const bool *dead, uint64_t at)
{
    struct wb_block_damage damage;
    int sound = wb_block_check(&walk->index, block, dead, &damage);

    WB_CHECK(walk->segment->magic == WB_SEGMENT_MAGIC);
    if (sound != 0)
        return sound < 0 ? sound : 0;
    return wb_fail(WB_E_CORRUPT, "%s at %llu: a frame of a block does not match its checksum",
                   walk->segment->file.path, (unsigned long long)(at + damage.at));
}

/* Reads all blocks. WB_E_CORRUPT names the first damaged place. */
static int check_file(struct wb_hold *hold)
{
    struct wb_segment_walk walk;
    struct wb_block_head head;
    const char *block;
    uint64_t at;
    int err;

    WB_CHECK(hold->row.number > 0);
    wb_segment_walk_init(&walk, &hold->from, wb_segment_blocks_end(&hold->row));
    while ((err = wb_segment_walk_next(&walk, &head, &block, &at)) > 0) {
        err = wb_hold_check_block(&walk, block, NULL, at);
        if (err < 0)
            break;
    }
    wb_segment_walk_release(&walk);
    return err;
}

/* ---- copying a file ----------------------------------------------------------------------------------------- */

static int copy_bytes(const struct wb_node_file *from, uint64_t at, uint64_t end, const struct wb_node_file *to)
{
    char *bytes = wb_alloc(COPY_BYTES);
    int err = bytes ? 0 : WB_E_NOMEM;

    WB_CHECK(at <= end);
    while (at < end && err == 0) {
        size_t want = end - at < COPY_BYTES ? (size_t)(end - at) : COPY_BYTES, got = 0;
        err = wb_node_file_read_at(from, at, bytes, want, &got);
        if (err == 0 && got == 0)
            break; /* the file is shorter than it should be, and so is its copy: verify reports that */
        if (err == 0)
            err = wb_node_file_write_at(to, at, bytes, got);
        wb_node_file_hint(to, WB_NODE_WRITE_BACK, at, got);
        at += got;
    }
    wb_free(bytes);
    return err;
}

struct block_list WB_VEC_OF(struct wb_segment_map_entry);

static int compare_positions(const void *a, const void *b)
{
    const struct wb_segment_map_entry *x = a, *y = b;

    return x->physical < y->physical ? -1 : x->physical > y->physical;
}

/* Lists the blocks of a file that has no map, as it was written: they are where their names say. */
static int list_blocks(struct wb_hold *hold, struct block_list *list)
{
    struct wb_segment_walk walk;
    struct wb_block_head head;
    const char *block;
    uint64_t at;
    bool damaged = false;
    int err;

    WB_CHECK(hold->row.revision == 0);
    wb_segment_walk_init(&walk, &hold->from, hold->row.bytes);
    while ((err = wb_segment_walk_next(&walk, &head, &block, &at)) != 0) {
        damaged = damaged || err == WB_E_CORRUPT;
        if (err > 0)
            err = wb_vec_push(list, (struct wb_segment_map_entry){head.logical, at});
        if (err < 0 && err != WB_E_CORRUPT)
            break;
    }
    wb_segment_walk_release(&walk);
    if (err < 0 || !damaged)
        return err;
    struct wb_segment_live live; /* the catalog knows the names of damaged blocks */
    err = wb_segment_live_read(&hold->txn, &hold->from, &hold->row, &live);
    for (size_t i = 0; err == 0 && i < live.blocks.count; i++)
        err = wb_vec_push(list, live.blocks.items[i]);
    if (err == 0 && list->count)
        qsort(list->items, list->count, sizeof *list->items, compare_positions);
    size_t kept = 0;
    for (size_t i = 0; err == 0 && i < list->count; i++)
        if (kept == 0 || list->items[kept - 1].physical < list->items[i].physical)
            list->items[kept++] = list->items[i];
    list->count = err == 0 ? kept : list->count;
    wb_segment_live_release(&live);
    return err;
}

/* Copies the file. *row_inout becomes the row that describes the copy. */
static int copy_file(struct wb_hold *hold, struct wb_segment *to, struct wb_catalog_segment *row_inout)
{
    struct block_list list = {0};
    uint64_t map_bytes = 0, end = hold->row.bytes;
    int err = copy_bytes(&hold->from.file, WB_SEGMENT_HEADER_BYTES, end, &to->file);

    WB_CHECK(to->file.node != NULL);
    WB_CHECK(row_inout->number == hold->row.number);
    if (err == 0 && hold->row.revision == 0) {
        err = list_blocks(hold, &list);
        if (err == 0)
            err = wb_segment_write_map(to, end, list.items, list.count, &map_bytes);
        row_inout->map_at = end;
        row_inout->map_count = list.count;
        row_inout->bytes = end + map_bytes;
    }
    wb_vec_release(&list);
    return err < 0 ? err : wb_append_sync_file(to);
}

/* Replaces the row. What happened to it in the meantime stays. */
static int publish_move(struct wb_hold *hold, const struct wb_catalog_segment *copy)
{
    struct wb_catalog_segment now;
    struct wb_catalog_txn txn = {0};
    int err = wb_hold_begin(hold, &txn, &now);

    WB_CHECK(copy->number == hold->row.number);
    WB_CHECK(copy->revision == hold->row.revision + 1);
    now.revision = copy->revision;
    now.node = copy->node;
    now.sealed = true;
    now.bytes = copy->bytes;
    now.map_at = copy->map_at;
    now.map_count = copy->map_count;
    if (err == 0)
        err = wb_catalog_segment_put(&txn, &now);
    if (err == 0)
        err = wb_hold_commit(hold, &txn);
    wb_catalog_txn_abort(&txn);
    return err;
}

int wb_compact_move(struct wb_repo *repo, uint32_t number, uint32_t node, bool anyway)
{
    struct wb_hold hold;
    struct wb_segment to = WB_SEGMENT_INIT;
    struct wb_error_copy damage = {0};
    int err = wb_hold_open(repo, number, &hold);

    WB_CHECK(node > 0);
    if (err < 0)
        return err;
    struct wb_catalog_segment copy = hold.row;
    copy.node = node;
    copy.revision++;
    if (copy.live == 0) {
        err = wb_hold_drop(&hold);
        wb_hold_close(&hold);
        return err;
    }
    err = check_file(&hold);
    if (err == WB_E_CORRUPT && anyway) {
        wb_error_save(err, &damage);
        err = 0;
    }
    if (err == 0)
        err = wb_hold_create_file(repo, node, number, copy.revision, &to);
    if (err == 0)
        err = copy_file(&hold, &to, &copy);
    if (err == 0)
        err = publish_move(&hold, &copy);
    if (err < 0 && to.file.node && !wb_catalog_uncertain(repo->catalog)) { /* else it may be the one that counts */
        struct wb_error_copy why;
        wb_error_save(err, &why);
        wb_node_file_remove(&to.file);
        err = wb_error_restore(&why);
    }
    wb_segment_close(&to);
    wb_hold_close(&hold);
    if (err < 0 || damage.code == 0)
        return err;
    (void)wb_error_restore(&damage);
    return 1;
}
