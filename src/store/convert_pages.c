/*
 * convert_pages.c - copies the pages of a repository (convert.h).
 *
 * Records are copied in the order of the disk: that is fast to read, and pages of one site stay together. Where each
 * went is noted and sorted by page id. Then the pages are made in that order, which is that of the catalog, from the
 * history in the other catalog and the places in the notes.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/mem.h"
#include "store/convert.h"
#include "table/table.h"

enum {
    COMMIT_RECORDS = 50000,   /* that are copied in one commit ... */
    COMMIT_BYTES = 256 << 20, /* ... and their bytes */
    COMMIT_PAGES = 20000,     /* that are made in one commit ... */
    COMMIT_VERSIONS = 100000, /* ... and their versions */
    SORT_BYTES = 64 << 20,    /* of memory */
    NOTE_KEY_BYTES = WB_PAGEID_BYTES + 4 + 8 + 2,
    NOTE_VALUE_BYTES = 4 + 8 + 2 + 4 + 8 + 8 + 2,
};

/* Where a record was and is, and what is known about it only from its bytes. */
struct convert_note {
    struct wb_catalog_place from, to;
    uint32_t stored_bytes;
    uint64_t content; /* hashes of contents differ between repositories */
    int64_t time_ms;
    uint16_t lifetime;
};

/* What an op of the writer copies. */
struct convert_op {
    struct wb_catalog_place from;
    uint64_t content;
    int64_t time_ms;
    uint16_t lifetime;
};

struct page_copy {
    struct wb_convert *convert;
    struct wb_sorter *notes;
    WB_VEC(struct convert_op) ops; /* one for each op of the writer */
    uint64_t op_bytes;
    WB_VEC(struct convert_note) page; /* the notes of one page */
    struct wb_log_edit edit;
    size_t pages, versions; /* in this transaction */
    uint64_t latest, gone;  /* pages that were found, with a latest version and without */
};

/* ---- notes ------------------------------------------------------------------------------------------------ */

static void put_place(const struct wb_catalog_place *place, char out[4 + 8 + 2])
{
    wb_put32(out, place->segment);
    wb_put64(out + 4, place->logical);
    wb_put16(out + 12, place->slot);
}

static struct wb_catalog_place get_place(const char *bytes)
{
    return (struct wb_catalog_place){
        .segment = wb_get32(bytes), .logical = wb_get64(bytes + 4), .slot = wb_get16(bytes + 12)};
}

static int add_note(struct page_copy *c, const struct wb_log_op *op, const struct convert_op *copied)
{
    char key[NOTE_KEY_BYTES], value[NOTE_VALUE_BYTES];

    WB_CHECK(op->kind == WB_LOG_OP_COPY);
    WB_CHECK(op->appended);
    wb_pageid_put(op->id, key);
    put_place(&copied->from, key + WB_PAGEID_BYTES);
    put_place(&op->entry.place, value);
    wb_put32(value + 14, op->entry.stored_bytes);
    wb_put64(value + 18, copied->content);
    wb_put64(value + 26, (uint64_t)copied->time_ms);
    wb_put16(value + 34, copied->lifetime);
    return wb_sorter_add(c->notes, wb_slice(key, sizeof key), wb_slice(value, sizeof value));
}

static struct convert_note get_note(const struct wb_table_record *record)
{
    const char *value = record->value.ptr;

    WB_CHECK(record->key.len == NOTE_KEY_BYTES);
    WB_CHECK(record->value.len == NOTE_VALUE_BYTES);
    return (struct convert_note){
        .from = get_place(record->key.ptr + WB_PAGEID_BYTES),
        .to = get_place(value),
        .stored_bytes = wb_get32(value + 14),
        .content = wb_get64(value + 18),
        .time_ms = (int64_t)wb_get64(value + 26),
        .lifetime = wb_get16(value + 34),
    };
}

/* ---- records ----------------------------------------------------------------------------------------------- */

