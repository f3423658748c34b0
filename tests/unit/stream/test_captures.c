/* test_captures.c - which records are written for the captures of a page, and in which order. */
#include "versions_support.h"

#include "stream/stream.h"
#include "warc/warc.h"

#include <fcntl.h>
#include <unistd.h>

static int take_bytes(void *context, const void *bytes, size_t len)
{
    return wb_buf_append(context, bytes, len);
}

static struct wb_selection everything(void)
{
    return WB_SELECTION_INIT;
}

/*
 * Reads an archive back as text: "0:A 1>0 " is the body A on day 0, and on day 1 a revisit of the record of day 0.
 */
static void describe(const struct wb_buf *archive, struct wb_buf *text_out)
{
    struct wb_warc_reader *reader = NULL;
    struct wb_warc_record record;
    struct wb_warc_revisit revisit;
    const char *path = test_path("describe.warc");
    int got;

    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    assert_true(fd >= 0 && write(fd, archive->ptr, archive->len) == (ssize_t)archive->len);
    close(fd);
    wb_buf_clear(text_out);
    assert_int_equal(wb_warc_open(path, 1 << 20, &reader), 0);
    while ((got = wb_warc_next(reader, &record)) == 1) {
        int day = (int)((record.time_ms - START_MS) / WB_DAY_MS);
        if (record.type == WB_WARC_REVISIT) {
            wb_warc_revisit(&record, &revisit);
            assert_int_equal(
                wb_buf_printf(text_out, "%d>%d ", day, (int)((revisit.refers_time_ms - START_MS) / WB_DAY_MS)), 0);
        } else {
            assert_int_equal(record.type, WB_WARC_RESOURCE);
            assert_int_equal(wb_buf_printf(text_out, "%d:%.*s ", day, WB_SLICE_ARG(record.block)), 0);
        }
    }
    assert_int_equal(got, 0);
    wb_warc_close(reader);
    assert_int_equal(wb_buf_terminate(text_out), 0);
}

static void add_record(struct wb_warc_writer *writer, const struct wb_capture *capture)
{
    assert_int_equal(capture->revisit ? wb_warc_write_revisit(writer, &capture->page, capture->original_ms)
                                      : wb_warc_write_page(writer, &capture->page),
                     0);
}

/*
 * Writes the captures of a page and compares them with the description. newest: the page as a scan would return it.
 * Then again, but stopped and resumed after each capture.
 */
static void assert_written(struct wb_store *store, const struct wb_selection *selection, const struct wb_page *newest,
                           const char *want)
{
    for (unsigned pass = 0; pass < 4; pass++) {
        struct wb_captures_options options = {.store = store, .selection = selection, .bodies = pass & 1};
        struct wb_buf archive = WB_BUF_INIT, text = WB_BUF_INIT;
        struct wb_warc_writer *writer = NULL;
        struct wb_captures *captures = NULL;
        struct wb_capture capture;
        int got = 0;
        assert_int_equal(wb_warc_writer_new(WB_WARC_PLAIN, take_bytes, &archive, &writer), 0);
        assert_int_equal(wb_captures_new(&options, &captures), 0);
        if (wb_selection_has_site(selection, newest->key)) {
            assert_int_equal(wb_captures_begin(captures, newest->id, newest, INT64_MIN, 0), 0);
            while ((got = wb_captures_next(captures, &capture)) == 1) {
                assert_true(!options.bodies || capture.page.body.len > 0);
                add_record(writer, &capture);
                if (pass & 2)
                    assert_int_equal(wb_captures_begin(captures, newest->id, NULL, capture.page.time_ms, capture.tie),
                                     0);
            }
        }
        assert_int_equal(got, 0);
        wb_warc_writer_free(writer);
        if (*want)
            describe(&archive, &text);
        assert_string_equal(*want ? text.ptr : "", want);
        assert_true(*want || archive.len == 0);
        wb_captures_free(captures);
        wb_buf_release(&archive);
        wb_buf_release(&text);
    }
}

/* The newest version of a page in a buffer. */
static struct wb_page newest_of(struct wb_store *store, const char *name, struct wb_buf *mem)
{
    struct wb_page page;

    assert_int_equal(wb_store_get(store, page_on(name, 0, "").id, &page, mem), 0);
    return page;
}

static void test_bytes_once_for_each_content(void **state)
{
    struct wb_store *store = new_store("once", WB_STORE_KEEP_ALL);
    struct wb_selection all = everything();
    struct wb_buf mem = WB_BUF_INIT;

    (void)state;
    put_on(store, "a", 0, "A");
    struct wb_page page = newest_of(store, "a", &mem);
    assert_written(store, &all, &page, "0:A ");
    put_on(store, "a", 1, "A");
    put_on(store, "a", 2, "B");
    put_on(store, "a", 3, "A");
    put_on(store, "a", 4, "A");
    put_on(store, "a", 5, "B");
    /* The scan read the page before all that. */
    assert_written(store, &all, &page, "0:A 1>0 2:B 3>0 4>0 5>2 ");
    page = newest_of(store, "a", &mem);
    assert_written(store, &all, &page, "0:A 1>0 2:B 3>0 4>0 5>2 ");
    wb_buf_release(&mem);
    wb_store_close(store);
}

