/*
 * convert_pages.c - copies the pages of a repository into a log (convert.h).
 *
 * Records are copied in the order of the disk: that is fast to read, and pages of one site stay together. Where each
 * went is noted and sorted by page id. Then the pages are made in that order, which is that of the catalog.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/mem.h"
#include "move/convert.h"
#include "table/table.h"

enum {
    COMMIT_RECORDS = 50000,   /* that are copied in one commit ... */
    COMMIT_BYTES = 256 << 20, /* ... and their bytes */
    COMMIT_PAGES = 20000,     /* that are made in one commit ... */
    COMMIT_NOTES = 100000,    /* ... and their records */
    SORT_BYTES = 64 << 20,    /* of memory */
    NOTE_BYTES = WB_CONVERT_PLACE_BYTES + 4 + 8 + 8 + 2,
};

struct page_copy {
    struct wb_convert *convert;
    struct wb_sorter *notes;
    WB_VEC(struct wb_convert_note) ops; /* one for each op of the writer */
    uint64_t op_bytes;
    WB_VEC(struct wb_convert_note) page; /* the notes of one page */
    struct wb_repo_edit edit;
    size_t pages, noted; /* in this transaction */
};

/* ---- notes ------------------------------------------------------------------------------------------------ */

static int add_note(struct page_copy *c, const struct wb_op *op, const struct wb_convert_note *note)
{
    char key[WB_CONVERT_KEY_BYTES], value[NOTE_BYTES], *rest = value + WB_CONVERT_PLACE_BYTES;

    WB_CHECK(op->kind == WB_OP_COPY);
    WB_CHECK(op->appended);
    wb_pageid_put(op->id, key);
    wb_convert_place_put(&note->from, key + WB_PAGEID_BYTES);
    wb_convert_place_put(&op->entry.place, value);
    wb_put32(rest, op->entry.stored_bytes);
    wb_put64(rest + 4, note->content);
    wb_put64(rest + 12, (uint64_t)note->time_ms);
    wb_put16(rest + 20, note->lifetime);
    return wb_sorter_add(c->notes, wb_slice(key, sizeof key), wb_slice(value, sizeof value));
}

static struct wb_convert_note get_note(const struct wb_table_record *record)
{
    const char *rest = record->value.ptr + WB_CONVERT_PLACE_BYTES;

    WB_CHECK(record->key.len == WB_CONVERT_KEY_BYTES);
    WB_CHECK(record->value.len == NOTE_BYTES);
    return (struct wb_convert_note){
        .from = wb_convert_place_get(record->key.ptr + WB_PAGEID_BYTES),
        .to = wb_convert_place_get(record->value.ptr),
        .stored_bytes = wb_get32(rest),
        .content = wb_get64(rest + 4),
        .time_ms = (int64_t)wb_get64(rest + 12),
        .lifetime = wb_get16(rest + 20),
    };
}

/* ---- records ----------------------------------------------------------------------------------------------- */

/* Commits the records that were copied, and notes where they are. */
static int commit_records(struct page_copy *c)
{
    struct wb_repo *target = c->convert->target;
    struct wb_store_commit_counts ignored = {0};
    uint64_t count = c->ops.count;
    int err = wb_flush_all(target);

    WB_CHECK(target->writer->ops.count == c->ops.count || err < 0);
    for (size_t i = 0; i < c->ops.count && err == 0; i++)
        err = add_note(c, &target->writer->ops.items[i], &c->ops.items[i]);
    if (err == 0)
        err = wb_repo_commit(&target->store, &ignored);
    wb_vec_clear(&c->ops);
    c->op_bytes = 0;
    return err < 0 ? err : wb_convert_progress(c->convert, count);
}

