/* report and suppress. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include "cli/cli.h"
#include "cli/load.h"
#include "shim/report_suppress.h"
#include "shim/report_words.h"

enum form { FORM_TEXT, FORM_JSON, FORM_FOLDED, FORM_TRACE, FORM_HTML, FORMS };
static const char *const form_names[FORMS] = {"text", "json", "folded", "trace", "html"};
static const char *const weight_names[WEIGHTS] = {"leaks", "total", "copies", "peak"};

static struct {
    unsigned form, weight;
    const char *output, *suppress;
} wanted;

static unsigned choice(const char *value, const char *const *names, unsigned count)
{
    unsigned place = 0;
    while (place < count && strcmp(names[place], value) != 0) place++;
    return place;
}

static bool take(int count, char **arguments, int *at)
{
    const char *value;
    if ((value = option_value("--format", count, arguments, at)))
        wanted.form = choice(value, form_names, FORMS);
    else if ((value = option_value("--weight", count, arguments, at)))
        wanted.weight = choice(value, weight_names, WEIGHTS);
    else if ((value = option_value("-o", count, arguments, at)))
        wanted.output = value;
    else if ((value = option_value("--suppress", count, arguments, at)))
        wanted.suppress = value;
    return value != NULL;
}

static void warn(const char *line) { trouble("%s", line); }

static bool apply_suppressions(struct report *report)
{
    static const char *patterns[1024];
    struct suppressions suppressions;
    size_t length;
    char *text = file_read(wanted.suppress, &length);
    if (!text) return false;
    suppressions_read(&suppressions, patterns, 1024, text, warn);
    suppressions_apply(&suppressions, report);
    return true;
}

/* Merges all the files; NULL after a message. */
static struct report *load_all(const char *command, int count, char **arguments, int at)
{
    struct report *report = NULL;
    if (at >= count) return usage_error(command, "which report?"), NULL;
    for (; at < count; at++) {
        struct report *one = report_load(arguments[at]);
        if (!one) return NULL;
        if (report)
            report_merge(report, one);
        else
            report = one;
    }
    return report;
}

static int write_out(struct report *report)
{
    static char buffer[1 << 16];
    struct emitter emitter;
    int fd = file_create(wanted.output);
    if (fd < 0) return EXIT_TROUBLE;
    emitter_start(&emitter, fd, buffer, sizeof buffer);
    switch ((enum form)wanted.form) {
    case FORM_JSON:
        report_write_json(&emitter, report);
        break;
    case FORM_FOLDED:
        report_write_folded(&emitter, report, wanted.weight);
        break;
    case FORM_TRACE:
        report_write_trace(&emitter, report);
        break;
    case FORM_HTML:
        report_merge_alike(report);
        report_write_html(&emitter, report);
        break;
    default:
        report_merge_alike(report);
        report_write_text(&emitter, report);
        break;
    }
    int error = emitter_finish(&emitter);
    if (fd != STDOUT_FILENO && close(fd) != 0 && !error) error = errno;
    return error ? trouble("%s: %s", wanted.output ? wanted.output : "stdout", emitter_error_word(error)) : EXIT_GOOD;
}

int command_report(int count, char **arguments)
{
    int files = 1; /* those found so far are moved to the front */
    bool options = true;
    for (int at = 1; at < count;) {
        bool option = options && arguments[at][0] == '-' && arguments[at][1];
        if (!option)
            arguments[files++] = arguments[at++];
        else if (strcmp(arguments[at], "--") == 0)
            options = false, at++;
        else if (!take(count, arguments, &at))
            return option_error("report", arguments[at]);
    }
    if (wanted.form == FORMS) return usage_error("report", "--format is text, json, folded, trace or html");
    if (wanted.weight == WEIGHTS) return usage_error("report", "--weight is leaks, total, copies or peak");
    if (files == 1) return usage_error("report", "which report?");
    struct report *report = load_all("report", files, arguments, 1);
    if (!report || (wanted.suppress && !apply_suppressions(report))) return EXIT_TROUBLE;
    return write_out(report);
}

/* A pattern, and all that it hides among the leaks of the report. */
struct suppression {
    char *pattern;
    const struct report_frame *frame;
    struct report_amount amount;
    bool several; /* of several lines */
};

static char *pattern_of(const struct report_frame *frame)
{
    const char *slash = frame->module ? strrchr(frame->module, '/') : NULL;
    if (frame->function) return must_format("^%s$", frame->function);
    return must_format("%s", slash ? slash + 1 : frame->module ? frame->module : "unknown");
}

static size_t suppression_add(struct suppression *list, size_t count, const struct report_site *site)
{
    const struct report_frame *frame = report_site_frame(site);
    struct report_amount leaked = report_site_leaked(site);
    size_t at = 0;
    if (!frame || !leaked.count) return count;
    char *pattern = pattern_of(frame);
    while (at < count && strcmp(list[at].pattern, pattern) != 0) at++;
    if (at == count) list[count++] = (struct suppression){.pattern = pattern, .frame = frame};
    list[at].amount.bytes += leaked.bytes;
    list[at].amount.count += leaked.count;
    list[at].several |= list[at].frame->line != frame->line;
    return count;
}

static void suppression_print(const struct suppression *one)
{
    printf("# %lu bytes in %lu buffer%s", (unsigned long)one->amount.bytes, (unsigned long)one->amount.count,
           plural(one->amount.count));
    if (one->frame->file) printf(", %s:%u%s", one->frame->file, one->frame->line, one->several ? " and others" : "");
    printf("\nleak:%s\n", one->pattern);
}

int command_suppress(int count, char **arguments)
{
    if (count > 1 && arguments[1][0] == '-' && arguments[1][1]) return option_error("suppress", arguments[1]);
    if (count < 2) return usage_error("suppress", "which report?");
    struct report *report = load_all("suppress", count, arguments, 1);
    if (!report) return EXIT_TROUBLE;
    struct suppression *list = must_alloc((report->site_count + 1) * sizeof *list);
    size_t patterns = 0;
    for (size_t i = 0; i < report->site_count; i++) patterns = suppression_add(list, patterns, &report->sites[i]);
    for (size_t i = 0; i < patterns; i++) suppression_print(&list[i]);
    free(list);
    return EXIT_GOOD;
}
