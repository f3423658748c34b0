/*
 * pool.h - a few worker threads that run jobs.
 *
 * The owner submits jobs and waits for all of them. Jobs begin in the order in which they were submitted. A job must
 * not submit another one. What a job produces, and its error (wb_error_save), go into its context.
 *
 *   for (i = 0; err == 0 && i < count; i++)
 *       err = wb_pool_submit(pool, compress_block, &blocks[i]);
 *   wb_pool_wait(pool);        // also after an error: jobs that were submitted still use their blocks
 */
#ifndef WB_BASE_POOL_H
#define WB_BASE_POOL_H

#include <stddef.h>

struct wb_pool;

typedef void (*wb_pool_job)(void *context);

/* With 0 threads, or if none can be started, jobs run inside wb_pool_submit(), in the caller's thread. */
int wb_pool_new(unsigned threads, struct wb_pool **pool_out);

/* WB_E_NOMEM if the job could not be queued; then it is never run. */
int wb_pool_submit(struct wb_pool *pool, wb_pool_job job, void *context);

/* Returns when every submitted job has ended. */
void wb_pool_wait(struct wb_pool *pool);

/* Waits for the jobs, then ends the threads. NULL is fine. */
void wb_pool_free(struct wb_pool *pool);

#endif
