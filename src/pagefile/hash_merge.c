/*
 * hash_merge.c - writes the next revision of a bucket file, by merging two streams that are sorted by id: the
 * versions in the old buckets, and what a commit adds. Everything is read and written once, in the order of the disk.
 * Dead versions are left out, so this is also how space is freed. The new file serves only the state after the commit;
 * a reader of the one before has the old file, which is deleted when nobody needs it any more.
 *
 * In the same way a file is moved to another node, or divided: there is a new file for each bin (src/move/mover.h).
 */
#include "base/check.h"
#include "base/mem.h"
#include "pagefile/hash_press.h"
#include "pagefile/hash_store.h"

/* Damaged bytes that were copied. */
struct merged_damage {
    uint64_t from; /* the extent that has them in the old file; 0: the bucket itself */
    uint64_t at, bytes;
};

/* A merge in progress. */
struct hash_merge {
    struct wb_pagefile_edit *edit;
    struct wb_hash_target *target;
    struct wb_bucket_file *from; /* NULL: there is no old file */
    uint64_t next;               /* the old bucket to be read next */
    size_t at;                   /* the next version in the one that was read; it is in files->hash->bucket */
    const struct wb_hash_note *notes;
    size_t note, note_count; /* the next note */
    struct wb_bucket_file to;
    struct wb_hash_press press;           /* writes it */
    uint64_t end;                         /* of its extents */
    uint64_t images;                      /* bytes of all images */
    uint64_t versions, old;               /* that were kept, and how many of them are not the latest of their page */
    bool doubt;                           /* versions are missing: look for those that should be there */
    bool is_lost;                         /* the bucket that was read is damaged */
    WB_VEC(struct merged_damage) damages; /* of this bucket */
};

/* ---- the old file ------------------------------------------------------------------------------------------ */

static bool has_version(const struct hash_merge *m)
{
    return m->from && m->at < m->edit->files->hash->bucket.versions.count;
}

/* Goes to the next version, if the current bucket has none left. Of a damaged bucket, the catalog knows them. */
static int seek_version(struct hash_merge *m)
{
    struct wb_hash *own = m->edit->files->hash;
    int err = 0;

    while (m->from && !has_version(m) && m->next < m->from->count && err == 0) {
        uint64_t number = m->next++;
        wb_bucket_reader_forget(&own->reader);
        wb_vec_clear(&m->damages);
        m->at = 0;
        err = wb_bucket_read(m->from, number, &own->bucket);
        m->is_lost = err == WB_E_CORRUPT;
        if (m->is_lost)
            err = wb_hash_lost_read(m->edit, m->target, m->from, number);
        else if (err == 0 && m->doubt)
            err = wb_hash_lost_add(m->edit, m->target, m->from);
    }
    return err;
}

/* Whether a version has a block in an extent for itself, which can be copied as it is. */
static bool is_alone(const struct wb_bucket *bucket, size_t at)
{
    const struct wb_bucket_version *version = &bucket->versions.items[at];

    WB_CHECK(at < bucket->versions.count);
    for (size_t i = 0; i < bucket->versions.count; i++)
        if (i != at && bucket->versions.items[i].extent_at == version->extent_at)
            return false;
    return version->extent_at != 0;
}

/* Whether the block in hash->record is as it was written: 1, 0 or an error. */
static int is_sound(struct hash_merge *m, const struct wb_block_head *head)
{
    struct wb_block_index index = {0};
    struct wb_block_damage damage;
    const char *block = m->edit->hash->record.ptr;

    WB_CHECK(m->edit->hash->record.len >= WB_BLOCK_HEADER_BYTES);
    if (wb_block_directory_end(head) > m->edit->hash->record.len)
        return 0;
    int err = wb_block_index_read(head, block + WB_BLOCK_HEADER_BYTES, &index);
    int sound = err == 0 ? wb_block_check(&index, block, NULL, &damage) : err;
    wb_block_index_release(&index);
    return sound == WB_E_CORRUPT ? 0 : sound;
}

