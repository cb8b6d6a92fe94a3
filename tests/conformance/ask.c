/* The child's side of a section: questions, answers, the gate, common preparations. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>
#include "ask.h"
#include "conformance.h"

enum { GATE_BLOCKED_MS = 5000 }; /* a call that takes this much longer than ask_patience_ms() waits for ever */
static const long long GATE_LIMIT_TICKS = 20000000000ll;

struct fixture fix;

static struct {
    const char *section;
    int first, next;
    bool announced;
    char name[160];
} asking;

/* ------------------------------------------------------------------------------------------------ questions */

static void line_write(const char *line, size_t length)
{
    while (length > 0) {
        ssize_t written = write(STDOUT_FILENO, line, length);
        if (written <= 0) return;
        line += written;
        length -= (size_t)written;
    }
}

static void line_print(const char *tail_format, ...)
{
    char line[512];
    int used = snprintf(line, sizeof line, "%s.%s: ", asking.section, asking.name);
    va_list list;
    va_start(list, tail_format);
    used += vsnprintf(line + used, sizeof line - (size_t)used - 2, tail_format, list);
    va_end(list);
    if (used > (int)sizeof line - 2) used = sizeof line - 2;
    line[used++] = '\n';
    line_write(line, (size_t)used);
}

/* After a question: the gate is open, the context still answers; else another process goes on. */
static void question_settle(void)
{
    gate_open();
    if (!fix.context || asking.next == 0 || asking.next <= asking.first) return;
    CUcontext current = NULL;
    if (d.cuCtxGetCurrent(&current) != CUDA_SUCCESS || current != fix.context) d.cuCtxSetCurrent(fix.context);
    CUresult code = d.cuCtxSynchronize();
    if (code == CUDA_SUCCESS) return;
    if (asking.announced) {
        size_t length = strlen(asking.name);
        snprintf(asking.name + length, sizeof asking.name - length, " afterwards");
        line_print("context lost, %s", error_name(code));
    }
    _exit(ASK_TAKE_OVER);
}

bool question(const char *format, ...)
{
    question_settle();
    asking.announced = false;
    int number = asking.next++;
    if (number < asking.first) return false;
    va_list list;
    va_start(list, format);
    vsnprintf(asking.name, sizeof asking.name, format, list);
    va_end(list);
    char line[200];
    int length = snprintf(line, sizeof line, "%c%d %s\n", ASK_MARK, number, asking.name);
    line_write(line, (size_t)length);
    asking.announced = true;
    return true;
}

void answer(const char *format, ...)
{
    char text[400];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof text, format, list);
    va_end(list);
    line_print("%s", text);
}

void question_take_over(void) { _exit(ASK_TAKE_OVER); }

void must(CUresult code, const char *what)
{
    if (code == CUDA_SUCCESS) return;
    gate_open();
    bool asked = asking.announced;
    if (!asked) snprintf(asking.name, sizeof asking.name, "prepare");
    line_print("%s is %s", what, error_name(code));
    _exit(asked ? ASK_TAKE_OVER : ASK_GIVE_UP);
}

/* ------------------------------------------------------------------------------------------------ the gate */

int ask_patience_ms(void)
{
    const char *wanted = getenv("CONFORMANCE_PATIENCE_MS");
    int ms = wanted ? atoi(wanted) : 0;
    return ms > 0 ? ms : 100;
}

static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool started, watching, returned, opened_by_watch;
    volatile int *open;
    CUdeviceptr open_device;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static bool gate_wait_returned(int ms)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += ms / 1000;
    until.tv_nsec += (ms % 1000) * 1000000l;
    if (until.tv_nsec >= 1000000000l) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000l;
    }
    while (!gate.returned) {
        if (pthread_cond_timedwait(&gate.changed, &gate.lock, &until) != 0) return gate.returned;
    }
    return true;
}

static void *gate_watcher(void *unused)
{
    (void)unused;
    pthread_mutex_lock(&gate.lock);
    for (;;) {
        while (!gate.watching) pthread_cond_wait(&gate.changed, &gate.lock);
        if (!gate_wait_returned(ask_patience_ms())) {
            gate.opened_by_watch = true;
            *gate.open = 1;
            if (!gate_wait_returned(GATE_BLOCKED_MS)) {
                line_print("blocked");
                _exit(ASK_TAKE_OVER);
            }
        }
        gate.watching = false;
        pthread_cond_broadcast(&gate.changed);
    }
    return NULL;
}

