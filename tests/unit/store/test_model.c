/*
 * test_model.c - runs random traces of calls through the log organisation and the twin at the
 * same time: everything that can be observed must be the same. To test another
 * organisation, open a store of it in place of t->log.
 *
 * A trace is a function of its seed (WEBBASE_SEED). Each step is printed if WEBBASE_TRACE is
 * set.
 */
#include "base/date.h"
#include "os/clock.h"
#include "store_support.h"
#include "twin.h"

#include <time.h>

enum { SCANS_MAX = 3 };

/* What kind of repository a trace makes. */
struct shape {
    const char *name;
    uint32_t sites, numbers; /* pages are (site, number) */
    uint32_t body_max, giant_max;
    unsigned steps;
    uint64_t segment_bytes;  /* 0: the usual sizes */
};

struct held_scan {
    struct wb_store_scan *log, *twin;
};

struct trace {
    struct shape shape;
    uint64_t chance;
    char dir[DIR_MAX];
    struct wb_store *log, *twin;
    struct held_scan held[SCANS_MAX];
    int64_t now_ms;
    int64_t ahead_ms; /* a time in the future, as a wrong clock would show it */
    unsigned step;
    bool committed; /* nothing since the last commit */
    bool print;
};

static void say(const struct trace *t, const char *what, const struct spec *spec)
{
    if (t->print)
        fprintf(stderr, "%u %s site %u number %u time %lld size %u variant %u\n", t->step, what, spec ? spec->site : 0,
                spec ? spec->number : 0, spec ? (long long)spec->time_ms : 0, spec ? spec->size : 0,
                spec ? spec->variant : 0);
}

static struct spec random_spec(struct trace *t)
{
    uint64_t *c = &t->chance;
    struct spec spec = {
        .site = (uint32_t)chance_below(c, t->shape.sites),
        .number = (uint32_t)chance_below(c, t->shape.numbers),
        .variant = (uint32_t)chance_below(c, 1000),
    };

    switch (chance_below(c, 8)) {
    case 0:
        spec.size = (uint32_t)chance_below(c, 3);
        break;
    case 1:
        spec.size = (uint32_t)chance_below(c, t->shape.body_max);
        break;
    default:
        spec.size = (uint32_t)chance_below(c, t->shape.body_max / 16);
    }
    if (t->shape.giant_max && chance_one_in(c, 150))
        spec.size = (uint32_t)chance_below(c, t->shape.giant_max);
    t->now_ms += (int64_t)chance_below(c, 100);
    spec.time_ms = t->now_ms;
    return spec;
}

/* ---- reading --------------------------------------------------------------------------------- */

static void compare_get(struct trace *t, struct wb_pageid id)
{
    struct wb_buf log_memory = WB_BUF_INIT, twin_memory = WB_BUF_INIT;
    struct wb_page log_page, twin_page;
    int log_err = wb_store_get(t->log, id, &log_page, &log_memory);
    int twin_err = wb_store_get(t->twin, id, &twin_page, &twin_memory);

    if (log_err != twin_err)
        fprintf(stderr, "get says %d (%s), the twin %d\n", log_err, wb_error_message(), twin_err);
    must(log_err == twin_err);
    /* The epoch is set by the commit. */
    if (log_err == 0 && page_hash(&log_page, t->committed) != page_hash(&twin_page, t->committed))
        fprintf(stderr, "%.*s: time %lld/%lld epoch %u/%u lifetime %u/%u of %u/%u body %zu/%zu status %u/%u\n",
                WB_SLICE_ARG(twin_page.key), (long long)log_page.time_ms, (long long)twin_page.time_ms, log_page.epoch,
                twin_page.epoch, log_page.lifetime_count, twin_page.lifetime_count, log_page.lifetime,
                twin_page.lifetime, log_page.body.len, twin_page.body.len, log_page.status, twin_page.status);
    must(log_err < 0 || page_hash(&log_page, t->committed) == page_hash(&twin_page, t->committed));
    wb_buf_release(&log_memory);
    wb_buf_release(&twin_memory);
}

static void compare_revisit(struct trace *t, struct wb_pageid id)
{
    struct wb_store_revisit log_revisit, twin_revisit;
    int log_err = wb_store_get_revisit(t->log, id, &log_revisit),
        twin_err = wb_store_get_revisit(t->twin, id, &twin_revisit);

    must(log_err == twin_err);
    must(log_err < 0 || (log_revisit.time_ms == twin_revisit.time_ms && log_revisit.has_sha1 == twin_revisit.has_sha1 &&
                         memcmp(log_revisit.sha1, twin_revisit.sha1, sizeof log_revisit.sha1) == 0));
}

