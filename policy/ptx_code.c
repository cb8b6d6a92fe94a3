/* The instructions of one function body: registers, operands, what each instruction accesses. */
#include "policy/ptx_internal.h"

#include <string.h>

#define SYMBOL_HEADS   512
#define SCOPE_LIMIT    64
#define RANGE_LIMIT    64
#define MODIFIER_LIMIT 24

/* What a declaration in a nested block hid. */
struct hidden {
    struct hidden *next;
    struct ptx_symbol *symbol;
    uint32_t node, depth;
};
struct reading {
    const struct ptx_module *module;
    struct ptx_code *code;
    struct ptx_cursor cursor;
    struct ptx_symbol *symbols[SYMBOL_HEADS];
    struct hidden *hidden;
    uint32_t depth;
    struct ptx_name ranges[RANGE_LIMIT];
    uint32_t range_count;
};

static bool fail(struct reading *r, const char *why)
{
    if (!r->code->why) {
        r->code->why = r->module->budget->steps ? why : "more work than is allowed";
        r->code->why_line = r->cursor.line;
    }
    return false;
}

static struct ptx_symbol *symbol_find(struct reading *r, struct ptx_name name)
{
    struct ptx_symbol *s = r->symbols[name.hash % SYMBOL_HEADS];
    while (s && ptx_spend(r->module->budget, 1) && !ptx_name_same(s->name, name)) s = s->chain;
    return r->module->budget->steps ? s : NULL;
}

static uint32_t node_add(struct reading *r, struct ptx_name name, enum ptx_space space)
{
    struct ptx_code *code = r->code;
    if (code->node_count == code->node_limit) return fail(r, "too many registers"), PTX_NONE;
    code->nodes[code->node_count] = (struct ptx_node){.name = name, .space = space, .formal = PTX_NONE};
    return code->node_count++;
}