static void test_the_first_selected_capture_has_the_bytes(void **state)
{
    struct wb_store *store = new_store("selected", WB_STORE_KEEP_ALL);
    struct wb_selection some = everything();
    struct wb_buf mem = WB_BUF_INIT;

    (void)state;
    for (int day = 0; day < 6; day++)
        put_on(store, "a", day, day == 3 ? "B" : "A");
    struct wb_page page = newest_of(store, "a", &mem);
    some.since_ms = START_MS + 1 * WB_DAY_MS;
    assert_written(store, &some, &page, "1:A 2>1 3:B 4>1 5>1 ");
    some.since_ms = START_MS + 3 * WB_DAY_MS;
    assert_written(store, &some, &page, "3:B 4:A 5>4 ");
    some.until_ms = START_MS + 5 * WB_DAY_MS;
    assert_written(store, &some, &page, "3:B 4:A ");
    some.since_ms = START_MS + 9 * WB_DAY_MS;
    some.until_ms = INT64_MAX;
    assert_written(store, &some, &page, "");
    some = everything();
    assert_int_equal(wb_selection_set(&some, "type", WB_SLICE_LIT("text/html"), false), 0);
    assert_written(store, &some, &page, "");
    wb_selection_release(&some);
    some = everything();
    assert_int_equal(wb_selection_set(&some, "suffix", WB_SLICE_LIT("example"), false), 0);
    assert_written(store, &some, &page, "0:A 1>0 2>0 3:B 4>0 5>0 ");
    wb_selection_release(&some);
    assert_int_equal(wb_selection_set(&some, "suffix", WB_SLICE_LIT("example.org"), false), 0);
    assert_written(store, &some, &page, "");
    wb_selection_release(&some);
    wb_buf_release(&mem);
    wb_store_close(store);
}

/* The same body with another status: a digest would not say which of the two a revisit means. */
static void test_an_ambiguous_content_is_written_again(void **state)
{
    struct wb_store *store = new_store("ambiguous", WB_STORE_KEEP_ALL);
    struct wb_store_commit_counts counts = {0};
    struct wb_selection all = everything();
    struct wb_buf mem = WB_BUF_INIT;
    static const uint16_t statuses[] = {200, 404, 404, 200, 200};

    (void)state;
    for (int day = 0; day < 5; day++) {
        struct wb_page page = page_on("a", day, "A");
        page.status = statuses[day];
        assert_int_equal(wb_store_put(store, &page, NULL), 0);
    }
    assert_int_equal(wb_store_commit(store, &counts), 0);
    struct wb_page page = newest_of(store, "a", &mem);
    assert_written(store, &all, &page, "0:A 1:A 2>1 3:A 4>3 ");
    wb_buf_release(&mem);
    wb_store_close(store);
}

/* A page that was removed under a snapshot, and whose captures came back: each of them is written once. */
static void test_captures_that_came_back(void **state)
{
    struct wb_store *store = new_store("back", WB_STORE_KEEP_NEWEST);
    struct wb_selection all = everything();
    struct wb_buf mem = WB_BUF_INIT;

    (void)state;
    put_on(store, "a", 0, "A");
    put_on(store, "a", 2, "A");
    seal_state(store);
    remove_page(store, "a", 3);
    put_on(store, "a", 0, "A");
    put_on(store, "a", 1, "A");
    struct wb_page page = newest_of(store, "a", &mem);
    assert_written(store, &all, &page, "0:A 2>0 1>0 ");
    wb_buf_release(&mem);
    wb_store_close(store);
}

/* The scan of an export finds pages that only a snapshot still has, and pages that are gone but have a history. */
static void test_pages_that_are_gone(void **state)
{
    static const enum wb_store_keep policies[] = {WB_STORE_KEEP_NEWEST, WB_STORE_KEEP_ALL};

    (void)state;
    for (size_t i = 0; i < 2; i++) {
        struct wb_store *store = new_store(i ? "gone-all" : "gone-newest", policies[i]);
        struct wb_store_scan_options options = {.gone = true};
        struct wb_selection all = everything();
        struct wb_store_scan *scan = NULL;
        struct wb_page page;
        put_on(store, "a", 0, "A");
        put_on(store, "a", 1, "B");
        seal_state(store);
        remove_page(store, "a", 2);
        assert_int_equal(wb_store_scan_open(store, &options, &scan), 0);
        assert_int_equal(wb_store_scan_next(scan, &page), 1);
        assert_written(store, &all, &page, policies[i] == WB_STORE_KEEP_ALL ? "0:A 1:B " : "1:B ");
        assert_int_equal(wb_store_scan_next(scan, &page), 0);
        wb_store_scan_close(scan);
        wb_store_close(store);
    }
}

/* Taken down between the scan and the reading of its versions. */
static void test_a_page_that_is_gone_meanwhile(void **state)
{
    struct wb_store *store = new_store("meanwhile", WB_STORE_KEEP_ALL);
    struct wb_store_commit_counts counts = {0};
    struct wb_selection all = everything();
    struct wb_buf mem = WB_BUF_INIT;

    (void)state;
    put_on(store, "a", 0, "A");
    struct wb_page page = newest_of(store, "a", &mem);
    assert_int_equal(wb_store_remove(store, page.id, WB_SLICE_LIT("h.example"), START_MS, true), 0);
    assert_int_equal(wb_store_commit(store, &counts), 0);
    assert_written(store, &all, &page, "");
    wb_buf_release(&mem);
    wb_store_close(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes_once_for_each_content),
        cmocka_unit_test(test_the_first_selected_capture_has_the_bytes),
        cmocka_unit_test(test_an_ambiguous_content_is_written_again),
        cmocka_unit_test(test_captures_that_came_back),
        cmocka_unit_test(test_pages_that_are_gone),
        cmocka_unit_test(test_a_page_that_is_gone_meanwhile),
    };

    return cmocka_run_group_tests(tests, make_root, remove_root);
}
