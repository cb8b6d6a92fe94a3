/* A stand-in for the preload library: the real report room, and hooks that hand out addresses without any driver. */
#ifndef TESTS_REPORT_FAKE_SHIM_H
#define TESTS_REPORT_FAKE_SHIM_H
#include <stddef.h>
#include <stdint.h>

struct site;

/* Reads ZCSHIM_* and arms the exit report, as the real library's constructor does. */
void fake_start(void);
struct site *fake_capture(void);
/* `kind` is enum buffer_kind. Addresses count up from a fixed one, so that reports are the same in every run. */
uintptr_t fake_allocate(int kind, size_t bytes);
void fake_free(uintptr_t address);
/* Two large host blocks of one site, one of them freed. */
void fake_block(size_t bytes);
/* The context of all buffers is destroyed. */
void fake_abandon(void);
/* Gives the buffer's site copies that the driver did, slowly; a place on the host with a reason. */
void fake_copies(uintptr_t address);
void fake_placed(uintptr_t address);
/* All copies from the device took 5 ms. */
void fake_slow(void);
void fake_note(const char *text);
void fake_print_hash(void);
/* The Python frames of this call, a line each: "function file:line". */
void fake_python(char *text, size_t capacity);
/* What a capture takes here, ns. */
double fake_capture_ns(int rounds);
#endif
