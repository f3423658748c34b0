/*
 * append_block.c - puts whole blocks (append_block.h). Nothing is decompressed: the block goes behind the others of its
 * bin as it is, except for the place and the commit in its header, and the pages become ops that are appended already.
 * The commit decides about them as about all others.
 *
 * Blocks wait in memory until there is enough for one long write, because short ones take the kernel longer. A worker
 * writes them, while the next ones are put. If that fails, each block is appended by itself, which may find another
 * node.
 */
#include "pagefile/append_block.h"
#include "base/check.h"
#include "base/mem.h"
#include "os/mapping.h"
#include "pagefile/hashed_log.h"
#include "pagefile/segment_tail.h"

enum { RUN_BYTES = 1 << 20 };

/* How blocks are divided. */
struct wb_block_spread {
    uint64_t record_bytes;          /* of everything that will be put, about */
    uint64_t share;                 /* uniform distribution: after so many bytes, the next node has its turn */
    uint64_t turned;                /* so many were put since then */
    struct wb_hashed_ranges ranges; /* of a hashed-log, as they were ... */
    uint64_t ranges_age;            /* ... so many bytes ago; 0: not read yet */
};

static int get_blocks(struct wb_pagefile_writer *writer, struct wb_block_spread **blocks_out)
{
    WB_CHECK(writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    if (!writer->spread)
        writer->spread = wb_alloc_zero(1, sizeof *writer->spread);
    *blocks_out = writer->spread;
    return writer->spread ? 0 : WB_E_NOMEM;
}

/* In a hashed-log, narrows the bin to the range that has a log of its own, as for pages that are put one by one. */
static int narrow(struct wb_pagefile *files, struct wb_pageid id, struct wb_bin *bin)
{
    struct wb_block_spread *blocks = files->writer->spread;
    int err = 0;

    WB_CHECK(blocks != NULL);
    WB_CHECK(files->kind->divided);
    if (blocks->ranges_age == 0 ||
        blocks->ranges_age > wb_pagefile_sizes.hashed_bytes / 8) { /* by now others are divided */
        wb_hashed_ranges_release(&blocks->ranges);
        blocks->ranges_age = 0;
        err = wb_hashed_ranges_read(files, blocks->record_bytes, &blocks->ranges);
    }
    if (err < 0)
        return err;
    blocks->ranges_age += blocks->ranges_age == 0;
    wb_hashed_ranges_narrow(&blocks->ranges, id, bin);
    return 0;
}

/* The bin of all pages: 1, 0 if they have several, or an error. */
static int common_bin(struct wb_pagefile *files, const struct wb_append_page *pages, size_t count, struct wb_bin *bin)
{
    int err = wb_bin_of(files->nodes, pages[0].id, bin);

    WB_CHECK(count > 0);
    WB_CHECK(files->kind->whole_blocks);
    if (err == 0 && files->kind->divided)
        err = narrow(files, pages[0].id, bin);
    if (err < 0)
        return err;
    for (size_t i = 0; i < count; i++)
        if (!wb_catalog_range_has(&bin->range, pages[i].id))
            return 0;
    return 1;
}

int wb_append_expect(struct wb_pagefile *files, const struct wb_append_expected *expected)
{
    struct wb_pagefile_writer *writer = files->writer;
    struct wb_block_spread *blocks;
    int err = get_blocks(writer, &blocks);

    WB_CHECK(writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    if (err == 0)
        err = wb_vec_reserve(&writer->puts, writer->puts.count + expected->pages);
    if (err < 0)
        return err;
    blocks->record_bytes = expected->record_bytes;
    blocks->share = expected->stored_bytes / wb_nodes_in_turn(files->nodes);
    blocks->share = blocks->share < RUN_BYTES ? blocks->share : RUN_BYTES;
    blocks->turned = blocks->ranges_age = 0;
    wb_mapping_large(writer->puts.items, (writer->puts.count + expected->pages) * sizeof *writer->puts.items);
    return 0;
}

/* Takes note of a block that was put. */
static void pass_turn(struct wb_pagefile *files, uint64_t bytes)
{
    struct wb_block_spread *blocks = files->writer->spread;

    WB_CHECK(blocks != NULL);
    WB_CHECK(bytes > 0);
    blocks->ranges_age += bytes;
    blocks->turned += bytes;
    if (blocks->turned < blocks->share)
        return;
    wb_nodes_turn(files->nodes);
    blocks->turned = 0;
}

/* ---- runs ---------------------------------------------------------------------------------------------------- */

static void clear_run(struct wb_append_run *run)
{
    wb_buf_clear(&run->bytes);
    wb_vec_clear(&run->blocks);
    run->segment = 0;
    run->error.code = 0;
}

void wb_append_runs_drop(struct wb_pagefile *files)
{
    WB_CHECK(files->writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    if (files->writer->written.segment)
        wb_pool_wait(files->writer->pool);
    clear_run(&files->writer->run);
    clear_run(&files->writer->written);
}

void wb_append_runs_release(struct wb_pagefile *files)
{
    struct wb_append_run *runs[] = {&files->writer->run, &files->writer->written};

    WB_CHECK(files->writer->written.segment == 0);
    for (size_t i = 0; i < 2; i++) {
        wb_buf_release(&runs[i]->bytes);
        wb_vec_release(&runs[i]->blocks);
    }
    if (files->writer->spread)
        wb_hashed_ranges_release(&files->writer->spread->ranges);
    wb_free(files->writer->spread);
    files->writer->spread = NULL;
}

/* Runs in a worker. The disk begins to write at once, so that less is left for the sync before the commit. */
static void write_run(void *context)
{
    struct wb_append_run *run = context;
    int err = wb_node_file_write_at(&run->file, run->at, run->bytes.ptr, run->bytes.len);

    if (err < 0)
        wb_error_save(err, &run->error);
    else
        wb_node_file_hint(&run->file, WB_NODE_WRITE_BACK, run->at, run->bytes.len);
}

static struct wb_tail *tail_of(const struct wb_pagefile_writer *writer, const struct wb_append_run *run)
{
    size_t i = 0;

    while (i < writer->tails.count && writer->tails.items[i].segment.number != run->segment)
        i++;
    WB_CHECK(i < writer->tails.count);
    return &writer->tails.items[i];
}

/* Appends the blocks of a run that could not be written, one by one. */
static int append_each(struct wb_pagefile *files, struct wb_append_run *run)
{
    struct wb_buf block = WB_BUF_INIT;
    struct wb_tail *tail = NULL;
    int err = 0;

    WB_CHECK(run->blocks.count > 0);
    for (size_t i = 0; i < run->blocks.count && err == 0; i++) {
        const struct wb_append_run_block *b = &run->blocks.items[i];
        struct wb_put *puts = &files->writer->puts.items[b->first_put];
        wb_buf_clear(&block);
        err = wb_buf_append(&block, run->bytes.ptr + b->at, b->bytes);
        if (err == 0)
            err = wb_append(files, puts[0].id, b->bin, &block, &tail);
        if (err < 0)
            break;
        for (size_t k = 0; k < b->count; k++) {
            puts[k].place.segment = tail->segment.number;
            puts[k].place.logical = wb_segment_name_at(&tail->segment, tail->bytes);
        }
        tail->bytes += block.len;
        tail->pages_appended += b->count;
    }
    wb_buf_release(&block);
    clear_run(run);
    return err;
}

/* Takes the blocks of a run away from the end of their segment. False if others were appended behind them. */
static bool take_back(struct wb_pagefile_writer *writer, const struct wb_append_run *run)
{
    struct wb_tail *tail = tail_of(writer, run);

    WB_CHECK(run->segment > 0);
    if (tail->bytes != run->at + run->bytes.len)
        return false;
    tail->bytes = run->at;
    for (size_t i = 0; i < run->blocks.count; i++)
        tail->pages_appended -= run->blocks.items[i].count;
    return true;
}

/* Waits for the run that is being written. If that has failed, its blocks, and those behind it, go elsewhere. */
static int land_run(struct wb_pagefile *files)
{
    struct wb_pagefile_writer *writer = files->writer;
    struct wb_append_run *written = &writer->written, *behind = &writer->run;

    WB_CHECK(writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    if (written->segment == 0)
        return 0;
    wb_pool_wait(writer->pool);
    int err = written->error.code < 0 ? wb_error_restore(&written->error) : 0;
    if (err == 0) {
        clear_run(written);
        return 0;
    }
    bool both = behind->segment == written->segment;
    if ((both && !take_back(writer, behind)) || !take_back(writer, written))
        return err;
    err = append_each(files, written);
    return err < 0 || !both ? err : append_each(files, behind);
}

/* Lets a worker write the blocks that have been put. */
static int start_run(struct wb_pagefile *files)
{
    struct wb_pagefile_writer *writer = files->writer;
    int err = land_run(files);

    WB_CHECK(writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    if (err < 0 || writer->run.segment == 0)
        return err;
    struct wb_append_run spare = writer->written;
    writer->written = writer->run;
    writer->run = spare;
    writer->written.file = tail_of(writer, &writer->written)->segment.file;
    err = wb_pool_submit(writer->pool, write_run, &writer->written);
    if (err < 0)
        wb_error_save(err, &writer->written.error);
    return 0;
}

int wb_append_runs_end(struct wb_pagefile *files)
{
    int err = start_run(files);

    WB_CHECK(files->writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    if (err == 0)
        err = land_run(files);
    return wb_writer_remember_failure(files->writer, err);
}

/* Puts a block behind the others in memory. */
static int add_to_run(struct wb_pagefile *files, struct wb_slice block, const struct wb_bin *bin, struct wb_tail *tail,
                      size_t count)
{
    struct wb_append_run *run = &files->writer->run;
    struct wb_append_run_block added = {run->bytes.len, block.len, files->writer->puts.count, count, *bin};
    int err = wb_vec_reserve(&run->blocks, run->blocks.count + 1);

    WB_CHECK(run->segment == 0 || run->at + run->bytes.len == tail->bytes);
    if (err == 0)
        err = wb_buf_append_slice(&run->bytes, block);
    if (err < 0)
        return err;
    if (run->segment == 0)
        run->at = tail->bytes;
    run->segment = tail->segment.number;
    wb_block_stamp(run->bytes.ptr + added.at, wb_segment_name_at(&tail->segment, tail->bytes), files->writer->commit);
    return wb_vec_push(&run->blocks, added);
}

/* The segment to which the block goes; if its node cannot take it, one of another node. */
static int find_tail(struct wb_pagefile *files, struct wb_pageid id, struct wb_bin *bin, struct wb_tail **tail_out)
{
    int err;

    WB_CHECK(bin->node > 0);
    while ((err = wb_tail_find(files, bin, tail_out)) < 0) {
        err = wb_bin_other(files, id, err, bin);
        if (err < 0)
            return err;
    }
    return 0;
}

/* A put whose record is in the block. There is room for it. */
static void add_put(struct wb_pagefile_writer *writer, const struct wb_append_page *page, const struct wb_tail *tail)
{
    WB_CHECK(writer->puts.count < writer->puts.cap);
    struct wb_put *put = &writer->puts.items[writer->puts.count++];
    *put = (struct wb_put){
        .id = page->id,
        .place = {tail->segment.number, page->slot, wb_segment_name_at(&tail->segment, tail->bytes)},
        .stored_bytes = page->stored_bytes,
        .placed = true,
        .digested = true,
    };
    memcpy(put->sha1, page->sha1, sizeof put->sha1);
}

int wb_append_whole(struct wb_pagefile *files, struct wb_slice block, const struct wb_append_page *pages, size_t count)
{
    struct wb_pagefile_writer *writer = files->writer;
    struct wb_append_run *run = &writer->run;
    struct wb_tail *tail;
    struct wb_block_spread *blocks;
    struct wb_bin bin;
    int err = wb_pagefile_check_usable(writer);
    if (err == 0)
        err = get_blocks(writer, &blocks);
    int got = err == 0 ? common_bin(files, pages, count, &bin) : err;

    WB_CHECK(writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    if (got <= 0)
        return got;
    err = wb_vec_reserve(&writer->puts, writer->puts.count + count);
    if (err == 0)
        err = find_tail(files, pages[0].id, &bin, &tail);
    if (err == 0 && run->segment &&
        (run->segment != tail->segment.number || run->at + run->bytes.len != tail->bytes ||
         run->bytes.len + block.len > RUN_BYTES)) {
        err = start_run(files);
        if (err == 0) /* if the one before has failed, this one may have gone elsewhere, too */
            err = find_tail(files, pages[0].id, &bin, &tail);
    }
    if (err == 0)
        err = add_to_run(files, block, &bin, tail, count);
    if (err < 0)
        return wb_writer_remember_failure(writer, err);
    for (size_t i = 0; i < count; i++)
        add_put(writer, &pages[i], tail);
    tail->bytes += block.len;
    tail->pages_appended += count;
    pass_turn(files, block.len);
    return 1;
}
