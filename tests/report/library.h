#ifndef TESTS_REPORT_LIBRARY_H
#define TESTS_REPORT_LIBRARY_H
#include <stddef.h>
#include <stdint.h>
uintptr_t library_make(int kind, size_t bytes);
#endif
