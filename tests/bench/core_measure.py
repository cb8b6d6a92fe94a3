"""Measuring programs bare and shimmed: sides alternated process by process, medians with spread, a table against bars."""
import json
import os
import platform
import statistics
import subprocess
import sys
import time

BUILD = os.environ.get("BUILD", "build")
LIBRARY = os.path.abspath(os.path.join(BUILD, "libzcshim.so"))


def environment(settings=None, shim=True):
    """The environment of one side: settings None or shim False is bare."""
    result = {k: v for k, v in os.environ.items() if not k.startswith("ZCSHIM_") and k != "LD_PRELOAD"}
    if settings is not None and shim:
        result |= {"LD_PRELOAD": LIBRARY, "ZCSHIM_REPORT": "off"} | settings
    return result


BARE = environment()
OFF = environment({"ZCSHIM_MODE": "off"})
ALWAYS = environment({"ZCSHIM_MODE": "always"})


class Failed(Exception):
    pass


def run(command, env, timeout=60):
    """stdout and stderr of a program that must end with 0."""
    done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=timeout)
    if done.returncode:
        raise Failed(f"{' '.join(command)}: exit code {done.returncode}\n{done.stdout[-400:]}{done.stderr[-800:]}")
    return done.stdout, done.stderr


def json_line(command, env):
    return json.loads(run(command, env)[0].splitlines()[-1])


def loop_us(command, env):
    """The time per iteration that an example prints on stderr."""
    for line in run(command, env)[1].splitlines():
        if line.startswith("loop: "):
            return float(line.split()[1])
    raise Failed(f"{' '.join(command)}: no loop time")


def alternate(sides, rounds=7):
    """sides: name -> function that measures once. Runs them in turn, `rounds` times; the order turns round each time.
    Returns name -> list of results."""
    samples = {name: [] for name in sides}
    names = list(sides)
    for i in range(rounds):
        for name in names if i % 2 == 0 else reversed(names):
            samples[name].append(sides[name]())
    return samples


def ratios(above, below):
    """Round by round, so that slow drift of the machine cancels."""
    return [a / b for a, b in zip(above, below)]


class Table:
    def __init__(self, suite):
        self.suite, self.rows, self.started, self.lines = suite, [], time.time(), []

    def say(self, text):
        print(text, flush=True)
        self.lines.append(text)

    def row(self, name, samples, bar, unit="", raw=None):
        """bar: "<= 1.01", ">= 15", "> 1.2" or "" (only reported). samples: one number or several, the median counts."""
        samples = samples if isinstance(samples, list) else [samples]
        value = statistics.median(samples)
        met = None
        if bar:
            sign, limit = bar.split()
            met = {"<=": value <= float(limit), ">=": value >= float(limit), ">": value > float(limit)}[sign]
        self.rows.append({"name": name, "value": value, "unit": unit, "spread": [min(samples), max(samples)],
                          "deviation": statistics.median(abs(s - value) for s in samples), "rounds": len(samples),
                          "bar": bar, "met": met, "raw": raw})
        spread = f"{min(samples):.4g}..{max(samples):.4g}" if len(samples) > 1 else ""
        self.say(f"{name:<66} {value:>9.4g} {unit:<4} {spread:<18} {bar:<8} {'' if met is None else 'met' if met else 'NOT MET'}")

    def failed(self, name, bar, why):
        self.rows.append({"name": name, "value": None, "bar": bar, "met": False, "why": str(why)})
        self.say(f"{name:<66} failed: {why}")

    def write(self):
        folder = os.environ.get("OUT") or "docs/results"
        os.makedirs(folder, exist_ok=True)
        judged = [row for row in self.rows if row["met"] is not None]
        self.say(f"{self.suite}: {sum(row['met'] for row in judged)} of {len(judged)} bars met, {time.time() - self.started:.0f} s")
        with open(os.path.join(folder, f"{self.suite}.json"), "w") as file:
            json.dump({"suite": self.suite, "version": 1, "time": time.strftime("%Y-%m-%d %H:%M:%S"), "device": device_name(),
                       "kernel": platform.release(), "cpus": os.cpu_count(), "rows": self.rows}, file, indent=1)
            file.write("\n")
        with open(os.path.join(folder, f"{self.suite}.txt"), "w") as file:
            file.write("\n".join([f"{device_name()}, Linux {platform.release()}, {os.cpu_count()} CPUs"] + self.lines) + "\n")


def device_name():
    try:
        return run([os.path.join(BUILD, "tests/gpu/device_count")], BARE)[0].strip()
    except (Failed, OSError):
        return None


def need_device():
    if not device_name():
        print("skipped: no CUDA device")
        sys.exit(77)
