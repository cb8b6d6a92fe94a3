#!/bin/sh
# Runs check targets one after another: runner.sh MAKE TARGET...
# Prints a line each (PASS, FAIL, SKIP) and a closing "N passed, N failed, N skipped"; a failed one shows the end of its log.
make=$1
shift
logs=${BUILD:-build}/check
mkdir -p "$logs"
passed=0 failed=0 skipped=0
for target in "$@"; do
	log=$logs/$target.log
	started=$(date +%s)
	$make --no-print-directory "$target" >"$log" 2>&1
	code=$?
	took=$(($(date +%s) - started))
	if [ $code -ne 0 ] && grep -q "Error 77" "$log"; then
		skipped=$((skipped + 1))
		echo "SKIP $target (${took} s): $(grep -i skipped "$log" | tail -n 1)"
	elif [ $code -ne 0 ]; then
		failed=$((failed + 1))
		echo "FAIL $target (${took} s), see $log:"
		tail -n 30 "$log" | sed 's/^/    /'
	else
		passed=$((passed + 1))
		echo "PASS $target (${took} s)"
	fi
done
echo "$passed passed, $failed failed, $skipped skipped"
[ $failed -eq 0 ]
