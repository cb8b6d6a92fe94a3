"""dask-cuda#98: CuPy .get() of 1 GiB into a fresh array; control: cp.asarray, which stages by itself."""
import json
import sys
import time

import cupy as cp
import numpy as np

elements = (64 << 20) // 4 if "--small" in sys.argv else (1 << 30) // 4
host = np.arange(elements, dtype=np.int32)
device = cp.arange(elements, dtype=cp.int32)
cp.cuda.Device().synchronize()
get, control, total = [], [], 0
for i in range(4):
    device += 1
    cp.cuda.Device().synchronize()
    started = time.perf_counter()
    fresh = device.get()
    get.append(time.perf_counter() - started)
    total += int(fresh[::1013].sum(dtype=np.int64))
    del fresh
for i in range(4):
    host[0] = i
    started = time.perf_counter()
    copy = cp.asarray(host)
    cp.cuda.Device().synchronize()
    control.append(time.perf_counter() - started)
    total += int(copy[:10].sum().get())
    del copy
print(json.dumps({"user": "dask-cuda#98", "get_s": get, "asarray_s": control, "hash": total}))
