/*
 * mover_rewrite.c - how the mover replaces files that are rewritten in one transaction of the catalog, for which
 * other writers wait; readers do not. What is damaged always comes along.
 */
#include "base/check.h"
#include "move/mover.h"

static bool needs_work(const struct wb_mover *mover, const struct wb_catalog_segment *row)
{
    return mover->repo->files.kind->needs_work(&mover->repo->files, row);
}

/* What was found, or the error that kept it from being remembered. */
struct rewrite_findings {
    struct wb_mover *mover;
    int err;
};

static void add_finding(void *context, const struct wb_store_finding *finding)
{
    struct rewrite_findings *f = context;

    if (f->err == 0)
        f->err = wb_mover_find(f->mover, finding);
}

static int rewrite_file(struct wb_mover *mover, const struct wb_catalog_segment *row, const struct wb_bin *bins,
                        size_t count, enum wb_move_damage damage)
{
    struct wb_pagefile *files = &mover->repo->files;
    struct rewrite_findings findings = {.mover = mover};
    struct wb_pagefile_change change;
    struct wb_catalog_segment before = {0};
    int err = wb_pagefile_change_begin(files, &change);

    (void)damage;
    wb_vec_clear(&mover->findings);
    if (err == 0 && row->number < change.edit.row_count)
        before = change.edit.rows[row->number];
    if (err == 0)
        err = files->kind->rewrite(&change.edit, row, bins, count);
    err = wb_pagefile_change_end(&change, err);
    if (err == 0) {
        const struct wb_catalog_segment *after = &change.edit.rows[row->number];
        mover->counts.files++;
        mover->counts.pages += after->pages;
        mover->counts.bytes_before += files->kind->used_bytes(&before);
        mover->counts.bytes_after += files->kind->used_bytes(after);
        files->kind->edit_tell(&change.edit, add_finding, &findings);
    }
    wb_pagefile_change_release(&change);
    return err < 0 ? err : findings.err;
}

const struct wb_move_ops wb_move_rewritten = {false, needs_work, rewrite_file};
