#!/bin/sh
# run.sh BUILD STEPS THREADS SEED [SANITIZER]: the torture runs, under a memory limit of 2 GiB where a cgroup can be made.
build=$1 steps=$2 threads=$3 seed=$4 sanitizer=$5
set -e
group=
make_group() {
	if [ -w /sys/fs/cgroup/cgroup.subtree_control ] && grep -qw memory /sys/fs/cgroup/cgroup.controllers; then
		root=/sys/fs/cgroup limit=memory.max
		grep -qw memory $root/cgroup.subtree_control || echo +memory >$root/cgroup.subtree_control 2>/dev/null || return 0
	elif [ -w /sys/fs/cgroup/memory/cgroup.procs ]; then
		root=/sys/fs/cgroup/memory limit=memory.limit_in_bytes
	else
		return 0
	fi
	mkdir "$root/torture-$$" 2>/dev/null || return 0
	echo 2147483648 >"$root/torture-$$/$limit" || return 0
	group=$root/torture-$$
}
make_group
trap '[ -z "$group" ] || rmdir "$group"' EXIT
limited() { # limited COMMAND...
	if [ -n "$group" ]; then
		sh -c 'echo $$ >"$0/cgroup.procs" && exec "$@"' "$group" "$@"
	else
		"$@"
	fi
}
[ -n "$group" ] && echo "memory limited to 2 GiB by a cgroup" || echo "no cgroup can be made here: not limited"
if [ -n "$sanitizer" ]; then
	export TSAN_OPTIONS="halt_on_error=1 die_after_fork=0 $TSAN_OPTIONS"
	limited timeout 3000 "$build/tests/torture/direct" $((steps / 8)) "$threads" "$seed" 20
	exit
fi
limited timeout 3000 "$build/tests/torture/direct" $((steps / 2)) "$threads" "$seed" 20
shim=$(realpath "$build/libzcshim.so")
if [ -e "$build/sim/libcuda.so.1" ]; then
	limited env ZCSHIM_REPORT=off LD_LIBRARY_PATH="$(realpath "$build/sim")" LD_PRELOAD="$shim" timeout 3000 "$build/tests/torture/preloaded" \
		$((steps / 4)) "$threads" "$seed" 20
fi
limited env ZCSHIM_REPORT=off LD_PRELOAD="$shim" timeout 3000 "$build/tests/torture/preloaded" $((steps / 4)) "$threads" "$((seed + 1))" 20
