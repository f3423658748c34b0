/*
 * catalog_rows.c - converts rows of the catalog to bytes and back: the tables pages,
 * segments and state. The other tables are in catalog_history.c, catalog_snapshots.c,
 * catalog_sites.c and catalog_nodes.c.
 *
 * Numbers in keys are big-endian, so that they sort; numbers in values are little-endian
 * or varints. A row is valid if and only if its value has the length that its table
 * prescribes, and its numbers do not contradict each other. The value of an entry
 * must be filled exactly by its ten varints, its flags and two hashes.
 * docs/formats/catalog.md lists all fields.
 *
 * This file never checks a checksum: the tree has done that before we see a row.
 */
#include "catalog/catalog_tables.h"
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"

/* Lengths of keys and values. */
enum {
    ENTRY_NUMBERS = 10,      /* varints in an entry */
    ENTRY_BYTES_MAX = 144,   /* enough for the longest entry that we write */
    ENTRY_HASHES_BYTES = 16, /* content and site */
    SEGMENT_KEY_BYTES = 4,
    SEGMENT_BYTES = 156,
    SEGMENT_BYTES_MAX = SEGMENT_BYTES + WB_CELLS_BYTES, /* of a segment whose range has gaps */
    STATE_BYTES = 120,
};

enum entry_flags { ENTRY_HAS_HISTORY = 1, ENTRY_HAS_FLOOR = 2, ENTRY_HAS_SEEN = 4, ENTRY_FLAGS = 7 };

_Static_assert((int)SEGMENT_BYTES_MAX <= (int)WB_TREE_VALUE_MAX, "every segment row fits in the tree");
_Static_assert((int)ENTRY_BYTES_MAX <= (int)WB_TREE_VALUE_MAX, "every entry fits in the tree");
_Static_assert(SEGMENT_BYTES == 2 * 4 + 11 * 8 + 2 * 4 + 5 * 8 + 3 * 4, "the fields of a segment's row");
_Static_assert(STATE_BYTES == 10 * 8 + 4 * 4 + 8 + 4 + 4 + 8, "the fields of the summary");

/* ---- any row --------------------------------------------------------------------------- */

int wb_catalog_row_read(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_slice key, size_t cap,
                        char *out, size_t *len_out)
{
    WB_CHECK(key.len > 0);
    WB_CHECK(key.len <= WB_TREE_KEY_MAX);
    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    return wb_tree_get(wb_catalog_tree(txn->catalog), wb_catalog_txn_state(txn), table, key, out, cap, len_out);
}

int wb_catalog_row_get(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_slice key, size_t len,
                       char *out)
{
    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(len <= WB_TREE_VALUE_MAX);

    size_t got;
    int err = wb_catalog_row_read(txn, table, key, len, out, &got);

    return err < 0 || got == len ? err : wb_catalog_corrupt(txn->catalog, table, "a row of the wrong length");
}

int wb_catalog_row_put(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_slice key, const char *bytes,
                       size_t len)
{
    WB_CHECK(key.len > 0);
    WB_CHECK(key.len <= WB_TREE_KEY_MAX);
    WB_CHECK(len > 0);
    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    return wb_tree_put(wb_catalog_tree(txn->catalog), table, key, wb_slice(bytes, len));
}

int wb_catalog_row_delete(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_slice key)
{
    WB_CHECK(key.len > 0);
    WB_CHECK(key.len <= WB_TREE_KEY_MAX);
    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    return wb_tree_delete(wb_catalog_tree(txn->catalog), table, key);
}

/* A walk over a table. */
struct catalog_walk {
    struct wb_catalog_txn *txn;
    enum wb_catalog_table table;
    size_t key_len, len; /* what every key and value must have; 0 means any length */
    wb_tree_each_row each;
    void *context;
};

static int check_lengths(void *context, struct wb_slice key, struct wb_slice row)
{
    const struct catalog_walk *walk = context;

    WB_CHECK(walk->each != NULL);
    if ((walk->key_len && key.len != walk->key_len) || (walk->len && row.len != walk->len))
        return wb_catalog_corrupt(walk->txn->catalog, walk->table, "a row of the wrong length");
    return walk->each(walk->context, key, row);
}

