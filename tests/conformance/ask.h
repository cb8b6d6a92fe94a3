/* Between the parent, which runs sections as processes, and such a process. */
#ifndef TESTS_CONFORMANCE_ASK_H
#define TESTS_CONFORMANCE_ASK_H
#include "conformance.h"

enum {
    ASK_MARK = 1,       /* starts a line "<number> <name>": this question is about to be asked */
    ASK_TAKE_OVER = 42, /* exit code: go on behind the latest question in a new process */
    ASK_GIVE_UP = 43,   /* exit code: the rest of the section cannot be asked */
    ASK_NO_DRIVER = 77,
};

/* How long a call may take that does not wait for the gate: CONFORMANCE_PATIENCE_MS, 100 by default. */
int ask_patience_ms(void);

/* Runs the section's questions from number `first` on; returns the exit code of the process. */
int section_child(const struct section *section, int first);
#endif
