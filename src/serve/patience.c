/*
 * patience.c - how long a query may take. The room query has no clock; it looks at a flag instead. One thread sets the
 * flags of all workers whose time is up, a few milliseconds late at most.
 */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "base/vec.h"
#include "os/clock.h"
#include "serve/server.h"

#include <pthread.h>
#include <time.h>

enum { TICK_MS = 10, QUERY_MS = 2000 };

#define PATIENCE_MAGIC 0x57425054u
#define WATCH_MAGIC 0x57425077u

struct wb_patience {
    uint32_t magic;           /* PATIENCE_MAGIC from joining to leaving */
    _Atomic int64_t until_ns; /* 0: no query is under way */
    _Atomic bool up;
};

struct wb_watch {
    uint32_t magic; /* WATCH_MAGIC from new to free */
    pthread_t thread;
    pthread_mutex_t lock; /* of the list */
    WB_VEC(struct wb_patience *) all;
    int64_t query_ns;
    _Atomic bool ended;
};

static void tick(struct wb_watch *watch)
{
    WB_CHECK(watch->magic == WATCH_MAGIC);
    int64_t now = wb_clock_mono_ns();

    pthread_mutex_lock(&watch->lock);
    for (size_t i = 0; i < watch->all.count; i++) {
        struct wb_patience *patience = watch->all.items[i];
        WB_CHECK(patience->magic == PATIENCE_MAGIC);
        int64_t until = patience->until_ns;
        if (until && now >= until)
            patience->up = true;
    }
    pthread_mutex_unlock(&watch->lock);
}

static void *look(void *context)
{
    struct wb_watch *watch = context;

    while (!watch->ended) {
        tick(watch);
        nanosleep(&(struct timespec){.tv_nsec = TICK_MS * 1000000L}, NULL);
    }
    return NULL;
}

int wb_watch_new(unsigned query_ms, struct wb_watch **watch_out)
{
    struct wb_watch *watch = wb_alloc_zero(1, sizeof(*watch));

    *watch_out = NULL;
    if (!watch)
        return WB_E_NOMEM;
    watch->magic = WATCH_MAGIC;
    watch->query_ns = (int64_t)(query_ms ? query_ms : QUERY_MS) * 1000000;
    pthread_mutex_init(&watch->lock, NULL);
    if (pthread_create(&watch->thread, NULL, look, watch) != 0) {
        wb_free(watch);
        return wb_fail(WB_E_LIMIT, "cannot start a thread");
    }
    *watch_out = watch;
    return 0;
}

void wb_watch_free(struct wb_watch *watch)
{
    if (!watch)
        return;
    WB_CHECK(watch->magic == WATCH_MAGIC);
    WB_CHECK(watch->all.count == 0); /* the workers have left */
    watch->ended = true;
    pthread_join(watch->thread, NULL);
    wb_vec_release(&watch->all);
    pthread_mutex_destroy(&watch->lock);
    watch->magic = 0;
    wb_free(watch);
}

int wb_patience_join(struct wb_watch *watch, struct wb_patience **patience_out)
{
    WB_CHECK(watch->magic == WATCH_MAGIC);
    struct wb_patience *patience = wb_alloc_zero(1, sizeof(*patience));
    int err = patience ? 0 : WB_E_NOMEM;

    *patience_out = NULL;
    if (err < 0)
        return err;
    patience->magic = PATIENCE_MAGIC;
    pthread_mutex_lock(&watch->lock);
    err = wb_vec_push(&watch->all, patience);
    pthread_mutex_unlock(&watch->lock);
    if (err < 0) {
        wb_free(patience);
        return err;
    }
    *patience_out = patience;
    return 0;
}

void wb_patience_leave(struct wb_watch *watch, struct wb_patience *patience)
{
    if (!patience)
        return;
    WB_CHECK(watch->magic == WATCH_MAGIC);
    WB_CHECK(patience->magic == PATIENCE_MAGIC);
    pthread_mutex_lock(&watch->lock);
    size_t at = 0;
    while (at < watch->all.count && watch->all.items[at] != patience)
        at++;
    WB_CHECK(at < watch->all.count); /* it has joined */
    watch->all.items[at] = watch->all.items[--watch->all.count];
    pthread_mutex_unlock(&watch->lock);
    patience->magic = 0;
    wb_free(patience);
}

/* The watch may set the flag of the query before just now; so the end of the time comes first, then the flag. */
const _Atomic bool *wb_patience_begin(struct wb_serve_worker *worker)
{
    struct wb_patience *patience = worker->patience;

    WB_CHECK(worker->magic == WB_SERVE_WORKER_MAGIC);
    WB_CHECK(patience->magic == PATIENCE_MAGIC);
    WB_CHECK(patience->until_ns == 0); /* a worker does one query at a time */
    patience->until_ns = wb_clock_mono_ns() + worker->server->watch->query_ns;
    patience->up = false;
    return &patience->up;
}

void wb_patience_end(struct wb_serve_worker *worker)
{
    WB_CHECK(worker->magic == WB_SERVE_WORKER_MAGIC);
    WB_CHECK(worker->patience->magic == PATIENCE_MAGIC);
    worker->patience->until_ns = 0;
}
