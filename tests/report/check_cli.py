#!/usr/bin/env python3
"""The zcshim command without a GPU: check_cli.py BUILD."""
import json
import os
import random
import re
import subprocess
import sys
import tempfile

from schema import errors

HERE = os.path.dirname(os.path.abspath(__file__))
BUILD = os.path.abspath(sys.argv[1])
COMMAND = os.path.join(BUILD, "zcshim")
PROGRAM = os.path.join(BUILD, "tests/report/program")
FAKE = os.path.join(BUILD, "tests/report/libfakeshim.so")  # stands in for the library: it preloads into anything
SCHEMA = json.load(open(os.path.join(HERE, "../../docs/report-schema.json")))
failures = []
here = ""
scratch = tempfile.TemporaryDirectory()


def expect(what, true):
    if not true:
        failures.append(f"{here}: {what}")


def zcshim(*arguments, stdin=None, **settings):
    environment = {"PATH": os.environ["PATH"], "ZCSHIM_LIB": FAKE, **{name: str(value) for name, value in settings.items()}}
    return subprocess.run([COMMAND, *arguments], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment,
                          input=stdin, cwd=scratch.name, timeout=120)


def report_file(name, *what):
    path = os.path.join(scratch.name, name)
    subprocess.run([PROGRAM, *what], env={"ZCSHIM_REPORT": path, "ZCSHIM_REPORT_FORMAT": "json"}, timeout=60)
    return path


def read(path):
    return open(os.path.join(scratch.name, path)).read()


def help_everywhere():
    top = zcshim("--help")
    commands = re.findall(r"^  (\w+) ", top.stdout, re.M)
    expect(f"eight commands, not {commands}", len(commands) == 8)
    for command in commands:
        for flag in ("--help", "-h"):
            result = zcshim(command, flag)
            expect(f"{command} {flag}", result.returncode == 0 and result.stdout.startswith(f"usage: zcshim {command}"))
    expect("help of a command", zcshim("help", "report").stdout == zcshim("report", "--help").stdout)
    expect("no command is a usage error", zcshim().returncode == 2)
    result = zcshim("rum")
    expect("an unknown command is one, too", result.returncode == 2 and "rum" in result.stderr)
    expect("version", re.fullmatch(r"zcshim \d+\.\d+\.\d+\n", zcshim("--version").stdout))


def run_sets_and_keeps():
    result = zcshim("run", "--mode=always", "--max-size=32K", "--", "sh", "-c", "echo $LD_PRELOAD:$ZCSHIM_MODE:$ZCSHIM_MAX_SIZE; exit 7",
                    LD_PRELOAD="libm.so.6")
    expect("settings, other preloads, exit code", result.stdout == f"{FAKE}:libm.so.6:always:32K\n" and result.returncode == 7)
    expect("a program that is not there", zcshim("run", "/no/such").returncode == 127)
    expect("a program that cannot run", zcshim("run", "/etc/passwd").returncode == 126)
    expect("its own options are left to the program", zcshim("run", "sh", "-c", "echo $1", "sh", "--help").stdout == "--help\n")
    result = zcshim("run", "--mode=sometimes", "true")
    expect("a bad value is told before anything runs", result.returncode == 2 and "sometimes" in result.stderr and "keeping" not in result.stderr)
    expect("an unknown option too", zcshim("run", "--moda=auto", "true").returncode == 2)
    expect("no program", zcshim("run").returncode == 2)
    result = zcshim("run", "true", ZCSHIM_LIB="/no/such")
    expect("no library", result.returncode == 3 and "/no/such" in result.stderr)


