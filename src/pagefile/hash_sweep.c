/*
 * hash_sweep.c - changes buckets in place: the buckets that a commit concerns, in the order of the file.
 *
 * A new image serves two states of the catalog, that before the commit and that after it. So versions that die with
 * this commit stay in their buckets, flagged with its stamp; the next sweep that comes by drops them. New versions may
 * turn out to belong to no state, if the commit fails; then its stamp is greater than the one in the row of the file,
 * and the next transaction repairs the buckets (wb_hash_repair), which the double-write file lists.
 */
#include "base/check.h"
#include "base/mem.h"
#include "pagefile/hash_store.h"
#include "place/place.h"

#include <stdlib.h>

static int compare_pages(const void *a, const void *b)
{
    return wb_pageid_compare(((const struct wb_bucket_page *)a)->id, ((const struct wb_bucket_page *)b)->id);
}

static bool has_note(const struct wb_hash_note *notes, size_t count, struct wb_pageid id)
{
    size_t at = wb_hash_note_seek(notes, count, id);

    return at < count && wb_pageid_equal(notes[at].id, id);
}

/* The copies in the new image: the old ones, except of pages that are noted, and the noted ones. */
static int change_pages(struct wb_pagefile_edit *edit, const struct wb_bucket *old, const struct wb_hash_note *notes,
                        size_t count)
{
    struct wb_bucket_pages *pages = &edit->files->hash->draft.bucket.pages;
    int err = 0;

    WB_CHECK(pages->count == 0);
    for (size_t i = 0; i < old->pages.count && err == 0; i++)
        if (!has_note(notes, count, old->pages.items[i].id))
            err = wb_vec_push(pages, old->pages.items[i]);
    for (size_t i = 0; i < count && err == 0; i++)
        if (notes[i].kind == WB_HASH_NOTE_COPY)
            err = wb_vec_push(pages, (struct wb_bucket_page){notes[i].id, edit->hash->entries.items[notes[i].index]});
    if (err == 0 && pages->count > 1)
        qsort(pages->items, pages->count, sizeof *pages->items, compare_pages);
    return err;
}

/* Applies the notes of one bucket to it: flags versions, and adds new ones to the draft. */
static int apply_notes(struct wb_pagefile_edit *edit, struct wb_hash_target *target, struct wb_bucket *old,
                       const struct wb_hash_note *notes, size_t count)
{
    WB_CHECK(count > 0);
    struct wb_catalog_entry latest;
    int err = change_pages(edit, old, notes, count);
    size_t at;

    for (size_t i = 0; i < count && err == 0; i++) {
        if (notes[i].kind == WB_HASH_NOTE_DEAD && wb_bucket_find(old, notes[i].id, &notes[i].place, &at)) {
            old->versions.items[at].dead = target->stamp;
        } else if (notes[i].kind == WB_HASH_NOTE_PUT) {
            bool is_latest = wb_bucket_find_page(&edit->files->hash->draft.bucket, notes[i].id, &latest) &&
                             wb_catalog_place_equal(&latest.place, &notes[i].place);
            err = wb_hash_add_put(edit, &notes[i], !is_latest, &edit->files->hash->draft, &edit->hash->arena);
        }
    }
    return err;
}

/* Keeps the counters of the file's row. */
static void count_change(struct wb_catalog_segment *row, const struct wb_bucket *old, const struct wb_bucket *new,
                         const bool *drop, uint64_t dead_bytes)
{
    uint64_t dropped = 0, freed = 0;

    WB_CHECK(row->number > 0);
    for (size_t i = 0; i < old->versions.count; i++)
        if (drop[i]) {
            dropped++;
            freed += old->versions.items[i].stored_bytes;
        }
    row->map_at += new->image.len;
    row->map_at -= row->map_at > old->image.len ? old->image.len : row->map_at;
    row->bytes_dead -= row->bytes_dead > freed ? freed : row->bytes_dead;
    row->bytes_dead += dead_bytes;
    row->pages -= row->pages - row->live > dropped ? dropped : row->pages - row->live;
}

/* Makes the new image of one bucket and adds it to the sweep. */
static int change_bucket(struct wb_pagefile_edit *edit, struct wb_bucket_sweep *sweep, struct wb_catalog_segment *row,
                         const struct wb_bucket *old)
{
    struct wb_bucket_draft *draft = &edit->files->hash->draft;
    uint64_t dead_bytes = 0;
    int err = wb_bucket_draft_change(draft, old, edit->hash->drop.items, &dead_bytes);

    if (err == 0)
        err = wb_bucket_sweep_add(sweep, &draft->bucket);
    if (err == 0)
        count_change(row, old, &draft->bucket, edit->hash->drop.items, dead_bytes);
    return err;
}

