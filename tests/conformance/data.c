/* What memory holds after each operation; who sees whose writes; calls from inside a host function. */
#include <pthread.h>
#include <unistd.h>
#include "operations.h"

/* Different for different places of the same byte. */
static unsigned checksum(const void *bytes, size_t count)
{
    const unsigned char *byte = bytes;
    unsigned sum = 1, sum_of_sums = 0;
    for (size_t i = 0; i < count; i++) {
        sum = (sum + byte[i]) % 65521;
        sum_of_sums = (sum_of_sums + sum) % 65521;
    }
    return sum_of_sums;
}

static void fill(void *bytes, size_t count, unsigned seed)
{
    unsigned char *byte = bytes;
    for (size_t i = 0; i < count; i++) byte[i] = (unsigned char)(seed + i * 7 + i / 256);
}

static unsigned device_checksum(CUdeviceptr device, size_t count)
{
    static unsigned char back[1 << 16];
    MUST(d.cuMemcpyDtoH(back, device, count));
    return checksum(back, count);
}

void data(void)
{
    struct operands on;
    static unsigned char pattern[4096];
    operands_new(&on, 1024, NULL);
    MUST(d.cuStreamCreate(&on.stream, CU_STREAM_NON_BLOCKING));
    for (const struct operation *lists[] = {operations_sync, operations_async, operations_ptds, operations_ptsz, NULL},
                                **list = lists;
         *list; list++) {
        for (const struct operation *each = *list; each->name; each++) {
            if (!question("after %s", each->name)) continue;
            fill(pattern, on.bytes, 100);
            MUST(d.cuMemcpyHtoD(on.device, pattern, on.bytes));
            fill(pattern, on.bytes, 50);
            MUST(d.cuMemcpyHtoD(on.other, pattern, on.bytes));
            fill(on.pageable, 4096, 1);
            fill(on.pinned, 4096, 2);
            MUST(d.cuCtxSynchronize());
            CUresult code = each->run(&on);
            MUST(d.cuCtxSynchronize());
            answer("%s, device %u, other %u, pageable %u, pinned %u", error_name(code),
                   device_checksum(on.device, on.bytes), device_checksum(on.other, on.bytes),
                   checksum(on.pageable, 4096), checksum(on.pinned, 4096));
        }
    }
    if (question("1000 rounds of copy in, add 1, copy out")) {
        int value = 0, count = 1, amount = 1;
        for (int i = 0; i < 1000; i++) {
            MUST(d.cuMemcpyHtoD(on.device, &value, 4));
            launch(fix.ints_add, NULL, (void *[]){&on.device, &count, &amount});
            MUST(d.cuMemcpyDtoH(&value, on.device, 4));
        }
        answer("%d", value);
    }
    if (question("1000 rounds on 100 buffers")) {
        CUdeviceptr many[100];
        long sum = 0;
        for (int i = 0; i < 100; i++) MUST(d.cuMemAlloc(&many[i], 4 * (size_t)(i + 1)));
        for (int i = 0; i < 1000; i++) {
            int value = i;
            MUST(d.cuMemcpyHtoD(many[i % 100] + 4 * (size_t)(i % 100), &value, 4));
        }
        for (int i = 0; i < 100; i++) sum += int_at(many[i] + 4 * (size_t)i);
        for (int i = 0; i < 100; i++) MUST(d.cuMemFree(many[i]));
        answer("%ld", sum);
    }
    if (question("20000 live buffers of 64 bytes")) {
        enum { LIVE = 20000 };
        static CUdeviceptr live[LIVE];
        int failed = 0, wrong = 0, misplaced = 0;
        for (int i = 0; i < LIVE; i++) {
            failed += d.cuMemAlloc(&live[i], 64) != CUDA_SUCCESS;
            failed += d.cuMemcpyHtoD(live[i], &i, 4) != CUDA_SUCCESS;
            misplaced += live[i] % 512 != 0;
        }
        for (int i = 0; i < LIVE; i += 7) wrong += int_at(live[i]) != i;
        for (int i = 0; i < LIVE; i++) failed += d.cuMemFree(live[i]) != CUDA_SUCCESS;
        answer("failed %d, wrong %d, not at a multiple of 512 %d", failed, wrong, misplaced);
    }
    if (question("launch with packed parameters")) {
        struct {
            CUdeviceptr ints;
            int count, amount;
        } packed = {on.device, 1, 5};
        size_t size = 16;
        void *extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &packed, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                         CU_LAUNCH_PARAM_END};
        MUST(d.cuMemsetD32(on.device, 1, 1));
        CUresult code = d.cuLaunchKernel(fix.ints_add, 1, 1, 1, 1, 1, 1, 0, NULL, NULL, extra);
        answer("%s, %d", error_name(code), int_at(on.device));
    }
    if (question("launch by cuLaunchKernelEx")) {
        int count = 1, amount = 6;
        CUlaunchConfig config = {
            .gridDimX = 1, .gridDimY = 1, .gridDimZ = 1, .blockDimX = 1, .blockDimY = 1, .blockDimZ = 1};
        MUST(d.cuMemsetD32(on.device, 1, 1));
        CUresult code = d.cuLaunchKernelEx(&config, fix.ints_add, (void *[]){&on.device, &count, &amount}, NULL);
        answer("%s, %d", error_name(code), int_at(on.device));
    }
    if (question("counter_add by 32 x 32 threads")) {
        MUST(d.cuMemsetD32(on.device, 0, 1));
        MUST(d.cuLaunchKernel(fix.counter_add, 32, 1, 1, 32, 1, 1, 0, NULL, (void *[]){&on.device}, NULL));
        answer("%d", int_at(on.device));
    }
    if (question("buffer of 64 KiB, first and last byte")) {
        CUdeviceptr large;
        char last = 9;
        int first = 8;
        MUST(d.cuMemAlloc(&large, 65536));
        MUST(d.cuMemcpyHtoD(large, &first, 4));
        MUST(d.cuMemcpyHtoD(large + 65535, &last, 1));
        last = 0;
        MUST(d.cuMemcpyDtoH(&last, large + 65535, 1));
        answer("%d, %d", int_at(large), last);
    }
}

