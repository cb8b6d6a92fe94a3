/* The ways a program ends, with work and memory left over. */
#include "programs.h"
#include <signal.h>

static unsigned *left_over;

static void start_something(void)
{
    unsigned value = 1;
    MUST(cudaMalloc((void **)&left_over, 256));
    for (int round = 0; round < 10; round++) {
        MUST(cudaMemcpy(left_over, &value, sizeof(value), cudaMemcpyHostToDevice));
        launch_add(left_over, 1, 1, 0);
        MUST(cudaMemcpy(&value, left_over, sizeof(value), cudaMemcpyDeviceToHost));
    }
    printf("value %u\n", value);
}

static void free_in_handler(void)
{
    unsigned value = 0;
    printf("exit handler: %s, %u\n",
           cudaGetErrorName(cudaMemcpy(&value, left_over, sizeof(value), cudaMemcpyDeviceToHost)), value);
    printf("exit handler: %s\n", cudaGetErrorName(cudaFree(left_over)));
}

SNIPPET(exit_handler, "", "cudaMemcpy and cudaFree in an atexit handler set before CUDA starts: after its own")
{
    atexit(free_in_handler);
    start_something();
}

SNIPPET(exit_handler_late, "", "the same, set after CUDA has started: before its own")
{
    start_something();
    atexit(free_in_handler);
}

static bool free_in_destructor;
__attribute__((destructor)) static void end_of_program(void)
{
    if (!free_in_destructor) return;
    printf("destructor: %s\n", cudaGetErrorName(cudaFree(left_over)));
    fflush(stdout);
}

SNIPPET(exit_destructor, "", "cudaFree after main, in a destructor of the program")
{
    start_something();
    free_in_destructor = true;
}

SNIPPET(exit_code, "exit=42", "an exit code of the program's own")
{
    start_something();
    exit(42);
}

SNIPPET(exit_at_once, "exit=43", "_exit")
{
    start_something();
    fflush(stdout);
    _exit(43);
}

SNIPPET(exit_quick, "exit=44", "quick_exit")
{
    start_something();
    fflush(stdout);
    quick_exit(44);
}

static void *exit_from_thread(void *argument)
{
    (void)argument;
    exit(45);
}

SNIPPET(exit_in_thread, "exit=45", "exit called by a thread while another copies")
{
    start_something();
    fflush(stdout);
    pthread_t thread;
    pthread_create(&thread, NULL, exit_from_thread, NULL);
    unsigned value = 1;
    for (;;)
        if (cudaMemcpy(left_over, &value, sizeof(value), cudaMemcpyHostToDevice)) usleep(1000);
}

SNIPPET(exit_by_signal, "exit=-15", "killed by a signal")
{
    start_something();
    fflush(stdout);
    raise(SIGTERM);
}

SNIPPET(exit_busy, "exit=46", "the program ends while its stream is busy for some milliseconds")
{
    start_something();
    struct gate *gate = gate_close(0);
    MUST(cudaMemcpyAsync(left_over, &left_over, 8, cudaMemcpyHostToDevice, 0));
    gate_open_later(gate, 10);
    exit(46);
}

SNIPPET(exit_with_leaks, "", "memory of every kind is still there")
{
    void *pinned, *mapped, *page = aligned_alloc(4096, 4096);
    start_something();
    MUST(cudaMallocHost(&pinned, 100));
    MUST(cudaHostAlloc(&mapped, 100, cudaHostAllocMapped));
    MUST(cudaHostRegister(page, 4096, 0));
    if (!malloc(20 << 20)) exit(1);
}
