/* Snippets of the driver API: copies, answers, frees, contexts. */
#include "driver.h"

enum { WORDS = 256, BYTES = 4 * WORDS };

static void use(CUdeviceptr device, unsigned rounds)
{
    unsigned host[WORDS], back[WORDS];
    for (unsigned round = 0; round < rounds; round++) {
        for (int i = 0; i < WORDS; i++) host[i] = round + i;
        MUST_DRIVER(D(cuMemcpyHtoD)(device, host, BYTES));
        driver_add(device, 1, WORDS, 0);
        MUST_DRIVER(D(cuMemcpyDtoH)(back, device, BYTES));
        if (back[WORDS - 1] != host[WORDS - 1] + 1) expect(false, "round %u", round);
    }
}

SNIPPET(driver_copies, "", "copies and memsets of every form")
{
    driver_start();
    CUdeviceptr a, b;
    CUstream stream;
    unsigned host[WORDS], back[WORDS];
    fill_random(host, BYTES, 1);
    MUST_DRIVER(D(cuMemAlloc)(&a, BYTES));
    MUST_DRIVER(D(cuMemAlloc)(&b, BYTES));
    MUST_DRIVER(D(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    for (int form = 0; form < 4; form++) {
        use(a, 10);
        if (form == 0) {
            MUST_DRIVER(D(cuMemcpyHtoD)(a, host, BYTES));
            MUST_DRIVER(D(cuMemcpyDtoD)(b, a, BYTES));
            MUST_DRIVER(D(cuMemcpyDtoH)(back, b, BYTES));
        } else if (form == 1) {
            MUST_DRIVER(D(cuMemcpy)(a, (CUdeviceptr)host, BYTES));
            MUST_DRIVER(D(cuMemcpy)(b, a, BYTES));
            MUST_DRIVER(D(cuMemcpy)((CUdeviceptr)back, b, BYTES));
        } else if (form == 2) {
            MUST_DRIVER(D(cuMemcpyHtoDAsync)(a, host, BYTES, stream));
            MUST_DRIVER(D(cuMemcpyDtoDAsync)(b, a, BYTES, stream));
            MUST_DRIVER(D(cuMemcpyDtoHAsync)(back, b, BYTES, stream));
        } else {
            CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                                  .srcHost = host,
                                  .srcPitch = 64,
                                  .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                                  .dstDevice = b,
                                  .dstPitch = 64,
                                  .WidthInBytes = 64,
                                  .Height = BYTES / 64};
            MUST_DRIVER(D(cuMemcpy2D)(&copy));
            CUDA_MEMCPY2D home = {.srcMemoryType = CU_MEMORYTYPE_UNIFIED,
                                  .srcDevice = b,
                                  .srcPitch = 64,
                                  .dstMemoryType = CU_MEMORYTYPE_UNIFIED,
                                  .dstDevice = (CUdeviceptr)back,
                                  .dstPitch = 64,
                                  .WidthInBytes = 64,
                                  .Height = BYTES / 64};
            MUST_DRIVER(D(cuMemcpy2DUnaligned)(&home));
        }
        MUST_DRIVER(D(cuStreamSynchronize)(stream));
        expect(!memcmp(host, back, BYTES), "form %d", form);
        memset(back, 0, BYTES);
    }
    MUST_DRIVER(D(cuMemsetD8)(a, 1, 100));
    MUST_DRIVER(D(cuMemsetD16)(a + 100, 2, 50));
    MUST_DRIVER(D(cuMemsetD32)(a + 200, 3, 25));
    MUST_DRIVER(D(cuMemsetD2D32)(a + 512, 64, 4, 4, 4));
    MUST_DRIVER(D(cuMemcpyDtoH)(back, a, BYTES));
    printf("%016llx\n", (unsigned long long)hash_bytes(back, 300) ^ (unsigned long long)hash_bytes(back + 128, 16));
    SHOW_DRIVER(D(cuMemsetD16)(a + 1, 2, 2));
    SHOW_DRIVER(D(cuMemcpyHtoD)(a + BYTES - 4, host, 8));
    SHOW_DRIVER(D(cuMemcpyHtoD)(0, host, 8));
    SHOW_DRIVER(D(cuMemFree)(a));
    SHOW_DRIVER(D(cuMemFree)(b));
    SHOW_DRIVER(D(cuStreamDestroy)(stream));
}

SNIPPET(driver_address_range, "", "cuMemGetAddressRange of small, large, interior, freed and foreign pointers")
{
    driver_start();
    static const size_t sizes[] = {1, 100, 512, 5000, 65536, 65537, 3 << 20};
    for (size_t k = 0; k < sizeof(sizes) / sizeof(*sizes); k++) {
        CUdeviceptr device, base = 0;
        size_t bytes = 0;
        MUST_DRIVER(D(cuMemAlloc)(&device, sizes[k]));
        if (sizes[k] >= BYTES) use(device, 10);
        CUresult status = D(cuMemGetAddressRange)(&base, &bytes, device);
        printf("%zu: %s, offset %lld, %zu bytes; ", sizes[k], driver_error(status), (long long)(device - base), bytes);
        status = D(cuMemGetAddressRange)(&base, &bytes, device + sizes[k] - 1);
        printf("inside: %s, offset %lld, %zu bytes\n", driver_error(status), (long long)(device + sizes[k] - 1 - base),
               bytes);
        SHOW_DRIVER(D(cuMemGetAddressRange)(NULL, &bytes, device));
        MUST_DRIVER(D(cuMemFree)(device));
    }
    CUdeviceptr base;
    size_t bytes;
    SHOW_DRIVER(D(cuMemGetAddressRange)(&base, &bytes, 0));
    SHOW_DRIVER(D(cuMemGetAddressRange)(&base, &bytes, (CUdeviceptr)(uintptr_t)&bytes));
}

SNIPPET(driver_attributes, "", "single and multiple attribute queries agree, and answer as for a device allocation")
{
    driver_start();
    CUdeviceptr device;
    MUST_DRIVER(D(cuMemAlloc)(&device, 3000));
    use(device, 20);
    for (int inside = 0; inside < 2; inside++) {
        const CUdeviceptr pointer = device + 700 * inside;
        CUmemorytype type = 0;
        CUdeviceptr start = 0, same = 0;
        size_t bytes = 0;
        void *host = (void *)7;
        unsigned managed = 9, mapped = 9;
        int ordinal = -5;
        unsigned long long id = 0;
        CUcontext context, current;
        D(cuCtxGetCurrent)(&current);
        printf("type %s ", driver_error(D(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, pointer)));
        printf("%d\nstart %s ", type,
               driver_error(D(cuPointerGetAttribute)(&start, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, pointer)));
        printf("%lld\nsize %s ", (long long)(pointer - start),
               driver_error(D(cuPointerGetAttribute)(&bytes, CU_POINTER_ATTRIBUTE_RANGE_SIZE, pointer)));
        printf("%zu\nmanaged %s ", bytes,
               driver_error(D(cuPointerGetAttribute)(&managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, pointer)));
        printf("%u\nmapped %s ", managed & 255,
               driver_error(D(cuPointerGetAttribute)(&mapped, CU_POINTER_ATTRIBUTE_MAPPED, pointer)));
        printf("%u\nordinal %s ", mapped & 255,
               driver_error(D(cuPointerGetAttribute)(&ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, pointer)));
        printf("%d\ndevice %s ", ordinal,
               driver_error(D(cuPointerGetAttribute)(&same, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, pointer)));
        printf("%s\nhost %s ", same == pointer ? "same" : "other",
               driver_error(D(cuPointerGetAttribute)(&host, CU_POINTER_ATTRIBUTE_HOST_POINTER, pointer)));
        printf("%s\nid %s ", host == (void *)7 ? "untouched" : "set",
               driver_error(D(cuPointerGetAttribute)(&id, CU_POINTER_ATTRIBUTE_BUFFER_ID, pointer)));
        printf("%s\ncontext %s ", id ? "set" : "0",
               driver_error(D(cuPointerGetAttribute)(&context, CU_POINTER_ATTRIBUTE_CONTEXT, pointer)));
        printf("%s\n", context == current ? "current" : "other");
        CUpointer_attribute wanted[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_RANGE_START_ADDR,
                                        CU_POINTER_ATTRIBUTE_RANGE_SIZE, CU_POINTER_ATTRIBUTE_HOST_POINTER,
                                        CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
        CUmemorytype type_again = 0;
        CUdeviceptr start_again = 0;
        size_t bytes_again = 0;
        int ordinal_again = -1;
        void *into[] = {&type_again, &start_again, &bytes_again, &host, &ordinal_again};
        SHOW_DRIVER(D(cuPointerGetAttributes)(5, wanted, into, pointer));
        expect(type == type_again && start == start_again && bytes == bytes_again && ordinal == ordinal_again,
               "they agree");
        printf("host %s\n", host == (void *)7 ? "untouched" : host ? "set" : "null");
    }
    MUST_DRIVER(D(cuMemFree)(device));
    CUmemorytype type = 77;
    SHOW_DRIVER(D(cuPointerGetAttribute)(&type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)(uintptr_t)&type));
    printf("%d\n", type);
}

SNIPPET(driver_wrong_frees, "", "freed, interior, foreign and null pointers given to every free")
{
    driver_start();
    CUdeviceptr device, large;
    void *pinned;
    MUST_DRIVER(D(cuMemAlloc)(&device, 4096));
    MUST_DRIVER(D(cuMemAlloc)(&large, 4 << 20));
    MUST_DRIVER(D(cuMemHostAlloc)(&pinned, 4096, 0));
    use(device, 10);
    SHOW_DRIVER(D(cuMemFree)(device + 512));
    SHOW_DRIVER(D(cuMemFree)(large + 512));
    SHOW_DRIVER(D(cuMemFreeHost)((void *)device));
    SHOW_DRIVER(D(cuMemHostUnregister)((void *)device));
    SHOW_DRIVER(D(cuMemFree)((CUdeviceptr)pinned));
    SHOW_DRIVER(D(cuMemFreeHost)(&pinned));
    SHOW_DRIVER(D(cuMemFree)(0));
    use(device, 10);
    SHOW_DRIVER(D(cuMemFree)(device));
    SHOW_DRIVER(D(cuMemFree)(device));
    SHOW_DRIVER(D(cuMemFree)(large));
    SHOW_DRIVER(D(cuMemFreeHost)(pinned));
    SHOW_DRIVER(D(cuMemFreeHost)(pinned));
}

static void *without_context(void *argument)
{
    CUdeviceptr device = *(CUdeviceptr *)argument, other = 0;
    unsigned value = 3;
    SHOW_DRIVER(D(cuMemAlloc)(&other, 100));
    SHOW_DRIVER(D(cuMemcpyHtoD)(device, &value, 4));
    SHOW_DRIVER(D(cuMemcpyDtoH)(&value, device, 4));
    SHOW_DRIVER(D(cuMemsetD8)(device, 1, 4));
    SHOW_DRIVER(D(cuCtxSynchronize)());
    return NULL;
}

SNIPPET(driver_no_context, "", "calls of a thread that has no context answer as natively")
{
    CUdeviceptr device = 0;
    SHOW_DRIVER(D(cuMemAlloc)(&device, 100));
    driver_start();
    MUST_DRIVER(D(cuMemAlloc)(&device, BYTES));
    use(device, 10);
    pthread_t thread;
    pthread_create(&thread, NULL, without_context, &device);
    pthread_join(thread, NULL);
    use(device, 10);
    MUST_DRIVER(D(cuMemFree)(device));
}

SNIPPET(driver_contexts, "",
        "several contexts with small buffers each, pushed and popped, one destroyed with its buffers")
{
    enum { CONTEXTS = 3 };
    driver_start();
    CUcontext context[CONTEXTS], popped;
    CUdeviceptr device[CONTEXTS];
    unsigned value;
    for (int i = 0; i < CONTEXTS; i++) {
        MUST_DRIVER(D(cuCtxCreate)(&context[i], NULL, 0, 0));
        MUST_DRIVER(D(cuMemAlloc)(&device[i], BYTES));
        use(device[i], 10);
        MUST_DRIVER(D(cuCtxPopCurrent)(&popped));
        expect(popped == context[i], "context %d", i);
    }
    for (int round = 0; round < 5; round++)
        for (int i = 0; i < CONTEXTS; i++) {
            MUST_DRIVER(D(cuCtxPushCurrent)(context[i]));
            use(device[i], 5);
            value = 100 * i + round;
            MUST_DRIVER(D(cuMemcpyHtoD)(device[i], &value, 4));
            MUST_DRIVER(D(cuCtxSynchronize)()); /* the copy may return before its bytes have arrived */
            MUST_DRIVER(D(cuCtxPopCurrent)(&popped));
        }
    MUST_DRIVER(D(cuCtxPushCurrent)(context[0]));
    for (int i = 0; i < CONTEXTS; i++) { /* copies name memory of other contexts */
        CUresult status = D(cuMemcpyDtoH)(&value, device[i], 4);
        printf("from context 0, buffer of %d: %s, %u\n", i, driver_error(status), value);
    }
    SHOW_DRIVER(D(cuMemFree)(device[2]));
    MUST_DRIVER(D(cuCtxPopCurrent)(&popped));
    SHOW_DRIVER(D(cuCtxDestroy)(context[1]));
    SHOW_DRIVER(D(cuMemFree)(device[1]));
    SHOW_DRIVER(D(cuMemcpyDtoH)(&value, device[1], 4));
    MUST_DRIVER(D(cuCtxPushCurrent)(context[0]));
    use(device[0], 10);
    MUST_DRIVER(D(cuMemFree)(device[0]));
    SHOW_DRIVER(D(cuCtxDestroy)(context[0]));
    SHOW_DRIVER(D(cuCtxDestroy)(context[2]));
    CUdeviceptr fresh;
    MUST_DRIVER(D(cuMemAlloc)(&fresh, BYTES));
    use(fresh, 10);
    SHOW_DRIVER(D(cuMemFree)(fresh));
}

SNIPPET(driver_primary_reset, "", "the primary context is reset, released to zero and taken again")
{
    CUdeviceptr device;
    unsigned value = 1;
    driver_start();
    MUST_DRIVER(D(cuMemAlloc)(&device, BYTES));
    use(device, 20);
    SHOW_DRIVER(D(cuDevicePrimaryCtxRelease)(0));
    SHOW_DRIVER(D(cuMemcpyDtoH)(&value, device, 4));
    driver_start();
    MUST_DRIVER(D(cuMemAlloc)(&device, BYTES));
    MUST_DRIVER(D(cuMemcpyHtoD)(device, &value, 4));
    MUST_DRIVER(D(cuMemcpyDtoH)(&value, device, 4));
    SHOW_DRIVER(D(cuMemFree)(device));
    SHOW_DRIVER(D(cuMemAlloc)(&device, BYTES));
    SHOW_DRIVER(D(cuDevicePrimaryCtxReset)(0));
    SHOW_DRIVER(D(cuMemFree)(device));
    expect(value == 1, "%u", value);
}

SNIPPET(driver_stream_values, "", "stream write and wait value on a small buffer, among copies")
{
    driver_start();
    CUdeviceptr device;
    CUstream stream;
    unsigned value = 0;
    MUST_DRIVER(D(cuMemAlloc)(&device, BYTES));
    MUST_DRIVER(D(cuStreamCreate)(&stream, CU_STREAM_NON_BLOCKING));
    use(device, 20);
    MUST_DRIVER(D(cuMemsetD32)(device, 0, WORDS));
    MUST_DRIVER(D(cuCtxSynchronize)());
    for (unsigned round = 1; round < 20; round++) {
        MUST_DRIVER(D(cuStreamWriteValue32)(stream, device, round, CU_STREAM_WRITE_VALUE_DEFAULT));
        MUST_DRIVER(D(cuStreamWaitValue32)(stream, device, round, CU_STREAM_WAIT_VALUE_EQ));
        MUST_DRIVER(D(cuMemcpyDtoHAsync)(&value, device, 4, stream));
        MUST_DRIVER(D(cuStreamSynchronize)(stream));
        if (value != round) expect(false, "round %u: %u", round, value);
    }
    expect(value == 19, "%u", value);
    MUST_DRIVER(D(cuStreamDestroy)(stream));
    MUST_DRIVER(D(cuMemFree)(device));
}

static void *push_elsewhere(void *argument)
{
    CUcontext popped;
    CUdeviceptr device;
    MUST_DRIVER(D(cuCtxPushCurrent)(argument));
    MUST_DRIVER(D(cuMemAlloc)(&device, BYTES));
    use(device, 20);
    MUST_DRIVER(D(cuMemFree)(device));
    MUST_DRIVER(D(cuCtxPopCurrent)(&popped));
    return NULL;
}

SNIPPET(driver_migrating_contexts, "", "contexts that move between threads")
{
    driver_start();
    CUcontext context, popped;
    MUST_DRIVER(D(cuCtxCreate)(&context, NULL, 0, 0));
    MUST_DRIVER(D(cuCtxPopCurrent)(&popped));
    for (int round = 0; round < 6; round++) {
        pthread_t thread[2];
        for (int t = 0; t < 2; t++) pthread_create(&thread[t], NULL, push_elsewhere, context);
        for (int t = 0; t < 2; t++) pthread_join(thread[t], NULL);
    }
    SHOW_DRIVER(D(cuCtxDestroy)(context));
}
