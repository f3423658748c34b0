/*
 * test_batched.c - a batch design against an incremental one: whatever is put, touched, removed and taken down, in
 * whatever order, and however often it is transferred, readers see the same in the end. A writer sees the same at any
 * moment. Then transfers that are killed, that meet, and that must wait for readers.
 */
#include "store_support.h"
#include "move/move.h"
#include "os/path.h"

#include <signal.h>
#include <unistd.h>

enum { PAGES = 24, SITES = 4 };

static const char *const designs[] = {"Batch[U(hash,log),R(hash,log)]", "Batch[U(hash,hashed-log),R(hash,hash)]",
                                      "Batch[U(hash,hash),R(hash,log)]", "Batch[U(hash,log),R(uniform,hash)]",
                                      "Batch[U(uniform,log),R(hash,hashed-log)]"};

static const struct wb_store_history policies[] = {
    {WB_STORE_KEEP_NEWEST, 0}, {WB_STORE_KEEP_ALL, 0}, {WB_STORE_KEEP_COUNT, 2}};

static void create_design(const char *dir, const char *design, struct wb_store_history history)
{
    struct wb_store_options options = {.history = history};

    must_ok(wb_design_parse(wb_slice_str(design), &options.design));
    must_ok(wb_store_create(dir, &options));
}

static struct wb_move_transfer_counts transfer(struct wb_store *store)
{
    struct wb_move_transfer_counts counts;

    must_ok(wb_move_transfer(store, NULL, NULL, NULL, NULL, &counts));
    return counts;
}

/* ---- the same in two designs -------------------------------------------------------------------------------- */

struct pair {
    char plain_dir[DIR_MAX], batch_dir[DIR_MAX];
    struct wb_store *plain, *batch; /* writers */
    uint64_t chance, seed;
    int64_t clock;
    bool barred[PAGES], removed[PAGES];
    struct wb_store_history policy;
};

static struct spec page_spec(uint32_t number)
{
    return (struct spec){.site = number % SITES, .number = number};
}

/* Where versions are forgotten, what becomes of a capture of the past depends on when commits were made. */
static enum wb_store_outcome judged(const struct pair *p, enum wb_store_outcome outcome)
{
    return p->policy.keep == WB_STORE_KEEP_ALL || outcome <= WB_STORE_PUT_VERSION || outcome == WB_STORE_PUT_BARRED
               ? outcome
               : WB_STORE_PUT_OLDER;
}

static void fail_pair(const struct pair *p, const char *what, uint32_t number)
{
    fail_msg("page %u: %s (seed %llu)", number, what, (unsigned long long)p->seed);
}

static void put_both(struct pair *p)
{
    struct spec spec = page_spec((uint32_t)chance_below(&p->chance, PAGES));
    enum wb_store_outcome plain, batch;

    p->clock += 10;
    /* Where a past is kept, a page that is gone and then gets an older capture has joined it to those around it. */
    bool late = chance_one_in(&p->chance, 3) && !(p->removed[spec.number] && p->policy.keep != WB_STORE_KEEP_NEWEST);
    /* Steps are 10 ms apart, so many of the late ones are captures of one moment. */
    spec.time_ms = late ? 1000 + (int64_t)chance_below(&p->chance, (uint64_t)p->clock) / 10 * 10 : p->clock;
    spec.content = 1 + (uint32_t)chance_below(&p->chance, 3);
    spec.size = spec.content * 100;
    must_ok(put_spec_as(p->plain, &spec, &plain));
    must_ok(put_spec_as(p->batch, &spec, &batch));
    if (judged(p, plain) != judged(p, batch))
        fail_pair(p, "a put is judged differently", spec.number);
}

static void touch_both(struct pair *p)
{
    struct spec spec = page_spec((uint32_t)chance_below(&p->chance, PAGES));

    p->clock += 10;
    int plain = wb_store_touch(p->plain, spec_id(&spec), p->clock);
    int batch = wb_store_touch(p->batch, spec_id(&spec), p->clock);
    if (plain != batch)
        fail_pair(p, "a touch gives another result", spec.number);
    must(plain == 0 || plain == WB_E_NOTFOUND);
}

static void remove_both(struct pair *p)
{
    struct spec spec = page_spec((uint32_t)chance_below(&p->chance, PAGES));

    p->clock += 10;
    spec.time_ms = p->clock;
    int plain = remove_spec(p->plain, &spec, false), batch = remove_spec(p->batch, &spec, false);
    if (plain != batch)
        fail_pair(p, "a removal gives another result", spec.number);
    must(plain == 0 || plain == WB_E_NOTFOUND);
    p->removed[spec.number] = true;
}

