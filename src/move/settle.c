/*
 * settle.c - moves files to where the table of nodes says. A file whose ids all belong to one node is moved as a whole;
 * otherwise it is divided. What the table says is compared with the rows of the files, so it does not matter what an
 * earlier attempt had done.
 *
 * A segment that a writer appends to is left for the next round: writers let go of it with their next commit, when they
 * see that the table has changed.
 */
#include "base/check.h"
#include "move/mover.h"
#include "move/rebalance.h"
#include "os/clock.h"

#include <time.h>

enum {
    WAIT_MS = 20,             /* between two rounds, if something is locked */
    PATIENCE_MS = 300 * 1000, /* after so long without any progress, we give up; the command can be repeated */
};

/* ---- where a file belongs ------------------------------------------------------------------------------ */

/* The bin that stays on the node keeps the number of the file. */
static void put_own_first(struct wb_bin *bins, size_t count, uint32_t node)
{
    for (size_t i = 1; i < count; i++)
        if (bins[i].node == node && bins[0].node != node) {
            struct wb_bin other = bins[0];
            bins[0] = bins[i];
            bins[i] = other;
        }
}

/* Uniform distribution: the node that takes what is moved away from another one. */
static uint32_t choose_home(const struct wb_nodes *nodes, const struct wb_catalog_segment *row)
{
    uint32_t best = row->node;
    size_t count = nodes->items.count, first = row->number;

    WB_CHECK(row->number > 0);
    for (size_t i = 0; i < count; i++)
        if (nodes->items.items[i].row.number == row->node && !nodes->items.items[i].row.leaving)
            return row->node;
    for (size_t i = 0; i < count; i++) { /* one after the other, by the number of the segment */
        const struct wb_known_node *node = &nodes->items.items[(first + i) % count];
        if (!node->row.leaving && !node->down && !node->full)
            return node->row.number;
        if (!node->row.leaving)
            best = node->row.number;
    }
    return best;
}

size_t wb_settle_plan(const struct wb_nodes *nodes, const struct wb_catalog_segment *row,
                      struct wb_bin bins[WB_BINS_MAX])
{
    size_t count = 0;

    bins[0] = (struct wb_bin){row->node, row->range};
    if (nodes->items.count == 0)
        return 1;
    if (nodes->distribution == WB_DISTRIBUTION_UNIFORM) {
        bins[0].node = choose_home(nodes, row);
        return 1;
    }
    for (size_t i = 0; i < nodes->items.count; i++) {
        const struct wb_catalog_node *node = &nodes->items.items[i].row;
        struct wb_catalog_range range = row->range;
        if (!wb_catalog_range_keep(&range, &node->cells))
            continue;
        if (count == WB_BINS_MAX) /* the table is wrong: no repository has so many nodes */
            return 1;
        bins[count++] = (struct wb_bin){node->number, range};
    }
    if (count == 0) /* the table is wrong, too. What is stored stays where it is. */
        return 1;
    put_own_first(bins, count, row->node);
    return count;
}

/* ---- one round ------------------------------------------------------------------------------------------------ */

/* A settling, and what its last round did. */
struct settling {
    struct wb_mover mover;
    uint64_t moved, busy; /* files that were moved, or could not be, because another process has locked them */
    struct wb_settled result;
};

/* Whether a node is being removed. */
static bool is_leaving(const struct wb_nodes *nodes, uint32_t number)
{
    for (size_t i = 0; i < nodes->items.count; i++)
        if (nodes->items.items[i].row.number == number)
            return nodes->items.items[i].row.leaving;
    return false;
}

/* Remembers the first damage; the current error says what it is. */
static void note_damage(struct settling *s)
{
    if (s->result.damage.code == 0)
        wb_error_save(WB_E_CORRUPT, &s->result.damage);
}

/* A file was moved: counts what went along although it is damaged. Of a file that consists of blocks, all of it is one.
 */
