#!/usr/bin/env python3
"""Runs programs bare and under the shim, in every mode, and demands the same stdout and exit code.

    compare.py --sim build/sim build/tests/programs/programs-shared ...      on the driver in software
    compare.py --gpu build/tests/programs/programs ...                       on the real one
    compare.py --gpu --command "build/examples/vector_add" ...               commands instead of collections of snippets

Prints a line for each difference as it finds it, then a summary; exit code 0 if there was none.
"""
import argparse
import concurrent.futures
import difflib
import os
import re
import shlex
import subprocess
import sys
import time

STRESS = {f"stress{seed}": {"ZCSHIM_MODE": "always", "ZCSHIM_STRESS_MOVES": str(seed)} for seed in (1, 2, 3)}
# Everything that is large enough to move by whole huge pages is lent as soon as it may be.
STRESS["lend"] = {"ZCSHIM_MODE": "auto", "ZCSHIM_LEND": "auto", "ZCSHIM_LEND_MIN": "2M", "ZCSHIM_HOST_MIN": "2M", "ZCSHIM_STRESS_MOVES": "9"}
MODES = {mode: {"ZCSHIM_MODE": mode} for mode in ("off", "observe", "auto", "always")} | STRESS
# Devices and systems that lack something, by the simulator: both runs get these.
LACKING = {
    "no-vmm": {"ZCSIM_VMM": "0"},
    "no-map": {"ZCSIM_CAN_MAP_HOST": "0"},
    "no-register": {"ZCSIM_REGISTER": "0"},
    "register-801": {"ZCSIM_FAULT": "cuMemHostRegister_v2:0:801"},
}
# Answers of the program's own registrations differ where the fault hits them; bare and shimmed make different numbers of calls.
NOT_LACKING = re.compile("register|leaks|cross_frees|pointer_attributes")


# Programs that make no CUDA call.
PLAIN = ["ls -l /usr", "sh -c 'echo a; exit 3'", "cat /proc/self/comm", "sh -c 'kill -9 $$'", f"{sys.executable} -c 'print(sum(bytearray(50<<20)))'"]


class Run:
    def __init__(self, code, out, err, seconds):
        self.code, self.out, self.err, self.seconds = code, out, err, seconds


def run(command, environment, timeout):
    started = time.monotonic()
    process = subprocess.Popen(command, env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.PIPE, start_new_session=True)
    try:
        out, err = process.communicate(timeout=timeout)
        code = process.returncode
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, 9)
        out, err = process.communicate()
        code = "timeout"
    return Run(code, out, err, time.monotonic() - started)


class Case:
    """One command, and what its bare run should end with (None: anything)."""

    def __init__(self, name, command, expected, slow=False):
        self.name, self.command, self.expected, self.slow = name, command, expected, slow


def base_environment(arguments):
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("ZCSHIM_", "ZCSIM_")) and k != "LD_PRELOAD"}
    environment["XDG_CACHE_HOME"] = "/nonexistent"  # no calibration of this machine's
    paths = [os.path.abspath(arguments.sim)] if arguments.sim else []
    paths += [environment["LD_LIBRARY_PATH"]] if environment.get("LD_LIBRARY_PATH") else []
    if paths:
        environment["LD_LIBRARY_PATH"] = ":".join(paths)
    return environment


def snippets(program, arguments, environment):
    listing = subprocess.run([program, "--list"], env=environment, capture_output=True, text=True, timeout=60, check=True).stdout
    for line in listing.splitlines():
        name, tags, _ = line.split("\t", 2)
        tags = tags.split()
        if arguments.sim and "gpu" in tags:
            continue
        if "ptds" in tags and "ptds" not in os.path.basename(program):
            continue
        code = next((tag[5:] for tag in tags if tag.startswith("exit=")), "0")
        yield Case(f"{os.path.basename(program)} {name}", [program, name], None if code == "any" else int(code), "slow" in tags)