static void commit_both(struct pair *p)
{
    commit_store(p->plain);
    commit_store(p->batch);
}

/* Of a page that is there: with the digest of its content, or just not modified. */
static void revisit_both(struct pair *p)
{
    struct spec spec = page_spec((uint32_t)chance_below(&p->chance, PAGES));
    struct wb_buf room = WB_BUF_INIT, memory = WB_BUF_INIT;
    enum wb_store_outcome plain, batch;
    struct wb_page page;

    commit_both(p); /* whether a content is forgotten depends on commits */
    p->clock += 10;
    struct wb_store_revisit revisit = {.id = spec_id(&spec),
                                       .time_ms = p->clock,
                                       .original = spec_id(&spec),
                                       .site = spec_site(&spec, &room),
                                       .not_modified = true};
    bool digest = chance_one_in(&p->chance, 2);
    bool there = wb_store_get(p->plain, revisit.id, &page, &memory) == 0 && page.time_ms < p->clock;
    if (there && digest) {
        revisit.not_modified = false;
        revisit.has_sha1 = true;
        memcpy(revisit.sha1, page.sha1, sizeof revisit.sha1);
    }
    if (there) {
        must_ok(wb_store_put_revisit(p->plain, &revisit, &plain));
        must_ok(wb_store_put_revisit(p->batch, &revisit, &batch));
        if (judged(p, plain) != judged(p, batch))
            fail_pair(p, "a revisit is judged differently", spec.number);
    }
    wb_buf_release(&room);
    wb_buf_release(&memory);
}

static void take_down_both(struct pair *p)
{
    uint32_t number = (uint32_t)chance_below(&p->chance, PAGES);
    struct spec spec = page_spec(number);
    struct wb_store *stores[] = {p->plain, p->batch};
    int results[2];

    p->clock += 10;
    spec.time_ms = p->clock;
    p->barred[number] = !p->barred[number];
    for (size_t i = 0; i < 2; i++) {
        must_ok(bar_spec(stores[i], &spec, WB_STORE_BAR_PAGE, !p->barred[number]));
        results[i] = p->barred[number] ? remove_spec(stores[i], &spec, true) : 0;
        must(results[i] == 0 || results[i] == WB_E_NOTFOUND);
    }
    commit_both(p);
    must(spec_barred(p->batch, &spec) == p->barred[number]);
}

/* A writer sees every page as if there were no update nodes. */
static void compare_writers(const struct pair *p)
{
    struct wb_buf mem[2] = {WB_BUF_INIT, WB_BUF_INIT};
    struct wb_store *stores[] = {p->plain, p->batch};

    for (uint32_t i = 0; i < PAGES; i++) {
        struct wb_page pages[2];
        int64_t times[2];
        int got[2], timed[2];
        for (size_t k = 0; k < 2; k++) {
            got[k] =
                wb_store_get(stores[k], spec_id(&(struct spec){.site = i % SITES, .number = i}), &pages[k], &mem[k]);
            timed[k] = wb_store_time(stores[k], spec_id(&(struct spec){.site = i % SITES, .number = i}), &times[k]);
        }
        if (got[0] != got[1] || timed[0] != timed[1])
            fail_pair(p, "a writer sees it in one design only", i);
        if (timed[0] == 0 && times[0] != times[1])
            fail_pair(p, "a writer sees another time", i);
        if (got[0] == 0 && page_hash(&pages[0], WITHOUT_EPOCH | WITHOUT_LIFETIME) !=
                               page_hash(&pages[1], WITHOUT_EPOCH | WITHOUT_LIFETIME))
            fail_pair(p, "a writer sees other content", i);
    }
    wb_buf_release(&mem[0]);
    wb_buf_release(&mem[1]);
}

static bool same_timelines(const struct wb_store_timeline *a, const struct wb_store_timeline *b)
{
    if (a->count != b->count || a->time_count != b->time_count || a->gone_ms != b->gone_ms)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        const struct wb_store_version *x = &a->versions[i], *y = &b->versions[i];
        if (x->time_ms != y->time_ms || x->captures != y->captures || x->same != y->same ||
            x->body_bytes != y->body_bytes || (x->ceased == 0) != (y->ceased == 0))
            return false;
    }
    return a->time_count == 0 || memcmp(a->times, b->times, a->time_count * sizeof *a->times) == 0;
}

