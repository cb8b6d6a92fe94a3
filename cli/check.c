/* check: the same program bare and shimmed, in turn, and one line on what came out. */
#include "cli/cli.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>
#include "policy/text.h"

enum { RUNS_LEAST = 2 /* one does not show what changes by itself */, RUNS_MOST = 100, INPUT_WAIT_MS = 2000 };
static const double CLEAR_SECONDS = 0.005; /* less is the noise of starting a process */

struct outcome {
    int status;
    double seconds;
    char *output[2]; /* stdout, stderr */
    size_t length[2];
};

static struct {
    int runs;
    double slower; /* a fraction */
    const char *keep;
    int input; /* what every run reads as stdin */
} check = {.runs = 5, .slower = 0.02};

/* 0: it is none. */
static int runs_of(const char *text)
{
    uint64_t runs;
    return span_u64(span_of(text), &runs) && runs >= RUNS_LEAST && runs <= RUNS_MOST ? (int)runs : 0;
}

/* As a fraction; -1: it is none. */
static double percent_of(const char *text)
{
    double value;
    return span_number(span_of(text), &value) && value <= 1000 ? value / 100 : -1;
}

static bool take(int count, char **arguments, int *at)
{
    const char *value;
    if ((value = option_value("--runs", count, arguments, at)))
        check.runs = runs_of(value);
    else if ((value = option_value("--slower", count, arguments, at)))
        check.slower = percent_of(value);
    else if ((value = option_value("--keep", count, arguments, at)))
        check.keep = value;
    return value != NULL;
}

/* Is there input to be kept: a file, or a pipe that says something? Terminals and devices are not read. */
static bool has_input(void)
{
    struct stat status;
    struct pollfd ready = {.fd = STDIN_FILENO, .events = POLLIN};
    if (fstat(STDIN_FILENO, &status) != 0) return false;
    if (S_ISREG(status.st_mode)) return true;
    if (!S_ISFIFO(status.st_mode) && !S_ISSOCK(status.st_mode)) return false;
    if (poll(&ready, 1, INPUT_WAIT_MS) > 0) return true;
    fprintf(stderr, "zcshim: nothing comes from stdin: the program is run without input\n");
    return false;
}

/* Every run gets the same input from its start. */
static bool prepare_input(void)
{
    char block[65536];
    ssize_t got;
    if (!has_input()) return (check.input = open("/dev/null", O_RDONLY | O_CLOEXEC)) >= 0;
    check.input = memfd_create("stdin", MFD_CLOEXEC);
    while ((got = read(STDIN_FILENO, block, sizeof block)) > 0)
        if (write(check.input, block, (size_t)got) != got) return false;
    return check.input >= 0;
}

static double now(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec / 1e9;
}

/* Runs the program; why it cannot be started goes into `failure`. */
static void become(char **program, const char *library, const int output[2], int failure)
{
    char input[64];
    snprintf(input, sizeof input, "/proc/self/fd/%d", check.input);
    int own = open(input, O_RDONLY);
    dup2(own >= 0 ? own : check.input, STDIN_FILENO);
    dup2(output[0], STDOUT_FILENO);
    dup2(output[1], STDERR_FILENO);
    if (library) library_preload(library);
    execvp(program[0], program);
    if (write(failure, &errno, sizeof errno) < 0) _exit(126);
    _exit(127);
}

static bool slurp(int fd, char **text, size_t *length)
{
    off_t size = lseek(fd, 0, SEEK_END);
    *text = must_alloc((size_t)size + 1);
    *length = (size_t)size;
    bool whole = size >= 0 && pread(fd, *text, (size_t)size, 0) == size;
    close(fd);
    return whole;
}

/* 0, or why it could not be run. */
static int run_once(struct outcome *outcome, char **program, const char *library)
{
    int output[2] = {memfd_create("stdout", MFD_CLOEXEC), memfd_create("stderr", MFD_CLOEXEC)}, failure[2], error = 0;
    if (pipe2(failure, O_CLOEXEC) != 0) return errno;
    double start = now();
    pid_t child = fork();
    if (child == 0) become(program, library, output, failure[1]);
    close(failure[1]);
    if (child < 0 || waitpid(child, &outcome->status, 0) != child) error = errno;
    outcome->seconds = now() - start;
    if (!error && read(failure[0], &error, sizeof error) < 0) error = errno;
    close(failure[0]);
    bool whole = slurp(output[0], &outcome->output[0], &outcome->length[0]) &
                 slurp(output[1], &outcome->output[1], &outcome->length[1]);
    return error ? error : whole ? 0 : EIO;
}

static bool same_output(const struct outcome *one, const struct outcome *other, int which)
{
    return one->length[which] == other->length[which] &&
           memcmp(one->output[which], other->output[which], one->length[which]) == 0;
}

static int by_time(const void *a, const void *b)
{
    double one = ((const struct outcome *)a)->seconds, other = ((const struct outcome *)b)->seconds;
    return one < other ? -1 : one > other;
}

static char *status_text(int status)
{
    if (WIFSIGNALED(status))
        return must_format("was killed by signal %d (%s)", WTERMSIG(status), strsignal(WTERMSIG(status)));
    return must_format("ended with exit code %d", WEXITSTATUS(status));
}

/* Where two outputs part, as a line number and both lines. */
static void print_difference(const struct outcome *bare, const struct outcome *shimmed, int which)
{
    const char *one = bare->output[which], *other = shimmed->output[which], *line = one, *other_line = other;
    unsigned number = 1;
    for (; *one && *one == *other; one++, other++)
        if (*one == '\n') line = one + 1, other_line = other + 1, number++;
    printf("  %s differs in line %u\n    bare:    %.*s\n    shimmed: %.*s\n", which ? "stderr" : "stdout", number,
           (int)strcspn(line, "\n"), line, (int)strcspn(other_line, "\n"), other_line);
}

