/* What loads, stores and calls do to origins: parameters, cells for shared and local memory, arguments. */
#include "policy/ptx_flow.h"

/* The result becomes what a load of this width finds in a cell. */
static void cell_load(struct flow *f, uint32_t cell, bool narrow)
{
    flow_merge(f, RESULT, cell);
    if (narrow)
        flow_demote(f);
    else if (flow_bases_of(f, cell)[0] & BIT(IN_PIECES))
        flow_promote(f);
}

static void cell_store(struct flow *f, uint32_t cell, bool narrow)
{
    if (narrow) flow_demote(f);
    if (narrow) flow_bases_of(f, RESULT)[0] = BIT(IN_PIECES);
    flow_merge(f, cell, RESULT);
}

/* Which memory an address may lie in, as bits of bases. */
uint64_t flow_memory_bits(const struct flow *f, const struct ptx_code *code, const struct ptx_operand *o)
{
    if (o->kind != PTX_MEMORY) return 0;
    const struct ptx_node *node = &code->nodes[o->node];
    return flow_bases_of(f, node->value)[0] | flow_address_bit(f, code, node);
}

bool flow_any_window(const struct flow *f, const uint64_t *set)
{
    uint64_t any = set[0] >> WINDOWS;
    for (uint32_t w = 1; w < f->words; w++) any |= set[w];
    return any;
}

/* True if a generic address surely lies in the memories named. */
static bool surely_in(const struct flow *f, const struct ptx_code *code, const struct ptx_operand *o, uint64_t memories)
{
    uint64_t bits = flow_memory_bits(f, code, o);
    return o->kind == PTX_MEMORY && (bits & memories) && !(bits & (BIT(WINDOWS) - 1) & ~memories) &&
           !flow_any_window(f, flow_bases_of(f, code->nodes[o->node].value));
}

bool flow_touches(const struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i,
                  const struct ptx_operand *o, enum ptx_space space)
{
    if (i->space != PTX_GENERIC) return i->space == space;
    return flow_memory_bits(f, code, o) & (space == PTX_SHARED ? BIT(SHARED) : BIT(LOCAL));
}

/* True if the access may be to memory that is neither shared, local nor parameters. */
bool flow_leaves_chip(const struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i,
                      const struct ptx_operand *o)
{
    return i->space == PTX_GLOBAL || i->space == PTX_CONST ||
           (i->space == PTX_GENERIC && !surely_in(f, code, o, ON_CHIP | (i->class == PTX_LOAD ? BIT(PARAMETER) : 0)));
}

static void window_add_to(struct flow *f, uint32_t window, bool narrow)
{
    if (window == PTX_NONE) return;
    uint64_t *set = narrow ? flow_parts_of(f, RESULT) : flow_bases_of(f, RESULT);
    set[(WINDOWS + window) / 64] |= BIT((WINDOWS + window) % 64);
}

/* A load of the entry's own parameter at a known offset. */
static void formal_load(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i,
                        const struct ptx_operand *address)
{
    const struct ptx_formal *formal = &code->function->formals[code->nodes[address->node].formal];
    bool narrow = i->last_bytes < 8;
    uint32_t element = 0;
    for (uint32_t k = i->operand; k < i->operand + i->operand_count; k++) {
        const struct ptx_operand *o = &code->operands[k];
        if (o->position != 0) continue;
        flow_clear(f);
        uint32_t offset = formal->offset_bytes + address->number + element++ * i->last_bytes;
        if (narrow) flow_result_only(f, BASELESS);
        for (uint32_t part = 0; part < i->last_bytes; part += 8)
            window_add_to(f, flow_window_at(f, offset + part, narrow), narrow);
        if (o->kind == PTX_VALUE) flow_merge(f, code->nodes[o->node].value, RESULT);
    }
}

static void load_solve(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i,
                       const struct ptx_operand *address)
{
    const struct ptx_node *node = address->kind == PTX_MEMORY ? &code->nodes[address->node] : NULL;
    bool narrow = i->last_bytes < 8 || i->class == PTX_MATRIX || i->class == PTX_ONCHIP_LOAD;
    if (i->space == PTX_PARAM && node && flow_is_entry_formal(f, code, node)) {
        formal_load(f, code, i, address);
        return;
    }
    flow_clear(f);
    if (i->space == PTX_PARAM && node && node->space == PTX_PARAM) {
        cell_load(f, node->value, narrow);
        flow_result_put(f, code, i);
        return;
    }
    bool parameters =
        i->space == PTX_PARAM || (i->space == PTX_GENERIC && (flow_memory_bits(f, code, address) & BIT(PARAMETER)));
    if (i->class == PTX_ONCHIP_LOAD || flow_touches(f, code, i, address, PTX_SHARED)) cell_load(f, SHARED_CELL, narrow);
    if (flow_touches(f, code, i, address, PTX_LOCAL) || i->space == PTX_PARAM) cell_load(f, LOCAL_CELL, narrow);
    for (uint32_t w = 0; parameters && w < f->window_count; w++)
        if (f->windows[w].reachable && f->windows[w].pieces == narrow) window_add_to(f, w, narrow);
    if (parameters && narrow) flow_bases_of(f, RESULT)[0] |= BIT(BASELESS);
    if (i->class != PTX_ONCHIP_LOAD && flow_leaves_chip(f, code, i, address)) {
        (narrow ? flow_parts_of(f, RESULT) : flow_bases_of(f, RESULT))[0] |= BIT(LOADED);
        if (narrow) flow_bases_of(f, RESULT)[0] |= BIT(BASELESS);
    }
    flow_result_put(f, code, i);
}

