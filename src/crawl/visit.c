/*
 * visit.c - a visit of a site: begun or resumed, ended, and reported to the dispenser.
 *
 * A visit begins with a VISIT record in the site's chain and ends with a FINISH record. Whatever is between is
 * restored if the visit is interrupted (restore.c). A new visit starts from the seeds, then takes the pages of the
 * visit before and those that webdb has, so that each is asked for again. A listed visit (fetch lists, crawl.h)
 * takes its seeds only.
 *
 *   claimed -> wb_visit_open -+-> begin_visit  -+-> crawled -> wb_visit_close -> (commit) -> wb_visit_report
 *                             +-> resume_visit -+
 */
#include "base/check.h"
#include "base/mem.h"
#include "crawl/worker.h"

enum {
    SITEMAPS_MS = WB_DAY_MS,   /* a listed visit asks for sitemaps if the last time is longer ago */
    BACK_OFF_FIRST_MS = 2000,  /* doubles with each failure in a row */
};

int wb_visit_note(struct wb_worker *w, struct wb_site *site, struct wb_edit *edit)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC);
    edit->site = site->key;
    edit->prev = site->trail;
    if (!edit->time_ms)
        edit->time_ms = wb_clock_now_ms();
    site->trail_ms = wb_clock_now_ms();
    /* Records must survive our death before the next request is sent. Only a request to a site that has no interval
       need not: there is no clock to keep. */
    if (edit->kind != WB_EDIT_REQUEST || site->page_delay_ms > 0 || site->delay_ms > 0)
        w->uncommitted.journal_unflushed = true;
    int err = wb_journal_writer_append(w->repo.journal, edit, &site->trail);
    WB_CHECK(err < 0 || site->trail.log); /* the chain goes on from here */
    return err;
}

/* ---- seeds ------------------------------------------------------------------------------------------------------- */

struct seed_taker {
    struct wb_worker *w;
    struct wb_site *site;
    uint64_t count;
};

/*
 * A link that was found under the name of an alias: w->scratch.target becomes the same page of this site. The journal
 * gets a line that leads from the one URL to the other, as if the alias had redirected; but not if the page of the
 * alias is stored, as its root page may be. w->scratch.key is the key of the URL.
 */
static int take_over_url(struct wb_worker *w, struct wb_site *site, const struct wb_seed *seed)
{
    WB_CHECK(site->magic == WB_SITE_MAGIC && !site->guest);
    struct wb_edit edit = {.kind = WB_EDIT_PAGE};
    struct wb_url *target = &w->scratch.target;
    bool https = wb_slice_equal(wb_url_scheme(target), WB_SLICE_LIT("https"));
    int64_t time_ms;
    bool stored = wb_store_time(w->repo.store, wb_pageid_of_key(wb_buf_slice(&w->scratch.key)), &time_ms) == 0;

    /* A port belongs to one scheme. */
    if (strchr(site->name, ':') || wb_url_port(target).len)
        https = site->https;
    int err = wb_site_url(site, https, wb_site_path(target), &w->scratch.url_text);
    if (err == 0)
        err = wb_url_parse(wb_buf_slice(&w->scratch.url_text), NULL, target);
    if (err < 0 || stored)
        return err;
    edit.page = (struct wb_edit_page){.url = seed->url, .outcome = WB_OUTCOME_REDIRECT, .depth = seed->depth,
                                      .reason = WB_SLICE_LIT("alias"), .location = wb_buf_slice(&w->scratch.url_text)};
    return wb_visit_note(w, site, &edit);
}

/*
 * Reads the URL of a seed into w->scratch.target. Returns 1, 0 if it is not a URL, or an error. *passed_out: it was
 * found under the name of an alias.
 */
