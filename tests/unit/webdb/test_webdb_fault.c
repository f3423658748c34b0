/*
 * test_webdb_fault.c - what can go wrong around the web database: every allocation and every file operation fails once,
 * the disk is full, bytes are damaged, somebody else is writing, somebody still reads the old edition. There is always
 * a clear error, and the old edition stays as it was.
 *
 * LeakSanitizer finds leaks at the end of the program. Nothing is really synced, which would only take time.
 */
#include "../faultkinds.h"
#include "../rounds.h"
#include "../smallmemory.h"
#include "../unsynced.h"
#include "webdb_digest.h"

#include <sys/resource.h>
#include <sys/stat.h>

static uint64_t seed;

/* ---- directories ----------------------------------------------------------------------------- */

static char template_dir[96], work_dir[96];
static struct twin before, after;
static struct twin_batch batch;
static uint64_t before_digest;
enum { EDITION = 2 }; /* of the template */

/* The working directory is a fresh copy of the template. */
static void prepare(void)
{
    remove_tree(work_dir);
    copy_tree(template_dir, work_dir);
}

static void file_of(const char *dir, const char *name, char path_out[256])
{
    snprintf(path_out, 256, "%s/webdb/%08d/%s", dir, EDITION, name);
}

/* ---- the operations -------------------------------------------------------------------------- */

static int do_update(void)
{
    return twin_update(work_dir, &batch, 1, 1, NULL);
}

static int do_update_threads(void)
{
    return twin_update(work_dir, &batch, 1, 3, NULL);
}

static int do_read(void)
{
    uint64_t digest;
    int err = read_all(work_dir, &digest);

    assert_true(err < 0 || digest == before_digest);
    return err;
}

static void count_problem(void *context, const char *file, uint64_t offset, const char *message)
{
    (void)offset;
    assert_true(file[0] && message[0]);
    ++*(unsigned *)context;
}

static int do_check(void)
{
    struct wb_webdb_count count;
    unsigned problems = 0;
    int err = wb_webdb_check(work_dir, count_problem, &problems, &count);

    assert_true(problems == 0 || wb_fault_struck()); /* a file that cannot be read is a problem too */
    return err;
}

static int do_abandon(void)
{
    struct wb_webdb_writer *writer = NULL;
    int err = wb_webdb_writer_open(work_dir, NULL, &writer);

    assert_true((err == 0) == (writer != NULL));
    if (err == 0)
        err = twin_call_writer(writer, &batch);
    wb_webdb_writer_abandon(writer);
    return err;
}

static int do_journal_calls(void)
{
    const struct wb_journal_needs none = WB_JOURNAL_NEEDS_INIT;
    uint64_t bytes;
    int err = wb_webdb_unmerged(work_dir, &bytes);

    assert_true(err < 0 || bytes > 0);
    return err < 0 ? err : wb_webdb_prune_journal(work_dir, &none, &bytes);
}

static const struct operation {
    const char *name;
    int (*run)(void);
    bool writes;
    unsigned least[6]; /* at least so many operations of each kind; with fewer, nothing would be tested */
} operations[] = {
    {"update", do_update, true, {200, 15, 10, 10, 8, 1}},
    {"update with threads", do_update_threads, true, {200, 15, 10, 10, 8, 1}},
    {"read", do_read, false, {20, 6, 6, 0, 0, 0}},
    {"check", do_check, false, {20, 6, 6, 0, 0, 0}},
    {"abandon", do_abandon, false, {20, 2, 1, 0, 0, 0}},
    {"unmerged and prune", do_journal_calls, false, {4, 2, 2, 0, 0, 0}},
};

/* ---- one fault ------------------------------------------------------------------------------- */

static uint32_t newest(const char *dir)
{
    struct wb_webdb *webdb = NULL;
    struct wb_webdb_count count;

    worked(wb_webdb_open(dir, &webdb));
    wb_webdb_count(webdb, &count);
    wb_webdb_close(webdb);
    return count.edition;
}

