/* Entries of a module, one after another: read, solved, visited. */
#include "policy/ptx_internal.h"

/* Steps for a text of this size: what compilers emit takes a small part of it. */
static uint64_t steps_of(size_t bytes) { return (4u << 20) + 96 * (uint64_t)bytes; }

size_t ptx_scratch_bytes(size_t text_bytes) { return (2u << 20) + 16 * text_bytes; }

/* Reads the entry and, over and over, the functions that what was read calls. */
static struct ptx_code *codes_read(const struct ptx_module *module, struct ptx_function *entry)
{
    struct ptx_code *first = ptx_code_read(module, entry), *last = first;
    if (!first) return NULL;
    entry->code = first;
    for (struct ptx_code *code = first; code && !code->why; code = code->next) {
        for (uint32_t k = 0; k < code->instruction_count; k++) {
            struct ptx_function *callee = code->instructions[k].callee;
            if (!callee || callee->code || !callee->is_defined) continue;
            if (callee->why) {
                code->why = callee->why;
                code->why_line = callee->line;
                break;
            }
            callee->code = ptx_code_read(module, callee);
            if (!callee->code) {
                code->why = "out of scratch memory";
                break;
            }
            last = last->next = callee->code;
        }
    }
    return first;
}

static void codes_forget(struct ptx_code *code)
{
    for (; code; code = code->next) code->function->code = NULL;
}

static bool parameters_make(struct ptx_budget *budget, const struct ptx_function *entry, struct ptx_kernel *kernel)
{
    struct ptx_parameter *parameters = ptx_take(budget, entry->formal_count + 1, sizeof *parameters);
    if (!parameters) return false;
    for (uint32_t n = 0; n < entry->formal_count; n++) {
        const struct ptx_formal *formal = &entry->formals[n];
        enum ptx_use use = kernel->why                                           ? PTX_UNKNOWN
                           : kernel->stores_elsewhere && formal->size_bytes >= 8 ? PTX_MAY_WRITE
                                                                                 : PTX_UNUSED;
        parameters[n] = (struct ptx_parameter){formal->offset_bytes, formal->size_bytes, formal->align_bytes,
                                               formal->is_pointer, use};
    }
    for (uint32_t n = 0; n < kernel->pointer_count; n++) {
        struct ptx_parameter *parameter = &parameters[kernel->pointers[n].parameter];
        parameter->pointer_like = true;
        if (kernel->pointers[n].use > parameter->use) parameter->use = kernel->pointers[n].use;
    }
    kernel->parameters = parameters;
    kernel->parameter_count = entry->formal_count;
    return true;
}

/* A kernel that was not understood answers the worst to each question. */
static void kernel_give_up(struct ptx_kernel *kernel, const char *why, unsigned line)
{
    *kernel = (struct ptx_kernel){.name = kernel->name,
                                  .name_bytes = kernel->name_bytes,
                                  .why = why,
                                  .why_line = line,
                                  .stores_elsewhere = true,
                                  .loads_elsewhere = true,
                                  .stores_variables = true,
                                  .atomics = true,
                                  .atomics_elsewhere = true,
                                  .polls = true,
                                  .calls = true};
}

static bool entry_visit(const struct ptx_module *module, struct ptx_function *entry, ptx_visit *visit, void *context)
{
    struct ptx_kernel kernel = {.name = entry->name.at, .name_bytes = entry->name.bytes};
    struct ptx_budget *budget = module->budget;
    size_t used = budget->used;
    struct ptx_code *codes = NULL;
    if (entry->why)
        kernel.why = entry->why, kernel.why_line = entry->line;
    else if (!(codes = codes_read(module, entry)))
        kernel.why = "out of scratch memory";
    else
        ptx_flow_solve(budget, codes, &kernel);
    codes_forget(codes);
    if (kernel.why) {
        kernel_give_up(&kernel, kernel.why, kernel.why_line);
        budget->used = used;
    }
    if (!parameters_make(budget, entry, &kernel)) kernel_give_up(&kernel, "out of scratch memory", 0);
    bool go_on = visit(context, &kernel);
    budget->used = used;
    return go_on;
}

enum ptx_status ptx_analyse(const char *text, size_t bytes, const char *only, void *scratch, size_t scratch_bytes,
                            ptx_visit *visit, void *context)
{
    const char *end = memchr(text, 0, bytes);
    if (end) bytes = end - text;
    struct ptx_budget budget = {.scratch = scratch, .bytes = scratch_bytes, .steps = steps_of(bytes)};
    struct ptx_module *module = ptx_take(&budget, 1, sizeof *module);
    if (!module || bytes > UINT32_MAX / 2) return PTX_PARTIAL;
    module->budget = &budget;
    ptx_module_read(module, text, bytes);
    for (struct ptx_function *f = module->first; f; f = f->next) {
        if (!f->is_entry || (only && !ptx_name_is(f->name, only))) continue;
        if (!f->is_defined && !f->why) continue;
        if (!entry_visit(module, f, visit, context)) return PTX_STOPPED;
    }
    return module->complete && budget.steps ? PTX_COMPLETE : PTX_PARTIAL;
}

enum ptx_use ptx_kernel_use(const struct ptx_kernel *kernel, uint32_t offset_bytes)
{
    if (kernel->why) return PTX_UNKNOWN;
    enum ptx_use use = kernel->stores_elsewhere ? PTX_MAY_WRITE : PTX_UNUSED;
    for (uint32_t n = 0; n < kernel->pointer_count; n++)
        if (kernel->pointers[n].offset_bytes == offset_bytes && kernel->pointers[n].use > use)
            use = kernel->pointers[n].use;
    return use;
}

bool ptx_kernel_confined(const struct ptx_kernel *kernel) { return !kernel->why && !kernel->stores_elsewhere; }
