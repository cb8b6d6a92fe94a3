#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fuzz/ptx_answers.h"

#define HEAD ".version 9.0\n.target sm_90\n.address_size 64\n"
#define TWO                                                                                                            \
    ".visible .entry k(.param .u64 .ptr .align 1 a, .param .u64 .ptr .align 1 b)\n{\n.reg .b64 %rd<9>; .reg .b32 "     \
    "%r<9>; .reg .pred %p<9>;\n"                                                                                       \
    "ld.param.u64 %rd1, [a]; ld.param.u64 %rd2, [b];\n"
#define ENTRY(body) HEAD TWO body "\nret;\n}\n"

struct seen {
    char line[4096], names[256], why[128];
    unsigned count;
    uint64_t accesses; /* through the first pointer */
};

static bool keep(void *context, const struct ptx_kernel *k)
{
    struct seen *seen = context;
    seen->count++;
    ptx_answer_print(k, seen->line, sizeof seen->line);
    snprintf(seen->why, sizeof seen->why, "%s", k->why ? k->why : "");
    strncat(seen->names, k->name, k->name_bytes);
    strcat(seen->names, " ");
    seen->accesses = k->pointer_count ? k->pointers[0].accesses_per_thread : 0;
    for (uint32_t i = 0; i < k->parameter_count; i++)
        if (k->why) cr_assert_eq(k->parameters[i].use, PTX_UNKNOWN);
    return true;
}

static enum ptx_status analyse_with(const char *text, size_t scratch_bytes, struct seen *seen)
{
    void *scratch = aligned_alloc(16, (scratch_bytes + 15) & ~15ul);
    memset(seen, 0, sizeof *seen);
    enum ptx_status status = ptx_analyse(text, strlen(text), NULL, scratch, scratch_bytes, keep, seen);
    free(scratch);
    return status;
}

static enum ptx_status analyse(const char *text, struct seen *seen)
{
    return analyse_with(text, ptx_scratch_bytes(strlen(text)), seen);
}

#define ANSWERS(text, expected)                                                                                        \
    do {                                                                                                               \
        struct seen seen;                                                                                              \
        analyse(text, &seen);                                                                                          \
        cr_assert_str_eq(seen.line, expected, "\"%s\" (%s), should be \"%s\"", seen.line, seen.why, expected);         \
    } while (0)

Test(policy_ptx, loads_are_reads_and_stores_may_write)
{
    ANSWERS(ENTRY("ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd2+4], %r1;"), "0:R:4 8:W:4");
    ANSWERS(ENTRY("ld.u32 %r1, [%rd1]; st.v4.u32 [%rd2], {%r1, %r1, %r1, %r1};"), "0:R:4 8:W:16");
    ANSWERS(
        ENTRY("@%p1 st.global.u8 [%rd1], 0; @!%p1 bra L; ld.global.nc.L1::no_allocate.v2.u64 {%rd3, %rd4}, [%rd2]; L:"),
        "0:W:1 8:R:16");
}

Test(policy_ptx, addresses_keep_their_base_through_arithmetic)
{
    ANSWERS(ENTRY("mov.u32 %r1, %tid.x; mul.wide.u32 %rd3, %r1, 4; add.s64 %rd4, %rd1, %rd3; st.global.u32 [%rd4], 0;"),
            "0:W:4");
    ANSWERS(ENTRY("mad.wide.u32 %rd3, %r1, 4, %rd1; st.global.u32 [%rd3], 0;"), "0:W:4");
    ANSWERS(ENTRY("selp.b64 %rd3, %rd1, %rd2, %p1; st.global.u32 [%rd3], 0;"), "0:W:4 8:W:4");
    ANSWERS(ENTRY("mov.b64 {%r1, %r2}, %rd1; add.cc.u32 %r1, %r1, 4; addc.u32 %r2, %r2, 0; mov.b64 %rd3, {%r1, %r2}; "
                  "st.global.u32 [%rd3], 0;"),
            "0:W:4");
    ANSWERS(ENTRY("cvt.u32.u64 %r1, %rd1; shr.u64 %rd3, %rd1, 32; shl.b64 %rd4, %rd3, 32; cvt.u64.u32 %rd5, %r1; "
                  "or.b64 %rd6, %rd4, %rd5; st.global.u32 [%rd6], 0;"),
            "0:W:4");
    ANSWERS(ENTRY("and.b64 %rd3, %rd1, -16; st.global.u32 [%rd3], 0;"), "0:W:4");
    ANSWERS(ENTRY("shfl.sync.idx.b32 %r1|%p1, %r2, 0, 31, -1; st.global.u32 [%rd1], %r1;"), "0:W:4");
}

