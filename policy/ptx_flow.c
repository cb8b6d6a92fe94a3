/*
 * Where addresses come from: for each register the set of its possible origins, over the entry and all it calls,
 * whatever the order of execution (a union that only grows, until nothing changes), and what each access means by it.
 *
 * An origin is known in one of two strengths: `bases`, the value may be a pointer made from it; `parts`, the value was
 * computed from it, but as a number (scaled, narrowed, in floating point). Addition keeps the strength; putting pieces
 * together makes bases of parts again.
 */
#include "policy/ptx_internal.h"

#define ROUND_LIMIT 64

/* Bits of the sets; windows of the parameter buffer follow. */
enum {
    BASELESS, /* the value may have no base at all; among bases only */
    LOADED,   /* came from global or constant memory */
    VARIABLE, /* address of a module variable */
    CONSTANT,
    SHARED,
    LOCAL,
    PARAMETER, /* address of a parameter of the kernel */
    FUNCTION,
    IN_PIECES, /* of a memory cell: narrower values were stored to it */
    WINDOWS = 16
};
#define BIT(bit) (1ull << (bit))
#define ON_CHIP  (BIT(SHARED) | BIT(LOCAL))

/* Indices of values that are no register. */
enum { RESULT, SHARED_CELL, LOCAL_CELL, FIRST_NODE };

struct use {
    bool reads, writes, atomics, polls, in_loop;
    uint64_t bytes, accesses;
};
/* An 8-byte window of the parameter buffer (or, in pieces, all windows that overlap those 8 bytes). */
struct window {
    bool certain;   /* declared or converted as a pointer */
    bool reachable; /* of a parameter whose address is a value */
    bool pieces;
    struct use use;
};
struct flow {
    struct ptx_budget *budget;
    struct ptx_code *codes; /* the entry first */
    struct ptx_kernel *kernel;
    uint64_t *sets;
    uint32_t words;                               /* of one set */
    uint32_t *whole_at, *pieces_at, buffer_words; /* windows by 8-byte word of the buffer */
    struct window *windows;
    uint32_t window_count;
    bool changed;
};

static bool fail(struct flow *f, const char *why, unsigned line)
{
    if (!f->kernel->why) {
        f->kernel->why = f->budget->steps ? why : "more work than is allowed";
        f->kernel->why_line = line;
    }
    return false;
}

static uint64_t *bases_of(const struct flow *f, uint32_t value) { return f->sets + (size_t)value * 2 * f->words; }
static uint64_t *parts_of(const struct flow *f, uint32_t value) { return bases_of(f, value) + f->words; }

static void clear(struct flow *f) { memset(bases_of(f, RESULT), 0, 2 * sizeof(uint64_t) * f->words); }

static void merge(struct flow *f, uint32_t to, uint32_t from)
{
    uint64_t *a = bases_of(f, to), *b = bases_of(f, from), grown = 0;
    for (uint32_t w = 0; w < 2 * f->words; w++) {
        grown |= b[w] & ~a[w];
        a[w] |= b[w];
    }
    f->changed |= to != RESULT && grown;
}

/* The result becomes a number: what it was made from is no base of it. */
static void demote(struct flow *f)
{
    uint64_t *bases = bases_of(f, RESULT), *parts = parts_of(f, RESULT);
    for (uint32_t w = 0; w < f->words; w++) {
        parts[w] |= w ? bases[w] : bases[w] & ~(BIT(BASELESS) | BIT(IN_PIECES));
        bases[w] = 0;
    }
    bases[0] = BIT(BASELESS);
}

static void promote(struct flow *f)
{
    uint64_t *bases = bases_of(f, RESULT), *parts = parts_of(f, RESULT);
    for (uint32_t w = 0; w < f->words; w++) bases[w] |= parts[w];
    bases[0] &= ~(BIT(BASELESS) | BIT(IN_PIECES));
}

static bool is_entry_formal(const struct flow *f, const struct ptx_code *code, const struct ptx_node *node)
{
    return code == f->codes && node->space == PTX_PARAM && node->formal != PTX_NONE;
}

