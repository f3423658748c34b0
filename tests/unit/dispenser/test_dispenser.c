/* test_dispenser.c - what each call of the dispenser promises, on both databases. */
#include "dispenser_support.h"

#include <limits.h>

static bool text_is(struct wb_slice s, const char *text)
{
    return wb_slice_equal(s, wb_slice_str(text));
}

static void test_new_row(void **state)
{
    PLACE(p);
    int64_t id = add_site(p, "a.example.org:8080", NULL, INT_MIN);
    struct wb_site_row row = row_of(p->d, "a.example.org:8080");
    struct wb_buf mem = WB_BUF_INIT;

    assert_int_equal(row.id, id);
    assert_true(text_is(row.name, "a.example.org:8080"));
    assert_true(text_is(row.scheme, "http"));
    assert_int_equal(row.state, WB_SITE_UNRESOLVED);
    assert_int_equal(row.run, p->run);
    assert_int_equal(row.priority, 0);
    assert_int_equal(row.delay_ms, -1);
    assert_int_equal(row.budget, -1);
    assert_int_equal(row.address.len + row.owner.len + row.reason.len, 0);
    assert_int_equal(row.home.len + row.probe.len + row.class_name.len, 0);
    assert_int_equal(row.visit, 0);
    assert_int_equal(row.trail.log, 0);
    assert_int_equal(wb_dispenser_get(p->d, WB_SLICE_LIT("b.example.org"), &mem, &row), WB_E_NOTFOUND);
    assert_non_null(strstr(wb_error_message(), "b.example.org"));
    wb_buf_release(&mem);
}

static void test_add_again(void **state)
{
    PLACE(p);
    struct wb_site_plan plan = {.name = WB_SLICE_LIT("a.org"), .scheme = WB_SLICE_LIT("https"),
                                .class_name = WB_SLICE_LIT("small"), .priority = -7, .delay_ms = 20000, .budget = 10};
    uint64_t added;

    add_site(p, "a.org", "10.0.0.1", 5);
    must_ok(wb_dispenser_add(p->d, p->run, &plan, 1, &added));
    assert_int_equal(added, 0);
    struct wb_site_row row = row_of(p->d, "a.org");
    assert_int_equal(row.state, WB_SITE_READY);
    assert_true(text_is(row.scheme, "http"));
    assert_true(text_is(row.class_name, "small"));
    assert_int_equal(row.priority, -7);
    assert_int_equal(row.delay_ms, 20000);
    assert_int_equal(row.budget, 10);
    add_seed(p->d, p->run, "a.org", NULL, false);
    row = row_of(p->d, "a.org");
    assert_true(text_is(row.class_name, "small"));
    assert_int_equal(row.priority, -7);
    assert_int_equal(row.delay_ms, 20000);
    check_tables(p);
}

/* ---- seeds -------------------------------------------------------------------------------------------- */

struct seeds {
    unsigned count, stop_at;
    int64_t ids[3000];
    size_t bytes;
    char urls[3][64];
};

static int keep_seed(void *context, const struct wb_seed *seed)
{
    struct seeds *s = context;

    if (s->count < 3)
        snprintf(s->urls[s->count], sizeof s->urls[0], "%.*s", WB_SLICE_ARG(seed->url));
    s->bytes += seed->url.len;
    s->ids[s->count++] = seed->id;
    return s->stop_at && s->count == s->stop_at ? 42 : 0;
}