def answers_that_are_lost_are_told():
    path = report_file("lost.json", "leak")
    for command in (["--help"], ["report", path], ["diff", path, path], ["suppress", path], ["options"], ["doctor"], ["check", "--runs=2", "true"]):
        with open("/dev/full", "w") as full:
            result = subprocess.run([COMMAND, *command], stdout=full, stderr=subprocess.PIPE, text=True, timeout=60,
                                    env={"PATH": os.environ["PATH"], "ZCSHIM_LIB": FAKE})
        expect(f"{command}: {result.returncode} {result.stderr}", result.returncode == 3 and "zcshim: stdout: " in result.stderr)


def options_may_stand_anywhere():
    path = report_file("any.json", "leak")
    expect("of report", zcshim("report", path, "--format=folded").stdout == zcshim("report", "--format=folded", path).stdout != "")
    expect("of diff", zcshim("diff", path, path, "--fail-on-growth").returncode == 0)
    expect("-- ends them", "-o: No such file" in zcshim("report", "--", "-o").stderr)
    for command in (["report", path, "-o"], ["record", "-o"], ["check", "--keep"]):
        expect(f"{command} lacks a value", "needs a value: F" in zcshim(*command).stderr)
    expect("a folder is none", zcshim("report", ".").stderr == "zcshim: .: Is a directory\n")


def check_compares():
    def check(script, *options, **settings):
        return zcshim("check", "--runs=3", *options, "sh", "-c", script, **settings)

    result = check("cat; echo out; exit 3", stdin="in\n")
    expect(f"same results and any exit code ({result.stdout})", result.returncode == 0 and "same results" in result.stdout)
    result = check('echo same; test -z "$LD_PRELOAD" || echo shimmed')
    expect("another stdout", result.returncode == 1 and "stdout differs in line 2" in result.stdout and "shimmed: shimmed" in result.stdout)
    result = check('test -z "$LD_PRELOAD" || exit 4')
    expect("another exit code", result.returncode == 1 and "exit code 4" in result.stdout)
    result = check('test -z "$LD_PRELOAD" || kill -9 $$')
    expect("a signal", result.returncode == 1 and "signal 9" in result.stdout)
    result = check('test -z "$LD_PRELOAD" || sleep 0.2')
    expect("slower", result.returncode == 4 and result.stdout.startswith("do not use the shim: same results"))
    result = check('test "$LD_PRELOAD" || sleep 0.2')
    expect("faster", result.returncode == 0 and result.stdout.startswith("use the shim: same results"))
    result = check("date +%N")
    expect("results that change by themselves", result.returncode == 5 and "from run to run" in result.stdout)
    result = zcshim("check", "/no/such")
    expect("a program that is not there", result.returncode == 3 and result.stderr == "zcshim: /no/such: No such file or directory\n")
    result = check("exit 127")
    expect("exit code 127 of its own is a result", result.returncode in (0, 4) and "ended with exit code 127, bare as shimmed" in result.stdout)
    result = zcshim("check", "--runs=1", "true")
    expect("one run does not show what changes by itself", result.returncode == 2 and "from 2 to 100" in result.stderr)
    expect("what is no number", zcshim("check", "--slower=x", "true").returncode == 2 and zcshim("check", "--runs=3x", "true").returncode == 2)
    check("echo kept", "--keep=kept")
    expect("outputs are kept", read("kept/bare-1.stdout") == "kept\n")


def record_sets_the_profile():
    result = zcshim("record", "-o", "a.zcp", "sh", "-c", "echo $ZCSHIM_PROFILE; echo > $ZCSHIM_PROFILE")
    expect("the profile", result.stdout == "a.zcp\n")
    expect("never overwritten", zcshim("record", "-o", "a.zcp", "true").returncode == 3)
    expect("unless asked", zcshim("record", "--update", "-o", "a.zcp", "true").returncode == 0)
    expect("where to?", zcshim("record", "true").returncode == 2)
    os.symlink("nowhere", os.path.join(scratch.name, "link.zcp"))
    for path in ("link.zcp", "no/such/folder/a.zcp", "/dev/null", "."):
        result = zcshim("record", "--update", "-o", path, "sh", "-c", "echo ran")
        expect(f"told before the program runs: {path} {result.stderr}", result.returncode == 3 and result.stdout == "" and path in result.stderr)


