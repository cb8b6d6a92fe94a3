#!/usr/bin/env python3
"""Fills the measured blocks of docs/when-zero-copy-wins.md: document.py kernels.json when-zero-copy-wins.md

A block stands between "<!-- measured: NAME -->" and "<!-- end -->"; what is between is replaced by a table made from the
numbers that zcbench --json wrote. Nothing else in the document is touched, and no number comes from anywhere else."""
import json
import re
import sys

KIB, MIB = 1024, 1024 * 1024


def size(n):
    return f"{n / MIB:.3g} MiB" if n >= MIB else f"{n / KIB:.3g} KiB" if n >= KIB else f"{n:.0f} B"


def time(ns):
    if ns is None:
        return "-"
    if ns >= 1e6:
        return f"{ns / 1e6:.3g} ms"
    return f"{ns / 1e3:.3g} us" if ns < 1e5 else f"{ns / 1e3:.0f} us"


def factor(x):
    return f"{x:.2g}x" if x < 0.1 else f"{x:.2f}x" if x < 10 else f"{x:.0f}x"


def table(head, rows):
    lines = ["| " + " | ".join(str(c) for c in head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(str(c).replace("|", "\\|") for c in row) + " |" for row in rows])


class Results:
    def __init__(self, data):
        self.data = data
        self.cells = data["cells"]

    def cell(self, kernel, nbytes=None, density=None):
        found = [c for c in self.cells if c["kernel"] == kernel and (nbytes is None or c["bytes"] == nbytes)
                 and (density is None or abs(c["density"] / density - 1) < 1e-6)]
        return found[0] if found else None


def median(cell, what, side):
    spread = cell[what].get(side) if cell else None
    return spread[0] if spread else None


def best(cell, sides):
    return min(m for m in (median(cell, "round_trip_ns", s) for s in sides) if m is not None)


COPIES, ZERO = ("pageable", "pinned"), ("mapped", "registered", "write-combined")


def machine(r):
    m, w = r.data["machine"], r.data["bandwidth"]
    host = f" in a host with {m['cpu']}" if m.get("cpu") else ""
    return (f"One {m['gpu']}{host}, {m['date']}; driver {m['driver'] // 1000}.{m['driver'] % 100 // 10}, CUDA runtime "
            f"{m['runtime'] // 1000}.{m['runtime'] % 100 // 10}; the copy engine moves {w['copy_h2d']:.1f} GB/s to the device, "
            f"{w['copy_d2h']:.1f} from it. The run took {r.data['seconds']:.0f} s.")


def decisions(r):
    rows = []
    for d in r.data["decisions"]:
        c = d["cell"]
        rows.append((d["row"], time(median(c, "round_trip_ns", "pageable")), time(median(c, "round_trip_ns", "pinned")),
                     time(best(c, ZERO)), factor(d["ratio"]), "**" + d["take"] + "**",
                     d["textbook"] + ("" if d["textbook"] == d["take"] else ": not here")))
    return table(("", "copies, pageable", "copies, pinned", "zero-copy", "ratio", "take", "textbook"), rows)


PATTERNS = (("read once", "stream_read", 1), ("write once", "stream_write", 1), ("change every word", "read_modify_write", 1),
            ("read 4 times", "multi_pass", 4), ("read 16 times", "multi_pass", 16),
            ("stencil", "stencil", 1), ("16 K random look-ups", "lookup", 16384), ("1 M random look-ups", "lookup", MIB),
            ("filter, 64 K samples", "fir", 1), ("colour map, 1 M pixels", "pixel_lookup", 1))


def diagram(r):
    sizes = sorted({c["bytes"] for c in r.cells if c["kernel"] == "stream_read"})
    rows = []
    for name, kernel, density in PATTERNS:
        row = [name]
        for n in sizes:
            c = r.cell(kernel, n, density)
            if not c:
                row.append("")
                continue
            ratio = best(c, ZERO) / best(c, COPIES)
            row.append(("**" + factor(ratio) + "**") if ratio <= 1.1 else factor(ratio))
        rows.append(row)
    return table(["access"] + [size(n) for n in sizes], rows)