Test(policy_ptx, an_address_without_a_base_is_elsewhere)
{
    ANSWERS(ENTRY("st.global.u32 [%rd7], 0;"), "S");
    ANSWERS(ENTRY("st.global.u32 [4096], 0;"), "S");
    ANSWERS(ENTRY("mov.u64 %rd3, 4096; st.u32 [%rd3], 0;"), "S");
    ANSWERS(ENTRY("shl.b64 %rd3, %rd1, 4; ld.u32 %r1, [%rd3];"), "L 0:R:-");
    ANSWERS(ENTRY("ld.global.u64 %rd3, [%rd1]; st.global.u32 [%rd3], 0;"), "S 0:W:-");
    ANSWERS(ENTRY("ld.global.u64 %rd3, [%rd1]; ld.global.u32 %r1, [%rd3];"), "L 0:R:-");
    ANSWERS(ENTRY("ld.global.v2.u32 {%r1, %r2}, [%rd1]; mov.b64 %rd3, {%r1, %r2}; st.global.u32 [%rd3], 0;"),
            "S 0:W:-");
    ANSWERS(ENTRY("@%p1 mov.b64 %rd3, %rd1; @!%p1 cvt.u64.u32 %rd3, %r1; st.global.u32 [%rd3], 0;"), "S 0:W:-");
}

Test(policy_ptx, an_index_that_was_loaded_is_no_pointer)
{
    ANSWERS(ENTRY("ld.global.u32 %r1, [%rd1]; mul.wide.u32 %rd3, %r1, 8; add.s64 %rd4, %rd2, %rd3; ld.global.u32 %r2, "
                  "[%rd4];"),
            "0:R:4 8:R:4");
    ANSWERS(
        ENTRY(
            "ld.global.u64 %rd5, [%rd1]; shl.b64 %rd3, %rd5, 3; add.s64 %rd4, %rd2, %rd3; ld.global.u32 %r2, [%rd4];"),
        "0:R:8 8:R:4");
    ANSWERS(HEAD ".entry k(.param .u64 a, .param .u64 n) { .reg .b64 %rd<9>; .reg .b32 %r<9>; ld.param.u64 %rd1, [a]; "
                 "ld.param.u64 %rd2, [n];"
                 "ld.global.u32 %r1, [%rd1]; mul.wide.u32 %rd3, %r1, 16; add.s64 %rd4, %rd2, %rd3; st.global.u32 "
                 "[%rd4], 0; ret; }",
            "S 0:W:- 8:W:-");
}

