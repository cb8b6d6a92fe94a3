"""rf-detr#1313: 16 new CPU image tensors to the GPU in every step; beside it the same from pinned memory."""
import json
import statistics
import sys
import time

import torch

steps = 10 if "--small" in sys.argv else 60
base = torch.arange(3 * 560 * 560, dtype=torch.float32).reshape(3, 560, 560)


def run(pin):
    times, total = [], 0.0
    for step in range(steps):
        images = [(base + (step * 16 + i)) for i in range(16)]
        if pin:
            images = [image.pin_memory() for image in images]
        torch.cuda.synchronize()
        started = time.perf_counter()
        batch = [image.to("cuda", non_blocking=pin) for image in images]
        torch.cuda.synchronize()
        times.append((time.perf_counter() - started) * 1e3)
        total += float(torch.stack([image[1, 7, 7] for image in batch]).sum())
    return statistics.median(times), total


torch.zeros(1).cuda()
first_ms, first = run(False)
again_ms, again = run(False)
pinned_ms, pinned = run(True)
print(json.dumps({"user": "rf-detr#1313", "copies_ms": first_ms, "copies_again_ms": again_ms, "pinned_ms": pinned_ms, "hash": [first, again, pinned]}))
