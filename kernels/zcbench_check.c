/* zcbench --check: every kernel on every side against the CPU, with fresh random input and poisoned output. */
#include <stdlib.h>
#include <string.h>
#include "kernels/zcbench.h"

#define POISON 0xa5

struct check {
    struct places places;
    void *before, *data, *out;
    unsigned long long *partial;
    unsigned seed;
    unsigned done, failed;
};

static bool check_create(struct check *c, size_t bytes, unsigned blocks)
{
    memset(c, 0, sizeof *c);
    if (!places_create(&c->places, bytes, blocks)) return false;
    c->before = malloc(bytes);
    c->data = malloc(bytes);
    c->out = malloc(bytes > PIXELS * 4 ? bytes : PIXELS * 4);
    c->partial = malloc((PARTIALS_MAX + 1) * sizeof *c->partial);
    return c->before && c->data && c->out && c->partial;
}

static void check_destroy(struct check *c)
{
    places_destroy(&c->places);
    free(c->before);
    free(c->data);
    free(c->out);
    free(c->partial);
}

static void fill_input(struct check *c, const struct launch *l, unsigned flags)
{
    if (flags & DATA_FLOAT)
        fill_floats(c->before, l->bytes, l->seed);
    else
        fill_words(c->before, l->bytes, l->seed);
    if (l->id == CASE_HISTOGRAM_FLOAT) { /* whole numbers, so that the counts must be exact */
        float *counts = c->before;
        for (size_t i = 0; i < l->bytes / 4; i++) counts[i] = (float)(int)(counts[i] * 1000);
    }
}

/* Runs the launch on one side and brings everything that it may have written to ordinary memory. */
static bool run_side(struct check *c, struct launch *l, enum side side, unsigned flags)
{
    struct places *p = &c->places;
    size_t out_bytes = case_out_bytes(l);
    if (flags & DATA_IN)
        memcpy(p->host[side], c->before, l->bytes);
    else
        memset(p->host[side], POISON, l->bytes);
    places_launch(p, l, side);
    if (side_copies(side) && !TRY(cudaMemcpy(l->data, p->host[side], l->bytes, cudaMemcpyHostToDevice))) return false;
    if (!TRY(cudaMemset(l->partial, POISON, (PARTIALS_MAX + 1) * sizeof *l->partial))) return false;
    if (out_bytes && !TRY(cudaMemset(l->out, POISON, out_bytes))) return false;
    if (!TRY(case_launch(l)) || !TRY(cudaDeviceSynchronize())) return false;
    if (side_copies(side) && !TRY(cudaMemcpy(p->host[side], l->data, l->bytes, cudaMemcpyDeviceToHost))) return false;
    memcpy(c->data, p->host[side], l->bytes);
    if (out_bytes && !TRY(cudaMemcpy(c->out, l->out, out_bytes, cudaMemcpyDeviceToHost))) return false;
    return TRY(cudaMemcpy(c->partial, l->partial, (PARTIALS_MAX + 1) * sizeof *l->partial, cudaMemcpyDeviceToHost));
}

static void check_one(struct check *c, enum case_id id, size_t bytes, double density)
{
    unsigned flags = bench_cases[id].flags;
    for (int side = 0; side < SIDES; side++) {
        struct launch l = {.id = id, .bytes = bytes, .density = density, .seed = host_mix(c->seed + c->done)};
        char why[160] = "a call failed";
        fill_input(c, &l, flags);
        struct outcome o = {c->before, c->data, c->out, c->partial, c->places.signal_host, c->places.image_host};
        c->done++;
        if (run_side(c, &l, (enum side)side, flags) && case_verify(&l, &o, why, sizeof why)) continue;
        c->failed++;
        fprintf(stderr, "FAILED %s, %zu bytes, density %g, %s: %s\n", bench_cases[id].name, bytes, density,
                side_name[side], why);
    }
}

static void check_case(struct check *c, enum case_id id, bool quick)
{
    static const size_t sizes[] = {4, 20, 256, 1000, 4 * KIB, 32 * KIB, 66052, 1 * MIB, 4 * MIB};
    static const double fractions[] = {1, 0.1, 0.001};
    static const double counts[] = {1, 3000, 200000};
    unsigned flags = bench_cases[id].flags;
    unsigned failed = c->failed, done = c->done;
    const char *unit = bench_cases[id].density_unit;
    for (size_t s = 0; s < sizeof sizes / sizeof *sizes; s++) {
        size_t bytes = sizes[s];
        if (bench_cases[id].bytes_max && bytes > bench_cases[id].bytes_max) continue;
        if ((flags & DATA_POWER_OF_2) && (bytes & (bytes - 1))) continue;
        if (quick && bytes > 70 * KIB) continue;
        if (!unit) {
            check_one(c, id, bytes, 1);
        } else if (!strcmp(unit, "fraction")) {
            for (int i = 0; i < 3; i++) check_one(c, id, bytes, fractions[i]);
        } else if (!strcmp(unit, "passes") || !strcmp(unit, "reads")) {
            for (int i = 1; i < 4; i += 2) check_one(c, id, bytes, i);
        } else {
            for (int i = 0; i < (quick ? 2 : 3); i++) check_one(c, id, bytes, counts[i]);
        }
    }
    printf("%-20s %s (%u runs)\n", bench_cases[id].name, c->failed == failed ? "ok" : "FAILED", c->done - done);
    fflush(stdout);
}