Test(policy_ptx, memory_on_the_chip_is_not_global)
{
    ANSWERS(ENTRY(".shared .b8 s[64]; mov.u32 %r1, s; st.shared.u32 [%r1], 1; atom.shared.add.u32 %r2, [%r1], 1; "
                  "red.shared.add.u32 [s+4], 1;"),
            "");
    ANSWERS(ENTRY(".shared .b8 s[64]; mov.u64 %rd3, s; cvta.shared.u64 %rd4, %rd3; st.u32 [%rd4], 1;"), "");
    ANSWERS(ENTRY(".local .b8 d[64]; mov.u64 %rd3, d; cvta.local.u64 %rd4, %rd3; st.u64 [%rd4], %rd1; ld.u64 %rd5, "
                  "[%rd4]; st.u32 [%rd5], 1;"),
            "0:W:4");
    ANSWERS(ENTRY(".shared .b8 s[64]; st.shared.u64 [s], %rd1; ld.shared.u64 %rd5, [s]; st.global.u32 [%rd5], 1;"),
            "0:W:4");
    ANSWERS(ENTRY(".shared .b8 s[64]; mov.u64 %rd3, s; cvta.shared.u64 %rd4, %rd3; selp.b64 %rd5, %rd4, %rd1, %p1; "
                  "st.u32 [%rd5], 1;"),
            "0:W:4");
}

Test(policy_ptx, atomics_and_polling_are_told)
{
    ANSWERS(ENTRY("atom.global.add.u32 %r1, [%rd1], 1;"), "A 0:W:4a");
    ANSWERS(ENTRY("red.add.u32 [%rd1], 1;"), "A 0:W:4a");
    ANSWERS(ENTRY("L: ld.acquire.gpu.global.u32 %r1, [%rd1]; setp.eq.u32 %p1, %r1, 0; @%p1 bra L;"), "P 0:R:-p");
    ANSWERS(ENTRY("ld.volatile.global.u32 %r1, [%rd1];"), "0:R:4");
    ANSWERS(HEAD ".global .u32 v;" TWO "atom.global.add.u32 %r1, [v], 1; st.global.u32 [v], 2; ret; }", "VAa");
}

#define AGAIN(body) ENTRY("L: " body " setp.eq.u32 %p1, %r1, 0; @%p1 bra L;")
Test(policy_ptx, loads_that_no_first_level_cache_answers_poll_in_a_loop)
{
    ANSWERS(AGAIN("ld.global.u32 %r1, [%rd1];"), "0:R:-");
    ANSWERS(AGAIN("ld.global.cg.u32 %r1, [%rd1];"), "P 0:R:-p");
    ANSWERS(AGAIN("ld.global.nc.L1::no_allocate.u32 %r1, [%rd1];"), "P 0:R:-p");
    ANSWERS(AGAIN("ld.global.u32 %r1, [%rd1]; membar.gl;"), "P 0:R:-p");
    ANSWERS(AGAIN("ld.global.u32 %r1, [%rd1]; fence.acq_rel.gpu;"), "P 0:R:-p");
    ANSWERS(AGAIN("ld.global.u32 %r1, [%rd1]; membar.cta;"), "0:R:-");
    ANSWERS(AGAIN(".shared .b8 s[64]; cp.async.cg.shared.global [s], [%rd1], 16; cp.async.wait_all; ld.shared.u32 %r1, "
                  "[s];"),
            "P 0:R:-p");
    ANSWERS(ENTRY("membar.gl; ld.global.cg.u32 %r1, [%rd1];"), "0:R:4");
}

#define ACCESSES(text, expected)                                                                                       \
    do {                                                                                                               \
        struct seen seen;                                                                                              \
        analyse(text, &seen);                                                                                          \
        cr_assert_eq(seen.accesses, expected, "%llu", (unsigned long long)seen.accesses);                              \
    } while (0)
Test(policy_ptx, one_instruction_that_copies_much_makes_many_accesses)
{
    ACCESSES(ENTRY("ld.global.v4.u64 {%rd3, %rd4, %rd5, %rd6}, [%rd1];"), 1);
    ACCESSES(ENTRY(".shared .b8 s[64]; cp.async.ca.shared.global [s], [%rd1], 16;"), 1);
    ACCESSES(ENTRY(".shared .b8 s[64]; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd1], "
                   "65536, [s];"),
             2048);
    ACCESSES(ENTRY(".shared .b8 s[64]; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd1], "
                   "%r1, [s];"),
             PTX_UNBOUNDED);
}

