/*
 * dash_state.c - what is going on: the step of the cycle, what crawls do or wait for, how far an index is, whether the
 * disk is nearly full. The numbers are those of the last sample, and of the ten seconds before it.
 */
#include "serve/dash_state.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/folder.h"
#include "os/path.h"
#include "serve/backups.h"

#include <inttypes.h>
#include <jansson.h>
#include <math.h>

enum { FULL_PART = 20 };                       /* a twentieth of the disk is left... */
#define FULL_BYTES (UINT64_C(10) * 1000000000) /* ...and less than this */

/* ---- numbers as text --------------------------------------------------------------------------------------------- */

static int put_bytes(struct wb_buf *out, uint64_t bytes)
{
    static const char *const units[] = {"B", "kB", "MB", "GB", "TB", "PB"};
    double value = (double)bytes;
    size_t unit = 0;

    for (; value >= 999.5 && unit + 1 < sizeof units / sizeof *units; unit++)
        value /= 1000;
    return wb_buf_printf(out, unit && value < 9.95 ? "%.1f %s" : "%.0f %s", value, units[unit]);
}

static uint64_t whole(double number)
{
    return number > 0 ? (uint64_t)number : 0; /* unknown: 0 */
}

static int put_count(struct wb_buf *out, double number, const char *one, const char *many)
{
    uint64_t n = whole(number);

    return wb_buf_printf(out, "%" PRIu64 " %s", n, n == 1 ? one : many);
}

static int put_rate(struct wb_buf *out, double rate, const char *what)
{
    return wb_buf_printf(out, rate < 9.95 ? "%.1f %s per second" : "%.0f %s per second", rate, what);
}

/* ---- the index --------------------------------------------------------------------------------------------------- */

struct index_work {
    char *root;
    bool building;
    uint64_t bytes;
};

static int add_file(void *context, const struct wb_path_entry *entry)
{
    *(uint64_t *)context += entry->kind == WB_PATH_FILE ? entry->size : 0;
    return 0;
}

static int see_folder(void *context, const struct wb_path_entry *entry)
{
    struct index_work *work = context;

    if (entry->kind != WB_PATH_DIR || !wb_slice_starts(wb_slice_str(entry->name), WB_SLICE_LIT("new-")))
        return 0;
    char *path = wb_path_join(work->root, entry->name);
    if (path && wb_path_each(path, add_file, &work->bytes) == 0)
        work->building = true;
    wb_free(path);
    return 0;
}

/* A generation that is being built is a folder of its own, whose files grow. */
static int tell_index(const char *dir, const struct wb_answer_stat *stat, bool always, struct wb_buf *out)
{
    struct index_work work = {.root = wb_path_join(dir, "index")};
    int err = 0;

    if (work.root && wb_path_kind(work.root) == WB_PATH_DIR)
        (void)wb_path_each(work.root, see_folder, &work); /* it may vanish meanwhile: then it is done */
    if (work.building || always) {
        err = wb_buf_append_str(out, "Building the index");
        if (err == 0 && work.bytes)
            err = wb_buf_append_str(out, ": ");
        if (err == 0 && work.bytes)
            err = put_bytes(out, work.bytes);
        if (err == 0 && work.bytes)
            err = wb_buf_append_str(out, " written");
        if (err == 0 && work.bytes && stat->index.bytes) {
            err = wb_buf_append_str(out, "; the last one has ");
            if (err == 0)
                err = put_bytes(out, stat->index.bytes);
        }
        if (err == 0)
            err = wb_buf_append_str(out, ".");
    }
    wb_free(work.root);
    return err;
}

/* ---- crawls ------------------------------------------------------------------------------------------------------ */

struct crawl_totals {
    double pages, unchanged, queued;
    size_t crawls, paused;
};

static void add_crawl(struct crawl_totals *t, struct wb_slice line)
{
    json_t *status = json_loadb(line.ptr, line.len, 0, NULL);

    if (!status)
        return;
    t->crawls++;
    t->paused += json_is_true(json_object_get(status, "paused"));
    t->pages += json_number_value(json_object_get(status, "pages"));
    t->unchanged += json_number_value(json_object_get(status, "unchanged"));
    t->queued += json_number_value(json_object_get(status, "queued"));
    json_decref(status);
}

