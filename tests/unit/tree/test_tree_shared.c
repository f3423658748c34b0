/*
 * test_tree_shared.c - several processes use one tree, and are killed at random moments. Every
 * reader sees exactly one commit, the file does not grow because of dead readers, and
 * nobody keeps a lock. A state that is not held is right, or known to be gone.
 */
#include "tree_support.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

enum { ROWS = 3000, WRITERS = 2, READERS = 3 };

/* Children that run, 0 for none. They use the tree until they are killed, so a test that fails must end them too. */
static pid_t children[WRITERS + READERS];
static pid_t parent;

static int end_children(void **state)
{
    (void)state;
    for (unsigned i = 0; i < COUNT(children); i++) {
        if (children[i] == 0)
            continue;
        kill(children[i], SIGKILL);
        end_child(children[i]);
        children[i] = 0;
    }
    return 0;
}

static void kill_child(unsigned i)
{
    pid_t child = children[i];

    kill(child, SIGKILL);
    children[i] = 0;
    assert_int_equal(end_child(child), -SIGKILL);
}

/* Every row of a commit has the same value; each commit changes all of them. */
static void write_round(struct wb_tree *tree)
{
    char key[8], value[24] = {0};
    size_t len = 0;

    must_ok(wb_tree_begin(tree));
    wb_put64_be(key, 0);
    int err = wb_tree_get(tree, wb_tree_next(tree), 0, wb_slice(key, sizeof key), value, sizeof value, &len);
    must(err == 0 || err == WB_E_NOTFOUND);
    wb_put64(value, wb_get64(value) + 1);
    for (uint64_t i = 0; i < ROWS; i++) {
        wb_put64_be(key, i);
        must_ok(wb_tree_put(tree, 0, wb_slice(key, sizeof key), wb_slice(value, sizeof value)));
    }
    must_ok(wb_tree_commit(tree));
}

static int write_on(void *context)
{
    struct wb_tree *tree;

    (void)context;
    must_ok(wb_tree_open(path, WB_TREE_WRITE, &tree));
    while (getppid() == parent)
        write_round(tree);
    return 0;
}

struct view {
    uint64_t rows, value;
};

static int see_row(void *context, struct wb_slice key, struct wb_slice value)
{
    struct view *view = context;

    must(wb_get64_be(key.ptr) == view->rows);
    must(view->rows == 0 || wb_get64(value.ptr) == view->value);
    view->value = wb_get64(value.ptr);
    view->rows++;
    return 0;
}

/* A walk over a held state sees one commit; one over a state that is not held does too, or the state has gone. */
static void read_round(struct wb_tree *tree, uint64_t *newest)
{
    struct wb_tree_state state;
    struct view held = {0}, looked = {0};

    must_ok(wb_tree_hold(tree, &state));
    must_ok(wb_tree_each(tree, &state, 0, see_row, &held));
    must(held.rows == ROWS && held.value >= *newest);
    *newest = held.value;
    wb_tree_let_go(tree, state.txn);
    must_ok(wb_tree_look(tree, &state));
    int err = wb_tree_each(tree, &state, 0, see_row, &looked);
    must(err == 0 ? looked.rows == ROWS : err == WB_E_CORRUPT && wb_tree_moved(tree, state.txn));
}

static int read_on(void *context)
{
    struct wb_tree *tree;
    uint64_t newest = 0;

    (void)context;
    must_ok(wb_tree_open(path, WB_TREE_READ, &tree));
    while (getppid() == parent)
        read_round(tree, &newest);
    return 0;
}

/* Another writer may be at work: without a hold, it could use the pages of this state again while they are checked. */
static int check_whole(void *context)
{
    const uint32_t *pages_max = context;
    struct wb_tree_state state;
    struct wb_tree *tree;
    struct view view = {0};

    must_ok(wb_tree_open(path, WB_TREE_WRITE, &tree));
    write_round(tree);
    must_ok(wb_tree_hold(tree, &state));
    must_ok(wb_tree_each(tree, &state, 0, see_row, &view));
    must(view.rows == ROWS);
    must(check_tree(tree, &state) == 0);
    must(state.pages <= *pages_max);
    wb_tree_let_go(tree, state.txn);
    wb_tree_close(tree);
    return 0;
}

static void test_kills(void **state)
{
    uint64_t chance = test_seed();
    unsigned rounds = test_rounds(150);
    struct wb_tree_state first;
    struct wb_tree *tree;

    (void)state;
    must_ok(wb_tree_open(path, WB_TREE_CREATE, &tree));
    write_round(tree);
    must_ok(wb_tree_look(tree, &first));
    wb_tree_close(tree);
    /*
     * Each commit replaces all pages. So there are at most the states that the readers and check_whole() hold, the
     * newest one, and the one that is being written, no matter how slow a reader is.
     */
    uint32_t pages_max = first.pages * (READERS + 3);
    parent = getpid();
    for (unsigned i = 0; i < COUNT(children); i++)
        children[i] = start_child(i < WRITERS ? write_on : read_on, NULL);
    for (unsigned i = 0; i < rounds; i++) {
        unsigned victim = (unsigned)chance_below(&chance, COUNT(children));
        usleep((useconds_t)chance_below(&chance, 6000));
        kill_child(victim);
        if (i % 10 == 9)
            assert_int_equal(run_child(check_whole, &pages_max), 0);
        children[victim] = start_child(victim < WRITERS ? write_on : read_on, NULL);
    }
    for (unsigned i = 0; i < COUNT(children); i++)
        kill_child(i);
    assert_int_equal(run_child(check_whole, &pages_max), 0);
}

static int hold_and_wait(void *context)
{
    int *pipe_fd = context;
    struct wb_tree_state state;
    struct wb_tree *tree;

    must_ok(wb_tree_open(path, WB_TREE_READ, &tree));
    must_ok(wb_tree_hold(tree, &state));
    must(write(*pipe_fd, "x", 1) == 1);
    pause();
    return 0;
}

/* A killed reader holds nothing; a living one does, even if it may only read the file. */
static void test_dead_reader(void **state)
{
    struct wb_tree *tree;
    uint64_t oldest;
    int ends[2];
    char c;

    (void)state;
    must_ok(wb_tree_open(path, WB_TREE_CREATE, &tree));
    write_round(tree);
    must(pipe(ends) == 0);
    children[0] = start_child(hold_and_wait, &ends[1]);
    must(read(ends[0], &c, 1) == 1);
    must_ok(wb_tree_oldest(tree, &oldest));
    assert_int_equal(oldest, 2);
    write_round(tree);
    must_ok(wb_tree_oldest(tree, &oldest));
    assert_int_equal(oldest, 2);
    kill_child(0);
    must_ok(wb_tree_oldest(tree, &oldest));
    assert_true(oldest == UINT64_MAX);
    wb_tree_close(tree);
    close(ends[0]);
    close(ends[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_kills, make_dir, end_children),
        cmocka_unit_test_setup_teardown(test_dead_reader, make_dir, end_children),
    };

    child_seconds = 600;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
