/*
 * hash_edit.c - what a transaction changes in bucket files: collected while pages are saved (repo_edit.c), written at
 * the end. Chooses between a sweep and a merge.
 */
#include "base/check.h"
#include "base/mem.h"
#include "pagefile/hash_store.h"
#include "place/place.h"

#include <stdlib.h>

enum {
    STAMP_BITS = 20, /* a place's logical: its stamp, and how many times 65536 versions of the page came before it */
    STAMP_LEAP = 1 << 16, /* beyond all stamps that interrupted sweeps can have used */
    SLOTS = 1 << 16,
    FULL_PERCENT = 75,  /* so much of the buckets may be used before there are more of them */
    RATIO_MAX = 16,     /* ... and hardly ever more than this */
    ENOUGH_PAGES = 100, /* to know it better */
    USUAL_RATIO = 4,    /* records become so much shorter, if nothing is known */
    DEAD_MIN = 1 << 20, /* dead bytes below this do not matter */
};

/* ---- beginning ---------------------------------------------------------------------------------------- */

static int repair_target(struct wb_pagefile_edit *edit, struct wb_hash_target *target)
{
    const struct wb_catalog_segment *row = &edit->rows[target->number];
    struct wb_bucket_file *file;
    struct wb_bucket_swept swept = {0};
    int err = wb_hash_target_file(edit, target, &file);

    WB_CHECK(row->number == target->number);
    if (err < 0)
        return err == WB_E_CORRUPT || err == WB_E_DOWN ? 0 : err; /* a reader of the file is told */
    target->judge = row->unwritten > 0;
    err = wb_bucket_swept_read(file, row->logical_end, &swept);
    if (err == WB_E_CORRUPT) { /* nobody knows which buckets an interrupted sweep has changed */
        target->judge = true;
        target->stamp = row->logical_end + STAMP_LEAP;
        err = wb_node_file_size(&file->file, &target->end);
        target->end = target->end > row->bytes ? target->end : row->bytes;
    } else if (err == 0 && swept.stamp > row->logical_end) {
        target->stamp = swept.stamp + 1;
        target->end = swept.end > row->bytes ? swept.end : row->bytes;
        err = swept.buckets.count ? wb_hash_repair(edit, target, &swept) : 0;
        err = err == WB_E_DOWN ? 0 : err; /* read-only: a writer is told */
    }
    wb_bucket_swept_release(&swept);
    return err;
}

static int add_target(void *context, const struct wb_catalog_segment *row)
{
    struct wb_pagefile_edit *edit = context;
    struct wb_hash_target target = {
        .number = row->number, .stamp = row->logical_end + 1, .end = row->bytes, .exists = true};

    WB_CHECK(row->number < edit->row_count);
    edit->rows[row->number] = *row;
    return wb_vec_push(&edit->hash->targets, target);
}

int wb_hash_edit_begin(struct wb_pagefile_edit *edit)
{
    struct wb_hash *own = edit->files->hash;

    WB_CHECK(!edit->hash);
    WB_CHECK(edit->txn->kind == WB_CATALOG_TXN_WRITING);
    edit->hash = wb_alloc_zero(1, sizeof *edit->hash);
    int err = edit->hash ? 0 : WB_E_NOMEM;
    /* Nodes may have come or gone since the pages were put. From now on nobody else can change their table. */
    if (err == 0)
        err = wb_pagefile_renew_nodes(edit->files);
    if (err == 0 && !own->draft.builder)
        err = wb_bucket_draft_init(&own->draft, wb_pagefile_sizes.large_bytes);
    if (err == 0)
        err = wb_catalog_segment_each(edit->txn, add_target, edit);
    for (size_t i = 0; err == 0 && i < edit->hash->targets.count; i++)
        err = repair_target(edit, &edit->hash->targets.items[i]);
    return err;
}

void wb_hash_edit_release(struct wb_pagefile_edit *edit)
{
    struct wb_hash_edit *hash = edit->hash;

    if (!hash)
        return;
    for (size_t i = 0; i < hash->made.count; i++)
        wb_bucket_file_close(&hash->made.items[i]);
    wb_vec_release(&hash->made);
    wb_vec_release(&hash->notes);
    wb_vec_release(&hash->entries);
    wb_vec_release(&hash->targets);
    wb_vec_release(&hash->drop);
    wb_pageview_release(&hash->view);
    wb_buf_release(&hash->record);
    wb_arena_release(&hash->arena);
    wb_vec_release(&hash->damages);
    wb_buf_release(&hash->damaged);
    wb_free(hash);
    edit->hash = NULL;
}

