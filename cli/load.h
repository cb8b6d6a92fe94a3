/* Reports from their JSON form. */
#ifndef CLI_LOAD_H
#define CLI_LOAD_H
#include "shim/report_model.h"

/* NULL and a message if the file is no report of ours. */
struct report *report_load(const char *path);
/* Adds `other` up into `into`: sites by hash, notes by text, the rest by its sum; what belongs to one run only
 * (samples, moves) is dropped. */
void report_merge(struct report *into, const struct report *other);

/* The other forms (forms.c, html.c). */
enum weight { WEIGHT_LEAKS, WEIGHT_TOTAL, WEIGHT_COPIES, WEIGHT_PEAK, WEIGHTS };
void report_write_folded(struct emitter *emitter, const struct report *report, enum weight weight);
void report_write_trace(struct emitter *emitter, const struct report *report);
void report_write_html(struct emitter *emitter, const struct report *report);
#endif
