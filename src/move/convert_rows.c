/*
 * convert_rows.c - copies everything in a catalog but pages and the files that hold them (convert.h): snapshots first,
 * because they decide which versions of pages are kept. It writes a bounded number of rows in a transaction.
 *
 * Who holds a snapshot: persons are copied. Generations of the index and streams are not, because the copy has neither;
 * a snapshot that only they held is not copied.
 */
#include "base/check.h"
#include "base/mem.h"
#include "os/clock.h"
#include "move/convert.h"

#include <stdlib.h>

enum { ROWS_MAX = 50000 }; /* in one transaction */

struct row_copy {
    struct wb_convert *convert;
    struct wb_catalog_txn txn;
    struct wb_catalog_summary summary;
    size_t rows;
    int64_t now_ms;
    struct wb_store_holder holder; /* the person who holds the snapshot ... */
    bool held;                     /* ... if there is one */
};

static int begin(struct row_copy *c)
{
    WB_CHECK(c->txn.kind == WB_CATALOG_TXN_CLOSED);
    int err = wb_catalog_txn_write(c->convert->target->catalog, &c->txn);
    return err < 0 ? err : wb_catalog_summary_get(&c->txn, &c->summary);
}

static int end(struct row_copy *c)
{
    WB_CHECK(c->txn.kind == WB_CATALOG_TXN_WRITING);
    c->summary.commit++;
    int err = wb_catalog_summary_put(&c->txn, &c->summary);
    if (err == 0)
        err = wb_catalog_txn_commit(&c->txn);
    if (err == 0)
        c->convert->target->writer->files.commit = c->summary.commit;
    c->rows = 0;
    return err;
}

/* Before each row. */
static int make_room(struct row_copy *c)
{
    if (++c->rows <= ROWS_MAX)
        return 0;
    int err = wb_convert_progress(c->convert, 0);
    if (err == 0)
        err = end(c);
    return err < 0 ? err : begin(c);
}

static int look_at_holder(void *context, uint32_t number, const struct wb_store_holder *holder)
{
    struct row_copy *c = context;

    (void)number;
    if (holder->kind == WB_STORE_HOLDER_PERSON && (holder->expires_ms == 0 || holder->expires_ms > c->now_ms)) {
        c->holder = *holder;
        c->held = true;
    }
    return 0;
}

static int copy_snapshot(void *context, const struct wb_store_snapshot *snapshot)
{
    struct row_copy *c = context;

    c->held = false;
    int err = wb_catalog_holder_each(&c->convert->source->txn, snapshot->number, look_at_holder, c);
    if (err < 0 || !c->held)
        return err;
    if (snapshot->epoch > c->convert->source->summary.epoch)
        return wb_catalog_corrupt(c->convert->source->catalog, WB_CATALOG_SNAPSHOTS, "a snapshot of an epoch to come");
    err = make_room(c);
    if (err == 0)
        err = wb_catalog_snapshot_put(&c->txn, snapshot);
    return err < 0 ? err : wb_catalog_holder_put(&c->txn, snapshot->number, &c->holder);
}

static int copy_bar(void *context, const struct wb_store_bar *bar, const struct wb_catalog_bar *row)
{
    struct row_copy *c = context;
    int err = make_room(c);

    c->summary.bars++;
    return err < 0 ? err : wb_catalog_bar_put(&c->txn, bar->kind, bar->id, bar->site, row);
}

static int copy_revisit(void *context, const struct wb_store_revisit *revisit, uint64_t site)
{
    struct row_copy *c = context;
    bool is_new = false;
    int err = make_room(c);

    if (err == 0)
        err = wb_catalog_revisit_put(&c->txn, site, revisit, &is_new);
    c->summary.revisits += is_new;
    return err;
}

static int copy_site(void *context, struct wb_slice site, uint64_t pages)
{
    struct row_copy *c = context;
    int err = make_room(c);

    if (err == 0 && pages > INT64_MAX)
        err = wb_catalog_corrupt(c->convert->source->catalog, WB_CATALOG_SITES, "a number of pages");
    return err < 0 ? err : wb_catalog_site_add(&c->txn, site, (int64_t)pages, &c->summary);
}

static int compare_hashes(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

    return x < y ? -1 : x > y;
}

static int correct_site(void *context, struct wb_slice site, uint64_t pages)
{
    struct row_copy *c = context;
    uint64_t hash = wb_catalog_site_hash(site);
    const uint64_t *hashes = c->convert->lost_sites.items;
    size_t count = c->convert->lost_sites.count, low = 0, high = count;
    int64_t lost = 0;

    (void)pages;
    while (low < high) { /* the first one that is not less */
        size_t middle = low + (high - low) / 2;
        if (hashes[middle] < hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < count && hashes[low] == hash; low++)
        lost++;
    int err = lost ? make_room(c) : 0;
    return err < 0 || lost == 0 ? err : wb_catalog_site_add(&c->txn, site, -lost, &c->summary);
}

int wb_convert_sites(struct wb_convert *convert)
{
    struct row_copy c = {.convert = convert};
    int err = begin(&c);

    qsort(convert->lost_sites.items, convert->lost_sites.count, sizeof *convert->lost_sites.items, compare_hashes);
    if (err == 0)
        err = wb_catalog_site_each(&convert->source->txn, correct_site, &c);
    if (err == 0)
        err = end(&c);
    wb_catalog_txn_abort(&c.txn);
    return err;
}

int wb_convert_bars(struct wb_convert *convert)
{
    struct row_copy c = {.convert = convert};
    int err = begin(&c);

    if (err == 0)
        err = wb_catalog_bar_each(&convert->source->txn, copy_bar, &c);
    if (err == 0)
        err = end(&c);
    wb_catalog_txn_abort(&c.txn);
    return err;
}

int wb_convert_revisits(struct wb_convert *convert)
{
    struct row_copy c = {.convert = convert};
    int err = begin(&c);

    WB_CHECK(convert->source->txn.kind == WB_CATALOG_TXN_HELD);
    if (err == 0)
        err = wb_catalog_revisit_each(&convert->source->txn, copy_revisit, &c);
    if (err == 0)
        err = end(&c);
    wb_catalog_txn_abort(&c.txn);
    return err;
}

int wb_convert_rows(struct wb_convert *convert)
{
    struct row_copy c = {.convert = convert, .now_ms = wb_clock_wall_ms()};
    struct wb_catalog_txn *from = &convert->source->txn;
    int err = begin(&c);

    WB_CHECK(from->kind == WB_CATALOG_TXN_HELD);
    if (err == 0) {
        c.summary.epoch = convert->source->summary.epoch;
        c.summary.snapshot = convert->source->summary.snapshot;
        c.summary.history = convert->source->summary.history;
        err = wb_catalog_snapshot_each(from, copy_snapshot, &c);
    }
    if (err == 0)
        err = wb_catalog_bar_each(from, copy_bar, &c);
    if (err == 0)
        err = wb_catalog_site_each(from, copy_site, &c);
    if (err == 0)
        err = end(&c);
    wb_catalog_txn_abort(&c.txn);
    return err;
}
