/* The file of a report: never an existing one, never through a symbolic link, readable by its owner only. */
#ifndef SHIM_REPORT_FILE_H
#define SHIM_REPORT_FILE_H
#include <stddef.h>

/* Expands %p process, %h host, %e program, %r rank of MPI or Slurm, %%; puts the folder of the start before relative
 * paths. The path of a folder gets a file name. The length it has, as snprintf. */
size_t report_file_expand(char *path, size_t capacity, const char *pattern, const char *extension);

/* Creates the file, as PATH.1, PATH.2, ... where files of that name exist; the name is written back. Devices are
 * written to as they are. -1: `error` says why. */
int report_file_create(char *path, size_t capacity, int *error);

/* The rank, NULL outside of MPI and Slurm. */
const char *report_rank(void);
/* The name of the program's file, without folders; and the host's name. */
size_t report_program(char *path, size_t capacity);
size_t report_host(char *name, size_t capacity);
#endif
