#!/bin/sh
# An unmodified program, bare and under the shim: on the GPU if there is one, else on the driver in software.
# The last line is the verdict, the exit code says it too.
build=${BUILD:-build}
shim=$PWD/$build/libzcshim.so
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
for name in $(env | sed -n 's/^\(ZCSHIM_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done
unset LD_PRELOAD

if device=$("$build/tests/gpu/device_count" 2>/dev/null); then
	echo "device: $device"
	kind= size="--seconds 2"
else
	echo "device: none here; a CUDA driver in software stands in for it (right results, made-up times)"
	kind=-shared size="--small --seconds 1"
	LD_LIBRARY_PATH=$PWD/$build/sim${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
	export LD_LIBRARY_PATH ZCSIM_COSTS=1
	device="the software driver"
fi

failed=
run() { # run NAME PROGRAM SETTINGS...: its output into $work/NAME.out and .err
	name=$1 program=$2
	shift 2
	echo
	echo "\$ ${*:+$* }$program"
	# shellcheck disable=SC2086
	env "$@" timeout 120 $program >"$work/$name.out" 2>"$work/$name.err"
	code=$?
	sed 's/^/  /' "$work/$name.out" "$work/$name.err"
	[ $code -eq 0 ] || { echo "  exit code $code"; failed="$failed; $program ended with $code"; }
}
same() { cmp -s "$work/$1.out" "$work/$2.out" || failed="$failed; the results of $1 and $2 differ"; }
loop_us() { sed -n 's/^loop: \([0-9.]*\) us.*/\1/p' "$work/$1.err"; }

echo
echo "== a breadth-first search that copies a 4-byte flag both ways for every level =="
search="$build/examples/bfs_levels$kind $size"
run bare "$search"
run auto "$search" LD_PRELOAD="$shim" ZCSHIM_REPORT=on
run always "$search" LD_PRELOAD="$shim" ZCSHIM_MODE=always ZCSHIM_REPORT=on
same bare auto
same bare always

echo
echo "== a program that forgets memory of each kind, and frees some with the wrong function =="
leaky="$build/examples/leaky$kind"
run leaky_bare "$leaky"
run leaky "$leaky" LD_PRELOAD="$shim"
same leaky_bare leaky
grep -q leak "$work/leaky.err" || failed="$failed; the report does not tell of the leaks"

echo
bare=$(loop_us bare) auto=$(loop_us auto) always=$(loop_us always)
[ -n "$bare" ] && [ -n "$auto" ] && [ -n "$always" ] || failed="$failed; a time is missing"
if [ -n "$failed" ]; then
	echo "demo: FAILED${failed}"
	exit 1
fi
echo "$bare $auto $always" | awk -v device="$device" '{ printf "demo: PASSED on %s: same results; " \
	"a level of the search took %.1f us bare, %.1f under the shim (%.2f times as fast), %.1f with ZCSHIM_MODE=always (%.2f times)\n", \
	device, $1, $2, $1 / $2, $3, $1 / $3 }'
