/*
 * cyclerun.c - the loop: generate, crawl, update, expunge, index, compact, rest.
 *
 * The state file names the current step. Every step can be repeated from its start: after a kill, the next run resumes
 * the cycle at that step. What happens when a step fails:
 *
 *   another process does the same (a compact, an update)  wait for some minutes, then skip the step with a warning
 *   damage, in a step that only cleans up                 report it and continue with the next step
 *   a node that is down, in such a step or the index      the same; readers keep the old index until the node is back
 *   disk, dispenser or limits, in an endless run          report it, wait, repeat the step
 *   anything else                                         the run ends; the state file keeps the step and the reason
 *
 *   generate   merges the journal, crawls seeds that were never fetched, then lists the pages that are worth a visit
 *   crawl      crawls that list; the budget holds for all crawls of it together, including those that were killed
 *
 * It knows nothing about how a step works.
 */
#include "base/check.h"
#include "base/date.h"
#include "base/error.h"
#include "cycle/cyclestate.h"
#include "cycle/cycletransfer.h"
#include "cycle/newseeds.h"
#include "move/move.h"
#include "os/clock.h"
#include "os/stop.h"
#include "store/store.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

enum {
    SAVE_MS = 1000,   /* between two updates of the state file during a crawl */
    NAP_MS = 100,
    IDLE_MS = 10000,  /* pause of an endless run without --every after a cycle with nothing to do */
    BUSY_MS = 600000, /* how long to wait for another process that does the same step */
    AGAIN_FIRST_MS = 10000, /* before a failed step is repeated; doubles each time */
    AGAIN_MAX_MS = 600000,
};

#define LOOP_MAGIC 0x57424c50u

struct loop {
    uint32_t magic;               /* LOOP_MAGIC while wb_cycle_run() is at work */
    const struct wb_cycle_options *options;
    const char *dir;
    const struct wb_crawl_sink *crawl_sink;
    const struct wb_cycle_sink *sink;
    struct wb_cyclestate state;
    struct wb_file lock;
    struct wb_crawl_orders *orders; /* what an operator has told the crawls of this run */
    bool seeds_done;              /* this run has already crawled its new seeds */
    bool seeding;                 /* the current crawl is the one of new seeds */
    uint64_t seeded;              /* state.seeded when that crawl started */
    struct wb_cycle_status before; /* the status when the current crawl started */
    int64_t saved_ms;
    bool unmerged;                /* another update takes too long: generate from the newest edition there is */
    struct wb_error_copy left_out; /* code < 0: why a step was left out of a cycle */
};

__attribute__((format(printf, 2, 3))) static void warn(const struct loop *loop, const char *format, ...)
{
    char text[WB_ERROR_MESSAGE_MAX + 64];
    va_list args;

    if (!loop->sink->warn)
        return;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    loop->sink->warn(loop->sink->context, text);
}

static int save_state(struct loop *loop)
{
    WB_CHECK(loop->magic == LOOP_MAGIC && loop->lock.fd >= 0); /* or another run could write it, too */
    loop->saved_ms = wb_clock_wall_ms();
    return wb_cyclestate_write(loop->dir, &loop->state);
}

static int enter_step(struct loop *loop, enum wb_cycle_step step)
{
    /* Each step follows on the one before it. */
    WB_CHECK(step == (loop->state.status.step == WB_CYCLE_COMPACT ? WB_CYCLE_REST : loop->state.status.step + 1));
    loop->state.status.step = step;
    loop->state.status.step_ms = wb_clock_wall_ms();
    loop->state.status.last_error[0] = '\0';
    return save_state(loop);
}

/* ---- crawls ---------------------------------------------------------------------------------------------- */

static void count_crawl(struct loop *loop, const struct wb_crawl_stat *stat)
{
    WB_CHECK(loop->magic == LOOP_MAGIC && (!loop->seeding || loop->state.seeded >= loop->seeded));
    struct wb_cycle_status *now = &loop->state.status;
    const struct wb_cycle_status *before = &loop->before;

    if (loop->seeding)
        loop->state.seeded = loop->seeded + stat->fetches;
    /* For a list, stat->fetches includes those of earlier crawls that were killed. */
    now->fetched = loop->state.seeded + (loop->seeding ? 0 : stat->fetches);
    now->stored = before->stored + stat->pages;
    now->unchanged = before->unchanged + stat->unchanged;
    now->gone = before->gone + stat->gone;
    now->errors = before->errors + stat->errors;
}

