/* Settings: one struct, filled from ZCSHIM_* variables and a settings file; options.def names each setting once.
 *
 * Nothing here reads a file or the process's environment, allocates or prints: the caller passes text in and gets lines
 * out. */
#ifndef POLICY_OPTIONS_H
#define POLICY_OPTIONS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Values of CHOICE settings, in the order of their words in options.def. */
enum option_mode { MODE_AUTO, MODE_ALWAYS, MODE_OBSERVE, MODE_OFF };
enum option_lend { LEND_AUTO, LEND_OFF };
enum option_log { OPTION_LOG_QUIET, OPTION_LOG_WARN, OPTION_LOG_INFO, OPTION_LOG_DEBUG };
enum option_report_format { REPORT_FORMAT_TEXT, REPORT_FORMAT_JSON };
enum option_dump { DUMP_OFF, DUMP_USR1, DUMP_USR2 };

enum option_kind { OPTION_SIZE, OPTION_INT, OPTION_SEED, OPTION_PERCENT, OPTION_SWITCH, OPTION_CHOICE, OPTION_STRING };
enum option_origin { OPTION_FROM_DEFAULT, OPTION_FROM_ENVIRONMENT, OPTION_FROM_FILE };

enum option_index {
#define OPTION(NAME, ...) OPTION_INDEX_##NAME,
#include "options.def"
#undef OPTION
    OPTION_COUNT
};

#define OPTION_FIELD_SIZE    uint64_t /* bytes */
#define OPTION_FIELD_INT     int
#define OPTION_FIELD_SEED    uint64_t
#define OPTION_FIELD_PERCENT double /* a fraction: 2% is 0.02 */
#define OPTION_FIELD_SWITCH  bool
#define OPTION_FIELD_CHOICE  unsigned     /* index of the word: one of the enums above */
#define OPTION_FIELD_STRING  const char * /* never null; points into the text it came from */

/* A field per setting, lower case: options.max_size, options.mode, ... */
struct options {
#define OPTION(NAME, field, KIND, ...) OPTION_FIELD_##KIND field;
#include "options.def"
#undef OPTION
    unsigned char origin[OPTION_COUNT]; /* enum option_origin of each setting */
};

/* What options.def says, for the parser and for generators of help, man page and completion. */
struct option_info {
    const char *name;         /* "MAX_SIZE": the variable is ZCSHIM_MAX_SIZE */
    enum option_kind kind;    /* how the value is written */
    const char *default_text; /* as a user would write it */
    uint64_t low, high;       /* range of SIZE and INT, and of PERCENT in per cent; both ends included */
    const char *words;        /* choices, or words beside numbers, or what a string is; parted by | */
    const char *help;
    size_t offset; /* of the field in struct options */
};
extern const struct option_info options_table[OPTION_COUNT];

/* Takes one line without a newline. Called during the parse, on the caller's thread. */
typedef void options_warn(void *ctx, const char *line);

/* Every setting to its default. */
void options_default(struct options *options);

/* Sets defaults, then what `envp` (null-terminated, as in main) names. Unknown ZCSHIM_ names warn with the nearest
 * known one; bad values warn and leave the default. An empty value means the default, and of two lines with one name
 * the first counts. String settings point into envp's strings, which must live as long as `options`. `warn` may be
 * null. */
void options_parse(struct options *options, char *const *envp, options_warn *warn, void *ctx);

/* Adds a settings file that the caller has read: call it after options_parse, which said which (options->config). Lines
 * are NAME=value, with or without ZCSHIM_, in any case; blanks around both and lines that start with # are ignored.
 * What the environment has set stays. `text` is NUL-terminated, is written to (lines become strings) and must live as
 * long as `options`. */
void options_parse_text(struct options *options, char *text, options_warn *warn, void *ctx);

/* Index of the setting called `name` (without ZCSHIM_, any case), or -1. */
int options_find(const char *name, size_t length);

/* Writes the value of one setting as a user would; returns the length it has, as snprintf does. */
size_t options_value(char *buf, size_t capacity, const struct options *options, unsigned index);

/* Writes the allowed values of one setting ("0..2M or auto", "auto|off", "PATH"); returns the length as snprintf does.
 */
size_t options_range(char *buf, size_t capacity, unsigned index);

/* "default", "environment" or "file". */
const char *options_origin_name(unsigned origin);

/* Writes the table of all settings: name, value, where it came from, allowed values, help. Returns the length it has,
 * as snprintf does: more than capacity - 1 means cut off. 8 KiB are enough unless strings are long. */
size_t options_help(char *buf, size_t capacity, const struct options *options);

#endif
