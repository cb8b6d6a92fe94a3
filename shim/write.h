/* Writes of the shim's own. The signals that a failed one would send to a program that knows nothing of it (a pipe that
 * nobody reads, a file size limit) are held back. */
#ifndef SHIM_WRITE_H
#define SHIM_WRITE_H
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

struct write_guard {
    sigset_t ours, before;
};

static inline struct write_guard write_guard_begin(void)
{
    struct write_guard guard;
    sigset_t pending;
    sigemptyset(&guard.ours);
    sigaddset(&guard.ours, SIGPIPE);
    sigaddset(&guard.ours, SIGXFSZ);
    sigpending(&pending);
    pthread_sigmask(SIG_BLOCK, &guard.ours, &guard.before);
    if (sigismember(&pending, SIGPIPE)) sigdelset(&guard.ours, SIGPIPE); /* was there before: not ours to take */
    if (sigismember(&pending, SIGXFSZ)) sigdelset(&guard.ours, SIGXFSZ);
    return guard;
}

/* `error` is what the write failed with, 0 if it did not. */
static inline void write_guard_end(const struct write_guard *guard, int error)
{
    if (error == EPIPE || error == EFBIG)
        while (sigtimedwait(&guard->ours, NULL, &(struct timespec){0, 0}) > 0) continue;
    pthread_sigmask(SIG_SETMASK, &guard->before, NULL);
}

/* Writes all of it; 0, or the error that it ended with. */
static inline int write_all(int fd, const char *bytes, size_t count)
{
    struct write_guard guard = write_guard_begin();
    size_t done = 0;
    int error = 0;
    while (done < count && !error) {
        ssize_t wrote = write(fd, bytes + done, count - done);
        if (wrote > 0)
            done += (size_t)wrote;
        else if (wrote == 0)
            error = ENOSPC;
        else if (errno != EINTR)
            error = errno;
    }
    write_guard_end(&guard, error);
    return error;
}
#endif
