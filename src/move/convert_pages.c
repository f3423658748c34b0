/*
 * convert_pages.c - copies the pages of a repository (convert.h), in two passes: one in the order of the disk, and one
 * in the order of page ids, which is that of the catalog and of buckets.
 *
 *                pass 1: each record ...                      pass 2: for each page, ...
 *   into a log       is copied, and it is noted where it went     the notes of its records say what its places are
 *   into buckets     is sorted                                    its records are copied, and it is made in the same
 * commit
 *
 * In a log, pages of one site stay together that way. A bucket is written together with the entries of its pages, and
 * commits in the order of ids go through the buckets in the order of the file.
 *
 * What is sorted is in temporary files without names, in the directory of the copy. Of a very long record only the
 * place is sorted; it is read when its page comes.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/mem.h"
#include "move/convert.h"
#include "table/table.h"

/* How much is sorted in memory, and what is copied or made in one commit. */
struct copy_limits {
    size_t sort_bytes, records, bytes;
};
static const struct copy_limits log_limits = {64 << 20, 50000, 256 << 20};
static const struct copy_limits bucket_limits = {192 << 20, 20000, 48 << 20};

enum {
    COMMIT_PAGES = 20000,       /* that are made in one commit of a log ... */
    COMMIT_NOTES = 100000,      /* ... and their records */
    SORTED_BYTES_MAX = 4 << 20, /* of a record that is sorted with its bytes */
    NOTE_BYTES = WB_CONVERT_PLACE_BYTES + 4 + 8 + 8 + 2,
};

/* What wb_convert_adopt() counts. */
struct convert_tally {
    uint64_t latest, gone, lost, lost_pages;
    size_t lost_sites;
};

struct page_copy {
    struct wb_convert *convert;
    const struct copy_limits *limits;
    struct wb_sorter *sorter;           /* of notes, or of records */
    WB_VEC(struct wb_convert_note) ops; /* one for each op of the writer */
    uint64_t op_bytes;
    WB_VEC(struct wb_convert_note) page; /* the notes of one page */
    struct wb_repo_edit edit;            /* log: the transaction in which pages are made ... */
    size_t pages, noted;                 /* ... and how many there are */
    struct wb_buf record;                /* buckets: one that was sorted; ... */
    struct convert_tally before;         /* ... before the commit under way; ... */
    size_t attempt;                      /* ... of that commit */
};

/* ---- copying records ---------------------------------------------------------------------------------------- */

/* Hands a record to the writer. */
static int copy_record(struct page_copy *c, struct wb_pageid id, const struct wb_catalog_place *place,
                       const struct wb_page *page, struct wb_buf *record)
{
    struct wb_repo_copy copy = {
        .id = id, .site = wb_key_site(page->key), .body_bytes = page->body.len, .record = record};
    int err = wb_vec_push(&c->ops, wb_convert_note_of(c->convert, page, place));

    c->op_bytes += record->len;
    return err < 0 ? err : wb_repo_copy_add(c->convert->target, &copy);
}

static bool is_full(const struct page_copy *c)
{
    return c->ops.count >= c->limits->records || c->op_bytes >= c->limits->bytes;
}

/* Commits the records that were copied. */
static int commit_records(struct page_copy *c)
{
    struct wb_store_commit_counts ignored = {0};
    uint64_t count = c->ops.count;
    int err = wb_repo_commit(&c->convert->target->store, &ignored);

    wb_vec_clear(&c->ops);
    c->op_bytes = 0;
    return err < 0 ? err : wb_convert_progress(c->convert, count);
}

static void put_key(struct wb_pageid id, const struct wb_catalog_place *place, char key[WB_CONVERT_KEY_BYTES])
{
    wb_pageid_put(id, key);
    wb_convert_place_put(place, key + WB_PAGEID_BYTES);
}

/* ---- into a log --------------------------------------------------------------------------------------------- */

