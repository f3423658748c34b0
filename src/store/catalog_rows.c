/*
 * catalog_rows.c - the rows of the catalog as bytes. Keys are big-endian, values
 * little-endian or varints. A row is valid if and only if its length is the table's
 * (of pages and old: its ten numbers and the hash of the site fill it). Checksums are the tree's business.
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
    ENTRY_SITE_BYTES = 8,
    SEGMENT_BYTES = 92,
    SITE_BYTES = 8,
    REVISIT_BYTES = 40,
    RETIRED_BYTES = 8,
    STATE_BYTES = 68,
    BAR_BYTES = 20,
    SITE_KEY_MAX = 480,
};

static int get_row_of(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_slice key, size_t cap, char *out, size_t *len_out)
{
    return wb_tree_get(wb_catalog_tree(txn->catalog), wb_catalog_txn_state(txn), table, key, out, cap, len_out);
}

static int get_row(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_slice key, size_t len, char *out)
{
    size_t got;
    int err = get_row_of(txn, table, key, len, out, &got);

    return err < 0 || got == len ? err : wb_catalog_corrupt(txn->catalog, table, "a row of the wrong length");
}

static int put_row(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_slice key, const char *bytes, size_t len)
{
    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    return wb_tree_put(wb_catalog_tree(txn->catalog), table, key, wb_slice(bytes, len));
}

static int delete_row(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_slice key)
{
    WB_CHECK(txn->kind == WB_CATALOG_TXN_WRITING);
    return wb_tree_delete(wb_catalog_tree(txn->catalog), table, key);
}

struct catalog_walk {
    struct wb_catalog_txn *txn;
    enum wb_catalog_table table;
    size_t key_len, len; /* of every row; 0: any */
    wb_tree_each_row each;
    void *context;
};

static int check_lengths(void *context, struct wb_slice key, struct wb_slice row)
{
    const struct catalog_walk *walk = context;

    if ((walk->key_len && key.len != walk->key_len) || (walk->len && row.len != walk->len))
        return wb_catalog_corrupt(walk->txn->catalog, walk->table, "a row of the wrong length");
    return walk->each(walk->context, key, row);
}

/* Walks a table in key order. key_len, len: what every key and row must have; 0: any. */
static int each_row(struct wb_catalog_txn *txn, enum wb_catalog_table table, size_t key_len, size_t len, wb_tree_each_row each, void *context)
{
    struct catalog_walk walk = {txn, table, key_len, len, each, context};

    return wb_tree_each(wb_catalog_tree(txn->catalog), wb_catalog_txn_state(txn), table, check_lengths, &walk);
}

/* ---- pages and old ---------------------------------------------------------------- */

/*
 * An entry's numbers are varints, because most are small and a catalog of millions
 * of pages is read from memory: 31 bytes instead of 52.
 */
static bool entry_from_row(const char *row, size_t len, struct wb_catalog_entry *entry_out)
{
    uint64_t v[ENTRY_NUMBERS];
    const char *at = row, *end = row + len - ENTRY_SITE_BYTES;

    if (len < ENTRY_SITE_BYTES)
        return false;
    for (size_t i = 0; i < ENTRY_NUMBERS; i++)
        if (!wb_get_varint(&at, end, &v[i]))
            return false;
    *entry_out = (struct wb_catalog_entry){
        .time_ms = (int64_t)wb_unzigzag(v[0]),
        .place = {.logical = v[1], .segment = (uint32_t)v[2], .slot = (uint16_t)v[3]},
        .status = (uint16_t)v[4],
        .body_bytes = (uint32_t)v[5],
        .stored_bytes = (uint32_t)v[6],
        .epoch = (uint32_t)v[7],
        .lifetime = (uint16_t)v[8],
        .lifetime_count = (uint16_t)v[9],
        .site = wb_get64(end),
    };
    return at == end;
}

/* Returns the row's length. */
static size_t entry_to_row(const struct wb_catalog_entry *entry, char row[ENTRY_BYTES_MAX])
{
    const uint64_t v[ENTRY_NUMBERS] = {
        wb_zigzag((uint64_t)entry->time_ms), /* times before 1970 stay short */
        entry->place.logical, entry->place.segment, entry->place.slot, entry->status, entry->body_bytes,
        entry->stored_bytes, entry->epoch, entry->lifetime, entry->lifetime_count,
    };
    size_t len = 0;

    for (size_t i = 0; i < ENTRY_NUMBERS; i++)
        len += wb_put_varint(row + len, v[i]);
    wb_put64(row + len, entry->site);
    return len + ENTRY_SITE_BYTES;
}

