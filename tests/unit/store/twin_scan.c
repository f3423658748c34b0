/*
 * twin_scan.c - the scans of the twin: everything that a scan shows is copied when it is opened, in the order of ids.
 */
#include "twin_state.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"

struct wb_twin_scan {
    struct wb_store_scan scan; /* must be the first member */
    struct wb_twin *twin;
    WB_VEC(struct wb_twin_version) shown;
    size_t at; /* the next version to return */
    uint64_t epoch;
    bool facts;
    struct wb_store_packer *packer;
};

_Static_assert(offsetof(struct wb_twin_scan, scan) == 0, "a wb_store_scan of this kind is a wb_twin_scan");
_Static_assert(sizeof(struct wb_pageid) <= WB_STORE_POSITION_BYTES, "the place in a scan is the id of the page");

static struct wb_twin_scan *scan_of(struct wb_store_scan *base)
{
    WB_CHECK(base->magic == WB_STORE_SCAN_MAGIC);
    return (struct wb_twin_scan *)base;
}

uint64_t wb_twin_scan_epoch(const struct wb_twin_scan *scan)
{
    WB_CHECK(scan->scan.magic == WB_STORE_SCAN_MAGIC);
    return scan->epoch;
}

static struct wb_pageid id_of(const struct wb_twin_version *version)
{
    struct wb_page page;

    wb_twin_version_page(version, &page);
    return page.id;
}

/* The version of a page that the scan shows, or NULL. */
static const struct wb_twin_version *pick(const struct wb_twin_page *page, const struct wb_store_scan_options *options)
{
    const struct wb_twin_version *latest = wb_twin_latest(page);

    return latest || !options->gone ? latest : wb_twin_seen_by(page, INT64_MAX);
}

static bool is_wanted(const struct wb_twin_page *page, const struct wb_twin_version *version,
                      const struct wb_store_scan_options *options)
{
    struct wb_pageid after;

    if (options->since && version->arrived <= options->since)
        return false;
    if (options->parts > 1 && page->id.hi % options->parts != options->part - 1)
        return false;
    if (options->site.len && !wb_twin_page_in_site(page, options->site))
        return false;
    if (!options->after)
        return true;
    memcpy(&after, options->after->bytes, sizeof after);
    return wb_pageid_compare(page->id, after) > 0;
}

static void show(struct wb_twin_scan *scan, const struct wb_twin_version *version)
{
    size_t at = scan->shown.count;

    WB_CHECK(wb_vec_add(&scan->shown));
    for (; at > 0 && wb_pageid_compare(id_of(&scan->shown.items[at - 1]), id_of(version)) > 0; at--)
        scan->shown.items[at] = scan->shown.items[at - 1];
    wb_twin_version_copy(version, &scan->shown.items[at]);
}

int wb_twin_scan_open(struct wb_store *store, const struct wb_store_scan_options *options,
                      struct wb_store_scan **scan_out)
{
    struct wb_twin *twin = wb_twin_of(store);
    int64_t now_ms = wb_clock_wall_ms();
    const struct wb_twin_snapshot *snapshot = wb_twin_snapshot_find(&twin->snapshots, options->snapshot, now_ms);

    if (options->snapshot && !snapshot)
        return wb_twin_no_snapshot(options->snapshot);
    struct wb_twin_scan *scan = wb_alloc_zero(1, sizeof *scan);
    WB_CHECK(scan);
    wb_store_scan_init(&scan->scan, store);
    scan->twin = twin;
    scan->epoch = snapshot ? snapshot->sealed.epoch : twin->committed.epoch;
    scan->facts = options->facts;
    const struct wb_twin_state *state = snapshot ? &snapshot->state : &twin->committed;
    for (size_t i = 0; i < state->pages.count; i++) {
        struct wb_twin_page page = wb_twin_page_read(twin, &state->pages.items[i]);
        const struct wb_twin_version *version = pick(&page, options);
        if (version && is_wanted(&page, version, options))
            show(scan, version);
        wb_twin_page_release(&page);
    }
    WB_CHECK(wb_vec_push(&twin->scans, scan) == 0);
    *scan_out = &scan->scan;
    return 0;
}

int wb_twin_scan_next(struct wb_store_scan *base, struct wb_page *page_out)
{
    struct wb_twin_scan *scan = scan_of(base);

    if (scan->at == scan->shown.count)
        return 0;
    wb_twin_version_page(&scan->shown.items[scan->at++], page_out);
    if (scan->facts)
        page_out->body = wb_slice("", 0);
    return 1;
}

/* Parcels of a few pages each. */
int wb_twin_scan_parcel(struct wb_store_scan *base, struct wb_store_parcel *parcel_out)
{
    enum { PARCEL_PAGES = 5 };
    struct wb_twin_scan *scan = scan_of(base);
    struct wb_store_position position;
    struct wb_page page;
    size_t count = 0;

    WB_CHECK(!scan->facts);
    WB_CHECK(scan->packer || wb_store_packer_new(&scan->packer) == 0);
    while (count < PARCEL_PAGES && wb_twin_scan_next(base, &page) > 0) {
        wb_twin_scan_tell(base, &position);
        WB_CHECK(wb_store_packer_add(scan->packer, &page, &position) == 0);
        count++;
    }
    if (count)
        WB_CHECK(wb_store_packer_finish(scan->packer, parcel_out) == 0);
    return count > 0;
}

int wb_twin_position_compare(const struct wb_store_position *a, const struct wb_store_position *b)
{
    struct wb_pageid x, y;

    memcpy(&x, a->bytes, sizeof x);
    memcpy(&y, b->bytes, sizeof y);
    return wb_pageid_compare(x, y);
}

void wb_twin_scan_tell(const struct wb_store_scan *base, struct wb_store_position *position_out)
{
    const struct wb_twin_scan *scan = (const struct wb_twin_scan *)base;

    if (scan->at) {
        struct wb_pageid id = id_of(&scan->shown.items[scan->at - 1]);
        memcpy(position_out->bytes, &id, sizeof id);
    }
}

int wb_twin_scan_holds(struct wb_store_scan *base, struct wb_store_scan_holds *holds_out)
{
    const struct wb_twin_scan *scan = scan_of(base);

    *holds_out = (struct wb_store_scan_holds){.epoch = scan->epoch};
    return 0;
}

void wb_twin_scan_close(struct wb_store_scan *base)
{
    struct wb_twin_scan *scan = scan_of(base);
    size_t at = 0;

    while (scan->twin->scans.items[at] != scan)
        at++;
    scan->twin->scans.items[at] = wb_vec_pop(&scan->twin->scans);
    for (size_t i = 0; i < scan->shown.count; i++)
        wb_twin_version_release(&scan->shown.items[i]);
    wb_vec_release(&scan->shown);
    wb_store_packer_free(scan->packer);
    wb_store_scan_release(&scan->scan);
    wb_free(scan);
}
