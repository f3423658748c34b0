/*
 * restore.c - what a visit continues with: read from the journal, and from webdb if there is one.
 *
 * The chain of a site's records in the journal is the truth about the site. A visit that is resumed is rebuilt by
 * reading its records, oldest first, through the same admission that a live crawl uses (links.c). URLs that are then
 * known and not marked as dealt with are what is left to do.
 *
 *   wb_restore_visit     the visit that is resumed: everything
 *   wb_restore_earlier   a visit before it: rules and clocks, and its pages, so that each is asked for again
 *
 * This file never begins or ends a visit (visit.c), and writes nothing but rules that outlive the visit they are from.
 */
#include "base/check.h"
#include "base/mem.h"
#include "crawl/worker.h"
#include "webdb/webdb.h"

enum { RETELL_MS = 2 * WB_MINUTE_MS };

/* ---- links of a record ------------------------------------------------------------------------------------------- */

/* Admits the links of a record again. item: what they are, and their depth; those of a page know it themselves. */
static int restore_links(struct wb_worker *w, struct wb_site *site, const struct wb_edit *edit,
                         const struct wb_item *item, unsigned flags)
{
    struct wb_pagelink link;
    size_t at = 0;
    int got;

    while ((got = wb_edit_links_next(edit, &at, &w->scratch.link, &link)) > 0) {
        struct wb_item entry = *item;
        if (link.tag == WB_PAGELINK_TAG_SITEMAP)
            entry.kind = WB_ITEM_SITEMAP;
        if (edit->kind == WB_EDIT_PAGE)
            got = wb_links_follow_edit(w, site, &edit->page, &link, flags | WB_LINKS_QUIET);
        else
            got = wb_links_follow(w, site, link.url, &entry, flags | WB_LINKS_QUIET);
        if (got < 0)
            return got;
    }
    return got;
}

static bool outcome_stored(uint8_t outcome)
{
    return outcome == WB_OUTCOME_STORED || outcome == WB_OUTCOME_DUPLICATE || outcome == WB_OUTCOME_TRUNCATED;
}

static bool outcome_failed(uint8_t outcome)
{
    return outcome == WB_OUTCOME_GONE || outcome == WB_OUTCOME_ERROR || outcome == WB_OUTCOME_ROBOTS;
}

/*
 * Links to other sites wait in memory for a commit, at most for seconds. Those of the last minutes may have died with
 * their process, so they are sent again.
 */
static unsigned retell(const struct wb_site *site, const struct wb_edit *edit)
{
    return edit->time_ms + RETELL_MS > site->trail_ms ? WB_LINKS_RETELL : 0;
}

/* ---- pages ------------------------------------------------------------------------------------------------------- */

/* The URL in w->scratch.url as an item. */
static struct wb_item parsed_item(const struct wb_worker *w, struct wb_depth depth, uint8_t hops)
{
    return (struct wb_item){.kind = WB_ITEM_PAGE, .depth = depth, .hops = hops,
                            .https = wb_slice_equal(wb_url_scheme(&w->scratch.url), WB_SLICE_LIT("https")),
                            .path = wb_site_path(&w->scratch.url)};
}

/* Puts a page that was marked as dealt with back into the queue. w->scratch.url is its URL. */
static int ask_anew(struct wb_worker *w, struct wb_site *site, struct wb_pageid id, struct wb_depth depth, uint8_t hops)
{
    WB_CHECK(wb_seen_has(&site->seen, id));
    struct wb_item item = parsed_item(w, depth, hops);

    wb_seen_mark(&site->seen, id, false);
    return wb_item_push(w->repo.spill, &site->again, &item);
}

static int restore_redirect(struct wb_worker *w, struct wb_site *site, const struct wb_edit *edit, struct wb_pageid id)
{
    const struct wb_edit_page *page = &edit->page;
    struct wb_item item = {.kind = WB_ITEM_PAGE, .depth = page->depth, .hops = (uint8_t)(page->hops + 1)};
    struct wb_pageid target;

    if (page->hops >= WB_PAGE_HOPS_MAX || !page->location.len)
        return 0;
    /* From "/a" to "/a/", or from http to https: another spelling of the same page must still be asked for. */
    if (wb_worker_parse(w, page->location, &target) == 0 && wb_pageid_equal(id, target) &&
        !wb_slice_equal(page->url, page->location))
        return ask_anew(w, site, id, item.depth, item.hops);
    return wb_links_follow(w, site, page->location, &item, WB_LINKS_QUIET | WB_LINKS_FRONT | retell(site, edit));
}