static uint64_t address_bit(const struct flow *f, const struct ptx_code *code, const struct ptx_node *node)
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
        return is_entry_formal(f, code, node) ? BIT(PARAMETER) : BIT(LOCAL);
    default:
        return node->is_function ? BIT(FUNCTION) : 0;
    }
}

/* Adds a source to the result. True if the source may have no base. */
static bool source_add(struct flow *f, const struct ptx_code *code, const struct ptx_operand *o)
{
    if (o->kind != PTX_VALUE) return o->kind != PTX_IMMEDIATE || o->number != 0;
    const struct ptx_node *node = &code->nodes[o->node];
    uint64_t *bases = bases_of(f, RESULT), baseless_before = bases[0] & BIT(BASELESS);
    merge(f, RESULT, node->value);
    bool baseless = bases_of(f, node->value)[0] & BIT(BASELESS);
    bases[0] = (bases[0] & ~BIT(BASELESS)) | baseless_before | address_bit(f, code, node);
    return baseless;
}

/* Adds the sources at positions first..last. With `any`, the result may be baseless if one source may be; else if all
 * may. */
static void sources_add(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i, int first,
                        int last, bool any)
{
    bool one = false, all = true;
    for (uint32_t k = i->operand; k < i->operand + i->operand_count; k++) {
        const struct ptx_operand *o = &code->operands[k];
        if (o->position < first || o->position > last || o->kind == PTX_MEMORY || o->kind == PTX_FIXED_MEMORY) continue;
        bool baseless = source_add(f, code, o);
        /* Constants have no say in a sum. */
        if (any || o->kind == PTX_VALUE) {
            one |= baseless;
            all &= baseless;
        }
    }
    if (any ? one : all) bases_of(f, RESULT)[0] |= BIT(BASELESS);
}

