/* State of the search for origins (ptx_origins.c, ptx_memory.c, ptx_flow.c) and accesses (ptx_access.c) of one entry.
 */
#ifndef ZCSHIM_POLICY_PTX_FLOW_H
#define ZCSHIM_POLICY_PTX_FLOW_H

#include "policy/ptx_internal.h"

/* Bits of the sets; windows of the parameter buffer follow. */
enum {
    BASELESS, /* the value may have no base at all; among bases only */
    LOADED,   /* came from global or constant memory */
    VARIABLE, /* address of a module variable */
    CONSTANT,
    SHARED,
    LOCAL,
    PARAMETER, /* address of a parameter of the kernel */
    FUNCTION,
    IN_PIECES, /* of a memory cell: narrower values were stored to it */
    WINDOWS = 16
};
#define BIT(bit) (1ull << (bit))
#define ON_CHIP  (BIT(SHARED) | BIT(LOCAL))

/* Indices of values that are no register. */
enum { RESULT, SHARED_CELL, LOCAL_CELL, FIRST_NODE };

struct use {
    bool reads, writes, atomics, polls, in_loop;
    uint64_t bytes, accesses;
};
/* An 8-byte window of the parameter buffer (or, in pieces, all windows that overlap those 8 bytes). */
struct window {
    bool certain;   /* declared or converted as a pointer */
    bool reachable; /* of a parameter whose address is a value */
    bool pieces;
    struct use use;
};
struct flow {
    struct ptx_budget *budget;
    struct ptx_code *codes; /* the entry first */
    struct ptx_kernel *kernel;
    uint64_t *sets;
    uint32_t words;                               /* of one set */
    uint32_t *whole_at, *pieces_at, buffer_words; /* windows by 8-byte word of the buffer */
    struct window *windows;
    uint32_t window_count;
    bool changed;
    bool fenced; /* a fence for more than the block in a loop: what was read before is read anew */
};

static inline uint64_t *flow_bases_of(const struct flow *f, uint32_t value)
{
    return f->sets + (size_t)value * 2 * f->words;
}

static inline uint64_t *flow_parts_of(const struct flow *f, uint32_t value)
{
    return flow_bases_of(f, value) + f->words;
}

static inline bool flow_has_window(const uint64_t *set, uint32_t window)
{
    return set[(WINDOWS + window) / 64] & BIT((WINDOWS + window) % 64);
}

static inline uint32_t flow_window_at(const struct flow *f, uint32_t offset_bytes, bool pieces)
{
    return offset_bytes / 8 < f->buffer_words ? (pieces ? f->pieces_at : f->whole_at)[offset_bytes / 8] : PTX_NONE;
}

/* Notes the first reason why the kernel is not understood; always false. */
bool flow_fail(struct flow *f, const char *why, unsigned line);

void flow_clear(struct flow *f);
void flow_merge(struct flow *f, uint32_t to, uint32_t from);

/* RESULT becomes a number: what it was made from is no base of it. promote: it may be put together from pieces of
 * pointers. */
void flow_demote(struct flow *f);
void flow_promote(struct flow *f);

bool flow_is_entry_formal(const struct flow *f, const struct ptx_code *code, const struct ptx_node *node);
uint64_t flow_address_bit(const struct flow *f, const struct ptx_code *code, const struct ptx_node *node);

/* Adds a source to RESULT; true if it may have no base. sources_add: those at positions first..last; with `any`, the
 * result may be baseless if one of them may be, else if all may. */
bool flow_source_add(struct flow *f, const struct ptx_code *code, const struct ptx_operand *o);
void flow_sources_add(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i, int first, int last,
                      bool any);

/* How many operands stand at a position, and the first of them; memory_operand: it, if it is an address. */
uint32_t flow_operands_at(const struct ptx_code *code, const struct ptx_instruction *i, int position,
                          const struct ptx_operand **first);
const struct ptx_operand *flow_memory_operand(const struct ptx_code *code, const struct ptx_instruction *i,
                                              int position);

/* Merges RESULT into all that the instruction defines. result_only: RESULT's bases become this bit alone. */
void flow_result_put(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i);
void flow_result_only(struct flow *f, int bit);

/* Arithmetic: the result from the sources. */
void flow_number_solve(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i);

/* Which memory an address may lie in, as bits of bases. */
uint64_t flow_memory_bits(const struct flow *f, const struct ptx_code *code, const struct ptx_operand *o);
bool flow_any_window(const struct flow *f, const uint64_t *set);

/* True if the access may be to shared (local) memory; leaves_chip: to memory that is neither shared, local nor
 * parameters. */
bool flow_touches(const struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i,
                  const struct ptx_operand *o, enum ptx_space space);
bool flow_leaves_chip(const struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i,
                      const struct ptx_operand *o);

/* Functions of the device runtime that do nothing to memory that a program could see. */
bool flow_is_harmless(const struct ptx_function *callee);

/* One instruction's part in the union of origins. */
bool flow_instruction_solve(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i);

/* When origins are settled: windows that are pointers beyond doubt; then what each instruction accesses; then the
 * answers. */
void flow_certain_mark(struct flow *f, const struct ptx_code *code);
bool flow_instruction_note(struct flow *f, const struct ptx_code *code, const struct ptx_instruction *i);
bool flow_answers_make(struct flow *f);

#endif
