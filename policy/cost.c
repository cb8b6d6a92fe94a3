#include "cost.h"
#include "text.h"

#include <stdatomic.h>
#include <string.h>

#define COST_VERSION 1

/* Large copies of pageable memory go through registered or staged memory (design: large host blocks): 33 GB/s. */
#define STAGED_FIRST_NS 100000.0
#define STAGED_BYTE_NS  0.03

struct default_point {
    uint64_t bytes;
    float value;
};

static const char *const curve_names[COST_CURVES] = {
    "native-h2d",     "native-d2h",  "elided-h2d",    "elided-d2h",    "move-to-host",
    "move-to-device", "worst-plain", "worst-unknown", "worst-atomics",
};

/* Measured on one H200 by zcbench --calibrate (docs/results/kernels.cost), in ns; the largest sizes and the factors of
 * large buffers by single measurements. The factors are slow-downs of kernels, the largest seen in any smaller buffer:
 * a hot spot may be a small part of a large one. A zero size ends a row. */
static const struct default_point defaults[COST_CURVES][COST_POINTS] = {
    [COST_NATIVE_H2D] = {{4, 2500},
                         {1 << 10, 3200},
                         {4 << 10, 4450},
                         {16 << 10, 8600},
                         {64 << 10, 21100},
                         {256 << 10, 39400},
                         {1 << 20, 160000},
                         {16 << 20, 2580000},
                         {256 << 20, 46000000}},
    [COST_NATIVE_D2H] = {{4, 8370},
                         {1 << 10, 8680},
                         {4 << 10, 9090},
                         {16 << 10, 10900},
                         {64 << 10, 19100},
                         {256 << 10, 50900},
                         {1 << 20, 133000},
                         {16 << 20, 1290000},
                         {256 << 20, 22000000}},
    [COST_ELIDED_H2D] = {{4, 985},
                         {4 << 10, 1200},
                         {16 << 10, 1850},
                         {64 << 10, 4550},
                         {256 << 10, 12100},
                         {1 << 20, 75200},
                         {16 << 20, 1910000}},
    [COST_ELIDED_D2H] = {{4, 1020},
                         {4 << 10, 1180},
                         {16 << 10, 1700},
                         {64 << 10, 3830},
                         {256 << 10, 11100},
                         {1 << 20, 74800},
                         {16 << 20, 1990000}},
    [COST_MOVE_TO_HOST] = {{4 << 10, 135000},
                           {64 << 10, 152000},
                           {512 << 10, 431000},
                           {2 << 20, 502000},
                           {16 << 20, 3720000},
                           {64 << 20, 14000000}},
    [COST_MOVE_TO_DEVICE] = {{4 << 10, 123000},
                             {64 << 10, 127000},
                             {512 << 10, 227000},
                             {2 << 20, 436000},
                             {16 << 20, 2420000},
                             {64 << 20, 9700000}},
    [COST_WORST_PLAIN] =
        {{256, 17}, {4 << 10, 22.4F}, {64 << 10, 34.3F}, {256 << 10, 138}, {1 << 20, 220}, {16 << 20, 230}},
    [COST_WORST_UNKNOWN] = {{4, 1510}},
    [COST_WORST_ATOMICS] = {{4, 1510}},
};

static float value_get(const struct cost_curve *curve, unsigned i)
{
    return atomic_load_explicit(&curve->value[i], memory_order_relaxed);
}

static void value_set(struct cost_curve *curve, unsigned i, float value)
{
    atomic_store_explicit(&curve->value[i], value, memory_order_relaxed);
}

void cost_default(struct cost *cost)
{
    memset(cost, 0, sizeof *cost);
    for (unsigned c = 0; c < COST_CURVES; c++) {
        struct cost_curve *curve = &cost->curves[c];
        while (curve->count < COST_POINTS && defaults[c][curve->count].bytes) {
            curve->bytes[curve->count] = defaults[c][curve->count].bytes;
            value_set(curve, curve->count, defaults[c][curve->count].value);
            curve->count++;
        }
    }
}

