/* The cost table's calibration file. */
#ifndef SHIM_COST_FILE_H
#define SHIM_COST_FILE_H
#include "policy/cost.h"

/* Puts the calibration of the current device over the defaults in `cost`, if there is one; a bad file gets one line and
 * changes nothing. */
void cost_file_read(struct cost *cost);
#endif
