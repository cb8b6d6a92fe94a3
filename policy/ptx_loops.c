/* Blocks and loops of a function, and how often each block can run in one call. */
#include "policy/ptx_loops.h"

static bool ends_block(const struct ptx_instruction *i) { return i->class == PTX_BRANCH || i->class == PTX_LEAVE; }

/* Every block gets its instructions; labels get their blocks. */
static bool blocks_make(struct ptx_budget *budget, struct ptx_code *code)
{
    uint32_t limit = 1 + code->label_count;
    for (uint32_t i = 0; i < code->instruction_count; i++) limit += ends_block(&code->instructions[i]);
    if (!(code->blocks = ptx_take(budget, limit, sizeof *code->blocks))) return false;
    uint32_t label = 0;
    bool fresh = true;
    for (uint32_t i = 0; i <= code->instruction_count; i++) {
        bool at_label = label < code->label_count && code->labels[label].instruction == i;
        if (fresh || at_label) code->blocks[code->block_count++] = (struct ptx_block){.first = i};
        fresh = false;
        for (; label < code->label_count && code->labels[label].instruction == i; label++)
            code->labels[label].block = code->block_count - 1;
        if (i == code->instruction_count) break;
        struct ptx_block *block = &code->blocks[code->block_count - 1];
        block->count++;
        code->instructions[i].block = code->block_count - 1;
        fresh = ends_block(&code->instructions[i]) &&
                !(label < code->label_count && code->labels[label].instruction == i + 1) &&
                i + 1 < code->instruction_count;
    }
    return true;
}

/* Names that label several places (in blocks of their own) lead to all of them. */
static bool edges_make(struct ptx_budget *budget, struct ptx_code *code)
{
    struct ptx_label *heads[256] = {0};
    for (uint32_t i = 0; i < code->label_count; i++) {
        struct ptx_label *l = &code->labels[i];
        l->chain = heads[l->name.hash % 256];
        heads[l->name.hash % 256] = l;
    }
    uint32_t limit = 4 * code->block_count + 16;
    if (!(code->edges = ptx_take(budget, limit, sizeof *code->edges))) return false;
    for (uint32_t b = 0; b < code->block_count; b++) {
        struct ptx_block *block = &code->blocks[b];
        const struct ptx_instruction *last = block->count ? &code->instructions[block->first + block->count - 1] : NULL;
        bool branches = last && last->class == PTX_BRANCH, leaves = last && ends_block(last);
        block->edge = code->edge_count;
        uint32_t targets = 0;
        for (struct ptx_label *l = branches ? heads[last->target.hash % 256] : NULL; l; l = l->chain) {
            if (!ptx_spend(budget, 1)) return false;
            if (!ptx_name_same(l->name, last->target)) continue;
            if (code->edge_count + 2 > limit) return code->tangled = true;
            code->edges[code->edge_count++] = l->block;
            targets++;
        }
        if (branches && !targets) code->tangled = true;
        if ((!leaves || last->predicate != PTX_NONE) && b + 1 < code->block_count)
            code->edges[code->edge_count++] = b + 1;
        block->edge_count = code->edge_count - block->edge;
    }
    return true;
}

static bool sources_make(struct search *s)
{
    struct ptx_code *code = s->code;
    uint32_t *next = ptx_take(s->budget, code->block_count + 1, sizeof *next);
    s->sources = ptx_take(s->budget, code->edge_count + 1, sizeof *s->sources);
    s->source_first = ptx_take(s->budget, code->block_count + 2, sizeof *s->source_first);
    if (!next || !s->sources || !s->source_first) return false;
    for (uint32_t e = 0; e < code->edge_count; e++) s->source_first[code->edges[e] + 1]++;
    for (uint32_t b = 0; b < code->block_count; b++) s->source_first[b + 1] += s->source_first[b];
    for (uint32_t b = 0; b < code->block_count; b++)
        for (uint32_t e = 0; e < code->blocks[b].edge_count; e++) {
            uint32_t to = code->edges[code->blocks[b].edge + e];
            s->sources[s->source_first[to] + next[to]++] = b;
        }
    return true;
}

static bool region_add(struct search *s, const uint32_t *set, uint32_t count, struct region region)
{
    if (s->region_count == s->region_limit) return false;
    uint32_t index = s->region_count++;
    for (uint32_t k = 0; k < count; k++) s->code->blocks[set[k]].region = index;
    s->regions[index] = region;
    return true;
}

/* The strongly connected parts of one region become regions of their own. `order` of the region holds its blocks; parts
 * are written back to it one after another. Iterative, since a function may have any number of blocks. */
