"""Frameworks' copies of ordinary CPU memory. bench_frameworks.py PART: prints lines "name value" (ms); exit 77 when the framework is missing."""
import os
import sys
import tempfile
import time


def median(values):
    return sorted(values)[len(values) // 2]


def timed(call, rounds, warm=2):
    samples = []
    for i in range(rounds + warm):
        began = time.perf_counter()
        call()
        if i >= warm:
            samples.append((time.perf_counter() - began) * 1e3)
    return median(samples)


def torch_copies():
    import torch
    torch.cuda.init()
    for mib in (64, 256):
        x = torch.ones(mib << 18)
        y = torch.ones(mib << 18, device="cuda")

        def to_cuda():
            x.to("cuda")
            torch.cuda.synchronize()
        print(f"torch_to_cuda_ms_{mib}M", timed(to_cuda, 9))
        print(f"torch_cpu_ms_{mib}M", timed(lambda: y.cpu(), 9))
        pinned = x.pin_memory()

        def from_pinned():
            pinned.to("cuda", non_blocking=True)
            torch.cuda.synchronize()
        print(f"torch_pinned_ms_{mib}M", timed(from_pinned, 9))
        assert not x.is_pinned() and pinned.is_pinned()


def torch_train():
    import torch
    torch.manual_seed(1)
    torch.backends.cuda.matmul.allow_tf32 = False
    model = torch.nn.Sequential(torch.nn.Linear(1024, 1024), torch.nn.ReLU(), torch.nn.Linear(1024, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    generator = torch.Generator().manual_seed(2)
    data = torch.rand(8192, 1024, generator=generator)
    losses = []

    def step(i):
        batch = data + float(i)  # a new CPU tensor of 32 MiB
        loss = model(batch.to("cuda")).square().mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    for i in range(3):
        step(i)
    began = time.perf_counter()
    for i in range(24):
        step(i)
    torch.cuda.synchronize()
    print("torch_train_ms", (time.perf_counter() - began) * 1e3)
    print("torch_train_loss", repr(sum(losses)))


def torch_load():
    import torch
    torch.cuda.init()
    torch.ones(1, device="cuda")
    folder = os.environ.get("BENCH_FOLDER", tempfile.gettempdir())
    path = os.path.join(folder, f"zcshim-bench-{os.getpid()}.pt")
    try:
        torch.save({f"t{i}": torch.full((1 << 26,), float(i)) for i in range(8)}, path)  # 8 x 256 MiB

        def load():
            state = torch.load(path, mmap=True, map_location="cpu")
            on_device = [tensor.to("cuda") for tensor in state.values()]
            torch.cuda.synchronize()
            assert all(float(t[-1]) == float(i) for i, t in enumerate(on_device))
        print("torch_load_mmap_ms", timed(load, 2, 1))
    finally:
        os.unlink(path)


def torch_images():
    import torch
    torch.cuda.init()

    def step():
        images = [torch.rand(3, 1024, 1024) for _ in range(2)] + [torch.ones(3, 1080, 1080) for _ in range(14)]
        began = time.perf_counter()
        on_device = [image.to("cuda") for image in images]
        torch.cuda.synchronize()
        del on_device
        return (time.perf_counter() - began) * 1e3
    print("torch_images_ms", median([step() for _ in range(12)][3:]))


def torch_checkpoint():
    import torch
    tensors = [torch.full((50 << 18,), float(i), device="cuda") for i in range(60)]
    torch.cuda.synchronize()
    rounds = []
    for _ in range(3):
        began = time.perf_counter()
        copies = [tensor.cpu() for tensor in tensors]
        rounds.append((time.perf_counter() - began) * 1e3)
        assert all(float(c[-1]) == float(i) for i, c in enumerate(copies))
        del copies
    print("torch_checkpoint_first_ms", rounds[0])
    print("torch_checkpoint_later_ms", rounds[2])


def cupy_copies():
    import cupy
    import numpy
    x = numpy.ones(64 << 17)
    y = cupy.asarray(x)
    print("cupy_in_ms_64M", timed(lambda: (cupy.asarray(x), cupy.cuda.Device().synchronize()), 9))
    print("cupy_get_ms_64M", timed(lambda: y.get(), 9))
    z = cupy.ones(1 << 27)
    print("cupy_get_ms_1024M", timed(lambda: z.get(), 3, 1))


def jax_copies():
    os.environ.setdefault("XLA_PYTHON_CLIENT_PREALLOCATE", "false")
    import jax
    import numpy
    x = numpy.ones(64 << 18, dtype=numpy.float32)
    print("jax_put_ms_64M", timed(lambda: jax.device_put(x, jax.devices("gpu")[0]).block_until_ready(), 9))


if __name__ == "__main__":
    try:
        globals()[sys.argv[1]]()
    except ImportError as missing:
        print(missing, file=sys.stderr)
        sys.exit(77)
