/*
 * visit.c - a site's visit: begun, restored from the journal, finished, released.
 *
 * The journal's chain of a site is its truth. A site that was claimed is made by reading
 * the records of its current visit, oldest first, through the same admission that a live crawl
 * uses: URLs known and not marked as done are what is left to do. A new visit starts from the
 * seeds and goes on with the pages of the visit before and those that webdb has, so that each is asked for anew;
 * a listed one (fetchlist.h) has its seeds, and of what was before only rules and clocks.
 */
#include "crawl/webknown.h"
#include "base/check.h"
#include "base/date.h"
#include "base/mem.h"

#include <stdio.h>

enum { RETELL_MS = 120 * 1000, SITEMAPS_MS = WB_DAY_MS };

struct wb_worker_report {
    struct wb_site_report row;
    char *name, *reason, *alias_of, *probe;
    struct wb_address address;
};

int wb_visit_note(struct wb_worker *w, struct wb_site *site, struct wb_edit *edit)
{
    edit->site = site->key;
    edit->prev = site->trail;
    if (!edit->time_ms)
        edit->time_ms = wb_worker_now(w);
    site->trail_ms = wb_worker_now(w);
    /* A request to a site without an interval is no clock that must outlive us. */
    if (edit->kind != WB_EDIT_REQUEST || site->page_delay_ms > 0 || site->delay_ms > 0)
        w->unflushed = true;
    return wb_journal_writer_append(w->journal, edit, &site->trail);
}

/* ---- restoring --------------------------------------------------------------------------------- */

/* The id of a URL of this site; false where it is no URL. */
static bool id_of(struct wb_worker *w, struct wb_slice url, struct wb_pageid *id_out)
{
    if (wb_url_parse(url, NULL, &w->url) < 0 || wb_url_key(&w->url, &w->key) < 0)
        return false;
    *id_out = wb_pageid_of_key(wb_buf_slice(&w->key));
    return true;
}

static int restore_links(struct wb_worker *w, struct wb_site *site, const struct wb_edit *edit, const struct wb_item *item, unsigned flags)
{
    struct wb_edit_link link;
    size_t at = 0;
    int got;

    while ((got = wb_edit_links_next(edit, &at, &w->link_mem, &link)) > 0) {
        if (edit->kind == WB_EDIT_PAGE && (link.flags & (WB_EDIT_LINK_FOLLOW | WB_EDIT_LINK_NOFOLLOW)) != WB_EDIT_LINK_FOLLOW)
            continue;
        struct wb_item entry = *item;
        if (link.tag == WB_EDIT_TAG_SITEMAP)
            entry.kind = WB_ITEM_SITEMAP;
        got = wb_links_follow(w, site, link.url, &entry, flags | WB_ADMIT_QUIET);
        if (got < 0)
            return got;
    }
    return got;
}

static bool outcome_stored(uint8_t outcome)
{
    return outcome == WB_OUTCOME_STORED || outcome == WB_OUTCOME_DUPLICATE || outcome == WB_OUTCOME_TRUNCATED;
}

/* Links elsewhere wait in memory for a commit, seconds at most: those of the last minutes may have died with their process. */
static unsigned retell(const struct wb_site *site, const struct wb_edit *edit)
{
    return edit->time_ms + RETELL_MS > site->trail_ms ? WB_ADMIT_RETELL : 0;
}

static int restore_redirect(struct wb_worker *w, struct wb_site *site, const struct wb_edit *edit, struct wb_pageid id)
{
    const struct wb_edit_page *page = &edit->page;
    struct wb_item item = {.kind = WB_ITEM_PAGE, .depth = page->depth, .hops = (uint8_t)(page->hops + 1)};
    struct wb_pageid target;

    if (page->hops >= WB_PAGE_HOPS_MAX || !page->location.len)
        return 0;
    /* "/a" to "/a/", http to https: another spelling of the same page is still to be asked for. */
    if (id_of(w, page->location, &target) && wb_pageid_equal(id, target) && !wb_slice_equal(page->url, page->location)) {
        item.https = wb_slice_equal(wb_url_scheme(&w->url), WB_SLICE_LIT("https"));
        item.path = wb_site_path(&w->url);
        wb_seen_mark(&site->seen, id, false);
        return wb_item_push(w->spill, &site->again, &item);
    }
    return wb_links_follow(w, site, page->location, &item, WB_ADMIT_QUIET | WB_ADMIT_FRONT | retell(site, edit));
}

