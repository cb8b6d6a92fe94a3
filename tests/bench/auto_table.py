#!/usr/bin/env python3
"""bench-auto: what the default mode gains where buffers belong on the host, and what it loses where they do not, against its bars.

Sides alternate process by process; a ratio is taken round by round, the table shows the median and the range. Programs time their own loops, from
the first iteration to the last, so start and end of the process do not count. Loops run for as long as fits into BUDGET seconds (165), at most
SECONDS (2); what came out is printed. Short runs are the beginnings of the hostile ones, up to where native has worked for 50 ms, with the
allocations before the loop: until then nothing differs from a run that ends there.

    ROUNDS=3 BUDGET=165 SECONDS=2 ONLY=hostile,four; QUICK=1 KIND=-shared for the driver in software
"""
import itertools
import json
import os
import shutil
import statistics
import sys
import tempfile
import time

sys.dont_write_bytecode = True

from core_measure import ALWAYS, BARE, BUILD, Failed, Table, alternate, environment, json_line, loop_us, need_device, ratios

QUICK = ["--small"] if os.environ.get("QUICK") else []
ROUNDS = int(os.environ.get("ROUNDS", "1" if QUICK else "3"))
BUDGET_S = float(os.environ.get("BUDGET", "165"))
KIND = os.environ.get("KIND", "")
LOOPS = os.path.join(BUILD, "tests/gpu/loops" + KIND)
SHORT_MS = 50
SIZES = ("256", "1K", "4K", "16K")  # of `loops four`
SCAN_S = 0.02 if QUICK else 0.2

FRIENDLY = ("bfs_levels", "cg_solver", "ping_pong", "fir_stream")
TRIPS = (4, 1024, 16384)
HOSTILE = {
    "4 KiB table hammered": ["table", "--bytes", "4K", "--places", "1"],
    "64 KiB table hammered": ["table", "--bytes", "64K"],
    "histogram, atomics on 1 KiB": ["histogram"],
    "float atomics on 4 B": ["counter"],
    "16 KiB read by a many-pass kernel": ["passes"],
    "friendly and hostile phases in turn": ["phases"],
    "long kernel after many fast loops": ["long"],
    "long launch of the loop's own kernel": ["long", "--same"],
    "async copies on busy streams": ["async"],
    "graphs replayed between copies": ["graphs"],
}


class Suite:
    def __init__(self, folder):
        self.folder, self.count, self.table, self.failures = folder, 0, Table("auto"), 0

    def row(self, name, measure):
        """One row or a few that depend on each other."""
        try:
            measure()
        except (Failed, OSError, ValueError, KeyError, IndexError) as error:
            self.table.failed(name, "", error)
            self.failures += 1

    def auto(self, measure, command, settings=None):
        """measure(command, env) in mode auto; what the shim did goes into the result."""
        self.count += 1
        report = os.path.join(self.folder, f"{self.count}.json")
        result = measure(command, environment({"ZCSHIM_MODE": "auto", "ZCSHIM_REPORT": report, "ZCSHIM_REPORT_FORMAT": "json"} | (settings or {})))
        result["shim"] = digest(report)
        return result


def digest(path):
    """The report's answer to: what moved, and why is it where it is?"""
    try:
        with open(path) as file:
            report = json.load(file)
        moved = {key: value for key, value in report["statistics"].items() if key.startswith("moves") or key.startswith("copies_")}
        moved["sites"] = [{"bytes": site["usage"]["device"]["peak_bytes"], "on_host": site["on_host"], "reason": site["reason"],
                           "moves": [site["moves_to_host"], site["moves_to_device"]], "lost_ms": site["lost_ns_estimate"] / 1e6}
                          for site in report["sites"] if site["reason"] and "device" in site["usage"]]
        return moved
    except (OSError, ValueError, KeyError) as error:
        return {"unreadable": str(error)}


def loop(command, env):
    """A sub-command of loops; it has checked its result."""
    return json_line([LOOPS] + command + QUICK, env)


def example(name):
    return os.path.join(BUILD, "examples", name + KIND)


def us(results):
    return [result["us_per_iteration"] for result in results]


