/*
 * hash_settle.c - moves pages to where the table of nodes says, in the organisation hash (rebalance.h). A bucket
 * file whose ids belong to several nodes is divided, and one whose ids all belong to another node is written there.
 * Both happen in one transaction of the catalog, for which other writers wait; readers do not.
 */
#include "base/check.h"
#include "base/error.h"
#include "pagefile/hash_store.h"
#include "move/rebalance.h"

/* The child that stays on the node comes first: it keeps the number of the file. */
static void put_own_first(struct wb_split_child *children, size_t count, uint32_t node)
{
    for (size_t i = 1; i < count; i++)
        if (children[i].node == node && children[0].node != node) {
            struct wb_split_child other = children[0];
            children[0] = children[i];
            children[i] = other;
        }
}

/* Buckets that could not be read: what is left of them was moved, and somebody should be told. */
static void note_damages(const struct wb_hash_edit *hash, struct wb_settling *settling)
{
    WB_CHECK(settling->repo != NULL);
    for (size_t i = 0; i < hash->damages.count; i++) {
        const struct wb_hash_damage *damage = &hash->damages.items[i];
        if (damage->lost == 0) /* nobody needs it */
            continue;
        (void)wb_fail(WB_E_CORRUPT, "%s", damage->why);
        wb_settling_damage(settling);
        settling->carried++;
    }
}

int wb_hash_settle_file(struct wb_repo *repo, const struct wb_catalog_segment *row,
                        const struct wb_split_child *children, size_t count, struct wb_settling *settling)
{
    struct wb_repo_edit edit = {.repo = repo};
    bool found = false;
    int err = wb_repo_edit_begin(repo, &edit);

    WB_CHECK(row->number > 0);
    for (size_t i = 0; err == 0 && i < edit.hash->targets.count && !found; i++) {
        struct wb_hash_target *target = &edit.hash->targets.items[i];
        const struct wb_catalog_segment *now = &edit.rows[target->number];
        found = target->number == row->number && now->node == row->node && now->range.prefix == row->range.prefix &&
                now->range.bits == row->range.bits;
        if (found)
            err = wb_hash_divide(&edit, target, children, count);
    }
    if (err == 0)
        err = wb_repo_edit_end(&edit);
    else
        wb_hash_edit_done(&edit, err);
    if (err == 0)
        repo->writer->commit = edit.summary.commit;
    if (err == 0 && settling)
        note_damages(edit.hash, settling);
    wb_catalog_txn_abort(&edit.txn);
    wb_repo_edit_release(&edit);
    wb_repo_decide(repo);
    return err;
}

int wb_hash_settle_files(struct wb_settling *s)
{
    struct wb_split_child children[WB_SPLIT_CHILDREN_MAX];
    struct wb_repo_overview o = {0};
    int err = wb_repo_overview(s->repo, &o);

    WB_CHECK(s->repo->hash != NULL);
    for (size_t i = 0; i < o.rows.count; i++)
        s->total += o.rows.items[i].bytes;
    for (size_t i = 0; i < o.rows.count && err == 0; i++) {
        const struct wb_catalog_segment *row = &o.rows.items[i];
        size_t count = wb_settle_plan(&s->repo->nodes, row, children);
        if (count == 1 && children[0].node == row->node)
            continue;
        put_own_first(children, count, row->node);
        err = wb_hash_settle_file(s->repo, row, children, count, s);
        if (err == WB_E_CORRUPT) {
            wb_settling_damage(s);
            s->stuck++;
            err = 0;
            continue;
        }
        s->moved += err == 0;
        s->done += row->bytes;
        if (err == 0)
            err = wb_repo_purge(s->repo); /* so that a full disk gets room */
        if (err == 0)
            err = wb_settling_report(s);
    }
    s->repo->hash->replaced = false;
    wb_catalog_rows_release(&o.rows);
    return err;
}
