/* policy/rules: first match wins; errors name line and column. */
#include <criterion/criterion.h>
#include <string.h>

#include "policy/rules.h"

static struct rules parse(const char *text)
{
    struct rules rules;
    char error[256] = "";
    cr_assert(rules_parse(&rules, text, strlen(text), error, sizeof error), "%s", error);
    return rules;
}

static enum rule_place place(const struct rules *rules, const char *site, uint64_t bytes, const char *kernel)
{
    const struct rule *rule = rules_match(rules, site, bytes, kernel);
    return rule ? rule->place : RULE_AUTO;
}

Test(policy_rules, the_first_that_matches_wins)
{
    struct rules rules = parse("site=*lut* place=device\nsize=..4K place=host\nsite=* place=device\n");
    cr_assert_eq(rules.count, 3);
    cr_assert_eq(place(&rules, "app+make_lut", 1024, NULL), RULE_DEVICE);
    cr_assert_eq(place(&rules, "app+main", 1024, NULL), RULE_HOST);
    cr_assert_eq(place(&rules, "app+main", 4097, NULL), RULE_DEVICE);
    cr_assert_eq(rules_match(&rules, "app+main", 1024, NULL)->line, 2);
}

Test(policy_rules, sizes_are_exact_or_ranges_with_both_ends_in)
{
    struct rules rules = parse("size=64 place=host; size=1K..2K place=host; size=1M.. place=host");
    cr_assert_eq(place(&rules, "x", 63, NULL), RULE_AUTO);
    cr_assert_eq(place(&rules, "x", 64, NULL), RULE_HOST);
    cr_assert_eq(place(&rules, "x", 65, NULL), RULE_AUTO);
    cr_assert_eq(place(&rules, "x", 1024, NULL), RULE_HOST);
    cr_assert_eq(place(&rules, "x", 2048, NULL), RULE_HOST);
    cr_assert_eq(place(&rules, "x", 2049, NULL), RULE_AUTO);
    cr_assert_eq(place(&rules, "x", UINT64_MAX, NULL), RULE_HOST);
}

Test(policy_rules, kernels_count_only_when_one_is_named)
{
    struct rules rules = parse("kernel=histogram* place=device\nsite=* place=host");
    cr_assert(rules.by_kernel);
    cr_assert(rules.by_site);
    cr_assert_eq(place(&rules, "x", 64, NULL), RULE_HOST);
    cr_assert_eq(place(&rules, "x", 64, "histogram_local"), RULE_DEVICE);
    cr_assert_eq(place(&rules, "x", 64, "saxpy"), RULE_HOST);
}

Test(policy_rules, an_unknown_site_matches_no_site_pattern)
{
    struct rules rules = parse("site=* place=host");
    cr_assert_null(rules_match(&rules, NULL, 64, NULL));
}

Test(policy_rules, patterns_may_be_quoted)
{
    struct rules rules =
        parse("site='operator new(unsigned long); #x' place=host # a comment\nsite=\"a'b\" place=device");
    cr_assert_eq(place(&rules, "operator new(unsigned long); #x", 8, NULL), RULE_HOST);
    cr_assert_eq(place(&rules, "a'b", 8, NULL), RULE_DEVICE);
}

Test(policy_rules, globs_have_stars_and_question_marks)
{
    struct rules rules = parse("site=a*b?c place=host");
    cr_assert_eq(place(&rules, "abxc", 1, NULL), RULE_HOST);
    cr_assert_eq(place(&rules, "a...b..b.c", 1, NULL), RULE_HOST);
    cr_assert_eq(place(&rules, "abc", 1, NULL), RULE_AUTO);
    cr_assert_eq(place(&rules, "", 1, NULL), RULE_AUTO);
}

Test(policy_rules, empty_text_comments_and_blank_rules_are_no_rules)
{
    cr_assert_eq(parse("").count, 0);
    cr_assert_eq(parse("\n  # nothing\n;;\n\t\r\n").count, 0);
}

Test(policy_rules, errors_name_line_and_column)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"site=* place=hots", "line 1, column 14: place is host, device or auto"},
        {"# one\nsize=4X place=host", "line 2, column 6: not a size or range"},
        {"size=8K..4K place=host", "column 6: not a size"},
        {"size=.. place=host", "column 6: not a size"},
        {"place=host", "line 1, column 1: rule without site="},
        {"  site=*", "line 1, column 3: rule without place="},
        {"site=* place=host; seit=* place=host", "line 1, column 20: unknown word"},
        {"site= place=host", "column 6: empty pattern"},
        {"site place=host", "column 1: not NAME=VALUE"},
        {"\n\nsite='x place=host", "line 3, column 6: quote without an end"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct rules rules;
        char error[256] = "";
        cr_assert(!rules_parse(&rules, cases[i].text, strlen(cases[i].text), error, sizeof error), "%s", cases[i].text);
        cr_assert(strstr(error, cases[i].said), "%s -> %s", cases[i].text, error);
        cr_assert_eq(rules.count, 0);
    }
}

Test(policy_rules, more_rules_than_there_is_room_for_are_refused)
{
    char text[RULES_MOST * 20 + 100] = "", error[256] = "";
    struct rules rules;
    for (int i = 0; i <= RULES_MOST; i++) strcat(text, "size=1 place=host\n");
    cr_assert(!rules_parse(&rules, text, strlen(text), error, sizeof error));
    cr_assert(strstr(error, "line 129"), "%s", error);
}
