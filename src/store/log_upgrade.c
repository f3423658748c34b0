/*
 * log_upgrade.c - makes a repository of format 2 one of format 3, when a writer opens it.
 *
 * Format 2 had one snapshot at a time, whose replaced versions were in table old; no command could
 * read them. They die here; entries and segment rows stay as they are, because both forms are
 * understood, and are written anew whenever they change. The superblock goes first: from then on a
 * program that knows only format 2 refuses the repository, whatever happens to us in between.
 * Blocks of the older format are rewritten by compaction.
 */
#include "base/check.h"
#include "store/log.h"

/* A version that only the old snapshot had. */
static int bury_old(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    struct wb_log_edit *edit = context;
    struct wb_catalog_segment *row;
    int err = wb_log_edit_row(edit, entry->place.segment, &row);

    (void)id;
    if (err < 0)
        return err;
    if (row->live == 0)
        return wb_catalog_corrupt(edit->log->catalog, WB_CATALOG_SEGMENTS, "a segment with fewer pages than entries");
    row->live--;
    row->bytes_dead += entry->stored_bytes;
    return 0;
}

static int upgrade_catalog(struct wb_log_edit *edit)
{
    int err = wb_log_edit_begin(edit->log, edit);

    if (err == 0 && edit->summary.old_format) { /* otherwise another process was faster */
        err = wb_catalog_entry_each(&edit->txn, WB_CATALOG_OLD, bury_old, edit);
        if (err == 0)
            err = wb_catalog_clear(&edit->txn, WB_CATALOG_OLD);
        if (err == 0)
            err = wb_catalog_revisit_upgrade(&edit->txn);
        if (err == 0)
            err = wb_log_edit_end(edit);
    }
    wb_catalog_txn_abort(&edit->txn);
    return err;
}

struct format_check {
    struct wb_log *log;
    struct wb_catalog_summary summary;
};

static int check_format(void *context)
{
    struct format_check *c = context;

    return wb_catalog_summary_get(&c->log->reader, &c->summary);
}

int wb_log_upgrade(struct wb_log *log)
{
    struct format_check check = {.log = log};
    struct wb_log_edit edit = {.log = log};
    int err = wb_log_read(log, check_format, &check);

    WB_CHECK(log->store.mode == WB_STORE_WRITE);
    if (err == 0 && log->superblock.format < WB_SUPERBLOCK_FORMAT) {
        log->superblock.format = WB_SUPERBLOCK_FORMAT;
        err = wb_superblock_write(log->dir, &log->superblock);
    }
    if (err == 0 && check.summary.old_format) {
        err = upgrade_catalog(&edit);
        wb_log_edit_release(&edit);
    }
    return err;
}
