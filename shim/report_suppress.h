/* Suppressions in LeakSanitizer's form: lines "leak:PATTERN"; # begins a comment. A pattern matches when it occurs in
 * the function, file or module of any frame, or in the library that allocated; * stands for anything, ^ and $ bind it
 * to the start and end. */
#ifndef SHIM_REPORT_SUPPRESS_H
#define SHIM_REPORT_SUPPRESS_H
#include "shim/report_model.h"

struct suppressions {
    const char **patterns; /* the built-in ones first */
    size_t count, own;     /* own: how many are built in */
};

/* The built-in patterns and those of the file's text, which is changed (lines become strings) and must stay. `warn`
 * gets one line a bad line. `patterns` holds `capacity` of them; those beyond are left out, with a warning. */
void suppressions_read(struct suppressions *suppressions, const char **patterns, size_t capacity, char *text,
                       void (*warn)(const char *line));
/* Marks the sites that a pattern hides (hidden_by). */
void suppressions_apply(const struct suppressions *suppressions, struct report *report);
bool suppression_matches(const char *pattern, const char *subject);
#endif
