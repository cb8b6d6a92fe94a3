/* Parts of the man pages and the shell completions, from the tables: zcshim --print WHAT, called by the build. */
#include <ctype.h>
#include <stdio.h>
#include <string.h>
#include "cli/cli.h"

static void put_roff(const char *text)
{
    bool start = true;
    for (; *text; text++) {
        if (start && (*text == '.' || *text == '\'')) fputs("\\&", stdout);
        if (*text == '-')
            fputs("\\-", stdout);
        else if (*text == '\\')
            fputs("\\e", stdout);
        else
            putchar(*text);
        start = *text == '\n';
    }
}

static void put_item(const char *name, const char *value, const char *separator)
{
    fputs(".TP\n.B ", stdout);
    put_roff(name);
    if (*value) {
        fputs("\\fR", stdout);
        fputs(separator, stdout);
        fputs("\\fI", stdout);
        put_roff(value);
        fputs("\\fR", stdout);
    }
    putchar('\n');
}

static void man_commands(void)
{
    for (size_t i = 0; i < command_count; i++) {
        const struct command *command = &commands[i];
        fputs(".SS zcshim ", stdout);
        put_roff(command->name);
        fputs(" ", stdout);
        put_roff(command->arguments);
        putchar('\n');
        putchar(toupper((unsigned char)command->summary[0]));
        put_roff(command->summary + 1);
        fputs(command->summary[strlen(command->summary) - 1] == '?' ? "\n.PP\n" : ".\n.PP\n", stdout);
        put_roff(command->details);
        putchar('\n');
        for (size_t j = 0; j < option_list_count; j++) {
            const struct command_option *option = &option_list[j];
            if (strcmp(option->command, command->name) != 0) continue;
            put_item(option->name, option->value, option->name[1] == '-' ? "=" : " ");
            put_roff(option->help);
            putchar('\n');
        }
    }
}

static void man_settings(void)
{
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        char name[80], range[256];
        snprintf(name, sizeof name, "ZCSHIM_%s", options_table[i].name);
        options_range(range, sizeof range, i);
        put_item(name, range, "=");
        put_roff(options_table[i].help);
        if (*options_table[i].default_text) {
            fputs(" (default: ", stdout);
            put_roff(options_table[i].default_text);
            fputs(")", stdout);
        }
        fputs("\n", stdout);
    }
}

/* "--max-size" of MAX_SIZE. */
static void put_setting(unsigned index)
{
    fputs("--", stdout);
    for (const char *at = options_table[index].name; *at; at++) putchar(*at == '_' ? '-' : tolower((unsigned char)*at));
}

static bool takes_settings(const struct command *command) { return strstr(command->arguments, "--SETTING") != NULL; }

static bool has_words(unsigned index)
{
    return options_table[index].kind == OPTION_CHOICE || options_table[index].kind == OPTION_SWITCH;
}

static void put_words(const char *words)
{
    for (; *words; words++) putchar(*words == '|' ? ' ' : *words);
}

static void bash_values(void)
{
    printf("    case \"$word\" in\n");
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        if (!has_words(i)) continue;
        fputs("    ", stdout);
        put_setting(i);
        fputs(") values=\"", stdout);
        put_words(options_table[i].kind == OPTION_SWITCH ? "on|off" : options_table[i].words);
        fputs("\" ;;\n", stdout);
    }
    for (size_t j = 0; j < option_list_count; j++) {
        if (!strchr(option_list[j].value, '|')) continue;
        printf("    %s) values=\"", option_list[j].name);
        put_words(option_list[j].value);
        fputs("\" ;;\n", stdout);
    }
    printf("    esac\n");
}

