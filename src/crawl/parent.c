/*
 * parent.c - the event loop of a crawl's parent: looks after everything 25 times per second, and ends the run.
 *
 *   tick   workers that died, lines for readers, names to look up, what late-dying processes left, progress
 *   end    nothing is left to do, a limit is reached, a signal arrived, or something failed: workers are told to stop,
 *          and killed if they do not; then readers get the rest of the log
 *
 * It never fetches, and never waits for a reader.
 */
#include "base/check.h"
#include "base/error.h"
#include "crawl/lines.h"
#include "crawl/parent.h"
#include "crawl/recover.h"
#include "os/stop.h"

#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>

enum {
    TICK_MS = 40,
    COUNT_MS = 1000,         /* between two counts of the run's sites */
    PROGRESS_MS = 200,
    KILL_MS = 6 * 1000,      /* a worker that has not ended by then is killed; its spool and journal have its work */
    READERS_MS = 1500,       /* that readers of the log are given after a signal or a failure */
    PAUSE_MS = 5,
};

void wb_parent_warn(struct wb_parent *p, const char *message)
{
    WB_CHECK(p->magic == WB_PARENT_MAGIC);
    if (p->sink->warn)
        p->sink->warn(p->sink->context, message);
}

void wb_parent_fail(struct wb_parent *p, int err)
{
    WB_CHECK(p->magic == WB_PARENT_MAGIC && err < 0);
    if (p->failed.code == 0)
        wb_error_save(err, &p->failed);
}

/* ---- the log of fetches ------------------------------------------------------------------------------------------ */

int wb_parent_line(struct wb_parent *p, struct wb_slice line)
{
    WB_CHECK(p->magic == WB_PARENT_MAGIC);
    return p->lines ? wb_lines_append(p->lines, line, p->lines->round + 1) : 0;
}

static void tell_lines(struct wb_parent *p, bool *moved_out)
{
    *moved_out = false;
    if (p->reader_failed)
        return;
    int err = wb_teller_tell(p->teller, moved_out);
    p->reader_failed = err < 0;
    if (err < 0)
        wb_parent_fail(p, err);
}

/* The workers have ended. Waits for slow readers, but not for long after a signal or a failure. */
static void tell_rest(struct wb_parent *p)
{
    int64_t quiet_since = wb_clock_now_ms();
    uint64_t left = 0;
    char words[128];
    bool moved;

    wb_teller_ended(p->teller, p->own_name);
    if (wb_teller_adopt(p->teller) < 0)
        wb_parent_warn(p, wb_error_message());
    for (;;) {
        tell_lines(p, &moved);
        if (p->reader_failed || wb_teller_left(p->teller, &left) < 0 || left == 0)
            break;
        if (moved || !(wb_stop_requested() || p->failed.code < 0))
            quiet_since = wb_clock_now_ms();
        if (wb_clock_now_ms() - quiet_since >= READERS_MS)
            break;
        if (!moved)
            nanosleep(&(struct timespec){0, PAUSE_MS * 1000000L}, NULL);
    }
    p->lines_left = left;
    if (left && !p->reader_failed) {
        bool one = left == 1;
        snprintf(words, sizeof words,
                 "%" PRIu64 " line%s of the log %s not read; the next crawl with --json or --log passes %s on", left,
                 one ? "" : "s", one ? "was" : "were", one ? "it" : "them");
        wb_parent_warn(p, words);
    }
}

/* ---- statistics -------------------------------------------------------------------------------------------------- */

/* The sum of all errors, and their kinds in words, the most frequent first. */
static void count_errors(struct wb_tally *tally, struct wb_crawl_stat *stat)
{
    uint64_t counts[WB_CRAWL_ERROR_COUNT] = {0};
    size_t len = 0;

    for (int i = 1; i < WB_CRAWL_ERROR_COUNT; i++)
        stat->errors += counts[i] = tally->errors[i];
    for (int kinds = 1; kinds < WB_CRAWL_ERROR_COUNT; kinds++) {
        int most = 1;
        for (int i = 2; i < WB_CRAWL_ERROR_COUNT; i++)
            most = counts[i] > counts[most] ? i : most;
        if (!counts[most] || len + 40 > sizeof stat->error_kinds)
            return;
        len += (size_t)snprintf(stat->error_kinds + len, sizeof stat->error_kinds - len, "%s%s %" PRIu64,
                                len ? ", " : "", wb_crawl_error_word(most), counts[most]);
        counts[most] = 0;
    }
}

