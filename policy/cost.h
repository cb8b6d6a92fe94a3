/* What things cost: copies done by the driver and by the CPU, moves of a window, and how much slower a kernel can get.
 *
 * A struct cost starts with the measured defaults of one machine (cost_default), is replaced by a calibration file's
 * lines (cost_parse) and follows what the run itself measures (cost_observe). All times are ns, all sizes bytes.
 * Reading is thread-safe against cost_observe; observers racing each other may lose a sample, nothing else. */
#ifndef POLICY_COST_H
#define POLICY_COST_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum cost_direction { COST_H2D, COST_D2H };

/* What is known of the kernels that may touch a buffer; later ones are worse. */
enum cost_class {
    COST_PLAIN,   /* loads and stores only, as their PTX shows */
    COST_UNKNOWN, /* no PTX to tell: taken as the worst */
    COST_ATOMICS, /* global atomics, reductions or volatile polling */
    COST_CLASSES
};

enum cost_curve_index {
    COST_NATIVE_H2D, /* the driver's copy of pageable memory, GPU idle */
    COST_NATIVE_D2H,
    COST_ELIDED_H2D, /* the CPU's copy, GPU idle, with the question whether it is */
    COST_ELIDED_D2H,
    COST_MOVE_TO_HOST, /* a window's move by its live bytes, context quiet */
    COST_MOVE_TO_DEVICE,
    COST_WORST_PLAIN, /* longest time on the host / time on the device, by the bytes a kernel can reach there */
    COST_WORST_UNKNOWN,
    COST_WORST_ATOMICS,
    COST_CURVES
};

#define COST_POINTS 16

/* Values at ascending sizes; between two points a straight line, before the first flat, past the last the last line
 * goes on (times) or flat (factors). */
struct cost_curve {
    unsigned count; /* 1..COST_POINTS */
    uint64_t bytes[COST_POINTS];
    _Atomic float value[COST_POINTS];
};

struct cost {
    struct cost_curve curves[COST_CURVES];
    bool calibrated; /* a file's lines are in it */
};

void cost_default(struct cost *cost);

double cost_native_ns(const struct cost *cost, enum cost_direction direction, uint64_t bytes);
double cost_elided_ns(const struct cost *cost, enum cost_direction direction, uint64_t bytes);
/* What eliding one copy saves; may be negative for large ones. */
double cost_saved_ns(const struct cost *cost, enum cost_direction direction, uint64_t bytes);
double cost_move_ns(const struct cost *cost, bool to_host, uint64_t live_bytes);
/* To the host and back. */
double cost_round_trip_ns(const struct cost *cost, uint64_t live_bytes);
/* How many times longer than on the device a kernel may take, at least 1. */
double cost_worst_factor(const struct cost *cost, uint64_t live_bytes, enum cost_class kernels);

/* Most that one launch of `threads` threads can take longer because its buffers are on the host, when each thread makes
 * at most `accesses` loads and stores and `atomics` atomic operations there (UINT64_MAX: no bound known, the answer is
 * infinite): throughput of the bus, or the latency of each thread's chain of accesses, whichever is longer. */
double cost_launch_loss_ns(uint64_t threads, uint64_t accesses, uint64_t atomics);

/* A measured time of what `curve` describes. The nearest point drifts towards the median of its samples by at most 1/16
 * a sample, stays within 10 ns .. 100 s and pushes neighbours so that the curve never falls. Samples that waited for
 * the GPU must not be given. */
void cost_observe(struct cost *cost, enum cost_curve_index curve, uint64_t bytes, double ns);

/* Reads a calibration file's text:
 *     zcshim-cost 1
 *     # comment
 *     gpu any words
 *     native-h2d 4:5700 4K:8000 64K:22000
 * Curves: native-h2d, native-d2h, elided-h2d, elided-d2h, move-to-host, move-to-device (ns); worst-plain,
 * worst-unknown, worst-atomics (factors). Sizes ascend. A time below that of a smaller size is noise and raised to it;
 * so is a factor, since a hot spot may be a small part of a large buffer. Curves that are not named keep their values.
 * False leaves `cost` as it was and writes one line with the line number to `error`. */
bool cost_parse(struct cost *cost, const char *text, size_t length, char *error, size_t error_capacity);

/* Writes such a file; `gpu` is one line of words, may be null. Returns the length it has, as snprintf does; 4 KiB are
 * enough. */
size_t cost_format(char *buf, size_t capacity, const struct cost *cost, const char *gpu);

#endif
