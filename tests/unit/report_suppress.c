#include <criterion/criterion.h>
#include <string.h>
#include "shim/report_suppress.h"

Test(suppress, patterns_match_as_in_leak_sanitizer)
{
    cr_assert(suppression_matches("foo", "a_foo_b"));
    cr_assert(suppression_matches("foo*bar", "xfoo123barx"));
    cr_assert_not(suppression_matches("foo*bar", "bar foo"));
    cr_assert(suppression_matches("^foo", "foobar"));
    cr_assert_not(suppression_matches("^foo", "a foo"));
    cr_assert(suppression_matches("bar$", "foobar"));
    cr_assert_not(suppression_matches("bar$", "bars"));
    cr_assert(suppression_matches("^lib*.so$", "libx.so"));
    cr_assert_not(suppression_matches("^lib*.so$", "libx.so.1"));
    cr_assert(suppression_matches("*", "anything"));
    cr_assert(suppression_matches("a*b*c", "aXbbYc"));
    cr_assert_not(suppression_matches("abc", "ab"));
}

static unsigned warned;
static void warn(const char *line) { warned += strstr(line, "line 4") != NULL; }

Test(suppress, bad_lines_are_named_and_others_kept)
{
    char text[] = "# comment\n\n  leak:mine  \nnonsense\nrace:theirs\nleak:^last$";
    const char *patterns[64];
    struct suppressions all;
    suppressions_read(&all, patterns, 64, text, warn);
    cr_assert_eq(all.count - all.own, 2);
    cr_assert_str_eq(patterns[all.own], "mine");
    cr_assert_str_eq(patterns[all.own + 1], "^last$");
    cr_assert_eq(warned, 1);
}

Test(suppress, only_leaking_sites_are_hidden_and_the_sums_follow)
{
    struct report_frame frame = {.function = "keep_cache", .kind = FRAME_PROGRAM};
    struct report_site sites[2] = {{.id = 1, .frames = &frame, .frame_count = 1},
                                   {.id = 2, .frames = &frame, .frame_count = 1}};
    struct report report = {.sites = sites, .site_count = 2, .mode = "auto"};
    const char *patterns[] = {"keep_*"};
    struct suppressions all = {patterns, 1, 0};
    struct report_leaks leaks;
    sites[0].usage[BUFFER_DEVICE] = report.totals[BUFFER_DEVICE] = (struct usage){.live_bytes = 10, .live_count = 1};
    suppressions_apply(&all, &report);
    report_leaks_of(&report, &leaks);
    cr_assert_str_eq(sites[0].hidden_by, "keep_*");
    cr_assert_null(sites[1].hidden_by);
    cr_assert_eq(leaks.concealed.bytes, 10);
    cr_assert_eq(leaks.leaked.count, 0);
    cr_assert_not(report_has_news(&report));
}

Test(leaks, what_a_destroyed_context_took_along_is_leaked_and_host_blocks_are_not)
{
    struct report_site site = {.id = 1};
    struct report report = {.sites = &site, .site_count = 1, .mode = "auto"};
    struct report_leaks leaks;
    site.usage[BUFFER_HOST] = report.totals[BUFFER_HOST] = (struct usage){.live_bytes = 100, .live_count = 1};
    report_leaks_of(&report, &leaks);
    cr_assert_eq(leaks.leaked.count, 0);
    cr_assert_eq(leaks.live[BUFFER_HOST].bytes, 100);
    cr_assert_not(report_has_news(&report));
    site.usage[BUFFER_DEVICE] = report.totals[BUFFER_DEVICE] =
        (struct usage){.abandoned_bytes = 10, .abandoned_count = 2};
    report_leaks_of(&report, &leaks);
    cr_assert_eq(leaks.leaked.bytes, 10);
    cr_assert_eq(leaks.leaked.count, 2);
    cr_assert_eq(report_site_leaked(&site).bytes, 10);
    cr_assert(report_has_news(&report));
}