static void on_crawl(void *context, const struct wb_crawl_stat *stat)
{
    struct loop *loop = context;

    WB_CHECK(loop->magic == LOOP_MAGIC);
    if (loop->crawl_sink->progress)
        loop->crawl_sink->progress(loop->crawl_sink->context, stat);
    count_crawl(loop, stat);
    /* If the state cannot be saved now, the end of the step reports it. */
    if (wb_clock_wall_ms() - loop->saved_ms >= SAVE_MS)
        (void)save_state(loop);
}

static int on_take(void *context, unsigned output, struct wb_slice bytes, size_t *taken_out)
{
    const struct loop *loop = context;

    WB_CHECK(loop->magic == LOOP_MAGIC);
    return loop->crawl_sink->take(loop->crawl_sink->context, output, bytes, taken_out);
}

static void on_crawl_warning(void *context, const char *message)
{
    const struct loop *loop = context;

    WB_CHECK(loop->magic == LOOP_MAGIC);
    if (loop->crawl_sink->warn)
        loop->crawl_sink->warn(loop->crawl_sink->context, message);
}

static int crawl(struct loop *loop, const struct wb_crawl_options *options)
{
    struct wb_crawl_sink sink = {on_take, on_crawl, on_crawl_warning, loop, loop->crawl_sink->outputs};
    struct wb_crawl_stat stat;

    WB_CHECK(loop->lock.fd >= 0 && loop->orders);
    struct wb_crawl_options o = *options;

    o.orders = loop->orders;
    loop->before = loop->state.status;
    int err = wb_crawl(&o, &sink, &stat);
    count_crawl(loop, &stat);
    return err;
}

/* Returns false if the budget is used up; *left_out is what is left of it, 0: no limit. */
static bool budget_left(const struct loop *loop, uint64_t *left_out)
{
    const struct wb_cycle_status *status = &loop->state.status;

    *left_out = 0;
    if (status->budget && loop->state.seeded >= status->budget)
        return false;
    *left_out = status->budget ? status->budget - loop->state.seeded : 0;
    return true;
}

/* ---- generate -------------------------------------------------------------------------------------------- */

static int merge(struct loop *loop)
{
    const struct wb_cycle_options *o = loop->options;
    struct wb_update_options options = {.dir = loop->dir, .dispenser = o->crawl.dispenser,
                                        .memory_bytes = o->memory_bytes};
    struct wb_webdb_merge result;

    return wb_update(&options, loop->sink, &result, NULL);
}

static bool has_webdb(const char *dir)
{
    struct wb_webdb *webdb = NULL;
    bool there = wb_webdb_open(dir, &webdb) != WB_E_NOTFOUND;

    wb_webdb_close(webdb);
    return there;
}

static int merge_if_new(struct loop *loop)
{
    uint64_t bytes = 0;
    int err = loop->unmerged ? 0 : wb_webdb_unmerged(loop->dir, &bytes);

    return err == 0 && bytes ? merge(loop) : err;
}

/* Adds the settings of the seeds file, then crawls the seeds as `webbase crawl` would. */
static int crawl_seeds(struct loop *loop, const struct wb_newseeds *seeds)
{
    WB_CHECK(!loop->seeding);
    struct wb_crawl_options options = loop->options->crawl;
    struct wb_fetchlist *list = NULL;
    int err = 0;

    if (!budget_left(loop, &options.max_fetches))
        return 0;
    if (options.seeds_file)
        err = wb_fetchlist_open(loop->dir, options.dispenser, options.seeds_file, loop->sink->warn,
                                loop->sink->context, &list);
    wb_fetchlist_close(list);
    if (err < 0)
        return err;
    options.urls = (const char *const *)seeds->urls;
    options.url_count = seeds->count;
    options.seeds_file = NULL;
    options.run = 0;
    loop->seeding = true;
    loop->seeded = loop->state.seeded;
    err = crawl(loop, &options);
    loop->seeding = false;
    int saved = save_state(loop);
    if (err == 0)
        err = saved;
    return err < 0 ? err : merge_if_new(loop);
}

