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
    struct wb_batched_outlook *o = &batch->outlook;
    struct wb_history *to = &o->history;
    int err = wb_vec_reserve(&to->versions, from->versions.count + 1);

    WB_CHECK(to->versions.count == 0);
    if (err == 0)
        err = wb_vec_reserve(&to->times, from->times.count + 1);
    if (err < 0)
        return err;
    if (from->versions.count) {
        memcpy(to->versions.items, from->versions.items, from->versions.count * sizeof *to->versions.items);
        memcpy(to->times.items, from->times.items, from->times.count * sizeof *to->times.items);
    }
    to->versions.count = from->versions.count;
    to->times.count = from->times.count;
    to->ghosts = from->ghosts;
    to->floor_ms = from->floor_ms;
    to->gone_ms = from->gone_ms;
    for (size_t i = 0; i < to->versions.count; i++)
        if (to->versions.items[i].place.segment)
            to->versions.items[i].place = place_of(WB_BATCHED_READ_SEGMENT, to->versions.items[i].content);
    WB_CHECK(to->ghosts <= to->versions.count);
    return 0;
}

int wb_batched_outlook_add(struct wb_batched_outlook *outlook, int64_t time_ms, uint64_t content, uint32_t segment,
                           enum wb_store_outcome *outcome_out)
{
    const struct wb_history_version *known = content ? wb_history_find(&outlook->history, content) : NULL;
    struct wb_history_version bytes = {.content = content};
    struct wb_history_capture capture = {.time_ms = time_ms,
                                         .content = content,
                                         .epoch = outlook->epoch,
                                         .now_ms = outlook->rule.now_ms,
                                         .bytes = &bytes};

    WB_CHECK(outlook->epoch > 0);
    if (known)
        bytes = *known;
    else if (segment)
        bytes.place = place_of(segment, content);
    return wb_history_add(&outlook->history, &capture, outcome_out);
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

/* The events before a time. */
static int apply_events(struct wb_batched_outlook *o, size_t *at_inout, int64_t before_ms)
{
    int err = 0;

    WB_CHECK(*at_inout <= o->events.count);
    for (; err == 0 && *at_inout < o->events.count; (*at_inout)++) {
        const struct wb_catalog_event *event = &o->events.items[*at_inout];
        enum wb_store_outcome ignored;
        if (event->time_ms >= before_ms)
            break;
        if (event->kind == WB_CATALOG_EVENT_GONE)
            end_page(o, event->time_ms);
        else if (event->kind == WB_CATALOG_EVENT_CAPTURE)
            err = wb_batched_outlook_add(o, event->time_ms, event->content, owner_of(o, event->content), &ignored);
    }
    return err;
}

/* What the update nodes have forgotten still tells apart what comes before and after it. */
static int apply_floor(struct wb_batched_outlook *o, int64_t floor_ms)
{
    enum wb_store_outcome ignored;

    WB_CHECK(o->epoch > 0);
    return floor_ms == INT64_MIN ? 0 : wb_batched_outlook_add(o, floor_ms, WB_BATCHED_FORGOTTEN, 0, &ignored);
}

/* The captures on the update nodes together with the events. */
static int take_update(struct wb_batched_outlook *o, const struct wb_history *from)
{
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
        uint32_t segment = version->place.segment ? WB_BATCHED_UPDATE_SEGMENT : 0;
        for (size_t k = 0; k < version->count && err == 0; k++) {
            int64_t time_ms = from->times.items[version->first + k];
            enum wb_store_outcome ignored;
            err = apply_events(o, &at, time_ms);
            if (err == 0)
                err = wb_batched_outlook_add(o, time_ms, version->content, segment, &ignored);
        }
    }
    if (err == 0)
        err = apply_events(o, &at, INT64_MAX);
    return err < 0 ? err : apply_floor(o, from->versions.count ? from->floor_ms : INT64_MIN);
}

int wb_batched_outlook(struct wb_batched *batch, struct wb_pageid id)
{
    struct wb_log *read = wb_batched_read_log(batch), *update = wb_batched_update_log(batch);
    struct wb_batched_outlook *o = &batch->outlook;
    struct wb_log_view *view;
    int err = wb_log_view(read, id, &view);

    WB_CHECK(batch->magic == WB_BATCHED_MAGIC);
    WB_CHECK(batch->store.mode == WB_STORE_WRITE);
    wb_history_clear(&o->history);
    wb_vec_clear(&o->events);
    o->waits = false;
    o->update_content = 0;
    if (err == 0)
        err = take_read(batch, &view->history);
    if (err == 0)
        err = wb_log_event_of(update, id, gather_event, o);
    if (err == 0)
        err = wb_log_view(update, id, &view);
    if (err < 0)
        return err;
    o->epoch = read->writer->moment.epoch;
    o->rule = read->writer->moment.rule;
    o->waits = o->events.count > 0 || view->history.versions.count > 0;
    o->waiting = &view->history;
    if (o->waits)
        err = take_update(o, &view->history);
    o->waiting = NULL;
    wb_history_trim(&o->history, &o->rule);
    const struct wb_history_version *there = wb_history_latest(&view->history);
    o->update_content = there ? there->content : 0;
    return err;
}
