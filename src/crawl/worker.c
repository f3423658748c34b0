/*
 * worker.c - one worker process: its begin, its event loop and its end.
 *
 *   tick, 20 times per second   end? renew leases, claim sites, retry favours, dispatch, commit
 *   due, when a site is due     dispatch
 *   answers                     come from libcurl and c-ares through the same loop
 *
 * A commit makes everything durable, in this order: links to other sites go to the dispenser, the journal to the
 * kernel, the store commits, the journal is synced, lines of the log are released, the spool is emptied, and closed
 * sites are reported to the dispenser.
 *
 * This file never decides what is requested or what an answer means.
 */
#include "base/check.h"
#include "base/mem.h"
#include "crawl/worker.h"
#include "os/clock.h"
#include "os/limits.h"
#include "os/stop.h"
#include "webdb/webdb.h"

#include <event2/event.h>
#include <unistd.h>

enum {
    TICK_MS = 50,
    /* A commit is due after one of these: */
    COMMIT_MS = 5000,         /* only against power loss, the spool survives kill -9; seldom, for large blocks */
    COMMIT_WATCHED_MS = 1000, /* if somebody reads the log of fetches, because its lines wait for the commit */
    COMMIT_PAGES = 8192,
    COMMIT_BYTES = 32 << 20,
    CLAIM_MS = 300,           /* ask the dispenser for sites, even if nobody says that there are any */
    CLAIM_MAX = 256,          /* sites at a time */
    SHARE_MS = 200,           /* how long each worker takes only its share after news of sites */
    SPREAD_MS = 2000,         /* over which the first requests of sites claimed together are spread */
    COUNT_MS = 500,           /* between two counts of the URLs in queues */
    TELL_MS = 200,            /* the longest time that links to other sites wait */
    WIND_DOWN_MS = 800,       /* that answers under way are waited for at the end */
    LEASE_MS = WB_MINUTE_MS,
    RENEW_MS = 15 * 1000,
    CONNECTIONS_SPARE = 100,  /* beyond one per site */
    FILES_SPARE = 64,         /* file descriptors for everything else: store, journal, spool, webdb, names */
};

bool wb_worker_slept(const struct wb_worker *w)
{
    return wb_clock_now_ms() - w->leases.ticked_ms > LEASE_MS - 2 * RENEW_MS;
}

void wb_worker_fail(struct wb_worker *w, int err)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && err < 0);
    if (w->failed.code == 0)
        wb_error_save(err, &w->failed);
    event_base_loopbreak(w->loop.base);
}

void wb_worker_dirty(struct wb_worker *w)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC);
    if (!w->uncommitted.since_ms)
        w->uncommitted.since_ms = wb_clock_now_ms();
}

int wb_worker_parse(struct wb_worker *w, struct wb_slice url, struct wb_pageid *id_out)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC);
    *id_out = (struct wb_pageid){0, 0};
    int err = wb_url_parse(url, NULL, &w->scratch.url);
    if (err == 0)
        err = wb_url_key(&w->scratch.url, &w->scratch.key);
    if (err == 0)
        *id_out = wb_pageid_of_key(wb_buf_slice(&w->scratch.key));
    return err;
}

/* ---- claiming ---------------------------------------------------------------------------------------------------- */

/* Sites that the dispenser gave us and that are not opened yet, in its order. */
struct site_claim {
    struct wb_worker *w;
    struct wb_list list;
    unsigned count;
};

