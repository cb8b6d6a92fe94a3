#!/usr/bin/env python3
"""Reports of real CUDA programs on the software driver, with the real library: check_sim.py BUILD [--update]."""
import difflib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

from schema import errors

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(sys.argv[1])
SCHEMA = json.load(open(os.path.join(HERE, "../../docs/report-schema.json")))
passed, failed = 0, 0


def expect(what, true):
    global passed, failed
    print("ok  " if true else "FAIL", what)
    passed, failed = passed + bool(true), failed + (not true)


def run(*command, **settings):
    environment = {"PATH": os.environ["PATH"], "LD_LIBRARY_PATH": os.path.join(BUILD, "sim"), **{n: str(v) for n, v in settings.items()}}
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment, timeout=120)


def example(name):
    return os.path.join(BUILD, "examples", name)


def plain(text):
    text = re.sub(r"process \d+ on [^,]+, [\d.]+ \w+", "process PID on HOST, TIME", text)
    text = re.sub(r"0x[0-9a-f]{6,}", "ADDRESS", text)
    text = re.sub(r"\.cu:\d+", ".cu:LINE", text)
    return text.split("\n  What the shim did")[0]


library = {"LD_PRELOAD": os.path.join(BUILD, "libzcshim.so")}
bare = run(example("leaky-shared"))
shimmed = run(example("leaky-shared"), **library)
expect("leaky: stdout and exit code as bare", (bare.stdout, bare.returncode) == (shimmed.stdout, shimmed.returncode))

golden = os.path.join(HERE, "golden/sim_leaky.txt")
if "--update" in sys.argv:
    with open(golden, "w") as out:
        out.write(plain(shimmed.stderr))
known = open(golden).read() if os.path.exists(golden) else ""
expect("leaky: one leak of each kind and the wrong free, by call site", known == plain(shimmed.stderr))
print("\n".join(difflib.unified_diff(known.splitlines(), plain(shimmed.stderr).splitlines(), "golden", "now", lineterm="")))

expect("leaky: exit code of leaks", run(example("leaky-shared"), ZCSHIM_LEAK_EXIT=9, **library).returncode == 9)
expect("vector_add: nothing to say in mode off", "libzcshim" not in run(example("vector_add-shared"), ZCSHIM_MODE="off", **library).stderr)

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "r.json")
    run(example("leaky-shared"), ZCSHIM_REPORT=path, ZCSHIM_REPORT_FORMAT="json", **library)
    report = json.load(open(path))
    found = list(errors(report, SCHEMA, SCHEMA))
    expect(f"leaky: JSON as the schema says {found}", not found)
    expect("leaky: kinds apart", [report["totals"][kind]["live_count"] for kind in ("device", "pinned", "registered")] == [1, 1, 1])
    run("sh", "-c", f"cat /dev/null; {example('vector_add-shared')} >/dev/null", ZCSHIM_REPORT=folder + "/%e", **library)
    expect("helpers without CUDA write no report", sorted(os.listdir(folder)) == ["r.json", "vector_add-shared"])