static void compare_stat(struct trace *t)
{
    struct wb_store_stat log_stat, twin_stat;

    must_ok(wb_store_stat(t->log, &log_stat));
    must_ok(wb_store_stat(t->twin, &twin_stat));
    must(log_stat.pages == twin_stat.pages);
    must(log_stat.sites == twin_stat.sites);
    must(log_stat.pages_old == twin_stat.pages_old);
    must(log_stat.revisits == twin_stat.revisits);
    must(log_stat.bars == twin_stat.bars);
    must(log_stat.bytes_pages == twin_stat.bytes_pages);
    must(log_stat.epoch == twin_stat.epoch);
    must(log_stat.snapshot == twin_stat.snapshot);
    must(strcmp(log_stat.organisation, "log") == 0);
    must(log_stat.bytes_dead <= log_stat.bytes_stored);
}

/* Both views, in one to three parts, of all sites or one, through the writer's handle or a separate reader. */
static void compare_scan(struct trace *t)
{
    struct sights log_sights = {0}, twin_sights = {0};
    struct spec spec = random_spec(t);
    struct made made;
    struct wb_store_scan_options options = {.view = chance_one_in(&t->chance, 2) ? WB_STORE_VIEW_SNAPSHOT
                                                                                 : WB_STORE_VIEW_LATEST};
    uint32_t parts = (uint32_t)chance_below(&t->chance, 4);
    bool own_reader = chance_one_in(&t->chance, 2);
    struct wb_store *log = own_reader ? open_store(t->dir, WB_STORE_READ) : t->log;

    spec.size = 0;
    make_page(&spec, &made);
    if (chance_one_in(&t->chance, 3))
        options.site = wb_key_site(made.page.key);
    scan_all(t->twin, &options, &twin_sights);
    for (uint32_t part = 1; part <= (parts ? parts : 1); part++) {
        options.part = parts ? part : 0;
        options.parts = parts;
        scan_all(log, &options, &log_sights);
    }
    compare_sights(options.view == WB_STORE_VIEW_LATEST ? "scan of the latest state" : "scan of the snapshot",
                   &log_sights, &twin_sights);
    made_release(&made);
    sights_release(&log_sights);
    sights_release(&twin_sights);
    if (own_reader)
        wb_store_close(log);
}

/* Opens a pair of scans, or ends one that was opened many steps ago. */
static void hold_scan(struct trace *t)
{
    struct held_scan *held = &t->held[chance_below(&t->chance, SCANS_MAX)];
    struct wb_store_scan_options options = {.view = chance_one_in(&t->chance, 2) ? WB_STORE_VIEW_SNAPSHOT
                                                                                 : WB_STORE_VIEW_LATEST};
    struct sights log_sights = {0}, twin_sights = {0};

    if (!held->log) {
        must_ok(wb_store_scan_open(t->log, &options, &held->log));
        must_ok(wb_store_scan_open(t->twin, &options, &held->twin));
        return;
    }
    drain_scan(held->log, &log_sights);
    drain_scan(held->twin, &twin_sights);
    *held = (struct held_scan){0};
    compare_sights("a scan opened before", &log_sights, &twin_sights);
    sights_release(&log_sights);
    sights_release(&twin_sights);
}

static void end_scans(struct trace *t)
{
    for (size_t i = 0; i < SCANS_MAX; i++)
        if (t->held[i].log) {
            wb_store_scan_close(t->held[i].log);
            wb_store_scan_close(t->held[i].twin);
            t->held[i] = (struct held_scan){0};
        }
}

/* ---- writing ------------------------------------------------------------------------------------- */

static void step_put(struct trace *t)
{
    struct spec spec = random_spec(t);
    struct wb_buf memory = WB_BUF_INIT;
    struct wb_page page;
    enum wb_store_outcome log_put, twin_put;

    /* Mostly newer than the stored version; sometimes exactly as old, or older. */
    if (chance_one_in(&t->chance, 5) && wb_store_get(t->twin, spec_id(&spec), &page, &memory) == 0)
        spec.time_ms = page.time_ms - (int64_t)chance_below(&t->chance, 3) + 1;
    wb_buf_release(&memory);
    say(t, "put", &spec);
    if (chance_one_in(&t->chance, 20)) /* by a machine whose clock is wrong */
        spec.time_ms += t->ahead_ms;
    must_ok(put_spec_as(t->log, &spec, &log_put));
    must_ok(put_spec_as(t->twin, &spec, &twin_put));
    must(log_put == twin_put);
    t->committed = false;
    if (chance_one_in(&t->chance, 4))
        compare_get(t, spec_id(&spec));
}

