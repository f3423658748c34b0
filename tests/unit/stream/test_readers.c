/*
 * test_readers.c - what streams of readers leave behind: a few holds that they share, and a few names, of which the
 * idle ones give way; nothing of strangers; and what is an owner's stays the owner's.
 */
#include "../otherformat.h"
#include "../store/store_support.h"
#include "stream/stream_own.h"

#include <pthread.h>

enum { PAGES = 40, THREADS = 8 };

static char dir[DIR_MAX];

static void put_pages(struct wb_store *store, uint32_t first, uint32_t count)
{
    for (uint32_t number = first; number < first + count; number++) {
        struct spec spec = {.number = number, .time_ms = 1000, .size = 100};
        must_ok(put_spec(store, &spec));
    }
    commit_store(store);
}

static struct wb_stream_home *make_home(void)
{
    struct wb_stream_home *home;

    test_dir(dir);
    create_store(dir);
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    put_pages(store, 0, PAGES);
    wb_store_close(store);
    must_ok(wb_stream_home_open(dir, &home));
    return home;
}

static int open_as(struct wb_stream_home *home, enum wb_stream_who who, const char *param, const char *value,
                   struct wb_stream **stream_out)
{
    struct wb_stream_spec spec = WB_STREAM_SPEC_INIT;

    spec.who = who;
    must_ok(wb_stream_spec_set(&spec, param, wb_slice_str(value), false));
    int err = wb_stream_open(home, &spec, false, stream_out);
    wb_stream_spec_release(&spec);
    return err;
}

static int open_and_close(struct wb_stream_home *home, enum wb_stream_who who, const char *param, const char *value)
{
    struct wb_stream *stream;
    int err = open_as(home, who, param, value, &stream);

    wb_stream_close(stream);
    return err;
}

static int count_holds(void *context, const struct wb_store_snapshot *snapshot)
{
    size_t *counts = context;

    for (size_t i = 0; i < snapshot->holder_count; i++)
        counts[strcmp(snapshot->holders[i].name, "readers") == 0 ? 0 : 1]++;
    return 0;
}

/* Holds of readers, and of others. */
static void check_holds(size_t readers, size_t others)
{
    struct wb_store *store = open_store(dir, WB_STORE_READ);
    size_t counts[2] = {0, 0};

    must_ok(wb_store_snapshot_each(store, count_holds, counts));
    wb_store_close(store);
    assert_int_equal(counts[0], readers);
    assert_int_equal(counts[1], others);
}

static int count_name(void *context, const struct wb_stream_named *named)
{
    (void)named;
    ++*(size_t *)context;
    return 0;
}

static size_t name_count(struct wb_stream_home *home)
{
    size_t count = 0;

    must_ok(wb_stream_named_each(home, count_name, &count));
    return count;
}

/* ---- holds ---------------------------------------------------------------------------------------------- */

static void test_holds(void **state)
{
    struct wb_stream_home *home = make_home();
    struct wb_stream *streams[WB_STREAM_READER_HOLDS], *more;

    (void)state;
    must_ok(open_and_close(home, WB_STREAM_STRANGER, "order", "url"));
    check_holds(0, 0);
    for (size_t i = 0; i < WB_STREAM_READER_HOLDS; i++)
        must_ok(open_as(home, WB_STREAM_READER, "latest", "1", &streams[i]));
    check_holds(WB_STREAM_READER_HOLDS, 0);
    /* All are in use. */
    assert_int_equal(open_as(home, WB_STREAM_READER, "latest", "1", &more), WB_E_CROWDED);
    must_ok(open_and_close(home, WB_STREAM_READER, "snapshot", "3")); /* this one is held already */
    must_ok(open_and_close(home, WB_STREAM_OWNER, "latest", "1"));
    check_holds(WB_STREAM_READER_HOLDS, 1);
    /* The one that ends gives way. */
    uint32_t gone = streams[2]->ticket.snapshot;
    wb_stream_close(streams[2]);
    must_ok(open_as(home, WB_STREAM_READER, "latest", "1", &streams[2]));
    check_holds(WB_STREAM_READER_HOLDS, 1);
    assert_int_equal(gone, 3);
    assert_int_equal(open_and_close(home, WB_STREAM_READER, "snapshot", "3"), WB_E_NOTFOUND);
    for (size_t i = 0; i < WB_STREAM_READER_HOLDS; i++)
        wb_stream_close(streams[i]);
    wb_stream_home_close(home);

    /* Another process takes them over. */
    must_ok(wb_stream_home_open(dir, &home));
    for (size_t i = 0; i < 2 * WB_STREAM_READER_HOLDS; i++)
        must_ok(open_and_close(home, WB_STREAM_READER, "latest", "1"));
    check_holds(WB_STREAM_READER_HOLDS, 1);
    wb_stream_home_close(home);
}