/* The old edition or the new one must be there, complete, and a writer must work. */
static void check_after(const struct operation *operation, int err)
{
    uint32_t edition = newest(work_dir);

    assert_true(edition == EDITION || (operation->writes && edition == EDITION + 1));
    assert_true(err < 0 || !operation->writes || edition == EDITION + 1);
    same_as_newest(edition == EDITION ? &before : &after, work_dir);
    check_clean(work_dir);
    if (edition == EDITION && operation->run != do_journal_calls)
        worked(do_update());
    if (operation->run != do_journal_calls)
        same_as_newest(&after, work_dir);
}

static uint64_t counted; /* how many operations of the kind there were until one failed */

/* Makes the nth operation of a kind fail. Returns false if there were fewer. */
static bool strike(const struct operation *operation, size_t kind, uint64_t nth)
{
    prepare();
    wb_fail(WB_E_INVALID, "%s", "");
    wb_fault_arm(fault_kinds[kind].kind, nth, fault_kinds[kind].error);
    int err = operation->run();
    bool struck = wb_fault_struck();
    counted = wb_fault_count();
    wb_fault_disarm();
    bool unreadable =
        err == WB_E_CORRUPT && fault_kinds[kind].kind == WB_FAULT_READ && strstr(wb_error_message(), strerror(EIO));
    bool right =
        err == 0 || unreadable ||
        (struck && wb_error_message()[0] && err == (fault_kinds[kind].kind == WB_FAULT_ALLOC ? WB_E_NOMEM : WB_E_IO));
    if (!right)
        fail_msg("%s, %s number %llu: %d %s", operation->name, fault_kinds[kind].name, (unsigned long long)nth, err,
                 wb_error_message());
    check_after(operation, err);
    return struck;
}

static void test_operation(void **state)
{
    const struct operation *operation = *state;
    uint64_t chance = seed;

    for (size_t kind = 0; kind < COUNT(fault_kinds); kind++) {
        assert_false(strike(operation, kind, UINT64_MAX));
        uint64_t calls = counted;
        /* The first ones at short distances, then at growing ones. */
        for (uint64_t nth = 1; nth <= calls && strike(operation, kind, nth);)
            nth += nth < 30 ? test_stride_of(&chance, calls) : 1 + chance_below(&chance, nth * 4 / test_rounds(16));
        if (calls < operation->least[kind])
            fail_msg("%s: only %llu operations of kind %s", operation->name, (unsigned long long)calls,
                     fault_kinds[kind].name);
    }
}

/* ---- a full disk, for real ------------------------------------------------------------------- */

static void test_file_limit(void **state)
{
    struct rlimit old, small = {.rlim_cur = 1500};
    int failed = 0;

    (void)state;
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &old), 0);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    prepare();
    for (; small.rlim_cur < 100000 && failed < 50; small.rlim_cur += 500) {
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
        int err = do_update();
        assert_int_equal(setrlimit(RLIMIT_FSIZE, &old), 0);
        if (err == 0)
            break;
        assert_int_equal(err, WB_E_IO);
        assert_non_null(strstr(wb_error_message(), work_dir));
        same_as_newest(&before, work_dir);
        check_tidy(work_dir);
        failed++;
    }
    signal(SIGXFSZ, SIG_DFL);
    assert_true(failed > 0);
    same_as_newest(&after, work_dir);
}

/* ---- stopped --------------------------------------------------------------------------------- */

static bool stop_after(void *context, const char *step, uint64_t done, uint64_t total)
{
    (void)done;
    (void)total;
    assert_true(step[0]);
    return (*(unsigned *)context)-- > 0;
}

static void test_stopped(void **state)
{
    unsigned stopped = 0;
    int err = WB_E_STOPPED;

    (void)state;
    prepare();
    for (unsigned i = 0; err == WB_E_STOPPED && i < 20; i++) {
        unsigned left = i;
        struct wb_webdb_options options = {
            .memory_bytes = SMALL_MEMORY, .progress = stop_after, .progress_context = &left, .now_ms = batch.now_ms};
        struct wb_webdb_writer *writer = NULL;
        worked(wb_webdb_writer_open(work_dir, &options, &writer));
        worked(twin_call_writer(writer, &batch));
        err = twin_close_writer(writer, &batch, NULL);
        stopped += err == WB_E_STOPPED;
        if (err == WB_E_STOPPED) {
            assert_int_equal(newest(work_dir), EDITION);
            check_tidy(work_dir);
        }
    }
    assert_int_equal(err, 0);
    assert_true(stopped >= 4); /* once per table */
    same_as_newest(&after, work_dir);
}

