/* Threads that allocate, free, note and misuse at once, and go on while the process ends and the report is written. For the thread sanitizer,
 * which Criterion does not bear. */
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <unistd.h>
#include "tests/report/fake_shim.h"

enum { THREADS = 4, ROUNDS = 3000 };

static _Atomic int made;

__attribute__((noinline)) static void allocate(int depth)
{
    if (depth) {
        allocate(depth - 1);
    } else {
        uintptr_t one = fake_allocate((int)(made % 4), 64), other = fake_allocate(3, 4096);
        fake_free(one);
        fake_free(one);
        if (made % 3) fake_free(other);
    }
    made = made + 1;
}

static void *work(void *endless)
{
    for (int i = 0; i < ROUNDS || endless; i++) {
        allocate(i % 7);
        if (i % 100 == 0) fake_note("a note of a thread");
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    fake_start();
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, NULL);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    pthread_create(&threads[0], NULL, work, &made);
    usleep(10000);
    return 0;
}