/*
 * Whether the store lost a page that the journal says it has: 1, 0 or an error. The kernel may write the journal to
 * disk before the store commits, so after power loss the journal can be ahead. A capture without bytes is in no spool;
 * if the store lost it, the journal says enough to repeat it.
 */
static int is_lost(struct wb_worker *w, struct wb_pageid id, const struct wb_edit *edit)
{
    bool stored = outcome_stored(edit->page.outcome);
    int64_t time_ms;

    /* Without content it was a page of an unwanted type, which is not stored. */
    if (!stored && (edit->page.outcome != WB_OUTCOME_UNCHANGED || !edit->page.has_content))
        return 0;
    int err = wb_store_time(w->repo.store, id, &time_ms);
    if (err == WB_E_NOTFOUND)
        return 1;
    /* Damage of the store is not our concern here: the reader of the page reports it. */
    if (err < 0)
        return err == WB_E_CORRUPT ? 0 : err;
    if (stored || time_ms >= edit->time_ms)
        return time_ms < edit->time_ms;
    err = wb_store_touch(w->repo.store, id, edit->time_ms);
    w->uncommitted.pages += err == 0;
    if (err == 0)
        wb_worker_dirty(w);
    return err == WB_E_NOTFOUND ? 1 : err == WB_E_CORRUPT ? 0 : err;
}

/* Restores everything that is known of a page that was asked for, except its links. */
static int restore_known(struct wb_worker *w, struct wb_site *site, const struct wb_edit *edit, struct wb_pageid id)
{
    WB_CHECK(wb_seen_has(&site->seen, id));
    const struct wb_edit_page *page = &edit->page;
    struct wb_pageid content;
    int err = 0;

    wb_seen_mark(&site->seen, id, true);
    site->pages += outcome_stored(page->outcome);
    bool root = wb_slice_equal(wb_site_path(&w->scratch.url), WB_SLICE_LIT("/"));
    if (root)
        site->root.state = outcome_failed(page->outcome) ? WB_ROOT_UNREACHABLE : WB_ROOT_REACHABLE;
    if (page->has_content && page->depth.need && wb_slice_equal(page->type, WB_SLICE_LIT("text/html")))
        err = wb_seen_add(&site->unread, w->plan->options->dir, id);
    if (err >= 0 && page->has_content) {
        wb_trap_learn(&site->trap, wb_site_path(&w->scratch.url), page->simhash);
        content = wb_pageid_get(page->md5);
        err = wb_seen_add(&w->contents, w->plan->options->dir, content);
        if (root)
            site->root.digest = content.hi | 1;
    }
    if (err >= 0 && page->outcome == WB_OUTCOME_REDIRECT)
        err = restore_redirect(w, site, edit, id);
    return err < 0 ? err : 0;
}

static int restore_page(struct wb_worker *w, struct wb_site *site, const struct wb_edit *edit)
{
    struct wb_item item = {.kind = WB_ITEM_PAGE};
    struct wb_pageid id;
    int err = 0;

    if (wb_worker_parse(w, edit->page.url, &id) < 0)
        return 0;
    if (!wb_slice_equal(wb_key_site(wb_buf_slice(&w->scratch.key)), wb_slice_str(site->name)))
        return 0; /* a URL of an alias (visit.c); what it led to is a seed */
    err = wb_seen_add(&site->seen, w->plan->options->dir, id);
    if (err < 0 || edit->page.outcome == WB_OUTCOME_LATER)
        return err;
    int lost = is_lost(w, id, edit);
    err = lost < 0 ? lost : lost ? ask_anew(w, site, id, edit->page.depth, edit->page.hops)
                                                            : restore_known(w, site, edit, id);
    return err < 0 ? err : restore_links(w, site, edit, &item, retell(site, edit));
}

/* ---- sitemaps ---------------------------------------------------------------------------------------------------- */

static void sitemaps_asked(struct wb_site *site, int64_t ms)
{
    if (ms > site->sitemaps_ms)
        site->sitemaps_ms = ms;
}

static int restore_hints(struct wb_worker *w, struct wb_site *site, const struct wb_edit *edit)
{
    struct wb_item item = {.kind = WB_ITEM_PAGE, .depth.links = 1};
    struct wb_pageid id;

    sitemaps_asked(site, edit->time_ms);
    site->sitemaps_due = true; /* this visit has requested them before, so it goes on */
    if (wb_worker_parse(w, edit->text, &id) == 0) {
        int err = wb_seen_add(&site->seen, w->plan->options->dir, id);
        if (err < 0)
            return err;
        wb_seen_mark(&site->seen, id, true);
        site->sitemaps++;
    }
    return restore_links(w, site, edit, &item, 0);
}

/* ---- clocks ------------------------------------------------------------------------------------------------------ */

