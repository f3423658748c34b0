/*
 * worker.c - one crawler process: begin, loop and end.
 *
 *   tick, 20 times a second: stop? claim sites, retry favours, commit, renew leases
 *   due, when a clock says so: dispatch
 *   answers come from libcurl through the same loop
 *
 * A commit makes everything durable in this order: outbox to the dispenser, store committed, journal
 * synced, lines released, spool emptied, closed sites reported.
 */
#include "crawl/webknown.h"
#include "base/hash.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/limits.h"
#include "os/stop.h"

#include <event2/event.h>
#include <unistd.h>

enum {
    TICK_MS = 50,
    COMMIT_MS = 5000,       /* the spool outlives kill -9, this is for power loss; seldom, so that blocks are large */
    COMMIT_WATCHED_MS = 1000, /* somebody reads the log of fetches, whose lines wait for the commit */
    COMMIT_PAGES = 8192,
    COMMIT_BYTES = 32 << 20,
    SHARE_MS = 200,
    SPREAD_MS = 2000,
    TELL_MS = 200,
    WIND_DOWN_MS = 800,
    CLAIM_MS = 300,         /* also without a hint that there is something to claim */
    CLAIM_MAX = 256,
    LEASE_MS = 60 * 1000,
    RENEW_MS = 15 * 1000,
    NAMES_FIRST = 256,
    CONNECTIONS_SPARE = 100,
    FILES_SPARE = 64,       /* file descriptors for all else: store, journal, spool, webdb, names */
};

int64_t wb_worker_now(const struct wb_worker *w)
{
    (void)w;
    return wb_clock_now_ms();
}

bool wb_worker_slept(const struct wb_worker *w)
{
    return wb_worker_now(w) - w->ticked_ms > LEASE_MS - 2 * RENEW_MS;
}

void wb_worker_fail(struct wb_worker *w, int err)
{
    if (w->failed.code == 0)
        wb_error_save(err, &w->failed);
    event_base_loopbreak(w->base);
}

void wb_worker_dirty(struct wb_worker *w)
{
    if (!w->uncommitted_ms)
        w->uncommitted_ms = wb_worker_now(w);
}

const char *wb_worker_refuses(const struct wb_worker *w, const struct wb_address *address)
{
    return w->plan->options->allow_private ? NULL : wb_address_private(address);
}

/* ---- sites held ------------------------------------------------------------------------------- */

static struct wb_site **name_slot(const struct wb_worker *w, uint64_t key)
{
    return &w->by_name[key & (w->by_name_cap - 1)];
}

struct wb_site *wb_worker_site(const struct wb_worker *w, struct wb_slice name)
{
    uint64_t key = wb_edit_site(name);

    for (struct wb_site *site = *name_slot(w, key); site; site = site->hash_next)
        if (site->key == key && wb_slice_equal(wb_slice_str(site->name), name))
            return site;
    return NULL;
}

static int grow_names(struct wb_worker *w)
{
    struct wb_site **old = w->by_name;
    size_t old_cap = w->by_name_cap;

    w->by_name_cap = old_cap ? old_cap * 2 : NAMES_FIRST;
    w->by_name = wb_alloc_zero(w->by_name_cap, sizeof *w->by_name);
    if (!w->by_name) {
        w->by_name = old;
        w->by_name_cap = old_cap;
        return WB_E_NOMEM;
    }
    for (size_t i = 0; i < old_cap; i++)
        for (struct wb_site *site = old[i], *next; site; site = next) {
            next = site->hash_next;
            struct wb_site **slot = name_slot(w, site->key);
            site->hash_next = *slot;
            *slot = site;
        }
    wb_free(old);
    return 0;
}

int wb_worker_hold(struct wb_worker *w, struct wb_site *site)
{
    if (w->site_count >= w->by_name_cap) {
        int err = grow_names(w);
        if (err < 0)
            return err;
    }
    struct wb_site **slot = name_slot(w, site->key);
    site->hash_next = *slot;
    *slot = site;
    site->list_prev = NULL;
    site->list_next = w->sites;
    if (w->sites)
        w->sites->list_prev = site;
    w->sites = site;
    w->site_count++;
    return 0;
}

void wb_worker_drop(struct wb_worker *w, struct wb_site *site)
{
    struct wb_site **link = name_slot(w, site->key);

    while (*link != site)
        link = &(*link)->hash_next;
    *link = site->hash_next;
    if (site->list_prev)
        site->list_prev->list_next = site->list_next;
    else
        w->sites = site->list_next;
    if (site->list_next)
        site->list_next->list_prev = site->list_prev;
    w->site_count--;
}