/* Commits the records that were copied, and notes where they are. */
static int commit_records(struct page_copy *c)
{
    struct wb_log *target = c->convert->target;
    struct wb_store_commit_counts ignored = {0};
    int err = wb_log_flush_all(target);

    WB_CHECK(target->writer->ops.count == c->ops.count || err < 0);
    for (size_t i = 0; i < c->ops.count && err == 0; i++)
        err = add_note(c, &target->writer->ops.items[i], &c->ops.items[i]);
    uint64_t count = c->ops.count;
    if (err == 0)
        err = wb_log_commit(&target->store, &ignored);
    wb_vec_clear(&c->ops);
    c->op_bytes = 0;
    return err < 0 ? err : wb_convert_progress(c->convert, count);
}

static int copy_record(void *context, const struct wb_convert_record *record)
{
    struct page_copy *c = context;
    const struct wb_page *page = &record->page;
    struct wb_log_copy copy = {
        .id = record->id, .site = wb_key_site(page->key), .body_bytes = page->body.len, .record = record->record};
    struct convert_op op = {
        .from = record->place,
        .content = wb_history_content(page, c->convert->target->content_seed),
        .time_ms = page->time_ms,
        .lifetime = page->lifetime > UINT16_MAX ? UINT16_MAX : (uint16_t)page->lifetime,
    };
    uint64_t body_bytes = page->body.len, bytes = record->record->len;
    int err = wb_vec_push(&c->ops, op);

    WB_CHECK(c->ops.count == c->convert->target->writer->ops.count + 1 || err < 0);
    if (err == 0)
        err = wb_log_copy_add(c->convert->target, &copy);
    if (err < 0)
        return err;
    c->convert->counts.bytes += body_bytes;
    c->op_bytes += bytes;
    return c->ops.count >= COMMIT_RECORDS || c->op_bytes >= COMMIT_BYTES ? commit_records(c) : 0;
}

/* ---- pages ---------------------------------------------------------------------------------------------------- */

static const struct convert_note *find_note(const struct page_copy *c, const struct wb_catalog_place *place)
{
    for (size_t i = 0; i < c->page.count; i++)
        if (wb_catalog_place_equal(&c->page.items[i].from, place))
            return &c->page.items[i];
    return NULL;
}

/* Gives the versions of the page in edit->view the places that their bytes have here. */
static int move_versions(struct page_copy *c, bool *as_stored_out)
{
    const struct wb_convert_source *source = &c->convert->source;
    struct wb_log_view *view = &c->edit.view;

    WB_CHECK(view->history.versions.count > 0);
    *as_stored_out = false;
    for (size_t i = 0; i < view->history.versions.count; i++) {
        struct wb_history_version *version = &view->history.versions.items[i];
        const struct convert_note *note = find_note(c, &version->place);
        if (!note)
            return wb_catalog_corrupt(source->catalog, WB_CATALOG_PAGES, "a page whose bytes were not found");
        if (version->arrived > source->summary.epoch || version->ceased > source->summary.epoch)
            return wb_catalog_corrupt(source->catalog, WB_CATALOG_PAGES, "a version of an epoch to come");
        version->place = note->to;
        version->stored_bytes = note->stored_bytes;
        version->content = note->content;
        if (version->ceased == 0)
            *as_stored_out = wb_history_last_ms(&view->history, version) == note->time_ms &&
                             view->lifetime == note->lifetime && view->lifetime_count == note->lifetime;
    }
    return 0;
}

/* Bytes of versions that nobody keeps any more, which the source had not given up yet, are dead from the start. */
static int bury_unused(struct page_copy *c)
{
    const struct wb_history *history = &c->edit.view.history;
    struct wb_catalog_segment *row;
    int err = 0;

    WB_CHECK(c->page.count > 0);
    WB_CHECK(c->edit.txn.kind == WB_CATALOG_TXN_WRITING);
    for (size_t i = 0; i < c->page.count && err == 0; i++) {
        bool used = false;
        for (size_t k = 0; k < history->versions.count && !used; k++)
            used = wb_catalog_place_equal(&history->versions.items[k].place, &c->page.items[i].to);
        if (!used)
            err = wb_log_edit_row(&c->edit, c->page.items[i].to.segment, &row);
        if (!used && err == 0)
            row->bytes_dead += c->page.items[i].stored_bytes;
    }
    return err;
}