static void test_seeds(void **state)
{
    PLACE(p);
    static char urls[1300][48];
    static struct wb_seed list[1300];
    struct seeds s = {0};
    struct wb_site_plan plan = {.name = WB_SLICE_LIT("a.org"), .scheme = WB_SLICE_LIT("http"), .priority = 0,
                                .delay_ms = -1, .budget = -1, .seeds = list, .seed_count = 1300};
    uint64_t added;
    int64_t id = add_site(p, "a.org", NULL, 0);

    for (unsigned i = 0; i < 1300; i++) {
        /* Every URL twice, and one that the site already has. */
        snprintf(urls[i], sizeof urls[i], i < 2 ? "http://a.org/" : "http://a.org/%u", i / 2);
        list[i] = (struct wb_seed){.url = wb_slice_str(urls[i]), .depth.links = 3};
    }
    must_ok(wb_dispenser_add(p->d, p->run, &plan, 1, &added));
    assert_int_equal(added, 0);
    must_ok(wb_dispenser_seeds(p->d, id, 0, keep_seed, &s));
    assert_int_equal(s.count, 650);
    assert_string_equal(s.urls[0], "http://a.org/");
    assert_string_equal(s.urls[1], "http://a.org/1");
    assert_string_equal(s.urls[2], "http://a.org/2");
    for (unsigned i = 1; i < s.count; i++)
        assert_true(s.ids[i - 1] < s.ids[i]);
    struct seeds rest = {0};
    must_ok(wb_dispenser_seeds(p->d, id, s.ids[639], keep_seed, &rest));
    assert_int_equal(rest.count, 10);
    assert_int_equal(rest.ids[0], s.ids[640]);
    struct seeds some = {.stop_at = 5};
    assert_int_equal(wb_dispenser_seeds(p->d, id, 0, keep_seed, &some), 42);
    assert_int_equal(some.count, 5);
    check_tables(p);
}

static void test_long_seed(void **state)
{
    PLACE(p);
    static char url[WB_URL_MAX_BYTES + 2];
    struct wb_seed seed = {.url = {url, WB_URL_MAX_BYTES}};
    struct wb_site_plan plan = {.name = WB_SLICE_LIT("a.org"), .scheme = WB_SLICE_LIT("http"), .priority = 0,
                                .delay_ms = -1, .budget = -1, .seeds = &seed, .seed_count = 1};
    struct seeds s = {0};
    uint64_t added;

    memset(url, 'x', sizeof url);
    must_ok(wb_dispenser_add(p->d, p->run, &plan, 1, &added));
    must_ok(wb_dispenser_add(p->d, p->run, &plan, 1, &added));
    must_ok(wb_dispenser_seeds(p->d, row_of(p->d, "a.org").id, 0, keep_seed, &s));
    assert_int_equal(s.count, 1);
    assert_int_equal(s.bytes, WB_URL_MAX_BYTES);
    seed.url.len++;
    assert_int_equal(wb_dispenser_add(p->d, p->run, &plan, 1, &added), WB_E_INVALID);
}

static void test_foreign_text(void **state)
{
    PLACE(p);
    static const struct wb_slice bad[] = {WB_SLICE_LIT(""), WB_SLICE_LIT("a b"), WB_SLICE_LIT("a\0b"),
                                          WB_SLICE_LIT("\xff"), WB_SLICE_LIT("\xc3\xa4.org"),
                                          WB_SLICE_LIT("a\nb"), WB_SLICE_LIT("\x7f")};
    struct wb_seed seed = {.url = WB_SLICE_LIT("http://a.org/")};
    struct wb_site_plan plan = {.scheme = WB_SLICE_LIT("http"), .priority = 0, .delay_ms = -1, .budget = -1,
                                .seeds = &seed, .seed_count = 1};
    static char long_name[WB_SITE_NAME_MAX + 1];
    uint64_t added;
    struct told told = {0};

    for (size_t i = 0; i < COUNT(bad); i++) {
        plan.name = bad[i];
        assert_int_equal(wb_dispenser_add(p->d, p->run, &plan, 1, &added), WB_E_INVALID);
        assert_int_equal(borrow_until(p->d, bad[i], WB_SLICE_LIT("http"), WB_SLICE_LIT("me"), 0, LEASE, tell, &told),
                         WB_E_INVALID);
        plan.name = WB_SLICE_LIT("a.org");
        seed.url = bad[i];
        assert_int_equal(wb_dispenser_add(p->d, p->run, &plan, 1, &added), WB_E_INVALID);
        seed.url = WB_SLICE_LIT("http://a.org/");
    }
    memset(long_name, 'a', sizeof long_name);
    plan.name = wb_slice(long_name, sizeof long_name);
    assert_int_equal(wb_dispenser_add(p->d, p->run, &plan, 1, &added), 0);
    assert_int_equal(added, 0);
    /* Text that looks like SQL is just text. */
    plan.name = WB_SLICE_LIT("a';DROP/**/TABLE/**/webbase_site;--");
    seed.url = WB_SLICE_LIT("http://a.org/';--$1?1\"");
    must_ok(wb_dispenser_add(p->d, p->run, &plan, 1, &added));
    assert_int_equal(added, 1);
    assert_int_equal(row_of(p->d, "a';DROP/**/TABLE/**/webbase_site;--").state, WB_SITE_UNRESOLVED);
    assert_int_equal(claim_until(p->d, p->run, WB_SLICE_LIT("\xff"), 0, LEASE, 1, tell, &told), WB_E_INVALID);
    assert_int_equal(claim_until(p->d, p->run, WB_SLICE_EMPTY, 0, LEASE, 1, tell, &told), WB_E_INVALID);
    check_tables(p);
}

