/* Random allocation, resizing, copying and forking, checked against a shadow: torture [steps] [threads] [seed] [forks].
 *
 * Each block carries a pattern at its ends and at places drawn from its seed; whatever moves or copies the block must
 * keep it. A failed check prints thread, step and seed, and the run can be repeated with them. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "tests/torture/torture.h"

#define SLOTS  192
#define PLACES 12
#define KIB    ((size_t)1 << 10)
#define MIB    ((size_t)1 << 20)

struct block {
    unsigned char *start;
    size_t bytes;
    uint64_t seed;
};
struct torturer {
    pthread_t id;
    int index;
    uint64_t random, steps, step;
    size_t live;
    struct block blocks[SLOTS];
};

static struct backend backend;
static struct torturer torturers[TORTURE_THREADS_MAX];
static uint64_t first_seed = 1;
static uint64_t forks_each = 0; /* steps from fork to fork; 0: none */
static size_t live_limit = 160 * MIB;

static uint64_t draw(uint64_t *state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state * 0x2545f4914f6cdd1dull;
}

static void broken(const struct torturer *t, const char *what, const struct block *block)
{
    fprintf(stderr, "torture: %s: thread %d, step %llu, seed %llu, block %p of %zu bytes\n", what, t->index,
            (unsigned long long)t->step, (unsigned long long)first_seed, (void *)block->start, block->bytes);
    _exit(1);
}

/* Place `i` of the pattern, and its byte: the ends first. Places lie below `bytes`. */
static size_t place(uint64_t seed, int i, size_t bytes)
{
    if (i == 0) return 0;
    if (i == 1) return bytes - 1;
    uint64_t state = seed + (uint64_t)i * 0x9e3779b97f4a7c15ull;
    return draw(&state) % bytes;
}
static unsigned char value(uint64_t seed, size_t at)
{
    return (unsigned char)((seed ^ at * 0x9e3779b97f4a7c15ull) >> 24);
}

static void paint(struct block *block)
{
    for (int i = 0; i < PLACES; i++) {
        size_t at = place(block->seed, i, block->bytes);
        block->start[at] = value(block->seed, at);
    }
}
/* Places below `kept` must hold what was painted when the block had `block->bytes`. */
static void check(const struct torturer *t, const struct block *block, const unsigned char *memory, size_t kept,
                  const char *what)
{
    for (int i = 0; i < PLACES; i++) {
        size_t at = place(block->seed, i, block->bytes);
        if (at < kept && memory[at] != value(block->seed, at)) broken(t, what, block);
    }
}

static size_t draw_size(struct torturer *t)
{
    unsigned kind = (unsigned)(draw(&t->random) % 100);
    size_t bytes = kind < 86   ? 1 + draw(&t->random) % 1000
                   : kind < 95 ? 1 + draw(&t->random) % (4 * MIB)
                               : 4 * MIB - 100 + draw(&t->random) % (16 * MIB);
    return t->live + bytes > live_limit ? 1 + bytes % 1000 : bytes;
}

static void step_take(struct torturer *t, struct block *block)
{
    size_t alignment = draw(&t->random) % 8 ? 16 : (size_t)16 << draw(&t->random) % 18;
    bool zeroed = alignment == 16 && draw(&t->random) % 4 == 0;
    *block = (struct block){.bytes = draw_size(t), .seed = draw(&t->random)};
    block->start = backend.take(block->bytes, alignment, zeroed);
    if (!block->start) broken(t, "no memory", block);
    if ((uintptr_t)block->start % alignment) broken(t, "misaligned", block);
    for (int i = 0; zeroed && i < 3 * PLACES; i++)
        if (block->start[place(block->seed, i, block->bytes)]) broken(t, "calloc not zero", block);
    t->live += block->bytes;
    paint(block);
}

static void step_give(struct torturer *t, struct block *block)
{
    check(t, block, block->start, block->bytes, "free: changed");
    backend.give(block->start);
    t->live -= block->bytes;
    block->start = NULL;
}

static void step_resize(struct torturer *t, struct block *block)
{
    check(t, block, block->start, block->bytes, "before realloc: changed");
    size_t bytes = draw(&t->random) % 2 ? draw_size(t) : block->bytes / 2 + draw(&t->random) % (block->bytes + 1) + 1;
    if (t->live + bytes > live_limit + block->bytes) bytes = 100;
    struct block resized = *block;
    resized.start = backend.resize(block->start, bytes);
    if (!resized.start) broken(t, "realloc failed", block);
    check(t, block, resized.start, bytes < block->bytes ? bytes : block->bytes, "realloc: changed");
    t->live = t->live - block->bytes + bytes;
    *block = resized;
    block->bytes = bytes;
    block->seed = draw(&t->random);
    paint(block);
}

