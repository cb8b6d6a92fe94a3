/* Addresses and what is behind them. */
#include "backing.h"
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>
#include "operations.h"

static CUmemAllocationProp device_kind(void)
{
    return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                 .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = fix.device}};
}

CUresult backing_to_device(CUdeviceptr address, size_t bytes)
{
    CUmemAllocationProp kind = device_kind();
    CUmemAccessDesc access = {.location = kind.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle chunk;
    void *saved = malloc(bytes);
    memcpy(saved, (void *)address, bytes);
    CUresult code = d.cuMemHostUnregister((void *)address);
    if (!code && mmap((void *)address, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1,
                      0) == MAP_FAILED) {
        code = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!code) code = d.cuMemCreate(&chunk, bytes, &kind, 0);
    if (!code) code = d.cuMemMap(address, bytes, 0, chunk, 0);
    if (!code) code = d.cuMemRelease(chunk);
    if (!code) code = d.cuMemSetAccess(address, bytes, &access, 1);
    if (!code) code = d.cuMemcpyHtoD(address, saved, bytes);
    if (!code) code = d.cuCtxSynchronize(); /* the copy may return before the last bytes have arrived */
    free(saved);
    return code;
}

CUresult backing_to_host(CUdeviceptr address, size_t bytes)
{
    void *saved = malloc(bytes);
    CUresult code = d.cuMemcpyDtoH(saved, address, bytes);
    if (!code) code = d.cuMemUnmap(address, bytes);
    if (!code && mmap((void *)address, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) ==
                     MAP_FAILED) {
        code = CUDA_ERROR_OUT_OF_MEMORY;
    }
    if (!code) memcpy((void *)address, saved, bytes);
    if (!code)
        code = d.cuMemHostRegister((void *)address, bytes, CU_MEMHOSTREGISTER_DEVICEMAP | CU_MEMHOSTREGISTER_PORTABLE);
    free(saved);
    return code;
}

static int attribute(CUdevice_attribute which)
{
    int value = -1;
    d.cuDeviceGetAttribute(&value, which, fix.device);
    return value;
}

void backing(void)
{
    struct operands on;
    operands_new(&on, 65536, NULL);
    if (question("CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM")) {
        answer("%d", attribute(CU_DEVICE_ATTRIBUTE_CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM));
    }
    if (question("PAGEABLE_MEMORY_ACCESS")) answer("%d", attribute(CU_DEVICE_ATTRIBUTE_PAGEABLE_MEMORY_ACCESS));
    if (question("HOST_NATIVE_ATOMIC_SUPPORTED"))
        answer("%d", attribute(CU_DEVICE_ATTRIBUTE_HOST_NATIVE_ATOMIC_SUPPORTED));
    if (question("VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED")) {
        answer("%d", attribute(CU_DEVICE_ATTRIBUTE_VIRTUAL_MEMORY_MANAGEMENT_SUPPORTED));
    }
    if (question("INTEGRATED")) answer("%d", attribute(CU_DEVICE_ATTRIBUTE_INTEGRATED));
    if (question("HOST_REGISTER_SUPPORTED")) answer("%d", attribute(CU_DEVICE_ATTRIBUTE_HOST_REGISTER_SUPPORTED));
    if (question("CAN_MAP_HOST_MEMORY")) answer("%d", attribute(CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY));
    if (question("granularity of device memory")) {
        CUmemAllocationProp kind = device_kind();
        size_t bytes = 0;
        CUresult code = d.cuMemGetAllocationGranularity(&bytes, &kind, CU_MEM_ALLOC_GRANULARITY_MINIMUM);
        answer("%s, %zu", error_name(code), bytes);
    }
    if (question("device pointer of registered memory equals the host pointer")) {
        void *pages = pages_new(65536);
        CUdeviceptr device = 0;
        MUST(d.cuMemHostRegister(pages, 65536, CU_MEMHOSTREGISTER_DEVICEMAP));
        CUresult code = d.cuMemHostGetDevicePointer(&device, pages, 0);
        answer("%s, %s", error_name(code), device == (CUdeviceptr)(uintptr_t)pages ? "yes" : "no");
    }
    if (question("register inside a reservation, device pointer is the address")) {
        CUdeviceptr address, device = 0;
        void *pages = registered_new(65536, &address);
        CUresult code = d.cuMemHostGetDevicePointer(&device, pages, 0);
        answer("%s, %s", error_name(code), device == address ? "yes" : "no");
    }
    if (question("host to device to host, four times")) {
        CUdeviceptr address;
        int count = 1, amount = 1;
        int *host = registered_new(2 << 20, &address);
        CUresult code = CUDA_SUCCESS;
        for (int i = 0; i < 4 && !code; i++) {
            launch(fix.ints_add, NULL, (void *[]){&address, &count, &amount});
            d.cuCtxSynchronize();
            code = backing_to_device(address, 2 << 20);
            if (code) break;
            launch(fix.ints_add, NULL, (void *[]){&address, &count, &amount});
            d.cuCtxSynchronize();
            code = backing_to_host(address, 2 << 20);
        }
        answer("%s, counter %d", error_name(code), code ? -1 : host[0]);
    }
    if (question("64 KiB registered in a 2 MiB window, then device memory behind it")) {
        CUdeviceptr address;
        int *host = registered_new(65536, &address);
        CUmemAllocationProp kind = device_kind();
        CUmemAccessDesc access = {.location = kind.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
        CUmemGenericAllocationHandle chunk;
        MUST(d.cuMemCreate(&chunk, 2 << 20, &kind, 0));
        CUresult while_registered = d.cuMemMap(address, 2 << 20, 0, chunk, 0);
        CUresult unregister = d.cuMemHostUnregister(host);
        CUresult map = while_registered ? d.cuMemMap(address, 2 << 20, 0, chunk, 0) : CUDA_SUCCESS;
        CUresult permit = d.cuMemSetAccess(address, 2 << 20, &access, 1);
        answer("map while registered %s, unregister %s, map %s, access %s", error_name(while_registered),
               error_name(unregister), error_name(map), error_name(permit));
    }
    if (question("register over mapped device memory")) {
        CUdeviceptr address;
        registered_new(2 << 20, &address);
        MUST(backing_to_device(address, 2 << 20));
        answer("%s", error_name(d.cuMemHostRegister((void *)address, 65536, CU_MEMHOSTREGISTER_DEVICEMAP)));
    }
    if (question("cuMemAddressReserve at a wanted address")) {
        CUdeviceptr address, again = 0;
        MUST(d.cuMemAddressReserve(&address, 2 << 20, 0, 0, 0));
        MUST(d.cuMemAddressFree(address, 2 << 20));
        CUresult code = d.cuMemAddressReserve(&again, 2 << 20, 0, address, 0);
        answer("%s, honoured %s", error_name(code), again == address ? "yes" : "no");
    }
    if (question("cuMemAddressFree with registered pages inside")) {
        CUdeviceptr address;
        void *pages = registered_new(2 << 20, &address);
        CUresult code = d.cuMemAddressFree(address, 2 << 20);
        CUresult unregister = d.cuMemHostUnregister(pages);
        answer("%s, then unregister %s", error_name(code), error_name(unregister));
    }
    if (question("cuMemAddressFree with mapped device memory inside")) {
        CUdeviceptr address;
        registered_new(2 << 20, &address);
        MUST(backing_to_device(address, 2 << 20));
        answer("%s", error_name(d.cuMemAddressFree(address, 2 << 20)));
    }

    CUdeviceptr address;
    char *pages = NULL;
    MUST(d.cuMemAddressReserve(&address, 2 << 20, 0, 0, 0));
    pages = mmap((void *)address, 2 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    memset(pages, 0, 2 << 20);
    for (int i = 0; i < 4; i++) MUST(d.cuMemHostRegister(pages + i * 65536, 65536, CU_MEMHOSTREGISTER_DEVICEMAP));
    CUdeviceptr edge = address + 60000;
    ASK(d.cuMemcpyHtoD(edge, on.pageable, 20000), "HtoD over two registrations");
    ASK(d.cuMemcpyDtoH(on.pageable, edge, 20000), "DtoH over two registrations");
    ASK(d.cuMemcpyDtoD(on.other, edge, 20000), "DtoD over two registrations");
    ASK(d.cuMemcpyHtoDAsync(edge, on.pageable, 20000, NULL), "HtoDAsync over two registrations");
    ASK(d.cuMemcpyDtoHAsync(on.pageable, edge, 20000, NULL), "DtoHAsync over two registrations");
    ASK(d.cuMemcpyDtoDAsync(on.other, edge, 20000, NULL), "DtoDAsync over two registrations");
    ASK(d.cuMemsetD8(edge, 1, 20000), "MemsetD8 over two registrations");
    ASK(d.cuMemcpy(on.other, edge, 20000), "cuMemcpy over two registrations");
    ASK(d.cuMemcpyHtoD(on.device, (void *)edge, 20000), "HtoD with two registrations as host source");
    ASK(d.cuMemcpyDtoH((void *)edge, on.device, 20000), "DtoH with two registrations as host destination");
    ASK(d.cuMemcpyHtoDAsync(on.device, (void *)edge, 20000, NULL), "HtoDAsync with two registrations as host source");
    ASK(d.cuMemcpyHtoD(on.device, pages + 4 * 65536 - 4096, 8192), "HtoD with a half registered host source");
    ASK(d.cuMemcpyDtoH(pages + 4 * 65536 - 4096, on.device, 8192), "DtoH with a half registered host destination");
    if (question("kernel over two registrations")) {
        int count = 4 * 65536 / 4, amount = 1;
        launch(fix.ints_add, NULL, (void *[]){&address, &count, &amount});
        answer("%s", error_name(d.cuCtxSynchronize()));
    }
    ASK(d.cuMemHostRegister(pages, 4096, CU_MEMHOSTREGISTER_DEVICEMAP), "register a part again");
    ASK(d.cuMemHostRegister(pages, 65536, CU_MEMHOSTREGISTER_DEVICEMAP), "register the same again");
    ASK(d.cuMemHostRegister(pages, 2 << 20, CU_MEMHOSTREGISTER_DEVICEMAP), "register a superset");
    ASK(d.cuMemHostUnregister(pages + 4096), "unregister an interior pointer");
    if (question("unregister and register again")) {
        CUresult first = d.cuMemHostUnregister(pages),
                 second = d.cuMemHostRegister(pages, 65536, CU_MEMHOSTREGISTER_DEVICEMAP);
        answer("%s, %s", error_name(first), error_name(second));
    }
    if (question("parent writes a registered page after fork")) {
        char *page = pages_new(4096), seen = 0;
        page[0] = 1;
        MUST(d.cuMemHostRegister(page, 4096, CU_MEMHOSTREGISTER_DEVICEMAP));
        pid_t child = fork();
        if (child == 0) {
            usleep(100000);
            _exit(page[0]);
        }
        int status = 0, count = 1;
        page[0] = 2;
        CUdeviceptr from = (CUdeviceptr)(uintptr_t)page;
        launch(fix.ints_copy, NULL, (void *[]){&on.device, &from, &count});
        MUST(d.cuMemcpyDtoH(&seen, on.device, 1));
        waitpid(child, &status, 0);
        answer("GPU sees %d, child sees %d", seen, WEXITSTATUS(status));
    }
}

/* Operations on registered memory as if it were device memory: do they succeed, is the data right? */
void registered(void)
{
    struct operands on;
    operands_new(&on, 4096, NULL);
    MUST(d.cuStreamCreate(&on.stream, CU_STREAM_NON_BLOCKING));
    CUdeviceptr address;
    int *host = registered_new(2 << 20, &address);
    on.device = address;
    int *pageable = on.pageable;
    for (const struct operation *lists[] = {operations_sync, operations_async, operations_ptds, operations_ptsz, NULL},
                                **list = lists;
         *list; list++) {
        for (const struct operation *each = *list; each->name; each++) {
            if (!question("%s", each->name)) continue;
            CUresult code = each->run(&on);
            CUresult end = d.cuCtxSynchronize();
            answer("%s, synchronize %s", error_name(code), error_name(end));
        }
    }
    if (question("value after HtoD")) {
        pageable[0] = 17;
        MUST(d.cuMemcpyHtoD(address, pageable, 64));
        answer("%d", host[0]);
    }
    if (question("value after MemsetD32")) {
        MUST(d.cuMemsetD32(address, 18, 16));
        MUST(d.cuCtxSynchronize());
        answer("%d", host[15]);
    }
    if (question("value after counter_add by 32 x 32 threads")) {
        host[0] = 0;
        MUST(d.cuLaunchKernel(fix.counter_add, 32, 1, 1, 32, 1, 1, 0, NULL, (void *[]){&address}, NULL));
        MUST(d.cuCtxSynchronize());
        answer("%d", host[0]);
    }
    ASK(d.cuStreamWriteValue32(on.stream, address, 5, 0), "cuStreamWriteValue32");
    ASK(d.cuStreamWaitValue32(on.stream, address, 5, CU_STREAM_WAIT_VALUE_EQ), "cuStreamWaitValue32");
    if (question("value after cuStreamWriteValue32")) {
        MUST(d.cuStreamWriteValue32(on.stream, address, 19, 0));
        MUST(d.cuStreamSynchronize(on.stream));
        answer("%d", host[0]);
    }
    if (question("cuIpcGetMemHandle")) {
        CUipcMemHandle handle;
        answer("%s", error_name(d.cuIpcGetMemHandle(&handle, address)));
    }
    ASK(d.cuMemPrefetchAsync(address, 4096, (CUmemLocation){.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}, 0,
                             on.stream),
        "cuMemPrefetchAsync to the device");
    if (question("cuMemGetAddressRange of an interior pointer")) {
        CUdeviceptr base = 0;
        size_t bytes = 0;
        CUresult code = d.cuMemGetAddressRange(&base, &bytes, address + 5000);
        answer("%s, base %+lld, %zu bytes", error_name(code), (long long)(base - address), bytes);
    }
    if (question("memory type")) {
        unsigned type = 77;
        CUresult code = d.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, address);
        answer("%s, %u", error_name(code), type);
    }
    if (question("host pointer")) {
        void *pointer = NULL;
        CUresult code = d.cuPointerGetAttribute(&pointer, CU_POINTER_ATTRIBUTE_HOST_POINTER, address);
        answer("%s, same %s", error_name(code), pointer == host ? "yes" : "no");
    }
    if (question("cuMemFree of it")) answer("%s", error_name(d.cuMemFree(address)));
    if (question("cuMemFreeHost of it")) answer("%s", error_name(d.cuMemFreeHost(host)));
}
