#include <criterion/criterion.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include "shim/emitter.h"

static char got[65536];

/* What `fill` makes the emitter write, with a buffer of `capacity` bytes. */
static void emitted(void (*fill)(struct emitter *), size_t capacity)
{
    char buffer[4096];
    struct emitter emitter;
    int fd = memfd_create("emitted", 0);
    emitter_start(&emitter, fd, buffer, capacity);
    fill(&emitter);
    cr_assert_eq(emitter_finish(&emitter), 0);
    ssize_t length = pread(fd, got, sizeof got - 1, 0);
    got[length] = '\0';
    close(fd);
}

static void fill(struct emitter *e)
{
    emitter_object(e, NULL);
    emitter_string(e, "text", "a\"b\\c\n\x01 \xc3\xa9 \xff");
    emitter_string(e, "none", NULL);
    emitter_u64(e, "most", UINT64_MAX);
    emitter_hex(e, "hex", 255);
    emitter_array(e, "list");
    emitter_bool(e, NULL, true);
    emitter_null(e, NULL);
    emitter_end(e);
    emitter_object(e, "empty");
    emitter_end(e);
    emitter_end(e);
}

static const char expected[] =
    "{\n  \"text\": \"a\\\"b\\\\c\\u000a\\u0001 \xc3\xa9 \\ufffd\",\n  \"none\": null,\n"
    "  \"most\": 18446744073709551615,\n  \"hex\": \"0xff\",\n  \"list\": [\n    true,\n    null\n  ],\n"
    "  \"empty\": {}\n}\n";

Test(emitter, writes_json)
{
    emitted(fill, 4096);
    cr_assert_str_eq(got, expected);
}

Test(emitter, the_size_of_the_buffer_does_not_show)
{
    for (size_t capacity = 1; capacity < 70; capacity += 7) {
        emitted(fill, capacity);
        cr_assert_str_eq(got, expected);
    }
}

static int finish_into(int fd)
{
    char buffer[64];
    struct emitter emitter;
    emitter_start(&emitter, fd, buffer, sizeof buffer);
    fill(&emitter);
    return emitter_finish(&emitter);
}

Test(emitter, a_full_disk_is_told) { cr_assert_eq(finish_into(open("/dev/full", O_WRONLY)), ENOSPC); }

Test(emitter, a_closed_file_is_told) { cr_assert_eq(finish_into(-1), EBADF); }

Test(emitter, a_broken_pipe_is_told_and_sends_no_signal)
{
    int ends[2];
    sigset_t pending;
    cr_assert_eq(pipe(ends), 0);
    close(ends[0]);
    cr_assert_eq(finish_into(ends[1]), EPIPE);
    sigpending(&pending);
    cr_assert_not(sigismember(&pending, SIGPIPE));
}

Test(emitter, a_file_size_limit_is_told_and_sends_no_signal)
{
    int fd = memfd_create("limited", 0);
    setrlimit(RLIMIT_FSIZE, &(struct rlimit){32, 32});
    cr_assert_eq(finish_into(fd), EFBIG);
}
