/* policy/options: every setting once, defaults, warnings, where a value came from. */
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "policy/options.h"

struct lines {
    unsigned count;
    char last[600];
};

static void keep(void *ctx, const char *line)
{
    struct lines *lines = ctx;
    lines->count++;
    snprintf(lines->last, sizeof lines->last, "%s", line);
}

static struct options parse(char *const *envp, struct lines *lines)
{
    struct options options;
    memset(lines, 0, sizeof *lines);
    options_parse(&options, envp, keep, lines);
    return options;
}

Test(policy_options, defaults_are_those_of_the_table)
{
    struct options options;
    options_default(&options);
    cr_assert_eq(options.mode, MODE_AUTO);
    cr_assert_eq(options.max_size, 64 << 10);
    cr_assert_eq(options.window_limit, 256 << 20);
    cr_assert_eq(options.pin_limit, 0);
    cr_assert(options.host);
    cr_assert_eq(options.host_min, 4 << 20);
    cr_assert_eq(options.copy_threads, -1);
    cr_assert_eq(options.log, OPTION_LOG_QUIET);
    cr_assert_str_eq(options.report, "");
    cr_assert_eq(options.report_format, REPORT_FORMAT_TEXT);
    cr_assert_eq(options.stress_moves, 0);
    cr_assert_float_eq(options.regret, 0.02, 1e-12);
    cr_assert(!options.spill);
    cr_assert(options.follow);
    cr_assert_eq(options.site_depth, 16);
    cr_assert_eq(options.leak_exit, 0);
}

Test(policy_options, every_default_parses_and_prints_back_as_itself)
{
    struct options options;
    char value[64];
    options_default(&options);
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        options_value(value, sizeof value, &options, i);
        cr_assert_str_eq(value, options_table[i].default_text, "%s", options_table[i].name);
        cr_assert_eq(options.origin[i], OPTION_FROM_DEFAULT);
    }
}

Test(policy_options, words_of_choices_are_in_the_order_of_their_enums)
{
    struct lines lines;
    char *const off[] = {"ZCSHIM_MODE=off", "ZCSHIM_LOG=debug", "ZCSHIM_REPORT_FORMAT=json", NULL};
    struct options options = parse(off, &lines);
    cr_assert_eq(options.mode, MODE_OFF);
    cr_assert_eq(options.log, OPTION_LOG_DEBUG);
    cr_assert_eq(options.report_format, REPORT_FORMAT_JSON);
    char *const others[] = {"ZCSHIM_MODE=Always", "ZCSHIM_LOG=INFO", NULL};
    options = parse(others, &lines);
    cr_assert_eq(options.mode, MODE_ALWAYS);
    cr_assert_eq(options.log, OPTION_LOG_INFO);
    cr_assert_eq(lines.count, 0);
}

Test(policy_options, values_of_every_kind_are_read)
{
    struct lines lines;
    char *const envp[] = {"PATH=/bin",
                          "ZCSHIM_MAX_SIZE=16KiB",
                          "ZCSHIM_PIN_LIMIT=2g",
                          "ZCSHIM_COPY_THREADS=4",
                          "ZCSHIM_REGRET=0.5%",
                          "ZCSHIM_HOST=off",
                          "ZCSHIM_FOLLOW=0",
                          "ZCSHIM_STRESS_MOVES=18446744073709551615",
                          "ZCSHIM_REPORT=/x/%p",
                          "ZCSHIM_WINDOW_LIMIT=0",
                          "ZCSHIM_SPILL=yes",
                          "ZCSIM_DEVICES=2",
                          NULL};
    struct options options = parse(envp, &lines);
    cr_assert_eq(lines.count, 0, "%s", lines.last);
    cr_assert_eq(options.max_size, 16384);
    cr_assert_eq(options.pin_limit, 2ull << 30);
    cr_assert_eq(options.copy_threads, 4);
    cr_assert_float_eq(options.regret, 0.005, 1e-12);
    cr_assert(!options.host);
    cr_assert(!options.follow);
    cr_assert_eq(options.stress_moves, UINT64_MAX);
    cr_assert_str_eq(options.report, "/x/%p");
    cr_assert_eq(options.window_limit, 0);
    cr_assert(options.spill);
    cr_assert_eq(options.origin[OPTION_INDEX_REPORT], OPTION_FROM_ENVIRONMENT);
    cr_assert_eq(options.origin[OPTION_INDEX_MODE], OPTION_FROM_DEFAULT);
}

Test(policy_options, unknown_names_warn_with_the_nearest)
{
    struct lines lines;
    char *const near[] = {"ZCSHIM_MOED=always", NULL};
    parse(near, &lines);
    cr_assert_eq(lines.count, 1);
    cr_assert_str_eq(lines.last, "ZCSHIM_MOED: no such setting; did you mean ZCSHIM_MODE?");
    char *const far[] = {"ZCSHIM_COMPLETELY_OTHER=1", NULL};
    parse(far, &lines);
    cr_assert_eq(lines.count, 1);
    cr_assert(strstr(lines.last, "ZCSHIM_HELP=1"));
    char *const short_name[] = {"ZCSHIM_FOO=1", NULL};
    parse(short_name, &lines);
    cr_assert(strstr(lines.last, "ZCSHIM_HELP=1"), "two of three letters are no typing error");
}