static uint32_t operands_at(const struct ptx_code *code, const struct ptx_instruction *i, int position,
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

static const struct ptx_operand *memory_operand(const struct ptx_code *code, const struct ptx_instruction *i,
                                                int position)
{
    const struct ptx_operand *o;
    operands_at(code, i, position, &o);
    return o && (o->kind == PTX_MEMORY || o->kind == PTX_FIXED_MEMORY) ? o : NULL;
}

static void result_put(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i)
{
    for (uint32_t k = i->operand; k < i->operand + i->operand_count; k++) {
        const struct ptx_operand *o = &code->operands[k];
        if (o->position == 0 && o->kind == PTX_VALUE) merge(f, code->nodes[o->node].value, RESULT);
    }
}

static void result_only(struct flow *f, int bit) { bases_of(f, RESULT)[0] = BIT(bit); }

static void pieces_solve(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i)
{
    uint32_t registers = 0;
    for (uint32_t k = i->operand; k < i->operand + i->operand_count; k++)
        registers += code->operands[k].position > 0 && code->operands[k].kind == PTX_VALUE;
    sources_add(f, code, i, 1, 15, false);
    if (registers > 1) promote(f);
}

static void move_solve(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i)
{
    const struct ptx_operand *o;
    uint32_t results = operands_at(code, i, 0, &o), sources = operands_at(code, i, 1, &o);
    sources_add(f, code, i, 1,
                i->op == PTX_OP_mov || i->op == PTX_OP_shfl    ? 1
                : i->op == PTX_OP_selp || i->op == PTX_OP_slct ? 2
                                                               : 15,
                true);
    if (sources > 1)
        promote(f);
    else if (results > 1 && i->op == PTX_OP_mov)
        demote(f);
}

static void multiply_solve(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i)
{
    bool far = false;
    for (uint32_t k = i->operand; k < i->operand + i->operand_count; k++) {
        const struct ptx_operand *o = &code->operands[k];
        far |= o->position < 3 && o->kind == PTX_IMMEDIATE && (o->number > UINT32_MAX || o->number < INT32_MIN);
    }
    sources_add(f, code, i, 1, 2, false);
    demote(f);
    if (far) promote(f);
}

static void mask_solve(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i)
{
    bool low = false;
    for (uint32_t k = i->operand; k < i->operand + i->operand_count; k++) {
        const struct ptx_operand *o = &code->operands[k];
        low |= o->kind == PTX_IMMEDIATE && o->number >= 0 && o->number <= UINT32_MAX;
    }
    sources_add(f, code, i, 1, 2, false);
    if (low) demote(f);
}

/* Arithmetic: the result from the sources. */
static void number_solve(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i)
{
    const struct ptx_operand *amount;
    bool narrow = i->last_bytes < 8 || i->first_bytes < 8;
    clear(f);
    switch (i->class) {
    case PTX_MERGE:
        move_solve(f, code, i);
        break;
    case PTX_SUM:
        sources_add(f, code, i, 1, 15, false);
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
        bool baseless = bases_of(f, RESULT)[0] & BIT(BASELESS);
        bases_of(f, RESULT)[0] &= ~BIT(BASELESS);
        sources_add(f, code, i, 3, 15, false);
        if (!baseless) bases_of(f, RESULT)[0] &= ~BIT(BASELESS);
        narrow &= !i->is_wide || i->last_bytes < 4;
        break;
    }
    case PTX_SHIFT:
        operands_at(code, i, 2, &amount);
        sources_add(f, code, i, 1, 1, false);
        demote(f);
        if (!amount || amount->kind != PTX_IMMEDIATE || amount->number >= 32 || amount->number < 0) promote(f);
        break;
    case PTX_CONVERT:
        sources_add(f, code, i, 1, 15, true);
        break;
    case PTX_ADDRESS:
        if (i->space == PTX_SHARED)
            result_only(f, SHARED);
        else if (i->space == PTX_LOCAL)
            result_only(f, LOCAL);
        else if (i->space == PTX_CONST)
            result_only(f, CONSTANT);
        else
            sources_add(f, code, i, 1, 1, true);
        break;
    case PTX_FRAME:
        result_only(f, LOCAL);
        narrow = false;
        break;
    case PTX_CLUSTER:
        result_only(f, SHARED);
        narrow = false;
        break;
    case PTX_TEXTURE:
        result_only(f, LOADED);
        narrow = true;
        break;
    case PTX_FRESH:
        result_only(f, BASELESS);
        break;
    default:
        sources_add(f, code, i, 1, 15, false);
        narrow = true;
        break;
    }
    if (narrow || i->is_float) demote(f);
    result_put(f, code, i);
}

/* The result becomes what a load of this width finds in a cell. */
static void cell_load(struct flow *f, uint32_t cell, bool narrow)
{
    merge(f, RESULT, cell);
    if (narrow)
        demote(f);
    else if (bases_of(f, cell)[0] & BIT(IN_PIECES))
        promote(f);
}

static void cell_store(struct flow *f, uint32_t cell, bool narrow)
{
    if (narrow) demote(f);
    if (narrow) bases_of(f, RESULT)[0] = BIT(IN_PIECES);
    merge(f, cell, RESULT);
}

/* Which memory an address may lie in, as bits of bases. */
static uint64_t memory_bits(const struct flow *f, const struct ptx_code *code, const struct ptx_operand *o)
{
    if (o->kind != PTX_MEMORY) return 0;
    const struct ptx_node *node = &code->nodes[o->node];
    return bases_of(f, node->value)[0] | address_bit(f, code, node);
}

static bool any_window(const struct flow *f, const uint64_t *set)
{
    uint64_t any = set[0] >> WINDOWS;
    for (uint32_t w = 1; w < f->words; w++) any |= set[w];
    return any;
}

/* True if a generic address surely lies in the memories named. */
static bool surely_in(const struct flow *f, const struct ptx_code *code, const struct ptx_operand *o, uint64_t memories)
{
    uint64_t bits = memory_bits(f, code, o);
    return o->kind == PTX_MEMORY && (bits & memories) && !(bits & (BIT(WINDOWS) - 1) & ~memories) &&
           !any_window(f, bases_of(f, code->nodes[o->node].value));
}

static bool touches(const struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i,
                    const struct ptx_operand *o, enum ptx_space space)
{
    if (i->space != PTX_GENERIC) return i->space == space;
    return memory_bits(f, code, o) & (space == PTX_SHARED ? BIT(SHARED) : BIT(LOCAL));
}

