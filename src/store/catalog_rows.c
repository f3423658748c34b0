/*
 * catalog_rows.c - the rows of the catalog as bytes. Keys are big-endian, values
 * little-endian or varints; the last four bytes of each value are the low half of
 * XXH3 over key and value. A row is valid if and only if its length is the table's
 * (of pages and old: its ten numbers and the hash of the site fill it) and the checksum holds.
 */
#include "base/bytes.h"
#include "base/check.h"
#include "base/error.h"
#include "base/hash.h"
#include "store/catalog.h"

#include <stdio.h>

enum {
    ENTRY_NUMBERS = 10,
    ENTRY_BYTES_MAX = 64,
    SEGMENT_BYTES = 96,
    SITE_BYTES = 12,
    ENTRY_SITE_BYTES = 8,
    REVISIT_BYTES = 44,
    RETIRED_BYTES = 12,
    STATE_BYTES = 72,
    BAR_BYTES = 24,
    KEY_MAX = 480, /* LMDB takes keys of up to 511 bytes */
    CHECK_BYTES = 4,
};

static MDB_val val(const void *bytes, size_t len)
{
    return (MDB_val){len, (void *)(uintptr_t)bytes};
}

static uint32_t row_check(const MDB_val *key, const char *value, size_t len)
{
    char bytes[KEY_MAX + SEGMENT_BYTES];

    WB_CHECK(key->mv_size <= KEY_MAX && len <= SEGMENT_BYTES);
    memcpy(bytes, key->mv_data, key->mv_size);
    memcpy(bytes + key->mv_size, value, len);
    return wb_hash32(bytes, key->mv_size + len);
}

/* Copies a row out and checks it. len 0: a row of pages or old, whose length varies. */
static int check_row(struct wb_txn *txn, enum wb_table table, const MDB_val *key, const MDB_val *value, size_t len, char *out)
{
    if (len == 0 && value->mv_size > CHECK_BYTES && value->mv_size <= ENTRY_BYTES_MAX)
        len = value->mv_size;
    if (len == 0 || value->mv_size != len || key->mv_size > KEY_MAX)
        return wb_catalog_corrupt(txn->catalog, table, "a row of the wrong length");
    memcpy(out, value->mv_data, len);
    if (wb_get32(out + len - CHECK_BYTES) != row_check(key, out, len - CHECK_BYTES))
        return wb_catalog_corrupt(txn->catalog, table, "a row that does not match its checksum");
    return 0;
}

static int get_row_of(struct wb_txn *txn, enum wb_table table, MDB_val key, size_t len, char *out, size_t *len_out)
{
    MDB_val value;
    int rc = mdb_get(txn->lmdb, wb_catalog_dbi(txn->catalog, table), &key, &value);

    *len_out = 0;
    if (rc != 0)
        return wb_catalog_fail(txn->catalog, rc);
    int err = check_row(txn, table, &key, &value, len, out);
    *len_out = err == 0 ? value.mv_size : 0;
    return err;
}

static int get_row(struct wb_txn *txn, enum wb_table table, MDB_val key, size_t len, char *out)
{
    size_t got;

    return get_row_of(txn, table, key, len, out, &got);
}

static int put_row(struct wb_txn *txn, enum wb_table table, MDB_val key, char *bytes, size_t len)
{
    wb_put32(bytes + len - CHECK_BYTES, row_check(&key, bytes, len - CHECK_BYTES));
    MDB_val value = val(bytes, len);
    int rc = mdb_put(txn->lmdb, wb_catalog_dbi(txn->catalog, table), &key, &value, 0);
    return rc == 0 ? 0 : wb_catalog_fail(txn->catalog, rc);
}

static int delete_row(struct wb_txn *txn, enum wb_table table, MDB_val key)
{
    int rc = mdb_del(txn->lmdb, wb_catalog_dbi(txn->catalog, table), &key, NULL);

    return rc == 0 ? 0 : wb_catalog_fail(txn->catalog, rc);
}