static int read_seed(struct wb_worker *w, struct wb_site *site, const struct wb_seed *seed, bool *passed_out)
{
    int err = wb_url_parse(seed->url, NULL, &w->scratch.target);
    if (err == 0)
        err = wb_url_key(&w->scratch.target, &w->scratch.key);
    if (err < 0)
        return err == WB_E_NOMEM ? err : 0;
    *passed_out = !wb_slice_equal(wb_key_site(wb_buf_slice(&w->scratch.key)), wb_slice_str(site->name));
    err = *passed_out ? take_over_url(w, site, seed) : 0;
    return err < 0 ? err : 1;
}

static int take_seed(void *context, const struct wb_seed *seed)
{
    struct seed_taker *taker = context;
    struct wb_worker *w = taker->w;
    struct wb_site *site = taker->site;
    struct wb_item item = {.kind = WB_ITEM_PAGE, .depth = seed->depth};
    struct wb_pagelink link = {.url = seed->url};
    struct wb_edit edit = {.kind = WB_EDIT_SEEDS, .depth = seed->depth, .links = &link, .link_count = 1};

    int64_t before = site->seeds_taken;
    bool need = seed->depth.need;
    site->seeds_taken = seed->id;
    if (site->needed && !need && !site->listed)
        return 0; /* of an earlier run that crawled the site */
    if (!need && seed->depth.links > w->plan->options->max_depth)
        return 0;
    bool passed = false; /* on from an alias */
    int read = read_seed(w, site, seed, &passed);
    if (read <= 0)
        return read;
    if (passed)
        link.url = wb_url_href(&w->scratch.target);
    bool deep = w->plan->options->root_first && !site->listed && !need &&
                !wb_slice_equal(wb_site_path(&w->scratch.target), WB_SLICE_LIT("/"));
    if (deep && site->root.state == WB_ROOT_REACHABLE)
        return 0;
    if (deep && site->root.state == WB_ROOT_UNKNOWN) {
        site->root.seeds_after = site->root.awaited ? site->root.seeds_after : before;
        site->root.awaited = true;
        return 0;
    }
    int got = wb_links_admit(w, site, &w->scratch.target, &item, WB_LINKS_SEED);
    if (got <= 0)
        return got;
    taker->count++;
    return wb_visit_note(w, site, &edit);
}

/*
 * Puts the root page before everything else if it has to be compared with those of other names of the address, or if
 * other seeds wait for its outcome.
 */
static int put_root_first(struct wb_worker *w, struct wb_site *site)
{
    struct wb_item item = {.kind = WB_ITEM_PAGE, .https = site->https, .path = WB_SLICE_LIT("/")};
    struct wb_pageid id;

    if (!site->root.awaited && !(site->root.probing && !site->root.digest))
        return 0;
    int err = wb_site_url(site, site->https, item.path, &w->scratch.url_text);
    if (err < 0 || wb_worker_parse(w, wb_buf_slice(&w->scratch.url_text), &id) < 0)
        return err;
    if (site->root.awaited)
        err = wb_seen_add(&site->seen, w->plan->options->dir, id);
    else if (!wb_seen_has(&site->seen, id))
        item.kind = WB_ITEM_PROBE;
    return err < 0 ? err : wb_item_push(w->repo.spill, &site->again, &item);
}

int wb_visit_seeds(struct wb_worker *w, struct wb_site *site, uint64_t *count_out)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC && !site->guest);
    struct seed_taker taker = {.w = w, .site = site};
    bool waited = site->root.awaited;
    int err = wb_dispenser_seeds(w->repo.dispenser, site->id, site->seeds_taken, take_seed, &taker);

    if (err == 0 && site->root.awaited && !waited) {
        err = put_root_first(w, site);
        taker.count++;
    }
    *count_out = taker.count;
    return err;
}

int wb_visit_root(struct wb_worker *w, struct wb_site *site, bool reachable)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC && !site->guest);
    uint64_t count;
    bool waited = site->root.awaited;

    site->root.state = reachable ? WB_ROOT_REACHABLE : WB_ROOT_UNREACHABLE;
    site->root.awaited = false;
    if (!waited || reachable)
        return 0;
    site->seeds_taken = site->root.seeds_after;
    return wb_visit_seeds(w, site, &count);
}