static int claim_row(void *context, const struct wb_site_row *row)
{
    struct site_claim *claim = context;
    struct wb_worker *w = claim->w;
    const struct wb_crawl_options *options = w->plan->options;
    struct wb_slice address = row->address;
    struct wb_site *site = NULL;

    int err = wb_site_new(row, wb_clock_now_ms(), &site);
    if (err < 0)
        return err;
    site->own_delay_ms = row->delay_ms >= 0 ? row->delay_ms : options->delay_ms;
    wb_rules_set_delays(w, site);
    wb_dispatch_obey_site(w, site);
    site->tells = wb_dispenser_is_shared(w->repo.dispenser);
    site->budget = row->budget >= 0 ? (uint64_t)row->budget : options->site_budget;
    const char *blank = memchr(address.ptr, ' ', address.len);
    if (blank)
        address.len = (size_t)(blank - address.ptr);
    /* An address from a run that allowed private ones is looked up again; the site is refused then. */
    if (!wb_address_parse(address, &site->address) || wb_names_refuse_address(w->plan, &site->address))
        site->address_expires_ms = 0;
    /* Its history is in the journal of another repository. We start without it, but keep its clock. */
    if (!wb_slice_equal(row->home, wb_slice_str(w->plan->home)))
        site->trail = WB_EDIT_NOWHERE;
    wb_list_append(&claim->list, &site->node);
    claim->count++;
    return 0;
}

/*
 * Sites that were claimed together must not begin together: their requests would come in bursts for as long as the
 * crawl lasts, which needs more memory and hits a server with many names all at once.
 */
static void spread(struct wb_site *site, unsigned at, unsigned count)
{
    WB_CHECK(at < count);
    int64_t window = site->delay_ms < SPREAD_MS ? site->delay_ms : SPREAD_MS;
    int64_t begin = wb_clock_now_ms() + window * at / count;

    if (begin > site->next_ms)
        site->next_ms = begin;
}

static int open_claimed(struct wb_worker *w, struct wb_site *site)
{
    WB_CHECK(site->magic == WB_SITE_MAGIC && !site->guest);
    int err = wb_site_set_add(&w->sites, site);

    if (err < 0) {
        wb_site_free(site, w->repo.spill);
        return err;
    }
    if (site->stopped)
        return 0; /* wb_dispatch_obey() gives it back; nobody needs its history */
    if (site->address_expires_ms) {
        err = wb_frontier_move(&w->frontier, site, &site->address);
        if (err == 0 && !site->needed)
            err = wb_names_have_neighbours(w, site, &site->root.probing);
    }
    if (err < 0)
        return err;
    wb_tally_doing(w->mine, WB_STAGE_OPENING, (uint64_t)site->id);
    err = wb_visit_open(w, site);
    /* After a failure the stage stays as it is, so that the parent can see it. */
    if (err == 0 && w->failed.code == 0 && atomic_load(&w->mine->stage) == WB_STAGE_OPENING)
        wb_tally_doing(w->mine, WB_STAGE_NONE, 0);
    return err;
}

/*
 * How many more sites to claim: at first a fair share of what is open, so that one process does not take everything.
 * After a moment also more, because the dispenser gives sites of an address that we contact already to nobody else.
 */
static unsigned wanted_sites(const struct wb_worker *w)
{
    uint64_t open = atomic_load(&w->tally->sites_open);
    unsigned processes = w->plan->options->processes;
    uint64_t share = (open + processes - 1) / processes;
    unsigned max = w->plan->options->sites;

    if (share < 1)
        share = 1;
    if (share < max && wb_clock_now_ms() - w->claims.news_ms < SHARE_MS)
        max = (unsigned)share;
    return max > w->sites.count ? max - w->sites.count : 0;
}

static int claim_sites(struct wb_worker *w)
{
    struct site_claim claim = {.w = w};
    struct wb_list_node *node;
    unsigned claimable = atomic_load(&w->tally->claimable);
    int64_t now = wb_clock_now_ms();
    unsigned max, at = 0;
    int err = 0;

    WB_CHECK(!w->loop.stopping && !w->leases.lost);
    if (claimable != w->claims.made_at && w->claims.seen != claimable)
        w->claims.news_ms = now;
    w->claims.seen = claimable;
    max = wanted_sites(w);
    if (!max || (claimable == w->claims.made_at && !w->claims.again && now - w->claims.made_ms < CLAIM_MS))
        return 0;
    if (max > CLAIM_MAX)
        max = CLAIM_MAX;
    w->claims.made_at = claimable;
    w->claims.made_ms = now;
    err = wb_dispenser_claim(w->repo.dispenser, w->plan->run, wb_slice_str(w->owner), now, LEASE_MS, max, claim_row,
                             &claim);
    w->claims.again = err == 0 && claim.count == max;
    while ((node = wb_list_pop(&claim.list))) {
        struct wb_site *site = WB_CONTAINER_OF(node, struct wb_site, node);
        spread(site, at++, claim.count);
        if (err < 0)
            wb_site_free(site, w->repo.spill);
        else
            err = open_claimed(w, site);
    }
    return err;
}