int wb_catalog_row_each(struct wb_catalog_txn *txn, enum wb_catalog_table table, size_t key_len, size_t len,
                        wb_tree_each_row each, void *context)
{
    struct catalog_walk walk = {txn, table, key_len, len, each, context};

    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(each != NULL);
    WB_CHECK(len <= WB_TREE_VALUE_MAX);
    return wb_tree_each(wb_catalog_tree(txn->catalog), wb_catalog_txn_state(txn), table, check_lengths, &walk);
}

int wb_catalog_row_each_from(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_slice from,
                             wb_tree_each_row each, void *context)
{
    return wb_catalog_row_each_sound(txn, table, from, each, NULL, context);
}

int wb_catalog_row_each_sound(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_slice from,
                              wb_tree_each_row each, wb_tree_passed damaged, void *context)
{
    WB_CHECK(txn->kind >= (damaged ? WB_CATALOG_TXN_HELD : WB_CATALOG_TXN_AWAKE));
    WB_CHECK(each != NULL);
    return wb_tree_each_sound(wb_catalog_tree(txn->catalog), wb_catalog_txn_state(txn), table, from, each, damaged,
                              context);
}

/* ---- pages ------------------------------------------------------------------------ */

/*
 * The numbers of an entry are varints, because most of them are small: a row takes 40
 * bytes instead of 69, so that more of a large catalog fits in memory.
 */
/* Returns false if the row is not an entry. */
static bool entry_from_row(const char *row, size_t len, struct wb_catalog_entry *entry_out)
{
    uint64_t v[ENTRY_NUMBERS];
    const char *at = row, *end = row + len;

    for (size_t i = 0; i < ENTRY_NUMBERS; i++)
        if (!wb_get_varint(&at, end, &v[i]))
            return false;
    uint64_t flags = 0, floor = 0, seen = 0;
    if (!wb_get_varint(&at, end, &flags) || flags > ENTRY_FLAGS ||
        (flags & ENTRY_HAS_FLOOR && !wb_get_varint(&at, end, &floor)) ||
        (flags & ENTRY_HAS_SEEN && !wb_get_varint(&at, end, &seen)) || end - at != ENTRY_HASHES_BYTES)
        return false;
    *entry_out = (struct wb_catalog_entry){
        .time_ms = (int64_t)wb_unzigzag(v[0]),
        .place = {.logical = v[1], .segment = (uint32_t)v[2], .slot = (uint16_t)v[3]},
        .status = (uint16_t)v[4],
        .body_bytes = (uint32_t)v[5],
        .stored_bytes = (uint32_t)v[6],
        .epoch = v[7],
        .seen_epoch = v[7] + wb_unzigzag(seen),
        .lifetime = (uint16_t)v[8],
        .lifetime_count = (uint16_t)v[9],
        .history = flags & ENTRY_HAS_HISTORY,
        .floor_ms = flags & ENTRY_HAS_FLOOR ? (int64_t)(wb_unzigzag(v[0]) - wb_unzigzag(floor)) : INT64_MIN,
        .content = wb_get64(at),
        .site = wb_get64(at + 8),
    };
    return entry_out->place.segment > 0 && entry_out->place.logical > 0 && entry_out->epoch > 0 &&
           entry_out->seen_epoch > 0 && entry_out->content != 0;
}

