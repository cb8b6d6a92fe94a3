/*
 * The parent: runs each section in processes of its own, each with a time limit.
 * CONFORMANCE_JOBS=n runs n sections at a time (1); the lines come in the same order.
 * CONFORMANCE_PATIENCE_MS=n is for busy machines: after n ms (100) a call counts as one that waits.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "ask.h"

enum { SECTION_LIMIT_MS = 30000, QUESTION_LIMIT_MS = 7000, TAKE_OVERS_MAX = 100 };

const struct section sections[] = {
#define X(name)     {#name, name, false},
#define XBARE(name) {#name, name, true},
#include "sections.def"
#undef X
#undef XBARE
    {NULL, NULL, false},
};

static long now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

struct child {
    pid_t pid;
    int output;
    bool late;
    int latest; /* number of the latest question, -1 before the first */
    char name[200];
    bool answered;
};

static void child_start(struct child *child, const char *section, int first)
{
    int ends[2];
    char number[16];
    snprintf(number, sizeof number, "%d", first);
    if (pipe(ends) != 0) exit(1);
    fflush(stdout);
    child->pid = fork();
    if (child->pid == 0) {
        dup2(ends[1], STDOUT_FILENO);
        close(ends[0]);
        close(ends[1]);
        execl("/proc/self/exe", "conformance", "--child", section, number, (char *)NULL);
        _exit(126);
    }
    close(ends[1]);
    child->output = ends[0];
    child->late = false;
    child->latest = -1;
    child->name[0] = 0;
    child->answered = true;
}

static void child_line(struct child *child, const char *line)
{
    if (line[0] == ASK_MARK) {
        sscanf(line + 1, "%d %199[^\n]", &child->latest, child->name);
        child->answered = false;
        return;
    }
    fputs(line, stdout);
    putchar('\n');
    child->answered = true;
}

/* Passes lines on until the child closes its end; kills it when a question takes too long. Returns its wait status. */
static int child_finish(struct child *child, long section_until_ms)
{
    long until_ms = now_ms() + QUESTION_LIMIT_MS + ask_patience_ms();
    char buffer[8192];
    size_t used = 0;
    int status = 0;
    for (;;) {
        long left = (until_ms < section_until_ms ? until_ms : section_until_ms) - now_ms();
        struct pollfd wait = {.fd = child->output, .events = POLLIN};
        int ready = left > 0 ? poll(&wait, 1, (int)left) : 0;
        if (ready < 0 && errno == EINTR) continue;
        if (ready <= 0) {
            child->late = true;
            kill(child->pid, SIGKILL);
            break;
        }
        ssize_t got = read(child->output, buffer + used, sizeof buffer - 1 - used);
        if (got <= 0) break;
        until_ms = now_ms() + QUESTION_LIMIT_MS + ask_patience_ms();
        used += (size_t)got;
        buffer[used] = 0;
        char *line = buffer;
        for (char *end; (end = strchr(line, '\n')); line = end + 1) {
            *end = 0;
            child_line(child, line);
        }
        used -= (size_t)(line - buffer);
        memmove(buffer, line, used);
    }
    close(child->output);
    waitpid(child->pid, &status, 0);
    return status;
}