/*
 * Corrects the times of a record. A record cannot have been written in the future: if its time says so, the clock was
 * wrong and nobody knows the record's age. Then rules are asked for again, and how long to wait is taken from the
 * dispenser's row (wb_site_new).
 */
static void correct_times(struct wb_edit *edit)
{
    int64_t now = wb_clock_now_ms();
    bool known = edit->time_ms <= now + WB_PATIENCE_MS;

    int64_t *until = &edit->until_ms, *expires = &edit->rules.expires_ms;

    if (edit->kind == WB_EDIT_WAIT)
        *until = known ? wb_site_trust(*until, edit->time_ms, now, WB_BACK_OFF_MAX_MS) : 0;
    if (edit->kind == WB_EDIT_RULES)
        *expires = known ? wb_site_trust(*expires, edit->time_ms, now, WB_RULES_LIFE_MS) : now;
    if (edit->time_ms > now)
        edit->time_ms = now;
}

static void not_before(struct wb_site *site, int64_t ms)
{
    if (ms > site->next_ms)
        site->next_ms = ms;
}

/* The outcome of a request says when the request was really sent. */
static void restore_clock(struct wb_site *site, const struct wb_edit *edit)
{
    bool alias = edit->page.outcome == WB_OUTCOME_REDIRECT && edit->page.status == 0;

    if (edit->kind == WB_EDIT_PAGE && (edit->page.outcome == WB_OUTCOME_ROBOTS || alias))
        return; /* no request was made */
    if (edit->kind == WB_EDIT_REQUEST)
        site->unanswered_ms = edit->time_ms;
    else if (edit->kind == WB_EDIT_PAGE || edit->kind == WB_EDIT_RULES || edit->kind == WB_EDIT_HINTS)
        site->unanswered_ms = 0;
    else
        return;
    uint32_t took_ms = edit->kind == WB_EDIT_PAGE ? edit->page.took_ms : 0;
    site->asked_ms = edit->time_ms;
    site->heard_ms = site->answered_ms = edit->time_ms + took_ms; /* the journal does not say when it began */
    wb_site_rest_after(site);
}

/*
 * A request without an outcome was sent at some moment between its record and the death of its process, which is now at
 * the latest. Waits from the latest moment that is possible.
 */
void wb_restore_unanswered(struct wb_worker *w, struct wb_site *site)
{
    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC);
    int64_t now = wb_clock_now_ms(), latest = site->unanswered_ms + w->plan->options->timeout_ms;

    if (site->unanswered_ms)
        not_before(site, (latest < now ? latest : now) + site->page_delay_ms);
    site->unanswered_ms = 0;
}

/* ---- records ----------------------------------------------------------------------------------------------------- */

