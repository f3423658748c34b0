/* serve_worker.c - what a thread that answers requests has for itself: handles that belong to one thread. */
#include "base/check.h"
#include "base/error.h"
#include "base/mem.h"
#include "extract/extract.h"
#include "os/heaps.h"
#include "replay/replay.h"
#include "serve/server.h"

int wb_serve_worker_open(void *context, void **worker_out)
{
    struct wb_server *server = context;
    struct wb_serve_worker *worker = wb_alloc_zero(1, sizeof(*worker));
    int err = worker ? 0 : WB_E_NOMEM;

    WB_CHECK(server->magic == WB_SERVER_MAGIC);
    *worker_out = NULL;
    if (err == 0) {
        worker->magic = WB_SERVE_WORKER_MAGIC;
        worker->thread = pthread_self();
        worker->server = server;
        err = wb_store_open(server->options->dir, WB_STORE_READ, &worker->store);
    }
    if (err == 0)
        err = wb_extractor_new(&worker->extractor);
    if (err == 0)
        err = wb_replayer_new(&worker->replayer);
    if (err == 0)
        err = wb_patience_join(server->watch, &worker->patience);
    if (err < 0) {
        wb_serve_worker_close(server, worker);
        return err;
    }
    *worker_out = worker;
    return 0;
}

/*
 * A worker that nobody asks would keep its generation, and each of them another one. If the newest generation cannot be
 * opened, they keep what they have: it goes on answering.
 */
void wb_serve_worker_rest(void *context, void *handle)
{
    struct wb_server *server = context;
    struct wb_serve_worker *worker = handle;

    WB_CHECK(worker->magic == WB_SERVE_WORKER_MAGIC);
    WB_CHECK(pthread_equal(worker->thread, pthread_self()));
    if (!worker->searcher || worker->generation >= atomic_load(&server->opened))
        return;
    wb_searcher_close(worker->searcher);
    worker->searcher = NULL;
    wb_heaps_trim();
}

void wb_serve_worker_close(void *context, void *handle)
{
    struct wb_serve_worker *worker = handle;

    if (!worker)
        return;
    WB_CHECK(worker->magic == WB_SERVE_WORKER_MAGIC);
    WB_CHECK(pthread_equal(worker->thread, pthread_self()));
    wb_patience_leave(((struct wb_server *)context)->watch, worker->patience);
    wb_searcher_close(worker->searcher);
    wb_store_close(worker->store);
    wb_extractor_free(worker->extractor);
    wb_replayer_free(worker->replayer);
    worker->magic = 0;
    wb_free(worker);
}