/* Copies a large page. Returns 1 if its block cannot be copied as it is. */
static int copy_extent(struct hash_merge *m, struct wb_bucket_version *version)
{
    struct wb_hash_edit *hash = m->edit->hash;
    struct wb_block_head head;

    WB_CHECK(version->extent_at > 0);
    int err = wb_bucket_extent_read_bytes(m->from, version->extent_at, version->extent_bytes, &hash->record);
    if (err < 0)
        return err;
    if (hash->record.len != version->extent_bytes || wb_block_head_read(hash->record.ptr, &head) < 0 ||
        head.bytes != version->extent_bytes || head.logical != version->extent_at)
        return 1;        /* reading it tells why */
    if (head.count != 1) /* others were in it, and must not come along */
        return 1;
    int sound = is_sound(m, &head);
    if (sound <= 0)
        return sound < 0 ? sound : 1;
    wb_block_stamp(hash->record.ptr, m->end, m->target->stamp);
    err = wb_node_file_write_at(&m->to.file, m->end, hash->record.ptr, (size_t)version->extent_bytes);
    version->extent_at = m->end;
    m->end += version->extent_bytes;
    return err;
}

/* Copies damaged bytes, of the bucket or of the version's extent, to the new file. */
static int copy_damage(struct hash_merge *m, const struct wb_bucket_version *version, struct merged_damage *damage_out)
{
    const struct wb_bucket *bucket = &m->edit->files->hash->bucket;
    struct wb_bucket_origin origin = {m->from->key, bucket->number, wb_bucket_at(m->from, bucket->number)};
    struct wb_buf *record = &m->edit->hash->record;
    struct wb_slice bytes = wb_buf_slice(m->is_lost ? &m->edit->hash->damaged : &bucket->image);
    int err = 0;

    *damage_out = (struct merged_damage){.from = version->extent_at, .at = m->end};
    if (version->extent_at) {
        err = wb_bucket_extent_read_bytes(m->from, version->extent_at, version->extent_bytes, record);
        bytes = wb_buf_slice(record);
        origin.at = version->extent_at;
    }
    if (err < 0)
        return err;
    if (!version->extent_at || !wb_bucket_kept_is(bytes))
        return wb_bucket_keep(&m->to, &origin, bytes, &m->end, &damage_out->bytes);
    damage_out->bytes = bytes.len;
    m->end += bytes.len;
    return wb_node_file_write_at(&m->to.file, damage_out->at, bytes.ptr, bytes.len);
}

/* A version that cannot be read stays one, and what is left of its bytes comes along. */
static int keep_damaged(struct hash_merge *m, struct wb_bucket_version *version)
{
    struct merged_damage damage;
    size_t i = 0;
    int err = wb_hash_damage_note(m->edit->hash, m->from, m->edit->files->hash->bucket.number, 1);

    WB_CHECK(m->from != NULL);
    while (i < m->damages.count && m->damages.items[i].from != version->extent_at)
        i++;
    if (err == 0 && i == m->damages.count) {
        err = copy_damage(m, version, &damage);
        if (err == 0)
            err = wb_vec_push(&m->damages, damage);
    }
    if (err < 0)
        return err;
    version->block_slot = 0;
    version->extent_at = m->damages.items[i].at;
    version->extent_bytes = m->damages.items[i].bytes;
    return 0;
}

/* Adds the current version of the old file to the new bucket. */
static int keep_version(struct hash_merge *m, bool old)
{
    struct wb_hash *own = m->edit->files->hash;
    struct wb_bucket_item item = {.version = own->bucket.versions.items[m->at], .old = old};
    int err = 1;

    item.version.dead = 0;
    if (is_alone(&own->bucket, m->at))
        err = copy_extent(m, &item.version);
    if (err > 0) {
        err = wb_bucket_read_record(&own->reader, m->from, &own->bucket, m->at, &m->edit->hash->record);
        if (err == WB_E_CORRUPT) {
            err = keep_damaged(m, &item.version);
        } else if (err == 0) {
            err = wb_arena_copy(m->press.arena, wb_buf_slice(&m->edit->hash->record), &item.record);
            item.version.extent_at = item.version.extent_bytes = 0;
        }
    }
    return err < 0 ? err : wb_vec_push(&m->press.draft->items, item);
}

