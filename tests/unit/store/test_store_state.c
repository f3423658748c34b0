/*
 * test_store_state.c - states of repositories that are held and carried elsewhere, while others write, compact and take
 * down. The copy has exactly the state, verifies clean, and goes on like the original.
 */
#include "state_support.h"
#include "../faultkinds.h"
#include "os/fault.h"
#include "os/path.h"

#include <pthread.h>
#include <signal.h>
#include <unistd.h>

/* ---- every design --------------------------------------------------------------------------------------------- */

static void test_all_designs(void **state)
{
    uint64_t chance = test_seed();
    char from[DIR_MAX], targets[DIR_MAX], to[DIR_MAX], was[DIR_MAX];
    struct wb_move_compact_counts compacted;
    struct wb_store_state *held;

    (void)state;
    use_small_sizes(60000);
    for (size_t i = 0; i < DESIGNS; i++) {
        bool batch = options_of(i).design.batch;
        fprintf(stderr, "# %s\n", designs[i].design);
        test_dir(from);
        test_dir(targets);
        path_in(targets, "to", to);
        path_in(targets, "was", was);
        make_source(from, i, &chance);
        copy_repository(from, was);
        must_ok(wb_store_state_hold(from, NULL, &held));
        struct wb_store *store = open_store(from, WB_STORE_WRITE);
        fill(store, &chance, batch, 2000000);
        must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &compacted));
        carry(held, to);
        wb_store_close(store);
        wb_store_state_let_go(held);
        verify_clean(to);
        compare_dirs(to, was);
        go_on(to, batch, was, batch, chance);
        verify_clean(to);
        verify_clean(from);
    }
    use_usual_sizes();
}

/* State after state is added to a shelf, by the rows and bytes that have changed; a repository is made of each. */
static void test_one_after_the_other(void **state)
{
    enum { STATES = 6 };
    uint64_t chance = test_seed();
    char from[DIR_MAX], targets[DIR_MAX], to[DIR_MAX], was[DIR_MAX];
    struct wb_move_compact_counts compacted;
    struct shelf shelf;

    (void)state;
    use_small_sizes(60000);
    for (size_t i = 0; i < DESIGNS; i++) {
        bool batch = options_of(i).design.batch;
        fprintf(stderr, "# %s\n", designs[i].design);
        test_dir(from);
        test_dir(targets);
        path_in(targets, "to", to);
        path_in(targets, "was", was);
        make_source(from, i, &chance);
        shelf_init(&shelf);
        for (unsigned s = 0; s < STATES; s++) {
            struct wb_store *store = open_store(from, WB_STORE_WRITE);
            if (s)
                fill(store, &chance, batch && s % 2, 2000000 + s * 100000);
            if (chance_one_in(&chance, 3))
                must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &compacted));
            if (chance_one_in(&chance, 2)) {
                wb_store_close(store);
                store = NULL;
            }
            copy_repository(from, was);
            struct wb_store_state *held = shelf_hold(&shelf, from);
            if (store)
                fill(store, &chance, false, 2000000 + s * 100000 + 50000);
            shelf_add(&shelf, held, from, !chance_one_in(&chance, 5));
            shelf_load(&shelf, held, to);
            wb_store_state_let_go(held);
            wb_store_close(store);
            verify_clean(to);
            compare_dirs(to, was);
            verify_clean(from);
            remove_tree(to);
            remove_tree(was);
        }
        shelf_release(&shelf);
        remove_tree(from);
    }
    use_usual_sizes();
}

/* ---- facts ---------------------------------------------------------------------------------------------------- */

static struct wb_store_state_facts facts_of(const char *dir)
{
    struct wb_store_state *held;
    struct wb_store_state_facts facts;

    must_ok(wb_store_state_hold(dir, NULL, &held));
    wb_store_state_facts(held, &facts);
    wb_store_state_let_go(held);
    return facts;
}

