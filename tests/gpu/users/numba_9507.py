"""numba#9507: ten pinned arrays of 200 MB, each copied to the GPU, none freed before the program ends."""
import json
import sys
import time

import numpy as np
from numba import cuda

elements = (20_000_000 if "--small" in sys.argv else 200_000_000) // 8
started = time.perf_counter()
arrays = [cuda.pinned_array(elements, dtype=np.int64) for _ in range(10)]
allocated = time.perf_counter()
total = 0
for i, array in enumerate(arrays):
    array[:] = i
    total += int(cuda.to_device(array)[elements - 1])
cuda.synchronize()
print(json.dumps({"user": "numba#9507", "allocate_s": allocated - started, "copy_s": time.perf_counter() - allocated, "hash": total}))
