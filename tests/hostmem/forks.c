/* Threads that allocate large and small while another forks: children allocate, free what they inherited, and exit 0.
 * Arguments: threads, forks. */
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static _Atomic int stop;
static void *work(void *argument)
{
    unsigned seed = (unsigned)(size_t)argument;
    while (!stop) {
        size_t bytes =
            rand_r(&seed) % 4 ? 64 + (size_t)rand_r(&seed) % 1000 : (4 << 20) + (size_t)rand_r(&seed) % (4 << 20);
        char *p = malloc(bytes);
        p[0] = p[bytes - 1] = 1;
        p = realloc(p, bytes / 2 + 1);
        free(p);
    }
    return NULL;
}
static void handler_allocates(void) { free(malloc(6 << 20)); }

int main(int argc, char **argv)
{
    int threads = argc > 1 ? atoi(argv[1]) : 8, forks = argc > 2 ? atoi(argv[2]) : 1000;
    pthread_t ids[64];
    pthread_atfork(handler_allocates, handler_allocates, handler_allocates);
    char *inherited = malloc(5 << 20);
    memset(inherited, 9, 5 << 20);
    for (int i = 0; i < threads; i++) pthread_create(&ids[i], NULL, work, (void *)(size_t)(i + 1));
    for (int i = 0; i < forks; i++) {
        pid_t child = fork();
        if (!child) {
            alarm(30);
            char *p = malloc(7 << 20), *q = calloc(1, 5 << 20);
            if (!p || !q || q[12345]) _exit(1);
            memset(p, 1, 4096);
            inherited = realloc(inherited, 9 << 20);
            if (inherited[(5 << 20) - 1] != 9) _exit(2);
            free(inherited);
            free(p);
            free(q);
            _exit(0);
        }
        int status;
        if (child < 0 || waitpid(child, &status, 0) != child || status) {
            fprintf(stderr, "fork %d: child's status %x\n", i, status);
            return 1;
        }
    }
    stop = 1;
    for (int i = 0; i < threads; i++) pthread_join(ids[i], NULL);
    free(inherited);
    return 0;
}
