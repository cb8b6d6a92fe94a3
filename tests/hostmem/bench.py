#!/usr/bin/env python3
"""bench.py BUILD OUT: the hostmem suite. Bare and shimmed processes alternate; prints each value with its spread and its bar, writes
OUT/hostmem.txt and OUT/hostmem.json. ROUNDS, BENCH_SCALE and PARTS (comma-separated) shorten a run."""
import json
import os
import statistics
import subprocess
import sys
import time

build, out = sys.argv[1], sys.argv[2]
shim = os.path.realpath(f"{build}/libzcshim.so")
rounds = int(os.environ.get("ROUNDS", "3"))
wanted = os.environ.get("PARTS", "").split(",") if os.environ.get("PARTS") else None
here = os.path.dirname(os.path.abspath(__file__))
bench = os.environ.get("BENCH_PROGRAM", f"{build}/tests/hostmem/bench")
began = time.time()
skipped, failed = [], []


def run(command, shimmed, prefix):
    env = dict(os.environ)
    env["ZCSHIM_REPORT"] = "off"
    if shimmed:
        env["LD_PRELOAD"] = shim
    done = subprocess.run(prefix + command, env=env, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=150)
    if done.returncode == 77:
        return None
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} {'shimmed' if shimmed else 'bare'}: {done.returncode}: {done.stderr.strip()[-300:]}")
    return {line.split()[0]: float(line.split()[1]) for line in done.stdout.splitlines() if len(line.split()) == 2}


def alternate(name, command, times=None, prefix=()):
    """{metric: (bare values, shimmed values)}"""
    if wanted and name not in wanted:
        return {}
    values = {}
    for i in range(times or rounds):
        for shimmed in ((False, True) if i % 2 == 0 else (True, False)):
            try:
                got = run(command, shimmed, list(prefix))
            except (RuntimeError, subprocess.TimeoutExpired, FileNotFoundError) as error:
                failed.append(str(error))
                return {}
            if got is None:
                skipped.append(name)
                return {}
            for metric, value in got.items():
                values.setdefault(metric, ([], []))[shimmed].append(value)
    return values


rows = []


def spread(values):
    return (max(values) - min(values)) / statistics.median(values) if statistics.median(values) else 0.0


def row(label, value, noise, bar, bare=None, ours=None):
    """bar: text such as '>= 2' or '<= 1.03', or '' when only reported"""
    met = ""
    if bar:
        limit = float(bar.split()[1])
        met = "met" if (value >= limit if bar.startswith(">=") else value <= limit) else "NOT MET"
    rows.append({"name": label, "value": value, "spread": noise, "bar": bar, "met": met, "bare": bare, "shim": ours})
    print(f"{label:58s} {value:9.3f}  +-{noise * 50:5.1f} %  {bar:9s} {met}", flush=True)


def ratio(values, metric, label, bar, inverse=False, best=False):
    """native / shim, or shim / native when inverse; best: of the fastest processes, where noise only adds"""
    if metric not in values or not all(values[metric]):
        return
    bare, ours = values[metric]
    middle = min if best else statistics.median
    a, b = middle(bare), middle(ours)
    row(label, b / a if inverse else a / b, spread(bare) + spread(ours), bar, a, b)


def bound(values, metric, pinned, label):
    """What no shim can pass on this machine: the bare process from ordinary memory against memory that the program itself pinned."""
    if metric in values and pinned in values and all(values[metric]) and all(values[pinned]):
        bare, best = values[metric][0], values[pinned][0] + values[pinned][1]
        row(label, statistics.median(bare) / statistics.median(best), spread(bare) + spread(best), "")


def own(values, metric, label, bar):
    if metric in values and values[metric][1]:
        ours = values[metric][1]
        row(label, statistics.median(ours), spread(ours), bar, None, statistics.median(ours))


v = alternate("copies", [bench, "first", "repeat", "file", "fresh", "cycle"])
for mib in (16, 64, 256):
    own(v, f"h2d_of_pinned_{mib}M", f"H2D {mib} MiB, third and later: of pinned", ">= 0.95")
    own(v, f"d2h_of_pinned_{mib}M", f"D2H {mib} MiB, third and later: of pinned", ">= 0.95")
