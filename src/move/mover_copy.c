/*
 * mover_copy.c - copies the live pages of a segment into the files of its bins (mover.h). A block goes to a file in the
 * cheapest way that is allowed:
 *
 *   the file gets all its pages             as it is
 *   some are dead or newly replaced         frame by frame, as wb_block_rewrite() decides (block.h)
 *   ... after a takedown, or if several     the same, but no byte of another page may stay: "scrubbed". Each file is
 *       files get pages of it               then as small as if it had never been more
 *   some frames damaged                     the same; damaged frames stay as they are
 *   damaged, with live pages                byte by byte, as it is
 *   the file gets none of its pages         not at all
 *
 * Everything that is copied is compared with its checksums first: header and directory by the walk, frames here. What
 * does not match keeps its checksums, so that it is noticed by those who read it later, too.
 *
 * A second thread writes to a file while this one fills the next buffer. Nothing here changes the catalog.
 */
#include "base/check.h"
#include "move/mover.h"

#include <stdio.h>

enum {
    WRITE_BYTES = 512 << 10, /* small, so that the bytes are still in the processor's cache when they are written */
};

/* ---- writing ---------------------------------------------------------------------------------------------------- */

/* Runs in the writing thread. */
static void write_bytes(void *context)
{
    struct wb_move_write *w = context;
    int err = wb_node_file_write_at(w->file, w->at, w->bytes.ptr, w->bytes.len);

    wb_error_save(err, &w->error);
    /* lets the disk start while we copy the next blocks */
    wb_node_file_hint(w->file, WB_NODE_WRITE_BACK, w->at, w->bytes.len);
}

/* Waits until everything that was handed over is in its file. */
static int wait_for_writing(struct wb_move *m)
{
    wb_pool_wait(m->mover->pool);
    return m->writing.error.code < 0 ? wb_error_restore(&m->writing.error) : 0;
}

/* Hands the collected blocks of a file to the writing thread. */
static int write_out(struct wb_move *m, struct wb_move_target *file)
{
    struct wb_move_write *w = &m->writing;
    int err = wait_for_writing(m);

    WB_CHECK(file->out_at >= WB_SEGMENT_HEADER_BYTES);
    if (err < 0)
        return err;
    struct wb_buf filled = file->out;
    file->out = w->bytes;
    wb_buf_clear(&file->out);
    *w = (struct wb_move_write){.file = &file->to.file, .bytes = filled, .at = file->out_at};
    file->out_at += filled.len;
    return wb_pool_submit(m->mover->pool, write_bytes, w);
}

static int add_to_map(struct wb_move_target *file, uint64_t logical, uint64_t physical)
{
    const struct wb_segment_map_entry *last = file->map.count ? &file->map.items[file->map.count - 1] : NULL;

    WB_CHECK(!last || (last->logical < logical && last->physical < physical));
    return wb_vec_push(&file->map, (struct wb_segment_map_entry){logical, physical});
}

/* ---- damage ------------------------------------------------------------------------------------------------------ */

/* Reports a damaged place: what is wrong, and what became of its bytes. If nothing may be damaged, that is an error. */
static int find(struct wb_move *m, bool stays, uint64_t at, const char *why, const char *fate)
{
    char message[WB_ERROR_MESSAGE_MAX], name[WB_SEGMENT_NAME_MAX];

    if (m->damage == WB_MOVE_REFUSE)
        return wb_fail(WB_E_CORRUPT, "%s at %llu: %s", m->hold.from.file.path, (unsigned long long)at, why);
    snprintf(message, sizeof message, "%s; %s", why, fate);
    wb_segment_name(m->hold.row.number, m->hold.row.revision, name);
    return wb_mover_find(m->mover, &(struct wb_store_finding){stays, name, at, message});
}

/* A damaged part of the segment, from a block that cannot be read to the next one that can. */
static int find_part(struct wb_move *m, const struct wb_segment_damage *part)
{
    char fate[128];
    unsigned long long bytes = (unsigned long long)(part->end - part->at);

    if (part->pages)
        snprintf(fate, sizeof fate, "%llu pages are in these %llu bytes, which were kept as they are",
                 (unsigned long long)part->pages, bytes);
    else
        snprintf(fate, sizeof fate, "no page needs these %llu bytes, which were dropped", bytes);
    return find(m, part->pages > 0, part->at, part->why, fate);
}

