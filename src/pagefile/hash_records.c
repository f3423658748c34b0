/*
 * hash_records.c - the records of all versions of a state, bucket by bucket (wb_pagefile_kind.each_record). A bucket
 * also has versions that nobody needs any more; the catalog says which ones count. Files, buckets and records that are
 * damaged are passed over.
 */
#include "base/check.h"
#include "pagefile/hash_store.h"

/* A bucket that is being read. */
struct bucket_records {
    struct wb_pagefile *files;
    struct wb_bucket_file *file;
    struct wb_pageview view; /* of the page that was looked at last, if `viewed` */
    bool viewed, any_gone;
    struct wb_buf record;
    wb_pagefile_each_record each;
    void *context;
};

/* Whether a version in the bucket is one that the state has. */
static int is_needed(struct bucket_records *b, const struct wb_bucket_version *version, bool *needed_out)
{
    int err = 0;

    if (!b->viewed || !wb_pageid_equal(b->view.id, version->id)) {
        err = wb_pageview_load(b->files->reader, b->any_gone, version->id, &b->view);
        b->viewed = err == 0;
    }
    *needed_out = err == 0 && wb_pageview_has(&b->view, &version->place);
    return err;
}

static int read_bucket(struct bucket_records *b, uint64_t number)
{
    struct wb_hash *hash = b->files->hash;
    bool needed;

    wb_bucket_reader_forget(&hash->reader);
    int err = wb_bucket_read(b->file, number, &hash->bucket);
    if (err < 0)
        return err == WB_E_CORRUPT ? 0 : err;
    for (size_t i = 0; err == 0 && i < hash->bucket.versions.count; i++) {
        const struct wb_bucket_version *version = &hash->bucket.versions.items[i];
        struct wb_pagefile_record record = {.id = version->id, .place = version->place, .record = &b->record};
        err = is_needed(b, version, &needed);
        if (err < 0 || !needed)
            continue;
        int got = wb_bucket_read_record(&hash->reader, b->file, &hash->bucket, i, &b->record);
        if (got == 0)
            got = wb_pagefile_page(wb_buf_slice(&b->record), version->id, NULL, &record.page);
        if (got == 0)
            err = b->each(b->context, &record);
        else if (got != WB_E_CORRUPT)
            err = got;
    }
    return err;
}

int wb_hash_each_record(struct wb_pagefile *files, wb_pagefile_each_record each, void *context)
{
    struct bucket_records b = {.files = files, .each = each, .context = context};
    struct wb_hash_files *open = &files->hash->files;
    struct wb_catalog_summary summary;
    int err = wb_catalog_summary_get(files->reader, &summary);

    WB_CHECK(files->reader->kind == WB_CATALOG_TXN_HELD);
    if (err == 0)
        err = wb_hash_files_refresh(open, files->reader);
    b.any_gone = err == 0 && summary.gone > 0;
    for (size_t i = 0; err == 0 && i < open->rows.count; i++) {
        if (open->rows.items[i].live == 0)
            continue;
        err = wb_hash_file(open, &open->rows.items[i], &b.file);
        for (uint64_t number = 0; err == 0 && number < b.file->count; number++)
            err = read_bucket(&b, number);
        err = !b.file && err == WB_E_CORRUPT ? 0 : err;
    }
    wb_pageview_release(&b.view);
    wb_buf_release(&b.record);
    return err;
}