static void *open_many(void *home)
{
    for (int i = 0; i < 20; i++) {
        int err = open_and_close(home, WB_STREAM_READER, i % 4 ? "order" : "latest", i % 4 ? "url" : "1");
        must(err == 0 || err == WB_E_CROWDED);
    }
    return NULL;
}

static void test_threads(void **state)
{
    struct wb_stream_home *home = make_home();
    pthread_t threads[THREADS];

    (void)state;
    for (size_t i = 0; i < THREADS; i++)
        must(pthread_create(&threads[i], NULL, open_many, home) == 0);
    for (size_t i = 0; i < THREADS; i++)
        must(pthread_join(threads[i], NULL) == 0);
    check_holds(WB_STREAM_READER_HOLDS, 0);
    for (size_t i = 0; i < home->readers.hold_count; i++)
        assert_int_equal(home->readers.holds[i].streams, 0);
    wb_stream_home_close(home);
}

/* A token of a reader works again after a restart; the owner who resumes with it gets a hold of its own. */
static void test_resume(void **state)
{
    struct wb_stream_home *home = make_home();
    struct wb_buf token = WB_BUF_INIT;
    struct wb_stream_record record;
    struct wb_stream *stream;

    (void)state;
    must_ok(open_as(home, WB_STREAM_READER, "latest", "1", &stream));
    for (size_t i = 0; i < PAGES / 2; i++)
        assert_int_equal(wb_stream_next(stream, &record), 1);
    must_ok(wb_buf_append_slice(&token, record.token));
    must_ok(wb_buf_terminate(&token));
    wb_stream_close(stream);
    wb_stream_home_close(home);
    must_ok(wb_stream_home_open(dir, &home));
    for (int who = WB_STREAM_OWNER; who <= WB_STREAM_STRANGER; who++) {
        size_t count = 0;
        must_ok(open_as(home, (enum wb_stream_who)who, "resume", token.ptr, &stream));
        for (; wb_stream_next(stream, &record) == 1; count++)
            must_ok(0);
        assert_int_equal(count, PAGES / 2);
        wb_stream_close(stream);
        check_holds(1, 1);
    }
    wb_buf_release(&token);
    wb_stream_home_close(home);
}

/* ---- names ---------------------------------------------------------------------------------------------- */

