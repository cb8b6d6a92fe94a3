#!/usr/bin/env python3
"""Fails, one after another, every driver call that the shim makes for itself: the program must not notice.

    faults.py BUILD [--only TEXT] [--jobs N] [--verbose]

Programs run on the driver in software. A program's own calls are counted bare, the shim's under it; for each mode, each entry point
that the shim calls more often than the program fails: every call, or the first to fifth. A run is right if stdout and exit code are those of
the program bare - with the same fault where it hits every call of a name that the program calls, too - within the time
limit, and stderr tells of the failure at most once. A single fault of a name that the program calls itself would hit different
calls bare and shimmed; there only "every" is asked, and the shim may also spare the program its own call. A failed wait is told to the
program: the shim waits where the program's own call would have.
"""
import argparse
import collections
import concurrent.futures
import os
import re
import shlex
import subprocess
import sys
import tempfile
import time

PROGRAMS = ["examples/vector_add-shared --small", "examples/cg_solver-shared --small", "examples/ping_pong-shared --small",
            "tests/programs/programs-shared async_behind_busy_stream", "tests/programs/programs-shared async_upload_source_reused",
            "tests/programs/programs-shared freed_async", "tests/programs/programs-shared block_recycled"]
MODES = {"auto": {"ZCSHIM_MODE": "auto"}, "always": {"ZCSHIM_MODE": "always"},
         "moves": {"ZCSHIM_MODE": "always", "ZCSHIM_STRESS_MOVES": "1"}}
# Besides the calls that driver.def says are the shim's own (USE).
MORE = """cuMemAddressReserve cuMemSetAccess cuMemUnmap cuMemHostRegister_v2 cuMemHostUnregister cuMemHostAlloc cuMemHostGetDevicePointer_v2
    cuMemGetAddressRange_v2 cuModuleLoadData cuModuleGetFunction cuPointerGetAttributes cuMemAlloc_v2 cuMemFree_v2 cuMemcpyHtoD_v2
    cuMemcpyDtoH_v2 cuStreamSynchronize cuCtxSynchronize cuLaunchKernel cuDevicePrimaryCtxRelease_v2""".split()
OUT_OF_MEMORY, NOT_SUPPORTED, UNKNOWN = 2, 801, 999
COUNTS = (0, 1, 2, 3, 4, 5)
TIME_LIMIT = 15
WAITS = {"cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize"}
# What is known and stays: a driver that cannot say what an address is gets the copy, and waits before it returns; these snippets
# let their streams go on only after that. And where the program's own download fails at every call, it fails in fewer places.
# An address of which the driver knows no range is the program's mistake, and answered so.
KNOWN = re.compile("cuMemGetAddressRange_v2:|cuPointerGetAttributes:.* async_|cuMemcpyDtoH_v2:0:.* async_upload_source_reused")


def own_names():
    text = open("shim/driver.def").read()
    return list(dict.fromkeys(re.findall(r"^USE\((\w+),", text, re.M) + MORE))


Run = collections.namedtuple("Run", "code out err calls")


def run(command, settings, build, fault=None, count_calls=False):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("ZCSHIM_", "ZCSIM_")) and k != "LD_PRELOAD"}
    environment |= {"XDG_CACHE_HOME": "/nonexistent", "LD_LIBRARY_PATH": f"{build}/sim"} | settings
    if settings:
        environment |= {"LD_PRELOAD": f"{build}/libzcshim.so", "ZCSHIM_REPORT": "off", "ZCSHIM_LOG": "info"}
    if fault:
        environment["ZCSIM_FAULT"] = fault
    calls = collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        if count_calls:
            environment["ZCSIM_CALLS"] = f"{folder}/calls"
        process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   start_new_session=True)
        try:
            out, err = process.communicate(timeout=TIME_LIMIT)
            code = process.returncode
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            out, err = process.communicate()
            code = "timeout"
        if count_calls and os.path.exists(f"{folder}/calls"):
            for line in open(f"{folder}/calls"):
                number, name = line.split()
                calls[name] += int(number)
    return Run(code, out, err.decode(errors="replace"), calls)


def faults_of(name, bare, calls):
    """The (count, code) pairs worth asking."""
    if bare.calls[name]:
        return [(0, OUT_OF_MEMORY)] if calls[name] > bare.calls[name] else []
    pairs = []
    for count in COUNTS:
        if count > calls[name] or not calls[name]:
            continue
        codes = (OUT_OF_MEMORY, NOT_SUPPORTED) if count == 0 else ((OUT_OF_MEMORY, UNKNOWN)[count % 2],)
        pairs += [(count, code) for code in codes]
    return pairs


def problems(expected, seen, tells=False):
    """`expected`: runs of which it must be like one. `tells`: the program may have ended with an error of its own."""
    found = []
    if not any(seen.code == e.code and seen.out == e.out for e in expected) and not (tells and seen.code not in ("timeout", 0) and seen.code > 0):
        found.append(f"exit code {seen.code}, not {expected[0].code}; stdout " + seen.out.decode(errors="replace")[-200:])
    told = collections.Counter(line for line in seen.err.splitlines() if line.startswith("libzcshim:"))
    found += [f"told {number} times: {line}" for line, number in told.items() if number > 1]
    if found:
        found += ["stderr: " + line for line in seen.err.splitlines()[-4:]]
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build")
    parser.add_argument("--only", default="", help="only runs whose line contains this text")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    build, names, started = os.path.abspath(arguments.build), own_names(), time.monotonic()
    pool = concurrent.futures.ThreadPoolExecutor(arguments.jobs)
    asked, failed, seen_names, pending = 0, 0, set(), []
    for program in PROGRAMS:
        command = shlex.split(f"{arguments.build}/{program}")
        bare = run(command, {}, build, count_calls=True)
        bare_with = {}
        for mode, settings in MODES.items():
            whole = run(command, settings, build, count_calls=True)
            if problems([bare], whole):
                print(f"FAILED {program} {mode} without a fault: {problems([bare], whole)}")
                failed += 1
                continue
            for name in names:
                for count, code in faults_of(name, bare, whole.calls):
                    fault = f"{name}:{count}:{code}"
                    line = f"ZCSIM_FAULT={fault} {' '.join(f'{k}={v}' for k, v in settings.items())} {program}"
                    if arguments.only not in line or KNOWN.search(line):
                        continue
                    seen_names.add(name)
                    if bare.calls[name] and fault not in bare_with:
                        bare_with[fault] = run(command, {}, build, fault)
                    expected = [bare] + ([bare_with[fault]] if fault in bare_with else [])
                    pending.append((line, name, expected, pool.submit(run, command, settings, build, fault)))
    for line, name, expected, future in pending:
        asked += 1
        found = problems(expected, future.result(), name in WAITS)
        if found:
            failed += 1
            print("\n    ".join([f"FAILED {line}"] + found), flush=True)
        elif arguments.verbose:
            print(f"right: {line}")
    never = [name for name in names if name not in seen_names]
    print(f"{asked} runs with a fault in {len(seen_names)} entry points, {time.monotonic() - started:.0f} s: {failed} failed"
          + (f"; the shim never called {', '.join(never)}" if never and not arguments.only else ""))
    return 1 if failed or not asked else 0


if __name__ == "__main__":
    sys.exit(main())
