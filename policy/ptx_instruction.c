/* One instruction: its modifiers, its operands, where it branches or what it calls. */
#include "policy/ptx_reading.h"

#define MODIFIER_LIMIT 24

static bool operand_add(struct reading *r, struct ptx_operand operand)
{
    struct ptx_code *code = r->code;
    if (code->operand_count == code->operand_limit) return reading_fail(r, "too many operands");
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
    return ptx_accept(&r->cursor, close) || reading_fail(r, "an operand that is not understood");
}

/* [base+offset], [number], [base, {coordinates}...] */
static bool read_memory(struct reading *r, uint8_t position, int depth)
{
    struct ptx_operand operand = {.kind = PTX_FIXED_MEMORY, .position = position, .node = PTX_NONE};
    struct ptx_token token = ptx_peek(&r->cursor);
    if (token.kind == PTX_WORD) {
        ptx_next(&r->cursor);
        operand.kind = PTX_MEMORY;
        if ((operand.node = reading_name(r, token.name)) == PTX_NONE) return false;
    }
    token = ptx_peek(&r->cursor);
    bool signed_ = token.kind == PTX_SIGN && (token.value == '+' || token.value == '-');
    if ((signed_ || operand.kind == PTX_FIXED_MEMORY) && !read_number(&r->cursor, &operand.number, NULL))
        return reading_fail(r, "an address that is not understood");
    if (!operand_add(r, operand)) return false;
    if (ptx_accept(&r->cursor, ',')) return read_list(r, position, ']', depth);
    return ptx_accept(&r->cursor, ']') || reading_fail(r, "an address that is not understood");
}

static bool read_operand(struct reading *r, uint8_t position, int depth)
{
    if (depth > 4) return reading_fail(r, "an operand that is not understood");
    if (ptx_accept(&r->cursor, '[')) return read_memory(r, position, depth);
    if (ptx_accept(&r->cursor, '{')) return read_list(r, position, '}', depth);
    if (ptx_accept(&r->cursor, '(')) return read_list(r, position, ')', depth);
    ptx_accept(&r->cursor, '!');
    struct ptx_token token = ptx_peek(&r->cursor);
    struct ptx_operand operand = {.kind = PTX_VALUE, .position = position, .node = PTX_NONE};
    if (token.kind != PTX_WORD) {
        bool real = false;
        if (!read_number(&r->cursor, &operand.number, &real))
            return reading_fail(r, "an operand that is not understood");
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
        if ((operand.node = reading_name(r, token.name)) == PTX_NONE) return false;
        /* A variable with an offset is an address; where in the variable does not matter. */
        if (ptx_accept(&r->cursor, '+') && !read_number(&r->cursor, &operand.number, NULL))
            return reading_fail(r, "an operand that is not understood");
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
        ptx_name_is(word, "mmio") || ptx_name_is(word, "cv") || ptx_name_is(word, "cg") ||
        ptx_name_is(word, "L1::no_allocate"))
        i->is_ordered = true;
    if (ptx_name_is(word, "cta")) i->is_of_block = true;
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
        return reading_fail(r, not_understood);
    struct ptx_token name = ptx_next(&r->cursor);
    if (name.kind != PTX_WORD) return reading_fail(r, not_understood);
    if (ptx_accept(&r->cursor, ',')) {
        if (!ptx_accept(&r->cursor, '(')) return reading_fail(r, not_understood);
        if (!read_list(r, 1, ')', 0)) return false;
        if (ptx_accept(&r->cursor, ',')) return reading_fail(r, "an indirect call");
    }
    i->target = name.name;
    i->callee = ptx_module_function(r->module, name.name);
    if (!i->callee || reading_symbol(r, name.name)) return reading_fail(r, "an indirect call");
    return ptx_accept(&r->cursor, ';') || reading_fail(r, not_understood);
}

static bool read_branch(struct reading *r, struct ptx_instruction *i)
{
    struct ptx_token target = ptx_next(&r->cursor);
    if (target.kind != PTX_WORD) return reading_fail(r, "a branch that is not understood");
    i->target = target.name;
    if (i->op == PTX_OP_brx) {
        struct ptx_token table;
        r->code->tangled = true;
        if (!ptx_accept(&r->cursor, ',')) return reading_fail(r, "a branch that is not understood");
        table = ptx_next(&r->cursor);
        if (table.kind != PTX_WORD) return reading_fail(r, "a branch that is not understood");
    }
    return ptx_accept(&r->cursor, ';') || reading_fail(r, "a branch that is not understood");
}

bool reading_instruction(struct reading *r, struct ptx_name root, uint32_t predicate, bool negated)
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
    if (i.op == PTX_OP_COUNT) return reading_fail(r, "an instruction that is not understood");
    i.class = operations[i.op].class;
    struct ptx_token token = ptx_peek(&r->cursor);
    for (int count = 0; token.kind == PTX_DOT && token.adjacent; count++, token = ptx_peek(&r->cursor)) {
        if (count == MODIFIER_LIMIT) return reading_fail(r, "an instruction that is not understood");
        ptx_next(&r->cursor);
        modifier_take(token.name, &i);
    }
    const char *refused = form_refused(&i);
    if (refused) return reading_fail(r, refused);
    if (code->instruction_count == code->instruction_limit) return reading_fail(r, "too many instructions");
    if (i.class == PTX_CALL || i.class == PTX_BRANCH) {
        if (i.class == PTX_CALL ? !read_call(r, &i) : !read_branch(r, &i)) return false;
    } else if (!ptx_accept(&r->cursor, ';')) {
        uint8_t position = 0;
        do {
            if (position == 16) return reading_fail(r, "too many operands");
            if (!read_operand(r, position++, 0)) return false;
        } while (ptx_accept(&r->cursor, ','));
        if (!ptx_accept(&r->cursor, ';')) return reading_fail(r, "an operand that is not understood");
    }
    i.operand_count = code->operand_count - i.operand;
    code->instructions[code->instruction_count++] = i;
    return true;
}