static int read_crawls(struct wb_server *server, struct crawl_totals *t)
{
    struct wb_buf lines = WB_BUF_INIT;
    struct wb_slice rest, line;

    *t = (struct crawl_totals){.crawls = 0};
    int err = wb_dash_crawls(server->dash, &lines);
    rest = wb_buf_slice(&lines);
    while (err == 0 && wb_slice_next_line(&rest, &line))
        add_crawl(t, line);
    wb_buf_release(&lines);
    return err;
}

static int tell_work(const struct wb_dash_now *now, const struct crawl_totals *t, struct wb_buf *out)
{
    const double *n = now->sample.numbers;
    double span = now->span_s > 0 ? now->span_s : 1;
    int err;

    if (t->unchanged > t->pages) {
        err = wb_buf_append_str(out, "Revisiting: ");
        if (err == 0)
            err = wb_buf_printf(out, "%" PRIu64 " unchanged, %" PRIu64 " new or changed so far; ", whole(t->unchanged),
                                whole(t->pages));
        if (err == 0)
            err = put_rate(out, now->growth[WB_DASH_CRAWL_REQUESTS] / span, "requests");
    } else {
        err = wb_buf_append_str(out, "Crawling: ");
        if (err == 0)
            err = put_rate(out, now->growth[WB_DASH_CRAWL_PAGES] / span, "pages");
    }
    if (err == 0)
        err = wb_buf_append_str(out, ", ");
    if (err == 0)
        err = put_count(out, n[WB_DASH_CRAWL_ACTIVE], "site", "sites");
    if (err == 0)
        err = wb_buf_append_str(out, ", ");
    if (err == 0)
        err = put_count(out, n[WB_DASH_CRAWL_FLYING], "request under way", "requests under way");
    return err < 0 ? err : wb_buf_append_str(out, ".");
}

/* When the first of the sites that must be left alone may be asked again; 0: none waits, or nobody knows. */
static int64_t first_due(const char *dir, uint64_t *waiting_out)
{
    struct wb_dispenser *dispenser = NULL;
    struct wb_dispenser_stat stat = {0};

    if (wb_dispenser_open(dir, NULL, &dispenser) < 0 || wb_dispenser_stat(dispenser, 0, &stat) < 0)
        stat.next_ms = 0;
    wb_dispenser_close(dispenser);
    *waiting_out = stat.waiting;
    return stat.waiting ? stat.next_ms : 0;
}

/* Nothing was requested for a while: why not, and until when? */
static int tell_wait(const char *dir, const struct wb_dash_now *now, const struct crawl_totals *t,
                     struct wb_dash_state *state)
{
    struct wb_buf *out = &state->text;
    double active = now->sample.numbers[WB_DASH_CRAWL_ACTIVE];
    uint64_t waiting;
    int err;

    if (active > 0) {
        err = wb_buf_append_str(out, "Waiting: ");
        if (err == 0)
            err = put_count(out, active, "site waits", "sites wait");
        if (err == 0)
            err = wb_buf_append_str(out, " for the interval between two requests; ");
        if (err == 0)
            err = put_count(out, t->queued, "URL is queued", "URLs are queued");
        return err < 0 ? err : wb_buf_append_str(out, ".");
    }
    state->until_ms = first_due(dir, &waiting);
    if (!state->until_ms)
        return wb_buf_append_str(out, "The crawl has nothing to request at the moment.");
    err = wb_buf_append_str(out, "Waiting: ");
    if (err == 0)
        err = put_count(out, (double)waiting, "site must be left alone", "sites must be left alone");
    return err < 0 ? err : wb_buf_append_str(out, ", the first one until");
}

static int tell_crawl(struct wb_server *server, const struct wb_dash_now *now, const struct crawl_totals *t,
                      struct wb_dash_state *state)
{
    int err;

    WB_CHECK(t->crawls > 0);
    WB_CHECK(t->paused <= t->crawls);
    if (t->paused && t->paused == t->crawls) {
        err = wb_buf_append_str(&state->text, "The crawl is paused; ");
        if (err == 0)
            err = put_count(&state->text, t->queued, "URL is queued", "URLs are queued");
        return err < 0 ? err : wb_buf_append_str(&state->text, ".");
    }
    /* In its first seconds a crawl has not requested anything yet, which is no reason to look for one. */
    if (now->growth[WB_DASH_CRAWL_REQUESTS] > 0 || now->sample.numbers[WB_DASH_CRAWL_FLYING] > 0 || now->span_s < 5)
        return tell_work(now, t, &state->text);
    return tell_wait(server->options->dir, now, t, state);
}

