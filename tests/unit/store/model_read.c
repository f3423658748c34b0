/* model_read.c - see model_trace.h. */
#include "model_trace.h"
#include "parcel_support.h"

/* What may change in a version while a scan goes on: further captures come. */
enum { HELD_MASK = WITHOUT_EPOCH | WITHOUT_LIFETIME | WITHOUT_TIME };

/* ---- reading --------------------------------------------------------------------------------------- */

void compare_page(struct trace *t, struct wb_pageid id)
{
    compare_get(&t->p, id);
    compare_timeline(&t->p, id);
    compare_get_when(&t->p, id, &(struct wb_store_when){.kind = WB_STORE_WHEN_TIME, .time_ms = random_time(t, id)});
    compare_revisits(&t->p, id);
    if (chance_one_in(&t->chance, 4))
        compare_in_snapshots(&t->p, id);
}

void compare_stat(struct trace *t)
{
    if (same_stat(&t->p))
        return;
    for (uint32_t site = 0; site < t->shape.sites; site++)
        for (uint32_t number = 0; number < t->shape.numbers; number++) {
            struct spec spec = {.site = site, .number = number};
            say(t, "look at", &spec);
            compare_timeline(&t->p, spec_id(&spec));
        }
    must(false); /* the numbers differ, but no page does */
}

void compare_many(struct trace *t)
{
    struct wb_pageid ids[40];
    size_t count = chance_below(&t->chance, COUNT(ids));
    struct wb_store_when when = {.kind = (enum wb_store_when_kind)chance_below(&t->chance, 3)};

    for (size_t i = 0; i < count; i++) {
        struct spec spec = random_spec(t);
        ids[i] = spec_id(&spec);
        when.time_ms = spec.time_ms;
    }
    if (when.kind == WB_STORE_WHEN_LATEST && !t->p.committed)
        return;
    if (when.kind == WB_STORE_WHEN_SNAPSHOT) {
        struct wb_store_scan *scan;
        when.snapshot = random_snapshot(t);
        if (wb_store_scan_open(t->p.twin, &(struct wb_store_scan_options){.snapshot = when.snapshot}, &scan) < 0)
            return;
        wb_store_scan_close(scan);
    }
    compare_get_many(&t->p, ids, count, &when);
}

/* Reads the rest of a scan and closes it: by pages, by parcels, or both in turn, unless only facts are wanted. */
static void drain(struct trace *t, struct wb_store_scan *scan, bool facts, unsigned without, struct sights *sights)
{
    struct parcel_reader reader = {.scan = scan};
    struct wb_page page;
    int more = 1;

    if (facts || chance_one_in(&t->chance, 2)) {
        drain_scan(scan, without, sights);
        return;
    }
    while (more) {
        if (reader.at == reader.parcel.count && chance_one_in(&t->chance, 8))
            more = scan_some(scan, 1 + chance_below(&t->chance, 4), without, sights);
        else if ((more = parcel_next(&reader, &page)) > 0)
            see(sights, &page, without);
        must_ok(more);
    }
    parcel_close(&reader);
}

/* Reads up to max pages of a scan by parcels, says where, and closes it. Returns false at its end. */
static bool unpack_some(struct wb_store_scan *scan, size_t max, unsigned without, struct sights *sights,
                        struct wb_store_position *position_out)
{
    struct parcel_reader reader = {.scan = scan};
    struct wb_page page;
    int more = 1;

    while (max-- > 0 && (more = parcel_next(&reader, &page)) > 0) {
        see(sights, &page, without);
        parcel_tell(&reader, position_out);
    }
    must_ok(more);
    parcel_close(&reader);
    return more > 0;
}

static unsigned scan_mask(const struct wb_store_scan_options *options)
{
    return (options->facts || options->since ? 0 : WITHOUT_EPOCH) |
           (options->snapshot || options->gone ? WITHOUT_LIFETIME : 0);
}

static struct wb_store_scan_options random_scan(struct trace *t, struct wb_buf *room)
{
    struct wb_store_scan_options options = {.facts = chance_one_in(&t->chance, 3)};
    struct spec spec = random_spec(t);
    struct wb_store_stat stat;

    must_ok(wb_store_stat(t->p.twin, &stat));
    if (chance_one_in(&t->chance, 2))
        options.snapshot = random_snapshot(t);
    else
        options.gone = chance_one_in(&t->chance, 3);
    if (chance_one_in(&t->chance, 3))
        options.site = spec_site(&spec, room);
    if (chance_one_in(&t->chance, 3))
        options.since = chance_below(&t->chance, stat.epoch + 2);
    return options;
}

