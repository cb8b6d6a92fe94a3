#define __CUDA_API_VERSION_INTERNAL
#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include "shim/log.h"
#include "shim/shim.h"

struct shim shim;

#define SAME(...)                                                                                                      \
    do {                                                                                                               \
        char ours[512], theirs[512];                                                                                   \
        int length = snprintf(theirs, sizeof theirs, __VA_ARGS__);                                                     \
        cr_assert_eq(text_format(ours, sizeof ours, __VA_ARGS__), (size_t)length);                                     \
        cr_assert_str_eq(ours, theirs);                                                                                \
    } while (0)

Test(text, formats_as_printf_does)
{
    SAME("plain %% text");
    SAME("%d %i %5d %-5d| %05d %+d", 1, -2, 3, -4, 5, 6);
    SAME("%u %lu %zu %llu", 1u, 2ul, (size_t)3, 18446744073709551615ull);
    SAME("%ld %d", -9223372036854775807L - 1, -2147483647 - 1);
    SAME("%x %08x %lx %X", 0xabcu, 0xabcu, 0xdeadbeefcafeul, 0xabcu);
    SAME("%s|%10s|%-10s|%.2s|%.*s", "one", "two", "three", "four", 3, "fivesix");
    SAME("%c%c", 'a', 'b');
    SAME("%f %.0f %.1f %.3f %8.2f|%-8.2f|%08.2f", 1.5, 2.5 + 0.1, 3.14159, 0.9996, 3.14159, 2.0, -1.5);
    SAME("%p", (void *)0x7f00);
    SAME("%*d", 6, 42);
}

Test(text, is_cut_and_terminated)
{
    char small[5];
    cr_assert_eq(text_format(small, sizeof small, "%s", "abcdefgh"), 8);
    cr_assert_str_eq(small, "abcd");
    cr_assert_eq(text_format(NULL, 0, "%d", 12345), 5);
    const char *volatile nothing = NULL;
    cr_assert_eq(text_format(small, sizeof small, "%s", nothing), 6);
}

Test(text, odd_numbers_have_a_word)
{
    char text[32];
    text_format(text, sizeof text, "%f", 1e30);
    cr_assert_str_eq(text, "huge");
    text_format(text, sizeof text, "%.1f", __builtin_nan(""));
    cr_assert_str_eq(text, "nan");
}

/* What `say` writes to fd 2. */
static size_t stderr_of(void (*say)(void), char *got, size_t capacity)
{
    int ends[2], kept = dup(2);
    cr_assert_eq(pipe(ends), 0);
    dup2(ends[1], 2);
    log_remember_stderr();
    close(ends[1]);
    say();
    dup2(kept, 2);
    ssize_t length = read(ends[0], got, capacity - 1);
    close(ends[0]);
    got[length > 0 ? length : 0] = '\0';
    return length > 0 ? (size_t)length : 0;
}

static void say_levels(void)
{
    log_line(LOG_WARN, "warned %d", 1);
    log_line(LOG_DEBUG, "not said");
    log_always("always");
}

Test(log, says_what_the_option_asks_for)
{
    char got[256];
    shim.options.log = OPTION_LOG_WARN;
    stderr_of(say_levels, got, sizeof got);
    cr_assert_str_eq(got, "libzcshim: warned 1\nlibzcshim: always\n");
}

static void say_long(void)
{
    char text[3000];
    memset(text, 'x', sizeof text);
    text[sizeof text - 1] = '\0';
    log_always("%s", text);
}

Test(log, a_long_line_is_cut_and_still_one_line)
{
    char got[4096];
    size_t length = stderr_of(say_long, got, sizeof got);
    cr_assert_eq(length, LOG_LINE_BYTES);
    cr_assert_str_eq(got + length - 4, "...\n");
}

Test(log, a_closed_stderr_is_no_error_and_errno_is_kept)
{
    int kept = dup(2);
    errno = 42;
    close(2);
    errno = 42;
    log_always("lost");
    cr_assert_eq(errno, 42);
    dup2(kept, 2);
}
