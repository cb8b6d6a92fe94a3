/* A program with one of each thing that a report tells, at known lines: program WHAT... */
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "shim/report.h"
#include "tests/report/fake_shim.h"

static volatile int made; /* something to do after a call, or it would be a jump and leave no frame */

__attribute__((noinline)) static uintptr_t make_table(void)
{
    uintptr_t table = fake_allocate(BUFFER_DEVICE, 1 << 20);
    made++;
    return table;
}

static inline __attribute__((always_inline)) uintptr_t inlined_maker(size_t bytes)
{
    return fake_allocate(BUFFER_PINNED, bytes);
}

__attribute__((noinline)) static uintptr_t make_pinned(void)
{
    uintptr_t pinned = inlined_maker(4096);
    made++;
    return pinned;
}

/* Through a library that is opened and closed again. */
static void make_in(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    uintptr_t (*make)(int, size_t) = library ? (uintptr_t(*)(int, size_t))dlsym(library, "library_make") : NULL;
    if (!make) exit(99);
    make(BUFFER_DEVICE, 2048);
    made++;
    dlclose(library);
}

static void leak(void)
{
    uintptr_t first = make_table();
    for (int i = 0; i < 3; i++) make_table();
    make_pinned();
    fake_free(first);
}

static void free_twice(void)
{
    uintptr_t table = make_table();
    fake_free(table);
    fake_free(table);
    fake_free(table);
}

static void run(const char *what)
{
    if (strcmp(what, "leak") == 0)
        leak();
    else if (strcmp(what, "tidy") == 0)
        fake_free(make_table());
    else if (strcmp(what, "twice") == 0)
        free_twice();
    else if (strcmp(what, "copies") == 0)
        fake_copies(make_table());
    else if (strcmp(what, "placed") == 0)
        fake_placed(make_table());
    else if (strcmp(what, "note") == 0)
        fake_note("something the user should know");
    else if (strcmp(what, "hash") == 0)
        fake_print_hash(), fflush(stdout);
    else if (strcmp(what, "chdir") == 0 && chdir("/"))
        exit(98);
    else if (strcmp(what, "print") == 0)
        printf("printed, not flushed\n");
    else if (strcmp(what, "exit5") == 0)
        exit(5);
    else if (strcmp(what, "file2") == 0)
        close(2), (void)!open("second.txt", O_WRONLY | O_CREAT, 0600);
    else if (strcmp(what, "fork") == 0 && fork() == 0)
        exit(0);
    else if (strcmp(what, "exec") == 0 && fork() == 0)
        execl("/proc/self/exe", "program", "leak", (char *)NULL);
    else if (strcmp(what, "usr1") == 0)
        raise(SIGUSR1);
    else if (strcmp(what, "wait") == 0)
        wait(NULL);
    else if (strncmp(what, "./", 2) == 0)
        make_in(what);
    else if (strcmp(what, "host") == 0)
        fake_block(8 << 20), made++;
    else if (strcmp(what, "reset") == 0)
        fake_abandon();
    else if (strcmp(what, "slow") == 0)
        fake_slow();
}

int main(int argc, char **argv)
{
    fake_start();
    for (int i = 1; i < argc; i++) run(argv[i]);
    return 0;
}