#define LOOP(init, step, test)                                                                                         \
    ENTRY("mov.u32 %r1, " init "; L: ld.global.u32 %r2, [%rd1]; " step " " test " @%p1 bra L;")
Test(policy_ptx, constant_loops_have_a_bound)
{
    ANSWERS(LOOP("0", "add.s32 %r1, %r1, 1;", "setp.ne.s32 %p1, %r1, 100;"), "0:R:400");
    ANSWERS(LOOP("0", "add.s32 %r1, %r1, 7;", "setp.lt.s32 %p1, %r1, 100;"), "0:R:60");
    ANSWERS(LOOP("100", "add.s32 %r1, %r1, -1;", "setp.gt.s32 %p1, %r1, 0;"), "0:R:400");
    ANSWERS(LOOP("0", "sub.u32 %r1, %r1, -5;", "setp.le.u32 %p1, %r1, 100;"), "0:R:84");
    ANSWERS(LOOP("0", "setp.lt.u32 %p1, %r1, 99; add.s32 %r1, %r1, 1;", ""), "0:R:400");
    ANSWERS(ENTRY("mov.u32 %r1, 0; L: setp.ge.s32 %p1, %r1, 10; @%p1 bra E; ld.global.u32 %r2, [%rd1]; add.s32 %r1, "
                  "%r1, 1; bra L; E:"),
            "0:R:44");
}

Test(policy_ptx, other_loops_have_none)
{
    ANSWERS(LOOP("0", "add.s32 %r1, %r1, 3;", "setp.ne.s32 %p1, %r1, 100;"), "0:R:-");      /* never equal */
    ANSWERS(LOOP("0", "add.s32 %r1, %r1, -1;", "setp.lt.s32 %p1, %r1, 100;"), "0:R:-");     /* away from the end */
    ANSWERS(LOOP("0", "@%p2 add.s32 %r1, %r1, 1;", "setp.ne.s32 %p1, %r1, 100;"), "0:R:-"); /* not every time */
    ANSWERS(LOOP("0", "add.s32 %r1, %r1, 1; mov.u32 %r1, 5;", "setp.ne.s32 %p1, %r1, 100;"), "0:R:-"); /* set back */
    ANSWERS(LOOP("0", "add.s32 %r1, %r1, 1;", "setp.lt.u32 %p1, %r1, %r3;"), "0:R:-");        /* end not known */
    ANSWERS(LOOP("0", "add.s32 %r1, %r1, 1;", "setp.le.u32 %p1, %r1, 4294967295;"), "0:R:-"); /* wraps */
    ANSWERS(LOOP("0", "add.sat.s32 %r1, %r1, 1;", "setp.ne.s32 %p1, %r1, 100;"), "0:R:-");
    ANSWERS(ENTRY("mov.u32 %r1, 0; O: L: ld.global.u32 %r2, [%rd1]; add.s32 %r1, %r1, 1; setp.ne.s32 %p1, %r1, 9; @%p1 "
                  "bra L; setp.ne.s32 %p2, %r2, 0; @%p2 bra O;"),
            "0:R:-");
    ANSWERS(ENTRY("mov.u32 %r1, 0; @%p3 bra M; L: ld.global.u32 %r2, [%rd1]; M: add.s32 %r1, %r1, 1; setp.ne.s32 %p1, "
                  "%r1, 9; @%p1 bra L;"),
            "0:R:-");
    ANSWERS(ENTRY("mov.u32 %r1, 0; L: ld.global.u32 %r2, [%rd1]; add.s32 %r1, %r1, 1; setp.ne.s32 %p1, %r1, 9; brx.idx "
                  "%r2, T; T: .branchtargets L;"),
            "0:R:-");
}