/*
 * Whether the store lost a page that the journal says it has. The kernel may write the journal to disk before the store commits, so
 * after power loss the journal can be ahead.
 */
static int is_lost(struct wb_worker *w, struct wb_pageid id, const struct wb_edit *edit)
{
    bool stored = outcome_stored(edit->page.outcome);
    int64_t time_ms;

    if (!stored && edit->page.outcome != WB_OUTCOME_UNCHANGED)
        return 0;
    int err = wb_store_time(w->store, id, &time_ms);
    if (err == WB_E_NOTFOUND)
        return 1;
    /* Damage is told of by those who read the page. */
    if (err < 0)
        return err == WB_E_CORRUPT ? 0 : err;
    return stored && time_ms < edit->time_ms;
}

/* It is asked for again, before the rest. */
static int restore_lost(struct wb_worker *w, struct wb_site *site, const struct wb_edit *edit, struct wb_pageid id)
{
    struct wb_item item = {.kind = WB_ITEM_PAGE, .depth = edit->page.depth, .hops = edit->page.hops,
                           .https = wb_slice_equal(wb_url_scheme(&w->url), WB_SLICE_LIT("https")), .path = wb_site_path(&w->url)};

    wb_seen_mark(&site->seen, id, false);
    return wb_item_push(w->spill, &site->again, &item);
}

/* What is known of a page that was asked for, but its links. */
static int restore_known(struct wb_worker *w, struct wb_site *site, const struct wb_edit *edit, struct wb_pageid id)
{
    const struct wb_edit_page *page = &edit->page;
    struct wb_pageid content;
    int err = 0;

    wb_seen_mark(&site->seen, id, true);
    site->pages += outcome_stored(page->outcome);
    bool root = wb_slice_equal(wb_site_path(&w->url), WB_SLICE_LIT("/"));
    if (root)
        site->root_state = page->outcome == WB_OUTCOME_GONE || page->outcome == WB_OUTCOME_ERROR || page->outcome == WB_OUTCOME_ROBOTS
                               ? WB_ROOT_UNREACHABLE : WB_ROOT_REACHABLE;
    if (page->has_content) {
        wb_trap_learn(&site->trap, wb_site_path(&w->url), page->simhash);
        content = wb_pageid_get(page->md5);
        err = wb_seen_add(&w->contents, w->plan->options->dir, content);
        if (root)
            site->root_digest = content.hi | 1;
    }
    if (err >= 0 && page->outcome == WB_OUTCOME_REDIRECT)
        err = restore_redirect(w, site, edit, id);
    return err < 0 ? err : 0;
}

static int restore_page(struct wb_worker *w, struct wb_site *site, const struct wb_edit *edit)
{
    struct wb_item item = {.kind = WB_ITEM_PAGE, .depth = (uint16_t)(edit->page.depth + 1)};
    struct wb_pageid id;
    int err = 0;

    if (!id_of(w, edit->page.url, &id))
        return 0;
    err = wb_seen_add(&site->seen, w->plan->options->dir, id);
    if (err < 0 || edit->page.outcome == WB_OUTCOME_LATER)
        return err;
    int lost = is_lost(w, id, edit);
    err = lost < 0 ? lost : lost ? restore_lost(w, site, edit, id) : restore_known(w, site, edit, id);
    return err < 0 ? err : restore_links(w, site, edit, &item, retell(site, edit));
}

static void sitemaps_asked(struct wb_site *site, int64_t ms)
{
    if (ms > site->sitemaps_ms)
        site->sitemaps_ms = ms;
}

