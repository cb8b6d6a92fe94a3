#!/usr/bin/env python3
"""The README's measured figures, from docs/results/*.txt: measured.py [--write]. Exits 1 when they differ."""
import re
import sys

BEGIN, END = "<!-- measured: made from docs/results -->\n", "<!-- end of measured -->\n"
CORE = ["round trip 4 B: native / shim", "round trip 4096 B: native / shim", "round trip 4 B: shim (always) / zero-copy by hand",
        "bfs_levels: native / shim (always)", "cg_solver: native / shim (always)", "ping_pong: native / shim (always)",
        "cudaMemcpy of 4 B to the device: native / shim (always)", "cudaMemcpy of 4 B from the device: native / shim (always)",
        "cudaMalloc + cudaFree of 256 B: shim (always) / native", "100 000 launches: shim (always) / native"]
HOST = ["H2D 64 MiB, third and later: of pinned", "D2H 64 MiB, third and later: of pinned", "first copy of a fresh block, 64 MiB: native / shim",
        "H2D of a mapped file in the page cache, 1 GiB: native / shim", "D2H into fresh memory not ours, 256 MiB: native / shim",
        "PyTorch x.to('cuda'), 256 MiB: native / shim", "PyTorch x.cpu(), 256 MiB: native / shim",
        "PyTorch training from CPU memory, 24 steps: native / shim", "numpy -> CuPy, 64 MiB: native / shim",
        "small allocations, written and read, 1 thread: shim / bare"]


def rows(path, names):
    text = open(path).read()
    for name in names:
        found = re.findall("^" + re.escape(name) + r"\s+([\d.]+)(?:\s+\+-\s+([\d.]+) %|\s+([\d.]+\.\.[\d.]+))?", text, re.M)
        if found:
            value, percent, span = found[-1]  # the last run of it
            yield f"| {name} | {value} | {'± ' + percent + ' %' if percent else span or ''} |"


def table():
    lines = ["| what | ratio | spread |", "|---|---|---|"]
    return "\n".join(lines + list(rows("docs/results/core.txt", CORE)) + list(rows("docs/results/hostmem.txt", HOST))) + "\n"


def main():
    text = open("README.md").read()
    head, rest = text.split(BEGIN)
    old, tail = rest.split(END)
    if "--write" in sys.argv:
        open("README.md", "w").write(head + BEGIN + table() + END + tail)
    elif old != table():
        print("README.md: the measured figures are not those of docs/results; run tests/measured.py --write")
        return 1
    return 0


sys.exit(main())
