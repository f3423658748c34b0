/*
 * test_concurrent.c - several processes use one repository: writers with segments of their
 * own, readers that each see one state, compactions in between, and a writer that dies
 * while it has the lock.
 */
#include "conversation.h"
#include "shared_repository.h"
#include "move/move.h"
#include "os/file.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

enum { WRITERS = 3, READERS = 2, OWN_PAGES = 40, SHARED_PAGES = 10 };

/* ---- many at once ------------------------------------------------------------------------------- */

struct worker {
    uint32_t number;
    unsigned rounds;
};

static struct spec own_spec(uint32_t writer, uint32_t page, unsigned round)
{
    return (struct spec){
        .site = writer, .number = page, .time_ms = 1000 + round, .size = 200 + page * 31, .variant = page};
}

/* A page that all writers put: the one with the latest time wins. */
static struct spec shared_spec(uint32_t writer, uint32_t page, unsigned round)
{
    return (struct spec){
        .site = 30, .number = page, .time_ms = 1000 + round * WRITERS + writer, .size = 500, .variant = page};
}

static int write_rounds(void *context)
{
    const struct worker *w = context;
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);

    for (unsigned round = 0; round < w->rounds; round++) {
        for (uint32_t page = 0; page < OWN_PAGES; page++) {
            struct spec spec = own_spec(w->number, page, round);
            must_ok(put_spec(store, &spec));
        }
        for (uint32_t page = 0; page < SHARED_PAGES; page++) {
            struct spec spec = shared_spec(w->number, page, round);
            must_ok(put_spec(store, &spec));
        }
        commit_store(store);
        for (uint32_t page = 0; page < OWN_PAGES; page++) {
            struct spec spec = own_spec(w->number, page, round);
            must(holds_spec(store, &spec));
        }
        if (round % 3 == 2) { /* so that others recover, purge and reuse segments */
            wb_store_close(store);
            store = open_store(dir, WB_STORE_WRITE);
        }
    }
    wb_store_close(store);
    return 0;
}

/* A scan sees all pages of a writer from the same round, because commits are atomic. */
static int read_rounds(void *context)
{
    const struct worker *w = context;

    for (unsigned round = 0; round < w->rounds; round++) {
        struct wb_store *store = open_store(dir, WB_STORE_READ);
        struct wb_store_scan *scan;
        struct wb_page page;
        int64_t time_of[WRITERS] = {0};
        unsigned pages_of[WRITERS] = {0};
        int more;
        must_ok(wb_store_scan_open(store, &(struct wb_store_scan_options){0}, &scan));
        while ((more = wb_store_scan_next(scan, &page)) > 0) {
            char key[64];
            unsigned writer;
            snprintf(key, sizeof key, "%.*s", WB_SLICE_ARG(page.key));
            must(sscanf(key, "site%u.example", &writer) == 1);
            if (writer == 30)
                continue;
            must(writer < WRITERS && (time_of[writer] == 0 || time_of[writer] == page.time_ms));
            time_of[writer] = page.time_ms;
            pages_of[writer]++;
        }
        must_ok(more);
        wb_store_scan_close(scan);
        for (uint32_t i = 0; i < WRITERS; i++)
            must(pages_of[i] == 0 || pages_of[i] == OWN_PAGES);
        must(verify_count(dir, true).problems == 0);
        wb_store_close(store);
    }
    return 0;
}

static int compact_rounds(void *context)
{
    const struct worker *w = context;
    struct wb_move_compact_counts compact;

    for (unsigned round = 0; round < w->rounds; round++) {
        struct wb_store *store = open_store(dir, WB_STORE_WRITE);
        must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &compact));
        wb_store_close(store);
        usleep(2000);
    }
    return 0;
}

