#include "profile.h"
#include "text.h"

#include <string.h>

#define PROFILE_VERSION 1
#define PROFILE_START   "zcshim-profile"

static const struct {
    const char *name;
    uint32_t mark;
} mark_names[] = {{"ipc", PROFILE_IPC}, {"sparse", PROFILE_SPARSE}, {"fixed", PROFILE_FIXED}};
enum { MARK_NAMES = sizeof mark_names / sizeof *mark_names };

size_t profile_key(char *buf, size_t capacity, const struct profile_frame *frames, size_t count)
{
    struct text text = text_into(buf, capacity);
    for (size_t i = 0; i < count; i++) {
        if (i) text_add(&text, ",");
        for (const char *at = frames[i].module; *at; at++) text_bytes(&text, *at <= ' ' || *at == ',' ? "_" : at, 1);
        text_add(&text, "+");
        text_hex(&text, frames[i].offset);
    }
    return text.length;
}

struct profile profile_on(struct profile_entry *entries, size_t capacity)
{
    return (struct profile){entries, 0, capacity};
}

static int compare(const char *a, size_t a_length, const char *b, size_t b_length)
{
    int order = memcmp(a, b, a_length < b_length ? a_length : b_length);
    return order ? order : (a_length > b_length) - (a_length < b_length);
}

/* Where the key is, or would be. */
static size_t place_of(const struct profile *profile, const char *key, size_t length, bool *there)
{
    size_t low = 0, high = profile->count;
    *there = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare(profile->entries[middle].key, profile->entries[middle].key_length, key, length);
        if (order == 0) *there = true;
        if (order >= 0)
            high = middle;
        else
            low = middle + 1;
    }
    return low;
}

const struct profile_entry *profile_find(const struct profile *profile, const char *key, size_t key_length)
{
    bool there;
    size_t at = place_of(profile, key, key_length, &there);
    return there ? &profile->entries[at] : NULL;
}

/* ---- reading ---- */

static bool fail(char *error, size_t capacity, unsigned line, const char *what)
{
    struct text text = text_into(error, capacity);
    text_add(&text, "line ");
    text_u64(&text, line);
    text_add(&text, ": ");
    text_add(&text, what);
    return false;
}

static bool parse_marks(struct span value, uint32_t *marks)
{
    if (span_is(value, "-")) return true;
    while (value.at < value.end) {
        struct span one = {value.at, value.at};
        unsigned i = 0;
        while (one.end < value.end && *one.end != ',') one.end++;
        while (i < MARK_NAMES && !span_is(one, mark_names[i].name)) i++;
        if (i == MARK_NAMES) return false;
        *marks |= mark_names[i].mark;
        value.at = one.end < value.end ? one.end + 1 : one.end;
    }
    return *marks != 0;
}

static bool parse_u32(struct span value, uint32_t *number)
{
    uint64_t wide;
    if (!span_u64(value, &wide) || wide > UINT32_MAX) return false;
    *number = (uint32_t)wide;
    return true;
}

/* One NAME=VALUE of a line. */
static bool parse_field(struct profile_entry *entry, struct span name, struct span value)
{
    if (span_is(name, "place")) {
        entry->past.place = span_is(value, "host") ? EARN_HOST : EARN_DEVICE;
        return span_is(value, "host") || span_is(value, "device");
    }
    if (span_is(name, "failures")) return parse_u32(value, &entry->past.failures);
    if (span_is(name, "device_ns")) return span_number(value, &entry->past.device_ns);
    if (span_is(name, "host_ns")) return span_number(value, &entry->past.host_ns);
    if (span_is(name, "evidence_ns")) return span_number(value, &entry->past.evidence_ns);
    if (span_is(name, "bytes")) return span_u64(value, &entry->bytes);
    if (span_is(name, "runs")) return parse_u32(value, &entry->runs);
    if (span_is(name, "age")) return parse_u32(value, &entry->age);
    if (span_is(name, "marks")) return parse_marks(value, &entry->marks);
    return false;
}

static const char *parse_line(struct profile_entry *entry, struct span line)
{
    struct span key = span_word(&line);
    bool placed = false;
    memset(entry, 0, sizeof *entry);
    entry->key = key.at;
    entry->key_length = span_length(key);
    entry->reason = "";
    for (;;) {
        struct span word = span_word(&line);
        if (word.at == word.end) break;
        const char *equals = memchr(word.at, '=', span_length(word));
        if (!equals) return "not NAME=VALUE";
        struct span name = {word.at, equals};
        if (span_is(name, "reason")) {
            entry->reason = equals + 1;
            entry->reason_length = (size_t)(line.end - entry->reason);
            break;
        }
        placed |= span_is(name, "place");
        if (!parse_field(entry, name, (struct span){equals + 1, word.end})) return "unknown name or bad value";
    }
    return placed ? NULL : "no place";
}