int wb_hash_target_file(struct wb_pagefile_edit *edit, const struct wb_hash_target *target,
                        struct wb_bucket_file **file_out)
{
    WB_CHECK(target->exists);
    WB_CHECK(edit->rows[target->number].number == target->number);
    return wb_hash_file(&edit->files->hash->files, &edit->rows[target->number], file_out);
}

/* ---- places -------------------------------------------------------------------------------------------- */

struct wb_hash_target *wb_hash_target(struct wb_hash_edit *hash, uint32_t number)
{
    for (size_t i = 0; i < hash->targets.count; i++)
        if (hash->targets.items[i].number == number)
            return &hash->targets.items[i];
    return NULL;
}

/* The file of a new page's bin; made if there is none. */
static int target_of(struct wb_pagefile_edit *edit, struct wb_pageid id, struct wb_hash_target **target_out)
{
    struct wb_hash_edit *hash = edit->hash;
    struct wb_bin bin;
    int err = wb_bin_of(edit->files->nodes, id, &bin);

    *target_out = NULL;
    if (err < 0)
        return err;
    for (size_t i = 0; i < hash->targets.count; i++) {
        const struct wb_catalog_segment *row = &edit->rows[hash->targets.items[i].number];
        if (row->node == bin.node && wb_catalog_range_has(&row->range, id)) {
            *target_out = &hash->targets.items[i];
            return 0;
        }
    }
    uint32_t number = edit->summary->next_segment;
    if (number >= edit->row_count)
        return wb_fail(WB_E_LIMIT, "too many new files in one commit");
    edit->summary->next_segment++;
    edit->rows[number] =
        (struct wb_catalog_segment){.number = number, .node = bin.node, .range = bin.range, .sealed = true};
    err = wb_vec_push(&hash->targets, (struct wb_hash_target){.number = number, .stamp = 1});
    if (err == 0)
        *target_out = &hash->targets.items[hash->targets.count - 1];
    return err;
}

int wb_hash_edit_place(struct wb_pagefile_edit *edit, const uint32_t *puts, size_t count)
{
    struct wb_put *all = edit->files->writer->puts.items;
    struct wb_hash_target *target = NULL;
    int err = 0;

    edit->hash->placed = puts;
    edit->hash->placed_count = count;
    if (count)
        err = target_of(edit, all[puts[0]].id, &target);
    if (err < 0 || count == 0)
        return err;
    struct wb_catalog_segment *row = &edit->rows[target->number];
    for (size_t n = 0; n < count; n++) {
        WB_CHECK(wb_pageid_equal(all[puts[n]].id, all[puts[0]].id));
        all[puts[n]].place = (struct wb_catalog_place){
            .segment = wb_catalog_segment_origin(row),
            .slot = (uint16_t)(n % SLOTS),
            .logical = target->stamp << STAMP_BITS | n / SLOTS,
        };
        all[puts[n]].placed = true;
    }
    row->pages += count;
    target->placed += count;
    wb_nodes_turn(edit->files->nodes); /* uniform distribution: the next page goes to the next node */
    return 0;
}

/* The put that has brought the version of this place. */
static uint32_t put_of(const struct wb_pagefile_edit *edit, const struct wb_catalog_place *place)
{
    const struct wb_hash_edit *hash = edit->hash;
    const struct wb_put *puts = edit->files->writer->puts.items;

    for (size_t i = 0; i < hash->placed_count; i++)
        if (wb_catalog_place_equal(&puts[hash->placed[i]].place, place))
            return hash->placed[i];
    WB_CHECK(false);
    return 0;
}

/* ---- notes -------------------------------------------------------------------------------------------------- */

/* Notes a version that comes or goes. */
static int note_place(struct wb_pagefile_edit *edit, struct wb_pageid id, const struct wb_place_used *place,
                      enum wb_hash_note_kind kind)
{
    struct wb_catalog_segment *row;
    int err = wb_pagefile_edit_row_of(edit, &place->place, id, &row);

    WB_CHECK(kind == WB_HASH_NOTE_DEAD || kind == WB_HASH_NOTE_PUT);
    if (err < 0)
        return err;
    struct wb_hash_note note = {
        .id = id, .file = row->number, .kind = kind, .place = place->place, .stored_bytes = place->stored_bytes};
    if (kind == WB_HASH_NOTE_PUT) {
        note.index = put_of(edit, &place->place);
        struct wb_hash_target *target = wb_hash_target(edit->hash, row->number);
        const struct wb_put *put = &edit->files->writer->puts.items[note.index];
        WB_CHECK(target != NULL);
        target->put_bytes += put->staged_bytes ? put->staged_bytes : put->record.len;
    }
    return wb_vec_push(&edit->hash->notes, note);
}

