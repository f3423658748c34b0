/*
 * crawl.c - the parent of a crawl. It adds seeds to the dispenser, resolves names in advance (resolve.c),
 * keeps N worker processes running (crew.c), passes on what they tell (teller.c), and ends the run when
 * nothing is left, a limit is reached or a signal came. It never fetches, and never waits for a reader.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "crawl/parent.h"
#include "crawl/recover.h"
#include "dispenser/dispenser.h"
#include "os/clock.h"
#include "os/file.h"
#include "os/limits.h"
#include "os/path.h"
#include "os/stop.h"

#include <event2/event.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

enum {
    TICK_MS = 40,
    STAT_MS = 1000,          /* between counts of the run's sites */
    PROGRESS_MS = 200,
    KILL_MS = 6 * 1000,      /* after which a worker that does not end is killed: what it has is in its spool and journal */
    READERS_MS = 1500,       /* that readers of the log are given after a signal or a failure */
    PAUSE_MS = 5,
    SITES = 1000,
    PER_ADDRESS = 8,
    LIFETIME_DAYS = 90,
    TIMEOUT_MS = 30 * 1000,
    CRAWL_DELAY_MAX_MS = 60 * 1000,
};

#define SITE_BUDGET 1000000
#define MAX_BYTES (16u << 20)

void wb_parent_warn(struct wb_parent *p, const char *message)
{
    if (p->sink->warn)
        p->sink->warn(p->sink->context, message);
}

void wb_parent_fail(struct wb_parent *p, int err)
{
    if (p->failed.code == 0)
        wb_error_save(err, &p->failed);
}

/* ---- lines -------------------------------------------------------------------------------------------- */

int wb_parent_line(struct wb_parent *p, struct wb_slice line)
{
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

/* The workers have ended. Readers may be slow, but after a signal or a failure they do not keep us. */
static void tell_rest(struct wb_parent *p)
{
    int64_t quiet_since = wb_clock_now_ms();
    uint64_t left = 0;
    char words[128];
    bool moved;

    wb_teller_ended(p->teller, p->own_name);
    if (wb_teller_take_up(p->teller) < 0)
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
        snprintf(words, sizeof words, "%" PRIu64 " line%s of the log %s not read; the next crawl with --json or --log passes %s on", left,
                 left == 1 ? "" : "s", left == 1 ? "was" : "were", left == 1 ? "it" : "them");
        wb_parent_warn(p, words);
    }
}

/* ---- the end ------------------------------------------------------------------------------------------ */

static void stop_workers(struct wb_parent *p)
{
    if (!p->stopping)
        p->stopping_ms = wb_clock_now_ms();
    p->stopping = true;
    atomic_store(&p->plan.tally->stop, true);
    if (wb_clock_now_ms() - p->stopping_ms > KILL_MS)
        for (unsigned i = 0; i < p->worker_count; i++)
            if (p->workers[i].pid)
                kill(p->workers[i].pid, SIGKILL);
}

static bool all_idle(const struct wb_parent *p)
{
    for (unsigned i = 0; i < p->worker_count; i++)
        if (!atomic_load(&p->plan.tally->workers[i].idle))
            return false;
    return true;
}

/* Counts the run's sites now and then, and when it looks as if nothing was left. */
static int look_around(struct wb_parent *p)
{
    int64_t now = wb_clock_now_ms();
    bool idle = all_idle(p) && p->resolving == 0;
    uint64_t reopened = 0;

    if (!idle && now - p->counted_ms < STAT_MS)
        return 0;
    p->counted_ms = now;
    int err = wb_dispenser_stat(p->dispenser, p->plan.run, &p->sites);
    if (err < 0)
        return err;
    uint64_t open = p->sites.unresolved + p->sites.ready + p->sites.claimed;
    /* One whose time has nearly come is worth waiting for. So is one that was told to wait for longer than we ever do: its clock was wrong. */
    open += p->sites.waiting && p->sites.next_ms && (p->sites.next_ms <= now + WB_SOON_MS || p->sites.next_ms - WB_BACK_OFF_MAX_MS > now);
    atomic_store(&p->plan.tally->sites_open, open);
    if (open || !idle)
        return 0;
    /* Pages that only other sites' links told of, after their own site was done. */
    err = wb_dispenser_reopen(p->dispenser, p->plan.run, &reopened);
    if (err == 0 && reopened) {
        atomic_store(&p->plan.tally->sites_open, reopened);
        atomic_fetch_add(&p->plan.tally->claimable, 1);
    } else if (err == 0) {
        stop_workers(p);
    }
    return err;
}

