/*
 * test_stream_model.c - each page exactly once, whatever happens meanwhile.
 *
 * A repository of any design changes at random: pages are put, seen again, removed, transferred, everything is
 * compacted, and nodes are added and removed. Segments and buckets are small, so that they overflow. Streams of all
 * orders and parts are opened, closed after any record, as if their process had died, and resumed with the last token.
 * What they deliver together is compared with what a naive copy of the repository had when the stream began.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "../seeded.h"
#include "../store/store_support.h"
#include "../testroot.h"
#include "base/date.h"
#include "base/error.h"
#include "move/move.h"
#include "stream/stream.h"

#define START_MS INT64_C(1767225600000) /* 2026-01-01 */
#define PAGES 60
#define CAPTURES_MAX 400

struct model_page {
    bool there;
    int version;     /* its body says so */
    int64_t time_ms; /* of the newest capture */
};

/* The naive copy. */
struct model {
    const char *dir;
    struct wb_design design;
    unsigned nodes, next_node;
    uint64_t chance;
    int64_t now_ms;
    struct model_page pages[PAGES];
    int64_t captures[PAGES][CAPTURES_MAX]; /* of all versions, if all are kept */
    size_t capture_counts[PAGES];
};

static struct wb_slice url_of(int number, char text[64])
{
    static const char *const hosts[] = {"a.example", "b.example", "www.a.example", "c.test:8080"};

    snprintf(text, 64, "http://%s/%d/page", hosts[number % 4], number);
    return wb_slice_str(text);
}

static struct wb_page page_of(int number, char url[64], const char *body)
{
    struct wb_page page = {.url = url_of(number, url),
                           .type = WB_SLICE_LIT("text/plain"),
                           .charset = WB_SLICE_EMPTY,
                           .head = WB_SLICE_EMPTY,
                           .kind = WB_PAGE_RESOURCE,
                           .status = 200};

    page.key = wb_slice(url + 7, page.url.len - 7);
    page.id = wb_pageid_of_key(page.key);
    page.body = wb_slice_str(body);
    page.body_bytes = page.body.len;
    return page;
}

/* ---- changes ------------------------------------------------------------------------------------- */

static void put_page(struct model *m, struct wb_store *store, int number, bool again)
{
    char url[64], body[2000];
    struct model_page *known = &m->pages[number];

    known->version += !again || !known->there;
    snprintf(body, sizeof body, "page %d version %d ", number, known->version);
    size_t len = strlen(body), more = (size_t)(number * 30);
    memset(body + len, 'x', more);
    body[len + more] = '\0';
    struct wb_page page = page_of(number, url, body);
    known->there = true;
    known->time_ms = page.time_ms = m->now_ms += 1 + (int64_t)chance_below(&m->chance, 1000);
    assert_true(m->capture_counts[number] < CAPTURES_MAX);
    m->captures[number][m->capture_counts[number]++] = page.time_ms;
    assert_int_equal(wb_store_put(store, &page, NULL), 0);
}

static void change_page(struct model *m, struct wb_store *store, int number)
{
    char url[64];

    if (m->pages[number].there && chance_one_in(&m->chance, 6)) {
        struct wb_page page = page_of(number, url, "");
        m->now_ms++;
        assert_int_equal(wb_store_remove(store, page.id, wb_key_site(page.key), m->now_ms, false), 0);
        m->pages[number].there = false;
    } else {
        put_page(m, store, number, chance_one_in(&m->chance, 3));
    }
}

/* Adds a node, or removes one. */
static void change_nodes(struct model *m, struct wb_store *store)
{
    char name[80];
    uint32_t number;

    if (m->nodes < 4 && (m->nodes == 1 || chance_one_in(&m->chance, 2))) {
        snprintf(name, sizeof name, "%s-disk%u", m->dir, m->next_node++);
        assert_int_equal(wb_move_node_add(store, name, false, NULL, NULL, &number), 0);
        m->nodes++;
        return;
    }
    do /* numbers of nodes that are gone are not known any more */
        number = 1 + (uint32_t)chance_below(&m->chance, m->next_node + 4);
    while (wb_move_node_remove(store, number, NULL, NULL) != 0);
    m->nodes--;
}

/* A few commits, and now and then a compaction, or a change of nodes. What waits is transferred. */
static void change(struct model *m)
{
    struct wb_store_commit_counts counts = {0};
    struct wb_move_compact_counts compacted;
    struct wb_move_transfer_counts transferred;
    struct wb_store *store = NULL;

    assert_int_equal(wb_store_open(m->dir, WB_STORE_WRITE, &store), 0);
    for (uint64_t commits = chance_below(&m->chance, 4); commits > 0; commits--) {
        bool changed[PAGES] = {false};
        for (uint64_t i = chance_below(&m->chance, 12); i > 0; i--) {
            int number = (int)chance_below(&m->chance, PAGES);
            if (!changed[number])
                change_page(m, store, number);
            changed[number] = true; /* a commit decides about a page once */
        }
        assert_int_equal(wb_store_commit(store, &counts), 0);
    }
    if (chance_one_in(&m->chance, 3))
        assert_int_equal(wb_move_compact(store, NULL, NULL, NULL, NULL, &compacted), 0);
    if (m->nodes && chance_one_in(&m->chance, 6))
        change_nodes(m, store);
    if (m->design.batch)
        assert_int_equal(wb_move_transfer(store, NULL, NULL, NULL, NULL, &transferred), 0);
    wb_store_close(store);
}

