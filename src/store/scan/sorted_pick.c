/*
 * sorted_pick.c - takes the items of a chunk from the catalog (sorted_scan.h).
 *
 * Most pages of a state are in table pages: their latest version is the one that the state shows. The others are
 * found through their past: pages whose latest version arrived later, and pages that have no latest version. Both are
 * looked up when the walk over table pages has decided how far the chunk goes.
 */
#include "base/check.h"
#include "os/clock.h"
#include "store/scan/sorted_scan.h"

#include <stdlib.h>

enum {
    ITEMS_MAX = 64 << 10,   /* of a chunk */
    ROWS_MAX = 1 << 20,     /* that are passed in one state of the catalog, although few of them may be visible */
    RECORD_BYTES = 1 << 10, /* what a record has besides its body, about */
};

struct pick {
    struct wb_sorted_scan *scan;
    uint64_t bytes; /* of the items so far, about */
    size_t rows;    /* that were passed */
    uint64_t edge;  /* id.hi: here ends what the source keeps together */
    bool has_edge;
    size_t cut_count; /* items before the last edge that was passed ... */
    uint64_t cut_hi;  /* ... which is this one */
    bool cut;         /* there is such an edge */
    bool full;        /* more is to come in the next chunk */
    struct wb_pageid reached;
};

static const struct wb_pageid LAST_ID = {UINT64_MAX, UINT64_MAX};

/* The next id; false if there is none. */
static bool next_id(struct wb_pageid id, struct wb_pageid *next_out)
{
    *next_out = (struct wb_pageid){.hi = id.hi + (id.lo == UINT64_MAX), .lo = id.lo + 1};
    return id.hi != UINT64_MAX || id.lo != UINT64_MAX;
}

/* Whether the scan wants ids behind this one. */
static bool is_behind(const struct wb_sorted_scan *scan, struct wb_pageid id)
{
    return id.hi > scan->last || wb_pageid_compare(id, scan->until) > 0;
}

static uint64_t cost_of(const struct wb_sorted_scan *scan, const struct wb_catalog_entry *entry)
{
    return (uint64_t)RECORD_BYTES + (scan->facts ? 0 : entry->body_bytes);
}

/* Passes the edge before this id, if there is one. */
static int pass_edge(struct pick *p, struct wb_pageid id)
{
    struct wb_sorted_scan *scan = p->scan;

    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_HELD);
    if (p->has_edge && id.hi <= p->edge)
        return 0;
    if (p->has_edge) {
        p->cut = true;
        p->cut_hi = p->edge;
        p->cut_count = scan->chunk.items.count;
    }
    int err = scan->source->edge(scan->context, &scan->rows, id.hi, &p->edge);
    WB_CHECK(err < 0 || p->edge >= id.hi);
    p->has_edge = err == 0;
    return err;
}

/* Ends the chunk before the page that does not fit: at the last edge, if one was passed. */
static void close_chunk(struct pick *p, struct wb_pageid before)
{
    WB_CHECK(!p->full);
    p->full = true;
    if (p->cut && p->cut_count > 0) {
        p->scan->chunk.items.count = p->cut_count;
        p->reached = (struct wb_pageid){.hi = p->cut_hi, .lo = UINT64_MAX};
    } else {
        p->reached = (struct wb_pageid){.hi = before.hi - (before.lo == 0), .lo = before.lo - 1};
    }
}

/* A row of table pages. Returns 1 when the chunk is full, or the ids end that are wanted. */
static int take_entry(void *context, struct wb_pageid id, const struct wb_catalog_entry *entry)
{
    struct pick *p = context;
    struct wb_sorted_scan *scan = p->scan;

    WB_CHECK(scan->chunk.items.count <= ITEMS_MAX);
    WB_CHECK(!p->full);
    if (is_behind(scan, id))
        return 1;
    int err = pass_edge(p, id);
    if (err < 0)
        return err;
    /* A little more is better than to read what is kept together twice. */
    uint64_t cost = cost_of(scan, entry), most = scan->source->chunk_bytes;
    most += p->cut && p->cut_count ? 0 : most / 2;
    if (p->rows == ROWS_MAX || scan->chunk.items.count == ITEMS_MAX ||
        (scan->chunk.items.count && p->bytes + cost > most)) {
        close_chunk(p, id);
        return 1;
    }
    p->rows++;
    bool late = entry->epoch > scan->epoch; /* its past tells what the state shows */
    if ((scan->site && entry->site != scan->site_hash) || (!late && entry->epoch <= scan->since))
        return 0;
    late = late || entry->seen_epoch > scan->epoch;
    struct wb_sorted_item item = {.id = id, .entry = *entry};
    if (late)
        item.entry.place.segment = 0;
    p->bytes += cost;
    return wb_vec_push(&scan->chunk.items, item);
}

