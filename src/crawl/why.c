/*
 * why.c - says why a page or a site is, or is not, fetched.
 *
 * For a page it asks these questions in turn, and the first one that decides gives the answer: Was it taken down? Is it
 * stored? How did the last request end? What does robots.txt say? Which link led there? What does webdb know?
 *
 * It reads what crawls wrote (store, dispenser, journal, webdb) and changes nothing, so it can be asked at any time,
 * also while a crawl runs.
 */
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "base/mem.h"
#include "crawl/control.h"
#include "crawl/crawlsite.h"
#include "crawl/tally.h"
#include "os/clock.h"
#include "os/file.h"
#include "store/store.h"
#include "url/url.h"
#include "webdb/webdb.h"

#include <inttypes.h>

enum { ALIASES_MAX = 4 }; /* names that are followed from alias to alias */

/* What was found out about one URL and its site. */
struct findings {
    /* The question. */
    struct wb_slice href;       /* the URL, spelled as in links */
    struct wb_pageid id;
    struct wb_slice site;
    bool is_site;               /* the question is about the site */
    const char *dispenser_url, *agent_given; /* as the caller gave them */
    unsigned aliases;           /* that led here */
    struct wb_slice agent;      /* our name in robots.txt */
    int64_t lease_now_ms;       /* the time by the dispenser's clock */
    /* Links to the URL, from the journal. */
    bool linked, nofollow_only, hinted, seed;
    struct wb_buf linked_from;
    /* The last request for the URL, from the journal. */
    bool tried;
    struct wb_edit_page last;   /* its outcome; texts in it are gone, except: */
    struct wb_buf last_text;    /* the reason, or where it redirects to */
    int64_t last_ms;
    /* The site, from the journal. */
    bool rules_known;
    struct wb_buf rules;        /* robots.txt as last read */
    uint64_t requests;
    int64_t wait_ms;            /* until when it waits */
    struct wb_buf wait_reason;
    /* The page, from webdb. */
    bool heard;                 /* webdb knows it */
    struct wb_webdb_page web;   /* texts in it are gone */
};

static void findings_release(struct findings *f)
{
    wb_buf_release(&f->linked_from);
    wb_buf_release(&f->last_text);
    wb_buf_release(&f->rules);
    wb_buf_release(&f->wait_reason);
}

/* A URL without scheme, fragment and final slashes: a cheap way to tell whether a link leads to a page. */
static struct wb_slice bare(struct wb_slice url)
{
    const char *hash = memchr(url.ptr, '#', url.len);

    if (hash)
        url.len = (size_t)(hash - url.ptr);
    if (wb_slice_starts(url, WB_SLICE_LIT("http://")))
        url = wb_slice(url.ptr + 7, url.len - 7);
    else if (wb_slice_starts(url, WB_SLICE_LIT("https://")))
        url = wb_slice(url.ptr + 8, url.len - 8);
    while (url.len && url.ptr[url.len - 1] == '/')
        url.len--;
    return url;
}

static int set_text(struct wb_buf *buf, struct wb_slice text)
{
    wb_buf_clear(buf);
    return wb_buf_append_slice(buf, text);
}

/* ---- reading the journal ----------------------------------------------------------------------------------------- */

static int look_at_links(struct findings *f, const struct wb_edit *edit, struct wb_buf *mem)
{
    struct wb_slice wanted = bare(f->href);
    struct wb_pagelink link;
    size_t at = 0;
    int got, err = 0;

    while (err == 0 && (got = wb_edit_links_next(edit, &at, mem, &link)) > 0) {
        if (!wb_slice_equal(bare(link.url), wanted))
            continue;
        if (edit->kind == WB_EDIT_SEEDS)
            f->seed = true;
        else if (edit->kind == WB_EDIT_HINTS)
            f->hinted = true;
        else {
            bool follow = (link.flags & (WB_PAGELINK_FOLLOW | WB_PAGELINK_NOFOLLOW)) == WB_PAGELINK_FOLLOW;
            f->nofollow_only = !follow && (f->nofollow_only || !f->linked);
            f->linked = true;
            err = set_text(&f->linked_from, edit->page.url);
        }
    }
    return err;
}