/* The copy kernel: random boxes, pitches and alignments between device and mapped memory, canaries around them. */
static bool copy_once(struct check *c, unsigned *state)
{
    unsigned r[12];
    for (int i = 0; i < 12; i++) r[i] = *state = host_mix(*state + 1);
    size_t align = (size_t)1 << r[0] % 5, extent[3] = {r[1] % 300, 1 + r[2] % 4, 1 + r[3] % 3};
    if (r[4] % 3 == 0) extent[0] = r[1] % 20000, extent[1] = extent[2] = 1;
    if (r[4] % 3 == 1) extent[0] = 4 << r[1] % 3, extent[1] = extent[2] = 1;
    size_t row = (extent[0] + align - 1) / align * align;
    size_t dst_pitch[2] = {row + align * (r[5] % 3)}, src_pitch[2] = {row + align * (r[6] % 3)};
    dst_pitch[1] = dst_pitch[0] * extent[1] + align * (r[7] % 3);
    src_pitch[1] = src_pitch[0] * extent[1] + align * (r[8] % 3);
    size_t dst_at = r[9] % 32 / align * align, src_at = r[10] % 32 / align * align;
    size_t dst_bytes = dst_at + dst_pitch[1] * extent[2] + 64, src_bytes = src_at + src_pitch[1] * extent[2] + 64;
    char *mapped = c->places.host[SIDE_MAPPED], *device = c->places.device[SIDE_PAGEABLE], *expected = c->out;
    bool to_device = r[11] & 1;

    fill_words(c->before, src_bytes, *state);
    memset(expected, POISON, dst_bytes);
    for (size_t z = 0; z < extent[2]; z++)
        for (size_t y = 0; y < extent[1]; y++)
            memcpy(expected + dst_at + z * dst_pitch[1] + y * dst_pitch[0],
                   (char *)c->before + src_at + z * src_pitch[1] + y * src_pitch[0], extent[0]);
    if (to_device) {
        memcpy(mapped, c->before, src_bytes);
        if (!TRY(cudaMemset(device, POISON, dst_bytes))) return false;
    } else {
        memset(mapped, POISON, dst_bytes);
        if (!TRY(cudaMemcpy(device, c->before, src_bytes, cudaMemcpyHostToDevice))) return false;
    }
    char *mapped_there = c->places.device[SIDE_MAPPED];
    char *dst = to_device ? device : mapped_there, *src = to_device ? mapped_there : device;
    if (!TRY(copy_launch(dst + dst_at, src + src_at, extent, dst_pitch, src_pitch, 1 + r[0] % 7)) ||
        !TRY(cudaDeviceSynchronize()))
        return false;
    if (to_device && !TRY(cudaMemcpy(c->data, device, dst_bytes, cudaMemcpyDeviceToHost))) return false;
    return !memcmp(to_device ? c->data : mapped, expected, dst_bytes);
}

static void check_copy(struct check *c, unsigned times)
{
    unsigned state = c->seed, failed = 0;
    for (unsigned i = 0; i < times; i++) failed += !copy_once(c, &state);
    c->done += times;
    c->failed += failed;
    printf("%-20s %s (%u runs)\n", "zc_copy", failed ? "FAILED" : "ok", times);
}

static void check_transform(struct check *c)
{
    size_t count = 5000;
    float *in = c->before, *out = c->data;
    unsigned failed = 0;
    fill_floats(in, count * 4, c->seed);
    if (!TRY(cudaMemcpy(c->places.device[SIDE_PAGEABLE], in, count * 4, cudaMemcpyHostToDevice)) ||
        !TRY(cudaMemset(c->places.out, POISON, count * 4)) ||
        !TRY(transform_launch(c->places.device[SIDE_PAGEABLE], c->places.out, count, 9, 0)) ||
        !TRY(cudaMemcpy(out, c->places.out, count * 4, cudaMemcpyDeviceToHost)))
        failed = 1;
    for (size_t i = 0; !failed && i < count; i++) {
        double x = in[i];
        for (int r = 0; r < 9; r++) x = x * 0.999f + 0.001f;
        if (!(out[i] > x - 1e-5 && out[i] < x + 1e-5)) failed = 1;
    }
    c->done++;
    c->failed += failed;
    printf("%-20s %s (1 run)\n", "transform_rounds", failed ? "FAILED" : "ok");
}

static void check_system_atomics(struct check *c)
{
    unsigned *counts = c->places.host[SIDE_MAPPED], sum = 0;
    memset(counts, 0, 16 * sizeof *counts);
    bool ran = TRY(histogram_launch(c->places.device[SIDE_MAPPED], 15, 3000, true, 3)) && TRY(cudaDeviceSynchronize());
    for (int i = 0; i < 16; i++) sum += counts[i];
    bool ok = ran && sum == 3000;
    c->done++;
    c->failed += !ok;
    printf("%-20s %s (1 run)\n", "histogram_system", ok ? "ok" : "FAILED");
}

int check_run(bool quick, unsigned seed)
{
    struct check c;
    struct machine machine;
    if (!machine_read(&machine)) return EXIT_FAILURE;
    if (!check_create(&c, 8 * MIB, quick ? 3 : machine.sms * 4)) return EXIT_FAILURE;
    c.seed = seed;
    printf("checking the bundled kernels on %s, seed %u\n", machine.gpu, seed);
    for (int id = 0; id < CASES; id++) check_case(&c, (enum case_id)id, quick);
    check_copy(&c, quick ? 200 : 2000);
    check_transform(&c);
    check_system_atomics(&c);
    printf("%u runs, %u failed\n", c.done, c.failed);
    unsigned failed = c.failed;
    check_destroy(&c);
    return failed ? EXIT_FAILURE : EXIT_SUCCESS;
}