for mib in (16, 64, 256):
    ratio(v, f"first_h2d_us_{mib}M", f"first copy of a fresh block, {mib} MiB: native / shim", ">= 1.8")
for mib in (4, 6, 8):
    ratio(v, f"first_h2d_us_{mib}M", f"first copy of a fresh block, {mib} MiB: shim / native", "<= 1.03", True)
ratio(v, "file_h2d_us_1024M", "H2D of a mapped file in the page cache, 1 GiB: native / shim", ">= 4")
ratio(v, "fresh_d2h_us_256M", "D2H into fresh memory not ours, 256 MiB: native / shim", ">= 5")
ratio(v, "cycle_us_64M", "malloc, fill, copy in and out, free, 64 MiB: native / shim", ">= 2.5")

v = alternate("heap", [bench, "heap"], 2 * rounds)
ratio(v, "other_h2d_us_64M", "H2D of touched memory not ours, 64 MiB: native / shim", ">= 3")
ratio(v, "other_d2h_us_64M", "D2H into touched memory not ours, 64 MiB: native / shim", "")
for mib in (1, 2, 4, 8, 16):
    ratio(v, f"other_h2d_us_{mib}M", f"H2D of touched memory not ours, {mib} MiB: shim / native", "<= 1.03", True, True)

v = alternate("small", [bench, "small"], 2 * rounds)
for size in (4, 4096, 65536, 1 << 20, 4 << 20):
    for kind in ("h2d", "d2h", "async_h2d", "async_d2h"):
        ratio(v, f"small_{kind}_us_{size}", f"{size} bytes of a large block, {kind.replace('_', ' ')}: shim / native", "<= 1.03", True, True)

for cpus in ("0", "0,1"):
    count = len(cpus.split(","))
    v = alternate(f"cpus{count}", [bench, "repeat", "first", "heap", "fresh"], rounds, ["taskset", "-c", cpus])
    for metric, label in (("h2d_us_64M", "H2D 64 MiB"), ("d2h_us_64M", "D2H 64 MiB"), ("first_h2d_us_16M", "first copy, 16 MiB"),
                          ("first_h2d_us_4M", "first copy, 4 MiB"), ("other_h2d_us_64M", "H2D not ours, 64 MiB"),
                          ("other_h2d_us_4M", "H2D not ours, 4 MiB"), ("fresh_d2h_us_256M", "D2H fresh, 256 MiB")):
        ratio(v, metric, f"on {count} CPU{'s' if count > 1 else ''}: {label}: shim / native", "<= 1.03", True, True)



def own_ratio(values, metric, label, bar):
    """shim / bare of a program that measures both allocators itself, by turns; the same program without the library shows the noise"""
    libc = metric.replace("_ms", "_libc_ms").replace("_ns", "_libc_ns")
    if metric not in values or not all(values[metric]):
        return
    quotients = [[a / b for a, b in zip(values[metric][side], values[libc][side])] for side in (False, True)]
    bare, ours = statistics.median(values[libc][True]), statistics.median(values[metric][True])
    row(label, statistics.median(quotients[True]), max(spread(quotients[True]), 2 * max(abs(q - 1) for q in quotients[False])), bar, bare, ours)


cpu = f"{build}/tests/hostmem/cpu"
v = alternate("walks", [cpu, "walks"])
for mib in (8, 16, 32, 64):
    for kind in ("triad", "fma", "stencil"):
        own_ratio(v, f"{kind}_ms_{mib}M", f"CPU {kind}, arrays of {mib} MiB: shim / bare", "<= 1.02")
v = alternate("many", [cpu, "many"])
for count in (6, 16):
    own_ratio(v, f"sum_ms_{count}", f"CPU sum of {count} arrays of 8 MiB: shim / bare", "<= 1.02")