/* ---- committing -------------------------------------------------------------------------------------------------- */

static int commit(struct wb_worker *w)
{
    struct wb_store_commit_counts counts = {0};

    WB_CHECK(!w->errands.taking && !w->loop.dispatching);
    wb_errand_take_arrivals(w);
    WB_CHECK(w->errands.arrival_count == 0); /* no page is left behind that is in no spool */
    bool pages = w->uncommitted.pages > 0;
    int err = w->failed.code < 0 ? wb_error_restore(&w->failed) : wb_links_flush(&w->links, w->repo.dispenser, w->plan);

    /* Before the commit, too: another repository that takes a site over must not fetch what can be seen here. */
    if (err == 0)
        err = wb_news_tell(w);
    /* Flush before the commit: a process that sees a page in the store can read its record in the journal (`update`
       relies on this). Sync after it: if the power fails in between, we fetch some pages again, but we never believe
       that we have pages that we do not have. Pages whose records are lost that way are adopted by `update`. */
    if (err == 0)
        err = wb_journal_writer_flush(w->repo.journal);
    if (err == 0 && pages)
        err = wb_store_commit(w->repo.store, &counts);
    if (err == 0 && counts.barred)
        err = wb_eventlog_correct(w);
    if (err == 0)
        err = wb_journal_writer_sync(w->repo.journal);
    /* Until the spool's next round begins it has the lines too. Recovery knows which round was released last. */
    if (err == 0)
        err = wb_eventlog_release(w);
    if (err == 0)
        err = wb_spool_reset(w->repo.spool);
    if (err == 0)
        err = wb_visit_report(w, wb_journal_writer_rolled(w->repo.journal));
    if (err < 0)
        return err;
    /* Everything has gone where it must be before the spool is emptied. */
    WB_CHECK(w->links.out.count == 0 && w->news.count == 0 && w->uncommitted.lines.len == 0);
    w->uncommitted.since_ms = 0;
    w->uncommitted.pages = w->uncommitted.bytes = 0;
    wb_tally_add(&w->tally->commits, 1);
    return 0;
}

/* Links to other sites should not wait for a commit: other workers may have nothing to do. */
static int tell_others(struct wb_worker *w)
{
    int64_t now = wb_clock_now_ms();

    if (!w->links.out.count || now - w->links.sent_ms < TELL_MS)
        return 0;
    w->links.sent_ms = now;
    return wb_links_flush(&w->links, w->repo.dispenser, w->plan);
}

static bool commit_is_due(const struct wb_worker *w)
{
    int64_t wait = w->plan->lines ? COMMIT_WATCHED_MS : COMMIT_MS;

    if (!w->uncommitted.since_ms)
        return false;
    /* Without sites there is nothing left to do, and the end of the run waits for our commit. */
    return w->sites.count == 0 || w->uncommitted.pages >= COMMIT_PAGES || w->uncommitted.bytes >= COMMIT_BYTES ||
           wb_clock_now_ms() - w->uncommitted.since_ms >= wait;
}

static int renew(struct wb_worker *w)
{
    int64_t now = wb_clock_now_ms();

    w->leases.ticked_ms = now;
    if (!w->sites.count || now - w->leases.renewed_ms < RENEW_MS)
        return 0;
    w->leases.renewed_ms = now;
    int err = wb_dispenser_renew(w->repo.dispenser, wb_slice_str(w->owner), LEASE_MS);
    /* We were suspended for so long that others took us for dead, and our sites belong to them now. A new process takes
       our place. */
    w->leases.lost = err == WB_E_BUSY;
    if (w->leases.lost)
        event_base_loopbreak(w->loop.base);
    return w->leases.lost ? 0 : err;
}

