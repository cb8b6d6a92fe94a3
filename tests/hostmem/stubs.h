#ifndef TESTS_HOSTMEM_STUBS_H
#define TESTS_HOSTMEM_STUBS_H
#include <stdbool.h>
#include <stddef.h>
#include <unistd.h>
extern char stub_last_note[512];
extern bool stub_gpu_busy;
void stub_options(size_t pin_limit, int copy_threads);
#endif
