/* Finds the named snippet and runs it; what snippets share. */
#include "programs.h"
#include <spawn.h>
#include <sys/wait.h>

extern char **environ;

extern const struct snippet *const __start_snippets[], *const __stop_snippets[];
static bool wrong;

bool expect(bool condition, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fputs(condition ? "ok " : "WRONG ", stdout);
    vprintf(format, arguments);
    putchar('\n');
    va_end(arguments);
    if (!condition) wrong = true;
    return condition;
}

uint32_t random_next(uint64_t *state)
{
    *state = *state * 6364136223846793005ull + 1442695040888963407ull;
    return (uint32_t)(*state >> 33);
}

void fill_random(void *bytes, size_t count, uint64_t seed)
{
    for (size_t i = 0; i < count; i++) ((unsigned char *)bytes)[i] = (unsigned char)(random_next(&seed) >> 7);
}

uint64_t hash_bytes(const void *bytes, size_t count)
{
    uint64_t hash = 14695981039346656037ull;
    for (size_t i = 0; i < count; i++) hash = (hash ^ ((const unsigned char *)bytes)[i]) * 1099511628211ull;
    return hash;
}

int wait_for(pid_t child)
{
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 1000 + WTERMSIG(status);
}

int run_snippet(const char *name)
{
    char self[4096];
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[length > 0 ? length : 0] = 0;
    char *arguments[] = {self, (char *)name, NULL};
    pid_t child;
    fflush(stdout);
    return posix_spawn(&child, self, NULL, NULL, arguments, environ) ? -1 : wait_for(child);
}

int main(int argc, char **argv)
{
    const char *name = argc > 1 ? argv[1] : "";
    for (const struct snippet *const *s = __start_snippets; s < __stop_snippets; s++) {
        if (!strcmp(name, "--list")) {
            printf("%s\t%s\t%s\n", (*s)->name, (*s)->tags, (*s)->what);
        } else if (!strcmp(name, (*s)->name)) {
            (*s)->run();
            return wrong;
        }
    }
    if (!strcmp(name, "--list")) return 0;
    fprintf(stderr, "usage: %s --list | NAME\n", argv[0]);
    return 64;
}