static int restore_hints(struct wb_worker *w, struct wb_site *site, const struct wb_edit *edit)
{
    struct wb_item item = {.kind = WB_ITEM_PAGE, .depth = 1};
    struct wb_pageid id;

    sitemaps_asked(site, edit->time_ms);
    site->sitemaps_due = true; /* so they were, in this visit */
    if (id_of(w, edit->text, &id)) {
        int err = wb_seen_add(&site->seen, w->plan->options->dir, id);
        if (err < 0)
            return err;
        wb_seen_mark(&site->seen, id, true);
        site->sitemaps++;
    }
    return restore_links(w, site, edit, &item, 0);
}

/*
 * A record's times as far as they can be true: it was not written in the future. If its time says so, the clock was wrong, and nobody
 * knows its age: rules are asked for again, and the dispenser's row tells how long to wait (wb_site_new).
 */
static void correct_times(struct wb_worker *w, struct wb_edit *edit)
{
    int64_t now = wb_worker_now(w);
    bool known = edit->time_ms <= now + WB_PATIENCE_MS;

    if (edit->kind == WB_EDIT_WAIT)
        edit->until_ms = known ? wb_site_trust(edit->until_ms, edit->time_ms, now, WB_BACK_OFF_MAX_MS) : 0;
    if (edit->kind == WB_EDIT_RULES)
        edit->rules.expires_ms = known ? wb_site_trust(edit->rules.expires_ms, edit->time_ms, now, WB_RULES_LIFE_MS) : now;
    if (edit->time_ms > now)
        edit->time_ms = now;
}

/* No request before this. */
static void not_before(struct wb_site *site, int64_t ms)
{
    if (ms > site->next_ms)
        site->next_ms = ms;
}

/* The outcome of a request says when it was really sent. */
static void restore_clock(struct wb_site *site, const struct wb_edit *edit)
{
    if (edit->kind == WB_EDIT_PAGE && edit->page.outcome == WB_OUTCOME_ROBOTS)
        return; /* no request was made */
    if (edit->kind == WB_EDIT_REQUEST)
        site->unanswered_ms = edit->time_ms;
    else if (edit->kind == WB_EDIT_PAGE || edit->kind == WB_EDIT_RULES || edit->kind == WB_EDIT_HINTS)
        site->unanswered_ms = 0;
    else
        return;
    uint32_t took_ms = edit->kind == WB_EDIT_PAGE ? edit->page.took_ms : 0;
    not_before(site, wb_site_rest(edit->time_ms, edit->time_ms + took_ms, site->page_delay_ms));
}

/* A request without an outcome was sent at some moment after it was noted, but not after its process died: at the latest now. */
static void settle_clock(struct wb_worker *w, struct wb_site *site)
{
    int64_t now = wb_worker_now(w), latest = site->unanswered_ms + w->plan->options->timeout_ms;

    if (site->unanswered_ms)
        not_before(site, (latest < now ? latest : now) + site->page_delay_ms);
    site->unanswered_ms = 0;
}

static int restore_record(struct wb_worker *w, struct wb_site *site, const struct wb_edit *edit)
{
    struct wb_item seed = {.kind = WB_ITEM_PAGE, .depth = (uint16_t)edit->count};

    restore_clock(site, edit);
    switch (edit->kind) {
    case WB_EDIT_SEEDS:
        return restore_links(w, site, edit, &seed, WB_ADMIT_SEED);
    case WB_EDIT_RULES:
        return wb_rules_restore(w, site, &edit->rules);
    case WB_EDIT_REQUEST:
        return 0;
    case WB_EDIT_PAGE:
        if (edit->page.outcome != WB_OUTCOME_ROBOTS)
            site->attempts = 0;
        return restore_page(w, site, edit);
    case WB_EDIT_HINTS:
        return restore_hints(w, site, edit);
    case WB_EDIT_WAIT:
        site->attempts = (int)edit->count;
        not_before(site, edit->until_ms);
        wb_site_set_reason(site, edit->text);
        return 0;
    case WB_EDIT_VISIT:
    case WB_EDIT_FINISH:
    case WB_EDIT_PUSH:
    case WB_EDIT_EXPUNGE:
    case WB_EDIT_ASK:
    case WB_EDIT_BATCH:
        return 0;
    }
    return 0;
}

