/* dash.c - takes a sample every second, and gives it to the chronicle. See dash.h. */
#include "serve/dash.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "os/clock.h"
#include "os/folder.h"
#include "os/heaps.h"

#include <jansson.h>
#include <math.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

enum {
    COST_FACTOR = 2000,         /* counting takes a two-thousandth of the thread's time at most */
    CRAWLS_MAX = 8,             /* as many can run at once (docs/design/0030-control.md) */
    WATCHED_MAX_MS = 60 * 1000, /* a sample that is later than this leaves a gap */
    NOW_SAMPLES = 10,           /* over which rates of this moment are taken */
    TRIM_SAMPLES = 10,          /* after which freed memory goes back to the system */
};

/* What one crawl has counted so far. */
struct dash_crawl {
    int64_t pid;
    double age_s;
    double counts[WB_DASH_NUMBERS]; /* only those of crawls that are counted */
};

/* The crawls of one sample. */
struct dash_crawls {
    struct dash_crawl items[CRAWLS_MAX];
    size_t count;
};

#define DASH_MAGIC 0x57424441u

struct wb_dash {
    uint32_t magic; /* DASH_MAGIC from start to stop */
    struct wb_server *server;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool ended;
    struct wb_dash_sample samples[WB_DASH_SAMPLES]; /* a ring */
    uint64_t count;                                 /* samples ever taken */
    struct wb_buf crawls;
    struct wb_chronicle *chronicle;
    /* Used by the thread alone. */
    struct dash_crawls before; /* the crawls of the last sample */
    int64_t sampled_ns;        /* when that was; 0: never */
    struct wb_store *store;
    struct wb_dash_fresh *fresh;
    int64_t count_after_ns; /* the repository is counted again then */
    double counted[WB_DASH_NUMBERS];
    double trimmed; /* requests, when freed memory went back to the system */
};

/* ---- the repository ---------------------------------------------------------------------------------------------- */

static void note_stat(struct wb_dash *dash, const struct wb_answer_stat *s)
{
    double *n = dash->counted;

    n[WB_DASH_PAGES] = (double)s->store.pages;
    n[WB_DASH_CAPTURES] = n[WB_DASH_ARRIVED] = (double)s->store.captures;
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
    struct wb_folder_space space;
    struct wb_answer_stat stat;

    if (began < dash->count_after_ns)
        return;
    if (wb_answer_stat_read(dir, dash->store, &stat) == 0)
        note_stat(dash, &stat);
    wb_answer_stat_release(&stat);
    (void)wb_dash_fresh_read(dash->fresh, dir);
    if (wb_folder_space(dir, &space) == 0)
        dash->counted[WB_DASH_DISK_FREE] = (double)space.free;
    int64_t now = wb_clock_mono_ns();
    dash->count_after_ns = now + (now - began) * COST_FACTOR;
}

/* ---- crawls ------------------------------------------------------------------------------------------------------ */

static void add_number(double *sum, double number)
{
    *sum = (isnan(*sum) ? 0 : *sum) + number;
}

static void add_crawl(struct wb_dash_sample *sample, struct dash_crawls *crawls, struct wb_slice line)
{
    static const struct {
        enum wb_dash_number number;
        const char *key;
        bool of_sites;
    } fields[] = {
        {WB_DASH_CRAWL_PAGES, "pages", false},         {WB_DASH_CRAWL_REQUESTS, "requests", false},
        {WB_DASH_CRAWL_BYTES, "wire_bytes", false},    {WB_DASH_CRAWL_ERRORS, "error_count", false},
        {WB_DASH_CRAWL_UNCHANGED, "unchanged", false}, {WB_DASH_CRAWL_GONE, "gone", false},
        {WB_DASH_CRAWL_ACTIVE, "active", true},        {WB_DASH_CRAWL_WAITING, "waiting", true},
        {WB_DASH_CRAWL_QUEUED, "queued", false},       {WB_DASH_CRAWL_FLYING, "in_flight", false},
    };
    json_t *status = json_loadb(line.ptr, line.len, 0, NULL);

    if (!status || crawls->count == CRAWLS_MAX) {
        json_decref(status);
        return;
    }
    struct dash_crawl *crawl = &crawls->items[crawls->count++];
    crawl->pid = json_integer_value(json_object_get(status, "pid"));
    crawl->age_s = json_number_value(json_object_get(status, "seconds"));
    sample->numbers[WB_DASH_CRAWLS]++;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++) {
        const json_t *object = fields[i].of_sites ? json_object_get(status, "sites") : status;
        double value = json_number_value(json_object_get(object, fields[i].key));
        add_number(&sample->numbers[fields[i].number], value);
        crawl->counts[fields[i].number] = value;
    }
    json_decref(status);
}