static void test_names(void **state)
{
    struct wb_stream_home *home = make_home();
    struct wb_stream *busy;
    char name[16];

    (void)state;
    must_ok(open_and_close(home, WB_STREAM_OWNER, "name", "own"));
    must_ok(open_as(home, WB_STREAM_READER, "name", "busy", &busy));
    for (int i = 1; i < WB_STREAM_READER_NAMES; i++) {
        snprintf(name, sizeof name, "n%d", i);
        must_ok(open_and_close(home, WB_STREAM_READER, "name", name));
    }
    assert_int_equal(open_and_close(home, WB_STREAM_READER, "name", "more"), WB_E_CROWDED);
    must_ok(open_and_close(home, WB_STREAM_READER, "name", "n7")); /* it is there */
    must_ok(open_and_close(home, WB_STREAM_OWNER, "name", "another"));
    assert_int_equal(open_and_close(home, WB_STREAM_READER, "name", "own"), WB_E_DENIED);
    assert_int_equal(name_count(home), WB_STREAM_READER_NAMES + 2);
    /* Idle ones give way, but neither those in use nor an owner's. */
    home->readers.idle_ms = -1000000;
    for (int i = 0; i < 3 * WB_STREAM_READER_NAMES; i++) {
        snprintf(name, sizeof name, "later%d", i);
        must_ok(open_and_close(home, WB_STREAM_READER, "name", name));
    }
    assert_int_equal(name_count(home), WB_STREAM_READER_NAMES + 2);
    assert_int_equal(open_and_close(home, WB_STREAM_READER, "name", "own"), WB_E_DENIED);
    assert_int_equal(open_and_close(home, WB_STREAM_READER, "name", "busy"), WB_E_BUSY);
    wb_stream_close(busy);
    must_ok(open_and_close(home, WB_STREAM_READER, "name", "busy"));
    assert_int_equal(home->readers.names_opening, 0);
    /* What an owner takes over is the owner's. */
    must_ok(open_and_close(home, WB_STREAM_OWNER, "name", "busy"));
    assert_int_equal(open_and_close(home, WB_STREAM_READER, "name", "busy"), WB_E_DENIED);
    /* All are in use: nothing gives way. */
    struct wb_stream *streams[WB_STREAM_READER_NAMES];
    for (int i = 0; i < WB_STREAM_READER_NAMES; i++) {
        snprintf(name, sizeof name, "used%d", i);
        must_ok(open_as(home, WB_STREAM_READER, "name", name, &streams[i]));
    }
    assert_int_equal(open_and_close(home, WB_STREAM_READER, "name", "more"), WB_E_CROWDED);
    for (int i = 0; i < WB_STREAM_READER_NAMES; i++)
        wb_stream_close(streams[i]);
    wb_stream_home_close(home);
}

static void note_other_format(void *context, bool problem, const char *file, uint64_t offset, const char *message)
{
    (void)offset;
    assert_true(problem);
    assert_string_equal(file, "streams/names/old.stream");
    assert_non_null(strstr(message, "has format 2; this program reads format 1"));
    ++*(unsigned *)context;
}

/* The file of a name has another format: it is refused and stays, and other names are not affected. */
static void test_another_format(void **state)
{
    struct wb_stream_home *home = make_home();
    unsigned told = 0;
    char path[DIR_MAX];

    (void)state;
    must_ok(open_and_close(home, WB_STREAM_OWNER, "name", "old"));
    must_ok(open_and_close(home, WB_STREAM_OWNER, "name", "other"));
    path_in(dir, "streams/names/old.stream", path);
    for (uint64_t sector = 0; sector < 32; sector++)
        put_format(path, sector * 512, 7, '2', 504);
    assert_refused_format(open_and_close(home, WB_STREAM_OWNER, "name", "old"), path, 2);
    assert_refused_format(wb_stream_named_drop(home, WB_SLICE_LIT("old")), path, 2);
    assert_int_equal(name_count(home), 2);
    must_ok(open_and_close(home, WB_STREAM_OWNER, "name", "other"));
    must_ok(wb_stream_verify(dir, note_other_format, &told));
    assert_int_equal(told, 1);
    for (uint64_t sector = 0; sector < 32; sector++)
        put_format(path, sector * 512, 7, '1', 504);
    must_ok(open_and_close(home, WB_STREAM_OWNER, "name", "old"));
    wb_stream_home_close(home);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_holds), cmocka_unit_test(test_threads),        cmocka_unit_test(test_resume),
        cmocka_unit_test(test_names), cmocka_unit_test(test_another_format),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
