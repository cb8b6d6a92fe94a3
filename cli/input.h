/* Memory and whole files, for the commands zcshim and zcbench. What goes wrong is told on stderr, under the command's
 * name. */
#ifndef CLI_INPUT_H
#define CLI_INPUT_H
#include <stddef.h>

/* Zeroed; without memory the command ends. */
void *must_alloc(size_t bytes);
/* A whole file, with a NUL behind, "-" is stdin; NULL and a message if it cannot be read. free() it. */
char *file_read(const char *path, size_t *length);
#endif
