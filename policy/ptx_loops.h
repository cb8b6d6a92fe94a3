/* The search for loops (ptx_loops.c) and for their bounds (ptx_bounds.c) in one function. */
#ifndef ZCSHIM_POLICY_PTX_LOOPS_H
#define ZCSHIM_POLICY_PTX_LOOPS_H

#include "policy/ptx_internal.h"

/* A part of the function whose blocks run at most `runs` times a call; inside it, edges to `header` are not followed.
 */
struct region {
    uint32_t first, count; /* of `order` */
    uint32_t header;
    uint64_t runs;
    bool loops;
};
struct search {
    struct ptx_budget *budget;
    struct ptx_code *code;
    struct region *regions;
    uint32_t region_count, region_limit;
    uint32_t *order, *stack, *found, *walk, *walk_edge; /* block indices */
    uint32_t *sources, *source_first;                   /* edges backwards */
    uint32_t mark, last_mark, last_stamp;               /* the set in question; see is_marked, returns_only_by */
};

static inline bool ptx_loop_spend(struct search *s, uint64_t steps) { return ptx_spend(s->budget, steps); }

/* How often the header of this set can run for each time that the loop is entered. A block that is in no loop inside
 * the loop runs at most as often. */
uint64_t ptx_loop_bound(struct search *s, const uint32_t *set, uint32_t count);

#endif
