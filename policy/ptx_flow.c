/* One entry and all that it calls: windows of its parameters, origins until they settle, accesses, answers. */
#include "policy/ptx_flow.h"

#define ROUND_LIMIT 64

bool flow_fail(struct flow *f, const char *why, unsigned line)
{
    if (!f->kernel->why) {
        f->kernel->why = f->budget->steps ? why : "more work than is allowed";
        f->kernel->why_line = line;
    }
    return false;
}

static uint32_t window_make(struct flow *f, uint32_t *slot, bool pieces, uint32_t limit)
{
    if (*slot == PTX_NONE && f->window_count < limit) {
        f->windows[f->window_count].pieces = pieces;
        *slot = f->window_count++;
    }
    return *slot;
}

/* The windows of the parameter buffer that the entry loads, or may load through an address. */
static bool windows_find(struct flow *f)
{
    struct ptx_code *entry = f->codes;
    const struct ptx_function *g = entry->function;
    uint32_t limit = 0;
    f->buffer_words = g->formals_bytes / 8 + 1;
    f->whole_at = ptx_take(f->budget, f->buffer_words, sizeof *f->whole_at);
    f->pieces_at = ptx_take(f->budget, f->buffer_words, sizeof *f->pieces_at);
    limit = 2 * f->buffer_words;
    f->windows = ptx_take(f->budget, limit, sizeof *f->windows);
    if (!f->whole_at || !f->pieces_at || !f->windows) return flow_fail(f, "out of scratch memory", 0);
    memset(f->whole_at, 0xff, f->buffer_words * sizeof *f->whole_at);
    memset(f->pieces_at, 0xff, f->buffer_words * sizeof *f->pieces_at);
    for (uint32_t k = 0; k < entry->instruction_count; k++) {
        const struct ptx_instruction *i = &entry->instructions[k];
        const struct ptx_operand *o = flow_memory_operand(entry, i, 1), *results;
        if (i->class != PTX_LOAD || i->space != PTX_PARAM || !o || o->kind != PTX_MEMORY ||
            !flow_is_entry_formal(f, entry, &entry->nodes[o->node]))
            continue;
        const struct ptx_formal *formal = &g->formals[entry->nodes[o->node].formal];
        uint32_t bytes = flow_operands_at(entry, i, 0, &results) * i->last_bytes;
        if (o->number < 0 || o->number + bytes > formal->size_bytes)
            return flow_fail(f, "a load past the end of a parameter", i->line);
        uint32_t offset = formal->offset_bytes + o->number;
        if (i->last_bytes >= 8 && offset % 8) return flow_fail(f, "a misaligned load of a parameter", i->line);
        for (uint32_t at = offset; at < offset + bytes; at += i->last_bytes < 8 ? i->last_bytes : 8) {
            if (i->last_bytes >= 8)
                window_make(f, &f->whole_at[at / 8], false, limit);
            else if (formal->size_bytes >= 8)
                window_make(f, &f->pieces_at[at / 8], true, limit);
        }
    }
    for (uint32_t n = 0; n < g->formal_count; n++) {
        const struct ptx_formal *formal = &g->formals[n];
        for (uint32_t at = formal->offset_bytes;
             entry->nodes[n].address_taken && at < formal->offset_bytes + formal->size_bytes; at++) {
            uint32_t pieces = window_make(f, &f->pieces_at[at / 8], true, limit);
            uint32_t whole = at % 8 == 0 && at + 8 <= formal->offset_bytes + formal->size_bytes
                                 ? window_make(f, &f->whole_at[at / 8], false, limit)
                                 : PTX_NONE;
            if (pieces != PTX_NONE) f->windows[pieces].reachable = true;
            if (whole != PTX_NONE) f->windows[whole].reachable = true;
        }
        if (formal->is_pointer && formal->offset_bytes % 8 == 0 &&
            flow_window_at(f, formal->offset_bytes, false) != PTX_NONE)
            f->windows[flow_window_at(f, formal->offset_bytes, false)].certain = true;
    }
    f->words = (WINDOWS + f->window_count + 63) / 64;
    return true;
}

