"""ai-toolkit#813: a DataLoader without pin_memory, workers 0 and 4, each batch to the GPU."""
import json
import sys
import time

import torch
from torch.utils.data import DataLoader, Dataset


class Images(Dataset):
    def __init__(self, count):
        self.count = count

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return torch.full((3, 512, 512), float(i))


def run(workers, steps):
    loader = DataLoader(Images(16 * steps), batch_size=16, num_workers=workers)
    copies, total = 0.0, 0.0
    started = time.perf_counter()
    for batch in loader:
        before = time.perf_counter()
        device = batch.to("cuda")
        torch.cuda.synchronize()
        copies += time.perf_counter() - before
        total += float(device[:, 0, 0, 0].sum())
    return time.perf_counter() - started, copies, total


if __name__ == "__main__":
    torch.zeros(1).cuda()
    steps = 6 if "--small" in sys.argv else 40
    result = {"user": "ai-toolkit#813", "hash": []}
    for workers in (0, 4):
        seconds, copies, total = run(workers, steps)
        result[f"workers_{workers}_s"], result[f"workers_{workers}_copies_s"] = seconds, copies
        result["hash"].append(total)
    print(json.dumps(result))