static int end_transaction(struct page_copy *c)
{
    uint64_t pages = c->pages;
    int err = c->edit.txn.kind == WB_CATALOG_TXN_WRITING ? wb_log_edit_end(&c->edit) : 0;

    WB_CHECK(!c->edit.changed);
    WB_CHECK(!c->edit.taken_down);
    if (err == 0 && pages)
        c->convert->target->writer->commit = c->edit.summary.commit;
    wb_catalog_txn_abort(&c->edit.txn);
    wb_log_edit_release(&c->edit);
    c->edit = (struct wb_log_edit){0};
    c->pages = c->versions = 0;
    return err < 0 ? err : wb_convert_progress(c->convert, pages);
}

/* Makes the page whose notes were collected. */
static int make_page(struct page_copy *c, struct wb_pageid id)
{
    const struct wb_convert_source *source = &c->convert->source;
    bool as_stored;
    int err = 0;

    WB_CHECK(c->page.count > 0);
    if (c->edit.txn.kind != WB_CATALOG_TXN_WRITING)
        err = wb_log_edit_begin(c->convert->target, &c->edit);
    if (err == 0)
        err = wb_log_view_load(&c->convert->source.txn, source->summary.gone > 0, id, &c->edit.view);
    if (err == 0 && c->edit.view.history.versions.count == 0)
        err = wb_catalog_corrupt(source->catalog, WB_CATALOG_PAGES, "a page that was there a moment ago");
    if (err < 0)
        return err;
    bool latest = wb_history_latest(&c->edit.view.history) != NULL;
    c->latest += latest;
    c->gone += !latest;
    err = move_versions(c, &as_stored);
    if (err == 0)
        err = wb_log_adopt(&c->edit, as_stored);
    if (err == 0)
        err = bury_unused(c);
    c->pages++;
    c->versions += c->edit.view.history.versions.count;
    wb_vec_clear(&c->page);
    if (err == 0 && (c->pages >= COMMIT_PAGES || c->versions >= COMMIT_VERSIONS))
        err = end_transaction(c);
    return err;
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

/* Nothing may be missing. */
static int check_complete(const struct page_copy *c)
{
    const struct wb_convert_source *source = &c->convert->source;

    WB_CHECK(c->page.count == 0);
    if (c->latest != source->summary.pages || c->gone != source->summary.gone)
        return wb_fail(WB_E_CORRUPT, "%s is damaged: it has %llu pages, but %llu were found",
                       wb_catalog_path(source->catalog),
                       (unsigned long long)(source->summary.pages + source->summary.gone),
                       (unsigned long long)(c->latest + c->gone));
    return 0;
}

int wb_convert_pages(struct wb_convert *convert)
{
    struct page_copy c = {.convert = convert};
    struct wb_sorter_options options = {.dir = convert->target->dir, .memory_bytes = SORT_BYTES};
    struct wb_error_copy why;
    int err = wb_sorter_open(&options, &c.notes);

    WB_CHECK(convert->target->writer->ops.count == 0);
    if (err == 0)
        err = wb_convert_records(&convert->source, copy_record, &c);
    if (err == 0 && c.ops.count)
        err = commit_records(&c);
    if (err == 0)
        err = make_pages(&c);
    if (err == 0)
        err = check_complete(&c);
    if (err < 0)
        wb_error_save(err, &why);
    wb_catalog_txn_abort(&c.edit.txn);
    wb_log_edit_release(&c.edit);
    wb_vec_release(&c.ops);
    wb_vec_release(&c.page);
    wb_sorter_close(c.notes);
    return err < 0 ? wb_error_restore(&why) : 0;
}
