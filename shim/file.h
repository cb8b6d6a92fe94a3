/* Small text files of the user's, mapped privately (never malloced) or replaced in one step. errno is kept. */
#ifndef SHIM_FILE_H
#define SHIM_FILE_H
#include <stdbool.h>
#include <stddef.h>

/* The file's text, NUL-terminated, writable, for the life of the process; NULL if it cannot be read or is larger than
 * `most` bytes. */
char *file_read(const char *path, size_t most, size_t *length);

/* Writes a temporary file beside `path` (0600) and renames it over it: readers see the old text or the new, never a
 * part. */
bool file_replace(const char *path, const char *text, size_t length);
#endif
