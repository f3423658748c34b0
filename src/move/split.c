/*
 * split.c - divides a segment by the ids of its pages.
 *
 *   segment 7, ids 0...   ---->  segment 7, its next revision, ids 00...
 *                                segment 12, whose origin is 7, ids 01...
 *
 * Blocks keep their names, and pages their slots, so all places stay what they are. A block whose pages all go to one
 * child is copied as it is. Any other is built anew for each child that gets a page of it, without a byte of the
 * others: each child is then as small as if it had never been more. Dead pages are left out.
 *
 * While we copy, commits of other processes may replace or remove pages of the segment. If its row has changed when the
 * new rows are published, the pages of each child are counted again, inside that transaction.
 */
#include "base/check.h"
#include "base/mem.h"
#include "pagefile/segment_live.h"
#include "move/split.h"

enum { WRITE_BYTES = 1 << 20 };

/* A page that was copied. */
struct split_page {
    struct wb_pageid id;
    uint64_t logical;
    uint16_t slot;
};

/* What becomes of one child. */
struct split_child {
    struct wb_split_child want;
    struct wb_segment to;
    struct wb_buf out; /* blocks that are not yet in the file ... */
    uint64_t out_at;   /* ... and where they will be */
    WB_VEC(struct wb_segment_map_entry) map;
    WB_VEC(struct split_page) pages;
    uint64_t live, old; /* first those that were copied, then those that are still so */
    struct wb_catalog_segment row;
};

struct split_work {
    struct wb_repo *repo;
    struct wb_hold hold;
    struct wb_segment_live live;
    size_t judged; /* entries of live that were passed */
    struct split_child *children;
    size_t count;
    WB_VEC(bool) dead; /* for the entries of the current block: not wanted by the current child */
    struct wb_block_builder *builder;
    struct wb_block_reader *zstd;
    struct wb_pageview view;
};

/* ---- blocks ------------------------------------------------------------------------------------------------- */

static int write_out(struct split_child *child)
{
    int err = wb_node_file_write_at(&child->to.file, child->out_at, child->out.ptr, child->out.len);

    WB_CHECK(child->out_at >= WB_SEGMENT_HEADER_BYTES);
    wb_node_file_hint(&child->to.file, WB_NODE_WRITE_BACK, child->out_at, child->out.len);
    child->out_at += child->out.len;
    wb_buf_clear(&child->out);
    return err;
}

/* Finds out which pages of a block the child gets. Returns how many. */
static size_t choose(struct split_work *w, const struct split_child *child, const struct wb_block_index *index)
{
    size_t kept = 0;

    WB_CHECK(w->dead.cap >= index->entries.count);
    WB_CHECK(w->judged + index->entries.count <= w->live.count);
    for (size_t i = 0; i < index->entries.count; i++) {
        w->dead.items[i] =
            w->live.dead[w->judged + i] || !wb_catalog_range_has(&child->want.range, index->entries.items[i].id);
        kept += !w->dead.items[i];
    }
    return kept;
}

/* Remembers the pages that the child gets. Returns how many entries have a wrong flag for old versions. */
static int count_pages(struct split_work *w, struct split_child *child, const struct wb_block_index *index,
                       size_t *wrong_out)
{
    const bool *old = w->live.old + w->judged;
    int err = 0;

    WB_CHECK(child->pages.count <= child->pages.cap);
    *wrong_out = 0;
    for (size_t i = 0; i < index->entries.count && err == 0; i++) {
        const struct wb_block_entry *entry = &index->entries.items[i];
        if (w->dead.items[i])
            continue;
        *wrong_out += old[i] != ((entry->flags & WB_BLOCK_ENTRY_OLD) != 0);
        child->live++;
        child->old += old[i];
        err = wb_vec_push(&child->pages, (struct split_page){entry->id, index->head.logical, entry->slot});
    }
    return err;
}

