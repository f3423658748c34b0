/*
 * httpd_crew.h - the worker threads, and the queues that they take their jobs from.
 *
 *   loop -> [quick requests] -> workers -> [done] -> loop (told through an eventfd)
 *           [slow requests]
 *           [pieces]
 *
 * Quick requests come before slow ones and pieces of sources, so that these do not delay them. But a job that
 * PASSED_MAX quick requests have passed is next, so that they do not stop the others either. Some workers only take
 * quick requests, so that slow handlers and sources cannot occupy all of them; and at most half of the workers take
 * slow ones.
 */
#ifndef WB_HTTPD_HTTPD_CREW_H
#define WB_HTTPD_HTTPD_CREW_H

#include "base/error.h"
#include "base/list.h"
#include "httpd/httpd.h"

#include <pthread.h>

enum wb_httpd_job_kind { WB_JOB_QUICK, WB_JOB_SLOW, WB_JOB_PIECE, WB_JOB_KINDS };

enum wb_httpd_job_state { WB_JOB_IDLE, WB_JOB_WAITING, WB_JOB_RUNNING, WB_JOB_DONE };

/* Embedded in what the job is about. All zero: idle. The state is guarded by the crew's lock. */
struct wb_httpd_job {
    struct wb_list_node node;
    enum wb_httpd_job_state state;
    enum wb_httpd_job_kind kind;
    void (*run)(struct wb_httpd_job *job, void *worker);
};

struct wb_httpd_crew {
    const struct wb_httpd_app *app;
    int done_fd; /* an eventfd; readable when jobs are done */
    size_t requests_max;
    pthread_t *threads;
    unsigned count, opened;
    unsigned shared_max, slow_max; /* workers that may have slow requests or pieces; slow requests alone */
    pthread_mutex_t lock;
    pthread_cond_t work, changed;
    struct wb_list queues[WB_JOB_KINDS], done;
    _Atomic size_t waiting[WB_JOB_KINDS]; /* in the queues; changed with the lock held */
    unsigned running[WB_JOB_KINDS];
    unsigned passed;             /* quick requests that were taken while others could have been */
    enum wb_httpd_job_kind last; /* which of the other two kinds was taken last */
    uint64_t rests;              /* how often workers were asked to rest */
    bool stopping;
    struct wb_error_copy error; /* of the worker that could not be opened */
};

/* Starts the threads and waits until each has called worker_open(). If one fails, all are ended. */
int wb_httpd_crew_start(struct wb_httpd_crew *crew, const struct wb_httpd_app *app, int done_fd, unsigned workers,
                        size_t requests_max);

/* Queues a job. False if too many of its kind wait already; pieces are never refused. */
bool wb_httpd_crew_add(struct wb_httpd_crew *crew, struct wb_httpd_job *job, enum wb_httpd_job_kind kind);

/* Takes a job back. False if it is running or done; then wb_httpd_crew_collect() returns it. */
bool wb_httpd_crew_cancel(struct wb_httpd_crew *crew, struct wb_httpd_job *job);

/* Takes all jobs that are done. */
struct wb_list wb_httpd_crew_collect(struct wb_httpd_crew *crew);

/* Lets each worker call rest() when it has nothing to do. */
void wb_httpd_crew_rest(struct wb_httpd_crew *crew);

/* Lets the workers finish all jobs, and ends them. */
void wb_httpd_crew_stop(struct wb_httpd_crew *crew);

#endif
