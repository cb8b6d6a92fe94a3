/* Small programs in one executable: `programs NAME` runs one, `programs --list` names them all.
 *
 * Each shows one trap. Its stdout and exit code are the same in every run on one driver, and must be the same under the
 * shim in every mode (compare.py). A result that does not depend on the driver is checked by expect(), so that the bare
 * run fails too where the driver is wrong; an answer of the driver is printed by SHOW() and only compared.
 */
#ifndef PROGRAMS_H
#define PROGRAMS_H
#include <cuda_runtime_api.h>
#include <pthread.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#ifdef __cplusplus
extern "C" {
#endif

struct snippet {
    const char *name;
    const char *tags; /* words: gpu (needs a real one), ptds (says something in per-thread builds only), slow (not under
                         random moves), exit=N */
    const char *what;
    void (*run)(void);
};

#define SNIPPET(id, tags, what)                                                                                        \
    static void run_##id(void);                                                                                        \
    static const struct snippet snippet_##id = {#id, tags, what, run_##id};                                            \
    static const struct snippet *const entry_##id __attribute__((section("snippets"), used)) = &snippet_##id;          \
    static void run_##id(void)

/* Prints "ok ..." or "WRONG ..."; one wrong makes the exit code 1. Returns the condition. */
bool expect(bool condition, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Ends the program with exit code 2 where a call that must work does not. */
void must(cudaError_t status, const char *call, const char *file, int line);
#define MUST(call) must((call), #call, __FILE__, __LINE__)

/* Prints the call's answer, and clears the last error. */
void show(cudaError_t status, const char *text);
#define SHOW(call) show((call), #call)

/* The same numbers everywhere. */
uint32_t random_next(uint64_t *state);
void fill_random(void *bytes, size_t count, uint64_t seed);
uint64_t hash_bytes(const void *bytes, size_t count);
uint64_t hash_device(const void *device, size_t count); /* reads it back with a plain cudaMemcpy */

/* The exit code of a child, or 1000 + the signal that ended it. */
int wait_for(pid_t child);
/* Runs another snippet of this executable in a process of its own; as wait_for(). */
int run_snippet(const char *name);

/* A kernel of gate_close() keeps its stream busy until gate_open(). Every kernel is loaded before, since loading one
 * may wait for the device. gate_open_later() opens from another thread after some milliseconds. */
struct gate {
    volatile int *open;
    pthread_t opener;
    int after_ms;
};
struct gate *gate_close(cudaStream_t stream);
/* As gate_close(), and when the gate opens the kernel copies `count` words of source to destination. */
struct gate *gate_close_then_copy(cudaStream_t stream, unsigned *destination, const unsigned *source, int count);
void gate_open(struct gate *gate);
void gate_open_later(struct gate *gate, int milliseconds);
void gate_finish(struct gate *gate); /* the device is idle: joins the opener, frees */

/* kernels.cu */
void kernels_load(void);
void launch_fill(unsigned *data, unsigned value, int count, cudaStream_t stream);
void launch_add(unsigned *data, unsigned value, int count, cudaStream_t stream);
void launch_copy(unsigned *destination, const unsigned *source, int count, cudaStream_t stream);
/* The same with arguments that lie somewhere in memory, which is not looked at before. */
struct copy_arguments {
    unsigned *destination;
    const unsigned *source;
    int count;
};
void launch_copy_of(const struct copy_arguments *arguments, int count, cudaStream_t stream);
void launch_gate(volatile int *open, unsigned *destination, const unsigned *source, int count, cudaStream_t stream);
void launch_atomics(int *cells, unsigned long long *wide, float *real, int threads, cudaStream_t stream);

#ifdef __cplusplus
}
#endif
#endif
