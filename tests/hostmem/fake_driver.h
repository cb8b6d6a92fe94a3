/* A driver of a few functions for tests of hostmem alone: registrations with their rules, streams that can be held,
 * pageable and registered copies with the driver's ordering, faults on request. Device memory is ordinary memory of the
 * test. */
#ifndef TESTS_HOSTMEM_FAKE_DRIVER_H
#define TESTS_HOSTMEM_FAKE_DRIVER_H
#include <cuda.h>
#include <stdbool.h>
#include <stddef.h>

/* Fills shim.real, resets everything. */
void fake_start(void);
/* Work of the stream stays undone until it is let go (by another thread, if someone waits). */
void fake_hold(CUstream stream);
void fake_let_go(CUstream stream);
/* The next `count` registrations fail with `code`; count < 0: all. */
void fake_refuse_registration(int count, CUresult code);
size_t fake_registered_bytes(void);
int fake_registrations(void);
int fake_unregistrations(void);
bool fake_is_registered(const void *address);
/* Calls that copied, by their host side. */
int fake_copies_pageable(void);
int fake_copies_registered(void);
/* A valid device range of the test's memory. */
void *fake_device(size_t bytes);
#endif
