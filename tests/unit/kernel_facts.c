/* shim/kernels: what is known of a kernel, and for how long. */
#include <criterion/criterion.h>
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "shim/kernels.h"
#include "shim/module_image.h"
#include "shim/shim.h"

struct shim shim;

static CUresult device_of(CUdevice *device)
{
    *device = 0;
    return CUDA_SUCCESS;
}
static CUresult attribute_of(int *value, CUdevice_attribute which, CUdevice device)
{
    (void)device;
    *value = which == CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR ? 9 : 0;
    return CUDA_SUCCESS;
}
static void setup(void)
{
    shim.real.cuCtxGetDevice = device_of;
    shim.real.cuDeviceGetAttribute = attribute_of;
}
TestSuite(kernel_facts, .init = setup, .timeout = 30);

#define HEAD                                                                                                           \
    ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p, .param .u64 q)\n{\n"              \
    ".reg .b64 %rd<9>;\n.reg .b32 %r<9>;\nld.param.u64 %rd1, [p];\nld.param.u64 %rd3, [q];\n"                          \
    "cvta.to.global.u64 %rd2, %rd1;\ncvta.to.global.u64 %rd4, %rd3;\n"
static const char reads_one[] = HEAD "ld.global.u32 %r1, [%rd2];\nret;\n}\n";
static const char writes_two[] = HEAD "ld.global.u32 %r1, [%rd2];\nst.global.u32 [%rd4], %r1;\nret;\n}\n";

static const void *const module = (void *)0x5500, *const function = (void *)0x7700;
static const CUcontext context = (CUcontext)0x3300;

static uint32_t pointers_of(const void *handle)
{
    const struct ptx_kernel *facts = kernels_facts(handle);
    return facts ? facts->pointer_count : 0;
}

Test(kernel_facts, a_text_in_a_constant_is_read_when_it_is_asked_for)
{
    kernels_loaded(module, writes_two, context);
    kernels_named(function, module, "k", context);
    cr_assert_str_eq(kernels_name(function), "k");
    cr_assert_eq(pointers_of(function), 2);
}

Test(kernel_facts, a_text_in_a_variable_is_the_one_that_was_loaded)
{
    static char image[sizeof writes_two];
    memcpy(image, reads_one, sizeof reads_one);
    kernels_loaded(module, image, context);
    kernels_named(function, module, "k", context);
    memcpy(image, writes_two, sizeof writes_two);
    cr_assert_eq(pointers_of(function), 1);
}

Test(kernel_facts, nothing_is_known_of_a_function_whose_context_has_ended)
{
    kernels_loaded(module, writes_two, context);
    kernels_named(function, module, "k", context);
    cr_assert_eq(pointers_of(function), 2);
    kernels_context_gone(context);
    cr_assert_eq(pointers_of(function), 0);
    /* Loaded from a file, and given the same handles. */
    kernels_loaded(module, NULL, context);
    kernels_named(function, module, "k", context);
    cr_assert_eq(pointers_of(function), 0);
}

Test(kernel_facts, a_module_that_ended_unseen_is_not_taken_for_the_next_one)
{
    kernels_loaded(module, writes_two, context);
    kernels_named(function, module, "k", context);
    cr_assert_eq(pointers_of(function), 2);
    kernels_loaded(module, NULL, context);
    cr_assert_eq(pointers_of(function), 0);
    kernels_named(function, module, "k", context);
    cr_assert_eq(pointers_of(function), 0);
}

Test(kernel_facts, kernels_of_a_library_outlive_contexts_and_their_functions_do_not)
{
    const void *kernel = (void *)0x9900;
    kernels_loaded(module, writes_two, NULL);
    kernels_named(kernel, module, "k", NULL);
    kernels_same(function, kernel, context);
    cr_assert_eq(pointers_of(function), 2);
    kernels_context_gone(context);
    cr_assert_eq(pointers_of(function), 0);
    cr_assert_eq(pointers_of(kernel), 2);
    kernels_unloaded(module);
    cr_assert_eq(pointers_of(kernel), 0);
}

Test(kernel_facts, a_handle_that_is_another_kernels_now_counts_as_another)
{
    kernels_loaded(module, reads_one, context);
    kernels_named(function, module, "k", context);
    uint32_t before = *kernels_ended_of(function);
    kernels_named(function, module, "k", context);
    cr_assert_eq(*kernels_ended_of(function), before);
    kernels_unloaded(module);
    kernels_loaded(module, writes_two, context);
    kernels_named(function, module, "k", context);
    cr_assert_neq(*kernels_ended_of(function), before);
}

static long pages(void)
{
    long all = 0;
    FILE *file = fopen("/proc/self/statm", "r");
    cr_assert(file && fscanf(file, "%ld", &all) == 1);
    fclose(file);
    return all;
}

Test(kernel_facts, loading_and_unloading_for_ever_takes_no_more_memory)
{
    long before = 0;
    for (uintptr_t i = 0; i < 20000; i++) {
        const void *handle = (void *)(0x100000 + 16 * i);
        if (i == 2000) before = pages();
        kernels_loaded(module, writes_two, context);
        kernels_named(handle, module, "k", context);
        if (i % 10 == 0) cr_assert_eq(pointers_of(handle), 2);
        kernels_unloaded(module);
    }
    cr_assert_lt(pages() - before, 64);
}

/* What a constructor does that waits for a thread which launches a kernel. */
static _Atomic uint32_t asked;
static void *ask(void *unused)
{
    (void)unused;
    asked = pointers_of(function);
    return NULL;
}
void in_a_constructor(void);
void in_a_constructor(void)
{
    pthread_t thread;
    struct timespec until;
    cr_assert_eq(pthread_create(&thread, NULL, ask, NULL), 0);
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += 5;
    cr_assert_eq(pthread_timedjoin_np(thread, NULL, &until), 0, "it waits for the loader's lock");
}

Test(kernel_facts, asking_does_not_wait_for_a_thread_in_a_constructor)
{
    kernels_loaded(module, writes_two, context);
    kernels_named(function, module, "k", context);
    /* A library is opened at the first question of all. */
    kernels_loaded((void *)0x5600, reads_one, context);
    kernels_named((void *)0x7800, (void *)0x5600, "k", context);
    cr_assert_eq(pointers_of((void *)0x7800), 1);
    char path[4096];
    ssize_t length = readlink("/proc/self/exe", path, sizeof path - 16);
    cr_assert_gt(length, 0);
    strcpy(path + length, ".plugin.so");
    cr_assert(dlopen(path, RTLD_NOW), "%s", dlerror());
    cr_assert_eq(asked, 2);
}
