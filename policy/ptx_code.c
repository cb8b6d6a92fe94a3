/* The instructions of one function body: registers, operands, what each instruction accesses. */
#include "policy/ptx_reading.h"

#define SCOPE_LIMIT 64

bool reading_fail(struct reading *r, const char *why)
{
    if (!r->code->why) {
        r->code->why = r->module->budget->steps ? why : "more work than is allowed";
        r->code->why_line = r->cursor.line;
    }
    return false;
}

struct ptx_symbol *reading_symbol(struct reading *r, struct ptx_name name)
{
    struct ptx_symbol *s = r->symbols[name.hash % SYMBOL_HEADS];
    while (s && ptx_spend(r->module->budget, 1) && !ptx_name_same(s->name, name)) s = s->chain;
    return r->module->budget->steps ? s : NULL;
}

static uint32_t node_add(struct reading *r, struct ptx_name name, enum ptx_space space)
{
    struct ptx_code *code = r->code;
    if (code->node_count == code->node_limit) return reading_fail(r, "too many registers"), PTX_NONE;
    code->nodes[code->node_count] = (struct ptx_node){.name = name, .space = space, .formal = PTX_NONE};
    return code->node_count++;
}

/* A new meaning of a name, until the block that it is declared in ends. */
static uint32_t name_declare(struct reading *r, struct ptx_name name, enum ptx_space space)
{
    uint32_t node = node_add(r, name, space);
    struct ptx_symbol *s = reading_symbol(r, name);
    bool fresh = !s;
    if (fresh && !(s = ptx_take(r->module->budget, 1, sizeof *s)))
        return reading_fail(r, "out of scratch memory"), PTX_NONE;
    if (fresh) {
        *s = (struct ptx_symbol){r->symbols[name.hash % SYMBOL_HEADS], name, PTX_NONE};
        r->symbols[name.hash % SYMBOL_HEADS] = s;
    }
    if (r->depth) {
        struct hidden *h = ptx_take(r->module->budget, 1, sizeof *h);
        if (!h) return reading_fail(r, "out of scratch memory"), PTX_NONE;
        *h = (struct hidden){r->hidden, s, s->node, r->depth};
        r->hidden = h;
    }
    return s->node = node;
}

static bool in_range(const struct reading *r, struct ptx_name name)
{
    for (uint32_t i = 0; i < r->range_count; i++)
        if (name.bytes > r->ranges[i].bytes && memcmp(name.at, r->ranges[i].at, r->ranges[i].bytes) == 0) return true;
    return false;
}

uint32_t reading_name(struct reading *r, struct ptx_name name)
{
    struct ptx_symbol *s = reading_symbol(r, name);
    if (s && s->node != PTX_NONE) return s->node;
    enum ptx_space space = PTX_REGISTER;
    bool is_function = false;
    if (!in_range(r, name)) {
        const struct ptx_variable *v = ptx_module_variable(r->module, name);
        is_function = !v && ptx_module_function(r->module, name);
        if (v) space = v->space;
    }
    uint32_t node = node_add(r, name, space);
    if (node == PTX_NONE) return node;
    r->code->nodes[node].is_function = is_function;
    if (!s && !(s = ptx_take(r->module->budget, 1, sizeof *s)))
        return reading_fail(r, "out of scratch memory"), PTX_NONE;
    if (!s->name.at) {
        *s = (struct ptx_symbol){r->symbols[name.hash % SYMBOL_HEADS], name, node};
        r->symbols[name.hash % SYMBOL_HEADS] = s;
    }
    return s->node = node;
}

static bool read_declaration(struct reading *r)
{
    struct ptx_declaration d;
    if (!ptx_declaration_words(&r->cursor, &d)) return reading_fail(r, "a declaration that is not understood");
    do {
        if (!ptx_declaration_name(&r->cursor, &d)) return reading_fail(r, "a declaration that is not understood");
        if (d.ranged) {
            if (d.space != PTX_REGISTER || r->range_count == RANGE_LIMIT)
                return reading_fail(r, "a declaration that is not understood");
            r->ranges[r->range_count++] = d.formal.name;
        } else if (name_declare(r, d.formal.name, d.space) == PTX_NONE) {
            return false;
        }
        if (ptx_accept(&r->cursor, '=') && (!ptx_accept(&r->cursor, '{') || !ptx_skip_block(&r->cursor, '{', '}')))
            return reading_fail(r, "a declaration that is not understood");
    } while (ptx_accept(&r->cursor, ','));
    return ptx_accept(&r->cursor, ';') || reading_fail(r, "a declaration that is not understood");
}

