/* Files of the user's: where relative names lead, and what is never replaced. */
#include <criterion/criterion.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "shim/file.h"

static char folder[] = "/tmp/zcshim-file-XXXXXX";

static void start(void)
{
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(chdir(folder), 0);
    file_start();
}

static void end(void)
{
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    cr_assert_eq(system(command), 0);
}

TestSuite(file, .init = start, .fini = end);

Test(file, relative_names_are_meant_from_the_folder_of_the_start)
{
    size_t length;
    cr_assert_eq(chdir("/"), 0);
    cr_assert(file_replace("new", "text", 4));
    cr_assert(file_exists("new"));
    char *text = file_read("new", 100, &length);
    cr_assert_not_null(text);
    cr_assert_str_eq(text, "text");
    cr_assert_eq(chdir(folder), 0);
    cr_assert_eq(access("new", F_OK), 0);
}

Test(file, nothing_but_a_regular_file_is_replaced)
{
    struct stat status;
    cr_assert_eq(symlink("elsewhere", "link"), 0);
    cr_assert_eq(mkfifo("pipe", 0600), 0);
    errno = EDOM;
    cr_assert(!file_replace("link", "text", 4));
    cr_assert(!file_replace("pipe", "text", 4));
    cr_assert_eq(errno, EDOM);
    cr_assert(file_exists("link"), "a dangling link is there, too");
    cr_assert(lstat("link", &status) == 0 && S_ISLNK(status.st_mode));
    cr_assert(lstat("pipe", &status) == 0 && S_ISFIFO(status.st_mode));
}