static void store_solve(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i,
                        const struct ptx_operand *address, int first)
{
    const struct ptx_node *node = address->kind == PTX_MEMORY ? &code->nodes[address->node] : NULL;
    bool narrow = i->last_bytes < 8 || i->class == PTX_MATRIX || i->class == PTX_ONCHIP_STORE;
    bool direct = i->space == PTX_PARAM && node && node->space == PTX_PARAM;
    for (uint32_t cell = SHARED_CELL; cell <= LOCAL_CELL; cell++) {
        bool here = cell == SHARED_CELL
                        ? i->class == PTX_ONCHIP_STORE || flow_touches(f, code, i, address, PTX_SHARED)
                        : direct || flow_touches(f, code, i, address, PTX_LOCAL) || i->space == PTX_PARAM;
        if (!here) continue;
        flow_clear(f);
        flow_sources_add(f, code, i, first, 15, true);
        cell_store(f, direct && cell == LOCAL_CELL ? node->value : cell, narrow);
    }
}

static void atomic_solve(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i,
                         const struct ptx_operand *address, int at)
{
    store_solve(f, code, i, address, at + 1);
    if (at == 1) load_solve(f, code, i, address);
}

static void shared_filled(struct flow *f)
{
    flow_clear(f);
    flow_result_only(f, LOADED);
    flow_merge(f, SHARED_CELL, RESULT);
}

/* Functions of the device runtime that do nothing to memory that a program could see. */
bool flow_is_harmless(const struct ptx_function *callee)
{
    return ptx_name_is(callee->name, "vprintf") || ptx_name_is(callee->name, "__assertfail") ||
           ptx_name_is(callee->name, "malloc") || ptx_name_is(callee->name, "free");
}

static bool call_solve(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i)
{
    const struct ptx_code *callee = i->callee->code;
    uint32_t results = 0, arguments = 0;
    for (uint32_t k = i->operand; k < i->operand + i->operand_count; k++) {
        const struct ptx_operand *o = &code->operands[k];
        const struct ptx_node *node = o->kind == PTX_VALUE ? &code->nodes[o->node] : NULL;
        uint32_t index = o->position == 0 ? results++ : arguments++;
        flow_clear(f);
        if (!callee) {
            flow_result_only(f, ptx_name_is(i->callee->name, "malloc") ? LOADED : BASELESS);
            if (o->position == 0 && node) flow_merge(f, node->value, RESULT);
            continue;
        }
        const struct ptx_function *g = callee->function;
        if (o->position == 0 && (index >= g->result_count || !node))
            return flow_fail(f, "a call that does not match its function", i->line);
        if (o->position == 1 && index >= g->formal_count)
            return flow_fail(f, "a call that does not match its function", i->line);
        if (o->position == 0) {
            flow_merge(f, node->value, callee->nodes[g->formal_count + index].value);
        } else if (node && node->space == PTX_PARAM) {
            flow_merge(f, callee->nodes[index].value, node->value);
        } else {
            if (flow_source_add(f, code, o)) flow_bases_of(f, RESULT)[0] |= BIT(BASELESS);
            flow_merge(f, callee->nodes[index].value, RESULT);
        }
    }
    if (callee && (arguments != callee->function->formal_count || results > callee->function->result_count))
        return flow_fail(f, "a call that does not match its function", i->line);
    return true;
}

bool flow_instruction_solve(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i)
{
    const struct ptx_operand *first = flow_memory_operand(code, i, 0), *second = flow_memory_operand(code, i, 1);
    switch (i->class) {
    case PTX_LOAD:
    case PTX_ONCHIP_LOAD:
        if (!second) return flow_fail(f, "a load that is not understood", i->line);
        load_solve(f, code, i, second);
        return true;
    case PTX_STORE:
    case PTX_ONCHIP_STORE:
        if (!first) return flow_fail(f, "a store that is not understood", i->line);
        store_solve(f, code, i, first, 1);
        return true;
    case PTX_ATOMIC:
        if (!first && !second) return flow_fail(f, "an atomic that is not understood", i->line);
        atomic_solve(f, code, i, first ? first : second, first ? 0 : 1);
        return true;
    case PTX_MATRIX:
        if (i->is_load && second)
            load_solve(f, code, i, second);
        else if (i->is_store && first)
            store_solve(f, code, i, first, 1);
        else if (first || second || i->is_load || i->is_store)
            return flow_fail(f, "a matrix access that is not understood", i->line);
        else
            flow_number_solve(f, code, i);
        return true;
    case PTX_COPY:
        if (first && second && i->space == PTX_SHARED) shared_filled(f);
        return true;
    case PTX_CALL:
        return call_solve(f, code, i);
    case PTX_DISCARD:
    case PTX_SURFACE:
    case PTX_BRANCH:
    case PTX_LEAVE:
    case PTX_NOTHING:
        return true;
    default:
        flow_number_solve(f, code, i);
        return true;
    }
}
