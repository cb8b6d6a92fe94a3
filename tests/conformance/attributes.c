/* Pointer attributes, one by one and in bulk; address ranges. */
#include <stdio.h>
#include <stdlib.h>
#include "places.h"

static const struct {
    CUpointer_attribute which;
    const char *name;
    enum { NUMBER32, BOOL8, POINTER, BASE, SIZE, HANDLE, OPAQUE64, TOKENS } kind;
} attributes[] = {
    {CU_POINTER_ATTRIBUTE_CONTEXT, "CONTEXT", HANDLE},
    {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, "MEMORY_TYPE", NUMBER32},
    {CU_POINTER_ATTRIBUTE_DEVICE_POINTER, "DEVICE_POINTER", POINTER},
    {CU_POINTER_ATTRIBUTE_HOST_POINTER, "HOST_POINTER", POINTER},
    {CU_POINTER_ATTRIBUTE_P2P_TOKENS, "P2P_TOKENS", TOKENS},
    {CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, "SYNC_MEMOPS", BOOL8},
    {CU_POINTER_ATTRIBUTE_BUFFER_ID, "BUFFER_ID", OPAQUE64},
    {CU_POINTER_ATTRIBUTE_IS_MANAGED, "IS_MANAGED", BOOL8},
    {CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, "DEVICE_ORDINAL", NUMBER32},
    {CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE, "IS_LEGACY_CUDA_IPC_CAPABLE", BOOL8},
    {CU_POINTER_ATTRIBUTE_RANGE_START_ADDR, "RANGE_START_ADDR", POINTER},
    {CU_POINTER_ATTRIBUTE_RANGE_SIZE, "RANGE_SIZE", SIZE},
    {CU_POINTER_ATTRIBUTE_MAPPED, "MAPPED", BOOL8},
    {CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES, "ALLOWED_HANDLE_TYPES", NUMBER32},
    {CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE, "IS_GPU_DIRECT_RDMA_CAPABLE", BOOL8},
    {CU_POINTER_ATTRIBUTE_ACCESS_FLAGS, "ACCESS_FLAGS", NUMBER32},
    {CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE, "MEMPOOL_HANDLE", HANDLE},
    {CU_POINTER_ATTRIBUTE_MAPPING_SIZE, "MAPPING_SIZE", SIZE},
    {CU_POINTER_ATTRIBUTE_MAPPING_BASE_ADDR, "MAPPING_BASE_ADDR", BASE},
    {CU_POINTER_ATTRIBUTE_MEMORY_BLOCK_ID, "MEMORY_BLOCK_ID", OPAQUE64},
    {CU_POINTER_ATTRIBUTE_IS_HW_DECOMPRESS_CAPABLE, "IS_HW_DECOMPRESS_CAPABLE", BOOL8},
};
enum { ATTRIBUTES = sizeof attributes / sizeof *attributes };

union value {
    unsigned char bytes[64];
    unsigned number;
    uint64_t word;
};

static union value value_untouched(void)
{
    union value value;
    memset(&value, 0xa5, sizeof value);
    return value;
}

/* Values as something that is the same in every run. */
static const char *value_name(int index, const union value *value, CUdeviceptr at)
{
    static char text[64];
    union value untouched = value_untouched();
    if (memcmp(value, &untouched, sizeof *value) == 0) return "untouched";
    switch (attributes[index].kind) {
    case NUMBER32:
        snprintf(text, sizeof text, "%d", (int)value->number);
        break;
    case BOOL8:
        snprintf(text, sizeof text, "%d", value->bytes[0]);
        break;
    case POINTER:
        if (value->word == 0) return "0";
        if (value->word == at) return "the pointer";
        if (at - value->word < 4096) {
            snprintf(text, sizeof text, "the pointer - %d", (int)(at - value->word));
            return text;
        }
        return at - value->word < (2u << 20) ? "less than 2 MiB below the pointer" : "elsewhere";
    case BASE: /* where in its mapping a small buffer lies is the driver's business */
        return value->word == 0                ? "0"
               : at - value->word < (2u << 20) ? "less than 2 MiB below the pointer"
                                               : "elsewhere";
    case SIZE:
        snprintf(text, sizeof text, "%llu", (unsigned long long)value->word);
        break;
    case HANDLE:
        return value->word == 0 ? "0" : value->word == (uintptr_t)fix.context ? "the context" : "set";
    case OPAQUE64:
        return value->word == 0 ? "0" : "set";
    case TOKENS:
        return "set";
    }
    return text;
}