static int look_at_page(struct findings *f, const struct wb_edit *edit)
{
    if (edit->page.outcome == WB_OUTCOME_ROBOTS)
        return 0; /* by_robots() asks the rules as they are now */
    f->requests++;
    if (!wb_slice_equal(bare(edit->page.url), bare(f->href)))
        return 0;
    f->tried = true;
    f->last = edit->page;
    f->last_ms = edit->time_ms;
    bool redirect = edit->page.outcome == WB_OUTCOME_REDIRECT;
    return set_text(&f->last_text, redirect ? edit->page.location : edit->page.reason);
}

static int look_at(struct findings *f, const struct wb_edit *edit, struct wb_buf *mem)
{
    int err = 0;

    switch (edit->kind) {
    case WB_EDIT_PAGE:
        err = look_at_page(f, edit);
        return err < 0 ? err : look_at_links(f, edit, mem);
    case WB_EDIT_SEEDS:
    case WB_EDIT_HINTS:
        return look_at_links(f, edit, mem);
    case WB_EDIT_RULES:
        f->rules_known = edit->rules.status != 0;
        return set_text(&f->rules, edit->rules.text);
    case WB_EDIT_WAIT:
        f->wait_ms = edit->until_ms;
        return set_text(&f->wait_reason, edit->text);
    default:
        return 0;
    }
}

/* Reads the whole chain of the site. */
static int read_site(const char *dir, struct wb_edit_place trail, struct findings *f)
{
    struct wb_journal_reader *reader = NULL;
    struct wb_edit_place *places = NULL;
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_edit edit;
    size_t count = 0;

    if (!trail.log)
        return 0;
    int err = wb_journal_reader_open(dir, &reader);
    if (err == 0)
        err = wb_journal_reader_chain(reader, trail, true, &places, &count);
    for (size_t i = 0; err == 0 && i < count; i++) {
        err = wb_journal_reader_get(reader, places[i], &edit);
        if (err == 0)
            err = look_at(f, &edit, &mem);
    }
    wb_free(places);
    wb_buf_release(&mem);
    wb_journal_reader_close(reader);
    /* Logs are deleted once webdb has what they say. */
    return err == WB_E_NOTFOUND ? 0 : err;
}

/* While a worker holds a site, the dispenser does not know its last record: it must be searched in the journal. */
static int find_trail(const char *dir, struct wb_slice name, struct wb_edit_place *trail_out)
{
    struct wb_journal_reader *reader = NULL;
    struct wb_edit_place at = WB_EDIT_NOWHERE;
    struct wb_edit edit;
    uint64_t site = wb_edit_site(name);
    int64_t newest_ms = INT64_MIN;
    int got = 0;

    int err = wb_journal_reader_open(dir, &reader);
    while (err == 0 && (got = wb_journal_reader_next(reader, &at, &edit)) != 0) {
        /* Logs are read one after the other, but several are written at a time: compare times. */
        if (got > 0 && edit.site == site && edit.time_ms >= newest_ms) {
            newest_ms = edit.time_ms;
            *trail_out = at;
        } else if (got < 0 && got != WB_E_CORRUPT) {
            err = got;
        }
    }
    wb_journal_reader_close(reader);
    return err;
}

/* Searches all pages for a link to a site that no crawl entered. */
static int read_everything(const char *dir, struct findings *f)
{
    struct wb_journal_reader *reader = NULL;
    struct wb_edit_place at = WB_EDIT_NOWHERE;
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_edit edit;
    int got = 0;

    int err = wb_journal_reader_open(dir, &reader);
    while (err == 0 && !f->linked && (got = wb_journal_reader_next(reader, &at, &edit)) != 0) {
        if (got > 0 && edit.kind == WB_EDIT_PAGE)
            err = look_at_links(f, &edit, &mem);
        else if (got < 0 && got != WB_E_CORRUPT)
            err = got;
    }
    wb_buf_release(&mem);
    wb_journal_reader_close(reader);
    return err;
}

/* ---- verdicts ---------------------------------------------------------------------------------------------------- */

