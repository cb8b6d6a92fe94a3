/* A kernel's answer as one line of text, for tables and for people. */
#ifndef ZCSHIM_TESTS_FUZZ_PTX_ANSWERS_H
#define ZCSHIM_TESTS_FUZZ_PTX_ANSWERS_H

#include <inttypes.h>
#include <stdio.h>

#include "policy/ptx.h"

/*
 * Letters: ? not understood, S stores elsewhere, L loads elsewhere, V stores to module variables, A atomics, a some of
 * them elsewhere, P polls, C calls. Then for each pointer "offset:R|W:bytes", bytes "-" for unbounded, with a for
 * atomics and p for polling behind it.
 */
static inline void ptx_answer_print(const struct ptx_kernel *k, char *line, size_t bytes)
{
    size_t at = 0;
#define PRINT(...) (at += at < bytes ? (size_t)snprintf(line + at, bytes - at, __VA_ARGS__) : 0)
    line[0] = 0;
    if (k->why) {
        PRINT("?");
        return;
    }
    PRINT("%s%s%s%s%s%s%s", k->stores_elsewhere ? "S" : "", k->loads_elsewhere ? "L" : "",
          k->stores_variables ? "V" : "", k->atomics ? "A" : "", k->atomics_elsewhere ? "a" : "", k->polls ? "P" : "",
          k->calls ? "C" : "");
    for (uint32_t i = 0; i < k->pointer_count; i++) {
        const struct ptx_pointer *p = &k->pointers[i];
        PRINT("%s%u:%c:", at ? " " : "", p->offset_bytes, p->use == PTX_READS ? 'R' : 'W');
        if (p->bytes_per_thread == PTX_UNBOUNDED)
            PRINT("-");
        else
            PRINT("%" PRIu64, p->bytes_per_thread);
        PRINT("%s%s", p->atomics ? "a" : "", p->polls ? "p" : "");
    }
#undef PRINT
}

#endif
