/* SPDX-License-Identifier: MIT */
/* Can a library be preloaded into a program? */
#ifndef FLEXSC_PROGRAM_H
#define FLEXSC_PROGRAM_H

#include <stddef.h>

/* Find a program as execvp() does. Returns 0, or -1 with errno set. */
int program_find(const char *name, char *path, size_t size);

/*
 * Why the runtime can't serve this program, as the end of a sentence. NULL: it
 * can, or the file isn't an ELF file; a script's interpreter is checked when it
 * is executed.
 */
const char *program_obstacle(const char *path);

#endif /* FLEXSC_PROGRAM_H */
