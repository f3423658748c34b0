/*
 * merge.c - walks an old table and sorted edits together, key by key.
 *
 * It never applies an edit. The caller knows what an edit means and what to write in place of the old record.
 *
 *   old    a cursor. One record is read ahead; it stays valid while the edits of its key are returned.
 *   edits  a sorter. One edit is read ahead; its memory belongs to the sorter until the next one is read, which is why
 *          the key of the edits being returned is copied.
 */
#include "base/error.h"
#include "base/mem.h"
#include "table/table_format.h"

enum { MERGE_MAGIC = 0x57424d47 }; /* "WBMG" */

enum merge_ahead {
    AHEAD_NONE,  /* the next record has not been read yet */
    AHEAD_READY, /* it has been read, but not returned */
    AHEAD_END,   /* there are no more records */
};

struct wb_merge {
    uint32_t magic;
    struct wb_cursor *old;   /* NULL if there is no old table */
    struct wb_sorter *edits;
    size_t suffix_bytes;
    enum merge_ahead old_ahead, edit_ahead;
    struct wb_table_record old_record, edit; /* read ahead */
    struct wb_buf key;       /* the last key that had edits */
    bool editing;            /* the next edit may belong to key */
    bool any;                /* key has been set */
};

int wb_merge_open(struct wb_cursor *old, struct wb_sorter *edits, size_t suffix_bytes, struct wb_merge **merge_out)
{
    struct wb_merge *merge = wb_alloc_zero(1, sizeof *merge);

    *merge_out = NULL;
    WB_CHECK(edits != NULL);
    WB_CHECK(suffix_bytes < WB_TABLE_KEY_MAX);
    if (!merge)
        return WB_E_NOMEM;
    merge->magic = MERGE_MAGIC;
    merge->old = old;
    merge->edits = edits;
    merge->suffix_bytes = suffix_bytes;
    merge->old_ahead = old ? AHEAD_NONE : AHEAD_END;
    *merge_out = merge;
    return 0;
}

void wb_merge_close(struct wb_merge *merge)
{
    if (!merge)
        return;
    WB_CHECK(merge->magic == MERGE_MAGIC);
    merge->magic = 0;
    wb_buf_release(&merge->key);
    wb_free(merge);
}

static void check_merge(const struct wb_merge *merge)
{
    WB_CHECK(merge->magic == MERGE_MAGIC);
    WB_CHECK(merge->old != NULL || merge->old_ahead == AHEAD_END);
    WB_CHECK(!merge->editing || merge->any);
}

static int fetch_old(struct wb_merge *merge)
{
    check_merge(merge);
    if (merge->old_ahead != AHEAD_NONE)
        return 0;
    int more = wb_cursor_next(merge->old, &merge->old_record);
    if (more < 0)
        return more;
    merge->old_ahead = more ? AHEAD_READY : AHEAD_END;
    return 0;
}

static int fetch_edit(struct wb_merge *merge)
{
    check_merge(merge);
    if (merge->edit_ahead != AHEAD_NONE)
        return 0;
    int more = wb_sorter_next(merge->edits, &merge->edit);
    if (more < 0)
        return more;
    if (more && merge->edit.key.len < merge->suffix_bytes)
        return wb_fail(WB_E_INVALID, "an edit has a key of %zu bytes, which is shorter than its suffix of %zu bytes",
                       merge->edit.key.len, merge->suffix_bytes);
    merge->edit_ahead = more ? AHEAD_READY : AHEAD_END;
    return 0;
}

/* The key of the record that the next edit concerns: its own key without the suffix. */
static struct wb_slice edit_key(const struct wb_merge *merge)
{
    WB_CHECK(merge->edit.key.len >= merge->suffix_bytes);
    WB_CHECK(merge->edit_ahead == AHEAD_READY);
    return wb_slice(merge->edit.key.ptr, merge->edit.key.len - merge->suffix_bytes);
}

int wb_merge_edit(struct wb_merge *merge, struct wb_table_record *edit_out)
{
    check_merge(merge);
    *edit_out = (struct wb_table_record){0};
    if (!merge->editing)
        return 0;
    int err = fetch_edit(merge);
    if (err < 0)
        return err;
    if (merge->edit_ahead == AHEAD_END || !wb_slice_equal(edit_key(merge), wb_buf_slice(&merge->key))) {
        merge->editing = false;
        return 0;
    }
    *edit_out = merge->edit;
    merge->edit_ahead = AHEAD_NONE;
    return 1;
}

/* The next key has edits. Copies it, because reading the next edit invalidates this one. */
static int begin_edits(struct wb_merge *merge)
{
    check_merge(merge);
    WB_CHECK(!merge->editing);
    struct wb_slice key = edit_key(merge);
    if (merge->any && wb_slice_compare(wb_buf_slice(&merge->key), key) > 0)
        return wb_fail(WB_E_INVALID, "the edits are not in the order of the keys that they concern");
    wb_buf_clear(&merge->key);
    if (wb_buf_append_slice(&merge->key, key) < 0)
        return WB_E_NOMEM;
    merge->any = true;
    merge->editing = true;
    return 0;
}

int wb_merge_next(struct wb_merge *merge, struct wb_slice *key_out, struct wb_table_record *old_out)
{
    struct wb_table_record passed;
    int err, order;

    check_merge(merge);
    *key_out = (struct wb_slice){NULL, 0};
    *old_out = (struct wb_table_record){0};
    while ((err = wb_merge_edit(merge, &passed)) == 1)
        ;
    if (err == 0)
        err = fetch_old(merge);
    if (err == 0)
        err = fetch_edit(merge);
    if (err < 0)
        return err;
    bool old = merge->old_ahead == AHEAD_READY, edit = merge->edit_ahead == AHEAD_READY;
    if (!old && !edit)
        return 0;
    order = old && edit ? wb_slice_compare(merge->old_record.key, edit_key(merge)) : old ? -1 : 1;
    if (order >= 0)
        err = begin_edits(merge);
    if (err < 0)
        return err;
    if (order <= 0) {
        *old_out = merge->old_record;
        merge->old_ahead = AHEAD_NONE;
    }
    *key_out = order <= 0 ? merge->old_record.key : wb_buf_slice(&merge->key);
    return 1;
}