/* True if the access may be to memory that is neither shared, local nor parameters. */
static bool leaves_chip(const struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i,
                        const struct ptx_operand *o)
{
    return i->space == PTX_GLOBAL || i->space == PTX_CONST ||
           (i->space == PTX_GENERIC && !surely_in(f, code, o, ON_CHIP | (i->class == PTX_LOAD ? BIT(PARAMETER) : 0)));
}

static bool has_window(const uint64_t *set, uint32_t window)
{
    return set[(WINDOWS + window) / 64] & BIT((WINDOWS + window) % 64);
}

static uint32_t window_at(const struct flow *f, uint32_t offset_bytes, bool pieces)
{
    return offset_bytes / 8 < f->buffer_words ? (pieces ? f->pieces_at : f->whole_at)[offset_bytes / 8] : PTX_NONE;
}

static void window_add_to(struct flow *f, uint32_t window, bool narrow)
{
    if (window == PTX_NONE) return;
    uint64_t *set = narrow ? parts_of(f, RESULT) : bases_of(f, RESULT);
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
        clear(f);
        uint32_t offset = formal->offset_bytes + address->number + element++ * i->last_bytes;
        if (narrow) result_only(f, BASELESS);
        for (uint32_t part = 0; part < i->last_bytes; part += 8)
            window_add_to(f, window_at(f, offset + part, narrow), narrow);
        if (o->kind == PTX_VALUE) merge(f, code->nodes[o->node].value, RESULT);
    }
}

static void load_solve(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i,
                       const struct ptx_operand *address)
{
    const struct ptx_node *node = address->kind == PTX_MEMORY ? &code->nodes[address->node] : NULL;
    bool narrow = i->last_bytes < 8 || i->class == PTX_MATRIX || i->class == PTX_ONCHIP_LOAD;
    if (i->space == PTX_PARAM && node && is_entry_formal(f, code, node)) {
        formal_load(f, code, i, address);
        return;
    }
    clear(f);
    if (i->space == PTX_PARAM && node && node->space == PTX_PARAM) {
        cell_load(f, node->value, narrow);
        result_put(f, code, i);
        return;
    }
    bool parameters =
        i->space == PTX_PARAM || (i->space == PTX_GENERIC && (memory_bits(f, code, address) & BIT(PARAMETER)));
    if (i->class == PTX_ONCHIP_LOAD || touches(f, code, i, address, PTX_SHARED)) cell_load(f, SHARED_CELL, narrow);
    if (touches(f, code, i, address, PTX_LOCAL) || i->space == PTX_PARAM) cell_load(f, LOCAL_CELL, narrow);
    for (uint32_t w = 0; parameters && w < f->window_count; w++)
        if (f->windows[w].reachable && f->windows[w].pieces == narrow) window_add_to(f, w, narrow);
    if (parameters && narrow) bases_of(f, RESULT)[0] |= BIT(BASELESS);
    if (i->class != PTX_ONCHIP_LOAD && leaves_chip(f, code, i, address)) {
        (narrow ? parts_of(f, RESULT) : bases_of(f, RESULT))[0] |= BIT(LOADED);
        if (narrow) bases_of(f, RESULT)[0] |= BIT(BASELESS);
    }
    result_put(f, code, i);
}