/* Whether the visit before says that there is a page; what robots.txt forbade is found again where it still is. */
static bool is_recalled(const struct wb_edit_page *page)
{
    return page->outcome != WB_OUTCOME_GONE && page->outcome != WB_OUTCOME_REDIRECT && page->outcome != WB_OUTCOME_ROBOTS;
}

/* Of an earlier visit only what outlives it counts: rules, clocks, and (unless a list says what to ask for) which pages there were. */
static int recall_record(struct wb_worker *w, struct wb_site *site, const struct wb_edit *edit)
{
    struct wb_item item = {.kind = WB_ITEM_PAGE, .depth = edit->page.depth};

    restore_clock(site, edit);
    if (edit->kind == WB_EDIT_HINTS)
        sitemaps_asked(site, edit->time_ms);
    if (edit->kind == WB_EDIT_PAGE && !site->listed && is_recalled(&edit->page))
        return wb_links_follow(w, site, edit->page.url, &item, WB_ADMIT_QUIET | WB_ADMIT_SEED);
    if (edit->kind == WB_EDIT_RULES || edit->kind == WB_EDIT_REQUEST || edit->kind == WB_EDIT_WAIT)
        return restore_record(w, site, edit);
    return 0;
}

/* When a visit begins: rules that still hold are noted in it too, because only the visit before is ever looked into. */
static int recall_begin(struct wb_worker *w, struct wb_site *site, const struct wb_edit *edit)
{
    int err = recall_record(w, site, edit);

    if (err == 0 && edit->kind == WB_EDIT_RULES && site->rules_state == WB_RULES_KNOWN && edit->rules.expires_ms == site->rules_expires_ms) {
        struct wb_edit rules = {.kind = WB_EDIT_RULES, .time_ms = edit->time_ms, .rules = edit->rules};
        err = wb_visit_note(w, site, &rules);
    }
    return err;
}

/*
 * Reads the chain that ends at last through take(). A journal that is gone or damaged costs the site's history, not the site. Where
 * there is a webdb, logs go once it has what they say.
 */
static int read_chain(struct wb_worker *w, struct wb_site *site, struct wb_edit_place last,
                      int (*take)(struct wb_worker *, struct wb_site *, const struct wb_edit *), struct wb_edit *first_out)
{
    struct wb_edit_place *places = NULL;
    struct wb_edit edit;
    size_t count = 0;

    *first_out = (struct wb_edit){0};
    if (!last.log)
        return 0;
    int err = wb_journal_reader_chain(w->history, last, false, &places, &count);
    for (size_t i = 0; err >= 0 && i < count; i++) {
        err = wb_journal_reader_get(w->history, places[i], &edit);
        if (err < 0)
            break;
        correct_times(w, &edit);
        if (i == 0)
            *first_out = edit;
        if (take)
            err = take(w, site, &edit);
    }
    wb_free(places);
    if (err == WB_E_NOTFOUND && w->webdb)
        return 0;
    if (err == WB_E_NOTFOUND || err == WB_E_CORRUPT) {
        wb_event_warn(w, "%s: its history is not whole: %s", site->name, wb_error_message());
        return 0;
    }
    return err < 0 ? err : 0;
}

/* ---- seeds --------------------------------------------------------------------------------------- */

struct seed_taker {
    struct wb_worker *w;
    struct wb_site *site;
    uint64_t count;
};