/* A reason quotes what peers say, so it may be anything. It must never cause a report to be lost. */
static void test_foreign_reason(void **state)
{
    PLACE(p);
    struct told told;
    char text[2000];
    int64_t id = add_site(p, "a.org", "10.0.0.1", 0);

    claim(p->d, 1, "me", 0, LEASE, 1, &told);
    struct wb_site_report report = report_of(id, WB_SITE_CLAIMED);
    report.reason = WB_SLICE_LIT("bad\0 \xff\xc3\xa4\n");
    must_ok(report_one(p->d, "me", report));
    assert_true(text_is(row_of(p->d, "a.org").reason, "bad? ?\xc3\xa4?"));
    memset(text, 'x', sizeof text);
    report.reason = wb_slice(text, sizeof text);
    must_ok(report_one(p->d, "me", report));
    assert_int_equal(row_of(p->d, "a.org").reason.len, 500);
    report.home = WB_SLICE_LIT("\xff");
    assert_int_equal(report_one(p->d, "me", report), WB_E_INVALID);
    report.home = WB_SLICE_EMPTY;
    report.state = (enum wb_site_state)8;
    assert_int_equal(report_one(p->d, "me", report), WB_E_INVALID);
}

/* ---- resolving ------------------------------------------------------------------------------------------- */

static void test_unresolved(void **state)
{
    PLACE(p);
    struct told told = {0};
    int64_t a = add_site(p, "a.org", NULL, 0), b = add_site(p, "b.org", NULL, 9), c = add_site(p, "c.org", NULL, 0);

    must_ok(wb_dispenser_unresolved(p->d, p->run, 100, 2, tell, &told));
    assert_int_equal(told.count, 2);
    assert_int_equal(told.ids[0], a);
    assert_int_equal(told.ids[1], b);
    must_ok(wb_dispenser_resolved(p->d, a, WB_SLICE_LIT("10.0.0.1 10.0.0.2"), 500, WB_SLICE_EMPTY));
    must_ok(wb_dispenser_resolved(p->d, b, WB_SLICE_LIT("10.0.0.3"), 400, WB_SLICE_EMPTY));
    must_ok(wb_dispenser_resolved(p->d, c, WB_SLICE_EMPTY, 0, WB_SLICE_LIT("no such name")));
    assert_int_equal(row_of(p->d, "c.org").state, WB_SITE_REFUSED);
    assert_true(text_is(row_of(p->d, "c.org").reason, "no such name"));
    assert_int_equal(row_of(p->d, "a.org").state, WB_SITE_READY);
    assert_true(text_is(row_of(p->d, "a.org").address, "10.0.0.1 10.0.0.2"));
    told.count = 0;
    must_ok(wb_dispenser_unresolved(p->d, p->run, 399, 10, tell, &told));
    assert_int_equal(told.count, 0);
    must_ok(wb_dispenser_unresolved(p->d, p->run, 500, 10, tell, &told));
    assert_int_equal(told.count, 2);
    assert_int_equal(told.ids[0], b);
    assert_int_equal(told.ids[1], a);
    told.count = 0;
    must_ok(wb_dispenser_unresolved(p->d, p->run + 1, 500, 10, tell, &told));
    assert_int_equal(told.count, 0);
    assert_int_equal(wb_dispenser_resolved(p->d, c + 1, WB_SLICE_LIT("10.0.0.1"), 0, WB_SLICE_EMPTY), WB_E_NOTFOUND);
    assert_int_equal(wb_dispenser_resolved(p->d, c, WB_SLICE_EMPTY, 0, WB_SLICE_EMPTY), WB_E_INVALID);
    check_tables(p);
}

