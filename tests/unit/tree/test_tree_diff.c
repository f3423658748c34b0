/*
 * test_tree_diff.c - the rows in which two states differ, and marks, which keep states after everybody has ended.
 * Random transactions, with readers, marks and reopening: what a difference says, applied to a copy of the older state,
 * gives the newer one. Marked states stay intact whatever happens, also when the writer is killed. Differences read
 * only what has changed. Damage and failures are errors, and never a wrong difference.
 */
#include "tree_support.h"
#include "os/fault.h"
#include "os/path.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>

enum { TABLES = 3, MARKED_MAX = 8, HELD_MAX = 2 };

/* ---- a difference, applied ------------------------------------------------------------------------------------ */

struct applying {
    struct twin_table *table;
    char last[WB_TREE_KEY_MAX];
    size_t last_len, rows;
};

static int apply_change(void *context, struct wb_slice key, struct wb_slice value)
{
    struct applying *a = context;
    const struct twin_row *was = twin_get(a->table, key);

    must(a->rows == 0 || wb_slice_compare(wb_slice(a->last, a->last_len), key) < 0);
    memcpy(a->last, key.ptr, a->last_len = key.len);
    a->rows++;
    must(value.ptr ? !was || !wb_slice_equal(wb_slice(was->value, was->value_len), value) : was != NULL);
    if (value.ptr)
        twin_put(a->table, key, value);
    else
        must(twin_delete(a->table, key));
    return 0;
}

static void expect_difference(struct wb_tree *tree, const struct wb_tree_state *a, const struct twin_tree *twin_a,
                              const struct wb_tree_state *b, const struct twin_tree *twin_b)
{
    static struct twin_tree applied;

    twin_copy(twin_a, &applied);
    for (unsigned i = 0; i < TABLES; i++) {
        struct applying applying = {.table = &applied.tables[i]};
        must_ok(wb_tree_diff(tree, a, b, i, apply_change, &applying));
        must(applied.tables[i].count == twin_b->tables[i].count);
        for (size_t r = 0; r < applied.tables[i].count; r++) {
            const struct twin_row *x = &applied.tables[i].rows[r], *y = &twin_b->tables[i].rows[r];
            must(wb_slice_equal(wb_slice(x->key, x->key_len), wb_slice(y->key, y->key_len)));
            must(wb_slice_equal(wb_slice(x->value, x->value_len), wb_slice(y->value, y->value_len)));
        }
    }
}

/* ---- random transactions -------------------------------------------------------------------------------------- */

/* A state that is kept, by a mark or by a reader, and what is in it. */
struct kept {
    bool used;
    struct wb_tree *reader; /* NULL: by the mark */
    struct wb_tree_marked mark;
    struct twin_tree twin;
};

struct model {
    uint64_t chance, keys;
    struct wb_tree *tree;
    struct twin_tree now, committed;
    struct kept marks[MARKED_MAX], held[HELD_MAX];
};

static void do_op(struct model *m)
{
    char key_room[WB_TREE_KEY_MAX], value_room[WB_TREE_VALUE_MAX];
    unsigned table = (unsigned)chance_below(&m->chance, TABLES);
    struct twin_table *twin = &m->now.tables[table];
    struct wb_slice key = random_key(&m->chance, m->keys, table == 0, key_room);

    if (chance_one_in(&m->chance, 3000)) {
        must_ok(wb_tree_clear(m->tree, table));
        twin->count = 0;
    } else if (chance_one_in(&m->chance, 2)) {
        struct wb_slice value = random_value(&m->chance, value_room);
        must_ok(wb_tree_put(m->tree, table, key, value));
        twin_put(twin, key, value);
    } else {
        must(wb_tree_delete(m->tree, table, key) == (twin_delete(twin, key) ? 0 : WB_E_NOTFOUND));
    }
}

