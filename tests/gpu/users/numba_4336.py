"""numba#4336: to_device and copy_to_host of 1 GB numpy arrays; beside it the same with pinned arrays."""
import json
import sys
import time
import warnings

import numpy as np
from numba import cuda

warnings.simplefilter("ignore")
elements = (64 << 20) // 8 if "--small" in sys.argv else 1_000_000_000 // 8


def timed(work):
    started = time.perf_counter()
    result = work()
    cuda.synchronize()
    return time.perf_counter() - started, result


def rounds(host, count):
    up, down, total = [], [], 0
    device = cuda.device_array(elements, dtype=np.int64)
    for i in range(count):
        host[::1000] = i
        up.append(timed(lambda: device.copy_to_device(host))[0])
        seconds, _ = timed(lambda: device.copy_to_host(host))
        down.append(seconds)
        total += int(host[::999].sum())
    return up, down, total


cuda.synchronize()
host = np.arange(elements, dtype=np.int64)
up, down, total = rounds(host, 4)
fresh, back = timed(lambda: cuda.to_device(host).copy_to_host())
total += int(back[::997].sum())
pinned = cuda.pinned_array(elements, dtype=np.int64)
pinned[:] = 0
pinned_up, pinned_down, _ = rounds(pinned, 3)
print(json.dumps({"user": "numba#4336", "up_s": up, "down_s": down, "fresh_both_s": fresh, "pinned_up_s": min(pinned_up),
                  "pinned_down_s": min(pinned_down), "hash": total}))