/*
 * If somebody set the clock, everything that is stored from now on has the right time. All moments that we wait for
 * move with the clock, so that no wait becomes longer or shorter.
 */
static void follow_clock(struct wb_worker *w)
{
    int64_t by_ms = wb_clock_follow();
    int64_t *moments[] = {&w->uncommitted.since_ms, &w->claims.made_ms,   &w->favours.retried_ms, &w->leases.ticked_ms,
                          &w->links.sent_ms,        &w->loop.stopping_ms, &w->claims.news_ms};

    if (!by_ms)
        return;
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++)
        if (*moments[i])
            *moments[i] += by_ms;
    for (struct wb_site *site = NULL; (site = wb_site_set_next(&w->sites, site));)
        wb_site_shift(site, by_ms);
    wb_frontier_shift(&w->frontier, by_ms);
    wb_fetcher_shift(w->fetcher, by_ms);
    w->leases.renewed_ms = 0; /* renew at once: the leases were written with the other time */
}

/* Counts the URLs in queues, once in a while. */
static void count_queues(struct wb_worker *w)
{
    uint64_t queued = 0;
    int64_t now = wb_clock_now_ms();

    if (now - w->loop.queues_ms < COUNT_MS && now >= w->loop.queues_ms)
        return;
    w->loop.queues_ms = now;
    for (struct wb_site *site = NULL; (site = wb_site_set_next(&w->sites, site));)
        queued += site->queue.count + site->again.count;
    atomic_store(&w->mine->queued, queued);
}

static void count_sites(struct wb_worker *w)
{
    unsigned in_flight = atomic_load(&w->mine->in_flight);

    count_queues(w);
    atomic_store(&w->mine->sites, w->sites.count);
    atomic_store(&w->mine->waiting, w->sites.count > in_flight ? w->sites.count - in_flight : 0);
    atomic_store(&w->mine->idle, w->sites.count == 0 && !w->uncommitted.since_ms);
}

/* ---- the loop ---------------------------------------------------------------------------------------------------- */

/* Makes no new requests. Answers that are on their way get a moment, so that they need not be asked for again. */
static void wind_down(struct wb_worker *w)
{
    int64_t now = wb_clock_now_ms();

    if (!w->loop.stopping)
        w->loop.stopping_ms = now;
    w->loop.stopping = true;
    if (atomic_load(&w->mine->in_flight) == 0 || now - w->loop.stopping_ms >= WIND_DOWN_MS)
        event_base_loopbreak(w->loop.base);
}

static void on_tick(evutil_socket_t fd, short what, void *context)
{
    struct wb_worker *w = context;
    int err = 0;

    WB_CHECK(w->magic == WB_WORKER_MAGIC);
    (void)fd, (void)what;
    follow_clock(w);
    if (atomic_load(&w->tally->stop) || wb_stop_requested() || getppid() != w->plan->parent) {
        wind_down(w);
        return;
    }
    /* First, because a process that slept for too long holds nothing any more. */
    err = renew(w);
    if (w->leases.lost)
        return;
    if (err == 0)
        err = claim_sites(w);
    if (err == 0) {
        wb_dispatch_obey(w);
        wb_rules_retry_favours(w);
        wb_dispatch_make_way(w);
        wb_dispatch(w);
    }
    if (err == 0 && w->failed.code == 0)
        err = commit_is_due(w) ? commit(w) : tell_others(w);
    count_sites(w);
    wb_recent_flush(&w->recent, wb_clock_now_ms());
    if (err < 0)
        wb_worker_fail(w, err);
}

static void on_arrivals_due(evutil_socket_t fd, short what, void *context)
{
    struct wb_worker *w = context;

    (void)fd, (void)what;
    WB_CHECK(w->magic == WB_WORKER_MAGIC);
    wb_errand_take_arrivals(w);
    wb_dispatch(w);
}

static void on_due(evutil_socket_t fd, short what, void *context)
{
    struct wb_worker *w = context;

    (void)fd, (void)what;
    WB_CHECK(w->magic == WB_WORKER_MAGIC);
    wb_dispatch(w);
}