static void store_solve(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i,
                        const struct ptx_operand *address, int first)
{
    const struct ptx_node *node = address->kind == PTX_MEMORY ? &code->nodes[address->node] : NULL;
    bool narrow = i->last_bytes < 8 || i->class == PTX_MATRIX || i->class == PTX_ONCHIP_STORE;
    bool direct = i->space == PTX_PARAM && node && node->space == PTX_PARAM;
    for (uint32_t cell = SHARED_CELL; cell <= LOCAL_CELL; cell++) {
        bool here = cell == SHARED_CELL ? i->class == PTX_ONCHIP_STORE || touches(f, code, i, address, PTX_SHARED)
                                        : direct || touches(f, code, i, address, PTX_LOCAL) || i->space == PTX_PARAM;
        if (!here) continue;
        clear(f);
        sources_add(f, code, i, first, 15, true);
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
    clear(f);
    result_only(f, LOADED);
    merge(f, SHARED_CELL, RESULT);
}

/* Functions of the device runtime that do nothing to memory that a program could see. */
static bool is_harmless(const struct ptx_function *callee)
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
        clear(f);
        if (!callee) {
            result_only(f, ptx_name_is(i->callee->name, "malloc") ? LOADED : BASELESS);
            if (o->position == 0 && node) merge(f, node->value, RESULT);
            continue;
        }
        const struct ptx_function *g = callee->function;
        if (o->position == 0 && (index >= g->result_count || !node))
            return fail(f, "a call that does not match its function", i->line);
        if (o->position == 1 && index >= g->formal_count)
            return fail(f, "a call that does not match its function", i->line);
        if (o->position == 0) {
            merge(f, node->value, callee->nodes[g->formal_count + index].value);
        } else if (node && node->space == PTX_PARAM) {
            merge(f, callee->nodes[index].value, node->value);
        } else {
            if (source_add(f, code, o)) bases_of(f, RESULT)[0] |= BIT(BASELESS);
            merge(f, callee->nodes[index].value, RESULT);
        }
    }
    if (callee && (arguments != callee->function->formal_count || results > callee->function->result_count))
        return fail(f, "a call that does not match its function", i->line);
    return true;
}

static bool instruction_solve(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i)
{
    const struct ptx_operand *first = memory_operand(code, i, 0), *second = memory_operand(code, i, 1);
    switch (i->class) {
    case PTX_LOAD:
    case PTX_ONCHIP_LOAD:
        if (!second) return fail(f, "a load that is not understood", i->line);
        load_solve(f, code, i, second);
        return true;
    case PTX_STORE:
    case PTX_ONCHIP_STORE:
        if (!first) return fail(f, "a store that is not understood", i->line);
        store_solve(f, code, i, first, 1);
        return true;
    case PTX_ATOMIC:
        if (!first && !second) return fail(f, "an atomic that is not understood", i->line);
        atomic_solve(f, code, i, first ? first : second, first ? 0 : 1);
        return true;
    case PTX_MATRIX:
        if (i->is_load && second)
            load_solve(f, code, i, second);
        else if (i->is_store && first)
            store_solve(f, code, i, first, 1);
        else if (first || second || i->is_load || i->is_store)
            return fail(f, "a matrix access that is not understood", i->line);
        else
            number_solve(f, code, i);
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
        number_solve(f, code, i);
        return true;
    }
}

/* Variables of parameter space whose address is a value can be reached as local memory can. */
static void reachable_variables_merge(struct flow *f, const struct ptx_code *code)
{
    for (uint32_t n = 0; n < code->node_count; n++) {
        const struct ptx_node *node = &code->nodes[n];
        if (node->space != PTX_PARAM || !node->address_taken || is_entry_formal(f, code, node)) continue;
        merge(f, node->value, LOCAL_CELL);
        merge(f, LOCAL_CELL, node->value);
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
                if (!instruction_solve(f, code, &code->instructions[at])) return false;
            }
            reachable_variables_merge(f, code);
        }
        if (!ptx_spend(f->budget, cost)) return fail(f, "more work than is allowed", 0);
        if (!f->changed) return true;
    }
    return fail(f, "origins that do not settle", 0);
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
    if (!f->whole_at || !f->pieces_at || !f->windows) return fail(f, "out of scratch memory", 0);
    memset(f->whole_at, 0xff, f->buffer_words * sizeof *f->whole_at);
    memset(f->pieces_at, 0xff, f->buffer_words * sizeof *f->pieces_at);
    for (uint32_t k = 0; k < entry->instruction_count; k++) {
        const struct ptx_instruction *i = &entry->instructions[k];
        const struct ptx_operand *o = memory_operand(entry, i, 1), *results;
        if (i->class != PTX_LOAD || i->space != PTX_PARAM || !o || o->kind != PTX_MEMORY ||
            !is_entry_formal(f, entry, &entry->nodes[o->node]))
            continue;
        const struct ptx_formal *formal = &g->formals[entry->nodes[o->node].formal];
        uint32_t bytes = operands_at(entry, i, 0, &results) * i->last_bytes;
        if (o->number < 0 || o->number + bytes > formal->size_bytes)
            return fail(f, "a load past the end of a parameter", i->line);
        uint32_t offset = formal->offset_bytes + o->number;
        if (i->last_bytes >= 8 && offset % 8) return fail(f, "a misaligned load of a parameter", i->line);
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
            window_at(f, formal->offset_bytes, false) != PTX_NONE)
            f->windows[window_at(f, formal->offset_bytes, false)].certain = true;
    }
    f->words = (WINDOWS + f->window_count + 63) / 64;
    return true;
}