/* A name that cannot be resolved is tried again when it is due. Once it is resolved, its failures do not count. */
static void test_unresolvable(void **state)
{
    PLACE(p);
    struct told told = {0};
    int64_t a = add_site(p, "a.org", NULL, 0), b = add_site(p, "b.org", "10.0.0.1", 0), c = add_site(p, "c.org", NULL,
                                                                                                     0);

    must_ok(wb_dispenser_unresolvable(p->d, a, 500, 1, WB_SLICE_LIT("SERVFAIL")));
    assert_int_equal(row_of(p->d, "a.org").state, WB_SITE_WAITING);
    assert_int_equal(row_of(p->d, "a.org").next_ms, 500);
    assert_int_equal(row_of(p->d, "a.org").attempts, 1);
    assert_true(text_is(row_of(p->d, "a.org").reason, "SERVFAIL"));
    must_ok(wb_dispenser_unresolved(p->d, p->run, 499, 10, tell, &told));
    assert_int_equal(told.count, 1);
    assert_int_equal(told.ids[0], c);
    told.count = 0;
    must_ok(wb_dispenser_unresolved(p->d, p->run, 500, 10, tell, &told));
    assert_int_equal(told.count, 2);
    must_ok(wb_dispenser_resolved(p->d, a, WB_SLICE_LIT("10.0.0.9"), 900, WB_SLICE_EMPTY));
    assert_int_equal(row_of(p->d, "a.org").attempts, 0);
    assert_int_equal(row_of(p->d, "a.org").reason.len, 0);
    /* A site that has an address stays in its state. */
    must_ok(wb_dispenser_unresolvable(p->d, b, 700, 1, WB_SLICE_LIT("SERVFAIL")));
    assert_int_equal(row_of(p->d, "b.org").state, WB_SITE_READY);
    assert_int_equal(row_of(p->d, "b.org").address_expires_ms, 700);
    assert_int_equal(row_of(p->d, "b.org").attempts, 0);
    /* Another run resolves at once, but only sites that still wait without an address. */
    must_ok(wb_dispenser_unresolvable(p->d, c, 5000, 6, WB_SLICE_LIT("timeout")));
    must_ok(wb_dispenser_resolve_again(p->d, (const int64_t[]){a, b, c, c + 1}, 4, 600));
    assert_int_equal(row_of(p->d, "c.org").next_ms, 600);
    assert_int_equal(row_of(p->d, "c.org").attempts, 0);
    assert_true(text_is(row_of(p->d, "c.org").reason, "timeout"));
    assert_int_equal(row_of(p->d, "b.org").address_expires_ms, 700);
    assert_int_equal(wb_dispenser_unresolvable(p->d, c + 1, 1, 1, WB_SLICE_LIT("x")), WB_E_NOTFOUND);
    check_tables(p);
}

static void test_resolved_late(void **state)
{
    PLACE(p);
    struct told told;
    int64_t id = add_site(p, "a.org", "10.0.0.1", 0);

    assert_int_equal(claim(p->d, p->run, "me", 0, LEASE, 1, &told), 1);
    must_ok(wb_dispenser_resolved(p->d, id, WB_SLICE_LIT("10.0.0.9"), 7, WB_SLICE_EMPTY));
    struct wb_site_row row = row_of(p->d, "a.org");
    assert_int_equal(row.state, WB_SITE_CLAIMED);
    assert_true(text_is(row.address, "10.0.0.9"));
    assert_true(text_is(row.owner, "me"));
    must_ok(wb_dispenser_resolved(p->d, id, WB_SLICE_EMPTY, 0, WB_SLICE_LIT("gone")));
    assert_int_equal(row_of(p->d, "a.org").state, WB_SITE_CLAIMED);
    struct wb_site_report report = report_of(id, WB_SITE_WAITING);
    report.next_ms = 5000;
    must_ok(report_one(p->d, "me", report));
    must_ok(wb_dispenser_resolved(p->d, id, WB_SLICE_LIT("10.0.0.8"), 7, WB_SLICE_EMPTY));
    assert_int_equal(row_of(p->d, "a.org").state, WB_SITE_WAITING);
    check_tables(p);
}

/* ---- reports ---------------------------------------------------------------------------------------------------- */

