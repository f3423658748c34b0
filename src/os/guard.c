/* guard.c - a handler for SIGBUS and SIGSEGV that jumps out of the guarded call of the thread concerned. */
#include "os/guard.h"
#include "base/error.h"

#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>

static _Thread_local sigjmp_buf *innermost;
static pthread_once_t installed = PTHREAD_ONCE_INIT;
static struct sigaction old_bus, old_segv, old_fpe;

static void on_fault(int signal_number, siginfo_t *info, void *context)
{
    (void)info;
    (void)context;
    if (innermost)
        siglongjmp(*innermost, 1);
    /* Not ours: put the old action back and let the fault happen again. */
    sigaction(signal_number, signal_number == SIGBUS ? &old_bus : signal_number == SIGFPE ? &old_fpe : &old_segv, NULL);
}

static void install(void)
{
    struct sigaction action = {0};

    action.sa_sigaction = on_fault;
    /* NODEFER: the jump leaves the handler for good, so the signal must not stay blocked. */
    action.sa_flags = SA_SIGINFO | SA_NODEFER;
    sigemptyset(&action.sa_mask);
    sigaction(SIGBUS, &action, &old_bus);
    sigaction(SIGSEGV, &action, &old_segv);
    sigaction(SIGFPE, &action, &old_fpe);
}

int wb_guard_call(const char *what, int (*function)(void *context), void *context)
{
    sigjmp_buf here;
    sigjmp_buf *volatile outer = innermost;
    volatile int result;

    pthread_once(&installed, install);
    if (sigsetjmp(here, 0) != 0) {
        innermost = outer;
        return wb_fail(WB_E_CORRUPT, "%s is damaged: reading it faulted", what);
    }
    innermost = &here;
    result = function(context);
    innermost = outer;
    return result;
}

_Noreturn void wb_guard_escape(void)
{
    if (!innermost)
        abort();
    siglongjmp(*innermost, 1);
}
