#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "shim/file.h"
#include "shim/log.h"
#include "shim/write.h"

static char start_folder[PATH_MAX]; /* empty: unknown */

void file_start(void)
{
    int error = errno;
    if (!getcwd(start_folder, sizeof start_folder)) start_folder[0] = '\0';
    errno = error;
}

size_t file_path(char *text, size_t capacity, const char *path)
{
    if (path[0] == '/' || !start_folder[0]) return text_format(text, capacity, "%s", path);
    return text_format(text, capacity, "%s/%s", start_folder, path);
}

char *file_read(const char *path, size_t most, size_t *length)
{
    char from_start[PATH_MAX];
    struct stat status;
    char *text = MAP_FAILED;
    int error = errno;
    file_path(from_start, sizeof from_start, path);
    int fd = open(from_start, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (fd >= 0 && fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && (size_t)status.st_size < most) {
        *length = (size_t)status.st_size;
        text = mmap(NULL, *length + 1, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (text != MAP_FAILED && pread(fd, text, *length, 0) != (ssize_t)*length) {
            munmap(text, *length + 1);
            text = MAP_FAILED;
        }
    }
    if (fd >= 0) close(fd);
    errno = error;
    return text == MAP_FAILED ? NULL : text;
}

bool file_exists(const char *path)
{
    char from_start[PATH_MAX];
    struct stat status;
    int error = errno;
    file_path(from_start, sizeof from_start, path);
    bool exists = lstat(from_start, &status) == 0;
    errno = error;
    return exists;
}

bool file_replace(const char *path, const char *text, size_t length)
{
    char from_start[PATH_MAX], temporary[PATH_MAX];
    struct stat status;
    int error = errno, fd = -1;
    bool done = false;
    file_path(from_start, sizeof from_start, path);
    size_t needed = text_format(temporary, sizeof temporary, "%s.%d.tmp", from_start, (int)getpid());
    if (needed < sizeof temporary && (lstat(from_start, &status) != 0 || S_ISREG(status.st_mode)))
        fd = open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0) {
        done = write_all(fd, text, length) == 0;
        done = close(fd) == 0 && done && rename(temporary, from_start) == 0;
        if (!done) unlink(temporary);
    }
    errno = error;
    return done;
}
