#include "shim/log.h"

#include <errno.h>
#include <sys/stat.h>
#include <unistd.h>
#include "shim/shim.h"
#include "shim/write.h"

/* What fd 2 was when the library was loaded: a program may close it and get the number back for a file of its own. */
static struct stat stderr_was;
static bool had_stderr, started;

void log_remember_stderr(void)
{
    int kept = errno;
    had_stderr = fstat(STDERR_FILENO, &stderr_was) == 0;
    started = true;
    errno = kept;
}

__attribute__((constructor(101))) static void log_start(void)
{
    if (!started) log_remember_stderr();
}

bool log_has_stderr(void)
{
    struct stat now;
    if (!started) log_remember_stderr(); /* another library's constructor came first */
    int kept = errno;
    bool same = had_stderr && fstat(STDERR_FILENO, &now) == 0 && now.st_dev == stderr_was.st_dev &&
                now.st_ino == stderr_was.st_ino;
    errno = kept;
    return same;
}

static void log_write(const char *format, va_list arguments)
{
    static const char prefix[] = "libzcshim: ";
    char line[LOG_LINE_BYTES];
    size_t capacity = sizeof line - sizeof prefix; /* leaves room for the newline */
    size_t length = sizeof prefix - 1;
    if (!log_has_stderr()) return;
    int kept = errno;
    __builtin_memcpy(line, prefix, length);
    size_t wanted = text_vformat(line + length, capacity + 1, format, arguments);
    if (wanted > capacity) {
        __builtin_memcpy(line + length + capacity - 3, "...", 3);
        wanted = capacity;
    }
    length += wanted;
    line[length++] = '\n';
    write_all(STDERR_FILENO, line, length);
    errno = kept;
}

void log_line(enum log_level level, const char *format, ...)
{
    if ((unsigned)level > shim.options.log) return;
    va_list arguments;
    va_start(arguments, format);
    log_write(format, arguments);
    va_end(arguments);
}

void log_always(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    log_write(format, arguments);
    va_end(arguments);
}