/* Takedowns are counted, and open until a compaction has carried them out; other removals are not. */
static void test_takedowns(void **state)
{
    struct wb_move_compact_counts compacted;
    char dir[DIR_MAX];

    (void)state;
    use_small_sizes(60000);
    for (size_t i = 0; i < DESIGNS; i++) {
        struct wb_store_options options = options_of(i);
        struct wb_move_transfer_counts transferred;
        struct wb_store_state_facts before, facts;
        test_dir(dir);
        must_ok(wb_store_create(dir, &options));
        struct wb_store *store = open_store(dir, WB_STORE_WRITE);
        for (uint32_t n = 0; n < 20; n++)
            must_ok(put_spec(store, &(struct spec){.site = 1, .number = n, .time_ms = 1000, .size = 900}));
        commit_store(store);
        if (options.design.batch)
            must_ok(wb_move_transfer(store, NULL, NULL, NULL, NULL, &transferred));
        before = facts_of(dir);
        must(before.pages == 20 && before.takedowns == 0 && before.takedowns_open == 0 && before.commit > 0);
        must(before.parts == (options.design.batch ? 2 : 1));
        must_ok(remove_spec(store, &(struct spec){.site = 1, .number = 1, .time_ms = 2000}, false));
        commit_store(store);
        facts = facts_of(dir);
        must(facts.takedowns == 0 && facts.takedowns_open == 0);
        for (uint32_t n = 2; n < 4; n++)
            must_ok(remove_spec(store, &(struct spec){.site = 1, .number = n, .time_ms = 2000}, true));
        commit_store(store);
        facts = facts_of(dir);
        must(facts.takedowns >= 2 && facts.commit > before.commit);
        /* A bucket file may have been written anew by the same commit. */
        must(facts.takedowns_open > 0 || options.design.read.organisation == WB_ORGANISATION_HASH);
        before = facts;
        must_ok(wb_move_compact(store, NULL, NULL, NULL, NULL, &compacted));
        facts = facts_of(dir);
        must(facts.takedowns == before.takedowns && facts.takedowns_open == 0);
        wb_store_close(store);
        remove_tree(dir);
    }
    use_usual_sizes();
}

static void test_snapshots(void **state)
{
    uint64_t chance = test_seed();
    struct wb_store_state *held;
    char dir[DIR_MAX];

    (void)state;
    test_dir(dir);
    make_source(dir, 0, &chance);
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    uint32_t number = seal_store(store), later;
    must_ok(wb_store_state_hold(dir, NULL, &held));
    later = seal_store(store);
    must_ok(wb_store_drop(store, number));
    wb_store_close(store);
    must(wb_store_state_has_snapshot(held, number) && !wb_store_state_has_snapshot(held, later));
    wb_store_state_let_go(held);
    must_ok(wb_store_state_hold(dir, NULL, &held));
    must(!wb_store_state_has_snapshot(held, number) && wb_store_state_has_snapshot(held, later));
    wb_store_state_let_go(held);
}

/* ---- marks
 * ----------------------------------------------------------------------------------------------------------- */

static int count_row(void *context, unsigned table, struct wb_slice key, struct wb_slice value)
{
    (void)table;
    (void)key;
    (void)value;
    ++*(uint64_t *)context;
    return 0;
}

/* A mark of this state, of another repository, of a copy, one that has given way, and what is no mark. */
static void test_marks(void **state)
{
    uint64_t chance = test_seed(), rows = 0;
    char dir[DIR_MAX], other[DIR_MAX], targets[DIR_MAX], copy[DIR_MAX];
    struct wb_buf mark = WB_BUF_INIT, later = WB_BUF_INIT;
    struct wb_store_state *held, *older;

    (void)state;
    use_small_sizes(60000);
    test_dir(dir);
    test_dir(other);
    test_dir(targets);
    path_in(targets, "copy", copy);
    make_source(dir, 0, &chance);
    make_source(other, 8, &chance);
    must_ok(wb_store_state_hold(dir, NULL, &held));
    must_ok(wb_store_state_mark(held, &mark));
    must(mark.len < 1000);
    must_ok(wb_store_state_rows_since_mark(held, 0, wb_buf_slice(&mark), count_row, &rows));
    must(rows == 0);
    carry(held, copy);
    struct wb_store_state *second;
    must_ok(wb_store_state_hold(copy, NULL, &second));
    must(wb_store_state_rows_since_mark(second, 0, wb_buf_slice(&mark), count_row, &rows) == WB_E_NOTFOUND);
    wb_store_state_let_go(second);
    must_ok(wb_store_unmark(copy, wb_buf_slice(&mark))); /* is not there */
    must_ok(wb_store_unmark(other, wb_buf_slice(&mark)));
    older = held;
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    fill(store, &chance, false, 5000000);
    wb_store_close(store);
    must_ok(wb_store_state_hold(dir, NULL, &held));
    must_ok(wb_store_state_rows_since_mark(held, 0, wb_buf_slice(&mark), count_row, &rows));
    uint64_t since = rows;
    must(since > 0);
    rows = 0;
    must_ok(wb_store_state_rows_since(held, 0, older, count_row, &rows));
    must(rows == since);
    for (size_t at = 0; at < mark.len; at++) {
        mark.ptr[at] ^= 1;
        must(wb_store_state_rows_since_mark(held, 0, wb_buf_slice(&mark), count_row, &rows) == WB_E_NOTFOUND);
        must_ok(wb_store_unmark(dir, wb_buf_slice(&mark)));
        mark.ptr[at] ^= 1;
        must(wb_store_state_rows_since_mark(held, 0, wb_slice(mark.ptr, at), count_row, &rows) == WB_E_NOTFOUND);
    }
    for (unsigned i = 0; i < 8; i++) /* the ninth */
        must_ok(wb_store_state_mark(held, &later));
    must(wb_store_state_rows_since_mark(held, 0, wb_buf_slice(&mark), count_row, &rows) == WB_E_NOTFOUND);
    must_ok(wb_store_state_rows_since_mark(held, 0, wb_buf_slice(&later), count_row, &rows));
    must_ok(wb_store_unmark(dir, wb_buf_slice(&later)));
    must(wb_store_state_rows_since_mark(held, 0, wb_buf_slice(&later), count_row, &rows) == WB_E_NOTFOUND);
    wb_store_state_let_go(held);
    wb_store_state_let_go(older);
    verify_clean(dir);
    wb_buf_release(&mark);
    wb_buf_release(&later);
    use_usual_sizes();
}

