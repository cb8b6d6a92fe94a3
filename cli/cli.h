/* The zcshim command: what its parts share. Messages go to stderr, answers to stdout. */
#ifndef CLI_CLI_H
#define CLI_CLI_H
#include <stdbool.h>
#include <stddef.h>
#include "cli/input.h"
#include "policy/options.h"

/* Exit codes of all commands; `run` and `record` give the program's. */
enum {
    EXIT_GOOD = 0,
    EXIT_BAD = 1 /* the answer is no */,
    EXIT_USAGE = 2,
    EXIT_TROUBLE = 3 /* could not find out */,
    EXIT_SLOWER = 4,
    EXIT_UNSTEADY = 5
};

#define COMMAND(name, usage, summary, details) int command_##name(int count, char **arguments);
#define COMMAND_OPTION(command, name, value, help)
#include "cli/commands.def"

struct command_option {
    const char *command, *name, *value, *help;
};
struct command {
    const char *name, *arguments, *summary, *details;
    int (*run)(int count, char **arguments); /* arguments[0] is the command's name */
};
extern const struct command commands[];
extern const size_t command_count;
extern const struct command_option option_list[];
extern const size_t option_list_count;

/* Prints "zcshim: ..." on stderr; gives EXIT_USAGE and EXIT_TROUBLE. */
int usage_error(const char *command, const char *format, ...) __attribute__((format(printf, 2, 3)));
int trouble(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The usage error of an option that the command does not know, or that lacks its value. */
int option_error(const char *command, const char *argument);

/* If `argument` is "--name=value" (or "-o" with its value in the next argument), the value; *at moves on past it. */
const char *option_value(const char *name, int count, char **arguments, int *at);
/* "--max-size=64K" becomes ZCSHIM_MAX_SIZE=64K in the environment. 1: it was one; 0: not a setting; -1: a bad one,
 * told. */
int setting_take(const char *command, const char *argument);

/* Takes settings and what `take` knows (it moves *at on) until the program's name; that one's index, -1 after a
 * message. */
int program_find(const char *command, int count, char **arguments, bool (*take)(int count, char **arguments, int *at));

/* Path of libzcshim.so: $ZCSHIM_LIB, beside this executable, or in ../lib/zcshim from there. NULL and a message if
 * there is none. */
const char *library_path(void);
/* Puts the library before what LD_PRELOAD has. */
bool library_preload(const char *library);
void library_unpreload(void);
/* execvp with a shell's exit codes on failure. */
int program_exec(char **arguments);

/* Opens a new file for an answer; "-" or NULL is stdout. -1 and a message if it exists or cannot be made. */
int file_create(const char *path);

char *must_format(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* Hidden behind --print: parts of man pages and completions, for the build (generate.c). */
int generate(const char *what);
void print_command_help(const struct command *command);
#endif