def density(kernel, unit, value):
    if unit == "fraction":
        return "every word" if value == 1 else f"1 word in {1 / value:.0f}"
    return f"{value:.10g} {unit}" if unit else ""


def crossovers(r):
    def at(c, key):
        if c[key] is None:
            return "never"
        if c[key] >= 0:
            return "up to " + size(c[key])
        return f"from {size(c[key + '_from'])} on" if c.get(key + "_from") else "at every size"
    units = {c["kernel"]: c.get("density_unit", "") for c in r.cells}
    return table(("kernel", "", "sizes measured", "faster", "within 10 %"),
                 [(c["kernel"], density(c["kernel"], units[c["kernel"]], c["density"]), measured(r, c), at(c, "faster"),
                   at(c, "within_10_percent")) for c in r.data["crossovers"]])


def measured(r, crossover):
    sizes = [c["bytes"] for c in r.cells if c["kernel"] == crossover["kernel"] and c["density"] == crossover["density"]]
    return f"{size(min(sizes))} to {size(max(sizes))}"


def sparsity(r):
    rows = []
    for kernel in ("gather", "scatter"):
        cells = [c for c in r.cells if c["kernel"] == kernel]
        top = max(c["bytes"] for c in cells)
        for c in cells:
            if c["bytes"] == top:
                rows.append((kernel, density(kernel, "fraction", c["density"]), time(median(c, "round_trip_ns", "pageable")),
                             time(median(c, "round_trip_ns", "pinned")), time(best(c, ZERO)),
                             factor(best(c, ZERO) / best(c, COPIES))))
    return table(("kernel", "touches", "copies, pageable", "copies, pinned", "zero-copy", "ratio"), rows)


PITFALLS = (("1 M random look-ups, table of 1 KiB", "lookup", KIB, MIB), ("... of 64 KiB", "lookup", 64 * KIB, MIB),
            ("... of 1 MiB", "lookup", MIB, MIB), ("... of 64 MiB", "lookup", 64 * MIB, MIB),
            ("16 K random look-ups, table of 1 MiB", "lookup", MIB, 16384),
            ("1 M random look-ups, table of 16 KiB", "lookup", 16 * KIB, MIB),
            ("... first loaded to shared memory", "lookup_shared", 16 * KIB, MIB),
            ("4 096 integer atomics on 1 KiB", "histogram_int", KIB, 4096),
            ("65 536 integer atomics on 1 KiB", "histogram_int", KIB, 65536),
            ("65 536 integer atomics on 64 KiB", "histogram_int", 64 * KIB, 65536),
            ("65 536 float atomics on 1 KiB", "histogram_float", KIB, 65536),
            ("4 096 threads poll a word 64 times", "poll_word", 4, 64),
            ("16 passes over 4 MiB", "multi_pass", 4 * MIB, 16), ("16 passes over 16 MiB", "multi_pass", 16 * MIB, 16),
            ("16 passes over 64 MiB", "multi_pass", 64 * MIB, 16),
            ("colour map of 64 KiB, 1 M pixels", "pixel_lookup", 64 * KIB, None),
            ("colour map of 16 KiB, 1 M pixels", "pixel_lookup", 16 * KIB, None),
            ("... first loaded to shared memory", "pixel_lookup_shared", 16 * KIB, None),
            ("stencil on 64 MiB", "stencil", 64 * MIB, None),
            ("4 096 filter coefficients", "fir", 16 * KIB, None),
            ("... first loaded to shared memory", "fir_shared", 16 * KIB, None))


def pitfalls(r):
    rows = []
    for name, kernel, nbytes, density in PITFALLS:
        c = r.cell(kernel, nbytes, density)
        if c:
            device, host = median(c, "kernel_ns", "pageable"), median(c, "kernel_ns", "mapped")
            rows.append((name, time(device), time(host), factor(host / device)))
    return table(("kernel alone", "on the device", "on mapped memory", "ratio"), rows)