/* All that may be asked for was, and the answers have come: for two ticks, since a request is counted a moment before it is under way. */
static bool fetches_done(struct wb_parent *p)
{
    uint64_t max = p->plan.options->max_fetches;
    bool quiet = max && atomic_load(&p->plan.tally->fetches) >= max;

    for (unsigned i = 0; quiet && i < p->worker_count; i++)
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

int64_t wb_parent_now(const struct wb_parent *p)
{
    (void)p;
    return wb_clock_now_ms();
}

/* Their sum, and the kinds in words, the most frequent first. */
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
        len += (size_t)snprintf(stat->error_kinds + len, sizeof stat->error_kinds - len, "%s%s %" PRIu64, len ? ", " : "",
                                wb_crawl_error_word(most), counts[most]);
        counts[most] = 0;
    }
}

void wb_parent_stat(const struct wb_parent *p, struct wb_crawl_stat *stat)
{
    struct wb_tally *t = p->plan.tally;
    struct rusage own, children;

    *stat = (struct wb_crawl_stat){.pages = t->pages, .bytes = t->bytes, .requests = t->requests, .unchanged = t->unchanged,
                                   .redirects = t->redirects, .duplicates = t->duplicates, .gone = t->gone, .robots = t->robots,
                                   .skipped = t->skipped, .wire_bytes = t->wire_bytes, .known = t->known, .fetches = t->fetches, .processes = p->alive};
    for (unsigned i = 0; i < p->worker_count; i++) {
        stat->sites_active += t->workers[i].sites;
        stat->sites_waiting += t->workers[i].waiting;
        stat->in_flight += t->workers[i].in_flight;
    }
    count_errors(t, stat);
    stat->sites_open = p->sites.unresolved + p->sites.ready + p->sites.claimed;
    stat->sites_done = p->sites.done + p->sites.alias + p->sites.refused;
    stat->sites_left = p->sites.waiting;
    stat->seconds = (double)(wb_clock_now_ms() - p->began_ms) / 1000;
    getrusage(RUSAGE_SELF, &own);
    getrusage(RUSAGE_CHILDREN, &children);
    const struct timeval *times[] = {&own.ru_utime, &own.ru_stime, &children.ru_utime, &children.ru_stime};
    for (size_t i = 0; i < 4; i++)
        stat->cpu_ms += (uint64_t)times[i]->tv_sec * 1000 + (uint64_t)times[i]->tv_usec / 1000;
}

/* Somebody set the clock: what is counted from stays as long ago as it was. */
static void follow_clock(struct wb_parent *p)
{
    int64_t by_ms = wb_clock_follow();

    p->began_ms += by_ms;
    p->counted_ms += by_ms;
    p->shown_ms += by_ms;
    p->stopping_ms += p->stopping_ms ? by_ms : 0;
    for (unsigned i = 0; i < p->worker_count; i++)
        p->workers[i].start_ms += p->workers[i].start_ms ? by_ms : 0;
}

/*
 * Processes of a crawl that was killed may have been dying still when this one began: what they left is recovered as soon as they are
 * gone, and not when their leases end.
 */
static int recover_late(struct wb_parent *p)
{
    static const int64_t after_ms[] = {1500, 5000, 15000};

    if (p->recoveries >= sizeof after_ms / sizeof *after_ms || wb_clock_now_ms() - p->began_ms < after_ms[p->recoveries])
        return 0;
    p->recoveries++;
    int err = wb_crawl_recover(p->plan.options->dir, p->plan.home, p->dispenser, false);
    return err < 0 ? err : wb_teller_take_up(p->teller);
}

