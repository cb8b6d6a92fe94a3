// C++ allocation: static constructors and destructors, sized and aligned new and delete, thread_local destructors, exit
// handlers.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>
#include <string>
#include <thread>
#include <vector>

struct Early {
    std::vector<char> bytes = std::vector<char>(8 << 20, 'e');
    ~Early()
    {
        for (char c : bytes)
            if (c != 'e') _Exit(3);
    }
};
static Early early;
struct alignas(1 << 16) Wide {
    char bytes[6 << 20];
};
struct PerThread {
    std::unique_ptr<char[]> bytes{new char[5 << 20]};
    ~PerThread() { bytes[0] = 1; }
};
static thread_local PerThread per_thread;
static char *at_exit_block;

int main()
{
    for (int i = 0; i < 20; i++) {
        auto *wide = new Wide;
        if (reinterpret_cast<size_t>(wide) % (1 << 16)) return 1;
        std::memset(wide->bytes, i, sizeof wide->bytes);
        delete wide;
        auto *many = new long[1 << 20];
        many[(1 << 20) - 1] = i;
        delete[] many;
        void *sized = ::operator new(7 << 20);
        ::operator delete(sized, static_cast<size_t>(7 << 20));
        std::string growing;
        for (int k = 0; k < 12; k++) growing += std::string(1 << 20, static_cast<char>('a' + k));
        if (growing[11 << 20] != 'l') return 2;
    }
    std::vector<std::thread> threads;
    for (int i = 0; i < 4; i++) threads.emplace_back([] { per_thread.bytes[5] = 2; });
    for (auto &thread : threads) thread.join();
    per_thread.bytes[0] = 3;
    at_exit_block = static_cast<char *>(std::malloc(9 << 20));
    std::atexit([] {
        at_exit_block = static_cast<char *>(std::realloc(at_exit_block, 20 << 20));
        at_exit_block[(20 << 20) - 1] = 1;
        std::free(at_exit_block);
    });
    try {
        volatile size_t too_much = static_cast<size_t>(1) << 60;
        char *volatile none = new char[too_much];
        delete[] none;
        return 4;
    } catch (const std::bad_alloc &) {
    }
    return 0;
}