static int take_seeds(struct loop *loop)
{
    struct wb_newseeds seeds = {NULL, 0, 0};
    int err = 0;

    if (loop->seeds_done)
        return 0;
    err = wb_newseeds_find(&loop->options->crawl, &seeds);
    if (err == 0 && seeds.count)
        err = crawl_seeds(loop, &seeds);
    loop->seeds_done = err == 0;
    wb_newseeds_release(&seeds);
    return err;
}

static int step_generate(struct loop *loop)
{
    WB_CHECK(loop->state.status.step == WB_CYCLE_GENERATE);
    struct wb_generate_options options = loop->options->generate;
    struct wb_cycle_status *status = &loop->state.status;
    struct wb_generate generate;

    int err = merge_if_new(loop);
    if (err == 0)
        err = take_seeds(loop);
    if (err < 0)
        return err;
    status->run = 0;
    if (!budget_left(loop, &options.budget))
        return 0;
    options.dir = loop->dir;
    options.dispenser = loop->options->crawl.dispenser;
    options.seeds_file = loop->options->crawl.seeds_file;
    options.scope = loop->options->crawl.scope;
    options.tried_ms = status->began_ms;
    options.period_ms = loop->options->every_ms;
    options.class_name = loop->options->crawl.class_name;
    options.types = loop->options->crawl.types;
    options.delay_ms = loop->options->crawl.delay_ms >= 0 ? loop->options->crawl.delay_ms : WB_CRAWL_DELAY_MS;
    if (loop->options->crawl.max_depth < UINT32_MAX)
        options.depth_limit = loop->options->crawl.max_depth + 1;
    if (options.horizon_ms == 0)
        options.horizon_ms = loop->options->every_ms > WB_DAY_MS ? loop->options->every_ms : WB_DAY_MS;
    err = wb_generate(&options, loop->sink, &generate);
    if (err < 0)
        return err;
    status->run = generate.run;
    status->listed = generate.urls;
    status->theta = generate.theta;
    return 0;
}

/* ---- the other steps --------------------------------------------------------------------------------------- */

static int step_crawl(struct loop *loop)
{
    WB_CHECK(loop->state.status.step == WB_CYCLE_CRAWL && !loop->seeding);
    struct wb_crawl_options options = loop->options->crawl;

    if (loop->state.status.run == 0 || !budget_left(loop, &options.max_fetches))
        return 0;
    options.urls = NULL;
    options.url_count = 0;
    options.seeds_file = NULL;
    options.run = loop->state.status.run;
    return crawl(loop, &options);
}

static int step_update(struct loop *loop)
{
    WB_CHECK(loop->state.status.step == WB_CYCLE_UPDATE);
    return merge(loop);
}

static int step_expunge(struct loop *loop)
{
    WB_CHECK(loop->state.status.step == WB_CYCLE_EXPUNGE);
    const struct wb_cycle_options *o = loop->options;
    struct wb_update_options options = {.dir = loop->dir, .dispenser = o->crawl.dispenser,
                                        .memory_bytes = o->memory_bytes};
    struct wb_expunge_stat stat;

    int err = wb_expunge_expired(&options, loop->sink, NULL, NULL, &stat);
    loop->state.status.expunged += stat.pages;
    return err;
}

static int step_index(struct loop *loop)
{
    WB_CHECK(loop->state.status.step == WB_CYCLE_INDEX);
    const struct wb_cycle_options *o = loop->options;
    struct wb_update_options update = {.dir = loop->dir, .dispenser = o->crawl.dispenser,
                                       .memory_bytes = o->memory_bytes};
    struct wb_index_options options = {.dir = loop->dir, .if_changed = true};
    struct wb_index_result result;
    bool partly;
    int err = wb_cycle_transfer(loop->dir, loop->sink, &partly);

    if (partly) {
        wb_error_save(err, &loop->left_out);
        warn(loop, "transfer: %s", loop->left_out.message);
        err = 0;
    }
    if (err == 0)
        err = wb_cycle_index(&update, &options, loop->sink, &result);
    /* As long as nothing was ever stored, there is nothing to index. */
    return err == WB_E_NOTFOUND ? 0 : err;
}

