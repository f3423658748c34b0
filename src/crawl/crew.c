/*
 * crew.c - the worker processes of a crawl: started, listened to, and replaced when they die.
 *
 * A worker that dies costs the moment it takes to start another one. Before that, what it left is recovered
 * (recover.c). The crawl is given up only if workers die again and again with nothing done in between. To find out
 * why they die, the parent looks in the tally at what each was doing:
 *   - a URL whose answer was being read at several deaths is not requested again in this crawl;
 *   - a site whose history could not be restored is left for a later crawl;
 *   - if the cause is not clear, the next workers make one request at a time.
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
    TEXT_MAX = 1 << 20,       /* a longer warning is dropped */
    /* Deaths in a row with nothing done in between, after which the crawl ends: */
    DEATHS_MAX = 20,          /* by signals */
    FAILURES_MAX = 4,         /* by errors, which are mostly the same for every process: a full disk, a lost database */
    BACK_OFF_FIRST_MS = 100,  /* before a worker is started again; doubles with each such death */
    BACK_OFF_MAX_MS = 5000,
    BLAME_AFTER = 2,          /* deaths over the same page */
    BLAME_AFTER_KILLED = 3,   /* the same, if somebody else may have sent the signal */
    CAREFUL_AFTER = 2,        /* deaths by signals: then the next workers make one request at a time */
    CAREFUL_LIVES = 6,        /* so many of them */
    PUT_ASIDE_AFTER = 3,      /* deaths over the same site */
    PUT_ASIDE_MS = WB_DAY_MS,
};

/* ---- warnings of workers ----------------------------------------------------------------------------------------- */