def forgetful(*cases):
    """Of each kind: what is live or abandoned, as [buffers, bytes]; and what forgetful's reports say in general."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "r.json")
        run(os.path.join(BUILD, "tests/report/forgetful-shared"), *cases, ZCSHIM_REPORT=path, ZCSHIM_REPORT_FORMAT="json", **library)
        report = json.load(open(path))
    found = list(errors(report, SCHEMA, SCHEMA))
    expect(f"forgetful {' '.join(cases)}: JSON as the schema says {found}", not found)
    left = {kind: [usage["live_count"] + usage["abandoned_count"], usage["live_bytes"] + usage["abandoned_bytes"]] for kind, usage in report["totals"].items()}
    return {kind: amount for kind, amount in left.items() if amount[0]}, report


left, report = forgetful("loop", "threads", "large")
expect(f"forgetful: every leak of a loop, of threads, of large buffers {left}", left == {"device": [17, 10 * 1000 + 4 * 3000 + (192 << 20)]})
expect("forgetful: by three call sites", sorted(usage["live_count"] for site in report["sites"] if (usage := site["usage"].get("device"))) == [3, 4, 10])
left, report = forgetful("pool", "managed", "pinned")
expect(f"forgetful: pool, managed and pinned apart {left}", left == {"pool": [1, 5000], "managed": [1, 6000], "pinned": [1, 7000]})
left, report = forgetful("reset")
expect(f"forgetful: gone with its context {left}", left == {"device": [1, 8000]} and report["totals"]["device"]["live_count"] == 0)
expect("forgetful: which is a leak", report["verdict"]["leaked_bytes"] == 8000)
left, report = forgetful("host")
expect(f"forgetful: large host blocks {left}", left == {"device": [1, 9000], "host": [2, 16 << 20]})
expect("forgetful: are no leaks", (report["verdict"]["leaked_bytes"], report["verdict"]["host_bytes"]) == (9000, 16 << 20))
block = next(site for site in report["sites"] if "host" in site["usage"])
expect("forgetful: and have a call site", any(frame.get("function", "").startswith("forget_host_memory") and frame.get("line") for frame in block["frames"]))
left, report = forgetful("tidy", "churn")
expect(f"forgetful: nothing where nothing is left {left}", not left)
expect("routes are counted", report["statistics"]["routes_dlsym"] == 1 and report["statistics"]["routes_proc_address"] > 50)

PYTHON = """import ctypes, threading
cu = ctypes.CDLL("libcuda.so.1")
context = ctypes.c_void_p()
assert cu.cuInit(0) == cu.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0) == cu.cuCtxSetCurrent(context) == 0
def allocate(size):
    pointer = ctypes.c_uint64()
    assert cu.cuMemAlloc_v2(ctypes.byref(pointer), ctypes.c_size_t(size)) == 0
def table():
    allocate(1000)
for _ in range(3):
    table()
allocate(2000)
def other_thread():
    cu.cuCtxSetCurrent(context)
    allocate(4000)
thread = threading.Thread(target=other_thread)
thread.start()
thread.join()
"""
python = next((found for name in ("python3.13", "python3.12", "python3.11") if (found := shutil.which(name, path="/usr/bin:/usr/local/bin"))), None)
if python:
    with tempfile.TemporaryDirectory() as folder:
        script, path = os.path.join(folder, "forgets.py"), os.path.join(folder, "r.json")
        with open(script, "w") as out:
            out.write(PYTHON)
        run(python, script, ZCSHIM_REPORT=path, ZCSHIM_REPORT_FORMAT="json", **library)
        report = json.load(open(path))
        text = run(os.path.join(BUILD, "zcshim"), "report", path).stdout
        folded = run(os.path.join(BUILD, "zcshim"), "report", "--format=folded", path).stdout
        suppressions = run(os.path.join(BUILD, "zcshim"), "suppress", path).stdout
    found = list(errors(report, SCHEMA, SCHEMA))
    expect(f"Python: JSON as the schema says {found}", not found)
    stacks = {site["usage"]["device"]["live_bytes"]: [f"{frame['function']} {os.path.basename(frame['file'])}:{frame['line']}" for frame in site["frames"]
                                                      if frame["kind"] == "python"] for site in report["sites"] if "device" in site["usage"]}
    expect(f"Python: call sites by file and line {stacks}", stacks == {
        3000: ["allocate forgets.py:7", "table forgets.py:9", "<module> forgets.py:11"], 2000: ["allocate forgets.py:7", "<module> forgets.py:12"],
        4000: []})
    expect("Python: in the text, with the extension behind", re.search(r"allocate  \S+forgets.py:7  \(Python\)\n.*\n.*\n      through \w", text))
    expect("Python: folded from the outermost in", re.search(r"^<module>;table;allocate;\S* 3000$", folded, re.M))
    expect("Python: suppressions by function", "leak:^allocate$" in suppressions)
else:
    print("skipped: no Python here whose frames are known")
result = run(os.path.join(BUILD, "zcshim"), "check", "--runs=2", example("vector_add-shared"))
expect(f"zcshim check vector_add: {result.stdout.strip()}", result.returncode in (0, 4, 5))
result = run(os.path.join(BUILD, "zcshim"), "doctor", example("vector_add-shared"))
expect("zcshim doctor: it will work", result.returncode == 0 and result.stdout.endswith("it will work\n"))
print(result.stdout)
print(f"reports on the software driver: {passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
