/* Fills a report from what the shim knows. */
#ifndef SHIM_REPORT_COLLECT_H
#define SHIM_REPORT_COLLECT_H
#include "shim/report_model.h"
#include "shim/report_suppress.h"

/* Everything but names of functions and lines: frames have their modules, sites are hidden by what the modules alone
 * tell. False: no memory. */
bool report_collect(struct report *report, const struct suppressions *suppressions);
/* Looks names up, of all sites or of those that the text form tells about, and hides by them. Uses the program's malloc
 * (symbols.h). */
void report_name_frames(struct report *report, const struct suppressions *suppressions, bool all);
#endif