static int check_final(void *context)
{
    const unsigned *rounds = context;
    struct wb_store *store = open_store(dir, WB_STORE_READ);
    struct wb_store_stat stat;

    for (uint32_t writer = 0; writer < WRITERS; writer++)
        for (uint32_t page = 0; page < OWN_PAGES; page++) {
            struct spec spec = own_spec(writer, page, *rounds - 1);
            must(holds_spec(store, &spec));
        }
    for (uint32_t page = 0; page < SHARED_PAGES; page++) {
        struct spec spec = shared_spec(WRITERS - 1, page, *rounds - 1);
        must(holds_spec(store, &spec));
    }
    must_ok(wb_store_stat(store, &stat));
    must(stat.pages == WRITERS * OWN_PAGES + SHARED_PAGES && stat.sites == WRITERS + 1);
    wb_store_close(store);
    return 0;
}

static void test_many_at_once(void **state)
{
    unsigned rounds = test_rounds(40);
    struct worker workers[WRITERS + READERS + 1];
    pid_t children[COUNT(workers)];

    (void)state;
    use_small_sizes(30000);
    new_repository();
    for (uint32_t i = 0; i < COUNT(workers); i++) {
        workers[i] = (struct worker){i, rounds};
        children[i] = start_child(i < WRITERS             ? write_rounds
                                  : i < WRITERS + READERS ? read_rounds
                                                          : compact_rounds,
                                  &workers[i]);
    }
    for (uint32_t i = 0; i < COUNT(workers); i++)
        assert_int_equal(end_child(children[i]), 0);
    assert_int_equal(run_child(check_final, &rounds), 0);
    assert_int_equal(run_child(check_sound, NULL), 0);
    use_usual_sizes();
}

/* ---- new segments beside recovery -------------------------------------------------------------------- */

/* Every commit starts a segment; the file exists before the catalog knows it. */
static int start_segments(void *context)
{
    const struct worker *w = context;
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);

    for (unsigned round = 0; round < w->rounds; round++) {
        struct spec spec = own_spec(w->number, round, 0);
        must_ok(put_spec(store, &spec));
        commit_store(store);
    }
    wb_store_close(store);
    return 0;
}

/* Opening for writing removes files that the catalog does not know. */
static int recover_again_and_again(void *context)
{
    const pid_t *parent = context;

    while (getppid() == *parent)
        wb_store_close(open_store(dir, WB_STORE_WRITE));
    return 0;
}

static int check_segments(void *context)
{
    const struct worker *w = context;
    struct wb_store *store = open_store(dir, WB_STORE_READ);

    for (uint32_t writer = 0; writer < 2; writer++)
        for (unsigned round = 0; round < w->rounds; round++) {
            struct spec spec = own_spec(writer, round, 0);
            must(holds_spec(store, &spec));
        }
    wb_store_close(store);
    return 0;
}

static void test_new_segments_beside_recovery(void **state)
{
    struct worker first = {0, test_rounds(400)}, second = {1, test_rounds(400)};
    pid_t parent = getpid();

    (void)state;
    use_small_sizes(1);
    new_repository();
    pid_t recovering = start_child(recover_again_and_again, &parent);
    pid_t writing[2] = {start_child(start_segments, &first), start_child(start_segments, &second)};
    assert_int_equal(end_child(writing[0]), 0);
    assert_int_equal(end_child(writing[1]), 0);
    kill(recovering, SIGKILL);
    assert_int_equal(end_child(recovering), -SIGKILL);
    assert_int_equal(run_child(check_segments, &first), 0);
    assert_int_equal(run_child(check_sound, NULL), 0);
    use_usual_sizes();
}

/* ---- a scan over files that were replaced -------------------------------------------------------------- */

static int scan_slowly(void *context)
{
    struct conversation *c = context;
    struct wb_store *store = open_store(dir, WB_STORE_READ);
    struct sights now = {0}, later = {0};
    struct wb_store_scan *scan;

    scan_all(store, &(struct wb_store_scan_options){0}, WITHOUT_EPOCH | WITHOUT_LIFETIME, &now);
    must(now.count == OWN_PAGES);
    must_ok(wb_store_scan_open(store, &(struct wb_store_scan_options){0}, &scan));
    must(scan_some(scan, 3, WITHOUT_EPOCH | WITHOUT_LIFETIME, &later));
    tell(c->from_child[1]);
    await(c->to_child[0]); /* by then, everything was replaced and compacted */
    drain_scan(scan, WITHOUT_EPOCH | WITHOUT_LIFETIME, &later);
    compare_sights("a scan opened before compaction", &later, &now);
    sights_release(&now);
    sights_release(&later);
    wb_store_close(store);
    return 0;
}

