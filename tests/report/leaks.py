#!/usr/bin/env python3
"""bench-leaks: the same leaky programs under compute-sanitizer --leak-check full and under the shim.

Which device leaks does each find, and how long does the program take? Sides alternate; times are medians of whole processes.
Writes ${OUT:-docs/results}/leaks.txt. Exit code 1 if the device leaks differ, 77 without a GPU.
"""
import collections
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bench"))
from core_measure import BARE, BUILD, alternate, device_name, environment, need_device

ROUNDS = int(os.environ.get("ROUNDS", "3"))
LONG_S = 3  # where one run takes longer, each side is run once
FORGETFUL = os.path.join(BUILD, "tests/report/forgetful")
PROGRAMS = [[os.path.join(BUILD, "examples/leaky")],
            [FORGETFUL, "loop", "threads", "large", "pitch"],
            [FORGETFUL, "pool", "managed", "pinned"],
            [FORGETFUL, "reset"],
            [FORGETFUL, "tidy"],
            [FORGETFUL, "churn"],
            [os.path.join(BUILD, "examples/bfs_levels"), "--small"],
            [os.path.join(BUILD, "examples/cg_solver"), "--small"]]


def run(command, env):
    """Seconds; its own exit code is not looked at."""
    start = time.monotonic()
    subprocess.run(command, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=40)
    return time.monotonic() - start


def sizes_of_sanitizer(sanitizer, command, log):
    """bytes -> how many leaked; and the seconds."""
    took = run([sanitizer, "--tool", "memcheck", "--leak-check", "full", "--log-file", log, *command], BARE)
    with open(log) as file:
        found = re.findall(r"Leaked ([\d,]+) bytes? at", file.read())
    return collections.Counter(int(bytes_.replace(",", "")) for bytes_ in found), took


def sizes_of_shim(command, folder):
    """kind -> bytes -> how many; the programs leak equal sizes at a call site."""
    path = os.path.join(folder, "report.json")
    run(command, environment({"ZCSHIM_REPORT": path, "ZCSHIM_REPORT_FORMAT": "json"}))
    with open(path) as file:
        report = json.load(file)
    os.remove(path)
    kinds = collections.defaultdict(collections.Counter)
    for site in report["sites"]:
        for kind, usage in site["usage"].items():
            for when in ("live", "abandoned"):
                if usage.get(when + "_count"):
                    kinds[kind][usage[when + "_bytes"] // usage[when + "_count"]] += usage[when + "_count"]
    return kinds


def summed(sizes):
    return f"{sum(sizes.values())} of {sum(size * count for size, count in sizes.items())} B" if sizes else "none"


def main():
    need_device()
    sanitizer = shutil.which("compute-sanitizer") or os.path.join(os.environ.get("CUDA_HOME", "/usr/local/cuda"), "bin/compute-sanitizer")
    if not os.path.exists(sanitizer):
        print("skipped: no compute-sanitizer")
        return 77
    version = subprocess.run([sanitizer, "--version"], capture_output=True, text=True).stdout.strip().splitlines()
    differ = 0
    out = os.environ.get("OUT") or "docs/results"
    os.makedirs(out, exist_ok=True)
    results = open(os.path.join(out, "leaks.txt"), "w")

    def say(text):
        print(text, flush=True)
        print(text, file=results, flush=True)

    say(f"{device_name()}; {version[-1] if version else 'compute-sanitizer'} --leak-check full, and libzcshim with its report on")
    say("Device leaks by size; the kinds that only the shim tells apart behind them. Times: whole processes, medians, s (x of bare).")
    say(f"{'program':<40} {'sanitizer: leaks':<24} {'shim: device leaks':<24} {'shim: others':<34} {'same':<5} {'bare':>6} {'shim':>14} {'sanitizer':>15}")
    with tempfile.TemporaryDirectory() as folder:
        log = os.path.join(os.environ.get("OUT") or folder, "sanitizer.log")
        for command in PROGRAMS:
            theirs, first = sizes_of_sanitizer(sanitizer, command, log)
            ours = sizes_of_shim(command, folder)
            device = ours.get("device", collections.Counter())
            others = sum((sizes for kind, sizes in ours.items() if kind not in ("device", "host")), collections.Counter())
            same = not device - theirs and not theirs - device - others
            differ += not same
            times = alternate({"bare": lambda: run(command, BARE), "shim": lambda: run(command, environment({"ZCSHIM_REPORT": "on"})),
                               "sanitizer": lambda: sizes_of_sanitizer(sanitizer, command, log)[1]}, ROUNDS if first < LONG_S else 1)
            bare, shim, sanitized = (statistics.median(times[side]) for side in ("bare", "shim", "sanitizer"))
            rest = ", ".join(f"{kind} {summed(sizes)}" for kind, sizes in sorted(ours.items()) if kind != "device" and sizes)
            name = " ".join([os.path.basename(command[0]), *command[1:]])
            say(f"{name:<40} {summed(theirs):<24} {summed(device):<24} {rest or 'none':<34} {'yes' if same else 'NO':<5} {bare:6.2f} "
                f"{shim:6.2f} ({shim / bare:4.2f}x) {sanitized:6.2f} ({sanitized / bare:5.2f}x)")
            if not same:
                say(f"    sanitizer: {dict(theirs)}; shim: { {kind: dict(sizes) for kind, sizes in ours.items()} }")
    say(f"the device leaks differ in {differ} of {len(PROGRAMS)} programs")
    results.close()
    return 1 if differ else 0


sys.exit(main())
