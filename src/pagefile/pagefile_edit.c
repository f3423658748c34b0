/*
 * pagefile_edit.c - the rows of files in a transaction of the catalog: read when they are needed, written once.
 */
#include "base/check.h"
#include "base/mem.h"
#include "pagefile/pagefile_files.h"

int wb_pagefile_edit_begin(struct wb_pagefile *files, struct wb_catalog_txn *txn, struct wb_catalog_summary *summary,
                           struct wb_pagefile_edit *edit)
{
    WB_CHECK(files->magic == WB_PAGEFILE_MAGIC);
    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(!edit->rows);
    edit->files = files;
    edit->txn = txn;
    edit->summary = summary;
    edit->row_count = (size_t)summary->next_segment + files->kind->new_files;
    edit->rows = wb_alloc_zero(edit->row_count, sizeof *edit->rows);
    edit->dirty = wb_alloc_zero(edit->row_count, sizeof *edit->dirty);
    if (!edit->rows || !edit->dirty)
        return WB_E_NOMEM;
    return files->kind->edit_begin ? files->kind->edit_begin(edit) : 0;
}

int wb_pagefile_edit_write(struct wb_pagefile_edit *edit)
{
    const struct wb_pagefile_kind *kind = edit->files->kind;

    WB_CHECK(edit->txn->kind == WB_CATALOG_TXN_WRITING);
    int err = kind->edit_write ? kind->edit_write(edit) : 0;
    for (size_t i = 0; i < edit->row_count && err == 0; i++)
        if (edit->dirty[i])
            err = wb_catalog_segment_put(edit->txn, &edit->rows[i]);
    return err;
}

void wb_pagefile_edit_done(struct wb_pagefile_edit *edit, int err)
{
    if (edit->files && edit->files->kind->edit_done)
        edit->files->kind->edit_done(edit, err);
}

void wb_pagefile_edit_release(struct wb_pagefile_edit *edit)
{
    if (edit->files && edit->files->kind->edit_release)
        edit->files->kind->edit_release(edit);
    wb_free(edit->rows);
    wb_free(edit->dirty);
    edit->rows = NULL;
    edit->dirty = NULL;
}

int wb_pagefile_edit_row(struct wb_pagefile_edit *edit, uint32_t number, struct wb_catalog_segment **row_out)
{
    const struct wb_catalog *catalog = edit->files->catalog;

    WB_CHECK(edit->rows != NULL);
    WB_CHECK(edit->txn->kind == WB_CATALOG_TXN_WRITING);
    *row_out = NULL;
    if (number == 0 || number >= edit->row_count)
        return wb_catalog_corrupt(catalog, WB_CATALOG_SEGMENTS, "a segment number that was never given");
    if (edit->rows[number].number == 0) {
        int err = wb_catalog_segment_get(edit->txn, number, &edit->rows[number]);
        if (err < 0)
            return err == WB_E_NOTFOUND ? wb_catalog_corrupt(catalog, WB_CATALOG_SEGMENTS, "a segment without a row")
                                        : err;
    }
    WB_CHECK(edit->rows[number].number == number);
    edit->dirty[number] = true;
    *row_out = &edit->rows[number];
    return 0;
}

int wb_pagefile_edit_row_of(struct wb_pagefile_edit *edit, const struct wb_catalog_place *place, struct wb_pageid id,
                            struct wb_catalog_segment **row_out)
{
    uint32_t number = place->segment;
    struct wb_catalog_segment found;

    WB_CHECK(edit->txn->kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(place->segment > 0);
    *row_out = NULL;
    if (number < edit->row_count && edit->rows[number].number == 0) {
        int err = wb_catalog_segment_get(edit->txn, number, &edit->rows[number]);
        if (err < 0 && err != WB_E_NOTFOUND)
            return err;
        edit->rows[number].number = err == 0 ? number : 0;
    }
    bool here =
        number < edit->row_count && edit->rows[number].number && wb_catalog_range_has(&edit->rows[number].range, id);
    if (!here) {
        int err = wb_parts_row_of(edit->txn, &edit->files->parts, number, id, &found);
        if (err < 0)
            return err;
        number = found.number;
    }
    return wb_pagefile_edit_row(edit, number, row_out);
}

/* ---- transactions that change only files ---------------------------------------------------------------------- */

int wb_pagefile_change_begin(struct wb_pagefile *files, struct wb_pagefile_change *change)
{
    *change = (struct wb_pagefile_change){0};
    WB_CHECK(files->writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    int err = wb_catalog_txn_write(files->catalog, &change->txn);
    if (err == 0)
        err = wb_catalog_summary_get(&change->txn, &change->summary);
    return err < 0 ? err : wb_pagefile_edit_begin(files, &change->txn, &change->summary, &change->edit);
}

int wb_pagefile_change_end(struct wb_pagefile_change *change, int err)
{
    if (err == 0)
        err = wb_pagefile_edit_write(&change->edit);
    change->summary.commit++;
    if (err == 0)
        err = wb_catalog_summary_put(&change->txn, &change->summary);
    if (err == 0)
        err = wb_catalog_txn_commit(&change->txn);
    wb_pagefile_edit_done(&change->edit, err);
    if (err == 0)
        change->edit.files->writer->commit = change->summary.commit;
    wb_catalog_txn_abort(&change->txn);
    return err;
}

void wb_pagefile_change_release(struct wb_pagefile_change *change)
{
    WB_CHECK(change->txn.kind == WB_CATALOG_TXN_CLOSED);
    wb_pagefile_edit_release(&change->edit);
}