/* Marks the newest state, or one that a reader holds, in a transaction that may change something and may be aborted. */
static void mark_something(struct model *m)
{
    struct wb_tree_marked mark, again;
    struct wb_tree_state newest;
    char bytes[WB_TREE_MARK_BYTES_MAX];
    struct kept *from = &m->held[chance_below(&m->chance, HELD_MAX)], *at = &m->marks[0];
    bool keep = !chance_one_in(&m->chance, 4), marked;

    must_ok(wb_tree_hold(m->tree, &newest));
    must_ok(wb_tree_begin(m->tree));
    const struct wb_tree_state *state = from->used ? &from->mark.state : &newest;
    for (uint64_t i = chance_below(&m->chance, 5); i > 0; i--)
        do_op(m);
    must_ok(wb_tree_mark(m->tree, state, &mark));
    for (uint64_t i = chance_below(&m->chance, 5); i > 0; i--)
        do_op(m);
    if (keep) {
        for (unsigned i = 0; i < MARKED_MAX && at->used; i++)
            if (!m->marks[i].used || m->marks[i].mark.state.txn < at->mark.state.txn)
                at = &m->marks[i];
        twin_copy(from->used ? &from->twin : &m->committed, &at->twin);
        at->used = true;
        must(wb_tree_mark_decode(wb_slice(bytes, wb_tree_mark_encode(&mark, bytes)), &again));
        at->mark = again;
        must_ok(wb_tree_commit(m->tree));
        twin_copy(&m->now, &m->committed);
    } else {
        wb_tree_abort(m->tree);
        twin_copy(&m->committed, &m->now);
    }
    must_ok(wb_tree_is_marked(m->tree, &mark, &marked));
    must(marked == keep);
    wb_tree_let_go(m->tree, newest.txn);
}

static void unmark_something(struct model *m)
{
    struct kept *at = &m->marks[chance_below(&m->chance, MARKED_MAX)];
    bool marked;

    if (!at->used)
        return;
    must_ok(wb_tree_begin(m->tree));
    must(wb_tree_unmark(m->tree, &at->mark));
    must(!wb_tree_unmark(m->tree, &at->mark));
    must_ok(wb_tree_commit(m->tree));
    must_ok(wb_tree_is_marked(m->tree, &at->mark, &marked));
    must(!marked);
    at->used = false;
}

static void change_reader(struct model *m)
{
    struct kept *held = &m->held[chance_below(&m->chance, HELD_MAX)];

    if (held->used) {
        wb_tree_close(held->reader);
        held->used = false;
        return;
    }
    must_ok(wb_tree_open(path, WB_TREE_READ, &held->reader));
    must_ok(wb_tree_hold(held->reader, &held->mark.state));
    twin_copy(&m->committed, &held->twin);
    held->used = true;
}

/* A fresh handle, which has no pages in memory, sees what every kept state has, and how it differs from another one. */
static void compare_kept(struct model *m)
{
    struct kept *all[MARKED_MAX + HELD_MAX + 1], newest = {.used = true};
    struct wb_tree *fresh;
    size_t count = 0;
    bool marked;

    must_ok(wb_tree_open(path, WB_TREE_READ, &fresh));
    must_ok(wb_tree_hold(fresh, &newest.mark.state));
    newest.twin = m->committed;
    all[count++] = &newest;
    for (size_t i = 0; i < MARKED_MAX; i++)
        if (m->marks[i].used) {
            must_ok(wb_tree_is_marked(fresh, &m->marks[i].mark, &marked));
            must(marked);
            all[count++] = &m->marks[i];
        }
    for (size_t i = 0; i < HELD_MAX; i++)
        if (m->held[i].used)
            all[count++] = &m->held[i];
    must(check_tree(fresh, &newest.mark.state) == 0);
    for (size_t i = 0; i < count; i++) {
        const struct kept *other = all[chance_below(&m->chance, count)];
        compare_tables(fresh, &all[i]->mark.state, &all[i]->twin, TABLES);
        expect_difference(fresh, &all[i]->mark.state, &all[i]->twin, &other->mark.state, &other->twin);
        expect_difference(fresh, &other->mark.state, &other->twin, &all[i]->mark.state, &all[i]->twin);
    }
    wb_tree_close(fresh);
}

