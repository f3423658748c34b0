/*
 * test_tree_pin.c - pins: numbers that readers pin for writers to see. Handles of one process and of several see
 * each other's pins but not their own, a process that is killed gives up its pins, and settling waits
 * for exactly the transaction that might not have seen a pin.
 */
#include "tree_support.h"

#include <signal.h>
#include <unistd.h>

/* The lowest number that somebody else pinned, from `from` on; UINT64_MAX if there is none. */
static uint64_t pinned_from(struct wb_tree *tree, uint64_t from)
{
    uint64_t number;
    int found = wb_tree_pinned(tree, from, &number);

    must(found >= 0);
    return found ? number : UINT64_MAX;
}

static void test_handles(void **state)
{
    static const uint64_t max = ((uint64_t)1 << 60) - 1;
    struct wb_tree *writer, *one, *two;

    (void)state;
    must_ok(wb_tree_open(path, WB_TREE_CREATE, &writer));
    must_ok(wb_tree_open(path, WB_TREE_READ, &one));
    must_ok(wb_tree_open(path, WB_TREE_READ, &two));
    assert_true(pinned_from(writer, 0) == UINT64_MAX);
    must_ok(wb_tree_pin(one, 7));
    must_ok(wb_tree_pin(one, 3));
    must_ok(wb_tree_pin(two, 7));
    must_ok(wb_tree_pin(two, max));
    must_ok(wb_tree_pin(one, 0));
    assert_true(pinned_from(writer, 0) == 0);
    assert_true(pinned_from(writer, 1) == 3);
    assert_true(pinned_from(writer, 3) == 3);
    assert_true(pinned_from(writer, 4) == 7);
    assert_true(pinned_from(writer, 8) == max);
    assert_true(pinned_from(one, 0) == 7); /* of the other */
    assert_true(pinned_from(two, 8) == UINT64_MAX);
    wb_tree_unpin(one, 7);
    assert_true(pinned_from(writer, 4) == 7); /* still that of the other */
    assert_true(pinned_from(two, 4) == UINT64_MAX);
    wb_tree_close(two);
    assert_true(pinned_from(writer, 4) == UINT64_MAX);
    must_ok(wb_tree_pin(writer, 5)); /* a writer's own pins are seen by others */
    assert_true(pinned_from(one, 0) == 5);
    wb_tree_unpin(writer, 5);
    wb_tree_unpin(one, 0);
    wb_tree_unpin(one, 3);
    assert_true(pinned_from(writer, 0) == UINT64_MAX);
    wb_tree_close(one);
    wb_tree_close(writer);
}

/* Pins are no locks on anything else: states can be held and commits made meanwhile. */
static void test_independent(void **state)
{
    struct wb_tree *writer, *reader;
    struct wb_tree_state held;
    uint64_t oldest;

    (void)state;
    must_ok(wb_tree_open(path, WB_TREE_CREATE, &writer));
    must_ok(wb_tree_open(path, WB_TREE_READ, &reader));
    for (uint64_t number = 1; number < 200; number++)
        must_ok(wb_tree_pin(reader, number));
    must_ok(wb_tree_oldest(writer, &oldest));
    assert_true(oldest == UINT64_MAX);
    must_ok(wb_tree_begin(writer));
    must_ok(wb_tree_put(writer, 0, WB_SLICE_LIT("k"), WB_SLICE_LIT("v")));
    assert_true(pinned_from(writer, 100) == 100); /* inside a transaction too */
    must_ok(wb_tree_commit(writer));
    must_ok(wb_tree_hold(reader, &held));
    must_ok(wb_tree_oldest(writer, &oldest));
    assert_int_equal(oldest, held.txn);
    for (uint64_t number = 1; number < 200; number++)
        wb_tree_unpin(reader, number);
    assert_true(pinned_from(writer, 0) == UINT64_MAX);
    must_ok(wb_tree_oldest(writer, &oldest));
    assert_int_equal(oldest, held.txn);
    wb_tree_let_go(reader, held.txn);
    wb_tree_close(reader);
    wb_tree_close(writer);
}

/* ---- several processes ---------------------------------------------------------------------------------- */

static int pipe_ends[2];

