#include "cli/json.h"

#include <stdlib.h>
#include <string.h>
#include "cli/input.h"

enum { DEPTH_MOST = 64 };

struct reader {
    char *at, *end;
    unsigned line, depth;
};

static const struct json nothing = {.type = JSON_NULL};

static void skip_blanks(struct reader *reader)
{
    for (; reader->at < reader->end &&
           (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\r' || *reader->at == '\n');
         reader->at++)
        reader->line += *reader->at == '\n';
}

static bool take(struct reader *reader, char wanted)
{
    skip_blanks(reader);
    if (reader->at >= reader->end || *reader->at != wanted) return false;
    reader->at++;
    return true;
}

static int hex4(const char *at)
{
    int value = 0;
    for (int i = 0; i < 4; i++) {
        char c = at[i];
        int digit = c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
        if (digit < 0) return -1;
        value = value * 16 + digit;
    }
    return value;
}

static char *put_utf8(char *to, unsigned code)
{
    if (code < 0x80) {
        *to++ = (char)code;
    } else if (code < 0x800) {
        *to++ = (char)(0xc0 | code >> 6);
        *to++ = (char)(0x80 | (code & 0x3f));
    } else if (code < 0x10000) {
        *to++ = (char)(0xe0 | code >> 12);
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    } else {
        *to++ = (char)(0xf0 | code >> 18);
        *to++ = (char)(0x80 | (code >> 12 & 0x3f));
        *to++ = (char)(0x80 | (code >> 6 & 0x3f));
        *to++ = (char)(0x80 | (code & 0x3f));
    }
    return to;
}

/* After the backslash; writes the character, moves `from` on. NULL: no such escape. */
static char *read_escape(char **from, const char *end, char *to)
{
    static const char letters[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *letter = **from ? strchr(letters, **from) : NULL;
    if (letter) {
        *to++ = meant[letter - letters];
        ++*from;
        return to;
    }
    if (**from != 'u' || end - *from < 5) return NULL;
    int code = hex4(*from + 1);
    if (code <= 0) return NULL; /* no NUL in strings of ours */
    *from += 5;
    if (code >= 0xd800 && code < 0xdc00 && end - *from >= 6 && (*from)[0] == '\\' && (*from)[1] == 'u') {
        int low = hex4(*from + 2);
        if (low >= 0xdc00 && low < 0xe000) {
            *from += 6;
            return put_utf8(to, 0x10000u + (((unsigned)code - 0xd800) << 10) + ((unsigned)low - 0xdc00));
        }
    }
    return put_utf8(to, code >= 0xd800 && code < 0xe000 ? 0xfffd : (unsigned)code);
}

/* In place: a string never gets longer by reading it. */
static const char *read_string(struct reader *reader)
{
    if (!take(reader, '"')) return NULL;
    char *start = reader->at, *to = start, *from = start;
    while (from < reader->end && *from != '"') {
        if ((unsigned char)*from < 0x20) return NULL;
        if (*from != '\\') {
            *to++ = *from++;
            continue;
        }
        from++;
        to = read_escape(&from, reader->end, to);
        if (!to) return NULL;
    }
    if (from >= reader->end) return NULL;
    reader->at = from + 1;
    *to = '\0';
    return start;
}

static struct json *read_value(struct reader *reader);

static struct json *read_container(struct reader *reader, struct json *value, char closer)
{
    struct json **end = &value->first;
    if (++reader->depth > DEPTH_MOST) return NULL;
    if (take(reader, closer)) return reader->depth--, value;
    do {
        const char *key = NULL;
        if (value->type == JSON_OBJECT && (!(key = read_string(reader)) || !take(reader, ':'))) return NULL;
        struct json *element = read_value(reader);
        if (!element) return NULL;
        element->key = key;
        *end = element;
        end = &element->next;
        value->count++;
    } while (take(reader, ','));
    reader->depth--;
    return take(reader, closer) ? value : NULL;
}

static struct json *read_number(struct reader *reader, struct json *value)
{
    char *end;
    value->type = JSON_NUMBER;
    if (*reader->at != '-' && (*reader->at < '0' || *reader->at > '9')) return NULL;
    value->number = strtod(reader->at, &end);
    if (*reader->at != '-') value->integer = strtoull(reader->at, NULL, 10);
    reader->at = end;
    return value;
}

static struct json *read_value(struct reader *reader)
{
    static const struct {
        const char *word;
        enum json_type type;
        bool truth;
    } words[] = {{"null", JSON_NULL, false}, {"true", JSON_BOOL, true}, {"false", JSON_BOOL, false}};
    struct json *value = must_alloc(sizeof *value);
    skip_blanks(reader);
    if (reader->at >= reader->end) return NULL;
    if (*reader->at == '"') {
        value->type = JSON_STRING;
        value->string = read_string(reader);
        return value->string ? value : NULL;
    }
    if (*reader->at == '{' || *reader->at == '[') {
        value->type = *reader->at == '{' ? JSON_OBJECT : JSON_ARRAY;
        char closer = *reader->at++ == '{' ? '}' : ']';
        return read_container(reader, value, closer);
    }
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i].word);
        if ((size_t)(reader->end - reader->at) < length || strncmp(reader->at, words[i].word, length) != 0) continue;
        reader->at += length;
        value->type = words[i].type;
        value->truth = words[i].truth;
        return value;
    }
    return read_number(reader, value);
}

struct json *json_parse(char *text, size_t length, unsigned *line)
{
    struct reader reader = {text, text + length, 1, 0};
    struct json *value = read_value(&reader);
    skip_blanks(&reader);
    *line = reader.line;
    return value && reader.at == reader.end ? value : NULL;
}

const struct json *json_get(const struct json *object, const char *key)
{
    if (object->type == JSON_OBJECT) JSON_EACH(member, object) if (strcmp(member->key, key) == 0) return member;
    return &nothing;
}

uint64_t json_u64(const struct json *object, const char *key)
{
    const struct json *value = json_get(object, key);
    if (value->type == JSON_STRING && strncmp(value->string, "0x", 2) == 0) return strtoull(value->string, NULL, 16);
    return value->type == JSON_NUMBER ? value->integer : 0;
}

const char *json_string(const struct json *object, const char *key)
{
    const struct json *value = json_get(object, key);
    return value->type == JSON_STRING ? value->string : NULL;
}

const char *json_text(const struct json *object, const char *key)
{
    const char *string = json_string(object, key);
    return string ? string : "";
}

double json_number(const struct json *object, const char *key)
{
    const struct json *value = json_get(object, key);
    return value->type == JSON_NUMBER ? value->number : 0;
}

bool json_bool(const struct json *object, const char *key) { return json_get(object, key)->truth; }
