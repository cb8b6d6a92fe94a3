#!/usr/bin/env python3
"""The HTML report in a headless browser: check_page.py BUILD. Exit code 77: no browser here."""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

BUILD = os.path.abspath(sys.argv[1])
CLICKS = """<script>
const seen = {};
const rows = id => [...document.querySelectorAll(`#${id} tbody tr`)];
const shown = id => rows(id).filter(row => row.offsetParent !== null).length;
seen.tables = [...document.querySelectorAll("table")].map(table => table.id);
seen.before = rows("leaks").map(row => row.cells[0].textContent);
document.querySelector("#leaks th button").click();
seen.after = rows("leaks").map(row => row.cells[0].textContent);
seen.sorted = document.querySelector("#leaks th").getAttribute("aria-sort");
seen.closed = !document.querySelector("#leaks details").open;
document.querySelector("#leaks summary").click();
seen.opened = document.querySelector("#leaks details").open;
const filter = document.getElementById("filter");
filter.value = "PINNED";
filter.dispatchEvent(new Event("input"));
seen.filtered = shown("leaks") + shown("host");
filter.value = "";
filter.dispatchEvent(new Event("input"));
seen.all = shown("leaks");
const lines = () => document.querySelectorAll("#chart path").length;
seen.lines = [lines()];
document.querySelector(".legend span").click();
seen.lines.push(lines());
document.querySelector(".legend span").click();
seen.lines.push(lines());
seen.injected = window.injected === true;
document.title = "SEEN" + JSON.stringify(seen);
</script></html>"""

browser = next((found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))), None)
if not browser:
    print("skipped: no Chromium here")
    sys.exit(77)

with tempfile.TemporaryDirectory() as folder:
    report, page = os.path.join(folder, "r.json"), os.path.join(folder, "r.html")
    subprocess.run([os.path.join(BUILD, "tests/report/program"), "leak", "twice", "copies", "placed", "note", "host"], timeout=60,
                   env={"ZCSHIM_REPORT": report, "ZCSHIM_REPORT_FORMAT": "json"})
    data = json.load(open(report))
    data["notes"].append({"text": "</script><script>injected = true</script><b>&", "count": 1})
    json.dump(data, open(report, "w"))
    subprocess.run([os.path.join(BUILD, "zcshim"), "report", "--format=html", "-o", page, report], check=True, timeout=60)
    text = open(page).read().replace("</html>", CLICKS)
    open(page, "w").write(text)
    picture = os.path.join(BUILD, "tests/report/page.png")
    common = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--window-size=1300,1700", f"--user-data-dir={folder}/profile"]
    dom = subprocess.run([*common, "--dump-dom", "file://" + page], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, timeout=60).stdout
    subprocess.run([*common, f"--screenshot={picture}", "file://" + page], stderr=subprocess.DEVNULL, timeout=60)

found = re.search(r"<title>SEEN(.*?)</title>", dom)
if not found:
    print("the page's script did not run to its end")
    sys.exit(1)
seen = json.loads(found.group(1).replace("&quot;", '"').replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
print(json.dumps(seen, indent=1))
wrong = [what for what, right in {
    "all tables are there": seen["tables"] == ["leaks", "host", "misuses", "copies", "sites", "notes", "statistics"],
    "largest first": seen["before"][0] == "3.00 MiB",
    "a click turns the order around": seen["after"] == seen["before"][::-1] and seen["sorted"] == "ascending",
    "stacks open": seen["closed"] and seen["opened"],
    "rows are filtered": seen["filtered"] == 1 and seen["all"] == len(seen["before"]),
    "lines of the chart can be hidden": seen["lines"] == [3, 2, 3],
    "text of a report is never run": not seen["injected"],
}.items() if not right]
print("\n".join("FAIL " + what for what in wrong) or "ok")
sys.exit(1 if wrong else 0)
