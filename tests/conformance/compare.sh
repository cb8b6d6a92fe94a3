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
# The questions of EXCEPTIONS as lines "question: ", to be cut out of both sides.
sed -e '/^#/d' -e '/^$/d' -e 's/\t.*/: /' ${exceptions:-/dev/null} >"$result.except"
keep() { awk -v list="$result.except" 'BEGIN { while ((getline line < list) > 0) skip[line] = 1 }
	{ at = index($0, ": "); if (!(substr($0, 1, at + 1) in skip)) print }' "$1"; }
keep "$expected" >"$result.expected"
keep "$result" >"$result.kept"
if diff "$result.expected" "$result.kept" >"$result.diff"; then
	echo "conformance: $(wc -l <"$result.kept") answers, all as $expected ($(wc -l <"$result.except") exceptions)"
	exit 0
fi
cat "$result.diff"
echo "conformance: $(grep -c '^[<>]' "$result.diff") lines differ (< $expected, > here)"
exit 1
