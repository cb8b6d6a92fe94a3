#include "shim/emitter.h"

#include <errno.h>
#include <string.h>
#include "shim/log.h"
#include "shim/write.h"

enum { LINES_DEPTH = 4, FORMATTED_MAX = 2048 };

void emitter_start(struct emitter *emitter, int fd, char *buffer, size_t capacity)
{
    *emitter = (struct emitter){.fd = fd, .buffer = buffer, .capacity = capacity, .lines_depth = LINES_DEPTH};
}

static void emitter_flush(struct emitter *emitter)
{
    if (!emitter->error) emitter->error = write_all(emitter->fd, emitter->buffer, emitter->used);
    emitter->used = 0;
}

int emitter_finish(struct emitter *emitter)
{
    emitter_flush(emitter);
    return emitter->error;
}

void emitter_bytes(struct emitter *emitter, const char *bytes, size_t count)
{
    while (count > 0 && !emitter->error) {
        size_t room = emitter->capacity - emitter->used;
        size_t some = count < room ? count : room;
        memcpy(emitter->buffer + emitter->used, bytes, some);
        emitter->used += some;
        bytes += some;
        count -= some;
        if (emitter->used == emitter->capacity) emitter_flush(emitter);
    }
}

void emitter_text(struct emitter *emitter, const char *format, ...)
{
    char text[FORMATTED_MAX];
    va_list arguments;
    va_start(arguments, format);
    size_t length = text_vformat(text, sizeof text, format, arguments);
    va_end(arguments);
    emitter_bytes(emitter, text, length < sizeof text ? length : sizeof text - 1);
}

static void put(struct emitter *emitter, const char *string) { emitter_bytes(emitter, string, strlen(string)); }

/* Bytes of the UTF-8 character at `at`, 0 if it is none. */
static unsigned character_bytes(const unsigned char *at)
{
    unsigned bytes = at[0] < 0x80                    ? 1
                     : at[0] >= 0xc2 && at[0] < 0xe0 ? 2
                     : (at[0] & 0xf0) == 0xe0        ? 3
                     : at[0] >= 0xf0 && at[0] < 0xf5 ? 4
                                                     : 0;
    for (unsigned i = 1; i < bytes; i++)
        if ((at[i] & 0xc0) != 0x80) return 0;
    if (bytes == 3 && ((at[0] == 0xe0 && at[1] < 0xa0) || (at[0] == 0xed && at[1] >= 0xa0))) return 0;
    if (bytes == 4 && ((at[0] == 0xf0 && at[1] < 0x90) || (at[0] == 0xf4 && at[1] >= 0x90))) return 0;
    return bytes;
}

static void put_quoted(struct emitter *emitter, const char *string)
{
    const unsigned char *at = (const unsigned char *)string;
    emitter_bytes(emitter, "\"", 1);
    while (*at) {
        unsigned bytes = character_bytes(at);
        if (*at == '"' || *at == '\\')
            emitter_text(emitter, "\\%c", *at);
        else if (*at < 0x20 || *at == 0x7f || (*at == '<' && emitter->for_html))
            emitter_text(emitter, "\\u%04x", *at);
        else if (bytes == 0)
            put(emitter, "\\ufffd");
        else
            emitter_bytes(emitter, (const char *)at, bytes);
        at += bytes ? bytes : 1;
    }
    emitter_bytes(emitter, "\"", 1);
}

static void new_line(struct emitter *emitter)
{
    static const char blanks[] = "\n        ";
    emitter_bytes(emitter, blanks, 1 + (emitter->depth < LINES_DEPTH ? emitter->depth : LINES_DEPTH) * 2);
}

/* Comma, line and key before an element. */
static void element(struct emitter *emitter, const char *key)
{
    if (emitter->depth > 0) {
        bool *filled = &emitter->filled[emitter->depth - 1];
        if (*filled) emitter_bytes(emitter, ",", 1);
        if (emitter->depth <= emitter->lines_depth)
            new_line(emitter);
        else if (*filled)
            emitter_bytes(emitter, " ", 1);
        *filled = true;
    }
    if (key) {
        put_quoted(emitter, key);
        emitter_bytes(emitter, ": ", 2);
    }
}

static void open_container(struct emitter *emitter, const char *key, const char *opener, char closer)
{
    element(emitter, key);
    emitter_bytes(emitter, opener, 1);
    emitter->closers[emitter->depth] = closer;
    emitter->filled[emitter->depth++] = false;
}

void emitter_object(struct emitter *emitter, const char *key) { open_container(emitter, key, "{", '}'); }

void emitter_array(struct emitter *emitter, const char *key) { open_container(emitter, key, "[", ']'); }

void emitter_end(struct emitter *emitter)
{
    bool filled = emitter->filled[--emitter->depth];
    if (filled && emitter->depth < emitter->lines_depth) new_line(emitter);
    emitter_bytes(emitter, &emitter->closers[emitter->depth], 1);
    if (emitter->depth == 0) emitter_bytes(emitter, "\n", 1);
}

void emitter_string(struct emitter *emitter, const char *key, const char *value)
{
    element(emitter, key);
    if (value)
        put_quoted(emitter, value);
    else
        put(emitter, "null");
}

void emitter_u64(struct emitter *emitter, const char *key, uint64_t value)
{
    element(emitter, key);
    emitter_text(emitter, "%lu", (unsigned long)value);
}

void emitter_number(struct emitter *emitter, const char *key, const char *digits)
{
    element(emitter, key);
    put(emitter, digits);
}

void emitter_hex(struct emitter *emitter, const char *key, uint64_t value)
{
    element(emitter, key);
    emitter_text(emitter, "\"0x%lx\"", (unsigned long)value);
}

void emitter_bool(struct emitter *emitter, const char *key, bool value)
{
    element(emitter, key);
    put(emitter, value ? "true" : "false");
}

void emitter_null(struct emitter *emitter, const char *key)
{
    element(emitter, key);
    put(emitter, "null");
}

const char *emitter_error_word(int error)
{
    switch (error) {
    case EACCES:
    case EPERM:
        return "permission denied";
    case EBADF:
        return "the file is closed";
    case EDQUOT:
        return "quota exceeded";
    case EEXIST:
        return "it exists";
    case EFBIG:
        return "file size limit reached";
    case EIO:
        return "input/output error";
    case EISDIR:
        return "it is a folder";
    case ELOOP:
        return "it is a symbolic link";
    case EMFILE:
    case ENFILE:
        return "too many open files";
    case ENAMETOOLONG:
        return "name too long";
    case ENOENT:
        return "no such folder";
    case ENOSPC:
        return "no space left";
    case ENOTDIR:
        return "part of the path is not a folder";
    case EPIPE:
        return "nobody reads the pipe";
    case EROFS:
        return "read-only file system";
    default:
        return "system error";
    }
}
