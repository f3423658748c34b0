/* httpd_crew.c - worker threads and their queues. It knows nothing about connections. */
#include "httpd/httpd_crew.h"
#include "base/mem.h"

#include <signal.h>
#include <unistd.h>

#define PASSED_MAX 8u

/* ---- choosing ------------------------------------------------------------------------------------ */

/* Whether a job of this kind waits, and a worker may take it. Called with the lock held. */
static bool is_ready(const struct wb_httpd_crew *crew, enum wb_httpd_job_kind kind)
{
    if (!crew->queues[kind].first)
        return false;
    if (kind == WB_JOB_QUICK)
        return true;
    bool room = crew->running[WB_JOB_SLOW] + crew->running[WB_JOB_PIECE] < crew->shared_max;
    return room && (kind == WB_JOB_PIECE || crew->running[WB_JOB_SLOW] < crew->slow_max);
}

/* The kind of the next job; WB_JOB_KINDS: there is none now. Slow requests and pieces take turns. */
static enum wb_httpd_job_kind next_kind(const struct wb_httpd_crew *crew)
{
    enum wb_httpd_job_kind other = crew->last == WB_JOB_SLOW ? WB_JOB_PIECE : WB_JOB_SLOW;

    if (!is_ready(crew, other))
        other = crew->last;
    if (!is_ready(crew, other))
        other = WB_JOB_KINDS;
    bool quick = is_ready(crew, WB_JOB_QUICK) && (other == WB_JOB_KINDS || crew->passed < PASSED_MAX);
    return quick ? WB_JOB_QUICK : other;
}

/* Removes the next job from its queue; NULL: there is none for this worker now. Called with the lock held. */
static struct wb_httpd_job *take_job(struct wb_httpd_crew *crew)
{
    enum wb_httpd_job_kind kind = next_kind(crew);

    if (kind == WB_JOB_KINDS)
        return NULL;
    struct wb_httpd_job *job = WB_CONTAINER_OF(wb_list_pop(&crew->queues[kind]), struct wb_httpd_job, node);
    WB_CHECK(job->state == WB_JOB_WAITING && job->kind == kind);
    job->state = WB_JOB_RUNNING;
    crew->waiting[kind]--;
    crew->running[kind]++;
    if (kind == WB_JOB_QUICK) {
        crew->passed += is_ready(crew, WB_JOB_SLOW) || is_ready(crew, WB_JOB_PIECE);
    } else {
        crew->passed = 0;
        crew->last = kind;
    }
    return job;
}

/* Puts a job that was run where the loop finds it. Called with the lock held. */
static void finish_job(struct wb_httpd_crew *crew, struct wb_httpd_job *job)
{
    uint64_t one = 1;
    bool tell = !crew->done.first;

    crew->running[job->kind]--;
    if (is_ready(crew, WB_JOB_SLOW) || is_ready(crew, WB_JOB_PIECE))
        pthread_cond_signal(&crew->work); /* a worker may have gone to sleep because of the limit */
    job->state = WB_JOB_DONE;
    wb_list_append(&crew->done, &job->node);
    if (tell)
        (void)!write(crew->done_fd, &one, sizeof one);
}

/* ---- threads --------------------------------------------------------------------------------------- */

static void run_jobs(struct wb_httpd_crew *crew, void *worker)
{
    uint64_t rests = 0;

    pthread_mutex_lock(&crew->lock);
    for (;;) {
        struct wb_httpd_job *job = take_job(crew);
        if (job) {
            pthread_mutex_unlock(&crew->lock);
            job->run(job, worker);
            pthread_mutex_lock(&crew->lock);
            finish_job(crew, job);
        } else if (crew->stopping && !crew->queues[WB_JOB_PIECE].first && !crew->queues[WB_JOB_SLOW].first) {
            break;
        } else if (rests != crew->rests) {
            rests = crew->rests;
            pthread_mutex_unlock(&crew->lock);
            if (crew->app->rest)
                crew->app->rest(crew->app->context, worker);
            pthread_mutex_lock(&crew->lock);
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
                                   .shared_max = workers > 1 ? workers - (workers + 3) / 4 : 1,
                                   .slow_max = workers > 1 ? workers / 2 : 1,
                                   .last = WB_JOB_PIECE};
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

void wb_httpd_crew_rest(struct wb_httpd_crew *crew)
{
    pthread_mutex_lock(&crew->lock);
    crew->rests++;
    pthread_cond_broadcast(&crew->work);
    pthread_mutex_unlock(&crew->lock);
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
    for (unsigned kind = 0; kind < WB_JOB_KINDS; kind++)
        WB_CHECK(!crew->queues[kind].first && crew->running[kind] == 0);
    pthread_cond_destroy(&crew->changed);
    pthread_cond_destroy(&crew->work);
    pthread_mutex_destroy(&crew->lock);
    wb_free(crew->threads);
    crew->threads = NULL;
}

/* ---- for the loop ------------------------------------------------------------------------------------ */

bool wb_httpd_crew_add(struct wb_httpd_crew *crew, struct wb_httpd_job *job, enum wb_httpd_job_kind kind)
{
    size_t max = kind == WB_JOB_PIECE  ? SIZE_MAX
                 : kind == WB_JOB_SLOW ? (crew->requests_max + 3) / 4
                                       : crew->requests_max;

    pthread_mutex_lock(&crew->lock);
    WB_CHECK(job->state == WB_JOB_IDLE && !crew->stopping);
    bool room = crew->waiting[kind] < max;
    if (room) {
        job->state = WB_JOB_WAITING;
        job->kind = kind;
        wb_list_append(&crew->queues[kind], &job->node);
        crew->waiting[kind]++;
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
        wb_list_remove(&crew->queues[job->kind], &job->node);
        crew->waiting[job->kind]--;
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