static void note_carried(struct settling *s)
{
    uint64_t carried = 0;

    for (size_t i = 0; i < s->mover.findings.count; i++) {
        const struct wb_move_finding *finding = &s->mover.findings.items[i];
        if (!finding->problem) /* nobody needs it */
            continue;
        (void)wb_fail(WB_E_CORRUPT, "%s at %llu: %s", finding->file, (unsigned long long)finding->at, finding->message);
        note_damage(s);
        carried++;
    }
    s->result.carried += s->mover.ops->blocks && carried ? 1 : carried;
}

/* Moves or divides a file. Damage keeps it where it is, unless that node is leaving. */
static int settle_file(struct settling *s, const struct wb_catalog_segment *row, const struct wb_bin *bins,
                       size_t count)
{
    struct wb_mover *mover = &s->mover;
    bool leaving = is_leaving(&mover->repo->nodes, row->node);
    const struct wb_bin whole = {bins[0].node, row->range};
    uint64_t before = mover->done;
    int err = wb_move_replace(mover, row, bins, count, leaving && count == 1 ? WB_MOVE_CARRY : WB_MOVE_REFUSE);

    if (err == WB_E_CORRUPT && count > 1 && leaving)
        err = wb_move_replace(mover, row, &whole, 1, WB_MOVE_CARRY);
    mover->done = before + row->bytes;
    if (err == WB_E_BUSY || err == WB_E_CORRUPT) {
        mover->done = before;
        s->busy += err == WB_E_BUSY;
        s->result.stuck += err == WB_E_CORRUPT;
        if (err == WB_E_CORRUPT)
            note_damage(s);
        return 0;
    }
    if (err < 0)
        return err == WB_E_NOTFOUND ? 0 : err;
    note_carried(s);
    s->moved++;
    return wb_pagefile_purge(&mover->repo->files); /* so that a full disk gets room */
}

/* Moves everything that is not where the table of nodes says, or that is on a node that is leaving. */
static int settle_round(struct settling *s)
{
    struct wb_bin bins[WB_BINS_MAX];
    struct wb_mover *mover = &s->mover;
    struct wb_overview o = {0};
    uint64_t left = 0;
    int err = wb_pagefile_overview(&mover->repo->files, &o);

    s->moved = s->busy = s->result.stuck = 0;
    for (int pass = 0; pass < 2 && err == 0; pass++) {
        for (size_t i = 0; i < o.rows.count && err == 0; i++) {
            const struct wb_catalog_segment *row = &o.rows.items[i];
            size_t count = wb_settle_plan(&mover->repo->nodes, row, bins);
            if (count == 1 && bins[0].node == row->node)
                continue;
            if (pass == 0) {
                left += row->bytes;
                continue;
            }
            err = settle_file(s, row, bins, count);
            if (err == 0)
                err = wb_mover_report(mover);
        }
        if (pass == 0)
            mover->total = mover->done + left;
    }
    wb_catalog_rows_release(&o.rows);
    return err;
}

int wb_settle(struct wb_repo *repo, wb_store_progress progress, void *context, struct wb_settled *settled_out)
{
    struct settling s = {0};
    int64_t since = wb_clock_now_ms();
    int err =
        wb_mover_init(&s.mover, repo, progress, context, "the pages were not all moved: repeat the command to go on");

    while (err == 0) {
        err = settle_round(&s);
        if (err < 0 || (s.moved == 0 && s.busy == 0))
            break;
        if (s.moved)
            since = wb_clock_now_ms();
        else
            nanosleep(&(struct timespec){.tv_nsec = WAIT_MS * 1000000L}, NULL); /* waits for other processes */
        err = wb_mover_report(&s.mover);
        if (err == 0 && wb_clock_now_ms() - since > PATIENCE_MS)
            err = wb_fail(WB_E_BUSY,
                          "%s: another process has not let go of its pages for %d minutes: repeat the "
                          "command to go on",
                          repo->dir, PATIENCE_MS / 60000);
    }
    *settled_out = s.result;
    wb_mover_release(&s.mover);
    return err;
}