static void ask_crawls(struct wb_dash *dash, struct wb_dash_sample *sample, struct dash_crawls *crawls,
                       struct wb_buf *answer)
{
    struct wb_control_command command = {.verb = WB_CONTROL_STATUS};
    struct wb_slice rest, line;

    WB_CHECK(crawls->count == 0);
    sample->numbers[WB_DASH_CRAWLS] = 0;
    for (enum wb_dash_number n = WB_DASH_CRAWL_PAGES; n <= WB_DASH_CRAWL_GONE; n++)
        sample->numbers[n] = 0;
    if (wb_control_send(dash->server->options->dir, &command, answer) < 0)
        wb_buf_clear(answer); /* no crawl is running, or none that answers */
    rest = wb_buf_slice(answer);
    while (wb_slice_next_line(&rest, &line))
        add_crawl(sample, crawls, line);
}

/* ---- the chronicle ----------------------------------------------------------------------------------------------- */

/* How much the crawls have counted since the last sample. One that is new and was not there before counts from 0. */
static double crawl_growth(const struct wb_dash *dash, const struct dash_crawls *now, size_t number, double span_s)
{
    double sum = 0;

    WB_CHECK(number >= WB_DASH_CRAWL_PAGES && number <= WB_DASH_CRAWL_GONE);
    WB_CHECK(now->count <= CRAWLS_MAX);
    for (size_t i = 0; i < now->count; i++) {
        const struct dash_crawl *crawl = &now->items[i];
        double before = crawl->age_s <= span_s + 1 ? 0 : crawl->counts[number];
        for (size_t k = 0; k < dash->before.count; k++)
            if (dash->before.items[k].pid == crawl->pid)
                before = dash->before.items[k].counts[number];
        sum += crawl->counts[number] > before ? crawl->counts[number] - before : 0;
    }
    return sum;
}

/* What happened since the last sample, as a record. Nothing is known about the time before the first one. */
static void tell_chronicle(struct wb_dash *dash, const struct wb_dash_sample *last, const struct wb_dash_sample *sample,
                           const struct dash_crawls *crawls, int64_t span_ms)
{
    struct wb_chronicle_record record = {.start_s = wb_clock_wall_ms() / 1000};

    if (!last || span_ms <= 0 || span_ms > WATCHED_MAX_MS)
        return;
    record.watched_ms = (uint64_t)span_ms;
    for (size_t i = 0; i < WB_CHRONICLE_NUMBERS; i++) {
        double now = i < WB_DASH_NUMBERS ? sample->numbers[i] : NAN;
        if (i < WB_DASH_NUMBERS && wb_dash_numbers[i].counted) {
            bool of_crawls = i >= WB_DASH_CRAWL_PAGES && i <= WB_DASH_CRAWL_GONE;
            double grown = of_crawls ? crawl_growth(dash, crawls, i, (double)span_ms / 1000) : now - last->numbers[i];
            now = grown < 0 ? 0 : grown; /* NaN stays NaN */
        }
        record.numbers[i] = now;
    }
    /* A disk that takes nothing costs the second; the page says how full it is. */
    (void)wb_chronicle_add(dash->chronicle, &record);
}

/* ---- samples ----------------------------------------------------------------------------------------------------- */

static const struct wb_dash_sample *sample_before(const struct wb_dash *dash, uint64_t back)
{
    WB_CHECK(back < WB_DASH_SAMPLES); /* the ring has no more */
    return dash->count > back ? &dash->samples[(dash->count - 1 - back) % WB_DASH_SAMPLES] : NULL;
}

static void take_sample(struct wb_dash *dash)
{
    struct wb_dash_sample sample = {.time_ms = wb_clock_now_ms()};
    struct dash_crawls seen = {.count = 0};
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
    ask_crawls(dash, &sample, &seen, &crawls);
    int64_t now_ns = wb_clock_mono_ns();
    /* Only this thread changes the samples, so it may look at them without the lock. */
    tell_chronicle(dash, sample_before(dash, 0), &sample, &seen, (now_ns - dash->sampled_ns) / 1000000);
    dash->sampled_ns = now_ns;
    dash->before = seen;
    pthread_mutex_lock(&dash->lock);
    dash->samples[dash->count++ % WB_DASH_SAMPLES] = sample;
    wb_buf_release(&dash->crawls);
    dash->crawls = wb_buf_take(&crawls);
    pthread_mutex_unlock(&dash->lock);
}

