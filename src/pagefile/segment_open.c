/*
 * segment_open.c - reads single records from segments. A handle keeps some files open.
 *
 * A segment is opened while the catalog's state is still visible, so that a compaction cannot delete the file in
 * between.
 */
#include "base/check.h"
#include "base/kept.h"
#include "pagefile/pagefile_files.h"
#include "pagefile/segment_tail.h"

enum { MISSES = 16 }; /* so many files are opened between two looks at those that are open */

/*
 * Closes files that the catalog does not name any more, and forgets what was read from them: nobody will ask for that
 * again. Otherwise a handle that lives long would keep deleted files on disk, and their blocks in memory.
 */
static int close_replaced(struct wb_pagefile *files)
{
    struct wb_catalog_segment row;
    int err = 0;

    WB_CHECK(files->reader->kind >= WB_CATALOG_TXN_AWAKE);
    for (size_t i = 0; i < WB_PAGEFILE_OPEN_MAX && err == 0; i++) {
        struct wb_segment *file = &files->open[i];
        if (!file->file.node)
            continue;
        err = wb_catalog_segment_get(files->reader, file->number, &row);
        if (err == WB_E_NOTFOUND || (err == 0 && row.revision != file->revision)) {
            wb_block_cache_forget(&files->source.cache, file->number, err == 0 ? row.revision : UINT32_MAX);
            wb_segment_close(file);
            err = 0;
        }
    }
    return err;
}

/* A place for one more open file. If the process keeps too much, half of them are closed first. */
static struct wb_segment *make_place(struct wb_pagefile *files)
{
    bool pressed = wb_kept_pressed(&files->pressed);

    for (size_t i = 0; i < WB_PAGEFILE_OPEN_MAX / 2 && pressed; i++)
        wb_segment_close(&files->open[(files->open_next + i) % WB_PAGEFILE_OPEN_MAX]);
    struct wb_segment *file = &files->open[files->open_next];
    files->open_next = (files->open_next + 1) % WB_PAGEFILE_OPEN_MAX;
    wb_segment_close(file);
    return file;
}

/* Returns an open file of the segment, from the cache if it is there. */
static int cached_segment(struct wb_pagefile *files, const struct wb_catalog_segment *row,
                          struct wb_segment **segment_out)
{
    WB_CHECK(files->magic == WB_PAGEFILE_MAGIC);
    WB_CHECK(files->reader->kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(files->open_next < WB_PAGEFILE_OPEN_MAX);
    WB_CHECK(row->number > 0);
    bool replaced = false;
    *segment_out = NULL;
    for (size_t i = 0; i < WB_PAGEFILE_OPEN_MAX; i++) {
        struct wb_segment *file = &files->open[i];
        bool same = file->file.node && file->number == row->number;
        if (same && file->revision == row->revision) {
            *segment_out = file;
            return 0;
        }
        replaced = replaced || same;
    }
    int err = replaced || ++files->open_misses % MISSES == 0 ? close_replaced(files) : 0;
    if (err < 0)
        return err;
    struct wb_segment *file = make_place(files);
    struct wb_node *node;
    err = wb_nodes_find(files->nodes, row->node, &node);
    if (err == 0)
        err = wb_segment_open(node, files->superblock->id, row, false, file);
    if (err == 0)
        *segment_out = file;
    return err;
}

/* The open file of a place. It is good until the next call. */
static int segment_of(struct wb_pagefile *files, uint32_t origin, struct wb_pageid id, struct wb_segment **segment_out)
{
    WB_CHECK(origin > 0);
    struct wb_catalog_segment row;
    int err = wb_parts_row_of(files->reader, &files->parts, origin, id, &row);

    WB_CHECK(files->reader->kind >= WB_CATALOG_TXN_AWAKE);
    if (err < 0)
        return err;
    if (files->busy)
        wb_busy_get(files->busy, row.node);
    return cached_segment(files, &row, segment_out);
}

int wb_segment_read_place(struct wb_pagefile *files, struct wb_pageid id, const struct wb_catalog_place *place,
                          struct wb_buf *record_out)
{
    struct wb_segment *segment;
    int err = segment_of(files, place->segment, id, &segment);

    WB_CHECK(err < 0 || segment->origin == place->segment);
    return err < 0 ? err : wb_segment_read_record(segment, &files->source, place, id, record_out);
}
