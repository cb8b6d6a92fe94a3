"""numba-cuda: kernels over small arrays with copies both ways, atomics, streams, pinned and mapped arrays."""
import numpy as np
from numba import cuda


@cuda.jit
def add(values, amount):
    i = cuda.grid(1)
    if i < values.size:
        values[i] += amount


@cuda.jit
def count(bins, values):
    i = cuda.grid(1)
    if i < values.size:
        cuda.atomic.add(bins, values[i] % bins.size, 1)


host = np.arange(1000, dtype=np.int32)
for i in range(100):
    device = cuda.to_device(host)
    add[8, 128](device, i)
    if not (device.copy_to_host() == host + i).all():
        print("WRONG", i)
bins = cuda.to_device(np.zeros(10, dtype=np.int32))
count[8, 128](bins, cuda.to_device(host))
print("bins", bins.copy_to_host().tolist())
stream = cuda.stream()
pinned = cuda.pinned_array(1000, dtype=np.int32)
pinned[:] = 5
device = cuda.to_device(pinned, stream=stream)
add[8, 128, stream](device, 2)
device.copy_to_host(pinned, stream=stream)
stream.synchronize()
print("pinned", int(pinned.sum()))
mapped = cuda.mapped_array(100, dtype=np.int32)
mapped[:] = 1
add[1, 128](mapped, 1)
cuda.synchronize()
print("mapped", int(mapped.sum()))
big = np.arange(1 << 23, dtype=np.int64)
back = cuda.to_device(big).copy_to_host()
print("large", bool((back == big).all()))