/* Notes in one file that it has the page's latest version, or has not. */
static int note_copy(struct wb_pagefile_edit *edit, struct wb_pageview *view, const struct wb_place_used *place,
                     bool *known)
{
    struct wb_hash_edit *hash = edit->hash;
    struct wb_catalog_segment *row, *home = NULL;
    int err = wb_pagefile_edit_row_of(edit, &place->place, view->id, &row);

    if (err < 0 || known[row->number])
        return err;
    known[row->number] = true;
    struct wb_hash_note note = {.id = view->id, .file = row->number, .kind = WB_HASH_NOTE_GONE};
    struct wb_catalog_entry entry;
    if (wb_history_latest(&view->history)) {
        wb_pageview_entry(view, &entry);
        if (entry.place.segment != WB_CATALOG_BASE_SEGMENT)
            err = wb_pagefile_edit_row_of(edit, &entry.place, view->id, &home);
    }
    if (err == 0 && home == row) {
        note.kind = WB_HASH_NOTE_COPY;
        note.index = (uint32_t)hash->entries.count;
        err = wb_vec_push(&hash->entries, entry);
    }
    return err < 0 ? err : wb_vec_push(&hash->notes, note);
}

static int compare_places(const struct wb_catalog_place *x, const struct wb_catalog_place *y)
{
    if (x->segment != y->segment)
        return x->segment < y->segment ? -1 : 1;
    if (x->logical != y->logical)
        return x->logical < y->logical ? -1 : 1;
    return x->slot < y->slot ? -1 : x->slot > y->slot;
}

int wb_hash_edit_note(struct wb_pagefile_edit *edit, struct wb_pageview *view, const struct wb_places_used *before,
                      const struct wb_places_used *after)
{
    size_t b = 0, a = 0;
    int err = 0;

    WB_CHECK(edit->txn->kind == WB_CATALOG_TXN_WRITING);
    while ((b < before->count || a < after->count) && err == 0) { /* both are sorted by place */
        const struct wb_place_used *was = b < before->count ? &before->items[b] : NULL;
        const struct wb_place_used *is = a < after->count ? &after->items[a] : NULL;
        int order = !was ? 1 : !is ? -1 : compare_places(&was->place, &is->place);
        if (order < 0)
            err = note_place(edit, view->id, was, WB_HASH_NOTE_DEAD);
        else if (order > 0)
            err = note_place(edit, view->id, is, WB_HASH_NOTE_PUT);
        b += order <= 0;
        a += order >= 0;
    }
    bool *known = err == 0 ? wb_alloc_zero(edit->row_count, sizeof *known) : NULL;
    if (err == 0 && !known)
        err = WB_E_NOMEM;
    for (size_t i = 0; i < before->count && err == 0; i++)
        err = note_copy(edit, view, &before->items[i], known);
    for (size_t i = 0; i < after->count && err == 0; i++)
        err = note_copy(edit, view, &after->items[i], known);
    wb_free(known);
    return err;
}

/* ---- records and the catalog's word ------------------------------------------------------------------------------ */

