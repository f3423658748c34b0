/*
 * recover.c - what crawls that died or stopped left behind: puts it right, and says which logs they still need.
 *
 * Recovery works in an order in which dying again costs nothing:
 *
 *   1 journals   the place of each site's last record goes to the dispenser
 *   2 spools     pages that were fetched and not committed go to the store, their lines to the file of lines
 *   3 leases     the sites of dead processes become claimable again, even if power loss took their spool
 *
 * It never continues a visit itself; the next worker that claims the site does (restore.c).
 */
#include "crawl/recover.h"
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/vec.h"
#include "crawl/crawl.h"
#include "crawl/crawlsite.h"
#include "crawl/lines.h"
#include "crawl/spool.h"
#include "store/store.h"

#include <stdio.h>

struct recovery {
    const char *dir, *home;
    struct wb_dispenser *dispenser;
    struct wb_journal_reader *reader;
    struct wb_store *store; /* opened when the first page comes */
    struct wb_buf lines;    /* of the spool that is being read */
    bool found;             /* a process had died */
};

/* ---- 1 journals -------------------------------------------------------------------------------------------------- */

/* The name of the site that a chain belongs to: it is in the record that begins the visit. */
static int site_name(struct recovery *r, struct wb_edit_place place, struct wb_buf *name_out)
{
    struct wb_edit_place *places = NULL;
    struct wb_edit edit;
    size_t count = 0;

    wb_buf_clear(name_out);
    int err = wb_journal_reader_chain(r->reader, place, false, &places, &count);
    if (err == 0 && count)
        err = wb_journal_reader_get(r->reader, places[0], &edit);
    if (err == 0 && count && edit.kind == WB_EDIT_VISIT)
        err = wb_buf_append_slice(name_out, edit.text);
    wb_free(places);
    return err;
}

static int move_trail(void *context, const struct wb_edit *last, struct wb_edit_place place)
{
    struct recovery *r = context;
    struct wb_buf name = WB_BUF_INIT, mem = WB_BUF_INIT;
    struct wb_site_row row;

    int err = site_name(r, place, &name);
    if (err == 0 && name.len)
        err = wb_dispenser_get(r->dispenser, wb_buf_slice(&name), &mem, &row);
    /* A site that went to another repository meanwhile has its history there. */
    bool ours = err == 0 && name.len && (row.home.len == 0 || wb_slice_equal(row.home, wb_slice_str(r->home)));
    if (ours) {
        struct wb_site_report report = {.id = row.id, .state = WB_SITE_CLAIMED, .next_ms = row.next_ms,
                                        .attempts = row.attempts, .reason = row.reason, .alias_of = row.alias_of,
                                        .probe = row.probe, .home = wb_slice_str(r->home), .visit = row.visit,
                                        .trail = wb_site_trail_from_place(place), .trail_ms = last->time_ms,
                                        .seeds_taken = row.seeds_taken, .pages = row.pages};
        err = wb_dispenser_report(r->dispenser, row.owner, &report, 1);
    }
    wb_buf_release(&name);
    wb_buf_release(&mem);
    /* The crawl goes on without the history of a site if its chain cannot be read or nobody knows the site. */
    return err == WB_E_NOTFOUND || err == WB_E_CORRUPT ? 0 : err;
}

/* ---- 2 spools ---------------------------------------------------------------------------------------------------- */

/*
 * Releases the lines of pages that are durable now. We may append to the file because we hold the spool of that name. A
 * round that was released before its process died is not appended again.
 */
static int release_lines(struct recovery *r, const struct wb_spool_item *end)
{
    struct wb_lines *lines = NULL;
    int err = r->lines.len ? wb_lines_open(r->dir, end->owner, WB_LINES_HELPER, &lines) : 0;

    if (err == 0 && lines)
        err = wb_lines_append(lines, wb_buf_slice(&r->lines), end->round);
    wb_lines_close(lines);
    if (err == 0)
        wb_buf_clear(&r->lines);
    return err;
}

