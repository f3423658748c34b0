/*
 * convert_sorted.c - copies the pages of a repository into buckets (convert.h): the records are sorted by page id, and
 * each page is stored with all its versions in one commit. Commits go through the buckets in the order of the file.
 *
 * Records are sorted with their bytes, in temporary files without names, in the directory of the copy. Of a very long
 * record only the place is sorted; it is read when its page comes.
 */
#include "base/check.h"
#include "base/mem.h"
#include "move/convert.h"
#include "table/table.h"

enum {
    COMMIT_RECORDS = 20000,     /* that are stored in one commit ... */
    COMMIT_BYTES = 48 << 20,    /* ... and their bytes; a page is never divided */
    SORT_BYTES = 192 << 20,     /* of memory */
    SORTED_BYTES_MAX = 4 << 20, /* of a record that is sorted with its bytes */
};

/* What wb_convert_adopt() counts. */
struct convert_tally {
    uint64_t latest, gone, lost, lost_pages;
    size_t lost_sites;
};

struct sorted_copy {
    struct wb_convert *convert;
    struct wb_sorter *records;
    WB_VEC(struct wb_convert_note) ops;  /* one for each op of the writer */
    WB_VEC(struct wb_convert_note) page; /* of one page, while it is committed */
    uint64_t op_bytes;
    struct wb_buf record;
    struct convert_tally before; /* the commit under way */
    size_t attempt;              /* of that commit */
};

/* ---- sorting ------------------------------------------------------------------------------------------------ */

static int sort_record(void *context, const struct wb_convert_record *record)
{
    struct sorted_copy *c = context;
    char key[WB_CONVERT_KEY_BYTES];
    struct wb_slice bytes = wb_buf_slice(record->record);

    WB_CHECK(bytes.len > 0);
    WB_CHECK(record->place.segment > 0);
    wb_pageid_put(record->id, key);
    wb_convert_place_put(&record->place, key + WB_PAGEID_BYTES);
    c->convert->counts.bytes += record->page.body.len;
    if (bytes.len > SORTED_BYTES_MAX)
        bytes.len = 0;
    int err = wb_sorter_add(c->records, wb_slice(key, sizeof key), bytes);
    return err < 0 ? err : wb_convert_progress(c->convert, 1);
}

/* ---- storing ------------------------------------------------------------------------------------------------ */

static struct convert_tally tally_of(const struct wb_convert *convert)
{
    WB_CHECK(convert->target->writer != NULL);
    return (struct convert_tally){convert->latest, convert->gone, convert->counts.lost, convert->counts.lost_pages,
                                  convert->lost_sites.count};
}

/* The commit is repeated without a node that has failed: pages that were adopted in vain do not count. */
static void start_again(struct sorted_copy *c)
{
    struct wb_convert *convert = c->convert;

    WB_CHECK(c->before.lost_sites <= convert->lost_sites.count);
    convert->latest = c->before.latest;
    convert->gone = c->before.gone;
    convert->counts.lost = c->before.lost;
    convert->counts.lost_pages = c->before.lost_pages;
    convert->lost_sites.count = c->before.lost_sites;
    c->attempt = convert->target->writer->attempt;
}

/* Called by the commit for each page: order[0] to order[count - 1] are its ops, whose places are known now. */
static int adopt(void *context, struct wb_repo_edit *edit, const uint32_t *order, size_t count)
{
    struct sorted_copy *c = context;
    const struct wb_op *ops = c->convert->target->writer->ops.items;
    int err = 0;

    WB_CHECK(count > 0);
    WB_CHECK(c->ops.count == c->convert->target->writer->ops.count);
    if (c->attempt != c->convert->target->writer->attempt)
        start_again(c);
    wb_vec_clear(&c->page);
    for (size_t i = 0; i < count && err == 0; i++) {
        struct wb_convert_note note = c->ops.items[order[i]];
        note.to = ops[order[i]].entry.place;
        note.stored_bytes = ops[order[i]].entry.stored_bytes;
        err = wb_vec_push(&c->page, note);
    }
    return err < 0 ? err : wb_convert_adopt(c->convert, edit, ops[order[0]].id, c->page.items, c->page.count);
}