static int take_seed(void *context, const struct wb_seed *seed)
{
    struct seed_taker *taker = context;
    struct wb_worker *w = taker->w;
    struct wb_site *site = taker->site;
    struct wb_item item = {.kind = WB_ITEM_PAGE, .depth = seed->depth};
    struct wb_edit_link link = {.url = seed->url};
    struct wb_edit edit = {.kind = WB_EDIT_SEEDS, .count = seed->depth, .links = &link, .link_count = 1};

    int64_t before = site->seeds_taken;
    site->seeds_taken = seed->id;
    if (seed->depth > w->plan->options->max_depth || wb_url_parse(seed->url, NULL, &w->target) < 0)
        return 0;
    bool deep = w->plan->options->root_first && !site->listed && !wb_slice_equal(wb_site_path(&w->target), WB_SLICE_LIT("/"));
    if (deep && site->root_state == WB_ROOT_REACHABLE)
        return 0;
    if (deep && site->root_state == WB_ROOT_UNKNOWN) {
        site->held_after = site->root_waited ? site->held_after : before;
        site->root_waited = true;
        return 0;
    }
    int got = wb_admit(w, site, &w->target, &item, WB_ADMIT_SEED);
    if (got <= 0)
        return got;
    taker->count++;
    return wb_visit_note(w, site, &edit);
}

/* The root before anything else: to be compared with those of other names of the address, or because deep entry is not wanted. */
static int put_root_first(struct wb_worker *w, struct wb_site *site)
{
    struct wb_item item = {.kind = WB_ITEM_PAGE, .https = site->https, .path = WB_SLICE_LIT("/")};
    struct wb_pageid id;

    if (!site->root_waited && !(site->probing && !site->root_digest))
        return 0;
    int err = wb_site_url(site, site->https, item.path, &w->url_text);
    if (err < 0 || !id_of(w, wb_buf_slice(&w->url_text), &id))
        return err;
    if (site->root_waited)
        err = wb_seen_add(&site->seen, w->plan->options->dir, id);
    else if (!wb_seen_has(&site->seen, id))
        item.kind = WB_ITEM_PROBE;
    return err < 0 ? err : wb_item_push(w->spill, &site->again, &item);
}

int wb_visit_seeds(struct wb_worker *w, struct wb_site *site, uint64_t *count_out)
{
    struct seed_taker taker = {.w = w, .site = site};
    bool waited = site->root_waited;
    int err = wb_dispenser_seeds(w->dispenser, site->id, site->seeds_taken, take_seed, &taker);

    if (err == 0 && site->root_waited && !waited) {
        err = put_root_first(w, site);
        taker.count++;
    }
    *count_out = taker.count;
    return err;
}

int wb_visit_root(struct wb_worker *w, struct wb_site *site, bool reachable)
{
    uint64_t count;
    bool waited = site->root_waited;

    site->root_state = reachable ? WB_ROOT_REACHABLE : WB_ROOT_UNREACHABLE;
    site->root_waited = false;
    if (!waited || reachable)
        return 0;
    site->seeds_taken = site->held_after;
    return wb_visit_seeds(w, site, &count);
}

/* ---- beginning ------------------------------------------------------------------------------------- */

/* Pages that no log tells of any more. What an import told of a site that was never visited is not the crawl's to ask for. */
static int recall_webdb(struct wb_worker *w, struct wb_site *site)
{
    return site->listed || site->visit < 2 ? 0 : wb_known_recall(w, site);
}

static int begin_visit(struct wb_worker *w, struct wb_site *site)
{
    struct wb_edit edit = {.kind = WB_EDIT_VISIT, .text = wb_slice_str(site->name), .count = site->visit};
    struct wb_edit first;
    struct wb_edit_place last = site->trail;
    uint64_t count;

    int err = wb_visit_note(w, site, &edit);
    if (err == 0)
        err = wb_visit_seeds(w, site, &count);
    if (err == 0)
        err = read_chain(w, site, last, recall_begin, &first);
    return err < 0 ? err : recall_webdb(w, site);
}

static int resume_visit(struct wb_worker *w, struct wb_site *site, struct wb_edit_place before)
{
    struct wb_edit first;
    uint64_t count;
    int err = read_chain(w, site, site->trail, restore_record, &first);

    if (err == 0)
        err = read_chain(w, site, before, recall_record, &first);
    if (err == 0)
        err = recall_webdb(w, site);
    return err < 0 ? err : wb_visit_seeds(w, site, &count);
}

