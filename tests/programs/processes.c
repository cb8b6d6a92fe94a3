/* fork, exec, and what is left of the standard descriptors. */
#include "programs.h"
#include <fcntl.h>
#include <spawn.h>
#include <stdatomic.h>
#include <sys/syscall.h>
#include <signal.h>

extern char **environ;

static void round_trip(unsigned first)
{
    unsigned *device, host[64], back[64];
    for (int i = 0; i < 64; i++) host[i] = first + i;
    MUST(cudaMalloc((void **)&device, sizeof(host)));
    for (int round = 0; round < 5; round++) {
        MUST(cudaMemcpy(device, host, sizeof(host), cudaMemcpyHostToDevice));
        launch_add(device, 1, 64, 0);
        MUST(cudaMemcpy(back, device, sizeof(host), cudaMemcpyDeviceToHost));
    }
    expect(back[7] == first + 8, "round trip %u", first);
    MUST(cudaFree(device));
}

SNIPPET(fork_child_exits, "", "a child of a program that uses CUDA exits with 0 and leaves the parent alone")
{
    char *block = malloc(8 << 20), *large;
    round_trip(1);
    memset(block, 3, 8 << 20);
    MUST(cudaMalloc((void **)&large, 8 << 20));
    MUST(cudaMemcpy(large, block, 8 << 20, cudaMemcpyHostToDevice));
    for (int how = 0; how < 2; how++) {
        fflush(stdout);
        pid_t child = fork();
        if (!child) {
            int wrong = block[5] != 3;
            block[6] = 4;
            free(block);
            char *other = calloc(1, 9 << 20);
            wrong += other[100] != 0;
            free(other);
            if (how) _exit(wrong);
            exit(wrong);
        }
        block[5] = 3;
        printf("child: %d\n", wait_for(child));
        expect(block[6] == 3, "the parent's block is the parent's");
        memset(block, 3, 8 << 20);
        MUST(cudaMemcpy(large, block, 8 << 20, cudaMemcpyHostToDevice));
        round_trip(2);
    }
    memset(block, 9, 8 << 20);
    MUST(cudaMemcpy(large, block, 8 << 20, cudaMemcpyHostToDevice));
    memset(block, 0, 8 << 20);
    MUST(cudaMemcpy(block, large, 8 << 20, cudaMemcpyDeviceToHost));
    expect(block[77] == 9 && block[(8 << 20) - 1] == 9, "the parent's writes after the fork are seen");
    MUST(cudaFree(large));
    free(block);
}

SNIPPET(fork_before, "", "a parent that never used CUDA before the fork: both use it afterwards")
{
    free(malloc(8 << 20));
    fflush(stdout);
    pid_t child = fork();
    if (!child) {
        round_trip(10);
        exit(0);
    }
    printf("child: %d\n", wait_for(child));
    round_trip(20);
}

SNIPPET(fork_many, "", "children while other threads allocate")
{
    round_trip(1);
    for (int i = 0; i < 50; i++) {
        fflush(stdout);
        pid_t child = fork();
        if (!child) {
            free(malloc(5 << 20));
            _exit(7);
        }
        free(malloc(6 << 20));
        const int code = wait_for(child);
        if (code != 7) expect(false, "child %d: %d", i, code);
    }
    round_trip(2);
}

static atomic_bool stop_allocating;

static void *allocate_until_stopped(void *argument)
{
    (void)argument;
    while (!stop_allocating) {
        free(malloc(100));
        free(malloc(5 << 20));
        usleep(20); /* libc's own fork starves otherwise */
    }
    return NULL;
}

SNIPPET(fork_while_allocating, "", "forks while eight threads allocate: no child inherits a held lock")
{
    enum { THREADS = 8, CHILDREN = 100 };
    pthread_t thread[THREADS];
    int wrong = 0;
    round_trip(1);
    for (int t = 0; t < THREADS; t++) pthread_create(&thread[t], NULL, allocate_until_stopped, NULL);
    fflush(stdout);
    for (int i = 0; i < CHILDREN; i++) {
        pid_t child = fork();
        if (!child) {
            free(malloc(100));
            free(realloc(malloc(5 << 20), 9 << 20));
            _exit(0);
        }
        wrong += wait_for(child) != 0;
    }
    stop_allocating = true;
    for (int t = 0; t < THREADS; t++) pthread_join(thread[t], NULL);
    expect(!wrong, "%d children", CHILDREN);
    round_trip(2);
}

SNIPPET(fork_unseen, "", "a child by the system call itself, which runs no fork handlers")
{
    char *block = malloc(8 << 20);
    round_trip(1);
    memset(block, 1, 8 << 20);
    fflush(stdout);
    pid_t child = (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (!child) {
        int wrong = block[100] != 1;
        block[100] = 2;
        free(block);
        _exit(wrong);
    }
    printf("child: %d\n", wait_for(child));
    expect(block[100] == 1, "the parent's block is its own");
    free(block);
    round_trip(2);
}

SNIPPET(exec_children, "", "children by system, popen and posix_spawn behave as bare")
{
    round_trip(1);
    fflush(stdout);
    printf("system: %d\n", system("echo from a shell; exit 3"));
    FILE *pipe = popen("echo from a pipe; ls /dev/null", "r");
    char line[100];
    while (fgets(line, sizeof(line), pipe)) printf("read: %s", line);
    printf("pclose: %d\n", pclose(pipe));
    fflush(stdout);
    char *arguments[] = {"sh", "-c", "echo spawned; exit 5", NULL};
    pid_t child;
    const int failed = posix_spawn(&child, "/bin/sh", NULL, NULL, arguments, environ);
    const int code = wait_for(child);
    printf("spawn: %d, exit: %d\n", failed, code);
    round_trip(2);
}

SNIPPET(exec_self, "exit=9", "the program replaces itself by another")
{
    round_trip(1);
    fflush(stdout);
    execl("/bin/sh", "sh", "-c", "echo replaced; exit 9", (char *)NULL);
}

SNIPPET(stderr_closed, "", "a program that closes its standard error")
{
    close(2);
    round_trip(1);
    void *lost;
    MUST(cudaMalloc(&lost, 100));
}

SNIPPET(stderr_becomes_a_file, "", "a program whose descriptor 2 is a data file by the time it ends")
{
    const char *path = getenv("PROGRAMS_DATA_FILE");
    close(2);
    int file = open(path ? path : "/dev/null", O_WRONLY | O_CREAT | O_TRUNC, 0600);
    printf("descriptor %d\n", file);
    round_trip(1);
    if (write(file, "data\n", 5) != 5) exit(1);
    void *lost;
    MUST(cudaMalloc(&lost, 100));
}

SNIPPET(stderr_file_intact, "", "and that file holds only what the program wrote")
{
    char path[] = "/tmp/programs-XXXXXX", text[200] = "";
    close(mkstemp(path));
    setenv("PROGRAMS_DATA_FILE", path, 1);
    printf("exit: %d\n", run_snippet("stderr_becomes_a_file"));
    int file = open(path, O_RDONLY);
    ssize_t length = read(file, text, sizeof(text) - 1);
    close(file);
    unlink(path);
    expect(length == 5, "%zd bytes: %s", length, text);
}

SNIPPET(stdout_closed, "exit=6", "a program that closes every descriptor")
{
    round_trip(1);
    fflush(stdout);
    for (int fd = 0; fd < 3; fd++) close(fd);
    unsigned *device, value = 1;
    if (cudaMalloc((void **)&device, 4) || cudaMemcpy(device, &value, 4, cudaMemcpyHostToDevice)) _exit(1);
    exit(6);
}