/* Walks a table in key order; the order itself is checked, because a damaged tree may loop. */
static int each_row(struct wb_txn *txn, enum wb_table table, size_t len,
                    int (*each)(void *context, const MDB_val *key, const MDB_val *row), void *context)
{
    MDB_cursor *cursor = NULL;
    MDB_val key = {0}, value;
    char last[KEY_MAX], row[SEGMENT_BYTES];
    size_t last_len = 0;
    int err = 0, rc = mdb_cursor_open(txn->lmdb, wb_catalog_dbi(txn->catalog, table), &cursor);

    if (rc != 0)
        return wb_catalog_fail(txn->catalog, rc);
    while (err == 0 && (rc = mdb_cursor_get(cursor, &key, &value, MDB_NEXT)) == 0) {
        err = check_row(txn, table, &key, &value, len, row);
        if (err < 0)
            break;
        size_t shorter = key.mv_size < last_len ? key.mv_size : last_len;
        int order = memcmp(last, key.mv_data, shorter);
        if (last_len && (order > 0 || (order == 0 && key.mv_size <= last_len))) {
            err = wb_catalog_corrupt(txn->catalog, table, "rows out of order");
            break;
        }
        memcpy(last, key.mv_data, key.mv_size);
        last_len = key.mv_size;
        MDB_val copy = val(last, last_len), row_copy = val(row, value.mv_size);
        err = each(context, &copy, &row_copy);
    }
    mdb_cursor_close(cursor);
    if (err == 0 && rc != MDB_NOTFOUND)
        err = wb_catalog_fail(txn->catalog, rc);
    return err;
}

/* ---- pages and old ---------------------------------------------------------------- */

/*
 * An entry's numbers are varints, because most are small and a catalog of millions
 * of pages is read from memory: 31 bytes instead of 52.
 */
static bool entry_from_row(const char *row, size_t len, struct wb_entry *entry_out)
{
    uint64_t v[ENTRY_NUMBERS];
    const char *at = row, *end = row + len - CHECK_BYTES - ENTRY_SITE_BYTES;

    if (len < CHECK_BYTES + ENTRY_SITE_BYTES)
        return false;
    for (size_t i = 0; i < ENTRY_NUMBERS; i++)
        if (!wb_get_varint(&at, end, &v[i]))
            return false;
    *entry_out = (struct wb_entry){
        .time_ms = (int64_t)(v[0] >> 1) ^ -(int64_t)(v[0] & 1),
        .place = {.logical = v[1], .segment = (uint32_t)v[2], .slot = (uint16_t)v[3]},
        .status = (uint16_t)v[4],
        .body_bytes = (uint32_t)v[5],
        .stored = (uint32_t)v[6],
        .epoch = (uint32_t)v[7],
        .lifetime = (uint16_t)v[8],
        .lifetime_count = (uint16_t)v[9],
        .site = wb_get64(end),
    };
    return at == end;
}

/* Returns the row's length, room for the checksum included. */
static size_t entry_to_row(const struct wb_entry *entry, char row[ENTRY_BYTES_MAX])
{
    const uint64_t v[ENTRY_NUMBERS] = {
        (uint64_t)entry->time_ms << 1 ^ (uint64_t)(entry->time_ms >> 63), /* times before 1970 stay short */
        entry->place.logical, entry->place.segment, entry->place.slot, entry->status, entry->body_bytes,
        entry->stored, entry->epoch, entry->lifetime, entry->lifetime_count,
    };
    size_t len = 0;

    for (size_t i = 0; i < ENTRY_NUMBERS; i++)
        len += wb_put_varint(row + len, v[i]);
    wb_put64(row + len, entry->site);
    return len + ENTRY_SITE_BYTES + CHECK_BYTES;
}

int wb_entry_get(struct wb_txn *txn, enum wb_table table, struct wb_pageid id, struct wb_entry *entry_out)
{
    char key[WB_PAGEID_BYTES], row[ENTRY_BYTES_MAX];
    size_t len;
    int err;

    *entry_out = (struct wb_entry){0};
    wb_pageid_put(id, key);
    err = get_row_of(txn, table, val(key, sizeof key), 0, row, &len);
    if (err == 0 && !entry_from_row(row, len, entry_out))
        err = wb_catalog_corrupt(txn->catalog, table, "a row that is no entry");
    return err;
}

