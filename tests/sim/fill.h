/* From an entry point's arguments to a fill. */
#ifndef SIM_FILL_H
#define SIM_FILL_H

#include "stream.h"

/* Locked: checks the range and notes what it is; for graph nodes too. */
CUresult fill_canonical(struct fill *fill);

#endif
