#!/usr/bin/env python3
"""Reports of the leaky example on a real driver, in its three builds: check_gpu.py BUILD. Needs nothing but the built files."""
import ctypes
import json
import os
import re
import subprocess
import sys
import tempfile

from schema import errors

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(sys.argv[1])
SCHEMA = json.load(open(os.path.join(HERE, "../../docs/report-schema.json")))
passed, failed = 0, 0


def expect(what, true, detail=""):
    global passed, failed
    print("ok  " if true else "FAIL", what, "" if true else detail)
    passed, failed = passed + bool(true), failed + (not true)


try:
    ctypes.CDLL("libdw.so.1")
    lines = True
except OSError:
    lines = False
    print("no libdw here: functions without lines are expected")

for build in ("leaky", "leaky-shared", "leaky-ptds"):
    program = os.path.join(BUILD, "examples", build)
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "r.json")
        settings = {**os.environ, "LD_PRELOAD": os.path.join(BUILD, "libzcshim.so"), "ZCSHIM_REPORT": path, "ZCSHIM_REPORT_FORMAT": "json",
                    "LD_LIBRARY_PATH": "/usr/local/cuda/lib64:" + os.environ.get("LD_LIBRARY_PATH", "")}
        bare = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                              env={n: v for n, v in settings.items() if n != "LD_PRELOAD"})
        shimmed = subprocess.run([program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120, env=settings)
        expect(f"{build}: stdout and exit code as bare", (bare.stdout, bare.returncode) == (shimmed.stdout, shimmed.returncode), shimmed.stderr)
        report = json.load(open(path))
        text = subprocess.run([os.path.join(BUILD, "zcshim"), "report", path], stdout=subprocess.PIPE, text=True, timeout=60).stdout
        expect(f"{build}: a verdict", text.startswith("libzcshim: ") and "still allocated at exit; 1 wrong free" in text.splitlines()[0], text)
    found = list(errors(report, SCHEMA, SCHEMA))
    expect(f"{build}: as the schema says", not found, found[:3])
    kinds = {kind: usage["live_count"] for kind, usage in report["totals"].items() if usage["live_count"]}
    expect(f"{build}: one leak of each kind", kinds == {"device": 1, "pinned": 1, "registered": 1}, kinds)
    misuses = [misuse["kind"] for misuse in report["misuses"]]
    expect(f"{build}: the wrong free", misuses == ["free_host_of_malloc"], misuses)
    leaking = [site for site in report["sites"] if any(usage["live_count"] for usage in site["usage"].values())]
    first = [next(frame for frame in site["frames"] if frame["kind"] == "program") for site in leaking]
    if lines:
        names = sorted(frame.get("function", "").split("(")[0] for frame in first)
        expect(f"{build}: call sites, the runtime folded", names == ["forget_device_memory", "forget_pinned_memory", "forget_registration"], names)
        expect(f"{build}: lines", all(frame.get("file", "").endswith("leaky.cu") and frame.get("line") for frame in first))
    else:
        expect(f"{build}: functions", all(re.match("main|forget", frame.get("function", "")) for frame in first), first)
print(f"reports: {passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