/* How many connections we may have at a time: one for each site, unless there are too few file descriptors. */
static unsigned connections_max(struct wb_worker *w)
{
    /* Sites take turns, so a pool with fewer connections than sites would never have the one that is needed. */
    unsigned wanted = w->plan->options->sites + CONNECTIONS_SPARE;
    uint64_t limit = wb_limits_files();

    if (limit == 0)
        return wanted;
    uint64_t files = limit > 2 * FILES_SPARE ? limit - FILES_SPARE : limit / 2;
    w->errands.few_files = files < wanted;
    return files < 1 ? 1 : files < wanted ? (unsigned)files : wanted;
}

static int open_network(struct wb_worker *w)
{
    const struct wb_crawl_options *o = w->plan->options;
    struct wb_fetch_options fetch = {.user_agent = o->user_agent, .ca_file = o->ca_file,
                                     .timeout_ms = (unsigned)o->timeout_ms, .body_max = (size_t)o->max_bytes,
                                     .connections_max = connections_max(w), .pace = &w->tally->pace};
    struct wb_dns_options dns = {.servers = o->dns_servers, .rate = o->dns_rate};
    struct timeval tick = {0, TICK_MS * 1000};

    w->loop.base = event_base_new();
    w->loop.tick = w->loop.base ? event_new(w->loop.base, -1, EV_PERSIST, on_tick, w) : NULL;
    w->loop.due = w->loop.base ? event_new(w->loop.base, -1, 0, on_due, w) : NULL;
    w->errands.arrivals_due = w->loop.base ? event_new(w->loop.base, -1, 0, on_arrivals_due, w) : NULL;
    if (!w->loop.tick || !w->loop.due || !w->errands.arrivals_due || event_add(w->loop.tick, &tick) < 0)
        return wb_fail_nomem();
    int err = wb_dns_new(w->loop.base, &dns, &w->dns);
    for (size_t i = 0; err == 0 && i < o->resolve_count; i++)
        err = wb_dns_override(w->dns, o->resolve[i]);
    return err < 0 ? err : wb_fetcher_new(w->loop.base, &fetch, &w->fetcher);
}

static int open_worker(struct wb_worker *w)
{
    WB_CHECK(!w->loop.base && !w->repo.store && !w->repo.spool);
    const struct wb_crawl_options *o = w->plan->options;

    wb_frontier_init(&w->frontier, o->per_address, connections_max(w));
    int err = wb_dispenser_open(o->dir, o->dispenser, &w->repo.dispenser);
    if (err == 0)
        err = wb_dispenser_serve(w->repo.dispenser, w->plan->run, wb_slice_str(w->plan->home));
    if (err == 0)
        err = wb_store_open(o->dir, WB_STORE_WRITE, &w->repo.store);
    if (err == 0)
        err = wb_webdb_open(o->dir, &w->repo.webdb);
    if (err == WB_E_NOTFOUND)
        err = 0; /* there is no webdb yet */
    /* The journal before the spool: the kernel closes files by number, so a process that finds our spool unlocked
       finds our journal unlocked too. */
    if (err == 0)
        err = wb_journal_writer_open(o->dir, 0, &w->repo.journal);
    if (err == 0)
        err = wb_spool_create(o->dir, w->owner, &w->repo.spool);
    if (err == 0)
        err = wb_journal_reader_open(o->dir, &w->repo.history);
    if (err == 0)
        err = wb_spill_open(o->dir, &w->repo.spill);
    if (err == 0)
        err = wb_factfinder_init(&w->finder);
    w->finder.links_max = o->max_links;
    if (err == 0)
        wb_recent_open(o->dir, &w->recent);
    return err < 0 ? err : open_network(w);
}

