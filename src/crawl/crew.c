/*
 * crew.c - the worker processes of a crawl: started, listened to, and replaced when they die.
 *
 * A worker that dies costs the moment it takes to start another one. What it left is recovered first (recover.c). The crawl is given up
 * only where workers die again and again with nothing done in between. A page that was being read whenever workers died is not
 * read again in this crawl, and a site whose history ends workers is left for another run.
 */
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "crawl/parent.h"
#include "crawl/recover.h"
#include "os/clock.h"
#include "os/stop.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    READ_BYTES = 64 << 10,
    TEXT_MAX = 1 << 20,       /* of a warning that does not end */
    DEATHS_MAX = 20,          /* by signals, in a row and in vain */
    FAILURES_MAX = 4,         /* by errors, which are the same for every process: a full disk, a lost database */
    BACK_OFF_FIRST_MS = 100,
    BACK_OFF_MAX_MS = 5000,
    BLAME_AFTER = 2,          /* deaths over the same page */
    BLAME_AFTER_KILLED = 3,   /* somebody else may have sent the signal */
    CAREFUL_AFTER = 2,        /* deaths by signals in vain: the next processes ask for one page at a time, to find the one that is to blame */
    CAREFUL_LIVES = 6,
    PUT_ASIDE_AFTER = 3,      /* deaths over the same site */
    PUT_ASIDE_MS = WB_DAY_MS,
};

/* ---- what workers say ------------------------------------------------------------------------------ */

static void pass_warnings(struct wb_parent *p, struct wb_parent_worker *worker)
{
    char *start = worker->text.ptr, *end = start + worker->text.len;

    for (char *line_end; start < end && (line_end = memchr(start, '\n', (size_t)(end - start))); start = line_end + 1) {
        *line_end = '\0';
        snprintf(worker->last_words, sizeof worker->last_words, "%s", start);
        wb_parent_warn(p, start);
    }
    size_t left = (size_t)(end - start);
    if (left && start != worker->text.ptr)
        memmove(worker->text.ptr, start, left);
    worker->text.len = left < TEXT_MAX ? left : 0;
}

static void on_warnings(evutil_socket_t fd, short what, void *context)
{
    struct wb_parent_worker *worker = context;

    (void)what;
    if (wb_buf_reserve(&worker->text, READ_BYTES) < 0)
        return;
    ssize_t n = read(fd, worker->text.ptr + worker->text.len, READ_BYTES);
    if (n > 0) {
        worker->text.len += (size_t)n;
        pass_warnings(worker->parent, worker);
    } else if (n == 0 || (errno != EAGAIN && errno != EINTR)) {
        event_del(worker->reader);
        worker->eof = true;
    }
}

/* ---- starting ----------------------------------------------------------------------------------------- */

static int fork_worker(struct wb_parent *p, struct wb_parent_worker *worker)
{
    int ends[2] = {-1, -1};

    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return wb_fail_errno("pipe");
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        _exit(wb_worker_run(&p->plan, worker->number, ends[1]));
    }
    close(ends[1]);
    if (pid < 0) {
        close(ends[0]);
        return wb_fail_errno("fork");
    }
    worker->pid = pid;
    worker->fd = ends[0];
    worker->eof = false;
    worker->parent = p;
    worker->reader = event_new(p->base, ends[0], EV_READ | EV_PERSIST, on_warnings, worker);
    return worker->reader && event_add(worker->reader, NULL) == 0 ? 0 : wb_fail_nomem();
}

/* A database handle must not live on both sides of a fork, so ours is closed meanwhile. */
static int start_worker(struct wb_parent *p, struct wb_parent_worker *worker)
{
    worker->start_ms = 0;
    worker->last_words[0] = '\0';
    snprintf(worker->owner, sizeof worker->owner, "%s-%ld-%llx-%u", p->plan.home, (long)getpid(), (unsigned long long)p->began_ms, p->started++);
    p->plan.owner = worker->owner;
    int err = wb_teller_add(p->teller, worker->owner, &p->plan.lines);
    if (err < 0)
        return err;
    wb_dispenser_close(p->dispenser);
    p->dispenser = NULL;
    err = fork_worker(p, worker);
    return err < 0 ? err : wb_dispenser_open(p->plan.options->dir, p->plan.options->dispenser, &p->dispenser);
}