/* ---- nodes
 * ----------------------------------------------------------------------------------------------------------- */

/* Nodes outside of the repository are inside of a copy. One that is down is named. */
static void test_nodes_outside(void **state)
{
    static const char *const kinds[] = {"Incr[hash,log]", "Incr[uniform,hash]",
                                        "Batch[U(hash,log),R(hash,hashed-log)]"};
    uint64_t chance = test_seed();
    char base[DIR_MAX], from[DIR_MAX], was[DIR_MAX], to[DIR_MAX], one[DIR_MAX], two[DIR_MAX], away[DIR_MAX];
    const char *nodes[] = {one, two};
    struct wb_store_state *held;

    (void)state;
    use_small_sizes(60000);
    for (size_t i = 0; i < COUNT(kinds); i++) {
        struct wb_store_options options = {.nodes = {nodes, 2}};
        test_dir(base);
        path_in(base, "from", from);
        path_in(base, "to", to);
        path_in(base, "was", was);
        path_in(base, "one", one);
        path_in(base, "two", two);
        path_in(base, "away", away);
        must_ok(wb_design_parse(wb_slice_str(kinds[i]), &options.design));
        must_ok(wb_store_create(from, &options));
        struct wb_store *store = open_store(from, WB_STORE_WRITE);
        fill(store, &chance, options.design.batch, 1000000);
        wb_store_close(store);
        must_ok(wb_store_state_hold(from, NULL, &held));
        carry(held, to);
        wb_store_state_let_go(held);
        verify_clean(to);
        compare_dirs(to, from);
        must(rename(two, away) == 0); /* the copy does not need it */
        verify_clean(to);
        must(wb_store_state_hold(from, NULL, &held) == WB_E_DOWN);
        must(strstr(wb_error_message(), two) != NULL);
        must(rename(away, two) == 0);
        go_on(to, options.design.batch, from, options.design.batch, chance);
        verify_clean(to);
        remove_tree(base);
    }
    use_usual_sizes();
}

/* ---- many threads
 * ------------------------------------------------------------------------------------------------------ */

struct reading {
    struct wb_store_state *state;
    const char *const *names;
    const uint64_t *bytes, *hashes;
    size_t count;
    uint64_t chance;
};

struct names {
    char *names[400];
    uint64_t bytes[400], hashes[400];
    size_t count;
};

static uint64_t hash_of(struct wb_store_state *state, const char *name, uint64_t bytes)
{
    char *all = malloc(bytes + 1);
    uint64_t hash = 7;

    must(all != NULL);
    must_ok(wb_store_state_read(state, name, 0, bytes, all));
    for (uint64_t i = 0; i < bytes; i++)
        hash = hash * 31 + (uint8_t)all[i];
    free(all);
    return hash;
}

static int gather_name(void *context, const struct wb_store_state_file *file)
{
    struct names *names = context;

    must(names->count < COUNT(names->names));
    names->names[names->count] = strdup(file->name);
    names->bytes[names->count++] = file->bytes;
    return 0;
}

static void *read_files(void *context)
{
    struct reading *r = context;

    for (unsigned i = 0; i < 300; i++) {
        size_t at = chance_below(&r->chance, r->count);
        must(hash_of(r->state, r->names[at], r->bytes[at]) == r->hashes[at]);
    }
    return NULL;
}

