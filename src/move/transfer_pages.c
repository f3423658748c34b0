/*
 * transfer_pages.c - brings what waits to the read nodes, in bounded commits. All that concerns one page is in one
 * commit, in this order:
 *
 *   1 removals before which everything is forgotten
 *   2 captures and other removals, in the order of time
 *   3 how far the update nodes have forgotten its past
 *
 * So it does not matter whether a page was brought before: a capture that is there already is known, and a removal
 * that is older than the latest version does nothing.
 */
#include "base/check.h"
#include "base/mem.h"
#include "move/move.h"
#include "os/clock.h"
#include "move/transfer.h"
#include "pagefile/pagefile.h"

#include <stdlib.h>

enum { COMMIT_PAGES = WB_TRANSFER_COMMIT_PAGES, COMMIT_BYTES = 256 << 20, PROGRESS_PAGES = 64 };

/* ---- commits --------------------------------------------------------------------------------------------- */

static int commit(struct wb_transfer *t)
{
    struct wb_store_commit_counts ignored = {0};
    int64_t began_ns = wb_clock_mono_ns();
    int err = wb_store_commit(t->batch->read, &ignored);

    WB_CHECK(t->counts.added + t->uncommitted.added >= t->counts.added);
    t->commit_ns += wb_clock_mono_ns() - began_ns;
    if (err < 0)
        return err;
    t->counts.added += t->uncommitted.added;
    t->counts.replaced += t->uncommitted.replaced;
    t->uncommitted = (struct wb_move_transfer_counts){0};
    t->uncommitted_pages = t->uncommitted_bytes = 0;
    wb_vec_clear(&t->fresh);
    return 0;
}

int wb_transfer_count(struct wb_transfer *t, struct wb_transfer_page *page, uint64_t bytes)
{
    int err = wb_vec_push(&t->fresh, (uint32_t)(page - t->pages.items));

    WB_CHECK(t->batch->magic == WB_BATCHED_MAGIC);
    if (err < 0)
        return err;
    t->pages_done++;
    t->bytes_done += bytes;
    t->uncommitted_pages++;
    t->uncommitted_bytes += bytes;
    if (t->uncommitted_pages >= COMMIT_PAGES || t->uncommitted_bytes >= COMMIT_BYTES)
        err = commit(t);
    return err < 0 || t->pages_done % PROGRESS_PAGES ? err : wb_transfer_progress(t);
}

/* ---- pages with one capture and no events ------------------------------------------------------------------ */

int wb_transfer_absorb(struct wb_transfer *t, int err)
{
    WB_CHECK(err <= 0);
    if (err != WB_E_CORRUPT)
        return err;
    if (t->damage.code == 0)
        wb_error_save(err, &t->damage);
    return 0;
}

int wb_transfer_bring_plain(struct wb_transfer *t, struct wb_transfer_page *waiting, const struct wb_page *page)
{
    enum wb_store_outcome outcome;
    int err = wb_transfer_refused(t, page->id, true, &waiting->out);

    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    if (err < 0 || waiting->out)
        return err;
    err = wb_store_put(t->batch->read, page, &outcome);
    if (err < 0)
        return err;
    waiting->brought = true;
    t->uncommitted.added += outcome == WB_STORE_PUT_NEW;
    t->uncommitted.replaced += outcome == WB_STORE_PUT_VERSION;
    return wb_transfer_count(t, waiting, page->body.len);
}

/* ---- the others ------------------------------------------------------------------------------------------------ */

/* Everything that waits for one page. */
struct involved_page {
    struct wb_transfer *t;
    struct wb_pageid id;
    struct wb_batched_events events;
    struct wb_buf sites; /* their names: pointed to by offset until all are there */
    struct wb_store_timeline timeline;
    struct wb_buf memory;       /* of the version that is being brought ... */
    struct wb_buf event_memory; /* ... and of one that an event before it needs */
    uint64_t bytes;
    bool changed;    /* since the transfer began */
    bool any_order;  /* nothing but versions: those that can be read may come first, and the others with a later one */
    bool incomplete; /* some of them could not be read */
};

static int gather_event(void *context, const struct wb_catalog_event *event)
{
    struct involved_page *p = context;
    struct wb_catalog_event copy = *event;

    WB_CHECK(wb_pageid_equal(event->id, p->id));
    if (event->kind == WB_CATALOG_EVENT_NAME)
        return 0;
    copy.site.ptr = NULL;
    int err = wb_buf_append_slice(&p->sites, event->site);
    return err < 0 ? err : wb_vec_push(&p->events, copy);
}

