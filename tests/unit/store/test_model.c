/*
 * test_model.c - runs random traces of calls through the log organisation and the twin at the
 * same time: everything that can be observed must be the same. To test another
 * organisation, open a store of it in place of t->p.log.
 *
 * A trace is a function of its seed (WEBBASE_SEED). Each step is printed if WEBBASE_TRACE is
 * set.
 *
 * The clock stands at half past, so to speak: it moves in whole units, plus a half, and captures, expiries and
 * durations are near whole units. So the time that a call takes decides nothing.
 */
#include "model_trace.h"
#include "twin.h"
#include "move/move.h"

/* ---- writing ------------------------------------------------------------------------------------- */

static void step_put(struct trace *t)
{
    struct spec spec = random_spec(t);
    enum wb_store_outcome log_put, twin_put;

    say(t, "put", &spec);
    must_ok(put_spec_as(t->p.log, &spec, &log_put));
    must_ok(put_spec_as(t->p.twin, &spec, &twin_put));
    if (log_put != twin_put)
        fprintf(stderr, "put says %d, the twin %d\n", log_put, twin_put);
    must(log_put == twin_put);
    t->p.committed = false;
    if (chance_one_in(&t->chance, 4))
        compare_get(&t->p, spec_id(&spec));
}

static void step_touch(struct trace *t)
{
    struct spec spec = random_spec(t);
    struct wb_pageid id = spec_id(&spec);

    say(t, "touch", &spec);
    int log_err = wb_store_touch(t->p.log, id, spec.time_ms);
    must(log_err == wb_store_touch(t->p.twin, id, spec.time_ms));
    must(log_err == 0 || log_err == WB_E_NOTFOUND);
    t->p.committed = false;
    compare_get(&t->p, id);
}

static void step_remove(struct trace *t)
{
    struct spec spec = random_spec(t);
    struct wb_pageid id = spec_id(&spec);
    bool everywhere = chance_one_in(&t->chance, 3);

    say(t, everywhere ? "remove everywhere" : "remove", &spec);
    int log_err = remove_spec(t->p.log, &spec, everywhere);
    int twin_err = remove_spec(t->p.twin, &spec, everywhere);
    if (log_err != twin_err)
        fprintf(stderr, "remove says %d (%s), the twin %d\n", log_err, wb_error_message(), twin_err);
    must(log_err == twin_err);
    must(log_err == 0 || log_err == WB_E_NOTFOUND);
    if (log_err == 0 && everywhere) {
        t->taken.list = realloc(t->taken.list, (t->taken.count + 1) * sizeof *t->taken.list);
        must(t->taken.list != NULL);
        t->taken.list[t->taken.count++] = (struct seen){.id = id};
    }
    t->p.committed = false;
    compare_get(&t->p, id);
}

/* The original is a content that may come, or a time, or what was there just before. */
static struct wb_store_revisit random_revisit(struct trace *t, const struct spec *spec, struct wb_buf *room)
{
    struct wb_store_revisit revisit = {
        .id = spec_id(spec), .site = spec_site(spec, room), .time_ms = spec->time_ms, .original = spec_id(spec)};
    struct spec other = *spec;
    struct made made;

    choose_content(t, &other);
    make_page(&other, &made);
    wb_page_digest(&made.page);
    switch (chance_below(&t->chance, 4)) {
    case 0:
        revisit.not_modified = true;
        break;
    case 1:
        revisit.original_ms = random_time(t, revisit.id);
        revisit.not_modified = chance_one_in(&t->chance, 3);
        break;
    default:
        revisit.has_sha1 = true;
        memcpy(revisit.sha1, made.page.has_payload_sha1 ? made.page.payload_sha1 : made.page.sha1, WB_SHA1_BYTES);
        if (chance_one_in(&t->chance, 3))
            revisit.original_ms = random_time(t, revisit.id);
        if (chance_one_in(&t->chance, 4)) {
            other = random_spec(t);
            revisit.original = spec_id(&other);
        }
    }
    made_release(&made);
    return revisit;
}

