/* The copy threads. They only move memory between the program and pinned slots: no driver call, no lock of the shim's
 * but their own, all signals blocked. They end by themselves when idle, and before fork and exit. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <time.h>
#include "shim/clock.h"
#include "shim/hostmem_internal.h"
#include "shim/shim.h"

#define POOL_MAX        64
#define POOL_AUTO_MAX   8
#define POOL_STACK      ((size_t)512 << 10)
#define POOL_IDLE_NS    500000000L
#define POOL_SPIN_NS    30000u
#define POOL_RECHECK_NS ((uint64_t)1000000000)

static inline void cpu_relax(void)
{
#if defined __x86_64__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

enum thread_state { THREAD_NONE, THREAD_RUNS, THREAD_ENDED };

static struct {
    pthread_mutex_t lock;
    pthread_cond_t work, done;
    struct chunk *head, *tail;
    _Atomic unsigned queued;
    unsigned running, wanted;
    bool stop;
    struct {
        pthread_t id;
        enum thread_state state;
    } threads[POOL_MAX];
    _Atomic unsigned allowed; /* + 1; 0: not asked yet */
    _Atomic uint64_t asked_at_ns;
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER, .work = PTHREAD_COND_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};

unsigned pool_threads(void)
{
    if (atomic_load_explicit(&hostmem.ended, memory_order_relaxed) || shim.options.copy_threads == 0) return 0;
    uint64_t now = clock_ns(), at = atomic_load_explicit(&pool.asked_at_ns, memory_order_relaxed);
    unsigned known = atomic_load_explicit(&pool.allowed, memory_order_relaxed);
    if (known && now - at < POOL_RECHECK_NS) return known - 1;
    unsigned cpus = budget_cpus(), allowed;
    if (shim.options.copy_threads > 0) {
        allowed = (unsigned)shim.options.copy_threads < cpus ? (unsigned)shim.options.copy_threads : cpus;
    } else {
        allowed = cpus / 2 < POOL_AUTO_MAX ? cpus / 2 : POOL_AUTO_MAX;
        /* One thread copies no faster than the driver's. */
        if (allowed < 2) allowed = 0;
    }
    if (allowed > POOL_MAX) allowed = POOL_MAX;
    atomic_store_explicit(&pool.asked_at_ns, now, memory_order_relaxed);
    atomic_store_explicit(&pool.allowed, allowed + 1, memory_order_relaxed);
    return allowed;
}

static void spin_for(const _Atomic unsigned *value)
{
    for (uint64_t began = clock_ns(); !atomic_load_explicit(value, memory_order_relaxed);) {
        for (int i = 0; i < 64; i++) cpu_relax();
        if (clock_ns() - began > POOL_SPIN_NS) return;
    }
}

/* The next chunk; NULL: end. Lock held. */
static struct chunk *next_chunk(bool worked)
{
    if (worked && !pool.head && !pool.stop) {
        pthread_mutex_unlock(&pool.lock);
        spin_for(&pool.queued);
        pthread_mutex_lock(&pool.lock);
    }
    while (!pool.head && !pool.stop) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += POOL_IDLE_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        if (pthread_cond_timedwait(&pool.work, &pool.lock, &until) == ETIMEDOUT && !pool.head) return NULL;
    }
    if (pool.stop) return NULL;
    struct chunk *chunk = pool.head;
    pool.head = chunk->next;
    if (!pool.head) pool.tail = NULL;
    atomic_fetch_sub_explicit(&pool.queued, 1, memory_order_relaxed);
    return chunk;
}

static void *thread_main(void *argument)
{
    size_t self = (size_t)argument;
    bool worked = false;
    pthread_mutex_lock(&pool.lock);
    for (struct chunk *chunk; (chunk = next_chunk(worked)) != NULL; worked = true) {
        pthread_mutex_unlock(&pool.lock);
        int state = chunk_copy(chunk) ? CHUNK_DONE : CHUNK_FAULT;
        pthread_mutex_lock(&pool.lock);
        atomic_store_explicit(&chunk->state, state, memory_order_release);
        pthread_cond_broadcast(&pool.done);
    }
    pool.threads[self].state = THREAD_ENDED;
    pool.running--;
    pthread_mutex_unlock(&pool.lock);
    return NULL;
}

/* Joins threads that ended. Lock held, released meanwhile. */
static void reap(void)
{
    for (size_t i = 0; i < POOL_MAX; i++) {
        if (pool.threads[i].state != THREAD_ENDED) continue;
        pthread_t id = pool.threads[i].id;
        pool.threads[i].state = THREAD_NONE;
        pthread_mutex_unlock(&pool.lock);
        pthread_join(id, NULL);
        pthread_mutex_lock(&pool.lock);
    }
}

