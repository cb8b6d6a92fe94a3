#include <criterion/criterion.h>
#include <pthread.h>
#include "shim/gate.h"

Test(gate, closes_only_while_nobody_is_inside)
{
    gate_enter();
    cr_assert_not(gate_try_close());
    gate_leave();
    cr_assert(gate_try_close());
    cr_assert_not(gate_try_close());
    gate_open();
}

Test(gate, every_submission_is_a_new_number)
{
    uint64_t before = gate_work();
    gate_enter();
    gate_leave();
    cr_assert_eq(gate_work(), before);
    gate_enter();
    gate_leave_submitted();
    cr_assert_neq(gate_work(), before);
}

#define MOVES 200
static _Atomic int inside, moved;
static int plain; /* written by movers, read by submitters: a data race if the gate fails */

static void *submitter(void *unused)
{
    while (atomic_load(&moved) < MOVES) {
        gate_enter();
        atomic_fetch_add(&inside, 1);
        cr_assert_eq(plain % 2, 0);
        atomic_fetch_sub(&inside, 1);
        gate_leave_submitted();
    }
    return unused;
}

static void *mover(void *unused)
{
    while (atomic_load(&moved) < MOVES) {
        if (!gate_try_close()) continue;
        cr_assert_eq(atomic_load(&inside), 0);
        plain++;
        plain++;
        atomic_fetch_add(&moved, 1);
        gate_open();
    }
    return unused;
}

Test(gate, nobody_submits_during_a_move)
{
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) pthread_create(&threads[i], NULL, i < 3 ? submitter : mover, NULL);
    for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
    cr_assert_eq(plain, 2 * MOVES);
}
