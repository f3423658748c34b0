/*
 * compact_group.c - puts old versions next to newer ones of the same page, so that they are compressed with
 * them and cost little more than what makes them different.
 *
 * Compaction moves the old versions of a page into the block that has its latest version: block_rewrite.c
 * adds them to the block under new slots, in frames that are based on that version. Reading any of them
 * touches this one block.
 *
 *   1 plan      which pages have old versions elsewhere, by the block of their latest version
 *   2 copy      when compaction copies that block, it adds them     (compact_copy.c)
 *   3 relocate  the catalog is told their new places, page by page; what they leave behind is dead
 *
 * A version that a snapshot or a running scan shows is not moved, because their positions are places.
 * After a crash between 2 and 3 the copies are dead bytes, and the next compaction begins anew.
 */
#include "base/check.h"
#include "base/mem.h"
#include "os/clock.h"
#include "move/compact.h"

#include <stdlib.h>

enum {
    PLAN_MAX = 1 << 20,          /* pages that one compaction groups; the next one does the rest */
    RELOCATE_AT_ONCE = 2000,     /* versions whose places are changed in one transaction */
    GROUP_BYTES_MAX = 64 << 20,  /* of versions that are added to one block: they are in memory at the same time */
    SLOTS_MAX = 65000,           /* slots are never used again, so a block can run out of them */
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
    WB_CHECK(version->place.segment > 0);
    if (version->place.segment == latest->place.segment && version->place.logical == latest->place.logical)
        return false;
    for (size_t i = 0; i < history->versions.count; i++)
        if (wb_catalog_place_equal(&history->versions.items[i].place, &version->place) &&
            wb_history_is_held(&history->versions.items[i], rule))
            return false;
    return true;
}

struct plan_walk {
    struct wb_compaction *c;
    struct wb_history_rule rule;
};

