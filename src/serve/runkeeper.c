/*
 * runkeeper.c - starts a process, and starts it again when it dies: after a second, then after twice as long each time,
 * up to five minutes. A process that has lived for ten minutes counts as healthy, and the pauses begin again.
 *
 *   exit status 0   the run has done all its cycles (--cycles): it stays ended
 *   anything else   reported, and started again
 *
 * The server has many threads, so the new process is a fork that does nothing but what is safe after that, and becomes
 * another program at once. It inherits neither sockets nor files. If the server is killed, the kernel tells the process
 * to end. The kernel does so when the *thread* that forked ends, which is why one thread does this for the whole life
 * of the server.
 */
#include "serve/runkeeper.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/stop.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    NAP_MS = 50,
    PAUSE_FIRST_MS = 1000,
    PAUSE_MAX_MS = 300000,
    HEALTHY_MS = 600000,
    KILL_MS = 10000, /* how long a clean end may take */
    EXEC_FAILED = 127,
};

#define RUNKEEPER_MAGIC 0x5742524bu

struct wb_runkeeper {
    uint32_t magic; /* RUNKEEPER_MAGIC from new to free */
    const char *const *args;
    void (*say)(void *context, const char *message);
    void *context;
    pthread_t thread;
    _Atomic bool ending;
};

static int64_t now_ms(void)
{
    return wb_clock_mono_ns() / 1000000;
}

static void nap(void)
{
    struct timespec time = {.tv_nsec = NAP_MS * 1000000L};

    nanosleep(&time, NULL);
}

static bool is_ending(const struct wb_runkeeper *keeper)
{
    return atomic_load(&keeper->ending) || wb_stop_requested();
}

/* ---- one process --------------------------------------------------------------------------------- */

/* In the new process: only calls that are safe after a fork of a program with threads. */
_Noreturn static void become(const struct wb_runkeeper *keeper, pid_t server)
{
    WB_CHECK(getpid() != server); /* we are the child */
    sigset_t none;

    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    if (prctl(PR_SET_PDEATHSIG, SIGTERM) < 0 || getppid() != server || dup2(STDERR_FILENO, STDOUT_FILENO) < 0 ||
        close_range(STDERR_FILENO + 1, ~0u, 0) < 0)
        _exit(EXEC_FAILED);
    execv("/proc/self/exe", (char *const *)keeper->args);
    _exit(EXEC_FAILED);
}

/* Returns the status of waitpid(), or -1 if there is no process. */
static int watch(struct wb_runkeeper *keeper, pid_t pid)
{
    int64_t told_ms = 0;
    int status;

    WB_CHECK(keeper->magic == RUNKEEPER_MAGIC);
    WB_CHECK(pid > 0);
    for (;;) {
        pid_t ended = waitpid(pid, &status, WNOHANG);
        if (ended == pid)
            return status;
        if (ended < 0 && errno != EINTR)
            return -1;
        if (is_ending(keeper) && !told_ms) {
            told_ms = now_ms();
            kill(pid, SIGTERM);
        } else if (told_ms && now_ms() - told_ms > KILL_MS) {
            keeper->say(keeper->context, "the run did not end in time and was killed; the next one continues its work");
            kill(pid, SIGKILL);
            told_ms = now_ms();
        }
        nap();
    }
}

static int run_once(struct wb_runkeeper *keeper)
{
    WB_CHECK(keeper->magic == RUNKEEPER_MAGIC);
    pid_t server = getpid(), pid = fork();

    if (pid == 0)
        become(keeper, server);
    return pid < 0 ? -1 : watch(keeper, pid);
}

/* ---- again and again ----------------------------------------------------------------------------- */

static void report(const struct wb_runkeeper *keeper, int status, int64_t pause_ms)
{
    char what[80], text[160];

    WB_CHECK(pause_ms >= PAUSE_FIRST_MS);
    if (status < 0)
        snprintf(what, sizeof what, "could not be started: %s", strerror(errno));
    else if (WIFSIGNALED(status))
        snprintf(what, sizeof what, "was ended by signal %d", WTERMSIG(status));
    else if (WEXITSTATUS(status) == EXEC_FAILED)
        snprintf(what, sizeof what, "could not be started");
    else
        snprintf(what, sizeof what, "ended with status %d", WEXITSTATUS(status));
    snprintf(text, sizeof text, "the run %s; it starts again in %" PRId64 " s", what, pause_ms / 1000);
    keeper->say(keeper->context, text);
}

static void *keep(void *context)
{
    struct wb_runkeeper *keeper = context;
    int64_t pause_ms = PAUSE_FIRST_MS;

    WB_CHECK(keeper->magic == RUNKEEPER_MAGIC);
    while (!is_ending(keeper)) {
        int64_t began_ms = now_ms();
        int status = run_once(keeper);
        if (is_ending(keeper))
            break;
        if (status >= 0 && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
            keeper->say(keeper->context, "the run has done its cycles; the server goes on");
            break;
        }
        if (now_ms() - began_ms >= HEALTHY_MS)
            pause_ms = PAUSE_FIRST_MS;
        report(keeper, status, pause_ms);
        for (int64_t until = now_ms() + pause_ms; now_ms() < until && !is_ending(keeper);)
            nap();
        WB_CHECK(pause_ms >= PAUSE_FIRST_MS && pause_ms <= PAUSE_MAX_MS);
        pause_ms = pause_ms * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : pause_ms * 2;
    }
    return NULL;
}

int wb_runkeeper_new(const char *const *args, void (*say)(void *context, const char *message), void *context,
                     struct wb_runkeeper **keeper_out)
{
    WB_CHECK(args && args[0]);
    WB_CHECK(say);
    struct wb_runkeeper *keeper = wb_alloc_zero(1, sizeof *keeper);

    *keeper_out = NULL;
    if (!keeper)
        return WB_E_NOMEM;
    keeper->magic = RUNKEEPER_MAGIC;
    keeper->args = args;
    keeper->say = say;
    keeper->context = context;
    errno = pthread_create(&keeper->thread, NULL, keep, keeper);
    if (errno) {
        wb_free(keeper);
        return wb_fail_errno("cannot start a thread");
    }
    *keeper_out = keeper;
    return 0;
}

void wb_runkeeper_free(struct wb_runkeeper *keeper)
{
    if (!keeper)
        return;
    WB_CHECK(keeper->magic == RUNKEEPER_MAGIC);
    WB_CHECK(!atomic_load(&keeper->ending));
    atomic_store(&keeper->ending, true);
    pthread_join(keeper->thread, NULL);
    keeper->magic = 0;
    wb_free(keeper);
}
