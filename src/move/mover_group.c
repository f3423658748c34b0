/*
 * mover_group.c - puts old versions next to newer ones of the same page, so that they are compressed with
 * them and cost little more than what makes them different.
 *
 * Compaction moves the old versions of a page into the block that has its latest version: block_rewrite.c
 * adds them to the block under new slots, in frames that are based on that version. Reading any of them
 * touches this one block.
 *
 *   1 plan      which pages have old versions elsewhere, by the block of their latest version
 *   2 copy      when compaction copies that block, it adds them     (mover_copy.c)
 *   3 relocate  the catalog is told their new places, page by page; what they leave behind is dead
 *
 * A version that a snapshot or a running scan shows is not moved, because their positions are places.
 * After a crash between 2 and 3 the copies are dead bytes, and the next compaction copies them again.
 */
#include "base/check.h"
#include "base/mem.h"
#include "move/mover.h"
#include "os/clock.h"

#include <stdlib.h>

enum {
    PLAN_MAX = 1 << 20,         /* pages that one compaction groups; the next one does the rest */
    RELOCATE_AT_ONCE = 2000,    /* versions whose places are changed in one transaction */
    GROUP_BYTES_MAX = 64 << 20, /* of versions that are added to one block: they are in memory at the same time */
    SLOTS_MAX = 65000,          /* slots are never used again, so a block can run out of them */
};

/* ---- the plan --------------------------------------------------------------------------------------------- */

/*
 * Whether the version can be moved to the block of the latest one. Several versions may have the same place, if
 * their content returned: they move together or not at all.
 */
static bool is_movable(const struct wb_history *history, const struct wb_history_version *version,
                       const struct wb_history_version *latest, const struct wb_history_rule *rule)
{
    WB_CHECK(latest->ceased == 0);
    if (version->place.segment == WB_CATALOG_BASE_SEGMENT || latest->place.segment == WB_CATALOG_BASE_SEGMENT ||
        (version->place.segment == latest->place.segment && version->place.logical == latest->place.logical))
        return false;
    for (size_t i = 0; i < history->versions.count; i++)
        if (wb_catalog_place_equal(&history->versions.items[i].place, &version->place) &&
            wb_history_is_held(&history->versions.items[i], rule))
            return false;
    return true;
}

struct plan_walk {
    struct wb_mover_group *group;
    struct wb_catalog_txn txn;
    struct wb_history_rule rule;
};

/* Returns 1 when the plan is full. */
static int plan_page(void *context, struct wb_pageid id, struct wb_slice bytes)
{
    struct plan_walk *walk = context;
    struct wb_mover_group *group = walk->group;
    struct wb_history *history = &group->view.history;
    int err = wb_pageview_load(&walk->txn, true, id, &group->view);
    const struct wb_history_version *latest = err == 0 ? wb_history_latest(history) : NULL;

    (void)bytes;
    if (!latest)
        return err;
    for (size_t i = 0; i < history->versions.count; i++)
        if (is_movable(history, &history->versions.items[i], latest, &walk->rule)) {
            if (group->plan.count == PLAN_MAX)
                return 1;
            return wb_vec_push(&group->plan, (struct wb_mover_group_item){latest->place, id});
        }
    return 0;
}