static bool insert(struct profile *profile, const struct profile_entry *entry)
{
    bool there;
    size_t at = place_of(profile, entry->key, entry->key_length, &there);
    if (!there) {
        if (profile->count == profile->capacity) return false;
        memmove(&profile->entries[at + 1], &profile->entries[at], (profile->count - at) * sizeof *profile->entries);
        profile->count++;
    }
    profile->entries[at] = *entry;
    return true;
}

bool profile_is(const char *text) { return strncmp(text, PROFILE_START, sizeof PROFILE_START - 1) == 0; }

bool profile_parse(struct profile *profile, const char *text, size_t length, char *error, size_t error_capacity)
{
    struct span rest = {text, text + length};
    struct span line = span_trim(span_line(&rest));
    struct span word = span_word(&line);
    unsigned number = 1;
    uint64_t value;
    const char *wrong = NULL;

    profile->count = 0;
    if (!span_is(word, PROFILE_START)) return fail(error, error_capacity, 1, "not a profile");
    if (!span_u64(span_trim(line), &value) || value != PROFILE_VERSION)
        return fail(error, error_capacity, 1, "another version than 1");
    while (rest.at < rest.end) {
        struct profile_entry entry;
        number++;
        line = span_trim(span_line(&rest));
        if (line.at == line.end || *line.at == '#') continue;
        struct span after = line;
        if (span_is(span_word(&after), "end")) {
            if (span_u64(span_trim(after), &value) && value == profile->count) return true;
            wrong = "another number of sites than it says";
            break;
        }
        wrong = parse_line(&entry, line);
        if (!wrong && !insert(profile, &entry)) wrong = "more sites than there is room for";
        if (wrong) break;
    }
    profile->count = 0;
    return fail(error, error_capacity, number, wrong ? wrong : "torn: no end");
}

/* ---- merging and writing ---- */

void profile_grow_old(struct profile *profile)
{
    size_t kept = 0;
    for (size_t i = 0; i < profile->count; i++) {
        if (profile->entries[i].age >= PROFILE_AGE_MOST) continue;
        profile->entries[kept] = profile->entries[i];
        profile->entries[kept++].age++;
    }
    profile->count = kept;
}

bool profile_merge(struct profile *profile, const struct profile_entry *entry, bool decided)
{
    bool there;
    size_t at = place_of(profile, entry->key, entry->key_length, &there);
    struct profile_entry merged = *entry;
    merged.age = 0;
    merged.runs = 1;
    if (there) {
        const struct profile_entry *before = &profile->entries[at];
        merged.runs = before->runs < UINT32_MAX ? before->runs + 1 : before->runs;
        merged.marks |= before->marks;
        if (before->bytes > merged.bytes) merged.bytes = before->bytes;
        if (!decided) {
            merged.past = before->past;
            merged.reason = before->reason;
            merged.reason_length = before->reason_length;
        }
    }
    return insert(profile, &merged);
}

static void add_field(struct text *text, const char *name, double value)
{
    text_add(text, name);
    text_number(text, value < 0 ? 0 : value, 0);
}

static void add_entry(struct text *text, const struct profile_entry *entry)
{
    text_bytes(text, entry->key, entry->key_length);
    text_add(text, entry->past.place == EARN_HOST ? " place=host" : " place=device");
    add_field(text, " failures=", entry->past.failures);
    add_field(text, " device_ns=", entry->past.device_ns);
    add_field(text, " host_ns=", entry->past.host_ns);
    add_field(text, " evidence_ns=", entry->past.evidence_ns);
    text_add(text, " bytes=");
    text_u64(text, entry->bytes);
    add_field(text, " runs=", entry->runs);
    add_field(text, " age=", entry->age);
    text_add(text, entry->marks ? " marks=" : " marks=-");
    bool first = true;
    for (unsigned i = 0; i < MARK_NAMES; i++) {
        if (!(entry->marks & mark_names[i].mark)) continue;
        if (!first) text_add(text, ",");
        text_add(text, mark_names[i].name);
        first = false;
    }
    text_add(text, " reason=");
    for (size_t i = 0; i < entry->reason_length; i++)
        text_bytes(text, entry->reason[i] == '\n' ? " " : &entry->reason[i], 1);
    text_add(text, "\n");
}

size_t profile_format(char *buf, size_t capacity, const struct profile *profile)
{
    struct text text = text_into(buf, capacity);
    text_add(&text, "zcshim-profile 1\n");
    for (size_t i = 0; i < profile->count; i++) add_entry(&text, &profile->entries[i]);
    text_add(&text, "end ");
    text_u64(&text, profile->count);
    text_add(&text, "\n");
    return text.length;
}
