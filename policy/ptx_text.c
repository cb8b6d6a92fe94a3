/* Words of a PTX text, and the budget that everything here is paid from. */
#include "policy/ptx_internal.h"

#include <string.h>

void *ptx_take(struct ptx_budget *budget, size_t count, size_t size)
{
    size_t bytes;
    if (__builtin_mul_overflow(count, size, &bytes) || bytes > budget->bytes) return NULL;
    bytes = (bytes + 15) & ~(size_t)15;
    if (bytes > budget->bytes - budget->used || !ptx_spend(budget, bytes / 64)) return NULL;
    void *memory = budget->scratch + budget->used;
    budget->used += bytes;
    return memset(memory, 0, bytes);
}

bool ptx_spend(struct ptx_budget *budget, uint64_t steps)
{
    if (budget->steps < steps) {
        budget->steps = 0;
        return false;
    }
    budget->steps -= steps;
    return true;
}

struct ptx_name ptx_name_make(const char *at, size_t bytes)
{
    uint32_t hash = 2166136261u;
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ (unsigned char)at[i]) * 16777619u;
    return (struct ptx_name){at, (uint32_t)bytes, hash ^ hash >> 15};
}

bool ptx_name_same(struct ptx_name a, struct ptx_name b)
{
    return a.hash == b.hash && a.bytes == b.bytes && memcmp(a.at, b.at, a.bytes) == 0;
}

static bool is_digit(char c) { return c >= '0' && c <= '9'; }

static bool is_word(char c)
{
    static const bool words[256] = {
        ['a' ... 'z'] = true, ['A' ... 'Z'] = true, ['0' ... '9'] = true, ['_'] = true, ['$'] = true, ['%'] = true};
    return words[(unsigned char)c];
}