__attribute__((format(printf, 3, 4)))
static int decide(struct wb_why *why, enum wb_why_verdict verdict, const char *format, ...)
{
    va_list args;

    why->verdict = verdict;
    wb_buf_clear(&why->reason);
    va_start(args, format);
    int err = wb_buf_vprintf(&why->reason, format, args);
    va_end(args);
    return err;
}

/* Whether robots.txt forbids the URL: 1 with a verdict, 0, or an error. */
static int by_robots(const struct findings *f, struct wb_slice url, struct wb_why *why)
{
    struct wb_robots *robots = NULL;
    struct wb_robots_verdict verdict = {.allowed = true};

    if (!f->rules.len)
        return 0;
    int err = wb_robots_parse(wb_buf_slice(&f->rules), f->agent, &robots);
    if (err == 0)
        wb_robots_check(robots, url, &verdict);
    if (err == 0 && !verdict.allowed) {
        err = set_text(&why->robots_rule, verdict.rule);
        why->robots_line = verdict.line;
        if (err == 0)
            err = decide(why, WB_WHY_BLOCKED, "robots.txt, line %" PRIu32 ": %.*s", verdict.line,
                         WB_SLICE_ARG(verdict.rule));
    }
    wb_robots_free(robots);
    return err < 0 ? err : !verdict.allowed;
}

/* A site that is not finished. why->next_ms is set. */
static int by_waiting(const struct wb_site_row *row, const struct findings *f, int64_t now_ms, struct wb_why *why)
{
    if (why->next_ms > now_ms && f->wait_ms >= row->next_ms && f->wait_reason.len)
        return decide(why, WB_WHY_WAITING, "%.*s is left alone for a while: %.*s", WB_SLICE_ARG(row->name),
                      WB_SLICE_ARG(wb_buf_slice(&f->wait_reason)));
    if (row->state == WB_SITE_CLAIMED && row->lease_ms > f->lease_now_ms)
        return decide(why, WB_WHY_WAITING, "%.*s is being crawled: %" PRIu64 " requests so far",
                      WB_SLICE_ARG(row->name), f->requests);
    if (row->reason.len)
        return decide(why, WB_WHY_WAITING, "%.*s waits for a crawl to continue it: %.*s", WB_SLICE_ARG(row->name),
                      WB_SLICE_ARG(row->reason));
    return decide(why, WB_WHY_WAITING, "%.*s waits for a crawl to continue it", WB_SLICE_ARG(row->name));
}

/* A site whose address is not known yet. */
static int by_unresolved(const struct wb_site_row *row, struct wb_why *why)
{
    if (row->reason.len)
        return decide(why, WB_WHY_WAITING, "%.*s: %.*s; it is asked for again", WB_SLICE_ARG(row->name),
                      WB_SLICE_ARG(row->reason));
    return decide(why, WB_WHY_WAITING, "the address of %.*s has not been looked up yet", WB_SLICE_ARG(row->name));
}

static int by_site_state(const struct wb_site_row *row, const struct findings *f, struct wb_why *why)
{
    int64_t now = wb_clock_wall_ms(), wait_ms = wb_site_wait(row, now);

    /* The later of the two, unless the journal's time is so far away that its clock must have been wrong. */
    why->next_ms = wait_ms > f->wait_ms || f->wait_ms > now + WB_BACK_OFF_MAX_MS ? wait_ms : f->wait_ms;
    if (row->state == WB_SITE_UNRESOLVED)
        return by_unresolved(row, why);
    if (row->state == WB_SITE_WAITING && wb_slice_equal(row->reason, WB_SLICE_LIT(WB_TALLY_STOPPED)))
        return why->next_ms = 0, decide(why, WB_WHY_WAITING, "%.*s was stopped with 'webbase control'; the next crawl "
                                                             "goes on with it", WB_SLICE_ARG(row->name));
    if (row->state == WB_SITE_WAITING || row->state == WB_SITE_READY || row->state == WB_SITE_CLAIMED)
        return by_waiting(row, f, now, why);
    why->next_ms = 0;
    if (row->state == WB_SITE_REFUSED)
        return decide(why, WB_WHY_BLOCKED, "%.*s is not contacted: %.*s", WB_SLICE_ARG(row->name),
                      WB_SLICE_ARG(row->reason));
    if (row->state == WB_SITE_ALIAS)
        return decide(why, WB_WHY_BLOCKED, "%.*s is another name of %.*s, which is crawled", WB_SLICE_ARG(row->name),
                      WB_SLICE_ARG(row->alias_of));
    if (wb_slice_equal(row->reason, WB_SLICE_LIT("budget")))
        return decide(why, WB_WHY_FETCHED,
                      "the visit ended at the site's budget, after %" PRId64 " pages (--site-budget)", row->pages);
    return decide(why, WB_WHY_FETCHED, "the visit is over: %" PRId64 " pages stored", row->pages);
}