static void compare_readers(const struct pair *p)
{
    struct wb_store *plain = open_store(p->plain_dir, WB_STORE_READ), *batch = open_store(p->batch_dir, WB_STORE_READ);
    struct wb_store_scan_options all = {0};
    struct sights expected = {0}, found = {0};
    struct wb_store_stat a, b;

    scan_all(plain, &all, WITHOUT_EPOCH, &expected);
    scan_all(batch, &all, WITHOUT_EPOCH, &found);
    for (size_t i = 0; i < expected.count; i++)
        expected.list[i].epoch = 0;
    for (size_t i = 0; i < found.count; i++)
        found.list[i].epoch = 0;
    compare_sights("readers", &found, &expected);
    for (uint32_t i = 0; i < PAGES; i++) {
        struct wb_store_timeline x, y;
        int got = wb_store_timeline(plain, spec_id(&(struct spec){.site = i % SITES, .number = i}), &x);
        if (got != wb_store_timeline(batch, spec_id(&(struct spec){.site = i % SITES, .number = i}), &y))
            fail_pair(p, "readers see a past in one design only", i);
        if (got == 0 && !same_timelines(&x, &y))
            fail_pair(p, "readers see another past", i);
        wb_store_timeline_release(&x);
        wb_store_timeline_release(&y);
    }
    must_ok(wb_store_stat(plain, &a));
    must_ok(wb_store_stat(batch, &b));
    if (a.pages != b.pages || a.versions != b.versions || a.captures != b.captures || a.sites != b.sites ||
        a.revisits != b.revisits || b.pages_waiting != 0)
        fail_pair(p, "the counters differ", 0);
    sights_release(&expected);
    sights_release(&found);
    wb_store_close(plain);
    wb_store_close(batch);
}

static void reopen(struct pair *p)
{
    wb_store_close(p->plain);
    wb_store_close(p->batch);
    p->plain = open_store(p->plain_dir, WB_STORE_WRITE);
    p->batch = open_store(p->batch_dir, WB_STORE_WRITE);
}

static void end_before_emptying(void *context, const struct wb_move_stage *stage)
{
    (void)context;
    if (strcmp(stage->name, "transfer") == 0)
        _exit(0);
}

static int transfer_half(void *context)
{
    const struct pair *p = context;
    struct wb_move_transfer_counts counts;

    wb_move_transfer(open_store(p->batch_dir, WB_STORE_WRITE), end_before_emptying, NULL, NULL, NULL, &counts);
    return 1;
}

/* A transfer that is killed when everything has arrived; the next one brings all of it again. */
static void transfer_twice(struct pair *p)
{
    wb_store_close(p->batch);
    must(run_child(transfer_half, p) == 0);
    p->batch = open_store(p->batch_dir, WB_STORE_WRITE);
    transfer(p->batch);
}

static void one_step(struct pair *p)
{
    uint64_t what = chance_below(&p->chance, 100);

    if (what < 50)
        put_both(p);
    else if (what < 62)
        touch_both(p);
    else if (what < 70)
        remove_both(p);
    else if (what < 78)
        revisit_both(p);
    else if (what < 80)
        take_down_both(p);
    else if (what < 90)
        commit_both(p);
    else if (what < 92) {
        commit_both(p);
        reopen(p);
    } else if (what < 96) {
        compare_writers(p);
    } else {
        commit_both(p);
        if (chance_one_in(&p->chance, 4))
            transfer_twice(p);
        else
            transfer(p->batch);
        compare_readers(p);
        compare_writers(p);
    }
}

static void compare_designs(const char *design, struct wb_store_history history, uint64_t seed)
{
    struct pair p = {.chance = seed, .seed = seed, .clock = 2000, .policy = history};
    char dir[DIR_MAX];

    test_dir(dir);
    path_in(dir, "plain", p.plain_dir);
    path_in(dir, "batch", p.batch_dir);
    create_store_as(p.plain_dir, history);
    create_design(p.batch_dir, design, history);
    p.plain = open_store(p.plain_dir, WB_STORE_WRITE);
    p.batch = open_store(p.batch_dir, WB_STORE_WRITE);
    for (unsigned i = 0; i < 400; i++)
        one_step(&p);
    commit_both(&p);
    transfer(p.batch);
    compare_readers(&p);
    verify_clean(p.batch_dir);
    struct wb_move_transfer_counts nothing = transfer(p.batch);
    assert_int_equal(nothing.added + nothing.replaced, 0);
    wb_store_close(p.plain);
    wb_store_close(p.batch);
    verify_clean(p.batch_dir);
}

static void test_same_in_both(void **state)
{
    uint64_t seed = test_seed();

    (void)state;
    for (unsigned round = 0; round < test_rounds(12); round++)
        for (size_t i = 0; i < COUNT(policies); i++)
            compare_designs(designs[round % COUNT(designs)], policies[i], seed + round * 100 + i);
}

