/*
 * How often a loop can run: one of its exits tests a register against a constant; the register starts as a constant,
 * and a constant is added to it exactly once in each iteration. Nothing else has a bound.
 */
#include "policy/ptx_loops.h"

static bool is_marked(const struct search *s, uint32_t block) { return s->code->blocks[block].mark == s->mark; }

/* Marks the blocks of a set; is_marked then tells whether one belongs to it. */
static bool set_mark(struct search *s, const uint32_t *set, uint32_t count)
{
    s->mark = ++s->last_mark;
    for (uint32_t k = 0; k < count; k++) s->code->blocks[set[k]].mark = s->mark;
    return ptx_loop_spend(s, count);
}

/* True if, inside the marked set, no way leads from `from` back to itself without `gate`. */
static bool returns_only_by(struct search *s, uint32_t from, uint32_t gate)
{
    struct ptx_code *code = s->code;
    uint32_t ready = 0, stamp = ++s->last_stamp;
    if (from == gate) return true;
    s->walk[ready++] = from;
    while (ready) {
        const struct ptx_block *b = &code->blocks[s->walk[--ready]];
        if (!ptx_loop_spend(s, 1 + b->edge_count)) return false;
        for (uint32_t e = 0; e < b->edge_count; e++) {
            uint32_t to = code->edges[b->edge + e];
            if (to == gate || !is_marked(s, to)) continue;
            if (to == from) return false;
            if (code->blocks[to].stamp == stamp) continue;
            code->blocks[to].stamp = stamp;
            s->walk[ready++] = to;
        }
    }
    return true;
}

/* A loop whose bound is looked for: its blocks are marked. */
struct loop {
    struct search *search;
    const uint32_t *set;
    uint32_t count, header;
    uint32_t lag; /* iterations by which a value may be older than it seems */
};

/* At least once in each iteration. */
static bool runs_each_time(const struct loop *l, uint32_t at)
{
    const struct ptx_instruction *i = &l->search->code->instructions[at];
    return i->predicate == PTX_NONE && is_marked(l->search, i->block) &&
           returns_only_by(l->search, l->header, i->block);
}

/* Exactly once: not in a loop inside the loop either. */
static bool runs_once_each_time(const struct loop *l, uint32_t at)
{
    return runs_each_time(l, at) && returns_only_by(l->search, l->search->code->instructions[at].block, l->header);
}

/* True if in every iteration instruction `a` runs before `b` is reached. */
static bool comes_before(const struct loop *l, uint32_t a, uint32_t b)
{
    struct search *s = l->search;
    struct ptx_code *code = s->code;
    uint32_t gate = code->instructions[a].block, goal = code->instructions[b].block;
    uint32_t ready = 0, stamp = ++s->last_stamp;
    if (gate == goal) return a < b;
    if (gate == l->header) return true;
    if (goal == l->header) return false;
    s->walk[ready++] = l->header;
    while (ready) {
        const struct ptx_block *block = &code->blocks[s->walk[--ready]];
        if (!ptx_loop_spend(s, 1 + block->edge_count)) return false;
        for (uint32_t e = 0; e < block->edge_count; e++) {
            uint32_t to = code->edges[block->edge + e];
            if (to == goal) return false;
            if (to == gate || to == l->header || !is_marked(s, to) || code->blocks[to].stamp == stamp) continue;
            code->blocks[to].stamp = stamp;
            s->walk[ready++] = to;
        }
    }
    return true;
}

/* The last instruction before `at` in its block that may define the node; PTX_NONE if there is none near. */
static uint32_t defined_before(const struct ptx_code *code, uint32_t node, uint32_t at)
{
    const struct ptx_block *block = &code->blocks[code->instructions[at].block];
    for (uint32_t near = 0; near < 64 && at > block->first; near++) {
        const struct ptx_instruction *i = &code->instructions[--at];
        for (uint32_t k = i->operand; k < i->operand + i->operand_count; k++) {
            const struct ptx_operand *o = &code->operands[k];
            if (o->kind == PTX_VALUE && o->position == 0 && o->node == node) return at;
        }
    }
    return PTX_NONE;
}