static int by_outcome(const struct wb_site_row *row, const struct findings *f, struct wb_why *why)
{
    char when[WB_DATE_TEXT_MAX];
    struct wb_slice text = wb_buf_slice(&f->last_text);

    wb_date_format(f->last_ms, when);
    why->status = f->last.status;
    switch (f->last.outcome) {
    case WB_OUTCOME_REDIRECT:
        why->fetched_ms = f->last_ms;
        return decide(why, WB_WHY_FETCHED, "asked for at %s: status %u, redirects to %.*s", when, f->last.status,
                      WB_SLICE_ARG(text));
    case WB_OUTCOME_GONE:
        return decide(why, WB_WHY_BLOCKED, "gone: status %u at %s", f->last.status, when);
    case WB_OUTCOME_LATER: {
        int err = by_site_state(row, f, why);
        why->verdict = WB_WHY_WAITING;
        return err < 0 ? err : wb_buf_printf(&why->reason, " (asked for at %s: %.*s)", when, WB_SLICE_ARG(text));
    }
    case WB_OUTCOME_ERROR:
        return decide(why, WB_WHY_BLOCKED, "error:%.*s at %s%s", WB_SLICE_ARG(text), when,
                      f->last.status ? "" : ", no answer");
    default:
        why->fetched_ms = f->last_ms;
        return decide(why, WB_WHY_FETCHED, "fetched at %s, status %u", when, f->last.status);
    }
}

/* Only webdb knows the page. */
static int by_webdb(const struct findings *f, struct wb_why *why)
{
    const struct wb_webdb_page *page = &f->web;
    char when[WB_DATE_TEXT_MAX];

    wb_date_format(page->last_tried_ms, when);
    why->status = page->status;
    why->next_ms = page->next_due_ms == INT64_MAX ? 0 : page->next_due_ms;
    if (page->flags & WB_PAGE_GONE)
        return decide(why, WB_WHY_BLOCKED, "gone: status %u at %s", page->status, when);
    if (page->flags & WB_PAGE_BLOCKED)
        return decide(why, WB_WHY_BLOCKED, "robots.txt forbade it at %s", when);
    if (page->last_tried_ms)
        return decide(why, WB_WHY_WAITING, "known; last asked for at %s, status %u; waits for a fetch list", when,
                      page->status);
    if (!(page->flags & (WB_PAGE_WANTED | WB_PAGE_PUSHED)))
        return decide(why, WB_WHY_BLOCKED, "known, never fetched: no link that is followed leads there");
    return decide(why, WB_WHY_WAITING, "known, never fetched: waits for a fetch list");
}

/* The page is known, was not asked for yet, and the rules allow it. */
static int by_queue(const struct wb_site_row *row, const struct findings *f, const struct wb_url *url,
                    struct wb_why *why)
{
    struct wb_trap trap = {0};
    const char *caught = wb_trap_check(&trap, wb_site_path(url), wb_clock_wall_ms());

    wb_trap_release(&trap);
    if (f->nofollow_only && !f->seed && !f->hinted)
        return decide(why, WB_WHY_BLOCKED, "only links that are not to be followed lead there, such as on %.*s",
                      WB_SLICE_ARG(wb_buf_slice(&f->linked_from)));
    if (caught && !f->seed)
        return decide(why, WB_WHY_BLOCKED, "a guard keeps it out: %s", caught);
    if (row->state == WB_SITE_DONE && f->heard)
        return by_webdb(f, why);
    if (row->state == WB_SITE_DONE)
        return decide(why, WB_WHY_BLOCKED, "known, and left out when the visit ended: a limit of depth or budget, or a "
                                           "guard against pages without end");
    int err = by_site_state(row, f, why);
    if (err == 0 && why->verdict == WB_WHY_WAITING)
        err = wb_buf_printf(&why->reason, "; the page is in its queue");
    return err;
}

