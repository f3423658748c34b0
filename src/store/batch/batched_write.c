/*
 * batched_write.c - what a writer does to a repository of a batch design. Pages go to the update nodes as they come;
 * the history policy is applied when they are transferred. What concerns a page that may be on the read nodes
 * only becomes an event (catalog.h), because the update nodes know nothing about that page.
 *
 * Takedowns are the exception: they reach both parts at once. Bars are set on both before anything is removed, so that
 * nothing that is barred can be transferred, whatever happens in between.
 */
#include "base/check.h"
#include "store/batch/batched.h"

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
    const struct wb_repo_writer *writer = wb_batched_read_log(batch)->writer;

    WB_CHECK(writer->moment_known);
    return writer->moment.rule.policy.keep == WB_STORE_KEEP_NEWEST;
}

int wb_batched_put(struct wb_store *store, const struct wb_page *page, enum wb_store_outcome *outcome_out)
{
    struct wb_batched *batch = wb_batched_of(store);
    enum wb_store_outcome forecast = WB_STORE_PUT_OLDER, there;
    int err = wb_batched_outlook(batch, page->id);

    WB_CHECK(store->mode == WB_STORE_WRITE);
    if (err == 0)
        err = wb_batched_outlook_put(batch, page, &forecast);
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

static int put_event(struct wb_batched *batch, const struct wb_catalog_event *event)
{
    WB_CHECK(batch->magic == WB_BATCHED_MAGIC);
    WB_CHECK(event->site.ptr || event->site.len == 0);
    return wb_repo_put_event(wb_batched_update_log(batch), event);
}

/* Puts that a content was seen again; if a page of this moment waits already, it was seen after that one. */
static int put_capture_event(struct wb_batched *batch, struct wb_catalog_event *event)
{
    struct wb_pageview *view;
    int err = wb_repo_view(wb_batched_update_log(batch), event->id, &view);
    size_t ignored;

    WB_CHECK(event->content != 0);
    if (err < 0)
        return err;
    bool again = wb_history_tie(&view->history, event->time_ms, &ignored) > 0;
    event->kind = again ? WB_CATALOG_EVENT_AGAIN : WB_CATALOG_EVENT_CAPTURE;
    return put_event(batch, event);
}

int wb_batched_touch(struct wb_store *store, struct wb_pageid id, int64_t time_ms)
{
    struct wb_batched *batch = wb_batched_of(store);
    struct wb_catalog_event event = {.id = id, .time_ms = time_ms};
    int err = wb_batched_outlook(batch, id);

    WB_CHECK(store->mode == WB_STORE_WRITE);
    if (err < 0)
        return err;
    const struct wb_history_version *latest = wb_history_latest(&batch->outlook.history);
    if (!latest)
        return wb_store_not_found();
    event.content = latest->content;
    err = batch->outlook.update_content == event.content ? wb_store_touch(batch->update, id, time_ms)
                                                         : put_capture_event(batch, &event);
    batch->forecast.captures += err == 0;
    return err;
}

/* ---- removals ------------------------------------------------------------------------------------------- */

/* The page leaves both parts, and so does everything that waits for it. */
static int remove_everywhere(struct wb_batched *batch, struct wb_pageid id, struct wb_slice site, int64_t time_ms)
{
    struct wb_repo *update = wb_batched_update_log(batch);
    bool events = batch->outlook.events.count > 0;
    int there = wb_store_remove(batch->update, id, site, time_ms, true);

    WB_CHECK(update->writer->magic == WB_REPO_WRITER_MAGIC);
    if (there < 0 && there != WB_E_NOTFOUND)
        return there;
    if (there == WB_E_NOTFOUND && events) { /* the op takes the events away */
        struct wb_op op = {.kind = WB_OP_REMOVE_EVERYWHERE, .id = id, .time_ms = time_ms};
        int err = wb_repo_site_index(update->writer, site, &op.site);
        if (err == 0)
            err = wb_op_add(update, &op);
        if (err < 0)
            return err;
    }
    int err = wb_store_remove(batch->read, id, site, time_ms, true);
    return err == WB_E_NOTFOUND && there == 0 ? 0 : err;
}

/*
 * The page is gone. Where readers keep a past, the order of time says what came before. Where they do not, everything
 * before is forgotten, also what waits; so what is put from now on comes after the removal, whatever its time.
 */
static int remove_latest(struct wb_batched *batch, struct wb_pageid id, struct wb_slice site, int64_t time_ms)
{
    struct wb_history *history = &batch->outlook.history;
    const struct wb_history_version *latest = wb_history_latest(history);
    struct wb_catalog_event event = {.id = id, .kind = WB_CATALOG_EVENT_GONE, .site = site};
    int err = 0;

    WB_CHECK(batch->magic == WB_BATCHED_MAGIC);
    if (!latest)
        return wb_store_not_found();
    event.time_ms = wb_history_last_ms(history, latest); /* as wb_history_end(): not before its last capture */
    event.time_ms = event.time_ms > time_ms ? event.time_ms : time_ms;
    event.time_ms = event.time_ms > 1 ? event.time_ms : 1;
    /* What is forgotten already stays so: it may have been newer than what came after it. */
    for (size_t i = 0; i < batch->outlook.events.count; i++)
        if (batch->outlook.events.items[i].kind == WB_CATALOG_EVENT_FORGOTTEN &&
            batch->outlook.events.items[i].time_ms > event.time_ms)
            event.time_ms = batch->outlook.events.items[i].time_ms;
    if (forgets(batch)) {
        event.kind = WB_CATALOG_EVENT_FORGOTTEN;
        err = wb_store_remove(batch->update, id, site, time_ms, true);
        err = err == WB_E_NOTFOUND ? 0 : err;
    }
    return err < 0 ? err : put_event(batch, &event);
}

int wb_batched_remove(struct wb_store *store, struct wb_pageid id, struct wb_slice site, int64_t time_ms,
                      bool everywhere)
{
    struct wb_batched *batch = wb_batched_of(store);
    int err = wb_batched_outlook(batch, id);

    WB_CHECK(store->mode == WB_STORE_WRITE);
    if (err == 0)
        err = everywhere ? remove_everywhere(batch, id, site, time_ms) : remove_latest(batch, id, site, time_ms);
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

/*
 * The content that the revisit means, 0 if it is nowhere. "Not modified" means whatever the page was just before, which
 * only both parts together can tell.
 */
static int find_original(struct wb_batched *batch, const struct wb_store_revisit *revisit, uint64_t *content_out)
{
    const struct wb_history *history = &batch->outlook.history;
    int err = 0;

    WB_CHECK(*content_out == 0);
    if (!revisit->has_sha1 && revisit->original_ms == 0) {
        const struct wb_history_version *before =
            revisit->not_modified ? wb_history_at(history, revisit->time_ms) : NULL;
        if (before && before->place.segment && history->times.items[before->first] <= revisit->time_ms)
            *content_out = before->content;
        return 0;
    }
    if (batch->outlook.waits)
        err = wb_repo_revisit_content(wb_batched_update_log(batch), revisit, content_out);
    if (err == 0 && *content_out == 0)
        err = wb_repo_revisit_content(wb_batched_read_log(batch), revisit, content_out);
    /* What will be forgotten with the next transfer is as good as gone. */
    if (err == 0 && *content_out && !wb_history_find(&batch->outlook.history, *content_out))
        *content_out = 0;
    return err;
}

int wb_batched_put_revisit(struct wb_store *store, const struct wb_store_revisit *revisit,
                           enum wb_store_outcome *outcome_out)
{
    struct wb_batched *batch = wb_batched_of(store);
    struct wb_catalog_event event = {.id = revisit->id, .time_ms = revisit->time_ms, .site = revisit->site};
    int err = wb_batched_outlook(batch, revisit->id);
    int barred = err == 0 ? wb_store_barred(batch->read, revisit->id, revisit->site) : err;

    WB_CHECK(store->mode == WB_STORE_WRITE);
    if (barred == 0)
        err = find_original(batch, revisit, &event.content);
    if (barred < 0 || err < 0)
        return barred < 0 ? barred : err;
    if (barred) /* which is counted there */
        return wb_store_put_revisit(batch->update, revisit, outcome_out);
    if (event.content == 0) { /* it waits for its original, first on the update nodes */
        err = wb_repo_wait_revisit(wb_batched_update_log(batch), revisit, outcome_out);
        event.kind = WB_CATALOG_EVENT_NAME;
        return err < 0 || *outcome_out != WB_STORE_PUT_NEW ? err : put_event(batch, &event);
    }
    bool there = batch->outlook.update_content == event.content;
    err =
        wb_batched_outlook_add(&batch->outlook, revisit->time_ms, event.content, WB_BATCHED_READ_SEGMENT, outcome_out);
    if (err == 0 && *outcome_out <= WB_STORE_PUT_PAST) {
        *outcome_out = *outcome_out == WB_STORE_PUT_PAST && forgets(batch) ? WB_STORE_PUT_OLDER : WB_STORE_PUT_CAPTURE;
        /* Of what is the latest version there, the update nodes must know the captures, or they might forget it. */
        err = there ? wb_repo_put_content(wb_batched_update_log(batch), &event) : put_capture_event(batch, &event);
    }
    if (err == 0)
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
        wb_ops_clear(wb_batched_read_log(batch)); /* nothing of it is stored */
    }
    batch->forecast = (struct wb_store_commit_counts){0};
    return err;
}