Test(policy_ptx, copies_of_blocks_count)
{
    ANSWERS(ENTRY(".shared .b8 s[64]; cp.async.ca.shared.global [s], [%rd1], 16; cp.async.commit_group; "
                  "cp.async.wait_group 0;"),
            "0:R:16");
    ANSWERS(ENTRY(".shared .b8 s[64]; cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [s], [%rd1], "
                  "%r1, [s];"),
            "0:R:-");
    ANSWERS(ENTRY(".shared .b8 s[64]; cp.async.bulk.global.shared::cta.bulk_group [%rd1], [s], 64;"), "0:W:64");
    ANSWERS(ENTRY(".shared .b8 s[64]; cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [s], %r1;"),
            "A 0:W:-a");
    ANSWERS(ENTRY(".shared .b8 s[64]; cp.async.bulk.tensor.1d.global.shared::cta.tile.bulk_group [%rd1, {%r1}], [s];"),
            "S");
    ANSWERS(ENTRY(".shared .b8 s[64]; cp.async.bulk.tensor.1d.shared::cluster.global.tile.mbarrier::complete_tx::bytes "
                  "[s], [%rd1, {%r1}], [s];"),
            "L");
    ANSWERS(ENTRY("discard.global.L2 [%rd1], 128;"), "0:W:128");
}

Test(policy_ptx, what_is_not_known_is_not_understood)
{
    static const char *const strange[] = {"frobnicate.u32 %r1, %r2;",
                                          "multimem.st.global.u32 [%rd1], %r1;",
                                          "st.async.shared::cluster.u32 [%rd1], %r1, [%rd2];",
                                          "red.async.relaxed.cluster.shared::cluster.add.u32 [%rd1], %r1, [%rd2];",
                                          "tcgen05.st.sync.aligned.16x64b.x1.b32 [%rd1], {%r1};",
                                          "call (%r1), %rd1, (%r2), prototype;",
                                          "call other, (%rd1);",
                                          "st.global [%rd1], %r1;",
                                          "ld.global.u32 %r1, %rd1;",
                                          "ld.param.u64 %rd3, [a+4];",
                                          "ld.param.u64 %rd3, [b+8];",
                                          "{ st.global.u32 [%rd1], 0;",

                                          "bra;",
                                          "st.global.u32 [%rd1], 08;",
                                          "\"x\"",
                                          "# 1",
                                          "tensormap.replace.tile.global_address.global.b1024.b64 [%rd1], %rd2;"};
    for (size_t i = 0; i < sizeof strange / sizeof *strange; i++) {
        char text[2048];
        struct seen seen;
        snprintf(text, sizeof text, "%s%s\nret;\n}\n", HEAD TWO, strange[i]);
        analyse(text, &seen);
        cr_assert(seen.count == 1 && !strcmp(seen.line, "?"), "%s: %s", strange[i], seen.line);
    }
}

Test(policy_ptx, branches_to_labels_that_do_not_exist_bound_nothing)
{
    ANSWERS(ENTRY("@%p1 bra NOWHERE; ld.global.u32 %r1, [%rd1];"), "0:R:-");
}

Test(policy_ptx, instructions_behind_label_and_directive_are_seen)
{
    ANSWERS(ENTRY("L:\n.loc 1 2 3\nst.global.u32 [%rd1], 0; M: .pragma \"nounroll\"; st.global.u32 [%rd2], 0;"),
            "0:W:4 8:W:4");
}

Test(policy_ptx, names_in_blocks_are_their_own)
{
    ANSWERS(
        ENTRY("{ .reg .b64 x; mov.b64 x, %rd1; ld.u32 %r1, [x]; } { .reg .b64 x; mov.b64 x, %rd2; st.u32 [x], 0; }"),
        "0:R:4 8:W:4");
    ANSWERS(ENTRY(".param .b64 p; st.param.b64 [p], %rd1; { .param .b64 p; st.param.b64 [p], %rd2; } ld.param.b64 "
                  "%rd3, [p]; st.u32 [%rd3], 0;"),
            "0:W:4");
}

