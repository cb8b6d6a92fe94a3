#!/bin/sh
# Writes the C++ file that compiles a file of kernels and lists them: kernels.sh NAME_kernels.cuh >NAME.cpp
set -e
header=$1
cat <<EOF
#include "$header"
alignas(64) thread_local zcsim_thread *zcsim_self; // leak checkers misread blocks that are less aligned
extern "C" __attribute__((visibility("default"))) void zcsim_bind(zcsim_thread *self) { zcsim_self = self; }
extern "C" __attribute__((visibility("default"))) const zcsim_kernel zcsim_kernels[] = {
EOF
# Comments go first, and what only nvcc sees.
cpp -P -nostdinc -undef -fpreprocessed -D__CUDACC_IS_NOT_HERE__ "$header" 2>/dev/null | tr '\n' ' ' |
	sed 's/__launch_bounds__ *([^)]*)//g' |
	grep -oE '__global__ +(static +|inline +)?void +[A-Za-z_][A-Za-z_0-9]* *\(' |
	sed -E 's/.*void +([A-Za-z_][A-Za-z_0-9]*) *\(/    ZCSIM_KERNEL(\1),/' | sort -u
echo '    {nullptr, nullptr, 0, nullptr}};'
