/* The GPU code that is linked into the program itself (section .nv_fatbin), where it lies in memory: so that something
 * can be known of its kernels before the runtime loads them. */
#ifndef SHIM_PROGRAM_IMAGES_H
#define SHIM_PROGRAM_IMAGES_H
#include <stdbool.h>

/* Calls `visit` for each fat binary until it returns true; whether it did. Reads the program's file headers; no lock,
 * no driver call. */
bool program_images_any(bool (*visit)(const void *image));
#endif
