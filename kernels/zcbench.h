/* zcbench: the bundled kernels on explicit-copy and on zero-copy memory, side by side.
 *
 * A case is one kernel with one buffer whose placement is in question ("data"); everything else it needs stays on the
 * device. A side is one answer to the question. A cell is a case at one size and one access density, measured on each
 * side: round trip by the host's clock (copies, kernel, wait) and kernel alone by events. Times are nanoseconds, sizes
 * bytes. Everything runs on one thread and one device. A function that can fail returns false after having said why on
 * stderr, once. */
#ifndef ZCBENCH_H
#define ZCBENCH_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <cuda_runtime_api.h>

#ifdef __cplusplus
extern "C" {
#endif

#define EXIT_NO_GPU  77
#define PARTIALS_MAX 4096
#define KIB          1024ull
#define MIB          (1024ull * 1024)

enum side { SIDE_PAGEABLE, SIDE_PINNED, SIDE_MAPPED, SIDE_REGISTERED, SIDE_COMBINED, SIDES };
extern const char *const side_name[SIDES];
extern const char *const side_text[SIDES];
static inline bool side_copies(enum side side) { return side == SIDE_PAGEABLE || side == SIDE_PINNED; }

enum case_id {
    CASE_READ,
    CASE_WRITE,
    CASE_MODIFY,
    CASE_PASSES,
    CASE_LOOKUP,
    CASE_LOOKUP_SHARED,
    CASE_GATHER,
    CASE_SCATTER,
    CASE_HISTOGRAM_INT,
    CASE_PIXEL,
    CASE_PIXEL_SHARED,
    CASE_POLL,
    CASE_HISTOGRAM_FLOAT,
    CASE_REDUCTION,
    CASE_FIR,
    CASE_FIR_SHARED,
    CASE_STENCIL,
    CASES
};

enum { DATA_IN = 1, DATA_OUT = 2, DATA_FLOAT = 4, DATA_POWER_OF_2 = 8 };

/* One launch of a case. `data`, `out`, `partial` are device addresses; which of out and partial a case writes, and
 * what, is in the kernel's own header. */
struct launch {
    enum case_id id;
    void *data;
    size_t bytes;
    double density; /* see struct bench_case */
    void *out;
    unsigned long long *partial;
    const float *signal;         /* FIR: FIR_SAMPLES + 4096 values */
    const unsigned short *image; /* pixel look-up: PIXELS values */
    unsigned seed;
    unsigned max_blocks;
    unsigned blocks; /* set by the launch: how many partials were written */
};

#define FIR_SAMPLES (64 * 1024)
#define PIXELS      (1024 * 1024)

struct bench_case {
    const char *name;     /* of the kernel */
    const char *question; /* what the data is, in a few words */
    unsigned flags;
    const char *density_unit; /* what `density` counts: fraction, passes, look-ups, adds; NULL: it has none */
    size_t bytes_max;         /* 0: any */
};
extern const struct bench_case bench_cases[CASES];

/* cases.cu: enqueues on the legacy stream. */
cudaError_t case_launch(struct launch *launch);
/* The launch's derived sizes; the reference uses them too. */
unsigned gather_count(size_t words, double density); /* a power of two, at least 1 */

/* reference.c: compares what a launch left behind with the CPU's answer, computed from the data before the launch.
 * False with `why` filled. All pointers are ordinary host memory here; `out` holds what the case promises. */
struct outcome {
    const void *before;
    const void *data;
    const void *out;
    const unsigned long long *partial;
    const float *signal;
    const unsigned short *image;
};
bool case_verify(const struct launch *launch, const struct outcome *outcome, char *why, size_t why_size);
unsigned host_mix(unsigned x);
size_t case_out_bytes(const struct launch *launch);

struct spread {
    double median, p10, p90; /* ns; median 0: not measured */
    unsigned samples;
};
struct spread spread_of(double *samples, unsigned count); /* sorts them */

struct cell {
    enum case_id id;
    size_t bytes;
    double density;
    unsigned gap_us; /* the GPU was left alone so long before each round trip */
    struct spread trip[SIDES], kernel[SIDES];
};
/* The faster of the two explicit sides, by round trip; and the fastest zero-copy side. */
enum side cell_best_copy(const struct cell *cell);
enum side cell_best_zero(const struct cell *cell);

/* One copy of the data for each side. device[] is what a kernel takes; for the copying sides it is the same device
 * buffer. */
struct places {
    size_t bytes;
    void *host[SIDES];
    void *device[SIDES];
    void *out;
    unsigned long long *partial;
    float *signal;
    unsigned short *image;
    float *signal_host;
    unsigned short *image_host;
    unsigned max_blocks;
};
bool places_create(struct places *places, size_t bytes, unsigned max_blocks);
void places_fill(struct places *places, bool floats, unsigned seed);
void places_destroy(struct places *places);
void fill_words(void *to, size_t bytes, unsigned seed);
void fill_floats(void *to, size_t bytes, unsigned seed); /* uniform in [0, 1) */
void places_launch(const struct places *places, struct launch *launch, enum side side);

/* measure.c: what a program does once per exchange, by the host's clock; and the kernel alone, by events. */
bool round_trip(const struct cell *cell, struct places *p, enum side side, unsigned turn, double *ns);
bool kernel_alone(const struct cell *cell, struct places *p, enum side side, unsigned turn, double *ns,
                  cudaEvent_t events[2]);
bool warm_up(struct places *places, double ns); /* keeps the GPU busy so long, that its clocks may rise */
/* Fills the cell's spreads; spends about budget_ns. */
bool cell_measure(struct cell *cell, struct places *places, double budget_ns);

struct machine {
    char gpu[256], uuid[40];
    int device, sms, driver, runtime;
    int can_map, registered_same_address, native_atomics, pageable_access, integrated;
    size_t memory, l2;
    char cpu[64], date[16]; /* the host's processor; the day of the run, as in 2026-11-30 */
};
bool machine_read(struct machine *machine);

/* The ten points of the report, each filled by its own file. */
#define CELLS_MAX 256
#define KINDS_MAX 16
#define WRONG_MAX 32
#define TUNES_MAX 64
#define GRIDS_MAX 8
#define BARS_MAX  128

struct kind_row {
    const char *name, *call;
    bool present;
    char error[48]; /* empty: it could be had */
    double allocate_ns, release_ns;
    double h2d_gbs, d2h_gbs, kernel_read_gbs, kernel_write_gbs, cpu_write_gbs, cpu_read_gbs; /* 0: not possible */
};
struct wrong_row {
    const char *use;
    char answer[96];
};
struct atomic_row {
    const char *who;
    const char *scope;
    unsigned long long expected, counted;
    double ns;
};
struct tune_row {
    char name[64];
    unsigned blocks; /* the fewest that come within 1 % of the best */
    double gbs;      /* the best */
    unsigned grids;  /* how many numbers of blocks were tried, which and how fast */
    unsigned grid[GRIDS_MAX];
    double grid_gbs[GRIDS_MAX];
};
struct bar {
    int way, lane, chunk; /* way: 0 neither, 1 streams, 2 zero-copy; lane: 0 copy in, 1 kernel, 2 copy out */
    double start_ns, end_ns;
};
struct bandwidth {
    double copy_h2d, copy_d2h, copy_both; /* the copy engine from and to pinned memory, GB/s */
    double zero_read, zero_write;         /* the best of the tuned kernels */
    double default_read, default_write;   /* the bundled stream_read and stream_write */
};

struct bench {
    struct machine machine;
    bool quick, tty;
    double budget_ns;
    double spent_s;
    struct cell cells[CELLS_MAX];
    unsigned cell_count;
    struct cell decisions[8];
    unsigned decision_count;
    struct kind_row kinds[KINDS_MAX];
    unsigned kind_count;
    struct wrong_row wrongs[WRONG_MAX];
    unsigned wrong_count;
    struct atomic_row atomics[8];
    unsigned atomic_count;
    struct tune_row tunes[TUNES_MAX];
    unsigned tune_count;
    struct bandwidth bandwidth;
    struct bar bars[BARS_MAX];
    unsigned bar_count;
    double overlap_ns[3];
};

bool kinds_measure(struct bench *bench);
bool wrong_uses(struct bench *bench);
int wrong_use_child(const char *name); /* runs in a process of its own; never returns if the use kills it */
bool atomics_measure(struct bench *bench);
bool overlap_measure(struct bench *bench);
bool bandwidth_measure(struct bench *bench);
/* tune.cu: variants of the streaming kernels; false where one failed. */
bool tune_measure(struct bench *bench, void *mapped, void *mapped_huge, size_t bytes);
cudaError_t transform_launch(const float *in, float *out, size_t count, unsigned rounds, cudaStream_t stream);
cudaError_t histogram_launch(unsigned *counts, unsigned mask, unsigned adds, bool system, unsigned blocks);
cudaError_t copy_launch(void *dst, const void *src, const size_t extent[3], const size_t dst_pitch[2],
                        const size_t src_pitch[2], unsigned blocks);
cudaError_t touch_launch(unsigned *data, size_t words, bool write); /* writes or reads every word */

int check_run(bool quick, unsigned seed);
bool calibrate_run(const struct machine *machine, const char *path); /* path NULL: the cache folder */

/* Output. */
#define RULE 1.10 /* within 10 % take zero-copy, since it saves code */
struct decision {
    const char *row;      /* small, seldom; ... */
    const char *textbook; /* zero-copy or explicit */
    const struct cell *cell;
};
unsigned decisions_list(const struct bench *bench, struct decision *rows, unsigned max);
/* The size up to which zero-copy (mapped) costs at most `limit` times the best explicit copy, along the cells of one
 * case and density; interpolated between measured sizes. 0: never; SIZE_MAX: at the
 * largest, too. `largest` and `sizes` (how many were measured) may be null. */
size_t crossover(const struct bench *bench, enum case_id id, double density, double limit, size_t *largest,
                 unsigned *sizes);
/* Where zero-copy stays within the limit up to the largest size but is not at the smallest: the size from which it is.
 * Else 0. */
size_t crossover_from(const struct bench *bench, enum case_id id, double density, double limit);
void print_report(const struct bench *bench, FILE *to);
void print_json(const struct bench *bench, FILE *to);
void print_csv(const struct bench *bench, FILE *to);
bool plot_write(const struct bench *bench, const char *path);
bool bench_load(struct bench *bench, const char *path); /* what print_json wrote; strings live as long as the process */
/* With its unit; of a fraction, one in how many; empty where the case has none. */
const char *format_density(const struct cell *cell, char *buf, size_t size);
const char *format_bytes(size_t bytes, char *buf, size_t size);
const char *format_ns(double ns, char *buf, size_t size);

double now_ns(void);
bool cuda_ok(cudaError_t error, const char *what, const char *file, int line);
#define TRY(call) cuda_ok((call), #call, __FILE__, __LINE__)

#ifdef __cplusplus
}
#endif
#endif