int wb_catalog_entry_get(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_pageid id, struct wb_catalog_entry *entry_out)
{
    char key[WB_PAGEID_BYTES], row[ENTRY_BYTES_MAX];
    size_t len;
    int err;

    *entry_out = (struct wb_catalog_entry){0};
    wb_pageid_put(id, key);
    err = get_row_of(txn, table, wb_slice(key, sizeof key), sizeof row, row, &len);
    if (err == 0 && !entry_from_row(row, len, entry_out))
        err = wb_catalog_corrupt(txn->catalog, table, "a row that is not an entry");
    return err;
}

int wb_catalog_entry_put(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    char key[WB_PAGEID_BYTES], row[ENTRY_BYTES_MAX];

    wb_pageid_put(id, key);
    size_t len = entry_to_row(entry, row);
    return put_row(txn, table, wb_slice(key, sizeof key), row, len);
}

int wb_catalog_entry_delete(struct wb_catalog_txn *txn, enum wb_catalog_table table, struct wb_pageid id)
{
    char key[WB_PAGEID_BYTES];

    wb_pageid_put(id, key);
    return delete_row(txn, table, wb_slice(key, sizeof key));
}

struct entry_walk {
    struct wb_catalog_txn *txn;
    enum wb_catalog_table table;
    int (*each)(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry);
    void *context;
};

static int walk_entry(void *context, struct wb_slice key, struct wb_slice row)
{
    struct entry_walk *walk = context;
    struct wb_catalog_entry entry;

    if (!entry_from_row(row.ptr, row.len, &entry))
        return wb_catalog_corrupt(walk->txn->catalog, walk->table, "a row that is not an entry");
    return walk->each(walk->context, wb_pageid_get(key.ptr), &entry);
}

int wb_catalog_entry_each(struct wb_catalog_txn *txn, enum wb_catalog_table table,
                  int (*each)(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry), void *context)
{
    struct entry_walk walk = {txn, table, each, context};

    return each_row(txn, table, WB_PAGEID_BYTES, 0, walk_entry, &walk);
}

/* ---- segments ------------------------------------------------------------------------ */

static void segment_from_row(const char *key, const char *row, struct wb_catalog_segment *row_out)
{
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
        .epoch_min = wb_get32(row + 80),
        .epoch_max = wb_get32(row + 84),
        .lead_dead = wb_get32(row + 88),
    };
}

int wb_catalog_segment_get(struct wb_catalog_txn *txn, uint32_t number, struct wb_catalog_segment *row_out)
{
    char key[4], row[SEGMENT_BYTES];
    int err;

    *row_out = (struct wb_catalog_segment){0};
    wb_put32_be(key, number);
    err = get_row(txn, WB_CATALOG_SEGMENTS, wb_slice(key, sizeof key), sizeof row, row);
    if (err == 0)
        segment_from_row(key, row, row_out);
    return err;
}

int wb_catalog_segment_put(struct wb_catalog_txn *txn, const struct wb_catalog_segment *from)
{
    char key[4], row[SEGMENT_BYTES] = {0};

    WB_CHECK(from->live <= from->pages);
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
    wb_put32(row + 80, from->epoch_min);
    wb_put32(row + 84, from->epoch_max);
    wb_put32(row + 88, from->lead_dead);
    return put_row(txn, WB_CATALOG_SEGMENTS, wb_slice(key, sizeof key), row, sizeof row);
}

int wb_catalog_segment_delete(struct wb_catalog_txn *txn, uint32_t number)
{
    char key[4];

    wb_put32_be(key, number);
    return delete_row(txn, WB_CATALOG_SEGMENTS, wb_slice(key, sizeof key));
}

struct segment_walk {
    int (*each)(void *context, const struct wb_catalog_segment *row);
    void *context;
};

static int walk_segment(void *context, struct wb_slice key, struct wb_slice row)
{
    struct segment_walk *walk = context;
    struct wb_catalog_segment segment;

    segment_from_row(key.ptr, row.ptr, &segment);
    return walk->each(walk->context, &segment);
}

