/* Pitched copies and memsets with offsets, layers and odd sizes: what the memory holds afterwards. */
#include <stdlib.h>
#include "operations.h"

enum { BLOCK = 32768 };

/* A block of each kind with different contents, and copies of them before the copy that is asked about. */
static struct {
    CUdeviceptr device, other;
    unsigned char *pageable, *pinned;
} at;

static unsigned checksum(const unsigned char *byte, size_t count)
{
    unsigned sum = 1, sum_of_sums = 0;
    for (size_t i = 0; i < count; i++) {
        sum = (sum + byte[i]) % 65521;
        sum_of_sums = (sum_of_sums + sum) % 65521;
    }
    return sum_of_sums;
}

static void fill(unsigned char *byte, unsigned seed)
{
    for (size_t i = 0; i < BLOCK; i++) byte[i] = (unsigned char)(seed + i * 13 + i / 251);
}

static void blocks_fill(void)
{
    static unsigned char pattern[BLOCK];
    fill(pattern, 1);
    MUST(d.cuMemcpyHtoD(at.device, pattern, BLOCK));
    fill(pattern, 2);
    MUST(d.cuMemcpyHtoD(at.other, pattern, BLOCK));
    fill(at.pageable, 3);
    fill(at.pinned, 4);
    MUST(d.cuCtxSynchronize());
}

static void blocks_answer(CUresult code)
{
    static unsigned char back[2][BLOCK];
    MUST(d.cuCtxSynchronize());
    MUST(d.cuMemcpyDtoH(back[0], at.device, BLOCK));
    MUST(d.cuMemcpyDtoH(back[1], at.other, BLOCK));
    answer("%s, device %u, other %u, pageable %u, pinned %u", error_name(code), checksum(back[0], BLOCK),
           checksum(back[1], BLOCK), checksum(at.pageable, BLOCK), checksum(at.pinned, BLOCK));
}

enum side { DEVICE, OTHER, PAGEABLE, PINNED };
static const char *const side_names[] = {"device", "other", "pageable", "pinned"};

static void source_set(CUDA_MEMCPY3D *box, enum side side)
{
    box->srcMemoryType = side <= OTHER ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    if (side <= OTHER)
        box->srcDevice = side == DEVICE ? at.device : at.other;
    else
        box->srcHost = side == PAGEABLE ? at.pageable : at.pinned;
}

static void target_set(CUDA_MEMCPY3D *box, enum side side)
{
    box->dstMemoryType = side <= OTHER ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_HOST;
    if (side <= OTHER)
        box->dstDevice = side == DEVICE ? at.device : at.other;
    else
        box->dstHost = side == PAGEABLE ? at.pageable : at.pinned;
}

/* The first layer of a box as a 2D copy. */
static CUDA_MEMCPY2D plane_of(const CUDA_MEMCPY3D *box)
{
    return (CUDA_MEMCPY2D){.srcXInBytes = box->srcXInBytes,
                           .srcY = box->srcY,
                           .srcMemoryType = box->srcMemoryType,
                           .srcHost = box->srcHost,
                           .srcDevice = box->srcDevice,
                           .srcPitch = box->srcPitch,
                           .dstXInBytes = box->dstXInBytes,
                           .dstY = box->dstY,
                           .dstMemoryType = box->dstMemoryType,
                           .dstHost = box->dstHost,
                           .dstDevice = box->dstDevice,
                           .dstPitch = box->dstPitch,
                           .WidthInBytes = box->WidthInBytes,
                           .Height = box->Height};
}