int wb_entry_put(struct wb_txn *txn, enum wb_table table, struct wb_pageid id, const struct wb_entry *entry)
{
    char key[WB_PAGEID_BYTES], row[ENTRY_BYTES_MAX];

    wb_pageid_put(id, key);
    size_t len = entry_to_row(entry, row);
    return put_row(txn, table, val(key, sizeof key), row, len);
}

int wb_entry_delete(struct wb_txn *txn, enum wb_table table, struct wb_pageid id)
{
    char key[WB_PAGEID_BYTES];

    wb_pageid_put(id, key);
    return delete_row(txn, table, val(key, sizeof key));
}

struct entry_walk {
    struct wb_txn *txn;
    enum wb_table table;
    int (*each)(void *context, struct wb_pageid id, const struct wb_entry *entry);
    void *context;
};

static int walk_entry(void *context, const MDB_val *key, const MDB_val *row)
{
    struct entry_walk *walk = context;
    struct wb_entry entry;

    if (key->mv_size != WB_PAGEID_BYTES || !entry_from_row(row->mv_data, row->mv_size, &entry))
        return wb_catalog_corrupt(walk->txn->catalog, walk->table, "a row that is no entry");
    return walk->each(walk->context, wb_pageid_get(key->mv_data), &entry);
}

int wb_entry_each(struct wb_txn *txn, enum wb_table table,
                  int (*each)(void *context, struct wb_pageid id, const struct wb_entry *entry), void *context)
{
    struct entry_walk walk = {txn, table, each, context};

    return each_row(txn, table, 0, walk_entry, &walk);
}

/* ---- segments ------------------------------------------------------------------------ */

static void segment_from_row(const MDB_val *key, const char *row, struct wb_segment_row *row_out)
{
    *row_out = (struct wb_segment_row){
        .number = wb_get32_be(key->mv_data),
        .version = wb_get32(row),
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
        .epoch_min = wb_get32(row + 80),
        .epoch_max = wb_get32(row + 84),
        .lead_dead = wb_get32(row + 88),
    };
}

int wb_segment_row_get(struct wb_txn *txn, uint32_t number, struct wb_segment_row *row_out)
{
    char key[4], row[SEGMENT_BYTES];
    int err;

    *row_out = (struct wb_segment_row){0};
    wb_put32_be(key, number);
    MDB_val k = val(key, sizeof key);
    err = get_row(txn, WB_TABLE_SEGMENTS, k, sizeof row, row);
    if (err == 0)
        segment_from_row(&k, row, row_out);
    return err;
}

int wb_segment_row_put(struct wb_txn *txn, const struct wb_segment_row *from)
{
    char key[4], row[SEGMENT_BYTES] = {0};

    WB_CHECK(from->live <= from->pages);
    wb_put32_be(key, from->number);
    wb_put32(row, from->version);
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
    wb_put32(row + 80, from->epoch_min);
    wb_put32(row + 84, from->epoch_max);
    wb_put32(row + 88, from->lead_dead);
    return put_row(txn, WB_TABLE_SEGMENTS, val(key, sizeof key), row, sizeof row);
}

int wb_segment_row_delete(struct wb_txn *txn, uint32_t number)
{
    char key[4];

    wb_put32_be(key, number);
    return delete_row(txn, WB_TABLE_SEGMENTS, val(key, sizeof key));
}

struct segment_walk {
    struct wb_txn *txn;
    int (*each)(void *context, const struct wb_segment_row *row);
    void *context;
};

static int walk_segment(void *context, const MDB_val *key, const MDB_val *row)
{
    struct segment_walk *walk = context;
    struct wb_segment_row segment;

    if (key->mv_size != 4)
        return wb_catalog_corrupt(walk->txn->catalog, WB_TABLE_SEGMENTS, "a key of the wrong length");
    segment_from_row(key, row->mv_data, &segment);
    return walk->each(walk->context, &segment);
}

int wb_segment_row_each(struct wb_txn *txn, int (*each)(void *context, const struct wb_segment_row *row), void *context)
{
    struct segment_walk walk = {txn, each, context};

    return each_row(txn, WB_TABLE_SEGMENTS, SEGMENT_BYTES, walk_segment, &walk);
}

/* ---- sites ------------------------------------------------------------------------------ */

