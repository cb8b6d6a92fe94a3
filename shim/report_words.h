/* Numbers as people read them. Each writes into `text` and returns it. */
#ifndef SHIM_REPORT_WORDS_H
#define SHIM_REPORT_WORDS_H
#include <stdint.h>

enum { NUMBER_MAX = 32 };

const char *bytes_text(char text[NUMBER_MAX], uint64_t bytes); /* "512 bytes", "1.50 MiB" */
const char *time_text(char text[NUMBER_MAX], uint64_t ns);     /* "12.3 us" */
const char *times_text(char text[NUMBER_MAX], uint64_t count); /* "once", "5 times" */
const char *plural(uint64_t count);                            /* "s" unless it is one */
#endif
