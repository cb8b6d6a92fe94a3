/* What each access means for the memory of the parameters, once origins are settled, and the answers for the kernel. */
#include "policy/ptx_flow.h"

#define SECTOR_BYTES 32

/* A parameter that alone is converted to a global address is a pointer beyond doubt. */
void flow_certain_mark(struct flow *f, const struct ptx_code *code)
{
    for (uint32_t k = 0; k < code->instruction_count; k++) {
        const struct ptx_instruction *i = &code->instructions[k];
        const struct ptx_operand *o;
        if (i->class != PTX_ADDRESS || !i->to || i->space != PTX_GLOBAL || flow_operands_at(code, i, 1, &o) != 1 ||
            o->kind != PTX_VALUE)
            continue;
        const uint64_t *set = flow_bases_of(f, code->nodes[o->node].value);
        uint32_t only = PTX_NONE, count = 0;
        for (uint32_t w = 0; w < f->window_count; w++)
            if (flow_has_window(set, w)) only = w, count++;
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

/* One instruction may copy much: memory comes in sectors. */
static uint64_t trips(uint64_t bytes)
{
    return bytes == PTX_UNBOUNDED  ? PTX_UNBOUNDED
           : bytes <= SECTOR_BYTES ? 1
                                   : (bytes + SECTOR_BYTES - 1) / SECTOR_BYTES;
}

static void window_use(struct use *use, struct access a, bool in_loop, uint64_t runs)
{
    use->reads |= a.reads;
    use->writes |= a.writes;
    use->atomics |= a.atomic;
    use->polls |= a.ordered && in_loop;
    use->in_loop |= in_loop;
    use->bytes = ptx_plus(use->bytes, ptx_multiply(a.bytes, runs));
    use->accesses = ptx_plus(use->accesses, ptx_multiply(trips(a.bytes), runs));
}

/* True if some base of the address is a pointer beyond doubt. */
static bool surely_based(const struct flow *f, uint64_t known_bits, const uint64_t *bases)
{
    bool any = false;
    for (uint32_t w = 0; bases && w < f->window_count; w++) {
        if (!flow_has_window(bases, w)) continue;
        if (f->windows[w].certain) return true;
        any = true;
    }
    return !any && known_bits;
}

static void access_note(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i,
                        const struct ptx_operand *o, struct access a)
{
    if (i->class != PTX_COPY && !flow_leaves_chip(f, code, i, o)) return;
    if (i->space == PTX_CONST && !a.writes) return;
    const struct ptx_node *node = o->kind == PTX_MEMORY ? &code->nodes[o->node] : NULL;
    const uint64_t *bases = node ? flow_bases_of(f, node->value) : NULL,
                   *parts = node ? flow_parts_of(f, node->value) : NULL;
    uint64_t runs = ptx_multiply(code->runs, code->block_runs[i->block]), bits = flow_memory_bits(f, code, o);
    bool in_loop = code->in_loop || code->block_loops[i->block];
    uint64_t own =
        BIT(VARIABLE) | (i->space == PTX_GENERIC ? ON_CHIP | (a.writes ? 0 : BIT(CONSTANT) | BIT(PARAMETER)) : 0);
    uint64_t foreign = BIT(LOADED) | BIT(FUNCTION) | BIT(BASELESS) | (a.writes ? BIT(CONSTANT) | BIT(PARAMETER) : 0);
    a.ordered |= a.reads && f->fenced;
    bool known = (bits & own) || (bases && flow_any_window(f, bases)), sure = surely_based(f, bits & own, bases);
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
        if (flow_has_window(bases, w) || (hidden && flow_has_window(parts, w)))
            window_use(&f->windows[w].use, a, in_loop, runs);
}

static bool copy_note(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i)
{
    const struct ptx_operand *first = flow_memory_operand(code, i, 0), *second = flow_memory_operand(code, i, 1), *size;
    flow_operands_at(code, i, 2, &size);
    struct access read = {.reads = true, .ordered = i->is_ordered || i->is_bulk, .bytes = PTX_UNBOUNDED};
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
    if (!second) return flow_fail(f, "a copy that is not understood", i->line);
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
        return flow_fail(f, "a copy that is not understood", i->line);
    }
    return true;
}

bool flow_instruction_note(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i)
{
    const struct ptx_operand *first = flow_memory_operand(code, i, 0), *second = flow_memory_operand(code, i, 1),
                             *results;
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
        if (!first) return flow_fail(f, "an instruction that is not understood", i->line);
        access_note(f, code, i, first, (struct access){.writes = true, .bytes = 128});
        break;
    case PTX_MATRIX:
        if (i->is_load)
            access_note(f, code, i, second,
                        (struct access){.reads = true, .bytes = 8 * flow_operands_at(code, i, 0, &results)});
        if (i->is_store)
            access_note(f, code, i, first,
                        (struct access){.writes = true, .bytes = 8 * flow_operands_at(code, i, 1, &results)});
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

/* All 8-byte windows that were accessed, those in pieces as every window that overlaps them. */
bool flow_answers_make(struct flow *f)
{
    struct ptx_kernel *kernel = f->kernel;
    const struct ptx_function *g = f->codes->function;
    struct ptx_pointer *pointers = NULL;
    bool no_bound = kernel->loads_elsewhere || kernel->stores_elsewhere;
    if (!ptx_spend(f->budget, 2 * (uint64_t)g->formals_bytes)) return flow_fail(f, "more work than is allowed", 0);
    for (int filling = 0; filling < 2; filling++) {
        uint32_t count = 0, parameter = 0;
        for (uint32_t at = 0; at + 8 <= g->formals_bytes; at++) {
            const uint32_t overlapping[] = {at % 8 ? PTX_NONE : flow_window_at(f, at, false),
                                            flow_window_at(f, at, true),
                                            at % 8 ? flow_window_at(f, at + 7, true) : PTX_NONE};
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
            return flow_fail(f, "out of scratch memory", 0);
        kernel->pointer_count = count;
    }
    kernel->pointers = pointers;
    return true;
}