/* The value that an operand has at `at`, if it is a constant, or a register that surely holds one. */
static bool constant_of(const struct ptx_code *code, const struct ptx_operand *o, uint32_t at, int64_t *value)
{
    for (int depth = 0; depth < 4; depth++) {
        if (o->kind == PTX_IMMEDIATE) return *value = o->number, true;
        if (o->kind != PTX_VALUE || code->nodes[o->node].space != PTX_REGISTER) return false;
        const struct ptx_node *node = &code->nodes[o->node];
        at = node->definitions == 1 ? node->defined_at[0] : defined_before(code, o->node, at);
        if (at == PTX_NONE) return false;
        const struct ptx_instruction *i = &code->instructions[at];
        if (i->op != PTX_OP_mov || !i->is_plain || i->operand_count != 2 || i->predicate != PTX_NONE) return false;
        o = &code->operands[i->operand + 1];
    }
    return false;
}

/* Register plus constant, as of instruction `read_at`, where the register is one that a loop carries. */
struct carried {
    uint32_t node, read_at;
    int64_t offset;
};

/* The source of `mov a, b` or `add a, b, constant`, with the constant added to `offset`. */
static const struct ptx_operand *step_source(const struct ptx_code *code, const struct ptx_instruction *i,
                                             uint8_t bytes, int64_t *offset)
{
    const struct ptx_operand *o = &code->operands[i->operand];
    if (!i->is_plain || i->last_bytes != bytes) return NULL;
    if (i->op == PTX_OP_mov && i->operand_count == 2) return &o[1];
    int64_t step;
    if ((i->op != PTX_OP_add && i->op != PTX_OP_sub) || i->operand_count != 3 ||
        !constant_of(code, &o[2], i - code->instructions, &step))
        return NULL;
    if (step < INT32_MIN || step > INT32_MAX) return NULL;
    *offset += i->op == PTX_OP_add ? step : -step;
    return &o[1];
}

/* Follows copies and constant additions inside the loop from a use at `at` to the register with two definitions. */
static bool carried_find(struct loop *l, const struct ptx_operand *o, uint32_t at, uint8_t bytes, struct carried *found)
{
    const struct ptx_code *code = l->search->code;
    *found = (struct carried){.offset = 0};
    for (int depth = 0; depth < 8 && o && o->kind == PTX_VALUE; depth++) {
        const struct ptx_node *node = &code->nodes[o->node];
        if (node->space != PTX_REGISTER || node->definitions > 2) return false;
        if (node->definitions == 2) {
            found->node = o->node;
            found->read_at = at;
            return true;
        }
        if (node->definitions != 1) return false;
        uint32_t definition = node->defined_at[0];
        if (!runs_each_time(l, definition)) return false;
        l->lag += !comes_before(l, definition, at);
        o = step_source(code, &code->instructions[definition], bytes, &found->offset);
        at = definition;
    }
    return false;
}

/* True if the loop is never entered without `block` having run since it was left last, or since the function began. */
static bool always_enters_by(struct loop *l, uint32_t block)
{
    struct search *s = l->search;
    struct ptx_code *code = s->code;
    uint32_t ready = 0, loop_mark = s->mark, seen = ++s->last_mark;
    bool holds = true;
    /* Blocks of the loop keep loop_mark; blocks reached outside get `seen`. */
    if (block != 0) {
        if (code->blocks[0].mark == loop_mark) return false;
        code->blocks[0].mark = seen;
        s->walk[ready++] = 0;
    }
    for (uint32_t k = 0; k < l->count; k++)
        for (uint32_t e = 0; e < code->blocks[l->set[k]].edge_count; e++) {
            uint32_t to = code->edges[code->blocks[l->set[k]].edge + e];
            if (code->blocks[to].mark == loop_mark || code->blocks[to].mark == seen || to == block) continue;
            code->blocks[to].mark = seen;
            s->walk[ready++] = to;
        }
    while (ready && holds) {
        uint32_t b = s->walk[--ready];
        holds = ptx_loop_spend(s, 1 + code->blocks[b].edge_count);
        for (uint32_t e = 0; e < code->blocks[b].edge_count && holds; e++) {
            uint32_t to = code->edges[code->blocks[b].edge + e];
            if (code->blocks[to].mark == loop_mark) holds = false;
            if (code->blocks[to].mark == loop_mark || code->blocks[to].mark == seen || to == block) continue;
            code->blocks[to].mark = seen;
            s->walk[ready++] = to;
        }
    }
    return holds;
}

