#include <sched.h>
#include "shim/gate.h"

struct gate gate;
__thread uint32_t gate_shard_index;

uint32_t gate_choose_shard(void)
{
    static _Atomic uint32_t next;
    uint32_t index = atomic_fetch_add_explicit(&next, 1, memory_order_relaxed) % GATE_SHARDS;
    gate_shard_index = index + 1;
    return index;
}

void gate_wait_open(struct gate_shard *shard)
{
    do {
        atomic_fetch_sub_explicit(&shard->inside, 1, memory_order_seq_cst);
        while (atomic_load_explicit(&gate.closed, memory_order_acquire)) sched_yield();
        atomic_fetch_add_explicit(&shard->inside, 1, memory_order_seq_cst);
    } while (atomic_load_explicit(&gate.closed, memory_order_seq_cst));
}

bool gate_try_close(void)
{
    uint32_t open = 0;
    if (!atomic_compare_exchange_strong(&gate.closed, &open, 1)) return false;
    for (int i = 0; i < GATE_SHARDS; i++) {
        if (atomic_load_explicit(&gate.shards[i].inside, memory_order_seq_cst) != 0) {
            gate_open();
            return false;
        }
    }
    return true;
}

void gate_open(void) { atomic_store_explicit(&gate.closed, 0, memory_order_release); }

void gate_after_fork(void)
{
    gate_open();
    for (int i = 0; i < GATE_SHARDS; i++) atomic_store(&gate.shards[i].inside, 0);
}