/* ---- beginning --------------------------------------------------------------------------------------------------- */

static int begin_visit(struct wb_worker *w, struct wb_site *site)
{
    struct wb_edit edit = {.kind = WB_EDIT_VISIT, .text = wb_slice_str(site->name), .count = site->visit};
    struct wb_edit_place last = site->trail;
    uint64_t count;

    int err = wb_visit_note(w, site, &edit);
    if (err == 0)
        err = wb_visit_seeds(w, site, &count);
    return err < 0 ? err : wb_restore_earlier(w, site, last, true);
}

static int resume_visit(struct wb_worker *w, struct wb_site *site, struct wb_edit_place before)
{
    uint64_t count;
    int err = wb_restore_visit(w, site);

    if (err == 0)
        err = wb_restore_earlier(w, site, before, false);
    return err < 0 ? err : wb_visit_seeds(w, site, &count);
}

/*
 * Decides which visit this is, and sets site->visit, listed and seeds_taken. Returns true if a new visit begins. number
 * is the number of the last visit in the chain (0: the chain has none), and finished whether that one was finished.
 *
 * - A finished visit goes on if only new seeds came. When a new visit is wanted, the dispenser sets seeds_taken to 0.
 * - A visit that is finished in the journal but has a lower number in the dispenser was finished by a process that died
 *   before it could report that. It is finished once more.
 * - A fetch list wants a visit of its own, whatever became of the one before. So does a crawl of seeds after a list,
 *   which shows in a number that is higher than the journal's.
 */
static bool choose_visit(struct wb_site *site, uint32_t number, bool finished)
{
    bool over = finished && site->seeds_taken == 0 && site->visit >= number;
    bool listed = site->listed_visit > number, wanted = number && site->visit > number;

    /* When a listed visit begins, the dispenser's seeds_taken excludes seeds that are not its own. If the visit had
       begun before and its history is lost, all its seeds are taken again. */
    if (listed ? site->visit >= site->listed_visit : number == 0 && !site->needed)
        site->seeds_taken = 0;
    if (listed)
        site->visit = site->listed_visit;
    else if (!wanted)
        site->visit = number ? number + over : site->visit + 1;
    site->listed = site->visit == site->listed_visit;
    return listed || over || wanted || number == 0;
}

int wb_visit_open(struct wb_worker *w, struct wb_site *site)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC && !site->guest);
    WB_CHECK(site->turn.at == 0 && site->in_flight == 0 && site->queue.count == 0 && site->again.count == 0);
    struct wb_edit first, last = {0};
    int err = wb_restore_first(w, site, &first);

    if (err == 0 && first.kind == WB_EDIT_VISIT)
        err = wb_journal_reader_get(w->repo.history, site->trail, &last);
    if (err < 0)
        return err;
    bool visited = site->visit > 0, ours = site->trail.log != 0;
    if (choose_visit(site, first.kind == WB_EDIT_VISIT ? first.count : 0, last.kind == WB_EDIT_FINISH))
        err = begin_visit(w, site);
    else
        err = resume_visit(w, site, first.prev);
    if (err == 0)
        err = wb_restore_rules(w, site);
    if (err == 0)
        err = wb_news_restore(w, site, ours);
    if (!site->needed && (!site->listed || site->sitemaps_ms + SITEMAPS_MS <= wb_clock_now_ms()))
        site->sitemaps_due = true;
    /* Which of its names is crawled was decided when the site was first visited. */
    if (site->listed && visited)
        site->root.probing = false;
    if (err == 0)
        err = put_root_first(w, site);
    if (err < 0)
        return err;
    /* The root came, but the process died before the site was compared with its neighbours. */
    if (site->root.probing && site->root.digest && site->rules.state == WB_RULES_KNOWN && wb_names_close_alias(w, site))
        return 0;
    wb_restore_unanswered(w, site);
    if (site->next_ms - wb_clock_now_ms() > WB_PATIENCE_MS)
        wb_visit_close(w, site, WB_SITE_WAITING, site->wait_reason[0] ? site->wait_reason : "back-off", NULL);
    else
        wb_dispatch_later(w, site);
    return 0;
}

