/* children.c - see children.h. */
#include "children.h"
#include "must.h"

#include <signal.h>
#include <sys/wait.h>

unsigned child_seconds = 1200; /* only to end a child that hangs */
bool in_child;

/* cmocka catches these signals; a child must die of them. */
static const int fault_signals[] = {SIGBUS, SIGSEGV, SIGFPE, SIGILL, SIGSYS};

pid_t start_child(int (*function)(void *context), void *context)
{
    fflush(stdout);
    fflush(stderr);
    pid_t child = fork();
    must(child >= 0);
    if (child == 0) {
        in_child = true;
        for (size_t i = 0; i < sizeof fault_signals / sizeof *fault_signals; i++)
            signal(fault_signals[i], SIG_DFL);
        alarm(child_seconds);
        _exit(function(context));
    }
    return child;
}

int end_child(pid_t child)
{
    int status;

    must(waitpid(child, &status, 0) == child);
    return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

int run_child(int (*function)(void *context), void *context)
{
    return end_child(start_child(function, context));
}