/* Tells the parent that this child has come this far. */
static void report(void)
{
    must(write(pipe_ends[1], "x", 1) == 1);
}

static void await_report(void)
{
    char c;

    must(read(pipe_ends[0], &c, 1) == 1);
}

static int pin_and_wait(void *context)
{
    struct wb_tree *tree;

    must_ok(wb_tree_open(path, WB_TREE_READ, &tree));
    must_ok(wb_tree_pin(tree, *(const uint64_t *)context));
    must_ok(wb_tree_pins_settle(tree));
    report();
    pause();
    return 0;
}

static void test_killed(void **state)
{
    uint64_t numbers[] = {41, 40};
    pid_t children[2];
    struct wb_tree *tree;

    (void)state;
    must_ok(wb_tree_open(path, WB_TREE_CREATE, &tree));
    wb_tree_close(tree); /* an open tree must not be carried into a child */
    for (unsigned i = 0; i < COUNT(children); i++) {
        children[i] = start_child(pin_and_wait, &numbers[i]);
        await_report();
    }
    must_ok(wb_tree_open(path, WB_TREE_WRITE, &tree));
    assert_true(pinned_from(tree, 0) == 40);
    kill(children[1], SIGKILL);
    assert_int_equal(end_child(children[1]), -SIGKILL);
    assert_true(pinned_from(tree, 0) == 41);
    kill(children[0], SIGKILL);
    assert_int_equal(end_child(children[0]), -SIGKILL);
    assert_true(pinned_from(tree, 0) == UINT64_MAX);
    wb_tree_close(tree);
}

/* How the transaction that settling waits for ends. */
enum ending { COMMITS, ABORTS, IS_KILLED, GOES_ON };

static int write_and_end(void *context)
{
    enum ending ending = *(const enum ending *)context;
    struct wb_tree *tree;

    must_ok(wb_tree_open(path, WB_TREE_WRITE, &tree));
    must_ok(wb_tree_begin(tree));
    must_ok(wb_tree_put(tree, 0, WB_SLICE_LIT("key"), WB_SLICE_LIT("value")));
    report();
    while (pinned_from(tree, 0) == UINT64_MAX)
        usleep(1000);
    usleep(50000); /* now the parent is waiting */
    if (ending == IS_KILLED)
        kill(getpid(), SIGKILL);
    if (ending == ABORTS)
        wb_tree_abort(tree);
    else
        must_ok(wb_tree_commit(tree));
    if (ending == GOES_ON) /* the next transaction sees the pin: nobody has to wait for it */
        must_ok(wb_tree_begin(tree));
    report();
    pause();
    return 0;
}

static void settle_with(enum ending ending)
{
    struct wb_tree_state before, after;
    struct wb_tree *tree;

    pid_t child = start_child(write_and_end, &ending);
    await_report(); /* it is writing */
    must_ok(wb_tree_open(path, WB_TREE_READ, &tree));
    must_ok(wb_tree_look(tree, &before));
    must_ok(wb_tree_pin(tree, 9));
    must_ok(wb_tree_pins_settle(tree));
    must_ok(wb_tree_look(tree, &after));
    /* The newest state now is what that transaction left. */
    assert_int_equal(after.txn, before.txn + (ending == COMMITS || ending == GOES_ON));
    if (ending != IS_KILLED) {
        await_report();
        kill(child, SIGKILL);
    }
    assert_int_equal(end_child(child), -SIGKILL);
    wb_tree_close(tree);
}

static void test_settle(void **state)
{
    struct wb_tree *tree;

    (void)state;
    must_ok(wb_tree_open(path, WB_TREE_CREATE, &tree));
    must_ok(wb_tree_pin(tree, 1));
    must_ok(wb_tree_pins_settle(tree)); /* nobody is writing */
    wb_tree_close(tree);
    settle_with(COMMITS);
    settle_with(ABORTS);
    settle_with(IS_KILLED);
    settle_with(GOES_ON);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handles),
        cmocka_unit_test(test_independent),
        cmocka_unit_test(test_killed),
        cmocka_unit_test(test_settle),
    };

    if (pipe(pipe_ends) != 0)
        return 1;
    return cmocka_run_group_tests(tests, make_dir, NULL);
}
