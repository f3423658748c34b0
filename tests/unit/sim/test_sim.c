/* test_sim.c - from requests to replies: parsing, the log, the truth, bombs, and running out of memory anywhere. */
#include "simtest.h"

#include "base/mem.h"
#include "os/fault.h"
#include "sim/bomb.h"
#include "sim/locate.h"
#include "sim/respond.h"

#include <errno.h>
#include <jansson.h>
#include <zlib.h>

static void test_requests_are_read(void **state)
{
    static const char text[] =
        "GET /a?b HTTP/1.1\r\nhost:  s1.localhost \r\nIf-None-Match: \"x\"\r\nAccept-Encoding: br, GZIP\r\n\r\nrest";
    struct wb_asked asked;
    size_t used;

    (void)state;
    for (size_t n = 0; n < sizeof text - 5; n++)
        assert_int_equal(wb_asked_parse(wb_slice(text, n), &asked, &used), 0);
    assert_int_equal(wb_asked_parse(wb_slice(text, sizeof text - 1), &asked, &used), 1);
    assert_int_equal(used, sizeof text - 5);
    assert_true(wb_slice_equal(asked.target, WB_SLICE_LIT("/a?b")) &&
                wb_slice_equal(asked.host, WB_SLICE_LIT("s1.localhost")));
    assert_true(wb_slice_equal(asked.if_none_match, WB_SLICE_LIT("\"x\"")));
    assert_true(asked.gzip && asked.keep_alive && !asked.head && !asked.old);
}

static void test_odd_requests(void **state)
{
    static const struct {
        const char *text;
        int found;
        bool keep;
    } cases[] = {
        {"HEAD / HTTP/1.1\n\n", 1, true},
        {"GET / HTTP/1.0\r\n\r\n", 1, false},
        {"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n", 1, true},
        {"GET / HTTP/1.1\r\nConnection: close\r\n\r\n", 1, false},
        {"POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n", 1, false},
        {"GET http://h HTTP/1.1\r\n\r\n", 1, true},
        {"GET / HTTP/1.1\r\nno colon\r\n: no name\r\n\r\n", 1, true},
        {"GET /\r\n\r\n", WB_E_PROTO, false},
        {"GET x HTTP/1.1\r\n\r\n", WB_E_PROTO, false},
        {"GET  HTTP/1.1\r\n\r\n", WB_E_PROTO, false},
        {"\r\n\r\n", WB_E_PROTO, false},
        {"PRI * HTTP/2.0\r\n\r\n", WB_E_PROTO, false},
    };
    struct wb_asked asked;
    size_t used;

    (void)state;
    for (size_t i = 0; i < COUNT(cases); i++) {
        int found = wb_asked_parse(wb_slice_str(cases[i].text), &asked, &used);
        if (found != cases[i].found || (found == 1 && asked.keep_alive != cases[i].keep))
            fail_msg("%s", cases[i].text);
    }
    char *lines = malloc(WB_ASKED_BYTES_MAX + 2);
    memset(lines, 'x', WB_ASKED_BYTES_MAX + 2);
    assert_int_equal(wb_asked_parse(wb_slice(lines, WB_ASKED_BYTES_MAX), &asked, &used), 0);
    assert_int_equal(wb_asked_parse(wb_slice(lines, WB_ASKED_BYTES_MAX + 2), &asked, &used), WB_E_LIMIT);
    free(lines);
}

