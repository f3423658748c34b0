/* hangup.c - counts SIGHUP. The handler does nothing else. */
#include "os/hangup.h"

#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

static atomic_uint count;

static void on_signal(int signal_number)
{
    (void)signal_number;
    count++;
}

void wb_hangup_count(void)
{
    struct sigaction action = {0};

    action.sa_handler = on_signal;
    action.sa_flags = SA_RESTART;
    sigemptyset(&action.sa_mask);
    sigaction(SIGHUP, &action, NULL);
}

unsigned wb_hangups(void)
{
    return count;
}
