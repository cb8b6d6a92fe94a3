/* Opening the driver, contexts, errors. */
#include "cudart.h"
#include <dlfcn.h>

struct driver driver[2];
static __thread cudaError_t last_error __attribute__((aligned(64))); /* see the driver's context.c */
static __thread int chosen_device;
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static bool opened;
static cudaError_t open_error;
static CUcontext primaries[64];
bool primary_retained[64];

#define CUDA_VERSION_WANTED 13000

static cudaError_t driver_load(void)
{
    void *library = dlopen("libcuda.so.1", RTLD_NOW);
    if (!library) return cudaErrorInsufficientDriver;
    __typeof__(cuGetProcAddress_v2) *look_up = (__typeof__(cuGetProcAddress_v2) *)dlsym(library, "cuGetProcAddress_v2");
    if (!look_up) return cudaErrorInsufficientDriver;
    void *nothing;
    look_up("", &nothing, 0, CU_GET_PROC_ADDRESS_DEFAULT, NULL);
#define GET(which, name, version, flags) look_up(#name, (void **)&driver[which].name, version, flags, NULL)
#define DRIVER(name, version, symbol)                                                                                  \
    GET(0, name, version, CU_GET_PROC_ADDRESS_DEFAULT);                                                                \
    driver[1].name = driver[0].name;
#define TWIN(name, version, symbol, twin_version)                                                                      \
    GET(0, name, version, CU_GET_PROC_ADDRESS_DEFAULT);                                                                \
    GET(1, name, twin_version, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
#include "driver.def"
#undef DRIVER
#undef TWIN
    return driver[0].cuInit ? (cudaError_t)driver[0].cuInit(0) : cudaErrorInsufficientDriver;
}

cudaError_t driver_open(void)
{
    if (__atomic_load_n(&opened, __ATOMIC_ACQUIRE)) return open_error;
    pthread_mutex_lock(&mutex);
    if (!opened) {
        open_error = driver_load();
        __atomic_store_n(&opened, true, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&mutex);
    return open_error;
}

static cudaError_t primary_use(int device)
{
    CUresult result = CUDA_SUCCESS;
    pthread_mutex_lock(&mutex);
    if (!primary_retained[device]) {
        result = driver->cuDevicePrimaryCtxRetain(&primaries[device], device);
        primary_retained[device] = !result;
    }
    if (!result) result = driver->cuCtxSetCurrent(primaries[device]);
    pthread_mutex_unlock(&mutex);
    return (cudaError_t)result;
}

cudaError_t context_ensure(void)
{
    cudaError_t error = driver_open();
    if (error) return error;
    CUcontext context = NULL;
    CUresult result = driver->cuCtxGetCurrent(&context);
    if (result) return (cudaError_t)result;
    bool ended = context == primaries[chosen_device] && !primary_retained[chosen_device]; /* by cudaDeviceReset */
    return context && !ended ? cudaSuccess : primary_use(chosen_device);
}

cudaError_t device_current(int *device)
{
    cudaError_t error = driver_open();
    if (error) return error;
    CUdevice current;
    *device = driver->cuCtxGetDevice(&current) ? chosen_device : current;
    return cudaSuccess;
}

cudaError_t remember(cudaError_t error)
{
    if (error) last_error = error;
    return error;
}

cudaError_t remember_result(CUresult result) { return remember((cudaError_t)result); }

cudaError_t cudaGetLastError(void)
{
    cudaError_t error = last_error;
    last_error = cudaSuccess;
    return error;
}

cudaError_t cudaPeekAtLastError(void) { return last_error; }

static const struct {
    int code;
    const char *name, *text;
} errors[] = {
#define ERROR(code, driver_name, runtime_name, text) {code, runtime_name, text},
#include "../errors.def"
#undef ERROR
};

const char *cudaGetErrorName(cudaError_t error)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == (int)error && *errors[i].name) return errors[i].name;
    return "unrecognized error code";
}

const char *cudaGetErrorString(cudaError_t error)
{
    for (size_t i = 0; i < sizeof errors / sizeof *errors; i++)
        if (errors[i].code == (int)error && *errors[i].name) return errors[i].text;
    return "unrecognized error code";
}

cudaError_t cudaSetDevice(int device)
{
    cudaError_t error = driver_open();
    int count = 0;
    if (!error) error = (cudaError_t)driver->cuDeviceGetCount(&count);
    if (!error && (device < 0 || device >= count)) error = cudaErrorInvalidDevice;
    if (error) return remember(error);
    chosen_device = device;
    return remember(primary_use(device));
}

cudaError_t cudaInitDevice(int device, unsigned flags, unsigned how)
{
    (void)flags, (void)how;
    int before;
    cudaError_t error = device_current(&before);
    if (!error) error = cudaSetDevice(device);
    if (!error) error = cudaSetDevice(before);
    return remember(error);
}

cudaError_t cudaGetDevice(int *device) { return remember(device ? device_current(device) : cudaErrorInvalidValue); }

cudaError_t cudaGetDeviceCount(int *count)
{
    if (!count) return remember(cudaErrorInvalidValue);
    cudaError_t error = driver_open();
    if (error) {
        *count = 0;
        return remember(error);
    }
    return remember_result(driver->cuDeviceGetCount(count));
}

cudaError_t cudaDeviceReset(void)
{
    int device;
    cudaError_t error = device_current(&device);
    if (error) return remember(error);
    pthread_mutex_lock(&mutex);
    CUresult result = driver->cuDevicePrimaryCtxReset(device);
    primary_retained[device] = false;
    pthread_mutex_unlock(&mutex);
    last_error = cudaSuccess;
    return remember_result(result);
}

cudaError_t cudaDeviceSynchronize(void) { CALL(0, cuCtxSynchronize); }
