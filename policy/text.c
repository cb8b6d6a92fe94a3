#include "text.h"

#include <string.h>

struct text text_into(char *buf, size_t capacity)
{
    if (capacity) buf[0] = '\0';
    return (struct text){buf, capacity, 0};
}

void text_bytes(struct text *text, const char *bytes, size_t length)
{
    if (text->length + 1 < text->capacity) {
        size_t room = text->capacity - 1 - text->length;
        size_t kept = length < room ? length : room;
        memcpy(text->buf + text->length, bytes, kept);
        text->buf[text->length + kept] = '\0';
    }
    text->length += length;
}

void text_foreign(struct text *text, const char *bytes, size_t length)
{
    for (size_t i = 0; i < length; i++)
        text_bytes(text, (unsigned char)bytes[i] < ' ' || bytes[i] == 127 ? "?" : bytes + i, 1);
}

void text_add(struct text *text, const char *string) { text_bytes(text, string, strlen(string)); }

static void text_digits(struct text *text, uint64_t value, unsigned base, unsigned least)
{
    char digits[24];
    unsigned at = sizeof digits;
    do {
        digits[--at] = "0123456789abcdef"[value % base];
        value /= base;
    } while (value || sizeof digits - at < least);
    text_bytes(text, digits + at, sizeof digits - at);
}

void text_u64(struct text *text, uint64_t value) { text_digits(text, value, 10, 1); }

void text_hex(struct text *text, uint64_t value) { text_digits(text, value, 16, 1); }

void text_size(struct text *text, uint64_t bytes)
{
    unsigned suffix = 0;
    while (bytes && bytes % 1024 == 0 && suffix < 4) {
        bytes /= 1024;
        suffix++;
    }
    text_u64(text, bytes);
    if (suffix) text_bytes(text, &" KMGT"[suffix], 1);
}

void text_number(struct text *text, double value, unsigned decimals)
{
    static const uint64_t powers[] = {1, 10, 100, 1000, 10000, 100000, 1000000};
    if (decimals > 6) decimals = 6;
    if (!(value == value)) {
        text_add(text, "nan");
        return;
    }
    if (value < 0) {
        text_add(text, "-");
        value = -value;
    }
    if (value > 1e12) decimals = 0;
    if (value > 1e15) value = 1e15;
    uint64_t scaled = (uint64_t)(value * (double)powers[decimals] + 0.5);
    uint64_t fraction = scaled % powers[decimals];
    text_u64(text, scaled / powers[decimals]);
    if (!fraction) return;
    while (fraction % 10 == 0) {
        fraction /= 10;
        decimals--;
    }
    text_add(text, ".");
    text_digits(text, fraction, 10, decimals);
}

void text_pad(struct text *text, size_t line_start, size_t width)
{
    do text_add(text, " ");
    while (text->length - line_start < width);
}

struct span span_of(const char *string) { return (struct span){string, string + strlen(string)}; }

size_t span_length(struct span span) { return (size_t)(span.end - span.at); }

bool span_is(struct span span, const char *string)
{
    size_t length = strlen(string);
    return span_length(span) == length && memcmp(span.at, string, length) == 0;
}

static char lower(char c) { return c >= 'A' && c <= 'Z' ? (char)(c + 32) : c; }

bool span_is_caseless(struct span span, const char *string)
{
    for (; span.at < span.end && *string; span.at++, string++)
        if (lower(*span.at) != lower(*string)) return false;
    return span.at == span.end && !*string;
}

static bool blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

struct span span_trim(struct span span)
{
    while (span.at < span.end && blank(*span.at)) span.at++;
    while (span.at < span.end && blank(span.end[-1])) span.end--;
    return span;
}

struct span span_line(struct span *rest)
{
    struct span line = {rest->at, rest->at};
    while (line.end < rest->end && *line.end != '\n') line.end++;
    rest->at = line.end < rest->end ? line.end + 1 : line.end;
    return line;
}

struct span span_word(struct span *rest)
{
    while (rest->at < rest->end && blank(*rest->at)) rest->at++;
    struct span word = {rest->at, rest->at};
    while (word.end < rest->end && !blank(*word.end)) word.end++;
    rest->at = word.end;
    return word;
}

static int digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    c = lower(c);
    return c >= 'a' && c <= 'f' ? c - 'a' + 10 : 16;
}

static bool span_base(struct span span, unsigned base, uint64_t *value)
{
    uint64_t sum = 0;
    if (span.at == span.end) return false;
    for (; span.at < span.end; span.at++) {
        unsigned d = (unsigned)digit(*span.at);
        if (d >= base || __builtin_mul_overflow(sum, base, &sum) || __builtin_add_overflow(sum, d, &sum)) return false;
    }
    *value = sum;
    return true;
}

bool span_u64(struct span span, uint64_t *value) { return span_base(span, 10, value); }

bool span_hex(struct span span, uint64_t *value)
{
    if (span_length(span) > 2 && span.at[0] == '0' && lower(span.at[1]) == 'x') span.at += 2;
    return span_base(span, 16, value);
}

bool span_size(struct span span, uint64_t *bytes)
{
    struct span digits = {span.at, span.at};
    while (digits.end < span.end && *digits.end >= '0' && *digits.end <= '9') digits.end++;
    struct span suffix = {digits.end, span.end};
    uint64_t value;
    unsigned shift = 0;
    if (!span_u64(digits, &value)) return false;
    if (suffix.at < suffix.end && lower(*suffix.at) != 'b') {
        const char *place = strchr("kmgt", lower(*suffix.at));
        if (!*suffix.at || !place) return false;
        shift = 10 * (unsigned)(place - "kmgt" + 1);
        suffix.at++;
        if (span_length(suffix) == 2 && lower(*suffix.at) == 'i') suffix.at++;
    }
    if (span_length(suffix) > 1 || (span_length(suffix) == 1 && lower(*suffix.at) != 'b')) return false;
    if (value > UINT64_MAX >> shift) return false;
    *bytes = value << shift;
    return true;
}

bool span_number(struct span span, double *value)
{
    double sum = 0, unit = 1;
    bool point = false, any = false;
    for (; span.at < span.end; span.at++) {
        if (*span.at == '.' && !point) {
            point = true;
            continue;
        }
        if (*span.at < '0' || *span.at > '9') return false;
        any = true;
        if (point) {
            unit /= 10;
            sum += unit * (*span.at - '0');
        } else {
            sum = sum * 10 + (*span.at - '0');
        }
        if (sum > 1e15) return false;
    }
    *value = sum;
    return any;
}

bool span_glob(struct span pattern, struct span subject)
{
    struct span star = {NULL, NULL};
    const char *retry = NULL;
    while (subject.at < subject.end) {
        if (pattern.at < pattern.end && *pattern.at == '*') {
            star = (struct span){++pattern.at, pattern.end};
            retry = subject.at;
        } else if (pattern.at < pattern.end && (*pattern.at == '?' || *pattern.at == *subject.at)) {
            pattern.at++;
            subject.at++;
        } else if (star.at) {
            pattern = star;
            subject.at = ++retry;
        } else {
            return false;
        }
    }
    while (pattern.at < pattern.end && *pattern.at == '*') pattern.at++;
    return pattern.at == pattern.end;
}
