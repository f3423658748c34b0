/*
 * batched_write.c - what a writer does to a repository of a batch design. Pages go to the update nodes as they come;
 * the history policy is applied when they are transferred. What concerns a page that may be on the read nodes
 * only becomes an event (catalog.h), because the update nodes know nothing about that page.
 *
 * Takedowns are the exception: they reach both parts at once. Bars are set on both before anything is removed, so that
 * nothing that is barred can be transferred, whatever happens in between.
 */
#include "base/check.h"
#include "store/batched.h"

/* ---- pages --------------------------------------------------------------------------------------------- */

/* Counts what readers will see of it. */
static void count(struct wb_batched *batch, enum wb_store_outcome outcome)
{
    struct wb_store_commit_counts *f = &batch->forecast;

    WB_CHECK(outcome <= WB_STORE_PUT_BARRED);
    f->added += outcome == WB_STORE_PUT_NEW;
    f->replaced += outcome == WB_STORE_PUT_VERSION;
    f->past += outcome == WB_STORE_PUT_PAST;
    f->captures += outcome == WB_STORE_PUT_CAPTURE;
    f->older += outcome == WB_STORE_PUT_KNOWN || outcome == WB_STORE_PUT_OLDER;
}

/* Whether the read nodes forget everything but the latest version of a page. */
static bool forgets(struct wb_batched *batch)
{
    const struct wb_log_writer *writer = wb_batched_read_log(batch)->writer;

    WB_CHECK(writer->moment_known);
    return writer->moment.rule.policy.keep == WB_STORE_KEEP_NEWEST;
}

int wb_batched_put(struct wb_store *store, const struct wb_page *page, enum wb_store_outcome *outcome_out)
{
    struct wb_batched *batch = wb_batched_of(store);
    struct wb_batched_outlook *o = &batch->outlook;
    enum wb_store_outcome forecast = WB_STORE_PUT_OLDER, there;
    int err = wb_batched_outlook(batch, page->id);

    WB_CHECK(store->mode == WB_STORE_WRITE);
    if (err == 0)
        err =
            wb_batched_outlook_add(o, page->time_ms, wb_history_content(page, wb_batched_read_log(batch)->content_seed),
                                   WB_BATCHED_UPDATE_SEGMENT, &forecast);
    if (err < 0)
        return err;
    if (forecast == WB_STORE_PUT_PAST && forgets(batch))
        forecast = WB_STORE_PUT_OLDER; /* it waits all the same: it may tell two captures of one version apart */
    else if (forecast >= WB_STORE_PUT_KNOWN) {
        *outcome_out = forecast;
        count(batch, forecast);
        return 0;
    }
    err = wb_store_put(batch->update, page, &there);
    if (err < 0)
        return err;
    *outcome_out = there == WB_STORE_PUT_BARRED ? there : forecast;
    count(batch, *outcome_out);
    return 0;
}

static int put_event(struct wb_batched *batch, enum wb_catalog_event_kind kind, struct wb_pageid id,
                     struct wb_slice site, int64_t time_ms)
{
    WB_CHECK(batch->magic == WB_BATCHED_MAGIC);
    WB_CHECK(kind == WB_CATALOG_EVENT_TOUCH || site.ptr || site.len == 0);
    return wb_log_put_event(wb_batched_update_log(batch), &(struct wb_catalog_event){id, time_ms, kind, site});
}

int wb_batched_touch(struct wb_store *store, struct wb_pageid id, int64_t time_ms)
{
    struct wb_batched *batch = wb_batched_of(store);
    int err = wb_batched_outlook(batch, id);

    WB_CHECK(store->mode == WB_STORE_WRITE);
    if (err < 0)
        return err;
    if (!wb_history_latest(&batch->outlook.history))
        return wb_store_not_found();
    if (batch->outlook.in_update)
        err = wb_store_touch(batch->update, id, time_ms);
    else
        err = put_event(batch, WB_CATALOG_EVENT_TOUCH, id, WB_SLICE_EMPTY, time_ms);
    batch->forecast.captures += err == 0;
    return err;
}

/* ---- removals ------------------------------------------------------------------------------------------- */