static void test_report_keeps(void **state)
{
    PLACE(p);
    struct told told;
    int64_t id = add_site(p, "a.org", "10.0.0.1", 0);

    claim(p->d, p->run, "me", 0, LEASE, 1, &told);
    struct wb_site_report report = {.id = id, .state = WB_SITE_CLAIMED, .next_ms = 77, .attempts = 2,
                                    .reason = WB_SLICE_LIT("why"),
                                    .alias_of = WB_SLICE_LIT("b.org"), .probe = WB_SLICE_LIT("12ab"),
                                    .home = WB_SLICE_LIT("home"), .visit = UINT32_MAX,
                                    .trail = {UINT32_MAX, UINT64_MAX}, .trail_ms = 123, .seeds_taken = 1, .pages = 44};
    must_ok(report_one(p->d, "me", report));
    struct wb_site_row row = row_of(p->d, "a.org");
    assert_int_equal(row.state, WB_SITE_CLAIMED);
    assert_true(text_is(row.owner, "me"));
    assert_int_equal(row.lease_ms, LEASE);
    assert_int_equal(row.next_ms, 77);
    assert_int_equal(row.attempts, 2);
    assert_true(text_is(row.reason, "why") && text_is(row.alias_of, "b.org") && text_is(row.probe, "12ab") &&
                text_is(row.home, "home"));
    assert_true(row.visit == UINT32_MAX && row.trail.log == UINT32_MAX && row.trail.offset == UINT64_MAX &&
                row.trail_ms == 123);
    assert_int_equal(row.pages, 44);
    report = report_of(id, WB_SITE_ALIAS);
    must_ok(report_one(p->d, "me", report));
    row = row_of(p->d, "a.org");
    assert_int_equal(row.state, WB_SITE_ALIAS);
    assert_int_equal(row.owner.len, 0);
    assert_true(text_is(row.probe, "12ab") && text_is(row.home, "home") && row.trail.log == UINT32_MAX &&
                row.reason.len == 0);
    check_tables(p);
}

static void test_report_not_held(void **state)
{
    PLACE(p);
    struct told told;
    int64_t id = add_site(p, "a.org", "10.0.0.1", 0);

    claim(p->d, p->run, "slow", 0, LEASE, 1, &told);
    assert_int_equal(claim(p->d, p->run, "quick", LEASE, 2 * LEASE, 1, &told), 1);
    struct wb_site_report report = report_of(id, WB_SITE_DONE);
    report.pages = 5;
    report.trail = (struct wb_site_trail){9, 100};
    report.trail_ms = 500;
    report.home = WB_SLICE_LIT("here");
    must_ok(report_one(p->d, "slow", report));
    struct wb_site_row row = row_of(p->d, "a.org");
    assert_int_equal(row.state, WB_SITE_CLAIMED);
    assert_true(text_is(row.owner, "quick"));
    assert_int_equal(row.pages, 0);
    assert_true(row.trail.log == 9 && text_is(row.home, "here"));
    /* A log with a lower number may be the one that was written last. */
    report.trail = (struct wb_site_trail){2, 7};
    report.trail_ms = 501;
    must_ok(report_one(p->d, "slow", report));
    assert_int_equal(row_of(p->d, "a.org").trail.log, 2);
    report.trail = (struct wb_site_trail){50, 7};
    report.trail_ms = 400;
    must_ok(report_one(p->d, "slow", report));
    assert_int_equal(row_of(p->d, "a.org").trail.log, 2);
    report.trail = (struct wb_site_trail){2, 8};
    report.trail_ms = 501;
    must_ok(report_one(p->d, "slow", report));
    assert_int_equal(row_of(p->d, "a.org").trail.offset, 8);
    /* A report about a site that does not exist does not affect the other reports of the call. */
    struct wb_site_report two[] = {report_of(id + 100, WB_SITE_DONE), report_of(id, WB_SITE_DONE)};
    must_ok(wb_dispenser_report(p->d, WB_SLICE_LIT("quick"), two, 2));
    assert_int_equal(row_of(p->d, "a.org").state, WB_SITE_DONE);
    check_tables(p);
}