void shapes(void)
{
    static const struct {
        const char *name;
        CUDA_MEMCPY3D box;
    } boxes[] = {
        {"whole rows",
         {.srcPitch = 128,
          .srcHeight = 8,
          .dstPitch = 128,
          .dstHeight = 8,
          .WidthInBytes = 128,
          .Height = 8,
          .Depth = 4}},
        {"different pitches",
         {.srcPitch = 100,
          .srcHeight = 9,
          .dstPitch = 256,
          .dstHeight = 11,
          .WidthInBytes = 77,
          .Height = 9,
          .Depth = 3}},
        {"offsets",
         {.srcXInBytes = 3,
          .srcY = 2,
          .srcZ = 1,
          .srcPitch = 120,
          .srcHeight = 12,
          .dstXInBytes = 17,
          .dstY = 1,
          .dstZ = 2,
          .dstPitch = 160,
          .dstHeight = 10,
          .WidthInBytes = 61,
          .Height = 7,
          .Depth = 2}},
        {"a column of bytes",
         {.srcXInBytes = 5,
          .srcPitch = 64,
          .srcHeight = 16,
          .dstXInBytes = 9,
          .dstPitch = 96,
          .dstHeight = 16,
          .WidthInBytes = 1,
          .Height = 16,
          .Depth = 2}},
    };
    static const enum side pairs[][2] = {{PAGEABLE, DEVICE}, {PINNED, DEVICE}, {DEVICE, PAGEABLE},
                                         {DEVICE, PINNED},   {DEVICE, OTHER},  {OTHER, DEVICE}};
    CUstream stream;
    void *pinned;
    MUST(d.cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING));
    MUST(d.cuMemAlloc(&at.device, BLOCK));
    MUST(d.cuMemAlloc(&at.other, BLOCK));
    MUST(d.cuMemHostAlloc(&pinned, BLOCK, 0));
    at.pageable = pages_new(BLOCK);
    at.pinned = pinned;
    for (size_t b = 0; b < sizeof boxes / sizeof *boxes; b++) {
        for (size_t p = 0; p < sizeof pairs / sizeof *pairs; p++) {
            CUDA_MEMCPY3D box = boxes[b].box;
            source_set(&box, pairs[p][0]);
            target_set(&box, pairs[p][1]);
            CUDA_MEMCPY2D plane = plane_of(&box);
            for (int form = 0; form < 4; form++) {
                static const char *const forms[] = {"2DUnaligned", "2DAsync", "3D", "3DAsync"};
                if (!question("%s, %s, %s to %s", forms[form], boxes[b].name, side_names[pairs[p][0]],
                              side_names[pairs[p][1]])) {
                    continue;
                }
                blocks_fill();
                blocks_answer(form == 0   ? d.cuMemcpy2DUnaligned(&plane)
                              : form == 1 ? d.cuMemcpy2DAsync(&plane, stream)
                              : form == 2 ? d.cuMemcpy3D(&box)
                                          : d.cuMemcpy3DAsync(&box, stream));
            }
        }
    }
#define ASK_SET(call, ...)                                                                                             \
    do {                                                                                                               \
        if (question(__VA_ARGS__)) {                                                                                   \
            blocks_fill();                                                                                             \
            blocks_answer(call);                                                                                       \
        }                                                                                                              \
    } while (0)
    ASK_SET(d.cuMemsetD8(at.device + 3, 0xab, 1001), "MemsetD8 of 1001 bytes at 3");
    ASK_SET(d.cuMemsetD16(at.device + 2, 0xabcd, 501), "MemsetD16 of 501 at 2");
    ASK_SET(d.cuMemsetD32(at.device + 4, 0xabcdef01, 333), "MemsetD32 of 333 at 4");
    ASK_SET(d.cuMemsetD2D8(at.device + 5, 100, 0x5a, 33, 7), "MemsetD2D8 of 33 x 7 at 5");
    ASK_SET(d.cuMemsetD2D16(at.device + 6, 128, 0x5a5b, 33, 7), "MemsetD2D16 of 33 x 7 at 6");
    ASK_SET(d.cuMemsetD2D32(at.device + 8, 256, 0x5a5b5c5d, 33, 7), "MemsetD2D32 of 33 x 7 at 8");
    ASK_SET(d.cuMemsetD2D8Async(at.device + 5, 100, 0x5a, 33, 7, stream), "MemsetD2D8Async of 33 x 7 at 5");
    ASK_SET(d.cuMemsetD2D32Async(at.device + 8, 256, 0x5a5b5c5d, 33, 7, stream), "MemsetD2D32Async of 33 x 7 at 8");
    ASK_SET(d.cuMemcpyHtoD(at.device + 1, at.pageable + 2, 4093), "HtoD of 4093 bytes, misaligned");
    ASK_SET(d.cuMemcpyDtoH(at.pageable + 1, at.device + 3, 4093), "DtoH of 4093 bytes, misaligned");
    ASK_SET(d.cuMemcpyDtoD(at.other + 1, at.device + 2, 4093), "DtoD of 4093 bytes, misaligned");
    ASK_SET(d.cuMemcpyHtoDAsync(at.device + 1, at.pinned + 2, 4093, stream), "HtoDAsync of 4093 bytes, misaligned");
    ASK_SET(d.cuMemcpyDtoHAsync(at.pinned + 1, at.device + 3, 4093, stream), "DtoHAsync of 4093 bytes, misaligned");
}