/* A parameter that alone is converted to a global address is a pointer beyond doubt. */
static void certain_mark(struct flow *f, const struct ptx_code *code)
{
    for (uint32_t k = 0; k < code->instruction_count; k++) {
        const struct ptx_instruction *i = &code->instructions[k];
        const struct ptx_operand *o;
        if (i->class != PTX_ADDRESS || !i->to || i->space != PTX_GLOBAL || operands_at(code, i, 1, &o) != 1 ||
            o->kind != PTX_VALUE)
            continue;
        const uint64_t *set = bases_of(f, code->nodes[o->node].value);
        uint32_t only = PTX_NONE, count = 0;
        for (uint32_t w = 0; w < f->window_count; w++)
            if (has_window(set, w)) only = w, count++;
        if (count == 1 && !(set[0] & (BIT(WINDOWS) - 1))) f->windows[only].certain = true;
    }
}

/* One access that may leave the chip. */
struct access {
    bool reads, writes, atomic, ordered;
    uint64_t bytes;
};

static void elsewhere(struct flow *f, struct access a)
{
    f->kernel->loads_elsewhere |= a.reads;
    f->kernel->stores_elsewhere |= a.writes;
    f->kernel->atomics_elsewhere |= a.atomic;
    f->kernel->atomics |= a.atomic;
}

static void window_use(struct use *use, struct access a, bool in_loop, uint64_t runs)
{
    use->reads |= a.reads;
    use->writes |= a.writes;
    use->atomics |= a.atomic;
    use->polls |= a.ordered && in_loop;
    use->in_loop |= in_loop;
    use->bytes = ptx_plus(use->bytes, ptx_multiply(a.bytes, runs));
    use->accesses = ptx_plus(use->accesses, runs);
}

/* True if some base of the address is a pointer beyond doubt. */
static bool surely_based(const struct flow *f, uint64_t known_bits, const uint64_t *bases)
{
    bool any = false;
    for (uint32_t w = 0; bases && w < f->window_count; w++) {
        if (!has_window(bases, w)) continue;
        if (f->windows[w].certain) return true;
        any = true;
    }
    return !any && known_bits;
}

static void access_note(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i,
                        const struct ptx_operand *o, struct access a)
{
    if (i->class != PTX_COPY && !leaves_chip(f, code, i, o)) return;
    if (i->space == PTX_CONST && !a.writes) return;
    const struct ptx_node *node = o->kind == PTX_MEMORY ? &code->nodes[o->node] : NULL;
    const uint64_t *bases = node ? bases_of(f, node->value) : NULL, *parts = node ? parts_of(f, node->value) : NULL;
    uint64_t runs = ptx_multiply(code->runs, code->block_runs[i->block]), bits = memory_bits(f, code, o);
    bool in_loop = code->in_loop || code->block_loops[i->block];
    uint64_t own =
        BIT(VARIABLE) | (i->space == PTX_GENERIC ? ON_CHIP | (a.writes ? 0 : BIT(CONSTANT) | BIT(PARAMETER)) : 0);
    uint64_t foreign = BIT(LOADED) | BIT(FUNCTION) | BIT(BASELESS) | (a.writes ? BIT(CONSTANT) | BIT(PARAMETER) : 0);
    bool known = (bits & own) || (bases && any_window(f, bases)), sure = surely_based(f, bits & own, bases);
    f->kernel->atomics |= a.atomic;
    f->kernel->polls |= a.ordered && in_loop;
    /* Where no base is surely a pointer, a number may hide one. */
    bool hidden = !sure || (bits & BIT(BASELESS));
    if (!known || (bits & foreign) || (hidden && (parts[0] & BIT(LOADED)))) elsewhere(f, a);
    if (bits & BIT(VARIABLE)) {
        f->kernel->stores_variables |= a.writes;
        f->kernel->atomics_elsewhere |= a.atomic;
    }
    for (uint32_t w = 0; bases && w < f->window_count; w++)
        if (has_window(bases, w) || (hidden && has_window(parts, w))) window_use(&f->windows[w].use, a, in_loop, runs);
}

