/*
 * segment_tail.c - the segments that a writer appends to: finds, makes, seals and leaves them (segment_tail.h).
 *
 * A segment belongs to the process that holds the lock on its file (flock). The kernel releases the lock when the
 * process ends, however it ends.
 */
#include "pagefile/segment_tail.h"
#include "base/check.h"
#include "base/mem.h"

/* Reads one segment row. */
struct row_read {
    struct wb_pagefile *files;
    uint32_t number;
    struct wb_catalog_segment row;
};

static int read_row(void *context)
{
    struct row_read *r = context;

    WB_CHECK(r->number > 0);
    WB_CHECK(r->files->reader->kind >= WB_CATALOG_TXN_AWAKE);
    return wb_catalog_segment_get(r->files->reader, r->number, &r->row);
}

int wb_segment_claim(struct wb_pagefile *files, const struct wb_catalog_segment *seen, struct wb_segment *segment_out,
                     struct wb_catalog_segment *row_out)
{
    WB_CHECK(files->magic == WB_PAGEFILE_MAGIC);
    struct row_read r = {.files = files, .number = seen->number};
    struct wb_node *node;
    int err = wb_nodes_find_to_write(files->nodes, seen->node, &node);

    WB_CHECK(seen->number > 0);
    WB_CHECK(!seen->sealed);
    *segment_out = WB_SEGMENT_INIT;
    if (err == 0)
        err = wb_segment_open(node, files->superblock->id, seen, true, segment_out);
    if (err < 0)
        return err;
    err = wb_node_file_claim(&segment_out->file);
    if (err == 0)
        err = wb_pagefile_read(files, read_row, &r);
    if (err == 0 && (r.row.sealed || r.row.revision != seen->revision))
        err = wb_fail(WB_E_BUSY, "%s was compacted in the meantime", segment_out->file.path);
    if (err < 0)
        wb_segment_close(segment_out);
    *row_out = r.row;
    return err;
}

/* Seals a segment, unless another process has it. */
static bool try_to_seal(struct wb_pagefile *files, const struct wb_catalog_segment *seen, uint64_t commit)
{
    struct row_read now = {.files = files, .number = seen->number};
    struct wb_segment segment;
    bool done = false;
    struct wb_node *node;

    WB_CHECK(files->magic == WB_PAGEFILE_MAGIC);
    WB_CHECK(files->writer->tails.count == 0);
    if (wb_nodes_find_to_write(files->nodes, seen->node, &node) < 0 ||
        wb_segment_open(node, files->superblock->id, seen, true, &segment) < 0)
        return false;
    if (wb_node_file_claim(&segment.file) == 0 && wb_pagefile_read(files, read_row, &now) == 0 &&
        now.row.revision == segment.revision && wb_node_file_truncate(&segment.file, now.row.bytes) == 0)
        done = wb_segment_write_seal(&segment, now.row.bytes, commit) == 0;
    wb_segment_close(&segment);
    return done;
}

void wb_segment_seal_any(struct wb_pagefile *files, uint64_t commit)
{
    struct wb_overview o = {0};
    bool done = false;

    WB_CHECK(files->magic == WB_PAGEFILE_MAGIC);
    WB_CHECK(files->writer->tails.count == 0);
    /* If nothing can be sealed, no data is lost: we only lose one way to notice that the catalog went back in time. */
    if (wb_pagefile_overview(files, &o) < 0)
        return;
    for (size_t i = o.rows.count; i > 0 && i + WB_PAGEFILE_SEALED_MAX > o.rows.count && !done; i--)
        done = try_to_seal(files, &o.rows.items[i - 1], commit);
    wb_catalog_rows_release(&o.rows);
}

/* ---- choosing a segment to append to --------------------------------------------------------------- */

/* The writer owns the segment from now on; on error the caller still does. */
static int add_tail(struct wb_pagefile_writer *writer, const struct wb_segment *segment, const struct wb_bin *bin,
                    uint64_t bytes)
{
    WB_CHECK(bytes >= WB_SEGMENT_HEADER_BYTES);
    WB_CHECK(segment->file.node != NULL);
    WB_CHECK(bytes >= segment->tail_at);
    return wb_vec_push(&writer->tails,
                       (struct wb_tail){.segment = *segment, .bin = *bin, .bytes = bytes, .bytes_committed = bytes});
}