void wb_parent_stat(const struct wb_parent *p, struct wb_crawl_stat *stat_out)
{
    WB_CHECK(p->magic == WB_PARENT_MAGIC);
    struct wb_tally *t = p->plan.tally;
    struct rusage own, children;

    *stat_out = (struct wb_crawl_stat){.pages = t->pages, .bytes = t->bytes, .requests = t->requests,
                                       .unchanged = t->unchanged, .redirects = t->redirects,
                                       .duplicates = t->duplicates, .gone = t->gone, .robots = t->robots,
                                       .skipped = t->skipped, .module_errors = t->module_errors,
                                       .wire_bytes = t->wire_bytes, .known = t->known,
                                       .fetches = t->fetches, .processes = p->crew.alive};
    for (unsigned i = 0; i < p->crew.count; i++) {
        stat_out->sites_active += t->workers[i].sites;
        stat_out->sites_waiting += t->workers[i].waiting;
        stat_out->in_flight += t->workers[i].in_flight;
    }
    count_errors(t, stat_out);
    stat_out->sites_open = p->sites.unresolved + p->sites.ready + p->sites.claimed;
    stat_out->sites_done = p->sites.done + p->sites.alias + p->sites.refused;
    stat_out->sites_left = p->sites.waiting;
    stat_out->seconds = (double)(wb_clock_now_ms() - p->began_ms) / 1000;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    const struct timeval *times[] = {&own.ru_utime, &own.ru_stime, &children.ru_utime, &children.ru_stime};
    for (size_t i = 0; i < 4; i++)
        stat_out->cpu_ms += (uint64_t)times[i]->tv_sec * 1000 + (uint64_t)times[i]->tv_usec / 1000;
}

/* ---- the end of the run ------------------------------------------------------------------------------------------ */

static void stop_workers(struct wb_parent *p)
{
    if (!p->stopping)
        p->stopping_ms = wb_clock_now_ms();
    p->stopping = true;
    atomic_store(&p->plan.tally->stop, true);
    if (wb_clock_now_ms() - p->stopping_ms > KILL_MS)
        wb_crew_signal(&p->crew, SIGKILL);
}

static bool all_idle(const struct wb_parent *p)
{
    WB_CHECK(p->crew.count > 0);
    for (unsigned i = 0; i < p->crew.count; i++)
        if (!atomic_load(&p->plan.tally->workers[i].idle))
            return false;
    return true;
}

/* How many sites there still are to work on. */
static uint64_t count_open(const struct wb_dispenser_stat *sites, int64_t now_ms)
{
    uint64_t open = sites->unresolved + sites->ready + sites->claimed;
    /* A site whose wait is nearly over is worth waiting for. So is one that waits longer than any site may: the clock
       was wrong when that was written, and a worker will correct it. */
    bool soon = sites->next_ms <= now_ms + WB_SOON_MS || sites->next_ms - WB_BACK_OFF_MAX_MS > now_ms;

    return open + (sites->waiting && sites->next_ms && soon);
}

/* Counts the run's sites every second, and when it looks as if nothing is left. Then the run ends. */
static int look_around(struct wb_parent *p)
{
    WB_CHECK(p->dispenser);
    int64_t now = wb_clock_now_ms();
    bool idle = all_idle(p) && p->resolver.asking == 0;
    uint64_t reopened = 0;

    if (!idle && now - p->counted_ms < COUNT_MS)
        return 0;
    p->counted_ms = now;
    int err = wb_dispenser_stat(p->dispenser, p->plan.run, &p->sites);
    if (err < 0)
        return err;
    uint64_t open = count_open(&p->sites, now);
    atomic_store(&p->plan.tally->sites_open, open);
    if (open || !idle)
        return 0;
    /* Sites that were finished before links of other sites led to new pages of them are opened again now. */
    err = wb_dispenser_reopen(p->dispenser, p->plan.run, &reopened);
    if (err == 0 && reopened) {
        atomic_store(&p->plan.tally->sites_open, reopened);
        atomic_fetch_add(&p->plan.tally->claimable, 1);
    } else if (err == 0) {
        stop_workers(p);
    }
    return err;
}

