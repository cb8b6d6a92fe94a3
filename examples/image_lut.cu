// Every pixel of an image looks up a 64 KiB table that the CPU replaces for each frame: the pitfall. The table is small
// and copied all the time, but read so often by the GPU that it must stay on the device.
//     image_lut [--small] [--seconds S] [--iterations N]
#include "example.h"
#include "image_lut_kernels.cuh"

#define TABLE_BYTES (LUT_ENTRIES * sizeof(unsigned))

int main(int argc, char **argv)
{
    const int count = option_given(argc, argv, "--small") ? 64 * 64 : 1024 * 1024;
    const int frames = 16;
    unsigned *tables = (unsigned *)malloc(frames * TABLE_BYTES);
    unsigned short *pixels = (unsigned short *)malloc(count * sizeof(*pixels));
    unsigned *image = (unsigned *)malloc(count * sizeof(*image));
    uint64_t random = 2;
    for (int i = 0; i < frames * LUT_ENTRIES; i++) tables[i] = random_next(&random);
    for (int i = 0; i < count; i++) pixels[i] = (unsigned short)random_next(&random);

    unsigned *device_table, *device_image;
    unsigned short *device_pixels;
    CUDA(cudaMalloc((void **)&device_table, TABLE_BYTES));
    CUDA(cudaMalloc((void **)&device_pixels, count * sizeof(*pixels)));
    CUDA(cudaMalloc((void **)&device_image, count * sizeof(*image)));
    CUDA(cudaMemcpy(device_pixels, pixels, count * sizeof(*pixels), cudaMemcpyHostToDevice));
    struct loop loop = loop_start(argc, argv);
    do {
        for (int frame = 0; frame < frames; frame++) {
            CUDA(cudaMemcpy(device_table, tables + frame * LUT_ENTRIES, TABLE_BYTES, cudaMemcpyHostToDevice));
            lut_apply<<<count / 256, 256>>>(device_image, device_pixels, device_table, count);
        }
        CUDA(cudaDeviceSynchronize());
        loop.iterations += frames;
    } while (loop_again(&loop));
    CUDA(cudaMemcpy(image, device_image, count * sizeof(*image), cudaMemcpyDeviceToHost));

    const unsigned *table = tables + (frames - 1) * LUT_ENTRIES;
    long wrong = 0;
    for (int i = 0; i < count; i++) {
        unsigned value = pixels[i];
        for (int pass = 0; pass < LUT_PASSES; pass++) value = table[value % LUT_ENTRIES];
        wrong += image[i] != value;
    }
    CUDA(cudaFree(device_table));
    CUDA(cudaFree(device_pixels));
    CUDA(cudaFree(device_image));
    printf("%d pixels, %d frames, checksum %016llx\n", count, frames,
           (unsigned long long)checksum(image, count * sizeof(*image)));
    free(tables);
    free(pixels);
    free(image);
    return verdict("image_lut", wrong);
}
