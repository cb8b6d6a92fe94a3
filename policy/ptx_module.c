/* The functions and variables of a PTX text, bodies unread. */
#include "policy/ptx_internal.h"

static bool is_linkage(struct ptx_name word)
{
    return ptx_name_is(word, "visible") || ptx_name_is(word, "extern") || ptx_name_is(word, "weak") ||
           ptx_name_is(word, "common");
}

static bool space_of(struct ptx_name word, enum ptx_space *space)
{
    static const struct {
        const char *word;
        enum ptx_space space;
    } spaces[] = {{"global", PTX_GLOBAL}, {"shared", PTX_SHARED}, {"local", PTX_LOCAL}, {"param", PTX_PARAM},
                  {"const", PTX_CONST},   {"reg", PTX_REGISTER},  {"tex", PTX_GLOBAL}};
    for (size_t i = 0; i < sizeof spaces / sizeof *spaces; i++)
        if (ptx_name_is(word, spaces[i].word)) return *space = spaces[i].space, true;
    return false;
}

bool ptx_declaration_words(struct ptx_cursor *c, struct ptx_declaration *d)
{
    *d = (struct ptx_declaration){0};
    bool any_space = false;
    uint64_t elements = 1, element_bytes = 0, align = 0;
    while (ptx_peek(c).kind == PTX_DOT) {
        struct ptx_name word = ptx_next(c).name;
        uint32_t bytes = ptx_type_bytes(word);
        enum ptx_space space;
        if (ptx_name_is(word, "ptr")) {
            d->formal.is_pointer = true;
        } else if (ptx_name_is(word, "align")) {
            struct ptx_token number = ptx_next(c);
            if (number.kind != PTX_NUMBER || number.value < 1 || number.value > 4096 ||
                (number.value & (number.value - 1)))
                return false;
            /* Behind .ptr it is what the pointer points to. */
            if (!d->formal.is_pointer) align = number.value;
        } else if (ptx_name_is(word, "attribute")) {
            if (!ptx_accept(c, '(') || !ptx_skip_block(c, '(', ')')) return false;
        } else if (ptx_name_is(word, "v2") || ptx_name_is(word, "v4") || ptx_name_is(word, "v8")) {
            elements = word.at[1] - '0';
        } else if (bytes || ptx_name_is(word, "pred")) {
            element_bytes = bytes;
        } else if (space_of(word, &space)) {
            /* Behind .ptr it is where the pointer points. */
            if (!any_space)
                d->space = space;
            else if (!d->formal.is_pointer)
                return false;
            any_space = true;
        } else {
            return false;
        }
    }
    d->formal.size_bytes = elements * element_bytes;
    d->formal.align_bytes = align ? align : d->formal.size_bytes ? d->formal.size_bytes : 1;
    d->formal.is_register = d->space == PTX_REGISTER;
    return any_space;
}

bool ptx_declaration_name(struct ptx_cursor *c, struct ptx_declaration *d)
{
    struct ptx_token name = ptx_next(c);
    if (name.kind != PTX_WORD) return false;
    d->formal.name = name.name;
    d->ranged = false;
    if (ptx_accept(c, '<')) {
        d->ranged = true;
        return ptx_next(c).kind == PTX_NUMBER && ptx_accept(c, '>');
    }
    uint64_t bytes = d->formal.size_bytes;
    while (ptx_accept(c, '[')) {
        if (ptx_accept(c, ']')) {
            bytes = 0;
            continue;
        }
        struct ptx_token count = ptx_next(c);
        if (count.kind != PTX_NUMBER || count.real || count.value < 0 || count.value > UINT32_MAX ||
            !ptx_accept(c, ']'))
            return false;
        bytes = ptx_multiply(bytes, count.value);
    }
    d->formal.size_bytes = bytes > UINT32_MAX ? UINT32_MAX : bytes;
    return true;
}