static int compare_plan(const void *a, const void *b)
{
    const struct wb_catalog_place *x = &((const struct wb_mover_group_item *)a)->place;
    const struct wb_catalog_place *y = &((const struct wb_mover_group_item *)b)->place;

    if (x->segment != y->segment)
        return x->segment < y->segment ? -1 : 1;
    if (x->logical != y->logical)
        return x->logical < y->logical ? -1 : 1;
    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

int wb_mover_group_plan(struct wb_mover_group *group, struct wb_repo *repo)
{
    struct plan_walk walk = {.group = group};
    struct wb_catalog_summary summary;
    int err = wb_catalog_txn_read(repo->catalog, &walk.txn);

    WB_CHECK(group->plan.count == 0);
    if (err == 0)
        err = wb_catalog_summary_get(&walk.txn, &summary);
    if (err == 0)
        err = wb_repo_epochs_held(repo, &walk.txn, &group->held);
    if (err == 0) {
        walk.rule = (struct wb_history_rule){summary.history, group->held.items, group->held.count, wb_clock_wall_ms()};
        err = wb_catalog_history_each(&walk.txn, (struct wb_pageid){0}, plan_page, &walk);
    }
    wb_catalog_txn_abort(&walk.txn);
    if (err >= 0 && group->plan.count)
        qsort(group->plan.items, group->plan.count, sizeof *group->plan.items, compare_plan);
    return err < 0 ? err : 0;
}

/* The first item of a segment, or of one after it. */
static size_t first_item(const struct wb_mover_group *group, uint32_t segment)
{
    size_t low = 0, high = group->plan.count;

    WB_CHECK(segment > 0);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (group->plan.items[middle].place.segment < segment)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/*
 * Blocks of a segment that was split get no new slots. Another part may have a block of the same name, and scans
 * merge the two by their slots, so no slot may be in both.
 */
static bool is_part(const struct wb_catalog_segment *row)
{
    return row->split || row->origin;
}

bool wb_mover_group_wants(const struct wb_mover_group *group, const struct wb_repo *repo,
                          const struct wb_catalog_segment *row)
{
    size_t first = first_item(group, row->number), count = 0;
    uint64_t least = repo->store.thrifty ? row->live / WB_PAGEFILE_WORTHWHILE + 1 : 1; /* to copy it for them */

    if (is_part(row))
        return false;
    while (count < least && first + count < group->plan.count &&
           group->plan.items[first + count].place.segment == row->number)
        count++;
    return count >= least;
}

static void clear_block(struct wb_mover_group *group)
{
    for (size_t i = 0; i < group->records.count; i++)
        wb_buf_release(&group->records.items[i]);
    wb_vec_clear(&group->records);
    wb_vec_clear(&group->extras);
    group->bytes = 0;
}

void wb_mover_group_begin(struct wb_mover_group *group, const struct wb_catalog_segment *row)
{
    group->plan_at = is_part(row) ? group->plan.count : first_item(group, row->number);
    wb_vec_clear(&group->moves);
    clear_block(group);
}

void wb_mover_group_release(struct wb_mover_group *group)
{
    clear_block(group);
    wb_vec_release(&group->records);
    wb_vec_release(&group->extras);
    wb_vec_release(&group->moves);
    wb_vec_release(&group->plan);
    wb_vec_release(&group->held);
    wb_pageview_release(&group->view);
}

/* ---- what is added to a block -------------------------------------------------------------------------------- */

static bool was_taken(const struct wb_mover_group *group, size_t first, const struct wb_catalog_place *place)
{
    for (size_t i = first; i < group->moves.count; i++)
        if (wb_catalog_place_equal(&group->moves.items[i].from, place))
            return true;
    return false;
}

/* Reads a version and adds it to what the block gets. One that cannot be read stays where it is. */
static int add_version(struct wb_mover_group *group, struct wb_repo *repo, const struct wb_history_version *version,
                       uint32_t newest)
{
    struct wb_buf record = WB_BUF_INIT;
    int err = wb_repo_read_record(repo, group->view.id, &version->place, &record);

    WB_CHECK(version->ceased != 0);
    WB_CHECK(group->extras.count == group->records.count);
    if (err == WB_E_CORRUPT || err == WB_E_NOTFOUND || err == WB_E_DOWN) {
        wb_buf_release(&record);
        return 0;
    }
    if (err == 0)
        err = wb_vec_reserve(&group->extras, group->extras.count + 1);
    if (err == 0)
        err = wb_vec_reserve(&group->records, group->records.count + 1);
    if (err == 0)
        err = wb_vec_push(&group->moves, (struct wb_mover_group_move){.id = group->view.id, .from = version->place});
    if (err < 0) {
        wb_buf_release(&record);
        return err;
    }
    group->bytes += record.len;
    group->records.items[group->records.count++] = record;
    group->extras.items[group->extras.count++] = (struct wb_block_page){
        .id = group->view.id, .record = wb_buf_slice(&record), .site = group->view.site, .newest = newest};
    return 0;
}

/* Adds the old versions of one page to what the block gets, the newest first. */
static int add_page(struct wb_mover_group *group, struct wb_repo *repo, struct wb_move_hold *hold,
                    const struct wb_mover_group_item *item, const struct wb_block_index *index)
{
    struct wb_history_rule rule = {.held = group->held.items, .held_count = group->held.count};
    size_t at, first = group->moves.count;
    int err = wb_pageview_load(&hold->txn, true, item->id, &group->view);
    const struct wb_history_version *latest = err == 0 ? wb_history_latest(&group->view.history) : NULL;

    WB_CHECK(hold->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(item->place.segment == hold->row.number);
    /* If the page was replaced since the plan was made, its versions now belong somewhere else. */
    if (!latest || !wb_catalog_place_equal(&latest->place, &item->place) ||
        !wb_block_find_slot(index, item->place.slot, &at))
        return err;
    for (size_t i = group->view.history.versions.count; i > 0 && err == 0; i--) {
        const struct wb_history_version *version = &group->view.history.versions.items[i - 1];
        if (index->head.count + group->extras.count >= WB_BLOCK_PAGES_MAX ||
            index->head.next_slot + group->extras.count >= SLOTS_MAX || group->bytes >= GROUP_BYTES_MAX)
            break;
        if (is_movable(&group->view.history, version, latest, &rule) && !was_taken(group, first, &version->place))
            err = add_version(group, repo, version, (uint32_t)at + 1);
    }
    return err;
}

int wb_mover_group_block(struct wb_mover_group *group, struct wb_repo *repo, struct wb_move_hold *hold,
                         const struct wb_block_index *index)
{
    int err = 0;

    clear_block(group);
    while (group->plan_at < group->plan.count && err == 0) {
        const struct wb_mover_group_item *item = &group->plan.items[group->plan_at];
        bool here = item->place.segment == hold->row.number;
        if (item->place.segment > hold->row.number || (here && item->place.logical > index->head.logical))
            break;
        if (here && item->place.logical == index->head.logical)
            err = add_page(group, repo, hold, item, index);
        group->plan_at++;
    }
    return err;
}

void wb_mover_group_place(struct wb_mover_group *group, uint32_t segment, uint64_t logical)
{
    size_t first = group->moves.count - group->extras.count;

    WB_CHECK(logical > 0);
    WB_CHECK(group->extras.count <= group->moves.count);
    for (size_t i = 0; i < group->extras.count; i++) {
        struct wb_mover_group_move *move = &group->moves.items[first + i];
        move->to = (struct wb_catalog_place){segment, group->extras.items[i].slot, logical};
        move->stored_bytes = group->extras.items[i].stored_bytes;
    }
}

void wb_mover_group_forget(struct wb_mover_group *group)
{
    WB_CHECK(group->extras.count <= group->moves.count);
    group->moves.count -= group->extras.count;
    clear_block(group);
}

/* ---- new places ------------------------------------------------------------------------------------------------- */

/* Changes the places of the versions of one page: moves[0] to moves[count - 1]. */
static int relocate_page(struct wb_repo_edit *edit, const struct wb_mover_group_move *moves, size_t count,
                         uint64_t *moved)
{
    struct wb_catalog_segment *row;
    int err = wb_repo_edit_load(edit, moves[0].id);

    WB_CHECK(count > 0);
    for (size_t i = 0; i < count && err == 0; i++) {
        bool found = false;
        WB_CHECK(wb_pageid_equal(moves[i].id, moves[0].id));
        WB_CHECK(moves[i].to.segment > 0);
        for (size_t k = 0; k < edit->view.history.versions.count; k++) {
            struct wb_history_version *version = &edit->view.history.versions.items[k];
            if (!wb_catalog_place_equal(&version->place, &moves[i].from) || version->ceased == 0)
                continue;
            version->place = moves[i].to;
            version->stored_bytes = moves[i].stored_bytes;
            found = true;
        }
        *moved += found;
        if (found)
            continue;
        /* It was given up or taken down in the meantime: the copy must disappear, too. */
        err = wb_pagefile_edit_row_of(&edit->files, &moves[i].to, moves[i].id, &row);
        if (err == 0) {
            row->bytes_dead += moves[i].stored_bytes;
            row->removed++;
        }
    }
    return err < 0 ? err : wb_repo_edit_save(edit, false, false, NULL);
}

/* One transaction. */
static int relocate_some(struct wb_repo *repo, const struct wb_mover_group_move *moves, size_t count,
                         uint64_t *moved_inout)
{
    struct wb_repo_edit edit = {.repo = repo};
    uint64_t moved = 0;
    int err = wb_repo_edit_begin(repo, &edit);

    WB_CHECK(count > 0);
    for (size_t i = 0, next; i < count && err == 0; i = next) {
        for (next = i + 1; next < count; next++)
            if (!wb_pageid_equal(moves[next].id, moves[i].id))
                break;
        err = relocate_page(&edit, &moves[i], next - i, &moved);
    }
    if (err == 0)
        err = wb_repo_edit_end(&edit);
    if (err == 0)
        *moved_inout += moved;
    wb_catalog_txn_abort(&edit.txn);
    wb_repo_edit_release(&edit);
    return err;
}

int wb_mover_group_relocate(struct wb_mover_group *group, struct wb_repo *repo, uint64_t *moved_inout)
{
    const struct wb_mover_group_move *moves = group->moves.items;
    size_t count = group->moves.count;
    int err = 0;

    for (size_t i = 0, next; i < count && err == 0; i = next) {
        next = count - i < RELOCATE_AT_ONCE ? count : i + RELOCATE_AT_ONCE;
        while (next < count && wb_pageid_equal(moves[next].id, moves[next - 1].id))
            next++; /* all versions of a page in one transaction */
        err = relocate_some(repo, moves + i, next - i, moved_inout);
    }
    wb_vec_clear(&group->moves);
    return err;
}