static int write_once(void *context)
{
    const unsigned *round = context;
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);

    for (uint32_t page = 0; page < OWN_PAGES; page++) {
        struct spec spec = own_spec(0, page, *round + page % 2 * *round);
        must_ok(put_spec(store, &spec));
    }
    commit_store(store);
    wb_store_close(store);
    return 0;
}

static int count_rows(void *context)
{
    struct wb_store *store = open_store(dir, WB_STORE_READ);
    struct wb_store_stat stat;

    (void)context;
    must_ok(wb_store_stat(store, &stat));
    wb_store_close(store);
    return (int)stat.files;
}

/*
 * Starts a scan in a child and replaces the files that it reads: they contain pages that were dead before. Returns the
 * child, which waits in its scan.
 */
static pid_t replace_files_during_scan(struct conversation *c)
{
    unsigned round = 1;
    bool yes = true;

    use_small_sizes(6000);
    new_repository();
    converse(c);
    assert_int_equal(run_child(write_once, &round), 0);
    round = 3;
    assert_int_equal(run_child(write_once, &round), 0);
    pid_t scanning = start_child(scan_slowly, c);
    await(c->from_child[0]);
    round = 7;
    assert_int_equal(run_child(write_once, &round), 0);
    assert_int_equal(run_child(compact_once, &yes), 0);
    return scanning;
}

static void test_scan_over_replaced_files(void **state)
{
    struct conversation c;
    bool yes = true;

    (void)state;
    pid_t scanning = replace_files_during_scan(&c);
    assert_int_equal(run_child(check_sound, NULL), 0);
    assert_int_equal(count_files(), run_child(count_rows, NULL)); /* no file is kept for the scan, only versions */
    tell(c.to_child[1]);
    assert_int_equal(end_child(scanning), 0);
    assert_int_equal(run_child(compact_once, &yes), 0); /* now the versions that it has read go */
    assert_int_equal(run_child(check_sound, NULL), 0);
    assert_int_equal(count_files(), run_child(count_rows, NULL));
    end_conversation(&c);
    use_usual_sizes();
}

/* A reader that is killed during a scan does not keep versions forever. */
static void test_killed_scan(void **state)
{
    struct conversation c;
    bool yes = true;

    (void)state;
    pid_t scanning = replace_files_during_scan(&c);
    kill(scanning, SIGKILL);
    end_child(scanning);
    assert_int_equal(run_child(compact_once, &yes), 0);
    assert_int_equal(run_child(check_sound, NULL), 0);
    assert_int_equal(count_files(), run_child(count_rows, NULL));
    use_usual_sizes();
}

/* ---- two compactions --------------------------------------------------------------------------------------- */

static bool pause_compaction(void *context, uint64_t done, uint64_t total)
{
    struct conversation *c = context;

    (void)done;
    (void)total;
    tell(c->from_child[1]);
    await(c->to_child[0]);
    close(c->to_child[0]);
    c->to_child[0] = -1;
    return true;
}

static bool go_on(void *context, uint64_t done, uint64_t total)
{
    struct conversation *c = context;

    return c->to_child[0] < 0 || pause_compaction(context, done, total);
}

static int compact_with_pause(void *context)
{
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    struct wb_move_compact_counts compact;

    must_ok(wb_move_compact(store, go_on, context, NULL, NULL, &compact));
    wb_store_close(store);
    return 0;
}

static int compact_refused(void *context)
{
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    struct wb_move_compact_counts compact;

    (void)context;
    must(wb_move_compact(store, NULL, NULL, NULL, NULL, &compact) == WB_E_BUSY);
    must(strstr(wb_error_message(), dir) && strstr(wb_error_message(), "another compaction"));
    wb_store_close(store);
    return 0;
}