/* ---- claiming ------------------------------------------------------------------------------------ */

struct claim {
    struct wb_worker *w;
    struct wb_site *list, **end; /* by list_next, in the order of the claim, until they are opened */
    unsigned count;
};

static int claim_row(void *context, const struct wb_site_row *row)
{
    struct claim *claim = context;
    struct wb_worker *w = claim->w;
    const struct wb_crawl_options *options = w->plan->options;
    struct wb_slice address = row->address;
    struct wb_site *site = NULL;

    int err = wb_site_new(row, wb_worker_now(w), &site);
    if (err < 0)
        return err;
    site->delay_ms = site->page_delay_ms = row->delay_ms >= 0 ? row->delay_ms : options->delay_ms;
    site->budget = row->budget >= 0 ? (uint64_t)row->budget : options->site_budget;
    const char *blank = memchr(address.ptr, ' ', address.len);
    if (blank)
        address.len = (size_t)(blank - address.ptr);
    /* One of a run that allowed private addresses is looked up again, and refused. */
    if (!wb_address_parse(address, &site->address) || wb_worker_refuses(w, &site->address))
        site->address_expires_ms = 0;
    /* Its journal is another repository's: begin anew, but never in a hurry. */
    if (!wb_slice_equal(row->home, wb_slice_str(w->plan->home)))
        site->trail = WB_EDIT_NOWHERE;
    *claim->end = site;
    claim->end = &site->list_next;
    claim->count++;
    return 0;
}

static int count_row(void *context, const struct wb_site_row *row)
{
    (void)row;
    return ++*(unsigned *)context >= 2;
}

/* Whether the address has other names, which may be names of the same site. */
static int has_neighbours(struct wb_worker *w, const struct wb_site *site, bool *has_out)
{
    char address[WB_ADDRESS_TEXT_MAX];
    unsigned count = 0;
    int err = 0;

    if (site->place && site->place->sites < 2) {
        wb_address_format(&site->address, address);
        err = wb_dispenser_neighbours(w->dispenser, wb_slice_str(address), count_row, &count);
    }
    *has_out = site->place && (site->place->sites >= 2 || count >= 2);
    return err < 0 ? err : 0;
}

/*
 * Sites that were claimed together do not begin together: their requests would come in bursts for as long as the
 * crawl lasts, each with buffers of its own, and all at once to a server with many names.
 */
static void spread(struct wb_worker *w, struct wb_site *site, unsigned at, unsigned count)
{
    int64_t window = site->delay_ms < SPREAD_MS ? site->delay_ms : SPREAD_MS;
    int64_t begin = wb_worker_now(w) + window * at / count;

    if (begin > site->next_ms)
        site->next_ms = begin;
}

static int open_claimed(struct wb_worker *w, struct wb_site *site)
{
    int err = wb_worker_hold(w, site);

    if (err < 0) {
        wb_site_free(site, w->spill);
        return err;
    }
    if (site->address_expires_ms) {
        err = wb_frontier_move(&w->frontier, site, &site->address);
        if (err == 0)
            err = has_neighbours(w, site, &site->probing);
    }
    if (err < 0)
        return err;
    wb_tally_doing(w->mine, WB_STAGE_OPENING, (uint64_t)site->id);
    err = wb_visit_open(w, site);
    /* After a failure it stays, for the parent to see; a request may have been sent meanwhile. */
    if (err == 0 && w->failed.code == 0 && atomic_load(&w->mine->stage) == WB_STAGE_OPENING)
        wb_tally_doing(w->mine, WB_STAGE_NONE, 0);
    return err;
}

/*
 * A fair share of what is open, so that the first process does not take everything; after a moment also more, since
 * sites of an address that this process contacts wait for it alone.
 */
static unsigned wanted_sites(const struct wb_worker *w)
{
    uint64_t open = atomic_load(&w->tally->sites_open);
    unsigned processes = w->plan->options->processes;
    uint64_t share = (open + processes - 1) / processes;
    unsigned max = w->plan->options->sites;

    if (share < 1)
        share = 1;
    if (share < max && wb_worker_now(w) - w->news_ms < SHARE_MS)
        max = (unsigned)share;
    return max > w->site_count ? max - w->site_count : 0;
}