/* A site that is too long for a key stands under its hash; an empty one (of "dns:x") under "-", which is no host. */
static MDB_val site_key(struct wb_slice site, char *room, size_t room_len)
{
    if (site.len == 0)
        return val("-", 1);
    if (site.len <= KEY_MAX)
        return val(site.ptr, site.len);
    int n = snprintf(room, room_len, "#%016llx", (unsigned long long)wb_hash64(site.ptr, site.len));
    return val(room, (size_t)n);
}

int wb_site_add(struct wb_txn *txn, struct wb_slice site, int64_t pages, struct wb_state *state)
{
    char room[32], row[SITE_BYTES] = {0};
    MDB_val key = site_key(site, room, sizeof room);
    int err = get_row(txn, WB_TABLE_SITES, key, sizeof row, row);

    if (err < 0 && err != WB_E_NOTFOUND)
        return err;
    bool known = err == 0;
    int64_t total = (known ? (int64_t)wb_get64(row) : 0) + pages;
    if (total < 0)
        return wb_catalog_corrupt(txn->catalog, WB_TABLE_SITES, "a site with less than no pages");
    if (total == 0) {
        state->sites -= known;
        return known ? delete_row(txn, WB_TABLE_SITES, key) : 0;
    }
    state->sites += !known;
    wb_put64(row, (uint64_t)total);
    return put_row(txn, WB_TABLE_SITES, key, row, sizeof row);
}

struct site_walk {
    int (*each)(void *context, struct wb_slice site, uint64_t pages);
    void *context;
};

static int walk_site(void *context, const MDB_val *key, const MDB_val *row)
{
    struct site_walk *walk = context;

    return walk->each(walk->context, wb_slice(key->mv_data, key->mv_size), wb_get64(row->mv_data));
}

int wb_site_each(struct wb_txn *txn, int (*each)(void *context, struct wb_slice site, uint64_t pages), void *context)
{
    struct site_walk walk = {each, context};

    return each_row(txn, WB_TABLE_SITES, SITE_BYTES, walk_site, &walk);
}

/* ---- revisits ------------------------------------------------------------------------------ */

int wb_revisit_get(struct wb_txn *txn, struct wb_pageid id, struct wb_store_revisit *revisit_out)
{
    char key[WB_PAGEID_BYTES], row[REVISIT_BYTES];
    int err;

    *revisit_out = (struct wb_store_revisit){0};
    wb_pageid_put(id, key);
    err = get_row(txn, WB_TABLE_REVISITS, val(key, sizeof key), sizeof row, row);
    if (err < 0)
        return err;
    revisit_out->time_ms = (int64_t)wb_get64(row);
    revisit_out->has_sha1 = wb_get32(row + 8) != 0;
    memcpy(revisit_out->sha1, row + 20, WB_SHA1_BYTES);
    return 0;
}

int wb_revisit_put(struct wb_txn *txn, struct wb_pageid id, uint64_t site, const struct wb_store_revisit *revisit)
{
    char key[WB_PAGEID_BYTES], row[REVISIT_BYTES] = {0};

    _Static_assert(20 + WB_SHA1_BYTES + CHECK_BYTES == REVISIT_BYTES, "the digest fills the row");
    wb_pageid_put(id, key);
    wb_put64(row, (uint64_t)revisit->time_ms);
    wb_put32(row + 8, revisit->has_sha1);
    wb_put64(row + 12, site);
    memcpy(row + 20, revisit->sha1, WB_SHA1_BYTES);
    return put_row(txn, WB_TABLE_REVISITS, val(key, sizeof key), row, sizeof row);
}

int wb_revisit_delete(struct wb_txn *txn, struct wb_pageid id)
{
    char key[WB_PAGEID_BYTES];

    wb_pageid_put(id, key);
    return delete_row(txn, WB_TABLE_REVISITS, val(key, sizeof key));
}

struct revisit_walk {
    struct wb_txn *txn;
    int (*each)(void *context, struct wb_pageid id, uint64_t site);
    void *context;
};

static int walk_revisit(void *context, const MDB_val *key, const MDB_val *row)
{
    struct revisit_walk *walk = context;

    if (key->mv_size != WB_PAGEID_BYTES)
        return wb_catalog_corrupt(walk->txn->catalog, WB_TABLE_REVISITS, "a key of the wrong length");
    return walk->each(walk->context, wb_pageid_get(key->mv_data), wb_get64((const char *)row->mv_data + 12));
}

