/*
 * recover.c - puts right what processes that died left behind, in an order in which dying again costs nothing:
 *
 *   1 journals   the last place of each site goes to the dispenser
 *   2 spools     pages that were fetched and not committed go to the store, their lines to those that may be told
 *   3 leases     sites of the dead go back, also of those whose spool was lost with the power
 */
#include "crawl/recover.h"
#include "base/error.h"
#include "base/mem.h"
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

/* ---- journals ------------------------------------------------------------------------------------ */

/* The name of the site that a chain belongs to stands in the record that begins its visit. */
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
    if (err == 0 && name.len) {
        struct wb_site_report report = {.id = row.id, .state = WB_SITE_CLAIMED, .next_ms = row.next_ms, .attempts = row.attempts,
                                        .reason = row.reason, .alias_of = row.alias_of, .probe = row.probe, .home = wb_slice_str(r->home),
                                        .visit = row.visit, .trail = wb_site_trail_from_place(place), .trail_ms = last->time_ms, .seeds_taken = row.seeds_taken, .pages = row.pages};
        err = wb_dispenser_report(r->dispenser, row.owner, &report, 1);
    }
    wb_buf_release(&name);
    wb_buf_release(&mem);
    /* A chain that cannot be read, or of a site that nobody knows, is no reason not to crawl. */
    return err == WB_E_NOTFOUND || err == WB_E_CORRUPT ? 0 : err;
}

/* ---- spools --------------------------------------------------------------------------------------- */

/* Lines of pages that are durable now. The process that holds the spool may append; a round that was released before its process died is left out. */
static int release_lines(struct recovery *r, const struct wb_spool_item *end)
{
    struct wb_lines *lines = NULL;
    int err = r->lines.len ? wb_lines_open(r->dir, end->owner, false, &lines) : 0;

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
        /* Nothing is told of a page that was taken down meanwhile. */
        return err < 0 || put == WB_STORE_PUT_BARRED ? err : wb_buf_append_slice(&r->lines, item->line);
    }
    r->found = true;
    if (r->store)
        err = wb_store_commit(r->store, &counts);
    if (err == 0)
        err = release_lines(r, item);
    /* It may have died a moment ago, while we looked at journals: its sites must not go back without their history. */
    if (err == 0)
        err = wb_journal_recover(r->dir, move_trail, r);
    return err < 0 ? err : wb_dispenser_release(r->dispenser, wb_slice_str(item->owner));
}

/* ---- leases ------------------------------------------------------------------------------------------- */

/* A process of this repository has a spool from before its first lease until after its last: one without is dead, and its spool was lost. */
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

/* ---- finished sites --------------------------------------------------------------------------------------- */

enum {
    LAST_MS = 10 * 60 * 1000, /* what was finished before is on disk for long */
    STEPS_MAX = 64,           /* records back to the last page of a visit */
};

struct comparison {
    const char *home;
    struct wb_journal_reader *reader;
    struct wb_store *store;
    int64_t newest_ms;
    struct wb_buf lost; /* ids of sites */
};

static int find_newest(void *context, const struct wb_site_row *row)
{
    struct comparison *c = context;

    if (row->trail_ms > c->newest_ms)
        c->newest_ms = row->trail_ms;
    return 0;
}

/* 1 where the store has the page of a record, or need not have it. */
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
    return err == WB_E_NOTFOUND ? 0 : err == 0 ? time_ms >= edit->time_ms : err == WB_E_NOMEM || err == WB_E_IO ? err : 1;
}

/* The last page that a finished visit stored. Commits are in order: where the store has that one, it has all before. */
static int look_at_site(void *context, const struct wb_site_row *row)
{
    struct comparison *c = context;
    struct wb_edit_place at = wb_site_trail_to_place(row->trail);
    struct wb_edit edit;
    int has = 1;

    if (row->state != WB_SITE_DONE || !wb_slice_equal(row->home, wb_slice_str(c->home)) || row->trail_ms < c->newest_ms - LAST_MS)
        return 0;
    for (unsigned i = 0; at.log && i < STEPS_MAX; i++, at = edit.prev) {
        if (wb_journal_reader_get(c->reader, at, &edit) < 0 || edit.kind == WB_EDIT_VISIT)
            break; /* webdb may have it, or verify tells of damage */
        if (edit.kind != WB_EDIT_PAGE || edit.page.outcome != WB_OUTCOME_STORED)
            continue;
        has = has_page(c, &edit);
        break;
    }
    return has == 0 ? wb_buf_append(&c->lost, &row->id, sizeof row->id) : has < 0 ? has : 0;
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
    for (size_t at = 0; err == 0 && at < c.lost.len; at += sizeof(int64_t)) {
        int64_t id;
        memcpy(&id, c.lost.ptr + at, sizeof id);
        err = wb_dispenser_again(r->dispenser, id);
    }
    wb_buf_release(&c.lost);
    wb_journal_reader_close(c.reader);
    wb_store_close(c.store);
    return err;
}

int wb_crawl_recover(const char *dir, const char *home, struct wb_dispenser *dispenser, bool first)
{
    struct recovery r = {.dir = dir, .home = home, .dispenser = dispenser};
    uint64_t pages;

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