/* A caller that gives up after some pages were given to it leaves the old edition, and the next merge works. */
static void test_abandoned_between_pages(void **state)
{
    (void)state;
    prepare();
    for (unsigned pages = 1; pages <= 3; pages++) {
        struct wb_webdb_options options = {.memory_bytes = SMALL_MEMORY, .now_ms = batch.now_ms};
        struct wb_webdb_writer *writer = NULL;
        const struct wb_webdb_site *site;
        struct wb_webdb_page *page;

        worked(wb_webdb_writer_open(work_dir, &options, &writer));
        worked(twin_call_writer(writer, &batch));
        for (unsigned i = 0; i < pages; i++)
            assert_int_equal(wb_webdb_writer_next(writer, &page, &site), 1);
        wb_webdb_writer_abandon(writer);
        assert_int_equal(newest(work_dir), EDITION);
        check_tidy(work_dir);
        same_as_newest(&before, work_dir);
    }
    worked(twin_update(work_dir, &batch, 0, 0, NULL));
    same_as_newest(&after, work_dir);
}

/* ---- others ---------------------------------------------------------------------------------- */

static void try_to_write(void *context, int to)
{
    struct wb_webdb_writer *writer = NULL;
    int err = wb_webdb_writer_open(context, NULL, &writer);

    must(err == WB_E_BUSY && !writer && strstr(wb_error_message(), "another"));
    must(write(to, &err, sizeof err) == sizeof err);
}

static void test_two_writers(void **state)
{
    struct wb_webdb_options options = {.memory_bytes = SMALL_MEMORY, .now_ms = batch.now_ms};
    struct wb_webdb_writer *writer = NULL, *other = NULL;
    struct child child;
    int told = 0, status;

    (void)state;
    prepare();
    worked(wb_webdb_writer_open(work_dir, &options, &writer));
    assert_int_equal(wb_webdb_writer_open(work_dir, NULL, &other), WB_E_BUSY);
    assert_null(other);
    child = start_child(try_to_write, work_dir);
    assert_true(next_ack(&child, &told, sizeof told));
    assert_int_equal(waitpid(child.pid, &status, 0), child.pid);
    close(child.from);
    assert_int_equal(told, WB_E_BUSY);
    worked(twin_call_writer(writer, &batch));
    worked(twin_close_writer(writer, &batch, NULL));
    same_as_newest(&after, work_dir);
    worked(wb_webdb_writer_open(work_dir, NULL, &other));
    wb_webdb_writer_abandon(other);
}

/* A reader can finish its walks in its own edition while two more are published. */
static void test_old_reader(void **state)
{
    struct wb_webdb *webdb = NULL;
    struct wb_webdb_pages *pages = NULL;
    struct wb_webdb_links *links = NULL;
    struct wb_webdb_page page;
    struct wb_webdb_link link;
    struct wb_webdb_count count;
    static struct twin_batch more;
    uint64_t pages_seen = 0, links_seen = 0;

    (void)state;
    prepare();
    worked(wb_webdb_open(work_dir, &webdb));
    wb_webdb_count(webdb, &count);
    worked(wb_webdb_pages(webdb, &pages));
    worked(wb_webdb_links(webdb, &links));
    for (; pages_seen < 3; pages_seen++, links_seen++)
        assert_true(wb_webdb_pages_next(pages, &page) == 1 && wb_webdb_links_next(links, &link) == 1);
    worked(do_update());
    twin_batch_make(&more, seed + 9, batch.now_ms + 5000, 40, 0);
    worked(twin_update(work_dir, &more, 0, 0, NULL));
    check_editions(work_dir, 2); /* the one in between is gone */
    while (worked(wb_webdb_pages_next(pages, &page)) > 0)
        pages_seen++;
    while (worked(wb_webdb_links_next(links, &link)) > 0)
        links_seen++;
    wb_webdb_pages_close(pages);
    wb_webdb_links_close(links);
    assert_int_equal(pages_seen, count.pages);
    assert_int_equal(links_seen, count.links);
    same_as_twin(&before, webdb);
    wb_webdb_close(webdb);
    assert_int_equal(newest(work_dir), EDITION + 2);
    worked(twin_update(work_dir, &more, 0, 0, NULL));
    check_tidy(work_dir);
}

