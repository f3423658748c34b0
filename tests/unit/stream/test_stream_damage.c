/*
 * test_stream_damage.c - streams over a damaged catalog end. One bit of each page of the catalog is flipped, in every
 * organisation, and the repository is delivered in all ways. What comes is counted, not timed: a stream that finds the
 * same damage again and again would report it more often than there are pages.
 */
#include "versions_support.h"

#include "../unsynced.h"
#include "base/buf.h"
#include "os/path.h"
#include "stream/stream.h"

enum { PAGES = 30, GONE = 3, CAPTURES = 2 * PAGES, TREE_PAGE = 4096, FLIP_AT = 100 };

/* A way to deliver the repository: options of a stream and their values. */
struct way {
    const char *names[2], *values[2];
    bool wire;
};

static const struct way ways[] = {
    {.names = {"snapshot"}, .values = {"mine"}},
    {.names = {"snapshot"}, .values = {"mine"}, .wire = true},
    {.names = {"latest"}, .values = {"1"}},
    {.names = {"latest", "site"}, .values = {"1", "h.example"}},
    {.names = {"latest", "order"}, .values = {"1", "date"}},
    {.names = {"latest", "order"}, .values = {"1", "url"}},
    {.names = {"latest", "order"}, .values = {"1", "url"}, .wire = true},
    {.names = {"versions"}, .values = {"1"}},
};
enum { WAYS = sizeof ways / sizeof *ways };

static void put_day(struct wb_store *store, int day)
{
    struct wb_store_commit_counts counts = {0};
    char name[20], body[60];

    for (int i = 0; i < PAGES; i++) {
        snprintf(name, sizeof name, "page%d", i);
        snprintf(body, sizeof body, "<title>%d</title>day %d", i, day);
        struct wb_page page = page_on(name, day, body);
        assert_int_equal(wb_store_put(store, &page, NULL), 0);
    }
    assert_int_equal(wb_store_commit(store, &counts), 0);
}

/* Two versions of each page, the older ones in a snapshot; some pages are gone. */
static void build(const char *dir, const char *design)
{
    struct wb_store_options options = {.history = {.keep = WB_STORE_KEEP_ALL}};
    struct wb_store_holder person = {.kind = WB_STORE_HOLDER_PERSON};
    struct wb_store_snapshot snapshot = {0};
    struct wb_store *store = NULL;
    char name[20];

    assert_int_equal(wb_design_parse(wb_slice_str(design), &options.design), 0);
    assert_int_equal(wb_store_create(dir, &options), 0);
    assert_int_equal(wb_store_open(dir, WB_STORE_WRITE, &store), 0);
    put_day(store, 0);
    assert_int_equal(wb_store_seal(store, WB_SLICE_LIT("mine"), &person, &snapshot), 0);
    wb_store_snapshot_release(&snapshot);
    put_day(store, 1);
    for (int i = 0; i < GONE; i++) {
        snprintf(name, sizeof name, "page%d", i);
        remove_page(store, name, 2);
    }
    wb_store_close(store);
}

/* What a stream did. */
struct run {
    unsigned records, errors; /* of a wire: frames */
    bool whole;               /* it came to its end, and nothing was damaged */
};

/* Reads to the end, which must come before there are more records and errors than the repository can have. */
static void read_stream(struct wb_stream *stream, bool wire, struct run *run)
{
    struct wb_stream_record record;
    struct wb_stream_info info;
    struct wb_buf out = WB_BUF_INIT;
    int got = 1;

    while (got != 0) {
        wb_buf_clear(&out);
        got = wire ? wb_stream_next_wire(stream, &out) : wb_stream_next(stream, &record);
        run->records += got > 0;
        run->errors += got < 0;
        assert_true(got >= 0 || wb_error_message()[0]);
        if (got < 0 && got != WB_E_CORRUPT)
            break;
        assert_in_range(run->records, 0, CAPTURES + (wire ? CAPTURES : 0));
        assert_in_range(run->errors, 0, CAPTURES);
    }
    wb_stream_info(stream, &info);
    run->errors += (unsigned)info.damaged;
    run->whole = got == 0 && run->errors == 0;
    wb_buf_release(&out);
}

static struct run deliver(const char *dir, const struct way *way)
{
    struct wb_stream_spec spec = WB_STREAM_SPEC_INIT;
    struct wb_stream_home *home = NULL;
    struct wb_stream *stream = NULL;
    struct run run = {0};
    int err = 0;

    for (size_t i = 0; i < 2 && way->names[i]; i++)
        assert_int_equal(wb_stream_spec_set(&spec, way->names[i], wb_slice_str(way->values[i]), false), 0);
    err = wb_stream_home_open(dir, &home);
    if (err == 0)
        err = wb_stream_open(home, &spec, false, &stream);
    if (err == 0)
        read_stream(stream, way->wire, &run);
    run.errors += err < 0;
    wb_stream_close(stream);
    wb_stream_home_close(home);
    wb_stream_spec_release(&spec);
    return run;
}

static void damage_each_page(const char *design)
{
    static unsigned number;
    char name[20], path[300];
    struct wb_buf sound = WB_BUF_INIT;
    struct run whole[WAYS];
    unsigned noticed = 0;

    snprintf(name, sizeof name, "repo%u", number++);
    const char *dir = test_path(name);
    build(dir, design);
    snprintf(path, sizeof path, "%s/catalog.wbt", dir);
    assert_int_equal(wb_path_read(path, 64 << 20, &sound), 0);
    for (size_t i = 0; i < WAYS; i++) {
        whole[i] = deliver(dir, &ways[i]);
        assert_true(whole[i].whole && whole[i].records >= (ways[i].wire ? 1 : PAGES - GONE));
    }
    for (size_t at = FLIP_AT; at < sound.len; at += TREE_PAGE)
        for (size_t i = 0; i < WAYS; i++) { /* streams hold snapshots, which changes the catalog */
            sound.ptr[at] ^= 1;
            assert_int_equal(wb_path_replace(path, wb_buf_slice(&sound)), 0);
            sound.ptr[at] ^= 1;
            struct run run = deliver(dir, &ways[i]);
            noticed += run.errors > 0;
            assert_true(run.errors > 0 || (run.whole && run.records == whole[i].records));
        }
    assert_true(noticed > 0);
    wb_buf_release(&sound);
}

static void test_log(void **state)
{
    (void)state;
    damage_each_page("Incr[hash,log]");
}

static void test_hashed_log(void **state)
{
    (void)state;
    damage_each_page("Incr[hash,hashed-log]");
}

static void test_hash(void **state)
{
    (void)state;
    damage_each_page("Incr[hash,hash]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_log),
        cmocka_unit_test(test_hashed_log),
        cmocka_unit_test(test_hash),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
