/*
 * ptx-fuzz MUTATIONS FILE.ptx...: changes PTX texts at random (always the same for the same count) and asks of each
 * answer:
 * - no crash, and no more time than SLOWEST_NS;
 * - a kernel whose text still stores to global memory is never clear of writes;
 * - text that ends early: the kernel it ends in is not understood, those before it answer as before or worse;
 * - an instruction more, never a better answer;
 * - a store added through the address of each load: no window is only read any more.
 */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "tests/fuzz/ptx_answers.h"

#define SLOWEST_NS 4000000000ull
#define KERNELS    256
#define WINDOWS    64

struct answer {
    char name[96];
    bool understood, stores_elsewhere, loads_elsewhere, stores_variables, atomics, polls;
    uint32_t count;
    struct ptx_pointer windows[WINDOWS];
    const char *name_at;
};
struct answers {
    enum ptx_status status;
    unsigned count;
    struct answer kernels[KERNELS];
};
struct text {
    char *at;
    size_t bytes, limit;
};

static uint64_t state;
static uint64_t random_below(uint64_t limit)
{
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    return limit ? (state >> 11) % limit : 0;
}

static uint64_t now_ns(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static bool kernel_keep(void *context, const struct ptx_kernel *k)
{
    struct answers *a = context;
    if (a->count == KERNELS) return false;
    struct answer *one = &a->kernels[a->count++];
    *one = (struct answer){.understood = !k->why,
                           .stores_elsewhere = k->stores_elsewhere,
                           .loads_elsewhere = k->loads_elsewhere,
                           .stores_variables = k->stores_variables,
                           .atomics = k->atomics,
                           .polls = k->polls,
                           .name_at = k->name};
    snprintf(one->name, sizeof one->name, "%.*s", (int)k->name_bytes, k->name);
    for (uint32_t i = 0; i < k->pointer_count && i < WINDOWS; i++) one->windows[one->count++] = k->pointers[i];
    return true;
}

static void *scratch;
static size_t scratch_bytes;
static uint64_t slowest_ns;

static void die(const struct text *text, const char *what, const char *kernel)
{
    FILE *file = fopen("ptx-fuzz-failure.ptx", "w");
    if (file) {
        fwrite(text->at, 1, text->bytes, file);
        fclose(file);
    }
    printf("FAILED: %s: %s (text kept in ptx-fuzz-failure.ptx)\n", kernel, what);
    exit(1);
}

static void analyse(const struct text *text, struct answers *answers)
{
    /* A copy that ends where the text ends, so that reading past it is seen. */
    char *exact = malloc(text->bytes + !text->bytes);
    memcpy(exact, text->at, text->bytes);
    answers->count = 0;
    uint64_t start = now_ns();
    answers->status = ptx_analyse(exact, text->bytes, NULL, scratch, scratch_bytes, kernel_keep, answers);
    uint64_t took = now_ns() - start;
    for (unsigned i = 0; i < answers->count; i++) answers->kernels[i].name_at += text->at - exact;
    free(exact);
    if (took > slowest_ns) slowest_ns = took;
    if (took > SLOWEST_NS) die(text, "took too long", "");
}

static bool writes(const struct answer *k)
{
    if (!k->understood || k->stores_elsewhere || k->stores_variables) return true;
    for (uint32_t i = 0; i < k->count; i++)
        if (k->windows[i].use >= PTX_MAY_WRITE) return true;
    return false;
}

/* A plain scan, independent of the analysis: does a statement of this kernel's body store to global memory? */
static bool stores_in_text(const struct text *text, const struct answer *k)
{
    const char *at = memchr(k->name_at, '{', text->at + text->bytes - k->name_at), *end = text->at + text->bytes;
    if (!at) return false;
    int depth = 0;
    for (; at < end; at++) {
        if (*at == '"' || (*at == '/' && at + 1 < end && (at[1] == '*' || at[1] == '/')))
            return false; /* left to the analysis */
        if (*at == '{') depth++;
        if (*at == '}' && --depth == 0) return false;
        if (depth && *at == ';') {
            const char *next = at + 1;
            while (next < end && (*next == '\n' || *next == '\t' || *next == ' ')) next++;
            static const char store[] = "st.global.", reduction[] = "red.global.";
            if ((size_t)(end - next) > sizeof reduction &&
                (!memcmp(next, store, sizeof store - 1) || !memcmp(next, reduction, sizeof reduction - 1)))
                return true;
        }
    }
    return false;
}

static void stores_check(const struct text *text, const struct answers *answers)
{
    for (unsigned i = 0; i < answers->count; i++)
        if (stores_in_text(text, &answers->kernels[i]) && !writes(&answers->kernels[i]))
            die(text, "stores, but is clear of writes", answers->kernels[i].name);
}

static const struct answer *answer_find(const struct answers *answers, const char *name)
{
    for (unsigned i = 0; i < answers->count; i++)
        if (!strcmp(answers->kernels[i].name, name)) return &answers->kernels[i];
    return NULL;
}

/* Nothing that was said before is said less carefully now. */
static void worse_check(const struct text *text, const struct answers *before, const struct answers *after,
                        bool may_vanish)
{
    for (unsigned i = 0; i < before->count; i++) {
        const struct answer *a = &before->kernels[i], *b = answer_find(after, a->name);
        if (!b && may_vanish) continue;
        if (!b) die(text, "vanished", a->name);
        if (!b->understood) continue;
        if (!a->understood) die(text, "became understood", a->name);
        if (a->stores_elsewhere > b->stores_elsewhere || a->loads_elsewhere > b->loads_elsewhere ||
            a->atomics > b->atomics || a->stores_variables > b->stores_variables || a->polls > b->polls)
            die(text, "lost a mark", a->name);
        for (uint32_t w = 0; w < a->count; w++) {
            const struct ptx_pointer *old = &a->windows[w], *new = NULL;
            for (uint32_t v = 0; v < b->count; v++)
                if (b->windows[v].offset_bytes == old->offset_bytes) new = &b->windows[v];
            if (!new && b->stores_elsewhere) continue;
            if (!new || new->use < old->use || new->bytes_per_thread < old->bytes_per_thread)
                die(text, "has a better answer", a->name);
        }
    }
}

static void text_put(struct text *text, size_t at, size_t removed, const char *piece, size_t bytes)
{
    if (text->bytes - removed + bytes > text->limit) return;
    memmove(text->at + at + bytes, text->at + at + removed, text->bytes - at - removed);
    memcpy(text->at + at, piece, bytes);
    text->bytes += bytes - removed;
}

static void text_copy(struct text *to, const struct text *from)
{
    memcpy(to->at, from->at, from->bytes);
    to->bytes = from->bytes;
}

/* Any bytes anywhere. */
static void bytes_mutate(struct text *text)
{
    static const char *const pieces[] = {"{",
                                         "}",
                                         ";",
                                         "(",
                                         ")",
                                         "[",
                                         "]",
                                         "/*",
                                         "//",
                                         "\"",
                                         ".entry ",
                                         ".func ",
                                         "\0",
                                         "@",
                                         "%rd1",
                                         "st.global.u32 [%rd1], 1;",
                                         "-",
                                         "99999999999999999999",
                                         "0x",
                                         ".param .b8 a[4294967295];",
                                         "<1000000000>",
                                         ",",
                                         "call f;",
                                         "$L__BB0_1:",
                                         "bra $L__BB0_1;",
                                         "\xff"};
    for (uint64_t n = 1 + random_below(4); n; n--) {
        size_t at = random_below(text->bytes), removed = random_below(8);
        if (removed > text->bytes - at) removed = text->bytes - at;
        const char *piece = pieces[random_below(sizeof pieces / sizeof *pieces)];
        switch (random_below(4)) {
        case 0:
            text->at[at] = random_below(256);
            break;
        case 1:
            text_put(text, at, removed, "", 0);
            break;
        case 2:
            text_put(text, at, 0, piece, strlen(piece) + !*piece);
            break;
        default: {
            char copy[64];
            size_t from = random_below(text->bytes), bytes = random_below(sizeof copy);
            if (bytes > text->bytes - from) bytes = text->bytes - from;
            memcpy(copy, text->at + from, bytes);
            text_put(text, at, 0, copy, bytes);
        }
        }
        if (!text->bytes) text_put(text, 0, 0, ";", 1);
    }
}

/* The line around a place. */
static void line_at(const struct text *text, size_t place, size_t *start, size_t *bytes)
{
    size_t a = place, b = place;
    while (a && text->at[a - 1] != '\n') a--;
    while (b < text->bytes && text->at[b] != '\n') b++;
    *start = a;
    *bytes = b - a + (b < text->bytes);
}

/* An instruction on a line of its own that neither branches nor calls. */
static bool is_instruction(const char *line, size_t bytes)
{
    static const char *const others[] = {"bra", "ret",   "exit",    "trap",       "call",
                                         "brx", "param", "retval0", "mov.b64 \t{"};
    if (bytes < 8 || line[0] != '\t' || line[1] < 'a' || line[1] > 'z' || line[bytes - 2] != ';') return false;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (memmem(line, bytes, others[i], strlen(others[i]))) return false;
    return true;
}

/* An instruction again somewhere in the same body. False if no place was found. */
static bool instruction_repeat(struct text *text)
{
    size_t from, bytes, to, to_bytes;
    char line[256];
    for (int tries = 0; tries < 50; tries++) {
        line_at(text, random_below(text->bytes), &from, &bytes);
        if (bytes >= sizeof line || !is_instruction(text->at + from, bytes)) continue;
        /* Not across the end of the body, which is a line "}". */
        size_t start = from, end = from;
        while (start > 2 && memcmp(text->at + start - 3, "\n{\n", 3)) start--;
        while (end + 3 < text->bytes && memcmp(text->at + end, "\n}\n", 3)) end++;
        if (end <= start) continue;
        line_at(text, start + random_below(end - start), &to, &to_bytes);
        if (to < start || !is_instruction(text->at + to, to_bytes)) continue;
        memcpy(line, text->at + from, bytes);
        text_put(text, to, 0, line, bytes);
        return true;
    }
    return false;
}

static const char *load_in(const char *line, size_t bytes)
{
    static const char *const others[] = {".param", ".shared", ".local", ".const"};
    const char *load = memmem(line, bytes, "ld.global", 9);
    if (load || bytes < 5 || memcmp(line, "\tld.", 4)) return load;
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (memmem(line, bytes, others[i], strlen(others[i]))) return NULL;
    return line;
}

/* Behind each load from global or generic memory a store to the same place. */
static void stores_add(struct text *text)
{
    for (size_t at = 0; at < text->bytes;) {
        size_t start, bytes;
        line_at(text, at, &start, &bytes);
        const char *line = text->at + start;
        const char *load = load_in(line, bytes), *open = load ? memchr(load, '[', line + bytes - load) : NULL;
        const char *close = open ? memchr(open, ']', line + bytes - open) : NULL;
        char store[128];
        if (close && close - open < 64) {
            int length = snprintf(store, sizeof store, "\tst%s.u8 %.*s, 0;\n", *load == 'l' ? ".global" : "",
                                  (int)(close - open + 1), open);
            text_put(text, start + bytes, 0, store, length);
            bytes += length;
        }
        at = start + bytes + !bytes;
    }
}

static struct answers original, changed;

static void stores_added_check(struct text *copy, const struct text *text)
{
    text_copy(copy, text);
    stores_add(copy);
    analyse(copy, &changed);
    for (unsigned i = 0; i < changed.count; i++) {
        const struct answer *k = &changed.kernels[i];
        /* These two read by other instructions than loads. */
        if (!strcmp(k->name, "k_matrix") || !strcmp(k->name, "k_shared_async")) continue;
        for (uint32_t w = 0; k->understood && w < k->count; w++)
            if (k->windows[w].use == PTX_READS) die(copy, "is read only although stores were added", k->name);
    }
}

static void truncated_check(struct text *copy, const struct text *text)
{
    text_copy(copy, text);
    copy->bytes = random_below(text->bytes + 1);
    analyse(copy, &changed);
    for (unsigned i = 0; i < changed.count; i++) {
        const struct answer *k = &changed.kernels[i];
        bool ended = memmem(k->name_at, copy->at + copy->bytes - k->name_at, "\n}", 2);
        if (!ended && k->understood) die(copy, "ends early, but is understood", k->name);
    }
    worse_check(copy, &original, &changed, true);
}

/* The declarations and functions of `from` and a few of its kernels: small texts are mutated faster and hit harder. */
static void text_pick(struct text *to, const struct text *from, unsigned one_in)
{
    size_t at = 0;
    to->bytes = 0;
    while (at < from->bytes) {
        const char *end = memmem(from->at + at, from->bytes - at, "\n}\n", 3);
        size_t bytes = end ? (size_t)(end + 3 - (from->at + at)) : from->bytes - at;
        const char *entry = memmem(from->at + at, bytes, ".entry", 6);
        /* What stands before the entry's own line (declarations) is always kept. */
        size_t kept = entry ? (size_t)(entry - (from->at + at)) : bytes;
        while (entry && kept && from->at[at + kept - 1] != '\n') kept--;
        memcpy(to->at + to->bytes, from->at + at, kept);
        to->bytes += kept;
        if (entry && !random_below(one_in)) {
            memcpy(to->at + to->bytes, from->at + at + kept, bytes - kept);
            to->bytes += bytes - kept;
        }
        at += bytes;
    }
}

static void original_take(struct text *text, struct text *copy, const struct text *whole)
{
    text_pick(text, whole, 20);
    analyse(text, &original);
    stores_check(text, &original);
    stores_added_check(copy, text);
}

int main(int count, char **arguments)
{
    uint64_t mutations = count > 1 ? strtoull(arguments[1], NULL, 10) : 1000;
    for (int f = 2; f < count; f++) {
        FILE *file = fopen(arguments[f], "rb");
        if (!file) return perror(arguments[f]), 1;
        struct text whole = {.limit = 4u << 20}, text = {.limit = 4u << 20}, copy = {.limit = 4u << 20};
        whole.at = malloc(whole.limit);
        text.at = malloc(text.limit);
        copy.at = malloc(copy.limit);
        whole.bytes = fread(whole.at, 1, whole.limit / 2, file);
        fclose(file);
        scratch_bytes = ptx_scratch_bytes(whole.bytes);
        scratch = aligned_alloc(16, (scratch_bytes + 15) & ~15ul);
        state = 0x9e3779b97f4a7c15ull;
        analyse(&whole, &original);
        stores_check(&whole, &original);
        stores_added_check(&copy, &whole);
        for (uint64_t n = 0; n < mutations; n++) {
            if (n % 100 == 0) original_take(&text, &copy, &whole);
            uint64_t kind = random_below(8);
            if (kind == 0) {
                truncated_check(&copy, &text);
                continue;
            }
            text_copy(&copy, &text);
            if (kind < 4) {
                bool repeated = false;
                for (uint64_t k = 1 + random_below(5); k; k--) repeated |= instruction_repeat(&copy);
                analyse(&copy, &changed);
                if (repeated) worse_check(&copy, &original, &changed, false);
            } else {
                bytes_mutate(&copy);
                analyse(&copy, &changed);
            }
            stores_check(&copy, &changed);
        }
        printf("%s: %" PRIu64 " mutations, slowest analysis %.1f ms\n", arguments[f], mutations, slowest_ns / 1e6);
        free(whole.at);
        free(text.at);
        free(copy.at);
        free(scratch);
    }
    return 0;
}