void answers_attributes(void)
{
    for (enum place place = LIVE; place < PLACES; place++) {
        CUdeviceptr at = place_new(place);
        for (int i = 0; i < ATTRIBUTES; i++) {
            if (!question("%s, %s", attributes[i].name, place_names[place])) continue;
            union value value = value_untouched();
            CUresult code = d.cuPointerGetAttribute(&value, attributes[i].which, at);
            answer("%s, %s", error_name(code), value_name(i, &value, at));
        }
        if (question("unknown attribute 99, %s", place_names[place])) {
            union value value = value_untouched();
            CUresult code = d.cuPointerGetAttribute(&value, 99, at);
            answer("%s, %s", error_name(code), value_name(1, &value, at));
        }
        if (question("NULL output, %s", place_names[place])) {
            answer("%s", error_name(d.cuPointerGetAttribute(NULL, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at)));
        }
    }
    for (enum place place = LIVE; place < PLACES; place++) {
        CUdeviceptr at = place_new(place);
        for (int i = 0; i < ATTRIBUTES; i++) {
            if (attributes[i].kind == TOKENS) continue;
            if (!question("in bulk, %s, %s", attributes[i].name, place_names[place])) continue;
            CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, attributes[i].which};
            union value values[] = {value_untouched(), value_untouched()};
            void *outputs[] = {&values[0], &values[1]};
            CUresult code = d.cuPointerGetAttributes(2, which, outputs, at);
            const char *type = memcmp(&values[0], &(union value[]){value_untouched()}, sizeof *values) == 0
                                   ? "untouched"
                               : values[0].number == CU_MEMORYTYPE_DEVICE ? "device"
                               : values[0].number == CU_MEMORYTYPE_HOST   ? "host"
                               : values[0].number == 0                    ? "0"
                                                                          : "other";
            answer("%s, type %s, %s", error_name(code), type, value_name(i, &values[1], at));
        }
        if (question("as cudart asks, %s", place_names[place])) {
            CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_CONTEXT,        CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
                                           CU_POINTER_ATTRIBUTE_DEVICE_POINTER, CU_POINTER_ATTRIBUTE_HOST_POINTER,
                                           CU_POINTER_ATTRIBUTE_IS_MANAGED,     CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL};
            union value values[6];
            void *outputs[6];
            for (int i = 0; i < 6; i++) {
                values[i] = value_untouched();
                outputs[i] = &values[i];
            }
            CUresult code = d.cuPointerGetAttributes(6, which, outputs, at);
            answer("%s, type %d, device pointer %s, host pointer %s, managed %d, device %d", error_name(code),
                   (int)values[1].number,
                   values[2].word == at ? "same"
                   : values[2].word     ? "other"
                                        : "0",
                   values[3].word == at ? "same"
                   : values[3].word     ? "other"
                                        : "0",
                   values[4].bytes[0], (int)values[5].number);
        }
    }
    if (question("no attributes in bulk"))
        answer("%s", error_name(d.cuPointerGetAttributes(0, NULL, NULL, place_new(LIVE))));
    if (question("bulk with an unknown attribute")) {
        CUpointer_attribute which[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 99};
        union value values[] = {value_untouched(), value_untouched()};
        void *outputs[] = {&values[0], &values[1]};
        CUdeviceptr at = place_new(LIVE);
        CUresult code = d.cuPointerGetAttributes(2, which, outputs, at);
        answer("%s, %s", error_name(code), value_name(1, &values[0], at));
    }
    EACH_PLACE("set SYNC_MEMOPS", {
        unsigned on = 1;
        union value value = value_untouched();
        CUresult code = d.cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at);
        CUresult get = d.cuPointerGetAttribute(&value, CU_POINTER_ATTRIBUTE_SYNC_MEMOPS, at);
        answer("%s, then %s, %s", error_name(code), error_name(get), value_name(5, &value, at));
    });
    EACH_PLACE("set MEMORY_TYPE", {
        unsigned on = 1;
        answer("%s", error_name(d.cuPointerSetAttribute(&on, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at)));
    });
    EACH_PLACE("cuMemGetAddressRange", {
        CUdeviceptr base = 7;
        size_t bytes = 7;
        CUresult code = d.cuMemGetAddressRange(&base, &bytes, at);
        const char *where = base == 7         ? "untouched"
                            : base == at      ? "the pointer"
                            : base == at - 16 ? "the pointer - 16"
                                              : "other";
        answer("%s, base %s, %zu bytes", error_name(code), where, bytes);
    });
    if (question("cuMemGetAddressRange with NULL outputs")) {
        CUdeviceptr at = place_new(LIVE), base = 0;
        size_t bytes = 0;
        CUresult first = d.cuMemGetAddressRange(NULL, &bytes, at), second = d.cuMemGetAddressRange(&base, NULL, at);
        CUresult third = d.cuMemGetAddressRange(NULL, NULL, at);
        answer("%s, %s, %s", error_name(first), error_name(second), error_name(third));
    }
    if (question("two buffers have different BUFFER_ID")) {
        uint64_t ids[2] = {0, 0};
        CUdeviceptr first = place_new(LIVE), second = place_new(LIVE);
        d.cuPointerGetAttribute(&ids[0], CU_POINTER_ATTRIBUTE_BUFFER_ID, first);
        d.cuPointerGetAttribute(&ids[1], CU_POINTER_ATTRIBUTE_BUFFER_ID, second);
        answer("%s", ids[0] != ids[1] ? "yes" : "no");
    }
    if (question("one buffer keeps its BUFFER_ID")) {
        uint64_t ids[2] = {0, 0};
        CUdeviceptr at = place_new(LIVE);
        d.cuPointerGetAttribute(&ids[0], CU_POINTER_ATTRIBUTE_BUFFER_ID, at);
        d.cuMemsetD8(at, 1, BYTES);
        d.cuPointerGetAttribute(&ids[1], CU_POINTER_ATTRIBUTE_BUFFER_ID, at + 8);
        answer("%s", ids[0] == ids[1] ? "yes" : "no");
    }
}

