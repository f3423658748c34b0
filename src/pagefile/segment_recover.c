/*
 * segment_recover.c - removes what a crash left of segments, when a writer opens a repository:
 *
 *   bytes after the committed end of a segment   cut off, here or when the segment is used again
 *   a segment file without a row                 removed
 */
#include "base/check.h"
#include "pagefile/segment_tail.h"

/* Cuts off everything after the committed bytes, unless it is the seal of a clean end. */
static int cut_tail(struct wb_pagefile *files, const struct wb_catalog_segment *seen)
{
    WB_CHECK(files->magic == WB_PAGEFILE_MAGIC);

    struct wb_segment segment;
    struct wb_catalog_segment row;
    uint64_t size, sealed_at;
    int err = wb_segment_claim(files, seen, &segment, &row);

    WB_CHECK(!seen->sealed);
    if (err < 0) /* if somebody is writing to it, leave it alone; if it is damaged, verify and get report that */
        return (err == WB_E_NOMEM || err == WB_E_IO) && !wb_nodes_failed(files->nodes, err) ? err : 0;
    err = wb_node_file_size(&segment.file, &size);
    if (err == 0 && size > row.bytes) {
        bool sealed =
            size == row.bytes + WB_SEGMENT_SEAL_BYTES && wb_segment_read_seal(&segment, row.bytes, &sealed_at);
        if (!sealed)
            err = wb_node_file_truncate(&segment.file, row.bytes);
    }
    wb_segment_close(&segment);
    return wb_nodes_failed(files->nodes, err) ? 0 : err;
}

/* A node whose files a writer looks through. */
struct orphan_walk {
    struct wb_pagefile *files;
    uint32_t number;
    struct wb_node *node;
};

/* A segment file that the catalog does not know was created by a process that died before it could add the row. */
static int remove_orphan(void *context, const struct wb_node_entry *entry)
{
    const struct orphan_walk *walk = context;
    struct wb_pagefile_file f = {.files = walk->files, .node = walk->number};
    struct wb_node_file file = WB_NODE_FILE_INIT;
    int err;

    WB_CHECK(f.files->magic == WB_PAGEFILE_MAGIC);
    if (!wb_segment_name_parse(entry->name + sizeof WB_SEGMENT_DIR, &f.number, &f.revision))
        return 0;
    err = wb_pagefile_look_up(&f);
    if (err < 0 || f.known)
        return err;
    err = wb_node_file_open(walk->node, entry->name, false, &file);
    if (err == 0 && wb_node_file_claim(&file) == 0) {
        /* Its creator may have added the row since we looked. Now that we have the claim, the answer is final. */
        err = wb_pagefile_look_up(&f);
        if (err == 0 && !f.known)
            err = wb_node_file_remove(&file);
    }
    wb_node_file_close(&file);
    return err == WB_E_NOTFOUND ? 0 : err;
}

/* Removes the orphans of a node. One that is out of reach is looked through when it is back. */
static int remove_orphans(struct wb_pagefile *files, uint32_t number)
{
    WB_CHECK(number > 0);
    struct orphan_walk walk = {.files = files, .number = number};
    int err = wb_nodes_find_to_write(files->nodes, number, &walk.node);

    if (err == 0) {
        wb_node_hold(walk.node); /* reading the catalog may refresh the table of nodes */
        err = wb_node_each_file(walk.node, remove_orphan, &walk);
        wb_node_close(walk.node);
    }
    return wb_nodes_failed(files->nodes, err) ? 0 : err;
}

int wb_segment_recover(struct wb_pagefile *files, uint32_t node)
{
    struct wb_overview o = {0};
    int err = wb_pagefile_overview(files, &o);

    WB_CHECK(files->write && !files->writer);
    for (size_t i = 0; i < o.rows.count && err == 0; i++)
        if (!o.rows.items[i].sealed && o.rows.items[i].node == node)
            err = cut_tail(files, &o.rows.items[i]);
    wb_catalog_rows_release(&o.rows);
    return err < 0 ? err : remove_orphans(files, node);
}