/* ---- asking ------------------------------------------------------------------------------------------------------ */

/* Whether the page or its site was taken down, which the store knows for sure: 1, 0 or an error. */
static int taken_down(const char *dir, struct wb_pageid id, struct wb_slice site)
{
    struct wb_store *store = NULL;
    int err = wb_store_open(dir, WB_STORE_READ, &store);

    if (err == 0)
        err = wb_store_barred(store, id, site);
    wb_store_close(store);
    return err;
}

static int read_versions(struct wb_store *store, struct wb_pageid id, struct wb_why *why)
{
    struct wb_store_timeline timeline;
    int err = wb_store_timeline(store, id, &timeline);

    if (err < 0)
        return err == WB_E_NOTFOUND || err == WB_E_CORRUPT ? 0 : err;
    why->versions = timeline.count, why->captures = timeline.time_count, why->gone_ms = timeline.gone_ms;
    for (size_t i = 0; i < timeline.count; i++)
        if (timeline.versions[i].ceased == 0)
            why->since_ms = timeline.versions[i].time_ms;
    wb_store_timeline_release(&timeline);
    return 0;
}

/* Adds where a stored redirect leads. */
static int tell_target(const struct wb_page *page, struct wb_why *why)
{
    struct wb_url base = WB_URL_INIT, target = WB_URL_INIT;
    struct wb_slice location;
    int err = wb_http_location(page->head, page->url, &base, &target, &location);

    if (err == 0)
        err = wb_buf_printf(&why->reason, ", redirects to %.*s", WB_SLICE_ARG(location));
    wb_url_release(&base);
    wb_url_release(&target);
    return err == WB_E_NOMEM ? err : 0;
}

/* Whether the page is stored: 1 with a verdict, 0, or an error. */
static int stored(const char *dir, struct findings *f, struct wb_why *why)
{
    struct wb_store *store = NULL;
    struct wb_buf mem = WB_BUF_INIT;
    struct wb_page page;
    char when[WB_DATE_TEXT_MAX];
    int err = wb_store_open(dir, WB_STORE_READ, &store);

    if (err == 0 && (err = read_versions(store, f->id, why)) == 0)
        err = wb_store_get(store, f->id, &page, &mem);
    if (err == 0) {
        wb_date_format(page.time_ms, when);
        why->fetched_ms = page.time_ms;
        why->status = page.status;
        err = decide(why, WB_WHY_FETCHED, "stored, last seen at %s, status %u%s", when, page.status,
                     page.truncated ? ", truncated" : "");
        if (err == 0 && wb_http_status_redirects(page.status))
            err = tell_target(&page, why);
        err = err == 0 ? 1 : err;
    }
    wb_buf_release(&mem);
    wb_store_close(store);
    return err == WB_E_NOTFOUND || err == WB_E_CORRUPT || err == WB_E_DOWN ? 0 : err;
}

/* A page of a site that no crawl was told of. */
static int explain_stranger(const char *dir, struct findings *f, struct wb_why *why)
{
    int err = read_everything(dir, f);

    if (err < 0)
        return err;
    if (f->linked)
        return decide(why, WB_WHY_BLOCKED, "outside the crawl's scope; %.*s links there",
                      WB_SLICE_ARG(wb_buf_slice(&f->linked_from)));
    if (f->heard)
        return decide(why, WB_WHY_BLOCKED, "outside the crawl's scope: known, but no crawl was told of its site");
    return decide(why, WB_WHY_UNKNOWN, "no crawl has heard of it or of its site");
}

static int explain(const char *dir, const char *what, struct findings *f, struct wb_why *why_out);

/* A page of an alias is fetched under the name that is crawled: says what is known of it there. */
static int by_alias(const char *dir, const struct wb_site_row *row, const struct findings *f, const struct wb_url *url,
                    struct wb_why *why)
{
    struct findings there = {.dispenser_url = f->dispenser_url, .agent_given = f->agent_given,
                             .aliases = f->aliases + 1};
    struct wb_buf what = WB_BUF_INIT, reason = WB_BUF_INIT;
    struct wb_why other = {0};