/*
 * Which visit it is: true where one begins. number: of the last one in the chain, 0: there is none; finished: it was.
 *
 * A visit that was finished goes on where only new seeds came; the dispenser forgets what was taken when a new one is wanted.
 * One that the dispenser has not heard of ended with its process before that could be told: it is finished once more. A list, and
 * a crawl of seeds after it (which is told by a number that is still to come), want a visit of their own, whatever became of the one before.
 */
static bool choose_visit(struct wb_site *site, uint32_t number, bool finished)
{
    bool over = finished && site->seeds_taken == 0 && site->visit >= number;
    bool listed = site->listed_visit > number, wanted = number && site->visit > number;

    /* Where a list's visit begins, the dispenser knows which seeds are not its own; where it had begun and its history is lost, all are taken. */
    if (listed ? site->visit >= site->listed_visit : number == 0)
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
    struct wb_edit first, last = {0};
    int err = read_chain(w, site, site->trail, NULL, &first);

    if (err == 0 && first.kind == WB_EDIT_VISIT)
        err = wb_journal_reader_get(w->history, site->trail, &last);
    if (err < 0)
        return err;
    bool visited = site->visit > 0;
    if (choose_visit(site, first.kind == WB_EDIT_VISIT ? first.count : 0, last.kind == WB_EDIT_FINISH))
        err = begin_visit(w, site);
    else
        err = resume_visit(w, site, first.prev);
    if (err == 0)
        err = wb_known_rules(w, site);
    if (!site->listed || site->sitemaps_ms + SITEMAPS_MS <= wb_worker_now(w))
        site->sitemaps_due = true;
    /* Which name of the site is crawled was decided when it was first visited. */
    if (site->listed && visited)
        site->probing = false;
    if (err == 0)
        err = put_root_first(w, site);
    if (err < 0)
        return err;
    /* It was known before its process died, and not whether it is an alias. */
    if (site->probing && site->root_digest && site->rules_state == WB_RULES_KNOWN && wb_page_alias(w, site))
        return 0;
    settle_clock(w, site);
    if (site->next_ms - wb_worker_now(w) > WB_PATIENCE_MS)
        wb_visit_close(w, site, WB_SITE_WAITING, site->wait_reason[0] ? site->wait_reason : "back-off", NULL);
    else
        wb_dispatch_later(w, site);
    return 0;
}

/* ---- ending ------------------------------------------------------------------------------------------ */

static int fill_report(struct wb_worker *w, const struct wb_site *site, enum wb_site_state state, const char *reason, const char *alias_of,
                       struct wb_worker_report *report)
{
    char probe[WB_PROBE_TEXT_MAX];

    wb_site_probe(site, probe);
    report->address = site->address;
    report->name = wb_strdup(site->name);
    report->reason = wb_strdup(reason);
    report->alias_of = wb_strdup(alias_of ? alias_of : "");
    report->probe = wb_strdup(probe);
    if (!report->name || !report->reason || !report->alias_of || !report->probe)
        return WB_E_NOMEM;
    report->row = (struct wb_site_report){
        .id = site->id, .state = state, .next_ms = site->next_ms, .attempts = site->attempts, .reason = wb_slice_str(report->reason),
        .alias_of = wb_slice_str(report->alias_of), .probe = wb_slice_str(report->probe), .home = wb_slice_str(w->plan->home),
        .visit = site->visit, .sitemaps_ms = site->sitemaps_ms, .trail = wb_trail_from_place(site->trail), .trail_ms = site->trail_ms, .pages = (int64_t)site->pages,
        /* Seeds that wait for the root are not taken, unless the visit is over. */
        .seeds_taken = site->root_waited && state != WB_SITE_DONE ? site->held_after : site->seeds_taken};
    return 0;
}