/* Copies the child's pages of a block. */
static int copy_block(struct split_work *w, struct split_child *child, const struct wb_block_index *index,
                      const char *block)
{
    const struct wb_block_head *head = &index->head;
    size_t kept = choose(w, child, index), wrong;
    struct wb_block_change change = {.dead = w->dead.items, .old = w->live.old + w->judged, .scrub = true};

    WB_CHECK(head->count == index->entries.count);
    if (kept == 0)
        return 0;
    int err = wb_vec_push(&child->map, (struct wb_segment_map_entry){head->logical, child->out_at + child->out.len});
    if (err == 0)
        err = count_pages(w, child, index, &wrong);
    if (err < 0)
        return err;
    if (kept == head->count && wrong == 0)
        err = wb_buf_append(&child->out, block, (size_t)head->bytes);
    else
        err = wb_block_rewrite(w->builder, w->zstd, index, block, &change, &child->out);
    if (err == 0 && change.lost)
        err = wb_fail(WB_E_CORRUPT, "%s: block %llu: a page cannot be read", w->hold.from.file.path,
                      (unsigned long long)head->logical);
    return err == 0 && child->out.len >= WRITE_BYTES ? write_out(child) : err;
}

static int copy_blocks(struct split_work *w)
{
    struct wb_segment_walk walk;
    struct wb_block_head head;
    const char *block;
    uint64_t at;
    int err;

    WB_CHECK(w->judged == 0);
    WB_CHECK(w->hold.txn.kind == WB_CATALOG_TXN_HELD);
    wb_segment_walk_init(&walk, &w->hold.from, wb_segment_blocks_end(&w->hold.row));
    while ((err = wb_segment_walk_next(&walk, &head, &block, &at)) > 0) {
        err = wb_hold_check_block(&walk, block, w->live.dead + w->judged, at);
        if (err == 0)
            err = wb_vec_reserve(&w->dead, head.count);
        for (size_t i = 0; i < w->count && err == 0; i++)
            err = copy_block(w, &w->children[i], &walk.index, block);
        w->judged += head.count;
        if (err < 0)
            break;
    }
    wb_segment_walk_release(&walk);
    for (size_t i = 0; i < w->count && err == 0; i++)
        err = write_out(&w->children[i]);
    return err;
}

/* ---- files --------------------------------------------------------------------------------------------------- */

/* Takes new segment numbers. Files cannot claim them, because the children may be on several nodes. */
static int take_numbers(struct wb_repo *repo, uint32_t count, uint32_t *first_out)
{
    struct wb_catalog_summary summary;
    struct wb_catalog_txn txn;
    int err = wb_catalog_txn_write(repo->catalog, &txn);

    WB_CHECK(count > 0);
    if (err == 0)
        err = wb_catalog_summary_get(&txn, &summary);
    if (err == 0) {
        *first_out = summary.next_segment;
        summary.next_segment += count;
        summary.commit++;
        err = wb_catalog_summary_put(&txn, &summary);
    }
    if (err == 0)
        err = wb_catalog_txn_commit(&txn);
    wb_catalog_txn_abort(&txn);
    return err;
}

/* Creates the files. The first child that stays on the node takes the number of the segment. */
static int create_files(struct split_work *w)
{
    const struct wb_catalog_segment *row = &w->hold.row;
    uint32_t next = 0;
    size_t heir = 0;
    int err = 0;

    WB_CHECK(w->count > 0);
    WB_CHECK(row->live > 0);
    while (heir < w->count && w->children[heir].want.node != row->node)
        heir++;
    heir = heir < w->count ? heir : 0;
    if (w->count > 1)
        err = take_numbers(w->repo, (uint32_t)w->count - 1, &next);
    for (size_t i = 0; i < w->count && err == 0; i++) {
        struct split_child *child = &w->children[i];
        child->row = (struct wb_catalog_segment){
            .number = i == heir ? row->number : next++,
            .revision = i == heir ? row->revision + 1 : 1,
            .node = child->want.node,
            .range = child->want.range,
            .origin = i == heir ? row->origin : wb_catalog_segment_origin(row),
            .split = i == heir && (row->split || w->count > 1) && !row->origin,
        };
        child->out_at = WB_SEGMENT_HEADER_BYTES;
        err = wb_hold_create_file(w->repo, child->want.node, child->row.number, child->row.revision, &child->to);
    }
    return err;
}

