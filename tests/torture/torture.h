/* What a torture run needs of its surroundings: an allocator, and copies to and from a device. */
#ifndef TESTS_TORTURE_H
#define TESTS_TORTURE_H
#include <stdbool.h>
#include <stddef.h>

struct backend {
    void *(*take)(size_t bytes, size_t alignment, bool zeroed);
    void *(*resize)(void *block, size_t bytes);
    void (*give)(void *block);
    /* device is an offset into DEVICE_BYTES of memory; async: in the thread's own stream, which is then waited for by
     * `wait`. */
    bool (*copy_in)(size_t device, const void *host, size_t bytes, bool async, int thread);
    bool (*copy_out)(void *host, size_t device, size_t bytes, bool async, int thread);
    void (*wait)(int thread);
    void (*before_fork)(void);
    void (*after_fork)(bool child);
    bool has_device;
};
#define TORTURE_THREADS_MAX 16
#define DEVICE_BYTES        ((size_t)32 << 20) /* of each thread */

bool backend_start(struct backend *backend, int threads);
#endif
