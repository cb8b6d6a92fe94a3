#!/usr/bin/env python3
"""Runs the users' programs of tests/gpu/users bare and shimmed, in turn, and compares their hashes.

    users.py [--only REGEX] [--rounds N] [--small] [--mode auto] [--shared]

Prints every run's JSON line with its side as it comes, then for each time the median of both sides and their ratio; the
whole goes into ${OUT:-docs/results}/users.json, after each program. Takes no longer than BUDGET seconds (150): what is
left then is named as skipped, as is what needs a framework that is not installed. Exit code 1 if a hash differs or a
program fails.
"""
import argparse
import json
import os
import re
import signal
import statistics
import subprocess
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bench"))
from core_measure import BARE, BUILD, device_name, environment, need_device

HERE = os.path.dirname(os.path.abspath(__file__))


# Seconds that both sides took together on an H200 machine, or are expected to take; the program that needs most comes last.
EXPECTED = {"cumo_176": 3, "lupine_631": 3, "kestrel_102": 4, "rf_detr_1313": 20, "numba_9507": 10, "dask_cuda_98": 20, "numba_4336": 20,
            "ai_toolkit_813": 25, "cupy_4222": 25, "dgl_3086": 30, "pytorch_120378": 35, "pytorch_143342": 40}
STARTED = time.monotonic()
BUDGET = float(os.environ.get("BUDGET", "150"))


def left():
    return BUDGET - (time.monotonic() - STARTED)


def programs(suffix):
    """Name and command of each program, the quickest first."""
    found = {}
    for name in os.listdir(os.path.join(HERE, "users")):
        stem, extension = os.path.splitext(name)
        if extension == ".py":
            found[stem] = [os.environ.get("PYTHON", "python3"), os.path.join(HERE, "users", name)]
        elif extension == ".cu":
            found[stem] = [os.path.join(BUILD, "tests/gpu/users", stem + suffix)]
    return sorted(found.items(), key=lambda item: EXPECTED.get(item[0], 0))


def missing(command):
    """The framework that the program imports and this Python does not have, or None."""
    if not command[-1].endswith(".py"):
        return None
    with open(command[-1]) as source:
        imported = set(re.findall(r"^(?:import|from) (torch|cupy|numba|numpy)", source.read(), re.MULTILINE))
    probe = "import importlib.util, sys; sys.exit(not all(importlib.util.find_spec(name) for name in sys.argv[1:]))"
    return None if subprocess.run([command[0], "-c", probe, *sorted(imported)], timeout=30).returncode == 0 else " or ".join(sorted(imported))


def run(command, env, timeout):
    """stdout, stderr and the exit code, "timeout" as the code of a program that had to be stopped, with all that it started."""
    with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as err:
        process = subprocess.Popen(command, env=env, stdin=subprocess.DEVNULL, stdout=out, stderr=err, start_new_session=True)
        try:
            code = process.wait(timeout)
        except subprocess.TimeoutExpired:
            code = "timeout"
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
        out.seek(0)
        err.seek(0)
        return out.read(), err.read(), code


def times(result):
    """The numbers of a result, lists by position: first, second, ..."""
    flat = {}
    for key, value in result.items():
        if isinstance(value, list) and key != "hash":
            flat |= {f"{key}[{i}]": v for i, v in enumerate(value)}
        elif isinstance(value, (int, float)) and key not in ("hash", "bytes"):
            flat[key] = value
    return flat


def measure(name, command, sides, rounds, timeout):
    """side -> results, and how many runs failed."""
    results, failed = {side: [] for side in sides}, 0
    for i in range(rounds):
        for side in list(sides) if i % 2 == 0 else reversed(list(sides)):
            started = time.monotonic()
            out, err, code = run(command, sides[side], max(1, min(timeout, left())))
            try:
                result = json.loads(out.splitlines()[-1]) if code == 0 else None
            except (ValueError, IndexError):
                result = None
            if result is None:
                print(f"FAILED {name} [{side}]: ended with {code} after {time.monotonic() - started:.1f} s: {(out + err)[-600:]}", flush=True)
                failed += 1
                continue
            result |= {"side": side, "wall_s": round(time.monotonic() - started, 3)}
            print(json.dumps(result), flush=True)
            results[side].append(result)
    return results, failed


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--mode", default="auto")
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--shared", action="store_true", help="the CUDA programs built with a shared cudart; no Python")
    arguments = parser.parse_args()
    need_device()
    sides = {"bare": BARE, "shim": environment({"ZCSHIM_MODE": arguments.mode})}
    failed, record, skipped = 0, [], []
    for name, command in programs("-shared" if arguments.shared else ""):
        if not re.search(arguments.only, name) or (arguments.shared and command[-1].endswith(".py")):
            continue
        expected = 2 if arguments.small else EXPECTED.get(name, 10) * arguments.rounds
        lacking = missing(command)
        reason = f"{lacking} is not installed" if lacking else "no time left" if left() < expected else None
        if reason:
            print(f"skipped {name}: {reason}", flush=True)
            skipped.append({"program": name, "reason": reason})
            continue
        results, failures = measure(name, command + ["--small"] * arguments.small, sides, arguments.rounds, arguments.timeout)
        failed += failures
        hashes = {json.dumps(r["hash"]) for side in results.values() for r in side}
        if len(hashes) > 1:
            print(f"DIFFERS {name}: {hashes}", flush=True)
            failed += 1
        record.append({"program": name, "results": results, "same": len(hashes) == 1})
        if all(results.values()):
            for key in times(results["bare"][0]):
                bare, shim = (statistics.median(times(r)[key] for r in results[side]) for side in sides)
                ratio = f"bare / shim {bare / shim:.2f}" if shim else ""
                print(f"  {name} {key}: bare {bare:.4g}, shim {shim:.4g}, {ratio}", flush=True)
        folder = os.environ.get("OUT") or "docs/results"
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "users.json"), "w") as file:
            json.dump({"suite": "users", "version": 1, "device": device_name(), "mode": arguments.mode, "small": arguments.small,
                       "programs": record, "skipped": skipped}, file, indent=1)
    print(f"{len(record)} programs, {failed} failed or different, {len(skipped)} skipped, {time.monotonic() - STARTED:.0f} s")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
