/* A small JSON reader. Everything belongs to the document and lives as long as the command. */
#ifndef CLI_JSON_H
#define CLI_JSON_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum json_type { JSON_NULL, JSON_BOOL, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT };

struct json {
    enum json_type type;
    bool truth;
    double number;
    uint64_t integer; /* of a number without sign, point and exponent */
    const char *string;
    const char *key;           /* of a member of an object */
    struct json *first, *next; /* elements; the next one in the container */
    size_t count;              /* of elements */
};

/* NULL, with the place of the mistake in `line`. `text` is changed. */
struct json *json_parse(char *text, size_t length, unsigned *line);
/* A member; a null value if there is none. Never NULL. */
const struct json *json_get(const struct json *object, const char *key);
uint64_t json_u64(const struct json *object, const char *key);       /* also of "0x..." strings; 0 if there is none */
double json_number(const struct json *object, const char *key);      /* 0 if there is none */
const char *json_string(const struct json *object, const char *key); /* NULL if there is none */
const char *json_text(const struct json *object, const char *key);   /* "" if there is none */
bool json_bool(const struct json *object, const char *key);
#define JSON_EACH(item, container) for (const struct json *item = (container)->first; item; item = item->next)
#endif
