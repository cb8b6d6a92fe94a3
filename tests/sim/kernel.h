/* Kernels: found by name in kernel files, run by streams. */
#ifndef SIM_KERNEL_H
#define SIM_KERNEL_H

#include "kernel_abi.h"
#include "sim.h"
#include "stream.h"

#define FUNCTION_MAGIC 0x46554e30u
/* A CUkernel is one of these too. */
struct CUfunc_st {
    uint32_t magic;
    const struct zcsim_kernel *kernel;
    void (*bind)(struct zcsim_thread *);
    CUmodule module;
    CUlibrary library;
    int dynamic_shared_bytes;
    struct CUfunc_st *next;
};

/* module.c: whether its module is loaded in this context, locked */
bool function_is_of(CUfunction function, CUcontext context);

/* kernel_files.c, called without the lock. */
const struct zcsim_kernel *kernel_find(const char *name, void (**bind)(struct zcsim_thread *));
/* A variable of a kernel file: where it is, or NULL. */
char *kernel_variable_find(const char *name, size_t *bytes);
size_t kernel_list(const struct zcsim_kernel **kernels, size_t room);

/* kernel_run.c, called without the lock. */
CUresult kernel_run(const struct launch *launch);

/* launch.c */
void *kernel_arguments_duplicate(const struct launch *launch);
/* Packs the arguments: each at a multiple of its alignment, as in a launch buffer. NULL if `values` lacks them. */
void *kernel_arguments_pack(const struct zcsim_kernel *kernel, void **values, void **extra, CUresult *result);
/* Where each argument of a launch is, allocated. */
void **kernel_argument_pointers(const struct launch *launch);
size_t kernel_arguments_bytes(const struct zcsim_kernel *kernel);
/* locked; checks what a launch or a kernel node asks for */
CUresult launch_check(const struct launch *launch);

#endif