static int claim_sites(struct wb_worker *w)
{
    struct claim claim = {.w = w, .end = &claim.list};
    unsigned claimable = atomic_load(&w->tally->claimable);
    int64_t now = wb_worker_now(w);
    unsigned max, at = 0;
    int err = 0;

    if (claimable != w->claimable && w->claimable_seen != claimable)
        w->news_ms = now;
    w->claimable_seen = claimable;
    max = wanted_sites(w);
    if (!max || (claimable == w->claimable && !w->claim_again && now - w->claimed_ms < CLAIM_MS))
        return 0;
    if (max > CLAIM_MAX)
        max = CLAIM_MAX;
    w->claimable = claimable;
    w->claimed_ms = now;
    err = wb_dispenser_claim(w->dispenser, w->plan->run, wb_slice_str(w->owner), now, LEASE_MS, max, claim_row, &claim);
    w->claim_again = err == 0 && claim.count == max;
    while (claim.list) {
        struct wb_site *site = claim.list;
        claim.list = site->list_next;
        spread(w, site, at++, claim.count);
        if (err < 0)
            wb_site_free(site, w->spill);
        else
            err = open_claimed(w, site);
    }
    return err;
}

/* ---- committing ---------------------------------------------------------------------------------- */

static int commit(struct wb_worker *w)
{
    struct wb_store_commit_counts counts = {0};

    wb_arrivals_take(w);
    bool pages = w->uncommitted_pages > 0;
    int err = w->failed.code < 0 ? wb_error_restore(&w->failed) : wb_outbox_flush(w);

    if (err == 0)
        err = wb_journal_writer_flush(w->journal);
    /* The store before the journal: power that fails in between makes us fetch some pages again, not believe that we have them. */
    if (err == 0 && pages)
        err = wb_store_commit(w->store, &counts);
    if (err == 0 && counts.barred)
        err = wb_event_correct(w);
    if (err == 0)
        err = wb_journal_writer_sync(w->journal);
    /* Until the next round begins the spool has the lines too, and recovery knows which of its rounds were released. */
    if (err == 0)
        err = wb_event_release(w);
    if (err == 0)
        err = wb_spool_reset(w->spool);
    if (err == 0)
        err = wb_visit_report(w, wb_journal_writer_rolled(w->journal));
    if (err < 0)
        return err;
    w->uncommitted_ms = 0;
    w->uncommitted_pages = w->uncommitted_bytes = 0;
    wb_tally_add(&w->tally->commits, 1);
    return 0;
}

/* Sites that were found by links should not wait for a commit: others may have nothing to do. */
static int tell_others(struct wb_worker *w)
{
    int64_t now = wb_worker_now(w);

    if (!w->outbox.count || now - w->told_ms < TELL_MS)
        return 0;
    w->told_ms = now;
    return wb_outbox_flush(w);
}

static bool commit_is_due(const struct wb_worker *w)
{
    int64_t wait = w->plan->lines ? COMMIT_WATCHED_MS : COMMIT_MS;

    if (!w->uncommitted_ms)
        return false;
    /* Nothing left to do: whoever waits for the end should not wait for the clock. */
    return w->site_count == 0 || w->uncommitted_pages >= COMMIT_PAGES || w->uncommitted_bytes >= COMMIT_BYTES ||
           wb_worker_now(w) - w->uncommitted_ms >= wait;
}

static int renew(struct wb_worker *w)
{
    int64_t now = wb_worker_now(w);

    w->ticked_ms = now;
    if (!w->site_count || now - w->renewed_ms < RENEW_MS)
        return 0;
    w->renewed_ms = now;
    int err = wb_dispenser_renew(w->dispenser, wb_slice_str(w->owner), LEASE_MS);
    /* It slept for so long that others took it for dead: what it holds is theirs. A new process begins with clean hands. */
    w->lost = err == WB_E_BUSY;
    if (w->lost)
        event_base_loopbreak(w->base);
    return w->lost ? 0 : err;
}

/*
 * Somebody set the clock, or it was wrong when the process began. What is stored from now on has the right time; everything
 * that is waited for is moved with the clock, so that no wait becomes longer or shorter.
 */
static void follow_clock(struct wb_worker *w)
{
    int64_t by_ms = wb_clock_follow();
    int64_t *moments[] = {&w->uncommitted_ms, &w->claimed_ms, &w->stuck_ms, &w->ticked_ms, &w->told_ms, &w->stopping_ms, &w->news_ms};

    if (!by_ms)
        return;
    for (size_t i = 0; i < sizeof moments / sizeof *moments; i++)
        if (*moments[i])
            *moments[i] += by_ms;
    for (struct wb_site *site = w->sites; site; site = site->list_next)
        wb_site_shift(site, by_ms);
    wb_frontier_shift(&w->frontier, by_ms);
    wb_fetcher_shift(w->fetcher, by_ms);
    w->renewed_ms = 0; /* leases were written by the other time: at once */
}