struct verdict {
    bool steady[2]; /* the bare program's own stdout and stderr are the same every time */
    bool steady_status, same;
    const struct outcome *odd; /* a shimmed run that differs */
};

static struct verdict compare(const struct outcome *bare, const struct outcome *shimmed)
{
    struct verdict verdict = {{true, true}, true, true, NULL};
    for (int i = 1; i < check.runs; i++) {
        for (int which = 0; which < 2; which++) verdict.steady[which] &= same_output(&bare[0], &bare[i], which);
        verdict.steady_status &= bare[i].status == bare[0].status;
    }
    for (int i = 0; i < check.runs && verdict.same; i++) {
        bool differs = verdict.steady_status && shimmed[i].status != bare[0].status;
        for (int which = 0; which < 2; which++)
            differs |= verdict.steady[which] && !same_output(&bare[0], &shimmed[i], which);
        if (differs) verdict.odd = &shimmed[i], verdict.same = false;
    }
    return verdict;
}

static void keep_output(const char *side, int number, const struct outcome *outcome)
{
    for (int which = 0; check.keep && which < 2; which++) {
        int fd = file_create(must_format("%s/%s-%d.%s", check.keep, side, number + 1, which ? "stderr" : "stdout"));
        if (fd < 0) continue;
        if (write(fd, outcome->output[which], outcome->length[which]) < 0)
            trouble("%s: %s", check.keep, strerror(errno));
        close(fd);
    }
}

static int say(struct outcome *bare, struct outcome *shimmed)
{
    struct verdict verdict = compare(bare, shimmed);
    if (!verdict.same) {
        printf("do not use the shim: results differ\n");
        if (verdict.odd->status != bare[0].status)
            printf("  bare it %s, shimmed it %s\n", status_text(bare[0].status), status_text(verdict.odd->status));
        for (int which = 0; which < 2; which++)
            if (verdict.steady[which] && !same_output(&bare[0], verdict.odd, which))
                print_difference(&bare[0], verdict.odd, which);
        return EXIT_BAD;
    }
    qsort(bare, (size_t)check.runs, sizeof *bare, by_time);
    qsort(shimmed, (size_t)check.runs, sizeof *shimmed, by_time);
    double one = bare[check.runs / 2].seconds, other = shimmed[check.runs / 2].seconds;
    double spread = (bare[check.runs - 1].seconds - bare[0].seconds) / one;
    bool steady = verdict.steady[0] && verdict.steady[1] && verdict.steady_status;
    const char *results = steady              ? "same results"
                          : verdict.steady[0] ? "same stdout"
                                              : "results that change by themselves";
    bool faster = other < one * (1 - check.slower) && other < one - CLEAR_SECONDS && other < bare[0].seconds;
    bool slower =
        other > one * (1 + check.slower) && other > one + CLEAR_SECONDS && other > bare[check.runs - 1].seconds;
    double apart = other > one ? other - one : one - other;
    bool short_runs = apart <= CLEAR_SECONDS && apart > one * check.slower;
    printf("%s: %s, %.3f s bare, %.3f s shimmed (%+.1f %%, median of %d, spread %.0f %%)\n",
           faster       ? "use the shim"
           : slower     ? "do not use the shim"
           : short_runs ? "too short to tell"
                        : "no difference",
           results, one, other, (other / one - 1) * 100, check.runs, spread * 100);
    if (!steady)
        printf("  the bare program's own %s from run to run, so that could not be compared\n",
               !verdict.steady_status ? "exit code changes"
               : !verdict.steady[0]   ? "stdout changes"
                                      : "stderr changes");
    if (verdict.steady_status && bare[0].status != 0)
        printf("  the program %s, bare as shimmed: is that the run you mean?\n", status_text(bare[0].status));
    if (slower) return EXIT_SLOWER;
    return verdict.steady[0] && verdict.steady_status ? EXIT_GOOD : EXIT_UNSTEADY;
}

int command_check(int count, char **arguments)
{
    static struct outcome bare[RUNS_MOST], shimmed[RUNS_MOST];
    int at = program_find("check", count, arguments, take);
    if (at < 0) return EXIT_USAGE;
    if (!check.runs) return usage_error("check", "--runs is a number from %d to %d", RUNS_LEAST, RUNS_MOST);
    if (check.slower < 0) return usage_error("check", "--slower is a percentage, as 2 or 0.5");
    const char *library = library_path();
    if (!library) return EXIT_TROUBLE;
    library_unpreload();
    if (check.keep && mkdir(check.keep, 0700) != 0) return trouble("%s: %s", check.keep, strerror(errno));
    if (!prepare_input()) return trouble("stdin could not be kept for all runs");
    if (!getenv("ZCSHIM_REPORT")) /* it would look like output of the program */
        setenv("ZCSHIM_REPORT", check.keep ? must_format("%s/report-%%p.txt", check.keep) : "off", 1);
    for (int i = 0; i < check.runs * 2; i++) {
        int number = i / 2;
        bool shim = (i + number) % 2; /* bare first, then shimmed first, ... */
        struct outcome *outcome = shim ? &shimmed[number] : &bare[number];
        int error = run_once(outcome, arguments + at, shim ? library : NULL);
        if (error) return trouble("%s: %s", arguments[at], strerror(error));
        keep_output(shim ? "shimmed" : "bare", number, outcome);
    }
    return say(bare, shimmed);
}