static double curve_at(const struct cost_curve *curve, uint64_t bytes, bool goes_on)
{
    unsigned last = curve->count - 1, i = 1;
    if (bytes <= curve->bytes[0] || curve->count == 1) return (double)value_get(curve, 0);
    if (bytes >= curve->bytes[last] && !goes_on) return (double)value_get(curve, last);
    while (i < last && bytes > curve->bytes[i]) i++;
    double left = (double)value_get(curve, i - 1), right = (double)value_get(curve, i);
    double part = (double)(bytes - curve->bytes[i - 1]) / (double)(curve->bytes[i] - curve->bytes[i - 1]);
    return left + part * (right - left);
}

double cost_native_ns(const struct cost *cost, enum cost_direction direction, uint64_t bytes)
{
    double ns = curve_at(&cost->curves[direction == COST_H2D ? COST_NATIVE_H2D : COST_NATIVE_D2H], bytes, true);
    double staged = STAGED_FIRST_NS + (double)bytes * STAGED_BYTE_NS;
    return ns < staged ? ns : staged;
}

double cost_elided_ns(const struct cost *cost, enum cost_direction direction, uint64_t bytes)
{
    return curve_at(&cost->curves[direction == COST_H2D ? COST_ELIDED_H2D : COST_ELIDED_D2H], bytes, true);
}

double cost_saved_ns(const struct cost *cost, enum cost_direction direction, uint64_t bytes)
{
    return cost_native_ns(cost, direction, bytes) - cost_elided_ns(cost, direction, bytes);
}

double cost_move_ns(const struct cost *cost, bool to_host, uint64_t live_bytes)
{
    return curve_at(&cost->curves[to_host ? COST_MOVE_TO_HOST : COST_MOVE_TO_DEVICE], live_bytes, true);
}

double cost_round_trip_ns(const struct cost *cost, uint64_t live_bytes)
{
    return cost_move_ns(cost, true, live_bytes) + cost_move_ns(cost, false, live_bytes);
}

double cost_worst_factor(const struct cost *cost, uint64_t live_bytes, enum cost_class kernels)
{
    double factor = curve_at(&cost->curves[COST_WORST_PLAIN + (unsigned)kernels], live_bytes, false);
    return factor < 1 ? 1 : factor;
}

double cost_launch_loss_ns(uint64_t threads, uint64_t accesses, uint64_t atomics)
{
    /* Measured: 1.5 ns a random look-up, 55 ns an atomic; about 2 us from asking to answer; a GPU holds some 200 000
     * threads. */
    const double access_ns = 2, atomic_ns = 60, latency_ns = 2500, resident = 200000;
    if (accesses == UINT64_MAX || atomics == UINT64_MAX) return __builtin_inf();
    double each = (double)accesses + (double)atomics, count = (double)threads;
    double waves = count > resident ? count / resident : 1;
    return count * ((double)accesses * access_ns + (double)atomics * atomic_ns) + each * latency_ns * waves;
}

static double distance(uint64_t a, uint64_t b)
{
    double x = (double)a + 1, y = (double)b + 1;
    return x > y ? x / y : y / x;
}

void cost_observe(struct cost *cost, enum cost_curve_index index, uint64_t bytes, double ns)
{
    struct cost_curve *curve = &cost->curves[index];
    unsigned nearest = 0;
    if (!(ns > 0)) return;
    for (unsigned i = 1; i < curve->count; i++)
        if (distance(bytes, curve->bytes[i]) < distance(bytes, curve->bytes[nearest])) nearest = i;

    double estimate = curve_at(curve, bytes, true);
    double step = estimate > 0 ? ns / estimate - 1 : 0;
    if (step > 1.0 / 16) step = 1.0 / 16;
    if (step < -1.0 / 16) step = -1.0 / 16;
    double value = (double)value_get(curve, nearest) * (1 + step);
    if (value < 10) value = 10;
    if (value > 1e11) value = 1e11;
    value_set(curve, nearest, (float)value);
    for (unsigned i = nearest + 1; i < curve->count && value_get(curve, i) < (float)value; i++)
        value_set(curve, i, (float)value);
    for (unsigned i = nearest; i-- > 0 && value_get(curve, i) > (float)value;) value_set(curve, i, (float)value);
}

