/*
 * test_snapshots.c - snapshots that several processes seal, drop and read at the same time.
 */
#include "conversation.h"
#include "shared_repository.h"

enum { OWN_PAGES = 40 };

/* A new version of each page. */
static int write_once(void *context)
{
    const unsigned *round = context;
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);

    for (uint32_t page = 0; page < OWN_PAGES; page++) {
        struct spec spec = {.site = page % 3, .number = page, .time_ms = *round * 1000, .size = 400 + page * 20};
        must_ok(put_spec(store, &spec));
    }
    commit_store(store);
    wb_store_close(store);
    return 0;
}

/* Returns 0 if this process has sealed the name, 1 if another one was faster. */
static int seal_name(void *context)
{
    const struct wb_store_holder person = {.kind = WB_STORE_HOLDER_PERSON};
    struct conversation *c = context;
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    struct wb_store_snapshot snapshot;

    await(c->to_child[0]);
    int err = wb_store_seal(store, WB_SLICE_LIT("same"), &person, &snapshot);
    must(err == 0 || err == WB_E_INVALID);
    wb_store_snapshot_release(&snapshot);
    wb_store_close(store);
    return err == 0 ? 0 : 1;
}

static int drop_name(void *context)
{
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    struct wb_store_snapshot snapshot;
    const char *name = context;

    must_ok(wb_store_snapshot_find(store, wb_slice_str(name), &snapshot));
    must_ok(wb_store_drop(store, snapshot.number));
    must(wb_store_drop(store, snapshot.number) == WB_E_NOTFOUND);
    wb_store_snapshot_release(&snapshot);
    wb_store_close(store);
    return 0;
}

/* Several processes seal a snapshot of the same name at once: exactly one succeeds. */
static void test_same_name(void **state)
{
    enum { SEALERS = 4 };
    unsigned round = 1, rounds = test_rounds(20);

    (void)state;
    new_repository();
    assert_int_equal(run_child(write_once, &round), 0);
    for (unsigned i = 0; i < rounds; i++) {
        struct conversation c;
        pid_t sealers[SEALERS];
        unsigned winners = 0;
        converse(&c);
        for (size_t j = 0; j < SEALERS; j++)
            sealers[j] = start_child(seal_name, &c);
        for (size_t j = 0; j < SEALERS; j++)
            tell(c.to_child[1]);
        for (size_t j = 0; j < SEALERS; j++) {
            int status = end_child(sealers[j]);
            assert_true(status == 0 || status == 1);
            winners += status == 0;
        }
        assert_int_equal(winners, 1);
        assert_int_equal(run_child(drop_name, "same"), 0);
        end_conversation(&c);
    }
    assert_int_equal(run_child(check_sound, NULL), 0);
}

/* Reads the snapshot half, and the rest when told. */
static int read_snapshot_slowly(void *context)
{
    struct conversation *c = context;
    struct wb_store *store = open_store(dir, WB_STORE_READ);
    struct sights now = {0}, later = {0};
    struct wb_store_scan *scan;
    struct wb_store_scan_options options = {.snapshot = 1};

    scan_all(store, &options, WITHOUT_EPOCH, &now);
    must(now.count == OWN_PAGES);
    must_ok(wb_store_scan_open(store, &options, &scan));
    scan_some(scan, OWN_PAGES / 2, WITHOUT_EPOCH, &later);
    tell(c->from_child[1]);
    await(c->to_child[0]); /* by then, it was dropped and its versions were given up */
    drain_scan(scan, WITHOUT_EPOCH, &later);
    compare_sights("a scan of a snapshot that was dropped", &later, &now);
    must(wb_store_scan_open(store, &options, &scan) == WB_E_NOTFOUND);
    sights_release(&now);
    sights_release(&later);
    wb_store_close(store);
    return 0;
}

static int seal_once(void *context)
{
    const struct wb_store_holder person = {.kind = WB_STORE_HOLDER_PERSON};
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    struct wb_store_snapshot snapshot;

    must_ok(wb_store_seal(store, wb_slice_str(context), &person, &snapshot));
    wb_store_snapshot_release(&snapshot);
    wb_store_close(store);
    return 0;
}

/* A reader finishes although its snapshot is dropped and compacted away; then the space is free. */
static void test_reader_of_a_dropped_snapshot(void **state)
{
    struct conversation c;
    unsigned round = 1;
    bool yes = true, no = false;
    bool hash = test_design().read.organisation == WB_ORGANISATION_HASH; /* a scan holds no file of buckets */

    (void)state;
    use_small_sizes(6000);
    new_repository();
    converse(&c);
    assert_int_equal(run_child(write_once, &round), 0);
    assert_int_equal(run_child(seal_once, "old"), 0);
    pid_t reading = start_child(read_snapshot_slowly, &c);
    await(c.from_child[0]);
    for (round = 5; round < 8; round++) {
        assert_int_equal(run_child(write_once, &round), 0);
        if (round == 5)
            assert_int_equal(run_child(drop_name, "old"), 0);
        assert_int_equal(run_child(compact_once, &no), 0);
    }
    unsigned held = count_files();
    tell(c.to_child[1]);
    assert_int_equal(end_child(reading), 0);
    assert_int_equal(run_child(compact_once, &yes), 0);
    assert_int_equal(run_child(compact_once, &no), 0); /* deletes what the first one replaced */
    assert_true(count_files() < held || (hash && count_files() == held));
    assert_int_equal(run_child(check_sound, NULL), 0);
    end_conversation(&c);
    use_usual_sizes();
}

static int find_without_name(void *context)
{
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    struct wb_store_snapshot snapshot;

    (void)context;
    must(seal_store(store) == 1);
    must(wb_store_snapshot_find(store, WB_SLICE_EMPTY, &snapshot) == WB_E_NOTFOUND);
    must(wb_store_snapshot_find(store, WB_SLICE_LIT("0"), &snapshot) == WB_E_NOTFOUND);
    must_ok(wb_store_snapshot_find(store, WB_SLICE_LIT("1"), &snapshot));
    must(snapshot.number == 1 && snapshot.name[0] == '\0');
    wb_store_snapshot_release(&snapshot);
    wb_store_close(store);
    return 0;
}

/* The empty name is not that of the snapshots without a name. */
static void test_no_name(void **state)
{
    (void)state;
    new_repository();
    assert_int_equal(run_child(find_without_name, NULL), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_name),
        cmocka_unit_test(test_no_name),
        cmocka_unit_test(test_reader_of_a_dropped_snapshot),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