static void run_model(uint64_t keys, unsigned rounds, unsigned ops)
{
    struct model m = {.chance = test_seed(), .keys = keys};

    must_ok(wb_tree_open(path, WB_TREE_CREATE, &m.tree));
    for (unsigned i = 0; i < rounds; i++) {
        must_ok(wb_tree_begin(m.tree));
        for (uint64_t n = chance_below(&m.chance, chance_one_in(&m.chance, 4) ? ops : 8); n > 0; n--)
            do_op(&m);
        must_ok(wb_tree_commit(m.tree));
        twin_copy(&m.now, &m.committed);
        if (chance_one_in(&m.chance, 3))
            mark_something(&m);
        if (chance_one_in(&m.chance, 8))
            unmark_something(&m);
        if (chance_one_in(&m.chance, 5))
            change_reader(&m);
        if (chance_one_in(&m.chance, 5)) {
            wb_tree_close(m.tree);
            must_ok(wb_tree_open(path, WB_TREE_WRITE, &m.tree));
        }
        if (chance_one_in(&m.chance, 6))
            compare_kept(&m);
    }
    compare_kept(&m);
    for (unsigned i = 0; i < HELD_MAX; i++) {
        if (m.held[i].used)
            wb_tree_close(m.held[i].reader);
        twin_release(&m.held[i].twin);
    }
    for (unsigned i = 0; i < MARKED_MAX; i++)
        twin_release(&m.marks[i].twin);
    wb_tree_close(m.tree);
    twin_release(&m.now);
    twin_release(&m.committed);
}

static void test_small(void **state)
{
    (void)state;
    run_model(60, test_rounds(300), 60);
}

static void test_large(void **state)
{
    (void)state;
    run_model(3000, test_rounds(100), 4000);
}

/* ---- what it costs -------------------------------------------------------------------------------------------- */

enum { MANY = 40000 };

static void put_number(struct wb_tree *tree, uint64_t row, uint64_t value)
{
    char key[16] = {0}, bytes[40] = {0};

    wb_put64_be(key, row);
    wb_put64(bytes, value);
    must_ok(wb_tree_put(tree, 0, wb_slice(key, sizeof key), wb_slice(bytes, sizeof bytes)));
}

static int count_reads(void *context, enum wb_fault_kind kind, const char *where)
{
    (void)where;
    *(uint64_t *)context += kind == WB_FAULT_READ;
    return 0;
}

static int count_change(void *context, struct wb_slice key, struct wb_slice value)
{
    (void)key;
    (void)value;
    ++*(uint64_t *)context;
    return 0;
}

static void grow(struct wb_tree **tree_out, struct wb_tree_marked *mark_out)
{
    struct wb_tree_state state;

    must_ok(wb_tree_open(path, WB_TREE_CREATE, tree_out));
    must_ok(wb_tree_begin(*tree_out));
    for (uint64_t i = 0; i < MANY; i++)
        put_number(*tree_out, i, 1);
    must_ok(wb_tree_commit(*tree_out));
    must_ok(wb_tree_hold(*tree_out, &state));
    must_ok(wb_tree_begin(*tree_out));
    must_ok(wb_tree_mark(*tree_out, &state, mark_out));
    must_ok(wb_tree_commit(*tree_out));
    wb_tree_let_go(*tree_out, state.txn);
}

