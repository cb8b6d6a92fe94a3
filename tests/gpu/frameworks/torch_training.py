"""A few training steps of a small net, fed from CPU memory; prints the losses' bits and a hash of the weights."""
import hashlib
import os

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
import torch
from torch import nn

torch.use_deterministic_algorithms(True, warn_only=True)
torch.backends.cudnn.benchmark = False
torch.backends.cudnn.allow_tf32 = False
torch.backends.cuda.matmul.allow_tf32 = False
torch.manual_seed(2)
net = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(),
                    nn.Flatten(), nn.Linear(32 * 16 * 16, 64), nn.ReLU(), nn.Linear(64, 10)).cuda()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
generator = torch.Generator().manual_seed(3)
for step in range(12):
    images = torch.randn(256, 3, 32, 32, generator=generator)
    labels = torch.randint(0, 10, (256,), generator=generator)
    loss = nn.functional.cross_entropy(net(images.cuda()), labels.cuda())
    optimizer.zero_grad()
    loss.backward()
    nn.utils.clip_grad_norm_(net.parameters(), 1.0)
    optimizer.step()
    print(f"step {step}: {loss.item().hex()}", flush=True)
digest = hashlib.sha256()
for parameter in net.state_dict().values():
    digest.update(parameter.cpu().numpy().tobytes())
print("weights", digest.hexdigest()[:16])
