/* libcuda in software: the state that its files share, and the contracts between them.
 *
 * One lock guards everything (sim_lock): tables, contexts, streams' queues. It is never held while bytes move, a kernel
 * runs or the program's callbacks run. Functions whose comment says "locked" are called with it held.
 *
 * Device memory lives in one memory file. The program's addresses of it are mapped PROT_NONE, so that a CPU access to
 * them faults as on a machine with a GPU; the simulator reaches the same bytes through a second mapping ("inside").
 */
#ifndef SIM_H
#define SIM_H

#define __CUDA_API_VERSION_INTERNAL
#pragma GCC visibility push(default)
#include <cuda.h>
#pragma GCC visibility pop
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SIM_CHUNK_BYTES    ((size_t)2 << 20) /* what the driver hands physical memory out in */
#define SIM_SLOT_BYTES     ((size_t)512)     /* alignment of small allocations */
#define SIM_SLOTS          (SIM_CHUNK_BYTES / SIM_SLOT_BYTES)
#define SIM_MAX_DEVICES    8
#define SIM_STAGING_BYTES  ((size_t)2 << 20) /* pageable uploads that may wait behind a busy stream */
#define SIM_DRIVER_VERSION 13000

/* ---- entry (fault.c): every exported function begins with SIM_ENTER. ---- */
struct call_site {
    const char *name;
    struct call_site *next;
    atomic_ulong calls;
    atomic_bool listed;
};
/* Counts the call, and says what it must fail with at once: an injected fault, a call before cuInit, after shutdown, in
 * a forked child or from a host function. needs: 0 nothing, 1 cuInit and no host function, 2 cuInit. */
CUresult call_enter(struct call_site *site, int needs);
void calls_report(void);
#define SIM_ENTER_NEEDS(symbol, needs)                                                                                 \
    do {                                                                                                               \
        static struct call_site site_ = {.name = #symbol};                                                             \
        CUresult refused_ = call_enter(&site_, needs);                                                                 \
        if (refused_) return refused_;                                                                                 \
    } while (0)
#define SIM_ENTER(symbol)     SIM_ENTER_NEEDS(symbol, 1)
#define SIM_ENTER_ANY(symbol) SIM_ENTER_NEEDS(symbol, 0)
#define SIM_ENTER_ASK(symbol) SIM_ENTER_NEEDS(symbol, 2)

/* ---- state.c ---- */
struct sim_device {
    size_t memory_bytes, used_bytes;
    CUcontext primary, primary_storage;
    unsigned primary_references, primary_flags;
    CUmemoryPool default_pool, current_pool;
};
struct sim {
    pthread_mutex_t mutex;
    pthread_cond_t changed; /* something that a host thread may wait for has happened */
    unsigned waiters;
    bool initialized, forked, shut_down;
    int device_count;
    bool can_map_host, vmm, can_register, integrated;
    double costs; /* how many times what a real machine takes; 0: as fast as it goes */
    struct sim_device devices[SIM_MAX_DEVICES];
    CUcontext contexts;
    uint64_t next_id;
};
extern struct sim sim;
void sim_lock(void);
void sim_unlock(void);
void sim_wait(void);   /* locked: until something changes */
void sim_notify(void); /* locked: something has changed */
void sim_start(void);  /* locked: first cuInit; reads the environment */
uint64_t time_now_ns(void);
extern __thread bool in_host_function;

/* ---- context.c ---- */
#define CONTEXT_MAGIC 0x43545830u
struct CUctx_st {
    uint32_t magic;
    CUdevice device;
    unsigned flags, api_version, peers;
    uint64_t id;
    bool primary;
    CUresult lost; /* sticky: every later call answers this */
    CUstream legacy;
    CUstream streams; /* all of the context, the legacy one included */
    size_t staged_bytes;
    size_t limits[CU_LIMIT_MAX];
    struct CUctx_st *next;
};
/* Locked. The calling thread's context, or why there is none (INVALID_CONTEXT, the sticky error). */
CUresult context_current(CUcontext *context);
bool context_valid(CUcontext context);
void context_lose(CUcontext context, CUresult why);
void context_drain(CUcontext context); /* until nothing of it is in flight; drops the lock meanwhile */

#endif