size_t wb_hash_note_seek(const struct wb_hash_note *notes, size_t count, struct wb_pageid id)
{
    size_t low = 0, high = count;

    WB_CHECK(notes || count == 0);
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (wb_pageid_compare(notes[middle].id, id) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

int wb_hash_add_put(struct wb_pagefile_edit *edit, const struct wb_hash_note *note, bool old,
                    struct wb_bucket_draft *draft, struct wb_arena *arena)
{
    const struct wb_put *put = &edit->files->writer->puts.items[note->index];
    struct wb_bucket_item item = {
        .version = {.id = note->id, .place = note->place, .stored_bytes = note->stored_bytes},
        .record = wb_buf_slice(&put->record),
        .site = put->site_hash,
        .old = old,
    };

    WB_CHECK(note->kind == WB_HASH_NOTE_PUT);
    if (put->staged_bytes) {
        char *bytes = wb_arena_take(arena, (size_t)put->staged_bytes);
        int err = bytes ? wb_hash_staged_read(edit->files, put, bytes) : WB_E_NOMEM;
        if (err < 0)
            return err;
        item.record = wb_slice(bytes, (size_t)put->staged_bytes);
    }
    return wb_vec_push(&draft->items, item);
}

int wb_hash_judge(struct wb_pagefile_edit *edit, uint32_t number, struct wb_pageid id,
                  struct wb_catalog_entry *entry_out, bool *there_out)
{
    struct wb_catalog_segment row;
    struct wb_pageview *view = &edit->hash->view;
    int err = wb_pageview_load(edit->txn, true, id, view);

    *there_out = false;
    if (err < 0 || !wb_history_latest(&view->history))
        return err;
    wb_pageview_entry(view, entry_out);
    if (entry_out->place.segment == WB_CATALOG_BASE_SEGMENT)
        return 0;
    if (edit->rows[entry_out->place.segment].number == number && !edit->rows[number].split) {
        *there_out = true;
        return 0;
    }
    err = wb_parts_row_of(edit->txn, &edit->files->parts, entry_out->place.segment, id, &row);
    *there_out = err == 0 && row.number == number;
    return err;
}

/* ---- writing ------------------------------------------------------------------------------------------------------
 */

uint64_t wb_hash_buckets_for(uint64_t bytes)
{
    uint64_t count = bytes / (wb_pagefile_sizes.bucket_bytes / 2) + 1; /* half full */

    return count < WB_BUCKET_COUNT_MAX ? count : WB_BUCKET_COUNT_MAX;
}

/* What the new records of a target become, as far as can be foreseen from what the others became. */
static uint64_t expected_bytes(const struct wb_pagefile_edit *edit, const struct wb_hash_target *target)
{
    const struct wb_catalog_segment *row = &edit->rows[target->number];
    uint64_t pages = edit->summary->pages, all = edit->summary->bytes_pages, more = target->put_bytes;
    double part = 1.0 / USUAL_RATIO;

    if (row->map_at && row->live >= ENOUGH_PAGES && pages && all > more) {
        /* Its share of all bodies, without the new ones. */
        double raw = (double)(all - more) * ((double)row->live / (double)(pages > row->live ? pages : row->live));
        part = (double)row->map_at / raw;
        part = part > 1 ? 1 : part < 1.0 / RATIO_MAX ? 1.0 / RATIO_MAX : part;
    }
    return (uint64_t)((double)more * part);
}

/* The number of buckets that the target's notes concern. */
static uint64_t count_touched(const struct wb_bucket_file *file, const struct wb_hash_note *notes, size_t count)
{
    uint64_t touched = 0, last = 0;

    for (size_t i = 0; i < count; i++) {
        uint64_t number = wb_bucket_of(file, notes[i].id);
        touched += i == 0 || number != last;
        last = number;
    }
    return touched;
}

/* Whether rewriting the file is better than changing its buckets. */
static bool should_merge(const struct wb_pagefile_edit *edit, const struct wb_hash_target *target,
                         const struct wb_bucket_file *file, uint64_t *bytes_out)
{
    const struct wb_catalog_segment *row = &edit->rows[target->number];
    uint64_t room = file->count * file->bucket_bytes, more = expected_bytes(edit, target);
    uint64_t touched = count_touched(file, edit->hash->notes.items + target->first, target->count);

    *bytes_out = row->map_at + more;
    if (*bytes_out > room / 100 * FULL_PERCENT)
        return true;
    if (row->bytes_dead > DEAD_MIN && row->bytes_dead > row->bytes / 2)
        return true;
    return more > row->map_at / 4 && touched > file->count / 3 * 2;
}

static int merge(struct wb_pagefile_edit *edit, struct wb_hash_target *target, uint64_t bytes)
{
    struct wb_catalog_segment *row;
    int err = wb_pagefile_edit_row(edit, target->number, &row);
    return err < 0
               ? err
               : wb_hash_merge(edit, target, &(struct wb_bin){row->node, row->range}, 1, wb_hash_buckets_for(bytes));
}

static int write_target(struct wb_pagefile_edit *edit, struct wb_hash_target *target)
{
    struct wb_bucket_file *file = NULL;
    uint64_t bytes;

    WB_CHECK(target->count > 0);
    if (!target->exists) {
        uint64_t share = edit->files->to_come / wb_nodes_count(edit->files->nodes);
        bytes = expected_bytes(edit, target);
        return merge(edit, target, bytes > share ? bytes : share);
    }
    int err = wb_hash_target_file(edit, target, &file);
    if (err < 0)
        return err;
    bool worth_it = should_merge(edit, target, file, &bytes);
    if (target->judge)
        return merge(edit, target, bytes);
    if (worth_it) {
        err = merge(edit, target, bytes);
        if (err != WB_E_CORRUPT)
            return err;
    } /* the file and the catalog contradict each other, but its buckets can be changed */
    return wb_hash_sweep(edit, target);
}

/* A node that is full, or whose disk fails, is named; new pages avoid it, if the commit is repeated. */
static int name_node(const struct wb_pagefile_edit *edit, const struct wb_hash_target *target, int err)
{
    struct wb_error_copy why;

    WB_CHECK(err < 0);
    if (err != WB_E_IO || !wb_nodes_failed(edit->files->nodes, err))
        return err;
    wb_error_save(err, &why);
    wb_nodes_avoid(edit->files->nodes, edit->rows[target->number].node);
    edit->files->failed_nodes++;
    return wb_fail(err, "node %u: %s", edit->rows[target->number].node, why.message);
}

/*
 * If the node of a file is down or read-only, removals need not wait for it, and takedowns must not: the catalog knows
 * them, and the row says that the buckets do not. Returns the error if the notes also bring something new.
 */
static int put_off(struct wb_pagefile_edit *edit, const struct wb_hash_target *target, int err)
{
    const struct wb_hash_note *notes = edit->hash->notes.items + target->first;
    struct wb_catalog_segment *row;

    WB_CHECK(err < 0);
    for (size_t i = 0; i < target->count; i++)
        if (notes[i].kind == WB_HASH_NOTE_PUT || notes[i].kind == WB_HASH_NOTE_COPY)
            return err;
    if (err != WB_E_DOWN || !target->exists)
        return err;
    err = wb_pagefile_edit_row(edit, target->number, &row);
    if (err == 0 && row->unwritten < UINT32_MAX)
        row->unwritten++;
    return err;
}

static int compare_notes(const void *a, const void *b)
{
    const struct wb_hash_note *x = a, *y = b;

    if (x->file != y->file)
        return x->file < y->file ? -1 : 1;
    int order = wb_pageid_compare(x->id, y->id);
    if (order)
        return order;
    if (x->kind != y->kind)
        return x->kind < y->kind ? -1 : 1;
    return x->index < y->index ? -1 : x->index > y->index;
}

int wb_hash_edit_write(struct wb_pagefile_edit *edit)
{
    struct wb_hash_edit *hash = edit->hash;
    int err = 0;

    WB_CHECK(edit->txn->kind == WB_CATALOG_TXN_WRITING);
    if (hash->notes.count > 1)
        qsort(hash->notes.items, hash->notes.count, sizeof *hash->notes.items, compare_notes);
    for (size_t i = 0, next; i < hash->notes.count && err == 0; i = next) {
        for (next = i + 1; next < hash->notes.count; next++)
            if (hash->notes.items[next].file != hash->notes.items[i].file)
                break;
        struct wb_hash_target *target = wb_hash_target(hash, hash->notes.items[i].file);
        if (!target)
            return wb_catalog_corrupt(edit->files->catalog, WB_CATALOG_SEGMENTS, "a page in a file that is not there");
        target->first = i;
        target->count = next - i;
        err = write_target(edit, target);
        if (err < 0)
            err = put_off(edit, target, err);
        if (err < 0)
            err = name_node(edit, target, err);
    }
    for (size_t i = 0; i < hash->targets.count && err == 0; i++) /* a file for pages that were all refused */
        if (!hash->targets.items[i].exists && !hash->targets.items[i].is_merged)
            edit->dirty[hash->targets.items[i].number] = false;
    return err;
}

void wb_hash_edit_done(struct wb_pagefile_edit *edit, int err)
{
    struct wb_hash_edit *hash = edit->hash;
    struct wb_error_copy why;

    if (!hash)
        return;
    if (err < 0)
        wb_error_save(err, &why);
    for (size_t i = 0; i < hash->targets.count && err == 0; i++)
        if (hash->targets.items[i].is_merged && hash->targets.items[i].exists)
            edit->files->replaced = true;
    for (size_t i = 0; i < hash->made.count && !wb_catalog_uncertain(edit->files->catalog); i++) {
        struct wb_bucket_file *made = &hash->made.items[i];
        bool counts = err == 0 && edit->rows[made->number].revision == made->revision;
        if (!counts && made->magic)
            wb_bucket_file_discard(made);
    }
    if (err < 0)
        wb_error_restore(&why);
}
