#!/bin/sh
# The kernels' suite on a GPU: bench.sh ZCBENCH FOLDER
# Checks, measures, calibrates; leaves the report, the numbers and the plots in FOLDER.
zcbench=$1
results=$2
set -e
mkdir -p "$results"
"$zcbench" --check >"$results/kernels-check.txt" 2>&1 || {
	cat "$results/kernels-check.txt"
	exit 1
}
tail -n 1 "$results/kernels-check.txt"
"$zcbench" --json="$results/kernels.json" --csv="$results/kernels.csv" --plot="$results/kernels.svg" >"$results/kernels.txt"
cat "$results/kernels.txt"
"$zcbench" --calibrate="$results/kernels.cost"
