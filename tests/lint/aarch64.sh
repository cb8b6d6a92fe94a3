#!/bin/sh
# aarch64.sh FLAGS...: every C file of shim, policy and cli compiles for aarch64 with the flags of the native build.
compiler=aarch64-linux-gnu-gcc
command -v $compiler >/dev/null 2>&1 || { echo "skipped: $compiler is not here"; exit 77; }
count=0 failed=0
for file in shim/*.c shim/hooks/*.c policy/*.c cli/*.c; do
	count=$((count + 1))
	$compiler "$@" -fsyntax-only "$file" || { echo "FAILED $file" && failed=$((failed + 1)); }
done
echo "$count files for aarch64, $failed failed"
[ $failed -eq 0 ]
