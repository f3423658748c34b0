/*
 * hash_get.c - reads single pages from buckets.
 *
 * The latest version of a page is found without the catalog: the bucket has a copy of its entry. Only the root record
 * of the catalog is looked at, whether the rows of the bucket files are still those that we know. If the bucket was
 * written by a commit that is not finished, or that failed, its stamp is greater than the one in the row, and the
 * catalog is asked. So it is if pages were removed while the file could not be written.
 *
 * For other versions, the catalog says which one is meant. In the meantime the bucket may have been changed, and a
 * version that nobody keeps may be gone from it. Then we start again, with what is now the newest state.
 */
#include "base/check.h"
#include "pagefile/hash_store.h"

enum { GET_TRIES = 100 };

struct hash_get {
    struct wb_repo *repo;
    struct wb_pageid id;
    const struct wb_store_when *when; /* NULL: the place is known */
    struct wb_catalog_entry entry;    /* of the version */
    struct wb_buf *record;
    uint64_t state; /* the transaction that was seen last */
};

/* Reads the record of the version whose entry is known. bucket: the one in memory is that of the page, and is current.
 */
static int read_version(struct hash_get *g, const struct wb_catalog_segment *row)
{
    struct wb_hash *hash = g->repo->hash;
    struct wb_bucket_file *file;
    size_t at;
    int err = wb_hash_file(&hash->files, row, &file);

    if (err < 0)
        return err;
    uint64_t number = wb_bucket_of(file, g->id);
    wb_bucket_reader_forget(&hash->reader);
    err = wb_bucket_read(file, number, &hash->bucket);
    if (err == 0 && !wb_bucket_find(&hash->bucket, g->id, &g->entry.place, &at))
        err = wb_bucket_corrupt(file, number, "a page that the catalog knows is not in it");
    return err < 0 ? err : wb_bucket_read_record(&hash->reader, file, &hash->bucket, at, g->record);
}

/* Looks for the latest version without the catalog. Returns 1 if that was not possible. */
static int get_quickly(struct hash_get *g)
{
    struct wb_hash *hash = g->repo->hash;
    const struct wb_catalog_segment *row = wb_hash_row_of_id(&hash->files.rows, g->id);
    struct wb_bucket_file *file;
    size_t at;

    if (!row || row->unwritten)
        return 1;
    int err = wb_hash_file(&hash->files, row, &file);
    if (err < 0)
        return err;
    uint64_t number = wb_bucket_of(file, g->id);
    wb_bucket_reader_forget(&hash->reader);
    err = wb_bucket_read(file, number, &hash->bucket);
    if (err < 0) /* the catalog knows whether there is such a page at all */
        return err == WB_E_CORRUPT ? 1 : err;
    if (hash->bucket.stamp > row->logical_end)
        return 1;
    if (!wb_bucket_find_page(&hash->bucket, g->id, &g->entry))
        return wb_store_not_found();
    bool found = wb_bucket_find(&hash->bucket, g->id, &g->entry.place, &at);
    WB_CHECK(found);
    return wb_bucket_read_record(&hash->reader, file, &hash->bucket, at, g->record);
}

static int get_once(void *context)
{
    struct hash_get *g = context;
    struct wb_hash *hash = g->repo->hash;
    int err = wb_hash_files_refresh(&hash->files, &g->repo->reader);

    WB_CHECK(g->repo->reader.kind >= WB_CATALOG_TXN_AWAKE);
    g->state = wb_catalog_txn_id(&g->repo->reader);
    if (err == 0 && g->when && g->when->kind == WB_STORE_WHEN_LATEST) {
        err = get_quickly(g);
        if (err <= 0)
            return err;
        err = 0;
    }
    if (err == 0 && g->when)
        err = wb_repo_look_up(g->repo, g->id, g->when, &g->entry);
    if (err < 0)
        return err;
    const struct wb_catalog_segment *row = wb_hash_row_of(&hash->files.rows, g->id, &g->entry.place);
    if (!row)
        return wb_catalog_corrupt(g->repo->catalog, WB_CATALOG_SEGMENTS, "a page in a file that is not there");
    return read_version(g, row);
}

/* Repeats it as long as it fails only because the repository is changing. */
static int get_record(struct hash_get *g)
{
    uint64_t before = 0;
    int err = WB_E_CORRUPT;

    for (unsigned i = 0; i < GET_TRIES && err == WB_E_CORRUPT; i++) {
        err = wb_repo_read(g->repo, get_once, g);
        if (err == WB_E_CORRUPT && g->state == before)
            break;
        before = g->state;
    }
    return err;
}

int wb_hash_get(struct wb_repo *repo, struct wb_pageid id, const struct wb_store_when *when, struct wb_page *page_out,
                struct wb_buf *mem_out)
{
    struct hash_get g = {.repo = repo, .id = id, .when = when, .record = mem_out};
    int err = get_record(&g);

    WB_CHECK(err < 0 || g.entry.epoch > 0);
    return err < 0 ? err : wb_repo_page(wb_buf_slice(mem_out), id, &g.entry, page_out);
}

int wb_hash_read_record(struct wb_repo *repo, struct wb_pageid id, const struct wb_catalog_place *place,
                        struct wb_buf *record_out)
{
    struct hash_get g = {.repo = repo, .id = id, .entry = {.place = *place}, .record = record_out};

    WB_CHECK(place->segment > 0);
    return get_record(&g);
}
