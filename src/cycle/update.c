/*
 * update.c - merges the journal into the next edition of webdb, and removes the logs that are no longer needed.
 *
 * webdb does the merge; this file decides when each page is due again. Damage in a log costs only the damaged records:
 * there is a warning, and the merge continues.
 */
#include "cycle/update.h"
#include "base/error.h"
#include "base/mem.h"
#include "cycle/thresholds.h"
#include "os/file.h"
#include "os/stop.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>

enum { WARNINGS_MAX = 10 };

struct update {
    const struct wb_cycle_sink *sink;
    struct wb_refresh refresh;
    uint64_t damaged;
};

/* Decides for each page that the merge touches when it is due again. */
static int set_due(const struct update *u, struct wb_webdb_writer *writer)
{
    const struct wb_webdb_site *site;
    struct wb_webdb_page *page;
    int got;

    while ((got = wb_webdb_writer_next(writer, &page, &site)) > 0)
        page->next_due_ms = wb_refresh_due(&u->refresh, page, wb_changerate(&page->history, site));
    return got;
}

static bool on_progress(void *context, const char *step, uint64_t done, uint64_t total)
{
    const struct update *u = context;

    if (wb_stop_requested())
        return false;
    return !u->sink->progress || u->sink->progress(u->sink->context, step, done, total);
}

static void warn(const struct update *u, const char *message)
{
    if (u->sink->warn)
        u->sink->warn(u->sink->context, message);
}

static void on_damage(void *context, const char *file, uint64_t offset, const char *message)
{
    struct update *u = context;
    char text[WB_ERROR_MESSAGE_MAX];

    if (u->damaged++ >= WARNINGS_MAX)
        return;
    snprintf(text, sizeof text, "%s at %" PRIu64 ": %s", file, offset, message);
    warn(u, text);
}

static void report_damage(const struct update *u)
{
    char text[128];

    if (u->damaged <= WARNINGS_MAX)
        return;
    snprintf(text, sizeof text, "and %" PRIu64 " more places are damaged; see verify", u->damaged - WARNINGS_MAX);
    warn(u, text);
}

static int merge_journal(const struct wb_update_options *o, struct update *u, struct wb_webdb_merge *merge_out)
{
    struct wb_webdb_options options = {.memory_bytes = o->memory_bytes, .threads = o->threads, .progress = on_progress,
                                       .progress_context = u, .from_scratch = o->rebuild};
    struct wb_webdb_writer *writer = NULL;

    int err = wb_webdb_writer_open(o->dir, &options, &writer);
    if (err < 0)
        return err;
    if (o->rebuild)
        err = wb_webdb_add_rows(writer, on_damage, u);
    if (err == 0 && o->rebuild)
        err = wb_rebuild_links(o->dir, writer, u->sink);
    if (err == 0)
        err = wb_webdb_add_journal(writer, on_damage, u);
    if (err == 0)
        err = set_due(u, writer);
    if (err < 0) {
        struct wb_error_copy why;
        wb_error_save(err, &why);
        wb_webdb_writer_abandon(writer);
        return wb_error_restore(&why);
    }
    err = wb_webdb_writer_close(writer, merge_out);
    report_damage(u);
    return err;
}

/* ---- logs ------------------------------------------------------------------------------------------------ */

bool wb_update_dispenser_known(const struct wb_update_options *o)
{
    struct wb_buf text = WB_BUF_INIT;
    bool known = true;

    /* If the remembered one cannot be read, say that there is one: using it then reports why it cannot be read. */
    if (!o->dispenser)
        (void)wb_crawl_dispenser(o->dir, &text, &known);
    wb_buf_release(&text);
    return known;
}

static int prune_journal(const struct wb_update_options *o, uint64_t *freed_out)
{
    struct wb_journal_needs needs = {.all = true};
    int err = 0;

    /* If the dispenser is elsewhere, nobody here knows which visits are unfinished: keep all logs of crawlers. */
    if (wb_update_dispenser_known(o))
        err = wb_crawl_logs(o->dir, o->dispenser, &needs);
    if (err == 0)
        err = wb_webdb_prune_journal(o->dir, &needs, freed_out);
    wb_journal_needs_release(&needs);
    return err;
}

int wb_update(const struct wb_update_options *options, const struct wb_cycle_sink *sink,
              struct wb_webdb_merge *merge_out, uint64_t *freed_out)
{
    static const struct wb_cycle_sink quiet = {NULL, NULL, NULL};
    struct update u = {.sink = sink ? sink : &quiet};
    struct wb_thresholds thresholds;
    uint64_t freed = 0;

    *merge_out = (struct wb_webdb_merge){0};
    if (freed_out)
        *freed_out = 0;
    if (!wb_store_exists(options->dir))
        return wb_fail(WB_E_NOTFOUND, "there is no repository at %s", options->dir);
    int err = wb_thresholds_read(options->dir, u.sink->warn, u.sink->context, &thresholds);
    if (err < 0)
        goto done;
    u.refresh = (struct wb_refresh){.policy = thresholds.policy,
                                    .theta = wb_thresholds_get(&thresholds, thresholds.policy, WB_SLICE_EMPTY)};
    err = merge_journal(options, &u, merge_out);
    if (err == 0)
        err = prune_journal(options, &freed);
    if (freed_out)
        *freed_out = freed;
done:
    wb_thresholds_release(&thresholds);
    return err;
}
