#include "shim/report_suppress.h"

#include <string.h>
#include "shim/log.h"

/* What is kept on purpose: the pools and workspaces of libraries that live as long as the process. */
static const char *const own_patterns[] = {
    "^libcublas*$", "^libcudnn*$",    "^libcufft*$",
    "^libcurand*$", "^libcusolver*$", "^libcusparse*$",
    "^libnccl*$",   "^libcupti*$",    "^libnvshmem*$",
    "^libnpp*$",    "^libcutensor*$", "^libnvjpeg*$",
    "^libcufile*$", "^libcudss*$",    "^libc10_cuda.so*$" /* PyTorch's caching allocator */,
};

/* Does `pattern` match at the start of `subject`? `bound`: it must end there too. */
static bool matches_here(const char *pattern, size_t length, const char *subject, bool bound)
{
    const char *star = NULL, *resume = NULL;
    size_t at = 0, after_star = 0;
    for (;;) {
        if (at == length && (!bound || !*subject)) return true;
        if (at < length && pattern[at] == '*') {
            star = pattern + at;
            after_star = ++at;
            resume = subject;
        } else if (at < length && *subject && pattern[at] == *subject) {
            at++, subject++;
        } else if (star && *resume) {
            at = after_star;
            subject = ++resume;
        } else {
            return false;
        }
    }
}

bool suppression_matches(const char *pattern, const char *subject)
{
    bool from_start = *pattern == '^';
    if (from_start) pattern++;
    size_t length = strlen(pattern);
    bool to_end = length > 0 && pattern[length - 1] == '$';
    if (to_end) length--;
    if (from_start) return matches_here(pattern, length, subject, to_end);
    for (;; subject++) {
        if (matches_here(pattern, length, subject, to_end)) return true;
        if (!*subject) return false;
    }
}

static char *trimmed(char *line)
{
    while (*line == ' ' || *line == '\t') line++;
    size_t length = strlen(line);
    while (length && (line[length - 1] == ' ' || line[length - 1] == '\t' || line[length - 1] == '\r'))
        line[--length] = '\0';
    return line;
}

void suppressions_read(struct suppressions *suppressions, const char **patterns, size_t capacity, char *text,
                       void (*warn)(const char *line))
{
    size_t own = sizeof own_patterns / sizeof *own_patterns;
    *suppressions = (struct suppressions){patterns, 0, 0};
    for (size_t i = 0; i < own && suppressions->count < capacity; i++)
        patterns[suppressions->count++] = own_patterns[i];
    suppressions->own = suppressions->count;
    unsigned number = 0;
    for (char *line = text, *next; line && *line; line = next) {
        char said[LOG_LINE_BYTES];
        next = strchr(line, '\n');
        if (next) *next++ = '\0';
        number++;
        line = trimmed(line);
        if (!*line || *line == '#') continue;
        if (strncmp(line, "leak:", 5) == 0 && line[5]) {
            if (suppressions->count < capacity)
                patterns[suppressions->count++] = line + 5;
            else
                text_format(said, sizeof said, "suppressions: line %u: more than %lu patterns, left out", number,
                            (unsigned long)capacity),
                    warn(said);
        } else if (!strchr(line, ':')) { /* other sanitizers' kinds may stand in the same file */
            text_format(said, sizeof said, "suppressions: line %u: \"%s\" is not of the form leak:PATTERN", number,
                        line);
            warn(said);
        }
    }
}

static bool frame_matches(const char *pattern, const struct report_frame *frame)
{
    const char *slash = frame->module ? strrchr(frame->module, '/') : NULL;
    return (frame->function && suppression_matches(pattern, frame->function)) ||
           (frame->file && suppression_matches(pattern, frame->file)) ||
           (frame->module && suppression_matches(pattern, frame->module)) ||
           (slash && suppression_matches(pattern, slash + 1));
}

static bool site_matches(const char *pattern, const struct report_site *site)
{
    if (site->via && suppression_matches(pattern, site->via)) return true;
    for (size_t i = 0; i < site->frame_count; i++)
        if (frame_matches(pattern, &site->frames[i])) return true;
    return false;
}

void suppressions_apply(const struct suppressions *suppressions, struct report *report)
{
    for (size_t i = 0; i < report->site_count; i++) {
        struct report_site *site = &report->sites[i];
        if (!report_site_leaks(site)) continue;
        for (size_t j = 0; j < suppressions->count && !site->hidden_by; j++)
            if (site_matches(suppressions->patterns[j], site)) site->hidden_by = suppressions->patterns[j];
    }
}