def doctor_finds():
    result = zcshim("doctor", PROGRAM)
    expect("the library", re.search(r"^ok .*libfakeshim", result.stdout, re.M))
    expect("a verdict", result.stdout.endswith("it will work\n") == (result.returncode == 0))
    for problem in re.findall(r"^BAD .*\n(.*)", result.stdout, re.M):
        expect("each with a remedy", problem.startswith("     -> "))
    static = os.path.join(scratch.name, "static")
    with open(static + ".c", "w") as source:
        source.write("int main(void) { return 0; }\n")
    if subprocess.run(["gcc", "-static", "-o", static, static + ".c"], stderr=subprocess.DEVNULL).returncode == 0:
        result = zcshim("doctor", static)
        expect("a static program", result.returncode == 1 and "statically linked" in result.stdout)
    elf = bytearray(open(PROGRAM, "rb").read())
    elf[4] = 1
    with open(static, "wb") as out:
        out.write(elf)
    expect("another ELF class", "32-bit" in zcshim("doctor", static).stdout)
    with open(static, "w") as out:
        out.write("#!/usr/bin/env python3\nimport jax\n")
    os.chmod(static, 0o755)
    expect("a framework", "VMM" in zcshim("doctor", static).stdout)
    no_library = os.path.join(scratch.name, "libzcshim.so")
    with open(no_library, "w") as out:
        out.write("no library\n")
    result = zcshim("doctor", ZCSHIM_LIB=no_library)
    expect("a library that cannot be preloaded", result.returncode == 1 and f"BAD  {no_library} cannot be preloaded" in result.stdout)
    expect("nothing there", "No such file" in zcshim("doctor", "/no/such").stdout)


def report_forms():
    path = report_file("all.json", "leak", "twice", "copies", "placed", "note")
    direct = subprocess.run([PROGRAM, "leak", "twice", "copies", "placed", "note"], stderr=subprocess.PIPE, text=True, env={}).stderr
    without_times = lambda text: re.sub(r"process \d+|[\d.]+ [mu]?s,", "", text)
    expect("text is what the library itself writes", without_times(zcshim("report", path).stdout) == without_times(direct))
    again = json.loads(zcshim("report", "--format=json", path).stdout)
    expect("json goes round", again == json.loads(read("all.json")))
    folded = zcshim("report", "--format=folded", path).stdout
    expect("folded stacks", "main;run;leak;make_table 1048576\n" in folded and all(re.fullmatch(r".* \d+", l) for l in folded.splitlines()))
    expect("other weights", zcshim("report", "--format=folded", "--weight=copies", path).stdout.count("\n") == 2)
    trace = json.loads(zcshim("report", "--format=trace", path).stdout)
    phases = {event["ph"] for event in trace["traceEvents"]}
    expect("trace", phases == {"M", "C", "X"})
    page = zcshim("report", "--format=html", path).stdout
    data = json.loads(re.search(r'type="application/json">(.*?)</script>', page, re.S).group(1))
    expect("page holds the report", data["verdict"] == again["verdict"] and data["totals"] == again["totals"])
    expect("page needs no network", not re.search(r'(src|href)=|https?://(?!www\.w3\.org/2000/svg)', page))
    expect("-o", zcshim("report", "-o", "out.txt", path).returncode == 0 and "still allocated" in read("out.txt"))
    expect("never overwrites", zcshim("report", "-o", "out.txt", path).returncode == 3)
    with open(os.path.join(scratch.name, "hide"), "w") as out:
        out.write("leak:make_table\n")
    expect("--suppress", "3 hidden" not in zcshim("report", path).stdout and "Hidden" in zcshim("report", "--suppress=hide", path).stdout)
    expect("--format=odd", zcshim("report", "--format=odd", path).returncode == 2)
    expect("from stdin", "still allocated" in zcshim("report", "-", stdin=read("all.json")).stdout)