static void count_sites(struct wb_worker *w)
{
    unsigned in_flight = atomic_load(&w->mine->in_flight);

    atomic_store(&w->mine->sites, w->site_count);
    atomic_store(&w->mine->waiting, w->site_count > in_flight ? w->site_count - in_flight : 0);
    atomic_store(&w->mine->idle, w->site_count == 0 && !w->uncommitted_ms);
}

/* ---- the loop --------------------------------------------------------------------------------------- */

/* No new requests; answers that are on their way get a moment, so that they need not be asked for again. */
static void wind_down(struct wb_worker *w)
{
    int64_t now = wb_worker_now(w);

    if (!w->stopping)
        w->stopping_ms = now;
    w->stopping = true;
    if (atomic_load(&w->mine->in_flight) == 0 || now - w->stopping_ms >= WIND_DOWN_MS)
        event_base_loopbreak(w->base);
}

static void on_tick(evutil_socket_t fd, short what, void *context)
{
    struct wb_worker *w = context;
    int err = 0;

    (void)fd, (void)what;
    follow_clock(w);
    if (atomic_load(&w->tally->stop) || wb_stop_requested() || getppid() != w->parent) {
        wind_down(w);
        return;
    }
    /* First: whoever slept for too long holds nothing any more. */
    err = renew(w);
    if (w->lost)
        return;
    if (err == 0)
        err = claim_sites(w);
    if (err == 0) {
        wb_favours_stuck(w);
        wb_dispatch_make_way(w);
        wb_dispatch(w);
    }
    if (err == 0 && w->failed.code == 0)
        err = commit_is_due(w) ? commit(w) : tell_others(w);
    count_sites(w);
    if (err < 0)
        wb_worker_fail(w, err);
}

static void on_arrivals_due(evutil_socket_t fd, short what, void *context)
{
    (void)fd, (void)what;
    wb_arrivals_take(context);
    wb_dispatch(context);
}

static void on_due(evutil_socket_t fd, short what, void *context)
{
    (void)fd, (void)what;
    wb_dispatch(context);
}

/* Connections at a time: for all sites, unless the process has no file descriptors for so many. */
static unsigned connections_max(struct wb_worker *w)
{
    /* A pool of connections that is smaller than the sites held never has the one that is needed: they come around in turn. */
    unsigned wanted = w->plan->options->sites + CONNECTIONS_SPARE;
    uint64_t limit = wb_limits_files();

    if (limit == 0)
        return wanted;
    uint64_t files = limit > 2 * FILES_SPARE ? limit - FILES_SPARE : limit / 2;
    w->few_files = files < wanted;
    return files < 1 ? 1 : files < wanted ? (unsigned)files : wanted;
}

static int open_network(struct wb_worker *w)
{
    const struct wb_crawl_options *o = w->plan->options;
    struct wb_fetch_options fetch = {.user_agent = o->user_agent, .ca_file = o->ca_file, .timeout_ms = (unsigned)o->timeout_ms,
                                     .body_max = (size_t)o->max_bytes, .connections_max = connections_max(w)};
    struct wb_dns_options dns = {.servers = o->dns_servers, .rate = o->dns_rate};
    struct timeval tick = {0, TICK_MS * 1000};

    w->base = event_base_new();
    w->tick = w->base ? event_new(w->base, -1, EV_PERSIST, on_tick, w) : NULL;
    w->due = w->base ? event_new(w->base, -1, 0, on_due, w) : NULL;
    w->arrivals_due = w->base ? event_new(w->base, -1, 0, on_arrivals_due, w) : NULL;
    if (!w->tick || !w->due || !w->arrivals_due || event_add(w->tick, &tick) < 0)
        return wb_fail_nomem();
    int err = wb_dns_new(w->base, &dns, &w->dns);
    for (size_t i = 0; err == 0 && i < o->resolve_count; i++)
        err = wb_dns_override(w->dns, o->resolve[i]);
    return err < 0 ? err : wb_fetcher_new(w->base, &fetch, &w->fetcher);
}

