// kestrel#102: ten small pageable uploads and a kernel in every step.
//     kestrel_102 [--small] [--seconds S]
#include "examples/example.h"
#include "kestrel_102_kernels.cuh"

int main(int argc, char **argv)
{
    const double seconds = option_number(argc, argv, "--seconds", 0);
    const int steps = option_given(argc, argv, "--small") ? 50 : 5000;
    float host[INPUTS][WORDS], expected[WORDS] = {0}, result[WORDS], *state;
    inputs in;
    for (int k = 0; k < INPUTS; k++) CUDA(cudaMalloc((void **)&in.part[k], WORDS * sizeof(float)));
    CUDA(cudaMalloc((void **)&state, WORDS * sizeof(float)));
    CUDA(cudaMemset(state, 0, WORDS * sizeof(float)));
    double spent_us = 0;
    long done = 0;
    do {
        for (int step = 0; step < steps; step++, done++) {
            for (int k = 0; k < INPUTS; k++)
                for (int i = 0; i < WORDS; i++) host[k][i] = (float)((step + k * 7 + i) % 16);
            for (int i = 0; i < WORDS; i++) {
                float sum = expected[i] * 0.5f;
                for (int k = 0; k < INPUTS; k++) sum += host[k][i];
                expected[i] = sum;
            }
            const double before_us = now_us();
            for (int k = 0; k < INPUTS; k++)
                CUDA(cudaMemcpy((void *)in.part[k], host[k], sizeof(host[k]), cudaMemcpyHostToDevice));
            combine<<<1, WORDS>>>(state, in);
            CUDA(cudaMemcpy(result, state, sizeof(result), cudaMemcpyDeviceToHost));
            spent_us += now_us() - before_us;
        }
    } while (spent_us < seconds * 1e6);
    const int wrong = memcmp(result, expected, sizeof(result)) != 0;
    printf("{\"user\": \"kestrel#102\", \"us_per_step\": %.3f, \"hash\": \"%s\"}\n", spent_us / done,
           wrong ? "wrong" : "right");
    return wrong;
}
