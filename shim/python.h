/* Where in a Python program a call came from: function, file and line, read from CPython's own frames.
 *
 * Nothing of the interpreter runs for it but PyGILState_GetThisThreadState, which reads a thread-local variable, and no
 * lock of it is needed; most libraries release it around CUDA calls. Safe because
 * - only the main thread of a program named python* is asked. What is read there (its thread state, the frames that are
 *   being executed, their code objects) is given back by nobody but this thread, which is inside a call: CPython
 *   finalizes in its main thread, and a forked child is no longer watched;
 * - only releases whose layout is known (3.11 to 3.13) are read, and the layout is believed once every pointer of a
 *   first walk was readable and every object of the type it should be; builds that differ (debug, without the lock) are
 *   not;
 * - what is read beyond the frames, to name them, is asked of the kernel first whether it can be read.
 * In all other threads and programs there are no Python frames, and the extension's stand in the report. */
#ifndef SHIM_PYTHON_H
#define SHIM_PYTHON_H
#include <stdbool.h>
#include <stdint.h>

#define PYTHON_FRAMES_MAX 8
#define PYTHON_SLOTS_MAX  16 /* frames walked; some are the interpreter's own, between C and Python */

struct python_frame {
    const char *function, *file; /* never NULL */
    uint32_t line;               /* 0: unknown */
};

/* One for all equal stacks; lives as long as the process. */
struct python_stack {
    struct python_stack *next;
    uint64_t key;
    uint64_t hash; /* of the texts: the same in every run */
    unsigned count;
    struct python_frame frames[PYTHON_FRAMES_MAX]; /* innermost first */
};

/* Where the interpreter was at a capture, as words of its memory. */
struct python_slot {
    uintptr_t frame, code, instruction, identity;
};
struct python_moment {
    uintptr_t state; /* 0: no Python frames here */
    unsigned count;
    bool whole; /* there are no further frames */
    struct python_slot slots[PYTHON_SLOTS_MAX];
};

/* From a constructor: looks for the interpreter. */
void python_start(void);
/* Is this thread where it was at that moment? A few ns a frame, one comparison in other programs. */
bool python_same(const struct python_moment *moment);
/* This thread's Python stack, NULL if there is none, and the moment. Takes a lock of its own. */
const struct python_stack *python_capture(struct python_moment *moment);

void python_after_fork(void);

/* Inside the room (python_code.c): the name of a place in a code object, which may be anything. False: it is none. */
struct python_layout {
    unsigned release; /* 0x030b: 3.11 */
    bool in_state;    /* state_frame is where the state points to its frame; else to a structure that does */
    uint16_t state_frame, cframe_frame;
    uint16_t frame_code, frame_previous, frame_instruction, frame_owner;
    uint16_t code_identity, code_first_line, code_file, code_function, code_lines, code_instructions;
    uint16_t text_bytes; /* of an ASCII string's header */
};
bool python_name(const struct python_layout *layout, const struct python_slot *slot, struct python_frame *frame);
/* Copies `bytes` (at most 4096), or returns false where they cannot be read. */
bool python_read(uintptr_t address, void *to, unsigned bytes);
/* The types of code objects, strings and bytes. */
struct python_types {
    uintptr_t code, text, bytes;
};
extern struct python_types python_types;
#endif
