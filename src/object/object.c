/*
 * object.c - what all kinds of object stores have in common: repeating, waiting, counting.
 *
 *   caller -> repeat() -> [ a place among requests_max ] -> one attempt of a kind (objectkind.h)
 *                ^                                                |
 *                +---- a pause of random length <---- WB_E_DOWN --+
 *
 * What counts as patience is the time in which nothing moved: the pauses, and the silence with which attempts ended. So
 * a slow transfer that fails late is repeated all the same, and a store that says nothing at all is given up after
 * patience_ms. Pauses grow to PAUSE_MS_MAX and are drawn from all lengths up to that ("full jitter"), so that many
 * clients of a store that comes back do not come at the same time. Nobody attempts one thing more than ATTEMPTS_MAX
 * times.
 */
#include "object/object.h"
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "object/objectkind.h"
#include "os/clock.h"
#include "os/random.h"
#include "os/stop.h"

#include <pthread.h>
#include <time.h>

#define MAGIC 0x6a626f77u
#define REQUESTS_DEFAULT 16
#define PATIENCE_MS_DEFAULT 30000
#define STALL_MS 20000         /* an attempt fails if nothing moves for so long */
#define STALL_MS_STOPPING 3000 /* the same when the process was asked to stop */
#define STALL_MS_LEAST 1000
#define PAUSE_MS_FIRST 200
#define PAUSE_MS_MAX 6000
#define LOOK_MS 20 /* how often a pause looks at the clock and at the stop flag */
enum { ATTEMPTS_MAX = 15, PAGE_BARREN_MAX = 1000 };

struct wb_object_store {
    unsigned magic;
    struct wb_object_url url;
    const struct wb_object_kind *kind;
    void *place;
    struct wb_object_options options;
    pthread_mutex_t mutex; /* for what follows */
    pthread_cond_t left;   /* a request has ended */
    unsigned running;
    struct wb_object_counts counts;
};

/* ---- repeating --------------------------------------------------------------------------------------------- */

/* One request, which may take several attempts. */
struct request {
    struct wb_object_store *store;
    const char *name; /* or the prefix of a listing */
    struct wb_slice bytes;
    struct wb_object_span span;
    struct wb_buf *bytes_out;
    uint64_t *size_out;
    struct wb_object_page *page;
};

typedef int (*attempt_fn)(const struct request *request, struct wb_object_try *try);

static int64_t now_ms(void)
{
    return wb_clock_mono_ns() / 1000000;
}

static bool must_stop(const struct wb_object_store *store)
{
    return store->options.stoppable && wb_stop_requested();
}

/* The length of the pause after so many attempts. */
static int64_t pause_ms(unsigned tried)
{
    int64_t most = PAUSE_MS_FIRST;
    uint64_t chance;

    for (unsigned i = 1; i < tried && most < PAUSE_MS_MAX; i++)
        most *= 2;
    most = most < PAUSE_MS_MAX ? most : PAUSE_MS_MAX;
    wb_random_bytes(&chance, sizeof chance);
    return 1 + (int64_t)(chance % (uint64_t)most);
}

void (*wb_object_pausing)(int64_t length_ms);

/* Waits. Returns how long it did: less than asked for if the process was asked to stop, more if the clock has jumped.
 */
static int64_t wait_ms(const struct wb_object_store *store, int64_t length_ms)
{
    int64_t begin = now_ms(), passed = 0;

    if (wb_object_pausing) {
        wb_object_pausing(length_ms);
        passed = now_ms() - begin;
    }
    while (passed < length_ms && !must_stop(store)) {
        int64_t part = length_ms - passed < LOOK_MS ? length_ms - passed : LOOK_MS;
        nanosleep(&(struct timespec){.tv_nsec = (long)part * 1000000}, NULL);
        passed = now_ms() - begin;
    }
    return passed;
}