/* A new meaning of a name, until the block that it is declared in ends. */
static uint32_t name_declare(struct reading *r, struct ptx_name name, enum ptx_space space)
{
    uint32_t node = node_add(r, name, space);
    struct ptx_symbol *s = symbol_find(r, name);
    bool fresh = !s;
    if (fresh && !(s = ptx_take(r->module->budget, 1, sizeof *s))) return fail(r, "out of scratch memory"), PTX_NONE;
    if (fresh) {
        *s = (struct ptx_symbol){r->symbols[name.hash % SYMBOL_HEADS], name, PTX_NONE};
        r->symbols[name.hash % SYMBOL_HEADS] = s;
    }
    if (r->depth) {
        struct hidden *h = ptx_take(r->module->budget, 1, sizeof *h);
        if (!h) return fail(r, "out of scratch memory"), PTX_NONE;
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

/* The register or variable that a name stands for; names that nobody declared are registers. */
static uint32_t name_resolve(struct reading *r, struct ptx_name name)
{
    struct ptx_symbol *s = symbol_find(r, name);
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
    if (!s && !(s = ptx_take(r->module->budget, 1, sizeof *s))) return fail(r, "out of scratch memory"), PTX_NONE;
    if (!s->name.at) {
        *s = (struct ptx_symbol){r->symbols[name.hash % SYMBOL_HEADS], name, node};
        r->symbols[name.hash % SYMBOL_HEADS] = s;
    }
    return s->node = node;
}

static bool read_declaration(struct reading *r)
{
    struct ptx_declaration d;
    if (!ptx_declaration_words(&r->cursor, &d)) return fail(r, "a declaration that is not understood");
    do {
        if (!ptx_declaration_name(&r->cursor, &d)) return fail(r, "a declaration that is not understood");
        if (d.ranged) {
            if (d.space != PTX_REGISTER || r->range_count == RANGE_LIMIT)
                return fail(r, "a declaration that is not understood");
            r->ranges[r->range_count++] = d.formal.name;
        } else if (name_declare(r, d.formal.name, d.space) == PTX_NONE) {
            return false;
        }
        if (ptx_accept(&r->cursor, '=') && (!ptx_accept(&r->cursor, '{') || !ptx_skip_block(&r->cursor, '{', '}')))
            return fail(r, "a declaration that is not understood");
    } while (ptx_accept(&r->cursor, ','));
    return ptx_accept(&r->cursor, ';') || fail(r, "a declaration that is not understood");
}

static bool operand_add(struct reading *r, struct ptx_operand operand)
{
    struct ptx_code *code = r->code;
    if (code->operand_count == code->operand_limit) return fail(r, "too many operands");
    code->operands[code->operand_count++] = operand;
    return true;
}

/* A number with its sign; false if there is none. */
static bool read_number(struct ptx_cursor *c, int64_t *value, bool *real)
{
    bool minus = false;
    for (;;) {
        if (ptx_accept(c, '-'))
            minus = !minus;
        else if (!ptx_accept(c, '+'))
            break;
    }
    struct ptx_token token = ptx_next(c);
    *value = minus ? (int64_t)(0 - (uint64_t)token.value) : token.value;
    if (real) *real = token.real;
    return token.kind == PTX_NUMBER && (real || !token.real);
}

static bool read_operand(struct reading *r, uint8_t position, int depth);

static bool read_list(struct reading *r, uint8_t position, char close, int depth)
{
    if (ptx_accept(&r->cursor, close)) return true;
    do
        if (!read_operand(r, position, depth + 1)) return false;
    while (ptx_accept(&r->cursor, ','));
    return ptx_accept(&r->cursor, close) || fail(r, "an operand that is not understood");
}

/* [base+offset], [number], [base, {coordinates}...] */
static bool read_memory(struct reading *r, uint8_t position, int depth)
{
    struct ptx_operand operand = {.kind = PTX_FIXED_MEMORY, .position = position, .node = PTX_NONE};
    struct ptx_token token = ptx_peek(&r->cursor);
    if (token.kind == PTX_WORD) {
        ptx_next(&r->cursor);
        operand.kind = PTX_MEMORY;
        if ((operand.node = name_resolve(r, token.name)) == PTX_NONE) return false;
    }
    token = ptx_peek(&r->cursor);
    bool signed_ = token.kind == PTX_SIGN && (token.value == '+' || token.value == '-');
    if ((signed_ || operand.kind == PTX_FIXED_MEMORY) && !read_number(&r->cursor, &operand.number, NULL))
        return fail(r, "an address that is not understood");
    if (!operand_add(r, operand)) return false;
    if (ptx_accept(&r->cursor, ',')) return read_list(r, position, ']', depth);
    return ptx_accept(&r->cursor, ']') || fail(r, "an address that is not understood");
}

static bool read_operand(struct reading *r, uint8_t position, int depth)
{
    if (depth > 4) return fail(r, "an operand that is not understood");
    if (ptx_accept(&r->cursor, '[')) return read_memory(r, position, depth);
    if (ptx_accept(&r->cursor, '{')) return read_list(r, position, '}', depth);
    if (ptx_accept(&r->cursor, '(')) return read_list(r, position, ')', depth);
    ptx_accept(&r->cursor, '!');
    struct ptx_token token = ptx_peek(&r->cursor);
    struct ptx_operand operand = {.kind = PTX_VALUE, .position = position, .node = PTX_NONE};
    if (token.kind != PTX_WORD) {
        bool real = false;
        if (!read_number(&r->cursor, &operand.number, &real)) return fail(r, "an operand that is not understood");
        operand.kind = real ? PTX_REAL : PTX_IMMEDIATE;
        return operand_add(r, operand);
    }
    ptx_next(&r->cursor);
    if (ptx_name_is(token.name, "_")) {
        operand.kind = PTX_REAL;
        if (!operand_add(r, operand)) return false;
    } else {
        struct ptx_token component = ptx_peek(&r->cursor);
        if (component.kind == PTX_DOT && component.adjacent) ptx_next(&r->cursor);
        if ((operand.node = name_resolve(r, token.name)) == PTX_NONE) return false;
        /* A variable with an offset is an address; where in the variable does not matter. */
        if (ptx_accept(&r->cursor, '+') && !read_number(&r->cursor, &operand.number, NULL))
            return fail(r, "an operand that is not understood");
        if (!operand_add(r, operand)) return false;
    }
    return !ptx_accept(&r->cursor, '|') || read_operand(r, position, depth + 1);
}

static const struct {
    const char *root;
    uint8_t bytes;
    enum ptx_class class;
} operations[] = {
#define PTX_NUMBER      PTX_NUMBER_
#define OP(root, class) {#root, sizeof #root - 1, PTX_##class},
#include "policy/ptx_ops.def"
#undef OP
#undef PTX_NUMBER
};

static bool compare_of(struct ptx_name word, struct ptx_instruction *i)
{
    static const struct {
        char word[3];
        enum ptx_compare compare;
    } compares[] = {{"eq", PTX_EQ}, {"ne", PTX_NE}, {"lt", PTX_LT}, {"le", PTX_LE}, {"gt", PTX_GT},
                    {"ge", PTX_GE}, {"lo", PTX_LT}, {"ls", PTX_LE}, {"hi", PTX_GT}, {"hs", PTX_GE}};
    for (size_t k = 0; k < sizeof compares / sizeof *compares; k++)
        if (ptx_name_is(word, compares[k].word)) return i->compare = compares[k].compare, true;
    return false;
}

/* `shared`, `shared::cta`, `param::entry`...: the part before the colons is the space. */
static void space_take(struct ptx_name word, struct ptx_instruction *i)
{
    static const struct {
        const char *word;
        enum ptx_space space;
    } spaces[] = {{"global", PTX_GLOBAL},
                  {"shared", PTX_SHARED},
                  {"local", PTX_LOCAL},
                  {"param", PTX_PARAM},
                  {"const", PTX_CONST}};
    for (size_t k = 0; k < sizeof spaces / sizeof *spaces; k++) {
        size_t bytes = strlen(spaces[k].word);
        if (word.bytes < bytes || memcmp(word.at, spaces[k].word, bytes) ||
            (word.bytes > bytes && word.at[bytes] != ':'))
            continue;
        if (i->space == PTX_GENERIC)
            i->space = spaces[k].space;
        else
            i->second_space = spaces[k].space;
    }
}

static void modifier_take(struct ptx_name word, struct ptx_instruction *i)
{
    uint32_t bytes = ptx_type_bytes(word);
    if (bytes) {
        if (!i->first_bytes) i->first_bytes = bytes;
        i->last_bytes = bytes;
        i->is_signed = word.at[0] == 's';
        i->is_float |=
            word.at[0] == 'f' || word.at[0] == 't' || word.at[0] == 'e' || (word.at[0] == 'b' && word.at[1] == 'f');
        i->is_plain &= word.bytes == 3 && (bytes == 4 || bytes == 8) && !i->is_float;
        return;
    }
    space_take(word, i);
    if (i->op == PTX_OP_setp) compare_of(word, i);
    if (ptx_name_is(word, "v2")) i->elements = 2;
    if (ptx_name_is(word, "v4")) i->elements = 4;
    if (ptx_name_is(word, "v8")) i->elements = 8;
    if (ptx_name_is(word, "sat")) i->is_plain = false;
    if (ptx_name_is(word, "to")) i->to = true;
    if (ptx_name_is(word, "wide")) i->is_wide = true;
    if (ptx_name_is(word, "volatile") || ptx_name_is(word, "relaxed") || ptx_name_is(word, "acquire") ||
        ptx_name_is(word, "mmio") || ptx_name_is(word, "cv"))
        i->is_ordered = true;
    if (ptx_name_is(word, "async")) i->is_async = true;
    if (ptx_name_is(word, "bulk")) i->is_bulk = true;
    if (ptx_name_is(word, "tensor")) i->is_tensor = true;
    if (ptx_name_is(word, "reduce")) i->is_reduction = true;
    if (ptx_name_is(word, "prefetch")) i->is_prefetch = true;
    if (ptx_name_is(word, "load")) i->is_load = true;
    if (ptx_name_is(word, "store")) i->is_store = true;
}

/* Forms of known instructions that are not followed. */
static const char *form_refused(const struct ptx_instruction *i)
{
    if ((i->class == PTX_STORE || i->class == PTX_ATOMIC) && (i->is_async || i->is_bulk))
        return "an asynchronous store";
    if ((i->class == PTX_LOAD || i->class == PTX_STORE || i->class == PTX_ATOMIC) && !i->last_bytes)
        return "an access of unknown size";
    if (i->class == PTX_COPY && !i->is_async) return "a copy that is not understood";
    return NULL;
}

static bool read_call(struct reading *r, struct ptx_instruction *i)
{
    static const char not_understood[] = "a call that is not understood";
    if (ptx_accept(&r->cursor, '(') && (!read_list(r, 0, ')', 0) || !ptx_accept(&r->cursor, ',')))
        return fail(r, not_understood);
    struct ptx_token name = ptx_next(&r->cursor);
    if (name.kind != PTX_WORD) return fail(r, not_understood);
    if (ptx_accept(&r->cursor, ',')) {
        if (!ptx_accept(&r->cursor, '(')) return fail(r, not_understood);
        if (!read_list(r, 1, ')', 0)) return false;
        if (ptx_accept(&r->cursor, ',')) return fail(r, "an indirect call");
    }
    i->target = name.name;
    i->callee = ptx_module_function(r->module, name.name);
    if (!i->callee || symbol_find(r, name.name)) return fail(r, "an indirect call");
    return ptx_accept(&r->cursor, ';') || fail(r, not_understood);
}

static bool read_branch(struct reading *r, struct ptx_instruction *i)
{
    struct ptx_token target = ptx_next(&r->cursor);
    if (target.kind != PTX_WORD) return fail(r, "a branch that is not understood");
    i->target = target.name;
    if (i->op == PTX_OP_brx) {
        struct ptx_token table;
        r->code->tangled = true;
        if (!ptx_accept(&r->cursor, ',')) return fail(r, "a branch that is not understood");
        table = ptx_next(&r->cursor);
        if (table.kind != PTX_WORD) return fail(r, "a branch that is not understood");
    }
    return ptx_accept(&r->cursor, ';') || fail(r, "a branch that is not understood");
}

/* One instruction; its first word is read, its modifiers are not. */
static bool read_instruction(struct reading *r, struct ptx_name root, uint32_t predicate, bool negated)
{
    struct ptx_code *code = r->code;
    struct ptx_instruction i = {.op = PTX_OP_COUNT,
                                .predicate = predicate,
                                .negated = negated,
                                .elements = 1,
                                .is_plain = true,
                                .line = r->cursor.line,
                                .operand = code->operand_count};
    for (int op = 0; op < PTX_OP_COUNT; op++)
        if (root.bytes == operations[op].bytes && memcmp(root.at, operations[op].root, root.bytes) == 0) i.op = op;
    if (i.op == PTX_OP_COUNT) return fail(r, "an instruction that is not understood");
    i.class = operations[i.op].class;
    struct ptx_token token = ptx_peek(&r->cursor);
    for (int count = 0; token.kind == PTX_DOT && token.adjacent; count++, token = ptx_peek(&r->cursor)) {
        if (count == MODIFIER_LIMIT) return fail(r, "an instruction that is not understood");
        ptx_next(&r->cursor);
        modifier_take(token.name, &i);
    }
    const char *refused = form_refused(&i);
    if (refused) return fail(r, refused);
    if (code->instruction_count == code->instruction_limit) return fail(r, "too many instructions");
    if (i.class == PTX_CALL || i.class == PTX_BRANCH) {
        if (i.class == PTX_CALL ? !read_call(r, &i) : !read_branch(r, &i)) return false;
    } else if (!ptx_accept(&r->cursor, ';')) {
        uint8_t position = 0;
        do {
            if (position == 16) return fail(r, "too many operands");
            if (!read_operand(r, position++, 0)) return false;
        } while (ptx_accept(&r->cursor, ','));
        if (!ptx_accept(&r->cursor, ';')) return fail(r, "an operand that is not understood");
    }
    i.operand_count = code->operand_count - i.operand;
    code->instructions[code->instruction_count++] = i;
    return true;
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
                return fail(r, "a list of targets that is not understood");
            if (token.kind == PTX_SIGN && token.value == ';') return true;
        }
    }
    if (code->label_count == code->label_limit) return fail(r, "too many labels");
    code->labels[code->label_count++] = (struct ptx_label){.name = name, .instruction = code->instruction_count};
    return true;
}