static void bash_completion(void)
{
    printf("# bash completion of zcshim, made from its tables\n"
           "_zcshim()\n{\n"
           "    local current=${COMP_WORDS[COMP_CWORD]} word values= command= i options=\n"
           "    COMPREPLY=()\n"
           "    if [ \"$COMP_CWORD\" -eq 1 ]; then\n"
           "        COMPREPLY=($(compgen -W \"");
    for (size_t i = 0; i < command_count; i++) printf("%s ", commands[i].name);
    printf("--help --version\" -- \"$current\"))\n"
           "        return\n"
           "    fi\n"
           "    command=${COMP_WORDS[1]}\n"
           "    # readline takes = as a word of its own\n"
           "    word=${COMP_WORDS[COMP_CWORD-1]}\n"
           "    if [ \"$current\" = \"=\" ]; then current=; else if [ \"$word\" = \"=\" ]; then "
           "word=${COMP_WORDS[COMP_CWORD-2]}; fi; fi\n");
    bash_values();
    printf("    if [ -n \"$values\" ]; then COMPREPLY=($(compgen -W \"$values\" -- \"$current\")); return; fi\n"
           "    case \"$command\" in\n");
    for (size_t i = 0; i < command_count; i++) {
        printf("    %s) options=\"", commands[i].name);
        for (size_t j = 0; j < option_list_count; j++)
            if (strcmp(option_list[j].command, commands[i].name) == 0)
                printf("%s%s ", option_list[j].name, *option_list[j].value && option_list[j].name[1] == '-' ? "=" : "");
        for (unsigned j = 0; takes_settings(&commands[i]) && j < OPTION_COUNT; j++) put_setting(j), printf("= ");
        printf("--help\" ;;\n");
    }
    printf(
        "    esac\n"
        "    case \"$current\" in\n"
        "    -*) COMPREPLY=($(compgen -W \"$options\" -- \"$current\"))\n"
        "        [[ ${COMPREPLY[0]} == *= ]] && compopt -o nospace ;;\n"
        "    *) case \"$command\" in\n"
        "        run|check|record|doctor) COMPREPLY=($(compgen -c -- \"$current\") $(compgen -f -- \"$current\")) ;;\n"
        "        *) COMPREPLY=($(compgen -f -- \"$current\")) ;;\n"
        "        esac ;;\n"
        "    esac\n"
        "}\n"
        "complete -o filenames -F _zcshim zcshim\n");
}

/* What stands between brackets or colons in zsh's descriptions. */
static void put_zsh(const char *text)
{
    for (; *text; text++) {
        if (strchr("[]:'\\", *text)) {
            if (*text == '\'')
                fputs("'\\''", stdout);
            else
                printf("\\%c", *text);
        } else {
            putchar(*text);
        }
    }
}

static void zsh_setting(unsigned index)
{
    fputs("            '", stdout);
    put_setting(index);
    fputs("=[", stdout);
    put_zsh(options_table[index].help);
    fputs("]:value:", stdout);
    if (has_words(index)) {
        putchar('(');
        put_words(options_table[index].kind == OPTION_SWITCH ? "on|off" : options_table[index].words);
        putchar(')');
    } else if (options_table[index].kind == OPTION_STRING) {
        fputs("_files", stdout);
    }
    fputs("'\n", stdout);
}

static void zsh_completion(void)
{
    printf("#compdef zcshim\n# zsh completion of zcshim, made from its tables\n"
           "_zcshim()\n{\n    local -a commands options\n    commands=(\n");
    for (size_t i = 0; i < command_count; i++) {
        printf("        '%s:", commands[i].name);
        put_zsh(commands[i].summary);
        printf("'\n");
    }
    printf("    )\n    if (( CURRENT == 2 )); then _describe command commands; return; fi\n"
           "    case $words[2] in\n");
    for (size_t i = 0; i < command_count; i++) {
        bool runs = strstr(commands[i].arguments, "PROGRAM") != NULL;
        printf("    %s)\n        options=(\n            '--help[tell more]'\n", commands[i].name);
        for (size_t j = 0; j < option_list_count; j++) {
            const struct command_option *option = &option_list[j];
            if (strcmp(option->command, commands[i].name) != 0) continue;
            printf("            '%s%s[", option->name, !*option->value ? "" : option->name[1] == '-' ? "=" : "+");
            put_zsh(option->help);
            printf("]");
            if (*option->value) {
                printf(":value:");
                if (strchr(option->value, '|'))
                    putchar('('), put_words(option->value), putchar(')');
                else if (strcmp(option->value, "FILE") == 0 || strcmp(option->value, "FOLDER") == 0)
                    printf("_files");
            }
            printf("'\n");
        }
        for (unsigned j = 0; takes_settings(&commands[i]) && j < OPTION_COUNT; j++) zsh_setting(j);
        printf("            '%s'\n        )\n        ;;\n", runs ? "*::program:_normal" : "*:report:_files");
    }
    printf("    esac\n    shift words; (( CURRENT-- ))\n    _arguments -S $options\n}\n_zcshim \"$@\"\n");
}

int generate(const char *what)
{
    static const struct {
        const char *what;
        void (*print)(void);
    } parts[] = {{"man-commands", man_commands},
                 {"man-settings", man_settings},
                 {"bash", bash_completion},
                 {"zsh", zsh_completion}};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++)
        if (strcmp(parts[i].what, what) == 0) return parts[i].print(), EXIT_GOOD;
    return trouble("nothing is printed for \"%s\"", what);
}