/* Returns the row's length. */
static size_t entry_to_row(const struct wb_catalog_entry *entry, char row[ENTRY_BYTES_MAX])
{
    WB_CHECK(entry->place.segment > 0);
    WB_CHECK(entry->epoch > 0);
    const uint64_t v[ENTRY_NUMBERS] = {
        wb_zigzag((uint64_t)entry->time_ms), /* times before 1970 stay short */
        entry->place.logical, entry->place.segment, entry->place.slot, entry->status, entry->body_bytes,
        entry->stored_bytes, entry->epoch, entry->lifetime, entry->lifetime_count,
    };
    size_t len = 0;

    for (size_t i = 0; i < ENTRY_NUMBERS; i++)
        len += wb_put_varint(row + len, v[i]);
    /* The floor is usually close to the time. If the page has a history, that knows the floor. */
    bool floor = !entry->history && entry->floor_ms != INT64_MIN;
    bool seen = entry->seen_epoch && entry->seen_epoch != entry->epoch;
    len += wb_put_varint(row + len, (entry->history ? ENTRY_HAS_HISTORY : 0) | (floor ? ENTRY_HAS_FLOOR : 0) |
                                        (seen ? ENTRY_HAS_SEEN : 0));
    if (floor)
        len += wb_put_varint(row + len, wb_zigzag((uint64_t)entry->time_ms - (uint64_t)entry->floor_ms));
    if (seen)
        len += wb_put_varint(row + len, wb_zigzag(entry->seen_epoch - entry->epoch));
    WB_CHECK(len + ENTRY_HASHES_BYTES <= ENTRY_BYTES_MAX);
    wb_put64(row + len, entry->content);
    wb_put64(row + len + 8, entry->site);
    return len + ENTRY_HASHES_BYTES;
}

int wb_catalog_entry_get(struct wb_catalog_txn *txn, struct wb_pageid id, struct wb_catalog_entry *entry_out)
{
    char key[WB_PAGEID_BYTES], row[ENTRY_BYTES_MAX];
    size_t len;
    int err;

    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    *entry_out = (struct wb_catalog_entry){0};
    wb_pageid_put(id, key);
    err = wb_catalog_row_read(txn, WB_CATALOG_PAGES, wb_slice(key, sizeof key), sizeof row, row, &len);
    if (err == 0 && !entry_from_row(row, len, entry_out))
        err = wb_catalog_corrupt(txn->catalog, WB_CATALOG_PAGES, "a row that is not an entry");
    return err;
}

int wb_catalog_entry_put(struct wb_catalog_txn *txn, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    char key[WB_PAGEID_BYTES], row[ENTRY_BYTES_MAX];

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(entry->place.segment > 0);
    WB_CHECK(entry->place.logical > 0);
    WB_CHECK(entry->epoch > 0);
    WB_CHECK(entry->content != 0);
    wb_pageid_put(id, key);
    size_t len = entry_to_row(entry, row);
    return wb_catalog_row_put(txn, WB_CATALOG_PAGES, wb_slice(key, sizeof key), row, len);
}

int wb_catalog_entry_delete(struct wb_catalog_txn *txn, struct wb_pageid id)
{
    char key[WB_PAGEID_BYTES];

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    wb_pageid_put(id, key);
    return wb_catalog_row_delete(txn, WB_CATALOG_PAGES, wb_slice(key, sizeof key));
}

struct entry_walk {
    struct wb_catalog_txn *txn;
    wb_catalog_each_entry each;
    wb_tree_passed damaged; /* NULL: damage ends the walk */
    void *context;
};

static int walk_entry(void *context, struct wb_slice key, struct wb_slice row)
{
    struct entry_walk *walk = context;
    struct wb_catalog_entry entry;

    WB_CHECK(key.len == WB_PAGEID_BYTES);
    if (!entry_from_row(row.ptr, row.len, &entry))
        return wb_catalog_corrupt(walk->txn->catalog, WB_CATALOG_PAGES, "a row that is not an entry");
    return walk->each(walk->context, wb_pageid_get(key.ptr), &entry);
}

int wb_catalog_entry_each(struct wb_catalog_txn *txn, wb_catalog_each_entry each, void *context)
{
    struct entry_walk walk = {txn, each, NULL, context};

    WB_CHECK(each != NULL);
    return wb_catalog_row_each(txn, WB_CATALOG_PAGES, WB_PAGEID_BYTES, 0, walk_entry, &walk);
}