static int bring_removal(struct involved_page *p, const struct wb_catalog_event *event)
{
    struct wb_store *read = p->t->batch->read;
    int64_t latest_ms;
    int err = wb_store_time(read, p->id, &latest_ms);

    WB_CHECK(event->kind == WB_CATALOG_EVENT_GONE || event->kind == WB_CATALOG_EVENT_FORGOTTEN);
    if (err == 0 && latest_ms <= event->time_ms)
        err = wb_store_remove(read, p->id, event->site, event->time_ms, false);
    return err == WB_E_NOTFOUND ? 0 : err;
}

/* A content was seen again. If it is one that waits, it may come later than this: then its bytes are put. */
static int bring_capture(struct involved_page *p, const struct wb_catalog_event *event)
{
    struct wb_pageview *view;
    struct wb_page page;
    int err = wb_repo_view(p->t->to, p->id, &view);

    WB_CHECK(event->content != 0);
    if (err < 0)
        return err;
    if (wb_history_find(&view->history, event->content) == NULL)
        for (size_t i = 0; i < p->timeline.count; i++) {
            int got = wb_store_get_version(p->t->batch->update, p->id, &p->timeline.versions[i], &page,
                                           &p->event_memory);
            if (got < 0)
                return got;
            if (got == 0 || wb_history_content(&page, p->t->to->content_seed) != event->content)
                continue;
            page.time_ms = event->time_ms;
            return wb_store_put(p->t->batch->read, &page, NULL);
        }
    return wb_repo_put_content(p->t->to, event);
}

/* The events before a page of this time. */
static int bring_events(struct involved_page *p, size_t *at_inout, int64_t before_ms)
{
    int err = 0;

    WB_CHECK(*at_inout <= p->events.count);
    for (; err == 0 && *at_inout < p->events.count; (*at_inout)++) {
        const struct wb_catalog_event *event = &p->events.items[*at_inout];
        if (!wb_batched_is_before(event, before_ms))
            break;
        if (event->kind == WB_CATALOG_EVENT_GONE)
            err = bring_removal(p, event);
        else if (wb_catalog_event_is_capture(event->kind))
            err = bring_capture(p, event);
    }
    return err;
}

/* The captures of a version, and the events before each. */
static int bring_version(struct involved_page *p, const struct wb_store_version *version, size_t *event_inout)
{
    struct wb_page page;
    int got = wb_store_get_version(p->t->batch->update, p->id, version, &page, &p->memory), err = 0;

    WB_CHECK(version->captures > 0);
    p->changed = p->changed || got == 0; /* then it stays on the update nodes, and the next transfer brings it */
    if (got == WB_E_DOWN && p->any_order) {
        p->incomplete = true;
        return 0;
    }
    if (got <= 0)
        return got;
    p->bytes += page.body.len;
    for (size_t i = 0; i < version->captures && err == 0; i++) {
        page.time_ms = p->timeline.times[version->first + i];
        err = bring_events(p, event_inout, page.time_ms);
        if (err == 0)
            err = wb_store_put(p->t->batch->read, &page, NULL);
    }
    return err;
}

/* How far the update nodes have forgotten the past of the page. */
static int bring_floor(struct involved_page *p)
{
    struct wb_pageview view = {0};
    int err = wb_pageview_load(&p->t->waiting, true, p->id, &view);

    WB_CHECK(p->t->waiting.kind == WB_CATALOG_TXN_HELD);
    int64_t floor_ms = view.history.floor_ms;
    if (err == 0 && floor_ms != INT64_MIN)
        err = wb_repo_put_forgotten(p->t->to, p->id, floor_ms, WB_BATCHED_FORGOTTEN);
    for (size_t i = 0; i < view.history.forgotten.count && err == 0; i++)
        err = wb_repo_put_forgotten(p->t->to, p->id, floor_ms, view.history.forgotten.items[i]);
    wb_pageview_release(&view);
    return err;
}

