/* The submission gate: a window may move only while no call that gives the GPU work is under way.
 *
 * Submitting hooks enter as readers (two uncontended atomic additions, about 10 ns). A move closes the gate; it asks
 * and never waits: if anyone is inside, it is not made. Whoever arrives at a closed gate waits for the move to end
 * (some hundred us, no program code runs meanwhile). Not recursive: a hook enters once and a move is made outside.
 *
 * The gate also numbers the work: gate_work() changes with every submission that has returned to the program. A wait
 * that began when it read N has waited for everything that the program can know to be submitted before. */
#ifndef SHIM_GATE_H
#define SHIM_GATE_H
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#define GATE_SHARDS 64

struct gate_shard {
    _Alignas(64) _Atomic uint32_t inside;
};
extern struct gate {
    _Alignas(64) _Atomic uint32_t closed;
    _Alignas(64) _Atomic uint64_t work;
    struct gate_shard shards[GATE_SHARDS];
} gate;

extern __thread uint32_t gate_shard_index __attribute__((tls_model("initial-exec"), visibility("hidden")));

void gate_wait_open(struct gate_shard *shard);
uint32_t gate_choose_shard(void);

static inline struct gate_shard *gate_shard_mine(void)
{
    uint32_t index = gate_shard_index;
    return &gate.shards[__builtin_expect(index == 0, 0) ? gate_choose_shard() : index - 1];
}

static inline void gate_enter(void)
{
    struct gate_shard *shard = gate_shard_mine();
    atomic_fetch_add_explicit(&shard->inside, 1, memory_order_seq_cst);
    if (__builtin_expect(atomic_load_explicit(&gate.closed, memory_order_seq_cst) != 0, 0)) gate_wait_open(shard);
}

/* After a call that submitted nothing. */
static inline void gate_leave(void) { atomic_fetch_sub_explicit(&gate_shard_mine()->inside, 1, memory_order_release); }

/* After a call that may have submitted work, before it returns to the program. */
static inline void gate_leave_submitted(void)
{
    atomic_fetch_add_explicit(&gate.work, 1, memory_order_release);
    gate_leave();
}

/* After a call that submitted work on memory that never moves, outside the gate: later copies by the CPU are still
 * ordered behind it. */
static inline void gate_note_submitted(void) { atomic_fetch_add_explicit(&gate.work, 1, memory_order_release); }

static inline uint64_t gate_work(void) { return atomic_load_explicit(&gate.work, memory_order_acquire); }

/* True: closed, no submission is under way, the caller must call gate_open. The caller is not inside. */
bool gate_try_close(void);
void gate_open(void);
/* In a forked child: nobody is inside. */
void gate_after_fork(void);
#endif