/* Returns 1 when the plan is full. */
static int plan_page(void *context, struct wb_pageid id, struct wb_slice bytes)
{
    struct plan_walk *walk = context;
    struct wb_compaction *c = walk->c;

    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    WB_CHECK(c->txn.kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(c->plan.count <= PLAN_MAX);
    (void)bytes;
    int err = wb_pageview_load(&c->txn, true, id, &c->view);
    const struct wb_history_version *latest = err == 0 ? wb_history_latest(&c->view.history) : NULL;
    if (!latest)
        return err;
    for (size_t i = 0; i < c->view.history.versions.count; i++)
        if (is_movable(&c->view.history, &c->view.history.versions.items[i], latest, &walk->rule)) {
            if (c->plan.count == PLAN_MAX)
                return 1;
            return wb_vec_push(&c->plan, (struct wb_compact_plan_item){latest->place, id});
        }
    return 0;
}

static int compare_plan(const void *a, const void *b)
{
    const struct wb_catalog_place *x = &((const struct wb_compact_plan_item *)a)->place;
    const struct wb_catalog_place *y = &((const struct wb_compact_plan_item *)b)->place;

    if (x->segment != y->segment)
        return x->segment < y->segment ? -1 : 1;
    if (x->logical != y->logical)
        return x->logical < y->logical ? -1 : 1;
    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

int wb_compact_group_plan(struct wb_compaction *c)
{
    struct plan_walk walk = {.c = c};
    struct wb_catalog_summary summary;
    int err = wb_catalog_txn_read(c->repo->catalog, &c->txn);

    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    WB_CHECK(c->plan.count == 0);
    if (err == 0)
        err = wb_catalog_summary_get(&c->txn, &summary);
    if (err == 0)
        err = wb_epochs_held(&c->txn, wb_clock_wall_ms(), &c->held);
    if (err == 0) {
        walk.rule = (struct wb_history_rule){summary.history, c->held.items, c->held.count, wb_clock_wall_ms()};
        err = wb_catalog_history_each(&c->txn, (struct wb_pageid){0}, plan_page, &walk);
    }
    wb_catalog_txn_abort(&c->txn);
    if (err >= 0 && c->plan.count)
        qsort(c->plan.items, c->plan.count, sizeof *c->plan.items, compare_plan);
    return err < 0 ? err : 0;
}

/* The first item of a segment, or of one after it. */
static size_t first_item(const struct wb_compaction *c, uint32_t segment)
{
    size_t low = 0, high = c->plan.count;

    WB_CHECK(segment > 0);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (c->plan.items[middle].place.segment < segment)
            low = middle + 1;
        else
            high = middle;
    }
    WB_CHECK(low <= c->plan.count);
    return low;
}

/*
 * Blocks of a segment that was split get no new slots. Another part may have a block of the same name, and scans
 * merge the two by their slots, so no slot may be in both.
 */
static bool is_part(const struct wb_catalog_segment *row)
{
    WB_CHECK(row->number > 0);
    return row->split || row->origin;
}

bool wb_compact_group_wants(const struct wb_compaction *c, const struct wb_catalog_segment *row)
{
    size_t first = first_item(c, row->number), count = 0;
    uint64_t least = c->repo->store.thrifty ? row->live / WB_STORE_WORTHWHILE + 1 : 1; /* to copy it for them */

    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    if (is_part(row))
        return false;
    while (count < least && first + count < c->plan.count &&
           c->plan.items[first + count].place.segment == row->number)
        count++;
    return count >= least;
}

void wb_compact_group_begin(struct wb_compaction *c)
{
    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    WB_CHECK(c->row.number > 0);
    c->plan_at = is_part(&c->row) ? c->plan.count : first_item(c, c->row.number);
    wb_vec_clear(&c->moves);
    wb_compact_group_clear(c);
}

/* ---- what is added to a block -------------------------------------------------------------------------------- */

static bool was_taken(const struct wb_compaction *c, size_t first, const struct wb_catalog_place *place)
{
    WB_CHECK(first <= c->moves.count);
    WB_CHECK(place->segment > 0);
    for (size_t i = first; i < c->moves.count; i++)
        if (wb_catalog_place_equal(&c->moves.items[i].from, place))
            return true;
    return false;
}

/* Reads a version and adds it to what the block gets. One that cannot be read stays where it is. */
static int add_version(struct wb_compaction *c, const struct wb_history_version *version, uint32_t newest)
{
    struct wb_buf record = WB_BUF_INIT;
    int err = wb_repo_read_record(c->repo, c->view.id, &version->place, &record);

    WB_CHECK(version->ceased != 0);
    WB_CHECK(c->extras.count == c->extra_records.count);
    if (err == WB_E_CORRUPT || err == WB_E_NOTFOUND || err == WB_E_DOWN) {
        wb_buf_release(&record);
        return 0;
    }
    if (err == 0)
        err = wb_vec_reserve(&c->extras, c->extras.count + 1);
    if (err == 0)
        err = wb_vec_reserve(&c->extra_records, c->extra_records.count + 1);
    if (err == 0)
        err = wb_vec_push(&c->moves, (struct wb_compact_move){.id = c->view.id, .from = version->place});
    if (err < 0) {
        wb_buf_release(&record);
        return err;
    }
    c->extra_bytes += record.len;
    c->extra_records.items[c->extra_records.count++] = record;
    c->extras.items[c->extras.count++] = (struct wb_block_page){
        .id = c->view.id, .record = wb_buf_slice(&record), .site = c->view.site, .newest = newest};
    return 0;
}

/* Adds the old versions of one page to what the block gets, the newest first. */
static int add_page(struct wb_compaction *c, const struct wb_compact_plan_item *item,
                    const struct wb_block_index *index)
{
    struct wb_history_rule rule = {.held = c->held.items, .held_count = c->held.count};
    size_t at, first = c->moves.count;
    int err = wb_pageview_load(&c->txn, true, item->id, &c->view);
    const struct wb_history_version *latest = err == 0 ? wb_history_latest(&c->view.history) : NULL;

    WB_CHECK(c->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(item->place.segment == c->row.number);
    /* If the page was replaced since the plan was made, its versions now belong somewhere else. */
    if (!latest || !wb_catalog_place_equal(&latest->place, &item->place) ||
        !wb_block_find_slot(index, item->place.slot, &at))
        return err;
    for (size_t i = c->view.history.versions.count; i > 0 && err == 0; i--) {
        const struct wb_history_version *version = &c->view.history.versions.items[i - 1];
        if (index->head.count + c->extras.count >= WB_BLOCK_PAGES_MAX ||
            index->head.next_slot + c->extras.count >= SLOTS_MAX || c->extra_bytes >= GROUP_BYTES_MAX)
            break;
        if (is_movable(&c->view.history, version, latest, &rule) && !was_taken(c, first, &version->place))
            err = add_version(c, version, (uint32_t)at + 1);
    }
    return err;
}

int wb_compact_group_block(struct wb_compaction *c, const struct wb_block_index *index)
{
    int err = 0;

    WB_CHECK(c->plan_at <= c->plan.count);
    WB_CHECK(c->txn.kind == WB_CATALOG_TXN_HELD);
    wb_compact_group_clear(c);
    while (c->plan_at < c->plan.count && err == 0) {
        const struct wb_compact_plan_item *item = &c->plan.items[c->plan_at];
        if (item->place.segment > c->row.number ||
            (item->place.segment == c->row.number && item->place.logical > index->head.logical))
            break;
        if (item->place.segment == c->row.number && item->place.logical == index->head.logical)
            err = add_page(c, item, index);
        c->plan_at++;
    }
    return err;
}

void wb_compact_group_place(struct wb_compaction *c, uint64_t logical)
{
    size_t first = c->moves.count - c->extras.count;

    WB_CHECK(logical > 0);
    WB_CHECK(c->extras.count <= c->moves.count);
    for (size_t i = 0; i < c->extras.count; i++) {
        struct wb_compact_move *move = &c->moves.items[first + i];
        move->to = (struct wb_catalog_place){c->row.number, c->extras.items[i].slot, logical};
        move->stored_bytes = c->extras.items[i].stored_bytes;
    }
}

void wb_compact_group_forget(struct wb_compaction *c)
{
    WB_CHECK(c->extras.count == c->extra_records.count);
    WB_CHECK(c->extras.count <= c->moves.count);
    c->moves.count -= c->extras.count;
    wb_compact_group_clear(c);
}

void wb_compact_group_clear(struct wb_compaction *c)
{
    for (size_t i = 0; i < c->extra_records.count; i++)
        wb_buf_release(&c->extra_records.items[i]);
    wb_vec_clear(&c->extra_records);
    wb_vec_clear(&c->extras);
    c->extra_bytes = 0;
}

/* ---- new places ------------------------------------------------------------------------------------------------- */

/* Changes the places of the versions of one page: moves[0] to moves[count - 1]. */
static int relocate_page(struct wb_repo_edit *edit, const struct wb_compact_move *moves, size_t count, uint64_t *moved)
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
        err = wb_repo_edit_row_of(edit, &moves[i].to, moves[i].id, &row);
        if (err == 0) {
            row->bytes_dead += moves[i].stored_bytes;
            row->removed++;
        }
    }
    return err < 0 ? err : wb_repo_edit_save(edit, false, false, NULL);
}