int wb_crew_start(struct wb_parent *p)
{
    int err = 0;

    for (unsigned i = 0; err == 0 && i < p->plan.options->processes; i++) {
        p->workers[i].number = i;
        p->workers[i].fd = -1;
        p->worker_count = i + 1;
        err = start_worker(p, &p->workers[i]);
        p->alive += err == 0;
    }
    return err;
}

/* ---- ending ------------------------------------------------------------------------------------------- */

static void forget_worker(struct wb_parent_worker *worker)
{
    while (!worker->eof && worker->reader) {
        size_t before = worker->text.len;
        on_warnings(worker->fd, EV_READ, worker);
        if (worker->text.len == before && !worker->eof && errno == EAGAIN)
            break;
    }
    if (worker->reader)
        event_free(worker->reader);
    if (worker->fd >= 0)
        close(worker->fd);
    wb_buf_release(&worker->text);
    worker->reader = NULL;
    worker->fd = -1;
    worker->pid = 0;
}

void wb_crew_kill(struct wb_parent *p)
{
    for (unsigned i = 0; i < p->worker_count; i++)
        if (p->workers[i].pid) {
            kill(p->workers[i].pid, SIGKILL);
            waitpid(p->workers[i].pid, NULL, 0);
            forget_worker(&p->workers[i]);
        }
}

/* ---- blame -------------------------------------------------------------------------------------------- */

/* How often a process died over it, this time included. The least suspect one makes room. */
static unsigned count_deaths(struct wb_parent *p, uint64_t subject)
{
    struct wb_suspect *least = &p->suspects[0];

    for (unsigned i = 0; i < WB_SUSPECTS_MAX; i++) {
        if (p->suspects[i].subject == subject)
            return ++p->suspects[i].deaths;
        if (p->suspects[i].deaths < least->deaths)
            least = &p->suspects[i];
    }
    *least = (struct wb_suspect){subject, 1};
    return 1;
}

/* True where something was done about it, so that the next process does not meet the same. */
static bool find_blame(struct wb_parent *p, struct wb_tally_worker *mine, int status)
{
    unsigned stage = atomic_load(&mine->stage);
    uint64_t subject = atomic_load(&mine->subject);
    int signal_number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    bool killed = signal_number == SIGKILL || signal_number == SIGTERM || signal_number == SIGINT;
    char words[160];

    wb_tally_doing(mine, WB_STAGE_NONE, 0);
    /* A process that somebody kills while it waits for an answer says nothing about the page. */
    if (stage == WB_STAGE_NONE || (stage == WB_STAGE_SENT && (killed || !signal_number)))
        return false;
    unsigned deaths = count_deaths(p, subject);
    if (stage == WB_STAGE_OPENING && deaths >= PUT_ASIDE_AFTER) {
        snprintf(words, sizeof words, "its history ended %u crawler processes", deaths);
        int err = wb_dispenser_put_aside(p->dispenser, (int64_t)subject, wb_clock_now_ms() + PUT_ASIDE_MS, wb_slice_str(words));
        if (err < 0)
            wb_parent_warn(p, wb_error_message());
        return err == 0;
    }
    if (stage == WB_STAGE_OPENING || deaths < (unsigned)(killed ? BLAME_AFTER_KILLED : BLAME_AFTER))
        return false;
    wb_tally_blame(p->plan.tally, subject);
    return true;
}

/* Whether anything was done since the last death: of a process that failed only what became durable counts. */
static bool made_progress(struct wb_parent *p, bool failed)
{
    uint64_t commits = atomic_load(&p->plan.tally->commits), requests = atomic_load(&p->plan.tally->requests);
    bool progress = commits > p->commits_before || (!failed && requests > p->requests_before);

    p->commits_before = commits;
    p->requests_before = requests;
    return progress;
}

