/*
 * test_wirefeed.c - a stream that goes over the wire is the same as one that does not: the same records in the same
 * order with the same tokens, from the beginning and after every token; alone, and beside others that share its scan.
 */
#include "../store/store_support.h"
#include "os/clock.h"
#include "stream/wire.h"

#include <pthread.h>

enum { SITES = 4, NUMBERS = 40, TOKEN_MAX = 600, RECORDS_MAX = 2 * SITES * NUMBERS };

static char dir[DIR_MAX];

/* What arrived. */
struct arrived {
    struct wb_pageid id;
    uint64_t hash, position;
    int64_t original_ms;
    bool revisit;
    char token[TOKEN_MAX];
};

struct arrivals {
    struct arrived *list;
    size_t count;
};

static void make_store(void)
{
    test_dir(dir);
    create_store_as(dir, (struct wb_store_history){WB_STORE_KEEP_ALL, 0});
    use_small_sizes(256 << 10);
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    for (int round = 0; round < 2; round++) {
        for (uint32_t number = 0; number < NUMBERS; number++)
            for (uint32_t site = 0; site < SITES; site++) {
                struct spec spec = {.site = site, .number = number, .time_ms = 1000 + round, .size = 300 + 20 * number};
                spec.content = number % 3 == 0 ? 7 : 0; /* seen again unchanged: a revisit */
                if (round == 0 || (number + site) % 5 == 0)
                    must_ok(put_spec(store, &spec));
            }
        commit_store(store);
    }
    wb_store_close(store);
}

static void arrive(struct arrivals *a, const struct wb_stream_record *record)
{
    if (!a->list)
        a->list = malloc(RECORDS_MAX * sizeof *a->list);
    must(a->list && a->count < RECORDS_MAX && record->token.len < TOKEN_MAX);
    struct arrived *one = &a->list[a->count++];
    *one = (struct arrived){record->page.id,  page_hash(&record->page, WITHOUT_EPOCH),
                            record->position, record->original_ms,
                            record->revisit,  {0}};
    memcpy(one->token, record->token.ptr, record->token.len);
}

static struct wb_stream *open_stream(struct wb_stream_home *home, const char *const *params, const char *token,
                                     bool share)
{
    struct wb_stream_spec spec = WB_STREAM_SPEC_INIT;
    struct wb_stream *stream;

    for (size_t i = 0; params[i]; i += 2)
        must_ok(wb_stream_spec_set(&spec, params[i], wb_slice_str(params[i + 1]), false));
    if (token)
        must_ok(wb_stream_spec_set(&spec, "resume", wb_slice_str(token), false));
    must_ok(wb_stream_open(home, &spec, share, &stream));
    wb_stream_spec_release(&spec);
    return stream;
}

/* What a pen writes does not depend on whether others have written the same page. Ids of archive records are random. */
static void check_rendering(struct wb_stream_pen *pens[2], const struct wb_stream_record *record, bool exact)
{
    struct wb_stream_record alone = *record;
    struct wb_buf texts[2] = {WB_BUF_INIT, WB_BUF_INIT};

    alone.memo = NULL;
    must_ok(wb_stream_pen_write(pens[0], record, &texts[0]));
    must_ok(wb_stream_pen_write(pens[1], &alone, &texts[1]));
    must(texts[0].len == texts[1].len);
    must(!exact || memcmp(texts[0].ptr, texts[1].ptr, texts[0].len) == 0);
    wb_buf_release(&texts[0]);
    wb_buf_release(&texts[1]);
}

static void read_plain(struct wb_stream *stream, struct arrivals *a)
{
    static const enum wb_stream_format formats[] = {WB_STREAM_JSONL, WB_STREAM_TEXT};
    struct wb_stream_pen *pens[COUNT(formats)][2];
    struct wb_stream_record record;
    int got;

    for (size_t i = 0; i < COUNT(formats); i++)
        for (size_t j = 0; j < 2; j++)
            must_ok(wb_stream_pen_new(formats[i], true, &pens[i][j]));
    while ((got = wb_stream_next(stream, &record)) > 0) {
        arrive(a, &record);
        for (size_t i = 0; i < COUNT(formats); i++)
            check_rendering(pens[i], &record, formats[i] == WB_STREAM_JSONL);
    }
    must_ok(got);
    wb_stream_close(stream);
    for (size_t i = 0; i < COUNT(formats); i++)
        for (size_t j = 0; j < 2; j++)
            wb_stream_pen_free(pens[i][j]);
}

static void read_wire(struct wb_stream *stream, struct arrivals *a)
{
    struct wb_wire_reader *reader;
    struct wb_buf bytes = WB_BUF_INIT;
    struct wb_stream_record record;
    int more, got = 0;

    must_ok(wb_wire_reader_new(&reader));
    while ((more = wb_stream_next_wire(stream, &bytes)) > 0) {
        must_ok(wb_wire_reader_feed(reader, wb_buf_slice(&bytes)));
        wb_buf_clear(&bytes);
        while ((got = wb_wire_reader_next(reader, &record)) == WB_WIRE_RECORD)
            arrive(a, &record);
        must_ok(got);
    }
    must_ok(more);
    assert_int_equal(got, WB_WIRE_END);
    wb_stream_close(stream);
    wb_wire_reader_free(reader);
    wb_buf_release(&bytes);
}

