/* The pointers that every call about a small buffer of cuMemAlloc is asked with. */
#ifndef TESTS_CONFORMANCE_PLACES_H
#define TESTS_CONFORMANCE_PLACES_H
#include "conformance.h"

enum { BYTES = 256 };

enum place { LIVE, INTERIOR, FREED, FOREIGN, NOTHING, PLACES };
extern const char *const place_names[PLACES];

/* A new buffer each time, since the call may free it; 256 bytes. The freed one is the second of two. */
CUdeviceptr place_new(enum place place);

#define H(pointer) ((void *)(uintptr_t)(pointer))
/* Asks once for every place; the code sees the pointer as `at`. */
#define EACH_PLACE(question_format, ...)                                                                               \
    for (enum place place = LIVE; place < PLACES; place++) {                                                           \
        if (!question(question_format ", %s", place_names[place])) continue;                                           \
        CUdeviceptr at = place_new(place);                                                                             \
        (void)at;                                                                                                      \
        __VA_ARGS__;                                                                                                   \
    }
#define EACH_PLACE_CODE(question_format, call) EACH_PLACE(question_format, answer("%s", error_name(call)))
#endif
