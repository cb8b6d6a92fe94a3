/*
 * One program that asks a CUDA driver yes/no questions and prints an answer a line:
 *
 *     section.question: answer
 *
 * Answers are names of errors, yes/no, small exact values; never addresses or times, so that two drivers can be
 * compared by diff. Each section runs in processes of its own: a question that kills its process, hangs, or loses the
 * context costs only itself; the next process goes on with the question after it.
 *
 * A section is a function that prepares what it needs and then asks:
 *
 *     if (question("free.interior")) answer("%s", error_name(d.cuMemFree(buffer + 4)));
 *
 * What a later question needs must therefore be prepared outside of `if (question(...))`.
 */
#ifndef TESTS_CONFORMANCE_H
#define TESTS_CONFORMANCE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cuda.h>
#include <cudaTypedefs.h>

/* The driver, as cudart takes it: every function from cuGetProcAddress_v2, which is all that is asked of dlsym. */
struct driver {
    void *library;
    PFN_cuGetProcAddress_v12000 get_proc_address;
#define X(name, version)          PFN_##name##_v##version name;
#define XP(name, version, ending) PFN_##name##_v##version##_##ending name##_##ending;
#include "driver.def"
#undef X
#undef XP
};
extern struct driver d;

/* Loads libcuda.so.1; false when there is none. Missing functions answer NOT_FOUND. */
bool driver_load(void);
/* What cuGetProcAddress_v2 answers; NULL when it has none. */
void *driver_function(const char *name, int version, uint64_t flags);

/* "SUCCESS", "INVALID_VALUE", ... without the CUDA_ERROR_ prefix. */
const char *error_name(CUresult code);

/* State that every section starts with: device 0, its primary context current, kernels, a small mapped block. */
struct fixture {
    CUdevice device;
    CUcontext context;
    CUfunction gate_hold, ints_add, ints_copy, counter_add;
};
extern struct fixture fix;

/* False when the section goes on after this question, in a process that took over. */
bool question(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The answer to the latest question. */
void answer(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* Behind an answer that leaves this process unfit: the next question is asked by a new one. */
void question_take_over(void) __attribute__((noreturn));
/* question() and answer() in one, for a call that needs nothing around it: evaluates call only if asked. */
#define ASK(call, ...)                                                                                                 \
    do {                                                                                                               \
        if (question(__VA_ARGS__)) answer("%s", error_name(call));                                                     \
    } while (0)

/* Ends the section with a remark if something that must work did not. */
void must(CUresult code, const char *what);
#define MUST(call) must((call), #call)

/*
 * The gate: a kernel that keeps a stream busy until the host says so.
 * CALL_BEHIND(stream, prepare, call) runs prepare; call once with idle streams, so that nothing is loaded lazily later,
 * then prepare, a gate in stream, call again. A call that has not returned ask_patience_ms() later is a waiting one:
 * another thread then opens the gate. If it does not even return 5 s after that, the answer is "blocked" and the
 * process ends. Yields "returns at once", "waits", each followed by an error name if there is one. Leaves the gate
 * closed if the call returned at once: gate_open() (or the next question) opens it; the stream holds at most about 10
 * s.
 */
void gate_close(CUstream stream);
void gate_open(void);
void gate_watch(void);
const char *gate_verdict(CUresult code);
#define CALL_BEHIND(stream, prepare, call)                                                                             \
    ({                                                                                                                 \
        prepare;                                                                                                       \
        (void)(call);                                                                                                  \
        d.cuCtxSynchronize();                                                                                          \
        prepare;                                                                                                       \
        gate_close(stream);                                                                                            \
        gate_watch();                                                                                                  \
        CUresult behind_code = (call);                                                                                 \
        gate_verdict(behind_code);                                                                                     \
    })
#define ASK_BEHIND(stream, prepare, call, ...)                                                                         \
    do {                                                                                                               \
        if (question(__VA_ARGS__)) {                                                                                   \
            answer("%s", CALL_BEHIND(stream, prepare, call));                                                          \
            gate_open();                                                                                               \
            d.cuCtxSynchronize();                                                                                      \
        }                                                                                                              \
    } while (0)

void launch(CUfunction kernel, CUstream stream, void **arguments);

/* Host memory whose addresses the driver has not seen, zeroed, page aligned; never freed. */
void *pages_new(size_t bytes);
/* Pages registered inside a live reservation, so that CPU and GPU use one address (`reservation` may be NULL). */
void *registered_new(size_t bytes, CUdeviceptr *reservation);
int int_at(CUdeviceptr address);

struct section {
    const char *name;
    void (*run)(void);
    bool bare; /* no cuInit, no context: the section does all by itself */
};
extern const struct section sections[];

#define X(name)     void name(void);
#define XBARE(name) void name(void);
#include "sections.def"
#undef X
#undef XBARE
#endif