void gate_open(void)
{
    if (gate.open) *gate.open = 1;
}

void gate_close(CUstream stream)
{
    if (!gate.started) {
        void *flag;
        pthread_t thread;
        MUST(d.cuMemHostAlloc(&flag, 4096, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_PORTABLE));
        MUST(d.cuMemHostGetDevicePointer(&gate.open_device, flag, 0));
        gate.open = flag;
        gate.started = pthread_create(&thread, NULL, gate_watcher, NULL) == 0;
        *gate.open = 1; /* loads the kernel */
        long long limit = 0;
        launch(fix.gate_hold, NULL, (void *[]){&gate.open_device, &limit});
        d.cuCtxSynchronize();
    }
    *gate.open = 0;
    long long limit = GATE_LIMIT_TICKS;
    launch(fix.gate_hold, stream, (void *[]){&gate.open_device, &limit});
}

void gate_watch(void)
{
    pthread_mutex_lock(&gate.lock);
    gate.returned = false;
    gate.opened_by_watch = false;
    gate.watching = true;
    pthread_cond_broadcast(&gate.changed);
    pthread_mutex_unlock(&gate.lock);
}

const char *gate_verdict(CUresult code)
{
    static char verdict[96];
    pthread_mutex_lock(&gate.lock);
    gate.returned = true;
    pthread_cond_broadcast(&gate.changed);
    while (gate.watching) pthread_cond_wait(&gate.changed, &gate.lock);
    bool waited = gate.opened_by_watch;
    pthread_mutex_unlock(&gate.lock);
    snprintf(verdict, sizeof verdict, "%s%s%s", waited ? "waits" : "returns at once", code ? ", " : "",
             code ? error_name(code) : "");
    return verdict;
}

/* ------------------------------------------------------------------------------------------------ preparations */

void launch(CUfunction kernel, CUstream stream, void **arguments)
{
    MUST(d.cuLaunchKernel(kernel, 1, 1, 1, 1, 1, 1, 0, stream, arguments, NULL));
}

void *pages_new(size_t bytes)
{
    void *pages = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (pages == MAP_FAILED) must(CUDA_ERROR_OUT_OF_MEMORY, "mmap");
    memset(pages, 0, bytes);
    return pages;
}

void *registered_new(size_t bytes, CUdeviceptr *reservation)
{
    size_t window = (bytes + 0x1fffff) & ~(size_t)0x1fffff;
    CUdeviceptr address;
    MUST(d.cuMemAddressReserve(&address, window, 0, 0, 0));
    void *pages = mmap((void *)address, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    if (pages == MAP_FAILED) must(CUDA_ERROR_OUT_OF_MEMORY, "mmap in a reservation");
    memset(pages, 0, bytes);
    MUST(d.cuMemHostRegister(pages, bytes, CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE));
    if (reservation) *reservation = address;
    return pages;
}

int int_at(CUdeviceptr address)
{
    int value = -1;
    MUST(d.cuMemcpyDtoH(&value, address, sizeof value));
    return value;
}

/* ------------------------------------------------------------------------------------------------ a section */

__asm__(".section .rodata\n"
        ".balign 8\n"
        "kernels_ptx:\n"
        ".incbin \"" KERNELS_PTX "\"\n"
        ".byte 0\n"
        ".text\n");
extern const char kernels_ptx[] __attribute__((visibility("hidden")));

void fixture_begin(void)
{
    CUmodule module;
    MUST(d.cuInit(0));
    MUST(d.cuDeviceGet(&fix.device, 0));
    MUST(d.cuDevicePrimaryCtxRetain(&fix.context, fix.device));
    MUST(d.cuCtxSetCurrent(fix.context));
    MUST(d.cuModuleLoadData(&module, kernels_ptx));
    MUST(d.cuModuleGetFunction(&fix.gate_hold, module, "gate_hold"));
    MUST(d.cuModuleGetFunction(&fix.ints_add, module, "ints_add"));
    MUST(d.cuModuleGetFunction(&fix.ints_copy, module, "ints_copy"));
    MUST(d.cuModuleGetFunction(&fix.counter_add, module, "counter_add"));
}

int section_child(const struct section *section, int first)
{
    asking.section = section->name;
    asking.first = first;
    if (!driver_load()) return ASK_NO_DRIVER;
    if (!section->bare) fixture_begin();
    section->run();
    question_settle();
    return 0;
}
