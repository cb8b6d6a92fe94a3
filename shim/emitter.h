/* Where a report goes: a buffer that is written out in large pieces, with JSON punctuation taken care of.
 *
 * No stdio, no malloc. The first error of write(2) is kept and ends the output; the caller asks for it at the end and
 * says it. A broken pipe or a file size limit is such an error and raises no signal. */
#ifndef SHIM_EMITTER_H
#define SHIM_EMITTER_H
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define EMITTER_DEPTH_MAX 16

struct emitter {
    int fd;
    int error; /* errno of the first write that failed, 0: none */
    char *buffer;
    size_t capacity, used;
    unsigned depth;       /* of open objects and arrays */
    unsigned lines_depth; /* JSON: elements of deeper containers stay on one line; may be changed on the way */
    bool for_html;        /* JSON: strings hold no "<", so that the text can stand inside a page */
    char closers[EMITTER_DEPTH_MAX];
    bool filled[EMITTER_DEPTH_MAX]; /* the container has an element already */
};

/* `buffer` is the caller's; text that fits into it leaves in one write. */
void emitter_start(struct emitter *emitter, int fd, char *buffer, size_t capacity);
/* Writes out what is left; the error, 0: all was written. */
int emitter_finish(struct emitter *emitter);

void emitter_bytes(struct emitter *emitter, const char *bytes, size_t count);
/* Conversions of text_format. */
void emitter_text(struct emitter *emitter, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* JSON. `key` is NULL inside an array and for the outermost object. */
void emitter_object(struct emitter *emitter, const char *key);
void emitter_array(struct emitter *emitter, const char *key);
void emitter_end(struct emitter *emitter);
void emitter_string(struct emitter *emitter, const char *key, const char *value); /* NULL gives null */
void emitter_u64(struct emitter *emitter, const char *key, uint64_t value);
void emitter_hex(struct emitter *emitter, const char *key, uint64_t value);        /* "0x..." */
void emitter_number(struct emitter *emitter, const char *key, const char *digits); /* as it is to stand there */
void emitter_bool(struct emitter *emitter, const char *key, bool value);
void emitter_null(struct emitter *emitter, const char *key);

/* A word for an errno of open and write, without the locale. */
const char *emitter_error_word(int error);
#endif
