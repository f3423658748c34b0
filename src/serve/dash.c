/* dash.c - takes a sample every two seconds. See dash.h. */
#include "serve/dash.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"

#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

enum { COST_FACTOR = 40 }; /* counting takes a fortieth of the thread's time at most */

struct wb_dash {
    struct wb_server *server;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ended;
    struct wb_dash_sample samples[WB_DASH_SAMPLES]; /* a ring */
    uint64_t count;                                 /* samples ever taken */
    struct wb_buf crawls;
    /* Used by the thread alone. */
    struct wb_store *store;
    struct wb_dash_fresh *fresh;
    int64_t count_after_ns; /* the repository is counted again then */
    double counted[WB_DASH_NUMBERS];
};

/* ---- the repository ---------------------------------------------------------------------------------------------- */

static void note_stat(struct wb_dash *dash, const struct wb_answer_stat *s)
{
    double *n = dash->counted;

    n[WB_DASH_PAGES] = (double)s->store.pages;
    n[WB_DASH_CAPTURES] = (double)s->store.captures;
    n[WB_DASH_SITES] = (double)s->store.sites;
    n[WB_DASH_PAGE_BYTES] = (double)s->store.bytes_pages;
    n[WB_DASH_STORED_BYTES] = (double)s->store.bytes_stored;
    n[WB_DASH_DEAD_BYTES] = (double)s->store.bytes_dead;
    n[WB_DASH_KNOWN] = s->has_webdb ? (double)s->webdb.pages : NAN;
    n[WB_DASH_UNMERGED] = (double)s->unmerged;
    n[WB_DASH_GENERATION] = s->index.generation ? (double)s->index.generation : NAN;
}

/* What cannot be read stays as it was; the next sample tries again. */
static void count_repository(struct wb_dash *dash)
{
    int64_t began = wb_clock_mono_ns();
    const char *dir = dash->server->options->dir;
    struct wb_answer_stat stat;

    if (began < dash->count_after_ns)
        return;
    if (wb_answer_stat_read(dir, dash->store, &stat) == 0)
        note_stat(dash, &stat);
    wb_answer_stat_release(&stat);
    (void)wb_dash_fresh_read(dash->fresh, dir);
    dash->count_after_ns = began + (wb_clock_mono_ns() - began) * COST_FACTOR;
}

/* ---- crawls ------------------------------------------------------------------------------------------------------ */

static void add_number(double *sum, const json_t *object, const char *key)
{
    *sum = (isnan(*sum) ? 0 : *sum) + json_number_value(json_object_get(object, key));
}

static void add_crawl(struct wb_dash_sample *sample, struct wb_slice line)
{
    json_t *status = json_loadb(line.ptr, line.len, 0, NULL);
    double *n = sample->numbers;

    if (!status)
        return;
    const json_t *sites = json_object_get(status, "sites");
    n[WB_DASH_CRAWLS]++;
    add_number(&n[WB_DASH_CRAWL_PAGES], status, "pages");
    add_number(&n[WB_DASH_CRAWL_REQUESTS], status, "requests");
    add_number(&n[WB_DASH_CRAWL_BYTES], status, "wire_bytes");
    add_number(&n[WB_DASH_CRAWL_ERRORS], status, "error_count");
    add_number(&n[WB_DASH_CRAWL_ACTIVE], sites, "active");
    add_number(&n[WB_DASH_CRAWL_WAITING], sites, "waiting");
    add_number(&n[WB_DASH_CRAWL_QUEUED], status, "queued");
    add_number(&n[WB_DASH_CRAWL_FLYING], status, "in_flight");
    json_decref(status);
}

