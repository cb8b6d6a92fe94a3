#!/usr/bin/env python3
"""The README's table of settings, from policy/options.def: readme.py [--write]. Exits 1 when they differ."""
import re
import sys

BEGIN, END = "<!-- settings: made from policy/options.def -->\n", "<!-- end of settings -->\n"


def table():
    text = open("policy/options.def").read()
    rows = ["| setting | default | values | meaning |", "|---|---|---|---|"]
    pattern = r'^OPTION\((\w+), \w+, (\w+), "([^"]*)", ([^,]+), ([^,]+), "([^"]*)",\s*((?:"[^"]*"\s*)+)\)'
    for name, kind, default, _, _, words, help_text in re.findall(pattern, text, re.M):
        help_text = "".join(re.findall(r'"([^"]*)"', help_text))
        values = {"SIZE": "size", "INT": "number", "SEED": "number", "PERCENT": "percent", "SWITCH": "on, off", "STRING": ""}.get(kind, "")
        values = ", ".join(filter(None, [values] + words.split("|")))
        rows.append(f"| `ZCSHIM_{name}` | {'`' + default + '`' if default else ''} | {values} | {help_text} |")
    return "\n".join(rows) + "\n"


def main():
    text = open("README.md").read()
    head, rest = text.split(BEGIN)
    old, tail = rest.split(END)
    new = table()
    if "--write" in sys.argv:
        open("README.md", "w").write(head + BEGIN + new + END + tail)
    elif old != new:
        print("README.md: the table of settings is not that of policy/options.def; run tests/readme.py --write")
        return 1
    return 0


sys.exit(main())
