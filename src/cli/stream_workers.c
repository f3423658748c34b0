/* stream_workers.c - starts processes for the parts of a stream, and waits for them. */
#include "cli/stream_workers.h"
#include "base/error.h"
#include "base/mem.h"
#include "cli/output.h"
#include "cli/report.h"
#include "os/stop.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void run_child(const struct wb_options *options, const char *where, unsigned worker, unsigned workers,
                      wb_stream_worker run)
{
    int err = run(options, where, worker, workers);

    if (err < 0)
        wb_report("worker %u of %u: %s", worker, workers, wb_error_message());
    if (wb_output_flush() < 0)
        err = 1;
    _exit(err == 0 ? 0 : 1);
}

/* Waits for all; looks now and then whether it has to pass a signal on. Returns how many failed. */
static unsigned wait_for_all(const pid_t *children, unsigned count)
{
    unsigned left = count, failed = 0;
    bool told = false;
    int status;

    while (left > 0) {
        pid_t ended = waitpid(-1, &status, WNOHANG);
        if (ended > 0) {
            left--;
            failed += !WIFEXITED(status) || WEXITSTATUS(status) != 0;
            continue;
        }
        if (ended < 0 && errno == ECHILD)
            break;
        for (unsigned i = 0; wb_stop_requested() && !told && i < count; i++)
            kill(children[i], SIGTERM);
        told = told || wb_stop_requested();
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return failed;
}

int wb_stream_workers(const struct wb_options *options, const char *where, unsigned workers, wb_stream_worker run)
{
    pid_t *children = wb_alloc_zero(workers, sizeof(*children));
    unsigned started = 0;
    int err = children ? wb_output_flush() : WB_E_NOMEM;

    while (err == 0 && started < workers) {
        children[started] = fork();
        if (children[started] == 0)
            run_child(options, where, started + 1, workers, run);
        if (children[started] < 0)
            err = wb_fail_errno("cannot start worker %u", started + 1);
        else
            started++;
    }
    if (err == 0)
        wb_stop_on_signals();
    for (unsigned i = 0; err < 0 && i < started; i++)
        kill(children[i], SIGTERM);
    unsigned failed = started ? wait_for_all(children, started) : 0;
    wb_free(children);
    if (err == 0 && failed)
        err = wb_fail(WB_E_IO, "%u of %u workers failed", failed, workers);
    return err;
}
