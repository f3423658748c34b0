/*
 * mover_buckets.c - how the mover replaces a bucket file: in one transaction of the catalog, for which other writers
 * wait; readers do not. What is damaged always comes along (hash_lost.c).
 */
#include "base/check.h"
#include "move/mover.h"
#include "pagefile/hash_store.h"

/* Whether there is something to free in a file, or it has far more or far fewer buckets than it needs. */
static bool needs_work(const struct wb_mover *mover, const struct wb_catalog_segment *row)
{
    uint64_t ideal = wb_hash_buckets_for(row->map_at), dead = row->pages - row->live;
    bool much = mover->repo->store.thrifty
                    ? row->bytes_dead > row->bytes / WB_STORE_WORTHWHILE || dead > row->pages / WB_STORE_WORTHWHILE
                    : row->bytes_dead || dead;

    WB_CHECK(row->live <= row->pages);
    return much || row->removed || row->unwritten || row->map_count > 2 * ideal || row->map_count * 2 < ideal;
}

/* What was found, or the error that kept it from being remembered. */
struct bucket_findings {
    struct wb_mover *mover;
    int err;
};

static void add_finding(void *context, const struct wb_store_finding *finding)
{
    struct bucket_findings *f = context;

    if (f->err == 0)
        f->err = wb_mover_find(f->mover, finding);
}

static int replace_buckets(struct wb_mover *mover, const struct wb_catalog_segment *row, const struct wb_bin *bins,
                           size_t count, enum wb_move_damage damage)
{
    struct bucket_findings findings = {.mover = mover};
    struct wb_hash_replaced replaced;

    (void)damage;
    wb_vec_clear(&mover->findings);
    int err = wb_hash_replace(mover->repo, row, bins, count, add_finding, &findings, &replaced);
    if (err < 0)
        return err;
    mover->counts.files++;
    mover->counts.pages += replaced.pages;
    mover->counts.bytes_before += replaced.bytes_before;
    mover->counts.bytes_after += replaced.bytes_after;
    return findings.err;
}

const struct wb_move_ops wb_move_buckets = {false, needs_work, replace_buckets, wb_bucket_name};