/* A parenthesized list of parameters, its opening sign read. */
static bool read_formals(struct ptx_module *m, struct ptx_cursor *c, struct ptx_formal **formals, uint32_t *count,
                         uint32_t *total)
{
    struct ptx_cursor ahead = *c;
    size_t commas = 0;
    for (struct ptx_token token;;) {
        token = ptx_next(&ahead);
        if (token.kind == PTX_END || token.kind == PTX_BAD) return false;
        if (token.kind == PTX_SIGN && token.value == ')') break;
        commas += token.kind == PTX_SIGN && token.value == ',';
    }
    *count = 0;
    *formals = ptx_take(m->budget, commas + 1, sizeof **formals);
    if (!*formals) return false;
    uint64_t offset = 0;
    if (ptx_accept(c, ')')) return true;
    do {
        struct ptx_declaration d;
        if (*count > commas || !ptx_declaration_words(c, &d) || !ptx_declaration_name(c, &d)) return false;
        if (d.space != PTX_PARAM && d.space != PTX_REGISTER) return false;
        offset = (offset + d.formal.align_bytes - 1) & ~((uint64_t)d.formal.align_bytes - 1);
        d.formal.offset_bytes = offset;
        offset += d.formal.size_bytes;
        if (offset > 1 << 20) return false;
        (*formals)[(*count)++] = d.formal;
    } while (ptx_accept(c, ','));
    *total = offset;
    return ptx_accept(c, ')');
}

struct ptx_function *ptx_module_function(const struct ptx_module *m, struct ptx_name name)
{
    for (struct ptx_function *f = m->functions[name.hash % PTX_HASH_HEADS]; f && ptx_spend(m->budget, 1); f = f->chain)
        if (ptx_name_same(f->name, name)) return f;
    return NULL;
}

const struct ptx_variable *ptx_module_variable(const struct ptx_module *m, struct ptx_name name)
{
    for (struct ptx_variable *v = m->variables[name.hash % PTX_HASH_HEADS]; v && ptx_spend(m->budget, 1); v = v->chain)
        if (ptx_name_same(v->name, name)) return v;
    return NULL;
}

/* Directives between a function's parameters and its body. True with *defined set at `{` or `;`. */
static bool skip_attributes(struct ptx_cursor *c, bool *defined)
{
    for (;;) {
        struct ptx_token token = ptx_next(c);
        if (token.kind == PTX_DOT && ptx_name_is(token.name, "pragma")) {
            if (ptx_next(c).kind != PTX_STRING || !ptx_accept(c, ';')) return false;
        } else if (token.kind == PTX_SIGN && (token.value == '{' || token.value == ';')) {
            *defined = token.value == '{';
            return true;
        } else if (token.kind == PTX_SIGN && token.value == '(') {
            if (!ptx_skip_block(c, '(', ')')) return false;
        } else if (token.kind != PTX_DOT && token.kind != PTX_NUMBER &&
                   !(token.kind == PTX_SIGN && token.value == ',')) {
            return false;
        }
    }
}

static struct ptx_function *function_add(struct ptx_module *m, struct ptx_name name)
{
    struct ptx_function *f = ptx_take(m->budget, 1, sizeof *f);
    if (!f) return NULL;
    f->name = name;
    f->chain = m->functions[name.hash % PTX_HASH_HEADS];
    m->functions[name.hash % PTX_HASH_HEADS] = f;
    if (m->last)
        m->last->next = f;
    else
        m->first = f;
    return m->last = f;
}

