/*
 * update.c - merges the journal into the next edition of webdb, and removes the logs that are no longer needed.
 *
 * webdb does the merge; this file decides when each page is due again. Damage in a log costs only the damaged records:
 * there is a warning, and the merge continues.
 *
 *   1 the store's epoch E is read, then the pages that arrived since the last edition (reconcile.h)
 *   2 the journal is merged; each page that this touches is compared with the store
 *   3 logs that are no longer needed are removed, and what dead crawlers left in their spools goes to the store
 *   4 rows of pages that are not stored are corrected, and pages that no journal mentions are adopted
 *
 * Another update has to wait until all of this is done: it must not come between 2 and 4.
 *
 * The edition says that it has seen E in full: everything that was stored until then is in it. This holds because of
 * the order. A writer makes the records of its journal readable before it commits their pages (an import syncs them,
 * a crawl flushes them), and here the journal is read after the epoch. What is lost to a power failure, or was never
 * journaled, is found in the store in step 1.
 */
#include "cycle/update.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "cycle/reconcile.h"
#include "cycle/thresholds.h"
#include "os/file.h"
#include "os/stop.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdio.h>

enum { WARNINGS_MAX = 10 };

#define UPDATE_MAGIC 0x57425544u

struct update {
    uint32_t magic; /* UPDATE_MAGIC while wb_update() is at work */
    struct wb_file lock; /* keeps other updates away, from the first merge to the last one */
    const struct wb_cycle_sink *sink;
    struct wb_refresh refresh;
    uint64_t damaged;
};

/* Decides for each page that the merge touches when it is due again. r: NULL if it need not be compared. */
static int set_due(const struct update *u, struct wb_webdb_writer *writer, struct wb_reconcile *r)
{
    const struct wb_webdb_site *site;
    struct wb_webdb_page *page;
    int got, err = 0;

    WB_CHECK(u->magic == UPDATE_MAGIC && (!r || r->stage == WB_RECONCILE_COMPARING));
    while (err == 0 && (got = wb_webdb_writer_next(writer, &page, &site)) > 0) {
        page->next_due_ms = wb_refresh_due(&u->refresh, page, wb_changerate(&page->history, site));
        err = r ? wb_reconcile_row(r, page) : 0;
    }
    if (err == 0)
        err = got;
    return err == 0 && r ? wb_reconcile_rest(r) : err;
}

