// What only a real GPU does: textures, symbols, arrays, cooperative launches, batches.
#include "programs.h"
#include <cooperative_groups.h>
#include <cuda_runtime.h>

#undef SNIPPET
#define SNIPPET(id, tags, what)                                                                                        \
    static void run_##id();                                                                                            \
    static const struct snippet snippet_##id = {#id, tags, what, run_##id};                                            \
    static const struct snippet *const entry_##id __attribute__((section("snippets"), used)) = &snippet_##id;          \
    static void run_##id()

enum { WORDS = 1024, BYTES = 4 * WORDS };

static __global__ void through_texture(unsigned *out, cudaTextureObject_t texture, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < count) out[i] = tex1Dfetch<unsigned>(texture, (i * 37) % count);
}

static __global__ void through_texture_2d(float *out, cudaTextureObject_t texture, int width, int height)
{
    int x = threadIdx.x, y = blockIdx.x;
    if (x < width && y < height) out[y * width + x] = tex2D<float>(texture, x + 0.5f, y + 0.5f);
}

SNIPPET(textures, "gpu", "linear and pitched textures over small buffers that are copied to between launches")
{
    unsigned *device, *out, host[WORDS], back[WORDS];
    MUST(cudaMalloc((void **)&device, BYTES));
    MUST(cudaMalloc((void **)&out, BYTES));
    cudaResourceDesc resource = {};
    resource.resType = cudaResourceTypeLinear;
    resource.res.linear.devPtr = device;
    resource.res.linear.desc = cudaCreateChannelDesc<unsigned>();
    resource.res.linear.sizeInBytes = BYTES;
    cudaTextureDesc reading = {};
    reading.readMode = cudaReadModeElementType;
    cudaTextureObject_t texture;
    MUST(cudaCreateTextureObject(&texture, &resource, &reading, NULL));
    int wrong = 0;
    for (unsigned round = 0; round < 50; round++) {
        for (int i = 0; i < WORDS; i++) host[i] = round * 7 + i;
        MUST(cudaMemcpy(device, host, BYTES, cudaMemcpyHostToDevice));
        through_texture<<<WORDS / 128, 128>>>(out, texture, WORDS);
        MUST(cudaMemcpy(back, out, BYTES, cudaMemcpyDeviceToHost));
        for (int i = 0; i < WORDS; i++) wrong += back[i] != host[(i * 37) % WORDS];
    }
    expect(!wrong, "linear");
    MUST(cudaDestroyTextureObject(texture));

    float *pitched, *out2 = (float *)out, image[32 * 20], result[32 * 20];
    size_t pitch;
    MUST(cudaMallocPitch((void **)&pitched, &pitch, 32 * 4, 20));
    resource = {};
    resource.resType = cudaResourceTypePitch2D;
    resource.res.pitch2D.devPtr = pitched;
    resource.res.pitch2D.desc = cudaCreateChannelDesc<float>();
    resource.res.pitch2D.width = 32;
    resource.res.pitch2D.height = 20;
    resource.res.pitch2D.pitchInBytes = pitch;
    MUST(cudaCreateTextureObject(&texture, &resource, &reading, NULL));
    wrong = 0;
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 640; i++) image[i] = (float)(round + i);
        MUST(cudaMemcpy2D(pitched, pitch, image, 128, 128, 20, cudaMemcpyHostToDevice));
        through_texture_2d<<<20, 32>>>(out2, texture, 32, 20);
        MUST(cudaMemcpy(result, out2, sizeof(result), cudaMemcpyDeviceToHost));
        wrong += memcmp(result, image, sizeof(image)) != 0;
    }
    expect(!wrong, "pitched");
    MUST(cudaDestroyTextureObject(texture));
    MUST(cudaFree(device));
    MUST(cudaFree(out));
    MUST(cudaFree(pitched));
}

static __constant__ unsigned factors[64];
static __device__ unsigned totals[64];
static __global__ void multiply(const unsigned *in) { totals[threadIdx.x] = in[threadIdx.x] * factors[threadIdx.x]; }

SNIPPET(symbols, "gpu", "constant and device symbols beside small buffers")
{
    unsigned host[64], back[64], *device, *address;
    MUST(cudaMalloc((void **)&device, sizeof(host)));
    int wrong = 0;
    for (unsigned round = 0; round < 50; round++) {
        for (unsigned i = 0; i < 64; i++) host[i] = round + i;
        MUST(cudaMemcpyToSymbol(factors, host, sizeof(host)));
        MUST(cudaMemcpy(device, host, sizeof(host), cudaMemcpyHostToDevice));
        multiply<<<1, 64>>>(device);
        MUST(cudaMemcpyFromSymbol(back, totals, sizeof(back)));
        for (unsigned i = 0; i < 64; i++) wrong += back[i] != host[i] * host[i];
        MUST(cudaGetSymbolAddress((void **)&address, totals));
        MUST(cudaMemcpy(device, address, sizeof(host), cudaMemcpyDeviceToDevice));
        MUST(cudaMemcpy(host, device, sizeof(host), cudaMemcpyDeviceToHost));
        wrong += memcmp(host, back, sizeof(host)) != 0;
    }
    expect(!wrong, "50 rounds");
    MUST(cudaFree(device));
}