static void ask_crawls(struct wb_dash *dash, struct wb_dash_sample *sample, struct wb_buf *answer)
{
    struct wb_control_command command = {.verb = WB_CONTROL_STATUS};
    struct wb_slice rest, line;

    sample->numbers[WB_DASH_CRAWLS] = 0;
    if (wb_control_send(dash->server->options->dir, &command, answer) < 0)
        wb_buf_clear(answer); /* no crawl is running, or none that answers */
    rest = wb_buf_slice(answer);
    while (wb_slice_next_line(&rest, &line))
        add_crawl(sample, line);
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

static void take_sample(struct wb_dash *dash)
{
    struct wb_dash_sample sample = {.time_ms = wb_clock_now_ms()};
    struct wb_buf crawls = WB_BUF_INIT;
    struct wb_httpd_stat http;
    uint64_t requests, failed;

    count_repository(dash);
    memcpy(sample.numbers, dash->counted, sizeof sample.numbers);
    wb_dash_fresh_now(dash->fresh, sample.time_ms, &sample.numbers[WB_DASH_FRESHNESS], &sample.numbers[WB_DASH_AGE]);
    wb_httpd_stat(dash->server->httpd, &http);
    wb_metrics_sum(dash->server->metrics, &requests, &failed);
    sample.numbers[WB_DASH_REQUESTS] = (double)requests;
    sample.numbers[WB_DASH_FAILED] = (double)failed;
    sample.numbers[WB_DASH_CONNECTIONS] = (double)http.connections;
    sample.numbers[WB_DASH_STREAMS] = (double)http.sources;
    ask_crawls(dash, &sample, &crawls);
    pthread_mutex_lock(&dash->lock);
    dash->samples[dash->count++ % WB_DASH_SAMPLES] = sample;
    wb_buf_release(&dash->crawls);
    dash->crawls = wb_buf_take(&crawls);
    pthread_mutex_unlock(&dash->lock);
}

static void *run(void *context)
{
    struct wb_dash *dash = context;
    struct timespec next;

    pthread_mutex_lock(&dash->lock);
    while (!dash->ended) {
        pthread_mutex_unlock(&dash->lock);
        take_sample(dash);
        clock_gettime(CLOCK_MONOTONIC, &next);
        next.tv_sec += WB_DASH_INTERVAL_MS / 1000;
        pthread_mutex_lock(&dash->lock);
        while (!dash->ended && pthread_cond_timedwait(&dash->changed, &dash->lock, &next) == 0)
            ;
    }
    pthread_mutex_unlock(&dash->lock);
    return NULL;
}

static int open_parts(struct wb_dash *dash)
{
    pthread_condattr_t attributes;

    pthread_condattr_init(&attributes);
    pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
    pthread_mutex_init(&dash->lock, NULL);
    pthread_cond_init(&dash->changed, &attributes);
    pthread_condattr_destroy(&attributes);
    for (size_t i = 0; i < WB_DASH_NUMBERS; i++)
        dash->counted[i] = NAN;
    int err = wb_store_open(dash->server->options->dir, WB_STORE_READ, &dash->store);
    return err < 0 ? err : wb_dash_fresh_new(&dash->fresh);
}

static void free_parts(struct wb_dash *dash)
{
    wb_store_close(dash->store);
    wb_dash_fresh_free(dash->fresh);
    wb_buf_release(&dash->crawls);
    pthread_cond_destroy(&dash->changed);
    pthread_mutex_destroy(&dash->lock);
    wb_free(dash);
}

int wb_dash_start(struct wb_server *server, struct wb_dash **dash_out)
{
    struct wb_dash *dash = wb_alloc_zero(1, sizeof(*dash));

    *dash_out = NULL;
    if (!dash)
        return WB_E_NOMEM;
    dash->server = server;
    int err = open_parts(dash);
    if (err == 0 && pthread_create(&dash->thread, NULL, run, dash) != 0)
        err = wb_fail(WB_E_LIMIT, "cannot start a thread");
    if (err < 0) {
        free_parts(dash);
        return err;
    }
    *dash_out = dash;
    return 0;
}

void wb_dash_stop(struct wb_dash *dash)
{
    if (!dash)
        return;
    pthread_mutex_lock(&dash->lock);
    dash->ended = true;
    pthread_cond_signal(&dash->changed);
    pthread_mutex_unlock(&dash->lock);
    pthread_join(dash->thread, NULL);
    free_parts(dash);
}

/* ---- reading ----------------------------------------------------------------------------------------------------- */

int wb_dash_each(struct wb_dash *dash, int64_t after_ms,
                 int (*each)(void *context, const struct wb_dash_sample *sample), void *context)
{
    int err = 0;

    pthread_mutex_lock(&dash->lock);
    uint64_t first = dash->count > WB_DASH_SAMPLES ? dash->count - WB_DASH_SAMPLES : 0;
    for (uint64_t i = first; i < dash->count && err == 0; i++)
        if (dash->samples[i % WB_DASH_SAMPLES].time_ms > after_ms)
            err = each(context, &dash->samples[i % WB_DASH_SAMPLES]);
    pthread_mutex_unlock(&dash->lock);
    return err;
}

int wb_dash_crawls(struct wb_dash *dash, struct wb_buf *out)
{
    pthread_mutex_lock(&dash->lock);
    int err = wb_buf_append_slice(out, wb_buf_slice(&dash->crawls));
    pthread_mutex_unlock(&dash->lock);
    return err;
}
