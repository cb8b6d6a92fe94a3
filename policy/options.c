#include "options.h"
#include "text.h"

#include <string.h>

#define PREFIX "ZCSHIM_"

const struct option_info options_table[OPTION_COUNT] = {
#define OPTION(NAME, field, KIND, def, low, high, words, help)                                                         \
    {#NAME, OPTION_##KIND, def, low, high, words, help, offsetof(struct options, field)},
#include "options.def"
#undef OPTION
};

static void *option_field(struct options *options, unsigned index)
{
    return (char *)options + options_table[index].offset;
}

/* The place of `word` in a list parted by |, or -1. */
static int option_word(const char *words, struct span word)
{
    struct span list = span_of(words);
    for (int place = 0; list.at < list.end; place++) {
        struct span one = {list.at, list.at};
        while (one.end < list.end && *one.end != '|') one.end++;
        list.at = one.end < list.end ? one.end + 1 : one.end;
        if (span_length(one) == span_length(word)) {
            struct span a = one, b = word;
            while (a.at < a.end && (*a.at | 32) == (*b.at | 32)) a.at++, b.at++;
            if (a.at == a.end) return place;
        }
    }
    return -1;
}

static bool option_switch(struct span text, bool *value)
{
    if (option_word("on|yes|true|1", text) >= 0) return *value = true, true;
    if (option_word("off|no|false|0", text) >= 0) return *value = false, true;
    return false;
}

/* Puts `text` into the field; null if that went well, else what is wrong with it. `text` ends at a NUL. */
static const char *option_set(struct options *options, unsigned index, struct span text)
{
    const struct option_info *info = &options_table[index];
    void *field = option_field(options, index);
    bool word = info->words[0] && option_word(info->words, text) >= 0;
    uint64_t number = 0;
    double percent;
    bool on;

    switch (info->kind) {
    case OPTION_SIZE:
        if (!word && !span_size(text, &number)) return "not a size (like 512, 64K, 4M, 1G)";
        break;
    case OPTION_INT:
    case OPTION_SEED:
        if (!word && !span_u64(text, &number)) return "not a whole number";
        break;
    case OPTION_PERCENT:
        if (text.at < text.end && text.end[-1] == '%') text.end--;
        if (!span_number(span_trim(text), &percent)) return "not a percentage (like 2%)";
        if (percent < (double)info->low || percent > (double)info->high) return "out of range";
        *(double *)field = percent / 100;
        return NULL;
    case OPTION_SWITCH:
        return option_switch(text, field) ? NULL : "neither on nor off";
    case OPTION_CHOICE:
        if (!word) return "no such choice";
        *(unsigned *)field = (unsigned)option_word(info->words, text);
        return NULL;
    case OPTION_STRING: /* where on and off are meant too, 1 is no file */
        if (strncmp(info->words, "on|off|", 7) == 0 && option_switch(text, &on)) text.at = on ? "on" : "off";
        *(const char **)field = text.at;
        return NULL;
    }
    if (!word && info->kind != OPTION_SEED && (number < info->low || number > info->high)) return "out of range";
    if (info->kind == OPTION_INT)
        *(int *)field = word ? -1 : (int)number;
    else
        *(uint64_t *)field = number;
    return NULL;
}

void options_default(struct options *options)
{
    memset(options, 0, sizeof *options);
    for (unsigned i = 0; i < OPTION_COUNT; i++) option_set(options, i, span_of(options_table[i].default_text));
}

int options_find(const char *name, size_t length)
{
    for (int i = 0; i < OPTION_COUNT; i++)
        if (span_is_caseless((struct span){name, name + length}, options_table[i].name)) return i;
    return -1;
}

enum { NAME_MOST = 40 }; /* longer names are nobody's typing error */

/* Letters to insert, delete or replace to make `name` of `known`. */
static unsigned edit_distance(struct span name, const char *known)
{
    unsigned row[NAME_MOST + 1];
    unsigned width = (unsigned)strlen(known);
    if (span_length(name) > NAME_MOST || width > NAME_MOST) return NAME_MOST;
    for (unsigned j = 0; j <= width; j++) row[j] = j;
    for (unsigned i = 1; name.at < name.end; name.at++, i++) {
        unsigned diagonal = row[0];
        row[0] = i;
        for (unsigned j = 1; j <= width; j++) {
            unsigned replaced = diagonal + ((*name.at & ~32) != (known[j - 1] & ~32));
            unsigned shifted = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replaced < shifted ? replaced : shifted;
        }
    }
    return row[width];
}

/* Where a setting of the file stands; those of the environment have no line. */
static void add_place(struct text *text, unsigned line)
{
    if (!line) return;
    text_add(text, "settings file, line ");
    text_u64(text, line);
    text_add(text, ": ");
}

static void warn_unknown(struct span name, unsigned number, options_warn *warn, void *ctx)
{
    char line[256];
    struct text text = text_into(line, sizeof line);
    unsigned best = NAME_MOST, nearest = 0;
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        unsigned distance = edit_distance(name, options_table[i].name);
        if (distance < best) best = distance, nearest = i;
    }
    add_place(&text, number);
    text_add(&text, PREFIX);
    text_foreign(&text, name.at, span_length(name) < 64 ? span_length(name) : 64);
    text_add(&text, ": no such setting");
    if (best <= 1 + span_length(name) / 4) {
        text_add(&text, "; did you mean " PREFIX);
        text_add(&text, options_table[nearest].name);
        text_add(&text, "?");
    } else {
        text_add(&text, "; " PREFIX "HELP=1 lists them");
    }
    warn(ctx, line);
}

