/* Parts of the PTX analysis that its own files share: reader (ptx_text.c), index (ptx_module.c), code (ptx_code.c),
 * ptx_instruction.c), loops (ptx_loops.c, ptx_bounds.c), origins and accesses (ptx_flow.h), answers (ptx.c). */
#ifndef ZCSHIM_POLICY_PTX_INTERNAL_H
#define ZCSHIM_POLICY_PTX_INTERNAL_H

#include "policy/ptx.h"

#include <string.h>

#define PTX_NONE UINT32_MAX

/* The caller's scratch memory and the steps left. Both run out for good: what needs them fails. */
struct ptx_budget {
    char *scratch;
    size_t bytes, used;
    uint64_t steps;
};

/* Zeroed memory, NULL when there is no more. */
void *ptx_take(struct ptx_budget *budget, size_t count, size_t size);
bool ptx_spend(struct ptx_budget *budget, uint64_t steps);

struct ptx_name {
    const char *at;
    uint32_t bytes;
    uint32_t hash;
};
struct ptx_name ptx_name_make(const char *at, size_t bytes);
bool ptx_name_same(struct ptx_name a, struct ptx_name b);
/* Inline: the length of a constant word is known at compile time. */
static inline bool ptx_name_is(struct ptx_name a, const char *word)
{
    return a.at && a.bytes == strlen(word) && memcmp(a.at, word, a.bytes) == 0;
}

enum ptx_token_kind { PTX_END, PTX_WORD, PTX_DOT, PTX_NUMBER, PTX_STRING, PTX_SIGN, PTX_BAD };
struct ptx_token {
    enum ptx_token_kind kind;
    struct ptx_name name; /* WORD, DOT (without its dot) */
    int64_t value;        /* NUMBER: its value; SIGN: its character */
    bool real;            /* a floating point NUMBER; its value is not kept */
    bool adjacent;        /* no white space before it */
};
struct ptx_cursor {
    const char *at, *end;
    unsigned line;
    struct ptx_budget *budget;
};
struct ptx_token ptx_next(struct ptx_cursor *cursor);
struct ptx_token ptx_peek(const struct ptx_cursor *cursor);
bool ptx_accept(struct ptx_cursor *cursor, char sign);
/* Skips to the sign that closes the one just read; false if the text ends first. */
bool ptx_skip_block(struct ptx_cursor *cursor, char open, char close);
/* Skips a .loc or .file directive whose dot word was just read. */
bool ptx_skip_line_directive(struct ptx_cursor *cursor, struct ptx_name word);
/* Size of a fundamental type by its dot word, 0 if it is none. */
uint32_t ptx_type_bytes(struct ptx_name word);

enum ptx_space { PTX_GENERIC, PTX_GLOBAL, PTX_SHARED, PTX_LOCAL, PTX_PARAM, PTX_CONST, PTX_REGISTER };

struct ptx_formal {
    struct ptx_name name;
    uint32_t size_bytes, align_bytes, offset_bytes;
    bool is_register, is_pointer;
};
struct ptx_function {
    struct ptx_function *chain, *next; /* same hash; order of the text */
    struct ptx_name name;
    bool is_entry, is_defined, is_twice;
    struct ptx_formal *formals, *results;
    uint32_t formal_count, result_count, formals_bytes;
    const char *body, *body_end; /* after the opening and at the closing brace */
    unsigned line;               /* of the body */
    const char *why;             /* not usable: why */
    struct ptx_code *code;       /* while an entry that reaches it is analysed */
};
struct ptx_variable {
    struct ptx_variable *chain;
    struct ptx_name name;
    enum ptx_space space;
};
#define PTX_HASH_HEADS 2048
struct ptx_module {
    struct ptx_budget *budget;
    struct ptx_function *functions[PTX_HASH_HEADS], *first, *last;
    struct ptx_variable *variables[PTX_HASH_HEADS];
    bool complete; /* read to its end */
};
void ptx_module_read(struct ptx_module *module, const char *text, size_t bytes);
struct ptx_function *ptx_module_function(const struct ptx_module *module, struct ptx_name name);
const struct ptx_variable *ptx_module_variable(const struct ptx_module *module, struct ptx_name name);

/* Reads the dot words, name and array sizes of a parameter or variable. */
struct ptx_declaration {
    struct ptx_formal formal;
    enum ptx_space space;
    bool ranged; /* name<N> */
};
bool ptx_declaration_words(struct ptx_cursor *cursor, struct ptx_declaration *declaration);
bool ptx_declaration_name(struct ptx_cursor *cursor, struct ptx_declaration *declaration);