int wb_revisit_each(struct wb_txn *txn, int (*each)(void *context, struct wb_pageid id, uint64_t site), void *context)
{
    struct revisit_walk walk = {txn, each, context};

    return each_row(txn, WB_TABLE_REVISITS, REVISIT_BYTES, walk_revisit, &walk);
}

/* ---- bars ------------------------------------------------------------------------------------ */

/* "p" and the page's id, or "s" and the site as the table of sites has it. */
static MDB_val bar_key(enum wb_bar_kind kind, struct wb_pageid id, struct wb_slice site, char room[KEY_MAX])
{
    char site_room[32];

    if (kind == WB_BAR_PAGE) {
        room[0] = 'p';
        wb_pageid_put(id, room + 1);
        return val(room, 1 + WB_PAGEID_BYTES);
    }
    WB_CHECK(kind == WB_BAR_SITE);
    if (site.len >= KEY_MAX) /* one byte less than a key of the table of sites */
        site = wb_slice(site_room, (size_t)snprintf(site_room, sizeof site_room, "#%016llx", (unsigned long long)wb_hash64(site.ptr, site.len)));
    room[0] = 's';
    memcpy(room + 1, site.ptr, site.len);
    return val(room, 1 + site.len);
}

static void bar_from_row(const char *row, struct wb_bar_row *row_out)
{
    *row_out = (struct wb_bar_row){.time_ms = (int64_t)wb_get64(row), .site = wb_get64(row + 8), .except = wb_get32(row + 16) != 0};
}

int wb_bar_get(struct wb_txn *txn, enum wb_bar_kind kind, struct wb_pageid id, struct wb_slice site, struct wb_bar_row *row_out)
{
    char key[KEY_MAX], row[BAR_BYTES];
    int err = get_row(txn, WB_TABLE_BARS, bar_key(kind, id, site, key), sizeof row, row);

    *row_out = (struct wb_bar_row){0};
    if (err == 0)
        bar_from_row(row, row_out);
    return err;
}

int wb_bar_put(struct wb_txn *txn, enum wb_bar_kind kind, struct wb_pageid id, struct wb_slice site, const struct wb_bar_row *from)
{
    char key[KEY_MAX], row[BAR_BYTES] = {0};

    WB_CHECK(kind == WB_BAR_PAGE || !from->except);
    wb_put64(row, (uint64_t)from->time_ms);
    wb_put64(row + 8, from->site);
    wb_put32(row + 16, from->except);
    return put_row(txn, WB_TABLE_BARS, bar_key(kind, id, site, key), row, sizeof row);
}

int wb_bar_delete(struct wb_txn *txn, enum wb_bar_kind kind, struct wb_pageid id, struct wb_slice site)
{
    char key[KEY_MAX];

    return delete_row(txn, WB_TABLE_BARS, bar_key(kind, id, site, key));
}

struct bar_walk {
    struct wb_txn *txn;
    int (*each)(void *context, const struct wb_bar *bar, const struct wb_bar_row *row);
    void *context;
};

static int walk_bar(void *context, const MDB_val *key, const MDB_val *bytes)
{
    struct bar_walk *walk = context;
    const char *name = key->mv_data;
    struct wb_bar_row row;
    bool page = key->mv_size == 1 + WB_PAGEID_BYTES && name[0] == 'p';

    if (!page && (key->mv_size < 1 || name[0] != 's'))
        return wb_catalog_corrupt(walk->txn->catalog, WB_TABLE_BARS, "a key that is neither a page nor a site");
    bar_from_row(bytes->mv_data, &row);
    struct wb_bar bar = {.kind = page ? WB_BAR_PAGE : WB_BAR_SITE, .time_ms = row.time_ms, .except = row.except};
    if (page)
        bar.id = wb_pageid_get(name + 1);
    else
        bar.site = wb_slice(name + 1, key->mv_size - 1);
    return walk->each(walk->context, &bar, &row);
}

int wb_bar_each(struct wb_txn *txn, int (*each)(void *context, const struct wb_bar *bar, const struct wb_bar_row *row), void *context)
{
    struct bar_walk walk = {txn, each, context};

    return each_row(txn, WB_TABLE_BARS, BAR_BYTES, walk_bar, &walk);
}

