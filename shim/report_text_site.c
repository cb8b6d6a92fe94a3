/* Call sites in the text form. */
#include <string.h>
#include "shim/report_text.h"
#include "shim/report_words.h"

enum { FRAMES_SHOWN = 12, NAME_SHOWN = 120 };

/* A frame as "function  file:line" or "function + offset  library", as much as is known. */
static void write_frame(struct emitter *e, const char *before, const struct report_frame *frame)
{
    const char *module = frame->module ? strrchr(frame->module, '/') : NULL;
    module = module ? module + 1 : frame->module;
    emitter_text(e, "      %s", before);
    if (frame->function && strlen(frame->function) > NAME_SHOWN)
        emitter_text(e, "%.*s...", NAME_SHOWN, frame->function);
    else if (frame->function)
        emitter_text(e, "%s", frame->function);
    if (frame->function && !frame->file && frame->in_function)
        emitter_text(e, " + 0x%lx", (unsigned long)frame->in_function);
    if (frame->file) {
        emitter_text(e, "  ");
        emitter_bytes(e, frame->file, strlen(frame->file));
        if (frame->line) emitter_text(e, ":%u", frame->line);
    } else if (module) {
        emitter_text(e, frame->function ? "  %s" : "%s + 0x%lx", module, (unsigned long)frame->offset);
        if (!frame->function && frame->build_id) emitter_text(e, "  (build-id %.16s)", frame->build_id);
    } else {
        emitter_text(e, "0x%lx  (generated code)", (unsigned long)frame->offset);
    }
    emitter_text(e, "%s\n", frame->inlined ? "  (inlined)" : frame->kind == FRAME_PYTHON ? "  (Python)" : "");
}

/* Of all frames those that people look for: Python's if there are any, else the program's own, else all. What CUDA's
 * libraries and the C library do around them is left out. */
static bool frame_shown(const struct report_frame *frame, const size_t counts[FRAME_KINDS])
{
    if (counts[FRAME_PYTHON]) return frame->kind == FRAME_PYTHON;
    return !counts[FRAME_PROGRAM] || frame->kind == FRAME_PROGRAM;
}

void text_site(struct emitter *e, const struct report_site *site)
{
    const struct report_frame *extension = NULL; /* by which Python got here: the innermost one that has a name */
    size_t counts[FRAME_KINDS] = {0}, shown = 0, wanted = 0;
    if (!site || site->frame_count == 0) {
        emitter_text(e, "      (call site unknown)\n");
        return;
    }
    if (site->via) emitter_text(e, "      by %s, called from\n", site->via);
    for (size_t i = 0; i < site->frame_count; i++) {
        counts[site->frames[i].kind]++;
        if (site->frames[i].kind == FRAME_PROGRAM && (!extension || (!extension->function && site->frames[i].function)))
            extension = &site->frames[i];
    }
    for (size_t i = 0; i < site->frame_count; i++) {
        if (!frame_shown(&site->frames[i], counts)) continue;
        if (++wanted <= FRAMES_SHOWN) write_frame(e, "", &site->frames[i]), shown++;
    }
    if (wanted > shown) emitter_text(e, "      ... %lu more\n", (unsigned long)(wanted - shown));
    if (counts[FRAME_PYTHON] && extension) write_frame(e, "through ", extension);
}

/* The site of the most weight below `below` (or equal and later in the list): sites in falling order without a second
 * list. */
const struct report_site *text_next_site(const struct report *report, uint64_t (*weigh)(const struct report_site *),
                                         const struct report_site *after)
{
    const struct report_site *best = NULL;
    uint64_t best_weight = 0, limit = after ? weigh(after) : 0;
    for (size_t i = 0; i < report->site_count; i++) {
        const struct report_site *site = &report->sites[i];
        uint64_t weight = weigh(site);
        if (weight == 0 || (after && (weight > limit || (weight == limit && site <= after)))) continue;
        if (weight > best_weight) best = site, best_weight = weight;
    }
    return best;
}

unsigned text_count_sites(const struct report *report, uint64_t (*weigh)(const struct report_site *))
{
    unsigned count = 0;
    for (size_t i = 0; i < report->site_count; i++) count += weigh(&report->sites[i]) > 0;
    return count;
}

void text_more(struct emitter *e, unsigned sites)
{
    if (sites) emitter_text(e, "    and at %u more site%s; the JSON report has all\n", sites, plural(sites));
}