/* ---- page by page ---------------------------------------------------------------------------------------------- */

/* What is known about the page that is being merged. */
struct merged_page {
    struct wb_pageid id;
    bool has_entry;
    struct wb_catalog_entry entry;
    size_t first, count; /* its notes */
};

static bool is_noted_dead(const struct hash_merge *m, const struct merged_page *page,
                          const struct wb_catalog_place *place)
{
    for (size_t i = page->first; i < page->first + page->count; i++)
        if (m->notes[i].kind == WB_HASH_NOTE_DEAD && wb_catalog_place_equal(&m->notes[i].place, place))
            return true;
    return false;
}

/* Finds the page's entry: from its notes, from the old bucket, or from the catalog. */
static int find_entry(struct hash_merge *m, struct merged_page *page)
{
    bool noted = false;

    while (m->note < m->note_count && wb_pageid_equal(m->notes[m->note].id, page->id)) {
        const struct wb_hash_note *note = &m->notes[m->note++];
        page->count++;
        if (note->kind < WB_HASH_NOTE_COPY)
            continue;
        noted = true;
        page->has_entry = note->kind == WB_HASH_NOTE_COPY;
        if (page->has_entry)
            page->entry = m->edit->hash->entries.items[note->index];
    }
    if (m->target->judge)
        return wb_hash_judge(m->edit, m->target->number, page->id, &page->entry, &page->has_entry);
    if (!noted)
        page->has_entry = wb_bucket_find_page(&m->edit->files->hash->bucket, page->id, &page->entry);
    return 0;
}

/* Adds all versions of one page to the new bucket. */
static int merge_page(struct hash_merge *m, struct wb_pageid id)
{
    struct wb_hash *own = m->edit->files->hash;
    struct merged_page page = {.id = id, .first = m->note};
    int err = find_entry(m, &page);

    while (err == 0 && has_version(m) && wb_pageid_equal(own->bucket.versions.items[m->at].id, id)) {
        const struct wb_bucket_version *version = &own->bucket.versions.items[m->at];
        bool alive = m->target->judge ? wb_pageview_has(&m->edit->hash->view, &version->place)
                                      : version->dead == 0 && !is_noted_dead(m, &page, &version->place);
        if (alive) {
            bool old = !page.has_entry || !wb_catalog_place_equal(&page.entry.place, &version->place);
            err = keep_version(m, old);
            m->versions++;
            m->old += old;
        }
        m->at++;
    }
    for (size_t i = page.first; i < page.first + page.count && err == 0; i++)
        if (m->notes[i].kind == WB_HASH_NOTE_PUT) {
            bool old = !page.has_entry || !wb_catalog_place_equal(&page.entry.place, &m->notes[i].place);
            err = wb_hash_add_put(m->edit, &m->notes[i], old, m->press.draft, m->press.arena);
            m->versions++;
        }
    if (err == 0 && page.has_entry)
        err = wb_vec_push(&m->press.draft->bucket.pages, (struct wb_bucket_page){id, page.entry});
    return err;
}

/* ---- the new file ------------------------------------------------------------------------------------------------ */

/* Merges both streams into the new buckets. */
static int merge_streams(struct hash_merge *m)
{
    const struct wb_bucket *old = &m->edit->files->hash->bucket;
    uint64_t last = wb_catalog_range_last(&m->to.range);
    int err = 0;

    for (;;) {
        if (err == 0)
            err = seek_version(m);
        bool noted = m->note < m->note_count;
        if (err < 0 || (!has_version(m) && !noted))
            break;
        struct wb_pageid id = has_version(m) ? old->versions.items[m->at].id : m->notes[m->note].id;
        if (noted && wb_pageid_compare(m->notes[m->note].id, id) < 0)
            id = m->notes[m->note].id;
        if (!wb_catalog_range_has(&m->to.range, id)) { /* of another part of a file that is being divided */
            WB_CHECK(has_version(m) && m->note_count == 0);
            if (id.hi > last)
                break;
            m->at++;
            continue;
        }
        while (err == 0 && m->press.number < wb_bucket_of(&m->to, id))
            err = wb_hash_press_next(&m->press);
        if (err == 0)
            err = merge_page(m, id);
    }
    while (err == 0 && m->press.number < m->to.count)
        err = wb_hash_press_next(&m->press);
    return err < 0 ? err : wb_hash_press_end(&m->press, &m->images);
}

