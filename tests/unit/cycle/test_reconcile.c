/*
 * test_reconcile.c - webdb and the store after an update: what is stored is known, what is known as fetched is stored,
 * and the edition says which epoch of the store it has seen. Also that writers write their journal before the store,
 * which that epoch depends on.
 */
#include "../seeded.h"
#include "cycle_support.h"
#include "ingest/ingest.h"
#include "os/fault.h"
#include "os/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

/* What an update does to files, and whether another one could start meanwhile. */
struct beside {
    char *path; /* of the lock of webdb */
    unsigned locked, open_again; /* so often it was locked; and it was not, after it had been */
};

static int look_at_lock(void *context, enum wb_fault_kind kind, const char *path)
{
    struct beside *beside = context;
    int fd = open(beside->path, O_RDONLY | O_CLOEXEC);

    (void)kind, (void)path;
    if (fd < 0)
        return 0; /* no update has been here yet */
    struct wb_file file = {fd, beside->path};
    if (wb_file_is_locked(&file))
        beside->locked++;
    else
        beside->open_again += beside->locked > 0;
    close(fd);
    return 0;
}

static struct wb_webdb_merge update(const char *dir)
{
    struct wb_update_options options = {.dir = dir, .memory_bytes = SMALL_MEMORY};
    struct wb_webdb_merge merge;

    ok(wb_update(&options, NULL, &merge, NULL));
    return merge;
}

static uint64_t seen_epoch(const char *dir)
{
    struct wb_webdb *webdb = NULL;
    struct wb_webdb_count count;

    ok(wb_webdb_open(dir, &webdb));
    wb_webdb_count(webdb, &count);
    wb_webdb_close(webdb);
    return count.store_epoch;
}

static uint64_t store_epoch(const char *dir)
{
    struct wb_store *store = NULL;
    struct wb_store_stat stat;

    ok(wb_store_open(dir, WB_STORE_READ, &store));
    ok(wb_store_stat(store, &stat));
    wb_store_close(store);
    return stat.epoch;
}

static void md5_of(const char *body, uint8_t md5_out[WB_MD5_BYTES])
{
    struct wb_page page = {.body = wb_slice_str(body), .body_bytes = strlen(body)};

    wb_page_digest(&page);
    memcpy(md5_out, page.md5, WB_MD5_BYTES);
}

static void assert_content(const char *dir, const char *url, const char *body)
{
    struct wb_webdb_page page;
    uint8_t md5[WB_MD5_BYTES];

    md5_of(body, md5);
    assert_true(get_page(dir, url, &page));
    assert_true(page.has_content);
    assert_memory_equal(page.md5, md5, sizeof md5);
}

/* As a crawl or an import: the page was fetched and stored. */
static void journal_page(const char *dir, const char *url, const char *body, int64_t time_ms)
{
    struct wb_edit edit = {.kind = WB_EDIT_PAGE, .time_ms = time_ms, .prev = WB_EDIT_NOWHERE};
    struct wb_journal_writer *writer = NULL;
    struct wb_edit_place place;

    edit.page = (struct wb_edit_page){.url = wb_slice_str(url),
                                      .outcome = WB_OUTCOME_STORED,
                                      .status = 200,
                                      .has_content = true,
                                      .bytes = strlen(body),
                                      .type = WB_SLICE_LIT("text/html"),
                                      .reason = WB_SLICE_EMPTY,
                                      .etag = WB_SLICE_EMPTY,
                                      .modified = WB_SLICE_EMPTY,
                                      .location = WB_SLICE_EMPTY};
    md5_of(body, edit.page.md5);
    ok(wb_journal_writer_open(dir, 0, &writer));
    ok(wb_journal_writer_append(writer, &edit, &place));
    ok(wb_journal_writer_finish(writer));
    wb_journal_writer_close(writer);
}

/* ---- stored, and webdb knows nothing ----------------------------------------------------------------------------- */

static void test_unheard_pages_are_adopted(void **state)
{
    int64_t now = wb_clock_wall_ms();

    store_page(*state, "http://h.test/a", now - 5000, 0);
    store_page(*state, "http://h.test/b", now - 4000, 0);
    journal_page(*state, "http://h.test/b", "bytes", now - 4000);
    store_page(*state, "http://h.test/c", now - 3000, 0);
    struct wb_webdb_merge merge = update(*state);
    assert_content(*state, "http://h.test/a", "bytes");
    assert_content(*state, "http://h.test/b", "bytes");
    assert_content(*state, "http://h.test/c", "bytes");
    assert_int_equal(seen_epoch(*state), store_epoch(*state));
    /* Nothing new: no new edition. */
    assert_int_equal(update(*state).edition, merge.edition);
    store_page(*state, "http://h.test/d", now - 2000, 0);
    update(*state);
    assert_content(*state, "http://h.test/d", "bytes");
    assert_int_equal(seen_epoch(*state), store_epoch(*state));
}