static void step_touch(struct trace *t)
{
    struct spec spec = random_spec(t);
    int64_t time_ms = t->now_ms - (int64_t)chance_below(&t->chance, 300);
    struct wb_pageid id = spec_id(&spec);

    spec.time_ms = time_ms;
    say(t, "touch", &spec);
    int log_err = wb_store_touch(t->log, id, time_ms);
    must(log_err == wb_store_touch(t->twin, id, time_ms));
    must(log_err == 0 || log_err == WB_E_NOTFOUND);
    t->committed = false;
    compare_get(t, id);
}

static void step_remove(struct trace *t)
{
    struct spec spec = random_spec(t);
    struct wb_pageid id = spec_id(&spec);
    bool everywhere = chance_one_in(&t->chance, 3);

    say(t, everywhere ? "remove everywhere" : "remove", &spec);
    int log_err = remove_spec(t->log, &spec, everywhere);
    int twin_err = remove_spec(t->twin, &spec, everywhere);
    if (log_err != twin_err)
        fprintf(stderr, "remove says %d (%s), the twin %d\n", log_err, wb_error_message(), twin_err);
    must(log_err == twin_err);
    must(log_err == 0 || log_err == WB_E_NOTFOUND);
    t->committed = false;
    compare_get(t, id);
}

static void step_revisit(struct trace *t)
{
    struct spec spec = random_spec(t);
    struct wb_buf room = WB_BUF_INIT;
    struct wb_store_revisit revisit = {.time_ms = t->now_ms - (int64_t)chance_below(&t->chance, 200),
                                       .has_sha1 = spec.variant % 2};

    if (revisit.has_sha1)
        memset(revisit.sha1, (int)spec.variant & 0x7f, sizeof revisit.sha1);
    spec.time_ms = revisit.time_ms;
    say(t, "revisit", &spec);
    struct wb_slice site = spec_site(&spec, &room);
    must_ok(wb_store_put_revisit(t->log, spec_id(&spec), site, &revisit));
    must_ok(wb_store_put_revisit(t->twin, spec_id(&spec), site, &revisit));
    wb_buf_release(&room);
    t->committed = false;
    compare_revisit(t, spec_id(&spec));
}

/* What is barred, and which pages of a site there are. */
static void compare_bars(struct trace *t, const struct spec *spec)
{
    enum { IDS_MAX = 64 };
    struct wb_pageid log_ids[IDS_MAX], twin_ids[IDS_MAX];
    size_t log_count, twin_count, found = 0;
    struct wb_buf room = WB_BUF_INIT;
    struct wb_slice site = spec_site(spec, &room);

    must(spec_barred(t->log, spec) == spec_barred(t->twin, spec));
    must_ok(wb_store_list_site(t->log, site, log_ids, IDS_MAX, &log_count));
    must_ok(wb_store_list_site(t->twin, site, twin_ids, IDS_MAX, &twin_count));
    must(log_count == twin_count);
    for (size_t i = 0; i < log_count; i++)
        for (size_t j = 0; j < twin_count; j++)
            found += wb_pageid_equal(log_ids[i], twin_ids[j]);
    must(found == log_count);
    wb_buf_release(&room);
}

/* A real takedown bars first and then removes; here the order is random, and bars are lifted again. */
static void step_bar(struct trace *t)
{
    struct spec spec = random_spec(t);
    enum wb_store_bar_kind kind =
        chance_one_in(&t->chance, 3) && spec.site % 16 != 13 ? WB_STORE_BAR_SITE : WB_STORE_BAR_PAGE;
    bool allow = chance_one_in(&t->chance, 2);

    say(t, allow ? "allow" : kind == WB_STORE_BAR_SITE ? "bar site" : "bar page", &spec);
    int log_err = bar_spec(t->log, &spec, kind, allow), twin_err = bar_spec(t->twin, &spec, kind, allow);
    must(log_err == twin_err);
    must(log_err == 0 || (allow && log_err == WB_E_NOTFOUND));
    t->committed = true;
    compare_bars(t, &spec);
    compare_get(t, spec_id(&spec));
    compare_revisit(t, spec_id(&spec));
    compare_stat(t);
}

static void step_commit(struct trace *t)
{
    struct wb_store_commit_counts log_counts = {.added = 1}, twin_counts = {.added = 1};

    say(t, "commit", NULL);
    must_ok(wb_store_commit(t->log, &log_counts));
    must_ok(wb_store_commit(t->twin, &twin_counts));
    must(memcmp(&log_counts, &twin_counts, sizeof log_counts) == 0);
    t->committed = true;
    compare_stat(t);
}

static void step_snapshot(struct trace *t)
{
    uint32_t log_snapshot, twin_snapshot;

    say(t, "snapshot", NULL);
    must_ok(wb_store_snapshot(t->log, &log_snapshot));
    must_ok(wb_store_snapshot(t->twin, &twin_snapshot));
    must(log_snapshot == twin_snapshot);
    t->committed = true;
    compare_stat(t);
}

