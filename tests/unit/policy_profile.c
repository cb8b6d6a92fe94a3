/* policy/profile: text that reads back, is sorted, and is refused when torn; merging of runs. */
#include <criterion/criterion.h>
#include <string.h>

#include "policy/profile.h"

static struct profile_entry entry(const char *key, enum earn_place place, const char *reason)
{
    struct profile_entry entry = {
        .key = key, .key_length = strlen(key), .bytes = 4096, .reason = reason, .reason_length = strlen(reason)};
    entry.past = (struct earn_past){place, 2, 24900, 13500, 800000};
    return entry;
}

static const struct profile_entry *find(const struct profile *profile, const char *key)
{
    return profile_find(profile, key, strlen(key));
}

Test(policy_profile, keys_name_modules_and_offsets)
{
    char key[128];
    struct profile_frame frames[] = {{"3fa0", 0x1a2b}, {"my app,1", 0xff}};
    cr_assert_eq(profile_key(key, sizeof key, frames, 2), strlen(key));
    cr_assert_str_eq(key, "3fa0+1a2b,my_app_1+ff");
}

Test(policy_profile, what_is_written_reads_back_sorted_and_the_same)
{
    struct profile_entry room[8], again_room[8];
    struct profile profile = profile_on(room, 8), again = profile_on(again_room, 8);
    char text[4096], text_again[4096], error[256] = "";
    struct profile_entry c = entry("c+1", EARN_HOST, "its loop is faster on the host");
    struct profile_entry a = entry("a+1", EARN_DEVICE, "");
    struct profile_entry b = entry("a+1,b+2", EARN_DEVICE, "slower on the host");
    b.marks = PROFILE_IPC | PROFILE_SPARSE;
    cr_assert(profile_merge(&profile, &c, true));
    cr_assert(profile_merge(&profile, &b, true));
    cr_assert(profile_merge(&profile, &a, true));
    size_t length = profile_format(text, sizeof text, &profile);
    cr_assert_eq(length, strlen(text));
    cr_assert(profile_parse(&again, text, length, error, sizeof error), "%s", error);
    profile_format(text_again, sizeof text_again, &again);
    cr_assert_str_eq(text, text_again);
    cr_assert_eq(again.count, 3);
    cr_assert(strstr(text, "\na+1 ") < strstr(text, "\na+1,b+2 "));
    cr_assert(strstr(text, "\na+1,b+2 ") < strstr(text, "\nc+1 "));
    cr_assert_eq(find(&again, "c+1")->past.place, EARN_HOST);
    cr_assert_float_eq(find(&again, "c+1")->past.device_ns, 24900, 0.5);
    cr_assert_eq(find(&again, "a+1,b+2")->marks, PROFILE_IPC | PROFILE_SPARSE);
    cr_assert_eq(find(&again, "a+1,b+2")->past.failures, 2);
    cr_assert_null(find(&again, "b"));
}

Test(policy_profile, every_torn_copy_of_a_file_is_ignored)
{
    struct profile_entry room[8];
    struct profile profile = profile_on(room, 8);
    char text[4096], error[256];
    struct profile_entry a = entry("a+1", EARN_HOST, "why"), b = entry("b+1", EARN_HOST, "why");
    profile_merge(&profile, &a, true);
    profile_merge(&profile, &b, true);
    size_t length = profile_format(text, sizeof text, &profile);
    for (size_t cut = 0; cut + 1 < length; cut++) {
        error[0] = '\0';
        cr_assert(!profile_parse(&profile, text, cut, error, sizeof error), "cut at %zu", cut);
        cr_assert_eq(profile.count, 0);
        cr_assert_neq(error[0], '\0');
        cr_assert_null(strchr(error, '\n'));
    }
}

Test(policy_profile, a_broken_line_is_named)
{
    static const struct {
        const char *text, *said;
    } cases[] = {
        {"hello\n", "line 1: not a profile"},
        {"zcshim-profile 2\nend 0\n", "line 1: another version"},
        {"zcshim-profile 1\na+1 place=moon\nend 1\n", "line 2: unknown name or bad value"},
        {"zcshim-profile 1\na+1 failures=1\nend 1\n", "line 2: no place"},
        {"zcshim-profile 1\na+1 place=host failures=x\nend 1\n", "line 2"},
        {"zcshim-profile 1\na+1 place=host marks=odd\nend 1\n", "line 2"},
        {"zcshim-profile 1\na+1 place\nend 1\n", "line 2: not NAME=VALUE"},
        {"zcshim-profile 1\na+1 place=host\nend 2\n", "line 3: another number"},
        {"zcshim-profile 1\na+1 place=host\nb+1 place=host\nend 2\n", "more sites than"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct profile_entry room[1];
        struct profile profile = profile_on(room, 1);
        char error[256] = "";
        cr_assert(!profile_parse(&profile, cases[i].text, strlen(cases[i].text), error, sizeof error));
        cr_assert(strstr(error, cases[i].said), "%s", error);
    }
}

Test(policy_profile, a_second_run_that_decided_replaces_and_marks_add_up)
{
    struct profile_entry room[4];
    struct profile profile = profile_on(room, 4);
    struct profile_entry first = entry("a+1", EARN_DEVICE, "too few copies yet"),
                         second = entry("a+1", EARN_HOST, "faster");
    first.marks = PROFILE_FIXED;
    second.marks = PROFILE_SPARSE;
    second.bytes = 100;
    profile_merge(&profile, &first, false);
    profile_merge(&profile, &second, true);
    const struct profile_entry *now = find(&profile, "a+1");
    cr_assert_eq(profile.count, 1);
    cr_assert_eq(now->past.place, EARN_HOST);
    cr_assert_eq(now->marks, PROFILE_FIXED | PROFILE_SPARSE);
    cr_assert_eq(now->runs, 2);
    cr_assert_eq(now->bytes, 4096);
}

Test(policy_profile, a_run_that_learned_nothing_keeps_what_was_known)
{
    struct profile_entry room[4];
    struct profile profile = profile_on(room, 4);
    struct profile_entry first = entry("a+1", EARN_HOST, "faster"),
                         second = entry("a+1", EARN_DEVICE, "too few copies yet");
    profile_merge(&profile, &first, true);
    profile_merge(&profile, &second, false);
    cr_assert_eq(find(&profile, "a+1")->past.place, EARN_HOST);
    cr_assert_arr_eq(find(&profile, "a+1")->reason, "faster", 6);
}

Test(policy_profile, sites_that_no_run_uses_are_dropped_in_the_end)
{
    struct profile_entry room[4];
    struct profile profile = profile_on(room, 4);
    struct profile_entry old = entry("a+1", EARN_HOST, ""), used = entry("b+1", EARN_HOST, "");
    profile_merge(&profile, &old, true);
    for (int run = 0; run < PROFILE_AGE_MOST + 1; run++) {
        cr_assert_not_null(find(&profile, "a+1"), "run %d", run);
        profile_grow_old(&profile);
        profile_merge(&profile, &used, true);
    }
    cr_assert_null(find(&profile, "a+1"));
    cr_assert_eq(find(&profile, "b+1")->age, 0);
}

Test(policy_profile, a_full_profile_says_so)
{
    struct profile_entry room[1];
    struct profile profile = profile_on(room, 1);
    struct profile_entry a = entry("a", EARN_HOST, ""), b = entry("b", EARN_HOST, "");
    cr_assert(profile_merge(&profile, &a, true));
    cr_assert(!profile_merge(&profile, &b, true));
    cr_assert(profile_merge(&profile, &a, true));
}
