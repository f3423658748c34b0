/* stream_workers.c - starts processes for the parts of a stream, and waits for them. */
#include "cli/stream_workers.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "cli/output.h"
#include "cli/report.h"
#include "os/nameless.h"
#include "os/stop.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum { STATUS_LESS = 3, COPY_BYTES = 64 << 10 }; /* the status of a worker that returned 1 */

struct stream_worker {
    pid_t pid;
    struct wb_file output; /* what it prints, if that comes in turn */
};

struct worker_results {
    unsigned failed; /* ended with an error, or were killed */
    unsigned less;   /* came to their end, but returned 1 */
};

static void run_child(const struct stream_worker *self, unsigned worker, unsigned workers, wb_stream_worker run,
                      void *context)
{
    int err = 0;

    if (self->output.fd >= 0 && dup2(self->output.fd, STDOUT_FILENO) < 0)
        err = wb_fail_errno("cannot keep what the worker prints");
    if (err == 0)
        err = run(context, worker, workers);
    if (err < 0)
        wb_report("worker %u of %u: %s", worker, workers, wb_error_message());
    if (wb_output_flush() < 0)
        err = WB_E_IO;
    _exit(err == 0 ? 0 : err < 0 ? 1 : STATUS_LESS);
}

/* Waits for all; looks now and then whether it has to pass a signal on. */
static struct worker_results wait_for_all(const struct stream_worker *list, unsigned count)
{
    struct worker_results results = {0};
    unsigned left = count;
    bool told = false;
    int status;

    while (left > 0) {
        pid_t ended = waitpid(-1, &status, WNOHANG);
        if (ended > 0) {
            bool less = WIFEXITED(status) && WEXITSTATUS(status) == STATUS_LESS;
            left--;
            results.less += less;
            results.failed += !less && (!WIFEXITED(status) || WEXITSTATUS(status) != 0);
            continue;
        }
        if (ended < 0 && errno == ECHILD)
            break;
        for (unsigned i = 0; wb_stop_requested() && !told && i < count; i++)
            kill(list[i].pid, SIGTERM);
        told = told || wb_stop_requested();
        nanosleep(&(struct timespec){.tv_nsec = 20000000}, NULL);
    }
    return results;
}

/* Copies what a worker printed to our standard output. */
static int print_output(struct wb_file *file)
{
    static char bytes[COPY_BYTES];
    uint64_t at = 0;
    size_t got = 1;
    int err = 0;

    while (err == 0 && got > 0) {
        err = wb_file_read_at(file, at, bytes, sizeof bytes, &got);
        if (err == 0)
            err = wb_output_write(bytes, got);
        at += got;
    }
    return err < 0 ? err : wb_output_flush();
}

static int open_outputs(struct stream_worker *list, unsigned workers, bool in_turn)
{
    const char *dir = getenv("TMPDIR");
    int err = 0;

    for (unsigned i = 0; i < workers; i++)
        list[i].output = WB_FILE_INIT;
    for (unsigned i = 0; in_turn && err == 0 && i < workers; i++)
        err = wb_nameless_open(dir && dir[0] ? dir : "/tmp", &list[i].output);
    return err;
}

/* Starts the workers and waits for them. */
static int run_all(struct stream_worker *list, unsigned workers, wb_stream_worker run, void *context,
                   struct worker_results *results_out)
{
    unsigned started = 0;
    int err = wb_output_flush();

    while (err == 0 && started < workers) {
        list[started].pid = fork();
        if (list[started].pid == 0)
            run_child(&list[started], started + 1, workers, run, context);
        if (list[started].pid < 0)
            err = wb_fail_errno("cannot start worker %u", started + 1);
        else
            started++;
    }
    if (err == 0)
        wb_stop_on_signals();
    for (unsigned i = 0; err < 0 && i < started; i++)
        kill(list[i].pid, SIGTERM);
    *results_out = wait_for_all(list, started);
    return err;
}

int wb_stream_workers(unsigned workers, bool in_turn, wb_stream_worker run, void *context)
{
    struct worker_results results = {0};

    WB_CHECK(workers > 0);
    struct stream_worker *list = wb_alloc_zero(workers, sizeof(*list));
    int err = list ? open_outputs(list, workers, in_turn) : WB_E_NOMEM;
    if (err == 0)
        err = run_all(list, workers, run, context, &results);
    if (err == 0 && results.failed)
        err = wb_fail(WB_E_IO, "%u of %u workers failed", results.failed, workers);
    for (unsigned i = 0; list && i < workers; i++) {
        int printed = in_turn && list[i].output.fd >= 0 ? print_output(&list[i].output) : 0;
        err = err < 0 ? err : printed;
        wb_file_close(&list[i].output);
    }
    wb_free(list);
    return err < 0 ? err : results.less ? 1 : 0;
}