def bandwidth(r):
    w = r.data["bandwidth"]
    return table(("GB/s", "published for an H100", "here", "share of the copy engine here"),
                 (("copy engine, host to device", "57", f"{w['copy_h2d']:.1f}", "100 %"),
                  ("copy engine, device to host", "-", f"{w['copy_d2h']:.1f}", "100 %"),
                  ("zero-copy reads, stream_read", "35", f"{w['stream_read']:.1f}", f"{100 * w['stream_read'] / w['copy_h2d']:.0f} %"),
                  ("zero-copy reads, best variant", "35", f"{w['best_read']:.1f}", f"{100 * w['best_read'] / w['copy_h2d']:.0f} %"),
                  ("zero-copy writes, stream_write", "52.8", f"{w['stream_write']:.1f}",
                   f"{100 * w['stream_write'] / w['copy_d2h']:.0f} %"),
                  ("zero-copy writes, best variant", "52.8", f"{w['best_write']:.1f}",
                   f"{100 * w['best_write'] / w['copy_d2h']:.0f} %")))


def tuning(r):
    rows = r.data["tuning"]
    grids = [grid for grid, _ in rows[0].get("by_blocks", ())]
    if not grids:
        return table(("variant", "GB/s, best of all numbers of blocks"), [(t["variant"], f"{t['gbs']:.1f}") for t in rows])
    return table(["GB/s with so many blocks"] + grids,
                 [[t["variant"]] + [f"{gbs:.1f}" for _, gbs in t["by_blocks"]] for t in rows])


def kinds(r):
    def gbs(k, key):
        return f"{k[key]:.2f}" if k.get(key) else "-"
    rows = []
    for k in r.data["memory_kinds"]:
        if "error" in k:
            rows.append((f"`{k['call']}`", "not here: " + k["error"]) + ("",) * 7)
            continue
        rows.append((f"`{k['call']}`", time(k["get_ns"]), time(k["release_ns"])) +
                    tuple(gbs(k, key) for key in ("h2d", "d2h", "gpu_read", "gpu_write", "cpu_write", "cpu_read")))
    return table(("16 MiB by", "get", "release", "H2D", "D2H", "GPU reads", "GPU writes", "CPU writes", "CPU reads"), rows)


def wrong(r):
    return table(("wrong use", "answer"), [(w["use"], w["answer"]) for w in r.data["wrong_uses"]])


def atomics(r):
    return table(("who adds", "scope", "counted", "of", ""),
                 [(a["who"], a["scope"], a["counted"], a["expected"], "exact" if a["counted"] == a["expected"] else "**not exact**")
                  for a in r.data["atomics"]])


def overlap(r):
    o = r.data["overlap"]
    return table(("the same job", "time", ""),
                 [("copy in, compute, copy out", time(o["neither_ns"]), "1.00x"),
                  ("8 chunks on 4 streams, pinned", time(o["streams_ns"]), factor(o["streams_ns"] / o["neither_ns"])),
                  ("one zero-copy kernel", time(o["zero_copy_ns"]), factor(o["zero_copy_ns"] / o["neither_ns"]))])


BLOCKS = (machine, decisions, diagram, crossovers, sparsity, pitfalls, bandwidth, tuning, kinds, wrong, atomics, overlap)


def main(json_path, document_path):
    with open(json_path) as f:
        results = Results(json.load(f))
    if results.data["schema"] != "zcbench-1" or results.data["quick"]:
        sys.exit(f"{json_path}: not from a full run of this zcbench")
    with open(document_path) as f:
        text = f.read()
    for block in BLOCKS:
        name = block.__name__
        pattern = re.compile(rf"(<!-- measured: {name} -->\n).*?(<!-- end -->)", re.S)
        text, count = pattern.subn(lambda m: m.group(1) + block(results) + "\n" + m.group(2), text)
        if count != 1:
            sys.exit(f"{document_path}: {count} blocks called {name}")
    with open(document_path, "w") as f:
        f.write(text)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(*sys.argv[1:])
