/*
 * pool.c - a queue of jobs and the threads that empty it.
 *
 * One mutex protects the queue and the counts. Workers sleep on `work` until there is a job or the pool ends; the owner
 * sleeps on `idle` until no job is queued or running.
 */
#include "base/pool.h"
#include "base/check.h"
#include "base/error.h"
#include "base/list.h"
#include "base/mem.h"

#include <pthread.h>
#include <stdbool.h>

struct pool_job {
    struct wb_list_node node; /* in the queue */
    wb_pool_job run;
    void *context;
};

struct wb_pool {
    pthread_mutex_t lock;
    pthread_cond_t work, idle;
    struct wb_list queue;
    unsigned pending; /* jobs that are queued or running */
    unsigned threads;
    bool ending;
    pthread_t thread[];
};

static void *work_loop(void *arg)
{
    struct wb_pool *pool = arg;

    pthread_mutex_lock(&pool->lock);
    for (;;) {
        while (!pool->queue.first && !pool->ending)
            pthread_cond_wait(&pool->work, &pool->lock);
        struct wb_list_node *first = wb_list_pop(&pool->queue);
        if (!first)
            break;
        pthread_mutex_unlock(&pool->lock);
        struct pool_job *job = WB_CONTAINER_OF(first, struct pool_job, node);
        job->run(job->context);
        wb_free(job);
        pthread_mutex_lock(&pool->lock);
        WB_CHECK(pool->pending > 0);
        if (--pool->pending == 0)
            pthread_cond_broadcast(&pool->idle);
    }
    pthread_mutex_unlock(&pool->lock);
    return NULL;
}

int wb_pool_new(unsigned threads, struct wb_pool **pool_out)
{
    struct wb_pool *pool = wb_alloc_zero(1, sizeof *pool + threads * sizeof pool->thread[0]);

    *pool_out = NULL;
    if (!pool)
        return WB_E_NOMEM;
    pthread_mutex_init(&pool->lock, NULL);
    pthread_cond_init(&pool->work, NULL);
    pthread_cond_init(&pool->idle, NULL);
    for (unsigned i = 0; i < threads; i++) {
        if (pthread_create(&pool->thread[i], NULL, work_loop, pool) != 0)
            break; /* fewer threads do the same work, and so does the caller's thread if there are none */
        pool->threads++;
    }
    *pool_out = pool;
    return 0;
}

int wb_pool_submit(struct wb_pool *pool, wb_pool_job run, void *context)
{
    WB_CHECK(!pool->ending);
    if (pool->threads == 0) {
        run(context);
        return 0;
    }
    struct pool_job *job = wb_alloc(sizeof *job);
    if (!job)
        return WB_E_NOMEM;
    *job = (struct pool_job){.run = run, .context = context};
    pthread_mutex_lock(&pool->lock);
    wb_list_append(&pool->queue, &job->node);
    pool->pending++;
    pthread_cond_signal(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    return 0;
}

void wb_pool_wait(struct wb_pool *pool)
{
    pthread_mutex_lock(&pool->lock);
    while (pool->pending)
        pthread_cond_wait(&pool->idle, &pool->lock);
    pthread_mutex_unlock(&pool->lock);
}

void wb_pool_free(struct wb_pool *pool)
{
    if (!pool)
        return;
    wb_pool_wait(pool);
    pthread_mutex_lock(&pool->lock);
    pool->ending = true;
    pthread_cond_broadcast(&pool->work);
    pthread_mutex_unlock(&pool->lock);
    for (unsigned i = 0; i < pool->threads; i++)
        pthread_join(pool->thread[i], NULL);
    WB_CHECK(!pool->queue.first && pool->pending == 0);
    pthread_mutex_destroy(&pool->lock);
    pthread_cond_destroy(&pool->work);
    pthread_cond_destroy(&pool->idle);
    wb_free(pool);
}
