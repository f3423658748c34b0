/*
 * hash_lost.c - buckets that cannot be read. One of them must not keep the others from being changed, nor new pages
 * from being stored in it. The catalog knows which versions are in a bucket; only their bytes are lost. So a commit
 * that has to write such a bucket takes its list of versions from the catalog, and keeps the damaged bytes in an extent
 * to which these versions point (bucket_kept.c). A get of one of them says so, and verify reports it, until the page is
 * replaced or removed.
 *
 * A version that the current transaction ends is listed too: the image serves the state before the commit as well.
 *
 * A disk may also lose a write, so that an older image is in its bucket, which looks good. Then versions that the
 * catalog knows are missing; a merge notices that when it counts them, and goes through the file once more.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "pagefile/hash_store.h"

#include <stdio.h>
#include <stdlib.h>

enum {
    DAMAGES_MAX = 1000, /* that are remembered with their messages */
    LOST_SLOT = 0xffff, /* of a version that is in no block: no block gets so far (bucket_draft.c) */
};

/* ---- what is to be reported ------------------------------------------------------------------------------- */

/* The last damage that was noted, if it is that of this bucket. */
static struct wb_hash_damage *last_damage(struct wb_hash_edit *hash, const struct wb_bucket_file *file, uint64_t number)
{
    struct wb_hash_damage *last = hash->damages.count ? &hash->damages.items[hash->damages.count - 1] : NULL;

    WB_CHECK(file->magic == WB_BUCKET_FILE_MAGIC);
    return last && last->file == file->number && last->revision == file->revision && last->bucket == number ? last
                                                                                                            : NULL;
}

int wb_hash_damage_note(struct wb_hash_edit *hash, const struct wb_bucket_file *file, uint64_t number, uint64_t lost)
{
    WB_CHECK(number < file->count);
    struct wb_hash_damage damage = {.file = file->number, .revision = file->revision, .bucket = number, .lost = lost};
    struct wb_hash_damage *last = last_damage(hash, file, number);

    if (last)
        last->lost += lost;
    if (last || hash->damages.count == DAMAGES_MAX)
        return 0;
    damage.at = wb_bucket_at(file, number);
    snprintf(damage.why, sizeof damage.why, "%s", wb_error_message());
    return wb_vec_push(&hash->damages, damage);
}

uint64_t wb_hash_damage_tell(const struct wb_hash_edit *hash, wb_store_found found, void *context)
{
    char message[WB_ERROR_MESSAGE_MAX + 128], name[WB_SEGMENT_NAME_MAX];
    uint64_t stay = 0;

    for (size_t i = 0; i < hash->damages.count; i++) {
        const struct wb_hash_damage *damage = &hash->damages.items[i];
        WB_CHECK(damage->why[0] != '\0');
        if (damage->lost)
            snprintf(message, sizeof message,
                     "%s; %llu versions of pages were in it, and what is left of them was kept", damage->why,
                     (unsigned long long)damage->lost);
        else
            snprintf(message, sizeof message, "%s; no page needs these bytes, which were dropped", damage->why);
        stay += damage->lost > 0;
        wb_bucket_name(damage->file, damage->revision, name);
        if (found)
            found(context, &(struct wb_store_finding){damage->lost > 0, name, damage->at, message});
    }
    return stay;
}

/* ---- what the catalog knows about a bucket ------------------------------------------------------------------ */

/* Whether the file of a row has this version of a page, or would have it. */
static bool is_in(const struct wb_catalog_segment *row, struct wb_pageid id, const struct wb_catalog_place *place)
{
    WB_CHECK(row->number > 0);
    return wb_catalog_segment_origin(row) == place->segment && wb_catalog_range_has(&row->range, id);
}

/* Whether the transaction brings this version: then its bytes are not lost, and it is added with them. */
static bool is_new(const struct wb_hash_note *notes, size_t count, struct wb_pageid id,
                   const struct wb_catalog_place *place)
{
    for (size_t i = wb_hash_note_seek(notes, count, id); i < count && wb_pageid_equal(notes[i].id, id); i++)
        if (notes[i].kind == WB_HASH_NOTE_PUT && wb_catalog_place_equal(&notes[i].place, place))
            return true;
    return false;
}

/* What is added to the bucket in memory. */
struct lost_pages {
    struct wb_pagefile_edit *edit;
    const struct wb_hash_target *target;
    struct wb_bucket *bucket;
};

/* Adds what the catalog knows of one page. */
static int add_page(void *context, struct wb_pageview *view)
{
    struct lost_pages *lost = context;
    const struct wb_hash_target *target = lost->target;
    const struct wb_hash_note *notes = target->count ? lost->edit->hash->notes.items + target->first : NULL;
    const struct wb_catalog_segment *row = &lost->edit->rows[target->number];
    struct wb_pageid id = view->id;
    struct wb_catalog_entry entry;
    int err = 0;

    for (size_t i = 0; i < view->history.versions.count && err == 0; i++) {
        const struct wb_history_version *version = &view->history.versions.items[i];
        if (is_in(row, id, &version->place) && !is_new(notes, target->count, id, &version->place))
            err = wb_vec_push(
                &lost->bucket->versions,
                (struct wb_bucket_version){
                    .id = id, .place = version->place, .block_slot = LOST_SLOT, .stored_bytes = version->stored_bytes});
    }
    if (err < 0 || !wb_history_latest(&view->history))
        return err;
    wb_pageview_entry(view, &entry);
    if (!is_in(row, id, &entry.place) || is_new(notes, target->count, id, &entry.place))
        return 0;
    return wb_vec_push(&lost->bucket->pages, (struct wb_bucket_page){id, entry});
}

