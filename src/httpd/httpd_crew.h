/*
 * httpd_crew.h - the worker threads, and the two queues that they take their jobs from.
 *
 *   loop -> [requests] -> workers -> [done] -> loop (told through an eventfd)
 *           [pieces]
 *
 * Requests come before pieces of sources, so that streams do not delay them. But a piece that PASSED_MAX requests have
 * passed is next, so that requests do not stop the streams either; and some workers never take pieces, so that slow
 * sources cannot occupy all of them.
 */
#ifndef WB_HTTPD_HTTPD_CREW_H
#define WB_HTTPD_HTTPD_CREW_H

#include "base/error.h"
#include "base/list.h"
#include "httpd/httpd.h"

#include <pthread.h>

enum wb_httpd_job_state { WB_JOB_IDLE, WB_JOB_WAITING, WB_JOB_RUNNING, WB_JOB_DONE };

/* Embedded in what the job is about. All zero: idle. The state is guarded by the crew's lock. */
struct wb_httpd_job {
    struct wb_list_node node;
    enum wb_httpd_job_state state;
    bool piece;
    void (*run)(struct wb_httpd_job *job, void *worker);
};

struct wb_httpd_crew {
    const struct wb_httpd_app *app;
    int done_fd; /* an eventfd; readable when jobs are done */
    size_t requests_max;
    pthread_t *threads;
    unsigned count, opened, pieces_max;
    pthread_mutex_t lock;
    pthread_cond_t work, changed;
    struct wb_list requests, pieces, done;
    _Atomic size_t requests_waiting; /* changed with the lock held */
    unsigned passed;                 /* requests that were taken while pieces waited */
    unsigned pieces_running;
    bool stopping;
    struct wb_error_copy error; /* of the worker that could not be opened */
};

/* Starts the threads and waits until each has called worker_open(). If one fails, all are ended. */
int wb_httpd_crew_start(struct wb_httpd_crew *crew, const struct wb_httpd_app *app, int done_fd, unsigned workers,
                        size_t requests_max);

/* Queues a job. False if too many requests wait already; pieces are never refused. */
bool wb_httpd_crew_add(struct wb_httpd_crew *crew, struct wb_httpd_job *job, bool piece);

/* Takes a job back. False if it is running or done; then wb_httpd_crew_collect() returns it. */
bool wb_httpd_crew_cancel(struct wb_httpd_crew *crew, struct wb_httpd_job *job);

/* Takes all jobs that are done. */
struct wb_list wb_httpd_crew_collect(struct wb_httpd_crew *crew);

/* Lets the workers finish all jobs, and ends them. */
void wb_httpd_crew_stop(struct wb_httpd_crew *crew);

#endif
