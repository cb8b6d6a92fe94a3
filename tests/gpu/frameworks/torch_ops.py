"""PyTorch tensor operations on small and large tensors; prints hashes that are the same in every run."""
import hashlib
import os

os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"
import torch

torch.use_deterministic_algorithms(True, warn_only=True)
torch.backends.cuda.matmul.allow_tf32 = False


def show(name, tensor):
    data = tensor.detach().cpu().contiguous().numpy().tobytes()
    print(name, tuple(tensor.shape), hashlib.sha256(data).hexdigest()[:16], flush=True)


torch.manual_seed(1)
small, large = torch.randn(64, 64), torch.randn(3000, 2000)
a, b = small.cuda(), large.cuda()
show("round trip", a)
show("add", a + 1)
show("matmul", a @ a)
show("large matmul", b.T @ b)
show("softmax", torch.softmax(b, 1))
show("sort", torch.sort(b, dim=1).values)
show("index", b[torch.arange(0, 3000, 7).cuda()])
show("where", torch.where(b > 0, b, -b))
show("cumsum", torch.cumsum((a * 1000).long(), 0))
show("fft", torch.view_as_real(torch.fft.fft(b[:100])))
show("svd", torch.linalg.svdvals(a.double()))
show("solve", torch.linalg.solve(a.double(), torch.ones(64, 3, dtype=torch.float64).cuda()))

values = []
for i in range(300):  # scalars read back, scalars written
    x = torch.tensor(float(i), device="cuda")
    values.append((x * 2 + 1).item())
print("scalars", sum(values))

stream = torch.cuda.Stream()
with torch.cuda.stream(stream):
    c = torch.ones(1000, device="cuda")
    for i in range(50):
        c = c * 1.5 - c.mean() * 0.5
stream.synchronize()
show("stream", c)

graph_in = torch.zeros(256, device="cuda")
graph = torch.cuda.CUDAGraph()
with torch.cuda.stream(stream):
    for _ in range(3):
        graph_out = graph_in * 2 + 1
stream.synchronize()
with torch.cuda.graph(graph):
    graph_out = graph_in * 2 + 1
total = torch.zeros(256)
for i in range(20):
    graph_in.copy_(torch.full((256,), float(i)))
    graph.replay()
    total += graph_out.cpu()
show("graph", total)

pinned = torch.arange(10000, dtype=torch.float32).pin_memory()
show("pinned", pinned.cuda(non_blocking=True) + 1)
print("pinned?", pinned.is_pinned(), large.is_pinned(), torch.ones(1 << 24).is_pinned())
big = torch.arange(1 << 24, dtype=torch.int32)
show("large copy", big.cuda().flip(0))
show("large copy again", big.cuda() + big.cuda())
sparse = torch.sparse_coo_tensor(torch.tensor([[0, 1, 2, 2], [2, 0, 1, 2]]), torch.tensor([1.0, 2, 3, 4]), (3, 3)).cuda()
show("sparse", torch.sparse.mm(sparse.to_sparse_csr(), torch.eye(3).cuda()))
print("memory freed", torch.cuda.memory_allocated() > 0)
