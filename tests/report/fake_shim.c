#include "tests/report/fake_shim.h"

#include <stdatomic.h>
#include <unistd.h>
#include "shim/buffer.h"
#include "shim/log.h"
#include "shim/report.h"
#include "shim/shim.h"

#define EXPORTED __attribute__((visibility("default")))

struct shim shim;
extern char **environ;

static void warn(void *ctx, const char *line)
{
    (void)ctx;
    log_always("%s", line);
}

EXPORTED void fake_start(void)
{
    options_parse(&shim.options, environ, warn, NULL);
    shim.pid = getpid();
    atomic_store(&shim.state, SHIM_ACTIVE);
}

__attribute__((destructor)) static void fake_end(void)
{
    if (shim_active() && shim.pid == getpid()) report_at_exit();
}

EXPORTED __attribute__((noinline)) struct site *fake_capture(void)
{
    struct site *site = site_capture();
    __asm__ volatile(""); /* no tail call: a hook goes on after the capture */
    return site;
}

EXPORTED uintptr_t fake_allocate(int kind, size_t bytes)
{
    static _Atomic uintptr_t next = 0x7f0000000000;
    struct buffer buffer = {.address = atomic_fetch_add(&next, (bytes + 511) & ~(size_t)511),
                            .bytes = bytes,
                            .kind = (enum buffer_kind)kind,
                            .site = site_capture(),
                            .id = buffer_next_id()};
    return buffer_add(&buffer) ? buffer.address : 0;
}

EXPORTED void fake_free(uintptr_t address)
{
    struct buffer buffer;
    struct site *site = site_capture();
    if (buffer_remove(address, &buffer)) return;
    if (buffer_was_freed(address)) report_misuse(MISUSE_DOUBLE_FREE, (void *)address, NULL, site);
}
