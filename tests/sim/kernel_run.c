/* Runs a kernel on the calling thread: block after block; the threads of a block one after another, and as fibers from
 * the first barrier on. A wrong address in a kernel ends it with ILLEGAL_ADDRESS. */
#include "cost.h"
#include "kernel.h"
#include "memory.h"
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#define FIBER_STACK_BYTES                                                                                              \
    (((size_t)64 << 10) + 1088) /* no power of two, or all tops would compete for one cache set                        \
                                 */
#define FIBERS_MAX 1024

struct fiber {
    void *stack_pointer;        /* while it does not run */
    struct zcsim_vector thread; /* the one that waits in it */
    bool started, waiting;
};
/* What an OS thread needs to run kernels; kept from launch to launch. */
struct runner {
    struct zcsim_thread self;
    const struct zcsim_kernel *kernel;
    void **values;
    unsigned threads, begun; /* of the block: how many, how many of them have started */
    struct zcsim_vector next;
    struct fiber *current;
    void *scheduler; /* its stack pointer while a fiber runs */
    bool faulted;
    char *stacks;
    struct fiber fibers[FIBERS_MAX];
};
static __thread struct runner *runner;
static __thread bool in_kernel;
static struct sigaction previous[2]; /* SIGSEGV, SIGBUS */
static pthread_once_t handlers_once = PTHREAD_ONCE_INIT;
static pthread_key_t runner_key;

/* Leaves one stack for another: not by longjmp or swapcontext, which sanitizers watch and misunderstand. */
#ifndef __x86_64__
#error "stack_switch() is written for x86-64"
#endif
void stack_switch(void **leave, void *enter);
__asm__(".text\n"
        ".globl stack_switch\n"
        ".hidden stack_switch\n"
        ".type stack_switch, @function\n"
        "stack_switch:\n"
        "push %rbp\n push %rbx\n push %r12\n push %r13\n push %r14\n push %r15\n"
        "mov %rsp, (%rdi)\n"
        "mov %rsi, %rsp\n"
        "pop %r15\n pop %r14\n pop %r13\n pop %r12\n pop %rbx\n pop %rbp\n"
        "ret\n"
        ".size stack_switch, . - stack_switch\n");

/* Where a kernel's fault goes on, on the fiber's own stack. */
static void fault_escape(void)
{
    void *never;
    runner->faulted = true;
    stack_switch(&never, runner->scheduler);
}

static void fault_handler(int signal, siginfo_t *information, void *context)
{
    if (in_kernel) {
        greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
        registers[REG_RSP] = (registers[REG_RSP] - 256) / 16 * 16 - 8;
        registers[REG_RIP] = (greg_t)(uintptr_t)fault_escape;
        return;
    }
    struct sigaction *old = &previous[signal == SIGBUS];
    if (old->sa_flags & SA_SIGINFO)
        old->sa_sigaction(signal, information, context);
    else if (old->sa_handler != SIG_DFL && old->sa_handler != SIG_IGN)
        old->sa_handler(signal);
    else
        sigaction(signal, old, NULL);
}

static void runner_free(void *ended)
{
    munmap(((struct runner *)ended)->stacks, FIBERS_MAX * FIBER_STACK_BYTES);
    free(ended);
}

static void handlers_install(void)
{
    struct sigaction action = {.sa_sigaction = fault_handler, .sa_flags = SA_SIGINFO};
    sigaction(SIGSEGV, &action, &previous[0]);
    sigaction(SIGBUS, &action, &previous[1]);
    pthread_key_create(&runner_key, runner_free);
}

static void barrier(void)
{
    struct runner *here = runner;
    struct fiber *fiber = here->current;
    fiber->waiting = true;
    fiber->thread = here->self.thread;
    stack_switch(&fiber->stack_pointer, here->scheduler);
    here->self.thread = fiber->thread;
}

static void thread_next(struct runner *here)
{
    here->self.thread = here->next;
    here->begun++;
    if (++here->next.x < here->self.block_size.x) return;
    here->next.x = 0;
    if (++here->next.y < here->self.block_size.y) return;
    here->next.y = 0;
    here->next.z++;
}

/* Threads of the block until all have started; one that waits keeps the fiber. */
static void fiber_body(void)
{
    struct runner *here = runner;
    struct fiber *fiber = here->current;
    for (;;) {
        while (here->begun < here->threads) {
            thread_next(here);
            here->kernel->invoke(here->values);
        }
        stack_switch(&fiber->stack_pointer, here->scheduler);
    }
}

/* Until it waits, has nothing more to run, or faults. */
static void fiber_resume(struct runner *here, struct fiber *fiber)
{
    here->current = fiber;
    if (!fiber->started) {
        fiber->started = true;
        void **top = (void **)(here->stacks + (size_t)(fiber - here->fibers + 1) * FIBER_STACK_BYTES);
        top[-2] = (void *)(uintptr_t)fiber_body; /* what stack_switch returns to, below a place for a return address */
        fiber->stack_pointer = top - 8;          /* and six registers */
    }
    stack_switch(&here->scheduler, fiber->stack_pointer);
}