static void test_done_with_new_seeds(void **state)
{
    PLACE(p);
    struct told told;
    struct seeds s = {0};
    uint64_t count;
    int64_t id = add_site(p, "a.org", "10.0.0.1", 0);

    claim(p->d, p->run, "me", 0, LEASE, 1, &told);
    must_ok(wb_dispenser_seeds(p->d, id, 0, keep_seed, &s));
    struct wb_site_report report = report_of(id, WB_SITE_DONE);
    report.seeds_taken = s.ids[0];
    add_seed(p->d, p->run, "a.org", "http://a.org/more", false);
    must_ok(report_one(p->d, "me", report));
    assert_int_equal(row_of(p->d, "a.org").state, WB_SITE_READY);
    assert_int_equal(claim(p->d, p->run, "me", 0, LEASE, 1, &told), 1);
    assert_int_equal(told.last.seeds_taken, s.ids[0]);
    s.count = 0;
    must_ok(wb_dispenser_seeds(p->d, id, told.last.seeds_taken, keep_seed, &s));
    assert_int_equal(s.count, 1);
    report.seeds_taken = s.ids[0];
    must_ok(report_one(p->d, "me", report));
    assert_int_equal(row_of(p->d, "a.org").state, WB_SITE_DONE);
    /* Seeds that come after the report: only reopening brings the site back. */
    must_ok(wb_dispenser_reopen(p->d, p->run, &count));
    assert_int_equal(count, 0);
    add_seed(p->d, p->run, "a.org", "http://a.org/more", false);
    must_ok(wb_dispenser_reopen(p->d, p->run, &count));
    assert_int_equal(count, 0);
    add_seed(p->d, p->run, "a.org", "http://a.org/late", false);
    assert_int_equal(row_of(p->d, "a.org").state, WB_SITE_DONE);
    must_ok(wb_dispenser_reopen(p->d, p->run + 1, &count));
    assert_int_equal(count, 0);
    must_ok(wb_dispenser_reopen(p->d, p->run, &count));
    assert_int_equal(count, 1);
    assert_int_equal(row_of(p->d, "a.org").state, WB_SITE_READY);
    check_tables(p);
}

static void test_anew(void **state)
{
    PLACE(p);
    struct told told;
    int64_t run, id = add_site(p, "a.org", "10.0.0.1", 0);

    add_seed(p->d, p->run, "a.org", NULL, true);
    assert_int_equal(row_of(p->d, "a.org").state, WB_SITE_READY);
    claim(p->d, p->run, "me", 0, LEASE, 1, &told);
    must_ok(begin_run(p->d, &run));
    assert_int_equal(run, p->run + 1);
    struct wb_site_report report = report_of(id, WB_SITE_DONE);
    report.trail = (struct wb_site_trail){3, 4};
    report.next_ms = 99;
    report.pages = 10;
    report.visit = 6;
    report.reason = WB_SLICE_LIT("finished");
    must_ok(report_one(p->d, "me", report));
    add_seed(p->d, run, "a.org", NULL, false);
    assert_int_equal(row_of(p->d, "a.org").state, WB_SITE_DONE);
    assert_int_equal(row_of(p->d, "a.org").run, run);
    add_seed(p->d, run, "a.org", NULL, true);
    struct wb_site_row row = row_of(p->d, "a.org");
    assert_int_equal(row.state, WB_SITE_UNRESOLVED);
    assert_true(row.trail.log == 3 && row.next_ms == 99 && row.visit == 6);
    assert_true(row.pages == 0 && row.seeds_taken == 0 && row.reason.len == 0);
    check_tables(p);
}

