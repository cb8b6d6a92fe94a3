#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include "shim/file.h"
#include "shim/log.h"

char *file_read(const char *path, size_t most, size_t *length)
{
    struct stat status;
    char *text = MAP_FAILED;
    int error = errno;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
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

bool file_replace(const char *path, const char *text, size_t length)
{
    char temporary[1024];
    int error = errno;
    size_t needed = text_format(temporary, sizeof temporary, "%s.%d.tmp", path, (int)getpid());
    bool done = false;
    int fd =
        needed < sizeof temporary ? open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600) : -1;
    if (fd >= 0) {
        size_t written = 0;
        while (written < length) {
            ssize_t count = write(fd, text + written, length - written);
            if (count < 0 && errno == EINTR) continue;
            if (count <= 0) break;
            written += (size_t)count;
        }
        done = written == length;
        done = close(fd) == 0 && done && rename(temporary, path) == 0;
        if (!done) unlink(temporary);
    }
    errno = error;
    return done;
}