/* Makes the file and its name durable. */
static int sync_file(struct hash_merge *m)
{
    int err = wb_node_file_sync(&m->to.file);

    WB_CHECK(m->to.magic == WB_BUCKET_FILE_MAGIC);
    return err < 0 ? err : wb_node_sync_names(m->to.file.node);
}

/* What the row of the new file says about it. */
static void fill_row(const struct hash_merge *m, struct wb_catalog_segment *row)
{
    WB_CHECK(row->revision > 0);
    row->sealed = true;
    row->bytes = m->end;
    row->map_count = m->to.count;
    row->map_at = m->images;
    row->logical_end = m->target->stamp;
    row->pages = m->versions;
    row->bytes_dead = row->removed = 0;
    if (m->target->judge)
        row->unwritten = 0;
}

/*
 * Writes the file of a row from what the target has in the row's range, and the notes. The row has its number,
 * revision, node and range; the rest is filled in. The file stays open and claimed until the commit.
 */
static int write_file(struct hash_merge *m, struct wb_catalog_segment *row, uint64_t buckets)
{
    struct wb_pagefile_edit *edit = m->edit;
    struct wb_hash *own = edit->files->hash;
    struct wb_bucket_shape shape = {row->number, row->revision, row->range, (uint32_t)wb_pagefile_sizes.bucket_bytes,
                                    buckets};
    struct wb_node *node;
    int err = wb_nodes_find_to_write(edit->files->nodes, row->node, &node);

    WB_CHECK(buckets > 0);
    if (err == 0 && m->target->exists)
        err = wb_hash_target_file(edit, m->target, &m->from);
    if (err == 0)
        err = wb_vec_reserve(&edit->hash->made, edit->hash->made.count + 1);
    if (err < 0)
        return err;
    wb_bucket_reader_forget(&own->reader);
    wb_vec_clear(&own->bucket.versions);
    err = wb_bucket_file_create(node, edit->files->superblock->id, &shape, &m->to);
    if (err < 0)
        return err;
    edit->hash->made.items[edit->hash->made.count++] = m->to;
    m->end = wb_bucket_extents_at(&m->to);
    if (m->from)
        m->next = wb_bucket_of(m->from, (struct wb_pageid){.hi = wb_catalog_range_first(&row->range)});
    err = wb_hash_press_new(edit->files, &m->to, &m->end, m->target->stamp, &m->press);
    if (err == 0)
        err = merge_streams(m);
    wb_hash_press_free(&m->press);
    if (err == 0)
        err = sync_file(m);
    if (err == 0)
        fill_row(m, row);
    wb_bucket_reader_forget(&own->reader);
    wb_vec_release(&m->damages);
    return err;
}

static int too_few(const struct hash_merge *m, uint64_t found, uint64_t expected)
{
    return wb_fail(WB_E_CORRUPT, "%s holds %llu live pages, the catalog knows of %llu: nothing was changed, run verify",
                   m->from ? m->from->file.path : m->to.file.path, (unsigned long long)found,
                   (unsigned long long)expected);
}

/* Removes files that were made, and forgets damage that was noted, until there are only so many of each. */
static void unmake(struct wb_hash_edit *hash, size_t made, size_t damages)
{
    WB_CHECK(made <= hash->made.count);
    WB_CHECK(damages <= hash->damages.count);
    while (hash->made.count > made)
        wb_bucket_file_discard(&hash->made.items[--hash->made.count]);
    hash->damages.count = damages;
}

/* ---- the files of all bins ------------------------------------------------------------------------------------- */