static int bring_all(struct involved_page *p)
{
    size_t at = 0;
    int err = 0;

    WB_CHECK(p->t->waiting.kind == WB_CATALOG_TXN_HELD);
    for (size_t i = 0; i < p->events.count && err == 0; i++)
        if (p->events.items[i].kind == WB_CATALOG_EVENT_FORGOTTEN)
            err = bring_removal(p, &p->events.items[i]);
    for (size_t i = 0; i < p->timeline.count && err == 0; i++)
        err = bring_version(p, &p->timeline.versions[i], &at);
    if (err == 0)
        err = bring_events(p, &at, INT64_MAX);
    return err < 0 ? err : bring_floor(p);
}

/* What readers see of the page: the hash of its content, 0 if there is none. */
static int seen_content(struct wb_transfer *t, struct wb_pageid id, uint64_t *content_out)
{
    struct wb_pageview *view;
    int err = wb_repo_view(t->to, id, &view);

    WB_CHECK(content_out != NULL);
    if (err < 0)
        return err;
    const struct wb_history_version *latest = wb_history_latest(&view->history);
    *content_out = latest ? latest->content : 0;
    return 0;
}

/* Everything that waits for the page. */
static int gather(struct involved_page *p, bool versions)
{
    struct wb_transfer *t = p->t;
    int err = wb_catalog_event_of(&t->waiting, p->id, gather_event, p);

    WB_CHECK(p->events.count == 0 || p->sites.len >= p->events.items[0].site.len);
    for (size_t i = 0, at = 0; i < p->events.count; i++) {
        p->events.items[i].site.ptr = wb_buf_slice(&p->sites).ptr + at;
        at += p->events.items[i].site.len;
    }
    if (err == 0 && versions)
        err = wb_store_timeline(t->batch->update, p->id, &p->timeline);
    return err == WB_E_NOTFOUND ? 0 : err; /* taken down meanwhile */
}

/*
 * Whether the versions of a page may be brought in any order. It matters if there are events, because a removal that is
 * older than the latest version does nothing; if something was forgotten; and if readers know the page as gone, because
 * only the first version that comes then is kept apart from those before.
 */
static int is_free_to_part(struct involved_page *p, const struct wb_pageview *waiting, bool *free_out)
{
    struct wb_pageview *view;
    int err = wb_repo_view(p->t->to, p->id, &view);

    WB_CHECK(wb_pageid_equal(waiting->id, p->id));
    *free_out = err == 0 && p->events.count == 0 && waiting->history.floor_ms == INT64_MIN &&
                (view->history.versions.count == 0 || wb_history_latest(&view->history));
    return err;
}

/*
 * Whether the page can be brought now: *out is 0, or the number of the node that it waits for. Then those of its
 * versions that can be read are brought if the order does not matter, and otherwise none.
 */
static int find_obstacle(struct involved_page *p, bool versions, uint8_t *out)
{
    struct wb_pageview view = {0};
    int err = wb_transfer_refused(p->t, p->id, versions, out);

    WB_CHECK(p->t->waiting.kind == WB_CATALOG_TXN_HELD);
    if (err < 0 || *out || p->t->without.count == 0)
        return err;
    err = wb_pageview_load(&p->t->waiting, true, p->id, &view);
    if (err == 0)
        err = wb_transfer_history_out(p->t, &view, out);
    if (err == 0 && *out)
        err = is_free_to_part(p, &view, &p->any_order);
    wb_pageview_release(&view);
    return err;
}

/* Brings the page, and counts what readers see of that. */
static int bring_gathered(struct involved_page *p, struct wb_transfer_page *page)
{
    struct wb_transfer *t = p->t;
    uint64_t before = 0, after = 0;
    int err = seen_content(t, p->id, &before);

    WB_CHECK(!page->brought);
    if (err == 0)
        err = bring_all(p);
    if (err == WB_E_DOWN) /* half of it would be something that was never there */
        return wb_writer_remember_failure(&t->to->writer->files, err);
    page->brought = err == 0 && !p->changed && !p->incomplete;
    err = wb_transfer_absorb(t, err);
    if (err == 0)
        err = seen_content(t, p->id, &after);
    t->uncommitted.added += err == 0 && before == 0 && after != 0;
    t->uncommitted.replaced += err == 0 && before != 0 && after != 0 && before != after;
    return err < 0 ? err : wb_transfer_count(t, page, p->bytes);
}

static int bring_involved(struct wb_transfer *t, struct wb_transfer_page *page)
{
    struct involved_page p = {.t = t, .id = page->id};
    int err = gather(&p, page->versions);

    WB_CHECK(page->involved);
    t->involved++;
    if (err == 0)
        err = find_obstacle(&p, page->versions, &page->out);
    if (err == 0 && (page->out == 0 || p.any_order))
        err = bring_gathered(&p, page);
    wb_store_timeline_release(&p.timeline);
    wb_vec_release(&p.events);
    wb_buf_release(&p.sites);
    wb_buf_release(&p.memory);
    wb_buf_release(&p.event_memory);
    return err;
}