static void test_log(void **state)
{
    struct wb_asklog log;
    enum { N = 200000 };

    (void)state;
    wb_asklog_init(&log);
    for (uint32_t i = 0; i < N; i++) {
        char text[32];
        snprintf(text, sizeof text, "/%u", i);
        wb_asklog_add(&log,
                      (struct wb_asklog_entry){
                          .page = i, .site = i % 7, .since_ms = i, .flags = i % 10 == 0 ? WB_ASKLOG_OTHER : 0},
                      wb_slice_str(text));
    }
    assert_int_equal(log.count, N);
    for (uint32_t i = 0; i < N; i++) {
        const struct wb_asklog_entry *e = wb_asklog_get(&log, i);
        char text[32];
        snprintf(text, sizeof text, "/%u", i);
        assert_int_equal(e->site, i % 7);
        assert_int_equal(e->since_ms, i);
        if (i % 10 == 0)
            assert_true(wb_slice_equal(wb_asklog_target(&log, e), wb_slice_str(text)));
        else
            assert_int_equal(e->page, i);
    }
    wb_asklog_release(&log);
}

static void test_bomb_is_a_gigabyte(void **state)
{
    struct wb_buf bomb = WB_BUF_INIT;
    z_stream z = {0};
    static Bytef out[1 << 20];
    uint64_t total = 0;
    int rc = Z_OK;

    (void)state;
    assert_int_equal(wb_bomb_make(&bomb), 0);
    assert_true(bomb.len < 2 << 20);
    assert_int_equal(inflateInit2(&z, 31), Z_OK);
    z.next_in = (Bytef *)bomb.ptr;
    z.avail_in = (uInt)bomb.len;
    while (rc == Z_OK) {
        z.next_out = out;
        z.avail_out = sizeof out;
        rc = inflate(&z, Z_NO_FLUSH);
        total += sizeof out - z.avail_out;
    }
    assert_int_equal(rc, Z_STREAM_END); /* zlib has checked length and checksum */
    assert_int_equal(total, 1u << 30);
    inflateEnd(&z);
    wb_buf_release(&bomb);
}

/* ---- replies ------------------------------------------------------------------------ */

static int ask(struct wb_respond *r, const char *text, struct wb_buf *all_out)
{
    struct wb_reply reply = WB_REPLY_INIT;
    struct wb_asked asked;
    size_t used;
    int more = 1;

    wb_buf_clear(all_out);
    assert_int_equal(wb_asked_parse(wb_slice_str(text), &asked, &used), 1);
    int err = wb_respond(r, &asked, r->start_ns, &reply);
    if (err == 0)
        err = wb_buf_append_slice(all_out, wb_buf_slice(&reply.bytes));
    for (unsigned i = 0; err == 0 && reply.more && more == 1 && i < 1000; i++)
        err = more = reply.more(reply.context, all_out), err = err < 0 ? err : 0;
    wb_reply_release(&reply);
    return err < 0 ? err : wb_buf_terminate(all_out);
}

static void test_truth_is_json(void **state)
{
    struct wb_sim_options options = some_options(3, true);
    struct wb_respond r;
    struct wb_buf all = WB_BUF_INIT;
    json_error_t error;

    (void)state;
    assert_int_equal(wb_respond_init(&options, &r), 0);
    wb_world_set_place(&r.world, "127.0.0.1", 8080, 1000);
    assert_int_equal(ask(&r, "GET /x\"\\\xff HTTP/1.1\r\nHost: s2.localhost\r\n\r\n", &all), 0);
    assert_non_null(strstr(all.ptr, "404 Not Found"));
    assert_int_equal(ask(&r, "GET /_truth HTTP/1.0\r\n\r\n", &all), 0);
    json_t *truth = json_loads(strstr(all.ptr, "\r\n\r\n") + 4, 0, &error);
    if (!truth)
        fail_msg("%s at line %d, column %d", error.text, error.line, error.column);
    size_t pages = 0;
    for (uint32_t i = 0; i <= options.sites; i++)
        pages += r.world.site[i].pages;
    assert_int_equal(json_array_size(json_object_get(truth, "pages")), pages);
    json_t *requests = json_object_get(truth, "requests");
    assert_int_equal(json_array_size(requests), 1);
    assert_string_equal(json_string_value(json_object_get(json_array_get(requests, 0), "url")),
                        "http://s2.localhost:8080/x\"\\\xef\xbf\xbd");
    json_decref(truth);
    wb_buf_release(&all);
    wb_respond_release(&r);
}

