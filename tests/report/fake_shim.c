#include "tests/report/fake_shim.h"

#include <stdatomic.h>
#include <stdio.h>
#include <unistd.h>
#include "shim/buffer.h"
#include "shim/clock.h"
#include "shim/earning.h"
#include "shim/log.h"
#include "shim/python.h"
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

const struct cost *earning_cost(void) { return NULL; }

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

EXPORTED void fake_block(size_t bytes)
{
    struct site *site = site_capture_malloc();
    buffer_count_host(site, bytes);
    buffer_count_host(site, bytes);
    buffer_uncount_host(site, bytes);
}

EXPORTED void fake_abandon(void) { buffer_forget_context(NULL); }

EXPORTED void fake_copies(uintptr_t address)
{
    struct buffer buffer;
    if (!buffer_find(address, &buffer)) return;
    buffer.site->native_h2d = (struct site_copies){20000, 20000 * 256, 20000 * 5700ul};
    buffer.site->native_d2h = (struct site_copies){10000, 10000 * 4, 10000 * 8500ul};
    STAT_ADD(copies_native, 30000);
    STAT_ADD(bytes_native, 20000 * 256 + 10000 * 4);
    report_tick(clock_ns());
}

EXPORTED void fake_slow(void)
{
    for (struct site *site = site_first(); site; site = site->next)
        site->native_d2h.ns = site->native_d2h.count * 5000000ul;
}

EXPORTED void fake_placed(uintptr_t address)
{
    struct buffer buffer;
    if (!buffer_find(address, &buffer)) return;
    struct site *site = buffer.site;
    site->elided_h2d = (struct site_copies){5000, 5000 * 256, 5000 * 250ul};
    atomic_store(&site->reason, "its loop became 1.8 times faster there");
    site->saved_ns = 5000 * 5000ul;
    site->on_host = true;
    site->moves_to_host = 1;
    STAT_ADD(copies_h2d_elided, 5000);
    STAT_ADD(bytes_elided, 5000 * 256);
    STAT_ADD(elided_saved_ns, 5000 * 5000ul);
    STAT_ADD(moves_to_host, 1);
    report_moved(site, true, 1 << 20, clock_ns(), 180000);
    report_tick(clock_ns());
}

EXPORTED void fake_note(const char *text)
{
    report_note("%s", text);
    report_note("%s", text);
}

EXPORTED void fake_print_hash(void)
{
    struct site *site = site_capture();
    printf("%016lx\n", (unsigned long)site->hash);
}

EXPORTED void fake_python(char *text, size_t capacity)
{
    struct site *site = site_capture();
    size_t length = 0;
    text[0] = '\0';
    for (unsigned i = 0; site->python && i < site->python->count && length < capacity; i++)
        length += text_format(text + length, capacity - length, "%s %s:%u\n", site->python->frames[i].function,
                              site->python->frames[i].file, site->python->frames[i].line);
}

EXPORTED double fake_capture_ns(int rounds)
{
    uint64_t start = clock_ns();
    for (int i = 0; i < rounds; i++) fake_capture();
    return (double)(clock_ns() - start) / rounds;
}
