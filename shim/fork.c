#include <string.h>
#include "shim/arena.h"
#include "shim/buffer.h"
#include "shim/fork.h"
#include "shim/gate.h"
#include "shim/hostmem.h"
#include "shim/lend.h"
#include "shim/shim.h"
#include "shim/site.h"

void fork_before(void)
{
    lend_before_fork();
    hostmem_before_fork();
    buffer_before_fork();
    arena_before_fork();
}

void fork_in_parent(void)
{
    arena_after_fork();
    buffer_after_fork();
    hostmem_after_fork_parent();
    lend_after_fork_parent();
}

/* CUDA does not work in the child, and what the shim knows belongs to the parent: every hook forwards from here on, and
 * no report is made. A child that execs starts anew. */
void fork_in_child(void)
{
    int active = SHIM_ACTIVE;
    arena_after_fork();
    buffer_after_fork();
    gate_after_fork();
    site_after_fork();
    hostmem_after_fork_child();
    lend_after_fork_child();
    atomic_compare_exchange_strong(&shim.state, &active, SHIM_CHILD);
}

extern char **environ;

void fork_unfollow(void)
{
    for (char **entry = environ; entry && *entry; entry++) {
        if (strncmp(*entry, "LD_PRELOAD=", 11)) continue;
        char *from = *entry + 11, *to = from;
        /* In place: the list only gets shorter. */
        while (*from) {
            size_t length = strcspn(from, ": ");
            char *slash = memrchr(from, '/', length);
            const char *base = slash ? slash + 1 : from;
            bool ours = !strncmp(base, "libzcshim.so", 12);
            if (!ours) {
                if (to != *entry + 11) *to++ = ':';
                memmove(to, from, length);
                to += length;
            }
            from += length + strspn(from + length, ": ");
        }
        *to = 0;
    }
}
