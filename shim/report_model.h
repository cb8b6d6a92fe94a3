/* A report as data: filled by the preload library at exit or by the command from a JSON report, written as text or JSON
 * by the same code in both. Strings and arrays belong to whoever filled it. Times are ns, sizes bytes. */
#ifndef SHIM_REPORT_MODEL_H
#define SHIM_REPORT_MODEL_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include "policy/cost.h"
#include "shim/emitter.h"
#include "shim/report.h"
#include "shim/site.h"

/* Changes when a reader of the JSON could go wrong; additions leave it. */
#define REPORT_SCHEMA 1

enum report_frame_kind {
    FRAME_PYTHON, /* of a Python program: no code address; stands where the interpreter's own frames are */
    FRAME_PROGRAM,
    FRAME_CUDA,
    FRAME_SYSTEM,
    FRAME_KINDS
};

struct report_frame {
    const char *function, *file; /* NULL: unknown */
    const char *module;          /* path; NULL: generated code, or Python */
    const char *build_id;        /* hexadecimal; NULL: none */
    uint64_t offset;             /* of the return address in the module; the address itself without one */
    uint64_t in_function;        /* of the return address in the function; 0: unknown */
    uint32_t line;               /* 0: unknown */
    bool inlined;                /* into the next frame */
    enum report_frame_kind kind;
};

struct report_copies {
    uint64_t count, bytes, ns;
};

enum report_copy { COPIES_NATIVE_H2D, COPIES_NATIVE_D2H, COPIES_ELIDED_H2D, COPIES_ELIDED_D2H, REPORT_COPIES };

struct report_site {
    uint32_t id;
    uint64_t hash;
    const char *via; /* name of the CUDA library that allocated for the program; NULL: the program itself */
    struct report_frame *frames;
    size_t frame_count;
    struct usage usage[BUFFER_KINDS];
    struct report_copies copies[REPORT_COPIES];
    uint64_t moves_to_host, moves_to_device, saved_ns, lost_ns;
    uint64_t savable_ns; /* what the source could save of the driver's copies, an estimate */
    const char *reason;
    bool on_host, native_only;
    const char *hidden_by; /* the suppression that hides its leaks; NULL: none */
};

struct report_misuse_entry {
    enum misuse kind;
    uint32_t allocated, freed; /* ids of sites, 0: unknown */
    uint64_t address, count;
};

struct report_note_entry {
    const char *text;
    uint64_t count;
};

/* A moment of the run. */
struct report_sample {
    uint64_t time_ns; /* since the start */
    uint64_t live_bytes[BUFFER_KINDS];
    uint64_t copies_elided, copies_native, bytes_native;
};

struct report_move {
    uint64_t time_ns, took_ns, bytes;
    uint32_t site;
    bool to_host;
};

enum report_statistic {
#define STAT(name, unit, what) STATISTIC_##name,
#include "shim/stats.def"
#undef STAT
    REPORT_STATISTICS
};
extern const char *const report_statistic_names[REPORT_STATISTICS]; /* "copies_h2d_elided", ... */
extern const char *const report_statistic_words[REPORT_STATISTICS]; /* the same for people */
extern const enum report_unit { UNIT_COUNT, UNIT_BYTES, UNIT_NS } report_statistic_units[REPORT_STATISTICS];
extern const char *const report_kind_names[BUFFER_KINDS];    /* "device", "pool", ... */
extern const char *const report_misuse_names[MISUSE_KINDS];  /* "double_free", ... */
extern const char *const report_misuse_words[MISUSE_KINDS];  /* the same for people */
extern const char *const report_copies_names[REPORT_COPIES]; /* "native_h2d", ... */
extern const char *const report_frame_names[FRAME_KINDS];    /* "program", ... */

struct report {
    const char *version; /* of the shim */
    const char *program, *host, *rank, *mode;
    const char *cuda; /* "none": libcuda was not loaded; "seen": its calls came through the shim; "bypassed": loaded,
                         none did */
    bool running;     /* written on a signal: live buffers are no leaks yet */
    uint64_t pid, started_s /* since 1970 */, duration_ns, processes; /* processes: how many were merged into it */
    struct usage totals[BUFFER_KINDS];
    uint64_t statistics[REPORT_STATISTICS];
    struct report_site *sites; /* by rising id */
    size_t site_count;
    struct report_misuse_entry *misuses;
    size_t misuse_count;
    uint64_t misuses_left_out;
    struct report_note_entry *notes;
    size_t note_count;
    uint64_t notes_left_out;
    struct report_sample *samples;
    size_t sample_count;
    struct report_move *moves;
    size_t move_count;
};

struct report_amount {
    uint64_t bytes, count;
};
/* What was never freed. Large host blocks are listed and are no leaks: programs leave them to the system on purpose. */
struct report_leaks {
    struct report_amount live[BUFFER_KINDS];      /* still allocated, not hidden */
    struct report_amount abandoned[BUFFER_KINDS]; /* their context was destroyed before, not hidden */
    struct report_amount hidden[BUFFER_KINDS];    /* of both, hidden by suppressions */
    struct report_amount leaked, concealed;       /* sums: of the first two, and of the third, without BUFFER_HOST */
};
void report_leaks_of(const struct report *report, struct report_leaks *leaks);
/* Does anything of the site stand in the leaks, hidden or not, host blocks included? */
bool report_site_leaks(const struct report_site *site);
/* What it leaked of all kinds but host blocks; nothing if a suppression hides it. */
struct report_amount report_site_leaked(const struct report_site *site);
const struct report_site *report_site_of(const struct report *report, uint32_t id);
/* Wrong frees in all. */
uint64_t report_misuse_total(const struct report *report);
/* What the frames that people look for are: Python's if there are any, else the program's. */
enum report_frame_kind report_site_kind(const struct report_site *site);
/* The frame that people know a site by: the innermost of Python, else of the program, else of all; NULL: none. */
const struct report_frame *report_site_frame(const struct report_site *site);
/* Did anything of CUDA come by? */
bool report_saw_cuda(const struct report *report);
/* Worth a word although nobody asked? */
bool report_has_news(const struct report *report);

/* What the source could do about a site's copies. */
enum report_advice_kind {
    ADVICE_NONE,
    ADVICE_MAPPED /* small: keep it in mapped memory */,
    ADVICE_PINNED /* large: pin the host side */
};
struct report_advice {
    enum report_advice_kind kind;
    uint64_t copies, bytes, spent_ns /* waits for the GPU included */, saved_ns; /* saved: an estimate */
};
/* By what copies cost on this machine, for savable_ns. */
uint64_t report_savable_ns(const struct report_site *site, const struct cost *cost);
void report_advise(const struct report_site *site, struct report_advice *advice);

void usage_add(struct usage *to, const struct usage *from);
/* Adds what the other site's buffers did; names and reasons stay. */
void report_site_add(struct report_site *to, const struct report_site *from);
/* Adds up sites that read the same, before they are written for people. */
void report_merge_alike(struct report *report);
void report_write_text(struct emitter *emitter, const struct report *report);
void report_write_json(struct emitter *emitter, const struct report *report);
#endif
