#include "shim/log.h"

#include <errno.h>
#include <fcntl.h>
#include <unistd.h>
#include "shim/shim.h"

static bool had_stderr = true;

__attribute__((constructor(101))) static void log_start(void)
{
    int kept = errno;
    had_stderr = fcntl(STDERR_FILENO, F_GETFD) >= 0;
    errno = kept;
}

bool log_has_stderr(void) { return had_stderr; }

static void log_write(const char *format, va_list arguments)
{
    static const char prefix[] = "libzcshim: ";
    char line[LOG_LINE_BYTES];
    size_t capacity = sizeof line - sizeof prefix; /* leaves room for the newline */
    size_t length = sizeof prefix - 1;
    if (!had_stderr) return;
    int kept = errno;
    __builtin_memcpy(line, prefix, length);
    size_t wanted = text_vformat(line + length, capacity + 1, format, arguments);
    if (wanted > capacity) {
        __builtin_memcpy(line + length + capacity - 3, "...", 3);
        wanted = capacity;
    }
    length += wanted;
    line[length++] = '\n';
    while (write(STDERR_FILENO, line, length) < 0 && errno == EINTR) continue;
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
