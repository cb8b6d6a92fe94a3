/* Compiled to PTX alone and embedded in libzcshim.so. */
#include "copy_kernels.cuh"