static bool read_label(struct reading *r, struct ptx_name name)
{
    struct ptx_code *code = r->code;
    struct ptx_token token = ptx_peek(&r->cursor);
    bool lists = ptx_name_is(token.name, "branchtargets") || ptx_name_is(token.name, "calltargets") ||
                 ptx_name_is(token.name, "callprototype");
    if (token.kind == PTX_DOT && lists) { /* only indirect jumps and calls use them */
        for (;;) {
            token = ptx_next(&r->cursor);
            if (token.kind == PTX_END || token.kind == PTX_BAD)
                return reading_fail(r, "a list of targets that is not understood");
            if (token.kind == PTX_SIGN && token.value == ';') return true;
        }
    }
    if (code->label_count == code->label_limit) return reading_fail(r, "too many labels");
    code->labels[code->label_count++] = (struct ptx_label){.name = name, .instruction = code->instruction_count};
    return true;
}

static bool read_directive(struct reading *r)
{
    struct ptx_cursor ahead = r->cursor;
    struct ptx_name word = ptx_next(&ahead).name;
    if (ptx_name_is(word, "loc") || ptx_name_is(word, "file")) {
        r->cursor = ahead;
        return ptx_skip_line_directive(&r->cursor, word) || reading_fail(r, "a directive that is not understood");
    }
    if (ptx_name_is(word, "pragma")) {
        r->cursor = ahead;
        return (ptx_next(&r->cursor).kind == PTX_STRING && ptx_accept(&r->cursor, ';')) ||
               reading_fail(r, "a directive that is not understood");
    }
    return read_declaration(r);
}

static bool read_statement(struct reading *r)
{
    struct ptx_token token = ptx_peek(&r->cursor);
    if (token.kind == PTX_DOT) return read_directive(r);
    ptx_next(&r->cursor);
    if (token.kind == PTX_SIGN && token.value == '{')
        return ++r->depth <= SCOPE_LIMIT || reading_fail(r, "blocks nested too deep");
    if (token.kind == PTX_SIGN && token.value == '}') {
        if (r->depth == 0) return reading_fail(r, "a block that does not close");
        for (; r->hidden && r->hidden->depth == r->depth; r->hidden = r->hidden->next)
            r->hidden->symbol->node = r->hidden->node;
        r->depth--;
        return true;
    }
    if (token.kind == PTX_SIGN && token.value == ';') return true;
    uint32_t predicate = PTX_NONE;
    bool negated = false;
    if (token.kind == PTX_SIGN && token.value == '@') {
        negated = ptx_accept(&r->cursor, '!');
        token = ptx_next(&r->cursor);
        if (token.kind != PTX_WORD || (predicate = reading_name(r, token.name)) == PTX_NONE)
            return reading_fail(r, "a predicate that is not understood");
        token = ptx_next(&r->cursor);
    }
    if (token.kind != PTX_WORD) return reading_fail(r, "a statement that is not understood");
    if (predicate == PTX_NONE && ptx_accept(&r->cursor, ':')) return read_label(r, token.name);
    return reading_instruction(r, token.name, predicate, negated);
}

