/* Copies between arrays and host memory, and batches of 3D copies: never rewritten; large host blocks that they name
 * become native first, since a copy over two registrations fails and an asynchronous one from registered memory would
 * read its source later. */
#include "shim/context.h"
#include "shim/gate.h"
#include "shim/hooks/hooks.h"
#include "shim/hostmem.h"
#include "shim/lend.h"

#define COPY_ARRAY_FORM(host, bytes, forward_call)                                                                     \
    do {                                                                                                               \
        hostmem_make_native(host, bytes, context_capturing());                                                         \
        gate_enter();                                                                                                  \
        CUresult result = forward_call;                                                                                \
        gate_leave_submitted();                                                                                        \
        return result;                                                                                                 \
    } while (0)

CUresult hook_cuMemcpyHtoA_v2(DRIVER(cuMemcpyHtoA_v2) forward, bool per_thread, CUarray dstArray, size_t dstOffset,
                              const void *srcHost, size_t ByteCount)
{
    (void)per_thread;
    COPY_ARRAY_FORM(srcHost, ByteCount, forward(dstArray, dstOffset, srcHost, ByteCount));
}

CUresult hook_cuMemcpyAtoH_v2(DRIVER(cuMemcpyAtoH_v2) forward, bool per_thread, void *dstHost, CUarray srcArray,
                              size_t srcOffset, size_t ByteCount)
{
    (void)per_thread;
    COPY_ARRAY_FORM(dstHost, ByteCount, forward(dstHost, srcArray, srcOffset, ByteCount));
}

CUresult hook_cuMemcpyHtoAAsync_v2(DRIVER(cuMemcpyHtoAAsync_v2) forward, bool per_thread, CUarray dstArray,
                                   size_t dstOffset, const void *srcHost, size_t ByteCount, CUstream hStream)
{
    (void)per_thread;
    COPY_ARRAY_FORM(srcHost, ByteCount, forward(dstArray, dstOffset, srcHost, ByteCount, hStream));
}

CUresult hook_cuMemcpyAtoHAsync_v2(DRIVER(cuMemcpyAtoHAsync_v2) forward, bool per_thread, void *dstHost,
                                   CUarray srcArray, size_t srcOffset, size_t ByteCount, CUstream hStream)
{
    (void)per_thread;
    COPY_ARRAY_FORM(dstHost, ByteCount, forward(dstHost, srcArray, srcOffset, ByteCount, hStream));
}

static void operand_native(const CUmemcpy3DOperand *operand, const CUextent3D *extent)
{
    if (operand->type != CU_MEMCPY_OPERAND_TYPE_POINTER) return;
    size_t row = operand->op.ptr.rowLength ? operand->op.ptr.rowLength : extent->width;
    size_t rows = operand->op.ptr.layerHeight ? operand->op.ptr.layerHeight : extent->height;
    hostmem_make_native((void *)operand->op.ptr.ptr, row * rows * extent->depth, context_capturing());
}

static void operations_native(const CUDA_MEMCPY3D_BATCH_OP *operations, size_t count)
{
    for (size_t i = 0; operations && i < count; i++) {
        operand_native(&operations[i].src, &operations[i].extent);
        operand_native(&operations[i].dst, &operations[i].extent);
    }
}

CUresult hook_cuMemcpy3DBatchAsync(DRIVER(cuMemcpy3DBatchAsync) forward, bool per_thread, size_t numOps,
                                   CUDA_MEMCPY3D_BATCH_OP *opList, size_t *failIdx, unsigned long long flags,
                                   CUstream hStream)
{
    (void)per_thread;
    operations_native(opList, numOps);
    struct lend_work work = {.launch = NULL};
    lend_gate_enter(&work);
    CUresult result = forward(numOps, opList, failIdx, flags, hStream);
    gate_leave_submitted();
    return result;
}

CUresult hook_cuMemcpy3DBatchAsync_v2(DRIVER(cuMemcpy3DBatchAsync_v2) forward, bool per_thread, size_t numOps,
                                      CUDA_MEMCPY3D_BATCH_OP *opList, unsigned long long flags, CUstream hStream)
{
    (void)per_thread;
    operations_native(opList, numOps);
    struct lend_work work = {.launch = NULL};
    lend_gate_enter(&work);
    CUresult result = forward(numOps, opList, flags, hStream);
    gate_leave_submitted();
    return result;
}