static int pass_entries(void *context)
{
    return wb_sorted_catalog_damaged(&((struct pick *)context)->scan->chunk);
}

/* ---- the past --------------------------------------------------------------------------------------- */

/* The entry of a version that need not be the latest one. */
static struct wb_catalog_entry entry_of(const struct wb_sorted_scan *scan, const struct wb_history_version *version)
{
    const struct wb_pageview *view = &scan->view;

    WB_CHECK(version->arrived > 0);
    return (struct wb_catalog_entry){
        .place = version->place,
        .time_ms = wb_history_last_in(&view->history, version, scan->epoch),
        .body_bytes = (uint32_t)version->body_bytes,
        .stored_bytes = version->stored_bytes,
        .epoch = version->arrived,
        .status = version->status,
        .lifetime = view->lifetime,
        .lifetime_count = version->ceased == 0 ? view->lifetime_count : 0,
        .ended = version->ceased != 0,
    };
}

/* Decides about the items whose latest version arrived, or was seen again, after the state. */
static int look_back(struct wb_sorted_scan *scan)
{
    size_t kept = 0;

    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_HELD);
    for (size_t i = 0; i < scan->chunk.items.count; i++) {
        struct wb_sorted_item *item = &scan->chunk.items.items[i];
        if (item->entry.place.segment == 0) {
            int err = wb_pageview_load(&scan->txn, scan->summary.gone > 0, item->id, &scan->view);
            if (err == WB_E_CORRUPT && (err = wb_sorted_catalog_damaged(&scan->chunk)) == 0)
                continue;
            if (err < 0)
                return err;
            const struct wb_history_version *version = wb_history_in(&scan->view.history, scan->epoch);
            if (!version || version->arrived <= scan->since)
                continue;
            item->entry = entry_of(scan, version);
        }
        scan->chunk.items.items[kept++] = *item;
    }
    scan->chunk.items.count = kept;
    return 0;
}

struct gone_walk {
    struct pick *pick;
    struct wb_epochs held; /* what the rule points to */
    struct wb_history_rule rule;
    size_t first; /* the items from here on are of this walk */
    uint64_t bytes;
};

/* The version of a page without a latest one that the scan shows. NULL: none. */
static int choose_version(struct gone_walk *g, const struct wb_history_version **version_out)
{
    struct wb_sorted_scan *scan = g->pick->scan;
    struct wb_history *history = &scan->view.history;
    const struct wb_history_version *version = wb_history_in(history, scan->epoch);

    *version_out = NULL;
    if (version && wb_history_latest(history)) /* look_back() has found it */
        return 0;
    if (!version && scan->gone) {
        wb_history_trim(history, &g->rule);
        int err = wb_history_rewind(history, scan->epoch);
        if (err < 0)
            return err;
        version = wb_history_at(history, INT64_MAX);
    }
    *version_out = version && version->arrived > scan->since ? version : NULL;
    return 0;
}

/* A row of table history. Returns 1 behind the last id of the chunk. */
static int take_gone(void *context, struct wb_pageid id, struct wb_slice bytes)
{
    struct gone_walk *g = context;
    struct wb_sorted_scan *scan = g->pick->scan;
    uint64_t site;

    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(g->first <= scan->chunk.items.count);
    if (wb_pageid_compare(id, g->pick->reached) > 0 || is_behind(scan, id))
        return 1;
    wb_pageview_clear(&scan->view, id);
    int err = wb_history_decode(bytes, &scan->view.history, &site);
    if (err == WB_E_CORRUPT) {
        (void)wb_catalog_corrupt(scan->catalog, WB_CATALOG_HISTORY, "a row that is not a history");
        return wb_sorted_catalog_damaged(&scan->chunk);
    }
    if (err < 0)
        return err;
    const struct wb_history_version *version, *latest = wb_history_latest(&scan->view.history);
    if ((latest && latest->arrived <= scan->epoch) || (scan->site && site != scan->site_hash))
        return 0;
    err = choose_version(g, &version);
    if (err < 0 || !version)
        return err;
    struct wb_sorted_item item = {.id = id, .entry = entry_of(scan, version)};
    uint64_t cost = cost_of(scan, &item.entry);
    if (scan->chunk.items.count - g->first == ITEMS_MAX || (g->bytes && g->bytes + cost > scan->source->chunk_bytes)) {
        g->pick->full = true; /* the chunk ends here; items of table pages that are behind it are dropped */
        g->pick->reached = (struct wb_pageid){.hi = id.hi - (id.lo == 0), .lo = id.lo - 1};
        return 1;
    }
    g->bytes += cost;
    return wb_vec_push(&scan->chunk.items, item);
}

