/* A library that allocates for the program. Built under several names: a plug-in, one of CUDA's libraries, the shared
 * runtime. */
#include "tests/report/library.h"

#include "shim/site.h"
#include "tests/report/fake_shim.h"

static volatile int made;

uintptr_t library_make(int kind, size_t bytes)
{
    uintptr_t address = fake_allocate(kind, bytes);
    made++;
    return address;
}