/* How often each function runs; call chains that come back to themselves are without bound and count as loops. */
static bool calls_weigh(struct flow *f)
{
    uint32_t count = 0;
    for (struct ptx_code *code = f->codes; code; code = code->next) count++;
    f->codes->runs = 1;
    for (uint32_t round = 0; round <= count + 1; round++) {
        bool changed = false;
        for (struct ptx_code *code = f->codes; code; code = code->next) code->next_runs = code == f->codes;
        for (struct ptx_code *code = f->codes; code; code = code->next) {
            if (!ptx_spend(f->budget, code->instruction_count)) return flow_fail(f, "more work than is allowed", 0);
            for (uint32_t k = 0; k < code->instruction_count; k++) {
                const struct ptx_instruction *i = &code->instructions[k];
                if (i->class != PTX_CALL || !i->callee->code) continue;
                struct ptx_code *callee = i->callee->code;
                bool loops = code->in_loop || code->block_loops[i->block] || round > count;
                changed |= loops && !callee->in_loop;
                callee->in_loop |= loops;
                callee->next_runs =
                    ptx_plus(callee->next_runs,
                             round > count ? PTX_UNBOUNDED : ptx_multiply(code->runs, code->block_runs[i->block]));
            }
        }
        for (struct ptx_code *code = f->codes; code; code = code->next) {
            changed |= code->runs != code->next_runs;
            code->runs = code->next_runs;
        }
        if (!changed) break;
    }
    for (struct ptx_code *code = f->codes; code; code = code->next) code->in_loop |= code->runs == PTX_UNBOUNDED;
    return true;
}

/* Variables of parameter space whose address is a value can be reached as local memory can. */
static void reachable_variables_merge(struct flow *f, const struct ptx_code *code)
{
    for (uint32_t n = 0; n < code->node_count; n++) {
        const struct ptx_node *node = &code->nodes[n];
        if (node->space != PTX_PARAM || !node->address_taken || flow_is_entry_formal(f, code, node)) continue;
        flow_merge(f, node->value, LOCAL_CELL);
        flow_merge(f, LOCAL_CELL, node->value);
    }
}

static bool fixpoint_reach(struct flow *f)
{
    uint64_t cost = 0;
    for (const struct ptx_code *code = f->codes; code; code = code->next)
        cost += (code->operand_count + code->node_count) * (uint64_t)f->words;
    for (int round = 0; round < ROUND_LIMIT; round++) {
        f->changed = false;
        for (const struct ptx_code *code = f->codes; code; code = code->next) {
            for (uint32_t k = 0; k < code->instruction_count; k++) {
                /* Back and forth, since values pass through later instructions to earlier ones in loops. */
                uint32_t at = round % 2 ? code->instruction_count - 1 - k : k;
                if (!flow_instruction_solve(f, code, &code->instructions[at])) return false;
            }
            reachable_variables_merge(f, code);
        }
        if (!ptx_spend(f->budget, cost)) return flow_fail(f, "more work than is allowed", 0);
        if (!f->changed) return true;
    }
    return flow_fail(f, "origins that do not settle", 0);
}

static void fences_find(struct flow *f, const struct ptx_code *code)
{
    for (uint32_t k = 0; k < code->instruction_count; k++) {
        const struct ptx_instruction *i = &code->instructions[k];
        bool fence = (i->op == PTX_OP_membar || i->op == PTX_OP_fence) && !i->is_of_block;
        f->fenced |= fence && (code->in_loop || code->block_loops[i->block]);
    }
}

bool ptx_flow_solve(struct ptx_budget *budget, struct ptx_code *codes, struct ptx_kernel *kernel)
{
    struct flow f = {.budget = budget, .codes = codes, .kernel = kernel};
    uint32_t values = FIRST_NODE;
    for (struct ptx_code *code = codes; code; code = code->next) {
        if (code->why) return flow_fail(&f, code->why, code->why_line);
        for (uint32_t k = 0; k < code->instruction_count; k++) {
            const struct ptx_instruction *i = &code->instructions[k];
            if (i->class == PTX_CALL && !i->callee->code && (i->callee->is_defined || !flow_is_harmless(i->callee)))
                return flow_fail(&f, "a call to code that is not in the module", i->line);
        }
        for (uint32_t n = 0; n < code->node_count; n++) code->nodes[n].value = values++;
    }
    if (!windows_find(&f)) return false;
    f.sets = ptx_take(budget, values, 2 * sizeof(uint64_t) * f.words);
    if (!f.sets) return flow_fail(&f, "out of scratch memory", 0);
    for (struct ptx_code *code = codes; code; code = code->next)
        if (!ptx_loops_find(budget, code)) return flow_fail(&f, "out of scratch memory", 0);
    if (!calls_weigh(&f) || !fixpoint_reach(&f)) return false;
    for (struct ptx_code *code = codes; code; code = code->next) {
        flow_certain_mark(&f, code);
        fences_find(&f, code);
    }
    for (struct ptx_code *code = codes; code; code = code->next) {
        if (!ptx_spend(budget, (uint64_t)code->instruction_count * (1 + f.window_count / 8)))
            return flow_fail(&f, "more work than is allowed", 0);
        for (uint32_t k = 0; k < code->instruction_count; k++)
            if (!flow_instruction_note(&f, code, &code->instructions[k])) return false;
    }
    return flow_answers_make(&f);
}