/* ---- reports to the dispenser ------------------------------------------------------------------------------------ */

/* A site that was closed, or how far we are with one that is held. */
struct wb_visit_report {
    struct wb_site_report row;                   /* borrows the texts below */
    char *name, *reason, *alias_of, *probe;
    struct wb_address address;
};

static int fill_report(const struct wb_worker *w, const struct wb_site *site, enum wb_site_state state,
                       const char *reason, const char *alias_of, struct wb_visit_report *report)
{
    char probe[WB_PROBE_TEXT_MAX];

    WB_CHECK(site->magic == WB_SITE_MAGIC);
    wb_site_probe(site, probe);
    report->address = site->address;
    report->name = wb_strdup(site->name);
    report->reason = wb_strdup(reason);
    report->alias_of = wb_strdup(alias_of ? alias_of : "");
    report->probe = wb_strdup(probe);
    if (!report->name || !report->reason || !report->alias_of || !report->probe)
        return WB_E_NOMEM;
    report->row = (struct wb_site_report){
        .id = site->id, .state = state, .next_ms = site->next_ms, .attempts = site->attempts,
        .reason = wb_slice_str(report->reason), .alias_of = wb_slice_str(report->alias_of),
        .probe = wb_slice_str(report->probe), .home = wb_slice_str(w->plan->home), .visit = site->visit,
        .sitemaps_ms = site->sitemaps_ms, .trail = wb_site_trail_from_place(site->trail), .trail_ms = site->trail_ms,
        .pages = (int64_t)site->pages,
        /* Seeds that wait for the root page are not taken, unless the visit is over. */
        .seeds_taken = site->root.awaited && state != WB_SITE_DONE ? site->root.seeds_after : site->seeds_taken};
    if (site->elsewhere) {
        report->row.home = WB_SLICE_EMPTY;
        report->row.trail = (struct wb_site_trail){0, 0};
    }
    return 0;
}

static int add_report(struct wb_worker *w, const struct wb_site *site, enum wb_site_state state, const char *reason,
                      const char *alias_of)
{
    struct wb_visit_report *report = wb_vec_add(&w->reports);

    return report ? fill_report(w, site, state, reason, alias_of, report) : WB_E_NOMEM;
}

static int send_reports(struct wb_worker *w)
{
    size_t count = w->reports.count;
    struct wb_site_report *rows = wb_alloc_zero(count, sizeof *rows);

    if (!rows)
        return WB_E_NOMEM;
    for (size_t i = 0; i < count; i++)
        rows[i] = w->reports.items[i].row;
    int err = wb_dispenser_report(w->repo.dispenser, wb_slice_str(w->owner), rows, count);
    wb_free(rows);
    return err;
}

const char *wb_visit_closed_twin(const struct wb_worker *w, const struct wb_site *site)
{
    char probe[WB_PROBE_TEXT_MAX];

    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC);
    wb_site_probe(site, probe);
    for (size_t i = 0; i < w->reports.count; i++) {
        const struct wb_visit_report *report = &w->reports.items[i];
        if (report->row.id != site->id && report->row.state != WB_SITE_ALIAS && strcmp(report->probe, probe) == 0 &&
            wb_address_equal(&report->address, &site->address))
            return report->name;
    }
    return NULL;
}

/* A site that others were found to be aliases of is an alias itself: those others are aliases of the same site. */
static int move_aliases(struct wb_visit_reports *reports, const char *from, const char *to)
{
    for (size_t i = 0; i < reports->count; i++) {
        struct wb_visit_report *report = &reports->items[i];
        if (report->row.state != WB_SITE_ALIAS || strcmp(report->alias_of, from) != 0)
            continue;
        char *name = wb_strdup(to);
        if (!name)
            return WB_E_NOMEM;
        wb_free(report->alias_of);
        report->alias_of = name;
        report->row.alias_of = wb_slice_str(name);
    }
    return 0;
}

