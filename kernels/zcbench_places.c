/* The memory that the sides work on, and what fills it. */
#include <stdlib.h>
#include <string.h>
#include "kernels/zcbench.h"

const char *const side_name[SIDES] = {"pageable", "pinned", "mapped", "registered", "write-combined"};
const char *const side_text[SIDES] = {"copies from and to pageable memory", "copies from and to pinned memory",
                                      "zero-copy, cudaHostAlloc(Mapped)", "zero-copy, malloc + cudaHostRegister",
                                      "zero-copy, cudaHostAlloc(Mapped|WriteCombined)"};

/* A splitmix step gives two words. */
static uint64_t next_random(uint64_t *state)
{
    uint64_t z = (*state += 0x9e3779b97f4a7c15ull);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
    return z ^ (z >> 31);
}

void fill_words(void *to, size_t bytes, unsigned seed)
{
    uint64_t state = seed, z;
    size_t at = 0;
    for (; at + 8 <= bytes; at += 8) {
        z = next_random(&state);
        memcpy((char *)to + at, &z, 8);
    }
    z = next_random(&state);
    memcpy((char *)to + at, &z, bytes - at);
}

void fill_floats(void *to, size_t bytes, unsigned seed)
{
    uint64_t state = seed;
    float *floats = to;
    for (size_t i = 0; i < bytes / 4; i++) floats[i] = (float)(next_random(&state) >> 40) * 0x1p-24f;
}

static bool host_sides_create(struct places *p)
{
    const unsigned mapped = cudaHostAllocMapped;
    if (posix_memalign(&p->host[SIDE_PAGEABLE], 4096, p->bytes) ||
        posix_memalign(&p->host[SIDE_REGISTERED], 4096, p->bytes)) {
        fprintf(stderr, "zcbench: no memory for %zu bytes\n", p->bytes);
        return false;
    }
    memset(p->host[SIDE_REGISTERED], 0, p->bytes);
    if (!TRY(cudaHostRegister(p->host[SIDE_REGISTERED], p->bytes, cudaHostRegisterMapped))) {
        free(p->host[SIDE_REGISTERED]);
        p->host[SIDE_REGISTERED] = NULL;
        return false;
    }
    return TRY(cudaHostAlloc(&p->host[SIDE_PINNED], p->bytes, cudaHostAllocDefault)) &&
           TRY(cudaHostAlloc(&p->host[SIDE_MAPPED], p->bytes, mapped)) &&
           TRY(cudaHostAlloc(&p->host[SIDE_COMBINED], p->bytes, mapped | cudaHostAllocWriteCombined));
}

bool places_create(struct places *p, size_t bytes, unsigned max_blocks)
{
    memset(p, 0, sizeof *p);
    p->bytes = bytes;
    p->max_blocks = max_blocks;
    size_t out_bytes = bytes > PIXELS * 4 ? bytes : PIXELS * 4;
    size_t signal_bytes = (FIR_SAMPLES + 4096) * sizeof(float), image_bytes = PIXELS * sizeof(unsigned short);
    if (!host_sides_create(p)) return false;
    for (int side = 0; side < SIDES; side++) {
        if (side == SIDE_PINNED) {
            p->device[side] = p->device[SIDE_PAGEABLE];
        } else if (side == SIDE_PAGEABLE) {
            if (!TRY(cudaMalloc(&p->device[side], bytes))) return false;
        } else if (!TRY(cudaHostGetDevicePointer(&p->device[side], p->host[side], 0))) {
            return false;
        }
    }
    p->signal_host = malloc(signal_bytes);
    p->image_host = malloc(image_bytes);
    if (!p->signal_host || !p->image_host) return false;
    fill_floats(p->signal_host, signal_bytes, 11);
    fill_words(p->image_host, image_bytes, 12);
    return TRY(cudaMalloc(&p->out, out_bytes)) &&
           TRY(cudaMalloc((void **)&p->partial, (PARTIALS_MAX + 1) * sizeof *p->partial)) &&
           TRY(cudaMalloc((void **)&p->signal, signal_bytes)) && TRY(cudaMalloc((void **)&p->image, image_bytes)) &&
           TRY(cudaMemcpy(p->signal, p->signal_host, signal_bytes, cudaMemcpyHostToDevice)) &&
           TRY(cudaMemcpy(p->image, p->image_host, image_bytes, cudaMemcpyHostToDevice));
}

void places_fill(struct places *p, bool floats, unsigned seed)
{
    (floats ? fill_floats : fill_words)(p->host[SIDE_PAGEABLE], p->bytes, seed);
    for (int side = SIDE_PINNED; side < SIDES; side++) memcpy(p->host[side], p->host[SIDE_PAGEABLE], p->bytes);
    TRY(cudaMemcpy(p->device[SIDE_PAGEABLE], p->host[SIDE_PAGEABLE], p->bytes, cudaMemcpyHostToDevice));
}

void places_destroy(struct places *p)
{
    if (p->host[SIDE_REGISTERED]) cudaHostUnregister(p->host[SIDE_REGISTERED]);
    free(p->host[SIDE_REGISTERED]);
    free(p->host[SIDE_PAGEABLE]);
    cudaFreeHost(p->host[SIDE_PINNED]);
    cudaFreeHost(p->host[SIDE_MAPPED]);
    cudaFreeHost(p->host[SIDE_COMBINED]);
    cudaFree(p->device[SIDE_PAGEABLE]);
    cudaFree(p->out);
    cudaFree(p->partial);
    cudaFree(p->signal);
    cudaFree(p->image);
    free(p->signal_host);
    free(p->image_host);
    memset(p, 0, sizeof *p);
}

void places_launch(const struct places *p, struct launch *launch, enum side side)
{
    launch->data = p->device[side];
    launch->out = p->out;
    launch->partial = p->partial;
    launch->signal = p->signal;
    launch->image = p->image;
    launch->max_blocks = p->max_blocks;
}