static bool on_progress(void *context, const char *step, uint64_t done, uint64_t total)
{
    const struct update *u = context;

    WB_CHECK(u->magic == UPDATE_MAGIC);
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

    WB_CHECK(u->magic == UPDATE_MAGIC);
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

static int open_writer(const struct wb_update_options *o, struct update *u, bool from_scratch,
                       struct wb_webdb_writer **writer_out)
{
    struct wb_webdb_options options = {.memory_bytes = o->memory_bytes, .threads = o->threads, .progress = on_progress,
                                       .progress_context = u, .from_scratch = from_scratch, .lock = &u->lock};

    WB_CHECK(u->lock.fd >= 0);
    return wb_webdb_writer_open(o->dir, &options, writer_out);
}

static int abandon(struct wb_webdb_writer *writer, int err)
{
    struct wb_error_copy why;

    WB_CHECK(err < 0);
    wb_error_save(err, &why);
    wb_webdb_writer_abandon(writer);
    return wb_error_restore(&why);
}

static int merge_journal(const struct wb_update_options *o, struct update *u, struct wb_reconcile *r,
                         struct wb_webdb_merge *merge_out)
{
    struct wb_webdb_writer *writer = NULL;

    WB_CHECK(r->stage == WB_RECONCILE_CLOSED);
    int err = open_writer(o, u, o->rebuild, &writer);
    if (err < 0)
        return err;
    err = wb_reconcile_open(r, o, u->sink);
    if (err == 0 && o->rebuild)
        err = wb_webdb_add_rows(writer, on_damage, u);
    if (err == 0 && o->rebuild)
        err = wb_rebuild_links(o->dir, writer, u->sink);
    if (err == 0)
        err = wb_webdb_add_journal(writer, on_damage, u);
    if (err == 0)
        err = set_due(u, writer, r);
    if (err < 0)
        return abandon(writer, err);
    WB_CHECK(r->stage == WB_RECONCILE_COMPARED);
    if (r->unheard.count == 0)
        wb_webdb_writer_saw_epoch(writer, r->epoch);
    err = wb_webdb_writer_close(writer, merge_out);
    report_damage(u);
    return err;
}

/* ---- what differs from the store ------------------------------------------------------------------------- */

static void add_counts(struct wb_webdb_merge *sum, const struct wb_webdb_merge *merge)
{
    WB_CHECK(merge->edition >= sum->edition);
    sum->edition = merge->edition;
    sum->page_edits += merge->page_edits;
    sum->link_edits += merge->link_edits;
    sum->pages_added += merge->pages_added;
    sum->pages_changed += merge->pages_changed;
    sum->pages_deleted += merge->pages_deleted;
    sum->links_added += merge->links_added;
    sum->links_deleted += merge->links_deleted;
    sum->links_without_source += merge->links_without_source;
    sum->bytes_after = merge->bytes_after;
}

/* Merges what `add` adds. */
static int merge_more(const struct wb_update_options *o, struct update *u, struct wb_reconcile *r,
                      int (*add)(struct wb_reconcile *r, struct wb_webdb_writer *writer), bool seen,
                      struct wb_webdb_merge *sum)
{
    WB_CHECK(r->stage == WB_RECONCILE_COMPARED);
    struct wb_webdb_writer *writer = NULL;
    struct wb_webdb_merge merge;
    int err = open_writer(o, u, false, &writer);

    if (err < 0)
        return err;
    err = add(r, writer);
    if (err == 0)
        err = set_due(u, writer, NULL);
    if (err < 0)
        return abandon(writer, err);
    if (seen)
        wb_webdb_writer_saw_epoch(writer, r->epoch);
    err = wb_webdb_writer_close(writer, &merge);
    if (err == 0)
        add_counts(sum, &merge);
    return err;
}

/*
 * Both need a merge of their own, because a row that a correction replaces must be there before the stored version is
 * adopted. Nearly always there is nothing to do.
 */
static int put_right(const struct wb_update_options *o, struct update *u, struct wb_reconcile *r,
                     struct wb_webdb_merge *sum)
{
    WB_CHECK(r->stage == WB_RECONCILE_COMPARED);
    bool seen = r->unheard.count > 0 && !r->more;
    int err = r->unstored.len ? wb_reconcile_confirm(r) : 0;

    if (err == 0 && r->unstored.len)
        err = merge_more(o, u, r, wb_reconcile_correct, false, sum);
    if (err == 0 && r->unheard.count)
        err = merge_more(o, u, r, wb_reconcile_adopt, seen, sum);
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

/* One pass. *more_out: there are more stored pages to adopt than fit into memory. */
static int update_once(const struct wb_update_options *o, struct update *u, struct wb_webdb_merge *merge_out,
                       uint64_t *freed_out, bool *more_out)
{
    struct wb_reconcile r = {.options = o, .url = WB_URL_INIT};
    int err = merge_journal(o, u, &r, merge_out);

    if (err == 0)
        err = prune_journal(o, freed_out);
    if (err == 0)
        err = put_right(o, u, &r, merge_out);
    *more_out = r.more;
    wb_reconcile_close(&r);
    return err;
}

int wb_update(const struct wb_update_options *options, const struct wb_cycle_sink *sink,
              struct wb_webdb_merge *merge_out, uint64_t *freed_out)
{
    static const struct wb_cycle_sink quiet = {NULL, NULL, NULL};
    struct update u = {.magic = UPDATE_MAGIC, .sink = sink ? sink : &quiet, .lock = WB_FILE_INIT};
    struct wb_update_options again = *options;
    struct wb_thresholds thresholds = {0};
    struct wb_webdb_merge merge;
    uint64_t freed = 0, freed_again;
    bool more = false;

    *merge_out = (struct wb_webdb_merge){0};
    if (freed_out)
        *freed_out = 0;
    int err = wb_store_require(options->dir);
    if (err == 0)
        err = wb_webdb_lock(options->dir, &u.lock);
    if (err == 0)
        err = wb_thresholds_read(options->dir, u.sink->warn, u.sink->context, &thresholds);
    if (err < 0)
        goto done;
    u.refresh = (struct wb_refresh){.policy = thresholds.policy,
                                    .theta = wb_thresholds_get(&thresholds, thresholds.policy, WB_SLICE_EMPTY)};
    err = update_once(options, &u, merge_out, &freed, &more);
    again.rebuild = false;
    merge = *merge_out;
    /* If a pass adopts nothing, all that is left cannot be read. */
    while (err == 0 && more && merge.pages_added + merge.pages_changed) {
        err = update_once(&again, &u, &merge, &freed_again, &more);
        if (err == 0)
            add_counts(merge_out, &merge);
    }
    if (freed_out)
        *freed_out = freed;
done:
    wb_thresholds_release(&thresholds);
    wb_file_close(&u.lock);
    return err;
}