/* The page leaves both parts, and so does everything that waits for it. */
static int remove_everywhere(struct wb_batched *batch, struct wb_pageid id, struct wb_slice site, int64_t time_ms)
{
    struct wb_log *update = wb_batched_update_log(batch);
    bool events = batch->outlook.events.count > 0;
    int there = wb_store_remove(batch->update, id, site, time_ms, true);

    WB_CHECK(update->writer->magic == WB_LOG_WRITER_MAGIC);
    if (there < 0 && there != WB_E_NOTFOUND)
        return there;
    if (there == WB_E_NOTFOUND && events) { /* the op takes the events away */
        struct wb_log_op op = {.kind = WB_LOG_OP_REMOVE_EVERYWHERE, .id = id, .time_ms = time_ms};
        int err = wb_log_site_index(update->writer, site, &op.site);
        if (err == 0)
            err = wb_log_op_add(update, &op);
        if (err < 0)
            return err;
    }
    int err = wb_store_remove(batch->read, id, site, time_ms, true);
    return err == WB_E_NOTFOUND && there == 0 ? 0 : err;
}

int wb_batched_remove(struct wb_store *store, struct wb_pageid id, struct wb_slice site, int64_t time_ms,
                      bool everywhere)
{
    struct wb_batched *batch = wb_batched_of(store);
    int err = wb_batched_outlook(batch, id);

    WB_CHECK(store->mode == WB_STORE_WRITE);
    if (err < 0)
        return err;
    if (everywhere) {
        err = remove_everywhere(batch, id, site, time_ms);
    } else {
        struct wb_history *history = &batch->outlook.history;
        const struct wb_history_version *latest = wb_history_latest(history);
        if (!latest)
            return wb_store_not_found();
        /* As wb_history_end(): not before its last capture. So the order of time says what came first. */
        int64_t last_ms = wb_history_last_ms(history, latest), gone_ms = time_ms > last_ms ? time_ms : last_ms;
        err = put_event(batch, WB_CATALOG_EVENT_GONE, id, site, gone_ms > 1 ? gone_ms : 1);
    }
    batch->forecast.removed += err == 0;
    return err;
}

int wb_batched_bar(struct wb_store *store, const struct wb_store_bar *bar)
{
    struct wb_batched *batch = wb_batched_of(store);
    struct wb_store_commit_counts ignored = {0};
    int err = wb_batched_commit(store, &ignored);

    WB_CHECK(store->mode == WB_STORE_WRITE);
    if (err == 0)
        err = wb_store_bar(batch->update, bar);
    return err < 0 ? err : wb_store_bar(batch->read, bar);
}

int wb_batched_allow(struct wb_store *store, const struct wb_store_bar *bar)
{
    struct wb_batched *batch = wb_batched_of(store);
    struct wb_store_commit_counts ignored = {0};
    int err = wb_batched_commit(store, &ignored);

    WB_CHECK(store->mode == WB_STORE_WRITE);
    /* The update nodes first: if this is interrupted, the read nodes still know the bar, and it can be repeated. */
    int there = err == 0 ? wb_store_allow(batch->update, bar) : err;
    if (there < 0 && there != WB_E_NOTFOUND)
        return there;
    err = wb_store_allow(batch->read, bar);
    return err == WB_E_NOTFOUND && there == 0 ? 0 : err;
}

/* ---- revisits -------------------------------------------------------------------------------------------- */

/* Whether the read nodes have the content that the revisit means; the update nodes do not. */
static int is_on_read_nodes(struct wb_batched *batch, const struct wb_store_revisit *revisit, bool *found_out)
{
    const struct wb_history *history = &batch->outlook.history;
    struct wb_buf memory = WB_BUF_INIT;
    struct wb_page page;
    int err = 0;

    WB_CHECK(!*found_out);
    for (size_t i = history->versions.count; i > 0 && err == 0 && !*found_out; i--) {
        const struct wb_history_version *version = &history->versions.items[i - 1];
        const int64_t *times = history->times.items + version->first;
        if (version->place.segment != WB_BATCHED_READ_SEGMENT)
            continue;
        if (!revisit->has_sha1) {
            for (size_t k = 0; k < version->count && revisit->original_ms; k++)
                *found_out = *found_out || times[k] / 1000 == revisit->original_ms / 1000;
            continue;
        }
        struct wb_store_when when = {.kind = WB_STORE_WHEN_TIME, .time_ms = times[0]};
        err = wb_store_get_when(batch->read, revisit->id, &when, &page, &memory);
        *found_out =
            err == 0 && (memcmp(page.sha1, revisit->sha1, WB_SHA1_BYTES) == 0 ||
                         (page.has_payload_sha1 && memcmp(page.payload_sha1, revisit->sha1, WB_SHA1_BYTES) == 0));
        err = err == WB_E_NOTFOUND || err == WB_E_CORRUPT ? 0 : err;
    }
    wb_buf_release(&memory);
    return err;
}