/* Upper bounds from the signs of the body, so that each table is taken once. */
static bool tables_take(struct ptx_budget *budget, struct ptx_code *code)
{
    struct ptx_function *f = code->function;
    uint32_t statements = 2, parts = 2, colons = 1;
    if (f->body_end - f->body > INT32_MAX / 4 || !ptx_spend(budget, f->body_end - f->body)) return false;
    for (const char *at = f->body; at < f->body_end; at++) {
        statements += *at == ';';
        parts += *at == ',' || *at == '|' || *at == '[' || *at == '{' || *at == '(' || *at == '@';
        colons += *at == ':';
    }
    code->instruction_limit = statements;
    code->operand_limit = statements + parts;
    code->node_limit = statements + 2 * parts + f->formal_count + f->result_count;
    code->label_limit = colons;
    code->instructions = ptx_take(budget, code->instruction_limit, sizeof *code->instructions);
    code->operands = ptx_take(budget, code->operand_limit, sizeof *code->operands);
    code->nodes = ptx_take(budget, code->node_limit, sizeof *code->nodes);
    code->labels = ptx_take(budget, code->label_limit, sizeof *code->labels);
    return code->instructions && code->operands && code->nodes && code->labels;
}

static bool formals_declare(struct reading *r, const struct ptx_formal *formals, uint32_t count, uint32_t base)
{
    for (uint32_t i = 0; i < count; i++) {
        uint32_t node = name_declare(r, formals[i].name, formals[i].is_register ? PTX_REGISTER : PTX_PARAM);
        if (node == PTX_NONE) return false;
        r->code->nodes[node].formal = base + i;
    }
    return true;
}

/* Which operands an instruction defines: its first position, except where that is an address or a source. */
static bool defines(const struct ptx_instruction *i)
{
    switch (i->class) {
    case PTX_STORE:
    case PTX_DISCARD:
    case PTX_ONCHIP_STORE:
    case PTX_SURFACE:
    case PTX_COPY:
    case PTX_BRANCH:
    case PTX_LEAVE:
    case PTX_NOTHING:
        return false;
    default:
        return true;
    }
}

static void definitions_count(struct ptx_code *code)
{
    for (uint32_t at = 0; at < code->instruction_count; at++) {
        const struct ptx_instruction *i = &code->instructions[at];
        for (uint32_t k = i->operand; defines(i) && k < i->operand + i->operand_count; k++) {
            const struct ptx_operand *o = &code->operands[k];
            if (o->kind != PTX_VALUE || o->position != 0) continue;
            struct ptx_node *node = &code->nodes[o->node];
            if (node->definitions < 2) node->defined_at[node->definitions] = at;
            if (node->definitions < 3) node->definitions++;
        }
    }
}

/* Variables whose address is a value somewhere, or that are accessed by other than parameter loads and stores. */
static void addresses_mark(struct ptx_code *code)
{
    for (uint32_t at = 0; at < code->instruction_count; at++) {
        const struct ptx_instruction *i = &code->instructions[at];
        bool direct =
            i->class == PTX_CALL || ((i->class == PTX_LOAD || i->class == PTX_STORE) && i->space == PTX_PARAM);
        for (uint32_t k = i->operand; k < i->operand + i->operand_count; k++) {
            const struct ptx_operand *o = &code->operands[k];
            if ((o->kind != PTX_VALUE && o->kind != PTX_MEMORY) || code->nodes[o->node].space != PTX_PARAM) continue;
            if (!direct || (i->class != PTX_CALL && o->kind == PTX_VALUE)) code->nodes[o->node].address_taken = true;
        }
    }
}

struct ptx_code *ptx_code_read(const struct ptx_module *module, struct ptx_function *function)
{
    struct ptx_code *code = ptx_take(module->budget, 1, sizeof *code);
    struct reading *r = ptx_take(module->budget, 1, sizeof *r);
    if (!code || !r) return NULL;
    code->function = function;
    *r = (struct reading){
        .module = module, .code = code, .cursor = {function->body, function->body_end, function->line, module->budget}};
    if (!tables_take(module->budget, code)) {
        reading_fail(r, "out of scratch memory");
        return code;
    }
    if (!formals_declare(r, function->formals, function->formal_count, 0) ||
        !formals_declare(r, function->results, function->result_count, function->formal_count))
        return code;
    while (ptx_peek(&r->cursor).kind != PTX_END)
        if (!read_statement(r)) return code;
    if (r->depth) reading_fail(r, "a block that does not close");
    if (code->why) return code;
    definitions_count(code);
    addresses_mark(code);
    return code;
}