/* ---- a model without versions: kill, readers, two at once ----------------------------------------------------- */

enum { MANY = 300 };

/* What readers may see of each page: its time before the transfer, and after it. */
struct plain_model {
    char dir[DIR_MAX];
    const char *design;
    uint64_t seed;
    int64_t visible[MANY], waiting[MANY]; /* times; 0: there is none */
};

static struct spec model_spec(uint32_t number, int64_t time_ms)
{
    return (struct spec){.site = number % 5, .number = number, .time_ms = time_ms, .size = 500 + number % 7 * 100};
}

/* Puts pages with newer times, which wait. */
static int put_some(void *context)
{
    struct plain_model *m = context;
    struct wb_store *store = open_store(m->dir, WB_STORE_WRITE);

    for (uint32_t i = 0; i < MANY; i++)
        if (m->waiting[i]) {
            struct spec spec = model_spec(i, m->waiting[i]);
            must_ok(put_spec(store, &spec));
        }
    commit_store(store);
    wb_store_close(store);
    return 0;
}

static void choose_waiting(struct plain_model *m, uint64_t *chance, int64_t now)
{
    for (uint32_t i = 0; i < MANY; i++)
        if (chance_one_in(chance, 2))
            m->waiting[i] = now + i;
}

static int transfer_once(void *context)
{
    struct plain_model *m = context;
    struct wb_store *store = open_store(m->dir, WB_STORE_WRITE);

    transfer(store);
    wb_store_close(store);
    return 0;
}

/* Every page is old or new; readers need not wait for anybody. */
static int check_old_or_new(void *context)
{
    struct plain_model *m = context;
    struct wb_store *store = open_store(m->dir, WB_STORE_READ);
    struct sights found = {0};

    verify_clean(m->dir);
    scan_all(store, &(struct wb_store_scan_options){0}, WITHOUT_EPOCH, &found);
    for (uint32_t i = 0; i < MANY; i++) {
        struct spec spec = model_spec(i, 0);
        size_t at = 0;
        while (at < found.count && !wb_pageid_equal(found.list[at].id, spec_id(&spec)))
            at++;
        int64_t time_ms = at < found.count ? found.list[at].time_ms : 0;
        must(time_ms == m->visible[i] || (m->waiting[i] && time_ms == m->waiting[i]));
    }
    sights_release(&found);
    wb_store_close(store);
    return 0;
}

static void arrive(struct plain_model *m)
{
    for (uint32_t i = 0; i < MANY; i++) {
        m->visible[i] = m->waiting[i] ? m->waiting[i] : m->visible[i];
        m->waiting[i] = 0;
    }
}

static int create_model(void *context)
{
    struct plain_model *m = context;

    create_design(m->dir, m->design, policies[0]);
    return 0;
}

static void test_killed(void **state)
{
    uint64_t seed = test_seed(), chance = seed;
    unsigned killed = 0;

    (void)state;
    for (size_t d = 0; d < COUNT(designs); d++) {
        struct plain_model m = {.seed = seed, .design = designs[d]};
        test_dir(m.dir);
        must(run_child(create_model, &m) == 0);
        for (unsigned round = 0; round < test_rounds(6); round++) {
            choose_waiting(&m, &chance, 1000 + round * 1000);
            must(run_child(put_some, &m) == 0);
            for (unsigned tries = 0; tries < 3; tries++) {
                pid_t child = start_child(transfer_once, &m);
                usleep((useconds_t)(50 + chance_below(&chance, 50)) << chance_below(&chance, 10)); /* to 50 ms */
                kill(child, SIGKILL);
                killed += end_child(child) == -SIGKILL;
                must(run_child(check_old_or_new, &m) == 0);
            }
            must(run_child(transfer_once, &m) == 0);
            arrive(&m);
            must(run_child(check_old_or_new, &m) == 0);
        }
    }
    assert_true(killed > 0);
}

/* Stages are reported once each, in the order of the paper. */
static void note_stage(void *context, const struct wb_move_stage *stage)
{
    strcat(strcat(context, stage->name), ",");
    assert_true(stage->ms >= 0);
}

static bool stop_at_once(void *context, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    ++*(unsigned *)context;
    return false;
}