def differences(bare, shimmed):
    lines = []
    if bare.code != shimmed.code:
        lines.append(f"exit code {bare.code} bare, {shimmed.code} shimmed ({shimmed.seconds:.1f} s)")
    if bare.out != shimmed.out:
        a, b = (r.out.decode(errors="replace").splitlines() for r in (bare, shimmed))
        lines += list(difflib.unified_diff(a, b, "bare", "shimmed", n=1, lineterm=""))[:24]
    if b"cannot be preloaded" in shimmed.err:
        lines.append("the shim was not loaded")
    if lines:
        lines += ["stderr: " + line for line in shimmed.err.decode(errors="replace").splitlines()[-6:]]
    return lines


def compare(case, arguments, environment):
    """Yields (mode, problem lines) for each run."""
    library = os.path.abspath(arguments.library)

    def shimmed(settings):
        return run(case.command, environment | settings | {"LD_PRELOAD": library}, arguments.timeout)

    bare = run(case.command, environment, arguments.timeout)
    problems = []
    if case.expected is not None and bare.code != case.expected:
        text = bare.out.decode(errors="replace").splitlines()
        text = [line for line in text if not line.startswith("ok ")] or text
        problems = [f"exit code {bare.code}, not {case.expected}"] + text[-8:]
        problems += ["stderr: " + line for line in bare.err.decode(errors="replace").splitlines()[-4:]]
    yield "bare", problems
    if bare.code == "timeout":
        return
    for mode in arguments.modes:
        if case.slow and mode in STRESS:
            continue
        yield mode, differences(bare, shimmed(MODES[mode]))
    if arguments.lacking and not case.slow and not NOT_LACKING.search(case.name):
        for lack, settings in LACKING.items():
            again = run(case.command, environment | settings, arguments.timeout)
            for mode in ("auto", "always"):
                yield f"{mode}, {lack}", differences(again, shimmed(settings | MODES[mode]))


def compare_and_tell(case, arguments, environment):
    results = []
    for mode, problems in compare(case, arguments, environment):
        results.append((mode, problems))
        if problems:
            print("\n    ".join([f"DIFFERS {case.name} [{mode}]"] + problems), flush=True)
        elif arguments.verbose:
            print(f"{'right' if mode == 'bare' else 'same'}: {case.name} [{mode}]", flush=True)
    return results


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("programs", nargs="*", help="executables that list their snippets")
    parser.add_argument("--command", action="append", default=[], help="a command to compare")
    parser.add_argument("--plain", action="store_true", help="also some programs that make no CUDA call")
    parser.add_argument("--library", default="build/libzcshim.so")
    parser.add_argument("--sim", help="folder of the driver in software")
    parser.add_argument("--gpu", action="store_true", help="the real driver")
    parser.add_argument("--modes", default=",".join(MODES), type=lambda text: text.split(","))
    parser.add_argument("--lacking", action="store_true", help="also devices that lack something (simulator)")
    parser.add_argument("--only", default="", help="regular expression of names")
    parser.add_argument("--skip", default="^$", help="regular expression of names")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--timeout", type=float, default=60)
    parser.add_argument("--verbose", action="store_true")
    arguments = parser.parse_args()
    environment = base_environment(arguments)
    if not os.path.exists(arguments.library):
        print(f"skipped: there is no {arguments.library}")
        return 77
    cases = [case for program in arguments.programs for case in snippets(program, arguments, environment)]
    cases += [Case(command, shlex.split(command), 0) for command in arguments.command]
    cases += [Case(command, shlex.split(command), None) for command in PLAIN if arguments.plain]
    cases = [c for c in cases if re.search(arguments.only, c.name) and not re.search(arguments.skip, c.name)]
    cases.sort(key=lambda case: not case.slow)
    runs, failed, started = 0, [], time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(arguments.jobs) as pool:
        futures = {pool.submit(compare_and_tell, case, arguments, environment): case for case in cases}
        for future in concurrent.futures.as_completed(futures):
            case, results = futures[future], future.result()
            runs += len(results)
            failed += [(case.name, mode) for mode, problems in results if problems]
    by_mode = {}
    for _, mode in failed:
        by_mode[mode] = by_mode.get(mode, 0) + 1
    print(f"{len(cases)} programs, {runs} runs, {time.monotonic() - started:.0f} s: "
          + (f"{len(failed)} differ: " + ", ".join(f"{n} {mode}" for mode, n in by_mode.items()) if failed else "all the same"))
    return 1 if failed or not cases else 0


if __name__ == "__main__":
    sys.exit(main())
