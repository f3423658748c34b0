/*
 * log_block.c - puts whole blocks (log_block.h). Nothing is decompressed: the block goes behind the others of its bin
 * as it is, except for the place and the commit in its header, and the pages become ops that are appended already. The
 * commit decides about them as about all others.
 */
#include "store/log/log_block.h"
#include "base/check.h"

enum { WRITE_BACK_BYTES = 4 << 20 };

/* The bin of all pages: 1, 0 if they have several, or an error. */
static int common_bin(struct wb_log *log, const struct wb_log_block_page *pages, size_t count, struct wb_log_bin *bin)
{
    int err = wb_log_bin_of(log, pages[0].id, bin);

    WB_CHECK(count > 0);
    WB_CHECK(log->superblock.design.read.organisation != WB_ORGANISATION_HASH);
    if (err < 0)
        return err;
    for (size_t i = 0; i < count; i++)
        if (!wb_catalog_range_has(&bin->range, pages[i].id))
            return 0;
    return 1;
}

static int add_op(struct wb_log *log, const struct wb_log_block_page *page, const struct wb_log_tail *tail)
{
    struct wb_log_op op = {.kind = WB_LOG_OP_PUT,
                           .id = page->id,
                           .time_ms = page->entry.time_ms,
                           .content = page->entry.content,
                           .entry = page->entry,
                           .has_lifetime = true,
                           .appended = true,
                           .differs = page->differs};
    int err = wb_log_site_index(log->writer, page->site, &op.site);

    WB_CHECK(page->entry.content != 0);
    WB_CHECK(page->site.len > 0);
    op.entry.place = (struct wb_catalog_place){tail->segment.number, page->slot, tail->bytes};
    memcpy(op.sha1, page->sha1, sizeof op.sha1);
    return err < 0 ? err : wb_log_op_add(log, &op);
}

int wb_log_expect_pages(struct wb_log *log, size_t count)
{
    struct wb_log_writer *writer = log->writer;
    int err = wb_vec_reserve(&writer->ops, writer->ops.count + count);

    WB_CHECK(writer->magic == WB_LOG_WRITER_MAGIC);
    return err < 0 ? err : wb_map_reserve(&writer->page_index, writer->ops.count + count);
}

/* Brings the places of pages in the index, which are all over it, into the processor's cache. */
static void foresee(const struct wb_log_writer *writer, const struct wb_log_block_page *pages, size_t count)
{
    const struct wb_map *map = &writer->page_index.map;

    WB_CHECK(writer->magic == WB_LOG_WRITER_MAGIC);
    for (size_t i = 0; i < count && map->cap; i++)
        __builtin_prefetch(writer->page_index.entry + wb_map_place(pages[i].id.lo, map->seed, map->cap));
}

/* The disk begins to write now and then, so that less is left for the sync before the commit. */
static void begin_writing_back(struct wb_log_tail *tail)
{
    bool given = tail->bytes_given > tail->bytes_committed && tail->bytes_given <= tail->bytes; /* not rolled back */
    uint64_t from = given ? tail->bytes_given : tail->bytes_committed;

    WB_CHECK(tail->bytes >= from);
    if (tail->bytes - from < WRITE_BACK_BYTES)
        return;
    wb_node_file_hint(&tail->segment.file, WB_NODE_WRITE_BACK, from, tail->bytes - from);
    tail->bytes_given = tail->bytes;
}

int wb_log_put_block(struct wb_log *log, struct wb_buf *block, const struct wb_log_block_page *pages, size_t count)
{
    struct wb_log_tail *tail;
    struct wb_log_bin bin;
    int err = wb_log_check_usable(log->writer);
    int got = err == 0 ? common_bin(log, pages, count, &bin) : err;

    WB_CHECK(log->writer->magic == WB_LOG_WRITER_MAGIC);
    if (got <= 0)
        return got;
    err = wb_log_append(log, pages[0].id, bin, block, &tail);
    foresee(log->writer, pages, count);
    for (size_t i = 0; i < count && err == 0; i++)
        err = add_op(log, &pages[i], tail);
    if (err < 0)
        return err;
    tail->bytes += block->len;
    tail->pages_appended += count;
    begin_writing_back(tail);
    return 1;
}