def friendly(suite, seconds):
    def compare(name, measure, command):
        samples = alternate({"auto": lambda: suite.auto(measure, command), "always": lambda: measure(command, ALWAYS)}, ROUNDS)
        suite.table.row(f"{name}: auto / always", ratios(us(samples["auto"]), us(samples["always"])), "<= 1.05", raw=samples)

    def trip(command, env):
        result = json_line(command, env)
        return {"us_per_iteration": result["ns_per_iteration"] / 1e3, "iterations": result["iterations"]}

    def round_trip(size):
        command = [example("round_trip"), "--bytes", str(size), "--iterations"]
        iterations = max(100, int(seconds * 1e6 / trip(command + ["50" if QUICK else "2000"], ALWAYS)["us_per_iteration"]))
        compare(f"round trip {size} B", trip, command + [str(iterations)])

    for size in TRIPS:
        suite.row(f"round trip {size} B", lambda: round_trip(size))
    for name in FRIENDLY:
        command = [example(name), "--seconds", f"{seconds:.2f}"] + QUICK
        suite.row(name, lambda: compare(name, lambda command, env: {"us_per_iteration": loop_us(command, env)}, command))


def time_at(result, iterations):
    """ms until so many iterations were done, allocations before the loop included."""
    marks = result["marks"] + [[result["iterations"], result["total_ms"]]]
    for (before, start), (after, end) in zip(marks, marks[1:]):
        if iterations <= after:
            return result["setup_ms"] + start + (end - start) * (iterations - before) / max(after - before, 1)
    return result["setup_ms"] + result["total_ms"] * iterations / result["iterations"]


def slim(results):
    return [{key: value for key, value in result.items() if key != "marks"} for result in results]


def hostile(suite, seconds):
    short = []

    def compare(name, command):
        command = command + ["--seconds", f"{seconds:.2f}"]
        samples = alternate({"auto": lambda: suite.auto(loop, command), "native": lambda: loop(command, BARE)}, ROUNDS)
        suite.table.row(f"{name}: auto / native", ratios(us(samples["auto"]), us(samples["native"])), "<= 1.02",
                        raw={side: slim(results) for side, results in samples.items()})
        reached = [max([n for n, ms in result["marks"] if ms <= SHORT_MS], default=1) for result in samples["native"]]
        iterations = int(statistics.median(reached))
        losses = [time_at(a, iterations) - time_at(n, iterations) for a, n in zip(samples["auto"], samples["native"])]
        short.append((f"short run, {name} ({iterations}): lost", losses))

    for name, command in HOSTILE.items():
        suite.row(name, lambda: compare(name, command))
    for name, losses in short:
        suite.table.row(name, losses, "<= 5", "ms")


def rules_of(places):
    return ";".join(f"size={size} place={place}" for size, place in zip(SIZES, places))


def four(suite, seconds):
    def at(places, seconds):
        return suite.auto(loop, ["four", "--seconds", f"{seconds:.2f}"], {"ZCSHIM_RULES": rules_of(places)})

    def compare():
        scan = sorted(((at(places, SCAN_S)["us_per_iteration"], places) for places in itertools.product(("host", "device"), repeat=len(SIZES))))
        first, second = scan[0][1], scan[1][1]
        samples = alternate({"auto": lambda: suite.auto(loop, ["four", "--seconds", f"{seconds:.2f}"]), "first": lambda: at(first, seconds),
                             "second": lambda: at(second, seconds)}, ROUNDS)
        best = min(("first", "second"), key=lambda side: statistics.median(us(samples[side])))
        places = {"first": first, "second": second}[best]
        raw = {"scan": [{"places": dict(zip(SIZES, p)), "us_per_iteration": t} for t, p in scan]} | {k: slim(v) for k, v in samples.items()}
        suite.table.row("four buffers: auto / best of 16 placements", ratios(us(samples["auto"]), us(samples[best])), "<= 1.05", raw=raw)
        suite.table.row("four buffers: worst / best placement", scan[-1][0] / scan[0][0], "")
        suite.table.row(f"four buffers: best ({', '.join(s for s, p in zip(SIZES, places) if p == 'host') or 'none'} on the host)",
                        us(samples[best]), "", "us")
        suite.table.row("four buffers: auto", us(samples["auto"]), "", "us")

    suite.row("four buffers", compare)