Test(policy_ptx, functions_are_followed)
{
    static const char f[] = HEAD ".func (.param .b64 r) f(.param .b64 x) { .reg .b64 %rd<3>; ld.param.b64 %rd1, [x]; "
                                 "st.param.b64 [r], %rd1; ret; }\n";
    char text[2048];
    snprintf(text, sizeof text, "%s%s", f,
             TWO "{ .param .b64 p; .param .b64 q; st.param.b64 [p], %rd1; call.uni (q), f, (p); ld.param.b64 %rd3, "
                 "[q]; } st.u32 [%rd3], 0; ret; }");
    ANSWERS(text, "C 0:W:4");
    snprintf(text, sizeof text, "%s%s", f, TWO "call.uni f, (%rd1, %rd2); ret; }");
    ANSWERS(text, "?");
    ANSWERS(HEAD ".func f(.reg .b64 x) { .reg .b32 %r<3>; atom.add.u32 %r1, [x], 1; ret; }" TWO
                 "call f, (%rd2); ret; }",
            "AC 8:W:4a");
    ANSWERS(HEAD ".func f(.reg .b64 x) { .reg .b32 %r<3>; ld.u32 %r1, [x]; call f, (x); ret; }" TWO
                 "call f, (%rd2); ret; }",
            "C 8:R:-");
    ANSWERS(HEAD ".extern .func g(.param .b64 x);" TWO "call g, (%rd1); ret; }", "?");
}

Test(policy_ptx, structures_by_value_are_seen_by_offset)
{
    ANSWERS(HEAD ".entry k(.param .u32 n, .param .align 8 .b8 s[24]) { .reg .b64 %rd<9>; ld.param.v2.u64 {%rd1, %rd2}, "
                 "[s+8]; st.global.u32 [%rd2], 0; ret; }",
            "24:W:4");
    ANSWERS(HEAD ".entry k(.param .align 8 .b8 s[16]) { .reg .b64 %rd<9>; .reg .b32 %r<9>; mov.b64 %rd1, s; "
                 "cvta.param.u64 %rd2, %rd1; add.s64 %rd3, %rd2, %rd7; ld.u64 %rd4, [%rd3]; st.u32 [%rd4], 0; ret; }",
            "0:W:4 8:W:4");
}

Test(policy_ptx, truncated_text_is_never_understood_as_less)
{
    static const char text[] = ENTRY("ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd2], %r1;");
    for (size_t bytes = 0; bytes + 2 < sizeof text; bytes++) {
        char cut[sizeof text];
        struct seen seen;
        memcpy(cut, text, bytes);
        cut[bytes] = 0;
        enum ptx_status status = analyse(cut, &seen);
        cr_assert(seen.count == 0 || !strcmp(seen.line, "?"), "at %zu: %s", bytes, seen.line);
        cr_assert(status == PTX_PARTIAL || bytes < sizeof HEAD, "at %zu", bytes);
    }
}

Test(policy_ptx, little_scratch_is_not_understood_but_never_wrong)
{
    static const char text[] = ENTRY("ld.global.u32 %r1, [%rd1]; st.global.u32 [%rd2], %r1;");
    for (size_t bytes = 0; bytes < 128 << 10; bytes += 512) {
        struct seen seen;
        analyse_with(text, bytes, &seen);
        cr_assert(seen.count == 0 || !strcmp(seen.line, "?") || !strcmp(seen.line, "0:R:4 8:W:4"), "%zu: %s", bytes,
                  seen.line);
    }
}

Test(policy_ptx, text_behind_the_last_brace_makes_the_module_partial)
{
    struct seen seen;
    cr_assert_eq(analyse(ENTRY("") "st.global.u32 [%rd1], 0; }", &seen), PTX_PARTIAL);
    cr_assert_eq(analyse(ENTRY("") ".entry", &seen), PTX_PARTIAL);
    cr_assert_eq(analyse(ENTRY("") ".visible", &seen), PTX_PARTIAL);
    cr_assert_eq(analyse(ENTRY(""), &seen), PTX_COMPLETE);
}

