/* Writing and reading small pieces of text without stdio: for messages, tables, profiles and calibration files.
 *
 * Writers append to a struct text and never write past its capacity; `length` counts what would have been written, and
 * the buffer is NUL-terminated after each call if it has room for at least that. Readers take a position and an end and
 * never look past it. */
#ifndef POLICY_TEXT_H
#define POLICY_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct text {
    char *buf;
    size_t capacity;
    size_t length;
};

struct text text_into(char *buf, size_t capacity);
void text_bytes(struct text *text, const char *bytes, size_t length);
void text_add(struct text *text, const char *string);
/* Somebody else's text: control characters become question marks. */
void text_foreign(struct text *text, const char *bytes, size_t length);
void text_u64(struct text *text, uint64_t value);
void text_hex(struct text *text, uint64_t value);
/* Bytes with the largest suffix (K, M, G, T) that loses nothing: 65536 is 64K, 1000 is 1000. */
void text_size(struct text *text, uint64_t bytes);
/* A number of at most 1e15 with up to `decimals` (0..6) digits after the point, zeros at the end left out. */
void text_number(struct text *text, double value, unsigned decimals);
/* Blanks until the line that starts at `line_start` (a value of text->length) is `width` wide; at least one. */
void text_pad(struct text *text, size_t line_start, size_t width);

/* A part of somebody's text. */
struct span {
    const char *at;
    const char *end;
};

struct span span_of(const char *string);
size_t span_length(struct span span);
bool span_is(struct span span, const char *string);          /* equal */
bool span_is_caseless(struct span span, const char *string); /* equal but for ASCII case */
struct span span_trim(struct span span);                     /* without blanks, tabs and CR at both ends */
struct span span_line(struct span *rest);                    /* takes the next line off, without its newline */
struct span span_word(struct span *rest);          /* skips blanks and takes the next word off; empty at the end */
bool span_u64(struct span span, uint64_t *value);  /* decimal digits only; false on anything else or overflow */
bool span_hex(struct span span, uint64_t *value);  /* hexadecimal digits with or without 0x */
bool span_size(struct span span, uint64_t *bytes); /* digits and K, M, G, T, with or without B or iB, any case */
bool span_number(struct span span, double *value); /* digits with at most one point; not negative; below 1e15 */
bool span_glob(struct span pattern, struct span subject); /* * and ?; time at most length x length */

#endif
