#!/bin/sh
# Runs the conformance program and compares its answers with a real driver's: compare.sh PROGRAM EXPECTED RESULT
# Environment (LD_LIBRARY_PATH, LD_PRELOAD for the program as CONFORMANCE_PRELOAD, ZCSHIM_*) passes through.
# Exits 0 same, 77 skipped (no driver, or no expected answers yet), 1 different; the answers stay in RESULT.
program=$1 expected=$2 result=$3
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
if diff "$expected" "$result" >"$result.diff"; then
	echo "conformance: $(wc -l <"$result") answers, all as $expected"
	exit 0
fi
cat "$result.diff"
echo "conformance: $(grep -c '^[<>]' "$result.diff") lines differ (< $expected, > here)"
exit 1
