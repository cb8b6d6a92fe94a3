/* The parts of the text form, each in a file of its own. Nobody but report_text*.c includes this. */
#ifndef SHIM_REPORT_TEXT_H
#define SHIM_REPORT_TEXT_H
#include "shim/report_model.h"

/* The stack of a site, one frame a line; NULL: unknown. (report_text_site.c) */
void text_site(struct emitter *emitter, const struct report_site *site);

/* Sites from the heaviest down: the one after `after` (NULL: the first), NULL at the end. A site of weight 0 is left
 * out. */
const struct report_site *text_next_site(const struct report *report, uint64_t (*weigh)(const struct report_site *),
                                         const struct report_site *after);
unsigned text_count_sites(const struct report *report, uint64_t (*weigh)(const struct report_site *));
/* "and at N more sites"; nothing for 0. */
void text_more(struct emitter *emitter, unsigned sites);

/* `before`, "1.00 KiB device in 1 buffer, 4.00 KiB pinned in 2", of the first `kinds` kinds; false and nothing if there
 * are none. (report_text_leaks.c) */
bool text_kinds(struct emitter *emitter, const char *before, const struct report_amount amounts[], unsigned kinds);
/* The sections on what was never freed, freed wrongly, and hidden. */
void text_leaks(struct emitter *emitter, const struct report *report, const struct report_leaks *leaks);
#endif
