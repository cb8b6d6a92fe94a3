#!/usr/bin/env python3
"""bench-sparse: what lending gains where kernels read little of a large buffer, and what it costs where they do not, against its bars.

Sides alternate process by process; a ratio is taken round by round, the table shows the median and the range. Programs time their own loops.
One program a row: on uploads that are not repeated the first iteration counts, too.

    ROUNDS=3 ONLY=gather,again,graph,dense,touch,write; QUICK=1 KIND=-shared for the driver in software
"""
import os
import sys

sys.dont_write_bytecode = True

from core_measure import BARE, BUILD, Failed, Table, alternate, environment, json_line, loop_us, need_device, ratios

QUICK = os.environ.get("QUICK")
ROUNDS = int(os.environ.get("ROUNDS", "1" if QUICK else "3"))
KIND = os.environ.get("KIND", "")
SMALL, LARGE, GRAPH = ("32M", "64M", "64M") if QUICK else ("64M", "1G", "4G")
OFF = environment({"ZCSHIM_LEND": "off"})
AUTO = environment({"ZCSHIM_LEND": "auto"})


def example(name, *arguments):
    return [os.path.join(BUILD, "examples", name + KIND), *arguments]


def lending(name, *arguments):
    return [os.path.join(BUILD, "tests/gpu/lending" + KIND), name, *arguments]


def compared(table, name, command, bar, invert=False):
    """native / shim (or the other way round); with lending off for comparison."""
    sides = {"native": BARE, "shim": AUTO, "shim, lending off": OFF}
    samples = alternate({side: (lambda env=env: loop_us(command, env)) for side, env in sides.items()}, ROUNDS)
    above, below = ("shim", "native") if invert else ("native", "shim")
    table.row(f"{name}: {above} / {below}", ratios(samples[above], samples[below]), bar, raw=samples)
    table.row(f"{name}: shim, lending off / shim", ratios(samples["shim, lending off"], samples["shim"]), "", raw=None)


def gather(table):
    for size, iterations in ((SMALL, "20"), (LARGE, "3")):
        compared(table, f"sparse_gather {size}, fresh blocks", example("sparse_gather", "--fresh", "--bytes", size, "--iterations", iterations), ">= 3")


def again(table):
    for size, iterations in ((SMALL, "100"), (LARGE, "20")):
        compared(table, f"sparse_gather {size}, the same block again",
                 example("sparse_gather", "--bytes", size, "--iterations", iterations), ">= 20")
    compared(table, f"gather {SMALL}, 4 places changed in between", lending("changes", "--bytes", SMALL, "--iterations", "50"), "")


def graph(table):
    command = example("graph_walk", "--bytes", GRAPH, "--iterations", "2")
    samples = alternate({"native": lambda: loop_us(command, BARE), "shim": lambda: loop_us(command, AUTO),
                         "by hand": lambda: loop_us(command + ["--registered"], BARE)}, ROUNDS)
    table.row(f"graph_walk {GRAPH}: native / shim", ratios(samples["native"], samples["shim"]), ">= 3", raw=samples)
    table.row(f"graph_walk {GRAPH}: shim / registered by hand", ratios(samples["shim"], samples["by hand"]), "<= 1.1")


def dense(table):
    for name, what in (("dense", "read once"), ("passes", "16 passes")):
        for size, iterations in ((SMALL, "20"), (LARGE, "3")):
            compared(table, f"{size} {what}", lending(name, "--bytes", size, "--iterations", iterations), "<= 1.02", invert=True)


def touch(table):
    for size in (SMALL, LARGE):
        samples = [json_line(lending("touches", "--bytes", size), AUTO) for _ in range(ROUNDS)]
        table.row(f"{size} lent, first touch", [s["first_us"] for s in samples], "", "us")
        table.row(f"{size} lent, touching everything / memcpy", [s["all_us"] / s["memcpy_us"] for s in samples], "<= 1.3", raw=samples)


def write(table):
    for size, iterations in ((SMALL, "10"), (LARGE, "3")):
        compared(table, f"{size} lent, then written by a kernel", lending("writes", "--bytes", size, "--iterations", iterations), "<= 1.1", invert=True)


PARTS = (gather, again, graph, dense, touch, write)


def main():
    need_device()
    only = [name for name in os.environ.get("ONLY", "").split(",") if name]
    table, failures = Table("sparse"), 0
    for part in PARTS:
        if only and part.__name__ not in only:
            continue
        try:
            part(table)
        except (Failed, OSError, ValueError, KeyError, IndexError) as error:
            table.failed(part.__name__, "", error)
            failures += 1
    table.write()
    return failures != 0


if __name__ == "__main__":
    sys.exit(main())
