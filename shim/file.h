/* Small text files of the user's, mapped privately (never malloced) or replaced in one step. errno is kept. Relative
 * names are meant from the folder that the process started in, wherever the program has gone. */
#ifndef SHIM_FILE_H
#define SHIM_FILE_H
#include <stdbool.h>
#include <stddef.h>

/* Remembers that folder. */
void file_start(void);

/* `path` from there, cut off at `capacity`; the whole length. */
size_t file_path(char *text, size_t capacity, const char *path);

/* The file's text, NUL-terminated, writable, for the life of the process; NULL if it cannot be read or is larger than
 * `most` bytes. */
char *file_read(const char *path, size_t most, size_t *length);

/* Is there anything of that name, a dangling link included? */
bool file_exists(const char *path);

/* Writes a temporary file beside `path` (0600) and renames it over it: readers see the old text or the new, never a
 * part. Nothing but a regular file is replaced. */
bool file_replace(const char *path, const char *text, size_t length);
#endif