/* Here nobody has checked the lengths of keys. */
static int walk_entry_from(void *context, struct wb_slice key, struct wb_slice row)
{
    struct entry_walk *walk = context;
    struct wb_catalog_entry entry;
    int err = 0;

    if (key.len != WB_PAGEID_BYTES)
        err = wb_catalog_corrupt(walk->txn->catalog, WB_CATALOG_PAGES, "a key that is not a page id");
    else if (!entry_from_row(row.ptr, row.len, &entry))
        err = wb_catalog_corrupt(walk->txn->catalog, WB_CATALOG_PAGES, "a row that is not an entry");
    if (err < 0)
        return walk->damaged ? walk->damaged(walk->context) : err;
    return walk->each(walk->context, wb_pageid_get(key.ptr), &entry);
}

static int pass_entries(void *context)
{
    struct entry_walk *walk = context;

    WB_CHECK(walk->damaged != NULL);
    return walk->damaged(walk->context);
}

int wb_catalog_entry_each_sound(struct wb_catalog_txn *txn, struct wb_pageid from, wb_catalog_each_entry each,
                                wb_tree_passed damaged, void *context)
{
    struct entry_walk walk = {txn, each, damaged, context};
    char key[WB_PAGEID_BYTES];

    WB_CHECK(each != NULL);
    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    wb_pageid_put(from, key);
    return wb_catalog_row_each_sound(txn, WB_CATALOG_PAGES, wb_slice(key, sizeof key), walk_entry_from,
                                     damaged ? pass_entries : NULL, &walk);
}

int wb_catalog_entry_each_from(struct wb_catalog_txn *txn, struct wb_pageid from, wb_catalog_each_entry each,
                               void *context)
{
    return wb_catalog_entry_each_sound(txn, from, each, NULL, context);
}

/* ---- segments ------------------------------------------------------------------------ */

/* Returns false if the row contradicts itself. */
static bool segment_from_row(const char *key, const char *row, size_t len, struct wb_catalog_segment *row_out)
{
    if (len != SEGMENT_BYTES && len != SEGMENT_BYTES_MAX)
        return false;
    *row_out = (struct wb_catalog_segment){
        .number = wb_get32_be(key),
        .revision = wb_get32(row),
        .sealed = wb_get32(row + 4) != 0,
        .bytes = wb_get64(row + 8),
        .logical_end = wb_get64(row + 16),
        .pages = wb_get64(row + 24),
        .live = wb_get64(row + 32),
        .bytes_dead = wb_get64(row + 40),
        .touched = wb_get64(row + 48),
        .removed = wb_get64(row + 56),
        .map_at = wb_get64(row + 64),
        .map_count = wb_get64(row + 72),
        .epoch_min = wb_get64(row + 80),
        .epoch_max = wb_get64(row + 88),
        .lead_dead = wb_get32(row + 96),
        .node = wb_get32(row + 100),
        .old = wb_get64(row + 104),
        .old_known = wb_get64(row + 112),
        .old_epoch = wb_get64(row + 120),
        .returned = wb_get64(row + 128),
        .range = {.prefix = wb_get64(row + 136), .bits = wb_get32(row + 144)},
        .origin = wb_get32(row + 148),
        .split = wb_get32(row + 152) != 0,
    };
    if (len == SEGMENT_BYTES_MAX)
        wb_cells_read(row + SEGMENT_BYTES, &row_out->range.gaps);
    return row_out->number > 0 && row_out->node > 0 && wb_catalog_range_is_valid(&row_out->range) &&
           row_out->live <= row_out->pages && row_out->old <= row_out->live &&
           (row_out->revision > 0 || (row_out->map_at == 0 && row_out->map_count == 0)) &&
           (row_out->live == 0 || row_out->epoch_min <= row_out->epoch_max);
}

static int segment_damaged(const struct wb_catalog *catalog)
{
    return wb_catalog_corrupt(catalog, WB_CATALOG_SEGMENTS, "a row that contradicts itself");
}

int wb_catalog_segment_get(struct wb_catalog_txn *txn, uint32_t number, struct wb_catalog_segment *row_out)
{
    char key[SEGMENT_KEY_BYTES], row[SEGMENT_BYTES_MAX];
    size_t len;
    int err;

    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    WB_CHECK(number > 0);
    *row_out = (struct wb_catalog_segment){0};
    wb_put32_be(key, number);
    err = wb_catalog_row_read(txn, WB_CATALOG_SEGMENTS, wb_slice(key, sizeof key), sizeof row, row, &len);
    if (err == 0 && !segment_from_row(key, row, len, row_out))
        err = segment_damaged(txn->catalog);
    return err;
}