static bool on_compact(void *context, uint64_t done, uint64_t total)
{
    const struct loop *loop = context;

    WB_CHECK(loop->magic == LOOP_MAGIC);
    if (wb_stop_requested())
        return false;
    return !loop->sink->progress || loop->sink->progress(loop->sink->context, "compacting", done, total);
}

static void on_damage(void *context, const struct wb_store_finding *report)
{
    const struct loop *loop = context;

    WB_CHECK(loop->magic == LOOP_MAGIC);
    warn(loop, "compact: %s at %" PRIu64 ": %s", report->file, report->offset, report->message);
}

static int step_compact(struct loop *loop)
{
    struct wb_store *store = NULL;
    struct wb_move_compact_counts result;

    WB_CHECK(loop->state.status.step == WB_CYCLE_COMPACT);
    int err = wb_store_open(loop->dir, WB_STORE_WRITE, &store);
    if (err == 0)
        err = wb_move_compact_worthwhile(store, on_compact, loop, on_damage, loop, &result);
    if (err == 0 && result.damaged)
        err = wb_fail(WB_E_CORRUPT, "%" PRIu64 " damaged places stayed as they are; everything else was compacted",
                      result.damaged);
    wb_store_close(store);
    return err;
}

static int (*const steps[])(struct loop *loop) = {
    [WB_CYCLE_GENERATE] = step_generate, [WB_CYCLE_CRAWL] = step_crawl, [WB_CYCLE_UPDATE] = step_update,
    [WB_CYCLE_EXPUNGE] = step_expunge,   [WB_CYCLE_INDEX] = step_index, [WB_CYCLE_COMPACT] = step_compact,
};

/* ---- a cycle -------------------------------------------------------------------------------------------------- */

/* The state file keeps the reason why the run ended, for `stat`. */
static int keep_error(struct loop *loop, int err)
{
    struct wb_error_copy why;

    WB_CHECK(err < 0);
    wb_error_save(err, &why);
    if (err == WB_E_STOPPED)
        loop->state.status.last_error[0] = '\0';
    else
        snprintf(loop->state.status.last_error, sizeof loop->state.status.last_error, "%.255s", why.message);
    (void)save_state(loop);
    return wb_error_restore(&why);
}

static int64_t next_begin(const struct loop *loop)
{
    WB_CHECK(loop->state.status.step == WB_CYCLE_COMPACT);
    const struct wb_cycle_status *status = &loop->state.status;

    if (loop->options->every_ms == 0 && loop->options->cycles == 0 && status->fetched == 0)
        return wb_clock_wall_ms() + IDLE_MS;
    return status->began_ms + loop->options->every_ms;
}

/* ---- steps that fail ------------------------------------------------------------------------------------------ */

/* WB_E_STOPPED after a signal. Uses the monotonic clock, which nobody can set. */
static int wait_ms(int64_t ms)
{
    WB_CHECK(ms >= 0);
    struct timespec nap = {0, NAP_MS * 1000000l};
    int64_t end = wb_clock_mono_ns() + ms * 1000000;

    while (wb_clock_mono_ns() < end && !wb_stop_requested())
        nanosleep(&nap, NULL);
    return wb_stop_requested() ? wb_fail(WB_E_STOPPED, "stopped") : 0;
}

/* The state file has the reason while we wait, for `stat`. */
static void note_reason(struct loop *loop)
{
    WB_CHECK(loop->state.status.step != WB_CYCLE_REST);
    snprintf(loop->state.status.last_error, sizeof loop->state.status.last_error, "%.255s", wb_error_message());
    (void)save_state(loop);
}

/*
 * Does a step. If another process does the same, waits for it, but not forever. Does not wait for another compaction,
 * because after it nothing is left to compact.
 */