/* Large replies leave holes in the heaps (docs/design/0034-serve.md). After requests, the system gets them back. */
static void trim(struct wb_dash *dash)
{
    double requests = sample_before(dash, 0)->numbers[WB_DASH_REQUESTS];

    if (dash->count % TRIM_SAMPLES != 0 || requests == dash->trimmed)
        return;
    wb_heaps_trim();
    dash->trimmed = requests;
}

static void *run(void *context)
{
    struct wb_dash *dash = context;
    struct timespec next;

    WB_CHECK(dash->magic == DASH_MAGIC);
    pthread_mutex_lock(&dash->lock);
    while (!dash->ended) {
        pthread_mutex_unlock(&dash->lock);
        take_sample(dash);
        trim(dash);
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
    wb_chronicle_counted counted = 0;
    for (size_t i = 0; i < WB_DASH_NUMBERS; i++)
        counted |= wb_dash_numbers[i].counted ? 1u << i : 0;
    int err = wb_store_open(dash->server->options->dir, WB_STORE_READ, &dash->store);
    if (err == 0)
        err = wb_dash_fresh_new(&dash->fresh);
    return err < 0 ? err : wb_chronicle_open(dash->server->options->dir, counted, &dash->chronicle);
}

static void free_parts(struct wb_dash *dash)
{
    wb_store_close(dash->store);
    wb_dash_fresh_free(dash->fresh);
    wb_chronicle_close(dash->chronicle);
    wb_buf_release(&dash->crawls);
    pthread_cond_destroy(&dash->changed);
    pthread_mutex_destroy(&dash->lock);
    dash->magic = 0;
    wb_free(dash);
}

int wb_dash_start(struct wb_server *server, struct wb_dash **dash_out)
{
    WB_CHECK(server->magic == WB_SERVER_MAGIC);
    WB_CHECK(server->httpd && server->metrics);
    struct wb_dash *dash = wb_alloc_zero(1, sizeof(*dash));

    *dash_out = NULL;
    if (!dash)
        return WB_E_NOMEM;
    dash->magic = DASH_MAGIC;
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
    WB_CHECK(dash->magic == DASH_MAGIC);
    WB_CHECK(!dash->ended);
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

    WB_CHECK(dash->magic == DASH_MAGIC);
    pthread_mutex_lock(&dash->lock);
    uint64_t first = dash->count > WB_DASH_SAMPLES ? dash->count - WB_DASH_SAMPLES : 0;
    for (uint64_t i = first; i < dash->count && err == 0; i++)
        if (dash->samples[i % WB_DASH_SAMPLES].time_ms > after_ms)
            err = each(context, &dash->samples[i % WB_DASH_SAMPLES]);
    pthread_mutex_unlock(&dash->lock);
    return err;
}

bool wb_dash_now(struct wb_dash *dash, struct wb_dash_now *now_out)
{
    WB_CHECK(dash->magic == DASH_MAGIC);
    *now_out = (struct wb_dash_now){.span_s = 0};
    pthread_mutex_lock(&dash->lock);
    bool known = dash->count > 0;
    if (known) {
        uint64_t back = dash->count > NOW_SAMPLES ? NOW_SAMPLES : dash->count - 1;
        const struct wb_dash_sample *old = sample_before(dash, back);
        now_out->sample = *sample_before(dash, 0);
        now_out->span_s = (double)(now_out->sample.time_ms - old->time_ms) / 1000;
        for (size_t i = 0; i < WB_DASH_NUMBERS; i++) {
            double grown = now_out->sample.numbers[i] - old->numbers[i];
            now_out->growth[i] = grown > 0 ? grown : 0; /* less: another crawl */
        }
    }
    pthread_mutex_unlock(&dash->lock);
    return known;
}

struct wb_chronicle *wb_dash_chronicle(struct wb_dash *dash)
{
    WB_CHECK(dash->magic == DASH_MAGIC);
    return dash->chronicle;
}

int wb_dash_crawls(struct wb_dash *dash, struct wb_buf *out)
{
    WB_CHECK(dash->magic == DASH_MAGIC);
    pthread_mutex_lock(&dash->lock);
    int err = wb_buf_append_slice(out, wb_buf_slice(&dash->crawls));
    pthread_mutex_unlock(&dash->lock);
    return err;
}