    int err = wb_buf_printf(&what, "%.*s://%.*s%.*s", WB_SLICE_ARG(wb_url_scheme(url)), WB_SLICE_ARG(row->alias_of),
                            WB_SLICE_ARG(wb_site_path(url)));
    if (err == 0)
        err = wb_buf_terminate(&what);
    if (err == 0)
        err = explain(dir, what.ptr, &there, &other);
    if (err == 0)
        err = wb_buf_printf(&reason, "%.*s is another name of %.*s; %s: %.*s", WB_SLICE_ARG(row->name),
                            WB_SLICE_ARG(row->alias_of), what.ptr, WB_SLICE_ARG(wb_buf_slice(&other.reason)));
    if (err == 0)
        err = set_text(&other.reason, wb_buf_slice(&reason));
    if (err == 0)
        err = set_text(&other.subject, f->href);
    wb_buf_release(&reason);
    wb_buf_release(&what);
    wb_why_release(err == 0 ? why : &other);
    if (err == 0)
        *why = other;
    return err;
}

/* row: NULL if no crawl was told of the site. */
static int explain_url(const char *dir, const struct wb_site_row *row, struct findings *f, const struct wb_url *url,
                       struct wb_why *why)
{
    int got = taken_down(dir, f->id, f->site);
    if (got != 0)
        return got < 0 ? got : decide(why, WB_WHY_BLOCKED, "taken down: it must not be fetched again");
    got = stored(dir, f, why);
    if (got > 0 && f->heard && f->web.next_due_ms != INT64_MAX)
        why->next_ms = f->web.next_due_ms;
    if (got != 0)
        return got < 0 ? got : 0;
    if (!row)
        return explain_stranger(dir, f, why);
    if (f->tried && f->last.outcome != WB_OUTCOME_LATER)
        return by_outcome(row, f, why);
    got = by_robots(f, f->href, why);
    if (got != 0)
        return got < 0 ? got : 0;
    if (f->tried)
        return by_outcome(row, f, why);
    if (row->state == WB_SITE_ALIAS && row->alias_of.len && f->aliases < ALIASES_MAX)
        return by_alias(dir, row, f, url, why);
    if (f->linked || f->seed || f->hinted)
        return by_queue(row, f, url, why);
    bool nameless = row->state == WB_SITE_WAITING && row->address.len == 0; /* it has no address yet */
    if (row->state == WB_SITE_REFUSED || row->state == WB_SITE_ALIAS || row->state == WB_SITE_UNRESOLVED || nameless)
        return by_site_state(row, f, why);
    if (f->heard)
        return by_webdb(f, why);
    return decide(why, WB_WHY_UNKNOWN, "nothing on %.*s that was read so far leads there", WB_SLICE_ARG(row->name));
}

static int explain_site(const char *dir, const struct wb_site_row *row, struct findings *f, struct wb_slice root,
                        struct wb_why *why)
{
    int got = taken_down(dir, (struct wb_pageid){0, 0}, row ? row->name : f->site);

    if (got != 0)
        return got < 0 ? got : decide(why, WB_WHY_BLOCKED, "taken down: nothing of this site may be fetched again");
    if (!row)
        return decide(why, WB_WHY_UNKNOWN, "no crawl has heard of this site");
    got = by_robots(f, root, why);
    return got != 0 ? (got < 0 ? got : 0) : by_site_state(row, f, why);
}

/* webdb remembers robots.txt when the log that had it is gone. */
static int recall_rules(struct wb_webdb *webdb, struct wb_slice site, struct findings *f)
{
    struct wb_webdb_rules rules;
    int err = f->rules_known ? WB_E_NOTFOUND : wb_webdb_get_rules(webdb, site, &rules);

    if (err == WB_E_NOTFOUND)
        return 0;
    if (err < 0)
        return err;
    f->rules_known = true;
    return set_text(&f->rules, rules.text);
}