/* "Not modified" means whatever the page was just before, which the update nodes alone cannot know. */
static int put_not_modified(struct wb_batched *batch, const struct wb_store_revisit *revisit,
                            enum wb_store_outcome *outcome_out)
{
    struct wb_batched_outlook *o = &batch->outlook;
    const struct wb_history_version *before = wb_history_at(&o->history, revisit->time_ms);
    int err = 0;

    WB_CHECK(revisit->not_modified);
    WB_CHECK(!revisit->has_sha1);
    if (before && before->content && o->history.times.items[before->first] <= revisit->time_ms)
        err = wb_batched_outlook_add(o, revisit->time_ms, before->content, WB_BATCHED_READ_SEGMENT, outcome_out);
    if (err < 0 || *outcome_out >= WB_STORE_PUT_KNOWN)
        return err;
    if (*outcome_out != WB_STORE_PUT_NEW || before)
        *outcome_out = WB_STORE_PUT_CAPTURE;
    return put_event(batch, WB_CATALOG_EVENT_REVISIT, revisit->id, revisit->site, revisit->time_ms);
}

int wb_batched_put_revisit(struct wb_store *store, const struct wb_store_revisit *revisit,
                           enum wb_store_outcome *outcome_out)
{
    struct wb_batched *batch = wb_batched_of(store);
    bool found = false;
    int err = wb_batched_outlook(batch, revisit->id);
    int barred = err == 0 ? wb_store_barred(batch->read, revisit->id, revisit->site) : err;

    WB_CHECK(store->mode == WB_STORE_WRITE);
    if (barred < 0)
        return barred;
    bool vague = revisit->not_modified && !revisit->has_sha1 && revisit->original_ms == 0;
    if (!barred && vague && batch->outlook.history.versions.count) {
        err = put_not_modified(batch, revisit, outcome_out);
    } else {
        err = wb_store_put_revisit(batch->update, revisit, outcome_out);
        if (err == 0 && *outcome_out == WB_STORE_PUT_NEW)
            err = put_event(batch, WB_CATALOG_EVENT_NAME, revisit->id, revisit->site, revisit->time_ms);
        if (err == 0 && *outcome_out == WB_STORE_PUT_NEW && batch->outlook.history.versions.count)
            err = is_on_read_nodes(batch, revisit, &found);
        if (found)
            *outcome_out = WB_STORE_PUT_CAPTURE;
    }
    if (err == 0 && *outcome_out != WB_STORE_PUT_NEW)
        count(batch, *outcome_out);
    return err;
}

/* ---- commit ---------------------------------------------------------------------------------------------- */

int wb_batched_commit(struct wb_store *store, struct wb_store_commit_counts *counts_inout)
{
    struct wb_batched *batch = wb_batched_of(store);
    struct wb_store_commit_counts there = {0}, here = {0};
    int err = wb_store_commit(batch->update, &there);

    WB_CHECK(store->mode == WB_STORE_WRITE);
    /* Only takedowns go to the read nodes. They come second, so that nothing waits any more that was taken down. */
    if (err == 0)
        err = wb_store_commit(batch->read, &here);
    if (err == 0) {
        batch->forecast.barred = there.barred;
        wb_store_counts_add(counts_inout, &batch->forecast);
    } else {
        wb_log_ops_clear(wb_batched_read_log(batch)); /* nothing of it is stored */
    }
    batch->forecast = (struct wb_store_commit_counts){0};
    return err;
}