/* Lock held: the new thread waits for it before it looks at its entry. */
static bool start_one(void)
{
    size_t i = 0;
    while (i < POOL_MAX && pool.threads[i].state != THREAD_NONE) i++;
    if (i == POOL_MAX) return false;
    pthread_attr_t attributes;
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_attr_setstacksize(&attributes, POOL_STACK);
    int failed = pthread_create(&pool.threads[i].id, &attributes, thread_main, (void *)i);
    pthread_attr_destroy(&attributes);
    if (failed) failed = pthread_create(&pool.threads[i].id, NULL, thread_main, (void *)i); /* large static TLS */
    if (failed) return false;
    pthread_setname_np(pool.threads[i].id, "zcshim-copy");
    pool.threads[i].state = THREAD_RUNS;
    pool.running++;
    return true;
}

bool pool_start(unsigned threads, bool *cold)
{
    sigset_t all, before;
    int cancel;
    sigfillset(&all);
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&pool.lock);
    if (threads > pool.wanted) pool.wanted = threads;
    if (!pool.stop && pool.running < threads) {
        reap();
        *cold = true;
        pthread_sigmask(SIG_SETMASK, &all, &before);
        while (!pool.stop && pool.running < threads && start_one()) continue;
        pthread_sigmask(SIG_SETMASK, &before, NULL);
    }
    bool any = pool.running > 0 || pool.stop; /* stopped for a fork: they come back */
    pthread_mutex_unlock(&pool.lock);
    pthread_setcancelstate(cancel, NULL);
    return any;
}

void pool_push(struct chunk *chunk)
{
    pthread_mutex_lock(&pool.lock);
    atomic_store_explicit(&chunk->state, CHUNK_QUEUED, memory_order_relaxed);
    chunk->next = NULL;
    if (pool.tail)
        pool.tail->next = chunk;
    else
        pool.head = chunk;
    pool.tail = chunk;
    atomic_fetch_add_explicit(&pool.queued, 1, memory_order_relaxed);
    pthread_cond_signal(&pool.work);
    pthread_mutex_unlock(&pool.lock);
}

/* Takes the chunk out of the queue, if no thread has it yet. Lock held. */
static bool take_back(struct chunk *wanted)
{
    struct chunk *before = NULL;
    for (struct chunk *chunk = pool.head; chunk; before = chunk, chunk = chunk->next) {
        if (chunk != wanted) continue;
        if (before)
            before->next = chunk->next;
        else
            pool.head = chunk->next;
        if (pool.tail == chunk) pool.tail = before;
        atomic_fetch_sub_explicit(&pool.queued, 1, memory_order_relaxed);
        return true;
    }
    return false;
}

int pool_wait(struct chunk *chunk)
{
    int state, cancel;
    for (uint64_t began = clock_ns();
         (state = atomic_load_explicit(&chunk->state, memory_order_acquire)) == CHUNK_QUEUED;) {
        for (int i = 0; i < 64; i++) cpu_relax();
        if (clock_ns() - began > POOL_SPIN_NS) break;
    }
    if (state != CHUNK_QUEUED) return state;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel);
    pthread_mutex_lock(&pool.lock);
    while ((state = atomic_load_explicit(&chunk->state, memory_order_acquire)) == CHUNK_QUEUED) {
        /* The threads ended (idle, or for a fork or exit) before they saw it: this thread does it. */
        if (!pool.running && take_back(chunk)) {
            pthread_mutex_unlock(&pool.lock);
            state = chunk_copy(chunk) ? CHUNK_DONE : CHUNK_FAULT;
            atomic_store_explicit(&chunk->state, state, memory_order_release);
            pthread_mutex_lock(&pool.lock);
            break;
        }
        pthread_cond_wait(&pool.done, &pool.lock);
    }
    pthread_mutex_unlock(&pool.lock);
    pthread_setcancelstate(cancel, NULL);
    return state;
}

void pool_stop(void)
{
    pthread_mutex_lock(&pool.lock);
    pool.stop = true;
    pthread_cond_broadcast(&pool.work);
    for (size_t i = 0; i < POOL_MAX; i++) {
        if (pool.threads[i].state == THREAD_NONE) continue;
        pthread_t id = pool.threads[i].id;
        pthread_mutex_unlock(&pool.lock);
        pthread_join(id, NULL);
        pthread_mutex_lock(&pool.lock);
        pool.threads[i].state = THREAD_NONE;
    }
    pthread_cond_broadcast(&pool.done);
    pthread_mutex_unlock(&pool.lock);
}

void pool_resume(void)
{
    pthread_mutex_lock(&pool.lock);
    pool.stop = false;
    bool work = pool.head != NULL;
    unsigned wanted = pool.wanted;
    pthread_mutex_unlock(&pool.lock);
    bool cold;
    if (work) pool_start(wanted, &cold);
}

void pool_after_fork_child(void)
{
    pool.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    pool.work = pool.done = (pthread_cond_t)PTHREAD_COND_INITIALIZER;
    pool.head = pool.tail = NULL;
    pool.queued = 0;
    pool.running = 0;
    pool.stop = false;
    memset(pool.threads, 0, sizeof pool.threads);
}
