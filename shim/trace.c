#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include "shim/file.h"
#include "shim/lock.h"
#include "shim/log.h"
#include "shim/shim.h"
#include "shim/trace.h"
#include "shim/write.h"

static struct {
    struct lock lock;
    int fd; /* 0: not opened yet, -1: cannot be */
    size_t used;
    char text[65536];
} trace = {.lock = LOCK_INITIALIZER};

/* The lock is held. */
static void write_out(void)
{
    if (trace.fd == 0) {
        char path[PATH_MAX];
        file_path(path, sizeof path, shim.options.trace_copies);
        trace.fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (trace.fd < 0)
            log_always("trace %s could not be made (it must not exist before); copies are not traced",
                       shim.options.trace_copies);
    }
    if (trace.fd > 0 && write_all(trace.fd, trace.text, trace.used) != 0) {
        log_always("trace %s could not be written to its end", shim.options.trace_copies);
        trace.fd = -1;
    }
    trace.used = 0;
}

void trace_copy(const struct window *window, const struct earn_copy *copy)
{
    int error = errno;
    lock_acquire(&trace.lock);
    if (trace.fd >= 0) {
        if (trace.used + 128 > sizeof trace.text) write_out();
        trace.used +=
            text_format(trace.text + trace.used, 128, "%lu %lu %s %lu %d %s\n", (unsigned long)copy->now_ns,
                        (unsigned long)window->base, copy->direction == COST_H2D ? "h2d" : "d2h",
                        (unsigned long)copy->bytes, copy->waited, window->place == WINDOW_HOST ? "host" : "device");
    }
    lock_release(&trace.lock);
    errno = error;
}

void trace_flush(void)
{
    lock_acquire(&trace.lock);
    if (trace.used) write_out();
    lock_release(&trace.lock);
}
