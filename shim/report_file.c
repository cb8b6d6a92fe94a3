#include "shim/report_file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "shim/file.h"
#include "shim/log.h"

enum { NAMES_TRIED = 1000 };

const char *report_rank(void)
{
    static const char *const names[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK", "MV2_COMM_WORLD_RANK",
                                        "SLURM_PROCID"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && *value) return value;
    }
    return NULL;
}

size_t report_program(char *path, size_t capacity)
{
    ssize_t length = readlink("/proc/self/exe", path, capacity - 1);
    if (length <= 0) return text_format(path, capacity, "unknown");
    path[length] = '\0';
    return (size_t)length;
}

size_t report_host(char *name, size_t capacity)
{
    if (gethostname(name, capacity) != 0) name[0] = '\0';
    name[capacity - 1] = '\0';
    return strlen(name);
}

struct path {
    char *text;
    size_t capacity, length;
};

static void add(struct path *path, const char *text)
{
    for (; *text; text++, path->length++)
        if (path->length + 1 < path->capacity) path->text[path->length] = *text;
}

/* A value inside a name: no slash of it may lead elsewhere. */
static void add_name(struct path *path, const char *text)
{
    for (; *text; text++) add(path, (const char[]){*text == '/' ? '_' : *text, 0});
}

static void add_field(struct path *path, char field)
{
    char value[PATH_MAX], *slash;
    switch (field) {
    case 'p':
        text_format(value, sizeof value, "%d", (int)getpid());
        add(path, value);
        break;
    case 'h':
        report_host(value, sizeof value);
        add_name(path, value);
        break;
    case 'e':
        report_program(value, sizeof value);
        slash = strrchr(value, '/');
        add_name(path, slash ? slash + 1 : value);
        break;
    case 'r':
        add_name(path, report_rank() ? report_rank() : "0");
        break;
    case '%':
        add(path, "%");
        break;
    default:
        add(path, (const char[]){'%', field, 0});
        break;
    }
}

static bool is_folder(struct path *path)
{
    struct stat status;
    if (path->length >= path->capacity) return false;
    path->text[path->length] = '\0';
    if (path->length > 0 && path->text[path->length - 1] == '/') return true;
    return stat(path->text, &status) == 0 && S_ISDIR(status.st_mode);
}

size_t report_file_expand(char *text, size_t capacity, const char *pattern, const char *extension)
{
    struct path path = {text, capacity, 0};
    path.length = file_path(text, capacity, pattern) - strlen(pattern); /* the folder; the pattern is written anew */
    for (const char *at = pattern; *at; at++)
        if (*at == '%' && at[1])
            add_field(&path, *++at);
        else
            add(&path, (const char[]){*at, 0});
    if (is_folder(&path)) {
        add(&path, text[path.length - 1] == '/' ? "zcshim-" : "/zcshim-");
        add_field(&path, 'e');
        add(&path, "-");
        add_field(&path, 'p');
        add(&path, extension);
    }
    text[path.length < capacity ? path.length : capacity - 1] = '\0';
    return path.length;
}

/* /dev/null and its like have nothing to lose. */
static int open_device(const char *path, int *error)
{
    int fd = open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (fd < 0) *error = errno;
    return fd;
}

int report_file_create(char *path, size_t capacity, int *error)
{
    size_t length = strlen(path);
    struct stat status;
    for (unsigned try = 0; try < NAMES_TRIED; try++) {
        if (try && length + text_format(path + length, capacity - length, ".%u", try) >= capacity) break;
        int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);
        if (fd >= 0) return fd;
        *error = errno;
        if (errno != EEXIST || lstat(path, &status) != 0) return -1;
        if (S_ISCHR(status.st_mode)) return open_device(path, error);
        if (S_ISREG(status.st_mode)) continue;
        if (S_ISLNK(status.st_mode)) *error = ELOOP;
        return -1;
    }
    *error = EEXIST;
    return -1;
}
