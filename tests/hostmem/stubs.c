/* What the hostmem objects need of the rest of the shim when they are tested alone. */
#include <stdarg.h>
#include <stdio.h>
#include "shim/hostmem_internal.h"
#include "shim/report.h"
#include "shim/shim.h"
#include "tests/hostmem/stubs.h"

struct shim shim;
char stub_last_note[512];

void report_note(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(stub_last_note, sizeof stub_last_note, format, arguments);
    va_end(arguments);
}

void stub_options(size_t pin_limit, int copy_threads)
{
    shim.options.host = true;
    shim.options.mode = MODE_AUTO;
    shim.options.host_min = (size_t)4 << 20;
    shim.options.lend = LEND_AUTO;
    shim.options.lend_min = (size_t)32 << 20;
    shim.options.pin_limit = pin_limit;
    shim.options.copy_threads = copy_threads;
    shim.pid = getpid();
}

bool stub_gpu_busy;
bool gpu_is_quiet(void) { return !stub_gpu_busy; }

struct host_owner host_owner_count(size_t bytes) { return (struct host_owner){NULL, bytes}; }

void host_owner_uncount(struct host_owner owner) { (void)owner; }