static int try_step(struct loop *loop)
{
    WB_CHECK(loop->state.status.step > WB_CYCLE_REST && loop->state.status.step <= WB_CYCLE_COMPACT);
    enum wb_cycle_step step = loop->state.status.step;
    int64_t end = wb_clock_mono_ns() + BUSY_MS * 1000000ll;
    int err = steps[step](loop);

    if (err == WB_E_BUSY && step != WB_CYCLE_COMPACT) {
        warn(loop, "%s: waiting: %s", wb_cycle_step_word(step), wb_error_message());
        note_reason(loop);
        while (err == WB_E_BUSY && wb_clock_mono_ns() < end) {
            err = wait_ms(NAP_MS);
            if (err == 0)
                err = steps[step](loop);
        }
    }
    if (err == WB_E_BUSY && step == WB_CYCLE_GENERATE) {
        loop->unmerged = true;
        err = steps[step](loop);
        loop->unmerged = false;
    }
    WB_CHECK(loop->state.status.step == step && !loop->seeding);
    if (err != WB_E_BUSY)
        return err;
    warn(loop, "%s is left out of cycle %llu: %s", wb_cycle_step_word(step),
         (unsigned long long)loop->state.status.cycle, wb_error_message());
    return 0;
}

/* Whether the cycle goes on although the step failed in this way. */
static bool can_be_left_out(enum wb_cycle_step step, int err)
{
    bool cleans_up = step == WB_CYCLE_EXPUNGE || step == WB_CYCLE_COMPACT;

    return (err == WB_E_CORRUPT && cleans_up) || (err == WB_E_DOWN && (cleans_up || step == WB_CYCLE_INDEX));
}

/* Errors that may be gone the next time: a full disk, an unreachable database, too many open files. */
static bool may_pass(int err)
{
    return err == WB_E_IO || err == WB_E_LIMIT;
}

/*
 * Does the current step, repeating it if necessary. Damage that prevents cleaning up is reported and the loop goes on;
 * damage in webdb or the journal ends the run, because without them nothing says what may be fetched. A node that is
 * down must not end a run that goes on for weeks: pages on other nodes are still crawled.
 */
static int do_step(struct loop *loop)
{
    enum wb_cycle_step step = loop->state.status.step;
    int64_t pause = AGAIN_FIRST_MS;
    int err;

    while ((err = try_step(loop)) < 0 && may_pass(err) && loop->options->cycles == 0 && !wb_stop_requested()) {
        warn(loop, "%s: %s; it is done again in %lld s", wb_cycle_step_word(step), wb_error_message(),
             (long long)pause / 1000);
        note_reason(loop);
        if ((err = wait_ms(pause)) < 0)
            return err;
        pause = 2 * pause < AGAIN_MAX_MS ? 2 * pause : AGAIN_MAX_MS;
    }
    if (can_be_left_out(step, err)) {
        wb_error_save(err, &loop->left_out);
        warn(loop, "%s: %s; the cycle goes on without it", wb_cycle_step_word(step), loop->left_out.message);
        err = 0;
    }
    return err;
}

/* Does everything from the current step to the end of the cycle. */
static int finish_cycle(struct loop *loop)
{
    struct wb_cycle_status *status = &loop->state.status;
    int err = 0;

    while (err == 0 && status->step != WB_CYCLE_REST) {
        err = do_step(loop);
        if (err == 0 && wb_stop_requested())
            err = wb_fail(WB_E_STOPPED, "stopped");
        if (err == 0 && status->step == WB_CYCLE_COMPACT)
            status->next_ms = next_begin(loop);
        if (err == 0)
            err = enter_step(loop, status->step == WB_CYCLE_COMPACT ? WB_CYCLE_REST : status->step + 1);
    }
    return err < 0 ? keep_error(loop, err) : 0;
}

static int begin_cycle(struct loop *loop)
{
    WB_CHECK(loop->state.status.step == WB_CYCLE_REST);
    struct wb_cycle_status *status = &loop->state.status;
    uint64_t cycle = status->cycle + 1;
    double theta = status->theta;

    loop->state = (struct wb_cyclestate){.seeded = 0};
    wb_crawl_orders_restart(loop->orders);
    status->cycle = cycle;
    status->theta = theta;
    status->budget = loop->options->generate.budget;
    status->began_ms = wb_clock_wall_ms();
    return enter_step(loop, WB_CYCLE_GENERATE);
}

