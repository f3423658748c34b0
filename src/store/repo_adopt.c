/*
 * repo_adopt.c - brings records and pages of another repository into a log as they are (repo_adopt.h).
 */
#include "store/repo_adopt.h"
#include "base/check.h"

int wb_repo_copy_add(struct wb_repo *repo, const struct wb_repo_copy *copy)
{
    struct wb_repo_writer *writer = repo->writer;
    struct wb_op op = {.kind = WB_OP_COPY, .id = copy->id};
    int err = wb_pagefile_check_usable(&writer->files);

    WB_CHECK(copy->record->len > WB_RECORD_DIGEST_BYTES);
    WB_CHECK(copy->body_bytes <= copy->record->len);
    if (err == 0)
        err = wb_repo_site_index(writer, copy->site, &op.site);
    op.entry.body_bytes = (uint32_t)copy->body_bytes;
    op.put = (uint32_t)writer->files.puts.count + 1;
    if (err == 0)
        err = wb_op_add(repo, &op);
    return err < 0 ? err : wb_repo_store_record(repo, &op, copy->record);
}

/*
 * Scans take all pages of a segment to be as their records say if no row says otherwise, and those of a block to have
 * arrived together (disk_scan.c). Copies of several epochs are in one block.
 */
static int is_plain_beside(struct wb_repo_edit *edit, const struct wb_history_version *latest, bool *plain_out)
{
    struct wb_catalog_segment *row;
    int err = wb_pagefile_edit_row_of(&edit->files, &latest->place, edit->view.id, &row);

    WB_CHECK(latest->ceased == 0);
    WB_CHECK(latest->arrived > 0);
    *plain_out =
        err == 0 && (row->live == 0 || (row->epoch_min == latest->arrived && row->epoch_max == latest->arrived));
    return err;
}

int wb_repo_adopt(struct wb_repo_edit *edit, bool as_stored)
{
    const struct wb_history_version *latest = wb_history_latest(&edit->view.history);
    bool plain = true;

    WB_CHECK(edit->txn.kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(edit->view.history.versions.count > 0);
    edit->view.had_entry = edit->view.had_rows = false;
    edit->as_is = true;
    wb_vec_clear(&edit->before);
    int err = latest && as_stored ? is_plain_beside(edit, latest, &plain) : 0;
    return err < 0 ? err : wb_repo_edit_save(edit, !as_stored || !plain, false, NULL);
}