/* Copies a damaged part that contains live pages, byte by byte; drops one that does not. */
static int copy_part(struct wb_move *m, const struct wb_segment_damage *part)
{
    struct wb_move_target *file = &m->files[0];
    const struct wb_segment_map_entry *blocks = m->walk.live.blocks.items;
    uint64_t at = part->at, start = file->out_at + file->out.len;
    int err = find_part(m, part);

    if (err < 0 || part->pages == 0)
        return err;
    file->live += part->pages;
    file->unflagged = true;
    for (size_t i = part->first; i < part->first + part->count && err == 0; i++)
        err = add_to_map(file, blocks[i].logical, start + (blocks[i].physical - at));
    while (at < part->end && err == 0) {
        size_t bytes = part->end - at < WRITE_BYTES ? (size_t)(part->end - at) : WRITE_BYTES, got = 0;
        err = wb_buf_reserve(&file->out, bytes);
        if (err == 0)
            err = wb_node_file_read_at(&m->hold.from.file, at, file->out.ptr + file->out.len, bytes, &got);
        if (err == 0 && got == 0)
            break; /* the file is shorter than it should be */
        file->out.len += got;
        at += got;
        if (err == 0 && file->out.len >= WRITE_BYTES)
            err = write_out(m, file);
    }
    return err;
}

/* Compares the frames of the current block with their checksums. at: where it is in the old file. */
static int check_frames(struct wb_move *m, const char *block, uint64_t at)
{
    struct wb_block_damage damage;
    char why[128], fate[128];
    int sound = wb_block_check(&m->walk.walk.index, block, m->walk.dead, &damage);

    if (sound != 0)
        return sound < 0 ? sound : 0;
    bool one = damage.frames == 1;
    snprintf(why, sizeof why, "%u frame%s of a block %s", damage.frames, one ? "" : "s",
             one ? "does not match its checksum" : "do not match their checksums");
    snprintf(fate, sizeof fate, "%u page%s in it cannot be read, and these bytes were kept as they are", damage.pages,
             damage.pages == 1 ? "" : "s");
    return find(m, true, at + damage.at, why, fate);
}

/* A block could not be scrubbed; lost: or only by losing a page that nobody could read anyway. Says why. */
static int find_unscrubbed(struct wb_move *m, uint64_t at, bool lost)
{
    struct wb_mover *mover = m->mover;
    char why[160];

    snprintf(why, sizeof why, "%s", wb_error_message());
    /* That says more about the same damage than what was found when its frames were checked. */
    if (mover->findings.count && mover->findings.items[mover->findings.count - 1].at >= at)
        mover->findings.count--;
    return find(m, true, at, why,
                lost ? "what was left of that page was removed together with the pages that were taken down"
                     : "so bytes of pages that were taken down stay in this block");
}

/* ---- blocks ------------------------------------------------------------------------------------------------------ */

/*
 * Copies a block of which something must change. If it cannot be scrubbed because a base cannot be read, it keeps its
 * dead bytes. If a base would have to be compressed again and cannot be read, the block stays as it is.
 */
static int change_block(struct wb_move *m, struct wb_move_target *file, const bool *dead, const char *block,
                        uint64_t at)
{
    const struct wb_block_index *index = &m->walk.walk.index;
    struct wb_mover *mover = m->mover;
    struct wb_mover_group *group = mover->group;
    char why[160];
    struct wb_block_change change = {
        .dead = dead,
        .old = m->walk.old,
        .scrub = m->count > 1 || m->hold.row.removed > 0,
        .extra = group ? group->extras.items : NULL,
        .extra_count = group ? group->extras.count : 0,
    };
    int err = wb_block_rewrite(mover->builder, mover->zstd, index, block, &change, &file->out);

    if (err == WB_E_CORRUPT && change.extra_count) { /* nothing can be added to a block that cannot be read */
        wb_mover_group_forget(group);
        change.extra_count = 0;
        err = wb_block_rewrite(mover->builder, mover->zstd, index, block, &change, &file->out);
    }
    if (err == 0 && change.lost)
        err = find_unscrubbed(m, at, true);
    if (err == WB_E_CORRUPT && m->damage == WB_MOVE_REFUSE) {
        snprintf(why, sizeof why, "%s", wb_error_message());
        return find(m, true, at, why, "");
    }
    if (err == WB_E_CORRUPT && change.scrub) {
        err = find_unscrubbed(m, at, false);
        change.scrub = false;
        if (err == 0)
            err = wb_block_rewrite(mover->builder, mover->zstd, index, block, &change, &file->out);
    }
    if (err == WB_E_CORRUPT) {
        for (size_t i = 0; i < index->entries.count; i++)
            change.kept_dead += dead[i];
        file->unflagged = true;
        err = wb_buf_append(&file->out, block, (size_t)index->head.bytes);
    }
    if (err == 0 && group)
        wb_mover_group_place(group, m->hold.row.number, index->head.logical);
    file->lead_dead += change.kept_dead;
    return err;
}