/* ---- what a stream should deliver ---------------------------------------------------------------- */

struct expected {
    struct model_page pages[PAGES];
    bool delivered[PAGES];
    size_t captures[PAGES], seen[PAGES]; /* with versions */
    struct wb_pageid ids[PAGES];
};

static void expect_state(const struct model *m, struct expected *e)
{
    char url[64];

    *e = (struct expected){.delivered = {false}};
    memcpy(e->pages, m->pages, sizeof e->pages);
    memcpy(e->captures, m->capture_counts, sizeof e->captures);
    for (int i = 0; i < PAGES; i++)
        e->ids[i] = page_of(i, url, "").id;
}

static int number_of(const struct expected *e, struct wb_pageid id)
{
    for (int i = 0; i < PAGES; i++)
        if (wb_pageid_equal(e->ids[i], id))
            return i;
    fail_msg("a page that nobody put");
    return -1;
}

static void take_page(struct expected *e, const struct wb_stream_record *record)
{
    int number = number_of(e, record->page.id);
    char want[40];

    snprintf(want, sizeof want, "page %d version %d ", number, e->pages[number].version);
    if (!e->pages[number].there || e->delivered[number])
        fail_msg("page %d %s", number, e->delivered[number] ? "comes twice" : "was not there");
    assert_true(wb_slice_starts(record->page.body, wb_slice_str(want)));
    /* A version has the time of its newest capture, and may be seen again after the stream began. */
    assert_true(record->page.time_ms >= e->pages[number].time_ms);
    e->delivered[number] = true;
}

/* All captures that were there come in order. Later ones of the same versions may follow, each once. */
static void take_capture(const struct model *m, struct expected *e, const struct wb_stream_record *record)
{
    int number = number_of(e, record->page.id);
    size_t at = e->seen[number];

    while (at < m->capture_counts[number] && m->captures[number][at] != record->page.time_ms)
        at++;
    if (at == m->capture_counts[number] || (at > e->seen[number] && e->seen[number] < e->captures[number]))
        fail_msg("page %d: a capture comes twice, too early, or was never put", number);
    e->seen[number] = at + 1;
}

static void assert_complete(const struct expected *e, bool versions, uint32_t part, uint32_t parts)
{
    for (int i = 0; i < PAGES; i++) {
        bool ours = parts == 0 || e->ids[i].lo % parts == part - 1;
        bool wrong = ours ? e->seen[i] < e->captures[i] : e->seen[i] > 0;
        if (!versions)
            wrong = e->delivered[i] != (ours && e->pages[i].there);
        if (wrong)
            fail_msg("page %d is missing, or should not be there", i);
    }
}

/* ---- streams ------------------------------------------------------------------------------------- */

static const char *const orders[] = {"stored", "url", "date", "modified", "-stored", "-url", "-date", "-modified"};

/* Whether a record may follow another one. */
static void assert_order(const char *order, const struct wb_stream_record *record, int64_t time_ms,
                         struct wb_buf *last_surt, int64_t *last_ms)
{
    struct wb_buf surt = WB_BUF_INIT;
    bool backwards = order[0] == '-';
    const char *name = order + backwards;

    assert_int_equal(wb_surt_of_key(record->page.key, &surt), 0);
    if (strcmp(name, "url") == 0 && last_surt->len) {
        int way = wb_slice_compare(wb_buf_slice(last_surt), wb_buf_slice(&surt));
        assert_true(backwards ? way > 0 : way < 0);
    }
    if (strcmp(name, "date") == 0 && *last_ms)
        assert_true(backwards ? *last_ms >= time_ms : *last_ms <= time_ms);
    *last_ms = time_ms;
    wb_buf_release(last_surt);
    *last_surt = surt;
}