/* ---- retired files --------------------------------------------------------------------------- */

static void retired_key(uint32_t number, uint32_t version, char key[8])
{
    wb_put32_be(key, number);
    wb_put32_be(key + 4, version);
}

int wb_retired_put(struct wb_txn *txn, uint32_t number, uint32_t version, uint64_t txn_id)
{
    char key[8], row[RETIRED_BYTES] = {0};

    retired_key(number, version, key);
    wb_put64(row, txn_id);
    return put_row(txn, WB_TABLE_RETIRED, val(key, sizeof key), row, sizeof row);
}

int wb_retired_delete(struct wb_txn *txn, uint32_t number, uint32_t version)
{
    char key[8];

    retired_key(number, version, key);
    return delete_row(txn, WB_TABLE_RETIRED, val(key, sizeof key));
}

int wb_retired_has(struct wb_txn *txn, uint32_t number, uint32_t version, bool *has_out)
{
    char key[8], row[RETIRED_BYTES];
    int err;

    retired_key(number, version, key);
    err = get_row(txn, WB_TABLE_RETIRED, val(key, sizeof key), sizeof row, row);
    *has_out = err == 0;
    return err == WB_E_NOTFOUND ? 0 : err;
}

struct retired_walk {
    struct wb_txn *txn;
    int (*each)(void *context, uint32_t number, uint32_t version, uint64_t txn_id);
    void *context;
};

static int walk_retired(void *context, const MDB_val *key, const MDB_val *row)
{
    struct retired_walk *walk = context;
    const char *bytes = key->mv_data;

    if (key->mv_size != 8)
        return wb_catalog_corrupt(walk->txn->catalog, WB_TABLE_RETIRED, "a key of the wrong length");
    return walk->each(walk->context, wb_get32_be(bytes), wb_get32_be(bytes + 4), wb_get64(row->mv_data));
}

int wb_retired_each(struct wb_txn *txn, int (*each)(void *context, uint32_t number, uint32_t version, uint64_t txn_id), void *context)
{
    struct retired_walk walk = {txn, each, context};

    return each_row(txn, WB_TABLE_RETIRED, RETIRED_BYTES, walk_retired, &walk);
}

/* ---- state ------------------------------------------------------------------------------------- */

int wb_state_get(struct wb_txn *txn, struct wb_state *state_out)
{
    char row[STATE_BYTES];
    int err;

    *state_out = (struct wb_state){0};
    err = get_row(txn, WB_TABLE_STATE, val("state", 5), sizeof row, row);
    if (err == WB_E_NOTFOUND)
        return wb_catalog_corrupt(txn->catalog, WB_TABLE_STATE, "no row");
    if (err < 0)
        return err;
    *state_out = (struct wb_state){
        .commit = wb_get64(row),
        .pages = wb_get64(row + 8),
        .old = wb_get64(row + 16),
        .sites = wb_get64(row + 24),
        .revisits = wb_get64(row + 32),
        .bytes_pages = wb_get64(row + 40),
        .epoch = wb_get32(row + 48),
        .generation = wb_get32(row + 52),
        .generation_epoch = wb_get32(row + 56),
        .next_segment = wb_get32(row + 60),
        .bars = wb_get32(row + 64),
    };
    return 0;
}

int wb_state_put(struct wb_txn *txn, const struct wb_state *state)
{
    char row[STATE_BYTES] = {0};

    WB_CHECK(state->bars <= UINT32_MAX);
    wb_put64(row, state->commit);
    wb_put64(row + 8, state->pages);
    wb_put64(row + 16, state->old);
    wb_put64(row + 24, state->sites);
    wb_put64(row + 32, state->revisits);
    wb_put64(row + 40, state->bytes_pages);
    wb_put32(row + 48, state->epoch);
    wb_put32(row + 52, state->generation);
    wb_put32(row + 56, state->generation_epoch);
    wb_put32(row + 60, state->next_segment);
    wb_put32(row + 64, (uint32_t)state->bars);
    return put_row(txn, WB_TABLE_STATE, val("state", 5), row, sizeof row);
}