/* Finds out which entries of the current block a file does not get. */
static const bool *choose(struct wb_move *m, const struct wb_move_target *file)
{
    const struct wb_block_index *index = &m->walk.walk.index;

    if (m->count == 1)
        return m->walk.dead;
    WB_CHECK(m->dead.cap >= index->entries.count);
    for (size_t i = 0; i < index->entries.count; i++)
        m->dead.items[i] = m->walk.dead[i] || !wb_catalog_range_has(&file->row.range, index->entries.items[i].id);
    return m->dead.items;
}

/* Copies what a file gets of the current block; with old versions of its pages from elsewhere (mover_group.c). */
static int copy_block(struct wb_move *m, struct wb_move_target *file, const char *block, uint64_t at)
{
    const struct wb_block_index *index = &m->walk.walk.index;
    const struct wb_block_head *head = &index->head;
    const bool *dead = choose(m, file), *old = m->walk.old;
    size_t kept = 0, wrong = 0;
    int err = 0;

    for (size_t i = 0; i < head->count && err == 0; i++) {
        const struct wb_block_entry *entry = &index->entries.items[i];
        if (dead[i])
            continue;
        kept++;
        wrong += old[i] != ((entry->flags & WB_BLOCK_ENTRY_OLD) != 0);
        file->old += old[i];
        if (m->count > 1)
            err = wb_vec_push(&file->pages, (struct wb_move_page){entry->id, head->logical, entry->slot});
    }
    if (err < 0 || kept == 0)
        return err;
    file->live += kept;
    err = add_to_map(file, head->logical, file->out_at + file->out.len);
    if (err == 0 && m->mover->group)
        err = wb_mover_group_block(m->mover->group, m->mover->repo, &m->hold, index);
    if (err < 0)
        return err;
    if (kept < head->count || wrong || (m->mover->group && m->mover->group->extras.count))
        err = change_block(m, file, dead, block, at);
    else
        err = wb_buf_append(&file->out, block, (size_t)head->bytes);
    return err == 0 && file->out.len >= WRITE_BYTES ? write_out(m, file) : err;
}

/* Copies the current block to all files that get pages of it. */
static int copy_to_all(struct wb_move *m, const char *block, uint64_t at)
{
    size_t entries = m->walk.walk.index.entries.count, dead = 0;

    while (dead < entries && m->walk.dead[dead])
        dead++;
    if (dead == entries)
        return 0;
    int err = check_frames(m, block, at);
    if (err == 0 && m->count > 1)
        err = wb_vec_reserve(&m->dead, entries);
    for (size_t i = 0; i < m->count && err == 0; i++)
        err = copy_block(m, &m->files[i], block, at);
    return err;
}

/* If nothing may be damaged, that is said before anything is copied. */
static int refuse(struct wb_move *m)
{
    const struct wb_segment_live *live = &m->walk.live;

    if (m->damage != WB_MOVE_REFUSE || (live->damages.count == 0 && live->nowhere == 0))
        return 0;
    if (live->damages.count)
        return find_part(m, &live->damages.items[0]);
    return wb_fail(WB_E_CORRUPT, "%s: pages that the catalog knows are not in it", m->hold.from.file.path);
}

int wb_move_copy(struct wb_move *m)
{
    struct wb_mover *mover = m->mover;
    const char *block;
    uint64_t at, before = mover->done;
    int err = refuse(m), got;

    WB_CHECK(m->hold.txn.kind == WB_CATALOG_TXN_HELD);
    if (mover->group)
        wb_mover_group_begin(mover->group, &m->hold.row);
    while (err == 0 && (got = wb_segment_live_next(&m->walk, &block, &at)) != 0) {
        err = got < 0 ? got : m->walk.damage ? copy_part(m, m->walk.damage) : copy_to_all(m, block, at);
        mover->done = before + m->walk.walk.next;
        if (err == 0)
            err = wb_mover_report(mover);
    }
    for (size_t i = 0; i < m->count && err == 0; i++)
        err = write_out(m, &m->files[i]);
    int written = wait_for_writing(m);
    mover->done = before + m->hold.row.bytes;
    return err < 0 ? err : written;
}