/* Rows far apart: for each of them, a page of each level and state is read, and nothing else. */
static void test_reads_what_changed(void **state)
{
    enum { CHANGES = 20, LEVELS = 3 };
    uint64_t reads = 0, changes = 0;
    struct wb_tree_marked mark;
    struct wb_tree_state newest;
    struct wb_tree *tree;

    (void)state;
    grow(&tree, &mark);
    for (unsigned i = 0; i < CHANGES; i++) {
        must_ok(wb_tree_begin(tree));
        put_number(tree, (uint64_t)i * (MANY / CHANGES), 2);
        must_ok(wb_tree_commit(tree));
    }
    wb_tree_close(tree);
    must_ok(wb_tree_open(path, WB_TREE_READ, &tree));
    must_ok(wb_tree_hold(tree, &newest));
    must(newest.roots[0].level < LEVELS && newest.pages > 600);
    wb_fault_ask(count_reads, &reads);
    must_ok(wb_tree_diff(tree, &mark.state, &newest, 0, count_change, &changes));
    wb_fault_ask(NULL, NULL);
    must(changes == CHANGES);
    assert_in_range(reads, CHANGES, 2 * LEVELS * CHANGES);
    reads = 0;
    wb_fault_ask(count_reads, &reads);
    must_ok(wb_tree_diff(tree, &newest, &newest, 0, count_change, &changes));
    wb_fault_ask(NULL, NULL);
    must(reads == 0 && changes == CHANGES);
    wb_tree_close(tree);
}

/* The file has the pages of the marked state and of the newest one, however many commits there were in between. */
static void test_pages_come_back(void **state)
{
    struct wb_tree_marked mark;
    struct wb_tree_state once, now;
    struct wb_tree *tree;

    (void)state;
    grow(&tree, &mark);
    must_ok(wb_tree_look(tree, &once));
    for (uint64_t n = 2; n < 12; n++) {
        must_ok(wb_tree_begin(tree));
        for (uint64_t i = 0; i < MANY; i++)
            put_number(tree, i, n);
        must_ok(wb_tree_commit(tree));
    }
    must_ok(wb_tree_look(tree, &now));
    assert_in_range(now.pages, 1, 3 * once.pages + 10);
    must_ok(wb_tree_begin(tree));
    must(wb_tree_unmark(tree, &mark));
    must_ok(wb_tree_commit(tree));
    must_ok(wb_tree_begin(tree));
    must_ok(wb_tree_commit(tree));
    must_ok(wb_tree_look(tree, &now));
    must(now.free >= once.pages * 9 / 10);
    wb_tree_close(tree);
}

/* What is not held cannot be marked; what is no mark is refused. */
static void test_refused(void **state)
{
    char bytes[WB_TREE_MARK_BYTES_MAX + 1];
    struct wb_tree_marked mark, other;
    struct wb_tree_state first;
    struct wb_tree *tree;
    bool marked = true;

    (void)state;
    grow(&tree, &mark);
    first = mark.state;
    must_ok(wb_tree_begin(tree));
    must(wb_tree_mark(tree, &first, &other) == WB_E_INVALID);
    wb_tree_abort(tree);
    size_t len = wb_tree_mark_encode(&mark, bytes);
    for (size_t cut = 0; cut <= len + 1; cut++)
        must(wb_tree_mark_decode(wb_slice(bytes, cut), &other) == (cut == len));
    other = mark;
    other.token ^= 1; /* a mark of a copy of the file */
    must_ok(wb_tree_is_marked(tree, &other, &marked));
    must(!marked);
    for (size_t at = 4; at < len; at++)
        for (unsigned bit = 0; bit < 8; bit++) {
            uint64_t changes = 0;
            bytes[at] = (char)(bytes[at] ^ 1 << bit);
            if (wb_tree_mark_decode(wb_slice(bytes, len), &other) &&
                wb_tree_diff(tree, &other.state, &mark.state, 0, count_change, &changes) < 0)
                must(wb_error_message()[0] != '\0');
            bytes[at] = (char)(bytes[at] ^ 1 << bit);
        }
    wb_tree_close(tree);
}

