#!/bin/sh
# Runs the conformance program and compares its answers with a real driver's: compare.sh PROGRAM EXPECTED RESULT [EXCEPTIONS]
# EXCEPTIONS lists questions that may be answered otherwise, each with its reason: "question<tab>reason"; # starts a comment.
# Environment (LD_LIBRARY_PATH, LD_PRELOAD for the program as CONFORMANCE_PRELOAD, ZCSHIM_*) passes through.
# Exits 0 same, 77 skipped (no driver, or no expected answers yet), 1 different; the answers stay in RESULT.
program=$1 expected=$2 result=$3 exceptions=$4
if [ ! -f "$expected" ]; then
	echo "conformance skipped: $expected is missing, no answers of a real driver to compare with"
	exit 77
fi
if [ -n "$CONFORMANCE_PRELOAD" ]; then
	env LD_PRELOAD="$CONFORMANCE_PRELOAD" "$program" >"$result"
else
	"$program" >"$result"
fi
code=$?
if [ $code -ne 0 ]; then
	[ $code -eq 77 ] && echo "conformance skipped: no CUDA driver with a device here"
	exit $code
fi
# Cut out of both sides: the questions of EXCEPTIONS; out of RESULT: questions newer than EXPECTED.
sed -e '/^#/d' -e '/^$/d' -e 's/\t.*/: /' ${exceptions:-/dev/null} >"$result.except"
sed 's/: .*/: /' "$expected" >"$result.asked"
cut_out() { awk -v except="$result.except" -v asked="$result.asked" 'BEGIN {
		while ((getline line < except) > 0) skip[line] = 1
		while ((getline line < asked) > 0) known[line] = 1 }
	{ question = substr($0, 1, index($0, ": ") + 1); if (!(question in skip) && question in known) print }' "$1"; }
cut_out "$expected" >"$result.expected"
cut_out "$result" >"$result.kept"
new=$(($(wc -l <"$result") - $(wc -l <"$result.kept") - $(wc -l <"$result.except")))
[ $new -gt 0 ] && echo "conformance: $new questions have no answer of a real driver yet"
if diff "$result.expected" "$result.kept" >"$result.diff"; then
	echo "conformance: $(wc -l <"$result.kept") answers, all as $expected ($(wc -l <"$result.except") exceptions)"
	exit 0
fi
cat "$result.diff"
echo "conformance: $(grep -c '^[<>]' "$result.diff") lines differ (< $expected, > here)"
exit 1
