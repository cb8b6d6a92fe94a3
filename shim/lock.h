/* A plain mutex. Rule of the house: never held across a driver call that can block on other threads, nor across the
 * program's code. Order, outermost first: hostmem, context, a site's windows,
 * choices, a window's policy, kernels, captures, buffers, sites, modules, report, trace, arena. */
#ifndef SHIM_LOCK_H
#define SHIM_LOCK_H
#include <pthread.h>
#include <stdbool.h>

struct lock {
    pthread_mutex_t mutex;
};
#define LOCK_INITIALIZER                                                                                               \
    {                                                                                                                  \
        PTHREAD_MUTEX_INITIALIZER                                                                                      \
    }
static inline void lock_acquire(struct lock *lock) { pthread_mutex_lock(&lock->mutex); }
static inline bool lock_try(struct lock *lock) { return pthread_mutex_trylock(&lock->mutex) == 0; }
static inline void lock_release(struct lock *lock) { pthread_mutex_unlock(&lock->mutex); }
#endif
