"""pytorch#143342: torch.save of ten Linear(10k, 10k) from the GPU to memory-backed files."""
import hashlib
import json
import os
import sys
import tempfile
import time

import torch

layers, width = (2, 4000) if "--small" in sys.argv else (10, 10000)
torch.manual_seed(1)
with torch.device("cuda"):
    net = torch.nn.Sequential(*(torch.nn.Linear(width, width) for _ in range(layers)))
torch.cuda.synchronize()
# A container's /dev/shm may be too small; then a disk file, the same for both sides.
room = os.statvfs("/dev/shm")
folder = "/dev/shm" if room.f_bavail * room.f_frsize > layers * width * width * 4 + (64 << 20) else tempfile.gettempdir()
path = f"{folder}/zcshim-users-{os.getpid()}.pt"
times = []
try:
    for _ in range(2):
        started = time.perf_counter()
        torch.save(net.state_dict(), path)
        times.append(time.perf_counter() - started)
    digest = hashlib.sha256()
    state = torch.load(path, mmap=True, map_location="cpu")
    for name, tensor in state.items():
        digest.update(name.encode() + tensor.reshape(-1)[::4099].contiguous().numpy().tobytes())
    size = os.path.getsize(path)
finally:
    if os.path.exists(path):
        os.unlink(path)
print(json.dumps({"user": "pytorch#143342", "save_s": times, "bytes": size, "hash": digest.hexdigest()[:16]}))