int wb_catalog_segment_put(struct wb_catalog_txn *txn, const struct wb_catalog_segment *from)
{
    char key[SEGMENT_KEY_BYTES], row[SEGMENT_BYTES_MAX] = {0};

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(from->number > 0);
    WB_CHECK(from->node > 0);
    WB_CHECK(wb_catalog_range_is_valid(&from->range));
    WB_CHECK(from->live <= from->pages);
    WB_CHECK(from->old <= from->live);
    WB_CHECK(from->revision > 0 || (from->map_at == 0 && from->map_count == 0));
    WB_CHECK(from->live == 0 || from->epoch_min <= from->epoch_max);
    wb_put32_be(key, from->number);
    wb_put32(row, from->revision);
    wb_put32(row + 4, from->sealed);
    wb_put64(row + 8, from->bytes);
    wb_put64(row + 16, from->logical_end);
    wb_put64(row + 24, from->pages);
    wb_put64(row + 32, from->live);
    wb_put64(row + 40, from->bytes_dead);
    wb_put64(row + 48, from->touched);
    wb_put64(row + 56, from->removed);
    wb_put64(row + 64, from->map_at);
    wb_put64(row + 72, from->map_count);
    wb_put64(row + 80, from->epoch_min);
    wb_put64(row + 88, from->epoch_max);
    wb_put32(row + 96, from->lead_dead);
    wb_put32(row + 100, from->node);
    wb_put64(row + 104, from->old);
    wb_put64(row + 112, from->old_known);
    wb_put64(row + 120, from->old_epoch);
    wb_put64(row + 128, from->returned);
    wb_put64(row + 136, from->range.prefix);
    wb_put32(row + 144, from->range.bits);
    wb_put32(row + 148, from->origin);
    wb_put32(row + 152, from->split);
    wb_cells_write(&from->range.gaps, row + SEGMENT_BYTES);
    return wb_catalog_row_put(txn, WB_CATALOG_SEGMENTS, wb_slice(key, sizeof key), row,
                              wb_cells_count(&from->range.gaps) ? SEGMENT_BYTES_MAX : SEGMENT_BYTES);
}

int wb_catalog_segment_delete(struct wb_catalog_txn *txn, uint32_t number)
{
    char key[SEGMENT_KEY_BYTES];

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(number > 0);
    wb_put32_be(key, number);
    return wb_catalog_row_delete(txn, WB_CATALOG_SEGMENTS, wb_slice(key, sizeof key));
}

struct segment_walk {
    const struct wb_catalog_txn *txn;
    wb_catalog_each_segment each;
    void *context;
};

static int walk_segment(void *context, struct wb_slice key, struct wb_slice row)
{
    struct segment_walk *walk = context;
    struct wb_catalog_segment segment;

    WB_CHECK(key.len == SEGMENT_KEY_BYTES);
    if (!segment_from_row(key.ptr, row.ptr, row.len, &segment))
        return segment_damaged(walk->txn->catalog);
    return walk->each(walk->context, &segment);
}

int wb_catalog_segment_each(struct wb_catalog_txn *txn, wb_catalog_each_segment each, void *context)
{
    struct segment_walk walk = {txn, each, context};

    WB_CHECK(each != NULL);
    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    return wb_catalog_row_each(txn, WB_CATALOG_SEGMENTS, SEGMENT_KEY_BYTES, 0, walk_segment, &walk);
}

/* ---- the summary: the single row of table state ------------------------------------------------ */

