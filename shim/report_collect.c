#include "shim/report_collect.h"

#include <limits.h>
#include <link.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include "shim/arena.h"
#include "shim/buffer.h"
#include "shim/clock.h"
#include "shim/earning.h"
#include "shim/log.h"
#include "shim/modules.h"
#include "shim/python.h"
#include "shim/report_file.h"
#include "shim/report_record.h"
#include "shim/report_timeline.h"
#include "shim/shim.h"
#include "shim/sort.h"
#include "shim/symbols.h"
#include "shim/version.h"

static const char *copy_of(const char *text)
{
    size_t bytes = strlen(text) + 1;
    char *copy = arena_alloc(bytes);
    return copy ? memcpy(copy, text, bytes) : "";
}

/* One text for all frames of a module. */
static const char *build_id_text(unsigned number, const struct module *module)
{
    static const char *texts[MODULES_MOST];
    char text[MODULE_BUILD_ID_MAX * 2 + 1];
    size_t length = 0;
    if (!module->build_id_bytes || texts[number]) return texts[number];
    for (unsigned i = 0; i < module->build_id_bytes; i++)
        length += text_format(text + length, sizeof text - length, "%02x", module->build_id[i]);
    return texts[number] = copy_of(text);
}

static void frame_plain(struct report_frame *frame, uintptr_t pc, unsigned number)
{
    const struct module *module = module_get(number);
    *frame = (struct report_frame){.offset = pc};
    if (!module) return;
    frame->module = module->path;
    frame->build_id = build_id_text(number, module);
    frame->offset = pc - module->bias;
    frame->kind = module->cuda ? FRAME_CUDA : module->system ? FRAME_SYSTEM : FRAME_PROGRAM;
}

/* The Python frames stand where the first of the interpreter's does, which then are nobody's interest. */
static unsigned python_place(const struct site *site)
{
    unsigned place = 0;
    for (; place < site->depth; place++) {
        const struct module *module = module_get(site->modules[place]);
        if (module && module->interpreter) break;
    }
    return place;
}

static struct report_frame *python_frames(struct report_frame *to, const struct python_stack *python)
{
    for (unsigned i = 0; i < python->count; i++)
        *to++ = (struct report_frame){.function = python->frames[i].function,
                                      .file = python->frames[i].file,
                                      .line = python->frames[i].line,
                                      .kind = FRAME_PYTHON};
    return to;
}

static enum report_frame_kind kind_under_python(const struct site *site, unsigned i, enum report_frame_kind kind)
{
    const struct module *module = module_get(site->modules[i]);
    return site->python && module && module->interpreter ? FRAME_SYSTEM : kind;
}

static bool starts_with(const char *text, const char *start) { return strncmp(text, start, strlen(start)) == 0; }

/* The runtime is usually linked into the program: its functions are told by their names, the outermost (cudaMalloc) by
 * what it called. */
static enum report_frame_kind frame_kind(const struct report_frame *frame, const struct report_frame *inner)
{
    static const char *const starts[] = {"_start", "__libc_start_main", "__libc_start_call_main", "start_thread",
                                         "clone"};
    if (!frame->function || frame->kind != FRAME_PROGRAM) return frame->kind;
    if (starts_with(frame->function, "libcudart_static_") || starts_with(frame->function, "__cudart"))
        return FRAME_CUDA;
    if (inner && inner->kind == FRAME_CUDA && starts_with(frame->function, "cuda") && frame->function[4] >= 'A' &&
        frame->function[4] <= 'Z')
        return FRAME_CUDA;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (strcmp(frame->function, starts[i]) == 0) return FRAME_SYSTEM;
    return FRAME_PROGRAM;
}

static size_t site_frames(const struct site *site, const struct symbol *symbols, size_t count)
{
    size_t frames = site->python ? site->python->count : 0;
    for (unsigned i = 0; i < site->depth; i++) {
        const struct symbol *symbol = symbols_find(symbols, count, site->modules[i], site->frames[i]);
        frames += symbol && symbol->count ? symbol->count : 1;
    }
    return frames;
}

