"""cupy#4222, cupy#5524: cg and cgs on small systems, milliseconds whatever the size. Times per iteration."""
import json
import sys
import time

import cupy as cp
import cupyx.scipy.sparse as sparse
import cupyx.scipy.sparse.linalg as linalg

repeats = 3 if "--small" in sys.argv else 30
result = {"user": "cupy#4222", "hash": []}
for n in (100, 1000, 10000):
    matrix = sparse.diags([-1.0, 2.2, -1.0], [-1, 0, 1], shape=(n, n), format="csr")
    right = cp.ones(n)
    for name in ("cg", "cgs"):
        solver = getattr(linalg, name)
        iterations = []
        solver(matrix, right, callback=lambda _: iterations.append(1))
        cp.cuda.Device().synchronize()
        started = time.perf_counter()
        for _ in range(repeats):
            solution, info = solver(matrix, right)
        cp.cuda.Device().synchronize()
        seconds = time.perf_counter() - started
        result[f"{name}_{n}_us_per_iteration"] = seconds / repeats / max(1, len(iterations)) * 1e6
        result["hash"].append([name, n, len(iterations), int(info)])
print(json.dumps(result))