def profile(suite, seconds):
    kept, used = (os.path.join(suite.folder, name) for name in ("kept.profile", "used.profile"))

    def second():
        shutil.copy(kept, used)
        return suite.auto(loop, ["trip", "--iterations", "1000"], {"ZCSHIM_PROFILE": used})

    def compare():
        before = suite.auto(loop, ["trip", "--seconds", f"{seconds:.2f}", "--iterations", "1000"], {"ZCSHIM_PROFILE": kept})
        samples = alternate({"second": second, "always": lambda: loop(["trip", "--iterations", "1000"], ALWAYS)}, 2 * ROUNDS - 1)
        first_ms = {side: [result["first_ms"] for result in results] for side, results in samples.items()}
        with open(kept) as file:
            raw = {side: slim(results) for side, results in samples.items()} | {"first run": slim([before]), "profile": file.read()}
        suite.table.row("profile, second run's first 1000 iterations: auto / always", ratios(first_ms["second"], first_ms["always"]), "<= 1.02", raw=raw)
        suite.table.row("profile, first run's first 1000 iterations: auto / always", before["first_ms"] / statistics.median(first_ms["always"]), "")

    suite.row("profile", compare)


def untouched(suite, _):
    def compare(name, command):
        command = command + ["--iterations", "20" if QUICK else "1000"]
        samples = alternate({"auto": lambda: suite.auto(loop, command), "native": lambda: loop(command, BARE)}, ROUNDS)
        hashes = {result["hash"] for results in samples.values() for result in results}
        if len(hashes) > 1:
            raise Failed(f"results differ: {hashes}")
        suite.table.row(f"{name}, 1000 launches: auto / native", ratios(us(samples["auto"]), us(samples["native"])), "<= 1.01",
                        raw={side: slim(results) for side, results in samples.items()})

    suite.row("dense matrix multiply", lambda: compare("dense matrix multiply", ["multiply"]))
    suite.row("stencil", lambda: compare("stencil", ["stencil"]))


def sparse(suite, _):
    def compare():
        command = ["sparse", "--iterations", "5"]
        samples = alternate({"auto": lambda: suite.auto(loop, command), "native": lambda: loop(command, BARE)}, ROUNDS)
        if len({result["hash"] for results in samples.values() for result in results}) > 1:
            raise Failed("results differ")
        earned, first, whole = ({side: [pick(result) for result in results] for side, results in samples.items()}
                                for pick in (lambda r: statistics.median(r["loops_ms"][1:]), lambda r: r["loops_ms"][0], lambda r: r["total_ms"]))
        suite.table.row("sparse 64 MiB, from the second allocation on: native / auto", ratios(earned["native"], earned["auto"]), "> 1.2",
                        raw={side: slim(results) for side, results in samples.items()})
        suite.table.row("sparse 64 MiB, first allocation: native / auto", ratios(first["native"], first["auto"]), "")
        suite.table.row("sparse 64 MiB, five of them with upload and free: native / auto", ratios(whole["native"], whole["auto"]), "")

    suite.row("sparse", compare)


# part -> (runs whose length is chosen, other runs, seconds inside those)
PARTS = {
    friendly: (2 * ROUNDS * (len(TRIPS) + len(FRIENDLY)), len(TRIPS), 0.1),
    hostile: (2 * ROUNDS * len(HOSTILE), 0, 0),
    four: (3 * ROUNDS, 2 ** len(SIZES), SCAN_S),
    profile: (1, 2 * (2 * ROUNDS - 1), 0.02),
    untouched: (0, 4 * ROUNDS, 1),
    sparse: (0, 2 * ROUNDS, 0.6),
}


def seconds_that_fit(suite, parts):
    """How long the loops may run, so that all of it ends within the budget."""
    if QUICK:
        return 0.05
    suite.auto(loop, ["trip", "--iterations", "1"])
    before = time.monotonic()
    suite.auto(loop, ["trip", "--iterations", "1"])
    start_s = time.monotonic() - before
    long_runs, other_runs = (sum(PARTS[part][i] for part in parts) for i in (0, 1))
    left = BUDGET_S - (long_runs + other_runs) * start_s - sum(PARTS[part][1] * PARTS[part][2] for part in parts)
    seconds = max(0.3, min(float(os.environ.get("SECONDS", "2")), left / max(long_runs, 1)))
    suite.table.say(f"loops of {seconds:.2f} s, {ROUNDS} rounds; a process starts and ends in {start_s:.2f} s")
    return seconds


def main():
    need_device()
    only = [name for name in os.environ.get("ONLY", "").split(",") if name]
    parts = [part for part in PARTS if not only or part.__name__ in only]
    if not parts:
        print(f"ONLY must name some of: {', '.join(part.__name__ for part in PARTS)}", file=sys.stderr)
        return 64
    with tempfile.TemporaryDirectory() as folder:
        suite = Suite(folder)
        seconds = seconds_that_fit(suite, parts)
        for part in parts:
            part(suite, seconds)
        suite.table.write()
    return suite.failures != 0


if __name__ == "__main__":
    sys.exit(main())