/* Gives all sites back to the dispenser as they are. The next worker that claims one continues from the journal. */
static int hand_back(struct wb_worker *w)
{
    wb_errand_take_arrivals(w);
    wb_rules_drop_favours(w);
    for (struct wb_site *site; w->failed.code == 0 && (site = wb_site_set_next(&w->sites, NULL));) {
        bool waits = site->next_ms - wb_clock_now_ms() > WB_PATIENCE_MS;
        wb_frontier_remove(&w->frontier, site);
        wb_visit_close(w, site, waits ? WB_SITE_WAITING : WB_SITE_READY, "", NULL);
    }
    int err = w->failed.code < 0 ? wb_error_restore(&w->failed) : commit(w);
    return err < 0 ? err : wb_journal_writer_finish(w->repo.journal);
}

static void free_memory(struct wb_worker *w)
{
    wb_errand_release_all(&w->errands);
    wb_rules_drop_favours(w);
    for (struct wb_site *site; (site = wb_site_set_next(&w->sites, NULL));) {
        wb_frontier_remove(&w->frontier, site);
        wb_site_set_remove(&w->sites, site);
        wb_site_free(site, w->repo.spill);
    }
    wb_site_set_release(&w->sites);
    wb_frontier_release(&w->frontier);
    wb_seen_release(&w->contents);
    wb_links_release(&w->links);
    wb_visit_reports_release(&w->reports);
    wb_news_release(&w->news);
    wb_buf_release(&w->uncommitted.lines);
    struct wb_worker_scratch *scratch = &w->scratch;
    struct wb_buf *bufs[] = {&scratch->key, &scratch->url_text, &scratch->item, &scratch->link,
                             &scratch->old_page, &scratch->known_page, &scratch->media_type};
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        wb_buf_release(bufs[i]);
    wb_url_release(&scratch->url);
    wb_url_release(&scratch->base);
    wb_url_release(&scratch->target);
}

static void close_worker(struct wb_worker *w, bool clean)
{
    /* A spool is deleted only if everything in it is committed. */
    WB_CHECK(!clean || (wb_spool_bytes(w->repo.spool) == 0 && w->sites.count == 0));
    wb_fetcher_free(w->fetcher);
    wb_dns_free(w->dns);
    if (w->repo.spill)
        free_memory(w);
    wb_factfinder_release(&w->finder);
    wb_spill_close(w->repo.spill);
    wb_journal_reader_close(w->repo.history);
    wb_journal_writer_close(w->repo.journal);
    wb_webdb_close(w->repo.webdb);
    wb_store_close(w->repo.store);
    wb_spool_close(w->repo.spool, clean);
    wb_dispenser_close(w->repo.dispenser);
    wb_recent_flush(&w->recent, INT64_MAX);
    wb_recent_close(&w->recent);
    if (w->loop.tick)
        event_free(w->loop.tick);
    if (w->loop.due)
        event_free(w->loop.due);
    if (w->errands.arrivals_due)
        event_free(w->errands.arrivals_due);
    if (w->loop.base)
        event_base_free(w->loop.base);
}

int wb_worker_run(const struct wb_crawl_plan *plan, unsigned number, int warnings_fd)
{
    static struct wb_worker w; /* there is one per process, and it is too large for a stack */

    WB_CHECK(number < WB_TALLY_WORKERS_MAX && plan->owner && plan->run > 0);
    w = (struct wb_worker){.magic = WB_WORKER_MAGIC, .plan = plan, .tally = plan->tally,
                           .mine = &plan->tally->workers[number], .warnings_fd = warnings_fd,
                           .recent.file = WB_FILE_INIT};
    wb_limits_prepare(); /* as many sockets as sites */
    snprintf(w.owner, sizeof w.owner, "%s", plan->owner);
    int err = open_worker(&w);
    if (err == 0) {
        on_tick(-1, 0, &w);
        if (w.failed.code == 0)
            event_base_dispatch(w.loop.base);
        if (w.failed.code < 0)
            err = wb_error_restore(&w.failed);
        else
            err = hand_back(&w);
    }
    /* After an error nothing is lost: pages and lines that are not durable are in the spool, which stays. */
    if (err < 0)
        wb_eventlog_warn(&w, "%s", wb_error_message());
    close_worker(&w, err == 0);
    w.magic = 0;
    return err < 0 ? 1 : w.leases.lost ? WB_WORKER_LOST : 0;
}
