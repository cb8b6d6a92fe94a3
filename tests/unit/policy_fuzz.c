/* Every parser of policy/ on random and on damaged text: no crash (run with SAN=asan), and nothing is read past the
 * end. */
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "policy/cost.h"
#include "policy/options.h"
#include "policy/profile.h"
#include "policy/rules.h"

enum { ROUNDS = 20000, LONGEST = 600 };

static uint64_t state;

static unsigned next(unsigned count)
{
    state = state * 6364136223846793005ull + 1442695040888963407ull;
    return (unsigned)(state >> 33) % count;
}

/* Random bytes, or a piece of `sample` with some bytes changed, in a block of exactly its size. */
static char *make(const char *sample, size_t *length)
{
    static const char alphabet[] = "=:;#'\"* ?.,\n\r\t0123456789KMGT%-+abcshimzplt_\\\xff";
    size_t sample_length = strlen(sample), start = 0;
    bool random = next(3) == 0;
    *length = random ? next(LONGEST) : next((unsigned)sample_length + 1);
    if (!random && next(4) == 0) start = next((unsigned)(sample_length - *length) + 1);
    char *text = malloc(*length ? *length : 1);
    for (size_t i = 0; i < *length; i++) text[i] = random ? alphabet[next(sizeof alphabet - 1)] : sample[start + i];
    for (unsigned changes = random ? 0 : next(6); changes && *length; changes--)
        text[next((unsigned)*length)] = next(8) ? alphabet[next(sizeof alphabet - 1)] : (char)next(256);
    text = realloc(text, *length ? *length : 1);
    return text;
}

Test(policy_fuzz, calibration)
{
    state = 1;
    static char sample[4096];
    struct cost cost;
    cost_default(&cost);
    cost_format(sample, sizeof sample, &cost, "GPU");
    for (int i = 0; i < ROUNDS; i++) {
        size_t length;
        char error[64], *text = make(sample, &length);
        if (!cost_parse(&cost, text, length, error, sizeof error)) cr_assert_lt(strlen(error), sizeof error);
        for (unsigned c = 0; c < COST_CURVES; c++)
            cr_assert(cost.curves[c].count >= 1 && cost.curves[c].count <= COST_POINTS);
        cr_assert_geq(cost_native_ns(&cost, COST_H2D, next(1u << 30)), 0);
        free(text);
    }
}

Test(policy_fuzz, rules)
{
    state = 2;
    static struct rules rules;
    const char sample[] = "site=*main* size=4K..64K place=host # c\nkernel='a b' place=device; size=..1M "
                          "place=auto\nsite=x?y place=host\n";
    for (int i = 0; i < ROUNDS; i++) {
        size_t length;
        char error[64], *text = make(sample, &length);
        if (rules_parse(&rules, text, length, error, sizeof error))
            rules_match(&rules, "app+main,x", next(1u << 20), "a b");
        else
            cr_assert_eq(rules.count, 0);
        free(text);
    }
}

Test(policy_fuzz, profile)
{
    state = 3;
    struct profile_entry room[8];
    struct profile profile = profile_on(room, 8);
    static char out[8192];
    const char sample[] = "zcshim-profile 1\na+1 place=host failures=1 device_ns=2.5 host_ns=1 evidence_ns=3 bytes=4 "
                          "runs=1 age=0 marks=ipc,sparse "
                          "reason=why not\nb+2 place=device marks=- reason=\nend 2\n";
    for (int i = 0; i < ROUNDS; i++) {
        size_t length;
        char error[64], *text = make(sample, &length);
        if (!profile_parse(&profile, text, length, error, sizeof error)) cr_assert_eq(profile.count, 0);
        profile_grow_old(&profile);
        profile_format(out, sizeof out, &profile);
        profile_find(&profile, "b+2", 3);
        free(text);
    }
}

static void count(void *ctx, const char *line)
{
    cr_assert_null(strchr(line, '\n'));
    ++*(unsigned *)ctx;
}

Test(policy_fuzz, settings)
{
    state = 4;
    static char help[16384];
    const char sample[] =
        "ZCSHIM_MODE=always\n# c\nmax_size = 4K\nREGRET=2%\nCOPY_THREADS=auto\nREPORT=/tmp/x\nHOST=off\nLEAK_EXIT=3\n";
    for (int i = 0; i < ROUNDS; i++) {
        size_t length, line_length;
        unsigned warned = 0;
        struct options options;
        char *text = make(sample, &length), *line = make("ZCSHIM_MAX_SIZE=64K", &line_length);
        text = realloc(text, length + 1);
        text[length] = '\0';
        line = realloc(line, line_length + 1);
        line[line_length] = '\0';
        char *const envp[] = {line, "ZCSHIM_LOG=warn", NULL};
        options_parse(&options, envp, count, &warned);
        options_parse_text(&options, text, count, &warned);
        cr_assert_leq(options.mode, MODE_OFF);
        cr_assert(options.regret >= 0 && options.regret <= 1);
        options_help(help, next(sizeof help), &options);
        free(text);
        free(line);
    }
}