/* From its first merge to its last one, with the logs removed between them, nobody else can update. */
static void test_an_update_is_one_step_for_others(void **state)
{
    struct wb_update_options options = {.dir = *state, .memory_bytes = SMALL_MEMORY};
    struct beside beside = {.path = wb_path_join(*state, "webdb/lock")};
    int64_t now = wb_clock_wall_ms();
    struct wb_webdb_merge merge;
    struct wb_file lock;

    journal_page(*state, "http://h.test/a", "bytes", now - 5000);
    store_page(*state, "http://h.test/b", now - 4000, 0);
    wb_fault_ask(look_at_lock, &beside);
    int err = wb_update(&options, NULL, &merge, NULL);
    wb_fault_ask(NULL, NULL);
    ok(err);
    assert_int_equal(merge.edition, 3); /* of the journal, of what is not stored, and of what nobody told */
    assert_true(beside.locked > 0);
    assert_int_equal(beside.open_again, 0);
    wb_free(beside.path);
    /* Another one, which waits for nobody. */
    ok(wb_webdb_lock(*state, &lock));
    assert_int_equal(wb_update(&options, NULL, &merge, NULL), WB_E_BUSY);
    assert_non_null(strstr(wb_error_message(), "another update is at work"));
    wb_file_close(&lock);
    update(*state);
}

/* What the journal tells needs no merge of its own, and the epoch is seen all the same. */
static void test_told_pages_cost_nothing(void **state)
{
    int64_t now = wb_clock_wall_ms();

    journal_page(*state, "http://h.test/a", "bytes", now - 5000);
    store_page(*state, "http://h.test/a", now - 5000, 0);
    assert_int_equal(update(*state).edition, 1);
    assert_int_equal(seen_epoch(*state), store_epoch(*state));
    store_page(*state, "http://h.test/a", now - 1000, 0); /* a further capture, not a version */
    assert_int_equal(update(*state).edition, 1);
}

/* What happened later than what is stored, or was taken down, stays as it is. */
static void test_later_events_stand(void **state)
{
    int64_t now = wb_clock_wall_ms();
    struct wb_webdb_page pages[] = {known_page("http://h.test/moved"), known_page("http://h.test/barred")}, page;

    pages[0].last_tried_ms = now;
    pages[0].outcome = WB_OUTCOME_REDIRECT;
    pages[0].location = WB_SLICE_LIT("http://h.test/elsewhere");
    pages[1].flags = WB_PAGE_BARRED;
    add_pages(*state, pages, COUNT(pages));
    store_page(*state, "http://h.test/moved", now - WB_DAY_MS, 0);
    store_page(*state, "http://h.test/barred", now - WB_DAY_MS, 0);
    update(*state);
    assert_true(get_page(*state, "http://h.test/moved", &page) && !page.has_content);
    assert_true(get_page(*state, "http://h.test/barred", &page) && !page.has_content);
    assert_int_equal(seen_epoch(*state), store_epoch(*state));
}

/* ---- fetched, and not stored ------------------------------------------------------------------------------------- */

static void test_unstored_pages_are_not_fetched(void **state)
{
    int64_t now = wb_clock_wall_ms();
    struct wb_webdb_page page;

    journal_page(*state, "http://h.test/lost", "bytes", now - 5000);
    journal_page(*state, "http://h.test/there", "bytes", now - 5000);
    store_page(*state, "http://h.test/there", now - 5000, 0);
    update(*state);
    assert_true(get_page(*state, "http://h.test/lost", &page));
    assert_false(page.has_content);
    assert_true(page.last_seen_ms == 0 && page.last_tried_ms == 0 && page.outcome == 0);
    assert_content(*state, "http://h.test/there", "bytes");
    /* The same import again, which succeeds. */
    journal_page(*state, "http://h.test/lost", "bytes", now - 5000);
    store_page(*state, "http://h.test/lost", now - 5000, 0);
    update(*state);
    assert_content(*state, "http://h.test/lost", "bytes");
}

