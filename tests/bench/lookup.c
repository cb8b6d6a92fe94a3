/* Look-ups among 200 000 live buffers of windows: by interior pointer and by start, ns each, as one JSON line. No driver. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include "shim/buffer.h"
#include "tests/unit/fake_vmm.h"

#define BUFFERS 200000
#define ROUNDS  2000000

static double now_ns(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return 1e9 * (double)now.tv_sec + (double)now.tv_nsec;
}

int main(void)
{
    static struct site site;
    static uintptr_t at[BUFFERS], probe[65536];
    struct context *context = fake_context(MODE_ALWAYS);
    if (!context) return 1;
    for (int i = 0; i < BUFFERS; i++) {
        at[i] = window_alloc(context, &site, 64, WINDOW_HOST);
        struct buffer buffer = {.address = at[i], .bytes = 64, .kind = BUFFER_DEVICE, .site = &site, .window = window_at(at[i])};
        if (!at[i] || !buffer_add(&buffer)) return 1;
    }
    srand(1);
    for (int i = 0; i < 65536; i++) probe[i] = at[(unsigned)rand() % BUFFERS];
    size_t found = 0, bytes;
    uintptr_t start;
    double begin = now_ns();
    for (int i = 0; i < ROUNDS; i++) {
        struct window *window = window_at(probe[i & 65535] + 33);
        found += window && window_buffer(window, probe[i & 65535] + 33, &start, &bytes) && start == probe[i & 65535];
    }
    double interior = (now_ns() - begin) / ROUNDS;
    begin = now_ns();
    for (int i = 0; i < ROUNDS; i++) {
        struct buffer buffer;
        found += buffer_find(probe[i & 65535], &buffer);
    }
    double exact = (now_ns() - begin) / ROUNDS;
    printf("{\"buffers\": %d, \"interior_ns\": %.1f, \"exact_ns\": %.1f, \"found\": %zu, \"registrations\": %d}\n", BUFFERS, interior,
           exact, found, fake.registrations);
    return found == 2 * ROUNDS ? 0 : 1;
}