/* ---- the cycle --------------------------------------------------------------------------------------------------- */

static int tell_step(struct wb_server *server, const struct wb_answer_stat *stat, struct wb_dash_state *state)
{
    static const char *const words[] = {
        [WB_CYCLE_GENERATE] = "Choosing what to fetch next.",
        [WB_CYCLE_CRAWL] = "The crawl begins or ends.",
        [WB_CYCLE_UPDATE] = "Merging what was learnt into webdb.",
        [WB_CYCLE_EXPUNGE] = "Removing pages that have expired or are gone.",
        [WB_CYCLE_COMPACT] = "Giving back the space of old versions.",
    };
    const struct wb_cycle_status *cycle = &stat->cycle;

    if (cycle->step == WB_CYCLE_INDEX)
        return tell_index(server->options->dir, stat, true, &state->text);
    if (cycle->step != WB_CYCLE_REST) {
        WB_CHECK((size_t)cycle->step < sizeof words / sizeof *words && words[cycle->step]);
        return wb_buf_append_str(&state->text, words[cycle->step]);
    }
    state->until_ms = cycle->next_ms;
    return wb_buf_append_str(&state->text, cycle->next_ms ? "Resting until the next cycle begins at" : "Resting.");
}

static int tell_idle(struct wb_server *server, const struct wb_answer_stat *stat, struct wb_dash_state *state)
{
    int err = tell_index(server->options->dir, stat, false, &state->text);

    if (err < 0 || state->text.len)
        return err;
    if (state->empty)
        return wb_buf_append_str(&state->text, "Nothing is stored yet, and nothing is running.");
    err = wb_buf_append_str(&state->text, "No crawl is running.");
    if (err == 0 && stat->has_cycle && stat->cycle.last_error[0])
        err = wb_buf_printf(&state->problem, "The last run ended with an error: %s", stat->cycle.last_error);
    return err;
}

static int tell_disk(struct wb_server *server, struct wb_dash_state *state)
{
    struct wb_folder_space space;

    if (wb_folder_space(server->options->dir, &space) < 0 || space.free >= space.capacity / FULL_PART ||
        space.free >= FULL_BYTES)
        return 0;
    int err = wb_buf_append_str(&state->problem,
                                state->problem.len ? " The disk is nearly full: " : "The disk is nearly full: ");
    if (err == 0)
        err = put_bytes(&state->problem, space.free);
    if (err == 0)
        err = wb_buf_append_str(&state->problem, " of ");
    if (err == 0)
        err = put_bytes(&state->problem, space.capacity);
    return err < 0 ? err : wb_buf_append_str(&state->problem, " are free.");
}

int wb_dash_state_read(struct wb_server *server, const struct wb_answer_stat *stat, struct wb_dash_state *state_out)
{
    struct crawl_totals totals;
    struct wb_dash_now now;

    WB_CHECK(server->magic == WB_SERVER_MAGIC);
    *state_out = (struct wb_dash_state){.until_ms = 0};
    (void)wb_dash_now(server->dash, &now); /* without a sample yet there is no crawl, as far as we know */
    int err = read_crawls(server, &totals);
    state_out->empty = stat->store.pages == 0 && !stat->has_cycle && !stat->has_dispenser && totals.crawls == 0;
    if (err == 0 && stat->has_cycle && stat->cycle.running)
        err = wb_buf_printf(&state_out->text, "Cycle %" PRIu64 ". ", stat->cycle.cycle);
    if (err == 0 && totals.crawls)
        err = tell_crawl(server, &now, &totals, state_out);
    else if (err == 0 && stat->has_cycle && stat->cycle.running)
        err = tell_step(server, stat, state_out);
    else if (err == 0)
        err = tell_idle(server, stat, state_out);
    if (err == 0)
        err = wb_backups_problem(&stat->backups, &state_out->problem);
    return err < 0 ? err : tell_disk(server, state_out);
}

void wb_dash_state_release(struct wb_dash_state *state)
{
    wb_buf_release(&state->text);
    wb_buf_release(&state->problem);
}