/* ---- revisits that wait for their original ----------------------------------------------------------------------- */

struct waiting_revisits WB_VEC_OF(struct wb_store_revisit);

static int list_revisit(void *context, const struct wb_store_revisit *revisit, uint64_t site)
{
    WB_CHECK(context != NULL);
    (void)site;
    return wb_vec_push((struct waiting_revisits *)context, *revisit);
}

/* Looks for the name of its site, and for its URL. */
struct revisit_names {
    struct wb_store_revisit *revisit;
    struct wb_buf site, url;
};

static int match_name(void *context, const struct wb_catalog_event *event)
{
    struct revisit_names *n = context;

    WB_CHECK(wb_pageid_equal(event->id, n->revisit->id));
    if (event->kind != WB_CATALOG_EVENT_NAME || event->time_ms != n->revisit->time_ms)
        return 0;
    wb_buf_clear(&n->site);
    return wb_buf_append_slice(&n->site, event->site);
}

static int match_url(void *context, const struct wb_store_revisit *revisit, uint64_t site)
{
    struct revisit_names *n = context;

    WB_CHECK(n->revisit != NULL);
    (void)site;
    if (!wb_pageid_equal(revisit->id, n->revisit->id) || revisit->time_ms != n->revisit->time_ms)
        return 0;
    wb_buf_clear(&n->url);
    return wb_buf_append_slice(&n->url, revisit->url);
}

/* Stores it, or keeps it on the update nodes if the node that it needs cannot be used. */
static int put_waiting_revisit(struct wb_transfer *t, const struct wb_store_revisit *revisit)
{
    struct wb_transfer_kept kept = {.id = revisit->id, .time_ms = revisit->time_ms};
    int err = wb_transfer_refused(t, revisit->id, false, &kept.out);

    WB_CHECK(t->batch->magic == WB_BATCHED_MAGIC);
    if (err == 0 && kept.out)
        return wb_vec_push(&t->kept, kept);
    return err < 0 ? err : wb_store_put_revisit(t->batch->read, revisit, NULL);
}

static int bring_waiting_revisit(struct wb_transfer *t, struct wb_store_revisit *revisit)
{
    struct revisit_names names = {.revisit = revisit};
    int err = wb_catalog_event_of(&t->waiting, revisit->id, match_name, &names);

    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    if (err == 0 && !wb_pageid_equal(revisit->id, revisit->original))
        err = wb_catalog_revisit_waiting(&t->waiting, revisit->original, match_url, &names);
    revisit->site = wb_buf_slice(&names.site);
    revisit->url = wb_buf_slice(&names.url);
    if (err == 0)
        err = put_waiting_revisit(t, revisit);
    wb_buf_release(&names.site);
    wb_buf_release(&names.url);
    return err;
}

static int bring_revisits(struct wb_transfer *t)
{
    struct waiting_revisits list = {0};
    int err = wb_catalog_revisit_each(&t->waiting, list_revisit, &list);

    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    wb_vec_clear(&t->kept);
    for (size_t i = 0; i < list.count && err == 0; i++) {
        err = bring_waiting_revisit(t, &list.items[i]);
        if (err == 0 && i % COMMIT_PAGES == COMMIT_PAGES - 1)
            err = commit(t);
    }
    wb_vec_release(&list);
    return err;
}

int wb_transfer_bring(struct wb_transfer *t)
{
    bool plain = false;
    int err = 0;

    WB_CHECK(t->waiting.kind == WB_CATALOG_TXN_HELD);
    for (size_t i = 0; i < t->pages.count && !plain; i++)
        plain = !t->pages.items[i].involved;
    if (plain)
        err = wb_transfer_bring_blocks(t);
    for (size_t i = 0; i < t->pages.count && err == 0; i++)
        if (t->pages.items[i].involved && !t->pages.items[i].brought)
            err = bring_involved(t, &t->pages.items[i]);
    if (err == 0) /* after the pages, among which their originals may be */
        err = commit(t);
    if (err == 0 && t->revisits)
        err = bring_revisits(t);
    return err < 0 ? err : commit(t);
}
