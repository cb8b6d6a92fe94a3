#!/usr/bin/env python3
"""bench-core: what the shim gains on small buffers and what it costs elsewhere, against its bars.

Sides alternate process by process; a ratio is taken round by round, the table shows the median and the range.
"""
import json
import os
import sys
import tempfile

sys.dont_write_bytecode = True

from core_measure import ALWAYS, BARE, BUILD, OFF, Failed, Table, alternate, environment, json_line, loop_us, need_device, ratios

ROUNDS = int(os.environ.get("ROUNDS", "7"))
QUICK = ["--small"] if os.environ.get("QUICK") else []
MICRO = os.path.join(BUILD, "tests/gpu/micro" + os.environ.get("KIND", ""))


def example(name):
    return os.path.join(BUILD, "examples", name + os.environ.get("KIND", ""))


def round_trips(table):
    iterations = ["--iterations", "50" if QUICK else "3000"]
    for size in (4, 256, 4096):
        command = [example("round_trip"), "--bytes", str(size)] + iterations

        def measure(mode, env):
            return lambda: json_line(command + ["--mode", mode], env)["median_ns"]

        samples = alternate({"native": measure("copy", BARE), "shim": measure("copy", ALWAYS), "by hand": measure("zero-copy", BARE),
                             "pinned": measure("pinned", BARE)}, ROUNDS)
        table.row(f"round trip {size} B: shim (always) / zero-copy by hand", ratios(samples["shim"], samples["by hand"]), "<= 1.08", raw=samples)
        table.row(f"round trip {size} B: native / shim", ratios(samples["native"], samples["shim"]), ">= 1.30")
        table.row(f"round trip {size} B: pinned by hand / shim", ratios(samples["pinned"], samples["shim"]), "")
        table.row(f"round trip {size} B: shim", [ns / 1e3 for ns in samples["shim"]], "", "us")


def loops(table):
    for name in ("bfs_levels", "cg_solver", "ping_pong"):
        command = [example(name), "--seconds", "0.1" if QUICK else "0.4"] + QUICK
        samples = alternate({"native": lambda: loop_us(command, BARE), "shim": lambda: loop_us(command, ALWAYS)}, ROUNDS)
        table.row(f"{name}: native / shim (always)", ratios(samples["native"], samples["shim"]), "> 1.2", raw=samples)


def single_calls(table):
    command = [MICRO, "calls"] + QUICK
    samples = alternate({"native": lambda: json_line(command, BARE), "always": lambda: json_line(command, ALWAYS),
                         "off": lambda: json_line(command, OFF)}, ROUNDS)

    def times(side, key):
        return [result[key] for result in samples[side]]

    for side in ("always", "off"):
        for key, name, bar in (("launch_us", "100 000 launches", "<= 1.01"), ("pinned_in_us", "16 MiB pinned copy to the device", "<= 1.01"),
                               ("pinned_out_us", "16 MiB pinned copy from the device", "<= 1.01"),
                               ("allocate_1m_us", "cudaMalloc + cudaFree of 1 MiB", "<= 1.01"),
                               ("allocate_256_us", "cudaMalloc + cudaFree of 256 B", "<= 1.0" if side == "always" else "<= 1.01")):
            table.row(f"{name}: shim ({side}) / native", ratios(times(side, key), times("native", key)), bar,
                      raw={"shim": times(side, key), "native": times("native", key)})
    for key, name in (("upload_4_us", "cudaMemcpy of 4 B to the device"), ("download_4_us", "cudaMemcpy of 4 B from the device")):
        table.row(f"{name}: native / shim (always)", ratios(times("native", key), times("always", key)), ">= 15",
                  raw={"shim": times("always", key), "native": times("native", key)})
        table.row(f"{name}: shim (off) / native", ratios(times("off", key), times("native", key)), "<= 1.01")


def look_ups(table):
    binary = os.path.join(BUILD, "tests/bench/lookup")
    bar = "<= 100"
    count = ["--count", "2000"] if QUICK else []
    if os.path.exists(binary):
        samples = [json_line([binary], BARE) for _ in range(3)]
        table.row("look-up of an interior pointer among 200 000 live buffers", [s["interior_ns"] for s in samples], bar, "ns", raw=samples)
    samples = alternate({"native": lambda: json_line([MICRO, "lookup"] + count, BARE), "shim": lambda: json_line([MICRO, "lookup"] + count, ALWAYS)}, 3)
    table.row("cuPointerGetAttribute of one among 200 000 live buffers: shim", [s["among_ns"] for s in samples["shim"]],
              "" if os.path.exists(binary) else bar, "ns", raw=samples)
    table.row("cuPointerGetAttribute of one among 200 000 live buffers: native", [s["among_ns"] for s in samples["native"]], "", "ns")


def find_key(tree, key):
    """The first value of this key, anywhere in the report."""
    if isinstance(tree, dict):
        if isinstance(tree.get(key), (int, float)):
            return tree[key]
        tree = list(tree.values())
    if isinstance(tree, list):
        return next((found for found in (find_key(branch, key) for branch in tree) if found is not None), None)
    return None


def registrations(table):
    with tempfile.TemporaryDirectory() as folder:
        report = os.path.join(folder, "report.json")
        count = ["--count", "2000"] if QUICK else []
        times = json_line([MICRO, "many"] + count, environment({"ZCSHIM_MODE": "always", "ZCSHIM_REPORT": report, "ZCSHIM_REPORT_FORMAT": "json"}))
        with open(report) as file:
            made = find_key(json.load(file), "registrations")
    if made is None:
        raise Failed("the report has no key registrations")
    table.row("100 000 live 64-byte buffers: registrations", float(made), "<= 60", raw=times)


def main():
    need_device()
    table = Table("core")
    for part in (round_trips, loops, single_calls, look_ups, registrations):
        try:
            part(table)
        except (Failed, OSError, ValueError, KeyError) as error:
            table.failed(part.__name__.replace("_", " "), "", error)
    table.write()
    return any(row.get("why") for row in table.rows)


if __name__ == "__main__":
    sys.exit(main())
