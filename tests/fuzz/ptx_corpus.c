/* ptx-corpus exact|sound FILE...: compares the answers for the kernels of ptx_corpus.cu, in each PTX of each file, with
 * the table. exact: the same; sound: at least as careful. */
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "shim/module_image.h"
#include "tests/fuzz/ptx_answers.h"

struct expected {
    const char *name, *answer;
    bool loose;
    unsigned visits;
};
static struct expected table[] = {
#define ANSWER(name, answer) {#name, answer, false, 0},
#define LOOSE(name, answer)  {#name, answer, true, 0},
#include "tests/fuzz/ptx_corpus.def"
};
#define TABLE (sizeof table / sizeof *table)

struct run {
    const char *file;
    bool exact;
    unsigned failures;
};

static bool has(const char *letters, char letter)
{
    size_t length = strcspn(letters, " :0123456789");
    return memchr(letters, letter, length);
}

/* "offset:U:bytes" of the window at this offset, NULL if there is none. */
static const char *window_of(const char *answer, unsigned offset)
{
    for (const char *at = answer; at; at = strchr(at, ' ')) {
        at += *at == ' ';
        char *colon;
        if (*at >= '0' && *at <= '9' && strtoul(at, &colon, 10) == offset && *colon == ':') return colon + 1;
    }
    return NULL;
}

static uint64_t bytes_of(const char *window) { return window[2] == '-' ? UINT64_MAX : strtoull(window + 2, NULL, 10); }

/* True if `got` is nowhere less careful than `want`. */
static bool at_least(const char *got, const char *want)
{
    if (has(got, '?')) return true;
    if (has(want, '?')) return false;
    for (const char *letter = "SLVAP"; *letter; letter++)
        if (has(want, *letter) && !has(got, *letter)) return false;
    for (const char *at = want; at; at = strchr(at, ' ')) {
        at += *at == ' ';
        if (*at < '0' || *at > '9') continue;
        const char *wanted = strchr(at, ':') + 1, *found = window_of(got, atoi(at));
        if (!found && (wanted[0] != 'W' || !has(got, 'S'))) return false;
        if (!found) continue;
        if ((wanted[0] == 'W' && found[0] != 'W') || bytes_of(found) < bytes_of(wanted)) return false;
        size_t length = strcspn(found, " "), wanted_length = strcspn(wanted, " ");
        for (const char *letter = "ap"; *letter; letter++)
            if (memchr(wanted + 1, *letter, wanted_length - 1) && !memchr(found + 1, *letter, length - 1)) return false;
    }
    return true;
}

static bool kernel_check(void *context, const struct ptx_kernel *k)
{
    struct run *run = context;
    char line[4096];
    ptx_answer_print(k, line, sizeof line);
    for (size_t i = 0; i < TABLE; i++) {
        if (strlen(table[i].name) != k->name_bytes || memcmp(table[i].name, k->name, k->name_bytes)) continue;
        table[i].visits++;
        if (run->exact && !table[i].loose ? !strcmp(line, table[i].answer) : at_least(line, table[i].answer))
            return true;
        printf("%s: %s is \"%s\", should be \"%s\"%s\n", run->file, table[i].name, line, table[i].answer,
               run->exact ? "" : " or worse");
        run->failures++;
        return true;
    }
    printf("%s: %.*s is not in the table\n", run->file, (int)k->name_bytes, k->name);
    run->failures++;
    return true;
}

static void text_check(struct run *run, const char *text, size_t bytes)
{
    size_t scratch_bytes = ptx_scratch_bytes(bytes);
    void *scratch = aligned_alloc(16, (scratch_bytes + 15) & ~15ul);
    for (size_t i = 0; i < TABLE; i++) table[i].visits = 0;
    if (ptx_analyse(text, bytes, NULL, scratch, scratch_bytes, kernel_check, run) != PTX_COMPLETE) {
        printf("%s: not complete\n", run->file);
        run->failures++;
    }
    for (size_t i = 0; i < TABLE; i++)
        if (table[i].visits != 1) {
            printf("%s: %s was visited %u times\n", run->file, table[i].name, table[i].visits);
            run->failures++;
        }
    free(scratch);
}

int main(int count, char **arguments)
{
    struct run run = {.exact = count > 1 && !strcmp(arguments[1], "exact")};
    unsigned texts = 0;
    for (int i = 2; i < count; i++) {
        struct stat status;
        int file = open(arguments[i], O_RDONLY);
        if (file < 0 || fstat(file, &status)) return perror(arguments[i]), 1;
        void *data = mmap(NULL, status.st_size, PROT_READ, MAP_PRIVATE, file, 0);
        close(file);
        run.file = arguments[i];
        struct module_image image;
        module_image_open(&image, data, status.st_size);
        unsigned before = texts;
        for (unsigned e = 0; e < image.entry_count; e++) {
            const char *text;
            size_t bytes;
            if (!module_image_text(&image, e, &text, &bytes)) continue;
            text_check(&run, text, bytes);
            texts++;
        }
        if (texts == before) {
            printf("%s: no PTX found\n", arguments[i]);
            run.failures++;
        }
        module_image_close(&image);
        munmap(data, status.st_size);
    }
    printf("%u texts of %zu kernels, %s: %u wrong answers\n", texts, TABLE, run.exact ? "exact" : "sound",
           run.failures);
    return run.failures || !texts;
}