static void compare(const struct arrivals *wire, const struct arrived *plain, size_t count)
{
    assert_int_equal(wire->count, count);
    for (size_t i = 0; i < count; i++) {
        const struct arrived *x = &wire->list[i], *y = &plain[i];
        assert_true(wb_pageid_equal(x->id, y->id));
        assert_true(x->hash == y->hash && x->revisit == y->revisit);
        assert_true(!x->revisit || x->original_ms == y->original_ms);
        assert_true(x->position == y->position);
        assert_string_equal(x->token, y->token);
    }
}

/* The holder differs between two streams, so both begin with a token of the same one. */
static void compare_streams(struct wb_stream_home *home, const char *const *params, size_t least)
{
    struct arrivals plain = {0}, wire = {0};
    struct wb_buf first = WB_BUF_INIT;
    struct wb_stream *stream = open_stream(home, params, NULL, false);

    must_ok(wb_stream_token(stream, &first));
    must_ok(wb_buf_terminate(&first));
    read_plain(stream, &plain);
    assert_true(plain.count >= least);
    read_wire(open_stream(home, params, first.ptr, false), &wire);
    compare(&wire, plain.list, plain.count);
    for (size_t i = 0; i < plain.count; i += 7) {
        wire.count = 0;
        read_wire(open_stream(home, params, wire.list[i].token, false), &wire);
        compare(&wire, plain.list + i + 1, plain.count - i - 1);
        wire.count = 0;
        read_wire(open_stream(home, params, first.ptr, false), &wire);
    }
    free(plain.list);
    free(wire.list);
    wb_buf_release(&first);
}

static void test_same(void **state)
{
    static const char *const everything[] = {"latest", "1", NULL};
    static const char *const one_site[] = {"latest", "1", "site", "site1.example", NULL};
    static const char *const two_sites[] = {"latest", "1", "site", "site1.example", "site", "site3.example", NULL};
    static const char *const part[] = {"latest", "1", "partition", "2/3", NULL};
    static const char *const few[] = {"latest", "1", "partition", "5/9", NULL};
    static const char *const limited[] = {"latest", "1", "limit", "33", NULL};
    static const char *const by_url[] = {"latest", "1", "order", "url", NULL};
    static const char *const versions[] = {"latest", "1", "versions", "1", NULL};
    static const struct {
        const char *const *params;
        size_t least;
    } cases[] = {{everything, SITES * NUMBERS},
                 {one_site, NUMBERS},
                 {two_sites, 2 * NUMBERS},
                 {part, NUMBERS / 2},
                 {few, 5},
                 {limited, 33},
                 {by_url, SITES * NUMBERS},
                 {versions, SITES * NUMBERS + 10}};
    struct wb_stream_home *home;

    (void)state;
    make_store();
    must_ok(wb_stream_home_open(dir, &home));
    for (size_t i = 0; i < COUNT(cases); i++)
        compare_streams(home, cases[i].params, cases[i].least);
    wb_stream_home_close(home);
}

/* ---- beside others ------------------------------------------------------------------------------------- */

struct reading {
    struct wb_stream_home *home;
    bool wire;
    char token[TOKEN_MAX];
    struct arrivals arrivals;
};

static void *run_reading(void *context)
{
    static const char *const nothing[] = {NULL};
    struct reading *r = context;
    struct wb_stream *stream = open_stream(r->home, nothing, r->token, true);

    (r->wire ? read_wire : read_plain)(stream, &r->arrivals);
    return NULL;
}

static int compare_arrived(const void *a, const void *b)
{
    return wb_pageid_compare(((const struct arrived *)a)->id, ((const struct arrived *)b)->id);
}

static void test_shared(void **state)
{
    static const char *const everything[] = {"latest", "1", NULL};
    struct reading readings[8] = {0};
    pthread_t threads[COUNT(readings)];
    struct wb_stream_home *home;
    struct wb_buf token = WB_BUF_INIT;

    (void)state;
    make_store();
    must_ok(wb_stream_home_open(dir, &home));
    struct wb_stream *first = open_stream(home, everything, NULL, true);
    must_ok(wb_stream_token(first, &token));
    for (int round = 0; round < 10; round++) {
        for (size_t i = 0; i < COUNT(readings); i++) {
            readings[i] = (struct reading){.home = home, .wire = i % 2};
            memcpy(readings[i].token, token.ptr, token.len);
            must(pthread_create(&threads[i], NULL, run_reading, &readings[i]) == 0);
        }
        for (size_t i = 0; i < COUNT(readings); i++)
            must(pthread_join(threads[i], NULL) == 0);
        for (size_t i = 0; i < COUNT(readings); i++) {
            struct arrivals *a = &readings[i].arrivals;
            assert_int_equal(a->count, SITES * NUMBERS);
            qsort(a->list, a->count, sizeof *a->list, compare_arrived);
            for (size_t j = 0; j < a->count; j++) {
                assert_true(j == 0 || compare_arrived(&a->list[j - 1], &a->list[j]) < 0); /* each once */
                assert_true(a->list[j].hash == readings[0].arrivals.list[j].hash);
            }
        }
        for (size_t i = 0; i < COUNT(readings); i++)
            free(readings[i].arrivals.list);
    }
    wb_stream_close(first);
    wb_stream_home_close(home);
    wb_buf_release(&token);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same), cmocka_unit_test(test_shared)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