/*
 * Whether all requests that --max-fetches allows were made and answered. It must look so for two ticks, because a
 * request is counted a moment before it is under way.
 */
static bool fetches_done(struct wb_parent *p)
{
    uint64_t max = p->plan.options->max_fetches;
    bool quiet = max && atomic_load(&p->plan.tally->fetches) >= max;

    for (unsigned i = 0; quiet && i < p->crew.count; i++)
        quiet = atomic_load(&p->plan.tally->workers[i].in_flight) == 0;
    p->quiet_ticks = quiet ? p->quiet_ticks + 1 : 0;
    return p->quiet_ticks >= 2;
}

static bool limit_reached(struct wb_parent *p)
{
    const struct wb_crawl_options *o = p->plan.options;

    return (o->max_time_ms && wb_clock_now_ms() - p->began_ms >= o->max_time_ms) ||
           (o->max_pages && atomic_load(&p->plan.tally->pages) >= o->max_pages) || fetches_done(p);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

/* If somebody set the clock, our moments move with it: whatever was a second ago stays a second ago. */
static void follow_clock(struct wb_parent *p)
{
    int64_t by_ms = wb_clock_follow();

    p->began_ms += by_ms;
    p->counted_ms += by_ms;
    p->shown_ms += by_ms;
    p->stopping_ms += p->stopping_ms ? by_ms : 0;
    for (unsigned i = 0; i < p->crew.count; i++)
        p->crew.members[i].start_ms += p->crew.members[i].start_ms ? by_ms : 0;
}

/*
 * Processes of a killed crawl may still have been dying when this one began. Recovers what they left soon after they
 * are gone, instead of waiting for the end of their leases.
 */
static int recover_late(struct wb_parent *p)
{
    static const int64_t after_ms[] = {1500, 5000, 15000};

    WB_CHECK(p->dispenser);
    if (p->recoveries >= sizeof after_ms / sizeof *after_ms)
        return 0;
    if (wb_clock_now_ms() - p->began_ms < after_ms[p->recoveries])
        return 0;
    p->recoveries++;
    int err = wb_recover(p->plan.options->dir, p->plan.home, p->dispenser, false);
    return err < 0 ? err : wb_teller_adopt(p->teller);
}

static void on_tick(evutil_socket_t fd, short what, void *context)
{
    struct wb_parent *p = context;
    struct wb_crawl_stat stat;
    bool moved;
    int err = 0;

    WB_CHECK(p->magic == WB_PARENT_MAGIC);
    (void)fd, (void)what;
    follow_clock(p);
    wb_crew_watch(p);
    tell_lines(p, &moved);
    if (wb_stop_requested() || limit_reached(p) || p->failed.code < 0 || p->stopping)
        stop_workers(p);
    if (p->crew.alive == 0) {
        event_base_loopbreak(p->base);
        return;
    }
    wb_control_door_sample(p);
    if (!p->stopping) {
        err = atomic_load(&p->plan.tally->orders.paused) ? 0 : wb_resolve_ahead(p);
        if (err == 0)
            err = recover_late(p);
        if (err == 0)
            err = look_around(p);
    }
    if (err < 0)
        wb_parent_fail(p, err);
    if (p->sink->progress && wb_clock_now_ms() - p->shown_ms >= PROGRESS_MS) {
        p->shown_ms = wb_clock_now_ms();
        wb_parent_stat(p, &stat);
        p->sink->progress(p->sink->context, &stat);
    }
}

int wb_parent_run(struct wb_parent *p)
{
    struct timeval tick = {0, TICK_MS * 1000};

    WB_CHECK(p->magic == WB_PARENT_MAGIC && p->crew.alive > 0 && !p->tick);
    p->tick = event_new(p->base, -1, EV_PERSIST, on_tick, p);
    if (!p->tick || event_add(p->tick, &tick) < 0)
        return wb_fail_nomem();
    on_tick(-1, 0, p);
    event_base_dispatch(p->base);
    tell_rest(p);
    return p->failed.code < 0 ? wb_error_restore(&p->failed) : wb_dispenser_stat(p->dispenser, p->plan.run, &p->sites);
}