static void test_an_unstored_version_gives_way_to_the_stored_one(void **state)
{
    int64_t now = wb_clock_wall_ms();
    struct wb_webdb_page page;

    journal_page(*state, "http://h.test/a", "bytes", now - 5000);
    store_page(*state, "http://h.test/a", now - 5000, 0);
    update(*state);
    journal_page(*state, "http://h.test/a", "newer bytes", now - 1000);
    update(*state);
    assert_content(*state, "http://h.test/a", "bytes");
    assert_true(get_page(*state, "http://h.test/a", &page) && page.last_seen_ms == now - 5000);
    assert_int_equal(seen_epoch(*state), store_epoch(*state));
}

/* Rows that were loaded into webdb are nobody's visits. */
static void test_loaded_rows_stay(void **state)
{
    int64_t now = wb_clock_wall_ms();
    struct wb_webdb_page row = fetched_page("http://h.test/row", now - WB_DAY_MS), page;
    struct wb_edit edit = {
        .kind = WB_EDIT_PUSH, .time_ms = now, .prev = WB_EDIT_NOWHERE, .text = row.url, .count = WB_PUSH_CHANGED};
    struct wb_journal_writer *writer = NULL;
    struct wb_edit_place place;

    add_pages(*state, &row, 1);
    ok(wb_journal_writer_open(*state, 0, &writer));
    ok(wb_journal_writer_append(writer, &edit, &place));
    ok(wb_journal_writer_finish(writer));
    wb_journal_writer_close(writer);
    update(*state);
    assert_true(get_page(*state, "http://h.test/row", &page) && page.has_content);
    assert_true(page.flags & WB_PAGE_PUSHED);
}

/* Another process has journaled a page and is about to commit it. */
static void test_a_writer_that_is_about_to_commit(void **state)
{
    int64_t now = wb_clock_wall_ms();
    int ready[2], status;

    assert_int_equal(pipe(ready), 0);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        struct wb_edit edit = {.kind = WB_EDIT_PAGE, .time_ms = now - 5000, .prev = WB_EDIT_NOWHERE};
        struct wb_journal_writer *writer = NULL;
        struct wb_edit_place place;
        edit.page = (struct wb_edit_page){.url = WB_SLICE_LIT("http://h.test/a"),
                                          .outcome = WB_OUTCOME_STORED,
                                          .status = 200,
                                          .has_content = true,
                                          .bytes = 5,
                                          .type = WB_SLICE_LIT("text/html"),
                                          .reason = WB_SLICE_EMPTY,
                                          .etag = WB_SLICE_EMPTY,
                                          .modified = WB_SLICE_EMPTY,
                                          .location = WB_SLICE_EMPTY};
        md5_of("bytes", edit.page.md5);
        if (wb_journal_writer_open(*state, 0, &writer) < 0 || wb_journal_writer_append(writer, &edit, &place) < 0 ||
            wb_journal_writer_sync(writer) < 0 || write(ready[1], "x", 1) != 1)
            _exit(1);
        usleep(700000);
        store_page(*state, "http://h.test/a", now - 5000, 0);
        _exit(wb_journal_writer_finish(writer) < 0);
    }
    char byte;
    assert_int_equal(read(ready[0], &byte, 1), 1);
    update(*state);
    assert_content(*state, "http://h.test/a", "bytes");
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_int_equal(status, 0);
    close(ready[0]);
    close(ready[1]);
}

/* ---- imports that fail ------------------------------------------------------------------------------------------- */

enum { FILES = 6 };

static void name_file(int i, char url_out[64])
{
    snprintf(url_out, 64, "http://h.test/%d.html", i);
}

static void make_files(const char *tree)
{
    for (int i = 0; i < FILES; i++) {
        char path[256], text[64];
        snprintf(path, sizeof path, "%s/%d.html", tree, i);
        int len = snprintf(text, sizeof text, "<a href=/%d.html>page %d</a>", (i + 1) % FILES, i);
        ok(wb_path_replace(path, wb_slice(text, (size_t)len)));
    }
}

static int import_files(const char *dir, const char *tree, bool no_journal)
{
    const struct wb_ingest_sink silent = {NULL, NULL, NULL, NULL};
    struct wb_import_options options = {.dir = dir,
                                        .tree = tree,
                                        .tree_url = WB_SLICE_LIT("http://h.test/"),
                                        .body_max = 1000,
                                        .no_journal = no_journal};
    struct wb_import import;

    return wb_import(&options, &silent, &import);
}