static void step_revisit(struct trace *t)
{
    struct spec spec = random_spec(t);
    struct wb_buf room = WB_BUF_INIT;
    struct wb_store_revisit revisit = random_revisit(t, &spec, &room);
    enum wb_store_outcome log_put, twin_put;

    say(t,
        revisit.has_sha1      ? "revisit of a digest"
        : revisit.original_ms ? "revisit of a time"
                              : "revisit that was not modified",
        &spec);
    must_ok(wb_store_put_revisit(t->p.log, &revisit, &log_put));
    must_ok(wb_store_put_revisit(t->p.twin, &revisit, &twin_put));
    if (log_put != twin_put)
        fprintf(stderr, "put_revisit says %d, the twin %d\n", log_put, twin_put);
    must(log_put == twin_put);
    wb_buf_release(&room);
    t->p.committed = false;
    compare_revisits(&t->p, revisit.id);
    compare_revisits(&t->p, revisit.original);
    compare_get(&t->p, revisit.id);
}

/* A real takedown bars first and then removes; here the order is random, and bars are lifted again. */
static void step_bar(struct trace *t)
{
    struct spec spec = random_spec(t);
    enum wb_store_bar_kind kind =
        chance_one_in(&t->chance, 3) && spec.site % 16 != 13 ? WB_STORE_BAR_SITE : WB_STORE_BAR_PAGE;
    bool allow = chance_one_in(&t->chance, 2);

    say(t, allow ? "allow" : kind == WB_STORE_BAR_SITE ? "bar site" : "bar page", &spec);
    int log_err = bar_spec(t->p.log, &spec, kind, allow), twin_err = bar_spec(t->p.twin, &spec, kind, allow);
    must(log_err == twin_err);
    must(log_err == 0 || (allow && log_err == WB_E_NOTFOUND));
    t->p.committed = true;
    compare_bars(&t->p, &spec);
    compare_page(t, spec_id(&spec));
    compare_stat(t);
}

void step_commit(struct trace *t)
{
    struct wb_store_commit_counts log = {.added = 1}, twin = {.added = 1};

    say(t, "commit", NULL);
    must_ok(wb_store_commit(t->p.log, &log));
    must_ok(wb_store_commit(t->p.twin, &twin));
    if (memcmp(&log, &twin, sizeof log) != 0)
        fprintf(stderr, "added %d replaced %d past %d captures %d older %d barred %d removed %d more than the twin\n",
                (int)(log.added - twin.added), (int)(log.replaced - twin.replaced), (int)(log.past - twin.past),
                (int)(log.captures - twin.captures), (int)(log.older - twin.older), (int)(log.barred - twin.barred),
                (int)(log.removed - twin.removed));
    must(memcmp(&log, &twin, sizeof log) == 0);
    t->p.committed = true;
    compare_stat(t);
}

static void step_seal(struct trace *t)
{
    static const char *const names[] = {"", "", "spring", "summer-2", "a.b_c"};
    struct wb_slice name = wb_slice_str(names[chance_below(&t->chance, COUNT(names))]);
    struct wb_store_holder holder = random_holder(t);
    struct wb_store_snapshot log, twin;

    say(t, "seal", NULL);
    int log_err = wb_store_seal(t->p.log, name, &holder, &log);
    int twin_err = wb_store_seal(t->p.twin, name, &holder, &twin);
    must(log_err == twin_err);
    must(log_err == 0 || log_err == WB_E_INVALID);
    must(log.number == twin.number && log.epoch == twin.epoch && log.pages == twin.pages);
    wb_store_snapshot_release(&log);
    wb_store_snapshot_release(&twin);
    t->p.committed = true;
    compare_snapshots(&t->p);
    compare_stat(t);
}

