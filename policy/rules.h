/* Rules of the user's that place buffers: one a line (or between semicolons), the first that matches wins.
 *
 *     site=*coefficients* place=host
 *     size=64K.. place=device
 *     kernel=histogram* place=device       # whenever such a kernel is about to run
 *
 * Words: site=GLOB, kernel=GLOB (* and ?; in '...' or "..." if it holds blanks, semicolons or #), size=N, N..M, N.. or
 * ..M (with K, M, G, T), place=host|device|auto. A rule needs place and at least one other word. # starts a comment. */
#ifndef POLICY_RULES_H
#define POLICY_RULES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define RULES_MOST 128

enum rule_place { RULE_AUTO, RULE_HOST, RULE_DEVICE };

/* Globs point into the text that was parsed; null: any. */
struct rule {
    const char *site, *kernel;
    size_t site_length, kernel_length;
    uint64_t low_bytes, high_bytes; /* both included */
    enum rule_place place;
    unsigned line;
};

struct rules {
    struct rule rule[RULES_MOST];
    unsigned count;
    bool by_site, by_kernel; /* some rule asks for it: else the caller need not find the names */
};

/* `text` must live as long as `rules`. False leaves `rules` empty and writes one line with line and column to `error`.
 */
bool rules_parse(struct rules *rules, const char *text, size_t length, char *error, size_t error_capacity);

/* The rule for a buffer of `bytes` from `site` (any text that names it; null: not known, matched by no site=), asked at
 * its allocation with `kernel` null (rules with kernel= are passed over), or before a launch with the kernel's name.
 * Null: none. */
const struct rule *rules_match(const struct rules *rules, const char *site, uint64_t bytes, const char *kernel);

#endif