/* The same of memory that is not from cuMemAlloc. */
void attributes_other(void)
{
    enum { PINNED, WRITE_COMBINED, REGISTERED, MANAGED, POOL, VIRTUAL, RESERVED, LARGE, LARGE_MALLOC, KINDS };
    static const char *const names[KINDS] = {"pinned",  "write-combined", "registered", "managed",         "pool",
                                             "virtual", "reserved",       "8 MiB",      "malloc of 16 MiB"};
    CUdeviceptr device[KINDS] = {0}, reserved = 0;
    void *host;
    CUstream stream;
    CUmemAllocationProp kind = {.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                                .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = fix.device}};
    CUmemAccessDesc access = {.location = kind.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    CUmemGenericAllocationHandle chunk;
    MUST(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(d.cuMemHostAlloc(&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP));
    device[PINNED] = (CUdeviceptr)host;
    MUST(d.cuMemHostAlloc(&host, 4096, CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED));
    device[WRITE_COMBINED] = (CUdeviceptr)host;
    host = pages_new(65536);
    MUST(d.cuMemHostRegister(host, 65536, CU_MEMHOSTREGISTER_DEVICEMAP));
    device[REGISTERED] = (CUdeviceptr)host;
    MUST(d.cuMemAllocManaged(&device[MANAGED], 256, CU_MEM_ATTACH_GLOBAL));
    MUST(d.cuMemAllocAsync(&device[POOL], 256, stream));
    MUST(d.cuStreamSynchronize(stream));
    MUST(d.cuMemAddressReserve(&device[VIRTUAL], 4 << 20, 0, 0, 0));
    MUST(d.cuMemCreate(&chunk, 2 << 20, &kind, 0));
    MUST(d.cuMemMap(device[VIRTUAL], 2 << 20, 0, chunk, 0));
    MUST(d.cuMemSetAccess(device[VIRTUAL], 2 << 20, &access, 1));
    MUST(d.cuMemAddressReserve(&reserved, 4 << 20, 0, 0, 0));
    device[RESERVED] = reserved;
    MUST(d.cuMemAlloc(&device[LARGE], 8 << 20));
    host = malloc(16 << 20);
    memset(host, 1, 16 << 20);
    MUST(d.cuMemcpyHtoD(device[LARGE], host, 8 << 20));
    device[LARGE_MALLOC] = (CUdeviceptr)host;
    for (int k = 0; k < KINDS; k++) {
        for (int i = 0; i < ATTRIBUTES; i++) {
            if (attributes[i].kind == TOKENS) continue;
            if (!question("%s, %s", attributes[i].name, names[k])) continue;
            union value value = value_untouched();
            CUresult code = d.cuPointerGetAttribute(&value, attributes[i].which, device[k] + 16);
            answer("%s, %s", error_name(code), value_name(i, &value, device[k] + 16));
        }
        if (question("cuMemGetAddressRange, %s", names[k])) {
            CUdeviceptr base = 7;
            size_t bytes = 7;
            CUresult code = d.cuMemGetAddressRange(&base, &bytes, device[k] + 16);
            answer("%s, base %s, %zu bytes", error_name(code),
                   base == 7           ? "untouched"
                   : base == device[k] ? "same"
                                       : "other",
                   bytes);
        }
        if (question("cuMemRetainAllocationHandle, %s", names[k])) {
            CUmemGenericAllocationHandle handle = 7;
            answer("%s", error_name(d.cuMemRetainAllocationHandle(&handle, H(device[k]))));
        }
        if (question("cuIpcGetMemHandle, %s", names[k])) {
            CUipcMemHandle handle;
            answer("%s", error_name(d.cuIpcGetMemHandle(&handle, device[k])));
        }
        if (question("cuMemHostGetFlags, %s", names[k])) {
            unsigned flags = 77;
            CUresult code = d.cuMemHostGetFlags(&flags, H(device[k]));
            answer("%s, %u", error_name(code), flags);
        }
        if (question("cuMemHostGetDevicePointer, %s", names[k])) {
            CUdeviceptr pointer = 7;
            CUresult code = d.cuMemHostGetDevicePointer(&pointer, H(device[k]), 0);
            answer("%s, %s", error_name(code), pointer == 7 ? "untouched" : pointer == device[k] ? "same" : "other");
        }
    }
}
