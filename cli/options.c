#include "cli/cli.h"

#include <stdio.h>
#include <string.h>

extern char **environ;

static void warn(void *ctx, const char *line)
{
    fprintf(stderr, "zcshim: %s\n", line);
    *(bool *)ctx = true;
}

int command_options(int count, char **arguments)
{
    static char text[32768];
    struct options options;
    bool warned = false;
    for (int i = 1; i < count; i++) {
        int taken = setting_take("options", arguments[i]);
        if (taken == 0) option_error("options", arguments[i]);
        if (taken <= 0) return EXIT_USAGE;
    }
    options_parse(&options, environ, warn, &warned);
    if (*options.config) {
        size_t length;
        char *file = file_read(options.config, &length);
        if (!file) return EXIT_TROUBLE;
        options_parse_text(&options, file, warn, &warned);
    }
    options_help(text, sizeof text, &options);
    fputs(text, stdout);
    return warned ? EXIT_BAD : EXIT_GOOD;
}
