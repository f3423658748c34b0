/*
 * hash_get.c - reads single pages from buckets.
 *
 * The latest version of a page is found without the catalog: the bucket has a copy of its entry. Only the root record
 * of the catalog is looked at, whether the rows of the bucket files are still those that we know. If the bucket was
 * written by a commit that is not finished, or that failed, its stamp is greater than the one in the row, and the
 * catalog is asked. So it is if pages were removed while the file could not be written.
 *
 * For other versions, the catalog says which one is meant. In the meantime the bucket may have been changed, and a
 * version that nobody keeps may be gone from it. Then the reader starts again, with what is now the newest state
 * (wb_pagefile_kind.in_place).
 */
#include "base/check.h"
#include "pagefile/hash_store.h"

int wb_hash_read(struct wb_pagefile *files, struct wb_pageid id, const struct wb_catalog_place *place,
                 struct wb_buf *record_out)
{
    struct wb_hash *hash = files->hash;
    struct wb_bucket_file *file;
    size_t at;
    int err = wb_hash_files_refresh(&hash->files, files->reader);

    WB_CHECK(files->reader->kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(place->segment > 0);
    if (err < 0)
        return err;
    const struct wb_catalog_segment *row = wb_hash_row_of(&hash->files.rows, id, place);
    if (!row)
        return wb_catalog_corrupt(files->catalog, WB_CATALOG_SEGMENTS, "a page in a file that is not there");
    err = wb_hash_file(&hash->files, row, &file);
    if (err < 0)
        return err;
    if (files->busy)
        wb_busy_get(files->busy, row->node);
    uint64_t number = wb_bucket_of(file, id);
    wb_bucket_reader_forget(&hash->reader);
    err = wb_bucket_read(file, number, &hash->bucket);
    if (err == 0 && !wb_bucket_find(&hash->bucket, id, place, &at))
        err = wb_bucket_corrupt(file, number, "a page that the catalog knows is not in it");
    return err < 0 ? err : wb_bucket_read_record(&hash->reader, file, &hash->bucket, at, record_out);
}

int wb_hash_read_latest(struct wb_pagefile *files, struct wb_pageid id, struct wb_catalog_entry *entry_out,
                        struct wb_buf *record_out)
{
    struct wb_hash *hash = files->hash;
    struct wb_bucket_file *file;
    size_t at;
    int err = wb_hash_files_refresh(&hash->files, files->reader);

    WB_CHECK(files->reader->kind >= WB_CATALOG_TXN_AWAKE);
    const struct wb_catalog_segment *row = err == 0 ? wb_hash_row_of_id(&hash->files.rows, id) : NULL;
    if (!row || row->unwritten)
        return err < 0 ? err : 1;
    err = wb_hash_file(&hash->files, row, &file);
    if (err < 0)
        return err;
    if (files->busy)
        wb_busy_get(files->busy, row->node);
    uint64_t number = wb_bucket_of(file, id);
    wb_bucket_reader_forget(&hash->reader);
    err = wb_bucket_read(file, number, &hash->bucket);
    if (err < 0) /* the catalog knows whether there is such a page at all */
        return err == WB_E_CORRUPT ? 1 : err;
    if (hash->bucket.stamp > row->logical_end)
        return 1;
    if (!wb_bucket_find_page(&hash->bucket, id, entry_out))
        return WB_E_NOTFOUND;
    bool found = wb_bucket_find(&hash->bucket, id, &entry_out->place, &at);
    WB_CHECK(found);
    return wb_bucket_read_record(&hash->reader, file, &hash->bucket, at, record_out);
}
