/* The copy threads and the choice of the way: what a program that looks at its threads, signals and CPUs may notice. */
#include <criterion/criterion.h>
#include <dirent.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include "shim/hostmem.h"
#include "shim/hostmem_internal.h"
#include "shim/shim.h"
#include "tests/hostmem/copies.h"

TestSuite(hostmem_staging, .init = copies_setup, .timeout = 60);

static bool copy_other_memory(size_t bytes)
{
    static char *host, *device;
    if (!host) {
        host = mmap(NULL, 64 * MIB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        device = fake_device(64 * MIB);
        memset(host, 3, 64 * MIB);
    }
    struct copy_request request = flat(COPY_H2D, device, host, bytes, CU_STREAM_LEGACY, false);
    CUresult result = CUDA_ERROR_UNKNOWN;
    return hostmem_copy(&request, &result) && result == CUDA_SUCCESS && device[bytes - 1] == 3;
}

/* How many threads this process has, and how many of them are copy threads that take any signal. */
static int count_threads(int *unblocked)
{
    int threads = 0;
    DIR *tasks = opendir("/proc/self/task");
    for (struct dirent *entry; tasks && (entry = readdir(tasks));) {
        char path[300], text[4096] = "";
        if (entry->d_name[0] == '.') continue;
        threads++;
        snprintf(path, sizeof path, "/proc/self/task/%s/status", entry->d_name);
        FILE *file = fopen(path, "r");
        size_t length = file ? fread(text, 1, sizeof text - 1, file) : 0;
        if (file) fclose(file);
        text[length] = 0;
        char *mask = strstr(text, "SigBlk:");
        /* SIGKILL, SIGSTOP and the two that libc keeps for itself cannot be blocked. */
        unsigned long long blocked = mask ? strtoull(mask + 7, NULL, 16) : 0, all = 0xfffffffe7ffbfeffull;
        if (strstr(text, "zcshim-copy") && (blocked & all) != all) ++*unblocked;
    }
    if (tasks) closedir(tasks);
    return threads;
}

Test(hostmem_staging, copy_threads_take_no_signals_and_are_gone_when_idle)
{
    int unblocked = 0, before = count_threads(&unblocked);
    cr_assert(copy_other_memory(64 * MIB));
    cr_assert_gt(count_threads(&unblocked), before);
    cr_assert_eq(unblocked, 0);
    for (int i = 0; i < 50 && count_threads(&unblocked) > before; i++) usleep(100000);
    cr_assert_eq(count_threads(&unblocked), before);
    cr_assert(copy_other_memory(64 * MIB), "and come back");
}

Test(hostmem_staging, no_copy_thread_lives_while_the_process_forks_and_none_after_exit)
{
    int unblocked = 0, before = count_threads(&unblocked);
    cr_assert(copy_other_memory(64 * MIB));
    hostmem_before_fork();
    cr_assert_eq(count_threads(&unblocked), before);
    hostmem_after_fork_parent();
    cr_assert(copy_other_memory(64 * MIB));
    hostmem_at_exit();
    cr_assert_eq(count_threads(&unblocked), before);
    cr_assert(!copy_other_memory(64 * MIB), "the driver's way from then on");
}

Test(hostmem_staging, on_one_cpu_the_driver_copies)
{
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(sched_getcpu(), &one);
    cr_assert_eq(sched_setaffinity(0, sizeof one, &one), 0);
    stub_options((size_t)1 << 30, -1);
    cr_assert_eq(budget_cpus(), 1);
    cr_assert_eq(pool_threads(), 0);
    cr_assert(!copy_other_memory(64 * MIB));
}

static bool write_file(const char *folder, const char *name, const char *text)
{
    char path[300];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    int file = open(path, O_WRONLY);
    bool done = file >= 0 && write(file, text, strlen(text)) == (ssize_t)strlen(text);
    if (file >= 0) close(file);
    return done;
}

/* Moves this process into a group with the quota of one CPU; false where none can be made. */
static bool enter_quota(char *folder, size_t capacity)
{
    char self[32];
    snprintf(self, sizeof self, "%d", (int)getpid());
    snprintf(folder, capacity, "/sys/fs/cgroup/cpu/zcshim-test-%s", self);
    if (mkdir(folder, 0755) == 0) {
        if (write_file(folder, "cpu.cfs_period_us", "100000") && write_file(folder, "cpu.cfs_quota_us", "100000") &&
            write_file(folder, "cgroup.procs", self))
            return true;
        rmdir(folder);
        return false;
    }
    snprintf(folder, capacity, "/sys/fs/cgroup/zcshim-test-%s", self);
    if (mkdir(folder, 0755) != 0) return false;
    if (write_file(folder, "cpu.max", "100000 100000") && write_file(folder, "cgroup.procs", self)) return true;
    rmdir(folder);
    return false;
}

Test(hostmem_staging, under_a_quota_of_one_cpu_the_driver_copies)
{
    char folder[200];
    if (!enter_quota(folder, sizeof folder)) {
        fprintf(stderr, "no cgroup with a CPU quota can be made here: not tested\n");
        return;
    }
    stub_options((size_t)1 << 30, -1);
    unsigned cpus = budget_cpus(), threads = pool_threads();
    char parent[300], self[32];
    snprintf(self, sizeof self, "%d", (int)getpid());
    snprintf(parent, sizeof parent, "%s/..", folder);
    write_file(parent, "cgroup.procs", self);
    rmdir(folder);
    cr_assert_eq(cpus, 1);
    cr_assert_eq(threads, 0);
}

/* How often the threads are chosen in 64 copies. */
static int staged_of_64(enum copy_direction direction, size_t bytes)
{
    int staged = 0;
    for (int i = 0; i < 64; i++) staged += rate_choose(direction, bytes, false) == RATE_STAGED;
    return staged;
}

Test(hostmem_staging, the_way_that_this_run_measured_as_faster_is_taken)
{
    cr_assert_geq(staged_of_64(COPY_H2D, 64 * MIB), 60, "what one machine measured, to begin with");
    cr_assert_leq(staged_of_64(COPY_H2D, 4 * MIB), 2, "small uploads stay native until measured");
    int passed = 0;
    for (int i = 0; i < 12; i++)
        passed += rate_passes(COPY_H2D, 6 * MIB) || (rate_choose(COPY_H2D, 6 * MIB, false), false);
    cr_assert(passed >= 8 && passed < 12, "most of them unasked, some measured");
    for (int i = 0; i < 20; i++) { /* a busy machine: threads that get no CPU */
        rate_observe(COPY_H2D, 64 * MIB, false, RATE_STAGED, 20000000);
        rate_observe(COPY_H2D, 64 * MIB, false, RATE_NATIVE, 8000000);
        rate_observe(COPY_H2D, 4 * MIB, false, RATE_STAGED, 200000);
        rate_observe(COPY_H2D, 4 * MIB, false, RATE_NATIVE, 400000);
    }
    cr_assert_leq(staged_of_64(COPY_H2D, 64 * MIB), 2);
    cr_assert_geq(staged_of_64(COPY_H2D, 4 * MIB), 62);
    for (int i = 0; i < 20; i++) rate_observe(COPY_H2D, 64 * MIB, false, RATE_STAGED, 2000000);
    cr_assert_geq(staged_of_64(COPY_H2D, 64 * MIB), 62, "and back when it is quiet again");
}