/* ---- damage ---------------------------------------------------------------------------------- */

static const struct damaged_file {
    const char *name;
    bool column; /* readers do not look at the checksums of its records */
} damaged_files[] = {
    {"manifest", false},    {"pages.wbt", false},   {"outlinks.wbt", false}, {"inlinks.wbt", false},
    {"sites.wbt", false},   {"contents.wbc", true}, {"degrees.wbc", true},   {"near.wbc", true},
    {"rules.wbt", false},   {"ids.wbc", true},
};

static uint64_t size_of(const char *path)
{
    struct stat st;

    assert_int_equal(stat(path, &st), 0);
    return (uint64_t)st.st_size;
}

/* Readers and the merge report the damage with the name of the file, or it has no effect; nothing is lost. */
static void check_damaged(const struct damaged_file *file, uint64_t at)
{
    struct wb_webdb_count count;
    unsigned problems = 0;
    uint64_t digest;
    int err = read_all(work_dir, &digest);

    if (err < 0 && (err != WB_E_CORRUPT && err != WB_E_NEWER))
        fail_msg("%s, byte %llu: a reader says %d %s", file->name, (unsigned long long)at, err, wb_error_message());
    if (err < 0 && !file->column && !strstr(wb_error_message(), file->name) &&
        !strstr(wb_error_message(), "the same edition"))
        fail_msg("%s, byte %llu: the message does not name it: %s", file->name, (unsigned long long)at,
                 wb_error_message());
    if (err == 0 && !file->column && digest != before_digest)
        fail_msg("%s, byte %llu: a reader sees something else", file->name, (unsigned long long)at);
    err = wb_webdb_check(work_dir, count_problem, &problems, &count);
    if (problems == 0 && err != WB_E_CORRUPT && err != WB_E_NEWER)
        fail_msg("%s, byte %llu: check finds nothing (%d)", file->name, (unsigned long long)at, err);
    err = do_update();
    if (err == 0)
        fail_msg("%s, byte %llu: the merge does not mind", file->name, (unsigned long long)at);
    if ((err != WB_E_CORRUPT && err != WB_E_NEWER) || !strstr(wb_error_message(), "webdb"))
        fail_msg("%s, byte %llu: the merge says %d %s", file->name, (unsigned long long)at, err, wb_error_message());
}

/* Every byte of a small file, some of a larger one. When it is repaired, everything is there again. */
static void test_damage(void **state)
{
    const struct damaged_file *file = *state;
    uint64_t chance = seed, digest;
    char path[256];

    prepare();
    file_of(work_dir, file->name, path);
    for (uint64_t at = chance_below(&chance, 8), size = size_of(path); at < size;
         at += 1 + chance_below(&chance, size / test_rounds(60) + 1)) {
        uint8_t mask = (uint8_t)(1 << chance_below(&chance, 8));
        change_byte(path, at, mask);
        check_damaged(file, at);
        change_byte(path, at, mask);
        check_tidy(work_dir);
    }
    worked(read_all(work_dir, &digest));
    assert_int_equal(digest, before_digest);
    worked(do_update());
    same_as_newest(&after, work_dir);
}

static void test_cut_files(void **state)
{
    char path[256];
    uint64_t digest;

    (void)state;
    for (size_t i = 0; i < COUNT(damaged_files); i++)
        for (unsigned part = 0; part < 4; part++) {
            prepare();
            file_of(work_dir, damaged_files[i].name, path);
            cut_file(path, size_of(path) * part / 4);
            assert_int_equal(read_all(work_dir, &digest), WB_E_CORRUPT);
            assert_non_null(strstr(wb_error_message(), damaged_files[i].name));
            assert_int_equal(do_update(), WB_E_CORRUPT);
            check_tidy(work_dir);
        }
}