v = alternate("memcpy", [cpu, "memcpy"])
own_ratio(v, "memcpy_ms", "CPU memcpy of 64 MiB to page-aligned memory: shim / bare", "<= 1.02")
v = alternate("heavy", [cpu, "heavy"])
for threads in (1, 8):
    many = f"{threads} thread{'s' if threads > 1 else ''}"
    own_ratio(v, f"churn_ms_{threads}", f"small allocations, written and read, {many}: shim / bare", "<= 1.05")
    own_ratio(v, f"churn_bare_ms_{threads}", f"little but malloc and free, {many}: shim / bare", "")
v = alternate("pairs", [cpu, "pairs"])
if "pair_ns" in v:
    added = [a - b for a, b in zip(v["pair_ns"][True], v["pair_libc_ns"][True])]
    row("ns added to a malloc+free pair", statistics.median(added), spread(added), "<= 4", *(statistics.median(v[m][True]) for m in ("pair_libc_ns", "pair_ns")))

python = [sys.executable, f"{here}/bench_frameworks.py"]
v = alternate("torch", python + ["torch_copies"], rounds)
for mib in (64, 256):
    ratio(v, f"torch_to_cuda_ms_{mib}M", f"PyTorch x.to('cuda'), {mib} MiB: native / shim", ">= 7")
    bound(v, f"torch_to_cuda_ms_{mib}M", f"torch_pinned_ms_{mib}M", f"  of at most (native / pinned by the program)")
    ratio(v, f"torch_cpu_ms_{mib}M", f"PyTorch x.cpu(), {mib} MiB: native / shim", ">= 20")
v = alternate("train", python + ["torch_train"], 2)
ratio(v, "torch_train_ms", "PyTorch training from CPU memory, 24 steps: native / shim", ">= 1.8")
if "torch_train_loss" in v:
    bare, ours = v["torch_train_loss"]
    row("PyTorch training: losses differ by", max(abs(a - b) for a in bare for b in ours), 0.0, "<= 0")
v = alternate("load", python + ["torch_load"], 1)
ratio(v, "torch_load_mmap_ms", "torch.load(mmap=True) of 2 GiB to the GPU: native / shim", ">= 2")
v = alternate("checkpoint", python + ["torch_checkpoint"], 1)
ratio(v, "torch_checkpoint_first_ms", "60 x .cpu() of 50 MiB, first round: shim / native", "<= 1.1", True)
ratio(v, "torch_checkpoint_later_ms", "60 x .cpu() of 50 MiB, later rounds: native / shim", "")
v = alternate("images", python + ["torch_images"], 2)
ratio(v, "torch_images_ms", "16 new image tensors a step to the GPU: native / shim", ">= 2")
v = alternate("cupy", python + ["cupy_copies"], 2 * rounds)
ratio(v, "cupy_in_ms_64M", "numpy -> CuPy, 64 MiB: native / shim", ">= 1", best=True)
ratio(v, "cupy_get_ms_64M", "CuPy .get(), 64 MiB: native / shim", ">= 1")
ratio(v, "cupy_get_ms_1024M", "CuPy .get() into a fresh array, 1 GiB: native / shim", ">= 4")
v = alternate("jax", python + ["jax_copies"], 2 * rounds)
ratio(v, "jax_put_ms_64M", "JAX device_put, 64 MiB: native / shim", ">= 1", best=True)

print(f"{sum(r['met'] == 'met' for r in rows)} bars met, {sum(r['met'] == 'NOT MET' for r in rows)} not met, in {time.time() - began:.0f} s")
for name in skipped:
    print(f"skipped: {name} (framework not installed)")
for text in failed:
    print(f"failed: {text}")
os.makedirs(out, exist_ok=True)
with open(f"{out}/hostmem.json", "w") as file:
    json.dump({"suite": "hostmem", "rounds": rounds, "rows": rows, "skipped": skipped, "failed": failed}, file, indent=1)
with open(f"{out}/hostmem.txt", "w") as file:
    for r in rows:
        file.write(f"{r['name']:58s} {r['value']:9.3f}  +-{r['spread'] * 50:5.1f} %  {r['bar']:9s} {r['met']}\n")
sys.exit(1 if failed else 0)