static void test_two_compactions(void **state)
{
    struct conversation c;
    unsigned round = 1;

    (void)state;
    use_small_sizes(6000);
    new_repository();
    converse(&c);
    assert_int_equal(run_child(write_once, &round), 0);
    round = 5;
    assert_int_equal(run_child(write_once, &round), 0);
    pid_t first = start_child(compact_with_pause, &c);
    await(c.from_child[0]);
    assert_int_equal(run_child(compact_refused, NULL), 0);
    round = 9; /* a writer does not wait for it */
    assert_int_equal(run_child(write_once, &round), 0);
    tell(c.to_child[1]);
    assert_int_equal(end_child(first), 0);
    assert_int_equal(run_child(check_sound, NULL), 0);
    use_usual_sizes();
}

/* ---- verification beside a writer ------------------------------------------------------------------------------ */

static bool write_meanwhile(void *context, uint64_t done, uint64_t total)
{
    bool *written = context;

    (void)done;
    (void)total;
    if (!*written) {
        *written = true;
        struct wb_store *store = open_store(dir, WB_STORE_WRITE);
        struct spec spec = own_spec(0, 3, 0);
        must_ok(wb_store_touch(store, spec_id(&spec), 99999));
        commit_store(store);
        wb_store_close(store); /* seals a segment with a commit that the verification does not see */
    }
    return true;
}

static int verify_while_written(void *context)
{
    struct wb_store_verify_counts result;
    bool written = false;

    (void)context;
    must_ok(wb_store_verify(dir, NULL, NULL, write_meanwhile, &written, &result));
    must(written && result.problems == 0);
    return 0;
}

static void test_verify_while_written(void **state)
{
    unsigned round = 1;

    (void)state;
    new_repository();
    assert_int_equal(run_child(write_once, &round), 0);
    assert_int_equal(run_child(verify_while_written, NULL), 0);
}

/* ---- a death with the lock in hand ------------------------------------------------------------------------------- */

static int hold_write_lock(void *context)
{
    struct conversation *c = context;
    struct wb_catalog *catalog;
    struct wb_catalog_summary state;
    struct wb_catalog_txn txn;

    must_ok(wb_catalog_open(dir, WB_TREE_WRITE, &catalog));
    must_ok(wb_catalog_txn_write(catalog, &txn));
    must_ok(wb_catalog_summary_get(&txn, &state));
    state.pages += 77; /* never committed */
    state.versions += 77;
    state.captures += 77;
    must_ok(wb_catalog_summary_put(&txn, &state));
    tell(c->from_child[1]);
    pause();
    return 0;
}

static void test_death_with_the_lock(void **state)
{
    struct conversation c;
    unsigned round = 1;

    (void)state;
    new_repository();
    converse(&c);
    assert_int_equal(run_child(write_once, &round), 0);
    for (int i = 0; i < 5; i++) {
        pid_t holder = start_child(hold_write_lock, &c);
        await(c.from_child[0]);
        round = 10 + (unsigned)i;
        pid_t waiting = start_child(write_once, &round);
        usleep(20000);
        kill(holder, SIGKILL);
        assert_int_equal(end_child(holder), -SIGKILL);
        assert_int_equal(end_child(waiting), 0);
    }
    assert_int_equal(run_child(check_sound, NULL), 0);
}

/* ---- little address space ------------------------------------------------------------------------ */

/* The address sanitizer reserves terabytes for itself. */
#ifndef WB_TEST_SANITIZED
static int write_within_limits(void *context)
{
    struct rlimit limit = {400 << 20, 400 << 20};

    must(setrlimit(RLIMIT_AS, &limit) == 0);
    must(write_once(context) == 0);
    return check_sound(NULL);
}
#endif

static void test_little_address_space(void **state)
{
    (void)state;
#ifndef WB_TEST_SANITIZED
    unsigned round = 1;

    new_repository();
    assert_int_equal(run_child(write_within_limits, &round), 0);
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_at_once),
        cmocka_unit_test(test_new_segments_beside_recovery),
        cmocka_unit_test(test_scan_over_replaced_files),
        cmocka_unit_test(test_killed_scan),
        cmocka_unit_test(test_two_compactions),
        cmocka_unit_test(test_verify_while_written),
        cmocka_unit_test(test_death_with_the_lock),
        cmocka_unit_test(test_little_address_space),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
