/*
 * locked.h - whether a mutex is held: for assertions in functions that are called with the lock.
 *
 *   WB_CHECK(wb_is_locked(&carousel->mutex));
 *
 * It does not tell who holds it. If nobody does, the mutex is held afterwards, but then the assertion has failed.
 */
#ifndef WB_BASE_LOCKED_H
#define WB_BASE_LOCKED_H

#include <errno.h>
#include <pthread.h>
#include <stdbool.h>

static inline bool wb_is_locked(pthread_mutex_t *mutex)
{
    return pthread_mutex_trylock(mutex) == EBUSY;
}

#endif
