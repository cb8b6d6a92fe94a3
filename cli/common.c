#include "cli/cli.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int usage_error(const char *command, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "zcshim %s: ", command);
    vfprintf(stderr, format, arguments);
    fprintf(stderr, " (zcshim %s --help)\n", command);
    va_end(arguments);
    return EXIT_USAGE;
}

int trouble(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "zcshim: ");
    vfprintf(stderr, format, arguments);
    fprintf(stderr, "\n");
    va_end(arguments);
    return EXIT_TROUBLE;
}

int option_error(const char *command, const char *argument)
{
    for (size_t i = 0; i < option_list_count; i++)
        if (strcmp(option_list[i].command, command) == 0 && strcmp(option_list[i].name, argument) == 0)
            return usage_error(command, "%s needs a value: %s", argument, option_list[i].value);
    return usage_error(command, "unknown option %s", argument);
}

char *must_format(const char *format, ...)
{
    char *text = NULL;
    va_list arguments;
    va_start(arguments, format);
    if (vasprintf(&text, format, arguments) < 0) text = must_alloc(1);
    va_end(arguments);
    return text;
}

const char *option_value(const char *name, int count, char **arguments, int *at)
{
    const char *argument = arguments[*at];
    size_t length = strlen(name);
    if (strncmp(argument, name, length) != 0) return NULL;
    if (argument[length] == '=') return ++*at, argument + length + 1;
    if (argument[length] != '\0' || *at + 1 >= count) return NULL;
    *at += 2;
    return arguments[*at - 1];
}

static void setting_warn(void *ctx, const char *line)
{
    const char *kept = strstr(line, "; keeping "); /* here nothing goes on with the old value */
    fprintf(stderr, "zcshim: %.*s\n", kept ? (int)(kept - line) : (int)strlen(line), line);
    *(bool *)ctx = true;
}

int setting_take(const char *command, const char *argument)
{
    const char *equals = strchr(argument, '=');
    if (strncmp(argument, "--", 2) != 0 || !argument[2]) return 0;
    size_t length = equals ? (size_t)(equals - argument - 2) : strlen(argument) - 2;
    char *name = must_format("%.*s", (int)length, argument + 2);
    for (char *at = name; *at; at++) *at = *at == '-' ? '_' : (char)toupper((unsigned char)*at);
    int index = options_find(name, strlen(name));
    const char *value = equals ? equals + 1 : "on";
    if (index >= 0 && !equals && options_table[index].kind != OPTION_SWITCH) {
        usage_error(command, "%s needs a value: %s=...", argument, argument);
        return -1;
    }
    if (index < 0) return 0;
    bool bad = false;
    struct options options;
    char *variable = must_format("ZCSHIM_%s=%s", options_table[index].name, value);
    options_parse(&options, (char *[]){variable, NULL}, setting_warn, &bad);
    if (bad) return -1;
    putenv(variable);
    return 1;
}

int program_find(const char *command, int count, char **arguments, bool (*take)(int, char **, int *))
{
    int at = 1;
    while (at < count && arguments[at][0] == '-') {
        if (strcmp(arguments[at], "--") == 0) {
            at++;
            break;
        }
        if (take && take(count, arguments, &at)) continue;
        int taken = setting_take(command, arguments[at]);
        if (taken == 0) option_error(command, arguments[at]);
        if (taken <= 0) return -1;
        at++;
    }
    if (at < count) return at;
    usage_error(command, "which program?");
    return -1;
}

static char *readable(char *path)
{
    if (access(path, R_OK) == 0) return realpath(path, NULL);
    free(path);
    return NULL;
}

const char *library_path(void)
{
    char self[PATH_MAX], *found = NULL;
    const char *named = getenv("ZCSHIM_LIB");
    ssize_t length = readlink("/proc/self/exe", self, sizeof self - 1);
    self[length > 0 ? length : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash) *slash = '\0';
    if (named && *named) {
        found = readable(must_format("%s", named));
        if (!found) trouble("ZCSHIM_LIB names %s, which cannot be read", named);
        return found;
    }
    found = readable(must_format("%s/libzcshim.so", self));
    if (!found) found = readable(must_format("%s/../lib/zcshim/libzcshim.so", self));
    if (!found) trouble("libzcshim.so is neither in %s nor in %s/../lib/zcshim; name it in ZCSHIM_LIB", self, self);
    return found;
}

bool library_preload(const char *library)
{
    const char *others = getenv("LD_PRELOAD");
    if (strpbrk(library, " :")) {
        trouble("%s: LD_PRELOAD takes no path with a blank or a colon in it; install it elsewhere", library);
        return false;
    }
    char *all = others && *others ? must_format("%s:%s", library, others) : must_format("%s", library);
    return setenv("LD_PRELOAD", all, 1) == 0;
}

void library_unpreload(void)
{
    const char *others = getenv("LD_PRELOAD");
    char *kept = must_format("%s", "");
    for (const char *at = others; at && *at;) {
        size_t length = strcspn(at, ": ");
        if (length && !memmem(at, length, "libzcshim.so", 12))
            kept = must_format("%s%s%.*s", kept, *kept ? ":" : "", (int)length, at);
        at += length + strspn(at + length, ": ");
    }
    if (*kept)
        setenv("LD_PRELOAD", kept, 1);
    else
        unsetenv("LD_PRELOAD");
}

int program_exec(char **arguments)
{
    execvp(arguments[0], arguments);
    int error = errno;
    trouble("%s: %s", arguments[0], strerror(error));
    return error == ENOENT ? 127 : 126;
}

int file_create(const char *path)
{
    if (!path || strcmp(path, "-") == 0) return STDOUT_FILENO;
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0) trouble("%s: %s", path, errno == EEXIST ? "exists, and is not overwritten" : strerror(errno));
    return fd;
}
