#!/bin/sh
# zcbench's checks on the software driver: check.sh BUILD KERNEL-FILE...
build=$1
shift
sim=$build/sim
zcbench=$build/kernels/zcbench-shared
if [ ! -e "$sim/libcuda.so.1" ]; then
	echo "skipped: no software driver in $sim"
	exit 77
fi
kernels=
for name in "$@"; do kernels=$kernels${kernels:+:}$sim/kernels/$name.so; done
export LD_LIBRARY_PATH="$sim" ZCSIM_KERNELS="$kernels"
set -e
timeout 300 "$zcbench" --check --quick

echo "a device that cannot map host memory:"
for use in map-alloc map-pointer map-register; do
	answer=$(ZCSIM_CAN_MAP_HOST=0 timeout 60 "$zcbench" --wrong-use=$use)
	echo "  $use: $answer"
	case $use:$answer in
	map-pointer:"0 cudaSuccess") echo "a device pointer where nothing can be mapped" && exit 1 ;;
	esac
done
code=0
ZCSIM_CAN_MAP_HOST=0 timeout 60 "$zcbench" --quick 2>"$build/kernels/cannot-map.txt" || code=$?
cat "$build/kernels/cannot-map.txt"
if [ $code -ne 77 ] || ! grep -q canMapHostMemory "$build/kernels/cannot-map.txt"; then exit 1; fi

echo "no device:"
code=0
ZCSIM_DEVICES=0 timeout 60 "$zcbench" 2>"$build/kernels/no-device.txt" || code=$?
cat "$build/kernels/no-device.txt"
if [ $code -ne 77 ] || ! grep -q "no GPU" "$build/kernels/no-device.txt"; then exit 1; fi