static void pass_warnings(struct wb_parent *p, struct wb_crew_member *worker)
{
    WB_CHECK(p->magic == WB_PARENT_MAGIC);
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
    struct wb_crew_member *worker = context;

    WB_CHECK(worker->fd == fd && !worker->eof);
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

/* ---- starting ---------------------------------------------------------------------------------------------------- */

static int fork_worker(struct wb_parent *p, struct wb_crew_member *worker)
{
    int ends[2] = {-1, -1};

    /* The slot is free, and there is no database handle that both processes would have. */
    WB_CHECK(worker->pid == 0 && worker->fd < 0 && !worker->reader && !p->dispenser);
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        return wb_fail_errno("pipe");
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        close(ends[0]);
        wb_control_door_forget(p);
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

/* A database handle must not exist on both sides of a fork, so ours is closed meanwhile. */
static int start_worker(struct wb_parent *p, struct wb_crew_member *worker)
{
    WB_CHECK(p->magic == WB_PARENT_MAGIC);
    worker->start_ms = 0;
    worker->last_words[0] = '\0';
    snprintf(worker->owner, sizeof worker->owner, "%s-%ld-%llx-%u", p->plan.home, (long)getpid(),
             (unsigned long long)p->began_ms, p->crew.started++);
    p->plan.owner = worker->owner;
    p->plan.parent = getpid();
    int err = wb_teller_add(p->teller, worker->owner, &p->plan.lines);
    if (err < 0)
        return err;
    wb_dispenser_close(p->dispenser);
    p->dispenser = NULL;
    err = fork_worker(p, worker);
    return err < 0 ? err : wb_dispenser_open(p->plan.options->dir, p->plan.options->dispenser, &p->dispenser);
}

/* Whether the worker counts as alive after an attempt to start it: it may run although something else went wrong. */
static bool is_counted(const struct wb_crew_member *worker, int err)
{
    return err == 0 || worker->pid;
}

int wb_crew_start(struct wb_parent *p)
{
    int err = 0;

    WB_CHECK(p->magic == WB_PARENT_MAGIC && p->crew.count == 0 && p->plan.scope.sealed && p->plan.run > 0);
    WB_CHECK(p->plan.options->processes > 0 && p->plan.options->processes <= WB_TALLY_WORKERS_MAX);
    for (unsigned i = 0; err == 0 && i < p->plan.options->processes; i++) {
        p->crew.members[i].number = i;
        p->crew.members[i].fd = -1;
        p->crew.count = i + 1;
        err = start_worker(p, &p->crew.members[i]);
        p->crew.alive += is_counted(&p->crew.members[i], err);
    }
    return err;
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

/* Reads the last warnings of a process that has ended, and releases what belongs to it. */
static void forget_worker(struct wb_crew_member *worker)
{
    WB_CHECK(worker->pid > 0);
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

void wb_crew_signal(const struct wb_crew *crew, int signal_number)
{
    for (unsigned i = 0; i < crew->count; i++)
        if (crew->members[i].pid)
            kill(crew->members[i].pid, signal_number);
}

void wb_crew_kill(struct wb_crew *crew)
{
    wb_crew_signal(crew, SIGKILL);
    for (unsigned i = 0; i < crew->count; i++)
        if (crew->members[i].pid) {
            waitpid(crew->members[i].pid, NULL, 0);
            forget_worker(&crew->members[i]);
        }
}

/* ---- blame ------------------------------------------------------------------------------------------------------- */

/* How often a worker died over this subject, this time included. If the list is full, the least suspect one leaves. */
static unsigned count_deaths(struct wb_crew *crew, uint64_t subject)
{
    struct wb_suspect *least = &crew->suspects[0];

    for (unsigned i = 0; i < WB_SUSPECTS_MAX; i++) {
        if (crew->suspects[i].subject == subject)
            return ++crew->suspects[i].deaths;
        if (crew->suspects[i].deaths < least->deaths)
            least = &crew->suspects[i];
    }
    *least = (struct wb_suspect){subject, 1};
    return 1;
}

/*
 * Looks for the cause of a death. Returns true if something was done about it, so that the next worker does not die of
 * the same cause.
 */
static bool find_blame(struct wb_parent *p, struct wb_tally_worker *mine, int status)
{
    unsigned stage = atomic_load(&mine->stage);
    uint64_t subject = atomic_load(&mine->subject);
    int signal_number = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    bool killed = signal_number == SIGKILL || signal_number == SIGTERM || signal_number == SIGINT;
    char words[160];

    wb_tally_doing(mine, WB_STAGE_NONE, 0);
    /* If somebody killed the process while it waited for an answer, that says nothing about the page. */
    if (stage == WB_STAGE_NONE || (stage == WB_STAGE_SENT && (killed || !signal_number)))
        return false;
    unsigned deaths = count_deaths(&p->crew, subject);
    if (stage == WB_STAGE_OPENING && deaths >= PUT_ASIDE_AFTER) {
        snprintf(words, sizeof words, "its history ended %u crawler processes", deaths);
        int err = wb_dispenser_put_aside(p->dispenser, (int64_t)subject, wb_clock_now_ms() + PUT_ASIDE_MS,
                                         wb_slice_str(words));
        if (err < 0)
            wb_parent_warn(p, wb_error_message());
        return err == 0;
    }
    if (stage == WB_STAGE_OPENING || deaths < (unsigned)(killed ? BLAME_AFTER_KILLED : BLAME_AFTER))
        return false;
    wb_tally_blame(p->plan.tally, subject);
    return true;
}

/* Whether anything was done since the last death. If the worker ended with an error, only commits count. */
static bool made_progress(struct wb_crew *crew, const struct wb_tally *tally, bool failed)
{
    uint64_t commits = atomic_load(&tally->commits), requests = atomic_load(&tally->requests);
    bool progress = commits > crew->commits_before || (!failed && requests > crew->requests_before);

    crew->commits_before = commits;
    crew->requests_before = requests;
    return progress;
}

/* When to start the next process in place of one that died: at once, unless several died in vain. */
static int64_t restart_ms(const struct wb_crew *crew)
{
    WB_CHECK(crew->deaths_in_vain > 0);
    unsigned deaths = crew->deaths_in_vain;
    int64_t wait = (int64_t)BACK_OFF_FIRST_MS << (deaths < 8 ? deaths - 1 : 7);

    if (deaths == 1)
        wait = 0;
    return wb_clock_now_ms() + (wait < BACK_OFF_MAX_MS ? wait : BACK_OFF_MAX_MS);
}

/* Decides whether the next worker is careful. */
static void choose_care(struct wb_crew *crew, struct wb_tally_worker *mine, bool failed, bool blamed)
{
    if (!failed && crew->deaths_in_vain >= CAREFUL_AFTER)
        crew->careful_lives = CAREFUL_LIVES;
    else if (blamed)
        crew->careful_lives = 0;
    atomic_store(&mine->careful, crew->careful_lives > 0);
    crew->careful_lives -= crew->careful_lives > 0;
}

static int give_up(const struct wb_crew_member *worker)
{
    return wb_fail(WB_E_IO, "%s", worker->last_words[0] ? worker->last_words : "a crawler process gave up");
}

/* A worker ended before it was told to. */
static int worker_died(struct wb_parent *p, struct wb_crew_member *worker, int status)
{
    struct wb_tally_worker *mine = &p->plan.tally->workers[worker->number];
    struct wb_crew *crew = &p->crew;
    bool failed = WIFEXITED(status);
    char words[160];

    if (failed && WEXITSTATUS(status) == WB_WORKER_LOST) {
        wb_teller_ended(p->teller, worker->owner);
        return start_worker(p, worker);
    }
    if (!failed) {
        snprintf(words, sizeof words,
                 "a crawler process died of signal %d; its sites go back, and another one takes its place",
                 WTERMSIG(status));
        wb_parent_warn(p, words);
    }
    int err = wb_recover(p->plan.options->dir, p->plan.home, p->dispenser, false);
    if (err < 0)
        return err;
    wb_teller_ended(p->teller, worker->owner);
    bool progress = made_progress(crew, p->plan.tally, failed), blamed = find_blame(p, mine, status);
    if (progress || blamed)
        crew->deaths_in_vain = 0;
    crew->deaths_in_vain++;
    if (failed && crew->deaths_in_vain >= FAILURES_MAX)
        return give_up(worker);
    if (crew->deaths_in_vain > DEATHS_MAX)
        return wb_fail(WB_E_IO, "crawler processes keep dying of signal %d", WTERMSIG(status));
    choose_care(crew, mine, failed, blamed);
    worker->start_ms = restart_ms(crew);
    return 0;
}

static void worker_ended(struct wb_parent *p, struct wb_crew_member *worker, int status)
{
    struct wb_tally_worker *mine = &p->plan.tally->workers[worker->number];
    int err = 0;

    forget_worker(worker);
    WB_CHECK(p->crew.alive > 0);
    p->crew.alive--;
    /* A signal from a terminal goes to all processes, and a worker may have seen it before us. */
    if (!p->stopping && !wb_stop_requested() && p->failed.code == 0) {
        atomic_store(&mine->in_flight, 0);
        atomic_store(&mine->idle, false);
        atomic_fetch_sub(&p->plan.tally->reserved, atomic_exchange(&mine->reserved, 0));
        err = worker_died(p, worker, status);
        p->crew.alive += is_counted(worker, err);
    } else {
        /* If it was killed, its spool with its lines stays for the next crawl. */
        wb_teller_ended(p->teller, worker->owner);
        if (WIFEXITED(status) && WEXITSTATUS(status))
            err = give_up(worker);
    }
    if (err < 0)
        wb_parent_fail(p, err);
}

void wb_crew_watch(struct wb_parent *p)
{
    int status;
    pid_t pid;

    WB_CHECK(p->magic == WB_PARENT_MAGIC);
    while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
        for (unsigned i = 0; i < p->crew.count; i++)
            if (p->crew.members[i].pid == pid)
                worker_ended(p, &p->crew.members[i], status);
    for (unsigned i = 0; i < p->crew.count; i++) {
        struct wb_crew_member *worker = &p->crew.members[i];
        bool ending = p->stopping || p->failed.code < 0;
        if (!worker->start_ms || (!ending && wb_clock_now_ms() < worker->start_ms))
            continue;
        WB_CHECK(worker->pid == 0 && p->crew.alive > 0); /* it counts as alive until it is started again, or is not */
        int err = ending || wb_stop_requested() ? 1 : start_worker(p, worker); /* 1: it is not started any more */
        worker->start_ms = 0;
        p->crew.alive -= !is_counted(worker, err);
        if (err < 0)
            wb_parent_fail(p, err);
    }
    WB_CHECK(p->crew.alive <= p->crew.count);
}
