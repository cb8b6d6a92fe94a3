#include "cli/cli.h"

#include <stdio.h>
#include <string.h>
#include "shim/version.h"

const struct command commands[] = {
#define COMMAND(name, arguments, summary, details) {#name, arguments, summary, details, command_##name},
#define COMMAND_OPTION(command, name, value, help)
#include "cli/commands.def"
};
const size_t command_count = sizeof commands / sizeof *commands;

const struct command_option option_list[] = {
#define COMMAND(name, arguments, summary, details)
#define COMMAND_OPTION(command, name, value, help) {#command, name, value, help},
#include "cli/commands.def"
};
const size_t option_list_count = sizeof option_list / sizeof *option_list;

/* Words of `text` in lines of at most 100 characters, each after `indent` blanks. */
static void print_wrapped(const char *text, int indent)
{
    int column = 0;
    while (*text) {
        size_t length = strcspn(text, " ");
        if (column > 0 && column + 1 + (int)length > 100) {
            putchar('\n');
            column = 0;
        }
        if (column == 0)
            column = printf("%*s", indent, "");
        else
            column += printf(" ");
        column += printf("%.*s", (int)length, text);
        text += length + strspn(text + length, " ");
    }
    putchar('\n');
}

void print_command_help(const struct command *command)
{
    bool any = false;
    printf("usage: zcshim %s %s\n\n", command->name, command->arguments);
    printf("  %s\n\n", command->summary);
    print_wrapped(command->details, 2);
    for (size_t i = 0; i < option_list_count; i++) {
        const struct command_option *option = &option_list[i];
        char name[80];
        if (strcmp(option->command, command->name) != 0) continue;
        if (!any) printf("\noptions\n");
        any = true;
        snprintf(name, sizeof name, "%s%s%s", option->name,
                 !*option->value          ? ""
                 : option->name[1] == '-' ? "="
                                          : " ",
                 option->value);
        printf("  %s\n", name);
        print_wrapped(option->help, 6);
    }
    if (strstr(command->arguments, "--SETTING")) printf("\nsettings: see zcshim options\n");
}

static void print_help(void)
{
    printf("usage: zcshim COMMAND ...\n\n");
    for (size_t i = 0; i < command_count; i++) printf("  %-10s %s\n", commands[i].name, commands[i].summary);
    printf("\nzcshim COMMAND --help tells more; so do the man pages zcshim(1) and libzcshim(7).\n"
           "Without this command: LD_PRELOAD=libzcshim.so PROGRAM, and settings as ZCSHIM_* variables.\n");
}

/* --help anywhere before the program's own arguments. */
static bool asks_for_help(int count, char **arguments)
{
    for (int i = 1; i < count && arguments[i][0] == '-' && strcmp(arguments[i], "--") != 0; i++)
        if (strcmp(arguments[i], "--help") == 0 || strcmp(arguments[i], "-h") == 0) return true;
    return false;
}

static int run_command(int count, char **arguments)
{
    if (count < 2) {
        print_help();
        return EXIT_USAGE;
    }
    const char *name = arguments[1];
    if (strcmp(name, "help") == 0 && count > 2) return run_command(3, (char *[]){arguments[0], arguments[2], "--help"});
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0 || strcmp(name, "help") == 0)
        return print_help(), EXIT_GOOD;
    if (strcmp(name, "--version") == 0) return printf("zcshim %s\n", ZCSHIM_VERSION), EXIT_GOOD;
    if (strcmp(name, "--print") == 0 && count == 3) return generate(arguments[2]);
    for (size_t i = 0; i < command_count; i++) {
        if (strcmp(commands[i].name, name) != 0) continue;
        if (asks_for_help(count - 1, arguments + 1)) return print_command_help(&commands[i]), EXIT_GOOD;
        return commands[i].run(count - 1, arguments + 1);
    }
    fprintf(stderr, "zcshim: there is no command \"%s\"; zcshim --help lists them\n", name);
    return EXIT_USAGE;
}

int main(int count, char **arguments)
{
    int code = run_command(count, arguments);
    bool lost = ferror(stdout);
    return fflush(stdout) != 0 || lost ? trouble("stdout: the answer could not be written") : code;
}