/* ------------------------------------------------------------------------------------------------ visibility */

static struct {
    struct operands on;
    CUresult alloc, free, htod, query, attribute, range, sync;
    CUdeviceptr got;
} from_host_function;

static void write_nine(void *target) { *(int *)target = 9; }

static void call_driver(void *unused)
{
    (void)unused;
    unsigned type;
    size_t bytes;
    CUdeviceptr base;
    struct operands *on = &from_host_function.on;
    from_host_function.alloc = d.cuMemAlloc(&from_host_function.got, 256);
    from_host_function.htod = d.cuMemcpyHtoD(on->device, on->pageable, 4);
    from_host_function.query = d.cuStreamQuery(on->stream);
    from_host_function.attribute = d.cuPointerGetAttribute(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, on->device);
    from_host_function.range = d.cuMemGetAddressRange(&base, &bytes, on->device);
    from_host_function.free = d.cuMemFree(on->other);
}

static void *free_in_thread(void *device)
{
    d.cuCtxSetCurrent(fix.context);
    return (void *)(intptr_t)d.cuMemFree((CUdeviceptr)device);
}

void visibility(void)
{
    struct operands on;
    operands_new(&on, 1024, NULL);
    int *pageable = on.pageable, *pinned = on.pinned;
    MUST(d.cuStreamCreate(&on.stream, CU_STREAM_NON_BLOCKING));
    if (question("HtoDAsync pinned behind a host function that writes the source")) {
        pinned[0] = 1;
        gate_close(on.stream);
        MUST(d.cuLaunchHostFunc(on.stream, write_nine, pinned));
        MUST(d.cuMemcpyHtoDAsync(on.device, pinned, 4, on.stream));
        gate_open();
        MUST(d.cuStreamSynchronize(on.stream));
        answer("device holds %d", int_at(on.device));
    }
    if (question("HtoDAsync pageable behind a host function that writes the source")) {
        pageable[0] = 1;
        gate_close(on.stream);
        MUST(d.cuLaunchHostFunc(on.stream, write_nine, pageable));
        MUST(d.cuMemcpyHtoDAsync(on.device, pageable, 4, on.stream));
        gate_open();
        MUST(d.cuStreamSynchronize(on.stream));
        answer("device holds %d", int_at(on.device));
    }
    if (question("HtoDAsync pinned in a busy stream, source overwritten after the return")) {
        pinned[0] = 1;
        gate_close(on.stream);
        MUST(d.cuMemcpyHtoDAsync(on.device, pinned, 4, on.stream));
        pinned[0] = 2;
        gate_open();
        MUST(d.cuStreamSynchronize(on.stream));
        answer("device holds %d", int_at(on.device));
    }
    if (question("DtoHAsync pinned in a busy stream, destination at the return and after")) {
        MUST(d.cuMemsetD32(on.device, 7, 1));
        MUST(d.cuCtxSynchronize());
        pinned[0] = 0;
        gate_close(on.stream);
        MUST(d.cuMemcpyDtoHAsync(pinned, on.device, 4, on.stream));
        int early = pinned[0];
        gate_open();
        MUST(d.cuStreamSynchronize(on.stream));
        answer("%d, %d", early, pinned[0]);
    }
    if (question("HtoD while a non-blocking stream holds a reader of the buffer")) {
        int count = 1;
        MUST(d.cuMemsetD32(on.device, 1, 1));
        launch(fix.ints_copy, on.stream, (void *[]){&on.other, &on.device, &count});
        MUST(d.cuCtxSynchronize());
        gate_close(on.stream);
        launch(fix.ints_copy, on.stream, (void *[]){&on.other, &on.device, &count});
        pageable[0] = 2;
        MUST(d.cuMemcpyHtoD(on.device, pageable, 4));
        MUST(d.cuStreamSynchronize(CU_STREAM_LEGACY)); /* the copy may return before its bytes have arrived */
        gate_open();
        MUST(d.cuStreamSynchronize(on.stream));
        answer("reader saw %d", int_at(on.other));
    }
    if (question("HtoDAsync behind an earlier reader of the buffer in the same stream")) {
        int count = 1;
        MUST(d.cuMemsetD32(on.device, 1, 1));
        MUST(d.cuCtxSynchronize());
        gate_close(on.stream);
        launch(fix.ints_copy, on.stream, (void *[]){&on.other, &on.device, &count});
        pageable[0] = 3;
        MUST(d.cuMemcpyHtoDAsync(on.device, pageable, 4, on.stream));
        gate_open();
        MUST(d.cuStreamSynchronize(on.stream));
        answer("reader saw %d, buffer holds %d", int_at(on.other), int_at(on.device));
    }
    if (question("MemsetD32Async behind an earlier reader of the buffer in the same stream")) {
        int count = 1;
        MUST(d.cuMemsetD32(on.device, 1, 1));
        MUST(d.cuCtxSynchronize());
        gate_close(on.stream);
        launch(fix.ints_copy, on.stream, (void *[]){&on.other, &on.device, &count});
        MUST(d.cuMemsetD32Async(on.device, 4, 1, on.stream));
        gate_open();
        MUST(d.cuStreamSynchronize(on.stream));
        answer("reader saw %d, buffer holds %d", int_at(on.other), int_at(on.device));
    }
    if (question("calls inside a host function")) {
        operands_new(&from_host_function.on, 256, on.stream);
        MUST(d.cuLaunchHostFunc(on.stream, call_driver, NULL));
        MUST(d.cuStreamSynchronize(on.stream));
        answer("alloc %s, HtoD %s, query %s, attribute %s, range %s, free %s", error_name(from_host_function.alloc),
               error_name(from_host_function.htod), error_name(from_host_function.query),
               error_name(from_host_function.attribute), error_name(from_host_function.range),
               error_name(from_host_function.free));
    }
    if (question("free in another thread")) {
        pthread_t thread;
        void *code = NULL;
        CUdeviceptr device;
        MUST(d.cuMemAlloc(&device, 256));
        pthread_create(&thread, NULL, free_in_thread, (void *)device);
        pthread_join(thread, &code);
        answer("%s, then here %s", error_name((CUresult)(intptr_t)code), error_name(d.cuMemFree(device)));
    }
    if (question("cuMemFree of a buffer that a kernel still reads")) {
        CUdeviceptr device, result;
        int count = 1;
        MUST(d.cuMemAlloc(&device, 256));
        MUST(d.cuMemAlloc(&result, 256));
        MUST(d.cuMemsetD32(device, 6, 1));
        MUST(d.cuCtxSynchronize());
        launch(fix.ints_copy, on.stream, (void *[]){&result, &device, &count});
        MUST(d.cuMemFree(device));
        answer("reader saw %d", int_at(result));
    }
    CUstream behind;
    CUevent event;
    MUST(d.cuStreamCreate(&behind, CU_STREAM_NON_BLOCKING));
    MUST(d.cuEventCreate(&event, CU_EVENT_DISABLE_TIMING));
    for (int pin = 0; pin < 2; pin++) {
        int *source = pin ? pinned : pageable, count = 1;
        const char *name = pin ? "pinned" : "pageable";
        if (question("HtoDAsync %s in a stream that waits for an event of a busy one", name)) {
            MUST(d.cuMemsetD32(on.device, 1, 1));
            MUST(d.cuCtxSynchronize());
            gate_close(on.stream);
            launch(fix.ints_copy, on.stream, (void *[]){&on.other, &on.device, &count});
            MUST(d.cuEventRecord(event, on.stream));
            MUST(d.cuStreamWaitEvent(behind, event, 0));
            source[0] = 5;
            MUST(d.cuMemcpyHtoDAsync(on.device, source, 4, behind));
            CUresult query = d.cuStreamQuery(behind);
            gate_open();
            MUST(d.cuCtxSynchronize());
            answer("stream %s, reader saw %d, buffer holds %d", error_name(query), int_at(on.other), int_at(on.device));
        }
        if (question("HtoDAsync %s in a stream that waits for a value", name)) {
            CUdeviceptr value;
            MUST(d.cuMemAlloc(&value, 4));
            MUST(d.cuMemsetD32(value, 0, 1));
            MUST(d.cuMemsetD32(on.device, 1, 1));
            MUST(d.cuCtxSynchronize());
            MUST(d.cuStreamWaitValue32(behind, value, 1, CU_STREAM_WAIT_VALUE_EQ));
            launch(fix.ints_copy, behind, (void *[]){&on.other, &on.device, &count});
            source[0] = 6;
            MUST(d.cuMemcpyHtoDAsync(on.device, source, 4, behind));
            MUST(d.cuMemsetD32Async(value, 1, 1, on.stream));
            MUST(d.cuCtxSynchronize());
            answer("reader saw %d, buffer holds %d", int_at(on.other), int_at(on.device));
        }
        if (question("HtoDAsync %s behind a host function in the same stream", name)) {
            MUST(d.cuMemsetD32(on.device, 1, 1));
            MUST(d.cuCtxSynchronize());
            gate_close(on.stream);
            launch(fix.ints_copy, on.stream, (void *[]){&on.other, &on.device, &count});
            MUST(d.cuLaunchHostFunc(on.stream, write_nine, &(int){0}));
            source[0] = 7;
            MUST(d.cuMemcpyHtoDAsync(on.device, source, 4, on.stream));
            gate_open();
            MUST(d.cuCtxSynchronize());
            answer("reader saw %d, buffer holds %d", int_at(on.other), int_at(on.device));
        }
    }
    if (question("HtoD behind a reader in the legacy stream, then the reader's result")) {
        int count = 1;
        MUST(d.cuMemsetD32(on.device, 1, 1));
        launch(fix.ints_copy, NULL, (void *[]){&on.other, &on.device, &count});
        pageable[0] = 8;
        MUST(d.cuMemcpyHtoD(on.device, pageable, 4));
        answer("reader saw %d, buffer holds %d", int_at(on.other), int_at(on.device));
    }
    if (question("HtoD, kernel in a blocking stream without a wait, DtoH in the legacy stream")) {
        CUstream blocking;
        int count = 1, amount = 1;
        MUST(d.cuStreamCreate(&blocking, CU_STREAM_DEFAULT));
        pageable[0] = 30;
        MUST(d.cuMemcpyHtoD(on.device, pageable, 4));
        launch(fix.ints_add, blocking, (void *[]){&on.device, &count, &amount});
        answer("%d", int_at(on.device));
    }
    if (question("MemsetD32, DtoD, kernel, DtoH in the legacy stream without a wait")) {
        int count = 1, amount = 1;
        MUST(d.cuMemsetD32(on.device, 50, 1));
        MUST(d.cuMemcpyDtoD(on.other, on.device, 4));
        launch(fix.ints_add, NULL, (void *[]){&on.other, &count, &amount});
        answer("%d", int_at(on.other));
    }
}