/* Returns false when there is no driver or no device. */
static bool section_run(const struct section *section)
{
    int first = 0;
    long until_ms = now_ms() + SECTION_LIMIT_MS * (1 + ask_patience_ms() / 100) / 2;
    for (int processes = 0; processes < TAKE_OVERS_MAX; processes++) {
        struct child child;
        child_start(&child, section->name, first);
        int status = child_finish(&child, until_ms);
        if (WIFEXITED(status) && WEXITSTATUS(status) == ASK_NO_DRIVER) return false;
        if (WIFEXITED(status) && (WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == ASK_GIVE_UP)) return true;
        const char *dot = child.latest >= 0 ? "." : "";
        const char *name = child.latest >= 0 ? child.name : "";
        const char *when = child.answered && child.latest >= 0 ? " afterwards" : "";
        if (child.late) {
            printf("%s%s%s%s: time limit\n", section->name, dot, name, when);
            if (now_ms() >= until_ms) return true;
        } else if (WIFSIGNALED(status)) {
            printf("%s%s%s%s: died with signal %d\n", section->name, dot, name, when, WTERMSIG(status));
        } else if (WEXITSTATUS(status) != ASK_TAKE_OVER) {
            printf("%s%s%s%s: exited with %d\n", section->name, dot, name, when, WEXITSTATUS(status));
        }
        if (child.latest < 0) return true;
        first = child.latest + 1;
    }
    printf("%s: too many processes lost\n", section->name);
    return true;
}

/* Runs sections in up to `jobs` processes at once; prints each one's lines when its turn comes. */
static void sections_run(const struct section *const *list, int count, int jobs)
{
    FILE *outputs[count];
    pid_t workers[count];
    int started = 0;
    for (int turn = 0; turn < count; turn++) {
        for (; started < count && started < turn + jobs; started++) {
            outputs[started] = tmpfile();
            if (!outputs[started]) exit(1);
            fflush(stdout);
            workers[started] = fork();
            if (workers[started] == 0) {
                dup2(fileno(outputs[started]), STDOUT_FILENO);
                section_run(list[started]);
                fflush(stdout);
                _exit(0);
            }
        }
        waitpid(workers[turn], NULL, 0);
        char buffer[8192];
        rewind(outputs[turn]);
        for (size_t got; (got = fread(buffer, 1, sizeof buffer, outputs[turn])) > 0;) fwrite(buffer, 1, got, stdout);
        fclose(outputs[turn]);
        fflush(stdout);
    }
}

static bool device_present(void)
{
    int count = 0;
    return driver_load() && d.cuInit(0) == CUDA_SUCCESS && d.cuDeviceGetCount(&count) == CUDA_SUCCESS && count > 0;
}

static const struct section *section_find(const char *name)
{
    for (const struct section *section = sections; section->name; section++) {
        if (strcmp(section->name, name) == 0) return section;
    }
    fprintf(stderr, "conformance: no section %s (see --list)\n", name);
    exit(2);
}

int main(int count, char **arguments)
{
    if (count == 4 && strcmp(arguments[1], "--child") == 0) {
        return section_child(section_find(arguments[2]), atoi(arguments[3]));
    }
    if (count == 3 && strcmp(arguments[1], "--child") == 0) return device_present() ? 0 : ASK_NO_DRIVER;
    if (count == 2 && strcmp(arguments[1], "--list") == 0) {
        for (const struct section *section = sections; section->name; section++) puts(section->name);
        return 0;
    }
    if (count != 1 && !(count >= 3 && strcmp(arguments[1], "--only") == 0)) {
        fprintf(stderr, "usage: conformance [--list | --only SECTION...]\n");
        return 2;
    }
    setvbuf(stdout, NULL, _IOLBF, 0);
    pid_t probe = fork();
    if (probe == 0) {
        execl("/proc/self/exe", "conformance", "--child", "probe", (char *)NULL);
        _exit(126);
    }
    int status = 0;
    waitpid(probe, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        fprintf(stderr, "conformance skipped: no CUDA driver with a device here\n");
        return ASK_NO_DRIVER;
    }
    const struct section *list[sizeof sections / sizeof *sections + (size_t)count];
    int listed = 0;
    if (count == 1) {
        for (const struct section *section = sections; section->name; section++) list[listed++] = section;
    } else {
        for (int i = 2; i < count; i++) list[listed++] = section_find(arguments[i]);
    }
    const char *jobs = getenv("CONFORMANCE_JOBS");
    sections_run(list, listed, jobs && atoi(jobs) > 0 ? atoi(jobs) : 1);
    return 0;
}
