// C++: static objects, operator new and delete of every form, containers, threads, exceptions.
#include "programs.h"
#include <new>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#undef SNIPPET
#define SNIPPET(id, tags, what)                                                                                        \
    static void run_##id();                                                                                            \
    static const struct snippet snippet_##id = {#id, tags, what, run_##id};                                            \
    static const struct snippet *const entry_##id __attribute__((section("snippets"), used)) = &snippet_##id;          \
    static void run_##id()

namespace
{

struct device_memory {
    void *memory = nullptr;
    const char *name = "";
    ~device_memory()
    {
        if (!memory) return;
        unsigned value = 0;
        printf("%s: copy %s, ", name,
               cudaGetErrorName(cudaMemcpy(&value, memory, sizeof(value), cudaMemcpyDeviceToHost)));
        printf("free %s\n", cudaGetErrorName(cudaFree(memory)));
        fflush(stdout);
    }
};
device_memory global;

struct alignas(256) wide {
    char bytes[8 << 20];
};

SNIPPET(static_destructors, "", "static objects of both kinds free device memory after main")
{
    MUST(cudaMalloc(&global.memory, 256));
    global.name = "global";
    static device_memory local;
    MUST(cudaMalloc(&local.memory, 256));
    local.name = "local static";
    MUST(cudaMemset(global.memory, 1, 256));
    MUST(cudaMemset(local.memory, 1, 256));
}

SNIPPET(operator_new, "", "new and delete, sized, aligned, arrays, nothrow, and bad_alloc")
{
    int wrong = 0;
    MUST(cudaFree(0));
    for (size_t n : {size_t(1), size_t(1000), size_t(4) << 20, (size_t(9) << 20) + 1}) {
        char *a = new char[n];
        char *b = static_cast<char *>(operator new(n, std::align_val_t(512)));
        char *c = new (std::nothrow) char[n];
        memset(a, 1, n);
        memset(b, 2, n);
        memset(c, 3, n);
        wrong += a[n - 1] != 1 || b[n - 1] != 2 || c[0] != 3 || reinterpret_cast<uintptr_t>(b) % 512;
        operator delete[](a, n);
        operator delete(b, n, std::align_val_t(512));
        delete[] c;
    }
    wide *w = new wide;
    w->bytes[5] = 1;
    wrong += reinterpret_cast<uintptr_t>(w) % 256 != 0;
    delete w;
    expect(!wrong, "contents and alignment");
    bool thrown = false;
    volatile size_t huge = size_t(1) << 60;
    try {
        char *volatile served = new char[huge];
        delete[] served;
    } catch (const std::bad_alloc &) {
        thrown = true;
    }
    expect(thrown, "bad_alloc");
}

SNIPPET(containers, "", "growing containers copied to the device and back, in threads")
{
    std::vector<std::thread> threads;
    std::vector<int> wrong(4);
    for (int t = 0; t < 4; t++)
        threads.emplace_back([t, &wrong] {
            std::vector<unsigned> values, back;
            for (unsigned i = 0; i < 3000000; i++) values.push_back(i * (t + 1));
            void *device;
            MUST(cudaMalloc(&device, values.size() * 4));
            MUST(cudaMemcpy(device, values.data(), values.size() * 4, cudaMemcpyHostToDevice));
            back.resize(values.size());
            MUST(cudaMemcpy(back.data(), device, values.size() * 4, cudaMemcpyDeviceToHost));
            MUST(cudaFree(device));
            wrong[t] = back != values;
        });
    for (auto &thread : threads) thread.join();
    for (int t = 0; t < 4; t++) expect(!wrong[t], "thread %d", t);
}

SNIPPET(exceptions, "", "exceptions pass through frames that made CUDA calls")
{
    for (int round = 0; round < 3; round++) try {
            unsigned value = round, *device;
            MUST(cudaMalloc(reinterpret_cast<void **>(&device), 4));
            MUST(cudaMemcpy(device, &value, 4, cudaMemcpyHostToDevice));
            MUST(cudaFree(device));
            throw std::runtime_error(std::to_string(round));
        } catch (const std::exception &e) {
            printf("caught %s\n", e.what());
        }
}

} // namespace
