/* httpd_crew.c - worker threads and their queues. It knows nothing about connections. */
#include "httpd/httpd_crew.h"
#include "base/mem.h"

#include <signal.h>
#include <unistd.h>

#define PASSED_MAX 8u

/* ---- choosing ------------------------------------------------------------------------------------ */

/* True if the next job is a piece. Called with the lock held. */
static bool is_turn_of_pieces(const struct wb_httpd_crew *crew)
{
    if (!crew->pieces.first || crew->pieces_running >= crew->pieces_max)
        return false;
    return !crew->requests.first || crew->passed >= PASSED_MAX;
}

/* Removes the next job from its queue; NULL: there is none for this worker now. Called with the lock held. */
static struct wb_httpd_job *take_job(struct wb_httpd_crew *crew)
{
    bool piece = is_turn_of_pieces(crew);

    if (!piece && !crew->requests.first)
        return NULL;
    struct wb_list_node *node = wb_list_pop(piece ? &crew->pieces : &crew->requests);
    struct wb_httpd_job *job = WB_CONTAINER_OF(node, struct wb_httpd_job, node);
    WB_CHECK(job->state == WB_JOB_WAITING && job->piece == piece);
    job->state = WB_JOB_RUNNING;
    if (piece) {
        crew->pieces_running++;
        crew->passed = 0;
    } else {
        crew->requests_waiting--;
        crew->passed = crew->pieces.first ? crew->passed + 1 : 0;
    }
    return job;
}

/* Puts a job that was run where the loop finds it. Called with the lock held. */
static void finish_job(struct wb_httpd_crew *crew, struct wb_httpd_job *job)
{
    uint64_t one = 1;
    bool tell = !crew->done.first;

    if (job->piece && crew->pieces_running-- == crew->pieces_max && crew->pieces.first)
        pthread_cond_signal(&crew->work); /* a worker may have gone to sleep because of the limit */
    job->state = WB_JOB_DONE;
    wb_list_append(&crew->done, &job->node);
    if (tell)
        (void)!write(crew->done_fd, &one, sizeof one);
}

/* ---- threads --------------------------------------------------------------------------------------- */

static void run_jobs(struct wb_httpd_crew *crew, void *worker)
{
    pthread_mutex_lock(&crew->lock);
    for (;;) {
        struct wb_httpd_job *job = take_job(crew);
        if (job) {
            pthread_mutex_unlock(&crew->lock);
            job->run(job, worker);
            pthread_mutex_lock(&crew->lock);
            finish_job(crew, job);
        } else if (crew->stopping && !crew->pieces.first) {
            break;
        } else {
            pthread_cond_wait(&crew->work, &crew->lock);
        }
    }
    pthread_cond_broadcast(&crew->work);
    pthread_mutex_unlock(&crew->lock);
}

static void *work(void *context)
{
    struct wb_httpd_crew *crew = context;
    const struct wb_httpd_app *app = crew->app;
    void *worker = NULL;
    int err = app->worker_open ? app->worker_open(app->context, &worker) : 0;

    pthread_mutex_lock(&crew->lock);
    crew->opened++;
    if (err < 0 && crew->error.code == 0)
        wb_error_save(err, &crew->error);
    pthread_cond_broadcast(&crew->changed);
    pthread_mutex_unlock(&crew->lock);
    if (err < 0)
        return NULL;
    run_jobs(crew, worker);
    if (app->worker_close)
        app->worker_close(app->context, worker);
    return NULL;
}

/* Signals are for the thread that runs the loop. */
static int start_threads(struct wb_httpd_crew *crew, unsigned workers)
{
    sigset_t all, before;
    int err = 0;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    while (err == 0 && crew->count < workers) {
        err = pthread_create(&crew->threads[crew->count], NULL, work, crew);
        crew->count += err == 0;
    }
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return err == 0 ? 0 : wb_fail(WB_E_IO, "cannot start %u worker threads: %s", workers, strerror(err));
}

int wb_httpd_crew_start(struct wb_httpd_crew *crew, const struct wb_httpd_app *app, int done_fd, unsigned workers,
                        size_t requests_max)
{
    WB_CHECK(workers > 0);
    *crew = (struct wb_httpd_crew){.app = app,
                                   .done_fd = done_fd,
                                   .requests_max = requests_max,
                                   .pieces_max = workers > 1 ? workers - (workers + 3) / 4 : 1};
    crew->threads = wb_alloc_zero(workers, sizeof *crew->threads);
    if (!crew->threads)
        return WB_E_NOMEM;
    pthread_mutex_init(&crew->lock, NULL);
    pthread_cond_init(&crew->work, NULL);
    pthread_cond_init(&crew->changed, NULL);
    int err = start_threads(crew, workers);
    if (err < 0)
        wb_error_save(err, &crew->error);
    pthread_mutex_lock(&crew->lock);
    while (crew->opened < crew->count)
        pthread_cond_wait(&crew->changed, &crew->lock);
    bool failed = crew->error.code < 0;
    pthread_mutex_unlock(&crew->lock);
    if (!failed)
        return 0;
    struct wb_error_copy error = crew->error;
    wb_httpd_crew_stop(crew);
    return wb_error_restore(&error);
}

void wb_httpd_crew_stop(struct wb_httpd_crew *crew)
{
    if (!crew->threads)
        return;
    pthread_mutex_lock(&crew->lock);
    crew->stopping = true;
    pthread_cond_broadcast(&crew->work);
    pthread_mutex_unlock(&crew->lock);
    for (unsigned i = 0; i < crew->count; i++)
        pthread_join(crew->threads[i], NULL);
    WB_CHECK(!crew->requests.first && !crew->pieces.first);
    pthread_cond_destroy(&crew->changed);
    pthread_cond_destroy(&crew->work);
    pthread_mutex_destroy(&crew->lock);
    wb_free(crew->threads);
    crew->threads = NULL;
}

/* ---- for the loop ------------------------------------------------------------------------------------ */

bool wb_httpd_crew_add(struct wb_httpd_crew *crew, struct wb_httpd_job *job, bool piece)
{
    pthread_mutex_lock(&crew->lock);
    WB_CHECK(job->state == WB_JOB_IDLE && !crew->stopping);
    bool room = piece || crew->requests_waiting < crew->requests_max;
    if (room) {
        job->state = WB_JOB_WAITING;
        job->piece = piece;
        wb_list_append(piece ? &crew->pieces : &crew->requests, &job->node);
        crew->requests_waiting += !piece;
        pthread_cond_signal(&crew->work);
    }
    pthread_mutex_unlock(&crew->lock);
    return room;
}

bool wb_httpd_crew_cancel(struct wb_httpd_crew *crew, struct wb_httpd_job *job)
{
    pthread_mutex_lock(&crew->lock);
    bool waits = job->state == WB_JOB_WAITING;
    if (waits) {
        wb_list_remove(job->piece ? &crew->pieces : &crew->requests, &job->node);
        crew->requests_waiting -= !job->piece;
        job->state = WB_JOB_IDLE;
    }
    pthread_mutex_unlock(&crew->lock);
    return waits;
}

struct wb_list wb_httpd_crew_collect(struct wb_httpd_crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    struct wb_list done = crew->done;
    crew->done = WB_LIST_INIT;
    for (struct wb_list_node *node = done.first; node; node = node->next)
        WB_CONTAINER_OF(node, struct wb_httpd_job, node)->state = WB_JOB_IDLE;
    pthread_mutex_unlock(&crew->lock);
    return done;
}
