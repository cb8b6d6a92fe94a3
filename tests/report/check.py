#!/usr/bin/env python3
"""Reports of a program with known faults: what they say, where they go, what they never do.

check.py FOLDER [--update]: FOLDER has the built programs. Golden reports are in tests/report/golden; --update rewrites them.
"""
import difflib
import glob
import json
import os
import re
import resource
import shutil
import stat
import subprocess
import sys
import tempfile

from schema import errors

HERE = os.path.dirname(os.path.abspath(__file__))
BUILT = os.path.abspath(sys.argv[1])
UPDATE = "--update" in sys.argv
SCHEMA = json.load(open(os.path.join(HERE, "../../docs/report-schema.json")))
failures = []
here = ""


def expect(what, true):
    if not true:
        failures.append(f"{here}: {what}")


def run(*what, program="program", stderr=subprocess.PIPE, limit=0, folder=None, **settings):
    environment = {"PATH": os.environ["PATH"], **{name: str(value) for name, value in settings.items()}}
    before = (lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))) if limit else None
    return subprocess.run([os.path.join(BUILT, program), *what], stdout=subprocess.PIPE, stderr=stderr, text=True,
                          env=environment, cwd=folder or BUILT, preexec_fn=before, timeout=60)


def plain(text):
    """Without what differs from run to run and from machine to machine."""
    text = re.sub(r"process \d+ on [^,]+, [\d.]+ \w+", "process PID on HOST, TIME", text)
    text = re.sub(r" \+ 0x[0-9a-f]+ ", " + OFFSET ", text)
    text = re.sub(r"build-id [0-9a-f]+", "build-id ID", text)
    text = re.sub(r"^ +(main|__libc_start\S*) .*libc.*\n", "", text, flags=re.M)
    return text.replace(BUILT, "BUILT")


def golden(name, text):
    path = os.path.join(HERE, "golden", name + ".txt")
    text = plain(text)
    if UPDATE:
        with open(path, "w") as out:
            out.write(text)
    known = open(path).read() if os.path.exists(path) else ""
    if known != text:
        difference = "\n".join(difflib.unified_diff(known.splitlines(), text.splitlines(), "golden", "now", lineterm=""))
        expect(f"differs from golden/{name}.txt:\n{difference}", False)


def read(path):
    return open(path).read()