int wb_catalog_segment_each(struct wb_catalog_txn *txn, int (*each)(void *context, const struct wb_catalog_segment *row), void *context)
{
    struct segment_walk walk = {each, context};

    return each_row(txn, WB_CATALOG_SEGMENTS, 4, SEGMENT_BYTES, walk_segment, &walk);
}

/* ---- sites ------------------------------------------------------------------------------ */

/* A site that is too long for a key stands under its hash; an empty one (of "dns:x") under "-", which is no host. */
static struct wb_slice site_key(struct wb_slice site, char *room, size_t room_len)
{
    if (site.len == 0)
        return WB_SLICE_LIT("-");
    if (site.len <= SITE_KEY_MAX)
        return site;
    int n = snprintf(room, room_len, "#%016llx", (unsigned long long)wb_hash64(site.ptr, site.len));
    return wb_slice(room, (size_t)n);
}

int wb_catalog_site_add(struct wb_catalog_txn *txn, struct wb_slice site, int64_t pages, struct wb_catalog_summary *state)
{
    char room[32], row[SITE_BYTES] = {0};
    struct wb_slice key = site_key(site, room, sizeof room);
    int err = get_row(txn, WB_CATALOG_SITES, key, sizeof row, row);

    if (err < 0 && err != WB_E_NOTFOUND)
        return err;
    bool known = err == 0;
    int64_t total = (known ? (int64_t)wb_get64(row) : 0) + pages;
    if (total < 0)
        return wb_catalog_corrupt(txn->catalog, WB_CATALOG_SITES, "a site with less than no pages");
    if (total == 0) {
        state->sites -= known;
        return known ? delete_row(txn, WB_CATALOG_SITES, key) : 0;
    }
    state->sites += !known;
    wb_put64(row, (uint64_t)total);
    return put_row(txn, WB_CATALOG_SITES, key, row, sizeof row);
}

struct site_walk {
    int (*each)(void *context, struct wb_slice site, uint64_t pages);
    void *context;
};

static int walk_site(void *context, struct wb_slice key, struct wb_slice row)
{
    struct site_walk *walk = context;

    return walk->each(walk->context, key, wb_get64(row.ptr));
}

int wb_catalog_site_each(struct wb_catalog_txn *txn, int (*each)(void *context, struct wb_slice site, uint64_t pages), void *context)
{
    struct site_walk walk = {each, context};

    return each_row(txn, WB_CATALOG_SITES, 0, SITE_BYTES, walk_site, &walk);
}

/* ---- revisits ------------------------------------------------------------------------------ */

int wb_catalog_revisit_get(struct wb_catalog_txn *txn, struct wb_pageid id, struct wb_store_revisit *revisit_out)
{
    char key[WB_PAGEID_BYTES], row[REVISIT_BYTES];
    int err;

    *revisit_out = (struct wb_store_revisit){0};
    wb_pageid_put(id, key);
    err = get_row(txn, WB_CATALOG_REVISITS, wb_slice(key, sizeof key), sizeof row, row);
    if (err < 0)
        return err;
    revisit_out->time_ms = (int64_t)wb_get64(row);
    revisit_out->has_sha1 = wb_get32(row + 8) != 0;
    memcpy(revisit_out->sha1, row + 20, WB_SHA1_BYTES);
    return 0;
}

int wb_catalog_revisit_put(struct wb_catalog_txn *txn, struct wb_pageid id, uint64_t site, const struct wb_store_revisit *revisit)
{
    char key[WB_PAGEID_BYTES], row[REVISIT_BYTES] = {0};

    _Static_assert(20 + WB_SHA1_BYTES == REVISIT_BYTES, "the digest fills the row");
    wb_pageid_put(id, key);
    wb_put64(row, (uint64_t)revisit->time_ms);
    wb_put32(row + 8, revisit->has_sha1);
    wb_put64(row + 12, site);
    memcpy(row + 20, revisit->sha1, WB_SHA1_BYTES);
    return put_row(txn, WB_CATALOG_REVISITS, wb_slice(key, sizeof key), row, sizeof row);
}

int wb_catalog_revisit_delete(struct wb_catalog_txn *txn, struct wb_pageid id)
{
    char key[WB_PAGEID_BYTES];

    wb_pageid_put(id, key);
    return delete_row(txn, WB_CATALOG_REVISITS, wb_slice(key, sizeof key));
}