/* Adds what the catalog knows of all pages of a bucket. */
static int add_pages(struct wb_pagefile_edit *edit, const struct wb_hash_target *target,
                     const struct wb_bucket_file *file, uint64_t number)
{
    struct lost_pages lost = {edit, target, &edit->files->hash->bucket};
    struct wb_pageid first = {.hi = number ? wb_bucket_edge(file, number - 1) + 1 : file->range.prefix};
    struct wb_pageid last = {wb_bucket_edge(file, number), UINT64_MAX};

    WB_CHECK(edit->txn->kind == WB_CATALOG_TXN_WRITING);
    return wb_pageview_each(edit->txn, first, last, add_page, &lost);
}

/* Adds the versions that this transaction ends, which the state before still has. */
static int add_ended(struct wb_pagefile_edit *edit, const struct wb_hash_target *target,
                     const struct wb_bucket_file *file, struct wb_bucket *bucket)
{
    const struct wb_hash_note *notes = target->count ? edit->hash->notes.items + target->first : NULL;
    int err = 0;

    WB_CHECK(bucket->number < file->count);
    for (size_t i = 0; i < target->count && err == 0; i++)
        if (notes[i].kind == WB_HASH_NOTE_DEAD && wb_bucket_of(file, notes[i].id) == bucket->number)
            err = wb_vec_push(
                &bucket->versions,
                (struct wb_bucket_version){.id = notes[i].id, .place = notes[i].place, .block_slot = LOST_SLOT});
    return err;
}

/* Of two that are the same, the one comes first that was read. */
static int compare_versions(const void *a, const void *b)
{
    const struct wb_bucket_version *x = a, *y = b;
    int order = wb_bucket_version_compare(x, y->id, &y->place);

    return order ? order : (x->block_slot == LOST_SLOT) - (y->block_slot == LOST_SLOT);
}

/* Sorts the versions, each once: contents that return have one place, and one that was read is known, too. */
static void sort_versions(struct wb_bucket *bucket)
{
    struct wb_bucket_version *versions = bucket->versions.items;
    size_t kept = 0;

    if (bucket->versions.count > 1)
        qsort(versions, bucket->versions.count, sizeof *versions, compare_versions);
    for (size_t i = 0; i < bucket->versions.count; i++)
        if (kept == 0 || wb_bucket_version_compare(&versions[kept - 1], versions[i].id, &versions[i].place) != 0)
            versions[kept++] = versions[i];
    WB_CHECK(kept <= bucket->versions.count);
    bucket->versions.count = kept;
}

/* A bucket without anything. */
static void clear_bucket(struct wb_bucket *bucket, uint64_t number)
{
    wb_vec_clear(&bucket->versions);
    wb_vec_clear(&bucket->pages);
    wb_vec_clear(&bucket->index.entries);
    wb_vec_clear(&bucket->index.frames);
    wb_buf_clear(&bucket->image);
    bucket->number = number;
    bucket->block_at = 0;
    bucket->overflow_at = bucket->overflow_bytes = 0;
}

int wb_hash_lost_read(struct wb_pagefile_edit *edit, const struct wb_hash_target *target,
                      const struct wb_bucket_file *file, uint64_t number)
{
    struct wb_hash *own = edit->files->hash;
    struct wb_bucket *bucket = &own->bucket;

    WB_CHECK(number < file->count);
    WB_CHECK(edit->rows[target->number].number == target->number);
    int err = wb_hash_damage_note(edit->hash, file, number, 0);
    if (err == 0)
        err = wb_bucket_read_bytes(file, number, &edit->hash->damaged);
    clear_bucket(bucket, number);
    wb_bucket_reader_forget(&own->reader);
    if (err == 0)
        err = add_pages(edit, target, file, number);
    if (err == 0)
        err = add_ended(edit, target, file, bucket);
    sort_versions(bucket);
    return err;
}

int wb_hash_lost_add(struct wb_pagefile_edit *edit, const struct wb_hash_target *target,
                     const struct wb_bucket_file *file)
{
    struct wb_bucket *bucket = &edit->files->hash->bucket;
    size_t copies = bucket->pages.count;

    WB_CHECK(target->judge); /* the copies of entries are not looked at */
    int err = add_pages(edit, target, file, bucket->number);
    bucket->pages.count = copies;
    sort_versions(bucket);
    return err;
}

int wb_hash_set_aside(struct wb_pagefile_edit *edit, const struct wb_hash_target *target,
                      const struct wb_bucket_file *file, uint64_t number, uint64_t *end)
{
    struct wb_bucket *bucket = &edit->files->hash->bucket;
    struct wb_bucket_origin origin = {file->key, number, wb_bucket_at(file, number)};
    uint64_t at = *end, bytes;
    int err = wb_hash_lost_read(edit, target, file, number);

    WB_CHECK(at >= wb_bucket_extents_at(file));
    if (err < 0 || bucket->versions.count == 0)
        return err;
    err = wb_bucket_keep(file, &origin, wb_buf_slice(&edit->hash->damaged), end, &bytes);
    for (size_t i = 0; i < bucket->versions.count && err == 0; i++) {
        bucket->versions.items[i].block_slot = 0;
        bucket->versions.items[i].extent_at = at;
        bucket->versions.items[i].extent_bytes = bytes;
    }
    return err < 0 ? err : wb_hash_damage_note(edit->hash, file, number, bucket->versions.count);
}
