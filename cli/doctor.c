/* doctor: each thing that must hold for the shim to work, and what to do where it does not. */
#include "cli/cli.h"

#include <cuda.h>
#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

static bool sick;

static void finding(const char *mark, const char *format, va_list arguments)
{
    printf("%s ", mark);
    vprintf(format, arguments);
    printf("\n");
}

#define FINDING(name, mark, bad)                                                                                       \
    static __attribute__((format(printf, 1, 2))) void name(const char *format, ...)                                    \
    {                                                                                                                  \
        va_list arguments;                                                                                             \
        va_start(arguments, format);                                                                                   \
        finding(mark, format, arguments);                                                                              \
        va_end(arguments);                                                                                             \
        sick |= bad;                                                                                                   \
    }
FINDING(good, "ok  ", false)
FINDING(hint, "note", false) /* it works, with a limit */
FINDING(fault, "BAD ", true)

static __attribute__((format(printf, 1, 2))) void remedy(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    printf("     -> ");
    vprintf(format, arguments);
    printf("\n");
    va_end(arguments);
}

/* Runs `look` in a child, since drivers may crash; false: it did. */
static bool look_apart(void (*look)(void))
{
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        look();
        fflush(stdout);
        _exit(sick);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || !WIFEXITED(status)) return false;
    sick |= WEXITSTATUS(status) != 0;
    return true;
}

static void look_at_device(void *driver, int ordinal)
{
    CUresult (*attribute)(int *, CUdevice_attribute, CUdevice) =
        (CUresult(*)(int *, CUdevice_attribute, CUdevice))dlsym(driver, "cuDeviceGetAttribute");
    CUresult (*name_of)(char *, int, CUdevice) = (CUresult(*)(char *, int, CUdevice))dlsym(driver, "cuDeviceGetName");
    int map = 0, same = 0, registers = 0, vmm = 0, integrated = 0;
    char name[128] = "unknown";
    if (!attribute || !name_of) return;
    name_of(name, sizeof name, ordinal);
    attribute(&map, CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, ordinal);
    attribute(&same, CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, ordinal);
    attribute(&registers, CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED, ordinal);
    attribute(&vmm, CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED, ordinal);
    attribute(&integrated, CU_DEVICE_ATTRIBUTE_INTEGRATED, ordinal);
    if (!registers) {
        hint("device %d, %s: host memory cannot be registered", ordinal, name);
        remedy("nothing gets faster with it, the report works; take another device, if there is one "
               "(CUDA_VISIBLE_DEVICES)");
    } else if (!map || !same || !vmm) {
        hint("device %d, %s: small buffers cannot move (%s)", ordinal, name,
             vmm ? "host memory has another address there" : "no virtual memory management");
        remedy("they stay on the device; large copies from and to host memory are sped up all the same");
    } else {
        good("device %d, %s: small buffers can move%s", ordinal, name,
             integrated ? " (integrated: they always live on the host)" : "");
    }
}

static void look_at_driver(void)
{
    void *driver = dlopen("libcuda.so.1", RTLD_NOW);
    if (!driver) {
        fault("no CUDA driver: %s", dlerror());
        remedy("install the NVIDIA driver; in a container start it with --gpus all (NVIDIA Container Toolkit)");
        return;
    }
    CUresult (*init)(unsigned) = (CUresult(*)(unsigned))dlsym(driver, "cuInit");
    CUresult (*version_of)(int *) = (CUresult(*)(int *))dlsym(driver, "cuDriverGetVersion");
    CUresult (*count_of)(int *) = (CUresult(*)(int *))dlsym(driver, "cuDeviceGetCount");
    int version = 0, count = 0;
    CUresult result = init && version_of && count_of ? init(0) : CUDA_ERROR_NOT_FOUND;
    if (result == CUDA_SUCCESS) result = version_of(&version);
    if (result == CUDA_SUCCESS) result = count_of(&count);
    if (result == CUDA_ERROR_NO_DEVICE || (result == CUDA_SUCCESS && count == 0)) {
        fault("the CUDA driver sees no GPU");
        remedy("look at nvidia-smi and CUDA_VISIBLE_DEVICES; in a container start it with --gpus all");
        return;
    }
    if (result != CUDA_SUCCESS) {
        fault("the CUDA driver does not start (error %d)", (int)result);
        remedy("nvidia-smi says more; kernel module and library must be of one version");
        return;
    }
    if (version < 11030) {
        fault("the driver is of CUDA %d.%d", version / 1000, version % 1000 / 10);
        remedy("install a driver of CUDA 11.3 or later");
        return;
    }
    good("the driver is of CUDA %d.%d, with %d device%s", version / 1000, version % 1000 / 10, count,
         count == 1 ? "" : "s");
    for (int i = 0; i < count; i++) look_at_device(driver, i);
}