static int take_item(void *context, const struct wb_spool_item *item)
{
    struct recovery *r = context;
    struct wb_store_commit_counts counts = {0};
    enum wb_store_outcome put = WB_STORE_PUT_NEW;
    int err = 0;

    if (!item->end) {
        if (item->page && !r->store)
            err = wb_store_open(r->dir, WB_STORE_WRITE, &r->store);
        if (err == 0 && item->page)
            err = wb_store_put(r->store, item->page, &put);
        if (err == WB_E_DOWN) /* update notices that the page is not stored, and it is asked for again */
            return 0;
        /* There is no line for a page that was taken down meanwhile. */
        return err < 0 || put == WB_STORE_PUT_BARRED ? err : wb_buf_append_slice(&r->lines, item->line);
    }
    r->found = true;
    if (r->store)
        err = wb_store_commit(r->store, &counts);
    if (err == 0)
        err = release_lines(r, item);
    /* The process may have died only after we looked at the journals. Look again, so that its sites do not become
       claimable without their history. */
    if (err == 0)
        err = wb_journal_recover(r->dir, move_trail, r);
    return err < 0 ? err : wb_dispenser_release(r->dispenser, wb_slice_str(item->owner));
}

/* ---- 3 leases ---------------------------------------------------------------------------------------------------- */

/* A process has a spool from before its first lease until after its last. One without a spool is dead, and lost it. */
static int release_dead(void *context, struct wb_slice owner)
{
    struct recovery *r = context;

    if (wb_spool_exists(r->dir, owner.ptr))
        return 0;
    r->found = true;
    return wb_dispenser_release(r->dispenser, owner);
}

static int release_lost(struct recovery *r)
{
    char prefix[64];

    snprintf(prefix, sizeof prefix, "%s-", r->home);
    return wb_dispenser_owners(r->dispenser, wb_slice_str(prefix), release_dead, r);
}

/* ---- finished sites after power loss ----------------------------------------------------------------------------- */

enum {
    LAST_MS = 10 * WB_MINUTE_MS, /* whatever was finished earlier has been on disk for long */
    STEPS_MAX = 64,              /* records to go back to the last page of a visit */
};

/* Compares finished sites with the store. */
struct comparison {
    const char *home;
    struct wb_journal_reader *reader;
    struct wb_store *store;
    int64_t newest_ms;     /* time of the newest record of all sites */
    WB_VEC(int64_t) lost;  /* ids of sites whose last page is missing */
};

static int find_newest(void *context, const struct wb_site_row *row)
{
    struct comparison *c = context;

    if (row->trail_ms > c->newest_ms)
        c->newest_ms = row->trail_ms;
    return 0;
}

/* Whether the store has the page of a record, or need not have it: 1, 0 or an error. */
static int has_page(struct comparison *c, const struct wb_edit *edit)
{
    struct wb_url url = WB_URL_INIT;
    struct wb_buf key = WB_BUF_INIT;
    int64_t time_ms = 0;

    int err = wb_url_parse(edit->page.url, NULL, &url);
    if (err == 0)
        err = wb_url_key(&url, &key);
    if (err == 0)
        err = wb_store_time(c->store, wb_pageid_of_key(wb_buf_slice(&key)), &time_ms);
    wb_url_release(&url);
    wb_buf_release(&key);
    if (err == 0)
        return time_ms >= edit->time_ms;
    if (err == WB_E_NOTFOUND)
        return 0;
    return err == WB_E_NOMEM || err == WB_E_IO ? err : 1;
}

/*
 * Looks up the last page that a finished visit stored. Commits are in order, so if the store has that page, it has all
 * pages before it.
 */