/* A worker ended before it was told to. */
static int worker_died(struct wb_parent *p, struct wb_parent_worker *worker, int status)
{
    struct wb_tally_worker *mine = &p->plan.tally->workers[worker->number];
    bool failed = WIFEXITED(status);
    char words[160];

    if (failed && WEXITSTATUS(status) == WB_WORKER_LOST) {
        wb_teller_ended(p->teller, worker->owner);
        return start_worker(p, worker);
    }
    if (!failed) {
        snprintf(words, sizeof words, "a crawler process died of signal %d; its sites go back, and another one takes its place", WTERMSIG(status));
        wb_parent_warn(p, words);
    }
    int err = wb_crawl_recover(p->plan.options->dir, p->plan.home, p->dispenser, false);
    if (err < 0)
        return err;
    wb_teller_ended(p->teller, worker->owner);
    bool progress = made_progress(p, failed), blamed = find_blame(p, mine, status);
    if (progress || blamed)
        p->deaths_in_vain = 0;
    p->deaths_in_vain++;
    if (failed && p->deaths_in_vain >= FAILURES_MAX)
        return wb_fail(WB_E_IO, "%s", worker->last_words[0] ? worker->last_words : "a crawler process gave up");
    if (p->deaths_in_vain > DEATHS_MAX)
        return wb_fail(WB_E_IO, "crawler processes keep dying of signal %d", WTERMSIG(status));
    if (!failed && p->deaths_in_vain >= CAREFUL_AFTER)
        p->careful_lives = CAREFUL_LIVES;
    else if (blamed)
        p->careful_lives = 0;
    atomic_store(&mine->careful, p->careful_lives > 0);
    p->careful_lives -= p->careful_lives > 0;
    int64_t wait = (int64_t)BACK_OFF_FIRST_MS << (p->deaths_in_vain < 8 ? p->deaths_in_vain - 1 : 7);
    worker->start_ms = wb_clock_now_ms() + (p->deaths_in_vain == 1 ? 0 : wait < BACK_OFF_MAX_MS ? wait : BACK_OFF_MAX_MS);
    return 0;
}

static void worker_ended(struct wb_parent *p, struct wb_parent_worker *worker, int status)
{
    struct wb_tally_worker *mine = &p->plan.tally->workers[worker->number];
    int err = 0;

    forget_worker(worker);
    p->alive--;
    /* A terminal's signal goes to all processes: a worker may be faster than we. */
    if (!p->stopping && !wb_stop_requested() && p->failed.code == 0) {
        atomic_store(&mine->in_flight, 0);
        atomic_store(&mine->idle, false);
        atomic_fetch_sub(&p->plan.tally->reserved, atomic_exchange(&mine->reserved, 0));
        err = worker_died(p, worker, status);
        p->alive += err == 0;
    } else {
        /* One that was killed leaves its spool, and the lines in it, to the next crawl. */
        wb_teller_ended(p->teller, worker->owner);
        if (WIFEXITED(status) && WEXITSTATUS(status))
            err = wb_fail(WB_E_IO, "%s", worker->last_words[0] ? worker->last_words : "a crawler process gave up");
    }
    if (err < 0)
        wb_parent_fail(p, err);
}

void wb_crew_watch(struct wb_parent *p)
{
    int status;
    pid_t pid;

    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (unsigned i = 0; i < p->worker_count; i++)
            if (p->workers[i].pid == pid)
                worker_ended(p, &p->workers[i], status);
    for (unsigned i = 0; i < p->worker_count; i++) {
        struct wb_parent_worker *worker = &p->workers[i];
        if (!worker->start_ms || (!p->stopping && p->failed.code == 0 && wb_clock_now_ms() < worker->start_ms))
            continue;
        /* Nothing is started any more where the crawl ends. */
        int err = p->stopping || wb_stop_requested() || p->failed.code < 0 ? 1 : start_worker(p, worker);
        worker->start_ms = 0;
        p->alive -= err != 0;
        if (err < 0)
            wb_parent_fail(p, err);
    }
}