static bool fail(char *error, size_t capacity, unsigned line, const char *what)
{
    struct text text = text_into(error, capacity);
    text_add(&text, "calibration file, line ");
    text_u64(&text, line);
    text_add(&text, ": ");
    text_add(&text, what);
    return false;
}

/* Null if the points of a line went into the curve, else what is wrong. */
static const char *curve_parse(struct cost_curve *curve, struct span rest, bool factor)
{
    curve->count = 0;
    for (struct span word = span_word(&rest); word.at < word.end; word = span_word(&rest)) {
        const char *colon = memchr(word.at, ':', span_length(word));
        uint64_t bytes;
        double value;
        if (!colon) return "not size:number";
        if (curve->count == COST_POINTS) return "more than 16 points";
        if (!span_size((struct span){word.at, colon}, &bytes)) return "not a size before the colon";
        if (!span_number((struct span){colon + 1, word.end}, &value)) return "not a number after the colon";
        if (value < (factor ? 1 : 0.001) || value > 1e12) return "number out of range";
        if (curve->count && bytes <= curve->bytes[curve->count - 1]) return "sizes do not ascend";
        if (curve->count && (float)value < value_get(curve, curve->count - 1))
            value = (double)value_get(curve, curve->count - 1);
        curve->bytes[curve->count] = bytes;
        value_set(curve, curve->count, (float)value);
        curve->count++;
    }
    return curve->count ? NULL : "no points";
}

bool cost_parse(struct cost *cost, const char *text, size_t length, char *error, size_t capacity)
{
    struct cost parsed = *cost;
    struct span rest = {text, text + length};
    struct span line = span_trim(span_line(&rest));
    struct span word = span_word(&line);
    uint64_t version;

    if (!span_is(word, "zcshim-cost")) return fail(error, capacity, 1, "does not start with zcshim-cost 1");
    if (!span_u64(span_trim(line), &version) || version != COST_VERSION)
        return fail(error, capacity, 1, "another version than 1: calibrate again");
    for (unsigned number = 2; rest.at < rest.end; number++) {
        line = span_trim(span_line(&rest));
        if (line.at == line.end || *line.at == '#') continue;
        word = span_word(&line);
        if (span_is(word, "gpu")) continue;
        unsigned c = 0;
        while (c < COST_CURVES && !span_is(word, curve_names[c])) c++;
        if (c == COST_CURVES) return fail(error, capacity, number, "unknown word at its start");
        const char *wrong = curve_parse(&parsed.curves[c], line, c >= COST_WORST_PLAIN);
        if (wrong) return fail(error, capacity, number, wrong);
    }
    parsed.calibrated = true;
    *cost = parsed;
    return true;
}

size_t cost_format(char *buf, size_t capacity, const struct cost *cost, const char *gpu)
{
    struct text text = text_into(buf, capacity);
    text_add(&text, "zcshim-cost 1\n");
    if (gpu) {
        text_add(&text, "gpu ");
        text_add(&text, gpu);
        text_add(&text, "\n");
    }
    for (unsigned c = 0; c < COST_CURVES; c++) {
        const struct cost_curve *curve = &cost->curves[c];
        text_add(&text, curve_names[c]);
        for (unsigned i = 0; i < curve->count; i++) {
            text_add(&text, " ");
            text_size(&text, curve->bytes[i]);
            text_add(&text, ":");
            text_number(&text, (double)value_get(curve, i), c >= COST_WORST_PLAIN ? 3 : 0);
        }
        text_add(&text, "\n");
    }
    return text.length;
}
