/* Several threads, a window each, share one struct earn_run without a lock: for make SAN=tsan check-policy-sim. Needs
 * no Criterion, which does not start under that sanitizer. */
#include <pthread.h>
#include <stdio.h>

#include "policy/earn.h"

struct worker {
    struct earn_run *run;
    struct earn_window window;
    uint64_t kernel;
};

static void *work(void *argument)
{
    struct worker *worker = argument;
    uint64_t now_ns = 1000000000;
    for (int i = 0; i < 20000; i++) {
        struct earn_window *window = &worker->window;
        if (earn_launch(worker->run, worker->kernel)) {
            earn_kernel(window, worker->run, worker->kernel, COST_PLAIN, 1e9, now_ns);
            earn_announce(worker->run, worker->kernel, now_ns);
        }
        if (earn_tick_due(worker->run, now_ns)) earn_tick(window, worker->run, now_ns);
        struct earn_copy copy = {now_ns += window->place == EARN_HOST ? 6000 : 12000, 0, 4, i & 1, true, 0};
        enum earn_decision decision = earn_copy(window, worker->run, &copy);
        if (decision == EARN_STAY) continue;
        enum earn_place place = decision == EARN_TRY_HOST ? EARN_HOST : EARN_DEVICE;
        earn_moved(window, worker->run, place, i % 7 ? EARN_MOVED : EARN_BUSY, 150000, now_ns += 150000);
    }
    return NULL;
}

int main(void)
{
    enum { THREADS = 4 };
    static struct worker workers[THREADS];
    static struct earn_run run;
    pthread_t threads[THREADS];
    struct cost cost;
    unsigned settled = 0;
    cost_default(&cost);
    earn_run_begin(&run, &cost, 0.02, 1000000000);
    for (int i = 0; i < THREADS; i++) {
        workers[i].run = &run;
        workers[i].kernel = earn_kernel_id(&workers[i], 32, 0);
        earn_begin(&workers[i].window, &run, 4096, NULL, 1000000000);
    }
    for (int i = 0; i < THREADS; i++) pthread_create(&threads[i], NULL, work, &workers[i]);
    for (int i = 0; i < THREADS; i++) pthread_join(threads[i], NULL);
    for (int i = 0; i < THREADS; i++) {
        settled += workers[i].window.state == EARN_SETTLED;
        earn_end(&workers[i].window, &run);
    }
    if (!settled || atomic_load(&run.trial) || atomic_load(&run.settled)) {
        printf("FAIL: %u windows settled, turn %s, %u left over\n", settled, atomic_load(&run.trial) ? "taken" : "free",
               atomic_load(&run.settled));
        return 1;
    }
    printf("%d threads, %u windows settled\n", THREADS, settled);
    return 0;
}
