/*
 * Where addresses come from: for each register the set of its possible origins, over the entry and all it calls,
 * whatever the order of execution (a union that only grows, until nothing changes), and what arithmetic does to them.
 *
 * An origin is known in one of two strengths: `bases`, the value may be a pointer made from it; `parts`, the value was
 * computed from it, but as a number (scaled, narrowed, in floating point). Addition keeps the strength; putting pieces
 * together makes bases of parts again.
 */
#include "policy/ptx_flow.h"

void flow_clear(struct flow *f) { memset(flow_bases_of(f, RESULT), 0, 2 * sizeof(uint64_t) * f->words); }

void flow_merge(struct flow *f, uint32_t to, uint32_t from)
{
    uint64_t *a = flow_bases_of(f, to), *b = flow_bases_of(f, from), grown = 0;
    for (uint32_t w = 0; w < 2 * f->words; w++) {
        grown |= b[w] & ~a[w];
        a[w] |= b[w];
    }
    f->changed |= to != RESULT && grown;
}

/* The result becomes a number: what it was made from is no base of it. */
void flow_demote(struct flow *f)
{
    uint64_t *bases = flow_bases_of(f, RESULT), *parts = flow_parts_of(f, RESULT);
    for (uint32_t w = 0; w < f->words; w++) {
        parts[w] |= w ? bases[w] : bases[w] & ~(BIT(BASELESS) | BIT(IN_PIECES));
        bases[w] = 0;
    }
    bases[0] = BIT(BASELESS);
}

void flow_promote(struct flow *f)
{
    uint64_t *bases = flow_bases_of(f, RESULT), *parts = flow_parts_of(f, RESULT);
    for (uint32_t w = 0; w < f->words; w++) bases[w] |= parts[w];
    bases[0] &= ~(BIT(BASELESS) | BIT(IN_PIECES));
}

bool flow_is_entry_formal(const struct flow *f, const struct ptx_code *code, const struct ptx_node *node)
{
    return code == f->codes && node->space == PTX_PARAM && node->formal != PTX_NONE;
}

uint64_t flow_address_bit(const struct flow *f, const struct ptx_code *code, const struct ptx_node *node)
{
    switch (node->space) {
    case PTX_GLOBAL:
        return BIT(VARIABLE);
    case PTX_CONST:
        return BIT(CONSTANT);
    case PTX_SHARED:
        return BIT(SHARED);
    case PTX_LOCAL:
        return BIT(LOCAL);
    case PTX_PARAM:
        return flow_is_entry_formal(f, code, node) ? BIT(PARAMETER) : BIT(LOCAL);
    default:
        return node->is_function ? BIT(FUNCTION) : 0;
    }
}

/* Adds a source to the result. True if the source may have no base. */
bool flow_source_add(struct flow *f, const struct ptx_code *code, const struct ptx_operand *o)
{
    if (o->kind != PTX_VALUE) return o->kind != PTX_IMMEDIATE || o->number != 0;
    const struct ptx_node *node = &code->nodes[o->node];
    uint64_t *bases = flow_bases_of(f, RESULT), baseless_before = bases[0] & BIT(BASELESS);
    flow_merge(f, RESULT, node->value);
    bool baseless = flow_bases_of(f, node->value)[0] & BIT(BASELESS);
    bases[0] = (bases[0] & ~BIT(BASELESS)) | baseless_before | flow_address_bit(f, code, node);
    return baseless;
}

/* Adds the sources at positions first..last. With `any`, the result may be baseless if one source may be; else if all
 * may. */
void flow_sources_add(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i, int first, int last,
                      bool any)
{
    bool one = false, all = true;
    for (uint32_t k = i->operand; k < i->operand + i->operand_count; k++) {
        const struct ptx_operand *o = &code->operands[k];
        if (o->position < first || o->position > last || o->kind == PTX_MEMORY || o->kind == PTX_FIXED_MEMORY) continue;
        bool baseless = flow_source_add(f, code, o);
        /* Constants have no say in a sum. */
        if (any || o->kind == PTX_VALUE) {
            one |= baseless;
            all &= baseless;
        }
    }
    if (any ? one : all) flow_bases_of(f, RESULT)[0] |= BIT(BASELESS);
}

uint32_t flow_operands_at(const struct ptx_code *code, const struct ptx_instruction *i, int position,
                          const struct ptx_operand **first)
{
    uint32_t count = 0;
    *first = NULL;
    for (uint32_t k = i->operand; k < i->operand + i->operand_count; k++) {
        if (code->operands[k].position != position) continue;
        if (!count++) *first = &code->operands[k];
    }
    return count;
}

const struct ptx_operand *flow_memory_operand(const struct ptx_code *code, const struct ptx_instruction *i,
                                              int position)
{
    const struct ptx_operand *o;
    flow_operands_at(code, i, position, &o);
    return o && (o->kind == PTX_MEMORY || o->kind == PTX_FIXED_MEMORY) ? o : NULL;
}

