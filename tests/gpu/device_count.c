/* Prints the first CUDA device's name; exit code 0 if there is one, else 1. Needs no CUDA library to start. */
#include <dlfcn.h>
#include <stdio.h>

int main(void)
{
    void *libcuda = dlopen("libcuda.so.1", RTLD_NOW);
    if (!libcuda) return 1;
    int (*init)(unsigned) = (int (*)(unsigned))dlsym(libcuda, "cuInit");
    int (*count_of)(int *) = (int (*)(int *))dlsym(libcuda, "cuDeviceGetCount");
    int (*name_of)(char *, int, int) = (int (*)(char *, int, int))dlsym(libcuda, "cuDeviceGetName");
    int count = 0;
    char name[256] = "";
    if (!init || !count_of || !name_of || init(0) || count_of(&count) || count < 1 || name_of(name, sizeof(name), 0))
        return 1;
    puts(name);
    return 0;
}