static int copy_record(void *context, const struct wb_convert_record *record)
{
    struct page_copy *c = context;
    const struct wb_page *page = &record->page;
    struct wb_repo_copy copy = {
        .id = record->id, .site = wb_key_site(page->key), .body_bytes = page->body.len, .record = record->record};
    uint64_t bytes = record->record->len;
    int err = wb_vec_push(&c->ops, wb_convert_note_of(c->convert, page, &record->place));

    WB_CHECK(c->ops.count == c->convert->target->writer->ops.count + 1 || err < 0);
    c->convert->counts.bytes += page->body.len;
    if (err == 0)
        err = wb_repo_copy_add(c->convert->target, &copy);
    if (err < 0)
        return err;
    c->op_bytes += bytes;
    return c->ops.count >= COMMIT_RECORDS || c->op_bytes >= COMMIT_BYTES ? commit_records(c) : 0;
}

/* ---- pages ---------------------------------------------------------------------------------------------------- */

static int end_transaction(struct page_copy *c)
{
    uint64_t pages = c->pages;
    int err = c->edit.txn.kind == WB_CATALOG_TXN_WRITING ? wb_repo_edit_end(&c->edit) : 0;

    WB_CHECK(!c->edit.changed);
    WB_CHECK(!c->edit.taken_down);
    if (err == 0 && pages)
        c->convert->target->writer->commit = c->edit.summary.commit;
    wb_catalog_txn_abort(&c->edit.txn);
    wb_repo_edit_release(&c->edit);
    c->edit = (struct wb_repo_edit){0};
    c->pages = c->noted = 0;
    return err < 0 ? err : wb_convert_progress(c->convert, pages);
}

/* Makes the page whose notes were collected. */
static int make_page(struct page_copy *c, struct wb_pageid id)
{
    int err = c->edit.txn.kind == WB_CATALOG_TXN_WRITING ? 0 : wb_repo_edit_begin(c->convert->target, &c->edit);

    WB_CHECK(c->page.count > 0);
    if (err == 0)
        err = wb_convert_adopt(c->convert, &c->edit, id, c->page.items, c->page.count);
    c->pages++;
    c->noted += c->page.count;
    wb_vec_clear(&c->page);
    return err == 0 && (c->pages >= COMMIT_PAGES || c->noted >= COMMIT_NOTES) ? end_transaction(c) : err;
}

static int make_pages(struct page_copy *c)
{
    struct wb_pageid id = {0};
    struct wb_table_record record;
    int got = 0, err = wb_sorter_sort(c->notes);

    while (err == 0 && (got = wb_sorter_next(c->notes, &record)) > 0) {
        struct wb_pageid next = wb_pageid_get(record.key.ptr);
        if (c->page.count && !wb_pageid_equal(id, next))
            err = make_page(c, id);
        id = next;
        if (err == 0)
            err = wb_vec_push(&c->page, get_note(&record));
    }
    if (err == 0)
        err = got;
    if (err == 0 && c->page.count)
        err = make_page(c, id);
    return err < 0 ? err : end_transaction(c);
}

int wb_convert_pages(struct wb_convert *convert)
{
    struct page_copy c = {.convert = convert};
    struct wb_sorter_options options = {.dir = convert->target->dir, .memory_bytes = SORT_BYTES};
    struct wb_error_copy why;
    int err = wb_sorter_open(&options, &c.notes);

    WB_CHECK(convert->target->writer->ops.count == 0);
    if (err == 0)
        err = wb_convert_records(convert->source, copy_record, &c);
    if (err == 0 && c.ops.count)
        err = commit_records(&c);
    if (err == 0)
        err = make_pages(&c);
    if (err == 0)
        err = wb_convert_complete(convert);
    if (err < 0)
        wb_error_save(err, &why);
    wb_catalog_txn_abort(&c.edit.txn);
    wb_repo_edit_release(&c.edit);
    wb_vec_release(&c.ops);
    wb_vec_release(&c.page);
    wb_sorter_close(c.notes);
    return err < 0 ? wb_error_restore(&why) : 0;
}
