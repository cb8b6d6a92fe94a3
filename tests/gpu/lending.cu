// What lending may cost and what it must not: uploads of one big table, and then ...
//     lending NAME [--bytes N] [--seconds S] [--iterations N]
//   dense     a kernel that reads all of it
//   passes    a kernel that reads all of it 16 times
//   writes    a gather, then a kernel that writes into it, every time with a table allocated anew
//   changes   a gather, with 4 places of the table changed in between
//   touches   a gather once; then how long the CPU takes to touch the table: one JSON line, us
#include "../../examples/example.h"
#include "lending_kernels.cuh"

static const int COUNT = 16384;
struct lending {
    size_t bytes, elements;
    float *table, *device, *result, expected[COUNT]; // of each place
    unsigned long long *index, places[COUNT];
    double *sum;
};

static void start(struct lending *l, int argc, char **argv)
{
    uint64_t random = 5;
    l->bytes = (size_t)option_number(argc, argv, "--bytes", 64 << 20);
    l->elements = l->bytes / sizeof(float);
    l->table = (float *)malloc(l->bytes);
    for (size_t i = 0; i < l->elements; i++) l->table[i] = (float)(i % 16777213);
    for (int i = 0; i < COUNT; i++) {
        const uint64_t high = random_next(&random);
        l->places[i] = (high << 31 | random_next(&random)) % l->elements;
        l->expected[i] = (float)(l->places[i] % 16777213);
    }
    CUDA(cudaMalloc((void **)&l->device, l->bytes));
    CUDA(cudaMalloc((void **)&l->result, COUNT * sizeof(float)));
    CUDA(cudaMalloc((void **)&l->index, sizeof l->places));
    CUDA(cudaMalloc((void **)&l->sum, sizeof(double)));
    CUDA(cudaMemset(l->sum, 0, sizeof(double)));
    CUDA(cudaMemcpy(l->index, l->places, sizeof l->places, cudaMemcpyHostToDevice));
}

static void upload(struct lending *l) { CUDA(cudaMemcpy(l->device, l->table, l->bytes, cudaMemcpyHostToDevice)); }

static long gather(struct lending *l)
{
    static float result[COUNT];
    long wrong = 0;
    lending_gather<<<COUNT / 128, 128>>>(l->result, l->device, l->index, COUNT);
    CUDA(cudaMemcpy(result, l->result, sizeof result, cudaMemcpyDeviceToHost));
    for (int i = 0; i < COUNT; i++) wrong += result[i] != l->expected[i];
    return wrong;
}

static void change(struct lending *l, int which, float value)
{
    l->table[l->places[which]] = value;
    for (int i = 0; i < COUNT; i++)
        if (l->places[i] == l->places[which]) l->expected[i] = value;
}

static long touches(struct lending *l)
{
    long wrong = 0;
    upload(l);
    lending_gather<<<COUNT / 128, 128>>>(l->result, l->device, l->index, COUNT);
    CUDA(cudaDeviceSynchronize());
    double first = now_us();
    l->table[l->elements / 2] += 0;
    double all = now_us();
    for (size_t i = 0; i < l->elements; i += 1024) l->table[i] += 0;
    double copy = now_us();
    float *other = (float *)malloc(l->bytes);
    double begun = now_us();
    memcpy(other, l->table, l->bytes);
    double end = now_us();
    for (size_t i = 0; i < l->elements; i += 997)
        wrong += l->table[i] != (float)(i % 16777213) || other[i] != l->table[i];
    printf("{\"first_us\": %.1f, \"all_us\": %.1f, \"memcpy_us\": %.1f}\n", all - first, copy - all, end - begun);
    return wrong + gather(l);
}

int main(int argc, char **argv)
{
    static struct lending l;
    const char *name = argc > 1 ? argv[1] : "";
    long wrong = 0, done = 0;
    start(&l, argc, argv);
    if (!strcmp(name, "touches")) return touches(&l) != 0;
    struct loop loop = loop_start(argc, argv);
    do {
        upload(&l);
        if (!strcmp(name, "dense") || !strcmp(name, "passes")) {
            float sum;
            lending_dense<<<1056, 256>>>(l.sum, l.device, l.elements, *name == 'd' ? 1 : 16);
            CUDA(cudaMemcpy(&sum, l.sum, sizeof sum, cudaMemcpyDeviceToHost));
            done++;
            wrong += sum <= 0;
        } else if (!strcmp(name, "writes")) {
            wrong += gather(&l);
            lending_scatter<<<COUNT / 128, 128>>>(l.device, l.index, COUNT, 1);
            CUDA(cudaDeviceSynchronize());
            wrong += l.table[l.places[0]] != (float)(l.places[0] % 16777213);
            CUDA(cudaFree(l.device));
            CUDA(cudaMalloc((void **)&l.device, l.bytes));
        } else if (!strcmp(name, "changes")) {
            wrong += gather(&l);
            for (int i = 0; i < 4; i++) change(&l, i, (float)(loop.iterations + i));
        } else {
            fprintf(stderr, "lending: dense, passes, writes, changes or touches, not '%s'\n", name);
            return 64;
        }
        loop.iterations++;
    } while (loop_again(&loop));
    return verdict("lending", wrong);
}