static int attempt_once(attempt_fn attempt, const struct request *request, struct wb_object_try *try)
{
    struct wb_object_store *store = request->store;

    pthread_mutex_lock(&store->mutex);
    while (store->running >= store->options.requests_max)
        pthread_cond_wait(&store->left, &store->mutex);
    store->running++;
    pthread_mutex_unlock(&store->mutex);
    int64_t begin = now_ms();
    int err = attempt(request, try);
    if (try->silence_ms < 0)
        try->silence_ms = now_ms() - begin;
    pthread_mutex_lock(&store->mutex);
    store->running--;
    store->counts.repeated += err == WB_E_DOWN;
    pthread_cond_signal(&store->left);
    pthread_mutex_unlock(&store->mutex);
    return err;
}

/* The error of a request that was given up. The message so far says how the last attempt failed. */
static int give_up(const struct wb_object_store *store, int code, unsigned tried, int64_t quiet_ms)
{
    struct wb_error_copy why;

    wb_error_save(code, &why);
    if (code == WB_E_STOPPED)
        return wb_fail(code, "stopped while waiting for %s: %.600s", store->url.text, why.message);
    return wb_fail(code, "%s does not answer: %.600s (tried %u times in %lld s)", store->url.text, why.message, tried,
                   (long long)(quiet_ms / 1000));
}

/* Makes attempts until one succeeds, fails for good, or patience ends. */
static int repeat(attempt_fn attempt, const struct request *request)
{
    struct wb_object_store *store = request->store;
    int64_t patience = store->options.patience_ms, quiet = 0;

    WB_CHECK(store->magic == MAGIC);
    for (unsigned tried = 1;; tried++) {
        struct wb_object_try try = {
            .stoppable = store->options.stoppable, .stall_ms = patience - quiet, .silence_ms = -1};
        if (try.stall_ms > STALL_MS)
            try.stall_ms = STALL_MS;
        if (try.stall_ms < STALL_MS_LEAST)
            try.stall_ms = STALL_MS_LEAST;
        if (must_stop(store) && try.stall_ms > STALL_MS_STOPPING)
            try.stall_ms = STALL_MS_STOPPING;
        int err = attempt_once(attempt, request, &try);
        if (err != WB_E_DOWN)
            return err;
        quiet += try.silence_ms;
        if (quiet >= patience || tried == ATTEMPTS_MAX)
            return give_up(store, WB_E_DOWN, tried, quiet);
        /* What is left of the time before the last attempt is spent waiting for it. */
        int64_t left = patience - quiet, pause = tried == ATTEMPTS_MAX - 1 ? left : pause_ms(tried);
        quiet += wait_ms(store, pause < left ? pause : left);
        if (must_stop(store))
            return give_up(store, WB_E_STOPPED, tried, quiet);
    }
}

/* Refuses names that could lead out of the store, or that a directory cannot have. */
static int check_name(const struct wb_object_store *store, const char *name)
{
    WB_CHECK(store->magic == MAGIC);
    return wb_object_name_valid(name) ? 0
                                      : wb_fail(WB_E_INVALID, "'%.*s' cannot be the name of an object in %s",
                                                WB_OBJECT_NAME_MAX, name, store->url.text);
}

static void count(struct wb_object_store *store, uint64_t *counter, uint64_t *bytes, uint64_t len)
{
    pthread_mutex_lock(&store->mutex);
    (*counter)++;
    if (bytes)
        *bytes += len;
    pthread_mutex_unlock(&store->mutex);
}

/* ---- opening ----------------------------------------------------------------------------------------------- */