static int pass_gone(void *context)
{
    return wb_sorted_catalog_damaged(&((struct gone_walk *)context)->pick->scan->chunk);
}

static int compare_items(const void *a, const void *b)
{
    const struct wb_sorted_item *x = a, *y = b;

    return wb_pageid_compare(x->id, y->id);
}

/* Adds the pages that have no latest version, but one that the scan shows. */
static int add_gone(struct pick *p, struct wb_pageid from)
{
    struct wb_sorted_scan *scan = p->scan;
    struct gone_walk g = {.pick = p, .first = scan->chunk.items.count};
    int err = wb_epochs_held(&scan->txn, wb_clock_wall_ms(), &g.held);

    WB_CHECK(scan->summary.gone > 0);
    g.rule = (struct wb_history_rule){scan->summary.history, g.held.items, g.held.count, wb_clock_wall_ms()};
    if (err == 0)
        err = wb_catalog_history_each_sound(&scan->txn, from, take_gone, pass_gone, &g);
    wb_vec_release(&g.held);
    if (err < 0)
        return err;
    struct wb_sorted_item *items = scan->chunk.items.items;
    size_t kept = 0;
    for (size_t i = 0; i < scan->chunk.items.count; i++)
        if (wb_pageid_compare(items[i].id, p->reached) <= 0)
            items[kept++] = items[i];
    scan->chunk.items.count = kept;
    if (kept)
        qsort(items, kept, sizeof *items, compare_items);
    return 0;
}

/* ---- nodes that are left out ------------------------------------------------------------------------ */

static int drop_left_out(struct wb_sorted_scan *scan)
{
    struct wb_catalog_segment row;
    size_t kept = 0;

    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_HELD);
    for (size_t i = 0; i < scan->chunk.items.count; i++) {
        struct wb_sorted_item *item = &scan->chunk.items.items[i];
        bool left_out = false;
        int err = wb_parts_row_of(&scan->txn, &scan->parts, item->entry.place.segment, item->id, &row);
        if (err < 0)
            return err;
        for (size_t k = 0; k < scan->without_count && !left_out; k++)
            left_out = scan->without[k] == row.node;
        if (!left_out)
            scan->chunk.items.items[kept++] = *item;
    }
    scan->chunk.items.count = kept;
    return 0;
}

/* ---- both -------------------------------------------------------------------------------------------- */

int wb_sorted_pick(struct wb_sorted_scan *scan, struct wb_pageid *reached_out)
{
    struct pick p = {.scan = scan, .reached = LAST_ID};
    struct wb_pageid from = {.hi = scan->first, .lo = 0};
    int err = 0;

    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(!scan->ended);
    wb_vec_clear(&scan->chunk.items);
    *reached_out = LAST_ID;
    if (scan->has_reached && !next_id(scan->reached, &from))
        return 0;
    if (is_behind(scan, from))
        return 0;
    err = wb_catalog_entry_each_sound(&scan->txn, from, take_entry, pass_entries, &p);
    if (err >= 0)
        err = look_back(scan);
    if (err == 0 && scan->summary.gone)
        err = add_gone(&p, from);
    if (err == 0 && scan->without_count)
        err = drop_left_out(scan);
    *reached_out = p.reached;
    scan->chunk.bytes = p.bytes;
    return err < 0 ? err : p.full;
}

int wb_sorted_is_there(struct wb_sorted_scan *scan, const struct wb_sorted_item *item, bool *there_out)
{
    struct wb_catalog_entry entry;
    int err = wb_catalog_entry_get(&scan->txn, item->id, &entry);

    WB_CHECK(scan->txn.kind == WB_CATALOG_TXN_HELD);
    WB_CHECK(item->entry.place.segment > 0);
    *there_out = err == 0 && entry.epoch == item->entry.epoch;
    if (*there_out || (err < 0 && err != WB_E_NOTFOUND))
        return err;
    err = wb_pageview_load(&scan->txn, true, item->id, &scan->view);
    for (size_t i = 0; i < scan->view.history.versions.count && err == 0; i++)
        if (scan->view.history.versions.items[i].arrived == item->entry.epoch)
            *there_out = true;
    return err;
}
