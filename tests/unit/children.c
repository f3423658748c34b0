/* children.c - see children.h. */
#include "children.h"
#include "must.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
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

struct stopped {
    int (*function)(void *context);
    void *context;
};

static int run_quietly(void *context)
{
    const struct stopped *s = context;
    struct rlimit none = {0, 0};
    int null = open("/dev/null", O_WRONLY);

    must(null >= 0 && dup2(null, STDERR_FILENO) >= 0);
    must(setrlimit(RLIMIT_CORE, &none) == 0);
    return s->function(s->context);
}

bool is_stopped(int (*function)(void *context), void *context)
{
    return run_child(run_quietly, &(struct stopped){function, context}) == -SIGABRT;
}