static void summary_from_row(const char *row, struct wb_catalog_summary *summary_out)
{
    *summary_out = (struct wb_catalog_summary){
        .commit = wb_get64(row),
        .pages = wb_get64(row + 8),
        .versions = wb_get64(row + 16),
        .captures = wb_get64(row + 24),
        .gone = wb_get64(row + 32),
        .sites = wb_get64(row + 40),
        .revisits = wb_get64(row + 48),
        .bars = wb_get64(row + 56),
        .bytes_pages = wb_get64(row + 64),
        .epoch = wb_get64(row + 72),
        .snapshot = wb_get32(row + 80),
        .next_segment = wb_get32(row + 84),
        .history = {.keep = (enum wb_store_keep)wb_get32(row + 88), .value = wb_get64(row + 96)},
        .next_node = wb_get32(row + 104),
        .takedowns = wb_get64(row + 112),
    };
}

int wb_catalog_summary_get(struct wb_catalog_txn *txn, struct wb_catalog_summary *summary_out)
{
    char row[STATE_BYTES];
    int err;

    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    *summary_out = (struct wb_catalog_summary){0};
    err = wb_catalog_row_get(txn, WB_CATALOG_SUMMARY, WB_SLICE_LIT("state"), sizeof row, row);
    if (err == WB_E_NOTFOUND)
        return wb_catalog_corrupt(txn->catalog, WB_CATALOG_SUMMARY, "no row");
    if (err < 0)
        return err;
    summary_from_row(row, summary_out);
    if (summary_out->epoch == 0 || summary_out->epoch == UINT64_MAX || summary_out->next_segment == 0 ||
        summary_out->versions < summary_out->pages || summary_out->captures < summary_out->versions ||
        summary_out->history.keep > WB_STORE_KEEP_DURATION || summary_out->history.value > WB_STORE_HISTORY_VALUE_MAX)
        return wb_catalog_corrupt(txn->catalog, WB_CATALOG_SUMMARY, "counters that contradict each other");
    return 0;
}

int wb_catalog_summary_put(struct wb_catalog_txn *txn, const struct wb_catalog_summary *summary)
{
    char row[STATE_BYTES] = {0};

    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    WB_CHECK(summary->epoch > 0);
    WB_CHECK(summary->next_segment > 0);
    WB_CHECK(summary->versions >= summary->pages);
    WB_CHECK(summary->captures >= summary->versions);
    wb_put64(row, summary->commit);
    wb_put64(row + 8, summary->pages);
    wb_put64(row + 16, summary->versions);
    wb_put64(row + 24, summary->captures);
    wb_put64(row + 32, summary->gone);
    wb_put64(row + 40, summary->sites);
    wb_put64(row + 48, summary->revisits);
    wb_put64(row + 56, summary->bars);
    wb_put64(row + 64, summary->bytes_pages);
    wb_put64(row + 72, summary->epoch);
    wb_put32(row + 80, summary->snapshot);
    wb_put32(row + 84, summary->next_segment);
    wb_put32(row + 88, summary->history.keep);
    wb_put64(row + 96, summary->history.value);
    wb_put32(row + 104, summary->next_node);
    wb_put64(row + 112, summary->takedowns);
    return wb_catalog_row_put(txn, WB_CATALOG_SUMMARY, WB_SLICE_LIT("state"), row, sizeof row);
}

/* ---- all segment rows ------------------------------------------------------------------------ */

static int add_row(void *context, const struct wb_catalog_segment *row)
{
    struct wb_catalog_rows *rows = context;

    WB_CHECK(row->number > 0);
    WB_CHECK(rows->count == 0 || rows->items[rows->count - 1].number < row->number);
    return wb_vec_push(rows, *row);
}

int wb_catalog_rows_read(struct wb_catalog_txn *txn, struct wb_catalog_rows *rows_out)
{
    WB_CHECK(txn->kind >= WB_CATALOG_TXN_AWAKE);
    *rows_out = (struct wb_catalog_rows){0};
    int err = wb_catalog_segment_each(txn, add_row, rows_out);
    if (err < 0)
        wb_catalog_rows_release(rows_out);
    WB_CHECK(err == 0 || rows_out->count == 0);
    return err;
}

void wb_catalog_rows_release(struct wb_catalog_rows *rows)
{
    WB_CHECK(rows->count <= rows->cap);
    wb_vec_release(rows);
}