static bool copy_note(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i)
{
    const struct ptx_operand *first = memory_operand(code, i, 0), *second = memory_operand(code, i, 1), *size;
    operands_at(code, i, 2, &size);
    struct access read = {.reads = true, .bytes = PTX_UNBOUNDED};
    struct access write = {.reads = i->is_reduction, .writes = true, .atomic = i->is_reduction, .bytes = PTX_UNBOUNDED};
    if (!first) return true; /* waiting, committing */
    if (i->is_prefetch) {
        if (i->is_tensor)
            elsewhere(f, read);
        else
            access_note(f, code, i, first, read);
        return true;
    }
    if (!second && i->space == PTX_SHARED) return true; /* arriving at a barrier */
    if (!second) return fail(f, "a copy that is not understood", i->line);
    if (size && size->kind == PTX_IMMEDIATE && size->number > 0 && size->number <= 1 << 20)
        read.bytes = write.bytes = size->number;
    if (i->space == PTX_GLOBAL && i->second_space == PTX_SHARED) {
        if (i->is_tensor)
            elsewhere(f, write);
        else
            access_note(f, code, i, first, write);
    } else if (i->space == PTX_SHARED && i->second_space == PTX_GLOBAL) {
        if (i->is_tensor)
            elsewhere(f, read);
        else
            access_note(f, code, i, second, read);
    } else if (i->space != PTX_SHARED || i->second_space != PTX_SHARED) {
        return fail(f, "a copy that is not understood", i->line);
    }
    return true;
}

