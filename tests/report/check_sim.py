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

with tempfile.TemporaryDirectory() as folder:
    path = os.path.join(folder, "r.json")
    run(example("bfs_levels-shared"), "--small", "--seconds", "1", ZCSIM_COSTS=1, ZCSHIM_REPORT=path, ZCSHIM_REPORT_FORMAT="json", **library)
    report = json.load(open(path))
    saved = [report["verdict"]["saved_ns_estimate"], report["statistics"]["elided_saved_ns"], sum(site["saved_ns_estimate"] for site in report["sites"])]
    expect(f"bfs_levels: one figure of what was saved {saved}", saved[0] == saved[1] == saved[2])

with tempfile.TemporaryDirectory() as folder:
    other, profile, link = (os.path.join(folder, name) for name in ("notes.txt", "new.zcp", "link.zcp"))
    for path, text in ((other, "notes\n"), (profile, "\n")):
        with open(path, "w") as out:
            out.write(text)
    os.symlink(other, link)
    for path, word in ((other, "is not a profile"), (folder, "cannot be read as a profile")):
        result = run(example("vector_add-shared"), ZCSHIM_PROFILE=path, ZCSHIM_REPORT="off", **library)
        expect(f"profile: {word}, and is left alone", f"libzcshim: {path} {word}; it is left alone and no profile is kept\n" in result.stderr)
    result = run(example("vector_add-shared"), ZCSHIM_PROFILE=link, ZCSHIM_REPORT="off", **library)
    expect("profile: what is not one is still there", open(other).read() == "notes\n" and os.path.islink(link))
    run(example("vector_add-shared"), ZCSHIM_PROFILE=profile, ZCSHIM_REPORT="off", **library)
    expect("profile: an empty file becomes one", open(profile).read().startswith("zcshim-profile 1\n"))
    path = os.path.join(folder, "rule.json")
    run(example("bfs_levels-shared"), "--small", ZCSHIM_RULES="size=4 place=host", ZCSHIM_REPORT=path, ZCSHIM_REPORT_FORMAT="json", **library)
    placed = [site["reason"] for site in json.load(open(path))["sites"] if site.get("on_host")]
    expect(f"rules: by size hold for the whole run {placed}", placed == ["a rule says so"])
    result = run(example("vector_add-shared"), ZCSHIM_RULES=folder + "/none", ZCSHIM_REPORT="off", **library)
    expect("rules: a file that is not there is named", f"libzcshim: rules {folder}/none could not be read; no rule is in force\n" in result.stderr)


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
left, report = forgetful("wrong")
sites = {site["id"]: site for site in report["sites"]}
wrong = [(misuse["kind"], sites[misuse["allocated"]] if misuse["allocated"] else None, sites.get(misuse["freed"])) for misuse in report["misuses"]]
kinds = [kind for kind, _, _ in wrong]
expect(f"forgetful: wrong frees {kinds}", kinds == ["free_host_of_device", "free_host_of_malloc", "free_of_host", "free_of_host", "interior_free", "interior_free",
                                                      "double_free", "double_free"])
expect("forgetful: each with both its sites", all(site and any(frame.get("line") for frame in site["frames"]) for _, *both in wrong for site in both))
expect("forgetful: none of them is a leak", not left)
bare = run(os.path.join(BUILD, "tests/report/forgetful-shared"), "free")
result = run(os.path.join(BUILD, "tests/report/forgetful-shared"), "free", **library)
expect("forgetful: free() of pinned memory ends the program as it does bare", result.returncode == bare.returncode < 0)
expect("forgetful: and is told with both sites before", re.search(
    r"free\(\) of pinned memory; use cudaFreeHost\n.*freed at\n.*free_pinned.*\n(.*\n)*    allocated at\n.*free_pinned", result.stderr))
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
        run(python, script, ZCSHIM_REPORT=folder + "/rule.json", ZCSHIM_REPORT_FORMAT="json", ZCSHIM_RULES="site=*forgets.py:12:* place=host", **library)
        run(python, script, ZCSHIM_PROFILE=folder + "/profile", **library)
        ruled = {site["usage"]["device"]["live_bytes"]: site["reason"] for site in json.load(open(folder + "/rule.json"))["sites"] if "device" in site["usage"]}
        keys = [line.split()[0] for line in open(folder + "/profile") if "+" in line]
    expect(f"Python: a rule places buffers of a line {ruled}", ruled[2000] == "a rule says so" != ruled[3000])
    expect(f"Python: a profile tells lines apart, {len(keys)} sites", len(keys) == len(set(keys)) and sum(",python+" in key for key in keys) == 2)
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