/* Tests that a register starting at `start` and moving by `step` passes before `compare end` is false; PTX_UNBOUNDED if
 * not sure. */
static uint64_t tests_until_false(enum ptx_compare compare, bool is_signed, uint8_t bytes, int64_t start, int64_t step,
                                  int64_t end)
{
    uint64_t mask = bytes == 8 ? UINT64_MAX : UINT32_MAX;
    if (step == 0) return PTX_UNBOUNDED;
    uint64_t stride = step > 0 ? (uint64_t)step : 0 - (uint64_t)step;
    if (compare == PTX_NE) {
        uint64_t distance = (step > 0 ? (uint64_t)end - (uint64_t)start : (uint64_t)start - (uint64_t)end) & mask;
        return distance % stride ? PTX_UNBOUNDED : ptx_plus(distance / stride, 1);
    }
    __int128 from = is_signed ? (bytes == 8 ? start : (int32_t)start) : (__int128)((uint64_t)start & mask);
    __int128 to = is_signed ? (bytes == 8 ? end : (int32_t)end) : (__int128)((uint64_t)end & mask);
    __int128 highest = is_signed ? (__int128)(mask >> 1) : (__int128)mask, lowest = is_signed ? -highest - 1 : 0;
    bool up = compare == PTX_LT || compare == PTX_LE, inclusive = compare == PTX_LE || compare == PTX_GE;
    if ((compare != PTX_GT && compare != PTX_GE && !up) || up != (step > 0)) return PTX_UNBOUNDED;
    /* Past the end, the register must still not have wrapped. */
    if (up ? to + (__int128)stride > highest : to - (__int128)stride < lowest) return PTX_UNBOUNDED;
    __int128 distance = up ? to - from : from - to;
    if (distance < 0 || (distance == 0 && !inclusive)) return 1;
    __int128 passes = inclusive ? distance / stride + 1 : (distance + stride - 1) / stride;
    return (uint64_t)passes + 1;
}

static enum ptx_compare opposite(enum ptx_compare compare)
{
    static const enum ptx_compare opposites[] = {[PTX_EQ] = PTX_NE, [PTX_NE] = PTX_EQ, [PTX_LT] = PTX_GE,
                                                 [PTX_GE] = PTX_LT, [PTX_GT] = PTX_LE, [PTX_LE] = PTX_GT};
    return opposites[compare];
}

/* The comparison that decides the predicate of the branch at `at`; *negated follows not.pred. */
static const struct ptx_instruction *comparison_find(struct loop *l, uint32_t at, bool *negated, uint32_t *where)
{
    const struct ptx_code *code = l->search->code;
    uint32_t node = code->instructions[at].predicate;
    *negated = code->instructions[at].negated;
    for (int depth = 0; depth < 4; depth++) {
        if (code->nodes[node].space != PTX_REGISTER || code->nodes[node].definitions != 1) return NULL;
        uint32_t definition = code->nodes[node].defined_at[0];
        const struct ptx_instruction *i = &code->instructions[definition];
        const struct ptx_operand *o = &code->operands[i->operand];
        if (!runs_each_time(l, definition)) return NULL;
        l->lag += !comes_before(l, definition, at);
        at = *where = definition;
        if (i->op == PTX_OP_setp) return i->operand_count == 3 && o[1].position == 1 && o[2].position == 2 ? i : NULL;
        if (i->op != PTX_OP_not || i->operand_count != 2 || o[1].kind != PTX_VALUE || i->last_bytes) return NULL;
        *negated = !*negated;
        node = o[1].node;
    }
    return NULL;
}