enum ptx_class {
    PTX_MERGE,
    PTX_SUM,
    PTX_MAD,
    PTX_PIECES,
    PTX_MASK,
    PTX_SHIFT,
    PTX_SCALE,
    PTX_CONVERT,
    PTX_ADDRESS,
    PTX_NUMBER_,
    PTX_FRESH,
    PTX_FRAME,
    PTX_CLUSTER,
    PTX_LOAD,
    PTX_STORE,
    PTX_ATOMIC,
    PTX_DISCARD,
    PTX_ONCHIP_LOAD,
    PTX_ONCHIP_STORE,
    PTX_MATRIX,
    PTX_COPY,
    PTX_TEXTURE,
    PTX_SURFACE,
    PTX_BRANCH,
    PTX_CALL,
    PTX_LEAVE,
    PTX_NOTHING,
};
enum ptx_op {
#define OP(root, class) PTX_OP_##root,
#include "policy/ptx_ops.def"
#undef OP
    PTX_OP_COUNT
};
enum ptx_compare { PTX_NO_COMPARE, PTX_EQ, PTX_NE, PTX_LT, PTX_LE, PTX_GT, PTX_GE };

/* A register or a variable of a function. */
struct ptx_node {
    struct ptx_name name;
    enum ptx_space space; /* REGISTER, or where the variable lies */
    uint32_t formal;      /* index of the parameter it is, or PTX_NONE */
    uint32_t value;       /* index of its origins while an entry is analysed */
    bool address_taken;
    bool is_function;
    uint32_t definitions;
    uint32_t defined_at[2]; /* the first two instructions that define it */
};
enum ptx_operand_kind { PTX_VALUE, PTX_IMMEDIATE, PTX_REAL, PTX_MEMORY, PTX_FIXED_MEMORY };
struct ptx_operand {
    uint8_t kind;
    uint8_t position; /* vectors share one */
    uint32_t node;    /* VALUE, MEMORY */
    int64_t number;   /* IMMEDIATE; MEMORY: offset */
};
struct ptx_instruction {
    enum ptx_op op;
    enum ptx_class class;
    enum ptx_space space, second_space; /* second: of cp */
    enum ptx_compare compare;
    uint8_t first_bytes, last_bytes; /* sizes of the first and last type named */
    uint8_t elements;                /* of a vector access */
    bool is_signed, is_float, is_plain /* 32- or 64-bit integers only, no saturation */,
        is_ordered /* volatile, relaxed, acquire, or past the first-level cache */, is_of_block, to, is_tensor,
        is_reduction, is_bulk, is_store, is_wide;
    bool is_load, is_prefetch, is_async;
    bool negated;
    uint32_t predicate; /* node or PTX_NONE */
    uint32_t operand, operand_count;
    uint32_t block;
    unsigned line;
    struct ptx_name target; /* of a branch */
    struct ptx_function *callee;
};
struct ptx_block {
    uint32_t first, count; /* instructions */
    uint32_t edge, edge_count;
    uint32_t region;
    uint32_t low, number, mark, stamp; /* of the search for loops */
    bool on_stack;
};
struct ptx_label {
    struct ptx_label *chain;
    struct ptx_name name;
    uint32_t instruction, block;
};
struct ptx_symbol {
    struct ptx_symbol *chain;
    struct ptx_name name;
    uint32_t node;
};
struct ptx_code {
    struct ptx_function *function;
    struct ptx_code *next;
    struct ptx_node *nodes;
    struct ptx_instruction *instructions;
    struct ptx_operand *operands;
    struct ptx_label *labels;
    struct ptx_block *blocks;
    uint32_t *edges;
    uint64_t *block_runs; /* times a block can run in one call of the function */
    bool *block_loops;
    uint32_t node_count, node_limit, instruction_count, instruction_limit, operand_count, operand_limit, label_count,
        label_limit, block_count, edge_count;
    bool tangled; /* control flow not followed: everything may be in a loop */
    uint64_t runs, next_runs;
    bool in_loop;
    const char *why;
    unsigned why_line;
};
struct ptx_code *ptx_code_read(const struct ptx_module *module, struct ptx_function *function);
/* Blocks, edges, loops and their bounds; false: out of memory or work. */
bool ptx_loops_find(struct ptx_budget *budget, struct ptx_code *code);

static inline uint64_t ptx_multiply(uint64_t a, uint64_t b)
{
    uint64_t product;
    return a == 0 || b == 0                                                                     ? 0
           : a == PTX_UNBOUNDED || b == PTX_UNBOUNDED || __builtin_mul_overflow(a, b, &product) ? PTX_UNBOUNDED
                                                                                                : product;
}
static inline uint64_t ptx_plus(uint64_t a, uint64_t b) { return a > PTX_UNBOUNDED - b ? PTX_UNBOUNDED : a + b; }

/* Fills the kernel's answers from the code of the entry and all that it calls. False: `why` is set in the entry. */
bool ptx_flow_solve(struct ptx_budget *budget, struct ptx_code *codes, struct ptx_kernel *kernel);

#endif
