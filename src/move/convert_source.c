/*
 * convert_source.c - the state of a repository that is being copied (convert.h). It is held, as by a scan: other
 * processes may write and compact meanwhile, and every file that the state needs stays. Nothing is changed.
 */
#include "base/check.h"
#include "base/mem.h"
#include "os/path.h"
#include "store/batch/batched.h"
#include "store/inside.h"
#include "move/convert.h"

int wb_convert_source_open(const char *dir, struct wb_convert_source *source)
{
    uint64_t epoch;

    *source = (struct wb_convert_source){.dir = dir};
    int err = wb_superblock_read(dir, &source->superblock);
    if (err < 0)
        return err;
    wb_nodes_init(&source->nodes, dir, &source->superblock);
    err = wb_catalog_open(dir, WB_TREE_READ, &source->catalog);
    if (err == 0)
        err = wb_repo_pin_epoch(source->catalog, 0, &epoch);
    if (err == 0)
        err = wb_catalog_txn_read(source->catalog, &source->txn);
    if (err == 0)
        err = wb_catalog_summary_get(&source->txn, &source->summary);
    if (err == 0)
        err = wb_nodes_refresh(&source->nodes, &source->txn);
    source->files = (struct wb_pagefile){.dir = dir,
                                         .superblock = &source->superblock,
                                         .catalog = source->catalog,
                                         .reader = &source->txn,
                                         .nodes = &source->nodes};
    return err < 0 ? err : wb_pagefile_init(&source->files);
}

void wb_convert_source_close(struct wb_convert_source *source)
{
    wb_pagefile_release(&source->files);
    if (source->txn.catalog)
        wb_catalog_txn_abort(&source->txn);
    wb_catalog_close(source->catalog);
    if (source->nodes.dir)
        wb_nodes_release(&source->nodes);
    wb_buf_release(&source->record);
}

/* Checks the nodes that have any version. */
static int check_nodes(struct wb_convert_source *source)
{
    struct wb_catalog_rows rows = {0};
    struct wb_node *node;
    int err = wb_catalog_rows_read(&source->txn, &rows);

    for (size_t i = 0; i < wb_nodes_count(&source->nodes) && err == 0; i++) {
        uint32_t number = wb_nodes_number(&source->nodes, i);
        bool needed = false;
        for (size_t k = 0; k < rows.count; k++)
            needed = needed || (rows.items[k].node == number && rows.items[k].live);
        err = needed ? wb_nodes_find(&source->nodes, number, &node) : 0;
    }
    wb_catalog_rows_release(&rows);
    return err;
}

int wb_convert_source_check(const char *dir)
{
    struct wb_convert_source source;
    int err = wb_convert_source_open(dir, &source);

    if (err == 0)
        err = check_nodes(&source);
    char *update = err == 0 && source.superblock.design.batch ? wb_path_join(dir, WB_BATCHED_UPDATE_DIR) : NULL;
    bool batch = source.superblock.design.batch;
    wb_convert_source_close(&source);
    if (err < 0 || !batch)
        return err;
    err = update ? wb_convert_source_open(update, &source) : WB_E_NOMEM;
    if (err == 0)
        err = check_nodes(&source);
    if (update)
        wb_convert_source_close(&source);
    wb_free(update);
    return err;
}