Test(policy_ptx, one_kernel_can_be_asked_for)
{
    static const char text[] = HEAD ".entry x() { ret; } .entry xy() { ret; } .entry y() { ret; }";
    struct seen seen = {0};
    size_t scratch_bytes = ptx_scratch_bytes(sizeof text);
    void *scratch = aligned_alloc(16, scratch_bytes & ~15ul);
    cr_assert_eq(ptx_analyse(text, sizeof text, "xy", scratch, scratch_bytes & ~15ul, keep, &seen), PTX_COMPLETE);
    cr_assert_str_eq(seen.names, "xy ");
    free(scratch);
}

Test(policy_ptx, a_kernel_defined_twice_is_not_understood)
{
    ANSWERS(HEAD ".entry k() { ret; } .entry k(.param .u64 p) { ret; }", "?");
}

/* Text that asks for much work is given up in time. */
static void give_up_in_time(const char *head, const char *piece, size_t count, const char *tail)
{
    size_t bytes = strlen(head) + strlen(piece) * count + strlen(tail) + 1;
    char *text = malloc(bytes), *at = stpcpy(text, head);
    struct seen seen;
    struct timespec start, end;
    while (count--) at = stpcpy(at, piece);
    strcpy(at, tail);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &start);
    analyse(text, &seen);
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
    double seconds = end.tv_sec - start.tv_sec + (end.tv_nsec - start.tv_nsec) / 1e9;
    cr_assert(seconds < 10, "%zu bytes took %.1f s", bytes, seconds);
    free(text);
}

Test(policy_ptx, work_is_bounded)
{
    give_up_in_time(HEAD TWO, "{ ", 200000, "");
    give_up_in_time(HEAD TWO, "L: @%p1 bra L; ", 50000, "ret; }");
    give_up_in_time(HEAD TWO, "L: @%p1 bra M; M: @%p2 bra L; ld.global.u32 %r1, [%rd1]; ", 20000, "ret; }");
    give_up_in_time(HEAD TWO, "mov.u64 %rd3, %rd4; mov.u64 %rd4, %rd5; ", 50000, "ret; }");
    give_up_in_time(HEAD, ".entry k() { ret; } ", 50000, "");
    give_up_in_time(HEAD TWO, "call k, (%rd1, %rd2); ", 50000, "ret; }");
    give_up_in_time(HEAD ".func f() { call f; } ", ".entry e() { call f; } ", 20000, "");
    give_up_in_time(HEAD ".entry k(", ".param .align 4 .b8 p[4096], ", 50000, ".param .u64 q) { ret; }");
    give_up_in_time("", "/*", 500000, "");
}

Test(policy_ptx, loops_in_loops_without_end_are_given_up_in_time)
{
    enum { DEPTH = 3000 };
    char *text = malloc(DEPTH * 160 + 1024), *at = text + sprintf(text, "%s%s", HEAD, TWO);
    struct seen seen;
    for (int i = 0; i < DEPTH; i++) at += sprintf(at, "mov.u32 %%r%d, 0; L%d: ", i, i);
    at += sprintf(at, "ld.global.u32 %%q, [%%rd1];\n");
    for (int i = DEPTH; i-- > 0;)
        at += sprintf(at, "add.s32 %%r%d, %%r%d, 1; setp.ne.s32 %%p%d, %%r%d, 2; @%%p%d bra L%d;\n", i, i, i, i, i, i);
    strcpy(at, "ret;\n}\n");
    analyse(text, &seen);
    cr_assert_eq(seen.count, 1);
    cr_assert(!strcmp(seen.line, "?") || !strcmp(seen.line, "0:R:-"), "%s", seen.line);
    free(text);
}
