#!/usr/bin/env python3
"""Runs the users' programs of tests/gpu/users bare and shimmed, in turn, and compares their hashes.

    users.py [--only REGEX] [--rounds N] [--small] [--mode auto]

Prints every run's JSON line with its side as it comes, then for each time the median of both sides and their ratio; the
whole goes into ${OUT:-docs/results}/users.json. Exit code 1 if a hash differs or a program fails.
"""
import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import time

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../bench"))
from core_measure import BARE, BUILD, device_name, environment, need_device

HERE = os.path.dirname(os.path.abspath(__file__))


def programs():
    for name in sorted(os.listdir(os.path.join(HERE, "users"))):
        stem, extension = os.path.splitext(name)
        if extension == ".py":
            yield stem, [os.environ.get("PYTHON", "python3"), os.path.join(HERE, "users", name)]
        elif extension == ".cu":
            yield stem, [os.path.join(BUILD, "tests/gpu/users", stem)]


def times(result):
    """The numbers of a result, lists by position: first, second, ..."""
    flat = {}
    for key, value in result.items():
        if isinstance(value, list) and key != "hash":
            flat |= {f"{key}[{i}]": v for i, v in enumerate(value)}
        elif isinstance(value, (int, float)) and key not in ("hash", "bytes"):
            flat[key] = value
    return flat


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="")
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--mode", default="auto")
    parser.add_argument("--timeout", type=float, default=120)
    arguments = parser.parse_args()
    need_device()
    sides = {"bare": BARE, "shim": environment({"ZCSHIM_MODE": arguments.mode})}
    failed, record = 0, []
    for name, command in programs():
        if not re.search(arguments.only, name):
            continue
        results = {side: [] for side in sides}
        for i in range(arguments.rounds):
            for side in list(sides) if i % 2 == 0 else reversed(list(sides)):
                started = time.monotonic()
                try:
                    done = subprocess.run(command + ["--small"] * arguments.small, env=sides[side], capture_output=True, text=True, timeout=arguments.timeout)
                    result = json.loads(done.stdout.splitlines()[-1])
                except (subprocess.TimeoutExpired, ValueError, IndexError) as error:
                    tail = "" if isinstance(error, subprocess.TimeoutExpired) else done.stderr[-600:]
                    print(f"FAILED {name} [{side}]: {error} {tail}", flush=True)
                    failed += 1
                    continue
                result |= {"side": side, "wall_s": round(time.monotonic() - started, 3)}
                print(json.dumps(result), flush=True)
                results[side].append(result)
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
        json.dump({"suite": "users", "version": 1, "device": device_name(), "mode": arguments.mode, "programs": record}, file, indent=1)
    print(f"{len(record)} programs, {failed} failed or different")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())