def doctor(what, finding, remedy, *arguments, code=0, **settings):
    """A finding and the line below it."""
    result = run(os.path.join(BUILD, "zcshim"), "doctor", *(arguments or [example("vector_add-shared")]), **settings)
    expect(f"doctor: {what}", result.returncode == code and re.search(rf"^{finding}.*\n     -> .*{remedy}", result.stdout, re.M))
    if not result.stdout.endswith("it will work\n" if code == 0 else "it will not work here as it is\n"):
        expect(f"doctor: {what}: the verdict, not {result.stdout}", False)


def driver_of(folder, version):
    """A libcuda that starts, says its version and has a device."""
    source = f"int cuInit(unsigned f) {{ return {100 if not version else 0}; }} int cuDriverGetVersion(int *v) {{ *v = {version}; return 0; }}" \
             "int cuDeviceGetCount(int *n) { *n = 1; return 0; }"
    os.makedirs(folder)
    subprocess.run(["gcc", "-shared", "-xc", "-", "-o", folder + "/libcuda.so.1"], input=source, text=True, check=True)
    return folder


result = run(os.path.join(BUILD, "zcshim"), "doctor", example("vector_add-shared"))
expect("zcshim doctor: it will work", result.returncode == 0 and result.stdout.endswith("it will work\n") and "note" not in result.stdout)
doctor("no device", "BAD  the CUDA driver sees no GPU", "CUDA_VISIBLE_DEVICES", code=1, ZCSIM_DEVICES=0)
doctor("no move support", "note device 0, .*no virtual memory management", "large copies .* sped up", ZCSIM_VMM=0)
doctor("host memory at another address", "note device 0, .*another address", "large copies .* sped up", ZCSIM_CAN_MAP_HOST=0)
doctor("no registration", "note device 0, .*cannot be registered", "the report works", ZCSIM_REGISTER=0)
doctor("mode off", "note ZCSHIM_MODE=off", "unset ZCSHIM_MODE", ZCSHIM_MODE="off")
doctor("PyTorch by VMM", "note PyTorch is told", "unset", PYTORCH_CUDA_ALLOC_CONF="expandable_segments:True")
with tempfile.TemporaryDirectory() as folder:
    os.mkdir(folder + "/none")
    open(folder + "/none/libcuda.so.1", "w").close()
    doctor("no driver", "BAD  no CUDA driver", "install the NVIDIA driver", code=1, LD_LIBRARY_PATH=folder + "/none")
    doctor("an old driver", r"BAD  the driver is of CUDA 11\.2", r"11\.3 or later", code=1, LD_LIBRARY_PATH=driver_of(folder + "/old", 11020))
    doctor("a driver that sees no device", "BAD  the CUDA driver sees no GPU", "nvidia-smi", code=1, LD_LIBRARY_PATH=driver_of(folder + "/blind", 0))
    script = os.path.join(folder, "train.py")
    with open(script, "w") as out:
        out.write("import jax\n")
    doctor("a script of a framework with VMM", "note .*train.py uses a framework", "large copies", "python3", script)
    doctor("a script that is not executable", "note .*train.py is not executable", f"zcshim doctor python3 {script}", script)
    copy = os.path.join(folder, "copy")
    shutil.copy(example("vector_add-shared"), copy)
    os.chmod(copy, 0o644)
    doctor("a program that is not executable", "BAD  .*copy is not executable", "chmod", copy, code=1)
    if os.getuid() == 0:
        os.chown(copy, 65534, 65534)
        os.chmod(copy, 0o4755)
        doctor("a set-user-id program", "BAD  .*copy changes its privileges", f"cp {copy} ", copy, code=1)
print(f"reports on the software driver: {passed} passed, {failed} failed")
sys.exit(1 if failed else 0)