static bool instruction_note(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i)
{
    const struct ptx_operand *first = memory_operand(code, i, 0), *second = memory_operand(code, i, 1), *results;
    uint64_t bytes = (uint64_t)i->last_bytes * i->elements;
    switch (i->class) {
    case PTX_LOAD:
        access_note(f, code, i, second, (struct access){.reads = true, .ordered = i->is_ordered, .bytes = bytes});
        break;
    case PTX_STORE:
        access_note(f, code, i, first, (struct access){.writes = true, .bytes = bytes});
        break;
    case PTX_ATOMIC:
        access_note(f, code, i, first ? first : second,
                    (struct access){.reads = true, .writes = true, .atomic = true, .bytes = bytes});
        break;
    case PTX_DISCARD:
        if (!first) return fail(f, "an instruction that is not understood", i->line);
        access_note(f, code, i, first, (struct access){.writes = true, .bytes = 128});
        break;
    case PTX_MATRIX:
        if (i->is_load)
            access_note(f, code, i, second,
                        (struct access){.reads = true, .bytes = 8 * operands_at(code, i, 0, &results)});
        if (i->is_store)
            access_note(f, code, i, first,
                        (struct access){.writes = true, .bytes = 8 * operands_at(code, i, 1, &results)});
        break;
    case PTX_COPY:
        return copy_note(f, code, i);
    case PTX_TEXTURE:
        elsewhere(f, (struct access){.reads = true});
        break;
    case PTX_SURFACE:
        elsewhere(f, (struct access){.reads = true, .writes = true, .atomic = i->op == PTX_OP_sured});
        break;
    case PTX_CALL:
        f->kernel->calls |= i->callee->code != NULL;
        break;
    default:
        break;
    }
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
            if (!ptx_spend(f->budget, code->instruction_count)) return fail(f, "more work than is allowed", 0);
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

/* All 8-byte windows that were accessed, those in pieces as every window that overlaps them. */
static bool answers_make(struct flow *f)
{
    struct ptx_kernel *kernel = f->kernel;
    const struct ptx_function *g = f->codes->function;
    struct ptx_pointer *pointers = NULL;
    bool no_bound = kernel->loads_elsewhere || kernel->stores_elsewhere;
    if (!ptx_spend(f->budget, 2 * (uint64_t)g->formals_bytes)) return fail(f, "more work than is allowed", 0);
    for (int filling = 0; filling < 2; filling++) {
        uint32_t count = 0, parameter = 0;
        for (uint32_t at = 0; at + 8 <= g->formals_bytes; at++) {
            const uint32_t overlapping[] = {at % 8 ? PTX_NONE : window_at(f, at, false), window_at(f, at, true),
                                            at % 8 ? window_at(f, at + 7, true) : PTX_NONE};
            struct use use = {0};
            for (int k = 0; k < 3; k++) {
                if (overlapping[k] == PTX_NONE) continue;
                const struct use *other = &f->windows[overlapping[k]].use;
                window_use(&use, (struct access){other->reads, other->writes, other->atomics, other->polls, 0},
                           other->in_loop, 0);
                use.bytes = ptx_plus(use.bytes, other->bytes);
                use.accesses = ptx_plus(use.accesses, other->accesses);
            }
            if (!use.reads && !use.writes) continue;
            while (parameter + 1 < g->formal_count && g->formals[parameter + 1].offset_bytes <= at) parameter++;
            if (filling)
                pointers[count] =
                    (struct ptx_pointer){parameter,
                                         at,
                                         use.writes || kernel->stores_elsewhere ? PTX_MAY_WRITE : PTX_READS,
                                         use.atomics,
                                         use.polls,
                                         use.in_loop,
                                         no_bound ? PTX_UNBOUNDED : use.bytes,
                                         no_bound ? PTX_UNBOUNDED : use.accesses};
            count++;
        }
        if (!filling && !(pointers = ptx_take(f->budget, count + 1, sizeof *pointers)))
            return fail(f, "out of scratch memory", 0);
        kernel->pointer_count = count;
    }
    kernel->pointers = pointers;
    return true;
}

bool ptx_flow_solve(struct ptx_budget *budget, struct ptx_code *codes, struct ptx_kernel *kernel)
{
    struct flow f = {.budget = budget, .codes = codes, .kernel = kernel};
    uint32_t values = FIRST_NODE;
    for (struct ptx_code *code = codes; code; code = code->next) {
        if (code->why) return fail(&f, code->why, code->why_line);
        for (uint32_t k = 0; k < code->instruction_count; k++) {
            const struct ptx_instruction *i = &code->instructions[k];
            if (i->class == PTX_CALL && !i->callee->code && (i->callee->is_defined || !is_harmless(i->callee)))
                return fail(&f, "a call to code that is not in the module", i->line);
        }
        for (uint32_t n = 0; n < code->node_count; n++) code->nodes[n].value = values++;
    }
    if (!windows_find(&f)) return false;
    f.sets = ptx_take(budget, values, 2 * sizeof(uint64_t) * f.words);
    if (!f.sets) return fail(&f, "out of scratch memory", 0);
    for (struct ptx_code *code = codes; code; code = code->next)
        if (!ptx_loops_find(budget, code)) return fail(&f, "out of scratch memory", 0);
    if (!calls_weigh(&f) || !fixpoint_reach(&f)) return false;
    for (struct ptx_code *code = codes; code; code = code->next) certain_mark(&f, code);
    for (struct ptx_code *code = codes; code; code = code->next) {
        if (!ptx_spend(budget, (uint64_t)code->instruction_count * (1 + f.window_count / 8)))
            return fail(&f, "more work than is allowed", 0);
        for (uint32_t k = 0; k < code->instruction_count; k++)
            if (!instruction_note(&f, code, &code->instructions[k])) return false;
    }
    return answers_make(&f);
}