/* As many frames as site_frames says. */
static void site_name(struct report_frame *to, const struct site *site, const struct symbol *symbols, size_t count)
{
    const struct report_frame *inner = NULL;
    unsigned python = python_place(site);
    for (unsigned i = 0; i <= site->depth; i++) {
        if (i == python && site->python) to = python_frames(to, site->python);
        if (i == site->depth) break;
        const struct symbol *symbol = symbols_find(symbols, count, site->modules[i], site->frames[i]);
        unsigned levels = symbol && symbol->count ? symbol->count : 1;
        for (unsigned level = 0; level < levels; level++, inner = to++) {
            frame_plain(to, site->frames[i], site->modules[i]);
            to->inlined = level + 1 < levels;
            if (symbol && symbol->count) {
                to->function = symbol->frames[level].function;
                to->file = symbol->frames[level].file;
                to->line = symbol->frames[level].line;
                if (!to->inlined) to->in_function = symbol->in_function;
            }
            to->kind = kind_under_python(site, i, frame_kind(to, inner));
        }
    }
}

static void copies_take(struct report_copies *to, const struct site_copies *from)
{
    *to = (struct report_copies){atomic_load(&from->count), atomic_load(&from->bytes), atomic_load(&from->ns)};
}

static bool site_take(struct report_site *to, const struct site *from, const struct cost *cost)
{
    *to = (struct report_site){.id = from->id,
                               .hash = from->hash,
                               .frame_count = from->depth + (from->python ? from->python->count : 0),
                               .moves_to_host = from->moves_to_host,
                               .moves_to_device = from->moves_to_device,
                               .saved_ns = from->saved_ns,
                               .lost_ns = from->lost_ns,
                               .reason = from->reason,
                               .on_host = from->on_host,
                               .native_only = from->native_only};
    const struct module *via = module_get(from->via);
    to->via = via ? via->name : NULL;
    for (unsigned kind = 0; kind < BUFFER_KINDS; kind++) to->usage[kind] = usage_read(&from->usage[kind]);
    copies_take(&to->copies[COPIES_NATIVE_H2D], &from->native_h2d);
    copies_take(&to->copies[COPIES_NATIVE_D2H], &from->native_d2h);
    copies_take(&to->copies[COPIES_ELIDED_H2D], &from->elided_h2d);
    copies_take(&to->copies[COPIES_ELIDED_D2H], &from->elided_d2h);
    to->savable_ns = report_savable_ns(to, cost);
    struct report_frame *frame = to->frames = arena_alloc(to->frame_count * sizeof *to->frames);
    if (!frame) return false;
    site_name(frame, from, NULL, 0);
    return true;
}

static int site_order(const void *a, const void *b)
{
    const struct report_site *one = a, *other = b;
    return one->id < other->id ? -1 : one->id > other->id;
}
_Static_assert(sizeof(struct report_site) <= SORT_ITEM_MAX, "sort_items holds one");

static bool collect_sites(struct report *report)
{
    size_t capacity = 0;
    struct cost defaults;
    const struct cost *cost = earning_cost();
    const struct site *first = site_first();
    if (!cost) cost_default(&defaults), cost = &defaults;
    for (const struct site *site = first; site; site = site->next) capacity++;
    report->sites = arena_alloc((capacity + 1) * sizeof *report->sites);
    if (!report->sites) return false;
    for (const struct site *site = first; site; site = site->next)
        if (site_take(&report->sites[report->site_count], site, cost)) report->site_count++;
    sort_items(report->sites, report->site_count, sizeof *report->sites, site_order);
    return true;
}

