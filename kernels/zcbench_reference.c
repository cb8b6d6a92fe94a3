/* What each case must have left behind, computed by the CPU from the data before the launch. */
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include "kernels/zcbench.h"

unsigned host_mix(unsigned x)
{
    x ^= x >> 16;
    x *= 0x7feb352dU;
    x ^= x >> 15;
    x *= 0x846ca68bU;
    return x ^ (x >> 16);
}

static size_t position(unsigned k, unsigned count, unsigned stride, unsigned seed)
{
    unsigned slot = (k * 0x9e3779b1U + seed) & (count - 1);
    unsigned jitter = (unsigned)(((unsigned long long)host_mix(slot ^ seed) * stride) >> 32);
    return (size_t)slot * stride + jitter;
}

size_t case_out_bytes(const struct launch *l)
{
    switch (l->id) {
    case CASE_GATHER:
        return gather_count(l->bytes / 4, l->density) * sizeof(unsigned);
    case CASE_PIXEL:
    case CASE_PIXEL_SHARED:
        return PIXELS * sizeof(unsigned);
    case CASE_FIR:
    case CASE_FIR_SHARED:
        return FIR_SAMPLES * sizeof(float);
    case CASE_STENCIL:
        return l->bytes;
    default:
        return 0;
    }
}

static bool same_sum(const struct launch *l, const struct outcome *o, unsigned long long expected, char *why,
                     size_t size)
{
    unsigned long long sum = 0;
    for (unsigned b = 0; b < l->blocks; b++) sum += o->partial[b];
    if (sum == expected) return true;
    snprintf(why, size, "sum %llu instead of %llu", sum, expected);
    return false;
}

static bool same_word(size_t i, unsigned got, unsigned expected, char *why, size_t size)
{
    if (got == expected) return true;
    snprintf(why, size, "word %zu is 0x%x instead of 0x%x", i, got, expected);
    return false;
}

/* `scale` is the sum of the magnitudes that went in: what rounding in another order may move the result by. */
static bool near(size_t i, double got, double expected, double scale, char *why, size_t size)
{
    if (fabs(got - expected) <= 1e-5 * (scale + 1e-3)) return true; /* false for NaN */
    snprintf(why, size, "value %zu is %.9g instead of %.9g", i, got, expected);
    return false;
}

static unsigned long long sum_words(const unsigned *words, size_t count)
{
    unsigned long long sum = 0;
    for (size_t i = 0; i < count; i++) sum += words[i];
    return sum;
}

static bool verify_scatter(const struct launch *l, const struct outcome *o, char *why, size_t size)
{
    size_t words = l->bytes / 4;
    unsigned count = gather_count(words, l->density), stride = (unsigned)(words / count);
    unsigned *expected = malloc(l->bytes);
    if (!expected) abort();
    memcpy(expected, o->before, l->bytes);
    for (unsigned k = 0; k < count; k++) expected[position(k, count, stride, l->seed)] = host_mix(k + l->seed);
    bool same = true;
    for (size_t i = 0; same && i < words; i++)
        same = same_word(i, ((const unsigned *)o->data)[i], expected[i], why, size);
    free(expected);
    return same;
}

static bool verify_histogram(const struct launch *l, const struct outcome *o, char *why, size_t size)
{
    size_t bins = l->bytes / 4;
    unsigned *added = calloc(bins, sizeof *added);
    if (!added) abort();
    for (unsigned i = 0; i < (unsigned)l->density; i++) added[host_mix(i + l->seed) & (bins - 1)]++;
    bool same = true;
    for (size_t i = 0; same && i < bins; i++) {
        if (l->id == CASE_HISTOGRAM_INT) {
            same = same_word(i, ((const unsigned *)o->data)[i], ((const unsigned *)o->before)[i] + added[i], why, size);
            continue;
        }
        float got = ((const float *)o->data)[i], before = ((const float *)o->before)[i];
        if (before == floorf(before)) /* whole numbers add up exactly */
            same = got == before + (float)added[i];
        else
            same = fabsf(got - before - (float)added[i]) <= 1e-6f * (1 + (float)added[i] * (float)added[i]);
        if (!same) snprintf(why, size, "bin %zu is %.9g instead of %.9g + %u", i, got, before, added[i]);
    }
    free(added);
    return same;
}