static bool is_tail(const struct wb_pagefile_writer *writer, uint32_t number)
{
    WB_CHECK(writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    WB_CHECK(number > 0);
    for (size_t i = 0; i < writer->tails.count; i++)
        if (writer->tails.items[i].segment.number == number)
            return true;
    return false;
}

/* Takes an unfinished segment that nobody has locked, and cuts it back to its committed bytes. */
static int reuse_segment(struct wb_pagefile *files, const struct wb_catalog_rows *rows, const struct wb_bin *bin,
                         bool *done_out)
{
    struct wb_segment segment;
    struct wb_catalog_segment row;

    WB_CHECK(files->writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    *done_out = false;
    for (size_t i = rows->count; i > 0 && !*done_out; i--) {
        const struct wb_catalog_segment *seen = &rows->items[i - 1];
        if (seen->sealed || is_tail(files->writer, seen->number) ||
            !wb_bin_equal(&(struct wb_bin){seen->node, seen->range}, bin))
            continue;
        if (wb_segment_claim(files, seen, &segment, &row) < 0)
            continue;
        int err = wb_node_file_truncate(&segment.file, row.bytes);
        if (err == 0)
            err = add_tail(files->writer, &segment, bin, row.bytes);
        if (err < 0) {
            wb_segment_close(&segment);
            return err;
        }
        *done_out = true;
    }
    return 0;
}

/* A node that is being removed gets no segment any more, whatever this writer knew about it. */
static int check_bin(struct wb_catalog_txn *txn, const struct wb_bin *bin)
{
    struct wb_catalog_node node;

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    if (wb_catalog_count(txn, WB_CATALOG_NODES) == 0)
        return 0;
    int err = wb_catalog_node_get(txn, bin->node, &node);
    if (err == WB_E_NOTFOUND || (err == 0 && node.leaving))
        err = wb_fail(WB_E_DOWN, "node %u was removed", bin->node);
    return err;
}

/*
 * Adds the row of a new, empty segment to the catalog. Returns 1 if the number was given to another segment in the
 * meantime: on another node there may be a file of the same number. Then *next_out is the first number that is free.
 */
static int register_segment(struct wb_pagefile *files, uint32_t number, const struct wb_bin *bin, uint32_t *next_out)
{
    WB_CHECK(files->writer->magic == WB_PAGEFILE_WRITER_MAGIC);

    struct wb_catalog_segment row = {
        .number = number,
        .node = bin->node,
        .range = bin->range,
        .bytes = WB_SEGMENT_HEADER_BYTES,
        .logical_end = WB_SEGMENT_HEADER_BYTES,
    };
    struct wb_catalog_summary summary;
    struct wb_catalog_txn txn;
    int err = wb_catalog_txn_write(files->catalog, &txn);

    WB_CHECK(number > 0);
    if (err == 0)
        err = wb_catalog_summary_get(&txn, &summary);
    if (err == 0)
        err = check_bin(&txn, bin);
    if (err == 0 && number < summary.next_segment) {
        *next_out = summary.next_segment;
        err = 1;
    }
    if (err == 0)
        err = wb_catalog_segment_put(&txn, &row);
    if (err == 0) {
        summary.next_segment = number + 1;
        summary.commit++;
        err = wb_catalog_summary_put(&txn, &summary);
    }
    if (err == 0)
        err = wb_catalog_txn_commit(&txn);
    if (err == 0)
        files->writer->commit = summary.commit;
    wb_catalog_txn_abort(&txn);
    return err;
}

/* Creates the file of the next free number. The file claims the number, before there is a row. */
static int create_segment(struct wb_pagefile *files, uint32_t node, uint32_t number, struct wb_segment *segment_out)
{
    WB_CHECK(files->magic == WB_PAGEFILE_MAGIC);
    struct wb_node *reach;
    int err = wb_nodes_find_to_write(files->nodes, node, &reach);

    WB_CHECK(number > 0);
    if (err < 0)
        return err;
    do {
        err = wb_segment_create(reach, files->superblock->id, number, 0, segment_out);
        number++;
    } while (err == WB_E_INVALID);
    if (err == 0)
        err = wb_node_file_sync(&segment_out->file);
    return err < 0 ? err : wb_node_sync_names(reach);
}

/* Creates a segment and its row, and adds it to the tails. first: the number to try first. */
static int new_segment(struct wb_pagefile *files, const struct wb_bin *bin, uint32_t first)
{
    WB_CHECK(files->writer->magic == WB_PAGEFILE_WRITER_MAGIC);

    struct wb_segment segment = WB_SEGMENT_INIT;
    struct wb_error_copy why;
    int err;

    WB_CHECK(first > 0);
    for (;;) {
        err = create_segment(files, bin->node, first, &segment);
        if (err == 0)
            err = register_segment(files, segment.number, bin, &first);
        if (err <= 0)
            break;
        wb_node_file_remove(&segment.file); /* without a row, it is an orphan anyway */
        wb_segment_close(&segment);
    }
    if (err == 0)
        err = add_tail(files->writer, &segment, bin, WB_SEGMENT_HEADER_BYTES);
    if (err < 0) {
        wb_error_save(err, &why);
        wb_segment_close(&segment); /* without a row, the file is an orphan that the next writer removes */
        wb_error_restore(&why);
    }
    return err;
}

int wb_tail_open(struct wb_pagefile *files, const struct wb_bin *bin)
{
    WB_CHECK(files->magic == WB_PAGEFILE_MAGIC);
    WB_CHECK(files->writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    WB_CHECK(bin->node > 0);

    struct wb_overview o = {0};
    bool done = false;
    int err = wb_pagefile_overview(files, &o);

    if (err == 0)
        err = reuse_segment(files, &o.rows, bin, &done);
    if (err == 0 && !done)
        err = new_segment(files, bin, o.summary.next_segment); /* numbers are never reused */
    wb_catalog_rows_release(&o.rows);
    WB_CHECK(err < 0 || files->writer->tails.count > 0);
    return err;
}

/* ---- committing --------------------------------------------------------------------------------------- */

int wb_tails_apply(struct wb_pagefile_edit *edit)
{
    struct wb_pagefile *files = edit->files;
    struct wb_pagefile_writer *writer = files->writer;

    WB_CHECK(writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    WB_CHECK(edit->txn->kind == WB_CATALOG_TXN_WRITING);
    for (size_t i = 0; i < writer->tails.count; i++) {
        struct wb_tail *tail = &writer->tails.items[i];
        struct wb_catalog_segment *row;
        int err = wb_pagefile_edit_row(edit, tail->segment.number, &row);
        if (err < 0)
            return err;
        if (row->bytes != tail->bytes_committed || row->sealed) /* nobody else may append while we hold the lock */
            return wb_catalog_corrupt(files->catalog, WB_CATALOG_SEGMENTS, "a segment that changed under its lock");
        WB_CHECK(tail->bytes >= tail->bytes_committed);
        row->bytes = tail->bytes;
        row->logical_end = wb_segment_name_at(&tail->segment, tail->bytes);
        row->pages += tail->pages_appended;
        row->sealed = tail->bytes >= wb_segment_limit(files);
    }
    return 0;
}

void wb_tails_cut(struct wb_pagefile *files)
{
    struct wb_pagefile_writer *writer = files->writer;

    WB_CHECK(writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    WB_CHECK(!wb_catalog_uncertain(files->catalog));
    for (size_t i = 0; i < writer->tails.count; i++) {
        struct wb_tail *tail = &writer->tails.items[i];
        /* If this fails, the bytes are overwritten by the next block, or cut off by the next writer. */
        wb_node_file_truncate(&tail->segment.file, tail->bytes_committed);
        tail->bytes = tail->bytes_committed;
        tail->pages_appended = 0;
    }
}

/* ---- leaving ------------------------------------------------------------------------------------------ */

void wb_tails_close_full(struct wb_pagefile *files)
{
    struct wb_pagefile_writer *writer = files->writer;
    size_t kept = 0;

    WB_CHECK(writer->magic == WB_PAGEFILE_WRITER_MAGIC);
    WB_CHECK(writer->failed.code == 0);
    for (size_t i = 0; i < writer->tails.count; i++) {
        struct wb_tail *tail = &writer->tails.items[i];
        tail->bytes_committed = tail->bytes;
        tail->pages_appended = 0;
        if (tail->bytes < wb_segment_limit(files))
            writer->tails.items[kept++] = *tail;
        else
            wb_segment_close(&tail->segment);
    }
    WB_CHECK(kept <= writer->tails.count);
    writer->tails.count = kept;
}

void wb_tails_release(struct wb_pagefile *files)
{
    WB_CHECK(files->writer->magic == WB_PAGEFILE_WRITER_MAGIC);

    struct wb_pagefile_writer *writer = files->writer;
    uint64_t commit = writer->tails.count ? wb_pagefile_newest_commit(files) : 0;

    WB_CHECK(writer->puts.count == 0); /* committed, or dropped */
    for (size_t i = 0; i < writer->tails.count; i++) {
        struct wb_tail *tail = &writer->tails.items[i];
        WB_CHECK(tail->bytes >= tail->bytes_committed);
        /* A clean end: no uncommitted bytes, and a seal. If this fails, the next writer recovers the segment. */
        if (wb_node_file_truncate(&tail->segment.file, tail->bytes_committed) == 0)
            wb_segment_write_seal(&tail->segment, tail->bytes_committed, commit);
        wb_segment_close(&tail->segment);
    }
    bool any = writer->tails.count > 0;
    wb_vec_clear(&writer->tails);
    if (any && files->kind->divided) /* seals are looked for in the newest segments, which may be of other ranges */
        wb_segment_seal_any(files, commit);
}
