#!/bin/sh
# compute-sanitizer memcheck on the examples, bare and under the shim: no error that the bare run has not.
build=${BUILD:-build}
shim=$PWD/$build/libzcshim.so
"$build/tests/gpu/device_count" || { echo "skipped: no CUDA device"; exit 77; }
sanitizer=$(command -v compute-sanitizer || echo "${CUDA_HOME:-/usr/local/cuda}/bin/compute-sanitizer")
[ -x "$sanitizer" ] || { echo "skipped: no compute-sanitizer"; exit 77; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
failed=0

check() { # check NAME SETTINGS...: runs $program, leaves its errors in $work/NAME.errors
	name=$1
	shift
	# shellcheck disable=SC2086
	env "$@" timeout 100 "$sanitizer" --tool memcheck --target-processes application-only --log-file "$work/$name.log" $program >"$work/$name.out" 2>"$work/$name.err"
	echo $? >"$work/$name.code"
	sed -n 's/^=* *ERROR SUMMARY: \([0-9]*\) error.*/\1/p' "$work/$name.log" | tail -n 1 >"$work/$name.errors"
	[ -s "$work/$name.errors" ] || echo none >"$work/$name.errors"
}

for program in "vector_add --small --rounds 5" "fir_stream --small" "image_lut --small" "bfs_levels --small" "cg_solver --small" \
	"ping_pong --small" "sparse_gather --small" "graph_walk --small" "leaky" "round_trip --check --iterations 20"; do
	program=$build/examples/$program
	check bare X=
	for settings in "ZCSHIM_MODE=always" "ZCSHIM_MODE=always ZCSHIM_STRESS_MOVES=1"; do
		# shellcheck disable=SC2086
		check shim LD_PRELOAD="$shim" $settings
		bare=$(cat "$work/bare.errors") shimmed=$(cat "$work/shim.errors")
		if [ "$bare" = "$shimmed" ] && cmp -s "$work/bare.out" "$work/shim.out" && cmp -s "$work/bare.code" "$work/shim.code"; then
			echo "same: $program, $settings: $bare errors"
		else
			failed=$((failed + 1))
			echo "DIFFERS: $program, $settings: $bare errors bare, $shimmed shimmed; exit codes $(cat "$work/bare.code") and $(cat "$work/shim.code")"
			grep -v '^=* *$' "$work/shim.log" | head -n 25
			tail -n 5 "$work/shim.err"
		fi
	done
done
echo "$failed differ"
[ $failed -eq 0 ]