static void warn_value(unsigned index, struct span value, const char *wrong, unsigned number, options_warn *warn,
                       void *ctx)
{
    char line[512], range[128];
    struct text text = text_into(line, sizeof line);
    options_range(range, sizeof range, index);
    add_place(&text, number);
    text_add(&text, PREFIX);
    text_add(&text, options_table[index].name);
    text_add(&text, "=");
    text_foreign(&text, value.at, span_length(value) < 80 ? span_length(value) : 80);
    text_add(&text, ": ");
    text_add(&text, wrong);
    text_add(&text, "; allowed: ");
    text_add(&text, range);
    text_add(&text, "; keeping ");
    text_add(&text, options_table[index].default_text);
    warn(ctx, line);
}

/* `line` of the settings file, 0: of the environment. */
static void option_take(struct options *options, struct span name, struct span value, unsigned line, options_warn *warn,
                        void *ctx)
{
    int index = options_find(name.at, span_length(name));
    if (index < 0) {
        if (warn) warn_unknown(name, line, warn, ctx);
        return;
    }
    if (options->origin[index] != OPTION_FROM_DEFAULT || value.at == value.end) return;
    const char *wrong = option_set(options, (unsigned)index, value);
    if (!wrong)
        options->origin[index] = line ? OPTION_FROM_FILE : OPTION_FROM_ENVIRONMENT;
    else if (warn)
        warn_value((unsigned)index, value, wrong, line, warn, ctx);
}

void options_parse(struct options *options, char *const *envp, options_warn *warn, void *ctx)
{
    options_default(options);
    for (; envp && *envp; envp++) {
        if (strncmp(*envp, PREFIX, sizeof PREFIX - 1) != 0) continue;
        struct span name = {*envp + sizeof PREFIX - 1, NULL};
        const char *equals = strchr(name.at, '=');
        if (!equals) continue;
        name.end = equals;
        option_take(options, name, span_of(equals + 1), 0, warn, ctx);
    }
}

static void warn_line(unsigned number, struct span line, options_warn *warn, void *ctx)
{
    char message[256];
    struct text text = text_into(message, sizeof message);
    add_place(&text, number);
    text_add(&text, "not NAME=value: ");
    text_foreign(&text, line.at, span_length(line) < 80 ? span_length(line) : 80);
    warn(ctx, message);
}