static bool region_split(struct search *s, uint32_t index)
{
    struct region region = s->regions[index];
    struct ptx_code *code = s->code;
    uint32_t number = 0, stacked = 0, written = 0;
    if (!ptx_loop_spend(s, 8 * (uint64_t)region.count)) return false;
    for (uint32_t k = 0; k < region.count; k++) {
        struct ptx_block *b = &code->blocks[s->order[region.first + k]];
        b->number = 0;
        b->on_stack = false;
        s->found[k] = s->order[region.first + k];
    }
    for (uint32_t k = 0; k < region.count; k++) {
        uint32_t depth = 0;
        if (code->blocks[s->found[k]].number) continue;
        s->walk[depth] = s->found[k];
        s->walk_edge[depth++] = 0;
        while (depth) {
            uint32_t at = s->walk[depth - 1];
            struct ptx_block *b = &code->blocks[at];
            if (s->walk_edge[depth - 1] == 0) {
                b->number = b->low = ++number;
                b->on_stack = true;
                s->stack[stacked++] = at;
            }
            bool descended = false;
            while (s->walk_edge[depth - 1] < b->edge_count && !descended) {
                if (!ptx_loop_spend(s, 1)) return false;
                uint32_t to = code->edges[b->edge + s->walk_edge[depth - 1]++];
                struct ptx_block *t = &code->blocks[to];
                if (t->region != index || to == region.header) continue;
                if (!t->number) {
                    s->walk[depth] = to;
                    s->walk_edge[depth++] = 0;
                    descended = true;
                } else if (t->on_stack && t->number < b->low) {
                    b->low = t->number;
                }
            }
            if (descended) continue;
            if (b->low == b->number) {
                uint32_t first = written, top;
                do {
                    top = s->stack[--stacked];
                    code->blocks[top].on_stack = false;
                    s->order[region.first + written++] = top;
                } while (top != at);
                bool self = false;
                for (uint32_t e = 0; e < b->edge_count; e++)
                    self |= code->edges[b->edge + e] == at && at != region.header;
                /* Weighed when the search of this region is over. */
                if (written - first > 1 || self) {
                    struct region part = {
                        .first = region.first + first, .count = written - first, .header = PTX_NONE, .loops = true};
                    if (s->region_count == s->region_limit) return false;
                    s->regions[s->region_count++] = part;
                }
            }
            depth--;
            if (depth && code->blocks[s->walk[depth - 1]].low > b->low) code->blocks[s->walk[depth - 1]].low = b->low;
        }
    }
    return true;
}

/* Gives the parts of region `index` that region_split added their blocks, headers and bounds. */
static void parts_weigh(struct search *s, uint32_t index, uint32_t first_part)
{
    struct ptx_code *code = s->code;
    for (uint32_t p = first_part; p < s->region_count; p++) {
        struct region *part = &s->regions[p];
        const uint32_t *set = &s->order[part->first];
        uint64_t bound = s->regions[index].runs == PTX_UNBOUNDED ? PTX_UNBOUNDED : ptx_loop_bound(s, set, part->count);
        part->runs = ptx_multiply(s->regions[index].runs, bound);
        if (bound != PTX_UNBOUNDED)
            for (uint32_t k = 0; k < part->count; k++)
                for (uint32_t e = s->source_first[set[k]]; e < s->source_first[set[k] + 1]; e++)
                    if (code->blocks[s->sources[e]].mark != s->mark) part->header = set[k];
        for (uint32_t k = 0; k < part->count; k++) {
            if (set[k] == 0) part->header = 0;
            code->blocks[set[k]].region = p;
        }
    }
}

static bool search_start(struct search *s)
{
    uint32_t count = s->code->block_count;
    s->region_limit = count + 1;
    s->regions = ptx_take(s->budget, s->region_limit, sizeof *s->regions);
    s->order = ptx_take(s->budget, count, sizeof *s->order);
    s->stack = ptx_take(s->budget, count, sizeof *s->stack);
    s->found = ptx_take(s->budget, count, sizeof *s->found);
    s->walk = ptx_take(s->budget, count + 1, sizeof *s->walk);
    s->walk_edge = ptx_take(s->budget, count + 1, sizeof *s->walk_edge);
    if (!s->regions || !s->order || !s->stack || !s->found || !s->walk || !s->walk_edge || !sources_make(s))
        return false;
    for (uint32_t b = 0; b < count; b++) s->order[b] = b;
    return region_add(s, s->order, count, (struct region){.count = count, .header = PTX_NONE, .runs = 1});
}

bool ptx_loops_find(struct ptx_budget *budget, struct ptx_code *code)
{
    struct search s = {.budget = budget, .code = code};
    if (!blocks_make(budget, code) || !edges_make(budget, code)) return false;
    code->block_runs = ptx_take(budget, code->block_count, sizeof *code->block_runs);
    code->block_loops = ptx_take(budget, code->block_count, sizeof *code->block_loops);
    if (!code->block_runs || !code->block_loops) return false;
    if (!code->tangled) {
        if (!search_start(&s)) return false;
        for (uint32_t r = 0; r < s.region_count; r++) {
            uint32_t first_part = s.region_count;
            /* Inside a loop without a bound nothing has one; its blocks need no further look. */
            if (s.regions[r].runs == PTX_UNBOUNDED) continue;
            if (!region_split(&s, r)) return false;
            parts_weigh(&s, r, first_part);
        }
    }
    for (uint32_t b = 0; b < code->block_count; b++) {
        code->block_runs[b] = code->tangled ? PTX_UNBOUNDED : s.regions[code->blocks[b].region].runs;
        code->block_loops[b] = code->tangled || s.regions[code->blocks[b].region].loops;
    }
    return budget->steps > 0;
}