/* How often the header can run before the branch at `at` leaves the loop. */
static uint64_t exit_bound(struct loop *l, uint32_t at, bool stays_if_true)
{
    const struct ptx_code *code = l->search->code;
    bool negated;
    uint32_t where;
    l->lag = 0;
    if (!returns_only_by(l->search, l->header, code->instructions[at].block)) return PTX_UNBOUNDED;
    const struct ptx_instruction *test = comparison_find(l, at, &negated, &where);
    if (!test || !test->is_plain || test->compare == PTX_NO_COMPARE || (test->last_bytes != 4 && test->last_bytes != 8))
        return PTX_UNBOUNDED;
    const struct ptx_operand *o = &code->operands[test->operand];
    int64_t end, start;
    struct carried tested, updated;
    if (!constant_of(code, &o[2], where, &end) || !carried_find(l, &o[1], where, test->last_bytes, &tested))
        return PTX_UNBOUNDED;
    const struct ptx_node *node = &code->nodes[tested.node];
    bool first_inside = is_marked(l->search, code->instructions[node->defined_at[0]].block);
    uint32_t update = node->defined_at[!first_inside], init = node->defined_at[first_inside];
    const struct ptx_instruction *begin = &code->instructions[init], *again = &code->instructions[update];
    if (is_marked(l->search, begin->block) || !runs_once_each_time(l, update)) return PTX_UNBOUNDED;
    if (begin->op != PTX_OP_mov || !begin->is_plain || begin->operand_count != 2 || begin->predicate != PTX_NONE ||
        begin->last_bytes != test->last_bytes ||
        !constant_of(code, &code->operands[begin->operand + 1], init, &start) || !always_enters_by(l, begin->block))
        return PTX_UNBOUNDED;
    int64_t step = 0;
    const struct ptx_operand *source = step_source(code, again, test->last_bytes, &step);
    if (!source || !carried_find(l, source, update, test->last_bytes, &updated) || updated.node != tested.node)
        return PTX_UNBOUNDED;
    step += updated.offset;
    uint64_t before = (uint64_t)start + (uint64_t)tested.offset, after = before + (uint64_t)step;
    enum ptx_compare stays = stays_if_true != negated ? test->compare : opposite(test->compare);
    uint64_t if_before = tests_until_false(stays, test->is_signed, test->last_bytes, before, step, end);
    uint64_t if_after = tests_until_false(stays, test->is_signed, test->last_bytes, after, step, end);
    uint64_t bound = if_before > if_after ? if_before : if_after;
    if (comes_before(l, update, tested.read_at))
        bound = if_after;
    else if (comes_before(l, tested.read_at, update))
        bound = if_before;
    return ptx_plus(bound, l->lag);
}

uint64_t ptx_loop_bound(struct search *s, const uint32_t *set, uint32_t count)
{
    struct ptx_code *code = s->code;
    struct loop loop = {.search = s, .set = set, .count = count, .header = PTX_NONE};
    if (!set_mark(s, set, count)) return PTX_UNBOUNDED;
    for (uint32_t k = 0; k < count; k++) {
        uint32_t b = set[k];
        bool entered = b == 0;
        for (uint32_t e = s->source_first[b]; e < s->source_first[b + 1]; e++) entered |= !is_marked(s, s->sources[e]);
        if (entered && loop.header != PTX_NONE) return PTX_UNBOUNDED;
        if (entered) loop.header = b;
    }
    if (loop.header == PTX_NONE) return PTX_UNBOUNDED;
    uint64_t bound = PTX_UNBOUNDED;
    for (uint32_t k = 0, tried = 0; k < count && tried < 8; k++) {
        const struct ptx_block *block = &code->blocks[set[k]];
        if (block->edge_count != 2 || !block->count) continue;
        /* The branch target comes first, falling through second. */
        bool to = is_marked(s, code->edges[block->edge]), through = is_marked(s, code->edges[block->edge + 1]);
        uint32_t last = block->first + block->count - 1;
        if (to == through || code->instructions[last].class != PTX_BRANCH ||
            code->instructions[last].predicate == PTX_NONE)
            continue;
        tried++;
        uint64_t one = exit_bound(&loop, last, to);
        if (one < bound) bound = one;
    }
    return bound;
}