static int open_worker(struct wb_worker *w)
{
    const struct wb_crawl_options *o = w->plan->options;

    wb_frontier_init(&w->frontier, o->per_address, connections_max(w));
    int err = grow_names(w);
    if (err == 0)
        err = wb_dispenser_open(o->dir, o->dispenser, &w->dispenser);
    if (err == 0)
        err = wb_store_open(o->dir, WB_STORE_WRITE, &w->store);
    if (err == 0)
        err = wb_known_open(w);
    /* In this order: the kernel closes files by number, so that whoever finds the spool free finds the journal free too. */
    if (err == 0)
        err = wb_journal_writer_open(o->dir, 0, &w->journal);
    if (err == 0)
        err = wb_spool_create(o->dir, w->owner, &w->spool);
    if (err == 0)
        err = wb_journal_reader_open(o->dir, &w->history);
    if (err == 0)
        err = wb_spill_open(o->dir, &w->spill);
    if (err == 0)
        err = wb_pagefacts_init(&w->facts);
    return err < 0 ? err : open_network(w);
}

/* Everything that is held goes back as it is; the next claim goes on from the journal. */
static int hand_back(struct wb_worker *w)
{
    wb_arrivals_take(w);
    wb_favours_drop(w);
    while (w->sites && w->failed.code == 0) {
        struct wb_site *site = w->sites;
        wb_frontier_remove(&w->frontier, site);
        wb_visit_close(w, site, site->next_ms - wb_worker_now(w) > WB_PATIENCE_MS ? WB_SITE_WAITING : WB_SITE_READY, "", NULL);
    }
    int err = w->failed.code < 0 ? wb_error_restore(&w->failed) : commit(w);
    return err < 0 ? err : wb_journal_writer_finish(w->journal);
}

static void free_memory(struct wb_worker *w)
{
    wb_arrivals_drop(w);
    while (w->free_errands) {
        struct wb_errand *errand = w->free_errands;
        w->free_errands = errand->next_free;
        wb_buf_release(&errand->url);
        wb_buf_release(&errand->key);
        wb_buf_release(&errand->head);
        wb_free(errand);
    }
    while (w->sites) {
        struct wb_site *site = w->sites;
        wb_frontier_remove(&w->frontier, site);
        wb_worker_drop(w, site);
        wb_site_free(site, w->spill);
    }
    wb_frontier_release(&w->frontier);
    wb_seen_release(&w->contents);
    wb_outbox_release(&w->outbox);
    wb_free(w->by_name);
    wb_free(w->reports);
    struct wb_buf *bufs[] = {&w->lines, &w->key, &w->url_text, &w->item_mem, &w->link_mem, &w->old_mem, &w->known_mem, &w->media_mem};
    for (size_t i = 0; i < sizeof bufs / sizeof *bufs; i++)
        wb_buf_release(bufs[i]);
    wb_url_release(&w->url);
    wb_url_release(&w->base_url);
    wb_url_release(&w->target);
}

static void close_worker(struct wb_worker *w, bool clean)
{
    wb_fetcher_free(w->fetcher);
    wb_dns_free(w->dns);
    if (w->spill)
        free_memory(w);
    wb_pagefacts_release(&w->facts);
    wb_spill_close(w->spill);
    wb_journal_reader_close(w->history);
    wb_journal_writer_close(w->journal);
    wb_known_close(w);
    wb_store_close(w->store);
    wb_spool_close(w->spool, clean);
    wb_dispenser_close(w->dispenser);
    if (w->tick)
        event_free(w->tick);
    if (w->due)
        event_free(w->due);
    if (w->arrivals_due)
        event_free(w->arrivals_due);
    if (w->base)
        event_base_free(w->base);
}

int wb_worker_run(const struct wb_crawl_plan *plan, unsigned number, int events_fd)
{
    static struct wb_worker w; /* one a process, and too large for a stack */

    w = (struct wb_worker){.plan = plan, .tally = plan->tally, .mine = &plan->tally->workers[number], .number = number,
                          .events_fd = events_fd, .parent = getppid()};

    wb_limits_prepare(); /* sockets for all sites at once */
    snprintf(w.owner, sizeof w.owner, "%s", plan->owner);
    int err = open_worker(&w);
    if (err == 0) {
        on_tick(-1, 0, &w);
        if (w.failed.code == 0)
            event_base_dispatch(w.base);
        if (w.failed.code < 0)
            err = wb_error_restore(&w.failed);
        else
            err = hand_back(&w);
    }
    /* The lines of what did not become durable are in the spool, and so are its pages. */
    if (err < 0)
        wb_event_warn(&w, "%s", wb_error_message());
    close_worker(&w, err == 0);
    return err < 0 ? 1 : w.lost ? WB_WORKER_LOST : 0;
}
