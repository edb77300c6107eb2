/* SPDX-License-Identifier: MIT */
/* A program file: can a library be preloaded into it? */
#ifndef FLEXSC_PROGRAM_H
#define FLEXSC_PROGRAM_H

#include <stddef.h>

/* Where execvp() would find it: 0; or -1, and errno says why not. */
int program_find(const char *name, char *path, size_t size);

/*
 * Why the runtime can't serve this program, as the end of a sentence, or NULL
 * if it can, or isn't an ELF file: a script's interpreter speaks for itself.
 */
const char *program_obstacle(const char *path);

#endif /* FLEXSC_PROGRAM_H */