static void look_at_library(void)
{
    const char *library = library_path();
    if (!library) {
        fault("libzcshim.so was not found");
        remedy("make install, or name it in ZCSHIM_LIB");
        return;
    }
    int status = 0;
    fflush(stdout);
    pid_t child = fork();
    if (child == 0) {
        setenv("LD_PRELOAD", library, 1);
        setenv("ZCSHIM_REPORT", "off", 1);
        execl("/bin/grep", "grep", "-qF", library, "/proc/self/maps", (char *)NULL); /* ld.so goes on without it */
        _exit(127);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        fault("%s cannot be preloaded", library);
        remedy("LD_PRELOAD=%s /bin/true says why; it must be built for this machine's processor and C library",
               library);
        return;
    }
    good("%s loads", library);
}

static void look_at_settings(void)
{
    char number[32] = "";
    int fd = open("/proc/sys/vm/unprivileged_userfaultfd", O_RDONLY | O_CLOEXEC);
    if (fd >= 0 && read(fd, number, sizeof number - 1) > 0 && number[0] == '0' && geteuid() != 0) {
        hint("this user may not watch memory (userfaultfd)");
        remedy("large blocks are copied instead of lent; sysctl vm.unprivileged_userfaultfd=1 allows it");
    }
    if (fd >= 0) close(fd);
    const char *mode = getenv("ZCSHIM_MODE");
    if (mode && strcmp(mode, "off") == 0) {
        hint("ZCSHIM_MODE=off is set: the shim does nothing");
        remedy("unset ZCSHIM_MODE");
    }
    const char *allocator = getenv("PYTORCH_CUDA_ALLOC_CONF");
    if (allocator && strstr(allocator, "expandable_segments:True")) {
        hint("PyTorch is told to allocate by virtual memory (expandable_segments)");
        remedy("its buffers do not move and are not in the leak report; unset PYTORCH_CUDA_ALLOC_CONF to see them");
    }
}

/* The program as a file. */
struct image {
    const unsigned char *data;
    size_t bytes;
};

static char *find_program(const char *name)
{
    struct stat status;
    if (strchr(name, '/')) return must_format("%s", name);
    for (const char *at = getenv("PATH"); at && *at; at += *at == ':') {
        size_t length = strcspn(at, ":");
        char *path = must_format("%.*s/%s", (int)length, at, name);
        if (access(path, X_OK) == 0 && stat(path, &status) == 0 && S_ISREG(status.st_mode)) return path;
        at += length;
    }
    return must_format("%s", name);
}

static bool has(const struct image *image, const char *text)
{
    return memmem(image->data, image->bytes, text, strlen(text)) != NULL;
}

static bool dynamically_linked(const struct image *image)
{
    const Elf64_Ehdr *header = (const void *)image->data;
    const Elf64_Phdr *segment = (const void *)(image->data + header->e_phoff);
    if (header->e_phoff + (size_t)header->e_phnum * sizeof *segment > image->bytes) return false;
    for (unsigned i = 0; i < header->e_phnum; i++)
        if (segment[i].p_type == PT_INTERP) return true;
    return false;
}

static void look_at_privileges(const char *path, const struct stat *status)
{
    bool setuid = (status->st_mode & S_ISUID) && status->st_uid != getuid(),
         setgid = (status->st_mode & S_ISGID) && status->st_gid != getgid();
    if (setuid || setgid || getxattr(path, "security.capability", NULL, 0) > 0) {
        fault("%s changes its privileges when it starts, and then nothing is preloaded", path);
        remedy("run a copy: cp %s /tmp/ drops set-user-id and capabilities", path);
    }
}

static void look_at_frameworks(const char *path, const struct image *image)
{
    if (has(image, "import jax") || has(image, "from jax") || has(image, "import tensorflow") ||
        has(image, "libtensorflow")) {
        hint("%s uses a framework with an allocator of its own (VMM)", path);
        remedy("its buffers do not move; large copies from and to host memory are sped up all the same");
    }
    if (has(image, "import torch") || has(image, "from torch") || has(image, "import cupy") ||
        has(image, "libtorch_cuda")) {
        hint("%s uses a framework that packs small buffers into blocks of 2 MiB", path);
        remedy("those do not move; large copies from and to host memory are sped up all the same");
    }
}