static void test_runs(void **state)
{
    PLACE(p);
    struct told told;
    int64_t run;
    struct wb_dispenser_stat stat;

    int64_t a = add_site(p, "www.a.co.uk", "10.0.0.1", 0), b = add_site(p, "b.co.uk", "10.0.0.1", 0),
            c = add_site(p, "x.a.co.uk", NULL, 0);
    int64_t d = add_site(p, "d.org", "10.0.0.1", 0);
    claim(p->d, p->run, "me", 0, LEASE, 1, &told);
    assert_int_equal(told.ids[0], a);
    must_ok(report_one(p->d, "me", report_of(a, WB_SITE_DONE)));
    must_ok(begin_run(p->d, &run));
    assert_int_equal(claim(p->d, run, "me", 0, LEASE, 9, &told), 0);
    must_ok(wb_dispenser_join_run(p->d, run, false, WB_SLICE_LIT("a.co.uk")));
    assert_int_equal(row_of(p->d, "x.a.co.uk").run, run);
    assert_int_equal(row_of(p->d, "www.a.co.uk").run, p->run);
    assert_int_equal(row_of(p->d, "b.co.uk").run, p->run);
    check_tables(p);
    must_ok(wb_dispenser_join_run(p->d, run, true, WB_SLICE_EMPTY));
    assert_int_equal(claim(p->d, p->run, "me", 0, LEASE, 9, &told), 0);
    assert_int_equal(claim(p->d, run, "me", 0, LEASE, 9, &told), 2);
    assert_int_equal(told.ids[0], b);
    assert_int_equal(told.ids[1], d);
    must_ok(wb_dispenser_stat(p->d, run, &stat));
    assert_true(stat.claimed == 2 && stat.unresolved == 1 && stat.done == 0);
    must_ok(wb_dispenser_stat(p->d, 0, &stat));
    assert_true(stat.claimed == 2 && stat.unresolved == 1 && stat.done == 1);
    /* An older run does not take an unfinished site out of a newer one. */
    add_seed(p->d, p->run, "x.a.co.uk", "http://x.a.co.uk/2", false);
    assert_int_equal(row_of(p->d, "x.a.co.uk").run, run);
    assert_true(c > 0);
    check_tables(p);
}

/* Some sites of an address move to another run; those that stay must still be found. */
static void test_join_shared_address(void **state)
{
    PLACE(p);
    struct told told;
    int64_t run;

    add_site(p, "x.a.org", "10.0.0.1", 2);
    add_site(p, "y.a.org", "10.0.0.1", 1);
    int64_t stays = add_site(p, "b.org", "10.0.0.1", 0);
    must_ok(begin_run(p->d, &run));
    must_ok(wb_dispenser_join_run(p->d, run, false, WB_SLICE_LIT("a.org")));
    check_tables(p);
    assert_int_equal(claim(p->d, p->run, "me", 0, LEASE, 9, &told), 1);
    assert_int_equal(told.ids[0], stays);
    assert_int_equal(claim(p->d, run, "me", 0, LEASE, 9, &told), 2);
    check_tables(p);
}

static void test_neighbours(void **state)
{
    PLACE(p);
    struct told told = {0};
    int64_t ids[4] = {add_site(p, "a.org", "10.0.0.1 10.0.0.9", 0), add_site(p, "b.org", "10.0.0.2 10.0.0.1", 0),
                      add_site(p, "c.org", "10.0.0.1", 3), add_site(p, "d.org", "10.0.0.1", 0)};

    must_ok(wb_dispenser_neighbours(p->d, WB_SLICE_LIT("10.0.0.1"), tell, &told));
    assert_int_equal(told.count, 3);
    assert_true(told.ids[0] == ids[0] && told.ids[1] == ids[2] && told.ids[2] == ids[3]);
    told.count = 0;
    must_ok(wb_dispenser_neighbours(p->d, WB_SLICE_EMPTY, tell, &told));
    assert_int_equal(told.count, 0);
    claim(p->d, p->run, "me", 0, LEASE, 9, &told);
    for (int i = 0; i < 4; i++) {
        struct wb_site_report report = report_of(ids[i], WB_SITE_DONE);
        report.probe = i == 2 ? WB_SLICE_LIT("other") : WB_SLICE_LIT("same");
        must_ok(report_one(p->d, "me", report));
    }
    told.count = 0;
    must_ok(wb_dispenser_twins(p->d, WB_SLICE_LIT("10.0.0.1"), WB_SLICE_LIT("same"), tell, &told));
    assert_int_equal(told.count, 2);
    assert_true(told.ids[0] == ids[0] && told.ids[1] == ids[3]);
}