/* Waits until the next cycle starts or a signal comes. Setting the clock meanwhile changes nothing. */
static int rest(const struct loop *loop)
{
    WB_CHECK(loop->state.status.step == WB_CYCLE_REST);
    int64_t left = loop->state.status.next_ms - wb_clock_wall_ms();

    return wait_ms(left > 0 ? left : 0);
}

static int go_around(struct loop *loop, wb_cycle_each each, void *context)
{
    int err = 0;

    WB_CHECK(loop->magic == LOOP_MAGIC && loop->lock.fd >= 0);
    for (uint64_t done = 0; err == 0 && (loop->options->cycles == 0 || done < loop->options->cycles); done++) {
        if (done)
            err = rest(loop);
        /* An unfinished cycle is continued. */
        if (err == 0 && loop->state.status.step == WB_CYCLE_REST)
            err = begin_cycle(loop);
        if (err == 0)
            err = finish_cycle(loop);
        if (err == 0 && each) {
            struct wb_cycle_status status = loop->state.status;
            status.running = true;
            each(context, &status);
        }
    }
    /* All cycles were run, but a step was left out. */
    return err == 0 && loop->left_out.code < 0 ? wb_error_restore(&loop->left_out) : err;
}

/* ---- starting ---------------------------------------------------------------------------------------------- */

static int make_repository(const struct wb_crawl_options *crawl)
{
    int err = wb_store_require(crawl->dir);
    if (err != WB_E_NOTFOUND)
        return err;
    if (crawl->url_count == 0 && !crawl->seeds_file)
        return wb_fail(WB_E_NOTFOUND,
                       "there is no repository at %s, and no seeds to start one: name URLs, or use --seeds FILE",
                       crawl->dir);
    err = wb_store_create(crawl->dir, NULL);
    return err == WB_E_INVALID && wb_store_exists(crawl->dir) ? 0 : err;
}

/* There must be pages to choose from, or seeds. */
static int check_begin(const struct loop *loop)
{
    const struct wb_crawl_options *crawl_options = &loop->options->crawl;
    uint64_t bytes = 0;

    if (crawl_options->url_count || crawl_options->seeds_file || has_webdb(loop->dir))
        return 0;
    int err = wb_webdb_unmerged(loop->dir, &bytes);
    if (err == 0 && bytes == 0)
        err = wb_fail(WB_E_INVALID, "%s knows no pages yet: name seeds, or crawl or import first", loop->dir);
    return err;
}

static int read_state(struct loop *loop)
{
    WB_CHECK(loop->lock.fd >= 0);
    int err = wb_cyclestate_read(loop->dir, &loop->state);

    if (err == WB_E_CORRUPT) {
        if (loop->sink->warn)
            loop->sink->warn(loop->sink->context, wb_error_message());
        loop->state = (struct wb_cyclestate){.seeded = 0};
    }
    return err == WB_E_NOTFOUND || err == WB_E_CORRUPT ? 0 : err;
}

int wb_cycle_run(const struct wb_cycle_options *options, const struct wb_crawl_sink *crawl_sink,
                 const struct wb_cycle_sink *sink, wb_cycle_each each, void *context)
{
    static const struct wb_cycle_sink quiet = {NULL, NULL, NULL};
    struct loop loop = {.magic = LOOP_MAGIC, .options = options, .dir = options->crawl.dir, .crawl_sink = crawl_sink,
                        .sink = sink ? sink : &quiet, .lock = WB_FILE_INIT};

    int err = wb_crawl_check_class(&options->crawl);
    if (err == 0)
        err = make_repository(&options->crawl);
    if (err == 0)
        err = wb_crawl_orders_new(&loop.orders);
    if (err == 0)
        err = wb_cyclestate_lock(loop.dir, &loop.lock);
    if (err == 0)
        err = read_state(&loop);
    if (err == 0)
        err = check_begin(&loop);
    if (err == 0)
        err = go_around(&loop, each, context);
    wb_file_close(&loop.lock);
    wb_crawl_orders_free(loop.orders);
    return err;
}