SNIPPET(arrays, "gpu", "copies between arrays and small buffers")
{
    unsigned *device, host[WORDS], back[WORDS] = {0};
    cudaArray_t array;
    cudaChannelFormatDesc words = cudaCreateChannelDesc<unsigned>();
    MUST(cudaMalloc((void **)&device, BYTES));
    MUST(cudaMallocArray(&array, &words, 32, 32));
    int wrong = 0;
    for (unsigned round = 0; round < 20; round++) {
        fill_random(host, BYTES, round);
        MUST(cudaMemcpy(device, host, BYTES, cudaMemcpyHostToDevice));
        MUST(cudaMemcpy2DToArray(array, 0, 0, device, 128, 128, 32, cudaMemcpyDeviceToDevice));
        MUST(cudaMemset(device, 0, BYTES));
        MUST(cudaMemcpy2DFromArrayAsync(device, 128, array, 0, 0, 128, 32, cudaMemcpyDeviceToDevice, 0));
        MUST(cudaMemcpy(back, device, BYTES, cudaMemcpyDeviceToHost));
        wrong += memcmp(host, back, BYTES) != 0;
    }
    expect(!wrong, "20 rounds");
    MUST(cudaFreeArray(array));
    MUST(cudaFree(device));
}

static __global__ void both_halves(unsigned *data)
{
    unsigned i = blockIdx.x * blockDim.x + threadIdx.x, n = gridDim.x * blockDim.x;
    data[i] = i;
    cooperative_groups::this_grid().sync();
    data[n + i] = data[n - 1 - i];
}

SNIPPET(cooperative, "gpu", "a cooperative launch on a small buffer")
{
    unsigned *device, back[512];
    MUST(cudaMalloc((void **)&device, sizeof(back)));
    MUST(cudaMemset(device, 0xff, sizeof(back)));
    void *arguments[] = {&device};
    int wrong = 0;
    for (int round = 0; round < 20; round++) {
        MUST(cudaLaunchCooperativeKernel((const void *)both_halves, 2, 128, arguments, 0, 0));
        MUST(cudaMemcpy(back, device, sizeof(back), cudaMemcpyDeviceToHost));
        for (unsigned i = 0; i < 256; i++) wrong += back[i] != i || back[256 + i] != 255 - i;
        MUST(cudaMemcpy(device, back + 1, 1000, cudaMemcpyHostToDevice));
    }
    expect(!wrong, "20 rounds");
    MUST(cudaFree(device));
}

static __global__ void chase(unsigned **pointers, unsigned *out) { out[threadIdx.x] = *pointers[threadIdx.x]; }

SNIPPET(pointers_in_memory, "gpu", "a kernel follows pointers that lie in memory, to buffers that may move")
{
    enum { COUNT = 64 };
    unsigned *buffer[COUNT], **device_pointers, *out, back[COUNT];
    MUST(cudaMalloc((void **)&device_pointers, sizeof(buffer)));
    MUST(cudaMalloc((void **)&out, sizeof(back)));
    for (int i = 0; i < COUNT; i++) MUST(cudaMalloc((void **)&buffer[i], 64));
    MUST(cudaMemcpy(device_pointers, buffer, sizeof(buffer), cudaMemcpyHostToDevice));
    int wrong = 0;
    for (unsigned round = 0; round < 50; round++) {
        for (unsigned i = 0; i < COUNT; i++) {
            unsigned value = round * 100 + i;
            MUST(cudaMemcpy(buffer[i], &value, 4, cudaMemcpyHostToDevice));
        }
        chase<<<1, COUNT>>>(device_pointers, out);
        MUST(cudaMemcpy(back, out, sizeof(back), cudaMemcpyDeviceToHost));
        for (unsigned i = 0; i < COUNT; i++) wrong += back[i] != round * 100 + i;
    }
    expect(!wrong, "50 rounds");
    for (int i = 0; i < COUNT; i++) MUST(cudaFree(buffer[i]));
    MUST(cudaFree(device_pointers));
    MUST(cudaFree(out));
}

SNIPPET(batches, "gpu", "cudaMemcpyBatchAsync of several small copies")
{
    enum { COUNT = 4 };
    unsigned *device[COUNT], *pinned, back[16];
    cudaStream_t stream;
    MUST(cudaStreamCreate(&stream));
    MUST(cudaMallocHost((void **)&pinned, COUNT * 64));
    const void *from[COUNT];
    void *to[COUNT];
    size_t bytes[COUNT];
    for (int i = 0; i < COUNT; i++) {
        MUST(cudaMalloc((void **)&device[i], 64));
        from[i] = pinned + 16 * i;
        to[i] = device[i];
        bytes[i] = 64;
    }
    cudaMemcpyAttributes attributes = {};
    attributes.srcAccessOrder = cudaMemcpySrcAccessOrderStream;
    size_t first = 0;
    int wrong = 0;
    for (unsigned round = 0; round < 30; round++) {
        for (unsigned i = 0; i < COUNT * 16; i++) pinned[i] = round * 1000 + i;
        MUST(cudaMemcpyBatchAsync(to, from, bytes, COUNT, &attributes, &first, 1, stream));
        MUST(cudaStreamSynchronize(stream));
        for (unsigned i = 0; i < COUNT; i++) {
            MUST(cudaMemcpy(back, device[i], 64, cudaMemcpyDeviceToHost));
            wrong += memcmp(back, pinned + 16 * i, 64) != 0;
        }
    }
    expect(!wrong, "30 rounds");
    for (int i = 0; i < COUNT; i++) MUST(cudaFree(device[i]));
    MUST(cudaFreeHost(pinned));
    MUST(cudaStreamDestroy(stream));
}