/* One transaction. */
static int relocate_some(struct wb_compaction *c, size_t from, size_t to)
{
    struct wb_repo_edit edit = {.repo = c->repo};
    uint64_t moved = 0;
    int err = wb_repo_edit_begin(c->repo, &edit);

    WB_CHECK(from < to);
    WB_CHECK(to <= c->moves.count);
    for (size_t i = from, next; i < to && err == 0; i = next) {
        for (next = i + 1; next < to; next++)
            if (!wb_pageid_equal(c->moves.items[next].id, c->moves.items[i].id))
                break;
        err = relocate_page(&edit, &c->moves.items[i], next - i, &moved);
    }
    if (err == 0)
        err = wb_repo_edit_end(&edit);
    if (err == 0)
        c->result.moved += moved;
    wb_catalog_txn_abort(&edit.txn);
    wb_repo_edit_release(&edit);
    return err;
}

int wb_compact_group_relocate(struct wb_compaction *c)
{
    int err = 0;

    WB_CHECK(c->magic == WB_COMPACTION_MAGIC);
    WB_CHECK(c->txn.kind == WB_CATALOG_TXN_CLOSED);
    for (size_t i = 0, next; i < c->moves.count && err == 0; i = next) {
        next = c->moves.count - i < RELOCATE_AT_ONCE ? c->moves.count : i + RELOCATE_AT_ONCE;
        while (next < c->moves.count && wb_pageid_equal(c->moves.items[next].id, c->moves.items[next - 1].id))
            next++; /* all versions of a page in one transaction */
        err = relocate_some(c, i, next);
    }
    wb_vec_clear(&c->moves);
    return err;
}
