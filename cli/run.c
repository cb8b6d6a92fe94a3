/* run and record: the program takes this process's place. */
#include "cli/cli.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int run_program(char **arguments)
{
    const char *library = library_path();
    if (!library || !library_preload(library)) return EXIT_TROUBLE;
    return program_exec(arguments);
}

int command_run(int count, char **arguments)
{
    int at = program_find("run", count, arguments, NULL);
    return at < 0 ? EXIT_USAGE : run_program(arguments + at);
}

static struct {
    const char *profile;
    bool update;
} record;

static bool record_take(int count, char **arguments, int *at)
{
    const char *value = option_value("-o", count, arguments, at);
    if (value) return record.profile = value, true;
    if (strcmp(arguments[*at], "--update") == 0) return record.update = true, ++*at, true;
    return false;
}

/* Before the program runs for hours: can the profile be written there? */
static bool can_write_beside(const char *path)
{
    const char *slash = strrchr(path, '/');
    char *folder = slash ? must_format("%.*s/", (int)(slash - path), path) : must_format(".");
    if (access(folder, W_OK | X_OK) == 0) return true;
    trouble("%s cannot be written: %s: %s", path, folder, strerror(errno));
    return false;
}

int command_record(int count, char **arguments)
{
    int at = program_find("record", count, arguments, record_take);
    if (at < 0) return EXIT_USAGE;
    if (!record.profile) return usage_error("record", "where to? -o FILE");
    struct stat status;
    if (lstat(record.profile, &status) == 0) {
        if (!S_ISREG(status.st_mode)) return trouble("%s is no file that a profile can replace", record.profile);
        if (!record.update) return trouble("%s exists; --update goes on from it", record.profile);
    }
    if (!can_write_beside(record.profile)) return EXIT_TROUBLE;
    setenv("ZCSHIM_PROFILE", record.profile, 1);
    return run_program(arguments + at);
}