/* More files than stay open, read by several threads. */
static void test_threads(void **state)
{
    uint64_t chance = test_seed();
    static struct names names;
    struct reading readings[4];
    pthread_t threads[4];
    struct wb_store_state *held;
    char dir[DIR_MAX];

    (void)state;
    use_small_sizes(3000);
    test_dir(dir);
    make_source(dir, 2, &chance);
    struct wb_store *store = open_store(dir, WB_STORE_WRITE);
    while (names.count < 70) {
        fill(store, &chance, false, 6000000);
        wb_store_state_let_go(names.count ? held : NULL);
        names.count = 0;
        must_ok(wb_store_state_hold(dir, NULL, &held));
        must_ok(wb_store_state_each_file(held, gather_name, &names));
    }
    wb_store_close(store);
    for (size_t i = 0; i < names.count; i++)
        names.hashes[i] = hash_of(held, names.names[i], names.bytes[i]);
    for (size_t i = 0; i < COUNT(threads); i++) {
        readings[i] = (struct reading){
            held, (const char *const *)names.names, names.bytes, names.hashes, names.count, chance_next(&chance)};
        must(pthread_create(&threads[i], NULL, read_files, &readings[i]) == 0);
    }
    for (size_t i = 0; i < COUNT(threads); i++)
        pthread_join(threads[i], NULL);
    char byte;
    must(wb_store_state_read(held, names.names[0], names.bytes[0], 1, &byte) == WB_E_INVALID);
    must(wb_store_state_read(held, names.names[0], UINT64_MAX, 2, &byte) == WB_E_INVALID);
    must(wb_store_state_read(held, "pages/99999999.seg", 0, 1, &byte) == WB_E_NOTFOUND);
    wb_store_state_let_go(held);
    use_usual_sizes();
}

/* ---- failures
 * ---------------------------------------------------------------------------------------------------------- */

/* Everything in the life of a state, once. */
static int whole_way(const char *from, const char *to)
{
    struct wb_store_state *held = NULL;
    struct wb_buf mark = WB_BUF_INIT, stamps = WB_BUF_INIT;
    uint64_t rows = 0;
    int err = wb_store_state_hold(from, NULL, &held);

    if (err == 0)
        err = wb_store_state_stamps(held, &stamps);
    if (err == 0)
        err = wb_store_state_mark(held, &mark);
    if (err == 0)
        err = wb_store_state_rows_since_mark(held, 0, wb_buf_slice(&mark), count_row, &rows);
    if (mark.len) {
        int unmarked = wb_store_unmark(from, wb_buf_slice(&mark));
        err = err < 0 ? err : unmarked;
    }
    if (err == 0)
        err = carry_try(held, to);
    wb_store_state_let_go(held);
    wb_buf_release(&mark);
    wb_buf_release(&stamps);
    return err;
}

/*
 * Each operation fails once: it is an error, which leaves nothing behind, and the next attempt succeeds; so do writers
 * of the source.
 */
static void test_faults(void **state)
{
    static const size_t few[] = {2, 4, 6, 7};
    uint64_t chance = test_seed();
    char from[DIR_MAX], targets[DIR_MAX], to[DIR_MAX];

    (void)state;
    use_small_sizes(60000);
    for (size_t d = 0; d < COUNT(few); d++) {
        unsigned step = 1 + 300 / test_rounds(100);
        test_dir(from);
        test_dir(targets);
        path_in(targets, "to", to);
        make_source(from, few[d], &chance);
        for (size_t k = 0; k < COUNT(fault_kinds); k++)
            for (uint64_t nth = 1;; nth += 1 + chance_below(&chance, step)) {
                wb_fault_arm(fault_kinds[k].kind, nth, fault_kinds[k].error);
                int err = whole_way(from, to);
                bool struck = wb_fault_struck();
                wb_fault_disarm();
                if (!struck) {
                    must_ok(err);
                    remove_tree(to);
                    break;
                }
                if (err < 0)
                    must(wb_path_kind(to) == WB_PATH_NONE);
                else
                    remove_tree(to);
            }
        must_ok(whole_way(from, to));
        verify_clean(to);
        compare_dirs(to, from);
        struct wb_store *store = open_store(from, WB_STORE_WRITE);
        fill(store, &chance, false, 7000000);
        wb_store_close(store);
        verify_clean(from);
        remove_tree(from);
        remove_tree(targets);
    }
    use_usual_sizes();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_all_designs), cmocka_unit_test(test_one_after_the_other),
        cmocka_unit_test(test_takedowns),   cmocka_unit_test(test_snapshots),
        cmocka_unit_test(test_marks),       cmocka_unit_test(test_nodes_outside),
        cmocka_unit_test(test_threads),     cmocka_unit_test(test_faults),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
