/* stop.c - a flag, and the signal handler that sets it. The handler does nothing else. */
#include "os/stop.h"

#include <signal.h>
#include <stddef.h>

static volatile sig_atomic_t requested;

static void on_signal(int signal_number)
{
    (void)signal_number;
    requested = 1;
}

void wb_stop_on_signals(void)
{
    struct sigaction action = {0};

    action.sa_handler = on_signal;
    /* SA_RESETHAND: the second signal has its usual effect, because who asks twice does not want to wait. */
    action.sa_flags = (int)SA_RESETHAND | SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
}

bool wb_stop_requested(void)
{
    return requested != 0;
}