/* The end of a sweep: it is on disk, and the row says so. */
static int end_sweep(struct wb_pagefile_edit *edit, struct wb_bucket_sweep *sweep, struct wb_hash_target *target)
{
    struct wb_catalog_segment *row;
    int err = sweep->buckets.count ? wb_bucket_sweep_end(sweep) : 0;

    if (err == 0)
        err = wb_pagefile_edit_row(edit, target->number, &row);
    if (err < 0)
        return err;
    WB_CHECK(row->logical_end < target->stamp);
    row->logical_end = target->stamp++;
    row->bytes = target->end = sweep->end;
    return 0;
}

/* Makes the new image of the bucket in memory, in which the notes change something. */
static int rewrite_bucket(struct wb_pagefile_edit *edit, struct wb_bucket_sweep *sweep, struct wb_hash_target *target,
                          const struct wb_hash_note *notes, size_t count)
{
    struct wb_hash *own = edit->files->hash;
    int err = wb_vec_reserve(&edit->hash->drop, own->bucket.versions.count + 1);

    WB_CHECK(count > 0);
    if (err < 0)
        return err;
    wb_arena_clear(&edit->hash->arena);
    for (size_t i = 0; i < own->bucket.versions.count; i++) /* dead since a commit that succeeded */
        edit->hash->drop.items[i] = own->bucket.versions.items[i].dead != 0;
    wb_bucket_draft_begin(&own->draft, sweep->file, &sweep->end, own->bucket.number, target->stamp);
    err = apply_notes(edit, target, &own->bucket, notes, count);
    return err < 0 ? err : change_bucket(edit, sweep, &edit->rows[target->number], &own->bucket);
}

/* Changes the bucket of some notes. One that is damaged loses the pages that were in it, but takes new ones. */
static int sweep_bucket(struct wb_pagefile_edit *edit, struct wb_bucket_sweep *sweep, struct wb_hash_target *target,
                        const struct wb_hash_note *notes, size_t count)
{
    struct wb_hash *own = edit->files->hash;
    uint64_t number = wb_bucket_of(sweep->file, notes[0].id);

    WB_CHECK(count > 0);
    wb_bucket_reader_forget(&own->reader);
    int err = wb_bucket_read(sweep->file, number, &own->bucket);
    if (err == 0)
        err = rewrite_bucket(edit, sweep, target, notes, count);
    if (err != WB_E_CORRUPT)
        return err;
    err = wb_hash_set_aside(edit, target, sweep->file, number, &sweep->end);
    return err < 0 ? err : rewrite_bucket(edit, sweep, target, notes, count);
}

/* Changes all buckets that the notes concern. *stored_out: how many versions are new. */
static int sweep_buckets(struct wb_pagefile_edit *edit, struct wb_bucket_sweep *sweep, struct wb_hash_target *target,
                         uint64_t *stored_out)
{
    const struct wb_hash_note *notes = edit->hash->notes.items + target->first;
    int err = 0;

    WB_CHECK(target->count > 0);
    *stored_out = 0;
    for (size_t i = 0, next; i < target->count && err == 0; i = next) {
        uint64_t number = wb_bucket_of(sweep->file, notes[i].id);
        for (next = i; next < target->count && wb_bucket_of(sweep->file, notes[next].id) == number; next++)
            *stored_out += notes[next].kind == WB_HASH_NOTE_PUT;
        err = sweep_bucket(edit, sweep, target, notes + i, next - i);
    }
    return err;
}

/* The file of a target, which was claimed. WB_E_DOWN if its node is read-only. */
static int claim_file(struct wb_pagefile_edit *edit, struct wb_hash_target *target, struct wb_bucket_file **file_out)
{
    struct wb_node *node;
    int err = wb_nodes_find_to_write(edit->files->nodes, edit->rows[target->number].node, &node);

    WB_CHECK(target->exists);
    if (err == 0)
        err = wb_hash_target_file(edit, target, file_out);
    if (err == 0 && !(*file_out)->write) /* it has changed since we looked */
        err = wb_fail(WB_E_DOWN, "node %u cannot be written", edit->rows[target->number].node);
    return err < 0 ? err : wb_bucket_file_claim(*file_out);
}

int wb_hash_sweep(struct wb_pagefile_edit *edit, struct wb_hash_target *target)
{
    struct wb_catalog_segment *row = &edit->rows[target->number];
    struct wb_bucket_sweep sweep = {0};
    struct wb_bucket_file *file;
    uint64_t stored = 0;
    int err = claim_file(edit, target, &file);

    WB_CHECK(target->count > 0);
    if (err < 0)
        return err;
    wb_bucket_sweep_begin(&sweep, file, target->stamp, target->end);
    err = sweep_buckets(edit, &sweep, target, &stored);
    if (err == 0)
        err = end_sweep(edit, &sweep, target);
    if (err == 0) { /* puts that were given places, but refused */
        WB_CHECK(target->placed >= stored);
        uint64_t refused = target->placed - stored;
        row->pages = row->pages - row->live > refused ? row->pages - refused : row->live;
    }
    wb_bucket_sweep_release(&sweep);
    wb_bucket_file_release(file);
    return err;
}