static bool collect_findings(struct report *report)
{
    size_t misuses = 0, notes = 0;
    struct misuse_record *misuse = report_misuses(&report->misuses_left_out);
    struct note_record *note = report_notes(&report->notes_left_out);
    for (struct misuse_record *one = misuse; one; one = one->next) misuses++;
    for (struct note_record *one = note; one; one = one->next) notes++;
    report->misuses = arena_alloc(misuses * sizeof *report->misuses);
    report->notes = arena_alloc(notes * sizeof *report->notes);
    if (!report->misuses || !report->notes) return false;
    for (; misuse && report->misuse_count < misuses; misuse = misuse->next)
        report->misuses[report->misuse_count++] =
            (struct report_misuse_entry){misuse->kind, misuse->allocated ? misuse->allocated->id : 0,
                                         misuse->freed ? misuse->freed->id : 0, misuse->address, misuse->count};
    for (; note && report->note_count < notes; note = note->next)
        report->notes[report->note_count++] = (struct report_note_entry){note->text, note->count};
    return true;
}

static void collect_numbers(struct report *report)
{
    buffer_totals(report->totals);
#define STAT(name, unit, what) report->statistics[STATISTIC_##name] = STAT_GET(name);
#include "shim/stats.def"
#undef STAT
}

static int module_is_driver(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)size, (void)unused;
    const char *slash = strrchr(info->dlpi_name, '/');
    return strncmp(slash ? slash + 1 : info->dlpi_name, "libcuda.so", 10) == 0;
}

static const char *cuda_state(const struct report *report)
{
    if (report_saw_cuda(report) || shim.real.cuMemAlloc_v2) return "seen";
    return dl_iterate_phdr(module_is_driver, NULL) ? "bypassed" : "none";
}

bool report_collect(struct report *report, const struct suppressions *suppressions)
{
    char text[PATH_MAX];
    uint64_t now_ns = clock_ns();
    *report = (struct report){.version = ZCSHIM_VERSION, .pid = (uint64_t)getpid(), .processes = 1};
    report_program(text, sizeof text);
    report->program = copy_of(text);
    report_host(text, sizeof text);
    report->host = copy_of(text);
    report->rank = report_rank();
    options_value(text, sizeof text, &shim.options, OPTION_INDEX_MODE);
    report->mode = copy_of(text);
    report->duration_ns = now_ns - timeline_start_ns();
    report->started_s = (uint64_t)time(NULL) - report->duration_ns / 1000000000u;
    collect_numbers(report);
    if (!collect_sites(report) || !collect_findings(report)) return false;
    report->cuda = cuda_state(report);
    report->sample_count = timeline_samples(&report->samples, now_ns);
    report->move_count = timeline_moves(&report->moves);
    suppressions_apply(suppressions, report);
    return true;
}

/* Will the report say where this site is? */
static bool site_wanted(const struct report *report, const struct report_site *site)
{
    if (report_site_leaks(site) || site->moves_to_host || site->moves_to_device) return true;
    for (unsigned way = 0; way < REPORT_COPIES; way++)
        if (site->copies[way].count) return true;
    for (size_t i = 0; i < report->misuse_count; i++)
        if (report->misuses[i].allocated == site->id || report->misuses[i].freed == site->id) return true;
    return false;
}

void report_name_frames(struct report *report, const struct suppressions *suppressions, bool all)
{
    size_t count = 0, capacity = 0;
    for (size_t i = 0; i < report->site_count; i++) capacity += report->sites[i].frame_count;
    struct symbol *symbols = arena_alloc(capacity * sizeof *symbols);
    if (!symbols) return;
    for (const struct site *site = site_first(); site; site = site->next) {
        const struct report_site *known = report_site_of(report, site->id);
        if (!known || !(all || site_wanted(report, known))) continue;
        for (unsigned i = 0; i < site->depth && count < capacity; i++, count++)
            symbols[count] = (struct symbol){.pc = site->frames[i], .module = site->modules[i]};
    }
    count = symbols_resolve(symbols, count);
    for (const struct site *site = site_first(); site; site = site->next) {
        struct report_site *known = (struct report_site *)report_site_of(report, site->id);
        size_t frames = known ? site_frames(site, symbols, count) : 0;
        struct report_frame *named = arena_alloc(frames * sizeof *named);
        if (!known || !named) continue;
        site_name(named, site, symbols, count);
        known->frame_count = frames;
        known->frames = named;
    }
    arena_free(symbols, capacity * sizeof *symbols);
    suppressions_apply(suppressions, report);
}