/* ---- a damaged journal ----------------------------------------------------------------------- */

static int newest_log(void *context, const struct wb_path_entry *entry)
{
    if (strstr(entry->name, ".wbe"))
        snprintf(context, 64, "%s", entry->name);
    return 0;
}

static int update_telling(unsigned *problems)
{
    struct wb_webdb_options options = {.memory_bytes = SMALL_MEMORY, .now_ms = batch.now_ms};
    struct wb_webdb_writer *writer = NULL;
    int err = wb_webdb_writer_open(work_dir, &options, &writer);

    assert_int_equal(err, 0);
    err = wb_webdb_add_journal(writer, count_problem, problems);
    if (err < 0) {
        wb_webdb_writer_abandon(writer);
        return err;
    }
    return wb_webdb_writer_close(writer, NULL);
}

/* A damaged record is skipped and reported; a torn end is not damage; either way there is a correct edition. */
static void test_damaged_journal(void **state)
{
    uint64_t chance = seed, digest;
    char journal[128], path[256], name[64] = "";
    unsigned told = 0;

    (void)state;
    snprintf(journal, sizeof journal, "%s/journal", template_dir);
    worked(wb_path_each(journal, newest_log, name));
    snprintf(path, sizeof path, "%s/journal/%s", work_dir, name);
    for (unsigned i = 0; i < 40; i++) {
        unsigned problems = 0;
        prepare();
        uint64_t size = size_of(path), at = i ? 64 + chance_below(&chance, size - 64) : size - 3;
        if (i % 5 == 0)
            cut_file(path, at);
        else
            change_byte(path, at, (uint8_t)(1 << chance_below(&chance, 8)));
        worked(update_telling(&problems));
        told += problems > 0;
        assert_true(newest(work_dir) <= EDITION + 1);
        check_clean(work_dir);
        worked(read_all(work_dir, &digest));
        problems = 0;
        worked(update_telling(&problems)); /* what was reported once is not reported again */
        assert_true(newest(work_dir) <= EDITION + 1);
    }
    assert_true(told > 10);
}

/* ---- all ------------------------------------------------------------------------------------- */

static int begin(void **state)
{
    uint64_t chance;

    seed = chance = test_seed();
    twin_init();
    if (make_root(state) < 0)
        return -1;
    snprintf(template_dir, sizeof template_dir, "%s", new_dir());
    snprintf(work_dir, sizeof work_dir, "%s", new_dir());
    for (unsigned i = 0; i < EDITION; i++) {
        twin_batch_make(&batch, chance_next(&chance), 1790000000000 + 1000 * i, 200, 60);
        worked(twin_write_journal(template_dir, &batch));
        worked(twin_update(template_dir, &batch, 0, 1, NULL));
        twin_apply(&before, &batch);
    }
    worked(read_all(template_dir, &before_digest));
    twin_batch_make(&batch, chance_next(&chance), 1790000100000, 120, 60);
    worked(twin_write_journal(template_dir, &batch));
    after = before;
    twin_apply(&after, &batch);
    return 0;
}

int main(void)
{
    struct CMUnitTest tests[COUNT(operations) + COUNT(damaged_files) + 7] = {
        cmocka_unit_test(test_file_limit), cmocka_unit_test(test_stopped),    cmocka_unit_test(test_two_writers),
        cmocka_unit_test(test_abandoned_between_pages),
        cmocka_unit_test(test_old_reader), cmocka_unit_test(test_cut_files),    cmocka_unit_test(test_damaged_journal),
    };
    size_t n = 7;

    for (size_t i = 0; i < COUNT(damaged_files); i++)
        tests[n++] =
            (struct CMUnitTest){damaged_files[i].name, test_damage, NULL, NULL, (void *)(uintptr_t)&damaged_files[i]};
    for (size_t i = 0; i < COUNT(operations); i++)
        tests[n++] =
            (struct CMUnitTest){operations[i].name, test_operation, NULL, NULL, (void *)(uintptr_t)&operations[i]};
    return cmocka_run_group_tests(tests, begin, remove_root);
}