Test(policy_options, a_switch_word_for_the_report_is_no_path)
{
    struct lines lines;
    char *const one[] = {"ZCSHIM_REPORT=1", NULL}, *const no[] = {"ZCSHIM_REPORT=No", NULL};
    cr_assert_str_eq(parse(one, &lines).report, "on");
    cr_assert_str_eq(parse(no, &lines).report, "off");
}

Test(policy_options, bad_values_warn_and_keep_the_default)
{
    static const struct {
        const char *line, *said;
    } cases[] = {
        {"ZCSHIM_MAX_SIZE=64Q", "ZCSHIM_MAX_SIZE=64Q: not a size (like 512, 64K, 4M, 1G); allowed: 0..2M; keeping 64K"},
        {"ZCSHIM_MAX_SIZE=3M", "out of range"},
        {"ZCSHIM_MAX_SIZE=99999999999999999999", "not a size"},
        {"ZCSHIM_LEAK_EXIT=256", "allowed: 0..255; keeping 0"},
        {"ZCSHIM_LEAK_EXIT=-1", "not a whole number"},
        {"ZCSHIM_MODE=fast", "no such choice; allowed: auto|always|observe|off; keeping auto"},
        {"ZCSHIM_HOST=maybe", "neither on nor off"},
        {"ZCSHIM_REGRET=101%", "out of range"},
        {"ZCSHIM_REGRET=%", "not a percentage"},
        {"ZCSHIM_SITE_DEPTH=0", "out of range"},
        {"ZCSHIM_HOST_MIN=1K", "allowed: 64K..1T"},
        {"ZCSHIM_COPY_THREADS=65", "0..64 or auto; keeping auto"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct lines lines;
        struct options options, defaults;
        char *const envp[] = {(char *)cases[i].line, NULL};
        options = parse(envp, &lines);
        options_default(&defaults);
        cr_assert_eq(lines.count, 1, "%s", cases[i].line);
        cr_assert(strstr(lines.last, cases[i].said), "%s -> %s", cases[i].line, lines.last);
        cr_assert_arr_eq(&options, &defaults, sizeof options, "%s", cases[i].line);
    }
}

Test(policy_options, an_empty_value_means_the_default)
{
    struct lines lines;
    char *const envp[] = {"ZCSHIM_MODE=", "ZCSHIM_MAX_SIZE=", NULL};
    struct options options = parse(envp, &lines);
    cr_assert_eq(lines.count, 0);
    cr_assert_eq(options.mode, MODE_AUTO);
    cr_assert_eq(options.max_size, 64 << 10);
}

Test(policy_options, the_environment_wins_over_the_file)
{
    struct lines lines;
    char *const envp[] = {"ZCSHIM_MODE=always", "ZCSHIM_CONFIG=/etc/zcshim.conf", NULL};
    char text[] = "# settings\n\n  mode = observe\r\nZCSHIM_MAX_SIZE=4K\n zcshim_report = /tmp/with blanks \nno "
                  "equals\nMODUS=1\nLOG=info";
    struct options options = parse(envp, &lines);
    cr_assert_str_eq(options.config, "/etc/zcshim.conf");
    options_parse_text(&options, text, keep, &lines);
    cr_assert_eq(options.mode, MODE_ALWAYS);
    cr_assert_eq(options.max_size, 4096);
    cr_assert_eq(options.origin[OPTION_INDEX_MAX_SIZE], OPTION_FROM_FILE);
    cr_assert_str_eq(options.report, "/tmp/with blanks");
    cr_assert_eq(options.log, OPTION_LOG_INFO);
    cr_assert_eq(lines.count, 2);
    cr_assert_str_eq(lines.last, "settings file, line 7: ZCSHIM_MODUS: no such setting; did you mean ZCSHIM_MODE?");
}

Test(policy_options, help_names_every_setting_its_value_and_its_origin)
{
    static char help[16384];
    struct lines lines;
    char *const envp[] = {"ZCSHIM_MAX_SIZE=8K", NULL};
    struct options options = parse(envp, &lines);
    size_t length = options_help(help, sizeof help, &options);
    cr_assert_lt(length, 8192);
    cr_assert_eq(length, strlen(help));
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        char name[64];
        snprintf(name, sizeof name, "ZCSHIM_%s ", options_table[i].name);
        cr_assert(strstr(help, name), "%s", name);
        cr_assert(strstr(help, options_table[i].help));
    }
    cr_assert(strstr(help, "ZCSHIM_MAX_SIZE        8K             environment"));
    cr_assert_eq(options_help(help, 100, &options), length);
    cr_assert_eq(strlen(help), 99);
}

Test(policy_options, names_are_found_in_any_case)
{
    cr_assert_eq(options_find("max_size", 8), OPTION_INDEX_MAX_SIZE);
    cr_assert_eq(options_find("MAX_SIZE", 8), OPTION_INDEX_MAX_SIZE);
    cr_assert_eq(options_find("MAX_SIZ", 7), -1);
}
