#include "shim/lend_watch.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/userfaultfd.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "shim/system.h"

/* What the thread is asked to do with its descriptor. The bell is a watched page: touching it is the question, and the
 * touch ends when the answer stands here. */
static struct {
    _Atomic int state; /* 0 not started, 1 at work, -1 cannot */
    int descriptor;    /* in the thread's own file table */
    void (*answer)(uintptr_t);
    pthread_mutex_t lock; /* of the question */
    uintptr_t bell;
    bool begin, done;
    uintptr_t address;
    size_t bytes;
} watch = {.lock = PTHREAD_MUTEX_INITIALIZER};

static size_t page_bytes(void) { return (size_t)sysconf(_SC_PAGESIZE); }

static int open_descriptor(void)
{
    struct uffdio_api api = {.api = UFFD_API};
    int descriptor = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
    if (descriptor >= 0 && ioctl(descriptor, UFFDIO_API, &api) != 0) {
        close(descriptor);
        descriptor = -1;
    }
    return descriptor;
}

bool watch_possible(void)
{
    static _Atomic int known; /* 1 yes, -1 no */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (answer) return answer > 0;
    int error = errno, descriptor = open_descriptor();
    if (descriptor >= 0) close(descriptor);
    errno = error;
    atomic_store_explicit(&known, descriptor >= 0 ? 1 : -1, memory_order_relaxed);
    return descriptor >= 0;
}

static bool range_register(uintptr_t address, size_t bytes)
{
    struct uffdio_register range = {.range = {address, bytes}, .mode = UFFDIO_REGISTER_MODE_MISSING};
    return ioctl(watch.descriptor, UFFDIO_REGISTER, &range) == 0;
}

static bool range_unregister(uintptr_t address, size_t bytes)
{
    struct uffdio_range range = {address, bytes};
    return ioctl(watch.descriptor, UFFDIO_UNREGISTER, &range) == 0;
}

static void watch_wake(uintptr_t address, size_t bytes)
{
    struct uffdio_range range = {address, bytes};
    ioctl(watch.descriptor, UFFDIO_WAKE, &range);
}

void watch_fill(uintptr_t to, uintptr_t from, size_t bytes)
{
    size_t page = page_bytes(), done = 0, step = bytes;
    while (done < bytes) {
        size_t length = step < bytes - done ? step : bytes - done;
        struct uffdio_copy copy = {.dst = to + done, .src = from + done, .len = length};
        if (ioctl(watch.descriptor, UFFDIO_COPY, &copy) == 0)
            done += length;
        else if (copy.copy > 0)
            done += (size_t)copy.copy;
        else if (copy.copy == -ENOENT && step > page)
            step = page; /* the program has given some of these pages a mapping of their own (madvise, mlock) */
        else if (copy.copy == -EEXIST || copy.copy == -ENOENT)
            done += page; /* there already, or not watched any more */
        else if (copy.copy == -ESRCH || copy.copy == -EINVAL)
            break;
        else
            sched_yield(); /* out of memory, or mappings are being changed: again */
    }
    watch_wake(to, bytes);
}

void watch_zero(uintptr_t to, size_t bytes)
{
    struct uffdio_zeropage zero = {.range = {to, bytes}};
    ioctl(watch.descriptor, UFFDIO_ZEROPAGE, &zero);
    watch_wake(to, bytes);
}

static void answer_bell(void)
{
    watch.done =
        watch.begin ? range_register(watch.address, watch.bytes) : range_unregister(watch.address, watch.bytes);
    if (!watch.begin) watch_wake(watch.address, watch.bytes);
    watch_zero(watch.bell, page_bytes());
}

/* A file table of this thread's own with nothing in it: what the program closes has to be closed. */
static bool leave_files(void)
{
#ifndef SYS_close_range
#define SYS_close_range 436
#endif
    return syscall(SYS_close_range, 0u, ~0u, CLOSE_RANGE_UNSHARE) == 0;
}

static void *watch_thread(void *argument)
{
    (void)argument;
    struct uffd_msg message;
    bool ready =
        leave_files() && (watch.descriptor = open_descriptor()) >= 0 && range_register(watch.bell, page_bytes());
    atomic_store_explicit(&watch.state, ready ? 1 : -1, memory_order_release);
    while (ready) {
        ssize_t got = read(watch.descriptor, &message, sizeof message);
        if (got != sizeof message || message.event != UFFD_EVENT_PAGEFAULT) continue;
        uintptr_t address = message.arg.pagefault.address & ~(uintptr_t)(page_bytes() - 1);
        if (address == watch.bell)
            answer_bell();
        else
            watch.answer(address);
    }
    return NULL;
}

static bool thread_start(void)
{
    pthread_t thread;
    pthread_attr_t attributes;
    sigset_t all, before;
    sigfillset(&all);
    if (pthread_attr_init(&attributes) != 0) return false;
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    bool started = pthread_create(&thread, &attributes, watch_thread, NULL) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return started;
}

bool watch_start(void (*answer)(uintptr_t))
{
    int state = atomic_load_explicit(&watch.state, memory_order_acquire);
    if (state) return state > 0;
    void *bell = mmap(NULL, page_bytes(), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    watch.bell = (uintptr_t)bell;
    watch.answer = answer;
    if (bell == MAP_FAILED || !watch_possible() || !thread_start()) atomic_store(&watch.state, -1);
    while (!(state = atomic_load_explicit(&watch.state, memory_order_acquire))) sched_yield();
    return state > 0;
}

static bool ask(bool begin, uintptr_t address, size_t bytes)
{
    pthread_mutex_lock(&watch.lock);
    watch.begin = begin;
    watch.address = address;
    watch.bytes = bytes;
    atomic_thread_fence(memory_order_seq_cst);
    *(volatile char *)watch.bell = 1;
    atomic_thread_fence(memory_order_seq_cst); /* the answer was written while the touch was held up */
    bool done = watch.done;
    system_madvise((void *)watch.bell, page_bytes(), MADV_DONTNEED);
    pthread_mutex_unlock(&watch.lock);
    return done;
}

bool watch_begin(uintptr_t address, size_t bytes) { return ask(true, address, bytes); }
bool watch_end(uintptr_t address, size_t bytes) { return ask(false, address, bytes); }

void watch_after_fork_child(void)
{
    watch.lock = (pthread_mutex_t)PTHREAD_MUTEX_INITIALIZER;
    atomic_store(&watch.state, -1);
}