/* ---- damage and failures -------------------------------------------------------------------------------------- */

static int expect_rows(void *context, struct wb_slice key, struct wb_slice value)
{
    uint64_t *next = context;

    must(wb_get64_be(key.ptr) == *next && value.ptr && wb_get64(value.ptr) == 2);
    *next += 400;
    return 0;
}

static void test_damage(void **state)
{
    struct wb_tree_marked mark;
    struct wb_tree_state newest;
    struct wb_tree *tree;
    unsigned damaged = 0;

    (void)state;
    grow(&tree, &mark);
    must_ok(wb_tree_begin(tree));
    for (uint64_t i = 0; i < MANY; i += 400)
        put_number(tree, i, 2);
    must_ok(wb_tree_commit(tree));
    must_ok(wb_tree_look(tree, &newest));
    wb_tree_close(tree);
    for (uint32_t page = 2; page < newest.pages; page++) {
        uint64_t next = 0;
        uint8_t was = flip_byte(path, page * (uint64_t)WB_TREE_PAGE_BYTES + page * 7 % WB_TREE_PAGE_BYTES, 1);
        must_ok(wb_tree_open(path, WB_TREE_READ, &tree));
        int err = wb_tree_diff(tree, &mark.state, &newest, 0, expect_rows, &next);
        must(err == 0 ? next == MANY : err == WB_E_CORRUPT && strstr(wb_error_message(), path));
        damaged += err < 0;
        wb_tree_close(tree);
        flip_byte(path, page * (uint64_t)WB_TREE_PAGE_BYTES + page * 7 % WB_TREE_PAGE_BYTES, 1);
        (void)was;
    }
    must(damaged > 2 * MANY / 400); /* each of these leaves, before and after */
}

static void test_faults(void **state)
{
    static const unsigned kinds[] = {WB_FAULT_ALLOC, WB_FAULT_READ, WB_FAULT_WRITE, WB_FAULT_SYNC};
    struct wb_tree_marked mark, second;
    struct wb_tree_state newest;
    struct wb_tree *tree;

    (void)state;
    grow(&tree, &mark);
    must_ok(wb_tree_begin(tree));
    for (uint64_t i = 0; i < MANY; i += 8000)
        put_number(tree, i, 2);
    must_ok(wb_tree_commit(tree));
    wb_tree_close(tree);
    for (size_t k = 0; k < COUNT(kinds); k++)
        for (uint64_t nth = 1;; nth++) {
            uint64_t changes = 0;
            bool marked = false;
            must_ok(wb_tree_open(path, WB_TREE_WRITE, &tree));
            must_ok(wb_tree_hold(tree, &newest));
            wb_fault_arm(kinds[k], nth, kinds[k] == WB_FAULT_ALLOC ? ENOMEM : EIO);
            int err = wb_tree_diff(tree, &mark.state, &newest, 0, count_change, &changes);
            int marking = err == 0 ? wb_tree_begin(tree) : err;
            if (marking == 0)
                marking = wb_tree_mark(tree, &newest, &second);
            if (marking == 0)
                marking = wb_tree_commit(tree);
            bool struck = wb_fault_struck(), uncertain = wb_tree_uncertain(tree);
            wb_fault_disarm();
            must(err == 0 ? changes == MANY / 8000 : struck);
            must(marking == 0 || struck);
            wb_tree_abort(tree);
            wb_tree_close(tree);
            must_ok(wb_tree_open(path, WB_TREE_WRITE, &tree));
            if (err == 0 && !uncertain) {
                must_ok(wb_tree_is_marked(tree, &second, &marked));
                must(marked == (marking == 0));
            }
            must_ok(wb_tree_is_marked(tree, &mark, &marked));
            must(marked);
            if (err == 0) {
                must_ok(wb_tree_begin(tree));
                (void)wb_tree_unmark(tree, &second);
                must_ok(wb_tree_commit(tree));
            }
            wb_tree_close(tree);
            if (!struck)
                break;
        }
}