/* A scan that is under way keeps a transfer waiting, which can be stopped; a scan of the same process can begin. */
static void test_readers(void **state)
{
    struct plain_model m = {.design = designs[0]};
    struct wb_store_scan_options all = {0};
    struct wb_store_scan *first, *second;
    struct wb_move_transfer_counts counts;
    char stages[200] = "";
    unsigned asked = 0;

    (void)state;
    test_dir(m.dir);
    create_model(&m);
    for (uint32_t i = 0; i < MANY; i++)
        m.waiting[i] = 1000 + i;
    put_some(&m);
    struct wb_store *writer = open_store(m.dir, WB_STORE_WRITE), *reader = open_store(m.dir, WB_STORE_READ);
    must_ok(wb_store_scan_open(reader, &all, &first));
    assert_int_equal(wb_move_transfer(writer, NULL, NULL, stop_at_once, &asked, &counts), WB_E_STOPPED);
    assert_int_equal(asked, 1);
    must_ok(wb_store_scan_open(reader, &all, &second));
    wb_store_scan_close(second);
    wb_store_scan_close(first);
    must_ok(wb_move_transfer(writer, note_stage, stages, NULL, NULL, &counts));
    assert_int_equal(counts.added, MANY);
    assert_string_equal(stages, "isolate,id lists,intersection,transfer,index,empty,compact,restart,");
    wb_store_close(reader);
    wb_store_close(writer);
    arrive(&m);
    check_old_or_new(&m);
}

/* Of two transfers at once, one is refused; what was put after the beginning of one stays. */
static void test_two_at_once(void **state)
{
    struct plain_model m = {.design = designs[0]};
    struct wb_store_scan_options all = {0};
    struct wb_store_scan *scan;
    struct wb_move_transfer_counts counts;

    (void)state;
    test_dir(m.dir);
    create_model(&m);
    struct wb_store *reader = open_store(m.dir, WB_STORE_READ);
    must_ok(wb_store_scan_open(reader, &all, &scan));
    wb_store_scan_close(scan);
    wb_store_close(reader);
    for (uint32_t i = 0; i < MANY; i++)
        m.waiting[i] = 1000 + i;
    put_some(&m);
    pid_t first = start_child(transfer_once, &m), second = start_child(transfer_once, &m);
    int a = end_child(first), b = end_child(second);
    assert_true(a == 0 || b == 0); /* the other one may have been refused */
    struct wb_store *writer = open_store(m.dir, WB_STORE_WRITE);
    must_ok(wb_move_transfer(writer, NULL, NULL, NULL, NULL, &counts));
    assert_int_equal(counts.added + counts.replaced, 0);
    wb_store_close(writer);
    arrive(&m);
    check_old_or_new(&m);
}

/* Pages that cannot be read stay where they are; all others arrive, and readers lose nothing. */
static void test_damage(void **state)
{
    struct plain_model m = {.design = designs[0]};
    struct wb_move_transfer_counts counts;
    struct wb_store_stat stat;
    char path[DIR_MAX];

    (void)state;
    test_dir(m.dir);
    create_model(&m);
    for (uint32_t round = 1; round <= 2; round++) {
        for (uint32_t i = 0; i < MANY; i++)
            m.waiting[i] = round * 1000 + i;
        put_some(&m);
        if (round == 1) {
            transfer_once(&m);
            arrive(&m);
        }
    }
    path_in(m.dir, "update/node101/pages/00000002.seg", path);
    if (wb_path_kind(path) != WB_PATH_FILE)
        path_in(m.dir, "update/node101/pages/00000001.seg", path);
    flip_byte(path, file_bytes(path) / 2, 1);
    struct wb_store *store = open_store(m.dir, WB_STORE_WRITE);
    assert_int_equal(wb_move_transfer(store, NULL, NULL, NULL, NULL, &counts), WB_E_CORRUPT);
    must_ok(wb_store_stat(store, &stat));
    assert_int_equal(stat.pages, MANY);
    assert_true(stat.pages_waiting > 0);
    assert_true(counts.replaced > 0);
    assert_int_equal(counts.replaced + stat.pages_waiting, MANY);
    struct sights found = {0};
    scan_all(store, &(struct wb_store_scan_options){0}, WITHOUT_EPOCH, &found);
    assert_int_equal(found.count, MANY); /* all of them can be read */
    sights_release(&found);
    wb_store_close(store);
}

static void test_refused(void **state)
{
    struct wb_move_transfer_counts counts;
    char dir[DIR_MAX];

    (void)state;
    test_dir(dir);
    create_store(dir);
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    assert_int_equal(wb_move_transfer(store, NULL, NULL, NULL, NULL, &counts), WB_E_INVALID);
    assert_non_null(strstr(wb_error_message(), "Incr[hash,log]"));
    wb_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_killed),      cmocka_unit_test(test_same_in_both), cmocka_unit_test(test_readers),
        cmocka_unit_test(test_two_at_once), cmocka_unit_test(test_refused),      cmocka_unit_test(test_damage),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
