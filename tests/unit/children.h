/* children.h - functions of a test that run in a process of their own, which can die or be killed. */
#ifndef WB_TESTS_CHILDREN_H
#define WB_TESTS_CHILDREN_H

#include <stdbool.h>
#include <sys/types.h>

/*
 * Forks, and runs function in the child, which exits with its return value. Nothing may be open that
 * the two must not share, such as a store.
 */
pid_t start_child(int (*function)(void *context), void *context);

/* Waits for the child. Returns its exit status, or -signal if a signal killed it (SIGALRM: it hung). */
int end_child(pid_t child);
int run_child(int (*function)(void *context), void *context);

/* Whether an assertion stops a child process that runs the function. What the assertion prints is not shown. */
bool is_stopped(int (*function)(void *context), void *context);

/* The number of seconds after which a child that hangs is ended. */
extern unsigned child_seconds;

#endif