/* The row of a bin's file: the first one takes the number of the old file, the others are new. */
static int make_row(struct wb_pagefile_edit *edit, const struct wb_catalog_segment *old, const struct wb_bin *bin,
                    bool first, struct wb_catalog_segment *row_out)
{
    WB_CHECK(wb_catalog_range_is_valid(&bin->range));
    *row_out = *old;
    row_out->node = bin->node;
    row_out->range = bin->range;
    row_out->revision = old->revision + 1;
    if (first)
        return 0;
    if (edit->summary->next_segment >= edit->row_count)
        return wb_fail(WB_E_LIMIT, "too many new files in one commit");
    row_out->origin = wb_catalog_segment_origin(old);
    row_out->number = edit->summary->next_segment++;
    row_out->revision = 1;
    row_out->split = false;
    return 0;
}

/* What a part of a range has of the bytes of all of it, as ids are hashes. */
static uint64_t share_of(uint64_t bytes, const struct wb_catalog_range *part, const struct wb_catalog_range *whole)
{
    unsigned shift = 32; /* so that the product fits */

    return (uint64_t)((wb_catalog_range_size(part) >> shift) * bytes / ((wb_catalog_range_size(whole) >> shift) + 1));
}

/*
 * Writes the files of all bins. doubt: as in struct hash_merge. Returns 1 if versions are missing, and nothing was
 * written.
 */
static int write_files(struct wb_pagefile_edit *edit, struct wb_hash_target *target, const struct wb_bin *bins,
                       size_t count, uint64_t buckets, bool doubt, struct wb_catalog_segment rows[WB_BINS_MAX])
{
    const struct wb_catalog_segment old = edit->rows[target->number]; /* from which all files are read */
    struct hash_merge m = {.to = WB_BUCKET_FILE_INIT};
    size_t made = edit->hash->made.count, damages = edit->hash->damages.count;
    uint32_t next = edit->summary->next_segment;
    uint64_t live = 0, past = 0;
    int err = 0;

    for (size_t i = 0; i < count && err == 0; i++) {
        m = (struct hash_merge){.edit = edit, .target = target, .doubt = doubt, .to = WB_BUCKET_FILE_INIT};
        m.notes = target->count ? edit->hash->notes.items + target->first : NULL;
        m.note_count = target->count;
        err = make_row(edit, &old, &bins[i], i == 0, &rows[i]);
        if (err == 0)
            err =
                write_file(&m, &rows[i],
                           count > 1 ? wb_hash_buckets_for(share_of(old.map_at, &rows[i].range, &old.range)) : buckets);
        live += m.versions;
        past += m.old;
        if (count > 1) {
            rows[i].live = m.versions;
            rows[i].old = m.old;
        }
    }
    bool all = count > 1 ? live == old.live && past == old.old : live >= old.live;
    if (err == 0 && !all && (doubt || live > old.live || !target->exists))
        err = too_few(&m, live, old.live);
    if (err < 0 || all)
        return err;
    unmake(edit->hash, made, damages);
    edit->summary->next_segment = next;
    return 1;
}

int wb_hash_merge(struct wb_pagefile_edit *edit, struct wb_hash_target *target, const struct wb_bin *bins, size_t count,
                  uint64_t buckets)
{
    struct wb_catalog_segment *row, old, rows[WB_BINS_MAX];
    size_t damages = edit->hash->damages.count;
    int err = wb_pagefile_edit_row(edit, target->number, &row);

    WB_CHECK(count > 0 && count <= WB_BINS_MAX);
    WB_CHECK(!target->is_merged);
    WB_CHECK(count == 1 || (target->exists && target->count == 0));
    if (err < 0)
        return err;
    old = *row;
    target->judge = target->judge || count > 1;
    err = write_files(edit, target, bins, count, buckets, false, rows);
    if (err > 0) {
        target->judge = true;
        err = write_files(edit, target, bins, count, buckets, true, rows);
    }
    if (err == 0 && target->exists)
        err = wb_catalog_retired_put(edit->txn, old.number, old.revision, old.node, wb_catalog_txn_id(edit->txn));
    if (err < 0) {
        edit->hash->damages.count = damages;
        return err;
    }
    rows[0].split = old.split || count > 1;
    for (size_t i = 0; i < count; i++) {
        edit->rows[rows[i].number] = rows[i];
        edit->dirty[rows[i].number] = true;
    }
    target->stamp++;
    target->is_merged = true;
    return 0;
}
