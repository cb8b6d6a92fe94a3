/* Samples of the run that report_tick took, in order of time. */
#ifndef SHIM_REPORT_TIMELINE_H
#define SHIM_REPORT_TIMELINE_H
#include "shim/report_model.h"

#define TIMELINE_SAMPLES 512 /* when full, every second one goes and the pause between them doubles */
#define TIMELINE_MOVES   4096

/* Adds a last sample and gives all; both arrays stay the timeline's. */
size_t timeline_samples(struct report_sample **samples, uint64_t now_ns);
size_t timeline_moves(struct report_move **moves);
/* When the library was loaded. */
uint64_t timeline_start_ns(void);
#endif