/* Frees what the reports own, and keeps the memory of the array. */
static void clear_reports(struct wb_visit_reports *reports)
{
    for (size_t i = 0; i < reports->count; i++) {
        wb_free(reports->items[i].name);
        wb_free(reports->items[i].reason);
        wb_free(reports->items[i].alias_of);
        wb_free(reports->items[i].probe);
    }
    wb_vec_clear(reports);
}

int wb_visit_report(struct wb_worker *w, bool held)
{
    int err = 0;

    WB_CHECK(w->magic == WB_WORKER_MAGIC);
    for (struct wb_site *site = NULL; held && err == 0 && (site = wb_site_set_next(&w->sites, site));)
        err = add_report(w, site, WB_SITE_CLAIMED, "", NULL);
    if (err == 0 && w->reports.count)
        err = send_reports(w);
    if (w->reports.count)
        atomic_fetch_add(&w->tally->claimable, 1);
    clear_reports(&w->reports);
    return err;
}

void wb_visit_reports_release(struct wb_visit_reports *reports)
{
    clear_reports(reports);
    wb_vec_release(reports);
}

/* ---- ending ------------------------------------------------------------------------------------------------------ */

void wb_visit_close(struct wb_worker *w, struct wb_site *site, enum wb_site_state state, const char *reason,
                    const char *alias_of)
{
    struct wb_edit edit = {.kind = WB_EDIT_FINISH, .text = wb_slice_str(reason)};
    int err = 0;

    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC);
    WB_CHECK(site->in_flight == 0 && site->held == 0);
    WB_CHECK((state == WB_SITE_ALIAS) == (alias_of != NULL));
    if (!site->guest && (state == WB_SITE_DONE || state == WB_SITE_ALIAS || state == WB_SITE_REFUSED))
        err = wb_visit_note(w, site, &edit);
    if (err == 0 && alias_of)
        err = move_aliases(&w->reports, site->name, alias_of);
    if (err == 0)
        err = add_report(w, site, site->guest ? site->guest_state : state, reason, alias_of);
    if (err == 0)
        err = wb_news_close(w, site);
    wb_worker_dirty(w);
    wb_rules_pass_on_favours(w, site);
    wb_frontier_remove(&w->frontier, site);
    wb_site_set_remove(&w->sites, site);
    wb_site_free(site, w->repo.spill);
    if (err < 0)
        wb_worker_fail(w, err);
}

void wb_visit_back_off(struct wb_worker *w, struct wb_site *site, int64_t until_ms, const char *reason)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC);
    int64_t now = wb_clock_now_ms();
    int64_t wait = (int64_t)BACK_OFF_FIRST_MS << (site->attempts < 16 ? site->attempts : 16);
    struct wb_edit edit = {.kind = WB_EDIT_WAIT, .text = wb_slice_str(reason)};

    wb_site_set_reason(site, edit.text);
    site->attempts++;
    if (wait > WB_BACK_OFF_MAX_MS)
        wait = WB_BACK_OFF_MAX_MS;
    /* A server that tells us to come back after a second, again and again, is still down: never wait less than our own
       back-off. */
    if (until_ms < now + wait)
        until_ms = now + wait;
    if (until_ms > now + WB_BACK_OFF_MAX_MS)
        until_ms = now + WB_BACK_OFF_MAX_MS;
    if (until_ms > site->next_ms)
        site->next_ms = until_ms;
    WB_CHECK(site->next_ms >= now + wait);
    edit.until_ms = site->next_ms;
    edit.count = (uint32_t)site->attempts;
    int err = wb_visit_note(w, site, &edit);
    if (err < 0)
        wb_worker_fail(w, err);
    if (site->next_ms - now > WB_PATIENCE_MS && !site->in_flight)
        wb_visit_close(w, site, WB_SITE_WAITING, reason, NULL);
    else
        wb_dispatch_later(w, site);
}