/* Out to the device and back into another block: the part must arrive as it was. */
static void step_copy(struct torturer *t, struct block *block)
{
    if (!backend.has_device) return;
    size_t from = draw(&t->random) % block->bytes, room = block->bytes - from;
    if (room > DEVICE_BYTES) room = DEVICE_BYTES;
    size_t bytes = draw(&t->random) % 2 ? room : 1 + draw(&t->random) % room;
    size_t device = draw(&t->random) % (DEVICE_BYTES - bytes + 1);
    bool async = draw(&t->random) & 1, same = draw(&t->random) & 1;
    if (!backend.copy_in(device, block->start + from, bytes, async, t->index)) broken(t, "copy in failed", block);
    unsigned char *back = same ? block->start + from : backend.take(bytes, 16, false);
    if (!back) broken(t, "no memory for a copy", block);
    /* The source is ours again as soon as the call returned, wherever the copy is. */
    unsigned char first = block->start[from], last = block->start[from + bytes - 1];
    block->start[from] = (unsigned char)~first;
    block->start[from + bytes - 1] = (unsigned char)~last;
    if (!backend.copy_out(back, device, bytes, draw(&t->random) & 1, t->index)) broken(t, "copy out failed", block);
    if (back[0] != first || back[bytes - 1] != last) broken(t, "copy: ends changed", block);
    if (!same) {
        block->start[from] = first;
        block->start[from + bytes - 1] = last;
        for (size_t at = 0; at < bytes; at += 4093)
            if (back[at] != block->start[from + at]) broken(t, "copy: changed on the way", block);
        backend.give(back);
    }
    check(t, block, block->start, block->bytes, "copied: changed");
}

static void step_fork(struct torturer *t)
{
    backend.before_fork();
    pid_t child = fork();
    if (!child) {
        backend.after_fork(true);
        alarm(60);
        for (int i = 0; i < SLOTS; i++) {
            struct block *block = &t->blocks[i];
            if (!block->start) continue;
            check(t, block, block->start, block->bytes, "child: changed");
            if (i & 1) backend.give(block->start);
        }
        unsigned char *more = backend.take(6 * MIB, 16, true);
        if (!more || more[5 * MIB]) _exit(2);
        backend.give(more);
        _exit(0);
    }
    backend.after_fork(false);
    int status = 0;
    if (child > 0 && (waitpid(child, &status, 0) != child || status)) {
        fprintf(stderr, "torture: child of thread %d at step %llu ended with %x, seed %llu\n", t->index,
                (unsigned long long)t->step, status, (unsigned long long)first_seed);
        _exit(1);
    }
}

static void *torture(void *argument)
{
    struct torturer *t = argument;
    for (; t->step < t->steps; t->step++) {
        struct block *block = &t->blocks[draw(&t->random) % SLOTS];
        unsigned what = (unsigned)(draw(&t->random) % 1000);
        if (!block->start)
            step_take(t, block);
        else if (what < 10 || (block->bytes > 4 * MIB && what < 30))
            step_copy(t, block);
        else if (what < 300)
            step_resize(t, block);
        else
            step_give(t, block);
        if (forks_each && t->index == 0 && t->step % forks_each == forks_each - 1) step_fork(t);
    }
    for (int i = 0; i < SLOTS; i++)
        if (t->blocks[i].start) step_give(t, &t->blocks[i]);
    return NULL;
}

int main(int argc, char **argv)
{
    uint64_t steps = argc > 1 ? strtoull(argv[1], NULL, 10) : 100000;
    int threads = argc > 2 ? atoi(argv[2]) : 4;
    first_seed = argc > 3 ? strtoull(argv[3], NULL, 10) : 1;
    uint64_t forks = argc > 4 ? strtoull(argv[4], NULL, 10) : 10;
    if (threads < 1 || threads > TORTURE_THREADS_MAX) threads = 4;
    if (!backend_start(&backend, threads)) return 77;
    if (forks) forks_each = steps / (uint64_t)threads / forks + 1;
    live_limit = 480 * MIB / (size_t)threads;
    time_t began = time(NULL);
    for (int i = 0; i < threads; i++) {
        torturers[i].index = i;
        torturers[i].random = (first_seed * 1000003 + (uint64_t)i) * 0x9e3779b97f4a7c15ull | 1;
        torturers[i].steps = steps / (uint64_t)threads;
        pthread_create(&torturers[i].id, NULL, torture, &torturers[i]);
    }
    for (int i = 0; i < threads; i++) pthread_join(torturers[i].id, NULL);
    printf("torture: %llu steps in %d threads, seed %llu, %s device, %ld s: all as it should be\n",
           (unsigned long long)steps, threads, (unsigned long long)first_seed,
           backend.has_device ? "with a" : "without a", (long)(time(NULL) - began));
    return 0;
}