/* Asks for every page of a hostile web; each one gets a reply. */
static void test_every_page_replies(void **state)
{
    struct wb_sim_options options = some_options(4, true);
    struct wb_respond r;
    struct wb_buf all = WB_BUF_INIT, text = WB_BUF_INIT;
    struct wb_world_moment now = {0, 0};
    struct wb_plan plan;

    (void)state;
    assert_int_equal(wb_respond_init(&options, &r), 0);
    wb_world_set_place(&r.world, "127.0.0.1", 8080, 1000);
    for (uint32_t site = 0; site <= options.sites; site++)
        for (uint32_t page = 0; page < r.world.site[site].pages; page++) {
            struct wb_pen pen = wb_pen(&text);
            char line[40];
            assert_true(wb_plan_make(&r.world, site, page, &plan));
            if (plan.kind == WB_KIND_ENDLESS || plan.kind == WB_KIND_ENDLESS_HEAD)
                continue;
            wb_buf_clear(&text);
            wb_pen_str(&pen, "GET ");
            wb_locate_path(&r.world, &plan, &pen);
            wb_pen_printf(&pen, " HTTP/1.1\r\nHost: s%u.localhost\r\nAccept-Encoding: gzip\r\n\r\n", site);
            assert_int_equal(wb_buf_terminate(&text), 0);
            assert_int_equal(ask(&r, text.ptr, &all), 0);
            int status = wb_plan_status(&r.world, &plan, &now);
            snprintf(line, sizeof line, "HTTP/1.1 %d ", status);
            if (status && strncmp(all.ptr, line, strlen(line)) != 0)
                fail_msg("%s (%s) answers %.20s", text.ptr, wb_plan_kind_word(plan.kind), all.ptr);
        }
    wb_buf_release(&all);
    wb_buf_release(&text);
    wb_respond_release(&r);
}

static int ask_some(struct wb_respond *r, struct wb_buf *all)
{
    static const char *const some[] = {"GET / HTTP/1.1\r\nHost: s1.localhost\r\nAccept-Encoding: gzip\r\n\r\n",
                                       "GET /robots.txt HTTP/1.1\r\nHost: s2.localhost\r\n\r\n",
                                       "GET / HTTP/1.1\r\n\r\n", "GET /nothing HTTP/1.1\r\nHost: s3.localhost\r\n\r\n",
                                       "GET /_truth?site=s1.localhost&since=5 HTTP/1.1\r\n\r\n"};
    int err = 0;

    for (size_t i = 0; err == 0 && i < COUNT(some); i++)
        err = ask(r, some[i], all);
    return err;
}

/* Each allocation fails once: either an error or the answer comes back, and nothing leaks (sanitizers check that). */
static void test_memory_runs_out(void **state)
{
    struct wb_sim_options options = some_options(4, true);
    bool struck = true;

    (void)state;
    options.pages = 100;
    for (uint64_t nth = 1; struck && nth < 2000; nth++) {
        struct wb_respond r;
        struct wb_buf all = WB_BUF_INIT;
        wb_fault_arm(WB_FAULT_ALLOC, nth, ENOMEM);
        int err = wb_respond_init(&options, &r);
        if (err == 0) {
            wb_world_set_place(&r.world, "127.0.0.1", 8080, 1000);
            err = ask_some(&r, &all);
            wb_respond_release(&r);
        }
        struck = wb_fault_struck();
        wb_fault_disarm();
        assert_true(err == 0 || (struck && err == WB_E_NOMEM));
        wb_buf_release(&all);
    }
    assert_false(struck);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_requests_are_read),
        cmocka_unit_test(test_odd_requests),
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_bomb_is_a_gigabyte),
        cmocka_unit_test(test_truth_is_json),
        cmocka_unit_test(test_every_page_replies),
        cmocka_unit_test(test_memory_runs_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
