/*
 * batched_outlook.c - what a page will be after the next transfer: its past on the read nodes, then what waits for it
 * on the update nodes, in the order in which a transfer does it (transfer_pages.c):
 *
 *   1 removals before which everything is forgotten
 *   2 captures and other removals, in the order of time
 *
 * It is computed in memory and never stored.
 */
#include "base/check.h"
#include "store/batch/batched.h"

#include <stdlib.h>

void wb_batched_outlook_release(struct wb_batched_outlook *outlook)
{
    wb_history_release(&outlook->history);
    wb_vec_release(&outlook->events);
}

static struct wb_catalog_place place_of(uint32_t segment, uint64_t content)
{
    WB_CHECK(segment == WB_BATCHED_READ_SEGMENT || segment == WB_BATCHED_UPDATE_SEGMENT);
    return (struct wb_catalog_place){.segment = segment, .logical = content};
}

/* Begins with what is on the read nodes. */
static int take_read(struct wb_batched *batch, const struct wb_history *from)
{
    struct wb_history *to = &batch->outlook.history;
    int err = wb_history_copy(from, to);

    for (size_t i = 0; i < to->versions.count && err == 0; i++)
        if (to->versions.items[i].place.segment)
            to->versions.items[i].place = place_of(WB_BATCHED_READ_SEGMENT, to->versions.items[i].content);
    WB_CHECK(err < 0 || to->ghosts <= to->versions.count);
    return err;
}

static int add(struct wb_batched_outlook *outlook, const struct wb_batched_capture *from,
               enum wb_store_outcome *outcome_out)
{
    const struct wb_history_version *known = from->content ? wb_history_find(&outlook->history, from->content) : NULL;
    struct wb_history_version bytes = {
        .content = from->content, .body_bytes = from->body_bytes, .status = from->status};
    struct wb_history_capture capture = {.time_ms = from->time_ms,
                                         .content = from->content,
                                         .replaces = from->replaces,
                                         .forgotten = from->forgotten,
                                         .epoch = outlook->epoch,
                                         .rule = &outlook->rule,
                                         .bytes = &bytes};

    WB_CHECK(outlook->epoch > 0);
    if (known)
        bytes = *known;
    else if (from->segment)
        bytes.place = place_of(from->segment, from->content);
    return wb_history_add(&outlook->history, &capture, outcome_out);
}

int wb_batched_outlook_add(struct wb_batched_outlook *outlook, int64_t time_ms, uint64_t content, uint32_t segment,
                           enum wb_store_outcome *outcome_out)
{
    return add(outlook, &(struct wb_batched_capture){.time_ms = time_ms, .content = content, .segment = segment},
               outcome_out);
}

/* A version of this content; while the outlook is computed, the view of the update nodes must stay as it is. */
static int find_rival(struct wb_batched *batch, struct wb_repo *part, bool waits, struct wb_pageid id, uint64_t content,
                      struct wb_history_version *found_out)
{
    struct wb_history *history = waits ? batch->outlook.waiting : NULL;
    struct wb_pageview *view;
    int err = history ? 0 : wb_repo_view(part, id, &view);

    WB_CHECK(content != 0);
    if (err < 0)
        return err;
    const struct wb_history_version *found = wb_history_find(history ? history : &view->history, content);
    if (!found)
        return wb_store_not_found();
    *found_out = *found;
    return 0;
}

/* Reads a content of the page from the part that has its bytes. */
static int read_rival(void *context, struct wb_pageid id, const struct wb_history_version *version,
                      struct wb_page *page_out, struct wb_buf *mem_out)
{
    struct wb_batched *batch = context;
    bool waits = version->place.segment == WB_BATCHED_UPDATE_SEGMENT;
    struct wb_repo *part = waits ? wb_batched_update_log(batch) : wb_batched_read_log(batch);
    struct wb_history_version found;
    int err = find_rival(batch, part, waits, id, version->content, &found);