/* Writes the map of a child and makes its file durable. One without pages is not needed. */
static int finish_file(struct split_work *w, struct split_child *child)
{
    uint64_t map_bytes;

    WB_CHECK(child->out.len == 0);
    if (child->live == 0)
        return 0;
    int err = wb_segment_write_map(&child->to, child->out_at, child->map.items, child->map.count, &map_bytes);
    if (err == 0)
        err = wb_append_sync_file(&child->to);
    if (err < 0)
        return err;
    child->row.sealed = true;
    child->row.bytes = child->out_at + map_bytes;
    child->row.logical_end = w->hold.row.logical_end;
    child->row.pages = child->live;
    child->row.map_at = child->out_at;
    child->row.map_count = child->map.count;
    child->row.old_known = child->old;
    child->row.old_epoch = w->live.epoch;
    return 0;
}

/* Removes the files of children that did not come to be. */
static void discard_files(struct split_work *w, bool all)
{
    struct wb_error_copy why;

    wb_error_save(WB_E_IO, &why);
    for (size_t i = 0; i < w->count; i++) {
        WB_CHECK(all || w->children[i].pages.count || w->children[i].live == 0);
        if (w->children[i].to.file.path && (all || w->children[i].pages.count == 0))
            wb_node_file_remove(&w->children[i].to.file);
    }
    wb_error_restore(&why);
}

/* ---- rows ---------------------------------------------------------------------------------------------------- */

/* Whether a version of the page has this place, and whether it is the latest. */
static int look_up(struct split_work *w, struct wb_catalog_txn *txn, bool any_gone, const struct split_page *page,
                   bool *live_out, bool *latest_out)
{
    struct wb_catalog_place place = {w->hold.from.origin, page->slot, page->logical};
    struct wb_catalog_entry entry;
    int err = wb_catalog_entry_get(txn, page->id, &entry);
    bool past = err == 0 ? entry.history : any_gone;

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(place.segment > 0);
    *live_out = *latest_out = err == 0 && wb_catalog_place_equal(&entry.place, &place);
    err = err == WB_E_NOTFOUND ? 0 : err;
    if (err < 0 || *live_out || !past)
        return err;
    err = wb_pageview_load(txn, any_gone, page->id, &w->view);
    for (size_t i = 0; err == 0 && i < w->view.history.versions.count && !*live_out; i++)
        *live_out = wb_catalog_place_equal(&w->view.history.versions.items[i].place, &place);
    return err;
}

/* Counts the live pages of the children anew. */
static int count_again(struct split_work *w, struct wb_catalog_txn *txn)
{
    struct wb_catalog_summary summary;
    bool live, latest;
    int err = wb_catalog_summary_get(txn, &summary);

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    for (size_t i = 0; i < w->count && err == 0; i++) {
        struct split_child *child = &w->children[i];
        child->live = child->old = 0;
        for (size_t k = 0; k < child->pages.count && err == 0; k++) {
            err = look_up(w, txn, summary.gone > 0, &child->pages.items[k], &live, &latest);
            child->live += live;
            child->old += live && !latest;
        }
        WB_CHECK(err < 0 || child->live <= child->pages.count);
    }
    return err;
}

/* The children together must have what the segment has. */
static int check_sums(const struct split_work *w, const struct wb_catalog_segment *row)
{
    uint64_t live = 0, old = 0;

    WB_CHECK(row->number > 0);
    for (size_t i = 0; i < w->count; i++) {
        live += w->children[i].live;
        old += w->children[i].old;
    }
    if (live == row->live && old == row->old)
        return 0;
    return wb_fail(WB_E_CORRUPT, "%s holds %llu live pages, the catalog knows of %llu: nothing was changed, run verify",
                   w->hold.from.file.path, (unsigned long long)live, (unsigned long long)row->live);
}

/* Completes the row of a child by what happened to the segment while it was copied. */
static void carry_over(const struct split_work *w, struct split_child *child, const struct wb_catalog_segment *now)
{
    const struct wb_catalog_segment *before = &w->hold.row;
    uint64_t died = child->pages.count - child->live, all = before->live - now->live;
    uint64_t bytes = now->bytes_dead - before->bytes_dead;

    WB_CHECK(child->live <= child->pages.count);
    WB_CHECK(died <= all);
    child->row.live = child->live;
    child->row.old = child->old;
    child->row.touched = now->touched;
    child->row.removed = now->removed - before->removed;
    child->row.returned = now->returned - before->returned;
    child->row.epoch_min = now->epoch_min;
    child->row.epoch_max = now->epoch_max;
    /* Nobody knows how many bytes each page had that died since. */
    child->row.bytes_dead = died ? (uint64_t)((double)bytes * (double)died / (double)all) + 1 : 0;
}

