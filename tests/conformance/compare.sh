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
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
run() {
	if [ -n "$CONFORMANCE_PRELOAD" ]; then
		env LD_PRELOAD="$CONFORMANCE_PRELOAD" "$program" "$@"
	else
		"$program" "$@"
	fi
}
run >"$work/answers"
code=$?
if [ $code -ne 0 ]; then
	[ $code -eq 77 ] && echo "conformance skipped: no CUDA driver with a device here"
	exit $code
fi
# Cut out of both sides: the questions of EXCEPTIONS; out of RESULT: questions newer than EXPECTED.
sed -e '/^#/d' -e '/^$/d' -e 's/\t.*/: /' ${exceptions:-/dev/null} >"$work/except"
sed 's/: .*/: /' "$expected" >"$work/asked"
cut_out() { awk -v except="$work/except" -v asked="$work/asked" 'BEGIN {
		while ((getline line < except) > 0) skip[line] = 1
		while ((getline line < asked) > 0) known[line] = 1 }
	{ question = substr($0, 1, index($0, ": ") + 1); if (!(question in skip) && question in known) print }' "$1"; }
compare() {
	cut_out "$expected" >"$work/expected"
	cut_out "$work/answers" >"$work/kept"
	diff "$work/expected" "$work/kept" >"$work/diff"
}
if ! compare; then
	# On a busy machine a call may seem to wait: sections that differ are asked again, one at a time, with patience.
	again=$(sed -n 's/^[<>] \([a-z_0-9]*\)[.:].*/\1/p' "$work/diff" | sort -u)
	CONFORMANCE_JOBS=1 CONFORMANCE_PATIENCE_MS=300 run --only $again >"$work/again"
	awk -v again="$work/again" '
		function section(line) { return substr(line, 1, match(line, /[.:]/) - 1) }
		BEGIN { while ((getline line < again) > 0) lines[section(line)] = lines[section(line)] line "\n" }
		!(section($0) in lines) { print; next }
		!(section($0) in done) { printf "%s", lines[section($0)]; done[section($0)] = 1 }' "$work/answers" >"$work/both"
	mv "$work/both" "$work/answers"
fi
code=0
compare || code=1
cp "$work/answers" "$result"
new=$(($(wc -l <"$work/answers") - $(wc -l <"$work/kept") - $(wc -l <"$work/except")))
[ $new -gt 0 ] && echo "conformance: $new questions have no answer of a real driver yet"
if [ $code -eq 0 ]; then
	echo "conformance: $(wc -l <"$work/kept") answers, all as $expected ($(wc -l <"$work/except") exceptions)"
	exit 0
fi
cat "$work/diff"
echo "conformance: $(grep -c '^[<>]' "$work/diff") lines differ (< $expected, > here)"
exit 1
