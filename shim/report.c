#include "shim/report.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>
#include "shim/arena.h"
#include "shim/file.h"
#include "shim/log.h"
#include "shim/python.h"
#include "shim/report_collect.h"
#include "shim/report_file.h"
#include "shim/report_timeline.h"
#include "shim/shim.h"

enum { CHUNK_BYTES = 256 << 10, PATTERNS_MOST = 512, SUPPRESSIONS_MAX_BYTES = 1 << 20 };

__attribute__((constructor(102))) static void report_loaded(void)
{
    int kept = errno;
    file_start();
    python_start();
    errno = kept;
}

static void warn(const char *line) { log_always("%s", line); }

/* The file's text, NULL if there is none. */
static char *read_suppressions(const char *path)
{
    size_t length;
    char *text = file_read(path, SUPPRESSIONS_MAX_BYTES, &length);
    if (!text) log_always("suppressions %s could not be read; nothing of it is hidden", path);
    return text;
}

/* What the option asks for. */
enum wish { WISH_NOTHING, WISH_NEWS /* on stderr, if there is something to say */, WISH_STDERR, WISH_FILE };

static enum wish wish_of(const char *option)
{
    if (!*option) return log_has_stderr() ? WISH_NEWS : WISH_NOTHING;
    if (strcmp(option, "off") == 0) return WISH_NOTHING;
    if (strcmp(option, "on") == 0) return WISH_STDERR;
    return getauxval(AT_SECURE) ? WISH_NOTHING : WISH_FILE;
}

/* The file, or stderr with a word why not. */
static int open_output(enum wish wish, char *path, size_t capacity)
{
    bool json = shim.options.report_format == REPORT_FORMAT_JSON;
    int error = ENAMETOOLONG, fd = -1;
    if (wish != WISH_FILE) return log_has_stderr() ? STDERR_FILENO : -1;
    size_t length = report_file_expand(path, capacity, shim.options.report, json ? ".json" : ".txt");
    if (length < capacity) fd = report_file_create(path, capacity, &error);
    if (fd >= 0 && path[length]) log_always("%.*s exists; the report is in %s", (int)length, path, path);
    if (fd >= 0) return fd;
    log_always("the report could not be written to %s: %s", path, emitter_error_word(error));
    path[0] = '\0';
    return log_has_stderr() ? STDERR_FILENO : -1;
}

static void write_report(struct report *report, enum wish wish)
{
    char path[PATH_MAX] = "";
    char *chunk = arena_alloc(CHUNK_BYTES);
    int fd = open_output(wish, path, sizeof path);
    struct emitter emitter;
    if (fd < 0 || !chunk) return;
    emitter_start(&emitter, fd, chunk, CHUNK_BYTES);
    if (shim.options.report_format == REPORT_FORMAT_JSON) {
        report_write_json(&emitter, report);
    } else {
        report_merge_alike(report);
        report_write_text(&emitter, report);
    }
    int error = emitter_finish(&emitter);
    if (fd != STDERR_FILENO && close(fd) != 0 && !error) error = errno;
    if (error && *path) log_always("the report in %s is cut off: %s", path, emitter_error_word(error));
    arena_free(chunk, CHUNK_BYTES);
}

/* Runs after all other exit handlers; a nested exit goes on with the new code and loses no buffered output. */
static void leaked_exit(int status, void *unused)
{
    (void)unused;
    if (status == 0 && getpid() == shim.pid) exit(shim.options.leak_exit);
}

/* Was this process started by one that has this library too? */
static bool parent_has_shim(void)
{
    static char maps[1 << 20];
    char path[64];
    size_t length = 0;
    ssize_t got;
    text_format(path, sizeof path, "/proc/%d/maps", (int)getppid());
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return false;
    while (length < sizeof maps && (got = read(fd, maps + length, sizeof maps - length)) > 0) length += (size_t)got;
    close(fd);
    return memmem(maps, length, "libzcshim.so", 12) != NULL;
}

/* Scripts and their helpers run under the shim as well, and have nothing to do with CUDA: only the first process says
 * so, and on request. */
static enum wish wish_without_cuda(enum wish wish)
{
    return wish == WISH_STDERR && !parent_has_shim() ? WISH_STDERR : WISH_NOTHING;
}

/* Collects, names and writes; whether anything leaked that no suppression hides. */
static bool report_make(enum wish wish, bool at_exit)
{
    static const char *patterns[PATTERNS_MOST];
    struct suppressions suppressions;
    struct report report;
    struct report_leaks leaks;
    bool counts = at_exit && shim.options.leak_exit > 0;
    char *text = *shim.options.suppress ? read_suppressions(shim.options.suppress) : NULL;
    suppressions_read(&suppressions, patterns, PATTERNS_MOST, text, warn);
    if (!report_collect(&report, &suppressions)) return false;
    report.running = !at_exit;
    if (at_exit && strcmp(report.cuda, "none") == 0) wish = wish_without_cuda(wish);
    if (wish == WISH_NEWS && !report_has_news(&report)) wish = WISH_NOTHING;
    if (wish != WISH_NOTHING || (counts && text))
        report_name_frames(&report, &suppressions, shim.options.report_format == REPORT_FORMAT_JSON);
    if (wish == WISH_NEWS && !report_has_news(&report)) wish = WISH_NOTHING; /* the names have hidden the rest */
    if (wish != WISH_NOTHING) write_report(&report, wish);
    report_leaks_of(&report, &leaks);
    return leaks.leaked.count > 0;
}

void report_at_exit(void)
{
    int kept = errno;
    enum wish wish = wish_of(shim.options.report);
    bool counts = shim.options.leak_exit > 0;
    if ((wish != WISH_NOTHING || counts) && report_make(wish, true) && counts) on_exit(leaked_exit, NULL);
    errno = kept;
}

void report_dump(void)
{
    static _Atomic bool busy;
    int kept = errno;
    enum wish wish = wish_of(shim.options.report);
    if (wish == WISH_NEWS) wish = WISH_STDERR; /* the signal is the wish */
    if (wish != WISH_NOTHING && !atomic_exchange(&busy, true)) {
        report_make(wish, false);
        atomic_store(&busy, false);
    }
    errno = kept;
}