static bool read_function(struct ptx_module *m, struct ptx_cursor *c, bool is_entry)
{
    struct ptx_function found = {.is_entry = is_entry};
    uint32_t ignored = 0;
    if (!is_entry && ptx_accept(c, '(') && !read_formals(m, c, &found.results, &found.result_count, &ignored))
        return false;
    struct ptx_token name = ptx_next(c);
    if (name.kind != PTX_WORD) return false;
    struct ptx_function *f = ptx_module_function(m, name.name);
    bool known = f != NULL;
    if (!known && !(f = function_add(m, name.name))) return false;
    f->is_entry |= is_entry;
    bool truncated = true;
    if (!ptx_accept(c, '(') || read_formals(m, c, &found.formals, &found.formal_count, &found.formals_bytes)) {
        truncated = !skip_attributes(c, &found.is_defined);
        found.body = c->at;
        found.line = c->line;
        if (!truncated && found.is_defined) {
            truncated = !ptx_skip_block(c, '{', '}');
            found.body_end = c->at - 1;
        }
    }
    if (known && f->is_defined && (found.is_defined || truncated)) f->why = "defined twice";
    if (truncated) {
        f->why = "the text ends or is malformed inside it";
        return false;
    }
    if (found.is_defined && !f->is_defined) {
        found.name = f->name;
        found.chain = f->chain;
        found.next = f->next;
        found.is_entry = f->is_entry;
        found.why = f->why;
        *f = found;
    }
    return true;
}

static bool read_variables(struct ptx_module *m, struct ptx_cursor *c)
{
    struct ptx_declaration d;
    if (!ptx_declaration_words(c, &d)) return false;
    do {
        if (!ptx_declaration_name(c, &d)) return false;
        struct ptx_variable *v = ptx_take(m->budget, 1, sizeof *v);
        if (!v) return false;
        *v = (struct ptx_variable){m->variables[d.formal.name.hash % PTX_HASH_HEADS], d.formal.name, d.space};
        m->variables[d.formal.name.hash % PTX_HASH_HEADS] = v;
        if (ptx_accept(c, '=')) {
            for (;;) {
                struct ptx_token token = ptx_peek(c);
                if (token.kind == PTX_END || token.kind == PTX_BAD) return false;
                if (token.kind == PTX_SIGN && (token.value == ',' || token.value == ';')) break;
                ptx_next(c);
                if (token.kind == PTX_SIGN && token.value == '{' && !ptx_skip_block(c, '{', '}')) return false;
                if (token.kind == PTX_SIGN && token.value == '(' && !ptx_skip_block(c, '(', ')')) return false;
            }
        }
    } while (ptx_accept(c, ','));
    return ptx_accept(c, ';');
}

static bool read_directive(struct ptx_module *m, struct ptx_cursor *c)
{
    struct ptx_token token = ptx_peek(c);
    if (token.kind != PTX_DOT) return false;
    struct ptx_cursor at_word = *c;
    ptx_next(c);
    struct ptx_name word = token.name;
    if (is_linkage(word)) return ptx_peek(c).kind == PTX_DOT;
    if (ptx_name_is(word, "entry") || ptx_name_is(word, "func")) return read_function(m, c, ptx_name_is(word, "entry"));
    if (ptx_name_is(word, "loc") || ptx_name_is(word, "file")) return ptx_skip_line_directive(c, word);
    if (ptx_name_is(word, "version")) return ptx_next(c).kind == PTX_NUMBER;
    /* 32-bit addresses have other parameter layouts and address arithmetic: not read. */
    if (ptx_name_is(word, "address_size")) return token = ptx_next(c), token.kind == PTX_NUMBER && token.value == 64;
    if (ptx_name_is(word, "pragma")) return ptx_next(c).kind == PTX_STRING && ptx_accept(c, ';');
    if (ptx_name_is(word, "target")) {
        do
            if (ptx_next(c).kind != PTX_WORD) return false;
        while (ptx_accept(c, ','));
        return true;
    }
    if (ptx_name_is(word, "section")) {
        token = ptx_next(c);
        return (token.kind == PTX_DOT || token.kind == PTX_WORD) && ptx_accept(c, '{') && ptx_skip_block(c, '{', '}');
    }
    *c = at_word;
    return read_variables(m, c);
}

void ptx_module_read(struct ptx_module *m, const char *text, size_t bytes)
{
    struct ptx_cursor c = {text, text + bytes, 1, m->budget};
    while (ptx_peek(&c).kind != PTX_END)
        if (!read_directive(m, &c)) return;
    m->complete = true;
}