struct revisit_walk {
    int (*each)(void *context, struct wb_pageid id, uint64_t site);
    void *context;
};

static int walk_revisit(void *context, struct wb_slice key, struct wb_slice row)
{
    struct revisit_walk *walk = context;

    return walk->each(walk->context, wb_pageid_get(key.ptr), wb_get64(row.ptr + 12));
}

int wb_catalog_revisit_each(struct wb_catalog_txn *txn, int (*each)(void *context, struct wb_pageid id, uint64_t site), void *context)
{
    struct revisit_walk walk = {each, context};

    return each_row(txn, WB_CATALOG_REVISITS, WB_PAGEID_BYTES, REVISIT_BYTES, walk_revisit, &walk);
}

/* ---- bars ------------------------------------------------------------------------------------ */

/* "p" and the page's id, or "s" and the site as the table of sites has it. */
static struct wb_slice bar_key(enum wb_store_bar_kind kind, struct wb_pageid id, struct wb_slice site, char room[SITE_KEY_MAX])
{
    char site_room[32];

    if (kind == WB_STORE_BAR_PAGE) {
        room[0] = 'p';
        wb_pageid_put(id, room + 1);
        return wb_slice(room, 1 + WB_PAGEID_BYTES);
    }
    WB_CHECK(kind == WB_STORE_BAR_SITE);
    if (site.len >= SITE_KEY_MAX) /* one byte less than a key of the table of sites */
        site = wb_slice(site_room, (size_t)snprintf(site_room, sizeof site_room, "#%016llx", (unsigned long long)wb_hash64(site.ptr, site.len)));
    room[0] = 's';
    memcpy(room + 1, site.ptr, site.len);
    return wb_slice(room, 1 + site.len);
}

static void bar_from_row(const char *row, struct wb_catalog_bar *row_out)
{
    *row_out = (struct wb_catalog_bar){.time_ms = (int64_t)wb_get64(row), .site = wb_get64(row + 8), .except = wb_get32(row + 16) != 0};
}

int wb_catalog_bar_get(struct wb_catalog_txn *txn, enum wb_store_bar_kind kind, struct wb_pageid id, struct wb_slice site, struct wb_catalog_bar *row_out)
{
    char key[SITE_KEY_MAX], row[BAR_BYTES];
    int err = get_row(txn, WB_CATALOG_BARS, bar_key(kind, id, site, key), sizeof row, row);

    *row_out = (struct wb_catalog_bar){0};
    if (err == 0)
        bar_from_row(row, row_out);
    return err;
}

int wb_catalog_bar_put(struct wb_catalog_txn *txn, enum wb_store_bar_kind kind, struct wb_pageid id, struct wb_slice site, const struct wb_catalog_bar *from)
{
    char key[SITE_KEY_MAX], row[BAR_BYTES] = {0};

    WB_CHECK(kind == WB_STORE_BAR_PAGE || !from->except);
    wb_put64(row, (uint64_t)from->time_ms);
    wb_put64(row + 8, from->site);
    wb_put32(row + 16, from->except);
    return put_row(txn, WB_CATALOG_BARS, bar_key(kind, id, site, key), row, sizeof row);
}

int wb_catalog_bar_delete(struct wb_catalog_txn *txn, enum wb_store_bar_kind kind, struct wb_pageid id, struct wb_slice site)
{
    char key[SITE_KEY_MAX];

    return delete_row(txn, WB_CATALOG_BARS, bar_key(kind, id, site, key));
}

struct bar_walk {
    struct wb_catalog_txn *txn;
    int (*each)(void *context, const struct wb_store_bar *bar, const struct wb_catalog_bar *row);
    void *context;
};

static int walk_bar(void *context, struct wb_slice key, struct wb_slice bytes)
{
    struct bar_walk *walk = context;
    struct wb_catalog_bar row;
    bool page = key.len == 1 + WB_PAGEID_BYTES && key.ptr[0] == 'p';

    if (!page && (key.len < 1 || key.ptr[0] != 's'))
        return wb_catalog_corrupt(walk->txn->catalog, WB_CATALOG_BARS, "a key that is neither a page nor a site");
    bar_from_row(bytes.ptr, &row);
    struct wb_store_bar bar = {.kind = page ? WB_STORE_BAR_PAGE : WB_STORE_BAR_SITE, .time_ms = row.time_ms, .except = row.except};
    if (page)
        bar.id = wb_pageid_get(key.ptr + 1);
    else
        bar.site = wb_slice(key.ptr + 1, key.len - 1);
    return walk->each(walk->context, &bar, &row);
}