static int look_at_site(void *context, const struct wb_site_row *row)
{
    struct comparison *c = context;
    struct wb_edit_place at = wb_site_trail_to_place(row->trail);
    struct wb_edit edit;
    int has = 1;

    if (row->state != WB_SITE_DONE || row->trail_ms < c->newest_ms - LAST_MS ||
        !wb_slice_equal(row->home, wb_slice_str(c->home)))
        return 0;
    for (unsigned i = 0; at.log && i < STEPS_MAX; i++, at = edit.prev) {
        if (wb_journal_reader_get(c->reader, at, &edit) < 0 || edit.kind == WB_EDIT_VISIT)
            break; /* webdb may have the page; verify reports damage */
        if (edit.kind != WB_EDIT_PAGE || edit.page.outcome != WB_OUTCOME_STORED)
            continue;
        has = has_page(c, &edit);
        break;
    }
    return has == 0 ? wb_vec_push(&c->lost, row->id) : has < 0 ? has : 0;
}

static int compare_finished(const struct recovery *r)
{
    struct comparison c = {.home = r->home};

    int err = wb_journal_reader_open(r->dir, &c.reader);
    if (err == 0)
        err = wb_store_open(r->dir, WB_STORE_READ, &c.store);
    if (err == 0)
        err = wb_dispenser_each(r->dispenser, 0, find_newest, &c);
    if (err == 0)
        err = wb_dispenser_each(r->dispenser, 0, look_at_site, &c);
    for (size_t i = 0; err == 0 && i < c.lost.count; i++)
        err = wb_dispenser_resume(r->dispenser, c.lost.items[i]);
    wb_vec_release(&c.lost);
    wb_journal_reader_close(c.reader);
    wb_store_close(c.store);
    return err;
}

int wb_recover(const char *dir, const char *home, struct wb_dispenser *dispenser, bool first)
{
    struct recovery r = {.dir = dir, .home = home, .dispenser = dispenser};
    uint64_t pages;

    WB_CHECK(dispenser && home[0]);
    int err = wb_journal_reader_open(dir, &r.reader);
    if (err == 0)
        err = wb_journal_recover(dir, move_trail, &r);
    if (err == 0)
        err = wb_spool_recover(dir, take_item, &r, &pages);
    if (err == 0)
        err = release_lost(&r);
    if (err == 0 && first && r.found)
        err = compare_finished(&r);
    wb_journal_reader_close(r.reader);
    wb_store_close(r.store);
    wb_buf_release(&r.lines);
    return err;
}

/* ---- logs that unfinished visits need ---------------------------------------------------------------------------- */

/*
 * A visit is restored from its own chain, back to its beginning, and from the chain of the visit before. Therefore:
 *   - an unfinished visit needs the logs of both;
 *   - a finished one needs none, because webdb has what it says; but while its run is under way, a link may open it
 *     again, so it counts as unfinished;
 *   - a visit that a fetch list left undone needs none once there is a newer list: nobody continues it.
 * Logs that are being written are left alone by those that remove logs, and a worker tells the dispenser where the
 * records of its sites are before it has written more than two logs.
 */
struct log_needs {
    struct wb_dispenser *dispenser;
    struct wb_journal_reader *reader;
    const char *home;
    WB_VEC(uint32_t) logs; /* sorted, each once */
    int64_t list;          /* the newest run of a fetch list; 0: none is unfinished */
    int64_t run;           /* the run that is_under_way() last asked about, and its answer: */
    bool run_open;
};

/* Adds a number in its place, unless it is there. */
static int need_log(struct log_needs *n, uint32_t log)
{
    size_t low = 0, high = n->logs.count;

    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (n->logs.items[middle] < log)
            low = middle + 1;
        else
            high = middle;
    }
    if (low < n->logs.count && n->logs.items[low] == log)
        return 0;
    int err = wb_vec_push(&n->logs, log);
    if (err < 0)
        return err;
    uint32_t *at = n->logs.items + low;
    memmove(at + 1, at, (n->logs.count - 1 - low) * sizeof *at);
    *at = log;
    WB_CHECK((low == 0 || at[-1] < log) && (low + 1 == n->logs.count || at[1] > log)); /* sorted, each once */
    return 0;
}