/* ---- killed --------------------------------------------------------------------------------------------------- */

/* What a writer that is killed has said, in memory that it shares with us. */
struct diary {
    _Atomic uint32_t count; /* of marks that were committed */
    struct {
        uint64_t number; /* of the transaction whose state it is */
        struct wb_tree_marked mark;
    } marks[1000];
};

enum { KILL_ROWS = 3000 };

/* Which rows a transaction changes: about every fifth. */
static bool is_changed(uint64_t number, uint64_t row)
{
    uint64_t chance = number * 1000003 + row;

    return chance_below(&chance, 5) == 0;
}

static int write_for_ever(void *context)
{
    struct diary *diary = context;
    struct wb_tree *tree;
    struct wb_tree_state state;
    struct wb_tree_marked mark;

    must_ok(wb_tree_open(path, WB_TREE_CREATE, &tree));
    for (uint64_t n = 1; n > 0; n++) {
        must_ok(wb_tree_begin(tree));
        for (uint64_t row = 0; row < KILL_ROWS; row++)
            if (is_changed(n, row))
                put_number(tree, row, n);
        must_ok(wb_tree_commit(tree));
        if (n % 3 || diary->count == COUNT(diary->marks))
            continue;
        must_ok(wb_tree_hold(tree, &state));
        must_ok(wb_tree_begin(tree));
        must_ok(wb_tree_mark(tree, &state, &mark));
        must_ok(wb_tree_commit(tree));
        wb_tree_let_go(tree, state.txn);
        diary->marks[diary->count].number = n;
        diary->marks[diary->count].mark = mark;
        diary->count++;
    }
    return 0;
}

static int expect_killed_row(void *context, struct wb_slice key, struct wb_slice value)
{
    uint64_t number = *(const uint64_t *)context;

    while (number > 0 && !is_changed(number, wb_get64_be(key.ptr)))
        number--;
    must(number > 0 && wb_get64(value.ptr) == number);
    return 0;
}

static void test_killed(void **state)
{
    struct diary *diary = mmap(NULL, sizeof *diary, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    uint64_t chance = test_seed();

    (void)state;
    must(diary != MAP_FAILED);
    for (unsigned round = test_rounds(20); round > 0; round--) {
        struct wb_tree_state newest;
        struct wb_tree *tree;
        bool marked;
        diary->count = 0;
        pid_t child = start_child(write_for_ever, diary);
        while (diary->count < 3)
            usleep(1000);
        usleep((useconds_t)chance_below(&chance, 50000));
        kill(child, SIGKILL);
        must(end_child(child) == -SIGKILL);
        must_ok(wb_tree_open(path, WB_TREE_WRITE, &tree));
        must_ok(wb_tree_begin(tree)); /* the next writer goes on where it was killed */
        put_number(tree, KILL_ROWS, 1);
        must_ok(wb_tree_commit(tree));
        must_ok(wb_tree_look(tree, &newest));
        must(check_tree(tree, &newest) == 0);
        /* One may have been committed that the diary does not know, and the oldest have given way. */
        for (uint32_t count = diary->count, i = count > 7 ? count - 7 : 0; i < count; i++) {
            const struct wb_tree_state *was = &diary->marks[i].mark.state;
            must_ok(wb_tree_is_marked(tree, &diary->marks[i].mark, &marked));
            must(marked);
            must_ok(wb_tree_each(tree, was, 0, expect_killed_row, &diary->marks[i].number));
        }
        wb_tree_close(tree);
    }
    munmap(diary, sizeof *diary);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_small),
        cmocka_unit_test(test_large),
        cmocka_unit_test(test_reads_what_changed),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_pages_come_back),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_faults),
        cmocka_unit_test(test_killed),
    };
    return cmocka_run_group_tests(tests, make_dir, NULL);
}