def report_of(*what, **settings):
    """The JSON report, checked against the schema."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "report.json")
        run(*what, ZCSHIM_REPORT=path, ZCSHIM_REPORT_FORMAT="json", **settings)
        report = json.loads(read(path))
    for error in errors(report, SCHEMA, SCHEMA):
        expect(error, False)
    return report


# What it says.

def text_of_everything():
    golden("everything", run("leak", "twice", "copies", "placed", "note").stderr)


def text_of_leaks_and_exit_code():
    result = run("leak")
    golden("leak", result.stderr)
    expect("exit code stays", result.returncode == 0)


def silent_without_news():
    expect("nothing on stderr", run("tidy").stderr == "")
    expect("off says nothing", run("leak", ZCSHIM_REPORT="off").stderr == "")
    golden("tidy", run("tidy", ZCSHIM_REPORT="on").stderr)
    golden("nothing", run(ZCSHIM_REPORT="on").stderr)


def host_blocks_are_listed_and_no_leaks():
    golden("host", run("leak", "host").stderr)
    expect("alone they are no news", run("host").stderr == "")
    expect("nor a reason for the exit code of leaks", run("host", ZCSHIM_LEAK_EXIT=9).returncode == 0)
    report = report_of("host", "tidy")
    expect("no leak in JSON", report["verdict"]["leaked_count"] == 0 and report["verdict"]["host_bytes"] == 8 << 20)
    expect("peak", report["totals"]["host"]["peak_bytes"] == 16 << 20)
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/hide", "w") as out:
            out.write("leak:run\n")
        golden("host_hidden", run("host", "tidy", ZCSHIM_REPORT="on", ZCSHIM_SUPPRESS=folder + "/hide").stderr)


def destroyed_with_their_context():
    golden("abandoned", run("leak", "reset", "tidy").stderr)
    golden("abandoned_and_live", run("leak", "reset", "leak").stderr)
    expect("exit code of leaks", run("leak", "reset", ZCSHIM_LEAK_EXIT=9).returncode == 9)
    report = report_of("leak", "reset")
    expect("leaks in JSON", report["verdict"]["leaked_count"] == 4 and report["totals"]["device"]["abandoned_count"] == 3)
    expect("nothing is left", report["totals"]["device"]["live_count"] == 0)
    with tempfile.TemporaryDirectory() as folder:
        with open(folder + "/hide", "w") as out:
            out.write("leak:make_*\n")
        expect("they can be hidden", run("leak", "reset", ZCSHIM_SUPPRESS=folder + "/hide", ZCSHIM_LEAK_EXIT=9).returncode == 0)


def observe_always_tells():
    golden("observe", run("copies", "tidy", ZCSHIM_MODE="observe").stderr)


def advice_counts_no_waits():
    """Copies that wait for long kernels save no more than such copies take on an idle GPU."""
    site = next(site for site in report_of("copies", "slow")["sites"] if site["copies"])
    expect("waits are in the time spent", site["copies"]["native_d2h"]["ns"] == 10000 * 5 * 10**6)
    expect(f"and not in what can be saved: {site['savable_ns_estimate']}", 60 * 10**6 < site["savable_ns_estimate"] < 120 * 10**6)


def json_matches_its_schema():
    report = report_of("leak", "twice", "copies", "placed", "note")
    sites = {site["id"]: site for site in report["sites"]}
    expect("verdict", report["verdict"]["leaked_count"] == 6 and report["verdict"]["misuses"] == 2)
    expect("the misuse names both sites",
           [f["line"] for m in report["misuses"] for f in sites[m["allocated"]]["frames"][:1]] == [17, 17])
    expect("samples rise", [s["time_ns"] for s in report["samples"]] == sorted(s["time_ns"] for s in report["samples"]))
    expect("a move", report["moves"][0]["to"] == "host")
    expect("a pinned leak in an inlined function",
           any(f.get("inlined") and f["function"] == "inlined_maker" for s in report["sites"] for f in s["frames"]))


def suppressions_hide_and_count():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "hide.txt")
        with open(path, "w") as out:
            out.write("# ours\nleak:make_table\nwhat is this\n")
        golden("suppressed", run("leak", ZCSHIM_SUPPRESS=path).stderr.replace(folder, "FOLDER"))
        with open(path, "w") as out:
            out.write("leak:make_*\n")
        result = run("leak", ZCSHIM_SUPPRESS=path, ZCSHIM_LEAK_EXIT=9)
        expect("all hidden: silent", result.stderr == "")
        expect("all hidden: no leak", result.returncode == 0)
        golden("hidden", run("leak", ZCSHIM_SUPPRESS=path, ZCSHIM_REPORT="on").stderr)
    expect("a missing file is named", "could not be read" in run("leak", ZCSHIM_SUPPRESS="/no/such").stderr)


def cuda_libraries_are_folded_and_their_own_hidden():
    golden("cublas", run("./libcublas.so.99", ZCSHIM_REPORT="on").stderr)
    golden("cudart", run("./libcudart.so.99").stderr)


def closed_libraries_have_names():
    golden("plugin", run("./plugin.so").stderr)


def without_debug_information():
    golden("bare", run("leak", program="bare").stderr)
    report = run("leak", program="stripped").stderr
    expect("build-id and offset", re.search(r"^      stripped \+ 0x[0-9a-f]+  \(build-id [0-9a-f]{16}\)$", report, re.M))


def without_libdw():
    with tempfile.TemporaryDirectory() as folder:
        open(os.path.join(folder, "libdw.so.1"), "w").close()
        report = run("leak", LD_LIBRARY_PATH=folder).stderr
    expect("symbol and offset", re.search(r"make_table \+ 0x[0-9a-f]+  program$", report, re.M))


def cplusplus_names():
    golden("names", run(program="names").stderr)
    golden("names_short", run(program="names_alone").stderr)


def python_frames():
    """In every interpreter of this machine; those of known releases must tell all places, others must tell none."""
    found = {sys.executable, *filter(None, (shutil.which(f"python3.{minor}", path="/usr/bin:/usr/local/bin") for minor in range(8, 20))),
             *glob.glob(os.path.expanduser("~/.pyenv/versions/3.1*/bin/python3"))}
    releases = {subprocess.run([python, "-c", "import sys; print(sys.version_info[1])"], stdout=subprocess.PIPE, text=True).stdout: python
                for python in sorted(found)}
    for release, python in sorted(releases.items()):
        known = release.split()[:1] in (["11"], ["12"], ["13"])
        result = subprocess.run([python, os.path.join(HERE, "python_frames.py"), *([] if known else ["unknown"])], stdout=subprocess.PIPE,
                                stderr=subprocess.STDOUT, text=True, timeout=60,
                                env={"LD_PRELOAD": os.path.join(BUILT, "libfakeshim.so"), "ZCSHIM_REPORT": "off", "PATH": os.environ["PATH"]})
        match = re.fullmatch(r"(\d+) places, (\d+) ns\n", result.stdout)
        expect(f"{python}: {result.stdout}", bool(match and int(match[1]) > 400) if known else result.stdout == "no frames\n")
        expect(f"{python}: a capture takes at most 1.5 us, not {match and match[2]} ns", not match or int(match[2]) <= 1500)


# Exit codes.

def leak_exit():
    result = run("print", "leak", ZCSHIM_LEAK_EXIT=23)
    expect("exit code of leaks", result.returncode == 23)
    expect("buffered output is kept", result.stdout == "printed, not flushed\n")
    expect("also without a report", run("leak", ZCSHIM_LEAK_EXIT=23, ZCSHIM_REPORT="off").returncode == 23)
    expect("no leak", run("tidy", ZCSHIM_LEAK_EXIT=23).returncode == 0)
    expect("a failure of the program's own stays", run("leak", "exit5", ZCSHIM_LEAK_EXIT=23).returncode == 5)


# Where it goes.

def files():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "r.txt")
        result = run("leak", ZCSHIM_REPORT=path)
        expect("stderr is empty", result.stderr == "")
        first = read(path)
        expect("mode 0600", stat.S_IMODE(os.stat(path).st_mode) == 0o600)
        run("leak", "twice", ZCSHIM_REPORT=path)
        run("leak", ZCSHIM_REPORT=path)
        expect("never overwritten", read(path) == first and sorted(os.listdir(folder)) == ["r.txt", "r.txt.1", "r.txt.2"])
        result = run("leak", ZCSHIM_REPORT=path)
        expect("where it went instead is told", result.stderr == f"libzcshim: {path} exists; the report is in {path}.3\n")
        os.symlink(os.path.join(folder, "elsewhere"), os.path.join(folder, "link"))
        run("leak", ZCSHIM_REPORT=os.path.join(folder, "link"))
        expect("links are not followed", not os.path.exists(os.path.join(folder, "elsewhere")))
        os.mkdir(os.path.join(folder, "here"))
        run("leak", ZCSHIM_REPORT=os.path.join(folder, "here"))
        expect("a folder gets a file", len(os.listdir(os.path.join(folder, "here"))) == 1 and not os.path.exists(os.path.join(folder, "here.1")))
        os.unlink(os.path.join(folder, "link"))


def devices():
    before = sorted(os.listdir("/dev"))
    expect("/dev/null takes a report", run("leak", ZCSHIM_REPORT="/dev/null").stderr == "")
    expect("a full device is told", "the report in /dev/full is cut off: no space left" in run("leak", ZCSHIM_REPORT="/dev/full").stderr)
    expect("and nothing is made beside them", sorted(os.listdir("/dev")) == before)


def switches():
    with tempfile.TemporaryDirectory() as folder:
        expect("1 is on", "no leaks" in run("tidy", ZCSHIM_REPORT="1", folder=folder).stderr)
        expect("0 is off", run("leak", ZCSHIM_REPORT="0", folder=folder).stderr == "")
        expect("neither is a file", os.listdir(folder) == [])


def names_of_files():
    with tempfile.TemporaryDirectory() as folder:
        run("leak", ZCSHIM_REPORT=folder + "/%e-%r-%%-%p.txt", SLURM_PROCID=7)
        run("leak", ZCSHIM_REPORT=folder + "/")
        run("chdir", "leak", ZCSHIM_REPORT="relative-%h.txt", folder=folder)
        names = " ".join(sorted(os.listdir(folder)))
        host = os.uname().nodename.replace("/", "_")
        expect(f"names ({names})", re.fullmatch(rf"program-7-%-\d+\.txt relative-{re.escape(host)}\.txt zcshim-program-\d+\.txt", names))


def unwritable():
    result = run("leak", ZCSHIM_REPORT="/no/such/folder/r.txt")
    expect("says why", "could not be written to /no/such/folder/r.txt: no such folder" in result.stderr)
    expect("and falls back to stderr", "still allocated at exit" in result.stderr)
    expect("exit code", result.returncode == 0)


def full_disk():
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "r.txt")
        result = run("leak", ZCSHIM_REPORT=path, limit=512)
        expect("says so", f"the report in {path} is cut off: file size limit reached" in result.stderr)
        expect("exit code", result.returncode == 0)
        expect("what fits is there", os.path.getsize(path) == 512)
    with open("/dev/full", "w") as full:
        expect("full stderr: exit code", run("leak", stderr=full).returncode == 0)


def closed_stderr():
    with tempfile.TemporaryDirectory() as folder:
        command = f"exec {BUILT}/program file2 leak 2>&-"
        result = subprocess.run(["sh", "-c", command], cwd=folder, timeout=60)
        expect("exit code", result.returncode == 0)
        expect("a file of the program that took number 2 is left alone", read(os.path.join(folder, "second.txt")) == "")
        result = subprocess.run(["sh", "-c", f"ZCSHIM_REPORT={folder}/r exec {BUILT}/program leak 2>&-"], timeout=60)
        expect("a file is still written", "still allocated" in read(folder + "/r"))


def broken_pipe():
    reader, writer = os.pipe()
    os.close(reader)
    expect("exit code", run("leak", stderr=writer).returncode == 0)
    expect("of a message", run("leak", stderr=writer, ZCSHIM_SUPPRESS="/no/such/file").returncode == 0)
    os.close(writer)


def suppressions_after_chdir():
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "hide"), "w") as out:
            out.write("leak:*\n")
        expect("are found where the program started", run("chdir", "leak", ZCSHIM_SUPPRESS="hide", folder=folder).stderr == "")


# Processes.

def forked_child_is_silent():
    with tempfile.TemporaryDirectory() as folder:
        run("leak", "fork", "wait", ZCSHIM_REPORT=folder + "/r")
        expect("one report", os.listdir(folder) == ["r"])


def child_that_execs_has_its_own():
    with tempfile.TemporaryDirectory() as folder:
        run("leak", "exec", "wait", ZCSHIM_REPORT=folder + "/r-%p")
        expect("two reports", len(os.listdir(folder)) == 2)


def dump_on_a_signal():
    result = run("leak", "usr1", "tidy", ZCSHIM_DUMP="usr1")
    expect("the run goes on", result.returncode == 0)
    expect("a report so far, and one at exit", re.findall(r"buffers?, .*?(allocated now|at exit)$", result.stderr, re.M) == ["allocated now", "at exit"])
    with tempfile.TemporaryDirectory() as folder:
        run("leak", "usr1", "tidy", ZCSHIM_DUMP="usr1", ZCSHIM_REPORT=folder + "/r.json", ZCSHIM_REPORT_FORMAT="json")
        dump, last = json.load(open(folder + "/r.json")), json.load(open(folder + "/r.json.1"))
        expect("running", dump["process"]["running"] and not last["process"]["running"])
    expect("without the option the signal is the program's", run("leak", "usr1").returncode == -10)


CASES = [text_of_everything, text_of_leaks_and_exit_code, silent_without_news,
         host_blocks_are_listed_and_no_leaks, destroyed_with_their_context, observe_always_tells, advice_counts_no_waits, json_matches_its_schema,
         suppressions_hide_and_count, cuda_libraries_are_folded_and_their_own_hidden, closed_libraries_have_names,
         without_debug_information, without_libdw, cplusplus_names, python_frames, leak_exit, files, devices, switches, suppressions_after_chdir, names_of_files, unwritable, full_disk,
         closed_stderr, broken_pipe, dump_on_a_signal, forked_child_is_silent, child_that_execs_has_its_own]

for case in CASES:
    here = case.__name__
    before = len(failures)
    case()
    print("ok  " if len(failures) == before else "FAIL", here)
for failure in failures:
    print(failure)
print(f"{len(CASES)} cases, {len(failures)} failures")
sys.exit(1 if failures else 0)