static int publish_split(struct split_work *w)
{
    const struct wb_catalog_segment *before = &w->hold.row;
    struct wb_catalog_segment now;
    struct wb_catalog_txn txn = {0};
    bool heir = false;
    int err = wb_hold_begin(&w->hold, &txn, &now);

    WB_CHECK(w->count > 0);
    if (err == 0 && (now.live != before->live || now.old != before->old || now.returned != before->returned))
        err = count_again(w, &txn);
    if (err == 0)
        err = check_sums(w, &now);
    for (size_t i = 0; i < w->count && err == 0; i++) {
        struct split_child *child = &w->children[i];
        if (child->pages.count == 0)
            continue;
        carry_over(w, child, &now);
        heir = heir || child->row.number == now.number;
        err = wb_catalog_segment_put(&txn, &child->row);
    }
    if (err == 0 && !heir)
        err = wb_catalog_segment_delete(&txn, now.number);
    if (err == 0)
        err = wb_hold_commit(&w->hold, &txn);
    wb_catalog_txn_abort(&txn);
    return err;
}

/* ---- the whole ------------------------------------------------------------------------------------------------ */

static int split_held(struct split_work *w)
{
    int err = wb_segment_live_read(&w->hold.txn, &w->hold.from, &w->hold.row, &w->live);

    WB_CHECK(w->hold.row.live > 0);
    if (err == 0 && (w->live.damages.count || w->live.nowhere))
        err = wb_fail(WB_E_CORRUPT, "%s at %llu is damaged, so it cannot be divided", w->hold.from.file.path,
                      (unsigned long long)(w->live.damages.count ? w->live.damages.items[0].at : 0));
    if (err == 0)
        err = create_files(w);
    if (err == 0)
        err = copy_blocks(w);
    if (err == 0)
        err = check_sums(w, &w->hold.row);
    for (size_t i = 0; i < w->count && err == 0; i++)
        err = finish_file(w, &w->children[i]);
    if (err == 0)
        err = publish_split(w);
    if (err == 0 || !wb_catalog_uncertain(w->repo->catalog)) /* otherwise the new files may be those that count */
        discard_files(w, err < 0);
    return err;
}

static void release(struct split_work *w)
{
    WB_CHECK(w->children != NULL || w->count == 0);
    for (size_t i = 0; i < w->count; i++) {
        wb_segment_close(&w->children[i].to);
        wb_buf_release(&w->children[i].out);
        wb_vec_release(&w->children[i].map);
        wb_vec_release(&w->children[i].pages);
    }
    wb_free(w->children);
    wb_vec_release(&w->dead);
    wb_block_builder_free(w->builder);
    wb_block_reader_free(w->zstd);
    wb_pageview_release(&w->view);
    wb_segment_live_release(&w->live);
    wb_hold_close(&w->hold);
}

int wb_split(struct wb_repo *repo, uint32_t number, const struct wb_split_child *children, size_t count)
{
    struct split_work w = {.repo = repo};
    int err = wb_hold_open(repo, number, &w.hold);

    WB_CHECK(count > 0);
    WB_CHECK(count <= WB_SPLIT_CHILDREN_MAX);
    if (err < 0)
        return err;
    if (w.hold.row.live == 0) {
        err = wb_hold_drop(&w.hold);
        wb_hold_close(&w.hold);
        return err;
    }
    w.children = wb_alloc_zero(count, sizeof *w.children);
    err = w.children ? wb_block_builder_new(&w.builder) : WB_E_NOMEM;
    if (err == 0)
        err = wb_block_reader_new(&w.zstd);
    w.count = w.children ? count : 0;
    for (size_t i = 0; i < w.count; i++) {
        w.children[i].want = children[i];
        w.children[i].to = WB_SEGMENT_INIT;
    }
    if (err == 0)
        err = split_held(&w);
    release(&w);
    return err;
}
