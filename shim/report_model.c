#include "shim/report_model.h"

#include <string.h>

const char *const report_statistic_names[REPORT_STATISTICS] = {
#define STAT(name, unit, what) #name,
#include "shim/stats.def"
#undef STAT
};

const char *const report_statistic_words[REPORT_STATISTICS] = {
#define STAT(name, unit, what) what,
#include "shim/stats.def"
#undef STAT
};

const enum report_unit report_statistic_units[REPORT_STATISTICS] = {
#define STAT(name, unit, what)                                                                                         \
    sizeof(unit) == sizeof "ns" ? UNIT_NS : unit[0] == 'b' && unit[1] == 'y' ? UNIT_BYTES : UNIT_COUNT,
#include "shim/stats.def"
#undef STAT
};

const char *const report_kind_names[BUFFER_KINDS] = {"device", "pool", "managed", "pinned", "registered", "host"};

const char *const report_copies_names[REPORT_COPIES] = {"native_h2d", "native_d2h", "elided_h2d", "elided_d2h"};

const char *const report_frame_names[FRAME_KINDS] = {"python", "program", "cuda", "system"};

const char *const report_misuse_names[MISUSE_KINDS] = {
    [MISUSE_DOUBLE_FREE] = "double_free",
    [MISUSE_INTERIOR_FREE] = "interior_free",
    [MISUSE_FREE_OF_PINNED] = "free_of_pinned",
    [MISUSE_FREE_HOST_OF_MALLOC] = "free_host_of_malloc",
    [MISUSE_FREE_HOST_OF_DEVICE] = "free_host_of_device",
    [MISUSE_FREE_OF_HOST] = "free_of_host",
    [MISUSE_UNREGISTER_OF_ALLOC] = "unregister_of_alloc",
};

const char *const report_misuse_words[MISUSE_KINDS] = {
    [MISUSE_DOUBLE_FREE] = "freed twice",
    [MISUSE_INTERIOR_FREE] = "a pointer into a buffer was freed; free the address that the allocation returned",
    [MISUSE_FREE_OF_PINNED] = "free() of pinned memory; use cudaFreeHost",
    [MISUSE_FREE_HOST_OF_MALLOC] = "cudaFreeHost of memory that CUDA did not allocate; use free()",
    [MISUSE_FREE_HOST_OF_DEVICE] = "cudaFreeHost of a device buffer; use cudaFree",
    [MISUSE_FREE_OF_HOST] = "cudaFree of host memory; use cudaFreeHost for pinned memory, free() for the rest",
    [MISUSE_UNREGISTER_OF_ALLOC] = "cudaHostUnregister of memory from cudaHostAlloc; use cudaFreeHost",
};

bool report_site_leaks(const struct report_site *site)
{
    for (unsigned kind = 0; kind < BUFFER_KINDS; kind++)
        if (site->usage[kind].live_count > 0 || site->usage[kind].abandoned_count > 0) return true;
    return false;
}

static void amount_add(struct report_amount *amount, uint64_t bytes, uint64_t count)
{
    amount->bytes += bytes;
    amount->count += count;
}

struct report_amount report_site_leaked(const struct report_site *site)
{
    struct report_amount leaked = {0, 0};
    for (unsigned kind = 0; kind < BUFFER_HOST && !site->hidden_by; kind++) {
        const struct usage *usage = &site->usage[kind];
        amount_add(&leaked, usage->live_bytes + usage->abandoned_bytes, usage->live_count + usage->abandoned_count);
    }
    return leaked;
}