/*
 * Adds the logs of the visit whose chain ends at `last`. *before_out: the last record of the visit before it, and
 * *number_out its own number. A chain that is damaged or gone needs no logs: it cannot be continued.
 */
static int need_visit(struct log_needs *n, struct wb_edit_place last, struct wb_edit_place *before_out,
                      uint32_t *number_out)
{
    struct wb_edit_place *places = NULL;
    struct wb_edit edit;
    uint32_t log = 0;
    size_t count = 0;

    *before_out = WB_EDIT_NOWHERE;
    *number_out = 0;
    int err = last.log ? wb_journal_reader_chain(n->reader, last, false, &places, &count) : 0;
    if (err == 0 && count) {
        err = wb_journal_reader_get(n->reader, places[0], &edit);
        if (err == 0 && edit.kind == WB_EDIT_VISIT) {
            *before_out = edit.prev;
            *number_out = edit.count;
        }
    }
    for (size_t i = 0; err == 0 && i < count; i++)
        if (places[i].log != log) {
            log = places[i].log;
            err = need_log(n, log);
        }
    wb_free(places);
    return err == WB_E_NOTFOUND || err == WB_E_CORRUPT ? 0 : err;
}

static int is_under_way(struct log_needs *n, int64_t run, bool *open_out)
{
    struct wb_dispenser_stat stat;
    int err = 0;

    if (run != n->run) {
        err = wb_dispenser_stat(n->dispenser, run, &stat);
        n->run = run;
        n->run_open = err == 0 && stat.unresolved + stat.ready + stat.claimed > 0;
    }
    *open_out = n->run_open;
    return err;
}

static int need_site(void *context, const struct wb_site_row *row)
{
    struct log_needs *n = context;
    struct wb_edit_place before;
    uint32_t visit, older;
    bool goes_on = true;
    int err = 0;

    if (!row->trail.log || !wb_slice_equal(row->home, wb_slice_str(n->home)) || row->run == 0)
        return 0;
    enum wb_site_state state = row->state == WB_SITE_CLAIMED ? row->before : row->state;
    bool superseded = row->listed && row->run < n->list && row->state != WB_SITE_CLAIMED;
    if (state == WB_SITE_ALIAS || state == WB_SITE_REFUSED || superseded)
        return 0;
    if (state == WB_SITE_DONE)
        err = is_under_way(n, row->run, &goes_on);
    if (err < 0 || !goes_on)
        return err;
    err = need_visit(n, wb_site_trail_to_place(row->trail), &before, &visit);
    /* A list that wants a newer visit reads nothing from before this one. */
    if (err == 0 && row->listed <= visit)
        err = need_visit(n, before, &before, &older);
    return err;
}

int wb_crawl_logs(const char *dir, const char *dispenser, struct wb_journal_needs *needs_out)
{
    struct log_needs n = {0};
    char home[WB_STORE_ID_HEX + 1];

    *needs_out = WB_JOURNAL_NEEDS_INIT;
    int err = wb_store_id(dir, home);
    n.home = home;
    if (err == 0)
        err = wb_dispenser_open(dir, dispenser, &n.dispenser);
    /* The dispenser does not know yet where the last records of dead workers are. */
    if (err == 0)
        err = wb_recover(dir, home, n.dispenser, true);
    if (err == 0)
        err = wb_journal_reader_open(dir, &n.reader);
    if (err == 0)
        err = wb_dispenser_newest_list(n.dispenser, &n.list);
    if (err == 0)
        err = wb_dispenser_each(n.dispenser, 0, need_site, &n);
    wb_journal_reader_close(n.reader);
    wb_dispenser_close(n.dispenser);
    if (err < 0)
        wb_vec_release(&n.logs);
    needs_out->logs = n.logs.items;
    needs_out->count = n.logs.count;
    return err;
}
