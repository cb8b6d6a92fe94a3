"""CuPy: arrays, kernels of its own, random numbers, sparse solver; prints hashes."""
import hashlib

import cupy as cp
import cupyx.scipy.sparse as sparse
import cupyx.scipy.sparse.linalg as linalg
import numpy as np


def show(name, array):
    array = np.ascontiguousarray(cp.asnumpy(array))
    print(name, array.shape, hashlib.sha256(array.tobytes()).hexdigest()[:16], flush=True)


x = np.arange(10000, dtype=np.float64).reshape(100, 100)
a = cp.asarray(x)
show("round trip", a)
show("arithmetic", a * 2 + cp.sin(a))
show("matmul", a @ a.T)
show("sum", a.sum(axis=0))
show("sort", cp.sort((a * 7919) % 1013, axis=1))
square = cp.ElementwiseKernel("float64 x", "float64 y", "y = x * x - 1", "square")
show("elementwise kernel", square(a))
raw = cp.RawKernel(r'extern "C" __global__ void add(int *p, int v, int n) { int i = blockIdx.x * 128 + threadIdx.x; if (i < n) p[i] += v; }', "add")
small = cp.zeros(100, dtype=cp.int32)
for i in range(200):
    small.set(np.full(100, i, dtype=np.int32))
    raw((1,), (128,), (small, i, 100))
    if int(small[i % 100].get()) != 2 * i:
        print("WRONG", i)
show("raw kernel", small)
with cp.cuda.Stream(non_blocking=True) as stream:
    b = cp.ones(5000)
    for i in range(50):
        b = b * 1.25 - 0.25
    show("stream", b)
# Memory of cudaMalloc itself, without the pool.
cp.cuda.set_allocator(None)
for i in range(100):
    c = cp.asarray(np.full(16, i, dtype=np.float32))
    if float((c + 1).sum().get()) != 16.0 * (i + 1):
        print("WRONG", i)
cp.cuda.set_allocator(cp.cuda.MemoryPool().malloc)
n = 400
matrix = sparse.diags([-1.0, 2.5, -1.0], [-1, 0, 1], shape=(n, n), format="csr")
steps = []
solution, info = linalg.cg(matrix, cp.ones(n), rtol=1e-10, callback=lambda _: steps.append(1))
print("cg", info, len(steps), f"{float(cp.abs(matrix @ solution - 1).max()):.1e}")
big = np.arange(1 << 23, dtype=np.int64)
show("large copy", cp.asarray(big)[::-1])
show("into an array", cp.asarray(big).get(out=np.empty_like(big)))