def reports_merge():
    ranks = [report_file(f"rank{i}.json", "leak", "twice", "note") for i in range(3)]
    merged = json.loads(zcshim("report", "--format=json", *ranks).stdout)
    one = json.loads(read("rank0.json"))
    for error in errors(merged, SCHEMA, SCHEMA):
        expect(error, False)
    expect("bytes add up", merged["verdict"]["leaked_bytes"] == 3 * one["verdict"]["leaked_bytes"])
    expect("sites are the same in all", len(merged["sites"]) == len(one["sites"]))
    expect("misuses too", [m["count"] for m in merged["misuses"]] == [3 * m["count"] for m in one["misuses"]])
    expect("processes", merged["process"]["processes"] == 3 and "3 processes" in zcshim("report", *ranks).stdout)


def bad_reports():
    text = read("all.json")
    cases = {"cut": text[: len(text) // 2], "other": '{"tool": "other"}', "newer": text.replace('"schema": 1', '"schema": 99'), "empty": "",
             "deep": "[" * 100000, "string": '"\\q"'}
    for name, content in cases.items():
        with open(os.path.join(scratch.name, name), "w") as out:
            out.write(content)
        for command in (["report"], ["suppress"], ["diff", "all.json"]):
            result = zcshim(*command, name)
            expect(f"{command[0]} {name}: {result.returncode} {result.stderr}", result.returncode == 3 and name in result.stderr)
    expect("missing", zcshim("report", "no-such-file").returncode == 3)


def mutated_reports_never_crash():
    random.seed(1)
    base = json.loads(read("all.json"))
    odd = [None, -1, 2**64 - 1, 1e300, "", "x" * 5000, [], {}, True, [[]], [{}], {"id": 3}, "<\u2028\ud800"]

    def mutate(value, how_often):
        if random.random() < how_often:
            return random.choice(odd)
        if isinstance(value, dict):
            return {key: mutate(member, how_often) for key, member in value.items() if random.random() > how_often / 3}
        return [mutate(item, how_often) for item in value] if isinstance(value, list) else value

    for _ in range(40):
        mutant = mutate(base, random.choice([0.003, 0.02, 0.08]))
        if isinstance(mutant, dict):
            mutant.update(tool="libzcshim", schema=1)
        with open(os.path.join(scratch.name, "mutant.json"), "w") as out:
            json.dump(mutant, out)
        for command in (["report"], ["report", "--format=html", "all.json"], ["suppress"], ["diff", "all.json"]):
            code = zcshim(*command, "mutant.json").returncode
            expect(f"{command}: {code}", code in (0, 3))


def diff_compares():
    less, more = report_file("less.json", "leak"), report_file("more.json", "leak", "copies", "twice")
    result = zcshim("diff", less, more)
    expect("growth is shown, with callers", re.search(r"\+1048576 bytes in \+1 buffer, new: make_table  \S+:17, called by run, called by main\n", result.stdout)
           and result.returncode == 0)
    expect("statistics in words", re.search(r"^copies left to the driver: 0 -> 30000$", result.stdout, re.M))
    expect("with their units", re.search(r"^copied by the driver: 0 -> \d+ bytes$", result.stdout, re.M)
           and re.search(r"^peak of device memory: \d+ -> \d+ bytes$", result.stdout, re.M))
    expect("fails on growth", zcshim("diff", "--fail-on-growth", less, more).returncode == 1)
    expect("not on less", zcshim("diff", "--fail-on-growth", more, less).returncode == 0)
    expect("not on the same", zcshim("diff", "--fail-on-growth", less, less).returncode == 0)
    grown = report_file("grown.json", "leak", "copies")
    expect("some growth may be allowed", zcshim("diff", "--fail-on-growth=2000000", less, grown).returncode == 0)
    expect("with a unit", zcshim("diff", "--fail-on-growth=2M", less, grown).returncode == 0)
    expect("and not less", zcshim("diff", "--fail-on-growth=1000K", less, grown).returncode == 1)
    expect("what is no size", zcshim("diff", "--fail-on-growth=much", less, grown).returncode == 2)
    expect("two are needed", zcshim("diff", less).returncode == 2)


def options_tell_origins():
    with open(os.path.join(scratch.name, "settings"), "w") as out:
        out.write("max_size = 16K\n")
    result = zcshim("options", "--mode=observe", ZCSHIM_CONFIG="settings")
    expect("from the environment", re.search(r"MODE +observe +environment", result.stdout))
    expect("from the file", re.search(r"MAX_SIZE +16K +file", result.stdout))
    expect("from nowhere", re.search(r"LEAK_EXIT +0 +default", result.stdout))
    result = zcshim("options", ZCSHIM_MOED="auto")
    expect("a name that is wrong", result.returncode == 1 and "ZCSHIM_MODE" in result.stderr)


def suppress_writes_what_hides():
    path = report_file("leaks.json", "leak")
    text = zcshim("suppress", path).stdout
    expect("with its bytes", "# 3145728 bytes in 3 buffers, tests/report/program.c:17\n" in text)
    both = zcshim("suppress", report_file("two.json", "leak", "copies")).stdout
    expect("once a function", both.count("leak:^make_table$") == 1 and "# 4194304 bytes in 4 buffers" in both)
    expect("one line a function", re.findall(r"^leak:.*", text, re.M) == ["leak:^make_table$", "leak:^inlined_maker$"])
    with open(os.path.join(scratch.name, "suppressions"), "w") as out:
        out.write(text)
    result = subprocess.run([PROGRAM, "leak"], stderr=subprocess.PIPE, text=True,
                            env={"ZCSHIM_SUPPRESS": os.path.join(scratch.name, "suppressions")})
    expect("which hides them", result.stderr == "")


def completions_and_manuals_are_whole():
    for name in ("zcshim.1", "libzcshim.7"):
        text = open(os.path.join(BUILD, "cli", name)).read()
        expect(f"{name} has no mark left", not re.search(r"@[A-Z]+@", text))
    names = re.findall(r'^OPTION\((\w+),', open(os.path.join(HERE, "../../policy/options.def")).read(), re.M)
    manual = open(os.path.join(BUILD, "cli/libzcshim.7")).read().replace("\\-", "-")
    expect("every setting is in the manual", all(f".B ZCSHIM_{name}" in manual for name in names))
    script = f"""source {BUILD}/cli/zcshim.bash
        COMP_WORDS=(zcshim ru); COMP_CWORD=1; _zcshim; echo "${{COMPREPLY[*]}}"
        COMP_WORDS=(zcshim run --mode = al); COMP_CWORD=4; _zcshim; echo "${{COMPREPLY[*]}}"
        COMP_WORDS=(zcshim report --fo); COMP_CWORD=2; _zcshim 2>/dev/null; echo "${{COMPREPLY[*]}}" """
    result = subprocess.run(["bash", "-c", script], stdout=subprocess.PIPE, text=True)
    expect(f"bash completes ({result.stdout})", result.stdout == "run\nalways\n--format=\n")


CASES = [help_everywhere, answers_that_are_lost_are_told, options_may_stand_anywhere, run_sets_and_keeps, check_compares, record_sets_the_profile, doctor_finds, report_forms, reports_merge, bad_reports,
         mutated_reports_never_crash, diff_compares, options_tell_origins, suppress_writes_what_hides, completions_and_manuals_are_whole]

for case in CASES:
    here = case.__name__
    before = len(failures)
    case()
    print("ok  " if len(failures) == before else "FAIL", here, flush=True)
for failure in failures:
    print(failure)
print(f"{len(CASES)} cases, {len(failures)} failures")
sys.exit(1 if failures else 0)
