/* test_guard.c - faults in mapped memory become errors, in the thread concerned only; others still end the process. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "os/guard.h"

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

/*
 * cmocka sets its own actions for these signals around each test, so everything
 * runs in children, with the actions that the guard set before cmocka came.
 */
static struct sigaction bus_action, segv_action;

static int touch_page(void *context)
{
    volatile char *page = context;

    return *page == 7 ? 1 : 0;
}

static int call_nested(void *context)
{
    if (wb_guard_call("the inner one", touch_page, context) != WB_E_CORRUPT || !strstr(wb_error_message(), "the inner one"))
        return 1;
    return *(volatile char *)context; /* and the outer one still guards */
}

static int escape(void *context)
{
    (void)context;
    wb_guard_escape();
}

static char *unreadable(void)
{
    return mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
}

/* A mapping past the end of its file: what an unreadable sector looks like. */
static char *beyond_file(void)
{
    int fd = memfd_create("short", 0);

    return mmap(NULL, 4096, PROT_READ, MAP_SHARED, fd, 0);
}

static int check_faults(void)
{
    char fine = 7;

    if (wb_guard_call("x", touch_page, &fine) != 1)
        return 1;
    for (int i = 0; i < 100; i++) {
        if (wb_guard_call("the catalog", touch_page, unreadable()) != WB_E_CORRUPT || !strstr(wb_error_message(), "the catalog"))
            return 2;
        if (wb_guard_call("y", touch_page, beyond_file()) != WB_E_CORRUPT)
            return 3;
    }
    if (wb_guard_call("the outer one", call_nested, unreadable()) != WB_E_CORRUPT || !strstr(wb_error_message(), "the outer one"))
        return 4;
    if (wb_guard_call("z", escape, NULL) != WB_E_CORRUPT)
        return 5;
    return wb_guard_call("x", touch_page, &fine) == 1 ? 0 : 6;
}

static void *fault_again_and_again(void *context)
{
    *(int *)context = check_faults();
    return NULL;
}

static int check_threads(void)
{
    pthread_t threads[4];
    int results[4];

    for (int i = 0; i < 4; i++)
        if (pthread_create(&threads[i], NULL, fault_again_and_again, &results[i]) != 0)
            return 9;
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        if (results[i])
            return results[i];
    }
    return 0;
}

/* A fault that nobody guards ends the process as ever. */
static int check_unguarded(void)
{
    check_faults();
    return touch_page(unreadable());
}

static int check_escape_outside(void)
{
    wb_guard_escape();
}

static int in_child(int (*function)(void))
{
    int status;

    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        sigaction(SIGBUS, &bus_action, NULL);
        sigaction(SIGSEGV, &segv_action, NULL);
        alarm(600);
        freopen("/dev/null", "w", stderr);
        _exit(function());
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

static void test_faults(void **state)
{
    (void)state;
    assert_int_equal(in_child(check_faults), 0);
}

static void test_threads(void **state)
{
    (void)state;
    assert_int_equal(in_child(check_threads), 0);
}

static void test_unguarded(void **state)
{
    (void)state;
    assert_int_not_equal(in_child(check_unguarded), 0);
    assert_int_not_equal(in_child(check_escape_outside), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_faults), cmocka_unit_test(test_threads), cmocka_unit_test(test_unguarded)};
    char fine = 7;

    wb_guard_call("nothing", touch_page, &fine);
    sigaction(SIGBUS, NULL, &bus_action);
    sigaction(SIGSEGV, NULL, &segv_action);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