/* A stream that is killed and resumed again and again, while the repository changes. */
static void run_stream(struct model *m, bool versions)
{
    struct wb_buf token = WB_BUF_INIT, last_surt = WB_BUF_INIT;
    struct wb_stream_home *home = NULL;
    struct expected e;
    const char *order = orders[chance_below(&m->chance, sizeof orders / sizeof *orders)];
    uint32_t parts = chance_one_in(&m->chance, 2) ? 0 : 1 + (uint32_t)chance_below(&m->chance, 4);
    uint32_t part = parts ? 1 + (uint32_t)chance_below(&m->chance, parts) : 0;
    uint64_t position = 0;
    int64_t last_ms = 0;
    int got = 1;

    expect_state(m, &e);
    while (got == 1) {
        struct wb_stream_spec spec = WB_STREAM_SPEC_INIT;
        struct wb_stream *stream = NULL;
        struct wb_stream_record record;
        if (token.len == 0) {
            assert_int_equal(wb_stream_spec_set(&spec, "latest", WB_SLICE_LIT("1"), false), 0);
            assert_int_equal(wb_stream_spec_set(&spec, "order", wb_slice_str(order), false), 0);
            assert_int_equal(
                wb_stream_spec_set(&spec, "versions", versions ? WB_SLICE_LIT("1") : WB_SLICE_LIT("0"), false), 0);
            spec.part = part;
            spec.parts = parts;
        }
        spec.resume = wb_buf_slice(&token);
        assert_int_equal(wb_stream_home_open(m->dir, &home), 0);
        assert_int_equal(wb_stream_open(home, &spec, false, &stream), 0);
        if (token.len == 0 && chance_one_in(&m->chance, 2))
            assert_int_equal(wb_stream_token(stream, &token), 0); /* of the beginning */
        for (uint64_t left = chance_below(&m->chance, versions ? 300 : 40); left > 0; left--) {
            got = wb_stream_next(stream, &record);
            if (got != 1)
                break;
            assert_true(record.position == position++);
            if (versions)
                take_capture(m, &e, &record);
            else
                take_page(&e, &record);
            if (!versions)
                assert_order(order, &record, e.pages[number_of(&e, record.page.id)].time_ms, &last_surt, &last_ms);
            wb_buf_clear(&token);
            assert_int_equal(wb_buf_append_slice(&token, record.token), 0);
        }
        assert_true(got >= 0);
        if (token.len == 0)
            assert_int_equal(wb_stream_token(stream, &token), 0);
        wb_stream_close(stream);
        wb_stream_home_close(home);
        spec.resume = WB_SLICE_EMPTY;
        wb_stream_spec_release(&spec);
        change(m);
    }
    assert_complete(&e, versions, part, parts);
    wb_buf_release(&token);
    wb_buf_release(&last_surt);
}

/* design: with a number of nodes before it, which then come and go. */
static void run_model(uint64_t seed, const char *design, enum wb_store_keep keep, bool versions)
{
    struct model *m = calloc(1, sizeof *m);
    struct wb_store_options options = {.history = {.keep = keep}};
    char name[80];

    *m = (struct model){.chance = seed, .now_ms = START_MS, .nodes = (unsigned)(design[0] - '0')};
    assert_int_equal(wb_design_parse(wb_slice_str(design + 1), &m->design), 0);
    options.design = m->design;
    options.nodes.count = m->nodes;
    snprintf(name, sizeof name, "%s-%d-%d", design, keep, versions);
    m->dir = test_path(name);
    print_message("# %s\n", design);
    assert_int_equal(wb_store_create(m->dir, &options), 0);
    for (int i = 0; i < 8; i++)
        change(m);
    for (int i = 0; i < (versions ? 6 : 15); i++)
        run_stream(m, versions);
    free(m);
}

/* The designs; 0: one node, and no change of nodes. */
static const char *const designs[] = {
    "0Incr[hash,log]",
    "2Incr[hash,log]",
    "2Incr[hash,hash]",
    "1Incr[hash,hashed-log]",
    "2Incr[uniform,log]",
    "1Incr[uniform,hash]",
    "2Incr[uniform,hashed-log]",
    "0Batch[U(hash,log),R(hash,log)]",
    "0Batch[U(hash,hashed-log),R(hash,hash)]",
};

static void test_each_page_once(void **state)
{
    uint64_t seed = test_seed();

    (void)state;
    for (size_t i = 0; i < COUNT(designs); i++) {
        run_model(seed + 2 * i, designs[i], WB_STORE_KEEP_NEWEST, false);
        if (i < 3)
            run_model(seed + 2 * i + 1, designs[i], WB_STORE_KEEP_ALL, false);
    }
}

static void test_each_capture_once(void **state)
{
    uint64_t seed = test_seed();

    (void)state;
    for (size_t i = 0; i < COUNT(designs); i++)
        run_model(seed + i, designs[i], WB_STORE_KEEP_ALL, true);
}

/* There are thousands of commits, each of which syncs several files. */
static int make_quick_root(void **state)
{
    (void)state;
    snprintf(test_root, sizeof test_root, "%s/webbase-test-XXXXXX",
             access("/dev/shm", W_OK | X_OK) == 0 ? "/dev/shm" : "/tmp");
    return mkdtemp(test_root) ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_each_page_once),
        cmocka_unit_test(test_each_capture_once),
    };

    use_small_sizes(32 << 10);
    return cmocka_run_group_tests(tests, make_quick_root, remove_root);
}