int wb_object_open(const char *url, const struct wb_object_options *options, struct wb_object_store **store_out)
{
    struct wb_object_store *store = wb_alloc_zero(1, sizeof *store);
    int err;

    *store_out = NULL;
    if (!store)
        return WB_E_NOMEM;
    store->magic = MAGIC;
    if (options)
        store->options = *options;
    if (store->options.requests_max == 0)
        store->options.requests_max = REQUESTS_DEFAULT;
    if (store->options.patience_ms == 0)
        store->options.patience_ms = PATIENCE_MS_DEFAULT;
    pthread_mutex_init(&store->mutex, NULL);
    pthread_cond_init(&store->left, NULL);
    err = wb_object_url_parse(url, &store->url);
    if (err == 0) {
        store->kind = store->url.is_s3 ? &wb_object_s3 : &wb_object_files;
        err = store->kind->open(&store->url, &store->place);
    }
    if (err < 0)
        wb_object_close(store);
    else
        *store_out = store;
    return err;
}

void wb_object_close(struct wb_object_store *store)
{
    if (!store)
        return;
    WB_CHECK(store->magic == MAGIC && store->running == 0);
    if (store->kind)
        store->kind->close(store->place);
    wb_object_url_release(&store->url);
    pthread_cond_destroy(&store->left);
    pthread_mutex_destroy(&store->mutex);
    store->magic = 0;
    wb_free(store);
}

const char *wb_object_url(const struct wb_object_store *store)
{
    WB_CHECK(store->magic == MAGIC);
    return store->url.text;
}

void wb_object_counts(struct wb_object_store *store, struct wb_object_counts *counts_out)
{
    WB_CHECK(store->magic == MAGIC);
    pthread_mutex_lock(&store->mutex);
    *counts_out = store->counts;
    pthread_mutex_unlock(&store->mutex);
}

/* ---- requests ---------------------------------------------------------------------------------------------- */

static int attempt_put(const struct request *r, struct wb_object_try *try)
{
    return r->store->kind->put(r->store->place, r->name, r->bytes, try);
}

int wb_object_put(struct wb_object_store *store, const char *name, struct wb_slice bytes)
{
    struct request request = {.store = store, .name = name, .bytes = bytes};
    int err = check_name(store, name);

    WB_CHECK(bytes.len <= WB_OBJECT_MAX);
    if (err == 0)
        err = repeat(attempt_put, &request);
    if (err == 0)
        count(store, &store->counts.puts, &store->counts.bytes_put, bytes.len);
    return err;
}

static int attempt_get(const struct request *r, struct wb_object_try *try)
{
    int err = r->store->kind->get(r->store->place, r->name, &r->span, r->bytes_out, try);

    if (err < 0)
        wb_buf_clear(r->bytes_out);
    return err;
}

static int get(struct wb_object_store *store, const char *name, struct wb_object_span span, struct wb_buf *bytes_out)
{
    struct request request = {.store = store, .name = name, .span = span, .bytes_out = bytes_out};
    int err;

    *bytes_out = WB_BUF_INIT;
    err = check_name(store, name);
    if (err == 0)
        err = repeat(attempt_get, &request);
    WB_CHECK(err < 0 || bytes_out->len <= span.len);
    if (err == 0)
        count(store, &store->counts.gets, &store->counts.bytes_got, bytes_out->len);
    else
        wb_buf_release(bytes_out);
    return err;
}

int wb_object_get(struct wb_object_store *store, const char *name, size_t max, struct wb_buf *bytes_out)
{
    return get(store, name, (struct wb_object_span){.whole = true, .len = max}, bytes_out);
}

int wb_object_get_range(struct wb_object_store *store, const char *name, uint64_t offset, size_t len,
                        struct wb_buf *bytes_out)
{
    WB_CHECK(len > 0 && len <= WB_OBJECT_MAX && offset <= INT64_MAX);
    return get(store, name, (struct wb_object_span){.offset = offset, .len = len}, bytes_out);
}

static int attempt_size(const struct request *r, struct wb_object_try *try)
{
    return r->store->kind->size(r->store->place, r->name, r->size_out, try);
}

