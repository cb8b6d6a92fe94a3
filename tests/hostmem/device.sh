#!/bin/sh
# device.sh BUILD PROGRAM: each mode of PROGRAM bare and under the library, several settings; stdout and exit status must be the same.
build=$1 program=$2
out=$build/tests/hostmem/device.out
shim=$(realpath "$build/libzcshim.so")
settings=${SETTINGS:-ZCSHIM_HOST=on ZCSHIM_COPY_THREADS=3 ZCSHIM_COPY_THREADS=0 ZCSHIM_PIN_LIMIT=24M ZCSHIM_HOST_MIN=256K ZCSHIM_HOST=off ZCSHIM_MODE=observe}
mkdir -p "$out"
ulimit -c 0
failed=0
for mode in forms order answers fork graph life threads cut hole foreign; do
	timeout 120 "$program" $mode >"$out/$mode.bare" 2>"$out/$mode.bare.err"
	bare=$?
	for setting in $settings; do
		timeout 120 env $setting ZCSHIM_REPORT=off LD_PRELOAD="$shim" "$program" $mode >"$out/$mode.shim" 2>"$out/$mode.shim.err"
		ours=$?
		if [ $bare = $ours ] && cmp -s "$out/$mode.bare" "$out/$mode.shim"; then
			echo "ok      $mode $setting"
		else
			echo "FAILED  $mode $setting: status $bare bare, $ours shimmed"
			diff "$out/$mode.bare" "$out/$mode.shim" | head -n 5
			head -n 3 "$out/$mode.shim.err"
			cp "$out/$mode.shim" "$out/$mode.$setting"
			failed=1
		fi
	done
done
# That the threads and the registrations were used at all, and are reported.
for use in 'foreign staged by threads' 'forms copies from or to registered'; do
	mode=${use%% *} words=${use#* }
	rm -f "$out/report.txt"
	timeout 120 env ZCSHIM_COPY_THREADS=2 ZCSHIM_REPORT="$out/report.txt" LD_PRELOAD="$shim" "$program" $mode >/dev/null 2>&1
	if grep -q "[1-9].*$words" "$out/report.txt"; then
		echo "ok      $mode is reported"
	else
		echo "FAILED  the report of $mode has no '$words'"
		failed=1
	fi
done
# On the simulator: each driver call that the shim makes for itself fails in turn; the program must not notice.
for fault in $FAULTS; do
	for mode in forms order life threads foreign; do
		timeout 120 env ZCSIM_FAULT=$fault "$program" $mode >"$out/$mode.bare" 2>"$out/$mode.bare.err"
		bare=$?
		timeout 120 env ZCSIM_FAULT=$fault ZCSHIM_COPY_THREADS=3 ZCSHIM_REPORT=off LD_PRELOAD="$shim" "$program" $mode \
			>"$out/$mode.shim" 2>"$out/$mode.shim.err"
		ours=$?
		if [ $bare = $ours ] && cmp -s "$out/$mode.bare" "$out/$mode.shim"; then
			echo "ok      $mode with $fault"
		else
			echo "FAILED  $mode with $fault: status $bare bare, $ours shimmed"
			diff "$out/$mode.bare" "$out/$mode.shim" | head -n 5
			failed=1
		fi
	done
done
exit $failed