static void step_holders(struct trace *t)
{
    uint32_t number = random_snapshot(t);
    struct wb_store_holder holder = random_holder(t);
    int log_err, twin_err;

    switch (chance_below(&t->chance, 4)) {
    case 0:
        say(t, "hold", NULL);
        log_err = wb_store_hold(t->p.log, number, &holder);
        twin_err = wb_store_hold(t->p.twin, number, &holder);
        break;
    case 1:
        say(t, "let go", NULL);
        log_err = wb_store_let_go(t->p.log, number, &holder);
        twin_err = wb_store_let_go(t->p.twin, number, &holder);
        break;
    default:
        say(t, "drop", NULL);
        log_err = wb_store_drop(t->p.log, number);
        twin_err = wb_store_drop(t->p.twin, number);
    }
    if (log_err != twin_err)
        fprintf(stderr, "says %d (%s), the twin %d about snapshot %u and holder %d %s\n", log_err, wb_error_message(),
                twin_err, number, holder.kind, holder.name);
    must(log_err == twin_err);
    must(log_err == 0 || log_err == WB_E_NOTFOUND || log_err == WB_E_BUSY);
    compare_snapshots(&t->p);
    compare_stat(t);
}

static void step_history(struct trace *t)
{
    struct wb_store_history history = random_history(t);
    struct spec spec = random_spec(t);

    if (!t->shape.fickle)
        return;
    step_commit(t);
    say(t, "set the policy", NULL);
    must_ok(wb_store_set_history(t->p.log, &history));
    must_ok(wb_store_set_history(t->p.twin, &history));
    compare_stat(t);
    compare_page(t, spec_id(&spec));
}

static void step_compact(struct trace *t)
{
    struct wb_move_compact_counts log_compact;
    struct wb_store_stat stat;

    say(t, "compact", NULL);
    must_ok(wb_move_compact(t->p.log, NULL, NULL, NULL, NULL, &log_compact));
    wb_twin_compact(t->p.twin);
    /*
     * The map may be larger than what was freed. And a version that was moved may have been in a lead, whose bytes stay
     * as long as others need them.
     */
    uint64_t body_most = t->shape.giant_max > t->shape.body_max ? t->shape.giant_max : t->shape.body_max;
    uint64_t most = log_compact.bytes_before + log_compact.bytes_before / 8 + 4096 + log_compact.moved * body_most;
    must(log_compact.skipped == 0 && log_compact.bytes_after <= most);
    t->p.committed = true;
    compare_stat(t);
    must_ok(wb_store_stat(t->p.log, &stat));
    bool held = false;
    for (size_t i = 0; i < SCANS_MAX; i++)
        held = held || t->held[i].log;
    must(held || stat.bytes_dead == 0); /* files that a scan still reads count as dead */
}

static void step_reopen(struct trace *t)
{
    say(t, "reopen", NULL);
    end_scans(t);
    wb_store_close(t->p.log);
    t->p.log = NULL;
    t->p.log = open_store(t->dir, WB_STORE_WRITE);
    wb_twin_reopen(t->p.twin);
    t->p.committed = true;
    compare_stat(t);
    compare_snapshots(&t->p);
}

static void step_wait(struct trace *t)
{
    step_commit(t);
    t->clock_ms += UNIT_MS * (int64_t)chance_below(&t->chance, 10);
    t->tick_ms = 0;
    say(t, "wait", NULL);
    set_clock(t);
    compare_snapshots(&t->p);
    compare_stat(t);
}

static void step_read(struct trace *t)
{
    struct spec spec = random_spec(t);

    say(t, "read", &spec);
    compare_page(t, spec_id(&spec));
    if (chance_one_in(&t->chance, 3))
        compare_many(t);
}

/* ---- the trace ------------------------------------------------------------------------------------------ */

static void step_verify(struct trace *t)
{
    verify_clean(t->dir);
}