static bool verify_fir(const struct launch *l, const struct outcome *o, char *why, size_t size)
{
    const float *coefficient = o->before, *out = o->out;
    size_t taps = l->bytes / 4;
    size_t stride = taps > 256 ? 61 : 1; /* long filters: a sample of the outputs, the last included */
    for (size_t i = 0; i < FIR_SAMPLES; i += stride) {
        size_t at = i + stride < FIR_SAMPLES ? i : FIR_SAMPLES - 1;
        double sum = 0, scale = 0;
        for (size_t t = 0; t < taps; t++) {
            double term = (double)coefficient[t] * o->signal[at + t];
            sum += term;
            scale += fabs(term);
        }
        if (!near(at, out[at], sum, scale, why, size)) return false;
    }
    return true;
}

static bool verify_stencil(const struct launch *l, const struct outcome *o, char *why, size_t size)
{
    const float *in = o->before, *out = o->out;
    size_t count = l->bytes / 4, width = 64;
    while (width * width < count) width *= 2;
    if (width > count) width = count;
    size_t height = count / width;
    for (size_t i = 0; i < width * height; i++) {
        size_t x = i % width, y = i / width;
        double expected = in[i];
        if (x && y && x != width - 1 && y != height - 1)
            expected = 0.2 * ((double)in[i] + in[i - 1] + in[i + 1] + in[i - width] + in[i + width]);
        if (!near(i, out[i], expected, 1, why, size)) return false;
    }
    return true;
}

static bool verify_words(const struct launch *l, const struct outcome *o, char *why, size_t size)
{
    const unsigned *before = o->before, *data = o->data, *out = o->out;
    size_t words = l->bytes / 4;
    unsigned count = l->id == CASE_GATHER ? gather_count(words, l->density) : 0;
    unsigned stride = count ? (unsigned)(words / count) : 0;
    size_t items = l->id == CASE_GATHER ? count : l->id == CASE_WRITE || l->id == CASE_MODIFY ? words : PIXELS;
    for (size_t i = 0; i < items; i++) {
        bool same;
        if (l->id == CASE_WRITE)
            same = same_word(i, data[i], host_mix((unsigned)i + l->seed), why, size);
        else if (l->id == CASE_MODIFY)
            same = same_word(i, data[i], before[i] * (l->seed | 1) + (l->seed ^ 77), why, size);
        else if (l->id == CASE_GATHER)
            same = same_word(i, out[i], before[position((unsigned)i, count, stride, l->seed)], why, size);
        else
            same = same_word(i, out[i], before[o->image[i] & (words - 1)], why, size);
        if (!same) return false;
    }
    return true;
}

bool case_verify(const struct launch *l, const struct outcome *o, char *why, size_t size)
{
    const unsigned *before = o->before;
    size_t words = l->bytes / 4;
    unsigned long long sum = 0;

    if (!(bench_cases[l->id].flags & DATA_OUT) && memcmp(o->before, o->data, l->bytes)) {
        snprintf(why, size, "the kernel only reads, and the data changed");
        return false;
    }
    switch (l->id) {
    case CASE_READ:
        return same_sum(l, o, sum_words(before, words), why, size);
    case CASE_PASSES: {
        unsigned passes = (unsigned)l->density;
        return same_sum(l, o, sum_words(before, words) * (passes * (passes + 1ull) / 2), why, size);
    }
    case CASE_LOOKUP:
    case CASE_LOOKUP_SHARED:
        for (unsigned i = 0; i < (unsigned)l->density; i++) sum += before[host_mix(i + l->seed) & (words - 1)];
        return same_sum(l, o, sum, why, size);
    case CASE_POLL:
        return same_sum(l, o, (unsigned long long)before[0] * (unsigned)l->density * 256 * l->blocks, why, size);
    case CASE_WRITE:
    case CASE_MODIFY:
    case CASE_GATHER:
    case CASE_PIXEL:
    case CASE_PIXEL_SHARED:
        return verify_words(l, o, why, size);
    case CASE_SCATTER:
        return verify_scatter(l, o, why, size);
    case CASE_HISTOGRAM_INT:
    case CASE_HISTOGRAM_FLOAT:
        return verify_histogram(l, o, why, size);
    case CASE_REDUCTION: {
        double total = 0;
        float got;
        for (size_t i = 0; i < words; i++) total += ((const float *)o->before)[i];
        memcpy(&got, o->partial + PARTIALS_MAX, sizeof got);
        return near(0, got, total, total, why, size);
    }
    case CASE_FIR:
    case CASE_FIR_SHARED:
        return verify_fir(l, o, why, size);
    case CASE_STENCIL:
        return verify_stencil(l, o, why, size);
    case CASES:
        break;
    }
    snprintf(why, size, "no reference");
    return false;
}