void compare_scan(struct trace *t)
{
    struct sights log_sights = {0}, twin_sights = {0};
    struct wb_buf room = WB_BUF_INIT;
    struct wb_store_scan_options options = random_scan(t, &room);
    uint32_t parts = (uint32_t)chance_below(&t->chance, 4);
    bool own_reader = chance_one_in(&t->chance, 2);
    struct wb_store *log = own_reader ? open_store(t->dir, WB_STORE_READ) : t->p.log;
    struct wb_store_scan *scan;
    int err = wb_store_scan_open(t->p.twin, &options, &scan);

    say(t, options.snapshot ? "scan a snapshot" : "scan", NULL);
    if (err == 0)
        drain(t, scan, options.facts, scan_mask(&options), &twin_sights);
    for (uint32_t part = 1; part <= (parts ? parts : 1); part++) {
        options.part = parts ? part : 0;
        options.parts = parts;
        must(wb_store_scan_open(log, &options, &scan) == err);
        if (err == 0)
            drain(t, scan, options.facts, scan_mask(&options), &log_sights);
    }
    compare_sights(options.snapshot ? "scan of a snapshot" : "scan of the latest state", &log_sights, &twin_sights);
    wb_buf_release(&room);
    sights_release(&log_sights);
    sights_release(&twin_sights);
    if (own_reader)
        wb_store_close(log);
}

/* Pages that were taken down since then. */
static struct sights taken_since(const struct trace *t, size_t since)
{
    return (struct sights){.list = t->taken.list + since, .count = t->taken.count - since};
}

void hold_scan(struct trace *t)
{
    struct held_scan *held = &t->held[chance_below(&t->chance, SCANS_MAX)];
    struct sights log_sights = {0}, twin_sights = {0}, taken = taken_since(t, held->taken);
    struct wb_buf room = WB_BUF_INIT;

    step_commit(t); /* a scan that begins or ends in between could change what the commit keeps */
    if (!held->log) {
        struct wb_store_scan_options options = random_scan(t, &room);
        say(t, "open a scan", NULL);
        options.gone = false;
        int err = wb_store_scan_open(t->p.log, &options, &held->log);
        must(err == wb_store_scan_open(t->p.twin, &options, &held->twin));
        held->taken = t->taken.count;
        held->facts = options.facts;
    } else {
        struct wb_store_scan_holds log_holds, twin_holds;
        say(t, "end a scan", NULL);
        must_ok(wb_store_scan_holds(held->log, &log_holds));
        must_ok(wb_store_scan_holds(held->twin, &twin_holds));
        must(log_holds.epoch == twin_holds.epoch);
        drain(t, held->log, held->facts, HELD_MASK, &log_sights);
        drain(t, held->twin, held->facts, HELD_MASK, &twin_sights);
        *held = (struct held_scan){0};
        compare_sights_except("a scan opened before", &log_sights, &twin_sights, &taken);
    }
    wb_buf_release(&room);
    sights_release(&log_sights);
    sights_release(&twin_sights);
}

void end_scans(struct trace *t)
{
    for (size_t i = 0; i < SCANS_MAX; i++)
        if (t->held[i].log) {
            wb_store_scan_close(t->held[i].log);
            wb_store_scan_close(t->held[i].twin);
            t->held[i] = (struct held_scan){0};
        }
}

void end_walk(struct walk *w)
{
    wb_buf_release(&w->site);
    sights_release(&w->seen);
    sights_release(&w->expected);
    *w = (struct walk){0};
}

/* Chooses a snapshot and what to see of it. */
static void begin_walk(struct trace *t, struct walk *w)
{
    struct wb_store_scan *scan;

    step_commit(t); /* with the takedowns before it */
    w->options = random_scan(t, &w->site);
    w->options.gone = false;
    w->options.snapshot = random_snapshot(t);
    w->taken = t->taken.count;
    if (wb_store_scan_open(t->p.twin, &w->options, &scan) == 0)
        drain_scan(scan, HELD_MASK, &w->expected);
    w->options.parts = 1 + (uint32_t)chance_below(&t->chance, 3);
    w->options.part = 1;
}

void step_walk(struct trace *t)
{
    struct walk *w = &t->walks[chance_below(&t->chance, WALKS_MAX)];
    struct wb_store_scan *scan, *twin_scan;

    if (!w->options.snapshot)
        begin_walk(t, w);
    say(t, "walk", NULL);
    if (t->print)
        fprintf(stderr, "snapshot %u part %u of %u, since %llu, site %zu, seen %zu of %zu\n", w->options.snapshot,
                w->options.part, w->options.parts, (unsigned long long)w->options.since, w->options.site.len,
                w->seen.count, w->expected.count);
    int err = wb_store_scan_open(t->p.log, &w->options, &scan);
    must(err ==
         wb_store_scan_open(t->p.twin, &(struct wb_store_scan_options){.snapshot = w->options.snapshot}, &twin_scan));
    wb_store_scan_close(twin_scan);
    if (err < 0) {
        end_walk(w);
        return;
    }
    size_t max = 1 + chance_below(&t->chance, 1 + t->shape.sites * t->shape.numbers / 4);
    bool more;
    if (w->options.facts || chance_one_in(&t->chance, 2)) {
        more = scan_some(scan, max, HELD_MASK, &w->seen);
        wb_store_scan_tell(scan, &w->position);
        wb_store_scan_close(scan);
    } else {
        more = unpack_some(scan, max, HELD_MASK, &w->seen, &w->position);
    }
    w->options.after = more ? &w->position : NULL;
    if (!more && w->options.part++ == w->options.parts) {
        struct sights taken = taken_since(t, w->taken);
        compare_sights_except("a scan in pieces", &w->seen, &w->expected, &taken);
        end_walk(w);
    }
}
