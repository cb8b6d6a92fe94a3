"""pytorch#120378: checkpointing by .cpu() of 150 CUDA tensors of 50 MB, again and again; beside it a reused pinned buffer."""
import json
import sys
import time

import torch

count, rounds = (20, 2) if "--small" in sys.argv else (150, 2)
elements = 50_000_000 // 4
tensors = [torch.arange(i, i + elements, dtype=torch.int32, device="cuda") for i in range(count)]
pinned = [torch.empty(elements, dtype=torch.int32, pin_memory=True) for _ in range(2)]
torch.cuda.synchronize()


def timed(work):
    started = time.perf_counter()
    result = work()
    torch.cuda.synchronize()
    return time.perf_counter() - started, result


times = []
for _ in range(rounds):
    seconds, copies = timed(lambda: [t.cpu() for t in tensors])
    times.append(seconds)
    total = sum(int(c[::1009].sum(dtype=torch.int64)) + int(c[-1]) for c in copies)
    del copies
reused = min(timed(lambda: [pinned[i % 2].copy_(t, non_blocking=True) for i, t in enumerate(tensors)])[0] for _ in range(2))
print(json.dumps({"user": "pytorch#120378", "first_s": times[0], "later_s": times[1:], "pinned_s": reused, "hash": total}))