static void on_tick(evutil_socket_t fd, short what, void *context)
{
    struct wb_parent *p = context;
    struct wb_crawl_stat stat;
    bool moved;
    int err = 0;

    (void)fd, (void)what;
    follow_clock(p);
    wb_crew_watch(p);
    tell_lines(p, &moved);
    if (wb_stop_requested() || limit_reached(p) || p->failed.code < 0 || p->stopping)
        stop_workers(p);
    if (p->alive == 0) {
        event_base_loopbreak(p->base);
        return;
    }
    if (!p->stopping) {
        err = wb_resolve_ahead(p);
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

/* ---- the begin ------------------------------------------------------------------------------------------ */

static void fill_options(const struct wb_crawl_options *given, struct wb_crawl_options *o)
{
    unsigned cores = wb_limits_processors();

    *o = *given;
    o->delay_ms = given->delay_ms >= 0 ? given->delay_ms : WB_CRAWL_DELAY_MS;
    o->crawl_delay_max_ms = given->crawl_delay_max_ms ? given->crawl_delay_max_ms : CRAWL_DELAY_MAX_MS;
    o->processes = given->processes ? given->processes : cores > 8 ? 8 : cores;
    if (o->processes > WB_TALLY_WORKERS_MAX)
        o->processes = WB_TALLY_WORKERS_MAX;
    o->sites = given->sites ? given->sites : SITES;
    o->connections = given->connections ? given->connections : 1;
    o->per_address = given->per_address ? given->per_address : PER_ADDRESS;
    if (o->per_address < o->connections)
        o->per_address = o->connections;
    o->user_agent = given->user_agent ? given->user_agent : WB_HTTP_AGENT;
    o->timeout_ms = given->timeout_ms ? given->timeout_ms : TIMEOUT_MS;
    o->max_bytes = given->max_bytes ? given->max_bytes : MAX_BYTES;
    o->site_budget = given->site_budget ? given->site_budget : SITE_BUDGET;
    o->lifetime_days = given->lifetime_days ? given->lifetime_days : LIFETIME_DAYS;
}

static int read_seeds(struct wb_parent *p, struct wb_seed_list *list)
{
    const struct wb_crawl_options *o = p->plan.options;
    int err = 0;

    for (size_t i = 0; err == 0 && i < o->url_count; i++)
        err = wb_seeds_add(list, wb_slice_str(o->urls[i]));
    if (err == 0 && o->seeds_file)
        err = wb_seeds_read(list, o->seeds_file, p->sink->warn, p->sink->context);
    for (size_t i = 0; err == 0 && i < list->count; i++) {
        list->plans[i].seeds = &list->seeds[i];
        list->plans[i].seed_count = 1;
        err = wb_scope_add(&p->plan.scope, list->plans[i].name);
    }
    if (err == 0)
        wb_scope_seal(&p->plan.scope);
    return err;
}

/* Sites of earlier runs that are not finished go on where this run's scope has them. */
static int join_unfinished(struct wb_parent *p, const struct wb_seed_list *list)
{
    int err = 0;

    if (p->plan.options->scope == WB_SCOPE_ANY || list->count == 0)
        return wb_dispenser_join(p->dispenser, p->plan.run, true, WB_SLICE_EMPTY);
    if (p->plan.options->scope == WB_SCOPE_DOMAIN)
        for (size_t i = 0; err == 0 && i < p->plan.scope.count; i++)
            err = wb_dispenser_join(p->dispenser, p->plan.run, false, wb_slice_str(p->plan.scope.names[i]));
    return err;
}

static int add_seeds(struct wb_parent *p, struct wb_seed_list *list)
{
    struct wb_run_wish wish = {.plans = list->plans, .count = list->count, .all = p->plan.options->scope == WB_SCOPE_ANY || list->count == 0};

    if (p->plan.options->scope == WB_SCOPE_DOMAIN) {
        wish.domains = p->plan.scope.names;
        wish.domain_count = p->plan.scope.count;
    }
    int err = wb_dispenser_set_classes(p->dispenser, list->site_classes, list->class_count);
    if (err == 0)
        err = wb_dispenser_enter(p->dispenser, &wish, &p->plan.run, &p->plan.goes_on);
    if (err == 0)
        err = join_unfinished(p, list);
    if (err == 0)
        err = wb_dispenser_stat(p->dispenser, p->plan.run, &p->sites);
    /* Without seeds every unfinished site crawls within itself. */
    if (err == 0 && list->count == 0 && p->sites.unresolved + p->sites.ready + p->sites.claimed + p->sites.waiting == 0)
        err = wb_fail(WB_E_INVALID, "no seeds, and no unfinished crawl in %s to go on with", p->plan.options->dir);
    atomic_store(&p->plan.tally->sites_open, p->sites.unresolved + p->sites.ready + p->sites.claimed);
    return err;
}

static int scope_site(void *context, const struct wb_site_row *row)
{
    return wb_scope_add(context, row->name);
}

/* The crawl is a list's run: its sites are the scope, and nothing else is gone on with. */
static int enter_list(struct wb_parent *p)
{
    uint64_t count = 0;

    p->plan.run = p->plan.options->run;
    int err = wb_dispenser_each(p->dispenser, p->plan.run, scope_site, &p->plan.scope);
    wb_scope_seal(&p->plan.scope);
    if (err == 0)
        err = wb_tally_open_fetches(p->plan.options->dir, p->plan.run, &p->plan.fetches, &count);
    atomic_store(&p->plan.tally->fetches, count);
    if (err == 0)
        err = wb_dispenser_stat(p->dispenser, p->plan.run, &p->sites);
    atomic_store(&p->plan.tally->sites_open, p->sites.unresolved + p->sites.ready + p->sites.claimed);
    return err;
}

/* Another crawl may make it at the same moment. */
static int make_repository(const char *dir)
{
    int err = wb_store_create(dir, NULL);

    return err == WB_E_INVALID && wb_store_exists(dir) ? 0 : err;
}

/* Whether a dispenser that is not used any more knows sites; if it cannot be asked, assume so. */
static bool has_sites(const char *dir, const char *url)
{
    struct wb_dispenser *old = NULL;
    struct wb_dispenser_stat stat = {0};
    bool known = true;

    int err = strcmp(url, WB_DISPENSER_OWN) == 0 ? wb_crawl_has_own(dir, &known) : 0;
    if (err == 0 && known)
        err = wb_dispenser_open(dir, url, &old);
    if (err == 0 && old)
        err = wb_dispenser_stat(old, 0, &stat);
    wb_dispenser_close(old);
    return err < 0 || stat.unresolved + stat.ready + stat.claimed + stat.waiting + stat.done + stat.alias + stat.refused > 0;
}

/* The next commands need not be told again. */
static int remember_dispenser(struct wb_parent *p)
{
    const struct wb_crawl_options *o = p->plan.options;
    struct wb_buf before = WB_BUF_INIT, words = WB_BUF_INIT;

    int err = wb_dispenser_remembered(o->dir, &before);
    if (err == WB_E_CORRUPT)
        err = 0; /* it is replaced */
    const char *old = before.len ? before.ptr : WB_DISPENSER_OWN;
    if (err < 0 || strcmp(old, o->dispenser) == 0)
        goto done;
    if (has_sites(o->dir, old) && wb_buf_append_str(&words, "from now on the repository uses another dispenser; sites stay in the one before: ") == 0 &&
        wb_dispenser_shown(wb_slice_str(old), &words) == 0 && wb_buf_terminate(&words) == 0)
        wb_parent_warn(p, words.ptr);
    err = wb_dispenser_remember(o->dir, o->dispenser);
done:
    wb_buf_release(&before);
    wb_buf_release(&words);
    return err;
}

static int open_teller(struct wb_parent *p)
{
    int err = wb_teller_open(p->plan.options->dir, p->sink, &p->teller);

    snprintf(p->own_name, sizeof p->own_name, "%s-%ld-%llx", p->plan.home, (long)getpid(), (unsigned long long)p->began_ms);
    return err < 0 ? err : wb_teller_add(p->teller, p->own_name, &p->lines);
}

static int open_parent(struct wb_parent *p)
{
    const struct wb_crawl_options *o = p->plan.options;
    struct timeval tick = {0, TICK_MS * 1000};
    struct wb_seed_list list = {0};

    int err = o->ca_file && wb_path_kind(o->ca_file) != WB_PATH_FILE ? wb_fail(WB_E_NOTFOUND, "%s: no such file of certificates", o->ca_file) : 0;
    if (err == 0 && !o->run)
        err = read_seeds(p, &list);
    if (err == 0 && list.count == 0 && !wb_store_exists(o->dir))
        err = wb_fail(WB_E_INVALID, "no seeds: name a URL, or a file of them with --seeds");
    if (err == 0 && !wb_store_exists(o->dir))
        err = make_repository(o->dir);
    if (err == 0)
        err = wb_store_id(o->dir, p->plan.home);
    if (err == 0)
        err = wb_dispenser_open(o->dir, o->dispenser, &p->dispenser);
    if (err == 0 && o->dispenser)
        err = remember_dispenser(p);
    if (err == 0)
        err = wb_crawl_recover(o->dir, p->plan.home, p->dispenser, true);
    if (err == 0)
        err = open_teller(p);
    if (err == 0)
        err = o->run ? enter_list(p) : add_seeds(p, &list);
    wb_seeds_release(&list);
    if (err < 0)
        return err;
    p->base = event_base_new();
    p->tick = p->base ? event_new(p->base, -1, EV_PERSIST, on_tick, p) : NULL;
    if (!p->tick || event_add(p->tick, &tick) < 0)
        return wb_fail_nomem();
    return wb_resolve_open(p);
}

static void close_parent(struct wb_parent *p)
{
    wb_crew_kill(p);
    wb_teller_close(p->teller);
    wb_resolve_close(p);
    if (p->tick)
        event_free(p->tick);
    if (p->base)
        event_base_free(p->base);
    wb_dispenser_close(p->dispenser);
    wb_scope_release(&p->plan.scope);
    wb_file_close(&p->plan.fetches);
}

int wb_crawl(const struct wb_crawl_options *options, const struct wb_crawl_sink *sink, struct wb_crawl_stat *stat_out)
{
    struct wb_crawl_options o;
    struct wb_parent p = {.sink = sink};
    int err = 0;

    *stat_out = (struct wb_crawl_stat){0};
    fill_options(options, &o);
    p.plan.options = &o;
    p.plan.fetches = WB_FILE_INIT;
    p.plan.agent = wb_http_agent_token(wb_slice_str(o.user_agent));
    p.began_ms = wb_clock_now_ms();
    p.plan.tally = wb_tally_new();
    if (!p.plan.tally)
        return WB_E_NOMEM;
    wb_scope_init(&p.plan.scope, o.scope);
    err = open_parent(&p);
    if (err == 0)
        err = wb_crew_start(&p);
    if (err == 0) {
        on_tick(-1, 0, &p);
        event_base_dispatch(p.base);
        tell_rest(&p);
        err = p.failed.code < 0 ? wb_error_restore(&p.failed) : wb_dispenser_stat(p.dispenser, p.plan.run, &p.sites);
    }
    wb_parent_stat(&p, stat_out);
    stat_out->lines_left = p.lines_left;
    if (err == 0 && wb_stop_requested())
        err = wb_fail(WB_E_STOPPED, "stopped by a signal");
    struct wb_error_copy failed;
    wb_error_save(err, &failed);
    close_parent(&p);
    wb_tally_free(p.plan.tally);
    return err < 0 ? wb_error_restore(&failed) : 0;
}

/* ---- which dispenser ------------------------------------------------------------------------------------ */

int wb_crawl_has_own(const char *dir, bool *has_out)
{
    char *path = wb_path_join(dir, "dispenser.db");

    *has_out = path && wb_path_kind(path) == WB_PATH_FILE;
    wb_free(path);
    return path ? 0 : WB_E_NOMEM;
}

int wb_crawl_dispenser(const char *dir, struct wb_buf *text_out, bool *known_out)
{
    struct wb_buf url = WB_BUF_INIT;

    *known_out = true;
    int err = wb_dispenser_remembered(dir, &url);
    if (err == 0 && url.len)
        err = wb_dispenser_shown(wb_buf_slice(&url), text_out);
    else if (err == 0)
        err = wb_crawl_has_own(dir, known_out);
    wb_buf_release(&url);
    return err;
}

/* ---- checking ------------------------------------------------------------------------------------------ */

struct verifier {
    wb_journal_found found;
    void *context;
};

static void on_found(void *context, bool problem, uint64_t offset, const char *message)
{
    const struct verifier *v = context;

    v->found(v->context, problem, "dispenser.db", offset, message);
}

int wb_crawl_verify(const char *dir, wb_journal_found found, void *context)
{
    struct verifier v = {found, context};

    struct wb_buf url = WB_BUF_INIT;

    int err = wb_dispenser_remembered(dir, &url);
    if (err == WB_E_CORRUPT) {
        found(context, true, "dispenser.url", 0, wb_error_message());
        err = 0;
    }
    wb_buf_release(&url);
    return err < 0 ? err : wb_dispenser_verify(dir, on_found, &v);
}
