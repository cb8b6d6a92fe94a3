/* diff: what an other run leaked, copied and saved more or less. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "cli/cli.h"
#include "cli/load.h"
#include "policy/text.h"
#include "shim/hash.h"
#include "shim/report_words.h"

enum { FRAMES_SHOWN = 3 };

/* A call site in both reports; NULL where it does not occur. */
struct pair {
    uint64_t key;
    const struct report_site *site;
    int64_t old_bytes, new_bytes, old_count, new_count;
};

/* By the functions of Python or else of the program, so that the same place is found in another build; by modules and
 * offsets without names. */
static uint64_t site_key(const struct report_site *site)
{
    uint64_t hash = hash_text(HASH_START, site->via);
    enum report_frame_kind kind = report_site_kind(site);
    for (size_t i = 0; i < site->frame_count; i++) {
        if (site->frames[i].kind != kind) continue;
        if (!site->frames[i].function) return site->hash;
        hash = hash_text(hash, site->frames[i].function);
    }
    return site->frame_count ? hash : site->hash;
}

static void pair_add(struct pair *pairs, size_t *count, const struct report_site *site, bool is_new)
{
    struct report_amount leaked = report_site_leaked(site);
    uint64_t key = site_key(site);
    size_t at = 0;
    if (!leaked.count) return;
    while (at < *count && pairs[at].key != key) at++;
    if (at == *count) pairs[(*count)++] = (struct pair){.key = key, .site = site};
    *(is_new ? &pairs[at].new_bytes : &pairs[at].old_bytes) += (int64_t)leaked.bytes;
    *(is_new ? &pairs[at].new_count : &pairs[at].old_count) += (int64_t)leaked.count;
}

static int by_growth(const void *a, const void *b)
{
    const struct pair *one = a, *other = b;
    int64_t grown = one->new_bytes - one->old_bytes, other_grown = other->new_bytes - other->old_bytes;
    return grown > other_grown ? -1 : grown < other_grown;
}

static void print_frame(const struct report_frame *frame, bool line)
{
    if (frame->function)
        printf("%s", frame->function);
    else
        printf("%s + 0x%" PRIx64, frame->module ? frame->module : "code", frame->offset);
    if (line && frame->file) printf("  %s:%u", frame->file, frame->line);
}

/* The innermost frame that people know, and a few callers: helpers that allocate for everybody are common. */
static void print_site(const struct report_site *site)
{
    const struct report_frame *first = report_site_frame(site);
    unsigned shown = 0;
    if (!first) printf("unknown");
    for (size_t i = 0; i < site->frame_count && shown < FRAMES_SHOWN; i++) {
        const struct report_frame *frame = &site->frames[i];
        if (frame->kind != first->kind) continue;
        if (shown++) printf(", called by ");
        print_frame(frame, shown == 1);
    }
}

static void print_pair(const struct pair *pair)
{
    int64_t grown = pair->new_bytes - pair->old_bytes, more = pair->new_count - pair->old_count;
    if (!grown && !more) return;
    printf("  %+" PRId64 " bytes in %+" PRId64 " buffer%s, %s: ", grown, more,
           plural((uint64_t)(more < 0 ? -more : more)),
           pair->old_count == 0   ? "new"
           : pair->new_count == 0 ? "gone"
           : grown > 0            ? "grown"
                                  : "less");
    print_site(pair->site);
    printf("\n");
}

static void print_change(const char *what, uint64_t before, uint64_t after, enum report_unit unit)
{
    static const char *const names[] = {[UNIT_COUNT] = "", [UNIT_BYTES] = " bytes", [UNIT_NS] = " ns"};
    if (before != after) printf("%s: %" PRIu64 " -> %" PRIu64 "%s\n", what, before, after, names[unit]);
}

/* Returns by how many bytes leaks grew. */
static int64_t diff_leaks(const struct report *before, const struct report *after)
{
    struct pair *pairs = must_alloc((before->site_count + after->site_count + 1) * sizeof *pairs);
    struct report_leaks old_leaks, new_leaks;
    size_t count = 0;
    for (size_t i = 0; i < after->site_count; i++) pair_add(pairs, &count, &after->sites[i], true);
    for (size_t i = 0; i < before->site_count; i++) pair_add(pairs, &count, &before->sites[i], false);
    qsort(pairs, count, sizeof *pairs, by_growth);
    report_leaks_of(before, &old_leaks);
    report_leaks_of(after, &new_leaks);
    int64_t grown = (int64_t)(new_leaks.leaked.bytes - old_leaks.leaked.bytes);
    printf("never freed: %" PRIu64 " -> %" PRIu64 " bytes (%+" PRId64 "), %" PRIu64 " -> %" PRIu64 " buffers\n",
           old_leaks.leaked.bytes, new_leaks.leaked.bytes, grown, old_leaks.leaked.count, new_leaks.leaked.count);
    for (size_t i = 0; i < count; i++) print_pair(&pairs[i]);
    print_change("large host blocks not freed", old_leaks.live[BUFFER_HOST].bytes, new_leaks.live[BUFFER_HOST].bytes,
                 UNIT_BYTES);
    free(pairs);
    return grown;
}

int command_diff(int count, char **arguments)
{
    bool fail = false;
    uint64_t allowed = 0;
    int files = 1; /* those found so far are moved to the front */
    for (int at = 1; at < count; at++) {
        const char *value = strchr(arguments[at], '=');
        if (arguments[at][0] != '-' || !arguments[at][1]) {
            arguments[files++] = arguments[at];
            continue;
        }
        if (strncmp(arguments[at], "--fail-on-growth", 16) != 0 || (arguments[at][16] && arguments[at] + 16 != value))
            return usage_error("diff", "unknown option %s", arguments[at]);
        fail = true;
        if (value && !span_size(span_of(value + 1), &allowed))
            return usage_error("diff", "%s: bytes are meant, as 4096 or 1M", arguments[at]);
    }
    if (files != 3) return usage_error("diff", "two reports are compared");
    const struct report *before = report_load(arguments[1]), *after = report_load(arguments[2]);
    if (!before || !after) return EXIT_TROUBLE;
    int64_t grown = diff_leaks(before, after);
    print_change("wrong frees", report_misuse_total(before), report_misuse_total(after), UNIT_COUNT);
    for (unsigned kind = 0; kind < BUFFER_KINDS; kind++) {
        char what[64];
        snprintf(what, sizeof what, "peak of %s memory", report_kind_names[kind]);
        print_change(what, before->totals[kind].peak_bytes, after->totals[kind].peak_bytes, UNIT_BYTES);
    }
    for (unsigned i = 0; i < REPORT_STATISTICS; i++)
        print_change(report_statistic_words[i], before->statistics[i], after->statistics[i], report_statistic_units[i]);
    bool worse = (grown > 0 && (uint64_t)grown > allowed) || report_misuse_total(after) > report_misuse_total(before);
    if (fail && worse) printf("leaks or wrong frees grew more than allowed\n");
    return fail && worse ? EXIT_BAD : EXIT_GOOD;
}