static int look_in_webdb(const char *dir, struct wb_slice site, struct findings *f)
{
    struct wb_webdb *webdb = NULL;
    int err = wb_webdb_open(dir, &webdb);

    if (err == 0)
        err = recall_rules(webdb, site, f);
    if (err == 0 && !f->is_site) {
        err = wb_webdb_get_page(webdb, f->href, &f->web);
        f->heard = err == 0;
    }
    wb_webdb_close(webdb);
    return err == WB_E_NOTFOUND || err == WB_E_INVALID ? 0 : err;
}

/* A URL, "host/path", "host" or "host:port". */
static int read_subject(const char *what, struct findings *f, struct wb_url *url, struct wb_buf *key)
{
    f->is_site = !strpbrk(what, "/?#");
    int err = wb_url_parse_typed(wb_slice_str(what), url);
    if (err == 0)
        err = wb_url_key(url, key);
    if (err == 0 && !wb_url_is_http(url))
        err = wb_fail(WB_E_INVALID, "'%s' is neither an http or https URL nor a host", what);
    f->href = wb_url_href(url);
    f->id = wb_pageid_of_key(wb_buf_slice(key));
    f->site = wb_key_site(wb_buf_slice(key));
    return err;
}

/* Answers the question. The caller has filled in what it knows of the findings; they are released here. */
static int explain(const char *dir, const char *what, struct findings *found, struct wb_why *why_out)
{
    struct wb_dispenser *dispenser = NULL;
    struct findings f = *found;
    struct wb_url url = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT, mem = WB_BUF_INIT;
    struct wb_site_row row;
    bool known = false;

    *why_out = (struct wb_why){0};
    f.agent = wb_http_agent_token(wb_slice_str(f.agent_given ? f.agent_given : WB_HTTP_AGENT));
    int err = wb_store_require(dir);
    if (err == 0)
        err = read_subject(what, &f, &url, &key);
    if (err == 0)
        err = wb_dispenser_open(dir, f.dispenser_url, &dispenser);
    if (err == 0)
        err = wb_dispenser_clock(dispenser, &f.lease_now_ms);
    if (err == 0) {
        err = wb_dispenser_get(dispenser, wb_key_site(wb_buf_slice(&key)), &mem, &row);
        if (err == WB_E_NOTFOUND && f.is_site)
            err = wb_dispenser_get_host(dispenser, wb_key_site(wb_buf_slice(&key)), &mem, &row);
        known = err == 0;
        err = err == WB_E_NOTFOUND ? 0 : err;
    }
    struct wb_edit_place trail = known ? wb_site_trail_to_place(row.trail) : WB_EDIT_NOWHERE;
    if (err == 0 && known && row.state == WB_SITE_CLAIMED)
        err = find_trail(dir, row.name, &trail);
    if (err == 0 && known)
        err = read_site(dir, trail, &f);
    if (err == 0)
        err = look_in_webdb(dir, known ? row.name : wb_key_site(wb_buf_slice(&key)), &f);
    if (err == 0)
        err = set_text(&why_out->subject, f.is_site ? (known ? row.name : wb_key_site(wb_buf_slice(&key))) : f.href);
    why_out->is_site = f.is_site;
    if (err == 0)
        err = f.is_site ? explain_site(dir, known ? &row : NULL, &f, f.href, why_out)
                        : explain_url(dir, known ? &row : NULL, &f, &url, why_out);
    WB_CHECK(err < 0 || why_out->reason.len > 0);
    if (err == 0 && known && why_out->verdict == WB_WHY_WAITING)
        err = wb_control_describe(dir, row.name, &why_out->reason);
    findings_release(&f);
    wb_url_release(&url);
    wb_buf_release(&key);
    wb_buf_release(&mem);
    wb_dispenser_close(dispenser);
    return err;
}

int wb_why(const char *dir, const char *dispenser_url, const char *agent, const char *what, struct wb_why *why_out)
{
    struct findings f = {.dispenser_url = dispenser_url, .agent_given = agent};

    return explain(dir, what, &f, why_out);
}

void wb_why_release(struct wb_why *why)
{
    wb_buf_release(&why->subject);
    wb_buf_release(&why->reason);
    wb_buf_release(&why->robots_rule);
    *why = (struct wb_why){0};
}
