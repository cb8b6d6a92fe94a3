#!/bin/sh
# Malloc programs under the library: check.sh BUILD. Each must behave as it does bare.
build=$1
here=$build/tests/hostmem
shim=$(realpath "$build/libzcshim.so")
failed=0
try() { # try NAME COMMAND...
	name=$1
	shift
	if timeout 120 "$@" >"$here/$name.out" 2>&1; then
		echo "ok      $name"
	else
		echo "FAILED  $name (status $?): $(tail -n 3 "$here/$name.out")"
		failed=1
	fi
}
preloaded() { # preloaded NAME COMMAND...
	name=$1
	shift
	try "$name" env LD_PRELOAD="$shim" "$@"
}
for program in matrix cplusplus vectors resident early; do
	try "bare_$program" env LD_LIBRARY_PATH="$here" "$here/$program"
	preloaded "$program" env LD_LIBRARY_PATH="$here" "$here/$program"
done
preloaded bind_now env LD_BIND_NOW=1 LD_LIBRARY_PATH="$here" "$here/early"
preloaded off env ZCSHIM_HOST=off "$here/matrix"
preloaded mode_off env ZCSHIM_MODE=off "$here/matrix"
preloaded smallest env ZCSHIM_HOST_MIN=64K "$here/matrix"
preloaded smallest_vectors env ZCSHIM_HOST_MIN=64K "$here/vectors"
preloaded limited sh -c "ulimit -v 2000000; $here/vectors"
preloaded forks "$here/forks" 8 "${FORKS:-1000}"
preloaded scopes "$here/scopes" "$here/scopes_plugin.so"
other=$(realpath "$here/other_allocator.so")
try other_after env LD_PRELOAD="$shim:$other" "$here/vectors"
try other_before env LD_PRELOAD="$other:$shim" "$here/vectors"
try other_matrix env LD_PRELOAD="$shim:$other" "$here/cplusplus"
if [ -x /usr/bin/python3 ]; then
	preloaded python /usr/bin/python3 -c '
import subprocess, threading
x = [bytearray(5 << 20) for _ in range(20)]
y = b"".join(bytes(b) for b in x)
assert len(y) == 100 << 20
t = [threading.Thread(target=lambda: bytearray(9 << 20)) for _ in range(8)]
[i.start() for i in t]; [i.join() for i in t]
assert subprocess.check_output(["/bin/echo", "hi"]) == b"hi\n"'
fi
if nm -D "$shim" | grep -q __tls_get_addr; then
	echo "FAILED  the library uses __tls_get_addr"
	failed=1
fi
# Small requests and foreign pointers: compare and jump, nothing else.
if [ "$(uname -m)" = x86_64 ] && command -v objdump >/dev/null; then
	for name in malloc calloc realloc free; do
		code=$(objdump -d --no-show-raw-insn --disassemble=$name "$shim" | sed -n "/<$name>:/,/^$/p")
		if echo "$code" | grep -qE ':[[:space:]]+(call|push|ret)' || ! echo "$code" | grep -q 'jmp  *\*.*<libc_next'; then
			echo "FAILED  $name is no tail jump"
			failed=1
		fi
	done
fi
exit $failed