void report_leaks_of(const struct report *report, struct report_leaks *leaks)
{
    memset(leaks, 0, sizeof *leaks);
    for (unsigned kind = 0; kind < BUFFER_KINDS; kind++) { /* the totals also count buffers without a site */
        const struct usage *total = &report->totals[kind];
        leaks->live[kind] = (struct report_amount){total->live_bytes, total->live_count};
        leaks->abandoned[kind] = (struct report_amount){total->abandoned_bytes, total->abandoned_count};
    }
    for (size_t i = 0; i < report->site_count; i++)
        for (unsigned kind = 0; report->sites[i].hidden_by && kind < BUFFER_KINDS; kind++) {
            const struct usage *usage = &report->sites[i].usage[kind];
            amount_add(&leaks->live[kind], -usage->live_bytes, -usage->live_count);
            amount_add(&leaks->abandoned[kind], -usage->abandoned_bytes, -usage->abandoned_count);
            amount_add(&leaks->hidden[kind], usage->live_bytes + usage->abandoned_bytes,
                       usage->live_count + usage->abandoned_count);
        }
    for (unsigned kind = 0; kind < BUFFER_HOST; kind++) {
        amount_add(&leaks->leaked, leaks->live[kind].bytes, leaks->live[kind].count);
        amount_add(&leaks->leaked, leaks->abandoned[kind].bytes, leaks->abandoned[kind].count);
        amount_add(&leaks->concealed, leaks->hidden[kind].bytes, leaks->hidden[kind].count);
    }
}

void usage_add(struct usage *to, const struct usage *from)
{
#define USAGE(name) to->name += from->name;
#include "shim/usage.def"
#undef USAGE
}

void report_site_add(struct report_site *to, const struct report_site *from)
{
    for (unsigned kind = 0; kind < BUFFER_KINDS; kind++) usage_add(&to->usage[kind], &from->usage[kind]);
    for (unsigned way = 0; way < REPORT_COPIES; way++) {
        to->copies[way].count += from->copies[way].count;
        to->copies[way].bytes += from->copies[way].bytes;
        to->copies[way].ns += from->copies[way].ns;
    }
    to->moves_to_host += from->moves_to_host;
    to->moves_to_device += from->moves_to_device;
    to->saved_ns += from->saved_ns;
    to->lost_ns += from->lost_ns;
    to->savable_ns += from->savable_ns;
}

const struct report_site *report_site_of(const struct report *report, uint32_t id)
{
    for (size_t low = 0, high = report->site_count; low < high;) {
        size_t middle = (low + high) / 2;
        if (report->sites[middle].id == id) return &report->sites[middle];
        if (report->sites[middle].id < id)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

uint64_t report_misuse_total(const struct report *report)
{
    uint64_t total = report->misuses_left_out;
    for (size_t i = 0; i < report->misuse_count; i++) total += report->misuses[i].count;
    return total;
}

enum report_frame_kind report_site_kind(const struct report_site *site)
{
    for (size_t i = 0; i < site->frame_count; i++)
        if (site->frames[i].kind == FRAME_PYTHON) return FRAME_PYTHON;
    return FRAME_PROGRAM;
}

const struct report_frame *report_site_frame(const struct report_site *site)
{
    enum report_frame_kind kind = report_site_kind(site);
    for (size_t i = 0; i < site->frame_count; i++)
        if (site->frames[i].kind == kind) return &site->frames[i];
    return site->frame_count ? &site->frames[0] : NULL;
}

bool report_saw_cuda(const struct report *report)
{
    for (unsigned kind = 0; kind < BUFFER_HOST; kind++)
        if (report->totals[kind].total_count > 0) return true;
    for (unsigned i = 0; i < REPORT_STATISTICS; i++)
        if (report->statistics[i] > 0 && i != STATISTIC_host_blocks) return true;
    return report->misuse_count > 0 || report->note_count > 0;
}

bool report_has_news(const struct report *report)
{
    static const enum report_statistic news[] = {STATISTIC_copies_h2d_elided, STATISTIC_copies_d2h_elided,
                                                 STATISTIC_copies_by_kernel,  STATISTIC_moves_to_host,
                                                 STATISTIC_moves_failed,      STATISTIC_host_copies_registered,
                                                 STATISTIC_host_copies_staged};
    struct report_leaks leaks;
    report_leaks_of(report, &leaks);
    if (leaks.leaked.count > 0 || report->misuse_count > 0 || report->note_count > 0) return true;
    if (strcmp(report->mode, "observe") == 0 && report_saw_cuda(report)) return true;
    for (size_t i = 0; i < sizeof news / sizeof *news; i++)
        if (report->statistics[news[i]] > 0) return true;
    return false;
}