static int restore_record(struct wb_worker *w, struct wb_site *site, const struct wb_edit *edit)
{
    struct wb_item seed = {.kind = WB_ITEM_PAGE, .depth = edit->depth};

    restore_clock(site, edit);
    switch (edit->kind) {
    case WB_EDIT_SEEDS:
        return restore_links(w, site, edit, &seed, WB_LINKS_SEED);
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

/* Whether there was a page. What robots.txt forbade will be found again if it is still forbidden. */
static bool is_recalled(const struct wb_edit_page *page)
{
    return page->outcome != WB_OUTCOME_GONE && page->outcome != WB_OUTCOME_REDIRECT &&
           page->outcome != WB_OUTCOME_ROBOTS;
}

/* From an earlier visit only rules and clocks count, and which pages there were, unless a list says what to ask for. */
static int recall_record(struct wb_worker *w, struct wb_site *site, const struct wb_edit *edit)
{
    struct wb_item item = {.kind = WB_ITEM_PAGE, .depth = edit->page.depth};

    restore_clock(site, edit);
    if (edit->kind == WB_EDIT_HINTS)
        sitemaps_asked(site, edit->time_ms);
    if (edit->kind == WB_EDIT_PAGE && !site->listed && !site->needed && is_recalled(&edit->page))
        return wb_links_follow(w, site, edit->page.url, &item, WB_LINKS_QUIET | WB_LINKS_SEED);
    if (edit->kind == WB_EDIT_RULES || edit->kind == WB_EDIT_REQUEST || edit->kind == WB_EDIT_WAIT)
        return restore_record(w, site, edit);
    return 0;
}

/* When a visit begins, rules that are still valid are noted in it too: only the visit before is ever read. */
static int recall_begin(struct wb_worker *w, struct wb_site *site, const struct wb_edit *edit)
{
    int err = recall_record(w, site, edit);

    bool taken = edit->kind == WB_EDIT_RULES && site->rules.state == WB_RULES_KNOWN &&
                 edit->rules.expires_ms == site->rules.expires_ms;
    if (err == 0 && taken) {
        struct wb_edit rules = {.kind = WB_EDIT_RULES, .time_ms = edit->time_ms, .rules = edit->rules};
        err = wb_visit_note(w, site, &rules);
    }
    return err;
}

/* ---- chains ------------------------------------------------------------------------------------------------------ */

typedef int (*take_record)(struct wb_worker *w, struct wb_site *site, const struct wb_edit *edit);

/*
 * Reads the chain that ends at `last`, oldest record first, and gives each record to take (NULL: none). A journal that
 * is damaged or gone costs the history of the site, not the site. If there is a webdb, it is normal that logs are gone:
 * they are deleted once webdb has what they say.
 */
static int read_chain(struct wb_worker *w, struct wb_site *site, struct wb_edit_place last, take_record take,
                      struct wb_edit *first_out)
{
    struct wb_edit_place *places = NULL;
    struct wb_edit edit;
    size_t count = 0;

    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC && site->in_flight == 0);
    *first_out = (struct wb_edit){0};
    if (!last.log)
        return 0;
    int err = wb_journal_reader_chain(w->repo.history, last, false, &places, &count);
    for (size_t i = 0; err >= 0 && i < count; i++) {
        err = wb_journal_reader_get(w->repo.history, places[i], &edit);
        if (err < 0)
            break;
        correct_times(&edit);
        if (i == 0)
            *first_out = edit;
        if (take)
            err = take(w, site, &edit);
    }
    wb_free(places);
    if (err == WB_E_NOTFOUND && w->repo.webdb)
        return 0;
    if (err == WB_E_NOTFOUND || err == WB_E_CORRUPT) {
        wb_eventlog_warn(w, "%s: its history is not whole: %s", site->name, wb_error_message());
        return 0;
    }
    return err < 0 ? err : 0;
}

int wb_restore_first(struct wb_worker *w, struct wb_site *site, struct wb_edit *first_out)
{
    WB_CHECK(!site->guest);
    return read_chain(w, site, site->trail, NULL, first_out);
}

int wb_restore_visit(struct wb_worker *w, struct wb_site *site)
{
    struct wb_edit first;

    WB_CHECK(!site->guest && site->visit > 0);
    return read_chain(w, site, site->trail, restore_record, &first);
}

/* ---- webdb ------------------------------------------------------------------------------------------------------- */

/* Pages of the site that no log of the journal knows any more. */
static int recall_pages(struct wb_worker *w, struct wb_site *site)
{
    struct wb_webdb_pages *pages = NULL;
    struct wb_webdb_page page;
    int got = 0;

    /* At the first visit of a site webdb knows only what imports brought. A crawl does not ask for that. */
    if (!w->repo.webdb || site->listed || site->needed || site->visit < 2)
        return 0;
    int err = wb_webdb_pages_of_site(w->repo.webdb, wb_slice_str(site->name), &pages);
    while (err >= 0 && (got = wb_webdb_pages_next(pages, &page)) > 0) {
        struct wb_item item = {.kind = WB_ITEM_PAGE, .depth.links = page.depth};
        if (page.has_content && !(page.flags & (WB_PAGE_BARRED | WB_PAGE_GONE | WB_PAGE_LOADED)))
            err = wb_links_follow(w, site, page.url, &item, WB_LINKS_QUIET | WB_LINKS_SEED);
    }
    wb_webdb_pages_close(pages);
    return err < 0 ? err : got;
}

int wb_restore_earlier(struct wb_worker *w, struct wb_site *site, struct wb_edit_place last, bool begins)
{
    WB_CHECK(!site->guest);
    struct wb_edit first;
    int err = read_chain(w, site, last, begins ? recall_begin : recall_record, &first);

    return err < 0 ? err : recall_pages(w, site);
}

int wb_restore_rules(struct wb_worker *w, struct wb_site *site)
{
    struct wb_webdb_rules known;

    WB_CHECK(w->magic == WB_WORKER_MAGIC && site->magic == WB_SITE_MAGIC && !site->guest);
    if (!w->repo.webdb || site->rules.state == WB_RULES_KNOWN)
        return 0;
    int err = wb_webdb_get_rules(w->repo.webdb, wb_slice_str(site->name), &known);
    if (err == WB_E_NOTFOUND || err == WB_E_CORRUPT)
        return 0; /* robots.txt is requested again */
    struct wb_edit_rules rules = {.status = known.status, .text = known.text, .expires_ms = known.expires_ms};
    return err < 0 ? err : wb_rules_restore(w, site, &rules);
}
