/* The window core under threads, on a driver of a few lines: some allocate, fill, check and free buffers, two submit
 * through the gate and copy into buffers of windows that are on the host, one moves windows back and forth whenever the
 * gate lets it. For ThreadSanitizer; a plain program, because Criterion does not start under it.
 *
 *   core_threads [rounds]       exit code 1 if a byte was wrong */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>
#include <sched.h>
#include "tests/unit/fake_vmm.h"

#define ALLOCATORS   4
#define COPIERS      2
#define SHARED       64 /* buffers that the copiers own */
#define SHARED_BYTES 3000

static struct context *context;
static struct site sites[ALLOCATORS + 1];
static uintptr_t shared[SHARED];
static _Atomic unsigned wrong, moved, copied, by_driver;
static _Atomic bool done;
static unsigned long rounds = 20000;

static unsigned next(unsigned *state) { return (*state = *state * 1664525u + 1013904223u) >> 8; }

/* What a copying hook does: inside the gate the place is stable. The thread owns the buffer, so nothing else touches
 * its bytes. */
static void copy(uintptr_t at, void *host, size_t bytes, bool to_device)
{
    gate_enter();
    struct window *window = window_at(at);
    if (!window || !window_covers(window, at, bytes)) {
        atomic_fetch_add(&wrong, 1);
    } else if (window->place == WINDOW_HOST) {
        memcpy(to_device ? (void *)at : host, to_device ? host : (void *)at, bytes);
        atomic_fetch_add_explicit(&copied, 1, memory_order_relaxed);
    } else {
        if (to_device)
            fake_htod(at, host, bytes);
        else
            fake_dtoh(host, at, bytes);
        atomic_fetch_add_explicit(&by_driver, 1, memory_order_relaxed);
    }
    gate_leave_submitted();
}

static void check(uintptr_t at, size_t bytes, char fill)
{
    char back[SHARED_BYTES];
    copy(at, back, bytes, false);
    for (size_t i = 0; i < bytes; i++)
        if (back[i] != fill) {
            atomic_fetch_add(&wrong, 1);
            return;
        }
}

static void *allocate(void *argument)
{
    unsigned number = (unsigned)(uintptr_t)argument, state = number * 77 + 1;
    struct {
        uintptr_t at;
        size_t bytes;
        char fill;
    } live[32] = {0};
    char bytes_of_it[SHARED_BYTES];
    for (unsigned long i = 0; i < rounds; i++) {
        unsigned slot = next(&state) % 32;
        if (live[slot].at) {
            check(live[slot].at, live[slot].bytes, live[slot].fill);
            window_free(window_at(live[slot].at), live[slot].at);
            live[slot].at = 0;
        } else {
            live[slot].bytes = 1 + next(&state) % SHARED_BYTES;
            live[slot].fill = (char)next(&state);
            live[slot].at =
                window_alloc(context, &sites[number], live[slot].bytes, next(&state) & 1 ? WINDOW_HOST : WINDOW_DEVICE);
            if (!live[slot].at) continue;
            memset(bytes_of_it, live[slot].fill, live[slot].bytes);
            copy(live[slot].at, bytes_of_it, live[slot].bytes, true);
        }
    }
    return NULL;
}

static void *submit(void *argument)
{
    unsigned first = (unsigned)(uintptr_t)argument, state = first + 1000;
    char fill[SHARED_BYTES];
    for (unsigned long i = 0; i < rounds; i++) {
        uintptr_t at = shared[first + next(&state) % (SHARED / COPIERS) * COPIERS];
        char byte = (char)next(&state);
        memset(fill, byte, sizeof fill);
        copy(at, fill, sizeof fill, true);
        check(at, sizeof fill, byte);
    }
    return NULL;
}

/* One move of a window that is drawn from all; natively the context would be asked whether it is quiet: here whoever
 * has left has finished. */
static void *move(void *argument)
{
    unsigned state = 5;
    (void)argument;
    while (!atomic_load(&done)) {
        if (!gate_try_close()) {
            sched_yield();
            continue;
        }
        lock_acquire(&context->lock);
        unsigned count = 0, which;
        for (struct window *w = context->windows; w; w = w->next) count++;
        struct window *window = context->windows;
        for (which = count ? next(&state) % count : 0; window && which; which--) window = window->next;
        lock_release(&context->lock);
        if (window && window->place == WINDOW_DEVICE)
            atomic_fetch_add(&moved, window_to_host(window));
        else if (window && window->place == WINDOW_HOST)
            atomic_fetch_add(&moved, window_to_device(window));
        gate_open();
        usleep(200);
    }
    return NULL;
}

int main(int argc, char **argv)
{
    pthread_t threads[ALLOCATORS + COPIERS], mover;
    if (argc > 1) rounds = strtoul(argv[1], NULL, 10);
    context = fake_context(MODE_AUTO);
    if (!context) return 2;
    for (int i = 0; i < SHARED; i++)
        if (!(shared[i] = window_alloc(context, &sites[ALLOCATORS], SHARED_BYTES, i & 1 ? WINDOW_HOST : WINDOW_DEVICE)))
            return 2;
    pthread_create(&mover, NULL, move, NULL);
    for (uintptr_t i = 0; i < ALLOCATORS; i++) pthread_create(&threads[i], NULL, allocate, (void *)i);
    for (uintptr_t i = 0; i < COPIERS; i++) pthread_create(&threads[ALLOCATORS + i], NULL, submit, (void *)i);
    for (int i = 0; i < ALLOCATORS + COPIERS; i++) pthread_join(threads[i], NULL);
    atomic_store(&done, true);
    pthread_join(mover, NULL);
    printf("%u moves, %u copies on the host, %u on the device, %u wrong\n", moved, copied, by_driver, wrong);
    return wrong || !moved || !copied || !by_driver;
}