void options_parse_text(struct options *options, char *text, options_warn *warn, void *ctx)
{
    struct span rest = span_of(text);
    for (unsigned number = 1; rest.at < rest.end; number++) {
        struct span line = span_trim(span_line(&rest));
        if (line.at == line.end || *line.at == '#') continue;
        const char *equals = memchr(line.at, '=', span_length(line));
        if (!equals) {
            if (warn) warn_line(number, line, warn, ctx);
            continue;
        }
        struct span name = span_trim((struct span){line.at, equals});
        struct span value = span_trim((struct span){equals + 1, line.end});
        struct span prefix = {name.at, name.at + sizeof PREFIX - 1};
        if (span_length(name) >= sizeof PREFIX - 1 && span_is_caseless(prefix, PREFIX)) name.at = prefix.end;
        text[value.end - text] = '\0'; /* at most the newline or the NUL behind the line */
        option_take(options, name, value, number, warn, ctx);
    }
}

size_t options_value(char *buf, size_t capacity, const struct options *options, unsigned index)
{
    const struct option_info *info = &options_table[index];
    const void *field = (const char *)options + info->offset;
    struct text text = text_into(buf, capacity);
    const char *choice = info->words;

    switch (info->kind) {
    case OPTION_SIZE:
    case OPTION_SEED:
        if (*choice && *(const uint64_t *)field == 0)
            text_add(&text, choice);
        else if (info->kind == OPTION_SIZE)
            text_size(&text, *(const uint64_t *)field);
        else
            text_u64(&text, *(const uint64_t *)field);
        break;
    case OPTION_INT:
        if (*(const int *)field < 0)
            text_add(&text, choice);
        else
            text_u64(&text, (uint64_t) * (const int *)field);
        break;
    case OPTION_PERCENT:
        text_number(&text, *(const double *)field * 100, 4);
        text_add(&text, "%");
        break;
    case OPTION_SWITCH:
        text_add(&text, *(const bool *)field ? "on" : "off");
        break;
    case OPTION_CHOICE:
        for (unsigned place = *(const unsigned *)field; place; place--) choice = strchr(choice, '|') + 1;
        text_bytes(&text, choice, strcspn(choice, "|"));
        break;
    case OPTION_STRING:
        text_add(&text, *(const char *const *)field);
        break;
    }
    return text.length;
}

size_t options_range(char *buf, size_t capacity, unsigned index)
{
    const struct option_info *info = &options_table[index];
    struct text text = text_into(buf, capacity);
    switch (info->kind) {
    case OPTION_SIZE:
        text_size(&text, info->low);
        text_add(&text, "..");
        text_size(&text, info->high);
        break;
    case OPTION_INT:
    case OPTION_PERCENT:
        text_u64(&text, info->low);
        text_add(&text, "..");
        text_u64(&text, info->high);
        if (info->kind == OPTION_PERCENT) text_add(&text, "%");
        break;
    case OPTION_SEED:
        text_add(&text, "number");
        break;
    case OPTION_SWITCH:
        text_add(&text, "on|off");
        break;
    case OPTION_CHOICE:
    case OPTION_STRING:
        break;
    }
    if (info->words[0] && text.length) text_add(&text, " or ");
    text_add(&text, info->words);
    return text.length;
}

const char *options_origin_name(unsigned origin)
{
    static const char *const names[] = {"default", "environment", "file"};
    return origin < sizeof names / sizeof *names ? names[origin] : "unknown";
}

size_t options_help(char *buf, size_t capacity, const struct options *options)
{
    struct text text = text_into(buf, capacity);
    text_add(&text, "setting                value          from         allowed\n");
    for (unsigned i = 0; i < OPTION_COUNT; i++) {
        char value[512], range[128];
        size_t start = text.length;
        options_value(value, sizeof value, options, i);
        options_range(range, sizeof range, i);
        text_add(&text, PREFIX);
        text_add(&text, options_table[i].name);
        text_pad(&text, start, 23);
        text_add(&text, value[0] ? value : "-");
        text_pad(&text, start, 38);
        text_add(&text, options_origin_name(options->origin[i]));
        text_pad(&text, start, 51);
        text_add(&text, range);
        text_add(&text, "\n    ");
        text_add(&text, options_table[i].help);
        text_add(&text, "\n");
    }
    return text.length;
}