static int add_note(struct page_copy *c, const struct wb_put *put, const struct wb_convert_note *note)
{
    char key[WB_CONVERT_KEY_BYTES], value[NOTE_BYTES], *rest = value + WB_CONVERT_PLACE_BYTES;

    WB_CHECK(put->placed);
    put_key(put->id, &note->from, key);
    wb_convert_place_put(&put->place, value);
    wb_put32(rest, put->stored_bytes);
    wb_put64(rest + 4, note->content);
    wb_put64(rest + 12, (uint64_t)note->time_ms);
    wb_put16(rest + 20, note->lifetime);
    return wb_sorter_add(c->sorter, wb_slice(key, sizeof key), wb_slice(value, sizeof value));
}

static struct wb_convert_note get_note(const struct wb_table_record *record)
{
    const char *rest = record->value.ptr + WB_CONVERT_PLACE_BYTES;

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

/* Commits the records that were copied, and notes where they are. */
static int commit_and_note(struct page_copy *c)
{
    struct wb_repo *target = c->convert->target;
    int err = wb_pagefile_flush(&target->files);

    WB_CHECK(target->writer->files.puts.count == c->ops.count || err < 0);
    for (size_t i = 0; i < c->ops.count && err == 0; i++)
        err = add_note(c, &target->writer->files.puts.items[i], &c->ops.items[i]);
    return err < 0 ? err : commit_records(c);
}

static int copy_and_note(void *context, const struct wb_pagefile_record *record)
{
    struct page_copy *c = context;
    int err = copy_record(c, record->id, &record->place, &record->page, record->record);

    c->convert->counts.bytes += record->page.body.len;
    return err == 0 && is_full(c) ? commit_and_note(c) : err;
}

static int end_transaction(struct page_copy *c)
{
    uint64_t pages = c->pages;
    int err = c->edit.txn.kind == WB_CATALOG_TXN_WRITING ? wb_repo_edit_end(&c->edit) : 0;

    if (err == 0 && pages)
        c->convert->target->writer->files.commit = c->edit.summary.commit;
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

/* ---- into buckets ------------------------------------------------------------------------------------------- */

static int sort_record(void *context, const struct wb_pagefile_record *record)
{
    struct page_copy *c = context;
    char key[WB_CONVERT_KEY_BYTES];
    struct wb_slice bytes = wb_buf_slice(record->record);

    put_key(record->id, &record->place, key);
    c->convert->counts.bytes += record->page.body.len;
    if (bytes.len > SORTED_BYTES_MAX)
        bytes.len = 0;
    int err = wb_sorter_add(c->sorter, wb_slice(key, sizeof key), bytes);
    return err < 0 ? err : wb_convert_progress(c->convert, 1);
}

/* The commit is repeated without a node that has failed: pages that were adopted in vain do not count. */
static void start_again(struct page_copy *c)
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
    struct page_copy *c = context;
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

static int commit_pages(struct page_copy *c)
{
    const struct wb_convert *convert = c->convert;

    c->before = (struct convert_tally){convert->latest, convert->gone, convert->counts.lost, convert->counts.lost_pages,
                                       convert->lost_sites.count};
    c->attempt = 0;
    return commit_records(c);
}

/* Copies a record that was sorted. What is not there when its page is made is lost. */
static int copy_sorted(struct page_copy *c, struct wb_pageid id, const struct wb_table_record *sorted)
{
    struct wb_catalog_place place = wb_convert_place_get(sorted->key.ptr + WB_PAGEID_BYTES);
    struct wb_pagefile *source = &c->convert->source->files;
    struct wb_page page;
    int err;

    wb_buf_clear(&c->record);
    if (sorted->value.len)
        err = wb_buf_append_slice(&c->record, sorted->value);
    else
        err = source->kind->read(source, id, &place, &c->record);
    if (err == 0)
        err = wb_pagefile_page(wb_buf_slice(&c->record), id, NULL, &page);
    if (err == WB_E_CORRUPT)
        return 0;
    return err < 0 ? err : copy_record(c, id, &place, &page, &c->record);
}

/* What all images will amount to: about what the records take in the source, whose blocks are larger. */
static int foresee(struct wb_convert *convert)
{
    const struct wb_pagefile_kind *kind = convert->source->files.kind;
    struct wb_catalog_rows rows;
    uint64_t bytes = 0;
    int err = wb_catalog_rows_read(&convert->source->txn, &rows);

    for (size_t i = 0; i < rows.count; i++) {
        const struct wb_catalog_segment *row = &rows.items[i];
        uint64_t stored = kind->used_bytes ? kind->used_bytes(row) : row->bytes;
        bytes += stored > row->bytes_dead ? stored - row->bytes_dead : 0;
    }
    wb_catalog_rows_release(&rows);
    convert->target->files.to_come = bytes + bytes / 4;
    return err;
}

/* ---- both --------------------------------------------------------------------------------------------------- */

/* Pass 2: takes what was sorted, page by page. */
static int take_sorted(struct page_copy *c, bool buckets)
{
    struct wb_pageid id = {0};
    struct wb_table_record record;
    bool any = false;
    int got = 0, err = wb_sorter_sort(c->sorter);

    while (err == 0 && (got = wb_sorter_next(c->sorter, &record)) > 0) {
        struct wb_pageid next = wb_pageid_get(record.key.ptr);
        WB_CHECK(record.key.len == WB_CONVERT_KEY_BYTES);
        if (any && !wb_pageid_equal(id, next)) /* a page is never divided */
            err = !buckets ? make_page(c, id) : is_full(c) ? commit_pages(c) : 0;
        id = next;
        any = true;
        if (err == 0)
            err = buckets ? copy_sorted(c, id, &record) : wb_vec_push(&c->page, get_note(&record));
    }
    err = err < 0 ? err : got;
    if (err < 0 || !any)
        return err;
    if (buckets)
        return c->ops.count ? commit_pages(c) : 0;
    err = make_page(c, id);
    return err < 0 ? err : end_transaction(c);
}

static int copy_pages(struct page_copy *c, bool buckets)
{
    struct wb_convert *convert = c->convert;
    struct wb_pagefile *source = &convert->source->files;
    struct wb_sorter_options options = {.dir = convert->target->dir, .memory_bytes = c->limits->sort_bytes};
    int err = wb_sorter_open(&options, &c->sorter);

    if (err == 0)
        err = source->kind->each_record(source, buckets ? sort_record : copy_and_note, c);
    if (err == 0 && c->ops.count)
        err = commit_and_note(c);
    if (err == 0 && buckets)
        err = foresee(convert);
    if (buckets) {
        convert->target->writer->adopt = adopt;
        convert->target->writer->adopt_context = c;
    }
    if (err == 0)
        err = take_sorted(c, buckets);
    convert->target->writer->adopt = NULL;
    convert->target->writer->adopt_context = NULL;
    if (buckets)
        convert->target->files.to_come = 0;
    return err < 0 ? err : wb_convert_complete(convert);
}

int wb_convert_pages(struct wb_convert *convert)
{
    bool buckets = convert->target->files.kind->places_at_commit;
    struct page_copy c = {.convert = convert, .limits = buckets ? &bucket_limits : &log_limits};
    struct wb_error_copy why;

    WB_CHECK(convert->target->writer->ops.count == 0);
    int err = copy_pages(&c, buckets);
    wb_error_save(err, &why);
    wb_catalog_txn_abort(&c.edit.txn);
    wb_repo_edit_release(&c.edit);
    wb_vec_release(&c.ops);
    wb_vec_release(&c.page);
    wb_buf_release(&c.record);
    wb_sorter_close(c.sorter);
    return err < 0 ? wb_error_restore(&why) : 0;
}