static void look_at_script(const char *path, const struct image *image)
{
    size_t length = 2;
    while (length < image->bytes && length < 200 && image->data[length] != '\n') length++;
    good("%s is a script of %.*s", path, (int)length - 2, image->data + 2);
    look_at_frameworks(path, image);
}

static void look_at_elf(const char *path, const struct image *image)
{
    const Elf64_Ehdr *header = (const void *)image->data;
#ifdef __aarch64__
    int machine = EM_AARCH64;
#else
    int machine = EM_X86_64;
#endif
    if (image->data[EI_CLASS] != ELFCLASS64 || header->e_machine != machine) {
        fault("%s is %s", path,
              image->data[EI_CLASS] != ELFCLASS64 ? "a 32-bit program" : "for another kind of processor");
        remedy("CUDA has no driver for it; build it for this machine");
    } else if (!dynamically_linked(image)) {
        fault("%s is statically linked: nothing can be preloaded into it", path);
        remedy("link the C library dynamically; the CUDA runtime may stay static, as nvcc does by default");
    } else if (has(image, "libcuda.so") || has(image, "libcudart") || has(image, "libtorch") ||
               has(image, "libcublas")) {
        good("%s is dynamically linked and uses CUDA", path);
        look_at_frameworks(path, image);
    } else {
        hint("%s does not name a CUDA library itself", path);
        remedy("it may load one later, as interpreters do: zcshim run --report=on %s ... tells whether CUDA was seen",
               path);
    }
}

/* Maps the file; false if it is none. */
static bool image_open(struct image *image, const char *path, struct stat *status)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    bool regular = fd >= 0 && fstat(fd, status) == 0 && S_ISREG(status->st_mode);
    int error = fd < 0 ? errno : 0;
    image->bytes = regular ? (size_t)status->st_size : 0;
    image->data = image->bytes ? mmap(NULL, image->bytes, PROT_READ, MAP_PRIVATE, fd, 0) : MAP_FAILED;
    if (fd >= 0) close(fd);
    errno = error;
    return image->data != MAP_FAILED;
}

static void look_at_program(const char *name)
{
    char *path = find_program(name);
    struct stat status;
    struct image image;
    if (!image_open(&image, path, &status)) {
        fault("%s: %s", path, errno ? strerror(errno) : "not a program");
        remedy("give the program as you would start it");
        return;
    }
    bool elf = image.bytes > sizeof(Elf64_Ehdr) && memcmp(image.data, ELFMAG, SELFMAG) == 0;
    bool starts = access(path, X_OK) == 0;
    if (!starts && elf) {
        fault("%s is not executable", path);
        remedy("chmod +x %s", path);
    } else if (!starts) {
        hint("%s is not executable", path);
        remedy("if it is a script, name its interpreter first: zcshim doctor python3 %s", path);
    }
    look_at_privileges(path, &status);
    if (elf)
        look_at_elf(path, &image);
    else if (image.bytes > 2 && memcmp(image.data, "#!", 2) == 0)
        look_at_script(path, &image);
    else
        look_at_frameworks(path, &image);
}

/* The script that an interpreter is given. */
static void look_at_arguments(int count, char **arguments)
{
    struct stat status;
    struct image image;
    for (int i = 0; i < count; i++) {
        if (arguments[i][0] == '-' || !image_open(&image, arguments[i], &status)) continue;
        look_at_frameworks(arguments[i], &image);
        return;
    }
}

int command_doctor(int count, char **arguments)
{
    if (count > 1 && arguments[1][0] == '-' && strcmp(arguments[1], "--") != 0)
        return usage_error("doctor", "unknown option %s", arguments[1]);
    look_at_library();
    if (!look_apart(look_at_driver)) {
        fault("the CUDA driver crashes when it starts");
        remedy("nvidia-smi and the kernel's log (dmesg) say more");
    }
    look_at_settings();
    int at = count > 1 && strcmp(arguments[1], "--") == 0 ? 2 : 1;
    if (at < count) {
        look_at_program(arguments[at]);
        look_at_arguments(count - at - 1, arguments + at + 1);
    }
    printf(sick ? "it will not work here as it is\n" : "it will work\n");
    return sick ? EXIT_BAD : EXIT_GOOD;
}