    WB_CHECK(version->place.segment != 0);
    return err < 0 ? err : wb_repo_read_version(part, id, &found, page_out, mem_out);
}

int wb_batched_outlook_put(struct wb_batched *batch, const struct wb_page *page, enum wb_store_outcome *outcome_out)
{
    struct wb_batched_outlook *o = &batch->outlook;
    struct wb_batched_capture capture = {.time_ms = page->time_ms,
                                         .content = wb_history_content(page, wb_batched_read_log(batch)->content_seed),
                                         .segment = WB_BATCHED_UPDATE_SEGMENT,
                                         .body_bytes = page->body.len,
                                         .status = page->status};
    int covered = wb_repo_rival(&o->history, page, read_rival, batch, &capture.replaces);

    *outcome_out = WB_STORE_PUT_KNOWN;
    if (covered != 0)
        return covered < 0 ? covered : 0;
    return add(o, &capture, outcome_out);
}

static int gather_event(void *context, const struct wb_catalog_event *event)
{
    struct wb_batched_outlook *o = context;
    struct wb_catalog_event copy = *event;

    WB_CHECK(event->kind >= WB_CATALOG_EVENT_FORGOTTEN);
    copy.site = WB_SLICE_EMPTY;
    return event->kind == WB_CATALOG_EVENT_NAME ? 0 : wb_vec_push(&o->events, copy);
}

static int compare_events(const void *a, const void *b)
{
    const struct wb_catalog_event *x = a, *y = b;

    if (x->time_ms != y->time_ms)
        return x->time_ms < y->time_ms ? -1 : 1;
    return (int)x->kind - (int)y->kind;
}

/* There is no latest version any more; what the policy does not keep is forgotten, as in a commit. */
static void end_page(struct wb_batched_outlook *o, int64_t gone_ms)
{
    struct wb_history_version *latest = wb_history_latest(&o->history);

    WB_CHECK(o->rule.now_ms > 0);
    if (!latest || wb_history_last_ms(&o->history, latest) > gone_ms)
        return;
    wb_history_end(&o->history, gone_ms, o->epoch);
    wb_history_trim(&o->history, &o->rule);
}

/* Who has the bytes of a content that an event names. It may be that of a capture that comes later. */
static uint32_t owner_of(const struct wb_batched_outlook *o, uint64_t content)
{
    WB_CHECK(content != 0);
    for (size_t i = 0; i < o->waiting->versions.count; i++)
        if (o->waiting->versions.items[i].content == content && o->waiting->versions.items[i].place.segment)
            return WB_BATCHED_UPDATE_SEGMENT;
    return 0; /* if it is on the read nodes, the history knows it */
}

/* The events before a page of this time. */
static int apply_events(struct wb_batched_outlook *o, size_t *at_inout, int64_t before_ms)
{
    int err = 0;

    WB_CHECK(*at_inout <= o->events.count);
    for (; err == 0 && *at_inout < o->events.count; (*at_inout)++) {
        const struct wb_catalog_event *event = &o->events.items[*at_inout];
        enum wb_store_outcome ignored;
        if (!wb_batched_is_before(event, before_ms))
            break;
        if (event->kind == WB_CATALOG_EVENT_GONE)
            end_page(o, event->time_ms);
        else if (wb_catalog_event_is_capture(event->kind))
            err = wb_batched_outlook_add(o, event->time_ms, event->content, owner_of(o, event->content), &ignored);
    }
    return err;
}

/* What the update nodes have forgotten still tells apart what comes before and after it. */
static int apply_floor(struct wb_batched_outlook *o, const struct wb_history *from)
{
    struct wb_batched_capture mark = {.time_ms = from->floor_ms, .content = WB_BATCHED_FORGOTTEN, .forgotten = true};
    enum wb_store_outcome ignored;

    WB_CHECK(o->epoch > 0);
    if (from->versions.count == 0 || from->floor_ms == INT64_MIN)
        return 0;
    int err = add(o, &mark, &ignored);
    for (size_t i = 0; i < from->forgotten.count && err == 0; i++) {
        mark.content = from->forgotten.items[i];
        err = add(o, &mark, &ignored);
    }
    return err;
}