static bool read_directive(struct reading *r)
{
    struct ptx_cursor ahead = r->cursor;
    struct ptx_name word = ptx_next(&ahead).name;
    if (ptx_name_is(word, "loc") || ptx_name_is(word, "file")) {
        r->cursor = ahead;
        return ptx_skip_line_directive(&r->cursor, word) || fail(r, "a directive that is not understood");
    }
    if (ptx_name_is(word, "pragma")) {
        r->cursor = ahead;
        return (ptx_next(&r->cursor).kind == PTX_STRING && ptx_accept(&r->cursor, ';')) ||
               fail(r, "a directive that is not understood");
    }
    return read_declaration(r);
}

static bool read_statement(struct reading *r)
{
    struct ptx_token token = ptx_peek(&r->cursor);
    if (token.kind == PTX_DOT) return read_directive(r);
    ptx_next(&r->cursor);
    if (token.kind == PTX_SIGN && token.value == '{')
        return ++r->depth <= SCOPE_LIMIT || fail(r, "blocks nested too deep");
    if (token.kind == PTX_SIGN && token.value == '}') {
        if (r->depth == 0) return fail(r, "a block that does not close");
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
        if (token.kind != PTX_WORD || (predicate = name_resolve(r, token.name)) == PTX_NONE)
            return fail(r, "a predicate that is not understood");
        token = ptx_next(&r->cursor);
    }
    if (token.kind != PTX_WORD) return fail(r, "a statement that is not understood");
    if (predicate == PTX_NONE && ptx_accept(&r->cursor, ':')) return read_label(r, token.name);
    return read_instruction(r, token.name, predicate, negated);
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
        fail(r, "out of scratch memory");
        return code;
    }
    if (!formals_declare(r, function->formals, function->formal_count, 0) ||
        !formals_declare(r, function->results, function->result_count, function->formal_count))
        return code;
    while (ptx_peek(&r->cursor).kind != PTX_END)
        if (!read_statement(r)) return code;
    if (r->depth) fail(r, "a block that does not close");
    if (code->why) return code;
    definitions_count(code);
    addresses_mark(code);
    return code;
}
