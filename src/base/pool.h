/*
 * pool.h - a few worker threads that take jobs in order.
 *
 * The owner submits jobs and waits for all of them; a job must not submit. What a
 * job produces, and its error, live in the job's own context.
 */
#ifndef WB_BASE_POOL_H
#define WB_BASE_POOL_H

#include <stddef.h>

struct wb_pool;

typedef void (*wb_job)(void *context);

/* threads 0: jobs run inside wb_pool_submit(), in the caller's thread. */
int wb_pool_new(unsigned threads, struct wb_pool **pool_out);

/* WB_E_NOMEM where the job could not be queued; it was not run. */
int wb_pool_submit(struct wb_pool *pool, wb_job job, void *context);

/* Until every submitted job has ended. */
void wb_pool_wait(struct wb_pool *pool);

/* Waits, then ends the threads. */
void wb_pool_free(struct wb_pool *pool);

#endif
