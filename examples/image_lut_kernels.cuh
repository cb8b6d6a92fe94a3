#pragma once
#define LUT_ENTRIES 16384
#define LUT_PASSES  4

// Every pixel goes through the table LUT_PASSES times.
extern "C" __global__ void lut_apply(unsigned *image, const unsigned short *pixels, const unsigned *table, int count)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i >= count) return;
    unsigned value = pixels[i];
    for (int pass = 0; pass < LUT_PASSES; pass++) value = table[value % LUT_ENTRIES];
    image[i] = value;
}
