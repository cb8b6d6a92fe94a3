/* State of reading one function body (ptx_code.c: names, blocks, declarations; ptx_instruction.c). */
#ifndef ZCSHIM_POLICY_PTX_READING_H
#define ZCSHIM_POLICY_PTX_READING_H

#include "policy/ptx_internal.h"

#define SYMBOL_HEADS 512
#define RANGE_LIMIT  64

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

/* Notes the first reason why the body is not understood; always false. */
bool reading_fail(struct reading *r, const char *why);

/* The name's entry if it was declared or used in this body, else NULL. */
struct ptx_symbol *reading_symbol(struct reading *r, struct ptx_name name);

/* The register or variable that a name stands for; names that nobody declared are registers. */
uint32_t reading_name(struct reading *r, struct ptx_name name);

/* One instruction; its first word is read, its modifiers are not. */
bool reading_instruction(struct reading *r, struct ptx_name root, uint32_t predicate, bool negated);

#endif
