/*
 * convert_buckets.c - the records of a repository of the organisation hash that is being copied (convert.h), bucket by
 * bucket. A bucket also has versions that nobody needs any more; the catalog says which ones count. Files, buckets and
 * records that are damaged are passed over.
 */
#include "base/check.h"
#include "move/convert.h"

/* A bucket that is being read. */
struct convert_bucket {
    struct wb_convert_source *source;
    struct wb_bucket_file *file;
    struct wb_pageview view; /* of the page that was looked at last, if `viewed` */
    bool viewed;
    wb_convert_each each;
    void *context;
};

/* Whether a version in the bucket is one that the state has. */
static int is_needed(struct convert_bucket *b, const struct wb_bucket_version *version, bool *needed_out)
{
    struct wb_convert_source *source = b->source;
    int err = 0;

    WB_CHECK(source->txn.kind == WB_CATALOG_TXN_HELD);
    *needed_out = false;
    if (!b->viewed || !wb_pageid_equal(b->view.id, version->id)) {
        err = wb_pageview_load(&source->txn, source->summary.gone > 0, version->id, &b->view);
        b->viewed = err == 0;
    }
    for (size_t i = 0; err == 0 && i < b->view.history.versions.count && !*needed_out; i++)
        *needed_out = wb_catalog_place_equal(&b->view.history.versions.items[i].place, &version->place);
    return err;
}

/* Reads the record of a version, and checks that it is of this page. */
static int read_version(struct wb_convert_source *source, const struct wb_bucket_file *file, size_t at,
                        struct wb_buf *record_out, struct wb_page *page_out)
{
    int err = wb_bucket_read_record(&source->buckets, file, &source->bucket, at, record_out);

    if (err < 0)
        return err;
    err = wb_repo_page(wb_buf_slice(record_out), source->bucket.versions.items[at].id, NULL, page_out);
    if (err != WB_E_CORRUPT)
        return err;
    return wb_bucket_corrupt(file, source->bucket.number, "a record that is not that of its page");
}

static int read_bucket(struct convert_bucket *b, uint64_t number)
{
    struct wb_convert_source *source = b->source;
    bool needed;

    WB_CHECK(number < b->file->count);
    wb_bucket_reader_forget(&source->buckets);
    int err = wb_bucket_read(b->file, number, &source->bucket);
    if (err < 0)
        return err == WB_E_CORRUPT ? 0 : err;
    for (size_t i = 0; err == 0 && i < source->bucket.versions.count; i++) {
        const struct wb_bucket_version *version = &source->bucket.versions.items[i];
        struct wb_convert_record record = {.id = version->id, .place = version->place, .record = &source->record};
        err = is_needed(b, version, &needed);
        if (err < 0 || !needed)
            continue;
        int got = read_version(source, b->file, i, &source->record, &record.page);
        if (got == 0)
            err = b->each(b->context, &record);
        else if (got != WB_E_CORRUPT)
            err = got;
    }
    return err;
}

int wb_convert_bucket_records(struct wb_convert_source *source, wb_convert_each each, void *context)
{
    struct convert_bucket b = {.source = source, .each = each, .context = context};
    int err = wb_hash_files_refresh(&source->files, &source->txn);

    WB_CHECK(source->hash);
    WB_CHECK(each != NULL);
    for (size_t i = 0; err == 0 && i < source->files.rows.count; i++) {
        if (source->files.rows.items[i].live == 0)
            continue;
        err = wb_hash_file(&source->files, &source->files.rows.items[i], &b.file);
        for (uint64_t number = 0; err == 0 && number < b.file->count; number++)
            err = read_bucket(&b, number);
        err = !b.file && err == WB_E_CORRUPT ? 0 : err;
    }
    wb_pageview_release(&b.view);
    return err;
}

int wb_convert_bucket_record_at(struct wb_convert_source *source, struct wb_pageid id,
                                const struct wb_catalog_place *place, struct wb_buf *record_out)
{
    struct wb_bucket_file *file = NULL;
    struct wb_page page;
    size_t at;
    int err = wb_hash_files_refresh(&source->files, &source->txn);
    const struct wb_catalog_segment *row = err == 0 ? wb_hash_row_of(&source->files.rows, id, place) : NULL;

    WB_CHECK(source->hash);
    if (err == 0 && !row)
        err = wb_catalog_corrupt(source->catalog, WB_CATALOG_SEGMENTS, "a page in a file that is not there");
    if (err == 0)
        err = wb_hash_file(&source->files, row, &file);
    wb_bucket_reader_forget(&source->buckets);
    if (err == 0)
        err = wb_bucket_read(file, wb_bucket_of(file, id), &source->bucket);
    if (err == 0 && !wb_bucket_find(&source->bucket, id, place, &at)) {
        (void)wb_bucket_corrupt(file, source->bucket.number, "a page that the catalog knows is not in it");
        err = WB_E_NOTFOUND;
    }
    return err < 0 ? err : read_version(source, file, at, record_out, &page);
}
