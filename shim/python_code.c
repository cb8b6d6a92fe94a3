/* Names for places in Python's code objects. Every word is asked for before it is read. */
#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include "shim/arena.h"
#include "shim/hash.h"
#include "shim/python.h"

enum {
    OBJECT_TYPE = 8,
    OBJECT_LENGTH = 16, /* of strings, bytes */
    BYTES_HEADER = 32,
    TEXT_MAX = 1024,
    LINES_MAX = 64 << 10,
    TEXT_BUCKETS = 256
};

struct python_types python_types;

/* The kernel copies a signal set before it looks at how to use it, and "how" is never valid here: nothing is changed.
 * Unlike calls made for reading memory, every sandbox lets this one through. */
static bool readable(uintptr_t word)
{
    int kept = errno;
    bool can = syscall(SYS_rt_sigprocmask, -1, word, NULL, sizeof(uint64_t)) == -1 && errno == EINVAL;
    errno = kept;
    return can;
}

bool python_read(uintptr_t address, void *to, unsigned bytes)
{
    uintptr_t first = address & ~(uintptr_t)7, last = (address + bytes - 1) & ~(uintptr_t)7;
    if (address < 4096 || bytes == 0 || bytes > 4096 || address + bytes < address) return false;
    if (!readable(first) || (last != first && !readable(last))) return false;
    memcpy(to, (const void *)address, bytes);
    return true;
}

static bool read_word(uintptr_t address, uintptr_t *word) { return python_read(address, word, sizeof *word); }

/* The object at `address` is of this type. */
static bool is_of(uintptr_t address, uintptr_t type)
{
    uintptr_t found;
    return address % sizeof(uintptr_t) == 0 && read_word(address + OBJECT_TYPE, &found) && found == type;
}

/* Names are few and come again and again. Called with the lock of python.c held. */
static const char *keep_text(const char *text, size_t length)
{
    static struct kept {
        struct kept *next;
        char text[];
    } * buckets[TEXT_BUCKETS];
    struct kept **bucket = &buckets[hash_bytes(HASH_START, text, length) % TEXT_BUCKETS], *one = *bucket;
    while (one && strcmp(one->text, text) != 0) one = one->next;
    if (one) return one->text;
    one = arena_alloc(sizeof *one + length + 1);
    if (!one) return "?";
    memcpy(one->text, text, length + 1);
    one->next = *bucket;
    *bucket = one;
    return one->text;
}

/* The text of an ASCII string object; "?" for others, which are rare in names of functions and files. */
static const char *read_text(const struct python_layout *layout, uintptr_t object)
{
    char text[TEXT_MAX + 1];
    uintptr_t length;
    if (!is_of(object, python_types.text)) return NULL;
    if (!read_word(object + OBJECT_LENGTH, &length) || length == 0 || length > TEXT_MAX ||
        !python_read(object + layout->text_bytes, text, (unsigned)length + 1) || text[length] != '\0')
        return "?";
    for (uintptr_t i = 0; i < length; i++)
        if (text[i] < 0x20 || text[i] == 0x7f) return "?"; /* also everything that is not ASCII */
    return keep_text(text, length);
}

/* A number of 6 bits a byte, the lowest first; a set bit 6 goes on. */
static unsigned read_varint(const unsigned char **at, const unsigned char *end)
{
    unsigned value = 0, shift = 0;
    while (*at < end && shift < 30) {
        unsigned char byte = *(*at)++;
        value |= (byte & 63u) << shift;
        shift += 6;
        if (!(byte & 64)) break;
    }
    return value;
}

/* The line of the instruction `index`, from a table as PEP 626 describes it for 3.11 and later: each entry covers one
 * to eight units and begins with a byte whose top bit is set. 0: it has none. */
static uint32_t line_of(const unsigned char *at, const unsigned char *end, long line, uintptr_t index)
{
    for (uintptr_t unit = 0; at < end && *at & 128;) {
        unsigned char head = *at++;
        unsigned code = head >> 3 & 15, delta;
        unit += (head & 7) + 1u;
        if (code == 13 || code == 14) {
            delta = read_varint(&at, end);
            line += delta & 1 ? -(long)(delta >> 1) : (long)(delta >> 1);
        } else if (code >= 10 && code <= 12) {
            line += code - 10;
        }
        if (unit > index) return code == 15 || line < 0 ? 0 : (uint32_t)line;
        while (at < end && !(*at & 128)) at++; /* columns */
    }
    return 0;
}

static uint32_t read_line(const struct python_layout *layout, const struct python_slot *slot)
{
    static unsigned char table[LINES_MAX]; /* under the lock of python.c */
    uintptr_t lines, length, start = slot->code + layout->code_instructions;
    uint32_t first;
    if (!python_read(slot->code + layout->code_first_line, &first, sizeof first) ||
        !read_word(slot->code + layout->code_lines, &lines) || !is_of(lines, python_types.bytes) ||
        !read_word(lines + OBJECT_LENGTH, &length) || length > LINES_MAX)
        return 0;
    for (uintptr_t done = 0; done < length; done += 4096)
        if (!python_read(lines + BYTES_HEADER + done, table + done,
                         (unsigned)(length - done < 4096 ? length - done : 4096)))
            return 0;
    /* Before its first instruction a frame points one unit before it. */
    uintptr_t index = slot->instruction < start ? 0 : (slot->instruction - start) / 2;
    return line_of(table, table + length, first, index);
}

bool python_name(const struct python_layout *layout, const struct python_slot *slot, struct python_frame *frame)
{
    uintptr_t file, function;
    if (!is_of(slot->code, python_types.code) || !read_word(slot->code + layout->code_file, &file) ||
        !read_word(slot->code + layout->code_function, &function))
        return false;
    frame->file = read_text(layout, file);
    frame->function = read_text(layout, function);
    if (!frame->file || !frame->function) return false;
    frame->line = read_line(layout, slot);
    return true;
}