int wb_object_size(struct wb_object_store *store, const char *name, uint64_t *size_out)
{
    struct request request = {.store = store, .name = name, .size_out = size_out};
    int err;

    *size_out = 0;
    err = check_name(store, name);
    if (err == 0)
        err = repeat(attempt_size, &request);
    if (err == 0)
        count(store, &store->counts.sizes, NULL, 0);
    return err;
}

static int attempt_remove(const struct request *r, struct wb_object_try *try)
{
    return r->store->kind->remove(r->store->place, r->name, try);
}

int wb_object_delete(struct wb_object_store *store, const char *name)
{
    struct request request = {.store = store, .name = name};
    int err = check_name(store, name);

    if (err == 0)
        err = repeat(attempt_remove, &request);
    if (err == 0)
        count(store, &store->counts.deletes, NULL, 0);
    return err;
}

/* ---- listing ----------------------------------------------------------------------------------------------- */

bool wb_object_name_valid(const char *name)
{
    size_t len = strlen(name);

    for (size_t i = 0; i < len; i++) {
        bool begins = i == 0 || name[i - 1] == '/';
        if (!wb_ascii_is_letter(name[i]) && !wb_ascii_is_digit(name[i]) && !strchr("._-/", name[i]))
            return false;
        if (begins && (name[i] == '.' || name[i] == '/'))
            return false;
    }
    return len > 0 && len <= WB_OBJECT_NAME_MAX && name[len - 1] != '/';
}

int wb_object_page_add(struct wb_object_page *page, const char *name, uint64_t size)
{
    struct wb_object_entry entry = {page->names.len, size};
    int err = wb_buf_append(&page->names, name, strlen(name) + 1);

    return err == 0 ? wb_vec_push(&page->entries, entry) : err;
}

static int attempt_list(const struct request *r, struct wb_object_try *try)
{
    wb_buf_clear(&r->page->names);
    wb_vec_clear(&r->page->entries);
    r->page->more = false;
    return r->store->kind->list(r->store->place, r->name, r->page, try);
}

/* A listing that is handed to the caller. */
struct listing {
    struct wb_object_store *store;
    struct wb_slice prefix;
    wb_object_each each;
    void *context;
    char last[WB_OBJECT_NAME_MAX + 1]; /* the name that was handed over last */
};

static int hand_over(struct listing *listing, const struct wb_object_page *page)
{
    int result = 0;

    for (size_t i = 0; result == 0 && i < page->entries.count; i++) {
        const char *name = page->names.ptr + page->entries.items[i].name_at;
        if (!wb_slice_starts(wb_slice_str(name), listing->prefix))
            continue;
        if (strcmp(listing->last, name) >= 0)
            return wb_fail(WB_E_PROTO, "%s does not list its objects in ascending order: %s follows %s",
                           listing->store->url.text, name, listing->last);
        memcpy(listing->last, name, strlen(name) + 1);
        result = listing->each(listing->context, name, page->entries.items[i].size);
    }
    return result;
}

int wb_object_list(struct wb_object_store *store, const char *prefix, wb_object_each each, void *context)
{
    struct wb_object_page page = {.names = WB_BUF_INIT};
    struct request request = {.store = store, .name = prefix, .page = &page};
    struct listing listing = {.store = store, .prefix = wb_slice_str(prefix), .each = each, .context = context};
    unsigned barren = 0; /* pages without anything, one after the other */
    int result;

    do {
        result = repeat(attempt_list, &request);
        if (result == 0) {
            count(store, &store->counts.lists, NULL, 0);
            barren = page.entries.count ? 0 : barren + 1;
            result = hand_over(&listing, &page);
        }
        if (result == 0 && page.more && barren == PAGE_BARREN_MAX)
            result = wb_fail(WB_E_PROTO, "%s has listed nothing on %d pages, one after the other", store->url.text,
                             PAGE_BARREN_MAX);
    } while (result == 0 && page.more);
    wb_buf_release(&page.names);
    wb_vec_release(&page.entries);
    wb_buf_release(&page.token);
    return result;
}