static int add_report(struct wb_worker *w, const struct wb_site *site, enum wb_site_state state, const char *reason, const char *alias_of)
{
    if (w->report_count == w->report_cap) {
        size_t cap = w->report_cap ? w->report_cap * 2 : 64;
        struct wb_worker_report *reports = wb_realloc(w->reports, cap * sizeof *reports);
        if (!reports)
            return WB_E_NOMEM;
        w->reports = reports;
        w->report_cap = cap;
    }
    struct wb_worker_report *report = &w->reports[w->report_count++];
    *report = (struct wb_worker_report){0};
    return fill_report(w, site, state, reason, alias_of, report);
}

void wb_visit_close(struct wb_worker *w, struct wb_site *site, enum wb_site_state state, const char *reason, const char *alias_of)
{
    struct wb_edit edit = {.kind = WB_EDIT_FINISH, .text = wb_slice_str(reason)};
    int err = 0;

    WB_CHECK(site->in_flight == 0 && site->held == 0);
    if (!site->guest && (state == WB_SITE_DONE || state == WB_SITE_ALIAS || state == WB_SITE_REFUSED))
        err = wb_visit_note(w, site, &edit);
    if (err == 0)
        err = add_report(w, site, site->guest ? site->guest_state : state, reason, alias_of);
    wb_worker_dirty(w);
    wb_favours_pass_on(w, site);
    wb_frontier_remove(&w->frontier, site);
    wb_worker_drop(w, site);
    wb_site_free(site, w->spill);
    if (err < 0)
        wb_worker_fail(w, err);
}

void wb_visit_back_off(struct wb_worker *w, struct wb_site *site, int64_t until_ms, const char *reason)
{
    int64_t now = wb_worker_now(w);
    int64_t wait = (int64_t)WB_BACK_OFF_FIRST_MS << (site->attempts < 16 ? site->attempts : 16);
    struct wb_edit edit = {.kind = WB_EDIT_WAIT, .text = wb_slice_str(reason)};

    wb_site_set_reason(site, edit.text);
    site->attempts++;
    if (wait > WB_BACK_OFF_MAX_MS)
        wait = WB_BACK_OFF_MAX_MS;
    /* A server that asks us back after a second, again and again, is still down: our own back-off is the least that we wait. */
    if (until_ms < now + wait)
        until_ms = now + wait;
    if (until_ms > now + WB_BACK_OFF_MAX_MS)
        until_ms = now + WB_BACK_OFF_MAX_MS;
    if (until_ms > site->next_ms)
        site->next_ms = until_ms;
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

/* ---- telling the dispenser ------------------------------------------------------------------------------ */

static int send_reports(struct wb_worker *w, size_t count)
{
    struct wb_site_report *rows = wb_alloc_zero(count, sizeof *rows);

    if (!rows)
        return WB_E_NOMEM;
    for (size_t i = 0; i < count; i++)
        rows[i] = w->reports[i].row;
    int err = wb_dispenser_report(w->dispenser, wb_slice_str(w->owner), rows, count);
    wb_free(rows);
    return err;
}

const char *wb_visit_closed_twin(const struct wb_worker *w, const struct wb_site *site)
{
    char probe[WB_PROBE_TEXT_MAX];

    wb_site_probe(site, probe);
    for (size_t i = 0; i < w->report_count; i++)
        if (w->reports[i].row.id != site->id && w->reports[i].row.state != WB_SITE_ALIAS &&
            wb_address_equal(&w->reports[i].address, &site->address) && strcmp(w->reports[i].probe, probe) == 0)
            return w->reports[i].name;
    return NULL;
}

int wb_visit_report(struct wb_worker *w, bool keep)
{
    int err = 0;

    for (struct wb_site *site = keep ? w->sites : NULL; err == 0 && site; site = site->list_next)
        err = add_report(w, site, WB_SITE_CLAIMED, "", NULL);
    if (err == 0 && w->report_count)
        err = send_reports(w, w->report_count);
    for (size_t i = 0; i < w->report_count; i++) {
        wb_free(w->reports[i].name);
        wb_free(w->reports[i].reason);
        wb_free(w->reports[i].alias_of);
        wb_free(w->reports[i].probe);
    }
    if (w->report_count)
        atomic_fetch_add(&w->tally->claimable, 1);
    w->report_count = 0;
    return err;
}