void flow_result_put(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i)
{
    for (uint32_t k = i->operand; k < i->operand + i->operand_count; k++) {
        const struct ptx_operand *o = &code->operands[k];
        if (o->position == 0 && o->kind == PTX_VALUE) flow_merge(f, code->nodes[o->node].value, RESULT);
    }
}

void flow_result_only(struct flow *f, int bit) { flow_bases_of(f, RESULT)[0] = BIT(bit); }

static void pieces_solve(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i)
{
    uint32_t registers = 0;
    for (uint32_t k = i->operand; k < i->operand + i->operand_count; k++)
        registers += code->operands[k].position > 0 && code->operands[k].kind == PTX_VALUE;
    flow_sources_add(f, code, i, 1, 15, false);
    if (registers > 1) flow_promote(f);
}

static void move_solve(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i)
{
    const struct ptx_operand *o;
    uint32_t results = flow_operands_at(code, i, 0, &o), sources = flow_operands_at(code, i, 1, &o);
    flow_sources_add(f, code, i, 1,
                     i->op == PTX_OP_mov || i->op == PTX_OP_shfl    ? 1
                     : i->op == PTX_OP_selp || i->op == PTX_OP_slct ? 2
                                                                    : 15,
                     true);
    if (sources > 1)
        flow_promote(f);
    else if (results > 1 && i->op == PTX_OP_mov)
        flow_demote(f);
}

static void multiply_solve(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i)
{
    bool far = false;
    for (uint32_t k = i->operand; k < i->operand + i->operand_count; k++) {
        const struct ptx_operand *o = &code->operands[k];
        far |= o->position < 3 && o->kind == PTX_IMMEDIATE && (o->number > UINT32_MAX || o->number < INT32_MIN);
    }
    flow_sources_add(f, code, i, 1, 2, false);
    flow_demote(f);
    if (far) flow_promote(f);
}

static void mask_solve(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i)
{
    bool low = false;
    for (uint32_t k = i->operand; k < i->operand + i->operand_count; k++) {
        const struct ptx_operand *o = &code->operands[k];
        low |= o->kind == PTX_IMMEDIATE && o->number >= 0 && o->number <= UINT32_MAX;
    }
    flow_sources_add(f, code, i, 1, 2, false);
    if (low) flow_demote(f);
}

/* Arithmetic: the result from the sources. */
void flow_number_solve(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i)
{
    const struct ptx_operand *amount;
    bool narrow = i->last_bytes < 8 || i->first_bytes < 8;
    flow_clear(f);
    switch (i->class) {
    case PTX_MERGE:
        move_solve(f, code, i);
        break;
    case PTX_SUM:
        flow_sources_add(f, code, i, 1, 15, false);
        break;
    case PTX_PIECES:
        pieces_solve(f, code, i);
        break;
    case PTX_MASK:
        mask_solve(f, code, i);
        break;
    case PTX_SCALE:
        multiply_solve(f, code, i);
        break;
    case PTX_MAD: {
        multiply_solve(f, code, i);
        bool baseless = flow_bases_of(f, RESULT)[0] & BIT(BASELESS);
        flow_bases_of(f, RESULT)[0] &= ~BIT(BASELESS);
        flow_sources_add(f, code, i, 3, 15, false);
        if (!baseless) flow_bases_of(f, RESULT)[0] &= ~BIT(BASELESS);
        narrow &= !i->is_wide || i->last_bytes < 4;
        break;
    }
    case PTX_SHIFT:
        flow_operands_at(code, i, 2, &amount);
        flow_sources_add(f, code, i, 1, 1, false);
        flow_demote(f);
        if (!amount || amount->kind != PTX_IMMEDIATE || amount->number >= 32 || amount->number < 0) flow_promote(f);
        break;
    case PTX_CONVERT:
        flow_sources_add(f, code, i, 1, 15, true);
        break;
    case PTX_ADDRESS:
        if (i->space == PTX_SHARED)
            flow_result_only(f, SHARED);
        else if (i->space == PTX_LOCAL)
            flow_result_only(f, LOCAL);
        else if (i->space == PTX_CONST)
            flow_result_only(f, CONSTANT);
        else
            flow_sources_add(f, code, i, 1, 1, true);
        break;
    case PTX_FRAME:
        flow_result_only(f, LOCAL);
        narrow = false;
        break;
    case PTX_CLUSTER:
        flow_result_only(f, SHARED);
        narrow = false;
        break;
    case PTX_TEXTURE:
        flow_result_only(f, LOADED);
        narrow = true;
        break;
    case PTX_FRESH:
        flow_result_only(f, BASELESS);
        break;
    default:
        flow_sources_add(f, code, i, 1, 15, false);
        narrow = true;
        break;
    }
    if (narrow || i->is_float) flow_demote(f);
    flow_result_put(f, code, i);
}