static int commit(struct sorted_copy *c)
{
    struct wb_store_commit_counts ignored = {0};
    uint64_t count = c->ops.count;

    c->before = tally_of(c->convert);
    c->attempt = 0;
    int err = wb_repo_commit(&c->convert->target->store, &ignored);

    WB_CHECK(c->convert->target->writer->ops.count == 0);
    wb_vec_clear(&c->ops);
    c->op_bytes = 0;
    return err < 0 ? err : wb_convert_progress(c->convert, count);
}

/* Hands a record to the writer. */
static int store_record(struct sorted_copy *c, const struct wb_table_record *sorted)
{
    struct wb_pageid id = wb_pageid_get(sorted->key.ptr);
    struct wb_catalog_place place = wb_convert_place_get(sorted->key.ptr + WB_PAGEID_BYTES);
    struct wb_page page;
    int err;

    WB_CHECK(sorted->key.len == WB_CONVERT_KEY_BYTES);
    wb_buf_clear(&c->record);
    if (sorted->value.len)
        err = wb_buf_append_slice(&c->record, sorted->value);
    else
        err = wb_convert_record_at(c->convert->source, id, &place, &c->record);
    if (err == 0)
        err = wb_repo_page(wb_buf_slice(&c->record), id, NULL, &page);
    if (err == WB_E_CORRUPT || err == WB_E_NOTFOUND)
        return 0; /* what is not there when its page is made is lost */
    if (err == 0)
        err = wb_vec_push(&c->ops, wb_convert_note_of(c->convert, &page, &place));
    if (err < 0)
        return err;
    c->op_bytes += c->record.len;
    struct wb_repo_copy copy = {
        .id = id, .site = wb_key_site(page.key), .body_bytes = page.body.len, .record = &c->record};
    return wb_repo_copy_add(c->convert->target, &copy);
}

static int store_records(struct sorted_copy *c)
{
    struct wb_pageid id = {0};
    struct wb_table_record record;
    int got = 0, err = wb_sorter_sort(c->records);

    while (err == 0 && (got = wb_sorter_next(c->records, &record)) > 0) {
        struct wb_pageid next = wb_pageid_get(record.key.ptr);
        bool full = c->ops.count >= COMMIT_RECORDS || c->op_bytes >= COMMIT_BYTES;
        if (full && !wb_pageid_equal(id, next))
            err = commit(c);
        id = next;
        if (err == 0)
            err = store_record(c, &record);
    }
    if (err == 0)
        err = got;
    return err < 0 || c->ops.count == 0 ? err : commit(c);
}

/* What all images will amount to: about what the records take in the source, whose blocks are larger. */
static int foresee(struct sorted_copy *c)
{
    struct wb_catalog_rows rows;
    uint64_t bytes = 0;
    int err = wb_catalog_rows_read(&c->convert->source->txn, &rows);

    WB_CHECK(c->convert->target->hash != NULL);
    for (size_t i = 0; i < rows.count; i++) {
        const struct wb_catalog_segment *row = &rows.items[i];
        uint64_t stored = c->convert->source->hash ? row->map_at : row->bytes;
        bytes += stored > row->bytes_dead ? stored - row->bytes_dead : 0;
    }
    wb_catalog_rows_release(&rows);
    c->convert->target->hash->to_come = bytes + bytes / 4;
    return err;
}

int wb_convert_sorted_pages(struct wb_convert *convert)
{
    struct sorted_copy c = {.convert = convert};
    struct wb_sorter_options options = {.dir = convert->target->dir, .memory_bytes = SORT_BYTES};
    struct wb_repo_writer *writer = convert->target->writer;
    struct wb_error_copy why;
    int err = wb_sorter_open(&options, &c.records);

    WB_CHECK(convert->target->hash != NULL);
    WB_CHECK(writer->ops.count == 0);
    if (err == 0)
        err = wb_convert_records(convert->source, sort_record, &c);
    writer->adopt = adopt;
    writer->adopt_context = &c;
    if (err == 0)
        err = foresee(&c);
    if (err == 0)
        err = store_records(&c);
    writer->adopt = NULL;
    writer->adopt_context = NULL;
    convert->target->hash->to_come = 0;
    if (err == 0)
        err = wb_convert_complete(convert);
    if (err < 0)
        wb_error_save(err, &why);
    wb_vec_release(&c.ops);
    wb_vec_release(&c.page);
    wb_buf_release(&c.record);
    wb_sorter_close(c.records);
    return err < 0 ? wb_error_restore(&why) : 0;
}