static const struct {
    unsigned share; /* of a thousand */
    void (*step)(struct trace *t);
} steps[] = {
    {518, step_put},   {100, step_read},   {50, step_remove}, {50, step_touch}, {60, step_revisit}, {10, step_bar},
    {60, step_commit}, {40, compare_scan}, {20, hold_scan},   {20, step_walk},  {15, step_seal},    {15, step_holders},
    {5, step_history}, {10, step_compact}, {10, step_reopen}, {10, step_wait},  {5, step_verify},
    {2, step_convert},
};

static void step(struct trace *t)
{
    uint64_t r = chance_below(&t->chance, 1000);
    size_t i = 0;

    t->step++;
    set_clock(t);
    while (i + 1 < COUNT(steps) && r >= steps[i].share)
        r -= steps[i++].share;
    steps[i].step(t);
}

static void compare_everything(struct trace *t)
{
    set_clock(t);
    for (uint32_t site = 0; site < t->shape.sites; site++)
        for (uint32_t number = 0; number < t->shape.numbers; number++) {
            struct wb_pageid id = spec_id(&(struct spec){.site = site, .number = number});
            compare_page(t, id);
            compare_in_snapshots(&t->p, id);
        }
    for (int i = 0; i < 6; i++)
        compare_scan(t);
}

static void run_trace(const struct shape *shape, uint64_t seed)
{
    struct trace t = {.shape = *shape,
                      .chance = seed,
                      .clock_ms = 3000000 * UNIT_MS + UNIT_MS / 2, /* 2027 */
                      .p.committed = true,
                      .print = getenv("WEBBASE_TRACE")};
    unsigned count = test_rounds(shape->steps);

    if (shape->segment_bytes)
        use_small_sizes(shape->segment_bytes);
    else
        use_usual_sizes();
    test_dir(t.dir);
    set_clock(&t);
    create_store_as(t.dir, shape->history);
    t.p.log = open_store(t.dir, WB_STORE_WRITE);
    must_ok(wb_twin_open(&t.p.twin));
    must_ok(wb_store_set_history(t.p.twin, &shape->history));
    while (t.step < count)
        step(&t);
    step_commit(&t);
    compare_everything(&t);
    step_compact(&t);
    step_reopen(&t);
    compare_everything(&t);
    end_scans(&t);
    for (size_t i = 0; i < WALKS_MAX; i++)
        end_walk(&t.walks[i]);
    wb_store_close(t.p.log);
    wb_store_close(t.p.twin);
    must(verify_clean(t.dir).notes == 0);
    free(t.taken.list);
    remove_tree(t.dir);
    use_usual_sizes();
}

#define NEWEST                                                                                                         \
    {                                                                                                                  \
        WB_STORE_KEEP_NEWEST, 0                                                                                        \
    }
#define ALL                                                                                                            \
    {                                                                                                                  \
        WB_STORE_KEEP_ALL, 0                                                                                           \
    }

static const struct shape shapes[] = {
    {"few pages, replaced again and again", 2, 6, 40000, 0, 2500, 0, NEWEST, false},
    {"few pages in small segments", 3, 8, 20000, 200000, 2500, 100000, NEWEST, true},
    {"many sites", 80, 4, 12000, 0, 3000, 0, NEWEST, false},
    {"many sites in small segments", 40, 6, 8000, 60000, 3000, 30000, ALL, true},
    {"one site with large bodies", 1, 40, 300000, 4 << 20, 600, 0, NEWEST, true},
    {"giants in small segments", 17, 3, 100000, 12 << 20, 500, 400000, ALL, false},
    {"all versions", 3, 8, 10000, 0, 2500, 50000, ALL, false},
    {"three versions of each page", 3, 8, 10000, 0, 2500, 50000, {WB_STORE_KEEP_COUNT, 3}, false},
    {"versions of the last hours", 3, 8, 10000, 0, 2500, 50000, {WB_STORE_KEEP_DURATION, 18 * UNIT_MS}, false},
    {"few pages of a fickle owner", 2, 3, 5000, 0, 4000, 30000, ALL, true},
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
