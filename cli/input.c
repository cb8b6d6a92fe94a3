#include "cli/input.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { EXIT_NO_MEMORY = 3 };

static void complain(const char *about, const char *what)
{
    fprintf(stderr, "%s: %s%s%s\n", program_invocation_short_name, about, *about ? ": " : "", what);
}

static __attribute__((noreturn)) void no_memory(void)
{
    complain("", "out of memory");
    exit(EXIT_NO_MEMORY);
}

void *must_alloc(size_t bytes)
{
    void *block = calloc(1, bytes ? bytes : 1);
    if (!block) no_memory();
    return block;
}

char *file_read(const char *path, size_t *length)
{
    bool standard = strcmp(path, "-") == 0;
    FILE *file = standard ? stdin : fopen(path, "re");
    size_t capacity = 1 << 16, used = 0, got;
    if (!file) return complain(path, strerror(errno)), NULL;
    char *text = must_alloc(capacity);
    while ((got = fread(text + used, 1, capacity - used - 1, file)) > 0) {
        used += got;
        if (capacity - used > 1) continue;
        char *larger = realloc(text, capacity *= 2);
        if (!larger) no_memory();
        text = larger;
    }
    int error = ferror(file) ? errno : 0;
    if (!standard) fclose(file);
    if (error) {
        complain(path, strerror(error));
        free(text);
        return NULL;
    }
    text[used] = '\0';
    *length = used;
    return text;
}
