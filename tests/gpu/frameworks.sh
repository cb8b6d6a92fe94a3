#!/bin/sh
# PyTorch, CuPy, JAX and numba bare and under the shim: the same printed results. Prints as it goes.
#     frameworks.sh [MODES]        default: auto,always,stress1,stress2
build=${BUILD:-build}
python=${PYTHON:-python3}
"$build/tests/gpu/device_count" || { echo "skipped: no CUDA device"; exit 77; }
set -- "${1:-auto,always,stress1,stress2}"
modes=$1
set --
for script in tests/gpu/frameworks/*.py; do
	module=$(basename "$script" .py)
	module=${module%%_*}
	[ "$module" = numba ] && module=numba.cuda
	if "$python" -c "import $module" 2>/dev/null; then
		set -- "$@" --command "$python $script"
	else
		echo "not here: $module"
	fi
done
exec "$python" tests/programs/compare.py --gpu --library "$build/libzcshim.so" --modes "$modes" --jobs 3 --timeout 150 --verbose "$@"
