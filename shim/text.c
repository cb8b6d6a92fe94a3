/* text_format: the conversions that messages and reports need, and nothing that could allocate or read the locale. */
#include "shim/log.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct sink {
    char *at, *end; /* the last place is kept for the terminator */
    size_t length;
};

struct conversion {
    bool left, zero, plus, has_precision;
    int width, precision;
    char size; /* 0, l (also ll, z, t, j) or h */
};

static void put(struct sink *sink, const char *bytes, size_t count)
{
    size_t room = (size_t)(sink->end - sink->at);
    size_t some = count < room ? count : room;
    memcpy(sink->at, bytes, some);
    sink->at += some;
    sink->length += count;
}

static void put_fill(struct sink *sink, char fill, int count)
{
    while (count-- > 0) put(sink, &fill, 1);
}

/* Sign, zeros or blanks, digits. */
static void put_field(struct sink *sink, const struct conversion *how, const char *sign, const char *bytes,
                      size_t count)
{
    size_t sign_length = strlen(sign);
    int padding = how->width - (int)(count + sign_length);
    if (!how->left && !how->zero) put_fill(sink, ' ', padding);
    put(sink, sign, sign_length);
    if (!how->left && how->zero) put_fill(sink, '0', padding);
    put(sink, bytes, count);
    if (how->left) put_fill(sink, ' ', padding);
}

/* Digits of `value` end at `end`; returns where they start. */
static char *digits(char *end, uint64_t value, unsigned base, const char *alphabet)
{
    do *--end = alphabet[value % base];
    while (value /= base);
    return end;
}

static void put_integer(struct sink *sink, const struct conversion *how, uint64_t value, const char *sign,
                        unsigned base, bool upper)
{
    char text[24];
    char *start = digits(text + sizeof text, value, base, upper ? "0123456789ABCDEF" : "0123456789abcdef");
    put_field(sink, how, sign, start, (size_t)(text + sizeof text - start));
}

static void put_double(struct sink *sink, const struct conversion *how, double value)
{
    int places = how->has_precision ? how->precision : 6;
    const char *sign = value < 0 ? "-" : how->plus ? "+" : "";
    struct conversion plain = *how;
    if (places > 9) places = 9;
    if (value < 0) value = -value;
    if (!(value < 1e18)) { /* also not-a-number */
        plain.zero = false;
        put_field(sink, &plain, sign, value == value ? "huge" : "nan", value == value ? 4 : 3);
        return;
    }
    uint64_t scale = 1;
    for (int i = 0; i < places; i++) scale *= 10;
    uint64_t whole = (uint64_t)value;
    uint64_t fraction = (uint64_t)((value - (double)whole) * (double)scale + 0.5);
    if (fraction >= scale) whole++, fraction -= scale;
    char text[40], *end = text + sizeof text, *start = end;
    if (places) {
        start = digits(end, fraction, 10, "0123456789");
        while (end - start < places) *--start = '0';
        *--start = '.';
    }
    start = digits(start, whole, 10, "0123456789");
    put_field(sink, &plain, sign, start, (size_t)(end - start));
}

static int read_number(const char **format)
{
    int number = 0;
    while (**format >= '0' && **format <= '9') {
        if (number < 10000) number = number * 10 + (**format - '0');
        ++*format;
    }
    return number;
}

#define NEXT_INT(arguments) va_arg(*(arguments), int)

static const char *read_conversion(const char *format, struct conversion *how, va_list *arguments)
{
    *how = (struct conversion){0};
    for (;; format++) {
        if (*format == '-')
            how->left = true;
        else if (*format == '0')
            how->zero = true;
        else if (*format == '+')
            how->plus = true;
        else if (*format != ' ' && *format != '#')
            break;
    }
    if (*format == '*') {
        how->width = NEXT_INT(arguments);
        if (how->width < 0) how->left = true, how->width = -how->width;
        format++;
    } else {
        how->width = read_number(&format);
    }
    if (*format == '.') {
        format++;
        how->has_precision = true;
        if (*format == '*')
            how->precision = NEXT_INT(arguments), format++;
        else
            how->precision = read_number(&format);
        if (how->precision < 0) how->has_precision = false;
    }
    for (; strchr("lzjth", *format) && *format; format++) how->size = *format == 'h' ? 'h' : 'l';
    return format;
}

static void put_argument(struct sink *sink, char kind, struct conversion *how, va_list *arguments)
{
    switch (kind) {
    case 'd':
    case 'i': {
        int64_t value = how->size == 'l' ? va_arg(*arguments, long) : NEXT_INT(arguments);
        put_integer(sink, how, value < 0 ? -(uint64_t)value : (uint64_t)value,
                    value < 0   ? "-"
                    : how->plus ? "+"
                                : "",
                    10, false);
        break;
    }
    case 'u':
    case 'x':
    case 'X': {
        uint64_t value = how->size == 'l' ? va_arg(*arguments, unsigned long) : va_arg(*arguments, unsigned);
        put_integer(sink, how, value, "", kind == 'u' ? 10 : 16, kind == 'X');
        break;
    }
    case 'p':
        put_integer(sink, how, (uintptr_t)va_arg(*arguments, void *), "0x", 16, false);
        break;
    case 'f':
        put_double(sink, how, va_arg(*arguments, double));
        break;
    case 'c': {
        char one = (char)NEXT_INT(arguments);
        how->zero = false;
        put_field(sink, how, "", &one, 1);
        break;
    }
    case 's': {
        const char *string = va_arg(*arguments, const char *);
        if (!string) string = "(null)";
        how->zero = false;
        put_field(sink, how, "", string, how->has_precision ? strnlen(string, (size_t)how->precision) : strlen(string));
        break;
    }
    case '%':
        put(sink, "%", 1);
        break;
    default:
        put(sink, "%?", 2);
        break; /* not one of ours: shown, not guessed */
    }
}

size_t text_vformat(char *buffer, size_t capacity, const char *format, va_list arguments)
{
    char nowhere[1];
    if (capacity == 0) buffer = nowhere, capacity = 1;
    struct sink sink = {buffer, buffer + capacity - 1, 0};
    struct conversion how;
    va_list rest;
    va_copy(rest, arguments);
    while (*format) {
        const char *plain = format;
        while (*format && *format != '%') format++;
        put(&sink, plain, (size_t)(format - plain));
        if (!*format) break;
        format = read_conversion(format + 1, &how, &rest);
        if (!*format) break;
        put_argument(&sink, *format++, &how, &rest);
    }
    va_end(rest);
    *sink.at = '\0';
    return sink.length;
}

size_t text_format(char *buffer, size_t capacity, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    size_t length = text_vformat(buffer, capacity, format, arguments);
    va_end(arguments);
    return length;
}