static void step_compact(struct trace *t)
{
    struct wb_store_compact_counts log_compact, twin_compact;
    struct wb_store_stat stat;

    say(t, "compact", NULL);
    must_ok(wb_store_compact(t->log, NULL, NULL, NULL, NULL, &log_compact));
    must_ok(wb_store_compact(t->twin, NULL, NULL, NULL, NULL, &twin_compact));
    /* The map may be larger than what was freed. */
    must(log_compact.skipped == 0 &&
         log_compact.bytes_after <= log_compact.bytes_before + log_compact.bytes_before / 8 + 4096);
    t->committed = true;
    compare_stat(t);
    must_ok(wb_store_stat(t->log, &stat));
    bool held = false;
    for (size_t i = 0; i < SCANS_MAX; i++)
        held = held || t->held[i].log;
    must(held || stat.bytes_dead == 0); /* files that a scan still reads count as dead */
}

static void step_reopen(struct trace *t)
{
    say(t, "reopen", NULL);
    end_scans(t);
    wb_store_close(t->log);
    t->log = NULL;
    t->log = open_store(t->dir, WB_STORE_WRITE);
    wb_twin_reopen(t->twin);
    t->committed = true;
    compare_stat(t);
}

static void step(struct trace *t)
{
    struct spec spec;
    uint64_t r = chance_below(&t->chance, 1000);

    t->step++;
    if (r < 600)
        step_put(t);
    else if (r < 700) {
        spec = random_spec(t);
        compare_get(t, spec_id(&spec));
        compare_revisit(t, spec_id(&spec));
    } else if (r < 750)
        step_remove(t);
    else if (r < 800)
        step_touch(t);
    else if (r < 830)
        step_revisit(t);
    else if (r < 840)
        step_bar(t);
    else if (r < 900)
        step_commit(t);
    else if (r < 945)
        compare_scan(t);
    else if (r < 960)
        hold_scan(t);
    else if (r < 975)
        step_snapshot(t);
    else if (r < 985)
        step_compact(t);
    else if (r < 995)
        step_reopen(t);
    else
        verify_clean(t->dir);
}

static void compare_everything(struct trace *t)
{
    for (uint32_t site = 0; site < t->shape.sites; site++)
        for (uint32_t number = 0; number < t->shape.numbers; number++) {
            struct wb_pageid id = spec_id(&(struct spec){.site = site, .number = number});
            compare_get(t, id);
            compare_revisit(t, id);
        }
    for (int i = 0; i < 6; i++)
        compare_scan(t);
}

static void run_trace(const struct shape *shape, uint64_t seed)
{
    struct trace t = {.shape = *shape,
                      .chance = seed,
                      .now_ms = 1000000,
                      .ahead_ms = wb_clock_wall_ms() + 100 * WB_DAY_MS,
                      .committed = true,
                      .print = getenv("WEBBASE_TRACE")};
    unsigned steps = test_rounds(shape->steps);

    if (shape->segment_bytes)
        use_small_sizes(shape->segment_bytes);
    else
        use_usual_sizes();
    test_dir(t.dir);
    create_store(t.dir);
    t.log = open_store(t.dir, WB_STORE_WRITE);
    must_ok(wb_twin_open(&t.twin));
    while (t.step < steps)
        step(&t);
    step_commit(&t);
    compare_everything(&t);
    step_compact(&t);
    step_reopen(&t);
    compare_everything(&t);
    end_scans(&t);
    wb_store_close(t.log);
    wb_store_close(t.twin);
    must(verify_clean(t.dir).notes == 0);
    remove_tree(t.dir);
    use_usual_sizes();
}

static const struct shape shapes[] = {
    {"few pages, replaced again and again", 2, 6, 40000, 0, 2500, 0},
    {"few pages in small segments", 3, 8, 20000, 200000, 2500, 100000},
    {"many sites", 80, 4, 12000, 0, 3000, 0},
    {"many sites in small segments", 40, 6, 8000, 60000, 3000, 30000},
    {"one site with large bodies", 1, 40, 300000, 4 << 20, 600, 0},
    {"giants in small segments", 17, 3, 100000, 12 << 20, 500, 400000},
};

static void test_traces(void **state)
{
    const struct shape *shape = *state;
    uint64_t seed = test_seed();

    for (unsigned i = 0; i < 2; i++)
        run_trace(shape, seed + i);
}

int main(void)
{
    struct CMUnitTest tests[COUNT(shapes)];

    for (size_t i = 0; i < COUNT(shapes); i++)
        tests[i] = (struct CMUnitTest){shapes[i].name, test_traces, NULL, NULL, (void *)(uintptr_t)&shapes[i]};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