int wb_catalog_bar_each(struct wb_catalog_txn *txn, int (*each)(void *context, const struct wb_store_bar *bar, const struct wb_catalog_bar *row), void *context)
{
    struct bar_walk walk = {txn, each, context};

    return each_row(txn, WB_CATALOG_BARS, 0, BAR_BYTES, walk_bar, &walk);
}

/* ---- retired files --------------------------------------------------------------------------- */

static void retired_key(uint32_t number, uint32_t revision, char key[8])
{
    wb_put32_be(key, number);
    wb_put32_be(key + 4, revision);
}

int wb_catalog_retired_put(struct wb_catalog_txn *txn, uint32_t number, uint32_t revision, uint64_t txn_id)
{
    char key[8], row[RETIRED_BYTES] = {0};

    retired_key(number, revision, key);
    wb_put64(row, txn_id);
    return put_row(txn, WB_CATALOG_RETIRED, wb_slice(key, sizeof key), row, sizeof row);
}

int wb_catalog_retired_delete(struct wb_catalog_txn *txn, uint32_t number, uint32_t revision)
{
    char key[8];

    retired_key(number, revision, key);
    return delete_row(txn, WB_CATALOG_RETIRED, wb_slice(key, sizeof key));
}

int wb_catalog_retired_has(struct wb_catalog_txn *txn, uint32_t number, uint32_t revision, bool *has_out)
{
    char key[8], row[RETIRED_BYTES];
    int err;

    retired_key(number, revision, key);
    err = get_row(txn, WB_CATALOG_RETIRED, wb_slice(key, sizeof key), sizeof row, row);
    *has_out = err == 0;
    return err == WB_E_NOTFOUND ? 0 : err;
}

struct retired_walk {
    int (*each)(void *context, uint32_t number, uint32_t revision, uint64_t txn_id);
    void *context;
};

static int walk_retired(void *context, struct wb_slice key, struct wb_slice row)
{
    struct retired_walk *walk = context;

    return walk->each(walk->context, wb_get32_be(key.ptr), wb_get32_be(key.ptr + 4), wb_get64(row.ptr));
}

int wb_catalog_retired_each(struct wb_catalog_txn *txn, int (*each)(void *context, uint32_t number, uint32_t revision, uint64_t txn_id), void *context)
{
    struct retired_walk walk = {each, context};

    return each_row(txn, WB_CATALOG_RETIRED, 8, RETIRED_BYTES, walk_retired, &walk);
}

/* ---- state ------------------------------------------------------------------------------------- */

int wb_catalog_summary_get(struct wb_catalog_txn *txn, struct wb_catalog_summary *state_out)
{
    char row[STATE_BYTES];
    int err;

    *state_out = (struct wb_catalog_summary){0};
    err = get_row(txn, WB_CATALOG_SUMMARY, WB_SLICE_LIT("state"), sizeof row, row);
    if (err == WB_E_NOTFOUND)
        return wb_catalog_corrupt(txn->catalog, WB_CATALOG_SUMMARY, "no row");
    if (err < 0)
        return err;
    *state_out = (struct wb_catalog_summary){
        .commit = wb_get64(row),
        .pages = wb_get64(row + 8),
        .old = wb_get64(row + 16),
        .sites = wb_get64(row + 24),
        .revisits = wb_get64(row + 32),
        .bytes_pages = wb_get64(row + 40),
        .epoch = wb_get32(row + 48),
        .snapshot = wb_get32(row + 52),
        .snapshot_epoch = wb_get32(row + 56),
        .next_segment = wb_get32(row + 60),
        .bars = wb_get32(row + 64),
    };
    return 0;
}

int wb_catalog_summary_put(struct wb_catalog_txn *txn, const struct wb_catalog_summary *state)
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
    wb_put32(row + 52, state->snapshot);
    wb_put32(row + 56, state->snapshot_epoch);
    wb_put32(row + 60, state->next_segment);
    wb_put32(row + 64, (uint32_t)state->bars);
    return put_row(txn, WB_CATALOG_SUMMARY, WB_SLICE_LIT("state"), row, sizeof row);
}