static int hex_digit(char c)
{
    return is_digit(c) ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

/* False: a comment does not end. */
static bool skip_space(struct ptx_cursor *c)
{
    for (; c->at < c->end; c->at++) {
        char now = *c->at, next = c->at + 1 < c->end ? c->at[1] : 0;
        if (now == '\n') {
            c->line++;
        } else if (now == '/' && next == '/') {
            while (c->at + 1 < c->end && c->at[1] != '\n') c->at++;
        } else if (now == '/' && next == '*') {
            for (c->at += 2; c->at + 1 < c->end && !(c->at[0] == '*' && c->at[1] == '/'); c->at++)
                c->line += *c->at == '\n';
            if (c->at + 1 >= c->end) return false;
            c->at++;
        } else if (now != ' ' && now != '\t' && now != '\r' && now != '\f' && now != '\v') {
            break;
        }
    }
    return true;
}

/* Digits of a base with an optional U behind them; false: none, or more than 64 bits. */
static bool read_digits(struct ptx_cursor *c, int base, int64_t *value)
{
    const char *start = c->at;
    uint64_t sum = 0;
    for (int digit; c->at < c->end && (digit = hex_digit(*c->at)) >= 0 && digit < base; c->at++)
        if (__builtin_mul_overflow(sum, (uint64_t)base, &sum) || __builtin_add_overflow(sum, (uint64_t)digit, &sum))
            return false;
    bool any = c->at > start;
    if (any && c->at < c->end && *c->at == 'U') c->at++;
    *value = (int64_t)sum;
    return any;
}

static struct ptx_token read_number(struct ptx_cursor *c)
{
    struct ptx_token token = {.kind = PTX_NUMBER};
    char mark = c->at + 1 < c->end && *c->at == '0' ? c->at[1] : 0;
    bool good = true;
    if (mark == 'f' || mark == 'F' || mark == 'd' || mark == 'D') {
        token.real = true;
        size_t digits = 0;
        for (c->at += 2; c->at < c->end && hex_digit(*c->at) >= 0; c->at++) digits++;
        good = digits == 8 || digits == 16;
    } else if (mark == 'x' || mark == 'X') {
        c->at += 2;
        good = read_digits(c, 16, &token.value);
    } else if (mark == 'b' || mark == 'B') {
        c->at += 2;
        good = read_digits(c, 2, &token.value);
    } else {
        good = read_digits(c, is_digit(mark) ? 8 : 10, &token.value);
        if (c->at + 1 < c->end && *c->at == '.' && is_digit(c->at[1])) {
            token.real = true;
            for (c->at++; c->at < c->end && is_digit(*c->at); c->at++) continue;
        }
    }
    if (!good || (c->at < c->end && is_word(*c->at))) token.kind = PTX_BAD;
    return token;
}

static struct ptx_token read_string(struct ptx_cursor *c)
{
    for (c->at++; c->at < c->end && *c->at != '"' && *c->at != '\n'; c->at++)
        if (*c->at == '\\' && c->at + 1 < c->end && c->at[1] != '\n') c->at++;
    if (c->at >= c->end || *c->at != '"') return (struct ptx_token){.kind = PTX_BAD};
    c->at++;
    return (struct ptx_token){.kind = PTX_STRING};
}

static struct ptx_token read_token(struct ptx_cursor *c)
{
    if (c->at >= c->end) return (struct ptx_token){.kind = PTX_END};
    const char *start = c->at;
    bool dot = *start == '.';
    if (is_digit(*start)) return read_number(c);
    if (*start == '"') return read_string(c);
    if (dot || is_word(*start)) {
        if (dot) c->at = ++start;
        while (c->at < c->end) {
            bool colons = dot && c->at + 2 < c->end && c->at[0] == ':' && c->at[1] == ':' && is_word(c->at[2]);
            if (!is_word(*c->at) && !colons) break;
            c->at += colons ? 2 : 1;
        }
        if (c->at == start) return (struct ptx_token){.kind = PTX_BAD};
        return (struct ptx_token){.kind = dot ? PTX_DOT : PTX_WORD, .name = ptx_name_make(start, c->at - start)};
    }
    if (*start == 0 || !strchr("{}[]()<>,;:@!|+-=", *start)) return (struct ptx_token){.kind = PTX_BAD};
    c->at++;
    return (struct ptx_token){.kind = PTX_SIGN, .value = *start};
}

struct ptx_token ptx_next(struct ptx_cursor *c)
{
    const char *before = c->at;
    bool good = skip_space(c);
    bool adjacent = c->at == before;
    struct ptx_token token = good ? read_token(c) : (struct ptx_token){.kind = PTX_BAD};
    token.adjacent = adjacent;
    if (!ptx_spend(c->budget, (c->at - before) + 1)) token = (struct ptx_token){.kind = PTX_BAD};
    return token;
}

struct ptx_token ptx_peek(const struct ptx_cursor *c)
{
    struct ptx_cursor ahead = *c;
    return ptx_next(&ahead);
}

bool ptx_accept(struct ptx_cursor *c, char sign)
{
    struct ptx_cursor ahead = *c;
    struct ptx_token token = ptx_next(&ahead);
    if (token.kind != PTX_SIGN || token.value != sign) return false;
    *c = ahead;
    return true;
}

/* Bodies are skipped without a look at their words: most of them are not asked about. */
static bool skip_braces(struct ptx_cursor *c)
{
    static const bool marks[256] = {['"'] = true, ['/'] = true, ['\n'] = true, ['{'] = true, ['}'] = true};
    const char *start = c->at;
    size_t depth = 1;
    while (depth) {
        while (c->at < c->end && !marks[(unsigned char)*c->at]) c->at++;
        if (c->at == c->end) return false;
        char now = *c->at, next = c->at + 1 < c->end ? c->at[1] : 0;
        if (now == '"') {
            if (read_string(c).kind == PTX_BAD) return false;
            continue;
        }
        if (now == '/' && (next == '/' || next == '*')) {
            if (!skip_space(c)) return false;
            continue;
        }
        c->line += now == '\n';
        depth += now == '{';
        depth -= now == '}';
        c->at++;
    }
    return ptx_spend(c->budget, c->at - start);
}

bool ptx_skip_block(struct ptx_cursor *c, char open, char close)
{
    if (open == '{') return skip_braces(c);
    for (size_t depth = 1; depth;) {
        struct ptx_token token = ptx_next(c);
        if (token.kind == PTX_END || token.kind == PTX_BAD) return false;
        if (token.kind != PTX_SIGN) continue;
        if (token.value == open) depth++;
        if (token.value == close) depth--;
    }
    return true;
}

static bool skip_number(struct ptx_cursor *c) { return ptx_next(c).kind == PTX_NUMBER; }

bool ptx_skip_line_directive(struct ptx_cursor *c, struct ptx_name word)
{
    if (ptx_name_is(word, "file")) {
        if (!skip_number(c) || ptx_next(c).kind != PTX_STRING) return false;
        while (ptx_accept(c, ','))
            if (!skip_number(c)) return false;
        return true;
    }
    if (!skip_number(c) || !skip_number(c) || !skip_number(c)) return false;
    while (ptx_accept(c, ',')) {
        struct ptx_token what = ptx_next(c);
        if (what.kind != PTX_WORD) return false;
        if (ptx_name_is(what.name, "function_name")) {
            if (ptx_next(c).kind != PTX_WORD || (ptx_accept(c, '+') && !skip_number(c))) return false;
        } else if (!ptx_name_is(what.name, "inlined_at") || !skip_number(c) || !skip_number(c) || !skip_number(c)) {
            return false;
        }
    }
    return true;
}

uint32_t ptx_type_bytes(struct ptx_name word)
{
    static const struct {
        char name[10];
        uint8_t bytes;
    } types[] = {{"b8", 1},     {"u8", 1},     {"s8", 1},     {"b16", 2},    {"u16", 2},        {"s16", 2},
                 {"f16", 2},    {"bf16", 2},   {"b32", 4},    {"u32", 4},    {"s32", 4},        {"f32", 4},
                 {"f16x2", 4},  {"bf16x2", 4}, {"u16x2", 4},  {"s16x2", 4},  {"tf32", 4},       {"b64", 8},
                 {"u64", 8},    {"s64", 8},    {"f64", 8},    {"f32x2", 8},  {"b128", 16},      {"e4m3x2", 2},
                 {"e5m2x2", 2}, {"e4m3x4", 4}, {"e5m2x4", 4}, {"texref", 8}, {"samplerref", 8}, {"surfref", 8}};
    for (size_t i = 0; i < sizeof types / sizeof *types; i++)
        if (word.bytes <= sizeof types[i].name && strnlen(types[i].name, 10) == word.bytes &&
            memcmp(types[i].name, word.at, word.bytes) == 0)
            return types[i].bytes;
    return 0;
}