/* One capture that waits. If the body of the page must be compared with others of its time, it is read. */
static int take_capture(struct wb_batched *batch, struct wb_pageid id, const struct wb_history_version *version,
                        int64_t time_ms)
{
    struct wb_batched_outlook *o = &batch->outlook;
    uint32_t segment = version->place.segment ? WB_BATCHED_UPDATE_SEGMENT : 0;
    struct wb_buf memory = WB_BUF_INIT;
    enum wb_store_outcome ignored;
    struct wb_page page;

    WB_CHECK(version->count > 0);
    if (segment == 0 || !wb_repo_has_rival(&o->history, time_ms, version)) {
        struct wb_batched_capture capture = {.time_ms = time_ms,
                                             .content = version->content,
                                             .segment = segment,
                                             .body_bytes = version->body_bytes,
                                             .status = version->status};
        return add(o, &capture, &ignored);
    }
    int err = wb_repo_read_version(wb_batched_update_log(batch), id, version, &page, &memory);
    if (err == 0) {
        page.time_ms = time_ms;
        err = wb_batched_outlook_put(batch, &page, &ignored);
    }
    wb_buf_release(&memory);
    return err == WB_E_CORRUPT || err == WB_E_DOWN ? 0 : err; /* nor can a transfer bring it */
}

/* The captures on the update nodes together with the events. */
static int take_update(struct wb_batched *batch, struct wb_pageid id, const struct wb_history *from)
{
    struct wb_batched_outlook *o = &batch->outlook;
    size_t at = 0;
    int err = 0;

    WB_CHECK(from->ghosts <= from->versions.count);
    if (o->events.count > 1)
        qsort(o->events.items, o->events.count, sizeof *o->events.items, compare_events);
    for (size_t i = 0; i < o->events.count; i++)
        if (o->events.items[i].kind == WB_CATALOG_EVENT_FORGOTTEN)
            end_page(o, o->events.items[i].time_ms);
    for (size_t v = from->ghosts; v < from->versions.count && err == 0; v++) {
        const struct wb_history_version *version = &from->versions.items[v];
        for (size_t k = 0; k < version->count && err == 0; k++) {
            int64_t time_ms = from->times.items[version->first + k];
            err = apply_events(o, &at, time_ms);
            if (err == 0)
                err = take_capture(batch, id, version, time_ms);
        }
    }
    if (err == 0)
        err = apply_events(o, &at, INT64_MAX);
    return err < 0 ? err : apply_floor(o, from);
}

int wb_batched_outlook(struct wb_batched *batch, struct wb_pageid id)
{
    struct wb_repo *read = wb_batched_read_log(batch), *update = wb_batched_update_log(batch);
    struct wb_batched_outlook *o = &batch->outlook;
    struct wb_pageview *view;
    int err = wb_repo_view(read, id, &view);

    WB_CHECK(batch->magic == WB_BATCHED_MAGIC);
    WB_CHECK(batch->store.mode == WB_STORE_WRITE);
    wb_history_clear(&o->history);
    wb_vec_clear(&o->events);
    o->waits = false;
    o->update_content = 0;
    if (err == 0)
        err = take_read(batch, &view->history);
    if (err == 0)
        err = wb_repo_event_of(update, id, gather_event, o);
    if (err == 0)
        err = wb_repo_view(update, id, &view);
    if (err < 0)
        return err;
    o->epoch = read->writer->moment.epoch;
    o->rule = read->writer->moment.rule;
    o->waits = o->events.count > 0 || view->history.versions.count > 0;
    o->waiting = &view->history;
    if (o->waits)
        err = take_update(batch, id, &view->history);
    o->waiting = NULL;
    wb_history_trim(&o->history, &o->rule);
    const struct wb_history_version *there = wb_history_latest(&view->history);
    o->update_content = there ? there->content : 0;
    return err;
}