static void gather_urls(const char *dir, struct wb_buf *urls_out)
{
    struct wb_edit_place at = WB_EDIT_NOWHERE;
    struct wb_journal_reader *reader = NULL;
    struct wb_edit edit;
    int got;

    ok(wb_journal_reader_open(dir, &reader));
    while ((got = wb_journal_reader_next(reader, &at, &edit)) != 0)
        if (got > 0 && edit.kind == WB_EDIT_PAGE)
            ok(wb_buf_printf(urls_out, "%.*s\n", WB_SLICE_ARG(edit.page.url)));
    ok(wb_buf_terminate(urls_out));
    wb_journal_reader_close(reader);
}

/* Nothing was merged if the first operations failed. */
static bool has_webdb(const char *dir)
{
    struct wb_webdb *webdb = NULL;
    int err = wb_webdb_open(dir, &webdb);

    wb_webdb_close(webdb);
    return err == 0;
}

/*
 * Whatever operation fails: what the store has is in the journal, because the journal is written first; and after an
 * update, webdb has the content of exactly those pages that are stored.
 */
static void test_imports_that_fail(void **state)
{
    char tree[128];
    bool struck = true;

    (void)state;
    snprintf(tree, sizeof tree, "/tmp/webbase-files-XXXXXX");
    assert_non_null(mkdtemp(tree));
    make_files(tree);
    for (uint64_t nth = 1; struck && nth < 4000; nth += 1 + nth / 16) {
        void *dir = NULL;
        struct wb_buf told = WB_BUF_INIT;
        struct wb_webdb_page page;
        char url[64];
        assert_int_equal(set_up_repository(&dir), 0);
        wb_fault_arm(WB_FAULT_WRITE | WB_FAULT_SYNC | WB_FAULT_OPEN | WB_FAULT_RENAME, nth, ENOSPC);
        int err = import_files(dir, tree, false);
        struck = wb_fault_struck();
        wb_fault_disarm();
        assert_true(struck || err == 0);
        gather_urls(dir, &told);
        for (int i = 0; i < FILES; i++) {
            name_file(i, url);
            if (in_store(dir, url) && !strstr(told.ptr, url))
                fail_msg("operation %llu: %s is stored and not journaled", (unsigned long long)nth, url);
        }
        update(dir);
        for (int i = 0; i < FILES; i++) {
            name_file(i, url);
            bool fetched = has_webdb(dir) && get_page(dir, url, &page) && page.has_content;
            if (fetched != in_store(dir, url))
                fail_msg("operation %llu: %s is %s", (unsigned long long)nth, url, fetched ? "not stored" : "unknown");
        }
        if (has_webdb(dir))
            assert_int_equal(seen_epoch(dir), store_epoch(dir));
        wb_buf_release(&told);
        assert_int_equal(tear_down_repository(&dir), 0);
    }
    assert_false(struck);
    assert_int_equal(remove_tree(tree), 0);
}

/* ---- random ------------------------------------------------------------------------------------------------------ */

/* Pages that are stored, journaled, both or none, in random order, with updates in between. */
static void test_random_halves(void **state)
{
    uint64_t chance = test_seed();
    int64_t now = wb_clock_wall_ms();
    char url[64];

    for (int i = 0; i < 60; i++) {
        snprintf(url, sizeof url, "http://h%d.test/%d", (int)chance_below(&chance, 3), (int)chance_below(&chance, 9));
        int64_t time_ms = now - (int64_t)chance_below(&chance, 1000) * 1000;
        if (chance_one_in(&chance, 2))
            journal_page(*state, url, "bytes", time_ms);
        if (chance_one_in(&chance, 2))
            store_page(*state, url, time_ms, 0);
        if (chance_one_in(&chance, 5))
            update(*state);
    }
    update(*state);
    for (int i = 0; i < 27; i++) {
        struct wb_webdb_page page;
        snprintf(url, sizeof url, "http://h%d.test/%d", i / 9, i % 9);
        assert_int_equal(get_page(*state, url, &page) && page.has_content, in_store(*state, url));
    }
    assert_int_equal(seen_epoch(*state), store_epoch(*state));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_REPOSITORY(test_unheard_pages_are_adopted),
        IN_REPOSITORY(test_an_update_is_one_step_for_others),
        IN_REPOSITORY(test_told_pages_cost_nothing),
        IN_REPOSITORY(test_later_events_stand),
        IN_REPOSITORY(test_unstored_pages_are_not_fetched),
        IN_REPOSITORY(test_an_unstored_version_gives_way_to_the_stored_one),
        IN_REPOSITORY(test_loaded_rows_stay),
        IN_REPOSITORY(test_a_writer_that_is_about_to_commit),
        cmocka_unit_test(test_imports_that_fail),
        IN_REPOSITORY(test_random_halves),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
