/* Lines on stderr, made without malloc, stdio or locale.
 *
 * A line is formatted into a fixed buffer (longer ones are cut and end in "...") and written with one write(2), so
 * lines of several threads never tear. Nothing is written when fd 2 is closed or was not open at start-up. errno is
 * kept. Safe from any thread and inside malloc; not meant for signal handlers. */
#ifndef SHIM_LOG_H
#define SHIM_LOG_H
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

enum log_level { LOG_QUIET, LOG_WARN, LOG_INFO, LOG_DEBUG };

#define LOG_LINE_BYTES 1024

/* Writes "libzcshim: <text>\n" if level <= the option `log`. Conversions: see text_format. */
void log_line(enum log_level level, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* The same whatever the option says: for bad settings and for what the user must see at once. */
void log_always(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Is fd 2 what it was when the library was loaded? If not, a file of the program may have that number by now. */
bool log_has_stderr(void);
/* What fd 2 is now is the stderr that may be written to. Done when the library is loaded. */
void log_remember_stderr(void);

/* snprintf without malloc or locale: %s %c %d %i %u %x %p %% %f(.N) with l, ll, z, width, zero padding and `-`; %.*s.
 * Returns the length it would have had; the result is always terminated when capacity > 0. */
size_t text_format(char *buffer, size_t capacity, const char *format, ...) __attribute__((format(printf, 3, 4)));
size_t text_vformat(char *buffer, size_t capacity, const char *format, va_list arguments);
#endif