/* False when a thread faulted. */
static bool block_run(struct runner *here)
{
    unsigned used = 0;
    here->begun = 0;
    here->next = (struct zcsim_vector){0, 0, 0};
    while (here->begun < here->threads && !here->faulted) {
        struct fiber *fiber = &here->fibers[used];
        fiber->waiting = false;
        fiber_resume(here, fiber);
        if (fiber->waiting) used++;
    }
    for (bool waiting = used > 0; waiting && !here->faulted;) {
        waiting = false;
        for (unsigned i = 0; i < used && !here->faulted; i++)
            if (here->fibers[i].waiting) {
                here->fibers[i].waiting = false;
                fiber_resume(here, &here->fibers[i]);
                waiting |= here->fibers[i].waiting;
            }
    }
    return !here->faulted;
}

static bool grid_run(struct runner *here)
{
    struct zcsim_vector *block = &here->self.block, *grid = &here->self.grid_size;
    for (block->z = 0; block->z < grid->z; block->z++)
        for (block->y = 0; block->y < grid->y; block->y++)
            for (block->x = 0; block->x < grid->x; block->x++)
                if (!block_run(here)) return false;
    return true;
}

static bool runner_prepare(void)
{
    pthread_once(&handlers_once, handlers_install);
    if (runner) return true;
    struct runner *made = calloc(1, sizeof *made);
    if (!made) return false;
    made->stacks = mmap(NULL, FIBERS_MAX * FIBER_STACK_BYTES, PROT_READ | PROT_WRITE,
                        MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (made->stacks == MAP_FAILED) {
        free(made);
        return false;
    }
    runner = made;
    pthread_setspecific(runner_key, made);
    return true;
}

/* An address as the kernel must see it. What no device could reach becomes an address that nobody can. */
static uint64_t translate(uint64_t address, bool certainly_pointer)
{
    char *inside = location_inside_whole(address);
    if (inside) return (uintptr_t)inside;
    /* Just behind an allocation: fine as long as it is not used. */
    char *before = address ? location_inside_whole(address - 1) : NULL;
    if (before) return (uintptr_t)before + 1;
    return address && certainly_pointer ? address | (uint64_t)1 << 63 : address;
}

/* Answers how many bytes of memory that the host shares the pointers name. */
static size_t arguments_translate(const struct zcsim_kernel *kernel, void **values)
{
    size_t shared_bytes = 0;
    sim_lock();
    for (unsigned i = 0; i < kernel->argument_count; i++) {
        const struct zcsim_argument *argument = &kernel->arguments[i];
        uint64_t *words = values[i];
        struct span *span = argument->kind == ZCSIM_POINTER ? span_at(*words) : NULL;
        if (span) shared_bytes += span->bytes;
        if (argument->kind == ZCSIM_POINTER) *words = translate(*words, true);
        if (argument->kind != ZCSIM_STRUCTURE || argument->alignment < 8) continue;
        for (unsigned word = 0; word < argument->bytes / 8; word++) words[word] = translate(words[word], false);
    }
    sim_unlock();
    return shared_bytes;
}

CUresult kernel_run(const struct launch *launch)
{
    const struct zcsim_kernel *kernel = launch->function->kernel;
    if (!runner_prepare()) return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
    struct runner *here = runner;
    size_t bytes = kernel_arguments_bytes(kernel);
    char arguments[bytes + 16] __attribute__((aligned(16)));
    void *values[kernel->argument_count + 1];
    memcpy(arguments, launch->arguments, bytes);
    size_t offset = 0;
    for (unsigned i = 0; i < kernel->argument_count; i++) {
        unsigned alignment = kernel->arguments[i].alignment;
        offset = (offset + alignment - 1) / alignment * alignment;
        values[i] = arguments + offset;
        offset += kernel->arguments[i].bytes;
    }
    uint64_t start_ns = time_now_ns();
    size_t shared_bytes = arguments_translate(kernel, values);
    here->self = (struct zcsim_thread){.block_size = {launch->block[0], launch->block[1], launch->block[2]},
                                       .grid_size = {launch->grid[0], launch->grid[1], launch->grid[2]},
                                       .barrier = barrier};
    here->kernel = kernel;
    here->values = values;
    here->threads = launch->block[0] * launch->block[1] * launch->block[2];
    for (unsigned i = 0; i < FIBERS_MAX && here->fibers[i].started; i++) here->fibers[i].started = false;
    launch->function->bind(&here->self);
    here->faulted = false;
    in_kernel = true;
    bool ran = grid_run(here);
    in_kernel = false;
    cost_kernel(shared_bytes, start_ns);
    return ran ? CUDA_SUCCESS : CUDA_ERROR_ILLEGAL_ADDRESS;
}