/* What people look for: by a part of the name, by state, sorted, a page at a time. */
static void test_search(void **state)
{
    PLACE(p);
    struct told told = {0};
    uint64_t total;
    int64_t ids[4] = {add_site(p, "b.org", "10.0.0.1", 0), add_site(p, "a.org", "10.0.0.2", 0),
                      add_site(p, "c_x.example", "10.0.0.3", 0), add_site(p, "d.org:8080", "10.0.0.4", 0)};
    struct wb_site_search all = {.text = WB_SLICE_EMPTY, .max = 9};

    must_ok(wb_dispenser_search(p->d, &all, tell, &told, &total));
    assert_true(total == 4 && told.count == 4);
    assert_true(told.ids[0] == ids[1] && told.ids[1] == ids[0] && told.ids[2] == ids[2] && told.ids[3] == ids[3]);
    static const struct {
        struct wb_site_search search;
        size_t total, count, first; /* first: in ids */
    } cases[] = {
        {{.text = {"ORG", 3}, .max = 9}, 3, 3, 1},       {{.text = {"_", 1}, .max = 9}, 1, 1, 2},
        {{.text = {"%", 1}, .max = 9}, 0, 0, 0},         {{.text = {"!", 1}, .max = 9}, 0, 0, 0},
        {{.text = {"", 0}, .max = 2, .offset = 1}, 4, 2, 0}, {{.text = {"", 0}, .max = 9, .offset = 9}, 4, 0, 0},
        {{.text = {"", 0}, .max = 9, .descending = true}, 4, 4, 3}, {{.text = {"", 0}, .max = 0}, 4, 0, 0},
        {{.text = {"", 0}, .max = 9, .state = WB_SITE_DONE}, 0, 0, 0},
    };
    for (size_t i = 0; i < COUNT(cases); i++) {
        told.count = 0;
        must_ok(wb_dispenser_search(p->d, &cases[i].search, tell, &told, &total));
        assert_int_equal(total, cases[i].total);
        assert_int_equal(told.count, cases[i].count);
        assert_true(told.count == 0 || told.ids[0] == ids[cases[i].first]);
    }
    claim(p->d, p->run, "me", 0, LEASE, 9, &told);
    for (int i = 0; i < 4; i++) {
        struct wb_site_report report = report_of(ids[i], i == 2 ? WB_SITE_DONE : WB_SITE_WAITING);
        report.pages = i;
        report.attempts = 4 - i;
        report.next_ms = i == 0 ? 900 : 500 + i;
        must_ok(report_one(p->d, "me", report));
    }
    static const struct {
        enum wb_site_order order;
        bool descending;
        size_t first, last;
    } orders[] = {
        {WB_SITE_BY_PAGES, true, 3, 0},    {WB_SITE_BY_PAGES, false, 0, 3},   {WB_SITE_BY_ATTEMPTS, true, 0, 3},
        {WB_SITE_BY_STATE, true, 2, 3},    {WB_SITE_BY_NEXT, false, 2, 0},    {WB_SITE_BY_NEXT, true, 0, 2},
    };
    for (size_t i = 0; i < COUNT(orders); i++) {
        struct wb_site_search search = {.max = 9, .text = WB_SLICE_EMPTY, .order = orders[i].order,
                                        .descending = orders[i].descending};
        told.count = 0;
        must_ok(wb_dispenser_search(p->d, &search, tell, &told, &total));
        assert_true(told.count == 4 && told.ids[0] == ids[orders[i].first] && told.ids[3] == ids[orders[i].last]);
    }
}

static void test_reopened(void **state)
{
    PLACE(p);
    struct told told;
    int64_t run, id = add_site(p, "a.org", "10.0.0.1", 0);

    claim(p->d, p->run, "me", 0, LEASE, 9, &told);
    reopen_place(p);
    assert_int_equal(row_of(p->d, "a.org").id, id);
    assert_int_equal(row_of(p->d, "a.org").state, WB_SITE_CLAIMED);
    must_ok(begin_run(p->d, &run));
    assert_int_equal(run, p->run + 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(test_new_row),
        BOTH(test_add_again),
        BOTH(test_seeds),
        BOTH(test_long_seed),
        BOTH(test_foreign_text),
        BOTH(test_foreign_reason),
        BOTH(test_unresolved),
        BOTH(test_resolved_late),
        BOTH(test_unresolvable),
        BOTH(test_report_keeps),
        BOTH(test_report_not_held),
        BOTH(test_done_with_new_seeds),
        BOTH(test_anew),
        BOTH(test_runs),
        BOTH(test_neighbours),
        BOTH(test_search), BOTH(test_reopened),
        BOTH(test_join_shared_address),
    };

    return cmocka_run_group_tests_name("dispenser", tests, NULL, end_server);
}
