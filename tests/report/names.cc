// C++ names: namespaces, templates, lambdas.
extern "C" {
#include "tests/report/fake_shim.h"
}
static volatile int made;

namespace grid
{
template <typename Value> struct field {
    __attribute__((noinline)) static uintptr_t make(int count)
    {
        uintptr_t address = fake_allocate(0, sizeof(Value) * (size_t)count);
        made = made + 1;
        return address;
    }
};
} // namespace grid

int main()
{
    fake_start();
    auto twice = [](int count) __attribute__((noinline)) {
        grid::field<double>::make(count);
        made = made + 1;
    };
    twice(16);
    return 0;
}