/* ---- repairing --------------------------------------------------------------------------------------------------- */

/* Copies torn buckets back from the double-write file, before anybody writes to that. */
static int restore_torn(const struct wb_bucket_file *file, const struct wb_bucket_swept *swept,
                        struct wb_bucket *bucket)
{
    char *image = wb_alloc(file->bucket_bytes);
    int err = image ? 0 : WB_E_NOMEM;

    WB_CHECK(swept->buckets.count > 0);
    for (size_t i = 0; i < swept->buckets.count && err == 0; i++) {
        uint64_t number = swept->buckets.items[i];
        err = wb_bucket_read_strictly(file, number, bucket);
        if (err != WB_E_CORRUPT)
            continue;
        err = wb_bucket_read(file, number, bucket); /* is the other copy good? */
        if (err == 0)
            err = wb_bucket_swept_image(file, number, image);
        if (err == 0)
            err = wb_node_file_write_at(&file->file, wb_bucket_at(file, number), image, file->bucket_bytes);
        err = err == WB_E_CORRUPT || err == WB_E_NOTFOUND ? 0 : err; /* damaged in both places: others report that */
    }
    /* Those that can be read may be in memory only, if the writer was killed: the other copy is about to go. */
    if (err == 0)
        err = wb_node_file_sync(&file->file);
    wb_free(image);
    return err;
}

/* What the catalog says about the versions of a bucket: which ones stay, and the copies of the entries. */
static int judge_bucket(struct wb_pagefile_edit *edit, const struct wb_hash_target *target, struct wb_bucket *old)
{
    struct wb_bucket_pages *pages = &edit->files->hash->draft.bucket.pages;
    int err = wb_vec_reserve(&edit->hash->drop, old->versions.count + 1);

    for (size_t i = 0; i < old->versions.count && err == 0; i++) {
        struct wb_bucket_version *version = &old->versions.items[i];
        if (i == 0 || !wb_pageid_equal(version->id, (version - 1)->id)) {
            struct wb_catalog_entry entry;
            bool there;
            err = wb_hash_judge(edit, target->number, version->id, &entry, &there);
            if (err == 0 && there)
                err = wb_vec_push(pages, (struct wb_bucket_page){version->id, entry});
        }
        version->dead = 0;
        edit->hash->drop.items[i] = !wb_pageview_has(&edit->hash->view, &version->place);
    }
    return err;
}

/* Repairs all buckets of an interrupted sweep. */
static int repair_buckets(struct wb_pagefile_edit *edit, struct wb_bucket_sweep *sweep, struct wb_hash_target *target,
                          const struct wb_bucket_swept *swept)
{
    struct wb_catalog_segment *row = &edit->rows[target->number];
    struct wb_hash *own = edit->files->hash;
    int err = 0;

    WB_CHECK(swept->buckets.count > 0);
    for (size_t i = 0; i < swept->buckets.count && err == 0; i++) {
        uint64_t number = swept->buckets.items[i];
        wb_bucket_reader_forget(&own->reader);
        err = wb_bucket_read(sweep->file, number, &own->bucket);
        if (err == WB_E_CORRUPT) { /* it stays as it is, and a reader of it is told */
            err = 0;
            continue;
        }
        if (err < 0)
            break;
        wb_bucket_draft_begin(&own->draft, sweep->file, &sweep->end, number, target->stamp);
        err = judge_bucket(edit, target, &own->bucket);
        if (err == 0)
            err = change_bucket(edit, sweep, row, &own->bucket);
    }
    return err;
}

int wb_hash_repair(struct wb_pagefile_edit *edit, struct wb_hash_target *target, const struct wb_bucket_swept *swept)
{
    struct wb_bucket_sweep sweep = {0};
    struct wb_bucket_file *file;
    int err = claim_file(edit, target, &file);

    WB_CHECK(swept->buckets.count > 0);
    if (err < 0)
        return err;
    err = restore_torn(file, swept, &edit->files->hash->bucket);
    wb_bucket_sweep_begin(&sweep, file, target->stamp, target->end);
    if (err == 0)
        err = repair_buckets(edit, &sweep, target, swept);
    if (err == 0)
        err = end_sweep(edit, &sweep, target);
    wb_bucket_sweep_release(&sweep);
    wb_bucket_file_release(file);
    return err;
}
